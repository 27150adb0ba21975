//! What a running call shares with the thread that waits for it, and the loops that its threads share: over
//! replicates, over blocks of rows, and sorts.
//!
//! Every loop asks once where it runs: in a pool it goes on the pool's threads, outside of one on this thread and on
//! the helpers that the [`Control`] allows. Which of them takes a block changes no result. Nothing else in this crate
//! knows rayon.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Replicates that one task works on before it looks at the [`Control`] again.
const BLOCK: usize = 64;

/// The flag that stops a computation, the counter that shows how far it is, and the threads that
/// it may use outside of a pool: one unless said otherwise.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: Arc<AtomicBool>,
    done: AtomicU64,
    /// Threads besides the calling one.
    helpers: usize,
}

impl Control {
    /// A control of a computation on `threads` threads, the calling one among them.
    pub fn with_threads(threads: usize) -> Self {
        Self { helpers: threads.saturating_sub(1), ..Self::default() }
    }

    /// A control of a part of the computation, which stops with it, counts for itself and has no helpers.
    #[must_use]
    pub fn part(&self) -> Self {
        Self { cancelled: Arc::clone(&self.cancelled), ..Self::default() }
    }

    /// Asks the computation to stop at its next block.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Units of work (replicates, rows) that are finished.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Adds finished units of work.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Fails with [`Error::Cancelled`] once [`Control::cancel`] was called.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Whether this thread belongs to a pool.
fn in_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// Fills `values` in blocks of `block`: `fill(i, values, scratch)` has the number of the block and its values. Each
/// thread makes its own `scratch`.
///
/// # Errors
/// An error of `fill`.
pub(crate) fn fill<T: Send, S: Send>(
    values: &mut [T],
    block: usize,
    control: &Control,
    scratch: impl Fn() -> S + Sync,
    fill: impl Fn(usize, &mut [T], &mut S) -> Result<()> + Sync,
) -> Result<()> {
    let run_block = |state: &mut S, (i, values): (usize, &mut [T])| fill(i, values, state);
    if in_pool() {
        values.par_chunks_mut(block).enumerate().try_for_each_init(&scratch, run_block)
    } else {
        share(values.chunks_mut(block).enumerate(), control, scratch, run_block).map(drop)
    }
}

/// Fills `values[r]` for every replicate `r`, a run of replicates at a time:
/// `fill(first, values, scratch)` has the first one's index and the values of some of them.
///
/// Work is cut into blocks of fixed size; which thread takes a block cannot change a value,
/// because a replicate depends on its index alone. Each thread makes its own `scratch`.
///
/// # Errors
/// [`Error::Cancelled`] when the control says so.
pub fn fill_replicates<S: Send>(
    values: &mut [f64],
    control: &Control,
    scratch: impl Fn() -> S + Sync,
    fill: impl Fn(u64, &mut [f64], &mut S) + Sync,
) -> Result<()> {
    self::fill(values, BLOCK, control, scratch, |block, chunk, state| {
        control.check()?;
        fill((block * BLOCK) as u64, chunk, state);
        control.advance(chunk.len() as u64);
        Ok(())
    })
}

/// As [`fill_replicates`], one replicate at a time: for replicates that take long.
///
/// # Errors
/// [`Error::Cancelled`] when the control says so.
pub fn each_replicate<S: Send>(
    values: &mut [f64],
    control: &Control,
    scratch: impl Fn() -> S + Sync,
    replicate: impl Fn(u64, &mut S) -> f64 + Sync,
) -> Result<()> {
    fill_replicates(values, control, scratch, |first, values, state| {
        for (value, index) in values.iter_mut().zip(first..) {
            // What is left undone when the call is stopped is thrown away.
            if control.check().is_ok() {
                *value = replicate(index, state);
            }
        }
    })?;
    control.check()
}

/// What `map` makes of every block of `block` out of `n` things, in the order of the blocks.
///
/// # Errors
/// The first error of `map`, by block; [`Error::Cancelled`] when the control says so.
pub fn map_blocks<T: Send>(
    n: usize,
    block: usize,
    control: &Control,
    map: impl Fn(Range<usize>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let run = |index: usize| {
        control.check()?;
        let range = index * block..((index + 1) * block).min(n);
        let made = map(range.clone());
        control.advance(range.len() as u64);
        made
    };
    let n_blocks = n.div_ceil(block);
    // All blocks are looked at even when one fails: which error is told must not depend on luck.
    let made: Vec<Result<T>> = if in_pool() {
        (0..n_blocks).into_par_iter().map(run).collect()
    } else {
        let add = |made: &mut Vec<(usize, Result<T>)>, index| {
            made.push((index, run(index)));
            Ok(())
        };
        let mut made: Vec<_> = share(0..n_blocks, control, Vec::new, add)?.into_iter().flatten().collect();
        made.sort_unstable_by_key(|(index, _)| *index);
        made.into_iter().map(|(_, made)| made).collect()
    };
    made.into_iter().collect()
}

/// Adds the blocks `0..n_blocks` up, each thread those that it takes, and merges what the threads have. In which order
/// depends on luck: the result must not.
///
/// # Errors
/// An error of `add` or `merge`.
pub(crate) fn reduce_blocks<S: Send>(
    n_blocks: usize,
    control: &Control,
    empty: impl Fn() -> S + Sync,
    add: impl Fn(&mut S, usize) -> Result<()> + Sync,
    merge: impl Fn(S, S) -> Result<S> + Sync,
) -> Result<S> {
    if in_pool() {
        let add_block = |mut state: S, block| add(&mut state, block).map(|()| state);
        (0..n_blocks).into_par_iter().try_fold(&empty, add_block).try_reduce(&empty, &merge)
    } else {
        share(0..n_blocks, control, &empty, add)?.into_iter().try_fold(empty(), merge)
    }
}

/// Calls `run` on every item.
pub(crate) fn for_each<T: Send>(items: Vec<T>, run: impl Fn(T) + Sync + Send) {
    if in_pool() { items.into_par_iter().for_each(run) } else { items.into_iter().for_each(run) }
}

/// Sorts values in place.
pub(crate) fn sort<T: Ord + Send>(values: &mut [T]) {
    if in_pool() { values.par_sort_unstable() } else { values.sort_unstable() }
}

/// Sorts values in place by what `key` says of each.
pub(crate) fn sort_by_key<T: Send, K: Ord>(values: &mut [T], key: impl Fn(&T) -> K + Sync) {
    if in_pool() { values.par_sort_unstable_by_key(key) } else { values.sort_unstable_by_key(key) }
}

/// Calls `run` on every run of neighbours that are the `same`.
pub(crate) fn for_each_run<T: Send>(
    values: &mut [T],
    same: impl Fn(&T, &T) -> bool + Sync + Send,
    run: impl Fn(&mut [T]) + Sync + Send,
) {
    if in_pool() { values.par_chunk_by_mut(same).for_each(run) } else { values.chunk_by_mut(same).for_each(run) }
}

/// Runs `run` on every block, on this thread and on the helpers that the control allows, and
/// returns the state of each thread.
///
/// For short work outside of a pool: a helper is started while this thread works already, where
/// a pool would be started, woken up and waited for.
///
/// # Errors
/// The first error of `run`.
fn share<B, S: Send>(
    blocks: impl Iterator<Item = B> + Send,
    control: &Control,
    new: impl Fn() -> S + Sync,
    run: impl Fn(&mut S, B) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let blocks = Mutex::new(blocks);
    let next = || blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<S> {
        let mut state = new();
        while let Some(block) = next() {
            run(&mut state, block)?;
        }
        Ok(state)
    };
    std::thread::scope(|scope| {
        // A helper that cannot be started is one that does not help.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (0..control.helpers).map_while(start).collect();
        let mut states = vec![work()];
        for helper in helpers {
            states.push(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        states.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_run_once_on_any_number_of_threads() {
        for threads in [0, 1, 3] {
            let states = share(0..1_000u64, &Control::with_threads(threads), Vec::new, |seen, block| {
                seen.push(block);
                Ok(())
            });
            let states = states.unwrap();
            assert_eq!(states.len(), threads.max(1));
            let mut seen: Vec<u64> = states.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..1_000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_comes_back_from_any_thread() {
        let control = Control::with_threads(3);
        control.cancel();
        assert_eq!(share(0..10, &control, || (), |(), _| control.check()), Err(Error::Cancelled));
    }

    #[test]
    fn values_do_not_depend_on_the_threads() {
        let fill = |threads| {
            let mut values = vec![0.0; 1_001];
            let index = |first: u64, values: &mut [f64], (): &mut ()| {
                values.iter_mut().zip(first..).for_each(|(value, replicate)| *value = replicate as f64);
            };
            fill_replicates(&mut values, &Control::with_threads(threads), || (), index).unwrap();
            values
        };
        assert_eq!(fill(1), (0..1_001).map(f64::from).collect::<Vec<_>>());
        assert_eq!(fill(4), fill(1));
    }
}
