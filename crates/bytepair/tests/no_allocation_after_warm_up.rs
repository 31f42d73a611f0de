//! After one pass over a text, encoding it again into the same vector, and counting it, allocates
//! nothing: on the fast path, and for every encoder with the automata lexer. In a file of its own, since the counter is
//! this program's allocator.

use bytepair::{Algorithm, Engine, Tokenizer};

const CORPORA: [&str; 6] = [
    "english",
    "chinese",
    "code",
    "mixed",
    "structured",
    "adversarial",
];

fn corpus(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-data/corpora/");
    std::fs::read_to_string(format!("{folder}{name}.txt")).expect("a corpus of the repository")
}

#[test]
fn encode_into_and_count_allocate_nothing_after_one_pass() {
    for encoding in ["r50k_base", "cl100k_base", "o200k_base"] {
        let algorithms = Algorithm::ALL.iter().copied().map(Some);
        for algorithm in algorithms.chain([None]) {
            let tokenizer = Tokenizer::from_name(encoding)
                .and_then(|tokenizer| match algorithm {
                    Some(algorithm) => {
                        let builder = tokenizer.to_builder();
                        builder.lexer(Engine::Automata).encoder(algorithm).build()
                    }
                    None => Ok(tokenizer),
                })
                .expect("a byte-level, proper dictionary");
            for name in CORPORA {
                let text = corpus(name);
                let mut ids = Vec::new();
                tokenizer.encode_into(&text, &mut ids).expect("complete");
                let expected = ids.len();
                let mut counted = tokenizer.count(&text).expect("complete");
                assert_eq!(counted, expected);

                let info = allocation_counter::measure(|| {
                    ids.clear();
                    tokenizer.encode_into(&text, &mut ids).expect("complete");
                    counted = tokenizer.count(&text).expect("complete");
                });
                assert_eq!(
                    info.count_total, 0,
                    "{encoding}, {algorithm:?}, {name}: {} bytes",
                    info.bytes_total
                );
                assert_eq!((ids.len(), counted), (expected, expected));
            }
        }
    }
}

#[test]
fn so_it_is_with_long_pieces() {
    let tokenizer = Tokenizer::from_name("cl100k_base").expect("embedded");
    let letters = corpus("english").replace(|c: char| !c.is_ascii_lowercase(), "");
    let texts = [&letters[..100], &letters[..1_000], &letters[..50_000]].map(str::to_owned);
    let texts = texts.into_iter().chain([" ".repeat(50_000)]);
    for text in texts {
        let mut ids = Vec::new();
        tokenizer.encode_into(&text, &mut ids).expect("complete");
        let expected = ids.clone();
        let info = allocation_counter::measure(|| {
            ids.clear();
            tokenizer.encode_into(&text, &mut ids).expect("complete");
        });
        assert_eq!(info.count_total, 0, "{} bytes", info.bytes_total);
        assert_eq!(ids, expected);
    }
}

#[test]
fn the_counter_counts() {
    let info = allocation_counter::measure(|| {
        std::hint::black_box(Vec::<u8>::with_capacity(100));
    });
    assert_eq!(info.count_total, 1);
}
