//! Proves that bpe-core and what it depends on need no `std`: this library has a panic handler, and
//! so would have two if `std` were linked, which the compiler refuses. Build it; there is nothing to
//! run.

#![no_std]

use core::panic::PanicInfo;

use bpe_core::{ReadLimits, gpt2, tiktoken};

/// `alloc` needs an allocator.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Reaches every feature, so that all of it is linked.
pub fn readers(file: &[u8]) -> bool {
    let limits = ReadLimits::default();
    tiktoken::read(file, &limits).is_ok() || gpt2::read(file, file, &limits).is_ok()
}
