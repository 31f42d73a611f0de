//! Why there is no engine.

use core::fmt;

use bpe_core::TokenId;

/// Why a dictionary has no last-token engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError(pub(crate) Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Improper { product: TokenId, side: TokenId },
    NotCanonical { id: TokenId },
    Incomplete,
    NotBytes,
    TooLarge,
}

impl EngineError {
    /// True where the dictionary is improper: the theorems that the engine stands on hold for proper
    /// ones only. The bottom-up encoders of bpe-core take any dictionary.
    pub fn is_improper(&self) -> bool {
        matches!(self.0, Kind::Improper { .. })
    }

    /// True where the tokens are more than the tables can number.
    pub fn is_too_large(&self) -> bool {
        matches!(self.0, Kind::TooLarge)
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Improper { product, side } => write!(
                f,
                "the dictionary is improper: the rule of token {product} uses token {side}, which a \
                 later rule makes"
            ),
            Kind::NotCanonical { id } => write!(
                f,
                "token {id} has a place in a merge rule, but merging its bytes does not give it"
            ),
            Kind::Incomplete => f.write_str(
                "a dictionary over characters needs an unknown token, or a fallback token for each \
                 byte",
            ),
            Kind::NotBytes => f.write_str("the descent is for dictionaries over bytes"),
            Kind::TooLarge => f.write_str("the tokens are more than 32 bits can number"),
        }
    }
}

impl core::error::Error for EngineError {}
