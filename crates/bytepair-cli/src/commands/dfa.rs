//! `dfa`: the texts of a regular expression in tokens.

use bpe_dfa::explicit::{Limits, StringDfa};

use crate::args::{DfaArgs, SpecialArgs};
use crate::error::CliError;
use crate::load::Named;
use crate::output::{grouped, write_line};
use crate::pipeline::Session;

pub(crate) fn run(args: &DfaArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let limits = Limits {
        states: args.states,
        ..Limits::default()
    };
    let language = StringDfa::from_regex(&args.regex, &limits);
    let language = language.map_err(|error| CliError::Usage(error.to_string()))?;
    let Named { tokenizer, name } = Named::load(&args.tokenizer, &SpecialArgs::default())?;
    let dfa = tokenizer.token_dfa(language);
    let mut dfa = dfa.map_err(|error| CliError::Vocabulary(format!("{name}: {error}")))?;
    let dfa = dfa.explicit(&limits);
    let dfa = dfa.map_err(|error| CliError::Input(error.to_string()))?;
    if args.dot {
        return write_line(session.stdout, dfa.dot().to_string().trim_end());
    }
    let states = match dfa.is_empty() {
        true => 0,
        false => dfa.state_count(),
    };
    let lines = [
        format!("states: {}", grouped(states)),
        format!("transitions: {}", grouped(dfa.transitions().count())),
        format!("tokens: {}", grouped(dfa.tokens().len())),
    ];
    write_line(session.stdout, lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    #[test]
    fn the_tokens_of_each_text_are_a_path() {
        let word = "Hello, world";
        let found = output(&["dfa", word, "-e", "cl100k_base"], b"", 1);
        let tokenizer = bytepair::Tokenizer::cl100k_base();
        let count = tokenizer.count(word).expect("text");
        let expected = format!(
            "states: {}\ntransitions: {count}\ntokens: {count}\n",
            count + 1
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn the_pattern_cuts_the_texts() {
        // After three digits; 45 are no token with 123, nor 5 with 1234.
        let found = output(&["dfa", "12345", "-e", "cl100k_base"], b"", 1);
        assert_eq!(found, "states: 3\ntransitions: 2\ntokens: 2\n");
    }

    #[test]
    fn the_drawing_has_the_tokens() {
        let dot = output(&["dfa", "Hello|Hi", "-e", "gpt2", "--dot"], b"", 1);
        assert!(dot.starts_with("digraph") && dot.contains("Hello"), "{dot}");
    }

    #[test]
    fn what_is_too_large_or_no_expression_is_an_error() {
        let (_, result) = run_with(&["dfa", "[a-z]{9}", "-e", "gpt2", "--states", "50"], b"", 1);
        assert_eq!(result.expect_err("large").exit_status(), 1);
        let (_, result) = run_with(&["dfa", "(", "-e", "gpt2"], b"", 1);
        assert_eq!(result.expect_err("no expression").exit_status(), 2);
    }
}
