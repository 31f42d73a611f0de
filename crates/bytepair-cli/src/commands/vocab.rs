//! `vocab`: what a vocabulary is like, and its tokens one by one.

use std::ops::RangeInclusive;

use bytepair::{TokenId, Tokenizer};
use serde_json::{Value, json};

use crate::args::{SpecialArgs, VocabArgs};
use crate::error::CliError;
use crate::load::Named;
use crate::output::{escaped, grouped, shortened, write_line};
use crate::pipeline::Session;

/// The percentiles of token lengths that are told.
const PERCENTILES: [usize; 7] = [1, 10, 25, 50, 75, 90, 99];

/// How many special tokens, ranges of ids and so on the text names; JSON has all.
const NAMED: usize = 8;

pub(crate) fn run(args: &VocabArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let named = Named::load(&args.tokenizer, &SpecialArgs::default())?;
    if args.id.is_empty() && args.token.is_empty() {
        let facts = Facts::of(&named);
        return match args.json {
            true => write_line(session.stdout, facts.json().to_string()),
            false => write_line(session.stdout, facts.text()),
        };
    }
    let tokenizer = &named.tokenizer;
    let by_id = args.id.iter().map(|&id| match tokenizer.token_bytes(id) {
        Some(bytes) => Ok((id, bytes)),
        None => Err(format!("no token has the id {id}")),
    });
    let by_text = args.token.iter().map(|text| {
        let id = tokenizer.token_id(text.as_bytes());
        id.map(|id| (id, text.as_bytes()))
            .ok_or_else(|| format!("no token has the text {text:?}"))
    });
    for found in by_id.chain(by_text) {
        let (id, bytes) =
            found.map_err(|what| CliError::Input(format!("{}: {what}", named.name)))?;
        let line = match args.json {
            true => token_json(tokenizer, id, bytes).to_string(),
            false => token_text(tokenizer, id, bytes),
        };
        write_line(session.stdout, line)?;
    }
    Ok(())
}

/// The two tokens that a token is merged from, where it is.
fn sides(tokenizer: &Tokenizer, id: TokenId) -> Option<[TokenId; 2]> {
    let rule = tokenizer.canonical().rule(id)?;
    Some([rule.left, rule.right])
}

/// Whether no text makes the token by merging: special tokens are matched as text.
fn is_unreachable(tokenizer: &Tokenizer, id: TokenId) -> bool {
    !tokenizer.is_special(id)
        && tokenizer.vocabulary().token_bytes(id).is_some()
        && !tokenizer.is_reachable(id)
}

fn token_text(tokenizer: &Tokenizer, id: TokenId, bytes: &[u8]) -> String {
    let quoted = |bytes: &[u8]| format!("\"{}\"", shortened(escaped(bytes), 400));
    let mut text = format!("id {id}: {}, {} bytes", quoted(bytes), bytes.len());
    if tokenizer.is_special(id) {
        text.push_str(", special");
    }
    if is_unreachable(tokenizer, id) {
        text.push_str(", not made by merging its bytes");
    }
    if let Some(sides) = sides(tokenizer, id) {
        let [left, right] = sides.map(|side| {
            let bytes = tokenizer.token_bytes(side).unwrap_or_default();
            format!("{side} {}", quoted(bytes))
        });
        text.push_str(&format!("\n  merged from {left} and {right}"));
    }
    text
}

fn token_json(tokenizer: &Tokenizer, id: TokenId, bytes: &[u8]) -> Value {
    json!({
        "id": id,
        // Null where the bytes are no text.
        "text": std::str::from_utf8(bytes).ok(),
        "bytes": bytes,
        "special": tokenizer.is_special(id),
        "reachable": !is_unreachable(tokenizer, id),
        "merged_from": sides(tokenizer, id),
    })
}

/// What `vocab` tells of a vocabulary.
struct Facts<'a> {
    named: &'a Named,
    /// Ids up to the largest that no token has.
    gaps: Vec<RangeInclusive<TokenId>>,
    unreachable: Vec<TokenId>,
    /// Lengths of the ordinary tokens in bytes, sorted.
    lengths: Vec<usize>,
    longest: Option<TokenId>,
}

