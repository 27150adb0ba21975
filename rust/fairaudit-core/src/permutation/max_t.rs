//! Step-down max-T adjustment (Westfall and Young) from joint replicates of all groups.

use std::ops::Range;

use super::Alternative;
use crate::draws::Draws;
use crate::error::Result;
use crate::parallel::{Control, reduce_blocks};

/// A family of two-sided comparisons of pairs of groups.
///
/// All pairs share the replicates, so the joint law of their statistics is kept. The p-value of
/// the j-th largest |S| is (1 + #{`max_{i >= j}` |`S_i*`| >= |`S_j`|}) / (1 + B), made monotone.
/// An undefined statistic of a replicate counts as extreme.
pub(super) struct StepDown<'a> {
    pairs: &'a [(usize, usize)],
    observed: Vec<f64>,
    /// Positions of the pairs, the smallest observed statistic first.
    ascending: Vec<usize>,
}

impl<'a> StepDown<'a> {
    /// A family with the observed `statistic` of each pair.
    pub(super) fn new(pairs: &'a [(usize, usize)], statistic: impl Fn((usize, usize)) -> f64) -> Self {
        let observed: Vec<f64> = pairs.iter().map(|&pair| size(statistic(pair))).collect();
        let mut ascending: Vec<usize> = (0..pairs.len()).collect();
        ascending.sort_by(|&i, &j| observed[i].total_cmp(&observed[j]).then(j.cmp(&i)));
        Self { pairs, observed, ascending }
    }

    /// Counts the pairs whose observed statistic one replicate reaches.
    pub(super) fn count(&self, statistic: impl Fn((usize, usize)) -> f64, counts: &mut [u64]) {
        let mut largest = 0.0f64;
        for &pair in &self.ascending {
            largest = largest.max(size(statistic(self.pairs[pair])));
            counts[pair] += u64::from(Alternative::TwoSided.is_extreme(largest, self.observed[pair]));
        }
    }

    /// Runs `count_block` over all replicates in blocks of `block` and adjusts.
    pub(super) fn adjust(
        &self,
        draws: &Draws,
        block: u64,
        control: &Control,
        count_block: impl Fn(Range<u64>, &mut [u64]) -> Result<()> + Sync,
    ) -> Result<Vec<f64>> {
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
        let counts = reduce_blocks(draws.n().div_ceil(block) as usize, control, zero, run, add)?;
        let mut adjusted = vec![0.0; self.pairs.len()];
        let mut floor = 0.0f64;
        for &pair in self.ascending.iter().rev() {
            floor = floor.max((counts[pair] + 1) as f64 / (draws.n() + 1) as f64);
            adjusted[pair] = floor;
        }
        Ok(adjusted)
    }
}

/// |S|, infinite when it is undefined.
fn size(statistic: f64) -> f64 {
    if statistic.is_nan() { f64::INFINITY } else { statistic.abs() }
}
