//! The distance of a normal vector to a box: the law of the statistic under a composite null.
//!
//! T(x) = 1/2 min over t in the box of (x - t)' S^-1 (x - t), x = mean + V, V ~ N(0, Sigma), with a
//! mean somewhere in the box. {T < q} is convex, so that the mean with the largest
//! P(T >= q) is a vertex. As seen from there {T < q} is also star-shaped: with V = R w(u), u uniform on
//! the unit sphere of the k axes of V and R^2 ~ `chi2_k` apart from it, P(T >= q) is the mean over u
//! of P(`chi2_k` >= r(u)^2), where r(u) is the length at which T(r w(u)) reaches q.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, TAU};

use super::axes::{Axes, weights_of};
use super::rays::Rays;
use super::{weighted_chi_square_quantile, weighted_chi_square_tail};
use crate::error::{Error, Result};
use crate::numerics::roots::crossing;
use crate::parallel::Control;

/// Two-sided coordinates up to which all vertices are looked at.
const MOST_TWO_SIDED: usize = 6;
/// Points on the circle of two axes; a multiple of 8.
const CIRCLE: usize = 4_096;
/// Rays from all vertices together, for three axes and more.
const RAYS: usize = 1 << 17;
/// Fewest and most rays from one vertex.
const VERTEX_RAYS: (usize, usize) = (1 << 13, 1 << 17);
/// Shifted copies of the lattice.
const COPIES: usize = 8;
/// Standard errors of the mean of the copies that are reported as error.
const STANDARD_ERRORS: f64 = 3.0;
/// Rays for a first look at each vertex, and between two looks at the control.
const GLANCE: usize = 1 << 10;
/// A vertex whose first few rays give less than this part of the largest tail is left out.
const CONTENDER: f64 = 0.75;
/// A relative variance of the tails of a fixed mean below this is rounding.
const NO_VARIANCE: f64 = 1e-16;
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

/// The law of T(x) = 1/2 min over t in the box of (x - t)' S^-1 (x - t), where x ~ N(mean, Sigma), under the worst mean
/// in the box prod [`low_j`, `high_j`].
///
/// One bound of a coordinate may be infinite; two that are equal fix it. All fixed: the law of
/// [`weighted_chi_square_tail`], exactly. One axis of variance is exact too; two are accurate to 1e-8 or so, more (up to
/// about 30) to 1e-4 where the correlations are moderate: the error says it. Above 6 coordinates with two different
/// finite bounds the tail is the bound that holds for every box: that of a fixed mean.
#[derive(Debug, Clone)]
pub struct BoxLaw {
    curvature: Vec<f64>,
    /// Of the chi-squares of a fixed mean.
    weights: Vec<f64>,
    /// None for a fixed mean, whose weights say it all.
    axes: Option<Axes>,
    /// The number of axes that have variance.
    rank: usize,
    /// The box seen from each vertex that can be the worst one; none for a fixed mean, or when
    /// there are too many.
    vertices: Vec<Vec<Bounds>>,
    is_bound: bool,
}

/// A q this far below the critical value of a fixed mean, in logarithms, stands for 0.
const DEEP: f64 = 30.0;

/// Sides farther away than this have squares that are infinite.
const FARTHEST: f64 = 1e100;

/// A coordinate's bounds as seen from a vertex.
type Bounds = (f64, f64);

impl BoxLaw {
    /// `covariance` Sigma and `curvature` S are m x m, row by row.
    ///
    /// # Errors
    /// [`Error::Argument`] for bounds that are no box and for matrices as in
    /// [`quadratic_weights`](super::quadratic_weights).
    pub fn new(covariance: &[f64], curvature: &[f64], low: &[f64], high: &[f64]) -> Result<Self> {
        if low.len() != high.len() {
            return Err(Error::argument("high", format!("{} numbers", high.len()), &format!("{}, as low", low.len())));
        }
        for (low, high) in low.iter().zip(high) {
            let fits = |side: f64| side.is_infinite() || side.abs() <= FARTHEST;
            if !(low <= high && (low.is_finite() || high.is_finite()) && fits(*low) && fits(*high)) {
                let accepted = "low <= high, one of them finite, up to 1e100";
                return Err(Error::argument("a box side", format!("[{low}, {high}]"), accepted));
            }
        }
        let widths: Vec<f64> = low.iter().zip(high).map(|(low, high)| high - low).collect();
        let is_fixed = widths.iter().all(|&width| width == 0.0);
        let axes = if is_fixed { None } else { Some(Axes::new(covariance, curvature, low.len())?) };
        let weights = match &axes {
            Some(axes) => axes.variances.iter().map(|variance| 0.5 * variance).collect(),
            None => weights_of(covariance, curvature, low.len())?,
        };
        let rank = weights.iter().filter(|&&weight: &&f64| weight > 0.0).count();
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
        let vertices = (0..n_vertices).map(seen_from).collect();
        Ok(Self { curvature: curvature.to_vec(), weights, axes, rank, vertices, is_bound })
    }

