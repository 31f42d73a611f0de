//! From the spelling of a pattern to a tree of what it means.
//!
//! regex-syntax parses the spelling, with two things added that it does not have. A look-ahead
//! `(?!X)` or `(?=X)` for one character is replaced, before parsing, by a noncharacter that
//! stands for it. A possessive quantifier is what regex-syntax takes for a repetition of a
//! repetition (`a++`), and is told from a real one (`(?:a+)+`) in the syntax tree. So flags,
//! classes and case folding are those of regex-syntax, which all engines use.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, AssertionKind, Ast, Flag, FlagsItemKind, GroupKind, RepetitionKind};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::AnalysisError;

/// What a pattern means. Classes are positions in a list of sets of characters.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Empty,
    /// One character of the class.
    Class(usize),
    /// The next character is of the class, or the segment ends here and `end` is set. Takes
    /// nothing.
    Ahead {
        class: usize,
        end: bool,
    },
    Concat(Vec<Node>),
    /// The first that leads to a match counts.
    Alternation(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        greed: Greed,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
    /// Greedy, and gives nothing back.
    Possessive,
}

/// The noncharacters U+FDD0 to U+FDEF: more look-aheads than that are refused.
const MARKERS: core::ops::RangeInclusive<char> = '\u{FDD0}'..='\u{FDEF}';

/// Parses `source`, and appends the classes that it uses to `classes`.
pub(super) fn parse(source: &str, classes: &mut Vec<ClassUnicode>) -> Result<Node, AnalysisError> {
    if source.contains(|character| MARKERS.contains(&character)) {
        return Err(AnalysisError::unsupported("a noncharacter"));
    }
    let (marked, looks) = mark_look_aheads(source)?;
    let tree = syntax_tree(&marked)?;
    let mut reader = Reader {
        source: &marked,
        flags: Flags::default(),
        looks: &looks,
        classes,
    };
    reader.node(&tree)
}

fn syntax_tree(source: &str) -> Result<Ast, AnalysisError> {
    Parser::new()
        .parse(source)
        .map_err(|error| match error.kind() {
            ast::ErrorKind::UnsupportedLookAround => AnalysisError::unsupported(format_args!(
                "look-around at byte {}",
                error.span().start.offset
            )),
            ast::ErrorKind::FlagUnrecognized
                if source.get(error.span().start.offset..error.span().end.offset) == Some(">") =>
            {
                AnalysisError::unsupported("an atomic group")
            }
            ast::ErrorKind::UnsupportedBackreference => {
                AnalysisError::unsupported("a back-reference")
            }
            _ => AnalysisError::syntax(error),
        })
}

/// A look-ahead for one character.
struct Look {
    inner: String,
    negated: bool,
}

/// Replaces each look-ahead by the noncharacter of its number.
fn mark_look_aheads(source: &str) -> Result<(String, Vec<Look>), AnalysisError> {
    let mut marked = source.to_owned();
    let mut looks = Vec::new();
    let mut markers = MARKERS;
    loop {
        let place = match Parser::new().parse(&marked) {
            Err(error) if *error.kind() == ast::ErrorKind::UnsupportedLookAround => {
                error.span().start.offset
            }
            // Other errors are reported where the tree is made.
            _ => return Ok((marked, looks)),
        };
        let rest = marked.get(place..).unwrap_or_default();
        let negated = rest.starts_with("(?!");
        if !negated && !rest.starts_with("(?=") {
            return Err(AnalysisError::unsupported(format_args!(
                "look-behind or an atomic group near {rest:.20}"
            )));
        }
        // The shortest text up to a parenthesis that is a pattern of its own.
        let inner = rest.get(3..).unwrap_or_default();
        let end = inner
            .match_indices(')')
            .map(|(end, _)| end)
            .find(|&end| Parser::new().parse(&inner[..end]).is_ok())
            .ok_or_else(|| AnalysisError::unsupported("nested look-around"))?;
        let marker = markers
            .next()
            .ok_or_else(|| AnalysisError::unsupported("so many look-aheads"))?;
        looks.push(Look {
            inner: inner[..end].to_owned(),
            negated,
        });
        let after = place + 3 + end + 1;
        marked.replace_range(place..after, marker.encode_utf8(&mut [0; 4]));
    }
}

