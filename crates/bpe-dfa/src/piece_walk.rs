//! Where pieces start among tokens, from the tokens alone: neither decoded nor lexed.
//!
//! What a token does to the automaton of a pre-tokenizer is the same for most tokens: " the", " of" and
//! " and" lead from the same states to the same states. So tokens fall into classes, 84 of them for
//! o200k, and the automaton over classes is a small table. One load for the class of a token, which
//! waits for nothing, and one for the step.

use std::fmt;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId, Vocabulary};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::boundaries::{Boundaries, FIRST_READINGS, Lexing, NO_READINGS, Readings};
use crate::error::RelationError;
use crate::explicit::StringDfa;
use crate::pairs::PairRelation;
use crate::pending::Tables;

/// The class of tokens whose steps are not in the table: those that begin or end inside a character.
const NO_CLASS: u16 = 0;

/// Sets of readings that have a row; those of the known patterns between characters are some dozens.
const MOST_ROWS: usize = 1 << 12;

/// Entries that are remembered of tokens without a class, and of readings inside a character.
const REMEMBERED: usize = 1 << 15;

/// Sets of readings beyond which all are forgotten: bytes that are not UTF-8 can make many.
const MOST_SETS: usize = 1 << 16;

/// Row of the readings before the first token.
const FIRST_ROW: u16 = 0;

/// Row of readings that have no row of their own.
const OTHER_ROW: u16 = 1;

/// The entry has to be found out.
const SLOW: u16 = 1 << 15;

/// No piece starts before the token, so that it must be a valid neighbour of the one before.
const INSIDE: u16 = 1 << 14;

/// A piece starts before the token, and all goes on as if the text did.
const RESTART: u16 = 1 << 13;

/// The row after the token.
const ROW: u16 = RESTART - 1;

/// The classes of the tokens of a vocabulary, as a pre-tokenizer sees them. To be shared.
pub struct TokenClasses {
    vocabulary: Arc<Vocabulary>,
    pairs: Arc<PairRelation>,
    boundaries: Arc<dyn Boundaries>,
    /// The states between characters, in ascending order.
    between: Vec<u64>,
    /// Of each id.
    classes: Vec<u16>,
    /// How many there are, [`NO_CLASS`] among them.
    count: usize,
}

impl TokenClasses {
    /// The classes of the tokens of `canonical`, of which `pairs` was made. O(bytes of the tokens).
    /// Where ids are far apart no token has a class.
    ///
    /// # Errors
    ///
    /// A dictionary over characters.
    pub fn new(
        canonical: &CanonicalForm,
        pairs: Arc<PairRelation>,
        boundaries: Arc<dyn Boundaries>,
    ) -> Result<Self, RelationError> {
        let tables = Tables::new(canonical, Arc::clone(&pairs))?;
        let mut between = boundaries.between_characters();
        between.sort_unstable();
        between.dedup();
        let mut relations = Relations::new(Arc::clone(&boundaries), &between);
        let vocabulary = Arc::clone(canonical.vocabulary());
        let largest = vocabulary.max_id().map_or(0, |id| id as usize);
        let is_dense = largest < 4 * vocabulary.len() + (1 << 16);
        let mut classes = vec![NO_CLASS; if is_dense { largest + 1 } else { 0 }];
        let mut numbers: HashMap<u32, u16, FixedState> = HashMap::default();
        for &id in tables.order.longer(tables.order.root()) {
            let Ok(text) = std::str::from_utf8(tables.order.bytes(id)) else {
                continue;
            };
            let next = u16::try_from(numbers.len() + 1).unwrap_or(NO_CLASS);
            if let (Some(relation), Some(class)) =
                (relations.of_text(text), classes.get_mut(id as usize))
            {
                *class = match numbers.get(&relation) {
                    Some(&class) => class,
                    None if next == NO_CLASS => NO_CLASS,
                    None => *numbers.entry(relation).or_insert(next),
                };
            }
        }
        Ok(Self {
            vocabulary,
            pairs,
            boundaries,
            between,
            classes,
            count: numbers.len() + 1,
        })
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl fmt::Debug for TokenClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenClasses")
            .field("tokens", &self.classes.len())
            .field("classes", &self.count)
            .finish_non_exhaustive()
    }
}

/// What a text does to the automaton: of each state between characters what is reached from it, where no
/// piece starts before the text, and where one does.
type Relation = Box<[[Readings; 2]]>;

