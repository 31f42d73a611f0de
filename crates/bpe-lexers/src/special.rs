//! Special tokens, found as text before the pattern sees it.

use core::ops::Range;
use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use crate::SpecialError;

/// Bytes of all special tokens together up to which memory is no concern.
const DENSE_AT_MOST: usize = 16 << 10;

/// Finds special tokens in a text: the leftmost, and of those that start there the longest.
///
/// The tokens are bytes, so they are found in text that is not UTF-8 too. Cheap to clone. A
/// search is linear in the bytes it looks at, whatever the number of tokens.
///
/// ```
/// use bpe_lexers::SpecialMatcher;
///
/// // One is a prefix of the other: the longer wins where both stand.
/// let specials = SpecialMatcher::new(["<s>", "<s>>"])?;
/// assert_eq!(specials.find(b"a<s>>b<s>", 0), Some((1, 1..5)));
/// assert_eq!(specials.find(b"a<s>>b<s>", 5), Some((0, 6..9)));
/// # Ok::<(), bpe_lexers::SpecialError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SpecialMatcher {
    /// Nothing where there is nothing to look for.
    automaton: Option<AhoCorasick>,
    longest: usize,
    /// The texts in order, to find out what begins one.
    sorted: Arc<[Box<[u8]>]>,
}

impl SpecialMatcher {
    /// Returns a matcher for `texts`; a match is reported by its position among them.
    ///
    /// # Errors
    ///
    /// A text is empty, or is there twice, or there are too many for one automaton.
    pub fn new<I, S>(texts: I) -> Result<Self, SpecialError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<[u8]>,
    {
        let texts: Vec<S> = texts.into_iter().collect();
        let mut longest = 0;
        let mut seen = HashMap::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let text = text.as_ref();
            if text.is_empty() {
                return Err(SpecialError::empty(index));
            }
            if let Some(first) = seen.insert(text, index) {
                return Err(SpecialError::duplicate(first, index));
            }
            longest = longest.max(text.len());
        }
        if texts.is_empty() {
            return Ok(Self::none());
        }
        // Left alone, the library takes a table of a row a byte for few tokens: fast, and up to a
        // kilobyte for each byte of their texts.
        let total: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let kind = (total > DENSE_AT_MOST).then_some(AhoCorasickKind::ContiguousNFA);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(kind)
            .build(&texts)
            .map_err(SpecialError::too_large)?;
        let mut sorted: Vec<Box<[u8]>> = texts.iter().map(|text| text.as_ref().into()).collect();
        sorted.sort_unstable();
        Ok(Self {
            automaton: Some(automaton),
            longest,
            sorted: sorted.into(),
        })
    }

    /// Returns the matcher that finds nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the first special token of `text` at or after byte `from`: its position in the
    /// list, and where it stands.
    pub fn find(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let automaton = self.automaton.as_ref()?;
        if from >= text.len() {
            return None;
        }
        let found = automaton.find(Input::new(text).range(from..))?;
        Some((found.pattern().as_usize(), found.range()))
    }

    /// Returns the first place of `text`, at or after byte `from`, from which all that is there is the
    /// beginning of a longer special token; the end of the text if there is none. What a caller who
    /// reads a text in parts has to wait for.
    ///
    /// Looks at the last [`max_len`](SpecialMatcher::max_len) bytes, with a binary search from each.
    ///
    /// ```
    /// let specials = bpe_lexers::SpecialMatcher::new(["<s>", "<s>>"])?;
    /// assert_eq!(specials.open_from(b"a<s", 0), 1);
    /// assert_eq!(specials.open_from(b"a<s>", 0), 1); // a longer one may come
    /// assert_eq!(specials.open_from(b"a<s>>", 0), 5);
    /// # Ok::<(), bpe_lexers::SpecialError>(())
    /// ```
    pub fn open_from(&self, text: &[u8], from: usize) -> usize {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        let is_open = |place: &usize| {
            let rest = text.get(*place..).unwrap_or_default();
            let after = self.sorted.partition_point(|special| &**special <= rest);
            let longer = self.sorted.get(after);
            longer.is_some_and(|special| special.starts_with(rest))
        };
        (first.max(from)..text.len())
            .find(is_open)
            .unwrap_or(text.len())
    }

    /// Is there nothing to look for?
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Returns the length of the longest special token in bytes, 0 if there is none.
    ///
    /// A special token that starts before the last `max_len() - 1` bytes of a text lies in it
    /// whole: what a caller who reads a text in parts has to keep.
    pub fn max_len(&self) -> usize {
        self.longest
    }
}
