//! The threads: started when they are first needed, and anew in a forked process.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

/// A number of threads that share work.
///
/// The threads start with the first work and wait for more until the value is dropped. There is no
/// global state: two values have nothing in common. Work that is begun inside a rayon pool of the
/// caller is shared among the threads of that pool instead, so that pools do not pile up. After a
/// `fork` the child has none of the threads that its parent had started; this is noticed, and the
/// child starts its own.
///
/// ```
/// use bpe_parallel::Workers;
///
/// let workers = Workers::new(2);
/// let squares = workers.run(|team| team.map(&[1, 2, 3], |number| number * number));
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub struct Workers {
    threads: usize,
    /// One fewer than there are threads: they help whoever calls, who is the first thread.
    helpers: Pool,
    /// As many as there are threads: for work whose caller waits or does something else.
    others: Pool,
}

impl Workers {
    /// `threads` threads, 0 counting as 1. With one, everything is done by the calling thread.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        Self {
            threads,
            helpers: Pool::new(threads - 1),
            others: Pool::new(threads),
        }
    }

    /// As many threads as the machine runs at once.
    pub fn available() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` with a [`Team`] that shares work among the threads, and returns what it returns.
    /// Where the system gives no threads, the team is the calling thread alone.
    pub fn run<R>(&self, work: impl FnOnce(Team<'_>) -> R) -> R {
        if rayon::current_thread_index().is_some() {
            let threads = rayon::current_num_threads();
            return work(Team {
                threads,
                place: Place::OfCaller,
            });
        }
        work(match self.threads {
            1 => Team::ALONE,
            threads => Team {
                threads,
                place: Place::Outside(self),
            },
        })
    }

    /// Calls `work` on one of the threads, at some time; the caller goes on meanwhile. Always on a
    /// thread of this value, never on one of the caller's pool, so that the caller may wait for it.
    /// `work` is given back where the system gives no threads.
    pub(crate) fn spawn<W: FnOnce() + Send + 'static>(&self, work: W) -> Result<(), W> {
        match self.others.start() {
            Some(pool) => {
                pool.spawn(work);
                Ok(())
            }
            None => Err(work),
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Threads that start when they are first needed.
struct Pool {
    threads: usize,
    started: Mutex<Option<Started>>,
}

/// How often a thread tries to get at the pool before it makes one of its own.
const TRIES: usize = 10_000;

struct Started {
    /// The process that started the threads.
    process: u32,
    pool: Arc<ThreadPool>,
}

impl Pool {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            started: Mutex::new(None),
        }
    }

    /// The threads of this process.
    fn start(&self) -> Option<Arc<ThreadPool>> {
        let build = || {
            let builder = ThreadPoolBuilder::new().num_threads(self.threads);
            builder.build().ok().map(Arc::new)
        };
        // Another thread may be starting the pool, which is soon done; or one was when this process
        // was forked off, and will never be done. So nobody waits for long.
        let mut tries = 0;
        let mut started = loop {
            match self.started.try_lock() {
                Ok(started) => break started,
                Err(TryLockError::Poisoned(started)) => break started.into_inner(),
                Err(TryLockError::WouldBlock) if tries < TRIES => std::thread::yield_now(),
                Err(TryLockError::WouldBlock) => return build(),
            }
            tries += 1;
        };
        let process = std::process::id();
        if let Some(there) = &*started
            && there.process == process
        {
            return Some(Arc::clone(&there.pool));
        }
        let pool = build()?;
        let new = Started {
            process,
            pool: Arc::clone(&pool),
        };
        if let Some(of_parent) = started.replace(new) {
            // Its threads are not in this process: nothing there can be told to end.
            std::mem::forget(of_parent);
        }
        Some(pool)
    }
}

/// Threads at work: what [`Workers::run`] hands out.
#[derive(Debug, Clone, Copy)]
pub struct Team<'w> {
    threads: usize,
    place: Place<'w>,
}

/// Where work is handed out.
#[derive(Debug, Clone, Copy)]
enum Place<'w> {
    /// By the one thread that there is.
    Alone,
    /// In a pool of the caller's.
    OfCaller,
    /// On the calling thread, which takes its share.
    Outside(&'w Workers),
    /// By a piece of work of the same team: the helpers are busy with others, and must not be waited for.
    Inside(&'w Workers),
}

impl Team<'_> {
    /// The calling thread alone.
    pub const ALONE: Team<'static> = Team {
        threads: 1,
        place: Place::Alone,
    };

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The same threads, for the inside of a piece of their work.
    pub(crate) fn inside(self) -> Self {
        let place = match self.place {
            Place::Outside(workers) => Place::Inside(workers),
            place => place,
        };
        Self { place, ..self }
    }

    /// What `work` makes of each item, in the order of the items. Each item is a piece of work of its
    /// own: a thread that has nothing to do takes the next.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        if self.threads <= 1 || items.len() <= 1 {
            return items.iter().map(work).collect();
        }
        let map = || items.par_iter().with_max_len(1).map(&work).collect();
        match self.place {
            Place::Alone => items.iter().map(work).collect(),
            Place::OfCaller => map(),
            Place::Inside(workers) => match workers.others.start() {
                Some(pool) => pool.install(map),
                None => items.iter().map(work).collect(),
            },
            Place::Outside(_) => {
                let results: Vec<Mutex<Option<R>>> =
                    items.iter().map(|_| Mutex::new(None)).collect();
                self.for_each_number(items.len(), |number| {
                    let result = work(&items[number]);
                    *results[number]
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner) = Some(result);
                });
                let results = results.into_iter();
                let result = |place: Mutex<Option<R>>| {
                    place.into_inner().unwrap_or_else(PoisonError::into_inner)
                };
                results.filter_map(result).collect()
            }
        }
    }

    /// Calls `work` with each number below `count`. They are taken in their order, by the calling thread
    /// too, which does not wait for the others to wake.
    pub(crate) fn for_each_number(&self, count: usize, work: impl Fn(usize) + Sync) {
        let (next, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let take = || {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    number if number < count => work(number),
                    _ => break,
                }
            }
        };
        let others = self.threads.min(count).saturating_sub(1);
        if others == 0 {
            return take();
        }
        let pool = match self.place {
            Place::Alone => return take(),
            Place::OfCaller => {
                return rayon::in_place_scope(|scope| share(scope, others, &busy, &take));
            }
            Place::Outside(workers) => workers.helpers.start(),
            Place::Inside(workers) => workers.others.start(),
        };
        match pool {
            Some(pool) => pool.in_place_scope(|scope| share(scope, others, &busy, &take)),
            None => take(),
        }
    }
}

/// How long a thread that has nothing more to do waits in a loop for the others. Their last pieces of work are
/// short, and falling asleep and being woken costs more: 2 to 4 % of the processor time of a text of 256 KB.
const LOOPS: Duration = Duration::from_micros(20);

/// Calls `take` here and on `others` other threads.
fn share<'s>(scope: &Scope<'s>, others: usize, busy: &'s AtomicUsize, take: &'s (dyn Fn() + Sync)) {
    for _ in 0..others {
        scope.spawn(|_| {
            busy.fetch_add(1, Ordering::Relaxed);
            take();
            busy.fetch_sub(1, Ordering::Relaxed);
        });
    }
    take();
    let start = Instant::now();
    while busy.load(Ordering::Relaxed) > 0 && start.elapsed() < LOOPS {
        std::hint::spin_loop();
    }
    // The scope hears a little later that the others are done.
    (0..16).for_each(|_| std::hint::spin_loop());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn results_stand_in_the_order_of_the_items_and_a_team_of_one_is_the_caller() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [0, 1, 2, 7] {
            let workers = Workers::new(threads);
            let doubled = workers.run(|team| team.map(&items, |item| 2 * item));
            assert!(
                doubled
                    .iter()
                    .enumerate()
                    .all(|(at, &twice)| twice == 2 * at)
            );
        }
        let caller = std::thread::current().id();
        let threads = Workers::new(1).run(|team| team.map(&items, |_| std::thread::current().id()));
        assert_eq!(threads.into_iter().collect::<HashSet<_>>(), [caller].into());
    }

    #[test]
    fn each_number_is_taken_once_by_at_most_as_many_threads() {
        let caller = std::thread::current().id();
        for threads in [1, 2, 7] {
            let workers = Workers::new(threads);
            for count in [0, 1, 2, 1000] {
                let taken: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                let by = Mutex::new(HashSet::new());
                workers.run(|team| {
                    team.for_each_number(count, |number| {
                        taken[number].fetch_add(1, Ordering::Relaxed);
                        by.lock()
                            .expect("no panic")
                            .insert(std::thread::current().id());
                        std::thread::yield_now();
                    });
                });
                assert!(taken.iter().all(|times| times.load(Ordering::Relaxed) == 1));
                let by = by.into_inner().expect("no panic");
                assert!(by.len() <= threads);
                assert!(threads > 1 || count == 0 || by.contains(&caller));
            }
        }
    }

    #[test]
    fn work_inside_a_pool_of_the_caller_stays_in_it() {
        let pool = ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .expect("a pool");
        let workers = Workers::new(3);
        let (inner, outer) = pool.install(|| {
            let here = std::thread::current().id();
            let threads = workers.run(|team| team.map(&[(); 50], |()| std::thread::current().id()));
            (threads.into_iter().collect::<HashSet<_>>(), here)
        });
        assert_eq!(inner, [outer].into());
    }
}
