//! `compare`: two encodings on a text.

use std::ops::Range;

use bytepair::{Encoding, TokenId};
use serde_json::{Value, json};

use crate::args::CompareArgs;
use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::load::Named;
use crate::output::{escaped, shortened, write_line};
use crate::pipeline::Session;

/// How many tokens of a place the text shows; JSON has all.
const SHOWN_TOKENS: usize = 24;

pub(crate) fn run(args: &CompareArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let pair = Pair([
        Named::load(&args.tokenizer, &args.specials)?,
        Named::by_word(&args.with, &args.specials)?,
    ]);
    let cutter = Cutter::new(&[&pair.0[0].tokenizer, &pair.0[1].tokenizer]);
    let inputs = Input::all(&args.files.files);
    for input in &inputs {
        let name = input.name();
        let work = |block: &Block| pair.compare(block, &name, args.places);
        let mut total = Comparison::default();
        let threads = args.threads.number();
        session.for_each_block(input, &cutter, threads, work, |_, part| {
            total.append(part, args.places);
            Ok(())
        })?;
        for named in &pair.0 {
            named.tokenizer.clear_scratch();
        }
        if args.json {
            write_line(session.stdout, pair.json(&name, &total).to_string())?;
            continue;
        }
        if inputs.len() > 1 {
            write_line(session.stdout, format!("==> {name} <=="))?;
        }
        write_line(session.stdout, pair.text(&total))?;
    }
    Ok(())
}

/// The two encodings that are compared.
struct Pair([Named; 2]);

/// What two encodings make of a text.
#[derive(Debug, Default)]
struct Comparison {
    bytes: u64,
    tokens: [u64; 2],
    /// Number of places that differ, and the first of them.
    differing: u64,
    places: Vec<Place>,
}

/// A smallest range between two common boundaries, inside which there is no other, and which one of
/// the encodings divides.
#[derive(Debug, PartialEq)]
struct Place {
    start: u64,
    end: u64,
    pieces: [Vec<(TokenId, Vec<u8>)>; 2],
}

impl Comparison {
    /// Adds what comes next in the input.
    fn append(&mut self, next: Self, places: usize) {
        self.bytes += next.bytes;
        self.differing += next.differing;
        for (tokens, next) in self.tokens.iter_mut().zip(next.tokens) {
            *tokens += next;
        }
        let room = places.saturating_sub(self.places.len());
        self.places.extend(next.places.into_iter().take(room));
    }

    /// `None` where there are no tokens.
    fn bytes_per_token(&self) -> [Option<f64>; 2] {
        self.tokens
            .map(|tokens| (tokens > 0).then(|| self.bytes as f64 / tokens as f64))
    }

    /// Tokens of the second encoding for one of the first.
    fn ratio(&self) -> Option<f64> {
        let [first, second] = self.tokens;
        (first > 0).then(|| second as f64 / first as f64)
    }
}

impl Pair {
    /// The comparison of a block. A cut is a boundary of both encodings, so no place lies across.
    fn compare(&self, block: &Block, name: &str, places: usize) -> Result<Comparison, CliError> {
        let encode = |named: &Named| {
            let encoding = named.tokenizer.encode_with_offsets(&block.bytes);
            encoding.map_err(|error| CliError::encoding(name, block.start, &error))
        };
        let encodings = [encode(&self.0[0])?, encode(&self.0[1])?];
        let mut comparison = Comparison {
            bytes: block.bytes.len() as u64,
            tokens: [&encodings[0], &encodings[1]].map(|encoding| encoding.ids.len() as u64),
            ..Comparison::default()
        };
        for_each_difference(&encodings, |tokens| {
            comparison.differing += 1;
            if comparison.places.len() < places {
                comparison.places.push(place(block, &encodings, tokens));
            }
        });
        Ok(comparison)
    }

