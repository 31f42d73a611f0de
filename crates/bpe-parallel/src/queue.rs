//! Work that comes bit by bit, while its source is still being read.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use crate::workers::Workers;

/// Work that is handed in as it comes and taken back in the same order.
///
/// Threads begin with a piece of work at once, while the caller reads the next one. At most a given
/// number of bytes is unfinished at a time: [`submit`](Queue::submit) then waits. Results wait, without
/// limit, until they are taken. A queue belongs to the process that made it.
///
/// ```
/// use std::sync::Arc;
/// use bpe_parallel::{Queue, Workers};
///
/// let mut queue = Queue::new(Arc::new(Workers::new(2)), 1 << 20);
/// for word in ["one", "three"] {
///     queue.submit(word.len(), move || word.len());
/// }
/// assert_eq!(queue.next(), Some(3));
/// assert_eq!(queue.next(), Some(5));
/// assert_eq!(queue.next(), None);
/// ```
pub struct Queue<R> {
    workers: Arc<Workers>,
    sender: Sender<Done<R>>,
    receiver: Receiver<Done<R>>,
    /// Results that came before their turn.
    early: BTreeMap<usize, Result<R, Panic>>,
    submitted: usize,
    taken: usize,
    unfinished_bytes: usize,
    most_bytes: usize,
}

type Panic = Box<dyn Any + Send>;

struct Done<R> {
    number: usize,
    bytes: usize,
    result: Result<R, Panic>,
}

impl<R: Send + 'static> Queue<R> {
    /// A queue in which about `most_bytes` are unfinished at most.
    pub fn new(workers: Arc<Workers>, most_bytes: usize) -> Self {
        let (sender, receiver) = channel();
        Self {
            workers,
            sender,
            receiver,
            early: BTreeMap::new(),
            submitted: 0,
            taken: 0,
            unfinished_bytes: 0,
            most_bytes,
        }
    }

    /// Hands in work on `bytes` bytes and returns its number, counted from 0. Waits while too much is
    /// unfinished.
    pub fn submit(&mut self, bytes: usize, work: impl FnOnce() -> R + Send + 'static) -> usize {
        while self.unfinished_bytes > 0 && self.unfinished_bytes + bytes > self.most_bytes {
            match self.receiver.recv() {
                Ok(done) => self.keep(done),
                Err(_) => break, // Not reached: the queue holds a sender itself.
            }
        }
        let number = self.submitted;
        self.submitted += 1;
        self.unfinished_bytes += bytes;
        let sender = self.sender.clone();
        let work = move || {
            let result = std::panic::catch_unwind(AssertUnwindSafe(work));
            // Where nobody listens any more, nobody wants it.
            let _ = sender.send(Done {
                number,
                bytes,
                result,
            });
        };
        if let Err(work) = self.workers.spawn(work) {
            work();
        }
        number
    }

    /// The next result, in the order of submission; waits for it. `None` where all have been taken. A
    /// panic of the work goes on here.
    #[allow(clippy::should_implement_trait)] // After `None`, more may come.
    pub fn next(&mut self) -> Option<R> {
        if self.taken == self.submitted {
            return None;
        }
        loop {
            if let Some(result) = self.take() {
                return Some(result);
            }
            let done = self.receiver.recv().ok()?;
            self.keep(done);
        }
    }

    /// The next result if it is there already.
    pub fn next_if_done(&mut self) -> Option<R> {
        loop {
            match self.receiver.try_recv() {
                Ok(done) => self.keep(done),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return self.take(),
            }
        }
    }

    /// The number of results that have not been taken yet.
    pub fn pending(&self) -> usize {
        self.submitted - self.taken
    }

    /// The number of results that have been taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    fn keep(&mut self, done: Done<R>) {
        self.unfinished_bytes -= done.bytes.min(self.unfinished_bytes);
        self.early.insert(done.number, done.result);
    }

    fn take(&mut self) -> Option<R> {
        let result = self.early.remove(&self.taken)?;
        self.taken += 1;
        match result {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl<R> fmt::Debug for Queue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("submitted", &self.submitted)
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_the_order_of_submission_and_little_is_unfinished_at_a_time() {
        for threads in [1, 3] {
            let mut queue = Queue::new(Arc::new(Workers::new(threads)), 100);
            let open = Arc::new(AtomicUsize::new(0));
            for number in 0..300 {
                let mine = Arc::clone(&open);
                mine.fetch_add(30, Ordering::SeqCst);
                assert_eq!(
                    queue.submit(30, move || {
                        mine.fetch_sub(30, Ordering::SeqCst);
                        number
                    }),
                    number
                );
                assert!(open.load(Ordering::SeqCst) <= 120);
            }
            assert_eq!(queue.pending(), 300);
            for number in 0..300 {
                assert_eq!(queue.next(), Some(number));
            }
            assert_eq!(queue.next(), None);
            queue.submit(1000, || 7);
            assert_eq!(queue.next(), Some(7));
        }
    }

    #[test]
    fn a_panic_of_the_work_reaches_who_takes_its_result() {
        let mut queue = Queue::new(Arc::new(Workers::new(2)), 100);
        queue.submit(1, || 1);
        queue.submit(1, || panic!("of the work"));
        queue.submit(1, || 3);
        assert_eq!(queue.next(), Some(1));
        let panic = std::panic::catch_unwind(AssertUnwindSafe(|| queue.next()));
        let panic = panic.expect_err("goes on");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the work"));
        assert_eq!(queue.next(), Some(3));
    }
}
