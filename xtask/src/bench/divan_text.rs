//! Records from the text that divan prints for people.
//!
//! A tree with a table beside it: a row with a branch (`├─ `, `╰─ `) begins a group or a benchmark,
//! the rows below it without a branch belong to that benchmark. Six columns, the last five each
//! behind a `│`.

use std::collections::BTreeMap;

use serde::Serialize;

/// One benchmark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    /// The names from the root of the tree, with `/` between.
    pub(super) path: String,
    pub(super) seconds: Stats,
    /// Where the benchmark counts bytes. `fastest` is the throughput of the fastest run.
    pub(super) bytes_per_second: Option<Stats>,
    pub(super) samples: u64,
    /// What was allocated in a run, by `alloc`, `dealloc`, `grow`, `shrink` and `max alloc`.
    pub(super) allocations: BTreeMap<String, Allocations>,
}

/// The four columns of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Stats {
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
}

/// Allocations of the median run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Allocations {
    pub(super) count: f64,
    pub(super) bytes: f64,
}

/// The benchmarks of `text`, in order.
///
/// # Errors
///
/// A row that is not understood, with the row.
pub(super) fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records: Vec<Record> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    // The kind of allocation that the rows to come are about, and its count once that is read.
    let mut allocation: Option<(String, Option<f64>)> = None;
    for line in text.lines() {
        let fail = || format!("not a row of divan: {line:?}");
        let Some((head, columns)) = split_columns(line) else {
            continue;
        };
        let Some((depth, name, first)) = split_branch(head) else {
            if columns[0] == "slowest" {
                path = vec![head.split_whitespace().next().ok_or_else(fail)?.to_owned()];
                continue;
            }
            let first = head.trim_start_matches([' ', '│']).trim_end();
            let record = records.last_mut().ok_or_else(fail)?;
            let cells = [first, columns[0], columns[1], columns[2]];
            if let Some(kind) = first.strip_suffix(':') {
                allocation = Some((kind.to_owned(), None));
            } else if let Some((kind, count)) = &mut allocation {
                match *count {
                    None => *count = Some(number(cells[2]).ok_or_else(fail)?),
                    Some(count) => {
                        let bytes = quantity(cells[2], BYTES).ok_or_else(fail)?;
                        let allocations = Allocations { count, bytes };
                        record.allocations.insert(kind.clone(), allocations);
                        allocation = None;
                    }
                }
            } else {
                record.bytes_per_second = Some(stats(cells, THROUGHPUTS).ok_or_else(fail)?);
            }
            continue;
        };
        path.truncate(depth);
        path.push(name.to_owned());
        if first.is_empty() {
            continue;
        }
        allocation = None;
        let cells = [first, columns[0], columns[1], columns[2]];
        records.push(Record {
            path: path.join("/"),
            seconds: stats(cells, TIMES).ok_or_else(fail)?,
            bytes_per_second: None,
            samples: columns[3].parse().map_err(|_| fail())?,
            allocations: BTreeMap::new(),
        });
    }
    Ok(records)
}

/// The tree and the first column, and the other columns trimmed. `None` for a line of another kind.
fn split_columns(line: &str) -> Option<(&str, [&str; 5])> {
    let mut cells = line.rsplitn(6, '│');
    let mut columns = [""; 5];
    for column in columns.iter_mut().rev() {
        *column = cells.next()?.trim();
    }
    Some((cells.next()?, columns))
}

/// Depth (1 below the root), name and first column of a row that has a branch.
fn split_branch(head: &str) -> Option<(usize, &str, &str)> {
    let at = head.find(['├', '╰'])?;
    let depth = head[..at].chars().count() / 3 + 1;
    let rest = head[at..].trim_start_matches(['├', '╰', '─', ' ']);
    let (name, first) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((depth, name, first.trim()))
}

/// Divan's order is fastest, slowest, median, mean.
fn stats([fastest, slowest, median, mean]: [&str; 4], units: Units) -> Option<Stats> {
    Some(Stats {
        min: quantity(fastest, units)?,
        median: quantity(median, units)?,
        mean: quantity(mean, units)?,
        max: quantity(slowest, units)?,
    })
}

