//! The `stream` engine: metrics of ranks and of row values.
//!
//! The rows are put in order once (by score for ranks). A replicate walks over them and draws
//! the group of every row sequentially without replacement, so that each group gets exactly
//! its rows; sixteen replicates go side by side. There is no shuffle, no sort and no index per
//! replicate, and the rows are read once per sixteen replicates.
//!
//! The draw compares floor(u R / 2^32) with the rows that the group still needs, u being 32
//! random bits and R the rows that are left: exact but for 2^-32 per row.
// Unsafe code: calling a kernel that was compiled for an instruction set which the processor
// was just seen to have.
#![allow(unsafe_code)]

use rayon::prelude::*;

use super::{StepDown, Studentize, difference, omnibus};
use crate::error::{Error, Result};
use crate::metrics::Evaluation;
use crate::parallel::Control;
use crate::rng::{Domain, LANES, LaneGenerator};

/// Rows between two looks at the control.
const TILE: usize = 1 << 15;

type Lanes = [f64; LANES];

/// What is computed from the rows of a group.
#[derive(Debug, Clone)]
pub enum RowMetric {
    /// Area under the ROC curve, ties 1/2, with `DeLong`'s variance.
    ///
    /// Rows in ascending order of the score.
    Auc {
        /// The label of each row.
        positive: Vec<bool>,
        /// Whether a row has the score of the next one.
        tied_with_next: Vec<bool>,
    },
    /// sum w a / sum w d with variance sum (w (a - theta d))^2 / (sum w d)^2.
    Ratio {
        /// w a of each row.
        numerator: Vec<f64>,
        /// w d of each row; none when it is 1 everywhere.
        denominator: Option<Vec<f64>>,
    },
}

impl RowMetric {
    /// Centres a ratio at its value over all rows: (that value, what sums of squares are noise).
    fn center(&mut self) -> (f64, f64) {
        let Self::Ratio { numerator, denominator } = self else { return (0.0, 0.0) };
        let squares: f64 = numerator.iter().map(|a| a * a).sum();
        let below = denominator.as_ref().map_or(numerator.len() as f64, |d| d.iter().sum());
        let center = numerator.iter().sum::<f64>() / below;
        if !center.is_finite() {
            return (0.0, 0.0);
        }
        for (row, a) in numerator.iter_mut().enumerate() {
            *a -= center * denominator.as_ref().map_or(1.0, |d| d[row]);
        }
        (center, 1e-26 * squares)
    }

    fn n_rows(&self) -> usize {
        match self {
            Self::Auc { positive, .. } => positive.len(),
            Self::Ratio { numerator, .. } => numerator.len(),
        }
    }
}

/// A permutation test on rows.
///
/// A ratio is centred: `a - center d` takes the place of `a`, which changes the metric of every
/// group by `center` and its variance not at all, and keeps the digits of values that lie far
/// from 0.
#[derive(Debug, Clone)]
pub struct RowTest {
    metric: RowMetric,
    center: f64,
    /// Sums of squares up to this are rounding.
    noise: f64,
    /// Observed group of each row.
    group: Vec<u32>,
    /// Stratum of each row; none when there is one.
    stratum: Option<Vec<u32>>,
    /// Rows by stratum and group.
    sizes: Vec<Vec<u32>>,
    studentize: Studentize,
    /// The metric of each group (centred) when every row belongs to it by the share of its
    /// stratum that does: what the strata alone explain. 0 without strata.
    expected: Vec<f64>,
}

/// Sums over the rows of one group, in every lane.
///
/// AUC: negatives, positives, then over rows in the group: sum of x, sum of x^2 over positives
/// (x: negatives below, ties 1/2), sum of y^2 over negatives (y: positives below, ties 1/2).
/// Ratio: sums of A, D, A^2, A D, D^2.
#[derive(Debug, Clone, Copy)]
struct Sums([Lanes; 5]);

const ZERO: Sums = Sums([[0.0; LANES]; 5]);

