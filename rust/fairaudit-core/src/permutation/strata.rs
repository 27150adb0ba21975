//! Comparing groups within strata of the user's: what each stratum adds to a weighted mean of gaps.
//!
//! A stratum s tells the metric `theta_sg` of each group, its variance there, and what the group counts for, `D_sg`: the
//! denominator of a ratio of sums, the effective number of rows of other metrics. Two groups:
//!
//! ```text
//! Delta = sum_s k_s (theta_s1 - theta_s2) / sum_s k_s,    k_s = D_s1 D_s2 / (D_s1 + D_s2),
//! v = sum_s k_s^2 (v_s1 + v_s2) / (sum_s k_s)^2;
//! ```
//!
//! for ratios of sums this is the generalised Mantel-Haenszel difference. More groups: the quadratic form of
//! `U_g = sum_s D_sg (theta_sg - theta_s)`, `theta_s` being the mean of the groups in the stratum weighted by D.
//!
//! A stratum in which a group is one unit has no variance within: it enters as one unit,
//! `r_s = k_s (theta_s1 - theta_s2 - Delta)`, with `sum r_s^2 S / (S - 1)` over the S strata of this kind.

use super::Studentize;
use super::joint::solve_quadratic;
use crate::metrics::Evaluation;

/// What a group brings to a stratum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The metric, less what is expected of it.
    pub(super) value: f64,
    /// Its variance within the stratum.
    variance: f64,
    /// What the group counts for; 0 where the metric has no value.
    size: f64,
    /// Whether the variance cannot be measured: it is one unit.
    is_single: bool,
}

impl Part {
    /// From the metric of a group of `units` units, whose variance has the factor n / (n - 1) already if it is
    /// `corrected`.
    pub(super) fn new(evaluation: &Evaluation, expected: f64, size: f64, (units, corrected): (f64, bool)) -> Self {
        if !evaluation.is_defined() || size.is_nan() || size <= 0.0 {
            return Self { value: 0.0, variance: 0.0, size: 0.0, is_single: false };
        }
        let is_single = units < 1.5 || evaluation.variance.is_nan();
        let factor = if corrected || is_single { 1.0 } else { units / (units - 1.0) };
        let variance = if is_single { 0.0 } else { factor * evaluation.variance };
        Self { value: evaluation.value - expected, variance, size, is_single }
    }
}

impl Part {
    /// A share of rows, whose variance is pooled.
    pub(super) fn of_share(hits: f64, rows: f64) -> Self {
        let size = if rows > 0.0 { rows } else { 0.0 };
        Self { value: if rows > 0.0 { hits / rows } else { 0.0 }, variance: 0.0, size, is_single: false }
    }
}

/// The gap of two groups and its variance, over all strata.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contrast {
    weight: f64,
    gap: f64,
    /// Sum of the absolute values in `gap`.
    spread: f64,
    squares: f64,
    /// Of strata with a group of one unit: sums of q^2, q k, k^2.
    singles: [f64; 3],
    /// Strata in which both groups have the metric, and those of them with a group of one unit.
    pub n_used: u32,
    /// See `n_used`.
    pub n_single: u32,
}

impl Contrast {
    /// Adds a stratum.
    #[inline]
    pub(super) fn add(&mut self, first: &Part, second: &Part, studentize: Studentize) {
        let all = first.size + second.size;
        if first.size == 0.0 || second.size == 0.0 {
            return;
        }
        let k = first.size * second.size / all;
        let q = k * (first.value - second.value);
        self.n_used += 1;
        self.weight += k;
        self.gap += q;
        self.spread += k * (first.value.abs() + second.value.abs());
        match studentize {
            Studentize::None => {}
            // Of counts: sizes are numbers of rows, values are shares of them.
            Studentize::Pooled => {
                let p = (first.value * first.size + second.value * second.size) / all;
                let rest = (all - 1.0).max(1.0);
                self.squares += k * p * (1.0 - p) * all / rest;
            }
            Studentize::Unpooled | Studentize::Corrected if first.is_single || second.is_single => {
                self.n_single += 1;
                for (sum, term) in self.singles.iter_mut().zip([q * q, q * k, k * k]) {
                    *sum += term;
                }
            }
            Studentize::Unpooled | Studentize::Corrected => self.squares += k * k * (first.variance + second.variance),
        }
    }

