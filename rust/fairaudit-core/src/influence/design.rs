//! Rows of features as the columns of a regression: a 1, the features on one scale, and products of pairs of them.
//!
//! The columns are made tile by tile while the rows are passed over, and never stored. Weights come as lists, several
//! side by side: what is asked is answered for each. Rows are added up in their order, in blocks between which the
//! call may be stopped; lists are shared by the threads, which changes no bit.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, LANES, Task};

/// Rows whose columns are in the cache at a time.
pub(super) const TILE: usize = 32;
/// Rows between two looks at the control.
const BLOCK: usize = 1 << 11;
/// Columns that are held against [`LANES`] others at a time.
const STRIP: usize = 4;

/// Kinds of rows by their features, and the columns that are made of them.
#[derive(Debug, Clone)]
pub struct Design {
    /// z = (x - center) / scale: tile after tile, in it feature after feature; 0 where a tile has fewer rows.
    z: Vec<[f64; TILE]>,
    n_rows: usize,
    n_features: usize,
    pairs: Vec<(usize, usize)>,
}

impl Design {
    /// The columns 1, every z and the products of some pairs of z, in this order, of features given row by row.
    ///
    /// # Errors
    /// [`Error::Argument`] when the lists differ in length or a pair names no feature.
    pub fn new(
        features: &[f64],
        n_rows: usize,
        center: &[f64],
        scale: &[f64],
        pairs: Vec<(usize, usize)>,
    ) -> Result<Self> {
        let p = center.len();
        if features.len() != p * n_rows || scale.len() != p {
            let given = format!("{} numbers, {p} centers and {} scales", features.len(), scale.len());
            return Err(Error::argument(
                "features",
                given,
                &format!("{n_rows} rows of {p} features with a scale each"),
            ));
        }
        if let Some((first, second)) = pairs.iter().find(|(first, second)| *first >= p || *second >= p) {
            return Err(Error::argument("pairs", format!("({first}, {second})"), &format!("numbers below {p}")));
        }
        let mut z = vec![[0.0; TILE]; n_rows.div_ceil(TILE) * p];
        for (i, row) in features.chunks_exact(p.max(1)).enumerate() {
            for (j, x) in row.iter().enumerate() {
                z[i / TILE * p + j][i % TILE] = (x - center[j]) / scale[j];
            }
        }
        Ok(Self { z, n_rows, n_features: p, pairs })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        1 + self.n_features + self.pairs.len()
    }

    /// The columns, rounded up to whole groups of lanes.
    fn padded(&self) -> usize {
        self.width().next_multiple_of(LANES)
    }

    /// Estimated nanoseconds of passing over the rows once, on one thread.
    pub fn pass_work(&self) -> u64 {
        (self.n_rows * self.width()) as u64 / 4
    }

    /// Estimated nanoseconds of one [`gram`], on one thread.
    pub fn gram_work(&self) -> u64 {
        (self.n_rows * self.width() * (self.width() + 16)) as u64 / 20
    }

    fn blocks(&self) -> impl Iterator<Item = Range<usize>> {
        let n = self.n_rows;
        (0..n).step_by(BLOCK).map(move |first| first..n.min(first + BLOCK))
    }

    /// Puts the columns of some rows of one tile into it.
    #[inline(always)]
    fn fill(&self, rows: &Range<usize>, tile: &mut [[f64; TILE]]) {
        let p = self.n_features;
        tile[0] = [0.0; TILE];
        tile[0][..rows.len()].fill(1.0);
        let (plain, products) = tile[1..].split_at_mut(p);
        plain.copy_from_slice(&self.z[rows.start / TILE * p..][..p]);
        for (product, &(first, second)) in products.iter_mut().zip(&self.pairs) {
            let (one, other) = (&plain[first], &plain[second]);
            for i in 0..TILE {
                product[i] = one[i] * other[i];
            }
        }
    }
}

