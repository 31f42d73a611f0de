//! SentencePiece's `.model` files of type BPE: pieces with scores, and what is done to a text before.
//!
//! There are no merge rules: two neighbours merge whenever together they are a piece, and the one with
//! the best score comes first, the leftmost of equal ones. So each piece has a rule for each of its
//! splits into two pieces, and the order of the scores is the order of the rules. Equal scores are not
//! an order; of those only all runs of one character are taken (`▁▁`, `▁▁▁`, ... in real files), as rules
//! from the longest to the shortest. That gives the same tokens: of a run of single characters the
//! leftmost two are merged, then that token with what stands beside it as long as there is such a piece,
//! since that is the leftmost place, and in our order the longest piece; then the next two. (Were some
//! runs merged before, at a better score, the tokens that are left would not be single characters.)

mod charsmap;
mod normalize;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;

use bpe_core::{Atoms, Dictionary, ReadLimits, TokenId, Vocabulary};

use crate::error::LoadError;
use charsmap::CharsMap;
pub(crate) use normalize::SentencePieceNormalizer;
use wire::{Field, Fields, WireError};

/// What a `.model` file says, and is done here.
#[derive(Debug)]
pub(crate) struct SentencePieceModel {
    pub(crate) dictionary: Dictionary,
    /// Pieces that are found before anything merges.
    pub(crate) user_defined: Vec<(String, TokenId)>,
    /// Pieces that text never makes.
    pub(crate) controls: Vec<(String, TokenId)>,
    /// The text of the unknown piece in the file.
    pub(crate) unknown_piece: String,
    /// What the unknown piece decodes to.
    pub(crate) unknown_surface: String,
    pub(crate) normalizer: SentencePieceNormalizer,
    /// Whether decoding drops a blank at the start, and whether it drops all of them.
    pub(crate) drops_blank: bool,
    pub(crate) drops_blanks: bool,
}

/// Pieces of a file; their ids are their places.
struct Piece<'m> {
    text: &'m str,
    score: f32,
    kind: Kind,
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Byte,
}

/// The settings that count, with the values that they have where a file does not say them.
struct Settings<'m> {
    model_type: u64,
    byte_fallback: bool,
    whitespace_as_suffix: bool,
    unknown_surface: &'m str,
    charsmap: &'m [u8],
    charsmap_at: usize,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
    denormalizes: bool,
}

/// A piece that stays as it is while other text is mapped may have so many bytes: it is looked for at
/// each character.
const LONGEST_KEPT: usize = 256;

impl SentencePieceModel {
    /// Reads a `.model` file.
    ///
    /// # Errors
    ///
    /// A file that is malformed or over the limits, of another type than BPE, or that asks for what is
    /// not done.
    pub(crate) fn read(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        if file.len() > limits.file {
            let reason = format_args!("the file is over {} bytes", limits.file);
            return Err(LoadError::at("", reason));
        }
        let (pieces, settings) = read(file).map_err(|error| LoadError::caused("", error))?;
        settings.check()?;
        let mut model = Self::new(&pieces, &settings, limits)?;
        model.normalizer.charsmap = CharsMap::read(settings.charsmap).map_err(|what| {
            let reason = format_args!("{what} (at byte {})", settings.charsmap_at);
            LoadError::at("normalizer_spec.precompiled_charsmap", reason)
        })?;
        let longest = model.normalizer.longest_kept;
        if !settings.charsmap.is_empty() && longest > LONGEST_KEPT {
            let what = format!("a user-defined piece of over {LONGEST_KEPT} bytes beside a map");
            return Err(LoadError::unsupported("pieces", what));
        }
        Ok(model)
    }

