//! The fast path against the plain one: whole-piece look-up and [`Algorithm::MergeHeap`], which other
//! claims compare with the reference and with tiktoken.

use bpe_lexers::{FastLexer, InstructionSet, Lexer};
use bytepair::{Algorithm, Tokenizer};

use super::support::{
    Random, difference, encodings, name_of, parallel, pattern_of, text_of, vocabularies,
};
use super::{Checked, Claims};

/// One line of each cache, some, and what is usual.
const CACHES: [usize; 3] = [0, 3 << 12, 3 << 20];

/// What random words are made of: pieces of tokens, letters that meet in contractions, characters of
/// two, three and four bytes, and parts that the masks leave to the scalar lexer.
const PARTS: [&str; 28] = [
    "the", "ing", "tion", "qz", "xk", "A", "b", "'s", "'", " ", "  ", "\n", "1", "23", ".", "//",
    "é", "ß", "ж", "ди", "א", "م", "ा", "中", "文字", "ハン", "한", "😀",
];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "the fast path gives the plain path's ids, ranges and numbers of corpora, with caches of any size",
        |settings, corpora| {
            let most = settings.choose(100_000, usize::MAX);
            let encodings = encodings()?;
            let cases = parallel(encodings.len() * corpora.len(), |job| {
                let paths = Paths::new(&encodings[job % encodings.len()])?;
                let text = &corpora[job / encodings.len()].text;
                paths.check(&text.as_bytes()[..text.floor_char_boundary(most)])
            })?;
            Ok(Checked::with_note(cases, "bytes"))
        },
    );
    claims.check(
        "the fast path gives the plain path's ids on every instruction set, on random words and bytes",
        |settings, _| {
            let rounds = settings.choose(150, 10_000);
            let vocabularies = vocabularies()?;
            let cases = parallel(2 * vocabularies.len(), |job| {
                let tokenizer = &vocabularies[job / 2];
                let paths = Paths::new(tokenizer)?;
                let sets = instruction_sets(tokenizer)?;
                let mut random = Random::new(job as u64 + 1);
                let mut cases = 0;
                for _ in 0..rounds {
                    let mut text = words(&mut random).into_bytes();
                    if job % 2 == 1 {
                        // Parts that are not UTF-8.
                        for _ in 0..4 {
                            let place = random.below(text.len() + 1);
                            let bytes = random.bytes(2);
                            drop(text.splice(place..place, bytes));
                        }
                    }
                    let expected = paths.plain.encode_bytes(&text).map_err(text_of)?;
                    for (set, tokenizer) in &sets {
                        let found = tokenizer.encode_bytes(&text).map_err(text_of)?;
                        if found != expected {
                            let difference = difference(&found, &expected);
                            return Err(format!("{set:?}, {}: {difference}", name_of(tokenizer)));
                        }
                        cases += 1;
                    }
                    cases += paths.check(&text)?;
                }
                Ok(cases)
            })?;
            Ok(Checked::with_note(cases, "bytes"))
        },
    );
    claims.check(
        "merging that starts from whole characters gives the tokens of merging from bytes",
        |settings, _| {
            let rounds = settings.choose(40_000, 4_000_000);
            let vocabularies = vocabularies()?;
            let cases = parallel(vocabularies.len(), |job| {
                let tokenizer = &vocabularies[job];
                let paths = Paths::new(tokenizer)?;
                let tokens = tokenizer.vocabulary().iter();
                let texts = tokens.filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok());
                let texts: Vec<&str> = texts.filter(|text| !text.is_ascii()).collect();
                let mut random = Random::new(job as u64 + 7);
                for round in 0..rounds {
                    // Neighbours from anywhere: characters, tokens, and their halves.
                    let mut text = String::new();
                    for _ in 0..2 + random.below(3) {
                        let token = random.pick(&texts);
                        let half = token.floor_char_boundary(random.below(token.len()));
                        text.push_str(match random.below(3) {
                            0 => token,
                            1 => &token[..half],
                            _ => &token[half..],
                        });
                        if random.below(8) == 0 {
                            text.insert(0, ' ');
                        }
                    }
                    let path = &paths.fast[round % 2];
                    let expected = paths.plain.encode(&text).map_err(text_of)?;
                    let found = path.encode(&text).map_err(text_of)?;
                    if found != expected {
                        let difference = difference(&found, &expected);
                        return Err(format!("{}, {text:?}: {difference}", name_of(tokenizer)));
                    }
                }
                Ok(rounds as u64)
            })?;
            Ok(Checked::with_note(cases, "texts"))
        },
    );
}

struct Paths {
    plain: Tokenizer,
    fast: Vec<Tokenizer>,
}

impl Paths {
    fn new(tokenizer: &Tokenizer) -> Result<Self, String> {
        let plain = tokenizer.to_builder().encoder(Algorithm::MergeHeap);
        let fast = CACHES.map(|bytes| tokenizer.to_builder().cache_bytes(bytes).build());
        Ok(Self {
            plain: plain.build().map_err(text_of)?,
            fast: fast
                .into_iter()
                .collect::<Result<_, _>>()
                .map_err(text_of)?,
        })
    }

    /// Compares all calls, twice with each cache: the second time it is warm.
    fn check(&self, text: &[u8]) -> Result<u64, String> {
        let expected = self.plain.encode_with_offsets(text).map_err(text_of)?;
        for (tokenizer, bytes) in self.fast.iter().zip(CACHES) {
            for _ in 0..2 {
                let found = tokenizer.encode_with_offsets(text).map_err(text_of)?;
                let at = || format!("{}, cache of {bytes} bytes", name_of(tokenizer));
                if found.ids != expected.ids {
                    let difference = difference(&found.ids, &expected.ids);
                    return Err(format!("{}: {difference}", at()));
                }
                if found.byte_ranges != expected.byte_ranges {
                    let difference = difference(&found.byte_ranges, &expected.byte_ranges);
                    return Err(format!("{}: {difference}", at()));
                }
                let count = tokenizer.count(text).map_err(text_of)?;
                if count != expected.ids.len() {
                    return Err(format!("{}: count says {count}", at()));
                }
            }
        }
        Ok(text.len() as u64)
    }
}

/// The fast path with the fast lexer on each instruction set of this machine.
fn instruction_sets(tokenizer: &Tokenizer) -> Result<Vec<(InstructionSet, Tokenizer)>, String> {
    let pattern = pattern_of(tokenizer)?;
    let sets = InstructionSet::available().into_iter();
    sets.map(|set| {
        let lexer = FastLexer::with_instructions(pattern, set).map_err(text_of)?;
        let lexer: Box<dyn Lexer> = Box::new(lexer);
        let builder = tokenizer.to_builder().custom_lexers(vec![lexer]);
        Ok((set, builder.build().map_err(text_of)?))
    })
    .collect()
}

/// Words of all lengths, some of which come again.
fn words(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(40) {
        let longest = 1 + random.below(24);
        let word = random.text(&PARTS, longest);
        for _ in 0..1 + random.below(3) {
            text.push_str(&word);
            text.push(' ');
        }
    }
    text
}
