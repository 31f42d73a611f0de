//! tiktoken-rs: a regular expression, then merges.

use tiktoken_rs::CoreBPE;

use super::{Rival, Source};
use crate::Error;

struct TiktokenRs(CoreBPE);

pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let core = match &*source.encoding {
        "cl100k_base" => tiktoken_rs::cl100k_base()?,
        "o200k_base" => tiktoken_rs::o200k_base()?,
        other => return Err(format!("no such encoding: {other}").into()),
    };
    Ok(Box::new(TiktokenRs(core)))
}

impl Rival for TiktokenRs {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.0.encode_ordinary(text))
    }
}
