//! Two tokenizations of one text: context-invariance (002 Definition 2) and unique tokenizations.
//!
//! Two runs over one text that start with different tokens are never more than a token apart: one of
//! them is *behind*, the other *ahead* by the rest of its last token. So a search through (state behind,
//! state ahead, rest) finds whether two runs come together at one place of the text, and by going
//! breadth-first a pair with the fewest tokens.

use std::collections::{HashMap, HashSet};

use bpe_core::TokenId;

use super::{ExplicitDfa, ExplicitError, Limits, State};

/// Two different sequences of tokens with the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// One sequence.
    pub first: Vec<TokenId>,
    /// The other one.
    pub second: Vec<TokenId>,
}

impl ExplicitDfa {
    /// Two different sequences of one text that the automaton has runs on, from any states, with as few
    /// tokens as possible: what shows that it is not context-invariant (002 Definition 2). `None` where
    /// it is. Algorithm 2 asks for context-invariance and keeps it (Lemma 2).
    ///
    /// Cost: O(n^2 b t) at worst for n states, t tokens and b bytes of tokens; with one state a token
    /// can end in (dloc(A, 1) = 1) O(b t n).
    ///
    /// # Errors
    ///
    /// More places visited than the limits allow states.
    pub fn context_ambiguity(&self, limits: &Limits) -> Result<Option<Ambiguity>, ExplicitError> {
        let mut search = Search::new(self, limits);
        let tokens: Vec<TokenId> = self.tokens().collect();
        let ends: HashMap<TokenId, HashSet<State>> = tokens
            .iter()
            .map(|&token| (token, self.ends(token)))
            .collect();
        for (short, long, rest) in prefix_pairs(self, &tokens) {
            for &behind in &ends[&short] {
                for &ahead in &ends[&long] {
                    search.visit(
                        None,
                        Place {
                            behind,
                            ahead,
                            rest: rest.clone(),
                        },
                        [short, long],
                    )?;
                }
            }
        }
        let found = search.run(|_, place| place.rest.is_empty())?;
        Ok(found.map(|number| search.sequences(number)))
    }

    /// Two different accepted sequences of one text, `None` where each text has one at most. Weaker
    /// than context-invariance, which looks at the runs between any states (002 Remark 1).
    ///
    /// Cost and errors: as [`context_ambiguity`](Self::context_ambiguity).
    pub fn accepted_ambiguity(&self, limits: &Limits) -> Result<Option<Ambiguity>, ExplicitError> {
        let useful = self.trim();
        let mut search = Search::new(&useful, limits);
        let tokens: Vec<TokenId> = useful.tokens().collect();
        // The states, each with the state before it and the token from there, but for the start.
        let mut before = vec![None; useful.state_count()];
        let mut order = vec![useful.start()];
        let mut next = 0;
        while let Some(&state) = order.get(next) {
            next += 1;
            for (token, to) in useful.transitions_from(state) {
                if before[to as usize].is_none() && to != useful.start() {
                    before[to as usize] = Some((state, token));
                    order.push(to);
                }
            }
        }
        let pairs = prefix_pairs(&useful, &tokens);
        for state in order {
            for (short, long, rest) in &pairs {
                let ends = (useful.next(state, *short), useful.next(state, *long));
                if let (Some(behind), Some(ahead)) = ends {
                    let rest = rest.clone();
                    let number = search.visit(
                        None,
                        Place {
                            behind,
                            ahead,
                            rest,
                        },
                        [*short, *long],
                    )?;
                    if let Some(number) = number {
                        search.nodes[number].common = Some(state);
                    }
                }
            }
        }
        let both = |dfa: &ExplicitDfa, place: &Place| {
            let accepting = dfa.is_accepting(place.behind) && dfa.is_accepting(place.ahead);
            place.rest.is_empty() && accepting
        };
        let Some(number) = search.run(both)? else {
            return Ok(None);
        };
        // What both start with.
        let (mut common, mut at) = (Vec::new(), search.common(number));
        while let Some((state, token)) = at.and_then(|state| before[state as usize]) {
            common.push(token);
            at = Some(state);
        }
        common.reverse();
        let mut found = search.sequences(number);
        for sequence in [&mut found.first, &mut found.second] {
            sequence.splice(0..0, common.iter().copied());
        }
        Ok(Some(found))
    }
}

/// The pairs of tokens of which the first is the beginning of the second, with what is left of it.
fn prefix_pairs(dfa: &ExplicitDfa, tokens: &[TokenId]) -> Vec<(TokenId, TokenId, Vec<u8>)> {
    let bytes = |token| dfa.vocabulary().token_bytes(token).unwrap_or_default();
    let mut pairs = Vec::new();
    for &short in tokens {
        for &long in tokens {
            if let Some(rest) = bytes(long).strip_prefix(bytes(short))
                && !rest.is_empty()
            {
                pairs.push((short, long, rest.to_vec()));
            }
        }
    }
    pairs
}

