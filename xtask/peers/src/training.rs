//! Our trainer against the one of Hugging Face's `tokenizers`, and the files that we write of a training
//! against the programs that read them.

use std::collections::HashMap;

use bpe_core::{Dictionary, gpt2, tiktoken};
use bpe_lexers::{Engine, Spanner, SpecialMatcher};
use bpe_train::{Alphabet, Counter, Ties, TrainOptions, WordCounts, train};
use bytepair::{Pattern, Pipeline, Specials, Tokenizer, TokenizerBuilder};
use tiktoken_rs::CoreBPE;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{SplitDelimiterBehavior, Trainer};

use crate::corpora::{self, Corpus};
use crate::random::Random;
use crate::{DataFolder, Error};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// 1,500 merges on the corpora of `bench-data`, 1,000 random corpora: some seconds.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// 10,000 and 32,000 merges on all corpora, 20,000 random corpora: some minutes.
    #[arg(long)]
    full: bool,
    /// Only corpora whose names end so.
    #[arg(long, value_delimiter = ',')]
    corpus: Vec<String>,
    #[command(flatten)]
    data: DataFolder,
}

/// A pair of tokens.
type Merge = (Vec<u8>, Vec<u8>);

/// Texts of this size are trained on: both sides take them one by one.
const DOCUMENT_BYTES: usize = 1 << 16;

/// Prints a line for each claim, and at last `peers training: N claims, M failed, C oracle calls`.
/// False if one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let mut report = Report::default();
    // Its threads take longer to meet than small corpora to train on.
    tokenizers::utils::parallelism::set_parallelism(false);
    let random = if arguments.full { 20_000 } else { 1_000 };
    report.claim("random corpora", random_corpora(random));
    report.calls += random as u64;

    let data = match arguments.full {
        true => arguments.data.data.as_deref(),
        false => None,
    };
    let sizes: &[usize] = if arguments.full {
        &[32_256, 10_256]
    } else {
        &[1_756]
    };
    for corpus in corpora::all(data, usize::MAX)? {
        let ends = |end: &String| corpus.name.ends_with(end.as_str());
        if !arguments.corpus.is_empty() && !arguments.corpus.iter().any(ends) {
            continue;
        }
        for (name, pattern) in [
            ("gpt2", Pattern::gpt2()),
            ("cl100k", Pattern::cl100k()),
            ("o200k", Pattern::o200k()),
        ] {
            let what = format!("{}, {name}", corpus.name);
            report.claim(&what, compare(&corpus, &pattern, sizes));
            report.calls += sizes.len() as u64 + 3;
        }
    }
    println!(
        "peers training: {} claims, {} failed, {} oracle calls",
        report.claims, report.failed, report.calls
    );
    Ok(report.failed == 0)
}

#[derive(Default)]
struct Report {
    claims: usize,
    failed: usize,
    calls: u64,
}

impl Report {
    fn claim(&mut self, what: &str, result: Result<String, Error>) {
        self.claims += 1;
        match result {
            Ok(note) => println!("ok   {what}: {note}"),
            Err(error) => {
                self.failed += 1;
                println!("FAIL {what}\n     {error}");
            }
        }
    }
}

/// Trains on both sides, for each size; then reads what we write of the last one.
fn compare(corpus: &Corpus, pattern: &Pattern, sizes: &[usize]) -> Result<String, Error> {
    let documents = documents(&corpus.text);
    let one = count(&documents, pattern, 1)?;
    let two = count(&documents, pattern, 2)?;
    let shuffled = shuffled(&one)?;
    let mut note = Vec::new();
    for &size in sizes {
        let options = TrainOptions::new(size).ties(Ties::HuggingFace);
        let training = train(&one, &options)?;
        let ours: Vec<Merge> = merges(&training);
        for (name, other) in [("2 threads", &two), ("another order", &shuffled)] {
            if merges(&train(other, &options)?) != ours {
                return Err(format!("{size} tokens: {name} change the merges").into());
            }
        }
        let theirs = by_tokenizers(&documents, pattern, size)?;
        if let Some(place) =
            (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at))
        {
            return Err(format!(
                "{size} tokens, merge {place}: {:?} instead of {:?}",
                ours.get(place),
                theirs.get(place)
            )
            .into());
        }
        note.push(format!("{} merges", ours.len()));
        if size == sizes[sizes.len() - 1] {
            round_trip(&training.dictionary(0)?, pattern, &documents)?;
        }
    }
    let characters = characters(&one, pattern, &documents)?;
    Ok(format!(
        "{}, three files read back; {characters}",
        note.join(" and ")
    ))
}

