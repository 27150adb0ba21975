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
//! Nearly all the time goes into two products, of the rows with the support vectors and of the
//! kernel's slopes with the support vectors, and into the exponentials between them: see
//! `panels` and [`exp2_of_negative`]. Both fuse multiplications with additions: processors without
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

use std::f64::consts::{LN_2, LOG2_E};
use std::ops::Range;

use super::losses::{Growth as _, softmax_slopes, with_growth};
use super::panels::{DEPTH, Lanes, Panels, ROWS};
use super::{Loss, Schedule, same_length};
use crate::error::{Error, Result};
use crate::numerics::exponential::exp2_of_negative;
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, Task};

/// Support vectors that are kept, if several classes need the values of their kernels twice.
const KEPT: usize = 4 * DEPTH;

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

/// How strongly what has moved is pulled back, in units of the features.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    /// 2 lambda times the eigenvalue of each eigenvector.
    pub pulls: &'a [f64],
    /// Orthonormal, one after the other.
    pub eigenvectors: &'a [f64],
    /// 2 lambda times the eigenvalue of everything orthogonal to them.
    pub rest: f64,
}

/// Rows and what the loss compares their scores with.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Row by row.
    pub features: &'a [f64],
    /// Labels, classes or numbers.
    pub targets: &'a [f64],
    /// Of the features: the flow runs in u = x / units.
    pub units: &'a [f64],
}

/// What the flow came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Scores after each recorded step, score by score, of all rows.
    pub scores: Vec<f64>,
    /// u - `u_0` after the last step, row by row.
    pub moved: Vec<f64>,
}

/// Moves every row along the flow.
///
/// # Errors
/// [`Error::Cancelled`], and [`Error::Argument`] when lengths do not fit together or the loss has
/// no value for a target.
pub fn flow(
    rows: Rows<'_>,
    loss: Loss,
    model: Model<'_>,
    metric: Metric<'_>,
    schedule: &Schedule,
    control: &Control,
) -> Result<Flow> {
    flow_by(InstructionSet::current()?, rows, loss, model, metric, schedule, control)
}

fn flow_by(
    instructions: InstructionSet,
    rows: Rows<'_>,
    loss: Loss,
    model: Model<'_>,
    metric: Metric<'_>,
    schedule: &Schedule,
    control: &Control,
) -> Result<Flow> {
    check(rows, loss, model, metric)?;
    let (expansion, pull) = (Expansion::new(model, rows.units.len()), Pull::new(metric, rows.units.len()));
    by_tiles(Job { rows, loss, expansion: &expansion, pull: &pull, schedule, control, instructions })
}

/// Nanoseconds that the flow takes on one core, roughly: twenty fused additions each, of which an
/// exponential is worth some more.
pub fn work(rows: Rows<'_>, model: Model<'_>, schedule: &Schedule) -> u64 {
    let (products, kernels) = (2 * model.support_vectors.len() as u64, model.dual_coef.len() as u64);
    let evaluations = (schedule.lengths.len() * schedule.solver.stages().0.len()).max(1) as u64;
    let row = products.saturating_add(kernels.saturating_mul(20)).saturating_mul(evaluations) / 20;
    row.saturating_mul(rows.targets.len() as u64)
}

fn check(rows: Rows<'_>, loss: Loss, model: Model<'_>, metric: Metric<'_>) -> Result<()> {
    let (width, n_scores) = (rows.units.len(), model.intercepts.len());
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
    same_length("eigenvectors", metric.eigenvectors.len(), metric.pulls.len() * width)?;
    loss.check(rows.targets, n_scores)
}

/// What all tiles share.
#[derive(Clone, Copy)]
struct Job<'a> {
    rows: Rows<'a>,
    loss: Loss,
    expansion: &'a Expansion,
    pull: &'a Pull,
    schedule: &'a Schedule,
    control: &'a Control,
    instructions: InstructionSet,
}

