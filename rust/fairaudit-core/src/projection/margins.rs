//! Rows with their distance to the decision boundary, and what passes over them find.

use std::collections::BTreeSet;

use super::NO_CELL;
use crate::error::{Error, Result};
use crate::numerics::sums::FixedSum;
use crate::parallel::{Control, map_blocks};

/// Rows that one task looks at.
const BLOCK: usize = 1 << 16;

/// The rows of an audit: the distance of each to the boundary, and its cell.
///
/// The cell says which unit (group and label) the row belongs to and which decision it got:
/// `2 * unit + decision`; rows from [`NO_CELL`] on take no part. Rows that weigh the same have no weights.
#[derive(Debug, Clone, Copy)]
pub struct Margins<'a> {
    pub(super) distance: &'a [f64],
    pub(super) cell: &'a [u16],
    pub(super) weight: Option<&'a [f64]>,
    /// The largest weight.
    pub(super) heaviest: f64,
}

/// Numbers and weights of the rows of one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Number of rows.
    pub rows: u64,
    /// Number of rows that can reach the boundary.
    pub finite: u64,
    /// Sum of weights.
    pub weight: f64,
    /// Sum of the weights of rows that can reach the boundary.
    pub finite_weight: f64,
    /// Sum of squared weights.
    pub square: f64,
}

/// A row that may have to move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Distance to the boundary, finite.
    pub distance: f64,
    /// Its weight.
    pub weight: f64,
    /// Its place in the data.
    pub row: u32,
    /// Its cell.
    pub cell: u16,
}

impl<'a> Margins<'a> {
    /// Columns of one length.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths differ, there are more than 2^32 - 1 rows, or a weight is
    /// negative or not finite; [`Error::Cancelled`].
    pub fn new(distance: &'a [f64], cell: &'a [u16], weight: Option<&'a [f64]>, control: &Control) -> Result<Self> {
        let n = distance.len();
        if cell.len() != n || weight.is_some_and(|weight| weight.len() != n) || u32::try_from(n).is_err() {
            return Err(Error::argument("distance", format!("of length {n}"), "columns of one length below 2^32"));
        }
        let heaviest = weight.map_or(Ok(1.0), |weight| heaviest(weight, control))?;
        Ok(Self { distance, cell, weight, heaviest })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.distance.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.distance.is_empty()
    }

    #[inline(always)]
    pub(super) fn weight_of(&self, row: usize) -> f64 {
        self.weight.map_or(1.0, |weight| weight[row])
    }

    /// Counts the rows of each cell, and refuses distances and weights that are none.
    ///
    /// # Errors
    /// [`Error::Argument`] that names the first row whose distance is negative or NaN; [`Error::Cancelled`].
    pub fn tally(&self, n_cells: usize, control: &Control) -> Result<Vec<Tally>> {
        let (single, squared) = (self.heaviest, self.heaviest * self.heaviest);
        let single = FixedSum::new(single, self.len());
        let empty = (single, single, FixedSum::new(squared, self.len()));
        let blocks = map_blocks(self.len(), BLOCK, control, |range| {
            let mut counts = vec![(0u64, 0u64); n_cells];
            let mut sums = vec![empty; if self.weight.is_some() { n_cells } else { 0 }];
            for row in range {
                let (distance, cell) = (self.distance[row], self.cell[row]);
                let Some((rows, finite)) = counts.get_mut(usize::from(cell)) else {
                    if cell >= NO_CELL {
                        continue;
                    }
                    return Err(Error::argument("cell", cell, "codes of the cells"));
                };
                if distance.is_nan() || distance < 0.0 {
                    return Err(Error::argument(
                        "distance",
                        format!("{distance} in row {row}"),
                        "numbers of at least 0; infinity for rows that cannot reach the boundary",
                    ));
                }
                *rows += 1;
                *finite += u64::from(distance < f64::INFINITY);
                if let Some(weight) = self.weight {
                    let sums = &mut sums[usize::from(cell)];
                    sums.0.add(weight[row]);
                    sums.1.add(if distance < f64::INFINITY { weight[row] } else { 0.0 });
                    sums.2.add(weight[row] * weight[row]);
                }
            }
            Ok((counts, sums))
        })?;
        let mut tallies = vec![Tally::default(); n_cells];
        let mut totals = vec![empty; n_cells];
        for (counts, sums) in &blocks {
            for (tally, (rows, finite)) in tallies.iter_mut().zip(counts) {
                tally.rows += rows;
                tally.finite += finite;
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                total.0.merge(&sum.0);
                total.1.merge(&sum.1);
                total.2.merge(&sum.2);
            }
        }
        for (tally, total) in tallies.iter_mut().zip(&totals) {
            let weighted = (total.0.value(), total.1.value(), total.2.value());
            let counted = (tally.rows as f64, tally.finite as f64, tally.rows as f64);
            (tally.weight, tally.finite_weight, tally.square) = if self.weight.is_some() { weighted } else { counted };
        }
        Ok(tallies)
    }

