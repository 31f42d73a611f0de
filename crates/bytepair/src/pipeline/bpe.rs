//! From the BPE model of a file to a dictionary.

use std::collections::{HashMap, HashSet};

use bpe_core::gpt2::VocabEntries;
use bpe_core::{Atoms, Dictionary, ReadLimits, TokenId, Vocabulary, byte_level};

use crate::error::LoadError;
use crate::pipeline::description::Description;
use crate::pipeline::file::{AddedToken, BpeModel, MergeEntry};
use crate::pipeline::plan::Plan;

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

    /// The bytes that a token stands for.
    pub(crate) fn bytes(self, text: &str) -> Result<Vec<u8>, String> {
        if self.byte_level {
            return byte_level::decode(text)
                .map_err(|character| format!("{character:?} is not in the byte-level alphabet"));
        }
        Ok(match self.blank {
            Some(blank) => text.replace(blank, " ").into_bytes(),
            None => text.as_bytes().to_vec(),
        })
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

    fn id_of(self, vocabulary: &Vocabulary, text: &str) -> Option<TokenId> {
        match self.fallback_byte(text) {
            Some(byte) => vocabulary.byte_fallback(byte),
            None => vocabulary.id_of(&self.bytes(text).ok()?),
        }
    }
}

/// The dictionary of `model`, whose tokens are spelled so. Special tokens that stand in the vocabulary
/// too are left out, since no text may make them; but for the unknown token, and for those that a merge
/// names or makes.
pub(crate) fn dictionary(
    model: &BpeModel,
    added_tokens: &[AddedToken],
    spelling: Spelling,
    limits: &ReadLimits,
) -> Result<Dictionary, LoadError> {
    let byte_level = spelling.byte_level;
    let added: HashMap<TokenId, &str> = added_tokens
        .iter()
        .map(|token| (token.id, token.content.as_str()))
        .collect();
    let mut tokens = Vec::with_capacity(model.vocab.0.len());
    let mut fallback = Vec::new();
    let left_out = left_out_specials(model, added_tokens);
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
        Some(text) if !byte_level => Some(spelling.id_of(&vocabulary, text).ok_or_else(|| {
            LoadError::at(
                "model.unk_token",
                format_args!("{text:?} is not in the vocabulary"),
            )
        })?),
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

/// Ids and texts of the special tokens that are no part of the dictionary: with whole-piece look-up
/// they would be made of text. Those that a merge names or makes are needed, and so is the unknown
/// token.
fn left_out_specials<'m>(
    model: &BpeModel,
    added_tokens: &'m [AddedToken],
) -> HashMap<TokenId, &'m str> {
    let mut specials: HashMap<TokenId, &str> = added_tokens
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

/// Refuses what a BPE model may ask for and no dictionary says.
pub(crate) fn check_supported(model: &BpeModel) -> Result<(), LoadError> {
    if model.dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err(LoadError::unsupported("model.dropout", "dropout"));
    }
    Ok(())
}

/// Refuses an added token that the vocabulary has under another id, or whose id another token has.
pub(crate) fn check_added(
    vocab: &VocabEntries,
    added_tokens: &[AddedToken],
) -> Result<(), LoadError> {
    let by_text: HashMap<&str, usize> = added_tokens
        .iter()
        .enumerate()
        .map(|(index, token)| (token.content.as_str(), index))
        .collect();
    let by_id: HashMap<TokenId, usize> = added_tokens
        .iter()
        .enumerate()
        .map(|(index, token)| (token.id, index))
        .collect();
    for (text, id) in &vocab.0 {
        if let Some(&index) = by_text.get(text.as_str())
            && added_tokens[index].id != *id
        {
            return Err(LoadError::at(
                format!("added_tokens[{index}] ({text:?})"),
                format_args!("the vocabulary has the same text with the id {id}"),
            ));
        }
        if let Some(&index) = by_id.get(id)
            && added_tokens[index].content != *text
        {
            return Err(LoadError::at(
                format!("added_tokens[{index}].id"),
                format_args!("the vocabulary has {text:?} with the id {id}"),
            ));
        }
    }
    Ok(())
}
