//! The four algorithms of 003: search or heap for the most frequent pair, all words or an inverted
//! index for the words that hold it. Written to be read, and compared with.

use core::cmp::Ordering;
use core::hint::black_box;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::RandomState;

use crate::counts::WordCounts;
use crate::options::{Algorithm, Ties};
use crate::tokens::{BREAK, Tokens};
use crate::training::{Run, StopReason};

type Pair = (u32, u32);

/// So many words that are far apart are looked at first, and then rewritten: their ways to memory, most of
/// the time that an inverted index takes, overlap then.
const BATCH: usize = 16;

pub(crate) fn run(counts: &WordCounts, run: &mut Run<'_>) -> StopReason {
    let algorithm = run.options.algorithm;
    let uses_heap = matches!(algorithm, Algorithm::Heap | Algorithm::InvertedIndexAndHeap);
    let uses_index = matches!(
        algorithm,
        Algorithm::InvertedIndex | Algorithm::InvertedIndexAndHeap
    );
    let mut words = words(counts, run.tokens());
    let mut pairs = Pairs {
        counts: HashMap::default(),
        words_of: uses_index.then(HashMap::default),
        heap: uses_heap.then(BinaryHeap::new),
    };
    for (index, (word, count)) in words.iter().enumerate() {
        for two in word.windows(2) {
            let pair = (two[0], two[1]);
            *pairs.counts.entry(pair).or_default() += count;
            pairs.index(pair, index);
        }
    }
    pairs.push_all(run);
    let mut changes = Changes::default();
    loop {
        if let Some(reason) = run.end() {
            return reason;
        }
        let forced = run.forced();
        let Some(pair) = forced.or_else(|| pairs.most_frequent(run)) else {
            return StopReason::NoFrequentPair;
        };
        let frequency = pairs.counts.get(&pair).copied().unwrap_or(0);
        let Some(product) = run.learn(pair.0, pair.1, frequency) else {
            pairs.counts.remove(&pair);
            continue;
        };
        match &mut pairs.words_of {
            Some(words_of) => {
                let holders = words_of.remove(&pair).unwrap_or_default();
                for batch in holders.chunks(BATCH) {
                    for &index in batch {
                        black_box(words[index as usize].0.first().copied());
                    }
                    for &index in batch {
                        let (word, count) = &mut words[index as usize];
                        changes.merge(word, index as usize, *count, pair, product);
                    }
                }
            }
            None => {
                for (index, (word, count)) in words.iter_mut().enumerate() {
                    changes.merge(word, index, *count, pair, product);
                }
            }
        }
        pairs.apply(run, &mut changes, pair);
    }
}

/// The words as symbols, each with its count; cut where the alphabet lacks something.
fn words(counts: &WordCounts, tokens: &Tokens) -> Vec<(Vec<u32>, u64)> {
    let mut words = Vec::new();
    let mut symbols = Vec::new();
    for (word, count) in counts.iter() {
        symbols.clear();
        tokens.push_atoms(word, &mut symbols);
        let parts = symbols.split(|&symbol| symbol == BREAK);
        let parts = parts.filter(|part| !part.is_empty());
        words.extend(parts.map(|part| (part.to_vec(), count)));
    }
    words
}

/// What one merge does to the counts of the pairs beside it. Most of a merge's places have the same
/// few neighbours, so these are summed up first.
#[derive(Default)]
struct Changes {
    /// Of each pair what it loses.
    lost: HashMap<Pair, u64, RandomState>,
    /// Of each new pair what it gains, and where it stands.
    gained: HashMap<Pair, (u64, Vec<u32>), RandomState>,
}

impl Changes {
    /// Replaces `pair` by `product` in a word, from left to right.
    fn merge(&mut self, word: &mut Vec<u32>, index: usize, count: u64, pair: Pair, product: u32) {
        let holds = |two: &[u32]| (two[0], two[1]) == pair;
        let Some(first) = word.windows(2).position(holds) else {
            return;
        };
        let (mut kept, mut next) = (first, first);
        while next < word.len() {
            if word.get(next + 1) != Some(&pair.1) || word[next] != pair.0 {
                word[kept] = word[next];
                kept += 1;
                next += 1;
                continue;
            }
            if let Some(&left) = kept.checked_sub(1).and_then(|before| word.get(before)) {
                // Before a product that was just made, the pair that is lost and the one that is
                // gained then are one, (product, left side), which its right neighbour has noted.
                if left == product {
                    self.take_back((product, pair.0), count);
                } else {
                    *self.lost.entry((left, pair.0)).or_default() += count;
                }
                self.gain((left, product), index, count);
            }
            if let Some(&right) = word.get(next + 2) {
                *self.lost.entry((pair.1, right)).or_default() += count;
                self.gain((product, right), index, count);
            }
            word[kept] = product;
            kept += 1;
            next += 2;
        }
        word.truncate(kept);
    }

