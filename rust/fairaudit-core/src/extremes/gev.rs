//! Block maxima: the generalised extreme value law by maximum likelihood, and its return levels.
//!
//! With th = xi / (scale at x0), x0 in the middle of the maxima, the numbers v = log(1 + th (x - x0)) / th follow
//! Gumbel's law, so that for each th the rest of the likelihood is concave in one number, kappa = th / xi: a profile of
//! one number is left, and xi = 0 is no special place in it. Newton's steps on all three parameters end the search. The
//! likelihood has no bound for xi < -1, nor as xi grows: the shape is kept between [`LOWEST_SHAPE`] and
//! [`HIGHEST_SHAPE`].

use std::cell::{Cell, RefCell};

use super::gpd::{HIGHEST_SHAPE, LOWEST_SHAPE, growth};
use crate::error::{Error, Result};
use crate::numerics::laws::normal_quantile;
use crate::numerics::matrix;
use crate::numerics::peaks::peak;
use crate::numerics::roots::crossing;
use crate::parallel::Control;

/// Above this shape the observed information gives standard errors.
pub const REGULAR_SHAPE: f64 = -0.5;
/// Fewer maxima have no fit of three parameters.
pub const FEWEST_MAXIMA: usize = 4;

/// Largest slope of the log likelihood per maximum, by parameters in units of the scale, that counts as 0.
const FLAT: f64 = 1e-8;
/// Points of the grid on each side of th = 0, and how far it goes in -log of the distance to the end of th.
const SIDE: i32 = 32;
const REACH: f64 = 25.0;
/// To how much the place of the peak is known there: about the root of what a float resolves.
const PLACE: f64 = 1e-8;
/// Beyond this many scales from the estimate a limit counts as infinite.
const FARTHEST: f64 = 1e9;

/// Location, scale and shape of the largest of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// Location mu.
    pub location: f64,
    /// Scale, above 0.
    pub scale: f64,
    /// Shape xi, of the sign that heavy tails have above 0.
    pub shape: f64,
}

/// How a fit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The slope is 0 and the curvature negative.
    Converged,
    /// The likelihood is largest at the lowest shape.
    LowestShape,
    /// The likelihood is largest at the highest shape.
    HighestShape,
    /// The slope is not 0: the likelihood is too flat or too steep for its rounding.
    NotConverged,
}

/// A fit to block maxima.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The law.
    pub law: Law,
    /// Its log likelihood.
    pub log_likelihood: f64,
    /// The largest slope of the log likelihood per maximum in location / scale, log scale and shape.
    pub slope: f64,
    /// The inverse of the observed information of location, scale and shape, row by row, where the fit converged to
    /// a shape above [`REGULAR_SHAPE`].
    pub covariance: Option<[f64; 9]>,
    /// How it ended.
    pub end: End,
}

/// Estimated nanoseconds of a fit to `n` maxima.
pub fn fit_work(n: usize) -> u64 {
    10_000 * n as u64
}

/// Estimated nanoseconds of the interval of a return level.
pub fn interval_work(n: usize) -> u64 {
    1_000_000 * n as u64
}

/// Fits the law to block maxima in any order.
///
/// # Errors
/// [`Error::Argument`] when there are fewer than [`FEWEST_MAXIMA`], or they are all equal or not finite;
/// [`Error::Cancelled`].
///
/// ```
/// use fairaudit_core::{extremes::gev, parallel::Control};
/// let maxima: Vec<f64> = (1..100).map(|i| -(-(f64::from(i) / 100.0).ln()).ln()).collect();
/// let fit = gev::fit(&maxima, &Control::default()).unwrap();
/// assert!(fit.end == gev::End::Converged && fit.law.shape.abs() < 0.1);
/// ```
pub fn fit(maxima: &[f64], control: &Control) -> Result<Fit> {
    Sample::new(maxima, control)?.fit()
}

