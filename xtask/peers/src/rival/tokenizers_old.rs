//! tokenizers 0.x of Hugging Face, with `fancy-regex` in place of Oniguruma.

use tokenizers::Tokenizer;

use super::{Rival, Source};
use crate::Error;

struct Tokenizers(Tokenizer);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let mut tokenizer = Tokenizer::from_file(&source.json).map_err(|error| error.to_string())?;
    tokenizer.set_encode_special_tokens(true);
    Ok(Box::new(Tokenizers(tokenizer)))
}

impl Rival for Tokenizers {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let encoding = self.0.encode_fast(text, false);
        Ok(encoding
            .map_err(|error| error.to_string())?
            .get_ids()
            .to_vec())
    }

    fn run(&mut self, texts: &[&str]) -> Result<usize, Error> {
        let mut tokens = 0;
        for &text in texts {
            let encoding = self.0.encode_fast(text, false);
            tokens += encoding.map_err(|error| error.to_string())?.len();
        }
        Ok(tokens)
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        let batch = self.0.encode_batch_fast(texts.to_vec(), false);
        let batch = batch.map_err(|error| error.to_string())?;
        Ok(Some(batch.iter().map(|encoding| encoding.len()).sum()))
    }
}
