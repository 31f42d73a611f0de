//! A text for a pipeline that comes in pieces, and its tokens.

use std::fmt;

use bpe_core::TokenId;

use crate::pipeline::{Pipeline, PipelineCuts};
use crate::stream_error::StreamError;

/// Bytes that a stream may hold back.
const LIMIT: usize = 1 << 18;

impl Pipeline {
    /// A stream into which text is pushed in any pieces, and which hands out tokens; joined they are those of
    /// [`Pipeline::encode`].
    ///
    /// # Errors
    ///
    /// As [`Pipeline::cuts`]: this pipeline's texts cannot be cut
    /// ([`StreamError::is_unsupported`]).
    ///
    /// ```
    /// use bytepair::{Pipeline, ReadLimits};
    ///
    /// let file = r#"{
    ///     "normalizer": { "type": "NFC" },
    ///     "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
    ///     "model": { "type": "BPE", "vocab": VOCAB, "merges": [] }
    /// }"#;
    /// # let bytes = (0..=255_u8).map(bpe_core::byte_level::to_char);
    /// # let vocab: Vec<_> = bytes.enumerate().map(|(id, c)| format!("{:?}: {id}", c.to_string())).collect();
    /// # let file = file.replace("VOCAB", &format!("{{{}}}", vocab.join(",")));
    /// let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default())?;
    /// let mut stream = pipeline.stream()?;
    /// let mut ids = Vec::new();
    /// for piece in ["Cafe", "\u{301} au ", "lait"] {
    ///     stream.push(piece, &mut ids)?;
    /// }
    /// stream.finish(&mut ids)?;
    /// assert_eq!(ids, pipeline.encode("Caf\u{e9} au lait")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream(&self) -> Result<PipelineStream, StreamError> {
        Ok(PipelineStream {
            cuts: self.cuts()?,
            held: Vec::new(),
            start: 0,
            sought: 0,
            limit: LIMIT,
        })
    }
}

/// Text in, in any pieces; tokens out. See [`Pipeline::stream`].
///
/// What stands behind the last [cut](PipelineCuts) is held back, and at least as many bytes as the longest added token
/// has: in ordinary text a word or a line, in text that no step cuts all of it, up to the
/// [limit](PipelineStream::with_limit). Where nothing was cut, the next cut is looked for when twice as much is held.
///
/// Cost: that of [`Pipeline::encode`], and with each push a look at what is held for a cut.
pub struct PipelineStream {
    cuts: PipelineCuts,
    held: Vec<u8>,
    /// Where what is held begins in the text.
    start: usize,
    /// Bytes among which no cut was found.
    sought: usize,
    limit: usize,
}

impl PipelineStream {
    /// Sets how many bytes may be held back, by default 262,144.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Takes the next bytes of the text, and appends tokens that have become certain to `ids`. A character may come
    /// in several pieces. O(bytes), of those that are held too.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`], with offsets into the whole text; bytes that are not UTF-8
    /// ([`StreamError::invalid_utf8`]); or more is held back than the limit allows ([`StreamError::limit`]). The stream
    /// is of no use afterwards.
    pub fn push(
        &mut self,
        text: impl AsRef<[u8]>,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), StreamError> {
        self.held.extend_from_slice(text.as_ref());
        if self.held.len() >= 2 * self.sought {
            self.hand_out(ids)?;
        }
        match self.held.len() > self.limit {
            // There may be a cut that was not looked for yet.
            true if self.held.len() > self.sought => {
                self.hand_out(ids)?;
                self.check_limit()
            }
            _ => self.check_limit(),
        }
    }

    /// Ends the text, and appends the tokens that were held back. The stream is then as new.
    ///
    /// # Errors
    ///
    /// As [`PipelineStream::push`].
    pub fn finish(&mut self, ids: &mut Vec<TokenId>) -> Result<(), StreamError> {
        let text = std::str::from_utf8(&self.held)
            .map_err(|error| StreamError::not_utf8(self.start + error.valid_up_to()))?;
        self.cuts.encode_into(text, self.start, ids)?;
        self.held.clear();
        (self.start, self.sought) = (0, 0);
        Ok(())
    }

    /// The number of bytes that are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.cuts.pipeline
    }

    fn check_limit(&self) -> Result<(), StreamError> {
        match self.held.len() > self.limit {
            true => Err(StreamError::over(self.limit)),
            false => Ok(()),
        }
    }

    /// Encodes what stands before the last cut.
    fn hand_out(&mut self, ids: &mut Vec<TokenId>) -> Result<(), StreamError> {
        let text = match std::str::from_utf8(&self.held) {
            Ok(text) => text,
            // A character that has not come whole.
            Err(error) if error.error_len().is_none() => {
                let whole = self.held.get(..error.valid_up_to());
                whole
                    .and_then(|whole| std::str::from_utf8(whole).ok())
                    .unwrap_or_default()
            }
            Err(error) => return Err(StreamError::not_utf8(self.start + error.valid_up_to())),
        };
        let Some(cut) = self.cuts.last_cut(text) else {
            self.sought = self.held.len();
            return Ok(());
        };
        let certain = text.get(..cut).unwrap_or_default();
        self.cuts.encode_into(certain, self.start, ids)?;
        self.start += cut;
        self.held.drain(..cut);
        self.sought = 0;
        Ok(())
    }
}

impl fmt::Debug for PipelineStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineStream")
            .field("pipeline", self.pipeline())
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
