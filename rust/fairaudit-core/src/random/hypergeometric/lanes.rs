//! One hypergeometric draw in each of sixteen replicates side by side.
//!
//! The parameters differ from lane to lane, by what was drawn before, but large counts lead
//! every lane the same way: set up the rejection sampler, try candidates. These steps are
//! written without branches, in the same arithmetic as those of one draw, and each lane takes
//! the words of its own stream. So a lane has the same draw as [`Hypergeometric::sample`] has.

use super::{
    DEGREE, EXACT_PRODUCT, Hypergeometric, LARGE_CENTER, Rejection, SMALL_EXCESS, expansion, ln_one_plus, moments,
    polynomial,
};
use crate::random::Stream;
use crate::random::rejection::{hat_candidate, hat_width, is_accepted, is_surely_accepted};
use crate::simd::{InstructionSet, LANES, Task};

/// A draw of one lane, certain ones included.
#[inline(never)] // one body for the two loops that call it, with the sampler a part of it
fn one(population: u64, marked: u64, draws: u64, stream: &mut Stream) -> u64 {
    if draws == 0 || marked == 0 {
        0
    } else if marked == population {
        draws
    } else {
        Hypergeometric::new(population, marked, draws).sample(stream)
    }
}

/// Draws in every lane; between draws only a buffer: a [`Rejection`] per lane, each number in an array of its own.
#[derive(Debug, PartialEq)]
pub(crate) struct LaneSampler {
    instructions: InstructionSet,
    mode: [f64; LANES],
    mean: [f64; LANES],
    variance: [f64; LANES],
    maximum: [f64; LANES],
    centers: [[f64; LANES]; 4],
    series: [[f64; LANES]; DEGREE],
    reach: [f64; LANES],
    /// The draw is `offset` + `sign` * (draw of the reduced law).
    offset: [f64; LANES],
    sign: [f64; LANES],
    /// Whether the branchless way holds for this lane.
    usable: [bool; LANES],
}

/// A candidate in every lane.
#[derive(Debug, PartialEq)]
struct Attempt {
    candidate: [f64; LANES],
    /// ln p(candidate) - ln p(mode), NaN where it takes more than the polynomial.
    ratio: [f64; LANES],
    sure: [bool; LANES],
}

impl LaneSampler {
    pub(crate) fn new(instructions: InstructionSet) -> Self {
        Self {
            instructions,
            mode: [0.0; LANES],
            mean: [0.0; LANES],
            variance: [0.0; LANES],
            maximum: [0.0; LANES],
            centers: [[0.0; LANES]; 4],
            series: [[0.0; LANES]; DEGREE],
            reach: [0.0; LANES],
            offset: [0.0; LANES],
            sign: [0.0; LANES],
            usable: [false; LANES],
        }
    }

    /// Draws, in every lane, how many of `marked` items are among `draws` of `population`.
    pub(crate) fn draw(
        &mut self,
        population: &[u64; LANES],
        marked: &[u64; LANES],
        draws: &[u64; LANES],
        streams: &mut [Stream; LANES],
        drawn: &mut [u64; LANES],
    ) {
        // The first lane speaks for all: about its mode decides whether they can go side by side.
        let few = |part: u64| part.min(population[0] - part) as f64;
        let together = few(marked[0]) * few(draws[0]) > LARGE_CENTER * population[0] as f64;
        if !together {
            for lane in 0..LANES {
                drawn[lane] = one(population[lane], marked[lane], draws[lane], &mut streams[lane]);
            }
            return;
        }
        self.prepare(population, marked, draws);
        let (mut u, mut v) = ([0.5; LANES], [0.5; LANES]);
        let mut pending = self.usable;
        while pending.contains(&true) {
            for lane in 0..LANES {
                if pending[lane] {
                    u[lane] = streams[lane].uniform();
                    v[lane] = streams[lane].uniform();
                }
            }
            let attempt = self.attempt(&u, &v);
            for lane in 0..LANES {
                if pending[lane] && (attempt.sure[lane] || self.accepts(lane, u[lane], &attempt)) {
                    drawn[lane] = (self.offset[lane] + self.sign[lane] * attempt.candidate[lane]) as u64;
                    pending[lane] = false;
                }
            }
        }
        for lane in 0..LANES {
            if !self.usable[lane] {
                drawn[lane] = one(population[lane], marked[lane], draws[lane], &mut streams[lane]);
            }
        }
    }

