//! Hugging Face's `tokenizer.json`: the BPE model, and the pre-tokenizers `Split`, `Sequence` and
//! `ByteLevel`.
//!
//! What is not done yet is refused by name: normalizers, other pre-tokenizers and decoders, other
//! models, dropout, affixes, added tokens with flags. Read and left off are `truncation`, `padding` and
//! post-processors that only add special tokens around a text: [`Tokenizer::encode`] gives the tokens
//! of the whole text and no others.
//! [`read_dictionary`] reads the model alone, whatever stands around it.

use std::collections::{HashMap, HashSet};
use std::fmt;

use bpe_core::gpt2::VocabEntries;
use bpe_core::{Atoms, Dictionary, ReadLimits, TokenId, Vocabulary, byte_level};
use bpe_lexers::Pattern;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value;

use crate::builder::{MOST_STAGES, TokenizerBuilder};
use crate::error::LoadError;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// The tokenizer of a `tokenizer.json` file's content.
    ///
    /// Special tokens of the file are special tokens here: text unless [`Specials`](crate::Specials)
    /// say otherwise. Added tokens that are not special are always matched. Ids are those of the
    /// file.
    ///
    /// # Errors
    ///
    /// A file that is malformed or over the limits, or that asks for something that is not done
    /// here ([`LoadError::is_unsupported`]); the error names the field.
    pub fn from_tokenizer_json(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        let file = File::read(file, limits)?;
        file.check_supported()?;
        let dictionary = file.dictionary(limits)?;
        let mut builder = TokenizerBuilder::new(&dictionary);
        for pattern in file.patterns()? {
            builder = builder.pattern(pattern);
        }
        for (index, token) in file.added_tokens.iter().enumerate() {
            let ordinary = dictionary.vocabulary().id_of(token.content.as_bytes());
            if let Some(id) = ordinary.filter(|&id| id != token.id) {
                return Err(LoadError::at(
                    format!("added_tokens[{index}] ({:?})", token.content),
                    format_args!("the vocabulary has the same text with the id {id}"),
                ));
            }
            builder = match token.special {
                true => builder.special_token(&token.content, token.id),
                false => builder.added_token(&token.content, token.id),
            };
        }
        builder.build()
    }
}

/// The dictionary of the BPE `model` of a `tokenizer.json`: its vocabulary, merges (as strings or as
/// pairs), `ignore_merges`, `byte_fallback`, `unk_token` and `fuse_unk`. What else the file holds is
/// for the caller to mind: normalizer, pre-tokenizer, added tokens are not part of a dictionary.
///
/// Tokens are spelled in the byte-level alphabet where normalizer, pre-tokenizer or decoder says
/// `ByteLevel`; then each single byte must be a token, and `unk_token` is of no consequence. Special
/// tokens that stand in the vocabulary too are left out of the dictionary, since no text may make
/// them; but for the unknown token, and for those that a merge names or makes.
///
/// Cost: O(bytes).
///
/// # Errors
///
/// A file that is malformed or over the limits, or a model that is not done here; the error names
/// the field.
pub fn read_dictionary(file: &[u8], limits: &ReadLimits) -> Result<Dictionary, LoadError> {
    File::read(file, limits)?.dictionary(limits)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    #[allow(dead_code)] // Said by every file, and of no consequence.
    version: Value,
    #[serde(default)]
    #[allow(dead_code)] // Read, and left off: our callers ask for truncation themselves.
    truncation: Value,
    #[serde(default)]
    #[allow(dead_code)] // As truncation.
    padding: Value,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    model: BpeModel,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddedToken {
    id: TokenId,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
    #[serde(default)]
    special: bool,
}

/// The part of a file that says what kind of model it has.
#[derive(Deserialize)]
struct Kind {
    model: ModelKind,
}

#[derive(Deserialize)]
struct ModelKind {
    /// Older files do not say it, and mean BPE.
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BpeModel {
    #[serde(rename = "type", default)]
    #[allow(dead_code)] // Checked by `Kind` before.
    kind: Option<String>,
    #[serde(default)]
    dropout: Option<f64>,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: VocabEntries,
    merges: Vec<MergeEntry>,
}

/// A merge: `"a b"` or `["a", "b"]`.
struct MergeEntry(String, String);

impl<'de> Deserialize<'de> for MergeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = MergeEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge: two tokens in a list, or with a blank between them")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<MergeEntry, E> {
                match text.split_once(' ') {
                    Some((left, right)) if !right.contains(' ') => {
                        Ok(MergeEntry(left.to_owned(), right.to_owned()))
                    }
                    _ => Err(E::custom(format_args!(
                        "merge {text:?} is not two tokens with a blank between them"
                    ))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MergeEntry, A::Error> {
                let mut side = || seq.next_element::<String>();
                match (side()?, side()?, side()?) {
                    (Some(left), Some(right), None) => Ok(MergeEntry(left, right)),
                    _ => Err(A::Error::custom("a merge has two tokens")),
                }
            }
        }
        deserializer.deserialize_any(Entry)
    }
}

/// What the JSON says; an error names the field, by its path, and line and column.
fn parse<'f, T: Deserialize<'f>>(file: &'f [u8]) -> Result<T, LoadError> {
    let mut deserializer = serde_json::Deserializer::from_slice(file);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        LoadError::caused(if path == "." { "" } else { &path }, error.into_inner())
    })?;
    let end = deserializer.end();
    end.map_err(|error| LoadError::caused("", error))?;
    Ok(value)
}

