//! Tests on rows, or on clusters of rows: how they are made of columns, and what they answer.
//!
//! `stream` draws the replicates.

use super::max_t::StepDown;
use super::statistic::Comparison;
use super::units::{Strata, Units, one_for_each};
use super::{GroupTest, PermutationTest, Studentize};
use crate::bootstrap::{self, Replicates};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::auc::{Auc, ClusteredAuc, RowFlags, WeightedAuc};
use crate::metrics::row_sums::{Counts, Lanes, Mean, Ratio, RowSums};
use crate::metrics::{Evaluation, Metric, RowMetric, of_each_metric};
use crate::numerics::order::{order, ordered_bits, row_of};
use crate::parallel::{self, Control};
use crate::simd::{InstructionSet, LANES};

/// A permutation test on rows, or on clusters of rows.
#[derive(Debug, Clone)]
pub struct RowTest {
    pub(super) metric: UnitMetric,
    /// The ratio or mean of all rows, which was taken away from every row; 0 of other metrics.
    center: f64,
    /// Observed group of each unit.
    group: Vec<u16>,
    pub(super) strata: Strata,
    /// Units by stratum and group.
    pub(super) sizes: Vec<Vec<u32>>,
    /// Sums over all units, of metrics whose sums are the same in every replicate.
    pub(super) totals: Vec<f64>,
    /// The metric of each group (centred) as observed.
    observed: Vec<Evaluation>,
    pub(super) instructions: InstructionSet,
    /// Expected is the metric of each group (centred) when every unit belongs to it by the share of its
    /// stratum that does: what the strata alone explain. 0 without strata.
    comparison: Comparison,
}

/// The metric with what it adds up: over rows, or clusters of rows.
#[derive(Debug, Clone)]
pub(super) enum UnitMetric {
    Rows(RowMetric),
    Clusters(ClusteredAuc),
}

impl RowTest {
    /// Prepares a test of units that are in order.
    fn new(
        mut metric: UnitMetric,
        group: Vec<u16>,
        n_groups: usize,
        strata: Strata,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        if studentize == Studentize::Pooled {
            return Err(Error::argument("studentize", "\"pooled\"", "\"pooled\" only for proportions"));
        }
        control.check()?;
        let (center, totals) = match &mut metric {
            UnitMetric::Rows(metric) => {
                (metric.center(), of_each_metric!(metric, metric => totals(metric, group.len())))
            }
            UnitMetric::Clusters(_) => (0.0, Vec::new()),
        };
        let comparison = Comparison { expected: vec![0.0; n_groups], studentize };
        let (sizes, observed, instructions) = (Vec::new(), Vec::new(), InstructionSet::current()?);
        let mut test = Self { metric, center, group, strata, sizes, totals, observed, instructions, comparison };
        let n_strata = match &test.strata {
            Strata::One => 1,
            Strata::Several(stratum) => stratum.iter().max().map_or(0, |&s| s as usize + 1),
            Strata::Labels => 2,
        };
        test.sizes = vec![vec![0u32; n_groups]; n_strata];
        for unit in 0..test.group.len() {
            let stratum = test.stratum_of(unit);
            test.sizes[stratum][usize::from(test.group[unit])] += 1;
        }
        control.check()?;
        test.observed = match &test.metric {
            UnitMetric::Rows(RowMetric::Auc(auc)) => auc.observed(&test.group, n_groups),
            _ => test.evaluate_members(|row, member| {
                member.fill([0.0; LANES]);
                member[usize::from(test.group[row])] = [1.0; LANES];
            }),
        };
        if !matches!(test.strata, Strata::One) {
            control.check()?;
            let groups = test.evaluate_members(|row, member| {
                let sizes = &test.sizes[test.stratum_of(row)];
                let rows = f64::from(sizes.iter().sum::<u32>());
                for (member, &size) in member.iter_mut().zip(sizes) {
                    *member = [f64::from(size) / rows; LANES];
                }
            });
            test.comparison.expected =
                groups.iter().map(|group| if group.is_defined() { group.value } else { 0.0 }).collect();
        }
        Ok(test)
    }

    /// The same with loops compiled for a chosen instruction set, which this processor must have.
    #[must_use]
    pub fn with_instructions(self, instructions: InstructionSet) -> Self {
        Self { instructions, ..self }
    }

