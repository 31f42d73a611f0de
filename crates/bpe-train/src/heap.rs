//! The most frequent pair, of pairs whose counts only fall.

use crate::fast::Place;
use crate::tokens::Tokens;

/// Pairs by count. Those whose counts have the most binary digits are in a max-heap; all others wait in
/// a list for each number of digits, since most of them never come up: of a text's pairs, most occur
/// once. Counts are those of when a pair was last moved; its own may be lower, which is seen when it
/// is moved next. A pair moves down a list at most once for each digit.
pub(crate) struct Heap<P> {
    entries: Vec<Candidate<P>>,
    /// Digits of the counts in the heap, at least.
    digits: usize,
    waiting: Vec<Vec<Waiting<P>>>,
}

/// A pair in the heap.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<P> {
    pub(crate) count: u64,
    pub(crate) sides: (u32, u32),
    pub(crate) index: P,
}

type Waiting<P> = ((u32, u32), P);

impl<P> Default for Heap<P> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            digits: 65,
            waiting: (0..=64).map(|_| Vec::new()).collect(),
        }
    }
}

fn digits(count: u64) -> usize {
    (u64::BITS - count.leading_zeros()) as usize
}

impl<P: Place> Heap<P> {
    /// Adds a pair.
    pub(crate) fn push(&mut self, new: Candidate<P>, tokens: &Tokens) {
        let digits = digits(new.count);
        if digits < self.digits {
            self.waiting[digits].push((new.sides, new.index));
            return;
        }
        let mut place = self.entries.len();
        self.entries.push(new);
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.is_before(place, parent, tokens) {
                break;
            }
            self.entries.swap(place, parent);
            place = parent;
        }
    }

    /// Takes out the pair that is merged next: of those that occur `least` times or more, by what
    /// `count` says now, the most frequent one.
    pub(crate) fn pop(
        &mut self,
        count: impl Fn(P) -> u64,
        tokens: &Tokens,
        least: u64,
    ) -> Option<((u32, u32), P)> {
        loop {
            let Some(&top) = self.entries.first() else {
                self.refill(&count, tokens, least)?;
                continue;
            };
            let now = count(top.index);
            if now == top.count {
                self.remove_top(tokens);
                return Some((top.sides, top.index));
            }
            if now >= least && digits(now) >= self.digits {
                self.entries[0].count = now;
                self.sift_down(0, tokens);
                continue;
            }
            self.remove_top(tokens);
            if now >= least {
                self.waiting[digits(now)].push((top.sides, top.index));
            }
        }
    }

    /// Makes a heap of the pairs with the most digits that wait; `None` where none waits.
    fn refill(&mut self, count: &impl Fn(P) -> u64, tokens: &Tokens, least: u64) -> Option<()> {
        let next = self
            .waiting
            .iter()
            .rposition(|waiting| !waiting.is_empty())?;
        self.digits = next;
        for (sides, index) in core::mem::take(&mut self.waiting[next]) {
            let count = count(index);
            if count < least {
                continue;
            }
            match digits(count) == next {
                true => self.entries.push(Candidate {
                    count,
                    sides,
                    index,
                }),
                false => self.waiting[digits(count)].push((sides, index)),
            }
        }
        for place in (0..self.entries.len() / 2).rev() {
            self.sift_down(place, tokens);
        }
        Some(())
    }

    fn remove_top(&mut self, tokens: &Tokens) {
        self.entries.swap_remove(0);
        self.sift_down(0, tokens);
    }

    fn sift_down(&mut self, mut place: usize, tokens: &Tokens) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.entries.len() {
                return;
            }
            if child + 1 < self.entries.len() && self.is_before(child + 1, child, tokens) {
                child += 1;
            }
            if !self.is_before(child, place, tokens) {
                return;
            }
            self.entries.swap(place, child);
            place = child;
        }
    }

    #[inline]
    fn is_before(&self, one: usize, other: usize, tokens: &Tokens) -> bool {
        let (one, other) = (&self.entries[one], &self.entries[other]);
        let ties = || tokens.compare(one.sides, other.sides);
        other.count.cmp(&one.count).then_with(ties).is_lt()
    }
}
