//! Several threads: one long text, many texts, and texts that are still being read.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bpe_core::{Atoms, BytePairs, TokenId};
use bpe_parallel::{OnError, Queue, Seams, SpanSeams, Synchronised, Tokens, Wanted, Workers};

pub use bpe_parallel::Report as ParallelReport;

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::tokenizer::Tokenizer;

/// Texts with fewer bytes in all are encoded by the calling thread: waking others costs more.
const PARALLEL_BYTES: usize = 48 << 10;

/// Bytes that a queue leaves unfinished at a time.
const QUEUE_BYTES: usize = 32 << 20;

impl Tokenizer {
    /// The tokens of one long text, found on as many threads as the machine runs at once: those of
    /// [`Tokenizer::encode_bytes`], always. O(bytes), divided by the threads. [`Parallel`] says how, and
    /// when it is done by one thread.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    ///
    /// ```
    /// let tokenizer = bytepair::Tokenizer::o200k_base();
    /// let book = "It was a dark and stormy night. ".repeat(10_000);
    /// assert_eq!(tokenizer.encode_parallel(&book)?, tokenizer.encode(&book)?);
    /// # Ok::<(), bytepair::EncodeError>(())
    /// ```
    pub fn encode_parallel(&self, text: impl AsRef<[u8]>) -> Result<Vec<TokenId>, EncodeError> {
        self.parallel().encode(text)
    }

    /// The tokens of each text, in the order of the texts. O(bytes), divided by the threads. The work
    /// is divided by bytes: short texts are done together, a long one by several threads.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`], for the first text at fault, with its index.
    pub fn encode_batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Vec<Vec<TokenId>>, EncodeError> {
        self.parallel().encode_batch(texts)
    }

    /// As [`Tokenizer::encode_batch`], with `threads` threads, 0 counting as 1. They are started for
    /// this call unless the tokenizer has as many: [`Tokenizer::parallel`] keeps them for others.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode_batch`].
    pub fn encode_batch_with<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
        threads: usize,
    ) -> Result<Vec<Vec<TokenId>>, EncodeError> {
        self.parallel().threads(threads).encode_batch(texts)
    }

    /// The same tokenizer with several threads, and the calls for them.
    pub fn parallel(&self) -> Parallel {
        let workers = &self.inner.parallel.workers;
        let workers = workers.get_or_init(|| Arc::new(Workers::available()));
        Parallel::new(self.clone(), workers)
    }
}

/// The threads of a tokenizer, and what its calls know of places where a text can be cut.
#[derive(Debug)]
pub(crate) struct ParallelParts {
    /// Whether the span encoder is the caller's own.
    pub(crate) own_encoder: bool,
    workers: OnceLock<Arc<Workers>>,
    seams: OnceLock<Seams>,
    influence: OnceLock<Option<usize>>,
}

impl ParallelParts {
    pub(crate) fn new(own_encoder: bool) -> Self {
        Self {
            own_encoder,
            workers: OnceLock::new(),
            seams: OnceLock::new(),
            influence: OnceLock::new(),
        }
    }
}

/// A [`Tokenizer`] with several threads. Cheap to make and to clone; clones share the threads, which
/// start with the first work and wait for more.
///
/// What comes out is always what [`Tokenizer::encode_bytes`] gives. A text is cut where that is known
/// to lose nothing, and elsewhere only where the parts can be joined again without loss; docs/theory.md
/// has the proofs. By one thread, without any guess, are done:
///
/// | what | why |
/// |---|---|
/// | texts of a tokenizer with lexers of the caller's own: finding the pre-tokens | they may look at all that stands before |
/// | patterns with look-behind, or too large to be [analysed](bpe_lexers::Analysis): finding the pre-tokens | the same |
/// | one pre-token, where the span encoder is the caller's own | it may do anything |
/// | one pre-token, where unknown characters fuse | a part may begin inside of what fuses |
/// | one pre-token, where there is an unknown token, but for cuts between bytes that no token contains together | how long a token is must be known to join two parts |
///
/// Called inside a rayon pool, the work is shared among the threads of that pool. In a forked process,
/// which has none of the threads of its parent, threads are started anew.
///
/// ```
/// let tokenizer = bytepair::Tokenizer::cl100k_base();
/// let parallel = tokenizer.parallel().threads(2);
/// let batch = parallel.encode_batch_flat(&["Hello", ", world"])?;
/// assert_eq!(batch.ids, [9906, 11, 1917]);
/// assert_eq!(batch.document_ends, [1, 3]);
/// # Ok::<(), bytepair::EncodeError>(())
/// ```
#[derive(Clone)]
pub struct Parallel {
    tokenizer: Tokenizer,
    workers: Arc<Workers>,
    strategy: Synchronised,
    /// Whether short texts are cut too.
    is_forced: bool,
}

