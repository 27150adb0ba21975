//! The `cells` engine: a label permutation of counts is a multivariate hypergeometric draw
//! within each stratum, so a replicate costs O(cells) whatever the number of rows.

use std::ops::Range;

use crate::draws::Draws;
use crate::error::Result;
use crate::metrics::Evaluation;
use crate::parallel::{Control, fill_replicates};
use crate::random::{Domain, FixedHypergeometric, LaneSampler, Stream};
use crate::simd::{InstructionSet, LANES};
use crate::tabulate::Table;

/// The margins of one stratum, and its first draw prepared: it has the same parameters in
/// every replicate.
struct StratumSampler {
    class_totals: Vec<u64>,
    group_sizes: Vec<u64>,
    first: Option<FixedHypergeometric>,
    /// The stratum of the user's that it is a part of.
    block: usize,
}

/// Draws tables with the margins of the observed one.
pub(super) struct TableSampler {
    strata: Vec<StratumSampler>,
    n_groups: usize,
    n_classes: usize,
    instructions: InstructionSet,
}

/// Buffers of one thread, for [`LANES`] replicates side by side.
struct Scratch {
    sampler: LaneSampler,
    /// Rows of each class that are not drawn yet, and those that a group drew.
    left: Vec<[u64; LANES]>,
    drawn: Vec<[u64; LANES]>,
    /// The class counts of all groups in a stratum of the user's, one replicate after the other.
    margins: Vec<f64>,
    evaluations: Vec<Evaluation>,
}

impl TableSampler {
    /// `block_of` says of which stratum of the user's each stratum of the table is a part.
    pub(super) fn new(table: &Table, block_of: &[usize], instructions: InstructionSet) -> Self {
        let strata = table
            .strata()
            .zip(block_of)
            .map(|(stratum, &block)| {
                let class_totals = table.class_totals(stratum);
                let group_sizes = table.group_sizes(stratum);
                let rows: u64 = class_totals.iter().sum();
                let first = (rows > 0).then(|| FixedHypergeometric::new(rows, class_totals[0], group_sizes[0]));
                StratumSampler { class_totals, group_sizes, first, block }
            })
            .collect();
        Self { strata, n_groups: table.n_groups(), n_classes: table.n_classes(), instructions }
    }