type Units = &'static [(&'static str, f64)];

const TIMES: Units = &[
    ("ps", 1e-12),
    ("ns", 1e-9),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
];
const THROUGHPUTS: Units = &[
    ("B/s", 1.0),
    ("KB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("TB/s", 1e12),
];
const BYTES: Units = &[("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)];

/// `1.5 ms` in seconds, `20 MB/s` in bytes a second.
fn quantity(text: &str, units: Units) -> Option<f64> {
    let (value, unit) = text.split_once(' ')?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number(value)? * factor)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Allocations, parse};

    const SAMPLE: &str = "\
Timer precision: 20 ns
matrix                        fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ encode                                   │               │               │               │         │
│  ├─ r50k_base/automata/code 25.19 ms      │ 32 ms         │ 28.57 ms      │ 28.58 ms      │ 3       │ 3
│  │                          9.691 MB/s    │ 7.629 MB/s    │ 8.544 MB/s    │ 8.539 MB/s    │         │
│  │                          max alloc:    │               │               │               │         │
│  │                            1           │ 2             │ 1.5           │ 1.4           │         │
│  │                            64 B        │ 1.5 KB        │ 782 B         │ 700 B         │         │
│  │                          alloc:        │               │               │               │         │
│  │                            3           │ 3             │ 3             │ 3             │         │
│  │                            2.5 KB      │ 2.5 KB        │ 2.5 KB        │ 2.5 KB        │         │
│  ╰─ cl100k_base/automata    1.5 µs        │ 2 s           │ 350 ns        │ 1 m           │ 100     │ 800
╰─ spans                                    │               │               │               │         │
   ╰─ o200k_base/automata     7.913 ms      │ 12.93 ms      │ 8.979 ms      │ 9.56 ms       │ 11      │ 11
                              30.85 MB/s    │ 18.87 MB/s    │ 27.19 MB/s    │ 1.2 GB/s      │         │

";

    #[test]
    fn each_benchmark_has_the_names_of_its_groups_and_its_own_rows() {
        let records = parse(SAMPLE).expect("the sample is understood");
        let paths: Vec<_> = records.iter().map(|record| record.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "matrix/encode/r50k_base/automata/code",
                "matrix/encode/cl100k_base/automata",
                "matrix/spans/o200k_base/automata",
            ]
        );
        assert_eq!(records[0].samples, 3);
        assert!(records[1].bytes_per_second.is_none());
        assert!(records[1].allocations.is_empty());
        assert!(records[2].allocations.is_empty());
    }

    #[test]
    fn columns_go_to_their_names_with_their_units() {
        let records = parse(SAMPLE).expect("the sample is understood");
        let near = |a: f64, b: f64| assert!((a - b).abs() <= b * 1e-9, "{a} and {b}");
        near(records[0].seconds.min, 0.02519);
        near(records[0].seconds.max, 0.032);
        near(records[0].seconds.median, 0.02857);
        near(records[0].seconds.mean, 0.02858);
        near(records[1].seconds.min, 1.5e-6);
        near(records[1].seconds.max, 2.0);
        near(records[1].seconds.median, 3.5e-7);
        near(records[1].seconds.mean, 60.0);
        let speed = records[2].bytes_per_second.expect("bytes are counted");
        near(speed.median, 27_190_000.0);
        near(speed.mean, 1.2e9);
    }

    #[test]
    fn allocations_are_those_of_the_median_run() {
        let records = parse(SAMPLE).expect("the sample is understood");
        let of = |kind: &str| records[0].allocations.get(kind).copied();
        let max = Allocations {
            count: 1.5,
            bytes: 782.0,
        };
        let alloc = Allocations {
            count: 3.0,
            bytes: 2500.0,
        };
        assert_eq!(of("max alloc"), Some(max));
        assert_eq!(of("alloc"), Some(alloc));
        assert_eq!(of("grow"), None);
    }

    #[test]
    fn a_row_with_a_unit_that_is_not_known_is_an_error() {
        let strange = SAMPLE.replace("28.57 ms", "28.57 weeks");
        assert!(parse(&strange).is_err_and(|error| error.contains("28.57 weeks")));
    }
}
