//! The generalised Pareto law of excesses over a threshold: fitted, fitted at a return level, fitted at a shape.
//!
//! Notation: y the excesses, k their number, xi shape, sigma scale, tau = xi `y_max` / sigma > -1, M the horizon in
//! exceedances, y0 the excess of a return level. Excesses are divided by the largest one, w = y / `y_max`.
//!
//! All fits ask for the sum of log(1 + tau w), again and again. The factors are multiplied up, as many as a float
//! holds, before a logarithm is taken.

use crate::error::{Error, Result};
use crate::numerics::peaks::{peak, peak_near};
use crate::simd::{InstructionSet, Task};

/// The shapes that fits are looked for in: below -1 the likelihood has no bound.
pub const LOWEST_SHAPE: f64 = -1.0;
/// See [`LOWEST_SHAPE`].
pub const HIGHEST_SHAPE: f64 = 3.0;

/// Below this the formulas are those of the exponential law.
const NO_SHAPE: f64 = 1e-9;
/// |tau| below which the sum of logarithms is a series.
const SMALL: f64 = 1e-3;
/// Factors that are multiplied side by side.
const WIDTH: usize = 8;
/// Products stay below exp of this.
const ROOM: f64 = 600.0;
/// To how much the place of a peak is known: about the root of what a float resolves.
const PLACE: f64 = 1e-8;
/// Below this horizon the likelihood at a level has a second peak in some samples: all places are asked.
const UNEVEN: f64 = 20.0;
/// The same for a fit at a level that is looked for from nearby: the likelihood is flat there, so that it is known to the
/// square of this.
const NEAR_PLACE: f64 = 1e-6;
/// The least first step from a shape that is close to the one looked for: well above the rounding of likelihoods.
const NEAREST: f64 = 2e-3;

/// What a fit came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// xi.
    pub shape: f64,
    /// sigma.
    pub scale: f64,
    /// The log likelihood.
    pub log_likelihood: f64,
    /// Whether the shape is -1, the edge of what is fitted: the end of the law is then the largest value.
    pub at_edge: bool,
}

/// (M^xi - 1) / xi, log M for xi = 0: the excess that one in M exceedances exceeds, in scales.
pub fn growth(shape: f64, m: f64) -> f64 {
    if shape.abs() < NO_SHAPE { libm::log(m) } else { libm::expm1(shape * libm::log(m)) / shape }
}

/// The excess that one in M exceedances exceeds.
pub fn return_excess(shape: f64, scale: f64, m: f64) -> f64 {
    scale * growth(shape, m)
}

/// P(excess > y): (1 + xi y / sigma)^(-1/xi), 0 beyond the end of the law.
pub fn survival(y: f64, shape: f64, scale: f64) -> f64 {
    if shape.abs() < NO_SHAPE {
        return libm::exp(-y / scale);
    }
    let inner = shape * y / scale;
    if inner <= -1.0 { 0.0 } else { libm::exp(-libm::log1p(inner) / shape) }
}

/// Fits the law by maximum likelihood: see [`Excesses::fit`].
///
/// # Errors
/// [`Error::Argument`] for fewer than two excesses, or one that is not above 0 and finite.
pub fn fit(excesses: &[f64]) -> Result<Fit> {
    Ok(Excesses::new(excesses)?.fit())
}

/// A sample of excesses that laws are fitted to.
pub trait Sample: Sync {
    /// Number of excesses.
    fn n(&self) -> usize;

    /// The fit by maximum likelihood with a shape of at least -1.
    fn fit(&self) -> Fit;

    /// (xi, log likelihood) of the best fit with the excess `level` > 0 at the horizon of M exceedances.
    fn at_level(&self, level: f64, m: f64) -> (f64, f64);

    /// The same, looked for around a shape that is close to it, first within so much of it.
    fn at_level_near(&self, level: f64, m: f64, _near: f64, _within: f64) -> (f64, f64) {
        self.at_level(level, m)
    }

