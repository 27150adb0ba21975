//! Features as they are given: which of them have two values, and these as bits.
//!
//! Arrays of the caller are read where they are, some rows at a time, so that the values of a row lie in the cache
//! while column after column is looked at. Two bytes hold sixteen columns of two values.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, LANES, Task};

/// Rows whose bits lie together.
const BLOCK: usize = 1 << 13;
/// Rows that are looked at column by column.
const STRETCH: usize = 512;

/// One number for every row, wherever it is.
pub trait Numbers: Sync {
    /// How many rows there are.
    fn n_rows(&self) -> usize;

    /// Copies the numbers of the rows from `first` on.
    fn load(&self, first: usize, numbers: &mut [f64]);

    /// Copies the numbers of some rows.
    fn pick(&self, rows: &[i64], numbers: &mut [f64]);

    /// Brings rows into the cache in the order in which they lie in memory, where the columns that are read next lie
    /// side by side: read one after the other they would come in many small pieces.
    fn fetch(&self, _rows: Range<usize>) {}
}

/// What the numbers of a column are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The lower one of its two values, or its only one; NaN where there are more.
    pub low: f64,
    /// The higher one.
    pub high: f64,
}

impl Found {
    /// Whether there are more than two values.
    pub fn is_continuous(&self) -> bool {
        self.low.is_nan()
    }
}

/// What the columns are, with the bits of those that have two values.
#[derive(Debug, Clone)]
pub struct Columns {
    n_rows: usize,
    found: Vec<Found>,
    /// The value of the first row.
    first: Vec<f64>,
    /// By block and row, for sixteen columns each: which of them differ from the first row.
    blocks: Vec<Vec<u16>>,
}

impl Columns {
    /// Looks at all numbers of all columns, which are as long as the first one.
    ///
    /// # Errors
    /// [`Error::Argument`] without columns or rows, when the columns differ in length, and for a number that is not
    /// finite, whose column is told by [`first_not_finite`]; [`Error::Cancelled`].
    pub fn look(columns: &[&dyn Numbers], control: &Control) -> Result<Option<Self>> {
        let n_rows = columns.first().map_or(0, |column| column.n_rows());
        if n_rows == 0 || columns.iter().any(|column| column.n_rows() != n_rows) {
            let given = format!("{} columns, the first one of {n_rows} rows", columns.len());
            return Err(Error::argument("columns", given, "columns of one length, which is not 0"));
        }
        let first: Vec<f64> = columns.iter().map(|column| one(*column, 0)).collect();
        if first.iter().any(|number| !number.is_finite()) {
            return Ok(None);
        }
        let instructions = InstructionSet::current()?;
        let looked = map_blocks(n_rows, BLOCK, control, |range| {
            let mut block = Block::new(range.len(), columns.len());
            let mut numbers = [0.0; STRETCH];
            for start in range.clone().step_by(STRETCH) {
                let n = STRETCH.min(range.end - start);
                for column in columns {
                    column.fetch(start..start + n);
                }
                for (tile, columns) in columns.chunks(LANES).enumerate() {
                    let mut words = [0; STRETCH];
                    for (lane, column) in columns.iter().enumerate() {
                        column.load(start, &mut numbers[..n]);
                        let place = tile * LANES + lane;
                        let (first, seen) = (first[place], &mut block.seen[place]);
                        let words = &mut words[..n];
                        instructions.run(Look { numbers: &numbers[..n], first, seen, lane, words });
                    }
                    let rows = block.words[(start - range.start) * block.n_tiles..].chunks_mut(block.n_tiles);
                    rows.zip(words).take(n).for_each(|(row, word)| row[tile] = word);
                }
            }
            Ok(block)
        })?;
        let mut seen = vec![Seen::Same; columns.len()];
        for block in &looked {
            seen.iter_mut().zip(&block.seen).for_each(|(all, one)| *all = all.with(*one));
        }
        if seen.contains(&Seen::NotFinite) {
            return Ok(None);
        }
        let found = first.iter().zip(&seen).map(|(&first, seen)| seen.found(first)).collect();
        let blocks = looked.into_iter().map(|block| block.words).collect();
        Ok(Some(Self { n_rows, found, first, blocks }))
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// What every column is.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Whether the bit of a column is 1 where it has this value.
    pub(super) fn marks(&self, column: usize, value: f64) -> bool {
        self.first[column] != value
    }

    /// The bits of sixteen columns in a row.
    #[inline(always)]
    pub(super) fn bits(&self, row: usize, tile: usize) -> u16 {
        self.blocks[row / BLOCK][row % BLOCK * self.found.len().div_ceil(LANES) + tile]
    }

    /// Estimated nanoseconds of [`Columns::look`] on one thread.
    pub fn work(n_columns: usize, n_rows: usize) -> u64 {
        2 * n_columns as u64 * n_rows as u64
    }
}

/// The first column with a number that is not finite, and the first row where.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn first_not_finite(columns: &[&dyn Numbers], control: &Control) -> Result<Option<(usize, usize)>> {
    let mut numbers = vec![0.0; BLOCK];
    for (place, column) in columns.iter().enumerate() {
        for start in (0..column.n_rows()).step_by(BLOCK) {
            control.check()?;
            let numbers = &mut numbers[..BLOCK.min(column.n_rows() - start)];
            column.load(start, numbers);
            if let Some(row) = numbers.iter().position(|number| !number.is_finite()) {
                return Ok(Some((place, start + row)));
            }
        }
    }
    Ok(None)
}

