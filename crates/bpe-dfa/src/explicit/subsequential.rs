//! Transducers that are deterministic in what they read (002 section 6).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bpe_core::{TokenId, Vocabulary};

use super::error::Kind;
use super::partition::{Edge, Graph, Renaming};
use super::{ExplicitError, Limits, State, StringDfa, Transducer};

/// A subsequential transducer: from a state each byte leads to one state at most and writes any number
/// of tokens; at the end of the text the state's *final output* follows.
///
/// For all texts of a dictionary it is a tokenizer that reads each byte once (002 Corollary 3), and that
/// writes each token as soon as no continuation of the text can change it. Useful to see what that takes;
/// not useful for real vocabularies, where the states are too many to be made beforehand.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::explicit::{ExplicitDfa, Limits, Transducer};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "aa")])?;
/// let form = CanonicalForm::new(&Dictionary::from_merges(vocabulary, [(0, 0)])?);
/// let limits = Limits::default();
/// let dfa = ExplicitDfa::universal(&form, &limits)?;
/// let tokenizer = Transducer::new(&dfa, &limits)?.determinize(&limits)?;
/// assert_eq!(tokenizer.state_count(), 2); // Is an a waiting for another one?
/// assert_eq!(tokenizer.apply(b"aaab"), Some(vec![2, 0, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SubsequentialTransducer {
    vocabulary: Arc<Vocabulary>,
    start: State,
    /// Written before anything is read.
    initial: Vec<TokenId>,
    finals: Vec<Option<Vec<TokenId>>>,
    /// Of each state its steps, by byte.
    steps: Vec<Vec<Step>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    byte: u8,
    output: Vec<TokenId>,
    to: State,
}

impl Transducer {
    /// The subsequential transducer of the same relation (Béal and Carton 2002; that there is one for
    /// every proper dictionary is 002 Theorem 4).
    ///
    /// A state is the set of places at which runs over one text are, each with what it has written beyond
    /// what all of them have written. That there are finitely many is the twinning property, which is
    /// checked first.
    ///
    /// Cost: that of the check, and the number of states times what each is a set of. It can be exponential
    /// in the number of rules.
    ///
    /// # Errors
    ///
    /// No twinning property ([`ExplicitError::untwinned`]); a text with two outputs
    /// ([`ExplicitError::text_with_two_outputs`]); more states or memory than the limits allow.
    pub fn determinize(&self, limits: &Limits) -> Result<SubsequentialTransducer, ExplicitError> {
        let transducer = self.trim();
        match transducer.check_twinning(limits) {
            Err(error) if error.limit().is_none() => return Err(error),
            // Where the check is too much, determinization itself still may not be.
            _ => {}
        }
        Subsets::new(&transducer, limits)?.finish()
    }
}

/// Places of runs over one text, with what each has still to write, in order.
type Subset = Vec<(State, Vec<TokenId>)>;

struct Subsets<'t> {
    transducer: &'t Transducer,
    number: HashMap<Subset, State>,
    subsets: Vec<Subset>,
    steps: Vec<Vec<Step>>,
    /// Where each subset was met first, and by which byte.
    parent: Vec<Option<(State, u8)>>,
    /// Memory of the subsets.
    bytes: usize,
}

impl<'t> Subsets<'t> {
    fn new(transducer: &'t Transducer, limits: &Limits) -> Result<Self, ExplicitError> {
        let first = vec![(transducer.start(), Vec::new())];
        let mut result = Self {
            transducer,
            number: HashMap::from([(first.clone(), 0)]),
            subsets: vec![first],
            steps: Vec::new(),
            parent: vec![None],
            bytes: 0,
        };
        let by_byte: Vec<_> = (0..transducer.state_count() as State)
            .map(|state| transducer.steps_by_byte(state))
            .collect();
        while let Some(subset) = result.subsets.get(result.steps.len()).cloned() {
            let from = result.steps.len() as State;
            let mut steps = Vec::new();
            for byte in 0..=255 {
                let mut next: Subset = Vec::new();
                for (state, waiting) in &subset {
                    for edge in by_byte[*state as usize].get(&byte).into_iter().flatten() {
                        let mut waiting = waiting.clone();
                        waiting.extend(edge.output);
                        next.push((edge.to, waiting));
                    }
                }
                if next.is_empty() {
                    continue;
                }
                let output = common_prefix(next.iter().map(|(_, waiting)| &waiting[..])).to_vec();
                for (_, waiting) in &mut next {
                    waiting.drain(..output.len());
                }
                next.sort_unstable();
                next.dedup();
                let to = result.number_of(next, (from, byte), limits)?;
                steps.push(Step { byte, output, to });
            }
            result.steps.push(steps);
        }
        Ok(result)
    }

