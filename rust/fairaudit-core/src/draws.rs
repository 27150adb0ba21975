//! Which replicates are drawn.

use std::ops::Range;

/// Which replicates, of which seed and series: the unit of work for threads, early stopping and Spark.
///
/// A replicate depends on its index, the seed and the series alone, so that what comes of ranges is joined or
/// added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draws {
    /// Indices of the replicates.
    pub replicates: Range<u64>,
    /// The seed of a whole audit.
    pub seed: u64,
    /// Tells the comparisons apart that share a seed.
    pub series: u64,
}

impl Draws {
    /// Number of replicates.
    pub fn n(&self) -> u64 {
        self.replicates.end.saturating_sub(self.replicates.start)
    }

    /// A number for each of them, not drawn yet.
    pub(crate) fn zeros(&self) -> Vec<f64> {
        vec![0.0; self.n() as usize]
    }
}
