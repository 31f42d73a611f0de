//! Added tokens with flags, and what post-processors and decoders make of them: ids, offsets (in characters) and
//! texts are those that `tokenizers` 0.23.3 gives.

#![cfg(feature = "tokenizer-json")]

use bytepair::{InputOptions, LoadError, ModelInput, Pipeline, ReadLimits, Specials, Truncation};
use serde_json::{Map, Value, json};

type Offsets = Vec<(usize, usize)>;

/// A BPE model over the characters of `text`, numbered from 1 on, with merges of two.
fn characters(text: &str, merges: &[[&str; 2]]) -> Value {
    let mut vocab = Map::from_iter([("<unk>".to_owned(), json!(0))]);
    for character in text.chars() {
        vocab.insert(character.to_string(), json!(vocab.len()));
    }
    for merge in merges {
        vocab.insert(merge.concat(), json!(vocab.len()));
    }
    json!({ "type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": merges })
}

/// A BPE model over bytes with the merge of a blank and `a`, which is 256.
fn bytes() -> Value {
    let spelled = |byte| bpe_core::byte_level::to_char(byte).to_string();
    let mut vocab: Map<String, Value> = (0..=u8::MAX).map(|b| (spelled(b), json!(b))).collect();
    vocab.insert("Ġa".to_owned(), json!(256));
    json!({ "type": "BPE", "vocab": vocab, "merges": [["Ġ", "a"]] })
}

/// An added token with the flags whose names are given.
fn token(id: u32, content: &str, flags: &[&str]) -> Value {
    let mut token = json!({ "id": id, "content": content });
    for flag in flags {
        token[flag] = json!(true);
    }
    token
}

fn file(model: Value, added: &[Value]) -> Value {
    json!({ "version": "1.0", "added_tokens": added, "model": model })
}

fn byte_level(add_prefix_space: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": true })
}

fn load(file: &Value) -> Result<Pipeline, LoadError> {
    Pipeline::from_tokenizer_json(file.to_string().as_bytes(), &ReadLimits::default())
}

/// The pipeline as `tokenizers` has it, read, written and read again.
fn all(file: &Value) -> Pipeline {
    let pipeline = load(file).expect("supported");
    let again = serde_json::from_str(&pipeline.to_tokenizer_json()).expect("JSON");
    let again = load(&again).expect("supported");
    again.with_specials(Specials::AllowAll).expect("no names")
}

fn ids_and_offsets(pipeline: &Pipeline, text: &str) -> (Vec<u32>, Offsets) {
    let encoding = pipeline.encode_with_offsets(text).expect("unknown tokens");
    assert_eq!(pipeline.encode(text).ok().as_ref(), Some(&encoding.ids));
    let characters = |at: usize| text[..at].chars().count();
    let offsets = encoding.byte_ranges.iter();
    let offsets = offsets.map(|range| (characters(range.start), characters(range.end)));
    (encoding.ids, offsets.collect())
}

/// Ids and offsets of an input of ASCII texts and `Ġ`.
fn input(pipeline: &Pipeline, texts: (&str, Option<&str>), cut: Option<usize>) -> ModelInput {
    let options = InputOptions {
        truncation: cut.map(|max_length| Truncation {
            max_length,
            strategy: bytepair::TruncationStrategy::LongestFirst,
            stride: 1,
            side: bytepair::Side::Right,
        }),
        ..InputOptions::default()
    };
    let input = pipeline.model_input(texts.0, texts.1, &options);
    input.expect("short enough")
}

fn offsets(input: &ModelInput, text: &str) -> Offsets {
    let characters = |at: usize| text[..at.min(text.len())].chars().count();
    let offsets = input.offsets().iter();
    offsets
        .map(|range| (characters(range.start), characters(range.end)))
        .collect()
}

#[test]
fn a_token_of_which_others_have_taken_all_is_none() {
    let added = [
        token(5, "<m>", &["rstrip"]),
        token(6, "\t", &["lstrip"]),
        token(7, "<n>", &["lstrip"]),
    ];
    let pipeline = all(&file(characters("ab c", &[]), &added));
    let said = |text| ids_and_offsets(&pipeline, text);
    assert_eq!(said("<m> \ta"), (vec![5, 1], vec![(0, 5), (5, 6)]));
    let ids = vec![1, 6, 7, 3, 3, 2];
    let places = vec![(0, 1), (1, 3), (3, 7), (7, 8), (8, 9), (9, 10)];
    assert_eq!(said("a \t <n>  b"), (ids, places));
    assert_eq!(said("<m> <n>"), (vec![5, 7], vec![(0, 4), (4, 7)]));
    // `tokenizers` panics here: the tab ends before what is left begins.
    assert_eq!(said("<m>\t\t<n>"), (vec![5, 7], vec![(0, 5), (5, 8)]));
}

