//! All encoders and all lexers agree on corpora, and with the reference.

use std::collections::HashMap;

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, Dictionary, SpanEncoder, Vocabulary};
use bpe_lexers::Engine;
use bytepair::{TokenId, Tokenizer};

use super::support::{
    Corpus, difference, ensure, equal_ids, name_of, parallel, pattern_of, spanner, spans, text_of,
    vocabularies,
};
use super::{Checked, Claims};

/// The sweeps cost O(n^2) in one span.
const LONGEST_FOR_SWEEPS: usize = 2048;
/// So does the reference, with a larger factor.
const LONGEST_FOR_REFERENCE: usize = 64;

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "automata, reference and transcription find the same spans of corpora",
        |_, corpora| {
            let vocabularies = vocabularies()?;
            let cases = parallel(vocabularies.len() * corpora.len(), |job| {
                let tokenizer = &vocabularies[job % vocabularies.len()];
                same_spans(tokenizer, &corpora[job / vocabularies.len()])
            })?;
            Ok(Checked::with_note(cases, "spans"))
        },
    );
    claims.check(
        "five encoders and the reference give the same tokens of corpora, and so does the tokenizer",
        |_, corpora| {
            let mut cases = 0;
            let mut against_reference = 0;
            for tokenizer in vocabularies()? {
                let copy = Vocabulary::new(tokenizer.vocabulary().iter()).map_err(text_of)?;
                let dictionary = Dictionary::from_ranks(copy).map_err(text_of)?;
                let reference = Reference::new(&dictionary);
                let encoders = encoders_of(&tokenizer)?;
                let of_reference = std::sync::atomic::AtomicU64::new(0);
                cases += parallel(corpora.len(), |number| {
                    let check = same_tokens(&tokenizer, &reference, &encoders, &corpora[number])?;
                    of_reference.fetch_add(check.1, std::sync::atomic::Ordering::Relaxed);
                    Ok(check.0)
                })?;
                against_reference += of_reference.into_inner();
            }
            let note = format!("distinct spans by encoder; {against_reference} of them against the reference");
            Ok(Checked::with_note(cases, note))
        },
    );
    claims.check(
        "every pair of lexer and encoder makes a tokenizer with the same ids",
        |settings, corpora| {
            let most = settings.choose(20_000, 200_000);
            let vocabularies = vocabularies()?;
            let engines = [Engine::Automata, Engine::Reference, Engine::Transcription];
            let jobs = vocabularies.len() * engines.len() * Algorithm::ALL.len();
            let cases = parallel(jobs, |job| {
                let tokenizer = &vocabularies[job % vocabularies.len()];
                let engine = engines[job / vocabularies.len() % engines.len()];
                let algorithm = Algorithm::ALL[job / vocabularies.len() / engines.len()];
                same_ids(tokenizer, engine, algorithm, corpora, most)
            })?;
            Ok(Checked::with_note(cases, "tokens"))
        },
    );
}

fn same_spans(tokenizer: &Tokenizer, corpus: &Corpus) -> Result<u64, String> {
    let pattern = pattern_of(tokenizer)?;
    let text = corpus.text.as_bytes();
    let expected = spans(&mut spanner(pattern, Engine::Reference)?, text)?;
    for engine in [Engine::Automata, Engine::Transcription] {
        let found = spans(&mut spanner(pattern, engine)?, text)?;
        ensure(found == expected, || {
            let place = difference(&found, &expected);
            format!(
                "{engine:?}, {}, {}: {place}",
                name_of(tokenizer),
                corpus.name
            )
        })?;
    }
    Ok(expected.len() as u64)
}

type Encoders = Vec<(Algorithm, Box<dyn SpanEncoder>)>;

fn encoders_of(tokenizer: &Tokenizer) -> Result<Encoders, String> {
    let canonical = tokenizer.canonical();
    let encoder =
        |&algorithm: &Algorithm| Ok((algorithm, algorithm.encoder(canonical).map_err(text_of)?));
    Algorithm::ALL.iter().map(encoder).collect()
}

/// The number of spans by encoder, and of spans compared with the reference.
fn same_tokens(
    tokenizer: &Tokenizer,
    reference: &Reference<'_>,
    encoders: &Encoders,
    corpus: &Corpus,
) -> Result<(u64, u64), String> {
    let clones = encoders
        .iter()
        .map(|(algorithm, encoder)| (*algorithm, encoder.clone_box()));
    let mut encoders: Vec<_> = clones.collect();
    let text = corpus.text.as_bytes();
    let mut spanner = spanner(pattern_of(tokenizer)?, Engine::Transcription)?;
    let mut known: HashMap<&[u8], Vec<TokenId>> = HashMap::new();
    let mut expected = Vec::new();
    let mut cases = (0, 0);
    for span in spans(&mut spanner, text)? {
        let span = &text[span];
        if let Some(tokens) = known.get(span) {
            expected.extend_from_slice(tokens);
            continue;
        }
        let mut first: Option<Vec<TokenId>> = None;
        if span.len() <= LONGEST_FOR_REFERENCE {
            first = reference.sentencepiece(span);
            cases.1 += 1;
        }
        for (algorithm, encoder) in &mut encoders {
            let is_sweep = matches!(algorithm, Algorithm::BufferSweep | Algorithm::TailSweep);
            if is_sweep && span.len() > LONGEST_FOR_SWEEPS {
                continue;
            }
            let mut tokens = Vec::new();
            encoder.encode_span(span, &mut tokens).map_err(text_of)?;
            cases.0 += 1;
            let first = first.get_or_insert_with(|| tokens.clone());
            equal_ids(&tokens, first, || {
                let span = String::from_utf8_lossy(span);
                format!("{algorithm}, {}, {span:?}", name_of(tokenizer))
            })?;
        }
        let mut tokens = first.unwrap_or_default();
        // Whole-piece look-up comes before merging.
        if let Some(id) = tokenizer.vocabulary().id_of(span) {
            tokens = vec![id];
        }
        expected.extend_from_slice(&tokens);
        known.insert(span, tokens);
    }
    let found = tokenizer.encode(&corpus.text).map_err(text_of)?;
    equal_ids(&found, &expected, || {
        format!("{}, {}", name_of(tokenizer), corpus.name)
    })?;
    Ok(cases)
}

fn same_ids(
    tokenizer: &Tokenizer,
    engine: Engine,
    algorithm: Algorithm,
    corpora: &[Corpus],
    most: usize,
) -> Result<u64, String> {
    let builder = tokenizer.to_builder().lexer(engine).encoder(algorithm);
    let built = match builder.clone().build() {
        Ok(built) => built,
        // A builder from a tokenizer has its lexers, not its patterns.
        Err(error) => return Err(format!("{engine:?}, {algorithm}: {error}")),
    };
    ensure(built.patterns() == tokenizer.patterns(), || {
        format!("{engine:?} lost the pattern")
    })?;
    let mut cases = 0;
    for corpus in corpora {
        let text = &corpus.text[..corpus.text.floor_char_boundary(most)];
        let found = built.encode(text).map_err(text_of)?;
        let expected = tokenizer.encode(text).map_err(text_of)?;
        equal_ids(&found, &expected, || {
            format!(
                "{engine:?}, {algorithm}, {}, {}",
                name_of(tokenizer),
                corpus.name
            )
        })?;
        cases += found.len() as u64;
    }
    Ok(cases)
}
