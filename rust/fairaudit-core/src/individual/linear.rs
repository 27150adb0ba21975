//! The flow of a linear model, in the eigenbasis of the fair metric.
//!
//! Notation: lambda -> penalty, D = `sum_k mu_k P_k` -> metric (`P_k` projections), `gains[k]` =
//! `|P_k w|^2`, `pulls[k]` = 2 lambda `mu_k`, `eta_t` -> lengths.
//!
//! A row moves along the `P_k w` only, and with n = side score - shift (see `losses`) all targets
//! follow the same equations: x - `x_0` = side `sum_k c_k P_k w`,
//!
//! ```text
//! n = n_0 + sum_k gains[k] c_k,    dc_k = eta_t (g'(n) - pulls[k] c_k),    loss = g(n).
//! ```
//!
//! A projection metric has two eigenvalues, so a step costs two numbers whatever the number of
//! features. Sixty-four rows go side by side. With several scores, one for each class, n is that of
//! the scores, c has one number for each eigenvalue and class, and `gains[k]` is W `P_k` W'.

use std::ops::Range;

use super::losses::{Growth, Loss, softmax_slopes, with_growth};
use super::path::{Audit, Flowed, Walk};
use super::{Flow, Rows, Schedule, Solver, same_length};
use crate::error::{Error, Result};
use crate::parallel::Control;
use crate::simd::{InstructionSet, Task};

/// Rows of a tile, side by side.
const ROWS: usize = 64;
/// Rows between two looks at the control, unless they take many steps.
const BLOCK: usize = 4 * ROWS;
/// Steps between two looks at the control.
const STEPS: usize = 4096;
/// Sums of a dot product.
const PARTIAL: usize = 8;

/// A number of each row of a tile.
type TileColumn = [f64; ROWS];

/// Scores `coef x + intercepts`: one for two classes and for numbers.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    /// Coefficients, score by score.
    pub coef: &'a [f64],
    /// One for each score.
    pub intercepts: &'a [f64],
}

/// Rows, a linear model and a fair metric.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Features and targets.
    pub rows: Rows<'a>,
    /// What grows.
    pub loss: Loss,
    /// The scores.
    pub model: Model<'a>,
    /// 2 lambda times each eigenvalue of the metric.
    pub pulls: &'a [f64],
    /// One for each eigenvalue, or a matrix for several scores.
    pub gains: &'a [f64],
}

impl Problem<'_> {
    /// Moves every row along the flow; [`Flow::moved`] has `moved[k][c]` of all rows for each eigenvalue k and score c, with
    /// x - `x_0` = `sum_kc moved[k][c] P_k w_c` after the last step.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and [`crate::Error::Argument`] when lengths do not fit together.
    pub fn flow(self, schedule: &Schedule, control: &Control) -> Result<Flow> {
        self.walk(schedule, control, |walk| walk.flow(control))
    }

    /// Moves every row along the flow, and audits the model on the way; moved rows are as by [`Problem::flow`].
    ///
    /// # Errors
    /// As [`Problem::flow`], and when the first or the last step is not recorded.
    pub fn audit(self, schedule: &Schedule, audit: Audit, control: &Control) -> Result<Flowed> {
        schedule.check_ends()?;
        self.walk(schedule, control, |walk| walk.audit(audit, control))
    }

    /// Nanoseconds that the flow takes on one core, roughly.
    pub fn work(self, schedule: &Schedule) -> u64 {
        let numbers = (self.rows.targets.len() as u64).saturating_mul(2 + self.gains.len() as u64 / 2);
        numbers.saturating_mul(schedule.lengths.len() as u64) / 2
    }

    fn walk<T>(self, schedule: &Schedule, control: &Control, take: impl FnOnce(&Walk<'_>) -> Result<T>) -> Result<T> {
        let Self { rows, loss, model, pulls, gains } = self;
        let (n, n_scores) = (rows.targets.len(), model.intercepts.len());
        if n_scores == 0 {
            return Err(Error::argument("intercepts", "[]", "one for each score"));
        }
        let width = model.coef.len() / n_scores;
        same_length("coef", model.coef.len(), n_scores * width)?;
        same_length("features", rows.features.len(), n * width)?;
        same_length("gains", gains.len(), pulls.len() * n_scores * n_scores)?;
        loss.check(rows.targets, n_scores)?;
        let (job, instructions) = (Job { problem: self, width, schedule, control }, InstructionSet::current()?);
        let go = |range: Range<usize>| {
            if n_scores > 1 {
                return Ok(instructions.run(Tile { job, range, slopes: Softmax }));
            }
            with_growth!(loss, growth => Ok(instructions.run(Tile { job, range, slopes: OneScore(growth) })))
        };
        let moved = pulls.len() * n_scores;
        let n_points = schedule.record.len();
        let (targets, go) = (rows.targets, &go);
        take(&Walk { targets, loss, n_scores, n_points, tile: ROWS, block: BLOCK, width: moved, by_row: false, go })
    }
}

