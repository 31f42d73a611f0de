//! Which states of a token automaton lead to a text of the language, and which are dead ends.
//!
//! Of all readings of a text, one that leads to an end is enough, so the search goes over states with one
//! reading each. What it finds is kept by text state and reading: a token that leads to an end from there.
//! Mostly the next state with these finds that token valid behind its own last one, and has its answer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use bpe_core::TokenId;

use crate::boundaries::{NO_READINGS, Readings};
use crate::explicit::{State, StringDfa};
use crate::pending::Tables;
use crate::token_dfa::{Node, TokenDfa};

/// What is known of dead ends.
pub(crate) struct Completion {
    /// Of each text state how many bytes lead to the end of a text.
    distances: Vec<u32>,
    /// The tokens of each length in bytes, by their first.
    by_length: Vec<Vec<(u8, Vec<TokenId>)>>,
    /// Of a text state and one reading, tokens that lead to an end where they may come, and whether a piece
    /// starts before them, so that they may always.
    ways: HashMap<(State, Readings), Vec<(TokenId, bool)>>,
    ways_count: usize,
    dead: HashSet<Node>,
    /// Of a set of readings each alone.
    singles: HashMap<Readings, Arc<[Readings]>>,
}

impl Completion {
    pub(crate) fn new(language: &StringDfa, tables: &Tables, wholes: &[TokenId]) -> Self {
        let order = &tables.order;
        let mut by_length: Vec<Vec<(u8, Vec<TokenId>)>> = Vec::new();
        for &id in order.longer(order.root()).iter().chain(wholes) {
            let bytes = order.bytes(id);
            let Some(&first) = bytes.first() else {
                continue;
            };
            if by_length.len() <= bytes.len() {
                by_length.resize_with(bytes.len() + 1, Vec::new);
            }
            let groups = &mut by_length[bytes.len()];
            match groups.last_mut() {
                Some((byte, group)) if *byte == first => group.push(id),
                _ => groups.push((first, vec![id])),
            }
        }
        Self {
            distances: distances(language),
            by_length,
            ways: HashMap::new(),
            ways_count: 0,
            dead: HashSet::new(),
            singles: HashMap::new(),
        }
    }

    pub(crate) fn forget(&mut self) {
        self.ways.clear();
        self.ways_count = 0;
        self.dead.clear();
        self.singles.clear();
    }

    /// Whether more than `most` answers, or some hundred MB of them, are kept.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        let most = most.min(1 << 20);
        self.ways_count > most || self.dead.len() > most || self.singles.len() > most
    }

    fn distance(&self, text: State) -> u32 {
        let distance = self.distances.get(text as usize);
        distance.copied().unwrap_or(u32::MAX)
    }
}

/// Of each state how many bytes lead to an accepting one.
fn distances(language: &StringDfa) -> Vec<u32> {
    let count = language.state_count();
    let mut before = vec![Vec::new(); count];
    for (from, _, to) in language.transitions() {
        before[to as usize].push(from);
    }
    let mut distances = vec![u32::MAX; count];
    let accepting = (0..count as State).filter(|&state| language.is_accepting(state));
    let mut open: std::collections::VecDeque<State> = accepting.collect();
    for &state in &open {
        distances[state as usize] = 0;
    }
    while let Some(state) = open.pop_front() {
        for &from in &before[state as usize] {
            if distances[from as usize] == u32::MAX {
                distances[from as usize] = distances[state as usize] + 1;
                open.push_back(from);
            }
        }
    }
    distances
}

/// A state that a search has met, and how.
struct Met {
    node: Node,
    /// Where it was reached from.
    from: usize,
    token: TokenId,
    starts: bool,
}

