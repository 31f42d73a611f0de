//! Where a text may be cut and encoded in parts.
//!
//! A text is encoded in three steps: special tokens are found from left to right, of those that
//! start leftmost the longest; what stands between two of them, a segment, is cut into pieces by
//! the pattern; each piece becomes tokens without regard to the others. So the tokens of
//! `text[..p]` and `text[p..]` in a row are those of `text` if
//!
//! 1. the special tokens found in the two parts are those found in the text, and
//! 2. the pieces of the segment around `p` are those of its two parts.
//!
//! **1 holds if no special token found in the text stands across `p`.** The search goes on, after
//! each find, from its end. As long as it finds a special token that starts before `p`, that one
//! ends at `p` at most and so lies in the left part. There the search finds the same: what occurs
//! in the left part occurs in the text, so nothing starts further left, and nothing that starts
//! there is longer. When it finds one that starts at `p` or later, or none, the search in the left
//! part finds none, and the search in the right part, which starts at `p`, finds the same: between
//! the last end and `p` nothing starts.
//!
//! **2 holds at the start and at the end of a special token that was found,** since a segment ends
//! there in the text as well. **It holds at a place that [`Cuts`] name:** there the
//! segment holds the characters on both sides whole. (A special token is whole characters, and
//! UTF-8 tells where characters start, so none ends inside a character of the text.) In every text
//! with this pair of characters the pattern makes a boundary between them, and the pieces on
//! either side are those of the parts alone. Bytes that are not UTF-8 cut segments further, and
//! never touch a valid character.
//!
//! What follows the bytes read so far is not known. A special token that starts before `p` ends
//! less than the longest one's length behind it; `p` is so far from the end that all such are seen.

use std::ops::Range;

use bpe_core::{Atoms, BytePairs};
use bpe_lexers::{Cuts, SpecialMatcher};
use bytepair::{PipelineCuts, Tokenizer};

/// Finds cuts that are safe for one or more tokenizers at once, or for a file of steps.
#[derive(Debug)]
pub(crate) enum Cutter {
    Tokenizers(Vec<Rule>),
    Steps(Box<PipelineCuts>),
}

/// What one tokenizer asks of a cut.
#[derive(Debug)]
pub(crate) struct Rule {
    cuts: Cuts,
    /// The texts that this tokenizer matches before the pattern.
    matched: SpecialMatcher,
}

impl Cutter {
    /// The cutter for all of `tokenizers`.
    ///
    /// # Errors
    ///
    /// Why the text of one of them cannot be cut.
    pub(crate) fn new(tokenizers: &[&Tokenizer]) -> Result<Self, String> {
        let rules = tokenizers.iter().map(|tokenizer| Rule::new(tokenizer));
        Ok(Self::Tokenizers(rules.collect::<Result<_, _>>()?))
    }

    /// Cuts where `cuts` say, whatever the text is.
    pub(crate) fn at(cuts: Cuts) -> Self {
        let matched = SpecialMatcher::none();
        Self::Tokenizers(vec![Rule { cuts, matched }])
    }

    /// The last place at which `text` can be cut, whatever follows it. No cut was inside a special
    /// token before `text`. Linear.
    pub(crate) fn last_cut(&self, text: &[u8]) -> Option<usize> {
        let rules = match self {
            Self::Tokenizers(rules) => rules,
            // What is not UTF-8 is told later, with its place.
            Self::Steps(cuts) => return cuts.last_cut(text.utf8_chunks().next()?.valid()),
        };
        let found: Vec<_> = rules.iter().map(|rule| rule.find_all(text)).collect();
        let mut place = text.len();
        loop {
            let mut cut = place;
            for (rule, found) in rules.iter().zip(&found) {
                cut = rule.last_cut(text, found, cut)?;
            }
            // Each rule has moved the cut to the left or agreed.
            if cut == place {
                return Some(cut);
            }
            place = cut;
        }
    }
}

impl Rule {
    fn new(tokenizer: &Tokenizer) -> Result<Self, String> {
        let cuts = match tokenizer.patterns() {
            [] => byte_pairs(tokenizer)?,
            patterns => Cuts::new(patterns).map_err(|error| error.to_string())?,
        };
        let texts = tokenizer.matched_texts().map(|(text, _)| text);
        let matched = SpecialMatcher::new(texts).map_err(|error| error.to_string())?;
        Ok(Self { cuts, matched })
    }

    /// Where special tokens stand, up to where bytes that follow may change it.
    fn find_all(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while let Some((_, range)) = self.matched.find(text, from) {
            from = range.end;
            found.push(range);
        }
        found
    }

