//! Training by each algorithm, and of ever larger corpora; each run in a process of its own: time, merges
//! a second, memory.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bpe_lexers::{Cuts, Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::{Algorithm, Ties, TrainOptions, Training, WordCounts, train};
use serde_json::{Value, json};

use super::{Error, write_json};
use crate::data;
use crate::plot::{Axis, Plot};

/// The numbers of merges of 003's tables.
const MERGES: [usize; 5] = [500, 1_000, 2_000, 5_000, 9_743];

/// How often the corpus is read, with other words each time: 20, 40, 80, 160 MB of `train_en`.
const REPEATS: [u64; 4] = [1, 2, 4, 8];

/// Merges of what grows.
const GROWTH_MERGES: usize = 32_000 - 256;

/// At once read of what grows.
const BLOCK_BYTES: usize = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The data folder, whose `corpora/train_en.txt.gz` is taken; without it, the English corpus of
    /// bench-data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Runs of each algorithm and number of merges, of which the fastest counts.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw train-time.svg, train-speed-up.svg, train-merges.svg and train-growth.svg into this folder.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Leave the five algorithms out, and measure growth alone.
    #[arg(long)]
    growth_only: bool,
    /// Count and train on this many repeats here, altered or the same, and print what it took.
    #[arg(long, hide = true, value_names = ["altered|same", "CORPUS", "REPEATS"], num_args = 3)]
    growth_child: Vec<String>,
    /// Train here and print what it took: how this command calls itself.
    #[arg(long, hide = true, value_names = ["ALGORITHM", "MERGES", "COUNTS"], num_args = 3)]
    child: Vec<String>,
}

/// Prints a table with a row for each algorithm, and one of growth.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    if let [algorithm, merges, counts] = &arguments.child[..] {
        return child(algorithm, merges.parse()?, Path::new(counts));
    }
    if let [rule, corpus, repeats] = &arguments.growth_child[..] {
        return growth_child(rule == "altered", Path::new(corpus), repeats.parse()?);
    }
    let corpus = match &arguments.data {
        Some(folder) => folder.join("corpora/train_en.txt.gz"),
        None => data::workspace().join("bench-data/corpora/english.txt"),
    };
    let text = data::read(&corpus)?;
    let folder = std::env::temp_dir().join(format!("bytepair-bench-train-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut results = json!({ "corpus_bytes": text.len() });
    if !arguments.growth_only {
        results["results"] = algorithms(&text, &folder, arguments.runs)?.into();
    }
    results["growth"] = growth(&text, &folder, arguments.runs)?.into();
    std::fs::remove_dir_all(&folder)?;
    if let Some(folder) = &arguments.plots {
        plots(&results, folder)?;
    }
    write_json(arguments.json.as_deref(), &results)?;
    Ok(true)
}

/// 003's tables.
fn algorithms(text: &[u8], folder: &Path, runs: usize) -> Result<Vec<Value>, Error> {
    let start = Instant::now();
    let mut counts = WordCounts::new();
    let mut spanner = Spanner::new(vec![Pattern::gpt2().lexer(Engine::Auto)?]);
    counts.add_text(&mut spanner, &SpecialMatcher::none(), text)?;
    println!(
        "{} bytes, {} distinct words, counted in {:.3} s",
        text.len(),
        counts.len(),
        start.elapsed().as_secs_f64(),
    );
    let saved = folder.join("counts");
    counts.write_to(std::io::BufWriter::new(File::create(&saved)?))?;
    println!(
        "{:25}{:>8}{:>11}{:>11}{:>13}{:>10}",
        "", "merges", "seconds", "x naive", "merges/s", "MB"
    );
    let mut results = Vec::new();
    for merges in MERGES {
        let mut naive: Option<(f64, String)> = None;
        for algorithm in Algorithm::ALL {
            let merges = merges.to_string();
            let mut result = fastest(runs, &["--child", algorithm.name(), &merges], &saved)?;
            let seconds = result["seconds"].as_f64().unwrap_or_default();
            let learned = result["learned"].to_string();
            let (base, expected) = naive.get_or_insert((seconds, learned.clone()));
            if learned != *expected {
                return Err(format!("{}: other merges than naive", algorithm.name()).into());
            }
            let count = result["merges"].as_f64().unwrap_or_default();
            println!(
                "{:25}{:>8}{seconds:>11.3}{:>11.1}{:>13.0}{:>10.1}",
                algorithm.name(),
                result["merges"],
                *base / seconds,
                count / seconds,
                result["peak_bytes"].as_f64().unwrap_or_default() / 1e6,
            );
            result["times_naive"] = (*base / seconds).into();
            result["merges_per_second"] = (count / seconds).into();
            results.push(result);
        }
    }
    Ok(results)
}

/// Time and memory of corpora that are so many times as long and bring new words all along.
fn growth(text: &[u8], folder: &Path, runs: usize) -> Result<Vec<Value>, Error> {
    let corpus = folder.join("corpus");
    std::fs::write(&corpus, text)?;
    println!(
        "{:>12}{:>12}{:>12}{:>11}{:>11}{:>11}{:>11}{:>14}",
        "bytes", "words", "word bytes", "counting", "merging", "both s", "peak MB", "s per GB"
    );
    let mut results = Vec::new();
    for repeats in REPEATS {
        let corpus = corpus.display().to_string();
        let result = fastest(
            runs,
            &["--growth-child", "altered", &corpus],
            repeats.to_string(),
        )?;
        let number = |field: &str| result[field].as_f64().unwrap_or_default();
        println!(
            "{:>12}{:>12}{:>12}{:>11.3}{:>11.3}{:>11.3}{:>11.1}{:>14.2}",
            number("bytes"),
            number("distinct_words"),
            number("distinct_bytes"),
            number("counting_seconds"),
            number("merging_seconds"),
            number("seconds"),
            number("peak_bytes") / 1e6,
            number("seconds") / number("bytes") * 1e9,
        );
        results.push(result);
    }
    Ok(results)
}

/// The fastest of `runs` processes of this command with these arguments.
fn fastest(
    runs: usize,
    arguments: &[&str],
    last: impl AsRef<std::ffi::OsStr>,
) -> Result<Value, Error> {
    let mut best: Option<Value> = None;
    for _ in 0..runs.max(1) {
        let output = Command::new(std::env::current_exe()?)
            .args(["bench", "train"])
            .args(arguments)
            .arg(last.as_ref())
            .output()?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{arguments:?}: {error}").into());
        }
        let result: Value = serde_json::from_slice(&output.stdout)?;
        let seconds = |result: &Value| result["seconds"].as_f64().unwrap_or(f64::MAX);
        if best
            .as_ref()
            .is_none_or(|best| seconds(&result) < seconds(best))
        {
            best = Some(result);
        }
    }
    best.ok_or_else(|| "no run".into())
}

