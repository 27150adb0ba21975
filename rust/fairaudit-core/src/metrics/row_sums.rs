//! Sums over rows, and the metrics made of them: means, ratios of sums, formulas over weighted counts.
//!
//! A metric adds up a few numbers over the rows of a group, in one pass over the rows in a
//! fixed order, for sixteen replicates side by side. To what extent a row is a member of a group
//! is a number per replicate: 0 or 1 in a permutation, how often it was drawn in a bootstrap.

use super::{Evaluation, Metric};
use crate::error::{Error, Result};
use crate::simd::LANES;

/// One number for every replicate.
pub(crate) type Lanes = [f64; LANES];

/// All bits or none, for every replicate.
pub(crate) type LaneMask = [u32; LANES];

/// A metric of N sums over the rows of a group, for every replicate.
pub(crate) trait RowSums<const N: usize>: Sync {
    /// Rows of one score that were seen so far.
    type Open: Default + Send;

    /// Whether the sums of all groups add up to the same in every replicate.
    const ADDITIVE: bool;

    /// Adds a row to the sums of the groups that it is a member of.
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; N]], open: &mut Self::Open);

    /// The metric from the sums of a group.
    fn evaluate(&self, sums: [f64; N]) -> Evaluation;
}

/// Mean of a row value, with variance `sum (a - theta)^2 / n^2`.
#[derive(Debug, Clone)]
pub struct Mean {
    /// The value of each row.
    pub(super) value: Vec<f64>,
    /// Sums of squares up to this are rounding.
    pub(super) noise: f64,
}

impl Mean {
    /// From the value of each row.
    pub fn new(value: Vec<f64>) -> Self {
        Self { value, noise: 0.0 }
    }

    pub(super) fn center(&mut self) -> f64 {
        let center = self.value.iter().sum::<f64>() / self.value.len() as f64;
        if !center.is_finite() {
            return 0.0;
        }
        self.noise = 1e-26 * self.value.iter().map(|a| a * a).sum::<f64>();
        self.value.iter_mut().for_each(|a| *a -= center);
        center
    }
}

/// Sums of a, 1, a^2.
impl RowSums<3> for Mean {
    type Open = ();
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 3]], (): &mut ()) {
        let a = self.value[row];
        let square = a * a;
        for (member, [above, below, squares]) in member.iter().zip(sums) {
            for lane in 0..LANES {
                above[lane] += member[lane] * a;
                below[lane] += member[lane];
                squares[lane] += member[lane] * square;
            }
        }
    }

    fn evaluate(&self, [above, below, squares]: [f64; 3]) -> Evaluation {
        // d = 1: the sums of a d and d^2 are those of a and d.
        ratio([above, below, squares, above, below], self.noise)
    }
}

/// sum w a / sum w d with variance sum (w (a - theta d))^2 / (sum w d)^2.
#[derive(Debug, Clone)]
pub struct Ratio {
    /// w a and w d of each row.
    pub(super) terms: Vec<[f64; 2]>,
    /// Sums of squares up to this are rounding.
    pub(super) noise: f64,
}

impl Ratio {
    /// From w a and w d of each row.
    pub fn new(terms: Vec<[f64; 2]>) -> Self {
        Self { terms, noise: 0.0 }
    }

    pub(super) fn center(&mut self) -> f64 {
        let sum = |k: usize| self.terms.iter().map(|terms| terms[k]).sum::<f64>();
        let center = sum(0) / sum(1);
        if !center.is_finite() {
            return 0.0;
        }
        self.noise = 1e-26 * self.terms.iter().map(|terms| terms[0] * terms[0]).sum::<f64>();
        for [a, d] in &mut self.terms {
            *a -= center * *d;
        }
        center
    }
}

/// Sums of A, D, A^2, A D, D^2.
impl RowSums<5> for Ratio {
    type Open = ();
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 5]], (): &mut ()) {
        let [a, d] = self.terms[row];
        let terms = [a, d, a * a, a * d, d * d];
        for (member, sums) in member.iter().zip(sums) {
            for (sum, term) in sums.iter_mut().zip(terms) {
                for lane in 0..LANES {
                    sum[lane] += member[lane] * term;
                }
            }
        }
    }

    fn evaluate(&self, sums: [f64; 5]) -> Evaluation {
        ratio(sums, self.noise)
    }
}

fn ratio([above, below, above_squares, products, below_squares]: [f64; 5], noise: f64) -> Evaluation {
    if below == 0.0 {
        return Evaluation::UNDEFINED;
    }
    let value = above / below;
    let squares = above_squares - 2.0 * value * products + value * value * below_squares;
    let variance = if squares <= noise { 0.0 } else { squares / (below * below) };
    Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
}

/// A metric over the four confusion counts of weighted rows, or of clusters of rows:
/// `h(sum_i c_i)` with the variance `sum_i (grad h . c_i)^2`, `c_i` being the counts of unit i.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Weighted tp, fp, fn, tn of each unit.
    pub(super) units: Vec<[f64; 4]>,
    /// Counts of all units.
    pub(super) total: [f64; 4],
    pub(super) metric: Metric,
}

impl Counts {
    /// From the counts of each unit.
    ///
    /// # Errors
    /// [`Error::Argument`] when the metric is not one over tp, fp, fn, tn.
    pub fn new(counts: Vec<[f64; 4]>, metric: Metric) -> Result<Self> {
        if metric.n_classes() != 4 || metric.influence(&[1.0; 4]).is_none() {
            return Err(Error::argument("metric", "not a formula over counts", "one over tp, fp, fn, tn"));
        }
        let total = std::array::from_fn(|k| counts.iter().map(|unit| unit[k]).sum());
        Ok(Self { units: counts, total, metric })
    }
}

/// Sums of the four counts and of their ten products.
impl RowSums<14> for Counts {
    type Open = ();
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 14]], (): &mut ()) {
        let counts = &self.units[row];
        let mut terms = [0.0; 14];
        terms[..4].copy_from_slice(counts);
        for (term, (i, j)) in terms[4..].iter_mut().zip(PRODUCTS) {
            *term = counts[i] * counts[j];
        }
        for (member, sums) in member.iter().zip(sums) {
            for (sum, term) in sums.iter_mut().zip(terms) {
                for lane in 0..LANES {
                    sum[lane] += member[lane] * term;
                }
            }
        }
    }

    fn evaluate(&self, sums: [f64; 14]) -> Evaluation {
        // What rounding leaves of a class that other groups have taken is nothing.
        let counts: [f64; 4] = std::array::from_fn(|k| if sums[k] <= 1e-13 * self.total[k] { 0.0 } else { sums[k] });
        let evaluation = self.metric.evaluate_value(&counts);
        let Some(influence) = self.metric.influence(&counts).filter(|_| evaluation.is_defined()) else {
            return Evaluation::UNDEFINED;
        };
        let (mut variance, mut size) = (0.0, 0.0);
        for (sum, (i, j)) in sums[4..].iter().zip(PRODUCTS) {
            let times = if i == j { 1.0 } else { 2.0 };
            let term = if *sum == 0.0 { 0.0 } else { influence[i] * influence[j] * sum * times };
            variance += term;
            size += term.abs();
        }
        let variance = if variance <= 1e-13 * size { 0.0 } else { variance };
        Evaluation { value: evaluation.value, variance, numerator: f64::NAN, denominator: f64::NAN }
    }
}

/// Pairs of counts whose products are added up: the squares first.
const PRODUCTS: [(usize, usize); 10] = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