/// Where two runs are: the state of the one that has read less, that of the other, and what text the
/// other has read more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    behind: State,
    ahead: State,
    rest: Vec<u8>,
}

#[derive(Debug)]
struct Node {
    place: Place,
    parent: Option<usize>,
    /// The tokens by which the two runs came here: of the one that was behind, and of the other. The
    /// first node has both, others one.
    tokens: [Option<TokenId>; 2],
    /// Whether the run that is behind here was ahead before.
    swapped: bool,
    /// Where the two runs part.
    common: Option<State>,
}

struct Search<'d> {
    dfa: &'d ExplicitDfa,
    limits: Limits,
    /// Bytes of the rests that are kept.
    bytes: usize,
    tokens: Vec<(TokenId, &'d [u8])>,
    met: HashSet<Place>,
    nodes: Vec<Node>,
}

impl<'d> Search<'d> {
    fn new(dfa: &'d ExplicitDfa, limits: &Limits) -> Self {
        let bytes = |token| dfa.vocabulary().token_bytes(token);
        let tokens = dfa
            .tokens()
            .filter_map(|token| Some((token, bytes(token)?)));
        Self {
            dfa,
            limits: *limits,
            bytes: 0,
            tokens: tokens.collect(),
            met: HashSet::new(),
            nodes: Vec::new(),
        }
    }

    /// Adds a first place, unless it is known.
    fn visit(
        &mut self,
        parent: Option<usize>,
        place: Place,
        tokens: [TokenId; 2],
    ) -> Result<Option<usize>, ExplicitError> {
        self.add(Node {
            place,
            parent,
            tokens: tokens.map(Some),
            swapped: false,
            common: None,
        })
    }

    fn add(&mut self, node: Node) -> Result<Option<usize>, ExplicitError> {
        if !self.met.insert(node.place.clone()) {
            return Ok(None);
        }
        let doing = "the search for two tokenizations of one text";
        if self.nodes.len() >= self.limits.states {
            return Err(ExplicitError::states(doing, self.limits.states));
        }
        self.bytes += 2 * node.place.rest.len();
        if self.bytes > self.limits.bytes {
            return Err(ExplicitError::bytes(doing, self.limits.bytes));
        }
        self.nodes.push(node);
        Ok(Some(self.nodes.len() - 1))
    }

    /// The first place, in breadth-first order, that is a goal.
    fn run(
        &mut self,
        is_goal: impl Fn(&ExplicitDfa, &Place) -> bool,
    ) -> Result<Option<usize>, ExplicitError> {
        let mut number = 0;
        while number < self.nodes.len() {
            let place = self.nodes[number].place.clone();
            if is_goal(self.dfa, &place) {
                return Ok(Some(number));
            }
            for index in 0..self.tokens.len() {
                let (token, bytes) = self.tokens[index];
                let Some(to) = self.dfa.next(place.behind, token) else {
                    continue;
                };
                let (next, swapped) = if let Some(rest) = place.rest.strip_prefix(bytes) {
                    let rest = rest.to_vec();
                    let ahead = place.ahead;
                    (
                        Place {
                            behind: to,
                            ahead,
                            rest,
                        },
                        false,
                    )
                } else if let Some(rest) = bytes.strip_prefix(&place.rest[..]) {
                    let rest = rest.to_vec();
                    let behind = place.ahead;
                    (
                        Place {
                            behind,
                            ahead: to,
                            rest,
                        },
                        true,
                    )
                } else {
                    continue;
                };
                self.add(Node {
                    place: next,
                    parent: Some(number),
                    tokens: [Some(token), None],
                    swapped,
                    common: None,
                })?;
            }
            number += 1;
        }
        Ok(None)
    }

    /// Where the two runs that come to a node part.
    fn common(&self, mut number: usize) -> Option<State> {
        while let Some(parent) = self.nodes[number].parent {
            number = parent;
        }
        self.nodes[number].common
    }

    /// What the two runs that come to a node have read since they parted.
    fn sequences(&self, mut number: usize) -> Ambiguity {
        // Backwards, the sequences of the run that is behind and of the other.
        let (mut behind, mut ahead) = (Vec::new(), Vec::new());
        loop {
            let node = &self.nodes[number];
            if node.swapped {
                core::mem::swap(&mut behind, &mut ahead);
            }
            behind.extend(node.tokens[0]);
            ahead.extend(node.tokens[1]);
            match node.parent {
                Some(parent) => number = parent,
                None => break,
            }
        }
        behind.reverse();
        ahead.reverse();
        Ambiguity {
            first: behind,
            second: ahead,
        }
    }
}
