//! What a running call shares with the thread that waits for it, and the loops that its threads share: over
//! replicates, over blocks of rows, and sorts.
//!
//! Every loop asks once where it runs: in a pool it goes on the pool's threads, outside of one on this thread and on
//! the helpers that the [`Control`] allows. Which of them takes a block changes no result. Nothing else in this crate
//! knows rayon.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

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

    /// How many threads the computation runs on.
    pub(crate) fn threads(&self) -> usize {
        if in_pool() { rayon::current_num_threads() } else { self.helpers + 1 }
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

/// What threads work in that takes much memory: so many at a time have one, and the next gets what one of them left.
#[derive(Debug)]
pub(crate) struct Workspaces<S> {
    /// Those that nobody works in, and how many are in use.
    idle: Mutex<(Vec<S>, usize)>,
    returned: Condvar,
}

impl<S> Default for Workspaces<S> {
    fn default() -> Self {
        Self { idle: Mutex::new((Vec::new(), 0)), returned: Condvar::new() }
    }
}

/// A workspace in use, which goes back even if the work panics.
struct Borrowed<'a, S> {
    from: &'a Workspaces<S>,
    space: Option<S>,
}

impl<S> Drop for Borrowed<'_, S> {
    fn drop(&mut self) {
        let mut state = self.from.idle.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 -= 1;
        state.0.extend(self.space.take());
        drop(state);
        self.from.returned.notify_one();
    }
}

impl<S> Workspaces<S> {
    /// Works in a workspace when fewer than `most` (at least one) are in use.
    pub(crate) fn with<R>(&self, most: usize, new: impl FnOnce() -> S, work: impl FnOnce(&mut S) -> R) -> R {
        let mut state = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while state.1 >= most.max(1) {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.1 += 1;
        let space = state.0.pop();
        drop(state);
        // Borrowed before it is made: making it can panic too.
        let mut borrowed = Borrowed { from: self, space };
        work(borrowed.space.get_or_insert_with(new))
    }

    /// Frees the workspaces that nobody works in.
    pub(crate) fn clear(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).0.clear();
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

/// What both say, side by side where there is a pool.
pub(crate) fn join<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    if in_pool() { rayon::join(one, other) } else { (one(), other()) }
}

/// What `run` says of every item.
pub(crate) fn map_each<T: Send, R: Send>(items: Vec<T>, run: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    if in_pool() { items.into_par_iter().map(run).collect() } else { items.into_iter().map(run).collect() }
}

/// Sorts values in place.
///
/// # Errors
/// [`Error::Cancelled`] when the control says so; the values are then in any order.
pub(crate) fn sort<T: Copy + Ord + Send + Sync>(values: &mut [T], control: &Control) -> Result<()> {
    sort_by_key(values, |value| *value, control)
}

/// Sorts values in place by what `key` says of each, cut into pieces that are sorted soon: between them it looks at the
/// control.
///
/// # Errors
/// As [`sort`].
pub(crate) fn sort_by_key<T: Copy + Send + Sync, K: Ord>(
    values: &mut [T],
    key: impl Fn(&T) -> K + Copy + Sync + Send,
    control: &Control,
) -> Result<()> {
    control.check()?;
    let n = values.len();
    let cut = if n > PIECE { cut(values, key) } else { 0 };
    // Where one side has almost all, values are mostly equal: sorting them is fast.
    if cut.min(n - cut) < n / 64 || n <= PIECE {
        values.sort_unstable_by_key(key);
        return Ok(());
    }
    let (low, high) = values.split_at_mut(cut);
    let sort = |part| sort_by_key(part, key, control);
    let (low, high) = join(|| sort(low), || sort(high));
    low.and(high)
}

/// Values that are sorted without a look at the control, on one thread: some milliseconds.
const PIECE: usize = 1 << 16;

/// Brings the values below a pivot, which is a median of some, to the front, and returns how many there are.
fn cut<T: Copy, K: Ord>(values: &mut [T], key: impl Fn(&T) -> K) -> usize {
    const LOOKS: usize = 101;
    let mut some: Vec<T> = (0..LOOKS).map(|look| values[look * (values.len() - 1) / (LOOKS - 1)]).collect();
    some.sort_unstable_by_key(&key);
    let pivot = key(&some[LOOKS / 2]);
    let mut low = 0;
    for at in 0..values.len() {
        // Without a branch, whose outcome nothing foretells.
        values.swap(at, low);
        low += usize::from(key(&values[low]) < pivot);
    }
    low
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
    fn sorts_of_any_values_are_sorts_and_stop() {
        let n = 3 * PIECE as u64 + 17;
        let scrambled: Vec<u64> = (0..n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).collect();
        let few: Vec<u64> = scrambled.iter().map(|value| value % 3).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for values in [scrambled, few, (0..n).collect(), (0..n).rev().collect(), vec![7; n as usize]] {
            let mut expected = values.clone();
            expected.sort_unstable();
            let (mut here, mut there) = (values.clone(), values.clone());
            sort(&mut here, &Control::default()).unwrap();
            pool.install(|| sort(&mut there, &Control::default())).unwrap();
            assert!(here == expected && there == expected);
            let mut back = values;
            sort_by_key(&mut back, |value| std::cmp::Reverse(*value), &Control::default()).unwrap();
            assert!(back.iter().eq(expected.iter().rev()));
        }
        let control = Control::default();
        control.cancel();
        assert_eq!(sort(&mut [2, 1], &control), Err(Error::Cancelled));
    }

    #[test]
    fn no_more_workspaces_are_in_use_than_were_said() {
        let (spaces, made, used, most) = <(Workspaces<u64>, AtomicU64, AtomicU64, AtomicU64)>::default();
        let control = Control::with_threads(8);
        let run = |(): &mut (), _: u64| {
            let new = || made.fetch_add(1, Ordering::SeqCst);
            spaces.with(2, new, |_| {
                let now = used.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::yield_now();
                used.fetch_sub(1, Ordering::SeqCst);
            });
            Ok(())
        };
        share(0..500u64, &control, || (), run).unwrap();
        assert!(most.into_inner() <= 2 && made.into_inner() <= 2);
        let panics = std::panic::AssertUnwindSafe(|| spaces.with(1, || 0, |_| panic!("planted")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(spaces.with(1, || 5, |_| 3), 3);
        // Freed ones are made anew.
        spaces.with(2, || 7, |_| ());
        spaces.clear();
        assert_eq!(spaces.with(1, || 5, |space| *space), 5);
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
