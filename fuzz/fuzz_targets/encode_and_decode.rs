//! Arbitrary bytes as text: the engines agree, nothing is lost, every call says the same.

#![no_main]

use std::sync::LazyLock;

use bpe_lexers::{FastLexer, InstructionSet};
use bytepair::{Algorithm, Engine, Specials, Tokenizer};
use libfuzzer_sys::fuzz_target;

struct Vocabulary {
    tokenizer: Tokenizer,
    /// With the slow engines.
    slow: Tokenizer,
    /// With each instruction set, in lexer and encoder, and few entries of a cache.
    sets: Vec<Tokenizer>,
}

static VOCABULARIES: LazyLock<Vec<Vocabulary>> = LazyLock::new(|| {
    ["r50k_base", "cl100k_base", "o200k_base"]
        .iter()
        .map(|name| {
            let tokenizer = Tokenizer::from_name(name).expect("embedded");
            let slow = tokenizer
                .to_builder()
                .lexer(Engine::Transcription)
                .encoder(Algorithm::BufferSweep)
                .build()
                .expect("known parts");
            let pattern = &tokenizer.patterns()[0];
            let sets = InstructionSet::available().into_iter().map(|set| {
                let lexer = FastLexer::with_instructions(pattern, set).expect("a known pattern");
                let builder = tokenizer.to_builder().custom_lexers(vec![Box::new(lexer)]);
                builder.cache_bytes(1000).build().expect("known parts")
            });
            let sets = sets.collect();
            Vocabulary {
                tokenizer,
                slow,
                sets,
            }
        })
        .collect()
});

fuzz_target!(|text: &[u8]| {
    for vocabulary in VOCABULARIES.iter() {
        let Vocabulary {
            tokenizer,
            slow,
            sets,
        } = vocabulary;
        let ids = tokenizer.encode_bytes(text).expect("complete");
        assert_eq!(slow.encode_bytes(text).expect("complete"), ids);
        for set in sets {
            assert_eq!(set.encode_bytes(text).expect("complete"), ids);
        }
        assert_eq!(tokenizer.decode_bytes(&ids).expect("its own ids"), text);
        assert_eq!(tokenizer.count(text).expect("complete"), ids.len());
        let encoding = tokenizer.encode_with_offsets(text).expect("complete");
        assert_eq!(encoding.ids, ids);
        assert_eq!(
            encoding.byte_ranges.last().map_or(0, |range| range.end),
            text.len()
        );
        let limit = usize::from(text.first().copied().unwrap_or(0)) % 8;
        let (first, covered) = tokenizer.encode_up_to(text, limit).expect("complete");
        assert!(first.len() <= limit && ids.starts_with(&first));
        assert_eq!(
            tokenizer.decode_bytes(&first).expect("its own ids"),
            &text[..covered]
        );
        let all = tokenizer
            .with_specials(Specials::AllowAll)
            .expect("no names");
        let ids = all.encode_bytes(text).expect("complete");
        assert_eq!(all.decode_bytes(&ids).expect("its own ids"), text);
    }
});
