//! The three engines on short texts of every class, on every code point, and on random text.

use std::ops::Range;

use bpe_lexers::{Engine, Lexer, Pattern};

use super::support::{Random, difference, parallel, text_of};
use super::{Checked, Claims};

const PATTERNS: [&str; 3] = ["gpt2", "cl100k", "o200k"];

/// One or more characters of each class that a pattern can tell apart: white space, letters with
/// and without case (those of the contractions each), marks, numbers, punctuation, and the rest.
const CLASSES: &[&str] = &[
    " ",
    "\t",
    "\r",
    "\n",
    "\u{85}",
    "\u{A0}",
    "\u{3000}",
    "\u{2028}",
    "s",
    "S",
    "\u{17F}",
    "t",
    "T",
    "r",
    "R",
    "e",
    "E",
    "v",
    "V",
    "m",
    "M",
    "l",
    "L",
    "d",
    "D",
    "\u{212A}",
    "a",
    "B",
    "é",
    "\u{1C5}",
    "\u{2B0}",
    "漢",
    "\u{301}",
    "\u{903}",
    "\u{20DD}",
    "1",
    "\u{663}",
    "½",
    "Ⅷ",
    "'",
    "\u{2019}",
    "/",
    "!",
    "，",
    "😀",
    "\u{200D}",
    "\u{378}",
    "\u{E000}",
    "\u{10FFFF}",
];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "the three lexers agree on all texts of up to 3 characters of all classes",
        |_, _| {
            let cases = parallel(PATTERNS.len() * CLASSES.len(), |job| {
                let engines = [Engine::Reference, Engine::Automata];
                let mut engines = Comparison::new(PATTERNS[job % PATTERNS.len()], &engines)?;
                let first = CLASSES[job / PATTERNS.len()];
                engines.check_all_after(first, 2)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
    let claim = "automata and transcription agree on all texts of 4 characters of all classes";
    if claims.settings.full {
        claims.check(claim, |_, _| {
            let cases = parallel(PATTERNS.len() * CLASSES.len(), |job| {
                let pattern = PATTERNS[job % PATTERNS.len()];
                let mut engines = Comparison::new(pattern, &[Engine::Automata])?;
                engines.check_all_after(CLASSES[job / PATTERNS.len()], 3)
            })?;
            Ok(Checked::with_note(cases, ""))
        });
    } else {
        claims.skip(claim, "takes long (--full)");
    }
    claims.check(
        "automata and transcription agree on every code point, alone and beside others",
        |_, _| {
            const BLOCK: u32 = 0x4000;
            let blocks = 0x11_0000 / BLOCK;
            let cases = parallel(PATTERNS.len() * blocks as usize, |job| {
                let pattern = PATTERNS[job % PATTERNS.len()];
                let start = (job / PATTERNS.len()) as u32 * BLOCK;
                let mut engines = Comparison::new(pattern, &[Engine::Automata])?;
                let mut cases = 0;
                for character in (start..start + BLOCK).filter_map(char::from_u32) {
                    let neighbours = [
                        ("", ""),
                        ("a", "b"),
                        (" ", ""),
                        ("", "\n"),
                        ("'", ""),
                        ("1", ""),
                    ];
                    for (before, after) in neighbours {
                        cases += engines.check(&format!("{before}{character}{after}"))?;
                    }
                }
                Ok(cases)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
    claims.check(
        "the three lexers agree on random Unicode text",
        |settings, _| {
            let jobs = settings.choose(12, 240);
            let cases = parallel(jobs, |job| {
                let engines = [Engine::Reference, Engine::Automata];
                let mut engines = Comparison::new(PATTERNS[job % PATTERNS.len()], &engines)?;
                let mut random = Random::new(job as u64);
                let mut cases = 0;
                for _ in 0..5_000 {
                    cases += engines.check(&random_text(&mut random))?;
                }
                Ok(cases)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
}

/// Classes, any code points, and runs.
fn random_text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(30) {
        match random.below(4) {
            0 => text.extend(char::from_u32(random.below(0x11_0000) as u32)),
            1 => text.push_str(&random.pick(CLASSES).repeat(random.below(6))),
            2 => text
                .push_str(random.pick(&["'s", "'LL", "'ſ", "\r\n", "  ", "//", "HTTPs", "don't"])),
            _ => text.push_str(random.pick(CLASSES)),
        }
    }
    text
}

/// The transcription as the oracle, and engines that are to find the same.
struct Comparison {
    name: &'static str,
    oracle: Box<dyn Lexer>,
    others: Vec<(Engine, Box<dyn Lexer>)>,
    expected: Vec<Range<usize>>,
    found: Vec<Range<usize>>,
}

impl Comparison {
    fn new(name: &'static str, engines: &[Engine]) -> Result<Self, String> {
        let pattern = Pattern::by_name(name).ok_or("no such pattern")?;
        let others = engines
            .iter()
            .map(|&engine| Ok((engine, pattern.lexer(engine).map_err(text_of)?)));
        Ok(Self {
            name,
            oracle: pattern.lexer(Engine::Transcription).map_err(text_of)?,
            others: others.collect::<Result<_, String>>()?,
            expected: Vec::new(),
            found: Vec::new(),
        })
    }

    /// Checks one text with each engine.
    fn check(&mut self, text: &str) -> Result<u64, String> {
        pre_tokens(self.oracle.as_mut(), text, &mut self.expected)?;
        let mut covered = 0;
        for range in &self.expected {
            if range.start != covered {
                return Err(format!(
                    "the transcription of {} leaves a gap in {text:?}",
                    self.name
                ));
            }
            covered = range.end;
        }
        if covered != text.len() {
            return Err(format!(
                "the transcription of {} does not cover {text:?}",
                self.name
            ));
        }
        for (engine, lexer) in &mut self.others {
            pre_tokens(lexer.as_mut(), text, &mut self.found)?;
            if self.found != self.expected {
                let place = difference(&self.found, &self.expected);
                return Err(format!("{engine:?} of {} on {text:?}: {place}", self.name));
            }
        }
        Ok(self.others.len() as u64)
    }

    /// Checks `text` with up to `more` characters after it.
    fn check_all_after(&mut self, text: &str, more: usize) -> Result<u64, String> {
        let mut cases = self.check(text)?;
        if more > 0 {
            for class in CLASSES {
                cases += self.check_all_after(&format!("{text}{class}"), more - 1)?;
            }
        }
        Ok(cases)
    }
}

fn pre_tokens(
    lexer: &mut dyn Lexer,
    segment: &str,
    found: &mut Vec<Range<usize>>,
) -> Result<(), String> {
    found.clear();
    let mut start = 0;
    while let Some(range) = lexer.next_pre_token(segment, start).map_err(text_of)? {
        if range.start < start || range.is_empty() {
            return Err(format!("{range:?} from {start} of {segment:?}"));
        }
        start = range.end;
        found.push(range);
    }
    Ok(())
}
