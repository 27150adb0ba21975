//! Weighted sums of chi-squares, by a contour integral.
//!
//! With weights w and s in the complex plane,
//! P(Q >= q) = 1/(2 pi i) integral of exp(-s q) prod (1 - 2 `w_j` s)^(-1/2) / s ds over a line that
//! crosses the real axis between the pole at 0 and the first branch point 1/(2 max w); left of the
//! pole the integral is -P(Q < q). Bending the line into a parabola around the branch cut makes
//! the integrand decay like a Gaussian, and the trapezoid rule converge exponentially (Talbot
//! 1979; Weideman and Trefethen, Mathematics of Computation 76, 2007). Crossing at the saddle
//! point makes small tails relatively exact. It takes the part of Imhof (Biometrika 48, 1961) and
//! Davies (Applied Statistics 29, 1980), whose errors are absolute.

use std::f64::consts::PI;

use crate::numerics::laws::normal_quantile;
use crate::numerics::roots::crossing;

/// Step of the trapezoid rule that resolves the branch cut, at distance 1.
const LONGEST_STEP: f64 = 0.17;
/// Step of the trapezoid rule that resolves a peak of curvature 1.
const PEAK_STEP: f64 = 0.5;
/// Terms below this part of the first one are left out.
const NEGLIGIBLE: f64 = 1e-18;
/// The sum is taken never to fall below this, nor above its inverse, which leaves room for squares.
const NOTHING: f64 = 1e-150;

/// P(sum `weights_j` * `chi2_1` >= q) for weights >= 0: Imhof's problem.
///
/// The error is below 1e-13 absolutely, and below 1e-11 relatively down to the smallest numbers.
/// Weights of zero count for nothing; NaN when q is.
///
/// ```
/// use fairaudit_core::projection::law::weighted_chi_square_tail;
/// // Two equal weights: an exponential law.
/// let tail = weighted_chi_square_tail(&[0.5, 0.5], 400.0);
/// assert!((tail / (-400.0f64).exp() - 1.0).abs() < 1e-11);
/// ```
pub fn weighted_chi_square_tail(weights: &[f64], q: f64) -> f64 {
    Sum::new(weights).map_or(if q <= 0.0 { 1.0 } else { 0.0 }, |sum| sum.tail_and_rest(q).0)
}

/// The q with P(sum `weights_j` * `chi2_1` >= q) = `tail`: 0 at 1, infinite at 0, NaN beyond.
///
/// ```
/// use fairaudit_core::projection::law::weighted_chi_square_quantile;
/// let q = weighted_chi_square_quantile(&[1.0], 0.05);
/// assert!((q / 3.841_458_820_694_124 - 1.0).abs() < 1e-12);
/// ```
pub fn weighted_chi_square_quantile(weights: &[f64], tail: f64) -> f64 {
    let Some(sum) = Sum::new(weights) else { return 0.0 };
    if !(tail > 0.0 && tail < 1.0) {
        return if tail == 0.0 {
            f64::INFINITY
        } else if tail == 1.0 {
            0.0
        } else {
            f64::NAN
        };
    }
    // Whichever of the two probabilities is small keeps its relative precision.
    let excess = |q: f64| {
        let (above, below) = sum.tail_and_rest(q);
        if tail <= 0.5 { libm::log(above / tail) } else { libm::log((1.0 - tail) / below) }
    };
    // The largest weight alone has a smaller quantile.
    let z = normal_quantile(0.5 * tail);
    let low = (sum.largest * z * z * (1.0 - 1e-9)).max(f64::MIN_POSITIVE);
    let mut high = 2.0 * low + sum.largest;
    while excess(high) > 0.0 {
        high *= 2.0;
    }
    libm::exp(crossing(libm::log(low), libm::log(high), 1e-14, |ln_q| excess(libm::exp(ln_q))))
}

/// A weighted sum of chi-squares, in units of twice its largest weight.
struct Sum {
    largest: f64,
    /// The weights as parts of the largest one, without zeros.
    parts: Vec<f64>,
}

/// Where the contour crosses the real axis.
struct Saddle {
    /// The point itself: between 0 and 1 for the tail, below 0 for its complement.
    crossing: f64,
    /// Its distance to the branch point at 1.
    distance: f64,
}

impl Sum {
    /// None when all weights are zero.
    fn new(weights: &[f64]) -> Option<Self> {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let parts = weights.iter().filter(|&&weight| weight > 0.0).map(|weight| weight / largest);
        (largest > 0.0).then(|| Self { largest, parts: parts.collect() })
    }