    fn new(
        pieces: &[Piece<'_>],
        settings: &Settings<'_>,
        limits: &ReadLimits,
    ) -> Result<Self, LoadError> {
        let mut normal: Vec<(TokenId, &Piece<'_>)> = Vec::new();
        let (mut user_defined, mut controls) = (Vec::new(), Vec::new());
        let mut bytes = Vec::new();
        let mut unknown = None;
        let mut texts = HashMap::with_capacity(pieces.len());
        for (piece, id) in pieces.iter().zip(0..) {
            let place = || format!("pieces[{id}] ({:?}, at byte {})", piece.text, piece.at);
            if piece.text.is_empty() {
                return Err(LoadError::at(place(), "the piece is empty"));
            }
            if piece.text.len() > limits.token {
                let reason = format_args!("the piece is over {} bytes", limits.token);
                return Err(LoadError::at(format!("pieces[{id}]"), reason));
            }
            if let Some(first) = texts.insert(piece.text, id) {
                return Err(LoadError::at(
                    place(),
                    format_args!("the same as pieces[{first}]"),
                ));
            }
            let mut characters = piece.text.chars();
            let is_character = characters.next().is_some() && characters.next().is_none();
            match piece.kind {
                Kind::Normal if piece.score.is_nan() => {
                    return Err(LoadError::at(place(), "the score is no number"));
                }
                Kind::Normal => normal.push((id, piece)),
                Kind::Unknown if unknown.is_some() => {
                    return Err(LoadError::at(place(), "a second unknown piece"));
                }
                Kind::Unknown | Kind::Control if is_character => {
                    return Err(LoadError::unsupported(
                        place(),
                        "such a piece of one character",
                    ));
                }
                Kind::Unknown => unknown = Some(id),
                Kind::Control => controls.push((piece.text.to_owned(), id)),
                Kind::UserDefined if piece.text.contains(' ') => {
                    return Err(LoadError::unsupported(
                        place(),
                        "a user-defined piece with a blank",
                    ));
                }
                Kind::UserDefined => user_defined.push((piece.text.to_owned(), id)),
                Kind::Byte => bytes.push((
                    id,
                    byte_of(piece.text)
                        .ok_or_else(|| LoadError::at(place(), "a byte is written like <0x0A>"))?,
                )),
            }
        }
        let unknown: TokenId =
            unknown.ok_or_else(|| LoadError::at("pieces", "there is no unknown piece"))?;
        if settings.byte_fallback && bytes.len() != 256 {
            let reason = format_args!("{} byte pieces, where each byte needs one", bytes.len());
            return Err(LoadError::at("pieces", reason));
        }
        let mut kept: Vec<String> = user_defined.iter().map(|(text, _)| text.clone()).collect();
        kept.sort();
        let unknown_piece = pieces.get(unknown as usize).map_or("", |piece| piece.text);
        Ok(Self {
            dictionary: dictionary(normal, bytes, (unknown, unknown_piece), settings)?,
            user_defined,
            controls,
            unknown_piece: unknown_piece.to_owned(),
            unknown_surface: settings.unknown_surface.to_owned(),
            normalizer: SentencePieceNormalizer {
                charsmap: CharsMap::default(),
                add_dummy_prefix: settings.add_dummy_prefix,
                remove_extra_whitespaces: settings.remove_extra_whitespaces,
                escape_whitespaces: settings.escape_whitespaces,
                longest_kept: kept.iter().map(String::len).max().unwrap_or(0),
                kept,
            },
            drops_blank: settings.add_dummy_prefix || settings.remove_extra_whitespaces,
            drops_blanks: settings.remove_extra_whitespaces,
        })
    }
}

/// The dictionary of the pieces that merge.
fn dictionary(
    mut normal: Vec<(TokenId, &Piece<'_>)>,
    bytes: Vec<(TokenId, u8)>,
    (unknown, unknown_piece): (TokenId, &str),
    settings: &Settings<'_>,
) -> Result<Dictionary, LoadError> {
    // Of equal scores the longer first; what else is equal is refused.
    normal.sort_by(|(a_id, a), (b_id, b)| {
        let by_score = b.score.total_cmp(&a.score);
        by_score
            .then(b.text.len().cmp(&a.text.len()))
            .then(a_id.cmp(b_id))
    });
    let merged = |piece: &Piece<'_>| piece.text.chars().nth(1).is_some();
    check_scores(
        normal
            .iter()
            .map(|(_, piece)| *piece)
            .filter(|piece| merged(piece)),
    )?;
    // As ranks first, with the places in this order as ids.
    let ranks = normal
        .iter()
        .zip(0..)
        .map(|((_, piece), rank)| (rank, piece.text.as_bytes()));
    let ranks = Vocabulary::new(ranks).map_err(|error| LoadError::caused("pieces", error))?;
    let characters = normal.iter().flat_map(|(_, piece)| piece.text.chars());
    let mut characters: Vec<char> = characters.collect();
    characters.sort_unstable();
    characters.dedup();
    for character in characters {
        if ranks
            .id_of(character.encode_utf8(&mut [0; 4]).as_bytes())
            .is_none()
        {
            let place = format!("pieces ({character:?})");
            return Err(LoadError::unsupported(
                place,
                "a piece with a character that is none",
            ));
        }
    }
    let ranks =
        Dictionary::from_ranks(ranks).map_err(|error| LoadError::caused("pieces", error))?;
    let id = |rank: TokenId| normal.get(rank as usize).map_or(unknown, |(id, _)| *id);
    let merges: Vec<_> = ranks
        .rules()
        .iter()
        .map(|rule| (id(rule.left), id(rule.right)))
        .collect();

    let mut tokens: Vec<(TokenId, &[u8])> = normal
        .iter()
        .map(|(id, piece)| (*id, piece.text.as_bytes()))
        .collect();
    tokens.push((unknown, unknown_piece.as_bytes()));
    let fallback = match settings.byte_fallback {
        true => bytes,
        false => Vec::new(),
    };
    let vocabulary = Vocabulary::with_byte_fallback(tokens, fallback)
        .map_err(|error| LoadError::caused("pieces", error))?;
    let dictionary = Dictionary::from_merges(vocabulary, merges)
        .map_err(|error| LoadError::caused("pieces", error))?;
    let atoms = Atoms::Characters {
        unknown: Some(unknown),
        fuse_unknown: true,
    };
    dictionary
        .with_atoms(atoms)
        .map_err(|error| LoadError::caused("pieces", error))
}

/// Refuses equal scores of pieces other than all the runs of one character. The pieces come in the order
/// of their scores.
fn check_scores<'p, 'm: 'p>(pieces: impl Iterator<Item = &'p Piece<'m>>) -> Result<(), LoadError> {
    let refuse = |a: &Piece<'_>, b: &Piece<'_>| {
        let place = format!("pieces ({:?}, {:?})", a.text, b.text);
        Err(LoadError::unsupported(place, "one score of two pieces"))
    };
    let mut before: Option<&Piece<'_>> = None;
    // Of each character the best run and the worst, and whether two share a score.
    let mut runs: HashMap<char, (&Piece<'_>, &Piece<'_>, bool)> = HashMap::new();
    for piece in pieces {
        let run = run_of(piece.text);
        let shares = before.filter(|before| before.score == piece.score);
        if let Some(before) = shares
            && (run.is_none() || run != run_of(before.text))
        {
            return refuse(before, piece);
        }
        if let Some(character) = run {
            let (_, worst, shared) = runs.entry(character).or_insert((piece, piece, false));
            *worst = piece;
            *shared |= shares.is_some();
        }
        before = Some(piece);
    }
    let mut mixed = runs
        .values()
        .filter(|(best, worst, shared)| *shared && best.score != worst.score);
    match mixed.next() {
        Some((best, worst, _)) => refuse(best, worst),
        None => Ok(()),
    }
}

/// The character that a text is a run of.
fn run_of(text: &str) -> Option<char> {
    let first = text.chars().next()?;
    text.chars()
        .all(|character| character == first)
        .then_some(first)
}

/// The byte that is written like `<0x0A>`.
fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let upper = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    (digits.len() == 2 && upper).then(|| u8::from_str_radix(digits, 16).ok())?
}

impl Settings<'_> {
    /// Refuses what is not done.
    fn check(&self) -> Result<(), LoadError> {
        let place = "trainer_spec.model_type";
        match self.model_type {
            2 => {}
            1 => return Err(LoadError::unsupported(place, "Unigram")),
            3 => return Err(LoadError::unsupported(place, "Word")),
            4 => return Err(LoadError::unsupported(place, "Char")),
            other => {
                return Err(LoadError::at(
                    place,
                    format_args!("no type has the number {other}"),
                ));
            }
        }
        if self.whitespace_as_suffix {
            let place = "trainer_spec.treat_whitespace_as_suffix";
            return Err(LoadError::unsupported(place, "a blank behind a word"));
        }
        if self.denormalizes {
            return Err(LoadError::unsupported(
                "denormalizer_spec",
                "a map of characters",
            ));
        }
        Ok(())
    }
}