    /// (sigma, log likelihood) of the best fit with a shape.
    fn at_shape(&self, shape: f64) -> (f64, f64);
}

/// Excesses, as their sums of logarithms are taken.
#[derive(Debug, Clone)]
pub struct Excesses {
    n: usize,
    largest: f64,
    mean: f64,
    /// w and 1 - w, filled up with 0 and 1: a factor is 1 - w + w (1 + tau).
    shares: Vec<[f64; WIDTH]>,
    rests: Vec<[f64; WIDTH]>,
    /// Means of w, w^2 ... w^5.
    moments: [f64; 5],
    set: InstructionSet,
}

impl Excesses {
    /// Excesses in any order.
    ///
    /// # Errors
    /// [`Error::Argument`] for fewer than two, or one that is not above 0 and finite.
    pub fn new(excesses: &[f64]) -> Result<Self> {
        if excesses.len() < 2 {
            return Err(Error::argument("excesses", format!("{} numbers", excesses.len()), "at least 2 of them"));
        }
        if let Some(y) = excesses.iter().find(|y| !(y.is_finite() && **y > 0.0)) {
            return Err(Error::argument("excesses", y, "finite numbers above 0"));
        }
        let mut made = Self::empty()?;
        made.refill(excesses);
        Ok(made)
    }

    /// None yet: for [`Excesses::refill`].
    ///
    /// # Errors
    /// [`Error::Argument`] for an instruction set that is asked for and not there.
    pub(crate) fn empty() -> Result<Self> {
        let set = InstructionSet::current()?;
        Ok(Self { n: 0, largest: 0.0, mean: 0.0, shares: Vec::new(), rests: Vec::new(), moments: [0.0; 5], set })
    }

    /// Other excesses in the same place: at least two, finite and above 0, which the caller saw to.
    pub(crate) fn refill(&mut self, excesses: &[f64]) {
        let largest = excesses.iter().copied().fold(0.0, f64::max);
        self.n = excesses.len();
        self.largest = largest;
        self.shares.clear();
        self.rests.clear();
        let mut sums = [[0.0; WIDTH]; 5];
        for run in excesses.chunks(WIDTH) {
            let (mut shares, mut rests) = ([0.0; WIDTH], [1.0; WIDTH]);
            for (lane, y) in run.iter().enumerate() {
                shares[lane] = y / largest;
                rests[lane] = (largest - y) / largest;
                let mut power = 1.0;
                for sum in &mut sums {
                    power *= shares[lane];
                    sum[lane] += power;
                }
            }
            self.shares.push(shares);
            self.rests.push(rests);
        }
        self.moments = sums.map(|sum| sum.iter().sum::<f64>() / excesses.len() as f64);
        self.mean = self.moments[0] * largest;
    }

    /// The largest excess.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// The mean of log(1 + tau w), given 1 + tau; infinite where a factor is not above 0.
    fn mean_log(&self, tau: f64, last: f64) -> f64 {
        if tau.abs() < SMALL {
            let [one, two, three, four, five] = self.moments;
            return tau * (one - tau * (two / 2.0 - tau * (three / 3.0 - tau * (four / 4.0 - tau * five / 5.0))));
        }
        if last <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let task = LogSum { shares: &self.shares, rests: &self.rests, last, reach: libm::log(last).abs() };
        self.set.run(task) / self.n as f64
    }

    /// (xi, sigma) in units of the largest excess, where the profile is asked at log(1 + tau).
    fn shape_and_scale(&self, s: f64) -> (f64, f64) {
        let tau = libm::expm1(s);
        if s.abs() < NO_SHAPE {
            return (0.0, self.moments[0]);
        }
        let shape = self.mean_log(tau, libm::exp(s));
        (shape, shape / tau)
    }

