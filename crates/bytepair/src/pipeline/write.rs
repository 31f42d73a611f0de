//! A pipeline as a `tokenizer.json`.

use std::collections::BTreeMap;

use bpe_core::{Atoms, CanonicalForm, TokenId};
use serde_json::{Value, json};

use crate::pipeline::Pipeline;
use crate::pipeline::decoders::TokenText;
use crate::pipeline::model::Model;

impl Pipeline {
    /// This pipeline as Hugging Face's `tokenizer.json`: the steps as they were read, and the model from
    /// its tables. `tokenizers` and [`Pipeline::from_tokenizer_json`] give the ids that this pipeline gives.
    ///
    /// Of rules that make one token only those are written that can be applied, in the order of their
    /// priorities. `tokenizers` numbers added tokens that do not stand in the vocabulary from its end on: where
    /// their ids are others, they are set into it. O(bytes of all tokens and rules).
    pub fn to_tokenizer_json(&self) -> String {
        let parts = &*self.parts;
        let model = match &parts.model {
            Model::Bpe(tokenizer) => self.bpe(tokenizer.canonical()),
            Model::Affix(model) => model.to_json(),
            Model::WordPiece(model) => {
                let vocab: BTreeMap<&str, TokenId> =
                    model.tokens().map(|(id, text)| (text, id)).collect();
                json!({
                    "type": "WordPiece",
                    "unk_token": model.token_text(model.unknown_id()),
                    "continuing_subword_prefix": model.continuing_prefix(),
                    "max_input_chars_per_word": model.most_characters(),
                    "vocab": vocab,
                })
            }
        };
        let added: Vec<Value> = parts
            .added
            .tokens
            .iter()
            .map(|token| {
                json!({
                    "id": token.id, "content": token.content, "single_word": token.single_word,
                    "lstrip": token.lstrip, "rstrip": token.rstrip,
                    "normalized": token.normalized, "special": token.special,
                })
            })
            .collect();
        let source = &parts.source;
        let file = json!({
            "version": "1.0",
            "truncation": source.truncation,
            "padding": source.padding,
            "added_tokens": added,
            "normalizer": source.normalizer,
            "pre_tokenizer": source.pre_tokenizer,
            "post_processor": source.post_processor,
            "decoder": source.decoder,
            "model": model,
        });
        file.to_string()
    }

    fn bpe(&self, canonical: &CanonicalForm) -> Value {
        let vocabulary = canonical.vocabulary();
        // Not `token_text`: an added token may be spelled otherwise than the bytes of its id.
        let spelled = |id: TokenId| match self.parts.output.model_text(id, &self.parts.model) {
            Some(TokenText::Text(text)) => text.into_owned(),
            Some(TokenText::Bytes(bytes)) => bpe_core::byte_level::encode(bytes),
            None => String::new(),
        };
        let mut vocab: BTreeMap<String, TokenId> =
            vocabulary.iter().map(|(id, _)| (spelled(id), id)).collect();
        let fallback = (0..=u8::MAX).filter_map(|byte| vocabulary.byte_fallback(byte));
        vocab.extend(fallback.map(|id| (spelled(id), id)));
        let added = &self.parts.added;
        let numbered = added.are_numbered_on();
        for token in &added.tokens {
            // The others get their ids from their place in the list.
            if !numbered || added.in_vocabulary.contains(&token.id) {
                vocab.entry(token.content.clone()).or_insert(token.id);
            }
        }
        let mut rules: Vec<_> = canonical.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let merges: Vec<[String; 2]> = rules
            .iter()
            .map(|rule| [spelled(rule.left), spelled(rule.right)])
            .collect();
        let (unknown, fuse_unknown) = match canonical.atoms() {
            Atoms::Characters {
                unknown,
                fuse_unknown,
            } => (unknown, fuse_unknown),
            _ => (None, false),
        };
        let has_fallback = (0..=u8::MAX).any(|byte| vocabulary.byte_fallback(byte).is_some());
        json!({
            "type": "BPE", "dropout": null, "unk_token": unknown.map(spelled),
            "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": fuse_unknown, "byte_fallback": has_fallback,
            "ignore_merges": canonical.whole_piece_lookup(),
            "vocab": vocab, "merges": merges,
        })
    }
}
