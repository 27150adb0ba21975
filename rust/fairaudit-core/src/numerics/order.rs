//! Orders of rows that do not depend on how the rows arrive.

use crate::error::Result;
use crate::parallel::{self, Control};

/// Bits that are in the order of the values.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The row of an entry of [`order`].
#[inline(always)]
pub(crate) fn row_of(key: u64) -> usize {
    key as u32 as usize
}

/// Rows in ascending order of the score and then of what else a test looks at, so that the
/// result does not depend on the order in which they arrive. Each entry has the row in its low
/// half, the high half of the score above: eight bytes per row, and few comparisons of more.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn order<K: Ord>(score: &[f64], rest: impl Fn(usize) -> K + Sync, control: &Control) -> Result<Vec<u64>> {
    let mut keys: Vec<u64> =
        score.iter().zip(0u64..).map(|(&value, row)| ordered_bits(value) >> 32 << 32 | row).collect();
    let exact = |key: &u64| (ordered_bits(score[row_of(*key)]), rest(row_of(*key)));
    // Scores of like size share their high half with many others: this can take as long as the sort. An error is that
    // of the control, which is looked at below.
    let refine = |run: &mut [u64]| {
        if run.len() > 1 {
            let _ = parallel::sort_by_key(run, exact, control);
        }
    };
    control.check()?;
    parallel::sort(&mut keys, control)?;
    parallel::for_each_run(&mut keys, |a, b| a >> 32 == b >> 32, refine);
    control.check()?;
    Ok(keys)
}
