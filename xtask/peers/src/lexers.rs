//! Pre-tokens alone: our engines and the lexers of others that can be called without their tokenizer.
//!
//! Every peer is called in its fastest public way, on one processor, and the ends of what it finds go to a vector that is
//! reused. `Split` of fastokens keeps its last result for a text that begins in the same way; it gets another text between
//! two rounds, or it would be timed for the comparison of two strings.

use std::ops::ControlFlow;
use std::path::PathBuf;

use bpe_lexers::{Engine, Pattern, Run, Spanner, SpecialMatcher};
use serde_json::{Value, json};
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{
    OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior,
};

use crate::interleave::{self, Summary};
use crate::{DataFolder, Error, corpora, speed};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// Rounds that are counted; in each all lexers run once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Bytes taken of each corpus.
    #[arg(long, default_value_t = 1_000_000)]
    bytes: usize,
    /// Only this family: r50k, cl100k or o200k.
    #[arg(long)]
    family: Option<String>,
    /// Only the corpora whose names hold this.
    #[arg(long, default_value = "")]
    corpus: String,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const FAMILIES: [&str; 3] = ["r50k", "cl100k", "o200k"];

/// Appends the ends of all pre-tokens of a text.
type Lex = Box<dyn FnMut(&str, &mut Vec<usize>)>;

/// A lexer, and where its ends are not those of the reference.
struct Contender {
    name: &'static str,
    lex: Lex,
    ends: Vec<usize>,
    difference: Option<String>,
}

/// Compares the ends of all lexers, then prints the speed of each and how many times it is fancy-regex's. A
/// lexer that cuts in another way is timed too, and marked.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    // On one processor, whoever starts threads gains nothing by them.
    let cores = speed::cores();
    speed::pin(cores.last_chunk::<1>().ok_or("no processor")?)?;
    let corpora = corpora::all(arguments.data.data.as_deref(), arguments.bytes)?;
    let mut results = Vec::new();
    let mut ours_are_right = true;
    for family in FAMILIES {
        if arguments.family.as_ref().is_some_and(|only| only != family) {
            continue;
        }
        for corpus in &corpora {
            if !corpus.name.contains(&arguments.corpus) {
                continue;
            }
            let text = &*corpus.text;
            let mut contenders = contenders(family)?;
            for contender in &mut contenders {
                (contender.lex)(text, &mut contender.ends);
            }
            let expected = contenders.first().map(|first| first.ends.clone());
            for contender in &mut contenders {
                let expected = expected.as_deref().unwrap_or_default();
                contender.difference = difference(&contender.ends, expected);
                let is_ours = OURS.iter().any(|(name, _)| *name == contender.name);
                ours_are_right &= !is_ours || contender.difference.is_none();
            }
            let mut sides: Vec<Box<dyn FnMut() + '_>> = Vec::new();
            for contender in &mut contenders {
                let Contender { lex, ends, .. } = contender;
                sides.push(Box::new(move || {
                    ends.clear();
                    lex(text, ends);
                    std::hint::black_box(ends.len());
                }));
            }
            let times = interleave::in_turn(arguments.rounds, &mut sides);
            drop(sides);
            let times: Vec<Vec<f64>> = times
                .iter()
                .map(|times| times.iter().map(std::time::Duration::as_secs_f64).collect())
                .collect();
            let first = times.first().cloned().unwrap_or_default();
            for (contender, times) in contenders.iter().zip(&times) {
                let seconds = Summary::of(times.iter().copied()).median;
                let speed = text.len() as f64 / seconds / 1e6;
                // Each turn against the first one's turn of the same round.
                let ratio = Summary::of(first.iter().zip(times).map(|(a, b)| a / b)).median;
                let name = contender.name;
                let note = contender.difference.as_deref();
                println!(
                    "{family:8} {:22} {name:24} {speed:8.1} MB/s {ratio:7.2}{}",
                    corpus.name,
                    note.map(|note| format!("  cuts in another way: {note}"))
                        .unwrap_or_default()
                );
                results.push(json!({
                    "family": family,
                    "corpus": corpus.name,
                    "bytes": text.len(),
                    "lexer": name,
                    "megabytes_per_second": speed,
                    "times_fancy_regex": ratio,
                    "difference": note,
                }));
            }
        }
    }
    if let Some(path) = &arguments.json {
        let mut text = serde_json::to_string_pretty(&Value::from(results))?;
        text.push('\n');
        std::fs::write(path, text)?;
    }
    Ok(ours_are_right)
}

