//! Distributions that the tests report with: normal quantiles, exact binomial intervals.

use super::roots::bisect;

/// Phi(z), the standard normal distribution function.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The z with Phi(z) = p; infinite at 0 and 1.
///
/// ```
/// let z = fairaudit_core::numerics::laws::normal_quantile(0.975);
/// assert!((z - 1.959_963_984_540_054).abs() < 1e-12);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    // The left tail keeps its relative precision, so bisection there is exact to the last bits.
    bisect(-40.0, 0.0, |z| normal_cdf(z) < p)
}

/// As [`normal_quantile`] for 0 < p < 1, by ratios of polynomials (Wichura, 1988, AS 241): for many draws, in
/// some nanoseconds, to 2e-15 of the quantile, in arithmetic that has the same bits everywhere.
pub fn quick_normal_quantile(p: f64) -> f64 {
    let away = p - 0.5;
    if away.abs() <= 0.425 {
        let near = 0.180_625 - away * away;
        return away * ratio(&NEAR_ABOVE, &NEAR_BELOW, near);
    }
    let tail = if away < 0.0 { p } else { 1.0 - p };
    let far = (-libm::log(tail)).sqrt();
    let size =
        if far <= 5.0 { ratio(&TAIL_ABOVE, &TAIL_BELOW, far - 1.6) } else { ratio(&FAR_ABOVE, &FAR_BELOW, far - 5.0) };
    if away < 0.0 { -size } else { size }
}

/// The ratio of two polynomials, the highest powers first.
fn ratio(above: &[f64; 8], below: &[f64; 8], x: f64) -> f64 {
    let value = |of: &[f64; 8]| of[1..].iter().fold(of[0], |sum, number| sum * x + number);
    value(above) / value(below)
}

const NEAR_ABOVE: [f64; 8] = [
    2_509.080_928_730_122_7,
    33_430.575_583_588_13,
    67_265.770_927_008_7,
    45_921.953_931_549_87,
    13_731.693_765_509_46,
    1_971.590_950_306_551_4,
    133.141_667_891_784_38,
    3.387_132_872_796_366_5,
];
const NEAR_BELOW: [f64; 8] = [
    5_226.495_278_852_854,
    28_729.085_735_721_943,
    39_307.895_800_092_71,
    21_213.794_301_586_597,
    5_394.196_021_424_751,
    687.187_007_492_057_9,
    42.313_330_701_600_91,
    1.0,
];
const TAIL_ABOVE: [f64; 8] = [
    7.745_450_142_783_414e-4,
    2.272_384_498_926_918_4e-2,
    0.241_780_725_177_450_6,
    1.270_458_252_452_368_4,
    3.647_848_324_763_204_5,
    5.769_497_221_460_691,
    4.630_337_846_156_546,
    1.423_437_110_749_683_5,
];
const TAIL_BELOW: [f64; 8] = [
    1.050_750_071_644_416_9e-9,
    5.475_938_084_995_345e-4,
    1.519_866_656_361_645_7e-2,
    0.148_103_976_427_480_08,
    0.689_767_334_985_1,
    1.676_384_830_183_803_8,
    2.053_191_626_637_759,
    1.0,
];
const FAR_ABOVE: [f64; 8] = [
    2.010_334_399_292_288e-7,
    2.711_555_568_743_487_6e-5,
    1.242_660_947_388_078_4e-3,
    2.653_218_952_657_612_4e-2,
    0.296_560_571_828_504_87,
    1.784_826_539_917_291_3,
    5.463_784_911_164_114,
    6.657_904_643_501_103,
];
const FAR_BELOW: [f64; 8] = [
    2.044_263_103_389_939_8e-15,
    1.421_511_758_316_446e-7,
    1.846_318_317_510_054_8e-5,
    7.868_691_311_456_133e-4,
    1.487_536_129_085_061_5e-2,
    0.136_929_880_922_735_8,
    0.599_832_206_555_887_9,
    1.0,
];

/// The exact (Clopper-Pearson) interval of a binomial probability after `successes` of `trials`.
///
/// Its bounds are the probabilities at which the observed count or a more extreme one has
/// probability (1 - level)/2; they are quantiles of beta laws.
///
/// ```
/// let (low, high) = fairaudit_core::numerics::laws::clopper_pearson(0, 10, 0.95);
/// assert_eq!(low, 0.0);
/// assert!((high - (1.0 - 0.025f64.powf(0.1))).abs() < 1e-12);
/// ```
pub fn clopper_pearson(successes: u64, trials: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let (x, n) = (successes as f64, trials as f64);
    let low = if successes == 0 { 0.0 } else { beta_quantile(x, n - x + 1.0, tail) };
    let high = if successes == trials { 1.0 } else { 1.0 - beta_quantile(n - x, x + 1.0, tail) };
    (low, high)
}

/// The p-quantile of the beta law with parameters a, b >= 1.
pub fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    // The normalising constant is the same at every step of the search.
    let constant = ln_beta_constant(a, b);
    bisect(0.0, 1.0, |x| beta_cdf(a, b, constant, x) < p)
}

