//! wordchipper (001): a lexer made by `logos` or a regular expression, and five encoders of spans.

use std::sync::Arc;

use wordchipper::encoders::token_span_encoder::SpanEncoderSelector;
use wordchipper::pretrained::openai::OATokenizer;
use wordchipper::vocab::SpecialFilter;
use wordchipper::{TokenEncoder, TokenEncoderOptions};

use super::{Rival, Source};
use crate::Error;

struct Wordchipper(Arc<dyn TokenEncoder<u32>>);

/// With its defaults: `logos`, and the encoder that it takes for many threads.
pub(super) fn load(source: &Source) -> Result<Box<dyn Rival>, Error> {
    with(source, &TokenEncoderOptions::default())
}

/// With the regular expression.
pub(super) fn regex(source: &Source) -> Result<Box<dyn Rival>, Error> {
    let options = TokenEncoderOptions::default().with_accelerated_lexers(false);
    with(source, &options)
}

macro_rules! encoders {
    ($($(#[$doc:meta])* $name:ident $selector:ident;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(source: &Source) -> Result<Box<dyn Rival>, Error> {
            let selector = SpanEncoderSelector::$selector;
            with(source, &TokenEncoderOptions::default().with_span_encoder(selector))
        }
    )*};
}

encoders! {
    /// With `logos` and this encoder of spans.
    tail_sweep TailSweep;
    /// With `logos` and this encoder of spans.
    merge_heap MergeHeap;
    /// With `logos` and this encoder of spans.
    priority_merge PriorityMerge;
    /// With `logos` and this encoder of spans.
    buffer_sweep BufferSweep;
    /// With `logos` and this encoder of spans.
    backtrack BpeBacktrack;
}

fn with(source: &Source, options: &TokenEncoderOptions) -> Result<Box<dyn Rival>, Error> {
    let encoding = match &*source.encoding {
        "cl100k_base" => OATokenizer::Cl100kBase,
        "o200k_base" => OATokenizer::O200kBase,
        other => return Err(format!("no such encoding: {other}").into()),
    };
    let vocabulary = encoding
        .load_path::<u32>(&source.ranks)
        .map_err(|error| error.to_string())?;
    Ok(Box::new(Wordchipper(options.build(Arc::new(vocabulary)))))
}

impl Rival for Wordchipper {
    fn encode(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let ids = self.0.try_encode(text, Some(&SpecialFilter::IncludeNone));
        Ok(ids.map_err(|error| error.to_string())?)
    }
}
