//! What a construction takes at most.

/// Limits of the explicit constructions. What would go beyond one ends with an error that names the
/// limit ([`ExplicitError::limit`](super::ExplicitError::limit)).
///
/// ```
/// use bpe_dfa::explicit::{Limits, StringDfa};
///
/// // Which byte stands 16 places before the end needs 2^16 states.
/// let limits = Limits { states: 1_000, ..Limits::default() };
/// let error = StringDfa::from_regex("[ab]*a[ab]{16}", &limits).unwrap_err();
/// assert_eq!(error.limit(), Some(1_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// States of an automaton, and what a search may visit of pairs and sets of states. 2^20 by default.
    pub states: usize,
    /// Memory of one table, in bytes; what is needed while it is made can be some times that. 64 MiB by
    /// default.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            states: 1 << 20,
            bytes: 1 << 26,
        }
    }
}
