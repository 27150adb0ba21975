//! Sums over the rows of a group for the marginal scores of many features.
//!
//! Features are taken sixteen at a time. No sum depends on the order of rows or on threads: each number is rounded to
//! a fixed unit, and the rounded ones are added up without error.

use super::columns::{Columns, Numbers};
use super::exact::{Exact, ROWS, cut};
use super::moments::{Group, MOMENTS, PARTS, PRODUCT_OF, PRODUCTS, block_of, moments};
use crate::error::{Error, Result};
use crate::parallel::{Control, reduce_blocks};
use crate::simd::{InstructionSet, LANES, Task};

/// Rows whose influence values are in the cache at a time.
pub(super) const TILE: usize = 128;
/// Features that are held against [`LANES`] others at a time.
pub(super) const STRIP: usize = 4;
/// Sums of a feature in a pass: times the moments, and its square times the parts.
pub(super) const TERMS: usize = MOMENTS + PARTS;
/// How many sums there are of each feature in the end.
pub const SUMS: usize = 2 * PARTS + PRODUCTS;

/// Sixteen features of a row.
pub(super) type Lanes = [f64; LANES];

/// The rows of a group with their features.
pub struct Rows<'a> {
    pub(super) columns: &'a Columns,
    pub(super) numbers: &'a [&'a dyn Numbers],
    pub(super) group: Group<'a>,
    pub(super) tiles: Vec<Tile>,
}

/// Sixteen features.
#[derive(Debug, Clone, Default)]
pub(super) struct Tile {
    /// Which bits are 0 for the value that counts as 1.
    flip: u16,
    /// Lanes of features with more than two values.
    pub(super) continuous: Vec<usize>,
}

/// Where the values of a feature lie: `u = (x - centre) unit` is between -1 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    centre: f64,
    unit: f64,
}

impl Range {
    /// A power of two is the unit, so that u has lost nothing.
    fn of((least, most): (f64, f64)) -> Self {
        let half = most / 2.0 - least / 2.0;
        Self { centre: least / 2.0 + most / 2.0, unit: power_of_two(-exponent(half)) }
    }
}

impl<'a> Rows<'a> {
    /// Features of a group; of those with two values `ones` has the one that counts as 1, the other one is 0.
    ///
    /// # Errors
    /// [`Error::Argument`] when something is of another number of features or rows.
    pub fn new(columns: &'a Columns, numbers: &'a [&'a dyn Numbers], ones: &[f64], group: Group<'a>) -> Result<Self> {
        let p = columns.found().len();
        if numbers.len() != p || ones.len() != p || group.n_rows() != columns.n_rows() {
            let given = format!("of {} features, for {} rows", ones.len(), group.n_rows());
            let accepted = format!("of {p} features, for {} rows", columns.n_rows());
            return Err(Error::argument("ones", given, &accepted));
        }
        let mut tiles = vec![Tile::default(); p.div_ceil(LANES)];
        for (place, found) in columns.found().iter().enumerate() {
            let (tile, lane) = (&mut tiles[place / LANES], place % LANES);
            if found.is_continuous() {
                tile.continuous.push(lane);
            } else if !columns.marks(place, ones[place]) {
                tile.flip |= 1 << lane;
            }
        }
        Ok(Self { columns, numbers, group, tiles })
    }

    /// Ranges of continuous features within the group.
    fn ranges(&self, control: &Control) -> Result<Vec<Range>> {
        let p = self.numbers.len();
        let empty = || vec![(f64::INFINITY, f64::NEG_INFINITY); p];
        let continuous: Vec<usize> = (0..p).filter(|&place| self.columns.found()[place].is_continuous()).collect();
        let add = |ends: &mut Vec<(f64, f64)>, block: usize| {
            control.check()?;
            let range = block_of(block, self.group.len());
            let mut numbers = [0.0; TILE];
            for first in range.clone().step_by(TILE) {
                let n = TILE.min(range.end - first);
                self.fetch(first, n);
                let rows = &self.group.rows()[first..first + n];
                for &place in &continuous {
                    let numbers = &mut numbers[..rows.len()];
                    self.numbers[place].pick(rows, numbers);
                    ends[place] = numbers.iter().fold(ends[place], |(least, most), &x| (least.min(x), most.max(x)));
                }
            }
            Ok(())
        };
        let wider = |mut one: Vec<(f64, f64)>, other: Vec<(f64, f64)>| {
            one.iter_mut().zip(other).for_each(|(ends, more)| *ends = (ends.0.min(more.0), ends.1.max(more.1)));
            Ok(one)
        };
        let n_blocks = if continuous.is_empty() { 0 } else { self.group.len().div_ceil(ROWS) };
        let ends = reduce_blocks(n_blocks, control, empty, add, wider)?;
        Ok(ends
            .into_iter()
            .map(|ends| if ends.0 <= ends.1 { Range::of(ends) } else { Range::of((0.0, 1.0)) })
            .collect())
    }

    /// Brings the numbers of the `n` rows from `first` on into the cache, unless they lie far apart.
    pub(super) fn fetch(&self, first: usize, n: usize) {
        let rows = &self.group.rows()[first..first + n];
        let (start, end) = (rows[0], rows[n - 1] + 1);
        if (0..2 * n as i64).contains(&(end - start)) {
            let continuous = |place: usize| self.columns.found()[place].is_continuous();
            let wanted = self.numbers.iter().enumerate().filter(|(place, _)| continuous(*place));
            wanted.for_each(|(_, numbers)| numbers.fetch(start as usize..end as usize));
        }
    }

    /// Fills `to` with sixteen features of the rows from `first` on: 0 and 1, and numbers between -1 and 1.
    #[inline(always)]
    pub(super) fn load(&self, ranges: &[Range], place: usize, first: usize, to: &mut [Lanes]) {
        let tile = &self.tiles[place];
        let rows = &self.group.rows()[first..first + to.len()];
        for (to, &row) in to.iter_mut().zip(rows) {
            let bits = u32::from(self.columns.bits(row as usize, place) ^ tile.flip);
            for lane in 0..LANES {
                to[lane] = f64::from((bits >> lane) & 1);
            }
        }
        let mut numbers = [0.0; TILE];
        for &lane in &tile.continuous {
            let column = place * LANES + lane;
            let Range { centre, unit } = ranges[column];
            let numbers = &mut numbers[..rows.len()];
            self.numbers[column].pick(rows, numbers);
            for (to, number) in to.iter_mut().zip(numbers) {
                to[lane] = (*number - centre) * unit;
            }
        }
    }

    /// Estimated nanoseconds of [`sums`] on one thread.
    pub fn sums_work(n_rows: usize, n_features: usize) -> u64 {
        n_rows as u64 * n_features as u64
    }

    /// Estimated nanoseconds of [`super::gram::gram`] on one thread.
    pub fn gram_work(n_rows: usize, n_features: usize) -> u64 {
        (n_rows * n_features * (1 + n_features / 32)) as u64
    }
}

/// The number of bits before the point: the least e with |x| < 2^e, within bounds where 2^e is a normal number.
pub(super) fn exponent(x: f64) -> i32 {
    if x == 0.0 { 0 } else { libm::frexp(x).1.clamp(-1_000, 1_024) }
}

pub(super) fn power_of_two(exponent: i32) -> f64 {
    libm::ldexp(1.0, exponent)
}

/// Sums of the features of a group with their parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// The moments of all rows.
    pub all: [f64; MOMENTS],
    /// For every feature z: the sums of z r over parts r, of z^2 r, and of z r r' over pairs of parts. For 0 and 1 these
    /// are moments of the rows with 1; other features are standardised, with n - 1.
    pub of_features: Vec<[f64; SUMS]>,
    pub(super) ranges: Vec<Range>,
    pub(super) scaling: Vec<Scaling>,
}