/// Learns from characters instead of bytes, and reads what we write of it.
fn characters(counts: &WordCounts, pattern: &Pattern, documents: &[&str]) -> Result<String, Error> {
    // More than the characters of any corpus here; rare ones are left to bytes.
    let options = TrainOptions::new(12_256)
        .alphabet(Alphabet::Characters { coverage: 0.9995 })
        .ties(Ties::HuggingFace);
    let training = train(counts, &options)?;
    let dictionary = training.dictionary(0)?;
    let special = ("<|end|>", training.vocabulary_size() as u32);
    let ours = TokenizerBuilder::new(&dictionary)
        .pattern(pattern.clone())
        .special_tokens([special])
        .specials(Specials::AllowAll)
        .build()?;
    let json = ours.to_tokenizer_json()?;
    let pipeline = Pipeline::from_tokenizer_json(json.as_bytes(), &Default::default())?
        .with_specials(Specials::AllowAll)?;
    let theirs =
        tokenizers::Tokenizer::from_bytes(json.as_bytes()).map_err(|error| error.to_string())?;
    let mut tokens = 0;
    for document in documents.iter().take(4) {
        let document = format!("{document}<|end|>\u{10FFFD}{document}");
        let expected = ours.encode(&document)?;
        tokens += expected.len();
        let ids = theirs.encode_fast(&*document, false);
        if ids.map_err(|error| error.to_string())?.get_ids() != expected {
            return Err("over characters, read by tokenizers: other ids".into());
        }
        if pipeline.encode(&document)? != expected {
            return Err("over characters, read by us: other ids".into());
        }
    }
    let merges = training.merges().len();
    Ok(format!(
        "over characters {merges} merges, {tokens} ids as in tokenizers"
    ))
}

fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (document, after) = rest.split_at(rest.floor_char_boundary(DOCUMENT_BYTES));
        documents.push(document);
        rest = after;
    }
    documents
}

fn count(documents: &[&str], pattern: &Pattern, threads: usize) -> Result<WordCounts, Error> {
    let spanner = Spanner::new(vec![pattern.lexer(Engine::Auto)?]);
    let mut counter = Counter::new(spanner, SpecialMatcher::none()).threads(threads);
    counter.add_texts(documents)?;
    Ok(counter.into_counts()?)
}

fn shuffled(counts: &WordCounts) -> Result<WordCounts, Error> {
    let mut words: Vec<_> = counts.iter().collect();
    let mut random = Random::new(3);
    for index in (1..words.len()).rev() {
        words.swap(index, random.below(index + 1));
    }
    let mut shuffled = WordCounts::new();
    for (word, count) in words {
        shuffled.add(word, count)?;
    }
    Ok(shuffled)
}

fn merges(training: &bpe_train::Training) -> Vec<Merge> {
    let merges = training.merges();
    merges
        .map(|merge| (merge.left.to_vec(), merge.right.to_vec()))
        .collect()
}

/// The merges that `tokenizers` learns.
fn by_tokenizers(documents: &[&str], pattern: &Pattern, size: usize) -> Result<Vec<Merge>, Error> {
    let mut tokenizer = tokenizers::Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(pre_tokenizer(pattern)?));
    let mut trainer = TrainerWrapper::from(trainer(size));
    tokenizer
        .train(&mut trainer, documents.iter().copied())
        .map_err(|error| error.to_string())?;
    let file = tokenizer
        .to_string(false)
        .map_err(|error| error.to_string())?;
    let file: serde_json::Value = serde_json::from_str(&file)?;
    merges_of(&file["model"])
}

fn trainer(size: usize) -> BpeTrainer {
    BpeTrainer::builder()
        .vocab_size(size)
        .min_frequency(0)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .show_progress(false)
        .build()
}

/// Splits at the pattern, then spells bytes.
fn pre_tokenizer(pattern: &Pattern) -> Result<Sequence, Error> {
    let regex = SplitPattern::Regex(pattern.as_str().to_owned());
    let split = Split::new(regex, SplitDelimiterBehavior::Isolated, false);
    let split = split.map_err(|error| error.to_string())?;
    let bytes = ByteLevel::new(false, true, false);
    Ok(Sequence::new(vec![split.into(), bytes.into()]))
}

/// The merges of a model in a `tokenizer.json`.
fn merges_of(model: &serde_json::Value) -> Result<Vec<Merge>, Error> {
    let mut all = Vec::new();
    for merge in model["merges"].as_array().ok_or("no merges")? {
        let sides = match merge {
            serde_json::Value::String(text) => text.split_once(' '),
            _ => merge[0].as_str().zip(merge[1].as_str()),
        };
        let (left, right) = sides.ok_or("no merge")?;
        let decode = |side: &str| {
            bpe_core::byte_level::decode(side).map_err(|other| format!("no byte: {other}"))
        };
        all.push((decode(left)?, decode(right)?));
    }
    Ok(all)
}

