//! Limits of the mean residual of events whose scores are probabilities but for one shift of all logits.
//!
//! `p_i(beta)` = expit(logit `s_i` + beta), mu(beta) = mean(`p_i(beta)` - `s_i`). With y events the upper limit is mu
//! where P(Y <= y) = U, the lower one mu where P(Y >= y) = 1 - U, U uniform. P is the Poisson-binomial law, summed
//! where that is quick, else the normal law with its skewness and a correction for continuity (Volkova, 1996).

use super::Limits;
use super::curve::Curve;
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::numerics::exponential::sigmoid;
use crate::numerics::laws::{normal_cdf, normal_quantile, quick_normal_quantile};
use crate::numerics::order::ordered_bits;
use crate::numerics::roots::crossing;
use crate::parallel::{Control, fill, map_blocks, sort_by_key};
use crate::random::{Domain, Stream};
use crate::simd::{InstructionSet, LANES, Task};

/// Scores are kept this far from 0 and 1, as in the log loss.
const CLIP: f64 = 1.0 / (1u64 << 52) as f64;
/// Up to so many rows, or rows times events, the law is summed. It is the other law that few events are too few for.
const FEW_ROWS: usize = 200;
const QUICK: usize = 1 << 19;
/// Points of beta on a curve, and of the first one that tells where they go.
const POINTS: usize = 49;
const COARSE: usize = 13;
/// Normal quantile of the levels at the ends of a curve, 4e-11.
const FARTHEST: f64 = 6.5;
/// Shift of logits beyond which all events are sure.
const LARGEST_SHIFT: f64 = 90.0;
const BLOCK: usize = 1_024;

