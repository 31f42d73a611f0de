//! Token automata over o200k_base: pair queries, validation, masks, equivalence, the lazy transducer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bpe_core::{CanonicalForm, SpanEncoder};
use bpe_dfa::{
    CanonicalMasks, Equivalence, LazyTransducer, PairRelation, Rectangles, StateId, Validator,
    equivalent,
};
use bpe_lexers::{Engine, Spanner, SpecialMatcher};
use bytepair::{StringDfa, StringDfaLimits, TokenId, Tokenizer};
use serde_json::{Value, json};

use super::json_texts::{json_documents, json_language};
use super::{Error, corpora, median, write_json};
use crate::data;
use crate::verify::dfa::{model, swaps, with_swapped};
use crate::verify::memory::growth_during;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// These parts alone, by a piece of their names: equivalence, relations, queries, validation, masks,
    /// json_masks, transducer.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Folder with `tokenizers/qwen3` and larger corpora; without it qwen3 is left out.
    #[arg(long, env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let rounds = arguments.rounds.max(1);
    let tokenizer = Tokenizer::from_name("o200k_base")?;
    let pairs = Arc::new(PairRelation::new(tokenizer.canonical())?);
    let mut texts = corpora::all()?;
    if let Some(data) = &arguments.data {
        for name in ["english", "code", "chinese"] {
            let path = data.join(format!("corpora/{name}.txt.gz"));
            let text = String::from_utf8(data::read(&path)?)?;
            texts.push((format!("{name} (data)"), text));
        }
    }
    type Part<'p> = (&'p str, Box<dyn Fn() -> Result<Value, Error> + 'p>);
    let parts: [Part<'_>; 7] = [
        // First, while the heap has no free memory that would not be counted.
        ("equivalence", Box::new(|| equivalence(&tokenizer))),
        ("relations", Box::new(|| relations(arguments))),
        (
            "queries",
            Box::new(|| queries(&tokenizer, &pairs, &texts, rounds)),
        ),
        (
            "validation",
            Box::new(|| validation(&tokenizer, &pairs, &texts, rounds)),
        ),
        ("masks", Box::new(|| masks(&tokenizer, &pairs, &texts))),
        ("json_masks", Box::new(|| json_masks(&tokenizer, &texts))),
        (
            "transducer",
            Box::new(|| transducer(&tokenizer, &pairs, &texts)),
        ),
    ];
    let mut results = serde_json::Map::new();
    for (name, part) in parts {
        if arguments
            .only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
        {
            results.insert(name.to_owned(), part()?);
        }
    }
    if results.is_empty() {
        return Err("no part has this name".into());
    }
    write_json(arguments.json.as_deref(), &Value::Object(results))?;
    Ok(true)
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = ((sorted.len() as f64 - 1.0) * part).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

fn relations(arguments: &Arguments) -> Result<Value, Error> {
    println!(
        "{:14}{:>10}{:>10}{:>18}{:>14}{:>10}{:>8}",
        "", "tokens", "states", "valid pairs", "forbid none", "build ms", "MB"
    );
    let mut results = Vec::new();
    let mut tokenizers = Vec::new();
    for name in ["r50k_base", "cl100k_base", "o200k_base"] {
        tokenizers.push((name, Tokenizer::from_name(name)?));
    }
    if let Some(data) = &arguments.data {
        tokenizers.push(("qwen3", model("qwen3", data)?));
    }
    for (name, tokenizer) in &tokenizers {
        let start = Instant::now();
        let pairs = PairRelation::new(tokenizer.canonical())?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let (states, valid, none) = (
            pairs.state_count(),
            pairs.valid_pairs(),
            pairs.unrestricting_tokens(),
        );
        let megabytes = pairs.memory() as f64 / 1e6;
        println!(
            "{name:14}{:>10}{states:>10}{valid:>18}{none:>14}{milliseconds:>10.0}{megabytes:>8.1}",
            pairs.len()
        );
        results.push(json!({
            "vocabulary": name, "tokens": pairs.len(), "states": states, "valid_pairs": valid,
            "unrestricting_tokens": none, "build_ms": milliseconds, "bytes": pairs.memory(),
        }));
    }
    Ok(results.into())
}

