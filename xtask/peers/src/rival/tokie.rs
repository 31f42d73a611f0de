//! tokie: hand-written lexers and backtracking.

use tokie::Tokenizer;

use super::{Rival, Source};
use crate::Error;

struct Tokie(Tokenizer);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let tokenizer = Tokenizer::from_json(&source.json).map_err(|error| error.to_string())?;
    Ok(Box::new(Tokie(tokenizer)))
}

impl Rival for Tokie {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode_ids(text, false))
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        Ok(Some(self.0.encode_batch_flat(texts, false).0.len()))
    }
}
