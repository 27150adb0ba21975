//! One binomial draw in each of sixteen replicates side by side, as those of the hypergeometric law.
//!
//! A lane has the same draw as [`Binomial::sample`] has. What decides there is a sum of log factorials; here it is a
//! polynomial, which is no further from it than [`MARGIN`]. Only a decision that this could turn is left to the sum.

use super::{Binomial, Shape};
use crate::random::Stream;
use crate::random::rejection::{hat_candidate, hat_width, is_surely_accepted};
use crate::simd::{InstructionSet, LANES, Task};

/// Powers of a step in the polynomial.
const DEGREE: usize = 8;
/// From this center on the log ratio of two probabilities is a polynomial.
const LARGE_CENTER: f64 = 1024.0;
/// Largest |e| of [`ln_one_plus`].
const SMALL_EXCESS: f64 = 1.0 / 512.0;
/// More than the polynomial and the sum of log factorials differ by, where a decision can depend on it: each is within
/// 1e-8 of the truth.
const MARGIN: f64 = 1e-7;

/// Draws in every lane; between draws only a buffer: the shape of each law, each number in an array of its own.
#[derive(Debug, PartialEq)]
pub(crate) struct LaneMultinomial {
    instructions: InstructionSet,
    mode: [f64; LANES],
    mean: [f64; LANES],
    variance: [f64; LANES],
    maximum: [f64; LANES],
    series: [[f64; LANES]; DEGREE],
    reach: [f64; LANES],
    /// Whether the branchless way holds for this lane.
    usable: [bool; LANES],
}

/// A candidate in every lane.
#[derive(Debug, PartialEq)]
struct Attempt {
    candidate: [f64; LANES],
    /// ln p(candidate) - ln p(mode) but for [`MARGIN`], NaN where it takes more than the polynomial.
    ratio: [f64; LANES],
    sure: [bool; LANES],
}

impl LaneMultinomial {
    pub(crate) fn new(instructions: InstructionSet) -> Self {
        Self {
            instructions,
            mode: [0.0; LANES],
            mean: [0.0; LANES],
            variance: [0.0; LANES],
            maximum: [0.0; LANES],
            series: [[0.0; LANES]; DEGREE],
            reach: [0.0; LANES],
            usable: [false; LANES],
        }
    }

    /// In every lane what [`multinomial`](super::multinomial) does in one.
    pub(crate) fn multinomial(
        &mut self,
        trials: u64,
        weights: &[f64],
        streams: &mut [Stream; LANES],
        counts: &mut [[u64; LANES]],
    ) {
        let mut remaining: f64 = weights.iter().rev().sum();
        let mut left = [trials; LANES];
        let last = weights.iter().rposition(|&weight| weight > 0.0);
        for (k, (count, &weight)) in counts.iter_mut().zip(weights).enumerate() {
            if weight == 0.0 {
                *count = [0; LANES];
            } else if Some(k) == last {
                *count = left;
            } else {
                self.draw(&left, (weight / remaining).min(1.0), streams, count);
            }
            left.iter_mut().zip(count.iter()).for_each(|(left, count)| *left -= count);
            remaining -= weight;
        }
    }

    /// Draws the number of successes in every lane.
    fn draw(
        &mut self,
        trials: &[u64; LANES],
        probability: f64,
        streams: &mut [Stream; LANES],
        drawn: &mut [u64; LANES],
    ) {
        let laws = trials.map(|trials| Binomial::new(trials, probability));
        let Binomial { rare, mirrored, .. } = laws[0];
        // The first lane speaks for all: about its mode decides whether they can go side by side.
        if trials[0] as f64 * rare <= LARGE_CENTER {
            for lane in 0..LANES {
                drawn[lane] = laws[lane].sample(&mut streams[lane]);
            }
            return;
        }
        self.instructions.run(Prepare { sampler: self, trials, rare });
        let (mut u, mut v) = ([0.5; LANES], [0.5; LANES]);
        let mut pending = self.usable;
        while pending.contains(&true) {
            for lane in 0..LANES {
                if pending[lane] {
                    u[lane] = streams[lane].uniform();
                    v[lane] = streams[lane].uniform();
                }
            }
            let attempt = self.instructions.run(Try { sampler: self, u: &u, v: &v });
            for lane in 0..LANES {
                if pending[lane] && (attempt.sure[lane] || self.accepts(lane, u[lane], &attempt, rare)) {
                    let successes = attempt.candidate[lane] as u64;
                    drawn[lane] = if mirrored { trials[lane] - successes } else { successes };
                    pending[lane] = false;
                }
            }
        }
        for lane in 0..LANES {
            if !self.usable[lane] {
                drawn[lane] = laws[lane].sample(&mut streams[lane]);
            }
        }
    }

