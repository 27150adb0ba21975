//! What rows of a group come to: sums of their parts, and of products of parts.

use super::exact::{Exact, ROWS, cut};
use crate::error::{Error, Result};
use crate::parallel::{Control, reduce_blocks};

/// Numbers of a row that rates are made of: 1, label y, score f, and y f.
pub const PARTS: usize = 4;
/// Products of two of them.
pub const PRODUCTS: usize = PARTS * (PARTS + 1) / 2;
/// Numbers that parts and their products are: 1, y, f, y f, f^2, y f^2, for labels of 0 and 1.
pub const MOMENTS: usize = 6;
/// By product of two parts in their order, which moment it is.
pub const PRODUCT_OF: [usize; PRODUCTS] = [0, 1, 2, 3, 1, 3, 3, 4, 5, 5];

/// Labels and scores of some rows of a table.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// Their places in the table.
    rows: &'a [i64],
    /// 1 where a byte is not 0.
    label: &'a [u8],
    score: &'a [f64],
}

impl<'a> Group<'a> {
    /// Rows by their places in the columns of a table.
    ///
    /// # Errors
    /// [`Error::Argument`] when the columns differ in length, no row is among them, or a score is none.
    pub fn new(rows: &'a [i64], label: &'a [u8], score: &'a [f64]) -> Result<Self> {
        let n = label.len();
        if rows.is_empty() || score.len() != n || rows.iter().any(|&row| row < 0 || row as usize >= n) {
            let given = format!("{} rows of {n} labels and {} scores", rows.len(), score.len());
            return Err(Error::argument("rows", given, "one row at least, places in columns of one length"));
        }
        if let Some(row) = rows.iter().find(|&&row| !(0.0..=1.0).contains(&score[row as usize])) {
            return Err(Error::argument("score", score[*row as usize], "numbers from 0 to 1"));
        }
        Ok(Self { rows, label, score })
    }

    /// Places in the table.
    pub(super) fn rows(&self) -> &'a [i64] {
        self.rows
    }

    /// How many rows the table has.
    pub(super) fn n_rows(&self) -> usize {
        self.score.len()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    pub(super) fn parts(&self, index: usize) -> [f64; PARTS] {
        let row = self.rows[index] as usize;
        let label = f64::from(u8::from(self.label[row] != 0));
        [1.0, label, self.score[row], label * self.score[row]]
    }

    #[inline(always)]
    pub(super) fn moments(&self, index: usize) -> [f64; MOMENTS] {
        let [one, label, score, both] = self.parts(index);
        [one, label, score, both, score * score, both * score]
    }
}

/// The moments of a group added up; their bits do not depend on the order of the rows.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn moments(group: &Group<'_>, control: &Control) -> Result<[f64; MOMENTS]> {
    let merge = |mut one: [Exact; MOMENTS], other: [Exact; MOMENTS]| {
        one.iter_mut().zip(other).for_each(|(sum, more)| sum.merge(more));
        Ok(one)
    };
    let add = |total: &mut [Exact; MOMENTS], block: usize| {
        control.check()?;
        let mut sums = [[0.0; 2]; MOMENTS];
        for index in block_of(block, group.len()) {
            for (sum, moment) in sums.iter_mut().zip(group.moments(index)) {
                let [high, low] = cut(moment);
                *sum = [sum[0] + high, sum[1] + low];
            }
        }
        total.iter_mut().zip(sums).for_each(|(total, sum)| total.add(sum));
        Ok(())
    };
    let total = reduce_blocks(group.len().div_ceil(ROWS), control, Default::default, add, merge)?;
    Ok(total.map(Exact::value))
}

/// The rows of a block of [`ROWS`].
pub(super) fn block_of(block: usize, n: usize) -> std::ops::Range<usize> {
    block * ROWS..((block + 1) * ROWS).min(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, Stream};

    #[test]
    fn they_are_those_of_a_plain_loop_in_any_order() {
        let mut stream = Stream::new(4, Domain::Simulation, 0, 0, 0);
        let score: Vec<f64> = (0..9_000).map(|_| stream.uniform()).collect();
        let label: Vec<u8> = (0..9_000).map(|_| u8::from(stream.uniform() < 0.3)).collect();
        let mut rows: Vec<i64> = (0..9_000).filter(|row| row % 7 != 0).collect();
        let found = |rows: &[i64], threads| {
            moments(&Group::new(rows, &label, &score).unwrap(), &Control::with_threads(threads)).unwrap()
        };
        let forward = found(&rows, 1);
        let group = Group::new(&rows, &label, &score).unwrap();
        for k in 0..MOMENTS {
            let plain: f64 = (0..rows.len()).map(|index| group.moments(index)[k]).sum();
            assert!((forward[k] / plain - 1.0).abs() < 1e-13);
        }
        rows.reverse();
        assert_eq!(found(&rows, 3), forward);
    }

    #[test]
    fn products_of_parts_are_moments() {
        let group = Group::new(&[0, 1], &[3, 0], &[0.3, 0.6]).unwrap();
        for index in 0..2 {
            let (parts, moments) = (group.parts(index), group.moments(index));
            let pairs = (0..PARTS).flat_map(|m| (m..PARTS).map(move |other| (m, other)));
            for ((m, other), moment) in pairs.zip(PRODUCT_OF) {
                assert!((parts[m] * parts[other] - moments[moment]).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn what_is_no_group_is_refused() {
        for (rows, label, score) in [
            (&[][..], &[1][..], &[0.5][..]),
            (&[1], &[1], &[0.5]),
            (&[-1], &[1], &[0.5]),
            (&[0], &[1], &[]),
            (&[0], &[1], &[f64::NAN]),
            (&[0], &[1], &[1.5]),
            (&[0], &[], &[]),
        ] {
            assert!(Group::new(rows, label, score).is_err());
        }
    }
}
