//! Whether two groups have one law: rows permuted among them, the tails fitted again.
//!
//! A replicate needs the largest values of either group only: going down the pooled values, each belongs to the first
//! group with the share of its rows that are left.

use super::gpd::{Excesses, Sample, return_excess};
use super::pair::{from_t, to_t};
use super::tail::{FEWEST, Values};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::parallel::{Control, each_replicate};
use crate::random::{Domain, Stream};

/// How a return level is taken from a group.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Number of exceedances.
    pub k: usize,
    /// The horizon in rows.
    pub m: f64,
    /// The known upper end.
    pub upper: Option<f64>,
}

/// Estimated nanoseconds of a replicate.
pub fn replicate_work(k: usize) -> u64 {
    4_000 + 60 * k as u64
}

struct Scratch {
    top: [Vec<f64>; 2],
    excesses: Vec<f64>,
    sample: Excesses,
}

/// The differences of the fitted return levels, first less second, of permuted groups; NaN where ties leave fewer than
/// five exceedances.
///
/// # Errors
/// [`Error::Argument`] for more exceedances than values, or values at the upper end; [`Error::Cancelled`].
pub fn permuted_differences(
    first: &Values,
    second: &Values,
    rules: [Rule; 2],
    draws: &Draws,
    control: &Control,
) -> Result<Vec<f64>> {
    let sizes = [first.n(), second.n()];
    for (rule, n) in rules.iter().zip(sizes) {
        if rule.k + 1 > n || rule.k < FEWEST {
            let accepted = format!("from {FEWEST} to {}", n - 1);
            return Err(Error::argument("n_exceedances", rule.k, &accepted));
        }
        let largest = first.descending()[0].max(second.descending()[0]);
        if rule.upper.is_some_and(|upper| largest >= upper) {
            return Err(Error::argument("upper", largest, "more than the largest value"));
        }
    }
    let mut pooled = [first.descending(), second.descending()].concat();
    pooled.sort_unstable_by(|one, other| other.total_cmp(one));
    let empty = Excesses::empty()?;
    let scratch = || Scratch { top: [Vec::new(), Vec::new()], excesses: Vec::new(), sample: empty.clone() };
    let mut found = draws.zeros();
    each_replicate(&mut found, control, scratch, |replicate, scratch| {
        let index = draws.replicates.start + replicate;
        let mut stream = Stream::new(draws.seed, Domain::Permutation, draws.series, index, 0);
        let mut left = sizes;
        scratch.top.iter_mut().for_each(Vec::clear);
        for &value in &pooled {
            let group = usize::from(stream.below((left[0] + left[1]) as u64) >= left[0] as u64);
            left[group] -= 1;
            if scratch.top[group].len() <= rules[group].k {
                scratch.top[group].push(value);
            } else if scratch.top[1 - group].len() > rules[1 - group].k {
                break;
            }
        }
        level(0, &rules[0], sizes[0], scratch) - level(1, &rules[1], sizes[1], scratch)
    })?;
    Ok(found)
}

/// The fitted return level of a group from its k + 1 largest values.
fn level(group: usize, rule: &Rule, n: usize, scratch: &mut Scratch) -> f64 {
    let top = &scratch.top[group];
    let last = top[rule.k];
    let at = to_t(last, rule.upper);
    scratch.excesses.clear();
    let above = top.iter().take_while(|value| **value > last);
    scratch.excesses.extend(above.map(|&value| to_t(value, rule.upper) - at));
    let k = scratch.excesses.len();
    if k < FEWEST {
        return f64::NAN;
    }
    scratch.sample.refill(&scratch.excesses);
    let fit = scratch.sample.fit();
    let horizon = rule.m * k as f64 / n as f64;
    from_t(at + return_excess(fit.shape, fit.scale, horizon), rule.upper)
}