/// The first place at which two lists of ends part.
fn difference(found: &[usize], expected: &[usize]) -> Option<String> {
    if found == expected {
        return None;
    }
    let pairs = found.iter().zip(expected);
    let place = pairs.take_while(|(a, b)| a == b).count();
    let (found, expected) = (found.get(place), expected.get(place));
    Some(format!("{found:?} where {expected:?} is right"))
}

/// Our engines; the first is what all are compared with.
const OURS: [(&str, Engine); 4] = [
    ("fancy-regex", Engine::Reference),
    ("regex-automata", Engine::Automata),
    ("logos", Engine::Logos),
    ("fast", Engine::Fast),
];

fn contenders(family: &'static str) -> Result<Vec<Contender>, Error> {
    let pattern = Pattern::by_name(family).ok_or("no such family")?;
    let mut lexers: Vec<(&'static str, Lex)> = Vec::new();
    for (name, engine) in OURS {
        match pattern.lexer(engine) {
            Ok(lexer) => lexers.push((name, ours(Spanner::new(vec![lexer])))),
            // Logos without the feature.
            Err(error) if error.is_unsupported() => {}
            Err(error) => return Err(error.into()),
        }
    }
    lexers.push(("tokenizers", tokenizers(&pattern)?));
    #[cfg(feature = "bpe-openai")]
    lexers.extend(bpe_openai(family).map(|lex| ("bpe-openai", lex)));
    #[cfg(feature = "fastokens")]
    {
        lexers.push(("fastokens Split", fastokens_split(&pattern)?));
        lexers.extend(fastokens_scan(family).map(|lex| ("fastokens scan", lex)));
    }
    #[cfg(feature = "pretokie")]
    lexers.extend(pretokie(family).map(|lex| ("pretokie", lex)));
    #[cfg(feature = "splintr")]
    lexers.push(("splintr", splintr(&pattern)?));
    #[cfg(feature = "wordchipper")]
    lexers.extend(wordchipper(family).map(|lex| ("wordchipper logos", lex)));
    let contenders = lexers.into_iter().map(|(name, lex)| Contender {
        name,
        lex,
        ends: Vec::new(),
        difference: None,
    });
    Ok(contenders.collect())
}

fn ours(mut spanner: Spanner) -> Lex {
    Box::new(move |text, found| {
        let none = SpecialMatcher::none();
        let flow = spanner.for_each_run::<()>(text.as_bytes(), &none, |run| {
            if let Run::Pieces { offset, ends, .. } = run {
                found.extend(ends.iter().map(|end| offset + end));
            }
            ControlFlow::Continue(())
        });
        // An engine that gives up has found too little, which the comparison sees.
        drop(flow);
    })
}

/// `Split` of `tokenizers`, on fancy-regex too.
fn tokenizers(pattern: &Pattern) -> Result<Lex, Error> {
    let pattern = SplitPattern::Regex(pattern.as_str().into());
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
    let split = split.map_err(|error| error.to_string())?;
    Ok(Box::new(move |text, found| {
        let mut text = PreTokenizedString::from(text);
        if split.pre_tokenize(&mut text).is_ok() {
            let splits = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
            found.extend(splits.into_iter().map(|(_, range, _)| range.1));
        }
    }))
}

/// The ends of pieces that follow each other.
#[cfg(any(feature = "bpe-openai", feature = "splintr"))]
fn push_lengths(lengths: impl Iterator<Item = usize>, found: &mut Vec<usize>) {
    let mut end = 0;
    found.extend(lengths.map(|length| {
        end += length;
        end
    }));
}

/// The pre-tokenizer of bpe-openai, on regex-automata with the look-ahead by hand.
#[cfg(feature = "bpe-openai")]
fn bpe_openai(family: &str) -> Option<Lex> {
    let tokenizer = match family {
        "cl100k" => bpe_openai::cl100k_base(),
        "o200k" => bpe_openai::o200k_base(),
        _ => return None,
    };
    Some(Box::new(move |text, found| {
        push_lengths(tokenizer.split(text).map(str::len), found);
    }))
}

/// `Split` of fastokens, which copies the text first. It is kept from giving its last result again.
#[cfg(feature = "fastokens")]
fn fastokens_split(pattern: &Pattern) -> Result<Lex, Error> {
    use fastokens::pre_tokenized::PreTokenizedString;
    let source = json!({ "Regex": pattern.as_str() });
    let split = fastokens::pre_tokenizers::Split::from_config(&source, "Isolated", false)?;
    let other = "\u{1}\n".repeat(300);
    Ok(Box::new(move |text, found| {
        let mut other = PreTokenizedString::from_text(&other);
        let mut text = PreTokenizedString::from_text(text);
        if split.pre_tokenize(&mut other).is_ok() && split.pre_tokenize(&mut text).is_ok() {
            found.extend(text.splits().iter().map(|split| split.range.end));
        }
    }))
}

/// The scanner that fastokens has for patterns that it knows, by the door left for its own benchmarks.
#[cfg(feature = "fastokens")]
fn fastokens_scan(family: &'static str) -> Option<Lex> {
    if family == "r50k" {
        return None;
    }
    Some(Box::new(move |text, found| {
        let spans = fastokens::__bench_scan_spans(text, family);
        found.extend(spans.iter().map(|&(_, end)| end as usize));
    }))
}

/// The pre-tokenizers of tokie: masks over blocks of bytes.
#[cfg(feature = "pretokie")]
fn pretokie(family: &str) -> Option<Lex> {
    macro_rules! lexer {
        ($lexer:ident) => {
            Some(Box::new(|text, found| {
                let mut end = 0;
                pretokie::$lexer::new(text).for_each_piece(|piece| {
                    end += piece.len();
                    found.push(end);
                });
            }))
        };
    }
    match family {
        "r50k" => lexer!(Gpt2),
        "cl100k" => lexer!(Cl100k),
        "o200k" => lexer!(O200k),
        _ => None,
    }
}

/// The pre-tokenizer of splintr, which makes a string of each piece.
#[cfg(feature = "splintr")]
fn splintr(pattern: &Pattern) -> Result<Lex, Error> {
    use splintr::{PreTokStage, PreTokenizer, SplitBehavior, SplitPattern};
    let stage = PreTokStage::Split {
        pattern: SplitPattern::Regex(pattern.as_str().into()),
        behavior: SplitBehavior::Isolated,
        invert: false,
    };
    let splitter = PreTokenizer::new(vec![stage]).map_err(|error| error.to_string())?;
    Ok(Box::new(move |text, found| {
        push_lengths(splitter.split(text).iter().map(String::len), found);
    }))
}

/// The lexers of wordchipper, made by logos.
#[cfg(feature = "wordchipper")]
fn wordchipper(family: &str) -> Option<Lex> {
    use wordchipper::spanners::span_lexers::SpanLexer;
    use wordchipper::spanners::span_lexers::logos::{cl100k, o200k, r50k};
    let lexer: Box<dyn SpanLexer> = match family {
        "r50k" => Box::new(r50k::R50kLexer),
        "cl100k" => Box::new(cl100k::Cl100kLexer),
        "o200k" => Box::new(o200k::O200kLexer),
        _ => return None,
    };
    Some(Box::new(move |text, found| {
        found.extend(lexer.find_span_iter(text).map(|range| range.end));
    }))
}
