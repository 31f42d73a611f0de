//! Pieces that are a token as a whole, where merging would make other tokens of them.

use bpe_core::{CanonicalForm, TokenId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// What is known of the text of a piece so far: a node of [`WholeTexts`], or one of the two below.
pub(crate) type PieceText = u32;

/// No token that only a whole piece becomes begins with the text.
pub(crate) const NO_TEXT: PieceText = 0;

/// The text is a token that only a whole piece becomes, and is that token.
pub(crate) const WHOLE: PieceText = u32::MAX;

/// Before the first byte of a piece.
const ROOT: PieceText = 1;

/// The tokens that only a whole piece becomes, merging never: those of a dictionary with whole-piece
/// look-up that are not canonical.
pub(crate) fn whole_tokens(canonical: &CanonicalForm) -> Vec<TokenId> {
    if !canonical.whole_piece_lookup() {
        return Vec::new();
    }
    let vocabulary = canonical.vocabulary();
    let has_bytes = |&id: &TokenId| vocabulary.token_bytes(id).is_some_and(|it| !it.is_empty());
    canonical.unreachable_tokens().filter(has_bytes).collect()
}

/// The texts of those tokens, as a trie over bytes. A piece with such a text is that one token, so that its
/// merged tokens are not the tokenization of any piece.
pub(crate) struct WholeTexts {
    children: HashMap<(PieceText, u8), PieceText, FixedState>,
    /// Of each node whether it is one of the texts.
    is_one: Vec<bool>,
}

impl WholeTexts {
    pub(crate) fn none() -> Self {
        Self {
            children: HashMap::default(),
            is_one: vec![false; 2],
        }
    }

    pub(crate) fn new(canonical: &CanonicalForm) -> Self {
        let mut texts = Self::none();
        for id in whole_tokens(canonical) {
            let mut node = ROOT;
            for &byte in canonical.vocabulary().token_bytes(id).unwrap_or_default() {
                let new = texts.is_one.len() as PieceText;
                node = *texts.children.entry((node, byte)).or_insert(new);
                if node == new {
                    texts.is_one.push(false);
                }
            }
            if let Some(is_one) = texts.is_one.get_mut(node as usize) {
                *is_one = true;
            }
        }
        texts
    }

    /// After the first byte of a piece.
    pub(crate) fn first(&self, byte: u8) -> PieceText {
        self.next(ROOT, byte)
    }

    /// After another byte of it.
    pub(crate) fn next(&self, text: PieceText, byte: u8) -> PieceText {
        match text {
            NO_TEXT | WHOLE => text,
            node => self.children.get(&(node, byte)).copied().unwrap_or(NO_TEXT),
        }
    }

    /// Whether the text is one of them, made of merged tokens.
    pub(crate) fn is_one(&self, text: PieceText) -> bool {
        self.is_one.get(text as usize).copied().unwrap_or(false)
    }
}
