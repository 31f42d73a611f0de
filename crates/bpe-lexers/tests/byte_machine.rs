//! The automaton over bytes has one accepted run for each text, that of the spanner.

use std::ops::ControlFlow;
use std::sync::Arc;

use bpe_lexers::{Analysis, ByteMachine, Engine, Family, Pattern, Spanner, SpecialMatcher};

/// Where spans start, in each accepted run over `text`.
fn accepted(machine: &ByteMachine, text: &[u8]) -> Vec<Vec<usize>> {
    let mut runs = vec![(machine.start(), Vec::new())];
    for (place, &byte) in text.iter().enumerate() {
        let mut next = Vec::new();
        for (state, starts) in &runs {
            machine.for_each_step(*state, byte, |starts_here, state| {
                let mut starts: Vec<usize> = starts.clone();
                if starts_here {
                    starts.push(place);
                }
                next.push((state, starts));
            });
        }
        runs = next;
    }
    let runs = runs.into_iter().filter(|run| machine.accepts(run.0));
    runs.map(|run| run.1).collect()
}

fn spans(spanner: &mut Spanner, text: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let flow = spanner.for_each_span(text, &SpecialMatcher::none(), |span| {
        starts.push(span.start);
        ControlFlow::<()>::Continue(())
    });
    assert!(flow.is_ok_and(|flow| flow.is_continue()));
    starts
}

#[test]
fn the_one_accepted_run_has_the_spans_of_the_spanner_also_of_bytes_that_are_not_utf_8() {
    // Beginnings, middles and ends of characters that classes tell apart.
    const PARTS: [&[u8]; 14] = [
        b"a",
        b"S",
        b" ",
        b"\n",
        b"1",
        b"'",
        b"!",
        "é".as_bytes(),
        "中".as_bytes(),
        "\u{3000}".as_bytes(),
        b"\xE4",
        b"\xB8",
        b"\xF0\x9F",
        b"\xFF",
    ];
    let mut texts = 0;
    let deepseek_v3 = [Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3];
    let sequences = [
        &[Family::Gpt2][..],
        &[Family::Cl100k],
        &[Family::O200k],
        &deepseek_v3,
        &[],
    ];
    for families in sequences {
        let patterns: Vec<Pattern> = families.iter().copied().map(Pattern::of_family).collect();
        let lexers = patterns.iter().map(|pattern| pattern.lexer(Engine::Auto));
        let lexers: Result<Vec<_>, _> = lexers.collect();
        let mut spanner = Spanner::new(lexers.expect("known"));
        let machine = ByteMachine::new(Arc::new(Analysis::new(&patterns).expect("known")));
        for number in 0..14_usize.pow(4) {
            let mut text = Vec::new();
            let mut rest = number;
            while rest > 0 {
                text.extend_from_slice(PARTS[rest % 14]);
                rest /= 14;
            }
            let expected = spans(&mut spanner, &text);
            assert_eq!(
                accepted(&machine, &text),
                [expected],
                "{families:?} {text:?}"
            );
            texts += 1;
        }
    }
    assert_eq!(texts, 5 * 38_416);
}