/// The tokens of several texts in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The tokens of all texts.
    pub ids: Vec<TokenId>,
    /// Of each text, the number of tokens up to its end.
    pub document_ends: Vec<usize>,
}

impl Batch {
    /// The tokens of the text at `index`. `None` where there is none.
    pub fn document(&self, index: usize) -> Option<&[TokenId]> {
        let end = *self.document_ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.document_ends.get(before)?,
            None => 0,
        };
        self.ids.get(start..end)
    }

    /// The tokens of each text.
    pub fn documents(&self) -> impl Iterator<Item = &[TokenId]> {
        (0..self.document_ends.len()).filter_map(|index| self.document(index))
    }
}

impl Parallel {
    /// A tokenizer with these threads.
    pub(crate) fn new(tokenizer: Tokenizer, workers: &Arc<Workers>) -> Self {
        Self {
            tokenizer,
            workers: Arc::clone(workers),
            strategy: Synchronised::new(),
            is_forced: false,
        }
    }

    /// The same with `threads` threads, 0 counting as 1, which are shared by clones of the value that
    /// this returns.
    pub fn threads(mut self, threads: usize) -> Self {
        if threads.max(1) != self.workers.threads() {
            self.workers = Arc::new(Workers::new(threads));
        }
        self
    }

    /// The number of threads.
    pub fn thread_count(&self) -> usize {
        self.workers.threads()
    }

    /// The same with texts cut into parts of about `bytes`, however short they are. By default the
    /// length suits the text and the number of threads.
    pub fn part_bytes(mut self, bytes: usize) -> Self {
        self.strategy = self.strategy.part_bytes(bytes);
        self.is_forced = true;
        self
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokens of one text. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn encode(&self, text: impl AsRef<[u8]>) -> Result<Vec<TokenId>, EncodeError> {
        let text = text.as_ref();
        if self.is_short(text.len()) {
            return self.tokenizer.encode_bytes(text);
        }
        Ok(self.one(text, Wanted::Ids)?.0.ids)
    }

    /// As [`Parallel::encode`], in parts however short the text is, with how it was done: for measurements.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn encode_measured(
        &self,
        text: impl AsRef<[u8]>,
    ) -> Result<(Vec<TokenId>, ParallelReport), EncodeError> {
        let (tokens, report) = self.one(text.as_ref(), Wanted::Ids)?;
        Ok((tokens.ids, report))
    }

