//! What a model is given for a text or a pair of texts: ids, and what stands beside them.

use std::fmt;
use std::ops::Range;

use bpe_core::TokenId;

use crate::pipeline::blanks::Blanks;

/// The tokens of a text, or of a pair, with those that the post-processor and padding add.
///
/// All lists have one length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelInput {
    ids: Vec<TokenId>,
    offsets: Vec<Range<usize>>,
    type_ids: Vec<u32>,
    special: Vec<bool>,
    attention: Vec<bool>,
    overflowing: Vec<ModelInput>,
    /// White space at the ends of each token, for post-processors that trim offsets; none afterwards.
    blanks: Vec<Blanks>,
}

impl ModelInput {
    /// The tokens of a text by themselves, of the sequence `type_id`.
    pub(crate) fn new(ids: Vec<TokenId>, offsets: Vec<Range<usize>>, type_id: u32) -> Self {
        let count = ids.len();
        debug_assert_eq!(count, offsets.len());
        Self {
            ids,
            offsets,
            type_ids: vec![type_id; count],
            special: vec![false; count],
            attention: vec![true; count],
            overflowing: Vec::new(),
            blanks: vec![Blanks::default(); count],
        }
    }

    /// The same tokens with white space at their ends.
    pub(crate) fn with_blanks(mut self, blanks: Vec<Blanks>) -> Self {
        debug_assert_eq!(blanks.len(), self.len());
        self.blanks = blanks;
        self
    }

    /// Forgets white space at the ends of tokens: it is no part of what an input is.
    pub(crate) fn forget_blanks(&mut self) {
        self.blanks.fill(Blanks::default());
        self.overflowing.iter_mut().for_each(Self::forget_blanks);
    }

    /// Tokens that no text stands for.
    pub(crate) fn added(ids: &[TokenId], type_id: u32) -> Self {
        let mut added = Self::new(ids.to_vec(), vec![0..0; ids.len()], type_id);
        added.special.fill(true);
        added
    }

    /// The token ids.
    pub fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// For each token the bytes of its text that it stands for: of the first text or of the second, as
    /// [`type_ids`](Self::type_ids) mostly tells. `0..0` for tokens that were added.
    pub fn offsets(&self) -> &[Range<usize>] {
        &self.offsets
    }

    /// For each token the number that the post-processor gives to its text: mostly 0 for the first and
    /// 1 for the second.
    pub fn type_ids(&self) -> &[u32] {
        &self.type_ids
    }

    /// For each token whether the post-processor or padding added it.
    pub fn special_tokens_mask(&self) -> &[bool] {
        &self.special
    }

    /// For each token whether it is there for the model: false for padding.
    pub fn attention_mask(&self) -> &[bool] {
        &self.attention
    }

