//! From the BPE model of a file to a dictionary.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bpe_core::{Atoms, Dictionary, ReadLimits, TokenId, Vocabulary, byte_level};

use crate::error::LoadError;
use crate::pipeline::description::Description;
use crate::pipeline::file::{AddedToken, BpeModel};
use crate::pipeline::plan::Plan;
use crate::pipeline::texts::Vocab;

/// How a file writes tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spelling {
    /// Each byte as the character that stands for it.
    pub(crate) byte_level: bool,
    /// `<0x0A>` is the byte and not its text.
    pub(crate) byte_fallback: bool,
    /// The character that stands for a blank, where texts are not rewritten but the vocabulary is.
    pub(crate) blank: Option<char>,
}

impl Spelling {
    /// How tokens are spelled where a plan is followed.
    pub(crate) fn of(model: &BpeModel, description: &Description, plan: &Plan) -> Self {
        let byte_level = description.is_byte_level();
        Self {
            byte_level,
            byte_fallback: model.byte_fallback && !byte_level,
            blank: plan.blank,
        }
    }

    /// Appends the bytes that a token stands for.
    fn append(self, text: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
        if self.byte_level {
            return byte_level::decode_into(text, bytes)
                .map_err(|character| format!("{character:?} is not in the byte-level alphabet"));
        }
        let mut rest = text.as_bytes();
        if let Some(blank) = self.blank {
            let mut written = [0; 4];
            let blank = blank.encode_utf8(&mut written);
            // In UTF-8 no character begins inside another.
            while let Some(&first) = rest.first() {
                if let Some(behind) = rest.strip_prefix(blank.as_bytes()) {
                    bytes.push(b' ');
                    rest = behind;
                } else {
                    bytes.push(first);
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        }
        bytes.extend_from_slice(rest);
        Ok(())
    }

    /// The byte of a fallback token, `<0x0A>`.
    fn fallback_byte(self, text: &str) -> Option<u8> {
        if !self.byte_fallback {
            return None;
        }
        let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
        let is_upper_hex = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
        let is_byte = digits.len() == 2 && digits.bytes().all(is_upper_hex);
        match is_byte {
            true => u8::from_str_radix(digits, 16).ok(),
            false => None,
        }
    }

    /// The token that `text` spells; `bytes` is memory to use.
    fn id_of(self, vocabulary: &Vocabulary, text: &str, bytes: &mut Vec<u8>) -> Option<TokenId> {
        if let Some(byte) = self.fallback_byte(text) {
            return vocabulary.byte_fallback(byte);
        }
        bytes.clear();
        self.append(text, bytes).ok()?;
        vocabulary.id_of(bytes)
    }
}

/// The dictionary of `model`, whose tokens are spelled so. Special tokens that stand in the vocabulary
/// too are left out, since no text may make them; but for those that the model needs, and those that
/// `may_be_piece` says of that a piece may be their text though they are looked for before.
pub(crate) fn dictionary(
    model: &BpeModel,
    added_tokens: &[AddedToken],
    spelling: Spelling,
    may_be_piece: impl Fn(&AddedToken) -> bool,
    limits: &ReadLimits,
) -> Result<Dictionary, LoadError> {
    let left_out = left_out_specials(model, added_tokens, spelling, may_be_piece);
    let vocabulary = vocabulary(model, added_tokens, spelling, &left_out, limits)?;
    let sides = sides(model, spelling, &vocabulary)?;
    check_merges_begin(model)?;
    let unknown = match &model.unk_token {
        Some(text) if !spelling.byte_level => {
            let id = spelling.id_of(&vocabulary, text, &mut Vec::new());
            Some(id.ok_or_else(|| {
                LoadError::at(
                    "model.unk_token",
                    format_args!("{text:?} is not in the vocabulary"),
                )
            })?)
        }
        _ => None,
    };
    let dictionary = Dictionary::from_merges(vocabulary, sides).map_err(|error| {
        let place = error.merge_index().map(|index| format!("[{index}]"));
        LoadError::caused(format!("model.merges{}", place.unwrap_or_default()), error)
    })?;
    let dictionary = dictionary.with_whole_piece_lookup(model.ignore_merges);
    if spelling.byte_level {
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

/// The tokens of `model` but for those that are left out.
fn vocabulary(
    model: &BpeModel,
    added_tokens: &[AddedToken],
    spelling: Spelling,
    left_out: &HashMap<TokenId, &str>,
    limits: &ReadLimits,
) -> Result<Vocabulary, LoadError> {
    let listed = AddedIndex::new(added_tokens.iter());
    // The bytes of all tokens, and where those of each end.
    let mut all = Vec::with_capacity(model.vocab.bytes());
    let mut tokens = Vec::with_capacity(model.vocab.len());
    let mut fallback = Vec::new();
    for (text, id) in model.vocab.iter() {
        if !left_out.is_empty() && left_out.get(&id) == Some(&text) {
            continue;
        }
        if let Some(byte) = spelling.fallback_byte(text) {
            fallback.push((id, byte));
            continue;
        }
        let start = all.len();
        if let Err(error) = spelling.append(text, &mut all) {
            // Added tokens are spelled as they are.
            if listed
                .with_id(id)
                .is_some_and(|token| token.content == text)
            {
                continue;
            }
            return Err(LoadError::caused(format!("model.vocab[{text:?}]"), error));
        }
        if all.len() - start > limits.token {
            return Err(LoadError::at(
                format!("model.vocab, id {id}"),
                format_args!("the token is over {} bytes", limits.token),
            ));
        }
        tokens.push((id, start..all.len()));
    }
    if model.ignore_merges && !fallback.is_empty() {
        // There a whole piece of such a token's text is the token.
        let what = "with tokens that stand for bytes";
        return Err(LoadError::unsupported("model.ignore_merges", what));
    }
    let tokens = tokens
        .into_iter()
        .map(|(id, range)| (id, all.get(range).unwrap_or_default()));
    Vocabulary::with_byte_fallback(tokens, fallback)
        .map_err(|error| LoadError::caused("model.vocab", error))
}

/// The sides of each merge.
fn sides(
    model: &BpeModel,
    spelling: Spelling,
    vocabulary: &Vocabulary,
) -> Result<Vec<(TokenId, TokenId)>, LoadError> {
    /// So many are looked up together.
    const AT_ONCE: usize = 1024;
    let mut sides = Vec::with_capacity(model.merges.len());
    let mut texts = Vec::with_capacity(2 * AT_ONCE);
    let mut ids = Vec::with_capacity(2 * AT_ONCE);
    let (mut bytes, mut ranges) = (Vec::new(), Vec::with_capacity(2 * AT_ONCE));
    let mut merges = model.merges.iter();
    loop {
        texts.clear();
        let some = merges.by_ref().take(AT_ONCE);
        texts.extend(some.flat_map(|(left, right)| [left, right]));
        if texts.is_empty() {
            return Ok(sides);
        }
        bytes.clear();
        ranges.clear();
        for text in &texts {
            let start = bytes.len();
            // What cannot be spelled is no token: the empty text is none either.
            if spelling.append(text, &mut bytes).is_err() {
                bytes.truncate(start);
            }
            ranges.push(start..bytes.len());
        }
        let token = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        let tokens: Vec<&[u8]> = ranges.iter().map(token).collect();
        ids.clear();
        vocabulary.ids_of(&tokens, &mut ids);
        let first = 2 * sides.len();
        for (index, (text, id)) in texts.iter().zip(&mut ids).enumerate() {
            if let Some(byte) = spelling.fallback_byte(text) {
                *id = vocabulary.byte_fallback(byte);
            }
            if id.is_none() {
                return Err(LoadError::at(
                    format!("model.merges[{}]", (first + index) / 2),
                    format_args!("{text:?} is not in the vocabulary"),
                ));
            }
        }
        let found =
            |side: &[Option<TokenId>]| Some((*side.first()?.as_ref()?, *side.last()?.as_ref()?));
        sides.extend(ids.chunks_exact(2).filter_map(found));
    }
}

/// Refuses merges of which none joins two tokens that a text has before the first merge: characters, bytes, the
/// unknown token. None of them would ever be applied.
pub(crate) fn check_merges_begin(model: &BpeModel) -> Result<(), LoadError> {
    let prefix = model.continuing_subword_prefix.as_deref().unwrap_or("");
    let suffix = model.end_of_word_suffix.as_deref().unwrap_or("");
    let is_character = |text: &str| text.chars().nth(1).is_none();
    let has_character =
        |text: &str| is_character(text) || text.strip_suffix(suffix).is_some_and(is_character);
    let is_first = |text: &str| {
        has_character(text)
            || text.strip_prefix(prefix).is_some_and(has_character)
            || (model.byte_fallback && text.starts_with("<0x"))
            || Some(text) == model.unk_token.as_deref()
    };
    let mut merges = model.merges.iter();
    let none = model.merges.len() == 0;
    match none || merges.any(|(left, right)| is_first(left) && is_first(right)) {
        true => Ok(()),
        false => Err(LoadError::at(
            "model.merges",
            "none of them joins two single characters, so none is ever applied",
        )),
    }
}

/// Ids and texts of the special tokens that stand in the vocabulary and are no part of the dictionary: with
/// whole-piece look-up they would be made of text. Those that a merge names or makes are needed, and so
/// are the unknown token, single characters and tokens that stand for a byte.
fn left_out_specials<'m>(
    model: &BpeModel,
    added_tokens: &'m [AddedToken],
    spelling: Spelling,
    may_be_piece: impl Fn(&AddedToken) -> bool,
) -> HashMap<TokenId, &'m str> {
    let is_special = |token: &&AddedToken| {
        token.special
            && Some(&token.content) != model.unk_token.as_ref()
            && token.content.chars().nth(1).is_some()
            && spelling.fallback_byte(&token.content).is_none()
            && !(model.ignore_merges && may_be_piece(token))
    };
    let listed = AddedIndex::new(added_tokens.iter().filter(is_special));
    let mut specials = HashMap::new();
    for (text, id) in model.vocab.iter() {
        if let Some(token) = listed.with_id(id)
            && token.content == text
        {
            specials.insert(id, token.content.as_str());
        }
    }
    let is_left_out = |token: &&AddedToken| specials.contains_key(&token.id);
    let listed = AddedIndex::new(added_tokens.iter().filter(is_special).filter(is_left_out));
    let mut needed = HashSet::new();
    let mut product = String::new();
    for (left, right) in model.merges.iter() {
        if listed.may_have_text(left, left.len() + right.len()) {
            product.clear();
            product.push_str(left);
            product.push_str(right);
            needed.extend(listed.with_text(&product).map(|token| token.id));
        }
        for side in [left, right] {
            needed.extend(listed.with_text(side).map(|token| token.id));
        }
    }
    specials.retain(|id, _| !needed.contains(id));
    specials
}

/// Added tokens by id and by text. It is asked of every token of a vocabulary, and most of them can be told to be
/// none without looking them up.
struct AddedIndex<'a> {
    by_text: HashMap<&'a str, &'a AddedToken>,
    by_id: HashMap<TokenId, &'a AddedToken>,
    least_id: TokenId,
    /// The bits of the lengths and of the first bytes that texts have.
    lengths: u64,
    first_bytes: [u64; 4],
}

impl<'a> AddedIndex<'a> {
    fn new(tokens: impl Iterator<Item = &'a AddedToken>) -> Self {
        let mut index = Self {
            by_text: HashMap::new(),
            by_id: HashMap::new(),
            least_id: TokenId::MAX,
            lengths: 0,
            first_bytes: [0; 4],
        };
        for token in tokens {
            index.by_text.insert(&token.content, token);
            index.by_id.insert(token.id, token);
            index.least_id = index.least_id.min(token.id);
            index.lengths |= 1 << token.content.len().min(63);
            let (word, bit) = first_byte(&token.content);
            index.first_bytes[word] |= bit;
        }
        index
    }

