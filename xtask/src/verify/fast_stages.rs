//! What the fast engine does for several stages, in one pass where it can: the spans and labels of the
//! stages one after the other.

use bpe_lexers::{
    Engine, Family, FastLexer, InstructionSet, Label, Lexer, Pattern, Spanner, SpecialMatcher,
};

use super::fast_lexers::{all_after, cells, random_text, run_of};
use super::support::{Random, difference, parallel, text_of};
use super::{Checked, Claims};

/// The stages, and the predicates that their patterns have. Those of one stage leave gaps.
const STAGES: [(&[Family], &[&str]); 7] = [
    (
        &[Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3],
        DEEPSEEK,
    ),
    (&[Family::DigitGroups, Family::Gpt2], GPT2),
    (&[Family::SingleDigits, Family::Gpt2], GPT2),
    (&[Family::DigitGroups], DIGITS),
    (&[Family::SingleDigits], DIGITS),
    (&[Family::HanAndKana], DEEPSEEK),
    (&[Family::DeepseekV3], DEEPSEEK),
];

const DEEPSEEK: &[&str] = &[
    " ",
    r"[\r\n]",
    "[A-Za-z]",
    "[!-/:-@\\[-`{-~]",
    "[\u{4E00}-\u{9FA5}\u{3040}-\u{30FF}]",
    r"\p{L}",
    r"\p{M}",
    r"[\p{P}\p{S}]",
    r"\p{N}",
    r"\s",
];
const GPT2: &[&str] = &[
    " ", "'", "s", "t", "r", "e", "v", "m", "l", "d", r"\p{L}", r"\p{N}", r"\s",
];
const DIGITS: &[&str] = &[r"\p{N}"];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "stages in one pass cut all texts of up to k cells as the reference does one after the other",
        |settings, _| {
            let mut notes = Vec::new();
            let mut cases = 0;
            let longest = settings.choose(3, 4);
            for stages in STAGES {
                let cells = cells(stages.1)?;
                cases += parallel(cells.len(), |job| {
                    let mut text = cells[job].to_string();
                    let mut comparison = Comparison::new(stages.0)?;
                    let check = &mut |text: &str, _| comparison.check(text, true);
                    all_after(&mut text, 1, longest, &cells, check)
                })?;
                notes.push(format!("{:?} {} cells, k {longest}", stages.0, cells.len()));
            }
            Ok(Checked::with_note(cases, notes.join(", ")))
        },
    );
    claims.check(
        "stages in one pass agree with the transcriptions at every place of a block, on every code point, random texts and corpora",
        |settings, corpora| {
            let mut cases = 0;
            for stages in STAGES {
                let cells = cells(stages.1)?;
                let longest = settings.choose(1, 2);
                cases += parallel(cells.len(), |job| {
                    let mut text = cells[job].to_string();
                    Comparison::new(stages.0)?.check_places(&mut text, 1, longest, &cells)
                })?;
                const BLOCK: u32 = 0x2000;
                let blocks = settings.choose(0x3_2000, 0x11_0000) / BLOCK;
                cases += parallel(blocks as usize, |job| {
                    let start = job as u32 * BLOCK;
                    let mut engines = Comparison::new(stages.0)?;
                    let mut cases = 0;
                    for character in (start..start + BLOCK).filter_map(char::from_u32) {
                        for (before, after) in AROUND {
                            cases += engines.check(&format!("{before}{character}{after}"), false)?;
                        }
                    }
                    Ok(cases)
                })?;
                cases += parallel(settings.choose(4, 100), |job| {
                    let mut engines = Comparison::new(stages.0)?;
                    let mut random = Random::new(job as u64);
                    let mut cases = 0;
                    for _ in 0..2_000 {
                        cases += engines.check(&random_text(&mut random, &cells), false)?;
                    }
                    Ok(cases)
                })?;
                cases += parallel(corpora.len(), |job| {
                    Comparison::new(stages.0)?.check(&corpora[job].text, true)
                })?;
            }
            Ok(Checked::with_note(cases, format!("{} corpora", corpora.len())))
        },
    );
}

