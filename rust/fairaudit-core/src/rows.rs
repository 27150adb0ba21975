//! Metrics of rows: ranks, means, ratios of sums, formulas over weighted counts.
//!
//! A metric adds up a few numbers over the rows of a group, in one pass over the rows in a
//! fixed order, for sixteen replicates side by side. To what extent a row is a member of a group
//! is a number per replicate: 0 or 1 in a permutation, how often it was drawn in a bootstrap.

use crate::error::{Error, Result};
use crate::metrics::{Evaluation, Metric, delong};
use crate::simd::LANES;

/// One number for every replicate.
pub(crate) type Lanes = [f64; LANES];

/// What is added up over the rows of a group: N numbers for every replicate.
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

/// What is computed from the rows of a group.
#[derive(Debug, Clone)]
pub enum RowMetric {
    /// Area under the ROC curve with `DeLong`'s variance.
    Auc(Auc),
    /// Area under the ROC curve of weighted rows.
    WeightedAuc(WeightedAuc),
    /// Mean of a row value.
    Mean(Mean),
    /// Ratio of sums of two row values.
    Ratio(Ratio),
    /// A formula over weighted counts of classes.
    Counts(Counts),
}

/// Runs the same code for the type of a metric.
macro_rules! of_each_metric {
    ($metric:expr, $name:ident => $body:expr) => {
        match $metric {
            RowMetric::Auc($name) => $body,
            RowMetric::WeightedAuc($name) => $body,
            RowMetric::Mean($name) => $body,
            RowMetric::Ratio($name) => $body,
            RowMetric::Counts($name) => $body,
        }
    };
}
pub(crate) use of_each_metric;

impl RowMetric {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Auc(auc) => auc.flags.len(),
            Self::WeightedAuc(auc) => auc.flags.len(),
            Self::Mean(mean) => mean.value.len(),
            Self::Ratio(ratio) => ratio.terms.len(),
            Self::Counts(counts) => counts.units.len(),
        }
    }

    /// Centres a mean or ratio at its value over all rows, which it returns: this changes the
    /// metric of every group by that value and its variance not at all, and keeps the digits of
    /// values that lie far from 0.
    pub(crate) fn center(&mut self) -> f64 {
        match self {
            Self::Mean(mean) => mean.center(),
            Self::Ratio(ratio) => ratio.center(),
            _ => 0.0,
        }
    }

    /// The metric of some of the rows.
    pub(crate) fn select(&self, rows: &[u32]) -> Self {
        fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&row| values[row as usize]).collect()
        }
        // A tie goes on when all of the rows up to the next chosen one are tied with their next.
        let flags = |flags: &[RowFlags]| -> Vec<RowFlags> {
            let next = rows.iter().skip(1).map(|&row| row as usize);
            let pairs = rows.iter().map(|&row| row as usize).zip(next);
            let tied = pairs.map(|(row, next)| flags[row..next].iter().all(|flags| flags.is_tied_with_next()));
            let labels = rows.iter().map(|&row| flags[row as usize].is_positive());
            labels.zip(tied.chain([false])).map(|(positive, tied)| RowFlags::new(positive, tied)).collect()
        };
        match self {
            Self::Auc(auc) => Self::Auc(Auc { flags: flags(&auc.flags) }),
            Self::WeightedAuc(auc) => {
                Self::WeightedAuc(WeightedAuc { flags: flags(&auc.flags), weight: pick(&auc.weight, rows) })
            }
            Self::Mean(mean) => Self::Mean(Mean { value: pick(&mean.value, rows), noise: mean.noise }),
            Self::Ratio(ratio) => Self::Ratio(Ratio { terms: pick(&ratio.terms, rows), noise: ratio.noise }),
            Self::Counts(counts) => Self::Counts(Counts {
                units: pick(&counts.units, rows),
                total: counts.total,
                metric: counts.metric.clone(),
            }),
        }
    }
}

/// Area under the ROC curve, ties 1/2, with `DeLong`'s variance; rows in ascending order of the
/// score.
#[derive(Debug, Clone)]
pub struct Auc {
    /// The label of each row, and whether it is tied.
    pub flags: Vec<RowFlags>,
}

