//! The individual lens: are similar people treated differently? (Maity et al., ICLR 2021)
//!
//! A gradient flow moves every row to where the loss of the model is larger, and is held back by
//! the squared fair distance from where it started; the ratio of the losses after and before is
//! the row's audit value. [`linear`] has the flow of linear models in closed coordinates,
//! [`kernel`] that of kernel models in blocked products, `losses` what grows.

pub mod kernel;
pub mod linear;
mod losses;
mod panels;

use std::str::FromStr;

use crate::bootstrap::{Replicates, of_rows};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::RowMetric;
use crate::metrics::row_sums::{Mean, Ratio};
use crate::numerics::sums::FixedSum;
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, Task};
pub use losses::Loss;
use losses::{Growth, softmax_loss, with_growth};

/// Numbers that one task of an elementwise function works on.
const BLOCK: usize = 1 << 14;

/// How the flow is integrated; every solver takes one step of length `eta_t` for each t.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solver {
    /// Explicit Euler, the method of the paper.
    Euler,
    /// Heun's method of order two.
    Heun,
    /// The classical method of Runge and Kutta of order four.
    Rk4,
}

impl Solver {
    /// Where the stages lie in the step, and how much each counts.
    fn stages(self) -> (&'static [f64], &'static [f64]) {
        match self {
            Self::Euler => (&[0.0], &[1.0]),
            Self::Heun => (&[0.0, 1.0], &[0.5, 0.5]),
            Self::Rk4 => (&[0.0, 0.5, 0.5, 1.0], &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]),
        }
    }
}

impl FromStr for Solver {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "euler" => Ok(Self::Euler),
            "heun" => Ok(Self::Heun),
            "rk4" => Ok(Self::Rk4),
            _ => Err(Error::argument("solver", name, "euler, heun, rk4")),
        }
    }
}

/// The lengths of the steps, `eta_t = size / t^decay`, and when the flow is looked at.
#[derive(Debug, Clone)]
pub struct Schedule {
    lengths: Vec<f64>,
    solver: Solver,
    record: Vec<usize>,
}

impl Schedule {
    /// Of `n_steps` steps; `record` are the numbers of steps after which scores are kept, ascending.
    ///
    /// # Errors
    /// [`Error::Argument`] when the recorded steps are not ascending, or beyond the last one.
    pub fn new(n_steps: usize, size: f64, decay: f64, solver: Solver, record: Vec<usize>) -> Result<Self> {
        if !record.is_sorted_by(|a, b| a < b) || record.last().is_some_and(|&last| last > n_steps) {
            let accepted = format!("ascending numbers of steps up to {n_steps}");
            return Err(Error::argument("record", format!("{record:?}"), &accepted));
        }
        // Not the platform's power: steps decide about ratios.
        let length = |t: usize| if decay == 0.0 { size } else { size / libm::pow(t as f64, decay) };
        Ok(Self { lengths: (1..=n_steps).map(length).collect(), solver, record })
    }
}

/// Rows and what the loss compares their scores with.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Row by row.
    pub features: &'a [f64],
    /// Labels 0 and 1, numbers of classes, or numbers for the squared loss.
    pub targets: &'a [f64],
}

/// Scores of all rows after each recorded step, and how far each row has moved after the last one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// For each recorded step and score, of all rows.
    pub scores: Vec<f64>,
    /// In the coordinates of [`linear::flow`] or of [`kernel::flow`], which are not the same.
    pub moved: Vec<f64>,
}

/// The loss of every row; `scores` come score by score, one for each class with the multinomial log
/// loss. To full relative precision, however small.
///
/// # Errors
/// [`Error::Cancelled`], and [`Error::Argument`] when the lengths differ or the targets do not fit.
pub fn losses(scores: &[f64], targets: &[f64], loss: Loss, control: &Control) -> Result<Vec<f64>> {
    let n = targets.len();
    let n_scores = (scores.len() / n.max(1)).max(1);
    same_length("scores", scores.len(), n * n_scores)?;
    loss.check(targets, n_scores)?;
    let instructions = InstructionSet::current()?;
    let blocks = map_blocks(n, BLOCK, control, |range| {
        if n_scores > 1 {
            let of_row = |row: usize| softmax_loss(n_scores, targets[row] as usize, |c| scores[c * n + row]);
            return Ok(range.map(of_row).collect());
        }
        let mut losses = scores[range.clone()].to_vec();
        let targets = &targets[range];
        with_growth!(loss, growth => instructions.run(OneScore { losses: &mut losses, targets, loss, growth }));
        Ok(losses)
    })?;
    Ok(blocks.concat())
}

/// Turns scores into losses.
struct OneScore<'a, G> {
    losses: &'a mut [f64],
    targets: &'a [f64],
    loss: Loss,
    growth: G,
}

impl<G: Growth> Task for OneScore<'_, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (loss, &target) in self.losses.iter_mut().zip(self.targets) {
            let (side, shift) = self.loss.side(target);
            *loss = self.growth.value(side * *loss - shift);
        }
    }
}