/// A problem and a schedule; read by every tile.
#[derive(Clone, Copy)]
struct Job<'a> {
    problem: Problem<'a>,
    width: usize,
    schedule: &'a Schedule,
    control: &'a Control,
}

/// Slopes of the losses of some rows, in place of their n.
trait Slopes: Copy + Sync {
    fn slopes(self, n: &mut [TileColumn], targets: &TileColumn);
}

/// A loss of one score.
#[derive(Clone, Copy)]
struct OneScore<G>(G);

impl<G: Growth> Slopes for OneScore<G> {
    #[inline(always)]
    fn slopes(self, n: &mut [TileColumn], _targets: &TileColumn) {
        for n in n.iter_mut().flatten() {
            *n = self.0.slope(*n);
        }
    }
}

/// The multinomial log loss.
#[derive(Clone, Copy)]
struct Softmax;

impl Slopes for Softmax {
    #[inline(always)]
    fn slopes(self, n: &mut [TileColumn], targets: &TileColumn) {
        softmax_slopes(n, targets);
    }
}

/// Some rows side by side.
struct Tile<'a, S> {
    job: Job<'a>,
    range: Range<usize>,
    slopes: S,
}

impl<G: Growth> Task for Tile<'_, OneScore<G>> {
    type Output = Flow;

    #[inline(always)]
    fn run(self) -> Flow {
        let start = self.start();
        match (self.job.schedule.solver, self.job.problem.pulls, self.job.problem.gains) {
            (Solver::Euler, &[pull], &[gain]) => self.euler(&start, [pull], [gain]),
            (Solver::Euler, &[a, b], &[first, second]) => self.euler(&start, [a, b], [first, second]),
            (Solver::Euler, ..) => self.euler_of_many(&start),
            _ => self.by_stages(&start),
        }
    }
}

impl Task for Tile<'_, Softmax> {
    type Output = Flow;

    #[inline(always)]
    fn run(self) -> Flow {
        self.by_stages(&self.start())
    }
}

/// Where rows stand at first.
struct Start {
    side: TileColumn,
    shift: TileColumn,
    targets: TileColumn,
    /// By score.
    n: Vec<TileColumn>,
}

