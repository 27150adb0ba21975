//! One multinomial draw in each of sixteen replicates side by side.
//!
//! A lane has the same draw as [`Binomial::sample`] has, and takes the same words of its stream. Most candidates are
//! decided by a polynomial that misses the exact ratio of two probabilities by less than a margin; the few in between
//! are left to the exact one.

use super::{Binomial, Rejection, shares};
use crate::random::Stream;
use crate::random::rejection::{hat_candidate, hat_width};
use crate::simd::{InstructionSet, LANES, Task};

const DEGREE: usize = 8;
/// From this many expected successes and failures on the ratio of two probabilities is close to a polynomial of the
/// step from the mode, for steps up to a quarter of either.
const LARGE_CENTER: f64 = 64.0;
const REACH: f64 = 0.25;
const MOST_TRIALS: u64 = 1 << 40;
/// The polynomial misses ln(p(x)/p(mode)) = r by less than a tenth of `MARGIN` (1 + |r|).
const MARGIN: f64 = 1e-4;

/// Multinomial draws with the same weights in every lane; between draws only a buffer.
#[derive(Debug)]
pub(crate) struct LaneMultinomial {
    instructions: InstructionSet,
    trials: u64,
    shares: Vec<f64>,
    lanes: Lanes,
}

/// A [`Rejection`] per lane, each number in an array of its own.
#[derive(Debug, Clone, PartialEq)]
struct Lanes {
    trials: [f64; LANES],
    mode: [f64; LANES],
    mean: [f64; LANES],
    width: [f64; LANES],
    reach: [f64; LANES],
    /// ln p(mode + s) - ln p(mode) in powers of s.
    series: [[f64; LANES]; DEGREE],
    usable: [bool; LANES],
}

/// A candidate in every lane.
#[derive(Debug, Clone, PartialEq)]
struct Attempt {
    candidate: [f64; LANES],
    /// Between which ln(p(candidate)/p(mode)) lies; all numbers beyond the reach of the polynomial.
    low: [f64; LANES],
    high: [f64; LANES],
    accepted: [bool; LANES],
    refused: [bool; LANES],
}

impl LaneMultinomial {
    /// See [`super::multinomial`].
    pub(crate) fn new(instructions: InstructionSet, trials: u64, weights: &[f64]) -> Self {
        let zeros = [0.0; LANES];
        Self {
            instructions,
            trials,
            shares: shares(weights),
            lanes: Lanes {
                trials: zeros,
                mode: zeros,
                mean: zeros,
                width: zeros,
                reach: zeros,
                series: [zeros; DEGREE],
                usable: [false; LANES],
            },
        }
    }

    /// `counts[k]` becomes the number in bin k of every lane.
    pub(crate) fn draw(&mut self, streams: &mut [Stream; LANES], counts: &mut [[u64; LANES]]) {
        let mut left = [self.trials; LANES];
        for (k, drawn) in counts.iter_mut().enumerate() {
            self.draw_binomial(&left, self.shares[k], streams, drawn);
            left.iter_mut().zip(drawn.iter()).for_each(|(left, drawn)| *left -= drawn);
        }
    }

    fn draw_binomial(
        &mut self,
        trials: &[u64; LANES],
        share: f64,
        streams: &mut [Stream; LANES],
        drawn: &mut [u64; LANES],
    ) {
        let laws = trials.map(|trials| Binomial::new(trials, share));
        // The first lane speaks for all: whether it is worth setting them up side by side.
        let mut pending = [false; LANES];
        if laws[0].trials as f64 * laws[0].rare >= LARGE_CENTER {
            self.instructions.run(Prepare { lanes: &mut self.lanes, laws: &laws });
            pending = self.lanes.usable;
        }
        for lane in 0..LANES {
            if !pending[lane] {
                drawn[lane] = laws[lane].sample(&mut streams[lane]);
            }
        }
        let (mut u, mut v) = ([0.5; LANES], [0.5; LANES]);
        while pending.contains(&true) {
            for lane in 0..LANES {
                if pending[lane] {
                    u[lane] = streams[lane].uniform();
                    v[lane] = streams[lane].uniform();
                }
            }
            let attempt = self.instructions.run(Try { lanes: &self.lanes, u: &u, v: &v });
            for lane in 0..LANES {
                if pending[lane] && (attempt.accepted[lane] || attempt.accepts(lane, u[lane], &laws[lane])) {
                    drawn[lane] = laws[lane].unmirror(attempt.candidate[lane] as u64);
                    pending[lane] = false;
                }
            }
        }
    }
}

