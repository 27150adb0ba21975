//! The projection lens: the distance to the nearest fair distribution (Si et al., ICML 2021).
//!
//! A classifier is fair when every criterion `E[C(X) phi_j]` is 0 (or within a tolerance). The
//! projection moves mass of rows across the decision boundary, at their distance to it, until that
//! holds: the linear program (7) of the paper. [`margins`] holds the data and the passes over them,
//! [`selection`] solves one criterion, [`rates`] groups whose rates must become equal, [`curves`]
//! gives what any other criteria need, [`window`] the density near the boundary, [`law`] the
//! limit laws, [`replicates`] the replicates of a permuted statistic.

pub mod curves;
pub mod law;
pub mod margins;
pub mod rates;
pub mod replicates;
pub mod selection;
#[cfg(test)]
mod tests;
pub mod window;

use crate::error::Result;
use crate::numerics::sums::FixedSum;
use crate::parallel::Control;
use margins::{Candidate, Margins};
use rates::{Block, equalise};
use selection::{Gains, select};

/// Cells from this one on are of rows that take no part.
pub const NO_CELL: u16 = u16::MAX - 1;
/// Shares below this are rounding.
const NOTHING: f64 = 1e-12;

/// Who moves, and what it costs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The rows that move, ascending.
    pub rows: Vec<u32>,
    /// The fraction of each that does.
    pub fraction: Vec<f64>,
    /// The cost of the plan: sum of weight, fraction and distance.
    pub primal: f64,
    /// The value of the dual program at `prices`; never above the least cost.
    pub dual: f64,
    /// What the plan leaves of the worst criterion, as a rate.
    pub residual: f64,
    /// The multipliers.
    pub prices: Vec<f64>,
}

/// What became of a projection.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A plan.
    Reached(Plan),
    /// No movement of rows with a finite distance makes the criteria hold; how far they get.
    Unreachable {
        /// The block.
        block: usize,
        /// The group in it that hinders.
        which: usize,
        /// The most that it can change.
        reach: f64,
    },
}

/// The cheapest plan that makes the rates of the groups of every block equal up to its tolerances.
///
/// Two groups are one criterion and go by selection, more by a search over their common rate.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn project(rows: &Margins<'_>, blocks: &[Block], control: &Control) -> Result<Outcome> {
    let mut all = Plan::default();
    for (i, block) in blocks.iter().enumerate() {
        let outcome = match block.units[..] {
            [reference, other] => two_groups(rows, block, reference, other, control)?,
            _ => equalise(rows, block, control)?,
        };
        match outcome {
            Outcome::Reached(plan) => all.extend(plan),
            Outcome::Unreachable { which, reach, .. } => {
                return Ok(Outcome::Unreachable { block: i, which, reach });
            }
        }
    }
    all.sort();
    Ok(Outcome::Reached(all))
}

fn two_groups(rows: &Margins<'_>, block: &Block, reference: usize, other: usize, control: &Control) -> Result<Outcome> {
    let tallies = rows.tallies();
    let weight = |unit: usize| tallies[2 * unit].weight + tallies[2 * unit + 1].weight;
    let rate = |unit: usize| tallies[2 * unit + 1].weight / weight(unit);
    let gap = rate(other) - rate(reference);
    let (target, down, up) = if gap > block.high[1] {
        (gap - block.high[1], other, reference)
    } else {
        (-gap - block.low[1], reference, other)
    };
    let mut gains = vec![0.0; tallies.len()];
    gains[2 * down + 1] = 1.0 / weight(down);
    gains[2 * up] = 1.0 / weight(up);
    select(rows, Gains::Cells(&gains), target, control)
}

impl Plan {
    /// Adds the plan of other rows.
    pub fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.fraction.extend(other.fraction);
        self.primal += other.primal;
        self.dual += other.dual;
        self.residual = self.residual.max(other.residual);
        self.prices.extend(other.prices);
    }

    /// Orders the rows.
    pub fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by_key(|&i| self.rows[i]);
        self.rows = order.iter().map(|&i| self.rows[i]).collect();
        self.fraction = order.iter().map(|&i| self.fraction[i]).collect();
    }
}

/// The sum of `weight * distance` over candidates, whatever their order.
fn cost_of<'a>(candidates: impl Iterator<Item = &'a Candidate> + Clone) -> f64 {
    let cost = |candidate: &Candidate| candidate.weight * candidate.distance;
    let (terms, bound) = candidates.clone().fold((0, 0.0f64), |(n, bound), c| (n + 1, bound.max(cost(c))));
    let mut sum = FixedSum::new(bound, terms);
    candidates.for_each(|candidate| sum.add(cost(candidate)));
    sum.value()
}