/// Whether two tokens are valid neighbours, by taking them apart along their common border: what does
/// without tables.
fn by_taking_apart(canonical: &CanonicalForm, mut left: TokenId, mut right: TokenId) -> bool {
    let mut limit = u32::MAX;
    loop {
        if let Some(merge) = canonical.merge(left, right)
            && merge.priority.0 < limit
        {
            return false;
        }
        let (left_rule, right_rule) = (canonical.rule(left), canonical.rule(right));
        let priority =
            |rule: Option<bpe_core::MergeRule>| rule.map_or(0, |rule| rule.priority.0 + 1);
        let (a, b) = (priority(left_rule), priority(right_rule));
        // The later of the two is undone; of equal ones the right, whose merge comes second.
        if a > b {
            let Some(rule) = left_rule else { return true };
            left = rule.right;
            limit = rule.priority.0;
        } else {
            let Some(rule) = right_rule else { return true };
            right = rule.left;
            // Its own merge takes what is left of it first only where the left neighbour has not.
            limit = rule.priority.0 + 1;
        }
    }
}

fn queries(
    tokenizer: &Tokenizer,
    pairs: &PairRelation,
    texts: &[(String, String)],
    rounds: usize,
) -> Result<Value, Error> {
    const COUNT: usize = 400_000;
    let canonical = tokenizer.canonical();
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % pairs.len() as u64) as u32
    };
    let random: Vec<(TokenId, TokenId)> = (0..COUNT).map(|_| (next(), next())).collect();
    let mut sets = vec![("random".to_owned(), random)];
    for (name, text) in texts {
        let ids = tokenizer.encode(text)?;
        let neighbours = ids.windows(2).map(|pair| (pair[0], pair[1]));
        sets.push((name.clone(), neighbours.take(COUNT).collect()));
    }
    println!(
        "\n{:20}{:>12}{:>16}{:>12}{:>12}",
        "ns a pair query", "relation", "taking apart", "load", "chained"
    );
    // What memory allows: loads from random places of a table of the size of the relation, whose places are
    // known beforehand, and those that wait for the one before.
    let size = pairs.memory() / size_of::<u32>();
    let mut table: Vec<u32> = (0..size as u32).collect();
    for end in (1..size).rev() {
        // One cycle through all places.
        let place = (next() as usize * pairs.len() + next() as usize) % end;
        table.swap(end, place);
    }
    let places: Vec<usize> = (0..COUNT)
        .map(|_| (next() as usize * pairs.len() + next() as usize) % size)
        .collect();
    let mut results = Vec::new();
    for (name, set) in &sets {
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        let (mut loads, mut chained) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let start = Instant::now();
            let sum: u64 = places.iter().map(|&place| u64::from(table[place])).sum();
            loads.push(start.elapsed().as_secs_f64() * 1e9 / places.len() as f64);
            let start = Instant::now();
            let last = (0..COUNT / 4).fold(0, |place, _| table[place as usize]);
            chained.push(start.elapsed().as_secs_f64() * 1e9 / (COUNT / 4) as f64);
            std::hint::black_box((sum, last));
            // The second pass counts: the other columns have filled the caches with what is theirs.
            let valid_pairs = || {
                set.iter()
                    .filter(|pair| pairs.is_valid(pair.0, pair.1))
                    .count()
            };
            let first = std::hint::black_box(valid_pairs());
            let start = Instant::now();
            let valid = valid_pairs();
            fast.push(start.elapsed().as_secs_f64() * 1e9 / set.len() as f64);
            let start = Instant::now();
            let apart = |pair: &&(TokenId, TokenId)| by_taking_apart(canonical, pair.0, pair.1);
            let expected = set.iter().filter(apart).count();
            slow.push(start.elapsed().as_secs_f64() * 1e9 / set.len() as f64);
            if valid != expected || first != valid {
                return Err(format!("{name}: {valid} valid pairs, {expected}").into());
            }
        }
        let (fast, slow) = (median(&fast), median(&slow));
        let (load, chain) = (median(&loads), median(&chained));
        println!("{name:20}{fast:>12.1}{slow:>16.1}{load:>12.1}{chain:>12.1}");
        results.push(json!({
            "pairs": name, "relation_ns": fast, "taking_apart_ns": slow, "load_ns": load,
            "chained_load_ns": chain,
        }));
    }
    Ok(results.into())
}

