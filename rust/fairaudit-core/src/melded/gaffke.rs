//! Limits of a mean of values in a known range: Gaffke's (2005; Learned-Miller and Thomas, 2019).
//!
//! U* = (sum e A + c b) / (sum e D + c), L* the same with a for b and the same e: one standard exponential number e for
//! every unit with the sums (A, D), A / D in [a, b], and c = `e_0 D_0` for one unit more at the end of the range, of the
//! size `D_0` = sum D^2 / sum D. For rows of 0 and 1 these are beta laws, and the limits those of Clopper and Pearson.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::Limits;
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::numerics::order::ordered_bits;
use crate::numerics::sums::FixedSum;
use crate::parallel::{Control, fill};
use crate::random::{Domain, LaneGamma, Shape};
use crate::simd::{InstructionSet, LANES, Task};

/// Different units that are drawn one by one, those that matter most; the sums of the others are normal but for their
/// skewness. Against the full draw of 5,000 units of very skewed designs quantiles from .0005 on differ by less than what
/// 40,000 replicates can tell (`few_are_drawn_one_by_one`).
const ONE_BY_ONE: usize = 1_024;
/// Replicates of one task.
const BLOCK: usize = 4 * LANES;
/// Rows that are looked at before the control is.
const ROWS: usize = 1 << 16;
/// What rounding may put a value beyond the range, relative.
const ROUNDING: f64 = 1e-12;

/// Sums of the units of a group, and the range of their ratios.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// A of each unit.
    pub numerator: &'a [f64],
    /// D of each unit, at least 0; 1 where there is none.
    pub denominator: Option<&'a [f64]>,
    /// The ends a and b.
    pub range: (f64, f64),
}

impl Values<'_> {
    fn denominator(&self, unit: usize) -> f64 {
        self.denominator.map_or(1.0, |denominator| denominator[unit])
    }

    /// Visits the units that count, as (A, D).
    fn each(&self, control: &Control, mut visit: impl FnMut([f64; 2])) -> Result<()> {
        let n = self.numerator.len();
        for start in (0..n).step_by(ROWS) {
            control.check()?;
            for unit in start..(start + ROWS).min(n) {
                let d = self.denominator(unit);
                if d > 0.0 {
                    visit([self.numerator[unit], d]);
                }
            }
        }
        Ok(())
    }

    /// Checks all of it.
    fn checked(&self, control: &Control) -> Result<Checked<'_>> {
        let (low, high) = self.range;
        if !(low < high && low.is_finite() && high.is_finite()) {
            return Err(Error::argument("high", high, &format!("a finite number above low, which is {low}")));
        }
        if let Some(denominator) = self.denominator
            && denominator.len() != self.numerator.len()
        {
            let accepted = format!("one value for each of {} units", self.numerator.len());
            return Err(Error::argument("length of denominator", denominator.len(), &accepted));
        }
        let slack = ROUNDING * low.abs().max(high.abs());
        let (mut n, mut greatest) = (0, 0.0f64);
        for unit in 0..self.numerator.len() {
            if unit.is_multiple_of(ROWS) {
                control.check()?;
            }
            let (a, d) = (self.numerator[unit], self.denominator(unit));
            if !(0.0..1e150).contains(&d) {
                return Err(Error::argument("denominator", d, "finite numbers of at least 0"));
            }
            if !(a >= (low - slack) * d && a <= (high + slack) * d) {
                let accepted = format!("values from {low} to {high} times their denominator, which is {d}");
                return Err(Error::argument("numerator", a, &accepted));
            }
            n += usize::from(d > 0.0);
            greatest = greatest.max(d);
        }
        if n == 0 {
            return Err(Error::argument("number of units with a denominator above 0", 0, "at least 1"));
        }
        Ok(Checked { values: self, n, greatest })
    }
}

