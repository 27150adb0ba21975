//! The `exact` engine: the whole permutation law is summed.

use super::strata::{Contrast, Part};
use super::{Alternative, CountTest, GroupTest, PermutationTest, Studentize};
use crate::error::Result;
use crate::metrics::{Evaluation, Metric};
use crate::parallel::Control;
use crate::random::{Hypergeometric, ln_factorial};
use crate::tabulate::Table;

/// Widest law of one count that is summed.
const MAX_SUPPORT: usize = 1 << 22;
/// Most products in the convolution of the laws of several strata.
const MAX_PRODUCTS: usize = 1 << 24;
/// Most rows, tables, steps and nested choices in an enumeration.
const MAX_ROWS: u64 = 200;
const MAX_TABLES: usize = 100_000;
const MAX_STEPS: usize = 1_000_000;
const MAX_DEPTH: usize = 200;
/// Nanoseconds of a count of a law, and of a step of an enumeration.
const COUNT_WORK: u64 = 50;
const STEP_WORK: u64 = 200;

/// A permutation law that was summed completely.
#[derive(Debug, Clone, PartialEq)]
pub struct ExactLaw {
    /// The probability of a statistic at least as extreme as the observed one.
    pub pvalue: f64,
    /// The probability of an undefined statistic (it is a part of `pvalue`).
    pub undefined: f64,
    /// The values that the statistic can take; NaN when it is undefined.
    pub statistics: Vec<f64>,
    /// Their probabilities.
    pub probabilities: Vec<f64>,
}

/// Sums the permutation law of a test, or nothing when it is too large for that.
///
/// With two groups and a proportion whose denominators no permutation can change, the law is
/// that of one hypergeometric count, or a sum of one per stratum, and extreme is decided on
/// integers (with several strata, whose means are no integers, within a relative 1e-10).
/// Otherwise all tables with the observed margins are enumerated when there are at most
/// 100,000 and finding them takes at most a million steps.
pub(super) fn law(test: &CountTest, alternative: Alternative, control: &Control) -> Result<Option<ExactLaw>> {
    if CountLaw::applies(test) {
        return Ok(CountLaw::new(test).map(|law| law.into_exact(test, alternative)));
    }
    enumerate(test, alternative, control)
}

/// Nanoseconds that [`law`] takes at most, by estimate; none if it would return nothing at once.
pub(super) fn work(test: &CountTest) -> Option<u64> {
    if CountLaw::applies(test) {
        let rows = test.table.n_rows();
        let products = if test.table.strata().count() > 1 { rows.saturating_mul(rows) } else { 0 };
        return Some(rows.saturating_mul(COUNT_WORK).saturating_add(products.min(MAX_PRODUCTS as u64)));
    }
    is_small(&test.table).then(|| STEP_WORK * most_steps(&test.table).min(MAX_STEPS as u64))
}

/// Whether all tables with the same margins can perhaps be enumerated.
fn is_small(table: &Table) -> bool {
    let depth = table.strata().count() * (table.n_groups() - 1) * table.n_classes();
    table.n_rows() <= MAX_ROWS && depth <= MAX_DEPTH && depth > 0
}

/// Steps of an enumeration if every count could be chosen freely.
fn most_steps(table: &Table) -> u64 {
    let choices = table.strata().flat_map(|stratum| {
        let (totals, sizes) = (table.class_totals(stratum), table.group_sizes(stratum));
        let others = sizes[..table.n_groups() - 1].to_vec();
        others.into_iter().flat_map(move |size| totals.clone().into_iter().map(move |total| size.min(total) + 1))
    });
    choices.fold(1, |steps: u64, choices| steps.saturating_mul(choices).saturating_add(1))
}

/// The law of the numerator count of the first group when all denominators are fixed.
struct CountLaw {
    first: u64,
    law: Vec<f64>,
    /// Numerator count of the first group as observed, of both groups, and the denominators.
    observed: u64,
    total: u64,
    denominators: [u64; 2],
    /// What strata of the user's add up to as observed, and the numerator count that they let expect.
    within: Contrast,
    expected: f64,
}

impl CountLaw {
    /// Two groups, a proportion, and strata that lie inside its denominator or outside of it.
    fn applies(test: &CountTest) -> bool {
        let Metric::Fraction { denominator, .. } = &test.metric else { return false };
        let pure = |stratum: &[u64]| {
            let totals = test.table.class_totals(stratum);
            let in_rows = |inside: bool| totals.iter().zip(denominator).any(|(&n, &d)| n > 0 && (d != 0.0) == inside);
            !(in_rows(true) && in_rows(false))
        };
        // Within strata of the user's, only the gap of all is a function of the count.
        let one_part = test.block_of.windows(2).all(|pair| pair[0] < pair[1]);
        let fits = !test.is_stratified() || (one_part && test.comparison.studentize != Studentize::Unpooled);
        test.table.n_groups() == 2 && test.metric.is_proportion() && fits && test.table.strata().all(pure)
    }

