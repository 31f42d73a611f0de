//! WordPiece: the longest token that begins the word, then the longest that goes on, and so on; the
//! model of BERT.
//!
//! The literal way tries each end for each start, which is quadratic in the longest token and worse.
//! Here the tokens are two tries, one of whole tokens and one of those that go on within a word
//! without their prefix `##`, and each node has a *failure link*: what to do when the next byte does
//! not extend it. Say the tokens are `a`, `abcd`, `##b` and `##cx`. The node `abc` is no token; at
//! it, the longest match must have been `a`, then `##b`, and `c` is begun: so it keeps the tokens
//! `a ##b` and leads to the node `c` of the second trie. A word is read once, byte by byte, and a
//! failure hands out at least one token: O(bytes) in all, whatever the tokens are. (This is the idea
//! of X. Song et al., Fast WordPiece Tokenization, arXiv 2012.15524.) Building is O(bytes of all
//! tokens): along one token, what failure links hand out is no longer than the token.

mod trie;

use std::collections::HashSet;
use std::ops::Range;

use bpe_core::TokenId;

use crate::error::LoadError;
use trie::{CONTINUED, NOWHERE, START, Trie};

/// The model of BERT: words become the longest tokens from the left.
///
/// Where no tokens make up the whole word, or it has too many characters, it is the unknown token.
///
/// ```
/// let tokens = ["[UNK]", "token", "##ize", "##r"];
/// let tokens = tokens.into_iter().zip(0..).map(|(text, id)| (text.to_owned(), id));
/// let model = bytepair::WordPiece::new(tokens, "[UNK]", "##", 100)?;
/// let tokens = model.tokenize("tokenizer");
/// assert_eq!(tokens, [(1, 0..5), (2, 5..8), (3, 8..9)]);
/// assert_eq!(model.tokenize("tokens"), [(0, 0..6)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct WordPiece {
    trie: Trie,
    /// Texts with their ids, by id.
    texts: Vec<(TokenId, Box<str>)>,
    unknown: TokenId,
    continuing_prefix: Box<str>,
    most_characters: usize,
}

impl WordPiece {
    /// The model of these tokens. `continuing_prefix` begins the tokens that go on within a word
    /// (`##`); words of more than `most_characters` are the unknown token (100).
    ///
    /// Cost: O(bytes of all tokens), and sorting them.
    ///
    /// # Errors
    ///
    /// Two tokens with one text or one id, no token `unknown`, or more than 2^32 bytes of tokens.
    pub fn new(
        tokens: impl IntoIterator<Item = (String, TokenId)>,
        unknown: &str,
        continuing_prefix: &str,
        most_characters: usize,
    ) -> Result<Self, LoadError> {
        let mut texts: Vec<(TokenId, Box<str>)> = tokens
            .into_iter()
            .map(|(text, id)| (id, text.into_boxed_str()))
            .collect();
        texts.sort_unstable_by_key(|&(id, _)| id);
        if let Some(pair) = texts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(LoadError::at(
                "model.vocab",
                format_args!(
                    "{:?} and {:?} have the same id {}",
                    pair[0].1, pair[1].1, pair[0].0
                ),
            ));
        }
        let mut known = HashSet::with_capacity(texts.len());
        if let Some((_, text)) = texts.iter().find(|(_, text)| !known.insert(&**text)) {
            let reason = format_args!("{text:?} is there twice");
            return Err(LoadError::at("model.vocab", reason));
        }
        drop(known);
        let unknown_id = texts
            .iter()
            .find(|(_, text)| **text == *unknown)
            .map(|&(id, _)| id)
            .ok_or_else(|| {
                let reason = format_args!("{unknown:?} is not in the vocabulary");
                LoadError::at("model.unk_token", reason)
            })?;
        let trie = Trie::new(&texts, continuing_prefix)
            .ok_or_else(|| LoadError::at("model.vocab", "the tokens have over 2^31 bytes"))?;
        Ok(Self {
            trie,
            texts,
            unknown: unknown_id,
            continuing_prefix: continuing_prefix.into(),
            most_characters,
        })
    }

    /// The tokens of one word, with the bytes of the word that each stands for. Nothing for an empty
    /// word.
    ///
    /// Cost: O(bytes).
    pub fn tokenize(&self, word: &str) -> Vec<(TokenId, Range<usize>)> {
        let mut ends = Vec::new();
        self.tokenize_into(word, &mut ends);
        let mut start = 0;
        let with_range = |(id, end)| (id, std::mem::replace(&mut start, end)..end);
        ends.into_iter().map(with_range).collect()
    }

    /// Appends the tokens of one word, each with the byte of the word at which it ends; the first
    /// begins at 0, the others where the one before ends.
    ///
    /// Cost: O(bytes). Allocates only where `tokens` has to grow.
    pub fn tokenize_into(&self, word: &str, tokens: &mut Vec<(TokenId, usize)>) {
        if word.is_empty() {
            return;
        }
        let before = tokens.len();
        let too_long =
            word.len() > self.most_characters && word.chars().count() > self.most_characters;
        if too_long || self.match_word(word.as_bytes(), tokens).is_none() {
            tokens.truncate(before);
            tokens.push((self.unknown, word.len()));
        }
    }

    /// `None` where the word has no tokens; what was pushed is then to be dropped.
    fn match_word(&self, word: &[u8], tokens: &mut Vec<(TokenId, usize)>) -> Option<()> {
        let mut node = START;
        let mut end = 0;
        for &byte in word {
            node = loop {
                match self.trie.child(node, byte) {
                    NOWHERE => node = self.fail(node, &mut end, tokens)?,
                    child => break child,
                }
            };
        }
        while node != CONTINUED {
            node = self.fail(node, &mut end, tokens)?;
        }
        Some(())
    }

    /// Hands out the tokens that a failure at `node` makes certain, and gives the node to go on at.
    fn fail(&self, node: u32, end: &mut usize, tokens: &mut Vec<(TokenId, usize)>) -> Option<u32> {
        let next = self.trie.failure(node)?;
        let first = tokens.len();
        tokens.extend(self.trie.certain(node));
        // They come last first, with their lengths.
        let certain = tokens.get_mut(first..)?;
        certain.reverse();
        for (_, length) in certain {
            *end += *length;
            *length = *end;
        }
        Some(next)
    }

    /// The id of the token with this text, prefix included.
    pub fn token_id(&self, text: &str) -> Option<TokenId> {
        self.trie.find(text.as_bytes())
    }

    /// The text of a token, prefix included.
    pub fn token_text(&self, id: TokenId) -> Option<&str> {
        let index = self.texts.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        self.texts.get(index).map(|(_, text)| &**text)
    }

    /// The id of the unknown token.
    pub fn unknown_id(&self) -> TokenId {
        self.unknown
    }

    /// What begins the tokens that go on within a word.
    pub fn continuing_prefix(&self) -> &str {
        &self.continuing_prefix
    }

    /// How many characters a word may have that is not the unknown token.
    pub fn most_characters(&self) -> usize {
        self.most_characters
    }

    /// Ids and texts of all tokens, by id.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = (TokenId, &str)> {
        self.texts.iter().map(|(id, text)| (*id, &**text))
    }
}

#[cfg(test)]
mod tests;
