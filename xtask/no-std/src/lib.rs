//! Proves that bpe-core, bpe-incremental and what they depend on need no `std`: this library has a panic handler, and
//! so would have two if `std` were linked, which the compiler refuses. Build it; there is nothing to
//! run.

#![no_std]

use core::panic::PanicInfo;

use bpe_core::{CanonicalForm, Dictionary, ReadLimits, gpt2, tiktoken};
use bpe_incremental::LastTokenEngine;

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

/// The last-token engine, as a caller without `std` builds it.
pub fn last_token(file: &[u8]) -> Option<u32> {
    let vocabulary = tiktoken::read(file, &ReadLimits::default()).ok()?;
    let dictionary = Dictionary::from_ranks(vocabulary).ok()?;
    let engine = LastTokenEngine::new(&CanonicalForm::new(&dictionary).into()).ok()?;
    engine.history().push(b'a').ok()
}