/// The flags that change what a pattern means.
#[derive(Clone, Copy, Default)]
struct Flags {
    case_insensitive: bool,
    multi_line: bool,
    dot_matches_new_line: bool,
    swap_greed: bool,
    crlf: bool,
}

impl Flags {
    fn set(&mut self, flags: &ast::Flags) -> Result<(), AnalysisError> {
        let mut on = true;
        for item in &flags.items {
            match item.kind {
                FlagsItemKind::Negation => on = false,
                FlagsItemKind::Flag(Flag::CaseInsensitive) => self.case_insensitive = on,
                FlagsItemKind::Flag(Flag::MultiLine) => self.multi_line = on,
                FlagsItemKind::Flag(Flag::DotMatchesNewLine) => self.dot_matches_new_line = on,
                FlagsItemKind::Flag(Flag::SwapGreed) => self.swap_greed = on,
                FlagsItemKind::Flag(Flag::CRLF) => self.crlf = on,
                // The parser has done its part already.
                FlagsItemKind::Flag(Flag::IgnoreWhitespace) => {}
                FlagsItemKind::Flag(Flag::Unicode) if on => {}
                FlagsItemKind::Flag(Flag::Unicode) => {
                    return Err(AnalysisError::unsupported("the flag `-u`"));
                }
            }
        }
        Ok(())
    }
}

/// Walks a syntax tree from left to right, since flags hold from where they stand on.
struct Reader<'p> {
    source: &'p str,
    flags: Flags,
    looks: &'p [Look],
    classes: &'p mut Vec<ClassUnicode>,
}

