//! The timer of every ratio: two sides in turn, A B A B, in one process and one thread.
//!
//! What else the machine does then falls on both sides, which two separate runs do not give. The time
//! that the thread waits for a core does not count, where the system tells it. The first round warms up and is not counted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The times of both sides, one for each round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rounds {
    a: Vec<Duration>,
    b: Vec<Duration>,
}

impl Rounds {
    /// Times `a` and `b` in turn, after one round of each that is not counted.
    pub(crate) fn time<A, B>(
        rounds: usize,
        mut a: impl FnMut() -> A,
        mut b: impl FnMut() -> B,
    ) -> Self {
        let mut times = Self {
            a: Vec::with_capacity(rounds),
            b: Vec::with_capacity(rounds),
        };
        for round in 0..=rounds.max(1) {
            let (a, b) = (once(&mut a), once(&mut b));
            if round > 0 {
                times.a.push(a);
                times.b.push(b);
            }
        }
        times
    }

    pub(crate) fn a(&self) -> Summary {
        Summary::of(self.a.iter().map(Duration::as_secs_f64))
    }

    pub(crate) fn b(&self) -> Summary {
        Summary::of(self.b.iter().map(Duration::as_secs_f64))
    }

    /// How many times faster A is: the ratio of the medians.
    pub(crate) fn ratio(&self) -> f64 {
        self.b().median / self.a().median
    }

    /// The lowest and the highest ratio of one round.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let each = self.a.iter().zip(&self.b);
        let ratios = Summary::of(each.map(|(a, b)| b.as_secs_f64() / a.as_secs_f64()));
        (ratios.min, ratios.max)
    }

    /// Times in seconds.
    pub(crate) fn to_json(&self) -> Value {
        let (lowest, highest) = self.spread();
        json!({
            "rounds": self.a.len(),
            "a_seconds": self.a().to_json(),
            "b_seconds": self.b().to_json(),
            "ratio_of_medians": self.ratio(),
            "lowest_ratio_of_a_round": lowest,
            "highest_ratio_of_a_round": highest,
        })
    }
}

/// Times many sides in turn, after one round of each that is not counted: for each side the time of
/// every round.
pub(crate) fn in_turn(rounds: usize, sides: &mut [Box<dyn FnMut() + '_>]) -> Vec<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..=rounds.max(1) {
        for (side, times) in sides.iter_mut().zip(&mut times) {
            let time = once(side);
            if round > 0 {
                times.push(time);
            }
        }
    }
    times
}

fn once<T>(side: &mut impl FnMut() -> T) -> Duration {
    // What the side returns is dropped outside the time, on both sides alike.
    timed(side).0
}

/// How long `side` works, and what it returns.
pub(crate) fn timed<T>(side: &mut impl FnMut() -> T) -> (Duration, T) {
    let start = Instant::now();
    let waited = waited();
    let result = black_box(side());
    let waited = self::waited().saturating_sub(waited);
    (start.elapsed().saturating_sub(waited), result)
}

/// The time that this thread was ready to run and did not, since others did; where the system does
/// not tell it (Linux does), none.
pub(crate) fn waited() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = statistics.split_whitespace().nth(1);
    let nanoseconds = waited.and_then(|waited| waited.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Least, middle and largest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// All zero where there are no numbers. The median of an even number of them is the mean of the
    /// two in the middle.
    pub(crate) fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
        let last = sorted.len().saturating_sub(1);
        Self {
            min: at(0),
            median: (at(last / 2) + at(last.div_ceil(2))) / 2.0,
            max: at(last),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({"min": self.min, "median": self.median, "max": self.max})
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::{Rounds, Summary};

    #[test]
    fn the_sides_run_in_turn_and_the_first_round_is_not_counted() {
        let calls = RefCell::new(String::new());
        let call = |side| calls.borrow_mut().push(side);
        let rounds = Rounds::time(3, || call('a'), || call('b'));
        assert_eq!(*calls.borrow(), "abababab");
        assert_eq!((rounds.a.len(), rounds.b.len()), (3, 3));
    }

    #[test]
    fn the_ratio_is_that_of_the_medians_and_the_spread_that_of_the_rounds() {
        let ms = |times: &[u64]| times.iter().map(|&t| Duration::from_millis(t)).collect();
        let rounds = Rounds {
            a: ms(&[1, 2, 4]),
            b: ms(&[6, 6, 8]),
        };
        assert!((rounds.ratio() - 3.0).abs() < 1e-9);
        let (lowest, highest) = rounds.spread();
        assert!((lowest - 2.0).abs() < 1e-9 && (highest - 6.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_of_four_numbers_is_the_mean_of_the_middle_two() {
        let summary = Summary::of([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.5, 4.0));
    }
}