/// The profile-likelihood interval of the level that one row in `m` exceeds when blocks have `size` rows: where twice
/// the loss of log likelihood is within the chi-square quantile. An upper limit may be infinite.
///
/// # Errors
/// As [`fit`]; [`Error::Argument`] for a size, horizon or confidence that is none.
pub fn return_level_interval(
    maxima: &[f64],
    size: f64,
    m: f64,
    confidence: f64,
    control: &Control,
) -> Result<(f64, f64)> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Error::argument("confidence", confidence, "a number between 0 and 1"));
    }
    let odds = block_odds(size, m)?;
    let sample = Sample::new(maxima, control)?;
    let fit = sample.fit()?;
    let estimate = fit.law.level(odds);
    let z = normal_quantile(0.5 + 0.5 * confidence);
    let side = |sign: f64| {
        // How much of the allowed loss is left at a distance from the estimate.
        let left = |distance: f64| {
            let value = sample.profile(Some((estimate + sign * distance, odds))).value;
            z * z - 2.0 * (fit.log_likelihood - value).max(0.0)
        };
        let mut far = 0.1 * fit.law.scale;
        while far < FARTHEST * fit.law.scale && left(far) > 0.0 {
            far *= 2.0;
        }
        if far >= FARTHEST * fit.law.scale { f64::INFINITY } else { crossing(0.0, far, 1e-12 * far, left) }
    };
    let (below, above) = (side(-1.0), side(1.0));
    control.check()?;
    Ok((estimate - below, estimate + above))
}

/// The level that one row in `m` exceeds: G(x) = (1 - 1/m)^size.
///
/// # Errors
/// [`Error::Argument`] for a size below 1 or a horizon of at most 1.
pub fn return_level(law: Law, size: f64, m: f64) -> Result<f64> {
    Ok(law.level(block_odds(size, m)?))
}

/// 1 / (-size log(1 - 1/m)): of so many blocks one has a maximum above the level, for rare ones.
fn block_odds(size: f64, m: f64) -> Result<f64> {
    if !(size >= 1.0 && size.is_finite()) {
        return Err(Error::argument("block_size", size, "a finite number of at least 1"));
    }
    if !(m > 1.0 && m.is_finite()) {
        return Err(Error::argument("m", m, "a finite number above 1"));
    }
    Ok(-1.0 / (size * libm::log1p(-1.0 / m)))
}

impl Law {
    /// The law of the largest of m rows whose excesses over a threshold are generalised Pareto with this scale and
    /// shape; `expected` is the number of them that exceed the threshold: M = m k / n.
    pub fn of_excesses(threshold: f64, scale: f64, shape: f64, expected: f64) -> Self {
        Self {
            location: threshold + scale * growth(shape, expected),
            scale: scale * libm::exp(shape * libm::log(expected)),
            shape,
        }
    }

    /// The scale of the excesses over a threshold, and the number of rows of a block that are expected above it;
    /// the scale is not above 0 where the threshold is outside of the law.
    pub fn excesses(&self, threshold: f64) -> (f64, f64) {
        let distance = threshold - self.location;
        let (y, _) = reduced(self.shape, distance / self.scale);
        (self.scale + self.shape * distance, libm::exp(-y))
    }

    fn level(&self, odds: f64) -> f64 {
        self.location + self.scale * growth(self.shape, odds)
    }
}

