//! Tests on rows, or on clusters of rows: how they are made of columns, and what they answer.
//!
//! `stream` draws the replicates.

use std::collections::HashMap;

use super::max_t::StepDown;
use super::scores::Scores;
use super::shifts::Shifts;
use super::statistic::Comparison;
use super::strata::{Contrast, Part, Total};
use super::sums::{observed_sums, sums_of, totals};
use super::units::{Exchange, Sorted, Units, one_for_each};
use super::{GroupTest, PermutationTest, Studentize};
use crate::bootstrap::{self, Replicates};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::auc::{Auc, ClusteredAuc, Drawn, Members, Observed, WeightedAuc};
use crate::metrics::row_sums::{Counts, Lanes, Mean, Ratio, RowSums};
use crate::metrics::{Evaluation, Metric, RowMetric, of_each_metric};
use crate::numerics::order::ordered_bits;
use crate::parallel::{self, Control};
use crate::simd::{InstructionSet, LANES};

/// A permutation test on rows, or on clusters of rows.
#[derive(Debug, Clone)]
pub struct RowTest {
    /// The strata of the user's, in which gaps are taken; all units where there are none.
    pub(super) blocks: Vec<Block>,
    n_groups: usize,
    /// The metric of each group, of all its units.
    observed: Vec<Evaluation>,
    pub(super) studentize: Studentize,
    /// Whether a p-value is made of a second statistic too.
    corrected: bool,
    pub(super) instructions: InstructionSet,
}

/// The units of one stratum, in order.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) metric: UnitMetric,
    /// The ratio or mean of all units, which was taken away from every one; 0 of other metrics.
    center: f64,
    /// Observed group of each unit.
    pub(super) group: Vec<u16>,
    /// Which of them exchange their groups.
    pub(super) exchange: Exchange,
    /// Units by part and group.
    pub(super) sizes: Vec<Vec<u32>>,
    /// Sums over all units, of metrics whose sums are the same in every replicate.
    pub(super) totals: Vec<f64>,
    /// What each group brings (centred) as observed.
    observed: Vec<Member>,
    /// Expected is the metric of each group (centred) when every unit belongs to it by the share of its
    /// part that does: what the parts alone explain. 0 where there is one part.
    pub(super) expected: Vec<f64>,
}

/// The metric of a group of units, with what the group counts for in a stratum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) evaluation: Evaluation,
    size: f64,
    units: (f64, bool),
}

impl Member {
    /// What the group brings to a stratum in which so much is expected of it.
    pub(super) fn part(&self, expected: f64) -> Part {
        Part::new(&self.evaluation, expected, self.size, self.units)
    }
}

/// The metric with what it adds up: over rows, or clusters of rows.
#[derive(Debug, Clone)]
pub(super) enum UnitMetric {
    Rows(RowMetric),
    Clusters(ClusteredAuc),
}

impl Block {
    pub(super) fn new(
        mut metric: UnitMetric,
        group: Vec<u16>,
        n_groups: usize,
        exchange: Exchange,
        control: &Control,
    ) -> Result<Self> {
        control.check()?;
        let instructions = InstructionSet::current()?;
        let (center, totals) = match &mut metric {
            UnitMetric::Rows(metric) => {
                let center = metric.center();
                control.check()?;
                (center, of_each_metric!(metric, metric => totals(metric, group.len(), instructions, control)?))
            }
            UnitMetric::Clusters(_) => (0.0, Vec::new()),
        };
        control.check()?;
        let (sizes, observed) = (Vec::new(), Vec::new());
        let mut block =
            Self { metric, center, group, exchange, sizes, totals, observed, expected: vec![0.0; n_groups] };
        block.sizes = vec![vec![0u32; n_groups]; block.exchange.n_parts()];
        for unit in 0..block.group.len() {
            let part = block.part_of(unit);
            block.sizes[part][usize::from(block.group[unit])] += 1;
        }
        control.check()?;
        block.observed = match &block.metric {
            UnitMetric::Rows(RowMetric::Auc(auc)) => {
                let groups = auc.observed(&block.group, n_groups);
                groups.into_iter().enumerate().map(|(g, of_group)| block.member_of_auc(of_group, g)).collect()
            }
            UnitMetric::Rows(metric) => of_each_metric!(metric, metric => {
                let sums = observed_sums(metric, &block.group, n_groups, instructions, control)?;
                sums.into_iter().enumerate().map(|(g, sums)| block.member(metric, g, sums)).collect()
            }),
            UnitMetric::Clusters(auc) => {
                let observed = Observed(&block.group);
                block.members_of_clusters(auc, &observed, 1, true, instructions, control)?
            }
        };
        if block.sizes.len() > 1 {
            control.check()?;
            let expected = block.expectations(instructions, control)?;
            block.expected = expected.into_iter().map(|value| if value.is_nan() { 0.0 } else { value }).collect();
        }
        Ok(block)
    }

