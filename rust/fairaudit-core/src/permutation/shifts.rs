//! Two groups of a mean or ratio of skewed values: two statistics, and the same test at any other gap.
//!
//! With the linearised values `u_i = (a_i - theta_g d_i) / D_g` of the groups, `v = v_1 + v_2` and
//! `kappa = (sum_1 u^3 - sum_2 u^3) / v^(3/2)`:
//!
//! ```text
//! T = Delta / sqrt(v),    h = T + kappa T^2 / 3 + kappa^2 T^3 / 27 + kappa / 6    (Hall 1992; it grows with T)
//! ```
//!
//! Both are computed anew in every replicate; the p-value of a side is the larger of the two. Under one law for all
//! units each is exact, so is the larger; where only the gap is nothing, h repairs what skewness does to T, and T what
//! a noisy kappa does to h.
//!
//! *At another gap* delta the units that were observed in the first group are lower by delta d. A replicate that
//! draws other units into the first group then has a gap that is linear in delta, a variance that is quadratic, and a sum
//! of cubes that is cubic: nine numbers ([`Shift`]) made of sums over the units drawn, and of those over the drawn
//! ones that were in the first group before. These lie side by side, so that the sums cost nothing more.
//!
//! In strata of the user's the same with the weights of [`strata`](super::strata), `u_i` with its
//! `sqrt(n / (n - 1))`; strata in which a group is one unit enter as one unit.

use std::ops::Range;

use super::GroupTest;
use super::rows::{Block, RowTest, UnitMetric};
use super::stream::{Draw, tiles};
use super::{Alternative, TIE_TOLERANCE};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::RowMetric;
use crate::metrics::row_sums::{Lanes, Moments, Powers, bessel};
use crate::parallel::{self, Control};
use crate::random::{Domain, LaneGenerator};
use crate::simd::{InstructionSet, LANES, Task};

/// Numbers of a [`Shift`].
pub const NUMBERS: usize = 9;
/// Variances below this share of their terms are rounding.
const ROUNDING: f64 = 1e-13;
/// Steps outwards in the search for a limit, in standard errors, and how many of them must lie outside of it.
const STEP: f64 = 0.4;
const STEPS_BEYOND: u32 = 5;
/// Standard errors beyond which a limit is infinite, and halvings of the last step.
const FARTHEST: f64 = 1e6;
const HALVINGS: u32 = 18;

/// A gap, its variance and its sum of cubes as polynomials in delta: `c0 - c1 delta`, `v0 - 2 v1 delta + v2 delta^2`,
/// `w0 - 3 w1 delta + 3 w2 delta^2 - w3 delta^3`, in this order.
pub type Shift = [f64; NUMBERS];

/// What the linearised values of a group are like, as observed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shape {
    /// Units that count.
    pub units: f64,
    /// Sum of u^2.
    pub squares: f64,
    /// Sum of u^3.
    pub cubes: f64,
}

/// Replicates of a test of two groups at any gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Shifts {
    /// As observed.
    pub observed: Shift,
    /// What the groups are like.
    pub shapes: [Shape; 2],
    n: usize,
    /// Sixteen replicates side by side; those after the n-th are nothing.
    lanes: Vec<[Lanes; NUMBERS]>,
}

/// How many replicates are at least as extreme as the data on one side, by T and by h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extremes {
    /// By T.
    pub studentized: u64,
    /// By h.
    pub corrected: u64,
    /// In which neither is defined: a part of both.
    pub undefined: u64,
}

impl Extremes {
    /// The larger number, which makes the p-value.
    pub fn most(self) -> u64 {
        self.studentized.max(self.corrected)
    }
}

/// T and h of a shift at a gap. Without branches, so that sixteen replicates are one loop.
#[inline(always)]
fn statistics([c0, c1, v0, v1, v2, w0, w1, w2, w3]: Shift, delta: f64) -> (f64, f64) {
    let gap = c0 - c1 * delta;
    let gap = if gap.abs() <= 1e-12 * (c1 * delta).abs() { 0.0 } else { gap };
    let variance = v0 - delta * (2.0 * v1 - delta * v2);
    let size = v0 + delta.abs() * (2.0 * v1.abs() + delta.abs() * v2);
    let variance = if variance <= ROUNDING * size { 0.0 } else { variance };
    let cubes = w0 - delta * (3.0 * w1 - delta * (3.0 * w2 - delta * w3));
    let root = variance.sqrt();
    let scaled = gap / root;
    let t = if gap == 0.0 { 0.0 } else { scaled };
    let skewness = cubes / (variance * root);
    let third = skewness * t * (1.0 / 3.0);
    let h = t * (1.0 + third + third * third * (1.0 / 3.0)) + skewness * (1.0 / 6.0);
    // Without variance there is no skewness.
    (t, if variance == 0.0 { t } else { h })
}

