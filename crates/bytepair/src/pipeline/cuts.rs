//! Places where a text can be cut in two that a pipeline takes one after the other.
//!
//! A place between the characters `a` and `b` of a text is a cut if, whatever stands before `a` and behind
//! `b`, the tokens of the whole are those of the left part and then those of the right one, which is
//! told that it goes on with something ([`Seams::is_cut`]). To decide it, the pair is taken through the
//! steps. Each has to be *local* there: what it makes of the whole is what it makes of the left part, then
//! what it makes of the right one; and it has to be known which two characters stand at the place then. The
//! pair may change on the way, and at some step a boundary comes between its characters: behind it all
//! steps are about pieces that lie on one side. docs/theory.md, section 12, has the argument for each step.
//!
//! What is not known is no cut.

use bpe_lexers::Cuts;

use crate::pipeline::Parts;
use crate::pipeline::added::Spellings;
use crate::pipeline::model::Model;
use crate::pipeline::normalize::{byte_level_parts, is_its_own, nmt_drops, nmt_map};
use crate::pipeline::normalizers::{BertNormalizer, Form, Normalizer};
use crate::pipeline::pre_tokenizers::{Behavior, PreTokenizer, Prepend};
use crate::pipeline::search::Search;
use crate::pipeline::splitting::WordKind;
use crate::pipeline::unicode::{combining_marks, is_han, nonspacing_marks, punctuation};

/// Two characters side by side.
type Pair = (char, char);

/// What is known of the steps of a pipeline. Made once.
pub(crate) struct Seams {
    /// For each step by hand that has a pattern, where that lets a text be cut.
    by_hand: Vec<Option<Cuts>>,
    /// Whether one of them sets something before each piece.
    sets_before_each: bool,
    /// Where the inner tokenizer does.
    model: Option<Cuts>,
}

/// What a step of a pre-tokenizer makes of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The same piece on both sides, and these characters in it.
    Joined(Pair),
    /// A boundary.
    Apart,
    /// Not known.
    Unknown,
}

impl Seams {
    /// What is known, or why no place of any text is a cut.
    pub(super) fn new(parts: &Parts) -> Result<Self, String> {
        if let Some(why) = parts.normalizers.iter().find_map(Normalizer::obstacle) {
            return Err(why);
        }
        let by_hand = parts.by_hand.iter().map(PreTokenizer::cuts).collect();
        let model = match &parts.model {
            Model::Bpe(tokenizer) if !parts.alphabet => match tokenizer.patterns() {
                [] => Ok(None),
                patterns => Cuts::new(patterns)
                    .map(Some)
                    .map_err(|error| error.to_string()),
            },
            _ => Ok(None),
        };
        let between = parts.between.is_some();
        let seams = match model {
            Err(why) if parts.by_hand.is_empty() => return Err(why),
            model => Self {
                by_hand,
                sets_before_each: parts.by_hand.iter().any(PreTokenizer::sets_before_each),
                model: model.unwrap_or_default(),
            },
        };
        if parts.by_hand.is_empty() && seams.model.is_none() && !between {
            let why = "nothing cuts the text before the model, and what it makes of one part may hang on all \
                       of it";
            return Err(why.to_owned());
        }
        if let Some(PreTokenizer::FixedLength(_)) = parts.by_hand.first() {
            return Err("pieces of a fixed length are counted from the start".to_owned());
        }
        Ok(seams)
    }

    /// Whether a text can be cut between these neighbours, which no added token that is found in the text as it is
    /// touches from both sides. `found` is what is known of the added tokens that are found in normalized text.
    pub(super) fn is_cut(
        &self,
        parts: &Parts,
        found: &Spellings,
        before: char,
        after: char,
    ) -> bool {
        let steps = &mut parts.normalizers.iter();
        let Some(mut pair) = steps.try_fold((before, after), |pair, step| step.across(pair)) else {
            return false;
        };
        if found.side_by_side.contains(&pair) {
            return false;
        }
        // Behind such a token the right part would not go on with a piece.
        if self.sets_before_each && found.last.contains(&pair.0) {
            return false;
        }
        let mut steps = parts.by_hand.iter().zip(&self.by_hand);
        while let Some((step, cuts)) = steps.next() {
            match step.across(pair, cuts.as_ref()) {
                Place::Joined(characters) => pair = characters,
                // The right part is not told at which step it becomes a piece of its own.
                Place::Apart => return !steps.any(|(step, _)| step.sets_before_each()),
                Place::Unknown => return false,
            }
        }
        match (&self.model, &parts.between) {
            (Some(cuts), _) => cuts.is_cut(pair.0, pair.1),
            (None, Some(lexer)) => lexer.is_boundary(pair.0, pair.1),
            (None, None) => false,
        }
    }
}