/// The flow in tiles of some rows; the bits of a row do not depend on their number.
fn by_tiles(job: Job<'_>) -> Result<Flow> {
    let n = job.rows.targets.len();
    let tiles = map_blocks(n, ROWS, job.control, |range| job.instructions.run(Tile::new(job, range)))?;
    let n_columns = job.schedule.record.len() * job.expansion.intercepts.len();
    let mut all = Flow { scores: vec![0.0; n * n_columns], moved: Vec::with_capacity(n * job.rows.units.len()) };
    for (i, tile) in tiles.into_iter().enumerate() {
        let size = ROWS.min(n - i * ROWS);
        for (column, part) in all.scores.chunks_exact_mut(n).zip(tile.scores.chunks_exact(size)) {
            column[i * ROWS..][..size].copy_from_slice(part);
        }
        all.moved.extend(tile.moved);
    }
    Ok(all)
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

/// A metric as the tiles read it: `pull(m) = rest m - from_coordinates (to_coordinates m)`.
struct Pull {
    rest: f64,
    /// Q'. Rows: features; columns: eigenvectors.
    to_coordinates: Panels,
    /// Q (rest - pulls). Rows: eigenvectors; columns: features.
    from_coordinates: Panels,
}

impl Pull {
    fn new(metric: Metric<'_>, width: usize) -> Self {
        let Metric { pulls, eigenvectors, rest } = metric;
        let less = |r: usize| rest - pulls[r];
        Self {
            rest,
            to_coordinates: Panels::new(width, pulls.len(), |i, r| eigenvectors[r * width + i]),
            from_coordinates: Panels::new(pulls.len(), width, |r, i| less(r) * eigenvectors[r * width + i]),
        }
    }
}

/// Some rows side by side.
struct Tile<'a> {
    job: Job<'a>,
    range: Range<usize>,
    /// x - centre: where the flow started, and where the model is looked at.
    start: Vec<Lanes>,
    place: Vec<Lanes>,
    /// The velocity; before that, sums of its gradient.
    speed: Vec<Lanes>,
    /// Of a chunk of support vectors: values of the kernel, and what they weigh in the gradient.
    values: Vec<Lanes>,
    weights: Vec<Lanes>,
    /// Scores without their intercepts, and derivatives of the loss by the scores.
    totals: Vec<Lanes>,
    slopes: Vec<Lanes>,
    /// Q'm.
    coordinates: Vec<Lanes>,
}

impl Task for Tile<'_> {
    type Output = Result<Flow>;

    #[inline(always)]
    fn run(mut self) -> Result<Flow> {
        self.flow()
    }
}

impl<'a> Tile<'a> {
    fn new(job: Job<'a>, range: Range<usize>) -> Self {
        let (width, expansion) = (job.rows.units.len(), job.expansion);
        let n_scores = expansion.intercepts.len();
        let chunk = if n_scores == 1 { DEPTH } else { KEPT }.min(expansion.vectors.padded());
        // What lies beyond the last row stands where the centre is.
        let zeros = |length: usize| vec![Lanes::ZERO; length];
        let mut start = zeros(width);
        for (lane, row) in range.clone().enumerate() {
            for i in 0..width {
                start[i].0[lane] = job.rows.features[row * width + i] - expansion.centre[i];
            }
        }
        Self {
            place: start.clone(),
            start,
            speed: zeros(expansion.features.padded()),
            values: zeros(if n_scores == 1 { 0 } else { chunk }),
            weights: zeros(chunk),
            totals: zeros(expansion.to_scores.padded()),
            slopes: zeros(n_scores),
            coordinates: zeros(job.pull.to_coordinates.padded()),
            job,
            range,
        }
    }

