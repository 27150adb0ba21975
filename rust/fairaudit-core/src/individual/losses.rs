//! The losses of a row, and how they grow with its score.
//!
//! A loss of one score f and a target is a function g of n = side f - shift: labels (0 and 1) have
//! side -1 and 1 for 1 and 0, so that n is the margin of the wrong decision; numbers have n = f - y.
//! Several scores, one for each class, have the multinomial log loss, -log softmax(f)_y.

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::numerics::exponential::{exp_of_negative, sigmoid, softplus};

/// The loss that the flow makes larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The negative log-likelihood of a label, the score being its log-odds: softplus(n).
    Log,
    /// Rennie and Srebro (2005): n + 1/2 (n >= 0), (1 + n)^2 / 2 (-1 < n < 0), 0 (n <= -1).
    SmoothHinge,
    /// softplus(1 + n): positive everywhere.
    SoftplusHinge,
    /// (f - y)^2.
    Squared,
}

impl FromStr for Loss {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "log_loss" => Ok(Self::Log),
            "smooth_hinge" => Ok(Self::SmoothHinge),
            "softplus_hinge" => Ok(Self::SoftplusHinge),
            "squared" => Ok(Self::Squared),
            _ => Err(Error::argument("loss", name, "log_loss, smooth_hinge, softplus_hinge, squared")),
        }
    }
}

impl Loss {
    /// Refuses targets that the loss has no value for.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub fn check(self, targets: &[f64], n_scores: usize) -> Result<()> {
        if n_scores > 1 && self != Self::Log {
            return Err(Error::argument("loss", format!("{self:?}"), "log_loss for several scores"));
        }
        let labels = n_scores.max(2) as f64;
        let (fits, accepted) = match self {
            Self::Squared => (targets.iter().all(|y| y.is_finite()), "finite numbers".to_owned()),
            _ => (
                targets.iter().all(|&y| y >= 0.0 && y < labels && y.fract() == 0.0),
                format!("whole numbers from 0 to {}", labels - 1.0),
            ),
        };
        if fits { Ok(()) } else { Err(Error::argument("targets", "something else", &accepted)) }
    }

    /// Side and shift of a target.
    #[inline(always)]
    pub(crate) fn side(self, target: f64) -> (f64, f64) {
        match self {
            Self::Squared => (1.0, target),
            _ => (1.0 - 2.0 * target, 0.0),
        }
    }
}

/// A loss of one score, as a type: what loops over rows are compiled for.
pub(crate) trait Growth: Copy + Sync {
    /// g(n).
    fn value(self, n: f64) -> f64;

    /// g'(n).
    fn slope(self, n: f64) -> f64;
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Log;

impl Growth for Log {
    #[inline(always)]
    fn value(self, n: f64) -> f64 {
        softplus(n)
    }

