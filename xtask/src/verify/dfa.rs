//! Token automata at the size of real vocabularies: valid pairs, validation, equivalence, the lazy
//! transducer, each against merging.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bpe_core::encoder::PriorityMerge;
use bpe_core::{CanonicalForm, Dictionary, SpanEncoder, Vocabulary};
use bpe_dfa::{Equivalence, LazyTransducer, PairRelation, Rectangles, Validator, equivalent};
use bytepair::tokenizer_json::read_dictionary;
use bytepair::{Pattern, ReadLimits, StringDfa, TokenId, Tokenizer, TokenizerBuilder};

use super::support::{Corpus, Random, ensure, equal_ids, name_of, parallel, text_of};
use super::{Checked, Claims, Outcome, Settings, models};

/// States of the minimal automaton, valid pairs, tokens that forbid nothing: found by an independent
/// prototype.
const FIGURES: [(&str, usize, u64, usize); 4] = [
    ("r50k_base", 14_410, 2_454_741_363, 2_567),
    ("cl100k_base", 27_889, 9_747_726_239, 2_639),
    ("o200k_base", 58_866, 39_186_490_445, 7_172),
    ("qwen3", 44_457, 22_645_298_615, 6_443),
];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "states, valid pairs and tokens that forbid nothing of the embedded vocabularies (002 Observation 2)",
        |_, _| figures(&FIGURES[..3], |name| Tokenizer::from_name(name).map_err(text_of)),
    );
    claims.check_data(
        "states, valid pairs and tokens that forbid nothing of qwen3",
        |_, _, data| figures(&FIGURES[3..], |name| model(name, data)),
    );
    claims.check(
        "the pair relation is what merging says, sampled pairs of r50k, cl100k, o200k",
        |settings, corpora| {
            let names = ["r50k_base", "cl100k_base", "o200k_base"];
            sampled(settings, corpora, &names, |name| {
                Tokenizer::from_name(name).map_err(text_of)
            })
        },
    );
    claims.check_data(
        "the pair relation is what merging says, sampled pairs of llama3_1 (properized) and qwen3",
        |settings, corpora, data| {
            sampled(settings, corpora, &["llama3_1", "qwen3"], |name| {
                model(name, data)
            })
        },
    );
    claims.check(
        "validators pass the ids of corpora, and find a fault at the right index: cl100k, o200k",
        |settings, corpora| {
            let names = ["cl100k_base", "o200k_base"];
            validated(settings, corpora, &names, |name| {
                Tokenizer::from_name(name).map_err(text_of)
            })
        },
    );
    claims.check_data(
        "validators pass the ids of corpora, and find a fault at the right index: llama3_1, qwen3",
        |settings, corpora, data| {
            validated(settings, corpora, &["llama3_1", "qwen3"], |name| {
                model(name, data)
            })
        },
    );
    claims.check(
        "without a pre-tokenizer a window of two finds every fault at the right index: o200k",
        one_span,
    );
    claims.check(
        "token automata through the pattern accept the ids of corpora, and of ids with a fault what is right: r50k, cl100k, o200k",
        |settings, corpora| {
            let names = ["r50k_base", "cl100k_base", "o200k_base"];
            token_dfas(settings, corpora, &names, |name| {
                Tokenizer::from_name(name).map_err(text_of)
            })
        },
    );
    claims.check_data(
        "the same of llama3_1, some of whose tokens only a whole piece becomes; each is equivalent to itself, and not without them",
        |settings, corpora, data| {
            whole_pieces(data)?;
            token_dfas(settings, corpora, &["llama3_1"], |name| model(name, data))
        },
    );
    claims.check(
        "o200k and copies with two ranks swapped are told apart where they differ, by a text",
        |settings, _| swapped(settings),
    );
    claims.check(
        "the lazy transducer gives the encoder's tokens on corpora: o200k, spans and one span",
        transducer,
    );
}

pub(crate) fn model(name: &str, data: &Path) -> Result<Tokenizer, String> {
    let file = models::file(name, data)?;
    if name == "qwen3" {
        // Its normalizer is not done here; what is said is about the text behind it.
        let dictionary = read_dictionary(&file, &ReadLimits::default()).map_err(text_of)?;
        let pattern = Pattern::by_name("qwen3").ok_or("no such pattern")?;
        let builder = TokenizerBuilder::new(&dictionary).pattern(pattern);
        return builder.build().map_err(text_of);
    }
    Tokenizer::from_tokenizer_json(&file, &ReadLimits::default()).map_err(text_of)
}

