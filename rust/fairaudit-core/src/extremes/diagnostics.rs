//! How well a generalised Pareto law describes a tail: the coefficient of variation of excesses, the test of Anderson
//! and Darling, quantiles against quantiles, fits over many thresholds; and the point estimate of Zhang and Stephens.

use super::gpd::{self, Excesses, Fit, Sample, return_excess};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::numerics::laws::beta_quantile;
use crate::parallel::{Control, each_replicate, map_blocks};
use crate::random::{Domain, Stream};

/// Below this shape the law is the exponential one.
const NO_SHAPE: f64 = 1e-9;
/// Statistics that differ by less are the same.
const SAME: f64 = 1e-12;
/// Made by `benches/python/tables_cv.py`.
const CRITICAL: &str = include_str!("cv_critical.txt");
/// Points of a plot of quantiles that a thread takes at a time.
const QUANTILE_BLOCK: usize = 32;

// -- the largest values ------------------------------------------------------------------------

/// The `count` largest values, the largest first.
///
/// # Errors
/// [`Error::Argument`] when a value is not finite, or there are fewer.
pub fn largest(values: &[f64], count: usize) -> Result<Vec<f64>> {
    if let Some(value) = values.iter().find(|value| !value.is_finite()) {
        return Err(Error::argument("values", value, "finite numbers"));
    }
    if values.len() < count {
        return Err(Error::argument("values", format!("{} numbers", values.len()), &format!("at least {count}")));
    }
    let mut top: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
    let falling = |a: &f64, b: &f64| b.total_cmp(a);
    if count < top.len() {
        top.select_nth_unstable_by(count, falling);
        top.truncate(count);
    }
    top.sort_unstable_by(falling);
    Ok(top)
}

/// The k excesses over the (k+1)-th of values in descending order.
fn excesses_over(top: &[f64], k: usize) -> Vec<f64> {
    top[..k].iter().map(|value| value - top[k]).collect()
}

