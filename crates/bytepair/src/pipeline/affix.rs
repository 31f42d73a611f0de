//! BPE over characters that are spelled by their place in a piece: `continuing_subword_prefix` before
//! all but the first, `end_of_word_suffix` behind the last. No dictionary says this, since what two
//! tokens make is not what they are spelled as.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use bpe_core::TokenId;
use serde_json::{Value, json};

use crate::error::LoadError;
use crate::pipeline::bpe::check_merges_begin;
use crate::pipeline::file::BpeModel;

/// The model, by the texts of its tokens.
pub(crate) struct AffixModel {
    ids: HashMap<String, TokenId>,
    texts: HashMap<TokenId, String>,
    /// Of two tokens the priority of their rule, and what it makes.
    rules: HashMap<(TokenId, TokenId), (u32, TokenId)>,
    prefix: String,
    suffix: String,
    unknown: Option<TokenId>,
    fuse_unknown: bool,
    whole_piece_lookup: bool,
    byte_fallback: bool,
}

/// A token of a piece that is being merged.
#[derive(Clone, Copy)]
struct Symbol {
    id: TokenId,
    /// Where it ends in the piece. 0 where it has become part of the one before.
    end: usize,
    previous: usize,
    next: usize,
}

const NONE: usize = usize::MAX;

impl AffixModel {
    /// The model of a file.
    ///
    /// # Errors
    ///
    /// Two tokens of one id or one text, a merge of what is no token, an unknown token that is none.
    pub(crate) fn new(model: &BpeModel) -> Result<Self, LoadError> {
        let prefix = model.continuing_subword_prefix.clone().unwrap_or_default();
        let suffix = model.end_of_word_suffix.clone().unwrap_or_default();
        let mut ids = HashMap::with_capacity(model.vocab.len());
        let mut texts = HashMap::with_capacity(model.vocab.len());
        for (text, id) in model.vocab.iter() {
            let wrong = |what: &str| {
                let reason = format!("{text:?} (id {id}): {what}");
                LoadError::at("model.vocab", reason)
            };
            if ids.insert(text.to_owned(), id).is_some() {
                return Err(wrong("the text comes twice"));
            }
            if texts.insert(id, text.to_owned()).is_some() {
                return Err(wrong("the id comes twice"));
            }
        }
        let mut rules = HashMap::with_capacity(model.merges.len());
        for (index, (left, right)) in model.merges.iter().enumerate() {
            let wrong = |reason: String| LoadError::at(format!("model.merges[{index}]"), reason);
            let id = |text: &str| {
                let id = ids.get(text).copied();
                id.ok_or_else(|| wrong(format!("{text:?} is not in the vocabulary")))
            };
            let behind = match right.strip_prefix(prefix.as_str()) {
                Some(behind) => behind,
                None => return Err(wrong(format!("{right:?} has no {prefix:?}"))),
            };
            let product = id(&format!("{left}{behind}"))?;
            let priority = u32::try_from(index).map_err(|_| wrong("too many merges".to_owned()))?;
            let sides = (id(left)?, id(right)?);
            if rules.insert(sides, (priority, product)).is_some() {
                return Err(wrong("the merge comes twice".to_owned()));
            }
        }
        check_merges_begin(model)?;
        let unknown = match &model.unk_token {
            None => None,
            Some(text) => Some(ids.get(text).copied().ok_or_else(|| {
                LoadError::at(
                    "model.unk_token",
                    format_args!("{text:?} is not in the vocabulary"),
                )
            })?),
        };
        Ok(Self {
            ids,
            texts,
            rules,
            prefix,
            suffix,
            unknown,
            fuse_unknown: model.fuse_unk,
            whole_piece_lookup: model.ignore_merges,
            byte_fallback: model.byte_fallback,
        })
    }

    /// The text of token `id`, as the file spells it.
    pub(crate) fn token_text(&self, id: TokenId) -> Option<&str> {
        self.texts.get(&id).map(String::as_str)
    }

    pub(crate) fn max_id(&self) -> Option<TokenId> {
        self.texts.keys().copied().max()
    }

    /// The model as a file says it.
    pub(crate) fn to_json(&self) -> Value {
        let text = |id: TokenId| self.token_text(id).unwrap_or_default();
        let mut rules: Vec<_> = self.rules.iter().collect();
        rules.sort_unstable_by_key(|(_, (priority, _))| *priority);
        let merges: Vec<[&str; 2]> = rules
            .iter()
            .map(|((left, right), _)| [text(*left), text(*right)])
            .collect();
        let vocab: BTreeMap<&str, TokenId> = self
            .ids
            .iter()
            .map(|(text, id)| (text.as_str(), *id))
            .collect();
        json!({
            "type": "BPE", "dropout": null, "unk_token": self.unknown.map(text),
            "continuing_subword_prefix": self.prefix, "end_of_word_suffix": self.suffix,
            "fuse_unk": self.fuse_unknown, "byte_fallback": self.byte_fallback,
            "ignore_merges": self.whole_piece_lookup,
            "vocab": vocab, "merges": merges,
        })
    }

