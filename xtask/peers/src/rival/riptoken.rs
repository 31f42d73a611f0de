//! riptoken: automata that were built beforehand for the patterns of tiktoken, then merges.

use std::collections::HashMap;

use riptoken::CoreBPE;

use super::{Rival, Source};
use crate::Error;

struct Riptoken(CoreBPE);

/// tiktoken's own spelling of its pattern, which is what the peer has an automaton for.
const CL100K_BASE: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const O200K_BASE: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let pattern = match &*source.encoding {
        "cl100k_base" => CL100K_BASE,
        "o200k_base" => O200K_BASE,
        other => return Err(format!("no pattern for {other}").into()),
    };
    let ranks = source.tokens()?.into_iter().collect();
    let core =
        CoreBPE::new(ranks, HashMap::default(), pattern).map_err(|error| error.to_string())?;
    Ok(Box::new(Riptoken(core)))
}

impl Rival for Riptoken {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode_ordinary(text))
    }

    fn run_batch(&mut self, texts: &[&str]) -> Result<Option<usize>, Error> {
        let batch = self.0.encode_ordinary_batch(texts);
        Ok(Some(batch.iter().map(Vec::len).sum()))
    }
}
