//! The automata of the patterns: equal to the engines on every short text and on the corpora, and what
//! is derived from them.

use std::sync::Mutex;

use bpe_lexers::{
    Analysis, Cuts, Engine, Family, Pattern, Spanner, automata_difference, difference,
};

use super::support::{Corpus, difference as place, ensure, grouped, parallel, spans, text_of};
use super::{Checked, Claims};

/// The sequences of patterns, by the models that have them.
fn sequences() -> Vec<(&'static str, Vec<Pattern>)> {
    let names = [
        "gpt2",
        "cl100k",
        "o200k",
        "qwen3",
        "tekken",
        "digit_groups",
        "single_digits",
    ];
    let one = names
        .into_iter()
        .filter_map(|name| Some((name, vec![Pattern::by_name(name)?])));
    let mut sequences: Vec<_> = one.collect();
    let tiktoken = Pattern::of_family(Family::Cl100kOfTiktoken);
    sequences.push(("cl100k of tiktoken", vec![tiktoken]));
    sequences.push(("deepseek_v3", Pattern::deepseek_v3().into()));
    sequences
}

/// What the transcriptions find.
fn oracle(patterns: &[Pattern]) -> Result<Spanner, String> {
    let lexers = patterns
        .iter()
        .map(|pattern| pattern.lexer(Engine::Transcription));
    Ok(Spanner::new(
        lexers.collect::<Result<_, _>>().map_err(text_of)?,
    ))
}

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "the automata of nine pattern sequences cut every text of a character of each cell as the transcriptions do",
        |settings, _| {
            let sequences = sequences();
            let mut jobs = Vec::new();
            for (number, (_, patterns)) in sequences.iter().enumerate() {
                let analysis = Analysis::new(patterns).map_err(text_of)?;
                for first in analysis.representatives() {
                    jobs.push((number, first));
                }
            }
            let more = settings.choose(2, 4);
            let cases = parallel(jobs.len(), |job| {
                let (number, first) = jobs[job];
                let (name, patterns) = &sequences[number];
                let analysis = Analysis::new(patterns).map_err(text_of)?;
                let mut tuples = Tuples {
                    name,
                    cuts: Cuts::of(&analysis),
                    cells: analysis.representatives(),
                    oracle: oracle(patterns)?,
                    analysis,
                };
                tuples.check_all_after(&mut first.to_string(), more)
            })?;
            Ok(Checked::with_note(cases, "with every derived cut in them"))
        },
    );
    claims.check(
        "spellings with one meaning are proved equal for texts of all lengths, others told apart",
        |_, _| {
            let mut cases = 0;
            for family in Family::ALL {
                for other in Family::ALL {
                    let (one, two) = (Pattern::of_family(family), Pattern::of_family(other));
                    let found = difference(&[one], &[two]).map_err(text_of)?;
                    ensure(found.is_none() == (family == other), || {
                        format!("{family:?} and {other:?}: {found:?}")
                    })?;
                    cases += 1;
                }
            }
            let gpt2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
            let found = difference(&[Pattern::gpt2()], &[Pattern::new(gpt2)]).map_err(text_of)?;
            ensure(found.is_none(), || format!("tiktoken's gpt2: {found:?}"))?;
            Ok(Checked::with_note(
                cases + 1,
                "tiktoken's own spelling of gpt2 is equal, that of cl100k differs where a text ends in a newline and blanks",
            ))
        },
    );
    claims.check(
        "regex-automata is proved equal to the meaning of its pattern for texts of all lengths",
        |_, _| {
            let patterns = ["gpt2", "cl100k", "o200k", "qwen3", "tekken"];
            let cases = parallel(patterns.len(), |job| {
                let pattern = Pattern::by_name(patterns[job]).ok_or("no such pattern")?;
                let found = automata_difference(&pattern).map_err(text_of)?;
                ensure(found.is_none(), || format!("{}: {found:?}", patterns[job]))?;
                Ok(1)
            })?;
            Ok(Checked::with_note(
                cases,
                "patterns, each over every code point",
            ))
        },
    );
    claims.check(
        "boundaries stay undecided without limit only for blanks after a newline, and capitals after Lm, Lo or M",
        |_, _| {
            let mut notes = Vec::new();
            for (name, patterns) in sequences() {
                let analysis = Analysis::new(&patterns).map_err(text_of)?;
                let found = analysis.undecided();
                let expected = match name {
                    "gpt2" | "digit_groups" | "single_digits" => 0,
                    "o200k" | "tekken" => 2,
                    _ => 1,
                };
                ensure(found.len() == expected, || format!("{name}: {found:?}"))?;
                ensure(found.iter().all(|found| found.is_bounded), || {
                    format!("{name} is not bounded")
                })?;
                let (_, most) = analysis.open_readings();
                notes.push(format!(
                    "{name} {expected} (at most {most} readings, {} characters ahead)",
                    analysis.look_ahead()
                ));
            }
            let note = notes.join(", ");
            Ok(Checked::with_note(notes.len() as u64, note))
        },
    );
    claims.check(
        "a corpus cut at every derived cut has the same spans, and cuts are close together in Chinese",
        |settings, corpora| {
            let sequences = sequences();
            let measured = Mutex::new(Vec::new());
            let cases = parallel(sequences.len() * corpora.len(), |job| {
                let (name, patterns) = &sequences[job % sequences.len()];
                let corpus = &corpora[job / sequences.len()];
                let gaps = gaps(name, patterns, corpus)?;
                if !name.ends_with("digits") && *name != "digit_groups" {
                    let mean = corpus.text.len() as f64 / (gaps.cuts + 1) as f64;
                    let largest = grouped(gaps.largest as u64);
                    let note = format!("{} {name}: mean {mean:.1}, largest {largest}", corpus.name);
                    // A quick run takes the beginning of a large corpus; the bound is about the whole.
                    let is_whole = settings.full || !corpus.name.ends_with(".gz");
                    let is_bound = is_whole && corpus.name.contains("chinese");
                    ensure(
                        !is_bound || (mean <= 20.0 && gaps.largest <= 200),
                        || format!("{note}, where 20 and 200 are the most"),
                    )?;
                    let mut measured = measured.lock().map_err(text_of)?;
                    measured.push(note);
                }
                Ok(gaps.cuts)
            })?;
            let mut notes = measured.into_inner().map_err(text_of)?;
            notes.sort();
            Ok(Checked::with_note(
                cases,
                format!("bytes between cuts: {}", notes.join("; ")),
            ))
        },
    );
}