/// The sum of coefficient times column, by row of the tile.
#[inline(always)]
pub(super) fn scores_of(tile: &[[f64; TILE]], coefficients: &[f64]) -> [f64; TILE] {
    let mut scores = [0.0; TILE];
    for (column, &coefficient) in tile.iter().zip(coefficients) {
        for i in 0..TILE {
            scores[i] = column[i].mul_add(coefficient, scores[i]);
        }
    }
    scores
}

/// Adds weight times column, by lane.
#[inline(always)]
pub(super) fn add_sums(tile: &[[f64; TILE]], weight: &[f64; TILE], sums: &mut [[f64; LANES]]) {
    for (column, sum) in tile.iter().zip(sums) {
        for first in (0..TILE).step_by(LANES) {
            for lane in 0..LANES {
                sum[lane] = column[first + lane].mul_add(weight[first + lane], sum[lane]);
            }
        }
    }
}

/// What the lanes add up to, in their order.
pub(super) fn of_lanes(sums: &[[f64; LANES]]) -> Vec<f64> {
    sums.iter().map(|lanes| lanes.iter().sum()).collect()
}

/// Adds weight times the product of two columns for all pairs on and above the diagonal, tile of lanes by tile.
#[inline(always)]
fn add_products(tile: &[[f64; TILE]], weight: &[f64; TILE], rows: &mut Transposed, products: &mut [f64]) {
    let width = rows.width;
    for (j, column) in tile.iter().enumerate() {
        for i in 0..TILE {
            rows.plain[i * width + j] = column[i];
            rows.weighted[i * width + j] = column[i] * weight[i];
        }
    }
    for left in (0..width).step_by(LANES) {
        for right in (left..width).step_by(LANES) {
            for strip in (left..left + LANES).step_by(STRIP) {
                let mut sums = [[0.0; LANES]; STRIP];
                for i in 0..TILE {
                    let own = &rows.weighted[i * width + strip..][..STRIP];
                    let others = &rows.plain[i * width + right..][..LANES];
                    for s in 0..STRIP {
                        for lane in 0..LANES {
                            sums[s][lane] = own[s].mul_add(others[lane], sums[s][lane]);
                        }
                    }
                }
                for (s, sums) in sums.iter().enumerate() {
                    let at = (strip + s) * width + right;
                    for (entry, sum) in products[at..at + LANES].iter_mut().zip(sums) {
                        *entry += sum;
                    }
                }
            }
        }
    }
}

/// A tile row by row, plain and weighted.
struct Transposed {
    plain: Vec<f64>,
    weighted: Vec<f64>,
    width: usize,
}

impl Transposed {
    fn of(design: &Design) -> Self {
        let width = design.padded();
        Self { plain: vec![0.0; TILE * width], weighted: vec![0.0; TILE * width], width }
    }
}

/// Weights of the rows of a tile.
#[inline(always)]
pub(super) fn weights_of(weight: &[f64], rows: Range<usize>) -> [f64; TILE] {
    let mut found = [0.0; TILE];
    found[..rows.len()].copy_from_slice(&weight[rows]);
    found
}

/// What is done with the columns of some rows; to be inlined into what is compiled for an instruction set.
pub(super) trait Visit {
    /// Takes a tile.
    fn tile(&mut self, rows: Range<usize>, tile: &[[f64; TILE]]);
}

struct Block<'a, V> {
    design: &'a Design,
    rows: Range<usize>,
    tile: &'a mut [[f64; TILE]],
    visit: &'a mut V,
}

impl<V: Visit> Task for Block<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for first in self.rows.clone().step_by(TILE) {
            let rows = first..self.rows.end.min(first + TILE);
            self.design.fill(&rows, self.tile);
            self.visit.tile(rows, self.tile);
        }
    }
}

/// Shows the columns of all rows, tile by tile.
pub(super) fn visit_all(design: &Design, control: &Control, visit: &mut impl Visit) -> Result<()> {
    let instructions = InstructionSet::current()?;
    let mut tile = vec![[0.0; TILE]; design.width()];
    for rows in design.blocks() {
        control.check()?;
        instructions.run(Block { design, rows, tile: &mut tile, visit });
    }
    Ok(())
}

struct Scores<'a> {
    coefficients: &'a [f64],
    found: Vec<f64>,
}