    /// The last safe cut up to `at_most`.
    fn last_cut(&self, text: &[u8], found: &[Range<usize>], at_most: usize) -> Option<usize> {
        let unseen = self.matched.max_len().saturating_sub(1);
        let mut place = at_most.min(text.len().checked_sub(unseen)?);
        loop {
            // The last special token that starts at the place or before.
            let before = found.partition_point(|range| range.start <= place);
            let special = before.checked_sub(1).and_then(|last| found.get(last));
            let by_special = special.map(|range| match range.end <= place {
                true => range.end,
                false => range.start,
            });
            let by_special = by_special.filter(|&cut| 0 < cut && cut < text.len());
            let cut = by_special.max(self.cuts.last_cut(text, place))?;
            match special {
                Some(range) if range.start < cut && cut < range.end => place = range.start,
                _ => return Some(cut),
            }
        }
    }
}

/// Without patterns a text can be cut where no token contains the bytes on both sides.
fn byte_pairs(tokenizer: &Tokenizer) -> Result<Cuts, String> {
    if let Atoms::Characters {
        fuse_unknown: true, ..
    } = tokenizer.canonical().atoms()
    {
        return Err("it has no pattern, and fuses unknown characters".to_owned());
    }
    let pairs = BytePairs::new(tokenizer.vocabulary());
    Ok(Cuts::at_byte_pairs(|a, b| !pairs.in_a_token(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytepair::Specials;

    fn cutter(tokenizer: &Tokenizer, specials: Specials) -> Cutter {
        let tokenizer = tokenizer.with_specials(specials).expect("specials");
        Cutter::new(&[&tokenizer]).expect("a known pattern")
    }

    #[test]
    fn a_cut_stands_between_words_and_not_at_the_end() {
        let cutter = cutter(&Tokenizer::o200k_base(), Specials::AsText);
        assert_eq!(cutter.last_cut(b"One two three"), Some(7));
        assert_eq!(cutter.last_cut(b"One two "), Some(7));
        assert_eq!(cutter.last_cut(b"One"), None);
        assert_eq!(cutter.last_cut(b""), None);
    }

    #[test]
    fn no_cut_stands_in_a_special_token_nor_where_one_may_begin() {
        let special = Tokenizer::r50k_base()
            .to_builder()
            .special_token("of the day", 60_000)
            .build()
            .expect("a new special token");
        // As text, the words of the special token are cut.
        let as_text = cutter(&special, Specials::AsText);
        assert_eq!(as_text.last_cut(b"the word of the da"), Some(15));
        // Longest special token: <|endoftext|>, 13 bytes. The last 12 bytes are not cut.
        let allowed = cutter(&special, Specials::AllowAll);
        assert_eq!(allowed.last_cut(b"the word of the da"), Some(3));
        let text = b"the word of the day has come and is gone";
        assert_eq!(allowed.last_cut(text), Some(28));
        // Its start and its end are cuts.
        assert_eq!(allowed.last_cut(&text[..31]), Some(19));
        assert_eq!(allowed.last_cut(&text[..28]), Some(9));
        let in_brackets = format!("((of the day{}", "(".repeat(12));
        let in_brackets = in_brackets.as_bytes();
        assert_eq!(allowed.last_cut(&in_brackets[..22]), Some(2));
        assert_eq!(allowed.last_cut(in_brackets), Some(12));
    }

    #[test]
    fn a_cut_for_two_tokenizers_is_one_for_each() {
        let (gpt2, o200k) = (Tokenizer::gpt2(), Tokenizer::o200k_base());
        // GPT-2 splits a mark from its letter and a full stop from the letter behind it.
        let text = "ab e\u{301}.x".as_bytes();
        let alone = Cutter::new(&[&gpt2]).expect("a known pattern");
        let both = Cutter::new(&[&gpt2, &o200k]).expect("known patterns");
        assert_eq!(alone.last_cut(text), Some(7));
        assert_eq!(both.last_cut(text), Some(2));
    }

    #[test]
    fn texts_of_several_patterns_are_cut_and_of_patterns_that_look_back_are_not() {
        let builder = || Tokenizer::o200k_base().to_builder();
        let two = builder().pattern(bytepair::Pattern::new(r"o")).build();
        let cutter = Cutter::new(&[&two.expect("builds")]).expect("patterns without look-behind");
        assert_eq!(cutter.last_cut(b"One two three"), Some(7));
        let look_behind = bytepair::Pattern::new(r"(?<=a)b|.");
        let other = builder().pattern(look_behind).build().expect("builds");
        let error = Cutter::new(&[&other]).expect_err("not cut");
        assert!(error.contains("look"), "{error}");
    }
}
