//! Hypergeometric draws: how many marked items are among `draws` taken without replacement.

mod lanes;

pub(crate) use lanes::LaneSampler;

use super::Stream;
use super::rejection::{FactorialTerm, ln_whole, ratio_of_uniforms};

/// Up to this many draws the urn itself is simulated.
const URN_DRAWS: u64 = 12;
/// A law with fixed parameters is tabulated when its effective support is at most this wide.
const TABLE_WIDTH: usize = 8192;

/// A hypergeometric law, reduced by its symmetries to `draws <= marked <= population / 2`.
///
/// Correct from tiny populations to 10^12; parameters above 2^53 are not meant.
///
/// ```
/// use fairaudit_core::random::{Domain, Hypergeometric, Stream};
/// let mut stream = Stream::new(1, Domain::Simulation, 0, 0, 0);
/// let x = Hypergeometric::new(20, 7, 12).sample(&mut stream);
/// assert!(x <= 7);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Hypergeometric {
    population: u64,
    marked: u64,
    draws: u64,
    /// x = offset + sign * (draw of the reduced law)
    offset: u64,
    mirrored: bool,
}

impl Hypergeometric {
    /// The law of the number of marked items among `draws` of `population`, `marked` of which
    /// are marked. `marked` and `draws` must not exceed `population`.
    #[inline]
    pub fn new(population: u64, marked: u64, draws: u64) -> Self {
        debug_assert!(marked <= population && draws <= population);
        let unmarked = population - marked;
        let few_marked = marked.min(unmarked);
        let left = population - draws;
        let few_draws = draws.min(left);
        // Y = marked of the rarer colour in the smaller part; X follows from Y.
        let (offset, mirrored) = match (marked <= unmarked, draws <= left) {
            (true, true) => (0, false),
            (true, false) => (marked, true),
            (false, true) => (draws, true),
            (false, false) => (marked - left, false),
        };
        let (small, large) = if few_marked < few_draws { (few_marked, few_draws) } else { (few_draws, few_marked) };
        Self { population, marked: large, draws: small, offset, mirrored }
    }

    #[inline]
    fn unreduce(&self, y: u64) -> u64 {
        if self.mirrored { self.offset - y } else { self.offset + y }
    }

    /// One draw.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        let y = if self.draws <= URN_DRAWS { self.urn(stream) } else { Rejection::new(self).sample(stream) };
        self.unreduce(y)
    }

    fn urn(&self, stream: &mut Stream) -> u64 {
        let mut marked = self.marked;
        for taken in 0..self.draws {
            if marked == 0 {
                break;
            }
            if stream.below(self.population - taken) < marked {
                marked -= 1;
            }
        }
        self.marked - marked
    }

    /// The most probable value of the reduced law.
    #[inline]
    fn mode(&self) -> u64 {
        let product = u128::from(self.draws + 1) * u128::from(self.marked + 1);
        let divisor = u128::from(self.population + 2);
        if let (Ok(product), Ok(divisor)) = (u64::try_from(product), u64::try_from(divisor)) {
            product / divisor
        } else {
            (product / divisor) as u64
        }
    }

    /// Probabilities of `first..`, relative to the mode, out to where they vanish: below
    /// `floor`, or the end of the support. Nothing when that would be wider than `width`.
    ///
    /// Only products and quotients of neighbours are used, in a fixed order.
    pub(crate) fn relative_law(&self, floor: f64, width: usize) -> Option<(u64, Vec<f64>)> {
        let mode = self.mode();
        let (population, marked, draws) = (self.population as f64, self.marked as f64, self.draws as f64);
        let others = population - marked - draws;
        let mut below = Vec::new();
        let mut probability = 1.0;
        let mut x = mode;
        while x > 0 {
            let at = x as f64;
            probability *= (at * (others + at)) / ((marked - at + 1.0) * (draws - at + 1.0));
            if probability <= floor {
                break;
            }
            below.push(probability);
            x -= 1;
            if below.len() > width {
                return None;
            }
        }
        let first = x;
        let mut law: Vec<f64> = below.into_iter().rev().collect();
        law.push(1.0);
        probability = 1.0;
        x = mode;
        while x < self.draws {
            let at = x as f64;
            probability *= ((marked - at) * (draws - at)) / ((at + 1.0) * (others + at + 1.0));
            if probability <= floor {
                break;
            }
            law.push(probability);
            x += 1;
            if law.len() > width {
                return None;
            }
        }
        Some((first, law))
    }

    /// The whole law as (smallest value, probabilities), in the caller's own direction.
    ///
    /// Probabilities below 1e-300 of the mode's are left out. Nothing when more than `width`
    /// values remain.
    ///
    /// ```
    /// use fairaudit_core::random::Hypergeometric;
    /// let (first, law) = Hypergeometric::new(4, 2, 2).law(100).unwrap();
    /// assert_eq!(first, 0);
    /// assert!((law[1] - 4.0 / 6.0).abs() < 1e-15);
    /// ```
    pub fn law(&self, width: usize) -> Option<(u64, Vec<f64>)> {
        let (first, mut law) = self.relative_law(1e-300, width)?;
        let total: f64 = law.iter().sum();
        for probability in &mut law {
            *probability /= total;
        }
        if self.mirrored {
            law.reverse();
            return Some((self.offset - (first + law.len() as u64 - 1), law));
        }
        Some((self.offset + first, law))
    }
}

