//! How far a training is, said every second and when all is learned, and what each phase took.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// Says on standard error how far it is.
pub(super) struct Progress {
    /// Whether each report overwrites the one before.
    is_terminal: bool,
    is_on: bool,
    state: Mutex<State>,
}

struct State {
    phase_start: Instant,
    last: Instant,
    said: bool,
}

impl Progress {
    /// Reports to a terminal that is watched, or line by line where that is asked for.
    pub(super) fn new(is_watched: bool, asked_for: bool) -> Self {
        let now = Instant::now();
        Self {
            is_terminal: is_watched,
            is_on: is_watched || asked_for,
            state: Mutex::new(State {
                phase_start: now,
                last: now,
                said: false,
            }),
        }
    }

    /// A new phase begins.
    pub(super) fn start_phase(&self) {
        let mut state = self.lock();
        state.phase_start = Instant::now();
        state.last = state.phase_start;
        if self.is_terminal && state.said {
            // Clears the line.
            let _ = write!(io::stderr(), "\r\x1B[2K");
            state.said = false;
        }
    }

    /// So many bytes of `size` have been read.
    pub(super) fn counting(&self, read: u64, size: Option<u64>) {
        self.say(false, |seconds| {
            let rate = read as f64 / seconds;
            let megabytes = |bytes: f64| bytes / 1e6;
            let done = megabytes(read as f64);
            let rate_text = format!("{:.1} MB/s", megabytes(rate));
            match size {
                Some(size) => format!(
                    "counting: {done:.1} of {:.1} MB, {rate_text}, {} left",
                    megabytes(size as f64),
                    time(size.saturating_sub(read) as f64 / rate),
                ),
                None => format!("counting: {done:.1} MB, {rate_text}"),
            }
        });
    }

    /// So many merges of `wanted` have been learned, `before` of them before this run.
    pub(super) fn merging(&self, merges: usize, before: usize, wanted: usize) {
        self.say(merges >= wanted, |seconds| {
            let rate = merges.saturating_sub(before) as f64 / seconds;
            format!(
                "merging: {merges} of {wanted}, {rate:.0} merges/s, {} left",
                time(wanted.saturating_sub(merges) as f64 / rate)
            )
        });
    }

    /// Says a line, unless one has been said less than a second ago and more are to come.
    fn say(&self, is_last: bool, line: impl FnOnce(f64) -> String) {
        if !self.is_on {
            return;
        }
        let mut state = self.lock();
        let now = Instant::now();
        if !is_last && now - state.last < EVERY {
            return;
        }
        state.last = now;
        state.said = true;
        let line = line((now - state.phase_start).as_secs_f64());
        // If standard error cannot be written to, there is no one left to tell.
        let _ = match self.is_terminal {
            true => write!(io::stderr(), "\r\x1B[2K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if !seconds.is_finite() => "unknown time".to_owned(),
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// What the phases took.
#[derive(Default)]
pub(super) struct Phases {
    done: Vec<(&'static str, Duration, Option<u64>)>,
}

impl Phases {
    /// Runs a phase and notes its time, and the most memory that the process has held by its end.
    pub(super) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.done.push((name, start.elapsed(), peak_bytes()));
        result
    }

    /// A line for each phase.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(name, time, peak): &(&str, Duration, Option<u64>)| {
            let peak = peak.map(|bytes| format!(", {:.1} MB at most so far", bytes as f64 / 1e6));
            format!("{name}: {time:.2?}{}", peak.unwrap_or_default())
        };
        self.done.iter().map(line).collect()
    }
}

/// The most memory that this process has held, where the system tells it (Linux).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes = line.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        assert_eq!(time(12.4), "12 s");
        assert_eq!(time(600.0), "10 min");
        assert_eq!(time(7200.0), "2.0 h");
        assert_eq!(time(f64::INFINITY), "unknown time");
    }
}