    /// Whether every coordinate has one fair value.
    pub fn is_fixed(&self) -> bool {
        self.axes.is_none()
    }

    /// The largest P(T >= q) over the means in the box.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    ///
    /// ```
    /// use fairaudit_core::parallel::Control;
    /// use fairaudit_core::projection::law::BoxLaw;
    /// // mean <= 0 with S = Sigma = 1: T = max(x, 0)^2 / 2.
    /// let law = BoxLaw::new(&[1.0], &[1.0], &[f64::NEG_INFINITY], &[0.0])?;
    /// let q = 1.959_963_984_540_054_f64.powi(2) / 2.0;
    /// assert!((law.tail(q, &Control::default())?.tail - 0.025).abs() < 1e-12);
    /// # Ok::<(), fairaudit_core::Error>(())
    /// ```
    pub fn tail(&self, q: f64, control: &Control) -> Result<BoxTail> {
        control.check()?;
        let law = |tail, error| BoxTail { q, tail, error, is_bound: self.is_bound };
        if q <= 0.0 {
            return Ok(law(1.0, 0.0));
        }
        if self.vertices.is_empty() || self.rank == 0 || !q.is_finite() {
            return Ok(law(weighted_chi_square_tail(&self.weights, q), 0.0));
        }
        let mut contenders: Vec<(f64, &[Bounds])> = vec![(1.0, &self.vertices[0])];
        if self.vertices.len() > 1 {
            let glance = match self.rank {
                1 => self.directions(0..2, 2),
                2 => self.directions((0..CIRCLE).step_by(16), CIRCLE),
                _ => self.directions(0..GLANCE, GLANCE),
            };
            let rough =
                |vertex: &Vec<Bounds>| -> Result<f64> { Ok(self.tails(vertex, &glance, q, control)?.iter().sum()) };
            contenders =
                self.vertices.iter().map(|vertex| Ok((rough(vertex)?, vertex.as_slice()))).collect::<Result<_>>()?;
            let largest = contenders.iter().map(|&(tail, _)| tail).fold(0.0, f64::max);
            // One whose tail is not known stays.
            contenders.retain(|&(tail, _)| tail.is_nan() || tail >= CONTENDER * largest);
        }
        let copies: Vec<Vec<f64>> = match self.rank {
            1 => vec![self.directions(0..2, 2)],
            2 => (0..2).map(|half| self.directions((half..CIRCLE).step_by(2), CIRCLE)).collect(),
            _ => {
                let rays = (RAYS / contenders.len()).clamp(VERTEX_RAYS.0, VERTEX_RAYS.1) / COPIES;
                (0..COPIES).map(|copy| self.directions(copy * rays..(copy + 1) * rays, 0)).collect()
            }
        };
        let fixed: Vec<f64> = copies.iter().flat_map(|copy| self.fixed_tails(copy, q)).collect();
        let fixed_mean = weighted_chi_square_tail(&self.weights, q);
        let mut worst = law(0.0, 0.0);
        for (_, vertex) in contenders {
            let tails =
                copies.iter().map(|copy| self.tails(vertex, copy, q, control)).collect::<Result<Vec<_>>>()?.concat();
            let (tail, error) = controlled_mean(&tails, &fixed, fixed_mean, copies.len());
            // What cannot be computed rejects nothing.
            let (tail, error) = if tail.is_nan() { (1.0, 0.0) } else { (tail, error) };
            if tail > worst.tail {
                worst = law(tail, error);
            }
        }
        Ok(worst)
    }