/// The pieces and the settings.
fn read(file: &[u8]) -> Result<(Vec<Piece<'_>>, Settings<'_>), WireError> {
    let mut pieces = Vec::new();
    let mut settings = Settings {
        model_type: 1,
        byte_fallback: false,
        whitespace_as_suffix: false,
        unknown_surface: " \u{2047} ",
        charsmap: &[],
        charsmap_at: 0,
        add_dummy_prefix: true,
        remove_extra_whitespaces: true,
        escape_whitespaces: true,
        denormalizes: false,
    };
    for field in Fields::new(file, 0) {
        let field = field?;
        match field.number {
            1 => pieces.push(read_piece(&field)?),
            2 => {
                for field in field.message()? {
                    let field = field?;
                    match field.number {
                        3 => settings.model_type = field.number()?,
                        24 => settings.whitespace_as_suffix = field.flag()?,
                        35 => settings.byte_fallback = field.flag()?,
                        44 => settings.unknown_surface = field.text()?,
                        _ => {}
                    }
                }
            }
            3 => {
                for field in field.message()? {
                    let field = field?;
                    match field.number {
                        2 => {
                            settings.charsmap = field.bytes()?;
                            settings.charsmap_at = field.at;
                        }
                        3 => settings.add_dummy_prefix = field.flag()?,
                        4 => settings.remove_extra_whitespaces = field.flag()?,
                        5 => settings.escape_whitespaces = field.flag()?,
                        _ => {}
                    }
                }
            }
            5 => {
                for field in field.message()? {
                    let field = field?;
                    settings.denormalizes |= field.number == 2 && !field.bytes()?.is_empty();
                }
            }
            _ => {}
        }
    }
    match pieces.is_empty() {
        true => Err(WireError {
            at: 0,
            what: "the file has no pieces",
        }),
        false => Ok((pieces, settings)),
    }
}

fn read_piece<'m>(piece: &Field<'m>) -> Result<Piece<'m>, WireError> {
    let mut read = Piece {
        text: "",
        score: 0.0,
        kind: Kind::Normal,
        at: piece.at,
    };
    for field in piece.message()? {
        let field = field?;
        match field.number {
            1 => read.text = field.text()?,
            // Zero has one sign.
            2 => read.score = field.float()? + 0.0,
            3 => {
                read.kind = match field.number()? {
                    1 => Kind::Normal,
                    2 => Kind::Unknown,
                    3 => Kind::Control,
                    4 => Kind::UserDefined,
                    6 => Kind::Byte,
                    _ => {
                        return Err(WireError {
                            at: piece.at,
                            what: "a piece of an unknown kind, or one that is not to be used",
                        });
                    }
                };
            }
            _ => {}
        }
    }
    Ok(read)
}
