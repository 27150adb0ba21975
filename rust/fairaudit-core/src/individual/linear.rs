//! The flow of a linear model under the log loss, in the eigenbasis of the fair metric.
//!
//! Notation: lambda -> penalty, D = `sum_k mu_k P_k` -> metric (`P_k` projections), `gains[k]` =
//! `|P_k w|^2`, `pulls[k]` = 2 lambda `mu_k`, `eta_t` -> lengths.
//!
//! A row moves along the `P_k w` only, and with n = -s score (s = 1 for a positive label, -1 for
//! another) all labels follow the same equations: x - `x_0` = -s `sum_k c_k P_k w`,
//!
//! ```text
//! n = n_0 + sum_k gains[k] c_k,    dc_k = eta_t (sigma(n) - pulls[k] c_k),    loss = softplus(n).
//! ```
//!
//! A projection metric has two eigenvalues, so a step costs two numbers whatever the number of
//! features. Sixty-four rows go side by side.

use super::elementary::sigmoid;
use super::{Schedule, Solver, same_length};
use crate::error::Result;
use crate::parallel::{Control, map_blocks};
use crate::simd::{Kernel, Task};

/// Rows side by side.
const LANES: usize = 64;
/// Rows between two looks at the control.
const BLOCK: usize = 4 * LANES;
/// Sums of a dot product.
const PARTIAL: usize = 8;

type Lanes = [f64; LANES];

/// Rows, their labels, a linear model.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Row by row.
    pub features: &'a [f64],
    /// Whether the label is positive.
    pub positive: &'a [bool],
    /// Coefficients of the score.
    pub coef: &'a [f64],
    /// Intercept of the score.
    pub intercept: f64,
}

/// What the flow came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Scores of all rows after each recorded step.
    pub scores: Vec<f64>,
    /// c of all rows for each eigenvalue, after the last step: x - `x_0` = -s `sum_k c_k P_k w`.
    pub moved: Vec<f64>,
}

/// Moves every row along the flow; `pulls` and `gains` are one number for each eigenvalue of the
/// metric.
///
/// # Errors
/// [`crate::Error::Cancelled`], and [`crate::Error::Argument`] when lengths do not fit together.
pub fn flow(rows: Rows<'_>, pulls: &[f64], gains: &[f64], schedule: &Schedule, control: &Control) -> Result<Flow> {
    let (n, kernel) = (rows.positive.len(), Kernel::current()?);
    same_length("features", rows.features.len(), n * rows.coef.len())?;
    same_length("gains", gains.len(), pulls.len())?;
    let blocks = map_blocks(n, BLOCK, control, |range| {
        let mut tiles = Vec::new();
        for first in range.clone().step_by(LANES) {
            let last = range.end.min(first + LANES);
            let tile = Tile { rows, range: first..last, pulls, gains, schedule };
            tiles.push(kernel.run(tile));
            control.check()?;
        }
        Ok(tiles)
    })?;
    let mut all = Flow { scores: vec![0.0; n * schedule.record.len()], moved: vec![0.0; n * pulls.len()] };
    for (i, tile) in blocks.iter().flatten().enumerate() {
        let first = i * LANES;
        let size = LANES.min(n - first);
        for (whole, part) in [(&mut all.scores, &tile.0), (&mut all.moved, &tile.1)] {
            for (column, lanes) in whole.chunks_exact_mut(n).zip(part) {
                column[first..first + size].copy_from_slice(&lanes[..size]);
            }
        }
    }
    Ok(all)
}

/// Some rows side by side.
struct Tile<'a> {
    rows: Rows<'a>,
    range: std::ops::Range<usize>,
    pulls: &'a [f64],
    gains: &'a [f64],
    schedule: &'a Schedule,
}

