//! The principal axes of a covariance in the metric of a curvature, and the weights of their chi-squares.

use crate::error::{Error, Result};
use crate::numerics::matrix::{ASYMMETRY, check_symmetric, cholesky, eigen, eigenvalues, forward, transpose};

/// A matrix with a pivot below this part of its diagonal entry is not positive definite.
const SINGULAR: f64 = 1e-13;
/// An eigenvalue of a covariance below this part of the largest one counts as zero.
const ZERO: f64 = 1e-12;
/// Larger matrices are made tridiagonal first: sweeps of rotations take ten times as long.
const MANY: usize = 24;

/// The weights of the chi-squares in 1/2 V' S^-1 V for V ~ N(0, Sigma), the largest first: the
/// eigenvalues of 1/2 S^(-1/2) Sigma S^(-1/2).
///
/// Both matrices are m x m, row by row. A singular Sigma gives zeros.
///
/// # Errors
/// [`Error::Argument`] when the sizes differ, an entry is not finite, S is not positive definite or
/// Sigma has a negative eigenvalue.
///
/// ```
/// use fairaudit_core::projection::law::quadratic_weights;
/// let weights = quadratic_weights(&[4.0, 0.0, 0.0, 4.0], &[1.0, 0.0, 0.0, 4.0])?;
/// assert_eq!(weights, [2.0, 0.5]);
/// # Ok::<(), fairaudit_core::Error>(())
/// ```
pub fn quadratic_weights(covariance: &[f64], curvature: &[f64]) -> Result<Vec<f64>> {
    weights_of(covariance, curvature, covariance.len().isqrt())
}

/// As [`quadratic_weights`], of matrices that must have this size.
pub(super) fn weights_of(covariance: &[f64], curvature: &[f64], size: usize) -> Result<Vec<f64>> {
    let (whitened, _) = whitened(covariance, curvature, size)?;
    let mut weights = if size > MANY { eigenvalues(whitened, size) } else { eigen(whitened, size).0 };
    forgive_rounding(&mut weights)?;
    weights.sort_by(|a, b| b.total_cmp(a));
    Ok(weights.into_iter().map(|weight| 0.5 * weight).collect())
}

/// S^(-1/2) Sigma S^(-1/2), and the Cholesky factor of S.
fn whitened(covariance: &[f64], curvature: &[f64], size: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    check_symmetric(covariance, "covariance", size)?;
    check_symmetric(curvature, "curvature", size)?;
    let mut factor = curvature.to_vec();
    if !cholesky(&mut factor, size, SINGULAR) {
        return Err(Error::argument("curvature", "not positive definite", "a positive definite matrix"));
    }
    // Sigma -> C^-1 Sigma -> C^-1 (C^-1 Sigma)' with S = C C'.
    let mut whitened = covariance.to_vec();
    for _ in 0..2 {
        transpose(&mut whitened, size);
        for row in whitened.chunks_exact_mut(size.max(1)) {
            forward(&factor, size, row);
        }
    }
    Ok((whitened, factor))
}

/// Eigenvalues that are zero but for rounding become 0.
fn forgive_rounding(variances: &mut [f64]) -> Result<()> {
    let largest = variances.iter().copied().fold(0.0, f64::max);
    if let Some(negative) = variances.iter().find(|&&variance| variance < -ASYMMETRY * largest) {
        let value = format!("a matrix with the eigenvalue {negative:.3e} in the metric of the curvature");
        return Err(Error::argument("covariance", value, "eigenvalues that are not negative"));
    }
    variances.iter_mut().filter(|variance| **variance <= ZERO * largest).for_each(|variance| *variance = 0.0);
    Ok(())
}

/// The principal axes of N(0, Sigma) in the metric of S^-1.
#[derive(Debug, Clone)]
pub(super) struct Axes {
    /// The eigenvalues of S^(-1/2) Sigma S^(-1/2), the largest first; exactly 0 in directions that
    /// have no variance.
    pub(super) variances: Vec<f64>,
    /// One row per axis: a standard normal number times each row, summed, is a draw of V.
    pub(super) rows: Vec<Vec<f64>>,
}

impl Axes {
    pub(super) fn new(covariance: &[f64], curvature: &[f64], size: usize) -> Result<Self> {
        let (whitened, factor) = whitened(covariance, curvature, size)?;
        let (mut variances, vectors) = eigen(whitened, size);
        forgive_rounding(&mut variances)?;
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|&i, &j| variances[j].total_cmp(&variances[i]));
        let axis = |&j: &usize| -> Vec<f64> {
            // C times the eigenvector times its standard deviation.
            let entry = |i: usize| (0..=i).map(|k| factor[i * size + k] * vectors[k * size + j]).sum::<f64>();
            (0..size).map(|i| entry(i) * f64::sqrt(variances[j])).collect()
        };
        Ok(Self { rows: order.iter().map(axis).collect(), variances: order.iter().map(|&j| variances[j]).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::matrix::tests::gram;

    #[test]
    fn weights_have_the_trace_and_the_rank() {
        for (size, rank) in [(1, 1), (3, 3), (5, 2), (20, 7), (60, 60)] {
            let covariance = gram(size, rank, 0.0, 0.3);
            let curvature = gram(size, size, 0.5, 1.1);
            let axes = Axes::new(&covariance, &curvature, size).unwrap();
            assert_eq!(axes.variances.iter().filter(|&&variance| variance > 0.0).count(), rank);
            assert!(axes.variances.is_sorted_by(|a, b| a >= b));
            // The axes rebuild Sigma, and are orthogonal in the metric.
            for i in 0..size {
                for j in 0..size {
                    let sum: f64 = axes.rows.iter().map(|row| row[i] * row[j]).sum();
                    assert!((sum - covariance[i * size + j]).abs() < 1e-10, "{size} {i} {j}");
                }
            }
            let mut factor = curvature.clone();
            assert!(cholesky(&mut factor, size, SINGULAR));
            for (row, variance) in axes.rows.iter().zip(&axes.variances) {
                let mut solved = row.clone();
                forward(&factor, size, &mut solved);
                let length: f64 = solved.iter().map(|x| x * x).sum();
                assert!((length - variance).abs() < 1e-9 * axes.variances[0], "{length} {variance}");
            }
        }
    }

    #[test]
    fn wrong_matrices_are_refused() {
        let message =
            |covariance: &[f64], curvature: &[f64]| quadratic_weights(covariance, curvature).unwrap_err().to_string();
        let one = [1.0, 0.0, 0.0, 1.0];
        assert!(message(&one, &[1.0]).contains("curvature is 1 numbers; accepted: 2 x 2 numbers"));
        assert!(message(&one, &[1.0, 2.0, 2.0, 1.0]).contains("not positive definite"));
        assert!(message(&one, &[1.0, 1.0, 1.0, 1.0]).contains("not positive definite"));
        assert!(message(&one, &[0.0; 4]).contains("not positive definite"));
        assert!(message(&[1.0, 2.0, 2.0, 1.0], &one).contains("eigenvalue -1.000e0"));
        assert!(message(&[1.0, 0.5, 0.0, 1.0], &one).contains("covariance is 0 at (1, 0) and 0.5 at (0, 1)"));
        assert!(message(&[1.0, f64::NAN, 0.0, 1.0], &one).contains("covariance is"));
        assert!(message(&[f64::INFINITY, 0.0, 0.0, 1.0], &one).contains("covariance is"));
    }
}
