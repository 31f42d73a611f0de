//! fastokens: class bitmaps, and a cache for each thread.

use fastokens::tiktoken::{CL100K_BASE_PATTERN, O200K_BASE_PATTERN, TiktokenConfig};
use fastokens::{AddedTokenPolicy, Tokenizer};

use super::{Rival, Source};
use crate::Error;

struct Fastokens(Tokenizer);

/// With the peer's own pattern, which is what it knows a fast lexer for.
pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let pattern = match &*source.encoding {
        "cl100k_base" => CL100K_BASE_PATTERN,
        "o200k_base" => O200K_BASE_PATTERN,
        other => return Err(format!("no pattern for {other}").into()),
    };
    let config = TiktokenConfig {
        pattern: pattern.to_owned(),
        special_tokens: Vec::new(),
    };
    let tokenizer = Tokenizer::from_tiktoken_file(&source.ranks, config)?;
    Ok(Box::new(Fastokens(tokenizer)))
}

impl Rival for Fastokens {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode_ordinary(text)?)
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        let policy = AddedTokenPolicy::None;
        let batch = self.0.encode_batch_with_policy(texts, false, policy)?;
        Ok(Some(batch.iter().map(Vec::len).sum()))
    }
}
