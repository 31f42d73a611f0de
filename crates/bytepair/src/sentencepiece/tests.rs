use bpe_core::ReadLimits;
use bpe_core::reference::Reference;
use proptest::prelude::*;

use super::SentencePieceModel;
use super::charsmap::CharsMap;
use super::normalize::Stretch;
use crate::Pipeline;
use crate::error::LoadError;

/// Writes a number as the wire format does.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

/// A file of these pieces (text, score, kind), with fields of `trainer_spec` and `normalizer_spec`.
fn file(pieces: &[(&str, f32, u64)], trainer: &[(u64, u64)], normalizer: &[(u64, u64)]) -> Vec<u8> {
    let mut file = Vec::new();
    for &(text, score, kind) in pieces {
        let mut piece = Vec::new();
        bytes(1, text.as_bytes(), &mut piece);
        varint(2 << 3 | 5, &mut piece);
        piece.extend_from_slice(&score.to_le_bytes());
        number(3, kind, &mut piece);
        bytes(1, &piece, &mut file);
    }
    for (field, settings) in [(2, trainer), (3, normalizer)] {
        let mut message = Vec::new();
        for &(field, value) in settings {
            number(field, value, &mut message);
        }
        bytes(field, &message, &mut file);
    }
    file
}

const BPE: (u64, u64) = (3, 2);
const NO_PREFIX: [(u64, u64); 2] = [(3, 0), (4, 0)];

fn read(file: &[u8]) -> Result<SentencePieceModel, LoadError> {
    SentencePieceModel::read(file, &ReadLimits::default())
}

const SMALL: [(&str, f32, u64); 6] = [
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("ab", -0.0, 1),
    ("a", -1.0, 1),
    ("b", -2.0, 1),
    ("\u{2581}", -3.0, 1),
];

#[test]
fn pieces_are_sorted_by_what_they_are() {
    let model = read(&file(&SMALL, &[BPE], &[])).expect("reads");
    assert_eq!(model.unknown_piece, "<unk>");
    assert_eq!(model.controls, [("<s>".to_owned(), 1)]);
    let rules: Vec<_> = model
        .dictionary
        .rules()
        .iter()
        .map(|rule| (rule.left, rule.right))
        .collect();
    assert_eq!(rules, [(3, 4)]);
    assert!(model.normalizer.add_dummy_prefix && model.normalizer.remove_extra_whitespaces);
}

