//! Merging long spans window by window.

use alloc::vec::Vec;

use super::merge_loop::MergeLoop;
use crate::pair_table::PairTable;
use crate::vocabulary::TokenId;

/// Atoms of a window: what merging it needs stays in a second-level cache.
const WINDOW: usize = 1 << 12;

/// How far a window reaches back into the one before.
const OVERLAP: usize = 1 << 8;

/// A merge loop for spans of every length, and its scratch memory: some 30 bytes an atom of a window and 4 for
/// each token of the span; 30 bytes an atom of the span where windows do not join.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    merge_loop: MergeLoop,
    /// The tokens so far.
    tokens: Vec<TokenId>,
    /// Of the last of them, where they end among the atoms: of all that end behind the last window's start.
    ends: Vec<usize>,
    /// The tokens of the window.
    window: Vec<TokenId>,
}

impl Windows {
    /// Merges `tokens[start..]`: O(n log n), and for long spans window by window, so that the time an atom
    /// takes does not grow with the span.
    pub(crate) fn merge_tail(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
    ) {
        if tokens.len() - start <= 2 * WINDOW || !self.merge(table, tokens, start, WINDOW, OVERLAP)
        {
            self.merge_loop.merge_tail(table, tokens, start);
        }
    }

    /// Merges `tokens[start..]` in windows of `window` atoms that reach back over some `overlap`
    /// atoms each, to an end of a token. False, and nothing done, where two windows do not join.
    ///
    /// Let the tokens so far be those of the atoms before `e`, and those of a window be those of the
    /// atoms from `b < e` to `f`. If both hold the same token at the same place, then the first up to
    /// it and the second after it are the tokens of the atoms before `f` (docs/theory.md, lemma 5: under
    /// the semantics of all encoders here, for every dictionary).
    fn merge(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
        window: usize,
        overlap: usize,
    ) -> bool {
        let count = tokens.len() - start;
        self.tokens.clear();
        self.ends.clear();
        let mut from = 0;
        loop {
            let to = count.min(from + window);
            self.window.clear();
            self.window
                .extend_from_slice(&tokens[start + from..start + to]);
            let ends = self.merge_loop.merge_with_ends(table, &mut self.window);
            let (shared, after) = match from {
                0 => (0, 0),
                _ => match shared_token(from, &self.tokens, &self.ends, &self.window, ends) {
                    Some(found) => found,
                    None => return false,
                },
            };
            let before = self.ends.partition_point(|&end| end <= from);
            let so_far = self.tokens.len() - self.ends.len();
            self.tokens.truncate(so_far + shared);
            self.tokens.extend_from_slice(&self.window[after..]);
            self.ends.truncate(shared);
            self.ends.drain(..before);
            self.ends
                .extend(ends[after..].iter().map(|&end| from + end as usize));
            if to == count {
                tokens.truncate(start);
                tokens.extend_from_slice(&self.tokens);
                return true;
            }
            // The end of a token at some distance before the end of the window.
            let target = to - overlap.min(to);
            let before = self.ends.partition_point(|&end| end <= target);
            match before.checked_sub(1) {
                Some(last) => from = self.ends[last],
                None => return false, // One token is as long as the window.
            }
        }
    }
}

