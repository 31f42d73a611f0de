//! Are two dictionaries the same function on every piece that a pre-tokenizer makes?

use std::cell::OnceCell;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bpe_core::{Atoms, CanonicalForm, TokenId};

use crate::boundaries::{Boundaries, Lexing, NO_READINGS, Readings};
use crate::equivalence::{Equivalence, Matching, Witness, differing_rows, relations};
use crate::error::{Kind, RelationError};
use crate::explicit::StringDfa;
use crate::forests::NONE;
use crate::pairs::{PairRelation, StateId};
use crate::whole_pieces::whole_tokens;

/// Differing pairs that are alone in no piece, of which others are looked for around them.
const MOST_DOUBTFUL: usize = 1 << 12;

/// Whether two dictionaries cut all pieces in the same places that these boundaries can make, or a text
/// on which they do not. What no piece contains does not count. Of a dictionary with whole-piece look-up, a
/// piece that is a token is that one token.
///
/// A piece that they tokenize in different ways has, on one side, a token that is canonical there alone,
/// or a pair of neighbours that is valid there alone; and a piece whose tokens have one is tokenized in
/// different ways. So each such token and pair is looked for in the tokens of a piece: alone in it, then
/// behind other tokens of the piece and before others. Pieces that are a token on both sides are left out, and
/// those that whole-piece look-up makes a token on one side alone are looked for first. `starts` are states of the boundaries from which
/// every piece can be met that there is.
///
/// Cost: [`equivalent`](crate::equivalent), then a walk over the bytes of each differing pair, until one is
/// in a piece. Where none is alone in one, a search over what can stand around them, which ends after
/// `limit` tokens have been tried.
///
/// # Errors
///
/// As [`equivalent`](crate::equivalent).
pub fn equivalent_in_pieces(
    first: &Arc<CanonicalForm>,
    second: &Arc<CanonicalForm>,
    boundaries: Arc<dyn Boundaries>,
    starts: &[u64],
    limit: usize,
) -> Result<Equivalence, RelationError> {
    let forms = [first, second];
    for form in forms {
        if form.atoms() != Atoms::Bytes {
            return Err(RelationError(Kind::NotOverBytes));
        }
    }
    let pairs = relations(forms)?;
    let matching = Matching::new(forms, &pairs);
    let mut sides = [0, 1].map(|side: usize| {
        let mut lexing = Lexing::with_whole_pieces(Arc::clone(&boundaries), forms[side]);
        let starts = lexing.set(starts);
        Side {
            form: forms[side],
            pairs: &pairs[side],
            other: (forms[1 - side], &pairs[1 - side]),
            lexing,
            all: StringDfa::universal(),
            starts,
            left: limit,
        }
    });
    let mut same_ids = matching.same_ids;
    for side in &mut sides {
        match side.whole_pieces() {
            Wholes::Different(text) => return Ok(different(text)),
            Wholes::Same { ids } => same_ids &= ids,
        }
    }
    let mut doubtful: Vec<(usize, Vec<TokenId>)> = Vec::new();
    let mut too_many = false;
    let candidates = Candidates {
        matching: &matching,
        forms,
        pairs: &pairs,
        lefts: OnceCell::new(),
    };
    // Most that are in a piece at all are one alone: nothing has to be looked for around them.
    let alone = candidates.find_map(&mut |number: usize, tokens| sides[number].alone(tokens));
    let found = alone.or_else(|| {
        candidates.find_map(&mut |number: usize, tokens| {
            let side = &mut sides[number];
            let found = side.complete(&side.first(), tokens);
            if found.is_none() {
                match doubtful.len() < MOST_DOUBTFUL {
                    true => doubtful.push((number, tokens.to_vec())),
                    false => too_many = true,
                }
            }
            found
        })
    });
    let mut unknown = None;
    let text = found.or_else(|| {
        let mut text = None;
        for side in [0, 1] {
            let wanted: Vec<&[TokenId]> = doubtful
                .iter()
                .filter(|candidate| candidate.0 == side)
                .map(|candidate| &candidate.1[..])
                .collect();
            let (found, is_whole) = sides[side].behind_others(&wanted);
            if found.is_some() {
                text = found;
                break;
            }
            if let (true, Some(tokens)) = (!is_whole || too_many, wanted.first()) {
                unknown = unknown.take().or(Some(sides[side].text(tokens)));
            }
        }
        text
    });
    Ok(match (text, unknown) {
        (Some(text), _) => different(text),
        (None, Some(text)) => Equivalence::Unknown { text },
        (None, None) => Equivalence::Same { same_ids },
    })
}

