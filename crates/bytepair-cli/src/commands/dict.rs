//! `dict`: what the merge rules of a file are worth.

use bpe_core::TokenId;
use bpe_core::properize::{Properization, Search};
use serde_json::{Value, json};

use crate::args::DictArgs;
use crate::error::CliError;
use crate::load;
use crate::output::{escaped, grouped, write_line};
use crate::pipeline::Session;

/// Texts up to this many atoms are tried for a difference.
const LONGEST_TEXT: usize = 12;

/// How many cycles, and rules of one, the text names; JSON has all.
const NAMED: usize = 8;

pub(crate) fn run(args: &DictArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let dictionary = load::dictionary(&args.file, args.merges.as_ref())?;
    let properization = Properization::new(&dictionary);
    match args.json {
        true => write_line(session.stdout, json(&properization).to_string()),
        false => write_line(session.stdout, text(&properization)),
    }
}

fn token(properization: &Properization, id: TokenId) -> String {
    let vocabulary = properization.original_form().vocabulary();
    escaped(vocabulary.token_bytes(id).unwrap_or_default())
}

/// In one word what the order of the rules is.
fn order(properization: &Properization) -> &'static str {
    match properization.proper_form() {
        Some(_) if properization.improper_rules().is_empty() => "proper",
        Some(form) if !form.is_reordered() => "proper without the rules that never fire",
        Some(_) => "proper in another order",
        None => "not properizable",
    }
}

fn text(properization: &Properization) -> String {
    let form = properization.original_form();
    let [unreachable, atoms, others] = properization.dropped_by_reason();
    let mut lines = vec![
        format!("tokens: {}", grouped(form.vocabulary().len())),
        format!("rules: {}", grouped(properization.rule_count())),
        format!(
            "improper rules: {}, {} with a side that only later rules make",
            grouped(properization.improper_rules().len()),
            grouped(properization.rules_made_too_late()),
        ),
        format!(
            "rules that never fire: {} (product made by another rule {}, unreachable {}, an atom {})",
            grouped(properization.dropped_rules().len()),
            grouped(others),
            grouped(unreachable),
            grouped(atoms),
        ),
        format!(
            "unreachable tokens: {}",
            grouped(form.unreachable_tokens().count())
        ),
        format!(
            "tokens of several rules: {}",
            grouped(properization.tokens_of_several_rules().len())
        ),
        format!(
            "improper rules among those that fire: {}",
            grouped(properization.improper_canonical_rules())
        ),
        format!("order: {}", order(properization)),
    ];
    if let Some(problem) = properization.not_properizable() {
        for cycle in problem.cycles().iter().take(NAMED) {
            let seed = token(properization, cycle.seed().product);
            lines.push(format!(
                "cycle in the tree of {seed} ({} rules):",
                grouped(cycle.tree_rules())
            ));
            for step in cycle.steps().iter().take(NAMED) {
                let sides = [step.rule.left, step.rule.right].map(|id| token(properization, id));
                let [left, right] = sides;
                lines.push(format!(
                    "  {left} + {right}, before the next: {}",
                    format!("{:?}", step.reason).to_lowercase()
                ));
            }
            lines.push(match problem.difference(cycle, LONGEST_TEXT) {
                Search::Found(difference) => format!(
                    "  a text for which the order that was tried is wrong: {}",
                    escaped(&difference.text)
                ),
                Search::NotProvedImpossible { longest } => {
                    format!("  not proved impossible: no such text up to {longest} atoms")
                }
            });
        }
    }
    lines.join("\n")
}