fn one(column: &dyn Numbers, row: usize) -> f64 {
    let mut number = [0.0];
    column.load(row, &mut number);
    number[0]
}

/// What some rows of all columns are.
struct Block {
    n_tiles: usize,
    words: Vec<u16>,
    seen: Vec<Seen>,
}

impl Block {
    fn new(n_rows: usize, n_columns: usize) -> Self {
        let n_tiles = n_columns.div_ceil(LANES);
        Self { n_tiles, words: vec![0; n_rows * n_tiles], seen: vec![Seen::Same; n_columns] }
    }
}

/// What was seen in some rows of a column besides its number in the first row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Seen {
    /// Nothing.
    Same,
    /// One other number.
    Two(f64),
    /// More of them.
    Many,
    NotFinite,
}

impl Seen {
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotFinite, _) | (_, Self::NotFinite) => Self::NotFinite,
            (Self::Same, seen) | (seen, Self::Same) => seen,
            (Self::Two(one), Self::Two(other)) if one == other => self,
            _ => Self::Many,
        }
    }

    fn found(self, first: f64) -> Found {
        // No sign: which of 0 and -0 comes first depends on the order of the rows.
        let first = first + 0.0;
        match self {
            Self::Same => Found { low: first, high: first },
            Self::Two(other) => Found { low: first.min(other + 0.0), high: first.max(other + 0.0) },
            _ => Found { low: f64::NAN, high: f64::NAN },
        }
    }
}

struct Look<'a> {
    numbers: &'a [f64],
    first: f64,
    seen: &'a mut Seen,
    lane: usize,
    words: &'a mut [u16],
}

