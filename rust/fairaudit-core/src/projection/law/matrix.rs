//! Small symmetric matrices, row by row: Cholesky factors, eigenvalues.

use crate::error::{Error, Result};

/// A pivot below this part of its diagonal entry is no pivot.
const SINGULAR: f64 = 1e-13;
/// Entries of a symmetric matrix differ by at most this part of the roots of their diagonals.
const ASYMMETRY: f64 = 1e-8;
/// An eigenvalue of a covariance below this part of the largest one counts as zero.
const ZERO: f64 = 1e-12;

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
/// let weights = quadratic_weights(&[4.0, 0.0, 0.0, 3.0], &[1.0, 0.0, 0.0, 3.0])?;
/// assert!((weights[0] - 2.0).abs() < 1e-14 && (weights[1] - 0.5).abs() < 1e-14);
/// # Ok::<(), fairaudit_core::Error>(())
/// ```
pub fn quadratic_weights(covariance: &[f64], curvature: &[f64]) -> Result<Vec<f64>> {
    let size = covariance.len().isqrt();
    Ok(Axes::new(covariance, curvature, size)?.variances.iter().map(|variance| 0.5 * variance).collect())
}

/// The principal axes of N(0, Sigma) in the metric of S^-1.
pub(super) struct Axes {
    /// The eigenvalues of S^(-1/2) Sigma S^(-1/2), the largest first; exactly 0 in directions that
    /// have no variance.
    pub(super) variances: Vec<f64>,
    /// One row per axis: a standard normal number times each row, summed, is a draw of V.
    pub(super) rows: Vec<Vec<f64>>,
}

