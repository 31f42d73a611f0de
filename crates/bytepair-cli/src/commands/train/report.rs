//! What is said of a training in the end, and what usually goes wrong.

use std::collections::HashMap;
use std::sync::Arc;

use bpe_core::{Algorithm, CanonicalForm, Dictionary, TokenId};
use bpe_train::{StopReason, Training, WordCounts};

use crate::error::CliError;

/// A longer word is no word.
const GIANT_WORD: usize = 1 << 16;

/// Less text than this may be one line.
const SHORT_TEXT: u128 = 1 << 20;

/// Tokens that the report names.
const NAMED: usize = 5;

/// Says what makes the words look like something else than words of a text.
pub(super) fn warn_about_words(counts: &WordCounts, warn: &mut dyn FnMut(&str)) {
    let (mut bytes, mut binary) = (0_u128, 0_u128);
    let mut has_lines = false;
    let mut longest: &[u8] = b"";
    for (word, count) in counts.iter() {
        let here = u128::from(count) * word.len() as u128;
        bytes += here;
        if word.contains(&0) || std::str::from_utf8(word).is_err() {
            binary += here;
        }
        has_lines |= word.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        if word.len() > longest.len() {
            longest = word;
        }
    }
    if longest.len() > GIANT_WORD {
        warn(&format!(
            "one word has {} bytes, and begins with {}: does the pattern suit the text?",
            longest.len(),
            shown(longest.get(..20).unwrap_or(longest))
        ));
    }
    if binary * 100 > bytes {
        warn(&format!(
            "{:.1} % of the input is no text: are some of the files binary?",
            binary as f64 / bytes as f64 * 100.0
        ));
    }
    if !has_lines && bytes > SHORT_TEXT {
        warn(
            "the text has no line break: what stands for one in the files will be learned instead",
        );
    }
}

/// Says where there was too little text for the vocabulary.
pub(super) fn warn_about_merges(training: &Training, wanted: usize, warn: &mut dyn FnMut(&str)) {
    let tokens = training.vocabulary_size();
    if training.stopped() == StopReason::NoFrequentPair {
        warn(&format!(
            "no pair is frequent enough any more: {tokens} tokens and the special ones instead of \
             {wanted}; the text is too small for this vocabulary"
        ));
        return;
    }
    let rare = training
        .merges()
        .rev()
        .take_while(|merge| merge.frequency < 2);
    let rare = rare.count();
    if rare > 0 {
        warn(&format!(
            "the last {rare} tokens were made of pairs that occur once: the text is too small for \
             this vocabulary"
        ));
    }
}

/// What the report says, a line each.
pub(super) fn lines(
    counts: &WordCounts,
    held_out: &WordCounts,
    training: &Training,
    dictionary: &Dictionary,
) -> Result<Vec<String>, CliError> {
    let words = counts.iter().map(|(_, count)| u128::from(count));
    let words = words.sum::<u128>();
    let usage = Usage::of(counts, dictionary)?;
    let mut lines = vec![
        format!("words: {words}, {} distinct", counts.len()),
        format!("merges: {}", training.merges().len()),
        format!("bytes per token: {}", usage.bytes_per_token()),
    ];
    if !held_out.is_empty() {
        let held_out = Usage::of(held_out, dictionary)?;
        lines.push(format!(
            "bytes per token, held out: {} on {} bytes",
            held_out.bytes_per_token(),
            held_out.bytes
        ));
    }
    let mut learned: Vec<_> = training.merges().collect();
    learned.sort_by_key(|merge| std::cmp::Reverse(merge.token.len()));
    let longest = learned.iter().take(NAMED).map(|merge| {
        let bytes = merge.token.len();
        format!("{} ({bytes} bytes)", shown(merge.token))
    });
    lines.push(format!("longest tokens: {}", listed(longest)));
    let mut used: Vec<_> = training
        .merges()
        .filter_map(|merge| {
            let id = dictionary.vocabulary().id_of(merge.token)?;
            Some((usage.uses.get(&id).copied().unwrap_or(0), merge.token))
        })
        .collect();
    used.sort();
    let least = used.iter().take(NAMED);
    let least = least.map(|(uses, token)| format!("{} ({uses} times)", shown(token)));
    lines.push(format!("least used tokens: {}", listed(least)));
    Ok(lines)
}

/// What words become.
struct Usage {
    bytes: u128,
    tokens: u128,
    uses: HashMap<TokenId, u64>,
}

impl Usage {
    fn of(counts: &WordCounts, dictionary: &Dictionary) -> Result<Self, CliError> {
        let failed = |error: &dyn std::fmt::Display| CliError::Vocabulary(error.to_string());
        let canonical = Arc::new(CanonicalForm::new(dictionary));
        let encoder = Algorithm::PriorityMerge.encoder(&canonical);
        let mut encoder = encoder.map_err(|error| failed(&error))?;
        let mut usage = Self {
            bytes: 0,
            tokens: 0,
            uses: HashMap::new(),
        };
        let mut ids = Vec::new();
        for (word, count) in counts.iter() {
            ids.clear();
            let encoded = encoder.encode_span(word, &mut ids);
            encoded.map_err(|error| failed(&error))?;
            usage.bytes += u128::from(count) * word.len() as u128;
            usage.tokens += u128::from(count) * ids.len() as u128;
            for &id in &ids {
                let uses = usage.uses.entry(id).or_default();
                *uses = uses.saturating_add(count);
            }
        }
        Ok(usage)
    }

    fn bytes_per_token(&self) -> String {
        match self.tokens {
            0 => "no text".to_owned(),
            tokens => format!("{:.3}", self.bytes as f64 / tokens as f64),
        }
    }
}

fn shown(token: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(token))
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