struct Gaps {
    cuts: u64,
    largest: usize,
}

/// Cuts a corpus at every derived cut, and lexes each part alone.
fn gaps(name: &str, patterns: &[Pattern], corpus: &Corpus) -> Result<Gaps, String> {
    let cuts = Cuts::new(patterns).map_err(text_of)?;
    let mut oracle = oracle(patterns)?;
    let text = corpus.text.as_bytes();
    let whole = spans(&mut oracle, text)?;
    let mut joined = Vec::with_capacity(whole.len());
    let mut found = Gaps {
        cuts: 0,
        largest: 0,
    };
    let mut start = 0;
    while start < text.len() {
        let end = cuts.next_cut(text, start + 1);
        found.cuts += u64::from(end.is_some());
        let end = end.unwrap_or(text.len());
        found.largest = found.largest.max(end - start);
        let part = spans(&mut oracle, &text[start..end])?;
        joined.extend(
            part.iter()
                .map(|range| range.start + start..range.end + start),
        );
        start = end;
    }
    ensure(joined == whole, || {
        format!("{name}, {}: {}", corpus.name, place(&joined, &whole))
    })?;
    // Ideographic comma and full stop after a letter or a digit.
    let stops: Vec<char> = vec!['\u{3001}', '\u{3002}'];
    if !name.ends_with("digits") && name != "digit_groups" {
        let pairs = corpus.text.char_indices().zip(corpus.text.chars().skip(1));
        for ((at, before), after) in pairs {
            if before.is_alphanumeric() && before.len_utf8() == 3 && stops.contains(&after) {
                ensure(cuts.is_cut(before, after), || {
                    format!("{name}, {}: no cut behind {before:?} at {at}", corpus.name)
                })?;
            }
        }
    }
    Ok(found)
}

/// All texts over the cells.
struct Tuples<'a> {
    name: &'a str,
    analysis: Analysis,
    cuts: Cuts,
    cells: Vec<char>,
    oracle: Spanner,
}

impl Tuples<'_> {
    fn check_all_after(&mut self, text: &mut String, more: usize) -> Result<u64, String> {
        let mut cases = self.check(text)?;
        if more > 0 {
            for cell in self.cells.clone() {
                text.push(cell);
                cases += self.check_all_after(text, more - 1)?;
                text.pop();
            }
        }
        Ok(cases)
    }

    fn check(&mut self, text: &str) -> Result<u64, String> {
        let expected = spans(&mut self.oracle, text.as_bytes())?;
        let found = self.analysis.spans(text);
        let found: Vec<_> = found.iter().map(|span| span.range()).collect();
        ensure(found == expected, || {
            format!("{} on {text:?}: {}", self.name, place(&found, &expected))
        })?;
        let mut from = 0;
        while let Some(cut) = self.cuts.next_cut(text.as_bytes(), from) {
            let (left, right) = text.split_at(cut);
            let mut joined = spans(&mut self.oracle, left.as_bytes())?;
            let right = spans(&mut self.oracle, right.as_bytes())?;
            joined.extend(right.iter().map(|range| range.start + cut..range.end + cut));
            ensure(joined == expected, || {
                format!("{} on {text:?} cut at {cut}", self.name)
            })?;
            from = cut + 1;
        }
        Ok(1)
    }
}
