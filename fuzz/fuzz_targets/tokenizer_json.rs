//! Arbitrary bytes as a `tokenizer.json`: an error that says something, or a tokenizer that loses
//! nothing.

#![no_main]

use bytepair::{ReadLimits, Specials, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    match Tokenizer::from_tokenizer_json(file, &ReadLimits::default()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(tokenizer) => {
            for specials in [Specials::AsText, Specials::AllowAll] {
                let tokenizer = tokenizer.with_specials(specials).expect("no names");
                for text in ["abc ab low", "aéx\n😀<|a|>", ""] {
                    let Ok(ids) = tokenizer.encode(text) else {
                        continue; // A character that no token stands for.
                    };
                    assert_eq!(tokenizer.count(text).expect("as before"), ids.len());
                    if tokenizer.canonical().atoms() == bpe_core::Atoms::Bytes {
                        assert_eq!(tokenizer.decode(&ids).expect("its own ids"), text);
                    }
                }
            }
        }
    }
});
