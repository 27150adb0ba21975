//! The density of the signed margin near the boundary, by unit.
//!
//! The margin `(2C - 1) d` is positive for rows decided positively; its density at 0 says how much
//! a change of the decisions costs. Kernel sums at three bandwidths come from one exponential.

use super::margins::Margins;
use crate::error::Result;
use crate::numerics::sums::FixedSum;
use crate::parallel::{Control, map_blocks};

/// Rows that one task looks at.
const BLOCK: usize = 1 << 16;
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
/// [`crate::Error::Cancelled`].
pub fn spread(rows: &Margins<'_>, n_cells: usize, control: &Control) -> Result<Spread> {
    let takes_part = |row: usize| usize::from(rows.cell[row]) < n_cells && rows.distance[row] < f64::INFINITY;
    let blocks = map_blocks(rows.len(), BLOCK, control, |range| {
        Ok(range
            .filter(|&row| takes_part(row))
            .fold((0u64, 0.0f64), |(n, most), row| (n + 1, most.max(rows.distance[row]))))
    })?;
    let (n, most) = blocks.into_iter().fold((0, 0.0f64), |all, block| (all.0 + block.0, all.1.max(block.1)));
    // Squares of the scaled margins stay far from overflow.
    let scale = if most > 0.0 { most } else { 1.0 };
    let empty = FixedSum::new(1.0, rows.len());
    let blocks = map_blocks(rows.len(), BLOCK, control, |range| {
        let mut sums = [empty; 2];
        for row in range.filter(|&row| takes_part(row)) {
            let margin = signed(rows, row) / scale;
            sums[0].add(margin);
            sums[1].add(margin * margin);
        }
        Ok(sums)
    })?;
    let mut sums = [empty; 2];
    for block in &blocks {
        sums.iter_mut().zip(block).for_each(|(sum, part)| sum.merge(part));
    }
    let [mean, square] = sums.map(|sum| sum.value() / n as f64);
    let variance = (square - mean * mean).max(0.0) * n as f64 / (n as f64 - 1.0);
    Ok(Spread { rows: n, mean: mean * scale, standard_deviation: variance.sqrt() * scale })
}

#[inline(always)]
fn signed(rows: &Margins<'_>, row: usize) -> f64 {
    let distance = rows.distance[row];
    if rows.cell[row] & 1 == 1 { distance } else { -distance }
}

/// The Gaussian kernel sums of every unit that is `used`; 0 of others. A unit is two cells:
/// `2 * unit + decision`.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn windows(rows: &Margins<'_>, used: &[bool], bandwidth: f64, control: &Control) -> Result<Vec<Window>> {
    let bounds = [rows.heaviest, rows.heaviest, rows.heaviest, rows.heaviest * rows.heaviest];
    let empty = bounds.map(|bound| FixedSum::new(bound, rows.len()));
    let blocks = map_blocks(rows.len(), BLOCK, control, |range| {
        let mut sums = vec![empty; used.len()];
        for row in range {
            let unit = usize::from(rows.cell[row]) / 2;
            let x = rows.distance[row] / bandwidth;
            if x > BANDWIDTHS[2] * REACH || !used.get(unit).copied().unwrap_or(false) {
                continue;
            }
            let sums = &mut sums[unit];
            let weight = rows.weight_of(row);
            // exp(-(x/2)^2/2), and its powers for x and 2x.
            let wide = libm::exp(-0.125 * x * x);
            let middle = (wide * wide) * (wide * wide);
            let square = middle * middle;
            for (sum, term) in sums.iter_mut().zip([square * square, middle, wide, square * weight]) {
                sum.add(weight * term);
            }
        }
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

/// Weight of every unit's margins in `bins` equal bins from `-limit` to `limit`, unit by unit.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn histogram(rows: &Margins<'_>, n_units: usize, limit: f64, bins: usize, control: &Control) -> Result<Vec<f64>> {
    let empty = FixedSum::new(rows.heaviest, rows.len());
    let blocks = map_blocks(rows.len(), BLOCK, control, |range| {
        let mut sums = vec![empty; n_units * bins];
        for row in range {
            let unit = usize::from(rows.cell[row]) / 2;
            if unit < n_units && rows.distance[row] < limit {
                let place = (signed(rows, row) + limit) / (2.0 * limit) * bins as f64;
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
