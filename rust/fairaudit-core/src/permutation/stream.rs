//! The `stream` engine: metrics of ranks and of row values.
//!
//! The rows are put in order once (by score for ranks). A replicate walks over them and draws
//! the group of every row sequentially without replacement, so that each group gets exactly
//! its rows; sixteen replicates go side by side. There is no shuffle, no sort and no index per
//! replicate, and the rows are read once per sixteen replicates. Where clusters of rows move
//! together, the units that are drawn are clusters.
//!
//! The draw compares floor(u R / 2^32) with the rows that the group still needs, u being 32
//! random bits and R the rows that are left: exact but for 2^-32 per row.

use std::ops::Range;

use super::GroupTest;
use super::rows::{Block, Member, RowTest, UnitMetric};
use crate::draws::Draws;
use crate::error::Result;
use crate::metrics::auc::{Auc, Codes, GroupSums, OpenGroup, OpenPair, PairSums, Pairs};
use crate::metrics::row_sums::{LaneMask, Lanes, RowSums};
use crate::metrics::{RowMetric, of_each_metric};
use crate::parallel::Control;
use crate::random::{Domain, LaneGenerator};
use crate::simd::{LANES, Task};

/// Rows between two looks at the control.
const TILE: usize = 1 << 15;

impl RowTest {
    /// Hands `visit` what the groups (fastest) of each stratum are in the replicates `first..first + LANES`.
    pub(super) fn replicates(
        &self,
        draws: &Draws,
        first: u64,
        control: &Control,
        mut visit: impl FnMut(&Block, &[Member]),
    ) -> Result<()> {
        let mut generator = LaneGenerator::new(draws.seed, Domain::Permutation, draws.series, first, u64::MAX);
        for block in &self.blocks {
            let draw = Draw::new(&mut generator, block);
            let members = match &block.metric {
                UnitMetric::Rows(RowMetric::Auc(auc)) if i32::try_from(block.n_units()).is_ok() => {
                    if self.n_groups() == 2 {
                        self.auc_pair(block, auc, draw, control)?
                    } else {
                        self.auc_groups(block, auc, draw, control)?
                    }
                }
                UnitMetric::Rows(metric) => of_each_metric!(metric, metric => self.walk(block, metric, draw, control))?,
                UnitMetric::Clusters(auc) => {
                    control.check()?;
                    let (mut draw, units) = (draw, 0..block.n_units());
                    let with_sizes = self.blocks.len() > 1;
                    if self.n_groups() == 2 {
                        let pairs = Pairs::new(units.map(|unit| draw.of_two(block.part_of(unit))));
                        block.members_of_clusters(auc, &pairs, LANES, with_sizes, self.instructions, control)?
                    } else {
                        let drawn = units.map(|unit| {
                            let (mut places, needed) = draw.of_many(block.part_of(unit));
                            let mut codes = [0; LANES];
                            for (group, needed) in needed.iter_mut().enumerate() {
                                let member = needed.member(&mut places);
                                for lane in 0..LANES {
                                    codes[lane] |= group as u16 & member[lane] as u16;
                                }
                            }
                            codes
                        });
                        let codes = Codes(drawn.collect());
                        block.members_of_clusters(auc, &codes, LANES, with_sizes, self.instructions, control)?
                    }
                }
            };
            visit(block, &members);
        }
        Ok(())
    }

    /// Draws the groups of all rows of a stratum and adds the rows up.
    pub(super) fn walk<const N: usize, M: RowSums<N>>(
        &self,
        block: &Block,
        metric: &M,
        draw: Draw<'_>,
        control: &Control,
    ) -> Result<Vec<Member>> {
        let n_groups = self.n_groups();
        let (mut draw, mut sums, mut open) = (draw, vec![[[0.0; LANES]; N]; n_groups], M::Open::default());
        tiles(0..block.n_units(), control, |rows| {
            self.instructions.run(Walk { block, metric, draw: &mut draw, sums: &mut sums, open: &mut open, rows });
        })?;
        if M::ADDITIVE {
            // The last group has what the others left.
            for (k, total) in block.totals.iter().enumerate() {
                for lane in 0..LANES {
                    let others: f64 = sums[..n_groups - 1].iter().map(|sums| sums[k][lane]).sum();
                    sums[n_groups - 1][k][lane] = total - others;
                }
            }
        }
        Ok(of_lanes(block, metric, &sums))
    }

