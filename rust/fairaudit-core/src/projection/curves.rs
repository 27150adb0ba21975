//! The cost of moving mass out of every cell: what a projection with any criteria needs of its rows.
//!
//! All rows of a cell change the criteria in the same way, so only how much of each cell moves
//! matters. Sorted by distance, `cost(mass)` is convex and piecewise linear; a linear program over
//! a few of its breakpoints, refined around its solution, finds the exact one.

use super::margins::{Candidate, Margins};
use super::{NOTHING, Plan};
use crate::error::Result;
use crate::parallel::Control;

/// The rows of some cells by distance, with running sums.
#[derive(Debug, Clone)]
pub struct Curves {
    cells: Vec<Curve>,
}

/// One cell.
#[derive(Debug, Clone, Default)]
struct Curve {
    rows: Vec<Candidate>,
    /// The mass of the first i rows.
    mass: Vec<f64>,
    /// Their cost.
    cost: Vec<f64>,
}

impl Curve {
    fn new(mut rows: Vec<Candidate>) -> Self {
        rows.sort_unstable_by(|a, b| {
            a.distance.total_cmp(&b.distance).then(a.weight.total_cmp(&b.weight)).then(a.row.cmp(&b.row))
        });
        let running = |value: fn(&Candidate) -> f64| {
            let mut sum = 0.0;
            let sums = rows.iter().map(|candidate| {
                sum += value(candidate);
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        };
        let (mass, cost) = (running(|row| row.weight), running(|row| row.weight * row.distance));
        Self { rows, mass, cost }
    }
}

impl Curves {
    /// The finite rows of the cells that are `used`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn new(rows: &Margins<'_>, used: &[bool], control: &Control) -> Result<Self> {
        let cut: Vec<f64> = used.iter().map(|&used| if used { f64::MAX } else { -1.0 }).collect();
        let mut cells: Vec<Vec<Candidate>> = vec![Vec::new(); used.len()];
        for candidate in rows.within(&cut, control)? {
            if candidate.weight > 0.0 {
                cells[usize::from(candidate.cell)].push(candidate);
            }
        }
        let sorted = |rows| control.check().map(|()| Curve::new(rows));
        Ok(Self { cells: cells.into_iter().map(sorted).collect::<Result<_>>()? })
    }

    /// Number of rows of a cell that can move.
    pub fn rows(&self, cell: usize) -> usize {
        self.cells[cell].rows.len()
    }

    /// Mass and cost of the first `rank` rows of a cell.
    pub fn point(&self, cell: usize, rank: usize) -> (f64, f64) {
        (self.cells[cell].mass[rank], self.cells[cell].cost[rank])
    }

    /// How many rows of a cell lie below a price, and how many up to and with it.
    pub fn ranks(&self, cell: usize, price: f64) -> (usize, usize) {
        let rows = &self.cells[cell].rows;
        let below = rows.partition_point(|row| row.distance < price);
        (below, rows.partition_point(|row| row.distance <= price))
    }

    /// sum over cells and rows of (price - d)^+: what the dual program loses at these prices.
    pub fn conjugate(&self, prices: &[f64]) -> f64 {
        let of_cell = |(curve, &price): (&Curve, &f64)| {
            let rank = curve.rows.partition_point(|row| row.distance < price);
            price.max(0.0) * curve.mass[rank] - curve.cost[rank]
        };
        self.cells.iter().zip(prices).map(of_cell).sum()
    }

    /// The least cost of moving this much mass of each cell.
    pub fn cost(&self, masses: &[f64]) -> f64 {
        let of_cell = |(curve, &mass): (&Curve, &f64)| {
            let rank = curve.mass.partition_point(|&upto| upto <= mass) - 1;
            let rest = mass - curve.mass[rank];
            curve.cost[rank] + curve.rows.get(rank).map_or(0.0, |row| rest * row.distance)
        };
        self.cells.iter().zip(masses).map(of_cell).sum()
    }

    /// The cheapest way to move this much mass of each cell. Rows at the same distance share.
    pub fn take(&self, masses: &[f64]) -> Plan {
        let mut plan = Plan::default();
        for (curve, &mass) in self.cells.iter().zip(masses) {
            let mass = mass.min(*curve.mass.last().unwrap_or(&0.0));
            // Less than this of a mass of millions of rows is rounding.
            if mass <= NOTHING * curve.mass.last().unwrap_or(&0.0).max(1.0) {
                continue;
            }
            let last = curve.mass.partition_point(|&upto| upto < mass * (1.0 - NOTHING)).clamp(1, curve.rows.len()) - 1;
            let at = curve.rows[last].distance;
            let (below, upto) = (
                curve.rows.partition_point(|row| row.distance < at),
                curve.rows.partition_point(|row| row.distance <= at),
            );
            let fraction = ((mass - curve.mass[below]) / (curve.mass[upto] - curve.mass[below])).clamp(0.0, 1.0);
            let fraction = if fraction > 1.0 - NOTHING { 1.0 } else { fraction };
            plan.rows.extend(curve.rows[..upto].iter().map(|row| row.row));
            plan.fraction.extend((0..upto).map(|rank| if rank < below { 1.0 } else { fraction }));
            plan.primal += curve.cost[below] + fraction * (curve.cost[upto] - curve.cost[below]);
        }
        plan.sort();
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_at_a_price_lie_between_its_ranks() {
        let rows = [3.0, 1.0, 2.0, 2.0].iter().zip(0..);
        let rows = rows.map(|(&distance, row)| Candidate { distance, weight: 0.5, row, cell: 0 }).collect();
        let curves = Curves { cells: vec![Curve::new(rows)] };
        let ranks = |price| curves.ranks(0, price);
        assert_eq!(
            [ranks(0.5), ranks(1.0), ranks(2.0), ranks(2.5), ranks(9.0)],
            [(0, 0), (0, 1), (1, 3), (3, 3), (4, 4)]
        );
        assert_eq!(curves.point(0, 3), (1.5, 2.5));
        assert_eq!(curves.cost(&[1.25]), 0.5 + 1.0 + 0.25 * 2.0);
    }
}