/// ln Gamma(a + b) - ln Gamma(a) - ln Gamma(b).
fn ln_beta_constant(a: f64, b: f64) -> f64 {
    libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
}

/// `I_x(a, b)`, the regularised incomplete beta function.
fn beta_cdf(a: f64, b: f64, constant: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_cdf(b, a, constant, 1.0 - x);
    }
    let ln_front = constant + a * libm::log(x) + b * libm::log1p(-x);
    libm::exp(ln_front) * beta_fraction(a, b, x) / a
}

/// The continued fraction of the incomplete beta function (Lentz).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let guard = |value: f64| if value.abs() < tiny { tiny } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    let mut m = 1.0;
    while m < 1e6 {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
        m += 1.0;
    }
    fraction
}

/// P(X >= r) of X ~ Bin(n, p).
///
/// ```
/// use fairaudit_core::numerics::laws::binomial_upper_tail;
/// assert!((binomial_upper_tail(1, 2, 0.5) - 0.75).abs() < 1e-15);
/// ```
pub fn binomial_upper_tail(r: u64, n: u64, p: f64) -> f64 {
    if r == 0 {
        return 1.0;
    }
    if r > n {
        return 0.0;
    }
    let (a, b) = (r as f64, (n - r) as f64 + 1.0);
    beta_cdf(a, b, ln_beta_constant(a, b), p)
}

/// P(X < r) of X ~ Bin(n, p), to the same relative precision.
pub fn binomial_lower_tail(r: u64, n: u64, p: f64) -> f64 {
    if r == 0 {
        return 0.0;
    }
    if r > n {
        return 1.0;
    }
    let (a, b) = ((n - r) as f64 + 1.0, r as f64);
    beta_cdf(a, b, ln_beta_constant(a, b), 1.0 - p)
}

/// P(X > x) of chi-square with one degree of freedom.
pub fn chi_square_upper_tail(x: f64) -> f64 {
    libm::erfc((0.5 * x.max(0.0)).sqrt())
}

/// Degrees of freedom from which on Student's t is normal to the last digit that is looked at.
const NORMAL_DF: f64 = 1e12;

/// The probability of Student's t with `df` degrees of freedom above a number.
///
/// ```
/// use fairaudit_core::numerics::laws::t_upper_tail;
/// assert!((t_upper_tail(1.0, 1.0) - 0.25).abs() < 1e-15);
/// ```
pub fn t_upper_tail(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if t < 0.0 {
        return 1.0 - t_upper_tail(-t, df);
    }
    if df >= NORMAL_DF {
        return normal_cdf(-t);
    }
    let (a, square) = (0.5 * df, t * t / df);
    let (x, rest) = if square.is_finite() { (1.0 / (1.0 + square), square / (1.0 + square)) } else { (0.0, 1.0) };
    let ln_front = |a: f64| ln_t_constant(a) + libm::log(t) - 0.5 * libm::log(df) - (a + 0.5) * libm::log1p(square);
    if t == 0.0 {
        return 0.5;
    }
    if x > (a + 1.0) / (a + 2.5) {
        return 0.5 - libm::exp(ln_front(a)) * beta_fraction(0.5, a, rest);
    }
    if square.is_finite() {
        return 0.5 * libm::exp(ln_front(a)) * beta_fraction(a, 0.5, x) / a;
    }
    // Far out the tail is a power.
    let ln_tail = ln_t_constant(a) + 0.5 * df * (libm::log(df) - 2.0 * libm::log(t)) - libm::log(2.0 * a);
    libm::exp(ln_tail)
}

/// ln Gamma(a + 1/2) - ln Gamma(a) - ln Gamma(1/2).
fn ln_t_constant(a: f64) -> f64 {
    let half_ln_pi = 0.572_364_942_924_700_1;
    if a < 40.0 {
        return libm::lgamma(a + 0.5) - libm::lgamma(a) - half_ln_pi;
    }
    // The difference of two large numbers, by its series.
    let (y, z) = (1.0 / a, 1.0 / (a * a));
    0.5 * libm::log(a) - y * (1.0 / 8.0 - z * (1.0 / 192.0 - z * (1.0 / 640.0 - z * 17.0 / 14_336.0))) - half_ln_pi
}

