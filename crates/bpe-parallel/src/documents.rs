//! The scheduler: documents are divided by bytes, worked on by several threads, and put together in order.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::join::{Collector, Done};
use crate::piece::PieceReport;
use crate::tokenize::Tokens;
use crate::workers::Team;

/// The last parts are this long, or threads would be busy with fetching them.
const SHORTEST: usize = 4 << 10;

/// Parts are at most this long: their tokens stay in the caches until they are put in a row.
const LONGEST: usize = 128 << 10;

/// A part is so much of what each thread has to do from there on.
const SHARE: usize = 2;

/// A pre-token that is longer than a part is cut into pieces of at least so many bytes.
const SHORTEST_INSIDE: usize = 16 << 10;

/// Pieces of it for each thread, at least, where they are long enough.
const INSIDE_A_THREAD: usize = 8;

/// How long the parts of a document are to be.
///
/// If nothing else is wished, they are shorter and shorter towards the end of all documents: long ones cost less, and
/// after short ones all threads end at about the same time. (Guided self-scheduling: Polychronopoulos and Kuck, 1987.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSizes {
    kind: Sizes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sizes {
    Equal(usize),
    /// Bytes from the start of the document to the end of all, and the number of threads.
    Guided {
        bytes: usize,
        threads: usize,
    },
}

impl PartSizes {
    /// About `bytes` for each part, 0 counting as 1.
    pub fn equal(bytes: usize) -> Self {
        Self {
            kind: Sizes::Equal(bytes.max(1)),
        }
    }

    /// Shorter and shorter ones, where `bytes` from the start of the document on are to be done by so many threads.
    fn guided(bytes: usize, threads: usize) -> Self {
        Self {
            kind: Sizes::Guided { bytes, threads },
        }
    }

    /// About how many bytes the part is to have that begins at byte `start` of the document; never 0.
    pub fn at(&self, start: usize) -> usize {
        match self.kind {
            Sizes::Equal(bytes) => bytes,
            Sizes::Guided { bytes, threads } => {
                let left = bytes.saturating_sub(start);
                (left / (threads.max(1) * SHARE)).clamp(SHORTEST, LONGEST)
            }
        }
    }
}

/// Documents of the type `S` that can be divided: what the scheduler asks of who knows how.
///
/// [`Synchronised`](crate::Synchronised) is one for tokenizers of the usual build. Another has its own
/// places to cut at, and gets order, errors and balance from [`documents`](Divide::documents).
///
/// ```
/// use bpe_parallel::{Divide, OnError, PartSizes, PieceReport, Tokens, Workers};
///
/// /// Each word is the token of its length.
/// struct Words;
///
/// impl Divide<&str> for Words {
///     type Part = String;
///     type Error = std::convert::Infallible;
///     fn bytes(&self, text: &&str) -> usize {
///         text.len()
///     }
///     fn parts(&self, text: &&str, _sizes: PartSizes) -> Vec<String> {
///         text.split(' ').map(str::to_owned).collect()
///     }
///     fn encode(&self, text: &&str, tokens: &mut Tokens) -> Result<(), Self::Error> {
///         for word in text.split(' ') {
///             tokens.ids.push(word.len() as u32);
///             tokens.count += 1;
///         }
///         Ok(())
///     }
///     fn encode_part(
///         &self,
///         _text: &&str,
///         part: &String,
///         _size: usize,
///         mut memory: Tokens,
///         _report: &mut PieceReport,
///     ) -> Result<Vec<Tokens>, Self::Error> {
///         self.encode(&part.as_str(), &mut memory)?;
///         Ok(vec![memory])
///     }
/// }
///
/// let texts = ["to be", "or not to be"];
/// let workers = Workers::new(2);
/// let (batch, errors, _) =
///     workers.run(|team| Words.documents(&texts, Some(4), OnError::Stop, team));
/// assert!(errors.is_empty());
/// assert_eq!(batch.tokens.ids, [2, 2, 2, 3, 2, 2]);
/// assert_eq!(batch.document_ends, [2, 6]);
/// ```
pub trait Divide<S: Sync>: Sync {
    /// What one thread does at a time.
    type Part: Sync;
    /// Why a document has no tokens.
    type Error: Send;

    /// The length of a document.
    fn bytes(&self, document: &S) -> usize;

    /// Parts of about these sizes: the tokens of all in a row are those of the document.
    fn parts(&self, document: &S, sizes: PartSizes) -> Vec<Self::Part>;

    /// Whether a part is longer than wished, because no place to cut it was found.
    fn is_dense(_part: &Self::Part) -> bool {
        false
    }

    /// Appends the tokens of a document.
    ///
    /// # Errors
    ///
    /// The first thing of the document that has no token.
    fn encode(&self, document: &S, tokens: &mut Tokens) -> Result<(), Self::Error>;

    /// The tokens of a part, in a row; `memory`, which holds none, may be used for them. Places are counted from the
    /// start of the document. A part that is longer than wished may be divided once more, into pieces of `size` bytes.
    ///
    /// # Errors
    ///
    /// As [`Divide::encode`], with the place in the document.
    fn encode_part(
        &self,
        document: &S,
        part: &Self::Part,
        size: usize,
        memory: Tokens,
        report: &mut PieceReport,
    ) -> Result<Vec<Tokens>, Self::Error>;

