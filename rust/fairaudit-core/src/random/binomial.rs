//! Binomial and multinomial draws.

mod lanes;

pub(crate) use lanes::LaneMultinomial;

use super::Stream;
use super::rejection::{FactorialTerm, is_accepted, is_surely_accepted, ratio_of_uniforms};

/// Below this mean the law is inverted by adding up probabilities from 0.
const INVERSION_MEAN: f64 = 10.0;

/// A binomial law: the number of successes in `trials` independent trials.
///
/// ```
/// use fairaudit_core::random::{Binomial, Domain, Stream};
/// let mut stream = Stream::new(1, Domain::Simulation, 0, 0, 0);
/// assert!(Binomial::new(10, 0.3).sample(&mut stream) <= 10);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Binomial {
    trials: u64,
    /// The smaller of p and 1 - p.
    rare: f64,
    mirrored: bool,
}

impl Binomial {
    /// The law for a success probability in [0, 1]; correct up to 10^12 trials.
    #[inline]
    pub fn new(trials: u64, probability: f64) -> Self {
        debug_assert!((0.0..=1.0).contains(&probability));
        let mirrored = probability > 0.5;
        Self { trials, rare: if mirrored { 1.0 - probability } else { probability }, mirrored }
    }

    /// One draw.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        let x = if self.rare == 0.0 || self.trials == 0 {
            0
        } else if self.trials as f64 * self.rare < INVERSION_MEAN {
            self.invert(stream)
        } else {
            Rejection::new(self).sample(stream)
        };
        self.unmirror(x)
    }

    /// Successes, of a draw of the rarer outcome.
    #[inline]
    fn unmirror(&self, x: u64) -> u64 {
        if self.mirrored { self.trials - x } else { x }
    }

    fn invert(&self, stream: &mut Stream) -> u64 {
        let trials = self.trials as f64;
        let odds = self.rare / (1.0 - self.rare);
        let none = libm::exp(trials * libm::log1p(-self.rare));
        loop {
            let mut left = stream.uniform();
            let mut probability = none;
            let mut x = 0u64;
            // With a mean below 10 nothing that can be drawn lies beyond 150; what rounding
            // leaves over there is drawn again.
            while x <= self.trials && x < 150 {
                if left < probability {
                    return x;
                }
                left -= probability;
                probability *= odds * (trials - x as f64) / (x as f64 + 1.0);
                x += 1;
            }
        }
    }
}

/// The rejection sampler of the rarer outcome, with everything that depends on the parameters alone.
struct Rejection {
    trials: f64,
    p: f64,
    mode: f64,
    failures: f64,
    slope: f64,
    terms: [FactorialTerm; 2],
}

impl Rejection {
    #[inline]
    fn new(law: &Binomial) -> Self {
        let (trials, p) = (law.trials as f64, law.rare);
        let q = 1.0 - p;
        let mode = ((trials + 1.0) * p).floor();
        let failures = trials - mode;
        // p(x) is proportional to p^x q^(n-x) / (x! (n-x)!); the linear parts together:
        let slope = libm::log((mode * q) / (failures * p));
        Self { trials, p, mode, failures, slope, terms: [mode, failures].map(FactorialTerm::new) }
    }

    /// ln p(x) - ln p(mode).
    #[inline]
    fn ln_ratio(&self, x: f64) -> f64 {
        let step = x - self.mode;
        -step * self.slope + self.terms[0].curvature(x) + self.terms[1].curvature(self.failures - step)
    }

    /// Whether a value within 0 and the number of trials is accepted.
    #[cold]
    fn accepts(&self, u: f64, x: f64) -> bool {
        let ratio = self.ln_ratio(x);
        is_surely_accepted(u, ratio) || is_accepted(u, ratio)
    }

    #[inline]
    fn sample(&self, stream: &mut Stream) -> u64 {
        let mean = self.trials * self.p;
        ratio_of_uniforms(stream, mean, mean * (1.0 - self.p), self.trials, |x| self.ln_ratio(x)) as u64
    }
}

/// Throws `trials` balls into bins with the given weights (not all 0); `counts[k]` becomes the
/// number in bin k. One binomial draw per bin but the last.
pub fn multinomial(stream: &mut Stream, trials: u64, weights: &[f64], counts: &mut [u64]) {
    let mut left = trials;
    for (count, share) in counts.iter_mut().zip(shares(weights)) {
        *count = Binomial::new(left, share).sample(stream);
        left -= *count;
    }
}

