//! From nothing to a ready tokenizer and the ids of a short message, in a fresh process each time.

use serde_json::Value;

use super::Error;
use super::race::{Lane, Race, Track};
use super::report::Report;
use super::side::{Failure, Side, wall};

/// Fresh processes, in turn.
pub(super) fn run(track: &Track<'_>, report: &mut Report) -> Result<(), Error> {
    let labels = ["ready", "first encode", "both"]
        .map(str::to_owned)
        .to_vec();
    let mut lanes: Vec<Lane> = Vec::new();
    for start in track.starts {
        lanes.push(Lane::new(start, labels.len()));
    }
    for _ in 0..track.arguments.rounds.max(1) {
        for (start, lane) in track.starts.iter().zip(&mut lanes) {
            if lane.failure.is_some() {
                continue;
            }
            let loaded = Side::start(start, track.cores)
                .map_err(|error| Failure::Failed(error.to_string()))
                .and_then(|mut side| side.load(track.source));
            match loaded {
                Ok(answer) => lane.add(&answer),
                Err(why) => lane.failure = Some(why.to_string()),
            }
        }
    }
    let race = Race {
        bytes: vec![0; labels.len()],
        labels,
        lanes,
    };
    report.load(&track.source.encoding, &race);
    Ok(())
}

impl Lane {
    fn add(&mut self, answer: &Value) {
        self.version = answer["version"].as_str().unwrap_or_default().to_owned();
        let (ready, first) = (wall(&answer["ready"]), wall(&answer["first"]));
        let seconds = [ready, first, ready + first];
        for (all, seconds) in self.seconds.iter_mut().zip(seconds) {
            all.push(seconds);
        }
        self.resident.extend(answer["resident_bytes"].as_f64());
    }
}
