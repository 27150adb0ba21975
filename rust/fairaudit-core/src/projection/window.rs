//! The density of the signed margin near the boundary, by unit.
//!
//! The margin `(2C - 1) d` is positive for rows decided positively; its density at 0 says how much
//! a change of the decisions costs. Kernel sums at three bandwidths come from one exponential.

use std::ops::Range;

use super::margins::{BLOCK, Margins};
use crate::error::Result;
use crate::numerics::exponential::exp_as_libm;
use crate::numerics::sums::FixedSum;
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, Task};

/// Rows whose exponentials are found side by side.
const TILE: usize = 256;
/// Sums that are added to side by side.
const SIDE_BY_SIDE: usize = 8;
/// Bandwidths, as multiples of the one asked for.
pub const BANDWIDTHS: [f64; 3] = [0.5, 1.0, 2.0];
/// Beyond this many bandwidths (of the widest) a kernel is below 1e-16.
const REACH: f64 = 8.7;

/// The kernel at 0: 1 / sqrt(2 pi).
const PEAK: f64 = 0.398_942_280_401_432_7;

/// How the margins spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Rows that take part and can reach the boundary.
    pub rows: u64,
    /// Mean of their margins.
    pub mean: f64,
    /// Standard deviation, with `rows - 1`.
    pub standard_deviation: f64,
}

/// What the window around the boundary holds of one unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Window {
    /// sum of weight * K(margin / b) / b for the bandwidths b of [`BANDWIDTHS`].
    pub density: [f64; 3],
    /// sum of (weight * K(margin / h))^2.
    pub square: f64,
    /// sum of weight * K(margin / h), without the division by h.
    pub mass: f64,
}

/// The spread of the margins of all rows that take part; weights play no part.
///
/// # Errors
/// [`crate::Error::Cancelled`]; see also [`InstructionSet::current`].
pub fn spread(rows: &Margins<'_>, control: &Control) -> Result<Spread> {
    let n: u64 = rows.tallies().iter().map(|tally| tally.finite).sum();
    let (distances, cells) = rows.distances_and_cells();
    let n_cells = rows.tallies().len();
    let instructions = InstructionSet::current()?;
    let some = |range: Range<usize>| Several { distances: &distances[range.clone()], cells: &cells[range], n_cells };
    let farthest = map_blocks(rows.len(), BLOCK, control, |range| Ok(instructions.run(Farthest(some(range)))))?;
    let farthest = farthest.into_iter().fold(0.0, f64::max);
    // Squares of the scaled margins stay far from overflow.
    let scale = if farthest > 0.0 { farthest } else { 1.0 };
    let empty = FixedSum::new(1.0, rows.len());
    let moments = |range| Ok(instructions.run(Moments { rows: some(range), scale, empty }));
    let blocks = map_blocks(rows.len(), BLOCK, control, moments)?;
    let mut sums = [empty; 2];
    for block in &blocks {
        sums.iter_mut().zip(block).for_each(|(sum, part)| sum.merge(part));
    }
    let [mean, square] = sums.map(|sum| sum.value() / n as f64);
    let variance = (square - mean * mean).max(0.0) * n as f64 / (n as f64 - 1.0);
    Ok(Spread { rows: n, mean: mean * scale, standard_deviation: variance.sqrt() * scale })
}

/// Some of the rows.
#[derive(Clone, Copy)]
struct Several<'a> {
    distances: &'a [f64],
    cells: &'a [u16],
    n_cells: usize,
}

impl Several<'_> {
    /// The signed margin of a row; 0 of one that takes no part or cannot reach the boundary.
    #[inline(always)]
    fn margin(&self, row: usize) -> f64 {
        let (distance, cell) = (self.distances[row], self.cells[row]);
        let takes_part = usize::from(cell) < self.n_cells && distance < f64::INFINITY;
        if takes_part { signed(distance, cell) } else { 0.0 }
    }

    /// Calls `add` with each margin and with a lane, so that neighbours go side by side.
    #[inline(always)]
    fn each(&self, mut add: impl FnMut(usize, f64)) {
        let whole = self.distances.len() / SIDE_BY_SIDE * SIDE_BY_SIDE;
        for start in (0..whole).step_by(SIDE_BY_SIDE) {
            for lane in 0..SIDE_BY_SIDE {
                add(lane, self.margin(start + lane));
            }
        }
        (whole..self.distances.len()).for_each(|row| add(0, self.margin(row)));
    }
}

/// The largest finite distance.
struct Farthest<'a>(Several<'a>);

impl Task for Farthest<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut farthest = [0.0f64; SIDE_BY_SIDE];
        self.0.each(|lane, margin| {
            let distance = margin.abs();
            farthest[lane] = if distance > farthest[lane] { distance } else { farthest[lane] };
        });
        farthest.into_iter().fold(0.0, f64::max)
    }
}

/// Sums of the scaled margins, and of their squares.
struct Moments<'a> {
    rows: Several<'a>,
    scale: f64,
    empty: FixedSum,
}

