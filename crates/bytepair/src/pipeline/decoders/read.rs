//! What a file says of its decoder.

use super::Decoder;
use super::steps::Step;
use crate::error::LoadError;
use crate::pipeline::node::Node;

impl Decoder {
    /// The decoder that stands at `node`; null is none.
    ///
    /// # Errors
    ///
    /// A step that is malformed, unknown, or asks for what is not done; the error names its path.
    pub(crate) fn read(node: &Node<'_>) -> Result<Self, LoadError> {
        if node.is_null() {
            return Ok(Self::none());
        }
        let steps = node.steps("decoders")?;
        let steps = steps.iter().map(read_step).collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }
}

fn read_step(node: &Node<'_>) -> Result<Step, LoadError> {
    match node.kind()? {
        "ByteLevel" => {
            node.only(&["add_prefix_space", "trim_offsets", "use_regex"])?;
            Ok(Step::ByteLevel)
        }
        "ByteFallback" => {
            node.only(&[])?;
            Ok(Step::ByteFallback)
        }
        "Fuse" => {
            node.only(&[])?;
            Ok(Step::Fuse)
        }
        "Strip" => {
            node.only(&["content", "start", "stop"])?;
            Ok(Step::Strip {
                content: node.field("content").character()?,
                start: node.field("start").number()?,
                stop: node.field("stop").number()?,
            })
        }
        "Replace" => {
            node.only(&["pattern", "content"])?;
            let pattern = node.field("pattern");
            let text = pattern.field("String");
            if text.is_null() && !pattern.field("Regex").is_null() {
                return Err(pattern.unsupported("a regular expression in a decoder"));
            }
            pattern.only(&["String"])?;
            if text.text()?.is_empty() {
                return Err(text.unsupported("an empty string"));
            }
            Ok(Step::Replace {
                from: text.text()?.to_owned(),
                to: node.field("content").text()?.to_owned(),
            })
        }
        "Metaspace" => {
            let known = [
                "replacement",
                "add_prefix_space",
                "prepend_scheme",
                "split",
                "str_rep",
            ];
            node.only(&known)?;
            let scheme = node.field("prepend_scheme");
            let prepends = match scheme.is_null() {
                true => true,
                false => match scheme.text()? {
                    "always" | "first" => true,
                    "never" => false,
                    _ => return Err(scheme.malformed("always, first or never")),
                },
            };
            Ok(Step::Metaspace {
                replacement: node.field("replacement").character()?,
                drop_first: prepends && node.field("add_prefix_space").flag_or(true)?,
            })
        }
        "WordPiece" => {
            node.only(&["prefix", "cleanup"])?;
            Ok(Step::WordPiece {
                prefix: node.field("prefix").text()?.to_owned(),
                cleanup: node.field("cleanup").flag()?,
            })
        }
        "BPEDecoder" => {
            node.only(&["suffix"])?;
            let suffix = node.field("suffix").text()?;
            if suffix.is_empty() {
                return Err(node.field("suffix").unsupported("an empty suffix"));
            }
            Ok(Step::BpeDecoder {
                suffix: suffix.to_owned(),
            })
        }
        "CTC" => {
            node.only(&["pad_token", "word_delimiter_token", "cleanup"])?;
            let text = |name: &str| {
                let field = node.field(name);
                match field.text()? {
                    "" => Err(field.unsupported("an empty token")),
                    text => Ok(text.to_owned()),
                }
            };
            Ok(Step::Ctc {
                pad: text("pad_token")?,
                delimiter: text("word_delimiter_token")?,
                cleanup: node.field("cleanup").flag()?,
            })
        }
        other => Err(node.field("type").unsupported(other)),
    }
}