/// The rejection sampler with everything that depends on the parameters alone.
///
/// p(x) is proportional to 1 / (x! (others + x)! (marked - x)! (draws - x)!); the four
/// arguments at the mode are the `centers` c, and a step s from the mode changes them by
/// +s, +s, -s, -s.
#[derive(Debug, Clone, Copy)]
struct Rejection {
    mode: f64,
    mean: f64,
    variance: f64,
    maximum: f64,
    centers: [f64; 4],
    /// ln p(mode + s) - ln p(mode) as a polynomial in s without constant, for steps up to
    /// `reach`.
    series: [f64; DEGREE],
    reach: f64,
}

const DEGREE: usize = 8;
/// Products below are whole numbers without rounding.
const EXACT_PRODUCT: f64 = (1u64 << 52) as f64;
/// From this center on the ratio of two probabilities is a polynomial.
const LARGE_CENTER: f64 = 1024.0;
const SMALL_EXCESS: f64 = 1.0 / 512.0;

/// ln(1 + e) for |e| below [`SMALL_EXCESS`].
#[inline(always)]
#[allow(clippy::inline_always)] // a part of loops that are compiled for several targets
fn ln_one_plus(e: f64) -> f64 {
    e * (1.0 - e * (0.5 - e * (1.0 / 3.0 - e * (0.25 - e * 0.2))))
}
/// Directions in which a step moves -x of the four factorials.
const SIGNS: [f64; 4] = [-1.0, -1.0, 1.0, 1.0];

/// Stirling's formula of ln c! - ln (c - cs)! in powers of s, added over the four terms.
///
/// With t = s/c one term is `s ln c - c((1 - t) ln(1 - t) + t) - ln(1 - t)/2 - (1/(1 - t) - 1)/(12c)`;
/// the coefficient of t^k is `-c/(k(k - 1)) + 1/(2k) - 1/(12c)`. Cut after t^8 and
/// used for |t| <= 1/16 the error is below 1e-8. The terms `s ln c` are left out.
#[inline(always)]
#[allow(clippy::inline_always)]
fn expansion(centers: [f64; 4]) -> [f64; DEGREE] {
    let inverse = centers.map(|center| 1.0 / center);
    let mut power = [1.0; 4];
    let mut series = [0.0; DEGREE];
    for (k, coefficient) in series.iter_mut().enumerate() {
        let k = k as f64 + 1.0;
        let (main, half) = if k == 1.0 { (0.0, 0.5) } else { (1.0 / (k * (k - 1.0)), 0.5 / k) };
        let mut sum = 0.0;
        for i in 0..4 {
            // power = (sign / c)^k, and c power = sign (sign / c)^(k - 1)
            let lower = power[i] * SIGNS[i];
            power[i] = lower * inverse[i];
            sum += power[i] * (half - inverse[i] * (1.0 / 12.0)) - lower * main;
        }
        *coefficient = sum;
    }
    series
}

