//! Logistic functions in plain arithmetic: many side by side, and the same bits on every processor
//! and instruction set.
//!
//! Additions, multiplications, divisions and shifts of exponents, none of them fused (but in
//! [`exp2_of_negative`]), and no call of a library. Worst errors, found on a grid of two million
//! arguments against `libm` in the tests: [`sigmoid`] 4 units in the last place (from -690 on),
//! [`softplus`] 2 (down to the least normal number), [`exp2_of_negative`] 1 (as far).

// k ln 2 is exact for the leading part and |k| < 2^20.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// 1.5 * 2^52: adding it rounds to a whole number, which is then in the last bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// Adds the bias of exponents, too.
const BIASED_ROUNDER: f64 = ROUNDER + 1_023.0;
/// Beyond this `down` times a power of two could overflow.
const LARGEST: f64 = 690.0;

/// exp(x) = 2^k up / down, up and down being proportional to exp(r/2) and exp(-r/2).
struct Parts {
    /// The bits of a float that holds k.
    k: u64,
    up: f64,
    down: f64,
    /// up - down.
    difference: f64,
}

/// tanh(r/2) = r P(r^2) / Q(r^2) for |r| <= ln(2)/2, interpolated at five Chebyshev points: the
/// error of (Q + r P) / (Q - r P) as exp(r) is 3.1e-18.
#[inline(always)]
fn parts(x: f64) -> Parts {
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let k = shifted - ROUNDER;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let t = r * r;
    let odd = r * ((t + 420.273_316_820_411_2) * t + 15_131.480_745_073_46);
    let even = (30.013_661_848_946_466 * t + 3_362.460_091_153_047) * t + 30_262.961_490_146_92;
    Parts { k: shifted.to_bits(), up: even + odd, down: even - odd, difference: 2.0 * odd }
}

/// 2^k, k between -1022 and 1023 and in the last bits.
#[inline(always)]
fn power_of_two(k: u64) -> f64 {
    f64::from_bits(k.wrapping_add(1023) << 52)
}

/// 1 / (1 + exp(-x)); that of 690 beyond it.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let x = if x > LARGEST { LARGEST } else { x };
    let x = if x < -LARGEST { -LARGEST } else { x };
    let Parts { k, up, down, .. } = parts(x);
    up / (up + down * power_of_two(k.wrapping_neg()))
}

/// exp(x) for x <= 0, with what is left of it below the least normal number.
#[inline(always)]
pub fn exp_of_negative(x: f64) -> f64 {
    let x = if x < -800.0 { -800.0 } else { x };
    let Parts { k, down, difference, .. } = parts(x);
    // In two steps where the exponent would end; the first is exact.
    let (shift, rest) = if x < -600.0 { (300, power_of_two(300u64.wrapping_neg())) } else { (0, 1.0) };
    (1.0 + difference / down) * power_of_two(k.wrapping_add(shift)) * rest
}

/// exp(x) for -700 <= x <= 0 with the bits of `libm::exp`, whose steps (those of fdlibm) these are, without its
/// branches: for loops that run side by side.
#[inline(always)]
pub fn exp_as_libm(x: f64) -> f64 {
    const POLYNOMIAL: [f64; 5] = [
        1.666_666_666_666_660_2e-1,
        -2.777_777_777_701_559_3e-3,
        6.613_756_321_437_934e-5,
        -1.653_390_220_546_525_2e-6,
        4.138_136_797_057_238_5e-8,
    ];
    // The high words of ln(2) / 2 and of 3 ln(2) / 2, up to which k is 0 and 1.
    let size = (x.to_bits() >> 32) & 0x7fff_ffff;
    let far = (std::f64::consts::LOG2_E * x - 0.5) as i32;
    let k = if size >= 0x3ff0_a2b2 { far } else { -1 };
    let k = if size > 0x3fd6_2e42 { k } else { 0 };
    let (high, low) = (x - f64::from(k) * LN_2_HIGH, f64::from(k) * LN_2_LOW);
    let r = high - low;
    let t = r * r;
    let [p1, p2, p3, p4, p5] = POLYNOMIAL;
    let c = r - t * (p1 + t * (p2 + t * (p3 + t * (p4 + t * p5))));
    let y = 1.0 + (r * c / (2.0 - c) - low + high);
    // Below 2^-28 the sum of 1 and x says it all.
    let y = if size > 0x3e30_0000 { y } else { 1.0 + x };
    y * power_of_two(k as u64)
}

