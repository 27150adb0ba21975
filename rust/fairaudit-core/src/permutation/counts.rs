//! Tests on tables of counts: what is exchangeable, and the statistic of a table.

use std::collections::HashMap;

use super::max_t::StepDown;
use super::statistic::Comparison;
use super::strata::{Contrast, Form, Part, Total};
use super::tables::TableSampler;
use super::{Alternative, ExactLaw, GroupTest, PermutationTest, Studentize, exact, joint};
use crate::bootstrap::{self, Replicates};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::{Evaluation, Metric, merge_classes};
use crate::parallel::Control;
use crate::simd::InstructionSet;
use crate::tabulate::Table;

/// Replicates of one task of [`CountTest::max_t`].
const BLOCK: u64 = 64;

/// Which rows exchange their groups, besides the strata that the table has already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conditioning {
    /// All rows of a stratum.
    None,
    /// The rows that a proportion is a share of, among themselves.
    Denominator,
    /// Rows whose classes are in the same part, among themselves.
    Parts(Vec<u32>),
}

/// A test: what is counted, what is computed from it, and what is exchangeable.
///
/// ```
/// use fairaudit_core::metrics::Formula;
/// use fairaudit_core::parallel::Control;
/// use fairaudit_core::permutation::{Alternative, Conditioning, CountTest, PermutationTest, Studentize};
/// use fairaudit_core::tabulate::Table;
/// // tp, fp, fn, tn of two groups
/// let table = Table::new(vec![8, 0, 2, 0, 3, 0, 7, 0], 2, 4).unwrap();
/// let metric = Formula::parse("tp / (tp + fn)").unwrap().to_metric();
/// let test = CountTest::new(&table, &metric, &Conditioning::Denominator, Studentize::Pooled).unwrap();
/// let law = test.exact(Alternative::TwoSided, &Control::default()).unwrap().unwrap();
/// assert!((law.pvalue - 0.069_779).abs() < 1e-6); // Fisher's test of 8/10 against 3/10
/// ```
#[derive(Debug, Clone)]
pub struct CountTest {
    pub(super) table: Table,
    /// The stratum of the user's that each stratum of the table is a part of, in ascending order.
    pub(super) block_of: Vec<usize>,
    /// Number of strata of the user's.
    n_blocks: usize,
    pub(super) metric: Metric,
    /// Class counts of every group, of all rows: what a bootstrap draws from.
    margin: Vec<f64>,
    /// Class counts of every group by stratum of the user's, of rows that matter.
    margins: Vec<f64>,
    /// The metric in every group, as observed.
    observed: Vec<Evaluation>,
    /// Expected is the metric of each group at the mean of its counts over all permutations: what the parts within
    /// which rows exchange their groups explain alone is no evidence. Of a joint criterion that of every component
    /// (fastest).
    pub(super) comparison: Comparison,
    /// The same by stratum of the user's, where there are several.
    expected: Vec<f64>,
    pub(super) instructions: InstructionSet,
}