    /// The critical value: the least q with a [`BoxLaw::tail`] of at most `tail`, and the tail there.
    ///
    /// It takes about ten times as long as the tail. It is 0, with the tail of any q above, when T is 0
    /// with a probability of more than 1 - `tail`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a tail beyond 0 and 1; [`Error::Cancelled`].
    ///
    /// ```
    /// use fairaudit_core::parallel::Control;
    /// use fairaudit_core::projection::law::BoxLaw;
    /// let law = BoxLaw::new(&[1.0], &[1.0], &[f64::NEG_INFINITY], &[0.0])?;
    /// let critical = law.quantile(0.025, &Control::default())?;
    /// assert!((critical.q / (1.959_963_984_540_054_f64.powi(2) / 2.0) - 1.0).abs() < 1e-7);
    /// # Ok::<(), fairaudit_core::Error>(())
    /// ```
    pub fn quantile(&self, tail: f64, control: &Control) -> Result<BoxTail> {
        if !(0.0..=1.0).contains(&tail) {
            return Err(Error::argument("tail", tail, "a probability"));
        }
        // The law of a fixed mean has the larger tail everywhere.
        let most = weighted_chi_square_quantile(&self.weights, tail);
        if self.vertices.is_empty() || most == 0.0 || most == f64::INFINITY {
            return self.tail(most, control);
        }
        // A call that is stopped finds its way out as if it had crossed; what it found is thrown away.
        let excess = |ln_q: f64| self.tail(libm::exp(ln_q), control).map_or(0.0, |found| libm::log(found.tail / tail));
        let (mut low, mut high) = (libm::log(most), libm::log(most));
        // T is 0 with a probability of more than 1 - tail.
        if excess(low - DEEP) < 0.0 {
            return Ok(BoxTail { q: 0.0, ..self.tail(libm::exp(low - DEEP), control)? });
        }
        while excess(low) < 0.0 {
            high = low;
            low -= 1.0;
        }
        self.tail(libm::exp(crossing(low, high, QUANTILE_WIDTH, excess)), control)
    }

    /// P(`chi2_k` >= r^2) for each direction.
    fn tails(&self, vertex: &[Bounds], directions: &[f64], q: f64, control: &Control) -> Result<Vec<f64>> {
        let (low, high) = vertex.iter().copied().unzip();
        let mut rays = Rays::new(&self.curvature, low, high);
        let length = vertex.len() + 1;
        let mut tails = Vec::with_capacity(directions.len() / length);
        for some in directions.chunks(GLANCE * length) {
            control.check()?;
            let tail = |direction: &[f64]| chi_square_tail(self.rank, rays.reach(&direction[1..], q));
            tails.extend(some.chunks_exact(length).map(tail));
        }
        Ok(tails)
    }

    /// The same for a fixed mean, where T(r w) = 1/2 r^2 w' S^-1 w.
    fn fixed_tails(&self, directions: &[f64], q: f64) -> impl Iterator<Item = f64> {
        let size = self.curvature.len().isqrt();
        let rank = self.rank;
        directions.chunks_exact(size + 1).map(move |direction| chi_square_tail(rank, f64::sqrt(2.0 * q / direction[0])))
    }

    /// w(u)' S^-1 w(u) and w(u) of the given points u on the unit sphere, side by side: both points of
    /// the line, the `n` points of a regular polygon, or a lattice and its mirror image.
    fn directions(&self, points: impl Iterator<Item = usize>, n: usize) -> Vec<f64> {
        let size = self.curvature.len().isqrt();
        let lattice = Lattice::new(self.rank);
        let mut directions = Vec::new();
        // A fixed mean has no directions, and nobody asks for them.
        let Some(axes) = &self.axes else { return directions };
        let mut u = vec![0.0; self.rank.max(2)];
        for point in points {
            match self.rank {
                1 => u[0] = 1.0 - 2.0 * point as f64,
                2 => (u[1], u[0]) = libm::sincos(TAU * (point as f64 + 0.5) / n as f64),
                _ if point % 2 == 0 => lattice.point(point / 2, &mut u),
                _ => u.iter_mut().for_each(|x| *x = -*x),
            }
            directions.push((0..self.rank).map(|axis| u[axis] * u[axis] * axes.variances[axis]).sum());
            let entry = |j: usize| (0..self.rank).map(|axis| u[axis] * axes.rows[axis][j]).sum::<f64>();
            directions.extend((0..size).map(entry));
        }
        directions
    }
}

/// Points on the sphere, spread evenly: the additive recurrence with the powers of a generalised
/// golden ratio (Roberts 2018) in one dimension less, and a map that keeps areas.
struct Lattice {
    rank: usize,
    steps: Vec<f64>,
}

