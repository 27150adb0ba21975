//! Sums over rows for the marginal scores of many features, and the joint law of the scores.
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
const TILE: usize = 128;
/// Features that are held against [`LANES`] others at a time.
const STRIP: usize = 4;
/// Bits of an influence value in [`gram`]: products of two of them are added up over [`ROWS`] without error.
const VALUE_BITS: i32 = 20;
/// Rounds a float below 2^51 to a whole number when added and taken away.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// A row with this share of a slope decides it alone: its residual is 0 but for rounding.
const WHOLE_LEVERAGE: f64 = 1.0 - 1e-8;
/// Sums of a feature in a pass: times the moments, and its square times the parts.
const TERMS: usize = MOMENTS + PARTS;
/// How many sums there are of each feature in the end.
pub const SUMS: usize = 2 * PARTS + PRODUCTS;

/// Sixteen features of a row.
type Lanes = [f64; LANES];

/// The rows of a group with their features.
pub struct Rows<'a> {
    columns: &'a Columns,
    numbers: &'a [&'a dyn Numbers],
    group: Group<'a>,
    tiles: Vec<Tile>,
}

/// Sixteen features.
#[derive(Debug, Clone, Default)]
struct Tile {
    /// Which bits are 0 for the value that counts as 1.
    flip: u16,
    /// Lanes of features with more than two values.
    continuous: Vec<usize>,
}

/// Where the values of a feature lie: `u = (x - centre) unit` is between -1 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
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
    fn fetch(&self, first: usize, n: usize) {
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
    fn load(&self, ranges: &[Range], place: usize, first: usize, to: &mut [Lanes]) {
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

    /// Estimated nanoseconds of [`gram`] on one thread.
    pub fn gram_work(n_rows: usize, n_features: usize) -> u64 {
        (n_rows * n_features * (1 + n_features / 32)) as u64
    }
}

/// The number of bits before the point: the least e with |x| < 2^e, within bounds where 2^e is a normal number.
fn exponent(x: f64) -> i32 {
    if x == 0.0 { 0 } else { libm::frexp(x).1.clamp(-1_000, 1_024) }
}

fn power_of_two(exponent: i32) -> f64 {
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
    ranges: Vec<Range>,
    scaling: Vec<Scaling>,
}

/// z = (u - shift) / scale.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scaling {
    shift: f64,
    scale: f64,
    /// The largest |z| that there can be.
    most: f64,
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
        Self { shift: 0.0, scale: 1.0, most: 1.0 }
    }

    fn standard(terms: &[f64; TERMS], n: f64) -> Self {
        let shift = terms[0] / n;
        let variance = (terms[MOMENTS] - terms[0] * shift) / (n - 1.0).max(1.0);
        let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        Self { shift, scale, most: (1.0 + shift.abs()) / scale }
    }

    fn z(&self, u: f64) -> f64 {
        (u - self.shift) / self.scale
    }

    /// From sums of u to those of z.
    fn apply(&self, terms: &[f64; TERMS], all: &[f64; MOMENTS]) -> [f64; SUMS] {
        let Self { shift, scale, .. } = *self;
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
struct BlockSums<'a> {
    rows: &'a Rows<'a>,
    ranges: &'a [Range],
    range: std::ops::Range<usize>,
    sums: &'a mut [[[Lanes; 2]; TERMS]],
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

/// The influence of a row with parts r on the score of a feature z: the sum over parts of
/// `(level + slope z) r`, and `curve z^2`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Influence {
    /// By part.
    pub level: [f64; PARTS],
    /// By part.
    pub slope: [f64; PARTS],
    /// Of the square of the feature.
    pub curve: f64,
}

impl Influence {
    /// More than its largest value.
    fn bound(&self, most: f64) -> f64 {
        let size = |parts: &[f64; PARTS]| parts.iter().map(|part| part.abs()).sum::<f64>();
        size(&self.level) + (size(&self.slope) + self.curve.abs() * most) * most
    }
}

/// What a slope of u, a sum of parts, adds to the influence of a row by its leverage (HC3): with the residual
/// `u - mean - slope z` and the leverage `1 / n + z^2 / spread`, `factor z residual leverage / (1 - leverage)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Leverage {
    /// The mean of u.
    pub mean: f64,
    /// The slope of u by z.
    pub slope: f64,
    /// What the slope's influence is multiplied by; 0 for features without a slope.
    pub factor: f64,
    /// The sum of z^2.
    pub spread: f64,
}

impl Leverage {
    #[inline(always)]
    fn more(&self, z: f64, u: f64, n: f64) -> f64 {
        let pull = 1.0 / n + z * z / self.spread;
        let residual = u - self.mean - self.slope * z;
        if pull < WHOLE_LEVERAGE { self.factor * z * residual * pull / (1.0 - pull) } else { 0.0 }
    }

    /// More than the largest of them, for |z| up to `most` and |u| up to `u`.
    fn bound(&self, most: f64, u: f64, n: f64) -> f64 {
        let pull = (1.0 / n + most * most / self.spread).min(WHOLE_LEVERAGE);
        let residual = u + self.mean.abs() + self.slope.abs() * most;
        self.factor.abs() * most * residual * pull / (1.0 - pull)
    }
}