impl Axes {
    pub(super) fn new(covariance: &[f64], curvature: &[f64], size: usize) -> Result<Self> {
        check(covariance, "covariance", size)?;
        check(curvature, "curvature", size)?;
        let mut factor = curvature.to_vec();
        if !cholesky(&mut factor, size) {
            return Err(Error::argument("curvature", "not positive definite", "a positive definite matrix"));
        }
        // Sigma -> C^-1 Sigma -> C^-1 (C^-1 Sigma)' with S = C C'.
        let mut whitened = covariance.to_vec();
        for _ in 0..2 {
            transpose(&mut whitened, size);
            for row in whitened.chunks_exact_mut(size) {
                forward(&factor, size, row);
            }
        }
        let (mut variances, vectors) = eigen(whitened, size);
        let largest = variances.iter().copied().fold(0.0, f64::max);
        if let Some(negative) = variances.iter().find(|&&variance| variance < -ASYMMETRY * largest) {
            let value = format!("a matrix with the eigenvalue {negative:.3e} in the metric of the curvature");
            return Err(Error::argument("covariance", value, "eigenvalues that are not negative"));
        }
        variances.iter_mut().filter(|variance| **variance <= ZERO * largest).for_each(|variance| *variance = 0.0);
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

fn check(matrix: &[f64], name: &str, size: usize) -> Result<()> {
    if matrix.len() != size * size {
        let accepted = format!("{size} x {size} numbers");
        return Err(Error::argument(name, format!("{} numbers", matrix.len()), &accepted));
    }
    for i in 0..size {
        for j in 0..=i {
            let (lower, upper) = (matrix[i * size + j], matrix[j * size + i]);
            let scale = f64::sqrt(matrix[i * size + i].abs()) * f64::sqrt(matrix[j * size + j].abs());
            // Not finite: not within the bound either.
            if !((lower - upper).abs() <= ASYMMETRY * scale && scale.is_finite()) {
                let value = format!("{lower} at ({i}, {j}) and {upper} at ({j}, {i})");
                return Err(Error::argument(name, value, "finite numbers, the same on both sides of the diagonal"));
            }
        }
    }
    Ok(())
}

fn transpose(matrix: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..i {
            matrix.swap(i * size + j, j * size + i);
        }
    }
}

/// Replaces the lower triangle by the C of the matrix = C C'; false when it is not positive
/// definite.
pub(super) fn cholesky(matrix: &mut [f64], size: usize) -> bool {
    for j in 0..size {
        let diagonal = matrix[j * size + j];
        let pivot = diagonal - (0..j).map(|k| matrix[j * size + k] * matrix[j * size + k]).sum::<f64>();
        // NaN is not a pivot either.
        if pivot.is_nan() || pivot <= SINGULAR * diagonal {
            return false;
        }
        let root = f64::sqrt(pivot);
        matrix[j * size + j] = root;
        for i in j + 1..size {
            let dot: f64 = (0..j).map(|k| matrix[i * size + k] * matrix[j * size + k]).sum();
            matrix[i * size + j] = (matrix[i * size + j] - dot) / root;
        }
    }
    true
}

/// Solves C x = b in place.
pub(super) fn forward(factor: &[f64], size: usize, b: &mut [f64]) {
    for i in 0..size {
        let dot: f64 = (0..i).map(|k| factor[i * size + k] * b[k]).sum();
        b[i] = (b[i] - dot) / factor[i * size + i];
    }
}

/// Solves C' x = b in place.
pub(super) fn backward(factor: &[f64], size: usize, b: &mut [f64]) {
    for i in (0..size).rev() {
        let dot: f64 = (i + 1..size).map(|k| factor[k * size + i] * b[k]).sum();
        b[i] = (b[i] - dot) / factor[i * size + i];
    }
}

/// The eigenvalues of a symmetric matrix and its eigenvectors, in columns, by cyclic Jacobi
/// rotations (Golub and Van Loan, Matrix Computations, section 8.5).
fn eigen(mut a: Vec<f64>, size: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors: Vec<f64> = (0..size * size).map(|index| f64::from(index % (size + 1) == 0)).collect();
    for _ in 0..60 {
        let mut rotated = false;
        for p in 0..size {
            for q in p + 1..size {
                let (off, app, aqq) = (a[p * size + q], a[p * size + p], a[q * size + q]);
                if off.abs() <= f64::EPSILON * 1e-3 * f64::sqrt(app.abs()) * f64::sqrt(aqq.abs()) {
                    continue;
                }
                rotated = true;
                let cot = 0.5 * (aqq - app) / off;
                let tangent = 1.0f64.copysign(cot) / (cot.abs() + f64::sqrt(cot * cot + 1.0));
                let cosine = 1.0 / f64::sqrt(tangent * tangent + 1.0);
                let sine = tangent * cosine;
                let turn = |x: f64, y: f64| (cosine * x - sine * y, sine * x + cosine * y);
                for k in 0..size {
                    let (x, y) = turn(a[k * size + p], a[k * size + q]);
                    (a[k * size + p], a[k * size + q]) = (x, y);
                }
                for k in 0..size {
                    let (x, y) = turn(a[p * size + k], a[q * size + k]);
                    (a[p * size + k], a[q * size + k]) = (x, y);
                    let (x, y) = turn(vectors[k * size + p], vectors[k * size + q]);
                    (vectors[k * size + p], vectors[k * size + q]) = (x, y);
                }
            }
        }
        if !rotated {
            break;
        }
    }
    ((0..size).map(|i| a[i * size + i]).collect(), vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix A'A + `ridge` with entries from sines.
    fn gram(size: usize, rank: usize, ridge: f64, seed: f64) -> Vec<f64> {
        let entry = |i: usize, k: usize| libm::sin((seed + (i * rank + k) as f64).powi(2));
        let product = |i: usize, j: usize| (0..rank).map(|k| entry(i, k) * entry(j, k)).sum::<f64>();
        let cell =
            |index: usize| product(index / size, index % size) + ridge * f64::from(index.is_multiple_of(size + 1));
        (0..size * size).map(cell).collect()
    }

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
            assert!(cholesky(&mut factor, size));
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
        assert!(message(&[1.0, f64::NAN, 0.0, 1.0], &one).contains("covariance is"));
        assert!(message(&[f64::INFINITY, 0.0, 0.0, 1.0], &one).contains("covariance is"));
    }
}
