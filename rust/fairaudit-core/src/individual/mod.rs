//! The individual lens: are similar people treated differently? (Maity et al., ICLR 2021)
//!
//! A gradient flow moves every row to where the loss of the model is larger, and is held back by
//! the squared fair distance from where it started; the ratio of the losses after and before is
//! the row's audit value. [`linear`] has the flow of linear models in closed coordinates,
//! [`kernel`] that of kernel models in blocked products, `losses` what grows, `path` what is audited on the way.

pub mod kernel;
pub mod linear;
mod losses;
mod moments;
mod panels;
mod path;

use std::str::FromStr;

use crate::bootstrap::{Replicates, of_rows};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::RowMetric;
use crate::metrics::row_sums::{Mean, Ratio};
use crate::parallel::Control;
use crate::simd::InstructionSet;
pub use losses::Loss;
pub use moments::{Moments, moments};
pub use path::{Audit, Flowed, PART, Path, audit_scores};

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

    /// Where the stages of a step lie in it, and how much each counts.
    pub fn stages(&self) -> (&'static [f64], &'static [f64]) {
        self.solver.stages()
    }

    /// Whether the first and the last of all steps are recorded: what an audit compares.
    ///
    /// # Errors
    /// [`Error::Argument`] where they are not.
    pub fn check_ends(&self) -> Result<()> {
        let ends = (self.record.first(), self.record.last());
        if ends == (Some(&0), Some(&self.lengths.len())) {
            return Ok(());
        }
        let accepted = format!("numbers of steps from 0 to {}, both included", self.lengths.len());
        Err(Error::argument("record", format!("{:?}", self.record), &accepted))
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

/// Scores of rows after each recorded step, and how far each row has moved after the last one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// For each recorded step and score, of these rows.
    pub scores: Vec<f64>,
    /// In the coordinates of [`linear::flow`] or of [`kernel::flow`], which are not the same.
    pub moved: Vec<f64>,
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
        RowMetric::Ratio(Ratio::new(numerator.iter().zip(denominator).map(|(&a, &d)| [a, d]).collect(), false))
    } else {
        RowMetric::Mean(Mean::new(numerator.to_vec(), false))
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

    #[test]
    fn replicates_are_of_the_mean() {
        let values: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i * 37 % 100) / 50.0).collect();
        let (mean, squares) = moments(&values, &Control::default()).unwrap();
        let draws = Draws { replicates: 0..4_000, seed: 1, series: 0 };
        let replicates = bootstrap(&values, None, &draws, &Control::default()).unwrap();
        let (center, spread) = moments(&replicates.values, &Control::default()).unwrap();
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
}