fn validation(
    tokenizer: &Tokenizer,
    pairs: &Arc<PairRelation>,
    texts: &[(String, String)],
    rounds: usize,
) -> Result<Value, Error> {
    println!(
        "\n{:20}{:>12}{:>12}{:>12}{:>12}{:>10}",
        "million tokens/s", "one span", "pre-tok.", "lexer", "encoder", "of lexer"
    );
    let canonical = tokenizer.canonical();
    let mut alone = Validator::with_relation(canonical, Arc::clone(pairs))?;
    let whole = bytepair::TokenizerBuilder::from_canonical(Arc::clone(canonical)).build()?;
    let mut validator = tokenizer.validator()?;
    let pattern = tokenizer.patterns().first().ok_or("no pattern")?;
    let mut spanner = Spanner::new(vec![pattern.lexer(Engine::Auto)?]);
    let none = SpecialMatcher::none();
    let mut results = Vec::new();
    for (name, text) in texts {
        let ids = tokenizer.encode(text)?;
        let one_span = whole.encode(text)?;
        let million =
            |count: usize, start: Instant| count as f64 / start.elapsed().as_secs_f64() / 1e6;
        let mut speeds: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            let start = Instant::now();
            if let Some(found) = alone.validate(&one_span) {
                return Err(format!("{name}: {found}").into());
            }
            speeds[0].push(million(one_span.len(), start));
            let start = Instant::now();
            if let Some(found) = validator.validate(&ids)? {
                return Err(format!("{name}: {found}").into());
            }
            speeds[1].push(million(ids.len(), start));
            let start = Instant::now();
            let mut spans = 0;
            let _ = spanner.for_each_span(text.as_bytes(), &none, |_| {
                spans += 1;
                std::ops::ControlFlow::<()>::Continue(())
            })?;
            if spans == 0 {
                return Err("no spans".into());
            }
            speeds[2].push(million(ids.len(), start));
            let start = Instant::now();
            if tokenizer.count(text)? != ids.len() {
                return Err("another count".into());
            }
            speeds[3].push(million(ids.len(), start));
        }
        let ratios = speeds[1]
            .iter()
            .zip(&speeds[2])
            .map(|(ours, lexer)| ours / lexer);
        let ratio = median(&ratios.collect::<Vec<f64>>());
        let [one, with, lexer, encoder] = speeds.map(|values| median(&values));
        println!("{name:20}{one:>12.0}{with:>12.0}{lexer:>12.0}{encoder:>12.0}{ratio:>10.2}");
        results.push(json!({
            "corpus": name, "tokens": ids.len(), "one_span": one, "pre_tokenizer": with,
            "lexer_alone": lexer, "count": encoder, "of_lexer": ratio,
        }));
    }
    Ok(results.into())
}

/// Passes over the states whose masks are made.
const MASK_PASSES: usize = 3;

