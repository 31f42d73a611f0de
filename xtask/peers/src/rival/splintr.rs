//! splintr: a regular expression compiled to machine code, and a cache of pieces.

use splintr::pretrained::from_pretrained;
use splintr::{AnyTokenizer, SpecialMode};

use super::{Rival, Source};
use crate::Error;

struct Splintr(AnyTokenizer);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let tokenizer = from_pretrained(&source.encoding).map_err(|error| error.to_string())?;
    Ok(Box::new(Splintr(tokenizer)))
}

impl Rival for Splintr {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let ids = self.0.encode_with(text, &SpecialMode::Ordinary);
        Ok(ids.map_err(|error| error.to_string())?)
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        let batch = self.0.encode_batch_with(texts, &SpecialMode::Ordinary);
        let batch = batch.map_err(|error| error.to_string())?;
        Ok(Some(batch.iter().map(Vec::len).sum()))
    }
}