fn figures(
    expected: &[(&str, usize, u64, usize)],
    load: impl Fn(&str) -> Result<Tokenizer, String>,
) -> Outcome {
    let mut tokens = 0;
    for &(name, states, valid, unrestricting) in expected {
        let tokenizer = load(name)?;
        let pairs = PairRelation::new(tokenizer.canonical()).map_err(text_of)?;
        let found = (
            pairs.state_count(),
            pairs.valid_pairs(),
            pairs.unrestricting_tokens(),
        );
        ensure(found == (states, valid, unrestricting), || {
            format!(
                "{name}: {found:?}, expected {:?}",
                (states, valid, unrestricting)
            )
        })?;
        ensure(pairs.memory() <= 32 << 20, || {
            format!("{name}: {} bytes", pairs.memory())
        })?;
        tokens += pairs.len() as u64;
    }
    Ok(Checked::with_note(tokens, "tokens"))
}

/// Random pairs; the two sides of a cut through a token; a token that ends with the left side of a rule
/// beside one that begins with its right side; neighbours in corpora.
fn sampled(
    settings: &Settings,
    corpora: &[Corpus],
    names: &[&str],
    load: impl Fn(&str) -> Result<Tokenizer, String> + Sync,
) -> Outcome {
    let each = settings.choose(40_000, 700_000);
    let mut cases = 0;
    let mut invalid = 0;
    for name in names {
        let tokenizer = load(name)?;
        let canonical = tokenizer.canonical();
        let pairs = PairRelation::new(canonical).map_err(text_of)?;
        let vocabulary = canonical.vocabulary();
        let ids: Vec<TokenId> = vocabulary.iter().map(|token| token.0).collect();
        let rules: Vec<_> = canonical.rules().collect();
        // Tokens by the token they end with, and begin with, by one rule.
        let (mut ending, mut beginning) = (HashMap::new(), HashMap::new());
        for rule in &rules {
            ending
                .entry(rule.right)
                .or_insert_with(Vec::new)
                .push(rule.product);
            beginning
                .entry(rule.left)
                .or_insert_with(Vec::new)
                .push(rule.product);
        }
        let mut random = Random::new(41);
        let mut sample = Vec::with_capacity(4 * each);
        for _ in 0..each {
            let any = |random: &mut Random| ids[random.below(ids.len())];
            sample.push((any(&mut random), any(&mut random)));
            let token = vocabulary.token_bytes(any(&mut random)).unwrap_or_default();
            let cut = 1 + random.below(token.len().saturating_sub(1));
            if let Some((left, right)) = token.split_at_checked(cut)
                && let (Some(left), Some(right)) = (vocabulary.id_of(left), vocabulary.id_of(right))
            {
                sample.push((left, right));
            }
            let rule = rules[random.below(rules.len())];
            let grow = |token, longer: &HashMap<TokenId, Vec<TokenId>>, random: &mut Random| {
                let mut token = token;
                for _ in 0..random.below(4) {
                    if let Some(tokens) = longer.get(&token) {
                        token = tokens[random.below(tokens.len())];
                    }
                }
                token
            };
            let left = grow(rule.left, &ending, &mut random);
            sample.push((left, grow(rule.right, &beginning, &mut random)));
        }
        for corpus in corpora {
            let ids = tokenizer.encode(&corpus.text).map_err(text_of)?;
            let neighbours = ids.windows(2).take(each / corpora.len());
            sample.extend(neighbours.map(|pair| (pair[0], pair[1])));
        }
        let chunks: Vec<&[(TokenId, TokenId)]> = sample.chunks(10_000).collect();
        cases += parallel(chunks.len(), |number| {
            let mut encoder = PriorityMerge::new(Arc::clone(canonical));
            let (mut text, mut tokens) = (Vec::new(), Vec::new());
            for &(left, right) in chunks[number] {
                text.clear();
                tokens.clear();
                for id in [left, right] {
                    text.extend_from_slice(vocabulary.token_bytes(id).unwrap_or_default());
                }
                encoder.encode_span(&text, &mut tokens).map_err(text_of)?;
                let expected = tokens == [left, right];
                ensure(pairs.is_valid(left, right) == expected, || {
                    format!("{name}: {left} {right}: {tokens:?}")
                })?;
            }
            Ok(chunks[number].len() as u64)
        })?;
        let step = settings.choose(16, 1);
        gathered(name, canonical, &pairs, ids.iter().step_by(step).copied())?;
        let is_invalid = |pair: &&(TokenId, TokenId)| !pairs.is_valid(pair.0, pair.1);
        invalid += sample.iter().filter(is_invalid).count();
    }
    Ok(Checked::with_note(
        cases,
        format!("pairs, {invalid} invalid"),
    ))
}

