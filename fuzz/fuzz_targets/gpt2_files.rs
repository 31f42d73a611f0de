//! Arbitrary bytes as `vocab.json` and `merges.txt`, with a zero byte between them.

#![no_main]

use bpe_core::{ReadLimits, byte_level, gpt2};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|files: &[u8]| {
    let end = files.iter().position(|&byte| byte == 0);
    let (vocab, merges) = files.split_at(end.unwrap_or(files.len()));
    let merges = merges.get(1..).unwrap_or_default();
    let limits = ReadLimits::default();
    // As for `.tiktoken`: the 256 bytes for nothing.
    let mut content = vocab.to_vec();
    if vocab.first() == Some(&b'+') {
        let bytes: Vec<String> = (0..=255_u8)
            .map(|byte| {
                let text = byte_level::to_char(byte).to_string();
                format!("{text:?}:{byte}")
            })
            .collect();
        content = format!("{{{}", bytes.join(",")).into_bytes();
        content.extend_from_slice(&vocab[1..]);
    }
    match gpt2::read(&content, merges, &limits) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(dictionary) => {
            let (vocab, merges) = (
                gpt2::write_vocab(&dictionary),
                gpt2::write_merges(&dictionary),
            );
            let again = gpt2::read(vocab.as_bytes(), merges.as_bytes(), &limits);
            let again = again.expect("what was written");
            assert_eq!(again.rules(), dictionary.rules());
            assert!(again.vocabulary().iter().eq(dictionary.vocabulary().iter()));
        }
    }
});
