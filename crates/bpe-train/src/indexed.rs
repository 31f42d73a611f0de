//! The four algorithms of 003: search or heap for the most frequent pair, all words or an inverted
//! index for the words that hold it. Written to be read, and compared with.

use core::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::counts::WordCounts;
use crate::options::{Algorithm, Ties};
use crate::training::{Run, StopReason, Tokens};

type Pair = (u32, u32);

pub(crate) fn run(counts: &WordCounts, run: &mut Run<'_>) -> StopReason {
    let algorithm = run.options.algorithm;
    let uses_heap = matches!(algorithm, Algorithm::Heap | Algorithm::InvertedIndexAndHeap);
    let uses_index = matches!(
        algorithm,
        Algorithm::InvertedIndex | Algorithm::InvertedIndexAndHeap
    );
    let of_bytes = run.tokens.of_bytes();
    let mut words: Vec<(Vec<u32>, u64)> = counts
        .iter()
        .map(|(word, count)| {
            let symbols = word.iter().map(|&byte| of_bytes[usize::from(byte)]);
            (symbols.collect(), count)
        })
        .collect();
    let mut pairs = Pairs {
        counts: HashMap::default(),
        words_of: uses_index.then(HashMap::default),
        heap: uses_heap.then(BinaryHeap::new),
    };
    for (index, (word, count)) in words.iter().enumerate() {
        pairs.add_word(word, *count);
        for pair in neighbours(word) {
            pairs.index(pair, index);
        }
    }
    pairs.push_all(run);
    loop {
        if run.is_full() {
            return StopReason::VocabularySize;
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
        let holders = match &mut pairs.words_of {
            Some(words_of) => words_of.remove(&pair).unwrap_or_default(),
            None => (0..words.len()).collect(),
        };
        let mut new_pairs = HashSet::<Pair, RandomState>::default();
        for index in holders {
            let (word, count) = &mut words[index];
            // The index may name a word that has lost the pair since.
            if neighbours(word).all(|other| other != pair) {
                continue;
            }
            pairs.remove_word(word, *count);
            merge_word(word, pair, product);
            pairs.add_word(word, *count);
            for new in neighbours(word).filter(|new| new.0 == product || new.1 == product) {
                pairs.index(new, index);
                new_pairs.insert(new);
            }
        }
        pairs.push(run, new_pairs);
    }
}

fn neighbours(word: &[u32]) -> impl Iterator<Item = Pair> {
    word.windows(2).map(|two| (two[0], two[1]))
}

/// Replaces `pair` by `product`, from left to right.
fn merge_word(word: &mut Vec<u32>, pair: Pair, product: u32) {
    let mut kept = 0;
    let mut next = 0;
    while next < word.len() {
        if word.get(next..next + 2) == Some(&[pair.0, pair.1]) {
            word[kept] = product;
            next += 2;
        } else {
            word[kept] = word[next];
            next += 1;
        }
        kept += 1;
    }
    word.truncate(kept);
}

struct Pairs {
    counts: HashMap<Pair, u64, RandomState>,
    /// The inverted index: of each pair the words that hold it, or once did.
    words_of: Option<HashMap<Pair, Vec<usize>, RandomState>>,
    heap: Option<BinaryHeap<Candidate>>,
}

impl Pairs {
    fn add_word(&mut self, word: &[u32], count: u64) {
        for pair in neighbours(word) {
            *self.counts.entry(pair).or_default() += count;
        }
    }

    fn remove_word(&mut self, word: &[u32], count: u64) {
        for pair in neighbours(word) {
            if let Some(total) = self.counts.get_mut(&pair) {
                *total -= count;
                if *total == 0 {
                    self.counts.remove(&pair);
                }
            }
        }
    }

    fn index(&mut self, pair: Pair, word: usize) {
        if let Some(words_of) = &mut self.words_of {
            let words = words_of.entry(pair).or_default();
            if words.last() != Some(&word) {
                words.push(word);
            }
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
                heap.push(Candidate::new(&run.tokens, run.options.ties, pair, count));
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
                let ties = || run.tokens.compare(*other.0, *one.0);
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

/// A pair in the heap, with the count that it had when it was pushed.
struct Candidate {
    count: u64,
    pair: Pair,
    /// The bytes of both, where these decide between equal counts, and not the symbols.
    bytes: Option<[Box<[u8]>; 2]>,
}

impl Candidate {
    fn new(tokens: &Tokens, ties: Ties, pair: Pair, count: u64) -> Self {
        let bytes = |symbol: u32| tokens.bytes(symbol).into();
        let bytes = match ties {
            Ties::Lexicographic => Some([bytes(pair.0), bytes(pair.1)]),
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
