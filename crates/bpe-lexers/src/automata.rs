//! The engine on regex-automata: a DFA whose states are made when a text first needs them.

use core::ops::Range;
use std::sync::{Arc, OnceLock};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind, PatternID, meta};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, Flag, FlagsItemKind};
use regex_syntax::hir::Hir;
use regex_syntax::hir::translate::Translator;

use crate::lexer::{char_at, to_boundary};
use crate::{LexError, Lexer, Pattern, PatternError};

/// Memory for the DFA's states, per lexer. English needs 0.1 MB with o200k, a mixture of
/// scripts half of one, all characters of Unicode 1.5. When it is full the states are dropped and made
/// again, so a pattern that needs more is slower and still right.
const CACHE_CAPACITY: usize = 8 << 20;

/// Memory for the compiled pattern, so that a pattern with huge repetitions is an error.
const COMPILED_CAPACITY: usize = 16 << 20;

/// The ends of patterns whose look-ahead this engine can do: two last branches, in two
/// spellings.
const TRAILING_FORMS: [&str; 2] = [r"\s+(?!\S)|\s+", r"\s+(?!\S)|\s"];

/// The engine on regex-automata: a lazily built DFA.
///
/// Useful for every pattern without look-around, back-references, atomic groups and possessive
/// quantifiers, and for other spellings of the known families; save that the pattern may end in the branches `\s+(?!\S)|\s+` (or
/// `\s+(?!\S)|\s`), as nearly all published ones do (001, section 5.2). Not useful for others;
/// [`ReferenceLexer`](crate::ReferenceLexer) runs them.
///
/// # Cost
///
/// Making one compiles the pattern, some milliseconds; cloning one shares that. A call takes
/// time linear in the bytes it looks at: with the known patterns the pre-token, the character
/// after it and, in o200k, the capitals after it. A text for which the states are there already
/// is lexed without allocation. The states take 8 MiB at most per lexer.
///
/// A pattern that does not match where the last pre-token ended, which the known ones always
/// do, needs a second automaton to find the next match; it is made at the first such place.
///
/// # The look-ahead
///
/// A DFA cannot look ahead, so the last two branches become one, `\s+`, with a number of its
/// own, and its match is shortened afterwards. Why that is the same: say the other branches do
/// not match at `start`, and `W` is the longest run of white space from there.
///
/// * Both `\s+` are greedy, so `W` is what they try first, and the character after `W`, if
///   there is one, is not white space (`\S`).
/// * If `W` ends where the segment ends, `(?!\S)` holds there: the match is `W`.
/// * Otherwise `(?!\S)` fails after `W`. One character less, and the next character is the last
///   of `W`, which is white space, so `(?!\S)` holds: the match is `W` without its last
///   character, if something is left.
/// * If `W` is that one character, `\s+(?!\S)` fails, and the last branch, `\s+` or `\s`,
///   matches it.
///
/// So: a match of two or more characters that does not end at the segment's end loses its last
/// character. Where the other branches match at `start`, they come first, here as there.
pub struct AutomataLexer {
    tables: Arc<Tables>,
    cache: Cache,
    search_cache: Option<meta::Cache>,
}

/// What the clones of a lexer share.
struct Tables {
    dfa: DFA,
    /// The number of the branch whose matches are shortened.
    shortened: Option<PatternID>,
    /// The pattern again, for the search below.
    branches: Vec<Hir>,
    /// Finds the next match when there is none at the start; made when first needed.
    search: OnceLock<Option<meta::Regex>>,
}