impl RowTest {
    /// Prepares a test of the rows' metric between `n_groups` groups.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit, or there are more than 2^32 - 1 rows.
    pub fn new(
        mut metric: RowMetric,
        group: Vec<u32>,
        n_groups: usize,
        stratum: Option<Vec<u32>>,
        studentize: Studentize,
    ) -> Result<Self> {
        let rows = metric.n_rows();
        let fits = group.len() == rows
            && stratum.as_ref().is_none_or(|stratum| stratum.len() == rows)
            && match &metric {
                RowMetric::Auc { tied_with_next, .. } => tied_with_next.len() == rows,
                RowMetric::Ratio { denominator, .. } => denominator.as_ref().is_none_or(|d| d.len() == rows),
            };
        if !fits || u32::try_from(rows).is_err() {
            return Err(Error::argument(
                "rows",
                format!("{rows} with columns of other lengths"),
                "columns of one length, at most 2^32 - 1 rows",
            ));
        }
        if n_groups < 2 || group.iter().any(|&g| g as usize >= n_groups) {
            return Err(Error::argument("group", "out of range", "codes below n_groups, at least two groups"));
        }
        if studentize == Studentize::Pooled {
            return Err(Error::argument("studentize", "\"pooled\"", "\"pooled\" only for proportions"));
        }
        let n_strata = stratum.as_ref().map_or(1, |stratum| stratum.iter().max().map_or(0, |&s| s as usize + 1));
        let mut sizes = vec![vec![0u32; n_groups]; n_strata];
        for (row, &g) in group.iter().enumerate() {
            sizes[stratum.as_ref().map_or(0, |stratum| stratum[row] as usize)][g as usize] += 1;
        }
        let (center, noise) = metric.center();
        let mut test = Self { metric, center, noise, group, stratum, sizes, studentize, expected: vec![0.0; n_groups] };
        if let Some(stratum) = &test.stratum {
            let shares = |row: usize, member: &mut [Lanes]| {
                let sizes = &test.sizes[stratum[row] as usize];
                let rows = f64::from(sizes.iter().sum::<u32>());
                for (member, &size) in member.iter_mut().zip(sizes) {
                    *member = [f64::from(size) / rows; LANES];
                }
            };
            let groups = test.evaluate_members(shares);
            test.expected = groups.iter().map(|group| if group.is_defined() { group.value } else { 0.0 }).collect();
        }
        Ok(test)
    }

    /// A test of the AUC: `score` and `positive` of each row, in any order.
    ///
    /// # Errors
    /// As [`RowTest::new`].
    pub fn auc(
        score: &[f64],
        positive: &[bool],
        group: &[u32],
        n_groups: usize,
        stratum: Option<&[u32]>,
        studentize: Studentize,
    ) -> Result<Self> {
        check_lengths(score.len(), [positive.len(), group.len(), stratum.map_or(score.len(), <[u32]>::len)])?;
        let order = order(score, |row| u64::from(positive[row]), group, stratum);
        let at = |i: usize| order[i] as usize;
        let metric = RowMetric::Auc {
            positive: (0..order.len()).map(|i| positive[at(i)]).collect(),
            tied_with_next: (0..order.len()).map(|i| i + 1 < order.len() && score[at(i)] == score[at(i + 1)]).collect(),
        };
        let pick = |codes: &[u32]| order.iter().map(|&row| codes[row as usize]).collect();
        Self::new(metric, pick(group), n_groups, stratum.map(pick), studentize)
    }

