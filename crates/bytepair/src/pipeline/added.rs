//! Added tokens: found as text, with the blanks around them or beside no word, as their flags say.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bpe_core::{BytePairs, TokenId};
use bpe_lexers::{LexError, SpecialMatcher};

use crate::error::LoadError;
use crate::pipeline::blanks::Blanks;
use crate::pipeline::bpe::check_added;
use crate::pipeline::file::AddedToken;
use crate::pipeline::normalized::Normalized;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::overlap::may_overlap;
use crate::pipeline::texts::Vocab;
use crate::pipeline::unicode::word_characters;
use crate::specials::Specials;

/// The added tokens of a pipeline, in the order of the file.
#[derive(Debug)]
pub(crate) struct AddedTokens {
    pub(crate) tokens: Vec<AddedToken>,
    /// What is looked for, for each token: its text, normalized where the flag says so.
    wanted: Vec<String>,
    /// Those that the vocabulary of the file has too.
    pub(crate) in_vocabulary: HashSet<TokenId>,
    /// The number of tokens that the vocabulary has.
    vocabulary_len: usize,
    /// What the file has in normalized text where this has blanks.
    blank_is: Option<char>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// What is no added token.
    Text(Range<usize>),
    /// An added token, by its number, with the bytes that it takes and the white space at their ends.
    Token {
        index: usize,
        range: Range<usize>,
        blanks: Blanks,
    },
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
    fn new<'t>(texts: impl Iterator<Item = &'t &'t str>) -> Self {
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
    /// It is found, so that nothing else is in its place, and stays text.
    is_text: bool,
    /// White space at the ends of what is looked for.
    blanks: Blanks,
    /// Whether it is nothing else.
    is_blank: bool,
}

impl AddedToken {
    /// The text as it is looked for: after the normalizer, where the flag says so.
    pub(crate) fn normalized_by(&self, steps: &[Normalizer]) -> Result<Cow<'_, str>, LexError> {
        if !self.normalized || steps.is_empty() {
            return Ok(Cow::Borrowed(&self.content));
        }
        let text = Normalized::new(&self.content, 0, false);
        let text = Normalizer::apply_all(steps, text)?;
        Ok(Cow::Owned(text.text().to_owned()))
    }
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
            let text = token
                .normalized_by(normalizers)
                .map_err(|error| wrong("content", error.to_string()))?
                .into_owned();
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
        Ok(Self {
            wanted,
            tokens,
            in_vocabulary: HashSet::new(),
            vocabulary_len: 0,
            blank_is: None,
        })
    }

    /// Tells what the file has in normalized text where this has blanks.
    pub(crate) fn set_blank(&mut self, blank_is: Option<char>) {
        self.blank_is = blank_is;
    }

    /// Tells which tokens the vocabulary has too.
    ///
    /// # Errors
    ///
    /// One that it has under another id, or whose id another token has.
    pub(crate) fn set_vocabulary(&mut self, vocab: &Vocab) -> Result<(), LoadError> {
        self.in_vocabulary = check_added(vocab, &self.tokens)?;
        self.vocabulary_len = vocab.len();
        Ok(())
    }

    /// Whether the tokens that the vocabulary has not are numbered from its end on, in their order: then a
    /// reader that gives them ids itself gives them these.
    pub(crate) fn are_numbered_on(&self) -> bool {
        let others = self.tokens.iter().map(|token| token.id);
        let others = others.filter(|id| !self.in_vocabulary.contains(id));
        (self.vocabulary_len..)
            .zip(others)
            .all(|(number, id)| usize::try_from(id) == Ok(number))
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
        let (mut found, as_text): (Vec<_>, Vec<_>) = tokens
            .filter(|(_, token)| token.normalized == normalized)
            .map(|(index, token)| {
                Found::new(index, token, &self.spelled(index), !is_matched(token))
            })
            .partition(|found| !found.is_text);
        // What stays text need not be found, unless it may stand in the place of others.
        if may_overlap(&self.wanted_of(&found), &self.wanted_of(&as_text)) {
            found.extend(as_text);
        }
        let texts = self.wanted_of(&found);
        let matcher = SpecialMatcher::new(texts.iter());
        Ok(Finder {
            matcher: matcher.map_err(|error| LoadError::caused("added_tokens", error))?,
            starts: (!found.is_empty()).then(|| Starts::new(texts.iter())),
            found,
        })
    }

    /// The text to look for, as the file has it.
    fn spelled(&self, index: usize) -> Cow<'_, str> {
        let wanted = self.wanted.get(index).map_or("", String::as_str);
        let is_normalized = self.tokens.get(index).is_some_and(|token| token.normalized);
        match self.blank_is.filter(|_| is_normalized) {
            Some(character) => Cow::Owned(wanted.replace(' ', character.encode_utf8(&mut [0; 4]))),
            None => Cow::Borrowed(wanted),
        }
    }

    /// The texts to look for.
    fn wanted_of(&self, found: &[Found]) -> Vec<&str> {
        let wanted = found.iter().map(|found| self.wanted.get(found.index));
        wanted.flatten().map(String::as_str).collect()
    }

    /// What is known of the texts that `finder` looks for.
    pub(crate) fn spellings(&self, finder: &Finder) -> Spellings {
        let texts = self.wanted_of(&finder.found);
        let side_by_side = texts.iter();
        let side_by_side = side_by_side.flat_map(|text| text.chars().zip(text.chars().skip(1)));
        Spellings {
            side_by_side: side_by_side.collect(),
            last: texts
                .iter()
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
        let texts = |normalized: bool| -> Vec<&str> {
            let tokens = self.tokens.iter();
            tokens
                .filter(|token| token.normalized == normalized)
                .map(|token| token.content.as_str())
                .collect()
        };
        !may_overlap(&texts(false), &texts(true))
    }
}

