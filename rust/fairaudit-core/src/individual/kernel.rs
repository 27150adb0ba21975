//! The flow of kernel models, in blocked products with rows side by side.
//!
//! Notation: `z_j` -> `support_vectors`, A -> `dual_coef`, b -> intercepts, k -> [`Function`], u = x /
//! units, m = u - `u_0` -> moved, Q -> eigenvectors, pulls -> 2 lambda times their eigenvalues, rest
//! -> 2 lambda times that of everything orthogonal to Q, `eta_t` -> lengths.
//!
//! ```text
//! f_c(x) = sum_j A[c][j] k(z_j, x) + b_c,    dm = eta_t (grad_u loss(f(x), y) - pull(m)),
//! grad_u = units grad_x,    pull(m) = rest m + Q ((pulls - rest) Q'm).
//! ```
//!
//! Groups of features that are held on their simplex go back to it after each step, by the shortest way.
//!
//! Nearly all the time goes into two products, of the rows with the support vectors and of the
//! kernel's slopes with the support vectors, and into the exponentials between them: see
//! `panels` and [`exp2_of_negative`](crate::numerics::exponential::exp2_of_negative). Both fuse multiplications with additions: processors without
//! FMA get the same bits, many times slower.
//!
//! The radial kernel is taken in powers of two, with s = 2 gamma log2(e) inside the panels:
//!
//! ```text
//! log2 k(z, x) = s z.x - s/2 |z|^2 - s/2 |x|^2,    grad k(z, x) = k (ln(2) s z - 2 gamma x).
//! ```
//!
//! Support vectors and rows are centred at the median of the support vectors first, where these
//! differences cancel least and one far away does no harm.

mod simplex;
mod tile;

use std::f64::consts::LOG2_E;
use std::ops::Range;

use tile::Tile;

use super::panels::{Panels, ROWS};
use super::path::{Audit, Flowed, Walk};
use super::{Flow, Loss, Rows, Schedule, same_length};
use crate::error::{Error, Result};
use crate::parallel::Control;
use crate::simd::InstructionSet;

/// k(z, x), a function of the product of z and x or of their distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// exp(-gamma |x - z|^2).
    Radial {
        /// One over twice the squared width.
        gamma: f64,
    },
    /// (gamma x.z + coef0)^degree.
    Polynomial {
        /// Factor of the product.
        gamma: f64,
        /// A whole power.
        degree: u32,
        /// What is added to the product.
        coef0: f64,
    },
    /// x.z.
    Linear,
}

impl Function {
    /// By name, with those of the numbers that it uses.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that is none, and numbers that make no kernel.
    pub fn new(name: &str, gamma: f64, degree: u32, coef0: f64) -> Result<Self> {
        if name != "linear" && !(gamma > 0.0 && gamma.is_finite()) {
            return Err(Error::argument("gamma", gamma, "a finite number above 0"));
        }
        match name {
            "rbf" => Ok(Self::Radial { gamma }),
            "polynomial" if !(1..=100).contains(&degree) => {
                Err(Error::argument("degree", degree, "a whole number from 1 to 100"))
            }
            "polynomial" => Ok(Self::Polynomial { gamma, degree, coef0 }),
            "linear" => Ok(Self::Linear),
            _ => Err(Error::argument("kernel", name, "rbf, polynomial, linear")),
        }
    }
}

/// Scores `f_c(x) = sum_j A[c][j] k(z_j, x) + b_c`: one for two classes and for numbers.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    /// One after the other.
    pub support_vectors: &'a [f64],
    /// A, score by score.
    pub dual_coef: &'a [f64],
    /// b, one for each score.
    pub intercepts: &'a [f64],
    /// k.
    pub function: Function,
}

/// The fair metric and lambda, as the flow meets them: what has moved is pulled back. Eigenvectors are those of
/// u = x / units.
#[derive(Debug, Clone, Copy)]
pub struct Penalty<'a> {
    /// Of the features, one for each.
    pub units: &'a [f64],
    /// 2 lambda times the eigenvalue of each eigenvector.
    pub pulls: &'a [f64],
    /// Orthonormal, one after the other.
    pub eigenvectors: &'a [f64],
    /// 2 lambda times the eigenvalue of everything orthogonal to them.
    pub rest: f64,
}

