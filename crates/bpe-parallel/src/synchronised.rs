//! Documents and long texts, cut without loss: the strategy that the facade uses.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bpe_core::TokenId;
use bpe_lexers::SpecialMatcher;

use crate::exact::{self, Part};
use crate::join::{Collector, Done};
use crate::lexing;
use crate::piece::{self, PieceReport};
use crate::tokenize::{Seams, Tokenize, Tokens, Wanted, find_specials};
use crate::workers::{Team, Workers};

/// Parts are at least this long, or threads would be busy with fetching them.
const SHORTEST: usize = 16 << 10;

/// Parts are at most this long, so that the last ones end at about the same time.
const LONGEST: usize = 128 << 10;

/// Parts for each thread, at least, where they are long enough.
const PARTS_A_THREAD: usize = 8;

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
///    side or else anywhere, and its tokens are joined at the first token that two parts share.
///
/// Costs the time of sequential tokenization, divided by the threads, and no byte is merged more than
/// twice (docs/theory.md has the proofs, [`Seams`] what must be known).
#[derive(Debug, Clone, Copy, Default)]
pub struct Synchronised {
    part_bytes: Option<usize>,
}

/// The tokens of several documents in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The tokens of all documents.
    pub tokens: Tokens,
    /// Of each document, the number of tokens up to its end.
    pub document_ends: Vec<usize>,
}

/// What to do with a document that has no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Leave off.
    Stop,
    /// Go on: it counts as a document without tokens.
    Keep,
}

/// How a call was done: for tests and measurements.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Time to find special tokens and cuts.
    pub split: Duration,
    /// Time until all was done, but for the rest.
    pub tokenize: Duration,
    /// Time in which one of the threads put parts together.
    pub merge: Duration,
    /// Parts and groups of documents.
    pub parts: usize,
    /// Parts whose pre-tokens were found before they were tokenized.
    pub dense_parts: usize,
    /// What was done for pre-tokens longer than a part, added up.
    pub pieces: PieceReport,
}

/// A piece of work.
pub(crate) enum Job {
    /// Documents of usual length.
    Documents {
        documents: Range<usize>,
        bytes: usize,
    },
    /// A part of a long one.
    Part { document: usize, part: Part },
}

impl Job {
    fn first_document(&self) -> usize {
        match self {
            Self::Documents { documents, .. } => documents.start,
            Self::Part { document, .. } => *document,
        }
    }

