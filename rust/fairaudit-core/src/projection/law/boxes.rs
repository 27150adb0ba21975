//! The distance of a normal vector to a box: the law of the statistic under a composite null.
//!
//! T(x) = 1/2 min over t in the box of (x - t)' S^-1 (x - t), x = mean + V, V ~ N(0, Sigma), with a
//! mean somewhere in the box. {T < q} is convex, so that the mean with the largest
//! P(T >= q) is a vertex. As seen from there {T < q} is also star-shaped: with V = R w(u), u uniform on
//! the unit sphere of the k axes of V and R^2 ~ `chi2_k` apart from it, P(T >= q) is the mean over u
//! of P(`chi2_k` >= r(u)^2), where r(u) is the length at which T(r w(u)) reaches q.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, TAU};

use super::matrix::Axes;
use super::rays::Rays;
use super::{crossing, weighted_chi_square_quantile, weighted_chi_square_tail};
use crate::error::{Error, Result};

/// Two-sided coordinates up to which all vertices are looked at.
const MOST_TWO_SIDED: usize = 6;
/// Points on the circle of two axes; a multiple of 8.
const CIRCLE: usize = 4_096;
/// Rays from all vertices together, for three axes and more.
const RAYS: usize = 1 << 17;
/// Fewest and most rays from one vertex.
const VERTEX_RAYS: (usize, usize) = (1 << 13, 1 << 16);
/// Shifted copies of the lattice.
const COPIES: usize = 8;
/// Standard errors of the mean of the copies that are reported as error.
const STANDARD_ERRORS: f64 = 3.0;
/// Rays for a first look at each vertex.
const GLANCE: usize = 1 << 10;
/// A vertex whose first few rays give less than this part of the largest tail is left out.
const CONTENDER: f64 = 0.75;
/// Relative accuracy of a critical value, against that of the tail there.
const QUANTILE_WIDTH: f64 = 1e-8;

/// The tail of the statistic at a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxTail {
    /// The value of the statistic.
    pub q: f64,
    /// The largest P(T >= q) over the means in the box.
    pub tail: f64,
    /// An estimate of how far off the tail is.
    pub error: f64,
    /// Whether the tail is an upper bound that the numerics did not look behind.
    pub is_bound: bool,
}

/// The largest P(T(x) >= q) over the means in the box prod [`low_j`, `high_j`], where x ~ N(mean,
/// Sigma) and T(x) = 1/2 min over t in the box of (x - t)' S^-1 (x - t).
///
/// `covariance` Sigma and `curvature` S are m x m, row by row. One bound of a coordinate may be infinite;
/// two that are equal fix it. All fixed: the law of [`weighted_chi_square_tail`], exactly. One axis
/// of variance is exact too; two are accurate to 1e-6, more to about 1e-4, and the error says so.
/// Above 6 coordinates with two different bounds the tail is the bound that holds for every
/// box: that of a fixed mean.
///
/// # Errors
/// [`Error::Argument`] for bounds that are no box and for matrices as in
/// [`quadratic_weights`](super::quadratic_weights).
///
/// ```
/// use fairaudit_core::projection::law::box_tail;
/// // mean <= 0 with S = Sigma = 1: T = max(x, 0)^2 / 2.
/// let tail = box_tail(1.959_963_984_540_054_f64.powi(2) / 2.0, &[1.0], &[1.0], &[f64::NEG_INFINITY], &[0.0])?;
/// assert!((tail.tail - 0.025).abs() < 1e-12);
/// # Ok::<(), fairaudit_core::Error>(())
/// ```
pub fn box_tail(q: f64, covariance: &[f64], curvature: &[f64], low: &[f64], high: &[f64]) -> Result<BoxTail> {
    Ok(Law::new(covariance, curvature, low, high)?.tail(q))
}

/// The critical value: the least q with a [`box_tail`] of at most `tail`, and the tail there.
///
/// # Errors
/// As [`box_tail`]; also for a tail beyond 0 and 1.
///
/// ```
/// use fairaudit_core::projection::law::box_quantile;
/// let critical = box_quantile(0.025, &[1.0], &[1.0], &[f64::NEG_INFINITY], &[0.0])?;
/// assert!((critical.q / (1.959_963_984_540_054_f64.powi(2) / 2.0) - 1.0).abs() < 1e-7);
/// # Ok::<(), fairaudit_core::Error>(())
/// ```
pub fn box_quantile(tail: f64, covariance: &[f64], curvature: &[f64], low: &[f64], high: &[f64]) -> Result<BoxTail> {
    if !(0.0..=1.0).contains(&tail) {
        return Err(Error::argument("tail", tail, "a probability"));
    }
    let law = Law::new(covariance, curvature, low, high)?;
    // The law of a fixed mean has the larger tail everywhere.
    let most = weighted_chi_square_quantile(&law.weights(), tail);
    if law.vertices.is_empty() || most == 0.0 || most == f64::INFINITY {
        return Ok(law.tail(most));
    }
    let excess = |ln_q: f64| libm::log(law.tail(libm::exp(ln_q)).tail / tail);
    let (mut low, mut high) = (libm::log(most), libm::log(most));
    while excess(low) < 0.0 {
        high = low;
        low -= 1.5;
        // T is 0 with a probability of more than 1 - tail.
        if low < libm::log(most) - 30.0 {
            return Ok(BoxTail { q: 0.0, ..law.tail(f64::MIN_POSITIVE) });
        }
    }
    Ok(law.tail(libm::exp(crossing(low, high, QUANTILE_WIDTH, excess))))
}