fn masks(
    tokenizer: &Tokenizer,
    pairs: &Arc<PairRelation>,
    texts: &[(String, String)],
) -> Result<Value, Error> {
    let masks = CanonicalMasks::new(Arc::clone(pairs), 20 << 20);
    let english = texts.iter().find(|text| text.0.starts_with("english"));
    let (_, text) = english.or(texts.first()).ok_or("no corpus")?;
    let ids = tokenizer.encode(text)?;
    let states: Vec<StateId> = ids
        .iter()
        .filter_map(|&id| pairs.state_after(id))
        .take(100_000)
        .collect();
    let mut by_id = vec![0; masks.words()];
    let mut by_number = vec![0; pairs.len().div_ceil(64)];
    println!("\n{:20}{:>12}{:>12}", "us a mask", "median", "p99.9");
    let mut results = Vec::new();
    let mut measure = |name: &str, mut work: Box<dyn FnMut(StateId) -> u64 + '_>| {
        // Of each mask the least of some passes: one is longer than a time slice of whatever else runs.
        let mut times = vec![f64::INFINITY; states.len()];
        let mut sum = 0;
        for _ in 0..MASK_PASSES {
            for (&state, least) in states.iter().zip(&mut times) {
                let start = Instant::now();
                sum += work(state);
                *least = least.min(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        times.sort_by(f64::total_cmp);
        let (middle, high) = (quantile(&times, 0.5), quantile(&times, 0.999));
        println!("{name:20}{middle:>12.2}{high:>12.1}");
        results.push(json!({"mask": name, "median_us": middle, "p999_us": high, "check": sum}));
    };
    measure(
        "intervals",
        Box::new(|state| {
            pairs
                .forbidden(state)
                .map(|interval| u64::from(interval.end))
                .sum()
        }),
    );
    let rectangles = Rectangles::new(tokenizer.canonical())?;
    let mut gathered = Vec::new();
    let mut after = ids
        .iter()
        .filter(|&&id| pairs.state_after(id).is_some())
        .take(states.len())
        .cycle();
    measure(
        "intervals, no rows",
        Box::new(|_| {
            let id = after.next().copied().unwrap_or_default();
            rectangles.forbidden(id, &mut gathered);
            gathered
                .iter()
                .map(|interval| u64::from(interval.end))
                .sum()
        }),
    );
    measure(
        "bits by number",
        Box::new(|state| {
            pairs.fill_by_number(state, &mut by_number);
            by_number.first().copied().unwrap_or(0) & 1
        }),
    );
    measure(
        "bits by id",
        Box::new(|state| {
            masks.fill(state, &mut by_id);
            by_id.first().copied().unwrap_or(0) & 1
        }),
    );
    let memory = masks.memory() + pairs.memory();
    println!("{:20}{:>12.1}", "MB in all", memory as f64 / 1e6);
    println!(
        "{:20}{:>12.1}",
        "MB without rows",
        rectangles.memory() as f64 / 1e6
    );
    Ok(json!({"bytes": memory, "bytes_without_rows": rectangles.memory(), "times": results}))
}

/// The whole mask of the expression at each token of documents, in a first pass that makes what is
/// kept, and in a second.
fn json_masks(tokenizer: &Tokenizer, texts: &[(String, String)]) -> Result<Value, Error> {
    let limits = StringDfaLimits::default();
    let language = StringDfa::from_regex(&json_language(), &limits)?;
    let states = language.state_count();
    let english = texts.iter().find(|text| text.0.starts_with("english"));
    let (_, text) = english.or(texts.first()).ok_or("no corpus")?;
    let documents = json_documents(text);
    let mut dfa = tokenizer.token_dfa(language)?;
    let mut mask = vec![0; dfa.words()];
    println!(
        "\n{:20}{:>12}{:>12}{:>12}{:>12}",
        "us a JSON mask", "mean", "median", "p99.9", "masks"
    );
    let mut results = Vec::new();
    for pass in ["first", "second"] {
        let mut times = Vec::new();
        for document in &documents {
            let ids = tokenizer.encode(document)?;
            let mut state = dfa.start();
            for &id in &ids {
                let start = Instant::now();
                dfa.allowed(&state, &mut mask);
                times.push(start.elapsed().as_secs_f64() * 1e6);
                let word = mask.get(id as usize / 64).copied().unwrap_or(0);
                if word >> (id % 64) & 1 == 0 {
                    return Err(format!("token {id} is not allowed in {document}").into());
                }
                state = dfa.next(&state, id).ok_or("a token that is allowed")?;
            }
            if !dfa.is_accepting(&state) {
                return Err(format!("not accepted: {document}").into());
            }
        }
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        times.sort_by(f64::total_cmp);
        let (middle, high) = (quantile(&times, 0.5), quantile(&times, 0.999));
        println!(
            "{pass:20}{mean:>12.1}{middle:>12.1}{high:>12.1}{:>12}",
            times.len()
        );
        results.push(json!({
            "pass": pass, "mean_us": mean, "median_us": middle, "p999_us": high, "masks": times.len(),
        }));
    }
    Ok(json!({"text_states": states, "documents": documents.len(), "passes": results}))
}

fn transducer(
    tokenizer: &Tokenizer,
    pairs: &Arc<PairRelation>,
    texts: &[(String, String)],
) -> Result<Value, Error> {
    println!(
        "\n{:20}{:>10}{:>12}{:>12}{:>12}{:>10}",
        "lazy transducer", "limit", "warm MB/s", "states", "misses", "resets"
    );
    let canonical = tokenizer.canonical();
    let mut results = Vec::new();
    for (name, text) in texts {
        // Two megabytes are enough to fill the cache.
        let text = &text[..text.floor_char_boundary(2 << 20)];
        for limit in [1 << 14, 1 << 16, 1 << 20] {
            let mut lazy = LazyTransducer::with_relation(canonical, Arc::clone(pairs), limit)?;
            let mut tokens = Vec::new();
            lazy.encode_span(text.as_bytes(), &mut tokens)?;
            let cold = lazy.stats();
            let mut speeds = Vec::new();
            for _ in 0..3 {
                tokens.clear();
                let start = Instant::now();
                lazy.encode_span(text.as_bytes(), &mut tokens)?;
                speeds.push(text.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
            }
            let speed = median(&speeds);
            println!(
                "{name:20}{limit:>10}{speed:>12.1}{:>12}{:>12}{:>10}",
                cold.states, cold.misses, cold.resets
            );
            results.push(json!({
                "corpus": name, "bytes": text.len(), "limit": limit, "warm_mb_s": speed,
                "states": cold.states, "misses": cold.misses, "resets": cold.resets,
            }));
        }
    }
    Ok(results.into())
}

fn equivalence(tokenizer: &Tokenizer) -> Result<Value, Error> {
    let canonical = tokenizer.canonical();
    let overlapping = swaps(canonical, 1, TokenId::MAX, true);
    let mut results = Vec::new();
    for pair in std::iter::once(None).chain(overlapping.into_iter().map(Some)) {
        let copy = match pair {
            None => Arc::clone(canonical),
            Some(pair) => with_swapped(canonical.vocabulary(), pair)?,
        };
        let (answer, bytes) = growth_during(|| equivalent(canonical, &copy))?;
        let answer = match answer? {
            Equivalence::Same { .. } => "same",
            _ => "different",
        };
        println!(
            "equivalent, {answer}: {:.0} MB more at most",
            bytes as f64 / 1e6
        );
        results.push(json!({"answer": answer, "bytes": bytes}));
    }
    println!(
        "\n{:34}{:>10}{:>12}{:>12}{:>8}{:>8}{:>8}{:>10}",
        "equivalent, seconds",
        "copies",
        "median",
        "slowest",
        "differ",
        "same",
        "unknown",
        "improper"
    );
    let kinds = [
        ("itself", 0, TokenId::MAX, true, false),
        ("overlapping ranks swapped", 10, TokenId::MAX, true, false),
        ("other ranks swapped", 10, TokenId::MAX, false, false),
        ("overlapping below 2,000 swapped", 20, 2_000, true, false),
        ("itself, pattern", 0, TokenId::MAX, true, true),
        ("overlapping, pattern", 10, TokenId::MAX, true, true),
        ("other ranks, pattern", 10, TokenId::MAX, false, true),
    ];
    for (name, count, below, overlapping, in_pieces) in kinds {
        let mut times = Vec::new();
        let (mut differ, mut same, mut improper, mut unknown) = (0, 0, 0, 0);
        let pairs = match count {
            0 => vec![(0, 0)],
            // Some make the dictionary improper, and get that as their answer.
            count => swaps(canonical, 20 * count, below, overlapping),
        };
        for pair in pairs {
            if times.len() == count.max(1) {
                break;
            }
            let copy = with_swapped(canonical.vocabulary(), pair)?;
            let builder = bytepair::TokenizerBuilder::from_canonical(Arc::clone(&copy));
            let patterns = tokenizer.patterns().iter().cloned();
            let other = patterns.fold(builder, bytepair::TokenizerBuilder::pattern);
            let other = other.build()?;
            let start = Instant::now();
            let answer = match in_pieces {
                true => tokenizer.equivalent(&other).ok(),
                false => equivalent(canonical, &copy).ok(),
            };
            let seconds = start.elapsed().as_secs_f64();
            match answer {
                Some(Equivalence::Different(_)) => differ += 1,
                Some(Equivalence::Same { .. }) => same += 1,
                Some(Equivalence::Unknown { .. }) => unknown += 1,
                None => {
                    improper += 1;
                    continue;
                }
            }
            times.push(seconds);
        }
        let slowest = times.iter().copied().fold(0.0, f64::max);
        let copies = times.len();
        let middle = median(&times);
        println!(
            "{name:34}{copies:>10}{middle:>12.2}{slowest:>12.2}{differ:>8}{same:>8}{unknown:>8}{improper:>10}"
        );
        results.push(json!({
            "copies": name, "median_s": middle, "slowest_s": slowest, "differ": differ, "same": same,
            "improper": improper, "unknown": unknown,
        }));
    }
    Ok(results.into())
}
