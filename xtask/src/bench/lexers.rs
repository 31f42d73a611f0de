//! The lexers alone, each family and corpus, all engines in turn: what their ratios are.

use std::path::PathBuf;
use std::time::Instant;

use bpe_lexers::{Engine, Family, FastLexer, InstructionSet, Lexer, Pattern};
use serde_json::{Value, json};

use super::{Error, corpora, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each engine has its turn.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const FAMILIES: [(&str, Family); 5] = [
    ("gpt2", Family::Gpt2),
    ("cl100k", Family::Cl100k),
    ("o200k", Family::O200k),
    ("qwen2", Family::Qwen2),
    ("tekken", Family::Tekken),
];

/// A turn lasts at least so long, so that the clock does not count.
const TURN_SECONDS: f64 = 0.005;

/// One engine, and what its turns took.
struct Contender {
    name: String,
    lexer: Box<dyn Lexer>,
    /// How many passes over the text a turn has.
    passes: u32,
    /// Seconds a pass, turn by turn.
    seconds: Vec<f64>,
}

/// Compares the spans of all engines, then gives them turns, and prints the medians.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = corpora::all()?;
    let mut results = Vec::new();
    for (family_name, family) in FAMILIES {
        for (corpus, text) in &corpora {
            let mut contenders = contenders(family)?;
            let mut expected: Option<Vec<usize>> = None;
            for contender in &mut contenders {
                let mut ends = Vec::new();
                let start = Instant::now();
                lex(contender.lexer.as_mut(), text, |more| {
                    ends.extend_from_slice(more)
                })?;
                let seconds = start.elapsed().as_secs_f64();
                contender.passes = (TURN_SECONDS / seconds).ceil().clamp(1.0, 1000.0) as u32;
                if *expected.get_or_insert_with(|| ends.clone()) != ends {
                    let name = &contender.name;
                    return Err(
                        format!("{name} cuts {corpus} in another way, {family_name}").into(),
                    );
                }
            }
            for _ in 0..arguments.rounds {
                for contender in &mut contenders {
                    let start = Instant::now();
                    let mut count = 0;
                    for _ in 0..contender.passes {
                        lex(contender.lexer.as_mut(), text, |more| count += more.len())?;
                    }
                    std::hint::black_box(count);
                    let seconds = start.elapsed().as_secs_f64();
                    contender
                        .seconds
                        .push(seconds / f64::from(contender.passes));
                }
            }
            let first = contenders[0].seconds.clone();
            for contender in &contenders {
                let speed = text.len() as f64 / median(&contender.seconds) / 1e6;
                // Each turn against the first engine's turn of the same round.
                let ratios: Vec<f64> = first
                    .iter()
                    .zip(&contender.seconds)
                    .map(|(a, b)| a / b)
                    .collect();
                let ratio = median(&ratios);
                println!(
                    "{family_name:8} {corpus:12} {:16} {speed:8.1} MB/s {ratio:7.2}",
                    contender.name
                );
                results.push(json!({
                    "family": family_name,
                    "corpus": corpus,
                    "engine": contender.name,
                    "bytes": text.len(),
                    "megabytes_per_second": speed,
                    "times_reference": ratio,
                }));
            }
        }
    }
    write_json(arguments.json.as_deref(), &Value::from(results))?;
    Ok(true)
}

/// The engines that run the family, the reference first.
fn contenders(family: Family) -> Result<Vec<Contender>, Error> {
    let pattern = Pattern::of_family(family);
    let mut lexers: Vec<(String, Box<dyn Lexer>)> = Vec::new();
    for (name, engine) in [
        ("reference", Engine::Reference),
        ("automata", Engine::Automata),
        ("logos", Engine::Logos),
    ] {
        match pattern.lexer(engine) {
            Ok(lexer) => lexers.push((name.to_owned(), lexer)),
            Err(error) if error.is_unsupported() => {}
            Err(error) => return Err(error.into()),
        }
    }
    for set in InstructionSet::available() {
        let lexer = FastLexer::with_instructions(&pattern, set)?;
        lexers.push((format!("fast {set:?}").to_lowercase(), Box::new(lexer)));
    }
    let contenders = lexers.into_iter().map(|(name, lexer)| Contender {
        name,
        lexer,
        passes: 1,
        seconds: Vec::new(),
    });
    Ok(contenders.collect())
}

/// Hands on the ends of all pre-tokens, many at a time.
fn lex(lexer: &mut dyn Lexer, text: &str, mut visit: impl FnMut(&[usize])) -> Result<(), Error> {
    let mut ends = Vec::new();
    let mut start = 0;
    loop {
        ends.clear();
        lexer.pre_token_ends(text, start, 1024, &mut ends)?;
        match ends.last() {
            Some(&last) => start = last,
            None => return Ok(()),
        }
        visit(&ends);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
