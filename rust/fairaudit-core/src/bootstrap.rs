//! Bootstrap replicates of a metric and of its variance, group by group.
//!
//! Counts: the classes of a resampled group are one multinomial draw, whatever the number of
//! rows. Rows: how often each row is drawn is a multinomial draw too, made block by block: first
//! how many draws fall into a block, then where. There are no arrays of indices; the rows are
//! read once per sixteen replicates, in the order that the metric needs.

use crate::draws::Draws;
use crate::error::Result;
use crate::metrics::row_sums::{Lanes, RowSums};
use crate::metrics::{Evaluation, Metric, RowMetric, of_each_metric};
use crate::parallel::{Control, fill};
use crate::random::{Binomial, Domain, LaneGenerator, Stream, multinomial};
use crate::simd::{InstructionSet, LANES, Task};

/// Replicates of one task on counts.
const BLOCK: usize = 64;

/// The metric in bootstrap replicates, by replicate and group (fastest).
#[derive(Debug, Clone, PartialEq)]
pub struct Replicates {
    /// Number of groups.
    pub n_groups: usize,
    /// Values of the metric.
    pub values: Vec<f64>,
    /// Their variances, if they are wanted.
    pub variances: Option<Vec<f64>>,
}

impl Replicates {
    /// Adds a number to all values.
    pub(crate) fn shift(&mut self, by: f64) {
        self.values.iter_mut().for_each(|value| *value += by);
    }
}

/// Resamples the rows of every group, `margin` being the class counts of each.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub(crate) fn of_counts(
    margin: &[f64],
    metric: &Metric,
    with_variances: bool,
    draws: &Draws,
    control: &Control,
) -> Result<Replicates> {
    let n_classes = metric.n_classes();
    let sizes: Vec<u64> = margin.chunks(n_classes).map(|counts| counts.iter().sum::<f64>() as u64).collect();
    let fill_block = |block: usize, chunk: &mut [(f64, f64)]| -> Result<()> {
        control.check()?;
        let (mut drawn, mut counts) = (vec![0u64; n_classes], vec![0.0; n_classes]);
        for (offset, groups) in chunk.chunks_mut(sizes.len()).enumerate() {
            let replicate = draws.replicates.start + (block * BLOCK + offset) as u64;
            for (g, (result, weights)) in groups.iter_mut().zip(margin.chunks(n_classes)).enumerate() {
                let mut stream = Stream::new(draws.seed, Domain::Bootstrap, draws.series, replicate, g as u64);
                multinomial(&mut stream, sizes[g], weights, &mut drawn);
                counts.iter_mut().zip(&drawn).for_each(|(count, &drawn)| *count = drawn as f64);
                let drawn = if with_variances { metric.evaluate(&counts) } else { metric.evaluate_value(&counts) };
                *result = (drawn.value, drawn.variance);
            }
        }
        control.advance((chunk.len() / sizes.len()) as u64);
        Ok(())
    };
    fill_blocks(sizes.len(), with_variances, BLOCK, draws, control, fill_block)
}

/// Replicates that `fill_block` makes `block` at a time; it has the number of the block.
fn fill_blocks(
    n_groups: usize,
    with_variances: bool,
    block: usize,
    draws: &Draws,
    control: &Control,
    fill_block: impl Fn(usize, &mut [(f64, f64)]) -> Result<()> + Sync,
) -> Result<Replicates> {
    let mut results = vec![(0.0, 0.0); draws.n() as usize * n_groups];
    fill(&mut results, block * n_groups, control, || (), |i, chunk, ()| fill_block(i, chunk))?;
    let values = results.iter().map(|result| result.0).collect();
    let variances = with_variances.then(|| results.iter().map(|result| result.1).collect());
    Ok(Replicates { n_groups, values, variances })
}

/// Resamples the rows of every group; `groups` holds the metric of the rows of each.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub(crate) fn of_rows(
    groups: &[RowMetric],
    with_variances: bool,
    draws: &Draws,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Replicates> {
    of_lanes(groups.len(), with_variances, draws, control, |first| {
        let mut lanes = vec![Evaluation::UNDEFINED; LANES * groups.len()];
        for (g, metric) in groups.iter().enumerate() {
            let mut rows = Multiplicities::new(metric.n_rows(), draws, first, g as u64);
            let drawn = of_each_metric!(metric, metric => resample(metric, &mut rows, instructions, control))?;
            for (lane, evaluation) in drawn.into_iter().enumerate() {
                lanes[lane * groups.len() + g] = evaluation;
            }
        }
        Ok(lanes)
    })
}

