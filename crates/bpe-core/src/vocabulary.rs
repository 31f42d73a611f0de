//! Token ids and their bytes.

mod builder;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

pub(crate) use builder::VocabularyBuilder;

/// The number that stands for a token.
pub type TokenId = u32;

/// Marks an id that no token has, in [`Positions::Table`].
const HOLE: u32 = u32::MAX;

/// Token ids and their bytes, all bytes in one arena.
///
/// Ids may have gaps and may come in any order; two tokens never share an id, nor their bytes
/// (byte-fallback tokens excepted, see [`Vocabulary::with_byte_fallback`]). Useful as the table
/// behind decoding and whole-piece look-up.
///
/// Memory: the bytes of all tokens once, and some 20 bytes a token.
///
/// ```
/// use bpe_core::Vocabulary;
///
/// let vocabulary = Vocabulary::new([(0, "a"), (7, "ab")])?;
/// assert_eq!(vocabulary.id_of(b"ab"), Some(7));
/// assert_eq!(vocabulary.token_bytes(7), Some(&b"ab"[..]));
/// assert_eq!(vocabulary.token_bytes(3), None);
/// assert_eq!(vocabulary.decode(&[7, 0])?, "aba");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Vocabulary {
    arena: Vec<u8>,
    /// End of each token in the arena, by position (the order of ids).
    ends: Vec<u32>,
    /// Ids by position, ascending.
    ids: Vec<TokenId>,
    positions: Positions,
    by_bytes: HashTable<u32>,
    hasher: RandomState,
    byte_fallback: Vec<Option<TokenId>>,
    longest: usize,
}

/// From an id to its position.
#[derive(Clone)]
enum Positions {
    /// One entry an id, where ids are dense enough.
    Table(Vec<u32>),
    /// Binary search in the ids.
    Search,
}

impl Vocabulary {
    /// The vocabulary of `tokens`, in any order.
    ///
    /// Cost: O(bytes + n log n). Memory is bounded by the input's, whatever the ids are.
    ///
    /// # Errors
    ///
    /// An empty token, an id or a token that comes twice, or more than 4 GiB of tokens; the error
    /// names the id.
    pub fn new<B: AsRef<[u8]>>(
        tokens: impl IntoIterator<Item = (TokenId, B)>,
    ) -> Result<Self, VocabularyError> {
        Self::with_byte_fallback(tokens, [])
    }

