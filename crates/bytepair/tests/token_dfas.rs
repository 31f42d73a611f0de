//! Token automata through pre-tokenizers: what they accept, and their masks, by enumeration.

#![cfg(feature = "dfa")]

mod common;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bpe_core::{Dictionary, Vocabulary};
use bpe_lexers::{Engine, Spanner, SpecialMatcher};
use bytepair::{
    Equivalence, Family, Pattern, StringDfa, StringDfaLimits, TokenId, Tokenizer, TokenizerBuilder,
};

use common::Random;

const LETTERS: [&str; 6] = ["a", " ", "1", "\n", "é", "'"];

const LANGUAGES: [&str; 7] = [
    "(?s).*",
    "[a1 ]*",
    "(a| a|\\n)*",
    "[^1]*(11)?",
    " *(a|é)? *\n?",
    "1{0,5}| +a",
    "[a&&1]",
];

fn families() -> [&'static [Family]; 4] {
    [
        &[Family::Gpt2],
        &[Family::Cl100k],
        &[Family::O200k],
        &[Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3],
    ]
}

/// A tokenizer over the bytes of the letters, with some random merges.
fn tokenizer(random: &mut Random, families: &[Family]) -> Tokenizer {
    tokenizer_with(random, families, &[])
}

/// Texts for tokens that only a whole piece becomes, as Llama 3 has some.
const WHOLES: [&str; 8] = ["aa", " a", "a1", "11", "aaa", "éa", "\n\n", " aa"];

/// The same with three such tokens, where merges do not make them.
fn tokenizer_with_wholes(random: &mut Random, families: &[Family]) -> Tokenizer {
    let wholes = [(); 3].map(|()| WHOLES[random.below(WHOLES.len())]);
    tokenizer_with(random, families, &wholes)
}

fn tokenizer_with(random: &mut Random, families: &[Family], wholes: &[&str]) -> Tokenizer {
    let bytes: BTreeSet<u8> = LETTERS.iter().flat_map(|letter| letter.bytes()).collect();
    let mut tokens: Vec<Vec<u8>> = bytes.into_iter().map(|byte| vec![byte]).collect();
    let mut merges = Vec::new();
    for _ in 0..5 {
        let (left, right) = (random.below(tokens.len()), random.below(tokens.len()));
        let product = [&tokens[left][..], &tokens[right]].concat();
        if product.len() <= 4 && !tokens.contains(&product) {
            tokens.push(product);
            merges.push((left as TokenId, right as TokenId));
        }
    }
    for whole in wholes.iter().map(|whole| whole.as_bytes().to_vec()) {
        if !tokens.contains(&whole) {
            tokens.push(whole);
        }
    }
    let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("tokens");
    let dictionary = Dictionary::from_merges(vocabulary, merges).expect("merges");
    let dictionary = dictionary.with_whole_piece_lookup(!wholes.is_empty());
    let patterns = families.iter().copied().map(Pattern::of_family);
    patterns
        .fold(TokenizerBuilder::new(&dictionary), |builder, pattern| {
            builder.pattern(pattern)
        })
        .build()
        .expect("a tokenizer")
}

/// All texts of up to so many letters.
fn texts(longest: usize) -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..longest {
        let end = texts.len();
        for place in from..end {
            for letter in LETTERS {
                texts.push([&texts[place], letter.as_bytes()].concat());
            }
        }
        from = end;
    }
    texts
}

fn span_ends(spanner: &mut Spanner, text: &[u8]) -> BTreeSet<usize> {
    let mut ends = BTreeSet::from([0]);
    let flow = spanner.for_each_span(text, &SpecialMatcher::none(), |span| {
        ends.insert(span.end);
        ControlFlow::<()>::Continue(())
    });
    assert!(flow.is_ok_and(|flow| flow.is_continue()));
    ends
}

fn language(pattern: &str) -> StringDfa {
    StringDfa::from_regex(pattern, &StringDfaLimits::default()).expect("small")
}