/// Excesses in ascending order, so that sums over them do not depend on how they arrive.
fn ascending(excesses: &[f64]) -> Vec<f64> {
    let mut sorted = excesses.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn check_ks(ks: &[usize], least: usize, most: usize) -> Result<()> {
    match ks.iter().find(|&&k| k < least || k > most) {
        Some(k) => Err(Error::argument("k", k, &format!("{least} to {most}, for so many values"))),
        None => Ok(()),
    }
}

// -- the coefficient of variation --------------------------------------------------------------

/// sd / mean of the k excesses over the (k+1)-th largest value (or, not `residual`, of the k largest values
/// themselves), for every k; NaN where the mean is not above 0. The denominator of the variance is k - 1.
///
/// # Errors
/// [`Error::Argument`] when a k is below 2, or there are fewer values; [`Error::Cancelled`].
pub fn variations(values: &[f64], ks: &[usize], residual: bool, control: &Control) -> Result<Vec<f64>> {
    check_ks(ks, 2, values.len().saturating_sub(usize::from(residual)))?;
    let most = ks.iter().copied().max().unwrap_or(0);
    let top = largest(values, most + usize::from(residual))?;
    map_blocks(ks.len(), 64, control, |range| {
        let of = |k: usize| variation(&if residual { excesses_over(&top, k) } else { top[..k].to_vec() });
        Ok(ks[range].iter().map(|&k| of(k)).collect::<Vec<_>>())
    })
    .map(|blocks| blocks.concat())
}

fn variation(numbers: &[f64]) -> f64 {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares: f64 = numbers.iter().map(|number| (number - mean) * (number - mean)).sum();
    if mean > 0.0 { (squares / (n - 1.0)).sqrt() / mean } else { f64::NAN }
}

/// The smallest k of the table of critical values, and those of all k from there on, at a level of .9, .95 or .99: of
/// the residual coefficient of variation when the tail is exponential, which has the same law for every sample.
///
/// # Errors
/// [`Error::Argument`] for another level.
pub fn critical_variations(level: f64) -> Result<(usize, Vec<f64>)> {
    let mut lines = CRITICAL.lines().skip(1);
    let numbers = |line: &str| -> Vec<f64> { line.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let levels = lines.next().map(numbers).unwrap_or_default();
    let Some(place) = levels.iter().position(|&one| one == level) else {
        return Err(Error::argument("level", level, "0.9, 0.95 or 0.99, for which there is a table"));
    };
    let rows: Vec<Vec<f64>> = lines.map(numbers).collect();
    Ok((rows[0][0] as usize, rows.iter().map(|row| row[place + 1]).collect()))
}

// -- Anderson and Darling ----------------------------------------------------------------------

/// What the test of Anderson and Darling came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodness {
    /// The fit.
    pub fit: Fit,
    /// A^2, infinite at the edge of the shape: there the test says nothing.
    pub statistic: f64,
    /// Replicates that are at least as far off; all that are at the edge are.
    pub n_extreme: u64,
    /// Replicates whose fit is at the edge.
    pub n_at_edge: u64,
}

/// Estimated nanoseconds of a replicate of [`goodness`].
pub fn goodness_work(k: usize) -> u64 {
    5_000 + 200 * k as u64
}

/// Whether excesses follow a generalised Pareto law: A^2 of the fit, against that of samples of the fitted law to which
/// the law is fitted again (Stute, Gonzalez Manteiga and Presedo Quindimil, 1993). Nothing is drawn at the edge.
///
/// # Errors
/// [`Error::Argument`] for excesses that are none; [`Error::Cancelled`].
pub fn goodness(excesses: &[f64], draws: &Draws, control: &Control) -> Result<Goodness> {
    let sorted = ascending(excesses);
    let sample = Excesses::new(&sorted)?;
    let fit = sample.fit();
    let statistic = anderson_darling(&sorted, &fit);
    let mut found = Goodness { fit, statistic, n_extreme: 0, n_at_edge: 0 };
    if fit.at_edge {
        return Ok(found);
    }
    let mut drawn = draws.zeros();
    let scratch = || (sample.clone(), vec![0.0; sorted.len()]);
    each_replicate(&mut drawn, control, scratch, |replicate, (sample, y)| {
        let index = draws.replicates.start + replicate;
        // Other thresholds see other numbers.
        let mut stream = Stream::new(draws.seed, Domain::Bootstrap, draws.series, index, y.len() as u64);
        for y in y.iter_mut() {
            *y = gpd_of_exponential(-libm::log(stream.uniform()), fit.shape);
        }
        y.sort_unstable_by(f64::total_cmp);
        sample.refill(y);
        anderson_darling(y, &sample.fit())
    })?;
    found.n_extreme = drawn.iter().filter(|&&one| one >= statistic - SAME).count() as u64;
    found.n_at_edge = drawn.iter().filter(|one| one.is_infinite()).count() as u64;
    Ok(found)
}

/// An excess of scale 1; no larger than a float.
fn gpd_of_exponential(e: f64, shape: f64) -> f64 {
    if shape.abs() < NO_SHAPE { e } else { (libm::expm1(shape * e) / shape).min(f64::MAX) }
}

/// A^2 = -k - (1/k) sum (2 i - 1) [log F(`y_i`) + log S(`y_(k+1-i)`)] of excesses in ascending order; infinite
/// at the edge.
fn anderson_darling(sorted: &[f64], fit: &Fit) -> f64 {
    if fit.at_edge {
        return f64::INFINITY;
    }
    let k = sorted.len();
    let mut sum = 0.0;
    for (i, y) in sorted.iter().enumerate() {
        let log_survival = log_survival(*y, fit);
        // As the i-th smallest, and as the (k+1-i)-th.
        sum += (2 * i + 1) as f64 * libm::log(-libm::expm1(log_survival));
        sum += (2 * (k - i) - 1) as f64 * log_survival;
    }
    -(k as f64) - sum / k as f64
}

fn log_survival(y: f64, fit: &Fit) -> f64 {
    if fit.shape.abs() < NO_SHAPE { -y / fit.scale } else { -libm::log1p(fit.shape * (y / fit.scale)) / fit.shape }
}

/// [`goodness`] of the excesses over the (k+1)-th largest of values on the scale of the fit, for every k: None where
/// excesses are tied with the threshold.
///
/// # Errors
/// [`Error::Argument`] when a k is below 2, or there are fewer values; [`Error::Cancelled`].
pub fn goodness_by_threshold(
    values: &[f64],
    ks: &[usize],
    draws: &Draws,
    control: &Control,
) -> Result<Vec<Option<Goodness>>> {
    let top = top_of(values, ks)?;
    ks.iter()
        .map(|&k| {
            let tied = top[k - 1] == top[k];
            if tied { Ok(None) } else { goodness(&excesses_over(&top, k), draws, control).map(Some) }
        })
        .collect()
}

fn top_of(values: &[f64], ks: &[usize]) -> Result<Vec<f64>> {
    check_ks(ks, 2, values.len().saturating_sub(1))?;
    largest(values, ks.iter().copied().max().unwrap_or(0) + 1)
}

/// How many of the first of ordered hypotheses are rejected at a false discovery rate: the last j with
/// -(1/j) sum log(1 - `p_i`) <= rate (G'Sell et al., 2016).
pub fn forward_stop(pvalues: &[f64], rate: f64) -> usize {
    let mut sum = 0.0;
    let mut last = 0;
    for (pvalue, j) in pvalues.iter().zip(1..) {
        sum -= libm::log1p(-pvalue);
        if sum <= rate * f64::from(j) {
            last = j as usize;
        }
    }
    last
}

// -- fits --------------------------------------------------------------------------------------

/// One row of a plot of quantiles against quantiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// The i-th smallest excess.
    pub observed: f64,
    /// The quantile of the law at i / (k + 1).
    pub fitted: f64,
    /// The band for this excess alone: quantiles of the law at those of Beta(i, k + 1 - i).
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Estimated nanoseconds of a row of [`quantiles`].
pub const QUANTILE_WORK: u64 = 50_000;

/// Excesses against the quantiles of a law, ascending, with pointwise bands.
///
/// # Errors
/// [`Error::Argument`] for a confidence or a law that is none, or excesses that are not finite; [`Error::Cancelled`].
pub fn quantiles(
    excesses: &[f64],
    shape: f64,
    scale: f64,
    confidence: f64,
    control: &Control,
) -> Result<Vec<Quantile>> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Error::argument("confidence", confidence, "a number between 0 and 1"));
    }
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Error::argument("scale", scale, "a finite number above 0"));
    }
    if !shape.is_finite() {
        return Err(Error::argument("shape", shape, "a finite number"));
    }
    if let Some(y) = excesses.iter().find(|y| !y.is_finite()) {
        return Err(Error::argument("excesses", y, "finite numbers"));
    }
    let (sorted, n) = (ascending(excesses), excesses.len() as f64);
    let half = 0.5 - 0.5 * confidence;
    let rows = map_blocks(sorted.len(), QUANTILE_BLOCK, control, |range| {
        let row = |index: usize| {
            let i = (index + 1) as f64;
            // By the share above: it is exact where it is small.
            let at = |above: f64| return_excess(shape, scale, 1.0 / above);
            Quantile {
                observed: sorted[index],
                fitted: at((n + 1.0 - i) / (n + 1.0)),
                low: at(beta_quantile(n + 1.0 - i, i, 1.0 - half)),
                high: at(beta_quantile(n + 1.0 - i, i, half)),
            }
        };
        Ok(range.map(row).collect::<Vec<_>>())
    })?;
    Ok(rows.concat())
}

