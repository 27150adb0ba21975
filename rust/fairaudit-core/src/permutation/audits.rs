//! Audits of a test: data in which the null hypothesis is true are drawn many times, and each is tested.
//!
//! Groups that are *shuffled* are equal in law. Nothing need be made anew for that: a shuffle is a permutation of the
//! same units, and the permutation law is that of the units; so an audit is one replicate, compared with replicates of a
//! series of its own, or with the law where it can be summed. Shuffles do not see what skewness does. For the *weak*
//! null values are centred within each group, and units drawn anew, with replacement, from their own group
//! ([`WeakRows`], [`WeakCounts`]): the test is made of each such sample.
//!
//! An audit depends on its index alone: ranges of audits are joined.

use super::units::one_for_each;
use super::{Alternative, Conditioning, CountTest, PermutationTest, RowTest, Studentize, TIE_TOLERANCE, Units};
use super::{center_of, count_extreme};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::Metric;
use crate::numerics::order::ordered_bits;
use crate::parallel::{Control, fill, sort_by_key};
use crate::random::{Binomial, Domain, RowGenerator, Stream, multinomial, multivariate_hypergeometric};
use crate::tabulate::Table;

/// The p-values (two-sided) of a test with shuffled groups, in the order of the audits; NaN where the statistic is
/// undefined. The replicates of audit `i` are those of series `draws.series + 1 + i`.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn shuffled(test: &dyn PermutationTest, draws: &Draws, n_resamples: u64, control: &Control) -> Result<Vec<f64>> {
    let columns = test.null_statistics(draws, &control.part())?;
    let audit = |i: usize| -> Vec<f64> { columns.iter().map(|column| column[i]).collect() };
    let law = if columns.len() == 1 { test.exact(Alternative::TwoSided, control)? } else { None };
    if let Some(law) = law {
        let law = Law::new(&law.statistics, &law.probabilities, test.needs_centring());
        control.advance(draws.n());
        return Ok(columns[0].iter().map(|&statistic| law.pvalue(statistic)).collect());
    }
    each(draws, control, |audit_index, i| {
        let observed = audit(i);
        if observed.iter().any(|statistic| statistic.is_nan()) {
            return Ok(f64::NAN);
        }
        let null = test.null_statistics(&own(draws, audit_index, n_resamples), &control.part())?;
        Ok(pvalue(&observed, &null, test.needs_centring()))
    })
}

/// The p-value (two-sided) that each sample of the weak null gets, in the order of the audits; NaN where the statistic is
/// undefined.
///
/// # Errors
/// [`Error::Cancelled`], and errors of making a test.
pub fn weak(source: &dyn WeakNull, draws: &Draws, n_resamples: u64, control: &Control) -> Result<Vec<f64>> {
    each(draws, control, |audit, _| {
        let part = control.part();
        let test = source.sample(draws, audit, &part)?;
        // Every sample has a law of its own: it is summed where that is no more work than the replicates.
        let replicates = test.replicate_work().saturating_mul(n_resamples);
        if test.exact_work().is_some_and(|work| work <= replicates)
            && let Some(law) = test.exact(Alternative::TwoSided, &part)?
        {
            return Ok(if test.observed().is_nan() { f64::NAN } else { law.pvalue });
        }
        let observed = test.observed_statistics();
        if observed.iter().any(|statistic| statistic.is_nan()) {
            return Ok(f64::NAN);
        }
        let null = test.null_statistics(&own(draws, audit, n_resamples), &part)?;
        Ok(pvalue(&observed, &null, test.needs_centring()))
    })
}

/// The replicates of an audit.
fn own(draws: &Draws, audit: u64, n_resamples: u64) -> Draws {
    let series = draws.series.wrapping_add(1).wrapping_add(audit);
    Draws { replicates: 0..n_resamples, seed: draws.seed, series }
}

