//! Some rows side by side: all their steps, in blocked products.

use std::f64::consts::{LN_2, LOG2_E};
use std::ops::Range;

use super::{Function, Job, simplex};
use crate::error::Result;
use crate::individual::losses::{Growth as _, softmax_slopes, with_growth};
use crate::individual::panels::{DEPTH, ROWS, TileColumn};
use crate::individual::{Flow, Schedule};
use crate::numerics::exponential::exp2_of_negative;
use crate::simd::Task;

/// Support vectors that are kept, if several classes need the values of their kernels twice.
pub(super) const KEPT: usize = 4 * DEPTH;

/// Some rows side by side.
pub(super) struct Tile<'a> {
    job: Job<'a>,
    range: Range<usize>,
    /// x - centre: where the flow started, and where the model is looked at.
    start: Vec<TileColumn>,
    place: Vec<TileColumn>,
    /// The velocity; before that, sums of its gradient.
    speed: Vec<TileColumn>,
    /// Of a chunk of support vectors: values of the kernel, and what they weigh in the gradient.
    values: Vec<TileColumn>,
    weights: Vec<TileColumn>,
    /// Scores without their intercepts, and derivatives of the loss by the scores.
    totals: Vec<TileColumn>,
    slopes: Vec<TileColumn>,
    /// Q'm.
    coordinates: Vec<TileColumn>,
}

impl Task for Tile<'_> {
    type Output = Result<Flow>;

    #[inline(always)]
    fn run(mut self) -> Result<Flow> {
        self.flow()
    }
}

impl<'a> Tile<'a> {
    /// The rows of `range` where they start.
    pub(super) fn new(job: Job<'a>, range: Range<usize>) -> Self {
        let (width, expansion) = (job.units.len(), job.expansion);
        let n_scores = expansion.intercepts.len();
        let chunk = if n_scores == 1 { DEPTH } else { KEPT }.min(expansion.vectors.padded());
        // What lies beyond the last row stands where the centre is.
        let zeros = |length: usize| vec![TileColumn::ZERO; length];
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
        let mut moved = vec![TileColumn::ZERO; width];
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
            if !last {
                self.hold(&mut stage);
            }
            moved.copy_from_slice(&stage);
        }
        let lanes = 0..self.range.len();
        Ok(Flow { scores, moved: lanes.flat_map(|lane| moved.iter().map(move |m| m.0[lane])).collect() })
    }

    /// Takes groups of features back to their simplex.
    fn hold(&self, moved: &mut [TileColumn]) {
        let (job, width) = (self.job, self.start.len());
        let mut values = Vec::new();
        for group in job.held {
            for (lane, row) in self.range.clone().enumerate() {
                let start = |i: usize| job.rows.features[row * width + i];
                values.clear();
                values.extend(group.iter().map(|&i| job.units[i].mul_add(moved[i].0[lane], start(i))));
                simplex::project(&mut values);
                for (&i, value) in group.iter().zip(&values) {
                    moved[i].0[lane] = (value - start(i)) / job.units[i];
                }
            }
        }
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
    fn evaluate(&mut self, moved: &[TileColumn], going: bool) -> Result<()> {
        let (job, expansion) = (self.job, self.job.expansion);
        let (n_vectors, width) = (expansion.offsets.len(), self.start.len());
        let single = self.slopes.len() == 1;
        let chunk_size = self.weights.len().max(1);
        let chunks = || (0..n_vectors).step_by(chunk_size).map(|first| first..n_vectors.min(first + chunk_size));
        let mut square = [0.0; ROWS];
        for (((place, start), moved), &unit) in self.place.iter_mut().zip(&self.start).zip(moved).zip(job.units) {
            for lane in 0..ROWS {
                let x = unit.mul_add(moved.0[lane], start.0[lane]);
                place.0[lane] = x;
                square[lane] = x.mul_add(x, square[lane]);
            }
        }
        self.totals.fill(TileColumn::ZERO);
        self.speed.fill(TileColumn::ZERO);
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
        let (mut total, mut unused) = (self.totals[0].0, TileColumn::ZERO);
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
    fn finish_gradient(&mut self, moved: &[TileColumn], sum: &[f64; ROWS]) {
        let (by_vectors, by_place) = match self.job.expansion.function {
            Function::Radial { gamma } => (LN_2, -2.0 * gamma),
            Function::Polynomial { degree, .. } => (f64::from(degree), 0.0),
            Function::Linear => (1.0, 0.0),
        };
        // Weights of several scores have the slopes inside.
        let slope = if let [slope] = &self.slopes[..] { slope.0 } else { [1.0; ROWS] };
        let rest = self.job.pull.rest;
        let places = self.speed.iter_mut().zip(&self.place).zip(moved).zip(self.job.units);
        for (((speed, place), moved), &unit) in places {
            for lane in 0..ROWS {
                let gradient = by_vectors * speed.0[lane] + by_place * sum[lane] * place.0[lane];
                speed.0[lane] = unit * slope[lane] * gradient - rest * moved.0[lane];
            }
        }
    }

    /// Gives back to the speed what the metric does not pull along its eigenvectors.
    #[inline(always)]
    fn pull_back(&mut self, moved: &[TileColumn]) {
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