    /// The law, or nothing when it is too wide.
    fn new(test: &CountTest) -> Option<Self> {
        let Metric::Fraction { numerator, denominator } = &test.metric else { return None };
        let nothing = Contrast::default();
        let mut law = Self {
            first: 0,
            law: vec![1.0],
            observed: 0,
            total: 0,
            denominators: [0, 0],
            within: nothing,
            expected: 0.0,
        };
        let mut products = 0usize;
        for stratum in test.table.strata() {
            let totals = test.table.class_totals(stratum);
            let sum = |coefficients: &[f64], counts: &[u64]| -> u64 {
                counts.iter().zip(coefficients).filter(|(_, c)| **c != 0.0).map(|(&n, _)| n).sum()
            };
            let rows = sum(denominator, &totals);
            if rows == 0 {
                continue;
            }
            let hits = sum(numerator, &totals);
            let sizes = test.table.group_sizes(stratum);
            law.observed += sum(numerator, stratum);
            law.total += hits;
            law.denominators[0] += sizes[0];
            law.denominators[1] += sizes[1];
            law.expected += sizes[0] as f64 * (hits as f64 / rows as f64);
            let (mine, all) = (sum(numerator, &stratum[..test.table.n_classes()]), hits);
            let group = |hits: u64, rows: u64| Part::of_share(hits as f64, rows as f64);
            let (first, second) = (group(mine, sizes[0]), group(all - mine, sizes[1]));
            law.within.add(&first, &second, test.comparison.studentize);
            let (first, terms) = Hypergeometric::new(rows, hits, sizes[0]).law(MAX_SUPPORT)?;
            products += law.law.len() * terms.len();
            if products > MAX_PRODUCTS {
                return None;
            }
            law.first += first;
            law.law = convolve(&law.law, &terms);
        }
        Some(law)
    }

    /// (`theta_1` - `theta_2`) `d_1` `d_2`, an integer.
    fn scaled_gap(&self, x: u64) -> i128 {
        let [first, second] = self.denominators.map(i128::from);
        i128::from(x) * (first + second) - i128::from(self.total) * first
    }

    fn statistic(&self, test: &CountTest, x: u64) -> f64 {
        if test.is_stratified() {
            return self.within.pooled(x as f64 - self.expected, test.comparison.studentize);
        }
        let evaluation = |hits: u64, rows: u64| {
            let (hits, rows) = (hits as f64, rows as f64);
            let value = hits / rows;
            Evaluation { value, variance: value * (1.0 - value) / rows, numerator: hits, denominator: rows }
        };
        let [first, second] = self.denominators;
        let groups = [evaluation(x, first), evaluation(self.total - x, second)];
        test.comparison.of_pair(&groups, (0, 1))
    }

    fn into_exact(self, test: &CountTest, alternative: Alternative) -> ExactLaw {
        let comparison = &test.comparison;
        let observed_gap = self.scaled_gap(self.observed);
        let observed = self.statistic(test, self.observed);
        let mut statistics = Vec::with_capacity(self.law.len());
        let mut pvalue = 0.0;
        for (offset, &probability) in self.law.iter().enumerate() {
            let x = self.first + offset as u64;
            let statistic = self.statistic(test, x);
            // The scale is the same for all x unless the variance is not pooled.
            let apart = test.is_stratified() || comparison.expected_gap(0, 1) != 0.0;
            let extreme = if comparison.studentize == Studentize::Unpooled || apart {
                alternative.is_extreme(statistic, observed)
            } else {
                let gap = self.scaled_gap(x);
                match alternative {
                    Alternative::TwoSided => gap.abs() >= observed_gap.abs(),
                    Alternative::Greater => gap >= observed_gap,
                    Alternative::Less => gap <= observed_gap,
                }
            };
            if extreme {
                pvalue += probability;
            }
            statistics.push(statistic);
        }
        // Relative to the sum, so that a law that is extreme throughout gives 1; and an observed
        // count so far out that its probability underflows does not give 0.
        let pvalue = f64::clamp(pvalue / self.law.iter().sum::<f64>(), f64::MIN_POSITIVE, 1.0);
        ExactLaw { pvalue, undefined: 0.0, statistics, probabilities: self.law }
    }
}

fn convolve(first: &[f64], second: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; first.len() + second.len() - 1];
    for (i, &a) in first.iter().enumerate() {
        for (j, &b) in second.iter().enumerate() {
            sum[i + j] += a * b;
        }
    }
    sum
}