    fn auc_pair(&self, block: &Block, auc: &Auc, draw: Draw<'_>, control: &Control) -> Result<Vec<Member>> {
        let (mut draw, mut sums, mut open) = (draw, PairSums::default(), OpenPair::default());
        tiles(0..block.n_units(), control, |rows| {
            self.instructions.run(WalkAucPair { block, auc, draw: &mut draw, sums: &mut sums, open: &mut open, rows });
        })?;
        Ok(of_lanes(block, auc, &sums.of_groups()))
    }

    pub(super) fn auc_groups(
        &self,
        block: &Block,
        auc: &Auc,
        draw: Draw<'_>,
        control: &Control,
    ) -> Result<Vec<Member>> {
        let n_groups = self.n_groups();
        let mut draw = draw;
        let (mut sums, mut open) = (vec![GroupSums::default(); n_groups], vec![OpenGroup::default(); n_groups]);
        let mut is_open = false;
        tiles(0..block.n_units(), control, |rows| {
            let (sums, open) = (&mut sums[..], &mut open[..]);
            is_open = self.instructions.run(WalkAuc { block, auc, draw: &mut draw, sums, open, is_open, rows });
        })?;
        let sums: Vec<_> = sums.iter().map(GroupSums::sums).collect();
        Ok(of_lanes(block, auc, &sums))
    }
}

/// Calls `walk` on rows, some at a time.
pub(super) fn tiles(rows: Range<usize>, control: &Control, mut walk: impl FnMut(Range<usize>)) -> Result<()> {
    let mut from = rows.start;
    while from < rows.end {
        control.check()?;
        let to = (from + TILE).min(rows.end);
        walk(from..to);
        from = to;
    }
    Ok(())
}

fn of_lanes<const N: usize, M: RowSums<N>>(block: &Block, metric: &M, sums: &[[Lanes; N]]) -> Vec<Member> {
    let of_lane = |lane: usize| {
        let groups = sums.iter().enumerate();
        groups.map(move |(group, sums)| block.member(metric, group, sums.map(|lanes| lanes[lane])))
    };
    (0..LANES).flat_map(of_lane).collect()
}

/// A number of each lane, in a cache line of its own: a register is as wide as one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct LaneCounts([u32; LANES]);

impl LaneCounts {
    /// All bits where a unit is a member of this group, in every lane. `places` is where it lies among the units that
    /// this group and all later ones still need; no closure gets the mask, as that is compiled for no instruction set.
    #[inline(always)]
    fn member(&mut self, places: &mut [u32; LANES]) -> LaneMask {
        // Copies stay in registers.
        let (Self(mut needed), mut rest, mut member) = (*self, *places, [0; LANES]);
        for lane in 0..LANES {
            member[lane] = if rest[lane] < needed[lane] { u32::MAX } else { 0 };
            // Once it is a member, its place is beyond all that the other groups need together.
            rest[lane] = rest[lane].wrapping_sub(needed[lane]) | member[lane];
            needed[lane] = needed[lane].wrapping_add(member[lane]);
        }
        (*self, *places) = (Self(needed), rest);
        member
    }
}

/// Draws the groups of the units of a stratum one after the other, without replacement.
pub(super) struct Draw<'a> {
    generator: &'a mut LaneGenerator,
    /// Units that each group still needs, by part and group.
    needed: Vec<LaneCounts>,
    /// Units left in each part.
    left: Vec<u32>,
    n_groups: usize,
}

impl<'a> Draw<'a> {
    pub(super) fn new(generator: &'a mut LaneGenerator, block: &Block) -> Self {
        Self {
            generator,
            needed: block.sizes.iter().flatten().map(|&size| LaneCounts([size; LANES])).collect(),
            left: block.sizes.iter().map(|sizes| sizes.iter().sum()).collect(),
            n_groups: block.expected.len(),
        }
    }

    /// All bits where the next unit is one of the first of two groups, in every lane.
    #[inline(always)]
    pub(super) fn of_two(&mut self, part: usize) -> LaneMask {
        let words = self.generator.next_words();
        let left = self.left[part];
        let needed = &mut self.needed[2 * part].0;
        let mut first = [0; LANES];
        for lane in 0..LANES {
            let place = ((u64::from(words[lane]) * u64::from(left)) >> 32) as u32;
            first[lane] = if place < needed[lane] { u32::MAX } else { 0 };
            needed[lane] = needed[lane].wrapping_add(first[lane]);
        }
        self.left[part] = left - 1;
        first
    }

