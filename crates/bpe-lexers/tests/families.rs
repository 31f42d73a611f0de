//! The engines agree on the families beyond those of OpenAI, and the families mean what their
//! regular expressions say.

mod common;

use bpe_lexers::{Engine, Family, Label, Pattern, PatternError, Spanner, SpecialMatcher};
use common::{ENGINES, EVERY_CLASS, for_each_tuple, lexer, pieces, pre_tokens, spans};

const FAMILIES: [Family; 7] = [
    Family::Cl100kOfTiktoken,
    Family::Qwen2,
    Family::Tekken,
    Family::DigitGroups,
    Family::SingleDigits,
    Family::HanAndKana,
    Family::DeepseekV3,
];

/// What the families distinguish, and what only deepseek_v3 does.
const ALPHABET: &[char] = &[
    ' ', '\t', '\n', 's', 'L', 'a', 'B', '\u{6F22}', '\u{30A2}', '\u{301}', '1', '\'', '/', '$',
    '\u{FF0C}', '\u{0}', '\u{378}',
];

/// Checks the engines of this build that run the family against its transcription.
fn check(family: Family, texts: impl Fn(&mut dyn FnMut(&str))) {
    let pattern = Pattern::of_family(family);
    let mut oracle = lexer(&pattern, Engine::Transcription);
    let mut others = 0;
    for &engine in ENGINES {
        if engine == Engine::Transcription {
            continue;
        }
        let mut other = match bpe_lexers::lexer(&pattern, engine) {
            Ok(other) => other,
            Err(error) => {
                assert!(PatternError::is_unsupported(&error), "{error}");
                continue;
            }
        };
        others += 1;
        texts(&mut |text| {
            let expected = pre_tokens(oracle.as_mut(), text);
            let found = pre_tokens(other.as_mut(), text);
            assert_eq!(found, expected, "{engine:?} on {text:?} with {family:?}");
            if family.covers_every_text() {
                let covered: usize = expected.iter().map(|range| range.len()).sum();
                assert_eq!(covered, text.len(), "{text:?} with {family:?}");
            }
        });
    }
    let reference = usize::from(cfg!(feature = "reference"));
    assert!(others >= reference, "{family:?} was compared with nothing");
}

#[test]
fn engines_agree_on_every_text_of_up_to_four_characters() {
    for family in FAMILIES {
        check(family, |check| {
            for length in 0..=4 {
                for_each_tuple(ALPHABET, length, |text| check(text));
            }
        });
    }
}

#[test]
fn engines_agree_on_every_text_of_two_characters_of_all_categories() {
    for family in FAMILIES {
        check(family, |check| {
            for_each_tuple(EVERY_CLASS, 2, |text| check(text));
        });
    }
}

/// Case folding, title case, marks, digits and white space beyond ASCII, line ends, joined and flag emoji, and
/// the same letters in two normal forms.
const ODD: &[&str] = &[
    "'\u{17F}",
    "'S",
    "'\u{212A}",
    "\u{212A}",
    "\u{1C5}",
    "\u{1F88}",
    "\u{DF}",
    "\u{130}",
    "i\u{307}",
    "\u{FB01}",
    "e\u{301}",
    "\u{E9}",
    "\u{301}",
    "\u{AC00}",
    "\u{1100}\u{1161}",
    "\u{663}\u{664}",
    "\u{967}",
    "\u{2167}",
    "\u{BD}",
    "\u{A0}",
    "\u{2003}",
    "\u{3000}",
    "\u{85}",
    "\u{2028}",
    "\u{FEFF}",
    "\r\n",
    "\n\r",
    "\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}",
    "\u{1F1E9}\u{1F1EA}",
    "\u{1F44D}\u{1F3FD}",
    "\u{2764}\u{FE0F}",
    "a",
    " ",
];

#[test]
fn engines_agree_on_what_is_odd_in_unicode() {
    for family in [Family::Gpt2, Family::Cl100k, Family::O200k]
        .into_iter()
        .chain(FAMILIES)
    {
        check(family, |check| {
            for first in ODD {
                for second in ODD {
                    check(&format!("{first}{second}"));
                    for third in ODD {
                        check(&format!("{first}{second}{third}"));
                    }
                }
            }
        });
    }
}

#[test]
fn tiktoken_s_spelling_of_cl100k_differs_where_a_text_ends_in_a_newline_and_blanks() {
    let expect = |family, text: &str, expected: &[&str]| {
        let mut lexer = lexer(&Pattern::of_family(family), Engine::Transcription);
        assert_eq!(pieces(lexer.as_mut(), text), expected, "{family:?}");
    };
    expect(Family::Cl100k, "a\n  ", &["a", "\n", "  "]);
    expect(Family::Cl100kOfTiktoken, "a\n  ", &["a", "\n  "]);
    for family in [Family::Cl100k, Family::Cl100kOfTiktoken] {
        expect(family, "a\n  b", &["a", "\n", " ", " b"]);
        expect(family, "a \n \nb", &["a", " \n \n", "b"]);
    }
}

#[test]
fn deepseek_s_stages_cut_numbers_then_han_then_words() {
    let stages = Pattern::deepseek_v3();
    let lexers = stages
        .iter()
        .map(|stage| lexer(stage, Engine::Transcription));
    let mut spanner = Spanner::new(lexers.collect());
    let text = "On 20261128, \u{6F22}\u{5B57}a\u{0}\u{1}.the end";
    let pieces: Vec<_> = spans(&mut spanner, text.as_bytes(), &SpecialMatcher::none())
        .into_iter()
        .map(|(bytes, label)| (String::from_utf8_lossy(bytes).into_owned(), label))
        .collect();
    let expected = [
        // The blank before the number ends a piece of the first stage.
        ("On", Label::Word),
        (" ", Label::Word),
        ("202", Label::Gap),
        ("611", Label::Gap),
        ("28", Label::Gap),
        (",", Label::Word),
        (" ", Label::Word),
        ("\u{6F22}\u{5B57}", Label::Word),
        ("a", Label::Word),
        ("\u{0}\u{1}", Label::Gap),
        (".the", Label::Word),
        (" end", Label::Word),
    ];
    let expected = expected.map(|(text, label)| (text.to_owned(), label));
    assert_eq!(pieces, expected);
}

#[test]
fn every_family_has_a_pattern_that_is_known_by_its_spelling() {
    for family in Family::ALL {
        let pattern = Pattern::of_family(family);
        assert_eq!(pattern.family(), Some(family));
        assert_eq!(Pattern::new(pattern.as_str()).family(), Some(family));
    }
}