/// Depth-first walk over all tables with the margins of the test.
struct Enumeration<'a> {
    test: &'a CountTest,
    control: &'a Control,
    steps: usize,
    strata: Vec<(Vec<u64>, Vec<u64>)>,
    /// Class counts of every group, by stratum of the user's.
    margin: Vec<f64>,
    leaves: Vec<(f64, f64)>,
}

fn enumerate(test: &CountTest, alternative: Alternative, control: &Control) -> Result<Option<ExactLaw>> {
    let table = &test.table;
    if !is_small(table) {
        return Ok(None);
    }
    let strata: Vec<_> =
        table.strata().map(|stratum| (table.class_totals(stratum), table.group_sizes(stratum))).collect();
    let (left, need) = (strata[0].0.clone(), strata[0].1[0]);
    let margin = vec![0.0; test.width() * test.n_strata()];
    let mut walk = Enumeration { test, control, strata, margin, leaves: Vec::new(), steps: 0 };
    let complete = walk.visit(0, 0, 0, &left, need, 0.0);
    control.check()?;
    if !complete {
        return Ok(None);
    }
    let total: f64 = walk.leaves.iter().map(|leaf| leaf.1).sum();
    let (statistics, weights): (Vec<f64>, Vec<f64>) = walk.leaves.into_iter().unzip();
    let probabilities: Vec<f64> = weights.into_iter().map(|weight| weight / total).collect();
    let law = || statistics.iter().copied().zip(probabilities.iter().copied());
    let center = if test.needs_centring() {
        let finite = || law().filter(|(statistic, _)| statistic.is_finite());
        finite().map(|(statistic, p)| statistic * p).sum::<f64>() / finite().map(|(_, p)| p).sum::<f64>()
    } else {
        0.0
    };
    let observed = test.observed() - center;
    let extreme = law().filter(|(statistic, _)| alternative.is_extreme(statistic - center, observed));
    let pvalue = extreme.map(|(_, p)| p).sum::<f64>().min(1.0);
    let undefined = law().filter(|(statistic, _)| statistic.is_nan()).map(|(_, p)| p).sum();
    Ok(Some(ExactLaw { pvalue, undefined, statistics, probabilities }))
}

