//! The `shuffle` engine: correlation of a row value with a continuous attribute.
//!
//! The attribute stays and the value is truly permuted. The statistic `S = r / sqrt(v)` with
//! `v = mu22 / (mu20 mu02) / n` tests "uncorrelated" and not "independent" (`DiCiccio` and Romano,
//! 2017); as mu20 and mu02 are the same in every permutation, it is `sum xy / sqrt(sum x^2 y^2)` of
//! the centred columns.

use std::ops::Range;

use super::units::one_for_each;
use super::{PermutationTest, Studentize};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::Evaluation;
use crate::numerics::order::{order, ordered_bits, row_of};
use crate::parallel::{Control, each_replicate};
use crate::random::{Domain, RowGenerator};

/// Correlation of two columns, the second permuted within strata.
#[derive(Debug, Clone)]
pub struct CorrelationTest {
    /// Less the mean of its stratum.
    x: Vec<f64>,
    y: Vec<f64>,
    /// Ends of the strata.
    ends: Vec<usize>,
    studentize: Studentize,
    /// sqrt(sum x^2 sum y^2).
    scale: f64,
    /// Of the rows as they are.
    observed: Observed,
}

/// What is asked of the observed rows.
#[derive(Debug, Clone, Copy, Default)]
struct Observed {
    /// r, NaN when a column does not vary.
    correlation: f64,
    /// `sum_i psi_i^2 / n^2` with `psi = z_x z_y - r (z_x^2 + z_y^2) / 2`: the variance of r, also where r is not 0.
    variance: f64,
    statistic: f64,
}

impl CorrelationTest {
    /// Prepares a test of rows in any order. Within strata both columns are taken less the mean
    /// of the stratum: the strata explain no part of what is tested.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths do not fit or a value is not finite; [`Error::Cancelled`].
    pub fn new(
        x: &[f64],
        y: &[f64],
        stratum: Option<&[u32]>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        check(x, y, stratum, studentize)?;
        let rows = x.len();
        let stratum_of = |key: u64| stratum.map_or(0, |stratum| stratum[row_of(key)]);
        // By stratum, x and y: rows that agree in all of them are the same.
        let mut order = order(x, |row| ordered_bits(y[row]), control)?;
        if stratum.is_some() {
            order.sort_by_key(|&key| stratum_of(key));
        }
        control.check()?;
        let mut ends: Vec<usize> = (1..rows).filter(|&i| stratum_of(order[i - 1]) != stratum_of(order[i])).collect();
        ends.push(rows);
        let pick = |values: &[f64]| -> Vec<f64> { order.iter().map(|&key| values[row_of(key)]).collect() };
        let (x, y, observed) = (pick(x), pick(y), Observed::default());
        let mut test = Self { x, y, ends, studentize, scale: 0.0, observed };
        // Before, so that no sum is infinite; after, because the rest can be small.
        scale_by_power(&mut test.x);
        scale_by_power(&mut test.y);
        for segment in test.segments() {
            center(&mut test.x[segment.clone()]);
            center(&mut test.y[segment]);
        }
        scale_by_power(&mut test.x);
        scale_by_power(&mut test.y);
        let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        test.scale = (squares(&test.x) * squares(&test.y)).sqrt();
        test.observed = test.observe();
        Ok(test)
    }

    fn segments(&self) -> Vec<Range<usize>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end).collect()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.x.len()
    }

    fn observe(&self) -> Observed {
        let n = self.n_rows() as f64;
        let (mut products, mut squares) = (0.0, 0.0);
        for (x, y) in self.x.iter().zip(&self.y) {
            products += x * y;
            squares += (x * y) * (x * y);
        }
        let r = if self.scale > 0.0 { products / self.scale } else { f64::NAN };
        let r = if r.abs() <= 1e-14 { 0.0 } else { r };
        let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>() / n;
        let (xx, yy) = (square(&self.x), square(&self.y));
        let psi = |x: f64, y: f64| x * y / (xx * yy).sqrt() - 0.5 * r * (x * x / xx + y * y / yy);
        let variance = self.x.iter().zip(&self.y).map(|(&x, &y)| psi(x, y).powi(2)).sum::<f64>() / (n * n);
        Observed { correlation: r, variance, statistic: self.statistic(products, squares) }
    }

    fn statistic(&self, products: f64, squares: f64) -> f64 {
        if self.scale == 0.0 {
            return f64::NAN;
        }
        if products.abs() <= 1e-14 * self.scale {
            return 0.0;
        }
        match self.studentize {
            Studentize::None => products / self.scale,
            _ => products / squares.sqrt(),
        }
    }
}