impl Visit for Scores<'_> {
    #[inline(always)]
    fn tile(&mut self, rows: Range<usize>, tile: &[[f64; TILE]]) {
        let n = rows.len();
        self.found[rows].copy_from_slice(&scores_of(tile, self.coefficients)[..n]);
    }
}

struct Sums<'a> {
    weights: &'a [f64],
    found: Vec<[f64; LANES]>,
}

impl Visit for Sums<'_> {
    #[inline(always)]
    fn tile(&mut self, rows: Range<usize>, tile: &[[f64; TILE]]) {
        add_sums(tile, &weights_of(self.weights, rows), &mut self.found);
    }
}

struct Products<'a> {
    weights: &'a [f64],
    rows: Transposed,
    found: Vec<f64>,
}

impl Visit for Products<'_> {
    #[inline(always)]
    fn tile(&mut self, rows: Range<usize>, tile: &[[f64; TILE]]) {
        add_products(tile, &weights_of(self.weights, rows), &mut self.rows, &mut self.found);
    }
}

/// For each list of coefficients, list after list, the sum of coefficient times column of every row.
///
/// # Errors
/// [`Error::Argument`] when a list is of another length, [`Error::Cancelled`].
pub fn scores(design: &Design, coefficients: &[f64], n_lists: usize, control: &Control) -> Result<Vec<f64>> {
    check("coefficients", coefficients.len(), n_lists * design.width())?;
    each_list(n_lists, control, |list| {
        let coefficients = &coefficients[list * design.width()..][..design.width()];
        let mut scores = Scores { coefficients, found: vec![0.0; design.len()] };
        visit_all(design, control, &mut scores)?;
        Ok(scores.found)
    })
}

/// For each list of weights of the rows, list after list, the sum of weight times column of every column.
///
/// # Errors
/// [`Error::Argument`] when a list is of another length, [`Error::Cancelled`].
pub fn sums(design: &Design, weights: &[f64], n_lists: usize, control: &Control) -> Result<Vec<f64>> {
    check("weights", weights.len(), n_lists * design.len())?;
    each_list(n_lists, control, |list| {
        let weights = &weights[list * design.len()..][..design.len()];
        let mut sums = Sums { weights, found: vec![[0.0; LANES]; design.width()] };
        visit_all(design, control, &mut sums)?;
        Ok(of_lanes(&sums.found))
    })
}

/// For each list of weights of the rows, list after list, the sums of weight times the product of two columns.
///
/// # Errors
/// [`Error::Argument`] when a list is of another length, [`Error::Cancelled`].
pub fn gram(design: &Design, weights: &[f64], n_lists: usize, control: &Control) -> Result<Vec<f64>> {
    check("weights", weights.len(), n_lists * design.len())?;
    each_list(n_lists, control, |list| gram_of(design, &weights[list * design.len()..][..design.len()], control))
}

/// [`gram`] of one list.
pub(super) fn gram_of(design: &Design, weights: &[f64], control: &Control) -> Result<Vec<f64>> {
    let found = vec![0.0; design.padded() * design.padded()];
    let mut products = Products { weights, rows: Transposed::of(design), found };
    visit_all(design, control, &mut products)?;
    let (padded, width) = (design.padded(), design.width());
    // Only tiles on and above the diagonal were added up.
    let entry = |j: usize, k: usize| products.found[j.min(k) * padded + j.max(k)];
    Ok((0..width).flat_map(|j| (0..width).map(move |k| (j, k))).map(|(j, k)| entry(j, k)).collect())
}

fn each_list(n_lists: usize, control: &Control, one: impl Fn(usize) -> Result<Vec<f64>> + Sync) -> Result<Vec<f64>> {
    Ok(map_blocks(n_lists, 1, control, |lists| one(lists.start))?.concat())
}

