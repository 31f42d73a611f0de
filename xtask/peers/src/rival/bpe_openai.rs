//! bpe-openai: backtracking with an Aho-Corasick automaton.

use bpe_openai::Tokenizer;

use super::{Rival, Source};
use crate::Error;

/// Its tables are static: a fresh instance is the same one again, which remembers nothing of texts.
struct BpeOpenai(&'static Tokenizer);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let tokenizer = match &*source.encoding {
        "cl100k_base" => bpe_openai::cl100k_base(),
        "o200k_base" => bpe_openai::o200k_base(),
        other => return Err(format!("no such encoding: {other}").into()),
    };
    Ok(Box::new(BpeOpenai(tokenizer)))
}

impl Rival for BpeOpenai {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode(text))
    }
}
