//! Patterns: the regular expressions that define pre-tokens.

use std::sync::Arc;

use crate::{Engine, Lexer, PatternError};

/// The published spelling, without possessive quantifiers, of gpt2, r50k and p50k.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The published spelling, without possessive quantifiers, of cl100k (and Llama 3).
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The published spelling of o200k.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// A pre-tokenization pattern: a regular expression whose matches, found one after the other,
/// are the pre-tokens of a text.
///
/// Cheap to clone. Making one checks nothing: whether an engine can run the pattern is known
/// when a [lexer](Pattern::lexer) is made from it.
///
/// ```
/// use bpe_lexers::{Family, Pattern};
///
/// let own = Pattern::new(r"\w+|\s+");
/// assert_eq!(own.family(), None);
/// // A known spelling is recognised, wherever it was read from.
/// assert_eq!(Pattern::new(Pattern::o200k().as_str()).family(), Some(Family::O200k));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: Arc<str>,
    family: Option<Family>,
}

/// A pattern that this crate knows, so that it can do more with it than run it: transcribe it
/// by hand ([`TranscribedLexer`](crate::TranscribedLexer)) and find
/// [safe cuts](crate::last_safe_cut).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// gpt2, r50k, p50k.
    Gpt2,
    /// cl100k, and Llama 3, which took it over.
    Cl100k,
    /// o200k.
    O200k,
}

impl Pattern {
    /// Returns the pattern of gpt2, r50k_base, p50k_base and p50k_edit.
    pub fn gpt2() -> Self {
        Self::new(GPT2)
    }

    /// Returns the pattern of cl100k_base.
    ///
    /// This is the published spelling. tiktoken has used others since, which give the same
    /// tokens but cut a text that ends in a newline and blanks into other pieces.
    pub fn cl100k() -> Self {
        Self::new(CL100K)
    }

    /// Returns the pattern of o200k_base and o200k_harmony.
    pub fn o200k() -> Self {
        Self::new(O200K)
    }

    /// Returns the pattern of the encoding `name`, one of `gpt2`, `r50k`, `p50k`, `cl100k` and
    /// `o200k`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "gpt2" | "r50k" | "p50k" => Some(Self::gpt2()),
            "cl100k" => Some(Self::cl100k()),
            "o200k" => Some(Self::o200k()),
            _ => None,
        }
    }

    /// Returns the pattern spelt `source`; the exact spelling of a known family is recognised.
    ///
    /// The syntax is that of the engine: [`ReferenceLexer`](crate::ReferenceLexer) takes what
    /// fancy-regex takes, [`AutomataLexer`](crate::AutomataLexer) what regex-syntax takes, and
    /// where they take the same they mean the same.
    pub fn new(source: &str) -> Self {
        let family = match source {
            GPT2 => Some(Family::Gpt2),
            CL100K => Some(Family::Cl100k),
            O200K => Some(Family::O200k),
            _ => None,
        };
        Self {
            source: Arc::from(source),
            family,
        }
    }

    /// Returns the regular expression as it was spelt.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the known family that the pattern is the spelling of.
    pub fn family(&self) -> Option<Family> {
        self.family
    }

    /// Returns a lexer for this pattern; the same as [`lexer`](crate::lexer).
    ///
    /// # Errors
    ///
    /// The pattern is malformed, or the engine cannot run it.
    pub fn lexer(&self, engine: Engine) -> Result<Box<dyn Lexer>, PatternError> {
        crate::lexer(self, engine)
    }
}
