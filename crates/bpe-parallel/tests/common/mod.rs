//! A tokenizer that is obviously right: literal semantics, one span after the other.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use bpe_core::reference::Reference;
use bpe_core::{BytePairs, CanonicalForm, Dictionary, TokenId, Vocabulary};
use bpe_lexers::{Engine, Label, Lexer, Pattern, Spanner, SpecialMatcher};
use bpe_parallel::{Seams, SpanSeams, Tokenize, Tokens, Wanted};

/// A dictionary, patterns and special tokens. Ids of special tokens follow those of the vocabulary.
pub(crate) struct Plain {
    pub(crate) dictionary: Dictionary,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) specials: SpecialMatcher,
    pub(crate) standard: bool,
    /// As [`Tokenize::influence`].
    pub(crate) influence: Option<usize>,
    /// Addresses of what was merged, where that is wanted.
    pub(crate) merged: Option<Mutex<Vec<Range<usize>>>>,
    /// Bytes that were given to the calls so far, parts of pieces included.
    pub(crate) bytes: AtomicUsize,
    /// Made of the patterns for the first call.
    made: OnceLock<(Vec<Box<dyn Lexer>>, Seams)>,
}

/// A byte that no token stands for, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) usize);

impl Plain {
    pub(crate) fn new(dictionary: Dictionary) -> Self {
        let canonical = CanonicalForm::new(&dictionary);
        Self {
            dictionary,
            patterns: Vec::new(),
            specials: SpecialMatcher::none(),
            standard: false,
            influence: bpe_incremental::held_bytes_bound(&canonical),
            merged: None,
            bytes: AtomicUsize::new(0),
            made: OnceLock::new(),
        }
    }

    fn made(&self) -> &(Vec<Box<dyn Lexer>>, Seams) {
        self.made.get_or_init(|| {
            let lexer = |pattern: &Pattern| pattern.lexer(Engine::Auto).expect("an engine");
            let lexers: Vec<_> = self.patterns.iter().map(lexer).collect();
            let seams = Seams::new(&self.patterns, &lexers, self.spans());
            (lexers, seams)
        })
    }

    pub(crate) fn seams(&self) -> &Seams {
        &self.made().1
    }

    pub(crate) fn spans(&self) -> SpanSeams {
        let vocabulary = self.dictionary.vocabulary();
        SpanSeams {
            pairs: Some(BytePairs::new(vocabulary)),
            joins: true,
            longest_token: vocabulary.longest_token(),
        }
    }

    pub(crate) fn merged(&self, span: &[u8]) -> Result<Vec<TokenId>, Missing> {
        let reference = Reference::new(&self.dictionary);
        let tokens = match self.standard {
            true => reference.standard(span),
            false => reference.sentencepiece(span),
        };
        let is_missing = |byte: &u8| self.dictionary.vocabulary().id_of(&[*byte]).is_none();
        tokens.ok_or_else(|| Missing(span.iter().position(is_missing).unwrap_or(0)))
    }

    fn piece(&self, piece: &[u8]) -> Result<Vec<TokenId>, Missing> {
        match self.dictionary.vocabulary().id_of(piece) {
            Some(id) if self.dictionary.whole_piece_lookup() => Ok(vec![id]),
            _ => self.merged(piece),
        }
    }

    fn push(&self, ids: Vec<TokenId>, start: usize, wanted: Wanted, tokens: &mut Tokens) {
        tokens.count += ids.len();
        if wanted == Wanted::Count {
            return;
        }
        if wanted == Wanted::Ends {
            let mut end = start;
            for &id in &ids {
                end += self.token_len(id).unwrap_or(0);
                tokens.ends.push(end);
            }
        }
        tokens.ids.extend(ids);
    }
}

impl Tokenize for Plain {
    type Error = Missing;