    /// A number for each of some permutations, in the order of the replicates: `finish` makes it of what `add` adds to
    /// something `new` for each stratum of the user's, in order. `add` gets the number of the stratum, the class counts of
    /// every group in it, and a buffer.
    pub(super) fn fill<T>(
        &self,
        draws: &Draws,
        control: &Control,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, usize, &[f64], &mut [Evaluation]) + Sync,
        finish: impl Fn(&T) -> f64 + Sync,
    ) -> Result<Vec<f64>> {
        let mut null = draws.zeros();
        let fill = |offset: u64, values: &mut [f64], scratch: &mut Scratch| {
            let first = draws.replicates.start + offset;
            for (values, first) in values.chunks_mut(LANES).zip((first..).step_by(LANES)) {
                let mut totals: [T; LANES] = std::array::from_fn(|_| new());
                let n = values.len();
                self.draw(draws, first, scratch, |block, lane, margin, evaluations| {
                    if lane < n {
                        add(&mut totals[lane], block, margin, evaluations);
                    }
                });
                for (value, total) in values.iter_mut().zip(&totals) {
                    *value = finish(total);
                }
            }
        };
        fill_replicates(&mut null, control, || self.scratch(), fill)?;
        Ok(null)
    }

    /// Calls `done` with what `add` made of the strata of each of some replicates; see [`TableSampler::fill`].
    pub(super) fn visit<T>(
        &self,
        draws: &Draws,
        replicates: Range<u64>,
        new: impl Fn() -> T,
        mut add: impl FnMut(&mut T, usize, &[f64], &mut [Evaluation]),
        mut done: impl FnMut(&T),
    ) {
        let mut scratch = self.scratch();
        for first in replicates.clone().step_by(LANES) {
            let mut totals: [T; LANES] = std::array::from_fn(|_| new());
            let n = (replicates.end - first).min(LANES as u64) as usize;
            self.draw(draws, first, &mut scratch, |block, lane, margin, evaluations| {
                if lane < n {
                    add(&mut totals[lane], block, margin, evaluations);
                }
            });
            totals[..n].iter().for_each(&mut done);
        }
    }

    fn scratch(&self) -> Scratch {
        Scratch {
            sampler: LaneSampler::new(self.instructions),
            left: vec![[0; LANES]; self.n_classes],
            drawn: vec![[0; LANES]; self.n_classes],
            margins: vec![0.0; LANES * self.margin_len()],
            evaluations: vec![Evaluation::UNDEFINED; self.n_groups],
        }
    }

    fn margin_len(&self) -> usize {
        self.n_groups * self.n_classes
    }

    /// Calls `done` with the class counts of every group in each stratum of the user's, lane by lane, of the replicates
    /// from `first` on.
    fn draw(
        &self,
        draws: &Draws,
        first: u64,
        scratch: &mut Scratch,
        mut done: impl FnMut(usize, usize, &[f64], &mut [Evaluation]),
    ) {
        let Scratch { sampler, left, drawn, margins, evaluations } = scratch;
        let width = self.margin_len();
        margins.fill(0.0);
        if self.strata.is_empty() {
            margins.chunks(width).enumerate().for_each(|(lane, margin)| done(0, lane, margin, evaluations));
        }
        for (cell, stratum) in self.strata.iter().enumerate() {
            let mut streams: [Stream; LANES] = std::array::from_fn(|lane| {
                Stream::new(draws.seed, Domain::Permutation, draws.series, first + lane as u64, cell as u64)
            });
            // Words of all lanes in one go, where one lane need not wait for the other.
            streams.iter_mut().for_each(Stream::fill);
            left.iter_mut().zip(&stratum.class_totals).for_each(|(left, &total)| *left = [total; LANES]);
            let others = self.n_groups - 1;
            for (group, &size) in stratum.group_sizes[..others].iter().enumerate() {
                stratum.draw_group(group, size, left, drawn, &mut streams, sampler);
                for (left, drawn) in left.iter_mut().zip(drawn.iter()) {
                    left.iter_mut().zip(drawn).for_each(|(left, drawn)| *left -= drawn);
                }
                self.add(group, drawn, margins);
            }
            self.add(others, left, margins);
            if self.strata.get(cell + 1).is_none_or(|next| next.block != stratum.block) {
                margins
                    .chunks(width)
                    .enumerate()
                    .for_each(|(lane, margin)| done(stratum.block, lane, margin, evaluations));
                margins.fill(0.0);
            }
        }
    }

    /// Adds the class counts of a group to the margins.
    fn add(&self, group: usize, counts: &[[u64; LANES]], margins: &mut [f64]) {
        for (lane, margin) in margins.chunks_mut(self.margin_len()).enumerate() {
            let margin = &mut margin[group * self.n_classes..][..self.n_classes];
            margin.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count[lane] as f64);
        }
    }
}

impl StratumSampler {
    /// Draws the classes of `size` rows out of those that are left, in every lane: one
    /// hypergeometric draw per class.
    fn draw_group(
        &self,
        group: usize,
        size: u64,
        left: &[[u64; LANES]],
        drawn: &mut [[u64; LANES]],
        streams: &mut [Stream; LANES],
        sampler: &mut LaneSampler,
    ) {
        let mut population: [u64; LANES] = std::array::from_fn(|lane| left.iter().map(|left| left[lane]).sum());
        let mut needed = [size; LANES];
        for (class, (drawn, left)) in drawn.iter_mut().zip(left).enumerate() {
            match &self.first {
                Some(first) if group == 0 && class == 0 => {
                    drawn.iter_mut().zip(streams.iter_mut()).for_each(|(count, stream)| *count = first.sample(stream));
                }
                _ => sampler.draw(&population, left, &needed, streams, drawn),
            }
            for lane in 0..LANES {
                needed[lane] -= drawn[lane];
                population[lane] -= left[lane];
            }
        }
    }
}
