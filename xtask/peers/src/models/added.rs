//! Random small files with added tokens of all flags, against the `tokenizers` of Python: what its crate of the
//! same version does is not published for the newest.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use bytepair::{
    InputOptions, ModelInput, Pipeline, ReadLimits, Side, Specials, Truncation, TruncationStrategy,
};
use serde_json::{Value, json};

use super::{Claim, Report};
use crate::Error;
use crate::speed::python;

/// The oracle.
const PACKAGES: [&str; 1] = ["tokenizers==0.23.3"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files; each is asked six texts, two pairs and four lists of ids.
    #[arg(long, default_value_t = 5_000)]
    files: usize,
    /// Of the first file.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Prints a line for each claim. False if one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let python = python::environment("added-tokens", &PACKAGES)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/added_tokens.py");
    let mut child = Command::new(python)
        .arg("-B")
        .arg(script)
        .args([arguments.seed.to_string(), arguments.files.to_string()])
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let answers = child.stdout.take().ok_or("no pipe")?;
    let mut claims = Claims::default();
    for line in BufReader::new(answers).lines() {
        claims.compare(&serde_json::from_str(&line?)?);
    }
    if !child.wait()?.success() {
        return Err("the oracle broke off".into());
    }
    Ok(claims.report())
}

#[derive(Default)]
struct Claims {
    files: usize,
    /// What we refuse, with the reasons.
    refused: Vec<String>,
    /// Texts that become special tokens as whole pieces there, and stay text here.
    stays_text: usize,
    texts: Claim,
    pairs: Claim,
    decoded: Claim,
}

impl Claims {
    /// One file.
    fn compare(&mut self, answers: &Value) {
        self.files += 1;
        let file = &answers["file"];
        let limits = ReadLimits::default();
        let pipeline = Pipeline::from_tokenizer_json(file.to_string().as_bytes(), &limits);
        let plain = match pipeline {
            Ok(pipeline) => pipeline,
            Err(error) => return self.refused.push(error.to_string()),
        };
        let Ok(all) = plain.with_specials(Specials::AllowAll) else {
            return self.refused.push("AllowAll".to_owned());
        };
        let truncation = truncation(&answers["truncation"]);
        for answer in list(&answers["texts"]) {
            let text = answer["text"].as_str().unwrap_or_default();
            self.texts.texts += 1;
            let asked = [
                ("off", &all, false, None),
                ("on", &all, true, None),
                ("cut", &all, true, truncation.as_ref()),
                ("plain", &plain, false, None),
            ];
            for (name, pipeline, add_special, truncation) in asked {
                if name == "plain" && makes_specials(file, &answer[name]) {
                    self.stays_text += 1;
                    continue;
                }
                let ours = || said(pipeline, text, None, add_special, truncation, &Value::Null);
                check(
                    &mut self.texts,
                    file,
                    &json!([name, text]),
                    &answer[name],
                    ours,
                );
            }
            // Without its overflowing part, which is empty.
            let bare = json!(list(&answer["bare"]).get(..2));
            check(&mut self.texts, file, &json!(["bare", text]), &bare, || {
                bare_said(&all, text)
            });
        }
        for answer in list(&answers["pairs"]) {
            self.pairs.texts += 1;
            let text = |index: usize| answer["texts"][index].as_str().unwrap_or_default();
            let expected = &answer["on"];
            let ours = || said(&all, text(0), Some(text(1)), true, None, expected);
            check(&mut self.pairs, file, &answer["texts"], expected, ours);
        }
        for answer in list(&answers["lists"]) {
            self.decoded.texts += 1;
            let ids = list(&answer["ids"]).iter().filter_map(Value::as_u64);
            let ids: Vec<u32> = ids.filter_map(|id| u32::try_from(id).ok()).collect();
            self.decoded.tokens += ids.len();
            let ours = || {
                let text = all.decode(&ids).ok();
                json!([text, all.decode_without_special_tokens(&ids).ok()])
            };
            check(
                &mut self.decoded,
                file,
                &answer["ids"],
                &answer["texts"],
                ours,
            );
        }
    }

    fn report(mut self) -> bool {
        let mut report = Report::default();
        let claims = [
            (&mut self.texts, "ids, offsets and masks of texts"),
            (&mut self.pairs, "pairs"),
            (&mut self.decoded, "decoded lists of ids"),
        ];
        for (claim, what) in claims {
            claim.what = format!("random added tokens, {what}");
            report.claim(claim);
        }
        println!(
            "peers added: {} files, {} of them refused by us, {} texts with a special token that is a whole piece; {} \
             claims, {} failed, {} oracle calls",
            self.files,
            self.refused.len(),
            self.stays_text,
            report.claims,
            report.failed,
            report.calls
        );
        self.refused.sort();
        self.refused.dedup_by_key(|reason| {
            let words = reason.chars().filter(|c| !c.is_ascii_digit());
            words.collect::<String>()
        });
        for reason in self.refused.iter().take(8) {
            println!("     {reason}");
        }
        let is_sample = self.files > 0 && self.refused.len() * 10 < self.files;
        if !is_sample {
            println!("FAIL too few files are compared");
        }
        report.failed == 0 && is_sample
    }
}

