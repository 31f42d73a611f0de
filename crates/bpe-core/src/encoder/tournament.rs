//! The least of many keys that change one by one.

use alloc::vec::Vec;

const WAYS: usize = 8;
/// No key.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tournament {
    keys: Vec<[u64; WAYS]>,
    /// Where the groups of each level begin.
    levels: Vec<usize>,
}

impl Tournament {
    /// All `keys`.
    pub(crate) fn fill(&mut self, keys: impl Iterator<Item = u64>) {
        self.keys.clear();
        self.levels.clear();
        self.levels.push(0);
        let mut group = [NEVER; WAYS];
        let mut count = 0;
        for key in keys {
            group[count % WAYS] = key;
            count += 1;
            if count % WAYS == 0 {
                self.keys.push(group);
                group = [NEVER; WAYS];
            }
        }
        self.keys.push(group);
        let mut start = 0;
        loop {
            let end = self.keys.len();
            if end - start == 1 { break; }
            self.levels.push(end);
            let mut group = [NEVER; WAYS];
            for (count, index) in (start..end).enumerate() {
                group[count % WAYS] = least(&self.keys[index]);
                if count % WAYS == WAYS - 1 || index + 1 == end {
                    self.keys.push(group);
                    group = [NEVER; WAYS];
                }
            }
            start = end;
        }
    }

    #[inline(always)]
    pub(crate) fn least(&self) -> u64 {
        self.keys.last().map_or(NEVER, least)
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, place: usize, key: u64) {
        self.keys[place / WAYS][place % WAYS] = key;
    }

    /// After the keys of these, in ascending order, have been put.
    #[inline(always)]
    pub(crate) fn settle(&mut self, places: [usize; 3]) {
        let [mut first, mut middle, mut last] = places.map(|place| place / WAYS);
        if let [from, to, ..] = self.levels[..] {
            self.lift(from, to, first);
            self.lift(from, to, last);
            if middle != first && middle != last {
                self.lift(from, to, middle);
            }
        }
        for index in 2..self.levels.len() {
            (first, middle, last) = (first / WAYS, middle / WAYS, last / WAYS);
            let (from, to) = (self.levels[index - 1], self.levels[index]);
            self.lift(from, to, first);
            if first != last {
                self.lift(from, to, last);
                if middle != first && middle != last {
                    self.lift(from, to, middle);
                }
            }
        }
    }

    #[inline(always)]
    fn lift(&mut self, from: usize, to: usize, group: usize) {
        let key = least(&self.keys[from + group]);
        self.keys[to + group / WAYS][group % WAYS] = key;
    }
}

#[inline(always)]
fn least(keys: &[u64; WAYS]) -> u64 {
    let [a, b, c, d, e, f, g, h] = *keys;
    (a.min(b)).min(c.min(d)).min((e.min(f)).min(g.min(h)))
}