fn json(properization: &Properization) -> Value {
    let form = properization.original_form();
    let [unreachable, atoms, others] = properization.dropped_by_reason();
    let cycles = properization.not_properizable().map(|problem| {
        let cycle = |cycle| {
            let steps: &bpe_core::properize::Cycle = cycle;
            let rules = steps.steps().iter().map(|step| {
                json!({
                    "left": step.rule.left,
                    "right": step.rule.right,
                    "product": step.rule.product,
                    "before_the_next": format!("{:?}", step.reason).to_lowercase(),
                })
            });
            let text = match problem.difference(steps, LONGEST_TEXT) {
                Search::Found(difference) => Some(difference.text),
                Search::NotProvedImpossible { .. } => None,
            };
            json!({
                "seed": steps.seed().product,
                "tree_rules": steps.tree_rules(),
                "rules": rules.collect::<Vec<_>>(),
                "different_text": text.map(|text| escaped(&text)),
            })
        };
        problem.cycles().iter().map(cycle).collect::<Vec<_>>()
    });
    json!({
        "tokens": form.vocabulary().len(),
        "rules": properization.rule_count(),
        "improper_rules": properization.improper_rules().len(),
        "rules_made_too_late": properization.rules_made_too_late(),
        "dropped": {
            "made_by_another_rule": others,
            "unreachable": unreachable,
            "atom": atoms,
        },
        "unreachable_tokens": form.unreachable_tokens().collect::<Vec<_>>(),
        "tokens_of_several_rules": properization.tokens_of_several_rules().len(),
        "improper_canonical_rules": properization.improper_canonical_rules(),
        "order": order(properization),
        "cycles": cycles.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    /// A tokenizer.json over characters with these merges.
    fn file(folder: &std::path::Path, vocab: &[&str], merges: &[&str]) -> String {
        let vocab: serde_json::Map<String, serde_json::Value> = vocab
            .iter()
            .enumerate()
            .map(|(id, token)| ((*token).to_owned(), id.into()))
            .collect();
        let model = serde_json::json!({
            "model": {"type": "BPE", "vocab": vocab, "merges": merges},
        });
        let path = folder.join("tokenizer.json");
        std::fs::write(&path, model.to_string()).expect("written");
        path.display().to_string()
    }

    #[test]
    fn the_order_is_told_and_an_improper_rule_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let proper = file(folder.path(), &["a", "b", "ab"], &["a b"]);
        let text = output(&["dict", &proper], b"", 100);
        assert!(
            text.contains("improper rules: 0,") && text.ends_with("order: proper\n"),
            "{text}"
        );
        // ab + c stands before what makes ab, and with it abc is merged at once all the same.
        let vocab = ["a", "b", "c", "ab", "abc"];
        let late = file(folder.path(), &vocab, &["ab c", "a b"]);
        let text = output(&["dict", &late], b"", 100);
        assert!(text.contains("improper rules: 1,"), "{text}");
        assert!(text.ends_with("order: proper in another order\n"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&output(&["dict", "--json", &late], b"", 100)).expect("JSON");
        assert_eq!(json["improper_rules"], 1);
        assert_eq!(json["rules"], 2);
    }

    #[test]
    fn a_cycle_is_shown_with_a_text() {
        let folder = tempfile::tempdir().expect("a folder");
        // aaaa becomes aaa|a: no order of these rules gives that by going through them once.
        let vocab = ["a", "aa", "aaa"];
        let cycle = file(folder.path(), &vocab, &["aa a", "a aa", "a a"]);
        let text = output(&["dict", &cycle], b"", 100);
        assert!(text.contains("order: not properizable"), "{text}");
        assert!(
            text.contains("the order that was tried is wrong: "),
            "{text}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&output(&["dict", "--json", &cycle], b"", 100)).expect("JSON");
        assert!(json["cycles"][0]["different_text"].is_string());
    }

    #[test]
    fn files_that_are_missing_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let empty = folder.path().display().to_string();
        let (_, result) = run_with(&["dict", &empty], b"", 100);
        let error = result.expect_err("no files");
        assert!(error.message().is_some_and(|text| text.contains("neither")));
        let vocab = folder.path().join("vocab.json").display().to_string();
        let (_, result) = run_with(&["dict", &vocab], b"", 100);
        let error = result.expect_err("no merges");
        assert!(
            error
                .message()
                .is_some_and(|text| text.contains("--merges"))
        );
    }
}