/// (2^x - 1) / x for |x| <= 1/2, interpolated at eleven Chebyshev points: the even powers and the
/// odd ones, highest first. The error of 2^x is 2.0e-17.
const EVEN_POWERS: [f64; 6] = [
    4.454_960_598_186_518_6e-10,
    1.017_806_244_584_577_4e-7,
    1.525_273_382_983_612e-5,
    1.333_355_814_641_693_6e-3,
    5.550_410_866_482_16e-2,
    std::f64::consts::LN_2,
];
const ODD_POWERS: [f64; 5] = [
    7.072_585_949_269_223e-9,
    1.321_544_258_792_169e-6,
    1.540_353_044_173_605e-4,
    9.618_129_107_606_888e-3,
    2.402_265_069_591_009_7e-1,
];

/// 2^x for x <= 0, and 1 beyond; 0 below 2^-1022.5, the end of the normal numbers. Fused
/// multiplications and no division: for processors with FMA.
#[inline(always)]
pub fn exp2_of_negative(x: f64) -> f64 {
    // What is rounded to the exponent -1023 has the bits of 0 as its power.
    let x = if x < -1023.0 { -1023.0 } else { x };
    let x = if x > 0.0 { 0.0 } else { x };
    let shifted = x + BIASED_ROUNDER;
    let rest = x - (shifted - BIASED_ROUNDER);
    let square = rest * rest;
    let (mut even, mut odd) = (EVEN_POWERS[0], ODD_POWERS[0]);
    for power in &EVEN_POWERS[1..] {
        even = even.mul_add(square, *power);
    }
    for power in &ODD_POWERS[1..] {
        odd = odd.mul_add(square, *power);
    }
    odd.mul_add(rest, even).mul_add(rest, 1.0) * f64::from_bits(shifted.to_bits() << 52)
}

/// log(1 + x) for 0 <= x <= 1: with f = x or (x - 1) / 2 and s = f / (2 + f), log(1 + f) =
/// 2 atanh(s), whose series has the coefficients of fdlibm (error 2^-58).
#[inline(always)]
fn log1p_of_unit(x: f64) -> f64 {
    let above = x > 0.414;
    let f = if above { 0.5 * (x - 1.0) } else { x };
    let (high, low) = if above { (LN_2_HIGH, LN_2_LOW) } else { (0.0, 0.0) };
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let odd = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1 + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    let half = 0.5 * f * f;
    high - ((half - (s * (half + (even + odd)) + low)) - f)
}

/// ln(x) of a normal number above 0 with the bits of `libm::log`, whose steps (those of fdlibm) these are, without its
/// branches: for loops that run side by side.
#[inline(always)]
pub fn ln_as_libm(x: f64) -> f64 {
    /// The high word of sqrt(2)/2, from which on a number counts as half of the next power of two.
    const HALF: u64 = 0x3fe6_a09e << 32;
    const ONE: u64 = 0x3ff0_0000 << 32;
    let bits = x.to_bits().wrapping_add(ONE - HALF);
    // 2^52 + k + 1023 as a float, k being the exponent.
    let k = f64::from_bits(0x4330_0000_0000_0000 | bits >> 52) - (4_503_599_627_370_496.0 + 1_023.0);
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + HALF) - 1.0;
    let half = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let odd = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1 + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    s * (half + (odd + even)) + k * LN_2_LOW - half + f + k * LN_2_HIGH
}