impl<S: Slopes> Tile<'_, S> {
    /// What lies beyond the last row stands still.
    #[inline(always)]
    fn start(&self) -> Start {
        let Job { problem: Problem { rows, loss, model, .. }, width, .. } = self.job;
        let n_scores = model.intercepts.len();
        let mut start =
            Start { side: [1.0; ROWS], shift: [0.0; ROWS], targets: [0.0; ROWS], n: vec![[0.0; ROWS]; n_scores] };
        for (lane, row) in self.range.clone().enumerate() {
            let target = rows.targets[row];
            start.targets[lane] = target;
            if n_scores == 1 {
                (start.side[lane], start.shift[lane]) = loss.side(target);
            }
            let features = &rows.features[row * width..(row + 1) * width];
            for (c, n) in start.n.iter_mut().enumerate() {
                let score = dot(features, &model.coef[c * width..(c + 1) * width]) + model.intercepts[c];
                n[lane] = start.side[lane] * score - start.shift[lane];
            }
        }
        start
    }

    /// Columns without what lies beyond the last row.
    fn taken(&self, scores: Vec<TileColumn>, moved: Vec<TileColumn>) -> Flow {
        let n = self.range.len();
        let [scores, moved] = [scores, moved].map(|columns| match n {
            ROWS => columns.into_flattened(),
            _ => columns.iter().flat_map(|column| &column[..n]).copied().collect(),
        });
        Flow { scores, moved }
    }

    /// Any solver, number of eigenvalues and number of scores.
    #[inline(always)]
    fn by_stages(&self, start: &Start) -> Flow {
        let Job { problem: Problem { pulls, gains, .. }, schedule, control, .. } = self.job;
        let (places, shares) = schedule.solver.stages();
        let n_scores = start.n.len();
        let mut moved = vec![[0.0; ROWS]; pulls.len() * n_scores];
        let (mut stage, mut velocity, mut push) = (moved.clone(), moved.clone(), start.n.clone());
        let mut scores = Vec::with_capacity(schedule.record.len() * n_scores);
        let mut record = schedule.record.iter().peekable();
        for t in 0..=schedule.lengths.len() {
            if t % STEPS == 0 && control.check().is_err() {
                break;
            }
            if t > 0 {
                let length = schedule.lengths[t - 1];
                stage.copy_from_slice(&moved);
                for (i, &share) in shares.iter().enumerate() {
                    reach(start, gains, &stage, &mut push);
                    self.slopes.slopes(&mut push, &start.targets);
                    let next = length * places.get(i + 1).copied().unwrap_or(0.0);
                    let carried = if i == 0 { 0.0 } else { 1.0 };
                    for (k, (moved, (stage, velocity))) in
                        moved.iter().zip(stage.iter_mut().zip(&mut velocity)).enumerate()
                    {
                        let (pull, push) = (pulls[k / n_scores], &push[k % n_scores]);
                        for lane in 0..ROWS {
                            let speed = push[lane] - pull * stage[lane];
                            velocity[lane] = carried * velocity[lane] + share * speed;
                            stage[lane] = moved[lane] + next * speed;
                        }
                    }
                }
                for (moved, velocity) in moved.iter_mut().zip(&velocity) {
                    for lane in 0..ROWS {
                        moved[lane] += length * velocity[lane];
                    }
                }
            }
            if record.next_if_eq(&&t).is_some() {
                reach(start, gains, &moved, &mut push);
                scores.extend(push.iter().map(|n| score(start, n)));
            }
        }
        self.taken(scores, signed(start, moved))
    }
}