/// Units in the range, in units of the greatest D, so that no square is lost.
struct Checked<'a> {
    values: &'a Values<'a>,
    /// Units that count.
    n: usize,
    greatest: f64,
}

impl Checked<'_> {
    fn each(&self, control: &Control, mut visit: impl FnMut([f64; 2])) -> Result<()> {
        // Without negative zeros.
        self.values.each(control, |[a, d]| visit([a / self.greatest + 0.0, d / self.greatest]))
    }

    /// The sum of what is at most `bound` in absolute value.
    fn sum(&self, bound: f64, control: &Control, of: impl Fn([f64; 2]) -> f64) -> Result<f64> {
        let mut sum = FixedSum::new(bound, self.n);
        self.each(control, |unit| sum.add(of(unit)))?;
        Ok(sum.value())
    }

    /// Sums of D and D^2, the mean, the sum of (A - theta D)^2.
    fn moments(&self, control: &Control) -> Result<[f64; 4]> {
        let (low, high) = self.values.range;
        let total = self.sum(1.0, control, |[_, d]| d)?;
        let squares = self.sum(1.0, control, |[_, d]| d * d)?;
        let theta = self.sum(2.0 * low.abs().max(high.abs()), control, |[a, _]| a)? / total;
        let spread = self.sum(self.width() * self.width(), control, |[a, d]| (a - theta * d) * (a - theta * d))?;
        Ok([total, squares, theta, spread])
    }

    /// More than |A - theta D| can be.
    fn width(&self) -> f64 {
        2.0 * (self.values.range.1 - self.values.range.0)
    }
}

