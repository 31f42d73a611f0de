//! The default algorithm: places of pairs in one flat array of symbols.
//!
//! All distinct words stand one behind the other in an array with one entry a byte. A token's symbol
//! is written at its first and at its last byte; what is between is dead. So the token before a place
//! and the one after it are one load away, whatever was merged, and nothing is ever moved.
//!
//! A pair gets its list of places when it comes up, and the list never grows again: a pair that
//! holds the token `n` comes up while `n` is made, and at no other time, because each token is made by
//! one merge alone. (Up to the merge that makes `n`, its bytes are cut as they would be on their own,
//! so wherever they end up in two neighbours, these are the same two.) For the same reason the count
//! of a pair only falls from then on. A place whose pair is gone shows it when it is looked at.
//!
//! What a merge of `(l, r)` to `n` changes is summed up by neighbour first: the pair `(x, l)` loses
//! what `(x, n)` gains, and `(r, y)` loses what `(n, y)` gains; so there are two look-ups of a pair for
//! each distinct neighbour, not for each place. Where two places touch, as in `lrlr`, the second one
//! takes back the pair `(n, l)` that the first one noted, and notes `(n, n)` instead.
//!
//! For n bytes of distinct words: there are at most 3n places in all lists, each is looked at once,
//! and each change of a count brings at most one move in the heap: O(n log n).

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::counts::WordCounts;
use crate::training::{Run, StopReason, Tokens};

/// Between words.
const BREAK: u32 = u32::MAX;
/// Inside a token.
const DEAD: u32 = u32::MAX - 1;

pub(crate) fn run(counts: &WordCounts, run: &mut Run<'_>) -> StopReason {
    let places = counts.distinct_bytes() + counts.len() + 1;
    match u32::try_from(places) {
        Ok(_) => Positions::<u32>::new(counts, run).train(run),
        Err(_) => Positions::<u64>::new(counts, run).train(run),
    }
}

/// A place in the array of symbols, as small as the array allows.
trait Place: Copy {
    fn new(place: usize) -> Self;
    fn get(self) -> usize;
}

impl Place for u32 {
    #[inline]
    fn new(place: usize) -> Self {
        place as Self
    }
    #[inline]
    fn get(self) -> usize {
        self as usize
    }
}

impl Place for u64 {
    #[inline]
    fn new(place: usize) -> Self {
        place as Self
    }
    #[inline]
    fn get(self) -> usize {
        self as usize
    }
}

struct Positions<P> {
    symbols: Vec<u32>,
    /// Of each entry of `symbols` its word.
    word_of: Vec<u32>,
    weights: Vec<u64>,
    /// Of each token its length in bytes.
    lengths: Vec<usize>,
    /// The lists of places.
    places: Vec<P>,
    pairs: Pairs,
    heap: Heap,
    before: Neighbours<P>,
    after: Neighbours<P>,
}

impl<P: Place> Positions<P> {
    fn new(counts: &WordCounts, run: &Run<'_>) -> Self {
        let of_bytes = run.tokens.of_bytes();
        let len = counts.distinct_bytes() + counts.len() + 1;
        let mut symbols = Vec::with_capacity(len);
        let mut word_of = Vec::with_capacity(len);
        let mut weights = Vec::with_capacity(counts.len());
        // Of each pair of bytes how often it occurs, and at how many places.
        let mut totals = vec![(0_u64, 0_usize); 1 << 16];
        for (index, (word, count)) in counts.iter().enumerate() {
            symbols.push(BREAK);
            symbols.extend(word.iter().map(|&byte| of_bytes[usize::from(byte)]));
            word_of.resize(symbols.len(), index as u32);
            weights.push(count);
            for two in word.windows(2) {
                let pair = [two[0], two[1]].map(|byte| of_bytes[usize::from(byte)] as usize);
                let total = &mut totals[pair[0] << 8 | pair[1]];
                total.0 += count;
                total.1 += 1;
            }
        }
        symbols.push(BREAK);
        word_of.push(0);
        let mut positions = Self {
            symbols,
            word_of,
            weights,
            lengths: vec![1; 256],
            places: Vec::new(),
            pairs: Pairs::default(),
            heap: Heap::default(),
            before: Neighbours::default(),
            after: Neighbours::default(),
        };
        let mut next = vec![None; 1 << 16];
        for (pair, &(count, places)) in totals.iter().enumerate() {
            let sides = ((pair >> 8) as u32, (pair & 0xFF) as u32);
            if let Some(start) = positions.add_pair(run, sides, count, places) {
                next[pair] = Some(start);
            }
        }
        for place in 0..positions.symbols.len() - 1 {
            let two = (positions.symbols[place], positions.symbols[place + 1]);
            if two.0 != BREAK
                && two.1 != BREAK
                && let Some(next) = &mut next[(two.0 << 8 | two.1) as usize]
            {
                positions.places[*next] = P::new(place);
                *next += 1;
            }
        }
        positions
    }