/// Small corpora with many ties and runs: words over two or three letters, each with a count.
fn random_corpora(corpora: usize) -> Result<String, Error> {
    let mut random = Random::new(7);
    let mut learned = 0;
    for _ in 0..corpora {
        let letters = 1 + random.below(3);
        let mut counts = WordCounts::new();
        let mut words = Vec::new();
        for _ in 0..=random.below(8) {
            let length = 1 + random.below(12);
            let word: String = (0..length)
                .map(|_| random.pick(&['a', 'b', 'c'][..letters]))
                .collect();
            let count = 1 + random.below(4);
            counts.add(word.as_bytes(), count as u64)?;
            words.extend(std::iter::repeat_n(word, count));
        }
        let size = 256 + random.below(12);
        let options = TrainOptions::new(size).ties(Ties::HuggingFace);
        let ours = merges(&train(&counts, &options)?);
        let mut trainer = trainer(size);
        let fed = trainer.feed(words.iter(), |word| Ok(vec![word.to_owned()]));
        fed.map_err(|error| error.to_string())?;
        let mut model = BPE::default();
        trainer
            .train(&mut model)
            .map_err(|error| error.to_string())?;
        let theirs = merges_of(&serde_json::to_value(&model)?)?;
        if ours != theirs {
            return Err(format!("{words:?}: {ours:?} instead of {theirs:?}").into());
        }
        learned += ours.len();
    }
    Ok(format!("{corpora} corpora, {learned} merges"))
}

/// Writes the three formats, and encodes the documents by who reads them.
fn round_trip(dictionary: &Dictionary, pattern: &Pattern, documents: &[&str]) -> Result<(), Error> {
    let special = ("<|end|>", dictionary.vocabulary().len() as u32);
    let ours = TokenizerBuilder::new(dictionary)
        .pattern(pattern.clone())
        .special_tokens([special])
        .specials(Specials::AllowAll)
        .build()?;
    let text = |error: tokenizers::Error| error.to_string();

    let json = ours.to_tokenizer_json()?;
    let from_json = tokenizers::Tokenizer::from_bytes(json.as_bytes()).map_err(text)?;
    let back = Tokenizer::from_tokenizer_json(json.as_bytes(), &Default::default())?;
    let back = back.with_specials(Specials::AllowAll)?;

    let ranks = tiktoken::write(dictionary.vocabulary());
    let mut encoder = HashMap::default();
    for (id, bytes) in tiktoken::read(ranks.as_bytes(), &Default::default())?.iter() {
        encoder.insert(bytes.to_vec(), id);
    }
    let specials = [(special.0.to_owned(), special.1)].into_iter().collect();
    let from_ranks = CoreBPE::new(encoder, specials, pattern.as_str())?;

    let folder = std::env::temp_dir().join(format!("bytepair-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let files = ["vocab.json", "merges.txt"].map(|name| folder.join(name));
    std::fs::write(&files[0], gpt2::write_vocab(dictionary))?;
    std::fs::write(&files[1], gpt2::write_merges(dictionary))?;
    let names = files.clone().map(|path| path.display().to_string());
    let model = BPE::from_file(&names[0], &names[1]).build().map_err(text)?;
    std::fs::remove_dir_all(&folder)?;
    let mut from_files = tokenizers::Tokenizer::new(model);
    from_files.with_pre_tokenizer(Some(pre_tokenizer(pattern)?));

    // Whole documents are long for tiktoken and tokenizers; a few of them say enough.
    for document in documents.iter().take(4) {
        let with_special = format!(
            "{document}<|end|>{}",
            &document[..document.floor_char_boundary(99)]
        );
        let expected = ours.encode(&with_special)?;
        if back.encode(&with_special)? != expected {
            return Err("tokenizer.json, read by us: other ids".into());
        }
        let ids = from_json.encode_fast(&*with_special, false).map_err(text)?;
        if ids.get_ids() != expected {
            return Err("tokenizer.json, read by tokenizers: other ids".into());
        }
        let ids = from_ranks.encode(&with_special, &from_ranks.special_tokens());
        if ids.map_err(|error| error.to_string())?.0 != expected {
            return Err(".tiktoken, read by tiktoken-rs: other ids".into());
        }
        let ids = from_files.encode_fast(*document, false).map_err(text)?;
        if ids.get_ids() != ours.encode(document)? {
            return Err("vocab.json and merges.txt, read by tokenizers: other ids".into());
        }
    }
    Ok(())
}
