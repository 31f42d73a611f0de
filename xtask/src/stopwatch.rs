//! Time on a machine that does other work too.

use std::time::Instant;

/// Measures the time that this thread ran: on Linux without the time it waited for a core, so that
/// other work on the machine counts less.
pub(crate) struct Stopwatch {
    start: Instant,
    waited: u64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        // The clock is read first here and last below, so that no wait counts that it does not.
        let start = Instant::now();
        Self {
            start,
            waited: waited(),
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let waited = waited().saturating_sub(self.waited) as f64 / 1e9;
        let wall = self.start.elapsed().as_secs_f64();
        (wall - waited).max(0.0)
    }
}

/// Nanoseconds that this thread was ready to run and did not; 0 where that is not known.
fn waited() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = statistics.split_whitespace().nth(1);
    waited.and_then(|waited| waited.parse().ok()).unwrap_or(0)
}
