//! A tokenizer of one's own on two threads: `cargo run -p bpe-parallel --example one_long_text`.

use std::sync::Arc;

use bpe_core::{Algorithm, BytePairs, CanonicalForm, Dictionary, EncodeError, TokenId, Vocabulary};
use bpe_lexers::SpecialMatcher;
use bpe_parallel::{Seams, SpanSeams, Synchronised, Tokenize, Tokens, Wanted, Workers};

/// Merges alone, without a pattern: the whole text is one pre-token.
struct Merges {
    canonical: Arc<CanonicalForm>,
}

impl Tokenize for Merges {
    type Error = EncodeError;

    fn encode(&self, text: &[u8], _: Wanted, tokens: &mut Tokens) -> Result<(), EncodeError> {
        self.merge(text, &mut tokens.ids)?;
        tokens.count = tokens.ids.len();
        Ok(())
    }

    fn encode_pieces(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        wanted: Wanted,
        tokens: &mut Tokens,
    ) -> Result<(), EncodeError> {
        let mut start = start;
        for &end in ends {
            self.encode(&text[start..end], wanted, tokens)?;
            start = end;
        }
        Ok(())
    }

    fn merge(&self, part: &[u8], ids: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let encoder = Algorithm::PriorityMerge.encoder(&self.canonical);
        encoder
            .expect("takes every dictionary")
            .encode_span(part, ids)
    }

    fn influence(&self) -> Option<usize> {
        bpe_incremental::held_bytes_bound(&self.canonical)
    }

    fn token_len(&self, id: TokenId) -> Option<usize> {
        let vocabulary = self.canonical.vocabulary();
        vocabulary.token_bytes(id).map(<[u8]>::len)
    }

    fn ends_of(&self, _: &[u8], ids: &[TokenId], ends: &mut Vec<usize>) {
        let mut end = 0;
        for &id in ids {
            end += self.token_len(id).unwrap_or(0);
            ends.push(end);
        }
    }

    fn moved(error: EncodeError, bytes: usize) -> EncodeError {
        error.shifted(bytes)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens = ["a", "b", "ab", "aba", "bab"];
    let vocabulary = Vocabulary::new((0..).zip(tokens))?;
    let dictionary = Dictionary::from_ranks(vocabulary)?;
    let merges = Merges {
        canonical: Arc::new(CanonicalForm::new(&dictionary)),
    };
    let spans = SpanSeams {
        pairs: Some(BytePairs::new(merges.canonical.vocabulary())),
        joins: true,
        longest_token: 3,
    };
    let seams = Seams::new(&[], &[], spans);
    let text: Vec<u8> = (0..1_000_000_u32)
        .map(|at| {
            if at.wrapping_mul(2_654_435_761) >> 31 == 0 {
                b'a'
            } else {
                b'b'
            }
        })
        .collect();
    let workers = Workers::new(2);
    let none = SpecialMatcher::none();
    let (found, report) =
        Synchronised::new().encode(&merges, &seams, &none, &text, Wanted::Ids, &workers)?;
    let mut alone = Vec::new();
    merges.merge(&text, &mut alone)?;
    let pieces = report.pieces;
    println!(
        "{} tokens, {} cuts without an overlap and {} joined: {}",
        found.count,
        pieces.exact_cuts,
        pieces.joined_cuts,
        if found.ids == alone {
            "as one thread"
        } else {
            "WRONG"
        }
    );
    match found.ids == alone {
        true => Ok(()),
        false => Err("the tokens differ".into()),
    }
}