/// What `pvalue` gives of the index of every audit, and of its place among them.
fn each(draws: &Draws, control: &Control, pvalue: impl Fn(u64, usize) -> Result<f64> + Sync) -> Result<Vec<f64>> {
    let mut pvalues = draws.zeros();
    fill(
        &mut pvalues,
        1,
        control,
        || (),
        |i, value, ()| {
            control.check()?;
            value[0] = pvalue(draws.replicates.start + i as u64, i)?;
            control.advance(1);
            Ok(())
        },
    )?;
    Ok(pvalues)
}

/// The p-value of observed statistics among replicates. Of one it is that of its absolute value; of several the largest
/// on each side, and twice the smaller of both sides.
fn pvalue(observed: &[f64], null: &[Vec<f64>], centred: bool) -> f64 {
    let of = |column: usize, alternative| {
        let (observed, null) = (observed[column], &null[column]);
        let center = if centred { center_of(null, observed) } else { 0.0 };
        let (extreme, _) = count_extreme(null, observed, alternative, center);
        (1 + extreme) as f64 / (1 + null.len()) as f64
    };
    if observed.len() == 1 {
        return of(0, Alternative::TwoSided);
    }
    let side = |alternative| (0..observed.len()).map(|column| of(column, alternative)).fold(0.0, f64::max);
    (2.0 * side(Alternative::Greater).min(side(Alternative::Less))).min(1.0)
}

/// A summed permutation law: what is at least as extreme as a statistic.
struct Law {
    center: f64,
    /// Distances from the centre, the largest first, undefined ones before them, and the probability up to each.
    tail: Vec<(f64, f64)>,
}

impl Law {
    fn new(statistics: &[f64], probabilities: &[f64], centred: bool) -> Self {
        let total: f64 = probabilities.iter().sum();
        let law = || statistics.iter().zip(probabilities).filter(|(statistic, _)| statistic.is_finite());
        let finite: f64 = law().map(|(_, p)| p).sum();
        let center = if centred { law().map(|(statistic, p)| statistic * p).sum::<f64>() / finite } else { 0.0 };
        let distance = |statistic: f64| if statistic.is_nan() { f64::INFINITY } else { (statistic - center).abs() };
        let mut tail: Vec<(f64, f64)> =
            statistics.iter().zip(probabilities).map(|(&statistic, &p)| (distance(statistic), p / total)).collect();
        tail.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sum = 0.0;
        for (_, p) in &mut tail {
            sum += *p;
            *p = sum;
        }
        Self { center, tail }
    }

    fn pvalue(&self, statistic: f64) -> f64 {
        if statistic.is_nan() {
            return f64::NAN;
        }
        let distance = (statistic - self.center).abs();
        let least = if distance.is_finite() { distance * (1.0 - TIE_TOLERANCE) } else { distance };
        let n = self.tail.partition_point(|&(other, _)| other >= least);
        if n == 0 { 0.0 } else { self.tail[n - 1].1.min(1.0) }
    }
}

/// Draws samples in which the null hypothesis is true and nothing else is equal.
pub trait WeakNull: Send + Sync {
    /// The test of the sample of an audit.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and errors of making a test.
    fn sample(&self, draws: &Draws, audit: u64, control: &Control) -> Result<Box<dyn PermutationTest>>;

    /// Estimated nanoseconds of a sample, with a replicate of its test, on one thread.
    fn work(&self) -> u64;
}

/// Units whose sums a and d are drawn anew, with replacement, within cells: groups, by stratum of the user's.
#[derive(Debug, Clone)]
pub struct WeakRows {
    /// a, d, group, stratum, and the part of it within which groups are exchanged; by cell and value.
    units: Vec<([f64; 2], u16, [u32; 2])>,
    ends: Vec<usize>,
    n_groups: usize,
    is_ratio: bool,
    /// Whether units are sums over clusters of rows.
    of_clusters: bool,
    studentize: Studentize,
}