impl Finder {
    /// Whether some token must be seen whole with what stands beside it: it looks there, or takes blanks, or
    /// stays text in the place of others.
    pub(crate) fn looks_around(&self) -> bool {
        let flagged = |found: &Found| found.single_word || found.lstrip || found.rstrip;
        self.found.iter().any(flagged) || self.hides()
    }

    /// Whether some text is found that stays text in the place of others.
    pub(crate) fn hides(&self) -> bool {
        self.found.iter().any(|found| found.is_text)
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
    /// and is not stays text, and so does a special token that is none here: no other one is looked for in
    /// its place. Blanks that one token has taken may be tokens of their own, as in `tokenizers`, and then
    /// come twice; but no token is left of nothing, where those before it have taken all that it would.
    pub(crate) fn for_each_part<E>(
        &self,
        text: &str,
        mut visit: impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        // Up to where parts have been visited, and where to search.
        let (mut done, mut from) = (0, 0);
        let mut behind = BlanksBehind::default();
        while let Some((pattern, range)) = self.find(text.as_bytes(), from) {
            from = range.end;
            let Some(found) = self.found.get(pattern) else {
                continue;
            };
            let Range { mut start, mut end } = range;
            if found.is_text || (found.single_word && !is_apart(text, start, end)) {
                continue;
            }
            if found.lstrip {
                let before = text.get(done..start).unwrap_or_default();
                start = (start - (before.len() - before.trim_end().len())).max(done);
            }
            let mut taken = 0;
            if found.rstrip {
                taken = behind.count(text, end);
                end = behind.end;
            }
            if done < start {
                visit(Part::Text(done..start))?;
            }
            if start < end {
                visit(Part::Token {
                    index: found.index,
                    blanks: found.blanks_of(text, range.start, start, taken),
                    range: start..end,
                })?;
            }
            done = end.max(start);
        }
        match done == text.len() {
            true => Ok(()),
            false => visit(Part::Text(done..text.len())),
        }
    }
}

impl Found {
    fn new(index: usize, token: &AddedToken, wanted: &str, is_text: bool) -> Self {
        let blanks = Blanks::of_text(wanted);
        Self {
            index,
            single_word: token.single_word,
            lstrip: token.lstrip,
            rstrip: token.rstrip,
            is_text,
            blanks,
            is_blank: blanks.leading == wanted.chars().count(),
        }
    }

    /// White space at the ends of what was found at byte `at` and begins at `start`, with `behind` characters of
    /// white space behind it.
    fn blanks_of(&self, text: &str, at: usize, start: usize, behind: usize) -> Blanks {
        let count = |range: Range<usize>| text.get(range).map_or(0, |part| part.chars().count());
        // What a token before has taken of this one is white space too.
        let leading = (self.blanks.leading + count(start..at)).saturating_sub(count(at..start));
        let trailing = self.blanks.trailing + behind;
        match self.is_blank {
            false => Blanks { leading, trailing },
            true => Blanks {
                leading: leading + behind,
                trailing: leading + behind,
            },
        }
    }
}

/// White space behind a place, which several tokens may take.
#[derive(Default)]
struct BlanksBehind {
    start: usize,
    end: usize,
    /// Characters between the two.
    count: usize,
}

impl BlanksBehind {
    /// Characters of white space behind byte `at` of `text`, which is not before that of the last call. O(bytes)
    /// for all calls.
    fn count(&mut self, text: &str, at: usize) -> usize {
        match at < self.end {
            true => {
                let passed = text.get(self.start..at).unwrap_or_default();
                self.count -= passed.chars().count();
            }
            false => {
                let behind = text.get(at..).unwrap_or_default();
                let blanks = &behind[..behind.len() - behind.trim_start().len()];
                (self.end, self.count) = (at + blanks.len(), blanks.chars().count());
            }
        }
        self.start = at;
        self.count
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