    #[inline(always)]
    fn slope(self, n: f64) -> f64 {
        sigmoid(n)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SmoothHinge;

impl Growth for SmoothHinge {
    #[inline(always)]
    fn value(self, n: f64) -> f64 {
        let slope = self.slope(n);
        // n + 1/2 from 0 on, where the slope is 1.
        let beyond = if n > 0.0 { n } else { 0.0 };
        0.5 * slope * slope + beyond
    }

    #[inline(always)]
    fn slope(self, n: f64) -> f64 {
        let slope = if 1.0 + n < 0.0 { 0.0 } else { 1.0 + n };
        if slope > 1.0 { 1.0 } else { slope }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SoftplusHinge;

impl Growth for SoftplusHinge {
    #[inline(always)]
    fn value(self, n: f64) -> f64 {
        softplus(1.0 + n)
    }

    #[inline(always)]
    fn slope(self, n: f64) -> f64 {
        sigmoid(1.0 + n)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Squared;

impl Growth for Squared {
    #[inline(always)]
    fn value(self, n: f64) -> f64 {
        n * n
    }

    #[inline(always)]
    fn slope(self, n: f64) -> f64 {
        2.0 * n
    }
}

/// Runs an expression with the type of a loss of one score.
macro_rules! with_growth {
    ($loss:expr, $growth:ident => $body:expr) => {
        match $loss {
            $crate::individual::losses::Loss::Log => {
                let $growth = $crate::individual::losses::Log;
                $body
            }
            $crate::individual::losses::Loss::SmoothHinge => {
                let $growth = $crate::individual::losses::SmoothHinge;
                $body
            }
            $crate::individual::losses::Loss::SoftplusHinge => {
                let $growth = $crate::individual::losses::SoftplusHinge;
                $body
            }
            $crate::individual::losses::Loss::Squared => {
                let $growth = $crate::individual::losses::Squared;
                $body
            }
        }
    };
}
pub(crate) use with_growth;

/// Replaces the scores of some rows, class by class, by the slopes of the multinomial log loss:
/// softmax(f) - `e_y`, with the entry of y as minus the sum of the others. `class` holds y.
#[inline(always)]
pub(crate) fn softmax_slopes<const LANES: usize>(scores: &mut [[f64; LANES]], class: &[f64; LANES]) {
    let mut largest = [f64::NEG_INFINITY; LANES];
    for score in scores.iter() {
        for lane in 0..LANES {
            largest[lane] = if score[lane] > largest[lane] { score[lane] } else { largest[lane] };
        }
    }
    let mut total = [0.0; LANES];
    for score in scores.iter_mut() {
        for lane in 0..LANES {
            score[lane] = exp_of_negative(score[lane] - largest[lane]);
            total[lane] += score[lane];
        }
    }
    let mut others = [0.0; LANES];
    for (c, score) in scores.iter_mut().enumerate() {
        for lane in 0..LANES {
            let chance = if class[lane] == c as f64 { 0.0 } else { score[lane] / total[lane] };
            score[lane] = chance;
            others[lane] += chance;
        }
    }
    for (c, score) in scores.iter_mut().enumerate() {
        for lane in 0..LANES {
            score[lane] = if class[lane] == c as f64 { -others[lane] } else { score[lane] };
        }
    }
}

/// -log softmax(f)_y for the scores `score(c)` of `n_classes`, to full relative precision where it
/// is small.
pub(crate) fn softmax_loss(n_classes: usize, class: usize, score: impl Fn(usize) -> f64) -> f64 {
    let first = |best: usize, c: usize| if score(c) > score(best) { c } else { best };
    let best = (0..n_classes).fold(class, first);
    let others = (0..n_classes).filter(|&c| c != best).map(|c| libm::exp(score(c) - score(best))).sum();
    (score(best) - score(class)) + libm::log1p(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_derivatives_of_values() {
        for loss in [Loss::Log, Loss::SmoothHinge, Loss::SoftplusHinge, Loss::Squared] {
            for i in -40..40 {
                let n = 0.1 * f64::from(i) + 0.03;
                let (rise, slope) = with_growth!(loss, g => (g.value(n + 1e-6) - g.value(n - 1e-6), g.slope(n)));
                assert!((rise / 2e-6 - slope).abs() < 1e-8 * (1.0 + slope.abs()), "{loss:?} at {n}");
            }
        }
        assert!(SmoothHinge.slope(f64::NAN).is_nan() && SmoothHinge.value(f64::NAN).is_nan());
        assert_eq!((SmoothHinge.value(2.0), SmoothHinge.value(-0.5), SmoothHinge.value(-2.0)), (2.5, 0.125, 0.0));
    }

    #[test]
    fn two_classes_are_the_binary_loss() {
        for i in -30..30 {
            let f = f64::from(i) * 0.7;
            for class in [0.0, 1.0] {
                let mut slopes = [[0.0], [f]];
                softmax_slopes(&mut slopes, &[class]);
                let n = if class == 1.0 { -f } else { f };
                assert!((slopes[1][0].abs() / sigmoid(n) - 1.0).abs() < 1e-14);
                assert_eq!(slopes[0][0], -slopes[1][0]);
                let loss = softmax_loss(2, class as usize, |c| c as f64 * f);
                assert!((loss / softplus(n) - 1.0).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn targets_must_fit() {
        assert!(Loss::Log.check(&[0.0, 1.0], 1).is_ok());
        assert!(Loss::Log.check(&[0.0, 2.0], 1).is_err());
        assert!(Loss::Log.check(&[0.0, 2.0], 3).is_ok());
        assert!(Loss::Squared.check(&[0.5, f64::NAN], 1).is_err());
        assert!(Loss::Squared.check(&[0.5], 3).is_err());
        assert!(Loss::SmoothHinge.check(&[0.5], 1).is_err());
        assert_eq!("squared".parse(), Ok(Loss::Squared));
        assert!("hinge".parse::<Loss>().is_err());
    }
}