    /// A test of sum a / sum d, of rows in any order; d is 1 when it is left out.
    ///
    /// # Errors
    /// As [`RowTest::new`].
    pub fn ratio(
        numerator: &[f64],
        denominator: Option<&[f64]>,
        group: &[u32],
        n_groups: usize,
        stratum: Option<&[u32]>,
        studentize: Studentize,
    ) -> Result<Self> {
        let rows = numerator.len();
        check_lengths(rows, [denominator.map_or(rows, <[f64]>::len), group.len(), stratum.map_or(rows, <[u32]>::len)])?;
        let order = order(numerator, |row| denominator.map_or(0, |d| ordered_bits(d[row])), group, stratum);
        let pick = |values: &[f64]| order.iter().map(|&row| values[row as usize]).collect();
        let pick_codes = |codes: &[u32]| order.iter().map(|&row| codes[row as usize]).collect();
        let metric = RowMetric::Ratio { numerator: pick(numerator), denominator: denominator.map(pick) };
        Self::new(metric, pick_codes(group), n_groups, stratum.map(pick_codes), studentize)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.group.len()
    }

    /// Whether the null distribution of a difference must be centred at its own mean.
    pub fn needs_centring(&self) -> bool {
        self.n_groups() == 2 && self.sizes.len() > 1
    }

    fn n_groups(&self) -> usize {
        self.sizes[0].len()
    }

    /// The metric in every group of the observed rows.
    pub fn evaluations(&self) -> Vec<Evaluation> {
        let mut groups = self.centred_evaluations();
        for group in &mut groups {
            group.value += self.center;
        }
        groups
    }

    fn centred_evaluations(&self) -> Vec<Evaluation> {
        self.evaluate_members(|row, member| {
            member.fill([0.0; LANES]);
            member[self.group[row] as usize] = [1.0; LANES];
        })
    }

    /// The metric of every group, `members` telling to what extent a row belongs to each.
    fn evaluate_members(&self, members: impl Fn(usize, &mut [Lanes])) -> Vec<Evaluation> {
        let mut sums = vec![ZERO; self.n_groups()];
        let mut member = vec![[0.0; LANES]; self.n_groups()];
        let mut ties = Ties::default();
        for row in 0..self.n_rows() {
            members(row, &mut member);
            self.metric.add(row, &member, &mut sums, &mut ties);
        }
        self.evaluate(&sums, 0)
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
        self.statistic(&self.centred_evaluations())
    }

    fn statistic(&self, groups: &[Evaluation]) -> f64 {
        match groups {
            [first, second] => difference(first, second, self.expected_gap(0, 1), self.studentize),
            groups => omnibus(groups, &self.expected, self.studentize),
        }
    }

    fn evaluate(&self, sums: &[Sums], lane: usize) -> Vec<Evaluation> {
        let of_group = |group: &Sums| {
            let sums = group.0.map(|lanes| lanes[lane]);
            match &self.metric {
                RowMetric::Auc { .. } => auc(sums),
                RowMetric::Ratio { denominator: Some(_), .. } => ratio(sums, self.noise),
                // d = 1: the sums of A D and D^2 are those of A and D.
                RowMetric::Ratio { .. } => ratio([sums[0], sums[1], sums[2], sums[0], sums[1]], self.noise),
            }
        };
        sums.iter().map(of_group).collect()
    }

    /// The statistic of `n_resamples` permutations, in the order of the replicates.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn null_distribution(
        &self,
        n_resamples: usize,
        seed: u64,
        series: u64,
        kernel: Kernel,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let mut null = vec![0.0; n_resamples];
        let fill = |(block, chunk): (usize, &mut [f64])| -> Result<()> {
            let sums = self.replicate_sums(seed, series, (block * LANES) as u64, kernel, control)?;
            for (lane, value) in chunk.iter_mut().enumerate() {
                *value = self.statistic(&self.evaluate(&sums, lane));
            }
            control.advance(chunk.len() as u64);
            Ok(())
        };
        if rayon::current_thread_index().is_none() {
            null.chunks_mut(LANES).enumerate().try_for_each(fill)?;
        } else {
            null.par_chunks_mut(LANES).enumerate().try_for_each(fill)?;
        }
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
        kernel: Kernel,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let family = StepDown::new(pairs, &self.centred_evaluations(), |i, j| self.expected_gap(i, j), self.studentize);
        family.adjust(n_resamples, LANES as u64, control, |replicates, counts| {
            let sums = self.replicate_sums(seed, series, replicates.start, kernel, control)?;
            for lane in 0..(replicates.end - replicates.start) as usize {
                family.count(&self.evaluate(&sums, lane), counts);
            }
            Ok(())
        })
    }

    /// Sums of all groups for the replicates `first..first + LANES`.
    fn replicate_sums(
        &self,
        seed: u64,
        series: u64,
        first: u64,
        kernel: Kernel,
        control: &Control,
    ) -> Result<Vec<Sums>> {
        let mut state = State {
            generator: LaneGenerator::new(seed, Domain::Permutation, series, first),
            needed: self.sizes.iter().map(|sizes| sizes.iter().map(|&size| [size; LANES]).collect()).collect(),
            left: self.sizes.iter().map(|sizes| sizes.iter().sum()).collect(),
            sums: vec![ZERO; self.n_groups()],
            ties: Ties::default(),
        };
        let mut from = 0;
        while from < self.n_rows() {
            control.check()?;
            let to = (from + TILE).min(self.n_rows());
            kernel.run(self, &mut state, from..to);
            from = to;
        }
        Ok(state.sums)
    }
}