/// What the rules alone forbid after these tokens is what the relation does.
fn gathered(
    name: &str,
    canonical: &Arc<CanonicalForm>,
    pairs: &PairRelation,
    ids: impl Iterator<Item = TokenId>,
) -> Result<(), String> {
    let rectangles = Rectangles::new(canonical).map_err(text_of)?;
    let mut intervals = Vec::new();
    for id in ids {
        let is_canonical = rectangles.forbidden(id, &mut intervals);
        let is_same = match pairs.state_after(id) {
            Some(state) => is_canonical && intervals.iter().cloned().eq(pairs.forbidden(state)),
            None => !is_canonical && intervals.is_empty(),
        };
        ensure(is_same, || {
            format!("{name}: after {id} by rules {intervals:?}")
        })?;
    }
    Ok(())
}

/// One fault: a token split, two merged, or one replaced.
fn mutate(vocabulary: &Vocabulary, ids: &mut Vec<TokenId>, random: &mut Random) {
    let place = random.below(ids.len());
    let bytes = |id| vocabulary.token_bytes(id).unwrap_or_default();
    match random.below(3) {
        0 => {
            let token = bytes(ids[place]);
            let parts = token.split_at(
                1 + random
                    .below(token.len().saturating_sub(1))
                    .min(token.len() - 1),
            );
            if let (Some(left), Some(right)) =
                (vocabulary.id_of(parts.0), vocabulary.id_of(parts.1))
            {
                ids.splice(place..=place, [left, right]);
            }
        }
        1 => {
            if let Some(&next) = ids.get(place + 1)
                && let Some(both) = vocabulary.id_of(&[bytes(ids[place]), bytes(next)].concat())
            {
                ids.splice(place..place + 2, [both]);
            }
        }
        _ => {
            let any = random.below(vocabulary.len());
            if let Some((id, _)) = vocabulary.iter().nth(any) {
                ids[place] = id;
            }
        }
    }
}

fn common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn validated(
    settings: &Settings,
    corpora: &[Corpus],
    names: &[&str],
    load: impl Fn(&str) -> Result<Tokenizer, String>,
) -> Outcome {
    let rounds = settings.choose(40, 2_000);
    let mut wrong = 0;
    let mut cases = 0;
    for name in names {
        let tokenizer = load(name)?;
        for corpus in corpora {
            let ids = tokenizer.encode(&corpus.text).map_err(text_of)?;
            let mut validator = tokenizer.validator().map_err(text_of)?;
            let found = validator.validate(&ids).map_err(text_of)?;
            ensure(found.is_none(), || {
                format!("{name}, {}: {found:?}", corpus.name)
            })?;
            let mut random = Random::new(43);
            for _ in 0..rounds {
                // A window, with a text of its own: its ends change pieces too.
                let start = random.below(ids.len());
                let end = ids.len().min(start + 1 + random.below(400));
                let mut ids = ids[start..end].to_vec();
                mutate(tokenizer.vocabulary(), &mut ids, &mut random);
                let text = tokenizer.decode_bytes(&ids).map_err(text_of)?;
                let expected = tokenizer.encode_bytes(&text).map_err(text_of)?;
                let index = (ids != expected).then(|| common(&ids, &expected));
                for part in ids.chunks(1 + random.below(100)) {
                    validator.push(part).map_err(text_of)?;
                }
                let found = validator.finish().map_err(text_of)?;
                ensure(found.as_ref().map(|found| found.index) == index, || {
                    format!(
                        "{name}, {}: {found:?}, expected {index:?}: {ids:?}",
                        corpus.name
                    )
                })?;
                wrong += u64::from(index.is_some());
                cases += 1;
            }
            cases += ids.len() as u64;
        }
    }
    ensure(wrong > 0, || "no fault was made".to_owned())?;
    Ok(Checked::with_note(cases, format!("tokens, {wrong} faults")))
}

