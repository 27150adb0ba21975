//! The `stream` engine: metrics of ranks and of row values.
//!
//! The rows are put in order once (by score for ranks). A replicate walks over them and draws
//! the group of every row sequentially without replacement, so that each group gets exactly
//! its rows; sixteen replicates go side by side. There is no shuffle, no sort and no index per
//! replicate, and the rows are read once per sixteen replicates. Where clusters of rows move
//! together, the units that are drawn are clusters.
//!
//! The draw compares floor(u R / 2^32) with the rows that the group still needs, u being 32
//! random bits and R the rows that are left: exact but for 2^-32 per row.

use std::ops::Range;

use super::{StepDown, Studentize, difference, omnibus};
use crate::bootstrap;
use crate::error::{Error, Result};
use crate::metrics::auc::{Auc, ClusteredAuc, OpenPair, PairSums, RowFlags, WeightedAuc};
use crate::metrics::row_sums::{Counts, LaneMask, Lanes, Mean, Ratio, RowSums};
use crate::metrics::{Evaluation, Metric, RowMetric, of_each_metric};
use crate::numerics::order::{order, ordered_bits, row_of};
use crate::parallel::{self, Control};
use crate::random::{Domain, LaneGenerator};
use crate::simd::{InstructionSet, LANES, Task};

/// Rows between two looks at the control.
const TILE: usize = 1 << 15;

/// A permutation test on rows, or on clusters of rows.
#[derive(Debug, Clone)]
pub struct RowTest {
    units: Units,
    /// What ratios and means are centred at.
    center: f64,
    /// Observed group of each unit.
    group: Vec<u16>,
    strata: Strata,
    /// Units by stratum and group.
    sizes: Vec<Vec<u32>>,
    studentize: Studentize,
    /// Sums over all units, of metrics whose sums are the same in every replicate.
    totals: Vec<f64>,
    /// The metric of each group (centred) as observed.
    observed: Vec<Evaluation>,
    /// The metric of each group (centred) when every unit belongs to it by the share of its
    /// stratum that does: what the strata alone explain. 0 without strata.
    expected: Vec<f64>,
}

/// Which units exchange their groups.
#[derive(Debug, Clone)]
enum Strata {
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

/// What is drawn into groups.
#[derive(Debug, Clone)]
enum Units {
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
    ) -> (Vec<T>, Vec<u16>, Strata) {
        let units = self.group.len();
        let n_strata = self.stratum.map_or(1, |stratum| stratum.iter().max().map_or(0, |&s| s as usize + 1));
        let segment_of = |unit: usize| self.stratum_of(unit) as usize * self.n_groups + usize::from(self.group[unit]);
        let mut segments = vec![Segment::default(); n_strata * self.n_groups];
        for unit in 0..units {
            segments[segment_of(unit)].add(key(&value(unit)));
        }
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
        parallel::for_each(parts, |part| parallel::sort_by_key(part, &key));
        let (mut group, mut stratum) = (Vec::with_capacity(units), Vec::new());
        for &segment in &order {
            group.resize(group.len() + segments[segment].size, (segment % self.n_groups) as u16);
            if self.stratum.is_some() {
                stratum.resize(group.len(), (segment / self.n_groups) as u32);
            }
        }
        let strata = if self.stratum.is_some() { Strata::Several(stratum) } else { Strata::One };
        (values, group, strata)
    }
}

