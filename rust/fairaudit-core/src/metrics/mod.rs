//! Metrics: a value and its linearised variance, from the counts of a group or from its rows.
//!
//! [`Metric`] is of counts, [`RowMetric`] of rows: sums over them ([`row_sums`]) and ranks ([`auc`]).
//!
//! A metric is data. The registry in Python holds a formula over the confusion counts `tp`,
//! `fp`, `fn`, `tn`; [`Formula`] reads it, differentiates it and recognises quotients of two
//! sums, which have a faster evaluation and, when they are proportions, a pooled variance and
//! an exact test.

use std::collections::HashMap;

pub mod auc;
mod calibration;
mod formula;
mod row_metric;
pub mod row_sums;

pub use calibration::Calibration;
pub use formula::Formula;
pub use row_metric::RowMetric;
pub(crate) use row_metric::of_each_metric;

use auc::ranks;

/// Names of the confusion counts, in the order in which they are stored everywhere.
pub const COUNTS: [&str; 4] = ["tp", "fp", "fn", "tn"];

/// Value and linearised variance of a metric in one group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// theta, NaN when it is undefined (a zero denominator).
    pub value: f64,
    /// v = `sum_k` (d theta / d `c_k`)^2 `c_k`; means and ratios of rows have a factor n / (n - 1).
    pub variance: f64,
    /// Numerator of a quotient of sums, NaN for other metrics.
    pub numerator: f64,
    /// Denominator of a quotient of sums, NaN for other metrics.
    pub denominator: f64,
}

impl Evaluation {
    pub(crate) const UNDEFINED: Self =
        Self { value: f64::NAN, variance: f64::NAN, numerator: f64::NAN, denominator: f64::NAN };

    /// The same with a variance so many times as large.
    #[inline]
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { variance: self.variance * factor, ..self }
    }

    /// Whether the metric has a value in this group.
    #[inline]
    pub fn is_defined(&self) -> bool {
        !self.value.is_nan()
    }
}

/// A metric over the classes of a table (for confusion metrics: `tp`, `fp`, `fn`, `tn`).
#[derive(Debug, Clone)]
pub enum Metric {
    /// `sum_k a_k c_k / sum_k d_k c_k`.
    Fraction {
        /// The `a_k`.
        numerator: Vec<f64>,
        /// The `d_k`.
        denominator: Vec<f64>,
    },
    /// Any other formula over the four confusion counts.
    Formula(Formula),
    /// Expected calibration error over bins.
    Calibration(Calibration),
    /// Area under the ROC curve of scores with few values, in ascending order: class 2l holds the
    /// negative labels of the l-th value, class 2l + 1 the positive ones.
    Ranks {
        /// Number of values.
        levels: usize,
    },
    /// Several metrics over the confusion counts at once.
    Joint(Vec<Metric>),
}

impl Metric {
    /// Whether the metric is the share of the rows of a set that lie in a subset of it.
    pub fn is_proportion(&self) -> bool {
        match self {
            Self::Fraction { numerator, denominator } => numerator
                .iter()
                .zip(denominator)
                .all(|(&a, &d)| (d == 0.0 && a == 0.0) || (d == 1.0 && (a == 0.0 || a == 1.0))),
            _ => false,
        }
    }

    /// Number of classes that the metric is defined over.
    pub fn n_classes(&self) -> usize {
        match self {
            Self::Fraction { numerator, .. } => numerator.len(),
            Self::Formula(_) => COUNTS.len(),
            Self::Calibration(calibration) => calibration.label.len(),
            Self::Ranks { levels } => 2 * levels,
            Self::Joint(components) => components.first().map_or(0, Self::n_classes),
        }
    }

    /// Value and variance for the class counts of one group.
    #[inline]
    pub fn evaluate(&self, counts: &[f64]) -> Evaluation {
        match self {
            Self::Fraction { numerator, denominator } => fraction(numerator, denominator, counts),
            Self::Formula(formula) => formula.evaluate([counts[0], counts[1], counts[2], counts[3]]),
            Self::Calibration(calibration) => calibration.evaluate(counts),
            Self::Ranks { .. } => ranks(counts),
            // A joint criterion has no one value.
            Self::Joint(_) => Evaluation::UNDEFINED,
        }
    }