fn one_span(settings: &Settings, corpora: &[Corpus]) -> Outcome {
    let rounds = settings.choose(100, 3_000);
    let tokenizer = Tokenizer::from_name("o200k_base").map_err(text_of)?;
    let canonical = tokenizer.canonical();
    let validator = Validator::new(canonical).map_err(text_of)?;
    let cases = parallel(corpora.len(), |number| {
        let corpus = &corpora[number];
        let mut validator = validator.clone();
        let mut encoder = PriorityMerge::new(Arc::clone(canonical));
        let mut encode = |text: &[u8]| {
            let mut tokens = Vec::new();
            let encoded = encoder.encode_span(text, &mut tokens);
            encoded.map(|()| tokens).map_err(text_of)
        };
        let ids = encode(corpus.text.as_bytes())?;
        let found = validator.validate(&ids);
        ensure(found.is_none(), || format!("{}: {found:?}", corpus.name))?;
        let mut random = Random::new(47);
        for _ in 0..rounds {
            let start = random.below(ids.len());
            let end = ids.len().min(start + 1 + random.below(400));
            let mut ids = ids[start..end].to_vec();
            mutate(canonical.vocabulary(), &mut ids, &mut random);
            let text = canonical.vocabulary().decode_bytes(&ids).map_err(text_of)?;
            let expected = encode(&text)?;
            let index = (ids != expected).then(|| common(&ids, &expected));
            for part in ids.chunks(1 + random.below(100)) {
                validator.push(part);
            }
            let found = validator.finish();
            ensure(found.as_ref().map(|found| found.index) == index, || {
                format!("{}: {found:?}, expected {index:?}: {ids:?}", corpus.name)
            })?;
        }
        Ok(ids.len() as u64 + rounds)
    })?;
    Ok(Checked::with_note(cases, "tokens and sequences"))
}

/// The automaton of all texts, through the patterns.
fn token_dfas(
    settings: &Settings,
    corpora: &[Corpus],
    names: &[&str],
    load: impl Fn(&str) -> Result<Tokenizer, String> + Sync,
) -> Outcome {
    let (most, rounds) = settings.choose((20_000, 60), (400_000, 3_000));
    let cases = parallel(names.len(), |number| {
        let tokenizer = load(names[number])?;
        let all = StringDfa::universal();
        let mut dfa = tokenizer.token_dfa(all).map_err(text_of)?;
        let mut random = Random::new(59);
        let (mut cases, mut wrong) = (0, 0);
        for corpus in corpora {
            let text = &corpus.text[..corpus.text.floor_char_boundary(most)];
            let ids = tokenizer.encode(text).map_err(text_of)?;
            ensure(dfa.accepts(&ids), || {
                format!("{}, {}: not accepted", names[number], corpus.name)
            })?;
            for _ in 0..rounds {
                let start = random.below(ids.len());
                let end = ids.len().min(start + 1 + random.below(60));
                let mut ids = ids[start..end].to_vec();
                mutate(tokenizer.vocabulary(), &mut ids, &mut random);
                let text = tokenizer.decode_bytes(&ids).map_err(text_of)?;
                let expected = tokenizer.encode_bytes(&text).map_err(text_of)?;
                ensure(dfa.accepts(&ids) == (ids == expected), || {
                    format!("{}, {}: {ids:?}", names[number], corpus.name)
                })?;
                wrong += u64::from(ids != expected);
            }
            cases += ids.len() as u64 + rounds;
        }
        ensure(wrong > 0, || "no fault was made".to_owned())?;
        Ok(cases)
    })?;
    Ok(Checked::with_note(cases, "tokens and sequences"))
}