/// Limits of the mean residual of a group with `n_events` events. Groups have numbers of their own by their number; the
/// order of the scores is nothing.
///
/// # Errors
/// [`Error::Argument`] when a score is no probability or there are more events than scores, [`Error::Cancelled`].
pub fn limits(
    scores: &[f64],
    n_events: u64,
    group: u64,
    draws: &Draws,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Limits> {
    let n = scores.len();
    if n == 0 {
        return Err(Error::argument("number of scores", 0, "at least 1"));
    }
    if n_events > n as u64 {
        return Err(Error::argument("n_events", n_events, &format!("at most the number of scores, {n}")));
    }
    if let Some(wrong) = scores.iter().find(|score| !(0.0..=1.0).contains(*score)) {
        return Err(Error::argument("score", wrong, "numbers from 0 to 1"));
    }
    let events = n_events as usize;
    let law = Law::new(scores, instructions, control)?;
    let mean = law.total / n as f64;
    let upper = if events == n { Curve::through(vec![(0.0, 1.0 - mean)]) } else { law.curve(events, control)? };
    let lower = if events == 0 { Curve::through(vec![(0.0, -mean)]) } else { law.curve(events - 1, control)? };
    let mut pairs = vec![(0.0, 0.0); draws.n() as usize];
    fill(
        &mut pairs,
        BLOCK,
        control,
        || (),
        |block, chunk, ()| {
            control.check()?;
            for (pair, replicate) in chunk.iter_mut().zip(draws.replicates.start + (block * BLOCK) as u64..) {
                let uniform = Stream::new(draws.seed, Domain::Melded, draws.series, replicate, group).uniform();
                // P(Y >= y) = 1 - U is P(Y <= y - 1) = U.
                let z = quick_normal_quantile(uniform);
                *pair = (upper.at(z), lower.at(z));
            }
            control.advance(chunk.len() as u64);
            Ok(())
        },
    )?;
    Ok(Limits::of(pairs))
}

/// Work of [`limits`] in nanoseconds.
pub fn work(n_rows: usize, n_events: u64, n_draws: u64) -> u64 {
    let events = usize::try_from(n_events).unwrap_or(usize::MAX);
    let summed = if is_quick(n_rows, events) { n_rows.saturating_mul(few(n_rows, events)) } else { 0 };
    100 * (n_rows as u64) + 200 * (3 * n_rows + summed) as u64 + n_draws.saturating_mul(60)
}

/// Whether the law of `k` events or fewer is summed.
fn is_quick(n: usize, k: usize) -> bool {
    n <= FEW_ROWS || n.saturating_mul(few(n, k)) <= QUICK
}

/// How many numbers of events, or of rows without, are told apart.
fn few(n: usize, k: usize) -> usize {
    (k + 1).min(n.saturating_sub(k))
}

/// Scores in their order.
struct Law {
    logits: Vec<f64>,
    /// Sum of the scores.
    total: f64,
    instructions: InstructionSet,
}

/// What a shift makes of all scores.
struct Shifted {
    /// P(Y <= k).
    share: f64,
    /// Expected number of events.
    mean: f64,
}

impl Law {
    fn new(scores: &[f64], instructions: InstructionSet, control: &Control) -> Result<Self> {
        let mut kept: Vec<f64> = scores.iter().map(|score| score.clamp(CLIP, 1.0 - CLIP)).collect();
        sort_by_key(&mut kept, |score| ordered_bits(*score), control)?;
        let total = kept.iter().sum();
        let logits = kept.iter().map(|&score| libm::log(score) - libm::log1p(-score)).collect();
        Ok(Self { logits, total, instructions })
    }

    fn n(&self) -> usize {
        self.logits.len()
    }

    /// mu by the normal quantile of P(Y <= k), 0 <= k < n.
    fn curve(&self, k: usize, control: &Control) -> Result<Curve> {
        let middle = k as f64 + 0.5;
        let center = crossing(-LARGEST_SHIFT, LARGEST_SHIFT, 0.01, |shift| {
            // A call that is stopped takes no more than its steps.
            if control.check().is_ok() { middle - self.moments(shift)[0] } else { 0.0 }
        });
        control.check()?;
        let step = FARTHEST / self.moments(center)[1].sqrt().max(1e-3);
        let end = |sign: f64| -> Result<f64> {
            let mut away = step;
            while away < 2.0 * LARGEST_SHIFT {
                control.check()?;
                if sign * self.quantile(center + sign * away, k).0 <= -FARTHEST {
                    break;
                }
                away *= 1.4;
            }
            Ok(center + sign * away)
        };
        let (low, high) = (end(-1.0)?, end(1.0)?);
        let at =
            |shifts: Vec<f64>| map_blocks(shifts.len(), 1, control, |range| Ok(self.quantile(shifts[range.start], k)));
        let even = |low: f64, high: f64, n: usize| {
            (0..n).map(move |i| low + (high - low) * i as f64 / (n - 1) as f64).collect::<Vec<f64>>()
        };
        let coarse = even(low, high, COARSE);
        let first = at(coarse.clone())?;
        let shift_at = Curve::through(first.iter().map(|point| point.0).zip(coarse).collect());
        let shifts = even(-FARTHEST, FARTHEST, POINTS).into_iter().map(|z| shift_at.at(z)).collect();
        Ok(Curve::through(at(shifts)?))
    }

    /// The normal quantile of P(Y <= k) after a shift, and the mean residual that it is.
    fn quantile(&self, shift: f64, k: usize) -> (f64, f64) {
        let Shifted { share, mean } = self.shifted(shift, k);
        // Beyond the ends of a curve anyway.
        let share = share.clamp(1e-15, 1.0 - 1e-15);
        (normal_quantile(share), (mean - self.total) / self.n() as f64)
    }

    fn shifted(&self, shift: f64, k: usize) -> Shifted {
        let [mean, variance, third] = self.moments(shift);
        if is_quick(self.n(), k) {
            return Shifted { share: self.summed(shift, k), mean };
        }
        let deviation = variance.sqrt();
        let x = (k as f64 + 0.5 - mean) / deviation;
        let density = libm::exp(-0.5 * x * x) / (2.0 * std::f64::consts::PI).sqrt();
        let skewness = third / (variance * deviation);
        Shifted { share: normal_cdf(x) + skewness * (1.0 - x * x) * density / 6.0, mean }
    }

    /// Mean, variance and third cumulant of the number of events.
    fn moments(&self, shift: f64) -> [f64; 3] {
        self.instructions.run(Moments { logits: &self.logits, shift })
    }

    /// P(Y <= k), row by row; by the rows without an event where these are fewer.
    fn summed(&self, shift: f64, k: usize) -> f64 {
        let n = self.n();
        let mirrored = n - k < k + 1;
        let most = if mirrored { n - k - 1 } else { k };
        let share = self.instructions.run(Recursion { logits: &self.logits, shift, mirrored, most });
        if mirrored { 1.0 - share } else { share }
    }
}

/// P(at most `most` events), or rows without one.
struct Recursion<'a> {
    logits: &'a [f64],
    shift: f64,
    mirrored: bool,
    most: usize,
}