/// log(1 + shape z) / shape with its derivatives.
fn reduced(shape: f64, z: f64) -> (f64, Reduced) {
    // Notation: y -> the value, q -> shape z, w -> 1 + q.
    const TERMS: i32 = 20;
    let q = shape * z;
    let w = 1.0 + q;
    let (y, by_shape, twice_by_shape);
    if q.abs() < 0.1 {
        // The closed forms are small differences of large numbers: y = z sum (-q)^n / (n + 1).
        let (mut once, mut twice) = (0.0, 0.0);
        for n in (1..TERMS).rev().map(f64::from) {
            once = n / (n + 1.0) - q * once;
            twice = n * (n + 1.0) / (n + 2.0) - q * twice;
        }
        y = if q == 0.0 { z } else { z * (libm::log1p(q) / q) };
        (by_shape, twice_by_shape) = (-z * z * once, z * z * z * twice);
    } else {
        y = libm::log1p(q) / shape;
        by_shape = (z / w - y) / shape;
        twice_by_shape = -(z * z / (w * w) + 2.0 * by_shape) / shape;
    }
    (y, Reduced { by_z: 1.0 / w, twice_by_z: -shape / (w * w), by_shape, by_both: -z / (w * w), twice_by_shape })
}

/// Derivatives of the reduced number by z and by the shape.
struct Reduced {
    by_z: f64,
    twice_by_z: f64,
    by_shape: f64,
    by_both: f64,
    twice_by_shape: f64,
}

/// Log likelihood with its first and second derivatives by location / scale, log scale and shape.
struct Slopes {
    value: f64,
    first: [f64; 3],
    second: [f64; 9],
}

/// A point of the profile.
#[derive(Clone, Copy)]
struct Point {
    value: f64,
    /// xi / kappa.
    theta: f64,
    kappa: f64,
    /// Where v is 0 in units of Gumbel's law.
    location: f64,
    /// Whether the shape is at one of its bounds.
    bounded: bool,
}

/// Maxima in ascending order, as distances from one that is in the middle of them.
struct Sample<'a> {
    origin: f64,
    distances: Vec<f64>,
    control: &'a Control,
}

impl<'a> Sample<'a> {
    fn new(maxima: &[f64], control: &'a Control) -> Result<Self> {
        let accepted = format!("at least {FEWEST_MAXIMA} finite numbers, not all equal");
        let n = maxima.len();
        if n < FEWEST_MAXIMA {
            return Err(Error::argument("maxima", format!("{n} numbers"), &accepted));
        }
        // Sums of sorted numbers do not depend on how the blocks arrive.
        let mut distances: Vec<f64> = maxima.iter().map(|x| x + 0.0).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let (least, most) = (distances[0], distances[n - 1]);
        if !(least.is_finite() && most.is_finite() && (most - least).is_finite()) {
            return Err(Error::argument("maxima", format!("from {least} to {most}"), &accepted));
        }
        // Between the two different neighbours that are nearest to the middle: an outlier must not swallow the others.
        let middle = n / 2;
        let steps = (1..n).filter(|&i| distances[i - 1] < distances[i]);
        let origin = steps
            .min_by_key(|&i| i.abs_diff(middle))
            .map_or(least, |i| distances[i - 1] + 0.5 * (distances[i] - distances[i - 1]));
        for x in &mut distances {
            *x -= origin;
        }
        if !(distances[0] < 0.0 && distances[n - 1] > 0.0) {
            return Err(Error::argument("maxima", format!("{n} numbers equal to {most}"), &accepted));
        }
        Ok(Self { origin, distances, control })
    }

    fn n(&self) -> f64 {
        self.distances.len() as f64
    }

    fn fit(&self) -> Result<Fit> {
        let best = self.profile(None);
        self.control.check()?;
        let edge = self.edge();
        if edge.1 >= best.value || best.bounded && best.theta < 0.0 {
            return Ok(self.finish(edge.0, edge.1, End::LowestShape));
        }
        let law = best.law();
        if best.bounded {
            return Ok(self.finish(law, best.value, End::HighestShape));
        }
        let (law, slopes) = self.climb(law)?;
        let end = if steepest(&slopes, self.n()) <= FLAT { End::Converged } else { End::NotConverged };
        Ok(self.finish(law, slopes.value, end))
    }

