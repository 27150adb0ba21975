//! The `cells` engine: a label permutation of counts is a multivariate hypergeometric draw
//! within each stratum, so a replicate costs O(cells) whatever the number of rows.

use std::ops::Range;

use super::{StepDown, Test};
use crate::error::Result;
use crate::metrics::Evaluation;
use crate::parallel::{Control, fill_replicates};
use crate::rng::{Domain, FixedHypergeometric, Stream, multivariate_hypergeometric};

/// Replicates of one task of [`max_t`].
const BLOCK: u64 = 64;

/// The margins of one stratum, and its first draw prepared: it has the same parameters in
/// every replicate.
struct StratumSampler {
    class_totals: Vec<u64>,
    group_sizes: Vec<u64>,
    first: Option<FixedHypergeometric>,
}

/// Draws tables with the margins of the observed one.
struct TableSampler {
    strata: Vec<StratumSampler>,
    n_groups: usize,
    n_classes: usize,
}

/// Buffers of one thread.
struct Scratch {
    left: Vec<u64>,
    drawn: Vec<u64>,
    margin: Vec<f64>,
    evaluations: Vec<Evaluation>,
}

impl TableSampler {
    fn new(test: &Test) -> Self {
        let table = &test.table;
        let strata = table
            .strata()
            .map(|stratum| {
                let class_totals = table.class_totals(stratum);
                let group_sizes = table.group_sizes(stratum);
                let rows: u64 = class_totals.iter().sum();
                let first = (rows > 0).then(|| FixedHypergeometric::new(rows, class_totals[0], group_sizes[0]));
                StratumSampler { class_totals, group_sizes, first }
            })
            .collect();
        Self { strata, n_groups: table.n_groups, n_classes: table.n_classes }
    }

    fn scratch(&self) -> Scratch {
        Scratch {
            left: vec![0; self.n_classes],
            drawn: vec![0; self.n_classes],
            margin: vec![0.0; self.n_groups * self.n_classes],
            evaluations: vec![
                Evaluation { value: 0.0, variance: 0.0, numerator: 0.0, denominator: 0.0 };
                self.n_groups
            ],
        }
    }

    /// Class counts of every group in one replicate, summed over strata, into `scratch.margin`.
    #[inline]
    fn draw(&self, seed: u64, series: u64, replicate: u64, scratch: &mut Scratch) {
        scratch.margin.fill(0.0);
        for (cell, stratum) in self.strata.iter().enumerate() {
            let mut stream = Stream::new(seed, Domain::Permutation, series, replicate, cell as u64);
            scratch.left.copy_from_slice(&stratum.class_totals);
            let (last, others) = scratch.margin.split_at_mut((self.n_groups - 1) * self.n_classes);
            let groups = last.chunks_mut(self.n_classes).zip(&stratum.group_sizes);
            for (g, (margin, &size)) in groups.enumerate() {
                match &stratum.first {
                    Some(first) if g == 0 => {
                        let count = first.sample(&mut stream);
                        scratch.drawn[0] = count;
                        multivariate_hypergeometric(
                            &mut stream,
                            &scratch.left[1..],
                            size - count,
                            &mut scratch.drawn[1..],
                        );
                    }
                    _ => multivariate_hypergeometric(&mut stream, &scratch.left, size, &mut scratch.drawn),
                }
                for ((sum, left), &count) in margin.iter_mut().zip(&mut scratch.left).zip(&scratch.drawn) {
                    *sum += count as f64;
                    *left -= count;
                }
            }
            others.iter_mut().zip(&scratch.left).for_each(|(sum, &count)| *sum += count as f64);
        }
    }
}

/// The statistic of some permutations, in the order of the replicates.
///
/// `series` separates the comparisons that share a seed. The result depends on the test, the
/// seed, the series and the replicate's index alone.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn null_distribution(
    test: &Test,
    replicates: Range<u64>,
    seed: u64,
    series: u64,
    control: &Control,
) -> Result<Vec<f64>> {
    let sampler = TableSampler::new(test);
    let mut null = vec![0.0; (replicates.end - replicates.start) as usize];
    fill_replicates(
        &mut null,
        control,
        || sampler.scratch(),
        |offset, scratch| {
            sampler.draw(seed, series, replicates.start + offset, scratch);
            test.statistic_of(&scratch.margin, &mut scratch.evaluations)
        },
    )?;
    Ok(null)
}

/// Step-down max-T p-values of the pairs of groups; see [`StepDown`].
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn max_t(
    test: &Test,
    pairs: &[(usize, usize)],
    n_resamples: u64,
    seed: u64,
    series: u64,
    control: &Control,
) -> Result<Vec<f64>> {
    let observed = test.evaluations();
    let family = StepDown::new(pairs, |pair| test.pair_statistic(&test.table.margin(), &observed, pair));
    let sampler = TableSampler::new(test);
    family.adjust(n_resamples, BLOCK, control, |replicates, counts| {
        let mut scratch = sampler.scratch();
        for replicate in replicates {
            sampler.draw(seed, series, replicate, &mut scratch);
            test.evaluate_into(&scratch.margin, &mut scratch.evaluations);
            family.count(|pair| test.pair_statistic(&scratch.margin, &scratch.evaluations, pair), counts);
        }
        Ok(())
    })
}
