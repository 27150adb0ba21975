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
//! kernel's slopes with the support vectors, and into the exponentials between them. Rows lie side
//! by side in the lanes of a tile; a panel of a few columns is held in registers against them, so
//! that each number of a panel is used for all lanes once it is read. Multiplications are fused
//! with additions: processors without FMA get the same bits, many times slower.
//!
//! The radial kernel is taken in powers of two, with s = 2 gamma log2(e) inside the panels:
//!
//! ```text
//! log2 k(z, x) = s z.x - s/2 |z|^2 - s/2 |x|^2,    grad k(z, x) = k (ln(2) s z - 2 gamma x).
//! ```
//!
//! Support vectors and rows are centred at the mean of the support vectors first, where these
//! differences cancel least.

use std::f64::consts::{LN_2, LOG2_E};
use std::ops::Range;

use super::elementary::exp2_of_negative;
use super::losses::{Growth as _, softmax_slopes, with_growth};
use super::{Loss, Schedule, same_length};
use crate::error::{Error, Result};
use crate::parallel::{Control, map_blocks};
use crate::simd::{Kernel, Task};

/// Rows side by side.
const ROWS: usize = 32;
/// Columns of a panel: times the registers of a row of lanes, they fill the registers.
const COLUMNS: usize = 5;
/// Numbers of a column that are used before the next panel takes its turn: the lanes stay in the
/// first cache.
const DEPTH: usize = 500;
/// Support vectors whose kernel values are kept, if several classes need them twice.
const KEPT: usize = 2_040;

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
    check(rows, loss, model, metric)?;
    let expansion = Expansion::new(model, rows.units.len());
    let pull = Pull::new(metric, rows.units.len());
    let kernel = Kernel::current()?;
    let job = Job { rows, loss, expansion: &expansion, pull: &pull, schedule, control, kernel };
    by_tiles(job)
}

fn check(rows: Rows<'_>, loss: Loss, model: Model<'_>, metric: Metric<'_>) -> Result<()> {
    let (width, n_scores) = (rows.units.len(), model.intercepts.len());
    if n_scores == 0 {
        return Err(Error::argument("intercepts", "empty", "one for each score"));
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
    kernel: Kernel,
}

/// The flow in tiles of some rows; the bits of a row do not depend on their number.
fn by_tiles(job: Job<'_>) -> Result<Flow> {
    let n = job.rows.targets.len();
    let tiles = map_blocks(n, ROWS, job.control, |range| job.kernel.run(Tile::new(job, range)))?;
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

/// A number of each row of a tile.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Lanes([f64; ROWS]);

impl Lanes {
    const ZERO: Self = Self([0.0; ROWS]);
}

/// A matrix, some columns side by side: panel by panel, row by row.
struct Panels {
    values: Vec<[f64; COLUMNS]>,
    n_rows: usize,
    n_columns: usize,
}

impl Panels {
    fn new(n_rows: usize, n_columns: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let column = |row, column| if column < n_columns { at(row, column) } else { 0.0 };
        let row = |first, row| std::array::from_fn(|c| column(row, first + c));
        let panel = |first| (0..n_rows).map(move |i| row(first, i));
        Self { values: (0..n_columns).step_by(COLUMNS).flat_map(panel).collect(), n_rows, n_columns }
    }

    /// Columns with those that fill the last panel.
    fn padded(&self) -> usize {
        self.n_columns.next_multiple_of(COLUMNS)
    }

    /// Adds `sum_i matrix[i][c] inputs[i]` to `outputs[c]`, for rows i from `rows`, the first of
    /// which has the first input, and columns c from `columns`, which are whole panels.
    #[inline(always)]
    fn add_product(
        &self,
        kernel: Kernel,
        rows: Range<usize>,
        columns: Range<usize>,
        inputs: &[Lanes],
        outputs: &mut [Lanes],
        adding: bool,
    ) {
        for first in rows.clone().step_by(DEPTH) {
            let last = rows.end.min(first + DEPTH);
            let inputs = &inputs[first - rows.start..last - rows.start];
            let panels = columns.start / COLUMNS..columns.end.div_ceil(COLUMNS);
            for (panel, outputs) in panels.zip(outputs.as_chunks_mut::<COLUMNS>().0) {
                let start = panel * self.n_rows;
                let adding = adding || first > rows.start;
                let panel = &self.values[start + first..start + last];
                match kernel {
                    Kernel::Avx512 => kernel.run(PanelProduct::<ROWS> { panel, inputs, outputs, adding }),
                    _ => kernel.run(PanelProduct::<8> { panel, inputs, outputs, adding }),
                }
            }
        }
    }
}

/// The product of a panel and its inputs, `PART` lanes after the other, added to outputs that stay
/// in registers meanwhile. A task of its own, its columns written out: the compiler keeps arrays in
/// registers where loops over them are short and functions small.
struct PanelProduct<'a, const PART: usize> {
    panel: &'a [[f64; COLUMNS]],
    inputs: &'a [Lanes],
    outputs: &'a mut [Lanes; COLUMNS],
    adding: bool,
}

impl<const PART: usize> Task for PanelProduct<'_, PART> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [a, b, c, d, e] = self.outputs;
        let mut outputs = [a, b, c, d, e].map(|output| output.0.as_chunks_mut::<PART>().0);
        for part in 0..ROWS / PART {
            let [mut a, mut b, mut c, mut d, mut e] =
                [0, 1, 2, 3, 4].map(|column: usize| if self.adding { outputs[column][part] } else { [0.0; PART] });
            for (factors, input) in self.panel.iter().zip(self.inputs) {
                let input = &input.0.as_chunks::<PART>().0[part];
                add_multiple(input, factors[0], &mut a);
                add_multiple(input, factors[1], &mut b);
                add_multiple(input, factors[2], &mut c);
                add_multiple(input, factors[3], &mut d);
                add_multiple(input, factors[4], &mut e);
            }
            for (output, sums) in outputs.iter_mut().zip([a, b, c, d, e]) {
                output[part] = sums;
            }
        }
    }
}