/// Limits of the mean of a group. Groups have numbers of their own by their number; the order of the units is nothing.
///
/// # Errors
/// [`Error::Argument`] when values are out of their range, [`Error::Cancelled`].
pub fn limits(
    values: &Values<'_>,
    group: u64,
    draws: &Draws,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Limits> {
    Law::new(values, ONE_BY_ONE, control)?.draw(group, draws, instructions, control)
}

/// Work of [`limits`] in nanoseconds.
pub fn work(n_units: usize, n_draws: u64) -> u64 {
    60 * n_units as u64 + n_draws.saturating_mul(40 + 2 * n_units.min(ONE_BY_ONE) as u64)
}

/// Sums of e (A - theta D) and of e D over the units that are not drawn one by one.
#[derive(Debug, Clone, Copy)]
struct Rest {
    theta: f64,
    range: (f64, f64),
    moved: Normal,
    size: Normal,
    /// Correlation of both.
    correlation: f64,
}

/// A law by its cumulants: a normal number bent to its skewness.
#[derive(Debug, Clone, Copy)]
struct Normal {
    mean: f64,
    deviation: f64,
    skewness: f64,
}

impl Normal {
    /// Of a sum of e x: an exponential number has the cumulants 1, 1, 2.
    fn of([mean, squares, cubes]: [f64; 3]) -> Self {
        let skewness = if squares > 0.0 { 2.0 * cubes / (squares * squares.sqrt()) } else { 0.0 };
        Self { mean, deviation: squares.sqrt(), skewness }
    }

    #[inline(always)]
    fn at(&self, z: f64) -> f64 {
        let bend = self.skewness / 6.0;
        self.mean + self.deviation * (z + bend * (z * z - 1.0)) / (1.0 + 2.0 * bend * bend).sqrt()
    }
}

/// What limits are drawn from.
#[derive(Debug)]
struct Law {
    /// (A, D), and how many of them there are.
    units: Vec<(Shape, [f64; 2])>,
    rest: Option<Rest>,
    /// `D_0`.
    extra: f64,
    range: (f64, f64),
}

impl Law {
    fn new(values: &Values<'_>, one_by_one: usize, control: &Control) -> Result<Self> {
        let checked = values.checked(control)?;
        let [total, squares, theta, spread] = checked.moments(control)?;
        let mut units = tabulated(&checked, one_by_one, control)?;
        let mut rest = None;
        if units.is_empty() {
            let importance = |[a, d]: [f64; 2]| {
                let moved = a - theta * d;
                let influence = if spread > 0.0 { moved * moved / spread } else { 0.0 };
                influence.max(d * d / squares)
            };
            let mut greatest = Greatest::new(one_by_one);
            checked.each(control, |unit| greatest.add(importance(unit)))?;
            let least = greatest.least();
            let (mut chosen, mut tied) = (Vec::new(), Vec::new());
            let mut others = RestSums::new(theta, checked.width(), checked.n);
            checked.each(control, |unit| match importance(unit).total_cmp(&least) {
                Ordering::Greater => chosen.push(unit),
                Ordering::Equal => tied.push(unit),
                Ordering::Less => others.add(unit),
            })?;
            tied.sort_unstable_by_key(by_bits);
            tied.drain(one_by_one - chosen.len()..).for_each(|unit| others.add(unit));
            chosen.append(&mut tied);
            rest = Some(others.rest(values.range));
            units = chosen.into_iter().map(|unit| (unit, 1)).collect();
        }
        // Those of one number of copies go the same way.
        units.sort_unstable_by_key(|(unit, copies)| (*copies, by_bits(unit)));
        let units = units.into_iter().map(|(unit, copies)| (Shape::new(copies), unit)).collect();
        Ok(Self { units, rest, extra: squares / total, range: values.range })
    }

    fn draw(&self, group: u64, draws: &Draws, instructions: InstructionSet, control: &Control) -> Result<Limits> {
        let mut pairs = vec![(0.0, 0.0); draws.n() as usize];
        fill(
            &mut pairs,
            BLOCK,
            control,
            || (),
            |block, chunk, ()| {
                for (lanes, pairs) in chunk.chunks_mut(LANES).enumerate() {
                    control.check()?;
                    let first = draws.replicates.start + (block * BLOCK + lanes * LANES) as u64;
                    let mut gamma = LaneGamma::new(draws, Domain::Melded, first, group);
                    let drawn = instructions.run(DrawLanes { law: self, gamma: &mut gamma });
                    pairs.copy_from_slice(&drawn[..pairs.len()]);
                }
                control.advance(chunk.len() as u64);
                Ok(())
            },
        )?;
        Ok(Limits::of(pairs))
    }
}

/// Orders units in a way that does not depend on how they come.
fn by_bits([a, d]: &[f64; 2]) -> (u64, u64) {
    (ordered_bits(*d), ordered_bits(*a))
}

/// Different units and how many there are of each, in any order; none if there are more than `most`.
fn tabulated(units: &Checked<'_>, most: usize, control: &Control) -> Result<Vec<([f64; 2], u64)>> {
    let mut counts: HashMap<[u64; 2], u64> = HashMap::new();
    units.each(control, |unit| {
        if counts.len() <= most {
            *counts.entry(unit.map(f64::to_bits)).or_insert(0) += 1;
        }
    })?;
    if counts.len() > most {
        return Ok(Vec::new());
    }
    Ok(counts.into_iter().map(|(unit, copies)| (unit.map(f64::from_bits), copies)).collect())
}

/// The greatest of many numbers.
struct Greatest {
    most: usize,
    /// What is smaller is none of them.
    least: f64,
    kept: Vec<f64>,
}

impl Greatest {
    /// Of at least `most` numbers those many.
    fn new(most: usize) -> Self {
        Self { most, least: 0.0, kept: Vec::new() }
    }

    fn add(&mut self, number: f64) {
        if number >= self.least {
            self.kept.push(number);
            if self.kept.len() == ROWS + self.most {
                self.least = self.least();
            }
        }
    }

    /// The least one of them.
    fn least(&mut self) -> f64 {
        let least = *self.kept.select_nth_unstable_by(self.most - 1, |first, second| second.total_cmp(first)).1;
        self.kept.truncate(self.most);
        least
    }
}

/// Sums over units in any order: of x = A - theta D and D, their squares and cubes, and of their products.
struct RestSums {
    theta: f64,
    moved: [FixedSum; 3],
    size: [FixedSum; 3],
    products: FixedSum,
}

impl RestSums {
    /// Of at most `n` units; |x| is at most `width`, D at most 1.
    fn new(theta: f64, width: f64, n: usize) -> Self {
        let sums = |bound: f64| [bound, bound * bound, bound * bound * bound].map(|bound| FixedSum::new(bound, n));
        Self { theta, moved: sums(width), size: sums(1.0), products: FixedSum::new(width, n) }
    }

    fn add(&mut self, [a, d]: [f64; 2]) {
        let x = a - self.theta * d;
        for (sums, x) in [(&mut self.moved, x), (&mut self.size, d)] {
            sums[0].add(x);
            sums[1].add(x * x);
            sums[2].add(x * x * x);
        }
        self.products.add(x * d);
    }

    fn rest(&self, range: (f64, f64)) -> Rest {
        let [moved, size] = [&self.moved, &self.size].map(|sums| Normal::of(sums.map(|sum| sum.value())));
        let scale = moved.deviation * size.deviation;
        let correlation = if scale > 0.0 { (self.products.value() / scale).clamp(-1.0, 1.0) } else { 0.0 };
        Rest { theta: self.theta, range, moved, size, correlation }
    }
}

impl Rest {
    /// Sums of e A and e D from two standard normal numbers: a sum of D that is not negative, a ratio within the range.
    #[inline(always)]
    fn at(&self, first: f64, second: f64) -> [f64; 2] {
        let second = self.correlation * first + (1.0 - self.correlation * self.correlation).sqrt() * second;
        let d = self.size.at(second).max(0.0);
        let a = self.theta * d + self.moved.at(first);
        [a.max(self.range.0 * d).min(self.range.1 * d), d]
    }
}

/// Draws (U*, L*) in every lane.
struct DrawLanes<'a> {
    law: &'a Law,
    gamma: &'a mut LaneGamma,
}