    /// P(Q >= q) and P(Q < q).
    fn tail_and_rest(&self, q: f64) -> (f64, f64) {
        let x = q / self.largest * 0.5;
        if x.is_nan() {
            return (x, x);
        }
        if x <= NOTHING {
            return (1.0, 0.0);
        }
        if x >= 1.0 / NOTHING {
            return (0.0, 1.0);
        }
        let (mean, variance) = self
            .parts
            .iter()
            .fold((0.0, 0.0), |(mean, variance), part| (mean + 0.5 * part, variance + 0.5 * part * part));
        let is_tail = x > mean + f64::sqrt(variance);
        let probability = self.integrate(x, &self.saddle(x, is_tail), 1.0).clamp(0.0, 1.0);
        if is_tail { (probability, 1.0 - probability) } else { (1.0 - probability, probability) }
    }

    /// About the place where exp(-s x) M(s) / |s| is least on the real axis, M the moment
    /// generating function: the root of K'(s) = x + 1/s, K = ln M.
    fn saddle(&self, x: f64, is_tail: bool) -> Saddle {
        // At the distance b, 1/2 <= b K' <= n/2, so that b lies between two roots of
        // b (x + 1/(1 - b)) = c: one pair is below 1, the other one above.
        let bound = |c: f64| {
            let (sum, root) = (x + 1.0 + c, f64::sqrt((x - c) * (x - c) + 2.0 * (x + c) + 1.0));
            if is_tail { 2.0 * c / (sum + root) } else { 0.5 * (sum + root) / x }
        };
        let (mut low, mut high) = (bound(0.5), bound(0.5 * self.parts.len() as f64));
        let mut distance = f64::sqrt(low) * f64::sqrt(high);
        for _ in 0..60 {
            let s = 1.0 - distance;
            let (mut slope, mut curvature) = (0.0, 0.0);
            for part in &self.parts {
                let ratio = part / factor(*part, distance);
                slope += 0.5 * ratio;
                curvature += 0.5 * ratio * ratio;
            }
            let excess = slope - x - 1.0 / s;
            if excess > 0.0 {
                low = distance;
            } else {
                high = distance;
            }
            let mut next = distance + excess / (curvature + 1.0 / (s * s));
            if !(next > low && next < high) {
                next = f64::sqrt(low) * f64::sqrt(high);
            }
            let change = (next - distance).abs();
            distance = next;
            // Any crossing gives the answer; one near the saddle gives it to full precision.
            if change < 1e-3 * distance.min((1.0 - distance).abs()) {
                break;
            }
        }
        Saddle { crossing: 1.0 - distance, distance }
    }

    /// The contour integral's absolute value; `refinement` divides the step.
    fn integrate(&self, x: f64, saddle: &Saddle, refinement: f64) -> f64 {
        // s(u) = crossing + distance (u^2 + 2iu) maps the line Im u = -1 to the branch cut.
        let &Saddle { crossing, distance } = saddle;
        let mut ln_scale = -x * crossing - libm::log(crossing.abs() / distance * PI);
        let pole = distance / crossing;
        let mut curvature = pole * pole;
        // Each factor over its value at the crossing is 1 - rate (u^2 + 2iu).
        let rates: Vec<f64> = (self.parts.iter())
            .map(|part| {
                let factor = factor(*part, distance);
                ln_scale -= 0.5 * libm::log(factor);
                let rate = part * distance / factor;
                curvature += 0.5 * rate * rate;
                rate
            })
            .collect();
        let step = LONGEST_STEP.min(PEAK_STEP / f64::sqrt(4.0 * curvature)) / refinement;

        let mut sum = 0.5;
        let mut small = 0;
        for node in 1..100_000 {
            let (real, magnitude) = term(f64::from(node) * step, x * distance, pole, &rates);
            sum += real;
            small = if magnitude < NEGLIGIBLE { small + 1 } else { 0 };
            if small == 2 {
                break;
            }
        }
        let integral = libm::exp(ln_scale) * 2.0 * step * sum;
        // The trapezoid rule's error is the integral of f(u) / (exp(2 pi i u / step) - 1) beyond the
        // strip in which it falls. When the pole, at u = i (1/sqrt(1 - crossing) - 1), is inside that
        // strip, its part is known: its residue is 1/(2 pi i).
        let growth = 2.0 * f64::sqrt(distance) * (x - 0.5 * self.parts.iter().sum::<f64>()).abs();
        if growth > 2.0 * PI / step {
            return integral;
        }
        let height = libm::expm1(-0.5 * libm::log(distance)).abs();
        integral - 1.0 / libm::expm1(2.0 * PI * height / step)
    }
}

