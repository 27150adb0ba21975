//! Sums over rows for the marginal scores of many features, and the joint law of the scores.
//!
//! Rows come in an order of their own, see [`crate::tabulate::distinct`], are cut into blocks of fixed size, and what
//! the blocks have is added up in their order: the bits do not depend on threads.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, LANES, Task};

/// Rows of a block, where there are few.
const BLOCK: usize = 1 << 12;
/// Blocks that rows are cut into at most: each has sums of its own.
const MOST_BLOCKS: usize = 256;
/// Rows whose influence values are in the cache at a time.
const TILE: usize = 128;
/// Features that are held against [`LANES`] others at a time.
const STRIP: usize = 4;

/// Numbers of a row that metrics are made of, the constant 1 first: for rates 1, label, score and their product.
pub const PARTS: usize = 4;
/// Products of two of them.
pub const PRODUCTS: usize = PARTS * (PARTS + 1) / 2;
/// How many [`sums`] there are of each feature.
pub const SUMS: usize = 2 * PARTS + PRODUCTS;

/// Rows of the target group, one for each kind of row.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Row by row.
    features: &'a [f64],
    n_features: usize,
    /// The parts but for the constant, row by row.
    parts: &'a [f64],
    /// The sum of the weights of the rows of this kind, and that of their squares.
    weight: &'a [f64],
    square: &'a [f64],
}

impl<'a> Rows<'a> {
    /// Rows by their features, their parts but for the constant 1, and their weights.
    ///
    /// # Errors
    /// [`Error::Argument`] when the columns differ in length.
    pub fn new(features: &'a [f64], parts: &'a [f64], weight: &'a [f64], square: &'a [f64]) -> Result<Self> {
        let n = weight.len();
        let whole = n > 0 && !features.is_empty() && features.len().is_multiple_of(n);
        if !whole || square.len() != n || parts.len() != (PARTS - 1) * n {
            let given = format!("{} numbers for {n} rows", features.len());
            return Err(Error::argument("features", given, "columns of one length, and one feature at least"));
        }
        Ok(Self { features, n_features: features.len() / n, parts, weight, square })
    }

    fn len(&self) -> usize {
        self.weight.len()
    }

    /// Rows of a block: it depends on the number of rows alone.
    fn block(&self) -> usize {
        BLOCK.max(self.len().div_ceil(MOST_BLOCKS))
    }

    #[inline(always)]
    fn parts(&self, row: usize) -> [f64; PARTS] {
        let given = &self.parts[row * (PARTS - 1)..][..PARTS - 1];
        [1.0, given[0], given[1], given[2]]
    }

    #[inline(always)]
    fn features(&self, row: usize) -> &'a [f64] {
        &self.features[row * self.n_features..][..self.n_features]
    }

    /// Estimated nanoseconds of [`sums`] on one thread.
    pub fn sums_work(&self) -> u64 {
        2 * self.features.len() as u64
    }

    /// Estimated nanoseconds of [`gram`] on one thread.
    pub fn gram_work(&self) -> u64 {
        self.features.len() as u64 * (2 + self.n_features as u64 / 32)
    }
}

/// Where features lie and how far they spread: scores work on z = (x - shift) / scale.
#[derive(Debug, Clone, Copy)]
pub struct Scaling<'a> {
    /// Taken away from each feature.
    pub shift: &'a [f64],
    /// What each feature is divided by.
    pub scale: &'a [f64],
}