/// A tokenizer with tokens that only a whole piece becomes beside the same without: those pieces are told apart.
fn whole_pieces(data: &Path) -> Result<(), String> {
    let tokenizer = model("llama3_1", data)?;
    let canonical = tokenizer.canonical();
    let wholes: Vec<TokenId> = canonical.unreachable_tokens().collect();
    ensure(!wholes.is_empty(), || "no such token".to_owned())?;
    let same = tokenizer.equivalent(&tokenizer).map_err(text_of)?;
    ensure(same == Equivalence::Same { same_ids: true }, || {
        format!("{same:?}")
    })?;
    let mut dfa = tokenizer
        .token_dfa(StringDfa::universal())
        .map_err(text_of)?;
    let mut alone = 0;
    for &id in &wholes {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        let tokens = tokenizer.encode_bytes(bytes).map_err(text_of)?;
        ensure(dfa.accepts(&tokens), || format!("{id}: {tokens:?}"))?;
        ensure(dfa.accepts(&[id]) == (tokens == [id]), || format!("{id}"))?;
        alone += usize::from(tokens == [id]);
    }
    ensure(alone > 0, || "none is a piece".to_owned())?;
    // The same merges, and every token that they do not make left out.
    let mut rules: Vec<_> = canonical.rules().collect();
    rules.sort_unstable_by_key(|rule| rule.priority);
    let tokens = canonical.vocabulary().iter();
    let tokens = tokens.filter(|token| !wholes.contains(&token.0));
    let vocabulary = Vocabulary::new(tokens).map_err(text_of)?;
    let merges = rules.iter().map(|rule| (rule.left, rule.right));
    let dictionary = Dictionary::from_merges(vocabulary, merges).map_err(text_of)?;
    let patterns = tokenizer.patterns().iter().cloned();
    let without = patterns
        .fold(
            TokenizerBuilder::new(&dictionary),
            TokenizerBuilder::pattern,
        )
        .build()
        .map_err(text_of)?;
    let Equivalence::Different(witness) = tokenizer.equivalent(&without).map_err(text_of)? else {
        return Err("not told apart".to_owned());
    };
    ensure(witness.first != witness.second, || format!("{witness:?}"))
}

/// The vocabulary with the ids of two tokens swapped, as a rank file would have it.
pub(crate) fn with_swapped(
    vocabulary: &Vocabulary,
    pair: (TokenId, TokenId),
) -> Result<Arc<CanonicalForm>, String> {
    let swap = |id| match id {
        _ if id == pair.0 => pair.1,
        _ if id == pair.1 => pair.0,
        _ => id,
    };
    let tokens = vocabulary.iter().map(|(id, bytes)| (swap(id), bytes));
    let copy = Vocabulary::new(tokens).map_err(text_of)?;
    let dictionary = Dictionary::from_ranks(copy).map_err(text_of)?;
    Ok(Arc::new(CanonicalForm::new(&dictionary)))
}

/// Pairs of tokens to swap: rules that overlap, `count` of them with ranks below `below`; and rules of
/// near ranks of which none between the two overlaps either.
pub(crate) fn swaps(
    canonical: &CanonicalForm,
    count: usize,
    below: TokenId,
    overlapping: bool,
) -> Vec<(TokenId, TokenId)> {
    let rules: Vec<_> = canonical
        .rules()
        .filter(|rule| rule.product < below)
        .collect();
    let mut by_left: HashMap<TokenId, Vec<TokenId>> = HashMap::new();
    for rule in &rules {
        by_left.entry(rule.left).or_default().push(rule.product);
    }
    let mut random = Random::new(53);
    let mut swaps = Vec::new();
    for _ in 0..100_000 {
        if swaps.len() == count {
            break;
        }
        let index = random.below(rules.len());
        let first = rules[index];
        if overlapping {
            let Some(others) = by_left.get(&first.right) else {
                continue;
            };
            let other = others[random.below(others.len())];
            if other != first.product {
                swaps.push((first.product, other));
            }
            continue;
        }
        let Some(second) = rules.get(index + 1 + random.below(20)) else {
            continue;
        };
        let between = &rules[index..rules.len().min(index + 22)];
        let overlaps = between
            .iter()
            .filter(|rule| rule.product <= second.product)
            .any(|rule| {
                [first, *second].iter().any(|end| {
                    rule.right == end.left
                        || rule.left == end.right
                        || [rule.left, rule.right].contains(&end.product)
                        || [end.left, end.right].contains(&rule.product)
                })
            });
        if !overlaps {
            swaps.push((first.product, second.product));
        }
    }
    swaps
}