    fn encode(&self, text: &[u8], wanted: Wanted, tokens: &mut Tokens) -> Result<(), Missing> {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        let mut spanner = Spanner::new(self.made().0.clone());
        let flow = spanner.for_each_span(text, &self.specials, |span| {
            let piece = &text[span.range()];
            if let Label::Special(number) = span.label {
                let id = self.dictionary.vocabulary().max_id().unwrap_or(0) + 1 + number as u32;
                tokens.count += 1;
                if wanted != Wanted::Count {
                    tokens.ids.push(id);
                }
                if wanted == Wanted::Ends {
                    tokens.ends.push(span.end);
                }
                return ControlFlow::Continue(());
            }
            match self.piece(piece) {
                Ok(ids) => {
                    self.push(ids, span.start, wanted, tokens);
                    ControlFlow::Continue(())
                }
                Err(Missing(at)) => ControlFlow::Break(Missing(at + span.start)),
            }
        });
        match flow.expect("lexes") {
            ControlFlow::Break(missing) => Err(missing),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn encode_pieces(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        wanted: Wanted,
        tokens: &mut Tokens,
    ) -> Result<(), Missing> {
        let mut start = start;
        for &end in ends {
            self.bytes.fetch_add(end - start, Ordering::Relaxed);
            let ids = self.piece(&text[start..end]);
            let ids = ids.map_err(|Missing(at)| Missing(at + start))?;
            self.push(ids, start, wanted, tokens);
            start = end;
        }
        Ok(())
    }

    fn merge(&self, part: &[u8], ids: &mut Vec<TokenId>) -> Result<(), Missing> {
        if let Some(merged) = &self.merged {
            let start = part.as_ptr().addr();
            merged
                .lock()
                .expect("no panic")
                .push(start..start + part.len());
        }
        self.bytes.fetch_add(part.len(), Ordering::Relaxed);
        ids.extend(self.merged(part)?);
        Ok(())
    }

    fn influence(&self) -> Option<usize> {
        self.influence
    }

    fn token_len(&self, id: TokenId) -> Option<usize> {
        self.dictionary
            .vocabulary()
            .token_bytes(id)
            .map(<[u8]>::len)
    }

    fn ends_of(&self, _: &[u8], ids: &[TokenId], ends: &mut Vec<usize>) {
        let mut end = 0;
        for &id in ids {
            end += self.token_len(id).unwrap_or(0);
            ends.push(end);
        }
    }

    fn moved(Missing(at): Missing, bytes: usize) -> Missing {
        Missing(at + bytes)
    }
}

/// Numbers below a limit, the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// A dictionary over the first letters, some of whose rules use what later rules make.
    pub(crate) fn dictionary(&mut self, letters: usize, rules: usize) -> Dictionary {
        self.any_dictionary(letters, rules, false)
    }

    /// A dictionary over the first letters. In a proper one each rule uses what earlier rules make.
    pub(crate) fn any_dictionary(
        &mut self,
        letters: usize,
        rules: usize,
        is_proper: bool,
    ) -> Dictionary {
        let (tokens, mut merges) = self.rules(letters, rules);
        if !is_proper {
            for index in (1..merges.len()).rev() {
                merges.swap(index, self.below(index + 1));
            }
        }
        let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
        Dictionary::from_merges(vocabulary, merges).expect("valid")
    }

    fn rules(&mut self, letters: usize, rules: usize) -> (Vec<Vec<u8>>, Vec<(TokenId, TokenId)>) {
        let mut tokens: Vec<Vec<u8>> = (0..letters)
            .map(|letter| vec![b'a' + letter as u8])
            .collect();
        let mut merges = Vec::new();
        for _ in 0..rules {
            let (left, right) = (self.below(tokens.len()), self.below(tokens.len()));
            let product = [&tokens[left][..], &tokens[right]].concat();
            if product.len() <= 9 && !tokens.contains(&product) {
                tokens.push(product);
                merges.push((left as TokenId, right as TokenId));
            }
        }
        (tokens, merges)
    }
}
