//! Arbitrary bytes as a `.model` file of SentencePiece: an error that says something, or a pipeline that
//! encodes and decodes whatever comes.

#![no_main]

use bytepair::{Pipeline, ReadLimits, Specials};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    match Pipeline::from_sentencepiece_model(file, &ReadLimits::default()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(pipeline) => {
            for specials in [Specials::AsText, Specials::AllowAll] {
                let pipeline = pipeline.with_specials(specials).expect("no names");
                for text in ["abc ab low", "  aéx\n😀<s> ", "▁▁▁ a", ""] {
                    let Ok(encoding) = pipeline.encode_with_offsets(text) else {
                        continue; // A character that no token stands for.
                    };
                    assert_eq!(pipeline.encode(text).expect("as before"), encoding.ids);
                    for range in &encoding.byte_ranges {
                        assert!(text.get(range.clone()).is_some(), "{range:?} of {text:?}");
                    }
                    let decoded = pipeline.decode(&encoding.ids).expect("its own ids");
                    let mut stream = pipeline.decode_stream();
                    let mut streamed = String::new();
                    for id in encoding.ids {
                        streamed += stream.push(id).expect("its own id");
                    }
                    assert_eq!(streamed + &stream.finish(), decoded);
                }
            }
        }
    }
});