    /// Appends the tokens of `piece` to `ids`, and to `ends` where each ends in it. O(n log n) for n
    /// characters.
    ///
    /// # Errors
    ///
    /// The place of a character that no token stands for.
    pub(crate) fn encode_piece(
        &self,
        piece: &str,
        ids: &mut Vec<TokenId>,
        ends: &mut Vec<usize>,
    ) -> Result<(), (usize, char)> {
        if self.whole_piece_lookup
            && let Some(&id) = self.ids.get(piece)
        {
            ids.push(id);
            ends.push(piece.len());
            return Ok(());
        }
        let mut symbols = self.atoms(piece)?;
        self.merge(&mut symbols);
        for symbol in symbols.iter().filter(|symbol| symbol.end > 0) {
            ids.push(symbol.id);
            ends.push(symbol.end);
        }
        Ok(())
    }

    /// The tokens of single characters.
    fn atoms(&self, piece: &str) -> Result<Vec<Symbol>, (usize, char)> {
        let mut atoms: Vec<Symbol> = Vec::with_capacity(piece.len());
        let mut last_is_unknown = false;
        let mut text = String::new();
        for (start, character) in piece.char_indices() {
            let end = start + character.len_utf8();
            text.clear();
            if start > 0 {
                text.push_str(&self.prefix);
            }
            text.push(character);
            if end == piece.len() {
                text.push_str(&self.suffix);
            }
            let push = |atoms: &mut Vec<Symbol>, id, end| {
                let index = atoms.len();
                atoms.push(Symbol {
                    id,
                    end,
                    previous: index.wrapping_sub(1),
                    next: index + 1,
                });
            };
            if let Some(&id) = self.ids.get(&text) {
                push(&mut atoms, id, end);
                last_is_unknown = false;
                continue;
            }
            if let Some(bytes) = self.bytes(&text) {
                // Those of an affix cover nothing of the piece: the last one takes what is left.
                let count = bytes.len();
                for (index, id) in bytes.into_iter().enumerate() {
                    let covered = match index + 1 == count {
                        true => end,
                        false => (start + index + 1).min(end),
                    };
                    push(&mut atoms, id, covered);
                }
                last_is_unknown = false;
                continue;
            }
            let unknown = self.unknown.ok_or((start, character))?;
            match atoms.last_mut() {
                Some(last) if last_is_unknown && self.fuse_unknown => last.end = end,
                _ => push(&mut atoms, unknown, end),
            }
            last_is_unknown = true;
        }
        if let Some(last) = atoms.last_mut() {
            last.next = NONE;
        }
        Ok(atoms)
    }

    /// The tokens of the bytes of `text`, where there are such and all of them.
    fn bytes(&self, text: &str) -> Option<Vec<TokenId>> {
        if !self.byte_fallback {
            return None;
        }
        let of_byte = |byte| self.ids.get(&format!("<0x{byte:02X}>")).copied();
        text.bytes().map(of_byte).collect()
    }

    /// Always the neighbours of best priority, the leftmost first.
    fn merge(&self, symbols: &mut [Symbol]) {
        let rule = |symbols: &[Symbol], left: usize| {
            let first = symbols.get(left)?;
            let second = symbols.get(first.next)?;
            self.rules.get(&(first.id, second.id)).copied()
        };
        let mut waiting: BinaryHeap<Reverse<(u32, usize, TokenId)>> = (0..symbols.len())
            .filter_map(|left| {
                rule(symbols, left).map(|(priority, id)| Reverse((priority, left, id)))
            })
            .collect();
        while let Some(Reverse((priority, left, product))) = waiting.pop() {
            let is_there = symbols.get(left).is_some_and(|symbol| symbol.end > 0);
            if !is_there || rule(symbols, left) != Some((priority, product)) {
                continue;
            }
            let right = symbols[left].next;
            let Symbol { end, next, .. } = symbols[right];
            symbols[left] = Symbol {
                id: product,
                end,
                next,
                ..symbols[left]
            };
            symbols[right].end = 0;
            if let Some(after) = symbols.get_mut(next) {
                after.previous = left;
            }
            let previous = symbols[left].previous;
            for place in [previous, left] {
                if let Some((priority, id)) = rule(symbols, place) {
                    waiting.push(Reverse((priority, place, id)));
                }
            }
        }
    }
}
