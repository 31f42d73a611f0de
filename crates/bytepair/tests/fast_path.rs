//! The fast path gives the tokens, numbers and ranges of the plain path, with caches of any size.

use bpe_lexers::{FastLexer, InstructionSet};
use bytepair::{
    Algorithm, Dictionary, EncodeError, Encoding, Pattern, Tokenizer, TokenizerBuilder, Vocabulary,
};
use proptest::prelude::*;

/// Plain; fast with caches of a few entries, of some, and of the usual size; and with each instruction set.
fn paths(tokenizer: &Tokenizer) -> (Tokenizer, Vec<Tokenizer>) {
    let plain = tokenizer.to_builder().encoder(Algorithm::MergeHeap);
    let caches = [0, 1000, 1 << 16, 3 << 20].map(|bytes| {
        let builder = tokenizer.to_builder().cache_bytes(bytes);
        builder.build().expect("parts that were one")
    });
    let [pattern] = tokenizer.patterns() else {
        panic!("one pattern");
    };
    let sets = InstructionSet::available().into_iter().map(|set| {
        let lexer = FastLexer::with_instructions(pattern, set).expect("a known pattern");
        let builder = tokenizer.to_builder().custom_lexers(vec![Box::new(lexer)]);
        builder.build().expect("parts that were one")
    });
    let fast = caches.into_iter().chain(sets).collect();
    (plain.build().expect("parts that were one"), fast)
}

/// The same result, where it is one, from every call of every path.
fn check(plain: &Tokenizer, fast: &[Tokenizer], text: &[u8]) {
    let expected = plain.encode_with_offsets(text).map_err(shown);
    for tokenizer in fast {
        // Twice: the second time from the cache.
        for _ in 0..2 {
            let found = tokenizer.encode_with_offsets(text).map_err(shown);
            assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(text));
            let ids = expected.clone().map(|Encoding { ids, .. }| ids);
            assert_eq!(tokenizer.encode_bytes(text).map_err(shown), ids);
            assert_eq!(
                tokenizer.count(text).map_err(shown),
                ids.map(|ids| ids.len())
            );
        }
    }
}

fn shown(error: EncodeError) -> String {
    error.to_string()
}

#[test]
fn corpora_have_the_tokens_of_the_plain_path() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-data/corpora/");
    for encoding in ["r50k_base", "cl100k_base", "o200k_base"] {
        let (plain, fast) = paths(&Tokenizer::from_name(encoding).expect("embedded"));
        for name in [
            "english",
            "chinese",
            "code",
            "mixed",
            "structured",
            "adversarial",
        ] {
            let path = format!("{folder}{name}.txt");
            let text = std::fs::read(path).expect("a corpus of the repository");
            check(&plain, &fast, &text[..text.len().min(150_000)]);
        }
    }
}

#[test]
fn pieces_of_every_length_and_number_of_tokens_repeat() {
    let (plain, fast) = paths(&Tokenizer::o200k_base());
    let mut text = String::new();
    for length in 1..140 {
        for letters in ["a", "-", "xq", "zqv7", "é", "中", "ัก", "😀", "the"] {
            let piece: String = letters.chars().cycle().take(length).collect();
            text.push_str(&piece);
            text.push(' ');
            text.push_str(&piece);
            text.push('\n');
        }
    }
    check(&plain, &fast, text.as_bytes());
}

#[test]
fn bytes_without_a_token_are_the_same_error() {
    // A vocabulary without most bytes.
    let tokens = ["a", "b", " ", "ab", " ab", "aba"];
    let vocabulary = Vocabulary::new((0..).zip(tokens)).expect("distinct");
    let dictionary = Dictionary::from_ranks(vocabulary).expect("valid");
    let tokenizer = TokenizerBuilder::new(&dictionary)
        .pattern(Pattern::o200k())
        .build()
        .expect("valid");
    let (plain, fast) = paths(&tokenizer);
    check(&plain, &fast, b"ab aba ab abab bbb");
    let text = format!("{}ab abx", "ab aba ".repeat(1000));
    check(&plain, &fast, text.as_bytes());
    // What stands before the error is there where a limit is reached first.
    for limit in [0, 1, 1500, 2000, 5000] {
        let expected = plain.count_up_to(&text, limit).map_err(shown);
        for tokenizer in &fast {
            let found = tokenizer.count_up_to(&text, limit).map_err(shown);
            assert_eq!(found, expected);
        }
    }
}

/// All bytes, and tokens that are made of two earlier ones: mostly of parts of few characters, so that
/// rules meet inside characters, between them, and from the one into the other.
fn dictionary(choices: &[(usize, usize)]) -> Dictionary {
    let bytes = [
        0xE4, 0xB8, 0xAD, 0xBD, 0xA0, 0xC3, 0xA9, b' ', b'a', 0xE0, 0x80, 0xF0,
    ];
    let mut tokens: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
    for &(left, right) in choices {
        let pick = |choice: usize| &tokens[choice % tokens.len()];
        let token = [pick(left).as_slice(), pick(right)].concat();
        if token.len() < 13 && !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let rest = (0..=255_u8).filter(|byte| !bytes.contains(byte));
    tokens.splice(0..0, rest.map(|byte| vec![byte]));
    let vocabulary = Vocabulary::new((0..).zip(tokens)).expect("distinct");
    Dictionary::from_ranks(vocabulary).expect("every token is made of two")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn any_dictionary_has_the_tokens_of_the_plain_path(
        choices in prop::collection::vec(any::<(usize, usize)>(), 1..60),
        text in prop::collection::vec(prop_oneof![
            8 => prop::sample::select(vec!["中", "你", "㽍", "ä", "é", " ", "a", "中", "你", "丠"])
                .prop_map(|part| part.as_bytes().to_vec()),
            1 => prop::sample::select(vec![0xE4, 0xB8, 0xAD, 0xBD, 0xA0, 0xC3, 0xE0, 0xF0])
                .prop_map(|byte| vec![byte]),
        ], 1..30)
    ) {
        let tokenizer = TokenizerBuilder::new(&dictionary(&choices))
            .pattern(Pattern::o200k())
            .build()
            .expect("valid");
        let (plain, fast) = paths(&tokenizer);
        check(&plain, &fast, &text.concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_have_the_tokens_of_the_plain_path(
        parts in prop::collection::vec(prop_oneof![
            "\\PC{0,40}".prop_map(String::into_bytes),
            "[a-c ']{0,60}".prop_map(String::into_bytes),
            "[\u{4e00}-\u{4e20}\u{3042}-\u{3050}A-Z]{0,30}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..20),
        ], 0..12)
    ) {
        thread_local! {
            static PATHS: (Tokenizer, Vec<Tokenizer>) = paths(&Tokenizer::o200k_base());
        }
        PATHS.with(|(plain, fast)| check(plain, fast, &parts.concat()));
    }
}

#[test]
fn a_tokenizer_is_made_and_used_on_a_thread_with_a_small_stack() {
    let tokenizer = Tokenizer::r50k_base().to_builder();
    let thread = std::thread::Builder::new().stack_size(192 << 10);
    let ids = thread.spawn(move || {
        let tokenizer = tokenizer.build().expect("a tokenizer");
        tokenizer.encode("Hello world").expect("tokens")
    });
    // What GPT-2's own encoder gives.
    let ids = ids.expect("a thread").join().expect("no panic");
    assert_eq!(ids, [15496, 995]);
}
