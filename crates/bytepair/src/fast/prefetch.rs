//! A hint to the processor that memory will be read soon: the only module of this crate with `unsafe`.
//!
//! The caches of a thread and the tables of a vocabulary are larger than a second-level cache, so most
//! reads of them wait for the third. The places of many pieces are known before any of them is read;
//! asking for all of them first makes the waits overlap.
//!
//! Its safe twin is to do nothing, which is what other processors do here: a hint changes no value.
//! `RUSTFLAGS="--cfg bytepair_no_prefetch"` builds that, to be compared.

/// Asks for the line of memory of `slice[index]`, if there is such an element.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(bytepair_no_prefetch)))]
    if let Some(element) = slice.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 processor, reads and writes nothing that a
        // program can see, and faults at no address; this one is that of a living element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(bytepair_no_prefetch))))]
    let _ = (slice, index);
}