impl<'a> Facts<'a> {
    fn of(named: &'a Named) -> Self {
        let tokenizer = &named.tokenizer;
        let tokens = || tokenizer.vocabulary().iter();
        let mut lengths: Vec<usize> = tokens().map(|(_, bytes)| bytes.len()).collect();
        lengths.sort_unstable();
        let special = tokenizer.special_tokens().map(|(_, id)| id);
        let longest = tokens().max_by_key(|&(id, bytes)| (bytes.len(), std::cmp::Reverse(id)));
        Self {
            named,
            gaps: gaps(tokens().map(|(id, _)| id).chain(special).collect()),
            unreachable: tokenizer.canonical().unreachable_tokens().collect(),
            lengths,
            longest: longest.map(|(id, _)| id),
        }
    }

    fn percentiles(&self) -> impl Iterator<Item = (usize, usize)> {
        PERCENTILES
            .iter()
            .map(|&percent| (percent, percentile(&self.lengths, percent)))
    }

    fn gap_ids(&self) -> usize {
        let lengths = self
            .gaps
            .iter()
            .map(|gap| (gap.end() - gap.start()) as usize + 1);
        lengths.sum()
    }

    fn mean_length(&self) -> Option<f64> {
        let bytes: usize = self.lengths.iter().sum();
        (!self.lengths.is_empty()).then(|| bytes as f64 / self.lengths.len() as f64)
    }

    fn text(&self) -> String {
        let tokenizer = &self.named.tokenizer;
        let canonical = tokenizer.canonical();
        let mut lines = vec![format!("name             {}", self.named.name)];
        let mut line = |name: &str, value: String| lines.push(format!("{name:<16} {value}"));
        line("tokens", grouped(tokenizer.token_count()));
        line("ordinary tokens", grouped(tokenizer.vocabulary().len()));
        let specials: Vec<String> = tokenizer
            .special_tokens()
            .map(|(text, id)| format!("{} {id}", escaped(text.as_bytes())))
            .collect();
        line("special tokens", listed(&specials));
        let largest = tokenizer.max_id().map(|id| grouped(id as usize));
        line("largest id", largest.unwrap_or("none".to_owned()));
        let gaps: Vec<String> = self
            .gaps
            .iter()
            .map(|gap| match gap.start() == gap.end() {
                true => gap.start().to_string(),
                false => format!("{}-{}", gap.start(), gap.end()),
            })
            .collect();
        let gap_ids = grouped(self.gap_ids());
        line("ids of no token", with_list(&gap_ids, &gaps));
        line("merge rules", grouped(canonical.rule_count()));
        let proper = match canonical.improper_rule() {
            None => "yes: no rule uses what a later rule makes",
            Some(_) => "no: a rule uses what a later rule makes",
        };
        line("proper", proper.to_owned());
        let lookup = match canonical.whole_piece_lookup() {
            true => "yes: a piece that is a token becomes it without merging",
            false => "no",
        };
        line("whole pieces", lookup.to_owned());
        let unreachable: Vec<String> = self
            .unreachable
            .iter()
            .map(|&id| {
                let bytes = tokenizer.token_bytes(id).unwrap_or_default();
                format!("{id} \"{}\"", shortened(escaped(bytes), 40))
            })
            .collect();
        line("unreachable", listed(&unreachable));
        if let Some(id) = self.longest {
            let bytes = tokenizer.token_bytes(id).unwrap_or_default();
            let piece = shortened(escaped(bytes), 40);
            line(
                "longest token",
                format!("{} bytes: {id} \"{piece}\"", bytes.len()),
            );
        }
        if let Some(mean) = self.mean_length() {
            let percentiles: Vec<String> = self
                .percentiles()
                .map(|(percent, length)| format!("p{percent} {length}"))
                .collect();
            let percentiles = percentiles.join(", ");
            line(
                "token lengths",
                format!("{percentiles}, mean {mean:.2} bytes"),
            );
        }
        for pattern in tokenizer.patterns() {
            line("pattern", pattern.as_str().to_owned());
        }
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let tokenizer = &self.named.tokenizer;
        let canonical = tokenizer.canonical();
        let specials = tokenizer
            .special_tokens()
            .map(|(text, id)| json!({"text": text, "id": id}));
        let patterns = tokenizer.patterns().iter().map(|pattern| pattern.as_str());
        let percentiles: serde_json::Map<_, _> = self
            .percentiles()
            .map(|(percent, length)| (format!("p{percent}"), json!(length)))
            .collect();
        json!({
            "name": self.named.name,
            "tokens": tokenizer.token_count(),
            "ordinary_tokens": tokenizer.vocabulary().len(),
            "special_tokens": specials.collect::<Value>(),
            "largest_id": tokenizer.max_id(),
            "ids_of_no_token": self.gap_ids(),
            "ranges_of_no_token": self.gaps.iter().map(|gap| json!([gap.start(), gap.end()])).collect::<Value>(),
            "merge_rules": canonical.rule_count(),
            "proper": canonical.is_proper(),
            "whole_piece_lookup": canonical.whole_piece_lookup(),
            "unreachable_tokens": self.unreachable,
            "longest_token": self.longest,
            "longest_token_bytes": self.lengths.last(),
            "token_lengths": percentiles,
            "mean_token_length": self.mean_length(),
            "patterns": patterns.collect::<Value>(),
        })
    }
}