impl Lattice {
    fn new(rank: usize) -> Self {
        // The root above 1 of x^rank = x + 1.
        let excess = |x: f64| x + 1.0 - (0..rank).fold(1.0, |power, _| power * x);
        let ratio = crossing(1.0, 2.0, 1e-15, excess);
        let mut power = 1.0;
        let step = |_| {
            power /= ratio;
            power
        };
        Self { rank, steps: (1..rank).map(step).collect() }
    }

    fn point(&self, index: usize, u: &mut [f64]) {
        let mut uniforms = self.steps.iter().map(|step| {
            let x = 0.5 + (index + 1) as f64 * step;
            x - f64::floor(x)
        });
        let mut uniform = || uniforms.next().unwrap_or_default();
        let pairs = self.rank / 2;
        // The squared length that is left for the next coordinates.
        let mut rest = 1.0;
        if self.rank % 2 == 1 {
            // One coordinate has the density (1 - z^2)^(pairs - 1); this is its integral from 0.
            let area = |z: f64| {
                let square = 1.0 - z * z;
                let step = |(area, power): (f64, f64), j: usize| {
                    let (j, power) = (2.0 * j as f64, power * square);
                    ((z * power + j * area) / (j + 1.0), power)
                };
                (1..pairs).fold((z, 1.0), step).0
            };
            let goal = area(1.0) * (2.0 * uniform() - 1.0);
            let z = crossing(-1.0, 1.0, 1e-10, |z| goal - area(z));
            u[self.rank - 1] = z;
            rest -= z * z;
        }
        for (pair, left) in u.chunks_exact_mut(2).zip((0..pairs).rev()) {
            // The part of the rest that the later pairs have is a beta variable.
            let part = if left == 0 { 0.0 } else { libm::pow(uniform(), 1.0 / left as f64) };
            let radius = f64::sqrt(rest * (1.0 - part));
            rest *= part;
            let (sine, cosine) = libm::sincos(TAU * uniform());
            (pair[0], pair[1]) = (radius * cosine, radius * sine);
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

/// The mean of the tails, and how far it may be off.
///
/// The tails of a fixed mean at the same directions, whose mean is known, take away what the
/// two have in common (a control variate). The copies of the lattice follow each other; two of
/// them differ by more than the error, more of them give a standard error.
fn controlled_mean(tails: &[f64], fixed: &[f64], fixed_mean: f64, copies: usize) -> (f64, f64) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (tail, known) = (mean(tails), mean(fixed));
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (x, y) in tails.iter().zip(fixed) {
        covariance += (x - tail) * (y - known);
        variance += (y - known) * (y - known);
    }
    let slope = if variance > NO_VARIANCE * known * known * tails.len() as f64 { covariance / variance } else { 0.0 };
    let length = tails.len() / copies;
    let means: Vec<f64> = (tails.chunks_exact(length).zip(fixed.chunks_exact(length)))
        .map(|(tails, fixed)| mean(tails) - slope * (mean(fixed) - fixed_mean))
        .collect();
    let n = copies as f64;
    let tail = mean(&means);
    let error = match means[..] {
        [_] => 0.0,
        [one, other] => (one - other).abs(),
        _ => {
            let squares: f64 = means.iter().map(|copy| (copy - tail) * (copy - tail)).sum();
            STANDARD_ERRORS * f64::sqrt(squares / (n * (n - 1.0)))
        }
    };
    (tail.clamp(0.0, 1.0), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::laws::{normal_cdf, normal_quantile};
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    const FREE: f64 = f64::NEG_INFINITY;

    fn identity(size: usize) -> Vec<f64> {
        (0..size * size).map(|index| f64::from(index.is_multiple_of(size + 1))).collect()
    }

    fn box_quantile(tail: f64, covariance: &[f64], curvature: &[f64], low: &[f64], high: &[f64]) -> Result<BoxTail> {
        BoxLaw::new(covariance, curvature, low, high)?.quantile(tail, &Control::default())
    }

    fn tail(q: f64, covariance: &[f64], curvature: &[f64], low: &[f64], high: &[f64]) -> BoxTail {
        BoxLaw::new(covariance, curvature, low, high).unwrap().tail(q, &Control::default()).unwrap()
    }

    #[test]
    fn chi_squares_equal_the_oracle() {
        for degrees in 1..=12 {
            let oracle = ChiSquared::new(degrees as f64).unwrap();
            for r in [0.0, 0.1, 1.0, 2.5, 6.0] {
                let value = chi_square_tail(degrees, r);
                assert!((value - oracle.sf(r * r)).abs() < 1e-12, "{degrees} {r}: {value}");
            }
        }
        assert_eq!(chi_square_tail(3, f64::INFINITY), 0.0);
    }

    /// One coordinate: T = (x - t)^2 / (2 S) is the distance to the nearer end.
    #[test]
    fn one_coordinate_has_a_closed_form() {
        let (covariance, curvature) = (2.3, 0.7);
        for q in [0.01, 1.0, 4.0, 300.0] {
            let z = f64::sqrt(2.0 * curvature * q / covariance);
            for width in [0.0, 1e-3, 0.8, 5.0, f64::INFINITY] {
                let expected = normal_cdf(-z) + normal_cdf(-z - width / f64::sqrt(covariance));
                for (low, high) in [(1.5 - width, 1.5), (1.5, 1.5 + width)] {
                    let law = tail(q, &[covariance], &[curvature], &[low], &[high]);
                    assert!((law.tail / expected - 1.0).abs() < 1e-11, "{q} {width}: {}", law.tail);
                    assert!(law.error == 0.0 && !law.is_bound && law.q == q);
                }
            }
        }
    }

    /// S = Sigma and one-sided bounds: chi-bar-squares, with binomial weights when independent.
    #[test]
    fn orthants_are_chi_bar_squares() {
        for size in 1..=7 {
            for q in [0.5, 3.0, 10.0] {
                let (mut expected, mut weight) = (0.0, libm::exp2(-(size as f64)));
                for degrees in 1..=size {
                    weight *= (size + 1 - degrees) as f64 / degrees as f64;
                    expected += weight * chi_square_tail(degrees, f64::sqrt(2.0 * q));
                }
                let law = tail(q, &identity(size), &identity(size), &vec![FREE; size], &vec![0.0; size]);
                let difference = (law.tail - expected).abs();
                assert!(difference < 2e-4 && difference <= law.error + 1e-14, "{size} {q}: {law:?}");
                assert!(size > 2 || difference < 1e-12, "{size} {q}: {difference}");
                assert!(size != 3 || difference < 1e-5, "{size} {q}: {difference}");
            }
        }
        // Two correlated coordinates: both gammas are positive with 1/4 - asin(rho)/(2 pi).
        for rho in [-0.99, 0.3, 0.999_9] {
            let matrix = [1.0, 3.0 * rho, 3.0 * rho, 9.0];
            let expected = (0.25 - libm::asin(rho) / TAU) * chi_square_tail(2, 2.0) + 0.5 * chi_square_tail(1, 2.0);
            let law = tail(2.0, &matrix, &matrix, &[0.0, -4.0], &[f64::INFINITY; 2]);
            let mirrored = tail(2.0, &matrix, &matrix, &[FREE; 2], &[7.0, 0.0]);
            assert!((law.tail - expected).abs() < 1e-9, "{rho}: {law:?}");
            assert!((law.tail - mirrored.tail).abs() < 1e-13, "{rho}: {mirrored:?}");
        }
    }

    #[test]
    fn a_fixed_mean_is_a_weighted_chi_square() {
        let covariance = [2.0, 0.5, 0.1, 0.5, 1.0, 0.2, 0.1, 0.2, 3.0];
        let curvature = [1.0, 0.3, 0.0, 0.3, 0.5, 0.0, 0.0, 0.0, 2.0];
        let weights = crate::projection::law::quadratic_weights(&covariance, &curvature).unwrap();
        let expected = weighted_chi_square_tail(&weights, 3.0);
        assert_eq!(tail(3.0, &covariance, &curvature, &[1.0; 3], &[1.0; 3]).tail, expected);
        // A box of almost no size: through the rays.
        let law = tail(3.0, &covariance, &curvature, &[-1e-7; 3], &[0.0; 3]);
        assert!((law.tail - expected).abs() < 1e-7, "{law:?} {expected}");
        // Seven criteria: the bound.
        let law = tail(3.0, &identity(7), &identity(7), &[-1.0; 7], &[1.0; 7]);
        assert!(law.is_bound && law.tail == weighted_chi_square_tail(&[0.5; 7], 3.0));
    }

    /// The definition: T from the distances, by projecting on one side after another.
    fn statistic(x: &[f64], inverse: &[f64], low: &[f64], high: &[f64]) -> f64 {
        let size = x.len();
        let mut t: Vec<f64> = (0..size).map(|j| x[j].clamp(low[j], high[j])).collect();
        for _ in 0..60 {
            for j in 0..size {
                let pull: f64 = (0..size).filter(|&i| i != j).map(|i| inverse[j * size + i] * (x[i] - t[i])).sum();
                t[j] = (x[j] + pull / inverse[j * size + j]).clamp(low[j], high[j]);
            }
        }
        let row = |i: usize| (0..size).map(|j| inverse[i * size + j] * (x[j] - t[j])).sum::<f64>();
        0.5 * (0..size).map(|i| (x[i] - t[i]) * row(i)).sum::<f64>()
    }

    /// P(T >= q) at the worst vertex, on a grid of quantiles of V = factor Z.
    fn brute_force(q: f64, factor: &[f64], inverse: &[f64], low: &[f64], high: &[f64], points: usize) -> f64 {
        let size = low.len();
        let grid: Vec<f64> = (0..points).map(|i| normal_quantile((i as f64 + 0.5) / points as f64)).collect();
        let share = |vertex: usize| {
            let corner: Vec<f64> =
                (0..size).map(|j| if vertex >> j & 1 == 1 || low[j] == FREE { high[j] } else { low[j] }).collect();
            let above = |index: usize| {
                let z: Vec<f64> = (0..size).map(|j| grid[index / points.pow(j as u32) % points]).collect();
                let shift = |j: usize| (0..size).map(|k| factor[j * size + k] * z[k]).sum::<f64>();
                let x: Vec<f64> = (0..size).map(|j| corner[j] + shift(j)).collect();
                statistic(&x, inverse, low, high) >= q
            };
            let total = points.pow(size as u32);
            (0..total).filter(|&index| above(index)).count() as f64 / total as f64
        };
        (0..1 << size).map(share).fold(0.0, f64::max)
    }

    #[test]
    fn boxes_equal_brute_force() {
        // Sigma = factor factor', S^-1 = inverse.
        let (factor, covariance) = ([1.0, 0.0, 0.8, 0.6], [1.0, 0.8, 0.8, 1.0]);
        let (inverse, curvature) = ([1.0, 0.5, 0.5, 1.25], [1.25, -0.5, -0.5, 1.0]);
        for (low, high) in [([-0.3, -1.0], [0.2, 0.5]), ([FREE, -0.4], [0.0, 0.4]), ([0.0, -2.0], [0.0, 2.0])] {
            for q in [0.4, 1.5] {
                let law = tail(q, &covariance, &curvature, &low, &high);
                let expected = brute_force(q, &factor, &inverse, &low, &high, 250);
                assert!((law.tail - expected).abs() < 2e-3 && law.error < 1e-8, "{low:?} {q}: {law:?} {expected}");
            }
        }
        let factor = [1.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.0, -1.0, 0.5];
        let covariance = [1.0, 0.5, 0.0, 0.5, 1.25, -1.0, 0.0, -1.0, 1.25];
        let inverse = [2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0];
        let curvature = [0.75, -0.5, 0.25, -0.5, 1.0, -0.5, 0.25, -0.5, 0.75];
        for (low, high) in [([-0.5; 3], [0.5, 0.2, 0.1]), ([FREE, -0.3, FREE], [0.0, 0.3, 0.0])] {
            let law = tail(2.0, &covariance, &curvature, &low, &high);
            let expected = brute_force(2.0, &factor, &inverse, &low, &high, 40);
            assert!((law.tail - expected).abs() < 4e-3 && law.error < 1e-4, "{low:?}: {law:?} {expected}");
        }
    }

    /// A nearly singular S, where exchanges of all wrong coordinates alone may not end.
    #[test]
    fn strong_correlations_are_solved() {
        let entry = |index: usize| if index.is_multiple_of(6) { 1.0 } else { 0.999_999 };
        let curvature: Vec<f64> = (0..25).map(entry).collect();
        let inverse: Vec<f64> = {
            // (1 - rho) I + rho J has the inverse (I - rho J / (1 + 4 rho)) / (1 - rho).
            let (rho, gap) = (0.999_999, 1.0 - 0.999_999);
            (0..25usize).map(|index| (f64::from(index.is_multiple_of(6)) - rho / (1.0 + 4.0 * rho)) / gap).collect()
        };
        let (low, high) = (vec![-1.0, -0.5, -2.0, -1.0, -0.1], vec![0.0; 5]);
        let mut rays = Rays::new(&curvature, low.clone(), high.clone());
        for direction in 0..200 {
            let w: Vec<f64> = (0..5).map(|j| libm::sin(f64::from(direction * 7 + j * j))).collect();
            let r = rays.reach(&w, 3.0);
            let x: Vec<f64> = w.iter().map(|w| r * w).collect();
            // Newton's primal would take long; a feasible t bounds T from above.
            let bound = statistic(&x, &inverse, &low, &high);
            assert!(r.is_finite() && bound > 3.0 * (1.0 - 1e-6), "{direction}: {r} {bound}");
        }
    }

    #[test]
    fn tails_fall_with_the_statistic_and_with_the_width() {
        let covariance = [1.0, 0.5, 0.2, 0.5, 1.0, 0.5, 0.2, 0.5, 1.0];
        let of = |q: f64, width: f64| tail(q, &covariance, &identity(3), &[-width; 3], &[width; 3]).tail;
        for (q, width) in [(0.0, 0.1), (0.3, 0.1), (1.0, 0.3), (4.0, 0.3)] {
            assert!(of(q, width) > of(q + 0.05, width), "{q} {width}");
            assert!(q == 0.0 || of(q, width) > of(q, width + 0.05), "{q} {width}");
        }
        assert_eq!(of(1.0, 0.2).to_bits(), of(1.0, 0.2).to_bits());
        assert_eq!((of(0.0, 0.2), of(-1.0, 0.2), of(f64::INFINITY, 0.2)), (1.0, 1.0, 0.0));
    }

    #[test]
    fn covariances_may_be_singular() {
        // V = (1, 2) Z: T = max(Z, 2 Z, 0)^2 / 2 with S = I is 5 Z^2 / 2 for Z > 0.
        let law = tail(2.5, &[1.0, 2.0, 2.0, 4.0], &identity(2), &[FREE; 2], &[0.0; 2]);
        assert!((law.tail - normal_cdf(-1.0)).abs() < 1e-14, "{law:?}");
        assert_eq!(tail(1.0, &[0.0; 4], &identity(2), &[-1.0; 2], &[1.0; 2]).tail, 0.0);
    }

    #[test]
    fn critical_values_have_their_tail() {
        let covariance = [1.0, 0.3, 0.3, 2.0];
        for (low, high) in [([-0.5; 2], [0.5; 2]), ([FREE; 2], [0.0; 2]), ([FREE, 0.0], [0.0; 2]), ([0.0; 2], [0.0; 2])]
        {
            for level in [1e-6, 0.05, 0.4] {
                let critical = box_quantile(level, &covariance, &identity(2), &low, &high).unwrap();
                assert!((critical.tail / level - 1.0).abs() < 1e-6, "{low:?} {level}: {critical:?}");
                assert_eq!(tail(critical.q, &covariance, &identity(2), &low, &high), critical);
            }
        }
        // P(T > 0) = 1/2.
        let critical = box_quantile(0.7, &[1.0], &[1.0], &[FREE], &[0.0]).unwrap();
        assert!(critical.q == 0.0 && (critical.tail - 0.5).abs() < 1e-6, "{critical:?}");
        assert_eq!(box_quantile(0.0, &[1.0], &[1.0], &[FREE], &[0.0]).unwrap().q, f64::INFINITY);
    }

    #[test]
    fn what_is_no_box_is_refused() {
        let message = |low: &[f64], high: &[f64]| BoxLaw::new(&[1.0], &[1.0], low, high).unwrap_err().to_string();
        assert_eq!(
            message(&[1.0], &[0.0]),
            "a box side is [1, 0]; accepted: low <= high, one of them finite, up to 1e100"
        );
        assert!(message(&[FREE], &[f64::INFINITY]).contains("[-inf, inf]"));
        assert!(message(&[f64::NAN], &[0.0]).contains("[NaN, 0]"));
        assert!(message(&[0.0], &[0.0; 2]).contains("high is 2 numbers; accepted: 1, as low"));
        assert!(message(&[0.0; 2], &[0.0; 2]).contains("covariance is 1 numbers; accepted: 2 x 2 numbers"));
        let level = box_quantile(1.5, &[1.0], &[1.0], &[0.0], &[0.0]).unwrap_err();
        assert!(level.to_string().contains("tail is 1.5"));
    }
}