    /// Bytes of text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Documents { bytes, .. } => *bytes,
            Self::Part { part, .. } => part.range.len(),
        }
    }
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
        let batch = self.batch(
            tokenizer,
            seams,
            specials,
            &[text],
            wanted,
            OnError::Stop,
            workers,
        );
        match batch {
            (_, Some((_, error)), _) => Err(error),
            (batch, None, report) => Ok((batch.tokens, report)),
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
                team,
            };
            call.run(self.part_bytes, texts, on_error)
        })
    }

    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn batch<T: Tokenize>(
        &self,
        tokenizer: &T,
        seams: &Seams,
        specials: &SpecialMatcher,
        texts: &[&[u8]],
        wanted: Wanted,
        on_error: OnError,
        workers: &Workers,
    ) -> (Batch, Option<(usize, T::Error)>, Report) {
        let (batch, errors, report) =
            self.documents(tokenizer, seams, specials, texts, wanted, on_error, workers);
        (batch, errors.into_iter().next(), report)
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

impl<T: Tokenize> Call<'_, T> {
    fn run<S: AsRef<[u8]> + Sync>(
        &self,
        part_bytes: Option<usize>,
        texts: &[S],
        on_error: OnError,
    ) -> (Batch, Vec<(usize, T::Error)>, Report) {
        let start = Instant::now();
        let total: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let threads = self.team.threads();
        let size = part_bytes
            .unwrap_or_else(|| (total / (threads * PARTS_A_THREAD)).clamp(SHORTEST, LONGEST));
        let is_cut = threads > 1 || part_bytes.is_some();
        let jobs = self.jobs(texts, size, is_cut);
        let mut report = Report {
            parts: jobs.len(),
            ..Report::default()
        };
        report.dense_parts = jobs
            .iter()
            .filter(|job| matches!(job, Job::Part { part, .. } if part.is_dense))
            .count();
        report.split = start.elapsed();

        let start = Instant::now();
        // The first document that has failed, where that ends the work.
        let failed = AtomicUsize::new(usize::MAX);
        let collector = Collector::new(&jobs, total, texts.len());
        self.team.for_each_number(jobs.len(), |number| {
            let job = &jobs[number];
            let mut done = Done::default();
            if job.first_document() <= failed.load(Ordering::Relaxed) {
                self.job(job, texts, size, collector.spare(), &mut done);
            }
            if let (OnError::Stop, Some((document, _))) = (on_error, done.failures.first()) {
                failed.fetch_min(*document, Ordering::Relaxed);
            }
            collector.hand_in(number, done);
        });
        let joined = collector.into_joined();
        report.tokenize = start.elapsed().saturating_sub(joined.time);
        report.merge = joined.time;
        report.pieces = joined.pieces;
        let mut failures = joined.failures;
        if on_error == OnError::Stop && !failures.is_empty() {
            failures.truncate(1);
            return (Batch::default(), failures, report);
        }
        (joined.batch, failures, report)
    }

    /// Divides the work by bytes.
    fn jobs<S: AsRef<[u8]>>(&self, texts: &[S], size: usize, is_cut: bool) -> Vec<Job> {
        let mut jobs = Vec::new();
        let (mut first, mut bytes) = (0, 0);
        for (document, text) in texts.iter().enumerate() {
            let text = text.as_ref();
            if is_cut && text.len() > size + size / 2 {
                let specials = find_specials(text, self.specials);
                let cuts = self.seams.cuts.as_ref();
                let parts = exact::parts(text, &specials, cuts, size);
                if first < document {
                    let documents = first..document;
                    jobs.push(Job::Documents { documents, bytes });
                }
                (first, bytes) = (document + 1, 0);
                jobs.extend(parts.into_iter().map(|part| Job::Part { document, part }));
                continue;
            }
            bytes += text.len();
            if bytes >= size {
                let documents = first..document + 1;
                jobs.push(Job::Documents { documents, bytes });
                (first, bytes) = (document + 1, 0);
            }
        }
        if first < texts.len() {
            let documents = first..texts.len();
            jobs.push(Job::Documents { documents, bytes });
        }
        jobs
    }

    /// Does one piece of work; `tokens`, which is empty, is memory to use.
    fn job<S: AsRef<[u8]>>(
        &self,
        job: &Job,
        texts: &[S],
        size: usize,
        mut tokens: Tokens,
        done: &mut Done<T::Error>,
    ) {
        match job {
            Job::Documents { documents, .. } => {
                for document in documents.clone() {
                    let text = texts.get(document).map_or(&[][..], AsRef::as_ref);
                    let before = (tokens.count, tokens.ids.len(), tokens.ends.len());
                    if let Err(error) = self.tokenizer.encode(text, self.wanted, &mut tokens) {
                        tokens.count = before.0;
                        tokens.ids.truncate(before.1);
                        tokens.ends.truncate(before.2);
                        done.failures.push((document, error));
                    }
                    done.document_ends.push(tokens.count);
                }
                done.tokens.push(tokens);
            }
            Job::Part { document, part } => {
                let text = texts.get(*document).map_or(&[][..], AsRef::as_ref);
                let bytes = text.get(part.range.clone()).unwrap_or_default();
                let tokens = match part.is_dense {
                    true => self.dense(bytes, size, tokens, &mut done.pieces),
                    false => self.encode(bytes, tokens),
                };
                match tokens {
                    Ok(mut tokens) => {
                        for end in tokens.iter_mut().flat_map(|tokens| &mut tokens.ends) {
                            *end += part.range.start;
                        }
                        done.tokens = tokens;
                    }
                    Err(error) => {
                        let error = T::moved(error, part.range.start);
                        done.failures.push((*document, error));
                    }
                }
            }
        }
    }

    fn encode(&self, bytes: &[u8], mut tokens: Tokens) -> Result<Vec<Tokens>, T::Error> {
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
            return self.encode(text, memory);
        }
        // Where a lexer gives up, what stands before that place may have an error of its own: the
        // sequential way tells which comes first.
        let Some(work) = self.pieces(text, size) else {
            return self.encode(text, memory);
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
            ends: Vec::new(),
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
