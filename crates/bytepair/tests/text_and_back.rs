//! What must hold of every text: it comes back, counts and offsets agree with the tokens, prefixes
//! fit, streams say what decoding at once says.

use bytepair::{ENCODINGS, Tokenizer};
use proptest::prelude::*;

fn encodings() -> Vec<Tokenizer> {
    let all = ENCODINGS.iter().map(|name| Tokenizer::from_name(name));
    all.collect::<Result<_, _>>().expect("all are embedded")
}

/// Texts of characters of one to four bytes, with what patterns care about.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z']{0,6}",
        "[ \t\r\n]{1,4}",
        "[0-9/.,!-]{1,4}",
        Just("'s".to_owned()),
        Just("\u{FFFD}".to_owned()),
        "[āéñ中文ьקप̀ㅎ]{1,4}",
        "[😀🇩𐂂𝒳👩‍]{1,3}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn text_comes_back_and_every_call_agrees(text in text()) {
        for tokenizer in encodings() {
            let ids = tokenizer.encode(&text)?;
            prop_assert_eq!(tokenizer.decode(&ids)?, text.as_str());
            prop_assert_eq!(tokenizer.count(&text)?, ids.len());
            prop_assert_eq!(tokenizer.count_up_to(&text, ids.len())?, Some(ids.len()));
            if let Some(less) = ids.len().checked_sub(1) {
                prop_assert_eq!(tokenizer.count_up_to(&text, less)?, None);
            }
            let mut worker = tokenizer.worker();
            let mut again = vec![7];
            worker.encode_into(&text, &mut again)?;
            prop_assert_eq!(&again[1..], &ids);
            prop_assert_eq!(worker.count(&text)?, ids.len());

            let encoding = tokenizer.encode_with_offsets(&text)?;
            prop_assert_eq!(&encoding.ids, &ids);
            let mut end = 0;
            for (id, range) in ids.iter().zip(&encoding.byte_ranges) {
                prop_assert_eq!(range.start, end);
                end = range.end;
                prop_assert_eq!(Some(&text.as_bytes()[range.clone()]), tokenizer.token_bytes(*id));
            }
            prop_assert_eq!(end, text.len());
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            for (bytes, chars) in encoding.byte_ranges.iter().zip(encoding.char_ranges(&text)) {
                let first = starts.partition_point(|&start| start <= bytes.start) - 1;
                let last = starts.partition_point(|&start| start < bytes.end);
                prop_assert_eq!(chars, first..last);
            }
        }
    }

    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for tokenizer in encodings() {
            let ids = tokenizer.encode_bytes(&bytes)?;
            prop_assert_eq!(tokenizer.decode_bytes(&ids)?, bytes.as_slice());
            prop_assert_eq!(tokenizer.decode_lossy(&ids)?, String::from_utf8_lossy(&bytes));
            prop_assert_eq!(tokenizer.count(&bytes)?, ids.len());
        }
    }

    #[test]
    fn prefixes_fit_and_end_at_characters(text in text(), limit in 0..20_usize) {
        for tokenizer in encodings() {
            let all = tokenizer.encode(&text)?;
            let (ids, covered) = tokenizer.encode_up_to(&text, limit)?;
            prop_assert!(text.is_char_boundary(covered));
            prop_assert!(ids.len() <= limit && all.starts_with(&ids));
            prop_assert_eq!(tokenizer.decode(&ids)?, &text[..covered]);
            // The longest such prefix: one token more is over the limit or cuts a character.
            for more in ids.len() + 1..=limit.min(all.len()) {
                prop_assert!(tokenizer.decode(&all[..more]).is_err());
            }
            let (ids, covered) = tokenizer.encode_up_to_bytes(&text, limit)?;
            prop_assert_eq!(ids.len(), limit.min(all.len()));
            prop_assert_eq!(tokenizer.decode_bytes(&ids)?, &text.as_bytes()[..covered]);

            let short = tokenizer.truncate(&text, limit)?;
            prop_assert!(text.starts_with(short));
            prop_assert!(tokenizer.count(short)? <= limit);
            prop_assert!(short.len() >= text.floor_char_boundary(covered) || limit < all.len());
            if all.len() <= limit {
                prop_assert_eq!(short, text.as_str());
            }
        }
    }

    #[test]
    fn streams_say_what_decoding_at_once_says(ids in prop::collection::vec(0..50_256_u32, 0..40)) {
        for tokenizer in encodings() {
            let whole = tokenizer.decode_lossy(&ids)?;
            let mut stream = tokenizer.decode_stream();
            let mut joined = String::new();
            for &id in &ids {
                joined.push_str(stream.push(id)?);
                prop_assert!(stream.held_bytes() <= 3);
            }
            joined.push_str(&stream.finish());
            prop_assert_eq!(&joined, &whole);

            let half = ids.len() / 2;
            let mut stream = tokenizer.decode_stream_after(&ids[..half])?;
            let held = stream.held_bytes();
            let mut shown = String::new();
            for &id in &ids[half..] {
                shown.push_str(stream.push(id)?);
            }
            shown.push_str(&stream.finish());
            let prompt = tokenizer.decode_bytes(&ids[..half])?;
            let before = String::from_utf8_lossy(&prompt[..prompt.len() - held]).into_owned();
            prop_assert_eq!(before + &shown, whole);
        }
    }
}