impl RowTest {
    /// Prepares a test of units that are in order.
    fn new(mut units: Units, group: Vec<u16>, n_groups: usize, strata: Strata, studentize: Studentize) -> Result<Self> {
        if studentize == Studentize::Pooled {
            return Err(Error::argument("studentize", "\"pooled\"", "\"pooled\" only for proportions"));
        }
        let (center, totals) = match &mut units {
            Units::Rows(metric) => (metric.center(), of_each_metric!(metric, metric => totals(metric, group.len()))),
            Units::Clusters(_) => (0.0, Vec::new()),
        };
        let expected = vec![0.0; n_groups];
        let (sizes, observed) = (Vec::new(), Vec::new());
        let mut test = Self { units, center, group, strata, sizes, studentize, totals, observed, expected };
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
        test.observed = match &test.units {
            Units::Rows(RowMetric::Auc(auc)) => auc.observed(&test.group, n_groups),
            _ => test.evaluate_members(|row, member| {
                member.fill([0.0; LANES]);
                member[usize::from(test.group[row])] = [1.0; LANES];
            }),
        };
        if !matches!(test.strata, Strata::One) {
            let groups = test.evaluate_members(|row, member| {
                let sizes = &test.sizes[test.stratum_of(row)];
                let rows = f64::from(sizes.iter().sum::<u32>());
                for (member, &size) in member.iter_mut().zip(sizes) {
                    *member = [f64::from(size) / rows; LANES];
                }
            });
            test.expected = groups.iter().map(|group| if group.is_defined() { group.value } else { 0.0 }).collect();
        }
        Ok(test)
    }

    /// A test of the AUC: `score` and `positive` of each row, in any order, with weights that
    /// are 1 when they are left out. `within_labels`: rows of one label exchange their groups; not
    /// together with strata.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit, or there are more than 2^32 - 1 rows.
    pub fn auc(
        score: &[f64],
        positive: &[bool],
        weight: Option<&[f64]>,
        groups: Groups<'_>,
        within_labels: bool,
        studentize: Studentize,
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
        Self::new(Units::Rows(metric), group, groups.n_groups, strata, studentize)
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
    ) -> Result<Self> {
        let auc = ClusteredAuc::new(score, positive, weight, cluster, groups.group.len())?;
        groups.check(auc.n_clusters())?;
        let strata = groups.stratum.map_or(Strata::One, |stratum| Strata::Several(stratum.to_vec()));
        Self::new(Units::Clusters(auc), groups.group.to_vec(), groups.n_groups, strata, studentize)
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
    ) -> Result<Self> {
        groups.check(numerator.len())?;
        let (metric, group, strata) = match denominator {
            None => {
                let (values, group, strata) =
                    groups.sort(|row| numerator[row], |&value| [ordered_bits(value), 0, 0, 0]);
                (RowMetric::Mean(Mean::new(values)), group, strata)
            }
            Some(denominator) if denominator.len() == numerator.len() => {
                let key = |[a, d]: &[f64; 2]| [ordered_bits(*a), ordered_bits(*d), 0, 0];
                let (terms, group, strata) = groups.sort(|row| [numerator[row], denominator[row]], key);
                (RowMetric::Ratio(Ratio::new(terms)), group, strata)
            }
            Some(denominator) => {
                let lengths = format!("{} and {}", numerator.len(), denominator.len());
                return Err(Error::argument("rows", lengths, "columns of one length"));
            }
        };
        Self::new(Units::Rows(metric), group, groups.n_groups, strata, studentize)
    }

    /// A test of a formula over confusion counts, of units that each bring weighted counts: rows
    /// or clusters, in any order.
    ///
    /// # Errors
    /// As [`RowTest::auc`], and when the metric is not one over tp, fp, fn, tn.
    pub fn counts(counts: &[[f64; 4]], metric: &Metric, groups: Groups<'_>, studentize: Studentize) -> Result<Self> {
        groups.check(counts.len())?;
        let (units, group, strata) = groups.sort(|unit| counts[unit], |counts| counts.map(ordered_bits));
        let metric = RowMetric::Counts(Counts::new(units, metric.clone())?);
        Self::new(Units::Rows(metric), group, groups.n_groups, strata, studentize)
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
        &self.expected
    }

    fn expected_gap(&self, first: usize, second: usize) -> f64 {
        let gap = self.expected[first] - self.expected[second];
        // Equal but for rounding: strata of equal composition.
        if gap.abs() <= 1e-12 { 0.0 } else { gap }
    }