    /// The tokens of one text with the bytes that each covers. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn encode_with_offsets(&self, text: impl AsRef<[u8]>) -> Result<Encoding, EncodeError> {
        let text = text.as_ref();
        if self.is_short(text.len()) {
            return self.tokenizer.encode_with_offsets(text);
        }
        let (tokens, _) = self.one(text, Wanted::Ends)?;
        let mut start = 0;
        let range = |end: usize| {
            let range = start..end;
            start = end;
            range
        };
        Ok(Encoding {
            ids: tokens.ids,
            byte_ranges: tokens.ends.into_iter().map(range).collect(),
        })
    }

    /// The number of tokens of one text. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn count(&self, text: impl AsRef<[u8]>) -> Result<usize, EncodeError> {
        let text = text.as_ref();
        if self.is_short(text.len()) {
            return self.tokenizer.count(text);
        }
        Ok(self.one(text, Wanted::Count)?.0.count)
    }

    /// The tokens of each text, in the order of the texts. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`], for the first text at fault, with its index.
    pub fn encode_batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Vec<Vec<TokenId>>, EncodeError> {
        let batch = self.encode_batch_flat(texts)?;
        Ok(separate(batch, &self.workers))
    }

    /// The tokens of all texts in one vector, with the places where texts end. O(bytes), divided by the
    /// threads.
    ///
    /// # Errors
    ///
    /// As [`Parallel::encode_batch`].
    pub fn encode_batch_flat<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Batch, EncodeError> {
        let (batch, errors) = self.batch(texts, Wanted::Ids, OnError::Stop);
        match errors.into_iter().next() {
            Some((index, error)) => Err(error.in_document(index)),
            None => Ok(batch.into()),
        }
    }

    /// The tokens of each text, or why it has none: an error of one does not lose the others. O(bytes),
    /// divided by the threads.
    pub fn encode_each<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
    ) -> Vec<Result<Vec<TokenId>, EncodeError>> {
        let (batch, errors) = self.batch(texts, Wanted::Ids, OnError::Keep);
        let separate = separate(batch.into(), &self.workers);
        let mut results: Vec<_> = separate.into_iter().map(Ok).collect();
        for (index, error) in errors {
            if let Some(result) = results.get_mut(index) {
                *result = Err(error.in_document(index));
            }
        }
        results
    }

    /// The number of tokens of each text. O(bytes), divided by the threads.
    ///
    /// # Errors
    ///
    /// As [`Parallel::encode_batch`].
    pub fn count_batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Vec<usize>, EncodeError> {
        let (batch, errors) = self.batch(texts, Wanted::Count, OnError::Stop);
        if let Some((index, error)) = errors.into_iter().next() {
            return Err(error.in_document(index));
        }
        Ok(differences(batch.document_ends))
    }

    /// A queue for texts that are still being read: encoded as they are handed in, taken back in the same
    /// order.
    pub fn queue(&self) -> EncodeQueue {
        EncodeQueue {
            tokenizer: self.tokenizer.clone(),
            queue: Queue::new(Arc::clone(&self.workers), QUEUE_BYTES),
        }
    }

    fn is_short(&self, bytes: usize) -> bool {
        !self.is_forced && is_short(bytes, &self.workers)
    }

    fn one(&self, text: &[u8], wanted: Wanted) -> Result<(Tokens, ParallelReport), EncodeError> {
        let tokenizer = &self.tokenizer;
        let matcher = &tokenizer.policy.matcher;
        let seams = tokenizer.seams();
        self.strategy
            .encode(tokenizer, seams, matcher, text, wanted, &self.workers)
    }

    fn batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
        wanted: Wanted,
        on_error: OnError,
    ) -> (bpe_parallel::Batch, Vec<(usize, EncodeError)>) {
        let tokenizer = &self.tokenizer;
        let matcher = &tokenizer.policy.matcher;
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let alone;
        let workers = match self.is_short(bytes) {
            true => {
                alone = Workers::new(1);
                &alone
            }
            false => &*self.workers,
        };
        let seams = tokenizer.seams();
        let (batch, errors, _) = self
            .strategy
            .documents(tokenizer, seams, matcher, texts, wanted, on_error, workers);
        (batch, errors)
    }
}

/// Whether one thread is as fast.
pub(crate) fn is_short(bytes: usize, workers: &Workers) -> bool {
    bytes < PARALLEL_BYTES || workers.threads() == 1
}

/// A vector for each text.
pub(crate) fn separate(batch: Batch, workers: &Workers) -> Vec<Vec<TokenId>> {
    if batch.document_ends.len() == 1 {
        return vec![batch.ids];
    }
    if is_short(batch.ids.len(), workers) {
        return batch.documents().map(<[_]>::to_vec).collect();
    }
    let documents: Vec<&[TokenId]> = batch.documents().collect();
    workers.run(|team| team.map(&documents, |ids| ids.to_vec()))
}

/// How many tokens each text has, from where they end.
pub(crate) fn differences(ends: Vec<usize>) -> Vec<usize> {
    let mut before = 0;
    let ends = ends.into_iter();
    ends.map(|end| end - std::mem::replace(&mut before, end))
        .collect()
}

impl From<bpe_parallel::Batch> for Batch {
    fn from(batch: bpe_parallel::Batch) -> Self {
        Self {
            ids: batch.tokens.ids,
            document_ends: batch.document_ends,
        }
    }
}

impl fmt::Debug for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parallel")
            .field("tokenizer", &self.tokenizer)
            .field("threads", &self.workers.threads())
            .finish_non_exhaustive()
    }
}

/// Texts that are handed in one by one, while the next is read, and whose tokens are taken back in the
/// same order. At most 32 MB of texts are unfinished at a time: [`submit`](EncodeQueue::submit) then
/// waits. A queue belongs to the process that made it.
///
/// ```
/// let parallel = bytepair::Tokenizer::cl100k_base().parallel();
/// let mut queue = parallel.queue();
/// for line in ["Hello", ", world"] {
///     queue.submit(line);
/// }
/// let mut tokens = Vec::new();
/// while let Some(ids) = queue.next() {
///     tokens.push(ids?);
/// }
/// assert_eq!(tokens, [vec![9906], vec![11, 1917]]);
/// # Ok::<(), bytepair::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct EncodeQueue {
    tokenizer: Tokenizer,
    queue: Queue<Result<Vec<TokenId>, EncodeError>>,
}

