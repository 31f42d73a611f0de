//! The cases that several tests share: characters, texts and patterns, and the loops over them.

// Each test is a crate of its own and uses a part of this.
#![allow(dead_code)]

use std::ops::{ControlFlow, Range};

use bpe_lexers::{Engine, Label, Lexer, Pattern, Spanner, SpecialMatcher};

/// The names of the known patterns.
pub(crate) const KNOWN: [&str; 3] = ["gpt2", "cl100k", "o200k"];

/// The engines of this build that run the known patterns.
pub(crate) const ENGINES: &[Engine] = &[
    Engine::Transcription,
    Engine::Fast,
    #[cfg(feature = "reference")]
    Engine::Reference,
    #[cfg(feature = "automata")]
    Engine::Automata,
    #[cfg(feature = "logos")]
    Engine::Logos,
];

/// One or more characters of every class that a known pattern distinguishes, and of the Unicode
/// categories and white space that they are made of.
pub(crate) const EVERY_CLASS: &[char] = &[
    // White space: blank, tab, newlines, next line, no-break, ideographic, line separator.
    ' ',
    '\t',
    '\r',
    '\n',
    '\u{85}',
    '\u{A0}',
    '\u{3000}',
    '\u{2028}',
    // The letters of the contractions in both cases; U+017F folds to s, U+212A to k.
    's',
    'S',
    '\u{17F}',
    't',
    'T',
    'r',
    'R',
    'e',
    'E',
    'v',
    'V',
    'm',
    'M',
    'l',
    'L',
    'd',
    'D',
    '\u{212A}',
    // Other letters: Ll, Lu, Lt, Lm, Lo.
    'a',
    'B',
    '\u{E9}',
    '\u{1C5}',
    '\u{2B0}',
    '\u{6F22}',
    // Marks: Mn, Mc, Me.
    '\u{301}',
    '\u{903}',
    '\u{20DD}',
    // Numbers: Nd in ASCII and not, No, Nl.
    '1',
    '\u{663}',
    '\u{BD}',
    '\u{2167}',
    // The rest: apostrophes, slash, punctuation, emoji, joiner, unassigned, private, last.
    '\'',
    '\u{2019}',
    '/',
    '!',
    '\u{FF0C}',
    '\u{1F600}',
    '\u{200D}',
    '\u{378}',
    '\u{E000}',
    '\u{10FFFF}',
];

/// One character of every class that the pattern of this name distinguishes.
pub(crate) fn classes_of(name: &str) -> &'static [char] {
    match name {
        "gpt2" => &[
            ' ', '\t', '\'', 's', 't', 'r', 'e', 'v', 'm', 'l', 'd', 'a', '1', '!',
        ],
        "cl100k" => &[
            ' ', '\t', '\n', '\'', 's', 't', 'r', 'e', 'v', 'm', 'l', 'd', 'a', '1', '!',
        ],
        _ => &[
            ' ', '\t', '\n', '\'', '/', 's', 't', 'r', 'e', 'v', 'm', 'l', 'd', 'S', 'T', 'R', 'E',
            'V', 'M', 'L', 'D', 'a', 'B', '\u{6F22}', '\u{301}', '1', '!',
        ],
    }
}

/// Patterns that both regex engines take, and that are none of the known ones.
pub(crate) const CUSTOM: &[&str] = &[
    // The first branch that matches wins, not the longest.
    r"a|ab|abb",
    r"abb|ab|a",
    r"(?:a|ab)(?:b|$)",
    // Gaps between the matches.
    r"\w+",
    r"[ab]+",
    r"\p{Han}+",
    r"b.",
    // No gaps.
    r"\w+|\W+",
    r"\d|\D+?",
    r"(?s).{1,3}",
    // Empty matches, alone and beside others.
    r"a*",
    r"|a",
    r"b?|a",
    r"a*?b|",
    r"$|a",
    r"\b|b+",
    // Anchors and word boundaries look at the segment, not at the start of the search.
    r"^a+",
    r"a+$",
    r"^a|^b|!",
    r"(?m)^.+$",
    r"\ba\w*",
    r"\b\w|\Bb",
    r"\Aa|b\z",
    // Flags.
    r"(?i)S+|[^s]",
    r"(?i:k)|a",
    r"(?x) \w+ | \s+ # words and blanks",
    r"(?U)a+|b+",
    // Not a look-ahead but a comment.
    r"(?x) a # b|\s+(?!\S)|\s+",
    // Trailing look-ahead.
    r"\s+(?!\S)|\s+",
    r"[^\s]+|\s+(?!\S)|\s+",
    r"\w+|\s+(?!\S)|\s",
    r"a*|\s+(?!\S)|\s+",
    r" ?\w+|\n|\s+(?!\S)|\s+",
    r"(?i)s|(?m)^\s|\s+(?!\S)|\s+",
];