impl Shifts {
    /// From the numbers of replicates, as stored.
    ///
    /// # Errors
    /// [`Error::Argument`] when a number is infinite.
    pub fn new(observed: Shift, shapes: [Shape; 2], replicates: &[Shift]) -> Result<Self> {
        if replicates.iter().flatten().chain(&observed).any(|number| number.is_infinite()) {
            return Err(Error::argument("replicates", "infinite somewhere", "finite numbers or NaN"));
        }
        let pack = |chunk: &[Shift]| {
            let mut lanes = [[0.0; LANES]; NUMBERS];
            for (lane, shift) in chunk.iter().enumerate() {
                shift.iter().zip(&mut lanes).for_each(|(&number, lanes)| lanes[lane] = number);
            }
            lanes
        };
        Ok(Self { observed, shapes, n: replicates.len(), lanes: replicates.chunks(LANES).map(pack).collect() })
    }

    /// Number of replicates.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The replicates, one after the other.
    pub fn replicates(&self) -> impl Iterator<Item = Shift> {
        let lane = |i: usize| self.lanes[i / LANES].map(|lanes| lanes[i % LANES]);
        (0..self.n).map(lane)
    }

    /// T and h as observed.
    pub fn statistics(&self) -> (f64, f64) {
        statistics(self.observed, 0.0)
    }

    /// T of every replicate.
    pub fn null_distribution(&self) -> Vec<f64> {
        self.replicates().map(|shift| statistics(shift, 0.0).0).collect()
    }

    /// T and h of every replicate.
    pub(super) fn null_statistics(&self) -> (Vec<f64>, Vec<f64>) {
        self.replicates().map(|shift| statistics(shift, 0.0)).unzip()
    }

    /// How many replicates are at least as extreme as the data when the gap is delta, on one side.
    pub fn extremes(&self, delta: f64, side: Side) -> Extremes {
        let (t, h) = statistics(self.observed, delta);
        let instructions = InstructionSet::current().unwrap_or(InstructionSet::Baseline);
        instructions.run(Count { shifts: self, delta, t, h, sign: side.sign() })
    }

    /// The outermost gap that the data do not reject on one side at a level: the lower limit for `Side::Greater`.
    /// Infinite when all gaps are compatible; NaN when there is no variance.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn limit(&self, side: Side, level: f64, control: &Control) -> Result<f64> {
        let [estimate, _, variance, ..] = self.observed;
        let error = variance.sqrt();
        if estimate.is_nan() || error.is_nan() || error <= 0.0 {
            return Ok(f64::NAN);
        }
        let outwards = -side.sign() * error;
        let least = level * (1.0 + self.n as f64);
        let rejects = |steps: f64| -> Result<bool> {
            control.check()?;
            Ok(1.0 + self.extremes(estimate + steps * outwards, side).most() as f64 <= least)
        };
        let (mut inside, mut at, mut step, mut beyond) = (0.0, 0.0, STEP, 0);
        while beyond < STEPS_BEYOND {
            at += step;
            if at > FARTHEST {
                return Ok(-side.sign() * f64::INFINITY);
            }
            if rejects(at)? {
                beyond += 1;
            } else {
                (inside, beyond) = (at, 0);
                // Far out, where limits are those of very few units.
                step = if at > 50.0 * STEP { 1.5 * step } else { step };
            }
        }
        let (mut low, mut high) = (inside, at - step * f64::from(STEPS_BEYOND - 1));
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if rejects(middle)? { high = middle } else { low = middle }
        }
        Ok(estimate + high * outwards)
    }
}

/// One of the two sides on which a gap can lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The gap is larger.
    Greater,
    /// The gap is smaller.
    Less,
}