impl Normalizer {
    /// Why a text can be cut nowhere that goes through this.
    fn obstacle(&self) -> Option<String> {
        match self {
            Self::SentencePiece(normalizer) if !normalizer.is_local() => Some(
                "the map of characters of a .model file, or its way with blanks, may look far ahead"
                    .to_owned(),
            ),
            Self::Replace { search, .. } if search.text().is_none() => {
                let regex = search.pattern().as_str();
                let known = search.is_known();
                (!known).then(|| format!("the pattern {regex:?} may look at what it does not match"))
            }
            _ => None,
        }
    }

    /// The characters at the place of two behind this step; `None` where it may look across, or where they are
    /// not known.
    fn across(&self, (a, b): Pair) -> Option<Pair> {
        match self {
            Self::Form(form) => form.across((a, b)),
            Self::Lowercase => lowercase((a, b)),
            // Neither part is one of blanks alone.
            Self::Strip { left, right } => {
                let is_blank = a.is_whitespace() || b.is_whitespace();
                (!(*left || *right) || !is_blank).then_some((a, b))
            }
            Self::StripAccents => {
                let marks = combining_marks();
                (!marks.contains(a) && !marks.contains(b)).then_some((a, b))
            }
            Self::Replace { search, content } => search.replaced((a, b), content),
            // The right part goes without.
            Self::Prepend(_) => Some((a, b)),
            Self::Bert(bert) => bert.across((a, b)),
            Self::Nmt => (!nmt_drops(a) && !nmt_drops(b)).then(|| (nmt_map(a), nmt_map(b))),
            Self::ByteLevel => Some(byte_level((a, b))),
            Self::SentencePiece(normalizer) => normalizer
                .is_local()
                .then(|| (normalizer.written(a), normalizer.written(b))),
        }
    }
}

impl Form {
    /// Nothing composes with what stands before a stable character; and one with which nothing composes
    /// stays.
    fn across(self, (a, b): Pair) -> Option<Pair> {
        let stay = self.is_stable(a) && self.is_stable(b) && !(self.composed && composes(b));
        stay.then_some((a, b))
    }
}

/// Whether some character behind `first` composes with it.
fn composes(first: char) -> bool {
    // Of ASCII: letters, and what U+0338 strikes out.
    if first.is_ascii() && !first.is_ascii_alphabetic() && !matches!(first, '<' | '=' | '>') {
        return false;
    }
    Form::composes_as_first(first)
}

impl BertNormalizer {
    fn across(self, (mut a, mut b): Pair) -> Option<Pair> {
        if self.clean_text {
            if !Self::keeps(a) || !Self::keeps(b) {
                return None;
            }
            (a, b) = (Self::cleaned(a), Self::cleaned(b));
        }
        if self.handle_chinese_chars {
            let with_blanks = |character| match is_han(character) {
                true => ' ',
                false => character,
            };
            (a, b) = (with_blanks(a), with_blanks(b));
        }
        if self.strip_accents {
            (a, b) = Self::NFD.across((a, b))?;
            let marks = nonspacing_marks();
            if marks.contains(a) || marks.contains(b) {
                return None;
            }
        }
        match self.lowercase {
            true => lowercase((a, b)),
            false => Some((a, b)),
        }
    }
}

fn lowercase((a, b): Pair) -> Option<Pair> {
    Some((a.to_lowercase().last()?, b.to_lowercase().next()?))
}

fn byte_level((a, b): Pair) -> Pair {
    let parts = |character| {
        let mut parts = Vec::new();
        match is_its_own(character) {
            true => parts.push((character, 0)),
            false => byte_level_parts(character, &mut parts),
        }
        parts
    };
    let (before, after) = (parts(a), parts(b));
    let last = before.last().map_or(a, |part| part.0);
    let first = after.first().map_or(b, |part| part.0);
    (last, first)
}

impl Search {
    /// The characters at the place where each match is replaced by `content`.
    fn replaced(&self, (a, b): Pair, content: &str) -> Option<Pair> {
        let Some(text) = self.text() else {
            return (!self.may_match(a) && !self.may_match(b)).then_some((a, b));
        };
        if stand_in(text, (a, b)) {
            return None;
        }
        let is_whole = text.chars().nth(1).is_none();
        let a = match text.ends_with(a) {
            true if is_whole => content.chars().next_back()?,
            true => return None,
            false => a,
        };
        let b = match text.starts_with(b) {
            true if is_whole => content.chars().next()?,
            true => return None,
            false => b,
        };
        Some((a, b))
    }

