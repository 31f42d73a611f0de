//! The automata of the patterns: they cut as the engines do, they prove what is equal, and what they
//! find is what a prototype found.

mod common;

use bpe_lexers::{Analysis, Cuts, Engine, Family, Pattern, Spanner, SpecialMatcher, difference};
use common::{CUSTOM, EVERY_CLASS, for_each_tuple, lexer, spans};

fn sequences() -> Vec<(&'static str, Vec<Pattern>)> {
    let one = |family| vec![Pattern::of_family(family)];
    vec![
        ("r50k", one(Family::Gpt2)),
        ("cl100k", one(Family::Cl100k)),
        ("cl100k of tiktoken", one(Family::Cl100kOfTiktoken)),
        ("qwen3", one(Family::Qwen2)),
        ("o200k", one(Family::O200k)),
        ("tekken", one(Family::Tekken)),
        ("deepseek_v3", Pattern::deepseek_v3().to_vec()),
        ("digits", one(Family::SingleDigits)),
        ("none", Vec::new()),
    ]
}

fn analysis(patterns: &[Pattern]) -> Analysis {
    Analysis::new(patterns).expect("it can be analysed")
}

#[test]
fn automata_are_as_small_as_a_prototype_found() {
    // Cells, states, sets of readings, most readings, finite look-ahead, pairs that are cuts, pairs
    // with a boundary. The prototype counted a final state too.
    let expected = [
        ("r50k", [14, 15, 12, 2, 2, 75, 87]),
        ("cl100k", [15, 21, 20, 3, 2, 86, 90]),
        ("qwen3", [15, 19, 18, 3, 2, 87, 91]),
        ("o200k", [27, 30, 25, 3, 3, 253, 258]),
        ("deepseek_v3", [14, 25, 22, 3, 2, 146, 150]),
    ];
    for (name, expected) in expected {
        let (_, patterns) = sequences()
            .into_iter()
            .find(|(other, _)| *other == name)
            .expect("a sequence of this name");
        let analysis = analysis(&patterns);
        let (forward, most) = analysis.open_readings();
        let (cuts, boundaries) = Cuts::of(&analysis).pair_counts();
        let found = [
            analysis.cell_count(),
            analysis.state_count() + 1,
            forward + 1,
            most,
            analysis.look_ahead(),
            cuts,
            boundaries,
        ];
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn undecided_boundaries_are_blanks_after_newlines_and_capitals() {
    let blanks = ("\n\t\t", "\t");
    let capitals = ("\u{AA}A", "A");
    for (name, patterns) in sequences() {
        let expected: &[_] = match name {
            "r50k" | "digits" | "none" => &[],
            "o200k" | "tekken" => &[capitals, blanks],
            _ => &[blanks],
        };
        let found = analysis(&patterns).undecided();
        let texts: Vec<_> = (found.iter())
            .map(|found| (found.before.as_str(), found.repeated.as_str()))
            .collect();
        assert_eq!(texts, expected, "{name}");
        for found in &found {
            assert!(found.is_bounded);
            assert_eq!(found.readings, [vec![0], vec![0, 1]], "{name}");
        }
    }
}

#[test]
fn boundaries_without_number_are_not_bounded() {
    // Whether the letters are one span or many depends on what ends them.
    let pattern = Pattern::new("[a-z]+!|[a-z]");
    let undecided = analysis(&[pattern]).undecided();
    assert!(!undecided.is_empty());
    assert!(undecided.iter().any(|undecided| !undecided.is_bounded));
}

#[test]
fn automata_cut_as_the_engines_do() {
    for (name, patterns) in sequences() {
        let analysis = analysis(&patterns);
        let lexers = patterns.iter();
        let lexers = lexers.map(|pattern| lexer(pattern, Engine::Transcription));
        check(name, &analysis, &mut Spanner::new(lexers.collect()));
    }
}

#[test]
fn automata_of_patterns_of_a_user_cut_as_the_engines_do() {
    let mut analysed = 0;
    for source in CUSTOM {
        let pattern = [Pattern::new(source)];
        match Analysis::new(&pattern) {
            Ok(analysis) => {
                analysed += 1;
                let mut spanner = Spanner::new(vec![lexer(&pattern[0], Engine::Auto)]);
                check(source, &analysis, &mut spanner);
            }
            Err(error) => assert!(error.is_unsupported(), "{source}: {error}"),
        }
    }
    assert!(analysed > 20, "only {analysed} patterns were analysed");
}

#[cfg(feature = "reference")]
#[test]
fn possessive_quantifiers_and_look_aheads_mean_what_they_mean_to_the_reference() {
    for source in [
        r"a++b|a",
        r"[ab]{1,2}+b|.",
        r"a?+a|b",
        r"a*+(?=b)|\s+$|.",
        r"(?i:A++)(?!\n)|[^a]",
        r"a+?(?![a])|(?:b|!){2,3}",
    ] {
        let pattern = [Pattern::new(source)];
        let analysis = Analysis::new(&pattern).unwrap_or_else(|error| panic!("{source}: {error}"));
        let mut spanner = Spanner::new(vec![lexer(&pattern[0], Engine::Reference)]);
        check(source, &analysis, &mut spanner);
        for_each_tuple(&['a', 'A', 'b', '\n', '!'], 6, |text| {
            same(source, &analysis, &mut spanner, text);
        });
    }
}

fn check(name: &str, analysis: &Analysis, spanner: &mut Spanner) {
    let alphabet = &[
        ' ', '\t', '\n', 's', 'L', 'a', 'B', '\u{6F22}', '\u{301}', '1', '\'', '/', '!',
    ];
    for length in 0..=4 {
        for_each_tuple(alphabet, length, |text| same(name, analysis, spanner, text));
    }
    for_each_tuple(EVERY_CLASS, 2, |text| same(name, analysis, spanner, text));
}

fn same(name: &str, analysis: &Analysis, spanner: &mut Spanner, text: &str) {
    let expected = spans(spanner, text.as_bytes(), &SpecialMatcher::none());
    let found = analysis.spans(text);
    let found: Vec<_> = (found.iter())
        .map(|span| (&text.as_bytes()[span.range()], span.label))
        .collect();
    assert_eq!(found, expected, "{text:?} with {name}");
}

#[test]
fn a_difference_is_a_text_and_equality_has_none() {
    let one = |source| [Pattern::new(source)];
    let equal = [
        ("a|b", "[ab]"),
        ("a+", "aa*"),
        ("a++", "a+"),
        (r"\s+(?!\S)|\s+", r"\s+(?!\S)|\s"),
        ("(?i)k", "[kK\u{212A}]"),
        // An empty match is none.
        ("a*", "a+"),
    ];
    for (a, b) in equal {
        let difference = difference(&one(a), &one(b)).expect("both are analysed");
        assert_eq!(difference, None, "{a} and {b}");
    }
    let different = [
        ("a|ab", "ab|a", "ab"),
        ("a+", "a", "aa"),
        (r"\s+(?!\S)|\s+", r"\s+", "  !"),
        (r"\s++(?!\S)|\s", r"\s+(?!\S)|\s", "   !"),
    ];
    for (a, b, length) in different {
        let found = difference(&one(a), &one(b)).expect("both are analysed");
        let found = found.unwrap_or_else(|| panic!("{a} and {b} differ"));
        // A shortest one; which characters it has is not said.
        assert_eq!(found.chars().count(), length.chars().count(), "{found:?}");
    }
}

#[test]
fn what_cannot_be_analysed_is_refused() {
    for source in [
        r"\ba", "(?<=a)b", r"(a)\1", "(?>a+)", "(?!ab)a", "^a", "(?:ab)++",
    ] {
        let error = Analysis::new(&[Pattern::new(source)]).expect_err(source);
        assert!(error.is_unsupported(), "{source}: {error}");
    }
    let error = Analysis::new(&[Pattern::new("(a")]).expect_err("no end");
    assert!(error.is_syntax());
    for source in ["(?:a{100}){1000}", "(?:a|b)*a(?:a|b){60}c|."] {
        let error = Analysis::new(&[Pattern::new(source)]).expect_err(source);
        assert!(error.is_too_large(), "{source}: {error}");
    }
}

#[cfg(feature = "automata")]
#[test]
fn the_automata_engine_is_equal_to_the_meaning_on_texts_of_all_lengths() {
    for pattern in [Pattern::gpt2(), Pattern::o200k()] {
        let difference = bpe_lexers::automata_difference(&pattern).expect("it can be proved");
        assert_eq!(difference, None);
    }
}