    /// All steps. The first stage of a step knows the scores after the step before.
    #[inline(always)]
    fn flow(&mut self) -> Result<Flow> {
        let Schedule { lengths, solver, record } = self.job.schedule;
        let (places, shares) = solver.stages();
        let width = self.start.len();
        let mut moved = vec![Lanes::ZERO; width];
        let (mut stage, mut mean) = (moved.clone(), moved.clone());
        let (mut scores, mut record) = (Vec::new(), record.iter().peekable());
        for t in 0..=lengths.len() {
            let (recorded, last) = (record.next_if_eq(&&t).is_some(), t == lengths.len());
            if last && !recorded {
                break;
            }
            for (i, &share) in shares.iter().enumerate() {
                self.evaluate(&stage, !last)?;
                if i == 0 && recorded {
                    self.push_scores(&mut scores);
                }
                if last {
                    break;
                }
                self.pull_back(&stage);
                let carried = if i == 0 { 0.0 } else { 1.0 };
                // To the next stage by its speed, or to the end of the step by the mean of all.
                let (by_speed, by_mean) =
                    places.get(i + 1).map_or((0.0, lengths[t]), |place| (place * lengths[t], 0.0));
                for (((speed, mean), stage), moved) in self.speed.iter().zip(&mut mean).zip(&mut stage).zip(&moved) {
                    for lane in 0..ROWS {
                        mean.0[lane] = carried * mean.0[lane] + share * speed.0[lane];
                        stage.0[lane] = moved.0[lane] + (by_speed * speed.0[lane] + by_mean * mean.0[lane]);
                    }
                }
            }
            moved.copy_from_slice(&stage);
        }
        let lanes = 0..self.range.len();
        Ok(Flow { scores, moved: lanes.flat_map(|lane| moved.iter().map(move |m| m.0[lane])).collect() })
    }

    /// Adds the scores of the rows at their place.
    fn push_scores(&self, scores: &mut Vec<f64>) {
        for (total, intercept) in self.totals.iter().zip(&self.job.expansion.intercepts) {
            scores.extend(total.0[..self.range.len()].iter().map(|total| total + intercept));
        }
    }

    /// The scores of the rows where they have moved to and, if they shall go on, the gradient of
    /// their losses there as `speed`.
    #[inline(always)]
    fn evaluate(&mut self, moved: &[Lanes], going: bool) -> Result<()> {
        let (job, expansion) = (self.job, self.job.expansion);
        let (n_vectors, width) = (expansion.offsets.len(), self.start.len());
        let single = self.slopes.len() == 1;
        let chunk_size = self.weights.len().max(1);
        let chunks = || (0..n_vectors).step_by(chunk_size).map(|first| first..n_vectors.min(first + chunk_size));
        let mut square = [0.0; ROWS];
        for (((place, start), moved), &unit) in self.place.iter_mut().zip(&self.start).zip(moved).zip(job.rows.units) {
            for lane in 0..ROWS {
                let x = unit.mul_add(moved.0[lane], start.0[lane]);
                place.0[lane] = x;
                square[lane] = x.mul_add(x, square[lane]);
            }
        }
        self.totals.fill(Lanes::ZERO);
        self.speed.fill(Lanes::ZERO);
        for chunk in chunks() {
            job.control.check()?;
            if single {
                self.apply_kernel::<true>(chunk.clone(), &square);
            } else {
                self.apply_kernel::<false>(chunk.clone(), &square);
                expansion.to_scores.add_product(
                    job.instructions,
                    chunk.clone(),
                    0..self.slopes.len(),
                    &self.values,
                    &mut self.totals,
                    true,
                );
            }
            if single && going {
                expansion.features.add_product(job.instructions, chunk, 0..width, &self.weights, &mut self.speed, true);
            }
        }
        if !going {
            return Ok(());
        }
        self.take_slopes();
        // Of the weights of all support vectors.
        let mut sum = if single { self.totals[0].0 } else { [0.0; ROWS] };
        if !single {
            for chunk in chunks() {
                job.control.check()?;
                if n_vectors > chunk_size {
                    self.apply_kernel::<false>(chunk.clone(), &square);
                }
                expansion.from_scores.add_product(
                    job.instructions,
                    0..self.slopes.len(),
                    chunk.clone(),
                    &self.slopes,
                    &mut self.values,
                    false,
                );
                for (weight, value) in self.weights.iter_mut().zip(&self.values).take(chunk.len()) {
                    for lane in 0..ROWS {
                        weight.0[lane] *= value.0[lane];
                        sum[lane] += weight.0[lane];
                    }
                }
                expansion.features.add_product(job.instructions, chunk, 0..width, &self.weights, &mut self.speed, true);
            }
        }
        self.finish_gradient(moved, &sum);
        Ok(())
    }

