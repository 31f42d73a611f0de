//! The fast engine with each instruction set, logos and the automata, against the transcription and
//! the reference: all tuples of one character a cell, at every place in a block of 64 bytes.
//! `fast_stages` does so for several stages in one pass.

use std::collections::BTreeMap;

use bpe_lexers::{Engine, Family, FastLexer, InstructionSet, Lexer, Pattern};

use super::support::{Random, difference, grouped, parallel, text_of};
use super::{Checked, Claims, Outcome};

/// The families that the fast engine knows, with the predicates that their patterns have.
const FAMILIES: [(Family, &[&str]); 6] = [
    (Family::Gpt2, GPT2),
    (Family::Cl100k, CL100K),
    (Family::Cl100kOfTiktoken, CL100K),
    (Family::Qwen2, CL100K),
    (Family::O200k, O200K),
    (Family::Tekken, O200K),
];

const GPT2: &[&str] = &[
    " ", "'", "s", "t", "r", "e", "v", "m", "l", "d", r"\p{L}", r"\p{N}", r"\s",
];
const CL100K: &[&str] = &[
    " ", "'", r"[\r\n]", "(?i)s", "(?i)t", "(?i)r", "(?i)e", "(?i)v", "(?i)m", "(?i)l", "(?i)d",
    r"\p{L}", r"\p{N}", r"\s",
];
const O200K: &[&str] = &[
    " ",
    "'",
    "/",
    r"[\r\n]",
    "(?i)s",
    "(?i)t",
    "(?i)r",
    "(?i)e",
    "(?i)v",
    "(?i)m",
    "(?i)l",
    "(?i)d",
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
    r"\p{L}",
    r"\p{N}",
    r"\s",
];

/// Three of the families have logos DFAs, and are checked on longer tuples.
const MAIN: [usize; 3] = [0, 1, 4];