impl Task for Tile<'_> {
    type Output = (Vec<Lanes>, Vec<Lanes>);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let (sign, start) = self.start();
        match (self.schedule.solver, self.pulls, self.gains) {
            (Solver::Euler, &[pull], &[gain]) => self.euler(&sign, &start, [pull], [gain]),
            (Solver::Euler, &[a, b], &[first, second]) => self.euler(&sign, &start, [a, b], [first, second]),
            (Solver::Euler, ..) => self.euler_of_many(&sign, &start),
            _ => self.by_stages(&sign, &start),
        }
    }
}

impl Tile<'_> {
    /// -s and `n_0`; what lies beyond the last row stands still.
    #[inline(always)]
    fn start(&self) -> (Lanes, Lanes) {
        let (mut sign, mut start) = ([-1.0; LANES], [0.0; LANES]);
        let width = self.rows.coef.len();
        for (lane, row) in self.range.clone().enumerate() {
            let score = dot(&self.rows.features[row * width..(row + 1) * width], self.rows.coef) + self.rows.intercept;
            sign[lane] = if self.rows.positive[row] { -1.0 } else { 1.0 };
            start[lane] = sign[lane] * score;
        }
        (sign, start)
    }

    /// Euler's method for few eigenvalues: all numbers of a row stay in registers during a step.
    #[inline(always)]
    fn euler<const K: usize>(
        &self,
        sign: &Lanes,
        start: &Lanes,
        pulls: [f64; K],
        gains: [f64; K],
    ) -> (Vec<Lanes>, Vec<Lanes>) {
        let mut moved = [[0.0; LANES]; K];
        let mut scores = Vec::with_capacity(self.schedule.record.len());
        let mut done = 0;
        for &until in self.schedule.record.iter().chain([&self.schedule.lengths.len()]) {
            for &length in &self.schedule.lengths[done..until] {
                let kept = pulls.map(|pull| 1.0 - length * pull);
                for lane in 0..LANES {
                    let mut n = start[lane];
                    for k in 0..K {
                        n += gains[k] * moved[k][lane];
                    }
                    let push = length * sigmoid(n);
                    for k in 0..K {
                        moved[k][lane] = kept[k] * moved[k][lane] + push;
                    }
                }
            }
            done = until;
            if scores.len() < self.schedule.record.len() {
                scores.push(score(sign, start, &gains, &moved));
            }
        }
        (scores, moved.to_vec())
    }

    /// Euler's method for any number of eigenvalues: the numbers are read once per step.
    #[inline(always)]
    fn euler_of_many(&self, sign: &Lanes, start: &Lanes) -> (Vec<Lanes>, Vec<Lanes>) {
        let mut moved = vec![[0.0; LANES]; self.pulls.len()];
        let mut scores = Vec::with_capacity(self.schedule.record.len());
        let mut record = self.schedule.record.iter().peekable();
        let mut n = *start;
        for t in 0..=self.schedule.lengths.len() {
            if t > 0 {
                let length = self.schedule.lengths[t - 1];
                let push = n.map(|n| length * sigmoid(n));
                n = *start;
                for ((&pull, gain), moved) in self.pulls.iter().zip(self.gains).zip(&mut moved) {
                    let kept = 1.0 - length * pull;
                    for lane in 0..LANES {
                        moved[lane] = kept * moved[lane] + push[lane];
                        n[lane] += gain * moved[lane];
                    }
                }
            }
            if record.next_if_eq(&&t).is_some() {
                scores.push(score(sign, start, self.gains, &moved));
            }
        }
        (scores, moved)
    }

    /// Any solver and number of eigenvalues.
    #[inline(always)]
    fn by_stages(&self, sign: &Lanes, start: &Lanes) -> (Vec<Lanes>, Vec<Lanes>) {
        let (places, shares) = self.schedule.solver.stages();
        let mut moved = vec![[0.0; LANES]; self.pulls.len()];
        let (mut stage, mut velocity) = (moved.clone(), moved.clone());
        let mut scores = Vec::with_capacity(self.schedule.record.len());
        let mut record = self.schedule.record.iter().peekable();
        for t in 0..=self.schedule.lengths.len() {
            if t > 0 {
                let length = self.schedule.lengths[t - 1];
                stage.copy_from_slice(&moved);
                for (i, &share) in shares.iter().enumerate() {
                    let mut push = margin(start, self.gains, &stage);
                    for n in &mut push {
                        *n = sigmoid(*n);
                    }
                    let next = length * places.get(i + 1).copied().unwrap_or(0.0);
                    let carried = if i == 0 { 0.0 } else { 1.0 };
                    for (k, &pull) in self.pulls.iter().enumerate() {
                        let (moved, stage, velocity) = (&moved[k], &mut stage[k], &mut velocity[k]);
                        for lane in 0..LANES {
                            let speed = push[lane] - pull * stage[lane];
                            velocity[lane] = carried * velocity[lane] + share * speed;
                            stage[lane] = moved[lane] + next * speed;
                        }
                    }
                }
                for (moved, velocity) in moved.iter_mut().zip(&velocity) {
                    for lane in 0..LANES {
                        moved[lane] += length * velocity[lane];
                    }
                }
            }
            if record.next_if_eq(&&t).is_some() {
                scores.push(score(sign, start, self.gains, &moved));
            }
        }
        (scores, moved)
    }
}