/// A fit over one of many thresholds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Number of excesses.
    pub k: usize,
    /// The (k+1)-th largest value.
    pub threshold: f64,
    /// The fit; none where excesses are tied with the threshold.
    pub fit: Option<Fit>,
    /// The level that one value in m exceeds; NaN without a fit.
    pub level: f64,
}

/// Estimated nanoseconds of [`stability`].
pub fn stability_work(ks: &[usize]) -> u64 {
    ks.iter().map(|k| 3_000 + 100 * *k as u64).sum()
}

/// Fits over the (k+1)-th largest value for every k.
///
/// # Errors
/// [`Error::Argument`] when a k is below 2, or there are fewer values; [`Error::Cancelled`].
pub fn stability(values: &[f64], ks: &[usize], m: f64, control: &Control) -> Result<Vec<Threshold>> {
    if !(m > 1.0 && m.is_finite()) {
        return Err(Error::argument("m", m, "a finite number above 1"));
    }
    let top = top_of(values, ks)?;
    let rows = map_blocks(ks.len(), 8, control, |range| {
        let mut rows = Vec::with_capacity(range.len());
        for &k in &ks[range] {
            control.check()?;
            let tied = top[k - 1] == top[k];
            let fit = if tied { None } else { Some(gpd::fit(&excesses_over(&top, k))?) };
            let expected = m * k as f64 / values.len() as f64;
            let level = fit.map_or(f64::NAN, |fit| top[k] + return_excess(fit.shape, fit.scale, expected));
            rows.push(Threshold { k, threshold: top[k], fit, level });
        }
        Ok(rows)
    })?;
    Ok(rows.concat())
}