impl Task for DrawLanes<'_> {
    type Output = [(f64, f64); LANES];

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { law, gamma } = self;
        let mut sums = [[0.0; LANES]; 2];
        let extra = gamma.exponential();
        if let Some(rest) = &law.rest {
            let (first, second) = (gamma.normal(), gamma.normal());
            for lane in 0..LANES {
                let drawn = rest.at(first[lane], second[lane]);
                sums[0][lane] = drawn[0];
                sums[1][lane] = drawn[1];
            }
        }
        for (shape, [a, d]) in &law.units {
            let e = gamma.sum(shape);
            for lane in 0..LANES {
                sums[0][lane] += e[lane] * a;
                sums[1][lane] += e[lane] * d;
            }
        }
        let (low, high) = law.range;
        let mut drawn = [(0.0, 0.0); LANES];
        for lane in 0..LANES {
            let size = extra[lane] * law.extra;
            let below = sums[1][lane] + size;
            drawn[lane] = ((sums[0][lane] + size * high) / below, (sums[0][lane] + size * low) / below);
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::laws::{beta_quantile, quick_normal_quantile};
    use crate::random::Stream;

    fn draws(n: u64) -> Draws {
        Draws { replicates: 0..n, seed: 3, series: 1 }
    }

    fn drawn(values: &Values<'_>, one_by_one: usize, group: u64, n: u64) -> Limits {
        let control = Control::default();
        let instructions = InstructionSet::current().unwrap();
        Law::new(values, one_by_one, &control).unwrap().draw(group, &draws(n), instructions, &control).unwrap()
    }

    fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
        numbers.sort_by(f64::total_cmp);
        numbers
    }

    /// The share of the numbers up to x is p within the band of tail 1e-6.
    fn assert_quantile(sorted: &[f64], x: f64, p: f64, slack: f64, what: &str) {
        let (n, below) = (sorted.len() as f64, sorted.partition_point(|&y| y <= x) as f64);
        let band = 4.9 * (n * p * (1.0 - p)).sqrt() + slack * n;
        assert!((below - n * p).abs() <= band + 1.0, "{what} {p}: {below} of {n}");
    }

    const LEVELS: [f64; 7] = [0.0005, 0.005, 0.025, 0.5, 0.975, 0.995, 0.9995];

    /// Rows of 0 and 1: U* has the law Beta(x + 1, n - x), L* Beta(x, n - x + 1).
    #[test]
    fn rows_of_0_and_1_have_beta_laws() {
        for (hits, n) in [(0, 12), (1, 12), (3, 40), (12, 12), (17, 300), (900, 2_000)] {
            let rows: Vec<f64> = (0..n).map(|row| f64::from(u8::from(row < hits))).collect();
            let values = Values { numerator: &rows, denominator: None, range: (0.0, 1.0) };
            let Limits { upper, lower } = drawn(&values, ONE_BY_ONE, 0, 100_000);
            let (upper, lower) = (sorted(upper), sorted(lower));
            let (x, rest) = (f64::from(hits), f64::from(n - hits));
            for p in LEVELS {
                if hits < n {
                    assert_quantile(&upper, beta_quantile(x + 1.0, rest, p), p, 0.0, "upper");
                }
                if hits > 0 {
                    assert_quantile(&lower, beta_quantile(x, rest + 1.0, p), p, 0.0, "lower");
                }
            }
            assert_eq!(hits == n, upper.iter().all(|&u| u == 1.0));
            assert_eq!(hits == 0, lower.iter().all(|&l| l == 0.0));
        }
    }

    /// Designs of 5,000 different units: skewed values, rare events under skewed weights, skewed weights alone.
    fn designs() -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
        let mut stream = Stream::new(4, Domain::Simulation, 0, 0, 0);
        let n = 5_000;
        let mut normal = || quick_normal_quantile(stream.uniform());
        let skewed = |z: f64, by: f64| libm::exp(by * z);
        let mut of = |name, make: &dyn Fn(f64, f64, f64) -> [f64; 2]| {
            let rows: Vec<[f64; 2]> = (0..n).map(|_| make(normal(), normal(), normal())).collect();
            (name, rows.iter().map(|row| row[0]).collect(), rows.iter().map(|row| row[1]).collect())
        };
        vec![
            of("lognormal", &|z, _, _| [(skewed(z, 1.5) / 1_000.0).min(1.0), 1.0]),
            of("residuals", &|z, y, _| {
                let score = (0.02 * skewed(z, 0.7)).min(0.9);
                [f64::from(u8::from(y > 2.0)) - score, 1.0]
            }),
            of("weighted events", &|z, y, _| {
                let weight = skewed(z, 1.5);
                [if y > 1.65 { weight } else { 0.0 }, weight]
            }),
            of("rare weighted events", &|z, y, _| {
                let weight = skewed(z, 1.5);
                [if y > 2.9 { weight } else { 0.0 }, weight]
            }),
            of("weighted values", &|z, y, x| {
                let weight = skewed(z, 1.0);
                [weight * (skewed(y, 1.0) / 50.0).min(1.0) * f64::from(u8::from(x > 0.5)), weight]
            }),
        ]
    }

    /// The sums of the units that matter least are as good as normal numbers with their skewness; plain normal numbers
    /// for all but four units are not.
    #[test]
    fn few_are_drawn_one_by_one() {
        let n = 40_000;
        let (control, instructions) = (Control::default(), InstructionSet::current().unwrap());
        let mut worst = [0.0f64; 2];
        for (name, numerator, denominator) in designs() {
            let values = Values { numerator: &numerator, denominator: Some(&denominator), range: (-1.0, 1.0) };
            let full = drawn(&values, usize::MAX, 0, n);
            let mut plain = Law::new(&values, 4, &control).unwrap();
            if let Some(rest) = &mut plain.rest {
                (rest.moved.skewness, rest.size.skewness) = (0.0, 0.0);
            }
            let plain = plain.draw(1, &draws(n), instructions, &control).unwrap();
            for (some, worst) in [drawn(&values, ONE_BY_ONE, 1, n), plain].into_iter().zip(&mut worst) {
                for (full, some) in [(&full.upper, &some.upper), (&full.lower, &some.lower)] {
                    let (full, some) = (sorted(full.clone()), sorted(some.clone()));
                    for p in LEVELS {
                        // Two samples of n: the variance of the difference of the shares is twice that of one.
                        let at = some[(p * n as f64) as usize];
                        let share = full.partition_point(|&x| x <= at) as f64 / n as f64;
                        let z = (share - p) / (2.0 * p * (1.0 - p) / n as f64).sqrt();
                        *worst = worst.max(z.abs());
                        println!("{name} {p}: {z:.1}");
                    }
                }
            }
        }
        assert!(worst[0] < 4.9 && worst[1] > 4.9, "{worst:?}");
    }

    #[test]
    fn threads_ranges_and_orders_change_no_bit() {
        let (_, numerator, denominator) = designs().swap_remove(4);
        let values = Values { numerator: &numerator, denominator: Some(&denominator), range: (0.0, 1.0) };
        let run = |values: &Values<'_>, replicates: std::ops::Range<u64>, threads, instructions| {
            let draws = Draws { replicates, seed: 9, series: 4 };
            limits(values, 2, &draws, instructions, &Control::with_threads(threads)).unwrap()
        };
        let best = InstructionSet::current().unwrap();
        let whole = run(&values, 0..300, 1, best);
        assert_eq!(whole, run(&values, 0..300, 3, best));
        for instructions in InstructionSet::available() {
            assert_eq!(whole, run(&values, 0..300, 1, instructions));
        }
        let part = run(&values, 77..200, 2, best);
        assert_eq!((&part.upper[..], &part.lower[..]), (&whole.upper[77..200], &whole.lower[77..200]));
        let turned: [Vec<f64>; 2] =
            [numerator.iter().rev().copied().collect(), denominator.iter().rev().copied().collect()];
        let turned = Values { numerator: &turned[0], denominator: Some(&turned[1]), range: (0.0, 1.0) };
        assert_eq!(whole, run(&turned, 0..300, 1, best));
        let other = limits(&values, 3, &Draws { replicates: 0..300, seed: 9, series: 4 }, best, &Control::default());
        assert_ne!(whole, other.unwrap());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wrong = |numerator: &[f64], denominator: Option<&[f64]>, range| {
            let values = Values { numerator, denominator, range };
            let draws = Draws { replicates: 0..1, seed: 1, series: 0 };
            let refused = limits(&values, 0, &draws, InstructionSet::Baseline, &Control::default());
            refused.unwrap_err().to_string()
        };
        assert!(wrong(&[0.5, 1.5], None, (0.0, 1.0)).starts_with("numerator is 1.5; accepted: values from 0 to 1"));
        assert!(wrong(&[f64::NAN], None, (0.0, 1.0)).starts_with("numerator is NaN"));
        assert!(wrong(&[0.5], Some(&[-1.0]), (0.0, 1.0)).starts_with("denominator is -1"));
        assert!(wrong(&[0.5], Some(&[1.0, 1.0]), (0.0, 1.0)).contains("one value for each of 1 units"));
        assert!(wrong(&[0.0], Some(&[0.0]), (0.0, 1.0)).contains("at least 1"));
        assert!(wrong(&[0.5], None, (1.0, 1.0)).starts_with("high is 1; accepted: a finite number above low"));
    }
}
