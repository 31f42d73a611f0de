//! A text that comes in pieces, and its tokens as soon as they are certain.

use std::fmt;
use std::sync::Arc;

use bpe_core::{Atoms, BytePairs, SpanEncoder, TokenId};
use bpe_incremental::{EagerEncoder, LastTokenEngine};
use bpe_lexers::{Analysis, Cuts, Label, StreamEvent, StreamSpanner};

use crate::error::EncodeError;
use crate::stream_error::{StreamError, StreamErrorKind};
use crate::tokenizer::Tokenizer;

/// Tokens and bytes that a stream may hold back: about a megabyte.
const LIMIT: usize = 1 << 18;

/// The last bytes of what came before: a character has four at most.
const CONTEXT: usize = 4;

impl Tokenizer {
    /// A stream into which text is pushed in any pieces, and which hands out tokens as soon as no
    /// continuation can change them; joined they are those of [`Tokenizer::encode_bytes`].
    ///
    /// The first call builds what streams share: the automaton of the patterns, some milliseconds, and
    /// the tables of the eager engine, up to half a second and 50 MB for 200,000 tokens.
    ///
    /// # Errors
    ///
    /// The tokenizer has lexers of the caller's own, or a pattern that cannot be
    /// [analysed](Analysis::new) ([`StreamError::is_unsupported`]).
    ///
    /// ```
    /// let tokenizer = bytepair::Tokenizer::o200k_base();
    /// let mut stream = tokenizer.stream()?;
    /// let mut ids = Vec::new();
    /// for piece in ["Hel", "lo, wor", "ld"] {
    ///     stream.push(piece, &mut ids)?;
    /// }
    /// stream.finish(&mut ids)?;
    /// assert_eq!(ids, tokenizer.encode("Hello, world")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream(&self) -> Result<TokenStream, StreamError> {
        let parts = self.inner.stream.get_or_init(|| StreamParts::new(self));
        match parts {
            Ok(parts) => Ok(TokenStream::new(self.clone(), Arc::clone(parts))),
            Err(error) => Err(error.clone()),
        }
    }
}

/// What all streams of a tokenizer share.
pub(crate) struct StreamParts {
    analysis: Arc<Analysis>,
    cuts: Option<Cuts>,
    /// None where the dictionary is not one for it.
    engine: Option<LastTokenEngine>,
    /// Without that engine: where an open span can be cut, unless unknown characters that stand side by
    /// side are one token.
    pairs: Option<BytePairs>,
    /// The bytes of the tokens that only whole-piece look-up gives, in order.
    unreachable: Vec<(Box<[u8]>, TokenId)>,
}

impl StreamParts {
    fn new(tokenizer: &Tokenizer) -> Result<Arc<Self>, StreamError> {
        let inner = &tokenizer.inner;
        if inner.patterns.len() != inner.lexers.len() {
            return Err(StreamErrorKind::OwnLexers.into());
        }
        let analysis = Analysis::new(&inner.patterns).map_err(StreamErrorKind::Pattern)?;
        let canonical = &inner.canonical;
        let vocabulary = canonical.vocabulary();
        let fuses = Atoms::Characters {
            unknown: tokenizer.unknown().map(|unknown| unknown.0),
            fuse_unknown: true,
        };
        let engine = LastTokenEngine::new(canonical).ok();
        let pairs = match inner.patterns.is_empty() || engine.is_none() {
            true if canonical.atoms() != fuses => Some(BytePairs::new(vocabulary)),
            _ => None,
        };
        let cuts = match (inner.patterns.is_empty(), &pairs) {
            (false, _) => Some(Cuts::of(&analysis)),
            (true, Some(pairs)) => Some(Cuts::at_byte_pairs(|a, b| !pairs.in_a_token(a, b))),
            (true, None) => None,
        };
        let mut unreachable = Vec::new();
        if canonical.whole_piece_lookup() {
            for id in canonical.unreachable_tokens() {
                if let Some(bytes) = vocabulary.token_bytes(id) {
                    unreachable.push((Box::from(bytes), id));
                }
            }
        }
        unreachable.sort_unstable();
        Ok(Arc::new(Self {
            analysis: Arc::new(analysis),
            cuts,
            engine,
            pairs,
            unreachable,
        }))
    }

    /// The last place beyond `from` in an open span at which no merge and no look-up crosses: between two
    /// characters whose bytes no token has side by side (docs/architecture.md, fact 4).
    fn last_boundary(&self, span: &[u8], from: usize) -> Option<usize> {
        let pairs = self.pairs.as_ref()?;
        let places = span.windows(2).enumerate().skip(from).rev();
        let mut boundaries = places.filter(|(_, pair)| match *pair {
            &[first, second] => second & 0xC0 != 0x80 && !pairs.in_a_token(first, second),
            _ => false,
        });
        boundaries.next().map(|(place, _)| place + 1)
    }

