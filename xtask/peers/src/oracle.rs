//! Our ids against those of tiktoken-rs: every embedded encoding, on real and on random text.

use std::fmt;

use bytepair::{Specials, Tokenizer};
use clap::builder::PossibleValuesParser;

use crate::corpora::{self, Corpus};
use crate::peer::{self, Mode, Oracle};
use crate::random::Random;
use crate::reduce::reduce;
use crate::{DataFolder, Error};

/// What `--quick` takes of each corpus.
const QUICK_BYTES: usize = 300_000;
const QUICK_RANDOM: usize = 20_000;
const FULL_RANDOM: usize = 200_000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The first 300 KB of each corpus and 20,000 random texts: some seconds.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All of each corpus and 200,000 random texts: some minutes.
    #[arg(long)]
    full: bool,
    /// Encodings to compare, all embedded ones by default.
    #[arg(long, value_delimiter = ',', default_values = bytepair::ENCODINGS,
        value_parser = PossibleValuesParser::new(bytepair::ENCODINGS))]
    encoding: Vec<String>,
    #[command(flatten)]
    data: DataFolder,
}

/// Prints one line a claim, and at last `peers oracle: N claims, M failed, C oracle calls`. False if
/// one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    peer::silence_panics_of_peers();
    let (bytes, random) = match arguments.full {
        true => (usize::MAX, FULL_RANDOM),
        false => (QUICK_BYTES, QUICK_RANDOM),
    };
    let data = arguments.data.data.as_deref();
    if data.is_none() {
        println!("skipped: larger corpora (no --data)");
    }
    let texts = Texts::new(corpora::all(data, bytes)?, random);

    let mut report = Report::default();
    report.claim(self_test(&texts)?);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for encodings in arguments.encoding.chunks(threads) {
        for compared in compare_encodings(encodings, &texts) {
            let compared = compared?;
            compared.skipped.iter().for_each(|line| println!("{line}"));
            compared.claims.into_iter().for_each(|c| report.claim(c));
        }
    }
    println!(
        "peers oracle: {} claims, {} failed, {} oracle calls",
        report.claims, report.failed, report.oracle_calls
    );
    Ok(report.failed == 0)
}

#[derive(Default)]
struct Report {
    claims: usize,
    failed: usize,
    oracle_calls: u64,
}

impl Report {
    fn claim(&mut self, claim: Claim) {
        self.claims += 1;
        self.oracle_calls += claim.tally.oracle_calls;
        self.failed += usize::from(claim.failure.is_some());
        println!("{claim}");
    }
}

/// One line of the report.
struct Claim {
    what: String,
    tally: Tally,
    failure: Option<String>,
}

/// What was compared.
#[derive(Default)]
struct Tally {
    texts: usize,
    bytes: usize,
    tokens: usize,
    oracle_calls: u64,
    refused: usize,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.failure {
            None => "ok  ",
            Some(_) => "FAIL",
        };
        let Tally {
            texts,
            bytes,
            tokens,
            oracle_calls,
            refused,
        } = self.tally;
        write!(
            f,
            "{verdict} {}: {texts} texts, {bytes} bytes, {tokens} tokens, {oracle_calls} oracle calls",
            self.what
        )?;
        if refused > 0 {
            write!(f, ", {refused} refused by the oracle")?;
        }
        match &self.failure {
            Some(failure) => write!(f, "\n     {failure}"),
            None => Ok(()),
        }
    }
}

/// The texts of all comparisons.
struct Texts {
    corpora: Vec<Corpus>,
    random: Vec<String>,
    random_bytes: Vec<Vec<u8>>,
}

impl Texts {
    fn new(corpora: Vec<Corpus>, random: usize) -> Self {
        let mut texts = Random::new(1);
        let mut bytes = Random::new(2);
        Self {
            corpora,
            random: (0..random).map(|_| texts.text()).collect(),
            random_bytes: (0..random).map(|_| bytes.bytes()).collect(),
        }
    }

    fn documents(&self) -> impl Iterator<Item = &str> {
        self.corpora.iter().flat_map(Corpus::documents)
    }
}

/// What was found for one encoding.
struct Compared {
    /// What is not compared, and why.
    skipped: Option<String>,
    claims: Vec<Claim>,
}

