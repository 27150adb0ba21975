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

/// Rows in an order, four bytes each, in the memory of the keys that they were sorted by.
pub(crate) struct Order {
    /// Two rows in each entry, the first in its low half.
    pairs: Vec<u64>,
    n_rows: usize,
}

impl Order {
    /// Keeps the rows of the entries of [`order`] alone. Packed in place: half of the memory is given back, and none is
    /// taken.
    pub(crate) fn of(mut keys: Vec<u64>) -> Self {
        let n_rows = keys.len();
        for i in 0..n_rows.div_ceil(2) {
            let second = keys.get(2 * i + 1).map_or(0, |&key| key << 32);
            keys[i] = keys[2 * i] & u64::from(u32::MAX) | second;
        }
        keys.truncate(n_rows.div_ceil(2));
        keys.shrink_to_fit();
        Self { pairs: keys, n_rows }
    }

    /// The row at a place.
    #[inline(always)]
    pub(crate) fn row(&self, place: usize) -> usize {
        row_of(self.pairs[place / 2] >> (32 * (place % 2)))
    }

    /// The rows, one after the other.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.n_rows).map(|place| self.row(place))
    }

    /// A value of each row, with looks at the control between: what lies in another order takes its time.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub(crate) fn of_each<T>(&self, value: impl Fn(usize) -> T, control: &Control) -> Result<Vec<T>> {
        let (mut rows, mut found) = (self.rows(), Vec::with_capacity(self.n_rows));
        while rows.len() > 0 {
            control.check()?;
            found.extend(rows.by_ref().take(PIECE).map(&value));
        }
        Ok(found)
    }
}

/// Rows between two looks at the control.
pub(crate) const PIECE: usize = 1 << 16;

/// Rows in ascending order of the score and then of what else a test looks at, so that the
/// result does not depend on the order in which they arrive. Each entry has the row in its low
/// half, the high half of the score above: eight bytes per row, and few comparisons of more.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn order<K: Ord>(score: &[f64], rest: impl Fn(usize) -> K + Sync, control: &Control) -> Result<Vec<u64>> {
    order_of(0..score.len(), score.len(), score, rest, control)
}

/// As [`order`], of so many rows.
///
/// # Errors
/// As [`order`].
pub(crate) fn order_of<K: Ord>(
    rows: impl Iterator<Item = usize>,
    n_rows: usize,
    score: &[f64],
    rest: impl Fn(usize) -> K + Sync,
    control: &Control,
) -> Result<Vec<u64>> {
    let mut keys = Vec::with_capacity(n_rows);
    keys.extend(rows.map(|row| ordered_bits(score[row]) >> 32 << 32 | row as u64));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_rows_are_those_of_the_keys() {
        for n in [0, 1, 2, 5, 1_000] {
            let score: Vec<f64> = (0..n).map(|i| f64::from(i * 37 % 23)).collect();
            let keys = order(&score, |row| row, &Control::default()).unwrap();
            let rows: Vec<usize> = keys.iter().map(|&key| row_of(key)).collect();
            let packed = Order::of(keys);
            assert_eq!(packed.rows().len(), rows.len());
            assert_eq!(packed.rows().collect::<Vec<_>>(), rows);
        }
    }
}