impl CountTest {
    /// Prepares a test: splits strata by the conditioning, merges classes that the metric does
    /// not tell apart, leaves out strata that cannot change it.
    ///
    /// # Errors
    /// [`Error::Argument`] when the metric is for another number of classes, or when a pooled
    /// variance or a conditioning on the denominator is asked for and it is not a proportion.
    pub fn new(table: &Table, metric: &Metric, conditioning: &Conditioning, studentize: Studentize) -> Result<Self> {
        check(table, metric, conditioning, studentize)?;
        let (new_class, merged) = merge_classes(metric);
        let parts = match (conditioning, metric) {
            (Conditioning::Denominator, Metric::Fraction { denominator, .. }) => {
                Some(denominator.iter().map(|&d| u32::from(d != 0.0)).collect())
            }
            (Conditioning::Parts(parts), _) => Some(parts.clone()),
            _ => None,
        };
        if parts.as_ref().is_some_and(|parts: &Vec<u32>| parts.len() != table.n_classes()) {
            return Err(Error::argument("parts", "of another length", "one part per class"));
        }
        let matters: Vec<bool> = match &merged {
            Metric::Fraction { numerator, denominator } => {
                numerator.iter().zip(denominator).map(|(&a, &d)| a != 0.0 || d != 0.0).collect()
            }
            other => vec![true; other.n_classes()],
        };
        let margin = table.merge(&new_class, merged.n_classes()).margin();
        let n_blocks = table.strata().count();
        let split = parts.map_or_else(|| table.clone(), |parts| table.split(&parts));
        let parts_of_block = split.strata().count() / n_blocks.max(1);
        let (table, kept) = split.merge(&new_class, merged.n_classes()).keep_strata(&matters);
        let block_of: Vec<usize> = kept.iter().map(|stratum| stratum / parts_of_block).collect();
        let expected_of = |counts: &[f64]| -> Vec<f64> {
            let of_group = |counts: &[f64]| -> Vec<f64> {
                let values = components_of(&merged).iter().map(|metric| metric.evaluate(counts).value);
                values.map(|value| if value.is_nan() { 0.0 } else { value }).collect()
            };
            counts.chunks(table.n_classes()).flat_map(of_group).collect()
        };
        let width = table.n_groups() * table.n_classes();
        let mut margins = vec![0.0; n_blocks * width];
        let mut expected = Vec::new();
        for (stratum, &block) in table.strata().zip(&block_of) {
            let margin = &mut margins[block * width..(block + 1) * width];
            margin.iter_mut().zip(stratum).for_each(|(sum, &count)| *sum += count as f64);
        }
        if n_blocks > 1 {
            let size = components_of(&merged).len();
            let shares: Vec<bool> = components_of(&merged).iter().map(Metric::is_proportion).collect();
            for block in 0..n_blocks {
                let [start, end] = [block, block + 1].map(|first| block_of.partition_point(|&of| of < first));
                let of_block = table.range(start..end);
                // The groups of a stratum have one expected share.
                let values = expected_of(&of_block.mean_margin()).into_iter().enumerate();
                expected.extend(values.map(|(at, value)| if shares[at % size] { 0.0 } else { value }));
            }
        }
        let comparison = Comparison { expected: expected_of(&table.mean_margin()), studentize };
        let observed = margin.chunks(table.n_classes()).map(|counts| merged.evaluate(counts)).collect();
        let instructions = InstructionSet::current()?;
        Ok(Self {
            table,
            block_of,
            n_blocks,
            metric: merged,
            margin,
            margins,
            observed,
            comparison,
            expected,
            instructions,
        })
    }

    /// Whether there are strata of the user's.
    pub(super) fn is_stratified(&self) -> bool {
        self.n_blocks > 1
    }

    /// Class counts of every group, by stratum of the user's: the length of a table of them.
    pub(super) fn width(&self) -> usize {
        self.table.n_groups() * self.table.n_classes()
    }

    /// The statistic of a table with these class counts of every group, by stratum of the user's; `evaluations` is a
    /// buffer.
    pub(super) fn statistic_of(&self, margins: &[f64], evaluations: &mut [Evaluation]) -> f64 {
        if self.is_stratified() {
            let mut total = Totals::new(self, self.table.n_groups());
            let groups: Vec<usize> = (0..self.table.n_groups()).collect();
            for (block, margin) in margins.chunks(self.width()).enumerate() {
                total.add(self, block, margin, &groups);
            }
            return total.statistic(self.comparison.studentize);
        }
        if let Metric::Joint(components) = &self.metric {
            let groups: Vec<usize> = (0..self.table.n_groups()).collect();
            return joint::statistic(components, margins, &groups, &self.comparison);
        }
        self.evaluate_into(margins, evaluations);
        self.comparison.of_all(evaluations)
    }

    /// The statistic of two groups of a table without strata of the user's.
    fn statistic_of_pair(&self, margin: &[f64], groups: &[Evaluation], (i, j): (usize, usize)) -> f64 {
        if let Metric::Joint(components) = &self.metric {
            return joint::statistic(components, margin, &[i, j], &self.comparison);
        }
        self.comparison.of_pair(groups, (i, j))
    }

    /// The value of the metric in every group, and its variance if the statistic is divided by it, into a buffer.
    #[inline]
    pub(super) fn evaluate_into(&self, margin: &[f64], evaluations: &mut [Evaluation]) {
        for (evaluation, counts) in evaluations.iter_mut().zip(margin.chunks(self.table.n_classes())) {
            *evaluation = match self.comparison.studentize {
                Studentize::Unpooled | Studentize::Corrected => self.metric.evaluate(counts),
                Studentize::Pooled | Studentize::None => self.metric.evaluate_value(counts),
            };
        }
    }

