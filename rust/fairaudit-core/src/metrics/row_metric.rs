//! One of the metrics of rows.

use super::auc::{Auc, RowFlags, WeightedAuc};
use super::row_sums::{Counts, Mean, Ratio};

/// A metric with the columns of its rows, in the order in which they are added up.
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
            Self::Mean(mean) => {
                let value = pick(&mean.value, rows);
                Self::Mean(Mean { value, corrected: mean.corrected, noise: mean.noise })
            }
            Self::Ratio(ratio) => {
                let terms = pick(&ratio.terms, rows);
                Self::Ratio(Ratio { terms, corrected: ratio.corrected, noise: ratio.noise })
            }
            Self::Counts(counts) => Self::Counts(Counts {
                units: pick(&counts.units, rows),
                total: counts.total,
                metric: counts.metric.clone(),
            }),
        }
    }
}
