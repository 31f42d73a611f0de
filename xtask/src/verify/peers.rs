//! Ids against those of other people's tokenizers, which are asked in a program of their own.

use std::ffi::OsString;
use std::process::Stdio;

use super::{Checked, Claims, Outcome, Settings};
use crate::peers;

pub(super) fn check(claims: &mut Claims) {
    let claim = "every embedded encoding gives the ids of tiktoken-rs, with special tokens too";
    claims.check(claim, |settings, _| oracle("oracle", settings));
    let claim = "what is learned is what tokenizers learns, threads and order change nothing, and \
                 tiktoken-rs and tokenizers read it with the same ids";
    claims.check(claim, |settings, _| oracle("training", settings));
}

/// Builds the peers and runs their comparison. The cases are the answers of the oracle.
pub(super) fn oracle(command: &str, settings: &Settings) -> Outcome {
    let mode = settings.choose("--quick", "--full");
    let mut arguments: Vec<OsString> = vec![command.into(), mode.into()];
    if let Some(data) = &settings.data {
        arguments.extend(["--data".into(), data.into()]);
    }
    let mut peers = peers::command(arguments);
    let output = peers.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("xtask/peers: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some([claims, failed, calls]) = totals(command, &text) else {
        return Err("xtask/peers broke off".to_owned());
    };
    match failed == 0 && output.status.success() {
        true => Ok(Checked::with_note(calls, format!("{claims} comparisons"))),
        false => Err(text.into_owned()),
    }
}

/// The numbers of the last line, `peers COMMAND: N claims, M failed, C oracle calls`.
fn totals(command: &str, text: &str) -> Option<[u64; 3]> {
    let line = text.lines().next_back()?;
    let (claims, rest) = line
        .strip_prefix(&format!("peers {command}: "))?
        .split_once(" claims, ")?;
    let (failed, rest) = rest.split_once(" failed, ")?;
    let calls = rest.strip_suffix(" oracle calls")?;
    Some([
        claims.parse().ok()?,
        failed.parse().ok()?,
        calls.parse().ok()?,
    ])
}

#[cfg(test)]
mod tests {
    use super::totals;

    #[test]
    fn the_totals_are_those_of_the_last_line() {
        let text = "ok   one: 3 texts\npeers oracle: 50 claims, 2 failed, 900 oracle calls\n";
        assert_eq!(totals("oracle", text), Some([50, 2, 900]));
    }

    #[test]
    fn a_run_that_broke_off_has_no_totals() {
        assert_eq!(totals("oracle", "ok   one: 3 texts\n"), None);
        assert_eq!(totals("oracle", ""), None);
    }
}