    /// The law with the lowest shape and its log likelihood: the largest of the maxima is its end.
    fn edge(&self) -> (Law, f64) {
        let end = self.distances[self.distances.len() - 1];
        let scale = self.distances.iter().map(|d| end - d).sum::<f64>() / self.n();
        (Law { location: end - scale, scale, shape: LOWEST_SHAPE }, -self.n() * (libm::log(scale) + 1.0))
    }

    /// A fit at a law of the distances.
    fn finish(&self, law: Law, log_likelihood: f64, end: End) -> Fit {
        let mut covariance = None;
        let mut slope = f64::NAN;
        if matches!(end, End::Converged | End::NotConverged) {
            let slopes = self.slopes(law);
            slope = steepest(&slopes, self.n());
            if end == End::Converged && law.shape > REGULAR_SHAPE {
                covariance = inverse(slopes.second.map(|entry| -entry)).map(|found| {
                    // Location / scale and log scale become location and scale.
                    let unit = [law.scale, law.scale, 1.0];
                    std::array::from_fn(|at| found[at] * unit[at / 3] * unit[at % 3])
                });
            }
        }
        let law = Law { location: self.origin + law.location, ..law };
        Fit { law, log_likelihood, slope, covariance, end }
    }

    /// Newton's steps from a law to the top, halved until they lead up.
    fn climb(&self, mut law: Law) -> Result<(Law, Slopes)> {
        let mut slopes = self.slopes(law);
        for _ in 0..60 {
            self.control.check()?;
            let Some(found) = inverse(slopes.second.map(|entry| -entry)) else { break };
            let step: [f64; 3] =
                std::array::from_fn(|i| (0..3).map(|j| found[3 * i + j] * slopes.first[j]).sum::<f64>());
            let Some(next) = self.step(law, &slopes, step) else { break };
            (law, slopes) = next;
        }
        Ok((law, slopes))
    }

    /// The first half, quarter and so on of a step that leads up; none where rounding is all that is left.
    fn step(&self, from: Law, here: &Slopes, step: [f64; 3]) -> Option<(Law, Slopes)> {
        let rounding = 1e-13 * here.value.abs().max(1.0);
        let flat = steepest(here, self.n());
        (0..20).map(|halvings| libm::ldexp(1.0, -halvings)).find_map(|share| {
            let law = Law {
                location: from.location + share * step[0] * from.scale,
                scale: from.scale * libm::exp(share * step[1]),
                shape: from.shape + share * step[2],
            };
            if !(law.shape > LOWEST_SHAPE && law.shape < HIGHEST_SHAPE) {
                return None;
            }
            let there = self.slopes(law);
            let (up, level) = (there.value > here.value + rounding, there.value >= here.value - rounding);
            (up || level && steepest(&there, self.n()) < flat).then_some((law, there))
        })
    }

    fn slopes(&self, law: Law) -> Slopes {
        let mut sums = Slopes { value: -self.n() * libm::log(law.scale), first: [0.0; 3], second: [0.0; 9] };
        for distance in &self.distances {
            let z = (distance - law.location) / law.scale;
            if 1.0 + law.shape * z <= 0.0 {
                sums.value = f64::NEG_INFINITY;
                return sums;
            }
            // The term is -(1 + xi) y - exp(-y); `by_y` its derivative by y.
            let (y, of_y) = reduced(law.shape, z);
            let rare = libm::exp(-y);
            let by_y = rare - 1.0 - law.shape;
            let by_z = by_y * of_y.by_z;
            let twice_by_z = by_y * of_y.twice_by_z - rare * of_y.by_z * of_y.by_z;
            let by_both = by_y * of_y.by_both - (1.0 + rare * of_y.by_shape) * of_y.by_z;
            let twice_by_shape = by_y * of_y.twice_by_shape - (2.0 + rare * of_y.by_shape) * of_y.by_shape;
            sums.value -= (1.0 + law.shape) * y + rare;
            sums.first[0] -= by_z;
            sums.first[1] -= 1.0 + by_z * z;
            sums.first[2] += by_y * of_y.by_shape - y;
            sums.second[0] += twice_by_z;
            sums.second[1] += by_z + twice_by_z * z;
            sums.second[2] -= by_both;
            sums.second[4] += (twice_by_z * z + by_z) * z;
            sums.second[5] -= by_both * z;
            sums.second[8] += twice_by_shape;
        }
        let upper = sums.second;
        (sums.second[3], sums.second[6], sums.second[7]) = (upper[1], upper[2], upper[5]);
        sums
    }