pub(super) fn check(claims: &mut Claims) {
    for (number, &(family, predicates)) in FAMILIES.iter().enumerate() {
        let claim = format!(
            "every engine and instruction set has the reference's pre-tokens on all texts of up to k cells of {family:?}"
        );
        claims.check(&claim, |settings, _| {
            let longest = settings.choose(3, if MAIN.contains(&number) { WHOLE } else { LONG });
            tuples(family, predicates, 1, longest)
        });
    }
    for (family, predicates) in MAIN.map(|number| FAMILIES[number]) {
        let longest = WHOLE + 1;
        let claim = format!(
            "every engine has the reference's pre-tokens on all texts of {longest} cells of {family:?}"
        );
        match claims.settings.full {
            true => claims.check(&claim, |_, _| tuples(family, predicates, longest, longest)),
            false => claims.skip(&claim, "takes many minutes (--full)"),
        }
    }
    claims.check(
        "instruction sets agree with the transcription at every place of a block, behind runs, before every rest",
        |settings, _| {
            let mut notes = Vec::new();
            let mut cases = 0;
            for &(family, predicates) in &FAMILIES {
                let cells = cells(predicates)?;
                let (behind_runs, elsewhere) = settings.choose((1, 2), (3, 3));
                let found = parallel(cells.len(), |job| {
                    let mut engines = Comparison::fast_only(family)?;
                    let text = String::from(cells[job]);
                    engines.check_places(&text, 1, behind_runs, elsewhere, &cells)
                })?;
                notes.push(format!("{family:?} {found}"));
                cases += found;
            }
            Ok(Checked::with_note(cases, notes.join(", ")))
        },
    );
    claims.check(
        "every engine and instruction set agrees with the transcription on every code point and beside others, in a full run with the reference too",
        |settings, _| {
            const BLOCK: u32 = 0x2000;
            let families = settings.choose(&MAIN[..], &[0, 1, 2, 3, 4, 5]);
            // A quick run leaves out the planes that have no character yet, or private ones only.
            let blocks = settings.choose(0x3_2000, 0x11_0000) / BLOCK;
            let cases = parallel(families.len() * blocks as usize, |job| {
                let (family, _) = FAMILIES[families[job % families.len()]];
                let start = (job / families.len()) as u32 * BLOCK;
                let mut engines = Comparison::new(family)?;
                let mut cases = 0;
                for character in (start..start + BLOCK).filter_map(char::from_u32) {
                    let neighbours = [
                        ("", ""),
                        ("a", "b"),
                        (" ", " "),
                        ("", "\n"),
                        ("'", ""),
                        ("1", ""),
                    ];
                    for (before, after) in neighbours {
                        let text = format!("{before}{character}{after}");
                        cases += engines.check(&text, settings.choose(0, LONG))?;
                    }
                }
                Ok(cases)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
    claims.check(
        "every engine and instruction set has the transcription's pre-tokens on random texts, and the reference's on corpora",
        |settings, corpora| {
            let mut cases = parallel(settings.choose(24, 600), |job| {
                let (family, predicates) = FAMILIES[job % FAMILIES.len()];
                let cells = cells(predicates)?;
                let mut engines = Comparison::new(family)?;
                let mut random = Random::new(job as u64);
                let mut cases = 0;
                for _ in 0..2_000 {
                    cases += engines.check(&random_text(&mut random, &cells), 0)?;
                }
                Ok(cases)
            })?;
            let jobs = corpora.len() * FAMILIES.len();
            cases += parallel(jobs, |job| {
                let mut engines = Comparison::new(FAMILIES[job % FAMILIES.len()].0)?;
                // As short texts are: with the reference, and with every instruction set.
                engines.check(&corpora[job / FAMILIES.len()].text, LONG)
            })?;
            Ok(Checked::with_note(cases, format!("{} corpora", corpora.len())))
        },
    );
}

/// Checks all texts of `shortest` to `longest` cells.
fn tuples(family: Family, predicates: &[&str], shortest: usize, longest: usize) -> Outcome {
    let cells = cells(predicates)?;
    let cases = parallel(cells.len() * cells.len(), |job| {
        let mut engines = Comparison::new(family)?;
        let mut check = |text: &str, length| match length < shortest {
            true => Ok(0),
            false => engines.check(text, length),
        };
        let start = [cells[job / cells.len()], cells[job % cells.len()]];
        // The texts of one cell are counted once, with the first of the second.
        let alone = match job % cells.len() {
            0 => check(&String::from(start[0]), 1)?,
            _ => 0,
        };
        let mut text = String::from_iter(start);
        Ok(alone + all_after(&mut text, 2, longest, &cells, &mut check)?)
    })?;
    let count = cells.len() as u64;
    let texts: u64 = (shortest..=longest)
        .map(|length| count.pow(length as u32))
        .sum();
    let texts = grouped(texts);
    let beyond = match longest > LONG {
        true => ", beyond 4 without the instructions of this processor",
        false => "",
    };
    let note = format!("{count} cells, k {longest}, {texts} texts{beyond}");
    Ok(Checked::with_note(cases, note))
}

/// One character for each set of predicates that hold together: the first code point that has it.
pub(super) fn cells(predicates: &[&str]) -> Result<Vec<char>, String> {
    let mut lexers = Vec::new();
    for predicate in predicates {
        let lexer = Pattern::new(predicate).lexer(Engine::Automata);
        lexers.push(lexer.map_err(text_of)?);
    }
    let mut cells = BTreeMap::new();
    let mut bytes = [0; 4];
    // All characters that have a class are in the first planes.
    for character in '\0'..'\u{32000}' {
        let text = character.encode_utf8(&mut bytes);
        let mut holds = 0_u32;
        for (number, lexer) in lexers.iter_mut().enumerate() {
            let found = lexer.next_pre_token(text, 0).map_err(text_of)?;
            holds |= u32::from(found.is_some()) << number;
        }
        cells.entry(holds).or_insert(character);
    }
    Ok(cells.into_values().collect())
}

/// Cells, any code points, runs, and what contractions and newlines are made of.
pub(super) fn random_text(random: &mut Random, cells: &[char]) -> String {
    let mut text = String::new();
    let few: Vec<char> = (0..4).map(|_| cells[random.below(cells.len())]).collect();
    for _ in 0..random.below(120) {
        match random.below(6) {
            0 => text.extend(char::from_u32(random.below(0x11_0000) as u32)),
            1 => {
                let character = cells[random.below(cells.len())];
                text.extend(std::iter::repeat_n(character, random.below(6)));
            }
            2 => text
                .push_str(random.pick(&["'s", "'LL", "'ſ", "\r\n", "  ", "//", "HTTPs", "don't"])),
            _ => text.push(few[random.below(few.len())]),
        }
    }
    text
}

/// The transcription as the oracle, the reference beside it, and engines that are to find the same.
struct Comparison {
    family: Family,
    oracle: Box<dyn Lexer>,
    reference: Box<dyn Lexer>,
    others: Vec<(String, Box<dyn Lexer>)>,
    expected: Vec<usize>,
    found: Vec<usize>,
}

/// The longest texts that are checked with the instructions of this processor too.
const LONG: usize = 4;

/// The longest texts of which the reference finds all pre-tokens; of longer ones it finds the first. The
/// patterns do not look behind, so what follows that one is cut as a text of its own, which is a shorter
/// one of cells, and has been compared.
const WHOLE: usize = 5;

impl Comparison {
    fn fast_only(family: Family) -> Result<Self, String> {
        let pattern = Pattern::of_family(family);
        let mut others: Vec<(String, Box<dyn Lexer>)> = Vec::new();
        for set in InstructionSet::available() {
            let fast = FastLexer::with_instructions(&pattern, set).map_err(text_of)?;
            others.push((format!("Fast {set:?}"), Box::new(fast)));
        }
        Ok(Self {
            family,
            oracle: pattern.lexer(Engine::Transcription).map_err(text_of)?,
            reference: pattern.lexer(Engine::Reference).map_err(text_of)?,
            others,
            expected: Vec::new(),
            found: Vec::new(),
        })
    }

    fn new(family: Family) -> Result<Self, String> {
        let mut comparison = Self::fast_only(family)?;
        let pattern = Pattern::of_family(family);
        for engine in [Engine::Automata, Engine::Logos] {
            match pattern.lexer(engine) {
                Ok(lexer) => comparison.others.push((format!("{engine:?}"), lexer)),
                // tiktoken's spelling has possessive quantifiers, and three families have no DFA.
                Err(error) if error.is_unsupported() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(comparison)
    }

    /// Checks one text of `length` cells with each engine: beyond [`LONG`] cells not with the
    /// instructions of this processor; 0 cells is a text of any length, without the reference.
    fn check(&mut self, text: &str, length: usize) -> Result<u64, String> {
        let Self {
            family,
            oracle,
            reference,
            others,
            expected,
            found,
        } = self;
        pre_token_ends(oracle.as_mut(), text, expected)?;
        if expected.last().copied().unwrap_or(0) != text.len() {
            return Err(format!(
                "the transcription of {family:?} does not cover {text:?}"
            ));
        }
        let compare = |name: &str, found: &[usize]| match found == expected.as_slice() {
            true => Ok(()),
            false => {
                let place = difference(found, expected);
                Err(format!("{name} of {family:?} on {text:?}: {place}"))
            }
        };
        let mut cases = 0;
        if length > WHOLE {
            let first = reference.next_pre_token(text, 0).map_err(text_of)?;
            if first.map(|range| range.end) != expected.first().copied() {
                return Err(format!("Reference of {family:?} on {text:?}"));
            }
            cases += 1;
        } else if length > 0 {
            pre_token_ends(reference.as_mut(), text, found)?;
            compare("Reference", found)?;
            cases += 1;
        }
        for (name, lexer) in others {
            if length > LONG && name.starts_with("Fast") && !name.ends_with("Portable") {
                continue;
            }
            pre_token_ends(lexer.as_mut(), text, found)?;
            compare(name, found)?;
            cases += 1;
            if length == 0 || length > 2 {
                continue;
            }
            // One by one too, which is another way through the fast engine.
            found.clear();
            let mut start = 0;
            while let Some(range) = lexer.next_pre_token(text, start).map_err(text_of)? {
                start = range.end;
                found.push(start);
            }
            compare(name, found)?;
        }
        Ok(cases)
    }

    /// Checks `text`, of `length` cells, in all places, and what begins with it, up to so many
    /// cells behind runs and elsewhere.
    fn check_places(
        &mut self,
        text: &str,
        length: usize,
        behind_runs: usize,
        elsewhere: usize,
        cells: &[char],
    ) -> Result<u64, String> {
        let mut cases = 0;
        let around = (0..8).chain(56..64);
        if length <= behind_runs {
            for cell in cells {
                for blocks in 1..=3 {
                    for place in around.clone() {
                        let behind = run_of(*cell, blocks * 64 + place);
                        cases += self.check(&format!("{behind}{text}"), 0)?;
                    }
                }
            }
        }
        // Behind words, where the first block is one window of masks, and not the last.
        for place in around {
            let words = &"ab ".repeat(40)[..64 + place - 8];
            cases += self.check(&format!("{words}{text}{}", "c d ".repeat(20)), 0)?;
        }
        // In the last window of the text.
        for rest in 0..64 {
            cases += self.check(&format!("{text}{}", &"ef ".repeat(22)[..rest]), 0)?;
        }
        if length < elsewhere {
            for cell in cells {
                let longer = format!("{text}{cell}");
                cases += self.check_places(&longer, length + 1, behind_runs, elsewhere, cells)?;
            }
        }
        Ok(cases)
    }
}

/// Checks `text`, of `length` cells, and what begins with it, up to `longest` cells; returns the number of
/// cases.
pub(super) fn all_after(
    text: &mut String,
    length: usize,
    longest: usize,
    cells: &[char],
    check: &mut dyn FnMut(&str, usize) -> Result<u64, String>,
) -> Result<u64, String> {
    let mut cases = check(text, length)?;
    if length < longest {
        for cell in cells {
            text.push(*cell);
            cases += all_after(text, length + 1, longest, cells, check)?;
            text.pop();
        }
    }
    Ok(cases)
}

/// A run of the character that fills so many bytes, behind digits where it does not come out even.
pub(super) fn run_of(character: char, bytes: usize) -> String {
    let size = character.len_utf8();
    let mut text = "1".repeat(bytes % size);
    text.extend(std::iter::repeat_n(character, bytes / size));
    text
}

/// All ends of pre-tokens, some at a time.
fn pre_token_ends(
    lexer: &mut dyn Lexer,
    segment: &str,
    ends: &mut Vec<usize>,
) -> Result<(), String> {
    ends.clear();
    loop {
        let (count, start) = (ends.len(), ends.last().copied().unwrap_or(0));
        let beyond = lexer.pre_token_ends(segment, start, 50, ends);
        if let Some(gap) = beyond.map_err(text_of)? {
            return Err(format!("a gap before {gap:?} of {segment:?}"));
        }
        if ends.len() == count {
            return Ok(());
        }
    }
}
