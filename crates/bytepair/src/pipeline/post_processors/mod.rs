//! Post-processors of `tokenizer.json`: the tokens around a text, or around and between two.

mod read;
mod settings;
#[cfg(test)]
mod tests;
mod trim;

use bpe_core::TokenId;

use super::model_input::ModelInput;

use trim::trim_offsets;

pub(crate) use settings::{read_padding, read_truncation};

/// The steps of a post-processor.
#[derive(Debug, Clone, Default)]
pub(crate) struct PostProcessor {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// Blanks at the ends of a token are no part of what it stands for.
    TrimOffsets {
        prefix_space: bool,
    },
    /// All tokens are of the type 0.
    OneType,
    Template(Box<Template>),
    /// `[CLS] A [SEP]`, and for a pair `B [SEP]` behind it.
    Bert {
        cls: TokenId,
        sep: TokenId,
    },
    /// `<s> A </s>`, and for a pair `</s> B </s>` behind it.
    Roberta {
        cls: TokenId,
        sep: TokenId,
    },
}

/// What stands around a text, and around two.
#[derive(Debug, Clone)]
struct Template {
    single: Vec<Piece>,
    pair: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    /// The first text, or the second.
    Text {
        second: bool,
        type_id: u32,
    },
    Added {
        ids: Vec<TokenId>,
        type_id: u32,
    },
}

impl PostProcessor {
    /// Whether blanks at the ends of tokens are asked for.
    pub(crate) fn trims_offsets(&self) -> bool {
        let trims = |step: &Step| matches!(step, Step::TrimOffsets { .. });
        self.steps.iter().any(trims)
    }

    /// Number of tokens that are added to a text, or to a pair.
    pub(crate) fn added_tokens(&self, is_pair: bool) -> usize {
        let added = |step: &Step| match (step, is_pair) {
            (Step::TrimOffsets { .. } | Step::OneType, _) => 0,
            (Step::Bert { .. } | Step::Roberta { .. }, false) => 2,
            (Step::Bert { .. }, true) => 3,
            (Step::Roberta { .. }, true) => 4,
            (Step::Template(template), _) => template.pieces(is_pair).iter().map(Piece::len).sum(),
        };
        self.steps.iter().map(added).sum()
    }

    /// The input of a model for `first`, and `second` behind it. The texts are those that the offsets
    /// are about.
    ///
    /// Cost: O(tokens), and O(bytes of the tokens whose offsets are trimmed).
    pub(crate) fn process(
        &self,
        first: (ModelInput, &str),
        second: Option<(ModelInput, &str)>,
        add_special: bool,
    ) -> ModelInput {
        // Each part, and the text that its offsets are about.
        let mut parts: Vec<(ModelInput, &str)> =
            [Some(first), second].into_iter().flatten().collect();
        for ((part, _), type_id) in parts.iter_mut().zip(0..) {
            part.set_type_id(type_id);
        }
        for step in &self.steps {
            step.process(&mut parts, add_special);
        }
        let mut whole = ModelInput::default();
        for (part, _) in &parts {
            whole.append(part);
        }
        whole.forget_blanks();
        whole
    }
}

impl Step {
    fn process(&self, parts: &mut Vec<(ModelInput, &str)>, add_special: bool) {
        match self {
            Self::TrimOffsets { prefix_space } => {
                for (part, text) in parts {
                    trim_offsets(part, text, *prefix_space);
                }
            }
            Self::OneType => {
                for (part, _) in parts {
                    part.set_type_id(0);
                }
            }
            Self::Template(template) => {
                let pieces = template.pieces(parts.len() > 1).iter();
                let process = |piece: &Piece| match piece {
                    Piece::Text { second, type_id } => {
                        // `tokenizers` has one value for each text, which all its places share.
                        let (mut part, text) = parts.get(usize::from(*second))?.clone();
                        part.set_type_id(*type_id);
                        Some((part, text))
                    }
                    Piece::Added { ids, type_id } => {
                        add_special.then(|| (ModelInput::added(ids, *type_id), ""))
                    }
                };
                *parts = pieces.filter_map(process).collect();
            }
            _ if !add_special => {}
            Self::Bert { cls, sep } => {
                for ((part, _), index) in parts.iter_mut().zip(0..) {
                    let before = if index == 0 { &[*cls][..] } else { &[] };
                    surround(part, before, &[*sep], index);
                }
            }
            Self::Roberta { cls, sep } => {
                for ((part, _), index) in parts.iter_mut().zip(0..) {
                    let before = if index == 0 { *cls } else { *sep };
                    surround(part, &[before], &[*sep], 0);
                    if index > 0 {
                        // All of it, where others keep the type of their text.
                        part.set_type_id(0);
                        part.overflowing_mut()
                            .iter_mut()
                            .for_each(|o| o.set_type_id(0));
                    }
                }
            }
        }
    }
}

impl Template {
    fn pieces(&self, is_pair: bool) -> &[Piece] {
        match is_pair {
            true => &self.pair,
            false => &self.single,
        }
    }
}

impl Piece {
    /// Number of tokens that are added.
    fn len(&self) -> usize {
        match self {
            Self::Text { .. } => 0,
            Self::Added { ids, .. } => ids.len(),
        }
    }
}

/// Sets tokens around a part, and around each part that overflows from it.
fn surround(part: &mut ModelInput, before: &[TokenId], behind: &[TokenId], type_id: u32) {
    part.surround(before, behind, type_id);
    for part in part.overflowing_mut() {
        part.surround(before, behind, type_id);
    }
}