/// The library's way: of all neighbours that together are a piece, those with the best score merge,
/// the leftmost first.
fn literal(pieces: &[(String, f32)], text: &str) -> Vec<String> {
    let mut symbols: Vec<String> = text.chars().map(String::from).collect();
    loop {
        let mut best: Option<(f32, usize)> = None;
        for index in 1..symbols.len() {
            let both = [&*symbols[index - 1], &*symbols[index]].concat();
            let score = pieces
                .iter()
                .find(|(piece, _)| *piece == both)
                .map(|(_, score)| *score);
            if let Some(score) = score
                && best.is_none_or(|(best, _)| score > best)
            {
                best = Some((score, index));
            }
        }
        let Some((_, index)) = best else {
            return symbols;
        };
        let right = symbols.remove(index);
        symbols[index - 1].push_str(&right);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Scores in an order of their own, and runs of one character that share the worst.
    #[test]
    fn scores_merge_as_the_library_merges(
        words in proptest::collection::btree_set("[ab_]{2,5}", 0..12),
        runs in proptest::collection::btree_set(2_usize..9, 0..6),
        shift in 0_usize..12,
        texts in proptest::collection::vec("[ab_]{0,12}_{0,30}[ab_]{0,8}", 1..12),
    ) {
        let runs: Vec<String> = runs.into_iter().map(|length| "_".repeat(length)).collect();
        let words = words.into_iter().filter(|word| super::run_of(word) != Some('_'));
        let mut pieces: Vec<(String, f32)> = words.zip(1..).map(|(word, place)| {
            (word, -(((place + shift * 5) % 13) as f32))
        }).collect();
        pieces.extend(runs.into_iter().map(|run| (run, -1e9)));
        let mut all = vec![("<unk>", 0.0, 2), ("a", -90.0, 1), ("b", -90.0, 1), ("_", -90.0, 1)];
        all.extend(pieces.iter().map(|(text, score)| (text.as_str(), *score, 1)));
        let model = read(&file(&all, &[BPE], &NO_PREFIX)).expect("reads");
        let reference = Reference::new(&model.dictionary);
        for text in &texts {
            let ids = reference.sentencepiece(text.as_bytes()).expect("encodes");
            let tokens: Vec<&str> = ids.iter().map(|&id| all[id as usize].0).collect();
            prop_assert_eq!(&tokens, &literal(&pieces, text), "{:?}", text);
        }
    }
}

#[test]
fn blanks_are_set_taken_away_and_escaped_as_the_file_says() {
    let normalize = |settings: &[(u64, u64)], text: &str| {
        let model = read(&file(&SMALL, &[BPE], settings)).expect("reads");
        let normalized = model.normalizer.normalize(text, None);
        let tracked = model.normalizer.normalize(text, Some(&mut Vec::new()));
        assert_eq!(normalized, tracked);
        normalized
    };
    // Fields: 3 a blank before the text, 4 extra blanks go, 5 blanks are escaped.
    assert_eq!(normalize(&[], "  a  b "), "\u{2581}a\u{2581}b");
    assert_eq!(normalize(&[], "   "), "");
    assert_eq!(
        normalize(&[(4, 0)], " a  b "),
        "\u{2581}\u{2581}a\u{2581}\u{2581}b\u{2581}"
    );
    assert_eq!(normalize(&[(3, 0), (4, 0)], " a"), "\u{2581}a");
    assert_eq!(normalize(&[(3, 0), (5, 0)], " a  b"), "a b");
    assert_eq!(normalize(&[], ""), "");
}

#[test]
fn stretches_say_what_each_part_stands_for() {
    let model = read(&file(&SMALL, &[BPE], &[])).expect("reads");
    let mut stretches = Vec::new();
    let text = model.normalizer.normalize(" é  b  ", Some(&mut stretches));
    assert_eq!(text, "\u{2581}é\u{2581}b");
    let expected = [(0, 1..1), (3, 1..3), (5, 3..4), (8, 5..6)];
    let expected = expected.map(|(at, original)| Stretch { at, original });
    assert_eq!(stretches, expected);
}

/// What the library gives for a file like this: texts, their pieces, and the text that comes back.
#[test]
fn a_file_is_a_pipeline() {
    let bytes: Vec<String> = (0..=u8::MAX)
        .map(|byte| format!("<0x{byte:02X}>"))
        .collect();
    let mut pieces = vec![("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("[X]", 0.0, 4)];
    pieces.extend(bytes.iter().map(|text| (text.as_str(), 0.0, 6)));
    let merged = ["\u{2581}a", "ab"].into_iter().zip([0.0, -1.0]);
    pieces.extend(merged.map(|(text, score)| (text, score, 1)));
    pieces.extend(["a", "b", "\u{2581}"].map(|text| (text, -9.0, 1)));
    let file = file(&pieces, &[BPE, (35, 1)], &[(4, 0)]);
    let pipeline = Pipeline::from_sentencepiece_model(&file, &ReadLimits::default());
    let pipeline = pipeline.expect("reads");
    let tokens = |text: &str| {
        let encoding = pipeline.encode_with_offsets(text).expect("encodes");
        assert_eq!(pipeline.encode(text).expect("encodes"), encoding.ids);
        let pieces = encoding.ids.iter().map(|&id| pieces[id as usize].0);
        let pieces: Vec<&str> = pieces.collect();
        (pieces.join("|"), encoding.byte_ranges)
    };
    assert_eq!(tokens("ab"), ("\u{2581}a|b".to_owned(), vec![0..1, 1..2]));
    assert_eq!(tokens("[X] ab").0, "\u{2581}|[X]|\u{2581}a|b");
    assert_eq!(tokens("<s>é").0.matches('|').count(), 5);
    assert_eq!(tokens("é").1, [0..0, 0..2, 0..2]);
    for text in ["", "ab", " ab", "[X]  é", "é\u{FFFD}"] {
        let ids = pipeline.encode(text).expect("encodes");
        assert_eq!(pipeline.decode(&ids).expect("decodes"), text);
    }
    // A control piece is nothing, the unknown one a sign of its own, and of the bytes of a character that
    // does not end each is U+FFFD.
    assert_eq!(
        pipeline
            .decode(&[1, 0, 3 + 0xE4, 3 + 0xBD])
            .expect("decodes"),
        " \u{2047} \u{FFFD}\u{FFFD}"
    );
}

/// A double array of one string, `ﬁ` by `fi`, laid out by hand: each cell is as far from the one before as
/// its byte says.
fn ligature() -> Vec<u8> {
    let string = "ﬁ".as_bytes();
    let mut cells = vec![0_u32; 1024];
    // The root goes on at 256, the others at multiples of 256 behind it.
    let offset = |to: usize, at: usize| ((to ^ at) as u32) << 10;
    cells[0] = offset(256, 0);
    let mut at = 256 ^ usize::from(string[0]);
    for (index, &byte) in string.iter().enumerate() {
        let last = index + 1 == string.len();
        let to = 512 + 256 * index.min(1);
        cells[at] = offset(to, at) | u32::from(byte) | if last { 1 << 8 } else { 0 };
        if last {
            cells[to] = 1 << 31;
        } else {
            at = to ^ usize::from(string[index + 1]);
        }
    }
    let mut blob = Vec::new();
    blob.extend_from_slice(&(4 * cells.len() as u32).to_le_bytes());
    cells
        .iter()
        .for_each(|cell| blob.extend_from_slice(&cell.to_le_bytes()));
    blob.extend_from_slice(b"fi\0");
    blob
}

#[test]
fn a_map_of_characters_gives_the_longest_match() {
    let map = CharsMap::read(&ligature()).expect("reads");
    assert_eq!(map.longest_match("ﬁx"), Some((3, "fi")));
    assert_eq!(map.longest_match("xﬁ"), None);
    assert_eq!(map.longest_match(""), None);
    assert_eq!(CharsMap::default().longest_match("ﬁ"), None);
}

proptest! {
    /// Whatever a file brings along as a map, looking into it ends and gives text.
    #[test]
    fn any_bytes_as_a_map_are_an_error_or_a_map(
        cells in proptest::collection::vec(any::<u32>(), 1..64),
        text in "\\PC{0,8}",
    ) {
        let mut blob = (4 * cells.len() as u32).to_le_bytes().to_vec();
        cells.iter().for_each(|cell| blob.extend_from_slice(&cell.to_le_bytes()));
        blob.extend_from_slice("é\0\0".as_bytes());
        let map = CharsMap::read(&blob).expect("reads");
        if let Some((length, _)) = map.longest_match(&text) {
            prop_assert!(length > 0 && text.is_char_boundary(length));
        }
    }

    #[test]
    fn any_bytes_as_a_file_are_an_error_or_a_model(file in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = read(&file);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let error = |file: &[u8]| read(file).expect_err("malformed").to_string();
    let whole = file(&SMALL, &[BPE], &[]);
    // The last field, of two bytes, says nothing. A file may end after a field, and then lacks the type,
    // which is Unigram without one.
    for end in (0..whole.len()).filter(|&end| end != whole.len() - 2) {
        let error = error(&whole[..end]);
        let said = ["(at byte", "Unigram", "no unknown piece"];
        assert!(
            said.iter().any(|said| error.contains(said)),
            "{end}: {error}"
        );
    }
    let kind = |kind: u64| error(&file(&SMALL, &[(3, kind)], &[]));
    assert_eq!(kind(1), "trainer_spec.model_type: Unigram is not supported");
    assert_eq!(kind(3), "trainer_spec.model_type: Word is not supported");
    assert_eq!(kind(4), "trainer_spec.model_type: Char is not supported");
    assert!(kind(9).contains("no type has the number 9"));
    let with = |piece: (&str, f32, u64)| {
        let mut pieces = SMALL.to_vec();
        pieces.push(piece);
        error(&file(&pieces, &[BPE], &[]))
    };
    assert!(with(("a", -9.0, 1)).contains("the same as pieces[3]"));
    assert!(with(("", -9.0, 1)).contains("the piece is empty"));
    assert!(with(("x", f32::NAN, 1)).contains("no number"));
    assert!(with(("ba", -0.0, 1)).contains("one score of two pieces"));
    let mut runs = SMALL.to_vec();
    runs.extend([("aa", -9.0, 1), ("aaa", -9.0, 1)]);
    assert!(read(&file(&runs, &[BPE], &[])).is_ok());
    runs.push(("aaaa", -8.0, 1));
    assert!(error(&file(&runs, &[BPE], &[])).contains("one score of two pieces"));
    assert!(with(("ax", -9.0, 1)).contains("a piece with a character that is none"));
    assert!(with(("<0x1>", 0.0, 6)).contains("a byte is written like"));
    assert!(with(("x", 0.0, 5)).contains("(at byte"));
    assert!(with(("<unk2>", 0.0, 2)).contains("a second unknown piece"));
    let fallback = error(&file(&SMALL, &[BPE, (35, 1)], &[]));
    assert_eq!(fallback, "pieces: 0 byte pieces, where each byte needs one");
    let endless = [
        0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F,
    ];
    assert!(error(&endless).contains("over 64 bits"));
    let long = [
        0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01,
    ];
    assert!(error(&long).contains("breaks off in a field"));
}
