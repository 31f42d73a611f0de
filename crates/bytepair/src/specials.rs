//! Special tokens: matched as text before the pre-tokenizer, never made by merges.

use std::collections::{BTreeSet, HashMap};

use bpe_core::{TokenId, Vocabulary};
use bpe_lexers::SpecialMatcher;

use crate::error::LoadError;

/// What the text of a special token means where it stands in the input.
///
/// The default is [`Specials::AsText`]: text that comes from a user stays text, and never becomes a
/// special token, unless the caller says otherwise.
///
/// ```
/// use bytepair::{Specials, Tokenizer};
///
/// let tokenizer = Tokenizer::o200k_base();
/// let text = "a<|endoftext|>b";
/// assert_eq!(tokenizer.encode(text)?, [64, 27, 91, 419, 1440, 919, 91, 29, 65]);
///
/// let trusting = tokenizer.with_specials(Specials::AllowAll)?;
/// assert_eq!(trusting.encode(text)?, [64, 199999, 65]);
///
/// let strict = tokenizer.with_specials(Specials::Forbid)?;
/// let error = strict.encode(text).unwrap_err();
/// assert_eq!(error.byte_offset(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Specials {
    /// It is text like any other.
    #[default]
    AsText,
    /// The special tokens named here are tokens; others are text.
    Allow(BTreeSet<String>),
    /// All special tokens are tokens.
    AllowAll,
    /// It is an error, which names the token and its offset.
    Forbid,
}

impl Specials {
    /// [`Specials::Allow`] for these texts.
    pub fn allow<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::Allow(texts.into_iter().map(Into::into).collect())
    }
}

/// A token that is matched as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpecialToken {
    pub(crate) text: String,
    pub(crate) id: TokenId,
    pub(crate) kind: SpecialKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecialKind {
    /// Matched where [`Specials`] says so.
    Special,
    /// A second text of a special token: encodes to its id, which decodes to the first.
    Alias,
    /// Matched always: an added token of a `tokenizer.json` that is not special.
    Added,
}

/// The special tokens of a tokenizer, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpecialTable {
    tokens: Vec<SpecialToken>,
    by_id: HashMap<TokenId, usize>,
    by_text: HashMap<String, usize>,
}

impl SpecialTable {
    /// The table of `tokens`, which are not to clash with each other nor with `vocabulary`.
    pub(crate) fn new(
        tokens: Vec<SpecialToken>,
        vocabulary: &Vocabulary,
    ) -> Result<Self, LoadError> {
        let mut by_id = HashMap::new();
        let mut by_text = HashMap::new();
        for (index, token) in tokens.iter().enumerate() {
            let place = || format!("special token {:?}", token.text);
            if token.text.is_empty() {
                return Err(LoadError::at(place(), "the text is empty"));
            }
            if by_text.insert(token.text.clone(), index).is_some() {
                return Err(LoadError::at(place(), "the text comes twice"));
            }
            if token.kind == SpecialKind::Alias {
                continue;
            }
            if by_id.insert(token.id, index).is_some() {
                return Err(LoadError::at(
                    place(),
                    format_args!("another special token has the id {}", token.id),
                ));
            }
            let ordinary = vocabulary.token_bytes(token.id);
            if ordinary.is_some_and(|bytes| bytes != token.text.as_bytes()) {
                return Err(LoadError::at(
                    place(),
                    format_args!("another token has the id {}", token.id),
                ));
            }
        }
        for token in tokens
            .iter()
            .filter(|token| token.kind == SpecialKind::Alias)
        {
            if !by_id.contains_key(&token.id) {
                return Err(LoadError::at(
                    format!("special token {:?}", token.text),
                    format_args!("no special token has the id {}", token.id),
                ));
            }
        }
        Ok(Self {
            tokens,
            by_id,
            by_text,
        })
    }

    pub(crate) fn tokens(&self) -> &[SpecialToken] {
        &self.tokens
    }

    /// The text of the special token `id`.
    pub(crate) fn text(&self, id: TokenId) -> Option<&str> {
        let &index = self.by_id.get(&id)?;
        Some(&self.tokens[index].text)
    }

    pub(crate) fn is_special(&self, id: TokenId) -> bool {
        self.by_id
            .get(&id)
            .is_some_and(|&index| self.tokens[index].kind == SpecialKind::Special)
    }

    /// The id of the special token with this text.
    pub(crate) fn id_of(&self, text: &[u8]) -> Option<TokenId> {
        let text = std::str::from_utf8(text).ok()?;
        let &index = self.by_text.get(text)?;
        Some(self.tokens[index].id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = TokenId> {
        self.by_id.keys().copied()
    }
}

/// [`Specials`], made ready for one tokenizer.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) specials: Specials,
    pub(crate) matcher: SpecialMatcher,
    /// By the number that the matcher gives.
    pub(crate) matched: Vec<Matched>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched {
    /// Index in the table.
    pub(crate) token: usize,
    pub(crate) id: TokenId,
    pub(crate) forbidden: bool,
}

impl Policy {
    /// The policy that finds nothing.
    #[cfg(feature = "tokenizer-json")]
    pub(crate) fn nothing() -> Self {
        Self {
            specials: Specials::AsText,
            matcher: SpecialMatcher::none(),
            matched: Vec::new(),
        }
    }

    /// The policy for `specials` over `table`. Cost: one automaton over the texts.
    pub(crate) fn new(specials: Specials, table: &SpecialTable) -> Result<Self, LoadError> {
        if let Specials::Allow(texts) = &specials
            && let Some(text) = texts
                .iter()
                .find(|text| table.id_of(text.as_bytes()).is_none())
        {
            return Err(LoadError::at(
                format!("special token {text:?}"),
                "the tokenizer has none of this text",
            ));
        }
        let is_matched = |token: &SpecialToken| {
            token.kind == SpecialKind::Added
                || match &specials {
                    Specials::AsText => false,
                    Specials::Allow(texts) => texts.contains(&token.text),
                    Specials::AllowAll | Specials::Forbid => true,
                }
        };
        let tokens: Vec<(usize, &SpecialToken)> = table
            .tokens()
            .iter()
            .enumerate()
            .filter(|(_, token)| is_matched(token))
            .collect();
        let matcher = SpecialMatcher::new(tokens.iter().map(|(_, token)| token.text.as_bytes()))
            .map_err(|error| LoadError::caused("special tokens", error))?;
        let matched = tokens
            .iter()
            .map(|&(index, token)| Matched {
                token: index,
                id: token.id,
                forbidden: specials == Specials::Forbid && token.kind != SpecialKind::Added,
            })
            .collect();
        Ok(Self {
            specials,
            matcher,
            matched,
        })
    }
}