    /// The place where this is searched for, and what is found and what stands between are put together
    /// as a behaviour says.
    fn split(&self, pair: Pair, behavior: Behavior, invert: bool, cuts: Option<&Cuts>) -> Place {
        let (a, b) = pair;
        let Some(text) = self.text() else {
            if self.is_known() && !self.may_match(a) && !self.may_match(b) {
                return behavior.inside(pair, invert);
            }
            // There is a boundary: on one side at least is a match.
            let is_cut = cuts.is_some_and(|cuts| cuts.is_cut(a, b));
            return match behavior {
                Behavior::Isolated | Behavior::Removed if is_cut => Place::Apart,
                _ => Place::Unknown,
            };
        };
        let is_whole = text.chars().nth(1).is_none();
        let (ends, begins) = (text.ends_with(a), text.starts_with(b));
        match (ends, begins) {
            _ if stand_in(text, pair) => Place::Unknown,
            (false, false) => behavior.inside(pair, invert),
            _ if is_whole => behavior.between(pair, ends != invert, begins != invert),
            _ => Place::Unknown,
        }
    }
}

/// Whether the two stand side by side in `text`.
fn stand_in(text: &str, pair: Pair) -> bool {
    text.chars()
        .zip(text.chars().skip(1))
        .any(|both| both == pair)
}

impl Behavior {
    /// The place inside a match, or inside what is none.
    fn inside(self, pair: Pair, is_match: bool) -> Place {
        match self {
            Self::Removed if is_match => Place::Apart,
            _ => Place::Joined(pair),
        }
    }

    /// The place between two that are matches or not.
    fn between(self, pair: Pair, before: bool, after: bool) -> Place {
        let is_joined = match self {
            Self::Removed | Self::Isolated => false,
            Self::Contiguous => before == after,
            Self::MergedWithPrevious => after && !before,
            Self::MergedWithNext => before && !after,
        };
        match is_joined {
            true => Place::Joined(pair),
            false => Place::Apart,
        }
    }

    /// The place where each character that `test` accepts is a match.
    fn at(self, pair: Pair, test: impl Fn(char) -> bool) -> Place {
        match (test(pair.0), test(pair.1)) {
            (false, false) => self.inside(pair, false),
            (before, after) => self.between(pair, before, after),
        }
    }
}

impl PreTokenizer {
    /// Where the pattern of this step lets a text be cut.
    fn cuts(&self) -> Option<Cuts> {
        let search = match self {
            Self::Split { search, .. } => search,
            Self::ByteLevel { pattern, .. } => pattern.as_ref()?,
            _ => return None,
        };
        match search.text() {
            Some(_) => None,
            None => Cuts::new(std::slice::from_ref(search.pattern())).ok(),
        }
    }

    /// Whether this sets something before each piece.
    fn sets_before_each(&self) -> bool {
        match self {
            Self::ByteLevel {
                add_prefix_space, ..
            } => *add_prefix_space,
            Self::Metaspace { prepend, .. } | Self::Blanks { prepend, .. } => {
                *prepend == Prepend::Always
            }
            _ => false,
        }
    }

    fn across(&self, pair: Pair, cuts: Option<&Cuts>) -> Place {
        let (a, b) = pair;
        match self {
            Self::Split {
                search,
                behavior,
                invert,
            } => search.split(pair, *behavior, *invert, cuts),
            Self::ByteLevel { pattern: None, .. } => Place::Joined(byte_level(pair)),
            Self::ByteLevel {
                pattern: Some(search),
                ..
            } => search.split(pair, Behavior::Isolated, false, cuts),
            Self::Digits { individual } => {
                let behavior = match individual {
                    true => Behavior::Isolated,
                    false => Behavior::Contiguous,
                };
                behavior.at(pair, char::is_numeric)
            }
            Self::Punctuation(behavior) => behavior.at(pair, |c| punctuation().contains(c)),
            Self::Whitespace => match (WordKind::of(a), WordKind::of(b)) {
                (before, after) if before != after || before == WordKind::Blank => Place::Apart,
                _ => Place::Joined(pair),
            },
            Self::WhitespaceSplit => Behavior::Removed.at(pair, char::is_whitespace),
            Self::Delimiter(delimiter) => Behavior::Removed.at(pair, |c| c == *delimiter),
            Self::FixedLength(_) => Place::Unknown,
            Self::Metaspace {
                replacement, split, ..
            } => {
                let written = |character| match character {
                    ' ' => *replacement,
                    other => other,
                };
                let pair = (written(a), written(b));
                match split {
                    true => Behavior::MergedWithNext.at(pair, |c| c == *replacement),
                    false => Place::Joined(pair),
                }
            }
            Self::Blanks { written_as, .. } => {
                let written = |character| match character == *written_as {
                    true => ' ',
                    false => character,
                };
                Place::Joined((written(a), written(b)))
            }
            Self::Bert => match Behavior::Removed.at(pair, char::is_whitespace) {
                Place::Joined(pair) => Behavior::Isolated.at(pair, |c| punctuation().contains(c)),
                apart => apart,
            },
        }
    }
}
