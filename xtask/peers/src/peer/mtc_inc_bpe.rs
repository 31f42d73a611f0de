//! mtc-inc-bpe: the implementation that came with 000. It takes token ids in place of bytes, so the
//! adapter turns each byte into the id of its token.

use bpe_core::{CanonicalForm, MergeRule};
use mtc_inc_bpe::{
    Dictionary, IncBpeToken, IncBpeTokenization, IncBpeTokenizer, NormalizedDict, TokenId, Vocab,
};

use crate::Error;

pub(crate) struct MtcIncBpe {
    tokenizer: IncBpeTokenizer,
    bytes: [TokenId; 256],
}

impl MtcIncBpe {
    /// Of a dictionary over bytes whose ids have no gaps.
    pub(crate) fn new(canonical: &CanonicalForm) -> Result<Self, Error> {
        let vocabulary = canonical.vocabulary();
        if vocabulary.max_id().map(|id| id as usize + 1) != Some(vocabulary.len()) {
            return Err("mtc-inc-bpe takes no ids with gaps".into());
        }
        let vocab = Vocab::new(vocabulary.iter().map(|(_, bytes)| bytes.to_vec()))?;
        let mut rules: Vec<MergeRule> = canonical.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let pairs = rules.iter().map(|rule| (rule.left, rule.right));
        let dictionary = Dictionary::new_from_id_pair(vocab, pairs)?;
        let normalized = NormalizedDict::new_in_bytes(dictionary)?;
        let bytes = std::array::from_fn(|byte| {
            let id = vocabulary.id_of(&[byte as u8]);
            TokenId::from(id.unwrap_or(u32::MAX))
        });
        Ok(Self {
            tokenizer: IncBpeTokenizer::new(normalized),
            bytes,
        })
    }

    /// What one text after the other is fed to; its memory is kept.
    pub(crate) fn tokenization(&self) -> IncBpeTokenization<&IncBpeTokenizer> {
        self.tokenizer.tokenization()
    }

    /// The ids of a text, appended.
    pub(crate) fn encode(
        &self,
        tokenization: &mut IncBpeTokenization<&IncBpeTokenizer>,
        text: &[u8],
        ids: &mut Vec<u32>,
    ) {
        tokenization.reset();
        for &byte in text {
            tokenization.feed(self.bytes[usize::from(byte)]);
        }
        let start = ids.len();
        let chain = tokenization.current_token_chain();
        ids.extend(chain.map(|(_, IncBpeToken { token_id, .. })| u32::from(token_id)));
        ids[start..].reverse();
    }

    /// The same by its eager tokenization, whose tokens are taken as it hands them out.
    pub(crate) fn encode_eagerly(&self, text: &[u8], ids: &mut Vec<u32>) {
        let mut eager = self.tokenizer.eager();
        for &byte in text {
            eager.feed(self.bytes[usize::from(byte)]);
            ids.extend(eager.by_ref().map(|token| u32::from(token.token_id)));
        }
        // A token that is none ends the text: it lets all others go, and may come out after them.
        eager.feed(TokenId::MAX);
        ids.extend(
            eager
                .map(|token| u32::from(token.token_id))
                .filter(|&id| id != u32::MAX),
        );
    }
}
