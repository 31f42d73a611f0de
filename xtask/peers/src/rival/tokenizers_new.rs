//! tokenizers 1.0, still a release candidate: a pipeline that gives ids and nothing else.

use tokenizers_new::pipeline::PipelineTokenizer;
use tokenizers_new::pipeline::encode_options::EncodeOptions;

use super::{Rival, Source};
use crate::Error;

struct Tokenizers {
    tokenizer: PipelineTokenizer,
    options: EncodeOptions,
}

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    // The reader takes the canonical form only.
    let json = tokenizers_new::canonicalize_file(&source.json)?;
    let tokenizer = tokenizers_new::from_json(&json).map_err(|error| error.to_string())?;
    let options = EncodeOptions {
        encode_special_tokens: true,
        ..EncodeOptions::no_specials()
    };
    Ok(Box::new(Tokenizers { tokenizer, options }))
}

impl Rival for Tokenizers {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let mut tokens = Vec::new();
        let done = self.tokenizer.encode_into(text, &self.options, &mut tokens);
        done.map_err(|error| error.to_string())?;
        Ok(tokens.into_iter().map(|token| token.id()).collect())
    }

    fn run(&mut self, texts: &[&str]) -> Result<usize, Error> {
        let mut count = 0;
        for text in texts {
            let mut tokens = Vec::with_capacity(text.len() / 4);
            let done = self.tokenizer.encode_into(text, &self.options, &mut tokens);
            done.map_err(|error| error.to_string())?;
            count += tokens.len();
        }
        Ok(count)
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        let batch = self.tokenizer.encode(texts, &self.options).wait();
        let batch = batch.map_err(|error| error.to_string())?;
        Ok(Some(
            batch.iter().map(|encoding| encoding.ids().len()).sum(),
        ))
    }
}