impl AutomataLexer {
    /// Returns a lexer for `pattern`.
    ///
    /// # Errors
    ///
    /// The pattern is malformed, or needs what automata do not have, or is too large.
    pub fn new(pattern: &Pattern) -> Result<Self, PatternError> {
        let (branches, shortened) = match branches(pattern.as_str()) {
            // A spelling of a known family that this engine cannot run has one that it can.
            Err(error) if error.is_unsupported() => match pattern.family() {
                Some(family) => branches(Pattern::of_family(family).as_str())?,
                None => return Err(error),
            },
            other => other?,
        };
        let nfa = thompson::Compiler::new()
            .configure(
                thompson::Config::new()
                    .which_captures(thompson::WhichCaptures::None)
                    .nfa_size_limit(Some(COMPILED_CAPACITY)),
            )
            .build_many_from_hir(&branches)
            .map_err(|error| PatternError::unsupported("automata", error))?;
        let dfa = DFA::builder()
            .configure(
                DFA::config()
                    .match_kind(MatchKind::LeftmostFirst)
                    .cache_capacity(CACHE_CAPACITY)
                    .skip_cache_capacity_check(true)
                    // `\b` between ASCII characters; elsewhere the DFA stops with an error and
                    // the search below takes over.
                    .unicode_word_boundary(true),
            )
            .build_from_nfa(nfa)
            .map_err(|error| PatternError::unsupported("automata", error))?;
        Ok(Self::from_tables(Arc::new(Tables {
            dfa,
            shortened,
            branches,
            search: OnceLock::new(),
        })))
    }

    fn from_tables(tables: Arc<Tables>) -> Self {
        let cache = tables.dfa.create_cache();
        Self {
            tables,
            cache,
            search_cache: None,
        }
    }

    /// The DFA, its states so far, and the number of the branch whose matches are shortened: what a
    /// proof about the engine walks.
    pub(crate) fn parts(&mut self) -> (&DFA, &mut Cache, Option<PatternID>) {
        (&self.tables.dfa, &mut self.cache, self.tables.shortened)
    }

    /// Finds the first match at or after `start`, where the DFA found none at `start` or could
    /// not tell. The match may be empty.
    fn search(&mut self, segment: &str, start: usize) -> Result<Option<Range<usize>>, LexError> {
        let tables = &*self.tables;
        let search = tables
            .search
            .get_or_init(|| {
                meta::Regex::builder()
                    .configure(
                        meta::Config::new()
                            .nfa_size_limit(Some(COMPILED_CAPACITY))
                            .hybrid_cache_capacity(CACHE_CAPACITY),
                    )
                    .build_many_from_hir(&tables.branches)
                    .ok()
            })
            .as_ref()
            .ok_or_else(|| LexError::engine(start, "the pattern is too large to search with"))?;
        let cache = self
            .search_cache
            .get_or_insert_with(|| search.create_cache());
        let input = Input::new(segment).range(start..);
        Ok(search
            .search_with(cache, &input)
            .map(|found| found.start()..tables.end(segment, found.range(), found.pattern())))
    }
}

impl Tables {
    /// The end of a match, shortened if it is one of the branch with the look-ahead.
    #[inline]
    fn end(&self, segment: &str, matched: Range<usize>, branch: PatternID) -> usize {
        let end = matched.end;
        if self.shortened != Some(branch) || end == segment.len() {
            return end;
        }
        let last = segment
            .get(matched.clone())
            .and_then(|white_space| white_space.chars().next_back());
        match last {
            Some(last) if matched.len() > last.len_utf8() => end - last.len_utf8(),
            _ => end,
        }
    }
}

impl Clone for AutomataLexer {
    fn clone(&self) -> Self {
        Self::from_tables(Arc::clone(&self.tables))
    }
}

impl core::fmt::Debug for AutomataLexer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("AutomataLexer")
            .field("states_bytes", &self.cache.memory_usage())
            .finish_non_exhaustive()
    }
}