/// The number of items and the first ones.
fn listed(items: &[String]) -> String {
    with_list(&grouped(items.len()), items)
}

fn with_list(number: &str, items: &[String]) -> String {
    if items.is_empty() {
        return number.to_owned();
    }
    let first = items.iter().take(NAMED).cloned().collect::<Vec<_>>();
    let more = if items.len() > NAMED { ", ..." } else { "" };
    format!("{number}: {}{more}", first.join(", "))
}

/// The ranges between 0 and the largest of `ids` that are none of them.
fn gaps(mut ids: Vec<TokenId>) -> Vec<RangeInclusive<TokenId>> {
    ids.sort_unstable();
    let mut gaps = Vec::new();
    let mut next = Some(0);
    for id in ids {
        // Nothing follows the largest number.
        let Some(expected) = next else { break };
        if id > expected {
            gaps.push(expected..=id - 1);
        }
        next = id.max(expected.saturating_sub(1)).checked_add(1);
    }
    gaps
}

/// The length that `percent` of a hundred tokens do not exceed (nearest rank); 0 of none.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    let index = rank.saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::{output, run_with};

    #[test]
    fn gaps_are_what_lies_between_ids() {
        assert_eq!(gaps(vec![0, 1, 2]), []);
        assert_eq!(gaps(vec![7, 2, 2, 4]), [0..=1, 3..=3, 5..=6]);
        assert_eq!(gaps(vec![]), []);
        assert_eq!(gaps(vec![u32::MAX, 0]), [1..=u32::MAX - 1]);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        // The worked example of the nearest-rank method on five values.
        let sorted = [15, 20, 35, 40, 50];
        let at = |percent| percentile(&sorted, percent);
        assert_eq!([5, 30, 40, 50, 100].map(at), [15, 20, 20, 35, 50]);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn facts_are_those_that_are_published() {
        let json = output(&["vocab", "-e", "p50k_base", "--json"], b"", 1);
        let facts: Value = serde_json::from_str(&json).expect("JSON");
        // 50257 of r50k_base and 24 runs of blanks.
        assert_eq!(facts["tokens"], 50_281);
        assert_eq!(facts["ordinary_tokens"], 50_280);
        assert_eq!(facts["largest_id"], 50_280);
        assert_eq!(facts["ids_of_no_token"], 0);
        assert_eq!(facts["unreachable_tokens"], json!([]));
        let text = output(&["vocab", "-e", "cl100k_base"], b"", 1);
        assert!(text.contains("ordinary tokens  100,256\n"), "{text}");
        assert!(text.contains("\nlargest id       100,276\n"), "{text}");
        // 100256 and those between <|fim_suffix|> and <|endofprompt|>.
        let gaps = "ids of no token  16: 100256, 100261-100275\n";
        assert!(text.contains(gaps), "{text}");
    }

    #[test]
    fn tokens_are_looked_up_by_id_and_by_text() {
        let text = output(&["vocab", "--id", "13225", "--token", " world"], b"", 1);
        assert!(text.starts_with("id 13225: \"Hello\", 5 bytes\n"), "{text}");
        assert!(text.contains("\nid 2375: \" world\", 6 bytes\n"), "{text}");
        let json = output(&["vocab", "--json", "--id", "199999"], b"", 1);
        let token: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(token["text"], "<|endoftext|>");
        assert_eq!(token["special"], true);
        assert_eq!(token["merged_from"], Value::Null);
    }

    #[test]
    fn a_token_that_is_not_there_is_an_error() {
        for look_up in [["--id", "199998"], ["--token", "no such token"]] {
            let (_, result) = run_with(&["vocab", look_up[0], look_up[1]], b"", 1);
            let error = result.expect_err("not there");
            assert_eq!(error.exit_status(), 1);
            assert!(
                error
                    .message()
                    .is_some_and(|text| text.contains(look_up[1]))
            );
        }
    }
}