impl Side {
    fn sign(self) -> f64 {
        match self {
            Self::Greater => 1.0,
            Self::Less => -1.0,
        }
    }

    /// The sides of an alternative.
    pub fn of(alternative: Alternative) -> &'static [Self] {
        match alternative {
            Alternative::TwoSided => &[Self::Greater, Self::Less],
            Alternative::Greater => &[Self::Greater],
            Alternative::Less => &[Self::Less],
        }
    }
}

/// Counts replicates that are at least as extreme as t and h.
struct Count<'a> {
    shifts: &'a Shifts,
    delta: f64,
    t: f64,
    h: f64,
    sign: f64,
}

impl Task for Count<'_> {
    type Output = Extremes;

    #[inline(always)]
    fn run(self) -> Extremes {
        let Self { shifts, delta, t, h, sign } = self;
        // Ties of rounding count; those of infinite numbers are equal.
        let least = |observed: f64| {
            let observed = sign * observed;
            if observed.is_finite() { observed - TIE_TOLERANCE * observed.abs() } else { observed }
        };
        let (least_t, least_h) = (least(t), least(h));
        let mut counts = [[0u64; LANES]; 3];
        let mut total = Extremes::default();
        for (block, numbers) in shifts.lanes.iter().enumerate() {
            let lanes = (shifts.n - block * LANES).min(LANES);
            let (mut all_t, mut all_h) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let (t, h) = statistics(std::array::from_fn(|k| numbers[k][lane]), delta);
                all_t[lane] = sign * t;
                all_h[lane] = sign * h;
            }
            for lane in 0..LANES {
                let counted = u64::from(lane < lanes);
                // Undefined is extreme.
                let undefined = u64::from(all_t[lane].is_nan());
                counts[0][lane] += counted & (u64::from(all_t[lane] >= least_t) | undefined);
                counts[1][lane] += counted & (u64::from(all_h[lane] >= least_h) | u64::from(all_h[lane].is_nan()));
                counts[2][lane] += counted & undefined;
            }
        }
        for lane in 0..LANES {
            total.studentized += counts[0][lane];
            total.corrected += counts[1][lane];
            total.undefined += counts[2][lane];
        }
        total
    }
}

/// What a group in a stratum adds to a shift: with e = a - theta d, g = d (1{in the first group before} - f).
struct Terms {
    units: f64,
    size: f64,
    value: f64,
    /// The share f of the denominator that was in the first group before.
    share: f64,
    /// Sums of e^2, e g, g^2.
    squares: [f64; 3],
    /// Sums of e^3, e^2 g, e g^2, g^3.
    cubes: [f64; 4],
}

impl Terms {
    /// From the sums over the group, and over those of its units that were in the first group before.
    fn new(all: &Moments, before: &Moments, noise: f64) -> Self {
        let (value, share) = (all.a / all.d, before.d / all.d);
        let rest = 1.0 - 2.0 * share;
        let ee = |m: &Moments| m.aa - 2.0 * value * m.ad + value * value * m.dd;
        let eed = |m: &Moments| m.aad - 2.0 * value * m.add + value * value * m.ddd;
        let squares = ee(all);
        let (squares, products, cubes) = if squares <= noise {
            (0.0, 0.0, [0.0; 3])
        } else {
            let ed = |m: &Moments| m.ad - value * m.dd;
            let edd = |m: &Moments| m.add - value * m.ddd;
            let eee = all.aaa - 3.0 * value * all.aad + 3.0 * value * value * all.add - value.powi(3) * all.ddd;
            let cubes = [eee, eed(before) - share * eed(all), rest * edd(before) + share * share * edd(all)];
            (squares, ed(before) - share * ed(all), cubes)
        };
        let [eee, eeg, egg] = cubes;
        let gg = before.dd * rest + share * share * all.dd;
        let ggg = before.ddd * (1.0 - share).powi(3) - share.powi(3) * (all.ddd - before.ddd);
        Self {
            units: all.n,
            size: all.d,
            value,
            share,
            squares: [squares, products, gg.max(0.0)],
            cubes: [eee, eeg, egg, ggg],
        }
    }
}