    /// The metric of every group when each unit belongs to it by the share of its part that does.
    fn expectations(&self, instructions: InstructionSet, control: &Control) -> Result<Vec<f64>> {
        let n_groups = self.expected.len();
        let shares: Vec<Vec<f64>> = self
            .sizes
            .iter()
            .map(|sizes| {
                let rows = f64::from(sizes.iter().sum::<u32>());
                sizes.iter().map(|&size| f64::from(size) / rows).collect()
            })
            .collect();
        match &self.metric {
            UnitMetric::Rows(metric) => of_each_metric!(metric, metric => {
                let members = |row: usize, member: &mut [Lanes]| {
                    for (member, &share) in member.iter_mut().zip(&shares[self.part_of(row)]) {
                        *member = [share; LANES];
                    }
                };
                let sums = sums_of(metric, self.n_units(), n_groups, members, instructions, control)?;
                Ok(sums.into_iter().map(|sums| metric.evaluate(sums).value).collect())
            }),
            UnitMetric::Clusters(auc) => {
                Ok(auc.expected(n_groups, |cluster, group| shares[self.part_of(cluster)][group]))
            }
        }
    }

    /// What a group with this area brings: rows count for themselves.
    fn member_of_auc(&self, evaluation: Evaluation, group: usize) -> Member {
        let rows = self.n_members(group);
        Member { evaluation, size: rows, units: (rows, true) }
    }

    pub(super) fn n_units(&self) -> usize {
        self.group.len()
    }

    /// Units of a group.
    pub(super) fn n_members(&self, group: usize) -> f64 {
        self.sizes.iter().map(|sizes| f64::from(sizes[group])).sum()
    }

    /// The metric of a group from its sums, with what it counts for.
    pub(super) fn member<const N: usize, M: RowSums<N>>(&self, metric: &M, group: usize, sums: [f64; N]) -> Member {
        let units = metric.units(sums, self.n_members(group));
        Member { evaluation: metric.evaluate(sums), size: metric.size(sums), units }
    }