    /// Delta; NaN where no stratum has both groups.
    pub fn estimate(&self) -> f64 {
        if self.gap.abs() <= 1e-14 * self.spread { 0.0 / self.weight } else { self.gap / self.weight }
    }

    /// v; NaN where a single stratum has a group of one unit.
    pub fn variance(&self) -> f64 {
        (self.squares + between(self.singles, self.gap / self.weight, self.n_single)) / (self.weight * self.weight)
    }

    /// The statistic when the strata have the same margins, and `k (theta_1 - theta_2)` adds up to another number.
    pub(super) fn pooled(&self, gap: f64, studentize: Studentize) -> f64 {
        let spread = self.spread.max(self.weight);
        Self { gap: if gap.abs() <= 1e-12 * spread { 0.0 } else { gap }, ..*self }.statistic(studentize)
    }

    /// Delta / sqrt(v), or Delta alone.
    pub(super) fn statistic(&self, studentize: Studentize) -> f64 {
        let estimate = self.estimate();
        if estimate == 0.0 || studentize == Studentize::None { estimate } else { estimate / self.variance().sqrt() }
    }
}

/// The sum of (q - k Delta)^2 over strata with a group of one unit, times S / (S - 1), from the sums of q^2, q k, k^2.
fn between([qq, qk, kk]: [f64; 3], delta: f64, n: u32) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let sum = qq - 2.0 * delta * qk + delta * delta * kk;
    let sum = if sum <= 1e-13 * (qq + delta * delta * kk) { 0.0 } else { sum };
    // A single stratum of this kind has no variance that could be measured.
    if n == 1 { f64::NAN } else { sum * f64::from(n) / f64::from(n - 1) }
}

/// The quadratic form of several groups, or several metrics, over all strata.
#[derive(Debug, Clone)]
pub(super) struct Form {
    n_groups: usize,
    /// Number of metrics.
    components: usize,
    /// U by group and component (fastest), and the sum of the absolute values in it.
    excess: Vec<f64>,
    spread: Vec<f64>,
    covariance: Vec<f64>,
}

impl Form {
    pub(super) fn new(n_groups: usize, components: usize) -> Self {
        let size = n_groups * components;
        Self {
            n_groups,
            components,
            excess: vec![0.0; size],
            spread: vec![0.0; size],
            covariance: vec![0.0; size * size],
        }
    }

    /// Adds a stratum: parts by group and component (fastest); `covariance(g, i, j)` is that of two components of one
    /// group, and the variance where they are the same.
    pub(super) fn add(
        &mut self,
        parts: &[Part],
        studentize: Studentize,
        covariance: impl Fn(usize, usize, usize) -> f64,
    ) {
        let (groups, components) = (self.n_groups, self.components);
        let all: Vec<f64> = (0..components).map(|c| column(parts, c, components).map(|part| part.size).sum()).collect();
        let share = |g: usize, c: usize| if all[c] > 0.0 { parts[g * components + c].size / all[c] } else { 0.0 };
        let mut own = vec![0.0; groups * components];
        for c in 0..components {
            if column(parts, c, components).filter(|part| part.size > 0.0).count() < 2 {
                continue;
            }
            let mean = column(parts, c, components).map(|part| part.size * part.value).sum::<f64>() / all[c];
            for g in 0..groups {
                let (at, part) = (g * components + c, &parts[g * components + c]);
                own[at] = part.size * (part.value - mean);
                self.excess[at] += own[at];
                self.spread[at] += part.size * (part.value.abs() + mean.abs());
            }
        }
        let size = groups * components;
        if studentize == Studentize::Unpooled && parts.iter().any(|part| part.is_single) {
            for i in 0..size {
                for j in 0..size {
                    self.covariance[i * size + j] += own[i] * own[j];
                }
            }
            return;
        }
        for i in 0..components {
            for j in 0..components {
                let within: Vec<f64> = if studentize == Studentize::Pooled {
                    let p = column(parts, i, components).map(|part| part.value * part.size).sum::<f64>() / all[i];
                    let each = if i == j { p * (1.0 - p) * all[i] / (all[i] - 1.0).max(1.0) } else { 0.0 };
                    (0..groups).map(|h| parts[h * components + i].size * each).collect()
                } else {
                    let sizes = |h: usize| parts[h * components + i].size * parts[h * components + j].size;
                    (0..groups).map(|h| if sizes(h) > 0.0 { sizes(h) * covariance(h, i, j) } else { 0.0 }).collect()
                };
                let total: f64 = within.iter().sum();
                for g in 0..groups {
                    for h in 0..groups {
                        let same = if g == h { within[g] } else { 0.0 };
                        let sum = same - share(h, j) * within[g] - share(g, i) * within[h]
                            + share(g, i) * share(h, j) * total;
                        self.covariance[(g * components + i) * size + h * components + j] += sum;
                    }
                }
            }
        }
    }

