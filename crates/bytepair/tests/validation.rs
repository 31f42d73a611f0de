//! A validator reports how many ids are those of `encode_bytes(decode_bytes(ids))`, and in time.

#![cfg(all(
    feature = "dfa",
    feature = "cl100k_base",
    feature = "o200k_base",
    feature = "r50k_base"
))]

mod common;

use bytepair::{Reason, Specials, TokenId, TokenValidator, Tokenizer, TokenizerBuilder};

use common::Random;

const TEXT: &str = "It's 2026, isn't it?  \r\n\n\n\tfn main() { let x = 123456789; }   \u{3000}你好，世界 \
    naïve ÉCOLE ǅ ʰʱ １２３４５６７８９ <|endoftext|><|endofprompt|> <|end ////**** 🙂🙂👩‍👩‍👧 don't DON'T  \t x\n\
    lorem ipsum dolor sit amet, consectetur adipiscing elit    ----====\n\n    return self.x[0]\n";

fn common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A token split, two merged, one replaced, one dropped, or one byte of a text as its token.
fn mutate(tokenizer: &Tokenizer, ids: &mut Vec<TokenId>, random: &mut Random) {
    let place = random.below(ids.len());
    let bytes = tokenizer.token_bytes(ids[place]).expect("a token").to_vec();
    match random.below(6) {
        0 => {
            let cut = random.below(bytes.len() + 1);
            let parts = [&bytes[..cut], &bytes[cut..]].map(|part| tokenizer.token_id(part));
            if let [Some(left), Some(right)] = parts {
                ids.splice(place..=place, [left, right]);
            }
        }
        1 => {
            if let Some(&next) = ids.get(place + 1) {
                let both = [&bytes[..], tokenizer.token_bytes(next).expect("a token")].concat();
                if let Some(id) = tokenizer.token_id(&both) {
                    ids.splice(place..place + 2, [id]);
                }
            }
        }
        2 => ids[place] = random.below(tokenizer.vocabulary().len()) as TokenId,
        3 => drop(ids.remove(place)),
        4 => {
            let letters = bytes
                .iter()
                .map(|&byte| tokenizer.token_id(&[byte]).expect("a byte"));
            let letters: Vec<TokenId> = letters.collect();
            ids.splice(place..=place, letters);
        }
        _ => ids[place] = ids[random.below(ids.len())],
    }
}

/// Checks one sequence, in parts of `part` ids. Returns whether it was right.
fn check(validator: &mut TokenValidator, ids: &[TokenId], part: usize) -> bool {
    let tokenizer = validator.tokenizer().clone();
    let text = tokenizer.decode_bytes(ids).expect("tokens");
    let expected = tokenizer.encode_bytes(&text).expect("complete");
    let index = common(ids, &expected);
    let is_right = ids == expected;
    let place = || {
        format!(
            "{:?}: {:?}",
            tokenizer.name(),
            String::from_utf8_lossy(&text)
        )
    };
    // What a stream over the text has released.
    let mut stream = tokenizer.stream().expect("known patterns");
    let mut released = Vec::new();
    let mut early = None;
    for ids in ids.chunks(part) {
        let found = validator.push(ids).expect("complete").cloned();
        let bytes = tokenizer.decode_bytes(ids).expect("tokens");
        stream.push(bytes, &mut released).expect("complete");
        if let Some(found) = &found {
            assert!(
                !is_right && found.index == index,
                "{found:?} {index} {}",
                place()
            );
        }
        if !is_right && released.len() > index {
            assert!(found.is_some(), "{index} is late, {}", place());
        }
        early = found;
    }
    let found = validator.finish().expect("complete");
    assert!(early.is_none() || early == found);
    assert_eq!(
        found.as_ref().map(|found| found.index),
        (!is_right).then_some(index),
        "{}",
        place()
    );
    if let Some(found) = found {
        assert_eq!(found.expected, expected.get(index).copied(), "{}", place());
    }
    let repair = tokenizer.repair(ids).expect("complete");
    assert_eq!(repair.ids, expected);
    assert_eq!(repair.is_unchanged(), is_right);
    is_right
}

fn tokenizers() -> Vec<Tokenizer> {
    let all = |tokenizer: &Tokenizer| tokenizer.with_specials(Specials::AllowAll).expect("all");
    let o200k = Tokenizer::o200k_base();
    let canonical = o200k.canonical().clone();
    let without = TokenizerBuilder::from_canonical(canonical)
        .build()
        .expect("no pattern");
    vec![
        all(&o200k),
        all(&Tokenizer::cl100k_base()),
        without,
        o200k,
        Tokenizer::r50k_base(),
    ]
}