/// The relations of texts, each with a number.
struct Relations {
    lexing: Lexing,
    singles: Vec<Readings>,
    relations: Vec<Relation>,
    numbers: HashMap<Relation, u32, FixedState>,
    /// Of a character that stands alone.
    characters: HashMap<char, u32, FixedState>,
    /// Of a text and a character. What a character that stands alone does says what it does behind others.
    steps: HashMap<(u32, u32), u32, FixedState>,
}

impl Relations {
    fn new(boundaries: Arc<dyn Boundaries>, between: &[u64]) -> Self {
        let mut lexing = Lexing::new(boundaries);
        let singles = between.iter().map(|&state| lexing.set(&[state])).collect();
        Self {
            lexing,
            singles,
            relations: Vec::new(),
            numbers: HashMap::default(),
            characters: HashMap::default(),
            steps: HashMap::default(),
        }
    }

    /// The relation of a text; `None` of none.
    fn of_text(&mut self, text: &str) -> Option<u32> {
        let mut relation = None;
        for character in text.chars() {
            let alone = self.of_character(character);
            relation = Some(match relation {
                None => alone,
                Some(before) => self.after(before, alone, character)?,
            });
        }
        relation
    }

    fn of_character(&mut self, character: char) -> u32 {
        if let Some(&relation) = self.characters.get(&character) {
            return relation;
        }
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        let lexing = &mut self.lexing;
        let both =
            |&single: &Readings| [false, true].map(|starts| lexing.after(single, bytes, starts));
        let relation = self.singles.iter().map(both).collect();
        let relation = self.number(relation);
        self.characters.insert(character, relation);
        relation
    }

    fn after(&mut self, before: u32, alone: u32, character: char) -> Option<u32> {
        if let Some(&relation) = self.steps.get(&(before, alone)) {
            return Some(relation);
        }
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        let lexing = &mut self.lexing;
        let both = |both: &[Readings; 2]| both.map(|readings| lexing.after(readings, bytes, false));
        let relation = self
            .relations
            .get(before as usize)?
            .iter()
            .map(both)
            .collect();
        let relation = self.number(relation);
        self.steps.insert((before, alone), relation);
        Some(relation)
    }

    fn number(&mut self, relation: Relation) -> u32 {
        let number = self.relations.len() as u32;
        *self.numbers.entry(relation).or_insert_with_key(|relation| {
            self.relations.push(relation.clone());
            number
        })
    }
}

/// A walk over tokens that finds where pieces start among them.
///
/// ```
/// use std::sync::Arc;
///
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::{Boundaries, PairRelation, PieceWalk, TokenClasses};
///
/// /// A piece starts before each blank.
/// struct Blanks;
///
/// impl Boundaries for Blanks {
///     fn start(&self) -> u64 {
///         0
///     }
///     fn between_characters(&self) -> Vec<u64> {
///         vec![0, 1]
///     }
///     fn for_each_step(&self, state: u64, byte: u8, visit: &mut dyn FnMut(bool, u64)) {
///         visit(state == 0 || byte == b' ', 1);
///     }
///     fn accepts(&self, _: u64) -> bool {
///         true
///     }
/// }
///
/// let vocabulary = Vocabulary::new([(0, " "), (1, "a"), (2, "b"), (3, "ab")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(1, 2)])?;
/// let canonical = CanonicalForm::new(&dictionary);
/// let pairs = Arc::new(PairRelation::new(&canonical)?);
/// let classes = TokenClasses::new(&canonical, pairs, Arc::new(Blanks))?;
///
/// let mut inside = Vec::new();
/// // ab| |b|a| |ab|
/// let count = PieceWalk::new(Arc::new(classes)).walk(&[3, 0, 2, 1, 0, 3], &mut inside);
/// assert_eq!(count, 4); // as if the text began with the second blank
/// assert_eq!(inside, [1, 2]); // the blank and "b", "b" and "a" are in one piece
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PieceWalk {
    shared: Arc<TokenClasses>,
    lexing: Lexing,
    /// All texts.
    all: StringDfa,
    /// The readings of each row, and the row of readings.
    readings: Vec<Readings>,
    /// Whether these are all between characters, where classes count.
    is_between: Vec<bool>,
    rows: HashMap<Readings, u16, FixedState>,
    /// Of each row and class what a token does.
    table: Vec<u16>,
    /// Tokens, rows and entries that are not for the table, each at its place by [`place_of`].
    remembered: Vec<(TokenId, u16, u16)>,
    /// Of a row and class, or a row and token without one: where a piece may start before the token or not,
    /// the rows if its pair is valid and if not.
    both: HashMap<(u16, u16, TokenId), [u16; 2], FixedState>,
    /// The readings of the walk where they have no row.
    other: Readings,
}