impl WeakRows {
    /// Of a and d that are centred already: sum (a - theta d) = 0 in every cell; d is 1 when it is left out. Units are
    /// the things that exchange their groups.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit; [`Error::Cancelled`].
    pub fn new(
        numerator: &[f64],
        denominator: Option<&[f64]>,
        units: Units<'_>,
        cell: &[u32],
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        units.check()?;
        units.check_column("numerator", numerator.len())?;
        units.check_column("denominator", denominator.map_or(numerator.len(), <[f64]>::len))?;
        units.check_column("cell", cell.len())?;
        let unit = |i: usize| {
            let values = [numerator[i], denominator.map_or(1.0, |d| d[i])];
            (values, units.group[i], [units.stratum_of(i), units.part_of(i)])
        };
        let mut order: Vec<usize> = (0..cell.len()).collect();
        control.check()?;
        let key = |&i: &usize| {
            let ([a, d], group, stratum) = unit(i);
            (cell[i], group, ordered_bits(a), ordered_bits(d), stratum)
        };
        sort_by_key(&mut order, key, control)?;
        control.check()?;
        let differs = |&i: &usize| cell[order[i - 1]] != cell[order[i]];
        let mut ends: Vec<usize> = (1..order.len()).filter(differs).collect();
        ends.push(order.len());
        let (is_ratio, n_groups) = (denominator.is_some(), units.n_groups);
        let of_clusters = units.of_row.is_some();
        let units = order.into_iter().map(unit).collect();
        Ok(Self { units, ends, n_groups, is_ratio, of_clusters, studentize })
    }
}

impl WeakNull for WeakRows {
    fn sample(&self, draws: &Draws, audit: u64, control: &Control) -> Result<Box<dyn PermutationTest>> {
        let mut times = vec![0u32; self.units.len()];
        let mut start = 0;
        for (cell, &end) in self.ends.iter().enumerate() {
            control.check()?;
            let mut generator = RowGenerator::new(draws.seed, Domain::Audit, draws.series, audit, cell as u64);
            let times = &mut times[start..end];
            for _ in 0..times.len() {
                times[generator.below(times.len() as u32) as usize] += 1;
            }
            start = end;
        }
        // In the order of the units, which are sorted: a test has little to sort.
        let drawn = || self.units.iter().zip(&times).flat_map(|(unit, &times)| (0..times).map(move |_| unit));
        let column = |k: usize| drawn().map(|unit| unit.0[k]).collect::<Vec<f64>>();
        let (numerator, denominator) = (column(0), self.is_ratio.then(|| column(1)));
        let group: Vec<u16> = drawn().map(|unit| unit.1).collect();
        let codes = |k: usize| drawn().map(|unit| unit.2[k]).collect::<Vec<u32>>();
        let (stratum, part) = (codes(0), codes(1));
        let of_row: Option<Vec<u32>> = self.of_clusters.then(|| (0..group.len() as u32).collect());
        let units = Units {
            group: &group,
            n_groups: self.n_groups,
            stratum: Some(&stratum),
            part: Some(&part),
            of_row: of_row.as_deref(),
        };
        Ok(Box::new(RowTest::ratio(&numerator, denominator.as_deref(), units, self.studentize, control)?))
    }

    fn work(&self) -> u64 {
        100 * self.units.len() as u64
    }
}

/// Counts of rows with the same a and d, by stratum and group; those of a group, centred in it, are drawn anew.
#[derive(Debug, Clone)]
pub struct WeakCounts {
    table: Table,
    metric: Metric,
    conditioning: Conditioning,
    studentize: Studentize,
}

