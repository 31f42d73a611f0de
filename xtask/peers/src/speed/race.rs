//! Several tokenizers in turn, round after round.

use std::time::Duration;

use super::files::Texts;
use super::side::{Failure, Side, Start};
use super::{Arguments, Error};
use crate::rival::{self, Source};

/// What one tokenizer took: for each label the seconds of each round.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) call: String,
    pub(super) seconds: Vec<Vec<f64>>,
    /// Resident bytes after loading, of each round; for the table of loading only.
    pub(super) resident: Vec<f64>,
    /// Why there are no times, or no more.
    pub(super) failure: Option<String>,
}

impl Lane {
    pub(super) fn new(start: &Start, labels: usize) -> Self {
        Self {
            name: start.name.clone(),
            version: String::new(),
            call: start.call.clone(),
            seconds: vec![Vec::new(); labels],
            resident: Vec::new(),
            failure: None,
        }
    }
}

/// What all of them took; ours is the first.
pub(super) struct Race {
    pub(super) labels: Vec<String>,
    /// Bytes that are encoded, for each label.
    pub(super) bytes: Vec<usize>,
    pub(super) lanes: Vec<Lane>,
}

/// Where a race is run.
pub(super) struct Track<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) starts: &'a [Start],
    pub(super) cores: &'a [usize],
    pub(super) source: &'a Source,
}

impl Track<'_> {
    /// Starts all tokenizers, gives them the texts, compares their ids with ours, and calls `step` with
    /// each in turn, `rounds` times; `step` returns the seconds for each label. A tokenizer whose ids
    /// differ, that fails, or takes longer than the limit for one answer, is left out and that is said.
    /// One that has spent the limit has no more rounds than two.
    pub(super) fn race(
        &self,
        texts: &[&Texts],
        labels: Vec<String>,
        bytes: Vec<usize>,
        mut step: impl FnMut(&mut Side) -> Result<Vec<f64>, Failure>,
    ) -> Result<Race, Error> {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut sides = Vec::new();
        let mut ours: Vec<Vec<u32>> = Vec::new();
        for start in self.starts {
            let mut lane = Lane::new(start, labels.len());
            let mut side = Side::start(start, self.cores)?;
            match self.prepare(&mut side, texts, &mut ours, &mut lane) {
                Ok(()) => sides.push(Some(side)),
                Err(why) if start.name == rival::OURS => return Err(why.to_string().into()),
                Err(why) => {
                    lane.failure = Some(why.to_string());
                    sides.push(None);
                }
            }
            lanes.push(lane);
        }
        let limit = self.limit().as_secs_f64();
        let mut spent = vec![0.0; lanes.len()];
        for round in 0..self.arguments.rounds.max(1) {
            for turn in 0..lanes.len() {
                // Each has the turn after each other one now and then: what comes first finds the
                // caches of the processor emptied by what ran before.
                let number = (turn + round) % lanes.len();
                let (lane, side) = (&mut lanes[number], &mut sides[number]);
                let Some(running) = side else { continue };
                if round >= 2 && spent[number] > limit {
                    continue;
                }
                match step(running) {
                    Ok(seconds) => {
                        spent[number] += seconds.iter().sum::<f64>();
                        for (all, seconds) in lane.seconds.iter_mut().zip(seconds) {
                            all.push(seconds);
                        }
                    }
                    Err(why) => {
                        lane.failure = Some(why.to_string());
                        *side = None;
                    }
                }
            }
        }
        Ok(Race {
            labels,
            bytes,
            lanes,
        })
    }

    fn prepare(
        &self,
        side: &mut Side,
        texts: &[&Texts],
        ours: &mut Vec<Vec<u32>>,
        lane: &mut Lane,
    ) -> Result<(), Failure> {
        let loaded = side.load(self.source)?;
        lane.version = loaded["version"].as_str().unwrap_or_default().to_owned();
        for (number, texts) in texts.iter().enumerate() {
            side.texts(texts)?;
            let ids = side.ids(texts, self.limit())?;
            match ours.get(number) {
                None => ours.push(ids),
                Some(ours) if *ours == ids => {}
                Some(ours) => return Err(Failure::Failed(self.difference(texts, ours, &ids))),
            }
        }
        Ok(())
    }

    /// Where the first differing id begins, and what ours and theirs are.
    fn difference(&self, texts: &Texts, ours: &[u32], theirs: &[u32]) -> String {
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        let tokenizer = bytepair::Tokenizer::from_name(&self.source.encoding);
        let bytes = |ids: &[u32]| match &tokenizer {
            Ok(tokenizer) => tokenizer.decode_bytes(ids).map_or(0, |bytes| bytes.len()),
            Err(_) => 0,
        };
        let at = bytes(ours.get(..same).unwrap_or_default());
        let some = |ids: &[u32]| {
            let ids: Vec<_> = ids.iter().skip(same).take(4).map(u32::to_string).collect();
            ids.join(" ")
        };
        let around: String =
            String::from_utf8_lossy(&texts.text.as_bytes()[at.min(texts.text.len())..])
                .chars()
                .take(12)
                .collect();
        format!(
            "its ids differ from byte {at} of {} on, at {around:?}: ours {}, its {}",
            texts.name,
            some(ours),
            some(theirs)
        )
    }

    fn limit(&self) -> Duration {
        self.arguments.limit()
    }
}