/// Mean and variance of the number of marked items.
#[inline(always)]
#[allow(clippy::inline_always)]
fn moments(population: f64, marked: f64, draws: f64) -> (f64, f64) {
    let share = marked / population;
    let mean = draws * share;
    (mean, mean * (1.0 - share) * ((population - draws) / (population - 1.0)))
}

/// The polynomial in s of `series`.
#[inline(always)]
#[allow(clippy::inline_always)]
fn polynomial(series: &[f64; DEGREE], step: f64) -> f64 {
    step * series.iter().rev().fold(0.0, |sum, coefficient| sum * step + coefficient)
}

impl Rejection {
    #[inline]
    fn new(law: &Hypergeometric) -> Self {
        let (population, marked, draws) = (law.population as f64, law.marked as f64, law.draws as f64);
        let mode = law.mode() as f64;
        let (mean, variance) = moments(population, marked, draws);
        let others = population - marked - draws;
        let centers = [mode, others + mode, marked - mode, draws - mode];
        let smallest = centers[0].min(centers[1]).min(centers[2]).min(centers[3]);
        let mut sampler = Self { mode, mean, variance, maximum: draws, centers, series: [0.0; DEGREE], reach: -1.0 };
        if smallest >= LARGE_CENTER {
            sampler.expand(smallest);
        }
        sampler
    }

    #[inline]
    fn expand(&mut self, smallest: f64) {
        self.series = expansion(self.centers);
        self.series[0] -= self.slope();
        self.reach = smallest * (1.0 / 16.0);
    }

    /// ln of (mode (others + mode)) / ((marked - mode) (draws - mode)): the parts of the four
    /// terms that are linear in the step. Near the mode this quotient is close to 1.
    #[inline]
    fn slope(&self) -> f64 {
        let [a, b, c, d] = self.centers;
        let below = c * d;
        let excess = if below < EXACT_PRODUCT {
            (a * b - below) / below
        } else {
            // Products beyond 2^53: their difference must not lose its digits.
            let product = |x: f64, y: f64| i128::from(x as i64) * i128::from(y as i64);
            (product(a, b) - product(c, d)) as f64 / below
        };
        if excess.abs() < SMALL_EXCESS {
            return ln_one_plus(excess);
        }
        ln_whole(a) + ln_whole(b) - ln_whole(c) - ln_whole(d)
    }

    #[inline]
    fn ln_ratio(&self, x: f64) -> f64 {
        let step = x - self.mode;
        if step.abs() <= self.reach {
            return polynomial(&self.series, step);
        }
        self.ln_ratio_by_factorials(step)
    }

    #[inline(never)]
    fn ln_ratio_by_factorials(&self, step: f64) -> f64 {
        let mut sum = -step * self.slope();
        for (center, sign) in self.centers.into_iter().zip(SIGNS) {
            sum += FactorialTerm::new(center).curvature(center - sign * step);
        }
        sum
    }

    #[inline]
    fn sample(&self, stream: &mut Stream) -> u64 {
        ratio_of_uniforms(stream, self.mean, self.variance, self.maximum, |x| self.ln_ratio(x)) as u64
    }
}

/// A hypergeometric law that is drawn from many times with the same parameters.
///
/// Narrow laws are inverted through a table of cumulative probabilities in units of 2^-64,
/// wide ones keep the constants of the rejection sampler.
#[derive(Debug, Clone)]
pub struct FixedHypergeometric {
    law: Hypergeometric,
    method: Method,
}