#[test]
fn mutated_tokens_are_found_at_the_right_index_and_in_time() {
    let mut random = Random(29);
    for tokenizer in tokenizers() {
        let mut validator = tokenizer.validator().expect("known patterns");
        let ids = tokenizer.encode(TEXT).expect("complete");
        assert!(check(&mut validator, &ids, 1));
        assert!(check(
            &mut validator,
            &[ids.clone(), ids.clone()].concat(),
            1 << 20
        ));
        let mut wrong = 0;
        for round in 0..250 {
            let start = random.below(ids.len());
            let mut ids = ids[start..].to_vec();
            for _ in 0..=random.below(2) {
                if !ids.is_empty() {
                    mutate(&tokenizer, &mut ids, &mut random);
                }
            }
            let part = [1, 3, 10, 1 << 20][round % 4];
            wrong += u32::from(!check(&mut validator, &ids, part));
        }
        assert!(wrong > 60, "{wrong}");
    }
}

#[test]
fn valid_pairs_are_wrong_where_the_pattern_cuts_elsewhere() {
    // DESIGN: 2|4|12 in fullwidth digits; the pattern cuts after three.
    let tokenizer = Tokenizer::o200k_base();
    let mut validator = tokenizer.validator().expect("a known pattern");
    let digits = ["２", "４", "１２"].map(|part| tokenizer.encode(part).expect("complete"));
    let ids = digits.concat();
    let pairs = tokenizer.pair_relation().expect("proper");
    if ids.len() == 3 {
        assert!(ids.windows(2).all(|pair| pairs.is_valid(pair[0], pair[1])));
    }
    assert!(!check(&mut validator, &ids, 1));
    // A token of letters and a blank behind them stands across a boundary.
    let hello = tokenizer.encode("Hello").expect("complete");
    let blank = tokenizer.token_id(b" ").expect("a token");
    let world = tokenizer.encode("world").expect("complete");
    let ids = [hello, vec![blank], world].concat();
    let found = validator.validate(&ids).expect("complete").expect("wrong");
    assert_eq!(found.index, 1);
}

#[test]
fn special_ids_stand_for_their_text_as_the_tokenizer_treats_it() {
    let as_text = Tokenizer::o200k_base();
    let end = as_text.special_tokens().next().expect("endoftext").1;
    let allowed = as_text.with_specials(Specials::AllowAll).expect("all");
    let forbidden = as_text.with_specials(Specials::Forbid).expect("all");
    let ids = [as_text.encode("Hello").expect("text"), vec![end]].concat();
    assert_eq!(
        allowed
            .validator()
            .expect("known")
            .validate(&ids)
            .expect("text"),
        None
    );
    let found = as_text
        .validator()
        .expect("known")
        .validate(&ids)
        .expect("text");
    let found = found.expect("the text of a special token is text");
    assert_eq!(
        (found.index, found.reason),
        (1, Reason::Special { index: 1 })
    );
    assert!(
        forbidden
            .validator()
            .expect("known")
            .validate(&ids)
            .is_err()
    );
    // And the other way round: text that is a special token.
    let ids = as_text.encode("Hello<|endoftext|>").expect("text");
    assert_eq!(
        as_text
            .validator()
            .expect("known")
            .validate(&ids)
            .expect("text"),
        None
    );
    let found = allowed
        .validator()
        .expect("known")
        .validate(&ids)
        .expect("text");
    let found = found.expect("a special token");
    assert_eq!((found.index, found.expected), (1, Some(end)));
}

#[test]
fn ids_of_no_token_end_the_text() {
    let tokenizer = Tokenizer::cl100k_base();
    let mut validator = tokenizer.validator().expect("known");
    let mut ids = tokenizer.encode("Hello, world").expect("text");
    ids.push(4_000_000_000);
    for part in [1, 2, 100] {
        for ids in ids.chunks(part) {
            validator.push(ids).expect("text");
        }
        let found = validator.finish().expect("text").expect("no token");
        let index = ids.len() - 1;
        assert_eq!((found.index, found.expected), (index, None));
        assert_eq!(found.reason, Reason::UnknownId { index });
    }
    assert!(tokenizer.repair(&ids).is_err());
}

#[test]
fn long_streams_are_checked_in_parts_of_any_size() {
    let tokenizer = Tokenizer::cl100k_base();
    let mut validator = tokenizer.validator().expect("known");
    let text = TEXT.repeat(200);
    let ids = tokenizer.encode(&text).expect("text");
    let mut random = Random(2);
    for _ in 0..3 {
        let mut rest = &ids[..];
        while !rest.is_empty() {
            let (part, after) = rest.split_at(random.below(9000).min(rest.len()));
            assert_eq!(validator.push(part).expect("text"), None);
            rest = after;
        }
        assert_eq!(validator.finish().expect("text"), None);
    }
    let mut wrong = ids.clone();
    let is_long = |&id: &TokenId| {
        tokenizer
            .token_bytes(id)
            .is_some_and(|bytes| bytes.len() > 1)
    };
    let place = wrong.len() - 50;
    let place = place
        + wrong[place..]
            .iter()
            .position(is_long)
            .expect("a long token");
    let bytes = tokenizer.token_bytes(wrong[place]).expect("a token");
    let letters = bytes
        .iter()
        .map(|&byte| tokenizer.token_id(&[byte]).expect("a byte"));
    let letters: Vec<TokenId> = letters.collect();
    assert!(letters.len() > 1);
    wrong.splice(place..=place, letters);
    assert!(!check(&mut validator, &wrong, 5000));
}