/// Replicates that `resample` makes sixteen at a time: by replicate and group (fastest).
pub(crate) fn of_lanes(
    n_groups: usize,
    with_variances: bool,
    draws: &Draws,
    control: &Control,
    resample: impl Fn(u64) -> Result<Vec<Evaluation>> + Sync,
) -> Result<Replicates> {
    let fill_block = |block: usize, chunk: &mut [(f64, f64)]| -> Result<()> {
        control.check()?;
        let evaluations = resample(draws.replicates.start + (block * LANES) as u64)?;
        for (result, evaluation) in chunk.iter_mut().zip(evaluations) {
            *result = (evaluation.value, evaluation.variance);
        }
        control.advance((chunk.len() / n_groups) as u64);
        Ok(())
    };
    fill_blocks(n_groups, with_variances, LANES, draws, control, fill_block)
}

fn resample<const N: usize, M: RowSums<N>>(
    metric: &M,
    draws: &mut Multiplicities,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Vec<Evaluation>> {
    let (mut sums, mut open) = ([[0.0; LANES]; N], M::Open::default());
    while draws.rows_left > 0 {
        control.check()?;
        instructions.run(Resample { metric, draws, sums: &mut sums, open: &mut open });
    }
    Ok((0..LANES).map(|lane| metric.evaluate(sums.map(|lanes| lanes[lane]))).collect())
}

/// How often every unit of a group is drawn, in all lanes: for what cannot be read in one pass.
pub(crate) fn multiplicities(
    units: usize,
    draws: &Draws,
    first: u64,
    group: u64,
    instructions: InstructionSet,
    mut visit: impl FnMut(usize, Lanes),
) {
    let mut rows = Multiplicities::new(units, draws, first, group);
    let mut at = 0;
    while rows.rows_left > 0 {
        instructions.run(NextBlock(&mut rows));
        for counts in &rows.counts[..rows.block_rows] {
            visit(at, counts.map(f64::from));
            at += 1;
        }
    }
}

/// Rows of a block: their counts stay in the nearest cache.
const BLOCK_ROWS: usize = 1024;
/// Draws from one word of 32 bits, each of 10 bits.
const DRAWS_PER_WORD: usize = 3;
/// Words for a block, used or not, so that a replicate's numbers do not depend on its neighbours;
/// draws beyond these (eight standard deviations) come from the replicate's own stream.
const WORDS: usize = (BLOCK_ROWS + 8 * 32) / DRAWS_PER_WORD;

/// How often each row of a group is drawn, block by block, in every lane.
struct Multiplicities {
    generator: LaneGenerator,
    streams: Vec<Stream>,
    /// Draws left in every lane, rows left.
    left: [u64; LANES],
    rows_left: usize,
    /// Rows before the block, and in it.
    block_start: usize,
    block_rows: usize,
    /// How often each row of the block is drawn. A row is drawn more than 255 times with a
    /// probability far below 1e-300.
    counts: Vec<[u8; LANES]>,
}

impl Multiplicities {
    fn new(rows: usize, draws: &Draws, first: u64, group: u64) -> Self {
        let (lanes, &Draws { seed, series, .. }) = (first..first + LANES as u64, draws);
        Self {
            generator: LaneGenerator::new(seed, Domain::Bootstrap, series, first, u64::MAX - group),
            streams: lanes.map(|replicate| Stream::new(seed, Domain::Bootstrap, series, replicate, group)).collect(),
            left: [rows as u64; LANES],
            rows_left: rows,
            block_start: 0,
            block_rows: 0,
            counts: vec![[0; LANES]; BLOCK_ROWS],
        }
    }

    /// Draws the counts of the next block.
    #[inline(always)]
    fn next_block(&mut self) {
        self.block_start += self.block_rows;
        let rows = self.rows_left.min(BLOCK_ROWS);
        self.block_rows = rows;
        let share = rows as f64 / self.rows_left as f64;
        let mut draws = [0usize; LANES];
        for lane in 0..LANES {
            let here = if rows == self.rows_left {
                self.left[lane]
            } else {
                Binomial::new(self.left[lane], share).sample(&mut self.streams[lane])
            };
            self.left[lane] -= here;
            draws[lane] = here as usize;
        }
        self.rows_left -= rows;
        self.counts.fill([0; LANES]);
        let mut placed = 0;
        if rows == BLOCK_ROWS {
            placed = WORDS * DRAWS_PER_WORD;
            let all_lanes = draws.iter().min().map_or(0, |&least| least / DRAWS_PER_WORD).min(WORDS);
            for _ in 0..all_lanes {
                let words = self.generator.next_words();
                for part in 0..DRAWS_PER_WORD {
                    for lane in 0..LANES {
                        self.counts[(words[lane] >> (10 * part)) as usize % BLOCK_ROWS][lane] += 1;
                    }
                }
            }
            for word in all_lanes..WORDS {
                let words = self.generator.next_words();
                for part in 0..DRAWS_PER_WORD {
                    for lane in 0..LANES {
                        if word * DRAWS_PER_WORD + part < draws[lane] {
                            self.counts[(words[lane] >> (10 * part)) as usize % BLOCK_ROWS][lane] += 1;
                        }
                    }
                }
            }
        }
        for lane in 0..LANES {
            for _ in placed..draws[lane] {
                let row = self.streams[lane].below(rows as u64) as usize;
                self.counts[row][lane] += 1;
            }
        }
    }
}

/// Draws the counts of the next block of rows and adds the rows up.
struct Resample<'a, const N: usize, M: RowSums<N>> {
    metric: &'a M,
    draws: &'a mut Multiplicities,
    sums: &'a mut [Lanes; N],
    open: &'a mut M::Open,
}