/// What the influence values of all features come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    /// The sums of the influences on two features, each rounded to 2^-20 of a bound, feature by feature.
    pub products: Vec<f64>,
    /// For features with a slope: the sum of the square of its influence with leverage.
    pub squares: Vec<f64>,
}

/// Adds up the products of the influence values of all features.
///
/// # Errors
/// [`Error::Argument`] when a list is of another number of features, [`Error::Cancelled`].
pub fn gram(
    rows: &Rows<'_>,
    sums: &Sums,
    influences: &[Influence],
    parts_of_u: [f64; PARTS],
    leverages: &[Leverage],
    control: &Control,
) -> Result<Gram> {
    let p = rows.numbers.len();
    if influences.len() != p || leverages.len() != p || sums.scaling.len() != p {
        let given = format!("of {} and {} features", influences.len(), leverages.len());
        return Err(Error::argument("influences", given, &format!("of {p}")));
    }
    let instructions = InstructionSet::current()?;
    let pass = &Pass::new(rows, sums, influences, parts_of_u, leverages);
    let add = |state: &mut State, block: usize| {
        control.check()?;
        instructions.run(BlockGram { pass, range: block_of(block, rows.group.len()), state });
        state.take_block();
        Ok(())
    };
    let total = reduce_blocks(rows.group.len().div_ceil(ROWS), control, || State::new(pass), add, State::merge)?;
    // Only tiles on and above the diagonal were added up.
    let entry = |j: usize, k: usize| {
        let (j, k) = if j / LANES <= k / LANES { (j, k) } else { (k, j) };
        total.products[j * pass.width + k] as f64 / pass.units[j] / pass.units[k]
    };
    let products = (0..p).flat_map(|j| (0..p).map(move |k| (j, k))).map(|(j, k)| entry(j, k)).collect();
    let square = |(slope, [high, low]): (&Slope, &[Exact; 2])| {
        (slope.column, (high.value() + low.value() * REST) / (slope.unit * slope.unit))
    };
    let mut squares = vec![0.0; p];
    pass.slopes.iter().zip(&total.squares).map(square).for_each(|(column, sum)| squares[column] = sum);
    Ok(Gram { products, squares })
}

/// What [`cut`] leaves over is below this: 2^-80.
const REST: f64 = 1.0 / (1u128 << 80) as f64;

/// The influences of sixteen features, as whole numbers: levels by part, slopes by part, curve.
type TileInfluence = [Lanes; 2 * PARTS + 1];

/// A feature whose square is added up with leverage.
struct Slope {
    column: usize,
    influence: Influence,
    leverage: Leverage,
    /// A power of two that takes the influence below 1.
    unit: f64,
}

struct Pass<'a> {
    rows: &'a Rows<'a>,
    ranges: &'a [Range],
    scaling: &'a [Scaling],
    influences: Vec<TileInfluence>,
    /// What influences are multiplied by to be rounded to whole numbers.
    units: Vec<f64>,
    parts_of_u: [f64; PARTS],
    slopes: Vec<Slope>,
    n: f64,
    width: usize,
}

impl<'a> Pass<'a> {
    fn new(
        rows: &'a Rows<'a>,
        sums: &'a Sums,
        influences: &[Influence],
        parts_of_u: [f64; PARTS],
        leverages: &[Leverage],
    ) -> Self {
        let (scaling, n) = (&sums.scaling, sums.all[0]);
        let bounds: Vec<f64> = influences.iter().zip(scaling).map(|(one, scaling)| one.bound(scaling.most)).collect();
        let units: Vec<f64> = bounds.iter().map(|&bound| power_of_two(VALUE_BITS - exponent(bound))).collect();
        let at = |feature: usize, c: usize| {
            influences.get(feature).map_or(0.0, |one| match c {
                c if c < PARTS => one.level[c] * units[feature],
                c if c < 2 * PARTS => one.slope[c - PARTS] * units[feature],
                _ => one.curve * units[feature],
            })
        };
        let tile = |tile: usize| std::array::from_fn(|c| std::array::from_fn(|lane| at(tile * LANES + lane, c)));
        let n_tiles = rows.tiles.len();
        let most_u: f64 = parts_of_u.iter().map(|part| part.abs()).sum();
        let slopes = leverages.iter().enumerate().filter(|(_, leverage)| leverage.factor != 0.0);
        let slopes = slopes.map(|(column, &leverage)| {
            let bound = bounds[column] + leverage.bound(scaling[column].most, most_u, n);
            Slope { column, influence: influences[column], leverage, unit: power_of_two(-exponent(bound) - 1) }
        });
        Self {
            rows,
            ranges: &sums.ranges,
            scaling,
            influences: (0..n_tiles).map(tile).collect(),
            slopes: slopes.collect(),
            units,
            parts_of_u,
            n,
            width: n_tiles * LANES,
        }
    }