    /// What one component of the metric is in a group of a stratum.
    fn part(&self, block: usize, margin: &[f64], group: usize, component: usize) -> Part {
        let (metric, size) = (&components_of(&self.metric)[component], components_of(&self.metric).len());
        let counts = &margin[group * self.table.n_classes()..][..self.table.n_classes()];
        let evaluation = match self.comparison.studentize {
            Studentize::Unpooled | Studentize::Corrected => metric.evaluate(counts),
            Studentize::Pooled | Studentize::None => metric.evaluate_value(counts),
        };
        let (weight, units) = metric.size(counts);
        let expected = self.expected[(block * self.table.n_groups() + group) * size + component];
        Part::new(&evaluation, expected, weight, (units, metric.is_corrected()))
    }

    /// The totals of pairs of groups, by pair.
    fn pair_totals(&self, margins: &[f64], pair: (usize, usize)) -> Totals {
        let mut total = Totals::new(self, 2);
        for (block, margin) in margins.chunks(self.width()).enumerate() {
            total.add(self, block, margin, &[pair.0, pair.1]);
        }
        total
    }
}

/// The metrics of a joint criterion, or the one metric.
fn components_of(metric: &Metric) -> &[Metric] {
    match metric {
        Metric::Joint(components) => components,
        one => std::slice::from_ref(one),
    }
}

/// Refuses metrics and variances that do not go together.
fn check(table: &Table, metric: &Metric, conditioning: &Conditioning, studentize: Studentize) -> Result<()> {
    if metric.n_classes() != table.n_classes() {
        let classes = format!("over {} classes", metric.n_classes());
        return Err(Error::argument("metric", classes, "one over the classes of the table"));
    }
    if studentize == Studentize::Corrected {
        let accepted = "\"corrected\" for means and ratios of rows; \"unpooled\" for counts";
        return Err(Error::argument("studentize", "\"corrected\"", accepted));
    }
    let refused = || Err(Error::argument("conditioning", "on the denominator", "proportions only"));
    if let Metric::Joint(components) = metric {
        joint::check(components, studentize)?;
        if *conditioning == Conditioning::Denominator {
            return refused();
        }
    } else if !metric.is_proportion() {
        if studentize == Studentize::Pooled {
            let accepted = "\"pooled\" only for proportions; \"unpooled\" for this metric";
            return Err(Error::argument("studentize", "\"pooled\"", accepted));
        }
        if *conditioning == Conditioning::Denominator {
            return refused();
        }
    }
    Ok(())
}

/// What all strata of the user's add up to, in one replicate: of each component, or of all together where these are
/// correlated.
#[derive(Debug, Clone)]
struct Totals {
    each: Vec<Total>,
    together: Option<Form>,
}

impl Totals {
    fn new(test: &CountTest, n_groups: usize) -> Self {
        let (components, studentize) = (components_of(&test.metric), test.comparison.studentize);
        if components.len() > 1 && studentize == Studentize::Unpooled && !joint::is_separate(components) {
            return Self { each: Vec::new(), together: Some(Form::new(n_groups, components.len())) };
        }
        Self { each: vec![Total::new(n_groups, studentize); components.len()], together: None }
    }

    /// Adds some of the groups of a stratum.
    fn add(&mut self, test: &CountTest, block: usize, margin: &[f64], groups: &[usize]) {
        let (size, studentize) = (components_of(&test.metric).len(), test.comparison.studentize);
        for (component, total) in self.each.iter_mut().enumerate() {
            let parts: Vec<Part> = groups.iter().map(|&g| test.part(block, margin, g, component)).collect();
            total.add(&parts, studentize);
        }
        if let Some(form) = &mut self.together {
            let of_group = |&g: &usize| (0..size).map(move |component| test.part(block, margin, g, component));
            let parts: Vec<Part> = groups.iter().flat_map(of_group).collect();
            let width = test.table.n_classes();
            let covariances: Vec<Vec<f64>> = groups
                .iter()
                .map(|&g| joint::covariance(components_of(&test.metric), &margin[g * width..][..width]))
                .collect();
            let units = |g: usize| margin[groups[g] * width..][..width].iter().sum::<f64>();
            form.add(&parts, studentize, |g, i, j| covariances[g][i * size + j] * units(g) / (units(g) - 1.0).max(1.0));
        }
    }

    fn statistic(&self, studentize: Studentize) -> f64 {
        if let Some(form) = &self.together {
            return form.statistic();
        }
        if let [total] = &self.each[..] {
            return total.statistic(studentize);
        }
        let each = self.each.iter().map(|total| match total {
            Total::Gap(_) => total.statistic(studentize).powi(2),
            _ => total.statistic(studentize),
        });
        each.sum()
    }
}