const AROUND: [(&str, &str); 7] = [
    ("", ""),
    ("a", "b"),
    (" ", " "),
    ("", "\n"),
    ("!", ""),
    ("1", ""),
    ("\u{6F22}", "\u{30FB}"),
];

type Spans = Vec<(usize, Label)>;

/// Transcriptions and reference stage by stage, and the fast engine.
struct Comparison {
    families: &'static [Family],
    oracle: Spanner,
    reference: Spanner,
    sets: Vec<(InstructionSet, Spanner)>,
    expected: Spans,
    found: Spans,
}

impl Comparison {
    fn new(families: &'static [Family]) -> Result<Self, String> {
        let patterns: Vec<_> = families
            .iter()
            .map(|&one| Pattern::of_family(one))
            .collect();
        let with = |engine| {
            let lexers = patterns.iter().map(|pattern| pattern.lexer(engine));
            let lexers = lexers.collect::<Result<_, _>>().map_err(text_of)?;
            Ok::<_, String>(Spanner::new(lexers))
        };
        let mut sets = Vec::new();
        for set in InstructionSet::available() {
            let mut lexers: Vec<Box<dyn Lexer>> = Vec::new();
            for pattern in &patterns {
                let lexer = FastLexer::with_instructions(pattern, set).map_err(text_of)?;
                lexers.push(Box::new(lexer));
            }
            sets.push((set, Spanner::new(lexers)));
        }
        Ok(Self {
            families,
            oracle: with(Engine::Transcription)?,
            reference: with(Engine::Reference)?,
            sets,
            expected: Vec::new(),
            found: Vec::new(),
        })
    }

    fn check(&mut self, text: &str, with_reference: bool) -> Result<u64, String> {
        let Self {
            families,
            oracle,
            reference,
            sets,
            expected,
            found,
        } = self;
        spans(oracle, text, expected)?;
        let compare = |name: &dyn std::fmt::Debug, found: &Spans| match found == expected {
            true => Ok(()),
            false => {
                let place = difference(found, expected);
                Err(format!("{name:?} of {families:?} on {text:?}: {place}"))
            }
        };
        if with_reference {
            spans(reference, text, found)?;
            compare(&"reference", found)?;
        }
        for (set, spanner) in &mut *sets {
            spans(spanner, text, found)?;
            compare(set, found)?;
        }
        Ok(sets.len() as u64 + u64::from(with_reference))
    }

    /// Checks `text`, of `length` cells, on the first and last bytes of a block, behind runs and words, and
    /// before what is left of one.
    fn check_places(
        &mut self,
        text: &mut String,
        length: usize,
        longest: usize,
        cells: &[char],
    ) -> Result<u64, String> {
        let mut cases = 0;
        for place in (0..8).chain(56..64) {
            for cell in cells {
                for blocks in 1..=3 {
                    let behind = run_of(*cell, blocks * 64 + place);
                    cases += self.check(&format!("{behind}{text}"), false)?;
                    cases += self.check(&format!("{behind}{text}{}", "c d ".repeat(20)), false)?;
                }
            }
            let words = &"ab ".repeat(40)[..64 + place - 8];
            cases += self.check(&format!("{words}{text}{}", "c d ".repeat(20)), false)?;
        }
        for rest in 0..64 {
            cases += self.check(&format!("{text}{}", &"ef ".repeat(22)[..rest]), false)?;
        }
        if length < longest {
            for cell in cells {
                text.push(*cell);
                cases += self.check_places(text, length + 1, longest, cells)?;
                text.pop();
            }
        }
        Ok(cases)
    }
}

/// Where each span ends, and what it is.
fn spans(spanner: &mut Spanner, text: &str, found: &mut Spans) -> Result<(), String> {
    found.clear();
    let flow = spanner.for_each_span::<()>(text.as_bytes(), &SpecialMatcher::none(), |span| {
        found.push((span.end, span.label));
        std::ops::ControlFlow::Continue(())
    });
    flow.map(drop).map_err(text_of)
}