fn check(name: &str, given: usize, expected: usize) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    Err(Error::argument(name, format!("{given} numbers"), &format!("{expected}")))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::random::{Domain, Stream};

    /// Rows of three features with two products.
    pub(in crate::influence) struct Data {
        pub(in crate::influence) features: Vec<f64>,
        pub(in crate::influence) weights: Vec<f64>,
        n: usize,
    }

    impl Data {
        pub(in crate::influence) fn new(n: usize) -> Self {
            let mut stream = Stream::new(5, Domain::Simulation, 0, 0, 0);
            let features = (0..3 * n).map(|_| stream.uniform()).collect();
            Self { features, weights: (0..2 * n).map(|_| stream.uniform()).collect(), n }
        }

        pub(in crate::influence) fn design(&self) -> Design {
            Design::new(&self.features, self.n, &[0.5, 0.4, 0.0], &[0.3, 0.2, 1.0], vec![(0, 1), (2, 2)]).unwrap()
        }

        pub(in crate::influence) fn row(&self, i: usize) -> [f64; 6] {
            let x = &self.features[3 * i..][..3];
            let z = [(x[0] - 0.5) / 0.3, (x[1] - 0.4) / 0.2, x[2]];
            [1.0, z[0], z[1], z[2], z[0] * z[1], z[2] * z[2]]
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} is not {expected}");
    }

    #[test]
    fn work_grows_with_rows_and_columns() {
        let (few, many) = (Data::new(100).design(), Data::new(1_000).design());
        assert_eq!([many.pass_work(), many.gram_work()], [10 * few.pass_work(), 10 * few.gram_work()]);
        // Six columns have 21 products.
        assert!((2..21).contains(&(many.gram_work() / many.pass_work())));
    }

    #[test]
    fn all_is_that_of_a_plain_loop() {
        let n = 2 * BLOCK + 45;
        let data = Data::new(n);
        let (design, control) = (data.design(), Control::with_threads(2));
        let sums = sums(&design, &data.weights, 2, &control).unwrap();
        let gram = gram(&design, &data.weights, 2, &control).unwrap();
        let coefficients: Vec<f64> = (0..12).map(|c| f64::from(c) - 4.0).collect();
        let scores = scores(&design, &coefficients, 2, &control).unwrap();
        let total = |term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>();
        for list in 0..2 {
            let weight = |i: usize| data.weights[list * n + i];
            for j in 0..6 {
                near(sums[list * 6 + j], total(&|i| weight(i) * data.row(i)[j]));
                for k in 0..6 {
                    near(gram[list * 36 + j * 6 + k], total(&|i| weight(i) * data.row(i)[j] * data.row(i)[k]));
                }
            }
            for i in [0, 31, 32, BLOCK, n - 1] {
                let expected = (0..6).map(|c| coefficients[6 * list + c] * data.row(i)[c]).sum();
                near(scores[list * n + i], expected);
            }
        }
    }

    #[test]
    fn the_bits_are_the_same_for_any_threads_and_instruction_set() {
        let data = Data::new(300);
        let design = data.design();
        let by_threads = |threads| gram(&design, &data.weights, 2, &Control::with_threads(threads)).unwrap();
        assert_eq!(by_threads(1), by_threads(3));
        let by_set = |set: InstructionSet| {
            let mut visit = Sums { weights: &data.weights[..300], found: vec![[0.0; LANES]; 6] };
            let mut tile = vec![[0.0; TILE]; 6];
            set.run(Block { design: &design, rows: 0..300, tile: &mut tile, visit: &mut visit });
            visit.found
        };
        let all: Vec<_> = InstructionSet::available().into_iter().map(by_set).collect();
        assert!(all.iter().all(|one| *one == all[0]));
    }

    #[test]
    fn lists_of_other_lengths_are_refused() {
        let data = Data::new(10);
        let (design, control) = (data.design(), Control::default());
        assert!(scores(&design, &[1.0; 5], 1, &control).is_err());
        assert!(sums(&design, &[1.0; 9], 1, &control).is_err());
        assert!(gram(&design, &[1.0; 11], 1, &control).is_err());
        assert!(Design::new(&[1.0; 5], 2, &[0.0; 3], &[1.0; 3], vec![]).is_err());
        assert!(Design::new(&[1.0; 6], 2, &[0.0; 3], &[1.0; 3], vec![(0, 3)]).is_err());
    }
}