#[test]
fn exactly_the_encoders_tokens_of_the_language_are_accepted() {
    let mut random = Random(71);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..40 {
        let tokenizer = match round {
            0..16 => tokenizer(&mut random, families()[round % 4]),
            16..32 => tokenizer_with_wholes(&mut random, families()[round % 4]),
            // The whole text is a piece.
            _ => tokenizer_with_wholes(&mut random, &[]),
        };
        let ids: Vec<TokenId> = tokenizer.vocabulary().iter().map(|token| token.0).collect();
        let language = language(LANGUAGES[round % 7]);
        let mut dfa = tokenizer.token_dfa(language.clone()).expect("proper");
        if round % 3 == 1 {
            // So little that all is forgotten again and again.
            dfa = dfa.keeping(10);
        }
        for text in texts(5) {
            let tokens = tokenizer.encode_bytes(&text).expect("letters");
            let expected = language.accepts(&text);
            assert_eq!(dfa.accepts(&tokens), expected, "{text:?} {tokens:?}");
            accepted += u32::from(expected);
        }
        // All sequences: also those whose text is not UTF-8.
        let mut sequences = vec![Vec::new()];
        for _ in 0..=3 {
            for tokens in &sequences {
                let text = tokenizer.decode_bytes(tokens).expect("tokens");
                let expected = language.accepts(&text)
                    && tokenizer.encode_bytes(&text).expect("letters") == *tokens;
                assert_eq!(dfa.accepts(tokens), expected, "{text:?} {tokens:?}");
                refused += u32::from(!expected);
            }
            let longer = |tokens: &Vec<TokenId>| {
                let tokens = tokens.clone();
                ids.iter().map(move |&id| [&tokens[..], &[id]].concat())
            };
            sequences = sequences.iter().flat_map(longer).collect();
        }
    }
    assert!(
        accepted > 40_000 && refused > 40_000,
        "{accepted} {refused}"
    );
}

/// A token may come if some text goes on so that no piece starts inside a token, and tokens that no
/// piece parts are valid neighbours: the union over "no cut here" and "the pattern cuts here".
#[test]
fn masks_have_the_tokens_that_some_text_can_go_on_with() {
    let continuations = texts(3);
    let mut random = Random(73);
    let (mut allowed, mut refused) = (0, 0);
    for round in 0..12 {
        let families = families()[round % 4];
        let tokenizer = tokenizer(&mut random, families);
        let lexers = families
            .iter()
            .map(|&family| Pattern::of_family(family).lexer(Engine::Auto));
        let mut spanner = Spanner::new(lexers.collect::<Result<_, _>>().expect("known"));
        let pairs = tokenizer.pair_relation().expect("proper").clone();
        let ids: Vec<TokenId> = tokenizer.vocabulary().iter().map(|token| token.0).collect();
        let language = language(LANGUAGES[round % 6]);
        let mut dfa = tokenizer.token_dfa(language.clone()).expect("proper");
        let mut is_possible = |tokens: &[TokenId]| {
            let mut ends = vec![0];
            let mut text = Vec::new();
            for &token in tokens {
                text.extend_from_slice(tokenizer.token_bytes(token).expect("a token"));
                ends.push(text.len());
            }
            // A character that has begun goes on first: a letter, or a sign.
            let rests: &[&[u8]] = &[b"", &[0xA9], &[0x97]];
            let rests = rests.iter().flat_map(|rest| {
                continuations
                    .iter()
                    .map(move |more| [rest, &more[..]].concat())
            });
            rests.into_iter().any(|rest| {
                let whole = [&text[..], &rest].concat();
                if !language.accepts(&whole) {
                    return false;
                }
                let starts = span_ends(&mut spanner, &whole);
                let outside = |&place: &usize| place > text.len() || ends.contains(&place);
                starts.iter().all(outside)
                    && tokens
                        .windows(2)
                        .zip(&ends[1..])
                        .all(|(pair, end)| starts.contains(end) || pairs.is_valid(pair[0], pair[1]))
            })
        };
        for _ in 0..6 {
            let mut state = dfa.start();
            let mut tokens = Vec::new();
            for _ in 0..3 {
                let found = dfa.allowed_tokens(&state);
                let steps: Vec<TokenId> = ids
                    .iter()
                    .copied()
                    .filter(|&id| dfa.next(&state, id).is_some())
                    .collect();
                assert_eq!(found, steps);
                let expected: Vec<TokenId> = ids
                    .iter()
                    .copied()
                    .filter(|&id| is_possible(&[&tokens[..], &[id]].concat()))
                    .collect();
                assert_eq!(found, expected, "{families:?} {tokens:?}");
                allowed += found.len();
                refused += ids.len() - found.len();
                if found.is_empty() {
                    break;
                }
                let token = found[random.below(found.len())];
                state = dfa.next(&state, token).expect("allowed");
                tokens.push(token);
            }
        }
    }
    assert!(allowed > 200 && refused > 200, "{allowed} {refused}");
}

/// The tokens of a text, as the places where they end.
fn cuts(tokenizer: &Tokenizer, text: &[u8]) -> Vec<usize> {
    let encoding = tokenizer.encode_with_offsets(text).expect("letters");
    encoding.byte_ranges.iter().map(|range| range.end).collect()
}