impl EncodeQueue {
    /// Hands in a text and returns its index, counted from 0.
    pub fn submit(&mut self, text: impl Into<Vec<u8>>) -> usize {
        let text = text.into();
        let tokenizer = self.tokenizer.clone();
        self.queue
            .submit(text.len(), move || tokenizer.encode_bytes(&text))
    }

    /// The tokens of the next text in the order of submission; waits for them. `None` where all have
    /// been taken, until more texts are handed in.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Result<Vec<TokenId>, EncodeError>> {
        let index = self.queue.taken();
        let result = self.queue.next()?;
        Some(result.map_err(|error| error.in_document(index)))
    }

    /// The tokens of the next text if they are there already.
    pub fn next_if_done(&mut self) -> Option<Result<Vec<TokenId>, EncodeError>> {
        let index = self.queue.taken();
        let result = self.queue.next_if_done()?;
        Some(result.map_err(|error| error.in_document(index)))
    }

    /// The number of texts whose tokens have not been taken yet.
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }
}

impl Tokenizer {
    /// What is known of places where a text can be cut. The first call costs some milliseconds.
    pub(crate) fn seams(&self) -> &Seams {
        let inner = &self.inner;
        inner.parallel.seams.get_or_init(|| {
            let vocabulary = self.vocabulary();
            let fuses = matches!(
                inner.canonical.atoms(),
                Atoms::Characters {
                    fuse_unknown: true,
                    ..
                }
            );
            let own = inner.parallel.own_encoder;
            let spans = SpanSeams {
                pairs: (!own && !fuses).then(|| BytePairs::new(vocabulary)),
                joins: !own && self.unknown().is_none(),
                longest_token: vocabulary.longest_token(),
            };
            Seams::new(&inner.patterns, &inner.lexers, spans)
        })
    }
}

impl bpe_parallel::Tokenize for Tokenizer {
    type Error = EncodeError;

    fn encode(&self, text: &[u8], wanted: Wanted, tokens: &mut Tokens) -> Result<(), EncodeError> {
        match wanted {
            Wanted::Count => tokens.count += self.count(text)?,
            Wanted::Ids => {
                let before = tokens.ids.len();
                tokens.ids.reserve(self.expected_tokens(text.len()));
                self.encode_into(text, &mut tokens.ids)?;
                tokens.count += tokens.ids.len() - before;
            }
            Wanted::Ends => {
                let encoding = self.encode_with_offsets(text)?;
                tokens.count += encoding.ids.len();
                tokens.ids.extend(encoding.ids);
                let ends = encoding.byte_ranges.iter().map(|range| range.end);
                tokens.ends.extend(ends);
            }
        }
        Ok(())
    }

    fn encode_pieces(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        wanted: Wanted,
        tokens: &mut Tokens,
    ) -> Result<(), EncodeError> {
        let Tokens {
            count,
            ids,
            ends: token_ends,
            ..
        } = tokens;
        self.inner.pool.with(|engines| match wanted {
            Wanted::Count => {
                let mut some = std::mem::take(&mut engines.tokens);
                some.clear();
                let counted = self.encode_pieces(engines, text, start, ends, &mut some, None);
                *count += some.len();
                engines.tokens = some;
                counted
            }
            Wanted::Ids => {
                let before = ids.len();
                self.encode_pieces(engines, text, start, ends, ids, None)?;
                *count += ids.len() - before;
                Ok(())
            }
            Wanted::Ends => {
                let before = ids.len();
                let mut ranges = Vec::new();
                self.encode_pieces(engines, text, start, ends, ids, Some(&mut ranges))?;
                *count += ids.len() - before;
                token_ends.extend(ranges.iter().map(|range| range.end));
                Ok(())
            }
        })
    }

    fn merge(&self, part: &[u8], ids: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let pool = &self.inner.pool;
        Ok(pool.with(|engines| engines.pieces.encode_span(part, ids))?)
    }

    fn influence(&self) -> Option<usize> {
        let bound = || bpe_incremental::held_bytes_bound(&self.inner.canonical);
        *self.inner.parallel.influence.get_or_init(bound)
    }

    fn token_len(&self, id: TokenId) -> Option<usize> {
        self.vocabulary().token_bytes(id).map(<[u8]>::len)
    }

    fn ends_of(&self, piece: &[u8], ids: &[TokenId], ends: &mut Vec<usize>) {
        let mut ranges = vec![0..0; ids.len()];
        self.fill_ranges_of_piece(ids, piece, 0..piece.len(), &mut ranges);
        ends.extend(ranges.iter().map(|range| range.end));
    }

    fn moved(error: EncodeError, bytes: usize) -> EncodeError {
        error.moved_by(bytes)
    }
}