    /// As [`Vocabulary::new`], with `fallback` tokens for single bytes of characters that no token
    /// stands for (`<0x0A>` in SentencePiece vocabularies). They decode to their byte, and
    /// [`Vocabulary::id_of`] does not find them: a token may spell the same byte.
    ///
    /// # Errors
    ///
    /// As [`Vocabulary::new`]; and a byte that has two fallback tokens.
    pub fn with_byte_fallback<B: AsRef<[u8]>>(
        tokens: impl IntoIterator<Item = (TokenId, B)>,
        fallback: impl IntoIterator<Item = (TokenId, u8)>,
    ) -> Result<Self, VocabularyError> {
        let mut bytes = Vec::new();
        let mut entries = Vec::new();
        let mut push = |id: TokenId, token: &[u8]| {
            if token.is_empty() {
                return Err(VocabularyError(Kind::EmptyToken { id }));
            }
            let start = bytes.len();
            bytes.extend_from_slice(token);
            u32::try_from(bytes.len()).map_err(|_| VocabularyError(Kind::TooLarge { id }))?;
            entries.push((id, start as u32, bytes.len() as u32));
            Ok(())
        };
        for (id, token) in tokens {
            push(id, token.as_ref())?;
        }
        let mut byte_fallback = Vec::new();
        for (id, byte) in fallback {
            push(id, &[byte])?;
            byte_fallback.resize(256, None);
            if let Some(first) = byte_fallback[usize::from(byte)].replace(id) {
                return Err(VocabularyError(Kind::DuplicateFallback { byte, first, id }));
            }
        }
        entries.sort_by_key(|entry| entry.0);
        let mut builder = VocabularyBuilder::with_capacity(entries.len(), bytes.len());
        for (id, start, end) in entries {
            let range = start as usize..end as usize;
            match builder.vocabulary.ids.last() {
                Some(&last) if last == id => {
                    return Err(VocabularyError(Kind::DuplicateId { id }));
                }
                _ => {}
            }
            builder.push(id, &bytes[range])?;
        }
        builder.vocabulary.byte_fallback = byte_fallback;
        builder.finish()
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True where there is no token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The largest id, `None` where there is no token. With gaps in the ids this is not
    /// `len() - 1`: a model's embedding needs `max_id + 1` rows.
    pub fn max_id(&self) -> Option<TokenId> {
        self.ids.last().copied()
    }

    /// Length of the longest token, in bytes.
    pub fn longest_token(&self) -> usize {
        self.longest
    }

    /// The bytes of token `id`, `None` where no token has that id. O(1), O(log n) where ids are
    /// sparse.
    #[inline]
    pub fn token_bytes(&self, id: TokenId) -> Option<&[u8]> {
        self.position_of(id).map(|position| self.bytes_at(position))
    }

    /// The id of the token whose bytes are `bytes`. O(bytes).
    #[inline]
    pub fn id_of(&self, bytes: &[u8]) -> Option<TokenId> {
        let hash = self.hasher.hash_one(bytes);
        self.by_bytes
            .find(hash, |&position| self.bytes_at(position as usize) == bytes)
            .map(|&position| self.ids[position as usize])
    }

    /// The ids of many tokens, in their order, appended to `ids`; each is that of [`Vocabulary::id_of`]. O(bytes).
    /// Some look-ups are made side by side, so that they wait for memory together.
    ///
    /// ```
    /// let vocabulary = bpe_core::Vocabulary::new([(0, "a"), (7, "ab")])?;
    /// let mut ids = Vec::new();
    /// vocabulary.ids_of(&[b"ab", b"b", b"a"], &mut ids);
    /// assert_eq!(ids, [Some(7), None, Some(0)]);
    /// # Ok::<(), bpe_core::VocabularyError>(())
    /// ```
    pub fn ids_of(&self, tokens: &[&[u8]], ids: &mut Vec<Option<TokenId>>) {
        const AT_ONCE: usize = 64;
        let mut hashes = [0; AT_ONCE];
        let mut positions = [None; AT_ONCE];
        for tokens in tokens.chunks(AT_ONCE) {
            for (hash, token) in hashes.iter_mut().zip(tokens) {
                *hash = self.hasher.hash_one(token);
            }
            // What is found first is nearly always the token: its bytes are compared when all are found.
            for (position, &hash) in positions.iter_mut().zip(&hashes).take(tokens.len()) {
                *position = self.by_bytes.find(hash, |_| true).copied();
            }
            ids.extend(tokens.iter().zip(&positions).map(|(&token, position)| {
                let position = (*position)? as usize;
                match self.bytes_at(position) == token {
                    true => Some(self.ids[position]),
                    false => self.id_of(token),
                }
            }));
        }
    }

    /// The fallback token of `byte`, where the vocabulary has one.
    pub fn byte_fallback(&self, byte: u8) -> Option<TokenId> {
        self.byte_fallback.get(usize::from(byte)).copied().flatten()
    }

    /// Ids and bytes of all tokens, in ascending order of ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TokenId, &[u8])> {
        (0..self.len()).map(|position| (self.ids[position], self.bytes_at(position)))
    }

    /// The concatenated bytes of `ids`, appended to `output`. O(bytes).
    ///
    /// # Errors
    ///
    /// The first id that no token has, with its index; `output` is then as it was.
    pub fn decode_into(&self, ids: &[TokenId], output: &mut Vec<u8>) -> Result<(), DecodeError> {
        let start = output.len();
        for (index, &id) in ids.iter().enumerate() {
            match self.token_bytes(id) {
                Some(bytes) => output.extend_from_slice(bytes),
                None => {
                    output.truncate(start);
                    return Err(DecodeError::unknown_id(id, index));
                }
            }
        }
        Ok(())
    }

    /// The concatenated bytes of `ids`. O(bytes).
    ///
    /// # Errors
    ///
    /// The first id that no token has, with its index.
    pub fn decode_bytes(&self, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
        let mut output = Vec::new();
        self.decode_into(ids, &mut output)?;
        Ok(output)
    }

