//! Two groups: whether their return levels are equal, and by how much they differ.
//!
//! Each group says how badly a level x fits it, z(x)^2: from its fitted curve, or, where the rows are many, the binomial
//! deviance of the count above x. Q is the least sum of the two. The interval of the difference is all `x_1 - x_2` whose sum is
//! within the cut: every split of the cut gives limits of either group.

use super::curve::Curve;
use super::order::{DevianceLaw, counts_within, deviance, least_deviance};
use crate::error::Result;
use crate::numerics::laws::{chi_square_upper_tail, normal_quantile};
use crate::numerics::peaks::{climb, peak};
use crate::parallel::{Control, map_blocks};

/// Distances from the centres at which Q is asked first: halves of the span times 10^(-j/2).
const AROUND: i32 = 15;
/// Even steps between the centres.
const BETWEEN: usize = 41;
/// Steps of a counted group that are looked at first.
const FEW_STEPS: usize = 64;
/// Splits of the cut that are tried first.
const SPLITS: usize = 7;
/// To how much the best split is known, as a share: the limit changes with its square.
const ANGLE: f64 = 5e-4;
/// To how much the place of the least Q is known, relative to the span.
const PLACE: f64 = 1e-10;

/// What a group says of levels, on the scale of the values.
pub enum Levels<'a> {
    /// By its fit.
    Fitted {
        /// On the scale of t, from the threshold.
        curve: Curve<'a>,
        /// The threshold on that scale.
        threshold: f64,
        /// The known upper end of the values.
        upper: Option<f64>,
    },
    /// By its order statistics: values that go down.
    Counted {
        /// All of them.
        values: &'a [f64],
        /// The horizon in rows.
        horizon: f64,
    },
}

/// t = -log(1 - c / b), c where no b is known.
pub fn to_t(value: f64, upper: Option<f64>) -> f64 {
    upper.map_or(value, |upper| if value >= upper { f64::INFINITY } else { -libm::log1p(-value / upper) })
}

/// c = b (1 - exp(-t)).
pub fn from_t(t: f64, upper: Option<f64>) -> f64 {
    upper.map_or(t, |upper| -upper * libm::expm1(-t))
}

impl Levels<'_> {
    /// z(x)^2, or the deviance.
    fn misfit(&self, x: f64) -> f64 {
        match self {
            Self::Fitted { curve, threshold, upper } => {
                let z = curve.z(to_t(x, *upper) - threshold);
                z * z
            }
            Self::Counted { values, horizon } => least_deviance(values, x, *horizon),
        }
    }

    /// The lowest level with a misfit of at most width^2; None where there is none.
    fn lowest(&self, width: f64) -> Option<f64> {
        match self {
            Self::Fitted { curve, threshold, upper } => Some(from_t(threshold + curve.lowest(width), *upper)),
            Self::Counted { values, horizon } => {
                let (_, most) = counts_within(width * width, values.len() as u64, *horizon)?;
                Some(values.get(most as usize).copied().unwrap_or(f64::NEG_INFINITY))
            }
        }
    }

    /// The highest level with a misfit of at most width^2; None where there is none.
    fn highest(&self, width: f64) -> Option<f64> {
        match self {
            Self::Fitted { curve, threshold, upper } => Some(from_t(threshold + curve.highest(width), *upper)),
            Self::Counted { values, horizon } => {
                let (least, _) = counts_within(width * width, values.len() as u64, *horizon)?;
                Some(if least == 0 { f64::INFINITY } else { values[least as usize - 1] })
            }
        }
    }

    /// The exact law of the misfit of the true level, where there is one.
    fn law(&self) -> Option<DevianceLaw> {
        match self {
            Self::Fitted { .. } => None,
            Self::Counted { values, horizon } => Some(DevianceLaw::new(values.len() as u64, *horizon)),
        }
    }

    /// The places around which its misfit is small.
    fn centres(&self) -> Vec<f64> {
        match self {
            Self::Fitted { curve, threshold, upper } => {
                let middle = curve.lowest(0.0);
                [curve.estimate(), middle].iter().map(|&level| from_t(threshold + level, *upper)).collect()
            }
            Self::Counted { .. } => self.lowest(1.0).into_iter().chain(self.highest(1.0)).collect(),
        }
    }

    /// Levels at which the misfit jumps, where it is at most `most`.
    fn steps(&self, most: f64) -> &[f64] {
        match self {
            Self::Fitted { .. } => &[],
            Self::Counted { values, horizon } => {
                let counts = counts_within(most, values.len() as u64, *horizon);
                let (least, most) = counts.unwrap_or((1, 0));
                let (from, to) = ((least as usize).saturating_sub(1), (most as usize + 1).min(values.len()));
                &values[from.min(to)..to]
            }
        }
    }
}

