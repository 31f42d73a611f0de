//! How far an automaton looks back: the degree of k-locality (002 section 5).

use std::collections::HashSet;

use super::{ExplicitDfa, ExplicitError, Limits, State};

impl ExplicitDfa {
    /// The degree of k-locality, dloc(A, k): the largest number of states in which runs over one and
    /// the same sequence of k tokens can end, wherever they start (002 Definition 4). 0 where no
    /// run has k tokens. Useless states count, so [`trim`](Self::trim) first where they should not.
    ///
    /// A merge never makes it larger, and leaves it the same for k = 1 (Lemma 4, Corollary 2).
    ///
    /// Cost: for k = 1 that of walking the transitions. Beyond that the sets of states that sequences of
    /// up to k - 1 tokens lead to are walked through, which can be exponentially many.
    ///
    /// # Errors
    ///
    /// More such sets of one length than the limits allow states, or larger ones than they allow bytes.
    pub fn locality_degree(&self, k: usize, limits: &Limits) -> Result<usize, ExplicitError> {
        let tokens: Vec<_> = self.tokens().collect();
        let mut sets = HashSet::from([(0..self.state_count() as State).collect::<Vec<_>>()]);
        for _ in 0..k {
            let mut longer = HashSet::new();
            let mut bytes = 0;
            for set in &sets {
                for &token in &tokens {
                    let next = set.iter().filter_map(|&state| self.next(state, token));
                    let mut next: Vec<State> = next.collect();
                    next.sort_unstable();
                    next.dedup();
                    if next.is_empty() || longer.contains(&next) {
                        continue;
                    }
                    bytes += next.len() * size_of::<State>();
                    longer.insert(next);
                    let doing = "the degree of locality";
                    if longer.len() > limits.states {
                        return Err(ExplicitError::states(doing, limits.states));
                    }
                    if bytes > limits.bytes {
                        return Err(ExplicitError::bytes(doing, limits.bytes));
                    }
                }
            }
            sets = longer;
        }
        Ok(sets.iter().map(Vec::len).max().unwrap_or(0))
    }

    /// The smallest k for which the automaton is k-local, so that the last k tokens decide the state
    /// (002 Definition 5): then a sequence has a run exactly if each k + 1 neighbouring tokens of
    /// it have one. `None` where no k will do. 1 or 0 for every universal automaton (Observation 2).
    ///
    /// Two states that one sequence keeps apart for ever are what prevents it; so the answer is the
    /// longest path through pairs of different states. Cost: O(n^2 t) for n states and t tokens.
    ///
    /// # Errors
    ///
    /// More pairs of states than the limits allow states.
    pub fn locality(&self, limits: &Limits) -> Result<Option<usize>, ExplicitError> {
        let count = self.state_count();
        let pairs = count.saturating_mul(count.saturating_sub(1)) / 2;
        if pairs > limits.states {
            let doing = "the locality of an automaton";
            return Err(ExplicitError::states(doing, limits.states));
        }
        if pairs == 0 {
            return Ok(Some(0));
        }
        let tokens: Vec<_> = self.tokens().collect();
        // Pair (a, b) with a < b is number b (b - 1) / 2 + a.
        let states_of = |pair: usize| {
            let mut b = ((2.0 * pair as f64 + 0.25).sqrt() + 0.5) as usize;
            while b * (b - 1) / 2 > pair {
                b -= 1;
            }
            while (b + 1) * b / 2 <= pair {
                b += 1;
            }
            ((pair - b * (b - 1) / 2) as State, b as State)
        };
        let successors = |pair: usize| {
            let (a, b) = states_of(pair);
            tokens.iter().filter_map(move |&token| {
                let (a, b) = (self.next(a, token)?, self.next(b, token)?);
                let (a, b) = (a.min(b) as usize, a.max(b) as usize);
                (a != b).then(|| b * (b - 1) / 2 + a)
            })
        };
        let mut incoming = vec![0_u32; pairs];
        for pair in 0..pairs {
            for next in successors(pair) {
                incoming[next] += 1;
            }
        }
        // Pairs in an order in which each comes after those before it; those on a cycle never come.
        let mut open: Vec<usize> = (0..pairs).filter(|&pair| incoming[pair] == 0).collect();
        let mut depth = vec![0_usize; pairs];
        let mut done = 0;
        while let Some(pair) = open.pop() {
            done += 1;
            for next in successors(pair) {
                depth[next] = depth[next].max(depth[pair] + 1);
                incoming[next] -= 1;
                if incoming[next] == 0 {
                    open.push(next);
                }
            }
        }
        let longest = depth.iter().max().copied().unwrap_or(0);
        Ok((done == pairs).then_some(longest + 1))
    }
}
