//! What the patterns mean, on texts whose pieces follow from reading the regular expression;
//! and what the engines refuse.

mod common;

use bpe_lexers::{Engine, Family, Pattern, lexer};
use common::{ENGINES, known, pieces};

/// Checks every engine of this build.
fn expect(name: &str, text: &str, expected: &[&str]) {
    for engine in ENGINES {
        let mut lexer = common::lexer(&known(name), *engine);
        assert_eq!(
            pieces(lexer.as_mut(), text),
            expected,
            "{engine:?} on {text:?} with {name}"
        );
    }
}

#[test]
fn the_last_blank_before_a_word_goes_with_the_word() {
    for name in common::KNOWN {
        expect(name, "a   b", &["a", "  ", " b"]);
        expect(name, "a   ", &["a", "   "]);
        expect(
            name,
            "a\u{3000}\u{3000}\u{A0}",
            &["a", "\u{3000}\u{3000}\u{A0}"],
        );
    }
}

#[test]
fn other_white_space_goes_with_a_word_except_in_gpt2() {
    expect("gpt2", "\t\tb", &["\t", "\t", "b"]);
    expect("cl100k", "\t\tb", &["\t", "\tb"]);
    expect("o200k", "\t\tb", &["\t", "\tb"]);
    for name in common::KNOWN {
        expect(name, "\t\t1", &["\t", "\t", "1"]);
    }
}

#[test]
fn contractions_are_lower_case_in_gpt2_and_any_case_elsewhere() {
    expect("gpt2", "it's IT'S", &["it", "'s", " IT", "'", "S"]);
    expect("cl100k", "it's IT'S", &["it", "'s", " IT", "'S"]);
    // In o200k a contraction belongs to its word.
    expect("o200k", "it's IT'S", &["it's", " IT'S"]);
    expect("o200k", "we'LL 'll", &["we'LL", " '", "ll"]);
}

#[test]
fn the_long_s_folds_to_s_in_contractions() {
    expect("gpt2", "a'\u{17F}x", &["a", "'", "\u{17F}x"]);
    expect("cl100k", "a'\u{17F}x", &["a", "'\u{17F}", "x"]);
    expect("o200k", "a'\u{17F}x", &["a'\u{17F}", "x"]);
}

#[test]
fn numbers_come_in_threes_except_in_gpt2() {
    expect("gpt2", " 12345", &[" 12345"]);
    expect("cl100k", " 12345", &[" ", "123", "45"]);
    expect("o200k", " 12345", &[" ", "123", "45"]);
    expect(
        "o200k",
        "1\u{663}\u{BD}\u{2167}",
        &["1\u{663}\u{BD}", "\u{2167}"],
    );
}

#[test]
fn newlines_go_with_the_punctuation_before_them_except_in_gpt2() {
    expect("gpt2", "a;\n\nb", &["a", ";", "\n", "\n", "b"]);
    expect("cl100k", "a;\n\nb", &["a", ";\n\n", "b"]);
    expect("o200k", "a;\n/\nb", &["a", ";\n/\n", "b"]);
    expect("cl100k", "a;\n/\nb", &["a", ";\n", "/\n", "b"]);
}

#[test]
fn blanks_after_the_last_newline_stand_alone_except_in_gpt2() {
    expect("gpt2", "a \n  ", &["a", " \n  "]);
    expect("cl100k", "a \n  ", &["a", " \n", "  "]);
    expect("o200k", "a \n  b", &["a", " \n", " ", " b"]);
}

#[test]
fn a_word_of_o200k_starts_at_a_capital_that_follows_a_small_letter() {
    expect("o200k", "camelCaseHTML", &["camel", "Case", "HTML"]);
    expect("o200k", "HTMLis", &["HTMLis"]);
    expect("cl100k", "camelCaseHTML", &["camelCaseHTML"]);
    // Lo is in both classes, so the first branch ends at the last character that may be small.
    expect("o200k", "\u{6F22}ABC", &["\u{6F22}", "ABC"]);
    expect("o200k", "ABC\u{6F22}", &["ABC\u{6F22}"]);
}

#[test]
fn marks_belong_to_words_in_o200k_only() {
    expect("o200k", "e\u{301}a", &["e\u{301}a"]);
    expect("cl100k", "e\u{301}a", &["e", "\u{301}a"]);
    expect("gpt2", "e\u{301}a", &["e", "\u{301}", "a"]);
}