    /// The observed statistic.
    pub fn observed(&self) -> f64 {
        self.statistic(&self.observed)
    }

    fn statistic(&self, groups: &[Evaluation]) -> f64 {
        match groups {
            [first, second] => difference(first, second, self.expected_gap(0, 1), self.studentize),
            groups => omnibus(groups, &self.expected, self.studentize),
        }
    }

    /// The statistic of some permutations, in the order of the replicates.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn null_distribution(
        &self,
        replicates: Range<u64>,
        seed: u64,
        series: u64,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let mut null = vec![0.0; (replicates.end - replicates.start) as usize];
        let fill = |block: usize, chunk: &mut [f64], (): &mut ()| -> Result<()> {
            let first = replicates.start + (block * LANES) as u64;
            let groups = self.replicates(seed, series, first, instructions, control)?;
            for (value, groups) in chunk.iter_mut().zip(groups.chunks(self.n_groups())) {
                *value = self.statistic(groups);
            }
            control.advance(chunk.len() as u64);
            Ok(())
        };
        parallel::fill(&mut null, LANES, control, || (), fill)?;
        Ok(null)
    }

    /// Step-down max-T p-values of pairs of groups; see [`StepDown`].
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn max_t(
        &self,
        pairs: &[(usize, usize)],
        n_resamples: u64,
        seed: u64,
        series: u64,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let statistic = |groups: &[Evaluation], (i, j): (usize, usize)| {
            difference(&groups[i], &groups[j], self.expected_gap(i, j), self.studentize)
        };
        let family = StepDown::new(pairs, |pair| statistic(&self.observed, pair));
        family.adjust(n_resamples, LANES as u64, control, |replicates, counts| {
            let all = self.replicates(seed, series, replicates.start, instructions, control)?;
            let lanes = (replicates.end - replicates.start) as usize;
            for groups in all.chunks(self.n_groups()).take(lanes) {
                family.count(|pair| statistic(groups, pair), counts);
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
        replicates: Range<u64>,
        seed: u64,
        series: u64,
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
                bootstrap::of_rows(&groups, replicates, seed, series, instructions, control)?
            }
            Units::Clusters(auc) => {
                let n_groups = self.n_groups();
                bootstrap::of_lanes(replicates, n_groups, control, |first| {
                    let mut member = vec![[0.0; LANES]; self.n_units() * n_groups];
                    for (group, units) in members.iter().enumerate() {
                        let visit = |i: usize, times: Lanes| member[units[i] as usize * n_groups + group] = times;
                        bootstrap::multiplicities(units.len(), seed, series, first, group as u64, instructions, visit);
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

    /// The metric of every group (fastest) in the replicates `first..first + LANES`.
    fn replicates(
        &self,
        seed: u64,
        series: u64,
        first: u64,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<Evaluation>> {
        let draw = Draw {
            generator: LaneGenerator::new(seed, Domain::Permutation, series, first, u64::MAX),
            needed: self.sizes.iter().flatten().map(|&size| [size; LANES]).collect(),
            left: self.sizes.iter().map(|sizes| sizes.iter().sum()).collect(),
            n_groups: self.n_groups(),
        };
        match &self.units {
            Units::Rows(RowMetric::Auc(auc)) if self.n_groups() == 2 && i32::try_from(self.n_units()).is_ok() => {
                self.auc_pair(auc, draw, instructions, control)
            }
            Units::Rows(metric) => of_each_metric!(metric, metric => self.walk(metric, draw, instructions, control)),
            Units::Clusters(auc) => {
                control.check()?;
                let mut draw = draw;
                let mut member = vec![[0.0; LANES]; self.n_units() * self.n_groups()];
                for (unit, member) in member.chunks_mut(self.n_groups()).enumerate() {
                    draw.many(self.stratum_of(unit), member);
                }
                Ok(auc.evaluate(&member, self.n_groups()))
            }
        }
    }

    #[inline(always)]
    fn stratum_of(&self, unit: usize) -> usize {
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

    /// Draws the groups of all rows and adds the rows up.
    fn walk<const N: usize, M: RowSums<N>>(
        &self,
        metric: &M,
        draw: Draw,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<Evaluation>> {
        let n_groups = self.n_groups();
        let (mut draw, mut sums, mut open) = (draw, vec![[[0.0; LANES]; N]; n_groups], M::Open::default());
        self.tiles(control, |rows| {
            instructions.run(Walk { test: self, metric, draw: &mut draw, sums: &mut sums, open: &mut open, rows });
        })?;
        if M::ADDITIVE {
            // The last group has what the others left.
            for (k, total) in self.totals.iter().enumerate() {
                for lane in 0..LANES {
                    let others: f64 = sums[..n_groups - 1].iter().map(|sums| sums[k][lane]).sum();
                    sums[n_groups - 1][k][lane] = total - others;
                }
            }
        }
        Ok(evaluate_lanes(metric, &sums))
    }

    fn auc_pair(
        &self,
        auc: &Auc,
        draw: Draw,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<Evaluation>> {
        let (mut draw, mut sums, mut open) = (draw, PairSums::default(), OpenPair::default());
        self.tiles(control, |rows| {
            instructions.run(WalkAucPair { test: self, auc, draw: &mut draw, sums: &mut sums, open: &mut open, rows });
        })?;
        Ok(evaluate_lanes(auc, &sums.of_groups()))
    }

    /// Calls `walk` on all rows, some at a time.
    fn tiles(&self, control: &Control, mut walk: impl FnMut(Range<usize>)) -> Result<()> {
        let mut from = 0;
        while from < self.n_units() {
            control.check()?;
            let to = (from + TILE).min(self.n_units());
            walk(from..to);
            from = to;
        }
        Ok(())
    }
}

fn evaluate_lanes<const N: usize, M: RowSums<N>>(metric: &M, sums: &[[Lanes; N]]) -> Vec<Evaluation> {
    (0..LANES).flat_map(|lane| sums.iter().map(move |sums| metric.evaluate(sums.map(|lanes| lanes[lane])))).collect()
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

/// Draws the groups of units one after the other, without replacement.
struct Draw {
    generator: LaneGenerator,
    /// Units that each group still needs, by stratum and group.
    needed: Vec<[u32; LANES]>,
    /// Units left in each stratum.
    left: Vec<u32>,
    n_groups: usize,
}

impl Draw {
    /// All bits where the next unit is one of the first of two groups, in every lane.
    #[inline(always)]
    fn of_two(&mut self, stratum: usize) -> LaneMask {
        let words = self.generator.next_words();
        let left = self.left[stratum];
        let needed = &mut self.needed[2 * stratum];
        let mut first = [0; LANES];
        for lane in 0..LANES {
            let place = ((u64::from(words[lane]) * u64::from(left)) >> 32) as u32;
            first[lane] = if place < needed[lane] { u32::MAX } else { 0 };
            needed[lane] = needed[lane].wrapping_add(first[lane]);
        }
        self.left[stratum] = left - 1;
        first
    }

    /// Gives the next unit to one of many groups, in every lane.
    #[inline(always)]
    fn many(&mut self, stratum: usize, member: &mut [Lanes]) {
        let words = self.generator.next_words();
        let left = self.left[stratum];
        let mut places = [0u32; LANES];
        for lane in 0..LANES {
            places[lane] = ((u64::from(words[lane]) * u64::from(left)) >> 32) as u32;
        }
        let mut taken = [false; LANES];
        let needed = &mut self.needed[stratum * self.n_groups..(stratum + 1) * self.n_groups];
        for (needed, member) in needed.iter_mut().zip(member) {
            for lane in 0..LANES {
                let here = !taken[lane] && places[lane] < needed[lane];
                places[lane] = places[lane].wrapping_sub(needed[lane]);
                needed[lane] -= u32::from(here);
                member[lane] = if here { 1.0 } else { 0.0 };
                taken[lane] |= here;
            }
        }
        self.left[stratum] = left - 1;
    }
}

/// A walk over some rows that gives them to groups.
struct Walk<'a, const N: usize, M: RowSums<N>> {
    test: &'a RowTest,
    metric: &'a M,
    draw: &'a mut Draw,
    sums: &'a mut [[Lanes; N]],
    open: &'a mut M::Open,
    rows: Range<usize>,
}

impl<const N: usize, M: RowSums<N>> Task for Walk<'_, N, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { test, metric, draw, sums, open, rows } = self;
        if M::ADDITIVE && sums.len() == 2 {
            // Only the first of two groups is added up, in registers.
            let mut first = [sums[0]];
            for row in rows {
                let member = draw.of_two(test.stratum_of(row)).map(|first| f64::from(first & 1));
                metric.add(row, &[member], &mut first, open);
            }
            sums[0] = first[0];
            return;
        }
        let counted = if M::ADDITIVE { sums.len() - 1 } else { sums.len() };
        let mut member = vec![[0.0; LANES]; sums.len()];
        for row in rows {
            draw.many(test.stratum_of(row), &mut member);
            metric.add(row, &member[..counted], &mut sums[..counted], open);
        }
    }
}

/// A walk over some rows of two groups for the AUC.
struct WalkAucPair<'a> {
    test: &'a RowTest,
    auc: &'a Auc,
    draw: &'a mut Draw,
    sums: &'a mut PairSums,
    open: &'a mut OpenPair,
    rows: Range<usize>,
}

impl Task for WalkAucPair<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { test, auc, draw, sums, open, rows } = self;
        // A copy, so that it stays in registers.
        let mut running = *sums;
        for row in rows {
            let first = draw.of_two(test.stratum_of(row));
            let (positive, tied) = (auc.flags[row].is_positive(), auc.flags[row].is_tied_with_next());
            if tied || !open.is_empty() {
                open.add(positive, &first);
                if !tied {
                    *sums = running;
                    sums.add_tied(open);
                    running = *sums;
                    *open = OpenPair::default();
                }
            } else {
                running.add(positive, &first);
            }
        }
        *sums = running;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    struct Data {
        positive: Vec<bool>,
        score: Vec<u32>,
        group: Vec<u16>,
    }

    /// Rows in ascending order of a score with `levels` values.
    fn data(rows: usize, levels: u64, groups: u64) -> Data {
        let mut stream = Stream::new(9, Domain::Simulation, rows as u64, levels, groups);
        let mut all: Vec<(u32, bool, u16)> = (0..rows)
            .map(|_| (stream.below(levels) as u32, stream.below(3) == 0, stream.below(groups) as u16))
            .collect();
        all.sort_by_key(|row| row.0);
        Data {
            positive: all.iter().map(|row| row.1).collect(),
            score: all.iter().map(|row| row.0).collect(),
            group: all.iter().map(|row| row.2).collect(),
        }
    }

    fn auc_test(data: &Data, n_groups: u64) -> RowTest {
        let score: Vec<f64> = data.score.iter().map(|&score| f64::from(score)).collect();
        let groups = Groups { group: &data.group, n_groups: n_groups as usize, stratum: None };
        RowTest::auc(&score, &data.positive, None, groups, false, Studentize::Unpooled).unwrap()
    }

    fn mean_test(values: &[f64], group: &[u16], stratum: Option<&[u32]>) -> RowTest {
        let n_groups = group.iter().max().map_or(0, |&g| usize::from(g) + 1);
        RowTest::ratio(values, None, Groups { group, n_groups, stratum }, Studentize::Unpooled).unwrap()
    }

    /// Sums of the values in every group (fastest) and lane.
    fn group_sums(test: &RowTest, first: u64) -> Vec<f64> {
        let evaluations = test.replicates(5, 0, first, InstructionSet::Baseline, &Control::default()).unwrap();
        let sizes: Vec<f64> =
            (0..test.n_groups()).map(|g| test.sizes.iter().map(|sizes| f64::from(sizes[g])).sum()).collect();
        evaluations.iter().enumerate().map(|(i, e)| (e.value + test.center) * sizes[i % test.n_groups()]).collect()
    }

    /// AUC and `DeLong` variance by the definition: all pairs.
    fn auc_by_pairs(data: &Data, group: &[u16], which: u16) -> (f64, f64) {
        let rows = |label: bool| -> Vec<f64> {
            let inside = |&i: &usize| group[i] == which && data.positive[i] == label;
            (0..group.len()).filter(inside).map(|i| f64::from(data.score[i])).collect()
        };
        let (up, down) = (rows(true), rows(false));
        let kernel = |p: f64, n: f64| {
            if p > n {
                1.0
            } else if p == n {
                0.5
            } else {
                0.0
            }
        };
        let v10: Vec<f64> =
            up.iter().map(|&p| down.iter().map(|&n| kernel(p, n)).sum::<f64>() / down.len() as f64).collect();
        let v01: Vec<f64> =
            down.iter().map(|&n| up.iter().map(|&p| kernel(p, n)).sum::<f64>() / up.len() as f64).collect();
        let variance = |values: &[f64]| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
        };
        (v10.iter().sum::<f64>() / v10.len() as f64, variance(&v10) + variance(&v01))
    }

    #[test]
    fn auc_and_its_variance_equal_all_pairs() {
        for (levels, groups) in [(5, 2), (1_000_000, 2), (40, 3)] {
            let data = data(300, levels, groups);
            let test = auc_test(&data, groups);
            for (group, evaluation) in test.evaluations().iter().enumerate() {
                let (value, variance) = auc_by_pairs(&data, &data.group, group as u16);
                assert!((evaluation.value - value).abs() < 1e-13);
                assert!((evaluation.variance / variance - 1.0).abs() < 1e-10, "{levels} {groups}");
            }
        }
    }

    #[test]
    fn ratios_and_their_variance() {
        let values = [3.0, -1.0, 4.0, 1.5, 9.0, 2.0];
        let below = [1.0, 2.0, 1.0, 0.5, 3.0, 1.0];
        let groups = Groups { group: &[0, 0, 0, 1, 1, 1], n_groups: 2, stratum: None };
        let test = RowTest::ratio(&values, Some(&below), groups, Studentize::Unpooled).unwrap();
        let evaluation = test.evaluations()[0];
        assert!((evaluation.value - 1.5).abs() < 1e-15);
        let squares: f64 = (0..3).map(|i: usize| (values[i] - 1.5 * below[i]).powi(2)).sum();
        assert!((evaluation.variance - squares / 16.0).abs() < 1e-15);
        // All rows with one ratio: no variance at all, and not a little by rounding.
        let test = mean_test(&[0.1; 6], &[0, 0, 0, 1, 1, 1], None);
        assert_eq!(test.evaluations()[1].variance, 0.0);
        assert_eq!(test.observed(), 0.0);
    }

    /// Rows of a group that prefers the stratum with high values: the strata explain its mean,
    /// and in one stratum of three groups nothing else is left of it.
    #[test]
    fn strata_explain_what_they_do() {
        let stratum: Vec<u32> = (0..600).map(|i| u32::from(i % 3 == 0)).collect();
        let group: Vec<u16> = (0..600).map(|i| u16::from(i % 5 < if i % 3 == 0 { 4 } else { 1 })).collect();
        let value: Vec<f64> = stratum.iter().map(|&s| 10.0 * f64::from(s)).collect();
        let test = mean_test(&value, &group, Some(&stratum));
        let groups = test.evaluations();
        assert!(groups[1].value - groups[0].value > 3.0);
        assert!((test.expected()[1] - test.expected()[0] - (groups[1].value - groups[0].value)).abs() < 1e-9);
        assert!(test.observed().abs() < 1e-6);
    }

    /// Values far from 0 keep the digits of their variance.
    #[test]
    fn ratios_are_centred() {
        let noise: Vec<f64> = (0..1000).map(|i| f64::from(i * 37 % 101) / 101.0).collect();
        let group: Vec<u16> = (0..1000).map(|i| i % 2).collect();
        let test = |offset: f64| {
            let values: Vec<f64> = noise.iter().map(|value| value + offset).collect();
            mean_test(&values, &group, None)
        };
        let (near, far) = (test(0.0), test(1e9));
        assert!((far.evaluations()[0].variance / near.evaluations()[0].variance - 1.0).abs() < 1e-6);
        assert!((far.evaluations()[0].value - 1e9 - near.evaluations()[0].value).abs() < 1e-6);
    }

    /// Every replicate gives each group its rows: the sums of a constant 1 tell.
    #[test]
    fn groups_keep_their_sizes_in_every_stratum() {
        let data = data(5_000, 50, 4);
        let stratum: Vec<u32> = data.score.iter().map(|score| score % 3).collect();
        let marked: Vec<f64> = stratum.iter().map(|&s| f64::from(s == 1)).collect();
        let test = mean_test(&marked, &data.group, Some(&stratum));
        // Within the stratum of the marked rows each group has as many of them as it has rows.
        for (i, sum) in group_sums(&test, 0).iter().enumerate() {
            assert!((sum - f64::from(test.sizes[1][i % 4])).abs() < 1e-6, "{sum}");
        }
    }

    /// The number of marked rows in the first group is hypergeometric (chi-square, tail 1e-6).
    #[test]
    fn draws_follow_the_hypergeometric_law() {
        for groups in [2, 3] {
            let marked: Vec<f64> = (0..60).map(|i| f64::from(i % 4 == 0)).collect();
            let group: Vec<u16> = (0..60).map(|i| if i < 25 { 0 } else { 1 + i % (groups - 1) }).collect();
            let test = mean_test(&marked, &group, None);
            let mut counts = [0u32; 16];
            let blocks = 6_000;
            for block in 0..blocks {
                let sums = group_sums(&test, block * LANES as u64);
                sums.iter().step_by(groups as usize).for_each(|&sum| counts[sum.round() as usize] += 1);
            }
            let (first, law) = crate::random::Hypergeometric::new(60, 15, 25).law(100).unwrap();
            let draws = (blocks * LANES as u64) as f64;
            let (mut statistic, mut cells, mut rest) = (0.0, 0u32, (0.0, 0.0));
            for (i, p) in law.iter().enumerate() {
                let (expected, count) = (p * draws, f64::from(counts[first as usize + i]));
                if expected > 10.0 {
                    statistic += (count - expected).powi(2) / expected;
                    cells += 1;
                } else {
                    rest = (rest.0 + expected, rest.1 + count);
                }
            }
            statistic += (rest.1 - rest.0).powi(2) / rest.0.max(1.0);
            assert!(statistic < 65.0, "{groups} groups: {statistic} on {cells}");
        }
    }

    #[test]
    fn kernels_and_pools_give_the_same_bits() {
        let control = Control::default();
        for (levels, groups) in [(7, 2), (1_000_000, 2), (30, 5)] {
            let data = data(70_001, levels, groups);
            let test = auc_test(&data, groups);
            let baseline = test.null_distribution(0..37, 3, 1, InstructionSet::Baseline, &control).unwrap();
            assert!(baseline.iter().all(|value| value.is_finite()));
            for instructions in InstructionSet::available() {
                assert_eq!(
                    test.null_distribution(0..37, 3, 1, instructions, &control).unwrap(),
                    baseline,
                    "{instructions:?}"
                );
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            assert_eq!(
                pool.install(|| test.null_distribution(0..37, 3, 1, InstructionSet::Baseline, &control)).unwrap(),
                baseline
            );
            assert_eq!(
                test.null_distribution(3..9, 3, 1, InstructionSet::Baseline, &control).unwrap()[..],
                baseline[3..9]
            );
        }
    }
}
