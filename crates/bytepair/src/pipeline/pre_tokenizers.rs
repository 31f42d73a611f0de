//! How a `tokenizer.json` may cut a text into pieces that are encoded alone.

use bpe_lexers::Pattern;

use crate::error::LoadError;
use crate::pipeline::node::Node;
use crate::pipeline::search::Search;

/// One step. A sequence of them is a list; each cuts the pieces of the one before.
#[derive(Debug, Clone)]
pub(crate) enum PreTokenizer {
    /// At what is found, or, inverted, at what stands between.
    Split {
        search: Search,
        behavior: Behavior,
        invert: bool,
    },
    /// Each byte becomes the character that stands for it, after a cut by GPT-2's pattern.
    ByteLevel {
        add_prefix_space: bool,
        pattern: Option<Search>,
    },
    /// Numbers, each alone or in runs.
    Digits {
        individual: bool,
    },
    Punctuation(Behavior),
    /// Words and runs of what is neither word nor blank; blanks go.
    Whitespace,
    /// What stands between blanks.
    WhitespaceSplit,
    /// What stands between these characters.
    Delimiter(char),
    /// So many characters a piece.
    FixedLength(usize),
    /// Blanks become a character, which may be set before the text, and begins a piece.
    Metaspace {
        replacement: char,
        prepend: Prepend,
        split: bool,
    },
    /// `Metaspace` where tokens have blanks and not the character that a file writes for them: that
    /// becomes a blank, and one may be set before the text.
    Blanks {
        written_as: char,
        prepend: Prepend,
    },
    /// BERT's: what stands between blanks, and each punctuation character alone.
    Bert,
}

/// What becomes of a delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    Removed,
    Isolated,
    /// With what stands before it.
    MergedWithPrevious,
    /// With what stands after it.
    MergedWithNext,
    /// Delimiters side by side are one piece.
    Contiguous,
}

/// Before which pieces `Metaspace` sets its character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prepend {
    /// The piece at the start of the text.
    First,
    Never,
    Always,
}

impl PreTokenizer {
    /// The steps that a file's `pre_tokenizer` says, each with its place.
    pub(crate) fn read_all(node: &Node<'_>) -> Result<Vec<(String, Self)>, LoadError> {
        let steps = node.steps("pretokenizers")?;
        let read = |step: &Node<'_>| Ok((step.place().to_owned(), Self::read(step)?));
        steps.iter().map(read).collect()
    }

    /// The type that a file has for it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Split { .. } => "Split",
            Self::ByteLevel { .. } => "ByteLevel",
            Self::Digits { .. } => "Digits",
            Self::Punctuation(_) => "Punctuation",
            Self::Whitespace => "Whitespace",
            Self::WhitespaceSplit => "WhitespaceSplit",
            Self::Delimiter(_) => "CharDelimiterSplit",
            Self::FixedLength(_) => "FixedLength",
            Self::Metaspace { .. } | Self::Blanks { .. } => "Metaspace",
            Self::Bert => "BertPreTokenizer",
        }
    }

    fn read(node: &Node<'_>) -> Result<Self, LoadError> {
        let (step, fields): (Self, &[&str]) = match node.kind()? {
            "Split" => {
                let split = Self::Split {
                    search: Search::read(&node.field("pattern"))?,
                    behavior: Behavior::read(&node.field("behavior"))?,
                    invert: node.field("invert").flag_or(false)?,
                };
                (split, &["pattern", "behavior", "invert"])
            }
            "ByteLevel" => {
                // Trimming of offsets is for the post-processor of this name.
                node.field("trim_offsets").flag_or(true)?;
                let gpt2 = || Search::new(node, None, Pattern::gpt2());
                let byte_level = Self::ByteLevel {
                    add_prefix_space: node.field("add_prefix_space").flag_or(true)?,
                    pattern: match node.field("use_regex").flag_or(true)? {
                        true => Some(gpt2()?),
                        false => None,
                    },
                };
                (
                    byte_level,
                    &["add_prefix_space", "trim_offsets", "use_regex"],
                )
            }
            "Digits" => {
                let individual = node.field("individual_digits").flag_or(false)?;
                (Self::Digits { individual }, &["individual_digits"])
            }
            "Punctuation" => {
                let behavior = node.field("behavior");
                let behavior = match behavior.is_null() {
                    true => Behavior::Isolated,
                    false => Behavior::read(&behavior)?,
                };
                (Self::Punctuation(behavior), &["behavior"])
            }
            "Whitespace" => (Self::Whitespace, &[]),
            "WhitespaceSplit" => (Self::WhitespaceSplit, &[]),
            "CharDelimiterSplit" => {
                let delimiter = node.field("delimiter").character()?;
                (Self::Delimiter(delimiter), &["delimiter"])
            }
            "FixedLength" => {
                let length = node.field("length");
                let characters = match length.is_null() {
                    true => 5,
                    false => length.number()?,
                };
                if characters == 0 {
                    return Err(length.malformed("a number above 0"));
                }
                (Self::FixedLength(characters), &["length"])
            }
            "Metaspace" => return Self::read_metaspace(node),
            "BertPreTokenizer" => (Self::Bert, &[]),
            other => return Err(node.field("type").unsupported(other)),
        };
        node.only(fields)?;
        Ok(step)
    }

    fn read_metaspace(node: &Node<'_>) -> Result<Self, LoadError> {
        node.only(&[
            "replacement",
            "add_prefix_space",
            "prepend_scheme",
            "split",
            "str_rep",
        ])?;
        let scheme = node.field("prepend_scheme");
        let mut prepend = match scheme.is_null() {
            true => Prepend::Always,
            false => match scheme.text()? {
                "first" => Prepend::First,
                "never" => Prepend::Never,
                "always" => Prepend::Always,
                _ => return Err(scheme.malformed("first, never or always")),
            },
        };
        // The older way to say it.
        let prefix = node.field("add_prefix_space");
        if !prefix.flag_or(true)? {
            if !scheme.is_null() && prepend != Prepend::Never {
                return Err(LoadError::at(
                    prefix.place(),
                    "it says another thing than prepend_scheme",
                ));
            }
            prepend = Prepend::Never;
        }
        Ok(Self::Metaspace {
            replacement: node.field("replacement").character()?,
            prepend,
            split: node.field("split").flag_or(true)?,
        })
    }
}

impl Behavior {
    fn read(node: &Node<'_>) -> Result<Self, LoadError> {
        Ok(match node.text()? {
            "Removed" => Self::Removed,
            "Isolated" => Self::Isolated,
            "MergedWithPrevious" => Self::MergedWithPrevious,
            "MergedWithNext" => Self::MergedWithNext,
            "Contiguous" => Self::Contiguous,
            _ => return Err(node.malformed("a behavior of Split")),
        })
    }
}