/// Two tokenizers are the same function if no text shows a difference, and what no piece contains is
/// none: texts of up to five letters are tried.
#[test]
fn tokenizers_are_equivalent_unless_a_text_shows_a_difference() {
    let texts = texts(5);
    let mut random = Random(79);
    let (mut same, mut different, mut across) = (0, 0, 0);
    for round in 0..300 {
        let families = match round % 20 {
            19 => &[],
            _ => families()[round % 4],
        };
        let make = match round / 120 {
            0 => tokenizer,
            _ => tokenizer_with_wholes,
        };
        let first = make(&mut random, families);
        // The same with two rules in the other order, or other rules.
        let second = match round % 3 {
            0 => make(&mut random, families),
            1 if round >= 120 => with_other_wholes(&first, &mut random),
            _ => swapped(&first, &mut random),
        };
        let (Ok(answer), Ok(_)) = (
            first.equivalent(&second),
            bpe_dfa::PairRelation::new(second.canonical()),
        ) else {
            assert!(!second.canonical().is_proper());
            continue;
        };
        let in_a_span = bpe_dfa::equivalent(first.canonical(), second.canonical());
        let in_a_span = matches!(in_a_span, Ok(Equivalence::Different(_)));
        let shown = texts
            .iter()
            .find(|text| cuts(&first, text) != cuts(&second, text));
        match answer {
            Equivalence::Same { .. } => {
                assert_eq!(shown, None, "round {round}");
                same += 1;
                across += u32::from(in_a_span);
            }
            Equivalence::Different(witness) => {
                let text = &witness.text;
                assert_ne!(cuts(&first, text), cuts(&second, text));
                different += 1;
            }
            Equivalence::Unknown { .. } => panic!("round {round}: not known"),
        }
    }
    assert!(
        same > 60 && different > 30 && across > 20,
        "{same} {different} {across}"
    );
}

/// The tokenizer with two of its rules in the other order.
fn swapped(tokenizer: &Tokenizer, random: &mut Random) -> Tokenizer {
    let canonical = tokenizer.canonical();
    let mut rules: Vec<_> = canonical.rules().collect();
    rules.sort_unstable_by_key(|rule| rule.priority);
    if rules.len() > 1 {
        let (one, other) = (random.below(rules.len()), random.below(rules.len()));
        rules.swap(one, other);
    }
    let merges = rules.iter().map(|rule| (rule.left, rule.right));
    let dictionary = Dictionary::from_merges(tokenizer.vocabulary().clone(), merges)
        .expect("the same tokens")
        .with_whole_piece_lookup(canonical.whole_piece_lookup());
    with_dictionary(tokenizer, &dictionary)
}

/// The tokenizer with one more token that only a whole piece becomes, or with none of them.
fn with_other_wholes(tokenizer: &Tokenizer, random: &mut Random) -> Tokenizer {
    let canonical = tokenizer.canonical();
    let mut rules: Vec<_> = canonical.rules().collect();
    rules.sort_unstable_by_key(|rule| rule.priority);
    let merges = rules.iter().map(|rule| (rule.left, rule.right));
    let mut tokens: Vec<(TokenId, Vec<u8>)> = tokenizer
        .vocabulary()
        .iter()
        .map(|(id, bytes)| (id, bytes.to_vec()))
        .collect();
    let other = WHOLES[random.below(WHOLES.len())].as_bytes();
    match random.below(3) {
        0 => tokens.retain(|token| canonical.unreachable_tokens().all(|id| id != token.0)),
        _ if tokens.iter().any(|token| token.1 == other) => {}
        _ => tokens.push((tokens.len() as TokenId, other.to_vec())),
    }
    let vocabulary = Vocabulary::new(tokens).expect("tokens");
    let dictionary = Dictionary::from_merges(vocabulary, merges).expect("the same rules");
    with_dictionary(tokenizer, &dictionary.with_whole_piece_lookup(true))
}

/// A tokenizer with the same patterns.
fn with_dictionary(tokenizer: &Tokenizer, dictionary: &Dictionary) -> Tokenizer {
    let builder = TokenizerBuilder::new(dictionary);
    let patterns = tokenizer.patterns().iter().cloned();
    let builder = patterns.fold(builder, TokenizerBuilder::pattern);
    builder.build().expect("a tokenizer")
}