    fn prepare(&mut self, population: &[u64; LANES], marked: &[u64; LANES], draws: &[u64; LANES]) {
        self.instructions.run(Prepare { samplers: self, population, marked, draws });
    }

    fn attempt(&self, u: &[f64; LANES], v: &[f64; LANES]) -> Attempt {
        self.instructions.run(Try { samplers: self, u, v })
    }

    /// Whether a candidate is accepted that [`attempt`] was not sure of.
    #[inline]
    fn accepts(&self, lane: usize, u: f64, attempt: &Attempt) -> bool {
        let candidate = attempt.candidate[lane];
        if candidate < 0.0 || candidate > self.maximum[lane] {
            return false;
        }
        let ratio = attempt.ratio[lane];
        let ratio = if ratio.is_nan() { self.ln_ratio(lane, candidate) } else { ratio };
        is_surely_accepted(u, ratio) || is_accepted(u, ratio)
    }

    /// ln p(candidate) - ln p(mode) beyond the reach of the polynomial.
    #[cold]
    fn ln_ratio(&self, lane: usize, candidate: f64) -> f64 {
        let sampler = Rejection {
            mode: self.mode[lane],
            mean: self.mean[lane],
            variance: self.variance[lane],
            maximum: self.maximum[lane],
            centers: self.centers.map(|center| center[lane]),
            series: self.series.map(|coefficient| coefficient[lane]),
            reach: self.reach[lane],
        };
        sampler.ln_ratio(candidate)
    }
}

struct Prepare<'a> {
    samplers: &'a mut LaneSampler,
    population: &'a [u64; LANES],
    marked: &'a [u64; LANES],
    draws: &'a [u64; LANES],
}

impl Task for Prepare<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        prepare(self.samplers, self.population, self.marked, self.draws);
    }
}

struct Try<'a> {
    samplers: &'a LaneSampler,
    u: &'a [f64; LANES],
    v: &'a [f64; LANES],
}

impl Task for Try<'_> {
    type Output = Attempt;

    #[inline(always)]
    fn run(self) -> Attempt {
        attempt(self.samplers, self.u, self.v)
    }
}