    /// The rows that `wanted(row, cell, distance)`, in their order; infinite distances never are.
    pub(super) fn collect(
        &self,
        control: &Control,
        wanted: impl Fn(usize, u16, f64) -> bool + Sync,
    ) -> Result<Vec<Candidate>> {
        let blocks = map_blocks(self.len(), BLOCK, control, |range| {
            let mut found = Vec::new();
            for row in range {
                let (distance, cell) = (self.distance[row], self.cell[row]);
                if wanted(row, cell, distance) && distance < f64::INFINITY {
                    found.push(Candidate { distance, weight: self.weight_of(row), row: row as u32, cell });
                }
            }
            Ok(found)
        })?;
        Ok(blocks.concat())
    }

    /// The rows of each cell whose distance is at most `cut[cell]`; a negative cut takes none.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn within(&self, cut: &[f64], control: &Control) -> Result<Vec<Candidate>> {
        self.collect(control, |_, cell, distance| cut.get(usize::from(cell)).is_some_and(|&cut| distance <= cut))
    }

    /// How many distinct signed margins occur among the rows within the cut of their cell, and how many
    /// rows these are; looks no further once there are `enough` margins.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn distinct_within(&self, cut: &[f64], enough: usize, control: &Control) -> Result<(usize, usize)> {
        let (mut seen, mut rows) = (BTreeSet::new(), 0);
        for start in (0..self.len()).step_by(BLOCK) {
            control.check()?;
            for row in start..(start + BLOCK).min(self.len()) {
                let (distance, cell) = (self.distance[row], self.cell[row]);
                if cut.get(usize::from(cell)).is_some_and(|&cut| distance <= cut) {
                    rows += 1;
                    seen.insert((cell & 1, distance.to_bits()));
                    if seen.len() >= enough {
                        return Ok((seen.len(), rows));
                    }
                }
            }
        }
        Ok((seen.len(), rows))
    }

    /// A few rows, evenly spread, that stand for all: about one of every `step`.
    pub(super) fn sample_step(&self) -> usize {
        (self.len() / SAMPLE).max(1)
    }
}

/// Rows of a sample.
const SAMPLE: usize = 1 << 12;

/// The largest weight.
fn heaviest(weight: &[f64], control: &Control) -> Result<f64> {
    let blocks = map_blocks(weight.len(), BLOCK, control, |range| {
        let mut most = 0.0f64;
        for row in range {
            if !(weight[row] >= 0.0 && weight[row] < f64::INFINITY) {
                let value = format!("{} in row {row}", weight[row]);
                return Err(Error::argument("sample_weight", value, "finite numbers of at least 0"));
            }
            most = most.max(weight[row]);
        }
        Ok(most)
    })?;
    Ok(blocks.into_iter().fold(0.0, f64::max))
}