impl Task for Look<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { numbers, first, seen, lane, words } = self;
        if let Seen::Same | Seen::Two(_) = *seen {
            // NaN is different from every number, so that the first other one is looked for.
            let other = if let Seen::Two(other) = *seen { other } else { f64::NAN };
            let mut odd = 0;
            for (word, &number) in words.iter_mut().zip(numbers) {
                let differs = number != first;
                *word |= u16::from(differs) << lane;
                odd |= u16::from(differs) & u16::from(number != other);
            }
            if odd == 0 {
                return;
            }
            let others = numbers.iter().filter(|&&number| number != first);
            *seen = others.fold(*seen, |seen, &number| {
                seen.with(if number.is_finite() { Seen::Two(number) } else { Seen::NotFinite })
            });
        }
        let mut whole = true;
        for number in numbers {
            whole &= number.abs() < f64::INFINITY;
        }
        if !whole {
            *seen = Seen::NotFinite;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A column in a row-by-row array.
    pub(in crate::influence) struct Strided<'a> {
        pub(in crate::influence) data: &'a [f64],
        pub(in crate::influence) place: usize,
        pub(in crate::influence) width: usize,
    }

    impl Numbers for Strided<'_> {
        fn n_rows(&self) -> usize {
            self.data.len() / self.width
        }

        fn load(&self, first: usize, numbers: &mut [f64]) {
            for (number, row) in numbers.iter_mut().zip(first..) {
                *number = self.data[row * self.width + self.place];
            }
        }

        fn pick(&self, rows: &[i64], numbers: &mut [f64]) {
            for (number, &row) in numbers.iter_mut().zip(rows) {
                *number = self.data[row as usize * self.width + self.place];
            }
        }
    }

    fn look(columns: &[Vec<f64>]) -> Option<Columns> {
        let strided: Vec<_> = columns.iter().map(|data| Strided { data, place: 0, width: 1 }).collect();
        let columns: Vec<&dyn Numbers> = strided.iter().map(|one| one as &dyn Numbers).collect();
        Columns::look(&columns, &Control::with_threads(2)).unwrap()
    }

    #[test]
    fn what_the_columns_are() {
        let n = 2 * BLOCK + 77;
        let late = |row: usize, value: f64| (0..n).map(|i| if i == row { value } else { 3.0 }).collect::<Vec<_>>();
        let found = look(&[
            vec![5.0; n],
            (0..n).map(|i| (i % 2) as f64).collect(),
            (0..n).map(|i| (i % 3) as f64).collect(),
            late(n - 1, 1.0),
            late(0, 4.0),
            (0..n).map(|i| if i == 9_000 { 2.0 } else { (i % 2) as f64 }).collect(),
            (0..n).map(|i| if i % 2 == 0 { -0.0 } else { 0.0 }).collect(),
        ])
        .unwrap();
        let ends: Vec<_> = found.found().iter().map(|one| (one.low, one.high)).collect();
        assert_eq!((ends[0], ends[1], ends[3], ends[4]), ((5.0, 5.0), (0.0, 1.0), (1.0, 3.0), (3.0, 4.0)));
        assert!(found.found()[2].is_continuous() && found.found()[5].is_continuous());
        assert_eq!(ends[6].0.to_bits(), 0.0f64.to_bits());
        assert_eq!(found.bits(n - 1, 0) & 0b1000, 0b1000);
        assert_eq!(found.bits(7, 0) & 0b11011, 0b10010);
    }

    #[test]
    fn what_is_not_finite_is_found_wherever_it_is() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for row in [0, 1, 130, BLOCK + 1] {
                for other in [0.0, 1.0, 7.0] {
                    let mut column: Vec<f64> = (0..BLOCK + 50).map(|i| if i % 2 == 0 { 1.0 } else { other }).collect();
                    column.iter_mut().skip(3).step_by(5).for_each(|x| *x *= other);
                    column[row] = bad;
                    assert!(look(std::slice::from_ref(&column)).is_none(), "{bad} {row} {other}");
                    let fine = vec![1.0; column.len()];
                    let strided = [&fine, &column].map(|data| Strided { data, place: 0, width: 1 });
                    let both: Vec<&dyn Numbers> = strided.iter().map(|one| one as &dyn Numbers).collect();
                    assert_eq!(first_not_finite(&both, &Control::default()), Ok(Some((1, row))));
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_sees_the_same() {
        let numbers: Vec<f64> = (0..STRETCH).map(|i| (i % 2) as f64).collect();
        let by_set = |set: InstructionSet| {
            let (mut seen, mut words) = (Seen::Same, [0; STRETCH]);
            set.run(Look { numbers: &numbers, first: 0.0, seen: &mut seen, lane: 3, words: &mut words });
            (seen, words)
        };
        let all: Vec<_> = InstructionSet::available().into_iter().map(by_set).collect();
        assert!(all.iter().all(|one| *one == all[0] && one.0 == Seen::Two(1.0) && one.1[1] == 8));
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let (one, two) = ([1.0, 2.0], [1.0]);
        let strided = [&one[..], &two[..]].map(|data| Strided { data, place: 0, width: 1 });
        let both: Vec<&dyn Numbers> = strided.iter().map(|one| one as &dyn Numbers).collect();
        assert!(Columns::look(&both, &Control::default()).is_err());
        assert!(Columns::look(&[], &Control::default()).is_err());
    }
}
