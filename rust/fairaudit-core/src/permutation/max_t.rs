//! Step-down max-T adjustment (Westfall and Young) from joint replicates of all groups.

use std::ops::Range;

use super::units::one_for_each;
use super::{Alternative, GroupTest};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::parallel::{Control, reduce_blocks};

/// A family of two-sided comparisons of pairs of groups.
///
/// All pairs share the replicates, so the joint law of their statistics is kept. Of the j-th largest |S| the
/// replicates with `max_{i >= j}` |`S_i*`| >= |`S_j`| are counted; an undefined statistic of a replicate is extreme.
pub(super) struct StepDown<'a> {
    pairs: &'a [(usize, usize)],
    observed: Vec<f64>,
    /// Positions of the pairs, the smallest observed statistic first.
    ascending: Vec<usize>,
}

impl<'a> StepDown<'a> {
    /// A family of pairs of the groups of a test.
    pub(super) fn new(test: &dyn GroupTest, pairs: &'a [(usize, usize)]) -> Result<Self> {
        let n_groups = test.n_groups();
        if let Some(pair) = pairs.iter().find(|&&(i, j)| i.max(j) >= n_groups) {
            let accepted = format!("places of groups below {n_groups}");
            return Err(Error::argument("pairs", format!("{pair:?} somewhere"), &accepted));
        }
        let observed: Vec<f64> = pairs.iter().map(|&pair| size(test.pair_statistic(pair))).collect();
        let mut ascending: Vec<usize> = (0..pairs.len()).collect();
        ascending.sort_by(|&i, &j| observed[i].total_cmp(&observed[j]).then(j.cmp(&i)));
        Ok(Self { pairs, observed, ascending })
    }

    /// Counts the pairs whose observed statistic one replicate reaches.
    pub(super) fn count(&self, statistic: impl Fn((usize, usize)) -> f64, counts: &mut [u64]) {
        let mut largest = 0.0f64;
        for &pair in &self.ascending {
            largest = largest.max(size(statistic(self.pairs[pair])));
            counts[pair] += u64::from(Alternative::TwoSided.is_extreme(largest, self.observed[pair]));
        }
    }

    /// Runs `count_block` over all replicates in blocks of `block` and adds up.
    pub(super) fn count_all(
        &self,
        draws: &Draws,
        block: u64,
        control: &Control,
        count_block: impl Fn(Range<u64>, &mut [u64]) -> Result<()> + Sync,
    ) -> Result<Vec<u64>> {
        let zero = || vec![0u64; self.pairs.len()];
        let run = |counts: &mut Vec<u64>, at: usize| -> Result<()> {
            control.check()?;
            let first = draws.replicates.start + at as u64 * block;
            let replicates = first..(first + block).min(draws.replicates.end);
            let done = replicates.end - replicates.start;
            count_block(replicates, counts)?;
            control.advance(done);
            Ok(())
        };
        let add = |mut sum: Vec<u64>, counts: Vec<u64>| {
            sum.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
            Ok(sum)
        };
        reduce_blocks(draws.n().div_ceil(block) as usize, control, zero, run, add)
    }
}

/// The p-values (1 + x) / (1 + n) of pairs of groups of which [`GroupTest::max_t`] counted x of n replicates, made
/// monotone.
///
/// # Errors
/// [`Error::Argument`] when a pair is not of groups, or there is not a count of replicates for each.
pub fn step_down_pvalues(test: &dyn GroupTest, pairs: &[(usize, usize)], counts: &[u64], n: u64) -> Result<Vec<f64>> {
    let family = StepDown::new(test, pairs)?;
    one_for_each("counts", counts.len(), pairs.len(), "pairs")?;
    if let Some(count) = counts.iter().find(|&&count| count > n) {
        return Err(Error::argument("counts", format!("{count} somewhere"), &format!("at most {n} replicates")));
    }
    let mut adjusted = vec![0.0; pairs.len()];
    let mut floor = 0.0f64;
    for &pair in family.ascending.iter().rev() {
        floor = floor.max((counts[pair] as f64 + 1.0) / (n as f64 + 1.0));
        adjusted[pair] = floor;
    }
    Ok(adjusted)
}

/// |S|, infinite when it is undefined.
fn size(statistic: f64) -> f64 {
    if statistic.is_nan() { f64::INFINITY } else { statistic.abs() }
}
