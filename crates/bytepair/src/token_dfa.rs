//! Token automata of a tokenizer: those of its dictionary, and where its patterns cut.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};
use bpe_dfa::explicit::StringDfa;
use bpe_dfa::{
    Boundaries, Equivalence, OnePiece, RelationError, TokenClasses, TokenDfa, Witness,
    equivalent_in_pieces,
};
use bpe_lexers::{Analysis, AnalysisError, ByteMachine, difference};

use crate::specials::Specials;
use crate::tokenizer::Tokenizer;

/// Tokens that are tried around a differing pair before it is given up.
const MOST_TRIED: usize = 20_000_000;

impl Tokenizer {
    /// The automaton that accepts the tokens of the texts of `language`, and no other sequence: masks for
    /// guided decoding, counts, samples. The patterns cut the texts; special tokens are text, and no
    /// sequence has their ids.
    ///
    /// The first call builds the relation of valid pairs, up to half a second and 20 MB for 200,000
    /// tokens. Masks are made on demand: see [`TokenDfa`].
    ///
    /// # Errors
    ///
    /// The dictionary is improper or over characters; the tokenizer has lexers of the caller's own, or a
    /// pattern that cannot be analysed.
    ///
    /// ```
    /// use bytepair::{StringDfa, StringDfaLimits, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::o200k_base();
    /// let dates = StringDfa::from_regex("[0-9]{4}-[0-9]{2}", &StringDfaLimits::default())?;
    /// let mut dfa = tokenizer.token_dfa(dates)?;
    /// assert!(dfa.accepts(&tokenizer.encode("2026-11")?));
    /// // The pattern cuts after three digits, so no date is written "20", "26", "-", "11".
    /// let parts = ["20", "26", "-", "11"].map(|part| tokenizer.encode(part));
    /// let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    /// assert!(!dfa.accepts(&parts));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn token_dfa(&self, language: StringDfa) -> Result<TokenDfa, TokenDfaError> {
        let inner = &self.inner;
        let canonical = &inner.canonical;
        let boundaries = self.boundaries()?;
        let pairs = match self.pair_relation() {
            Some(pairs) => Arc::clone(pairs),
            // The same again, for its error.
            None => Arc::new(bpe_dfa::PairRelation::new(canonical)?),
        };
        let dfa = TokenDfa::with_relation(canonical, pairs, language)?;
        Ok(match boundaries {
            Some(boundaries) => dfa.in_pieces(canonical, boundaries),
            None => dfa,
        })
    }

    /// Whether another tokenizer cuts every text in the same places, ids aside, or a text that it does
    /// not. The patterns of both cut first: tokens that no piece contains do not count. Special tokens are
    /// not looked at.
    ///
    /// Cost: two relations of valid pairs, up to a second for 200,000 tokens, and a search in the
    /// differing pairs; [`Equivalence::Unknown`] where its limit is reached, or where the patterns differ
    /// and the text that shows it is cut alike.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::token_dfa`].
    ///
    /// ```
    /// use bytepair::{Equivalence, Tokenizer};
    ///
    /// let (r50k, p50k) = (Tokenizer::r50k_base(), Tokenizer::p50k_base());
    /// assert_eq!(r50k.equivalent(&r50k)?, Equivalence::Same { same_ids: true });
    /// // p50k has tokens of several blanks.
    /// let Equivalence::Different(witness) = r50k.equivalent(&p50k)? else {
    ///     panic!("the same");
    /// };
    /// assert!(witness.text.starts_with(b"  "));
    /// assert_ne!(witness.first, witness.second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn equivalent(&self, other: &Self) -> Result<Equivalence, TokenDfaError> {
        let tokenizers = [self, other];
        let boundaries = [self.boundaries()?, other.boundaries()?];
        let forms = tokenizers.map(|tokenizer| &tokenizer.inner.canonical);
        let has_whole_pieces = forms.iter().any(|form| makes_of_whole_pieces(form));
        let patterns = tokenizers.map(|tokenizer| &tokenizer.inner.patterns[..]);
        let shown = match patterns[0] == patterns[1] {
            true => None,
            false => difference(patterns[0], patterns[1]).map_err(TokenDfaErrorKind::Pattern)?,
        };
        if let Some(text) = shown {
            let text = text.into_bytes();
            if let Some(witness) = self.witness(other, &text) {
                return Ok(Equivalence::Different(witness));
            }
            // The tokens of both may end where either cuts; other texts may still show a difference.
            if let Equivalence::Different(in_a_span) = bpe_dfa::equivalent(forms[0], forms[1])?
                && let Some(witness) = self.witness(other, &in_a_span.text)
            {
                return Ok(Equivalence::Different(witness));
            }
            return Ok(Equivalence::Unknown { text });
        }
        // Mostly what differs in one span differs as a text too.
        let answer = bpe_dfa::equivalent(forms[0], forms[1])?;
        let [boundaries, _] = boundaries;
        match (answer, &boundaries) {
            (Equivalence::Different(in_a_span), Some(_)) => {
                if let Some(witness) = self.witness(other, &in_a_span.text) {
                    return Ok(Equivalence::Different(witness));
                }
            }
            // The whole text is a piece.
            (_, _) if has_whole_pieces => {}
            (answer, _) => return Ok(answer),
        }
        let boundaries = boundaries.unwrap_or_else(|| Arc::new(OnePiece));
        let starts = match patterns[0] {
            [_] => vec![boundaries.start()],
            _ => boundaries.between_characters(),
        };
        let answer = equivalent_in_pieces(forms[0], forms[1], boundaries, &starts, MOST_TRIED)?;
        Ok(match answer {
            Equivalence::Different(Witness { text, .. }) => match self.witness(other, &text) {
                Some(witness) => Equivalence::Different(witness),
                None => Equivalence::Unknown { text },
            },
            answer => answer,
        })
    }

    /// The tokens of a text on both sides, where they are cut in different places.
    fn witness(&self, other: &Self, text: &[u8]) -> Option<Witness> {
        let [first, second] = [self, other].map(|tokenizer| {
            let tokenizer = tokenizer.with_specials(Specials::AsText).ok()?;
            let encoding = tokenizer.encode_with_offsets(text).ok()?;
            Some((encoding.ids, encoding.byte_ranges))
        });
        let ranges = |side: &Option<(Vec<TokenId>, Vec<Range<usize>>)>| {
            side.as_ref().map(|side| side.1.clone())
        };
        (ranges(&first) != ranges(&second)).then(|| Witness {
            text: text.to_vec(),
            first: first.map(|side| side.0),
            second: second.map(|side| side.0),
        })
    }

    /// Tokens as the patterns see them. `None` where that does not say what is a tokenization: there are no
    /// patterns or they cannot be analysed, some tokens are made of whole pieces alone, the dictionary is
    /// improper or over characters.
    pub(crate) fn token_classes(&self) -> Option<&Arc<TokenClasses>> {
        let build = || {
            let canonical = &self.inner.canonical;
            let boundaries = self.boundaries().ok()??;
            let pairs = self
                .pair_relation()
                .filter(|_| !makes_of_whole_pieces(canonical))?;
            let classes = TokenClasses::new(canonical, Arc::clone(pairs), boundaries);
            classes.ok().map(Arc::new)
        };
        self.inner.classes.get_or_init(build).as_ref()
    }

    /// Where the patterns cut; `None` where there are none.
    pub(crate) fn boundaries(&self) -> Result<Option<Arc<dyn Boundaries>>, TokenDfaError> {
        let inner = &self.inner;
        if inner.patterns.len() != inner.lexers.len() {
            return Err(TokenDfaErrorKind::OwnLexers.into());
        }
        if inner.patterns.is_empty() {
            return Ok(None);
        }
        let analysis = Analysis::new(&inner.patterns).map_err(TokenDfaErrorKind::Pattern)?;
        Ok(Some(Arc::new(Patterns(ByteMachine::new(Arc::new(
            analysis,
        ))))))
    }
}