impl WeakCounts {
    /// Of counts by stratum, group and class, with a and d of a row of each class, which are centred as those of
    /// [`WeakRows::new`]; `conditioning` tells the parts of the classes that exchange their groups.
    ///
    /// # Errors
    /// [`Error::Argument`] when there is not an a and a d for every class.
    pub fn new(
        table: Table,
        numerator: &[f64],
        denominator: Option<&[f64]>,
        conditioning: Conditioning,
        studentize: Studentize,
    ) -> Result<Self> {
        let (numerator, n) = (numerator.to_vec(), numerator.len());
        let denominator = denominator.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
        one_for_each("denominator", denominator.len(), n, "classes")?;
        let metric = Metric::Fraction { numerator, denominator };
        // Refuses what does not fit.
        CountTest::new(&table, &metric, &conditioning, studentize)?;
        Ok(Self { table, metric, conditioning, studentize })
    }
}

impl WeakNull for WeakCounts {
    fn sample(&self, draws: &Draws, audit: u64, _: &Control) -> Result<Box<dyn PermutationTest>> {
        let n_classes = self.table.n_classes();
        let mut counts = Vec::new();
        let mut drawn = vec![0; n_classes];
        for (cell, group) in self.table.strata().flat_map(|stratum| stratum.chunks(n_classes)).enumerate() {
            let mut stream = Stream::new(draws.seed, Domain::Audit, draws.series, audit, cell as u64);
            let weights: Vec<f64> = group.iter().map(|&count| count as f64).collect();
            multinomial(&mut stream, group.iter().sum(), &weights, &mut drawn);
            counts.extend_from_slice(&drawn);
        }
        let table = Table::new(counts, self.table.n_groups(), n_classes)?;
        Ok(Box::new(CountTest::new(&table, &self.metric, &self.conditioning, self.studentize)?))
    }

    fn work(&self) -> u64 {
        100 * (self.table.strata().count() * self.table.n_groups() * self.table.n_classes()) as u64
    }
}

/// Counts of a table whose first group drew rows of each stratum and class with these probabilities, in an audit of
/// `draws`; the other groups share what is left, in the shares that they have, as if shuffled.
///
/// # Errors
/// [`Error::Argument`] when there is not a probability for each stratum and class.
pub fn tilted_counts(table: &Table, probability: &[f64], draws: &Draws, audit: u64) -> Result<Vec<u64>> {
    let (n_groups, n_classes) = (table.n_groups(), table.n_classes());
    check_probabilities(probability, table.strata().count() * n_classes)?;
    let mut counts = Vec::new();
    for (cell, (stratum, probability)) in table.strata().zip(probability.chunks(n_classes)).enumerate() {
        let mut stream = Stream::new(draws.seed, Domain::Audit, draws.series, audit, cell as u64);
        let mut left = table.class_totals(stratum);
        for (left, &p) in left.iter_mut().zip(probability) {
            let first = Binomial::new(*left, p).sample(&mut stream);
            counts.push(first);
            *left -= first;
        }
        let sizes = shares(&table.group_sizes(stratum)[1..], left.iter().sum());
        let mut drawn = vec![0; n_classes];
        for size in &sizes[..n_groups - 2] {
            multivariate_hypergeometric(&mut stream, &left, *size, &mut drawn);
            counts.extend_from_slice(&drawn);
            left.iter_mut().zip(&drawn).for_each(|(left, drawn)| *left -= drawn);
        }
        counts.extend_from_slice(&left);
    }
    Ok(counts)
}

/// The group of every unit when each goes to the first group with its probability, in an audit of `draws`; the other
/// groups share the rest, in the shares that they have, as if shuffled.
///
/// # Errors
/// [`Error::Argument`] when there is not a probability for each unit.
pub fn tilted_groups(units: Units<'_>, probability: &[f64], draws: &Draws, audit: u64) -> Result<Vec<u16>> {
    units.check_codes()?;
    check_probabilities(probability, units.group.len())?;
    let mut stream = Stream::new(draws.seed, Domain::Audit, draws.series, audit, 0);
    let mut group: Vec<u16> = probability.iter().map(|&p| u16::from(stream.uniform() >= p)).collect();
    let mut sizes = vec![0u64; units.n_groups];
    units.group.iter().for_each(|&group| sizes[usize::from(group)] += 1);
    let left = group.iter().map(|&other| u64::from(other)).sum();
    let mut others: Vec<u16> = Vec::new();
    for (size, code) in shares(&sizes[1..], left).into_iter().zip(1..) {
        others.resize(others.len() + size as usize, code);
    }
    RowGenerator::new(draws.seed, Domain::Audit, draws.series, audit, 1).shuffle(&mut others);
    let mut next = others.into_iter();
    group.iter_mut().filter(|group| **group > 0).for_each(|group| *group = next.next().unwrap_or(1));
    Ok(group)
}