#[test]
fn a_token_that_only_whole_pieces_are_stands_alone_in_its_piece() {
    // By ranks, "abc" is made of nothing: only a piece that it is becomes it.
    let tokens = [(0, "a"), (1, "b"), (2, "c"), (3, "abc"), (4, " ")];
    let dictionary = Dictionary::from_ranks(Vocabulary::new(tokens).expect("tokens"));
    let builder = TokenizerBuilder::new(&dictionary.expect("ranks"));
    let tokenizer = builder.pattern(Pattern::gpt2()).build().expect("letters");
    assert_eq!(tokenizer.encode("abc").expect("letters"), [3]);
    let mut dfa = tokenizer.token_dfa(language("[a-c ]*")).expect("proper");
    assert!(dfa.accepts(&[3]) && !dfa.accepts(&[0, 1, 2]));
    assert!(dfa.accepts(&[0, 1, 2, 0]) && !dfa.accepts(&[3, 0]));
    assert!(dfa.accepts(&[3, 4, 4, 0]) && dfa.accepts(&[4, 0, 1, 2]));
    let behind = dfa.next(&dfa.start(), 3).expect("a piece");
    assert_eq!(behind.last_token_state(), None);
    assert_eq!(dfa.allowed_tokens(&behind), [4]);
    let same = tokenizer.equivalent(&tokenizer).expect("proper");
    assert_eq!(same, Equivalence::Same { same_ids: true });
}

#[test]
fn a_dictionary_over_characters_has_no_token_automaton() {
    let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")]).expect("tokens");
    let dictionary = Dictionary::from_merges(vocabulary, [(0, 1)]).expect("merges");
    let atoms = bpe_core::Atoms::Characters {
        unknown: None,
        fuse_unknown: false,
    };
    let dictionary = dictionary.with_atoms(atoms).expect("characters");
    let builder = TokenizerBuilder::new(&dictionary).pattern(Pattern::gpt2());
    let tokenizer = builder.build().expect("a tokenizer");
    let error = tokenizer.token_dfa(language("a*")).expect_err("characters");
    assert!(error.is_over_characters() && !error.is_improper());
    let error = tokenizer.equivalent(&tokenizer).expect_err("characters");
    assert!(error.is_over_characters());
}

/// A validator's answer is that of the definition, and what it says early no continuation changes.
#[test]
fn what_a_validator_finds_early_is_so_with_every_continuation() {
    let mut random = Random(83);
    let (mut early, mut late) = (0, 0);
    for round in 0..8 {
        let tokenizer = tokenizer(&mut random, families()[round % 4]);
        let ids: Vec<TokenId> = tokenizer.vocabulary().iter().map(|token| token.0).collect();
        let mut validator = tokenizer.validator().expect("known patterns");
        let longer = |sequences: &[Vec<TokenId>]| -> Vec<Vec<TokenId>> {
            let more = |tokens: &Vec<TokenId>| {
                let tokens = tokens.clone();
                ids.iter().map(move |&id| [&tokens[..], &[id]].concat())
            };
            sequences.iter().flat_map(more).collect()
        };
        let one = longer(&[Vec::new()]);
        let two = longer(&one);
        let three = longer(&two);
        let continuations = [vec![Vec::new()], one.clone(), two.clone()].concat();
        let index = |tokens: &[TokenId]| {
            let text = tokenizer.decode_bytes(tokens).expect("tokens");
            let expected = tokenizer.encode_bytes(&text).expect("letters");
            let common = tokens.iter().zip(&expected).take_while(|(a, b)| a == b);
            let common = common.count();
            (tokens != expected).then_some(common)
        };
        // At once, where pieces are found from tokens alone: longer ones too.
        for tokens in one.iter().chain(&two).chain(&three) {
            let found = validator.validate(tokens).expect("letters");
            assert_eq!(found.map(|found| found.index), index(tokens), "{tokens:?}");
        }
        for _ in 0..3_000 {
            let length = 4 + random.below(12);
            let text: Vec<u8> = (0..length)
                .flat_map(|_| LETTERS[random.below(LETTERS.len())].bytes())
                .collect();
            let mut tokens = tokenizer.encode_bytes(&text).expect("letters");
            if random.below(3) > 0 {
                let place = random.below(tokens.len());
                tokens[place] = ids[random.below(ids.len())];
            }
            let found = validator.validate(&tokens).expect("letters");
            assert_eq!(found.map(|found| found.index), index(&tokens), "{tokens:?}");
        }
        let all = [one, two, three].concat();
        for tokens in all.iter().step_by(7) {
            for &token in tokens {
                validator.push(&[token]).expect("letters");
            }
            let found = validator.push(&[]).expect("letters").cloned();
            let last = validator.finish().expect("letters");
            assert_eq!(last.map(|found| found.index), index(tokens), "{tokens:?}");
            let Some(found) = found else {
                late += 1;
                continue;
            };
            early += 1;
            for continuation in &continuations {
                let whole = [&tokens[..], continuation].concat();
                assert_eq!(index(&whole), Some(found.index), "{whole:?}");
            }
        }
    }
    assert!(early > 200 && late > 200, "{early} {late}");
}