/// The probability of each bin among those from it on: 1 of the last that can be hit.
fn shares(weights: &[f64]) -> Vec<f64> {
    // Weights still to come, summed from the back so that the last share is exactly 1.
    let mut remaining: f64 = weights.iter().rev().sum();
    let last = weights.iter().rposition(|&weight| weight > 0.0);
    let share = |(k, &weight): (usize, &f64)| {
        let share = match weight {
            0.0 => 0.0,
            _ if Some(k) == last => 1.0,
            _ => (weight / remaining).min(1.0),
        };
        remaining -= weight;
        share
    };
    weights.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Domain;

    /// The law by the recursion of neighbours, from the mode outwards.
    fn law(trials: u64, p: f64) -> Vec<f64> {
        let odds = p / (1.0 - p);
        let mode = ((trials as f64 + 1.0) * p) as usize;
        let mut law = vec![0.0; trials as usize + 1];
        law[mode] = 1.0;
        for x in mode..trials as usize {
            law[x + 1] = law[x] * odds * (trials - x as u64) as f64 / (x as f64 + 1.0);
        }
        for x in (1..=mode).rev() {
            law[x - 1] = law[x] / odds * x as f64 / (trials - x as u64 + 1) as f64;
        }
        let total: f64 = law.iter().sum();
        law.iter().map(|value| value / total).collect()
    }

    fn chi_square(draws: u64, law: &[f64], mut sample: impl FnMut() -> u64) -> (f64, f64) {
        let mut counts = vec![0u64; law.len()];
        (0..draws).for_each(|_| counts[sample() as usize] += 1);
        let (mut statistic, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
        for (&count, p) in counts.iter().zip(law) {
            let expected = p * draws as f64;
            if expected >= 10.0 {
                statistic += (count as f64 - expected).powi(2) / expected;
                cells += 1;
            } else {
                rest = (rest.0 + expected, rest.1 + count as f64);
            }
        }
        if rest.0 >= 1.0 {
            statistic += (rest.1 - rest.0).powi(2) / rest.0;
            cells += 1;
        }
        let freedom = f64::from(cells - 1).max(1.0);
        let spread = 2.0 / (9.0 * freedom);
        (statistic, freedom * (1.0 - spread + 4.753 * spread.sqrt()).powi(3))
    }

    #[test]
    fn draws_follow_the_law() {
        for (trials, p) in
            [(1, 0.5), (5, 0.3), (20, 0.9), (25, 0.4), (40, 0.5), (1_000, 0.001), (1_000, 0.012), (5_000, 0.97)]
        {
            let sampler = Binomial::new(trials, p);
            let mut stream = Stream::new(8, Domain::Simulation, trials, 0, 0);
            let (statistic, bound) = chi_square(300_000, &law(trials, p), || sampler.sample(&mut stream));
            assert!(statistic < bound, "Binomial({trials}, {p}): {statistic} exceeds {bound}");
        }
    }

    #[test]
    fn draws_follow_the_law_at_ten_million() {
        let sampler = Binomial::new(1_000_000, 0.25);
        let mut stream = Stream::new(9, Domain::Simulation, 0, 0, 0);
        let (statistic, bound) = chi_square(10_000_000, &law(1_000_000, 0.25), || sampler.sample(&mut stream));
        assert!(statistic < bound, "{statistic} exceeds {bound}");
    }

    #[test]
    fn moments_at_ten_to_the_twelve() {
        let sampler = Binomial::new(1_000_000_000_000, 0.3);
        let mut stream = Stream::new(10, Domain::Simulation, 0, 0, 0);
        let deviation = (1e12f64 * 0.21).sqrt();
        let draws = 400_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let z = (sampler.sample(&mut stream) as f64 - 3e11) / deviation;
            sum += z;
            squares += z * z;
        }
        assert!((sum / f64::from(draws)).abs() < 8e-3);
        assert!((squares / f64::from(draws) - 1.0).abs() < 1.1e-2);
    }

    #[test]
    fn degenerate_laws() {
        let mut stream = Stream::new(1, Domain::Simulation, 0, 0, 0);
        assert_eq!(Binomial::new(7, 0.0).sample(&mut stream), 0);
        assert_eq!(Binomial::new(7, 1.0).sample(&mut stream), 7);
        assert_eq!(Binomial::new(0, 0.4).sample(&mut stream), 0);
    }

    /// Joint law of three bins, 4 trials, against exact multinomial probabilities.
    #[test]
    fn multinomial_follows_the_exact_law() {
        let weights = [2.0, 5.0, 3.0];
        let factorial = [1.0, 1.0, 2.0, 6.0, 24.0];
        let mut cells = Vec::new();
        for a in 0..=4usize {
            for b in 0..=4 - a {
                let c = 4 - a - b;
                let ways = 24.0 / (factorial[a] * factorial[b] * factorial[c]);
                let p = ways * 0.2f64.powi(a as i32) * 0.5f64.powi(b as i32) * 0.3f64.powi(c as i32);
                cells.push(((a as u64, b as u64), p));
            }
        }
        let law: Vec<f64> = cells.iter().map(|cell| cell.1).collect();
        let mut stream = Stream::new(12, Domain::Simulation, 0, 0, 0);
        let mut counts = [0u64; 3];
        let (statistic, bound) = chi_square(200_000, &law, || {
            multinomial(&mut stream, 4, &weights, &mut counts);
            assert_eq!(counts.iter().sum::<u64>(), 4);
            cells.iter().position(|cell| cell.0 == (counts[0], counts[1])).unwrap() as u64
        });
        assert!(statistic < bound);
    }
}
