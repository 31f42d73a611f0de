//! Ids in one by one, text out at character boundaries.

use bpe_core::{DecodeError, TokenId};

use crate::tokenizer::Tokenizer;

/// Text of ids as they come: each push hands out what is certain, and holds back at most the three
/// bytes of a character that has begun. Joined together with [`DecodeStream::finish`], the parts
/// are [`Tokenizer::decode_lossy`] of all ids.
///
/// A push costs O(bytes of the token); what was pushed before is not kept.
///
/// ```
/// let tokenizer = bytepair::Tokenizer::o200k_base();
/// let ids = tokenizer.encode("龘!")?; // Two tokens share the character.
/// let mut stream = tokenizer.decode_stream();
/// assert_eq!(stream.push(ids[0])?, "");
/// assert_eq!(stream.push(ids[1])?, "龘");
/// assert_eq!(stream.push(ids[2])?, "!");
/// assert_eq!(stream.finish(), "");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecodeStream {
    tokenizer: Tokenizer,
    /// The begun character, at most three bytes between pushes.
    pending: Vec<u8>,
    text: String,
    pushed: usize,
}

impl DecodeStream {
    pub(crate) fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            pending: Vec::new(),
            text: String::new(),
            pushed: 0,
        }
    }

    pub(crate) fn after(tokenizer: Tokenizer, prompt: &[TokenId]) -> Result<Self, DecodeError> {
        let mut stream = Self::new(tokenizer);
        for &id in prompt {
            stream.push(id)?;
        }
        stream.pushed = 0;
        Ok(stream)
    }

    /// The text that `id` makes certain, which may be empty.
    ///
    /// # Errors
    ///
    /// An id that no token has, with its index among those pushed; the stream is then as it was, and
    /// can go on.
    pub fn push(&mut self, id: TokenId) -> Result<&str, DecodeError> {
        let bytes = self.tokenizer.token_bytes(id);
        let bytes = bytes.ok_or(DecodeError::unknown_id(id, self.pushed))?;
        self.pushed += 1;
        self.pending.extend_from_slice(bytes);
        self.text.clear();
        let mut rest = self.pending.as_slice();
        let held = loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    break 0;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.text
                        .push_str(std::str::from_utf8(valid).unwrap_or_default());
                    let Some(invalid) = error.error_len() else {
                        break after.len(); // A character has begun.
                    };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[invalid..];
                }
            }
        };
        self.pending.drain(..self.pending.len() - held);
        Ok(&self.text)
    }

    /// Number of bytes held back, 0 to 3.
    pub fn held_bytes(&self) -> usize {
        self.pending.len()
    }

    /// The rest: U+FFFD where a character has begun and not ended, else nothing.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}