fn swapped(settings: &Settings) -> Outcome {
    let tokenizer = Tokenizer::from_name("o200k_base").map_err(text_of)?;
    let canonical = tokenizer.canonical();
    let same = equivalent(canonical, canonical).map_err(text_of)?;
    ensure(same == Equivalence::Same { same_ids: true }, || {
        format!("itself: {same:?}")
    })?;
    let count = settings.choose(1, 10);
    let (mut differ, mut equal, mut improper) = (0, 0, 0);
    let kinds = [(TokenId::MAX, true), (TokenId::MAX, false), (2_000, true)];
    for (below, overlapping) in kinds {
        for pair in swaps(canonical, count, below, overlapping) {
            let copy = with_swapped(canonical.vocabulary(), pair)?;
            match equivalent(canonical, &copy) {
                Err(error) => {
                    ensure(error.is_improper() && !copy.is_proper(), || {
                        error.to_string()
                    })?;
                    improper += 1;
                }
                Ok(Equivalence::Unknown { .. }) => return Err(format!("{pair:?}: not known")),
                Ok(Equivalence::Same { .. }) => {
                    ensure(!overlapping, || {
                        format!("{pair:?} overlap, and are called equal")
                    })?;
                    equal += 1;
                }
                Ok(Equivalence::Different(witness)) => {
                    ensure(overlapping, || format!("{pair:?}: {witness:?}"))?;
                    let cut = |form: &Arc<CanonicalForm>| {
                        let mut tokens = Vec::new();
                        let mut encoder = PriorityMerge::new(Arc::clone(form));
                        encoder
                            .encode_span(&witness.text, &mut tokens)
                            .map_err(text_of)?;
                        let bytes =
                            |&id: &TokenId| form.vocabulary().token_bytes(id).map(<[u8]>::len);
                        Ok::<_, String>(tokens.iter().map(bytes).collect::<Vec<_>>())
                    };
                    ensure(cut(canonical)? != cut(&copy)?, || {
                        format!("{pair:?}: {witness:?}")
                    })?;
                    differ += 1;
                }
            }
        }
    }
    let note = format!("pairs of ranks: {differ} differ, {equal} do not, {improper} improper");
    Ok(Checked::with_note(differ + equal + improper, note))
}

fn transducer(settings: &Settings, corpora: &[Corpus]) -> Outcome {
    let most = settings.choose(30_000, usize::MAX);
    let tokenizer = Tokenizer::from_name("o200k_base").map_err(text_of)?;
    let canonical = tokenizer.canonical();
    let pairs = Arc::new(PairRelation::new(canonical).map_err(text_of)?);
    let whole = tokenizer.to_builder();
    let lazy =
        LazyTransducer::with_relation(canonical, Arc::clone(&pairs), 1 << 14).map_err(text_of)?;
    let spans = whole
        .custom_encoder(Box::new(lazy))
        .build()
        .map_err(text_of)?;
    let cases = parallel(corpora.len(), |number| {
        let Corpus { name, text } = &corpora[number];
        let text = &text[..text.floor_char_boundary(most)];
        let expected = tokenizer.encode(text).map_err(text_of)?;
        let found = spans.encode(text).map_err(text_of)?;
        equal_ids(&found, &expected, || {
            format!("{name}, {}", name_of(&tokenizer))
        })?;
        let relation = Arc::clone(&pairs);
        let mut lazy =
            LazyTransducer::with_relation(canonical, relation, 1 << 16).map_err(text_of)?;
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        lazy.encode_span(text.as_bytes(), &mut found)
            .map_err(text_of)?;
        let mut encoder = PriorityMerge::new(Arc::clone(canonical));
        encoder
            .encode_span(text.as_bytes(), &mut expected)
            .map_err(text_of)?;
        equal_ids(&found, &expected, || format!("{name}, one span"))?;
        Ok(2 * text.len() as u64)
    })?;
    Ok(Checked::with_note(cases, "bytes"))
}
