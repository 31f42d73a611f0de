//! What a file says of its post-processor.

use bpe_core::TokenId;
use serde_json::Value;

use super::{Piece, PostProcessor, Step, Template};
use crate::error::LoadError;
use crate::pipeline::node::Node;

impl PostProcessor {
    /// The post-processor that stands at `node`; null adds nothing.
    ///
    /// # Errors
    ///
    /// A step that is malformed, unknown, or asks for what is not done; the error names its path.
    pub(crate) fn read(node: &Node<'_>) -> Result<Self, LoadError> {
        let mut steps = Vec::new();
        let mut adds_tokens = false;
        for node in node.steps("processors")? {
            let adds = read_step(&node, &mut steps)?;
            if adds && adds_tokens {
                // What such a step does to the parts that the one before makes, nobody means.
                return Err(node.unsupported("a step that adds tokens behind another"));
            }
            adds_tokens |= adds;
        }
        Ok(Self { steps })
    }
}

/// Appends the steps that `node` is, and says whether they add tokens.
fn read_step(node: &Node<'_>, steps: &mut Vec<Step>) -> Result<bool, LoadError> {
    match node.kind()? {
        "ByteLevel" => {
            node.only(&["add_prefix_space", "trim_offsets", "use_regex"])?;
            let prefix_space = node.field("add_prefix_space").flag()?;
            if node.field("trim_offsets").flag()? {
                steps.push(Step::TrimOffsets { prefix_space });
            }
            Ok(false)
        }
        "TemplateProcessing" => {
            node.only(&["single", "pair", "special_tokens"])?;
            let pieces = |name, is_pair| read_pieces(node, name, is_pair);
            steps.push(Step::Template(Box::new(Template {
                single: pieces("single", false)?,
                pair: pieces("pair", true)?,
            })));
            Ok(true)
        }
        "BertProcessing" => {
            node.only(&["sep", "cls"])?;
            steps.push(Step::Bert {
                cls: read_token(&node.field("cls"))?,
                sep: read_token(&node.field("sep"))?,
            });
            Ok(true)
        }
        "RobertaProcessing" => {
            node.only(&["sep", "cls", "trim_offsets", "add_prefix_space"])?;
            let prefix_space = node.field("add_prefix_space").flag()?;
            if node.field("trim_offsets").flag()? {
                steps.push(Step::TrimOffsets { prefix_space });
            }
            steps.push(Step::OneType);
            steps.push(Step::Roberta {
                cls: read_token(&node.field("cls"))?,
                sep: read_token(&node.field("sep"))?,
            });
            Ok(true)
        }
        other => Err(node.field("type").unsupported(other)),
    }
}

/// A text and an id: `["[SEP]", 102]`.
fn read_token(node: &Node<'_>) -> Result<TokenId, LoadError> {
    match &node.list()?[..] {
        [text, id] => {
            text.text()?;
            read_id(id)
        }
        _ => Err(node.malformed("a text and an id")),
    }
}

fn read_id(node: &Node<'_>) -> Result<u32, LoadError> {
    u32::try_from(node.number()?).map_err(|_| node.malformed("a number of 32 bits"))
}

/// A template: a list of `{"Sequence": {"id": "A", "type_id": 0}}` and `{"SpecialToken": ...}`.
fn read_pieces(node: &Node<'_>, name: &str, is_pair: bool) -> Result<Vec<Piece>, LoadError> {
    let specials = node.field("special_tokens");
    let read = |piece: &Node<'_>| {
        let (text, special) = (piece.field("Sequence"), piece.field("SpecialToken"));
        if !text.is_null() {
            piece.only(&["Sequence"])?;
            text.only(&["id", "type_id"])?;
            let second = match text.field("id").text()? {
                "A" => false,
                "B" if is_pair => true,
                _ => return Err(text.field("id").malformed("A, or B in a pair")),
            };
            return Ok(Piece::Text {
                second,
                type_id: read_id(&text.field("type_id"))?,
            });
        }
        piece.only(&["SpecialToken"])?;
        special.only(&["id", "type_id"])?;
        let name = special.field("id").text()?;
        Ok(Piece::Added {
            ids: read_special(&specials, name)?,
            type_id: read_id(&special.field("type_id"))?,
        })
    };
    node.field(name).list()?.iter().map(read).collect()
}

/// The ids of one of the `special_tokens`.
fn read_special(specials: &Node<'_>, name: &str) -> Result<Vec<TokenId>, LoadError> {
    let special = specials.field(name);
    if !matches!(special.value(), Value::Object(_)) {
        return Err(special.malformed("an object with ids and tokens"));
    }
    special.only(&["id", "ids", "tokens"])?;
    special.field("ids").list()?.iter().map(read_id).collect()
}