#[derive(Debug, Clone)]
enum Method {
    Table { first: u64, cumulative: Vec<u64>, guide: Vec<u32> },
    Rejection(Box<Rejection>),
}

impl FixedHypergeometric {
    /// See [`Hypergeometric::new`].
    pub fn new(population: u64, marked: u64, draws: u64) -> Self {
        let law = Hypergeometric::new(population, marked, draws);
        // 2^-70: what is cut off is far below the resolution of the table.
        let method = match law.relative_law(2f64.powi(-70), TABLE_WIDTH) {
            Some((first, probabilities)) => Self::table(first, &probabilities),
            None => Method::Rejection(Box::new(Rejection::new(&law))),
        };
        Self { law, method }
    }

    fn table(first: u64, probabilities: &[f64]) -> Method {
        let total: f64 = probabilities.iter().sum();
        let mut cumulative = Vec::with_capacity(probabilities.len());
        let mut sum = 0.0;
        for probability in probabilities {
            sum += probability;
            // 2^64 as a float saturates to u64::MAX.
            cumulative.push((sum / total * 18_446_744_073_709_551_616.0) as u64);
        }
        if let Some(last) = cumulative.last_mut() {
            *last = u64::MAX;
        }
        // guide[i]: the first entry whose cumulative probability can exceed i / len.
        let buckets = probabilities.len().next_power_of_two() as u64;
        let step = if buckets == 1 { 0 } else { u64::MAX / buckets + 1 };
        let mut guide = Vec::with_capacity(buckets as usize);
        let mut entry = 0;
        for bucket in 0..buckets {
            while cumulative[entry] < bucket * step {
                entry += 1;
            }
            guide.push(entry as u32);
        }
        Method::Table { first, cumulative, guide }
    }

    /// One draw.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        match &self.method {
            Method::Table { first, cumulative, guide } => {
                let word = stream.next_word();
                let bucket = if guide.len() == 1 { 0 } else { word >> (64 - guide.len().trailing_zeros()) };
                let mut entry = guide[bucket as usize] as usize;
                while cumulative[entry] < word {
                    entry += 1;
                }
                self.law.unreduce(first + entry as u64)
            }
            Method::Rejection(sampler) => self.law.unreduce(sampler.sample(stream)),
        }
    }
}

