//! Added tokens: found as text, with the blanks around them or beside no word, as their flags say.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bpe_core::{BytePairs, TokenId};
use bpe_lexers::SpecialMatcher;

use crate::error::LoadError;
use crate::pipeline::file::AddedToken;
use crate::pipeline::normalized::Normalized;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::unicode::word_characters;
use crate::specials::Specials;

/// The added tokens of a pipeline, in the order of the file.
#[derive(Debug)]
pub(crate) struct AddedTokens {
    pub(crate) tokens: Vec<AddedToken>,
    /// What is looked for, for each token: its text, normalized where the flag says so.
    wanted: Vec<String>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// What is no added token.
    Text(Range<usize>),
    /// An added token, by its number, with the bytes that it takes.
    Token { index: usize, range: Range<usize> },
}

/// Finds the added tokens of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finder {
    matcher: SpecialMatcher,
    /// What a token begins with: where none can, the search need not look.
    starts: Option<Starts>,
    /// Of each text of the matcher the token.
    found: Vec<Found>,
}

/// The first two bytes of tokens.
#[derive(Debug, Clone)]
struct Starts {
    pairs: BytePairs,
    /// The tokens of one byte, which may be the last of a text.
    singles: Vec<u8>,
}

impl Starts {
    fn new<'t>(texts: impl Iterator<Item = &'t String>) -> Self {
        let mut pairs = BytePairs::none();
        let mut singles = Vec::new();
        for text in texts {
            match *text.as_bytes() {
                [] => {}
                [single] => {
                    singles.push(single);
                    (0..=u8::MAX).for_each(|second| pairs.add(&[single, second]));
                }
                [first, second, ..] => pairs.add(&[first, second]),
            }
        }
        Self { pairs, singles }
    }

    /// The first place at or after `from` where a token can begin.
    fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let begins = |pair: &[u8]| match *pair {
            [first, second] => self.pairs.in_a_token(first, second),
            _ => false,
        };
        match rest.windows(2).position(begins) {
            Some(index) => Some(from + index),
            None => {
                let last = rest.last()?;
                self.singles.contains(last).then_some(text.len() - 1)
            }
        }
    }
}

/// Characters of the texts that a finder looks for.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    /// Those that stand side by side in one.
    pub(crate) side_by_side: HashSet<(char, char)>,
    /// The last ones.
    pub(crate) last: HashSet<char>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    index: usize,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
}

impl AddedTokens {
    /// The tokens, and the texts to look for.
    ///
    /// # Errors
    ///
    /// Two tokens of one id or one text, before or after the normalizer, or a text that it leaves nothing of.
    pub(crate) fn new(
        tokens: Vec<AddedToken>,
        normalizers: &[Normalizer],
    ) -> Result<Self, LoadError> {
        let mut by_id: HashMap<TokenId, usize> = HashMap::with_capacity(tokens.len());
        let mut by_text: HashMap<&str, usize> = HashMap::with_capacity(tokens.len());
        let mut by_wanted: HashMap<(bool, String), usize> = HashMap::with_capacity(tokens.len());
        let mut wanted = Vec::with_capacity(tokens.len());
        for (index, token) in tokens.iter().enumerate() {
            let wrong = |field: &str, reason: String| {
                LoadError::at(format!("added_tokens[{index}].{field}"), reason)
            };
            if let Some(first) = by_id.insert(token.id, index) {
                let reason = format!("added_tokens[{first}] has the id {} too", token.id);
                return Err(wrong("id", reason));
            }
            if let Some(first) = by_text.insert(&token.content, index) {
                let reason = format!("added_tokens[{first}] has the text {:?} too", token.content);
                return Err(wrong("content", reason));
            }
            let text = match token.normalized {
                false => token.content.clone(),
                true => {
                    let text = Normalized::new(&token.content, 0, false);
                    let text = Normalizer::apply_all(normalizers, text)
                        .map_err(|error| wrong("content", error.to_string()))?;
                    text.text().to_owned()
                }
            };
            if text.is_empty() {
                let reason = "the normalizer leaves nothing of it".to_owned();
                return Err(wrong("content", reason));
            }
            if let Some(first) = by_wanted.insert((token.normalized, text.clone()), index) {
                let reason = format!("added_tokens[{first}] is the same text, normalized");
                return Err(wrong("content", reason));
            }
            wanted.push(text);
        }
        Ok(Self { wanted, tokens })
    }

    /// What finds the tokens in the text as it is, and what finds the others in the normalized text,
    /// with special tokens as `specials` say.
    ///
    /// # Errors
    ///
    /// [`Specials::Allow`] names a text that is no special token.
    pub(crate) fn finders(&self, specials: &Specials) -> Result<(Finder, Finder), LoadError> {
        if let Specials::Allow(texts) = specials {
            let is_known = |text: &String| self.tokens.iter().any(|token| token.content == *text);
            if let Some(text) = texts.iter().find(|text| !is_known(text)) {
                return Err(LoadError::at(
                    format!("special token {text:?}"),
                    "the tokenizer has none of this text",
                ));
            }
        }
        Ok((self.finder(specials, false)?, self.finder(specials, true)?))
    }

