//! Tokens that come in pieces: are they what a pipeline makes of the text that they decode to?

use std::collections::VecDeque;
use std::fmt;

use bpe_core::TokenId;
use bpe_dfa::{Mismatch, Reason};

use crate::pipeline::{Pipeline, PipelineDecodeStream, PipelineStream};
use crate::stream_error::StreamError;

impl Pipeline {
    /// A validator for tokens that come in pieces: do they equal the tokens of the text that they decode to, and if
    /// not, from where on?
    ///
    /// # Errors
    ///
    /// As [`Pipeline::stream`].
    ///
    /// ```
    /// use bytepair::{Pipeline, ReadLimits};
    ///
    /// let file = r#"{
    ///     "normalizer": { "type": "Lowercase" },
    ///     "pre_tokenizer": { "type": "Whitespace" },
    ///     "decoder": { "type": "WordPiece", "prefix": "@", "cleanup": false },
    ///     "model": {
    ///         "type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "@",
    ///         "max_input_chars_per_word": 100, "vocab": { "?": 0, "one": 1, "ones": 2, "@s": 3 }
    ///     }
    /// }"#;
    /// let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default())?;
    /// let mut validator = pipeline.validator()?;
    /// assert_eq!(validator.validate(&[1, 2])?, None);
    /// // "one" and "@s" are "ones", which is a token.
    /// let mismatch = validator.validate(&[1, 1, 3])?.expect("other tokens");
    /// assert_eq!((mismatch.index, mismatch.expected), (1, Some(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn validator(&self) -> Result<PipelineValidator, StreamError> {
        Ok(PipelineValidator {
            decoded: self.decode_stream(),
            stream: self.stream()?,
            index: 0,
            waiting: VecDeque::new(),
            made: VecDeque::new(),
            found: None,
        })
    }
}

/// Ids in, in any pieces; out, where they stop being the tokens of their text. See [`Pipeline::validator`].
///
/// It reports the length of the longest common prefix of the ids and `encode(decode(ids))`, special tokens
/// decoded as their text. Where decoding loses something, as an unknown token does, the ids differ there. An id of no
/// token ends the text: what stands before is judged as if nothing followed, and if all of it is right, the mismatch
/// is at that id.
///
/// Cost: that of decoding and encoding. What is held back is what a [`PipelineDecodeStream`] and a
/// [`PipelineStream`] hold back.
pub struct PipelineValidator {
    decoded: PipelineDecodeStream,
    stream: PipelineStream,
    /// Index of the first id that is not known to be right.
    index: usize,
    /// The ids from there on.
    waiting: VecDeque<TokenId>,
    /// What the text has instead of them, as far as is certain.
    made: VecDeque<TokenId>,
    found: Option<Mismatch>,
}

impl PipelineValidator {
    /// The first mismatch of a whole sequence. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`PipelineValidator::push`].
    pub fn validate(&mut self, ids: &[TokenId]) -> Result<Option<Mismatch>, StreamError> {
        self.reset()?;
        self.push(ids)?;
        self.finish()
    }

    /// Takes the next ids. Returns the first mismatch as soon as it is certain. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`PipelineStream::push`]: the text has no tokens, or more is held back than the limit allows.
    pub fn push(&mut self, ids: &[TokenId]) -> Result<Option<&Mismatch>, StreamError> {
        for &id in ids {
            if self.found.is_some() {
                break;
            }
            match self.decoded.push(id) {
                Ok(text) => {
                    self.waiting.push_back(id);
                    let mut made = Vec::new();
                    self.stream.push(text, &mut made)?;
                    self.compare(made);
                }
                Err(_) => {
                    let index = self.index + self.waiting.len();
                    self.end()?;
                    self.found.get_or_insert(Mismatch {
                        index,
                        expected: None,
                        reason: Reason::UnknownId { index },
                    });
                }
            }
        }
        Ok(self.found.as_ref())
    }

    /// Ends the ids, and returns their first mismatch. The validator is then as new.
    ///
    /// # Errors
    ///
    /// As [`PipelineValidator::push`].
    pub fn finish(&mut self) -> Result<Option<Mismatch>, StreamError> {
        if self.found.is_none() {
            self.end()?;
        }
        let found = self.found.take();
        self.reset()?;
        Ok(found)
    }

    /// The number of ids that are known to be right.
    pub fn confirmed(&self) -> usize {
        self.index
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        self.stream.pipeline()
    }

    fn reset(&mut self) -> Result<(), StreamError> {
        *self = self.pipeline().validator()?;
        Ok(())
    }

    /// Judges all ids as if nothing followed.
    fn end(&mut self) -> Result<(), StreamError> {
        let next = self.pipeline().decode_stream();
        let text = std::mem::replace(&mut self.decoded, next).finish();
        let mut made = Vec::new();
        self.stream.push(text, &mut made)?;
        self.stream.finish(&mut made)?;
        self.compare(made);
        // One has more tokens than the other.
        if self.found.is_none() && self.waiting.len() != self.made.len() {
            self.found = Some(self.mismatch(self.made.front().copied()));
        }
        Ok(())
    }

    /// Compares the ids with these next tokens of the text.
    fn compare(&mut self, made: Vec<TokenId>) {
        self.made.extend(made);
        while let (Some(id), Some(expected)) = (self.waiting.front(), self.made.front()) {
            if id != expected {
                self.found = Some(self.mismatch(Some(*expected)));
                break;
            }
            self.index += 1;
            self.waiting.pop_front();
            self.made.pop_front();
        }
    }

    fn mismatch(&self, expected: Option<TokenId>) -> Mismatch {
        let index = self.index;
        Mismatch {
            index,
            expected,
            reason: Reason::Steps { index },
        }
    }
}

impl fmt::Debug for PipelineValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineValidator")
            .field("pipeline", self.pipeline())
            .field("confirmed", &self.index)
            .finish_non_exhaustive()
    }
}
