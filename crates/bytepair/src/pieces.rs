//! From pieces to tokens: the vocabulary first, then the encoder, behind one or the other path.

use std::sync::Arc;

use bpe_core::{CanonicalForm, EncodeError, SpanEncoder, TokenId, TokenOrigin, Vocabulary};
use bpe_lexers::InstructionSet;

use crate::fast::FastEncoder;

/// Pieces of a text that follow each other without a gap.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'r> {
    /// The byte of the text from which `start` and `ends` count.
    pub(crate) offset: usize,
    /// Where the first piece starts.
    pub(crate) start: usize,
    /// Where each piece ends, ascending.
    pub(crate) ends: &'r [usize],
}

/// Encodes the pieces of one thread.
pub(crate) enum PieceEncoder {
    /// Whole-piece look-up, then an encoder that was chosen.
    Chosen {
        whole: Arc<WholePieces>,
        encoder: Box<dyn SpanEncoder>,
    },
    /// The default.
    Fast(FastEncoder),
}

impl PieceEncoder {
    /// The fast path with instructions of `set`, or `chosen` if there is one.
    pub(crate) fn new(
        canonical: &Arc<CanonicalForm>,
        chosen: Option<Box<dyn SpanEncoder>>,
        cache_bytes: usize,
        set: InstructionSet,
    ) -> Self {
        let whole = Arc::new(WholePieces::new(canonical));
        if let Some(encoder) = chosen {
            return Self::Chosen { whole, encoder };
        }
        let encoder = || Box::new(bpe_core::encoder::PriorityMerge::new(Arc::clone(canonical)));
        match FastEncoder::new(&whole, canonical, encoder(), cache_bytes, set) {
            Some(fast) => Self::Fast(fast),
            None => Self::Chosen {
                whole,
                encoder: encoder(),
            },
        }
    }

    /// The encoder that was chosen, if one was.
    pub(crate) fn chosen(&self) -> Option<&dyn SpanEncoder> {
        match self {
            Self::Chosen { encoder, .. } => Some(&**encoder),
            Self::Fast(_) => None,
        }
    }

    /// An encoder for spans that come one by one.
    pub(crate) fn span_encoder(&self) -> Box<dyn SpanEncoder> {
        match self {
            Self::Chosen { encoder, .. } => encoder.clone_box(),
            Self::Fast(fast) => fast.span_encoder(),
        }
    }

    /// Appends the tokens that merging a part of a piece gives.
    pub(crate) fn encode_span(
        &mut self,
        span: &[u8],
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Chosen { encoder, .. } => encoder.encode_span(span, ids),
            Self::Fast(fast) => fast.encode_span(span, ids),
        }
    }

    /// Another one over the same tables.
    pub(crate) fn duplicate(&self) -> Self {
        match self {
            Self::Chosen { whole, encoder } => Self::Chosen {
                whole: Arc::clone(whole),
                encoder: encoder.clone_box(),
            },
            Self::Fast(fast) => Self::Fast(fast.duplicate()),
        }
    }

    /// Appends the tokens of all pieces to `ids`, and to `counts`, if there is one, their number for
    /// each piece. This is the one place where pieces become tokens.
    ///
    /// # Errors
    ///
    /// The first piece that has no tokens, by its number, and the error with the byte counted as
    /// `pieces` counts. The tokens of the pieces before it have been appended.
    pub(crate) fn encode(
        &mut self,
        text: &[u8],
        pieces: Pieces<'_>,
        ids: &mut Vec<TokenId>,
        counts: Option<&mut Vec<u32>>,
    ) -> Result<(), (usize, EncodeError)> {
        let (whole, encoder) = match self {
            Self::Fast(fast) => return fast.encode(text, pieces, ids, counts),
            Self::Chosen { whole, encoder } => (whole, encoder),
        };
        encode_plainly(whole, &mut **encoder, text, pieces, ids, counts)
    }
}

/// As [`PieceEncoder::encode`], piece by piece.
pub(crate) fn encode_plainly(
    whole: &WholePieces,
    encoder: &mut dyn SpanEncoder,
    text: &[u8],
    pieces: Pieces<'_>,
    ids: &mut Vec<TokenId>,
    mut counts: Option<&mut Vec<u32>>,
) -> Result<(), (usize, EncodeError)> {
    let mut start = pieces.start;
    for (number, &end) in pieces.ends.iter().enumerate() {
        let range = pieces.offset + start..pieces.offset + end;
        let piece = text.get(range).unwrap_or_default();
        let first = ids.len();
        match whole.token(piece) {
            Some(id) => ids.push(id),
            None => encoder
                .encode_span(piece, ids)
                .map_err(|error| (number, error.shifted(start)))?,
        }
        if let Some(counts) = counts.as_deref_mut() {
            counts.push((ids.len() - first) as u32);
        }
        start = end;
    }
    Ok(())
}

/// Which pieces become one token without merging.
pub(crate) struct WholePieces {
    canonical: Arc<CanonicalForm>,
    longest: usize,
    lookup: PieceLookup,
}

/// When a piece that is a token becomes that token at once. For a token that merging its own bytes
/// gives, merging would end there too, so the look-up saves time and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceLookup {
    /// Always: whole-piece look-up is on, or every token is reachable.
    Always,
    /// Only for tokens that merging gives.
    Reachable,
}

impl WholePieces {
    fn new(canonical: &Arc<CanonicalForm>) -> Self {
        Self {
            canonical: Arc::clone(canonical),
            longest: canonical.vocabulary().longest_token(),
            lookup: match Self::are_all(canonical) {
                true => PieceLookup::Always,
                false => PieceLookup::Reachable,
            },
        }
    }

    /// Is every piece that is a token that token?
    pub(crate) fn are_all(canonical: &CanonicalForm) -> bool {
        canonical.whole_piece_lookup() || canonical.unreachable_tokens().next().is_none()
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        self.canonical.vocabulary()
    }

    /// The token that `piece` is, where it becomes that token.
    #[inline]
    pub(crate) fn token(&self, piece: &[u8]) -> Option<TokenId> {
        if piece.len() > self.longest {
            return None;
        }
        let id = self.canonical.vocabulary().id_of(piece)?;
        self.is_looked_up(id).then_some(id)
    }

    /// Would [`WholePieces::token`] find the token `id` by its bytes, `token`? Fallback tokens it does
    /// not.
    pub(crate) fn is_found(&self, id: TokenId, token: &[u8]) -> bool {
        let is_fallback = match token {
            [byte] => self.vocabulary().byte_fallback(*byte) == Some(id),
            _ => false,
        };
        !is_fallback && self.is_looked_up(id)
    }

    fn is_looked_up(&self, id: TokenId) -> bool {
        let is_made = || {
            let origin = self.canonical.origin(id);
            !matches!(origin, None | Some(TokenOrigin::Unreachable))
        };
        self.lookup == PieceLookup::Always || is_made()
    }
}