fn child(algorithm: &str, merges: usize, counts: &Path) -> Result<bool, Error> {
    let algorithm = Algorithm::ALL
        .into_iter()
        .find(|known| known.name() == algorithm);
    let algorithm = algorithm.ok_or("no such algorithm")?;
    let mut words = WordCounts::new();
    let file = std::io::BufReader::new(File::open(counts)?);
    words.add_file(file, usize::MAX)?;
    let options = TrainOptions::new(256 + merges)
        .ties(Ties::HuggingFace)
        .algorithm(algorithm);
    let start = Instant::now();
    let training = train(&words, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let result = json!({
        "algorithm": algorithm.name(),
        "merges": training.merges().len(),
        "seconds": seconds,
        "learned": digest(&training),
        "peak_bytes": peak_bytes(),
    });
    println!("{result}");
    Ok(true)
}

/// Reads the corpus `repeats` times as a stream, altered anew each time or as it is, and trains on all of
/// it.
fn growth_child(is_altered: bool, corpus: &Path, repeats: u64) -> Result<bool, Error> {
    let start = Instant::now();
    let cuts = Cuts::new(&[Pattern::gpt2()])?;
    let mut counts = WordCounts::new();
    let mut spanner = Spanner::new(vec![Pattern::gpt2().lexer(Engine::Auto)?]);
    let (mut bytes, mut altering) = (0_u64, Duration::ZERO);
    for round in 0..repeats {
        let mut file = File::open(corpus)?;
        let mut block = Vec::new();
        loop {
            let read = file
                .by_ref()
                .take(BLOCK_BYTES as u64)
                .read_to_end(&mut block)?;
            let end = match read {
                0 => block.len(),
                _ => match cuts.last_cut(&block, block.len() - 1) {
                    Some(cut) => cut,
                    None => continue,
                },
            };
            let rest = block.split_off(end);
            let start = Instant::now();
            if is_altered {
                alter(&mut block, round);
            }
            altering += start.elapsed();
            bytes += block.len() as u64;
            counts.add_text(&mut spanner, &SpecialMatcher::none(), &block)?;
            block = rest;
            if read == 0 {
                break;
            }
        }
    }
    // To alter the text is the work of this benchmark alone.
    let counting = (start.elapsed() - altering).as_secs_f64();
    let start = Instant::now();
    let options = TrainOptions::new(256 + GROWTH_MERGES).ties(Ties::HuggingFace);
    let training = train(&counts, &options)?;
    let merging = start.elapsed().as_secs_f64();
    let result = json!({
        "bytes": bytes,
        "distinct_words": counts.len(),
        "distinct_bytes": counts.distinct_bytes(),
        "merges": training.merges().len(),
        "counting_seconds": counting,
        "merging_seconds": merging,
        "seconds": counting + merging,
        "peak_bytes": peak_bytes(),
    });
    println!("{result}");
    Ok(true)
}

/// The rule of the corpus that grows: in round `n` each run of ASCII letters whose hash is divisible by 4
/// has each of its letters moved on by `n` places in the alphabet, lower case and upper case each for
/// themselves; all others stay. So a quarter of all distinct words is new in each round (up to 26), and the
/// same word becomes the same one wherever it stands.
fn alter(text: &mut [u8], round: u64) {
    if round == 0 {
        return;
    }
    for word in
        text.chunk_by_mut(|one, next| one.is_ascii_alphabetic() && next.is_ascii_alphabetic())
    {
        if word.first().is_some_and(u8::is_ascii_alphabetic) && hash(word).is_multiple_of(4) {
            for letter in word {
                let first = if letter.is_ascii_lowercase() {
                    b'a'
                } else {
                    b'A'
                };
                *letter = first + ((u64::from(*letter - first) + round) % 26) as u8;
            }
        }
    }
}

/// FNV-1a, its upper half.
fn hash(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3_u64)
    });
    hash >> 32
}

