//! Safe cuts: a text cut there has the spans and the tokens of its parts.

use bpe_lexers::{Cuts, Engine};

use super::support::{
    Corpus, difference, ensure, equal_ids, name_of, parallel, pattern_of, spanner, spans, text_of,
    vocabularies,
};
use super::{Checked, Claims};
use bytepair::Tokenizer;

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "corpora cut at the last safe cut of every 64 KB and of every 997 bytes have the same spans and ids",
        |_, corpora| {
            let vocabularies = vocabularies()?;
            let cases = parallel(vocabularies.len() * corpora.len(), |job| {
                let tokenizer = &vocabularies[job % vocabularies.len()];
                let corpus = &corpora[job / vocabularies.len()];
                Ok(parts(tokenizer, corpus, 1 << 16)? + parts(tokenizer, corpus, 997)?)
            })?;
            Ok(Checked::with_note(cases, "parts"))
        },
    );
}

/// Cuts a corpus every `size` bytes at the safe cut before.
fn parts(tokenizer: &Tokenizer, corpus: &Corpus, size: usize) -> Result<u64, String> {
    let pattern = pattern_of(tokenizer)?;
    let cuts = Cuts::new(tokenizer.patterns()).map_err(text_of)?;
    let mut spanner = spanner(pattern, Engine::Automata)?;
    let text = corpus.text.as_bytes();
    let mut joined_spans = Vec::new();
    let mut joined_ids = Vec::new();
    let mut start = 0;
    let mut parts = 0;
    while start < text.len() {
        let rest = &text[start..];
        // Where there is no cut in one window, the next is tried; at the end there is none.
        let windows = (1..)
            .map(|windows| windows * size)
            .take_while(|at| *at < rest.len());
        let mut found = windows.filter_map(|at_most| cuts.last_cut(rest, at_most));
        let part = &rest[..found.next().unwrap_or(rest.len())];
        let ranges = spans(&mut spanner, part)?;
        joined_spans.extend(
            ranges
                .iter()
                .map(|range| range.start + start..range.end + start),
        );
        tokenizer
            .encode_into(part, &mut joined_ids)
            .map_err(text_of)?;
        start += part.len();
        parts += 1;
    }
    let place = || {
        format!(
            "{}, {} cut every {size} bytes",
            name_of(tokenizer),
            corpus.name
        )
    };
    let whole = spans(&mut spanner, text)?;
    ensure(joined_spans == whole, || {
        format!("{}: {}", place(), difference(&joined_spans, &whole))
    })?;
    let ids = tokenizer.encode(&corpus.text).map_err(text_of)?;
    equal_ids(&joined_ids, &ids, place)?;
    Ok(parts)
}