#[test]
fn families_are_recognised_by_their_meaning() {
    for (name, family) in [
        ("gpt2", Family::Gpt2),
        ("r50k", Family::Gpt2),
        ("p50k", Family::Gpt2),
        ("cl100k", Family::Cl100k),
        ("o200k", Family::O200k),
    ] {
        let pattern = known(name);
        assert_eq!(pattern.family(), Some(family));
        assert_eq!(Pattern::new(pattern.as_str()), pattern);
        let other = format!("(?:{})", pattern.as_str());
        assert_eq!(Pattern::new(&other).family(), Some(family));
        let other = format!("{}|never", pattern.as_str());
        assert_eq!(Pattern::new(&other).family(), Some(family));
        let other = format!("once|{}", pattern.as_str());
        assert_eq!(Pattern::new(&other).family(), None);
    }
    assert_eq!(Pattern::by_name("cl100k_base"), None);
}

#[test]
fn the_transcription_refuses_patterns_that_it_does_not_know() {
    let Err(error) = lexer(&Pattern::new("a+"), Engine::Transcription) else {
        panic!("it knows no such pattern");
    };
    assert!(error.is_unsupported() && !error.is_syntax());
}

#[test]
fn automatic_choice_runs_the_known_patterns_in_every_build() {
    for name in common::KNOWN {
        assert!(lexer(&known(name), Engine::Auto).is_ok());
    }
}

#[cfg(feature = "automata")]
#[test]
fn automata_refuse_what_they_cannot_do_and_say_what_it_is() {
    for (source, reason) in [
        (r"(?<=a)b", "look-around"),
        (r"a(?!b)", "look-around"),
        (r"\s+(?!\S)|a|\s+", "look-around"),
        (r"(?:b|\s+(?!\S)|\s+)", "look-around"),
        (r"a(b|\s+(?!\S)|\s+", "look-around"),
        (r"[|\s+(?!\S)|\s+", "malformed"),
        (r"a\|\s+(?!\S)|\s+", "look-around"),
        // The flag would change what the form means.
        (r"(?U)a|\s+(?!\S)|\s+", "look-around"),
        (r"(a)\1", "back-reference"),
        (r"a++b", "possessive"),
        (r"(?:x|[ab]?+)b", "possessive"),
        (r"\p{N}{1,4}+", "possessive"),
    ] {
        let Err(error) = lexer(&Pattern::new(source), Engine::Automata) else {
            panic!("{source:?} needs more than a DFA");
        };
        assert!(error.to_string().contains(reason), "{source:?}: {error}");
    }
}

#[cfg(feature = "automata")]
#[test]
fn a_pattern_with_huge_repetitions_is_an_error() {
    let source = r"(?:\p{L}{1000}){1000}";
    let Err(error) = lexer(&Pattern::new(source), Engine::Automata) else {
        panic!("a million copies of the letters do not fit");
    };
    assert!(error.is_unsupported(), "{error}");
}

#[test]
fn patterns_of_exponential_size_end_soon_with_every_engine() {
    let started = std::time::Instant::now();
    for source in [r"(?:\p{L}{1000}){1000}", r"((((a{99}){99}){99}){99}){99}"] {
        for engine in [
            Engine::Auto,
            Engine::Reference,
            Engine::Automata,
            Engine::Fast,
        ] {
            let Err(error) = lexer(&Pattern::new(source), engine) else {
                panic!("{engine:?} has no room for {source:?}");
            };
            assert!(error.is_syntax() || error.is_unsupported(), "{error}");
        }
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(30));
}

#[cfg(all(feature = "automata", feature = "reference"))]
#[test]
fn automatic_choice_takes_the_reference_for_what_automata_cannot_do() {
    for (source, text, expected) in [
        (r"(?<=a)b|a", "ab b", vec!["a", "b"]),
        (r"(.)\1", "aabccd", vec!["aa", "cc"]),
        // Possessive: nothing is given back, so this never matches.
        (r"a++a|b", "aab", vec!["b"]),
    ] {
        let mut lexer = common::lexer(&Pattern::new(source), Engine::Auto);
        assert_eq!(pieces(lexer.as_mut(), text), expected, "{source:?}");
    }
}

