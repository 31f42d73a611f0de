//! Arbitrary bytes as a `.tiktoken` file: an error that says something, or a vocabulary that comes
//! back as it was written.

#![no_main]

use bpe_core::{ReadLimits, tiktoken};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    // All 256 bytes are asked for, which a fuzzer would take long to find: half of the inputs get
    // them for nothing.
    let mut content = Vec::new();
    if file.first().is_some_and(|byte| byte % 2 == 0) {
        let bytes = bpe_core::Vocabulary::new((0..=255_u8).map(|byte| (u32::from(byte), [byte])));
        content.extend_from_slice(tiktoken::write(&bytes.expect("valid")).as_bytes());
        content.extend_from_slice(&file[1..]);
    } else {
        content.extend_from_slice(file);
    }
    match tiktoken::read(&content, &ReadLimits::default()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(vocabulary) => {
            let written = tiktoken::write(&vocabulary);
            let again = tiktoken::read(written.as_bytes(), &ReadLimits::default());
            assert!(
                again
                    .expect("what was written")
                    .iter()
                    .eq(vocabulary.iter())
            );
        }
    }
});
