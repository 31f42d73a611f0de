//! Eager output hands out what no continuation can change, and no less than 000 App. G.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Atoms, CanonicalForm, Dictionary, SpanEncoder, TokenId, Vocabulary};
use bpe_incremental::{EagerEncoder, LastTokenEngine, held_bytes_bound};
use support::{Merge, Random, canonical, dictionary_of, merge_lists};

/// The tokens of every text over a and b up to a length.
struct Model {
    longest: usize,
    /// By length and by the text as a number, b counting 1.
    tokens: Vec<Vec<Vec<TokenId>>>,
    canonical: Arc<CanonicalForm>,
    /// What canonical tokens begin with, the tokens themselves only in the second.
    proper_prefixes: BTreeSet<Vec<u8>>,
    prefixes: BTreeSet<Vec<u8>>,
}

impl Model {
    fn new(dictionary: &Dictionary, longest: usize) -> Self {
        let reference = Reference::new(dictionary);
        let texts = |len: usize| {
            let tokens = (0..1 << len).map(|number| reference.standard(&letters(number, len)));
            tokens
                .map(|tokens| tokens.expect("letters are tokens"))
                .collect()
        };
        let canonical = canonical(dictionary);
        let tokens: Vec<&[u8]> = canonical
            .vocabulary()
            .iter()
            .filter(|(id, bytes)| reference.standard(bytes).as_deref() == Some(&[*id]))
            .map(|(_, bytes)| bytes)
            .collect();
        let prefixes = |less: usize| {
            let prefixes = tokens
                .iter()
                .flat_map(|token| (0..=token.len() - less).map(|len| token[..len].to_vec()));
            prefixes.collect()
        };
        Self {
            longest,
            tokens: (0..=longest).map(texts).collect(),
            proper_prefixes: prefixes(1),
            prefixes: prefixes(0),
            canonical,
        }
    }

    fn of(&self, text: &[u8]) -> &[TokenId] {
        let bit = |byte: &u8| usize::from(byte - b'a');
        let number = text.iter().fold(0, |number, byte| 2 * number + bit(byte));
        &self.tokens[text.len()][number]
    }

    /// The tokens that the candidates have in common: the prefixes from the longest suffix of the text
    /// that is in `beginnings`.
    fn common(&self, text: &[u8], beginnings: &BTreeSet<Vec<u8>>) -> Vec<TokenId> {
        let window = (0..=text.len()).find(|&start| beginnings.contains(&text[start..]));
        let window = window.expect("the empty suffix at least");
        let mut common = self.of(text).to_vec();
        for len in window..text.len() {
            let pairs = common.iter().zip(self.of(&text[..len]));
            let equal = pairs.take_while(|(a, b)| a == b).count();
            common.truncate(equal);
        }
        common
    }

    /// Whether the tokens of all texts up to `longest` that begin with `text` begin with `tokens`.
    fn is_certain(&self, text: &[u8], tokens: &[TokenId], longest: usize) -> bool {
        self.of(text).starts_with(tokens)
            && (text.len() == longest.min(self.longest)
                || [b'a', b'b'].iter().all(|&letter| {
                    let text = [text, &[letter]].concat();
                    self.is_certain(&text, tokens, longest)
                }))
    }
}

fn letters(number: usize, len: usize) -> Vec<u8> {
    let bits = (0..len).rev().map(|bit| number >> bit & 1);
    bits.map(|bit| b'a' + bit as u8).collect()
}

