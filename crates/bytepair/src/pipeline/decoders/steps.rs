//! What each step of a decoder does with one string, or with a part of one.

use std::borrow::Cow;

use bpe_core::byte_level;

/// One step.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A blank between two strings; what no decoder means.
    Blanks,
    ByteLevel,
    ByteFallback,
    Fuse,
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    Replace {
        from: String,
        to: String,
    },
    Metaspace {
        replacement: char,
        /// Whether blanks of the first string are dropped.
        drop_first: bool,
    },
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    BpeDecoder {
        suffix: String,
    },
    Ctc {
        pad: String,
        delimiter: String,
        cleanup: bool,
    },
    /// What the library of SentencePiece does to the pieces of a `.model` file.
    SentencePiece {
        /// Pieces that decode to nothing, sorted.
        controls: Vec<String>,
        unknown: String,
        unknown_surface: String,
        /// Whether a blank at the start goes, and whether all of them do.
        drops_blank: bool,
        drops_blanks: bool,
    },
}

/// A string, or a part of one that goes on with the next part.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    /// Whether the string ends here.
    ends: bool,
}

impl<'a> Part<'a> {
    pub(super) fn whole(text: &'a str) -> Self {
        Self { text, ends: true }
    }

    pub(super) fn open(text: &'a str) -> Self {
        Self { text, ends: false }
    }
}

/// How far a step has come.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Strings that have ended.
    strings: usize,
    /// Of the string that has begun: what is held back.
    held: String,
    /// Bytes of a run of byte tokens, or of a character that has begun.
    bytes: Vec<u8>,
    /// Characters stripped from the start of this string.
    stripped: usize,
    /// Whether the string has had a part that counts.
    begun: bool,
    /// The string before, for steps that look at two.
    before: Option<String>,
}