/// Returns the known pattern of this name.
pub(crate) fn known(name: &str) -> Pattern {
    Pattern::by_name(name).expect("a known name")
}

/// Returns a lexer that must exist.
pub(crate) fn lexer(pattern: &Pattern, engine: Engine) -> Box<dyn Lexer> {
    bpe_lexers::lexer(pattern, engine)
        .unwrap_or_else(|error| panic!("{engine:?} runs {:?}: {error}", pattern.as_str()))
}

/// Returns all pre-tokens of a segment.
pub(crate) fn pre_tokens(lexer: &mut dyn Lexer, segment: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    pre_tokens_into(lexer, segment, &mut found);
    found
}

/// Replaces what is in `found` by all pre-tokens of a segment.
pub(crate) fn pre_tokens_into(lexer: &mut dyn Lexer, segment: &str, found: &mut Vec<Range<usize>>) {
    found.clear();
    let mut start = 0;
    while let Some(range) = lexer
        .next_pre_token(segment, start)
        .unwrap_or_else(|error| panic!("{segment:?}: {error}"))
    {
        assert!(
            range.start >= start && range.end > range.start && range.end <= segment.len(),
            "{range:?} is no range of {segment:?} from {start}"
        );
        start = range.end;
        found.push(range);
    }
    let many = pre_tokens_at_once(lexer, segment, found.len().max(1) / 2 + 1);
    assert_eq!(many, *found, "many at once of {segment:?}");
}

/// Returns all pre-tokens of a segment, about `limit` at a time.
pub(crate) fn pre_tokens_at_once(
    lexer: &mut dyn Lexer,
    segment: &str,
    limit: usize,
) -> Vec<Range<usize>> {
    let (mut found, mut ends) = (Vec::new(), Vec::new());
    let mut position = 0;
    loop {
        ends.clear();
        let beyond = lexer
            .pre_token_ends(segment, position, limit, &mut ends)
            .unwrap_or_else(|error| panic!("{segment:?}: {error}"));
        if ends.is_empty() && beyond.is_none() {
            return found;
        }
        for end in ends.drain(..) {
            found.push(position..end);
            position = end;
        }
        if let Some(beyond) = beyond {
            position = beyond.end;
            found.push(beyond);
        }
    }
}

/// Returns the pre-tokens of a segment as text.
pub(crate) fn pieces<'t>(lexer: &mut dyn Lexer, segment: &'t str) -> Vec<&'t str> {
    pre_tokens(lexer, segment)
        .into_iter()
        .map(|range| &segment[range])
        .collect()
}

/// Returns the spans of a text as bytes and labels, after checking that they cover it.
pub(crate) fn spans<'t>(
    spanner: &mut Spanner,
    text: &'t [u8],
    specials: &SpecialMatcher,
) -> Vec<(&'t [u8], Label)> {
    let mut spans = Vec::new();
    let mut covered = 0;
    let flow: ControlFlow<()> = spanner
        .for_each_span(text, specials, |span| {
            assert_eq!(
                span.start, covered,
                "a span starts where the last one ended"
            );
            assert!(span.end > span.start, "no span is empty");
            covered = span.end;
            spans.push((&text[span.range()], span.label));
            ControlFlow::Continue(())
        })
        .unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert!(flow.is_continue());
    assert_eq!(covered, text.len(), "the spans cover the text");
    spans
}

/// Calls `visit` with every string of exactly `length` characters of `alphabet`.
pub(crate) fn for_each_tuple(alphabet: &[char], length: u32, mut visit: impl FnMut(&str)) {
    let size = alphabet.len();
    let mut text = String::new();
    for number in 0..size.pow(length) {
        text.clear();
        let mut rest = number;
        for _ in 0..length {
            text.push(alphabet[rest % size]);
            rest /= size;
        }
        visit(&text);
    }
}