/// The least sum of misfits of one level.
pub fn least_misfit(first: &Levels, second: &Levels) -> f64 {
    let total = |x: f64| first.misfit(x) + second.misfit(x);
    let mut centres: Vec<f64> = first.centres().into_iter().chain(second.centres()).collect();
    centres.retain(|centre| centre.is_finite());
    let low = centres.iter().copied().fold(f64::INFINITY, f64::min);
    let high = centres.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = high - low;
    let mut places: Vec<f64> = centres.clone();
    if span > 0.0 {
        for step in 0..AROUND {
            let distance = 0.5 * span * libm::exp10(-0.5 * f64::from(step));
            places.extend(centres.iter().flat_map(|centre| [centre - distance, centre + distance]));
        }
        places.extend((0..BETWEEN).map(|step| low + span * step as f64 / (BETWEEN - 1) as f64));
        // Below all centres both levels are too low, above all too high: the centres are better.
        places.retain(|&x| low <= x && x <= high);
    }
    // The sum jumps at every value of a counted group: on both sides of each, but where that group alone is worse than
    // what was seen already.
    let mut seen = places.iter().map(|&x| total(x)).fold(f64::INFINITY, f64::min);
    for group in [first, second] {
        // A few of them first: far fewer are left then.
        let steps = group.steps(seen);
        let few = steps.iter().step_by(steps.len() / FEW_STEPS + 1);
        seen = few.map(|&x| total(x)).fold(seen, f64::min);
    }
    for group in [first, second] {
        places.extend(group.steps(seen).iter().flat_map(|&value| [value, value.next_down()]));
    }
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    // The two best places are what counts: where one group alone is worse than these, the other is not asked.
    let (mut best, mut second_best) = (f64::INFINITY, f64::INFINITY);
    let bounded = |&x: &f64| {
        let one = first.misfit(x);
        let sum = if one > second_best { f64::INFINITY } else { one + second.misfit(x) };
        if sum < best {
            (best, second_best) = (sum, best);
        } else {
            second_best = second_best.min(sum);
        }
        sum
    };
    let values: Vec<f64> = places.iter().map(bounded).collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let refine = |&index: &usize| {
        let (before, after) = (index.saturating_sub(1), (index + 1).min(places.len() - 1));
        let width = PLACE * span.max(f64::MIN_POSITIVE);
        let (_, most) = climb(places[before], places[index], -values[index], places[after], width, |x| -total(x));
        -most
    };
    order.iter().take(2).map(refine).fold(f64::INFINITY, f64::min).max(0.0)
}

/// All differences of levels whose misfits add up to at most `cut`.
pub fn difference_limits(first: &Levels, second: &Levels, cut: f64) -> (f64, f64) {
    // Adding 0 makes 0 of -0.
    (0.0 - farthest(second, first, cut), farthest(first, second, cut) + 0.0)
}

