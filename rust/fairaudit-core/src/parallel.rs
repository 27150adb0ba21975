//! What a running call shares with the thread that waits for it, and the loop over replicates.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Replicates that one task works on before it looks at the [`Control`] again.
const BLOCK: usize = 64;

/// The flag that stops a computation and the counter that shows how far it is.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: AtomicBool,
    done: AtomicU64,
}

impl Control {
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

/// Fills `values[r]` with `replicate(r, scratch)` for every replicate `r`.
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
    replicate: impl Fn(u64, &mut S) -> f64 + Sync,
) -> Result<()> {
    let run_block = |state: &mut S, (block, chunk): (usize, &mut [f64])| -> Result<()> {
        control.check()?;
        for (offset, value) in chunk.iter_mut().enumerate() {
            *value = replicate((block * BLOCK + offset) as u64, state);
        }
        control.advance(chunk.len() as u64);
        Ok(())
    };
    if rayon::current_thread_index().is_none() {
        // Not inside a pool of the call: tiny work, run here.
        let mut state = scratch();
        return values.chunks_mut(BLOCK).enumerate().try_for_each(|item| run_block(&mut state, item));
    }
    values.par_chunks_mut(BLOCK).enumerate().try_for_each_init(&scratch, run_block)
}