    /// The largest log likelihood of all laws, or of those that have a level (on the scale of the maxima) at given
    /// odds.
    fn profile(&self, level: Option<(f64, f64)>) -> Point {
        let level = level.map(|(x, odds)| (x - self.origin, libm::log(odds)));
        // 1 + th d is above 0 for all maxima and for the level.
        let ends = [self.distances[0], self.distances[self.distances.len() - 1]];
        let (least, most) = match level {
            Some((x, _)) => (ends[0].min(x), ends[1].max(x)),
            None => (ends[0], ends[1]),
        };
        let v = RefCell::new(vec![0.0; self.distances.len()]);
        // Each search of kappa begins where the last one ended.
        let kappa = Cell::new(0.0);
        let at = |place: f64| {
            let theta = if place > 0.0 { libm::expm1(-place) / least } else { libm::expm1(place) / most };
            if self.control.check().is_err() {
                // A call that is stopped has no use for a number.
                return Point { value: f64::NEG_INFINITY, theta, kappa: 1.0, location: 0.0, bounded: false };
            }
            let point = self.at(theta, level, kappa.get(), &mut v.borrow_mut());
            kappa.set(point.kappa);
            point
        };
        let places: Vec<f64> = (-SIDE..=SIDE)
            .map(|i| {
                let share = f64::from(i) / f64::from(SIDE);
                REACH * share * share.abs()
            })
            .collect();
        let (place, _) = peak(&places, PLACE, |place| at(place).value);
        at(place)
    }

    /// The best law of a th; `start` is a kappa to begin with, or 0.
    fn at(&self, theta: f64, level: Option<(f64, f64)>, start: f64, v: &mut [f64]) -> Point {
        let stretched = |d: f64| if theta == 0.0 { d } else { libm::log1p(theta * d) / theta };
        v.iter_mut().zip(&self.distances).for_each(|(v, &d)| *v = stretched(d));
        let n = self.n();
        let total: f64 = v.iter().sum();
        // The shape th / kappa is within its bounds.
        let least = if theta < 0.0 { theta / LOWEST_SHAPE } else { theta / HIGHEST_SHAPE };
        // From the level, or from the smallest: then no exponential is above 1.
        let origin = level.map_or(v[0], |(x, _)| stretched(x));
        for v in &mut *v {
            *v -= origin;
        }
        let rest: f64 = v.iter().sum();
        let spread = v[v.len() - 1] - v[0];
        let sums = |kappa: f64| {
            let mut sums = [0.0; 3];
            for &v in &*v {
                let weight = libm::exp(-kappa * v);
                sums[0] += weight;
                sums[1] += weight * v;
                sums[2] += weight * v * v;
            }
            sums
        };
        let start = if start > 0.0 { start } else { n / rest.abs().max(0.1 * n * spread) };
        let kappa = falling_root(start, |kappa| {
            let [none, once, twice] = sums(kappa);
            if let Some((_, log_odds)) = level {
                let share = libm::exp(-log_odds);
                (n / kappa - rest + share * once, -n / (kappa * kappa) - share * twice)
            } else {
                let mean = once / none;
                (n / kappa - rest + n * mean, -n / (kappa * kappa) - n * (twice / none - mean * mean))
            }
        })
        .max(least);
        let weight = sums(kappa)[0];
        // y = kappa (v - origin) + `shift`; the sum of exp(-y) is n where the location is free.
        let shift = level.map_or_else(|| libm::log(weight / n), |(_, log_odds)| log_odds);
        let value = n * libm::log(kappa) - kappa * rest - n * shift - weight * libm::exp(-shift) - theta * total;
        let value = if value.is_nan() { f64::NEG_INFINITY } else { value };
        Point { value, theta, kappa, location: origin - shift / kappa, bounded: kappa <= least }
    }
}