#[cfg(feature = "reference")]
#[test]
fn a_malformed_pattern_is_a_syntax_error() {
    for source in ["(", "[a", r"\p{Nonsense}", "*"] {
        for engine in [Engine::Reference, Engine::Auto] {
            let Err(error) = lexer(&Pattern::new(source), engine) else {
                panic!("{source:?} is malformed");
            };
            assert!(error.is_syntax(), "{source:?}: {error}");
        }
    }
}

#[cfg(feature = "reference")]
mod step_limit {
    use std::time::{Duration, Instant};

    use bpe_lexers::{Lexer, Pattern, ReferenceLexer, StepLimit};

    fn reference(source: &str) -> ReferenceLexer {
        ReferenceLexer::new(&Pattern::new(source)).expect("a pattern that fancy-regex takes")
    }

    #[test]
    fn catastrophic_backtracking_is_an_error_and_soon() {
        let text = "a".repeat(40) + "b";
        // Other work on the machine takes time too: the least of some attempts counts.
        let attempt = || {
            let started = Instant::now();
            let error = reference(r"(?:a|aa)+(?<!a|b)")
                .next_pre_token(&text, 0)
                .expect_err("there are more than 2^20 ways to match 40 times a");
            assert_eq!((error.offset(), error.limit()), (0, Some(1_000_000)));
            // Without look-around the pattern is not backtracked over at all.
            assert_eq!(reference(r"(a+)+$").next_pre_token(&text, 0), Ok(None));
            started.elapsed()
        };
        let least = (0..5).map(|_| attempt()).min();
        assert!(least < Some(Duration::from_secs(1)), "{least:?}");
    }

    #[test]
    fn repetitions_that_multiply_are_an_error_and_soon() {
        let started = Instant::now();
        for source in [
            r"(?:(?:\w{9,99}){9,99}){9,99}(?!\s)",
            r"(?:(?:(?:a{1000}){1000}){1000}){1000}(?<!b)",
            r"(?:(?:[ab]{0,300}c){200,}d){3}(?=e)",
        ] {
            let Err(error) = ReferenceLexer::new(&Pattern::new(source)) else {
                panic!("{source} stands for millions of parts");
            };
            assert!(error.is_unsupported(), "{error}");
            assert!(error.to_string().contains("10000 parts"), "{error}");
        }
        assert!(started.elapsed() < Duration::from_secs(60));
        // Those that people use are far below.
        assert!(ReferenceLexer::new(&Pattern::new(r"(?:\p{N}{1,3}|\w{1,64}){1,9}(?!\s)")).is_ok());
    }

    #[test]
    fn the_limit_can_be_changed_between_calls() {
        // Each blank that is given back is a step; none of them is followed by `x`.
        let text = " ".repeat(1_000) + "y";
        let mut lexer = reference(r"\s+(?=x)(?<!z)|\w");
        lexer.set_step_limit(StepLimit::Fixed(100));
        let error = lexer.next_pre_token(&text, 0).expect_err("1000 steps");
        assert_eq!(error.limit(), Some(100));
        lexer.set_step_limit(StepLimit::Fixed(10_000_000));
        assert_eq!(lexer.next_pre_token(&text, 0), Ok(Some(1_000..1_001)));
        lexer.set_step_limit(StepLimit::Proportional);
        assert_eq!(lexer.next_pre_token(&text, 0), Ok(Some(1_000..1_001)));
        let mut clone = lexer.clone_box();
        assert_eq!(clone.next_pre_token(&text, 0), Ok(Some(1_000..1_001)));
    }

    #[test]
    fn more_open_branches_than_fancy_regex_keeps_are_an_error() {
        let text = " ".repeat(1 << 20);
        let error = reference(Pattern::gpt2().as_str())
            .next_pre_token(&text, 0)
            .expect_err("a branch per blank");
        assert_eq!((error.offset(), error.limit()), (0, None));
    }
}

#[test]
fn a_million_blanks_are_one_pre_token_of_the_engines_that_do_not_backtrack() {
    let text = " ".repeat(1 << 20);
    for name in common::KNOWN {
        for engine in ENGINES.iter().filter(|e| **e != Engine::Reference) {
            let mut lexer = common::lexer(&known(name), *engine);
            assert_eq!(lexer.next_pre_token(&text, 0), Ok(Some(0..1 << 20)));
        }
    }
}
