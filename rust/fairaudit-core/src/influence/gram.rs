//! The joint law of the marginal scores of many features: products of their influence values.
//!
//! Influence values are rounded to 2^-20 of the largest one of their feature, so that their products are added up
//! without error, in whatever order: correlations are right to 1e-6.

use super::exact::{Exact, ROWS, cut};
use super::marginal::{Lanes, Range, Rows, STRIP, Scaling, Sums, TILE, add_products, exponent, power_of_two};
use super::moments::{PARTS, block_of};
use crate::error::{Error, Result};
use crate::parallel::{Control, reduce_blocks};
use crate::simd::{InstructionSet, LANES, Task};

/// Bits of an influence value: products of two of them are added up over [`ROWS`] without error.
const VALUE_BITS: i32 = 20;
/// Rounds a float below 2^51 to a whole number when added and taken away.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

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

/// What the influence values of all features come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    /// The sums of the influences on two features, each rounded to 2^-20 of the largest, feature by feature.
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
    let n_blocks = rows.group.len().div_ceil(ROWS);
    let pass = &mut Pass::new(rows, sums, influences, parts_of_u, leverages);
    let look = |most: &mut Vec<[Lanes; 2]>, block: usize| {
        control.check()?;
        instructions.run(BlockMost { pass, range: block_of(block, rows.group.len()), most });
        Ok(())
    };
    let empty = || vec![[[0.0; LANES]; 2]; rows.tiles.len()];
    pass.units = units(&reduce_blocks(n_blocks, control, empty, look, larger)?);
    let pass = &*pass;
    let add = |state: &mut State, block: usize| {
        control.check()?;
        instructions.run(BlockGram { pass, range: block_of(block, rows.group.len()), state });
        state.take_block();
        Ok(())
    };
    let total = reduce_blocks(n_blocks, control, || State::new(pass), add, State::merge)?;
    let unit = |j: usize, of: usize| pass.units[j / LANES][of][j % LANES];
    // Only tiles on and above the diagonal were added up.
    let entry = |j: usize, k: usize| {
        let (j, k) = if j / LANES <= k / LANES { (j, k) } else { (k, j) };
        total.products[j * pass.width + k] as f64 / unit(j, 0) / unit(k, 0)
    };
    let products = (0..p).flat_map(|j| (0..p).map(move |k| (j, k))).map(|(j, k)| entry(j, k)).collect();
    let square = |j: usize| total.squares[j / LANES][j % LANES].value() / unit(j, 1) / unit(j, 1);
    let squares = (0..p).map(|j| if leverages[j].factor == 0.0 { 0.0 } else { square(j) }).collect();
    Ok(Gram { products, squares })
}

/// The larger ones of each.
#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)]
fn larger(mut one: Vec<[Lanes; 2]>, other: Vec<[Lanes; 2]>) -> Result<Vec<[Lanes; 2]>> {
    let more = other.as_flattened().as_flattened();
    one.as_flattened_mut().as_flattened_mut().iter_mut().zip(more).for_each(|(size, more)| *size = size.max(*more));
    Ok(one)
}

/// What the influences of a tile are multiplied by to be rounded to whole numbers, and to be at most 1 with leverage,
/// by the largest ones: powers of two.
fn units(most: &[[Lanes; 2]]) -> Vec<[Lanes; 2]> {
    let unit = |bits: i32| move |most: f64| power_of_two((bits - exponent(most)).min(1_000));
    most.iter().map(|[plain, total]| [plain.map(unit(VALUE_BITS)), total.map(unit(0))]).collect()
}

/// The influences of sixteen features: levels by part, slopes by part, curve.
type TileInfluence = [Lanes; 2 * PARTS + 1];

/// The leverages of sixteen features: mean and slope of u, factor, and the inverse of the spread.
type TileLeverage = [Lanes; 4];

struct Pass<'a> {
    rows: &'a Rows<'a>,
    ranges: &'a [Range],
    scaling: &'a [Scaling],
    influences: Vec<TileInfluence>,
    /// None where no feature has a slope.
    leverages: Vec<Option<TileLeverage>>,
    parts_of_u: [f64; PARTS],
    units: Vec<[Lanes; 2]>,
    n: f64,
    width: usize,
}

/// `of(feature, c)` of the features of a tile, 0 beyond the last one.
fn lanes<const N: usize>(tile: usize, p: usize, of: impl Fn(usize, usize) -> f64) -> [Lanes; N] {
    let at = |feature: usize, c: usize| if feature < p { of(feature, c) } else { 0.0 };
    std::array::from_fn(|c| std::array::from_fn(|lane| at(tile * LANES + lane, c)))
}

impl<'a> Pass<'a> {
    fn new(
        rows: &'a Rows<'a>,
        sums: &'a Sums,
        influences: &[Influence],
        parts_of_u: [f64; PARTS],
        leverages: &[Leverage],
    ) -> Self {
        let (p, n_tiles) = (influences.len(), rows.tiles.len());
        let influence = |feature: usize, c: usize| {
            let one = &influences[feature];
            match c {
                c if c < PARTS => one.level[c],
                c if c < 2 * PARTS => one.slope[c - PARTS],
                _ => one.curve,
            }
        };
        let leverage = |feature: usize, c: usize| {
            let Leverage { mean, slope, factor, spread } = leverages[feature];
            if factor == 0.0 { 0.0 } else { [mean, slope, factor, 1.0 / spread][c] }
        };
        let slopes = |tile: usize| leverages.iter().skip(tile * LANES).take(LANES).any(|one| one.factor != 0.0);
        Self {
            rows,
            ranges: &sums.ranges,
            scaling: &sums.scaling,
            influences: (0..n_tiles).map(|tile| lanes(tile, p, influence)).collect(),
            leverages: (0..n_tiles).map(|tile| slopes(tile).then(|| lanes(tile, p, leverage))).collect(),
            parts_of_u,
            units: Vec::new(),
            n: sums.all[0],
            width: n_tiles * LANES,
        }
    }