    /// A test of the AUC: `score` and `positive` (0: not) of each row, in any order, with weights that are 1 when they are left
    /// out. Where units are clusters, the rows of one move together. `within_labels`: rows of one label exchange their
    /// groups; not together with strata or clusters.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit, or there are more than 2^32 - 1 rows; [`Error::Cancelled`].
    pub fn auc(
        score: &[f64],
        positive: &[u8],
        weight: Option<&[f64]>,
        units: Units<'_>,
        within_labels: bool,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let rows = score.len();
        one_for_each("positive", positive.len(), rows, "rows")?;
        one_for_each("weight", weight.map_or(rows, <[f64]>::len), rows, "rows")?;
        if within_labels && (units.stratum.is_some() || units.of_row.is_some()) {
            let accepted = "strata that tell the labels apart, and no clusters";
            return Err(Error::argument("within_labels", "true with strata or clusters", accepted));
        }
        let strata = units.fewer_strata();
        let units = units.with_strata(strata.as_deref());
        units.check()?;
        if let Some(cluster) = units.of_row {
            one_for_each("of_row", cluster.len(), rows, "rows")?;
            let auc = ClusteredAuc::new(score, positive, weight, cluster, units.group.len())?;
            let strata = units.stratum.map_or(Strata::One, |stratum| Strata::Several(stratum.to_vec()));
            let group = units.group.to_vec();
            return Self::new(UnitMetric::Clusters(auc), group, units.n_groups, strata, studentize, control);
        }
        units.check_column("score", rows)?;
        let order = order(score, |row| {
            let weight = weight.map_or(0, |weight| ordered_bits(weight[row]));
            (positive[row] != 0, weight, units.stratum_of(row), units.group[row])
        });
        control.check()?;
        let at = |i: usize| row_of(order[i]);
        let tied = |i: usize| i + 1 < rows && score[at(i)] == score[at(i + 1)];
        let flags: Vec<RowFlags> = (0..rows).map(|i| RowFlags::new(positive[at(i)] != 0, tied(i))).collect();
        let group = order.iter().map(|&key| units.group[row_of(key)]).collect();
        let strata = match units.stratum {
            Some(stratum) => Strata::Several(order.iter().map(|&key| stratum[row_of(key)]).collect()),
            None if within_labels => Strata::Labels,
            None => Strata::One,
        };
        let metric = match weight {
            None => RowMetric::Auc(Auc { flags }),
            Some(weight) => {
                let weight = order.iter().map(|&key| weight[row_of(key)]).collect();
                RowMetric::WeightedAuc(WeightedAuc { flags, weight })
            }
        };
        drop(order);
        Self::new(UnitMetric::Rows(metric), group, units.n_groups, strata, studentize, control)
    }

    /// A test of sum a / sum d, of units in any order, whatever their rows; d is 1 when it is left out.
    ///
    /// # Errors
    /// As [`RowTest::auc`].
    pub fn ratio(
        numerator: &[f64],
        denominator: Option<&[f64]>,
        units: Units<'_>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let strata = units.fewer_strata();
        let units = units.with_strata(strata.as_deref());
        units.check()?;
        units.check_column("numerator", numerator.len())?;
        units.check_column("denominator", denominator.map_or(numerator.len(), <[f64]>::len))?;
        let (metric, group, strata) = if let Some(denominator) = denominator {
            let key = |[a, d]: &[f64; 2]| [ordered_bits(*a), ordered_bits(*d), 0, 0];
            let (terms, group, strata) = units.sort(|unit| [numerator[unit], denominator[unit]], key, control)?;
            (RowMetric::Ratio(Ratio::new(terms)), group, strata)
        } else {
            let key = |value: &f64| [ordered_bits(*value), 0, 0, 0];
            let (values, group, strata) = units.sort(|unit| numerator[unit], key, control)?;
            (RowMetric::Mean(Mean::new(values)), group, strata)
        };
        Self::new(UnitMetric::Rows(metric), group, units.n_groups, strata, studentize, control)
    }

    /// A test of a formula over confusion counts, of units that each bring weighted counts, in any order.
    ///
    /// # Errors
    /// As [`RowTest::auc`], and when the metric is not one over tp, fp, fn, tn.
    pub fn counts(
        counts: &[[f64; 4]],
        metric: &Metric,
        units: Units<'_>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let strata = units.fewer_strata();
        let units = units.with_strata(strata.as_deref());
        units.check()?;
        units.check_column("counts", counts.len())?;
        let (values, group, strata) = units.sort(|unit| counts[unit], |counts| counts.map(ordered_bits), control)?;
        let metric = RowMetric::Counts(Counts::new(values, metric.clone())?);
        Self::new(UnitMetric::Rows(metric), group, units.n_groups, strata, studentize, control)
    }

    /// Number of units: rows or clusters.
    pub fn n_units(&self) -> usize {
        self.group.len()
    }

    /// The metric of every group, `members` telling to what extent a unit belongs to each.
    fn evaluate_members(&self, members: impl Fn(usize, &mut [Lanes])) -> Vec<Evaluation> {
        let (rows, n_groups) = (self.n_units(), self.n_groups());
        match &self.metric {
            UnitMetric::Rows(metric) => of_each_metric!(metric, metric => sums_of(metric, rows, n_groups, members)),
            UnitMetric::Clusters(auc) => {
                let mut member = vec![[0.0; LANES]; rows * n_groups];
                member.chunks_mut(n_groups).enumerate().for_each(|(unit, member)| members(unit, member));
                let mut evaluations = auc.evaluate(&member, n_groups);
                evaluations.truncate(n_groups);
                evaluations
            }
        }
    }

    /// The stratum of a unit.
    #[inline(always)]
    pub(super) fn stratum_of(&self, unit: usize) -> usize {
        match &self.strata {
            Strata::One => 0,
            Strata::Several(stratum) => stratum[unit] as usize,
            Strata::Labels => match &self.metric {
                UnitMetric::Rows(RowMetric::Auc(Auc { flags }) | RowMetric::WeightedAuc(WeightedAuc { flags, .. })) => {
                    usize::from(flags[unit].is_positive())
                }
                _ => 0,
            },
        }
    }
}

