//! What of a description the inner tokenizer does, and what is left to be done by hand before it.

use bpe_lexers::Pattern;
use serde_json::Value;

use crate::builder::MOST_STAGES;
use crate::error::LoadError;
use crate::pipeline::description::Description;
use crate::pipeline::file::{AddedToken, BpeModel, Model};
use crate::pipeline::node::Node;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::pre_tokenizers::{Behavior, PreTokenizer};
use crate::pipeline::search::Search;

/// The split of a description's pre-tokenizer.
pub(crate) struct Plan {
    /// What is done to a text before added tokens are looked for a second time.
    pub(crate) normalizers: Vec<Normalizer>,
    /// Steps that change the text, or drop parts of it, or cut in a way that no pattern says.
    pub(crate) by_hand: Vec<PreTokenizer>,
    /// Whether the steps by hand leave pieces in the byte-level alphabet.
    pub(crate) alphabet: bool,
    /// The rest: each with its place in the file.
    pub(crate) stages: Vec<(String, Pattern)>,
    /// The character that stands for a blank in the file, where the vocabulary is rewritten, so that texts
    /// need not be.
    pub(crate) blank: Option<char>,
    /// Whether to cut where no token reaches across, where there is no stage.
    pub(crate) between_tokens: bool,
}

impl Plan {
    /// The inner tokenizer gets the longest run of last steps that patterns can say.
    pub(crate) fn new(description: &Description) -> Result<Self, LoadError> {
        if let Some(plan) = Self::with_blanks(description)? {
            return Ok(plan);
        }
        let steps = &description.pre_tokenizers;
        let is_byte_level = |step: &PreTokenizer| matches!(step, PreTokenizer::ByteLevel { .. });
        // What comes after `ByteLevel` sees the characters that stand for bytes, and not the text.
        let alphabet = steps
            .split_last()
            .is_some_and(|(_, before)| before.iter().any(|(_, step)| is_byte_level(step)))
            || description.normalizes_to_bytes();
        let spelled = match &description.model {
            Model::Bpe(model) => model.has_affixes(),
            Model::WordPiece(_) => true,
        };
        let first = match alphabet || spelled {
            true => steps.len(),
            false => {
                let by_hand = steps.iter().rposition(|(_, step)| stage(step).is_none());
                by_hand.map_or(0, |index| index + 1)
            }
        };
        let (by_hand, rest) = steps.split_at(first);
        let alphabet = alphabet || by_hand.iter().any(|(_, step)| is_byte_level(step));
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
            normalizers: description.normalizers.clone(),
            blank: None,
            between_tokens: true,
            by_hand: by_hand.iter().map(|(_, step)| step.clone()).collect(),
            alphabet,
            stages,
        })
    }

    /// The plan where all that a file does to a text is to write a character for each blank: texts keep
    /// their blanks, and tokens get them.
    fn with_blanks(description: &Description) -> Result<Option<Self>, LoadError> {
        let Model::Bpe(model) = &description.model else {
            return Ok(None);
        };
        let steps: Vec<&PreTokenizer> = description
            .pre_tokenizers
            .iter()
            .map(|(_, step)| step)
            .collect();
        if let [
            PreTokenizer::Metaspace {
                replacement,
                prepend,
                split,
            },
        ] = steps[..]
        {
            let place = "pre_tokenizer".to_owned();
            // A blank, and what stands between it and the next one.
            let pattern = Pattern::new(" [^ ]*|[^ ]+");
            return Ok(can_respell(model, *replacement).then(|| Self {
                normalizers: description.normalizers.clone(),
                by_hand: vec![PreTokenizer::Blanks {
                    written_as: *replacement,
                    prepend: *prepend,
                }],
                alphabet: false,
                stages: split.then_some((place, pattern)).into_iter().collect(),
                blank: Some(*replacement),
                between_tokens: true,
            }));
        }
        // In normalized text these would take blanks that are none to them.
        let strips = |token: &AddedToken| token.normalized && (token.lstrip || token.rstrip);
        if description.added_tokens.iter().any(strips) {
            return Ok(None);
        }
        // A split at blanks finds none.
        let is_idle = |step: &&PreTokenizer| match step {
            PreTokenizer::Split {
                search,
                behavior,
                invert,
            } => {
                let has_blank = search.text().is_some_and(|text| text.contains(' '));
                has_blank && !(*invert && *behavior == Behavior::Removed)
            }
            _ => false,
        };
        let are_idle = steps.iter().all(is_idle);
        let mut replaced = None;
        let mut prefixes = Vec::new();
        for step in &description.normalizers {
            match step {
                Normalizer::Replace { search, content } if search.text() == Some(" ") => {
                    let mut characters = content.chars();
                    match (replaced, characters.next(), characters.next()) {
                        (None, Some(character), None) => replaced = Some(character),
                        _ => return Ok(None),
                    }
                }
                Normalizer::Prepend(prefix) => prefixes.push(prefix.as_str()),
                _ => return Ok(None),
            }
        }
        let Some(character) = replaced.filter(|_| are_idle) else {
            return Ok(None);
        };
        let written = character.to_string();
        if prefixes.iter().any(|prefix| *prefix != written) || !can_respell(model, character) {
            return Ok(None);
        }
        // What is written so in a text means the same to the model.
        let node = Node::new("normalizer", &Value::Null);
        let mut normalizers = vec![Normalizer::Replace {
            search: Search::of_text(&node, &written)?,
            content: " ".to_owned(),
        }];
        normalizers.extend(prefixes.iter().map(|_| Normalizer::Prepend(" ".to_owned())));
        Ok(Some(Self {
            normalizers,
            by_hand: Vec::new(),
            alphabet: false,
            stages: Vec::new(),
            blank: Some(character),
            between_tokens: true,
        }))
    }
}

/// Whether each token can have blanks in place of `character`: none has both, and none has none.
fn can_respell(model: &BpeModel, character: char) -> bool {
    let written = character.to_string();
    !model.has_affixes()
        && model.vocab.iter().any(|(text, _)| text == written)
        && !model.vocab.iter().any(|(text, _)| text.contains(' '))
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
            pattern,
        } => Some(pattern.as_ref().map(|search| search.pattern().clone())),
        PreTokenizer::Digits { individual } => Some(Some(Pattern::new(match individual {
            true => r"\p{N}",
            false => r"\p{N}+",
        }))),
        _ => None,
    }
}
