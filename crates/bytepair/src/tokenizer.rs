//! The tokenizer: its parts, and what can be asked of it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bpe_core::{Atoms, CanonicalForm, DecodeError, TokenId, TokenOrigin, Vocabulary};
use bpe_lexers::{Lexer, Pattern};

use crate::builder::TokenizerBuilder;
use crate::decode_stream::DecodeStream;
use crate::error::LoadError;
use crate::parallel::ParallelParts;
use crate::pool::Pool;
use crate::specials::{Policy, SpecialKind, SpecialTable, Specials};
use crate::stream::StreamParts;
use crate::stream_error::StreamError;

/// Text in, tokens out, and back.
///
/// Cheap to clone (two reference counts), `Send` and `Sync`: one value serves all threads. What
/// changes while encoding is taken from a pool, one part a thread; [`Tokenizer::worker`] gives a
/// thread its own. After a thread's first texts, encoding into a reused vector allocates nothing.
///
/// All methods take text as it is, with special tokens as [`Tokenizer::with_specials`] says: by
/// default their text is text. Costs are O(bytes) for the embedded vocabularies and the default
/// engines on every input, but for a factor of log n inside one pre-token of n bytes.
///
/// ```
/// use bytepair::Tokenizer;
///
/// let tokenizer = Tokenizer::o200k_base();
/// let ids = tokenizer.encode("Hello, world")?;
/// assert_eq!(ids, [13225, 11, 2375]);
/// assert_eq!(tokenizer.decode(&ids)?, "Hello, world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tokenizer {
    pub(crate) inner: Arc<Inner>,
    pub(crate) policy: Arc<Policy>,
}

/// What clones share, whatever they do with special tokens.
pub(crate) struct Inner {
    pub(crate) name: Option<String>,
    pub(crate) canonical: Arc<CanonicalForm>,
    pub(crate) specials: SpecialTable,
    pub(crate) patterns: Vec<Pattern>,
    /// Prototypes of the lexers that run the patterns.
    pub(crate) lexers: Vec<Box<dyn Lexer>>,
    pub(crate) pool: Pool,
    /// Bytes a token on text of this vocabulary's kind, for the capacity of output vectors.
    pub(crate) bytes_per_token: f32,
    /// What each thread has for the caches of the fast path.
    pub(crate) cache_bytes: usize,
    /// What streams share, made for the first of them.
    pub(crate) stream: OnceLock<Result<Arc<StreamParts>, StreamError>>,
    /// Which pairs of tokens are valid, made for the first validator; none of an improper dictionary.
    #[cfg(feature = "dfa")]
    pub(crate) pairs: OnceLock<Option<Arc<bpe_dfa::PairRelation>>>,
    /// Tokens as the patterns see them, made for the first validator; none where that is not enough.
    #[cfg(feature = "dfa")]
    pub(crate) classes: OnceLock<Option<Arc<bpe_dfa::TokenClasses>>>,
    pub(crate) parallel: ParallelParts,
}

impl Tokenizer {
    /// The same tokenizer, with special tokens treated in another way; see [`Specials`]. Shares
    /// everything else. Builds one automaton over the special tokens: keep the value for many calls.
    ///
    /// # Errors
    ///
    /// [`Specials::Allow`] names a text that is no special token.
    pub fn with_specials(&self, specials: Specials) -> Result<Self, LoadError> {
        Ok(Self {
            policy: Arc::new(Policy::new(specials, &self.inner.specials)?),
            inner: Arc::clone(&self.inner),
        })
    }

    /// How special tokens are treated.
    pub fn specials(&self) -> &Specials {
        &self.policy.specials
    }