/// [`Hypergeometric::new`] and [`Rejection::new`] in every lane, in whole numbers below 2^53.
#[inline(always)]
#[allow(clippy::inline_always)] // compiled for several targets
fn prepare(samplers: &mut LaneSampler, population: &[u64; LANES], marked: &[u64; LANES], draws: &[u64; LANES]) {
    for lane in 0..LANES {
        let [population, marked, draws] = [population[lane], marked[lane], draws[lane]].map(|count| count as f64);
        let (unmarked, left) = (population - marked, population - draws);
        let (few_marked, few_draws) = (marked.min(unmarked), draws.min(left));
        let (rare, small) = (marked <= unmarked, draws <= left);
        let base = if small { draws } else { marked };
        samplers.offset[lane] = if rare == small { if rare { 0.0 } else { marked - left } } else { base };
        samplers.sign[lane] = if rare == small { 1.0 } else { -1.0 };

        let (draws, marked) = (few_marked.min(few_draws), few_marked.max(few_draws));
        let product = (draws + 1.0) * (marked + 1.0);
        // Both are whole and below 2^52: the quotient does not round up to a whole number.
        let mode = (product / (population + 2.0)).floor();
        let (mean, variance) = moments(population, marked, draws);
        let others = population - marked - draws;
        let centers = [mode, others + mode, marked - mode, draws - mode];
        let smallest = centers[0].min(centers[1]).min(centers[2]).min(centers[3]);
        let below = centers[2] * centers[3];
        let excess = (centers[0] * centers[1] - below) / below;
        let mut series = expansion(centers);
        series[0] -= ln_one_plus(excess);

        samplers.mode[lane] = mode;
        samplers.mean[lane] = mean;
        samplers.variance[lane] = variance;
        samplers.maximum[lane] = draws;
        for i in 0..4 {
            samplers.centers[i][lane] = centers[i];
        }
        for k in 0..DEGREE {
            samplers.series[k][lane] = series[k];
        }
        samplers.reach[lane] = smallest * (1.0 / 16.0);
        samplers.usable[lane] =
            smallest >= LARGE_CENTER && product < EXACT_PRODUCT && below < EXACT_PRODUCT && excess.abs() < SMALL_EXCESS;
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn attempt(samplers: &LaneSampler, u: &[f64; LANES], v: &[f64; LANES]) -> Attempt {
    let mut attempt = Attempt { candidate: [0.0; LANES], ratio: [0.0; LANES], sure: [false; LANES] };
    for lane in 0..LANES {
        let width = hat_width(samplers.variance[lane]);
        let candidate = hat_candidate(samplers.mean[lane], width, u[lane], v[lane]);
        let step = candidate - samplers.mode[lane];
        let mut series = [0.0; DEGREE];
        for k in 0..DEGREE {
            series[k] = samplers.series[k][lane];
        }
        let ratio = polynomial(&series, step);
        let inside = candidate >= 0.0 && candidate <= samplers.maximum[lane];
        let near = step.abs() <= samplers.reach[lane];
        attempt.candidate[lane] = candidate;
        attempt.ratio[lane] = if near { ratio } else { f64::NAN };
        attempt.sure[lane] = inside && near && is_surely_accepted(u[lane], ratio);
    }
    attempt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Domain;

    /// Every kind of law, also mixed over the lanes: the lanes draw what each would alone, and
    /// leave their streams at the same word.
    #[test]
    fn lanes_draw_what_they_would_draw_alone() {
        InstructionSet::available().into_iter().for_each(lanes_draw_as_if_alone);
    }

    fn lanes_draw_as_if_alone(instructions: InstructionSet) {
        let laws: [(u64, u64, u64); 12] = [
            (1_000_000, 400_000, 300_000),
            (1_000_000, 400_000, 700_000),
            (1_000_000, 600_000, 300_000),
            (1_000_000, 600_000, 700_000),
            (20_000, 9_000, 8_000),
            (100_000_000, 70_000, 20_000_000),
            (1_000_000_000_000, 400_000_000_000, 500_000_000_000),
            (5_000, 2_500, 2_000),
            (50, 20, 9),
            (7, 7, 3),
            (7, 0, 3),
            (7, 3, 0),
        ];
        for first in 0..laws.len() {
            for spread in [0, 1, 5, 997] {
                let law = |lane: usize| {
                    let (population, marked, draws) =
                        laws[if spread == 5 { (first + lane) % laws.len() } else { first }];
                    let less = (spread * lane as u64).min(marked / 2).min(draws / 2);
                    (population, marked - less, draws - less / 2)
                };
                let stream = |lane| Stream::new(3, Domain::Simulation, first as u64, lane as u64, spread);
                for round in 0..200 {
                    let mut streams: [Stream; LANES] = std::array::from_fn(|lane| stream(lane + round * LANES));
                    let mut alone = streams.clone();
                    let mut drawn = [0; LANES];
                    LaneSampler::new(instructions).draw(
                        &std::array::from_fn(|lane| law(lane).0),
                        &std::array::from_fn(|lane| law(lane).1),
                        &std::array::from_fn(|lane| law(lane).2),
                        &mut streams,
                        &mut drawn,
                    );
                    for lane in 0..LANES {
                        let (population, marked, draws) = law(lane);
                        assert_eq!(drawn[lane], one(population, marked, draws, &mut alone[lane]), "{:?}", law(lane));
                        assert_eq!(streams[lane].next_word(), alone[lane].next_word());
                    }
                }
            }
        }
    }

    /// The same code for another instruction set gives the same bits.
    #[test]
    fn instruction_sets_do_not_matter() {
        let population = [1_000_000; LANES];
        let marked = std::array::from_fn(|lane| 300_000 + 30_000 * lane as u64);
        let draws = std::array::from_fn(|lane| 800_000 - 50_001 * lane as u64);
        let u = std::array::from_fn(|lane| 0.03 + 0.06 * lane as f64);
        let v = std::array::from_fn(|lane| 0.4 + 0.01 * lane as f64);
        let mut baseline = LaneSampler::new(InstructionSet::Baseline);
        baseline.prepare(&population, &marked, &draws);
        let expected = baseline.attempt(&u, &v);
        assert!(baseline.usable == [true; LANES] && expected.sure.contains(&true));
        for instructions in InstructionSet::available() {
            let mut samplers = LaneSampler::new(instructions);
            samplers.prepare(&population, &marked, &draws);
            assert_eq!(samplers.attempt(&u, &v), expected, "{instructions:?}");
            assert_eq!(
                LaneSampler { instructions: InstructionSet::Baseline, ..samplers },
                baseline,
                "{instructions:?}"
            );
        }
    }
}