impl Point {
    /// As location, scale and shape of the distances.
    fn law(&self) -> Law {
        let power = self.theta * self.location;
        let location = if self.theta == 0.0 { self.location } else { libm::expm1(power) / self.theta };
        Law { location, scale: libm::exp(power) / self.kappa, shape: self.theta / self.kappa }
    }
}

fn steepest(slopes: &Slopes, n: f64) -> f64 {
    // Not a number: not flat.
    slopes.first.iter().fold(0.0, |most: f64, slope| if slope.abs() <= most { most } else { slope.abs() }) / n
}

/// The inverse of a positive definite matrix.
fn inverse(mut matrix: [f64; 9]) -> Option<[f64; 9]> {
    if !matrix::cholesky(&mut matrix, 3, 1e-14) {
        return None;
    }
    let mut found = [0.0; 9];
    for column in 0..3 {
        let mut unit = [0.0; 3];
        unit[column] = 1.0;
        matrix::forward(&matrix, 3, &mut unit);
        matrix::backward(&matrix, 3, &mut unit);
        for row in 0..3 {
            found[3 * row + column] = unit[row];
        }
    }
    Some(found)
}

/// Where a function of a positive number falls below 0; it has the value and the slope. Newton's steps, halved or
/// doubled where they leave what is known.
fn falling_root(start: f64, function: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut x = start;
    for _ in 0..200 {
        let (value, slope) = function(x);
        if value > 0.0 {
            low = x;
        } else {
            high = x;
        }
        let newton = x - value / slope;
        let next = if newton > low && newton < high && newton < 4.0 * x && newton > 0.25 * x {
            newton
        } else if high.is_infinite() {
            4.0 * x
        } else if low == 0.0 {
            0.25 * x
        } else {
            0.5 * (low + high)
        };
        if (next - x).abs() <= 1e-13 * x || !(next > 0.0 && next.is_finite()) {
            break;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of a law, jittered by sines.
    fn maxima(shape: f64, n: usize) -> Vec<f64> {
        let at = |i: usize| {
            let p = (i as f64 + 0.5 + 0.3 * libm::sin(i as f64)) / n as f64;
            3.0 + 2.0 * growth(shape, -1.0 / libm::log(p))
        };
        (0..n).map(at).collect()
    }

    fn fitted(maxima: &[f64]) -> Fit {
        fit(maxima, &Control::default()).unwrap()
    }

    #[test]
    fn the_slopes_are_differences_of_the_likelihood() {
        let control = Control::default();
        let sample = Sample::new(&maxima(0.2, 30), &control).unwrap();
        for shape in [-0.2, -0.05, -1e-9, 0.0, 0.04, 0.3] {
            let law = Law { location: -1.0, scale: 2.5, shape };
            let moved = |place: usize, by: f64| {
                let mut law = law;
                match place {
                    0 => law.location += by * 2.5,
                    1 => law.scale *= libm::exp(by),
                    _ => law.shape += by,
                }
                law
            };
            let slopes = sample.slopes(law);
            let h = 1e-5;
            for i in 0..3 {
                let (up, down) = (sample.slopes(moved(i, h)), sample.slopes(moved(i, -h)));
                let by = (up.value - down.value) / (2.0 * h);
                assert!(
                    (by - slopes.first[i]).abs() < 1e-6 * (1.0 + by.abs()),
                    "{shape} {i}: {by} {}",
                    slopes.first[i]
                );
                for j in 0..3 {
                    // The unit of the location is the scale at the law itself.
                    let unit = |at: f64| if j == 0 { libm::exp(if i == 1 { -at } else { 0.0 }) } else { 1.0 };
                    let by = (up.first[j] * unit(h) - down.first[j] * unit(-h)) / (2.0 * h);
                    let found = slopes.second[3 * i + j];
                    assert!((by - found).abs() < 1e-5 * (1.0 + by.abs()), "{shape} {i} {j}: {by} {found}");
                }
            }
        }
    }

    #[test]
    fn fits_end_at_the_top_whatever_the_shape() {
        for shape in [-0.7, -0.4, -0.1, 0.0, 0.3, 0.8, 1.5] {
            for n in [20, 200] {
                let fit = fitted(&maxima(shape, n));
                assert_eq!(fit.end, End::Converged, "{shape} {n} {fit:?}");
                assert!((fit.law.shape - shape).abs() < 0.3, "{shape} {n} {fit:?}");
                assert!(fit.slope < 1e-10, "{shape} {n} {fit:?}");
                assert_eq!(fit.covariance.is_some(), fit.law.shape > REGULAR_SHAPE);
            }
        }
    }

    #[test]
    fn maxima_that_pile_up_at_their_end_are_at_the_edge() {
        let fit = fitted(&maxima(-2.0, 60));
        assert_eq!((fit.end, fit.law.shape), (End::LowestShape, -1.0));
        assert!(fit.covariance.is_none() && fit.slope.is_nan());
    }

    #[test]
    fn neither_order_nor_unit_matter() {
        let x = maxima(-0.2, 40);
        let one = fitted(&x);
        let mut backward = x.clone();
        backward.reverse();
        assert_eq!(fitted(&backward), one);
        let other = fitted(&x.iter().map(|x| 1e-9 * x + 5e-9).collect::<Vec<_>>());
        assert!((other.law.shape - one.law.shape).abs() < 1e-9);
        assert!((other.law.scale / one.law.scale / 1e-9 - 1.0).abs() < 1e-8);
    }

    #[test]
    fn excesses_and_maxima_are_each_other() {
        for shape in [-0.8, 0.0, 0.4] {
            let law = Law::of_excesses(0.2, 0.7, shape, 12.0);
            let (scale, expected) = law.excesses(0.2);
            assert!((scale - 0.7).abs() < 1e-14 && (expected - 12.0).abs() < 1e-12);
        }
    }

    #[test]
    fn limits_are_where_the_likelihood_has_fallen() {
        let x = maxima(0.1, 40);
        let control = Control::default();
        let (best, sample) = (fitted(&x), Sample::new(&x, &control).unwrap());
        let (low, high) = return_level_interval(&x, 50.0, 1000.0, 0.95, &control).unwrap();
        let odds = block_odds(50.0, 1000.0).unwrap();
        for limit in [low, high] {
            let fall = 2.0 * (best.log_likelihood - sample.profile(Some((limit, odds))).value);
            assert!((fall - 3.841_458_820_694_124).abs() < 1e-6, "{limit} {fall}");
        }
        let estimate = return_level(best.law, 50.0, 1000.0).unwrap();
        assert!((sample.profile(Some((estimate, odds))).value - best.log_likelihood).abs() < 1e-9);
        assert!(low < estimate && estimate < high);
    }

    #[test]
    fn what_has_no_fit_is_refused() {
        for bad in [&[1.0; 9][..], &[1.0, 2.0], &[1.0, 2.0, 3.0, f64::NAN], &[1.0, 2.0, 3.0, f64::INFINITY]] {
            assert!(fit(bad, &Control::default()).is_err());
        }
        let law = Law { location: 0.0, scale: 1.0, shape: 0.0 };
        assert!(return_level(law, 0.5, 10.0).is_err() && return_level(law, 5.0, 1.0).is_err());
    }
}
