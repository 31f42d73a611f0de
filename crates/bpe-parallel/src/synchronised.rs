//! Documents and long texts, cut without loss: the strategy that the facade uses.

use std::ops::Range;

use bpe_core::TokenId;
use bpe_lexers::SpecialMatcher;

use crate::documents::{Batch, Divide, OnError, PartSizes, Report};
use crate::exact::{self, Part};
use crate::lexing;
use crate::piece::{self, PieceReport};
use crate::tokenize::{Seams, Tokenize, Tokens, Wanted, find_specials};
use crate::workers::{Team, Workers};

/// Cuts texts where that is known to lose nothing, tokenizes the parts on several threads, and joins
/// them. What comes out is what sequential tokenization gives, for every input.
///
/// 1. Special tokens are found over the whole text.
/// 2. The text is cut at places near the wished ones where both sides are tokenized as if they stood
///    alone: beside special tokens and bytes that are not UTF-8, and at the safe cuts of the patterns.
///    Each part goes to the caller's engines as it is.
/// 3. Where there is no such place near, the part between the cuts before and behind is *dense*. If its
///    pre-tokens seem to be short all over, as those of digits in threes are, one thread takes it all. Else its
///    pre-tokens are found first: by one lexer where the patterns have known cuts, since two would hardly
///    meet in what has none; else by several, which are joined at the first boundary that they share.
///    Pre-tokens of usual length are tokenized in groups.
/// 4. A pre-token longer than a part is cut inside, where no token contains the two bytes on either
///    side or else anywhere, and its tokens are joined at the first token that two parts share. Where they share none
///    the left part goes on over the right one.
///
/// Costs the time of sequential tokenization, divided by the threads, and at most twice the bytes of a long pre-token
/// are merged (docs/theory.md has the proofs, [`Seams`] what must be known).
#[derive(Debug, Clone, Copy, Default)]
pub struct Synchronised {
    part_bytes: Option<usize>,
}

impl Synchronised {
    /// The strategy with parts of a length that suits the text and the number of threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with parts of about `bytes`, and cut even if there is only one thread. For tests and
    /// measurements.
    pub fn part_bytes(mut self, bytes: usize) -> Self {
        self.part_bytes = Some(bytes.max(1));
        self
    }

    /// The tokens of one text.
    ///
    /// # Errors
    ///
    /// The first thing of the text that has no token, as sequential tokenization reports it.
    pub fn encode<T: Tokenize>(
        &self,
        tokenizer: &T,
        seams: &Seams,
        specials: &SpecialMatcher,
        text: &[u8],
        wanted: Wanted,
        workers: &Workers,
    ) -> Result<(Tokens, Report), T::Error> {
        let (batch, errors, report) = self.documents(
            tokenizer,
            seams,
            specials,
            &[text],
            wanted,
            OnError::Stop,
            workers,
        );
        match errors.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok((batch.tokens, report)),
        }
    }

    /// The tokens of `texts` in their order. `wanted` ends of tokens are counted from the start of the
    /// text. The work is divided by bytes: short texts are done together, long ones are cut.
    ///
    /// The errors are those of single texts, with their index, in order; with [`OnError::Stop`] the
    /// first alone, and then the tokens are of no use.
    #[allow(clippy::too_many_arguments, clippy::type_complexity)] // Called in two places, both near.
    pub fn documents<T: Tokenize, S: AsRef<[u8]> + Sync>(
        &self,
        tokenizer: &T,
        seams: &Seams,
        specials: &SpecialMatcher,
        texts: &[S],
        wanted: Wanted,
        on_error: OnError,
        workers: &Workers,
    ) -> (Batch, Vec<(usize, T::Error)>, Report) {
        workers.run(|team| {
            let call = Call {
                tokenizer,
                seams,
                specials,
                wanted,
                team: team.inside(),
            };
            call.documents(texts, self.part_bytes, on_error, team)
        })
    }
}

/// What stays the same during a call.
struct Call<'c, T> {
    tokenizer: &'c T,
    seams: &'c Seams,
    specials: &'c SpecialMatcher,
    wanted: Wanted,
    team: Team<'c>,
}

impl<T: Tokenize, S: AsRef<[u8]> + Sync> Divide<S> for Call<'_, T> {
    type Part = Part;
    type Error = T::Error;

    fn bytes(&self, text: &S) -> usize {
        text.as_ref().len()
    }

    fn parts(&self, text: &S, sizes: PartSizes) -> Vec<Part> {
        let text = text.as_ref();
        let specials = find_specials(text, self.specials);
        exact::parts(text, &specials, self.seams.cuts.as_ref(), sizes)
    }

    fn is_dense(part: &Part) -> bool {
        part.is_dense
    }

    fn encode(&self, text: &S, tokens: &mut Tokens) -> Result<(), T::Error> {
        self.tokenizer.encode(text.as_ref(), self.wanted, tokens)
    }

    fn encode_part(
        &self,
        text: &S,
        part: &Part,
        size: usize,
        memory: Tokens,
        report: &mut PieceReport,
    ) -> Result<Vec<Tokens>, T::Error> {
        let start = part.range.start;
        let bytes = text.as_ref().get(part.range.clone()).unwrap_or_default();
        let tokens = match part.is_dense {
            true => self.dense(bytes, size, memory, report),
            false => self.all(bytes, memory),
        };
        let mut tokens = tokens.map_err(|error| T::moved(error, start))?;
        for end in tokens.iter_mut().flat_map(|tokens| &mut tokens.ends) {
            *end += start;
        }
        Ok(tokens)
    }
}