fn check_lengths(rows: usize, others: [usize; 3]) -> Result<()> {
    match others.into_iter().find(|&length| length != rows) {
        Some(other) => Err(Error::argument("rows", format!("{rows} and {other}"), "columns of one length")),
        None => Ok(()),
    }
}

/// Bits that are in the order of the values.
fn ordered_bits(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Rows in ascending order of everything that a test looks at, so that the result does not
/// depend on the order in which they arrive.
fn order(first: &[f64], second: impl Fn(usize) -> u64, group: &[u32], stratum: Option<&[u32]>) -> Vec<u32> {
    let mut keyed: Vec<(u64, u32)> = first.iter().zip(0..).map(|(&value, row)| (ordered_bits(value), row)).collect();
    let rest = |row: u32| {
        let row = row as usize;
        (second(row), stratum.map_or(0, |stratum| stratum[row]), group[row])
    };
    keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(&rest(b.1))));
    keyed.into_iter().map(|(_, row)| row).collect()
}

/// AUC = sum x / (n+ n-); v = var(x / n-) / n+ + var(y / n+) / n-, both with ddof 1 (`DeLong`).
fn auc([negatives, positives, x, x_squares, y_squares]: [f64; 5]) -> Evaluation {
    let pairs = negatives * positives;
    if pairs == 0.0 {
        return Evaluation::UNDEFINED;
    }
    let value = x / pairs;
    let y = pairs - x;
    // Sums of squares about the mean, not below 0 by rounding.
    let about_x = (x_squares - x * x / positives).max(0.0);
    let about_y = (y_squares - y * y / negatives).max(0.0);
    let variance = about_x / (negatives * negatives * (positives - 1.0) * positives)
        + about_y / (positives * positives * (negatives - 1.0) * negatives);
    // A single row of a kind leaves its part 0 / 0: the variance cannot be measured.
    Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
}

fn ratio([above, below, above_squares, products, below_squares]: [f64; 5], noise: f64) -> Evaluation {
    if below == 0.0 {
        return Evaluation::UNDEFINED;
    }
    let value = above / below;
    let squares = above_squares - 2.0 * value * products + value * value * below_squares;
    let variance = if squares <= noise { 0.0 } else { squares / (below * below) };
    Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
}

/// Where a walk over the rows stands.
struct State {
    generator: LaneGenerator,
    /// Rows that each group still needs, by stratum, group and lane.
    needed: Vec<Vec<[u32; LANES]>>,
    /// Rows left in each stratum.
    left: Vec<u32>,
    sums: Vec<Sums>,
    ties: Ties,
}

/// The instruction set that a kernel was compiled for. The bits are the same on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2.
    Avx2,
    /// AVX-512 (F, BW, DQ, VL).
    Avx512,
}