    fn train(mut self, run: &mut Run<'_>) -> StopReason {
        loop {
            if run.is_full() {
                return StopReason::VocabularySize;
            }
            let (sides, index) = match run.forced() {
                Some(sides) => (sides, self.pairs.find(sides)),
                None => match self.heap.pop(&self.pairs, run) {
                    Some(index) => (self.pairs.get(index).sides, Some(index)),
                    None => return StopReason::NoFrequentPair,
                },
            };
            let frequency = index.map_or(0, |index| self.pairs.get(index).count);
            let product = run.learn(sides.0, sides.1, frequency);
            let pair = index.map(|index| self.pairs.take(index));
            if let Some(product) = product {
                self.lengths.push(run.tokens.bytes(product).len());
                if let Some(pair) = pair {
                    self.merge(run, &pair, product);
                }
            }
        }
    }

    /// Makes `product` wherever `pair` stands.
    fn merge(&mut self, run: &Run<'_>, pair: &Pair, product: u32) {
        let (left, right) = pair.sides;
        let left_len = self.lengths[left as usize];
        let right_len = self.lengths[right as usize];
        let product_len = left_len + right_len;
        self.before.clear(self.lengths.len());
        self.after.clear(self.lengths.len());
        // Places where a product follows another, and how often.
        let mut doubles = Vec::new();
        let mut double_count = 0;
        for index in pair.start..pair.start + pair.places {
            let place = self.places[index].get();
            let middle = place + left_len;
            if self.symbols[place] != left || self.symbols[middle] != right {
                continue;
            }
            let weight = self.weights[self.word_of[place] as usize];
            let end = middle + right_len;
            let (x, y) = (self.symbols[place - 1], self.symbols[end]);
            self.symbols[middle - 1] = DEAD;
            self.symbols[middle] = DEAD;
            self.symbols[place] = product;
            self.symbols[end - 1] = product;
            if x == product {
                doubles.push(P::new(place - product_len));
                double_count += weight;
            } else if x != BREAK {
                let start = place - self.lengths[x as usize];
                self.before.note(x, weight, P::new(start));
            }
            if y != BREAK {
                self.after.note(y, weight, P::new(place));
            }
        }
        let mut before = core::mem::take(&mut self.before);
        for neighbour in &before.distinct {
            self.pairs.lower((neighbour.symbol, left), neighbour.count);
        }
        self.add_pairs(run, &mut before, |x| (x, product));
        self.before = before;
        let mut after = core::mem::take(&mut self.after);
        for neighbour in &mut after.distinct {
            self.pairs.lower((right, neighbour.symbol), neighbour.count);
            if neighbour.symbol == left {
                neighbour.count -= double_count;
            }
        }
        self.add_pairs(run, &mut after, |y| (product, y));
        self.after = after;
        let sides = (product, product);
        if let Some(start) = self.add_pair(run, sides, double_count, doubles.len()) {
            self.places[start..start + doubles.len()].copy_from_slice(&doubles);
        }
    }

    /// Adds the pairs that one side of a merge brought up.
    fn add_pairs(
        &mut self,
        run: &Run<'_>,
        neighbours: &mut Neighbours<P>,
        sides: impl Fn(u32) -> (u32, u32),
    ) {
        for neighbour in &mut neighbours.distinct {
            let Neighbour { symbol, count, .. } = *neighbour;
            neighbour.next = self.add_pair(run, sides(symbol), count, neighbour.places);
        }
        for &(slot, place) in &neighbours.places {
            if let Some(next) = &mut neighbours.distinct[slot as usize].next {
                self.places[*next] = place;
                *next += 1;
            }
        }
    }

    /// Adds a pair with room for its places, and returns where they go; `None` where the pair can
    /// never be merged, so that its places need not be known.
    fn add_pair(
        &mut self,
        run: &Run<'_>,
        sides: (u32, u32),
        count: u64,
        places: usize,
    ) -> Option<usize> {
        let is_candidate = count >= run.options.min_frequency && run.is_allowed(sides.0, sides.1);
        if count == 0 || !(is_candidate || run.has_forced()) {
            return None;
        }
        let start = self.places.len();
        self.places.resize(start + places, P::new(0));
        let index = self.pairs.add(Pair {
            sides,
            count,
            start,
            places,
        });
        if is_candidate {
            self.heap.push(index, &self.pairs, run);
        }
        Some(start)
    }
}

/// What stands on one side of the places of a merge.
struct Neighbours<P> {
    distinct: Vec<Neighbour>,
    /// Of each place the slot of its neighbour in `distinct`, and where the new pair begins.
    places: Vec<(u32, P)>,
    /// Of each symbol its slot in `distinct`.
    slots: Vec<u32>,
}

struct Neighbour {
    symbol: u32,
    count: u64,
    places: usize,
    /// Where the next place of the new pair goes.
    next: Option<usize>,
}

