//! Joint criteria: several metrics that must be equal at once, such as equalized odds.
//!
//! Two groups: `Q = d' (V_a + V_b)^-1 d` with the vector d of differences and
//! `V_g[i][j] = sum_k psi_ik psi_jk c_k`. More groups: the same form of the differences from the last
//! group, which is `sum_g (theta_g - m)' V_g^-1 (theta_g - m)` with the best common m.

use super::Studentize;
use super::statistic::Comparison;
use crate::error::{Error, Result};
use crate::metrics::{Evaluation, Metric};

/// Refuses what cannot be a joint criterion.
pub(super) fn check(components: &[Metric], studentize: Studentize) -> Result<()> {
    let counts = |metric: &Metric| metric.n_classes() == 4 && metric.influence(&[1.0; 4]).is_some();
    if components.is_empty() || !components.iter().all(counts) {
        return Err(Error::argument("metric", "a joint criterion of other than count metrics", "count metrics"));
    }
    if studentize == Studentize::Pooled && !is_separate(components) {
        return Err(Error::argument(
            "studentize",
            "\"pooled\"",
            "\"pooled\" for proportions of different rows; \"unpooled\" for these metrics",
        ));
    }
    Ok(())
}

/// Whether the components are proportions of rows that no two of them share: then they are
/// uncorrelated.
pub(super) fn is_separate(components: &[Metric]) -> bool {
    let mut seen = [0.0; 4];
    components.iter().all(|metric| {
        let Metric::Fraction { denominator, .. } = metric else { return false };
        let apart = denominator.iter().zip(&mut seen).all(|(&d, seen)| {
            let first = d == 0.0 || *seen == 0.0;
            *seen += d;
            first
        });
        metric.is_proportion() && apart
    })
}

/// The statistic of some groups; what is expected comes by group and component (fastest).
pub(super) fn statistic(components: &[Metric], margin: &[f64], groups: &[usize], comparison: &Comparison) -> f64 {
    let Comparison { expected, studentize } = comparison;
    if *studentize == Studentize::Unpooled && !is_separate(components) {
        return quadratic_form(components, margin, groups, expected);
    }
    let size = components.len();
    let each = components.iter().enumerate().map(|(i, metric)| {
        let evaluations: Vec<Evaluation> = groups.iter().map(|&g| metric.evaluate(counts_of(margin, g))).collect();
        let expected: Vec<f64> = groups.iter().map(|&g| expected[g * size + i]).collect();
        let statistic = Comparison { expected, studentize: *studentize }.of_all(&evaluations);
        if groups.len() == 2 { statistic.powi(2) } else { statistic }
    });
    each.sum()
}

fn counts_of(margin: &[f64], group: usize) -> &[f64] {
    &margin[4 * group..4 * group + 4]
}

/// The covariance of the components in a group with these counts; NaN where one has no value.
pub(super) fn covariance(components: &[Metric], counts: &[f64]) -> Vec<f64> {
    let counts: [f64; 4] = std::array::from_fn(|k| counts[k]);
    let undefined = [f64::NAN; 4];
    let influence = |metric: &Metric| metric.influence(&counts).unwrap_or(undefined);
    let influences: Vec<[f64; 4]> = components.iter().map(influence).collect();
    let mut covariance = Vec::with_capacity(components.len() * components.len());
    for a in &influences {
        for b in &influences {
            let term = |k: usize| if counts[k] == 0.0 { 0.0 } else { a[k] * b[k] * counts[k] };
            covariance.push((0..4).map(term).sum());
        }
    }
    covariance
}

fn quadratic_form(components: &[Metric], margin: &[f64], groups: &[usize], expected: &[f64]) -> f64 {
    let size = components.len();
    let mut values = Vec::with_capacity(groups.len());
    let mut covariances = Vec::with_capacity(groups.len());
    for &group in groups {
        let counts: [f64; 4] = std::array::from_fn(|k| counts_of(margin, group)[k]);
        let mut value = Vec::with_capacity(size);
        for (i, metric) in components.iter().enumerate() {
            let evaluation = metric.evaluate_value(&counts);
            if !evaluation.is_defined() || metric.influence(&counts).is_none() {
                return f64::NAN;
            }
            value.push(evaluation.value - (expected[group * size + i] - expected[groups[0] * size + i]));
        }
        values.push(value);
        covariances.push(covariance(components, &counts));
    }
    let others = groups.len() - 1;
    let (last_value, last) = (&values[others], &covariances[others]);
    let all = others * size;
    let mut matrix = vec![0.0; all * all];
    let mut gaps = vec![0.0; all];
    for g in 0..others {
        for i in 0..size {
            let gap = values[g][i] - last_value[i];
            gaps[g * size + i] =
                if gap.abs() <= 1e-14 * (values[g][i].abs() + last_value[i].abs()) { 0.0 } else { gap };
            for h in 0..others {
                for j in 0..size {
                    let own = if g == h { covariances[g][i * size + j] } else { 0.0 };
                    matrix[(g * size + i) * all + h * size + j] = own + last[i * size + j];
                }
            }
        }
    }
    solve_quadratic(&mut matrix, &mut gaps)
}

