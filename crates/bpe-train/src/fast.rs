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
use crate::heap::{Candidate, Heap};
use crate::tokens::{BREAK, Tokens};
use crate::training::{Run, StopReason};

/// Inside a token.
const DEAD: u32 = u32::MAX - 1;

pub(crate) fn run(counts: &WordCounts, run: &mut Run<'_>) -> StopReason {
    // An upper bound of the entries in all lists of places, and so of pairs.
    let symbols = counts.distinct_bytes() + counts.len() + 1;
    match u32::try_from(symbols.saturating_mul(3)) {
        Ok(_) => Positions::<u32>::new(counts, run).train(run),
        Err(_) => Positions::<u64>::new(counts, run).train(run),
    }
}

/// A place in an array, as small as the arrays allow.
pub(crate) trait Place: Copy + Default + Eq {
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

/// An entry of the array of symbols.
#[derive(Clone, Copy)]
struct Cell {
    symbol: u32,
    /// Beside the symbol, since a look at a place needs both, and the way to memory costs the most.
    word: u32,
}

/// So many places are looked at together: their ways to memory overlap then.
const BATCH: usize = 16;

struct Positions<P> {
    cells: Vec<Cell>,
    weights: Vec<u64>,
    /// Of each token its length in cells.
    lengths: Vec<usize>,
    /// The lists of places.
    places: Vec<P>,
    pairs: Pairs<P>,
    heap: Heap<P>,
    before: Neighbours<P>,
    after: Neighbours<P>,
}

impl<P: Place> Positions<P> {
    fn new(counts: &WordCounts, run: &Run<'_>) -> Self {
        let tokens = run.tokens();
        let most = counts.distinct_bytes() + counts.len() + 1;
        let mut cells = Vec::with_capacity(most);
        let mut symbols = Vec::new();
        let mut weights = Vec::with_capacity(counts.len());
        let mut first = FirstPairs::new(tokens);
        for (index, (word, count)) in counts.iter().enumerate() {
            symbols.clear();
            tokens.push_atoms(word, &mut symbols);
            let word = index as u32;
            let cell = |&symbol: &u32| Cell { symbol, word };
            cells.push(cell(&BREAK));
            cells.extend(symbols.iter().map(cell));
            weights.push(count);
            for two in symbols.windows(2) {
                if two[0] != BREAK && two[1] != BREAK {
                    let total = first.total((two[0], two[1]));
                    total.count += count;
                    total.places += 1;
                }
            }
        }
        cells.push(Cell {
            symbol: BREAK,
            word: 0,
        });
        let mut positions = Self {
            cells,
            weights,
            lengths: vec![1; tokens.len()],
            places: Vec::new(),
            pairs: Pairs::default(),
            heap: Heap::default(),
            before: Neighbours::default(),
            after: Neighbours::default(),
        };
        for total in &mut first.totals {
            total.next = positions.add_pair(run, total.sides, total.count, total.places);
        }
        for place in 0..positions.cells.len() - 1 {
            let sides = (
                positions.cells[place].symbol,
                positions.cells[place + 1].symbol,
            );
            if sides.0 != BREAK
                && sides.1 != BREAK
                && let Some(next) = &mut first.total(sides).next
            {
                positions.places[*next] = P::new(place);
                *next += 1;
            }
        }
        positions
    }

    fn train(mut self, run: &mut Run<'_>) -> StopReason {
        loop {
            if let Some(reason) = run.end() {
                return reason;
            }
            let (sides, index) = match run.forced() {
                Some(sides) => (sides, self.pairs.find(sides)),
                None => {
                    let count = |index| self.pairs.get(index).count;
                    match self
                        .heap
                        .pop(count, run.tokens(), run.options.min_frequency)
                    {
                        Some((sides, index)) => (sides, Some(index)),
                        None => return StopReason::NoFrequentPair,
                    }
                }
            };
            let frequency = index.map_or(0, |index| self.pairs.get(index).count);
            let product = run.learn(sides.0, sides.1, frequency);
            let pair = index.map(|index| self.pairs.take(index));
            if let Some(product) = product {
                let lengths = [sides.0, sides.1].map(|side| self.lengths[side as usize]);
                self.lengths.push(lengths[0] + lengths[1]);
                if let Some(pair) = pair {
                    self.merge(run, &pair, product);
                }
            }
        }
    }

