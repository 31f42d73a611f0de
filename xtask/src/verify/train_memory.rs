//! Training in bounded memory.

use std::io::{self, Write};
use std::process::Command;

use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::Counter;
use serde_json::Value;

use super::memory::{growth_during, resident};
use super::support::{ensure, text_of};
use super::{Checked, Claims, Outcome, Settings};

/// Beside the counts: a block of text, the order of the words that go to disk, buffers of its files.
const BESIDE: usize = 32 << 20;

pub(super) fn check(claims: &mut Claims) {
    let limit = "word counts of three times the limit of memory (256 MB with --full) are all there";
    let stream = "the same text once and 20 times over takes the same memory to train on (P08)";
    if resident("VmRSS").is_none() {
        claims.skip(limit, "no /proc/self/status");
        claims.skip(stream, "no /proc/self/status");
        return;
    }
    claims.check_alone(limit, counts_beyond_the_limit);
    claims.check_alone(stream, once_and_twenty_times);
}

/// Numbers of ten digits, each twice, the second time in another order, on two threads.
fn counts_beyond_the_limit(settings: &Settings) -> Outcome {
    // A word takes its 11 bytes, and some 30 more.
    let limit: usize = settings.choose(8_000_000, 256_000_000);
    let words = (limit * 3 / 40) as u64;
    // A prime that does not divide the number of words, so that each number comes up once.
    let step = 7_919;
    ensure(!words.is_multiple_of(step), || "another prime".to_owned())?;
    let lexer = Pattern::gpt2().lexer(Engine::Auto).map_err(text_of)?;
    let counter = Counter::new(Spanner::new(vec![lexer]), SpecialMatcher::none());
    let mut counter = counter
        .threads(2)
        .memory_limit(limit, &std::env::temp_dir());
    let texts = |step: u64| {
        (0..words.div_ceil(50_000)).map(move |block| {
            let numbers = block * 50_000..words.min((block + 1) * 50_000);
            let numbers = numbers.map(|number| format!(" {:010}", number * step % words));
            numbers.collect::<String>()
        })
    };
    let (found, growth) = growth_during(|| {
        for step in [1, step] {
            counter.add_texts(texts(step)).map_err(text_of)?;
            let held = counter.memory_bytes();
            ensure(held <= limit, || format!("{held} bytes of {limit}"))?;
        }
        let mut found = Digest::default();
        counter.write_to(&mut found).map_err(text_of)?;
        Ok::<_, String>(found)
    })?;
    let mut expected = Digest::default();
    let written = (|| {
        expected.write_all(b"bpwc\x01")?;
        for number in 0..words {
            write!(expected, "\x0B {number:010}\x02")?;
        }
        expected.write_all(b"\0")?;
        let mut rest = words;
        while rest >= 0x80 {
            expected.write_all(&[rest as u8 | 0x80])?;
            rest >>= 7;
        }
        expected.write_all(&[rest as u8])
    })();
    written.map_err(|error: io::Error| error.to_string())?;
    ensure(found? == expected, || "other counts".to_owned())?;
    ensure(counter.spills() > 2, || {
        format!("{} times to disk", counter.spills())
    })?;
    ensure(growth <= limit + BESIDE, || {
        format!("{growth} bytes at a limit of {limit}")
    })?;
    let note = format!(
        "limit {} MB, {} times to disk, {:.0} MB of memory",
        limit / 1_000_000,
        counter.spills(),
        growth as f64 / 1e6
    );
    Ok(Checked::with_note(words, note))
}

/// What was written: its length, and a number that other bytes would change.
#[derive(PartialEq, Eq)]
struct Digest(u64, u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0, 0xCBF2_9CE4_8422_2325)
    }
}

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.1 = (self.1 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Each in a process of its own, by the child of `bench train`.
fn once_and_twenty_times(settings: &Settings) -> Outcome {
    let bytes = settings.choose(1_000_000, 10_000_000);
    let corpus = crate::data::workspace().join("bench-data/corpora/english.txt");
    let text = crate::data::read(&corpus)?;
    let text: Vec<u8> = text.iter().copied().cycle().take(bytes).collect();
    let file = std::env::temp_dir().join(format!("bytepair-p08-{}", std::process::id()));
    std::fs::write(&file, text).map_err(text_of)?;
    let peak = |repeats: &str| {
        let program = std::env::current_exe().map_err(text_of)?;
        let mut command = Command::new(program);
        command.args(["bench", "train", "--growth-child", "same"]);
        let output = command.arg(&file).arg(repeats).output().map_err(text_of)?;
        ensure(output.status.success(), || {
            String::from_utf8_lossy(&output.stderr).into_owned()
        })?;
        let result: Value = serde_json::from_slice(&output.stdout).map_err(text_of)?;
        let peak = result["peak_bytes"].as_f64();
        peak.ok_or_else(|| "no peak".to_owned())
    };
    let peaks = [peak("1"), peak("20")];
    std::fs::remove_file(&file).map_err(text_of)?;
    let [once, often] = peaks;
    let (once, often) = (once?, often?);
    let note = format!("{:.1} and {:.1} MB", once / 1e6, often / 1e6);
    ensure((0.8..=1.2).contains(&(often / once)), || note.clone())?;
    Ok(Checked::with_note(21 * bytes as u64, note))
}