/// States that were asked for before all was forgotten go on as ever; and through a pattern masks without dead
/// ends hold what the explicit automaton, trimmed, has.
#[test]
fn states_outlive_what_is_forgotten_and_dead_ends_are_left_out() {
    let mut random = Random(89);
    let (mut kept, mut dropped) = (0, 0);
    for round in 0..40 {
        let make = match round % 2 {
            0 => tokenizer,
            _ => tokenizer_with_wholes,
        };
        let tokenizer = make(&mut random, families()[round % 4]);
        let language =
            language(["a{2}1|a( a|1a)", "(aa|1|é){2,3}", "( a){2}\n?a", "a1{3}é"][round / 4 % 4]);
        let limits = StringDfaLimits::default();
        let mut dfa = tokenizer.token_dfa(language.clone()).expect("proper");
        let explicit = dfa.explicit(&limits).expect("small");
        let mut small = tokenizer.token_dfa(language).expect("proper").keeping(5);
        let ids: Vec<TokenId> = tokenizer.vocabulary().iter().map(|token| token.0).collect();
        let mut mask = vec![0; dfa.words()];
        let mut states = vec![(dfa.start(), small.start(), Vec::new())];
        for place in 0..40 {
            let Some((state, other, tokens)) = states.get(place).cloned() else {
                break;
            };
            assert_eq!(dfa.allowed_tokens(&state), small.allowed_tokens(&other));
            assert_eq!(dfa.is_accepting(&state), small.is_accepting(&other));
            let mut same = mask.clone();
            assert!(dfa.allowed_to_complete(&state, &mut mask, 10_000));
            assert!(small.allowed_to_complete(&other, &mut same, 10_000));
            assert_eq!(mask, same);
            let before = explicit.walk(explicit.start(), tokens.iter().copied());
            for &id in &ids {
                let found = mask[id as usize / 64] >> (id % 64) & 1 == 1;
                let before = before.filter(|_| !explicit.is_empty());
                let expected = before.and_then(|before| explicit.walk(before, [id]));
                assert_eq!(found, expected.is_some(), "{tokens:?} {id}");
                let next = dfa.next(&state, id);
                kept += u32::from(found);
                dropped += u32::from(!found && next.is_some());
                if let Some(next) = next {
                    let other = small.next(&other, id).expect("the same");
                    states.push((next, other, [&tokens[..], &[id]].concat()));
                }
            }
        }
    }
    assert!(kept > 300 && dropped > 50, "{kept} {dropped}");
}

#[cfg(feature = "o200k_base")]
#[test]
fn a_real_vocabulary_accepts_its_encoders_tokens_and_finds_what_is_not() {
    let tokenizer = Tokenizer::o200k_base();
    let json = r#"\{"name": "[^"\\]*", "age": [0-9]+(, "tags": \[("[a-z ]*"(, )?)*\])?\}"#;
    let mut dfa = tokenizer.token_dfa(language(json)).expect("proper");
    for text in [
        r#"{"name": "Zoë 中文  x", "age": 1234567, "tags": ["a b", "c"]}"#,
        r#"{"name": "", "age": 0}"#,
        r#"{"name": "it's   \n", "age": 99}"#,
    ] {
        let text = text.replace("\\n", "\n");
        let ids = tokenizer.encode(&text).expect("text");
        assert!(dfa.accepts(&ids), "{text}");
        let mut mask = vec![0; dfa.words()];
        let mut state = dfa.start();
        for place in 0..ids.len() {
            dfa.allowed(&state, &mut mask);
            let id = ids[place] as usize;
            assert_ne!(mask[id / 64] >> (id % 64) & 1, 0);
            // Its bytes one by one are the same text, and not its tokens.
            let bytes = tokenizer.token_bytes(ids[place]).expect("a token");
            if bytes.len() > 1 {
                let letters = bytes.iter().map(|&byte| tokenizer.token_id(&[byte]));
                let letters: Vec<TokenId> = letters.map(|id| id.expect("a byte")).collect();
                let wrong = [&ids[..place], &letters, &ids[place + 1..]].concat();
                assert!(!dfa.accepts(&wrong));
            }
            state = dfa.next(&state, ids[place]).expect("allowed");
        }
        assert!(dfa.is_accepting(&state));
    }
    assert!(!dfa.accepts(&tokenizer.encode(r#"{"name": "x", "age": }"#).expect("text")));
}