    /// The area of every group (fastest) in some lanes; what a group counts for in a stratum is 0 where nobody asks.
    pub(super) fn members_of_clusters(
        &self,
        auc: &ClusteredAuc,
        members: &impl Members,
        lanes: usize,
        with_sizes: bool,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<Member>> {
        let n_groups = self.expected.len();
        let groups = auc.evaluate(members, n_groups, lanes, instructions, control)?;
        let sizes = if with_sizes { auc.sizes(members, n_groups, lanes) } else { vec![0.0; groups.len()] };
        let each = groups.into_iter().zip(sizes).enumerate();
        Ok(each
            .map(|(i, (evaluation, size))| Member { evaluation, size, units: (self.n_members(i % n_groups), false) })
            .collect())
    }

    /// The part of a unit.
    #[inline(always)]
    pub(super) fn part_of(&self, unit: usize) -> usize {
        match &self.exchange {
            Exchange::All => 0,
            Exchange::Parts(part) => part[unit] as usize,
            Exchange::Labels => match &self.metric {
                UnitMetric::Rows(RowMetric::Auc(Auc { flags }) | RowMetric::WeightedAuc(WeightedAuc { flags, .. })) => {
                    usize::from(flags[unit].is_positive())
                }
                _ => 0,
            },
        }
    }

    /// The metric of the groups as observed.
    pub(super) fn evaluations(&self) -> Vec<Evaluation> {
        let shifted = |member: &Member| {
            let (centred, value) = (member.evaluation.value, member.evaluation.value + self.center);
            // What rounding leaves of nothing is nothing: no weighted row decided is a rate of 0.
            let value = if value.abs() <= 1e-14 * (centred.abs() + self.center.abs()) { 0.0 } else { value };
            Evaluation { value, ..member.evaluation }
        };
        self.observed.iter().map(shifted).collect()
    }

    /// What the groups bring to the stratum as observed.
    fn parts(&self) -> Vec<Part> {
        self.observed.iter().zip(&self.expected).map(|(member, &expected)| member.part(expected)).collect()
    }
}

impl RowTest {
    /// A test of units in order, by stratum; `all` is the metric of the groups without strata, where there are some.
    pub(super) fn new(
        blocks: Vec<Block>,
        all: Option<Vec<Evaluation>>,
        n_groups: usize,
        studentize: Studentize,
    ) -> Result<Self> {
        if studentize == Studentize::Pooled {
            return Err(Error::argument("studentize", "\"pooled\"", "\"pooled\" only for proportions"));
        }
        let observed = all.or_else(|| blocks.first().map(Block::evaluations)).unwrap_or_default();
        let corrected = studentize == Studentize::Corrected;
        let ratio = |block: &Block| matches!(&block.metric, UnitMetric::Rows(RowMetric::Mean(_) | RowMetric::Ratio(_)));
        if corrected && !blocks.iter().all(ratio) {
            let accepted = "\"corrected\" for means and ratios; \"unpooled\" for this metric";
            return Err(Error::argument("studentize", "\"corrected\"", accepted));
        }
        let studentize = if corrected { Studentize::Unpooled } else { studentize };
        Ok(Self { blocks, n_groups, observed, studentize, corrected, instructions: InstructionSet::current()? })
    }

    /// The same with loops compiled for a chosen instruction set, which this processor must have.
    #[must_use]
    pub fn with_instructions(self, instructions: InstructionSet) -> Self {
        Self { instructions, ..self }
    }

    /// A test of the AUC. Where units are clusters, the rows of one move together. `within_labels`: rows of one label
    /// exchange their groups; not together with parts or clusters.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit, or there are more than 2^32 - 1 rows; [`Error::Cancelled`].
    pub fn auc(
        scores: Scores<'_>,
        units: Units<'_>,
        within_labels: bool,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let rows = scores.score.len();
        one_for_each("positive", scores.positive.len(), rows, "rows")?;
        one_for_each("weight", scores.weight.map_or(rows, <[f64]>::len), rows, "rows")?;
        if within_labels && (units.part.is_some() || units.of_row.is_some()) {
            let accepted = "parts that tell the labels apart, and no clusters";
            return Err(Error::argument("within_labels", "true with parts or clusters", accepted));
        }
        if scores.places.is_some() && units.of_row.is_some() {
            return Err(Error::argument(
                "places",
                "given with clusters",
                "places of the groups of rows, and no clusters",
            ));
        }
        let codes = units.fewer_codes();
        let units = units.with_codes(&codes);
        units.check_among(scores.places.map_or(units.n_groups, <[u16]>::len))?;
        if let Some(cluster) = units.of_row {
            one_for_each("of_row", cluster.len(), rows, "rows")?;
            return scores.of_clusters(cluster, units, studentize, control);
        }
        units.check_column("score", rows)?;
        scores.of_rows(units, within_labels, studentize, control)
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
        let Some(denominator) = denominator else {
            return Self::mean(numerator.to_vec(), units, studentize, control);
        };
        let codes = units.fewer_codes();
        let units = units.with_codes(&codes);
        units.check()?;
        units.check_column("numerator", numerator.len())?;
        units.check_column("denominator", denominator.len())?;
        let terms = numerator.iter().zip(denominator).map(|(&a, &d)| [a, d]).collect();
        let key = |[a, d]: &[f64; 2]| [ordered_bits(*a), ordered_bits(*d), 0, 0];
        let corrected = units.of_row.is_none();
        let metric = |terms| Ok(RowMetric::Ratio(Ratio::new(terms, corrected)));
        Self::sorted(units.sort(terms, key, control)?, metric, units.n_groups, studentize, control)
    }