    /// The text of `ids`. O(bytes).
    ///
    /// # Errors
    ///
    /// The first id that no token has, or the offset of the first byte that is not UTF-8.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, DecodeError> {
        String::from_utf8(self.decode_bytes(ids)?).map_err(|error| DecodeError::not_utf8(&error))
    }

    /// The text of `ids`, with U+FFFD for each maximal part that is not UTF-8. O(bytes).
    ///
    /// # Errors
    ///
    /// The first id that no token has: lossy about bytes, never about ids.
    pub fn decode_lossy(&self, ids: &[TokenId]) -> Result<String, DecodeError> {
        let bytes = self.decode_bytes(ids)?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The place of `id` among the ids in ascending order: what arrays with one entry a token are
    /// indexed by, since ids may have gaps.
    #[inline]
    pub(crate) fn position_of(&self, id: TokenId) -> Option<usize> {
        match &self.positions {
            Positions::Table(table) => match table.get(id as usize) {
                Some(&position) if position != HOLE => Some(position as usize),
                _ => None,
            },
            Positions::Search => self.ids.binary_search(&id).ok(),
        }
    }

    /// The id at `position` of the ascending ids.
    pub(crate) fn id_at(&self, position: usize) -> TokenId {
        self.ids[position]
    }

    /// The bytes of the token at `position`.
    #[inline]
    pub(crate) fn bytes_at(&self, position: usize) -> &[u8] {
        let start = match position {
            0 => 0,
            _ => self.ends[position - 1] as usize,
        };
        &self.arena[start..self.ends[position] as usize]
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("tokens", &self.len())
            .field("max_id", &self.max_id())
            .field("bytes", &self.arena.len())
            .finish_non_exhaustive()
    }
}

/// Why a list of tokens is no vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VocabularyError(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    EmptyToken {
        id: TokenId,
    },
    DuplicateId {
        id: TokenId,
    },
    DuplicateToken {
        first: TokenId,
        id: TokenId,
    },
    DuplicateFallback {
        byte: u8,
        first: TokenId,
        id: TokenId,
    },
    TooLarge {
        id: TokenId,
    },
}

impl VocabularyError {
    /// The id at fault; of two the later one in the order of ids.
    pub fn id(&self) -> TokenId {
        match self.0 {
            Kind::EmptyToken { id }
            | Kind::DuplicateId { id }
            | Kind::DuplicateToken { id, .. }
            | Kind::DuplicateFallback { id, .. }
            | Kind::TooLarge { id } => id,
        }
    }
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::EmptyToken { id } => write!(f, "token {id} is empty"),
            Kind::DuplicateId { id } => write!(f, "two tokens have the id {id}"),
            Kind::DuplicateToken { first, id } => {
                write!(f, "tokens {first} and {id} have the same bytes")
            }
            Kind::DuplicateFallback { byte, first, id } => {
                write!(
                    f,
                    "tokens {first} and {id} both stand for the byte 0x{byte:02X}"
                )
            }
            Kind::TooLarge { id } => {
                write!(f, "the tokens up to id {id} have more than 4 GiB of bytes")
            }
        }
    }
}

impl core::error::Error for VocabularyError {}

/// Why token ids have no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(DecodeKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum DecodeKind {
    UnknownId { id: TokenId, index: usize },
    NotUtf8 { offset: usize },
}

impl DecodeError {
    /// No token has the id `id`, which stands at `index` of the ids.
    pub fn unknown_id(id: TokenId, index: usize) -> Self {
        Self(DecodeKind::UnknownId { id, index })
    }

    /// The decoded bytes are not UTF-8.
    pub fn not_utf8(error: &alloc::string::FromUtf8Error) -> Self {
        Self(DecodeKind::NotUtf8 {
            offset: error.utf8_error().valid_up_to(),
        })
    }

    /// The id that no token has, where that is the reason.
    pub fn id(&self) -> Option<TokenId> {
        match self.0 {
            DecodeKind::UnknownId { id, .. } => Some(id),
            DecodeKind::NotUtf8 { .. } => None,
        }
    }

    /// Index of that id in the ids, where that is the reason.
    pub fn index(&self) -> Option<usize> {
        match self.0 {
            DecodeKind::UnknownId { index, .. } => Some(index),
            DecodeKind::NotUtf8 { .. } => None,
        }
    }

