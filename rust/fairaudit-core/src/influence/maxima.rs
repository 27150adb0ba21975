//! The largest of many correlated normal numbers: what simultaneous intervals are read off.
//!
//! Gaussian multipliers of influence values are draws from the normal law with their correlation matrix, so one matrix
//! and draws of one number for each score do what multipliers for each row would.

use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::numerics::laws::quick_normal_quantile;
use crate::parallel::{Control, each_replicate};
use crate::random::{Domain, Stream};

/// Columns whose rest is smaller than this have nothing of their own: they are sums of those before them.
const NOTHING: f64 = 1e-10;

/// Estimated nanoseconds of a draw of `n` numbers on one thread.
pub fn draw_work(n: usize) -> u64 {
    (30 * n + n * n) as u64
}

/// max |Z| of each draw of Z from the normal law with a correlation matrix, given row by row.
///
/// # Errors
/// [`Error::Argument`] when the matrix is not square, or no correlation matrix; [`Error::Cancelled`].
pub fn maxima(correlation: &[f64], draws: &Draws, control: &Control) -> Result<Vec<f64>> {
    let n = correlation.len().isqrt();
    if n == 0 || n * n != correlation.len() {
        let given = format!("{} numbers", correlation.len());
        return Err(Error::argument("correlation", given, "a square matrix, row by row"));
    }
    let root = cholesky(correlation, n)?;
    let mut found = draws.zeros();
    each_replicate(
        &mut found,
        control,
        || vec![0.0; n],
        |replicate, z| {
            let index = draws.replicates.start + replicate;
            let mut stream = Stream::new(draws.seed, Domain::Multiplier, draws.series, index, 0);
            for number in &mut *z {
                *number = quick_normal_quantile(stream.uniform());
            }
            let sum = |row: usize| root[row * n..][..=row].iter().zip(&z[..=row]).map(|(l, z)| l * z).sum::<f64>();
            (0..n).map(|row| sum(row).abs()).fold(0.0, f64::max)
        },
    )?;
    Ok(found)
}

/// The lower triangular root of a correlation matrix; columns of numbers that others determine are 0.
fn cholesky(matrix: &[f64], n: usize) -> Result<Vec<f64>> {
    let mut root = vec![0.0; n * n];
    for j in 0..n {
        let (done, rest) = root.split_at_mut((j + 1) * n);
        let row = &mut done[j * n..];
        let left = matrix[j * n + j] - row[..j].iter().map(|l| l * l).sum::<f64>();
        if left.is_nan() || left < -1e-6 || (matrix[j * n + j] - 1.0).abs() > 1e-6 {
            let given = format!("{} in place {j} of the diagonal", matrix[j * n + j]);
            return Err(Error::argument("correlation", given, "a matrix of correlations"));
        }
        if left <= NOTHING {
            continue;
        }
        let pivot = left.sqrt();
        row[j] = pivot;
        let row = &done[j * n..][..j];
        for (below, entry) in rest.chunks_mut(n).zip(matrix[(j + 1) * n..].chunks(n)) {
            let known: f64 = below[..j].iter().zip(row).map(|(one, other)| one * other).sum();
            below[j] = (entry[j] - known) / pivot;
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(n: u64, seed: u64, series: u64) -> Draws {
        Draws { replicates: 0..n, seed, series }
    }

    fn quantile(mut values: Vec<f64>, level: f64) -> f64 {
        values.sort_by(f64::total_cmp);
        values[(level * values.len() as f64) as usize]
    }

    #[test]
    fn one_and_independent_and_equal_numbers() {
        let draws = |matrix: &[f64]| maxima(matrix, &some(40_000, 5, 0), &Control::default()).unwrap();
        assert!((quantile(draws(&[1.0]), 0.95) - 1.96).abs() < 0.03);
        // P(|Z| <= 2.236)^2 = .95.
        assert!((quantile(draws(&[1.0, 0.0, 0.0, 1.0]), 0.95) - 2.236).abs() < 0.03);
        assert!((quantile(draws(&[1.0, 1.0, 1.0, 1.0]), 0.95) - 1.96).abs() < 0.03);
        assert!((quantile(draws(&[1.0, -1.0, -1.0, 1.0]), 0.95) - 1.96).abs() < 0.03);
    }

    #[test]
    fn the_root_gives_the_matrix_back() {
        let matrix = [1.0, 0.5, 0.2, 0.5, 1.0, -0.3, 0.2, -0.3, 1.0];
        let root = cholesky(&matrix, 3).unwrap();
        for j in 0..3 {
            for k in 0..3 {
                let product: f64 = (0..3).map(|m| root[j * 3 + m] * root[k * 3 + m]).sum();
                assert!((product - matrix[j * 3 + k]).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn what_is_no_correlation_matrix_is_refused() {
        let control = Control::default();
        for matrix in [&[1.0, 0.0][..], &[], &[2.0], &[1.0, 2.0, 2.0, 1.0], &[f64::NAN]] {
            assert!(maxima(matrix, &some(3, 1, 0), &control).is_err());
        }
    }

    #[test]
    fn a_draw_depends_on_its_index_alone() {
        let matrix = [1.0, 0.4, 0.4, 1.0];
        let many = maxima(&matrix, &some(500, 9, 2), &Control::with_threads(3)).unwrap();
        let few = maxima(&matrix, &some(100, 9, 2), &Control::default()).unwrap();
        assert_eq!(many[..100], few[..]);
        let later = Draws { replicates: 40..100, seed: 9, series: 2 };
        assert_eq!(maxima(&matrix, &later, &Control::default()).unwrap(), few[40..]);
        assert_ne!(maxima(&matrix, &some(100, 9, 3), &Control::default()).unwrap(), few);
    }
}
