//! Memory: bounded by a multiple of the input, and level over time.

use bytepair::Tokenizer;

use super::support::{Random, ensure, text_of};
use super::{Checked, Claims, Outcome, Settings};

pub(super) fn check(claims: &mut Claims) {
    let level = "resident memory levels off over distinct words (P07)";
    let multiple = "one piece of 8 MiB takes at most 48 bytes of memory a byte (P09)";
    if resident("VmRSS").is_none() {
        claims.skip(level, "no /proc/self/status");
        claims.skip(multiple, "no /proc/self/status");
        return;
    }
    claims.check_alone(level, levels_off);
    claims.check_alone(multiple, one_piece);
}

/// A value of /proc/self/status in bytes.
pub(super) fn resident(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn word(random: &mut Random, length: usize) -> String {
    (0..length)
        .map(|_| char::from(b'a' + random.below(26) as u8))
        .collect()
}

fn levels_off(settings: &Settings) -> Outcome {
    let (short, long) = settings.choose((100_000, 100), (1_000_000, 1_000));
    let tokenizer = Tokenizer::o200k_base();
    tokenizer.clear_scratch();
    let mut random = Random::new(7);
    let mut ids = Vec::new();
    let mut notes = Vec::new();
    for (count, length) in [(short, 100), (long, 100_000)] {
        let mut halves = Vec::new();
        for _ in 0..2 {
            for _ in 0..count / 2 {
                ids.clear();
                tokenizer
                    .encode_into(word(&mut random, length), &mut ids)
                    .map_err(text_of)?;
            }
            halves.push(resident("VmRSS").ok_or("no VmRSS")?);
        }
        let growth = halves[1] as f64 / halves[0] as f64;
        notes.push(format!(
            "{count} words of {length} letters {:.0} to {:.0} MB",
            halves[0] as f64 / 1e6,
            halves[1] as f64 / 1e6
        ));
        ensure(growth <= 1.2, || {
            format!(
                "{growth:.2} times after the second half: {}",
                notes.join(", ")
            )
        })?;
    }
    Ok(Checked::with_note(short + long, notes.join(", ")))
}

fn one_piece(settings: &Settings) -> Outcome {
    const BYTES: usize = 8 << 20;
    const MOST: f64 = 48.0;
    let mut texts = vec![("one letter", "a".repeat(BYTES))];
    if settings.full {
        texts.insert(0, ("random letters", word(&mut Random::new(9), BYTES)));
    }
    let names = settings.choose(&["o200k_base"][..], &crate::embed::NAMES);
    let mut notes = Vec::new();
    for name in names {
        let tokenizer = Tokenizer::from_name(name).map_err(text_of)?;
        tokenizer.encode("warm").map_err(text_of)?;
        for (kind, text) in &texts {
            // The growth of the scratch memory is measured too, so none is there before.
            tokenizer.clear_scratch();
            let (ids, bytes) = growth_during(|| tokenizer.encode(text))?;
            let tokens = ids.map_err(text_of)?.len();
            let multiple = bytes as f64 / BYTES as f64;
            ensure(tokens > 0 && multiple <= MOST, || {
                format!("{name}, {kind}: {multiple:.1} bytes a byte")
            })?;
            notes.push(format!("{name}, {kind}: {multiple:.1} bytes a byte"));
        }
        tokenizer.clear_scratch();
    }
    Ok(Checked::with_note(notes.len() as u64, notes.join("; ")))
}

/// What `run` returns, and by how many bytes resident memory was larger at most while it ran, as
/// seen every millisecond.
pub(crate) fn growth_during<T: Send>(run: impl FnOnce() -> T + Send) -> Result<(T, usize), String> {
    let before = resident("VmRSS").ok_or("no VmRSS")?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(run);
        let mut most = before;
        while !thread.is_finished() {
            most = most.max(resident("VmRSS").unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        most = most.max(resident("VmRSS").unwrap_or(0));
        let result = thread.join().map_err(|_| "panic".to_owned())?;
        Ok((result, most - before))
    })
}
