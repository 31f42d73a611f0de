//! What several threads have made, put in a row while they go on.
//!
//! Work is handed out in its order, so its results come nearly in order too. Whoever is done with one
//! appends what can be appended, unless another thread is at it; the memory of what was appended is
//! used again for the next part. So a token is written twice, the first time to memory that is in the
//! processor's caches, and the memory of the system is touched once, as by one thread.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::documents::{Batch, Job};
use crate::piece::PieceReport;
use crate::tokenize::Tokens;

/// What a piece of work has given.
pub(crate) struct Done<E> {
    pub(crate) tokens: Vec<Tokens>,
    /// Of each document that ends here, the number of tokens up to its end.
    pub(crate) document_ends: Vec<usize>,
    pub(crate) failures: Vec<(usize, E)>,
    pub(crate) pieces: PieceReport,
}

impl<E> Default for Done<E> {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            document_ends: Vec::new(),
            failures: Vec::new(),
            pieces: PieceReport::default(),
        }
    }
}

/// All results up to some place.
pub(crate) struct Joined<E> {
    pub(crate) batch: Batch,
    /// Documents that have no tokens, in their order, and why.
    pub(crate) failures: Vec<(usize, E)>,
    pub(crate) pieces: PieceReport,
    /// What putting together took.
    pub(crate) time: Duration,
    /// The next piece of work.
    number: usize,
    /// How many tokens there were at the end of the last document.
    before_document: [usize; 4],
}

/// Takes the results of pieces of work in any order.
pub(crate) struct Collector<'j, P, E> {
    jobs: &'j [Job<P>],
    ready: Mutex<Vec<Option<Done<E>>>>,
    spare: Mutex<Vec<Tokens>>,
    joined: Mutex<Joined<E>>,
}

impl<'j, P, E> Collector<'j, P, E> {
    pub(crate) fn new(jobs: &'j [Job<P>], document_count: usize) -> Self {
        let joined = Joined {
            batch: Batch {
                tokens: Tokens::default(),
                document_ends: Vec::with_capacity(document_count),
            },
            failures: Vec::new(),
            pieces: PieceReport::default(),
            time: Duration::ZERO,
            number: 0,
            before_document: [0; 4],
        };
        Self {
            jobs,
            ready: Mutex::new(jobs.iter().map(|_| None).collect()),
            spare: Mutex::new(Vec::new()),
            joined: Mutex::new(joined),
        }
    }

    /// No tokens, with memory for some.
    pub(crate) fn spare(&self) -> Tokens {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// The result of the piece of work with this number.
    pub(crate) fn hand_in(&self, number: usize, done: Done<E>) {
        if let Some(place) = lock(&self.ready).get_mut(number) {
            *place = Some(done);
        }
        // What is left because another thread is at it, but has not seen this, is for the next caller.
        match self.joined.try_lock() {
            Ok(mut joined) => self.append_ready(&mut joined),
            Err(TryLockError::Poisoned(joined)) => self.append_ready(&mut joined.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// All results, of which the last has been handed in.
    pub(crate) fn into_joined(self) -> Joined<E> {
        self.append_ready(&mut lock(&self.joined));
        self.joined
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn append_ready(&self, joined: &mut Joined<E>) {
        loop {
            let next = lock(&self.ready)
                .get_mut(joined.number)
                .and_then(Option::take);
            let Some(done) = next else { return };
            let start = Instant::now();
            self.append(joined, done);
            joined.time += start.elapsed();
        }
    }

    fn append(&self, joined: &mut Joined<E>, done: Done<E>) {
        let Some(job) = self.jobs.get(joined.number) else {
            return;
        };
        joined.number += 1;
        joined.pieces.add(done.pieces);
        let count = joined.batch.tokens.count;
        for tokens in done.tokens {
            self.append_tokens(joined, tokens);
        }
        match job {
            Job::Documents(_) => {
                let ends = done.document_ends.iter().map(|end| count + end);
                joined.batch.document_ends.extend(ends);
                joined.failures.extend(done.failures);
            }
            Job::Part { document, .. } => {
                // Of several parts of one document that fail, the first counts.
                let has_failed = |joined: &Joined<E>| {
                    let last = joined.failures.last();
                    last.is_some_and(|(last, _)| last == document)
                };
                if !has_failed(joined) {
                    joined.failures.extend(done.failures);
                }
                if matches!(
                    self.jobs.get(joined.number),
                    Some(Job::Part { document: next, .. }) if next == document
                ) {
                    return;
                }
                if has_failed(joined) {
                    // Nothing of it is kept.
                    joined.batch.tokens.truncate(joined.before_document);
                }
                joined.batch.document_ends.push(joined.batch.tokens.count);
            }
        }
        joined.before_document = joined.batch.tokens.lengths();
    }

    fn append_tokens(&self, joined: &mut Joined<E>, mut tokens: Tokens) {
        let all = &mut joined.batch.tokens;
        if all.count == 0 && joined.number == self.jobs.len() {
            // It is the last piece of work, and there is nothing yet: nothing is copied.
            *all = tokens;
            return;
        }
        all.count += tokens.count;
        all.ids.extend_from_slice(&tokens.ids);
        all.starts.extend_from_slice(&tokens.starts);
        all.ends.extend_from_slice(&tokens.ends);
        tokens.truncate([0; 4]);
        lock(&self.spare).push(tokens);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
