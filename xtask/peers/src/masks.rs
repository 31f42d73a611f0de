//! The whole mask of a JSON-like regular expression at each token of documents: ours, which admits canonical
//! tokens alone, and that of llguidance, which admits all tokens whose text goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytepair::{StringDfa, StringDfaLimits, Tokenizer};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use crate::json_texts::{json_documents, json_language};
use crate::{DataFolder, Error, corpora};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// Documents; each is gone through by both before the next.
    #[arg(long, default_value_t = 300)]
    documents: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Prints and writes the times of masks. An error where a side forbids a token of a document.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = corpora::named(&["english"], arguments.data.data.as_deref(), 4_000_000)?;
    let text = corpora.first().map_or("", |corpus| &corpus.text);
    let mut documents = json_documents(text);
    documents.truncate(arguments.documents);
    let tokenizer = Tokenizer::o200k_base();
    let language = json_language();
    let automaton = StringDfa::from_regex(&language, &StringDfaLimits::default())?;
    let mut dfa = tokenizer.token_dfa(automaton)?;
    let factory = factory(&tokenizer)?;
    let mut mask = vec![0; dfa.words()];
    println!(
        "{:24}{:>10}{:>10}{:>10}{:>10}",
        "us a mask", "mean", "median", "p99.9", "masks"
    );
    let mut results = Vec::new();
    for pass in ["first", "second"] {
        let mut times = [Vec::new(), Vec::new()];
        for document in &documents {
            let ids = tokenizer.encode(document)?;
            let mut state = dfa.start();
            for &id in &ids {
                let start = Instant::now();
                dfa.allowed(&state, &mut mask);
                times[0].push(start.elapsed().as_secs_f64() * 1e6);
                let word = mask.get(id as usize / 64).copied().unwrap_or(0);
                if word >> (id % 64) & 1 == 0 {
                    return Err(format!("ours forbids {id} in {document}").into());
                }
                state = dfa.next(&state, id).ok_or("a token that is allowed")?;
            }
            let parser = factory.create_parser(TopLevelGrammar::from_regex(&language));
            let mut matcher = Matcher::new(parser);
            for &id in &ids {
                let start = Instant::now();
                let mask = matcher.compute_mask()?;
                times[1].push(start.elapsed().as_secs_f64() * 1e6);
                if !mask.is_allowed(id) {
                    return Err(format!("llguidance forbids {id} in {document}").into());
                }
                matcher.consume_token(id)?;
            }
        }
        for (name, mut times) in ["bytepair", "llguidance"].into_iter().zip(times) {
            let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
            times.sort_by(f64::total_cmp);
            let at = |part: f64| {
                let place = ((times.len() as f64 - 1.0) * part).round() as usize;
                times.get(place).copied().unwrap_or(f64::NAN)
            };
            let (median, high) = (at(0.5), at(0.999));
            println!(
                "{:24}{mean:>10.1}{median:>10.1}{high:>10.1}{:>10}",
                format!("{name}, {pass} pass"),
                times.len()
            );
            results.push(json!({
                "side": name, "pass": pass, "mean_us": mean, "median_us": median, "p999_us": high,
                "masks": times.len(),
            }));
        }
    }
    if let Some(path) = &arguments.json {
        let results: Value = results.into();
        std::fs::write(path, format!("{results:#}\n"))?;
    }
    Ok(true)
}

/// What llguidance knows of the vocabulary; ids between tokens are empty, and one behind them ends the text.
fn factory(tokenizer: &Tokenizer) -> Result<ParserFactory, Error> {
    let vocabulary = tokenizer.vocabulary();
    let count = vocabulary.max_id().map_or(0, |id| id as usize + 1);
    let mut words = vec![Vec::new(); count + 1];
    for (id, bytes) in vocabulary.iter() {
        if let Some(word) = words.get_mut(id as usize) {
            word.extend_from_slice(bytes);
        }
    }
    if let Some(end) = words.last_mut() {
        end.extend_from_slice(&[TokTrie::SPECIAL_TOKEN_MARKER]);
        end.extend_from_slice(b"<|end|>");
    }
    let trie = TokTrie::from(&TokRxInfo::new(count as u32 + 1, count as u32), &words);
    let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let mut factory = ParserFactory::new_simple(&environment)?;
    factory.quiet();
    Ok(factory)
}
