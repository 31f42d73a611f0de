//! What the processor and the system can do: the only module of this crate with `unsafe`.
//!
//! | module | what it holds | its safe twin |
//! |---|---|---|
//! | `hints` | hints about memory, without which nothing changes but time | to do nothing |
//! | `avx512` | the loops of a block compiled for AVX-512, and lines of the cache compared whole | [`Portable`] |
//!
//! The twins are what other processors and systems run. The tests, a fuzz target and `cargo xtask verify` compare
//! what both give; docs/benchmarks has what each is worth.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod hints;

#[cfg(target_arch = "x86_64")]
pub(super) use self::avx512::Avx512;
pub(super) use self::hints::prefer_large_pages;
pub(crate) use self::hints::prefetch;

use super::cache::{ShortLine, same};

/// The instructions that may be used. A value exists only where the processor has them.
pub(super) trait Tier: Copy {
    /// Which quarter of a line has the tokens of this key, and whether they are there; if not, any of them.
    fn find(self, line: &ShortLine, key: &u128) -> (usize, bool);

    /// Does `work`, compiled for these instructions, as a function of its own.
    fn run<W: Work>(self, work: W) -> W::Output;
}

/// What can be compiled for more than one [`Tier`]: its function is to be inlined always.
pub(super) trait Work {
    type Output;

    fn run(self) -> Self::Output;
}

/// No instructions in particular.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Tier for Portable {
    #[inline(always)]
    fn find(self, line: &ShortLine, key: &u128) -> (usize, bool) {
        let [first, second, ..] = *line;
        let in_second = same(second, *key);
        (2 + usize::from(in_second), same(first, *key) | in_second)
    }

    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        work.run()
    }
}