const NO_SLOT: u32 = u32::MAX;

impl<P> Default for Neighbours<P> {
    fn default() -> Self {
        Self {
            distinct: Vec::new(),
            places: Vec::new(),
            slots: Vec::new(),
        }
    }
}

impl<P> Neighbours<P> {
    fn clear(&mut self, symbols: usize) {
        for neighbour in self.distinct.drain(..) {
            self.slots[neighbour.symbol as usize] = NO_SLOT;
        }
        self.places.clear();
        self.slots.resize(symbols, NO_SLOT);
    }

    #[inline]
    fn note(&mut self, symbol: u32, weight: u64, place: P) {
        let slot = &mut self.slots[symbol as usize];
        if *slot == NO_SLOT {
            *slot = self.distinct.len() as u32;
            self.distinct.push(Neighbour {
                symbol,
                count: 0,
                places: 0,
                next: None,
            });
        }
        let neighbour = &mut self.distinct[*slot as usize];
        neighbour.count += weight;
        neighbour.places += 1;
        self.places.push((*slot, place));
    }
}

/// Two neighbouring symbols, and where they stand.
#[derive(Clone, Copy)]
struct Pair {
    sides: (u32, u32),
    count: u64,
    start: usize,
    places: usize,
}

#[derive(Default)]
struct Pairs {
    pairs: Vec<Pair>,
    by_sides: HashTable<u32>,
    hasher: RandomState,
}

impl Pairs {
    fn add(&mut self, pair: Pair) -> u32 {
        let index = self.pairs.len() as u32;
        self.pairs.push(pair);
        let (pairs, hasher) = (&self.pairs, &self.hasher);
        let hash = |&index: &u32| hasher.hash_one(pairs[index as usize].sides);
        self.by_sides.insert_unique(hash(&index), index, hash);
        index
    }

    fn get(&self, index: u32) -> &Pair {
        &self.pairs[index as usize]
    }

    fn find(&self, sides: (u32, u32)) -> Option<u32> {
        let same = |&index: &u32| self.get(index).sides == sides;
        let hash = self.hasher.hash_one(sides);
        self.by_sides.find(hash, same).copied()
    }

    /// Takes the pair out; it stays in the list with a count of 0.
    fn take(&mut self, index: u32) -> Pair {
        let pair = self.pairs[index as usize];
        let hash = self.hasher.hash_one(pair.sides);
        if let Ok(entry) = self.by_sides.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        self.pairs[index as usize].count = 0;
        pair
    }

    /// Takes `count` from the pair, where it is known.
    fn lower(&mut self, sides: (u32, u32), count: u64) {
        if let Some(index) = self.find(sides) {
            self.pairs[index as usize].count -= count;
        }
    }
}

/// A binary max-heap of pairs, each with the count that it had when it was last moved; the pair's own
/// count may be lower.
#[derive(Default)]
struct Heap {
    entries: Vec<(u64, u32)>,
}

impl Heap {
    /// Takes out the pair that is merged next.
    fn pop(&mut self, pairs: &Pairs, run: &Run<'_>) -> Option<u32> {
        loop {
            let &(count, index) = self.entries.first()?;
            let now = pairs.get(index).count;
            if now == count {
                self.remove_top(pairs, run);
                return Some(index);
            }
            if now >= run.options.min_frequency {
                self.entries[0].0 = now;
                self.sift_down(pairs, &run.tokens);
            } else {
                self.remove_top(pairs, run);
            }
        }
    }

    fn remove_top(&mut self, pairs: &Pairs, run: &Run<'_>) {
        self.entries.swap_remove(0);
        self.sift_down(pairs, &run.tokens);
    }

    fn push(&mut self, index: u32, pairs: &Pairs, run: &Run<'_>) {
        let mut place = self.entries.len();
        self.entries.push((pairs.get(index).count, index));
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.is_before(place, parent, pairs, &run.tokens) {
                break;
            }
            self.entries.swap(place, parent);
            place = parent;
        }
    }

    fn sift_down(&mut self, pairs: &Pairs, tokens: &Tokens) {
        let mut place = 0;
        loop {
            let mut child = 2 * place + 1;
            if child >= self.entries.len() {
                return;
            }
            if child + 1 < self.entries.len() && self.is_before(child + 1, child, pairs, tokens) {
                child += 1;
            }
            if !self.is_before(child, place, pairs, tokens) {
                return;
            }
            self.entries.swap(place, child);
            place = child;
        }
    }

    fn is_before(&self, one: usize, other: usize, pairs: &Pairs, tokens: &Tokens) -> bool {
        let (one, other) = (self.entries[one], self.entries[other]);
        let ties = || tokens.compare(pairs.get(one.1).sides, pairs.get(other.1).sides);
        other.0.cmp(&one.0).then_with(ties).is_lt()
    }
}
