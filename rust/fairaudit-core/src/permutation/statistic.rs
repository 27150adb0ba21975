//! The statistics: the difference of two groups, the omnibus of more.

use super::Studentize;
use crate::metrics::Evaluation;

/// How groups are compared.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    /// The metric of each group that its strata alone explain.
    pub(super) expected: Vec<f64>,
    /// How a gap is scaled.
    pub(super) studentize: Studentize,
}

impl Comparison {
    /// The statistic of all groups: the difference of two, the omnibus of more.
    #[inline]
    pub(super) fn of_all(&self, groups: &[Evaluation]) -> f64 {
        match groups {
            [first, second] => difference(first, second, self.expected_gap(0, 1), self.studentize),
            groups => omnibus(groups, &self.expected, self.studentize),
        }
    }

    /// The difference of two of the groups.
    #[inline]
    pub(super) fn of_pair(&self, groups: &[Evaluation], (i, j): (usize, usize)) -> f64 {
        difference(&groups[i], &groups[j], self.expected_gap(i, j), self.studentize)
    }

    /// The gap of two groups that their strata alone explain.
    #[inline]
    pub(super) fn expected_gap(&self, first: usize, second: usize) -> f64 {
        let gap = self.expected[first] - self.expected[second];
        // Equal but for rounding: one stratum, or strata of equal composition.
        if gap.abs() <= 1e-12 { 0.0 } else { gap }
    }
}

/// S = (`theta_1` - `theta_2` - `expected`) / sqrt(v), NaN when a metric is undefined.
///
/// No gap gives 0 whatever the variance; a gap without variance gives an infinite statistic.
#[inline]
pub(super) fn difference(first: &Evaluation, second: &Evaluation, expected: f64, studentize: Studentize) -> f64 {
    let gap = first.value - second.value - expected;
    if gap.abs() <= 1e-14 * (first.value.abs() + second.value.abs() + expected.abs()) {
        return 0.0;
    }
    let variance = match studentize {
        Studentize::None => return gap,
        Studentize::Unpooled | Studentize::Corrected => first.variance + second.variance,
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
pub(super) fn omnibus(groups: &[Evaluation], expected: &[f64], studentize: Studentize) -> f64 {
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
        Studentize::Unpooled | Studentize::Corrected => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_variance_pins_the_mean_of_the_omnibus() {
        let group = |value, variance| Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN };
        let groups = [group(1.0, 0.0), group(0.9, 0.01), group(0.8, 0.01)];
        assert!((omnibus(&groups, &[0.0; 3], Studentize::Unpooled) - 5.0).abs() < 1e-12);
        let groups = [group(1.0, 0.0), group(0.9, 0.0), group(0.8, 0.01)];
        assert_eq!(omnibus(&groups, &[0.0; 3], Studentize::Unpooled), f64::INFINITY);
    }
}