/// Walks all texts up to `longest`, with all continuations up to 4 letters.
fn check_all_texts(
    model: &Model,
    encoder: &EagerEncoder,
    given: &[TokenId],
    text: &mut Vec<u8>,
    longest: usize,
) {
    let bound = held_bytes_bound(&model.canonical).expect("proper");
    let certain = model.is_certain(text, given, text.len() + 4);
    assert!(certain, "{text:?} {given:?}");
    let expected = model.common(text, &model.proper_prefixes);
    assert_eq!(given, expected, "{text:?}");
    assert!(given.len() >= model.common(text, &model.prefixes).len());
    let pending = encoder.pending();
    let mut whole = given.to_vec();
    encoder.append_pending(&mut whole);
    assert_eq!(whole, model.of(text), "{text:?}");
    assert_eq!(pending.tokens, whole.len() - given.len());
    let vocabulary = model.canonical.vocabulary();
    let bytes = vocabulary.decode_bytes(&whole[given.len()..]);
    assert_eq!(pending.bytes, bytes.expect("tokens").len());
    assert_eq!(pending.bytes, encoder.pending_bytes());
    assert!(pending.bytes <= bound, "{pending:?}, {bound}: {text:?}");
    assert_eq!(encoder.byte_count(), text.len());
    if text.len() == longest {
        return;
    }
    for letter in *b"ab" {
        let mut encoder = encoder.clone();
        let mut given = given.to_vec();
        encoder.push(letter, &mut given).expect("a token");
        text.push(letter);
        check_all_texts(model, &encoder, &given, text, longest);
        text.pop();
    }
}

fn check_list(list: &[Merge], longest: usize) -> bool {
    let dictionary = dictionary_of(list);
    if !dictionary.is_proper() {
        return false;
    }
    let model = Model::new(&dictionary, longest + 4);
    let engine = LastTokenEngine::new(&model.canonical).expect("proper");
    let encoder = EagerEncoder::new(&engine);
    check_all_texts(&model, &encoder, &[], &mut Vec::new(), longest);
    true
}

#[test]
fn what_is_handed_out_is_in_every_continuation_and_no_less_than_the_paper_gives() {
    let lists = (0..=2).flat_map(merge_lists);
    let checked = lists.filter(|list| check_list(list, 7)).count();
    assert!(checked > 30, "{checked}");
    let mut random = Random(3);
    let lists: Vec<_> = merge_lists(3);
    for _ in 0..60 {
        check_list(&lists[random.below(lists.len())], 7);
    }
}

#[test]
fn influence_that_is_longer_than_the_longest_token_is_held_back() {
    // docs/theory.md section 5: the longest token has four letters, six are uncertain.
    let merge = |left: &str, right: &str| (left.as_bytes().to_vec(), right.as_bytes().to_vec());
    let list = [
        merge("a", "b"),
        merge("a", "ab"),
        merge("ab", "a"),
        merge("b", "ab"),
        merge("aab", "b"),
    ];
    assert!(check_list(&list, 9));
    let engine = LastTokenEngine::new(&canonical(&dictionary_of(&list))).expect("proper");
    let mut encoder = EagerEncoder::new(&engine);
    let fed = encoder.feed(b"bbbbbbabaabbab", &mut Vec::new());
    fed.expect("letters");
    assert!(encoder.pending_bytes() >= 6);
}

/// Long chains of rules, so that what is held back is long.
fn random_list(random: &mut Random, rules: usize) -> Vec<Merge> {
    let mut tokens: Vec<Vec<u8>> = vec![b"a".to_vec(), b"b".to_vec()];
    let mut merges = Vec::new();
    for _ in 0..rules {
        let mut pick = || {
            let late = tokens.len() - 1 - random.below(tokens.len().min(3));
            tokens[random.below(2 * tokens.len()).min(late)].clone()
        };
        let merge = (pick(), pick());
        let product = [&merge.0[..], &merge.1].concat();
        if product.len() <= 24 && !tokens.contains(&product) {
            tokens.push(product);
            merges.push(merge);
        }
    }
    merges
}

fn random_text(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| b'a' + random.below(2) as u8).collect()
}