    /// How many units the first of two groups still needs, in every lane.
    pub(super) fn first_needed(&self) -> [u32; LANES] {
        let mut all = [0; LANES];
        for LaneCounts(needed) in self.needed.iter().step_by(2) {
            all.iter_mut().zip(needed).for_each(|(all, needed)| *all += needed);
        }
        all
    }

    /// Where the next unit of a part lies among those that its groups still need, in every lane, and how many these are.
    #[inline(always)]
    fn of_many(&mut self, part: usize) -> ([u32; LANES], &mut [LaneCounts]) {
        let words = self.generator.next_words();
        let left = self.left[part];
        let mut places = [0u32; LANES];
        for lane in 0..LANES {
            places[lane] = ((u64::from(words[lane]) * u64::from(left)) >> 32) as u32;
        }
        self.left[part] = left - 1;
        (places, &mut self.needed[part * self.n_groups..(part + 1) * self.n_groups])
    }
}

/// A walk over some rows that gives them to groups.
struct Walk<'a, 'b, const N: usize, M: RowSums<N>> {
    block: &'a Block,
    metric: &'a M,
    draw: &'a mut Draw<'b>,
    sums: &'a mut [[Lanes; N]],
    open: &'a mut M::Open,
    rows: Range<usize>,
}

impl<const N: usize, M: RowSums<N>> Task for Walk<'_, '_, N, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { block, metric, draw, sums, open, rows } = self;
        if M::ADDITIVE && sums.len() == 2 {
            // Only the first of two groups is added up, in registers.
            let mut first = [sums[0]];
            for row in rows {
                let member = draw.of_two(block.part_of(row)).map(|first| f64::from(first & 1));
                metric.add(row, &[member], &mut first, open);
            }
            sums[0] = first[0];
            return;
        }
        let counted = if M::ADDITIVE { sums.len() - 1 } else { sums.len() };
        let mut member = vec![[0.0; LANES]; sums.len()];
        for row in rows {
            let (mut places, needed) = draw.of_many(block.part_of(row));
            for (member, needed) in member.iter_mut().zip(needed) {
                *member = needed.member(&mut places).map(|mask| f64::from(mask & 1));
            }
            metric.add(row, &member[..counted], &mut sums[..counted], open);
        }
    }
}

/// A walk over some rows of two groups for the AUC.
struct WalkAucPair<'a, 'b> {
    block: &'a Block,
    auc: &'a Auc,
    draw: &'a mut Draw<'b>,
    sums: &'a mut PairSums,
    open: &'a mut OpenPair,
    rows: Range<usize>,
}

impl Task for WalkAucPair<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { block, auc, draw, sums, open, rows } = self;
        // A copy, so that it stays in registers.
        let mut running = *sums;
        for row in rows {
            let first = draw.of_two(block.part_of(row));
            let (positive, tied) = (auc.flags[row].is_positive(), auc.flags[row].is_tied_with_next());
            if tied || !open.is_empty() {
                open.add(positive, &first);
                if !tied {
                    *sums = running;
                    sums.add_tied(open);
                    running = *sums;
                    *open = OpenPair::default();
                }
            } else {
                running.add(positive, &first);
            }
        }
        *sums = running;
    }
}

/// A walk over some rows of several groups for the AUC; says whether the last of them is tied with the next.
struct WalkAuc<'a, 'b> {
    block: &'a Block,
    auc: &'a Auc,
    draw: &'a mut Draw<'b>,
    sums: &'a mut [GroupSums],
    open: &'a mut [OpenGroup],
    is_open: bool,
    rows: Range<usize>,
}

impl Task for WalkAuc<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { block, auc, draw, sums, open, mut is_open, rows } = self;
        for row in rows {
            let (positive, tied) = (auc.flags[row].is_positive(), auc.flags[row].is_tied_with_next());
            let (mut places, needed) = draw.of_many(block.part_of(row));
            if tied || is_open {
                for (needed, open) in needed.iter_mut().zip(open.iter_mut()) {
                    open.add(positive, &needed.member(&mut places));
                }
                if !tied {
                    for (sums, open) in sums.iter_mut().zip(open.iter_mut()) {
                        sums.add_tied(open);
                        *open = OpenGroup::default();
                    }
                }
                is_open = tied;
            } else {
                for (needed, sums) in needed.iter_mut().zip(sums.iter_mut()) {
                    sums.add(positive, &needed.member(&mut places));
                }
            }
        }
        is_open
    }
}