    fn text(&self, comparison: &Comparison) -> String {
        let names = [&self.0[0].name, &self.0[1].name];
        let width = names.map(|name| name.chars().count().max(12));
        let row = |title: &str, cells: [String; 2]| {
            let [first, second] = cells;
            format!(
                "{title:<15} {first:>0$}  {second:>1$}\n",
                width[0], width[1]
            )
        };
        let or_none = |number: Option<String>| number.unwrap_or("-".to_owned());
        let per_token = comparison.bytes_per_token();
        let per_token = per_token.map(|bytes| or_none(bytes.map(|bytes| format!("{bytes:.3}"))));
        let ratio = or_none(comparison.ratio().map(|ratio| format!("{ratio:.4}")));
        let mut text = row("", names.map(String::clone));
        text += &row("tokens", comparison.tokens.map(|tokens| tokens.to_string()));
        text += &row("bytes per token", per_token);
        text += &row("ratio", [String::new(), ratio]);
        text += &match (comparison.differing, comparison.places.len() as u64) {
            (0, _) => "no place differs".to_owned(),
            (1, _) => "1 place differs".to_owned(),
            (all, shown) if all == shown => format!("{all} places differ"),
            (all, shown) => format!("{all} places differ; the first {shown}"),
        };
        let longest = names.map(|name| name.chars().count());
        let longest = longest[0].max(longest[1]);
        for place in &comparison.places {
            text += &format!("\nat bytes {} to {}", place.start, place.end);
            for (name, pieces) in names.iter().zip(&place.pieces) {
                let mut shown: Vec<String> = pieces
                    .iter()
                    .take(SHOWN_TOKENS)
                    .map(|(id, piece)| format!("\"{}\" {id}", shortened(escaped(piece), 60)))
                    .collect();
                if pieces.len() > SHOWN_TOKENS {
                    shown.push(format!("and {} more", pieces.len() - SHOWN_TOKENS));
                }
                text += &format!("\n  {name:<longest$}  {}", shown.join(", "));
            }
        }
        text
    }

    fn json(&self, file: &str, comparison: &Comparison) -> Value {
        let bytes_per_token = comparison.bytes_per_token();
        let encoding = |number: usize| {
            json!({
                "name": self.0[number].name,
                "tokens": comparison.tokens[number],
                "bytes_per_token": bytes_per_token[number],
            })
        };
        let places = comparison.places.iter().map(|place| {
            let tokens = place.pieces.iter().map(|pieces| {
                let token =
                    |(id, piece): &(TokenId, Vec<u8>)| json!({"id": id, "piece": escaped(piece)});
                pieces.iter().map(token).collect::<Value>()
            });
            json!({
                "start": place.start,
                "end": place.end,
                "tokens": tokens.collect::<Value>(),
            })
        });
        json!({
            "file": file,
            "bytes": comparison.bytes,
            "encodings": [encoding(0), encoding(1)],
            "ratio": comparison.ratio(),
            "differing_places": comparison.differing,
            "places": places.collect::<Value>(),
        })
    }
}

/// Calls `found` for each smallest range between common boundaries that is not one token in both
/// encodings, with the tokens in it. Linear.
fn for_each_difference(encodings: &[Encoding; 2], mut found: impl FnMut([Range<usize>; 2])) {
    let [first, second] = encodings.each_ref().map(|encoding| &encoding.byte_ranges);
    // The first tokens behind the last common boundary, and those that follow what was looked at.
    let (mut start, mut next) = ([0, 0], [0, 0]);
    while let (Some(left), Some(right)) = (first.get(next[0]), second.get(next[1])) {
        // The one that ends first goes on.
        let (left_end, right_end) = (left.end, right.end);
        next[0] += usize::from(left_end <= right_end);
        next[1] += usize::from(right_end <= left_end);
        if left_end == right_end {
            let tokens = [start[0]..next[0], start[1]..next[1]];
            if tokens.iter().any(|range| range.len() != 1) {
                found(tokens);
            }
            start = next;
        }
    }
}