    /// May a piece that begins with `bytes` still be a token that merging does not give?
    fn may_be_unreachable(&self, bytes: &[u8]) -> bool {
        let place = self
            .unreachable
            .partition_point(|(token, _)| &**token < bytes);
        let candidate = self.unreachable.get(place);
        candidate.is_some_and(|(token, _)| token.starts_with(bytes))
    }

    /// The token that merging does not give with these bytes.
    fn unreachable(&self, bytes: &[u8]) -> Option<TokenId> {
        let place = self
            .unreachable
            .binary_search_by(|(token, _)| (**token).cmp(bytes));
        place
            .ok()
            .and_then(|place| self.unreachable.get(place))
            .map(|token| token.1)
    }
}

impl fmt::Debug for StreamParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamParts")
            .field("analysis", &self.analysis)
            .finish_non_exhaustive()
    }
}

/// Text in, in any pieces; tokens out, as soon as they are certain. See [`Tokenizer::stream`].
///
/// # What is held back
///
/// A few characters for a boundary that depends on what follows, and of the open span what the eager
/// engine must ([`bpe_incremental::held_bytes_bound`]), so a span may be longer than memory. Where a
/// boundary depends on text arbitrarily far ahead, all readings are encoded, and what they have in
/// common is handed out. That is all but a bounded rest, with one exception: a vocabulary with a token that
/// crosses the undecided place (eight of o200k do), and a text made for it. There no exact stream has
/// bounded memory, and the stream ends with an error at its [limit](TokenStream::with_limit).
///
/// A dictionary that the eager engine refuses (an improper one that no other order of its rules makes
/// proper) has what follows the last two bytes kept that no token has side by side, up to the same limit.
///
/// # Cost
///
/// O(bytes). Text between two [cuts](Cuts) that are in one piece is encoded at once, by the engines of
/// [`Tokenizer::encode`].
pub struct TokenStream {
    tokenizer: Tokenizer,
    parts: Arc<StreamParts>,
    spanner: StreamSpanner,
    state: Readings,
    /// The last bytes of the text so far, where they may be one side of a cut.
    context: Vec<u8>,
}

impl TokenStream {
    fn new(tokenizer: Tokenizer, parts: Arc<StreamParts>) -> Self {
        let matcher = &tokenizer.policy.matcher;
        Self {
            spanner: StreamSpanner::of(Arc::clone(&parts.analysis), matcher),
            state: Readings {
                readings: vec![Reading::new(&tokenizer, &parts)],
                tokenizer: tokenizer.clone(),
                parts: Arc::clone(&parts),
                position: 0,
                limit: LIMIT,
                met_special: false,
                common: Vec::new(),
            },
            context: Vec::new(),
            parts,
            tokenizer,
        }
    }

