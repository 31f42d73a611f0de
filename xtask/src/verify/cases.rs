//! The shared cases: each that can be run is run, the others are counted by reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::cases_files::Tokenizers;
use super::cases_run::run;
use super::support::{case_file, catch, on_small_stack, parallel, text_of};
use super::{Checked, Claims, Outcome};

/// What became of a case.
pub(super) enum Done {
    /// What it says holds.
    Passed,
    /// It cannot be run, for this reason.
    Skipped(String),
}

pub(super) fn check(claims: &mut Claims) {
    let data = claims.settings.data.clone();
    claims.check("shared cases (bench-data/cases)", |_, _| {
        check_all(data.as_deref())
    });
}

/// What became of the cases.
#[derive(Default)]
struct Totals {
    passed: u64,
    skipped: BTreeMap<String, usize>,
    failures: Vec<String>,
}

fn check_all(data: Option<&Path>) -> Outcome {
    let file = String::from_utf8(case_file("cases_shared.jsonl")?).map_err(text_of)?;
    // Those of one tokenizer together, so that each is made once.
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (index, line) in file.lines().enumerate() {
        let case: Value =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))?;
        let encoding = case["encoding"].as_str().unwrap_or_default().to_owned();
        groups.entry(encoding).or_default().push(case);
    }
    let groups: Vec<Vec<Value>> = groups.into_values().collect();
    let totals = Mutex::new(Totals::default());
    parallel(groups.len(), |number| {
        let mut tokenizers = Tokenizers::new(data);
        for case in &groups[number] {
            let outcome = match case["kind"] == "dos" {
                true => on_small_stack(|| run(case, &mut tokenizers)),
                false => catch(|| run(case, &mut tokenizers)),
            };
            let mut totals = totals.lock().map_err(text_of)?;
            match outcome.and_then(|outcome| outcome) {
                Ok(Done::Passed) => totals.passed += 1,
                Ok(Done::Skipped(reason)) => *totals.skipped.entry(reason).or_default() += 1,
                Err(error) => {
                    let id = case["id"].as_str().unwrap_or("without an id");
                    totals.failures.push(format!("{id}: {error}"));
                }
            }
        }
        Ok(groups[number].len() as u64)
    })?;
    let Totals {
        passed,
        skipped,
        failures,
    } = totals.into_inner().map_err(text_of)?;
    for (reason, count) in &skipped {
        println!("      {count} cases not run: {reason}");
    }
    for failure in &failures {
        println!("      {failure}");
    }
    if !failures.is_empty() {
        return Err(format!(
            "{} of {} cases",
            failures.len(),
            passed + failures.len() as u64
        ));
    }
    let section = if data.is_some() {
        "with data"
    } else {
        "without data"
    };
    let notes = compare(&skipped, section)?;
    let not_run: usize = skipped.values().sum();
    Ok(Checked::with_note(
        passed,
        format!("{not_run} not run{notes}"),
    ))
}

/// Compares with bench-data/cases/EXPECTED-SKIPS: what grew is a failure, what fell is said.
fn compare(skipped: &BTreeMap<String, usize>, section: &str) -> Result<String, String> {
    let file = String::from_utf8(case_file("EXPECTED-SKIPS")?).map_err(text_of)?;
    let mut expected: BTreeMap<&str, usize> = BTreeMap::new();
    let mut current = "";
    for line in file
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            current = name;
        } else if current == section {
            let (reason, count) = line
                .split_once('\t')
                .ok_or_else(|| format!("EXPECTED-SKIPS: {line:?}"))?;
            expected.insert(
                reason,
                count
                    .parse()
                    .map_err(|_| format!("EXPECTED-SKIPS: {line:?}"))?,
            );
        }
    }
    for (reason, &count) in skipped {
        let known = expected.get(&reason[..]).copied().unwrap_or(0);
        if count > known {
            return Err(format!(
                "{count} cases are not run, {known} are expected: {reason}"
            ));
        }
    }
    let fell = expected
        .iter()
        .filter(|(reason, count)| skipped.get(**reason).copied().unwrap_or(0) < **count);
    let fell: Vec<&str> = fell.map(|(reason, _)| *reason).collect();
    Ok(match fell.is_empty() {
        true => String::new(),
        false => format!(
            "; fewer than EXPECTED-SKIPS says, update it: {}",
            fell.join("; ")
        ),
    })
}