/// Rows, a kernel model and a fair metric.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Features and targets.
    pub rows: Rows<'a>,
    /// What grows.
    pub loss: Loss,
    /// The scores.
    pub model: Model<'a>,
    /// What holds rows back.
    pub penalty: Penalty<'a>,
    /// Groups of features that stay at least 0 with a sum of 1: after each step rows go to the nearest such place.
    pub held: &'a [Vec<usize>],
}

impl Problem<'_> {
    /// Moves every row along the flow; [`Flow::moved`] is u - `u_0` after the last step, row by row: how far each
    /// feature moved, in its unit.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and [`Error::Argument`] when lengths do not fit together or the loss has
    /// no value for a target.
    pub fn flow(self, schedule: &Schedule, control: &Control) -> Result<Flow> {
        self.walk(InstructionSet::current()?, schedule, control, |walk| walk.flow(control))
    }

    /// Moves every row along the flow, and audits the model on the way; moved rows are as by [`Problem::flow`].
    ///
    /// # Errors
    /// As [`Problem::flow`], and when the first or the last step is not recorded.
    pub fn audit(self, schedule: &Schedule, audit: Audit, control: &Control) -> Result<Flowed> {
        schedule.check_ends()?;
        self.walk(InstructionSet::current()?, schedule, control, |walk| walk.audit(audit, control))
    }

    /// Nanoseconds that the flow takes on one core, roughly: twenty fused additions each, of which an
    /// exponential is worth some more.
    pub fn work(self, schedule: &Schedule) -> u64 {
        let (rows, model) = (self.rows, self.model);
        let (products, kernels) = (2 * model.support_vectors.len() as u64, model.dual_coef.len() as u64);
        let evaluations = (schedule.lengths.len() * schedule.solver.stages().0.len()).max(1) as u64;
        let row = products.saturating_add(kernels.saturating_mul(20)).saturating_mul(evaluations) / 20;
        row.saturating_mul(rows.targets.len() as u64)
    }

    fn walk<T>(
        self,
        instructions: InstructionSet,
        schedule: &Schedule,
        control: &Control,
        take: impl FnOnce(&Walk<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self { rows, loss, model, penalty, held } = self;
        check(rows, loss, model, penalty)?;
        let width = penalty.units.len();
        simplex::check(held, width)?;
        let (expansion, pull) = (&Expansion::new(model, width), &Pull::new(penalty, width));
        let job = Job { rows, loss, expansion, pull, units: penalty.units, held, schedule, control, instructions };
        let go = |range: Range<usize>| instructions.run(Tile::new(job, range));
        let (targets, n_scores, n_points) = (rows.targets, model.intercepts.len(), schedule.record.len());
        take(&Walk { targets, loss, n_scores, n_points, tile: ROWS, block: ROWS, width, by_row: true, go: &go })
    }
}

fn check(rows: Rows<'_>, loss: Loss, model: Model<'_>, penalty: Penalty<'_>) -> Result<()> {
    let (width, n_scores) = (penalty.units.len(), model.intercepts.len());
    if n_scores == 0 {
        return Err(Error::argument("intercepts", "empty", "one for each score"));
    }
    if width == 0 {
        return Err(Error::argument("units", "empty", "one for each feature"));
    }
    let n_vectors = model.dual_coef.len() / n_scores;
    same_length("features", rows.features.len(), rows.targets.len() * width)?;
    same_length("dual_coef", model.dual_coef.len(), n_scores * n_vectors)?;
    same_length("support_vectors", model.support_vectors.len(), n_vectors * width)?;
    same_length("eigenvectors", penalty.eigenvectors.len(), penalty.pulls.len() * width)?;
    loss.check(rows.targets, n_scores)
}

/// Rows, model, metric and schedule of one call; read by every tile.
#[derive(Clone, Copy)]
struct Job<'a> {
    rows: Rows<'a>,
    loss: Loss,
    expansion: &'a Expansion,
    pull: &'a Pull,
    /// Of the features.
    units: &'a [f64],
    /// Groups of features on their simplex.
    held: &'a [Vec<usize>],
    schedule: &'a Schedule,
    control: &'a Control,
    instructions: InstructionSet,
}