/// The first token that both hold at the same place behind atom `from`: how many of the tokens so far
/// with known ends, and how many tokens of the window, end with it or before.
fn shared_token(
    from: usize,
    tokens: &[TokenId],
    ends: &[usize],
    window: &[TokenId],
    window_ends: &[u32],
) -> Option<(usize, usize)> {
    let tokens = &tokens[tokens.len() - ends.len()..];
    let (mut so_far, mut of_window) = (ends.partition_point(|&end| end <= from), 0);
    let (mut so_far_start, mut window_start) = (from, from);
    loop {
        let end = *ends.get(so_far)?;
        let window_end = from + *window_ends.get(of_window)? as usize;
        let is_same = so_far_start == window_start && end == window_end;
        if is_same && tokens[so_far] == window[of_window] {
            return Some((so_far + 1, of_window + 1));
        }
        if end <= window_end {
            so_far += 1;
            so_far_start = end;
        }
        if window_end <= end {
            of_window += 1;
            window_start = window_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::CanonicalForm;
    use crate::dictionary::Dictionary;
    use crate::random::Random;
    use crate::vocabulary::Vocabulary;

    impl Random {
        /// Over some letters, which are the first tokens. In a proper one sides are made by earlier rules,
        /// otherwise the rules are shuffled.
        fn dictionary(&mut self, letters: usize, proper: bool) -> CanonicalForm {
            let mut tokens: Vec<Vec<u8>> =
                (0..letters as u8).map(|letter| [letter].into()).collect();
            let mut merges = Vec::new();
            for _ in 0..self.below(14) {
                let (left, right) = (self.below(tokens.len()), self.below(tokens.len()));
                let product = [&tokens[left][..], &tokens[right]].concat();
                if product.len() <= 6 && !tokens.contains(&product) {
                    tokens.push(product);
                    merges.push((left as u32, right as u32));
                }
            }
            if !proper {
                for end in (1..merges.len()).rev() {
                    merges.swap(end, self.below(end + 1));
                }
            }
            let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
            let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
            CanonicalForm::new(&dictionary)
        }

        /// Mostly a word again and again.
        fn atoms(&mut self, letters: usize, most: usize) -> Vec<TokenId> {
            let period = 1 + self.below(8);
            let word: Vec<TokenId> = (0..period).map(|_| self.below(letters) as u32).collect();
            let count = self.below(most);
            let atom = |at| match self.below(6) {
                0 => self.below(letters) as u32,
                _ => word[at % period],
            };
            (0..count).map(atom).collect()
        }
    }

    /// How many of the spans that had to be joined were.
    fn share_that_joins(dictionaries: usize, proper: bool) -> f64 {
        let mut random = Random(1);
        let mut windows = Windows::default();
        let (mut joined, mut all, mut improper) = (0, 0, 0);
        for _ in 0..dictionaries {
            let letters = 2 + random.below(2);
            let form = random.dictionary(letters, proper);
            improper += usize::from(!form.is_proper());
            for _ in 0..20 {
                let atoms = random.atoms(letters, 120);
                let mut whole = atoms.clone();
                let table = form.pair_table();
                windows.merge_loop.sweep_tail(table, &mut whole, 0);
                for (window, overlap) in [(7, 3), (12, 6), (30, 12), (40, 1)] {
                    let mut tokens = alloc::vec![9];
                    tokens.extend_from_slice(&atoms);
                    let done = windows.merge(table, &mut tokens, 1, window, overlap);
                    let expected = if done { &whole } else { &atoms };
                    assert_eq!(tokens[1..], *expected, "{atoms:?}");
                    assert_eq!(tokens[0], 9);
                    if atoms.len() > window {
                        all += 1;
                        joined += usize::from(done);
                    }
                }
            }
        }
        assert_eq!(improper > dictionaries / 4, !proper);
        joined as f64 / all as f64
    }

    #[test]
    fn windows_give_what_the_whole_gives_and_mostly_join() {
        let share = share_that_joins(300, true);
        assert!((0.8..1.0).contains(&share), "{share}");
    }

    #[test]
    fn so_they_do_where_the_dictionary_is_improper() {
        let share = share_that_joins(300, false);
        assert!((0.8..1.0).contains(&share), "{share}");
    }

    #[test]
    fn long_spans_give_what_the_flat_array_gives() {
        let mut random = Random(2);
        let mut windows = Windows::default();
        for number in 0..40 {
            let letters = 1 + random.below(3);
            let form = random.dictionary(letters, number % 2 == 0);
            let atoms = random.atoms(letters, 4 * WINDOW);
            let (mut tokens, mut expected) = (atoms.clone(), atoms);
            let table = form.pair_table();
            windows.merge_tail(table, &mut tokens, 0);
            windows.merge_loop.sweep_tail(table, &mut expected, 0);
            assert_eq!(tokens, expected, "{:?}", form.rules().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_token_as_long_as_a_window_is_no_end() {
        // Twice as long from rule to rule, up to four windows.
        let doubled = (WINDOW * 4).ilog2();
        let tokens = (0..=doubled).map(|power| (power, alloc::vec![b'a'; 1 << power]));
        let vocabulary = Vocabulary::new(tokens).expect("distinct");
        let merges = (0..doubled).map(|power| (power, power));
        let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
        let form = CanonicalForm::new(&dictionary);
        let mut tokens = alloc::vec![0; 12 * WINDOW + 5];
        Windows::default().merge_tail(form.pair_table(), &mut tokens, 0);
        assert_eq!(tokens, [doubled, doubled, doubled, 2, 0]);
    }
}
