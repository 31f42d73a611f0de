//! Two runs over one text, side by side: what holds for all lengths is shown by looking at all
//! pairs of states.

use std::collections::{HashMap, VecDeque};

use super::cells::Cell;
use super::machine::{Machine, Output, State};

/// A pair of states reached by one text, and whether the spans have differed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) one: State,
    pub(crate) two: State,
    pub(crate) differ: bool,
}

impl Pair {
    const START: Self = Self {
        one: 0,
        two: 0,
        differ: false,
    };

    /// The pairs that follow when both read a character of the cell.
    pub(crate) fn follow<'m>(
        self,
        one: &'m Machine,
        two: &'m Machine,
        cell: Cell,
    ) -> impl Iterator<Item = (Output, Output, Self)> + 'm {
        let seconds = two.steps(self.two, cell);
        one.steps(self.one, cell).iter().flat_map(move |&(a, one)| {
            seconds.iter().map(move |&(b, two)| {
                let differ = self.differ || a != b;
                (a, b, Self { one, two, differ })
            })
        })
    }
}

/// All pairs that one text leads to in both machines, in the order of the length of the text, and from
/// which pair and by which cell each was first reached.
pub(crate) struct Reached {
    pub(crate) pairs: Vec<Pair>,
    from: HashMap<Pair, (Pair, Cell)>,
}

impl Reached {
    pub(crate) fn new(one: &Machine, two: &Machine) -> Self {
        let mut from = HashMap::from([(Pair::START, (Pair::START, 0))]);
        let mut pairs = Vec::new();
        let mut queue = VecDeque::from([Pair::START]);
        while let Some(pair) = queue.pop_front() {
            pairs.push(pair);
            for cell in 0..one.cells() {
                let cell = cell as Cell;
                for (_, _, next) in pair.follow(one, two, cell) {
                    from.entry(next).or_insert_with(|| {
                        queue.push_back(next);
                        (pair, cell)
                    });
                }
            }
        }
        Self { pairs, from }
    }

    /// The shortest text that leads to a pair.
    pub(crate) fn text(&self, pair: Pair) -> Vec<Cell> {
        let mut cells = Vec::new();
        let mut pair = pair;
        while pair != Pair::START {
            let Some(&(before, cell)) = self.from.get(&pair) else {
                break;
            };
            cells.push(cell);
            pair = before;
        }
        cells.reverse();
        cells
    }
}

/// The shortest text that the two machines, over the same cells, cut into different spans. None
/// if they are equal on all texts: every text has one accepted run in each machine, so the pair
/// of the two is among those that are looked at.
pub(crate) fn difference(one: &Machine, two: &Machine) -> Option<Vec<Cell>> {
    let reached = Reached::new(one, two);
    let differ = |pair: &&Pair| pair.differ && one.accepts(pair.one) && two.accepts(pair.two);
    let pair = reached.pairs.iter().find(differ)?;
    Some(reached.text(*pair))
}

/// For each pair of states of a machine: is there a text that both accept and cut differently?
/// And is there one that both accept?
pub(crate) struct Futures {
    states: usize,
    accepted: Vec<bool>,
    different: Vec<bool>,
}

impl Futures {
    pub(crate) fn new(machine: &Machine) -> Self {
        let states = machine.len();
        let mut futures = Self {
            states,
            accepted: vec![false; states * states],
            different: vec![false; states * states],
        };
        loop {
            let mut changed = false;
            for place in 0..states * states {
                let pair = Pair {
                    one: (place / states) as State,
                    two: (place % states) as State,
                    differ: false,
                };
                let mut accepted = machine.accepts(pair.one) && machine.accepts(pair.two);
                let mut different = false;
                for cell in 0..machine.cells() {
                    let (more, other) = futures.after(machine, pair, cell as Cell);
                    accepted |= more;
                    different |= other;
                }
                changed |= accepted && !futures.accepted[place];
                changed |= different && !futures.different[place];
                futures.accepted[place] |= accepted;
                futures.different[place] |= different;
            }
            if !changed {
                return futures;
            }
        }
    }

    /// Of the texts that begin with a character of the cell: is there one that both accept, and
    /// one that they cut differently?
    pub(crate) fn after(&self, machine: &Machine, pair: Pair, cell: Cell) -> (bool, bool) {
        let mut found = (false, false);
        for (a, b, next) in pair.follow(machine, machine, cell) {
            let place = usize::from(next.one) * self.states + usize::from(next.two);
            found.0 |= self.accepted[place];
            found.1 |= self.different[place] || a != b && self.accepted[place];
        }
        found
    }
}
