//! `show`: the pieces of a text with their ids.

use bytepair::TokenId;

use crate::args::{Color, ShowArgs};
use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::load::Named;
use crate::output::{shown, write};
use crate::pipeline::Session;

/// Backgrounds that take turns: green, yellow, magenta, cyan, with black text on them.
const BACKGROUNDS: [&str; 4] = ["\x1b[30;42m", "\x1b[30;43m", "\x1b[30;45m", "\x1b[30;46m"];
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

pub(crate) fn run(args: &ShowArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let Named { tokenizer, .. } = Named::load(&args.tokenizer, &args.specials)?;
    let cutter = Cutter::new(&[&tokenizer]);
    let in_colors = match args.color {
        Color::Auto => session.has_colors,
        Color::Always => true,
        Color::Never => false,
    };
    for input in Input::all(&args.files.files) {
        let work = |block: &Block| {
            let encoding = tokenizer.encode_with_offsets(&block.bytes);
            let encoding =
                encoding.map_err(|error| CliError::encoding(&input.name(), block.start, &error))?;
            let pieces = encoding.byte_ranges.into_iter().map(|range| {
                let piece = &block.bytes[range];
                (shown(piece), piece.ends_with(b"\n"))
            });
            let pieces: Vec<_> = encoding.ids.into_iter().zip(pieces).collect();
            Ok(pieces)
        };
        let mut number = 0;
        let mut ends_line = true;
        // One thread: what a person reads is not long.
        session.for_each_block(&input, &cutter, 1, work, |out, pieces| {
            for (id, (piece, is_end_of_line)) in pieces {
                let text = match in_colors {
                    true => colored(&piece, id, number, is_end_of_line),
                    false => format!("{piece}|{id}\n"),
                };
                number += 1;
                ends_line = is_end_of_line;
                write(out, text)?;
            }
            Ok(())
        })?;
        if in_colors && !ends_line {
            write(session.stdout, "\n")?;
        }
    }
    Ok(())
}

/// The piece on its background and the id behind it; a newline stays a newline as well.
fn colored(piece: &str, id: TokenId, number: usize, is_end_of_line: bool) -> String {
    let background = BACKGROUNDS[number % BACKGROUNDS.len()];
    let end = if is_end_of_line { "\n" } else { "" };
    format!("{background}{piece}{PLAIN}{DIM}{id}{PLAIN}{end}")
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::output;

    #[test]
    fn plain_output_has_one_token_a_line_with_the_id_behind_the_last_bar() {
        let text = "a|b\n龘".as_bytes();
        let ids = output(&["encode"], text, 100);
        let lines = output(&["show"], text, 100);
        let (pieces, shown): (Vec<_>, Vec<_>) = lines
            .lines()
            .map(|line| line.rsplit_once('|').expect("a bar"))
            .unzip();
        assert_eq!(shown.join(" "), ids.trim_end());
        assert_eq!(pieces.concat(), "a|b\\n<E9><BE><98>");
    }

    #[test]
    fn neighbours_have_different_colours_and_the_text_cannot_change_them() {
        let text = b"Hello, \x1b[31mworld\n";
        for block_bytes in [3, 100] {
            let shown = output(&["show", "--color", "always"], text, block_bytes);
            assert!(shown.starts_with("\x1b[30;42mHello\x1b[0m\x1b[2m13225\x1b[0m\x1b[30;43m,"));
            assert!(shown.contains("\\u{1b}"));
            assert!(!shown.contains("\x1b[31m"));
            assert!(shown.ends_with('\n') && !shown.ends_with("\n\n"));
        }
        let never = output(&["show", "--color", "never"], text, 100);
        assert!(!never.contains('\x1b'));
    }
}