fn different(text: Vec<u8>) -> Equivalence {
    Equivalence::Different(Witness {
        first: None,
        second: None,
        text,
    })
}

/// The tokens and pairs of one side that the other does not have.
struct Candidates<'c> {
    matching: &'c Matching<'c>,
    forms: [&'c Arc<CanonicalForm>; 2],
    pairs: &'c [PairRelation; 2],
    /// See [`Candidates::lefts`].
    lefts: OnceCell<Vec<usize>>,
}

impl Candidates<'_> {
    /// The places of the tokens behind which the sides allow different ones, the shortest first.
    fn lefts(&self) -> &[usize] {
        self.lefts.get_or_init(|| {
            let differing: HashSet<[u32; 2]> = differing_rows(self.matching, self.pairs)
                .into_iter()
                .map(|(_, _, rows)| rows)
                .collect();
            let tokens = &self.matching.tokens;
            let mut lefts: Vec<usize> = (0..tokens.len())
                .filter(|&place| differing.contains(&tokens[place].rows))
                .collect();
            lefts.sort_by_key(|&place| tokens[place].bytes.len());
            lefts
        })
    }

    /// The first that `visit` returns, for the side and the tokens of each: the tokens of each side, and
    /// of one of them the pairs. A piece that is tokenized in different ways has one of these.
    fn find_map<T>(&self, visit: &mut dyn FnMut(usize, &[TokenId]) -> Option<T>) -> Option<T> {
        for side in [0, 1] {
            for (place, &id) in self.matching.places[side]
                .iter()
                .zip(self.pairs[side].ids_by_number())
            {
                if *place == NONE
                    && let found @ Some(_) = visit(side, &[id])
                {
                    return found;
                }
            }
        }
        let id = |bytes| self.forms[0].vocabulary().id_of(bytes).unwrap_or_default();
        for &left in self.lefts() {
            let left = self.matching.tokens[left];
            let mut rights = Vec::new();
            self.pairs[1]
                .rows()
                .for_each_span(left.rows[1], |start, end| {
                    for &place in &self.matching.places[1][start as usize..end as usize] {
                        if let Some(token) = self.matching.tokens.get(place as usize)
                            && !self.pairs[0].forbids(left.rows[0], token.numbers[0])
                        {
                            rights.push(token.bytes);
                        }
                    }
                });
            rights.sort_by_key(|bytes| bytes.len());
            for right in rights {
                if let found @ Some(_) = visit(0, &[id(left.bytes), id(right)]) {
                    return found;
                }
            }
        }
        None
    }
}

/// Tokens of one piece so far, from its beginning: what follows depends on the readings and on the last
/// token.
#[derive(Clone)]
struct Node {
    readings: Readings,
    last: StateId,
    tokens: Vec<TokenId>,
}

/// What the tokens of one side that only a whole piece becomes are on the other.
enum Wholes {
    /// A piece with this text is one token here alone.
    Different(Vec<u8>),
    /// One token each, and whether with the same id.
    Same { ids: bool },
}

struct Side<'s> {
    form: &'s Arc<CanonicalForm>,
    pairs: &'s PairRelation,
    /// The other side.
    other: (&'s CanonicalForm, &'s PairRelation),
    lexing: Lexing,
    /// All texts.
    all: StringDfa,
    starts: Readings,
    /// Tokens that may still be tried.
    left: usize,
}

