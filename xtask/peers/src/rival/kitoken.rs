//! kitoken: a regular expression, then merges with a queue.

use kitoken::{Kitoken, SpecialTokenKind};

use super::{Rival, Source};
use crate::Error;

struct Peer(Kitoken);

/// No special token is looked for.
const SPECIALS: &[SpecialTokenKind] = &[];

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let tokenizer =
        Kitoken::from_tiktoken_file(&source.ranks).map_err(|error| error.to_string())?;
    Ok(Box::new(Peer(tokenizer)))
}

impl Rival for Peer {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let ids = self.0.encode(text, SPECIALS);
        Ok(ids.map_err(|error| error.to_string())?)
    }
}
