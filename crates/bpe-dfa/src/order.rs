//! The canonical tokens in the order of their bytes: a trie that needs no nodes.

use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId, Vocabulary};

use crate::pairs::PairRelation;

/// The canonical tokens, sorted by their bytes. Those that begin with the same bytes are a range.
pub(crate) struct TokenOrder {
    vocabulary: Arc<Vocabulary>,
    ids: Vec<TokenId>,
    /// Where the tokens that begin with each byte start, and the end of the last.
    first: Vec<u32>,
}

/// Tokens that begin with the same bytes; `depth` of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) depth: u32,
}

impl TokenOrder {
    pub(crate) fn new(canonical: &CanonicalForm, pairs: &PairRelation) -> Self {
        let vocabulary = Arc::clone(canonical.vocabulary());
        let mut tokens: Vec<(TokenId, &[u8])> = vocabulary
            .iter()
            .filter(|&(id, bytes)| pairs.is_canonical(id) && !bytes.is_empty())
            .collect();
        tokens.sort_unstable_by_key(|token| token.1);
        let mut first = vec![0; 257];
        for (_, bytes) in &tokens {
            first[usize::from(bytes[0]) + 1] += 1;
        }
        for byte in 0..256 {
            first[byte + 1] += first[byte];
        }
        let ids = tokens.iter().map(|token| token.0).collect();
        Self {
            vocabulary,
            ids,
            first,
        }
    }

    pub(crate) fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// All tokens.
    pub(crate) fn root(&self) -> Prefix {
        Prefix {
            start: 0,
            end: self.ids.len() as u32,
            depth: 0,
        }
    }

    /// The tokens of `prefix` that go on with `byte`. O(log tokens).
    pub(crate) fn child(&self, prefix: Prefix, byte: u8) -> Option<Prefix> {
        let (start, end) = if prefix.depth == 0 {
            let byte = usize::from(byte);
            (self.first[byte], self.first[byte + 1])
        } else {
            let ids = &self.ids[prefix.start as usize..prefix.end as usize];
            let next = |&id: &TokenId| self.bytes(id).get(prefix.depth as usize).copied();
            let start = ids.partition_point(|id| next(id) < Some(byte));
            let len = ids[start..].partition_point(|id| next(id) == Some(byte));
            (
                prefix.start + start as u32,
                prefix.start + (start + len) as u32,
            )
        };
        let child = Prefix {
            start,
            end,
            depth: prefix.depth + 1,
        };
        (start < end).then_some(child)
    }

    /// The token that is this prefix itself.
    pub(crate) fn token(&self, prefix: Prefix) -> Option<TokenId> {
        let id = *self.ids.get(prefix.start as usize)?;
        (self.bytes(id).len() == prefix.depth as usize).then_some(id)
    }

    /// The tokens that begin with this prefix and are longer.
    pub(crate) fn longer(&self, prefix: Prefix) -> &[TokenId] {
        let own = usize::from(self.token(prefix).is_some());
        &self.ids[prefix.start as usize + own..prefix.end as usize]
    }

    pub(crate) fn bytes(&self, id: TokenId) -> &[u8] {
        self.vocabulary.token_bytes(id).unwrap_or_default()
    }
}