    fn number_of(
        &mut self,
        subset: Subset,
        parent: (State, u8),
        limits: &Limits,
    ) -> Result<State, ExplicitError> {
        if let Some(&number) = self.number.get(&subset) {
            return Ok(number);
        }
        let number = self.subsets.len() as State;
        let doing = "the determinization of a transducer";
        if self.subsets.len() >= limits.states {
            return Err(ExplicitError::states(doing, limits.states));
        }
        let waiting = subset.iter().map(|(_, waiting)| waiting.len());
        self.bytes += subset.len() * size_of::<(State, Vec<TokenId>)>()
            + waiting.sum::<usize>() * size_of::<TokenId>();
        if self.bytes > limits.bytes {
            return Err(ExplicitError::bytes(doing, limits.bytes));
        }
        self.number.insert(subset.clone(), number);
        self.subsets.push(subset);
        self.parent.push(Some(parent));
        Ok(number)
    }

    fn finish(self) -> Result<SubsequentialTransducer, ExplicitError> {
        let mut finals = Vec::new();
        for (number, subset) in self.subsets.iter().enumerate() {
            let mut end: Option<Vec<TokenId>> = None;
            for (state, waiting) in subset {
                let Some(last) = self.transducer.final_output(*state) else {
                    continue;
                };
                let output = [waiting, last].concat();
                if end.as_ref().is_some_and(|end| *end != output) {
                    let text = self.text_to(number);
                    return Err(ExplicitError(Kind::NotFunctional { text }));
                }
                end = Some(output);
            }
            finals.push(end);
        }
        Ok(SubsequentialTransducer {
            vocabulary: Arc::clone(self.transducer.vocabulary()),
            start: 0,
            initial: Vec::new(),
            finals,
            steps: self.steps,
        })
    }

    fn text_to(&self, mut number: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some((before, byte)) = self.parent[number] {
            text.push(byte);
            number = before as usize;
        }
        text.reverse();
        text
    }
}

impl SubsequentialTransducer {
    /// The vocabulary whose tokens are written.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The number of states.
    pub fn state_count(&self) -> usize {
        self.steps.len()
    }

    /// The state in which reading starts.
    pub fn start(&self) -> State {
        self.start
    }

    /// What is written before anything is read. Empty, except after [`earliest`](Self::earliest).
    pub fn initial_output(&self) -> &[TokenId] {
        &self.initial
    }

    /// What `byte` in `state` writes and the state after it, where there is one. O(log of the steps).
    pub fn step(&self, state: State, byte: u8) -> Option<(&[TokenId], State)> {
        let steps = self.steps.get(state as usize)?;
        let index = steps.binary_search_by_key(&byte, |step| step.byte).ok()?;
        Some((&steps[index].output, steps[index].to))
    }

    /// What is written if the text ends in `state`, `None` where it may not.
    pub fn finish(&self, state: State) -> Option<&[TokenId]> {
        self.finals.get(state as usize)?.as_deref()
    }

    /// The steps from `state`: byte, what is written, and the next state.
    pub fn steps_from(&self, state: State) -> impl Iterator<Item = (u8, &[TokenId], State)> {
        let steps = self.steps.get(state as usize);
        steps
            .into_iter()
            .flatten()
            .map(|step| (step.byte, &step.output[..], step.to))
    }