    /// A test of the mean of values of units in any order, in the memory of these values.
    ///
    /// # Errors
    /// As [`RowTest::auc`].
    pub fn mean(values: Vec<f64>, units: Units<'_>, studentize: Studentize, control: &Control) -> Result<Self> {
        let codes = units.fewer_codes();
        let units = units.with_codes(&codes);
        units.check()?;
        units.check_column("numerator", values.len())?;
        let sorted = units.sort(values, |value| [ordered_bits(*value), 0, 0, 0], control)?;
        Self::sorted(sorted, |values| Ok(RowMetric::Mean(Mean::new(values, true))), units.n_groups, studentize, control)
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
        let codes = units.fewer_codes();
        let units = units.with_codes(&codes);
        units.check()?;
        units.check_column("counts", counts.len())?;
        let sorted = units.sort(counts.to_vec(), |counts| counts.map(ordered_bits), control)?;
        let of_counts = |values| Ok(RowMetric::Counts(Counts::new(values, metric.clone())?));
        Self::sorted(sorted, of_counts, units.n_groups, studentize, control)
    }

    /// A test of units that are sorted, by stratum.
    fn sorted<T: Copy + Send + Sync>(
        sorted: Vec<Sorted<T>>,
        metric: impl Fn(Vec<T>) -> Result<RowMetric> + Sync,
        n_groups: usize,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        let block = |Sorted { values, group, exchange }| {
            Block::new(UnitMetric::Rows(metric(values)?), group, n_groups, exchange, control)
        };
        let all = (sorted.len() > 1).then(|| {
            let values = sorted.iter().map(|stratum| &stratum.values[..]).collect::<Vec<_>>().concat();
            let group = sorted.iter().map(|stratum| &stratum.group[..]).collect::<Vec<_>>().concat();
            Sorted { values, group, exchange: Exchange::All }
        });
        let (all, blocks) = parallel::join(
            || all.map(block).transpose(),
            || parallel::map_each(sorted, block).into_iter().collect::<Result<Vec<Block>>>(),
        );
        Self::new(blocks?, all?.as_ref().map(Block::evaluations), n_groups, studentize)
    }

    /// Number of units: rows or clusters.
    pub fn n_units(&self) -> usize {
        self.blocks.iter().map(Block::n_units).sum()
    }

    /// Gives back what replicates were computed in, when all of them are.
    fn give_back(&self) {
        for block in &self.blocks {
            if let UnitMetric::Clusters(auc) = &block.metric {
                auc.give_back();
            }
        }
    }

    /// The one block of a test without strata.
    pub(super) fn only_block(&self) -> Option<&Block> {
        match &self.blocks[..] {
            [block] => Some(block),
            _ => None,
        }
    }

    /// What the strata add up to as observed.
    fn observed_contrast(&self, (i, j): (usize, usize)) -> Contrast {
        let mut contrast = Contrast::default();
        for block in &self.blocks {
            let parts = block.parts();
            contrast.add(&parts[i], &parts[j], self.studentize);
        }
        contrast
    }