#[test]
fn larger_dictionaries_give_the_tokens_of_the_reference_and_stay_within_the_bound() {
    let mut random = Random(5);
    for round in 0..300 {
        let merges = random_list(&mut random, 3 + round % 30);
        let dictionary = dictionary_of(&merges);
        let canonical = canonical(&dictionary);
        let bound = held_bytes_bound(&canonical).expect("proper");
        let engine = LastTokenEngine::new(&canonical).expect("proper");
        let reference = Reference::new(&dictionary);
        let text = random_text(&mut random, 120);
        let mut encoder = EagerEncoder::new(&engine);
        let mut given = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            encoder.push(byte, &mut given).expect("a letter");
            assert!(encoder.pending_bytes() <= bound, "{merges:?}");
            if at % 7 == 0 {
                // A continuation of its own.
                let length = random.below(12);
                let mut other = text[..=at].to_vec();
                other.extend(random_text(&mut random, length));
                let expected = reference.standard(&other).expect("letters");
                let agrees = expected.starts_with(&given);
                assert!(agrees, "{merges:?} {other:?} {given:?}");
            }
        }
        encoder.finish(&mut given);
        let expected = reference.standard(&text);
        assert_eq!(Some(given), expected, "{merges:?} {text:?}");
        assert_eq!((encoder.byte_count(), encoder.pending_bytes()), (0, 0));
    }
}

#[test]
fn bytes_that_come_in_blocks_have_the_same_tokens_certain_as_bytes_one_by_one() {
    let mut random = Random(17);
    for round in 0..40 {
        let dictionary = dictionary_of(&random_list(&mut random, 2 + round));
        let engine = LastTokenEngine::new(&canonical(&dictionary)).expect("proper");
        let (mut single, mut blocks) = (EagerEncoder::new(&engine), EagerEncoder::new(&engine));
        let (mut of_single, mut of_blocks) = (Vec::new(), Vec::new());
        for turn in 0..60 {
            // Short ones first: what is held is short then, and a block may make nothing certain.
            let lengths = [1, 2, 3, 5, 9, 30, 1000, 1024, 1100, 5000];
            let length = lengths[random.below(if turn < 40 { 6 } else { 10 })];
            let text = random_text(&mut random, length);
            for &byte in &text {
                single.push(byte, &mut of_single).expect("a letter");
            }
            match random.below(3) {
                0 => {
                    for &byte in &text {
                        blocks.push(byte, &mut of_blocks).expect("a letter");
                    }
                }
                _ => blocks.feed(&text, &mut of_blocks).expect("letters"),
            }
            assert_eq!(of_blocks, of_single);
            assert_eq!(blocks.pending(), single.pending());
            if random.below(4) == 0 {
                blocks = blocks.clone();
            }
        }
    }
}

#[test]
fn a_long_stream_takes_no_more_memory_than_a_short_one() {
    let mut random = Random(7);
    let dictionary = dictionary_of(&random_list(&mut random, 40));
    let canonical = canonical(&dictionary);
    let engine = LastTokenEngine::new(&canonical).expect("proper");
    let mut encoder = EagerEncoder::new(&engine);
    let whole = bpe_core::Algorithm::PriorityMerge.encoder(&canonical);
    let mut whole = whole.expect("any");
    let text = random_text(&mut random, 200_000);
    let mut given = Vec::new();
    let mut most = 0;
    for piece in text.chunks(997) {
        encoder.feed(piece, &mut given).expect("letters");
        most = most.max(encoder.memory());
    }
    assert!(most < 100_000, "{most} bytes for 200,000");
    encoder.finish(&mut given);
    let mut expected = Vec::new();
    whole.encode_span(&text, &mut expected).expect("letters");
    assert_eq!(given, expected);
    // The same value encodes again: as a span encoder, and from where a fork leaves it.
    let text = &text[..5000];
    given.clear();
    encoder.encode_span(text, &mut given).expect("letters");
    let mut first = Vec::new();
    encoder.feed(&text[..3000], &mut first).expect("letters");
    let mut fork = encoder.clone();
    let mut second = first.clone();
    encoder.feed(&text[3000..], &mut first).expect("letters");
    encoder.finish(&mut first);
    assert_eq!(first, given);
    fork.feed(&text[3000..4000], &mut second).expect("letters");
    fork.feed(&text[4000..], &mut second).expect("letters");
    fork.finish(&mut second);
    assert_eq!(second, given);
}

