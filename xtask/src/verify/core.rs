//! Encoders, canonical form and the facts of docs/architecture.md, by brute force on small dictionaries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, BytePairs, CanonicalForm, Dictionary, TokenId, Vocabulary};

use super::support::{Random, equal_ids, parallel, text_of};
use super::{Checked, Claims};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "encoders equal the reference, all lists of up to 3 merges over two letters",
        |settings, _| {
            let longest = settings.choose(8, 10);
            let lists = merge_lists(0..=3);
            let cases = check_lists(&lists, &words(longest))?;
            Ok(Checked::with_note(
                cases,
                format!("{} lists, texts up to {longest} letters", lists.len()),
            ))
        },
    );
    let claim = "encoders equal the reference, all lists of 4 merges over two letters";
    if claims.settings.full {
        claims.check(claim, |_, _| {
            let lists = merge_lists(4..=4);
            let cases = check_lists(&lists, &words(8))?;
            Ok(Checked::with_note(
                cases,
                format!("{} lists, texts up to 8 letters", lists.len()),
            ))
        });
    } else {
        claims.skip(claim, "takes long (--full)");
    }
    claims.check(
        "encoders equal a direct rank loop, random rank dictionaries (P38)",
        |settings, _| {
            let dictionaries = settings.choose(4_000, 100_000);
            let cases = parallel(dictionaries, check_random_ranks)?;
            Ok(Checked::with_note(
                cases,
                format!("{dictionaries} dictionaries, ids with holes and not by length"),
            ))
        },
    );
    claims.check(
        "the canonical form as a dictionary encodes the same (000 App. A, C)",
        |settings, _| {
            let lists = merge_lists(0..=3);
            let texts = words(8);
            let small = parallel(lists.len(), |number| {
                check_canonical(&dictionary_of(&lists[number], number)?, &texts)
            })?;
            let random = parallel(settings.choose(4_000, 50_000), |number| {
                let (ranks, texts) = random_ranks(number);
                check_canonical(&dictionary_of_ranks(&ranks)?, &texts)
            })?;
            Ok(Checked::with_note(small + random, ""))
        },
    );
    claims.check(
        "truncation: each run of tokens is the tokenization of its text, small proper dictionaries",
        |_, _| {
            let lists = merge_lists(0..=3);
            let texts = words(8);
            let cases = parallel(lists.len(), |number| {
                check_truncation(&dictionary_of(&lists[number], number)?, &texts)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
    claims.check(
        "a byte pair that no token contains is a boundary, random rank dictionaries",
        |settings, _| {
            let cases = parallel(settings.choose(4_000, 50_000), |number| {
                let (ranks, texts) = random_ranks(number);
                check_boundaries(&dictionary_of_ranks(&ranks)?, &texts)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
}

pub(super) type Merge = (Vec<u8>, Vec<u8>);

/// All strings of a and b up to a length.
pub(super) fn words(longest: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..longest {
        let end = all.len();
        for index in start..end {
            for letter in *b"ab" {
                let mut word = all[index].clone();
                word.push(letter);
                all.push(word);
            }
        }
        start = end;
    }
    all
}

/// All lists of so many merges over a and b in every order, improper ones among them. Each side is
/// a letter or made by a merge of the list, before or after.
pub(super) fn merge_lists(counts: std::ops::RangeInclusive<usize>) -> Vec<Vec<Merge>> {
    let mut lists = Vec::new();
    let mut sets = BTreeSet::from([Vec::<Merge>::new()]);
    for count in 0..=*counts.end() {
        if counts.contains(&count) {
            for set in &sets {
                permute(&mut set.clone(), 0, &mut lists);
            }
        }
        let mut larger = BTreeSet::new();
        for set in &sets {
            let tokens = tokens_of(set);
            for left in &tokens {
                for right in &tokens {
                    let merge = (left.clone(), right.clone());
                    if !set.contains(&merge) {
                        let mut with_merge = set.clone();
                        with_merge.push(merge);
                        with_merge.sort();
                        larger.insert(with_merge);
                    }
                }
            }
        }
        sets = larger;
    }
    lists
}

pub(super) fn permute(merges: &mut Vec<Merge>, from: usize, lists: &mut Vec<Vec<Merge>>) {
    if from == merges.len() {
        lists.push(merges.clone());
    }
    for index in from..merges.len() {
        merges.swap(from, index);
        permute(merges, from + 1, lists);
        merges.swap(from, index);
    }
}

fn tokens_of(merges: &[Merge]) -> BTreeSet<Vec<u8>> {
    let products = merges
        .iter()
        .map(|(left, right)| [&left[..], right].concat());
    products.chain([b"a".to_vec(), b"b".to_vec()]).collect()
}

/// The dictionary of a list, its ids in an order that has nothing to do with that of the merges.
pub(super) fn dictionary_of(merges: &[Merge], seed: usize) -> Result<Dictionary, String> {
    let mut tokens: Vec<Vec<u8>> = tokens_of(merges).into_iter().collect();
    let mut random = Random::new(seed as u64);
    for index in (1..tokens.len()).rev() {
        tokens.swap(index, random.below(index + 1));
    }
    let ids: BTreeMap<&[u8], TokenId> = (0..)
        .step_by(3)
        .zip(&tokens)
        .map(|(id, token)| (&token[..], id))
        .collect();
    let pairs: Vec<_> = merges
        .iter()
        .map(|(left, right)| (ids[&left[..]], ids[&right[..]]))
        .collect();
    let vocabulary = Vocabulary::new(ids.iter().map(|(token, id)| (*id, *token)));
    Dictionary::from_merges(vocabulary.map_err(text_of)?, pairs).map_err(text_of)
}

fn check_lists(lists: &[Vec<Merge>], texts: &[Vec<u8>]) -> Result<u64, String> {
    parallel(lists.len(), |number| {
        let dictionary = dictionary_of(&lists[number], number)?;
        let reference = Reference::new(&dictionary);
        let proper = dictionary.is_proper();
        check_encoders(&dictionary, texts, |text| {
            let expected = reference
                .sentencepiece(text)
                .ok_or("a letter is no token")?;
            if proper && reference.standard(text).as_ref() != Some(&expected) {
                let text = String::from_utf8_lossy(text);
                return Err(format!(
                    "semantics differ on {text:?} with the proper {:?}",
                    dictionary.rules()
                ));
            }
            Ok(expected)
        })
    })
}

/// All encoders that take the dictionary, on all texts, against `expected`.
fn check_encoders(
    dictionary: &Dictionary,
    texts: &[Vec<u8>],
    expected: impl Fn(&[u8]) -> Result<Vec<TokenId>, String>,
) -> Result<u64, String> {
    let canonical = Arc::new(CanonicalForm::new(dictionary));
    if dictionary.is_proper() && !canonical.is_proper() {
        return Err(format!(
            "dropping rules made {:?} improper",
            dictionary.rules()
        ));
    }
    let mut encoders = Vec::new();
    for &algorithm in Algorithm::ALL {
        match algorithm.encoder(&canonical) {
            Ok(encoder) => encoders.push((algorithm, encoder)),
            Err(error)
                if error.is_improper()
                    && !canonical.is_proper()
                    && algorithm == Algorithm::BpeBacktrack => {}
            Err(error) => return Err(format!("{algorithm}: {error}")),
        }
    }
    let mut tokens = Vec::new();
    let mut cases = 0;
    for text in texts {
        let expected = expected(text)?;
        for (algorithm, encoder) in &mut encoders {
            tokens.clear();
            encoder.encode_span(text, &mut tokens).map_err(text_of)?;
            equal_ids(&tokens, &expected, || {
                let text = String::from_utf8_lossy(text);
                format!("{algorithm} on {text:?} with {:?}", dictionary.rules())
            })?;
            cases += 1;
        }
    }
    Ok(cases)
}

/// Tokens with ranks that jump about, and texts of their letters: tokens that nothing makes, tokens
/// made by later ones, several splits of one token.
fn random_ranks(number: usize) -> (HashMap<Vec<u8>, u32>, Vec<Vec<u8>>) {
    let mut random = Random::new(1_000 + number as u64);
    let letters = 2 + random.below(3) as u8;
    let mut used = BTreeSet::new();
    let mut id = |random: &mut Random| loop {
        let id = (random.next() >> 8) as u32;
        if used.insert(id) {
            return id;
        }
    };
    let mut ranks: HashMap<_, _> = (0..letters)
        .map(|letter| (vec![letter], id(&mut random)))
        .collect();
    for _ in 0..random.below(40) {
        let length = 2 + random.below(5);
        let token = (0..length)
            .map(|_| random.below(letters.into()) as u8)
            .collect();
        ranks.entry(token).or_insert_with(|| id(&mut random));
    }
    let lengths = [0, 1, 2, 5, 9, 16, 30, 40, 130];
    let text = |length| {
        (0..length)
            .map(|_| random.below(letters.into()) as u8)
            .collect()
    };
    (ranks, lengths.map(text).to_vec())
}

fn dictionary_of_ranks(ranks: &HashMap<Vec<u8>, u32>) -> Result<Dictionary, String> {
    let vocabulary = Vocabulary::new(ranks.iter().map(|(token, rank)| (*rank, token)));
    Dictionary::from_ranks(vocabulary.map_err(text_of)?).map_err(text_of)
}

/// The loop of a rank tokenizer on strings, with nothing of this project in it: of all neighbours
/// that are a token together, join those of the lowest rank, the leftmost first.
fn rank_loop(ranks: &HashMap<Vec<u8>, u32>, text: &[u8]) -> Vec<u32> {
    let mut parts: Vec<Vec<u8>> = text.iter().map(|byte| vec![*byte]).collect();
    loop {
        let mut best: Option<(u32, usize)> = None;
        for left in 1..parts.len() {
            let joined = [&parts[left - 1][..], &parts[left]].concat();
            if let Some(&rank) = ranks.get(&joined)
                && best.is_none_or(|(lowest, _)| rank < lowest)
            {
                best = Some((rank, left - 1));
            }
        }
        let Some((_, left)) = best else {
            return parts.iter().map(|part| ranks[part]).collect();
        };
        let right = parts.remove(left + 1);
        parts[left].extend(right);
    }
}

fn check_random_ranks(number: usize) -> Result<u64, String> {
    let (ranks, texts) = random_ranks(number);
    let dictionary = dictionary_of_ranks(&ranks)?;
    let reference = Reference::new(&dictionary);
    check_encoders(&dictionary, &texts, |text| {
        let expected = rank_loop(&ranks, text);
        match reference.sentencepiece(text) {
            Some(tokens) if tokens == expected => Ok(expected),
            other => Err(format!(
                "the reference gives {other:?} on {text:?}, the rank loop {expected:?}, with {ranks:?}"
            )),
        }
    })
}

fn check_canonical(dictionary: &Dictionary, texts: &[Vec<u8>]) -> Result<u64, String> {
    let form = CanonicalForm::new(dictionary);
    let mut rules: Vec<_> = form.rules().collect();
    rules.sort_by_key(|rule| rule.priority);
    let vocabulary = Vocabulary::new(dictionary.vocabulary().iter()).map_err(text_of)?;
    let pairs = rules.iter().map(|rule| (rule.left, rule.right));
    let canonical = Dictionary::from_merges(vocabulary, pairs).map_err(text_of)?;
    let kept = rules.len() + form.dropped_rules(dictionary).count();
    if kept != dictionary.rules().len() {
        return Err(format!(
            "{kept} rules kept and dropped, of {}",
            dictionary.rules().len()
        ));
    }
    let (of_form, of_file) = (Reference::new(&canonical), Reference::new(dictionary));
    for text in texts {
        if of_form.sentencepiece(text) != of_file.sentencepiece(text) {
            return Err(format!("differs on {text:?} with {:?}", dictionary.rules()));
        }
    }
    Ok(texts.len() as u64)
}

fn check_truncation(dictionary: &Dictionary, texts: &[Vec<u8>]) -> Result<u64, String> {
    if !dictionary.is_proper() {
        return Ok(0);
    }
    let reference = Reference::new(dictionary);
    let mut cases = 0;
    for text in texts {
        let tokens = reference
            .sentencepiece(text)
            .ok_or("a letter is no token")?;
        for start in 0..tokens.len() {
            for end in start + 1..=tokens.len() {
                let run = &tokens[start..end];
                let bytes = dictionary.vocabulary().decode_bytes(run).map_err(text_of)?;
                if reference.sentencepiece(&bytes).as_deref() != Some(run) {
                    return Err(format!(
                        "tokens {start}..{end} of {text:?} with {:?}",
                        dictionary.rules()
                    ));
                }
                cases += 1;
            }
        }
    }
    Ok(cases)
}

fn check_boundaries(dictionary: &Dictionary, texts: &[Vec<u8>]) -> Result<u64, String> {
    let reference = Reference::new(dictionary);
    let pairs = BytePairs::new(dictionary.vocabulary());
    let mut cases = 0;
    for text in texts {
        let whole = reference
            .sentencepiece(text)
            .ok_or("a letter is no token")?;
        for at in 1..text.len() {
            if pairs.in_a_token(text[at - 1], text[at]) {
                continue;
            }
            let (left, right) = text.split_at(at);
            let mut joined = reference
                .sentencepiece(left)
                .ok_or("a letter is no token")?;
            joined.extend(
                reference
                    .sentencepiece(right)
                    .ok_or("a letter is no token")?,
            );
            equal_ids(&joined, &whole, || {
                format!("cut at {at} of {text:?} with {:?}", dictionary.rules())
            })?;
            cases += 1;
        }
    }
    Ok(cases)
}