/// Draws time, speed-up and merges a second over merges, and time and memory over bytes.
fn plots(results: &Value, folder: &Path) -> Result<(), Error> {
    let rows = |of: &str| results[of].as_array().cloned().unwrap_or_default();
    let axis = |name, logarithmic, from| Axis {
        name,
        logarithmic,
        from,
    };
    let algorithms = rows("results");
    for (file, title, field, logarithmic, from) in [
        (
            "train-time.svg",
            "seconds of a training",
            "seconds",
            true,
            0.05,
        ),
        (
            "train-speed-up.svg",
            "times as fast as naive",
            "times_naive",
            true,
            1.0,
        ),
        (
            "train-merges.svg",
            "merges a second",
            "merges_per_second",
            true,
            500.0,
        ),
    ] {
        if algorithms.is_empty() {
            break;
        }
        let lines = Algorithm::ALL.map(|algorithm| {
            let own = algorithms
                .iter()
                .filter(|row| row["algorithm"] == algorithm.name());
            let points =
                own.filter_map(|row| Some((row["merges"].as_f64()?, row[field].as_f64()?)));
            (algorithm.name().to_owned(), points.collect())
        });
        let plot = Plot {
            title,
            x: axis("merges", true, 500.0),
            y: axis(title, logarithmic, from),
            lines: lines.into(),
        };
        plot.write(&folder.join(file))?;
    }
    let lines = [
        ("counting, s", "counting_seconds", 1.0),
        ("merging, s", "merging_seconds", 1.0),
        ("both, s", "seconds", 1.0),
        ("peak memory, 100 MB", "peak_bytes", 1e8),
    ];
    let growth = rows("growth");
    let lines = lines.map(|(name, field, unit)| {
        let points = growth
            .iter()
            .filter_map(|row| Some((row["bytes"].as_f64()? / 1e6, row[field].as_f64()? / unit)));
        (name.to_owned(), points.collect())
    });
    let plot = Plot {
        title: "32,000 tokens from ever more text, a quarter of its words new each time",
        x: axis("MB of text", false, 0.0),
        y: axis("seconds, 100 MB", false, 0.0),
        lines: lines.into(),
    };
    plot.write(&folder.join("train-growth.svg"))
}

/// A number that other merges would change.
fn digest(training: &Training) -> u64 {
    let bytes = training.merges().flat_map(|merge| {
        let length = merge.left.len() as u8;
        merge.token.iter().copied().chain([length])
    });
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The most memory that this process held, where the system tells it (Linux).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes = line.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::alter;

    #[test]
    fn altering_keeps_lengths_and_what_is_no_word_and_changes_some_words_each_round() {
        let text: String = (0..500)
            .map(|n| format!("Word{} naïve, ", "abc".repeat(n % 7)))
            .collect();
        let text = format!("{text} the cat and a hat in their house");
        let altered = |round| {
            let mut bytes = text.clone().into_bytes();
            alter(&mut bytes, round);
            String::from_utf8(bytes).expect("letters become letters")
        };
        assert_eq!(altered(0), text);
        assert_eq!(altered(26), text);
        let one = altered(1);
        assert!(one != text && one != altered(2) && one.len() == text.len());
        let differ = text
            .split(' ')
            .zip(one.split(' '))
            .filter(|(one, other)| one != other);
        assert!(differ.count() < text.split(' ').count());
        let others = |text: &str| text.replace(|c: char| c.is_ascii_alphabetic(), "");
        assert_eq!(others(&one), others(&text));
    }
}
