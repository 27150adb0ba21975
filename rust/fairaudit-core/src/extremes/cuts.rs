//! The null law of signed roots, simulated: what a limit or a p-value of the tail is read off.
//!
//! With the threshold an order statistic the law of the root of a return level at the truth depends on the shape, the
//! number k of exceedances, n and the horizon m only: U, the share of the law above the threshold, is Beta(k + 1, n - k),
//! the excesses are a sample of the generalised Pareto law, and the level lies at ((m U)^xi - 1) / xi. That of the root
//! of the shape depends on (xi, k). Quantiles stand at [`NODES`] of the shape, linear in between.

use std::sync::OnceLock;

use super::gpd::{Excesses, Sample, growth, return_excess};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::numerics::laws::quick_normal_quantile;
use crate::parallel::{Control, map_blocks};
use crate::random::{Domain, Stream};

/// Number of shapes.
pub const N_NODES: usize = 17;
/// Number of quantiles.
pub const N_QUANTILES: usize = 17;
/// Shapes of the simulation, in twentieths.
const TWENTIETHS: [i32; N_NODES] = [-16, -14, -12, -10, -8, -6, -4, -2, 0, 2, 4, 6, 8, 11, 14, 18, 24];
/// The probabilities of the quantiles.
pub const PROBABILITIES: [f64; N_QUANTILES] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9975, 0.999, 0.9995];
/// Below the first node the worst of so many stands: the cuts jump at the edge, where the shape is -1.
const FLAT: usize = 3;
/// Stands for an infinite root: a level below the threshold.
const BEYOND: f64 = 1e3;
/// Roots under the null are far below this.
const LARGEST: f64 = 50.0;
/// Replicates that one thread takes at a time.
const BLOCK: usize = 16;

/// The shapes at which quantiles stand.
pub fn nodes() -> [f64; N_NODES] {
    TWENTIETHS.map(|twentieth| f64::from(twentieth) / 20.0)
}

/// Phi^-1 of [`PROBABILITIES`].
fn scores() -> &'static [f64; N_QUANTILES] {
    static SCORES: OnceLock<[f64; N_QUANTILES]> = OnceLock::new();
    SCORES.get_or_init(|| PROBABILITIES.map(quick_normal_quantile))
}

/// |z| of the outermost quantiles: what lies beyond is a bound.
pub fn last_score() -> f64 {
    scores()[N_QUANTILES - 1]
}

/// Quantiles of a signed root by shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Cuts {
    rows: [[f64; N_QUANTILES]; N_NODES],
}

impl Cuts {
    /// Quantiles at each node, one after the other.
    ///
    /// # Errors
    /// [`Error::Argument`] when they are not of this number.
    pub fn new(values: &[f64]) -> Result<Self> {
        if values.len() != N_NODES * N_QUANTILES || values.iter().any(|value| !value.is_finite()) {
            let given = format!("{} numbers", values.len());
            return Err(Error::argument("cuts", given, &format!("{N_NODES} x {N_QUANTILES} finite numbers")));
        }
        let mut rows = [[0.0; N_QUANTILES]; N_NODES];
        for (row, given) in rows.iter_mut().zip(values.chunks(N_QUANTILES)) {
            row.copy_from_slice(given);
            go_on(row);
        }
        Ok(Self { rows })
    }

    /// The quantiles, node by node.
    pub fn values(&self) -> Vec<f64> {
        self.rows.concat()
    }

    /// The mix of two tables with a share of the second.
    pub(crate) fn mix(&self, other: &Self, share: f64) -> Self {
        let mut rows = self.rows;
        for (row, second) in rows.iter_mut().zip(&other.rows) {
            for (value, second) in row.iter_mut().zip(second) {
                *value = (1.0 - share) * *value + share * second;
            }
        }
        Self { rows }
    }

