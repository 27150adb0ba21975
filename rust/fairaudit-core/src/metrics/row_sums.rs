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

    /// What a group counts for in a stratum: its denominator, or the effective number of its rows.
    fn size(&self, sums: [f64; N]) -> f64;

    /// How many units the variance is of, which has the factor n / (n - 1) where `true` comes with them; `members` is
    /// the number of units in the group.
    fn units(&self, sums: [f64; N], members: f64) -> (f64, bool) {
        let _ = sums;
        (members, false)
    }
}

/// The number of units of equal weight that are worth as much as those with this sum of weights and of squares.
pub(crate) fn effective(weights: f64, squares: f64) -> f64 {
    if squares > 0.0 { weights * weights / squares } else { 0.0 }
}

/// Mean of a row value, with variance `sum (a - theta)^2 / (n (n - 1))`; n^2 where it is not corrected.
#[derive(Debug, Clone)]
pub struct Mean {
    /// The value of each row.
    pub(super) value: Vec<f64>,
    /// Whether the variance has the factor n / (n - 1).
    pub(super) corrected: bool,
    /// Sums of squares up to this are rounding.
    pub(super) noise: f64,
}

impl Mean {
    /// From the value of each row.
    pub fn new(value: Vec<f64>, corrected: bool) -> Self {
        Self { value, corrected, noise: 0.0 }
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
        let factor = if self.corrected { bessel(below) } else { 1.0 };
        ratio([above, below, squares, above, below], self.noise).times(factor)
    }

    fn size(&self, [_, below, _]: [f64; 3]) -> f64 {
        below
    }

    fn units(&self, [_, below, _]: [f64; 3], _: f64) -> (f64, bool) {
        (below, self.corrected)
    }
}

/// sum w a / sum w d with variance n / (n - 1) sum (w (a - theta d))^2 / (sum w d)^2, n being the units with a or d;
/// without the first factor where it is not corrected.
#[derive(Debug, Clone)]
pub struct Ratio {
    /// w a and w d of each unit.
    pub(super) terms: Vec<[f64; 2]>,
    /// Whether the variance has the factor n / (n - 1).
    pub(super) corrected: bool,
    /// Sums of squares up to this are rounding.
    pub(super) noise: f64,
}

impl Ratio {
    /// From w a and w d of each unit.
    pub fn new(terms: Vec<[f64; 2]>, corrected: bool) -> Self {
        Self { terms, corrected, noise: 0.0 }
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

/// Sums of A, D, A^2, A D, D^2, and the number of units with A or D.
impl RowSums<6> for Ratio {
    type Open = ();
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 6]], (): &mut ()) {
        let [a, d] = self.terms[row];
        let terms = [a, d, a * a, a * d, d * d, counts(a, d)];
        for (member, sums) in member.iter().zip(sums) {
            for (sum, term) in sums.iter_mut().zip(terms) {
                for lane in 0..LANES {
                    sum[lane] += member[lane] * term;
                }
            }
        }
    }

    fn evaluate(&self, [a, d, aa, ad, dd, n]: [f64; 6]) -> Evaluation {
        ratio([a, d, aa, ad, dd], self.noise).times(if self.corrected { bessel(n) } else { 1.0 })
    }

    fn size(&self, sums: [f64; 6]) -> f64 {
        sums[1]
    }

    fn units(&self, sums: [f64; 6], _: f64) -> (f64, bool) {
        (sums[5], self.corrected)
    }
}

/// Sums over units of products of up to three of a and d; d of a mean is 1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    /// Units with a or d.
    pub(crate) n: f64,
    pub(crate) a: f64,
    pub(crate) d: f64,
    pub(crate) aa: f64,
    pub(crate) ad: f64,
    pub(crate) dd: f64,
    pub(crate) aaa: f64,
    pub(crate) aad: f64,
    pub(crate) add: f64,
    pub(crate) ddd: f64,
}

impl Moments {
    /// Adds the sums of other units so many times.
    #[inline]
    pub(crate) fn plus(&self, other: &Self, times: f64) -> Self {
        Self {
            n: self.n + times * other.n,
            a: self.a + times * other.a,
            d: self.d + times * other.d,
            aa: self.aa + times * other.aa,
            ad: self.ad + times * other.ad,
            dd: self.dd + times * other.dd,
            aaa: self.aaa + times * other.aaa,
            aad: self.aad + times * other.aad,
            add: self.add + times * other.add,
            ddd: self.ddd + times * other.ddd,
        }
    }
}

/// A mean or ratio, whose [`Moments`] are N sums over rows and the number of rows.
pub(crate) trait Powers<const N: usize>: Sync {
    /// Adds a row to the sums of a group, in the lanes in which it belongs to it.
    fn add_powers(&self, row: usize, member: &LaneMask, sums: &mut [Lanes; N]);

    /// All sums from those that were added up over so many rows.
    fn moments(sums: [f64; N], rows: f64) -> Moments;
}

#[inline(always)]
fn add_terms<const N: usize>(terms: [f64; N], member: &LaneMask, sums: &mut [Lanes; N]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        for lane in 0..LANES {
            // One addition under a mask, where there are masks.
            sum[lane] = if member[lane] == 0 { sum[lane] } else { sum[lane] + term };
        }
    }
}

/// Sums of a, a^2, a^3.
impl Powers<3> for Mean {
    #[inline(always)]
    fn add_powers(&self, row: usize, member: &LaneMask, sums: &mut [Lanes; 3]) {
        let a = self.value[row];
        add_terms([a, a * a, a * a * a], member, sums);
    }

    #[inline]
    fn moments([a, aa, aaa]: [f64; 3], n: f64) -> Moments {
        Moments { n, a, d: n, aa, ad: a, dd: n, aaa, aad: aa, add: a, ddd: n }
    }
}

impl Mean {
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }
}

impl Ratio {
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }

    pub(crate) fn is_corrected(&self) -> bool {
        self.corrected
    }
}

impl Powers<10> for Ratio {
    #[inline(always)]
    fn add_powers(&self, row: usize, member: &LaneMask, sums: &mut [Lanes; 10]) {
        let [a, d] = self.terms[row];
        let (aa, ad, dd) = (a * a, a * d, d * d);
        add_terms([counts(a, d), a, d, aa, ad, dd, a * aa, aa * d, a * dd, d * dd], member, sums);
    }

    #[inline]
    fn moments([n, a, d, aa, ad, dd, aaa, aad, add, ddd]: [f64; 10], _: f64) -> Moments {
        Moments { n, a, d, aa, ad, dd, aaa, aad, add, ddd }
    }
}

/// 1 for a unit that has a part in a ratio, 0 for one that has none.
#[inline(always)]
pub(crate) fn counts(a: f64, d: f64) -> f64 {
    if a == 0.0 && d == 0.0 { 0.0 } else { 1.0 }
}

/// n / (n - 1); NaN for one unit.
#[inline]
pub(crate) fn bessel(n: f64) -> f64 {
    if n > 1.5 { n / (n - 1.0) } else { f64::NAN }
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

    /// Of the weights of units, which are the sums of their counts.
    fn size(&self, sums: [f64; 14]) -> f64 {
        let squares = sums[4..].iter().zip(PRODUCTS).map(|(sum, (i, j))| if i == j { *sum } else { 2.0 * sum });
        effective(sums[..4].iter().sum(), squares.sum())
    }
}

/// Pairs of counts whose products are added up: the squares first.
const PRODUCTS: [(usize, usize); 10] = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
