//! Engines for the convenience methods: taken by a thread for a call, given back after it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bpe_core::TokenId;
use bpe_lexers::Spanner;

use crate::pieces::PieceEncoder;

/// What changes while one thread encodes: the scratch memory of lexers and encoder.
pub(crate) struct Engines {
    pub(crate) spanner: Spanner,
    pub(crate) pieces: PieceEncoder,
    /// Tokens of one run, for calls that only count.
    pub(crate) tokens: Vec<TokenId>,
    /// Numbers of tokens of the pieces of one run.
    pub(crate) counts: Vec<u32>,
}

impl Engines {
    /// Engines over the same tables, with scratch memory of their own.
    pub(crate) fn duplicate(&self) -> Self {
        Self {
            spanner: self.spanner.clone(),
            pieces: self.pieces.duplicate(),
            tokens: Vec::new(),
            counts: Vec::new(),
        }
    }
}

/// More slots than threads run at once on most machines; a slot is a few words.
const SLOTS: usize = 64;

/// One stack of idle engines a slot. A thread always goes to the slot of its number, so two threads
/// meet only where their numbers agree modulo [`SLOTS`], and then only for a push or a pop (001
/// section 5.2: one shared cache behind a lock stops scaling at 8 threads).
pub(crate) struct Pool {
    prototype: Engines,
    #[allow(clippy::vec_box)] // Engines are some hundred bytes, and move twice a call.
    slots: Box<[Mutex<Vec<Box<Engines>>>]>,
}

impl Pool {
    pub(crate) fn new(prototype: Engines) -> Self {
        Self {
            prototype,
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Calls `work` with engines that no one else uses meanwhile. Engines are lost, not poisoned,
    /// where `work` panics.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Engines) -> R) -> R {
        let slot = &self.slots[thread_number() % SLOTS];
        let idle = slot.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut engines = idle.unwrap_or_else(|| Box::new(self.prototype.duplicate()));
        let result = work(&mut engines);
        slot.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(engines);
        result
    }

    pub(crate) fn prototype(&self) -> &Engines {
        &self.prototype
    }

    /// Drops the idle engines, and with them their scratch memory.
    pub(crate) fn clear(&self) {
        for slot in &self.slots {
            slot.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// The number of this thread: the lowest that no running thread has. So threads that come and go, as
/// those of a batch do, find the engines of those that went before.
fn thread_number() -> usize {
    struct Number(usize);

    impl Drop for Number {
        fn drop(&mut self) {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(Reverse(self.0));
        }
    }

    static FREE: Mutex<BinaryHeap<Reverse<usize>>> = Mutex::new(BinaryHeap::new());
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Number = {
            let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            Number(free.map_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed), |free| free.0))
        };
    }
    // Where the thread is on its way out, any number will do.
    NUMBER.try_with(|number| number.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_follow_each_other_have_one_number() {
        let number = || std::thread::spawn(thread_number).join().ok();
        let most = (0..200).filter_map(|_| number()).max();
        // Other tests run beside this one, each on a thread of its own.
        assert!(most < Some(100), "{most:?}");
    }
}