#[test]
fn blanks_that_two_tokens_take_come_twice_without_lstrip() {
    let added = [token(3, " ", &["rstrip"]), token(1, "a", &[])];
    let pipeline = all(&file(characters("ab c", &[]), &added));
    let expected = (vec![1, 3, 3, 2], vec![(0, 1), (1, 3), (2, 3), (3, 4)]);
    assert_eq!(ids_and_offsets(&pipeline, "a  b"), expected);
}

#[test]
fn special_characters_of_the_vocabulary_are_made_by_the_model_too() {
    let added = [
        token(3, "A", &["special"]),
        token(1, "a", &["special", "single_word"]),
    ];
    let mut file = file(characters("abA ", &[]), &added);
    file["normalizer"] = json!({ "type": "Lowercase" });
    let pipeline = all(&file);
    assert_eq!(pipeline.encode("Aa aa").ok(), Some(vec![3, 1, 4, 1, 1]));
}

#[test]
fn a_whole_piece_of_changed_text_is_the_special_token() {
    let mut model = characters("<s>/ab ", &[]);
    model["ignore_merges"] = json!(true);
    model["vocab"]["<s>"] = json!(8);
    model["vocab"]["</s>"] = json!(9);
    let specials = [
        token(8, "<s>", &["special"]),
        token(9, "</s>", &["special"]),
    ];
    let mut file = file(model, &specials);
    file["pre_tokenizer"] = json!({ "type": "WhitespaceSplit" });
    // Nothing changes a text, and these are found before: then no text makes them.
    let pipeline = load(&file).expect("supported");
    assert_eq!(pipeline.encode("<s>").ok(), Some(vec![1, 2, 3]));
    file["normalizer"] = json!({ "type": "Lowercase" });
    let pipeline = all(&file);
    let ids = vec![8, 8, 1, 4, 2, 3, 5, 9];
    let places = vec![
        (0, 3),
        (4, 7),
        (8, 9),
        (9, 10),
        (10, 11),
        (11, 12),
        (12, 13),
        (14, 18),
    ];
    let said = ids_and_offsets(&pipeline, "<s> <S> </S>a </S>");
    assert_eq!(said, (ids, places));
    // As with `encode_special_tokens`.
    let plain = pipeline.with_specials(Specials::AsText).expect("no names");
    assert_eq!(plain.encode("<s> <S>a").ok(), Some(vec![8, 1, 2, 3, 5]));
}

#[test]
fn special_tokens_that_stay_text_hide_what_overlaps_them() {
    let added = [
        token(6, "<s>", &["special"]),
        token(7, "s>a", &[]),
        token(8, "s>", &[]),
    ];
    let pipeline = all(&file(characters("<s>ab", &[]), &added));
    assert_eq!(pipeline.encode("<s>a").ok(), Some(vec![6, 4]));
    assert_eq!(pipeline.encode("s>a<s>").ok(), Some(vec![7, 6]));
    let plain = pipeline.with_specials(Specials::AsText).expect("no names");
    assert_eq!(plain.encode("<s>a").ok(), Some(vec![1, 2, 3, 4]));
    assert_eq!(plain.encode("s>a<s>").ok(), Some(vec![7, 1, 2, 3]));
    assert_eq!(plain.encode("b<s>s>as>").ok(), Some(vec![5, 1, 2, 3, 7, 8]));
    assert!(plain.cuts().is_err(), "a cut may fall into such a token");
}