    /// A builder with the parts of this tokenizer, to exchange some or to add special tokens.
    ///
    /// ```
    /// use bytepair::{Specials, Tokenizer};
    ///
    /// let chat = Tokenizer::o200k_base()
    ///     .to_builder()
    ///     .special_token("<|im_start|>", 200_019)
    ///     .build()?
    ///     .with_specials(Specials::AllowAll)?;
    /// assert_eq!(chat.encode("<|im_start|>")?, [200_019]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_builder(&self) -> TokenizerBuilder {
        TokenizerBuilder::from_tokenizer(self)
    }

    /// The name of the encoding (`"o200k_base"`), where it has one.
    pub fn name(&self) -> Option<&str> {
        self.inner.name.as_deref()
    }

    /// The patterns of the pre-tokenizer, in the order in which they cut.
    pub fn patterns(&self) -> &[Pattern] {
        &self.inner.patterns
    }

    /// The canonical form that the encoder works on.
    pub fn canonical(&self) -> &Arc<CanonicalForm> {
        &self.inner.canonical
    }

    /// The ordinary tokens: ids and bytes, special tokens not counted.
    pub fn vocabulary(&self) -> &Vocabulary {
        self.inner.canonical.vocabulary()
    }

    /// Text and id of each special token, in the order in which they were given.
    pub fn special_tokens(&self) -> impl Iterator<Item = (&str, TokenId)> {
        let tokens = self.inner.specials.tokens().iter();
        tokens
            .filter(|token| token.kind != SpecialKind::Alias)
            .map(|token| (token.text.as_str(), token.id))
    }

    /// Text and id of everything that is matched as text before the patterns, as [`Specials`] are
    /// set: special tokens that are allowed or forbidden, their second texts, and added tokens that
    /// are always matched. What a caller has to mind who cuts a text.
    pub fn matched_texts(&self) -> impl Iterator<Item = (&str, TokenId)> {
        let tokens = self.inner.specials.tokens();
        let matched = self.policy.matched.iter();
        matched.map(|matched| (tokens[matched.token].text.as_str(), matched.id))
    }

    /// Number of tokens, special ones included. O(special tokens). Not the number of rows of an embedding: ids have
    /// gaps, so that is [`Tokenizer::max_id`] + 1.
    pub fn token_count(&self) -> usize {
        let vocabulary = self.vocabulary();
        let added = self.inner.specials.ids();
        let added = added.filter(|&id| vocabulary.token_bytes(id).is_none());
        vocabulary.len() + added.count()
    }

    /// The largest id, of special tokens too. O(special tokens). `None` where there is no token at all.
    pub fn max_id(&self) -> Option<TokenId> {
        self.vocabulary()
            .max_id()
            .max(self.inner.specials.ids().max())
    }

    /// The bytes of token `id`, those of its text for a special token. `None` where no token has
    /// that id. O(1).
    pub fn token_bytes(&self, id: TokenId) -> Option<&[u8]> {
        match self.vocabulary().token_bytes(id) {
            Some(bytes) => Some(bytes),
            None => self.inner.specials.text(id).map(str::as_bytes),
        }
    }

    /// The id of the token with these bytes; a special token's text gives its id where no ordinary
    /// token has it. O(bytes).
    pub fn token_id(&self, bytes: &[u8]) -> Option<TokenId> {
        match self.vocabulary().id_of(bytes) {
            Some(id) => Some(id),
            None => self.inner.specials.id_of(bytes),
        }
    }

    /// True for the id of a special token.
    pub fn is_special(&self, id: TokenId) -> bool {
        self.inner.specials.is_special(id)
    }

    /// The text of `ids`, special tokens as their text. O(bytes).
    ///
    /// # Errors
    ///
    /// The first id that no token has, with its index, or the offset of the first byte that is not
    /// UTF-8.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, DecodeError> {
        String::from_utf8(self.decode_bytes(ids)?).map_err(|error| DecodeError::not_utf8(&error))
    }

    /// The bytes of `ids`: of what [`Tokenizer::encode_bytes`] gave, exactly what went in. O(bytes).
    ///
    /// # Errors
    ///
    /// The first id that no token has, with its index.
    pub fn decode_bytes(&self, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for (index, &id) in ids.iter().enumerate() {
            let token = self.token_bytes(id);
            bytes.extend_from_slice(token.ok_or(DecodeError::unknown_id(id, index))?);
        }
        Ok(bytes)
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

    /// A stream into which ids are pushed one by one, and which hands out text as soon as it ends
    /// at a character.
    pub fn decode_stream(&self) -> DecodeStream {
        DecodeStream::new(self.clone())
    }

    /// A stream that goes on after `prompt`: it hands out only text of ids pushed later. A
    /// character that begins in the prompt and ends behind it comes out once, whole. O(bytes of the
    /// prompt).
    ///
    /// # Errors
    ///
    /// The first id of the prompt that no token has, with its index.
    pub fn decode_stream_after(&self, prompt: &[TokenId]) -> Result<DecodeStream, DecodeError> {
        DecodeStream::after(self.clone(), prompt)
    }

    /// Drops the scratch memory of threads that are not encoding now, and what they remember of pieces
    /// (3.9 MiB a thread; `TokenizerBuilder::cache_bytes`). The rest grows with the longest pre-token a thread
    /// has seen, by some 30 bytes a byte, and to some 8 MB in the lexer of a pattern on automata.
    pub fn clear_scratch(&self) {
        self.inner.pool.clear();
    }

    /// Whether merging the bytes of token `id` gives that token. Special tokens are not made by
    /// merging.
    pub fn is_reachable(&self, id: TokenId) -> bool {
        !matches!(
            self.inner.canonical.origin(id),
            None | Some(TokenOrigin::Unreachable)
        )
    }

    /// The token for unknown characters, and whether neighbours fuse.
    pub(crate) fn unknown(&self) -> Option<(TokenId, bool)> {
        match self.inner.canonical.atoms() {
            Atoms::Characters {
                unknown: Some(id),
                fuse_unknown,
            } => Some((id, fuse_unknown)),
            _ => None,
        }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("name", &self.inner.name)
            .field("canonical", &self.inner.canonical)
            .field("patterns", &self.inner.patterns)
            .field("specials", &self.policy.specials)
            .finish_non_exhaustive()
    }
}