    /// The statistics that `of` makes of the groups of each of sixteen replicates. Of strata it is handed what they add
    /// up to, for each of the `pairs`, or for all groups at once where there are none.
    fn statistics(&self, pairs: &[(usize, usize)], draws: &Draws, first: u64, control: &Control) -> Result<Vec<f64>> {
        let n_groups = self.n_groups;
        if let Some(block) = self.only_block() {
            let comparison = Comparison { expected: block.expected.clone(), studentize: self.studentize };
            let mut statistics = Vec::with_capacity(LANES * pairs.len().max(1));
            self.replicates(draws, first, control, |_, members| {
                for groups in members.chunks(n_groups) {
                    let groups: Vec<Evaluation> = groups.iter().map(|member| member.evaluation).collect();
                    if pairs.is_empty() {
                        statistics.push(comparison.of_all(&groups));
                    }
                    statistics.extend(pairs.iter().map(|&pair| comparison.of_pair(&groups, pair)));
                }
            })?;
            return Ok(statistics);
        }
        let mut all = vec![Total::new(n_groups, self.studentize); if pairs.is_empty() { LANES } else { 0 }];
        let mut each = vec![Contrast::default(); LANES * pairs.len()];
        let mut parts = Vec::with_capacity(n_groups);
        self.replicates(draws, first, control, |block, members| {
            for (lane, groups) in members.chunks(n_groups).enumerate() {
                parts.clear();
                parts.extend(groups.iter().zip(&block.expected).map(|(member, &expected)| member.part(expected)));
                if let Some(total) = all.get_mut(lane) {
                    total.add(&parts, self.studentize);
                }
                for (contrast, &(i, j)) in each[lane * pairs.len()..].iter_mut().zip(pairs) {
                    contrast.add(&parts[i], &parts[j], self.studentize);
                }
            }
        })?;
        let gaps = each.iter().map(|contrast| contrast.statistic(self.studentize));
        Ok(all.iter().map(|total| total.statistic(self.studentize)).chain(gaps).collect())
    }
}

impl PermutationTest for RowTest {
    fn observed(&self) -> f64 {
        if let Some(block) = self.only_block() {
            let groups: Vec<Evaluation> = block.observed.iter().map(|member| member.evaluation).collect();
            return Comparison { expected: block.expected.clone(), studentize: self.studentize }.of_all(&groups);
        }
        let mut total = Total::new(self.n_groups, self.studentize);
        self.blocks.iter().for_each(|block| total.add(&block.parts(), self.studentize));
        total.statistic(self.studentize)
    }

    fn evaluations(&self) -> Vec<Evaluation> {
        self.observed.clone()
    }

    fn replicate_work(&self) -> u64 {
        let of_block = |block: &Block| match &block.metric {
            UnitMetric::Rows(_) => 50 + block.n_units() as u64,
            UnitMetric::Clusters(auc) => 50 + 4 * auc.n_rows() as u64,
        };
        self.blocks.iter().map(of_block).sum()
    }

    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let mut null = draws.zeros();
        let fill = |block: usize, chunk: &mut [f64], (): &mut ()| -> Result<()> {
            let first = draws.replicates.start + (block * LANES) as u64;
            let drawn = self.statistics(&[], draws, first, control)?;
            chunk.copy_from_slice(&drawn[..chunk.len()]);
            control.advance(chunk.len() as u64);
            Ok(())
        };
        parallel::fill(&mut null, LANES, control, || (), fill)?;
        self.give_back();
        Ok(null)
    }

    fn null_statistics(&self, draws: &Draws, control: &Control) -> Result<Vec<Vec<f64>>> {
        if !(self.corrected && self.n_groups == 2) {
            return Ok(vec![self.null_distribution(draws, control)?]);
        }
        let (studentized, corrected) = self.shifts_of(draws, control)?.null_statistics();
        Ok(vec![studentized, corrected])
    }

