//! Sums of many numbers from -1 to 1 whose bits do not depend on the order of the numbers.
//!
//! A number is cut into multiples of 2^-40 and, of the rest, of 2^-80 (pre-rounding, Demmel and Nguyen, 2013): sums
//! of either over [`ROWS`] numbers are exact in floats, and sums of these sums are exact as integers.

/// Numbers that may be added up in floats.
pub(super) const ROWS: usize = 1 << 12;
/// Bits of a part.
const BITS: i32 = 40;
/// Adding it to a number below 2 and taking it away again rounds to a multiple of 2^-40: 1.5 * 2^12.
const CUT: f64 = 6_144.0;
/// The same for multiples of 2^-80: 1.5 * 2^-28.
const LOWER_CUT: f64 = 1.5 / (1u64 << 28) as f64;
const UNITS: f64 = (1u64 << BITS) as f64;

/// The two parts of a number of at most 1.
#[inline(always)]
pub(super) fn cut(number: f64) -> [f64; 2] {
    let high = (number + CUT) - CUT;
    let low = ((number - high) + LOWER_CUT) - LOWER_CUT;
    [high, low]
}

/// A sum, in units of 2^-80.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Exact(i128);

impl Exact {
    /// Adds the sums of the two parts of up to [`ROWS`] numbers.
    #[inline]
    pub(super) fn add(&mut self, [high, low]: [f64; 2]) {
        let high = (high * UNITS) as i64;
        let low = (low * UNITS * UNITS) as i64;
        self.0 += (i128::from(high) << BITS) + i128::from(low);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// The sum, rounded once.
    pub(super) fn value(self) -> f64 {
        self.0 as f64 / (UNITS * UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64], size: usize) -> f64 {
        let mut total = Exact::default();
        for some in numbers.chunks(size) {
            let mut parts = [0.0; 2];
            for &number in some {
                let [high, low] = cut(number);
                parts = [parts[0] + high, parts[1] + low];
            }
            let mut part = Exact::default();
            part.add(parts);
            total.merge(part);
        }
        total.value()
    }

    #[test]
    fn no_order_and_no_parts_change_a_bit() {
        let mut numbers: Vec<f64> = (0..20_000u64).map(|i| ((i * 7_919) % 10_007) as f64 / 5_003.0 - 1.0).collect();
        numbers.extend([1e-9, -3e-13, 1e-20, 1.0, -1.0]);
        let forward = sum(&numbers, ROWS);
        numbers.reverse();
        assert_eq!(sum(&numbers, ROWS), forward);
        assert_eq!(sum(&numbers, 77), forward);
        let plain: f64 = numbers.iter().sum();
        assert!((forward - plain).abs() < 1e-10);
    }

    #[test]
    fn the_largest_sums_are_exact_and_small_numbers_are_kept() {
        assert_eq!(sum(&vec![1.0; 3 * ROWS + 1], ROWS), (3 * ROWS + 1) as f64);
        assert_eq!(sum(&vec![-1.0; ROWS], ROWS), -(ROWS as f64));
        let third = vec![1.0 / 3.0; 3_000];
        assert_eq!(sum(&third, ROWS), 1_000.0);
        assert!((sum(&[1e-13, 2e-13], ROWS) / 3e-13 - 1.0).abs() < 1e-11);
        assert_eq!(sum(&[1.0, 1e-13, -1.0], ROWS), sum(&[1e-13], ROWS));
    }
}