    /// Derivatives of the kernel between some support vectors and all rows as `weights`, and its
    /// values. A single score takes them as they come: it adds them up, and weighs the derivatives.
    #[inline(always)]
    fn apply_kernel<const SINGLE: bool>(&mut self, chunk: Range<usize>, square: &[f64; ROWS]) {
        let (job, expansion) = (self.job, self.job.expansion);
        let (weights, width) = (&mut self.weights, self.place.len());
        expansion.vectors.add_product(job.instructions, 0..width, chunk.clone(), &self.place, weights, false);
        let mut own = [0.0; ROWS];
        if let Function::Radial { gamma } = expansion.function {
            for lane in 0..ROWS {
                own[lane] = -gamma * LOG2_E * square[lane];
            }
        }
        let (mut total, mut unused) = (self.totals[0].0, Lanes::ZERO);
        for (at, j) in chunk.enumerate() {
            let factor = if SINGLE { expansion.dual_coef[j] } else { 1.0 };
            let offset = expansion.offsets[j];
            let weight = &mut self.weights[at].0;
            let value = &mut self.values.get_mut(at).unwrap_or(&mut unused).0;
            if let Function::Polynomial { degree, .. } = expansion.function {
                for lane in 0..ROWS {
                    value[lane] = weight[lane] + offset;
                }
                *weight = power(value, degree - 1);
                for lane in 0..ROWS {
                    value[lane] *= weight[lane];
                    weight[lane] *= factor;
                    total[lane] = factor.mul_add(value[lane], total[lane]);
                }
            } else {
                for lane in 0..ROWS {
                    let power = exp2_of_negative(weight[lane] + (offset + own[lane]));
                    if !SINGLE {
                        value[lane] = power;
                    }
                    weight[lane] = factor * power;
                    total[lane] += weight[lane];
                }
            }
        }
        if SINGLE {
            self.totals[0].0 = total;
        }
    }

    /// Derivatives of the losses by the scores.
    #[inline(always)]
    fn take_slopes(&mut self) {
        let Job { rows, loss, expansion, .. } = self.job;
        let mut targets = [0.0; ROWS];
        targets[..self.range.len()].copy_from_slice(&rows.targets[self.range.clone()]);
        for ((slope, total), intercept) in self.slopes.iter_mut().zip(&self.totals).zip(&expansion.intercepts) {
            let intercept = *intercept;
            for lane in 0..ROWS {
                slope.0[lane] = total.0[lane] + intercept;
            }
        }
        if let [slope] = &mut self.slopes[..] {
            with_growth!(loss, growth => for lane in 0..ROWS {
                let (side, shift) = loss.side(targets[lane]);
                slope.0[lane] = side * growth.slope(side * slope.0[lane] - shift);
            });
        } else {
            let mut slopes: Vec<[f64; ROWS]> = self.slopes.iter().map(|slope| slope.0).collect();
            softmax_slopes(&mut slopes, &targets);
            self.slopes.iter_mut().zip(slopes).for_each(|(slope, new)| slope.0 = new);
        }
    }

    /// From the weighted sums of the support vectors to the gradient by u, less `rest m`.
    #[inline(always)]
    fn finish_gradient(&mut self, moved: &[Lanes], sum: &[f64; ROWS]) {
        let (by_vectors, by_place) = match self.job.expansion.function {
            Function::Radial { gamma } => (LN_2, -2.0 * gamma),
            Function::Polynomial { degree, .. } => (f64::from(degree), 0.0),
            Function::Linear => (1.0, 0.0),
        };
        // Weights of several scores have the slopes inside.
        let slope = if let [slope] = &self.slopes[..] { slope.0 } else { [1.0; ROWS] };
        let rest = self.job.pull.rest;
        let places = self.speed.iter_mut().zip(&self.place).zip(moved).zip(self.job.rows.units);
        for (((speed, place), moved), &unit) in places {
            for lane in 0..ROWS {
                let gradient = by_vectors * speed.0[lane] + by_place * sum[lane] * place.0[lane];
                speed.0[lane] = unit * slope[lane] * gradient - rest * moved.0[lane];
            }
        }
    }

