//! Arbitrary bytes as a `tekken.json`: an error that says something, or a tokenizer that loses nothing.

#![no_main]

use bytepair::{ReadLimits, Specials, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    match Tokenizer::from_tekken(file, &ReadLimits::default()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(tokenizer) => {
            for specials in [Specials::AsText, Specials::AllowAll] {
                let tokenizer = tokenizer.with_specials(specials).expect("no names");
                for text in ["abc ab low", "aéx\n😀<s>", ""] {
                    let Ok(ids) = tokenizer.encode(text) else {
                        continue; // A pattern that takes too many steps.
                    };
                    assert_eq!(tokenizer.decode(&ids).expect("its own ids"), text);
                }
            }
        }
    }
});
