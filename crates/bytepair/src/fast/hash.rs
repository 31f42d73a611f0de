//! The hash of pieces: keyed, so that a text cannot choose its collisions.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Two numbers that no text knows.
#[derive(Clone, Copy)]
pub(super) struct Secret([u64; 2]);

impl Secret {
    /// The secret of this process.
    pub(super) fn get() -> Self {
        static SECRET: OnceLock<Secret> = OnceLock::new();
        *SECRET.get_or_init(|| {
            let random = RandomState::new();
            Self([random.hash_one(1), random.hash_one(2)])
        })
    }

    /// Both halves of the key with the secret, multiplied, and both halves of that folded.
    #[inline(always)]
    pub(super) fn hash(self, key: u128) -> u64 {
        let [low, high] = self.0;
        let product = u128::from(key as u64 ^ low) * u128::from((key >> 64) as u64 ^ high);
        product as u64 ^ (product >> 64) as u64
    }
}