/// For every feature z and the parts r of the rows, with weights w and squared weights q: the sums of w z r, of w z^2 r,
/// and of q z r r' for each pair of parts. For an indicator z these are moments of the rows that it marks.
///
/// # Errors
/// [`Error::Argument`] when the scaling is of another number of features, [`Error::Cancelled`].
pub fn sums(rows: &Rows<'_>, scaling: Scaling<'_>, control: &Control) -> Result<Vec<[f64; SUMS]>> {
    let n_tiles = tiles(rows, scaling)?;
    let instructions = InstructionSet::current()?;
    let blocks = map_blocks(rows.len(), rows.block(), control, |range| {
        let mut sums = vec![[[0.0; LANES]; SUMS]; n_tiles];
        instructions.run(BlockSums { rows, scaling, range, sums: &mut sums });
        Ok(sums)
    })?;
    let mut total = vec![[[0.0; LANES]; SUMS]; n_tiles];
    for block in &blocks {
        add(total.as_flattened_mut().as_flattened_mut(), block.as_flattened().as_flattened());
    }
    let of_feature = |j: usize| std::array::from_fn(|s| total[j / LANES][s][j % LANES]);
    Ok((0..rows.n_features).map(of_feature).collect())
}

fn add(total: &mut [f64], more: &[f64]) {
    total.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

fn tiles(rows: &Rows<'_>, scaling: Scaling<'_>) -> Result<usize> {
    if scaling.shift.len() != rows.n_features || scaling.scale.len() != rows.n_features {
        let given = format!("of {} features", scaling.shift.len());
        return Err(Error::argument("scaling", given, &format!("of {}", rows.n_features)));
    }
    Ok(rows.n_features.div_ceil(LANES))
}

/// The scaled features of a tile, 0 beyond the last one.
#[inline(always)]
fn scaled(features: &[f64], scaling: Scaling<'_>, first: usize) -> [f64; LANES] {
    let mut z = [0.0; LANES];
    let last = features.len().min(first + LANES);
    let (x, shift, scale) = (&features[first..last], &scaling.shift[first..last], &scaling.scale[first..last]);
    for lane in 0..x.len() {
        z[lane] = (x[lane] - shift[lane]) / scale[lane];
    }
    z
}

struct BlockSums<'a> {
    rows: &'a Rows<'a>,
    scaling: Scaling<'a>,
    range: Range<usize>,
    sums: &'a mut [[[f64; LANES]; SUMS]],
}