/// A coordinate's bounds as seen from a vertex.
type Bounds = (f64, f64);

struct Law<'a> {
    curvature: &'a [f64],
    axes: Axes,
    /// The number of axes that have variance.
    rank: usize,
    /// The box seen from each vertex that can be the worst one; none for a fixed mean, or when
    /// there are too many.
    vertices: Vec<Vec<Bounds>>,
    is_bound: bool,
}

impl<'a> Law<'a> {
    fn new(covariance: &[f64], curvature: &'a [f64], low: &[f64], high: &[f64]) -> Result<Self> {
        if low.len() != high.len() {
            return Err(Error::argument("high", format!("{} numbers", high.len()), &format!("{}, as low", low.len())));
        }
        for (low, high) in low.iter().zip(high) {
            if !(low <= high && (low.is_finite() || high.is_finite())) {
                return Err(Error::argument(
                    "a box side",
                    format!("[{low}, {high}]"),
                    "low <= high, one of them finite",
                ));
            }
        }
        let axes = Axes::new(covariance, curvature, low.len())?;
        let rank = axes.variances.iter().filter(|&&variance| variance > 0.0).count();
        let widths: Vec<f64> = low.iter().zip(high).map(|(low, high)| high - low).collect();
        let is_fixed = widths.iter().all(|&width| width == 0.0);
        let two_sided: Vec<usize> = (0..low.len()).filter(|&j| widths[j] > 0.0 && widths[j].is_finite()).collect();
        let is_bound = two_sided.len() > MOST_TWO_SIDED;
        // -V has the law of V: when the box is its own mirror image one half of the vertices will do.
        let is_symmetric = widths.iter().all(|width| width.is_finite());
        let choices = two_sided.len() - usize::from(is_symmetric && !two_sided.is_empty());
        let n_vertices = if is_bound || is_fixed { 0 } else { 1usize << choices };
        let seen_from = |vertex: usize| -> Vec<Bounds> {
            (0..low.len())
                .map(|j| match two_sided.iter().position(|&other| other == j) {
                    Some(bit) if vertex >> bit & 1 == 1 => (0.0, widths[j]),
                    Some(_) => (-widths[j], 0.0),
                    None if high[j].is_finite() => (-widths[j], 0.0),
                    None => (0.0, widths[j]),
                })
                .collect()
        };
        Ok(Self { curvature, axes, rank, vertices: (0..n_vertices).map(seen_from).collect(), is_bound })
    }

    fn weights(&self) -> Vec<f64> {
        self.axes.variances.iter().map(|variance| 0.5 * variance).collect()
    }

    fn tail(&self, q: f64) -> BoxTail {
        let law = |tail, error| BoxTail { q, tail, error, is_bound: self.is_bound };
        if q <= 0.0 {
            return law(1.0, 0.0);
        }
        if self.vertices.is_empty() || self.rank == 0 || !q.is_finite() {
            return law(weighted_chi_square_tail(&self.weights(), q), 0.0);
        }
        let mut contenders: Vec<(f64, &[Bounds])> = vec![(1.0, &self.vertices[0])];
        if self.vertices.len() > 1 {
            let glance = match self.rank {
                1 => self.directions(0..2, 2),
                2 => self.directions((0..CIRCLE).step_by(16), CIRCLE),
                _ => self.directions(0..GLANCE, GLANCE),
            };
            let tail = |vertex| (self.mean_tail(vertex, &glance, q), vertex);
            contenders = self.vertices.iter().map(|vertex| tail(vertex.as_slice())).collect();
            let largest = contenders.iter().map(|&(tail, _)| tail).fold(0.0, f64::max);
            contenders.retain(|&(tail, _)| tail >= CONTENDER * largest);
        }
        let copies: Vec<Vec<f64>> = match self.rank {
            1 => vec![self.directions(0..2, 2)],
            2 => (0..2).map(|half| self.directions((half..CIRCLE).step_by(2), CIRCLE)).collect(),
            _ => {
                let rays = (RAYS / contenders.len()).clamp(VERTEX_RAYS.0, VERTEX_RAYS.1) / COPIES;
                (0..COPIES).map(|copy| self.directions(copy * rays..(copy + 1) * rays, 0)).collect()
            }
        };
        let mut worst = law(0.0, 0.0);
        for (_, vertex) in contenders {
            let means: Vec<f64> = copies.iter().map(|directions| self.mean_tail(vertex, directions, q)).collect();
            let (tail, error) = mean_and_error(&means);
            if tail > worst.tail {
                worst = law(tail, error);
            }
        }
        worst
    }

