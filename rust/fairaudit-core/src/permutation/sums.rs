//! What metrics of rows add up, as observed.

use std::ops::Range;

use super::stream::tiles;
use crate::error::Result;
use crate::metrics::row_sums::{Lanes, RowSums};
use crate::parallel::Control;
use crate::simd::{InstructionSet, LANES, Task};

/// The sums of every group when `members` tells to what extent a row belongs to each.
pub(super) fn sums_of<const N: usize, M: RowSums<N>>(
    metric: &M,
    rows: usize,
    n_groups: usize,
    members: impl Fn(usize, &mut [Lanes]),
    instructions: InstructionSet,
    control: &Control,
) -> Result<Vec<[f64; N]>> {
    let (mut sums, mut open) = (vec![[[0.0; LANES]; N]; n_groups], M::Open::default());
    tiles(0..rows, control, |rows| {
        instructions.run(Shared { metric, rows, members: &members, sums: &mut sums, open: &mut open });
    })?;
    Ok(sums.iter().map(|sums| sums.map(|lanes| lanes[0])).collect())
}

/// Rows that are added to the sums of every group to some extent.
struct Shared<'a, const N: usize, M: RowSums<N>, S> {
    metric: &'a M,
    rows: Range<usize>,
    members: &'a S,
    sums: &'a mut [[Lanes; N]],
    open: &'a mut M::Open,
}

impl<const N: usize, M: RowSums<N>, S: Fn(usize, &mut [Lanes])> Task for Shared<'_, N, M, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut member = vec![[0.0; LANES]; self.sums.len()];
        for row in self.rows {
            (self.members)(row, &mut member);
            self.metric.add(row, &member, self.sums, self.open);
        }
    }
}

/// The sums of every group as observed.
pub(super) fn observed_sums<const N: usize, M: RowSums<N>>(
    metric: &M,
    group: &[u16],
    n_groups: usize,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Vec<[f64; N]>> {
    if !M::ADDITIVE {
        let members = |row: usize, member: &mut [Lanes]| {
            member.fill([0.0; LANES]);
            member[usize::from(group[row])] = [1.0; LANES];
        };
        return sums_of(metric, group.len(), n_groups, members, instructions, control);
    }
    add_up(metric, group.len(), n_groups, |row| usize::from(group[row]), instructions, control)
}

/// Sums over all rows of a metric whose sums are the same in every replicate.
pub(super) fn totals<const N: usize, M: RowSums<N>>(
    metric: &M,
    rows: usize,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Vec<f64>> {
    if !M::ADDITIVE {
        return Ok(Vec::new());
    }
    Ok(add_up(metric, rows, 1, |_| 0, instructions, control)?.concat())
}

/// The sums of every group of an additive metric, of which a row changes those of its group alone.
fn add_up<const N: usize, M: RowSums<N>>(
    metric: &M,
    rows: usize,
    n_groups: usize,
    group: impl Fn(usize) -> usize,
    instructions: InstructionSet,
    control: &Control,
) -> Result<Vec<[f64; N]>> {
    let (mut sums, mut open) = (vec![[[0.0; LANES]; N]; n_groups], M::Open::default());
    tiles(0..rows, control, |rows| {
        instructions.run(AddUp { metric, rows, group: &group, sums: &mut sums, open: &mut open });
    })?;
    Ok(sums.iter().map(|sums| sums.map(|lanes| lanes[0])).collect())
}

/// The rows that are added to the sums of their groups.
struct AddUp<'a, const N: usize, M: RowSums<N>, G> {
    metric: &'a M,
    rows: Range<usize>,
    group: &'a G,
    sums: &'a mut [[Lanes; N]],
    open: &'a mut M::Open,
}

impl<const N: usize, M: RowSums<N>, G: Fn(usize) -> usize> Task for AddUp<'_, N, M, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Neighbours are mostly of one group, whose sums stay in registers.
        let (mut current, mut of_current) = (0, [self.sums[0]]);
        for row in self.rows {
            let group = (self.group)(row);
            if group != current {
                self.sums[current] = of_current[0];
                (current, of_current) = (group, [self.sums[group]]);
            }
            self.metric.add(row, &[[1.0; LANES]], &mut of_current, self.open);
        }
        self.sums[current] = of_current[0];
    }
}