/// z = (u - shift) / scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scaling {
    shift: f64,
    scale: f64,
}

/// Adds up the features of a group.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn sums(rows: &Rows<'_>, control: &Control) -> Result<Sums> {
    let instructions = InstructionSet::current()?;
    let n_tiles = rows.tiles.len();
    let ranges = rows.ranges(control)?;
    let add = |totals: &mut Vec<[[Exact; LANES]; TERMS]>, block: usize| {
        control.check()?;
        let mut sums = vec![[[[0.0; LANES]; 2]; TERMS]; n_tiles];
        instructions.run(BlockSums {
            rows,
            ranges: &ranges,
            range: block_of(block, rows.group.len()),
            sums: &mut sums,
        });
        for (total, [high, low]) in totals.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
            for lane in 0..LANES {
                total[lane].add([high[lane], low[lane]]);
            }
        }
        Ok(())
    };
    let merge = |mut one: Vec<[[Exact; LANES]; TERMS]>, other: Vec<[[Exact; LANES]; TERMS]>| {
        let more = other.as_flattened().as_flattened();
        one.as_flattened_mut().as_flattened_mut().iter_mut().zip(more).for_each(|(sum, more)| sum.merge(*more));
        Ok(one)
    };
    let empty = || vec![[[Exact::default(); LANES]; TERMS]; n_tiles];
    let totals = reduce_blocks(rows.group.len().div_ceil(ROWS), control, empty, add, merge)?;
    let all = moments(&rows.group, control)?;
    let mut made = Sums { all, of_features: Vec::new(), ranges, scaling: Vec::new() };
    for (column, found) in rows.columns.found().iter().enumerate() {
        let terms = std::array::from_fn(|k| totals[column / LANES][k][column % LANES].value());
        let scaling = if found.is_continuous() { Scaling::standard(&terms, all[0]) } else { Scaling::none() };
        made.of_features.push(scaling.apply(&terms, &all));
        made.scaling.push(scaling);
    }
    Ok(made)
}

impl Scaling {
    fn none() -> Self {
        Self { shift: 0.0, scale: 1.0 }
    }

    fn standard(terms: &[f64; TERMS], n: f64) -> Self {
        let shift = terms[0] / n;
        let variance = (terms[MOMENTS] - terms[0] * shift) / (n - 1.0).max(1.0);
        let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        Self { shift, scale }
    }

