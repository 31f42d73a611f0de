//! Boundaries that stay undecided: which tokens can stand over one, and what a stream does then.
//!
//! docs/theory.md, section 11, says why the memory of a stream is bounded exactly where no token can. The
//! two kinds of places are all that the claim about undecided boundaries in `analysis` finds.

use std::collections::HashSet;

use bpe_lexers::{Analysis, Engine, Pattern};
use bytepair::tokenizer_json::read_dictionary;
use bytepair::{ReadLimits, Tokenizer, Vocabulary};

use super::support::{ensure, equal_ids, name_of, parallel, text_of, vocabularies};
use super::{Checked, Claims, Outcome, Settings};
use crate::data;

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "no token stands over blanks after a newline, and of o200k and tekken those known over capitals",
        |settings, _| crossings(settings),
    );
    claims.check(
        "texts that no stream can bound end in the typed error of the limit, and are exact below it",
        |settings, _| unbounded(settings),
    );
}

/// A vocabulary, the patterns before it, and how many of its tokens can stand over a boundary that capitals
/// leave undecided.
type Named = (String, Vocabulary, Vec<Pattern>, usize);

fn named(settings: &Settings) -> Result<Vec<Named>, String> {
    let mut named = Vec::new();
    for tokenizer in vocabularies()? {
        let name = name_of(&tokenizer).to_owned();
        let expected = if name == "o200k_base" { 8 } else { 0 };
        let vocabulary = tokenizer.vocabulary().clone();
        named.push((name, vocabulary, tokenizer.patterns().to_vec(), expected));
    }
    let limits = ReadLimits::default();
    if let Some(folder) = &settings.data {
        let folder = folder.join("tokenizers");
        for (model, expected) in [
            ("llama3_1", 0),
            ("qwen3", 0),
            ("deepseek_v3", 0),
            ("gptoss", 8),
        ] {
            let file = data::read_or_packed(&folder.join(model).join("tokenizer.json"))?;
            let dictionary = read_dictionary(&file, &limits).map_err(text_of)?;
            let patterns = match model {
                "deepseek_v3" => Pattern::deepseek_v3().into(),
                "llama3_1" => vec![Pattern::cl100k()],
                name => vec![Pattern::by_name(name).ok_or("no such pattern")?],
            };
            let vocabulary = Vocabulary::clone(dictionary.vocabulary());
            named.push((model.to_owned(), vocabulary, patterns, expected));
        }
        let model = "mistral_tekken_240911";
        let file = data::read_or_packed(&folder.join(model).join("tekken_240911.json"))?;
        let tekken = Tokenizer::from_tekken(&file, &limits).map_err(text_of)?;
        let (vocabulary, patterns) = (tekken.vocabulary().clone(), tekken.patterns().to_vec());
        named.push((model.to_owned(), vocabulary, patterns, 2));
    }
    Ok(named)
}

fn crossings(settings: &Settings) -> Outcome {
    let classes = Classes::new()?;
    let mut cases = 0;
    let mut notes = Vec::new();
    for (name, vocabulary, patterns, expected) in named(settings)? {
        let analysis = Analysis::new(&patterns).map_err(text_of)?;
        let undecided = analysis.undecided();
        let after_newlines = undecided.iter().any(|place| place.before.starts_with('\n'));
        let after_letters = undecided.len() > usize::from(after_newlines);
        let (mut blanks, mut capitals) = (Vec::new(), Vec::new());
        for (_, bytes) in vocabulary.iter() {
            cases += 1;
            let Some(token) = Token::of(bytes) else {
                continue;
            };
            if after_newlines && classes.stands_over_blanks(&token) {
                blanks.push(shown(bytes));
            }
            if after_letters && classes.stands_over_capitals(&token) {
                capitals.push(shown(bytes));
            }
        }
        ensure(blanks.is_empty(), || format!("{name}: {blanks:?}"))?;
        ensure(capitals.len() == expected, || {
            format!("{name}: {capitals:?}")
        })?;
        let longest = vocabulary.iter().filter_map(|(_, bytes)| {
            let token = std::str::from_utf8(bytes).ok()?;
            let newline = token.find(['\r', '\n'])?;
            let follows = token[newline..]
                .chars()
                .any(|c| classes.blanks.contains(&c));
            (after_newlines && follows && token.trim().is_empty()).then_some(bytes.len())
        });
        let longest = longest.max().unwrap_or(0);
        notes.push(match capitals.len() {
            0 => format!("{name} none (a newline and blanks in a token: {longest} bytes)"),
            count => format!("{name} {count} ({})", capitals.join(" ")),
        });
    }
    Ok(Checked::with_note(
        cases,
        format!("tokens; {}", notes.join(", ")),
    ))
}

fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("{}", bytes.escape_ascii()),
    }
}

fn unbounded(settings: &Settings) -> Outcome {
    let classes = Classes::new()?;
    let tokenizer = Tokenizer::o200k_base();
    let mut texts = Vec::new();
    for (_, bytes) in tokenizer.vocabulary().iter() {
        if let Some(token) = Token::of(bytes).filter(|token| classes.stands_over_capitals(token)) {
            texts.extend(classes.text_over(&token));
        }
    }
    let limited = std::sync::atomic::AtomicU64::new(0);
    let limit = settings.choose(20_000, 1 << 18);
    let cases = parallel(texts.len(), |job| {
        let (before, capitals) = &texts[job];
        let place = || format!("{before:?} and {capitals:?}");
        let mut cases = 0;
        for count in [1, 2, 3, 10, settings.choose(100, 1_000)] {
            for ending in ["", "a", "!", "\u{6F22}", " "] {
                let text = format!("{before}{}{ending}", capitals.repeat(count));
                let expected = tokenizer.encode(&text).map_err(text_of)?;
                for size in [1, 7, 4096] {
                    let mut stream = tokenizer.stream().map_err(text_of)?;
                    let mut ids = Vec::new();
                    for piece in text.as_bytes().chunks(size) {
                        stream.push(piece, &mut ids).map_err(text_of)?;
                    }
                    stream.finish(&mut ids).map_err(text_of)?;
                    equal_ids(&ids, &expected, place)?;
                    cases += 1;
                }
            }
        }
        let stream = tokenizer.stream().map_err(text_of)?;
        let mut stream = stream.with_limit(limit);
        let piece = capitals.repeat(1_000);
        let mut ids = Vec::new();
        let mut pushed = stream.push(before, &mut ids);
        // Each token held is of a byte or more, and there are two readings at least.
        for _ in 0..=limit * 64 / piece.len() {
            pushed = pushed.and_then(|()| stream.push(&piece, &mut ids));
            ids.clear();
        }
        if let Err(error) = pushed {
            ensure(
                error.limit() == Some(limit)
                    && !error.is_unsupported()
                    && error.encode_error().is_none(),
                || format!("{}: {error}", place()),
            )?;
            limited.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(cases + 1)
    })?;
    let limited = limited.into_inner();
    ensure(limited > 0, || "no text reached the limit".to_owned())?;
    let note = format!(
        "of {} texts {limited} reach a limit of {limit}, the others are bounded all the same",
        texts.len()
    );
    Ok(Checked::with_note(cases, note))
}

/// The bytes of a token as a part of valid text.
struct Token<'t> {
    /// The last bytes of a character.
    leading: &'t [u8],
    whole: Vec<char>,
    /// The first bytes of a character.
    trailing: &'t [u8],
}

impl<'t> Token<'t> {
    /// None for bytes that are in no text.
    fn of(bytes: &'t [u8]) -> Option<Self> {
        let continues = |byte: &u8| (0x80..0xC0).contains(byte);
        let leading = bytes.iter().take_while(|byte| continues(byte)).count();
        let (leading, rest) = bytes.split_at(leading);
        let end = match std::str::from_utf8(rest) {
            Ok(_) => rest.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return None,
        };
        let (whole, trailing) = rest.split_at(end);
        let whole = std::str::from_utf8(whole).ok()?.chars().collect();
        (leading.len() < 4).then_some(Self {
            leading,
            whole,
            trailing,
        })
    }
}

/// Characters by what the patterns say of them.
struct Classes {
    /// `\s` without `\r` and `\n`.
    blanks: HashSet<char>,
    /// Lu and Lt.
    capitals: HashSet<char>,
    /// Lm, Lo and M.
    caseless: HashSet<char>,
    /// What a word may have before its letters.
    prefixes: HashSet<char>,
}

