//! What several checks share: random numbers, corpora, threads, spans.

use std::ops::{ControlFlow, Range};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
use bytepair::{TokenId, Tokenizer};

use super::Settings;
use crate::data;
pub(super) use crate::stopwatch::Stopwatch;

/// The numbers of bench-data/cases/README.md, from a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Self(seed);
        random.next();
        random
    }

    /// 31 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = lcg(self.0);
        self.0 >> 33
    }

    /// A number below `limit`, 0 if that is 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(super) fn pick<'t, T: ?Sized>(&mut self, items: &[&'t T]) -> &'t T {
        items[self.below(items.len())]
    }

    /// Up to `longest - 1` of the items, one after the other.
    pub(super) fn text(&mut self, items: &[&str], longest: usize) -> String {
        let count = self.below(longest);
        (0..count).map(|_| self.pick(items)).collect()
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

pub(super) fn lcg(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// A text to check on.
pub(super) struct Corpus {
    pub(super) name: String,
    pub(super) text: String,
}

/// The corpora of the tree, and those of the data folder: all of them, or what a quick run takes.
pub(super) fn corpora(settings: &Settings) -> Result<Vec<Corpus>, String> {
    const SAMPLE: usize = 300_000;
    let mut folders = vec![(data::workspace().join("bench-data/corpora"), ".txt")];
    if let Some(data) = &settings.data {
        folders.push((data.join("corpora"), ".txt.gz"));
    }
    let mut corpora = Vec::new();
    for (folder, ending) in folders {
        for path in data::files(&folder, ending)? {
            let text = String::from_utf8(data::read(&path)?);
            let mut text = text.map_err(|error| format!("{}: {error}", path.display()))?;
            if !settings.full {
                text.truncate(text.floor_char_boundary(SAMPLE));
            }
            let name = path.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            corpora.push(Corpus { name, text });
        }
    }
    Ok(corpora)
}

/// The embedded encodings.
pub(super) fn encodings() -> Result<Vec<Tokenizer>, String> {
    let names = bytepair::ENCODINGS.iter();
    names
        .map(|name| Tokenizer::from_name(name).map_err(text_of))
        .collect()
}

/// The embedded encodings whose vocabularies differ.
pub(super) fn vocabularies() -> Result<Vec<Tokenizer>, String> {
    let names = crate::embed::NAMES.iter();
    names
        .map(|name| Tokenizer::from_name(name).map_err(text_of))
        .collect()
}

pub(super) fn name_of(tokenizer: &Tokenizer) -> &str {
    tokenizer.name().unwrap_or("without a name")
}

pub(super) fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Runs `check` for each number below `count` on two threads, and adds up what they return, or
/// returns the first failure.
pub(super) fn parallel(
    count: usize,
    check: impl Fn(usize) -> Result<u64, String> + Sync,
) -> Result<u64, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let work = || {
        let mut cases = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return cases;
            }
            match catch(|| check(number)).and_then(|result| result) {
                Ok(more) => cases += more,
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                    return cases;
                }
            }
        }
    };
    let cases = std::thread::scope(|scope| {
        let started: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = started.into_iter().map(|thread| thread.join().unwrap_or(0));
        own + others.sum::<u64>()
    });
    match failure.into_inner() {
        Ok(None) => Ok(cases),
        Ok(Some(error)) => Err(error),
        Err(_) => Err("a thread panicked".to_owned()),
    }
}

/// What `run` returns, or the text of its panic.
pub(super) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.unwrap_or("without a message"))
    })
}

/// Runs `run` on a thread with a small stack.
pub(super) fn on_small_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(256 * 1024);
        let thread = builder.spawn_scoped(scope, run).map_err(text_of)?;
        thread.join().map_err(|_| "panic".to_owned())
    })
}

/// A spanner for one pattern.
pub(super) fn spanner(pattern: &Pattern, engine: Engine) -> Result<Spanner, String> {
    Ok(Spanner::new(vec![pattern.lexer(engine).map_err(text_of)?]))
}

/// The one pattern of an embedded encoding.
pub(super) fn pattern_of(tokenizer: &Tokenizer) -> Result<&Pattern, String> {
    let pattern = tokenizer.patterns().first();
    pattern.ok_or_else(|| format!("{} has no pattern", name_of(tokenizer)))
}

/// Where the spans of a text stand.
pub(super) fn spans(spanner: &mut Spanner, text: &[u8]) -> Result<Vec<Range<usize>>, String> {
    let mut spans = Vec::new();
    let flow: ControlFlow<()> = spanner
        .for_each_span(text, &SpecialMatcher::none(), |span| {
            spans.push(span.range());
            ControlFlow::Continue(())
        })
        .map_err(text_of)?;
    debug_assert!(flow.is_continue());
    Ok(spans)
}

/// Says where two lists differ.
pub(super) fn difference<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T]) -> String {
    let place = found
        .iter()
        .zip(expected)
        .take_while(|(a, b)| a == b)
        .count();
    format!(
        "at {place} of {} there is {:?}, expected of {} {:?}",
        found.len(),
        found.get(place),
        expected.len(),
        expected.get(place)
    )
}

/// Fails with `message` unless two lists of ids are equal.
pub(super) fn equal_ids(
    found: &[TokenId],
    expected: &[TokenId],
    message: impl FnOnce() -> String,
) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{}: {}", message(), difference(found, expected))),
    }
}

/// Fails with `message` unless `condition` holds.
pub(super) fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    match condition {
        true => Ok(()),
        false => Err(message()),
    }
}

/// At most the first 200 characters of a text, quoted.
pub(super) fn quoted(text: &str) -> String {
    let cut = text
        .char_indices()
        .nth(200)
        .map_or(text.len(), |(at, _)| at);
    let more = if cut < text.len() { "..." } else { "" };
    format!("{:?}{more}", &text[..cut])
}

/// A number with commas.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The folder of the shared cases.
pub(super) fn cases_folder() -> std::path::PathBuf {
    data::workspace().join("bench-data/cases")
}

/// A file under the folder of the shared cases.
pub(super) fn case_file(name: impl AsRef<Path>) -> Result<Vec<u8>, String> {
    data::read(&cases_folder().join(name))
}
