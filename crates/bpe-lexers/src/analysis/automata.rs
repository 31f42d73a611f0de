//! The engine on regex-automata against the meaning of its pattern, for texts of all lengths.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, PatternID};

use super::cells::{Cell, Cells};
use super::machine::Machine;
use super::scanner::{Scanner, Step};
use super::{AnalysisError, parse, product};
use crate::{AutomataLexer, Pattern};

/// Returns the shortest text that [`AutomataLexer`](crate::AutomataLexer) and the pattern's meaning
/// cut into different spans; none if they are equal on every text.
///
/// The states of the engine's DFA are walked, over all bytes of every character; with its rule for the
/// trailing look-ahead they make a second automaton, which is compared with that of the pattern
/// as [`difference`](crate::difference) compares two. Where the DFA finds no match at the start, the
/// engine goes on with a search that is not part of this, so the pattern should be one that matches
/// everywhere.
///
/// Takes about a second: a million characters for each state.
///
/// # Errors
///
/// The pattern cannot be analysed, or the engine cannot run it.
pub fn automata_difference(pattern: &Pattern) -> Result<Option<String>, AnalysisError> {
    let mut classes = Vec::new();
    let node = parse::parse(pattern.as_str(), &mut classes)?;
    let white = parse::parse(r"\s", &mut classes)?;
    // The DFA tells a match one byte later, which is inside a character of several bytes, so its
    // states tell those from ASCII.
    parse::parse(r"[\x00-\x7F]", &mut classes)?;
    let (cells, members) = Cells::new(&classes)?;
    let meaning = Machine::new(&Scanner::new(&node, &members, cells.count())?)?;
    let parse::Node::Class(white) = white else {
        return Err(AnalysisError::unsupported("no class of white space"));
    };
    let mut engine = AutomataLexer::new(pattern)
        .map_err(|error| AnalysisError::unsupported(format_args!("no such engine: {error}")))?;
    let (dfa, cache, shortened) = engine.parts();
    let mut walk = Walk {
        dfa,
        cache,
        shortened,
        cells: &cells,
        white: &members[white],
    };
    let engine = Machine::new(&walk.scanner()?)?;
    Ok(product::difference(&engine, &meaning).map(|text| cells.text(&text)))
}

struct Walk<'w> {
    dfa: &'w DFA,
    cache: &'w mut Cache,
    /// The branch whose matches lose their last character.
    shortened: Option<PatternID>,
    cells: &'w Cells,
    white: &'w [bool],
}

/// A state of the DFA, and the number of characters before it, of which only one and more than one
/// count.
type Place = (LazyStateID, u8);

impl Walk<'_> {
    fn scanner(&mut self) -> Result<Scanner, AnalysisError> {
        let input = Input::new("").anchored(Anchored::Yes);
        let start = self
            .dfa
            .start_state_forward(self.cache, &input)
            .map_err(AnalysisError::unsupported)?;
        let mut numbers: HashMap<Place, u32> = HashMap::from([((start, 0), 0)]);
        let mut places = vec![(start, 0_u8)];
        let mut targets: HashMap<LazyStateID, Vec<LazyStateID>> = HashMap::new();
        let mut steps = Vec::new();
        while let Some(&(state, length)) = places.get(steps.len()) {
            let branch = self.branch(state)?;
            let row = match targets.entry(state) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.targets(state)?),
            };
            let mut step_row = Vec::with_capacity(self.cells.count() + 1);
            for symbol in 0..=self.cells.count() {
                let is_end = symbol == self.cells.count();
                let shortens = branch.is_some() && branch == self.shortened;
                let matches =
                    branch.is_some() && (!shortens || is_end || length == 1 || self.white[symbol]);
                let next = row.get(symbol).filter(|next| !next.is_dead());
                let next = next.map(|&next| {
                    let place = (next, (length + 1).min(2));
                    let count = places.len() as u32;
                    *numbers.entry(place).or_insert_with(|| {
                        places.push(place);
                        count
                    })
                });
                step_row.push(Step { matches, next });
            }
            steps.push(step_row);
        }
        if self.cache.clear_count() > 0 {
            return Err(AnalysisError::too_large("the engine has dropped states"));
        }
        Scanner::from_steps(steps, 0)
    }

    fn next(&mut self, state: LazyStateID, byte: u8) -> Result<LazyStateID, AnalysisError> {
        let next = self.dfa.next_state(self.cache, state, byte);
        let next = next.map_err(AnalysisError::too_large)?;
        match next.is_quit() {
            true => Err(AnalysisError::unsupported(
                "bytes at which the engine stops",
            )),
            false => Ok(next),
        }
    }

    /// The branch of which a match ends in this state. The DFA tells that one byte later, whichever
    /// byte that is.
    fn branch(&mut self, state: LazyStateID) -> Result<Option<PatternID>, AnalysisError> {
        let branch_of = |next: LazyStateID, cache: &Cache| {
            next.is_match()
                .then(|| self.dfa.match_pattern(cache, next, 0))
        };
        let end = self.dfa.next_eoi_state(self.cache, state);
        let end = end.map_err(AnalysisError::too_large)?;
        let branch = branch_of(end, self.cache);
        for byte in 0..=u8::MAX {
            let next = self.dfa.next_state(self.cache, state, byte);
            let next = next.map_err(AnalysisError::too_large)?;
            if branch_of(next, self.cache) != branch {
                return Err(AnalysisError::unsupported("a look-ahead in the engine"));
            }
        }
        Ok(branch)
    }

    /// The state after a character of each cell, which must be the same for all of its
    /// characters.
    fn targets(&mut self, state: LazyStateID) -> Result<Vec<LazyStateID>, AnalysisError> {
        let mut row: Vec<Option<LazyStateID>> = vec![None; self.cells.count()];
        let mut prefix = ([0_u8; 3], 0, state);
        for character in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            let (last, before) = match bytes.split_last() {
                Some(parts) => parts,
                None => continue,
            };
            // 64 characters in a row share all bytes but the last.
            if prefix.0.get(..prefix.1) != Some(before) {
                let mut place = state;
                for (index, &byte) in before.iter().enumerate() {
                    place = self.next(place, byte)?;
                    if index > 0 && place.is_match() {
                        return Err(AnalysisError::unsupported("a match inside a character"));
                    }
                }
                prefix.0[..before.len()].copy_from_slice(before);
                prefix.1 = before.len();
                prefix.2 = place;
            }
            let target = self.next(prefix.2, *last)?;
            if !before.is_empty() && target.is_match() {
                return Err(AnalysisError::unsupported("a match inside a character"));
            }
            let cell = self.cells.of(character);
            let kept = row[usize::from(cell as Cell)].get_or_insert(target);
            if *kept != target {
                return Err(AnalysisError::unsupported(format_args!(
                    "a cell of which the engine tells {character:?} apart"
                )));
            }
        }
        Ok(row.into_iter().flatten().collect())
    }
}