impl File {
    fn read(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        if file.len() > limits.file {
            return Err(LoadError::at(
                "",
                format_args!("the file is over {} bytes", limits.file),
            ));
        }
        let kind: Kind = parse(file)?;
        match kind.model.kind.as_deref() {
            None | Some("BPE") => parse(file),
            Some(other) => Err(LoadError::unsupported("model.type", other)),
        }
    }

    /// Whether tokens are spelled in the byte-level alphabet.
    fn is_byte_level(&self) -> bool {
        [&self.pre_tokenizer, &self.normalizer, &self.decoder]
            .into_iter()
            .any(names_byte_level)
    }

    fn dictionary(&self, limits: &ReadLimits) -> Result<Dictionary, LoadError> {
        let model = &self.model;
        for (index, token) in self.added_tokens.iter().enumerate() {
            if token.content.len() > limits.token {
                return Err(LoadError::at(
                    format!("added_tokens[{index}]"),
                    format_args!("the token is over {} bytes", limits.token),
                ));
            }
        }
        if model.dropout.is_some_and(|dropout| dropout != 0.0) {
            return Err(LoadError::unsupported("model.dropout", "dropout"));
        }
        let affixes = [
            (
                "continuing_subword_prefix",
                &model.continuing_subword_prefix,
            ),
            ("end_of_word_suffix", &model.end_of_word_suffix),
        ];
        for (name, affix) in affixes {
            if affix.as_ref().is_some_and(|affix| !affix.is_empty()) {
                return Err(LoadError::unsupported(format!("model.{name}"), name));
            }
        }
        let byte_level = self.is_byte_level();
        let spelling = Spelling {
            byte_level,
            byte_fallback: model.byte_fallback && !byte_level,
        };
        let added: HashMap<TokenId, &str> = self
            .added_tokens
            .iter()
            .map(|token| (token.id, token.content.as_str()))
            .collect();
        let mut tokens = Vec::with_capacity(model.vocab.0.len());
        let mut fallback = Vec::new();
        let left_out = self.left_out_specials(model);
        for (text, id) in &model.vocab.0 {
            if left_out.get(id) == Some(&text.as_str()) {
                continue;
            }
            if let Some(byte) = spelling.fallback_byte(text) {
                fallback.push((*id, byte));
                continue;
            }
            let bytes = match spelling.bytes(text) {
                Ok(bytes) => bytes,
                // Added tokens are spelled as they are.
                Err(_) if added.get(id) == Some(&text.as_str()) => continue,
                Err(error) => {
                    return Err(LoadError::caused(format!("model.vocab[{text:?}]"), error));
                }
            };
            if bytes.len() > limits.token {
                return Err(LoadError::at(
                    format!("model.vocab, id {id}"),
                    format_args!("the token is over {} bytes", limits.token),
                ));
            }
            tokens.push((*id, bytes));
        }
        let vocabulary = Vocabulary::with_byte_fallback(tokens, fallback)
            .map_err(|error| LoadError::caused("model.vocab", error))?;
        let merges = model.merges.iter().enumerate().map(|(index, merge)| {
            let side = |text: &str| {
                spelling.id_of(&vocabulary, text).ok_or_else(|| {
                    LoadError::at(
                        format!("model.merges[{index}]"),
                        format_args!("{text:?} is not in the vocabulary"),
                    )
                })
            };
            Ok((side(&merge.0)?, side(&merge.1)?))
        });
        let merges = merges.collect::<Result<Vec<_>, LoadError>>()?;
        let unknown = match &model.unk_token {
            Some(text) if !byte_level => {
                Some(vocabulary.id_of(text.as_bytes()).ok_or_else(|| {
                    LoadError::at(
                        "model.unk_token",
                        format_args!("{text:?} is not in the vocabulary"),
                    )
                })?)
            }
            _ => None,
        };
        let dictionary = Dictionary::from_merges(vocabulary, merges).map_err(|error| {
            let place = error.merge_index().map(|index| format!("[{index}]"));
            LoadError::caused(format!("model.merges{}", place.unwrap_or_default()), error)
        })?;
        let dictionary = dictionary.with_whole_piece_lookup(model.ignore_merges);
        if byte_level {
            let missing = dictionary.missing_bytes().next();
            return match missing {
                None => Ok(dictionary),
                Some(byte) => Err(LoadError::at(
                    "model.vocab",
                    format_args!("no token for the single byte 0x{byte:02X}"),
                )),
            };
        }
        let atoms = Atoms::Characters {
            unknown,
            fuse_unknown: model.fuse_unk,
        };
        dictionary
            .with_atoms(atoms)
            .map_err(|error| LoadError::caused("model.unk_token", error))
    }