    pub(super) fn z(&self, u: f64) -> f64 {
        (u - self.shift) / self.scale
    }

    /// From sums of u to those of z.
    fn apply(&self, terms: &[f64; TERMS], all: &[f64; MOMENTS]) -> [f64; SUMS] {
        let Self { shift, scale } = *self;
        let first = |k: usize| (terms[k] - shift * all[k]) / scale;
        let second = |m: usize| (terms[MOMENTS + m] - shift * (2.0 * terms[m] - shift * all[m])) / (scale * scale);
        std::array::from_fn(|k| match k {
            k if k < PARTS => first(k),
            k if k < 2 * PARTS => second(k - PARTS),
            k => first(PRODUCT_OF[k - 2 * PARTS]),
        })
    }
}

/// The sums of both [`cut`] parts of all terms in a block.
pub(super) struct BlockSums<'a> {
    pub(super) rows: &'a Rows<'a>,
    pub(super) ranges: &'a [Range],
    pub(super) range: std::ops::Range<usize>,
    pub(super) sums: &'a mut [[[Lanes; 2]; TERMS]],
}

impl Task for BlockSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, ranges, range, sums } = self;
        let mut features = [[0.0; LANES]; TILE];
        let (mut moments, mut cuts) = ([[0.0; TILE]; MOMENTS], [[0.0; LANES]; TILE]);
        for first in range.clone().step_by(TILE) {
            let n = TILE.min(range.end - first);
            rows.fetch(first, n);
            for i in 0..n {
                for (k, moment) in rows.group.moments(first + i).into_iter().enumerate() {
                    let [high, low] = cut(moment);
                    (moments[k][i], cuts[i][k], cuts[i][MOMENTS + k]) = (moment, high, low);
                }
            }
            for (place, sums) in sums.iter_mut().enumerate() {
                rows.load(ranges, place, first, &mut features[..n]);
                if rows.tiles[place].continuous.is_empty() {
                    add_marked(&features[..n], &cuts[..n], sums);
                } else {
                    add_numbers(&mut features[..n], &moments, sums);
                }
            }
        }
        for (tile, sums) in rows.tiles.iter().zip(sums) {
            if tile.continuous.is_empty() {
                // The square of 0 and 1.
                sums.copy_within(..PARTS, MOMENTS);
            }
        }
    }
}

/// Adds up the moments of the rows that are marked: products of 0 and 1 with the parts of moments are exact.
#[inline(always)]
fn add_marked(marks: &[Lanes], cuts: &[Lanes], sums: &mut [[Lanes; 2]; TERMS]) {
    let mut found = [0.0; LANES * LANES];
    for strip in (0..2 * MOMENTS).step_by(STRIP) {
        add_products(cuts, strip, marks, &mut found[strip * LANES..], LANES);
    }
    let found = found.as_chunks::<LANES>().0;
    for k in 0..MOMENTS {
        for lane in 0..LANES {
            sums[k][0][lane] += found[k][lane];
            sums[k][1][lane] += found[MOMENTS + k][lane];
        }
    }
}

/// Adds up the products of numbers with the moments, and of their squares with the parts.
#[inline(always)]
fn add_numbers(numbers: &mut [Lanes], moments: &[[f64; TILE]; MOMENTS], sums: &mut [[Lanes; 2]; TERMS]) {
    for (moments, sums) in moments.iter().zip(&mut sums[..MOMENTS]) {
        add_multiples(numbers, moments, sums);
    }
    for numbers in &mut *numbers {
        for lane in 0..LANES {
            numbers[lane] *= numbers[lane];
        }
    }
    for (parts, sums) in moments[..PARTS].iter().zip(&mut sums[MOMENTS..]) {
        add_multiples(numbers, parts, sums);
    }
}

#[inline(always)]
fn add_multiples(numbers: &[Lanes], factors: &[f64], sums: &mut [Lanes; 2]) {
    let (mut highs, mut lows) = (sums[0], sums[1]);
    for (numbers, factor) in numbers.iter().zip(factors) {
        for lane in 0..LANES {
            let [high, low] = cut(numbers[lane] * factor);
            highs[lane] += high;
            lows[lane] += low;
        }
    }
    *sums = [highs, lows];
}

/// Adds the products of `STRIP` features from `strip` on with a tile of others to the rows of a matrix.
#[inline(always)]
pub(super) fn add_products(own: &[Lanes], strip: usize, others: &[Lanes], matrix: &mut [f64], width: usize) {
    let mut sums = [[0.0; LANES]; STRIP];
    for (one, other) in own.iter().zip(others) {
        for s in 0..STRIP {
            for lane in 0..LANES {
                sums[s][lane] = one[strip + s].mul_add(other[lane], sums[s][lane]);
            }
        }
    }
    for (s, sums) in sums.iter().enumerate() {
        for (entry, sum) in matrix[s * width..][..LANES].iter_mut().zip(sums) {
            *entry += sum;
        }
    }
}
