//! What order statistics say of a return level, whatever the law.
//!
//! The number of rows above the level that one in m rows exceeds is Bin(n, 1/m). X_(1) is the largest value.

use crate::numerics::laws::{binomial_lower_tail, binomial_upper_tail};

/// Deviances this much apart are one.
const TIE: f64 = 1e-9;
/// Deviances beyond this do not occur.
const FARTHEST: f64 = 200.0;

/// The rank r of the lower limit X_(r), the smallest with P(N >= r) <= tail.
pub fn lower_rank(n: u64, m: f64, tail: f64) -> u64 {
    first(0, n + 1, |r| binomial_upper_tail(r, n, 1.0 / m) <= tail)
}

/// The rank s of the upper limit X_(s), the largest with P(N < s) <= tail; 0 where there is none.
pub fn upper_rank(n: u64, m: f64, tail: f64) -> u64 {
    first(0, n + 1, |s| binomial_lower_tail(s + 1, n, 1.0 / m) > tail)
}

/// Whether order statistics limit a level from both sides: (1 - 1/m)^n <= tail, and (1/m)^n, which matters just above 1.
pub fn is_measured(n: u64, m: f64, tail: f64) -> bool {
    let (n, log_tail) = (n as f64, libm::log(tail));
    n * libm::log1p(-1.0 / m) <= log_tail && -n * libm::log(m) <= log_tail
}