    /// The mean over directions of P(`chi2_k` >= r^2).
    fn mean_tail(&self, vertex: &[Bounds], directions: &[f64], q: f64) -> f64 {
        let (low, high) = vertex.iter().copied().unzip();
        let mut rays = Rays::new(self.curvature, low, high);
        let size = vertex.len();
        let sum: f64 = directions.chunks_exact(size).map(|w| chi_square_tail(self.rank, rays.reach(w, q))).sum();
        sum / (directions.len() / size) as f64
    }

    /// The w(u) of the given points u on the unit sphere, side by side: both points of the line, the
    /// `n` points of a regular polygon, or a lattice and its mirror image.
    fn directions(&self, points: impl Iterator<Item = usize>, n: usize) -> Vec<f64> {
        let size = self.curvature.len().isqrt();
        let lattice = Lattice::new(self.rank);
        let mut directions = Vec::new();
        let mut u = vec![0.0; self.rank + 1];
        for point in points {
            match self.rank {
                1 => u[0] = 1.0 - 2.0 * point as f64,
                2 => (u[1], u[0]) = libm::sincos(TAU * (point as f64 + 0.5) / n as f64),
                _ if point % 2 == 0 => lattice.point(point / 2, &mut u),
                _ => u.iter_mut().for_each(|x| *x = -*x),
            }
            let entry = |j: usize| (0..self.rank).map(|axis| u[axis] * self.axes.rows[axis][j]).sum::<f64>();
            directions.extend((0..size).map(entry));
        }
        directions
    }
}

/// Points on the sphere, spread evenly: the additive recurrence with the powers of a generalised
/// golden ratio (Roberts 2018), as normal numbers by Box and Muller, scaled to length 1.
struct Lattice {
    rank: usize,
    steps: Vec<f64>,
}

impl Lattice {
    fn new(rank: usize) -> Self {
        let dimension = rank.next_multiple_of(2);
        // The root above 1 of x^(dimension + 1) = x + 1.
        let excess = |x: f64| x + 1.0 - (0..=dimension).fold(1.0, |power, _| power * x);
        let ratio = crossing(1.0, 2.0, 1e-15, excess);
        let mut power = 1.0;
        let step = |_| {
            power /= ratio;
            power
        };
        Self { rank, steps: (0..dimension).map(step).collect() }
    }

    fn point(&self, index: usize, u: &mut [f64]) {
        let uniform = |step: &f64| {
            let x = 0.5 + (index + 1) as f64 * step;
            x - f64::floor(x)
        };
        for (pair, steps) in u.chunks_exact_mut(2).zip(self.steps.chunks_exact(2)) {
            let radius = f64::sqrt(-2.0 * libm::log(uniform(&steps[0]).max(f64::MIN_POSITIVE)));
            let (sine, cosine) = libm::sincos(TAU * uniform(&steps[1]));
            (pair[0], pair[1]) = (radius * cosine, radius * sine);
        }
        let u = &mut u[..self.rank];
        let length = f64::sqrt(u.iter().map(|x| x * x).sum());
        for x in u.iter_mut() {
            *x /= length;
        }
    }
}

/// P(`chi2_degrees` >= r^2), in closed form.
fn chi_square_tail(degrees: usize, r: f64) -> f64 {
    if r == f64::INFINITY {
        return 0.0;
    }
    let half = 0.5 * r * r;
    let density = libm::exp(-half);
    // The terms half^i / Gamma(i + 1), i in steps of 1 from 0 or 1/2 up to degrees/2 - 1.
    let (mut sum, mut term, mut i) = (0.0, density, 0.0);
    if degrees % 2 == 1 {
        sum = libm::erfc(r * FRAC_1_SQRT_2);
        term = density * r * f64::sqrt(FRAC_2_PI);
        i = 0.5;
    }
    for _ in 0..degrees / 2 {
        sum += term;
        i += 1.0;
        term *= half / i;
    }
    sum
}

/// The mean of the copies, and how far it may be off: their difference when there are two.
fn mean_and_error(means: &[f64]) -> (f64, f64) {
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    match means {
        [_] => (mean, 0.0),
        [one, other] => (mean, (one - other).abs()),
        _ => {
            let squares: f64 = means.iter().map(|copy| (copy - mean) * (copy - mean)).sum();
            (mean, STANDARD_ERRORS * f64::sqrt(squares / (n * (n - 1.0))))
        }
    }
}
