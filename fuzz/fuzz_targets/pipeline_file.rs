//! Arbitrary bytes as a `tokenizer.json` with every step: an error that says something, or a pipeline
//! that encodes what it can and is written back as what it is.

#![no_main]

use bytepair::{Pipeline, ReadLimits, Specials};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let limits = ReadLimits::default();
    let pipeline = match Pipeline::from_tokenizer_json(file, &limits) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
        Ok(pipeline) => pipeline
            .with_specials(Specials::AllowAll)
            .expect("no names"),
    };
    let written = pipeline.to_tokenizer_json();
    let again = Pipeline::from_tokenizer_json(written.as_bytes(), &limits).expect("our own file");
    let again = again.with_specials(Specials::AllowAll).expect("no names");
    for text in [
        "abc ab low",
        "aéx\n😀<|a|> \u{0301}\u{2581}Ab",
        "",
        "  1-. ",
    ] {
        let ids = pipeline.encode(text).ok();
        assert_eq!(again.encode(text).ok(), ids);
        if let Some(ids) = ids {
            assert_eq!(pipeline.count(text).ok(), Some(ids.len()));
            pipeline.decode(&ids).expect("its own ids");
        }
    }
});
