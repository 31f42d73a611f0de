//! Ours, by the calls that a beginner makes.

use bytepair::Tokenizer;

use super::{Rival, Source};
use crate::Error;

struct Ours(Tokenizer);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let tokenizer = Tokenizer::from_name(&source.encoding)?;
    // The tables of an embedded vocabulary are shared by the whole process: fresh is what a thread
    // remembers of texts.
    tokenizer.clear_scratch();
    Ok(Box::new(Ours(tokenizer)))
}

impl Rival for Ours {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode(text)?)
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        Ok(Some(self.0.encode_batch(texts)?.iter().map(Vec::len).sum()))
    }
}
