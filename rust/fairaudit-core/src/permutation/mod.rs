//! Permutation tests of equal metrics across groups (`DiCiccio` et al., KDD 2020).
//!
//! The observed table is a stack of strata; within each stratum the group labels are
//! exchangeable. A replicate is a table with the same margins: [`cells`] draws it, [`exact`]
//! sums over all of them. The statistic is recomputed for every replicate from its counts.

mod callable;
mod cells;
mod exact;
mod joint;
mod max_t;
mod shuffle;
mod stream;

pub use callable::{FunctionTest, OBSERVED, Samples};
pub use cells::{max_t, null_distribution};
pub use exact::{Exact, exact};
pub use shuffle::CorrelationTest;
pub use stream::{Groups, RowTest};

use max_t::StepDown;

use crate::error::{Error, Result};
use crate::metrics::{Evaluation, Metric, merge_classes};
use crate::tabulate::Table;

/// Two statistics closer than this, relative to the observed one, are a tie.
pub const TIE_TOLERANCE: f64 = 1e-10;

/// How the difference of two metrics is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Studentize {
    /// Not at all.
    None,
    /// By the root of the sum of the two linearised variances.
    Unpooled,
    /// By the score variance p(1 - `p)(1/d_1` + `1/d_2`) of a proportion.
    Pooled,
}

/// Which statistics count as at least as extreme as the observed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternative {
    /// Large |S|.
    TwoSided,
    /// Large S.
    Greater,
    /// Small S.
    Less,
}

impl Alternative {
    /// Whether `statistic` is at least as extreme as `observed`; undefined counts as extreme.
    #[inline]
    pub fn is_extreme(self, statistic: f64, observed: f64) -> bool {
        if statistic.is_nan() {
            return true;
        }
        let (statistic, observed) = match self {
            Self::TwoSided => (statistic.abs(), observed.abs()),
            Self::Greater => (statistic, observed),
            Self::Less => (-statistic, -observed),
        };
        statistic >= observed || (observed.is_finite() && statistic >= observed - TIE_TOLERANCE * observed.abs())
    }
}

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
/// use fairaudit_core::permutation::{Alternative, Conditioning, Studentize, Test, exact};
/// use fairaudit_core::tabulate::Table;
/// // tp, fp, fn, tn of two groups
/// let table = Table::new(vec![8, 0, 2, 0, 3, 0, 7, 0], 2, 4).unwrap();
/// let metric = Formula::parse("tp / (tp + fn)").unwrap().to_metric();
/// let test = Test::new(&table, &metric, &Conditioning::Denominator, Studentize::Pooled).unwrap();
/// let law = exact(&test, Alternative::TwoSided, &Control::default()).unwrap().unwrap();
/// assert!((law.pvalue - 0.069_779).abs() < 1e-6); // Fisher's test of 8/10 against 3/10
/// ```
#[derive(Debug, Clone)]
pub struct Test {
    table: Table,
    metric: Metric,
    studentize: Studentize,
    /// The metric of each group at the mean of its counts over all permutations. With one
    /// stratum it is the same for all groups; strata of different composition make it differ,
    /// and what differs by them alone is no evidence. Of a joint criterion that of every
    /// component (fastest).
    expected: Vec<f64>,
}

impl Test {
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
        Ok(Self { table, metric: merged, studentize, expected })
    }

    /// The metric in every group of the observed table.
    pub fn evaluations(&self) -> Vec<Evaluation> {
        self.evaluate(&self.table.margin())
    }

    /// The metric of each group that its strata alone explain.
    pub fn expected(&self) -> &[f64] {
        &self.expected
    }

    /// Whether the null distribution of a difference must be centred at its own mean: a
    /// nonlinear metric over several strata is only nearly centred by [`Test::expected`]. A joint
    /// criterion has no direction.
    pub fn needs_centring(&self) -> bool {
        let nonlinear = !self.metric.is_proportion() && !matches!(self.metric, Metric::Joint(_));
        self.table.n_groups() == 2 && self.table.strata().count() > 1 && nonlinear
    }

    /// The observed statistic: the difference of two groups, or the omnibus of more.
    pub fn observed(&self) -> f64 {
        let margin = self.table.margin();
        self.statistic_of(&margin, &mut self.evaluate(&margin))
    }

    /// The statistic of a table with these class counts of every group; `evaluations` is a buffer.
    #[inline]
    fn statistic_of(&self, margin: &[f64], evaluations: &mut [Evaluation]) -> f64 {
        if let Metric::Joint(components) = &self.metric {
            let groups: Vec<usize> = (0..self.table.n_groups()).collect();
            return joint::statistic(components, margin, &groups, &self.expected, self.studentize);
        }
        self.evaluate_into(margin, evaluations);
        self.statistic(evaluations)
    }

    /// The statistic of two groups.
    fn pair_statistic(&self, margin: &[f64], groups: &[Evaluation], (i, j): (usize, usize)) -> f64 {
        if let Metric::Joint(components) = &self.metric {
            return joint::statistic(components, margin, &[i, j], &self.expected, self.studentize);
        }
        difference(&groups[i], &groups[j], self.expected_gap(i, j), self.studentize)
    }

    fn evaluate(&self, margin: &[f64]) -> Vec<Evaluation> {
        margin.chunks(self.table.n_classes()).map(|counts| self.metric.evaluate(counts)).collect()
    }

    /// What the statistic needs of every group.
    #[inline]
    fn evaluate_into(&self, margin: &[f64], evaluations: &mut [Evaluation]) {
        for (evaluation, counts) in evaluations.iter_mut().zip(margin.chunks(self.table.n_classes())) {
            *evaluation = match self.studentize {
                Studentize::Unpooled => self.metric.evaluate(counts),
                Studentize::Pooled | Studentize::None => self.metric.evaluate_value(counts),
            };
        }
    }

    #[inline]
    fn statistic(&self, evaluations: &[Evaluation]) -> f64 {
        match evaluations {
            [first, second] => difference(first, second, self.expected_gap(0, 1), self.studentize),
            groups => omnibus(groups, &self.expected, self.studentize),
        }
    }

    #[inline]
    fn expected_gap(&self, first: usize, second: usize) -> f64 {
        let gap = self.expected[first] - self.expected[second];
        // Equal but for rounding: one stratum.
        if gap.abs() <= 1e-12 { 0.0 } else { gap }
    }
}