    /// Sets how many tokens and bytes may be held back, by default 262,144.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.state.limit = limit;
        self
    }

    /// Takes the next bytes of the text, and appends the tokens that have become certain to
    /// `tokens`. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode_bytes`], with offsets into the whole text; or more is held back than the
    /// limit allows ([`StreamError::limit`]). The stream is of no use afterwards.
    pub fn push(
        &mut self,
        text: impl AsRef<[u8]>,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), StreamError> {
        let text = text.as_ref();
        self.state.met_special = false;
        let mut rest = text;
        let end = self.plain(text);
        if let Some(first) = self.first_cut(text.get(..end).unwrap_or_default()) {
            // Up to the cut the text is lexed as if it ended there.
            self.feed(rest.get(..first).unwrap_or_default())?;
            let state = &mut self.state;
            self.spanner.cut(&mut |event| state.take(event))?;
            self.state.hand_out(tokens)?;
            let middle = rest.get(first..end).unwrap_or_default();
            let last = self
                .cuts()
                .and_then(|cuts| cuts.last_cut(middle, middle.len()));
            let (now, later) = middle.split_at(last.unwrap_or(0));
            self.at_once(now, tokens)?;
            rest = rest.get(end - later.len()..).unwrap_or_default();
        }
        let fed = self.feed(rest);
        match self.state.met_special {
            true => self.context.clear(),
            false => {
                let kept = text
                    .get(text.len().saturating_sub(CONTEXT)..)
                    .unwrap_or(text);
                self.context.extend_from_slice(kept);
                let excess = self.context.len().saturating_sub(CONTEXT);
                self.context.drain(..excess);
            }
        }
        // What was certain before an error is right.
        let handed_out = self.state.hand_out(tokens);
        fed.and(handed_out)
    }

    /// Ends the text, and appends the tokens that were held back. The stream is then as new.
    ///
    /// # Errors
    ///
    /// As [`TokenStream::push`].
    pub fn finish(&mut self, tokens: &mut Vec<TokenId>) -> Result<(), StreamError> {
        let state = &mut self.state;
        let finished = self.spanner.finish(&mut |event| state.take(event));
        let handed_out = self.state.hand_out(tokens);
        finished.and(handed_out)?;
        self.state.position = 0;
        self.context.clear();
        Ok(())
    }

    /// The number of ways in which the text so far may still be cut; more than one where a boundary is
    /// undecided for long.
    pub fn readings(&self) -> usize {
        self.state.readings.len()
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    fn cuts(&self) -> Option<&Cuts> {
        self.parts.cuts.as_ref()
    }

    fn feed(&mut self, text: &[u8]) -> Result<(), StreamError> {
        let state = &mut self.state;
        self.spanner.push(text, &mut |event| state.take(event))
    }

    /// Up to where `text` has no part of a special token; 0 where one may have begun before it.
    pub(crate) fn plain(&self, text: &[u8]) -> usize {
        let matcher = &self.tokenizer.policy.matcher;
        match matcher.is_empty() {
            true => text.len(),
            false if self.spanner.holds_special() || matcher.find(text, 0).is_some() => 0,
            false => matcher.open_from(text, 0),
        }
    }

    /// The first cut in `text`, which may stand before its first byte.
    pub(crate) fn first_cut(&self, text: &[u8]) -> Option<usize> {
        let cuts = self.cuts()?;
        if !self.context.is_empty() {
            let mut joined = [0; 2 * CONTEXT];
            let beginning = text.get(..CONTEXT).unwrap_or(text);
            let length = self.context.len() + beginning.len();
            let (before, after) = joined.split_at_mut(self.context.len());
            before.copy_from_slice(&self.context);
            after.get_mut(..beginning.len())?.copy_from_slice(beginning);
            let found = cuts.next_cut(joined.get(..length)?, self.context.len());
            if let Some(place) = found {
                return Some(place - self.context.len());
            }
        }
        cuts.next_cut(text, 1)
    }

    /// The last cut in `text`.
    #[cfg(feature = "dfa")]
    pub(crate) fn last_cut(&self, text: &[u8]) -> Option<usize> {
        self.cuts()?.last_cut(text, text.len())
    }

    /// Encodes text between two cuts.
    fn at_once(&mut self, text: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), StreamError> {
        if text.is_empty() {
            return Ok(());
        }
        let tokenizer = &self.tokenizer;
        let pool = &tokenizer.inner.pool;
        let encoded = pool.with(|engines| tokenizer.encode_with(engines, text, tokens));
        encoded.map_err(|error| error.moved_by(self.state.position))?;
        self.state.position += text.len();
        Ok(())
    }
}

impl fmt::Debug for TokenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenStream")
            .field("tokenizer", &self.tokenizer)
            .field("readings", &self.state.readings.len())
            .finish_non_exhaustive()
    }
}

/// The readings of the text, each encoded.
struct Readings {
    tokenizer: Tokenizer,
    parts: Arc<StreamParts>,
    readings: Vec<Reading>,
    /// Bytes so far.
    position: usize,
    limit: usize,
    /// Whether a special token was found in the last piece.
    met_special: bool,
    /// Tokens of all readings, not yet handed out.
    common: Vec<TokenId>,
}

impl Readings {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<(), StreamError> {
        match event {
            StreamEvent::Readings(from) => {
                let before = std::mem::take(&mut self.readings);
                self.readings = from
                    .iter()
                    .filter_map(|&number| before.get(number).cloned())
                    .collect();
            }
            StreamEvent::Start { reading, label } => {
                if let Label::Special(number) = label {
                    self.met_special = true;
                    return self.special(number);
                }
                if let Some(reading) = self.readings.get_mut(reading) {
                    reading.start(self.position);
                }
            }
            StreamEvent::Text(bytes) => {
                for reading in &mut self.readings {
                    reading.text(&self.parts, bytes)?;
                }
                self.position += bytes.len();
                return self.settle();
            }
            StreamEvent::End { reading } => {
                if let Some(reading) = self.readings.get_mut(reading) {
                    reading.end(&self.parts)?;
                }
            }
        }
        Ok(())
    }

    fn special(&mut self, number: usize) -> Result<(), StreamError> {
        let Some(special) = self.tokenizer.policy.matched.get(number) else {
            return Ok(());
        };
        if special.forbidden {
            let tokens = self.tokenizer.inner.specials.tokens();
            let text = tokens.get(special.token).map_or("", |token| &token.text);
            return Err(EncodeError::forbidden(text, special.id, self.position).into());
        }
        for reading in &mut self.readings {
            reading.tokens.push(special.id);
        }
        Ok(())
    }

