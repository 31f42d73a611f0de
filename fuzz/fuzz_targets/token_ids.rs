//! Arbitrary ids: decoding at once and as a stream say the same, and no id is swallowed.

#![no_main]

use bytepair::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|ids: Vec<u32>| {
    let tokenizer = Tokenizer::cl100k_base();
    // Most 32-bit numbers are no ids: half of them are brought into range.
    let ids: Vec<u32> = ids
        .iter()
        .map(|&id| if id % 2 == 0 { id / 2 % 100_280 } else { id })
        .collect();
    let mut stream = tokenizer.decode_stream();
    let mut joined = String::new();
    for (index, &id) in ids.iter().enumerate() {
        match stream.push(id) {
            Ok(text) => joined.push_str(text),
            Err(error) => {
                assert_eq!((error.id(), error.index()), (Some(id), Some(index)));
                assert!(tokenizer.token_bytes(id).is_none());
                let error = tokenizer.decode_lossy(&ids).expect_err("the same id");
                assert_eq!((error.id(), error.index()), (Some(id), Some(index)));
                return;
            }
        }
        assert!(stream.held_bytes() <= 3);
    }
    joined.push_str(&stream.finish());
    assert_eq!(tokenizer.decode_lossy(&ids), Ok(joined));
});
