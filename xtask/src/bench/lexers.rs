//! The lexers alone, each family and corpus, all engines in turn: what their ratios are.

use std::ops::ControlFlow;
use std::path::PathBuf;

use bpe_lexers::{
    Engine, Family, FastLexer, InstructionSet, Lexer, Pattern, PatternError, Run, Spanner,
    SpecialMatcher,
};
use serde_json::{Value, json};

use super::{Error, corpora, median, write_json};
use crate::stopwatch::Stopwatch;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each engine has its turn.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Only the families whose names hold this.
    #[arg(long, default_value = "")]
    family: String,
    /// Only the engines whose names hold this, and the reference.
    #[arg(long, default_value = "")]
    engine: String,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const FAMILIES: [(&str, &[Family]); 7] = [
    ("gpt2", &[Family::Gpt2]),
    ("cl100k", &[Family::Cl100k]),
    ("o200k", &[Family::O200k]),
    ("qwen2", &[Family::Qwen2]),
    ("tekken", &[Family::Tekken]),
    (
        "deepseek",
        &[Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3],
    ),
    ("digits", &[Family::SingleDigits, Family::Gpt2]),
];

/// A turn lasts at least so long, so that the clock does not count.
const TURN_SECONDS: f64 = 0.005;

/// One engine, and what its turns took.
struct Contender {
    name: String,
    spanner: Spanner,
    /// How many passes over the text a turn has.
    passes: u32,
    /// Seconds a pass, turn by turn.
    seconds: Vec<f64>,
}

/// Compares the spans of all engines, then gives them turns, and prints the medians.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = corpora::all()?;
    let mut results = Vec::new();
    for (family_name, families) in FAMILIES {
        if !family_name.contains(&arguments.family) {
            continue;
        }
        for (corpus, text) in &corpora {
            let mut contenders = contenders(families)?;
            contenders.retain(|contender| {
                contender.name == "reference" || contender.name.contains(&arguments.engine)
            });
            let mut expected: Option<Vec<usize>> = None;
            for contender in &mut contenders {
                let mut ends = Vec::new();
                let start = Stopwatch::start();
                lex(&mut contender.spanner, text, |offset, more| {
                    ends.extend(more.iter().map(|end| offset + end));
                })?;
                let seconds = start.seconds();
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
                    let start = Stopwatch::start();
                    let mut count = 0;
                    for _ in 0..contender.passes {
                        lex(&mut contender.spanner, text, |_, more| count += more.len())?;
                    }
                    std::hint::black_box(count);
                    let seconds = start.seconds();
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

/// The engines that run the families one after the other, the reference first.
fn contenders(families: &[Family]) -> Result<Vec<Contender>, Error> {
    let patterns: Vec<_> = families
        .iter()
        .map(|&family| Pattern::of_family(family))
        .collect();
    let mut contenders = Vec::new();
    let mut add = |name: String, lexers: Result<Vec<Box<dyn Lexer>>, PatternError>| match lexers {
        Ok(lexers) => {
            contenders.push(Contender {
                name,
                spanner: Spanner::new(lexers),
                passes: 1,
                seconds: Vec::new(),
            });
            Ok(())
        }
        Err(error) if error.is_unsupported() => Ok(()),
        Err(error) => Err(error),
    };
    for (name, engine) in [
        ("reference", Engine::Reference),
        ("automata", Engine::Automata),
        ("logos", Engine::Logos),
    ] {
        let lexers = patterns.iter().map(|pattern| pattern.lexer(engine));
        add(name.to_owned(), lexers.collect())?;
    }
    for set in InstructionSet::available() {
        let lexers = patterns.iter().map(|pattern| {
            let lexer = FastLexer::with_instructions(pattern, set)?;
            Ok(Box::new(lexer) as Box<dyn Lexer>)
        });
        add(format!("fast {set:?}").to_lowercase(), lexers.collect())?;
    }
    Ok(contenders)
}

/// Hands on where runs of pieces are and the ends of the pieces, many at a time.
fn lex(
    spanner: &mut Spanner,
    text: &str,
    mut visit: impl FnMut(usize, &[usize]),
) -> Result<(), Error> {
    let flow = spanner.for_each_run::<()>(text.as_bytes(), &SpecialMatcher::none(), |run| {
        if let Run::Pieces { offset, ends, .. } = run {
            visit(offset, ends);
        }
        ControlFlow::Continue(())
    });
    Ok(flow.map(drop)?)
}