impl Kernel {
    /// The best one that this processor runs; the environment variable `FAIRAUDIT_SIMD`
    /// (`baseline`, `avx2`, `avx512`) asks for another.
    ///
    /// # Errors
    /// [`Error::Argument`] when the processor does not run what the variable asks for.
    pub fn detect() -> Result<Self> {
        let available = Self::available();
        let Ok(wanted) = std::env::var("FAIRAUDIT_SIMD") else {
            return Ok(*available.last().unwrap_or(&Self::Baseline));
        };
        let named = available.iter().copied().find(|kernel| kernel.name() == wanted);
        named.ok_or_else(|| {
            let names: Vec<&str> = available.iter().map(|kernel| kernel.name()).collect();
            Error::argument("FAIRAUDIT_SIMD", wanted, &format!("{} on this processor", names.join(", ")))
        })
    }

    /// All that this processor runs, the best one last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut kernels = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                kernels.push(Self::Avx512);
            }
        }
        kernels
    }

    fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    fn run(self, test: &RowTest, state: &mut State, rows: std::ops::Range<usize>) {
        match self {
            // SAFETY: `available` saw the instruction set on this processor.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { walk_avx2(test, state, rows) },
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { walk_avx512(test, state, rows) },
            _ => walk(test, state, rows),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn walk_avx2(test: &RowTest, state: &mut State, rows: std::ops::Range<usize>) {
    walk(test, state, rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn walk_avx512(test: &RowTest, state: &mut State, rows: std::ops::Range<usize>) {
    walk(test, state, rows);
}

/// Draws the groups of some rows and adds the rows to the sums. Two groups in one stratum, the
/// usual case, is compiled for itself.
#[inline(always)]
#[allow(clippy::inline_always)]
fn walk(test: &RowTest, state: &mut State, rows: std::ops::Range<usize>) {
    let State { generator, needed, left, sums, ties } = state;
    if let ([first, second], [groups], None) = (&mut sums[..], &mut needed[..], &test.stratum) {
        let (mut both, mut words, mut first_needed) = ([*first, *second], generator.clone(), groups[0]);
        let total = left[0];
        let start = rows.start;
        walk_rows(&test.metric, rows.clone(), &mut both, ties, |row, member: &mut [Lanes; 2]| {
            draw_of_two(&words.next_words(), &mut first_needed, total - (row - start) as u32, member);
        });
        left[0] = total - rows.len() as u32;
        groups[0] = first_needed;
        *generator = words;
        [*first, *second] = both;
        return;
    }
    let mut member = vec![[0.0; LANES]; sums.len()];
    for row in rows {
        let stratum = test.stratum.as_ref().map_or(0, |stratum| stratum[row] as usize);
        draw_of_many(&generator.next_words(), &mut needed[stratum], left[stratum], &mut member);
        left[stratum] -= 1;
        test.metric.add(row, &member, sums, ties);
    }
}

/// Rows of two groups, with the kind of metric decided outside of the loop.
#[inline(always)]
#[allow(clippy::inline_always)]
fn walk_rows(
    metric: &RowMetric,
    rows: std::ops::Range<usize>,
    sums: &mut [Sums; 2],
    ties: &mut Ties,
    mut draw: impl FnMut(usize, &mut [Lanes; 2]),
) {
    let mut member = [[0.0; LANES]; 2];
    match metric {
        RowMetric::Ratio { numerator, denominator: None } => {
            for row in rows {
                draw(row, &mut member);
                add_value(numerator[row], &member, sums);
            }
        }
        RowMetric::Ratio { numerator, denominator: Some(denominator) } => {
            for row in rows {
                draw(row, &mut member);
                add_pair(numerator[row], denominator[row], &member, sums);
            }
        }
        RowMetric::Auc { positive, tied_with_next } => {
            for row in rows {
                draw(row, &mut member);
                let tied = tied_with_next[row];
                if tied || !ties.open.is_empty() {
                    ties.add(positive[row], tied, &member, sums);
                } else if positive[row] {
                    add_positive(&member, sums);
                } else {
                    add_negative(&member, sums);
                }
            }
        }
    }
}

/// Gives a row to one of two groups in every lane.
#[inline(always)]
#[allow(clippy::inline_always)]
fn draw_of_two(words: &[u32; LANES], needed: &mut [u32; LANES], left: u32, member: &mut [Lanes; 2]) {
    for lane in 0..LANES {
        let place = (u64::from(words[lane]) * u64::from(left)) >> 32;
        let first = place < u64::from(needed[lane]);
        needed[lane] -= u32::from(first);
        member[0][lane] = if first { 1.0 } else { 0.0 };
        member[1][lane] = if first { 0.0 } else { 1.0 };
    }
}

/// Gives a row to one of many groups in every lane.
#[inline(always)]
#[allow(clippy::inline_always)]
fn draw_of_many(words: &[u32; LANES], needed: &mut [[u32; LANES]], left: u32, member: &mut [Lanes]) {
    let mut places = [0u32; LANES];
    for lane in 0..LANES {
        places[lane] = ((u64::from(words[lane]) * u64::from(left)) >> 32) as u32;
    }
    let mut taken = [false; LANES];
    for (needed, member) in needed.iter_mut().zip(member) {
        for lane in 0..LANES {
            let here = !taken[lane] && places[lane] < needed[lane];
            places[lane] = places[lane].wrapping_sub(needed[lane]);
            needed[lane] -= u32::from(here);
            member[lane] = if here { 1.0 } else { 0.0 };
            taken[lane] |= here;
        }
    }
}

impl RowMetric {
    /// Adds a row to the sums of the groups that it is a member of.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [Sums], ties: &mut Ties) {
        match self {
            Self::Ratio { numerator, denominator: None } => add_value(numerator[row], member, sums),
            Self::Ratio { numerator, denominator: Some(denominator) } => {
                add_pair(numerator[row], denominator[row], member, sums);
            }
            Self::Auc { positive, tied_with_next } => {
                if tied_with_next[row] || !ties.open.is_empty() {
                    ties.add(positive[row], tied_with_next[row], member, sums);
                } else if positive[row] {
                    add_positive(member, sums);
                } else {
                    add_negative(member, sums);
                }
            }
        }
    }
}

/// Rows of one score that were seen so far, by group: negatives and positives.
#[derive(Debug, Default)]
struct Ties {
    open: Vec<[Lanes; 2]>,
}

impl Ties {
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn add(&mut self, positive: bool, tied_with_next: bool, member: &[Lanes], sums: &mut [Sums]) {
        self.open.resize(member.len(), [[0.0; LANES]; 2]);
        for (open, member) in self.open.iter_mut().zip(member) {
            for (count, m) in open[usize::from(positive)].iter_mut().zip(member) {
                *count += m;
            }
        }
        if tied_with_next {
            return;
        }
        for (open, Sums([negatives, positives, x, x_squares, y_squares])) in self.open.iter().zip(sums) {
            for lane in 0..LANES {
                let [in_negatives, in_positives] = [open[0][lane], open[1][lane]];
                let below = negatives[lane] + 0.5 * in_negatives;
                let positives_below = positives[lane] + 0.5 * in_positives;
                x[lane] += in_positives * below;
                x_squares[lane] += in_positives * below * below;
                y_squares[lane] += in_negatives * positives_below * positives_below;
                negatives[lane] += in_negatives;
                positives[lane] += in_positives;
            }
        }
        self.open.clear();
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_positive(member: &[Lanes], sums: &mut [Sums]) {
    for (member, Sums([negatives, positives, x, x_squares, _])) in member.iter().zip(sums) {
        for lane in 0..LANES {
            let below = member[lane] * negatives[lane];
            x[lane] += below;
            x_squares[lane] += below * negatives[lane];
            positives[lane] += member[lane];
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_negative(member: &[Lanes], sums: &mut [Sums]) {
    for (member, Sums([negatives, positives, _, _, y_squares])) in member.iter().zip(sums) {
        for lane in 0..LANES {
            let below = member[lane] * positives[lane];
            y_squares[lane] += below * positives[lane];
            negatives[lane] += member[lane];
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_value(a: f64, member: &[Lanes], sums: &mut [Sums]) {
    let square = a * a;
    for (member, Sums([above, below, above_squares, _, _])) in member.iter().zip(sums) {
        for lane in 0..LANES {
            above[lane] += member[lane] * a;
            below[lane] += member[lane];
            above_squares[lane] += member[lane] * square;
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_pair(a: f64, d: f64, member: &[Lanes], sums: &mut [Sums]) {
    let terms = [a, d, a * a, a * d, d * d];
    for (member, Sums(sums)) in member.iter().zip(sums) {
        for (sum, term) in sums.iter_mut().zip(terms) {
            for lane in 0..LANES {
                sum[lane] += member[lane] * term;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    struct Data {
        positive: Vec<bool>,
        score: Vec<u32>,
        group: Vec<u32>,
    }

    /// Rows in ascending order of a score with `levels` values.
    fn data(rows: usize, levels: u64, groups: u64) -> Data {
        let mut stream = Stream::new(9, Domain::Simulation, rows as u64, levels, groups);
        let mut all: Vec<(u32, bool, u32)> = (0..rows)
            .map(|_| (stream.below(levels) as u32, stream.below(3) == 0, stream.below(groups) as u32))
            .collect();
        all.sort_by_key(|row| row.0);
        Data {
            positive: all.iter().map(|row| row.1).collect(),
            score: all.iter().map(|row| row.0).collect(),
            group: all.iter().map(|row| row.2).collect(),
        }
    }

    fn auc_metric(data: &Data) -> RowMetric {
        let tied = (0..data.score.len()).map(|i| data.score.get(i + 1) == Some(&data.score[i])).collect();
        RowMetric::Auc { positive: data.positive.clone(), tied_with_next: tied }
    }

    /// AUC and `DeLong` variance by the definition: all pairs.
    fn auc_by_pairs(data: &Data, group: &[u32], which: u32) -> (f64, f64) {
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
            let test = RowTest::new(auc_metric(&data), data.group.clone(), groups as usize, None, Studentize::Unpooled)
                .unwrap();
            for (group, evaluation) in test.evaluations().iter().enumerate() {
                let (value, variance) = auc_by_pairs(&data, &data.group, group as u32);
                assert!((evaluation.value - value).abs() < 1e-13);
                assert!((evaluation.variance / variance - 1.0).abs() < 1e-10, "{levels} {groups}");
            }
        }
    }

    #[test]
    fn ratios_and_their_variance() {
        let values = [3.0, -1.0, 4.0, 1.5, 9.0, 2.0];
        let below = [1.0, 2.0, 1.0, 0.5, 3.0, 1.0];
        let metric = RowMetric::Ratio { numerator: values.to_vec(), denominator: Some(below.to_vec()) };
        let test = RowTest::new(metric, vec![0, 0, 0, 1, 1, 1], 2, None, Studentize::Unpooled).unwrap();
        let evaluation = test.evaluations()[0];
        assert!((evaluation.value - 1.5).abs() < 1e-15);
        let squares: f64 = (0..3).map(|i: usize| (values[i] - 1.5 * below[i]).powi(2)).sum();
        assert!((evaluation.variance - squares / 16.0).abs() < 1e-15);
        // All rows with one ratio: no variance at all, and not a little by rounding.
        let metric = RowMetric::Ratio { numerator: vec![0.1; 6], denominator: None };
        let test = RowTest::new(metric, vec![0, 0, 0, 1, 1, 1], 2, None, Studentize::Unpooled).unwrap();
        assert_eq!(test.evaluations()[1].variance, 0.0);
        assert_eq!(test.observed(), 0.0);
    }

    /// Rows of a group that prefers the stratum with high values: the strata explain its mean,
    /// and in one stratum of three groups nothing else is left of it.
    #[test]
    fn strata_explain_what_they_do() {
        let stratum: Vec<u32> = (0..600).map(|i| u32::from(i % 3 == 0)).collect();
        let group: Vec<u32> = (0..600).map(|i| u32::from(i % 5 < if i % 3 == 0 { 4 } else { 1 })).collect();
        let value: Vec<f64> = stratum.iter().map(|&s| 10.0 * f64::from(s)).collect();
        let test = RowTest::ratio(&value, None, &group, 2, Some(&stratum), Studentize::Unpooled).unwrap();
        let groups = test.evaluations();
        assert!(groups[1].value - groups[0].value > 3.0);
        assert!((test.expected()[1] - test.expected()[0] - (groups[1].value - groups[0].value)).abs() < 1e-9);
        assert!(test.observed().abs() < 1e-6);
    }

    /// Values far from 0 keep the digits of their variance.
    #[test]
    fn ratios_are_centred() {
        let noise: Vec<f64> = (0..1000).map(|i| f64::from(i * 37 % 101) / 101.0).collect();
        let group: Vec<u32> = (0..1000).map(|i| i % 2).collect();
        let test = |offset: f64| {
            let numerator = noise.iter().map(|value| value + offset).collect();
            let metric = RowMetric::Ratio { numerator, denominator: None };
            RowTest::new(metric, group.clone(), 2, None, Studentize::Unpooled).unwrap()
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
        let metric =
            RowMetric::Ratio { numerator: stratum.iter().map(|&s| f64::from(s == 1)).collect(), denominator: None };
        let test = RowTest::new(metric, data.group.clone(), 4, Some(stratum), Studentize::Unpooled).unwrap();
        let sums = test.replicate_sums(1, 0, 0, Kernel::Baseline, &Control::default()).unwrap();
        for (group, Sums([in_second, rows, ..])) in sums.iter().enumerate() {
            let size: u32 = test.sizes.iter().map(|sizes| sizes[group]).sum();
            assert_eq!(rows, &[f64::from(size); LANES]);
            let expected = f64::from(test.sizes[1][group]) - test.center * f64::from(size);
            assert!(in_second.iter().all(|sum| (sum - expected).abs() < 1e-9));
        }
    }

    /// The number of marked rows in the first group is hypergeometric (chi-square, tail 1e-6).
    #[test]
    fn draws_follow_the_hypergeometric_law() {
        for groups in [2, 3] {
            let marked: Vec<f64> = (0..60).map(|i| f64::from(i % 4 == 0)).collect();
            let group: Vec<u32> = (0..60).map(|i| if i < 25 { 0 } else { 1 + i % (groups - 1) }).collect();
            let metric = RowMetric::Ratio { numerator: marked, denominator: None };
            let test = RowTest::new(metric, group, groups as usize, None, Studentize::None).unwrap();
            let mut counts = [0u32; 16];
            let blocks = 6_000;
            for block in 0..blocks {
                let sums =
                    test.replicate_sums(5, 0, block * LANES as u64, Kernel::Baseline, &Control::default()).unwrap();
                // Centred at 1/4: marked - rows / 4.
                sums[0].0[0].iter().for_each(|&sum| counts[(sum + 25.0 / 4.0).round() as usize] += 1);
            }
            let (first, law) = crate::rng::Hypergeometric::new(60, 15, 25).law(100).unwrap();
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
            let test = RowTest::new(auc_metric(&data), data.group.clone(), groups as usize, None, Studentize::Unpooled)
                .unwrap();
            let baseline = test.null_distribution(37, 3, 1, Kernel::Baseline, &control).unwrap();
            assert!(baseline.iter().all(|value| value.is_finite()));
            for kernel in Kernel::available() {
                assert_eq!(test.null_distribution(37, 3, 1, kernel, &control).unwrap(), baseline, "{kernel:?}");
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            assert_eq!(
                pool.install(|| test.null_distribution(37, 3, 1, Kernel::Baseline, &control)).unwrap(),
                baseline
            );
            assert_eq!(test.null_distribution(5, 3, 1, Kernel::Baseline, &control).unwrap()[..], baseline[..5]);
        }
    }
}