fn check_probabilities(probability: &[f64], n: usize) -> Result<()> {
    if probability.len() != n {
        return Err(Error::argument(
            "probability",
            format!("of length {}", probability.len()),
            &format!("{n} of them"),
        ));
    }
    match probability.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(bad) => Err(Error::argument("probability", bad, "numbers from 0 to 1")),
        None => Ok(()),
    }
}

/// `total` in the shares of `sizes`, in whole numbers.
fn shares(sizes: &[u64], total: u64) -> Vec<u64> {
    let all = sizes.iter().sum::<u64>().max(1) as f64;
    let (mut sum, mut before) = (0, 0);
    let mut shares = Vec::with_capacity(sizes.len());
    for &size in sizes {
        sum += size;
        let end = ((sum as f64 / all * total as f64).round() as u64).min(total);
        shares.push(end - before);
        before = end;
    }
    if let Some(last) = shares.last_mut() {
        *last += total - before;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Evaluation;

    fn rows() -> (Vec<f64>, Vec<u16>) {
        ((0..60).map(|i| f64::from(i * 37 % 41) / 41.0).collect(), (0..60).map(|i| u16::from(i % 3 == 0)).collect())
    }

    fn row_test() -> RowTest {
        let (value, group) = rows();
        let units = Units { group: &group, n_groups: 2, stratum: None, part: None, of_row: None };
        RowTest::ratio(&value, None, units, Studentize::Unpooled, &Control::default()).unwrap()
    }

    fn draws(audits: std::ops::Range<u64>) -> Draws {
        Draws { replicates: audits, seed: 4, series: 1 << 63 }
    }

    #[test]
    fn ranges_of_audits_are_joined_on_any_number_of_threads() {
        let test = row_test();
        let run = |audits, threads| shuffled(&test, &draws(audits), 49, &Control::with_threads(threads)).unwrap();
        let all = run(0..40, 1);
        assert_eq!([run(0..7, 2), run(7..40, 3)].concat(), all);
        let (value, group) = rows();
        let units = Units { group: &group, n_groups: 2, stratum: None, part: None, of_row: None };
        let cells: Vec<u32> = group.iter().map(|&group| u32::from(group)).collect();
        let source = WeakRows::new(&value, None, units, &cells, Studentize::Unpooled, &Control::default()).unwrap();
        let run = |audits, threads| weak(&source, &draws(audits), 49, &Control::with_threads(threads)).unwrap();
        assert_eq!([run(0..7, 2), run(7..40, 3)].concat(), run(0..40, 1));
        assert!(all.iter().all(|p| (0.02..=1.0).contains(p)));
    }

    /// An audit is a replicate among those of a series of its own.
    #[test]
    fn an_audit_by_hand() {
        let test = row_test();
        let found = shuffled(&test, &draws(3..4), 99, &Control::default()).unwrap();
        let control = Control::default();
        let statistic = test.null_distribution(&draws(3..4), &control).unwrap()[0];
        let own = Draws { replicates: 0..99, seed: 4, series: (1 << 63) + 4 };
        let null = test.null_distribution(&own, &control).unwrap();
        let extreme = null.iter().filter(|other| Alternative::TwoSided.is_extreme(**other, statistic)).count();
        assert_eq!(found, [(1 + extreme) as f64 / 100.0]);
    }

    #[test]
    fn a_law_is_summed_once() {
        let table = Table::new(vec![12, 8, 5, 15], 2, 2).unwrap();
        let share = Metric::Fraction { numerator: vec![1.0, 0.0], denominator: vec![1.0, 1.0] };
        let test = CountTest::new(&table, &share, &Conditioning::None, Studentize::Pooled).unwrap();
        let control = Control::default();
        let pvalues = shuffled(&test, &draws(0..200), 9, &control).unwrap();
        let statistics = test.null_distribution(&draws(0..200), &control).unwrap();
        let law = test.exact(Alternative::TwoSided, &control).unwrap().unwrap();
        for (p, statistic) in pvalues.iter().zip(statistics) {
            let same = law.statistics.iter().zip(&law.probabilities);
            let extreme = same.filter(|(other, _)| Alternative::TwoSided.is_extreme(**other, statistic));
            assert!((p - extreme.map(|(_, p)| p).sum::<f64>()).abs() < 1e-12);
        }
    }

    /// A test whose p-value is made of two statistics: the largest on each side, twice the smaller side.
    struct Two;

    impl PermutationTest for Two {
        fn observed(&self) -> f64 {
            0.0
        }
        fn evaluations(&self) -> Vec<Evaluation> {
            Vec::new()
        }
        fn replicate_work(&self) -> u64 {
            1
        }
        fn null_distribution(&self, draws: &Draws, _: &Control) -> Result<Vec<f64>> {
            Ok(draws.replicates.clone().map(|i| ((i + draws.series) % 10) as f64).collect())
        }
        fn null_statistics(&self, draws: &Draws, control: &Control) -> Result<Vec<Vec<f64>>> {
            let first = self.null_distribution(draws, control)?;
            let second = first.iter().map(|value| (value - 4.5).powi(3)).collect();
            Ok(vec![first, second])
        }
    }

    #[test]
    fn several_statistics() {
        assert_eq!(pvalue(&[9.0, 2.0], &[(0..9).map(f64::from).collect(), vec![1.0, 2.0, 3.0, 0.0]], false), 1.0);
        assert_eq!(pvalue(&[9.0, 9.0], &[vec![1.0; 9], vec![1.0; 9]], false), 0.2);
        let pvalues =
            shuffled(&Two, &Draws { replicates: 0..10, seed: 1, series: 0 }, 19, &Control::default()).unwrap();
        // The largest of ten values: itself twice among 19 or 20 replicates, on the upper side.
        assert!(pvalues[9] <= 0.3 && pvalues[0] <= 0.3 && pvalues[5] == 1.0, "{pvalues:?}");
    }

    #[test]
    fn tilted_groups_keep_all_rows_and_the_shares_of_the_others() {
        let table = Table::new(vec![30, 10, 20, 20, 15, 25, 5, 5, 5, 5, 5, 5], 3, 2).unwrap();
        let counts = tilted_counts(&table, &[0.9, 0.1, 0.5, 0.5], &draws(0..1), 0).unwrap();
        let tilted = Table::new(counts, 3, 2).unwrap();
        for (before, after) in table.strata().zip(tilted.strata()) {
            assert_eq!(table.class_totals(before), tilted.class_totals(after));
            let sizes = tilted.group_sizes(after);
            assert!(sizes[1].abs_diff(sizes[2]) <= 1);
        }
        let group: Vec<u16> = (0..90).map(|i| i % 3).collect();
        let units = Units { group: &group, n_groups: 3, stratum: None, part: None, of_row: None };
        let probability: Vec<f64> = (0..90).map(|i| if i < 30 { 1.0 } else { 0.0 }).collect();
        let drawn = tilted_groups(units, &probability, &draws(0..1), 5).unwrap();
        assert!(drawn.iter().enumerate().all(|(i, &group)| (group == 0) == (i < 30)));
        assert_eq!(drawn.iter().filter(|&&group| group == 1).count(), 30);
        assert!(tilted_groups(units, &[0.5], &draws(0..1), 0).is_err());
    }
}