/// S = (`theta_1` - `theta_2` - `expected`) / sqrt(v), NaN when a metric is undefined.
///
/// No gap gives 0 whatever the variance; a gap without variance gives an infinite statistic.
#[inline]
fn difference(first: &Evaluation, second: &Evaluation, expected: f64, studentize: Studentize) -> f64 {
    let gap = first.value - second.value - expected;
    if gap.abs() <= 1e-14 * (first.value.abs() + second.value.abs() + expected.abs()) {
        return 0.0;
    }
    let variance = match studentize {
        Studentize::None => return gap,
        Studentize::Unpooled => first.variance + second.variance,
        Studentize::Pooled => {
            let p = (first.numerator + second.numerator) / (first.denominator + second.denominator);
            p * (1.0 - p) * (1.0 / first.denominator + 1.0 / second.denominator)
        }
    };
    gap / variance.sqrt()
}

/// W = `sum_g` (`theta_g` - mean)^2 / `v_g` with the mean weighted by 1 / `v_g`, of the metrics less
/// what is expected of them; for proportions with the pooled variance this is Pearson's
/// chi-square. Unstudentized: max - min.
fn omnibus(groups: &[Evaluation], expected: &[f64], studentize: Studentize) -> f64 {
    if !groups.iter().all(Evaluation::is_defined) {
        return f64::NAN;
    }
    // Relative to the first one, so that equal expectations change nothing at all.
    let excess = |g: usize| groups[g].value - (expected[g] - expected[0]);
    let all = 0..groups.len();
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for g in all.clone() {
        low = low.min(excess(g));
        high = high.max(excess(g));
    }
    if high - low <= 1e-14 * (high.abs() + low.abs()) {
        return 0.0;
    }
    match studentize {
        Studentize::None => high - low,
        Studentize::Pooled => {
            let rows: f64 = groups.iter().map(|group| group.denominator).sum();
            let p = groups.iter().map(|group| group.numerator).sum::<f64>() / rows;
            let mean = all.clone().map(|g| groups[g].denominator * excess(g)).sum::<f64>() / rows;
            all.map(|g| groups[g].denominator * (excess(g) - mean).powi(2)).sum::<f64>() / (p * (1.0 - p))
        }
        Studentize::Unpooled => {
            // A group without variance pins the mean: the limit of a variance that goes to 0.
            let mut certain = all.clone().filter(|&g| groups[g].variance == 0.0);
            if let Some(mean) = certain.next().map(excess) {
                if certain.any(|g| excess(g) != mean) {
                    return f64::INFINITY;
                }
                let uncertain = all.filter(|&g| groups[g].variance > 0.0);
                return uncertain.map(|g| (excess(g) - mean).powi(2) / groups[g].variance).sum();
            }
            let weights: f64 = groups.iter().map(|group| 1.0 / group.variance).sum();
            let mean = all.clone().map(|g| excess(g) / groups[g].variance).sum::<f64>() / weights;
            all.map(|g| (excess(g) - mean).powi(2) / groups[g].variance).sum()
        }
    }
}

/// Where a null distribution is centred: its mean with the observed statistic, which no
/// permutation of the data changes, so that the test stays valid. 0 when nothing is finite.
pub fn center_of(null: &[f64], observed: f64) -> f64 {
    let finite = || null.iter().copied().chain([observed]).filter(|statistic| statistic.is_finite());
    let n = finite().count();
    if n == 0 { 0.0 } else { finite().sum::<f64>() / n as f64 }
}