    /// Offset of the first decoded byte that is not UTF-8, where that is the reason.
    pub fn byte_offset(&self) -> Option<usize> {
        match self.0 {
            DecodeKind::UnknownId { .. } => None,
            DecodeKind::NotUtf8 { offset } => Some(offset),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DecodeKind::UnknownId { id, index } => {
                write!(f, "no token has the id {id} (at index {index})")
            }
            DecodeKind::NotUtf8 { offset } => {
                write!(f, "the decoded bytes are not UTF-8 at byte {offset}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ids_keep_their_gaps_and_order_does_not_matter() {
        let vocabulary =
            Vocabulary::new([(358, " a"), (3, "b"), (356, "ab"), (0, "a")]).expect("valid");
        assert_eq!(vocabulary.len(), 4);
        assert_eq!(vocabulary.max_id(), Some(358));
        assert_eq!(vocabulary.id_of(b" a"), Some(358));
        assert_eq!(vocabulary.token_bytes(357), None);
        let ids: Vec<_> = vocabulary.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [0, 3, 356, 358]);
    }

    #[test]
    fn sparse_ids_up_to_the_largest_take_no_table() {
        let vocabulary = Vocabulary::new([(u32::MAX, "z"), (0, "a")]).expect("valid");
        assert!(matches!(vocabulary.positions, Positions::Search));
        assert_eq!(vocabulary.token_bytes(u32::MAX), Some(&b"z"[..]));
        assert_eq!(vocabulary.token_bytes(u32::MAX - 1), None);
        assert_eq!(vocabulary.id_of(b"z"), Some(u32::MAX));
    }

    #[test]
    fn what_is_no_vocabulary_is_refused_by_id() {
        let message = |tokens: &[(u32, &str)]| {
            Vocabulary::new(tokens.iter().copied())
                .expect_err("invalid")
                .to_string()
        };
        assert_eq!(message(&[(5, "")]), "token 5 is empty");
        assert_eq!(message(&[(5, "a"), (5, "b")]), "two tokens have the id 5");
        assert_eq!(
            message(&[(9, "a"), (5, "a")]),
            "tokens 5 and 9 have the same bytes"
        );
    }

    #[test]
    fn fallback_tokens_decode_but_are_not_found_by_their_byte() {
        let vocabulary =
            Vocabulary::with_byte_fallback([(1, "A")], [(7, b'A'), (8, 0xC3)]).expect("valid");
        assert_eq!(vocabulary.id_of(b"A"), Some(1));
        assert_eq!(vocabulary.byte_fallback(b'A'), Some(7));
        assert_eq!(vocabulary.byte_fallback(b'B'), None);
        assert_eq!(vocabulary.decode_bytes(&[7, 8]).expect("known"), b"A\xC3");
    }

    #[test]
    fn decoding_names_what_is_wrong_and_leaves_the_output_alone() {
        let vocabulary = Vocabulary::new([(0, &b"a"[..]), (1, &b"\xE4\xBD"[..])]).expect("valid");
        let mut output = b"before".to_vec();
        let error = vocabulary
            .decode_into(&[0, 9], &mut output)
            .expect_err("no token 9");
        assert_eq!((error.id(), error.index()), (Some(9), Some(1)));
        assert_eq!(output, b"before");
        let error = vocabulary.decode(&[0, 1, 0]).expect_err("not UTF-8");
        assert_eq!(error.byte_offset(), Some(1));
        assert_eq!(
            vocabulary.decode_lossy(&[0, 1, 0]).expect("lossy"),
            "a\u{FFFD}a"
        );
    }

    #[test]
    fn many_ids_are_those_of_each() {
        let text = |number: u32| alloc::format!("{:x}", number.wrapping_mul(0x9E37_79B9));
        let tokens = (0..5000).map(|number| (number * 3, text(number)));
        let vocabulary = Vocabulary::new(tokens).expect("distinct");
        let asked: Vec<_> = (0..10_000).map(text).chain(["".into()]).collect();
        let asked: Vec<_> = asked.iter().map(|text| text.as_bytes()).collect();
        let mut ids = alloc::vec![Some(7)];
        vocabulary.ids_of(&asked, &mut ids);
        assert_eq!(ids[0], Some(7));
        for (&token, &id) in asked.iter().zip(&ids[1..]) {
            assert_eq!(id, vocabulary.id_of(token));
        }
        assert_eq!(ids.iter().flatten().count(), 5001);
    }
}
