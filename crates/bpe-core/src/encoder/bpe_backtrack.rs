//! Longest match first, and back where it cannot go on.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind, StartKind};

use super::merge_loop::MergeLoop;
use super::{EncodeError, EncoderError, EncoderKind, SpanEncoder};
use crate::canonical::{CanonicalForm, TokenOrigin};
use crate::dictionary::Atoms;
use crate::vocabulary::TokenId;

/// Takes the longest token at each place that may follow the token before, and steps back where no
/// token may (001 section 6.5).
///
/// By locality (002 Observation 2) a sequence of canonical tokens is the tokenization of its
/// text if each neighbouring pair is. So the encoder keeps a sequence in which every pair is valid.
/// A place from which no token can go on is cleared in a bit field and never entered again, hence
/// each place is left at most once.
///
/// Cost: O(n) on natural text; at worst O(n t^2) for tokens of up to t bytes, since at each place
/// all prefixes of the longest token may be tried against the token before, and a test un-merges
/// both (000 App. J.1). Building it makes an automaton of all tokens. Useful for long spans of
/// natural text; not useful against inputs or dictionaries made to be slow.
pub struct BpeBacktrack {
    tables: Arc<Tables>,
    /// Bit p is set while the text may be cut at byte p.
    open: Vec<u64>,
    merge_loop: MergeLoop,
}

/// What clones share.
struct Tables {
    canonical: Arc<CanonicalForm>,
    /// Canonical tokens; a pattern's number is its index in `tokens`.
    automaton: AhoCorasick,
    tokens: Vec<Token>,
    /// Whether each byte is a token.
    is_complete: bool,
}

#[derive(Clone, Copy)]
struct Token {
    id: TokenId,
    len: u32,
    /// Index of the longest proper prefix that is a canonical token; `NO_PREFIX` for single bytes.
    prefix: u32,
}

const NO_PREFIX: u32 = u32::MAX;

impl BpeBacktrack {
    /// An encoder over `canonical`. O(bytes of all tokens); some 100 bytes of memory a token.
    ///
    /// # Errors
    ///
    /// An improper dictionary, on which locality does not hold, and atoms that are not bytes.
    pub fn new(canonical: Arc<CanonicalForm>) -> Result<Self, EncoderError> {
        if canonical.atoms() != Atoms::Bytes {
            return Err(EncoderError(EncoderKind::AtomsAreCharacters));
        }
        if let Some(evidence) = canonical.improper_rule() {
            return Err(EncoderError(EncoderKind::Improper {
                product: evidence.rule.product,
                side: evidence.maker.product,
            }));
        }
        let vocabulary = canonical.vocabulary();
        let canonical_tokens = || {
            vocabulary
                .iter()
                .filter(|&(id, _)| canonical.origin(id) != Some(TokenOrigin::Unreachable))
        };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Anchored)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(canonical_tokens().map(|(_, bytes)| bytes))
            .map_err(|_| EncoderError(EncoderKind::Automaton))?;
        let longest_match = |bytes: &[u8]| {
            let input = Input::new(bytes).anchored(Anchored::Yes);
            automaton.try_find(input).ok().flatten()
        };
        let tokens = canonical_tokens()
            .map(|(id, bytes)| Token {
                id,
                len: bytes.len() as u32,
                prefix: longest_match(&bytes[..bytes.len() - 1])
                    .map_or(NO_PREFIX, |found| found.pattern().as_u32()),
            })
            .collect();
        Ok(Self {
            tables: Arc::new(Tables {
                is_complete: canonical.is_complete(),
                canonical,
                automaton,
                tokens,
            }),
            open: Vec::new(),
            merge_loop: MergeLoop::default(),
        })
    }
}

impl SpanEncoder for BpeBacktrack {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let tables = &*self.tables;
        if !tables.is_complete {
            tables.canonical.check_bytes(span)?;
        }
        let start = tokens.len();
        let words = span.len() / 64 + 1;
        self.open.clear();
        self.open.resize(words, u64::MAX);