impl Task for BlockSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (tile, sums) in self.sums.iter_mut().enumerate() {
            for i in self.range.clone() {
                let (w, q, parts) = (self.rows.weight[i], self.rows.square[i], self.rows.parts(i));
                let z = scaled(self.rows.features(i), self.scaling, tile * LANES);
                let mut twice = z;
                for lane in 0..LANES {
                    twice[lane] *= z[lane];
                }
                let mut next = 2 * PARTS;
                for (m, &part) in parts.iter().enumerate() {
                    add_multiple(&z, w * part, &mut sums[m]);
                    add_multiple(&twice, w * part, &mut sums[PARTS + m]);
                    for &other in &parts[m..] {
                        add_multiple(&z, q * part * other, &mut sums[next]);
                        next += 1;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_multiple(values: &[f64; LANES], factor: f64, sums: &mut [f64; LANES]) {
    for lane in 0..LANES {
        sums[lane] = values[lane].mul_add(factor, sums[lane]);
    }
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

/// What a slope of u, a sum of parts, adds to the influence of a row by its leverage (HC3): with the residual
/// `u - mean - slope z` and the leverage `weight (1 / total + z^2 / spread)`,
/// `factor z residual leverage / (1 - leverage)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Leverage {
    /// The mean of u.
    pub mean: f64,
    /// The slope of u by z.
    pub slope: f64,
    /// What the slope's influence is multiplied by; 0 for features without a slope.
    pub factor: f64,
    /// The sum of weight times z^2.
    pub spread: f64,
}

/// What the influence values of all features come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    /// The sums of squared weight times the influences on two features, feature by feature.
    pub products: Vec<f64>,
    /// For features with a slope: the same of its square, with leverage.
    pub squares: Vec<f64>,
}

/// Adds up the products of the influence values of all features.
///
/// # Errors
/// [`Error::Argument`] when a list is of another number of features, [`Error::Cancelled`].
pub fn gram(
    rows: &Rows<'_>,
    scaling: Scaling<'_>,
    influences: &[Influence],
    parts_of_u: [f64; PARTS],
    leverages: &[Leverage],
    control: &Control,
) -> Result<Gram> {
    let p = rows.n_features;
    let n_tiles = tiles(rows, scaling)?;
    if influences.len() != p || leverages.len() != p {
        let given = format!("of {} and {} features", influences.len(), leverages.len());
        return Err(Error::argument("influences", given, &format!("of {p}")));
    }
    let instructions = InstructionSet::current()?;
    let width = n_tiles * LANES;
    let total_weight = rows.weight.iter().sum();
    let influences = &by_tile(influences, n_tiles);
    let pass = Pass { rows, scaling, influences, parts_of_u, leverages, total_weight, width };
    let empty = || Gram { products: vec![0.0; width * width], squares: vec![0.0; p] };
    let blocks = map_blocks(rows.len(), rows.block(), control, |range| {
        let mut sums = empty();
        instructions.run(BlockGram { pass: &pass, range, sums: &mut sums });
        Ok(sums)
    })?;
    let mut total = empty();
    for block in &blocks {
        add(&mut total.products, &block.products);
        add(&mut total.squares, &block.squares);
    }
    // Only tiles on and above the diagonal were added up.
    let entry = |j: usize, k: usize| {
        let (j, k) = if j / LANES <= k / LANES { (j, k) } else { (k, j) };
        total.products[j * width + k]
    };
    let products = (0..p).flat_map(|j| (0..p).map(move |k| (j, k))).map(|(j, k)| entry(j, k)).collect();
    Ok(Gram { products, squares: total.squares })
}

/// The influences of a tile of features: levels by part, slopes by part, curve.
type TileInfluence = [[f64; LANES]; 2 * PARTS + 1];

fn by_tile(influences: &[Influence], n_tiles: usize) -> Vec<TileInfluence> {
    let at = |feature: usize, c: usize| {
        influences.get(feature).map_or(0.0, |one| match c {
            c if c < PARTS => one.level[c],
            c if c < 2 * PARTS => one.slope[c - PARTS],
            _ => one.curve,
        })
    };
    let tile = |tile: usize| std::array::from_fn(|c| std::array::from_fn(|lane| at(tile * LANES + lane, c)));
    (0..n_tiles).map(tile).collect()
}

#[derive(Clone, Copy)]
struct Pass<'a> {
    rows: &'a Rows<'a>,
    scaling: Scaling<'a>,
    influences: &'a [TileInfluence],
    parts_of_u: [f64; PARTS],
    leverages: &'a [Leverage],
    total_weight: f64,
    width: usize,
}

struct BlockGram<'a> {
    pass: &'a Pass<'a>,
    range: Range<usize>,
    sums: &'a mut Gram,
}

impl Task for BlockGram<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let pass = self.pass;
        // Tile by tile the influence of some rows, and the same times the squared weight.
        let mut plain = vec![[0.0; LANES]; pass.influences.len() * TILE];
        let mut weighted = plain.clone();
        for first in self.range.clone().step_by(TILE) {
            let last = self.range.end.min(first + TILE);
            for i in first..last {
                let parts = pass.rows.parts(i);
                for (tile, influence) in pass.influences.iter().enumerate() {
                    let z = scaled(pass.rows.features(i), pass.scaling, tile * LANES);
                    let value = influence_of(influence, &parts, &z);
                    plain[tile * TILE + i - first] = value;
                    weighted[tile * TILE + i - first] = value.map(|value| pass.rows.square[i] * value);
                }
            }
            for (j, leverage) in pass.leverages.iter().enumerate() {
                if leverage.factor != 0.0 {
                    let influence = &plain[j / LANES * TILE..][..last - first];
                    self.sums.squares[j] += pass.slope_squares(j, leverage, first, influence);
                }
            }
            for tile in 0..pass.influences.len() {
                let own = &weighted[tile * TILE..][..last - first];
                for other in tile..pass.influences.len() {
                    let others = &plain[other * TILE..][..last - first];
                    for strip in (0..LANES).step_by(STRIP) {
                        let at = (tile * LANES + strip) * pass.width + other * LANES;
                        add_products(own, strip, others, &mut self.sums.products[at..], pass.width);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn influence_of(influence: &TileInfluence, parts: &[f64; PARTS], z: &[f64; LANES]) -> [f64; LANES] {
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

/// Adds the products of `STRIP` features from `strip` on with a tile of others to the rows of a matrix.
#[inline(always)]
fn add_products(own: &[[f64; LANES]], strip: usize, others: &[[f64; LANES]], matrix: &mut [f64], width: usize) {
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

impl Pass<'_> {
    /// The sum of squared weight times the square of one feature's influence with leverage, over some rows.
    #[inline(always)]
    fn slope_squares(&self, feature: usize, leverage: &Leverage, first: usize, influence: &[[f64; LANES]]) -> f64 {
        let mut sum = 0.0;
        for (i, influence) in (first..).zip(influence) {
            let x = self.rows.features(i)[feature];
            let z = (x - self.scaling.shift[feature]) / self.scaling.scale[feature];
            let (weight, square) = (self.rows.weight[i], self.rows.square[i]);
            // The weight of one row of this kind.
            let own = if weight > 0.0 { square / weight } else { 0.0 };
            let pull = own * (1.0 / self.total_weight + z * z / leverage.spread);
            let u: f64 = self.rows.parts(i).iter().zip(self.parts_of_u).map(|(part, share)| part * share).sum();
            let residual = u - leverage.mean - leverage.slope * z;
            // A row that decides the slope alone has leverage 1: its residual is 0 but for rounding.
            let more = if pull < 1.0 { leverage.factor * z * residual * pull / (1.0 - pull) } else { 0.0 };
            let total = influence[feature % LANES] + more;
            sum += square * total * total;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, Stream};

    struct Data {
        features: Vec<f64>,
        parts: Vec<f64>,
        weight: Vec<f64>,
        square: Vec<f64>,
        shift: Vec<f64>,
        scale: Vec<f64>,
        n: usize,
        p: usize,
    }

    impl Data {
        fn new(n: usize, p: usize) -> Self {
            let mut stream = Stream::new(3, Domain::Simulation, 0, 0, 0);
            let mut column = |n: usize| (0..n).map(|_| stream.uniform()).collect::<Vec<_>>();
            let (features, parts) = (column(n * p), column(3 * n));
            let (weight, square) = (column(n), column(n));
            Self { features, parts, weight, square, shift: vec![0.3; p], scale: vec![0.7; p], n, p }
        }

        fn rows(&self) -> Rows<'_> {
            Rows::new(&self.features, &self.parts, &self.weight, &self.square).unwrap()
        }

        fn scaling(&self) -> Scaling<'_> {
            Scaling { shift: &self.shift, scale: &self.scale }
        }

        fn z(&self, i: usize, j: usize) -> f64 {
            (self.features[i * self.p + j] - 0.3) / 0.7
        }

        fn parts(&self, i: usize) -> [f64; PARTS] {
            self.rows().parts(i)
        }

        fn sum(&self, term: impl Fn(usize) -> f64) -> f64 {
            (0..self.n).map(term).sum()
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} is not {expected}");
    }

    #[test]
    fn sums_are_those_of_a_plain_loop() {
        let data = Data::new(2 * BLOCK + 77, 19);
        let found = sums(&data.rows(), data.scaling(), &Control::with_threads(2)).unwrap();
        for j in [0, 15, 16, 18] {
            let mut next = 2 * PARTS;
            for m in 0..PARTS {
                near(found[j][m], data.sum(|i| data.weight[i] * data.z(i, j) * data.parts(i)[m]));
                near(found[j][PARTS + m], data.sum(|i| data.weight[i] * data.z(i, j).powi(2) * data.parts(i)[m]));
                for other in m..PARTS {
                    let product = |i| data.parts(i)[m] * data.parts(i)[other];
                    near(found[j][next], data.sum(|i| data.square[i] * data.z(i, j) * product(i)));
                    next += 1;
                }
            }
        }
    }

    fn some_influences(p: usize) -> Vec<Influence> {
        let number = |j: usize, c: usize| ((j * 7 + c) % 5) as f64 - 2.0;
        (0..p)
            .map(|j| Influence {
                level: std::array::from_fn(|m| number(j, m)),
                slope: std::array::from_fn(|m| number(j, 4 + m)),
                curve: number(j, 8),
            })
            .collect()
    }

    #[test]
    fn the_matrix_is_that_of_a_plain_loop() {
        let mut data = Data::new(BLOCK + 300, 21);
        data.weight.fill(1.0);
        let influences = some_influences(data.p);
        let u = [0.1, 0.5, -0.4, 0.2];
        let leverage = Leverage { mean: 0.1, slope: 0.2, factor: 1.5, spread: 0.05 * data.n as f64 };
        let leverages: Vec<_> = (0..data.p).map(|j| if j % 2 == 0 { leverage } else { Leverage::default() }).collect();
        let found = gram(&data.rows(), data.scaling(), &influences, u, &leverages, &Control::default()).unwrap();
        let influence = |i: usize, j: usize| {
            let (one, z) = (&influences[j], data.z(i, j));
            let part = |m: usize| (one.level[m] + one.slope[m] * z) * data.parts(i)[m];
            (0..PARTS).map(part).sum::<f64>() + one.curve * z * z
        };
        for (j, k) in [(0, 0), (3, 17), (17, 3), (20, 20), (15, 16)] {
            let expected = data.sum(|i| data.square[i] * influence(i, j) * influence(i, k));
            near(found.products[j * data.p + k], expected);
        }
        let expected = data.sum(|i| {
            let z = data.z(i, 2);
            let pull = data.square[i] * (1.0 / data.n as f64 + z * z / leverage.spread);
            let u: f64 = data.parts(i).iter().zip(u).map(|(part, share)| part * share).sum();
            let residual = u - 0.1 - 0.2 * z;
            data.square[i] * (influence(i, 2) + 1.5 * z * residual * pull / (1.0 - pull)).powi(2)
        });
        near(found.squares[2], expected);
        assert_eq!(found.squares[1], 0.0);
    }

    #[test]
    fn the_bits_are_the_same_for_any_threads_and_instruction_set() {
        let data = Data::new(3 * BLOCK + 5, 18);
        let rows = data.rows();
        let by_threads = |threads| {
            let control = Control::with_threads(threads);
            let influences = some_influences(18);
            let leverages = vec![Leverage::default(); 18];
            let gram = gram(&rows, data.scaling(), &influences, [1.0; PARTS], &leverages, &control).unwrap();
            (sums(&rows, data.scaling(), &control).unwrap(), gram)
        };
        assert_eq!(by_threads(1), by_threads(3));
        let by_set = |set: InstructionSet| {
            let mut sums = vec![[[0.0; LANES]; SUMS]; 2];
            set.run(BlockSums { rows: &rows, scaling: data.scaling(), range: 0..500, sums: &mut sums });
            sums
        };
        let all: Vec<_> = InstructionSet::available().into_iter().map(by_set).collect();
        assert!(all.iter().all(|one| *one == all[0]));
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        assert!(Rows::new(&[1.0, 2.0], &[1.0; 6], &[1.0], &[1.0, 1.0]).is_err());
        assert!(Rows::new(&[1.0], &[1.0; 6], &[1.0, 1.0], &[1.0, 1.0]).is_err());
        let data = Data::new(10, 2);
        let scaling = Scaling { shift: &[0.0], scale: &[1.0] };
        assert!(sums(&data.rows(), scaling, &Control::default()).is_err());
    }
}
