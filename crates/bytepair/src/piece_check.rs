//! Checks tokens piece by piece, without merging: the fast part of a validator.
//!
//! Mostly tokens alone say where pieces start ([`PieceWalk`]): then nothing is decoded and nothing lexed, and
//! the pairs inside of pieces are all that is left to check. Where that finds a fault, a block of
//! ids is looked at in three passes, each of which knows where it will read before it does, so
//! that what they wait for comes together:
//!
//! 1. *Decode*: a token of up to 15 bytes, its length and what it may be are one line of a table, which is
//!    copied whole.
//! 2. *Lex*: where a piece ends a token must; the tokens that end inside one are listed.
//! 3. *Pairs*: each token in the list must be a valid neighbour of the next.

use std::ops::ControlFlow;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};
use bpe_dfa::{PairRelation, PieceWalk};
use bpe_lexers::{Run, Spanner, SpecialMatcher};

use crate::fast::prefetch;
use crate::pieces::WholePieces;
use crate::tokenizer::Tokenizer;

/// Ids that are decoded and looked at together.
const BLOCK: usize = 4096;

/// Bytes of a token in its line of the table; the last byte of the line says what the token is.
const INLINE: usize = 15;

/// The token's bytes are in the line, and its length is in the lowest bits.
const IS_INLINE: u8 = 1 << 7;

/// The token is what its bytes are tokenized to, so it may stand beside others.
const MERGED: u8 = 1 << 6;

/// The token may be a whole piece.
const WHOLE: u8 = 1 << 5;

/// Tokens from a line that is asked for to the one that is read.
const AHEAD: usize = 24;

type Line = [u8; INLINE + 1];

pub(crate) struct PieceCheck {
    canonical: Arc<CanonicalForm>,
    pairs: Arc<PairRelation>,
    spanner: Spanner,
    none: SpecialMatcher,
    walk: Option<PieceWalk>,
    specials: SpecialCheck,
    lines: Vec<Line>,
    /// Bytes of the longest token that only whole-piece look-up makes; 0 where there is none.
    longest_unreachable: usize,
    block: DecodedBlock,
    /// The tokens of a block that end inside a piece.
    inside: Vec<u32>,
    /// Those of them of whose pair nothing is known.
    unknown: Vec<u32>,
    /// Pairs that were found to be valid, each at its place by [`place_of`]: texts repeat themselves, and
    /// this is one load where the relation is some.
    known: Vec<u64>,
}

/// Pairs that are remembered.
const KNOWN: usize = 1 << 14;

