//! What a file says of truncation and padding. Both are left off unless a caller asks for them.

use crate::error::LoadError;
use crate::pipeline::model_input::{PadTo, Padding, Side, Truncation, TruncationStrategy};
use crate::pipeline::node::Node;

/// The truncation of the file; `None` where it has none.
///
/// # Errors
///
/// Malformed settings; the error names the field.
pub(crate) fn read_truncation(node: &Node<'_>) -> Result<Option<Truncation>, LoadError> {
    if node.is_null() {
        return Ok(None);
    }
    node.only(&["direction", "max_length", "strategy", "stride"])?;
    let strategy = node.field("strategy");
    Ok(Some(Truncation {
        max_length: node.field("max_length").number()?,
        strategy: match strategy.text()? {
            "LongestFirst" => TruncationStrategy::LongestFirst,
            "OnlyFirst" => TruncationStrategy::OnlyFirst,
            "OnlySecond" => TruncationStrategy::OnlySecond,
            _ => return Err(strategy.malformed("LongestFirst, OnlyFirst or OnlySecond")),
        },
        stride: node.field("stride").number()?,
        side: read_side(&node.field("direction"))?,
    }))
}

/// The padding of the file; `None` where it has none.
///
/// # Errors
///
/// Malformed settings; the error names the field.
pub(crate) fn read_padding(node: &Node<'_>) -> Result<Option<Padding>, LoadError> {
    if node.is_null() {
        return Ok(None);
    }
    node.only(&[
        "strategy",
        "direction",
        "pad_to_multiple_of",
        "pad_id",
        "pad_type_id",
        "pad_token",
    ])?;
    let strategy = node.field("strategy");
    let to = match strategy.value().as_str() {
        Some("BatchLongest") => PadTo::Longest,
        Some(_) => return Err(strategy.malformed("BatchLongest, or Fixed with a length")),
        None => {
            strategy.only(&["Fixed"])?;
            PadTo::Length(strategy.field("Fixed").number()?)
        }
    };
    let number = |name: &str| {
        let field = node.field(name);
        u32::try_from(field.number()?).map_err(|_| field.malformed("a number of 32 bits"))
    };
    let multiple = node.field("pad_to_multiple_of");
    Ok(Some(Padding {
        to,
        multiple_of: match multiple.is_null() {
            true => None,
            false => Some(multiple.number()?),
        },
        side: read_side(&node.field("direction"))?,
        id: number("pad_id")?,
        type_id: number("pad_type_id")?,
        token: node.field("pad_token").text()?.to_owned(),
    }))
}

fn read_side(node: &Node<'_>) -> Result<Side, LoadError> {
    if node.is_null() {
        return Ok(Side::Right);
    }
    match node.text()? {
        "Right" => Ok(Side::Right),
        "Left" => Ok(Side::Left),
        _ => Err(node.malformed("Left or Right")),
    }
}