    /// The log likelihood of a shape and a scale in units of the largest excess, but for -k log `y_max`.
    fn value(&self, shape: f64, scale: f64) -> f64 {
        let n = self.n as f64;
        if shape.abs() < NO_SHAPE {
            return -n * (libm::log(scale) + self.moments[0] / scale);
        }
        let tau = shape / scale;
        let last = 1.0 + tau;
        if shape <= LOWEST_SHAPE {
            return if last >= -1e-12 { -n * libm::log(scale) } else { f64::NEG_INFINITY };
        }
        if last <= 0.0 {
            return f64::NEG_INFINITY;
        }
        -n * (libm::log(scale) + (1.0 + 1.0 / shape) * self.mean_log(tau, last))
    }

    /// The log likelihood of a shape where the level lies at `share` largest excesses, but for -k log `y_max`.
    fn value_at_level(&self, shape: f64, share: f64, log_m: f64) -> f64 {
        if shape.abs() < NO_SHAPE {
            return self.value(0.0, share / log_m);
        }
        let grown = libm::expm1(shape * log_m);
        let scale = share * shape / grown;
        if shape <= LOWEST_SHAPE {
            return self.value(LOWEST_SHAPE, scale);
        }
        let tau = grown / share;
        let last = 1.0 + tau;
        if last <= 0.0 {
            return f64::NEG_INFINITY;
        }
        -(self.n as f64) * (libm::log(scale) + (1.0 + 1.0 / shape) * self.mean_log(tau, last))
    }

    /// The log likelihood of a law.
    pub fn log_likelihood(&self, shape: f64, scale: f64) -> f64 {
        self.value(shape, scale / self.largest) - self.n as f64 * libm::log(self.largest)
    }
}

impl Sample for Excesses {
    fn n(&self) -> usize {
        self.n
    }

    /// The profile likelihood over theta = xi / sigma > -1 / `y_max` (Grimshaw, 1993): xi = mean log(1 + theta y), at
    /// least -1; and the edge, xi = -1 with sigma = `y_max`.
    fn fit(&self) -> Fit {
        let n = self.n as f64;
        let profile = |s: f64| {
            let (shape, scale) = self.shape_and_scale(s);
            if shape >= LOWEST_SHAPE { -n * (libm::log(scale) + shape + 1.0) } else { f64::NEG_INFINITY }
        };
        let (mut s, mut value) = peak(&PROFILE_PLACES, PLACE, profile);
        let last = PROFILE_PLACES[PROFILE_PLACES.len() - 1];
        if s > last - 0.5 {
            // A tail so heavy that its largest excess dwarfs the others: the peak is farther out.
            let farther: Vec<f64> = (0..40).map(|step| last - 1.0 + f64::from(step)).collect();
            (s, value) = peak(&farther, PLACE, profile);
        }
        let unit = n * libm::log(self.largest);
        if value <= 0.0 {
            // The edge has the likelihood 1 in units of the largest excess.
            return Fit { shape: LOWEST_SHAPE, scale: self.largest, log_likelihood: -unit, at_edge: true };
        }
        let (shape, scale) = self.shape_and_scale(s);
        Fit { shape, scale: scale * self.largest, log_likelihood: value - unit, at_edge: false }
    }

    fn at_level(&self, level: f64, m: f64) -> (f64, f64) {
        let (share, log_m) = (level / self.largest, libm::log(m));
        let low = lowest_at(share, log_m);
        let mut places = LEVEL_STEPS;
        for place in &mut places {
            *place = low + (HIGHEST_SHAPE - low) * *place;
        }
        let (shape, most) = peak(&places, PLACE, |shape| self.value_at_level(shape, share, log_m));
        (shape, most - self.n as f64 * libm::log(self.largest))
    }

