//! Arbitrary bytes as a compact file: an error that says something, or a form that encoders can use.

#![no_main]

use std::sync::Arc;

use bpe_core::{Algorithm, CanonicalForm, ReadLimits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let limits = ReadLimits {
        file: 1 << 20,
        ..ReadLimits::default()
    };
    let mut content = b"bpec\x01".to_vec();
    content.extend_from_slice(file);
    match CanonicalForm::from_compact(&content, &limits) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(form) => {
            let form = Arc::new(form);
            for algorithm in Algorithm::ALL {
                let Ok(mut encoder) = algorithm.encoder(&form) else {
                    continue;
                };
                let mut tokens = Vec::new();
                if encoder
                    .encode_span(&file[..file.len().min(64)], &mut tokens)
                    .is_ok()
                {
                    let bytes = form
                        .vocabulary()
                        .decode_bytes(&tokens)
                        .expect("its own ids");
                    assert_eq!(bytes, &file[..file.len().min(64)], "{algorithm}");
                }
            }
        }
    }
});