    /// Takes the tokens that all readings have in common out of them.
    ///
    /// # Errors
    ///
    /// More is left than the limit allows.
    fn settle(&mut self) -> Result<(), StreamError> {
        let Some((first, others)) = self.readings.split_first_mut() else {
            return Ok(());
        };
        let mut common = first.tokens.len();
        for other in others.iter() {
            let both = first.tokens.iter().zip(&other.tokens);
            common = common.min(both.take_while(|(a, b)| a == b).count());
        }
        self.common.extend(first.tokens.drain(..common));
        for other in others {
            other.tokens.drain(..common);
        }
        let held: usize = self.readings.iter().map(Reading::held).sum();
        match held > self.limit {
            true => Err(StreamErrorKind::Limit(self.limit).into()),
            false => Ok(()),
        }
    }

    fn hand_out(&mut self, tokens: &mut Vec<TokenId>) -> Result<(), StreamError> {
        let settled = self.settle();
        tokens.append(&mut self.common);
        settled
    }
}

/// One reading of the text.
struct Reading {
    /// The open span, where the dictionary allows it.
    eager: Option<EagerEncoder>,
    /// Encodes spans that are kept.
    encoder: Box<dyn SpanEncoder>,
    /// Bytes of the open span that no engine has taken yet.
    kept: Vec<u8>,
    /// Whether the span so far, which is then in `kept` whole, may be a token that merging does not give.
    may_be_unreachable: bool,
    /// Where the open span starts.
    start: usize,
    /// Tokens that are certain in this reading.
    tokens: Vec<TokenId>,
    /// Whether a span is open that is no special token.
    is_open: bool,
}

impl Clone for Reading {
    fn clone(&self) -> Self {
        Self {
            eager: self.eager.clone(),
            encoder: self.encoder.clone_box(),
            kept: self.kept.clone(),
            tokens: self.tokens.clone(),
            ..*self
        }
    }
}

impl Reading {
    fn new(tokenizer: &Tokenizer, parts: &StreamParts) -> Self {
        Self {
            eager: parts.engine.as_ref().map(EagerEncoder::new),
            encoder: tokenizer.inner.pool.prototype().pieces.span_encoder(),
            kept: Vec::new(),
            may_be_unreachable: false,
            start: 0,
            tokens: Vec::new(),
            is_open: false,
        }
    }

    fn held(&self) -> usize {
        self.tokens.len() + self.kept.len()
    }

    fn start(&mut self, position: usize) {
        self.start = position;
        self.may_be_unreachable = true;
        self.is_open = true;
    }

    fn text(&mut self, parts: &StreamParts, bytes: &[u8]) -> Result<(), StreamError> {
        if !self.is_open {
            return Ok(());
        }
        let start = self.start;
        let Some(eager) = &mut self.eager else {
            let from = self.kept.len().saturating_sub(1);
            self.kept.extend_from_slice(bytes);
            return self.hand_on(parts, from);
        };
        let located = |error: bpe_core::EncodeError| EncodeError::from(error.shifted(start));
        if !self.may_be_unreachable {
            return Ok(eager.feed(bytes, &mut self.tokens).map_err(located)?);
        }
        self.kept.extend_from_slice(bytes);
        if !parts.may_be_unreachable(&self.kept) {
            self.may_be_unreachable = false;
            eager.feed(&self.kept, &mut self.tokens).map_err(located)?;
            self.kept.clear();
        }
        Ok(())
    }

    /// Encodes the open span up to the last boundary after byte `from` of what is kept.
    fn hand_on(&mut self, parts: &StreamParts, from: usize) -> Result<(), StreamError> {
        let Some(end) = parts.last_boundary(&self.kept, from) else {
            return Ok(());
        };
        let certain = self.kept.get(..end).unwrap_or_default();
        let encoded = self.encoder.encode_span(certain, &mut self.tokens);
        let start = self.start;
        encoded.map_err(|error| EncodeError::from(error.shifted(start)))?;
        self.kept.drain(..end);
        self.start += end;
        self.may_be_unreachable = false;
        Ok(())
    }

    fn end(&mut self, parts: &StreamParts) -> Result<(), StreamError> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let start = self.start;
        let located = |error: bpe_core::EncodeError| EncodeError::from(error.shifted(start));
        let whole = match self.may_be_unreachable {
            true => parts.unreachable(&self.kept),
            false => None,
        };
        match (&mut self.eager, whole) {
            (_, Some(id)) => self.tokens.push(id),
            (Some(eager), None) => {
                eager.feed(&self.kept, &mut self.tokens).map_err(located)?;
                eager.finish(&mut self.tokens);
            }
            (None, None) => {
                let encoded = self.encoder.encode_span(&self.kept, &mut self.tokens);
                encoded.map_err(located)?;
            }
        }
        self.kept.clear();
        Ok(())
    }
}