    fn at_level_near(&self, level: f64, m: f64, near: f64, within: f64) -> (f64, f64) {
        if m < UNEVEN {
            return self.at_level(level, m);
        }
        let (share, log_m) = (level / self.largest, libm::log(m));
        let low = lowest_at(share, log_m);
        let value = |shape: f64| self.value_at_level(shape, share, log_m);
        let (shape, most) = peak_near(low, HIGHEST_SHAPE, near, within.max(NEAREST), NEAR_PLACE, value);
        // There may be a second peak, below a shape of 0: then all places are asked.
        let mut places = LEVEL_STEPS.iter().map(|place| low + (HIGHEST_SHAPE - low) * place);
        let is_other = |place: f64| (place - shape).abs() > PLACE && value(place) >= most;
        if !most.is_finite() || places.by_ref().take_while(|place| *place <= 0.0).any(is_other) || value(low) >= most {
            return self.at_level(level, m);
        }
        (shape, most - self.n as f64 * libm::log(self.largest))
    }

    fn at_shape(&self, shape: f64) -> (f64, f64) {
        let unit = self.n as f64 * libm::log(self.largest);
        if shape <= LOWEST_SHAPE {
            return (self.largest, -unit);
        }
        // sigma > -xi y_max.
        let least = (-shape).max(0.0);
        let scale = |step: f64| least + self.moments[0] * libm::exp(step);
        let (step, most) = peak(&SCALE_STEPS, PLACE, |step| self.value(shape, scale(step)));
        (scale(step) * self.largest, most - unit)
    }
}

/// The lowest shape with a level at `share` largest excesses: below the largest the level holds the end of the law off.
fn lowest_at(share: f64, log_m: f64) -> f64 {
    let end = if share < 1.0 { libm::log1p(-share) / log_m } else { LOWEST_SHAPE };
    end.max(LOWEST_SHAPE)
}

/// log(1 + tau) where the profile is asked first.
const PROFILE_PLACES: [f64; 25] = {
    let mut places = [0.0; 25];
    let mut index = 0;
    while index < 25 {
        // From -9.03 in steps of .75: none is 0, where the formula has its gap.
        places[index] = -9.03 + 0.75 * index as f64;
        index += 1;
    }
    places
};

/// Where the likelihood at a level is asked first, as shares of the way from the lowest to the highest shape: the
/// first half in finer steps.
const LEVEL_STEPS: [f64; 21] = {
    let mut steps = [0.0; 21];
    let mut index = 0;
    while index < 21 {
        let even = index as f64 / 20.0;
        steps[index] = even * (0.4 + 0.6 * even);
        index += 1;
    }
    steps
};

/// log of the scale above the least one, over the mean excess, where the likelihood at a shape is asked first.
const SCALE_STEPS: [f64; 24] = {
    let mut steps = [0.0; 24];
    let mut index = 0;
    while index < 24 {
        steps[index] = -14.0 + 0.8 * index as f64;
        index += 1;
    }
    steps
};

/// The sum of log(rest + share x), a logarithm for as many factors as a float holds.
struct LogSum<'a> {
    shares: &'a [[f64; WIDTH]],
    rests: &'a [[f64; WIDTH]],
    last: f64,
    reach: f64,
}

impl Task for LogSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let rows = (ROOM / (WIDTH as f64 * self.reach.max(1.0))) as usize;
        if rows == 0 {
            return self.one_by_one();
        }
        let mut sum = 0.0;
        for (shares, rests) in self.shares.chunks(rows).zip(self.rests.chunks(rows)) {
            let mut products = [1.0; WIDTH];
            for (share, rest) in shares.iter().zip(rests) {
                for lane in 0..WIDTH {
                    products[lane] *= rest[lane] + share[lane] * self.last;
                }
            }
            let [a, b, c, d, e, f, g, h] = products;
            sum += libm::log(((a * b) * (c * d)) * ((e * f) * (g * h)));
        }
        sum
    }
}

