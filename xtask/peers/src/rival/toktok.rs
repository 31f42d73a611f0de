//! toktok-rs: backtracking on a trie, lexing and emission fused, a bounded cache.

use toktok::Tokenizer;

use super::{Rival, Source};
use crate::Error;

struct Toktok(Tokenizer);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let tokenizer = Tokenizer::builtin(&source.encoding).map_err(|error| error.to_string())?;
    Ok(Box::new(Toktok(tokenizer)))
}

impl Rival for Toktok {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode(text.as_bytes()))
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let batch = self.0.encode_batch(&texts, 0, false);
        Ok(Some(batch.iter().map(Vec::len).sum()))
    }
}