impl Enumeration<'_> {
    /// Chooses the count of `class` in `group` of `stratum`; `left` are the rows of each class
    /// that no earlier group took, `need` the rows that this group still needs. False when
    /// there are too many tables or steps, or the call was cancelled.
    fn visit(&mut self, stratum: usize, group: usize, class: usize, left: &[u64], need: u64, ln_weight: f64) -> bool {
        let (n_groups, n_classes) = (self.test.table.n_groups(), self.test.table.n_classes());
        self.steps += 1;
        if self.steps > MAX_STEPS || (self.steps.is_multiple_of(1024) && self.control.check().is_err()) {
            return false;
        }
        if group == n_groups - 1 {
            return self.close_stratum(stratum, left, ln_weight);
        }
        if class == n_classes {
            let next_need = self.strata[stratum].1[group + 1];
            return self.visit(stratum, group + 1, 0, left, next_need, ln_weight);
        }
        let later: u64 = left[class + 1..].iter().sum();
        for count in need.saturating_sub(later)..=need.min(left[class]) {
            let mut remaining = left.to_vec();
            remaining[class] -= count;
            let at = self.test.block_of[stratum] * self.test.width() + group * n_classes + class;
            self.margin[at] += count as f64;
            let fits =
                self.visit(stratum, group, class + 1, &remaining, need - count, ln_weight - ln_factorial(count as f64));
            self.margin[at] -= count as f64;
            if !fits {
                return false;
            }
        }
        true
    }

    /// The last group takes what is left; then the next stratum, or a complete table.
    fn close_stratum(&mut self, stratum: usize, left: &[u64], ln_weight: f64) -> bool {
        let table = &self.test.table;
        let start = self.test.block_of[stratum] * self.test.width() + (table.n_groups() - 1) * table.n_classes();
        let ln_weight = left.iter().fold(ln_weight, |sum, &count| sum - ln_factorial(count as f64));
        for (sum, &count) in self.margin[start..].iter_mut().zip(left) {
            *sum += count as f64;
        }
        let fits = if let Some((totals, sizes)) = self.strata.get(stratum + 1) {
            let (totals, need) = (totals.clone(), sizes[0]);
            self.visit(stratum + 1, 0, 0, &totals, need, ln_weight)
        } else {
            let statistic = self.test.statistic_of(&self.margin, &mut vec![Evaluation::UNDEFINED; table.n_groups()]);
            // Relative to a table of full factorials, so that the exponential cannot underflow.
            let rows = table.n_rows() as f64;
            let scale = ln_factorial((rows / (table.n_groups() * table.n_classes()) as f64).floor());
            let reference = -scale * (table.n_groups() * table.n_classes()) as f64;
            self.leaves.push((statistic, libm::exp(ln_weight - reference)));
            self.leaves.len() <= MAX_TABLES
        };
        for (sum, &count) in self.margin[start..].iter_mut().zip(left) {
            *sum -= count as f64;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::super::Conditioning;
    use super::*;
    use crate::metrics::Formula;

    fn law(counts: Vec<u64>, formula: &str, conditioning: &Conditioning, studentize: Studentize) -> Option<ExactLaw> {
        let table = Table::new(counts, 2, 4).unwrap();
        let metric = Formula::parse(formula).unwrap().to_metric();
        let test = CountTest::new(&table, &metric, conditioning, studentize).unwrap();
        test.exact(Alternative::TwoSided, &Control::default()).unwrap()
    }

    /// The two roads meet: summing one count, and enumerating tables.
    #[test]
    fn enumeration_equals_the_sum_over_one_count() {
        let table = Table::new(vec![6, 1, 4, 9, 2, 3, 7, 5], 2, 4).unwrap();
        let metric = Formula::parse("tp/(tp+fn)").unwrap().to_metric();
        for studentize in [Studentize::None, Studentize::Unpooled, Studentize::Pooled] {
            for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
                let test = CountTest::new(&table, &metric, &Conditioning::Denominator, studentize).unwrap();
                let one_count = test.exact(alternative, &Control::default()).unwrap().unwrap();
                let tables = enumerate(&test, alternative, &Control::default()).unwrap().unwrap();
                assert!((one_count.pvalue - tables.pvalue).abs() < 1e-12);
                assert_eq!(one_count.statistics.len(), tables.statistics.len());
            }
        }
    }

    #[test]
    fn probabilities_add_up_and_undefined_tables_are_extreme() {
        let result = law(vec![2, 0, 1, 4, 0, 0, 1, 5], "tp/(tp+fn)", &Conditioning::None, Studentize::Pooled).unwrap();
        assert!((result.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // All four positives among the 7 rows of the first group, C(9,3) / C(13,7), or among the
        // 6 of the second, C(9,2) / C(13,6).
        assert!((result.undefined - (84.0 + 36.0) / 1716.0).abs() < 1e-12);
        assert!(result.pvalue >= result.undefined);
    }

    #[test]
    fn strata_are_convolved() {
        let counts = vec![5, 0, 3, 0, 1, 0, 6, 0, 4, 0, 1, 0, 2, 0, 2, 0];
        let metric = Formula::parse("tp/(tp+fn)").unwrap().to_metric();
        let table = Table::new(counts, 2, 4).unwrap();
        let test = CountTest::new(&table, &metric, &Conditioning::Denominator, Studentize::Pooled).unwrap();
        let one_count = test.exact(Alternative::TwoSided, &Control::default()).unwrap().unwrap();
        let tables = enumerate(&test, Alternative::TwoSided, &Control::default()).unwrap().unwrap();
        assert!((one_count.pvalue - tables.pvalue).abs() < 1e-12);
        assert!(tables.statistics.len() > one_count.statistics.len());
    }

    #[test]
    fn large_tables_are_not_enumerated() {
        let counts = vec![600, 100, 400, 900, 200, 300, 700, 500];
        assert!(law(counts.clone(), "tp/(tp+fn)", &Conditioning::None, Studentize::Pooled).is_none());
        assert!(law(counts, "tp/(tp+fn)", &Conditioning::Denominator, Studentize::Pooled).is_some());
    }

    /// Many classes and strata: no deep recursion, no endless search.
    #[test]
    fn enumeration_gives_up_early() {
        let bins: Vec<u32> = (0..200).map(|class| class / 2).collect();
        let score = bins.iter().map(|&bin| f64::from(bin) / 100.0).collect();
        let label = (0..200).map(|class| f64::from(class % 2)).collect();
        let metric = crate::metrics::Metric::Calibration(crate::metrics::Calibration::new(bins, score, label).unwrap());
        let counts = (0..10 * 20 * 200).map(|i| u64::from(i % 200 == i / 200 % 200)).collect();
        let table = Table::new(counts, 20, 200).unwrap();
        let test = CountTest::new(&table, &metric, &Conditioning::None, Studentize::Unpooled).unwrap();
        assert_eq!(test.exact(Alternative::TwoSided, &Control::default()), Ok(None));
    }

    #[test]
    fn a_p_value_is_never_zero() {
        let result =
            law(vec![400_000, 0, 0, 0, 0, 0, 400_000, 0], "tp/(tp+fn)", &Conditioning::Denominator, Studentize::Pooled);
        let pvalue = result.unwrap().pvalue;
        assert!(pvalue > 0.0 && pvalue < 1e-300);
    }
}
