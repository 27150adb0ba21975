//! Tests on rows, or on clusters of rows: how they are made of columns, and what they answer.
//!
//! `stream` draws the replicates.

use super::Studentize;
use super::max_t::StepDown;
use super::statistic::Comparison;
use crate::bootstrap;
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
    pub(super) units: Units,
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
    /// Expected is the metric of each group (centred) when every unit belongs to it by the share of its
    /// stratum that does: what the strata alone explain. 0 without strata.
    comparison: Comparison,
}

/// Which units exchange their groups.
#[derive(Debug, Clone)]
pub(super) enum Strata {
    /// All.
    One,
    /// Those of one stratum, by unit.
    Several(Vec<u32>),
    /// Rows of one label.
    Labels,
}

/// What tells the units of one stratum and group from those of another, whatever their order: their
/// number, then the least and the greatest value, then a sum over all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    size: usize,
    least: [u64; 4],
    greatest: [u64; 4],
    sum: u64,
}

impl Default for Segment {
    fn default() -> Self {
        Self { size: 0, least: [u64::MAX; 4], greatest: [0; 4], sum: 0 }
    }
}

impl Segment {
    fn add(&mut self, key: [u64; 4]) {
        self.size += 1;
        self.least = self.least.min(key);
        self.greatest = self.greatest.max(key);
        self.sum = key.into_iter().fold(self.sum, |sum, part| sum.wrapping_add(part.wrapping_mul(part | 1)));
    }
}

/// What exchanges its group: rows, or clusters of rows.
#[derive(Debug, Clone)]
pub(super) enum Units {
    Rows(RowMetric),
    Clusters(ClusteredAuc),
}

/// Columns of the units that every test has.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// Observed group of each unit.
    pub group: &'a [u16],
    /// Number of groups.
    pub n_groups: usize,
    /// Stratum of each unit, if there are several.
    pub stratum: Option<&'a [u32]>,
}

impl Groups<'_> {
    fn stratum_of(&self, unit: usize) -> u32 {
        self.stratum.map_or(0, |stratum| stratum[unit])
    }

    /// Refuses codes and lengths that do not fit.
    fn check(&self, units: usize) -> Result<()> {
        let lengths = [self.group.len(), self.stratum.map_or(units, <[u32]>::len)];
        if let Some(other) = lengths.into_iter().find(|&length| length != units) {
            return Err(Error::argument("rows", format!("{units} and {other}"), "columns of one length"));
        }
        if u32::try_from(units).is_err() {
            return Err(Error::argument("rows", units, "at most 2^32 - 1 rows"));
        }
        if self.n_groups < 2 || self.group.iter().any(|&g| usize::from(g) >= self.n_groups) {
            return Err(Error::argument("group", "out of range", "codes below n_groups, at least two groups"));
        }
        Ok(())
    }

    /// Puts what `value` gives for every unit in an order that does not depend on the one in which
    /// they arrive, nor on the names of the groups: by stratum and group, smaller groups first, and
    /// within these by value. Sorted in place: there are no indices.
    fn sort<T: Copy + Default + Send>(
        &self,
        value: impl Fn(usize) -> T,
        key: impl Fn(&T) -> [u64; 4] + Sync,
        control: &Control,
    ) -> Result<(Vec<T>, Vec<u16>, Strata)> {
        let units = self.group.len();
        let n_strata = self.stratum.map_or(1, |stratum| stratum.iter().max().map_or(0, |&s| s as usize + 1));
        let segment_of = |unit: usize| self.stratum_of(unit) as usize * self.n_groups + usize::from(self.group[unit]);
        let mut segments = vec![Segment::default(); n_strata * self.n_groups];
        for unit in 0..units {
            segments[segment_of(unit)].add(key(&value(unit)));
        }
        control.check()?;
        let mut order: Vec<usize> = (0..segments.len()).collect();
        order.sort_by_key(|&segment| (segment / self.n_groups, segments[segment]));
        let mut next = vec![0; segments.len()];
        let mut start = 0;
        for &segment in &order {
            next[segment] = start;
            start += segments[segment].size;
        }
        let mut values = vec![T::default(); units];
        for unit in 0..units {
            let next = &mut next[segment_of(unit)];
            values[*next] = value(unit);
            *next += 1;
        }
        let mut rest = &mut values[..];
        let mut parts = Vec::with_capacity(order.len());
        for &segment in &order {
            let (part, others) = rest.split_at_mut(segments[segment].size);
            parts.push(part);
            rest = others;
        }
        control.check()?;
        parallel::for_each(parts, |part| parallel::sort_by_key(part, &key));
        let (mut group, mut stratum) = (Vec::with_capacity(units), Vec::new());
        for &segment in &order {
            group.resize(group.len() + segments[segment].size, (segment % self.n_groups) as u16);
            if self.stratum.is_some() {
                stratum.resize(group.len(), (segment / self.n_groups) as u32);
            }
        }
        let strata = if self.stratum.is_some() { Strata::Several(stratum) } else { Strata::One };
        Ok((values, group, strata))
    }
}