    /// Whether a root is beyond where |z| is `score` at every shape.
    pub(crate) fn is_beyond(&self, root: f64, score: f64) -> bool {
        let (least, most) = self.rows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), row| {
            let z = normal_score(root, row);
            (least.min(z), most.max(z))
        });
        least > score || most < -score
    }

    /// Phi^-1 of the null probability of a root where the shape fitted under it is `shape`: linear between quantiles,
    /// and with slope 1 beyond them.
    pub fn z(&self, root: f64, shape: f64) -> f64 {
        let root = root.clamp(-BEYOND, BEYOND);
        let twentieths = shape * 20.0;
        let first = f64::from(TWENTIETHS[0]);
        if twentieths < first {
            // The one nearest to 0; 0 where they differ in sign.
            let scores = [0, 1, 2].map(|node: usize| normal_score(root, &self.rows[node]));
            let (low, high) = scores[..FLAT]
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &score| (low.min(score), high.max(score)));
            return if low > 0.0 { low } else { high.min(0.0) };
        }
        let node = TWENTIETHS[1..N_NODES - 1].partition_point(|&node| f64::from(node) <= twentieths);
        let (low, high) = (f64::from(TWENTIETHS[node]), f64::from(TWENTIETHS[node + 1]));
        let share = ((twentieths - low) / (high - low)).min(1.0);
        let mut row = self.rows[node];
        for (value, next) in row.iter_mut().zip(&self.rows[node + 1]) {
            *value = (1.0 - share) * *value + share * next;
        }
        normal_score(root, &row)
    }
}

/// Puts finite quantiles in place of those at levels below the threshold: they go on with slope 1 in z.
fn go_on(row: &mut [f64; N_QUANTILES]) {
    let scores = scores();
    let finite = row.partition_point(|&quantile| quantile < LARGEST);
    if let Some(last) = finite.checked_sub(1) {
        for place in finite..N_QUANTILES {
            row[place] = row[last] + scores[place] - scores[last];
        }
    }
}

fn normal_score(root: f64, row: &[f64; N_QUANTILES]) -> f64 {
    let scores = scores();
    let above = row.partition_point(|&quantile| quantile <= root);
    if above == 0 {
        return scores[0] + (root - row[0]);
    }
    if above == N_QUANTILES {
        return scores[N_QUANTILES - 1] + (root - row[N_QUANTILES - 1]);
    }
    let (low, high) = (row[above - 1], row[above]);
    scores[above - 1] + (scores[above] - scores[above - 1]) * (root - low) / (high - low)
}

/// The signed root of a gap of log likelihoods.
pub(crate) fn signed_root(gap: f64, sign_of: f64) -> f64 {
    (2.0 * gap.max(0.0)).sqrt().copysign(sign_of)
}

/// How a return level lies to its sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// M = m k / n, the horizon in exceedances.
    pub horizon: f64,
    /// n; infinite where k / n is as good as 0.
    pub n: f64,
}

/// Estimated nanoseconds of a replicate of so many designs on one thread.
pub fn replicate_work(k: usize, n_designs: usize) -> u64 {
    let fit = 1_500 + 10 * k;
    (N_NODES * (fit * (1 + n_designs) + 3 * k)) as u64
}

/// The quantiles of the roots of return levels, for several designs from the same samples.
///
/// # Errors
/// [`Error::Argument`] for a k below 2, designs that cannot be, or fewer than 100 replicates; [`Error::Cancelled`].
pub fn simulate_levels(k: usize, designs: &[Design], draws: &Draws, control: &Control) -> Result<Vec<Cuts>> {
    check(k, draws)?;
    for design in designs {
        if design.n.is_nan() || design.n <= k as f64 || !(design.horizon.is_finite() && design.horizon > 1.0) {
            let given = format!("{k} with n = {} and a horizon of {} exceedances", design.n, design.horizon);
            return Err(Error::argument("k", given, "fewer exceedances than n, and a horizon above 1"));
        }
    }
    let roots = |excesses: &Excesses, shape: f64, uniform: &mut Uniforms, into: &mut Vec<f64>| {
        let fit = excesses.fit();
        for design in designs {
            let truth = growth(shape, design.horizon * uniform.share(design.n));
            let root = if truth <= 0.0 {
                BEYOND
            } else {
                let (_, value) = excesses.at_level(truth, design.horizon);
                let estimate = return_excess(fit.shape, fit.scale, design.horizon);
                signed_root(fit.log_likelihood - value, estimate - truth)
            };
            into.push(root);
        }
    };
    simulate(k, designs.len(), draws, control, roots)
}

/// The quantiles of the root of the shape.
///
/// # Errors
/// As [`simulate_levels`].
pub fn simulate_shape(k: usize, draws: &Draws, control: &Control) -> Result<Cuts> {
    check(k, draws)?;
    let roots = |excesses: &Excesses, shape: f64, _: &mut Uniforms, into: &mut Vec<f64>| {
        let (fit, (_, value)) = (excesses.fit(), excesses.at_shape(shape));
        into.push(signed_root(fit.log_likelihood - value, fit.shape - shape));
    };
    Ok(simulate(k, 1, draws, control, roots)?.swap_remove(0))
}