/// d' M^-1 d by elimination. In a direction without variance a gap is infinitely many standard
/// errors, and no gap adds nothing.
pub(super) fn solve_quadratic(matrix: &mut [f64], gaps: &mut [f64]) -> f64 {
    let size = gaps.len();
    let scale: Vec<f64> = (0..size).map(|i| matrix[i * size + i]).collect();
    let length = gaps.iter().map(|gap| gap.abs()).fold(0.0, f64::max);
    let mut sum = 0.0;
    for i in 0..size {
        let pivot = matrix[i * size + i];
        if pivot <= 1e-12 * scale[i] || pivot == 0.0 {
            if gaps[i].abs() > 1e-12 * length {
                return f64::INFINITY;
            }
            continue;
        }
        sum += gaps[i] * gaps[i] / pivot;
        for j in i + 1..size {
            let factor = matrix[j * size + i] / pivot;
            gaps[j] -= factor * gaps[i];
            for k in i + 1..size {
                matrix[j * size + k] -= factor * matrix[i * size + k];
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Formula;

    fn metric(text: &str) -> Metric {
        Formula::parse(text).unwrap().to_metric()
    }

    /// Proportions of different rows are uncorrelated: both forms agree.
    #[test]
    fn the_quadratic_form_of_separate_proportions_is_a_sum() {
        let odds = [metric("tp/(tp+fn)"), metric("fp/(fp+tn)")];
        assert!(is_separate(&odds));
        let margin = [30.0, 9.0, 12.0, 40.0, 22.0, 15.0, 20.0, 33.0, 25.0, 11.0, 9.0, 28.0];
        let expected = [0.0; 6];
        for groups in [vec![0, 1], vec![0, 2], vec![0, 1, 2]] {
            let comparison = Comparison { expected: expected.to_vec(), studentize: Studentize::Unpooled };
            let sum = statistic(&odds, &margin, &groups, &comparison);
            let form = quadratic_form(&odds, &margin, &groups, &expected);
            assert!((sum / form - 1.0).abs() < 1e-10, "{sum} {form}");
        }
    }

    /// Strata by label do not make a quadratic form something to be centred.
    #[test]
    fn a_joint_criterion_has_no_direction() {
        use super::super::{Alternative, Conditioning, CountTest, PermutationTest};
        use crate::tabulate::Table;
        let odds = Metric::Joint(vec![metric("tp/(tp+fn)"), metric("fp/(fp+tn)")]);
        let table = Table::new(vec![5, 1, 1, 4, 2, 2, 4, 3], 2, 4).unwrap();
        let by_label = Conditioning::Parts(vec![0, 1, 0, 1]);
        let test = CountTest::new(&table, &odds, &by_label, Studentize::Pooled).unwrap();
        assert!(!test.needs_centring());
        let law = test.exact(Alternative::TwoSided, &crate::parallel::Control::default()).unwrap().unwrap();
        let above = law.statistics.iter().zip(&law.probabilities);
        let expected: f64 = above.filter(|(s, _)| **s >= test.observed() * (1.0 - 1e-9)).map(|(_, p)| p).sum();
        assert!((law.pvalue - expected).abs() < 1e-12);
    }

    #[test]
    fn correlated_metrics_are_not_counted_twice() {
        // Precision and false discovery rate add up to 1: the second one adds nothing.
        let twice = [metric("tp/(tp+fp)"), metric("fp/(tp+fp)")];
        assert!(!is_separate(&twice));
        let margin = [30.0, 9.0, 12.0, 40.0, 22.0, 15.0, 20.0, 33.0];
        let unpooled = |n: usize| Comparison { expected: vec![0.0; n], studentize: Studentize::Unpooled };
        let once = statistic(&twice[..1], &margin, &[0, 1], &unpooled(2));
        let both = statistic(&twice, &margin, &[0, 1], &unpooled(4));
        assert!((once / both - 1.0).abs() < 1e-10, "{once} {both}");
    }
}