/// The place of an entry among those that are remembered.
fn place_of(id: TokenId, row: u16) -> usize {
    let key = u64::from(id) << 16 | u64::from(row);
    // The fractional part of the golden ratio spreads what is near.
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % REMEMBERED
}

/// What a token does.
enum Step {
    /// An entry that is always the same.
    Entry(u16),
    /// A piece may start before the token, or not: the rows if its pair is valid and if not.
    Both([u16; 2]),
}

impl PieceWalk {
    /// A walk with an empty table, which is filled as tokens are met.
    pub fn new(shared: Arc<TokenClasses>) -> Self {
        let lexing = Lexing::new(Arc::clone(&shared.boundaries));
        let mut walk = Self {
            lexing,
            shared,
            all: StringDfa::universal(),
            readings: Vec::new(),
            is_between: Vec::new(),
            rows: HashMap::default(),
            table: Vec::new(),
            remembered: Vec::new(),
            both: HashMap::default(),
            other: NO_READINGS,
        };
        walk.forget();
        walk
    }

    /// How many of the first tokens go on, whatever follows them, as if the text began behind them, while
    /// a piece starts where they end: the most that there are. `inside` is set to the indices of those
    /// of them that share their piece with the next.
    ///
    /// They are the tokens of their text, whatever follows, if those pairs are valid
    /// ([`PairRelation::are_valid`]), as the walk ends before a token that is not canonical and where no
    /// text has its pieces start so that all pieces start with a token.
    ///
    /// Some nanoseconds a token; some hundred where one begins or ends inside a character.
    pub fn walk(&mut self, ids: &[TokenId], inside: &mut Vec<u32>) -> usize {
        if self.lexing.len() > MOST_SETS {
            self.forget();
        }
        inside.clear();
        inside.resize(ids.len(), 0);
        let mut row = FIRST_ROW;
        let mut restart = 0;
        let mut listed = 0;
        let stride = self.shared.count;
        let shared = Arc::clone(&self.shared);
        for (index, &id) in ids.iter().enumerate() {
            let class = shared.classes.get(id as usize).copied();
            let class = class.unwrap_or(NO_CLASS);
            let place = usize::from(row) * stride + usize::from(class);
            let mut entry = self.table.get(place).copied().unwrap_or(SLOW);
            if entry & SLOW != 0 {
                let before = index.checked_sub(1).and_then(|index| ids.get(index));
                match self.remembered.get(place_of(id, row)) {
                    Some(&(known, of, found)) if (known, of) == (id, row) => entry = found,
                    _ => match self.find_out(row, class, before.copied(), id) {
                        Some(found) => entry = found,
                        None => break,
                    },
                }
            }
            if let Some(left) = inside.get_mut(listed) {
                *left = (index as u32).wrapping_sub(1);
            }
            listed += usize::from(entry & INSIDE != 0);
            restart = match entry & RESTART != 0 {
                true => index,
                false => restart,
            };
            row = entry & ROW;
        }
        inside.truncate(listed);
        // Those whose right neighbour is one of the tokens too.
        let before = inside.partition_point(|&left| (left as usize) + 1 < restart);
        inside.truncate(before);
        restart
    }

