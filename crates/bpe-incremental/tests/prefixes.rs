//! The prefix tree, its attention mask, and token healing, against their definitions.

mod support;

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, Atoms, Dictionary, TokenId, Vocabulary};
use bpe_incremental::{LastTokenEngine, PrefixTree, TokenHealer};
use support::{Merge, Random, canonical, dictionary_of, merge_lists, tokens_of};

fn tokens_of_prefixes(dictionary: &Dictionary, text: &[u8]) -> Vec<Vec<TokenId>> {
    let reference = Reference::new(dictionary);
    (0..=text.len())
        .map(|len| reference.standard(&text[..len]).expect("letters"))
        .collect()
}

fn random_text(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| b'a' + random.below(2) as u8).collect()
}

#[test]
fn ancestors_are_the_prefixes_whose_tokens_come_first() {
    let mut random = Random(1);
    let lists = merge_lists(3);
    for _ in 0..200 {
        let dictionary = dictionary_of(&lists[random.below(lists.len())]);
        let Ok(engine) = LastTokenEngine::new(&canonical(&dictionary)) else {
            continue;
        };
        let text = random_text(&mut random, 20);
        let tokens = tokens_of_prefixes(&dictionary, &text);
        let mut history = engine.history();
        history.extend(&text).expect("letters");
        let tree = history.prefix_tree().expect("short");
        assert_eq!(tree.text_len(), text.len());
        for len in 0..=text.len() {
            assert_eq!(tree.tokens(len), tokens[len]);
            assert_eq!(tree.token_count(len), Some(tokens[len].len()));
            assert_eq!(tree.last_token(len), tokens[len].last().copied());
            for other in 0..=text.len() {
                let is_ancestor = tokens[len].starts_with(&tokens[other]);
                assert_eq!(tree.is_ancestor(other, len), is_ancestor);
                let pairs = tokens[len].iter().zip(&tokens[other]);
                let equal = pairs.take_while(|(a, b)| a == b).count();
                let common = tree.common_ancestor(len, other);
                assert_eq!(tree.tokens(common), tokens[len][..equal]);
            }
        }
        assert!(!tree.is_ancestor(0, text.len() + 1));
        assert_eq!(tree.parent(0), None);
        // What a row sees, in order, are the tokens of its prefix.
        let lens: Vec<usize> = (0..4).map(|_| random.below(text.len() + 1)).collect();
        let mask = tree.attention_mask(lens.iter().copied());
        for &len in lens.iter().filter(|len| **len > 0) {
            let row = mask.row_of(len).expect("asked for");
            let seen: Vec<usize> = (0..mask.tokens().len())
                .filter(|&column| mask.sees(row, column))
                .collect();
            let ids: Vec<TokenId> = seen.iter().map(|&row| mask.tokens()[row]).collect();
            assert_eq!(ids, tokens[len]);
            let positions: Vec<usize> = mask.positions().collect();
            let expected: Vec<usize> = (0..seen.len()).collect();
            assert_eq!(
                seen.iter().map(|&row| positions[row]).collect::<Vec<_>>(),
                expected
            );
            let parent = seen.len().checked_sub(2).map(|at| seen[at]);
            assert_eq!(mask.parent(row), parent);
        }
        for len in mask.prefix_lens() {
            assert!(lens.iter().any(|&asked| tree.is_ancestor(len, asked)));
        }
    }
}

#[test]
fn last_tokens_that_do_not_fit_make_no_tree() {
    assert!(PrefixTree::new([(0, 0)]).is_none());
    assert!(PrefixTree::new([(0, 2)]).is_none());
    assert_eq!(PrefixTree::new([]).map(|tree| tree.text_len()), Some(0));
}

#[test]
fn healing_keeps_exactly_what_all_continuations_share_and_allows_exactly_what_one_has() {
    let mut random = Random(2);
    let lists: Vec<_> = (1..=3).flat_map(merge_lists).collect();
    for round in 0..120 {
        let dictionary = dictionary_of(&lists[(round * 37 + random.below(37)) % lists.len()]);
        let Ok(engine) = LastTokenEngine::new(&canonical(&dictionary)) else {
            continue;
        };
        let healer = TokenHealer::new(&engine).expect("bytes");
        let reference = Reference::new(&dictionary);
        // Every continuation that a token can reach into, and one letter more.
        let longest = dictionary.vocabulary().longest_token();
        for len in 0..7 {
            let prompt = random_text(&mut random, len);
            let healing = healer.heal(&prompt).expect("letters");
            let all: Vec<Vec<TokenId>> = (0..=longest)
                .flat_map(|len| (0..1_usize << len).map(move |number| (len, number)))
                .map(|(len, number)| {
                    let mut text = prompt.clone();
                    text.extend((0..len).map(|bit| b'a' + (number >> bit & 1) as u8));
                    reference.standard(&text).expect("letters")
                })
                .collect();
            let mut common = all[0].clone();
            for tokens in &all {
                let pairs = common.iter().zip(tokens);
                let equal = pairs.take_while(|(a, b)| a == b).count();
                common.truncate(equal);
            }
            assert_eq!(
                healing.certain(),
                common,
                "{prompt:?} {:?}",
                dictionary.rules()
            );
            let vocabulary = dictionary.vocabulary();
            let bytes = vocabulary.decode_bytes(&common).expect("tokens").len();
            assert_eq!(healing.pending(), bytes..prompt.len());
            for at in 0..=prompt.len() {
                // The tokens that come after `at` bytes in some continuation.
                let mut expected: Vec<TokenId> = all
                    .iter()
                    .filter_map(|tokens| {
                        let mut end = 0;
                        for &token in tokens {
                            if end == at {
                                return (at >= bytes).then_some(token);
                            }
                            end += vocabulary.token_bytes(token)?.len();
                        }
                        None
                    })
                    .collect();
                expected.sort_unstable();
                expected.dedup();
                let context = (at, &prompt, dictionary.rules());
                assert_eq!(healing.allowed(at), expected, "{context:?}");
            }
        }
    }
}

