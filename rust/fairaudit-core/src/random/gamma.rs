//! Exponential, gamma and normal numbers of sixteen replicates side by side, without the platform's logarithm.
//!
//! A number takes as many words of the replicate's generator in every lane; what a lane rejects it draws again from
//! a stream of its own. So the numbers of a replicate do not depend on its neighbours.

use super::{Domain, LaneGenerator, Stream};
use crate::draws::Draws;
use crate::numerics::exponential::ln_as_libm;
use crate::numerics::laws::quick_normal_quantile;
use crate::simd::LANES;

type Lanes = [f64; LANES];

/// Up to so many exponential numbers are the logarithm of a product of uniform ones.
const FEW: u64 = 8;

/// How many exponential numbers are added up, and what their gamma law is drawn with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    pub(crate) copies: u64,
    /// copies - 1/3, and 1 / (3 sqrt(that)), of Marsaglia and Tsang (2000).
    center: f64,
    slope: f64,
}

impl Shape {
    /// The sum of `copies` numbers, at least one.
    pub(crate) fn new(copies: u64) -> Self {
        debug_assert!(copies > 0);
        let center = copies as f64 - 1.0 / 3.0;
        Self { copies, center, slope: 1.0 / (9.0 * center).sqrt() }
    }

    /// Whether a proposal made of a normal number is taken, by the exact rule.
    fn accepts(&self, normal: f64, uniform: f64) -> bool {
        let root = 1.0 + self.slope * normal;
        let cube = root * root * root;
        root > 0.0 && libm::log(uniform) < 0.5 * normal * normal + self.center * (1.0 - cube + libm::log(cube))
    }

    fn proposal(&self, normal: f64) -> f64 {
        let root = 1.0 + self.slope * normal;
        self.center * root * root * root
    }
}

/// Draws in every lane.
#[derive(Debug)]
pub(crate) struct LaneGamma {
    generator: LaneGenerator,
    streams: [Stream; LANES],
}

impl LaneGamma {
    /// Those of the replicates `first..first + LANES`.
    pub(crate) fn new(draws: &Draws, domain: Domain, first: u64, cell: u64) -> Self {
        let &Draws { seed, series, .. } = draws;
        Self {
            generator: LaneGenerator::new(seed, domain, series, first, u64::MAX - cell),
            streams: std::array::from_fn(|lane| Stream::new(seed, domain, series, first + lane as u64, cell)),
        }
    }

    /// Uniform numbers: middles of 2^32 cells.
    #[inline(always)]
    fn uniform(&mut self) -> Lanes {
        let (words, mut numbers) = (self.generator.next_words(), [0.0; LANES]);
        for lane in 0..LANES {
            numbers[lane] = (f64::from(words[lane]) + 0.5) * (1.0 / 4_294_967_296.0);
        }
        numbers
    }

    /// Standard exponential numbers.
    #[inline(always)]
    pub(crate) fn exponential(&mut self) -> Lanes {
        let mut numbers = self.uniform();
        for number in &mut numbers {
            *number = -ln_as_libm(*number);
        }
        numbers
    }

    /// Standard normal numbers.
    #[inline(always)]
    pub(crate) fn normal(&mut self) -> Lanes {
        self.uniform().map(quick_normal_quantile)
    }

    /// Sums of exponential numbers: gamma numbers.
    #[inline(always)]
    pub(crate) fn sum(&mut self, shape: &Shape) -> Lanes {
        if shape.copies == 1 {
            return self.exponential();
        }
        if shape.copies <= FEW {
            let mut product = self.uniform();
            for _ in 1..shape.copies {
                let factor = self.uniform();
                for lane in 0..LANES {
                    product[lane] *= factor[lane];
                }
            }
            return product.map(|product| -ln_as_libm(product));
        }
        let (normal, uniform) = (self.normal(), self.uniform());
        let (mut sums, mut doubtful) = ([0.0; LANES], false);
        for lane in 0..LANES {
            sums[lane] = shape.proposal(normal[lane]);
            doubtful |= !is_surely_accepted(normal[lane], uniform[lane]);
        }
        if doubtful {
            for lane in 0..LANES {
                if !is_surely_accepted(normal[lane], uniform[lane]) && !shape.accepts(normal[lane], uniform[lane]) {
                    sums[lane] = draw_again(&mut self.streams[lane], shape);
                }
            }
        }
        sums
    }
}

