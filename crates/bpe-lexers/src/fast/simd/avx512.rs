//! 64 bytes as one vector, and a mask of 64 bits for each comparison.

use core::arch::x86_64::*;

use super::as_integer;
use crate::fast::masks::{Masks, Tier};
use crate::fast::table::ClassTable;
use crate::fast::window::{self, Lexing};

/// A processor with AVX-512 as it has been since bytes can be compressed (F, BW, VBMI2), and what
/// [`Avx2`](super::Avx2) has.
#[derive(Clone, Copy)]
pub(in crate::fast) struct Avx512(());

impl Avx512 {
    /// Returns the proof that this processor has the instructions, if it has.
    pub(in crate::fast) fn detect() -> Option<Self> {
        let there = super::Avx2::detect().is_some()
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vbmi2")
            // Places are written eight at a time.
            && size_of::<usize>() == size_of::<u64>();
        there.then_some(Self(()))
    }

    /// As [`window::ends`], compiled for this instruction set.
    pub(in crate::fast) fn ends<L: Lexing>(
        self,
        table: &ClassTable,
        text: &[u8],
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) {
        // SAFETY: a value of this type exists, so the processor has the features of the function.
        unsafe { ends_avx512::<L>(self, table, text, start, limit, ends) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vbmi2")]
fn ends_avx512<L: Lexing>(
    tier: Avx512,
    table: &ClassTable,
    text: &[u8],
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) {
    window::ends::<L, Avx512>(tier, table, text, start, limit, ends);
}

impl Tier for Avx512 {
    #[inline(always)]
    fn masks(self, bytes: &[u8; 64]) -> Masks {
        // SAFETY: a value of this type exists, so the processor has the features of the function.
        unsafe { masks_avx512(bytes) }
    }

    #[inline(always)]
    fn caseless(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: as above.
        unsafe { caseless_avx512(bytes) }
    }

    #[inline(always)]
    fn han(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: as above.
        unsafe { han_avx512(bytes) }
    }

    #[inline(always)]
    fn prefetch(self, text: &[u8], place: usize) {
        if let Some(byte) = text.get(place) {
            // SAFETY: the instruction is part of every x86-64 processor, reads and writes nothing that a
            // program can see, and faults at no address; this one is that of a living byte.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(byte).cast()) }
        }
    }

    #[inline(always)]
    fn places(self, bits: u64, from: usize, room: &mut [usize; 64]) {
        // SAFETY: as above; and places have 64 bits, or there were no value of this type.
        unsafe { places_avx512(bits, from, room) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has the 64 bytes of the load, which needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Which bytes are `byte`?
#[inline]
#[target_feature(enable = "avx512bw")]
fn equal(bytes: __m512i, byte: u8) -> u64 {
    as_integer(_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8)))
}

/// Which bytes are `first..=last`?
#[inline]
#[target_feature(enable = "avx512bw")]
fn between(bytes: __m512i, first: u8, last: u8) -> u64 {
    let moved = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
    let width = _mm512_set1_epi8((last - first) as i8);
    as_integer(_mm512_cmple_epu8_mask(moved, width))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn masks_avx512(bytes: &[u8; 64]) -> Masks {
    let bytes = load(bytes);
    let newline = equal(bytes, b'\r') | equal(bytes, b'\n');
    let lead = _mm512_set1_epi8(0xC0_u8 as i8);
    Masks {
        upper: between(bytes, b'A', b'Z'),
        lower: between(bytes, b'a', b'z'),
        digit: between(bytes, b'0', b'9'),
        blank: equal(bytes, b' '),
        newline,
        white: between(bytes, b'\t', b'\r') & !newline,
        apostrophe: equal(bytes, b'\''),
        slash: equal(bytes, b'/'),
        control: (between(bytes, 0, 0x1F) & !between(bytes, b'\t', b'\r')) | equal(bytes, 0x7F),
        non_ascii: as_integer(_mm512_movepi8_mask(bytes)),
        // Less than 0xC0 as signed bytes: 0x80 to 0xBF.
        continuation: as_integer(_mm512_cmpgt_epi8_mask(lead, bytes)),
    }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn caseless_avx512(bytes: &[u8; 64]) -> u64 {
    let bytes = load(bytes);
    // As `caseless_avx2`.
    let e4 = equal(bytes, 0xE4) & (between(bytes, 0xB8, 0xBF) >> 1);
    between(bytes, 0xE5, 0xE9) | between(bytes, 0xEB, 0xEC) | e4
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn han_avx512(bytes: &[u8; 64]) -> u64 {
    let bytes = load(bytes);
    // As `han_avx2`.
    let e4 = equal(bytes, 0xE4) & (between(bytes, 0xB8, 0xBF) >> 1);
    let e9 = equal(bytes, 0xE9) & (between(bytes, 0x80, 0xBD) >> 1);
    between(bytes, 0xE5, 0xE8) | e4 | e9
}

/// 0, 1, 2 and so on.
static NUMBERS: [u8; 64] = {
    let mut numbers = [0; 64];
    let mut number = 0;
    while number < 64 {
        numbers[number] = number as u8;
        number += 1;
    }
    numbers
};

/// # Safety
///
/// `usize` has 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
unsafe fn places_avx512(bits: u64, from: usize, room: &mut [usize; 64]) {
    let mut places = [0_u8; 64];
    let packed = _mm512_maskz_compress_epi8(bits, load(&NUMBERS));
    // SAFETY: the array has the 64 bytes of the store, which needs no alignment.
    unsafe { _mm512_storeu_si512(places.as_mut_ptr().cast(), packed) };
    let from = _mm512_set1_epi64(from as i64);
    let (eights, _) = places.as_chunks::<8>();
    let (rooms, _) = room.as_chunks_mut::<8>();
    let count = bits.count_ones() as usize;
    for (number, (eight, room)) in eights.iter().zip(rooms).enumerate() {
        // Most windows have between eight and sixteen.
        if number >= 2 && 8 * number >= count {
            break;
        }
        let eight = _mm_cvtsi64_si128(i64::from_le_bytes(*eight));
        let eight = _mm512_add_epi64(_mm512_cvtepu8_epi64(eight), from);
        // SAFETY: the array has the eight numbers of 64 bits of the store, which needs no alignment.
        unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), eight) };
    }
}