        let mut position = 0;
        let mut candidate = tables.longest_token(span);
        while let Some(mut token) = candidate {
            let last = tokens[start..].last().copied();
            candidate = loop {
                let end = position + token.len as usize;
                let is_open = self.open[end / 64] >> (end % 64) & 1 == 1;
                if is_open
                    && last.is_none_or(|last| is_valid_pair(&tables.canonical, last, token.id))
                {
                    tokens.push(token.id);
                    position = end;
                    break tables.longest_token(&span[position..]);
                }
                if let Some(&shorter) = tables.tokens.get(token.prefix as usize) {
                    token = shorter;
                    continue;
                }
                // Nothing goes on from here: close the place, and take back the token before.
                self.open[position / 64] &= !(1 << (position % 64));
                let back = tokens.len() > start;
                let taken = if back { tokens.pop() } else { None };
                // The first token is never taken back to nothing: the tokenization's own tokens are
                // among the candidates, and their ends stay open.
                let Some(len) = taken
                    .and_then(|id| tables.canonical.vocabulary().token_bytes(id))
                    .map(<[u8]>::len)
                else {
                    break None;
                };
                position -= len;
                break tables.longest_token(&span[position..position + len]);
            };
        }
        // Reached only where a compact file claims rules that are not canonical: nothing is lost.
        if position != span.len() {
            tokens.truncate(start);
            tables.canonical.append_atoms(span, tokens)?;
            let merges = tables.canonical.pair_table();
            self.merge_loop.merge_tail(merges, tokens, start);
        }
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self {
            tables: Arc::clone(&self.tables),
            open: Vec::new(),
            merge_loop: MergeLoop::default(),
        })
    }
}

impl Tables {
    /// The longest canonical token at the start of `text`.
    fn longest_token(&self, text: &[u8]) -> Option<Token> {
        let input = Input::new(text).anchored(Anchored::Yes);
        let found = self.automaton.try_find(input).ok().flatten()?;
        self.tokens.get(found.pattern().as_usize()).copied()
    }
}

impl fmt::Debug for BpeBacktrack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BpeBacktrack")
            .field("canonical", &self.tables.canonical)
            .finish_non_exhaustive()
    }
}

/// Whether the tokenization of the two tokens' text is the two tokens: un-merges both, always the
/// one made later, and looks for a rule that would have joined what then met.
///
/// While the left token ends in `left`, which a rule of priority p consumes, and the right one
/// begins with `right`, consumed by one of priority q, a rule that joins them fires if it comes
/// before p, and not after q: of two equal neighbours the left one merges first. A proper
/// dictionary; O(t) for tokens of up to t bytes.
fn is_valid_pair(canonical: &CanonicalForm, mut left: TokenId, mut right: TokenId) -> bool {
    let (mut left_until, mut right_until) = (u32::MAX, u32::MAX);
    loop {
        if let Some(merge) = canonical.merge(left, right)
            && merge.priority.0 < left_until
            && merge.priority.0 <= right_until
        {
            return false;
        }
        let (left_rule, right_rule) = (canonical.rule(left), canonical.rule(right));
        match (left_rule, right_rule) {
            (None, None) => return true,
            (Some(rule), other) if other.is_none_or(|other| rule.priority > other.priority) => {
                left = rule.right;
                left_until = rule.priority.0;
            }
            (_, Some(rule)) => {
                right = rule.left;
                right_until = rule.priority.0;
            }
            (Some(_), None) => return true, // Not reached: the second arm takes this case.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;
    use crate::vocabulary::Vocabulary;

    #[test]
    fn improper_dictionaries_and_character_atoms_are_refused() {
        let vocabulary =
            Vocabulary::new([(0, "a"), (1, "b"), (2, "aba"), (3, "ab")]).expect("valid");
        let dictionary = Dictionary::from_merges(vocabulary, [(3, 0), (0, 1)]).expect("valid");
        let improper = Arc::new(CanonicalForm::new(&dictionary));
        assert!(
            BpeBacktrack::new(improper)
                .expect_err("improper")
                .is_improper()
        );

        let vocabulary = Vocabulary::new([(0, "a")]).expect("valid");
        let characters = Dictionary::from_merges(vocabulary, [])
            .and_then(|dictionary| {
                dictionary.with_atoms(Atoms::Characters {
                    unknown: None,
                    fuse_unknown: false,
                })
            })
            .expect("valid");
        let error =
            BpeBacktrack::new(Arc::new(CanonicalForm::new(&characters))).expect_err("characters");
        assert!(!error.is_improper());
    }
}
