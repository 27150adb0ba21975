//! Sums of floats whose bits do not depend on the order of the terms.

/// Sums that go side by side.
const LANES: usize = 16;

/// Adds numbers of at most a known size; any order, and any way to split them, gives the same bits.
///
/// Each number is cut at two fixed places (Demmel and Nguyen, 2013, "pre-rounding"): the leading
/// parts are multiples of one power of two and their sum is exact, and so is that of the next
/// parts. What lies below both, about 2^-80 of the bound per number, is left out.
///
/// ```
/// use fairaudit_core::numerics::sums::FixedSum;
/// let numbers = [0.1, 1e-9, 0.7, 3.0];
/// let add = |order: [usize; 4]| FixedSum::new(3.0, 4).with(order.map(|i| numbers[i])).value();
/// assert_eq!(add([0, 1, 2, 3]), add([3, 1, 0, 2]));
/// assert!((add([0, 1, 2, 3]) - 3.800000001).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FixedSum {
    cuts: [f64; 2],
    sums: [f64; 2],
}

impl FixedSum {
    /// An empty sum of up to `terms` numbers, each of at most `bound` in absolute value.
    pub fn new(bound: f64, terms: usize) -> Self {
        debug_assert!(bound.is_finite() && bound >= 0.0);
        let spread = exponent(terms as f64 + 1.0) + 2;
        let first = exponent(bound) + 1 + spread;
        let second = first - 53 + spread;
        Self { cuts: [first, second].map(cut), sums: [0.0; 2] }
    }

    /// Adds a number.
    #[inline(always)]
    pub fn add(&mut self, number: f64) {
        let mut rest = number;
        for level in 0..2 {
            let leading = (rest + self.cuts[level]) - self.cuts[level];
            self.sums[level] += leading;
            rest -= leading;
        }
    }

    /// Adds numbers.
    #[must_use]
    pub fn with(mut self, numbers: impl IntoIterator<Item = f64>) -> Self {
        for number in numbers {
            self.add(number);
        }
        self
    }

    /// Adds a function of each number, some side by side: the bits of one after the other, sooner.
    #[must_use]
    #[inline(always)]
    pub fn with_each(mut self, numbers: &[f64], of: impl Fn(f64) -> f64) -> Self {
        let mut sums = [[0.0; LANES]; 2];
        let (whole, rest) = numbers.as_chunks::<LANES>();
        for numbers in whole {
            for lane in 0..LANES {
                let mut left = of(numbers[lane]);
                for (cut, sums) in self.cuts.iter().zip(&mut sums) {
                    let leading = (left + cut) - cut;
                    sums[lane] += leading;
                    left -= leading;
                }
            }
        }
        for (sum, lanes) in self.sums.iter_mut().zip(sums) {
            *sum += lanes.iter().sum::<f64>();
        }
        for &number in rest {
            self.add(of(number));
        }
        self
    }

    /// Adds another sum with the same bound and number of terms.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.cuts, other.cuts);
        for level in 0..2 {
            self.sums[level] += other.sums[level];
        }
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        self.sums[0] + self.sums[1]
    }
}

/// The least e with |x| < 2^e; -1074 for 0.
fn exponent(x: f64) -> i32 {
    if x == 0.0 { -1074 } else { libm::frexp(x).1 }
}

/// 1.5 * 2^e: adding and taking it away rounds to a multiple of 2^(e - 52).
fn cut(exponent: i32) -> f64 {
    1.5 * libm::ldexp(1.0, exponent.clamp(-1000, 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64], bound: f64) -> f64 {
        FixedSum::new(bound, numbers.len()).with(numbers.iter().copied()).value()
    }

    #[test]
    fn order_and_parts_change_no_bit() {
        let numbers: Vec<f64> =
            (0..10_000u64).map(|i| ((i * 7_919) % 10_007) as f64 / 10_007.0 * 1e-3 - 3e-4).collect();
        let forward = sum(&numbers, 1.0);
        let mut backward = numbers.clone();
        backward.reverse();
        assert_eq!(forward, sum(&backward, 1.0));
        let mut parts = FixedSum::new(1.0, numbers.len());
        for part in numbers.chunks(77) {
            parts.merge(&FixedSum::new(1.0, numbers.len()).with(part.iter().copied()));
        }
        assert_eq!(forward, parts.value());
        for n in [0, 1, 15, 16, 9_999] {
            let one_by_one = FixedSum::new(2.0, n).with(numbers[..n].iter().map(|number| 2.0 * number));
            assert_eq!(
                FixedSum::new(2.0, n).with_each(&numbers[..n], |number| 2.0 * number).value(),
                one_by_one.value()
            );
        }
        let plain: f64 = numbers.iter().sum();
        assert!((forward - plain).abs() < 1e-14 * 10.0);
    }

    #[test]
    fn a_plain_sum_depends_on_the_order() {
        let numbers = [1.0, 1e-16, 1e-16];
        let forward: f64 = numbers.iter().sum();
        let backward: f64 = numbers.iter().rev().sum();
        assert_ne!(forward, backward);
        assert_eq!(sum(&numbers, 1.0), backward);
    }

    #[test]
    fn zero_and_tiny_bounds_work() {
        assert_eq!(sum(&[0.0, 0.0], 0.0), 0.0);
        assert!((sum(&[1e-300, 2e-300], 2e-300) - 3e-300).abs() < 1e-315);
        assert!((sum(&[1e300, -3e299], 1e300) - 7e299).abs() < 1e284);
    }
}