#[test]
fn offsets_are_trimmed_by_what_was_found_of_an_added_token() {
    let added = [
        token(257, " x ", &["rstrip"]),
        token(258, "<m>", &["lstrip", "rstrip"]),
        token(259, "Ġy", &[]),
        token(260, "<cls>", &["special"]),
    ];
    let mut file = file(bytes(), &added);
    let text = " x  a <m>  aĠy x a";
    let wanted: [(bool, Vec<u32>, Offsets, Offsets); 2] = [
        (
            false,
            vec![257, 97, 258, 97, 259, 257, 97],
            vec![
                (1, 2),
                (4, 5),
                (6, 9),
                (11, 12),
                (13, 14),
                (15, 16),
                (17, 18),
            ],
            vec![(1, 2), (3, 4), (5, 6), (1, 4)],
        ),
        (
            true,
            vec![257, 256, 258, 256, 259, 257, 256],
            vec![
                (0, 2),
                (5, 5),
                (6, 9),
                (12, 12),
                (13, 14),
                (15, 16),
                (18, 18),
            ],
            vec![(0, 2), (3, 4), (6, 6), (0, 4)],
        ),
    ];
    for (prefix, ids, places, of_pair) in wanted {
        file["pre_tokenizer"] = byte_level(prefix);
        file["post_processor"] = byte_level(prefix);
        let pipeline = all(&file);
        let one = input(&pipeline, (text, None), None);
        assert_eq!((one.ids(), offsets(&one, text)), (&*ids, places));
        let pair = input(&pipeline, (" a x a", Some(" <m>")), None);
        assert_eq!(offsets(&pair, " a x a"), of_pair);
    }
    // The first token of each part keeps a blank that may have been set there.
    let text = " x a  <m>  a x ";
    let cut = input(&all(&file), (text, None), Some(3));
    assert_eq!(offsets(&cut, text), [(0, 2), (4, 4), (6, 9)]);
    let [rest] = cut.overflowing() else {
        panic!("{cut:?}");
    };
    assert_eq!(rest.ids(), [258, 256, 257]);
    assert_eq!(offsets(rest, text), [(6, 9), (12, 12), (13, 14)]);
}

#[test]
fn roberta_trims_the_offsets_of_a_pair() {
    let added = [
        token(257, " x ", &["rstrip"]),
        token(258, "<m>", &["lstrip", "rstrip"]),
        token(259, "<cls>", &["special"]),
    ];
    let mut file = file(bytes(), &added);
    file["pre_tokenizer"] = byte_level(true);
    file["post_processor"] = json!({
        "type": "RobertaProcessing", "sep": ["<cls>", 259], "cls": ["<cls>", 259],
        "trim_offsets": true, "add_prefix_space": true,
    });
    let pair = input(&all(&file), (" x  a <m>", Some(" x a")), None);
    assert_eq!(pair.ids(), [259, 257, 256, 258, 259, 259, 257, 256, 259]);
    let places = [
        (0, 0),
        (0, 2),
        (5, 5),
        (6, 9),
        (0, 0),
        (0, 0),
        (0, 2),
        (4, 4),
        (0, 0),
    ];
    assert_eq!(offsets(&pair, " x  a <m>"), places);
}

#[test]
fn blanks_that_the_normalizer_writes_otherwise_are_none() {
    let added = [
        token(5, "b ", &["normalized"]),
        token(6, "Ġ b", &["normalized"]),
    ];
    let mut file = file(characters("▁ab", &[["▁", "a"]]), &added);
    file["normalizer"] = json!({ "type": "Sequence", "normalizers": [
        { "type": "Prepend", "prepend": "▁" },
        { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
    ] });
    file["post_processor"] = byte_level(false);
    let pipeline = all(&file);
    let one = input(&pipeline, ("b a", None), None);
    assert_eq!(
        (one.ids(), offsets(&one, "b a")),
        (&[5, 2][..], vec![(0, 2), (2, 3)])
    );
    let text = "aĠ bab  a";
    let one = input(&pipeline, (text, None), None);
    assert_eq!(one.ids(), [4, 0, 1, 3, 2, 3, 1, 4]);
    let places = [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 5),
        (5, 6),
        (6, 7),
        (7, 9),
    ];
    assert_eq!(offsets(&one, text), places);
}