    fn with_id(&self, id: TokenId) -> Option<&'a AddedToken> {
        match id >= self.least_id {
            true => self.by_id.get(&id).copied(),
            false => None,
        }
    }

    /// Whether a text that begins as `beginning` does and has `len` bytes may be one.
    #[inline]
    fn may_have_text(&self, beginning: &str, len: usize) -> bool {
        let (word, bit) = first_byte(beginning);
        self.lengths >> len.min(63) & 1 == 1 && self.first_bytes[word] & bit != 0
    }

    #[inline]
    fn with_text(&self, text: &str) -> Option<&'a AddedToken> {
        match self.may_have_text(text, text.len()) {
            true => self.by_text.get(text).copied(),
            false => None,
        }
    }
}

/// The word of a set of bytes, and the bit in it, of the first byte of `text`.
#[inline]
fn first_byte(text: &str) -> (usize, u64) {
    let first = text.bytes().next().unwrap_or_default();
    (usize::from(first >> 6), 1 << (first & 63))
}

/// Refuses what a BPE model may ask for and no dictionary says.
pub(crate) fn check_supported(model: &BpeModel) -> Result<(), LoadError> {
    if model.dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err(LoadError::unsupported("model.dropout", "dropout"));
    }
    Ok(())
}

/// The ids of the added tokens that the vocabulary has too. Refuses one that it has under another id, or
/// whose id another token has.
pub(crate) fn check_added(
    vocab: &Vocab,
    added_tokens: &[AddedToken],
) -> Result<HashSet<TokenId>, LoadError> {
    let mut in_vocabulary = HashSet::new();
    let listed = AddedIndex::new(added_tokens.iter());
    let place = |wanted: &AddedToken| {
        let mut places = added_tokens.iter();
        places
            .position(|token| std::ptr::eq(token, wanted))
            .unwrap_or_default()
    };
    for (text, id) in vocab.iter() {
        if let Some(token) = listed.with_text(text)
            && token.id != id
        {
            return Err(LoadError::at(
                format!("added_tokens[{}] ({text:?})", place(token)),
                format_args!("the vocabulary has the same text with the id {id}"),
            ));
        }
        if let Some(token) = listed.with_id(id) {
            if token.content != text {
                return Err(LoadError::at(
                    format!("added_tokens[{}].id", place(token)),
                    format_args!("the vocabulary has {text:?} with the id {id}"),
                ));
            }
            in_vocabulary.insert(id);
        }
    }
    Ok(in_vocabulary)
}
