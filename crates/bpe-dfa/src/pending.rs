//! The text that is not yet covered by certain tokens.

use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Kind, RelationError};
use crate::order::{Prefix, TokenOrder};
use crate::pairs::{PairRelation, StateId};

/// Tokens that are looked through without asking what is known.
const SHORT: usize = 32;

/// Searches that are kept.
const KNOWN: usize = 1 << 16;

/// What a [`PendingText`] reads: the pair relation, and tokens by their bytes.
pub(crate) struct Tables {
    pub(crate) pairs: Arc<PairRelation>,
    pub(crate) order: TokenOrder,
}

impl Tables {
    pub(crate) fn new(
        canonical: &CanonicalForm,
        pairs: Arc<PairRelation>,
    ) -> Result<Arc<Self>, RelationError> {
        if canonical.atoms() != bpe_core::Atoms::Bytes {
            return Err(RelationError(Kind::NotOverBytes));
        }
        let order = TokenOrder::new(canonical, &pairs);
        Ok(Arc::new(Self { pairs, order }))
    }
}

/// A text that grows byte by byte, and its tokens as soon as no continuation can change them, the
/// earliest moment that there is.
///
/// In a continuation some token crosses the end of the text so far, or ends there; the tokens before it
/// are those of the text up to where it starts (truncation). A start is open if a token that goes on
/// from there is longer than what is left and valid after the last token before it; such a token really
/// occurs (locality). So what is certain is what the tokenizations up to the open starts, and that of
/// the whole text, have in common. What follows depends on the text behind that alone: it is a state of
/// the minimal subsequential transducer (002 section 6; docs/theory.md, section 10).
#[derive(Clone)]
pub(crate) struct PendingText {
    text: Vec<u8>,
    /// Of each end in the text: the last token of the text up to there, and its start. Ends that no
    /// open start needs are there too.
    last: Vec<(TokenId, u32)>,
    open: Vec<Open>,
    /// Whether some token with a prefix is longer and may come in a state; long searches that were made.
    known: HashMap<(StateId, u32, u32), bool, FixedState>,
    /// Scratch memory.
    marks: Vec<bool>,
    chain: Vec<TokenId>,
}

/// An open start.
#[derive(Clone, Copy)]
struct Open {
    start: u32,
    prefix: Prefix,
}

/// No token stands for this byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingByte(pub(crate) u8);

impl PendingText {
    pub(crate) fn new() -> Self {
        Self {
            text: Vec::new(),
            last: Vec::new(),
            open: Vec::new(),
            known: HashMap::default(),
            marks: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// The bytes not covered by certain tokens.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Takes a byte, and appends the tokens that have become certain.
    ///
    /// # Errors
    ///
    /// No token stands for the byte; the value is then as it was.
    pub(crate) fn push(
        &mut self,
        tables: &Tables,
        byte: u8,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), MissingByte> {
        let (pairs, order) = (&tables.pairs, &tables.order);
        if order.child(order.root(), byte).is_none() {
            return Err(MissingByte(byte));
        }
        self.open.push(Open {
            start: self.text.len() as u32,
            prefix: order.root(),
        });
        self.text.push(byte);
        let mut found = None;
        let last = &self.last;
        let known = &mut self.known;
        if known.len() > KNOWN {
            known.clear();
        }
        self.open.retain_mut(|open| {
            let Some(prefix) = order.child(open.prefix, byte) else {
                return false;
            };
            open.prefix = prefix;
            let before = match open.start {
                0 => pairs.start_state(),
                start => match pairs.state_after(last[start as usize - 1].0) {
                    Some(state) => state,
                    None => return false,
                },
            };
            if let Some(token) = order.token(prefix)
                && pairs.allows(before, token)
            {
                found = Some((token, open.start));
            }
            let longer = order.longer(prefix);
            let search = || longer.iter().any(|&token| pairs.allows(before, token));
            match longer.len() <= SHORT {
                true => search(),
                false => {
                    let key = (before, prefix.start, prefix.end);
                    *known.entry(key).or_insert_with(search)
                }
            }
        });
        // A single byte that is a token always has a tokenization.
        let Some(found) = found else {
            return Err(MissingByte(byte));
        };
        self.last.push(found);
        self.release(tokens);
        Ok(())
    }

    /// Appends the tokens of what is left, as if the text ended here. The value is then as new.
    pub(crate) fn finish(&mut self, tokens: &mut Vec<TokenId>) {
        self.append_chain(self.text.len(), tokens);
        self.clear();
    }

    /// Appends the tokens of what is left, as if the text ended here.
    pub(crate) fn append_rest(&mut self, tokens: &mut Vec<TokenId>) {
        self.append_chain(self.text.len(), tokens);
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.last.clear();
        self.open.clear();
    }

    /// Hands out what all open starts and the end have in common.
    fn release(&mut self, tokens: &mut Vec<TokenId>) {
        let end = self.text.len();
        self.marks.clear();
        self.marks.resize(end + 1, false);
        self.marks[end] = true;
        let mut marked = 1;
        for open in &self.open {
            // No two open starts are one.
            self.marks[open.start as usize] = true;
            marked += 1;
        }
        // The rightmost of the places goes back by a token, until one place is left.
        let mut place = end;
        while marked > 1 {
            if self.marks[place] {
                let before = self.last[place - 1].1 as usize;
                match self.marks[before] {
                    true => marked -= 1,
                    false => self.marks[before] = true,
                }
            }
            place -= 1;
        }
        while !self.marks[place] {
            place -= 1;
        }
        if place == 0 {
            return;
        }
        self.append_chain(place, tokens);
        self.text.drain(..place);
        self.last.drain(..place);
        for last in &mut self.last {
            // Tokens that start before the place are of ends that nothing needs any more.
            last.1 = last.1.saturating_sub(place as u32);
        }
        for open in &mut self.open {
            open.start -= place as u32;
        }
    }

    fn append_chain(&mut self, end: usize, tokens: &mut Vec<TokenId>) {
        self.chain.clear();
        let mut place = end;
        while place > 0 {
            let (token, start) = self.last[place - 1];
            self.chain.push(token);
            place = start as usize;
        }
        tokens.extend(self.chain.iter().rev());
    }
}