/// Of strata in which a group is one unit, with q0 - q1 delta the weighted gap and k the weight: sums of all products
/// of two and of three of these, in the order of [`SECOND`] and [`THIRD`].
#[derive(Debug, Clone, Copy, Default)]
struct Singles {
    n: u32,
    second: [f64; 6],
    third: [f64; 10],
}

/// Powers of q0, q1, k.
const SECOND: [[usize; 2]; 6] = [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]];
const THIRD: [[usize; 3]; 10] =
    [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 1], [0, 1, 2], [0, 2, 2], [1, 1, 1], [1, 1, 2], [1, 2, 2], [2, 2, 2]];

impl Singles {
    fn add(&mut self, of_stratum: [f64; 3]) {
        self.n += 1;
        for (sum, [i, j]) in self.second.iter_mut().zip(SECOND) {
            *sum += of_stratum[i] * of_stratum[j];
        }
        for (sum, [i, j, k]) in self.third.iter_mut().zip(THIRD) {
            *sum += of_stratum[i] * of_stratum[j] * of_stratum[k];
        }
    }

    /// The sums of products of x = q0 - c0 k and y = q1 - c1 k: x^2, x y, y^2, and x^3, x^2 y, x y^2, y^3.
    fn centred(&self, c0: f64, c1: f64) -> ([f64; 3], [f64; 4]) {
        let (x, y) = ([1.0, 0.0, -c0], [0.0, 1.0, -c1]);
        let two = |a: [f64; 3], b: [f64; 3]| -> f64 {
            let places = (0..3).flat_map(|i| (0..3).map(move |j| [i, j]));
            places.map(|[i, j]| a[i] * b[j] * self.second[place(&SECOND, sorted([i, j]))]).sum()
        };
        let three = |a: [f64; 3], b: [f64; 3], c: [f64; 3]| -> f64 {
            let places = (0..27).map(|code| [code / 9, code / 3 % 3, code % 3]);
            places.map(|[i, j, k]| a[i] * b[j] * c[k] * self.third[place(&THIRD, sorted([i, j, k]))]).sum()
        };
        (
            [two(x, x).max(0.0), two(x, y), two(y, y).max(0.0)],
            [three(x, x, x), three(x, x, y), three(x, y, y), three(y, y, y)],
        )
    }
}

fn sorted<const N: usize>(mut places: [usize; N]) -> [usize; N] {
    places.sort_unstable();
    places
}

fn place<const N: usize>(all: &[[usize; N]], wanted: [usize; N]) -> usize {
    all.iter().position(|&places| places == wanted).unwrap_or(0)
}

/// What all strata add up to, in one replicate.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    weight: f64,
    gap: [f64; 2],
    spread: f64,
    variance: [f64; 3],
    cubes: [f64; 4],
    singles: Singles,
    undefined: bool,
    shapes: [Shape; 2],
}

impl Sums {
    /// Adds a stratum, or all units where there are no strata.
    fn add(&mut self, groups: &[Terms; 2], of_clusters: bool, stratified: bool) {
        let [first, second] = groups;
        if !(first.size > 0.0 && second.size > 0.0) {
            self.undefined |= !stratified;
            return;
        }
        let k = if stratified { first.size * second.size / (first.size + second.size) } else { 1.0 };
        let gap = [k * (first.value - second.value), k * (first.share - second.share)];
        self.weight += k;
        self.gap[0] += gap[0];
        self.gap[1] += gap[1];
        self.spread += k * (first.value.abs() + second.value.abs());
        if stratified && groups.iter().any(|group| group.units < 1.5) {
            self.singles.add([gap[0], gap[1], k]);
            return;
        }
        for ((group, sign), shape) in groups.iter().zip([1.0, -1.0]).zip(&mut self.shapes) {
            let scale = k / group.size;
            let factor = if of_clusters && !stratified { 1.0 } else { bessel(group.units) };
            let of_cubes = if stratified { factor.powf(1.5) } else { 1.0 } * scale.powi(3);
            for (sum, term) in self.variance.iter_mut().zip(group.squares) {
                *sum += scale * scale * factor * term;
            }
            for (sum, term) in self.cubes.iter_mut().zip(group.cubes) {
                *sum += sign * of_cubes * term;
            }
            shape.units += group.units;
            shape.squares += scale * scale * group.squares[0];
            shape.cubes += scale.powi(3) * group.cubes[0];
        }
    }