/// The place of a pair among those that are remembered.
fn place_of(pair: u64) -> usize {
    // The fractional part of the golden ratio spreads what is near.
    (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % KNOWN
}

/// Ids, and their text.
#[derive(Default)]
struct DecodedBlock {
    /// Longer than the text, so that whole lines can be copied.
    bytes: Vec<u8>,
    /// Of each token the byte of the text behind its last.
    ends: Vec<u32>,
    /// What all tokens are.
    common: u8,
}

impl PieceCheck {
    /// None where ids are too far apart for a table, or atoms are characters.
    pub(crate) fn new(tokenizer: &Tokenizer, pairs: &Arc<PairRelation>) -> Option<Self> {
        let canonical = Arc::clone(&tokenizer.inner.canonical);
        if canonical.atoms() != bpe_core::Atoms::Bytes {
            return None;
        }
        let vocabulary = canonical.vocabulary();
        let largest = vocabulary.max_id()? as usize;
        if largest > 4 * vocabulary.len() + (1 << 16) {
            return None;
        }
        // Without patterns the piece is the whole text, of which a part is looked at here.
        let looks_up = WholePieces::are_all(&canonical) && !tokenizer.inner.patterns.is_empty();
        let mut lines = vec![[0; INLINE + 1]; largest + 1];
        let mut longest_unreachable = 0;
        for (id, bytes) in vocabulary.iter().filter(|token| !token.1.is_empty()) {
            let line = &mut lines[id as usize];
            if pairs.is_canonical(id) {
                line[INLINE] = MERGED | WHOLE;
            } else if looks_up {
                line[INLINE] = WHOLE;
                longest_unreachable = longest_unreachable.max(bytes.len());
            }
            if let Some(start) = line[..INLINE].get_mut(..bytes.len()) {
                start.copy_from_slice(bytes);
                line[INLINE] |= IS_INLINE | bytes.len() as u8;
            }
        }
        Some(Self {
            longest_unreachable,
            pairs: Arc::clone(pairs),
            spanner: tokenizer.inner.pool.prototype().spanner.clone(),
            none: SpecialMatcher::none(),
            walk: tokenizer
                .token_classes()
                .map(|classes| PieceWalk::new(Arc::clone(classes))),
            specials: SpecialCheck::new(tokenizer),
            lines,
            canonical,
            block: DecodedBlock::default(),
            inside: Vec::new(),
            unknown: Vec::new(),
            // Of ids that no table has.
            known: vec![u64::MAX; KNOWN],
        })
    }

    /// How many of the first ids are the tokens of their text, whatever follows, while the text behind them
    /// is tokenized as if it began there; found without their text. 0 where that does not tell.
    pub(crate) fn check_tokens(&mut self, ids: &[TokenId]) -> usize {
        let Some(walk) = &mut self.walk else {
            return 0;
        };
        let block = ids.get(..BLOCK).unwrap_or(ids);
        let count = walk.walk(block, &mut self.inside);
        if self.specials.may_be_in(ids, count, &self.canonical) {
            return 0;
        }
        match self.are_valid(block) {
            Some(true) => count,
            _ => 0,
        }
    }

    /// Decodes some of the first ids, up to the first that is no ordinary token; returns how many.
    pub(crate) fn decode(&mut self, ids: &[TokenId]) -> usize {
        let ids = ids.get(..BLOCK).unwrap_or(ids);
        let block = &mut self.block;
        block.ends.clear();
        block.ends.resize(ids.len(), 0);
        let room = (INLINE + 1) * (ids.len() + 1);
        if block.bytes.len() < room {
            block.bytes.resize(room, 0);
        }
        let lines = &self.lines[..];
        let mut bytes = &mut block.bytes[..];
        let mut common = u8::MAX;
        let mut at = 0;
        let mut count = ids.len();
        for (index, (&id, end)) in ids.iter().zip(&mut block.ends).enumerate() {
            if let Some(&later) = ids.get(index + AHEAD) {
                prefetch(lines, later as usize);
            }
            let Some(line) = lines.get(id as usize) else {
                count = index;
                break;
            };
            let kind = line[INLINE];
            common &= kind;
            if kind & IS_INLINE != 0 {
                if let Some(place) = bytes.get_mut(at..at + INLINE + 1) {
                    place.copy_from_slice(line);
                }
                at += usize::from(kind & INLINE as u8);
            } else {
                let Some(token) = self.canonical.vocabulary().token_bytes(id) else {
                    count = index;
                    break;
                };
                let room = at + token.len() + (INLINE + 1) * (ids.len() - index);
                if bytes.len() < room {
                    block.bytes.resize(2 * room, 0);
                    bytes = &mut block.bytes[..];
                }
                if let Some(place) = bytes.get_mut(at..at + token.len()) {
                    place.copy_from_slice(token);
                }
                at += token.len();
            }
            *end = at as u32;
        }
        block.ends.truncate(count);
        block.common = common;
        count
    }

    /// The text of what was decoded last.
    pub(crate) fn text(&self) -> &[u8] {
        let length = self.block.ends.last().map_or(0, |&end| end as usize);
        self.block.bytes.get(..length).unwrap_or_default()
    }

    /// How many of the decoded tokens make up the first `bytes` bytes of their text; `None` where a token
    /// stands across.
    pub(crate) fn tokens_to(&self, bytes: usize) -> Option<usize> {
        match bytes {
            0 => Some(0),
            _ => {
                let end = u32::try_from(bytes).ok()?;
                let place = self.block.ends.binary_search(&end).ok()?;
                // Tokens without bytes have the same end.
                let more = self.block.ends.get(place + 1..)?;
                Some(place + 1 + more.iter().take_while(|&&other| other == end).count())
            }
        }
    }

    /// How many of `ids`, the decoded ones, are exactly the tokens of the first `bytes` bytes of their
    /// text, which end at a cut; `None` where they are not. The text begins at a cut too.
    pub(crate) fn check(&mut self, ids: &[TokenId], bytes: usize) -> Option<usize> {
        let count = self.tokens_to(bytes)?;
        let ids = ids.get(..count)?;
        let text = self.block.bytes.get(..bytes)?;
        let mut walk = Walk {
            ids,
            ends: self.block.ends.get(..count)?,
            next: 0,
            inside: &mut self.inside,
        };
        walk.inside.clear();
        // Where all tokens are merged and all pieces are, only their ends count.
        let rules = (self.block.common & MERGED == 0 || self.longest_unreachable > 0).then_some(
            PieceRules {
                canonical: &self.canonical,
                lines: &self.lines,
                longest_unreachable: self.longest_unreachable,
            },
        );
        let flow = self.spanner.for_each_run(text, &self.none, |run| {
            let is_right = match (run, &rules) {
                (Run::Special { .. }, _) => false,
                (Run::Pieces { offset, ends, .. }, None) => walk.pieces(offset, ends),
                (Run::Pieces { offset, ends, .. }, Some(rules)) => ends
                    .iter()
                    .all(|&end| walk.piece_with_rules(text, offset + end, rules)),
            };
            match is_right {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        let is_right = matches!(flow, Ok(ControlFlow::Continue(()))) && walk.next == count;
        (is_right && self.are_valid(ids)?).then_some(count)
    }

    /// Whether the tokens that end inside a piece are valid neighbours of the next.
    fn are_valid(&mut self, ids: &[TokenId]) -> Option<bool> {
        let pair = |index: u32| {
            let index = index as usize;
            let (left, right) = (ids.get(index)?, ids.get(index + 1)?);
            Some(u64::from(*left) << 32 | u64::from(*right))
        };
        self.unknown.clear();
        for &index in &self.inside {
            let pair = pair(index)?;
            if self.known.get(place_of(pair)) != Some(&pair) {
                self.unknown.push(index);
            }
        }
        if !self.pairs.are_valid(ids, &self.unknown) {
            return Some(false);
        }
        for &index in &self.unknown {
            let pair = pair(index)?;
            if let Some(known) = self.known.get_mut(place_of(pair)) {
                *known = pair;
            }
        }
        Some(true)
    }
}

/// Whether the text of tokens has a special token, which cuts.
struct SpecialCheck {
    matcher: SpecialMatcher,
    /// Tokens in whose bytes one is or may begin, by their ids.
    begins: Vec<u64>,
}

/// Tokens whose text is looked at behind one in which a special token may begin.
const SPECIAL_TOKENS: usize = 64;

impl SpecialCheck {
    fn new(tokenizer: &Tokenizer) -> Self {
        let matcher = tokenizer.policy.matcher.clone();
        let vocabulary = tokenizer.inner.canonical.vocabulary();
        let mut begins = Vec::new();
        if !matcher.is_empty() {
            begins.resize(vocabulary.max_id().map_or(0, |id| id as usize / 64 + 1), 0);
            for (id, bytes) in vocabulary.iter() {
                if matcher.find(bytes, 0).is_some() || matcher.open_from(bytes, 0) < bytes.len() {
                    begins[id as usize / 64] |= 1 << (id % 64);
                }
            }
        }
        Self { matcher, begins }
    }

    /// Whether one may begin in the first `count` ids.
    fn may_be_in(&self, ids: &[TokenId], count: usize, canonical: &CanonicalForm) -> bool {
        if self.matcher.is_empty() {
            return false;
        }
        let mut text = Vec::new();
        let begins = |&id: &TokenId| {
            let word = self.begins.get(id as usize / 64).copied().unwrap_or(0);
            word >> (id % 64) & 1 != 0
        };
        let ids_before = ids.iter().take(count).enumerate();
        ids_before
            .filter(|(_, id)| begins(id))
            .any(|(index, &first)| {
                text.clear();
                for &id in ids.iter().skip(index).take(SPECIAL_TOKENS) {
                    text.extend_from_slice(
                        canonical.vocabulary().token_bytes(id).unwrap_or_default(),
                    );
                }
                let first = canonical
                    .vocabulary()
                    .token_bytes(first)
                    .map_or(0, <[u8]>::len);
                self.matcher.find(&text, 0).is_some() || self.matcher.open_from(&text, 0) < first
            })
    }
}

/// The way through the tokens of a block, piece by piece.
struct Walk<'w> {
    ids: &'w [TokenId],
    ends: &'w [u32],
    /// The first token of the next piece.
    next: usize,
    /// The tokens that end inside a piece.
    inside: &'w mut Vec<u32>,
}

impl Walk<'_> {
    /// Whether tokens end where these pieces do.
    fn pieces(&mut self, offset: usize, piece_ends: &[usize]) -> bool {
        let mut next = self.next;
        for &end in piece_ends {
            let end = (offset + end) as u32;
            loop {
                let Some(&token_end) = self.ends.get(next) else {
                    return false;
                };
                next += 1;
                if token_end == end {
                    break;
                }
                if token_end > end {
                    return false;
                }
                self.inside.push(next as u32 - 1);
            }
        }
        self.next = next;
        true
    }

    /// Whether a token ends where the next piece does, and its tokens may be what is in it: where some
    /// tokens are made by whole-piece look-up alone.
    fn piece_with_rules(&mut self, text: &[u8], end: usize, rules: &PieceRules<'_>) -> bool {
        let first = self.next;
        let start = match first {
            0 => 0,
            first => self.ends.get(first - 1).map_or(0, |&end| end as usize),
        };
        if !self.pieces(0, &[end]) {
            return false;
        }
        let tokens = self.ids.get(first..self.next).unwrap_or_default();
        if let &[token] = tokens {
            return rules.kind(token) & WHOLE != 0;
        }
        let piece = text.get(start..end).unwrap_or_default();
        tokens.iter().all(|&token| rules.kind(token) & MERGED != 0)
            && (piece.len() > rules.longest_unreachable
                || rules.canonical.vocabulary().id_of(piece).is_none())
    }
}

/// What whole-piece look-up says of the tokens of a piece.
struct PieceRules<'r> {
    canonical: &'r CanonicalForm,
    lines: &'r [Line],
    longest_unreachable: usize,
}

impl PieceRules<'_> {
    fn kind(&self, id: TokenId) -> u8 {
        self.lines.get(id as usize).map_or(0, |line| line[INLINE])
    }
}