/// A model as the tiles read it: `k(z_j, x)` is a function of `scaled z_j . (x - centre)` +
/// `offsets[j]` (+ a number of the row).
struct Expansion {
    function: Function,
    centre: Vec<f64>,
    offsets: Vec<f64>,
    /// Rows: features; columns: scaled support vectors.
    vectors: Panels,
    /// Rows: scaled support vectors; columns: features.
    features: Panels,
    /// Score by score.
    dual_coef: Vec<f64>,
    /// Rows: support vectors; columns: scores.
    to_scores: Panels,
    /// Rows: scores; columns: support vectors.
    from_scores: Panels,
    intercepts: Vec<f64>,
}

impl Expansion {
    fn new(model: Model<'_>, width: usize) -> Self {
        let Model { support_vectors, dual_coef, intercepts, function } = model;
        let (n_scores, n_vectors) = (intercepts.len(), dual_coef.len() / intercepts.len());
        if function == Function::Linear {
            return Self::linear(model, width);
        }
        let mut points = support_vectors.to_vec();
        let mut centre = vec![0.0; width];
        if let Function::Radial { .. } = function {
            for i in 0..width {
                let mut column: Vec<f64> = (0..n_vectors).map(|j| points[j * width + i]).collect();
                column.sort_unstable_by(f64::total_cmp);
                centre[i] = column.get(n_vectors / 2).copied().unwrap_or(0.0);
                (0..n_vectors).for_each(|j| points[j * width + i] -= centre[i]);
            }
        }
        let square = |j: usize| points[j * width..(j + 1) * width].iter().map(|z| z * z).sum::<f64>();
        let (scale, offsets) = match function {
            Function::Radial { gamma } => {
                let scale = 2.0 * gamma * LOG2_E;
                (scale, (0..n_vectors).map(|j| -0.5 * scale * square(j)).collect())
            }
            Function::Polynomial { gamma, coef0, .. } => (gamma, vec![coef0; n_vectors]),
            Function::Linear => (1.0, vec![0.0; n_vectors]),
        };
        Self {
            function,
            offsets,
            centre,
            vectors: Panels::new(width, n_vectors, |i, j| scale * points[j * width + i]),
            features: Panels::new(n_vectors, width, |j, i| scale * points[j * width + i]),
            dual_coef: dual_coef.to_vec(),
            to_scores: Panels::new(n_vectors, n_scores, |j, c| dual_coef[c * n_vectors + j]),
            from_scores: Panels::new(n_scores, n_vectors, |c, j| dual_coef[c * n_vectors + j]),
            intercepts: intercepts.to_vec(),
        }
    }

    /// The coefficients of a linear score are its only support vector.
    fn linear(model: Model<'_>, width: usize) -> Self {
        let (n_scores, n_vectors) = (model.intercepts.len(), model.dual_coef.len() / model.intercepts.len());
        let mut coefs = vec![0.0; n_scores * width];
        for c in 0..n_scores {
            for j in 0..n_vectors {
                for i in 0..width {
                    coefs[c * width + i] += model.dual_coef[c * n_vectors + j] * model.support_vectors[j * width + i];
                }
            }
        }
        let identity: Vec<f64> =
            (0..n_scores * n_scores).map(|at| f64::from(u8::from(at / n_scores == at % n_scores))).collect();
        let function = Function::Polynomial { gamma: 1.0, degree: 1, coef0: 0.0 };
        Self::new(Model { support_vectors: &coefs, dual_coef: &identity, function, ..model }, width)
    }
}

/// A penalty as the tiles read it: `pull(m) = rest m - from_coordinates (to_coordinates m)`.
struct Pull {
    rest: f64,
    /// Q'. Rows: features; columns: eigenvectors.
    to_coordinates: Panels,
    /// Q (rest - pulls). Rows: eigenvectors; columns: features.
    from_coordinates: Panels,
}

impl Pull {
    fn new(penalty: Penalty<'_>, width: usize) -> Self {
        let Penalty { pulls, eigenvectors, rest, .. } = penalty;
        let less = |r: usize| rest - pulls[r];
        Self {
            rest,
            to_coordinates: Panels::new(width, pulls.len(), |i, r| eigenvectors[r * width + i]),
            from_coordinates: Panels::new(pulls.len(), width, |r, i| less(r) * eigenvectors[r * width + i]),
        }
    }
}

#[cfg(test)]
mod tests;