    fn observed_statistics(&self) -> Vec<f64> {
        if !(self.corrected && self.n_groups == 2) {
            return vec![self.observed()];
        }
        let none = Draws { replicates: 0..0, seed: 0, series: 0 };
        match self.shifts_of(&none, &Control::default()) {
            Ok(shifts) => vec![shifts.statistics().0, shifts.statistics().1],
            Err(_) => vec![f64::NAN; 2],
        }
    }

    fn needs_centring(&self) -> bool {
        self.n_groups == 2 && !self.corrected && self.blocks.iter().any(|block| block.sizes.len() > 1)
    }

    fn groups(&self) -> Option<&dyn GroupTest> {
        Some(self)
    }
}

impl GroupTest for RowTest {
    fn n_groups(&self) -> usize {
        self.n_groups
    }

    fn pair_statistic(&self, pair: (usize, usize)) -> f64 {
        if let Some(block) = self.only_block() {
            let groups: Vec<Evaluation> = block.observed.iter().map(|member| member.evaluation).collect();
            let comparison = Comparison { expected: block.expected.clone(), studentize: self.studentize };
            return comparison.of_pair(&groups, pair);
        }
        self.observed_contrast(pair).statistic(self.studentize)
    }

    fn contrast(&self, pair: (usize, usize)) -> Option<Contrast> {
        (self.blocks.len() > 1).then(|| self.observed_contrast(pair))
    }

    fn n_strata(&self) -> usize {
        self.blocks.len()
    }

    fn shifts(&self, draws: &Draws, control: &Control) -> Result<Shifts> {
        self.shifts_of(draws, control)
    }

    fn max_t(&self, pairs: &[(usize, usize)], draws: &Draws, control: &Control) -> Result<Vec<u64>> {
        let family = StepDown::new(self, pairs)?;
        let place: HashMap<(usize, usize), usize> = pairs.iter().enumerate().map(|(i, &pair)| (pair, i)).collect();
        let counted = family.count_all(draws, LANES as u64, control, |replicates, counts| {
            if pairs.is_empty() {
                return Ok(());
            }
            let all = self.statistics(pairs, draws, replicates.start, control)?;
            let lanes = (replicates.end - replicates.start) as usize;
            for statistics in all.chunks(pairs.len()).take(lanes) {
                family.count(|pair| statistics[place[&pair]], counts);
            }
            Ok(())
        });
        self.give_back();
        counted
    }

    fn bootstrap(&self, with_variances: bool, draws: &Draws, control: &Control) -> Result<Replicates> {
        let Some(block) = self.only_block() else {
            return Err(Error::argument("test", "one of strata", "rows without strata for a bootstrap"));
        };
        let members = |group: usize| -> Vec<u32> {
            (0..block.n_units() as u32).filter(|&unit| usize::from(block.group[unit as usize]) == group).collect()
        };
        let members: Vec<Vec<u32>> = (0..self.n_groups).map(members).collect();
        let mut replicates = match &block.metric {
            UnitMetric::Rows(metric) => {
                let groups: Vec<RowMetric> = members.iter().map(|rows| metric.select(rows)).collect();
                bootstrap::of_rows(&groups, with_variances, draws, self.instructions, control)?
            }
            UnitMetric::Clusters(auc) => {
                let n_groups = self.n_groups;
                bootstrap::of_lanes(n_groups, with_variances, draws, control, |first| {
                    let mut drawn = Drawn { group: &block.group, times: vec![[0; LANES]; block.n_units()] };
                    for (group, units) in members.iter().enumerate() {
                        // A unit is drawn 2^16 times by no chance that could be seen.
                        let visit = |i: usize, times: Lanes| drawn.times[units[i] as usize] = times.map(|t| t as u16);
                        bootstrap::multiplicities(units.len(), draws, first, group as u64, self.instructions, visit);
                    }
                    auc.evaluate(&drawn, n_groups, LANES, self.instructions, control)
                })?
            }
        };
        self.give_back();
        replicates.shift(block.center);
        Ok(replicates)
    }
}

#[cfg(test)]
mod tests;