/// 1 - part s at the distance 1 - s, without cancellation.
fn factor(part: f64, distance: f64) -> f64 {
    (1.0 - part) + part * distance
}

/// The integrand at u over the one at 0, its real part and its magnitude:
/// (1 - iu) exp(-decay v) / (1 + pole v) / prod sqrt(1 - `rates_j` v), v = u^2 + 2iu.
fn term(u: f64, decay: f64, pole: f64, rates: &[f64]) -> (f64, f64) {
    let (v_re, v_im) = (u * u, 2.0 * u);
    let (mut re, mut im) = (1.0, 0.0);
    let mut sign = 1.0;
    for rate in rates {
        let (factor_re, factor_im) = (1.0 - rate * v_re, -rate * v_im);
        let was_above = im > 0.0;
        (re, im) = (re * factor_re - im * factor_im, re * factor_im + im * factor_re);
        // Each factor turns the product clockwise by less than half a turn; where it passes the
        // negative axis the principal root is the wrong one.
        if !was_above && im > 0.0 {
            sign = -sign;
        }
    }
    let modulus = f64::sqrt(re * re + im * im);
    // 1/sqrt(z) = conj(sqrt(z)) / |z|, and sqrt(z) without cancellation.
    let larger = f64::sqrt(0.5 * (modulus + re.abs()));
    let smaller = 0.5 * im.abs() / larger;
    let (root_re, root_im) = if re >= 0.0 { (larger, smaller) } else { (smaller, larger) };
    let root_im = if im > 0.0 { -root_im } else { root_im };
    let (root_re, root_im) = (sign * root_re / modulus, sign * root_im / modulus);

    let (divisor_re, divisor_im) = (1.0 + pole * v_re, pole * v_im);
    let divisor = divisor_re * divisor_re + divisor_im * divisor_im;
    // (1 - iu) / (1 + pole v)
    let (front_re, front_im) = ((divisor_re - u * divisor_im) / divisor, (-u * divisor_re - divisor_im) / divisor);
    let (turn_im, turn_re) = libm::sincos(-decay * v_im);
    let size = libm::exp(-decay * v_re);
    let (a_re, a_im) = (front_re * root_re - front_im * root_im, front_re * root_im + front_im * root_re);
    let magnitude = size * (a_re.abs() + a_im.abs());
    (size * (a_re * turn_re - a_im * turn_im), magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    fn relative(value: f64, expected: f64) -> f64 {
        (value / expected - 1.0).abs()
    }

    #[test]
    fn one_weight_is_a_squared_normal() {
        for q in [1e-9, 0.01, 0.5, 1.0, 2.0, 3.841, 10.0, 100.0, 1_100.0] {
            let expected = libm::erfc(f64::sqrt(0.5 * q));
            for weight in [1.0, 1e-200, 3e100] {
                let tail = weighted_chi_square_tail(&[weight], weight * q);
                assert!(relative(tail, expected) < 1e-12, "{q}: {tail:e} {expected:e}");
            }
        }
    }

    #[test]
    fn equal_weights_are_a_chi_square() {
        for degrees in [1, 2, 3, 8, 25, 60] {
            let oracle = ChiSquared::new(f64::from(degrees)).unwrap();
            for factor in [0.1, 0.7, 1.0, 1.2, 1.5, 3.0] {
                let q = factor * f64::from(degrees);
                let tail = weighted_chi_square_tail(&vec![2.0; degrees as usize], 2.0 * q);
                assert!((tail - oracle.sf(q)).abs() < 1e-11, "{degrees} {q}: {tail}");
            }
        }
        // Even degrees: exp(-h) sum h^i / i! with h = q / 2.
        for (pairs, half) in [(1u32, 570.0), (5, 560.0), (30, 600.0), (30, 100.0), (30, 45.0)] {
            let terms = (0..pairs).scan(1.0, |term, i| {
                let value = *term;
                *term *= half / f64::from(i + 1);
                Some(value)
            });
            let expected = libm::exp(-half) * terms.sum::<f64>();
            let tail = weighted_chi_square_tail(&vec![1.0; 2 * pairs as usize], 2.0 * half);
            assert!(relative(tail, expected) < 3e-12, "{pairs} {half}: {tail:e} {expected:e}");
        }
    }

    /// Weights in pairs are a sum of exponential laws: sum `A_i` exp(-q / (2 `w_i`)).
    #[test]
    fn weights_in_pairs_have_a_closed_form() {
        for weights in [vec![1.0, 0.5], vec![1.0, 0.1, 1e-3, 1e-8], vec![3.0, 2.0, 1.0, 0.5], vec![1.0, 1e-8]] {
            let paired: Vec<f64> = weights.iter().chain(&weights).copied().collect();
            for q in [0.02, 0.3, 1.0, 2.0, 5.0, 9.0, 30.0, 1_100.0] {
                let amplitude = |i: usize| -> f64 {
                    (0..weights.len()).filter(|&j| j != i).map(|j| weights[i] / (weights[i] - weights[j])).product()
                };
                let term = |i: usize| amplitude(i) * libm::exp(-0.5 * q / weights[i]);
                let expected: f64 = (0..weights.len()).map(term).sum();
                let tail = weighted_chi_square_tail(&paired, q);
                assert!(
                    (tail - expected).abs() < 1e-13 && relative(tail, expected) < 1e-11,
                    "{weights:?} {q}: {tail:e}"
                );
            }
        }
    }

    /// Imhof (1961), table 1, first row.
    #[test]
    fn published_values() {
        for (q, expected) in [(0.1, 0.9458), (0.7, 0.5064), (2.0, 0.1240)] {
            let tail = weighted_chi_square_tail(&[0.6, 0.3, 0.1], q);
            assert!((tail - expected).abs() < 5.1e-5, "{q}: {tail}");
        }
    }

    /// Half the step gives the same, and neighbours on both sides of the change of contour agree.
    #[test]
    fn the_contour_has_converged() {
        let spread = |ratio: f64, size: i32| (0..size).map(|i| libm::pow(ratio, f64::from(i))).collect::<Vec<_>>();
        let mut cluster = vec![0.99; 59];
        cluster.push(1.0);
        let mut lonely = vec![1e-8; 59];
        lonely.push(1.0);
        for weights in [spread(0.73, 60), spread(0.98, 60), spread(0.01, 5), cluster, lonely] {
            let sum = Sum::new(&weights).unwrap();
            let mean: f64 = sum.parts.iter().map(|part| 0.5 * part).sum();
            let mut last = 1.0;
            for step in -20..50 {
                let x = mean * libm::exp(f64::from(step) * 0.2);
                for is_tail in [false, true] {
                    if is_tail == (x < mean) {
                        continue;
                    }
                    let saddle = sum.saddle(x, is_tail);
                    let (value, exact) = (sum.integrate(x, &saddle, 1.0), sum.integrate(x, &saddle, 2.0));
                    assert!((value - exact).abs() < 1e-14, "{x} {is_tail}: {value:e} {exact:e}");
                    assert!(!is_tail || exact < 1e-280 || relative(value, exact) < 1e-11, "{x}: {value:e} {exact:e}");
                }
                let tail = weighted_chi_square_tail(&weights, 2.0 * x);
                assert!(tail <= last + 1e-15, "{x}: {tail} {last}");
                last = tail;
            }
        }
    }

    #[test]
    fn edges() {
        assert_eq!(weighted_chi_square_tail(&[], 1.0), 0.0);
        assert_eq!(weighted_chi_square_tail(&[0.0], 0.0), 1.0);
        assert_eq!(weighted_chi_square_tail(&[1.0], -1.0), 1.0);
        assert_eq!(weighted_chi_square_tail(&[1.0], f64::INFINITY), 0.0);
        assert_eq!(weighted_chi_square_tail(&[1.0], 1e300), 0.0);
        assert_eq!(weighted_chi_square_tail(&[1.0], f64::MIN_POSITIVE), 1.0);
        assert!(weighted_chi_square_tail(&[1.0], f64::NAN).is_nan());
        assert_eq!(weighted_chi_square_tail(&[1.0, 0.0, 2.0], 3.0), weighted_chi_square_tail(&[1.0, 2.0], 3.0));
        assert_eq!(weighted_chi_square_quantile(&[0.0], 0.05), 0.0);
        assert_eq!(weighted_chi_square_quantile(&[1.0], 0.0), f64::INFINITY);
        assert_eq!(weighted_chi_square_quantile(&[1.0], 1.0), 0.0);
        assert!(weighted_chi_square_quantile(&[1.0], 1.5).is_nan());
    }

    #[test]
    fn quantiles_have_their_tail() {
        let many: Vec<f64> = (1..=60).map(|i| 1.0 / f64::from(i)).collect();
        for weights in [vec![1.0], vec![0.5; 2], vec![7e5, 2e5, 0.05], many] {
            for tail in [1e-250, 1e-30, 1e-5, 0.01, 0.05, 0.3, 0.5, 0.7, 0.99, 1.0 - 1e-9] {
                let q = weighted_chi_square_quantile(&weights, tail);
                assert!(relative(weighted_chi_square_tail(&weights, q), tail) < 1e-11, "{tail}: {q}");
            }
        }
    }
}
