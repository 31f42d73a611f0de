//! A text that comes in pieces beside the same text at once: `Tokenizer::stream` and `encode`, in turn.

use std::path::PathBuf;

use bytepair::{TokenId, Tokenizer};
use serde_json::{Value, json};

use super::{Error, corpora, median, write_json};
use crate::data;
use crate::stopwatch::Stopwatch;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each side has its turn.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Bytes of a piece.
    #[arg(long, default_value_t = 4096)]
    piece: usize,
    /// Bytes taken of each corpus at most.
    #[arg(long, default_value_t = 4_000_000)]
    bytes: usize,
    /// Only the vocabularies whose names hold this.
    #[arg(long, default_value = "")]
    vocabulary: String,
    /// Only the corpora whose names hold this.
    #[arg(long, default_value = "")]
    corpus: String,
    /// A folder with more data: `corpora/*.txt.gz`.
    #[arg(long, value_name = "DIR", env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
    /// Fail where a stream of English has less than this share of the speed of `encode`.
    #[arg(long, default_value_t = 0.6)]
    at_least: f64,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Compares the ids, gives each side its turns, and prints medians and the share of single rounds.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let mut corpora = corpora::all()?;
    if let Some(folder) = &arguments.data {
        for path in data::files(&folder.join("corpora"), ".txt.gz")? {
            let text = String::from_utf8(data::read(&path)?)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            corpora.push((name.into_owned(), text));
        }
    }
    let mut results = Vec::new();
    let mut holds = true;
    for name in crate::embed::NAMES {
        if !name.contains(&arguments.vocabulary) {
            continue;
        }
        let tokenizer = Tokenizer::from_name(name)?;
        for (corpus, text) in &corpora {
            if !corpus.contains(&arguments.corpus) {
                continue;
            }
            let text = &text[..text.floor_char_boundary(arguments.bytes)];
            let (at_once, streamed) = turns(arguments, &tokenizer, text.as_bytes())?;
            let shares = at_once.iter().zip(&streamed).map(|(a, b)| a / b);
            let shares: Vec<f64> = shares.collect();
            let share = median(&shares);
            let lowest = shares.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = shares.iter().copied().fold(0.0, f64::max);
            let speed = |seconds: &[f64]| text.len() as f64 / median(seconds) / 1e6;
            let (at_once, streamed) = (speed(&at_once), speed(&streamed));
            println!(
                "{name:12} {corpus:20} at once {at_once:7.1} MB/s, stream {streamed:7.1} MB/s, {:4.0} % ({:.0} to {:.0})",
                share * 100.0,
                lowest * 100.0,
                highest * 100.0
            );
            holds &= !corpus.contains("english") || share >= arguments.at_least;
            results.push(json!({
                "vocabulary": name,
                "corpus": corpus,
                "bytes": text.len(),
                "piece": arguments.piece,
                "rounds": arguments.rounds,
                "at_once_megabytes_per_second": at_once,
                "stream_megabytes_per_second": streamed,
                "share": share,
                "lowest_share_of_a_round": lowest,
                "highest_share_of_a_round": highest,
            }));
        }
    }
    write_json(arguments.json.as_deref(), &Value::from(results))?;
    Ok(holds)
}

/// The seconds of every turn of both sides. A first turn of each is not counted.
fn turns(
    arguments: &Arguments,
    tokenizer: &Tokenizer,
    text: &[u8],
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let mut stream = tokenizer.stream()?;
    let (mut at_once, mut streamed) = (Vec::new(), Vec::new());
    let (mut expected, mut found): (Vec<TokenId>, Vec<TokenId>) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds.max(1) {
        expected.clear();
        let watch = Stopwatch::start();
        tokenizer.encode_into(text, &mut expected)?;
        let one = watch.seconds();
        found.clear();
        let watch = Stopwatch::start();
        for piece in text.chunks(arguments.piece.max(1)) {
            stream.push(piece, &mut found)?;
        }
        stream.finish(&mut found)?;
        let other = watch.seconds();
        if found != expected {
            return Err("the stream has other ids".into());
        }
        if round > 0 {
            at_once.push(one);
            streamed.push(other);
        }
    }
    Ok((at_once, streamed))
}