    /// Fills `to` with the features of a tile as scores take them.
    #[inline(always)]
    fn load(&self, place: usize, first: usize, to: &mut [Lanes]) {
        self.rows.load(self.ranges, place, first, to);
        for &lane in &self.rows.tiles[place].continuous {
            let scaling = self.scaling[place * LANES + lane];
            for to in &mut *to {
                to[lane] = scaling.z(to[lane]);
            }
        }
    }

    /// What leverage adds to the influence of a row on the features of a tile.
    #[inline(always)]
    fn more(&self, [mean, slope, factor, share]: &TileLeverage, parts: &[f64; PARTS], z: &Lanes) -> Lanes {
        let u: f64 = (0..PARTS).map(|m| self.parts_of_u[m] * parts[m]).sum();
        let least = 1.0 / self.n;
        let mut more = [0.0; LANES];
        for lane in 0..LANES {
            let z = z[lane];
            let pull = least + z * z * share[lane];
            let residual = u - mean[lane] - slope[lane] * z;
            let found = factor[lane] * z * residual * pull / (1.0 - pull);
            // A row that decides the slope alone has leverage 1: its residual is 0 but for rounding.
            more[lane] = if pull < 1.0 { found } else { 0.0 };
        }
        more
    }
}

/// The largest influences, without and with leverage, of the features of every tile.
struct BlockMost<'a> {
    pass: &'a Pass<'a>,
    range: std::ops::Range<usize>,
    most: &'a mut [[Lanes; 2]],
}

impl Task for BlockMost<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { pass, range, most } = self;
        let (mut parts, mut features) = ([[0.0; PARTS]; TILE], [[0.0; LANES]; TILE]);
        for first in range.clone().step_by(TILE) {
            let n = TILE.min(range.end - first);
            pass.rows.fetch(first, n);
            for (i, parts) in parts[..n].iter_mut().enumerate() {
                *parts = pass.rows.group.parts(first + i);
            }
            for (place, [plain, total]) in most.iter_mut().enumerate() {
                pass.load(place, first, &mut features[..n]);
                let influence = &pass.influences[place];
                for (z, parts) in features[..n].iter().zip(&parts) {
                    let value = influence_of(influence, parts, z);
                    enlarge(plain, &value);
                    if let Some(leverage) = &pass.leverages[place] {
                        let more = pass.more(leverage, parts, z);
                        enlarge(total, &std::array::from_fn(|lane| value[lane] + more[lane]));
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn enlarge(most: &mut Lanes, values: &Lanes) {
    for lane in 0..LANES {
        let size = values[lane].abs();
        most[lane] = if size > most[lane] { size } else { most[lane] };
    }
}

/// What a thread has.
struct State {
    /// Tile by tile the features, and then the influences, of some rows.
    values: Vec<Lanes>,
    /// Of the block at hand: products, and both parts of squares by tile.
    block: Vec<f64>,
    block_squares: Vec<[Lanes; 2]>,
    products: Vec<i128>,
    squares: Vec<[Exact; LANES]>,
}

impl State {
    fn new(pass: &Pass<'_>) -> Self {
        let (size, n_tiles) = (pass.width * pass.width, pass.influences.len());
        Self {
            values: vec![[0.0; LANES]; n_tiles * TILE],
            block: vec![0.0; size],
            block_squares: vec![[[0.0; LANES]; 2]; n_tiles],
            products: vec![0; size],
            squares: vec![[Exact::default(); LANES]; n_tiles],
        }
    }

    /// Moves the sums of a block to the totals.
    fn take_block(&mut self) {
        for (total, sum) in self.products.iter_mut().zip(&mut self.block) {
            *total += i128::from(std::mem::take(sum) as i64);
        }
        for (total, sums) in self.squares.iter_mut().zip(&mut self.block_squares) {
            let [high, low] = std::mem::take(sums);
            for lane in 0..LANES {
                total[lane].add([high[lane], low[lane]]);
            }
        }
    }

    #[allow(clippy::unnecessary_wraps)]
    fn merge(mut self, other: Self) -> Result<Self> {
        self.products.iter_mut().zip(other.products).for_each(|(sum, more)| *sum += more);
        let squares = self.squares.as_flattened_mut().iter_mut();
        squares.zip(other.squares.as_flattened()).for_each(|(sum, more)| sum.merge(*more));
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
                pass.load(place, first, values);
                let [unit, square_unit] = &pass.units[place];
                for (z, parts) in values.iter_mut().zip(&parts) {
                    let value = influence_of(influence, parts, z);
                    if let Some(leverage) = &pass.leverages[place] {
                        let more = pass.more(leverage, parts, z);
                        add_squares(&value, &more, square_unit, &mut state.block_squares[place]);
                    }
                    for lane in 0..LANES {
                        z[lane] = (value[lane] * unit[lane] + ROUNDER) - ROUNDER;
                    }
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

#[inline(always)]
fn add_squares(value: &Lanes, more: &Lanes, unit: &Lanes, [highs, lows]: &mut [Lanes; 2]) {
    for lane in 0..LANES {
        let total = (value[lane] + more[lane]) * unit[lane];
        let [high, low] = cut(total * total);
        highs[lane] += high;
        lows[lane] += low;
    }
}

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
        value[lane] = influence[2 * PARTS][lane].mul_add(z[lane], slope).mul_add(z[lane], level);
    }
    value
}

#[cfg(test)]
#[path = "gram_tests.rs"]
mod tests;
