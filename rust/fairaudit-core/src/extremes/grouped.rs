//! Excesses that are known by their cell only: scores on a grid.
//!
//! The likelihood of a cell is S(low) - S(high) with S the survival of the generalised Pareto law, cells being the grid
//! points with half a step on either side.

use super::gpd::{Fit, HIGHEST_SHAPE, LOWEST_SHAPE, Sample, growth, survival};
use crate::error::{Error, Result};
use crate::numerics::peaks::peak;

const PLACE: f64 = 1e-8;
/// log of the scale over the mean excess, where the likelihood is asked first.
const SCALE_LOW: f64 = -6.0;
const SCALE_STEP: f64 = 0.6;
const N_SCALES: usize = 21;
const N_SHAPES: usize = 33;

/// Cells above a threshold on half a grid point, with the number of excesses in each.
#[derive(Debug, Clone)]
pub struct Grouped {
    edges: Vec<(f64, f64)>,
    counts: Vec<f64>,
    mean: f64,
    n: usize,
}

impl Grouped {
    /// Cells as (low, high) excesses, 0 <= low < high, high perhaps infinite, with their counts.
    ///
    /// # Errors
    /// [`Error::Argument`] for no cell, edges that are none, or a count of 0.
    pub fn new(edges: &[(f64, f64)], counts: &[u64]) -> Result<Self> {
        if edges.is_empty() || edges.len() != counts.len() {
            let given = format!("{} with {} counts", edges.len(), counts.len());
            return Err(Error::argument("cells", given, "as many cells as counts, at least one"));
        }
        if let Some((low, high)) = edges.iter().find(|(low, high)| !(*low >= 0.0 && low < high && low.is_finite())) {
            return Err(Error::argument("cells", format!("({low}, {high})"), "0 <= low < high"));
        }
        if counts.contains(&0) {
            return Err(Error::argument("counts", 0, "whole numbers of at least 1"));
        }
        let n = counts.iter().sum::<u64>() as usize;
        let middle = |(low, high): (f64, f64)| if high.is_finite() { f64::midpoint(low, high) } else { low };
        let sum: f64 = edges.iter().zip(counts).map(|(&cell, &count)| count as f64 * middle(cell)).sum();
        let counts = counts.iter().map(|&count| count as f64).collect();
        Ok(Self { edges: edges.to_vec(), counts, mean: sum / n as f64, n })
    }

    /// The log likelihood of a law; -infinite where a cell lies beyond its end.
    pub fn log_likelihood(&self, shape: f64, scale: f64) -> f64 {
        let cells = self.edges.iter().zip(&self.counts);
        cells
            .map(|(&(low, high), count)| {
                let below = if high.is_finite() { survival(high, shape, scale) } else { 0.0 };
                count * libm::log(survival(low, shape, scale) - below)
            })
            .sum()
    }
}

impl Sample for Grouped {
    fn n(&self) -> usize {
        self.n
    }

    fn fit(&self) -> Fit {
        let at = |shape: f64| self.at_shape(shape);
        let places: Vec<f64> = (0..N_SHAPES).map(|step| LOWEST_SHAPE + 0.125 * step as f64).collect();
        let (shape, log_likelihood) = peak(&places, PLACE, |shape| at(shape).1);
        let (scale, _) = at(shape);
        Fit { shape, scale, log_likelihood, at_edge: shape <= LOWEST_SHAPE + 1e-6 }
    }

    fn at_level(&self, level: f64, m: f64) -> (f64, f64) {
        let places: Vec<f64> = (0..N_SHAPES)
            .map(|step| {
                let even = step as f64 / (N_SHAPES - 1) as f64;
                LOWEST_SHAPE + (HIGHEST_SHAPE - LOWEST_SHAPE) * even * (0.4 + 0.6 * even)
            })
            .collect();
        peak(&places, PLACE, |shape| self.log_likelihood(shape, level / growth(shape, m)))
    }

    fn at_shape(&self, shape: f64) -> (f64, f64) {
        // Below 0 the law must reach into the last cell.
        let last = self.edges.iter().map(|&(low, _)| low).fold(0.0, f64::max);
        let least = (-shape).max(0.0) * last;
        let scale = |step: f64| least + self.mean * libm::exp(step);
        let places: [f64; N_SCALES] = std::array::from_fn(|index| SCALE_LOW + SCALE_STEP * index as f64);
        let (step, most) = peak(&places, PLACE, |step| self.log_likelihood(shape, scale(step)));
        (scale(step), most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpd::{Excesses, return_excess};
    use super::*;

    fn cells(shape: f64, step: f64) -> (Grouped, Vec<f64>) {
        let values: Vec<f64> = (1..=400).map(|i| return_excess(shape, 1.0, 401.0 / f64::from(i))).collect();
        let mut counts = std::collections::BTreeMap::new();
        for value in &values {
            *counts.entry((value / step) as u64).or_insert(0) += 1;
        }
        let edges: Vec<(f64, f64)> = counts.keys().map(|&c| (c as f64 * step, (c + 1) as f64 * step)).collect();
        (Grouped::new(&edges, &counts.values().copied().collect::<Vec<_>>()).unwrap(), values)
    }

    #[test]
    fn fine_cells_give_the_fit_of_the_values() {
        for shape in [-0.4, 0.0, 0.3] {
            let (grouped, values) = cells(shape, 1e-4);
            let (ours, plain) = (grouped.fit(), Excesses::new(&values).unwrap().fit());
            assert!((ours.shape - plain.shape).abs() < 2e-3, "{ours:?} {plain:?}");
            assert!((ours.scale - plain.scale).abs() < 2e-3, "{ours:?} {plain:?}");
        }
    }

    #[test]
    fn fits_at_a_level_end_in_the_fit() {
        let (grouped, _) = cells(0.1, 0.5);
        let fit = grouped.fit();
        let (shape, value) = grouped.at_level(return_excess(fit.shape, fit.scale, 60.0), 60.0);
        assert!((shape - fit.shape).abs() < 1e-4 && (value - fit.log_likelihood).abs() < 1e-7);
        assert!(grouped.at_level(0.3, 60.0).1 < value);
    }

    #[test]
    fn what_is_no_cell_is_refused() {
        assert!(Grouped::new(&[], &[]).is_err() && Grouped::new(&[(0.0, 1.0)], &[0]).is_err());
        assert!(Grouped::new(&[(1.0, 1.0)], &[1]).is_err() && Grouped::new(&[(-1.0, 1.0)], &[1]).is_err());
    }
}