impl Task for Recursion<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { logits, shift, mirrored, most } = self;
        let (mut mass, mut next) = (vec![0.0; most + 1], vec![0.0; most + 1]);
        mass[0] = 1.0;
        for (row, &logit) in logits.iter().enumerate() {
            let event = sigmoid(logit + shift);
            let (p, q) = if mirrored { (1.0 - event, event) } else { (event, 1.0 - event) };
            // After so many rows there are no more events.
            let end = most.min(row + 1);
            next[0] = mass[0] * q;
            for ((next, same), fewer) in next[1..=end].iter_mut().zip(&mass[1..=end]).zip(&mass[..end]) {
                *next = same * q + fewer * p;
            }
            std::mem::swap(&mut mass, &mut next);
        }
        mass.iter().rev().sum()
    }
}

struct Moments<'a> {
    logits: &'a [f64],
    shift: f64,
}

impl Task for Moments<'_> {
    type Output = [f64; 3];

    #[inline(always)]
    fn run(self) -> [f64; 3] {
        let mut sums = [[0.0; LANES]; 3];
        let (whole, rest) = self.logits.as_chunks::<LANES>();
        let mut last = [f64::NEG_INFINITY; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for (logits, here) in whole.iter().map(|logits| (logits, LANES)).chain([(&last, rest.len())]) {
            for lane in 0..LANES {
                let p = if lane < here { sigmoid(logits[lane] + self.shift) } else { 0.0 };
                let pq = p * (1.0 - p);
                sums[0][lane] += p;
                sums[1][lane] += pq;
                sums[2][lane] += pq * (1.0 - 2.0 * p);
            }
        }
        sums.map(|lanes| lanes.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::laws::{binomial_upper_tail, clopper_pearson};

    fn scores(n: usize, mean: f64) -> Vec<f64> {
        let spread = |i: usize| 0.2 + 1.6 * ((i * 7_919) % n) as f64 / n as f64;
        (0..n).map(|i| (mean * spread(i)).min(0.99)).collect()
    }

    fn law(scores: &[f64]) -> Law {
        Law::new(scores, InstructionSet::current().unwrap(), &Control::default()).unwrap()
    }

    fn drawn(scores: &[f64], n_events: u64, n: u64) -> Limits {
        let draws = Draws { replicates: 0..n, seed: 5, series: 0 };
        limits(scores, n_events, 1, &draws, InstructionSet::current().unwrap(), &Control::default()).unwrap()
    }

    fn quantile(mut numbers: Vec<f64>, p: f64) -> f64 {
        numbers.sort_by(f64::total_cmp);
        numbers[(p * numbers.len() as f64) as usize]
    }

    #[test]
    fn work_is_that_of_the_law_and_the_draws() {
        // A law of a hundred numbers of events takes a hundred passes, one of very many is approximated in three.
        assert!(work(1_000, 100, 0) > 20 * work(1_000, 0, 0));
        let (approximated, summed) = (work(100_000, 50_000, 0), work(100_000, 0, 0));
        assert!(summed / 2 < approximated && approximated < summed);
        assert_eq!(work(1_000, 100, 500) - work(1_000, 100, 0), 5 * (work(1_000, 100, 100) - work(1_000, 100, 0)));
        assert!(work(1_000, 100, 100) > work(1_000, 100, 0));
    }

    /// Equal scores: Clopper and Pearson's limits of the rate, less the score.
    #[test]
    fn equal_scores_have_the_limits_of_a_rate() {
        for (events, n) in [(0, 30), (3, 30), (29, 30), (30, 30), (40, 500)] {
            let Limits { upper, lower } = drawn(&vec![0.2; n], events, 200_000);
            for level in [0.9, 0.95, 0.99] {
                let (low, high) = clopper_pearson(events, n as u64, level);
                let tail = (1.0 - level) / 2.0;
                // Monte Carlo error of the quantile: some 4 % of the tail's width.
                let width = 0.04 * (high - low);
                assert!((quantile(upper.clone(), 1.0 - tail) + 0.2 - high).abs() < width, "{events} {n} {level}");
                assert!((quantile(lower.clone(), tail) + 0.2 - low).abs() < width, "{events} {n} {level}");
            }
            assert!(upper.iter().zip(&lower).all(|(upper, lower)| upper >= lower));
        }
    }

    /// The curve against the shift at which the law has the level, searched.
    #[test]
    fn the_curve_is_the_inverse_of_the_law() {
        for (n, mean, k) in
            [(1, 0.3, 0), (40, 0.03, 0), (40, 0.03, 3), (40, 0.4, 38), (199, 0.1, 20), (3_000, 0.3, 900)]
        {
            let law = law(&scores(n, mean));
            let curve = law.curve(k, &Control::default()).unwrap();
            for level in [1e-6, 5e-4, 0.025, 0.5, 0.975, 0.9995, 1.0 - 1e-6] {
                let shift = crossing(-60.0, 60.0, 1e-12, |shift| law.shifted(shift, k).share - level);
                let exact = law.quantile(shift, k).1;
                let width = curve.at(-2.0) - curve.at(2.0);
                let error = (curve.at(quick_normal_quantile(level)) - exact).abs() / width;
                assert!(error < 1e-3, "{n} {k} {level}: {error}");
            }
        }
    }

    /// The sum against the binomial law, and the normal law with skewness against the sum.
    #[test]
    fn the_law_is_that_of_the_number_of_events() {
        let equal = law(&[0.25; 80]);
        for k in [0, 7, 20, 61, 78] {
            // Of k successes or fewer: not of more.
            let exact = 1.0 - binomial_upper_tail(k as u64 + 1, 80, 0.25);
            assert!((equal.summed(0.0, k) - exact).abs() < 1e-12, "{k}");
        }
        let many = law(&scores(4_000, 0.3));
        for k in [1_100, 1_200, 1_240] {
            assert!(!is_quick(4_000, k));
            let (summed, normal) = (many.summed(0.0, k), many.shifted(0.0, k).share);
            assert!((summed - normal).abs() < 2e-4 * summed.min(1.0 - summed) + 1e-6, "{k}: {summed} {normal}");
        }
    }

    #[test]
    fn threads_ranges_and_orders_change_no_bit() {
        let scores = scores(500, 0.1);
        let run = |scores: &[f64], replicates, threads| {
            let draws = Draws { replicates, seed: 9, series: 4 };
            let control = Control::with_threads(threads);
            limits(scores, 31, 2, &draws, InstructionSet::current().unwrap(), &control).unwrap()
        };
        let whole = run(&scores, 0..3_000, 1);
        assert_eq!(whole, run(&scores, 0..3_000, 3));
        let turned: Vec<f64> = scores.iter().rev().copied().collect();
        assert_eq!(whole, run(&turned, 0..3_000, 2));
        assert_eq!(run(&scores, 70..2_000, 2).upper, whole.upper[70..2_000]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wrong = |scores: &[f64], events| {
            let draws = Draws { replicates: 0..3, seed: 5, series: 0 };
            let made = limits(scores, events, 1, &draws, InstructionSet::Baseline, &Control::default());
            made.unwrap_err().to_string()
        };
        assert_eq!(wrong(&[0.5], 2), "n_events is 2; accepted: at most the number of scores, 1");
        assert_eq!(wrong(&[0.5, 1.5], 1), "score is 1.5; accepted: numbers from 0 to 1");
        assert_eq!(wrong(&[], 0), "number of scores is 0; accepted: at least 1");
        assert!(drawn(&[0.0, 1.0], 1, 10).upper.iter().all(|upper| upper.is_finite()));
    }
}