/// Mean, and sum of the squared deviations from it; the order of the numbers does not matter to the
/// bits. NaN when a number is not finite, or there are none.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn moments(values: &[f64], control: &Control) -> Result<(f64, f64)> {
    // A pass over 10^8 numbers takes a tenth of a second or two: it is enough to look at the control between them.
    control.check()?;
    let bound = values.iter().fold(0.0f64, |bound, value| bound.max(value.abs()));
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return Ok((f64::NAN, f64::NAN));
    }
    let n = values.len();
    control.check()?;
    let mean = FixedSum::new(bound, n).with(values.iter().copied()).value() / n as f64;
    let square = |value: &f64| (value - mean) * (value - mean);
    control.check()?;
    let largest = values.iter().map(square).fold(0.0, f64::max);
    if !largest.is_finite() {
        return Ok((mean, f64::INFINITY));
    }
    control.check()?;
    Ok((mean, FixedSum::new(largest, n).with(values.iter().map(square)).value()))
}

/// Bootstrap replicates of a mean, or of a ratio of sums, with their linearised variances (of the
/// mean: `sum (r - mean)^2 / n^2`).
///
/// # Errors
/// [`Error::Cancelled`], and [`Error::Argument`] when the lengths differ.
pub fn bootstrap(
    numerator: &[f64],
    denominator: Option<&[f64]>,
    draws: &Draws,
    control: &Control,
) -> Result<Replicates> {
    let mut metric = if let Some(denominator) = denominator {
        same_length("denominator", denominator.len(), numerator.len())?;
        RowMetric::Ratio(Ratio::new(numerator.iter().zip(denominator).map(|(&a, &d)| [a, d]).collect()))
    } else {
        RowMetric::Mean(Mean::new(numerator.to_vec()))
    };
    let center = metric.center();
    let mut replicates = of_rows(&[metric], true, draws, InstructionSet::current()?, control)?;
    replicates.shift(center);
    Ok(replicates)
}

fn same_length(name: &str, length: usize, wanted: usize) -> Result<()> {
    if length == wanted {
        return Ok(());
    }
    Err(Error::argument(name, format!("of length {length}"), &format!("one of length {wanted}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> (f64, f64) {
        super::moments(values, &Control::default()).unwrap()
    }

    #[test]
    fn moments_do_not_depend_on_the_order() {
        let mut values: Vec<f64> = (0..999).map(|i| 1.0 + 1e-3 * f64::from(i * 7919 % 1000)).collect();
        let first = moments(&values);
        values.reverse();
        values.rotate_left(311);
        assert_eq!(moments(&values), first);
        assert_eq!(moments(&[1.0, 2.0, 6.0]), (3.0, 14.0));
        assert_eq!(moments(&[0.0, 0.0]), (0.0, 0.0));
        assert!(moments(&[1.0, f64::INFINITY]).0.is_nan());
        assert!(moments(&[]).0.is_nan());
        assert_eq!(moments(&[1e300, -1e300]), (0.0, f64::INFINITY));
    }

    #[test]
    fn replicates_are_of_the_mean() {
        let values: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i * 37 % 100) / 50.0).collect();
        let (mean, squares) = moments(&values);
        let draws = Draws { replicates: 0..4_000, seed: 1, series: 0 };
        let replicates = bootstrap(&values, None, &draws, &Control::default()).unwrap();
        let (center, spread) = moments(&replicates.values);
        assert!((center - mean).abs() < 5.0 * (squares / 1e4 / 4e3).sqrt());
        assert!((spread / 4e3 / (squares / 1e4) - 1.0).abs() < 0.1);
        let ones = vec![1.0; 100];
        let ratio = bootstrap(&values, Some(&ones), &draws, &Control::default()).unwrap();
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(ratio.values.iter().zip(&replicates.values).all(near));
        assert!(ratio.variances.iter().flatten().zip(replicates.variances.iter().flatten()).all(near));
        assert!(bootstrap(&values, Some(&[]), &draws, &Control::default()).is_err());
    }

    #[test]
    fn steps_shrink_by_their_power() {
        let schedule = Schedule::new(4, 0.02, 0.5, Solver::Euler, vec![0, 4]).unwrap();
        assert_eq!(schedule.lengths[3], 0.01);
        assert!(Schedule::new(4, 0.02, 0.5, Solver::Euler, vec![0, 5]).is_err());
        assert!(Schedule::new(4, 0.02, 0.5, Solver::Euler, vec![1, 1]).is_err());
    }

    #[test]
    fn losses_keep_their_digits_where_they_are_small() {
        let control = Control::default();
        let found = losses(&[40.0, -40.0, 0.0], &[1.0, 1.0, 0.0], Loss::Log, &control).unwrap();
        assert!((found[0] / (-40.0f64).exp() - 1.0).abs() < 1e-15);
        assert_eq!(found[1], 40.0);
        assert!((found[2] - std::f64::consts::LN_2).abs() < 2e-16);
        assert!(losses(&[1.0], &[], Loss::Log, &control).is_err());
        assert_eq!(losses(&[3.0, -1.0], &[1.0, 0.5], Loss::Squared, &control).unwrap(), [4.0, 2.25]);
        // Two rows, three classes: the first row is sure of its class.
        let found = losses(&[50.0, 0.0, 0.0, 0.0, 10.0, 0.0], &[0.0, 2.0], Loss::Log, &control).unwrap();
        assert!((found[0] / ((-40.0f64).exp() + (-50.0f64).exp()) - 1.0).abs() < 1e-15);
        assert!((found[1] - 3.0f64.ln()).abs() < 1e-15);
    }
}