impl<G: Growth> Tile<'_, OneScore<G>> {
    /// Euler's method for few eigenvalues: all numbers of a row stay in registers during a step.
    #[inline(always)]
    fn euler<const K: usize>(&self, start: &Start, pulls: [f64; K], gains: [f64; K]) -> Flow {
        let Job { schedule, control, .. } = self.job;
        let (first, growth) = (start.n[0], self.slopes.0);
        let mut moved = [[0.0; ROWS]; K];
        let mut scores = Vec::with_capacity(schedule.record.len());
        let mut done = 0;
        for &until in schedule.record.iter().chain([&schedule.lengths.len()]) {
            for lengths in schedule.lengths[done..until].chunks(STEPS) {
                if control.check().is_err() {
                    break;
                }
                for &length in lengths {
                    let kept = pulls.map(|pull| 1.0 - length * pull);
                    for lane in 0..ROWS {
                        let mut n = first[lane];
                        for k in 0..K {
                            n += gains[k] * moved[k][lane];
                        }
                        let push = length * growth.slope(n);
                        for k in 0..K {
                            moved[k][lane] = kept[k] * moved[k][lane] + push;
                        }
                    }
                }
            }
            done = until;
            if scores.len() < schedule.record.len() {
                let mut n = [first];
                reach(start, &gains, &moved, &mut n);
                scores.push(score(start, &n[0]));
            }
        }
        self.taken(scores, signed(start, moved.to_vec()))
    }

    /// Euler's method for any number of eigenvalues: the numbers are read once per step.
    #[inline(always)]
    fn euler_of_many(&self, start: &Start) -> Flow {
        let Job { problem: Problem { pulls, gains, .. }, schedule, control, .. } = self.job;
        let growth = self.slopes.0;
        let mut moved = vec![[0.0; ROWS]; pulls.len()];
        let mut scores = Vec::with_capacity(schedule.record.len());
        let mut record = schedule.record.iter().peekable();
        let mut n = start.n[0];
        for t in 0..=schedule.lengths.len() {
            if t % STEPS == 0 && control.check().is_err() {
                break;
            }
            if t > 0 {
                let length = schedule.lengths[t - 1];
                let push = n.map(|n| length * growth.slope(n));
                n = start.n[0];
                for ((&pull, gain), moved) in pulls.iter().zip(gains).zip(&mut moved) {
                    let kept = 1.0 - length * pull;
                    for lane in 0..ROWS {
                        moved[lane] = kept * moved[lane] + push[lane];
                        n[lane] += gain * moved[lane];
                    }
                }
            }
            if record.next_if_eq(&&t).is_some() {
                scores.push(score(start, &n));
            }
        }
        self.taken(scores, signed(start, moved))
    }
}

/// `n = n_0 + sum_k gains[k] c_k`.
#[inline(always)]
fn reach(start: &Start, gains: &[f64], moved: &[TileColumn], n: &mut [TileColumn]) {
    n.copy_from_slice(&start.n);
    let n_scores = n.len();
    for (moved, gains) in moved.chunks_exact(n_scores).zip(gains.chunks_exact(n_scores * n_scores)) {
        for (n, gains) in n.iter_mut().zip(gains.chunks_exact(n_scores)) {
            for (moved, gain) in moved.iter().zip(gains) {
                for lane in 0..ROWS {
                    n[lane] += gain * moved[lane];
                }
            }
        }
    }
}

#[inline(always)]
fn score(start: &Start, n: &TileColumn) -> TileColumn {
    std::array::from_fn(|lane| start.side[lane] * (n[lane] + start.shift[lane]))
}

