//! The comparisons for one tokenizer.

use bytepair::{PadTo, Padding, Side, Truncation, TruncationStrategy};

use super::sides::{Asked, Ours, Said, Theirs};
use super::{Claim, Texts};
use crate::corpora::Corpus;
use crate::random::Random;
use crate::reduce::reduce;

/// Lists of random ids to decode, and pairs of texts, for each tokenizer.
const LISTS: usize = 500;
const PAIRS: usize = 150;

pub(crate) fn all(name: &str, ours: &Ours, theirs: &Theirs, texts: &Texts) -> Vec<Claim> {
    let mut random = Random::new(5);
    let mut mixed = |text: &str| with_added(text, &theirs.added, &mut random);
    let whole: Vec<String> = texts
        .corpora
        .iter()
        .map(|corpus| corpus.text.clone())
        .collect();
    let documents = texts.corpora.iter().flat_map(Corpus::documents);
    let documents: Vec<String> = documents.map(str::to_owned).collect();
    let mut odd = texts.random.clone();
    odd.extend(texts.random.iter().map(|text| mixed(text)));
    odd.extend((0..LISTS).map(|_| theirs.of_tokens(&mut random)));
    // With whole-piece look-up they are found, else merged: the two differ where merging does not give them.
    let tokens: Vec<String> = theirs.each_token(texts.tokens).collect();
    let what = |kind: &str| format!("{name}, {kind}");
    vec![
        encodings(what("corpora whole"), ours, theirs, &whole),
        encodings(what("documents"), ours, theirs, &documents),
        encodings(what("shared cases"), ours, theirs, &texts.cases),
        encodings(what("each token alone"), ours, theirs, &tokens),
        encodings(
            what("random Unicode, tokens and added tokens"),
            ours,
            theirs,
            &odd,
        ),
        decodings(what("decoded texts and streams"), ours, theirs, texts),
        settings(what("pairs, truncation and padding"), ours, theirs, texts),
    ]
}

/// The comparisons for what stands behind a model.
pub(super) fn behind(name: &str, ours: &Ours, theirs: &Theirs, texts: &Texts) -> Vec<Claim> {
    let mut random = Random::new(8);
    let odd: Vec<String> = (0..LISTS).map(|_| theirs.of_tokens(&mut random)).collect();
    let what = |kind: &str| format!("{name}, {kind}");
    vec![
        encodings(what("random tokens"), ours, theirs, &odd),
        decodings(what("decoded texts and streams"), ours, theirs, texts),
        settings(what("pairs, truncation and padding"), ours, theirs, texts),
    ]
}

/// Ids, offsets, types and masks, with and without special tokens.
fn encodings(what: String, ours: &Ours, theirs: &Theirs, texts: &[String]) -> Claim {
    let mut claim = Claim::new(what);
    for text in texts {
        claim.texts += 1;
        if ours.lacks_a_token(text) {
            claim.lacking += 1;
            continue;
        }
        for (add_special, expected) in [false, true].into_iter().zip(theirs.say_both(text)) {
            claim.calls += 1;
            let Some(expected) = expected else {
                claim.refused += 1;
                continue;
            };
            claim.tokens += expected.ids.len();
            if differs(ours, text, add_special, &expected) {
                claim.differences += 1;
                if claim.differences == 1 {
                    claim.first = explain(ours, theirs, text, add_special);
                }
                break;
            }
        }
    }
    if claim.refused as u64 == claim.calls && claim.lacking == 0 {
        claim.differences += 1;
        claim.first = "nothing was compared".to_owned();
    }
    claim
}

fn differs(ours: &Ours, text: &str, add_special: bool, expected: &Said) -> bool {
    let asked = Asked {
        add_special,
        ..Asked::default()
    };
    let said = ours.say(text, None, &asked);
    let ids_alone = add_special || ours.ids(text).as_ref() == Ok(&expected.ids);
    said.as_ref() != Ok(expected) || !ids_alone
}

/// The smallest text like `text` on which the two sides differ, and what they say.
fn explain(ours: &Ours, theirs: &Theirs, text: &str, add_special: bool) -> String {
    let fails = |text: &str| {
        let expected = theirs.say(text, None, add_special);
        expected.is_some_and(|expected| differs(ours, text, add_special, &expected))
    };
    let smallest = match text.len() < 1 << 17 {
        true => reduce(text, fails),
        false => text.to_owned(),
    };
    let asked = Asked {
        add_special,
        ..Asked::default()
    };
    let said = ours.say(&smallest, None, &asked);
    let expected = theirs.say(&smallest, None, add_special);
    let (Ok(said), Some(expected)) = (&said, &expected) else {
        return format!("{}: ours {said:?}", clip(&smallest));
    };
    let place = |a: &[_], b: &[_]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let at = place(&said.ids, &expected.ids);
    let at = at.min(
        said.offsets
            .iter()
            .zip(&expected.offsets)
            .take_while(|(a, b)| a == b)
            .count(),
    );
    let part = |said: &Said| {
        let tokens = said.ids.iter().zip(&said.offsets).zip(&said.special);
        format!(
            "{:?}",
            tokens
                .skip(at.saturating_sub(1))
                .take(5)
                .collect::<Vec<_>>()
        )
    };
    format!(
        "{} (special tokens: {add_special}), from token {at}: ours {}, the oracle {}; encode {:?}",
        clip(&smallest),
        part(said),
        part(expected),
        ours.ids(&smallest)
            .map(|ids| ids.into_iter().take(8).collect::<Vec<_>>()),
    )
}

