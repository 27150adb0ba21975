//! Small symmetric matrices, row by row: Cholesky factors, eigenvalues.

use crate::error::{Error, Result};

/// Entries of a symmetric matrix differ by at most this part of the roots of their diagonals.
pub(crate) const ASYMMETRY: f64 = 1e-8;
/// Refuses what is no symmetric matrix of this size; `name` is that of the argument.
pub(crate) fn check_symmetric(matrix: &[f64], name: &str, size: usize) -> Result<()> {
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

/// The eigenvalues of a symmetric matrix: Householder's tridiagonal form, then implicit QL steps
/// (Golub and Van Loan, section 8.3).
pub(crate) fn eigenvalues(mut matrix: Vec<f64>, size: usize) -> Vec<f64> {
    let (mut diagonal, mut beside) = (vec![0.0; size], vec![0.0; size]);
    for i in (1..size).rev() {
        let (above, rest) = matrix.split_at_mut(i * size);
        let row = &mut rest[..i];
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        diagonal[i] = rest[i];
        let row = &mut rest[..i];
        if length == 0.0 {
            continue;
        }
        // v = row + sign * |row| e_last; the reflection sends the row to one entry.
        let last = if row[i - 1] > 0.0 { -length } else { length };
        beside[i] = last;
        row[i - 1] -= last;
        let half = 0.5 * row.iter().map(|x| x * x).sum::<f64>();
        if half == 0.0 {
            continue;
        }
        // A -> A - v w' - w v' with w = p - (v'p / 2h) v, p = A v / h.
        let symmetric = |j: usize, k: usize| if k <= j { above[j * size + k] } else { above[k * size + j] };
        let mut p: Vec<f64> =
            (0..i).map(|j| row.iter().enumerate().map(|(k, v)| symmetric(j, k) * v).sum::<f64>() / half).collect();
        let share = p.iter().zip(row.iter()).map(|(p, v)| p * v).sum::<f64>() / (2.0 * half);
        p.iter_mut().zip(row.iter()).for_each(|(p, v)| *p -= share * v);
        for j in 0..i {
            for k in 0..=j {
                above[j * size + k] -= row[j] * p[k] + p[j] * row[k];
            }
        }
    }
    diagonal[0] = matrix.first().copied().unwrap_or(0.0);
    beside.rotate_left(1);
    tridiagonal(&mut diagonal, &mut beside);
    diagonal
}

/// Replaces the diagonal of a tridiagonal matrix by its eigenvalues; `beside[i]` couples i and i + 1.
fn tridiagonal(diagonal: &mut [f64], beside: &mut [f64]) {
    for first in 0..diagonal.len() {
        for _ in 0..100 {
            let negligible = |i: usize| beside[i].abs() <= f64::EPSILON * (diagonal[i].abs() + diagonal[i + 1].abs());
            let Some(end) = (first..diagonal.len() - 1).find(|&i| negligible(i)).or(Some(diagonal.len() - 1)) else {
                break;
            };
            if end == first {
                break;
            }
            let mut g = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
            let root = libm::hypot(g, 1.0);
            g = diagonal[end] - diagonal[first] + beside[first] / (g + root.copysign(g));
            let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (first..end).rev() {
                let (f, b) = (sine * beside[i], cosine * beside[i]);
                let r = libm::hypot(f, g);
                beside[i + 1] = r;
                if r == 0.0 {
                    diagonal[i + 1] -= shift;
                    beside[end] = 0.0;
                    split = true;
                    break;
                }
                (sine, cosine) = (f / r, g / r);
                g = diagonal[i + 1] - shift;
                let r = (diagonal[i] - g) * sine + 2.0 * cosine * b;
                shift = sine * r;
                diagonal[i + 1] = g + shift;
                g = cosine * r - b;
            }
            if !split {
                diagonal[first] -= shift;
                beside[first] = g;
                beside[end] = 0.0;
            }
        }
    }
}

pub(crate) fn transpose(matrix: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..i {
            matrix.swap(i * size + j, j * size + i);
        }
    }
}

/// Replaces the lower triangle by the C of the matrix = C C'; false when a pivot is at most the part
/// `least` of its diagonal entry.
pub(crate) fn cholesky(matrix: &mut [f64], size: usize, least: f64) -> bool {
    for j in 0..size {
        let diagonal = matrix[j * size + j];
        let pivot = diagonal - (0..j).map(|k| matrix[j * size + k] * matrix[j * size + k]).sum::<f64>();
        if pivot.is_nan() || pivot <= least * diagonal {
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
pub(crate) fn forward(factor: &[f64], size: usize, b: &mut [f64]) {
    for i in 0..size {
        let dot: f64 = (0..i).map(|k| factor[i * size + k] * b[k]).sum();
        b[i] = (b[i] - dot) / factor[i * size + i];
    }
}

/// Solves C' x = b in place.
pub(crate) fn backward(factor: &[f64], size: usize, b: &mut [f64]) {
    for i in (0..size).rev() {
        let dot: f64 = (i + 1..size).map(|k| factor[k * size + i] * b[k]).sum();
        b[i] = (b[i] - dot) / factor[i * size + i];
    }
}

/// The eigenvalues of a symmetric matrix and its eigenvectors, in columns, by cyclic Jacobi
/// rotations (Golub and Van Loan, Matrix Computations, section 8.5).
pub(crate) fn eigen(mut a: Vec<f64>, size: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors: Vec<f64> = (0..size * size).map(|index| f64::from(index.is_multiple_of(size + 1))).collect();
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
pub(crate) mod tests {
    use super::*;

    /// A matrix A'A + `ridge` with entries from sines.
    pub(crate) fn gram(size: usize, rank: usize, ridge: f64, seed: f64) -> Vec<f64> {
        let entry = |i: usize, k: usize| libm::sin(seed + ((i * rank + k).pow(2) % 1009) as f64);
        let product = |i: usize, j: usize| (0..rank).map(|k| entry(i, k) * entry(j, k)).sum::<f64>();
        let cell =
            |index: usize| product(index / size, index % size) + ridge * f64::from(index.is_multiple_of(size + 1));
        (0..size * size).map(cell).collect()
    }

    #[test]
    fn many_eigenvalues_equal_those_of_the_rotations() {
        for (size, rank) in [(25, 25), (60, 60), (90, 12)] {
            let matrix = gram(size, rank, 0.0, 0.7);
            let (mut one, mut other) = (eigen(matrix.clone(), size).0, eigenvalues(matrix, size));
            one.sort_by(f64::total_cmp);
            other.sort_by(f64::total_cmp);
            let scale = one[size - 1];
            for (one, other) in one.iter().zip(&other) {
                assert!((one - other).abs() < 1e-12 * scale, "{size} {one} {other}");
            }
        }
        // Already diagonal.
        let diagonal: Vec<f64> = (0..900).map(|i| if i % 31 == 0 { f64::from(i) } else { 0.0 }).collect();
        let mut found = eigenvalues(diagonal, 30);
        found.sort_by(f64::total_cmp);
        assert_eq!(found, (0..30).map(|i| f64::from(31 * i)).collect::<Vec<_>>());
    }
}
