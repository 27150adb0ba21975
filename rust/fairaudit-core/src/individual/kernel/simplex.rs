//! Features that stand for one choice among several, held on the simplex: none below 0, and a sum of 1.

use crate::error::{Error, Result};

/// Moves numbers to the nearest ones that are at least 0 and have the sum 1 (Michelot, 1986): all lose the same, and
/// those that would fall below 0 become 0.
pub(super) fn project(values: &mut [f64]) {
    let mut n_left = values.len();
    let mut less = (values.iter().sum::<f64>() - 1.0) / n_left as f64;
    loop {
        let kept = || values.iter().copied().filter(|&value| value > less);
        let count = kept().count();
        // Rounding could let one come back: it would go on for ever.
        if count == 0 || count >= n_left {
            break;
        }
        n_left = count;
        less = (kept().sum::<f64>() - 1.0) / count as f64;
    }
    for value in values {
        *value = if *value > less { *value - less } else { 0.0 };
    }
}

/// Refuses groups of features that are not there, or in two groups.
pub(super) fn check(groups: &[Vec<usize>], width: usize) -> Result<()> {
    let mut is_taken = vec![false; width];
    for &feature in groups.iter().flatten() {
        let accepted = format!("features from 0 to {}, each in one group", width - 1);
        let taken = is_taken.get_mut(feature).ok_or_else(|| Error::argument("held", feature, &accepted))?;
        if std::mem::replace(taken, true) {
            return Err(Error::argument("held", feature, &accepted));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_points_of_the_simplex() {
        let projected = |values: &[f64]| {
            let mut values = values.to_vec();
            project(&mut values);
            values
        };
        assert_eq!(projected(&[0.0, 1.0, 0.0]), [0.0, 1.0, 0.0]);
        assert_eq!(projected(&[0.5, 1.5]), [0.0, 1.0]);
        assert_eq!(projected(&[1.0, 1.0, 0.0, -7.0]), [0.5, 0.5, 0.0, 0.0]);
        assert_eq!(projected(&[-3.0]), [1.0]);
        // No other point of the simplex is nearer.
        let (given, found) = ([0.9, 0.7, -0.2, 0.1], projected(&[0.9, 0.7, -0.2, 0.1]));
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        let distance = |x: &[f64]| x.iter().zip(&given).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
        for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let mut other = found.clone();
            let step = 1e-3f64.min(other[i]);
            other[i] -= step;
            other[j] += step;
            assert!(distance(&other) >= distance(&found) - 1e-15);
        }
        // Numbers around what is taken off all, again and again.
        for i in 0..20_000 {
            let number = |j: usize| ((i * 7_919 + j * 104_729) % 1_009) as f64 / 3_027.0;
            let start: Vec<f64> = (0..6).map(number).collect();
            let (once, mut twice) = (projected(&start), projected(&start));
            project(&mut twice);
            assert!(once.iter().zip(&twice).all(|(a, b)| (a - b).abs() < 1e-15));
        }
        assert!(projected(&[f64::NAN, 0.0]).iter().all(|value| *value >= 0.0 || value.is_nan()));
    }

    #[test]
    fn features_are_there_once() {
        assert!(check(&[vec![0, 2], vec![1]], 3).is_ok());
        for groups in [vec![vec![0, 3]], vec![vec![0, 1], vec![1]]] {
            assert!(check(&groups, 3).unwrap_err().to_string().contains("each in one group"));
        }
    }
}