type Sink<'s> = &'s mut dyn FnMut(Part<'_>);

impl Step {
    /// Takes a part, and hands on what it makes certain.
    pub(super) fn push(&self, state: &mut State, part: Part<'_>, next: Sink<'_>) {
        match self {
            Self::Blanks => {
                if state.strings > 0 && !state.begun {
                    next(Part::open(" "));
                }
                state.begun = !part.ends;
                state.strings += usize::from(part.ends);
                next(part);
            }
            Self::Fuse => next(Part::open(part.text)),
            Self::ByteLevel => {
                let whole = whole(state, part);
                if let Some(text) = whole {
                    let bytes = match byte_level::decode(&text) {
                        Ok(bytes) => bytes,
                        Err(_) => text.into_owned().into_bytes(),
                    };
                    let lossy = self.push_bytes(state, &bytes);
                    next(Part::open(&lossy));
                }
            }
            Self::ByteFallback => {
                if let Some(text) = whole(state, part) {
                    match fallback_byte(&text) {
                        Some(byte) => state.bytes.push(byte),
                        None => {
                            end_run(state, next);
                            next(Part::whole(&text));
                        }
                    }
                }
            }
            Self::Strip {
                content,
                start,
                stop,
            } => strip(state, part, (*content, *start, *stop), next),
            Self::Replace { from, to } => {
                state.held.push_str(part.text);
                let held = std::mem::take(&mut state.held);
                let mut replaced = String::new();
                let mut from_here = 0;
                for (place, _) in held.match_indices(from.as_str()) {
                    replaced.push_str(&held[from_here..place]);
                    replaced.push_str(to);
                    from_here = place + from.len();
                }
                let rest = &held[from_here..];
                let sure = match part.ends {
                    true => rest.len(),
                    false => rest.len() - begun_match(rest, from),
                };
                replaced.push_str(&rest[..sure]);
                state.held.push_str(&rest[sure..]);
                next(Part {
                    text: &replaced,
                    ends: part.ends,
                });
            }
            Self::Metaspace {
                replacement,
                drop_first,
            } => {
                let blank = match *drop_first && state.strings == 0 {
                    true => "",
                    false => " ",
                };
                state.strings += usize::from(part.ends);
                next(Part {
                    text: &part.text.replace(*replacement, blank),
                    ends: part.ends,
                });
            }
            Self::WordPiece { prefix, cleanup } => {
                if let Some(text) = whole(state, part) {
                    let mut text = match text.strip_prefix(prefix.as_str()) {
                        _ if state.strings == 0 => text.into_owned(),
                        Some(rest) => rest.to_owned(),
                        None => format!(" {text}"),
                    };
                    state.strings += 1;
                    if *cleanup {
                        text = clean_up(&text);
                    }
                    next(Part::whole(&text));
                }
            }
            Self::BpeDecoder { suffix } => {
                if let Some(text) = whole(state, part)
                    && let Some(before) = state.before.replace(text.into_owned())
                {
                    next(Part::whole(&before.replace(suffix.as_str(), " ")));
                }
            }
            Self::Ctc {
                pad,
                delimiter,
                cleanup,
            } => {
                let Some(text) = whole(state, part) else {
                    return;
                };
                if state.before.as_deref() == Some(&*text) {
                    return;
                }
                let mut replaced = text.replace(pad.as_str(), "");
                if *cleanup {
                    replaced = clean_up(&replaced).replace(delimiter.as_str(), " ");
                }
                state.before = Some(text.into_owned());
                if !replaced.is_empty() {
                    next(Part::whole(&replaced));
                }
            }
            Self::SentencePiece { .. } => {
                if let Some(piece) = whole(state, part) {
                    self.push_piece(state, &piece, next);
                }
            }
        }
    }

    /// A piece of a `.model` file. `state.begun` says that a blank is no longer one at the start.
    fn push_piece(&self, state: &mut State, piece: &str, next: Sink<'_>) {
        let Self::SentencePiece {
            controls,
            unknown,
            unknown_surface,
            drops_blank,
            drops_blanks,
        } = self
        else {
            return;
        };
        if let Some(byte) = fallback_byte(piece) {
            state.bytes.push(byte);
            let text = sure_characters(&mut state.bytes);
            state.begun |= !text.is_empty();
            next(Part::whole(&text));
            return;
        }
        let bytes = std::mem::take(&mut state.bytes);
        bytes.iter().for_each(|_| next(Part::whole("\u{FFFD}")));
        state.begun |= !bytes.is_empty();
        if controls
            .binary_search_by(|control| control.as_str().cmp(piece))
            .is_ok()
        {
            return;
        }
        if piece == unknown {
            state.begun |= !unknown_surface.is_empty();
            next(Part::whole(unknown_surface));
            return;
        }
        let mut piece = piece;
        if *drops_blank
            && !state.begun
            && let Some(rest) = piece.strip_prefix('\u{2581}')
        {
            piece = rest;
            state.begun = !drops_blanks;
        }
        state.begun |= !piece.is_empty();
        next(Part::whole(&piece.replace('\u{2581}', " ")));
    }

    /// Hands on the rest.
    pub(super) fn finish(&self, state: &mut State, next: Sink<'_>) {
        match self {
            Self::Fuse => next(Part::whole("")),
            Self::ByteLevel => {
                let lossy = String::from_utf8_lossy(&state.bytes).into_owned();
                next(Part::whole(&lossy));
            }
            Self::ByteFallback => end_run(state, next),
            Self::SentencePiece { .. } => {
                let bytes = std::mem::take(&mut state.bytes);
                bytes.iter().for_each(|_| next(Part::whole("\u{FFFD}")));
            }
            Self::BpeDecoder { suffix } => {
                if let Some(last) = state.before.take() {
                    next(Part::whole(&last.replace(suffix.as_str(), "")));
                }
            }
            _ => {}
        }
    }

    /// Text of the bytes of a token, for `ByteLevel`: all but a character that has begun.
    pub(super) fn push_bytes(&self, state: &mut State, bytes: &[u8]) -> String {
        state.bytes.extend_from_slice(bytes);
        let mut text = String::new();
        let mut done = 0;
        for chunk in state.bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            let ends_here = done + invalid.len() == state.bytes.len();
            let waits = ends_here && is_begun(invalid);
            if !invalid.is_empty() && !waits {
                text.push(char::REPLACEMENT_CHARACTER);
                done += invalid.len();
            }
        }
        state.bytes.drain(..done);
        text
    }
}