/// `n_0 + sum_k gains[k] c_k`.
#[inline(always)]
fn margin(start: &Lanes, gains: &[f64], moved: &[Lanes]) -> Lanes {
    let mut n = *start;
    for (gain, moved) in gains.iter().zip(moved) {
        for lane in 0..LANES {
            n[lane] += gain * moved[lane];
        }
    }
    n
}

#[inline(always)]
fn score(sign: &Lanes, start: &Lanes, gains: &[f64], moved: &[Lanes]) -> Lanes {
    let mut n = margin(start, gains, moved);
    for lane in 0..LANES {
        n[lane] *= sign[lane];
    }
    n
}

/// A dot product whose bits depend on the two vectors alone.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; PARTIAL];
    let (whole_a, rest_a) = a.as_chunks::<PARTIAL>();
    let (whole_b, rest_b) = b.as_chunks::<PARTIAL>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for j in 0..PARTIAL {
            sums[j] += a[j] * b[j];
        }
    }
    for (j, (a, b)) in rest_a.iter().zip(rest_b).enumerate() {
        sums[j] += a * b;
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 3;

    /// Rows, labels, coefficients.
    fn example(n: usize) -> (Vec<f64>, Vec<bool>, [f64; WIDTH]) {
        let features = (0..n * WIDTH).map(|i| ((i * 7919 % 1009) as f64 / 504.5 - 1.0) * 2.0).collect();
        (features, (0..n).map(|i| i * 31 % 7 < 3).collect(), [0.8, -1.5, 0.3])
    }

    fn run(n: usize, pulls: &[f64], gains: &[f64], schedule: &Schedule, threads: usize) -> Flow {
        let (features, positive, coef) = example(n);
        let rows = Rows { features: &features, positive: &positive, coef: &coef, intercept: 0.2 };
        flow(rows, pulls, gains, schedule, &Control::with_threads(threads)).unwrap()
    }

    /// Euler's method in feature space with D = diag(mu), by the platform's functions.
    fn plain(x_0: &[f64], positive: bool, coef: &[f64], mu: &[f64], n_steps: usize) -> Vec<f64> {
        let mut x = x_0.to_vec();
        for _ in 0..n_steps {
            let z: f64 = 0.2 + x.iter().zip(coef).map(|(x, w)| x * w).sum::<f64>();
            let slope = 1.0 / (1.0 + (-z).exp()) - f64::from(u8::from(positive));
            for j in 0..WIDTH {
                x[j] += 0.01 * (slope * coef[j] - 2.0 * 5.0 * mu[j] * (x[j] - x_0[j]));
            }
        }
        x
    }

    #[test]
    fn it_is_the_flow_in_feature_space() {
        for mu in [[0.0, 1.0, 1.0], [0.5, 1.0, 3.0], [1.0, 1.0, 1.0]] {
            let n = 131;
            let (features, positive, coef) = example(n);
            let pulls = mu.map(|mu| 2.0 * 5.0 * mu);
            let gains = coef.map(|w| w * w);
            let schedule = Schedule::new(300, 0.01, 0.0, Solver::Euler, vec![0, 300]).unwrap();
            let found = run(n, &pulls, &gains, &schedule, 1);
            for row in 0..n {
                let x = plain(&features[row * WIDTH..][..WIDTH], positive[row], &coef, &mu, 300);
                let sign = if positive[row] { -1.0 } else { 1.0 };
                for j in 0..WIDTH {
                    let moved = features[row * WIDTH + j] + sign * found.moved[j * n + row] * coef[j];
                    assert!((moved - x[j]).abs() < 1e-12);
                }
                let z: f64 = 0.2 + x.iter().zip(&coef).map(|(x, w)| x * w).sum::<f64>();
                assert!((found.scores[n + row] - z).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn few_eigenvalues_are_a_case_of_many() {
        let schedule = Schedule::new(200, 0.02, 0.3, Solver::Euler, vec![0, 50, 200]).unwrap();
        let two = run(100, &[0.0, 10.0], &[0.64, 2.34], &schedule, 1);
        let three = run(100, &[0.0, 10.0, 10.0], &[0.64, 2.25, 0.09], &schedule, 1);
        for (a, b) in two.scores.iter().zip(&three.scores) {
            assert!((a - b).abs() < 1e-12);
        }
        let still = run(100, &[], &[], &schedule, 1);
        assert_eq!(still.scores[..100], still.scores[200..]);
    }

    #[test]
    fn solvers_of_a_higher_order_come_closer() {
        let at = |solver, n_steps: usize| {
            let schedule = Schedule::new(n_steps, 2.0 / n_steps as f64, 0.0, solver, vec![n_steps]).unwrap();
            run(64, &[0.0, 4.0], &[1.0, 2.0], &schedule, 1).scores
        };
        let truth = at(Solver::Rk4, 4000);
        let error =
            |solver, n_steps| at(solver, n_steps).iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        for (solver, order) in [(Solver::Euler, 1), (Solver::Heun, 2), (Solver::Rk4, 4)] {
            let ratio = error(solver, 40) / error(solver, 80);
            let expected = f64::from(1 << order);
            assert!((ratio / expected - 1.0).abs() < 0.2, "{solver:?}: {ratio}");
        }
    }

    #[test]
    fn neither_threads_nor_instruction_sets_change_a_bit() {
        let (features, positive, coef) = example(200);
        let rows = Rows { features: &features, positive: &positive, coef: &coef, intercept: 0.2 };
        for (pulls, gains, solver) in [
            (&[0.0, 10.0][..], &[0.64, 2.34][..], Solver::Euler),
            (&[0.0, 10.0, 3.0], &[0.64, 2.25, 0.09], Solver::Euler),
            (&[0.0, 10.0, 3.0], &[0.64, 2.25, 0.09], Solver::Rk4),
        ] {
            let schedule = Schedule::new(100, 0.02, 0.3, solver, vec![0, 10, 100]).unwrap();
            let one = run(200, pulls, gains, &schedule, 1);
            assert_eq!(run(200, pulls, gains, &schedule, 3), one);
            for kernel in Kernel::available() {
                let tile = Tile { rows, range: 64..128, pulls, gains, schedule: &schedule };
                let (scores, moved) = kernel.run(tile);
                assert_eq!(scores[2][..], one.scores[400 + 64..400 + 128]);
                assert_eq!(moved[1][..], one.moved[200 + 64..200 + 128]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let schedule = Schedule::new(1, 0.1, 0.0, Solver::Euler, vec![]).unwrap();
        let rows = Rows { features: &[1.0], positive: &[true], coef: &[1.0, 2.0], intercept: 0.0 };
        let error = flow(rows, &[], &[], &schedule, &Control::default()).unwrap_err();
        assert!(error.to_string().contains("features is of length 1"));
    }
}
