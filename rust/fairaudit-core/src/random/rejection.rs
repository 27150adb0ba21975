//! Ratio-of-uniforms rejection for discrete unimodal laws (Stadlober, 1990).
//!
//! The hat of Stadlober covers the hypergeometric and the binomial law for every parameter.
//! What older code gets wrong is the other half, the log ratio of two probabilities: with
//! plain log factorials it loses all digits near 10^12 rows. [`FactorialTerm`] takes the
//! difference of two log factorials analytically, which keeps its absolute error below 1e-8
//! up to 10^12 and below 1e-12 up to 10^6.

use std::sync::LazyLock;

use super::Stream;

/// 2 sqrt(2/e)
const HAT_SLOPE: f64 = 1.715_527_769_921_413_5;
/// 3 - 2 sqrt(3/e)
const HAT_OFFSET: f64 = 0.898_916_162_058_898_8;
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
const TABLE_SIZE: usize = 1024;
const STIRLING_FROM: f64 = 16.0;

/// (ln n, ln n!) for small n; the sums are compensated.
static LOGARITHMS: LazyLock<[(f64, f64); TABLE_SIZE]> = LazyLock::new(|| {
    let mut table = [(0.0, 0.0); TABLE_SIZE];
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for (n, entry) in table.iter_mut().enumerate().skip(1) {
        let ln = libm::log(n as f64);
        let term = ln - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
        *entry = (ln, sum);
    }
    table
});

/// ln n, with ln 0 taken as 0: the caller multiplies it by 0 steps.
#[inline]
pub(super) fn ln_whole(n: f64) -> f64 {
    if n < TABLE_SIZE as f64 { LOGARITHMS[n as usize].0 } else { libm::log(n) }
}

/// The part of Stirling's formula that goes to 0: ln n! - ((n + 1/2) ln n - n + ln(2 pi)/2).
#[inline]
fn stirling_correction(n: f64) -> f64 {
    let inverse = 1.0 / n;
    let square = inverse * inverse;
    inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))
}

/// ln n! for a whole number n >= 0.
#[inline]
pub(crate) fn ln_factorial(n: f64) -> f64 {
    if n < TABLE_SIZE as f64 {
        LOGARITHMS[n as usize].1
    } else {
        (n + 0.5) * libm::log(n) - n + HALF_LN_TWO_PI + stirling_correction(n)
    }
}

/// ln(center! / x!) for many x around one center.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactorialTerm {
    center: f64,
    /// `stirling_correction(center)`, or ln center! when the table is in use.
    constant: f64,
}

impl FactorialTerm {
    #[inline]
    pub(super) fn new(center: f64) -> Self {
        let constant =
            if center < TABLE_SIZE as f64 { LOGARITHMS[center as usize].1 } else { stirling_correction(center) };
        Self { center, constant }
    }

    /// ln(center! / x!) - (center - x) ln(center).
    ///
    /// The part that is left out is linear in x; the caller adds the sum of these parts over
    /// all its terms, where they nearly cancel, as one logarithm.
    #[inline]
    pub(super) fn curvature(&self, x: f64) -> f64 {
        let step = self.center - x;
        if self.center < TABLE_SIZE as f64 {
            return self.constant - ln_factorial(x) - step * ln_whole(self.center);
        }
        if x < STIRLING_FROM {
            return ln_factorial(self.center) - ln_factorial(x) - step * ln_whole(self.center);
        }
        // Stirling on both sides: (x + 1/2) ln(center / x) - step + the two corrections.
        (x + 0.5) * libm::log1p(step / x) - step + self.constant - stirling_correction(x)
    }
}

/// Draws from a discrete unimodal law on `0..=maximum` with mean `mean` and standard
/// deviation `deviation`; `ln_ratio(x)` is ln(p(x)/p(mode)).
#[inline]
pub(super) fn ratio_of_uniforms(
    stream: &mut Stream,
    mean: f64,
    variance: f64,
    maximum: f64,
    ln_ratio: impl Fn(f64) -> f64,
) -> f64 {
    let width = hat_width(variance);
    loop {
        let u = stream.uniform();
        let v = stream.uniform();
        let candidate = hat_candidate(mean, width, u, v);
        if candidate < 0.0 || candidate > maximum {
            continue;
        }
        let ratio = ln_ratio(candidate);
        if is_surely_accepted(u, ratio) || is_accepted(u, ratio) {
            return candidate;
        }
    }
}

/// The width of the hat over a law.
#[inline(always)]
#[allow(clippy::inline_always)] // a part of loops that are compiled for several targets
pub(super) fn hat_width(variance: f64) -> f64 {
    HAT_SLOPE * (variance + 0.5).sqrt() + HAT_OFFSET
}

/// The whole number that two uniform numbers stand for.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn hat_candidate(mean: f64, width: f64, u: f64, v: f64) -> f64 {
    (mean + 0.5 + width * (v - 0.5) / u).floor()
}

/// Whether u^2 <= p(x)/p(mode) is seen without a logarithm.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn is_surely_accepted(u: f64, ratio: f64) -> bool {
    u * (4.0 - u) - 3.0 <= ratio
}

/// Whether u^2 <= p(x)/p(mode), when [`is_surely_accepted`] did not see it.
#[inline]
pub(super) fn is_accepted(u: f64, ratio: f64) -> bool {
    u * (u - ratio) < 1.0 && 2.0 * libm::log(u) <= ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_factorial_joins_table_and_series() {
        assert_eq!(ln_factorial(0.0), 0.0);
        assert!((ln_factorial(5.0) - 120f64.ln()).abs() < 1e-14);
        let at_end = ln_factorial(1023.0);
        let beyond = ln_factorial(1024.0);
        assert!((beyond - at_end - 1024f64.ln()).abs() < 1e-11);
    }

    /// ln(center!/x!) against the direct sum of logarithms, in the table, across and beyond.
    #[test]
    fn curvature_equals_the_sum_of_logarithms() {
        for (center, x) in [(40.0, 30.0), (1023.0, 1100.0), (1500.0, 1000.0), (5e6, 5e6 - 900.0), (2000.0, 3.0)] {
            let (low, high): (f64, f64) = if x < center { (x, center) } else { (center, x) };
            let mut direct = 0.0;
            let mut k = low + 1.0;
            while k <= high {
                direct += libm::log(k / center);
                k += 1.0;
            }
            let direct = if x < center { direct } else { -direct };
            let value = FactorialTerm::new(center).curvature(x);
            assert!((value - direct).abs() < 1e-9 * (1.0 + direct.abs()), "{center} {x}: {value} {direct}");
        }
    }

    /// At 10^12 the second difference is known: -1/(2c) per squared step, to first order.
    #[test]
    fn curvature_keeps_its_digits_at_ten_to_the_twelve() {
        let center = 1e12;
        let term = FactorialTerm::new(center);
        for step in [1e3, 1e6] {
            let sum = term.curvature(center + step) + term.curvature(center - step);
            assert!((sum + step * step / center).abs() < 1e-8, "{step}: {sum}");
        }
    }
}