impl TokenDfa {
    /// Whether a token, before which a piece starts or not and which may come there, leads to a text of the
    /// language. None where a search over `limit` states does not tell.
    pub(crate) fn leads_to_end(
        &mut self,
        node: Node,
        token: TokenId,
        starts: bool,
        limit: usize,
    ) -> Option<bool> {
        let mut is_known = true;
        for next in self.steps(node, token, starts) {
            match self.completes_alone(next, limit) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(false)
    }

    /// Whether a state leads to a text of the language.
    pub(crate) fn completes(&mut self, node: Node, limit: usize) -> Option<bool> {
        let mut is_known = true;
        for &readings in self.alone(node.readings).iter() {
            match self.completes_alone(Node { readings, ..node }, limit) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(false)
    }

    fn completes_alone(&mut self, node: Node, limit: usize) -> Option<bool> {
        self.known(node).or_else(|| self.search(node, limit))
    }

    /// What is known of a state with one reading.
    fn known(&self, node: Node) -> Option<bool> {
        if self.accepts_node(node) {
            return Some(true);
        }
        let may_come = |&(token, starts): &(TokenId, bool)| {
            starts || self.tables.pairs.allows(node.last, token)
        };
        let ways = self.completion.ways.get(&(node.text, node.readings));
        if ways.is_some_and(|ways| ways.iter().any(may_come)) {
            return Some(true);
        }
        self.completion.dead.contains(&node).then_some(false)
    }

    /// The states after a token, before which a piece starts or not, with one reading each.
    fn steps(&mut self, node: Node, token: TokenId, starts: bool) -> Vec<Node> {
        let Some((text, last)) = self.after(node.text, token) else {
            return Vec::new();
        };
        let readings = match &mut self.lexing {
            None => NO_READINGS,
            Some(lexing) => {
                let bytes = self.tables.order.bytes(token);
                let is_whole = self.tables.pairs.state_after(token).is_none();
                let after = match (is_whole, starts) {
                    (true, false) => NO_READINGS,
                    (true, true) => lexing.after_whole(node.readings, bytes),
                    (false, starts) => lexing.after(node.readings, bytes, starts),
                };
                let after = lexing.prune(&self.language, text, after);
                if after == NO_READINGS {
                    return Vec::new();
                }
                after
            }
        };
        let alone = self.alone(readings);
        let node = |&readings: &Readings| Node {
            text,
            last,
            readings,
        };
        alone.iter().map(node).collect()
    }

    /// Each of these readings alone.
    fn alone(&mut self, readings: Readings) -> Arc<[Readings]> {
        if let Some(alone) = self.completion.singles.get(&readings) {
            return Arc::clone(alone);
        }
        let alone: Arc<[Readings]> = match &mut self.lexing {
            None => Arc::from([NO_READINGS]),
            Some(lexing) => {
                let all = lexing.shared(readings);
                all.iter()
                    .map(|reading| lexing.number_of(std::slice::from_ref(reading)))
                    .collect()
            }
        };
        self.completion.singles.insert(readings, Arc::clone(&alone));
        alone
    }

    /// Searches for a way to an end, near the end and by short tokens first, and notes it; where there is none,
    /// all that was met is dead.
    fn search(&mut self, start: Node, limit: usize) -> Option<bool> {
        let mut met = vec![Met {
            node: start,
            from: usize::MAX,
            token: 0,
            starts: false,
        }];
        let mut seen = HashSet::from([start]);
        let cost = |dfa: &Self, node: Node, length: usize| {
            let distance = dfa.completion.distance(node.text);
            Reverse(distance.saturating_add(length as u32))
        };
        let mut open = BinaryHeap::from([(cost(self, start, 1), Reverse(1), 0)]);
        while let Some((_, Reverse(length), place)) = open.pop() {
            let Some(groups) = self.completion.by_length.get_mut(length) else {
                continue;
            };
            let groups = std::mem::take(groups);
            let node = met.get(place)?.node;
            let language = &self.language;
            let goes_on = |group: &&(u8, _)| language.next(node.text, group.0).is_some();
            let groups_here: Vec<_> = groups.iter().filter(goes_on).collect();
            let mut found = None;
            let mut is_beyond = false;
            'tokens: for &token in groups_here.into_iter().flat_map(|group| &group.1) {
                for (next, starts) in self.nexts(node, token) {
                    match self.known(next) {
                        Some(true) => {
                            found = Some((token, starts));
                            break 'tokens;
                        }
                        None if seen.insert(next) => {
                            if seen.len() > limit {
                                is_beyond = true;
                                break 'tokens;
                            }
                            open.push((cost(self, next, 1), Reverse(1), met.len()));
                            met.push(Met {
                                node: next,
                                from: place,
                                token,
                                starts,
                            });
                        }
                        _ => {}
                    }
                }
            }
            if let Some(place) = self.completion.by_length.get_mut(length) {
                *place = groups;
            }
            if is_beyond {
                return None;
            }
            if let Some((token, starts)) = found {
                self.note(&met, place, token, starts);
                return Some(true);
            }
            open.push((cost(self, node, length + 1), Reverse(length + 1), place));
        }
        self.completion.dead.extend(seen);
        Some(false)
    }

    /// The states after a token, with one reading each, and whether a piece starts before it.
    fn nexts(&mut self, node: Node, token: TokenId) -> Vec<(Node, bool)> {
        let mut nexts = Vec::new();
        if self.after(node.text, token).is_some() {
            let may_come = [
                self.tables.pairs.allows(node.last, token),
                self.lexing.is_some(),
            ];
            for starts in [false, true] {
                if may_come[usize::from(starts)] {
                    let steps = self.steps(node, token, starts);
                    nexts.extend(steps.into_iter().map(|next| (next, starts)));
                }
            }
        }
        nexts
    }

    /// Notes the way from the beginning of a search to a token that leads to an end.
    fn note(&mut self, met: &[Met], place: usize, token: TokenId, starts: bool) {
        let (mut place, mut way) = (place, (token, starts));
        while let Some(of) = met.get(place) {
            let key = (of.node.text, of.node.readings);
            let ways = self.completion.ways.entry(key).or_default();
            if !ways.contains(&way) {
                ways.push(way);
                self.completion.ways_count += 1;
            }
            way = (of.token, of.starts);
            place = of.from;
        }
    }
}
