//! tiktoken-rs: the Rust port of OpenAI's tiktoken, with the same vocabularies and patterns.

use std::collections::HashSet;

use tiktoken_rs::CoreBPE;

use super::Peer;

pub(super) struct TiktokenRs {
    core: &'static CoreBPE,
    /// Kept, since the peer would make the set anew at each call.
    special_tokens: HashSet<&'static str>,
}

impl TiktokenRs {
    pub(super) fn new(encoding: &str) -> Option<Self> {
        let core = match encoding {
            "gpt2" | "r50k_base" => tiktoken_rs::r50k_base_singleton(),
            "p50k_base" => tiktoken_rs::p50k_base_singleton(),
            "p50k_edit" => tiktoken_rs::p50k_edit_singleton(),
            "cl100k_base" => tiktoken_rs::cl100k_base_singleton(),
            "o200k_base" => tiktoken_rs::o200k_base_singleton(),
            "o200k_harmony" => tiktoken_rs::o200k_harmony_singleton(),
            _ => return None,
        };
        Some(Self {
            core,
            special_tokens: core.special_tokens(),
        })
    }
}

impl Peer for TiktokenRs {
    fn name(&self) -> String {
        // The version that was built is in the lock file and nowhere else.
        let lock = include_str!("../../Cargo.lock");
        let entry = lock.split("name = \"tiktoken-rs\"\nversion = \"").nth(1);
        let version = entry.and_then(|entry| entry.split('"').next());
        format!("{} {}", super::TIKTOKEN_RS, version.unwrap_or("?"))
    }

    fn encode_ordinary(&self, text: &str) -> Vec<u32> {
        self.core.encode_ordinary(text)
    }

    fn encode_with_special_tokens(&self, text: &str) -> Vec<u32> {
        match self.core.encode(text, &self.special_tokens) {
            Ok((ids, _)) => ids,
            // As `encode_with_special_tokens` of the peer does.
            Err(error) => panic!("{error}"),
        }
    }

    fn count_ordinary(&self, text: &str) -> usize {
        self.core.count_ordinary(text)
    }

    fn decode(&self, ids: &[u32]) -> Option<Vec<u8>> {
        self.core.decode_bytes(ids).ok()
    }

    fn special_tokens(&self) -> Vec<String> {
        let mut texts: Vec<_> = self.special_tokens.iter().map(|&t| t.to_owned()).collect();
        texts.sort_unstable();
        texts
    }
}