    /// Ids and texts of the special tokens that are no part of the dictionary: with whole-piece
    /// look-up they would be made of text. Those that a merge names or makes are needed, and so is
    /// the unknown token.
    fn left_out_specials(&self, model: &BpeModel) -> HashMap<TokenId, &str> {
        let mut specials: HashMap<TokenId, &str> = self
            .added_tokens
            .iter()
            .filter(|token| token.special && Some(&token.content) != model.unk_token.as_ref())
            .map(|token| (token.id, token.content.as_str()))
            .collect();
        if !specials.is_empty() {
            let texts: HashSet<&str> = specials.values().copied().collect();
            let mut needed = HashSet::new();
            for MergeEntry(left, right) in &model.merges {
                for text in [left.clone(), right.clone(), [&left[..], right].concat()] {
                    if texts.contains(text.as_str()) {
                        needed.insert(text);
                    }
                }
            }
            specials.retain(|_, text| !needed.contains(*text));
        }
        specials
    }

    /// Refuses what a tokenizer may have and is not done here.
    fn check_supported(&self) -> Result<(), LoadError> {
        if !is_nothing(&self.normalizer, "normalizers") {
            return Err(unsupported_type("normalizer", &self.normalizer));
        }
        check_post_processor("post_processor", &self.post_processor)?;
        if !self.decoder.is_null() && self.decoder["type"] != "ByteLevel" {
            return Err(unsupported_type("decoder", &self.decoder));
        }
        for (index, token) in self.added_tokens.iter().enumerate() {
            if token.content.is_empty() {
                let place = format!("added_tokens[{index}].content");
                return Err(LoadError::at(place, "the text is empty"));
            }
            let flags = [
                ("single_word", token.single_word),
                ("lstrip", token.lstrip),
                ("rstrip", token.rstrip),
            ];
            if let Some((flag, _)) = flags.into_iter().find(|(_, on)| *on) {
                return Err(LoadError::unsupported(
                    format!("added_tokens[{index}] ({:?})", token.content),
                    flag,
                ));
            }
        }
        self.check_passes()
    }

    /// `tokenizers` looks for added tokens that are not normalized first, and for the others in what
    /// is left. One leftmost-longest search gives the same if no token of one kind can overlap one
    /// of the other.
    fn check_passes(&self) -> Result<(), LoadError> {
        let (second, first): (Vec<_>, Vec<_>) =
            self.added_tokens.iter().partition(|token| token.normalized);
        let overlap = |a: &str, b: &str| {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            let mut joints = 1..a.len().min(b.len());
            a.windows(b.len().max(1)).any(|part| part == b)
                || b.windows(a.len().max(1)).any(|part| part == a)
                || joints.any(|len| a.ends_with(&b[..len]) || b.ends_with(&a[..len]))
        };
        let bytes = |tokens: &[&AddedToken]| -> usize {
            tokens.iter().map(|token| token.content.len()).sum()
        };
        if bytes(&first).saturating_mul(bytes(&second)) > MOST_COMPARISONS {
            return Err(LoadError::unsupported(
                "added_tokens",
                "so many normalized and other added tokens in one file",
            ));
        }
        for token in second {
            if let Some(other) = first.iter().find(|a| overlap(&a.content, &token.content)) {
                return Err(LoadError::unsupported(
                    format!("added_tokens ({:?}, {:?})", other.content, token.content),
                    "an overlap of normalized and other added tokens",
                ));
            }
        }
        Ok(())
    }

