//! Distinct rows of numbers, in an order that does not depend on how the rows came.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::parallel::{Control, fill, sort_by_key};

/// Rows that are hashed together.
const BLOCK: usize = 1 << 12;

/// Which rows are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distinct {
    /// A row of each kind, in the order of the kinds: that of a hash of their numbers.
    pub first: Vec<u32>,
    /// How many rows there are of each kind.
    pub counts: Vec<u64>,
    /// The kind of every row.
    pub place: Vec<u32>,
}

/// Finds the distinct rows of a matrix of `width` numbers a row; 0 and -0 are equal, and so are all NaN.
///
/// # Errors
/// [`Error::Argument`] when the matrix has no rows or is not whole, [`Error::Cancelled`].
///
/// ```
/// use fairaudit_core::{parallel::Control, tabulate::distinct::distinct_rows};
/// let rows = distinct_rows(&[1.0, 2.0, 0.0, 2.0, 1.0, 2.0], 2, &Control::default()).unwrap();
/// assert_eq!((rows.counts.len(), rows.place[0] == rows.place[2]), (2, true));
/// ```
pub fn distinct_rows(values: &[f64], width: usize, control: &Control) -> Result<Distinct> {
    if width == 0
        || values.is_empty()
        || !values.len().is_multiple_of(width)
        || values.len() / width > u32::MAX as usize
    {
        let given = format!("{} numbers in rows of {width}", values.len());
        return Err(Error::argument("values", given, "between 1 and 2^32 - 1 whole rows"));
    }
    let row = |index: u32| &values[index as usize * width..][..width];
    let mut keys = vec![(0u64, 0u32); values.len() / width];
    fill(
        &mut keys,
        BLOCK,
        control,
        || (),
        |block, keys, ()| {
            control.check()?;
            for (key, index) in keys.iter_mut().zip((block * BLOCK) as u32..) {
                *key = (hash(row(index)), index);
            }
            Ok(())
        },
    )?;
    sort_by_key(&mut keys, |&key| key, control)?;
    control.check()?;
    let mut found = Distinct { first: Vec::new(), counts: Vec::new(), place: vec![0; keys.len()] };
    for run in keys.chunk_by_mut(|one, other| one.0 == other.0) {
        // Rows of one hash are equal, but for one in 2^64 pairs or an adversary.
        if run.iter().any(|&(_, index)| compare(row(index), row(run[0].1)) != Ordering::Equal) {
            run.sort_by(|one, other| compare(row(one.1), row(other.1)));
        }
        for equal in run.chunk_by(|one, other| compare(row(one.1), row(other.1)) == Ordering::Equal) {
            for &(_, index) in equal {
                found.place[index as usize] = found.first.len() as u32;
            }
            found.first.push(equal[0].1);
            found.counts.push(equal.len() as u64);
        }
    }
    Ok(found)
}

/// The bits of a number, the same for numbers that count as equal.
#[inline]
fn bits(number: f64) -> u64 {
    if number == 0.0 {
        0
    } else if number.is_nan() {
        f64::NAN.to_bits()
    } else {
        number.to_bits()
    }
}

#[inline]
fn hash(row: &[f64]) -> u64 {
    let mixed = row.iter().fold(0x243F_6A88_85A3_08D3u64, |state, &number| {
        let next = (state ^ bits(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        next ^ (next >> 32)
    });
    let last = mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    last ^ (last >> 29)
}

fn compare(one: &[f64], other: &[f64]) -> Ordering {
    one.iter().map(|&number| bits(number)).cmp(other.iter().map(|&number| bits(number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, Stream};

    fn kinds(values: &[f64], width: usize) -> Vec<Vec<u64>> {
        let found = distinct_rows(values, width, &Control::default()).unwrap();
        let row = |index: u32| values[index as usize * width..][..width].iter().map(|&x| bits(x)).collect();
        found.first.iter().map(|&index| row(index)).collect()
    }

    #[test]
    fn kinds_do_not_depend_on_the_order_of_rows() {
        let mut stream = Stream::new(1, Domain::Simulation, 0, 0, 0);
        let mut rows: Vec<[f64; 3]> = (0..5_000).map(|_| [0, 1, 2].map(|_| stream.below(6) as f64 - 0.5)).collect();
        let before = kinds(rows.as_flattened(), 3);
        rows.sort_by(|one, other| one.partial_cmp(other).unwrap());
        assert_eq!(kinds(rows.as_flattened(), 3), before);
        assert_eq!(before.len(), 216);
    }

    #[test]
    fn counts_and_places_belong_to_the_rows() {
        let values = [1.0, 2.0, -0.0, f64::NAN, 1.0, 2.0, 0.0, -f64::NAN];
        let found = distinct_rows(&values, 2, &Control::with_threads(3)).unwrap();
        assert_eq!(found.counts, [2, 2]);
        assert_eq!(found.place[0], found.place[2]);
        assert_eq!(found.place[1], found.place[3]);
        assert_ne!(found.place[0], found.place[1]);
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for (values, width) in [(&[1.0, 2.0, 3.0][..], 2), (&[], 1), (&[1.0], 0)] {
            assert!(distinct_rows(values, width, &Control::default()).is_err());
        }
    }
}
