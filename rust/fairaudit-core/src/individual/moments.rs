//! Mean and squared deviations of numbers, with bits that do not depend on their order.

use crate::error::Result;
use crate::numerics::sums::FixedSum;
use crate::parallel::Control;
use crate::simd::{InstructionSet, Task};

/// Numbers that are looked at side by side.
const LANES: usize = 16;

/// How many numbers, their mean, and the sum of the squared deviations from it; NaN when one of them is not finite.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// How many.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of their squared deviations from it.
    pub squares: f64,
}

impl Moments {
    /// Of these numbers.
    pub(super) fn of(values: &[f64], instructions: InstructionSet) -> Self {
        let (mean, squares) = instructions.run(MeanAndSquares { values });
        Self { n: values.len() as u64, mean, squares }
    }

    /// Takes in the numbers of another part (Chan, Golub and `LeVeque`, 1979). Of which sizes and in which order parts
    /// come matters to the last bits.
    pub fn merge(&mut self, part: &Self) {
        if part.n == 0 {
            return;
        }
        let (more, all) = (part.n as f64, (self.n + part.n) as f64);
        let gap = part.mean - self.mean;
        self.mean += gap * (more / all);
        self.squares += part.squares + gap * gap * ((self.n * part.n) as f64 / all);
        self.n += part.n;
    }
}

/// Mean, and sum of the squared deviations from it; the order of the numbers does not matter to the bits. NaN when a
/// number is not finite, or there are none.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn moments(values: &[f64], control: &Control) -> Result<(f64, f64)> {
    // Four passes over 10^8 numbers take some tenths of a second: it is enough to look at the control before them.
    control.check()?;
    Ok(InstructionSet::current()?.run(MeanAndSquares { values }))
}

struct MeanAndSquares<'a> {
    values: &'a [f64],
}

impl Task for MeanAndSquares<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let (values, n) = (self.values, self.values.len());
        let bound = largest(values, |value| value);
        if n == 0 || !bound.is_finite() {
            return (f64::NAN, f64::NAN);
        }
        let mean = FixedSum::new(bound, n).with_each(values, |value| value).value() / n as f64;
        let square = |value: f64| (value - mean) * (value - mean);
        let bound = largest(values, square);
        if !bound.is_finite() {
            return (mean, f64::INFINITY);
        }
        (mean, FixedSum::new(bound, n).with_each(values, square).value())
    }
}

/// The largest absolute value of a function of numbers; infinite when one is not finite.
#[inline(always)]
fn largest(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut bounds = [0.0f64; LANES];
    let look = |bound: &mut f64, value: f64| {
        let value = of(value);
        let size = if value.is_nan() { f64::INFINITY } else { value.abs() };
        *bound = if size > *bound { size } else { *bound };
    };
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for lane in 0..LANES {
            look(&mut bounds[lane], values[lane]);
        }
    }
    for (bound, &value) in bounds.iter_mut().zip(rest) {
        look(bound, value);
    }
    bounds.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> (f64, f64) {
        super::moments(values, &Control::default()).unwrap()
    }

    #[test]
    fn moments_do_not_depend_on_the_order() {
        let mut values: Vec<f64> = (0..999).map(|i| 1.0 + 1e-3 * f64::from(i * 7919 % 1000)).collect();
        let first = moments(&values);
        values.reverse();
        values.rotate_left(311);
        assert_eq!(moments(&values), first);
        assert_eq!(moments(&[1.0, 2.0, 6.0]), (3.0, 14.0));
        assert_eq!(moments(&[0.0, 0.0]), (0.0, 0.0));
        assert!(moments(&[1.0, f64::INFINITY]).0.is_nan());
        assert!(moments(&[f64::NAN, 1.0]).0.is_nan());
        assert!(moments(&[]).0.is_nan());
        assert_eq!(moments(&[1e300, -1e300]), (0.0, f64::INFINITY));
    }

    #[test]
    fn they_are_those_of_one_number_after_the_other() {
        for n in [1, 15, 16, 17, 1_000] {
            let values: Vec<f64> = (0..n).map(|i| 0.3 + f64::from(i * 7919 % 1009).sqrt()).collect();
            let bound = values.iter().copied().fold(0.0, f64::max);
            let mean = FixedSum::new(bound, values.len()).with(values.iter().copied()).value() / f64::from(n);
            let squares: Vec<f64> = values.iter().map(|value| (value - mean) * (value - mean)).collect();
            let bound = squares.iter().copied().fold(0.0, f64::max);
            let wanted = (mean, FixedSum::new(bound, values.len()).with(squares).value());
            for instructions in InstructionSet::available() {
                assert_eq!(instructions.run(MeanAndSquares { values: &values }), wanted);
            }
        }
    }

    #[test]
    fn parts_are_merged() {
        let of = |values: &[f64]| Moments::of(values, InstructionSet::current().unwrap());
        let mut all = of(&[1.0, 2.0]);
        all.merge(&of(&[]));
        all.merge(&of(&[6.0, 7.0]));
        assert_eq!(all, of(&[1.0, 2.0, 6.0, 7.0]));
        let mut none = Moments::default();
        none.merge(&of(&[3.0]));
        assert_eq!(none, of(&[3.0]));
    }
}