    /// Whether a candidate is accepted that an attempt was not sure of.
    #[inline]
    fn accepts(&self, lane: usize, u: f64, attempt: &Attempt, rare: f64) -> bool {
        let (candidate, ratio) = (attempt.candidate[lane], attempt.ratio[lane]);
        if candidate < 0.0 || candidate > self.maximum[lane] {
            return false;
        }
        let bound = 2.0 * libm::log(u);
        if bound <= ratio - MARGIN {
            return true;
        }
        if bound > ratio + MARGIN {
            return false;
        }
        Shape::new(self.maximum[lane], rare).accepts(u, candidate)
    }
}

struct Prepare<'a> {
    sampler: &'a mut LaneMultinomial,
    trials: &'a [u64; LANES],
    rare: f64,
}

impl Task for Prepare<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        prepare(self.sampler, self.trials, self.rare);
    }
}

struct Try<'a> {
    sampler: &'a LaneMultinomial,
    u: &'a [f64; LANES],
    v: &'a [f64; LANES],
}

impl Task for Try<'_> {
    type Output = Attempt;

    #[inline(always)]
    fn run(self) -> Attempt {
        attempt(self.sampler, self.u, self.v)
    }
}

/// ln(1 + e) for |e| below [`SMALL_EXCESS`].
#[inline(always)]
fn ln_one_plus(e: f64) -> f64 {
    e * (1.0 - e * (0.5 - e * (1.0 / 3.0 - e * (0.25 - e * 0.2))))
}

/// The numbers of [`Shape::new`] in every lane, and the log ratio of probabilities in powers of a step from the mode.
///
/// By Stirling's formula, with t = s/c, `ln c! - ln (c - s)! = s ln c + sum_k (1/(2k) - 1/(12c) - c/(k (k - 1))) t^k`,
/// the last part from k = 2 on; a step takes s from the failures and -s from the successes. The parts `s ln c` are
/// nearly the slope of the law: what is left of both is ln(1 + e).
#[inline(always)]
fn prepare(sampler: &mut LaneMultinomial, trials: &[u64; LANES], rare: f64) {
    let common = 1.0 - rare;
    for lane in 0..LANES {
        let trials = trials[lane] as f64;
        let mode = ((trials + 1.0) * rare).floor();
        let failures = trials - mode;
        let below = failures * rare;
        let excess = (mode * common - below) / below;
        let (of_successes, of_failures) = (-1.0 / mode, 1.0 / failures);
        let (mut first, mut second) = (1.0, 1.0);
        for k in 0..DEGREE {
            let power = k as f64 + 1.0;
            let (main, half) = if k == 0 { (0.0, 0.5) } else { (1.0 / (power * (power - 1.0)), 0.5 / power) };
            // c t^k of the successes is -(t^(k - 1)), with t = -1/c.
            let (before_first, before_second) = (-first, second);
            first *= of_successes;
            second *= of_failures;
            let of_first = first * (half + of_successes * (1.0 / 12.0)) - before_first * main;
            let of_second = second * (half - of_failures * (1.0 / 12.0)) - before_second * main;
            sampler.series[k][lane] = of_first + of_second;
        }
        sampler.series[0][lane] -= ln_one_plus(excess);
        sampler.mode[lane] = mode;
        sampler.mean[lane] = trials * rare;
        sampler.variance[lane] = trials * rare * common;
        sampler.maximum[lane] = trials;
        sampler.reach[lane] = mode.min(failures) * (1.0 / 16.0);
        sampler.usable[lane] = mode.min(failures) >= LARGE_CENTER && excess.abs() < SMALL_EXCESS;
    }
}