impl LogSum<'_> {
    /// For laws so wide that not even eight factors fit into a float.
    fn one_by_one(&self) -> f64 {
        let rows = self.shares.iter().zip(self.rests);
        rows.map(|(share, rest)| (0..WIDTH).map(|lane| libm::log(rest[lane] + share[lane] * self.last)).sum::<f64>())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evenly spread quantiles of the law.
    fn sample(n: usize, shape: f64, scale: f64) -> Vec<f64> {
        (1..=n).map(|i| return_excess(shape, scale, (n as f64 + 1.0) / i as f64)).collect()
    }

    #[test]
    fn a_fit_is_the_top_of_the_likelihood() {
        for shape in [-0.9, -0.5, -0.1, 0.0, 0.2, 0.8, 1.5] {
            for n in [15, 34, 209, 1000] {
                let excesses = Excesses::new(&sample(n, shape, 2.0)).unwrap();
                let fit = excesses.fit();
                assert!((excesses.log_likelihood(fit.shape, fit.scale) - fit.log_likelihood).abs() < 1e-9);
                if fit.at_edge {
                    continue;
                }
                for (other, scale) in [(1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-3), (0.0, -1e-3), (-2e-3, 2e-3)] {
                    let beside = excesses.log_likelihood(fit.shape + other, fit.scale + scale);
                    assert!(beside < fit.log_likelihood, "{shape} {n} {fit:?}");
                }
                assert!((fit.shape - shape).abs() < 3.0 / (n as f64).sqrt(), "{shape} {n} {fit:?}");
            }
        }
    }

    #[test]
    fn fits_at_a_level_and_at_a_shape_end_in_the_fit() {
        for shape in [-0.6, 0.0, 0.4] {
            let excesses = Excesses::new(&sample(78, shape, 0.3)).unwrap();
            let fit = excesses.fit();
            let (at, value) = excesses.at_level(return_excess(fit.shape, fit.scale, 50.0), 50.0);
            assert!((at - fit.shape).abs() < 1e-5 && (value - fit.log_likelihood).abs() < 1e-9);
            let (scale, value) = excesses.at_shape(fit.shape);
            assert!((scale / fit.scale - 1.0).abs() < 1e-5 && (value - fit.log_likelihood).abs() < 1e-9);
        }
    }

    #[test]
    fn fits_at_a_level_are_found_from_nearby() {
        for shape in [-0.95, -0.6, 0.0, 0.4, 1.5] {
            for n in [15, 78] {
                let excesses = Excesses::new(&sample(n, shape, 0.3)).unwrap();
                let estimate = return_excess(excesses.fit().shape, excesses.fit().scale, 20.0);
                for level in [0.05, 0.5, 0.98, 1.3, 40.0].map(|share| share * estimate) {
                    let (at, value) = excesses.at_level(level, 20.0);
                    for near in [-1.0, at - 0.3, at, at + 0.02, 3.0] {
                        let (found, most) = excesses.at_level_near(level, 20.0, near, 0.1 * (near - at));
                        assert!((found - at).abs() < 1e-5 && (most - value).abs() < 1e-8, "{shape} {n} {level} {near}");
                    }
                }
            }
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_instruction_set() {
        let excesses = Excesses::new(&sample(157, 0.3, 1.0)).unwrap();
        let shapes = InstructionSet::available().into_iter().map(|set| {
            let other = Excesses { set, ..excesses.clone() };
            (other.fit(), other.at_level(3.0, 40.0))
        });
        let shapes: Vec<_> = shapes.collect();
        assert!(shapes.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn wide_laws_do_not_overflow() {
        let excesses = Excesses::new(&[1e-40, 1e-3, 1.0, 1e30, 1e80, 2e80, 1e82]).unwrap();
        let fit = excesses.fit();
        assert!(fit.shape > 3.0 && fit.log_likelihood.is_finite());
        assert!(excesses.at_level(1e-30, 100.0).1.is_finite());
    }

    #[test]
    fn what_is_no_excess_is_refused() {
        for bad in [&[1.0][..], &[1.0, 0.0], &[1.0, -1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert!(Excesses::new(bad).is_err());
        }
    }
}