    /// Gives back to the speed what the metric does not pull along its eigenvectors.
    #[inline(always)]
    fn pull_back(&mut self, moved: &[Lanes]) {
        let (instructions, pull) = (self.job.instructions, self.job.pull);
        let (width, rank) = (moved.len(), self.job.pull.to_coordinates.n_columns);
        pull.to_coordinates.add_product(instructions, 0..width, 0..rank, moved, &mut self.coordinates, false);
        pull.from_coordinates.add_product(instructions, 0..rank, 0..width, &self.coordinates, &mut self.speed, true);
    }
}

/// `base^exponent`, by squares.
#[inline(always)]
fn power(base: &[f64; ROWS], exponent: u32) -> [f64; ROWS] {
    let (mut power, mut square, mut left) = ([1.0; ROWS], *base, exponent);
    while left > 0 {
        for lane in 0..ROWS {
            power[lane] *= if left & 1 == 1 { square[lane] } else { 1.0 };
            square[lane] *= square[lane];
        }
        left >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Solver;
    use super::*;

    const FUNCTIONS: [Function; 3] = [
        Function::Radial { gamma: 0.15 },
        Function::Polynomial { gamma: 0.2, degree: 3, coef0: 0.7 },
        Function::Linear,
    ];

    /// Everything that a flow needs.
    struct Example {
        features: Vec<f64>,
        targets: Vec<f64>,
        units: Vec<f64>,
        support_vectors: Vec<f64>,
        dual_coef: Vec<f64>,
        intercepts: Vec<f64>,
        pulls: Vec<f64>,
        eigenvectors: Vec<f64>,
        function: Function,
        loss: Loss,
    }

    /// Numbers between -1 and 1.
    fn numbers(n: usize, seed: usize) -> Vec<f64> {
        (0..n).map(|i| ((i + 37 * seed) * 7_919 % 1_009) as f64 / 504.5 - 1.0).collect()
    }

    impl Example {
        fn new(n: usize, width: usize, n_vectors: usize, n_scores: usize, function: Function, loss: Loss) -> Self {
            let target = |i: usize| match loss {
                Loss::Squared => i as f64 / 50.0,
                _ => (i * 31 % 7 % n_scores.max(2)) as f64,
            };
            // Two columns of a reflection.
            let v: Vec<f64> = (0..width).map(|i| 1.0 + i as f64).collect();
            let length: f64 = v.iter().map(|v| v * v).sum();
            let column = |r: usize| -> Vec<f64> {
                (0..width).map(|i| f64::from(u8::from(i == r)) - 2.0 * v[i] * v[r] / length).collect()
            };
            // Squares of powers would run away.
            let scale = if loss == Loss::Squared { 0.5 } else { 4.0 } / (n_vectors as f64).sqrt();
            Self {
                features: numbers(n * width, 1),
                targets: (0..n).map(target).collect(),
                units: (0..width).map(|i| 0.5 + 0.3 * i as f64).map(|unit| unit.min(1.5)).collect(),
                support_vectors: numbers(n_vectors * width, 2),
                dual_coef: numbers(n_scores * n_vectors, 3).iter().map(|a| scale * a).collect(),
                intercepts: numbers(n_scores, 4),
                pulls: vec![0.0, 3.0],
                eigenvectors: [column(0), column(1)].concat(),
                function,
                loss,
            }
        }

        fn run(&self, instructions: InstructionSet, schedule: &Schedule, control: &Control) -> Result<Flow> {
            let rows = Rows { features: &self.features, targets: &self.targets, units: &self.units };
            let model = Model {
                support_vectors: &self.support_vectors,
                dual_coef: &self.dual_coef,
                intercepts: &self.intercepts,
                function: self.function,
            };
            let metric = Metric { pulls: &self.pulls, eigenvectors: &self.eigenvectors, rest: 8.0 };
            flow_by(instructions, rows, self.loss, model, metric, schedule, control)
        }

        fn flow(&self, schedule: &Schedule) -> Flow {
            self.run(InstructionSet::current().unwrap(), schedule, &Control::default()).unwrap()
        }

        /// k(z, x) and its gradient by x.
        fn kernel(&self, z: &[f64], x: &[f64]) -> (f64, Vec<f64>) {
            let product: f64 = z.iter().zip(x).map(|(z, x)| z * x).sum();
            match self.function {
                Function::Radial { gamma } => {
                    let value = (-gamma * z.iter().zip(x).map(|(z, x)| (x - z).powi(2)).sum::<f64>()).exp();
                    (value, z.iter().zip(x).map(|(z, x)| -2.0 * gamma * value * (x - z)).collect())
                }
                Function::Polynomial { gamma, degree, coef0 } => {
                    let base = gamma * product + coef0;
                    let slope = f64::from(degree) * gamma * base.powi(degree as i32 - 1);
                    (base.powi(degree as i32), z.iter().map(|z| slope * z).collect())
                }
                Function::Linear => (product, z.to_vec()),
            }
        }

        /// Scores, and their gradients by x.
        fn scores(&self, x: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
            let n_vectors = self.support_vectors.len() / x.len();
            let mut scores = self.intercepts.clone();
            let mut gradients = vec![vec![0.0; x.len()]; scores.len()];
            for (j, z) in self.support_vectors.chunks_exact(x.len()).enumerate() {
                let (value, gradient) = self.kernel(z, x);
                for c in 0..scores.len() {
                    let factor = self.dual_coef[c * n_vectors + j];
                    scores[c] += factor * value;
                    gradients[c].iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += factor * g);
                }
            }
            (scores, gradients)
        }

        /// Derivatives of the loss by the scores.
        fn slopes(&self, scores: &[f64], target: f64) -> Vec<f64> {
            let sigmoid = |n: f64| 1.0 / (1.0 + (-n).exp());
            if scores.len() > 1 {
                let total: f64 = scores.iter().map(|f| f.exp()).sum();
                let chance = |(c, f): (usize, &f64)| f.exp() / total - f64::from(u8::from(target == c as f64));
                return scores.iter().enumerate().map(chance).collect();
            }
            let (f, sign) = (scores[0], 2.0 * target - 1.0);
            vec![match self.loss {
                Loss::Log => -sign * sigmoid(-sign * f),
                Loss::SmoothHinge => sign * (sign * f - 1.0).clamp(-1.0, 0.0),
                Loss::SoftplusHinge => -sign * sigmoid(1.0 - sign * f),
                Loss::Squared => 2.0 * (f - target),
            }]
        }

        /// Where a row is when it has moved.
        fn place(&self, row: usize, moved: &[f64]) -> Vec<f64> {
            let width = self.units.len();
            (0..width).map(|i| self.features[row * width + i] + self.units[i] * moved[i]).collect()
        }

        fn velocity(&self, row: usize, moved: &[f64]) -> Vec<f64> {
            let (scores, gradients) = self.scores(&self.place(row, moved));
            let slopes = self.slopes(&scores, self.targets[row]);
            let mut speed: Vec<f64> = moved.iter().map(|m| -8.0 * m).collect();
            for (pull, q) in self.pulls.iter().zip(self.eigenvectors.chunks_exact(moved.len())) {
                let along: f64 = q.iter().zip(moved).map(|(q, m)| q * m).sum();
                speed.iter_mut().zip(q).for_each(|(speed, q)| *speed -= (pull - 8.0) * along * q);
            }
            for (slope, gradient) in slopes.iter().zip(&gradients) {
                for i in 0..moved.len() {
                    speed[i] += self.units[i] * slope * gradient[i];
                }
            }
            speed
        }

        /// What a row has moved after all steps, by the platform's functions.
        fn plain(&self, row: usize, schedule: &Schedule) -> Vec<f64> {
            let ahead =
                |m: &[f64], h: f64, v: &[f64]| -> Vec<f64> { m.iter().zip(v).map(|(m, v)| m + h * v).collect() };
            let mut moved = vec![0.0; self.units.len()];
            for &h in &schedule.lengths {
                let first = self.velocity(row, &moved);
                moved = match schedule.solver {
                    Solver::Euler => ahead(&moved, h, &first),
                    Solver::Heun => {
                        let second = self.velocity(row, &ahead(&moved, h, &first));
                        ahead(&ahead(&moved, h / 2.0, &first), h / 2.0, &second)
                    }
                    Solver::Rk4 => {
                        let second = self.velocity(row, &ahead(&moved, h / 2.0, &first));
                        let third = self.velocity(row, &ahead(&moved, h / 2.0, &second));
                        let fourth = self.velocity(row, &ahead(&moved, h, &third));
                        let outer = ahead(&ahead(&moved, h / 6.0, &first), h / 6.0, &fourth);
                        ahead(&ahead(&outer, h / 3.0, &second), h / 3.0, &third)
                    }
                };
            }
            moved
        }

        /// Compares the recorded steps 0 and the last one of all rows with the plain flow.
        fn check(&self, schedule: &Schedule) {
            let (found, n, width) = (self.flow(schedule), self.targets.len(), self.units.len());
            let still = vec![0.0; width];
            for row in 0..n {
                let moved = self.plain(row, schedule);
                for (a, b) in found.moved[row * width..].iter().zip(&moved) {
                    assert!((a - b).abs() < 1e-11, "{:?} {:?}: {a} is not {b}", self.function, self.loss);
                }
                for (record, moved) in [&still, &moved].into_iter().enumerate() {
                    for (c, score) in self.scores(&self.place(row, moved)).0.iter().enumerate() {
                        let found = found.scores[(record * self.intercepts.len() + c) * n + row];
                        assert!((found - score).abs() < 1e-11 * score.abs().max(1.0), "{found} is not {score}");
                    }
                }
            }
        }
    }

    fn steps(n_steps: usize, solver: Solver) -> Schedule {
        Schedule::new(n_steps, 0.02, 0.3, solver, vec![0, n_steps]).unwrap()
    }

    #[test]
    fn it_is_the_flow_in_feature_space() {
        for function in FUNCTIONS {
            for loss in [Loss::Log, Loss::SmoothHinge, Loss::SoftplusHinge, Loss::Squared] {
                Example::new(37, 7, 13, 1, function, loss).check(&steps(20, Solver::Euler));
            }
            for solver in [Solver::Euler, Solver::Heun, Solver::Rk4] {
                Example::new(5, 6, 10, 1, function, Loss::Log).check(&steps(20, solver));
                Example::new(35, 6, 12, 3, function, Loss::Log).check(&steps(20, solver));
            }
            Example::new(3, 2, 4, 7, function, Loss::Log).check(&steps(20, Solver::Euler));
            Example::new(3, 2, 0, 1, function, Loss::Log).check(&steps(20, Solver::Euler));
        }
        let mut plain = Example::new(40, 5, 9, 1, FUNCTIONS[0], Loss::Log);
        (plain.units, plain.pulls, plain.eigenvectors) = (vec![1.0; 5], vec![], vec![]);
        plain.check(&steps(50, Solver::Euler));
    }

    #[test]
    fn large_models_go_in_chunks() {
        for function in FUNCTIONS {
            Example::new(3, 4, 2 * DEPTH + 3, 1, function, Loss::Log).check(&steps(3, Solver::Euler));
            Example::new(3, 4, KEPT + 7, 2, function, Loss::Log).check(&steps(3, Solver::Euler));
        }
        let wide = Function::Radial { gamma: 0.002 };
        Example::new(3, DEPTH + 3, 12, 2, wide, Loss::Log).check(&steps(3, Solver::Euler));
    }

    #[test]
    fn every_power_is_one() {
        for degree in [1, 2, 4, 5, 17, 100] {
            let function = Function::Polynomial { gamma: 0.01, degree, coef0: 0.97 };
            Example::new(4, 3, 6, 1, function, Loss::Log).check(&steps(10, Solver::Euler));
        }
    }

    #[test]
    fn solvers_of_a_higher_order_come_closer() {
        let example = Example::new(20, 4, 9, 1, FUNCTIONS[0], Loss::Log);
        let at = |solver, n_steps: usize| {
            example.flow(&Schedule::new(n_steps, 1.0 / n_steps as f64, 0.0, solver, vec![]).unwrap()).moved
        };
        let truth = at(Solver::Rk4, 2_000);
        let error =
            |solver, n_steps| at(solver, n_steps).iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        for (solver, order) in [(Solver::Euler, 1), (Solver::Heun, 2), (Solver::Rk4, 4)] {
            let ratio = error(solver, 80) / error(solver, 160);
            let expected = f64::from(1 << order);
            assert!((ratio / expected - 1.0).abs() < 0.2, "{solver:?}: {ratio}");
        }
    }

    #[test]
    fn neither_threads_nor_instruction_sets_nor_neighbours_change_a_bit() {
        let schedule = Schedule::new(6, 0.02, 0.3, Solver::Heun, vec![0, 2, 6]).unwrap();
        for (function, n_scores) in [(FUNCTIONS[0], 1), (FUNCTIONS[0], 3), (FUNCTIONS[1], 1), (FUNCTIONS[2], 2)] {
            let mut example = Example::new(70, 4, 23, n_scores, function, Loss::Log);
            let one = example.flow(&schedule);
            for instructions in InstructionSet::available() {
                assert_eq!(example.run(instructions, &schedule, &Control::with_threads(3)).unwrap(), one);
            }
            example.features.drain(..4 * 39);
            example.targets.drain(..39);
            assert_eq!(example.flow(&schedule).moved, one.moved[4 * 39..]);
        }
    }

    #[test]
    fn rows_that_run_away_stay_among_themselves() {
        let function = Function::Polynomial { gamma: 1.0, degree: 9, coef0: 1.0 };
        let mut example = Example::new(2, 3, 8, 1, function, Loss::Squared);
        example.features[..3].fill(0.0);
        let kept = Schedule::new(50, 1e-9, 0.0, Solver::Euler, vec![50]).unwrap();
        let alone = example.flow(&kept).moved;
        example.features[3..].fill(1e30);
        let found = example.flow(&kept);
        assert_eq!(found.moved[..3], alone[..3]);
        assert!(found.scores[0].is_finite() && !found.scores[1].is_finite());
        // Far from all support vectors nothing moves.
        let mut far = Example::new(1, 3, 8, 1, FUNCTIONS[0], Loss::Log);
        far.features.fill(1e8);
        assert_eq!(far.flow(&steps(5, Solver::Euler)).moved, [0.0; 3]);
        let none = Schedule::new(0, 0.1, 0.0, Solver::Heun, vec![0]).unwrap();
        assert_eq!(far.flow(&none), Flow { scores: far.intercepts.clone(), moved: vec![0.0; 3] });
    }

    #[test]
    fn it_can_be_stopped_in_the_middle_of_a_tile() {
        let example = Example::new(1, 4, 100, 1, FUNCTIONS[0], Loss::Log);
        let schedule = Schedule::new(100_000_000, 1e-9, 0.0, Solver::Euler, vec![]).unwrap();
        let control = Control::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                control.cancel();
            });
            let outcome = example.run(InstructionSet::current().unwrap(), &schedule, &control);
            assert_eq!(outcome, Err(Error::Cancelled));
        });
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let schedule = steps(1, Solver::Euler);
        let refused = |change: fn(&mut Example), text: &str| {
            let mut example = Example::new(2, 3, 4, 2, FUNCTIONS[0], Loss::Log);
            change(&mut example);
            let error = example.run(InstructionSet::Baseline, &schedule, &Control::default()).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        refused(|example| example.features.truncate(5), "features is of length 5");
        refused(|example| example.dual_coef.truncate(7), "dual_coef is of length 7");
        refused(|example| example.support_vectors.truncate(11), "support_vectors is of length 11");
        refused(|example| example.pulls.truncate(1), "eigenvectors is of length 6");
        refused(|example| example.intercepts.clear(), "intercepts is empty");
        refused(|example| example.units.clear(), "units is empty");
        refused(|example| example.targets[0] = 2.0, "targets is");
        refused(|example| example.loss = Loss::Squared, "log_loss for several scores");
        assert!(Function::new("sigmoid", 1.0, 3, 0.0).is_err());
        assert!(Function::new("rbf", 0.0, 3, 0.0).is_err());
        assert!(Function::new("polynomial", 1.0, 0, 0.0).is_err());
        assert_eq!(Function::new("linear", -1.0, 0, 0.0), Ok(Function::Linear));
    }
}
