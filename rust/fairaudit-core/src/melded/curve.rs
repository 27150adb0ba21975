//! A monotone curve through points.

/// Cubic pieces between points whose x ascend, with the slopes of Fritsch and Carlson (1980) as Brodlie gives them:
/// where the points are monotone the curve is. Constant beyond the ends.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    x: Vec<f64>,
    y: Vec<f64>,
    slope: Vec<f64>,
}

impl Curve {
    /// Through points in any order; of those with one x the first is taken.
    pub(super) fn through(mut points: Vec<(f64, f64)>) -> Self {
        points.sort_by(|first, second| first.0.total_cmp(&second.0));
        points.dedup_by(|second, first| second.0 - first.0 < 1e-9);
        let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let rise = |i: usize| (y[i + 1] - y[i]) / (x[i + 1] - x[i]);
        let inner = |i: usize| {
            let (before, after) = (rise(i - 1), rise(i));
            if before * after <= 0.0 {
                return 0.0;
            }
            let (left, right) = (x[i] - x[i - 1], x[i + 1] - x[i]);
            let share = (left + 2.0 * right) / (3.0 * (left + right));
            before * after / (share * after + (1.0 - share) * before)
        };
        let last = x.len() - 1;
        let slope = match last {
            0 => vec![0.0],
            _ => (0..=last)
                .map(|i| {
                    if i == 0 {
                        rise(0)
                    } else if i == last {
                        rise(i - 1)
                    } else {
                        inner(i)
                    }
                })
                .collect(),
        };
        Self { x, y, slope }
    }

    pub(super) fn at(&self, x: f64) -> f64 {
        let last = self.x.len() - 1;
        if x >= self.x[last] {
            return self.y[last];
        }
        if x <= self.x[0] {
            return self.y[0];
        }
        let i = self.x.partition_point(|&point| point <= x) - 1;
        let width = self.x[i + 1] - self.x[i];
        let t = (x - self.x[i]) / width;
        let (s, rest) = (t * t * (3.0 - 2.0 * t), t * (1.0 - t));
        let bend = width * rest * ((1.0 - t) * self.slope[i] - t * self.slope[i + 1]);
        self.y[i] + s * (self.y[i + 1] - self.y[i]) + bend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_meets_its_points_and_is_monotone() {
        let points: Vec<(f64, f64)> = (0..30).rev().map(|i| 0.3 * f64::from(i)).map(|x| (x, libm::exp(-x))).collect();
        let curve = Curve::through(points.clone());
        assert!(points.iter().all(|&(x, y)| (curve.at(x) - y).abs() < 1e-15));
        let fine: Vec<f64> = (0..9_000).map(|i| curve.at(0.001 * f64::from(i))).collect();
        assert!(fine.windows(2).all(|pair| pair[1] <= pair[0]));
        let wrong = (300..8_000).map(|i| (fine[i] - libm::exp(-0.001 * i as f64)).abs());
        assert!(wrong.fold(0.0, f64::max) < 2e-4);
        assert_eq!((curve.at(-1.0), curve.at(99.0)), (1.0, libm::exp(-8.7)));
        assert_eq!(Curve::through(vec![(2.0, 5.0), (2.0, 6.0)]).at(0.0), 5.0);
    }
}
