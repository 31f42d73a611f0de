//! The embedded vocabularies: what they hold, and that the facts hold for them.

use std::collections::HashSet;

use bpe_core::{Algorithm, BytePairs, CanonicalForm, Dictionary, ReadLimits, Vocabulary};
use bpe_lexers::{Engine, Pattern};
use bytepair::{TokenId, Tokenizer};

use super::support::{
    Corpus, ensure, equal_ids, name_of, parallel, pattern_of, spanner, spans, text_of, vocabularies,
};
use super::{Checked, Claims, Outcome};
use crate::{data, embed};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "embedded canonical rules equal those made from the tokens",
        |_, _| recomputed(),
    );
    claims.check_data(
        "embedded vocabularies equal the .tiktoken files",
        |_, _, data| {
            let mut cases = 0;
            for name in embed::NAMES {
                let path = embed::tiktoken_path(data, name);
                let embedded = data::read(&embed::embedded_path(name))?;
                ensure(embed::compact(&path)? == embedded, || {
                    format!("{name}: the file is not what embed writes")
                })?;
                let vocabulary =
                    bpe_core::tiktoken::read(&data::read(&path)?, &ReadLimits::default());
                let vocabulary = vocabulary.map_err(text_of)?;
                let tokenizer = Tokenizer::from_name(name).map_err(text_of)?;
                ensure(vocabulary.iter().eq(tokenizer.vocabulary().iter()), || {
                    format!("{name}: other tokens")
                })?;
                cases += vocabulary.len() as u64;
            }
            Ok(Checked::with_note(cases, ""))
        },
    );
    claims.check_data(
        "gpt2 has the ids of vocab.json and merges.txt, and encodes the same",
        |_, corpora, data| gpt2_files(corpora, data),
    );
    claims.check(
        "truncation and boundaries hold in the spans of corpora, embedded vocabularies",
        |settings, corpora| {
            let most = settings.choose(4_000, 40_000);
            let vocabularies = vocabularies()?;
            let jobs = vocabularies.len() * corpora.len();
            let cases = parallel(jobs, |job| {
                let corpus = &corpora[job / vocabularies.len()];
                facts(&vocabularies[job % vocabularies.len()], corpus, most)
            })?;
            Ok(Checked::with_note(cases, ""))
        },
    );
}

fn recomputed() -> Outcome {
    let vocabularies = vocabularies()?;
    let cases = parallel(vocabularies.len(), |number| {
        let tokenizer = &vocabularies[number];
        let embedded = tokenizer.canonical();
        let copy = Vocabulary::new(tokenizer.vocabulary().iter()).map_err(text_of)?;
        let dictionary = Dictionary::from_ranks(copy).map_err(text_of)?;
        let form = CanonicalForm::new(&dictionary);
        for (id, bytes) in dictionary.vocabulary().iter() {
            ensure(form.origin(id) == embedded.origin(id), || {
                let (found, expected) = (embedded.origin(id), form.origin(id));
                format!(
                    "{}, token {id} {bytes:?}: {found:?}, expected {expected:?}",
                    name_of(tokenizer)
                )
            })?;
        }
        ensure(
            embedded.whole_piece_lookup() && embedded.is_complete() && embedded.is_proper(),
            || {
                format!(
                    "{}: look-up off, bytes missing, or improper",
                    name_of(tokenizer)
                )
            },
        )?;
        ensure(embedded.unreachable_tokens().next().is_none(), || {
            format!("{} has unreachable tokens", name_of(tokenizer))
        })?;
        Ok(dictionary.vocabulary().len() as u64)
    })?;
    Ok(Checked::with_note(
        cases,
        "proper, complete, no unreachable token",
    ))
}

fn gpt2_files(corpora: &[Corpus], data: &std::path::Path) -> Outcome {
    let folder = data.join("tokenizers/gpt2");
    let vocab = data::read(&folder.join("vocab.json"))?;
    let merges = data::read(&folder.join("merges.txt"))?;
    let specials = [("<|endoftext|>", 50256)];
    let limits = ReadLimits::default();
    let files = Tokenizer::from_gpt2_files(&vocab, &merges, Pattern::gpt2(), specials, &limits);
    let files = files.map_err(text_of)?;
    let embedded = Tokenizer::from_name("gpt2").map_err(text_of)?;
    let mut cases = 0;
    for id in 0..50257 {
        let (found, expected) = (embedded.token_bytes(id), files.token_bytes(id));
        ensure(found == expected && found.is_some(), || {
            format!("id {id}: {found:?}, {expected:?}")
        })?;
        cases += 1;
    }
    cases += parallel(corpora.len(), |number| {
        let Corpus { name, text } = &corpora[number];
        let found = embedded.encode(text).map_err(text_of)?;
        equal_ids(&found, &files.encode(text).map_err(text_of)?, || {
            name.clone()
        })?;
        Ok(found.len() as u64)
    })?;
    Ok(Checked::with_note(
        cases,
        "tokens of the vocabulary and of the corpora",
    ))
}

/// Truncation (fact 1) and boundaries (fact 7) in up to `most` distinct spans of a corpus.
fn facts(tokenizer: &Tokenizer, corpus: &Corpus, most: usize) -> Result<u64, String> {
    let mut encoder = Algorithm::PriorityMerge
        .encoder(tokenizer.canonical())
        .map_err(text_of)?;
    let mut spanner = spanner(pattern_of(tokenizer)?, Engine::Automata)?;
    let pairs = BytePairs::new(tokenizer.vocabulary());
    let text = corpus.text.as_bytes();
    let distinct: HashSet<&[u8]> = spans(&mut spanner, text)?
        .into_iter()
        .map(|span| &text[span])
        .collect();
    let mut spans: Vec<&[u8]> = distinct.into_iter().collect();
    // The long ones first, since they have most runs; then any, in an order that is always the same.
    spans.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    let step = (spans.len() / most).max(1);
    let mut cases = 0;
    let mut again: Vec<TokenId> = Vec::new();
    for span in spans.iter().take(20).chain(spans.iter().step_by(step)) {
        let mut tokens = Vec::new();
        encoder.encode_span(span, &mut tokens).map_err(text_of)?;
        let mut ends = vec![0];
        for &token in &tokens {
            let length = tokenizer.token_bytes(token).map_or(0, <[u8]>::len);
            ends.push(ends[ends.len() - 1] + length);
        }
        for at in 1..span.len() {
            if !pairs.in_a_token(span[at - 1], span[at]) {
                ensure(ends.binary_search(&at).is_ok(), || {
                    format!(
                        "{}, {:?}: no boundary at {at}",
                        name_of(tokenizer),
                        String::from_utf8_lossy(span)
                    )
                })?;
                cases += 1;
            }
        }
        // All runs in short spans; in long ones those of a few tokens.
        let longest = if tokens.len() <= 16 { tokens.len() } else { 4 };
        for start in 0..tokens.len() {
            for end in start + 1..=tokens.len().min(start + longest) {
                again.clear();
                encoder
                    .encode_span(&span[ends[start]..ends[end]], &mut again)
                    .map_err(text_of)?;
                equal_ids(&again, &tokens[start..end], || {
                    format!(
                        "{}, tokens {start}..{end} of {:?}",
                        name_of(tokenizer),
                        String::from_utf8_lossy(span)
                    )
                })?;
                cases += 1;
            }
        }
    }
    Ok(cases)
}