    fn gain(&mut self, pair: Pair, word: usize, count: u64) {
        let (total, words) = self.gained.entry(pair).or_default();
        *total += count;
        let word = word as u32;
        if words.last() != Some(&word) {
            words.push(word);
        }
    }

    fn take_back(&mut self, pair: Pair, count: u64) {
        if let Some((total, _)) = self.gained.get_mut(&pair) {
            *total -= count;
        }
    }
}

struct Pairs {
    counts: HashMap<Pair, u64, RandomState>,
    /// The inverted index: of each pair the words that hold it, or once did.
    words_of: Option<HashMap<Pair, Vec<u32>, RandomState>>,
    heap: Option<BinaryHeap<Candidate>>,
}

impl Pairs {
    fn index(&mut self, pair: Pair, word: usize) {
        if let Some(words_of) = &mut self.words_of {
            let words = words_of.entry(pair).or_default();
            let word = word as u32;
            if words.last() != Some(&word) {
                words.push(word);
            }
        }
    }

    /// Brings the counts up to date after the merge of `pair`.
    fn apply(&mut self, run: &Run<'_>, changes: &mut Changes, pair: Pair) {
        self.counts.remove(&pair);
        for (pair, lost) in changes.lost.drain() {
            if let Entry::Occupied(mut entry) = self.counts.entry(pair) {
                *entry.get_mut() -= lost;
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
        for (pair, (count, words)) in changes.gained.drain() {
            if count == 0 {
                continue;
            }
            self.counts.insert(pair, count);
            if let Some(words_of) = &mut self.words_of {
                words_of.insert(pair, words);
            }
            self.push(run, [pair]);
        }
    }

    fn push_all(&mut self, run: &Run<'_>) {
        let all: Vec<Pair> = self.counts.keys().copied().collect();
        self.push(run, all);
    }

    fn push(&mut self, run: &Run<'_>, pairs: impl IntoIterator<Item = Pair>) {
        let Some(heap) = &mut self.heap else { return };
        for pair in pairs {
            if let Some(&count) = self.counts.get(&pair) {
                heap.push(Candidate::new(run.tokens(), run.options.ties, pair, count));
            }
        }
    }

    fn most_frequent(&mut self, run: &Run<'_>) -> Option<Pair> {
        let least = run.options.min_frequency;
        let Some(heap) = &mut self.heap else {
            let frequent = self
                .counts
                .iter()
                .filter(|&(&(left, right), &count)| count >= least && run.is_allowed(left, right));
            let best = frequent.max_by(|one, other| {
                let ties = || run.tokens().compare(*other.0, *one.0);
                one.1.cmp(other.1).then_with(ties)
            });
            return best.map(|(&pair, _)| pair);
        };
        while let Some(top) = heap.pop() {
            let (left, right) = top.pair;
            let count = self.counts.get(&top.pair).copied().unwrap_or(0);
            if count < least || !run.is_allowed(left, right) {
                continue;
            }
            if count == top.count {
                return Some(top.pair);
            }
            heap.push(Candidate { count, ..top });
        }
        None
    }
}

type Sides = [Box<[u8]>; 2];

/// A pair in the heap, with the count that it had when it was pushed.
struct Candidate {
    count: u64,
    pair: Pair,
    /// The bytes of both, where these decide between equal counts, and not the symbols.
    bytes: Option<Box<Sides>>,
}

impl Candidate {
    fn new(tokens: &Tokens, ties: Ties, pair: Pair, count: u64) -> Self {
        let bytes = |symbol: u32| tokens.bytes(symbol).into();
        let bytes = match ties {
            Ties::Lexicographic => Some(Box::new([bytes(pair.0), bytes(pair.1)])),
            Ties::HuggingFace => None,
        };
        Self { count, pair, bytes }
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let counts = self.count.cmp(&other.count);
        counts.then_with(|| (&other.bytes, other.pair).cmp(&(&self.bytes, self.pair)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}