    /// The output for `text`, `None` where it has none. O(n) steps, one for each byte.
    pub fn apply(&self, text: &[u8]) -> Option<Vec<TokenId>> {
        let mut output = self.initial.clone();
        let mut state = self.start;
        for &byte in text {
            let (tokens, next) = self.step(state, byte)?;
            output.extend(tokens);
            state = next;
        }
        output.extend(self.finish(state)?);
        Some(output)
    }

    /// The transducer for the texts of `texts` alone: the composition of the texts' automaton with this
    /// transducer. States that no accepted text passes are left out.
    ///
    /// Cost: O(p b) for the p pairs of states that a text leads to.
    ///
    /// # Errors
    ///
    /// More pairs of states than the limits allow states.
    pub fn compose(&self, texts: &StringDfa, limits: &Limits) -> Result<Self, ExplicitError> {
        let first = (self.start, texts.start());
        let mut number = HashMap::from([(first, 0)]);
        let mut pairs = vec![first];
        let mut result = Self {
            vocabulary: Arc::clone(&self.vocabulary),
            start: 0,
            initial: self.initial.clone(),
            finals: Vec::new(),
            steps: Vec::new(),
        };
        while let Some(&(state, place)) = pairs.get(result.steps.len()) {
            let mut steps = Vec::new();
            for (byte, output, next) in self.steps_from(state) {
                let Some(place) = texts.next(place, byte) else {
                    continue;
                };
                let to = *number.entry((next, place)).or_insert_with(|| {
                    pairs.push((next, place));
                    pairs.len() as State - 1
                });
                let output = output.to_vec();
                steps.push(Step { byte, output, to });
            }
            if pairs.len() > limits.states {
                let doing = "a composition";
                return Err(ExplicitError::states(doing, limits.states));
            }
            let end = self.finish(state).filter(|_| texts.is_accepting(place));
            result.finals.push(end.map(<[TokenId]>::to_vec));
            result.steps.push(steps);
        }
        let trimmed = result.graph(|_| 0, |_| 0).trim();
        Ok(result.renamed(&trimmed))
    }

    /// The same function, written as early as any transducer can: what all continuations of a text have
    /// in common is written at once, some of it before the first byte.
    ///
    /// For all texts of a dictionary [`determinize`](Transducer::determinize) gives this already: a text
    /// may end anywhere, and all it has written is common to all continuations.
    pub fn earliest(&self) -> Self {
        let trimmed = self.graph(|_| 0, |_| 0).trim();
        let mut result = self.renamed(&trimmed);
        let common = result.common_outputs();
        for (state, end) in result.finals.iter_mut().enumerate() {
            if let Some(end) = end {
                end.drain(..common[state].len());
            }
        }
        for (state, steps) in result.steps.iter_mut().enumerate() {
            for step in steps {
                step.output.extend(&common[step.to as usize]);
                step.output.drain(..common[state].len());
            }
        }
        result.initial.extend(&common[result.start as usize]);
        result
    }