/// The whole string, once its last part is there.
fn whole<'p>(state: &mut State, part: Part<'p>) -> Option<Cow<'p, str>> {
    if part.ends && state.held.is_empty() {
        return Some(Cow::Borrowed(part.text));
    }
    state.held.push_str(part.text);
    match part.ends {
        true => Some(Cow::Owned(std::mem::take(&mut state.held))),
        false => None,
    }
}

/// The byte that a text like `<0x0A>` stands for. Digits are what Rust takes for two of them, a sign
/// included, as in `tokenizers`.
fn fallback_byte(text: &str) -> Option<u8> {
    if text.len() != 6 || !text.starts_with("<0x") || !text.ends_with('>') {
        return None;
    }
    u8::from_str_radix(text.get(3..5)?, 16).ok()
}

/// A run of byte tokens has ended: their text, or U+FFFD for each.
fn end_run(state: &mut State, next: Sink<'_>) {
    let bytes = std::mem::take(&mut state.bytes);
    match std::str::from_utf8(&bytes) {
        Ok("") => {}
        Ok(text) => next(Part::whole(text)),
        Err(_) => bytes.iter().for_each(|_| next(Part::whole("\u{FFFD}"))),
    }
}

/// `Strip` takes up to `start` of its characters from the start of a string, up to `stop` from the end.
fn strip(
    state: &mut State,
    part: Part<'_>,
    (content, start, stop): (char, usize, usize),
    next: Sink<'_>,
) {
    let mut text = part.text;
    while !state.begun && state.stripped < start {
        let Some(rest) = text.strip_prefix(content) else {
            break;
        };
        text = rest;
        state.stripped += 1;
    }
    state.begun |= !text.is_empty();
    state.held.push_str(text);
    let held = std::mem::take(&mut state.held);
    let at_end = held.chars().rev().take(stop).take_while(|&c| c == content);
    let sure = held.len() - at_end.count() * content.len_utf8();
    if part.ends {
        state.stripped = 0;
        state.begun = false;
    } else {
        state.held.push_str(&held[sure..]);
    }
    next(Part {
        text: &held[..sure],
        ends: part.ends,
    });
}

/// Bytes at the end of `text` that may begin `wanted`; all that may, where `wanted` is long.
fn begun_match(text: &str, wanted: &str) -> usize {
    let longest = text.len().min(wanted.len() - 1);
    if longest > 64 {
        let start = text.floor_char_boundary(text.len() - longest);
        return text.len() - start;
    }
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    let begins = |&length: &usize| wanted.starts_with(&text[text.len() - length..]);
    (1..=longest).rev().find(begins).unwrap_or(0)
}

/// The characters that bytes have made, with U+FFFD for each byte that can be in none; what may still
/// become one stays.
fn sure_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut done = 0;
    loop {
        let rest = bytes.get(done..).unwrap_or_default();
        match rest.utf8_chunks().next() {
            None => break,
            Some(chunk) if !chunk.valid().is_empty() => {
                text.push_str(chunk.valid());
                done += chunk.valid().len();
            }
            Some(_) if is_begun(rest) => break,
            Some(_) => {
                text.push(char::REPLACEMENT_CHARACTER);
                done += 1;
            }
        }
    }
    bytes.drain(..done);
    text
}

/// Whether these bytes begin a character that more bytes may end.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Blanks that English does not have before punctuation and short forms are taken away. The list and
/// its order are those of `tokenizers`.
fn clean_up(text: &str) -> String {
    const SHORTER: [(&str, &str); 11] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    let mut text = Cow::Borrowed(text);
    for (long, short) in SHORTER {
        if text.contains(long) {
            text = Cow::Owned(text.replace(long, short));
        }
    }
    text.into_owned()
}