/// How many of the null statistics, less `center`, are at least as extreme as the observed one,
/// and how many of these are undefined.
pub fn count_extreme(null: &[f64], observed: f64, alternative: Alternative, center: f64) -> (u64, u64) {
    let mut extreme = 0;
    let mut undefined = 0;
    for &statistic in null {
        extreme += u64::from(alternative.is_extreme(statistic - center, observed - center));
        undefined += u64::from(statistic.is_nan());
    }
    (extreme, undefined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Formula;
    use crate::parallel::Control;

    fn metric(text: &str) -> Metric {
        Formula::parse(text).unwrap().to_metric()
    }

    #[test]
    fn pooled_difference_is_the_two_proportion_score_statistic() {
        let table = Table::new(vec![30, 0, 10, 0, 20, 0, 20, 0], 2, 4).unwrap();
        let test = Test::new(&table, &metric("tp/(tp+fn)"), &Conditioning::None, Studentize::Pooled).unwrap();
        let expected = 0.25 / (0.625f64 * 0.375 * (2.0 / 40.0)).sqrt();
        assert!((test.observed() - expected).abs() < 1e-14);
    }

    #[test]
    fn pooled_omnibus_is_pearsons_chi_square() {
        let table = Table::new(vec![30, 10, 20, 20, 15, 25], 3, 2).unwrap();
        let share = Metric::Fraction { numerator: vec![1.0, 0.0], denominator: vec![1.0, 1.0] };
        let test = Test::new(&table, &share, &Conditioning::None, Studentize::Pooled).unwrap();
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
    fn a_group_without_variance_pins_the_mean_of_the_omnibus() {
        let group = |value, variance| Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN };
        let groups = [group(1.0, 0.0), group(0.9, 0.01), group(0.8, 0.01)];
        assert!((omnibus(&groups, &[0.0; 3], Studentize::Unpooled) - 5.0).abs() < 1e-12);
        let groups = [group(1.0, 0.0), group(0.9, 0.0), group(0.8, 0.01)];
        assert_eq!(omnibus(&groups, &[0.0; 3], Studentize::Unpooled), f64::INFINITY);
    }

    #[test]
    fn extreme_statistics() {
        use Alternative::{Greater, Less, TwoSided};
        assert!(TwoSided.is_extreme(-2.0, 2.0));
        assert!(!Greater.is_extreme(-2.0, 2.0));
        assert!(Less.is_extreme(-2.0, 2.0));
        assert!(Greater.is_extreme(2.0 * (1.0 - 1e-12), 2.0));
        assert!(!Greater.is_extreme(2.0 * (1.0 - 1e-9), 2.0));
        assert!(TwoSided.is_extreme(f64::NAN, 2.0));
        assert!(!TwoSided.is_extreme(1e300, f64::INFINITY));
        assert!(TwoSided.is_extreme(f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn equal_metrics_without_variance_are_no_evidence() {
        let table = Table::new(vec![10, 0, 0, 0, 20, 0, 0, 0], 2, 4).unwrap();
        for studentize in [Studentize::Pooled, Studentize::Unpooled, Studentize::None] {
            let test = Test::new(&table, &metric("tp/(tp+fn)"), &Conditioning::None, studentize).unwrap();
            assert_eq!(test.observed(), 0.0);
        }
    }

    #[test]
    fn conditioning_on_the_denominator_drops_the_other_rows() {
        let table = Table::new(vec![3, 4, 5, 6, 7, 8, 9, 10], 2, 4).unwrap();
        let test = Test::new(&table, &metric("tp/(tp+fn)"), &Conditioning::Denominator, Studentize::Pooled).unwrap();
        assert_eq!(test.table.strata().count(), 1);
        assert_eq!(test.table.n_rows(), 3 + 5 + 7 + 9);
    }

    /// One group lies 20 points lower in both strata, but is more often in the better one.
    #[test]
    fn what_strata_explain_is_no_evidence_and_hides_none() {
        let counts = vec![70, 30, 9, 1, 3, 7, 50, 50];
        let share = Metric::Fraction { numerator: vec![1.0, 0.0], denominator: vec![1.0, 1.0] };
        let test =
            Test::new(&Table::new(counts, 2, 2).unwrap(), &share, &Conditioning::None, Studentize::Pooled).unwrap();
        let groups = test.evaluations();
        assert!(groups[0].value > groups[1].value && test.observed() < -1.0);
        assert!(exact(&test, Alternative::Less, &Control::default()).unwrap().unwrap().pvalue < 0.1);
        // The statistic is centred: its mean over the law is 0.
        let law = exact(&test, Alternative::TwoSided, &Control::default()).unwrap().unwrap();
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
        let error = Test::new(&table, &f1, &Conditioning::None, Studentize::Pooled).unwrap_err();
        assert!(error.to_string().contains("only for proportions"));
    }
}