/// Draws `draws` of the items counted in `totals` without replacement; `counts[k]` becomes the
/// number of kind k among them. One hypergeometric draw per kind but the last.
#[inline]
pub fn multivariate_hypergeometric(stream: &mut Stream, totals: &[u64], draws: u64, counts: &mut [u64]) {
    let mut population: u64 = totals.iter().sum();
    let mut left = draws;
    for (count, &total) in counts.iter_mut().zip(totals) {
        *count = if left == 0 || total == 0 {
            0
        } else if total == population {
            left
        } else {
            Hypergeometric::new(population, total, left).sample(stream)
        };
        left -= *count;
        population -= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Domain;

    /// Binomial coefficient as an exact integer.
    fn choose(n: u64, k: u64) -> u128 {
        if k > n {
            return 0;
        }
        (0..k).fold(1u128, |product, i| product * u128::from(n - i) / u128::from(i + 1))
    }

    fn exact_probability(population: u64, marked: u64, draws: u64, x: u64) -> f64 {
        if x > draws {
            return 0.0;
        }
        let ways = choose(marked, x) * choose(population - marked, draws - x);
        ways as f64 / choose(population, draws) as f64
    }

    /// Every population up to 14: the law equals the quotient of exact integers.
    #[test]
    fn law_is_exact_for_small_populations() {
        for population in 1..=14 {
            for marked in 0..=population {
                for draws in 0..=population {
                    let (first, law) = Hypergeometric::new(population, marked, draws).law(100).unwrap();
                    for x in 0..=population {
                        let value = x.checked_sub(first).and_then(|i| law.get(i as usize)).copied().unwrap_or(0.0);
                        let exact = exact_probability(population, marked, draws, x);
                        assert!((value - exact).abs() < 1e-14, "{population} {marked} {draws} {x}: {value} {exact}");
                    }
                }
            }
        }
    }

    /// Chi-square over the values with an expected count of at least 10, the rest pooled; the
    /// bound is a normal approximation of the quantile at tail 1e-6 (Wilson-Hilferty).
    fn check_chi_square(name: &str, first: u64, law: &[f64], draws: u64, mut sample: impl FnMut() -> u64) {
        let mut counts = vec![0u64; law.len()];
        let mut outside = 0u64;
        for _ in 0..draws {
            match sample().checked_sub(first).map(|i| i as usize) {
                Some(i) if i < counts.len() => counts[i] += 1,
                _ => outside += 1,
            }
        }
        assert_eq!(outside, 0, "{name}: draws outside of the support");
        let (mut statistic, mut cells) = (0.0, 0u32);
        let (mut rest_expected, mut rest_count) = (0.0, 0.0);
        for (&count, probability) in counts.iter().zip(law) {
            let expected = probability * draws as f64;
            if expected >= 10.0 {
                statistic += (count as f64 - expected).powi(2) / expected;
                cells += 1;
            } else {
                rest_expected += expected;
                rest_count += count as f64;
            }
        }
        if rest_expected >= 1.0 {
            statistic += (rest_count - rest_expected).powi(2) / rest_expected;
            cells += 1;
        }
        if cells < 2 {
            return;
        }
        let freedom = f64::from(cells - 1);
        let spread = 2.0 / (9.0 * freedom);
        let bound = freedom * (1.0 - spread + 4.753 * spread.sqrt()).powi(3);
        assert!(statistic < bound, "{name}: chi-square {statistic:.1} on {freedom} exceeds {bound:.1}");
    }

    fn check_law(population: u64, marked: u64, draws: u64, n: u64) {
        let name = format!("HG({population}, {marked}, {draws})");
        let law = Hypergeometric::new(population, marked, draws);
        let (first, probabilities) = law.law(1 << 26).unwrap();
        let mut stream = Stream::new(11, Domain::Simulation, population, marked, draws);
        check_chi_square(&name, first, &probabilities, n, || law.sample(&mut stream));
        let fixed = FixedHypergeometric::new(population, marked, draws);
        check_chi_square(&(name + " fixed"), first, &probabilities, n, || fixed.sample(&mut stream));
    }

    #[test]
    fn samplers_follow_the_law() {
        // urn, table, rejection near the urn's limit, all four symmetries, thin tails
        for (population, marked, draws) in [
            (10, 4, 5),
            (1, 1, 1),
            (30, 13, 14),
            (30, 17, 14),
            (30, 13, 16),
            (30, 17, 16),
            (60, 30, 30),
            (100, 13, 87),
            (1_000, 20, 400),
            (2_000, 1_000, 1_000),
            (2_100, 1_040, 1_045),
            (5_000, 40, 4_000),
            (10_000, 5_000, 13),
            (100_000, 300, 40_000),
            (1_000_000, 900_000, 50),
        ] {
            check_law(population, marked, draws, 200_000);
        }
    }

    /// The cases that ordinary implementations fail: large populations, at 10^7 draws.
    #[test]
    fn samplers_follow_the_law_at_ten_million_draws() {
        check_law(1_000_000, 300_000, 500_000, 10_000_000);
        check_law(100_000_000, 20_000, 30_000_000, 10_000_000);
    }

    /// At 10^12 the support is too wide to tabulate: compare with the normal law in cells of
    /// equal probability (the skewness there is below 1e-6).
    #[test]
    fn rejection_is_right_at_ten_to_the_twelve() {
        let (population, marked, draws) = (1_000_000_000_000u64, 400_000_000_000u64, 500_000_000_000u64);
        let sampler = FixedHypergeometric::new(population, marked, draws);
        let mean = 2e11;
        let deviation = (5e11f64 * 0.4 * 0.6 * 0.5).sqrt();
        let edges = [
            -1.281_551_6,
            -0.841_621_2,
            -0.524_400_5,
            -0.253_347_1,
            0.0,
            0.253_347_1,
            0.524_400_5,
            0.841_621_2,
            1.281_551_6,
        ];
        let mut counts = [0u32; 10];
        let mut stream = Stream::new(3, Domain::Simulation, 0, 0, 0);
        let draws = 1_000_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let z = (sampler.sample(&mut stream) as f64 - mean) / deviation;
            counts[edges.iter().filter(|&&edge| z > edge).count()] += 1;
            sum += z;
            squares += z * z;
        }
        let expected = f64::from(draws) / 10.0;
        let statistic: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        assert!(statistic < 46.0, "chi-square {statistic} on 9 ({counts:?})");
        assert!((sum / f64::from(draws)).abs() < 4.9e-3);
        assert!((squares / f64::from(draws) - 1.0).abs() < 7e-3);
    }

    /// Three kinds: the joint law against exact integers.
    #[test]
    fn multivariate_draws_follow_the_exact_law() {
        let totals = [4u64, 3, 5];
        let draws = 6;
        let mut cells = Vec::new();
        for a in 0..=4u64 {
            for b in 0..=3u64 {
                if a + b <= draws && draws - a - b <= 5 {
                    let ways = choose(4, a) * choose(3, b) * choose(5, draws - a - b);
                    cells.push(((a, b), ways as f64 / choose(12, draws) as f64));
                }
            }
        }
        let law: Vec<f64> = cells.iter().map(|cell| cell.1).collect();
        let mut stream = Stream::new(4, Domain::Simulation, 0, 0, 0);
        let mut counts = [0u64; 3];
        check_chi_square("multivariate", 0, &law, 200_000, || {
            multivariate_hypergeometric(&mut stream, &totals, draws, &mut counts);
            assert_eq!(counts.iter().sum::<u64>(), draws);
            cells.iter().position(|cell| cell.0 == (counts[0], counts[1])).unwrap() as u64
        });
    }

    /// The series and the factorials give one log ratio where both apply.
    #[test]
    fn series_equals_factorials() {
        for (population, marked, draws) in [
            (20_000, 9_000, 8_000),
            (1_000_000, 400_000, 300_000),
            (100_000_000, 70_000, 20_000_000),
            (1_000_000_000_000, 400_000_000_000, 500_000_000_000),
        ] {
            let sampler = Rejection::new(&Hypergeometric::new(population, marked, draws));
            let deviation = sampler.variance.sqrt();
            assert!(sampler.reach > 4.0 * deviation, "{population}: {} {deviation}", sampler.reach);
            for at in [-6.0, -4.0, -1.0, -0.1, 0.1, 1.0, 4.0, 6.0f64] {
                let step = (at * deviation).round();
                if step.abs() > sampler.reach {
                    continue;
                }
                let series = sampler.ln_ratio(sampler.mode + step);
                let factorials = sampler.ln_ratio_by_factorials(step);
                assert!((series - factorials).abs() < 1e-8, "{population} {at}: {series} {factorials}");
            }
        }
    }

    /// The check has teeth: a law with the neighbouring parameter fails it.
    #[test]
    #[should_panic(expected = "chi-square")]
    fn chi_square_rejects_a_wrong_law() {
        let (first, law) = Hypergeometric::new(2_000, 1_000, 1_000).law(1 << 20).unwrap();
        let wrong = Hypergeometric::new(2_000, 1_000, 999);
        let mut stream = Stream::new(11, Domain::Simulation, 0, 0, 0);
        check_chi_square("wrong", first, &law, 200_000, || wrong.sample(&mut stream));
    }
}