impl Auc {
    /// The AUC of every group as observed: the sums of [`RowSums`] without lanes, which are of no
    /// use here.
    pub(crate) fn observed(&self, group: &[u16], n_groups: usize) -> Vec<Evaluation> {
        // negatives, positives, x, x^2, y^2; then negatives and positives of the open score.
        let mut sums = vec![[0.0; 5]; n_groups];
        let mut open = vec![[0.0; 2]; n_groups];
        for (flags, &g) in self.flags.iter().zip(group) {
            open[usize::from(g)][usize::from(flags.is_positive())] += 1.0;
            if flags.is_tied_with_next() {
                continue;
            }
            for ([negatives, positives, x, x_squares, y_squares], open) in sums.iter_mut().zip(&mut open) {
                let [in_negatives, in_positives] = *open;
                let below = *negatives + 0.5 * in_negatives;
                let positives_below = *positives + 0.5 * in_positives;
                *x += in_positives * below;
                *x_squares += in_positives * below * below;
                *y_squares += in_negatives * positives_below * positives_below;
                *negatives += in_negatives;
                *positives += in_positives;
                *open = [0.0; 2];
            }
        }
        sums.into_iter().map(delong).collect()
    }
}

/// The label of a row, and whether it has the score of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFlags(u8);

impl RowFlags {
    /// From both.
    pub fn new(positive: bool, tied_with_next: bool) -> Self {
        Self(u8::from(positive) | u8::from(tied_with_next) << 1)
    }

    /// Whether the label is positive.
    #[inline(always)]
    pub fn is_positive(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the row has the score of the next one.
    #[inline(always)]
    pub fn is_tied_with_next(self) -> bool {
        self.0 & 2 == 2
    }
}

/// Members of one score that were seen so far, by group: negatives and positives.
#[derive(Debug, Default)]
pub(crate) struct OpenTies {
    open: Vec<[Lanes; 2]>,
}

/// Sums: negatives, positives, then over the rows of the group: x, x^2 over positives (x:
/// negatives below, ties 1/2), y^2 over negatives (y: positives below, ties 1/2).
impl RowSums<5> for Auc {
    type Open = OpenTies;
    const ADDITIVE: bool = false;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 5]], open: &mut OpenTies) {
        let (positive, tied) = (self.flags[row].is_positive(), self.flags[row].is_tied_with_next());
        if tied || !open.open.is_empty() {
            open.add(positive, tied, member, sums);
        } else if positive {
            for (member, [negatives, positives, x, x_squares, _]) in member.iter().zip(sums) {
                for lane in 0..LANES {
                    let below = member[lane] * negatives[lane];
                    x[lane] += below;
                    x_squares[lane] += below * negatives[lane];
                    positives[lane] += member[lane];
                }
            }
        } else {
            for (member, [negatives, positives, _, _, y_squares]) in member.iter().zip(sums) {
                for lane in 0..LANES {
                    let below = member[lane] * positives[lane];
                    y_squares[lane] += below * positives[lane];
                    negatives[lane] += member[lane];
                }
            }
        }
    }

    fn evaluate(&self, sums: [f64; 5]) -> Evaluation {
        delong(sums)
    }
}

impl OpenTies {
    #[inline(always)]
    fn add(&mut self, positive: bool, tied_with_next: bool, member: &[Lanes], sums: &mut [[Lanes; 5]]) {
        self.open.resize(member.len(), [[0.0; LANES]; 2]);
        for (open, member) in self.open.iter_mut().zip(member) {
            for (count, m) in open[usize::from(positive)].iter_mut().zip(member) {
                *count += m;
            }
        }
        if tied_with_next {
            return;
        }
        for (open, [negatives, positives, x, x_squares, y_squares]) in self.open.iter().zip(sums) {
            for lane in 0..LANES {
                let [in_negatives, in_positives] = [open[0][lane], open[1][lane]];
                let below = negatives[lane] + 0.5 * in_negatives;
                let positives_below = positives[lane] + 0.5 * in_positives;
                x[lane] += in_positives * below;
                x_squares[lane] += in_positives * below * below;
                y_squares[lane] += in_negatives * positives_below * positives_below;
                negatives[lane] += in_negatives;
                positives[lane] += in_positives;
            }
        }
        self.open.clear();
    }
}