impl<T: Tokenize> Call<'_, T> {
    fn all(&self, bytes: &[u8], mut tokens: Tokens) -> Result<Vec<Tokens>, T::Error> {
        self.tokenizer.encode(bytes, self.wanted, &mut tokens)?;
        Ok(vec![tokens])
    }

    /// The tokens of a part in which there are few cuts: pre-tokens first.
    fn dense(
        &self,
        text: &[u8],
        size: usize,
        memory: Tokens,
        report: &mut PieceReport,
    ) -> Result<Vec<Tokens>, T::Error> {
        // Where the safe cuts of the patterns are known, a stretch without any is one long pre-token, or a
        // run such as digits in threes in which two lexers would not meet: then one thread is faster, in
        // the sequential way, which keeps no list of pre-tokens.
        if self.seams.cuts.is_some() && lexing::seems_small(&self.seams.stages, text) {
            return self.all(text, memory);
        }
        // Where a lexer gives up, what stands before that place may have an error of its own: the
        // sequential way tells which comes first.
        let Some(work) = self.pieces(text, size) else {
            return self.all(text, memory);
        };
        let done = self.team.map(&work, |work| self.piece(work, text, size));
        let mut tokens = Vec::with_capacity(done.len());
        for done in done {
            let (mut some, pieces) = done?;
            tokens.append(&mut some);
            report.add(pieces);
        }
        Ok(tokens)
    }

    /// The pre-tokens of a part in groups; `None` where a lexer gives up.
    fn pieces(&self, text: &[u8], size: usize) -> Option<Vec<Pieces>> {
        let stages = &self.seams.stages;
        // A long pre-token is found by one lexer; two would look for it twice.
        let team = match self.seams.cuts {
            Some(_) => Team::ALONE,
            None => self.team,
        };
        let mut work = Vec::new();
        let mut start = 0;
        let specials = find_specials(text, self.specials);
        let ends = specials.iter().map(|special| special.start);
        for (index, end) in ends.chain([text.len()]).enumerate() {
            let mut ends = Vec::new();
            let mut segment_start = start;
            for chunk in text.get(start..end)?.utf8_chunks() {
                let segment = chunk.valid();
                let found = lexing::piece_ends(stages, segment, size, team).ok()?;
                if ends.is_empty() && segment_start == 0 {
                    ends = found;
                } else {
                    ends.extend(found.into_iter().map(|end| end + segment_start));
                }
                segment_start += segment.len() + chunk.invalid().len();
                if !chunk.invalid().is_empty() {
                    ends.push(segment_start);
                }
            }
            for group in lexing::groups(&ends, start, size) {
                let first = group.start.checked_sub(1).map_or(start, |last| ends[last]);
                work.push(Pieces::Words(first, ends[group].to_vec()));
            }
            if let Some(special) = specials.get(index) {
                work.push(Pieces::Special(special.clone()));
                start = special.end;
            }
        }
        Some(work)
    }

    fn piece(
        &self,
        work: &Pieces,
        text: &[u8],
        size: usize,
    ) -> Result<(Vec<Tokens>, PieceReport), T::Error> {
        let report = PieceReport::default();
        let spans = &self.seams.spans;
        let mut tokens = Tokens::default();
        match work {
            Pieces::Special(range) => {
                let special = text.get(range.clone()).unwrap_or_default();
                self.tokenizer
                    .encode(special, self.wanted, &mut tokens)
                    .map_err(|error| T::moved(error, range.start))?;
                for end in &mut tokens.ends {
                    *end += range.start;
                }
            }
            Pieces::Words(start, ends) => match ends[..] {
                [end]
                    if end - start > size
                        && end - start > spans.longest_token
                        && (spans.joins || spans.pairs.is_some()) =>
                {
                    let piece = text.get(*start..end).unwrap_or_default();
                    let (ids, report) = piece::merge(self.tokenizer, spans, piece, size, self.team)
                        .map_err(|error| T::moved(error, *start))?;
                    return Ok((self.of_piece(piece, *start, ids), report));
                }
                _ => {
                    self.tokenizer
                        .encode_pieces(text, *start, ends, self.wanted, &mut tokens)?;
                }
            },
        }
        Ok((vec![tokens], report))
    }

    /// What is wanted of the tokens of a piece that begins at byte `start`.
    fn of_piece(&self, piece: &[u8], start: usize, ids: Vec<Vec<TokenId>>) -> Vec<Tokens> {
        let whole = |ids: Vec<TokenId>| Tokens {
            count: ids.len(),
            ids,
            ..Tokens::default()
        };
        match self.wanted {
            Wanted::Ids => ids.into_iter().map(whole).collect(),
            Wanted::Count => vec![Tokens {
                count: ids.iter().map(Vec::len).sum(),
                ..Tokens::default()
            }],
            Wanted::Ends => {
                let mut tokens = whole(ids.concat());
                self.tokenizer.ends_of(piece, &tokens.ids, &mut tokens.ends);
                for end in &mut tokens.ends {
                    *end += start;
                }
                vec![tokens]
            }
        }
    }
}

/// Pre-tokens that one thread turns into tokens.
enum Pieces {
    /// A special token.
    Special(Range<usize>),
    /// Where the first one begins, and where each ends.
    Words(usize, Vec<usize>),
}