impl Task for Moments<'_> {
    type Output = [FixedSum; 2];

    #[inline(always)]
    fn run(self) -> Self::Output {
        // No rounding depends on which lane adds a row, and zeros change no bit.
        let mut lanes = [[self.empty; 2]; SIDE_BY_SIDE];
        self.rows.each(|lane, margin| {
            let margin = margin / self.scale;
            lanes[lane][0].add(margin);
            lanes[lane][1].add(margin * margin);
        });
        lanes.into_iter().fold([self.empty; 2], |mut all, sums| {
            all.iter_mut().zip(&sums).for_each(|(sum, part)| sum.merge(part));
            all
        })
    }
}

#[inline(always)]
fn signed(distance: f64, cell: u16) -> f64 {
    if cell & 1 == 1 { distance } else { -distance }
}

/// The Gaussian kernel sums of every unit that is `used`; 0 of others. A unit is two cells:
/// `2 * unit + decision`.
///
/// # Errors
/// [`crate::Error::Cancelled`]; see also [`InstructionSet::current`].
pub fn windows(rows: &Margins<'_>, used: &[bool], bandwidth: f64, control: &Control) -> Result<Vec<Window>> {
    let bounds = [rows.heaviest(), rows.heaviest(), rows.heaviest(), rows.heaviest() * rows.heaviest()];
    let empty = bounds.map(|bound| FixedSum::new(bound, rows.len()));
    let instructions = InstructionSet::current()?;
    let blocks = map_blocks(rows.len(), BLOCK, control, |range| {
        let mut sums = vec![empty; used.len()];
        instructions.run(Kernels { rows, range, used, bandwidth, sums: &mut sums });
        Ok(sums)
    })?;
    let mut totals = vec![empty; used.len()];
    for block in &blocks {
        for (total, part) in totals.iter_mut().zip(block) {
            total.iter_mut().zip(part).for_each(|(sum, part)| sum.merge(part));
        }
    }
    let window = |sums: &[FixedSum; 4]| {
        let sums = sums.map(|sum| sum.value());
        let density = [0, 1, 2].map(|i| PEAK * sums[i] / (BANDWIDTHS[i] * bandwidth));
        Window { density, mass: PEAK * sums[1], square: PEAK * PEAK * sums[3] }
    };
    Ok(totals.iter().map(window).collect())
}

/// The kernel sums of some rows by unit: at half, once and twice the bandwidth, and of its square.
struct Kernels<'a> {
    rows: &'a Margins<'a>,
    range: Range<usize>,
    used: &'a [bool],
    bandwidth: f64,
    sums: &'a mut [[FixedSum; 4]],
}

impl Task for Kernels<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (distances, cells) = self.rows.distances_and_cells();
        let mut near = [(0, 0.0); TILE];
        let mut wide = [0.0; TILE];
        for start in self.range.clone().step_by(TILE) {
            let end = (start + TILE).min(self.range.end);
            // The rows that count come first, then their exponentials side by side.
            let mut n = 0;
            for row in start..end {
                let x = distances[row] / self.bandwidth;
                let is_used = self.used.get(usize::from(cells[row]) / 2).copied().unwrap_or(false);
                near[n] = (row, x);
                n += usize::from(is_used && x <= BANDWIDTHS[2] * REACH);
            }
            for (wide, &(_, x)) in wide.iter_mut().zip(&near[..n]) {
                *wide = exp_as_libm(-0.125 * x * x);
            }
            for (&(row, _), &wide) in near[..n].iter().zip(&wide) {
                // exp(-(x/2)^2/2), and its powers for x and 2x.
                let middle = (wide * wide) * (wide * wide);
                let square = middle * middle;
                let weight = self.rows.weight_of(row);
                let terms = [square * square, middle, wide, square * weight];
                for (sum, term) in self.sums[usize::from(cells[row]) / 2].iter_mut().zip(terms) {
                    sum.add(weight * term);
                }
            }
        }
    }
}

/// Weight of every unit's margins in `bins` equal bins from `-limit` to `limit`, unit by unit.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn histogram(rows: &Margins<'_>, n_units: usize, limit: f64, bins: usize, control: &Control) -> Result<Vec<f64>> {
    let empty = FixedSum::new(rows.heaviest(), rows.len());
    let (distances, cells) = rows.distances_and_cells();
    let blocks = map_blocks(rows.len(), BLOCK, control, |range| {
        let mut sums = vec![empty; n_units * bins];
        for row in range {
            let (distance, cell) = (distances[row], cells[row]);
            let unit = usize::from(cell) / 2;
            if unit < n_units && distance < limit {
                let place = (signed(distance, cell) + limit) / (2.0 * limit) * bins as f64;
                sums[unit * bins + (place as usize).min(bins - 1)].add(rows.weight_of(row));
            }
        }
        Ok(sums)
    })?;
    let mut totals = vec![empty; n_units * bins];
    for block in &blocks {
        totals.iter_mut().zip(block).for_each(|(total, part)| total.merge(part));
    }
    Ok(totals.iter().map(FixedSum::value).collect())
}