    /// U' C^-1 U without the last group, which the others determine.
    pub(super) fn statistic(&self) -> f64 {
        let (size, some) = (self.n_groups * self.components, (self.n_groups - 1) * self.components);
        let mut gaps: Vec<f64> = (0..some)
            .map(|i| if self.excess[i].abs() <= 1e-13 * self.spread[i] { 0.0 } else { self.excess[i] })
            .collect();
        let rows = self.covariance.chunks(size).take(some);
        let mut matrix: Vec<f64> = rows.flat_map(|row| row[..some].iter().copied()).collect();
        solve_quadratic(&mut matrix, &mut gaps)
    }
}

fn column(parts: &[Part], component: usize, components: usize) -> impl Iterator<Item = &Part> {
    parts.iter().skip(component).step_by(components)
}

/// What all strata add up to, of one metric in one replicate.
#[derive(Debug, Clone)]
pub(super) enum Total {
    /// Two groups.
    Gap(Contrast),
    /// The largest gap of more groups, which is not scaled.
    Largest(Vec<Contrast>),
    /// All gaps of more groups.
    All(Form),
}

impl Total {
    pub(super) fn new(n_groups: usize, studentize: Studentize) -> Self {
        match (n_groups, studentize) {
            (2, _) => Self::Gap(Contrast::default()),
            (_, Studentize::None) => Self::Largest(vec![Contrast::default(); n_groups * (n_groups - 1) / 2]),
            _ => Self::All(Form::new(n_groups, 1)),
        }
    }

    /// Adds a stratum.
    #[inline]
    pub(super) fn add(&mut self, parts: &[Part], studentize: Studentize) {
        match self {
            Self::Gap(contrast) => contrast.add(&parts[0], &parts[1], studentize),
            Self::Largest(contrasts) => {
                let pairs = (0..parts.len()).flat_map(|i| (i + 1..parts.len()).map(move |j| (i, j)));
                for (contrast, (i, j)) in contrasts.iter_mut().zip(pairs) {
                    contrast.add(&parts[i], &parts[j], studentize);
                }
            }
            Self::All(form) => form.add(parts, studentize, |g, _, _| parts[g].variance),
        }
    }