/// Along the coefficients, where c goes along the side of the row.
#[inline(always)]
fn signed(start: &Start, mut moved: Vec<TileColumn>) -> Vec<TileColumn> {
    for moved in &mut moved {
        for lane in 0..ROWS {
            moved[lane] *= start.side[lane];
        }
    }
    moved
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
    use super::super::losses::Log;
    use super::*;

    const WIDTH: usize = 3;

    /// Rows, labels, coefficients.
    fn example(n: usize) -> (Vec<f64>, Vec<f64>, [f64; WIDTH]) {
        let features = (0..n * WIDTH).map(|i| ((i * 7919 % 1009) as f64 / 504.5 - 1.0) * 2.0).collect();
        (features, (0..n).map(|i| f64::from(u8::from(i * 31 % 7 < 3))).collect(), [0.8, -1.5, 0.3])
    }

    fn run(n: usize, pulls: &[f64], gains: &[f64], schedule: &Schedule, threads: usize) -> Flow {
        let (features, targets, coef) = example(n);
        let (rows, model) =
            (Rows { features: &features, targets: &targets }, Model { coef: &coef, intercepts: &[0.2] });
        Problem { rows, loss: Loss::Log, model, pulls, gains }.flow(schedule, &Control::with_threads(threads)).unwrap()
    }

    /// The slope of a loss in its score, by the platform's functions.
    fn slope(loss: Loss, f: f64, y: f64) -> f64 {
        let side = 1.0 - 2.0 * y;
        match loss {
            Loss::Log => 1.0 / (1.0 + (-f).exp()) - y,
            Loss::SmoothHinge => side * (1.0 + side * f).clamp(0.0, 1.0),
            Loss::SoftplusHinge => side / (1.0 + (-1.0 - side * f).exp()),
            Loss::Squared => 2.0 * (f - y),
        }
    }

    /// Euler's method in feature space with D = diag(mu); `slopes` of the scores.
    fn plain(
        x_0: &[f64],
        coef: &[f64],
        intercepts: &[f64],
        mu: &[f64],
        n_steps: usize,
        slopes: impl Fn(&[f64]) -> Vec<f64>,
    ) -> (Vec<f64>, Vec<f64>) {
        let mut x = x_0.to_vec();
        let scores = |x: &[f64]| -> Vec<f64> {
            let products = coef.chunks(WIDTH).map(|w| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>());
            products.zip(intercepts).map(|(product, b)| product + b).collect()
        };
        for _ in 0..n_steps {
            let slopes = slopes(&scores(&x));
            for j in 0..WIDTH {
                let push: f64 = slopes.iter().enumerate().map(|(c, slope)| slope * coef[c * WIDTH + j]).sum();
                x[j] += 0.01 * (push - 2.0 * 5.0 * mu[j] * (x[j] - x_0[j]));
            }
        }
        let scores = scores(&x);
        (x, scores)
    }

    #[test]
    fn it_is_the_flow_in_feature_space() {
        for mu in [[0.0, 1.0, 1.0], [0.5, 1.0, 3.0], [1.0, 1.0, 1.0]] {
            for loss in [Loss::Log, Loss::SmoothHinge, Loss::SoftplusHinge, Loss::Squared] {
                let n = 131;
                let (features, mut targets, coef) = example(n);
                if loss == Loss::Squared {
                    targets.iter_mut().enumerate().for_each(|(i, y)| *y = (i % 11) as f64 / 3.0);
                }
                let n_steps = if loss == Loss::Squared { 30 } else { 300 };
                let (pulls, gains) = (mu.map(|mu| 2.0 * 5.0 * mu), coef.map(|w| w * w));
                let schedule = Schedule::new(n_steps, 0.01, 0.0, Solver::Euler, vec![0, n_steps]).unwrap();
                let (rows, model) =
                    (Rows { features: &features, targets: &targets }, Model { coef: &coef, intercepts: &[0.2] });
                let problem = Problem { rows, loss, model, pulls: &pulls, gains: &gains };
                let found = problem.flow(&schedule, &Control::default()).unwrap();
                for row in 0..n {
                    let x_0 = &features[row * WIDTH..][..WIDTH];
                    let slopes = |f: &[f64]| vec![slope(loss, f[0], targets[row])];
                    let (x, scores) = plain(x_0, &coef, &[0.2], &mu, n_steps, slopes);
                    for j in 0..WIDTH {
                        let moved = x_0[j] + found.moved[j * n + row] * coef[j];
                        assert!((moved - x[j]).abs() < 1e-12 * (1.0 + x[j].abs()), "{loss:?}");
                    }
                    assert!((found.scores[n + row] - scores[0]).abs() < 1e-12 * (1.0 + scores[0].abs()));
                }
            }
        }
    }

    /// Three classes and D = diag(mu): the projections are those on the coordinates.
    #[test]
    fn classes_follow_the_flow_in_feature_space() {
        let (mu, n, intercepts) = ([0.0, 0.7, 2.0], 100, [0.2, -0.1, 0.4]);
        let coef = [0.8, -1.5, 0.3, -0.2, 0.9, 1.1, 0.5, 0.4, -0.6];
        let (features, _, _) = example(n);
        let targets: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
        let rows = Rows { features: &features, targets: &targets };
        let model = Model { coef: &coef, intercepts: &intercepts };
        let pulls = mu.map(|mu| 2.0 * 5.0 * mu);
        let gain = |j: usize, c: usize, d: usize| coef[c * WIDTH + j] * coef[d * WIDTH + j];
        let gains: Vec<f64> = (0..27).map(|i| gain(i / 9, i / 3 % 3, i % 3)).collect();
        let schedule = Schedule::new(300, 0.01, 0.0, Solver::Euler, vec![0, 300]).unwrap();
        let problem = Problem { rows, loss: Loss::Log, model, pulls: &pulls, gains: &gains };
        let found = problem.flow(&schedule, &Control::default()).unwrap();
        for row in 0..n {
            let x_0 = &features[row * WIDTH..][..WIDTH];
            let slopes = |f: &[f64]| {
                let total: f64 = f.iter().map(|f| f.exp()).sum();
                let own = |c: usize| f64::from(u8::from(c as f64 == targets[row]));
                f.iter().enumerate().map(|(c, f)| f.exp() / total - own(c)).collect()
            };
            let (x, scores) = plain(x_0, &coef, &intercepts, &mu, 300, slopes);
            for j in 0..WIDTH {
                let moved = (0..3).map(|c| found.moved[(j * 3 + c) * n + row] * coef[c * WIDTH + j]).sum::<f64>();
                assert!((x_0[j] + moved - x[j]).abs() < 1e-12);
            }
            for c in 0..3 {
                assert!((found.scores[(3 + c) * n + row] - scores[c]).abs() < 1e-12);
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
        let (features, targets, coef) = example(200);
        let (rows, model) =
            (Rows { features: &features, targets: &targets }, Model { coef: &coef, intercepts: &[0.2] });
        let control = Control::default();
        for (pulls, gains, solver) in [
            (&[0.0, 10.0][..], &[0.64, 2.34][..], Solver::Euler),
            (&[0.0, 10.0, 3.0], &[0.64, 2.25, 0.09], Solver::Euler),
            (&[0.0, 10.0, 3.0], &[0.64, 2.25, 0.09], Solver::Rk4),
        ] {
            let schedule = Schedule::new(100, 0.02, 0.3, solver, vec![0, 10, 100]).unwrap();
            let one = run(200, pulls, gains, &schedule, 1);
            assert_eq!(run(200, pulls, gains, &schedule, 3), one);
            for instructions in InstructionSet::available() {
                let problem = Problem { rows, loss: Loss::Log, model, pulls, gains };
                let job = Job { problem, width: WIDTH, schedule: &schedule, control: &control };
                let tile = instructions.run(Tile { job, range: 64..128, slopes: OneScore(Log) });
                assert_eq!(tile.scores[2 * ROWS..], one.scores[400 + 64..400 + 128]);
                assert_eq!(tile.moved[ROWS..2 * ROWS], one.moved[200 + 64..200 + 128]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let schedule = Schedule::new(1, 0.1, 0.0, Solver::Euler, vec![]).unwrap();
        let rows = Rows { features: &[1.0], targets: &[1.0] };
        let model = Model { coef: &[1.0, 2.0], intercepts: &[0.0] };
        let refused = |rows, model| {
            let problem = Problem { rows, loss: Loss::Log, model, pulls: &[], gains: &[] };
            problem.flow(&schedule, &Control::default()).unwrap_err().to_string()
        };
        assert!(refused(rows, model).contains("features is of length 1"));
        assert!(refused(Rows { targets: &[0.5], ..rows }, Model { coef: &[1.0], ..model }).contains("targets"));
        assert!(refused(rows, Model { intercepts: &[], ..model }).contains("intercepts"));
    }
}