/// The largest `upper limit of one - lower limit of the other` over all splits of the cut.
fn farthest(one: &Levels, other: &Levels, cut: f64) -> f64 {
    let gap = |share: f64| {
        let widths = ((cut * share).max(0.0).sqrt(), (cut * (1.0 - share)).max(0.0).sqrt());
        match (one.highest(widths.0), other.lowest(widths.1)) {
            (Some(high), Some(low)) => high - low,
            _ => f64::NEG_INFINITY,
        }
    };
    let stepwise = |group: &Levels| -> Vec<f64> {
        let Levels::Counted { values, horizon } = group else { return Vec::new() };
        let n = values.len() as u64;
        let (least, most) = counts_within(cut, n, *horizon).unwrap_or((1, 0));
        (least..=most).map(|count| deviance(count, n, *horizon) / cut).collect()
    };
    let (ours, theirs) = (stepwise(one), stepwise(other));
    if ours.is_empty() && theirs.is_empty() {
        // sin^2: as even in the angle between the two.
        let places: [f64; SPLITS] = std::array::from_fn(|step| step as f64 / (SPLITS - 1) as f64);
        let angle = |even: f64| {
            let sine = libm::sin(0.5 * std::f64::consts::PI * even);
            gap(sine * sine)
        };
        return peak(&places, ANGLE, angle).1;
    }
    // Limits of a counted group jump at its deviances.
    let shares = ours.into_iter().chain(theirs.into_iter().map(|share| 1.0 - share));
    shares.chain([0.0, 1.0]).map(|share| gap(share.clamp(0.0, 1.0))).fold(f64::NEG_INFINITY, f64::max)
}

/// The test of equal return levels, with the interval of their difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Q.
    pub statistic: f64,
    /// P(Q at least as large) where the levels are equal.
    pub pvalue: f64,
    /// The interval of `x_1 - x_2`.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// Compares two groups at a level of confidence.
///
/// Q is at most the sum of the misfits of the true level that both share, so the law of that sum holds whatever the laws of
/// the groups: where a group is counted it is exact. (One degree of freedom, which is right for smooth laws as the level is
/// free, is not kept where the values of a group lie apart: it rejects 2 % of equal pairs at 1 %.) Two fits are smooth.
pub fn compare(first: &Levels, second: &Levels, level: f64) -> Comparison {
    let statistic = least_misfit(first, second);
    let laws = [first.law(), second.law()];
    let tail = |found: f64| match &laws {
        [Some(ours), Some(theirs)] => ours.tail_of_sum(found, |rest| theirs.tail(rest)),
        [Some(law), None] | [None, Some(law)] => law.tail_of_sum(found, chi_square_upper_tail),
        [None, None] => chi_square_upper_tail(found),
    };
    let cut = if laws.iter().all(Option::is_none) {
        let quantile = normal_quantile(0.5 * (1.0 + level));
        quantile * quantile
    } else {
        largest(|found| tail(found) > 1.0 - level)
    };
    let (low, high) = difference_limits(first, second, cut);
    Comparison { statistic, pvalue: tail(statistic), low, high }
}

/// Compares pairs of groups, each by its places in a list, side by side. `groups` makes them anew for each pair.
///
/// # Errors
/// An error of `groups`; [`crate::Error::Cancelled`].
pub fn compare_all<'a>(
    pairs: &[(usize, usize)],
    level: f64,
    control: &Control,
    groups: impl Fn(usize) -> Result<Levels<'a>> + Sync,
) -> Result<Vec<Comparison>> {
    map_blocks(pairs.len(), 1, control, |range| {
        let (first, second) = pairs[range.start];
        Ok(compare(&groups(first)?, &groups(second)?, level))
    })
}

/// The largest number from 0 on where a condition holds that holds up to some place.
fn largest(holds: impl Fn(f64) -> bool) -> f64 {
    let mut high = 1.0;
    while holds(high) && high < 1e6 {
        high *= 2.0;
    }
    let mut low = 0.0;
    while high - low > 1e-10 * high {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
