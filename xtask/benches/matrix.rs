//! Encoder x lexer x vocabulary x corpus with throughput and allocations counted, and the lexers
//! alone. Run by `cargo xtask bench matrix`, which chooses by environment variables and reads what
//! this prints.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::ops::ControlFlow;

use bpe_lexers::{Spanner, SpecialMatcher};
use bytepair::{Algorithm, Engine, Tokenizer};
use divan::{AllocProfiler, Bencher, counter::BytesCount};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// One allocation of 1,000 bytes: shows that allocations are counted, so that none means none.
#[divan::bench]
fn control() -> Vec<u8> {
    Vec::with_capacity(black_box(1000))
}

/// All of a text into a vector that is reused: nothing is allocated.
#[divan::bench(args = encode_cases())]
fn encode(bencher: Bencher<'_, '_>, case: &str) {
    let parts: Vec<&str> = case.split('/').collect();
    let &[vocabulary, lexer, encoder, corpus] = &parts[..] else {
        panic!("a case has four parts: {case}");
    };
    let text = corpus_text(corpus);
    let mut worker = tokenizer(vocabulary, lexer, encoder).worker();
    let mut ids = Vec::new();
    let mut encode = move |text: &str| {
        ids.clear();
        worker
            .encode_into(text, &mut ids)
            .expect("embedded vocabularies encode any text");
        ids.len()
    };
    // Scratch memory and the automata's caches are made by the first pass.
    encode(&text);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| encode(black_box(&text)));
}

/// The spans of a text and nothing else.
#[divan::bench(args = spans_cases())]
fn spans(bencher: Bencher<'_, '_>, case: &str) {
    let parts: Vec<&str> = case.split('/').collect();
    let &[vocabulary, lexer, corpus] = &parts[..] else {
        panic!("a case has three parts: {case}");
    };
    let text = corpus_text(corpus);
    let base = Tokenizer::from_name(vocabulary).expect("the vocabulary is embedded");
    let lexers = base.patterns().iter();
    let lexers = lexers.map(|pattern| pattern.lexer(engine(lexer)).expect("the engine runs it"));
    let mut spanner = Spanner::new(lexers.collect());
    let specials = SpecialMatcher::default();
    let mut spans = move |text: &str| {
        let mut count = 0_usize;
        let flow = spanner.for_each_span(text.as_bytes(), &specials, |span| {
            count += usize::from(!black_box(span).range().is_empty());
            ControlFlow::<()>::Continue(())
        });
        let _ = flow.expect("the lexer does not give up");
        count
    };
    spans(&text);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| spans(black_box(&text)));
}

fn encode_cases() -> Vec<String> {
    let encoders = chosen("ENCODER", "priority_merge");
    let mut cases = Vec::new();
    for vocabulary in chosen("VOCABULARY", "cl100k_base") {
        for lexer in chosen("LEXER", "automata") {
            for encoder in &encoders {
                for corpus in chosen("CORPUS", "english") {
                    cases.push(format!("{vocabulary}/{lexer}/{encoder}/{corpus}"));
                }
            }
        }
    }
    cases
}

fn spans_cases() -> Vec<String> {
    let mut cases = Vec::new();
    for vocabulary in chosen("VOCABULARY", "cl100k_base") {
        for lexer in chosen("LEXER", "automata") {
            for corpus in chosen("CORPUS", "english") {
                cases.push(format!("{vocabulary}/{lexer}/{corpus}"));
            }
        }
    }
    cases
}

/// The names of the variable `BYTEPAIR_BENCH_{axis}`, or one that this build has.
fn chosen(axis: &str, default: &str) -> Vec<String> {
    let names = std::env::var(format!("BYTEPAIR_BENCH_{axis}"));
    let names = names.unwrap_or_else(|_| default.to_owned());
    names.split(',').map(str::to_owned).collect()
}

/// Kept from case to case, since building one takes longer than measuring it.
fn tokenizer(vocabulary: &str, lexer: &str, encoder: &str) -> Tokenizer {
    thread_local! {
        static TOKENIZERS: RefCell<HashMap<String, Tokenizer>> = RefCell::default();
    }
    let build = || {
        let algorithm: Algorithm = encoder.parse().expect("the encoder exists");
        let base = Tokenizer::from_name(vocabulary).expect("the vocabulary is embedded");
        let builder = base.to_builder().lexer(engine(lexer)).encoder(algorithm);
        builder.build().expect("embedded vocabularies are proper")
    };
    TOKENIZERS.with_borrow_mut(|tokenizers| {
        let name = format!("{vocabulary}/{lexer}/{encoder}");
        tokenizers.entry(name).or_insert_with(build).clone()
    })
}

fn engine(name: &str) -> Engine {
    match name {
        "automata" => Engine::Automata,
        "reference" => Engine::Reference,
        "transcription" => Engine::Transcription,
        _ => panic!("no such lexer: {name}"),
    }
}

fn corpus_text(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench-data/corpora");
    std::fs::read_to_string(format!("{root}/{name}.txt")).expect("bench-data has the corpus")
}