impl<const N: usize, M: RowSums<N>> Task for Resample<'_, N, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { metric, draws, sums, open } = self;
        draws.next_block();
        // A copy, so that it stays in registers.
        let mut running = [*sums];
        for (offset, counts) in draws.counts[..draws.block_rows].iter().enumerate() {
            metric.add(draws.block_start + offset, &[counts.map(f64::from)], &mut running, open);
        }
        *sums = running[0];
    }
}

struct NextBlock<'a>(&'a mut Multiplicities);

impl Task for NextBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.next_block();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Formula;

    fn draws(replicates: std::ops::Range<u64>, seed: u64) -> Draws {
        Draws { replicates, seed, series: 0 }
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
    }

    /// Every row is drawn n times in all, with the mean and variance of a multinomial.
    #[test]
    fn rows_are_drawn_as_often_as_there_are_rows() {
        for units in [1, 7, 1_024, 5_000] {
            let mut total = [0.0; LANES];
            let (mut first, mut last) = (Vec::new(), Vec::new());
            for block in 0..200 {
                let mut sums = [0.0; LANES];
                multiplicities(
                    units,
                    &draws(0..3_200, 3),
                    block * LANES as u64,
                    1,
                    InstructionSet::Baseline,
                    |unit, counts| {
                        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                        if unit == 0 {
                            first.extend(counts);
                        }
                        if unit + 1 == units {
                            last.extend(counts);
                        }
                    },
                );
                assert_eq!(sums, [units as f64; LANES]);
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
            for counts in [first, last] {
                let (mean, variance) = moments(&counts);
                let exact = 1.0 - 1.0 / units as f64;
                assert!((mean - 1.0).abs() < 4.9 * (exact / counts.len() as f64).sqrt() + 1e-12, "{units} {mean}");
                assert!((variance - exact).abs() < 0.15, "{units} {variance}");
            }
        }
    }

    /// The spread of the replicates is the standard error that the formula gives.
    #[test]
    fn counts_and_their_variance() {
        let margin = [300.0, 50.0, 120.0, 400.0, 90.0, 40.0, 30.0, 160.0];
        let metric = Formula::parse("tp/(tp+fn)").unwrap().to_metric();
        let run = |with_variances: bool, replicates| {
            of_counts(&margin, &metric, with_variances, &draws(replicates, 5), &Control::default()).unwrap()
        };
        let results = run(true, 0..8_000);
        for (group, counts) in margin.chunks(4).enumerate() {
            let evaluation = metric.evaluate(counts);
            let values: Vec<f64> = results.values.iter().skip(group).step_by(2).copied().collect();
            let (mean, variance) = moments(&values);
            assert!((mean - evaluation.value).abs() < 4.9 * (evaluation.variance / 8_000.0).sqrt() + 1e-3);
            assert!((variance / evaluation.variance - 1.0).abs() < 0.1, "{variance} {}", evaluation.variance);
        }
        let part = run(false, 70..75);
        assert_eq!(part.values[..], results.values[140..150]);
        assert_eq!((part.n_groups, part.variances), (2, None));
    }
}