    fn shift(&self) -> Shift {
        if self.undefined || self.weight == 0.0 {
            return [f64::NAN; NUMBERS];
        }
        let gap = self.gap.map(|sum| sum / self.weight);
        let gap = if self.gap[0].abs() <= 1e-14 * self.spread { [0.0, gap[1]] } else { gap };
        let (mut variance, mut cubes) = (self.variance, self.cubes);
        if self.singles.n > 0 {
            let n = f64::from(self.singles.n);
            let (second, third) = self.singles.centred(gap[0], gap[1]);
            // One stratum of this kind has no variance that could be measured.
            let factor = if self.singles.n == 1 { f64::NAN } else { n / (n - 1.0) };
            variance.iter_mut().zip(second).for_each(|(sum, term)| *sum += factor * term);
            cubes.iter_mut().zip(third).for_each(|(sum, term)| *sum += term);
        }
        let (square, cube) = (self.weight.powi(2), self.weight.powi(3));
        let ([c0, c1], [v0, v1, v2], [w0, w1, w2, w3]) =
            (gap, variance.map(|sum| sum / square), cubes.map(|sum| sum / cube));
        [c0, c1, v0, v1, v2, w0, w1, w2, w3]
    }

    fn shapes(&self) -> [Shape; 2] {
        let scale = |shape: Shape| Shape {
            squares: shape.squares / self.weight.powi(2),
            cubes: shape.cubes / self.weight.powi(3),
            ..shape
        };
        self.shapes.map(scale)
    }
}

/// A stratum with what is the same in all replicates.
struct Prepared<'a> {
    block: &'a Block,
    /// Sums over all its units, and over those of the first group as observed.
    all: Moments,
    before: Moments,
    /// Rows that were in the first group as observed, or not.
    runs: Vec<(Range<usize>, bool)>,
}

impl<'a> Prepared<'a> {
    fn new(block: &'a Block) -> Option<Self> {
        let UnitMetric::Rows(metric) = &block.metric else { return None };
        let sums = |of: Range<usize>| match metric {
            RowMetric::Mean(mean) => Some(moments(mean, of)),
            RowMetric::Ratio(ratio) => Some(moments(ratio, of)),
            _ => None,
        };
        let mut runs = Vec::new();
        let mut start = 0;
        for run in block.group.chunk_by(|a, b| a == b) {
            runs.push((start..start + run.len(), run[0] == 0));
            start += run.len();
        }
        let (mut all, mut before) = (Moments::default(), Moments::default());
        for (rows, first) in &runs {
            let of_run = sums(rows.clone())?;
            all = all.plus(&of_run, 1.0);
            if *first {
                before = before.plus(&of_run, 1.0);
            }
        }
        Some(Self { block, all, before, runs })
    }

    fn noise(&self) -> f64 {
        match &self.block.metric {
            UnitMetric::Rows(RowMetric::Mean(mean)) => mean.noise(),
            UnitMetric::Rows(RowMetric::Ratio(ratio)) => ratio.noise(),
            _ => 0.0,
        }
    }

    /// Whether the variance of a test without strata has no factor n / (n - 1): units are clusters.
    fn of_clusters(&self) -> bool {
        matches!(&self.block.metric, UnitMetric::Rows(RowMetric::Ratio(ratio)) if !ratio.is_corrected())
    }

    /// Adds the stratum when these units are in the first group, and these of them were before.
    fn add(&self, sums: &mut Sums, first: &Moments, first_before: &Moments, stratified: bool) {
        let second = self.all.plus(first, -1.0);
        let second_before = self.before.plus(first_before, -1.0);
        let noise = self.noise();
        let groups = [Terms::new(first, first_before, noise), Terms::new(&second, &second_before, noise)];
        sums.add(&groups, self.of_clusters(), stratified);
    }
}

fn moments<const N: usize, M: Powers<N>>(metric: &M, rows: Range<usize>) -> Moments {
    let (mut sums, n) = ([[0.0; LANES]; N], rows.len());
    for row in rows {
        metric.add_powers(row, &[u32::MAX; LANES], &mut sums);
    }
    M::moments(sums.map(|lanes| lanes[0]), n as f64)
}