    pub(super) fn statistic(&self, studentize: Studentize) -> f64 {
        match self {
            Self::Gap(contrast) => contrast.statistic(studentize),
            Self::Largest(contrasts) => {
                let gaps = contrasts.iter().map(|contrast| contrast.estimate().abs());
                // A pair that never meets in a stratum has no gap; if none does, nothing is measured.
                gaps.fold(f64::NAN, f64::max)
            }
            Self::All(form) => form.statistic(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(value: f64, variance: f64, size: f64) -> Part {
        let evaluation = Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN };
        Part::new(&evaluation, 0.0, size, (size, true))
    }

    /// One stratum is no strata: the statistic of two groups, and Wald's of three.
    #[test]
    fn one_stratum_is_all() {
        let (a, b, c) = (part(0.4, 0.01, 30.0), part(0.1, 0.02, 50.0), part(0.2, 0.03, 20.0));
        let mut two = Total::new(2, Studentize::Unpooled);
        two.add(&[a, b], Studentize::Unpooled);
        assert!((two.statistic(Studentize::Unpooled) - 0.3 / 0.03f64.sqrt()).abs() < 1e-14);
        let mut three = Total::new(3, Studentize::Unpooled);
        three.add(&[a, b, c], Studentize::Unpooled);
        let weights = [100.0, 50.0, 100.0 / 3.0];
        let mean = (40.0 + 5.0 + 20.0 / 3.0) / weights.iter().sum::<f64>();
        let wald: f64 = [0.4, 0.1, 0.2].iter().zip(weights).map(|(value, w)| w * (value - mean).powi(2)).sum();
        assert!((three.statistic(Studentize::Unpooled) - wald).abs() < 1e-12);
    }

    /// The spread between strata with a group of one unit, in any unit of the values and of the weights.
    #[test]
    fn spread_between_strata() {
        for (value, weight) in [(1.0, 1.0), (1e-9, 1.0), (1.0, 1e-6), (1e6, 1e-6)] {
            let strata =
                [(0.3, 0.5), (0.1, 0.25), (-0.2, 0.25)].map(|(gap, k)| (value * gap * (weight * k), weight * k));
            let delta = strata.iter().map(|(q, _)| q).sum::<f64>() / strata.iter().map(|(_, k)| k).sum::<f64>();
            let sum = |term: &dyn Fn(f64, f64) -> f64| strata.iter().map(|&(q, k)| term(q, k)).sum::<f64>();
            let sums = [sum(&|q, _| q * q), sum(&|q, k| q * k), sum(&|_, k| k * k)];
            let expected = 1.5 * sum(&|q, k| (q - k * delta).powi(2));
            let found = between(sums, delta, 3);
            assert!((found - expected).abs() < 1e-12 * expected, "{value}, {weight}: {found} is not {expected}");
        }
        // Strata that say the same differ by rounding alone, which is no spread.
        let delta = 0.1 + 0.2;
        assert_eq!(between([delta * delta, delta, 1.0], 0.3, 2), 0.0);
    }

    /// Cochran's statistic, with the N - 1 of Mantel and Haenszel, for two groups and for more.
    #[test]
    fn pooled_shares() {
        let parts = [part(0.3, 0.0, 10.0), part(0.5, 0.0, 20.0)];
        let (mut gap, mut form) = (Contrast::default(), Form::new(2, 1));
        for _ in 0..3 {
            gap.add(&parts[0], &parts[1], Studentize::Pooled);
            form.add(&parts, Studentize::Pooled, |_, _, _| 0.0);
        }
        let (p, n): (f64, f64) = (13.0 / 30.0, 30.0);
        let expected = 3.0 * (3.0 - 10.0 * p) / (3.0 * 10.0 * 20.0 * p * (1.0 - p) / (n - 1.0)).sqrt();
        assert!((gap.statistic(Studentize::Pooled) - expected).abs() < 1e-12);
        assert!((form.statistic() - expected * expected).abs() < 1e-11);
    }

    /// Strata of one unit are units themselves; one alone has no variance.
    #[test]
    fn strata_of_one_unit() {
        let mut gap = Contrast::default();
        let gaps = [1.0, 3.0, -2.0];
        for value in gaps {
            gap.add(&part(value, 9.0, 1.0), &part(0.0, 9.0, 1.0), Studentize::Unpooled);
        }
        let mean = gaps.iter().sum::<f64>() / 3.0;
        let variance = gaps.iter().map(|q| (q - mean).powi(2)).sum::<f64>() / 2.0 / 3.0;
        assert!((gap.estimate() - mean).abs() < 1e-14 && (gap.variance() - variance).abs() < 1e-13);
        assert_eq!((gap.n_used, gap.n_single), (3, 3));
        let mut alone = Contrast::default();
        alone.add(&part(1.0, 9.0, 1.0), &part(0.0, 9.0, 1.0), Studentize::Unpooled);
        assert!(alone.variance().is_nan());
    }
}
