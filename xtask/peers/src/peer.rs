//! The seam to other tokenizers: one small adapter for each, in a file of its own.

pub(crate) mod mtc_inc_bpe;
mod tiktoken_rs;

use std::cell::Cell;

use self::tiktoken_rs::TiktokenRs;

/// A tokenizer of other people, with one encoding loaded.
pub(crate) trait Peer {
    /// Name and version of the package.
    fn name(&self) -> String;

    /// The ids of `text`, in which special tokens are text.
    fn encode_ordinary(&self, text: &str) -> Vec<u32>;

    /// The ids of `text`, in which the text of any special token is that token.
    fn encode_with_special_tokens(&self, text: &str) -> Vec<u32>;

    /// The number of ids of `text`, in which special tokens are text.
    fn count_ordinary(&self, text: &str) -> usize;

    /// The bytes of `ids`, or `None` if the peer does not know one of them.
    fn decode(&self, ids: &[u32]) -> Option<Vec<u8>>;

    /// The texts of its special tokens, sorted.
    fn special_tokens(&self) -> Vec<String>;
}

/// The name of the peer that is the oracle.
pub(crate) const TIKTOKEN_RS: &str = "tiktoken-rs";

/// Loads an encoding in tiktoken-rs; `None` where it has none of this name. It has no name for
/// `gpt2`, whose ids are those of its `r50k_base`.
pub(crate) fn tiktoken_rs(encoding: &str) -> Option<Box<dyn Peer>> {
    Some(Box::new(TiktokenRs::new(encoding)?))
}

/// How the two sides treat special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are text.
    Ordinary,
    /// All that the oracle knows are tokens.
    Specials,
}

/// A peer that says what is right, with its calls counted: a comparison proves by the count that
/// the oracle was asked, once for each text.
pub(crate) struct Oracle {
    peer: Box<dyn Peer>,
    calls: Cell<u64>,
    lie_at: Option<u64>,
}

/// The oracle gave no answer: the peer panicked, which tiktoken-rs does where its regular
/// expression takes too many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

impl Oracle {
    pub(crate) fn new(peer: Box<dyn Peer>) -> Self {
        Self {
            peer,
            calls: Cell::new(0),
            lie_at: None,
        }
    }

    /// An oracle that breaks the last id of its answer to call number `call`, from 0: to see a
    /// comparison fail.
    pub(crate) fn lying_at(peer: Box<dyn Peer>, call: u64) -> Self {
        Self {
            lie_at: Some(call),
            ..Self::new(peer)
        }
    }

    pub(crate) fn peer(&self) -> &dyn Peer {
        &*self.peer
    }

    /// The number of answers so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The ids of `text` according to the peer.
    pub(crate) fn encode(&self, text: &str, mode: Mode) -> Result<Vec<u32>, Refused> {
        let call = self.calls.replace(self.calls.get() + 1);
        let mut ids = quietly(|| match mode {
            Mode::Ordinary => self.peer.encode_ordinary(text),
            Mode::Specials => self.peer.encode_with_special_tokens(text),
        })?;
        if self.lie_at == Some(call)
            && let Some(last) = ids.last_mut()
        {
            *last ^= 1;
        }
        Ok(ids)
    }
}

thread_local! {
    static IN_PEER: Cell<bool> = const { Cell::new(false) };
}

/// Lets panics inside [`quietly`] pass without a message, others as they were.
pub(crate) fn silence_panics_of_peers() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !IN_PEER.get() {
            usual(panic);
        }
    }));
}

pub(crate) fn quietly<T>(call: impl FnOnce() -> T) -> Result<T, Refused> {
    IN_PEER.set(true);
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
    IN_PEER.set(false);
    answer.map_err(|_| Refused)
}