fn place(block: &Block, encodings: &[Encoding; 2], tokens: [Range<usize>; 2]) -> Place {
    let bytes = encodings[0].byte_ranges.get(tokens[0].clone());
    let bytes = bytes.unwrap_or_default();
    let start = bytes.first().map_or(0, |range| range.start);
    let end = bytes.last().map_or(start, |range| range.end);
    let pieces = [0, 1].map(|number| {
        let Encoding { ids, byte_ranges } = &encodings[number];
        let tokens = tokens[number].clone();
        let piece = |index: usize| (ids[index], block.bytes[byte_ranges[index].clone()].to_vec());
        tokens.map(piece).collect()
    });
    Place {
        start: block.start + start as u64,
        end: block.start + end as u64,
        pieces,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::output;
    use std::collections::BTreeSet;

    fn encoding(ends: &[usize]) -> Encoding {
        let starts = std::iter::once(&0).chain(ends);
        Encoding {
            ids: (0..ends.len() as u32).collect(),
            byte_ranges: starts.zip(ends).map(|(&start, &end)| start..end).collect(),
        }
    }

    #[test]
    fn differences_are_the_smallest_ranges_between_common_boundaries() {
        let encodings = [encoding(&[2, 4, 7, 8, 10]), encoding(&[1, 2, 4, 5, 8, 10])];
        let mut found = Vec::new();
        for_each_difference(&encodings, |tokens| found.push(tokens));
        // Bytes 0 to 2 are one token and two; 4 to 8 are 4-7-8 and 4-5-8; the rest is the same.
        assert_eq!(found, [[0..1, 0..2], [2..4, 3..5]]);
    }

    #[test]
    fn blocks_make_no_difference() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-data/corpora/");
        let text = std::fs::read(format!("{folder}mixed.txt")).expect("a corpus");
        for with in ["gpt2", "cl100k_base"] {
            let arguments = ["compare", "--with", with, "--json", "--places", "9999999"];
            let whole = output(&arguments, &text, 1 << 30);
            for block_bytes in [10, 3000] {
                assert!(output(&arguments, &text, block_bytes) == whole);
            }
            // The number of places from sets of boundaries.
            let ends = |name: &str| -> BTreeSet<usize> {
                let tokenizer = bytepair::Tokenizer::from_name(name).expect("embedded");
                let encoding = tokenizer.encode_with_offsets(&text).expect("encodes");
                encoding.byte_ranges.iter().map(|range| range.end).collect()
            };
            let (first, second) = (ends("o200k_base"), ends(with));
            let mut places = 0;
            let mut start = 0;
            for &end in first.intersection(&second) {
                let inside = start + 1..end;
                let is_divided = first
                    .range(inside.clone())
                    .chain(second.range(inside))
                    .count()
                    > 0;
                places += u64::from(is_divided);
                start = end;
            }
            let json: Value = serde_json::from_str(&whole).expect("JSON");
            assert_eq!(json["differing_places"], places);
            assert_eq!(
                json["places"].as_array().map(Vec::len),
                Some(places as usize)
            );
            assert_eq!(json["encodings"][0]["tokens"], first.len());
            assert_eq!(json["encodings"][1]["tokens"], second.len());
            assert_eq!(json["bytes"], text.len());
        }
    }

    #[test]
    fn the_same_encoding_differs_nowhere_and_no_text_has_no_ratio() {
        let same = output(&["compare", "--with", "o200k_base"], b"some text", 100);
        assert!(same.ends_with("\nno place differs\n"), "{same}");
        let empty = output(&["compare", "--with", "gpt2", "--json"], b"", 100);
        let empty: Value = serde_json::from_str(&empty).expect("JSON");
        assert_eq!(empty["ratio"], Value::Null);
        assert_eq!(empty["encodings"][0]["bytes_per_token"], Value::Null);
    }

    #[test]
    fn of_many_places_the_first_are_printed() {
        let text = "naïve café ".repeat(30);
        let arguments = ["compare", "--with", "gpt2", "--places", "2"];
        let printed = output(&arguments, text.as_bytes(), 8);
        assert!(
            printed.contains("places differ; the first 2\n"),
            "{printed}"
        );
        assert_eq!(printed.matches("\nat bytes ").count(), 2);
    }
}