impl Attempt {
    /// Whether a candidate is accepted, in a lane where it is not seen to be.
    #[inline]
    fn accepts(&self, lane: usize, u: f64, law: &Binomial) -> bool {
        if self.refused[lane] {
            return false;
        }
        let bound = 2.0 * libm::log(u);
        if bound <= self.low[lane] || bound > self.high[lane] {
            return bound <= self.low[lane];
        }
        Rejection::new(law).accepts(u, self.candidate[lane])
    }
}

struct Prepare<'a> {
    lanes: &'a mut Lanes,
    laws: &'a [Binomial; LANES],
}

impl Task for Prepare<'_> {
    type Output = ();

    /// [`Rejection::new`] in every lane, and the polynomial.
    ///
    /// Stirling's formula of ln c! - ln (c - cs)! less s ln c, with t = s/c, has in t^k the coefficient
    /// `-c/(k(k - 1)) + 1/(2k) - 1/(12c)`, the first part from k = 2 on. Successes c = mode go by -s, failures by s.
    #[inline(always)]
    fn run(self) {
        let Self { lanes, laws } = self;
        for lane in 0..LANES {
            let (trials, p) = (laws[lane].trials as f64, laws[lane].rare);
            let q = 1.0 - p;
            let mode = ((trials + 1.0) * p).floor();
            let failures = trials - mode;
            let mean = trials * p;
            let inverse = [-1.0 / mode, 1.0 / failures];
            let mut power = [1.0; 2];
            for k in 0..DEGREE {
                let order = k as f64 + 1.0;
                let main = if k == 0 { 0.0 } else { 1.0 / (order * (order - 1.0)) };
                let mut sum = 0.0;
                for side in 0..2 {
                    // power = (1/c)^k with its sign, and c power = sign (1/c)^(k - 1)
                    let sign = [-1.0, 1.0][side];
                    let lower = power[side] * sign;
                    power[side] *= inverse[side];
                    sum += power[side] * (0.5 / order - inverse[side] * sign * (1.0 / 12.0)) - lower * main;
                }
                lanes.series[k][lane] = sum;
            }
            // ln((mode q) / (failures p)), which is close to 0.
            let excess = (mode - mean) / (failures * p);
            lanes.series[0][lane] -=
                excess * (1.0 - excess * (0.5 - excess * (1.0 / 3.0 - excess * (0.25 - excess * 0.2))));
            lanes.trials[lane] = trials;
            lanes.mode[lane] = mode;
            lanes.mean[lane] = mean;
            lanes.width[lane] = hat_width(mean * q);
            lanes.reach[lane] = REACH * mode.min(failures);
            lanes.usable[lane] = mode.min(failures) >= LARGE_CENTER && laws[lane].trials <= MOST_TRIALS;
        }
    }
}

struct Try<'a> {
    lanes: &'a Lanes,
    u: &'a [f64; LANES],
    v: &'a [f64; LANES],
}