/// Compares one answer.
fn check(
    claim: &mut Claim,
    file: &Value,
    asked: &Value,
    expected: &Value,
    ours: impl Fn() -> Value,
) {
    claim.calls += 1;
    if expected.is_null() {
        claim.refused += 1;
        return;
    }
    claim.tokens += expected[0].as_array().map_or(0, Vec::len);
    let said = ours();
    if said != *expected {
        claim.differences += 1;
        if claim.differences == 1 {
            let mut steps = file.clone();
            // Of a vocabulary of bytes one sees nothing.
            steps["model"]["vocab"] = Value::Null;
            claim.first = format!("{asked}: ours {said}, the oracle {expected}\n     {steps}");
        }
    }
}

/// Whether the oracle has made a special token of a whole piece, which stays text here.
fn makes_specials(file: &Value, said: &Value) -> bool {
    let is_such = |token: &Value| {
        let content = token["content"].as_str().unwrap_or_default();
        token["special"] == json!(true)
            && content.chars().count() > 1
            && !file["model"]["vocab"][content].is_null()
            && list(&said[0]).contains(&token["id"])
    };
    file["model"]["ignore_merges"] == json!(true) && list(&file["added_tokens"]).iter().any(is_such)
}

/// What we say of a text or a pair. Of a pair `expected` tells whose offsets those of a token are.
fn said(
    pipeline: &Pipeline,
    first: &str,
    second: Option<&str>,
    add_special_tokens: bool,
    truncation: Option<&Truncation>,
    expected: &Value,
) -> Value {
    let options = InputOptions {
        add_special_tokens,
        truncation: truncation.cloned(),
        padding: None,
    };
    match pipeline.model_input(first, second, &options) {
        Ok(input) => input_said(&input, first, second, expected),
        Err(error) => json!(error.to_string()),
    }
}

fn input_said(input: &ModelInput, first: &str, second: Option<&str>, expected: &Value) -> Value {
    let offsets = input.offsets().iter().enumerate().map(|(index, range)| {
        let of_second = second.and_then(|text| characters(text, range));
        of_second
            .filter(|offsets| *offsets == expected[1][index])
            .or_else(|| characters(first, range))
    });
    let special: Vec<u8> = input
        .special_tokens_mask()
        .iter()
        .map(|&s| s.into())
        .collect();
    let overflowing = input.overflowing().iter();
    let overflowing = overflowing.map(|part| input_said(part, first, second, &Value::Null));
    json!([
        input.ids(),
        offsets.collect::<Vec<_>>(),
        special,
        overflowing.collect::<Vec<_>>()
    ])
}

/// Ids and offsets by every way that gives them; null where two differ.
fn bare_said(pipeline: &Pipeline, text: &str) -> Value {
    let Ok(encoding) = pipeline.encode_with_offsets(text) else {
        return json!("no tokens");
    };
    let parallel = pipeline.parallel().threads(1).part_bytes(2);
    let mut same = pipeline.encode(text).ok().as_ref() == Some(&encoding.ids)
        && pipeline.count(text).ok() == Some(encoding.ids.len())
        && parallel.encode(text).ok().as_ref() == Some(&encoding.ids);
    if let Ok(mut stream) = pipeline.stream() {
        let mut ids = Vec::new();
        let mut pushed = text.bytes().map(|byte| stream.push([byte], &mut ids));
        same &= pushed.all(|result| result.is_ok());
        same &= stream.finish(&mut ids).is_ok() && ids == encoding.ids;
    }
    let offsets = encoding.byte_ranges.iter();
    let offsets: Vec<Option<Value>> = offsets.map(|range| characters(text, range)).collect();
    match same {
        true => json!([encoding.ids, offsets]),
        false => Value::Null,
    }
}

/// Bytes of a text as characters of it.
fn characters(text: &str, range: &std::ops::Range<usize>) -> Option<Value> {
    let start = text.get(..range.start)?.chars().count();
    Some(json!([start, text.get(..range.end)?.chars().count()]))
}

fn truncation(settings: &Value) -> Option<Truncation> {
    let number = |name: &str| usize::try_from(settings[name].as_u64()?).ok();
    Some(Truncation {
        max_length: number("max_length")?,
        strategy: TruncationStrategy::LongestFirst,
        stride: number("stride")?,
        side: match settings["direction"] == json!("left") {
            true => Side::Left,
            false => Side::Right,
        },
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