/// (xi, sigma) of Zhang and Stephens (2009): a mean of the profile likelihood over a grid that the data give. It has no
/// edge, and no interval.
///
/// # Errors
/// [`Error::Argument`] for excesses that are none; [`Error::Cancelled`].
///
/// ```
/// use fairaudit_core::{extremes::diagnostics::zhang_stephens, parallel::Control};
/// let excesses: Vec<f64> = (1..200).map(|i| -(f64::from(i) / 200.0).ln()).collect();
/// let (shape, scale) = zhang_stephens(&excesses, &Control::default()).unwrap();
/// assert!(shape.abs() < 0.1 && (scale - 1.0).abs() < 0.1);
/// ```
pub fn zhang_stephens(excesses: &[f64], control: &Control) -> Result<(f64, f64)> {
    // Notation: b -> -xi / sigma.
    let sorted = ascending(excesses);
    Excesses::new(&sorted)?;
    let (k, n) = (sorted.len(), sorted.len() as f64);
    let (most, quarter) = (sorted[k - 1], sorted[((n / 4.0 + 0.5) as usize).max(1) - 1]);
    let law = |b: f64| {
        let shape = sorted.iter().map(|y| libm::log1p(-b * y)).sum::<f64>() / n;
        let scale = if (b * most).abs() < NO_SHAPE { sorted.iter().sum::<f64>() / n } else { -shape / b };
        (shape, scale)
    };
    let n_points = 20 + k.isqrt();
    let points = (1..=n_points)
        .map(|j| {
            control.check()?;
            let share = (n_points as f64 / (j as f64 - 0.5)).sqrt();
            let b = 1.0 / most + (1.0 - share) / (3.0 * quarter);
            let (shape, scale) = law(b);
            Ok((b, -n * (libm::log(scale) + shape + 1.0)))
        })
        .collect::<Result<Vec<_>>>()?;
    let top = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let weight: f64 = points.iter().map(|point| libm::exp(point.1 - top)).sum();
    let b = points.iter().map(|point| libm::exp(point.1 - top) / weight * point.0).sum();
    Ok(law(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize, shape: f64) -> Vec<f64> {
        (1..=n).map(|i| gpd_of_exponential(-libm::log((i as f64 - 0.5) / n as f64), shape)).collect()
    }

    fn draws(n: u64) -> Draws {
        Draws { replicates: 0..n, seed: 7, series: 0 }
    }

    #[test]
    fn neither_threads_nor_order_matter() {
        let y = sample(34, 0.1);
        let mut backward = y.clone();
        backward.reverse();
        let one = goodness(&y, &draws(200), &Control::default()).unwrap();
        assert_eq!(goodness(&backward, &draws(200), &Control::with_threads(3)).unwrap(), one);
        assert_eq!(one.n_extreme, 200, "quantiles fit better than any sample");
        let ks: Vec<usize> = (5..30).collect();
        let rows = stability(&y, &ks, 100.0, &Control::default()).unwrap();
        assert_eq!(stability(&backward, &ks, 100.0, &Control::with_threads(3)).unwrap(), rows);
        let control = Control::default();
        assert_eq!(zhang_stephens(&y, &control), zhang_stephens(&backward, &control));
    }

    #[test]
    fn replicates_are_those_of_their_index() {
        let y: Vec<f64> = sample(60, 0.0).iter().map(|y| y + 0.2 * libm::sin(40.0 * y) + 0.2).collect();
        let count = |replicates| {
            let draws = Draws { replicates, ..draws(0) };
            goodness(&y, &draws, &Control::default()).unwrap().n_extreme
        };
        assert_eq!(count(0..150), count(0..40) + count(40..150));
    }

    #[test]
    fn at_the_edge_there_is_no_test() {
        let found = goodness(&sample(60, -2.0), &draws(99), &Control::default()).unwrap();
        assert!(found.fit.at_edge && found.statistic.is_infinite());
        // Fits to samples of a law that is nearly there often are.
        let found = goodness(&sample(20, -0.5), &draws(99), &Control::default()).unwrap();
        assert!(!found.fit.at_edge && found.n_at_edge > 0 && found.n_extreme >= found.n_at_edge);
    }

    #[test]
    fn critical_values_are_read_for_all_k() {
        let (first, values) = critical_variations(0.95).unwrap();
        assert_eq!((first, values.len()), (10, 490));
        assert!(values.windows(2).all(|pair| pair[1] < pair[0] + 2e-4));
        assert!(critical_variations(0.975).is_err());
    }

    #[test]
    fn ties_with_the_threshold_have_no_fit() {
        let values = [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        let rows = stability(&values, &[3, 5, 6], 50.0, &Control::default()).unwrap();
        assert_eq!(rows.iter().map(|row| row.fit.is_some()).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(rows[1].threshold, 1.0);
    }

    #[test]
    fn hypotheses_are_rejected_up_to_the_last_that_may_be() {
        assert_eq!(forward_stop(&[0.001, 0.01, 0.2, 0.04], 0.05), 2);
        assert_eq!(forward_stop(&[0.1, 0.001, 0.001], 0.05), 3);
        assert_eq!(forward_stop(&[1.0, 0.001], 0.05), 0);
    }

    #[test]
    fn what_is_no_tail_is_refused() {
        let control = Control::default();
        assert!(stability(&[1.0, 2.0, 3.0], &[3], 9.0, &control).is_err());
        assert!(stability(&[1.0, 2.0, 3.0], &[2], 1.0, &control).is_err());
        assert!(variations(&[1.0, f64::NAN, 3.0], &[2], true, &control).is_err());
        assert!(variations(&[1.0, 2.0], &[2], false, &control).is_ok());
        assert!(goodness(&[0.0, 1.0], &draws(9), &control).is_err());
        assert!(quantiles(&[1.0], 0.0, 1.0, 1.0, &control).is_err());
    }
}