/// What ids decode to: those of texts, and random ones.
fn decodings(what: String, ours: &Ours, theirs: &Theirs, texts: &Texts) -> Claim {
    let mut claim = Claim::new(what);
    let mut random = Random::new(6);
    let documents = texts
        .corpora
        .iter()
        .flat_map(|corpus| corpus.documents().take(20));
    let documents = documents.chain(texts.random.iter().take(LISTS).map(String::as_str));
    let mut lists: Vec<Vec<u32>> = documents
        .filter_map(|text| theirs.say(text, None, true))
        .map(|said| said.ids)
        .collect();
    lists.extend((0..LISTS).map(|_| {
        let length = random.below(12);
        let id = |_| match random.below(3) {
            // Small ids: bytes and special tokens, in most vocabularies.
            0 => theirs.ids[random.below(theirs.ids.len().min(300))],
            _ => theirs.ids[random.below(theirs.ids.len())],
        };
        (0..length).map(id).collect()
    }));
    for ids in &lists {
        claim.texts += 1;
        claim.tokens += ids.len();
        for special in [true, false] {
            claim.calls += 1;
            let Some(expected) = theirs.decode(ids, special) else {
                claim.refused += 1;
                continue;
            };
            let text = ours.decode(ids, special);
            if text.as_ref() != Ok(&expected) {
                claim.differences += 1;
                if claim.differences == 1 {
                    claim.first = format!(
                        "{:?} (special tokens: {special}): ours {text:?}, the oracle {expected:?}",
                        &ids[..ids.len().min(40)]
                    );
                }
            }
        }
    }
    claim
}

/// Pairs under settings of truncation and padding.
fn settings(what: String, ours: &Ours, theirs: &Theirs, texts: &Texts) -> Claim {
    let mut claim = Claim::new(what);
    let mut random = Random::new(7);
    for round in 0..24 {
        let asked = asked(&mut random, round);
        let set = theirs.set(&asked);
        if asked.truncation.is_some() && !set.truncates() {
            claim.refused += 1;
            continue;
        }
        for _ in 0..PAIRS / 24 + 1 {
            let mut text = || &texts.random[random.below(texts.random.len())];
            let (first, second) = (text(), text());
            let second = (!round.is_multiple_of(3)).then_some(second.as_str());
            claim.texts += 1;
            if ours.lacks_a_token(first) || second.is_some_and(|text| ours.lacks_a_token(text)) {
                claim.lacking += 1;
                continue;
            }
            claim.calls += 1;
            let Some(expected) = set.say(first, second, asked.add_special) else {
                claim.refused += 1;
                continue;
            };
            claim.tokens += expected.ids.len();
            let mut said = ours.say(first, second, &asked);
            // Where truncation has lost it, whose offsets these are is guessed by the oracle's side.
            let mut expected = expected;
            if asked.truncation.is_some() && second.is_some() {
                expected.forget_offsets();
                said = said.map(|mut said| {
                    said.forget_offsets();
                    said
                });
            }
            if said.as_ref() != Ok(&expected) {
                claim.differences += 1;
                if claim.differences == 1 {
                    claim.first = format!(
                        "{} and {:?}, {asked:?}: ours {said:?}, the oracle {expected:?}",
                        clip(first),
                        second.map(clip)
                    );
                    claim.first.truncate(claim.first.floor_char_boundary(900));
                }
            }
        }
    }
    claim
}

fn asked(random: &mut Random, round: usize) -> Asked {
    let sides = [Side::Right, Side::Left];
    let max_length = 4 + random.below(24);
    Asked {
        add_special: random.below(3) > 0,
        truncation: (!round.is_multiple_of(4)).then(|| Truncation {
            max_length,
            strategy: random.pick(&[
                TruncationStrategy::LongestFirst,
                TruncationStrategy::OnlyFirst,
                TruncationStrategy::OnlySecond,
            ]),
            stride: random.below(3),
            side: random.pick(&sides),
        }),
        padding: (!round.is_multiple_of(2)).then(|| Padding {
            to: random.pick(&[PadTo::Longest, PadTo::Length(20)]),
            multiple_of: random.pick(&[None, Some(8)]),
            side: random.pick(&sides),
            id: 3,
            type_id: random.below(2) as u32,
            token: "[PAD]".to_owned(),
        }),
    }
}

impl Said {
    fn forget_offsets(&mut self) {
        self.offsets.clear();
        self.overflowing.iter_mut().for_each(Self::forget_offsets);
    }
}

/// `text` with added tokens put in here and there, some with blanks or letters beside them.
fn with_added(text: &str, added: &[String], random: &mut Random) -> String {
    if added.is_empty() {
        return text.to_owned();
    }
    let mut mixed = String::new();
    for character in text.chars() {
        if random.below(20) == 0 {
            mixed.push_str(random.pick(&["", " ", "a", "  ", "\n"]));
            mixed.push_str(&added[random.below(added.len())]);
            mixed.push_str(random.pick(&["", " ", "a", "  ", "\n"]));
        }
        mixed.push(character);
    }
    mixed + &added[random.below(added.len())]
}

fn clip(text: &str) -> String {
    let characters: String = text.chars().take(120).collect();
    match characters.len() == text.len() {
        true => format!("{text:?}"),
        false => format!("{characters:?} and more"),
    }
}
