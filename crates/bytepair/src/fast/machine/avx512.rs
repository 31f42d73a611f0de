//! The loops of a block with AVX-512.

use core::arch::x86_64::*;

use super::super::cache::ShortLine;
use super::{Tier, Work};

/// A processor with AVX-512 (F, BW, VL) and BMI1, BMI2.
#[derive(Clone, Copy)]
pub(in crate::fast) struct Avx512(());

impl Avx512 {
    /// Returns the proof that this processor has the instructions, if it has.
    pub(in crate::fast) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt");
        there.then_some(Self(()))
    }
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,lzcnt")]
fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

impl Tier for Avx512 {
    #[inline(always)]
    fn find(self, line: &ShortLine, key: &u128) -> (usize, bool) {
        // SAFETY: as in `run`.
        let found = unsafe { equal_eights(line, key) };
        let both = found & found >> 1 & 0b101;
        (2 + (both >> 2) as usize, both != 0)
    }

    #[inline(always)]
    fn run<W: Work>(self, work: W) -> W::Output {
        // SAFETY: a value of this type exists, so the processor has the features of the function.
        unsafe { run_avx512(work) }
    }
}

/// Which of the eight parts of a line are those of the key, twice beside each other.
#[inline]
#[target_feature(enable = "avx512f")]
fn equal_eights(line: &ShortLine, key: &u128) -> u32 {
    // SAFETY: a line has the 64 bytes of the load, a key the 16 of the other; neither needs alignment.
    let (line, key) = unsafe {
        (
            _mm512_loadu_si512(line.as_ptr().cast()),
            _mm_loadu_si128(core::ptr::from_ref(key).cast()),
        )
    };
    u32::from(_mm512_cmpeq_epi64_mask(line, _mm512_broadcast_i32x4(key)))
}