/// Refuses columns that do not fit together, and scalings that a correlation has not.
pub(super) fn check(x: &[f64], y: &[f64], stratum: Option<&[u32]>, studentize: Studentize) -> Result<()> {
    let rows = x.len();
    if u32::try_from(rows).is_err() {
        return Err(Error::argument("x", format!("of length {rows}"), "at most 2^32 - 1 rows"));
    }
    one_for_each("y", y.len(), rows, "rows")?;
    one_for_each("stratum", stratum.map_or(rows, <[u32]>::len), rows, "rows")?;
    let refused = match studentize {
        Studentize::Pooled => "\"pooled\"",
        Studentize::Corrected => "\"corrected\"",
        Studentize::Unpooled | Studentize::None => {
            return match x.iter().chain(y).find(|value| !value.is_finite()) {
                Some(bad) => Err(Error::argument("value", bad, "finite numbers")),
                None => Ok(()),
            };
        }
    };
    Err(Error::argument("studentize", refused, "\"unpooled\" or \"none\" for a correlation"))
}

impl PermutationTest for CorrelationTest {
    fn observed(&self) -> f64 {
        self.observed.statistic
    }

    /// The correlation.
    fn evaluations(&self) -> Vec<Evaluation> {
        let Observed { correlation, variance, .. } = self.observed;
        vec![Evaluation { value: correlation, variance, ..Evaluation::UNDEFINED }]
    }

    fn replicate_work(&self) -> u64 {
        4 * self.n_rows() as u64
    }

    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let segments = self.segments();
        let mut null = draws.zeros();
        each_replicate(&mut null, control, Vec::new, |offset, values: &mut Vec<f64>| {
            values.clone_from(&self.y);
            let replicate = draws.replicates.start + offset;
            let mut generator = RowGenerator::new(draws.seed, Domain::Permutation, draws.series, replicate, 0);
            let (mut products, mut squares) = (0.0, 0.0);
            for segment in &segments {
                let (x, y) = (&self.x[segment.clone()], &mut values[segment.clone()]);
                // Fisher and Yates from the back: what is swapped in stays, and is added up.
                for last in (0..x.len()).rev() {
                    y.swap(last, generator.below(last as u32 + 1) as usize);
                    let product = x[last] * y[last];
                    products += product;
                    squares += product * product;
                }
            }
            self.statistic(products, squares)
        })?;
        Ok(null)
    }
}

/// Brings the largest value to between 1 and 2 by a power of two, so that squares neither overflow nor
/// vanish: no correlation depends on the scale, and no bit of a value changes.
fn scale_by_power(values: &mut [f64]) {
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    if largest > 0.0 && largest.is_finite() {
        let (_, exponent) = libm::frexp(largest);
        for value in values {
            *value = libm::ldexp(*value, 1 - exponent);
        }
    }
}

/// Takes the mean away; what is then left by rounding is 0.
fn center(values: &mut [f64]) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    for value in values {
        let rest = *value - mean;
        *value = if rest.abs() <= 1e-14 * (value.abs() + mean.abs()) { 0.0 } else { rest };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> (Vec<f64>, Vec<f64>, Vec<u32>) {
        let x: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % 101)).collect();
        let y: Vec<f64> = (0..200).map(|i| f64::from(i * i % 83) + 0.3 * x[i as usize]).collect();
        (x, y, (0..200).map(|i| i % 3).collect())
    }

    #[test]
    fn the_order_of_rows_changes_nothing() {
        let (x, y, stratum) = columns();
        let back = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
        let stratum_back: Vec<u32> = stratum.iter().rev().copied().collect();
        let control = Control::default();
        let draws = |replicates| Draws { replicates, seed: 3, series: 1 };
        let run = |x: &[f64], y: &[f64], stratum: Option<&[u32]>| {
            let test = CorrelationTest::new(x, y, stratum, Studentize::Unpooled, &Control::default()).unwrap();
            (test.observed(), test.null_distribution(&draws(0..50), &control).unwrap())
        };
        assert_eq!(run(&x, &y, None), run(&back(&x), &back(&y), None));
        assert_eq!(run(&x, &y, Some(&stratum)), run(&back(&x), &back(&y), Some(&stratum_back)));
        let test = CorrelationTest::new(&x, &y, None, Studentize::Unpooled, &Control::default()).unwrap();
        let part = test.null_distribution(&draws(20..30), &control).unwrap();
        assert_eq!(part[..], run(&x, &y, None).1[20..30]);
    }

    /// A correlation that the strata make is none within them.
    #[test]
    fn strata_explain_what_they_do() {
        let x: Vec<f64> = (0..300).map(|i| f64::from(i % 3) * 10.0 + f64::from(i * 7 % 11)).collect();
        let y: Vec<f64> = (0..300).map(|i| f64::from(i % 3) * 10.0 + f64::from(i * 5 % 13)).collect();
        let stratum: Vec<u32> = (0..300).map(|i| i % 3).collect();
        let plain = CorrelationTest::new(&x, &y, None, Studentize::Unpooled, &Control::default()).unwrap();
        let within = CorrelationTest::new(&x, &y, Some(&stratum), Studentize::Unpooled, &Control::default()).unwrap();
        assert!(plain.evaluations()[0].value > 0.7 && within.evaluations()[0].value.abs() < 0.1);
    }
}