impl Reader<'_> {
    fn node(&mut self, tree: &Ast) -> Result<Node, AnalysisError> {
        match tree {
            Ast::Empty(_) => Ok(Node::Empty),
            Ast::Flags(set) => {
                self.flags.set(&set.flags)?;
                Ok(Node::Empty)
            }
            Ast::Literal(literal) if MARKERS.contains(&literal.c) => self.look_ahead(literal.c),
            Ast::Literal(_)
            | Ast::Dot(_)
            | Ast::ClassUnicode(_)
            | Ast::ClassPerl(_)
            | Ast::ClassBracketed(_) => {
                let class = self.class(tree)?;
                Ok(Node::Class(self.keep(class)))
            }
            Ast::Assertion(assertion) => self.assertion(&assertion.kind),
            Ast::Repetition(repetition) => self.repetition(repetition),
            Ast::Group(group) => {
                let outside = self.flags;
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.flags.set(flags)?;
                }
                let node = self.node(&group.ast);
                self.flags = outside;
                node
            }
            Ast::Alternation(alternation) => Ok(Node::Alternation(
                (alternation.asts.iter())
                    .map(|branch| self.node(branch))
                    .collect::<Result<_, _>>()?,
            )),
            Ast::Concat(concat) => Ok(Node::Concat(
                (concat.asts.iter())
                    .map(|part| self.node(part))
                    .collect::<Result<_, _>>()?,
            )),
        }
    }

    fn repetition(&mut self, repetition: &ast::Repetition) -> Result<Node, AnalysisError> {
        let (min, max) = bounds(&repetition.op.kind);
        if let Ast::Repetition(inner) = &*repetition.ast {
            // `a{1,3}+`: what the outer `+` says is that the inner one is possessive.
            let possessive = repetition.greedy && (min, max) == (1, None) && inner.greedy;
            if !possessive || self.flags.swap_greed {
                return Err(AnalysisError::unsupported("a repetition of a repetition"));
            }
            let node = self.node(&inner.ast)?;
            if !matches!(node, Node::Class(_)) {
                return Err(AnalysisError::unsupported(
                    "a possessive quantifier after more than one class",
                ));
            }
            let (min, max) = bounds(&inner.op.kind);
            return Ok(Node::Repeat {
                node: Box::new(node),
                min,
                max,
                greed: Greed::Possessive,
            });
        }
        let greed = match repetition.greedy != self.flags.swap_greed {
            true => Greed::Greedy,
            false => Greed::Lazy,
        };
        Ok(Node::Repeat {
            node: Box::new(self.node(&repetition.ast)?),
            min,
            max,
            greed,
        })
    }

    fn assertion(&mut self, kind: &AssertionKind) -> Result<Node, AnalysisError> {
        let before = match kind {
            AssertionKind::EndText => ClassUnicode::empty(),
            AssertionKind::EndLine if !self.flags.multi_line => ClassUnicode::empty(),
            AssertionKind::EndLine if !self.flags.crlf => {
                ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')])
            }
            _ => {
                return Err(AnalysisError::unsupported(
                    "an assertion about what stands before",
                ));
            }
        };
        Ok(Node::Ahead {
            class: self.keep(before),
            end: true,
        })
    }

    fn look_ahead(&mut self, marker: char) -> Result<Node, AnalysisError> {
        let number = u32::from(marker) - u32::from(*MARKERS.start());
        let looks = self.looks;
        let look = looks
            .get(number as usize)
            .ok_or_else(|| AnalysisError::unsupported("a noncharacter"))?;
        let tree = syntax_tree(&look.inner)?;
        let is_class = matches!(
            tree,
            Ast::Literal(_)
                | Ast::Dot(_)
                | Ast::ClassUnicode(_)
                | Ast::ClassPerl(_)
                | Ast::ClassBracketed(_)
        );
        if !is_class {
            return Err(AnalysisError::unsupported(format_args!(
                "a look-ahead for more than one class: {}",
                look.inner
            )));
        }
        let reader = Reader {
            source: &look.inner,
            flags: self.flags,
            looks: &[],
            classes: self.classes,
        };
        let mut class = reader.class(&tree)?;
        if look.negated {
            class.negate();
        }
        Ok(Node::Ahead {
            class: self.keep(class),
            // What is not there is no character of the class.
            end: look.negated,
        })
    }

    /// The characters that a leaf of the tree matches.
    fn class(&self, leaf: &Ast) -> Result<ClassUnicode, AnalysisError> {
        let hir = TranslatorBuilder::new()
            .case_insensitive(self.flags.case_insensitive)
            .dot_matches_new_line(self.flags.dot_matches_new_line)
            .crlf(self.flags.crlf)
            .build()
            .translate(self.source, leaf)
            .map_err(AnalysisError::syntax)?;
        match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => Ok(class.clone()),
            HirKind::Class(Class::Bytes(class)) => class
                .to_unicode_class()
                .ok_or_else(|| AnalysisError::unsupported("a class of bytes")),
            HirKind::Literal(literal) => {
                let text = core::str::from_utf8(&literal.0).unwrap_or_default();
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(only), None) => {
                        Ok(ClassUnicode::new([ClassUnicodeRange::new(only, only)]))
                    }
                    _ => Err(AnalysisError::unsupported("a byte that is no character")),
                }
            }
            _ => Err(AnalysisError::unsupported("a class of this kind")),
        }
    }

    fn keep(&mut self, class: ClassUnicode) -> usize {
        match self.classes.iter().position(|kept| *kept == class) {
            Some(place) => place,
            None => {
                self.classes.push(class);
                self.classes.len() - 1
            }
        }
    }
}

fn bounds(kind: &RepetitionKind) -> (u32, Option<u32>) {
    use ast::RepetitionRange::{AtLeast, Bounded, Exactly};
    match *kind {
        RepetitionKind::ZeroOrOne => (0, Some(1)),
        RepetitionKind::ZeroOrMore => (0, None),
        RepetitionKind::OneOrMore => (1, None),
        RepetitionKind::Range(Exactly(count)) => (count, Some(count)),
        RepetitionKind::Range(AtLeast(min)) => (min, None),
        RepetitionKind::Range(Bounded(min, max)) => (min, Some(max)),
    }
}