    /// Of each state what all that is written from it on starts with. All states are of use.
    fn common_outputs(&self) -> Vec<Vec<TokenId>> {
        let count = self.state_count();
        let mut incoming = vec![Vec::new(); count];
        for (from, steps) in self.steps.iter().enumerate() {
            for step in steps {
                incoming[step.to as usize].push(from);
            }
        }
        // Some output from each state first; then shortened until nothing changes.
        let mut common: Vec<Option<Vec<TokenId>>> = self.finals.clone();
        let mut open: VecDeque<usize> = (0..count).filter(|&s| common[s].is_some()).collect();
        let mut changed = vec![false; count];
        for &state in &open {
            changed[state] = true;
        }
        while let Some(state) = open.pop_front() {
            changed[state] = false;
            for &from in &incoming[state] {
                let outputs = self.steps[from].iter().filter_map(|step| {
                    let rest = common[step.to as usize].as_ref()?;
                    Some([&step.output[..], rest].concat())
                });
                let mut outputs: Vec<Vec<TokenId>> = outputs.collect();
                outputs.extend(self.finals[from].clone());
                let new = common_prefix(outputs.iter().map(|output| &output[..])).to_vec();
                if common[from].as_ref() != Some(&new) {
                    common[from] = Some(new);
                    if !changed[from] {
                        changed[from] = true;
                        open.push_back(from);
                    }
                }
            }
        }
        common.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The smallest transducer of the same function, [`earliest`](Self::earliest) first, its states in the
    /// order in which a breadth-first search by bytes meets them: over one vocabulary two are equal
    /// exactly if their functions are.
    pub fn minimize(&self) -> Self {
        let earliest = self.earliest();
        let mut labels: HashMap<(u8, Vec<TokenId>), u32> = HashMap::new();
        let mut names: Vec<(u8, Vec<TokenId>)> = Vec::new();
        for step in earliest.steps.iter().flatten() {
            names.push((step.byte, step.output.clone()));
        }
        names.sort_unstable();
        names.dedup();
        for (label, name) in (0..).zip(names) {
            labels.insert(name, label);
        }
        let mut classes: HashMap<&[TokenId], u32> = HashMap::new();
        for end in earliest.finals.iter().flatten() {
            let class = classes.len() as u32;
            classes.entry(end).or_insert(class);
        }
        let label = |step: &Step| labels.get(&(step.byte, step.output.clone())).copied();
        let class = |end: &Vec<TokenId>| classes.get(&end[..]).copied();
        let minimal = earliest
            .graph(
                |step| label(step).unwrap_or(0),
                |end| class(end).unwrap_or(0),
            )
            .minimal();
        earliest.renamed(&minimal)
    }

    /// Whether nothing is ever written at the end of a text (002 Definition 6). If
    /// [`minimize`](Self::minimize) gives one that is not sequential, no transducer of the function is.
    pub fn is_sequential(&self) -> bool {
        self.finals.iter().flatten().all(Vec::is_empty)
    }

    /// Whether `other` is the same function, over the same vocabulary.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.minimize(), other.minimize());
        ours.start == theirs.start
            && ours.finals == theirs.finals
            && ours.steps == theirs.steps
            // Where nothing is accepted the initial output says nothing.
            && (ours.initial == theirs.initial || ours.finals == [None])
    }

    fn graph(&self, label: impl Fn(&Step) -> u32, class: impl Fn(&Vec<TokenId>) -> u32) -> Graph {
        let mut edges = Vec::new();
        for (from, steps) in (0..).zip(&self.steps) {
            edges.extend(steps.iter().map(|step| Edge {
                from,
                label: label(step),
                to: step.to,
            }));
        }
        Graph {
            start: self.start,
            classes: self
                .finals
                .iter()
                .map(|end| end.as_ref().map(&class))
                .collect(),
            edges,
        }
    }

    fn renamed(&self, renaming: &Renaming) -> Self {
        let mut result = Self {
            vocabulary: Arc::clone(&self.vocabulary),
            start: renaming.new_of[self.start as usize].unwrap_or(0),
            initial: self.initial.clone(),
            finals: Vec::new(),
            steps: Vec::new(),
        };
        for state in renaming.representatives() {
            result.finals.push(self.finals[state as usize].clone());
            let steps = self.steps[state as usize].iter().filter_map(|step| {
                let (_, to) = renaming.ends(state, step.to)?;
                let (byte, output) = (step.byte, step.output.clone());
                Some(Step { byte, output, to })
            });
            result.steps.push(steps.collect());
        }
        result
    }
}

/// What all sequences start with. Empty where there is none.
fn common_prefix<'t>(sequences: impl IntoIterator<Item = &'t [TokenId]>) -> &'t [TokenId] {
    let mut sequences = sequences.into_iter();
    let Some(first) = sequences.next() else {
        return &[];
    };
    sequences.fold(first, |common, sequence| {
        let length = common
            .iter()
            .zip(sequence)
            .take_while(|(a, b)| a == b)
            .count();
        &common[..length]
    })
}