/// The number that Student's t exceeds with a probability.
///
/// ```
/// use fairaudit_core::numerics::laws::t_tail_quantile;
/// assert!((t_tail_quantile(0.25, 1.0) - 1.0).abs() < 1e-14);
/// ```
pub fn t_tail_quantile(tail: f64, df: f64) -> f64 {
    if !(0.0..=1.0).contains(&tail) || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if tail > 0.5 {
        return -t_tail_quantile(1.0 - tail, df);
    }
    if df >= NORMAL_DF || tail == 0.0 {
        return -normal_quantile(tail);
    }
    if tail == 0.5 {
        return 0.0;
    }
    // ln tail is concave in ln t: Newton's steps come to the root from above after the first one.
    let mut t = -normal_quantile(tail);
    for _ in 0..200 {
        let found = t_upper_tail(t, df);
        let ln_density = ln_t_constant(0.5 * df) - 0.5 * libm::log(df) - (0.5 * df + 0.5) * libm::log1p(t * t / df);
        let hazard = libm::exp(ln_density) / found;
        let next = if tail > 0.25 {
            t + (found - tail) / (hazard * found)
        } else {
            // Far out the tail is a power of t.
            let slope = if (t * t).is_finite() { t * hazard } else { df };
            t * libm::exp(libm::log(found / tail) / slope)
        };
        let close = (next - t).abs() <= 4e-16 * next.abs();
        t = next;
        if close || !t.is_finite() {
            break;
        }
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Beta, ContinuousCDF, Normal};

    #[test]
    fn normal_quantiles_equal_the_oracle() {
        let oracle = Normal::standard();
        for p in [1e-300, 1e-12, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.999_999] {
            let z = normal_quantile(p);
            assert!((normal_cdf(z) / p - 1.0).abs() < 1e-12 || p > 0.5, "{p}");
            assert!((z - oracle.inverse_cdf(p)).abs() < 1e-8 * (1.0 + z.abs()), "{p}: {z}");
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn quick_quantiles_are_the_same_numbers() {
        let grid = (1..2_000).map(|i| f64::from(i) / 2_000.0);
        for p in grid.chain([1e-300, 1e-100, 2e-17, 1e-11, 1e-9, 1e-6, 0.074_9, 0.075_1, 1.0 - 1e-12]) {
            let (quick, slow) = (quick_normal_quantile(p), normal_quantile(p));
            assert!((quick - slow).abs() <= 4e-15 * (1.0 + slow.abs()), "{p}: {quick} is not {slow}");
        }
        assert_eq!(quick_normal_quantile(0.25), -quick_normal_quantile(0.75));
    }

    /// With 1, 2 and 4 degrees of freedom there are formulas.
    #[test]
    fn students_t_equals_formulas_and_its_quantiles_invert_it() {
        use std::f64::consts::PI;
        for t in [1e-9, 0.01, 0.3, 1.0, 2.5, 30.0, 1e4, 1e9_f64] {
            let one = (1.0 / t).atan() / PI;
            assert!((t_upper_tail(t, 1.0) / one - 1.0).abs() < 1e-13, "{t}");
            let root: f64 = (2.0 + t * t).sqrt();
            let two = 1.0 / (root * (root + t));
            assert!((t_upper_tail(t, 2.0) / two - 1.0).abs() < 1e-13, "{t}");
        }
        for df in [0.7, 1.0, 3.3, 17.0, 120.5, 1e4, 1e8, 1e13] {
            for tail in [1e-200, 1e-12, 1e-4, 0.025, 0.2, 0.26, 0.4999, 0.5, 0.7] {
                let t = t_tail_quantile(tail, df);
                assert!((t_upper_tail(t, df) / tail - 1.0).abs() < 1e-11, "{df} {tail}: {t}");
            }
            assert_eq!(t_upper_tail(0.0, df), 0.5);
            assert!((t_upper_tail(-1.0, df) + t_upper_tail(1.0, df) - 1.0).abs() < 1e-15);
        }
        assert!(t_upper_tail(f64::NAN, 3.0).is_nan() && t_tail_quantile(0.1, f64::NAN).is_nan());
        assert_eq!(t_tail_quantile(0.0, 3.0), f64::INFINITY);
        assert_eq!(t_upper_tail(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn beta_law_equals_the_oracle() {
        for (a, b) in [(1.0, 1.0), (3.0, 8.0), (51.0, 950.0), (1.0, 9_999.0), (500.0, 9_500.0)] {
            let oracle = Beta::new(a, b).unwrap();
            for x in [1e-4, 0.01, 0.05, 0.3, 0.9] {
                let value = beta_cdf(a, b, ln_beta_constant(a, b), x);
                assert!((value - oracle.cdf(x)).abs() < 1e-10, "{a} {b} {x}: {value}");
            }
        }
    }

    /// By definition: at the bounds the tails of the binomial have probability 2.5 %.
    #[test]
    fn clopper_pearson_bounds_have_the_right_tails() {
        let (low, high) = clopper_pearson(7, 40, 0.95);
        let choose = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
        let mass = |p: f64, k: u64| choose(40, k) * p.powi(k as i32) * (1.0 - p).powi(40 - k as i32);
        let upper: f64 = (7..=40).map(|k| mass(low, k)).sum();
        let lower: f64 = (0..=7).map(|k| mass(high, k)).sum();
        assert!((upper - 0.025).abs() < 1e-10 && (lower - 0.025).abs() < 1e-10, "{upper} {lower}");
        assert_eq!(clopper_pearson(10, 10, 0.9).1, 1.0);
    }
}
