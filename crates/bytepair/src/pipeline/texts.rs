//! The many strings of a file, one behind the other: tokens with their ids, and merges. A file has up to
//! a million of them, and memory of its own for each would cost more than reading it.

use std::fmt;

use bpe_core::TokenId;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Strings in one piece of memory.
#[derive(Default)]
struct Texts {
    all: String,
    /// Where each ends in `all`.
    ends: Vec<u32>,
}

impl Texts {
    fn push<E: Error>(&mut self, text: &str) -> Result<(), E> {
        self.all.push_str(text);
        let end = u32::try_from(self.all.len());
        self.ends
            .push(end.map_err(|_| E::custom("over 4 GiB of tokens"))?);
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        let starts = std::iter::once(&0).chain(&self.ends);
        let ranges = starts.zip(&self.ends);
        ranges.map(|(&start, &end)| {
            self.all
                .get(start as usize..end as usize)
                .unwrap_or_default()
        })
    }
}

/// Reads a string and appends it.
struct Push<'t>(&'t mut Texts);

impl<'de> DeserializeSeed<'de> for Push<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Push<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push(text)
    }
}

/// The object from tokens to ids, in the order of the file, keys that come twice included.
#[derive(Default)]
pub(crate) struct Vocab {
    texts: Texts,
    ids: Vec<TokenId>,
}

impl Vocab {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of all tokens as the file spells them.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.all.len()
    }

    /// The tokens as the file spells them, with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, TokenId)> + Clone {
        self.texts.iter().zip(self.ids.iter().copied())
    }
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from tokens to ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
                let mut vocab = Vocab::default();
                while map.next_key_seed(Push(&mut vocab.texts))?.is_some() {
                    vocab.ids.push(map.next_value()?);
                }
                Ok(vocab)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// The list of merges, each written as `"a b"` or as `["a", "b"]`.
#[derive(Default)]
pub(crate) struct Merges {
    /// Two a merge.
    sides: Texts,
}

impl Merges {
    pub(crate) fn len(&self) -> usize {
        self.sides.ends.len() / 2
    }

    /// Both sides of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let mut sides = self.sides.iter();
        std::iter::from_fn(move || Some((sides.next()?, sides.next()?)))
    }
}

/// Reads one merge and appends its sides.
struct PushMerge<'t>(&'t mut Texts);

impl<'de> DeserializeSeed<'de> for PushMerge<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PushMerge<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a merge: two tokens in a list, or with a blank between them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match text.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => {
                self.0.push(left)?;
                self.0.push(right)
            }
            _ => Err(E::custom(format_args!(
                "merge {text:?} is not two tokens with a blank between them"
            ))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let left = seq.next_element_seed(Push(self.0))?;
        let right = seq.next_element_seed(Push(self.0))?;
        match (left, right, seq.next_element::<serde::de::IgnoredAny>()?) {
            (Some(()), Some(()), None) => Ok(()),
            _ => Err(A::Error::custom("a merge has two tokens")),
        }
    }
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Merges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of merges")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Merges, A::Error> {
                let mut merges = Merges::default();
                while seq
                    .next_element_seed(PushMerge(&mut merges.sides))?
                    .is_some()
                {}
                Ok(merges)
            }
        }
        deserializer.deserialize_seq(List)
    }
}
