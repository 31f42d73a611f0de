//! A part of a JSON file that knows its place, so that what is wrong with it can be said.

use serde_json::Value;

use crate::error::LoadError;

/// A value of a JSON file, and the path that leads to it: `pre_tokenizer.pretokenizers[1]`.
#[derive(Clone)]
pub(crate) struct Node<'v> {
    place: String,
    value: &'v Value,
}

impl<'v> Node<'v> {
    pub(crate) fn new(place: impl Into<String>, value: &'v Value) -> Self {
        Self {
            place: place.into(),
            value,
        }
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn value(&self) -> &'v Value {
        self.value
    }

    /// Null, or not there.
    pub(crate) fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// What stands under `name`; null where nothing does.
    pub(crate) fn field(&self, name: &str) -> Node<'v> {
        Node::new(format!("{}.{name}", self.place), &self.value[name])
    }

    /// The kind of a step: its field `type`.
    pub(crate) fn kind(&self) -> Result<&'v str, LoadError> {
        self.field("type").text()
    }

    pub(crate) fn text(&self) -> Result<&'v str, LoadError> {
        self.value
            .as_str()
            .ok_or_else(|| self.malformed("a string"))
    }

    pub(crate) fn character(&self) -> Result<char, LoadError> {
        let mut characters = self.text()?.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(self.malformed("one character")),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, LoadError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.malformed("true or false"))
    }

    /// The flag, or `default` where there is none.
    pub(crate) fn flag_or(&self, default: bool) -> Result<bool, LoadError> {
        match self.is_null() {
            true => Ok(default),
            false => self.flag(),
        }
    }

    pub(crate) fn number(&self) -> Result<usize, LoadError> {
        let number = self.value.as_u64().map(usize::try_from);
        match number {
            Some(Ok(number)) => Ok(number),
            _ => Err(self.malformed("a whole number")),
        }
    }

    pub(crate) fn list(&self) -> Result<Vec<Node<'v>>, LoadError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.malformed("a list"))?;
        let place = |index| format!("{}[{index}]", self.place);
        let nodes = items.iter().enumerate();
        Ok(nodes
            .map(|(index, value)| Node::new(place(index), value))
            .collect())
    }

    /// Refuses a step that has other fields than `known` and `type`: what they say would be lost.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), LoadError> {
        let fields = self
            .value
            .as_object()
            .ok_or_else(|| self.malformed("an object"))?;
        let other = fields
            .keys()
            .find(|name| *name != "type" && !known.contains(&name.as_str()));
        match other {
            None => Ok(()),
            Some(name) => Err(self.field(name).unsupported("this field")),
        }
    }

    /// The steps of a sequence, one inside the other, in one list: those of `self` if it is a
    /// `Sequence` with its steps under `name`, nothing if it is null, else `self` alone.
    pub(crate) fn steps(&self, name: &str) -> Result<Vec<Node<'v>>, LoadError> {
        let mut steps = Vec::new();
        let mut waiting = vec![self.clone()];
        while let Some(node) = waiting.pop() {
            if node.is_null() {
                continue;
            }
            if node.kind()? != "Sequence" {
                steps.push(node);
                continue;
            }
            node.only(&[name])?;
            let inside = node.field(name).list()?;
            if let Some(null) = inside.iter().find(|node| node.is_null()) {
                return Err(null.malformed("a step"));
            }
            waiting.extend(inside.into_iter().rev());
        }
        Ok(steps)
    }

    /// The error that this is not what it should be.
    pub(crate) fn malformed(&self, expected: &str) -> LoadError {
        let what = match self.value {
            Value::Null => "missing",
            _ => "malformed",
        };
        LoadError::at(&self.place, format_args!("{what}; {expected} is expected"))
    }

    /// The error that `what`, asked for here, is not done.
    pub(crate) fn unsupported(&self, what: impl Into<String>) -> LoadError {
        LoadError::unsupported(&self.place, what)
    }
}
