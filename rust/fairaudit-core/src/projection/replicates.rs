//! The projection of chance gaps: a level without a density.
//!
//! Where the rates of all groups are equal, the decisions of the rows of a block (one label) are
//! exchangeable among its groups, however far from the boundary each group lies. So the numbers of
//! positive decisions in the groups are a multivariate hypergeometric draw, and what it would cost
//! to remove *their* gaps, at the margins as they are, is what the cost of the observed gaps is
//! compared with. Exchanging the distances too would not do: where one group lies farther from the
//! boundary, the cost of permuted data has another law than that of the data.
//!
//! For this comparison rows on both sides of the boundary stand for each other, each with half its
//! mass: a group with hardly any positive decision has few rows to lower its rate by, and a
//! chance gap in that direction must not look dear for it.
//!
//! A replicate costs a few draws and one search over the common rate, whatever the number of rows.

use super::margins::Margins;
use super::rates::{Block, Group, Side, groups_with_rows, solve};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::parallel::{Control, each_replicate};
use crate::random::{Domain, Stream, multivariate_hypergeometric};

/// Chance gaps are never larger than this many standard errors.
const LARGEST_CHANCE: f64 = 40.0;

/// Nanoseconds of a replicate.
const REPLICATE_WORK: u64 = 20_000;

/// A projection whose rows exchange their decisions within blocks.
#[derive(Debug, Clone)]
pub struct ProjectionTest {
    blocks: Vec<Exchange>,
}

/// The rows of one block.
#[derive(Debug, Clone)]
struct Exchange {
    /// The groups with the rows nearest to the boundary.
    groups: Vec<Group>,
    /// Rows of each group.
    sizes: Vec<u64>,
    /// Rows decided positively.
    positive: u64,
}

impl ProjectionTest {
    /// The rows of the blocks, which all count the same.
    ///
    /// # Errors
    /// [`Error::Argument`] when rows have weights; [`Error::Cancelled`].
    pub fn new(rows: &Margins<'_>, blocks: &[Block], control: &Control) -> Result<Self> {
        if rows.is_weighted() {
            return Err(Error::argument("sample_weight", "given", "None when decisions are permuted"));
        }
        let tallies = rows.tallies();
        let exchange = |block: &Block| -> Result<Exchange> {
            let sizes: Vec<u64> =
                block.units.iter().map(|&unit| tallies[2 * unit].rows + tallies[2 * unit + 1].rows).collect();
            let positive: u64 = block.units.iter().map(|&unit| tallies[2 * unit + 1].rows).sum();
            let rate = positive as f64 / sizes.iter().sum::<u64>() as f64;
            let reach = |&size: &u64| LARGEST_CHANCE * (size as f64 * rate * (1.0 - rate)).sqrt() + 1.0;
            let needs: Vec<(f64, f64)> = sizes.iter().map(|size| (reach(size), reach(size))).collect();
            let (mut groups, _) = groups_with_rows(rows, block, &needs, control)?;
            for group in &mut groups {
                group.up = pooled(&group.up, &group.down);
                group.down = group.up.clone();
            }
            Ok(Exchange { groups, sizes, positive })
        };
        Ok(Self { blocks: blocks.iter().map(exchange).collect::<Result<_>>()? })
    }

    /// Estimated nanoseconds of one replicate on one thread.
    pub fn replicate_work(&self) -> u64 {
        REPLICATE_WORK
    }

    /// What it costs to remove the observed gaps by rows of both sides.
    pub fn observed(&self) -> f64 {
        self.blocks.iter().map(Exchange::cost).sum()
    }

    /// What it costs to remove the gaps of some replicates, in their order; infinite where it cannot be done. Each
    /// block has a series of its own, from that of the draws on.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let mut null = draws.zeros();
        let scratch = || (self.blocks.clone(), Vec::new());
        each_replicate(&mut null, control, scratch, |offset, (blocks, drawn)| {
            let replicate = draws.replicates.start + offset;
            let cost_of = |(block, series): (&mut Exchange, u64)| {
                block.draw(Stream::new(draws.seed, Domain::Permutation, series, replicate, 0), drawn);
                block.cost()
            };
            blocks.iter_mut().zip(draws.series..).map(cost_of).sum()
        })?;
        Ok(null)
    }
}

/// The rows of both sides, each with half its mass.
fn pooled(one: &Side, other: &Side) -> Side {
    let mut distance = [&one.distance[..], &other.distance[..]].concat();
    distance.sort_unstable_by(f64::total_cmp);
    let mass = (1..=distance.len()).map(|rows| 0.5 * rows as f64).collect();
    Side { distance, mass, finite: 0.5 * (one.finite + other.finite) }
}

impl Exchange {
    /// Gives the positive decisions to the groups by chance.
    fn draw(&mut self, mut stream: Stream, drawn: &mut Vec<u64>) {
        drawn.resize(self.sizes.len(), 0);
        multivariate_hypergeometric(&mut stream, &self.sizes, self.positive, drawn);
        for (group, &positive) in self.groups.iter_mut().zip(drawn.iter()) {
            group.rate = positive as f64 / group.weight;
        }
    }

    /// What it costs to remove the gaps.
    fn cost(&self) -> f64 {
        solve(&self.groups).map_or(f64::INFINITY, |rates| rates.primal)
    }
}