    /// Makes `product` wherever `pair` stands.
    fn merge(&mut self, run: &Run<'_>, pair: &Pair<P>, product: u32) {
        let (left, right) = pair.sides;
        let left_len = self.lengths[left as usize];
        let right_len = self.lengths[right as usize];
        let product_len = left_len + right_len;
        self.before.clear(self.lengths.len());
        self.after.clear(self.lengths.len());
        // Places where a product follows another, and how often.
        let mut doubles = Vec::new();
        let mut double_count = 0;
        let start = pair.start.get();
        let places = start..start + pair.places.get();
        let mut weights = [0; BATCH];
        for from in places.clone().step_by(BATCH) {
            let batch = &self.places[from..places.end.min(from + BATCH)];
            for (weight, place) in weights.iter_mut().zip(batch) {
                *weight = self.weights[self.cells[place.get()].word as usize];
            }
            for (&weight, place) in weights.iter().zip(batch) {
                let place = place.get();
                let middle = place + left_len;
                if self.cells[place].symbol != left || self.cells[middle].symbol != right {
                    continue;
                }
                let end = middle + right_len;
                let (x, y) = (self.cells[place - 1].symbol, self.cells[end].symbol);
                self.cells[middle - 1].symbol = DEAD;
                self.cells[middle].symbol = DEAD;
                self.cells[place].symbol = product;
                self.cells[end - 1].symbol = product;
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
        self.places.resize(start + places, P::default());
        let index = self.pairs.add(Pair {
            sides,
            count,
            start: P::new(start),
            places: P::new(places),
        });
        if is_candidate {
            let candidate = Candidate {
                count,
                sides,
                index,
            };
            self.heap.push(candidate, run.tokens());
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

/// The pairs before the first merge, summed up before their lists of places are laid out.
struct FirstPairs {
    totals: Vec<FirstPair>,
    /// Of each pair its place in `totals`: in a table where the alphabet is small, else by hash.
    table: Vec<u32>,
    by_sides: HashTable<u32>,
    hasher: RandomState,
    alphabet: usize,
}

#[derive(Clone, Copy)]
struct FirstPair {
    sides: (u32, u32),
    count: u64,
    places: usize,
    /// Where its next place goes.
    next: Option<usize>,
}

impl FirstPairs {
    fn new(tokens: &Tokens) -> Self {
        let alphabet = tokens.len();
        let table = match alphabet <= 256 {
            true => vec![u32::MAX; alphabet * alphabet],
            false => Vec::new(),
        };
        Self {
            totals: Vec::new(),
            table,
            by_sides: HashTable::new(),
            hasher: RandomState::default(),
            alphabet,
        }
    }

    #[inline]
    fn total(&mut self, sides: (u32, u32)) -> &mut FirstPair {
        let Self {
            totals,
            table,
            by_sides,
            hasher,
            alphabet,
        } = self;
        let new = FirstPair {
            sides,
            count: 0,
            places: 0,
            next: None,
        };
        let place = match table.get_mut(sides.0 as usize * *alphabet + sides.1 as usize) {
            Some(place) => {
                if *place == u32::MAX {
                    *place = totals.len() as u32;
                    totals.push(new);
                }
                *place
            }
            None => {
                let entry = by_sides.entry(
                    hasher.hash_one(sides),
                    |&place| totals[place as usize].sides == sides,
                    |&place| hasher.hash_one(totals[place as usize].sides),
                );
                let place = *entry.or_insert(totals.len() as u32).get();
                if place as usize == totals.len() {
                    totals.push(new);
                }
                place
            }
        };
        &mut totals[place as usize]
    }
}

/// Two neighbouring symbols, and where they stand.
#[derive(Clone, Copy)]
struct Pair<P> {
    sides: (u32, u32),
    count: u64,
    start: P,
    places: P,
}

struct Pairs<P> {
    pairs: Vec<Pair<P>>,
    by_sides: HashTable<P>,
    hasher: RandomState,
}

impl<P> Default for Pairs<P> {
    fn default() -> Self {
        Self {
            pairs: Vec::new(),
            by_sides: HashTable::new(),
            hasher: RandomState::default(),
        }
    }
}

impl<P: Place> Pairs<P> {
    fn add(&mut self, pair: Pair<P>) -> P {
        let index = P::new(self.pairs.len());
        self.pairs.push(pair);
        let (pairs, hasher) = (&self.pairs, &self.hasher);
        let hash = |&index: &P| hasher.hash_one(pairs[index.get()].sides);
        self.by_sides.insert_unique(hash(&index), index, hash);
        index
    }

    fn get(&self, index: P) -> &Pair<P> {
        &self.pairs[index.get()]
    }

    fn find(&self, sides: (u32, u32)) -> Option<P> {
        let same = |&index: &P| self.get(index).sides == sides;
        let hash = self.hasher.hash_one(sides);
        self.by_sides.find(hash, same).copied()
    }

    /// Takes the pair out; it stays in the list with a count of 0.
    fn take(&mut self, index: P) -> Pair<P> {
        let pair = self.pairs[index.get()];
        let hash = self.hasher.hash_one(pair.sides);
        if let Ok(entry) = self.by_sides.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        self.pairs[index.get()].count = 0;
        pair
    }

    /// Takes `count` from the pair, where it is known.
    fn lower(&mut self, sides: (u32, u32), count: u64) {
        if let Some(index) = self.find(sides) {
            self.pairs[index.get()].count -= count;
        }
    }
}
