//! Special tokens: text by default, tokens where allowed, an error where forbidden.

use bytepair::{Specials, Tokenizer};

const END: u32 = 199_999;

fn o200k(specials: Specials) -> Tokenizer {
    Tokenizer::o200k_base()
        .with_specials(specials)
        .expect("known special tokens")
}

#[test]
fn the_text_of_a_special_token_is_text_by_default() {
    let tokenizer = Tokenizer::o200k_base();
    for text in [
        "<|endoftext|>",
        "a<|endoftext|>b",
        "<|endofprompt|><|endoftext|>",
    ] {
        let ids = tokenizer.encode(text).expect("text");
        assert!(ids.iter().all(|&id| !tokenizer.is_special(id)), "{text}");
        assert_eq!(tokenizer.decode(&ids).as_deref(), Ok(text));
        assert_eq!(tokenizer.count(text).expect("text"), ids.len());
    }
}

#[test]
fn allowed_special_tokens_are_tokens_at_both_ends_next_to_blanks_and_back_to_back() {
    let all = o200k(Specials::AllowAll);
    let plain = Tokenizer::o200k_base();
    let parts = [
        "<|endoftext|>",
        "x  ",
        "<|endoftext|>",
        "<|endoftext|>",
        "  y\n",
        "<|endoftext|>",
    ];
    let expected: Vec<u32> = parts
        .iter()
        .flat_map(|part| match part.starts_with('<') {
            true => vec![END],
            false => plain.encode(part).expect("text"),
        })
        .collect();
    assert_eq!(all.encode(&parts.concat()).expect("allowed"), expected);
    let encoding = all.encode_with_offsets(parts.concat()).expect("allowed");
    assert_eq!(encoding.byte_ranges[0], 0..13);
    assert_eq!(
        encoding.byte_ranges.last().map(|range| range.end),
        Some(parts.concat().len())
    );
}

#[test]
fn only_the_special_tokens_that_are_named_are_tokens() {
    let one = o200k(Specials::allow(["<|endofprompt|>"]));
    let ids = one.encode("<|endoftext|><|endofprompt|>").expect("text");
    assert_eq!(ids.last(), Some(&200_018));
    assert!(!ids.contains(&END));
    let error = Tokenizer::o200k_base()
        .with_specials(Specials::allow(["<|nosuch|>"]))
        .expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "special token \"<|nosuch|>\": the tokenizer has none of this text"
    );
}

#[test]
fn forbidden_special_tokens_are_reported_with_their_place_and_nothing_is_appended() {
    let strict = o200k(Specials::Forbid);
    let mut ids = vec![1];
    let error = strict
        .encode_into("naïve <|endofprompt|><|endoftext|>", &mut ids)
        .expect_err("forbidden");
    assert_eq!(error.byte_offset(), 7);
    assert_eq!(
        error.forbidden_special(),
        Some(("<|endofprompt|>", 200_018))
    );
    assert_eq!(ids, [1]);
    assert!(strict.count("<|endoftext|>").is_err());
    assert!(strict.encode("<|EndOfText|> <|endoftext |>").is_ok());
    let documents = ["fine", "not <|endoftext|>"];
    let error = strict.encode_batch(&documents).expect_err("forbidden");
    assert_eq!((error.document(), error.byte_offset()), (Some(1), 4));
}

#[test]
fn of_overlapping_special_tokens_the_leftmost_and_then_the_longest_counts() {
    let tokenizer = Tokenizer::o200k_base()
        .to_builder()
        .special_tokens([("<a>", 300_000), ("<a>>", 300_001), ("><b", 300_002)])
        .specials(Specials::AllowAll)
        .build()
        .expect("no clash");
    let ids = |text: &str| tokenizer.encode(text).expect("allowed");
    assert_eq!(ids("<a>"), [300_000]);
    assert_eq!(ids("<a>>"), [300_001]);
    assert_eq!(ids("<a>><b"), [&[300_001][..], &ids("<b")].concat());
    assert_eq!(ids("<a><b"), [&[300_000][..], &ids("<b")].concat());
    assert_eq!(ids("><b"), [300_002]);
}

#[test]
fn special_tokens_that_clash_are_refused() {
    let build = |text: &str, id: u32| {
        let builder = Tokenizer::cl100k_base().to_builder();
        let error = builder.special_token(text, id).build().expect_err("clash");
        error.to_string()
    };
    assert!(build("<|x|>", 100_257).contains("another special token has the id 100257"));
    assert!(build("<|x|>", 5).contains("another token has the id 5"));
    assert!(build("<|endoftext|>", 200_000).contains("comes twice"));
    assert!(build("", 200_000).contains("empty"));
}

#[test]
fn the_reserved_tokens_of_harmony_are_there_and_one_has_two_texts() {
    let harmony = Tokenizer::o200k_harmony()
        .with_specials(Specials::AllowAll)
        .expect("known");
    let text = "<|start|>user<|message|>Hi<|end|><|reserved_200001|><|reserved_201087|>";
    let ids = harmony.encode(text).expect("allowed");
    assert_eq!(
        ids,
        [200_006, 1428, 200_008, 12194, 200_007, 200_001, 201_087]
    );
    assert_eq!(harmony.decode(&ids).as_deref(), Ok(text));
    assert_eq!(
        harmony
            .encode("<|reserved_200018|><|endofprompt|>")
            .expect("allowed"),
        [200_018, 200_018]
    );
    assert_eq!(harmony.decode(&[200_018]).as_deref(), Ok("<|endofprompt|>"));
    assert_eq!(harmony.max_id(), Some(201_087));
    // Each special token, and the second text of one.
    assert_eq!(harmony.matched_texts().count(), 1_091);
    assert_eq!(Tokenizer::o200k_harmony().matched_texts().count(), 0);
}