/// Whether some tokens are made by whole-piece look-up alone.
fn makes_of_whole_pieces(canonical: &CanonicalForm) -> bool {
    canonical.whole_piece_lookup() && canonical.unreachable_tokens().next().is_some()
}

/// The automaton of the patterns, as one that others are multiplied with.
struct Patterns(ByteMachine);

impl Boundaries for Patterns {
    fn start(&self) -> u64 {
        self.0.start()
    }

    fn between_characters(&self) -> Vec<u64> {
        self.0.between_characters().collect()
    }

    fn for_each_step(&self, state: u64, byte: u8, visit: &mut dyn FnMut(bool, u64)) {
        self.0.for_each_step(state, byte, visit);
    }

    fn accepts(&self, state: u64) -> bool {
        self.0.accepts(state)
    }
}

/// A tokenizer has no token automaton.
#[derive(Debug, Clone)]
pub struct TokenDfaError {
    kind: TokenDfaErrorKind,
}

#[derive(Debug, Clone)]
enum TokenDfaErrorKind {
    Relation(RelationError),
    Pattern(AnalysisError),
    OwnLexers,
}

impl TokenDfaError {
    /// True where the dictionary is improper.
    pub fn is_improper(&self) -> bool {
        matches!(&self.kind, TokenDfaErrorKind::Relation(error) if error.is_improper())
    }

    /// True where the dictionary is over characters.
    pub fn is_over_characters(&self) -> bool {
        matches!(&self.kind, TokenDfaErrorKind::Relation(error) if error.is_over_characters())
    }
}

impl From<TokenDfaErrorKind> for TokenDfaError {
    fn from(kind: TokenDfaErrorKind) -> Self {
        Self { kind }
    }
}

impl From<RelationError> for TokenDfaError {
    fn from(error: RelationError) -> Self {
        TokenDfaErrorKind::Relation(error).into()
    }
}

impl fmt::Display for TokenDfaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TokenDfaErrorKind::Relation(error) => error.fmt(f),
            TokenDfaErrorKind::Pattern(error) => error.fmt(f),
            TokenDfaErrorKind::OwnLexers => f.write_str("the lexers are not made from patterns"),
        }
    }
}

impl std::error::Error for TokenDfaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            TokenDfaErrorKind::Relation(error) => Some(error),
            TokenDfaErrorKind::Pattern(error) => Some(error),
            TokenDfaErrorKind::OwnLexers => None,
        }
    }
}
