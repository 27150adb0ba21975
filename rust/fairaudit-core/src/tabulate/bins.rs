//! Bins of scores.

use crate::error::{Error, Result};
use crate::parallel::{Control, map_blocks};

/// What [`bin_scores`] gives for a score outside of the edges, or NaN.
pub const NO_BIN: u32 = u32::MAX;

/// Scores that one task puts into bins.
const BLOCK: usize = 1 << 16;

/// The bin of every score: bin b is [`edges[b]`, `edges[b + 1]`), the last one is closed.
///
/// # Errors
/// [`Error::Argument`] with fewer than two edges; [`Error::Cancelled`].
pub fn bin_scores(scores: &[f64], edges: &[f64], control: &Control) -> Result<Vec<u32>> {
    if edges.len() < 2 {
        return Err(Error::argument("edges", format!("of length {}", edges.len()), "at least two edges"));
    }
    let last = edges.len() - 2;
    let bin = |&score: &f64| {
        if score >= edges[0] && score <= edges[last + 1] {
            (edges.partition_point(|&edge| edge <= score) - 1).min(last) as u32
        } else {
            NO_BIN
        }
    };
    let blocks =
        map_blocks(scores.len(), BLOCK, control, |range| Ok(scores[range].iter().map(bin).collect::<Vec<_>>()))?;
    Ok(blocks.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_fall_into_half_open_bins() {
        let edges = [0.0, 0.5, 0.75, 1.0];
        let bin_scores = |scores: &[f64], edges: &[f64]| super::bin_scores(scores, edges, &Control::default());
        assert_eq!(bin_scores(&[0.0, 0.499, 0.5, 0.75, 1.0], &edges).unwrap(), [0, 0, 1, 2, 2]);
        assert_eq!(bin_scores(&[0.2, 1.5, f64::NAN, -0.1], &edges).unwrap(), [0, NO_BIN, NO_BIN, NO_BIN]);
        assert!(bin_scores(&[0.5], &[]).is_err());
    }
}