impl RowTest {
    /// Prepares a test of units that are in order.
    fn new(
        mut units: Units,
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
        let (center, totals) = match &mut units {
            Units::Rows(metric) => (metric.center(), of_each_metric!(metric, metric => totals(metric, group.len()))),
            Units::Clusters(_) => (0.0, Vec::new()),
        };
        let comparison = Comparison { expected: vec![0.0; n_groups], studentize };
        let (sizes, observed) = (Vec::new(), Vec::new());
        let mut test = Self { units, center, group, strata, sizes, totals, observed, comparison };
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
        test.observed = match &test.units {
            Units::Rows(RowMetric::Auc(auc)) => auc.observed(&test.group, n_groups),
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

    /// A test of the AUC: `score` and `positive` of each row, in any order, with weights that
    /// are 1 when they are left out. `within_labels`: rows of one label exchange their groups; not
    /// together with strata.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit, or there are more than 2^32 - 1 rows; [`Error::Cancelled`].
    pub fn auc(
        score: &[f64],
        positive: &[bool],
        weight: Option<&[f64]>,
        groups: Groups<'_>,
        within_labels: bool,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let rows = score.len();
        groups.check(rows)?;
        if positive.len() != rows || weight.is_some_and(|weight| weight.len() != rows) {
            return Err(Error::argument("rows", format!("{rows} and {}", positive.len()), "columns of one length"));
        }
        if within_labels && groups.stratum.is_some() {
            return Err(Error::argument("within_labels", "true with strata", "strata that tell the labels apart"));
        }
        let order = order(score, |row| {
            let weight = weight.map_or(0, |weight| ordered_bits(weight[row]));
            (positive[row], weight, groups.stratum_of(row), groups.group[row])
        });
        control.check()?;
        let at = |i: usize| row_of(order[i]);
        let tied = |i: usize| i + 1 < rows && score[at(i)] == score[at(i + 1)];
        let flags: Vec<RowFlags> = (0..rows).map(|i| RowFlags::new(positive[at(i)], tied(i))).collect();
        let group = order.iter().map(|&key| groups.group[row_of(key)]).collect();
        let strata = match groups.stratum {
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
        Self::new(Units::Rows(metric), group, groups.n_groups, strata, studentize, control)
    }

    /// A test of the AUC where rows of one cluster move together; `groups` are of the clusters,
    /// `cluster` gives the cluster of each row.
    ///
    /// # Errors
    /// As [`RowTest::auc`].
    pub fn clustered_auc(
        score: &[f64],
        positive: &[bool],
        weight: Option<&[f64]>,
        cluster: &[u32],
        groups: Groups<'_>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let auc = ClusteredAuc::new(score, positive, weight, cluster, groups.group.len())?;
        groups.check(auc.n_clusters())?;
        let strata = groups.stratum.map_or(Strata::One, |stratum| Strata::Several(stratum.to_vec()));
        Self::new(Units::Clusters(auc), groups.group.to_vec(), groups.n_groups, strata, studentize, control)
    }

    /// A test of sum a / sum d, of rows in any order; d is 1 when it is left out.
    ///
    /// # Errors
    /// As [`RowTest::auc`].
    pub fn ratio(
        numerator: &[f64],
        denominator: Option<&[f64]>,
        groups: Groups<'_>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        groups.check(numerator.len())?;
        let (metric, group, strata) = match denominator {
            None => {
                let (values, group, strata) =
                    groups.sort(|row| numerator[row], |&value| [ordered_bits(value), 0, 0, 0], control)?;
                (RowMetric::Mean(Mean::new(values)), group, strata)
            }
            Some(denominator) if denominator.len() == numerator.len() => {
                let key = |[a, d]: &[f64; 2]| [ordered_bits(*a), ordered_bits(*d), 0, 0];
                let (terms, group, strata) = groups.sort(|row| [numerator[row], denominator[row]], key, control)?;
                (RowMetric::Ratio(Ratio::new(terms)), group, strata)
            }
            Some(denominator) => {
                let lengths = format!("{} and {}", numerator.len(), denominator.len());
                return Err(Error::argument("rows", lengths, "columns of one length"));
            }
        };
        Self::new(Units::Rows(metric), group, groups.n_groups, strata, studentize, control)
    }

    /// A test of a formula over confusion counts, of units that each bring weighted counts: rows
    /// or clusters, in any order.
    ///
    /// # Errors
    /// As [`RowTest::auc`], and when the metric is not one over tp, fp, fn, tn.
    pub fn counts(
        counts: &[[f64; 4]],
        metric: &Metric,
        groups: Groups<'_>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        groups.check(counts.len())?;
        let (units, group, strata) = groups.sort(|unit| counts[unit], |counts| counts.map(ordered_bits), control)?;
        let metric = RowMetric::Counts(Counts::new(units, metric.clone())?);
        Self::new(Units::Rows(metric), group, groups.n_groups, strata, studentize, control)
    }

    /// Number of units: rows or clusters.
    pub fn n_units(&self) -> usize {
        self.group.len()
    }

    /// Estimated nanoseconds of a replicate on one thread.
    pub fn replicate_work(&self) -> u64 {
        match &self.units {
            Units::Rows(_) => self.n_units() as u64,
            Units::Clusters(auc) => 4 * auc.n_rows() as u64,
        }
    }

    /// Whether the null distribution of a difference must be centred at its own mean.
    pub fn needs_centring(&self) -> bool {
        self.n_groups() == 2 && self.sizes.len() > 1
    }

    pub(crate) fn n_groups(&self) -> usize {
        self.sizes[0].len()
    }

    /// The metric in every group of the observed rows.
    pub fn evaluations(&self) -> Vec<Evaluation> {
        let mut groups = self.observed.clone();
        for group in &mut groups {
            group.value += self.center;
        }
        groups
    }

    /// The metric of every group, `members` telling to what extent a unit belongs to each.
    fn evaluate_members(&self, members: impl Fn(usize, &mut [Lanes])) -> Vec<Evaluation> {
        let (rows, n_groups) = (self.n_units(), self.n_groups());
        match &self.units {
            Units::Rows(metric) => of_each_metric!(metric, metric => sums_of(metric, rows, n_groups, members)),
            Units::Clusters(auc) => {
                let mut member = vec![[0.0; LANES]; rows * n_groups];
                member.chunks_mut(n_groups).enumerate().for_each(|(unit, member)| members(unit, member));
                let mut evaluations = auc.evaluate(&member, n_groups);
                evaluations.truncate(n_groups);
                evaluations
            }
        }
    }

    /// The metric of each group that its strata alone explain, less that of all rows.
    pub fn expected(&self) -> &[f64] {
        &self.comparison.expected
    }

    /// The observed statistic.
    pub fn observed(&self) -> f64 {
        self.comparison.of_all(&self.observed)
    }

    /// The statistic of some permutations, in the order of the replicates.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn null_distribution(
        &self,
        draws: &Draws,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let mut null = draws.zeros();
        let fill = |block: usize, chunk: &mut [f64], (): &mut ()| -> Result<()> {
            let first = draws.replicates.start + (block * LANES) as u64;
            let groups = self.replicates(draws, first, instructions, control)?;
            for (value, groups) in chunk.iter_mut().zip(groups.chunks(self.n_groups())) {
                *value = self.comparison.of_all(groups);
            }
            control.advance(chunk.len() as u64);
            Ok(())
        };
        parallel::fill(&mut null, LANES, control, || (), fill)?;
        Ok(null)
    }

    /// Step-down max-T p-values of pairs of groups; see `StepDown`.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn max_t(
        &self,
        pairs: &[(usize, usize)],
        draws: &Draws,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let family = StepDown::new(pairs, |pair| self.comparison.of_pair(&self.observed, pair));
        family.adjust(draws, LANES as u64, control, |replicates, counts| {
            let all = self.replicates(draws, replicates.start, instructions, control)?;
            let lanes = (replicates.end - replicates.start) as usize;
            for groups in all.chunks(self.n_groups()).take(lanes) {
                family.count(|pair| self.comparison.of_pair(groups, pair), counts);
            }
            Ok(())
        })
    }

    /// Bootstrap replicates: every group's units drawn with replacement; strata play no part.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn bootstrap(
        &self,
        draws: &Draws,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<bootstrap::Replicates> {
        let members = |group: usize| -> Vec<u32> {
            (0..self.n_units() as u32).filter(|&unit| usize::from(self.group[unit as usize]) == group).collect()
        };
        let members: Vec<Vec<u32>> = (0..self.n_groups()).map(members).collect();
        let mut results = match &self.units {
            Units::Rows(metric) => {
                let groups: Vec<RowMetric> = members.iter().map(|rows| metric.select(rows)).collect();
                bootstrap::of_rows(&groups, draws, instructions, control)?
            }
            Units::Clusters(auc) => {
                let n_groups = self.n_groups();
                bootstrap::of_lanes(draws, n_groups, control, |first| {
                    let mut member = vec![[0.0; LANES]; self.n_units() * n_groups];
                    for (group, units) in members.iter().enumerate() {
                        let visit = |i: usize, times: Lanes| member[units[i] as usize * n_groups + group] = times;
                        bootstrap::multiplicities(units.len(), draws, first, group as u64, instructions, visit);
                    }
                    Ok(auc.evaluate(&member, n_groups))
                })?
            }
        };
        for (value, _) in &mut results {
            *value += self.center;
        }
        Ok(results)
    }

    /// The stratum of a unit.
    #[inline(always)]
    pub(super) fn stratum_of(&self, unit: usize) -> usize {
        match &self.strata {
            Strata::One => 0,
            Strata::Several(stratum) => stratum[unit] as usize,
            Strata::Labels => match &self.units {
                Units::Rows(RowMetric::Auc(Auc { flags }) | RowMetric::WeightedAuc(WeightedAuc { flags, .. })) => {
                    usize::from(flags[unit].is_positive())
                }
                _ => 0,
            },
        }
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
