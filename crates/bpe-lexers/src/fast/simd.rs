//! The instruction sets of x86-64: the only module of this crate with `unsafe`.
//!
//! Everything here has a safe twin, [`Portable`](super::masks::Portable), with which the tests, a
//! fuzz target and `cargo xtask verify` compare it. A block is `unsafe` for one of three reasons:
//!
//! * it calls a function that needs a processor with certain instructions. A value of [`Avx2`] or
//!   [`Avx512`] is the proof that they are there: `detect` is the only way to get one. SSE2 is part
//!   of every x86-64 processor;
//! * it loads a vector from a pointer or stores one, each time one into an array that is long enough;
//! * it is an assembler block without an instruction ([`as_integer`]).

mod avx512;

pub(super) use self::avx512::Avx512;

use core::arch::asm;
use core::arch::x86_64::*;

use super::masks::{Masks, Tier};
use super::table::ClassTable;
use super::window::{self, Lexing};

/// The same bits, of which the compiler forgets that they come from vectors.
///
/// Otherwise it does the shifts and ands of `window` on vectors of 64 bytes, with an instruction or two for
/// each byte, which makes o200k with AVX2 half as fast.
#[inline(always)]
fn as_integer(mut bits: u64) -> u64 {
    // SAFETY: no instruction, no memory, no flags; the register keeps its value.
    unsafe { asm!("/* {0} */", inout(reg) bits, options(pure, nomem, nostack, preserves_flags)) };
    bits
}