#[test]
fn normalized_tokens_decode_to_what_the_normalizer_leaves() {
    let added = [
        token(5, "<M> ", &["normalized"]),
        token(6, "<N>", &["normalized", "special"]),
        token(7, "<é>", &["special"]),
        token(8, "<n>", &[]),
    ];
    let mut spelled = file(characters("▁ab", &[["▁", "a"]]), &added);
    spelled["normalizer"] = json!({ "type": "Sequence", "normalizers": [
        { "type": "Lowercase" },
        { "type": "Prepend", "prepend": "▁" },
        { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
    ] });
    spelled["decoder"] = json!({ "type": "Sequence", "decoders": [
        { "type": "Replace", "pattern": { "String": "▁" }, "content": " " }, { "type": "Fuse" },
    ] });
    let pipeline = all(&spelled);
    assert_eq!(pipeline.encode("<m> b<n>").ok(), Some(vec![5, 3, 8]));
    let ids = [5, 2, 6, 7, 8];
    assert_eq!(pipeline.decode(&ids).as_deref(), Ok(" <m> a <n><é><n>"));
    // What the normalizer has changed is no special token's text.
    let without = pipeline.decode_without_special_tokens(&ids);
    assert_eq!(without.as_deref(), Ok(" <m> a <n><n>"));
    assert_eq!(pipeline.token_text(5).as_deref(), Some("<M> "));

    // And what it has made a special token's text is left out as one.
    let added = [
        token(5, "B", &["normalized"]),
        token(6, "b!", &["special"]),
        token(7, "B!", &["normalized"]),
    ];
    spelled["added_tokens"] = json!(added);
    spelled["normalizer"] = json!({ "type": "Lowercase" });
    let pipeline = all(&spelled);
    assert_eq!(pipeline.encode("bB!b!").ok(), Some(vec![5, 7, 6]));
    let ids = [5, 2, 6, 7];
    assert_eq!(pipeline.decode(&ids).as_deref(), Ok("bab!b!"));
    let without = pipeline.decode_without_special_tokens(&ids);
    assert_eq!(without.as_deref(), Ok("ba"));
}

#[test]
fn a_token_in_the_byte_level_alphabet_decodes_to_its_bytes() {
    let mut file = file(bytes(), &[token(257, " é", &["normalized"])]);
    file["normalizer"] = json!({ "type": "ByteLevel" });
    file["decoder"] = byte_level(false);
    let pipeline = all(&file);
    assert_eq!(pipeline.encode("a éa").ok(), Some(vec![97, 257, 97]));
    assert_eq!(pipeline.decode(&[97, 257, 97]).as_deref(), Ok("a éa"));
}

#[test]
fn a_split_that_drops_what_it_does_not_find_drops_all() {
    let mut file = file(characters("▁ab", &[]), &[token(4, "<m>", &[])]);
    file["normalizer"] = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" });
    file["pre_tokenizer"] = json!({
        "type": "Split", "pattern": { "String": " " }, "behavior": "Removed", "invert": true,
    });
    assert_eq!(all(&file).encode("a <m>b").ok(), Some(vec![4]));
}

#[test]
fn added_tokens_that_the_vocabulary_has_not_are_not_written_into_it() {
    let mut model = characters("ab", &[]);
    model["ignore_merges"] = json!(true);
    let file = file(
        model,
        &[
            token(3, "ab", &["single_word"]),
            token(4, "c", &["special"]),
        ],
    );
    // Written into it, `ab` and `c` would be made by the model.
    let plain = all(&file)
        .with_specials(Specials::AsText)
        .expect("no names");
    assert_eq!(plain.encode("abc").ok(), Some(vec![1, 2, 0]));
}

#[test]
fn whole_pieces_that_are_written_as_bytes_are_refused() {
    let mut model = characters("ab", &[]);
    model["vocab"]["<0x41>"] = json!(3);
    model["byte_fallback"] = json!(true);
    model["ignore_merges"] = json!(true);
    let error = load(&file(model, &[])).expect_err("refused");
    assert!(error.is_unsupported());
    assert!(
        error.to_string().starts_with("model.ignore_merges"),
        "{error}"
    );
}

#[test]
fn offsets_of_long_runs_of_blanks_are_trimmed_in_linear_time() {
    let added = [
        token(257, " ", &["rstrip", "normalized"]),
        token(258, "\u{3000}", &["lstrip", "rstrip"]),
        token(259, "\t\t", &["rstrip"]),
    ];
    let mut file = file(bytes(), &added);
    file["normalizer"] = json!({ "type": "NFC" });
    file["pre_tokenizer"] = byte_level(true);
    file["post_processor"] = byte_level(true);
    let pipeline = all(&file);
    for unit in [" ", "\u{3000}", "\t", "a \u{3000}", " \t", "é \t\t"] {
        let text = unit.repeat((1 << 18) / unit.len());
        let started = std::time::Instant::now();
        input(&pipeline, (&text, None), Some(1 << 16));
        // Quadratic time would be minutes.
        assert!(started.elapsed().as_secs() < 60, "{unit:?}");
    }
}
