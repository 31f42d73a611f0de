//! Hints to the processor and to the system about memory.
//!
//! The caches of a thread and the tables of a vocabulary are larger than a second-level cache, so most
//! reads of them wait for the third. The places of many pieces are known before any of them is read;
//! asking for all of them first makes the waits overlap. They are larger than what a processor knows of
//! page tables, too, so large pages spare it from reading those (docs/benchmarks has what both give).
//!
//! Their safe twins are to do nothing, which is what other processors and systems do here: a hint changes
//! no value. `RUSTFLAGS="--cfg bytepair_no_hints"` builds that, to be compared.

/// Asks for the line of memory of `slice[index]`, if there is such an element.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(bytepair_no_hints)))]
    if let Some(element) = slice.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 processor, reads and writes nothing that a
        // program can see, and faults at no address; this one is that of a living element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(bytepair_no_hints))))]
    let _ = (slice, index);
}

/// Asks the system to back `memory`, which nobody has written to yet, with large pages, if it is as long as
/// one. It may refuse.
pub(in crate::fast) fn prefer_large_pages<T>(memory: &[T]) {
    #[cfg(all(
        target_os = "linux",
        target_pointer_width = "64",
        not(bytepair_no_hints)
    ))]
    {
        use rustix::mm::{Advice, madvise};
        /// Of a large page; other processors have larger ones, for which this is harmless.
        const LARGE: usize = 2 << 20;
        let bytes = size_of_val(memory);
        let page = rustix::param::page_size();
        if bytes < LARGE {
            return;
        }
        // From the start of the first page on: what stands before the memory in it is the allocator's.
        let before = memory.as_ptr() as usize % page;
        let start = memory.as_ptr().cast::<u8>().wrapping_sub(before);
        // SAFETY: this advice changes no byte and no right of access, of the memory itself or of what shares
        // its first and last pages; and all of these pages are there, since they hold bytes of a living slice.
        let _ = unsafe {
            madvise(
                start.cast_mut().cast(),
                (before + bytes).next_multiple_of(page),
                Advice::LinuxHugepage,
            )
        };
    }
    #[cfg(not(all(
        target_os = "linux",
        target_pointer_width = "64",
        not(bytepair_no_hints)
    )))]
    let _ = memory;
}