impl PermutationTest for RowTest {
    fn observed(&self) -> f64 {
        self.comparison.of_all(&self.observed)
    }

    fn evaluations(&self) -> Vec<Evaluation> {
        self.observed.iter().map(|group| Evaluation { value: group.value + self.center, ..*group }).collect()
    }

    fn replicate_work(&self) -> u64 {
        match &self.metric {
            UnitMetric::Rows(_) => self.n_units() as u64,
            UnitMetric::Clusters(auc) => 4 * auc.n_rows() as u64,
        }
    }

    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let mut null = draws.zeros();
        let fill = |block: usize, chunk: &mut [f64], (): &mut ()| -> Result<()> {
            let first = draws.replicates.start + (block * LANES) as u64;
            let groups = self.replicates(draws, first, control)?;
            for (value, groups) in chunk.iter_mut().zip(groups.chunks(self.n_groups())) {
                *value = self.comparison.of_all(groups);
            }
            control.advance(chunk.len() as u64);
            Ok(())
        };
        parallel::fill(&mut null, LANES, control, || (), fill)?;
        Ok(null)
    }

    fn needs_centring(&self) -> bool {
        self.n_groups() == 2 && self.sizes.len() > 1
    }

    fn groups(&self) -> Option<&dyn GroupTest> {
        Some(self)
    }
}

impl GroupTest for RowTest {
    fn n_groups(&self) -> usize {
        self.comparison.expected.len()
    }

    /// Less the metric of all units.
    fn expected(&self) -> &[f64] {
        &self.comparison.expected
    }

    fn pair_statistic(&self, pair: (usize, usize)) -> f64 {
        self.comparison.of_pair(&self.observed, pair)
    }

    fn max_t(&self, pairs: &[(usize, usize)], draws: &Draws, control: &Control) -> Result<Vec<u64>> {
        let family = StepDown::new(self, pairs)?;
        family.count_all(draws, LANES as u64, control, |replicates, counts| {
            let all = self.replicates(draws, replicates.start, control)?;
            let lanes = (replicates.end - replicates.start) as usize;
            for groups in all.chunks(self.n_groups()).take(lanes) {
                family.count(|pair| self.comparison.of_pair(groups, pair), counts);
            }
            Ok(())
        })
    }

    fn bootstrap(&self, with_variances: bool, draws: &Draws, control: &Control) -> Result<Replicates> {
        let members = |group: usize| -> Vec<u32> {
            (0..self.n_units() as u32).filter(|&unit| usize::from(self.group[unit as usize]) == group).collect()
        };
        let members: Vec<Vec<u32>> = (0..self.n_groups()).map(members).collect();
        let mut replicates = match &self.metric {
            UnitMetric::Rows(metric) => {
                let groups: Vec<RowMetric> = members.iter().map(|rows| metric.select(rows)).collect();
                bootstrap::of_rows(&groups, with_variances, draws, self.instructions, control)?
            }
            UnitMetric::Clusters(auc) => {
                let n_groups = self.n_groups();
                bootstrap::of_lanes(n_groups, with_variances, draws, control, |first| {
                    let mut member = vec![[0.0; LANES]; self.n_units() * n_groups];
                    for (group, units) in members.iter().enumerate() {
                        let visit = |i: usize, times: Lanes| member[units[i] as usize * n_groups + group] = times;
                        bootstrap::multiplicities(units.len(), draws, first, group as u64, self.instructions, visit);
                    }
                    Ok(auc.evaluate(&member, n_groups))
                })?
            }
        };
        replicates.shift(self.center);
        Ok(replicates)
    }
}

/// The metric of every group when `members` tells to what extent a row belongs to each.
fn sums_of<const N: usize, M: RowSums<N>>(
    metric: &M,
    rows: usize,
    n_groups: usize,
    members: impl Fn(usize, &mut [Lanes]),
) -> Vec<Evaluation> {
    let (mut sums, mut open) = (vec![[[0.0; LANES]; N]; n_groups], M::Open::default());
    let mut member = vec![[0.0; LANES]; n_groups];
    for row in 0..rows {
        members(row, &mut member);
        metric.add(row, &member, &mut sums, &mut open);
    }
    sums.iter().map(|sums| metric.evaluate(sums.map(|lanes| lanes[0]))).collect()
}

/// Sums over all rows of a metric whose sums are the same in every replicate.
fn totals<const N: usize, M: RowSums<N>>(metric: &M, rows: usize) -> Vec<f64> {
    if !M::ADDITIVE {
        return Vec::new();
    }
    let (mut sums, mut open) = ([[[0.0; LANES]; N]], M::Open::default());
    for row in 0..rows {
        metric.add(row, &[[1.0; LANES]], &mut sums, &mut open);
    }
    sums[0].iter().map(|lanes| lanes[0]).collect()
}

#[cfg(test)]
mod tests;
