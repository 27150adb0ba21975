//! Rows with their distance to the decision boundary, and what passes over them find.

use std::collections::BTreeSet;

use super::NO_CELL;
use crate::error::{Error, Result};
use crate::numerics::sums::FixedSum;
use crate::parallel::{Control, map_blocks};

/// Rows that one task looks at.
pub(super) const BLOCK: usize = 1 << 16;

/// The columns of the rows, of one length.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// How far each row is from the boundary, infinite where it cannot reach it.
    pub distance: &'a [f64],
    /// The unit (group and label) of each row and its decision, `2 * unit + decision`; rows from [`NO_CELL`] on take no
    /// part.
    pub cell: &'a [u16],
    /// The weight of each row; rows that weigh the same have none.
    pub weight: Option<&'a [f64]>,
}

/// The rows of an audit with what was found when they were checked.
#[derive(Debug, Clone, Copy)]
pub struct Margins<'a> {
    columns: Columns<'a>,
    facts: &'a Facts,
}

/// What one look at all rows found.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Numbers and weights of each cell.
    pub tallies: Vec<Tally>,
    /// The largest weight.
    heaviest: f64,
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

impl Facts {
    /// Checks the columns and tallies the rows of each cell.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths differ, there are more than 2^32 - 1 rows, a weight is negative or not finite,
    /// a cell is neither below `n_cells` nor none, or a row that takes part has a distance that is negative or NaN: the
    /// first one is named; [`Error::Cancelled`].
    pub fn of(columns: Columns<'_>, n_cells: usize, control: &Control) -> Result<Self> {
        let Columns { distance, cell, weight } = columns;
        let n = distance.len();
        if cell.len() != n || weight.is_some_and(|weight| weight.len() != n) || u32::try_from(n).is_err() {
            return Err(Error::argument("distance", format!("of length {n}"), "columns of one length below 2^32"));
        }
        if n_cells > usize::from(NO_CELL) {
            return Err(Error::argument("n_cells", n_cells, &format!("at most {NO_CELL}")));
        }
        let heaviest = weight.map_or(Ok(1.0), |weight| heaviest(weight, control))?;
        let empty = Sums::new(heaviest, n);
        let blocks = map_blocks(n, BLOCK, control, |range| {
            let mut counts = vec![(0u64, 0u64); n_cells];
            let mut sums = vec![empty; if weight.is_some() { n_cells } else { 0 }];
            for row in range {
                let (distance, cell) = (distance[row], cell[row]);
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
                let is_finite = distance < f64::INFINITY;
                *rows += 1;
                *finite += u64::from(is_finite);
                if let Some(weight) = weight {
                    sums[usize::from(cell)].add(weight[row], is_finite);
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
            totals.iter_mut().zip(sums).for_each(|(total, sums)| total.merge(sums));
        }
        for (tally, total) in tallies.iter_mut().zip(&totals) {
            let counted = (tally.rows as f64, tally.finite as f64, tally.rows as f64);
            (tally.weight, tally.finite_weight, tally.square) = if weight.is_some() { total.values() } else { counted };
        }
        Ok(Self { tallies, heaviest })
    }
}

/// Weights, weights of rows that can reach the boundary, and squared weights of a cell.
#[derive(Debug, Clone, Copy)]
struct Sums {
    all: FixedSum,
    finite: FixedSum,
    squares: FixedSum,
}

impl Sums {
    fn new(heaviest: f64, terms: usize) -> Self {
        let sum = FixedSum::new(heaviest, terms);
        Self { all: sum, finite: sum, squares: FixedSum::new(heaviest * heaviest, terms) }
    }

    fn add(&mut self, weight: f64, is_finite: bool) {
        self.all.add(weight);
        self.finite.add(if is_finite { weight } else { 0.0 });
        self.squares.add(weight * weight);
    }

    fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        self.finite.merge(&other.finite);
        self.squares.merge(&other.squares);
    }

    fn values(&self) -> (f64, f64, f64) {
        (self.all.value(), self.finite.value(), self.squares.value())
    }
}

impl<'a> Margins<'a> {
    /// Columns, and what [`Facts::of`] found in them.
    pub fn new(columns: Columns<'a>, facts: &'a Facts) -> Self {
        Self { columns, facts }
    }

    /// Numbers and weights of each cell.
    pub fn tallies(&self) -> &'a [Tally] {
        &self.facts.tallies
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.distance.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.distance.is_empty()
    }

    /// Distance and cell of every row.
    pub(super) fn distances_and_cells(&self) -> (&'a [f64], &'a [u16]) {
        (self.columns.distance, self.columns.cell)
    }

    /// Whether rows have weights.
    pub(super) fn is_weighted(&self) -> bool {
        self.columns.weight.is_some()
    }

    /// The largest weight.
    pub(super) fn heaviest(&self) -> f64 {
        self.facts.heaviest
    }

    #[inline(always)]
    pub(super) fn weight_of(&self, row: usize) -> f64 {
        self.columns.weight.map_or(1.0, |weight| weight[row])
    }

    /// The rows that `wanted(row, cell, distance)`, in their order; infinite distances never are.
    pub(super) fn collect(
        &self,
        control: &Control,
        wanted: impl Fn(usize, u16, f64) -> bool + Sync,
    ) -> Result<Vec<Candidate>> {
        let (distances, cells) = self.distances_and_cells();
        let blocks = map_blocks(self.len(), BLOCK, control, |range| {
            let mut found = Vec::new();
            for row in range {
                let (distance, cell) = (distances[row], cells[row]);
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
        let (distances, cells) = self.distances_and_cells();
        let (mut seen, mut rows) = (BTreeSet::new(), 0);
        for start in (0..self.len()).step_by(BLOCK) {
            control.check()?;
            for row in start..(start + BLOCK).min(self.len()) {
                let (distance, cell) = (distances[row], cells[row]);
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