    /// The tokens of `texts` in their order. The work is divided by bytes: short texts are done together, long
    /// ones in parts of about `part_bytes`, or of a length that suits the text and the number of threads.
    /// With `part_bytes` they are cut even where there is only one thread.
    ///
    /// The errors are those of single texts, with their index, in order; with [`OnError::Stop`] the
    /// first alone, and then the tokens are of no use.
    #[allow(clippy::type_complexity)] // A batch, its errors, how it was done.
    fn documents(
        &self,
        texts: &[S],
        part_bytes: Option<usize>,
        on_error: OnError,
        team: Team<'_>,
    ) -> (Batch, Vec<(usize, Self::Error)>, Report) {
        run(self, texts, part_bytes, on_error, team)
    }
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
pub(crate) enum Job<P> {
    /// Documents of usual length.
    Documents(Range<usize>),
    /// A part of a long one.
    Part { document: usize, part: P },
}

impl<P> Job<P> {
    fn first_document(&self) -> usize {
        match self {
            Self::Documents(documents) => documents.start,
            Self::Part { document, .. } => *document,
        }
    }
}

#[allow(clippy::type_complexity)] // As `Divide::documents`.
fn run<S: Sync, D: Divide<S> + ?Sized>(
    divide: &D,
    texts: &[S],
    part_bytes: Option<usize>,
    on_error: OnError,
    team: Team<'_>,
) -> (Batch, Vec<(usize, D::Error)>, Report) {
    let start = Instant::now();
    let total: usize = texts.iter().map(|text| divide.bytes(text)).sum();
    let threads = team.threads();
    let size = part_bytes.unwrap_or_else(|| {
        let size = total / (threads * INSIDE_A_THREAD);
        size.clamp(SHORTEST_INSIDE, LONGEST)
    });
    let sizes = |before: usize| match part_bytes {
        Some(bytes) => PartSizes::equal(bytes),
        None => PartSizes::guided(total - before, threads),
    };
    let is_cut = threads > 1 || part_bytes.is_some();
    let jobs = jobs(divide, texts, sizes, is_cut);
    let mut report = Report {
        parts: jobs.len(),
        ..Report::default()
    };
    report.dense_parts = jobs
        .iter()
        .filter(|job| matches!(job, Job::Part { part, .. } if D::is_dense(part)))
        .count();
    report.split = start.elapsed();

    let start = Instant::now();
    // The first document that has failed, where that ends the work.
    let failed = AtomicUsize::new(usize::MAX);
    let collector = Collector::new(&jobs, texts.len());
    team.for_each_number(jobs.len(), |number| {
        let job = &jobs[number];
        let mut done = Done::default();
        if job.first_document() <= failed.load(Ordering::Relaxed) {
            do_job(divide, job, texts, size, collector.spare(), &mut done);
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
fn jobs<S: Sync, D: Divide<S> + ?Sized>(
    divide: &D,
    texts: &[S],
    sizes: impl Fn(usize) -> PartSizes,
    is_cut: bool,
) -> Vec<Job<D::Part>> {
    let mut jobs = Vec::new();
    let (mut first, mut bytes, mut before) = (0, 0, 0);
    for (document, text) in texts.iter().enumerate() {
        let length = divide.bytes(text);
        let sizes = sizes(before);
        let size = sizes.at(0);
        before += length;
        if is_cut && length > size + size / 2 {
            let parts = divide.parts(text, sizes);
            if first < document {
                jobs.push(Job::Documents(first..document));
            }
            (first, bytes) = (document + 1, 0);
            jobs.extend(parts.into_iter().map(|part| Job::Part { document, part }));
            continue;
        }
        bytes += length;
        if bytes >= size {
            jobs.push(Job::Documents(first..document + 1));
            (first, bytes) = (document + 1, 0);
        }
    }
    if first < texts.len() {
        jobs.push(Job::Documents(first..texts.len()));
    }
    jobs
}

/// Does one piece of work; `tokens`, which is empty, is memory to use.
fn do_job<S: Sync, D: Divide<S> + ?Sized>(
    divide: &D,
    job: &Job<D::Part>,
    texts: &[S],
    size: usize,
    mut tokens: Tokens,
    done: &mut Done<D::Error>,
) {
    match job {
        Job::Documents(documents) => {
            for document in documents.clone() {
                let before = tokens.lengths();
                let encoded = match texts.get(document) {
                    Some(text) => divide.encode(text, &mut tokens),
                    None => Ok(()),
                };
                if let Err(error) = encoded {
                    tokens.truncate(before);
                    done.failures.push((document, error));
                }
                done.document_ends.push(tokens.count);
            }
            done.tokens.push(tokens);
        }
        Job::Part { document, part } => {
            let Some(text) = texts.get(*document) else {
                return;
            };
            match divide.encode_part(text, part, size, tokens, &mut done.pieces) {
                Ok(tokens) => done.tokens = tokens,
                Err(error) => done.failures.push((*document, error)),
            }
        }
    }
}