impl PermutationTest for CountTest {
    fn observed(&self) -> f64 {
        let margins = if self.is_stratified() { &self.margins } else { &self.margin };
        self.statistic_of(margins, &mut self.observed.clone())
    }

    fn evaluations(&self) -> Vec<Evaluation> {
        self.observed.clone()
    }

    fn replicate_work(&self) -> u64 {
        let strata = self.table.strata().count().max(1);
        100 + 40 * (strata * self.margin.len()) as u64
    }

    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let sampler = TableSampler::new(&self.table, &self.block_of, self.instructions);
        if !self.is_stratified() {
            let add = |statistic: &mut f64, _: usize, margin: &[f64], evaluations: &mut [Evaluation]| {
                *statistic = self.statistic_of(margin, evaluations);
            };
            return sampler.fill(draws, control, || 0.0, add, |statistic| *statistic);
        }
        let groups: Vec<usize> = (0..self.table.n_groups()).collect();
        let add = |total: &mut Totals, block: usize, margin: &[f64], _: &mut [Evaluation]| {
            total.add(self, block, margin, &groups);
        };
        let new = || Totals::new(self, groups.len());
        sampler.fill(draws, control, new, add, |total| total.statistic(self.comparison.studentize))
    }

    fn exact_work(&self) -> Option<u64> {
        exact::work(self)
    }

    fn exact(&self, alternative: Alternative, control: &Control) -> Result<Option<ExactLaw>> {
        exact::law(self, alternative, control)
    }

    /// A nonlinear metric over several parts is only nearly centred by what is expected of it. A joint criterion has
    /// no direction.
    fn needs_centring(&self) -> bool {
        let nonlinear = !self.metric.is_proportion() && !matches!(self.metric, Metric::Joint(_));
        let has_parts = self.block_of.windows(2).any(|pair| pair[0] == pair[1]);
        self.table.n_groups() == 2 && has_parts && nonlinear
    }

    fn groups(&self) -> Option<&dyn GroupTest> {
        Some(self)
    }
}

impl GroupTest for CountTest {
    fn n_groups(&self) -> usize {
        self.table.n_groups()
    }

    /// Draws of sixteen replicates at a time cost far less than those of a permutation.
    fn bootstrap_work(&self) -> u64 {
        50 + 25 * self.margin.len() as u64
    }

    fn pair_statistic(&self, pair: (usize, usize)) -> f64 {
        if self.is_stratified() {
            return self.pair_totals(&self.margins, pair).statistic(self.comparison.studentize);
        }
        self.statistic_of_pair(&self.margin, &self.observed, pair)
    }

    fn contrast(&self, pair: (usize, usize)) -> Option<Contrast> {
        let is_joint = matches!(self.metric, Metric::Joint(_));
        match self.pair_totals(&self.margins, pair).each.first() {
            Some(Total::Gap(contrast)) if self.is_stratified() && !is_joint => Some(*contrast),
            _ => None,
        }
    }

    fn n_strata(&self) -> usize {
        self.n_blocks
    }

    fn max_t(&self, pairs: &[(usize, usize)], draws: &Draws, control: &Control) -> Result<Vec<u64>> {
        let family = StepDown::new(self, pairs)?;
        let place: HashMap<(usize, usize), usize> = pairs.iter().enumerate().map(|(i, &pair)| (pair, i)).collect();
        let sampler = TableSampler::new(&self.table, &self.block_of, self.instructions);
        let studentize = self.comparison.studentize;
        family.count_all(draws, BLOCK, control, |replicates, counts| {
            if self.is_stratified() {
                let new = || vec![Totals::new(self, 2); pairs.len()];
                let add = |totals: &mut Vec<Totals>, block: usize, margin: &[f64], _: &mut [Evaluation]| {
                    for (total, &(i, j)) in totals.iter_mut().zip(pairs) {
                        total.add(self, block, margin, &[i, j]);
                    }
                };
                sampler.visit(draws, replicates, new, add, |totals| {
                    family.count(|pair| totals[place[&pair]].statistic(studentize), counts);
                });
                return Ok(());
            }
            let add = |(): &mut (), _: usize, margin: &[f64], evaluations: &mut [Evaluation]| {
                self.evaluate_into(margin, evaluations);
                family.count(|pair| self.statistic_of_pair(margin, evaluations, pair), counts);
            };
            sampler.visit(draws, replicates, || (), add, |()| ());
            Ok(())
        })
    }