fn check(k: usize, draws: &Draws) -> Result<()> {
    if k < 2 {
        return Err(Error::argument("k", k, "at least 2 exceedances"));
    }
    if draws.n() < 100 {
        return Err(Error::argument("draws", draws.n(), "at least 100 replicates"));
    }
    Ok(())
}

/// Roots of every replicate at every node, and their quantiles. Samples of all nodes are made of the same exponential
/// numbers, so that quantiles go smoothly from node to node.
fn simulate(
    k: usize,
    n_designs: usize,
    draws: &Draws,
    control: &Control,
    roots: impl Fn(&Excesses, f64, &mut Uniforms, &mut Vec<f64>) + Sync,
) -> Result<Vec<Cuts>> {
    let n = draws.n() as usize;
    let blocks = map_blocks(n, BLOCK, control, |range| {
        let mut excesses = Excesses::empty()?;
        let (mut exponentials, mut values) = (vec![0.0; k], vec![0.0; k]);
        let mut found = Vec::with_capacity(range.len() * N_NODES * n_designs);
        for replicate in range {
            control.check()?;
            let index = draws.replicates.start + replicate as u64;
            let stream = |cell| Stream::new(draws.seed, Domain::Simulation, draws.series, index, cell);
            let mut of_excesses = stream(0);
            for number in &mut exponentials {
                *number = -libm::log(of_excesses.uniform());
            }
            let mut uniforms = Uniforms::new(k, stream(1), stream(2));
            for &twentieth in &TWENTIETHS {
                let shape = f64::from(twentieth) / 20.0;
                for (value, &number) in values.iter_mut().zip(&exponentials) {
                    *value = if twentieth == 0 { number } else { libm::expm1(shape * number) / shape };
                }
                excesses.refill(&values);
                roots(&excesses, shape, &mut uniforms, &mut found);
            }
        }
        Ok(found)
    })?;
    let all = blocks.concat();
    let mut tables = Vec::with_capacity(n_designs);
    let mut column = vec![0.0; n];
    for design in 0..n_designs {
        let mut rows = [[0.0; N_QUANTILES]; N_NODES];
        for (node, row) in rows.iter_mut().enumerate() {
            for (value, roots) in column.iter_mut().zip(all.chunks(N_NODES * n_designs)) {
                *value = roots[node * n_designs + design];
            }
            column.sort_unstable_by(f64::total_cmp);
            *row = PROBABILITIES.map(|probability| quantile(&column, probability));
            go_on(row);
        }
        tables.push(Cuts { rows });
    }
    Ok(tables)
}

/// The quantile of sorted values, linear in between.
fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let place = probability * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let next = sorted[(below + 1).min(sorted.len() - 1)];
    sorted[below] + (place - below as f64) * (next - sorted[below])
}

/// n U / k of a replicate, U ~ Beta(k + 1, n - k), from gamma numbers; the same ones for every n that is asked.
struct Uniforms {
    k: f64,
    above: f64,
    below: Stream,
    /// The last n that was asked for, and what came of it.
    known: Option<(f64, f64)>,
}

impl Uniforms {
    fn new(k: usize, mut of_above: Stream, below: Stream) -> Self {
        let above = gamma(k as f64 + 1.0, &mut of_above);
        Self { k: k as f64, above, below, known: None }
    }

    fn share(&mut self, n: f64) -> f64 {
        if n.is_infinite() {
            return self.above / self.k;
        }
        if let Some((known, share)) = self.known
            && known == n
        {
            return share;
        }
        // Each n anew from the first word, so that a table does not depend on what else is simulated with it.
        let rest = gamma(n - self.k, &mut self.below.clone());
        let share = n / self.k * self.above / (self.above + rest);
        self.known = Some((n, share));
        share
    }
}

/// A gamma number of a shape of at least 1 (Marsaglia and Tsang, 2000).
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = quick_normal_quantile(stream.uniform());
        let root = 1.0 + c * normal;
        let cube = root * root * root;
        if root > 0.0 && libm::log(stream.uniform()) < 0.5 * normal * normal + d * (1.0 - cube + libm::log(cube)) {
            return d * cube;
        }
    }
}