    fn finder(&self, specials: &Specials, normalized: bool) -> Result<Finder, LoadError> {
        let is_matched = |token: &AddedToken| {
            !token.special
                || match specials {
                    Specials::AsText => false,
                    Specials::Allow(texts) => texts.contains(&token.content),
                    Specials::AllowAll | Specials::Forbid => true,
                }
        };
        let tokens = self.tokens.iter().enumerate();
        let found: Vec<Found> = tokens
            .filter(|(_, token)| token.normalized == normalized && is_matched(token))
            .map(|(index, token)| Found {
                index,
                single_word: token.single_word,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
            })
            .collect();
        let texts = || {
            let indices = found.iter().map(|found| found.index);
            indices.filter_map(|index| self.wanted.get(index))
        };
        let matcher = SpecialMatcher::new(texts());
        Ok(Finder {
            matcher: matcher.map_err(|error| LoadError::caused("added_tokens", error))?,
            starts: (!found.is_empty()).then(|| Starts::new(texts())),
            found,
        })
    }

    /// What is known of the texts that `finder` looks for.
    pub(crate) fn spellings(&self, finder: &Finder) -> Spellings {
        let texts = || {
            let found = finder.found.iter();
            found.filter_map(|found| self.wanted.get(found.index))
        };
        let side_by_side = texts().flat_map(|text| text.chars().zip(text.chars().skip(1)));
        Spellings {
            side_by_side: side_by_side.collect(),
            last: texts()
                .filter_map(|text| text.chars().next_back())
                .collect(),
        }
    }

    /// Whether one search over the text finds what two would, the second over what is left by the first:
    /// no token of one kind can overlap one of the other, none has a flag, and the normalizer leaves
    /// them as they are.
    pub(crate) fn are_one_search(&self) -> bool {
        let flagged = |token: &AddedToken| token.single_word || token.lstrip || token.rstrip;
        let changed = |(token, wanted): (&AddedToken, &String)| token.content != *wanted;
        if self.tokens.iter().any(flagged) || self.tokens.iter().zip(&self.wanted).any(changed) {
            return false;
        }
        let (second, first): (Vec<_>, Vec<_>) =
            self.tokens.iter().partition(|token| token.normalized);
        let bytes = |tokens: &[&AddedToken]| -> usize {
            tokens.iter().map(|token| token.content.len()).sum()
        };
        if bytes(&first).saturating_mul(bytes(&second)) > MOST_COMPARISONS {
            return false;
        }
        let overlap = |a: &str, b: &str| {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            let mut joints = 1..a.len().min(b.len());
            a.windows(b.len().max(1)).any(|part| part == b)
                || b.windows(a.len().max(1)).any(|part| part == a)
                || joints.any(|len| a.ends_with(&b[..len]) || b.ends_with(&a[..len]))
        };
        !second.iter().any(|token| {
            first
                .iter()
                .any(|other| overlap(&other.content, &token.content))
        })
    }
}

/// Comparisons of one byte of an added token with one of another: deepseek_v3 needs some 4 million.
const MOST_COMPARISONS: usize = 100_000_000;

impl Finder {
    /// Whether some token looks at what stands beside it, or takes blanks there.
    pub(crate) fn looks_around(&self) -> bool {
        let flagged = |found: &Found| found.single_word || found.lstrip || found.rstrip;
        self.found.iter().any(flagged)
    }

    /// Bytes of the longest text that is looked for.
    pub(crate) fn longest(&self) -> usize {
        self.matcher.max_len()
    }

    /// The first token at or after `from`, and where it stands.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let start = self.starts.as_ref()?.next(text, from)?;
        self.matcher.find(text, start)
    }

    /// Calls `visit` for each part of `text` in order, until it fails. O(bytes).
    ///
    /// The leftmost token wins, and of those that begin there the longest; one that may only be a word
    /// and is not stays text, and no shorter one is tried there. Blanks that one token has taken may be
    /// tokens of their own, as in `tokenizers`, and then come twice.
    pub(crate) fn for_each_part<E>(
        &self,
        text: &str,
        mut visit: impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        // Up to where parts have been visited, where to search, and where the blanks end in which a
        // token before has ended.
        let (mut done, mut from, mut blanks_to) = (0, 0, 0);
        while let Some((pattern, range)) = self.find(text.as_bytes(), from) {
            from = range.end;
            let Some(&found) = self.found.get(pattern) else {
                continue;
            };
            let Range { mut start, mut end } = range;
            if found.single_word && !is_apart(text, start, end) {
                continue;
            }
            if found.lstrip {
                let before = text.get(done..start).unwrap_or_default();
                start = (start - (before.len() - before.trim_end().len())).max(done);
            }
            if found.rstrip {
                if end >= blanks_to {
                    let behind = text.get(end..).unwrap_or_default();
                    blanks_to = end + (behind.len() - behind.trim_start().len());
                }
                end = blanks_to;
            }
            end = end.max(start);
            if done < start {
                visit(Part::Text(done..start))?;
            }
            visit(Part::Token {
                index: found.index,
                range: start..end,
            })?;
            done = end;
        }
        match done == text.len() {
            true => Ok(()),
            false => visit(Part::Text(done..text.len())),
        }
    }
}

/// Whether no character of a word stands on either side.
fn is_apart(text: &str, start: usize, end: usize) -> bool {
    let words = word_characters();
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let behind = text.get(end..).and_then(|text| text.chars().next());
    let is_word = |character: Option<char>| character.is_some_and(|c| words.contains(c));
    !is_word(before) && !is_word(behind)
}
