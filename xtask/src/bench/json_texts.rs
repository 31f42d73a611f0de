//! A regular expression for JSON of some depth, and documents that it matches: for `bench dfa`, and for
//! `masks` of the peers, which takes this file.

use serde_json::json;

/// Objects of strings, numbers, words, and lists and objects of these.
pub(crate) fn json_language() -> String {
    let string = r#""([^"\\\x00-\x1f]|\\["\\/bfnrt])*""#;
    let number = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?";
    let blank = r"[ \n]*";
    let mut value = format!("({string}|{number}|true|false|null)");
    for _ in 0..2 {
        let list = format!(r"\[{blank}({value}({blank},{blank}{value})*)?{blank}\]");
        let pair = format!("{string}{blank}:{blank}{value}");
        let object = format!(r"\{{{blank}({pair}({blank},{blank}{pair})*)?{blank}\}}");
        value = format!("({value}|{list}|{object})");
    }
    value
}

/// Documents of that kind, with words of a corpus.
pub(crate) fn json_documents(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().take(60_000).collect();
    let documents = words.chunks(60).enumerate().map(|(number, words)| {
        let phrase = |range: std::ops::Range<usize>| {
            let words = words.get(range).unwrap_or_default();
            words.join(" ")
        };
        let document = json!({
            "id": number * 7919 % 100_003,
            "title": phrase(0..6),
            "text": phrase(6..40),
            "score": number as f64 / 64.0,
            "is_new": number % 2 == 0,
            "tags": words.get(40..44),
            "source": {"name": phrase(44..47), "year": 1900 + number % 127, "note": null},
        });
        match number % 3 {
            0 => document.to_string(),
            _ => format!("{document:#}"),
        }
    });
    documents.collect()
}
