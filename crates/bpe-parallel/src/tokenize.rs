//! The seam to the caller: what this crate asks of a tokenizer, and what it knows of it.

use bpe_core::{BytePairs, TokenId};
use bpe_lexers::{Analysis, Cuts, Lexer, Pattern, SpecialMatcher};

/// What is wanted of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The number of tokens alone.
    Count,
    /// The tokens.
    Ids,
    /// The tokens, and of each where it ends.
    Ends,
}

/// The tokens of a text, as far as they are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Their number.
    pub count: usize,
    /// The tokens; empty where only the number is wanted.
    pub ids: Vec<TokenId>,
    /// Of each token its first byte; empty where tokens stand side by side, as those of a [`Tokenize`] do.
    pub starts: Vec<usize>,
    /// Of each token the byte behind it, counted from the start of the text; empty unless wanted.
    pub ends: Vec<usize>,
}

impl Tokens {
    /// How many there are of each, to go back to.
    pub(crate) fn lengths(&self) -> [usize; 4] {
        [
            self.count,
            self.ids.len(),
            self.starts.len(),
            self.ends.len(),
        ]
    }

    /// Drops what came after `lengths` were taken.
    pub(crate) fn truncate(&mut self, [count, ids, starts, ends]: [usize; 4]) {
        self.count = count;
        self.ids.truncate(ids);
        self.starts.truncate(starts);
        self.ends.truncate(ends);
    }
}

/// A tokenizer, as this crate sees it. The caller's engines do all the work; they are fetched for a
/// call, on whichever thread it is made.
pub trait Tokenize: Sync {
    /// Why a text has no tokens, and where.
    type Error: Send;

    /// Appends the tokens of `text`, which stands alone: special tokens, patterns, look-up, merges.
    /// Ends are counted from the start of `text`.
    ///
    /// # Errors
    ///
    /// The first thing of the text that has no token, at its place in `text`.
    fn encode(&self, text: &[u8], wanted: Wanted, tokens: &mut Tokens) -> Result<(), Self::Error>;

    /// Appends the tokens of pre-tokens that stand side by side: the first begins at byte `start` of
    /// `text`, each ends at one of `ends`, where the next one begins. Ends of tokens, and places of
    /// errors, are counted from the start of `text`.
    ///
    /// # Errors
    ///
    /// As [`Tokenize::encode`].
    fn encode_pieces(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        wanted: Wanted,
        tokens: &mut Tokens,
    ) -> Result<(), Self::Error>;

    /// Appends the tokens that merging alone gives for `part` of a pre-token.
    ///
    /// # Errors
    ///
    /// As [`Tokenize::encode`].
    fn merge(&self, part: &[u8], ids: &mut Vec<TokenId>) -> Result<(), Self::Error>;

    /// How many bytes before the end of a part of a pre-token its tokens may change when more of it is merged, at most
    /// (docs/theory.md, theorem 14). `None` where no bound is known: then a pre-token whose parts do not join at a cut is merged as a
    /// whole.
    fn influence(&self) -> Option<usize>;

    /// The number of bytes that a token stands for, if that is the same everywhere.
    fn token_len(&self, id: TokenId) -> Option<usize>;

    /// Of the tokens of one pre-token, where each ends, counted from its start.
    fn ends_of(&self, piece: &[u8], ids: &[TokenId], ends: &mut Vec<usize>);

    /// The same error in a text that begins `bytes` further left.
    fn moved(error: Self::Error, bytes: usize) -> Self::Error;
}

/// What is known of where texts of a tokenizer can be cut and joined. Made once, shared by all calls.
///
/// Whatever is not known is not used: without anything, texts are tokenized one after the other.
#[derive(Debug, Clone)]
pub struct Seams {
    pub(crate) cuts: Option<Cuts>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) spans: SpanSeams,
}

/// One stage of the pre-tokenizer.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) lexer: Box<dyn Lexer>,
    /// Whether matching from a boundary depends on nothing that stands before it (fact 6).
    pub(crate) forgets: bool,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("forgets", &self.forgets)
            .finish_non_exhaustive()
    }
}

/// What is known of the inside of a span.
#[derive(Debug, Clone)]
pub struct SpanSeams {
    /// Pairs of bytes that some token contains (fact 7); none where that is no boundary, because
    /// unknown characters fuse.
    pub pairs: Option<BytePairs>,
    /// Whether tokenizations of two overlapping parts may be joined at a token that both have (fact
    /// 5): the span encoder merges and does nothing else, and each token knows its length.
    pub joins: bool,
    /// Pieces of up to this many bytes are never cut: whole-piece look-up may find them.
    pub longest_token: usize,
}

impl Seams {
    /// What is known of a tokenizer with these patterns, which run on these lexers, one for each.
    /// Where there are lexers and no patterns (those of a caller) nothing is known of the lexers, and
    /// they run over the whole text. Costs some milliseconds.
    pub fn new(patterns: &[Pattern], lexers: &[Box<dyn Lexer>], spans: SpanSeams) -> Self {
        let are_known = patterns.len() == lexers.len();
        let cuts = match patterns {
            [] => None,
            _ if !are_known => None,
            _ => Cuts::new(patterns).ok(),
        };
        let stages = lexers.iter().enumerate().map(|(index, lexer)| Stage {
            lexer: lexer.clone(),
            // The analysis refuses patterns with look-behind and with anchors.
            forgets: are_known
                && patterns.get(index).is_some_and(|pattern| {
                    pattern.family().is_some()
                        || Analysis::new(std::slice::from_ref(pattern)).is_ok()
                }),
        });
        Self {
            cuts,
            stages: stages.collect(),
            spans,
        }
    }
}

/// Where special tokens stand in a text: found over the whole of it, before anything else.
pub(crate) fn find_specials(text: &[u8], matcher: &SpecialMatcher) -> Vec<core::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((_, range)) = matcher.find(text, from) {
        from = range.end;
        found.push(range);
    }
    found
}