    /// What truncation cut off, in parts of the same kind, in order.
    pub fn overflowing(&self) -> &[ModelInput] {
        &self.overflowing
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn overflowing_mut(&mut self) -> &mut [ModelInput] {
        &mut self.overflowing
    }

    pub(crate) fn set_type_id(&mut self, type_id: u32) {
        self.type_ids.fill(type_id);
    }

    /// White space at the ends of tokens with their offsets, which may be changed.
    pub(crate) fn offsets_mut(&mut self) -> impl Iterator<Item = (Blanks, &mut Range<usize>)> {
        self.blanks.iter().copied().zip(&mut self.offsets)
    }

    /// `next` behind this one, and each part that overflows with each of the other.
    pub(crate) fn append(&mut self, next: &Self) {
        let mut overflowing = Vec::new();
        for mine in &self.overflowing {
            overflowing.push(mine.followed_by(next));
            overflowing.extend(next.overflowing.iter().map(|o| mine.followed_by(o)));
        }
        overflowing.extend(next.overflowing.iter().map(|o| self.followed_by(o)));
        self.extend(next);
        self.overflowing = overflowing;
    }

    /// The tokens alone, without what overflows.
    fn followed_by(&self, next: &Self) -> Self {
        let mut both = self.part(0..self.len());
        both.extend(next);
        both
    }

    fn extend(&mut self, next: &Self) {
        self.ids.extend_from_slice(&next.ids);
        self.offsets.extend_from_slice(&next.offsets);
        self.type_ids.extend_from_slice(&next.type_ids);
        self.special.extend_from_slice(&next.special);
        self.attention.extend_from_slice(&next.attention);
        self.blanks.extend_from_slice(&next.blanks);
    }

    /// Some of the tokens. `tokens` is within them.
    fn part(&self, tokens: Range<usize>) -> Self {
        Self {
            ids: self.ids[tokens.clone()].to_vec(),
            offsets: self.offsets[tokens.clone()].to_vec(),
            type_ids: self.type_ids[tokens.clone()].to_vec(),
            special: self.special[tokens.clone()].to_vec(),
            attention: self.attention[tokens.clone()].to_vec(),
            overflowing: Vec::new(),
            blanks: self.blanks[tokens].to_vec(),
        }
    }

    /// Sets added tokens around these.
    pub(crate) fn surround(&mut self, before: &[TokenId], behind: &[TokenId], type_id: u32) {
        let mut whole = Self::added(before, type_id);
        whole.extend(self);
        whole.extend(&Self::added(behind, type_id));
        whole.overflowing = std::mem::take(&mut self.overflowing);
        *self = whole;
    }

    /// Keeps `most` tokens; the others overflow, in parts of up to `most` that share `stride` tokens
    /// with their neighbour.
    pub(crate) fn cut(&mut self, most: usize, stride: usize, side: Side) -> Result<(), InputError> {
        let length = self.len();
        if length <= most {
            return Ok(());
        }
        if most == 0 {
            let all = std::mem::take(self);
            self.overflowing.push(all);
            return Ok(());
        }
        let step = match most.checked_sub(stride) {
            None | Some(0) => return Err(InputError(InputKind::Stride { stride, most })),
            Some(step) => step,
        };
        let mut parts = Vec::new();
        match side {
            Side::Right => {
                let mut start = 0;
                loop {
                    let end = length.min(start + most);
                    parts.push(self.part(start..end));
                    if end == length {
                        break;
                    }
                    start += step;
                }
            }
            Side::Left => {
                let mut end = length;
                loop {
                    let start = end.saturating_sub(most);
                    parts.push(self.part(start..end));
                    if start == 0 {
                        break;
                    }
                    end -= step;
                }
            }
        }
        let overflowing = parts.split_off(1);
        if let Some(first) = parts.pop() {
            *self = first;
        }
        self.overflowing = overflowing;
        Ok(())
    }

    fn pad_to(&mut self, length: usize, padding: &Padding) {
        for part in &mut self.overflowing {
            part.pad_to(length, padding);
        }
        let missing = length.saturating_sub(self.len());
        let mut added = Self::added(&vec![padding.id; missing], padding.type_id);
        added.attention.fill(false);
        match padding.side {
            Side::Right => self.extend(&added),
            Side::Left => {
                added.extend(self);
                added.overflowing = std::mem::take(&mut self.overflowing);
                *self = added;
            }
        }
    }
}

/// Right or left: where tokens are cut off or added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Side {
    /// At the end.
    #[default]
    Right,
    /// At the start.
    Left,
}

/// Which of two texts is cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TruncationStrategy {
    /// The longer one, then both.
    #[default]
    LongestFirst,
    /// The first alone.
    OnlyFirst,
    /// The second alone.
    OnlySecond,
}

/// How long inputs may be at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncation {
    /// Tokens at most, those that the post-processor adds included.
    pub max_length: usize,
    /// Which of two texts is cut.
    pub strategy: TruncationStrategy,
    /// Tokens that neighbouring parts share.
    pub stride: usize,
    /// Where tokens are cut off.
    pub side: Side,
}

impl Truncation {
    /// Cuts one text, or two, before the post-processor adds `added` tokens.
    pub(crate) fn cut(
        &self,
        added: usize,
        first: &mut ModelInput,
        second: Option<&mut ModelInput>,
    ) -> Result<(), InputError> {
        let too_short = InputError(InputKind::TooShort {
            max_length: self.max_length,
        });
        let Some(most) = self.max_length.checked_sub(added) else {
            return Err(too_short);
        };
        let cut = |text: &mut ModelInput, most| text.cut(most, self.stride, self.side);
        let lengths = (
            first.len(),
            second.as_ref().map_or(0, |second| second.len()),
        );
        if most == 0 {
            cut(first, 0)?;
            return second.map_or(Ok(()), |second| cut(second, 0));
        }
        let excess = (lengths.0 + lengths.1).saturating_sub(most);
        if excess == 0 {
            return Ok(());
        }
        let target = match (self.strategy, second) {
            (TruncationStrategy::LongestFirst, Some(second)) => {
                let (first_keeps, second_keeps) = shares(lengths, most);
                cut(first, first_keeps)?;
                return cut(second, second_keeps);
            }
            (TruncationStrategy::LongestFirst, None) => return cut(first, most),
            (TruncationStrategy::OnlyFirst, _) => first,
            (TruncationStrategy::OnlySecond, Some(second)) => second,
            (TruncationStrategy::OnlySecond, None) => {
                return Err(InputError(InputKind::NoSecond));
            }
        };
        match target.len().checked_sub(excess) {
            None | Some(0) => Err(too_short),
            Some(keeps) => cut(target, keeps),
        }
    }
}