/// The first whole number from `low` on where a condition holds that holds from some place on; `high` if none.
fn first(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// 2 [N log(N m / n) + (n - N) log((n - N) / (n - n / m))]: how badly N rows above a level of horizon m fit.
pub fn deviance(count: u64, n: u64, m: f64) -> f64 {
    let (count, n) = (count as f64, n as f64);
    let part = |seen: f64, meant: f64| if seen > 0.0 { seen * libm::log(seen / meant) } else { 0.0 };
    (2.0 * (part(count, n / m) + part(n - count, n - n / m))).max(0.0)
}

/// The least and the largest count with a deviance of at most `limit`; None where there is none.
pub fn counts_within(limit: f64, n: u64, m: f64) -> Option<(u64, u64)> {
    // The deviance falls up to n / m and rises from there.
    let near = (n as f64 / m) as u64;
    let least = first(0, near + 1, |count| deviance(count, n, m) <= limit + TIE);
    let above = first(near + 1, n + 1, |count| deviance(count, n, m) > limit + TIE);
    (least < above).then(|| (least, above - 1))
}

/// The exact law of the deviance of a true level.
#[derive(Debug, Clone)]
pub struct DevianceLaw {
    /// Deviances, upwards, with their probabilities.
    parts: Vec<(f64, f64)>,
    /// The probability of each of them and all above.
    beyond: Vec<f64>,
}

impl DevianceLaw {
    /// The law of N ~ Bin(n, 1/m), but for deviances whose probability is below e^-100.
    pub fn new(n: u64, m: f64) -> Self {
        let (least, most) = counts_within(FARTHEST, n, m).unwrap_or((0, n));
        let probability = 1.0 / m;
        let near = ((n as f64 * probability) as u64).clamp(least, most);
        let (rows, count) = (n as f64, near as f64);
        let ways = libm::lgamma(rows + 1.0) - libm::lgamma(count + 1.0) - libm::lgamma(rows - count + 1.0);
        let odds = probability / (1.0 - probability);
        let log = ways + count * libm::log(probability) + (rows - count) * libm::log1p(-probability);
        let mut parts = vec![(deviance(near, n, m), libm::exp(log))];
        let mut share = parts[0].1;
        for count in near..most {
            share *= (n - count) as f64 / (count + 1) as f64 * odds;
            parts.push((deviance(count + 1, n, m), share));
        }
        share = parts[0].1;
        for count in (least + 1..=near).rev() {
            share *= count as f64 / (n - count + 1) as f64 / odds;
            parts.push((deviance(count - 1, n, m), share));
        }
        parts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut sum = 0.0;
        let mut beyond: Vec<f64> = parts
            .iter()
            .rev()
            .map(|part| {
                sum += part.1;
                sum
            })
            .collect();
        beyond.reverse();
        Self { parts, beyond }
    }

    /// P(deviance >= `found`).
    pub fn tail(&self, found: f64) -> f64 {
        if found <= 0.0 {
            return 1.0;
        }
        let below = self.parts.partition_point(|part| part.0 < found - TIE);
        self.beyond.get(below).map_or(0.0, |share| share.min(1.0))
    }

    /// P(deviance + other >= `found`) for another number whose tail is given, independent of it.
    pub fn tail_of_sum(&self, found: f64, other: impl Fn(f64) -> f64) -> f64 {
        if found <= 0.0 {
            return 1.0;
        }
        self.parts.iter().map(|&(deviance, share)| share * other(found - deviance)).sum::<f64>().min(1.0)
    }
}

/// The least deviance of a count from #{values > x} to #{values >= x}, of values that go down: of tied values at the
/// level any number may count as above it.
pub fn least_deviance(descending: &[f64], x: f64, m: f64) -> f64 {
    let n = descending.len() as u64;
    let (least, most) = (count_above(descending, x), descending.partition_point(|&value| value >= x) as u64);
    // The deviance falls up to n / m and rises from there.
    let near = (n as f64 / m) as u64;
    let at = |count: u64| deviance(count.clamp(least, most), n, m);
    at(near).min(at(near + 1))
}

/// #{values > x} of values that go down.
pub fn count_above(descending: &[f64], x: f64) -> u64 {
    descending.partition_point(|&value| value > x) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_binomial_law() {
        // n = 4, m = 2: P(N >= 4) = 1/16, P(N < 1) = 1/16.
        assert_eq!((lower_rank(4, 2.0, 0.07), upper_rank(4, 2.0, 0.07)), (4, 1));
        assert_eq!((lower_rank(4, 2.0, 0.05), upper_rank(4, 2.0, 0.05)), (5, 0));
        assert!(is_measured(369, 100.0, 0.025) && !is_measured(366, 100.0, 0.025));
        assert!(is_measured(369, 1.02, 0.025) && !is_measured(369, 1.005, 0.025));
        assert_eq!(upper_rank(369, 100.0, 0.025), 1);
        assert_eq!(upper_rank(366, 100.0, 0.025), 0);
    }

    #[test]
    fn deviances_have_their_exact_law() {
        let (n, m) = (50, 10.0);
        let pmf = |count| binomial_upper_tail(count, n, 0.1) - binomial_upper_tail(count + 1, n, 0.1);
        let law = DevianceLaw::new(n, m);
        for found in [0.0, 0.3, 1.0, 3.84, 6.6, 20.0] {
            let slow: f64 = (0..=n).filter(|&count| deviance(count, n, m) >= found - TIE).map(pmf).sum();
            assert!((law.tail(found) - slow).abs() < 1e-12, "{found}");
            let pairs = (0..=n).flat_map(|one| (0..=n).map(move |other| (one, other)));
            let sum = pairs.filter(|&(one, other)| deviance(one, n, m) + deviance(other, n, m) >= found - TIE);
            let slow: f64 = sum.map(|(one, other)| pmf(one) * pmf(other)).sum();
            assert!((law.tail_of_sum(found, |rest| law.tail(rest)) - slow).abs() < 1e-9, "{found}");
        }
        assert_eq!(counts_within(0.0, n, m), Some((5, 5)));
        assert_eq!(counts_within(0.0, 51, m), None);
        assert_eq!(counts_within(1e9, n, m), Some((0, 50)));
    }

    #[test]
    fn ties_at_a_level_count_as_they_fit_best() {
        let tied = [0.5; 50];
        assert_eq!(least_deviance(&tied, 0.5, 10.0), 0.0);
        assert_eq!(least_deviance(&tied, 0.6, 10.0), deviance(0, 50, 10.0));
        assert_eq!(least_deviance(&tied, 0.4, 10.0), deviance(50, 50, 10.0));
        let values: Vec<f64> = (0..55).rev().map(f64::from).collect();
        // 5.5 are meant: 5 or 6.
        assert_eq!(least_deviance(&values, 49.0, 10.0), deviance(5, 55, 10.0).min(deviance(6, 55, 10.0)));
        assert_eq!(least_deviance(&values, 49.5, 10.0), deviance(5, 55, 10.0));
    }

    #[test]
    fn values_above_are_counted() {
        assert_eq!(count_above(&[3.0, 2.0, 2.0, 1.0], 2.0), 1);
        assert_eq!(count_above(&[3.0, 2.0, 2.0, 1.0], 0.0), 4);
    }
}
