//! What of a description the inner tokenizer does, and what is left to be done by hand before it.

use bpe_lexers::Pattern;

use crate::builder::MOST_STAGES;
use crate::error::LoadError;
use crate::pipeline::description::Description;
use crate::pipeline::pre_tokenizers::{Behavior, PreTokenizer};

/// The split of a description's pre-tokenizer.
pub(crate) struct Plan {
    /// Steps that change the text, or drop parts of it, or cut in a way that no pattern says.
    pub(crate) by_hand: Vec<PreTokenizer>,
    /// Whether the steps by hand leave pieces in the byte-level alphabet.
    pub(crate) alphabet: bool,
    /// The rest: each with its place in the file.
    pub(crate) stages: Vec<(String, Pattern)>,
}

impl Plan {
    /// The inner tokenizer gets the longest run of last steps that patterns can say.
    pub(crate) fn new(description: &Description) -> Result<Self, LoadError> {
        let steps = &description.pre_tokenizers;
        let is_byte_level = |step: &PreTokenizer| matches!(step, PreTokenizer::ByteLevel { .. });
        // What comes after `ByteLevel` sees the characters that stand for bytes, and not the text.
        let alphabet = steps
            .split_last()
            .is_some_and(|(_, before)| before.iter().any(|(_, step)| is_byte_level(step)));
        let first = match alphabet {
            true => steps.len(),
            false => {
                let by_hand = steps.iter().rposition(|(_, step)| stage(step).is_none());
                by_hand.map_or(0, |index| index + 1)
            }
        };
        let (by_hand, rest) = steps.split_at(first);
        let mut stages = Vec::new();
        for (place, step) in rest {
            if let Some(pattern) = stage(step).flatten() {
                if stages.len() == MOST_STAGES {
                    let what = "so long a sequence of patterns";
                    return Err(LoadError::unsupported(place, what));
                }
                stages.push((place.clone(), pattern));
            }
        }
        Ok(Self {
            by_hand: by_hand.iter().map(|(_, step)| step.clone()).collect(),
            alphabet,
            stages,
        })
    }
}

/// The pattern that does what `step` does, or nothing where it cuts nothing; `None` where no pattern
/// does. The inner tokenizer keeps what a pattern matches and what stands between: the behaviour
/// `Isolated`, and `Removed` inverted, which drops what is not matched, where nothing is left unmatched.
fn stage(step: &PreTokenizer) -> Option<Option<Pattern>> {
    match step {
        PreTokenizer::Split {
            search,
            behavior,
            invert,
        } => {
            let covers_all = || {
                let family = search.pattern().family();
                family.is_some_and(|family| family.covers_every_text())
            };
            match behavior {
                Behavior::Isolated => Some(Some(search.pattern().clone())),
                Behavior::Removed if *invert && covers_all() => {
                    Some(Some(search.pattern().clone()))
                }
                _ => None,
            }
        }
        PreTokenizer::ByteLevel {
            add_prefix_space: false,
            use_regex,
        } => Some(use_regex.then(Pattern::gpt2)),
        PreTokenizer::Digits { individual } => Some(Some(Pattern::new(match individual {
            true => r"\p{N}",
            false => r"\p{N}+",
        }))),
        _ => None,
    }
}