    /// The entry of a token that is not in the table, which it is put into if it can be. None where no
    /// text has these tokens.
    #[cold]
    fn find_out(
        &mut self,
        row: u16,
        class: u16,
        before: Option<TokenId>,
        id: TokenId,
    ) -> Option<u16> {
        let pairs = Arc::clone(&self.shared.pairs);
        let is_valid = || before.is_some_and(|before| pairs.is_valid(before, id));
        // Behind the beginning of a character classes say nothing.
        let is_between = self.is_between.get(usize::from(row)).copied();
        let has_entry = class != NO_CLASS && is_between.unwrap_or(false);
        let key = match has_entry {
            true => (row, class, 0),
            false => (row, NO_CLASS, id),
        };
        if let Some(rows) = self.both.get(&key) {
            return Some(rows[usize::from(!is_valid())]);
        }
        let readings = match row {
            OTHER_ROW => self.other,
            row => *self.readings.get(usize::from(row))?,
        };
        match self.step(readings, id)? {
            Step::Entry(entry) => {
                if row != OTHER_ROW && entry & ROW != OTHER_ROW {
                    let place = usize::from(row) * self.shared.count + usize::from(class);
                    match self.table.get_mut(place) {
                        Some(place) if has_entry => *place = entry,
                        _ => {
                            if let Some(place) = self.remembered.get_mut(place_of(id, row)) {
                                *place = (id, row, entry);
                            }
                        }
                    }
                }
                Some(entry)
            }
            Step::Both(rows) => {
                if row != OTHER_ROW && !rows.contains(&OTHER_ROW) {
                    if self.both.len() >= REMEMBERED {
                        self.both.clear();
                    }
                    self.both.insert(key, rows);
                }
                let is_valid = is_valid();
                // Of two without a row the one that is meant.
                let (first, union) = self.ways(readings, id)?;
                Some(self.row(if is_valid { union } else { first }))
            }
        }
    }

    /// The readings after a token before which a piece starts, and after one before which it does or not.
    fn ways(&mut self, readings: Readings, id: TokenId) -> Option<(Readings, Readings)> {
        let shared = Arc::clone(&self.shared);
        let bytes = shared.vocabulary.token_bytes(id)?;
        let [inside, first] = [false, true].map(|starts| {
            let after = self.lexing.after(readings, bytes, starts);
            self.lexing.prune(&self.all, 0, after)
        });
        Some((first, self.lexing.union(first, inside)))
    }

    fn step(&mut self, readings: Readings, id: TokenId) -> Option<Step> {
        let is_empty = |bytes: &[u8]| bytes.is_empty();
        if !self.shared.pairs.is_canonical(id)
            || self.shared.vocabulary.token_bytes(id).is_none_or(is_empty)
        {
            return None;
        }
        let (first, union) = self.ways(readings, id)?;
        Some(match (first, union) {
            (_, NO_READINGS) => return None,
            (NO_READINGS, inside) => Step::Entry(self.row(inside) | INSIDE),
            (first, union) if first != union => Step::Both([self.row(union), self.row(first)]),
            (first, _) => {
                let no_way_inside = {
                    let shared = Arc::clone(&self.shared);
                    let bytes = shared.vocabulary.token_bytes(id)?;
                    let inside = self.lexing.after(readings, bytes, false);
                    self.lexing.prune(&self.all, 0, inside) == NO_READINGS
                };
                let anew = self.ways(FIRST_READINGS, id)?.0;
                let flag = if no_way_inside && anew == first {
                    RESTART
                } else {
                    0
                };
                Step::Entry(self.row(first) | flag)
            }
        })
    }

    /// The row of readings, a new one where they have none yet.
    fn row(&mut self, readings: Readings) -> u16 {
        if let Some(&row) = self.rows.get(&readings) {
            return row;
        }
        if self.readings.len() >= MOST_ROWS {
            self.other = readings;
            return OTHER_ROW;
        }
        let between = &self.shared.between;
        let mut states = self.lexing.states(readings).iter();
        let is_between = states.all(|reading| between.binary_search(&reading.state).is_ok());
        let row = self.readings.len() as u16;
        self.readings.push(readings);
        self.is_between.push(is_between);
        self.rows.insert(readings, row);
        let length = self.readings.len() * self.shared.count;
        self.table.resize(length, SLOW);
        row
    }

    /// Forgets all but the classes.
    fn forget(&mut self) {
        self.lexing = Lexing::new(Arc::clone(&self.shared.boundaries));
        self.rows = HashMap::from_iter([(FIRST_READINGS, FIRST_ROW)]);
        self.readings = vec![FIRST_READINGS, NO_READINGS];
        self.is_between = vec![true, false];
        self.table = vec![SLOW; self.readings.len() * self.shared.count];
        // Rows that no entry has.
        self.remembered = vec![(0, ROW, SLOW); REMEMBERED];
        self.both.clear();
    }
}

impl fmt::Debug for PieceWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceWalk")
            .field("classes", &self.shared.count)
            .field("rows", &self.readings.len())
            .finish_non_exhaustive()
    }
}
