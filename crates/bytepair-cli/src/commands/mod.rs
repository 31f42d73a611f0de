//! The commands, each a function of its options and a session.

mod compare;
mod count;
mod decode;
mod dfa;
mod dict;
mod encode;
mod equivalent;
mod inspect;
mod search;
mod show;
mod train;
mod validate;
mod vocab;

use clap::CommandFactory;

use crate::args::{Cli, Command, CompletionsArgs};
use crate::error::CliError;
use crate::output::write;
use crate::pipeline::Session;

/// Runs the command.
pub(crate) fn run(command: &Command, session: &mut Session<'_>) -> Result<(), CliError> {
    match command {
        Command::Encode(args) => encode::run(args, session),
        Command::Decode(args) => decode::run(args, session),
        Command::Count(args) => count::run(args, session),
        Command::Show(args) => show::run(args, session),
        Command::Vocab(args) => vocab::run(args, session),
        Command::Compare(args) => compare::run(args, session),
        Command::Dict(args) => dict::run(args, session),
        Command::Inspect(args) => inspect::run(args, session),
        Command::Dfa(args) => dfa::run(args, session),
        Command::Search(args) => search::run(args, session),
        Command::Validate(args) => validate::run(args, session),
        Command::Equivalent(args) => equivalent::run(args, session),
        Command::Train(args) => train::run(args, session),
        Command::Completions(args) => completions(args, session),
    }
}

fn completions(args: &CompletionsArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bytepair", &mut script);
    write(session.stdout, script)
}

/// What the tests of the commands share.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use clap::Parser;

    /// What a command does with `stdin`, read in blocks of `block_bytes`. It warns of nothing.
    pub(crate) fn run_with(
        arguments: &[&str],
        stdin: &[u8],
        block_bytes: usize,
    ) -> (Vec<u8>, Result<(), CliError>) {
        let mut warn = |text: &str| panic!("{text}");
        run_and_warn(arguments, stdin, block_bytes, &mut warn)
    }

    /// The same, where there may be warnings.
    pub(crate) fn run_and_warn(
        arguments: &[&str],
        stdin: &[u8],
        block_bytes: usize,
        warn: &mut dyn FnMut(&str),
    ) -> (Vec<u8>, Result<(), CliError>) {
        let all = std::iter::once(&"bytepair").chain(arguments);
        let cli = Cli::try_parse_from(all).expect("valid options");
        let mut stdout = Vec::new();
        let mut session = Session {
            stdin: &mut &stdin[..],
            stdout: &mut stdout,
            warn,
            is_watched: false,
            has_colors: false,
            block_bytes: Some(block_bytes),
        };
        let result = run(&cli.command, &mut session);
        (stdout, result)
    }

    /// The output of a command that works, as text.
    pub(crate) fn output(arguments: &[&str], stdin: &[u8], block_bytes: usize) -> String {
        let (stdout, result) = run_with(arguments, stdin, block_bytes);
        result.expect("works");
        String::from_utf8(stdout).expect("text")
    }
}

#[cfg(test)]
mod properties {
    use super::testing::{output, run_with};
    use proptest::prelude::*;

    /// Bytes with much of what blocks and pieces are cut at.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            any::<char>().prop_map(|character| character.to_string().into_bytes()),
            proptest::sample::select(vec![
                " ",
                "\n",
                "  ",
                "word",
                " Two",
                "12",
                "'s",
                "<|endoftext|>"
            ])
            .prop_map(|text| text.as_bytes().to_vec()),
        ];
        proptest::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn what_is_encoded_in_any_blocks_decodes_to_the_bytes_and_is_counted(
            text in bytes(),
            block_bytes in 1..100_usize,
            encoding in proptest::sample::select(vec!["gpt2", "cl100k_base", "o200k_base"]),
        ) {
            let ids = output(&["encode", "-e", encoding], &text, block_bytes);
            prop_assert_eq!(&ids, &output(&["encode", "-e", encoding], &text, 1 << 20));
            let (decoded, result) = run_with(&["decode", "-e", encoding], ids.as_bytes(), block_bytes);
            prop_assert!(result.is_ok());
            prop_assert_eq!(&decoded, &text);
            let count = output(&["count", "-e", encoding], &text, block_bytes);
            prop_assert_eq!(count.trim(), ids.split_whitespace().count().to_string());
        }
    }
}