    /// What a group with these counts counts for in a stratum, the denominator of a share or its rows, and the rows that
    /// its variance is of.
    pub(crate) fn size(&self, counts: &[f64]) -> (f64, f64) {
        let inside = |k: usize| match self {
            Self::Fraction { denominator, .. } if self.is_proportion() => denominator[k],
            _ => 1.0,
        };
        let rows = counts.iter().enumerate().map(|(k, count)| inside(k) * count).sum();
        (rows, rows)
    }

    /// Whether the variance has a factor n / (n - 1).
    pub(crate) fn is_corrected(&self) -> bool {
        matches!(self, Self::Ranks { .. })
    }

    /// `psi_k` = d theta / d `c_k` at the counts of a group, of a metric over the confusion counts.
    pub(crate) fn influence(&self, counts: &[f64; 4]) -> Option<[f64; 4]> {
        match self {
            Self::Fraction { numerator, denominator } if numerator.len() == counts.len() => {
                let evaluation = fraction_value(numerator, denominator, counts);
                let psi = |k: usize| (numerator[k] - evaluation.value * denominator[k]) / evaluation.denominator;
                Some(std::array::from_fn(psi))
            }
            Self::Formula(formula) => Some(formula.gradient(*counts)),
            _ => None,
        }
    }

    /// As [`Metric::evaluate`], but a quotient of sums may leave its variance NaN: for
    /// statistics that do not use it.
    #[inline]
    pub(crate) fn evaluate_value(&self, counts: &[f64]) -> Evaluation {
        match self {
            Self::Fraction { numerator, denominator } => fraction_value(numerator, denominator, counts),
            other => other.evaluate(counts),
        }
    }
}

/// The value of a quotient of sums; its variance is left NaN.
#[inline]
fn fraction_value(numerator: &[f64], denominator: &[f64], counts: &[f64]) -> Evaluation {
    let (mut above, mut below) = (0.0, 0.0);
    for ((&a, &d), &count) in numerator.iter().zip(denominator).zip(counts) {
        above += a * count;
        below += d * count;
    }
    if below == 0.0 {
        return Evaluation::UNDEFINED;
    }
    Evaluation { value: above / below, variance: f64::NAN, numerator: above, denominator: below }
}

#[inline]
fn fraction(numerator: &[f64], denominator: &[f64], counts: &[f64]) -> Evaluation {
    let evaluation = fraction_value(numerator, denominator, counts);
    let (value, below) = (evaluation.value, evaluation.denominator);
    let mut variance = 0.0;
    for ((&a, &d), &count) in numerator.iter().zip(denominator).zip(counts) {
        let influence = (a - value * d) / below;
        variance += influence * influence * count;
    }
    Evaluation { variance, ..evaluation }
}

/// Groups classes that a metric does not tell apart: (new class of each class, merged metric).
///
/// Fewer classes are fewer draws in a replicate; the law of the metric is the same.
pub(crate) fn merge_classes(metric: &Metric) -> (Vec<usize>, Metric) {
    let Metric::Fraction { numerator, denominator } = metric else {
        return ((0..metric.n_classes()).collect(), metric.clone());
    };
    let mut merged: HashMap<(u64, u64), usize> = HashMap::new();
    let (mut above, mut below) = (Vec::new(), Vec::new());
    let map = numerator
        .iter()
        .zip(denominator)
        .map(|(&a, &d)| {
            *merged.entry((a.to_bits(), d.to_bits())).or_insert_with(|| {
                above.push(a);
                below.push(d);
                above.len() - 1
            })
        })
        .collect();
    (map, Metric::Fraction { numerator: above, denominator: below })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Formula {
        Formula::parse(text).unwrap()
    }

    #[test]
    fn variance_of_a_proportion_is_p_q_over_n() {
        let metric = parse("tp / (tp + fn)").to_metric();
        let evaluation = metric.evaluate(&[30.0, 5.0, 10.0, 7.0]);
        assert_eq!(evaluation.value, 0.75);
        assert!((evaluation.variance - 0.75 * 0.25 / 40.0).abs() < 1e-17);
        assert!(!metric.evaluate(&[0.0, 5.0, 0.0, 7.0]).is_defined());
    }

    #[test]
    fn classes_that_do_not_matter_are_merged() {
        let (map, metric) = merge_classes(&parse("tp / (tp + fn)").to_metric());
        assert_eq!(map, [0, 1, 2, 1]);
        assert_eq!(metric.evaluate(&[3.0, 8.0, 1.0]).value, 0.75);
    }
}
