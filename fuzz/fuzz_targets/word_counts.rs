//! Arbitrary bytes as a file of word counts: an error that says something, or counts that are written as
//! they were read, and that train without a panic.

#![no_main]

use bpe_train::{Algorithm, TrainOptions, WordCounts, train};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let mut content = b"bpwc\x01".to_vec();
    content.extend_from_slice(file);
    let mut counts = WordCounts::new();
    if let Err(error) = counts.add_file(&content[..], 1 << 12) {
        assert!(!error.to_string().is_empty());
        return;
    }
    let mut written = Vec::new();
    counts.write_to(&mut written).expect("memory");
    let mut back = WordCounts::new();
    back.add_file(&written[..], 1 << 12).expect("ours");
    assert_eq!(back.len(), counts.len());
    let mut results = Algorithm::ALL.iter().map(|&algorithm| {
        let options = TrainOptions::new(256 + 20).algorithm(algorithm);
        let training = train(&counts, &options).ok()?;
        let merges = training.merges();
        Some(merges.map(|merge| merge.token.to_vec()).collect::<Vec<_>>())
    });
    let first = results.next();
    assert!(results.all(|other| Some(other) == first));
});
