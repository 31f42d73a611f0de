//! After one pass over a text, the next ones allocate nothing. In a file of its own, since the counter
//! is this program's allocator.

mod support;

use bpe_core::SpanEncoder;
use bpe_incremental::{EagerEncoder, IncrementalEncoder, LastTokenEngine};
use support::{Random, canonical, dictionary_of, merge_lists};

#[test]
fn spans_histories_and_eager_output_allocate_nothing_after_one_pass() {
    let mut random = Random(3);
    let text: Vec<u8> = (0..50_000).map(|_| b'a' + random.below(2) as u8).collect();
    for list in merge_lists(2) {
        let dictionary = dictionary_of(&list);
        let Ok(engine) = LastTokenEngine::new(&canonical(&dictionary)) else {
            continue; // Improper.
        };
        let mut span = IncrementalEncoder::new(&engine);
        let mut history = engine.history();
        let mut eager = EagerEncoder::new(&engine);
        let mut tokens = Vec::new();
        let mut pass = |tokens: &mut Vec<_>| {
            tokens.clear();
            span.encode_span(&text, tokens).expect("letters");
            let expected = tokens.len();
            history.clear();
            history.extend(&text).expect("letters");
            assert_eq!(history.token_count(text.len()), expected);
            tokens.clear();
            for piece in text.chunks(701) {
                eager.feed(piece, tokens).expect("letters");
            }
            eager.finish(tokens);
            assert_eq!(tokens.len(), expected);
        };
        pass(&mut tokens);
        let counted = allocation_counter::measure(|| pass(&mut tokens));
        assert_eq!(counted.count_total, 0, "{list:?}");
    }
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| {
        std::hint::black_box(Vec::<u8>::with_capacity(100));
    });
    assert_eq!(counted.count_total, 1);
}