impl Task for Try<'_> {
    type Output = Attempt;

    #[inline(always)]
    fn run(self) -> Attempt {
        let Self { lanes, u, v } = self;
        let (zeros, no) = ([0.0; LANES], [false; LANES]);
        let mut attempt = Attempt { candidate: zeros, low: zeros, high: zeros, accepted: no, refused: no };
        for lane in 0..LANES {
            let u = u[lane];
            let candidate = hat_candidate(lanes.mean[lane], lanes.width[lane], u, v[lane]);
            let step = candidate - lanes.mode[lane];
            let mut ratio = 0.0;
            for k in (0..DEGREE).rev() {
                ratio = (ratio + lanes.series[k][lane]) * step;
            }
            let inside = candidate >= 0.0 && candidate <= lanes.trials[lane];
            let near = step.abs() <= lanes.reach[lane];
            let margin = if near { MARGIN * (1.0 + ratio.abs()) } else { f64::INFINITY };
            let ratio = if near { ratio } else { 0.0 };
            let (low, high) = (ratio - margin, ratio + margin);
            // 2 ln u lies between u - 1/u and this.
            let above = u * (4.0 - u) - 3.0;
            attempt.candidate[lane] = candidate;
            attempt.low[lane] = low;
            attempt.high[lane] = high;
            attempt.accepted[lane] = inside && above <= low;
            attempt.refused[lane] = !inside || (above > high && u * (u - high) >= 1.0);
        }
        attempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, multinomial};

    const SIZES: [u64; 9] = [0, 3, 40, 150, 400, 5_000, 100_000, 30_000_000, 700_000_000_000];
    const WEIGHTS: [&[f64]; 6] = [
        &[0.3, 0.6, 0.1],
        &[0.0, 5.0, 0.0, 4.9, 0.1],
        &[900.0, 1.0, 99.0],
        &[1.0, 1.0, 0.0],
        &[7.0],
        &[1e-3, 0.499, 0.5],
    ];

    /// The lanes draw what each would alone, and leave their streams at the same word.
    #[test]
    fn lanes_draw_what_they_would_draw_alone() {
        for instructions in InstructionSet::available() {
            for (law, (size, weights)) in
                SIZES.iter().flat_map(|&size| WEIGHTS.iter().map(move |&weights| (size, weights))).enumerate()
            {
                let mut lanes = LaneMultinomial::new(instructions, size, weights);
                for round in 0..150 {
                    let stream = |lane| Stream::new(3, Domain::Simulation, law as u64, lane as u64, round);
                    let mut streams: [Stream; LANES] = std::array::from_fn(stream);
                    let mut alone = streams.clone();
                    let mut drawn = vec![[0; LANES]; weights.len()];
                    lanes.draw(&mut streams, &mut drawn);
                    for lane in 0..LANES {
                        let mut counts = vec![0; weights.len()];
                        multinomial(&mut alone[lane], size, weights, &mut counts);
                        assert_eq!(
                            drawn.iter().map(|drawn| drawn[lane]).collect::<Vec<_>>(),
                            counts,
                            "{size} {weights:?}"
                        );
                        assert_eq!(streams[lane].next_word(), alone[lane].next_word());
                    }
                }
            }
        }
    }

    /// The exact ratio lies well between the bounds, out to where they end; so no decision can differ.
    #[test]
    fn the_polynomial_stays_within_its_margin() {
        for trials in [130, 131, 1_000, 2_047, 2_500, 90_000, 1_000_000_000, MOST_TRIALS] {
            for share in [0.5, 0.499, 0.3, 0.07, 1e-3, 1e-6] {
                let law = Binomial::new(trials, share);
                let laws = [law; LANES];
                let mut lanes = LaneMultinomial::new(InstructionSet::Baseline, trials, &[1.0]).lanes;
                Prepare { lanes: &mut lanes, laws: &laws }.run();
                if !lanes.usable[0] {
                    continue;
                }
                let exact = Rejection::new(&law);
                for part in -400..=400 {
                    let step = (lanes.reach[0] * (f64::from(part) / 400.0).powi(3)).round();
                    // u = 1 and v = 1/2 + s/width lead to the candidate mode + s.
                    let v = 0.5 + (lanes.mode[0] + step - lanes.mean[0]) / lanes.width[0];
                    let attempt = Try { lanes: &lanes, u: &[1.0; LANES], v: &[v; LANES] }.run();
                    if attempt.low[0] == f64::NEG_INFINITY {
                        continue;
                    }
                    let ratio = exact.ln_ratio(attempt.candidate[0]);
                    let margin = (attempt.high[0] - attempt.low[0]) / 2.0;
                    let miss = (ratio - f64::midpoint(attempt.high[0], attempt.low[0])).abs();
                    assert!(miss < 0.1 * margin, "{trials} {share} {step}: {miss} {margin}");
                }
            }
        }
    }
}
