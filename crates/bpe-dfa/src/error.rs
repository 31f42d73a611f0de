//! Why a dictionary has no pair relation.

use core::fmt;

use bpe_core::TokenId;

/// A dictionary is not one that the pair relation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationError(pub(crate) Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Improper { product: TokenId, side: TokenId },
    NotCanonical { id: TokenId },
    TooManyTokens { limit: usize },
    NotOverBytes,
}

impl RelationError {
    /// True where the dictionary is improper: neighbouring tokens then do not decide what is a
    /// tokenization. [`bpe_core::CanonicalForm::properize`] finds another order for most.
    pub fn is_improper(&self) -> bool {
        matches!(self.0, Kind::Improper { .. })
    }

    /// True where atoms are characters ([`bpe_core::Atoms::Characters`]), whose tokens for single bytes and for
    /// what is unknown do not go by their neighbours.
    pub fn is_over_characters(&self) -> bool {
        matches!(self.0, Kind::NotOverBytes)
    }
}

impl fmt::Display for RelationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Improper { product, side } => write!(
                f,
                "improper dictionary: the rule that makes token {product} comes before the one that makes its \
                 side {side}"
            ),
            Kind::NotCanonical { id } => write!(
                f,
                "token {id} is a side of a canonical rule, and no canonical token"
            ),
            Kind::TooManyTokens { limit } => write!(f, "more than {limit} tokens"),
            Kind::NotOverBytes => f.write_str(
                "the dictionary has tokens for unknown characters or for single bytes of characters; \
                 neighbouring tokens do not decide what is a tokenization",
            ),
        }
    }
}

impl core::error::Error for RelationError {}