/// Compares each of the encodings on a thread of its own, with an oracle of its own.
fn compare_encodings(encodings: &[String], texts: &Texts) -> Vec<Result<Compared, String>> {
    let compare =
        |encoding: &str| compare_encoding(encoding, texts).map_err(|error| error.to_string());
    std::thread::scope(|scope| {
        let start = |encoding| scope.spawn(move || compare(encoding));
        let threads: Vec<_> = encodings.iter().map(String::as_str).map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(compared) => compared,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

fn compare_encoding(encoding: &str, texts: &Texts) -> Result<Compared, Error> {
    let peer = peer::tiktoken_rs(encoding).ok_or("tiktoken-rs lacks an embedded encoding")?;
    let oracle = Oracle::new(peer);
    let ours = Tokenizer::from_name(encoding)?;
    let theirs = oracle.peer().special_tokens();
    let unknown: Vec<_> = ours
        .special_tokens()
        .map(|(text, _)| text)
        .filter(|&text| !theirs.iter().any(|other| other == text))
        .collect();
    let skipped = (!unknown.is_empty()).then(|| {
        format!("skipped: {encoding}: the oracle does not have {unknown:?}, which stay text")
    });
    // Fails where the oracle has a special token that we lack.
    let allowing = ours.with_specials(Specials::allow(&theirs))?;
    let aliases = aliases(&ours, &theirs);

    let mut claims = Vec::new();
    for (mode, tokenizer, name) in [
        (Mode::Ordinary, &ours, "special tokens as text"),
        (Mode::Specials, &allowing, "special tokens allowed"),
    ] {
        let sides = Sides {
            ours: tokenizer,
            oracle: &oracle,
            mode,
            aliases: &aliases,
        };
        // With special tokens allowed, texts that have some: else nothing would be tested.
        let mut random = Random::new(3);
        let mut prepare = |text: &str, every: usize| match mode {
            Mode::Ordinary => text.to_owned(),
            Mode::Specials => with_specials(text, &theirs, every, &mut random),
        };
        let what = |kind: &str| format!("{encoding}, {name}, {kind}");
        let whole = texts.corpora.iter().map(|c| prepare(&c.text, 2000));
        let whole: Vec<String> = whole.collect();
        claims.push(sides.compare(what("corpora whole"), whole));
        let documents = texts.documents().map(|text| prepare(text, 200));
        let documents: Vec<String> = documents.collect();
        claims.push(sides.compare(what("documents"), documents));
        let strings = texts.random.iter().map(|text| prepare(text, 20));
        let strings: Vec<String> = strings.collect();
        claims.push(sides.compare(what("random Unicode"), strings));
    }
    claims.push(round_trips(encoding, &ours, &texts.random_bytes));
    Ok(Compared { skipped, claims })
}

/// The texts of special tokens whose id decodes to another text, with that text: of two texts for
/// one id, tiktoken-rs knows one, and ours decodes to the other.
fn aliases(ours: &Tokenizer, specials: &[String]) -> Vec<(String, String)> {
    let decoded = specials.iter().filter_map(|text| {
        let id = ours.token_id(text.as_bytes())?;
        let bytes = ours.token_bytes(id).unwrap_or_default();
        Some((text, String::from_utf8_lossy(bytes)))
    });
    decoded
        .filter(|(text, decoded)| *text != decoded)
        .map(|(text, decoded)| (text.clone(), decoded.into_owned()))
        .collect()
}

/// What is compared with what.
struct Sides<'t> {
    ours: &'t Tokenizer,
    oracle: &'t Oracle,
    mode: Mode,
    aliases: &'t [(String, String)],
}

enum Check {
    /// With the number of tokens.
    Equal(usize),
    Different,
    Refused,
}

impl Sides<'_> {
    /// Compares the ids of each text, and what both sides decode them to.
    fn compare(&self, what: String, texts: impl IntoIterator<Item = String>) -> Claim {
        let mut tally = Tally::default();
        let calls = self.oracle.calls();
        let mut different = None;
        for text in texts {
            tally.texts += 1;
            tally.bytes += text.len();
            match self.check(&text) {
                Check::Equal(tokens) => tally.tokens += tokens,
                Check::Refused => tally.refused += 1,
                Check::Different => {
                    different = Some(text);
                    break;
                }
            }
        }
        tally.oracle_calls = self.oracle.calls() - calls;
        let failure = match different {
            Some(text) => Some(self.explain(&text)),
            None if tally.oracle_calls != tally.texts as u64 => {
                Some("the oracle was not asked once for each text".to_owned())
            }
            None if tally.refused == tally.texts => Some("nothing was compared".to_owned()),
            None => None,
        };
        Claim {
            what,
            tally,
            failure,
        }
    }

    fn check(&self, text: &str) -> Check {
        let Ok(ids) = self.oracle.encode(text, self.mode) else {
            return Check::Refused;
        };
        let same_ids = self.ours.encode(text).is_ok_and(|ours| ours == ids);
        match same_ids && self.decode_to(&ids, text) {
            true => Check::Equal(ids.len()),
            false => Check::Different,
        }
    }

    /// Whether both sides decode `ids` to `text`, ours with other names for [`aliases`].
    fn decode_to(&self, ids: &[u32], text: &str) -> bool {
        let mut expected = std::borrow::Cow::Borrowed(text);
        if self.mode == Mode::Specials {
            for (alias, name) in self.aliases {
                if expected.contains(alias) {
                    expected = expected.replace(alias, name).into();
                }
            }
        }
        self.oracle.peer().decode(ids).as_deref() == Some(text.as_bytes())
            && self
                .ours
                .decode(ids)
                .is_ok_and(|decoded| decoded == expected)
    }

    /// The smallest text like `text` on which the two sides differ, and what they say.
    fn explain(&self, text: &str) -> String {
        let differs = |text: &str| matches!(self.check(text), Check::Different);
        if !differs(text) {
            return format!("differed once only, {} bytes: {}", text.len(), clip(text));
        }
        let smallest = reduce(text, differs);
        format!(
            "{}: ours {:?}, the oracle {:?}",
            clip(&smallest),
            self.ours.encode(&smallest),
            self.oracle.encode(&smallest, self.mode),
        )
    }
}

fn clip(text: &str) -> String {
    let characters: String = text.chars().take(200).collect();
    match characters.len() == text.len() {
        true => format!("{text:?}"),
        false => format!("{characters:?} and more"),
    }
}

/// `text` with special tokens put in: one at the start now and then, others some `every`
/// characters, alone or two in a row.
fn with_specials(text: &str, specials: &[String], every: usize, random: &mut Random) -> String {
    let mut mixed = String::with_capacity(text.len() * 2);
    let mut until = random.below(every);
    for character in text.chars() {
        if until == 0 {
            for _ in 0..=random.below(2) {
                mixed.push_str(&specials[random.below(specials.len())]);
            }
            until = 1 + random.below(2 * every);
        }
        until -= 1;
        mixed.push(character);
    }
    mixed.push_str(&specials[random.below(specials.len())]);
    mixed
}

/// Bytes that are no text have no oracle: what comes back is what went in.
fn round_trips(encoding: &str, ours: &Tokenizer, texts: &[Vec<u8>]) -> Claim {
    let mut tally = Tally::default();
    let mut failure = None;
    for bytes in texts {
        tally.texts += 1;
        tally.bytes += bytes.len();
        let ids = ours.encode_bytes(bytes).unwrap_or_default();
        tally.tokens += ids.len();
        if ours.decode_bytes(&ids).ok().as_ref() != Some(bytes) {
            failure = Some(format!("{bytes:?} does not come back"));
            break;
        }
    }
    Claim {
        what: format!("{encoding}, random bytes come back"),
        tally,
        failure,
    }
}

/// The comparison sees one wrong id: with an oracle that breaks the last id of one answer, it
/// stops at that text and at no other.
fn self_test(texts: &Texts) -> Result<Claim, Error> {
    let encoding = "cl100k_base";
    let peer = peer::tiktoken_rs(encoding).ok_or("tiktoken-rs lacks cl100k_base")?;
    let ours = Tokenizer::from_name(encoding)?;
    let lie = 41;
    let oracle = Oracle::lying_at(peer, lie);
    let sides = Sides {
        ours: &ours,
        oracle: &oracle,
        mode: Mode::Ordinary,
        aliases: &[],
    };
    let mut claim = sides.compare(
        "the comparison fails where one id is broken on purpose".to_owned(),
        texts.random.iter().take(100).cloned(),
    );
    claim.failure = match claim.failure {
        Some(_) if claim.tally.oracle_calls == lie + 1 => None,
        found => Some(format!("it did not fail at text {lie}: {found:?}")),
    };
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::{Texts, self_test, with_specials};
    use crate::random::Random;

    #[test]
    fn a_broken_id_is_seen_by_the_comparison() {
        let texts = Texts::new(Vec::new(), 100);
        let claim = self_test(&texts).expect("loads");
        assert_eq!(claim.failure, None);
    }

    #[test]
    fn special_tokens_are_put_in_and_the_rest_stays() {
        let specials = ["<|a|>".to_owned(), "<|b|>".to_owned()];
        let text = "some text of a few words".repeat(20);
        let mixed = with_specials(&text, &specials, 20, &mut Random::new(1));
        assert!(mixed.matches("<|").count() > 5);
        assert_eq!(mixed.replace("<|a|>", "").replace("<|b|>", ""), text);
    }
}