#[test]
fn a_byte_that_is_no_token_is_an_error_and_the_text_goes_on_without_it() {
    let dictionary = dictionary_of(&merge_lists(1)[0]);
    let engine = LastTokenEngine::new(&canonical(&dictionary)).expect("proper");
    let mut encoder = EagerEncoder::new(&engine);
    for start in [3, 1500] {
        encoder.clear();
        let mut given = Vec::new();
        let letters = b"ab".repeat(1000);
        let mut text = letters[..start].to_vec();
        text.extend(b"xab".repeat(1000));
        let error = encoder.feed(&text, &mut given);
        assert_eq!(error.expect_err("x is no token").byte_offset(), start);
        assert_eq!(encoder.byte_count(), start);
        encoder.feed(b"b", &mut given).expect("letters");
        encoder.finish(&mut given);
        let mut expected = Vec::new();
        text.truncate(start);
        text.push(b'b');
        encoder.encode_span(&text, &mut expected).expect("letters");
        assert_eq!(given, expected);
        assert_eq!(Some(given), Reference::new(&dictionary).standard(&text));
    }
    let mut tokens = vec![7];
    assert!(encoder.encode_span(b"abx", &mut tokens).is_err());
    assert_eq!(tokens, [7]);
}

#[test]
fn over_characters_the_tokens_are_those_of_the_reference_however_the_bytes_come() {
    for (fallback, fuse) in [(true, false), (false, true), (false, false)] {
        let tokens = [
            (0, "<unk>"),
            (1, "a"),
            (2, "é"),
            (3, "€"),
            (4, "aé"),
            (5, "é€"),
            (6, "aa"),
        ];
        let bytes = (0..=255).filter(|_| fallback);
        let bytes = bytes.map(|byte: u8| (100 + u32::from(byte), byte));
        let vocabulary = Vocabulary::with_byte_fallback(tokens, bytes).expect("valid");
        let dictionary = Dictionary::from_merges(vocabulary, [(2, 3), (1, 2), (1, 1)])
            .and_then(|dictionary| {
                dictionary.with_atoms(Atoms::Characters {
                    unknown: Some(0),
                    fuse_unknown: fuse,
                })
            })
            .expect("valid");
        let canonical = canonical(&dictionary);
        assert_eq!(held_bytes_bound(&canonical).is_none(), fuse);
        let engine = LastTokenEngine::new(&canonical).expect("proper");
        let reference = Reference::new(&dictionary);
        let letters = ["a", "a", "é", "€", "x", "ß"].map(str::as_bytes);
        let broken: [&[u8]; 3] = [b"\xC3", b"\xE2\x82", b"\xFF"];
        let parts: Vec<&[u8]> = letters.into_iter().chain(broken).collect();
        let mut random = Random(11);
        for _ in 0..1500 {
            let count = random.below(9);
            let text = (0..count).map(|_| parts[random.below(parts.len())]);
            let text = text.collect::<Vec<_>>().concat();
            let mut encoder = EagerEncoder::new(&engine);
            let mut given = Vec::new();
            for (at, &byte) in text.iter().enumerate() {
                encoder.push(byte, &mut given).expect("complete");
                let mut now = given.clone();
                encoder.clone().finish(&mut now);
                let expected = reference.sentencepiece(&text[..=at]);
                assert_eq!(Some(now), expected, "{text:?}");
                let pending = encoder.pending_bytes();
                assert!(held_bytes_bound(&canonical).is_none_or(|bound| pending <= bound));
            }
            encoder.finish(&mut given);
            assert_eq!(Some(given), reference.sentencepiece(&text), "{text:?}");
        }
        // A block at a time, broken characters and runs included.
        for _ in 0..30 {
            let text = (0..2000).map(|_| parts[random.below(parts.len())]);
            let text = text.collect::<Vec<_>>().concat();
            let mut given = Vec::new();
            let mut encoder = EagerEncoder::new(&engine);
            encoder.feed(&text, &mut given).expect("complete");
            encoder.finish(&mut given);
            assert_eq!(given, engine_tokens(&engine, &text));
        }
    }
}

fn engine_tokens(engine: &LastTokenEngine, text: &[u8]) -> Vec<TokenId> {
    let mut history = engine.history();
    history.extend(text).expect("complete");
    history.tokens(text.len())
}
