//! Confidence laws of one group: numbers drawn as upper and lower limits of its value at a random level. Those of
//! two groups are melded (Fay, Proschan and Brittain, 2015): a lower limit of one less an upper limit of the other is
//! a lower limit of the difference, and how often it lies below a margin is a p-value.
//!
//! [`gaffke`] is for means of values with a known range, [`poisson_binomial`] for the mean residual of events whose
//! probabilities are given but for a shift of their logits.

mod curve;
pub mod gaffke;
pub mod poisson_binomial;

/// Limits of the value of a group, one of each kind by replicate.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Upper limits: the quantile at 1 - alpha is one of confidence 1 - alpha.
    pub upper: Vec<f64>,
    /// Lower limits: the quantile at alpha is one of confidence 1 - alpha.
    pub lower: Vec<f64>,
}

impl Limits {
    fn of(pairs: Vec<(f64, f64)>) -> Self {
        let (upper, lower) = pairs.into_iter().unzip();
        Self { upper, lower }
    }
}