/// What two texts of these lengths keep of `most` tokens: the shorter one all, if that leaves the other
/// no less, else half each; the odd token goes to the longer one.
fn shares(lengths: (usize, usize), most: usize) -> (usize, usize) {
    let swap = lengths.0 > lengths.1;
    let shorter = lengths.0.min(lengths.1);
    let (short, long) = match shorter.saturating_mul(2) <= most {
        true => (shorter, most - shorter),
        false => (most / 2, most - most / 2),
    };
    match swap {
        true => (long, short),
        false => (short, long),
    }
}

/// How long padded inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadTo {
    /// As long as the longest of the batch.
    Longest,
    /// This many tokens.
    Length(usize),
}

/// How short inputs are made longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padding {
    /// The length.
    pub to: PadTo,
    /// The length is rounded up to a multiple of this.
    pub multiple_of: Option<usize>,
    /// Where tokens are added.
    pub side: Side,
    /// The token that is added.
    pub id: TokenId,
    /// Its type id.
    pub type_id: u32,
    /// Its text, as the file has it; of no consequence here.
    pub token: String,
}

impl Padding {
    /// Makes the inputs of a batch, and what overflows of them, equally long. None is made shorter.
    ///
    /// Cost: O(tokens), those that are added included.
    ///
    /// # Errors
    ///
    /// A length over 2^28 tokens.
    pub fn pad(&self, batch: &mut [ModelInput]) -> Result<(), InputError> {
        let longest = || batch.iter().map(ModelInput::len).max().unwrap_or(0);
        let mut length = match self.to {
            PadTo::Longest => longest(),
            PadTo::Length(length) => length,
        };
        let rest = length % self.multiple_of.filter(|&m| m > 0).unwrap_or(1);
        if rest > 0 {
            length = length.saturating_add(self.multiple_of.unwrap_or(rest) - rest);
        }
        if length > MOST_PADDING {
            return Err(InputError(InputKind::PaddingTooLong { length }));
        }
        for input in batch {
            input.pad_to(length, self);
        }
        Ok(())
    }
}

/// Padding to more than this is a mistake, and would take all memory.
const MOST_PADDING: usize = 1 << 28;

/// Why tokens cannot be made an input of a model.
#[derive(Debug, Clone)]
pub struct InputError(pub(crate) InputKind);

#[derive(Debug, Clone)]
pub(crate) enum InputKind {
    /// The text itself has no tokens.
    Encode(crate::error::EncodeError),
    TooShort {
        max_length: usize,
    },
    NoSecond,
    Stride {
        stride: usize,
        most: usize,
    },
    PaddingTooLong {
        length: usize,
    },
}

impl InputError {
    /// Why the text has no tokens, where that is the reason.
    pub fn encode_error(&self) -> Option<&crate::error::EncodeError> {
        match &self.0 {
            InputKind::Encode(error) => Some(error),
            _ => None,
        }
    }
}

impl From<crate::error::EncodeError> for InputError {
    fn from(error: crate::error::EncodeError) -> Self {
        Self(InputKind::Encode(error))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            InputKind::Encode(error) => error.fmt(f),
            InputKind::TooShort { max_length } => write!(
                f,
                "truncation to {max_length} tokens leaves nothing of the text that is to be cut"
            ),
            InputKind::NoSecond => {
                f.write_str("only the second text is to be cut, and there is none")
            }
            InputKind::Stride { stride, most } => write!(
                f,
                "a stride of {stride} tokens in parts of {most} would never come to an end"
            ),
            InputKind::PaddingTooLong { length } => {
                write!(
                    f,
                    "padding to {length} tokens, over the limit of {MOST_PADDING}"
                )
            }
        }
    }
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            InputKind::Encode(error) => Some(error),
            _ => None,
        }
    }
}