/// log(1 + exp(x)), to full relative precision also where it is small.
#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    let (above, size) = if x > 0.0 { (x, -x) } else { (0.0, x) };
    above + log1p_of_unit(exp_of_negative(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_have_the_bits_of_libm() {
        let grid = (0..400_000).map(|i| -700.0 * f64::from(i) / 400_000.0);
        let small = (0..400_000).map(|i| -2.5 * f64::from(i) / 400_000.0);
        let tiny = (0..1_100).map(|i| -libm::ldexp(1.0, -i));
        // The neighbours of the places where another branch begins.
        let edge = |high: u64| ((high << 32) - 40..(high << 32) + 40).map(|bits| -f64::from_bits(bits));
        let edges = [0x3fd6_2e42, 0x3fd6_2e43, 0x3ff0_a2b2, 0x3e30_0000, 0x3e30_0001].into_iter().flat_map(edge);
        let halves = (1..900).map(|i| -std::f64::consts::LN_2 * (f64::from(i) + 0.5));
        for x in grid.chain(small).chain(tiny).chain(edges).chain(halves.filter(|&x| x > -700.0)) {
            assert_eq!(exp_as_libm(x).to_bits(), libm::exp(x).to_bits(), "{x}");
        }
        assert_eq!(exp_as_libm(0.0), 1.0);
    }

    #[test]
    fn logarithms_have_the_bits_of_libm() {
        let mut word = 1u64;
        for _ in 0..400_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
            for x in [unit, 1.0 / unit, f64::from_bits(word >> 1), 1.0 + 1e-9 * unit] {
                if x.is_normal() {
                    assert_eq!(ln_as_libm(x).to_bits(), libm::log(x).to_bits(), "{x}");
                }
            }
        }
        assert_eq!((ln_as_libm(1.0), ln_as_libm(std::f64::consts::E)), (0.0, 1.0));
    }

    /// Distance in units of the last place of the greater number.
    fn ulps(a: f64, b: f64) -> f64 {
        let spacing = f64::from_bits(a.abs().max(b.abs()).to_bits() + 1) - a.abs().max(b.abs());
        (a - b).abs() / spacing
    }

    fn worst(range: (f64, f64), f: impl Fn(f64) -> f64, oracle: impl Fn(f64) -> f64) -> f64 {
        let n = 2_000_000;
        let at = |i: i32| range.0 + (range.1 - range.0) * (f64::from(i) + 0.37) / f64::from(n);
        (0..n).map(|i| ulps(f(at(i)), oracle(at(i)))).fold(0.0, f64::max)
    }

    fn sigmoid_oracle(x: f64) -> f64 {
        let e = libm::exp(-x.abs());
        if x > 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
    }

    fn softplus_oracle(x: f64) -> f64 {
        x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
    }

    #[test]
    fn the_errors_are_those_that_are_stated() {
        for range in [(-690.0, 690.0), (-40.0, 40.0), (-1.0, 1.0), (-1e-6, 1e-6)] {
            let (a, b) = (worst(range, sigmoid, sigmoid_oracle), worst(range, softplus, softplus_oracle));
            assert!(a <= 4.0, "sigmoid on {range:?}: {a}");
            assert!(b <= 2.0, "softplus on {range:?}: {b}");
        }
    }

    #[test]
    fn the_error_of_the_power_of_two_is_that_which_is_stated() {
        for range in [(-1022.0, 0.0), (-40.0, 0.0), (-1.0, 0.0), (-1e-6, 0.0)] {
            let error = worst(range, exp2_of_negative, libm::exp2);
            assert!(error <= 1.0, "{range:?}: {error}");
        }
        assert_eq!((exp2_of_negative(-0.0), exp2_of_negative(1e-9), exp2_of_negative(f64::INFINITY)), (1.0, 1.0, 1.0));
        assert_eq!((exp2_of_negative(-1.0), exp2_of_negative(-1022.0)), (0.5, f64::MIN_POSITIVE));
        assert_eq!((exp2_of_negative(-1022.6), exp2_of_negative(-1e300)), (0.0, 0.0));
        assert_eq!(exp2_of_negative(f64::NEG_INFINITY), 0.0);
        assert!(exp2_of_negative(f64::NAN).is_nan());
    }

    #[test]
    fn the_ends_are_right() {
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(1e300), 1.0);
        assert_eq!(sigmoid(f64::INFINITY), 1.0);
        assert!(sigmoid(f64::NEG_INFINITY) < 1e-299);
        assert!(sigmoid(f64::NAN).is_nan());
        assert_eq!(softplus(f64::INFINITY), f64::INFINITY);
        assert_eq!(softplus(1e300), 1e300);
        assert_eq!(softplus(f64::NEG_INFINITY), 0.0);
        assert!(softplus(f64::NAN).is_nan());
        for x in [-709.0, -720.0, -740.0, -744.0, -760.0] {
            let least = f64::from_bits(1);
            assert!((softplus(x) - libm::exp(x)).abs() <= least.max(4e-16 * libm::exp(x)), "{x}");
        }
    }
}