    /// Adds the squares of influences with leverage of one feature, z being given.
    #[inline(always)]
    fn add_squares(&self, slope: &Slope, first: usize, features: &[Lanes], sums: &mut [[f64; 2]; 2]) {
        let one = &slope.influence;
        for (i, z) in (first..).zip(features) {
            let z = z[slope.column % LANES];
            let parts = self.rows.group.parts(i);
            let dot = |weights: &[f64; PARTS]| weights.iter().zip(&parts).map(|(w, part)| w * part).sum::<f64>();
            let influence = dot(&one.level) + (dot(&one.slope) + one.curve * z) * z;
            let total = (influence + slope.leverage.more(z, dot(&self.parts_of_u), self.n)) * slope.unit;
            let square = total * total;
            let [high, low] = cut(square);
            let [next, least] = cut((square - high - low) / REST);
            sums[0] = [sums[0][0] + high, sums[0][1] + low];
            sums[1] = [sums[1][0] + next, sums[1][1] + least];
        }
    }
}

/// What a thread has.
struct State {
    /// Tile by tile the features, and then the influences, of some rows.
    values: Vec<Lanes>,
    /// Of the block at hand.
    block: Vec<f64>,
    block_squares: Vec<[[f64; 2]; 2]>,
    products: Vec<i128>,
    squares: Vec<[Exact; 2]>,
}

impl State {
    fn new(pass: &Pass<'_>) -> Self {
        let (size, n_slopes) = (pass.width * pass.width, pass.slopes.len());
        Self {
            values: vec![[0.0; LANES]; pass.influences.len() * TILE],
            block: vec![0.0; size],
            block_squares: vec![[[0.0; 2]; 2]; n_slopes],
            products: vec![0; size],
            squares: vec![[Exact::default(); 2]; n_slopes],
        }
    }

    /// Moves the sums of a block to the totals.
    fn take_block(&mut self) {
        for (total, sum) in self.products.iter_mut().zip(&mut self.block) {
            *total += i128::from(std::mem::take(sum) as i64);
        }
        for (total, sums) in self.squares.iter_mut().zip(&mut self.block_squares) {
            let sums = std::mem::take(sums);
            total[0].add(sums[0]);
            total[1].add(sums[1]);
        }
    }

    #[allow(clippy::unnecessary_wraps)]
    fn merge(mut self, other: Self) -> Result<Self> {
        self.products.iter_mut().zip(other.products).for_each(|(sum, more)| *sum += more);
        for (sum, more) in self.squares.iter_mut().zip(other.squares) {
            sum[0].merge(more[0]);
            sum[1].merge(more[1]);
        }
        Ok(self)
    }
}

struct BlockGram<'a> {
    pass: &'a Pass<'a>,
    range: std::ops::Range<usize>,
    state: &'a mut State,
}

impl Task for BlockGram<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { pass, range, state } = self;
        let mut parts = [[0.0; PARTS]; TILE];
        for first in range.clone().step_by(TILE) {
            let n = TILE.min(range.end - first);
            pass.rows.fetch(first, n);
            for (i, parts) in parts[..n].iter_mut().enumerate() {
                *parts = pass.rows.group.parts(first + i);
            }
            for (place, influence) in pass.influences.iter().enumerate() {
                let values = &mut state.values[place * TILE..][..n];
                pass.rows.load(pass.ranges, place, first, values);
                for &lane in &pass.rows.tiles[place].continuous {
                    let scaling = pass.scaling[place * LANES + lane];
                    values.iter_mut().for_each(|values| values[lane] = scaling.z(values[lane]));
                }
                for (slope, sums) in pass.slopes.iter().zip(&mut state.block_squares) {
                    if slope.column / LANES == place {
                        pass.add_squares(slope, first, values, sums);
                    }
                }
                for (z, parts) in values.iter_mut().zip(&parts) {
                    *z = influence_of(influence, parts, z);
                }
            }
            for tile in 0..pass.influences.len() {
                let own = &state.values[tile * TILE..][..n];
                for other in tile..pass.influences.len() {
                    let others = &state.values[other * TILE..][..n];
                    for strip in (0..LANES).step_by(STRIP) {
                        let at = (tile * LANES + strip) * pass.width + other * LANES;
                        add_products(own, strip, others, &mut state.block[at..], pass.width);
                    }
                }
            }
        }
    }
}

/// Influences as whole numbers.
#[inline(always)]
fn influence_of(influence: &TileInfluence, parts: &[f64; PARTS], z: &Lanes) -> Lanes {
    let mut value = [0.0; LANES];
    for lane in 0..LANES {
        let mut level = influence[0][lane];
        let mut slope = influence[PARTS][lane];
        for m in 1..PARTS {
            level = influence[m][lane].mul_add(parts[m], level);
            slope = influence[PARTS + m][lane].mul_add(parts[m], slope);
        }
        let exact = influence[2 * PARTS][lane].mul_add(z[lane], slope).mul_add(z[lane], level);
        value[lane] = (exact + ROUNDER) - ROUNDER;
    }
    value
}

/// Adds the products of `STRIP` features from `strip` on with a tile of others to the rows of a matrix.
#[inline(always)]
fn add_products(own: &[Lanes], strip: usize, others: &[Lanes], matrix: &mut [f64], width: usize) {
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

#[cfg(test)]
#[path = "marginal_tests.rs"]
mod tests;
