//! Prints the spans of a text, one a line: `cargo run --example spans -- cl100k "It's 2026"`.

use std::ops::ControlFlow;
use std::process::ExitCode;

use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "o200k".to_owned());
    let text = arguments
        .next()
        .unwrap_or_else(|| "It's 2026,\n  isn't it?<|endoftext|>".to_owned());
    match print_spans(&name, &text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spans: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_spans(name: &str, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    // A name of an encoding, or else a regular expression.
    let pattern = Pattern::by_name(name).unwrap_or_else(|| Pattern::new(name));
    let mut spanner = Spanner::new(vec![pattern.lexer(Engine::Auto)?]);
    let specials = SpecialMatcher::new(["<|endoftext|>"])?;
    let _: ControlFlow<()> = spanner.for_each_span(text.as_bytes(), &specials, |span| {
        let piece = text.get(span.range()).unwrap_or_default();
        println!(
            "{:>5}..{:<5} {:?} {piece:?}",
            span.start, span.end, span.label
        );
        ControlFlow::Continue(())
    })?;
    Ok(())
}