/// A processor with AVX2 and the bit instructions that came with it.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the proof that this processor has the instructions, if it has.
    pub(super) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("popcnt");
        there.then_some(Self(()))
    }

    /// As [`window::ends`], compiled for this instruction set.
    pub(super) fn ends<L: Lexing>(
        self,
        table: &ClassTable,
        text: &[u8],
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) {
        // SAFETY: a value of this type exists, so the processor has the features of the function.
        unsafe { ends_avx2::<L>(self, table, text, start, limit, ends) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn ends_avx2<L: Lexing>(
    tier: Avx2,
    table: &ClassTable,
    text: &[u8],
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) {
    window::ends::<L, Avx2>(tier, table, text, start, limit, ends);
}

impl Tier for Avx2 {
    #[inline(always)]
    fn masks(self, bytes: &[u8; 64]) -> Masks {
        // SAFETY: a value of this type exists, so the processor has AVX2.
        unsafe { masks_avx2(bytes) }
    }

    #[inline(always)]
    fn caseless(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: a value of this type exists, so the processor has AVX2.
        unsafe { caseless_avx2(bytes) }
    }

    #[inline(always)]
    fn han(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: a value of this type exists, so the processor has AVX2.
        unsafe { han_avx2(bytes) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_avx2(bytes: &[u8; 64]) -> [__m256i; 2] {
    let start = bytes.as_ptr().cast::<__m256i>();
    // SAFETY: the array has 64 bytes, so both loads of 32 are inside it; neither needs alignment.
    unsafe { [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn bits_avx2(low: __m256i, high: __m256i) -> u64 {
    let low = u64::from(_mm256_movemask_epi8(low) as u32);
    let high = u64::from(_mm256_movemask_epi8(high) as u32);
    as_integer(low | high << 32)
}

/// Which bytes are `byte`?
#[inline]
#[target_feature(enable = "avx2")]
fn equal_avx2([low, high]: [__m256i; 2], byte: u8) -> u64 {
    let byte = _mm256_set1_epi8(byte as i8);
    bits_avx2(_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte))
}

/// Which bytes are `first..=last`?
#[inline]
#[target_feature(enable = "avx2")]
fn between_avx2([low, high]: [__m256i; 2], first: u8, last: u8) -> u64 {
    let start = _mm256_set1_epi8(first as i8);
    let width = _mm256_set1_epi8((last - first) as i8);
    let low = _mm256_sub_epi8(low, start);
    let high = _mm256_sub_epi8(high, start);
    bits_avx2(
        _mm256_cmpeq_epi8(_mm256_min_epu8(low, width), low),
        _mm256_cmpeq_epi8(_mm256_min_epu8(high, width), high),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn masks_avx2(bytes: &[u8; 64]) -> Masks {
    let halves = load_avx2(bytes);
    let [low, high] = halves;
    let newline = equal_avx2(halves, b'\r') | equal_avx2(halves, b'\n');
    let lead = _mm256_set1_epi8(0xC0_u8 as i8);
    Masks {
        upper: between_avx2(halves, b'A', b'Z'),
        lower: between_avx2(halves, b'a', b'z'),
        digit: between_avx2(halves, b'0', b'9'),
        blank: equal_avx2(halves, b' '),
        newline,
        white: between_avx2(halves, b'\t', b'\r') & !newline,
        apostrophe: equal_avx2(halves, b'\''),
        slash: equal_avx2(halves, b'/'),
        control: (between_avx2(halves, 0, 0x1F) & !between_avx2(halves, b'\t', b'\r'))
            | equal_avx2(halves, 0x7F),
        non_ascii: bits_avx2(low, high),
        // Less than 0xC0 as signed bytes: 0x80 to 0xBF.
        continuation: bits_avx2(_mm256_cmpgt_epi8(lead, low), _mm256_cmpgt_epi8(lead, high)),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn caseless_avx2(bytes: &[u8; 64]) -> u64 {
    let halves = load_avx2(bytes);
    // E5 to E9: U+5000 to U+9FFF; EB and EC: U+B000 to U+CFFF; E4 and B8 to BF: U+4E00 to U+4FFF.
    let e4 = equal_avx2(halves, 0xE4) & (between_avx2(halves, 0xB8, 0xBF) >> 1);
    between_avx2(halves, 0xE5, 0xE9) | between_avx2(halves, 0xEB, 0xEC) | e4
}

#[inline]
#[target_feature(enable = "avx2")]
fn han_avx2(bytes: &[u8; 64]) -> u64 {
    let halves = load_avx2(bytes);
    // As above, and E9 with 80 to BD: U+9000 to U+9F7F.
    let e4 = equal_avx2(halves, 0xE4) & (between_avx2(halves, 0xB8, 0xBF) >> 1);
    let e9 = equal_avx2(halves, 0xE9) & (between_avx2(halves, 0x80, 0xBD) >> 1);
    between_avx2(halves, 0xE5, 0xE8) | e4 | e9
}

/// Any x86-64 processor.
#[derive(Clone, Copy)]
pub(super) struct Sse2;

impl Tier for Sse2 {
    #[inline(always)]
    fn masks(self, bytes: &[u8; 64]) -> Masks {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { masks_sse2(bytes) }
    }

    #[inline(always)]
    fn caseless(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { caseless_sse2(bytes) }
    }

    #[inline(always)]
    fn han(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { han_sse2(bytes) }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load_sse2(bytes: &[u8; 64]) -> [__m128i; 4] {
    let start = bytes.as_ptr().cast::<__m128i>();
    // SAFETY: the array has 64 bytes, so the four loads of 16 are inside it; none needs alignment.
    unsafe {
        [
            _mm_loadu_si128(start),
            _mm_loadu_si128(start.add(1)),
            _mm_loadu_si128(start.add(2)),
            _mm_loadu_si128(start.add(3)),
        ]
    }
}

/// As [`bits_avx2`].
#[inline]
#[target_feature(enable = "sse2")]
fn bits_sse2(tested: [__m128i; 4]) -> u64 {
    let mut bits = 0;
    for (number, part) in tested.into_iter().enumerate() {
        bits |= u64::from(_mm_movemask_epi8(part) as u16) << (16 * number);
    }
    as_integer(bits)
}

/// As [`equal_avx2`].
#[inline]
#[target_feature(enable = "sse2")]
fn equal_sse2(mut parts: [__m128i; 4], byte: u8) -> u64 {
    let byte = _mm_set1_epi8(byte as i8);
    for part in &mut parts {
        *part = _mm_cmpeq_epi8(*part, byte);
    }
    bits_sse2(parts)
}

/// As [`between_avx2`].
#[inline]
#[target_feature(enable = "sse2")]
fn between_sse2(mut parts: [__m128i; 4], first: u8, last: u8) -> u64 {
    let start = _mm_set1_epi8(first as i8);
    let width = _mm_set1_epi8((last - first) as i8);
    for part in &mut parts {
        let moved = _mm_sub_epi8(*part, start);
        *part = _mm_cmpeq_epi8(_mm_min_epu8(moved, width), moved);
    }
    bits_sse2(parts)
}

#[inline]
#[target_feature(enable = "sse2")]
fn masks_sse2(bytes: &[u8; 64]) -> Masks {
    let parts = load_sse2(bytes);
    let newline = equal_sse2(parts, b'\r') | equal_sse2(parts, b'\n');
    let lead = _mm_set1_epi8(0xC0_u8 as i8);
    let mut continuation = parts;
    for part in &mut continuation {
        *part = _mm_cmpgt_epi8(lead, *part);
    }
    Masks {
        upper: between_sse2(parts, b'A', b'Z'),
        lower: between_sse2(parts, b'a', b'z'),
        digit: between_sse2(parts, b'0', b'9'),
        blank: equal_sse2(parts, b' '),
        newline,
        white: between_sse2(parts, b'\t', b'\r') & !newline,
        apostrophe: equal_sse2(parts, b'\''),
        slash: equal_sse2(parts, b'/'),
        control: (between_sse2(parts, 0, 0x1F) & !between_sse2(parts, b'\t', b'\r'))
            | equal_sse2(parts, 0x7F),
        non_ascii: bits_sse2(parts),
        continuation: bits_sse2(continuation),
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn caseless_sse2(bytes: &[u8; 64]) -> u64 {
    let parts = load_sse2(bytes);
    let e4 = equal_sse2(parts, 0xE4) & (between_sse2(parts, 0xB8, 0xBF) >> 1);
    between_sse2(parts, 0xE5, 0xE9) | between_sse2(parts, 0xEB, 0xEC) | e4
}

#[inline]
#[target_feature(enable = "sse2")]
fn han_sse2(bytes: &[u8; 64]) -> u64 {
    let parts = load_sse2(bytes);
    let e4 = equal_sse2(parts, 0xE4) & (between_sse2(parts, 0xB8, 0xBF) >> 1);
    let e9 = equal_sse2(parts, 0xE9) & (between_sse2(parts, 0x80, 0xBD) >> 1);
    between_sse2(parts, 0xE5, 0xE8) | e4 | e9
}
