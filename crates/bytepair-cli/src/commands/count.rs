//! `count`: how many tokens.

use crate::args::CountArgs;
use crate::cuts::Cutter;
use crate::encoder::Encoder;
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::lines::{self, Line, Skipped};
use crate::output::{json_string, write_line};
use crate::pipeline::Session;

pub(crate) fn run(args: &CountArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let threads = args.threads.number();
    let encoder = Encoder::load(&args.tokenizer, &args.specials, args.add_special, threads)?;
    let cutter = encoder.cutter(false);
    let inputs = Input::all(&args.files.files);
    let mut total = Some(Count::default());
    let mut skipped = Skipped::new(&args.lines);
    for input in &inputs {
        let name = input.name();
        let count = match (&args.lines.jsonl, args.limit) {
            (Some(field), _) => {
                let counted = count_lines(&encoder, input, field, threads, &mut skipped, session);
                Some(counted?)
            }
            (None, Some(limit)) => count_up_to(&encoder, &cutter, input, limit, session)?,
            (None, None) => Some(count(&encoder, &cutter, input, args, session)?),
        };
        encoder.clear_scratch();
        if args.json {
            let Count { bytes, tokens } = count.unwrap_or_default();
            let name = json_string(&name);
            let line = format!("{{\"file\":{name},\"bytes\":{bytes},\"tokens\":{tokens}}}");
            write_line(session.stdout, line)?;
        } else {
            let number = match (count, args.limit) {
                (None, Some(limit)) => format!("more than {limit}"),
                (count, _) => count.unwrap_or_default().tokens.to_string(),
            };
            let line = match args.files.files.is_empty() {
                true => number,
                false => format!("{number}\t{name}"),
            };
            write_line(session.stdout, line)?;
        }
        total = total.zip(count).map(|(total, count)| total.plus(&count));
    }
    if let Some(message) = skipped.message() {
        (session.warn)(&message);
    }
    match total {
        Some(total) if inputs.len() > 1 && !args.json => {
            write_line(session.stdout, format!("{}\ttotal", total.tokens))
        }
        Some(_) => Ok(()),
        None => Err(CliError::OverLimit),
    }
}

/// Bytes and tokens of an input.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    bytes: u64,
    tokens: u64,
}

impl Count {
    fn plus(&self, other: &Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            tokens: self.tokens + other.tokens,
        }
    }
}

fn count(
    encoder: &Encoder,
    cutter: &Result<Cutter, String>,
    input: &Input,
    args: &CountArgs,
    session: &mut Session<'_>,
) -> Result<Count, CliError> {
    let work = |block: &Block| {
        let tokens = encoder.count(&input.name(), block)?;
        Ok(Count {
            bytes: block.bytes.len() as u64,
            tokens: tokens as u64,
        })
    };
    let mut total = Count::default();
    session.for_each_block(input, cutter, args.threads.number(), work, |_, count| {
        total = total.plus(&count);
        Ok(())
    })?;
    Ok(total)
}

/// Bytes and tokens of the documents in JSON Lines.
fn count_lines(
    encoder: &Encoder,
    input: &Input,
    field: &str,
    threads: usize,
    skipped: &mut Skipped,
    session: &mut Session<'_>,
) -> Result<Count, CliError> {
    let work = |block: &Block| {
        Ok(lines::each(block, field, |text| {
            let tokens = encoder.count_text(text)?;
            Ok(Count {
                bytes: text.len() as u64,
                tokens: tokens as u64,
            })
        }))
    };
    let name = input.name();
    let mut total = Count::default();
    session.for_each_block_of_lines(input, threads, work, |_, lines: Vec<Line<Count>>| {
        for line in lines {
            total = total.plus(&skipped.take(&name, line)?.unwrap_or_default());
        }
        Ok(())
    })?;
    Ok(total)
}

/// The count, or `None` if it is over `limit`: the rest of the input is not read then. On one
/// thread, since others would count what is not asked for.
fn count_up_to(
    encoder: &Encoder,
    cutter: &Result<Cutter, String>,
    input: &Input,
    limit: usize,
    session: &mut Session<'_>,
) -> Result<Option<Count>, CliError> {
    let spent = std::sync::atomic::AtomicUsize::new(0);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let work = |block: &Block| {
        let left = limit.saturating_sub(spent.load(relaxed));
        let tokens = encoder.count_up_to(&input.name(), block, left)?;
        spent.fetch_add(tokens.unwrap_or_default(), relaxed);
        match tokens {
            Some(_) => Ok(block.bytes.len() as u64),
            None => Err(CliError::OverLimit),
        }
    };
    let mut bytes = 0;
    let counted = session.for_each_block(input, cutter, 1, work, |_, block_bytes| {
        bytes += block_bytes;
        Ok(())
    });
    match counted {
        Ok(()) => Ok(Some(Count {
            bytes,
            tokens: spent.into_inner() as u64,
        })),
        Err(CliError::OverLimit) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    #[test]
    fn the_count_is_the_number_of_ids_whatever_the_blocks() {
        let text = "It's the year 2026, naïve 龘.\n\n  ".repeat(40);
        let ids = output(&["encode"], text.as_bytes(), 1 << 20);
        let expected = format!("{}\n", ids.split_whitespace().count());
        for block_bytes in [3, 100, 1 << 20] {
            for threads in ["1", "3"] {
                let arguments = ["count", "--threads", threads];
                assert_eq!(output(&arguments, text.as_bytes(), block_bytes), expected);
            }
        }
        assert_eq!(output(&["count"], b"", 10), "0\n");
    }

    #[test]
    fn a_limit_is_kept_or_reported() {
        for block_bytes in [2, 1000] {
            // Ten words of one token each.
            let text = b"one two two two two two two two two two";
            for limit in ["10", "11"] {
                let arguments = ["count", "--limit", limit];
                assert_eq!(output(&arguments, text, block_bytes), "10\n");
            }
            for limit in ["9", "0"] {
                let (stdout, result) = run_with(&["count", "--limit", limit], text, block_bytes);
                assert_eq!(stdout, format!("more than {limit}\n").as_bytes());
                let error = result.expect_err("over the limit");
                assert_eq!((error.exit_status(), error.message()), (1, None));
            }
        }
        assert_eq!(output(&["count", "--limit", "0"], b"", 10), "0\n");
    }
}