/// Area under the ROC curve of weighted rows in ascending order of the score:
/// `sum_ij w_i w_j K_ij / (W+ W-)` with the linearised variance `sum_i (w_i psi_i)^2`.
#[derive(Debug, Clone)]
pub struct WeightedAuc {
    /// The label of each row, and whether it is tied.
    pub flags: Vec<RowFlags>,
    /// The weight of each row, not below 0.
    pub weight: Vec<f64>,
}

/// Sums over one score that were seen so far, by group and label: w and w^2.
#[derive(Debug, Default)]
pub(crate) struct OpenWeights {
    open: Vec<[[Lanes; 2]; 2]>,
}

/// Sums: W-, W+, then over positives w b, w^2, w^2 b, w^2 b^2 (b: weight of the negatives below,
/// ties 1/2), over negatives w^2, w^2 c, w^2 c^2 (c: weight of the positives below).
impl RowSums<9> for WeightedAuc {
    type Open = OpenWeights;
    const ADDITIVE: bool = false;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 9]], open: &mut OpenWeights) {
        let weight = self.weight[row];
        open.open.resize(member.len(), [[[0.0; LANES]; 2]; 2]);
        for (open, member) in open.open.iter_mut().zip(member) {
            let [first, second] = &mut open[usize::from(self.flags[row].is_positive())];
            for lane in 0..LANES {
                let share = member[lane] * weight;
                first[lane] += share;
                second[lane] += share * weight;
            }
        }
        if self.flags[row].is_tied_with_next() {
            return;
        }
        for (open, sums) in open.open.iter_mut().zip(sums) {
            for lane in 0..LANES {
                let [[negative, negative_squares], [positive, positive_squares]] =
                    open.map(|label| label.map(|lanes| lanes[lane]));
                let below = sums[0][lane] + 0.5 * negative;
                let positives_below = sums[1][lane] + 0.5 * positive;
                sums[0][lane] += negative;
                sums[1][lane] += positive;
                sums[2][lane] += positive * below;
                sums[3][lane] += positive_squares;
                sums[4][lane] += positive_squares * below;
                sums[5][lane] += positive_squares * below * below;
                sums[6][lane] += negative_squares;
                sums[7][lane] += negative_squares * positives_below;
                sums[8][lane] += negative_squares * positives_below * positives_below;
            }
            *open = [[[0.0; LANES]; 2]; 2];
        }
    }

    fn evaluate(&self, [negatives, positives, x, p0, p1, p2, n0, n1, n2]: [f64; 9]) -> Evaluation {
        let pairs = negatives * positives;
        if pairs == 0.0 {
            return Evaluation::UNDEFINED;
        }
        let value = x / pairs;
        // psi of a positive: (b / W- - theta) / W+; of a negative: ((W+ - c) / W+ - theta) / W-.
        let up = p2 / (negatives * negatives) - 2.0 * value * p1 / negatives + value * value * p0;
        let rest = 1.0 - value;
        let down = n2 / (positives * positives) - 2.0 * rest * n1 / positives + rest * rest * n0;
        let part = |sum: f64, all: f64, weight: f64| {
            // Below this it is rounding.
            if sum <= 1e-13 * all { 0.0 } else { sum / (weight * weight) }
        };
        let variance = part(up, p0, positives) + part(down, n0, negatives);
        Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
    }
}

/// Mean of a row value, with variance `sum (a - theta)^2 / n^2`.
#[derive(Debug, Clone)]
pub struct Mean {
    /// The value of each row.
    value: Vec<f64>,
    /// Sums of squares up to this are rounding.
    noise: f64,
}

impl Mean {
    /// From the value of each row.
    pub fn new(value: Vec<f64>) -> Self {
        Self { value, noise: 0.0 }
    }

    fn center(&mut self) -> f64 {
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
    terms: Vec<[f64; 2]>,
    /// Sums of squares up to this are rounding.
    noise: f64,
}

impl Ratio {
    /// From w a and w d of each row.
    pub fn new(terms: Vec<[f64; 2]>) -> Self {
        Self { terms, noise: 0.0 }
    }

    fn center(&mut self) -> f64 {
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
    units: Vec<[f64; 4]>,
    /// Counts of all units.
    total: [f64; 4],
    metric: Metric,
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