impl Lexer for AutomataLexer {
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, LexError> {
        let mut start = to_boundary(segment, start);
        while start < segment.len() {
            let input = Input::new(segment).range(start..).anchored(Anchored::Yes);
            let found = match self.tables.dfa.try_search_fwd(&mut self.cache, &input) {
                Ok(Some(half)) => {
                    let end = self
                        .tables
                        .end(segment, start..half.offset(), half.pattern());
                    start..end
                }
                // No match here, or the DFA could not tell.
                Ok(None) | Err(_) => match self.search(segment, start)? {
                    Some(found) => found,
                    None => return Ok(None),
                },
            };
            if !found.is_empty() {
                return Ok(Some(found));
            }
            // An empty match is no pre-token: go on one character later.
            start = found.start + char_at(segment, found.start).map_or(1, char::len_utf8);
        }
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

/// Returns what the automata are built from, and which of it has the look-ahead.
fn branches(source: &str) -> Result<(Vec<Hir>, Option<PatternID>), PatternError> {
    for form in TRAILING_FORMS {
        let Some(before) = source.strip_suffix(form) else {
            continue;
        };
        let white_space = translate(r"\s+")?;
        if before.is_empty() {
            return Ok((vec![white_space], Some(PatternID::ZERO)));
        }
        // What stands before the form must be a pattern of its own: then the form's branches
        // are branches of the whole, not of a group, and no escape or class swallows the bar.
        let Some(before) = before.strip_suffix('|') else {
            continue;
        };
        let Ok(tree) = Parser::new().parse(before) else {
            continue;
        };
        if changes_the_form(&tree) {
            continue;
        }
        let before = translate(before)?;
        return Ok((vec![before, white_space], Some(PatternID::must(1))));
    }
    Ok((vec![translate(source)?], None))
}

/// Parses a pattern, and refuses what regex-syntax takes but does not understand as
/// fancy-regex does.
fn translate(source: &str) -> Result<Hir, PatternError> {
    let tree = Parser::new().parse(source).map_err(|error| {
        match error.kind() {
            ast::ErrorKind::UnsupportedLookAround => PatternError::unsupported(
                "automata",
                format_args!(
                    "look-around (or an atomic group) at byte {}; only a trailing `\\s+(?!\\S)|\\s+` can be done",
                    error.span().start.offset
                ),
            ),
            ast::ErrorKind::UnsupportedBackreference => PatternError::unsupported(
                "automata",
                format_args!("a back-reference at byte {}", error.span().start.offset),
            ),
            _ => PatternError::syntax(error),
        }
    })?;
    ast::visit(&tree, NoPossessiveQuantifiers)?;
    Translator::new()
        .translate(source, &tree)
        .map_err(PatternError::syntax)
}

/// Does a flag that is set for the whole pattern change the meaning of the form after it?
fn changes_the_form(tree: &Ast) -> bool {
    let in_branch = |branch: &Ast| match branch {
        Ast::Flags(set) => set.flags.items.iter().any(|item| {
            matches!(
                item.kind,
                FlagsItemKind::Flag(Flag::SwapGreed | Flag::Unicode | Flag::IgnoreWhitespace)
            )
        }),
        _ => false,
    };
    let in_alternative = |alternative: &Ast| match alternative {
        Ast::Concat(concat) => concat.asts.iter().any(in_branch),
        other => in_branch(other),
    };
    match tree {
        Ast::Alternation(alternation) => alternation.asts.iter().any(in_alternative),
        other => in_alternative(other),
    }
}

/// Finds `a++`, which is a possessive quantifier to fancy-regex (and everybody else), and a
/// repetition of a repetition to regex-syntax.
struct NoPossessiveQuantifiers;

impl ast::Visitor for NoPossessiveQuantifiers {
    type Output = ();
    type Err = PatternError;

    fn finish(self) -> Result<(), PatternError> {
        Ok(())
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), PatternError> {
        match tree {
            Ast::Repetition(outer) if matches!(*outer.ast, Ast::Repetition(_)) => {
                Err(PatternError::unsupported(
                    "automata",
                    format_args!(
                        "a possessive quantifier at byte {}",
                        outer.op.span.start.offset
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}