    fn bootstrap(&self, with_variances: bool, draws: &Draws, control: &Control) -> Result<Replicates> {
        bootstrap::of_counts(&self.margin, &self.metric, with_variances, draws, self.instructions, control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Formula;

    fn metric(text: &str) -> Metric {
        Formula::parse(text).unwrap().to_metric()
    }

    #[test]
    fn pooled_difference_is_the_two_proportion_score_statistic() {
        let table = Table::new(vec![30, 0, 10, 0, 20, 0, 20, 0], 2, 4).unwrap();
        let test = CountTest::new(&table, &metric("tp/(tp+fn)"), &Conditioning::None, Studentize::Pooled).unwrap();
        let expected = 0.25 / (0.625f64 * 0.375 * (2.0 / 40.0)).sqrt();
        assert!((test.observed() - expected).abs() < 1e-14);
    }

    #[test]
    fn pooled_omnibus_is_pearsons_chi_square() {
        let table = Table::new(vec![30, 10, 20, 20, 15, 25], 3, 2).unwrap();
        let share = Metric::Fraction { numerator: vec![1.0, 0.0], denominator: vec![1.0, 1.0] };
        let test = CountTest::new(&table, &share, &Conditioning::None, Studentize::Pooled).unwrap();
        let expected: f64 = [30.0, 20.0, 15.0]
            .iter()
            .map(|&x: &f64| {
                let mean = 65.0 / 3.0;
                (x - mean).powi(2) / mean + (x - mean).powi(2) / (40.0 - mean)
            })
            .sum();
        assert!((test.observed() - expected).abs() < 1e-12);
    }

    #[test]
    fn equal_metrics_without_variance_are_no_evidence() {
        let table = Table::new(vec![10, 0, 0, 0, 20, 0, 0, 0], 2, 4).unwrap();
        for studentize in [Studentize::Pooled, Studentize::Unpooled, Studentize::None] {
            let test = CountTest::new(&table, &metric("tp/(tp+fn)"), &Conditioning::None, studentize).unwrap();
            assert_eq!(test.observed(), 0.0);
        }
    }

    #[test]
    fn conditioning_on_the_denominator_drops_the_other_rows() {
        let table = Table::new(vec![3, 4, 5, 6, 7, 8, 9, 10], 2, 4).unwrap();
        let test =
            CountTest::new(&table, &metric("tp/(tp+fn)"), &Conditioning::Denominator, Studentize::Pooled).unwrap();
        assert_eq!(test.table.strata().count(), 1);
        assert_eq!(test.table.n_rows(), 3 + 5 + 7 + 9);
    }

    /// One group lies 20 points lower in both strata, but is more often in the better one.
    #[test]
    fn what_strata_explain_is_no_evidence_and_hides_none() {
        let counts = vec![70, 30, 9, 1, 3, 7, 50, 50];
        let share = Metric::Fraction { numerator: vec![1.0, 0.0], denominator: vec![1.0, 1.0] };
        let test = CountTest::new(&Table::new(counts, 2, 2).unwrap(), &share, &Conditioning::None, Studentize::Pooled)
            .unwrap();
        let groups = test.evaluations();
        assert!(groups[0].value > groups[1].value && test.observed() < -1.0);
        assert!(test.exact(Alternative::Less, &Control::default()).unwrap().unwrap().pvalue < 0.1);
        // The statistic is centred: its mean over the law is 0.
        let law = test.exact(Alternative::TwoSided, &Control::default()).unwrap().unwrap();
        let mean: f64 = law.statistics.iter().zip(&law.probabilities).map(|(s, p)| s * p).sum();
        assert!(mean.abs() < 1e-9, "{mean}");
    }

    #[test]
    fn shapes_and_variances_that_do_not_fit_are_refused() {
        assert!(Table::new(vec![1, 2, 3], 2, 2).is_err());
        assert!(Table::new(vec![1, 2], 1, 2).is_err());
        assert!(Table::new(vec![u64::MAX, 2], 2, 1).is_err());
        let table = Table::new(vec![3, 4, 5, 6, 7, 8, 9, 10], 2, 4).unwrap();
        let f1 = metric("2*tp/(2*tp+fp+fn)");
        let error = CountTest::new(&table, &f1, &Conditioning::None, Studentize::Pooled).unwrap_err();
        assert!(error.to_string().contains("only for proportions"));
    }
}