/// The squeeze of Marsaglia and Tsang.
#[inline(always)]
fn is_surely_accepted(normal: f64, uniform: f64) -> bool {
    let square = normal * normal;
    uniform < 1.0 - 0.0331 * square * square
}

#[cold]
fn draw_again(stream: &mut Stream, shape: &Shape) -> f64 {
    loop {
        let (normal, uniform) = (quick_normal_quantile(stream.uniform()), stream.uniform());
        if shape.accepts(normal, uniform) {
            return shape.proposal(normal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws() -> Draws {
        Draws { replicates: 0..1, seed: 8, series: 2 }
    }

    /// Mean, variance and third cumulant of a gamma law are m, m and 2 m; the share below m + sqrt(m) that of
    /// the law (the oracle's distribution function).
    #[test]
    fn sums_have_the_law_of_gamma() {
        use statrs::distribution::{ContinuousCDF, Gamma};
        for copies in [1, 2, 8, 9, 40, 1_000_000] {
            let shape = Shape::new(copies);
            let (m, blocks) = (copies as f64, 20_000);
            let mut gamma = LaneGamma::new(&draws(), Domain::Melded, 0, 3);
            let numbers: Vec<f64> = (0..blocks).flat_map(|_| gamma.sum(&shape)).map(|x| (x - m) / m.sqrt()).collect();
            let n = numbers.len() as f64;
            let moment = |k| numbers.iter().map(|x: &f64| x.powi(k)).sum::<f64>() / n;
            assert!(moment(1).abs() < 4.9 / n.sqrt(), "{copies}: {}", moment(1));
            assert!((moment(2) - 1.0).abs() < 4.9 * ((2.0 + 6.0 / m) / n).sqrt(), "{copies}: {}", moment(2));
            assert!((moment(3) - 2.0 / m.sqrt()).abs() < 4.9 * ((15.0 + 250.0 / m) / n).sqrt(), "{copies}");
            let law = Gamma::new(m, 1.0).unwrap();
            for z in [-2.5, -1.0, 0.0, 1.0, 3.0] {
                let below = numbers.iter().filter(|&&x| x <= z).count() as f64;
                let share = if m + z * m.sqrt() > 0.0 { law.cdf(m + z * m.sqrt()) } else { 0.0 };
                let band = 4.9 * (n * share * (1.0 - share)).sqrt() + 1e-9;
                assert!((below - n * share).abs() <= band, "{copies} {z}: {below} of {n} for {share}");
            }
        }
    }

    #[test]
    fn normal_numbers_are_normal() {
        let mut gamma = LaneGamma::new(&draws(), Domain::Melded, 0, 3);
        let numbers: Vec<f64> = (0..20_000).flat_map(|_| gamma.normal()).collect();
        let n = numbers.len() as f64;
        for (power, moment, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let mean = numbers.iter().map(|x| x.powi(power)).sum::<f64>() / n;
            assert!((mean - moment).abs() < 4.9 * (variance / n).sqrt(), "{power}: {mean}");
        }
    }

    #[test]
    fn a_replicate_has_its_numbers_in_any_lane() {
        let shapes = [1, 3, 9, 77].map(Shape::new);
        let mut here = LaneGamma::new(&draws(), Domain::Melded, 0, 9);
        let mut there = LaneGamma::new(&draws(), Domain::Melded, 5, 9);
        for _ in 0..200 {
            for shape in &shapes {
                assert_eq!(here.sum(shape)[7], there.sum(shape)[2]);
            }
        }
    }
}