/// A list of merges with the letters a and é in place of a and b, and a fallback token for each byte.
fn over_characters(merges: &[Merge]) -> Dictionary {
    let letters = |token: &[u8]| -> Vec<u8> {
        let letters = token
            .iter()
            .map(|&letter| if letter == b'a' { "a" } else { "é" });
        letters.collect::<String>().into_bytes()
    };
    let tokens: Vec<Vec<u8>> = tokens_of(merges).iter().map(|t| letters(t)).collect();
    let id = |token: &[u8]| {
        let place = tokens.iter().position(|other| *other == letters(token));
        300 + place.expect("a token") as TokenId
    };
    let vocabulary = Vocabulary::with_byte_fallback(
        (300..).zip(&tokens),
        (0..=255).map(|byte| (TokenId::from(byte), byte)),
    );
    let pairs = merges.iter().map(|(left, right)| (id(left), id(right)));
    let dictionary = Dictionary::from_merges(vocabulary.expect("valid"), pairs.collect::<Vec<_>>());
    let atoms = Atoms::Characters {
        unknown: None,
        fuse_unknown: false,
    };
    dictionary.expect("valid").with_atoms(atoms).expect("valid")
}

#[test]
fn healing_over_characters_is_exact_in_the_same_way_and_in_the_midst_of_characters() {
    // Two letters of the vocabulary, two that are not (with a byte in common with é), and parts.
    const PARTS: [&[u8]; 7] = [
        b"a",
        b"\xC3\xA9",
        b"\xC3\xA4",
        b"x",
        b"\xC3",
        b"\xA9",
        b"\xA4",
    ];
    let mut continuations: Vec<Vec<u8>> = vec![Vec::new()];
    let mut last = continuations.clone();
    // A token of two merges has four letters at most: three beyond the prompt, and one more.
    for _ in 0..4 {
        let longer = |text: &Vec<u8>| PARTS.map(|part| [&text[..], part].concat());
        last = last.iter().flat_map(longer).collect();
        continuations.extend_from_slice(&last);
    }
    let mut random = Random(3);
    let lists: Vec<_> = (0..=2).flat_map(merge_lists).collect();
    let mut prompts = 0;
    for merges in lists.iter().step_by(2) {
        let dictionary = over_characters(merges);
        let canonical = canonical(&dictionary);
        let Ok(engine) = LastTokenEngine::new(&canonical) else {
            continue;
        };
        let healer = TokenHealer::new(&engine).expect("fallback tokens");
        let mut direct = Algorithm::MergeHeap.encoder(&canonical).expect("any");
        for parts in 0..6 {
            prompts += 1;
            let prompt: Vec<u8> = (0..parts)
                .flat_map(|_| PARTS[random.below(PARTS.len())])
                .copied()
                .collect();
            let healing = healer.heal(&prompt).expect("complete");
            let all: Vec<Vec<TokenId>> = continuations
                .iter()
                .map(|continuation| {
                    let mut tokens = Vec::new();
                    let text = [&prompt[..], continuation].concat();
                    direct.encode_span(&text, &mut tokens).expect("complete");
                    tokens
                })
                .collect();
            let mut common = all[0].clone();
            for tokens in &all {
                let pairs = common.iter().zip(tokens);
                let equal = pairs.take_while(|(a, b)| a == b).count();
                common.truncate(equal);
            }
            let context = format!("{prompt:?} {:?}", dictionary.rules());
            assert_eq!(healing.certain(), common, "{context}");
            let vocabulary = dictionary.vocabulary();
            let bytes = vocabulary.decode_bytes(&common).expect("tokens").len();
            assert_eq!(healing.pending(), bytes..prompt.len(), "{context}");
            for at in bytes..=prompt.len() {
                let mut expected = Vec::new();
                for tokens in &all {
                    let mut end = 0;
                    for &token in tokens {
                        if end == at {
                            expected.push(token);
                        }
                        end += vocabulary.token_bytes(token).expect("a token").len();
                    }
                }
                expected.sort_unstable();
                expected.dedup();
                let mut allowed = healing.allowed(at);
                // The continuations have no other bytes.
                allowed.retain(|&id| id >= 300 || PARTS.concat().contains(&(id as u8)));
                assert_eq!(allowed, expected, "{at} {context}");
            }
        }
    }
    assert!(prompts > 60, "{prompts} prompts");
}