    /// The patterns of the pre-tokenizer, in order.
    fn patterns(&self) -> Result<Vec<Pattern>, LoadError> {
        let mut stages = Stages::default();
        stages.append("pre_tokenizer", &self.pre_tokenizer)?;
        if names_byte_level(&self.decoder) && !stages.is_byte_level {
            let what = "ByteLevel without a pre-tokenizer ByteLevel";
            return Err(LoadError::unsupported("decoder", what));
        }
        Ok(stages.patterns)
    }
}

/// Comparisons of one byte of an added token with one of another: deepseek_v3 needs some 4 million.
const MOST_COMPARISONS: usize = 100_000_000;

/// How a file writes tokens.
struct Spelling {
    byte_level: bool,
    byte_fallback: bool,
}

impl Spelling {
    fn bytes(&self, text: &str) -> Result<Vec<u8>, String> {
        match self.byte_level {
            true => byte_level::decode(text)
                .map_err(|character| format!("{character:?} is not in the byte-level alphabet")),
            false => Ok(text.as_bytes().to_vec()),
        }
    }

    /// The byte of a fallback token, `<0x0A>`.
    fn fallback_byte(&self, text: &str) -> Option<u8> {
        let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
        let is_upper_hex = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
        let is_byte = digits.len() == 2 && digits.bytes().all(is_upper_hex);
        match self.byte_fallback && is_byte {
            true => u8::from_str_radix(digits, 16).ok(),
            false => None,
        }
    }

    fn id_of(&self, vocabulary: &Vocabulary, text: &str) -> Option<TokenId> {
        match self.fallback_byte(text) {
            Some(byte) => vocabulary.byte_fallback(byte),
            None => vocabulary.id_of(&self.bytes(text).ok()?),
        }
    }
}

/// Whether a step, or one inside it, is `ByteLevel`.
fn names_byte_level(step: &Value) -> bool {
    let parts = ["pretokenizers", "normalizers", "decoders"];
    let inside = parts.iter().filter_map(|part| step[*part].as_array());
    step["type"] == "ByteLevel" || inside.flatten().any(names_byte_level)
}

/// Null, or a sequence without steps.
fn is_nothing(step: &Value, steps: &str) -> bool {
    let is_empty = || step[steps].as_array().is_some_and(Vec::is_empty);
    step.is_null() || step["type"] == "Sequence" && is_empty()
}

/// Post-processors that add tokens around a text or mend offsets change no token of the text.
fn check_post_processor(place: &str, step: &Value) -> Result<(), LoadError> {
    match step["type"].as_str() {
        None if step.is_null() => Ok(()),
        Some("ByteLevel" | "TemplateProcessing") => Ok(()),
        Some("Sequence") => {
            let steps = list(place, step, "processors")?;
            steps.iter().enumerate().try_for_each(|(index, step)| {
                check_post_processor(&format!("{place}.processors[{index}]"), step)
            })
        }
        _ => Err(unsupported_type(place, step)),
    }
}

/// The stages of a pre-tokenizer so far.
#[derive(Default)]
struct Stages {
    patterns: Vec<Pattern>,
    /// What comes after `ByteLevel` sees the characters that stand for bytes, and not the text.
    is_byte_level: bool,
}

impl Stages {
    fn append(&mut self, place: &str, step: &Value) -> Result<(), LoadError> {
        let kind = step["type"].as_str();
        if self.is_byte_level && matches!(kind, Some("ByteLevel" | "Split")) {
            return Err(LoadError::unsupported(place, "a stage after ByteLevel"));
        }
        match kind {
            None if step.is_null() => Ok(()),
            Some("Sequence") => {
                let steps = list(place, step, "pretokenizers")?;
                steps.iter().enumerate().try_for_each(|(index, step)| {
                    self.append(&format!("{place}.pretokenizers[{index}]"), step)
                })
            }
            Some("ByteLevel") => {
                self.is_byte_level = true;
                if flag(place, step, "add_prefix_space", true)? {
                    let place = format!("{place}.add_prefix_space");
                    return Err(LoadError::unsupported(place, "a prefixed blank"));
                }
                match flag(place, step, "use_regex", true)? {
                    true => self.push(place, Pattern::gpt2()),
                    false => Ok(()),
                }
            }
            Some("Split") => self.push(place, split_pattern(place, step)?),
            _ => Err(unsupported_type(place, step)),
        }
    }