#[test]
fn a_character_that_a_prompt_begins_is_shown_once() {
    let tokenizer = Tokenizer::o200k_base();
    let ids = tokenizer.encode("a龘b").expect("text");
    assert_eq!(ids.len(), 4);
    let mut stream = tokenizer.decode_stream_after(&ids[..2]).expect("known");
    assert_eq!(stream.push(ids[2]), Ok("龘"));
    assert_eq!(stream.push(ids[3]), Ok("b"));
    assert_eq!(stream.finish(), "");
}

#[test]
fn ids_of_no_token_are_errors_that_name_them_and_a_stream_goes_on() {
    for tokenizer in encodings() {
        let largest = tokenizer.max_id().expect("not empty");
        let holes = (0..=largest).filter(|&id| tokenizer.token_bytes(id).is_none());
        for id in holes.chain([largest + 1, u32::MAX]) {
            let error = tokenizer.decode_bytes(&[0, id]).expect_err("no token");
            assert_eq!((error.id(), error.index()), (Some(id), Some(1)));
            assert!(tokenizer.decode_lossy(&[id]).is_err());
            let mut stream = tokenizer.decode_stream();
            assert_eq!(stream.push(id).expect_err("no token").id(), Some(id));
            assert_eq!(stream.push(0), Ok("!"));
        }
        assert!(tokenizer.decode(&[largest]).is_ok());
    }
}

#[test]
fn batches_keep_their_order_for_any_number_of_threads() {
    let tokenizer = Tokenizer::cl100k_base();
    let texts: Vec<String> = (0..500)
        .map(|n| format!("{n} document {}", "x".repeat(n)))
        .collect();
    let expected: Vec<_> = texts
        .iter()
        .map(|text| tokenizer.encode(text).expect("text"))
        .collect();
    for threads in [0, 1, 2, 8, 64] {
        let ids = tokenizer.encode_batch_with(&texts, threads).expect("text");
        assert_eq!(ids, expected);
    }
    assert_eq!(tokenizer.encode_batch(&texts).expect("text"), expected);
    assert!(
        tokenizer
            .encode_batch::<&str>(&[])
            .expect("empty")
            .is_empty()
    );
}

#[test]
fn one_value_serves_many_threads() {
    fn check<T: Send + Sync + std::panic::UnwindSafe + 'static>(_: &T) {}
    let tokenizer = Tokenizer::o200k_base();
    check(&tokenizer);
    let text = "One value, many threads: 一个值，许多线程。 ".repeat(20);
    let expected = tokenizer.encode(&text).expect("text");
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(tokenizer.encode(&text).expect("text"), expected);
                    assert_eq!(tokenizer.count(&text).expect("text"), expected.len());
                    assert_eq!(tokenizer.decode(&expected).expect("known"), text);
                }
            });
        }
    });
    tokenizer.clear_scratch();
    assert_eq!(tokenizer.encode(&text).expect("text"), expected);
}

#[test]
fn models_and_names_lead_to_their_encodings() {
    let encoding = |model: &str| Tokenizer::for_model(model).map(|t| t.name().map(str::to_owned));
    for (model, expected) in [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("ft:gpt-4o:acme:name:id", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("gpt-5.1-mini", "o200k_base"),
        ("ft:gpt-4o-mini:acme::id", "o200k_base"),
        ("ft:davinci-002:acme", "cl100k_base"),
        ("text-search-ada-doc-001", "r50k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-oss-120b", "o200k_harmony"),
        ("text-davinci-003", "p50k_base"),
        ("code-davinci-edit-001", "p50k_edit"),
        ("davinci", "r50k_base"),
        ("gpt2", "gpt2"),
    ] {
        assert_eq!(encoding(model).expect(model).as_deref(), Some(expected));
    }
    assert!(
        encoding("gpt-9")
            .expect_err("unknown")
            .to_string()
            .contains("gpt-9")
    );
    assert!(encoding("davinci-x").is_err());
    let error = Tokenizer::from_name("o100k").expect_err("unknown");
    assert!(error.to_string().contains("o200k_base"), "{error}");
}

#[test]
fn vocabularies_have_the_published_sizes() {
    for (name, ordinary, special, max_id) in [
        ("gpt2", 50_256, 1, 50_256),
        ("r50k_base", 50_256, 1, 50_256),
        ("p50k_base", 50_280, 1, 50_280),
        ("p50k_edit", 50_280, 4, 50_283),
        ("cl100k_base", 100_256, 5, 100_276),
        ("o200k_base", 199_998, 2, 200_018),
        ("o200k_harmony", 199_998, 1_090, 201_087),
    ] {
        let tokenizer = Tokenizer::from_name(name).expect("embedded");
        assert_eq!(tokenizer.vocabulary().len(), ordinary, "{name}");
        assert_eq!(tokenizer.special_tokens().count(), special, "{name}");
        assert_eq!(tokenizer.token_count(), ordinary + special, "{name}");
        assert_eq!(tokenizer.max_id(), Some(max_id), "{name}");
        assert_eq!(tokenizer.canonical().unreachable_tokens().count(), 0);
        assert!(tokenizer.canonical().is_proper());
    }
    let p50k = Tokenizer::p50k_base();
    assert_eq!(p50k.token_bytes(50_256), Some(&b"<|endoftext|>"[..]));
    assert!(p50k.is_special(50_256) && !p50k.is_reachable(50_256));
    assert_eq!(p50k.token_id(b"<|endoftext|>"), Some(50_256));
}
