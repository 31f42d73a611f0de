//! The worst inputs: what breaks other tokenizers is slow here at worst.

use std::path::PathBuf;
use std::time::Instant;

use bpe_core::{Dictionary, Vocabulary};
use bytepair::{TokenId, Tokenizer, TokenizerBuilder};
use serde_json::json;

use super::{Error, corpora, write_json};

const VOCABULARIES: [&str; 4] = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"];
const LEN: usize = 1 << 20;
/// More than this for a text of 1 MB is a failure.
const LIMIT_SECONDS: f64 = 2.0;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Prints seconds and MB/s for each input and vocabulary: the first encoding by a fresh tokenizer,
/// and the second. False if one takes longer than the limit.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let mut results = Vec::new();
    let mut slowest: f64 = 0.0;
    println!(
        "{:14}{:26}{:>10}{:>10}{:>10}{:>12}",
        "", "", "first s", "second s", "MB/s", "tokens"
    );
    for vocabulary in VOCABULARIES {
        let tokenizer = Tokenizer::from_name(vocabulary)?;
        for (input, text) in inputs()? {
            // A fresh pool of engines: what was learned from another text does not help.
            let tokenizer = tokenizer.to_builder().build()?;
            let first = Instant::now();
            let ids = tokenizer.encode(&text)?;
            let first = first.elapsed().as_secs_f64();
            let second = Instant::now();
            let again = tokenizer.encode(&text)?;
            let second = second.elapsed().as_secs_f64();
            if ids != again || tokenizer.decode(&ids)? != text {
                return Err(format!("{vocabulary}, {input}: does not come back").into());
            }
            slowest = slowest.max(first).max(second);
            let speed = text.len() as f64 / second / 1e6;
            let tokens = ids.len();
            println!("{vocabulary:14}{input:26}{first:10.3}{second:10.3}{speed:10.1}{tokens:12}");
            results.push(json!({
                "vocabulary": vocabulary,
                "input": input,
                "bytes": text.len(),
                "tokens": tokens,
                "first_seconds": first,
                "second_seconds": second,
            }));
        }
    }
    let good = slowest <= LIMIT_SECONDS;
    let verdict = if good { "ok" } else { "FAIL" };
    println!("{verdict}: the slowest took {slowest:.3} s; the limit is {LIMIT_SECONDS} s");
    write_json(arguments.json.as_deref(), &results.into())?;
    Ok(good)
}

/// Texts of 1 MB or a little more.
pub(super) fn inputs() -> Result<Vec<(&'static str, String)>, Error> {
    let mut random = Random(1);
    let mut from = |alphabet: &str| {
        let characters: Vec<char> = alphabet.chars().collect();
        let text: String = (0..LEN)
            .map(|_| characters[random.below(characters.len())])
            .collect();
        text
    };
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let digits = "0123456789";
    let base64 = format!("{letters}{}{digits}+/", letters.to_uppercase());
    let words = from(letters);
    let words: Vec<&str> = (0..LEN / 15)
        .map(|word| &words[word * 15..][..15])
        .collect();
    Ok(vec![
        ("a, repeated", "a".repeat(LEN)),
        ("blanks", " ".repeat(LEN)),
        ("blanks, then a letter", " ".repeat(LEN) + "a"),
        ("newlines", "\n".repeat(LEN)),
        ("blanks and newlines", " \n".repeat(LEN / 2)),
        ("base64, one line", from(&base64)),
        ("random letters, one word", from(letters)),
        ("random words of 15 letters", words.join(" ")),
        ("digits", from(digits)),
        ("punctuation", "!".repeat(LEN)),
        ("Chinese without blanks", chinese()?),
    ])
}

/// The family of 000 App. J.2, for merges alone: tokens B1 to BK of two rising letters; the text is B1 to
/// BK and BK to B1, repeated. The pair in the middle merges first, and then all that grows from it to
/// either side, so that a look from the left sees no token for certain before it is there.
pub(super) fn pathological() -> Result<(Tokenizer, String), Error> {
    const DEPTH: usize = 4096;
    const REPETITIONS: usize = 64;
    // ASCII, so that the text is one.
    let pairs = (0..128_u32).flat_map(|low| (low + 1..128).map(move |high| (low, high)));
    let base: Vec<(TokenId, TokenId)> = pairs.take(DEPTH).collect();
    let mut texts: Vec<Vec<u8>> = (0..128).map(|byte| vec![byte]).collect();
    let mut merges = Vec::new();
    let mut merge = |left: TokenId, right: TokenId| {
        let both = [left, right].map(|side| texts[side as usize].clone());
        texts.push(both.concat());
        merges.push((left, right));
        texts.len() as TokenId - 1
    };
    let base: Vec<TokenId> = base
        .into_iter()
        .map(|(low, high)| merge(low, high))
        .collect();
    let last = base[DEPTH - 1];
    merge(last, last);
    let (mut left, mut right) = (last, last);
    for &token in base[..DEPTH - 1].iter().rev() {
        left = merge(token, left);
        right = merge(right, token);
    }
    let there_and_back = base.iter().chain(base.iter().rev());
    let text: Vec<u8> = there_and_back
        .flat_map(|&id| texts[id as usize].clone())
        .collect();
    let vocabulary = Vocabulary::new((0..).zip(texts))?;
    let dictionary = Dictionary::from_merges(vocabulary, merges)?;
    let tokenizer = TokenizerBuilder::new(&dictionary).build()?;
    Ok((tokenizer, String::from_utf8(text)?.repeat(REPETITIONS)))
}

/// The Han characters of the Chinese corpus and nothing else, repeated to 1 MB.
fn chinese() -> Result<String, Error> {
    let corpora = corpora::all()?;
    let corpus = corpora.into_iter().find(|(name, _)| name == "chinese");
    let (_, text) = corpus.ok_or("bench-data lacks chinese.txt")?;
    let han = text
        .chars()
        .filter(|c| ('\u{4E00}'..='\u{9FFF}').contains(c));
    let han: String = han.collect();
    if han.is_empty() {
        return Err("chinese.txt holds no Han character".into());
    }
    Ok(han.repeat(LEN.div_ceil(han.len())))
}

/// The linear congruential generator of `bench-data/cases`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