impl RowTest {
    /// The observed test and some replicates of it, at any gap.
    ///
    /// # Errors
    /// [`Error::Argument`] when it is not one of two groups of a mean or ratio; [`Error::Cancelled`].
    pub(super) fn shifts_of(&self, draws: &Draws, control: &Control) -> Result<Shifts> {
        let blocks: Option<Vec<Prepared<'_>>> = self.blocks.iter().map(Prepared::new).collect();
        let Some(blocks) = blocks.filter(|_| self.n_groups() == 2) else {
            return Err(Error::argument("test", "another", "one of two groups of a mean or ratio"));
        };
        let stratified = blocks.len() > 1;
        let mut observed = Sums::default();
        for block in &blocks {
            block.add(&mut observed, &block.before, &block.before, stratified);
        }
        let mut lanes = vec![[[0.0; LANES]; NUMBERS]; draws.n().div_ceil(LANES as u64) as usize];
        let fill = |i: usize, chunk: &mut [[Lanes; NUMBERS]], (): &mut ()| -> Result<()> {
            let first = draws.replicates.start + (i * LANES) as u64;
            let mut generator = LaneGenerator::new(draws.seed, Domain::Permutation, draws.series, first, u64::MAX);
            let mut sums = [Sums::default(); LANES];
            for block in &blocks {
                let UnitMetric::Rows(metric) = &block.block.metric else { continue };
                let draw = Draw::new(&mut generator, block.block);
                let (drawn, before) = match metric {
                    RowMetric::Mean(mean) => self.draw_powers(block, mean, draw, control)?,
                    RowMetric::Ratio(ratio) => self.draw_powers(block, ratio, draw, control)?,
                    _ => continue,
                };
                for (lane, sums) in sums.iter_mut().enumerate() {
                    block.add(sums, &drawn[lane], &before[lane], stratified);
                }
            }
            let n = draws.n() as usize - i * LANES;
            for (lane, sums) in sums.iter().enumerate().take(n) {
                sums.shift().iter().zip(&mut chunk[0]).for_each(|(&number, lanes)| lanes[lane] = number);
            }
            control.advance((draws.n() - (i * LANES) as u64).min(LANES as u64));
            Ok(())
        };
        parallel::fill(&mut lanes, 1, control, || (), fill)?;
        Ok(Shifts { observed: observed.shift(), shapes: observed.shapes(), n: draws.n() as usize, lanes })
    }

    /// Draws the units of the first group in every lane: sums over them, and over those that were in it before.
    fn draw_powers<const N: usize, M: Powers<N>>(
        &self,
        block: &Prepared<'_>,
        metric: &M,
        mut draw: Draw<'_>,
        control: &Control,
    ) -> Result<([Moments; LANES], [Moments; LANES])> {
        let (mut drawn, mut before) = ([Moments::default(); LANES], [Moments::default(); LANES]);
        for (rows, was_first) in &block.runs {
            let (mut sums, needed) = ([[0.0; LANES]; N], draw.first_needed());
            tiles(rows.clone(), control, |rows| {
                let (block, draw, sums) = (block.block, &mut draw, &mut sums);
                self.instructions.run(WalkPowers { block, metric, draw, sums, rows });
            })?;
            let left = draw.first_needed();
            for lane in 0..LANES {
                let of_run = M::moments(sums.map(|lanes| lanes[lane]), f64::from(needed[lane] - left[lane]));
                drawn[lane] = drawn[lane].plus(&of_run, 1.0);
                if *was_first {
                    before[lane] = before[lane].plus(&of_run, 1.0);
                }
            }
        }
        Ok((drawn, before))
    }
}

/// A walk over some rows that adds up those of the first group.
struct WalkPowers<'a, 'b, const N: usize, M: Powers<N>> {
    block: &'a Block,
    metric: &'a M,
    draw: &'a mut Draw<'b>,
    sums: &'a mut [Lanes; N],
    rows: Range<usize>,
}

impl<const N: usize, M: Powers<N>> Task for WalkPowers<'_, '_, N, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { block, metric, draw, sums, rows } = self;
        // A copy, so that it stays in registers.
        let mut running = *sums;
        for row in rows {
            let first = draw.of_two(block.part_of(row));
            metric.add_powers(row, &first, &mut running);
        }
        *sums = running;
    }
}

#[cfg(test)]
mod tests;