#[inline(always)]
fn attempt(sampler: &LaneMultinomial, u: &[f64; LANES], v: &[f64; LANES]) -> Attempt {
    let mut attempt = Attempt { candidate: [0.0; LANES], ratio: [0.0; LANES], sure: [false; LANES] };
    for lane in 0..LANES {
        let width = hat_width(sampler.variance[lane]);
        let candidate = hat_candidate(sampler.mean[lane], width, u[lane], v[lane]);
        let step = candidate - sampler.mode[lane];
        let mut ratio = 0.0;
        for k in (0..DEGREE).rev() {
            ratio = ratio * step + sampler.series[k][lane];
        }
        let ratio = ratio * step;
        let inside = candidate >= 0.0 && candidate <= sampler.maximum[lane];
        let near = step.abs() <= sampler.reach[lane];
        attempt.candidate[lane] = candidate;
        attempt.ratio[lane] = if near { ratio } else { f64::NAN };
        attempt.sure[lane] = inside && near && is_surely_accepted(u[lane], ratio - MARGIN);
    }
    attempt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, multinomial};

    const SIZES: [u64; 7] = [0, 7, 300, 5_000, 40_000, 1_000_000, 1_000_000_000_000];

    /// Few and many trials, rare and common classes, classes that are empty: the lanes draw what each would alone, and
    /// leave their streams at the same word.
    #[test]
    fn lanes_draw_what_they_would_draw_alone() {
        let all_weights: [&[f64]; 6] = [
            &[0.3, 0.2, 0.5],
            &[0.9, 0.05, 0.05],
            &[0.0, 40.0, 0.0, 17.0, 3.0, 0.0],
            &[1e-3, 0.4, 1e-6, 0.6],
            &[1.0],
            &[0.5, 0.5],
        ];
        for instructions in InstructionSet::available() {
            let mut sampler = LaneMultinomial::new(instructions);
            for (size, weights) in SIZES.into_iter().flat_map(|size| all_weights.map(|weights| (size, weights))) {
                for round in 0..100 {
                    let stream = |lane| Stream::new(3, Domain::Simulation, size, round, lane as u64);
                    let mut streams: [Stream; LANES] = std::array::from_fn(stream);
                    let mut drawn = vec![[0; LANES]; weights.len()];
                    sampler.multinomial(size, weights, &mut streams, &mut drawn);
                    for lane in 0..LANES {
                        let (mut alone, mut counts) = (stream(lane), vec![0; weights.len()]);
                        multinomial(&mut alone, size, weights, &mut counts);
                        let here: Vec<u64> = drawn.iter().map(|count| count[lane]).collect();
                        assert_eq!(here, counts, "{size} {weights:?}");
                        assert_eq!(streams[lane].next_word(), alone.next_word(), "{size} {weights:?}");
                    }
                }
            }
        }
    }

    /// The polynomial is as near to the sum of log factorials as [`MARGIN`] asks, with room to spare.
    #[test]
    fn the_polynomial_is_the_sum_of_log_factorials() {
        let mut sampler = LaneMultinomial::new(InstructionSet::Baseline);
        for (trials, rare) in [(2_100, 0.5), (9_000, 0.2), (1_000_000, 0.4), (1_000_000_000_000, 1e-6)] {
            prepare(&mut sampler, &[trials; LANES], rare);
            assert!(sampler.usable[0]);
            let shape = Shape::new(trials as f64, rare);
            let deviation = sampler.variance[0].sqrt();
            for lane in 1..=60 {
                let step = (f64::from(lane - 30) * 0.2 * deviation).round();
                if step.abs() > sampler.reach[0] {
                    continue;
                }
                let sum = shape.ln_ratio(sampler.mode[0] + step);
                let polynomial = (0..DEGREE).rev().fold(0.0, |sum, k| sum * step + sampler.series[k][0]) * step;
                assert!((polynomial - sum).abs() < 0.1 * MARGIN, "{trials} {step}: {polynomial} {sum}");
            }
        }
    }

    /// The same code for another instruction set gives the same bits.
    #[test]
    fn instruction_sets_do_not_matter() {
        let trials = std::array::from_fn(|lane| 400_000 + 50_001 * lane as u64);
        let u = std::array::from_fn(|lane| 0.03 + 0.06 * lane as f64);
        let v = std::array::from_fn(|lane| 0.4 + 0.01 * lane as f64);
        let run = |instructions: InstructionSet| {
            let mut sampler = LaneMultinomial::new(instructions);
            instructions.run(Prepare { sampler: &mut sampler, trials: &trials, rare: 0.3 });
            let attempt = instructions.run(Try { sampler: &sampler, u: &u, v: &v });
            (LaneMultinomial { instructions: InstructionSet::Baseline, ..sampler }, attempt)
        };
        let expected = run(InstructionSet::Baseline);
        assert!(expected.0.usable == [true; LANES] && expected.1.sure.contains(&true));
        for instructions in InstructionSet::available() {
            assert_eq!(run(instructions), expected, "{instructions:?}");
        }
    }
}