    /// A file may not ask for more automata than a tokenizer has stages.
    fn push(&mut self, place: &str, pattern: Pattern) -> Result<(), LoadError> {
        if self.patterns.len() == MOST_STAGES {
            let what = "so long a sequence of patterns";
            return Err(LoadError::unsupported(place, what));
        }
        self.patterns.push(pattern);
        Ok(())
    }
}

/// The pattern of a `Split` that keeps both what the pattern matches and what it does not: the
/// behaviour `Isolated`, and `Removed` inverted, which drops what is not matched, where nothing is
/// left unmatched.
fn split_pattern(place: &str, step: &Value) -> Result<Pattern, LoadError> {
    let pattern = match &step["pattern"] {
        Value::Object(object) => match (object.get("Regex"), object.get("String")) {
            (Some(Value::String(regex)), None) => oniguruma(place, regex)?,
            (None, Some(Value::String(text))) => Pattern::new(&escaped(text)),
            _ => return Err(malformed(place, "pattern")),
        },
        _ => return Err(malformed(place, "pattern")),
    };
    let invert = flag(place, step, "invert", false)?;
    let behavior = step["behavior"]
        .as_str()
        .ok_or(malformed(place, "behavior"))?;
    let covers_all = pattern
        .family()
        .is_some_and(|family| family.covers_every_text());
    match (behavior, invert) {
        ("Isolated", _) => Ok(pattern),
        ("Removed", true) if covers_all => Ok(pattern),
        _ => {
            let inverted = if invert { ", inverted," } else { "" };
            Err(LoadError::unsupported(
                format!("{place}.behavior"),
                format!("{behavior}{inverted} with this pattern"),
            ))
        }
    }
}

/// The pattern that `tokenizers` compiles with Oniguruma, in Ruby's syntax. What means something else
/// there is refused: `^` and `$` stand at lines, `(?m)` is about the full stop, `\Z` comes before a last
/// newline. Patterns of a known family have none of it.
fn oniguruma(place: &str, regex: &str) -> Result<Pattern, LoadError> {
    let pattern = Pattern::new(regex);
    if pattern.family().is_some() {
        return Ok(pattern);
    }
    let refused = |what: &str| {
        let what = format!("{what}, which is another thing in Oniguruma's syntax,");
        Err(LoadError::unsupported(format!("{place}.pattern"), what))
    };
    let mut depth = 0_usize;
    let mut characters = regex.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                if let Some(escaped) = characters.next().filter(|next| "ZGKRX".contains(*next)) {
                    return refused(&format!("\\{escaped}"));
                }
            }
            '[' => {
                depth += 1;
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
            }
            ']' => depth = depth.saturating_sub(1),
            '^' | '$' if depth == 0 => return refused(&character.to_string()),
            '(' if depth == 0 && characters.next_if_eq(&'?').is_some() => {
                while let Some(flag) = characters.next_if(|next| next.is_ascii_lowercase()) {
                    if flag == 'm' || flag == 's' {
                        return refused(&format!("the flag {flag}"));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(pattern)
}

/// A regex that matches `text` and nothing else. Only what has a meaning is escaped: an escaped `<`
/// is the start of a word.
fn escaped(text: &str) -> String {
    let mut regex = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            regex.push('\\');
        }
        regex.push(character);
    }
    regex
}

fn list<'v>(place: &str, step: &'v Value, name: &str) -> Result<&'v Vec<Value>, LoadError> {
    step[name].as_array().ok_or_else(|| malformed(place, name))
}

fn flag(place: &str, step: &Value, name: &str, default: bool) -> Result<bool, LoadError> {
    match &step[name] {
        Value::Null => Ok(default),
        Value::Bool(on) => Ok(*on),
        _ => Err(malformed(place, name)),
    }
}

fn malformed(place: &str, name: &str) -> LoadError {
    LoadError::at(format!("{place}.{name}"), "missing or malformed")
}

fn unsupported_type(place: &str, step: &Value) -> LoadError {
    match step["type"].as_str() {
        Some(name) => LoadError::unsupported(format!("{place}.type"), name),
        None => LoadError::at(format!("{place}.type"), "missing or malformed"),
    }
}
