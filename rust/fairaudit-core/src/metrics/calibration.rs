//! Calibration of scores in bins.

use super::Evaluation;
use crate::error::{Error, Result};

/// Expected calibration error: `ECE = sum_b |sum_{i in b} (y_i - s_i)| / n`.
///
/// A class is a pair of score and label; classes that share a bin are added before the
/// absolute value is taken, so that the resolution of the scores can be finer than the bins.
#[derive(Debug, Clone)]
pub struct Calibration {
    bin: Vec<u32>,
    score: Vec<f64>,
    pub(super) label: Vec<f64>,
    n_bins: usize,
}

impl Calibration {
    /// Bin, score and label (0 or 1) of each class.
    ///
    /// # Errors
    /// [`Error::Argument`] when the lengths differ or a score is not finite.
    pub fn new(bin: Vec<u32>, score: Vec<f64>, label: Vec<f64>) -> Result<Self> {
        if bin.len() != score.len() || bin.len() != label.len() {
            return Err(Error::argument("bin", format!("of length {}", bin.len()), "one entry per class"));
        }
        if let Some(bad) = score.iter().find(|value| !value.is_finite()) {
            return Err(Error::argument("score", bad, "finite numbers"));
        }
        let n_bins = bin.iter().map(|&b| b as usize + 1).max().unwrap_or(0);
        Ok(Self { bin, score, label, n_bins })
    }

    pub(super) fn evaluate(&self, counts: &[f64]) -> Evaluation {
        let mut residual = vec![0.0; self.n_bins];
        let mut rows = 0.0;
        for (k, &count) in counts.iter().enumerate() {
            residual[self.bin[k] as usize] += (self.label[k] - self.score[k]) * count;
            rows += count;
        }
        if rows == 0.0 {
            return Evaluation::UNDEFINED;
        }
        let value = residual.iter().map(|r| r.abs()).sum::<f64>() / rows;
        let mut variance = 0.0;
        for (k, &count) in counts.iter().enumerate() {
            let total = residual[self.bin[k] as usize];
            let sign = if total > 0.0 {
                1.0
            } else if total < 0.0 {
                -1.0
            } else {
                0.0
            };
            let influence = (sign * (self.label[k] - self.score[k]) - value) / rows;
            variance += influence * influence * count;
        }
        Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metric;
    use super::*;

    #[test]
    fn calibration_adds_within_bins_before_the_absolute_value() {
        let metric = Metric::Calibration(
            Calibration::new(
                vec![0, 0, 0, 0, 1, 1],
                vec![0.2, 0.2, 0.4, 0.4, 0.9, 0.9],
                vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
            )
            .unwrap(),
        );
        // bin 0: (2 - 0.2 * 5 - 0.4 * 5) = -1; bin 1: 3 - 0.9 * 4 = -0.6
        let evaluation = metric.evaluate(&[4.0, 1.0, 4.0, 1.0, 1.0, 3.0]);
        assert!((evaluation.value - 1.6 / 14.0).abs() < 1e-15);
    }
}
