//! Tests on tables of counts: what is exchangeable, and the statistic of a table.

use super::max_t::StepDown;
use super::statistic::Comparison;
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
    pub(super) metric: Metric,
    /// Class counts of every group, of all rows: what a bootstrap draws from.
    margin: Vec<f64>,
    /// The metric in every group, as observed.
    observed: Vec<Evaluation>,
    /// Expected is the metric of each group at the mean of its counts over all permutations. With one
    /// stratum it is the same for all groups; strata of different composition make it differ,
    /// and what differs by them alone is no evidence. Of a joint criterion that of every
    /// component (fastest).
    pub(super) comparison: Comparison,
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
        if metric.n_classes() != table.n_classes() {
            return Err(Error::argument(
                "metric",
                format!("over {} classes", metric.n_classes()),
                "one over the classes of the table",
            ));
        }
        if let Metric::Joint(components) = metric {
            joint::check(components, studentize)?;
            if *conditioning == Conditioning::Denominator {
                return Err(Error::argument("conditioning", "on the denominator", "proportions only"));
            }
        } else if !metric.is_proportion() {
            if studentize == Studentize::Pooled {
                return Err(Error::argument(
                    "studentize",
                    "\"pooled\"",
                    "\"pooled\" only for proportions; \"unpooled\" for this metric",
                ));
            }
            if *conditioning == Conditioning::Denominator {
                return Err(Error::argument("conditioning", "on the denominator", "proportions only"));
            }
        }
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
        let split = parts.map_or_else(|| table.clone(), |parts| table.split(&parts));
        let table = split.merge(&new_class, merged.n_classes()).keep_strata(&matters);
        let mean_counts = table.mean_margin();
        let components = match &merged {
            Metric::Joint(components) => &components[..],
            one => std::slice::from_ref(one),
        };
        let expected = mean_counts
            .chunks(table.n_classes())
            .flat_map(|counts| components.iter().map(|metric| metric.evaluate(counts).value))
            .map(|value| if value.is_nan() { 0.0 } else { value })
            .collect();
        let observed = margin.chunks(table.n_classes()).map(|counts| merged.evaluate(counts)).collect();
        let comparison = Comparison { expected, studentize };
        Ok(Self { table, metric: merged, margin, observed, comparison, instructions: InstructionSet::current()? })
    }

    /// The statistic of a table with these class counts of every group; `evaluations` is a buffer.
    #[inline]
    pub(super) fn statistic_of(&self, margin: &[f64], evaluations: &mut [Evaluation]) -> f64 {
        if let Metric::Joint(components) = &self.metric {
            let groups: Vec<usize> = (0..self.table.n_groups()).collect();
            return joint::statistic(components, margin, &groups, &self.comparison);
        }
        self.evaluate_into(margin, evaluations);
        self.comparison.of_all(evaluations)
    }

    /// The statistic of two groups of a table.
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
                Studentize::Unpooled => self.metric.evaluate(counts),
                Studentize::Pooled | Studentize::None => self.metric.evaluate_value(counts),
            };
        }
    }
}

impl PermutationTest for CountTest {
    fn observed(&self) -> f64 {
        self.statistic_of(&self.margin, &mut self.observed.clone())
    }

    fn evaluations(&self) -> Vec<Evaluation> {
        self.observed.clone()
    }

    fn replicate_work(&self) -> u64 {
        let strata = self.table.strata().count().max(1);
        100 + 40 * (strata * self.margin.len()) as u64
    }

    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let sampler = TableSampler::new(&self.table, self.instructions);
        sampler.fill(draws, control, |margin, evaluations| self.statistic_of(margin, evaluations))
    }

    fn exact_work(&self) -> Option<u64> {
        exact::work(self)
    }

    fn exact(&self, alternative: Alternative, control: &Control) -> Result<Option<ExactLaw>> {
        exact::law(self, alternative, control)
    }

    /// A nonlinear metric over several strata is only nearly centred by [`GroupTest::expected`]. A joint criterion has
    /// no direction.
    fn needs_centring(&self) -> bool {
        let nonlinear = !self.metric.is_proportion() && !matches!(self.metric, Metric::Joint(_));
        self.table.n_groups() == 2 && self.table.strata().count() > 1 && nonlinear
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

    fn expected(&self) -> &[f64] {
        &self.comparison.expected
    }

    fn pair_statistic(&self, pair: (usize, usize)) -> f64 {
        self.statistic_of_pair(&self.margin, &self.observed, pair)
    }

    fn max_t(&self, pairs: &[(usize, usize)], draws: &Draws, control: &Control) -> Result<Vec<u64>> {
        let family = StepDown::new(self, pairs)?;
        let sampler = TableSampler::new(&self.table, self.instructions);
        family.count_all(draws, BLOCK, control, |replicates, counts| {
            sampler.visit(draws, replicates, |margin, evaluations| {
                self.evaluate_into(margin, evaluations);
                family.count(|pair| self.statistic_of_pair(margin, evaluations, pair), counts);
            });
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
