//! The least of many keys of which a few change at a time.

use alloc::vec::Vec;

/// Keys of one group.
const WAYS: usize = 8;

const EMPTY: [u64; WAYS] = [Tournament::NEVER; WAYS];

/// A tournament tree (Knuth, volume 3, section 5.4.1) with eight ways: of each group of keys the least
/// plays on in the level above.
///
/// Unlike a heap it keeps each key at its place, so that none is ever out of date, and has few branches that are
/// hard to foresee. What it costs is the way up, O(log n) for each change, in a handful of instructions a
/// level. Nine bytes a key and a little more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tournament {
    /// The groups of the lowest level, then those of the next, up to a single one.
    groups: Vec<[u64; WAYS]>,
    /// Where the groups of each level begin.
    levels: Vec<usize>,
}

impl Tournament {
    /// No key: greater than all.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// Starts anew with these keys, whose places are 0, 1, and so on. O(n).
    #[inline(always)]
    pub(crate) fn fill(&mut self, keys: impl Iterator<Item = u64>) {
        let Self { groups, levels } = self;
        groups.clear();
        let (mut group, mut filled) = (EMPTY, 0);
        for key in keys {
            group[filled % WAYS] = key;
            filled += 1;
            if filled == WAYS {
                groups.push(group);
                (group, filled) = (EMPTY, 0);
            }
        }
        groups.push(group);
        levels.clear();
        let mut start = 0;
        loop {
            levels.push(start);
            let end = groups.len();
            if end - start == 1 {
                return;
            }
            for first in (start..end).step_by(WAYS) {
                let mut group = EMPTY;
                for (place, child) in group.iter_mut().zip(first..end) {
                    *place = least_of(&groups[child]);
                }
                groups.push(group);
            }
            start = end;
        }
    }

    /// The least key, [`Tournament::NEVER`] if there is none. O(1).
    #[inline(always)]
    pub(crate) fn least(&self) -> u64 {
        self.groups.last().map_or(Self::NEVER, least_of)
    }

    /// Takes the keys from three places in ascending order, of which some may be the same. O(log n).
    #[inline(always)]
    pub(crate) fn remove(&mut self, places: [usize; 3]) {
        for place in places {
            self.groups[place / WAYS][place % WAYS] = Self::NEVER;
        }
        let [mut first, mut middle, mut last] = places.map(|place| place / WAYS);
        for above in 1..self.levels.len() {
            self.play(above, first);
            // In the lowest level one group or two are equally likely: not worth a branch.
            if above == 1 || first != last {
                self.play(above, last);
                if middle != first && middle != last {
                    self.play(above, middle);
                }
            }
            first /= WAYS;
            middle /= WAYS;
            last /= WAYS;
        }
    }

    /// Puts a key where there is none. O(log n), and less where others are before it.
    #[inline(always)]
    pub(crate) fn insert(&mut self, place: usize, key: u64) {
        let mut place = place;
        for &level in &self.levels {
            let least = &mut self.groups[level + place / WAYS][place % WAYS];
            if *least < key {
                return;
            }
            *least = key;
            place /= WAYS;
        }
    }

    /// Enters the least key of a group in the level above.
    #[inline(always)]
    fn play(&mut self, above: usize, group: usize) {
        let least = least_of(&self.groups[self.levels[above - 1] + group]);
        self.groups[self.levels[above] + group / WAYS][group % WAYS] = least;
    }
}

#[inline(always)]
fn least_of(keys: &[u64; WAYS]) -> u64 {
    let [a, b, c, d, e, f, g, h] = *keys;
    let (first, second) = (a.min(b).min(c.min(d)), e.min(f).min(g.min(h)));
    first.min(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_least_of_all_keys_is_known_after_each_change() {
        let mut numbers = Random(3);
        let mut random = |below: usize| numbers.below(below);
        let mut tournament = Tournament::default();
        assert_eq!(tournament.least(), Tournament::NEVER);
        for count in (0..=70).chain([511, 512, 513, 4_095, 4_096, 4_097]) {
            let mut keys: Vec<u64> = (0..count).map(|_| random(1_000) as u64).collect();
            tournament.fill(keys.iter().copied());
            for _ in 0..200 {
                let least = keys.iter().copied().min();
                assert_eq!(tournament.least(), least.unwrap_or(Tournament::NEVER));
                if count == 0 {
                    break;
                }
                let near = random(count);
                let mut places = [near, near + random(20), random(count)];
                places = places.map(|place| place.min(count - 1));
                places.sort_unstable();
                for place in places {
                    keys[place] = Tournament::NEVER;
                }
                tournament.remove(places);
                for place in places {
                    if keys[place] == Tournament::NEVER && random(3) > 0 {
                        keys[place] = random(1_000) as u64;
                        tournament.insert(place, keys[place]);
                    }
                }
            }
        }
    }
}