impl Side<'_> {
    /// Before the first token of a piece.
    fn first(&self) -> Node {
        Node {
            readings: self.starts,
            last: self.pairs.start_state(),
            tokens: Vec::new(),
        }
    }

    /// The token that a piece with this text is on the other side, if it is one.
    fn on_the_other(&self, piece: &[u8]) -> Option<TokenId> {
        let (form, pairs) = self.other;
        let id = form.vocabulary().id_of(piece)?;
        (form.whole_piece_lookup() || pairs.is_canonical(id)).then_some(id)
    }

    /// Compares the tokens that only a whole piece becomes with what the other side makes of such pieces, as
    /// far as there are such.
    fn whole_pieces(&mut self) -> Wholes {
        let mut ids = true;
        for id in whole_tokens(self.form) {
            let bytes = self.form.vocabulary().token_bytes(id).unwrap_or_default();
            let other = self.on_the_other(bytes);
            if other == Some(id) {
                continue;
            }
            let readings = self.lexing.after_whole(self.starts, bytes);
            let readings = self.lexing.prune(&self.all, 0, readings);
            if let Some(end) = self.lexing.end(&self.all, readings) {
                match other {
                    Some(_) => ids = false,
                    None => return Wholes::Different([bytes, &end[..]].concat()),
                }
            }
        }
        Wholes::Same { ids }
    }

    fn text(&self, tokens: &[TokenId]) -> Vec<u8> {
        let bytes = tokens
            .iter()
            .filter_map(|&token| self.form.vocabulary().token_bytes(token));
        bytes.flatten().copied().collect()
    }

    /// The same piece with another token.
    fn next(&mut self, node: &Node, token: TokenId) -> Option<Node> {
        if !self.pairs.allows(node.last, token) {
            return None;
        }
        let bytes = self.form.vocabulary().token_bytes(token)?;
        let readings = self
            .lexing
            .after(node.readings, bytes, node.tokens.is_empty());
        // Any text may follow.
        let readings = self.lexing.prune(&self.all, 0, readings);
        (readings != NO_READINGS && !bytes.is_empty()).then_some(Node {
            readings,
            last: self.pairs.state_after(token)?,
            tokens: [&node.tokens[..], &[token]].concat(),
        })
    }

    /// The text of a piece that has these tokens and no others.
    fn alone(&mut self, tokens: &[TokenId]) -> Option<Vec<u8>> {
        let node = self.after(&self.first(), tokens)?;
        self.ended(&node)
    }

    /// The same piece with more tokens.
    fn after(&mut self, node: &Node, tokens: &[TokenId]) -> Option<Node> {
        let mut node = node.clone();
        for &token in tokens {
            node = self.next(&node, token)?;
        }
        Some(node)
    }

    /// A text with this piece, where it can end here and is not the same on the other side.
    fn ended(&mut self, node: &Node) -> Option<Vec<u8>> {
        let text = self.text(&node.tokens);
        // One token here, and by whole-piece look-up there.
        if node.tokens.len() == 1 && self.on_the_other(&text).is_some() {
            return None;
        }
        let end = self.lexing.end(&self.all, node.readings)?;
        Some([text, end].concat())
    }

    /// The text of a piece that goes on with these tokens, and then with none or some others.
    fn complete(&mut self, node: &Node, tokens: &[TokenId]) -> Option<Vec<u8>> {
        let node = self.after(node, tokens)?;
        let key = |node: &Node| (node.readings, node.last, node.tokens.len() == 1);
        let mut seen = HashSet::from([key(&node)]);
        let mut open = VecDeque::from([node]);
        while let Some(node) = open.pop_front() {
            if let found @ Some(_) = self.ended(&node) {
                return found;
            }
            for index in 0..self.pairs.len() as u32 {
                let token = self.pairs.token_with_number(index)?;
                self.left = self.left.checked_sub(1)?;
                if let Some(next) = self.next(&node, token)
                    && seen.insert(key(&next))
                {
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// The text of a piece that has one of these behind other tokens; and whether all was looked through.
    fn behind_others(&mut self, wanted: &[&[TokenId]]) -> (Option<Vec<u8>>, bool) {
        if wanted.is_empty() {
            return (None, true);
        }
        let first = self.first();
        let mut seen = HashSet::new();
        let mut open = VecDeque::from([first]);
        while let Some(node) = open.pop_front() {
            if !node.tokens.is_empty() {
                for tokens in wanted {
                    let Some(left) = self.left.checked_sub(tokens.len()) else {
                        return (None, false);
                    };
                    self.left = left;
                    if let Some(text) = self.complete(&node, tokens) {
                        return (Some(text), true);
                    }
                }
            }
            for index in 0..self.pairs.len() as u32 {
                let Some(left) = self.left.checked_sub(1) else {
                    return (None, false);
                };
                self.left = left;
                let token = self.pairs.token_with_number(index).unwrap_or_default();
                if let Some(next) = self.next(&node, token)
                    && seen.insert((next.readings, next.last))
                {
                    open.push_back(next);
                }
            }
        }
        (None, self.left > 0)
    }
}