#[inline(always)]
fn add_multiple<const PART: usize>(input: &[f64; PART], factor: f64, sums: &mut [f64; PART]) {
    for lane in 0..PART {
        sums[lane] = input[lane].mul_add(factor, sums[lane]);
    }
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
                let total: f64 = (0..n_vectors).map(|j| points[j * width + i]).sum();
                centre[i] = if n_vectors == 0 { 0.0 } else { total / n_vectors as f64 };
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

/// A metric as the tiles read it.
struct Pull {
    /// rest - pulls.
    less: Vec<f64>,
    rest: f64,
    /// Rows: features; columns: eigenvectors.
    to_coordinates: Panels,
    /// Rows: eigenvectors; columns: features.
    from_coordinates: Panels,
}

impl Pull {
    fn new(metric: Metric<'_>, width: usize) -> Self {
        let Metric { pulls, eigenvectors, rest } = metric;
        Self {
            less: pulls.iter().map(|pull| rest - pull).collect(),
            rest,
            to_coordinates: Panels::new(width, pulls.len(), |i, r| eigenvectors[r * width + i]),
            from_coordinates: Panels::new(pulls.len(), width, |r, i| eigenvectors[r * width + i]),
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
        let chunk = if n_scores == 1 { DEPTH } else { KEPT.min(expansion.vectors.padded()) };
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
        let (mut stage, mut velocity) = (moved.clone(), moved.clone());
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
                let next = lengths[t] * places.get(i + 1).copied().unwrap_or(0.0);
                let carried = if i == 0 { 0.0 } else { 1.0 };
                for (((speed, velocity), stage), moved) in
                    self.speed.iter().zip(&mut velocity).zip(&mut stage).zip(&moved)
                {
                    for lane in 0..ROWS {
                        velocity.0[lane] = carried * velocity.0[lane] + share * speed.0[lane];
                        stage.0[lane] = moved.0[lane] + next * speed.0[lane];
                    }
                }
            }
            if !last {
                let length = lengths[t];
                for ((moved, velocity), stage) in moved.iter_mut().zip(&velocity).zip(&mut stage) {
                    for lane in 0..ROWS {
                        moved.0[lane] += length * velocity.0[lane];
                    }
                    *stage = *moved;
                }
            }
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
                    job.kernel,
                    chunk.clone(),
                    0..self.slopes.len(),
                    &self.values,
                    &mut self.totals,
                    true,
                );
            }
            if single && going {
                expansion.features.add_product(job.kernel, chunk, 0..width, &self.weights, &mut self.speed, true);
            }
        }
        if !going {
            return Ok(());
        }
        self.take_slopes();
        if !single {
            for chunk in chunks() {
                job.control.check()?;
                if n_vectors > chunk_size {
                    self.apply_kernel::<false>(chunk.clone(), &square);
                }
                expansion.from_scores.add_product(
                    job.kernel,
                    0..self.slopes.len(),
                    chunk.clone(),
                    &self.slopes,
                    &mut self.values,
                    false,
                );
                for (weight, value) in self.weights.iter_mut().zip(&self.values) {
                    for lane in 0..ROWS {
                        weight.0[lane] *= value.0[lane];
                    }
                }
                expansion.features.add_product(job.kernel, chunk, 0..width, &self.weights, &mut self.speed, true);
            }
        }
        self.finish_gradient(single);
        Ok(())
    }

    /// Derivatives of the kernel between some support vectors and all rows as `weights`, and its
    /// values. A single score takes them as they come: it adds them up, and weighs the derivatives.
    #[inline(always)]
    fn apply_kernel<const SINGLE: bool>(&mut self, chunk: Range<usize>, square: &[f64; ROWS]) {
        let (job, expansion) = (self.job, self.job.expansion);
        expansion.vectors.add_product(
            job.kernel,
            0..self.place.len(),
            chunk.clone(),
            &self.place,
            &mut self.weights,
            false,
        );
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

    /// From the weighted sums of the support vectors to the gradient by u.
    #[inline(always)]
    fn finish_gradient(&mut self, single: bool) {
        let (scale, own) = match self.job.expansion.function {
            Function::Radial { gamma } => (LN_2, -2.0 * gamma),
            Function::Polynomial { degree, .. } => (f64::from(degree), 0.0),
            Function::Linear => (1.0, 0.0),
        };
        let mut of_vectors = [scale; ROWS];
        let mut of_place = [0.0; ROWS];
        for lane in 0..ROWS {
            if single {
                of_vectors[lane] *= self.slopes[0].0[lane];
            }
            for (slope, total) in self.slopes.iter().zip(&self.totals) {
                of_place[lane] += own * slope.0[lane] * total.0[lane];
            }
        }
        let places = self.speed.iter_mut().zip(&self.place).zip(self.job.rows.units);
        for ((speed, place), &unit) in places {
            for lane in 0..ROWS {
                let gradient = of_place[lane].mul_add(place.0[lane], of_vectors[lane] * speed.0[lane]);
                speed.0[lane] = unit * gradient;
            }
        }
    }

    /// Takes what the metric pulls back from the speed.
    #[inline(always)]
    fn pull_back(&mut self, moved: &[Lanes]) {
        let (job, pull) = (self.job, self.job.pull);
        let (width, rank, rest) = (moved.len(), pull.less.len(), pull.rest);
        for (speed, moved) in self.speed.iter_mut().zip(moved) {
            for lane in 0..ROWS {
                speed.0[lane] -= rest * moved.0[lane];
            }
        }
        pull.to_coordinates.add_product(job.kernel, 0..width, 0..rank, moved, &mut self.coordinates, false);
        for (coordinate, &less) in self.coordinates.iter_mut().zip(&pull.less) {
            for lane in 0..ROWS {
                coordinate.0[lane] *= less;
            }
        }
        pull.from_coordinates.add_product(job.kernel, 0..rank, 0..width, &self.coordinates, &mut self.speed, true);
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