impl Classes {
    fn new() -> Result<Self, String> {
        let class = |pattern: &str| {
            let lexer = Pattern::new(pattern).lexer(Engine::Automata);
            let mut lexer = lexer.map_err(text_of)?;
            let mut bytes = [0; 4];
            let mut found = HashSet::new();
            for character in '\0'..=char::MAX {
                let text = character.encode_utf8(&mut bytes);
                if lexer.next_pre_token(text, 0).map_err(text_of)?.is_some() {
                    found.insert(character);
                }
            }
            Ok::<_, String>(found)
        };
        Ok(Self {
            blanks: class(r"[\s&&[^\r\n]]")?,
            capitals: class(r"[\p{Lu}\p{Lt}]")?,
            caseless: class(r"[\p{Lm}\p{Lo}\p{M}]")?,
            prefixes: class(r"[^\r\n\p{L}\p{N}]")?,
        })
    }

    /// Can it begin before an undecided place behind a newline, and end in the blanks after it?
    fn stands_over_blanks(&self, token: &Token<'_>) -> bool {
        let blanks = token.whole.iter().rev();
        let blanks = blanks.take_while(|c| self.blanks.contains(c)).count();
        let before = token.whole.len() - blanks;
        let begins_one = !token.trailing.is_empty() && begins(&self.blanks, token.trailing);
        let ends_in_blanks = match token.trailing.is_empty() {
            true => blanks > 0,
            false => begins_one,
        };
        let newline = token.whole[..before].last();
        ends_in_blanks && newline.is_some_and(|c| matches!(c, '\r' | '\n'))
    }

    /// Can it begin before an undecided place behind a letter without case, and end in the capitals after
    /// it, all in one word?
    fn stands_over_capitals(&self, token: &Token<'_>) -> bool {
        let capitals = token.whole.iter().rev();
        let capitals = capitals.take_while(|c| self.capitals.contains(c)).count();
        let ends_in_capitals = match token.trailing.is_empty() {
            true => capitals > 0,
            false => begins(&self.capitals, token.trailing),
        };
        let before = &token.whole[..token.whole.len() - capitals];
        let behind_caseless = match before.last() {
            Some(last) => self.caseless.contains(last),
            None => !token.leading.is_empty() && ends(&self.caseless, token.leading),
        };
        let is_letter = |c: &char| self.capitals.contains(c) || self.caseless.contains(c);
        let mut letters = before.iter();
        // Before the first letter there may be one character that is none.
        if token.leading.is_empty()
            && letters
                .as_slice()
                .first()
                .is_some_and(|c| !is_letter(c) && self.prefixes.contains(c))
        {
            letters.next();
        }
        ends_in_capitals && behind_caseless && letters.all(is_letter)
    }

    /// What is before the capitals of such a token, and the capitals.
    fn text_over(&self, token: &Token<'_>) -> Option<(String, String)> {
        let first = match token.leading.is_empty() {
            true => None,
            false => {
                let mut ending: Vec<&char> = self.caseless.iter().collect();
                ending.sort_unstable();
                let mut ending = ending.into_iter();
                Some(*ending.find(|c| c.to_string().as_bytes().ends_with(token.leading))?)
            }
        };
        let text: String = first
            .into_iter()
            .chain(token.whole.iter().copied())
            .collect();
        let capitals = text.trim_end_matches(|c| self.capitals.contains(&c)).len();
        let (before, capitals) = text.split_at(capitals);
        (!capitals.is_empty()).then(|| (before.to_owned(), capitals.to_owned()))
    }
}

/// Does a character of the class begin with these bytes?
fn begins(class: &HashSet<char>, bytes: &[u8]) -> bool {
    let mut buffer = [0; 4];
    let mut class = class.iter();
    class.any(|c| c.encode_utf8(&mut buffer).as_bytes().starts_with(bytes))
}

/// Does a character of the class end with these bytes, and have more?
fn ends(class: &HashSet<char>, bytes: &[u8]) -> bool {
    let mut buffer = [0; 4];
    class.iter().any(|c| {
        let encoded = c.encode_utf8(&mut buffer).as_bytes();
        encoded.len() > bytes.len() && encoded.ends_with(bytes)
    })
}
