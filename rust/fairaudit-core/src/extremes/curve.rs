//! How well a return level fits a tail, for every level: the curve that intervals and tests are read off.

use std::cell::RefCell;

use super::cuts::{Cuts, signed_root};
use super::gpd::{Fit, Sample, return_excess};
use crate::numerics::roots::{crossing, crossing_between};

/// Levels that a curve looks at first lie at these powers of ten of the excess of the estimate, on both sides.
const FIRST_DECADE: f64 = -2.0;
/// See [`FIRST_DECADE`].
const PER_DECADE: usize = 4;
const BELOW: usize = 9;
const ABOVE: usize = 17;
/// The farthest level that is looked at, in excesses of the estimate.
const FARTHEST: f64 = 1e12;
/// The root of a level below the threshold.
const IMPOSSIBLE: f64 = 1e3;
/// To how much limits are known, in excesses of the estimate.
const WIDTH: f64 = 1e-8;

/// z(x), Phi^-1 of the null probability of the signed root, for the excess x of a return level over the threshold: from
/// large at 0 down, 0 in the middle.
pub struct Curve<'a> {
    sample: &'a dyn Sample,
    cuts: &'a Cuts,
    /// M = m k / n > 1.
    horizon: f64,
    fit: Fit,
    estimate: f64,
    /// Some levels with their z, upwards.
    known: Vec<(f64, f64)>,
    /// The shapes fitted at them.
    shapes: Vec<f64>,
    /// Levels that limits were looked for at, upwards: the next ones lie between them.
    seen: RefCell<Vec<(f64, f64)>>,
}

impl<'a> Curve<'a> {
    /// The curve for a horizon of M > 1 exceedances, from the fit of the sample; limits will be asked of it up to |z| =
    /// `reach`.
    pub fn new(sample: &'a dyn Sample, fit: Fit, horizon: f64, cuts: &'a Cuts, reach: f64) -> Self {
        let estimate = return_excess(fit.shape, fit.scale, horizon);
        let (known, shapes, seen) = (Vec::with_capacity(48), Vec::with_capacity(48), RefCell::default());
        let mut curve = Self { sample, cuts, horizon, fit, estimate, known, shapes, seen };
        let step = |index: usize| libm::exp10(FIRST_DECADE + index as f64 / PER_DECADE as f64);
        curve.look(estimate, fit.shape, 0.0);
        curve.outwards(reach, (0..BELOW).map(|index| estimate * (1.0 - step(index))));
        curve.known.reverse();
        curve.shapes.reverse();
        curve.outwards(reach, (0..ABOVE).map(|index| estimate * (1.0 + step(index))));
        curve
    }

    /// Adds levels that go away from the last one that is known, ever faster.
    fn outwards(&mut self, reach: f64, levels: impl Iterator<Item = f64>) {
        let growth = libm::exp10(1.0 / PER_DECADE as f64);
        let mut step = 0.0;
        for level in levels {
            let last = self.shapes[self.shapes.len() - 1];
            let root = self.look(level, last + growth * step, 0.5 * step);
            step = self.shapes[self.shapes.len() - 1] - last;
            // Roots grow outwards: whatever the shapes are there, no limit lies beyond.
            if self.cuts.is_beyond(root, reach) {
                break;
            }
        }
    }

    fn look(&mut self, level: f64, near: f64, within: f64) -> f64 {
        let (root, shape) = self.root_near(level, near, within);
        self.known.push((level, self.cuts.z(root, shape)));
        self.shapes.push(shape);
        root
    }

    /// The fitted return level, as an excess.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// z of an excess.
    pub fn z(&self, level: f64) -> f64 {
        let above = self.known.partition_point(|(known, _)| *known < level).clamp(1, self.known.len() - 1);
        let ((low, _), (high, _)) = (self.known[above - 1], self.known[above]);
        let share = ((level - low) / (high - low)).clamp(0.0, 1.0);
        let (first, last) = (self.shapes[above - 1], self.shapes[above]);
        let (root, shape) = self.root_near(level, (1.0 - share) * first + share * last, 0.1 * (last - first));
        self.cuts.z(root, shape)
    }

    /// The signed root of an excess with the shape fitted there, which is within so much of another or not far from there.
    fn root_near(&self, level: f64, near: f64, within: f64) -> (f64, f64) {
        if level <= 0.0 {
            return (IMPOSSIBLE, near);
        }
        if level.is_infinite() {
            return (-IMPOSSIBLE, near);
        }
        let (shape, value) = self.sample.at_level_near(level, self.horizon, near, within.abs());
        (signed_root(self.fit.log_likelihood - value, self.estimate - level), shape)
    }

    /// The outermost levels with |z| <= `width`: (0, ...) where no level above the threshold is too low, and infinite
    /// where none is too high.
    pub fn limits(&self, width: f64) -> (f64, f64) {
        (self.lowest(width), self.highest(width))
    }

    /// The lowest level with z <= `width`.
    pub fn lowest(&self, width: f64) -> f64 {
        let first = self.known.iter().take_while(|(_, z)| *z > width).count();
        match first {
            0 => 0.0,
            _ if first == self.known.len() => self.known[first - 1].0,
            _ => self.between(self.known[first - 1], self.known[first], width),
        }
    }

    /// The highest level with z >= -`width`.
    pub fn highest(&self, width: f64) -> f64 {
        let outside = self.known.iter().rev().take_while(|(_, z)| *z < -width).count();
        let last = self.known.len() - outside;
        if outside > 0 && last > 0 {
            return self.between(self.known[last - 1], self.known[last], -width);
        }
        if last == 0 {
            return self.known[0].0;
        }
        let mut low = self.known[last - 1];
        while low.0 < FARTHEST * self.estimate {
            let high = (10.0 * low.0, self.z(10.0 * low.0));
            if high.1 < -width {
                return self.between(low, high, -width);
            }
            low = high;
        }
        f64::INFINITY
    }

    /// Where z falls to the target between two levels with their z.
    fn between(&self, mut low: (f64, f64), mut high: (f64, f64), target: f64) -> f64 {
        for &point in self.seen.borrow().iter() {
            if point.0 > low.0 && point.0 < high.0 {
                *(if point.1 > target { &mut low } else { &mut high }) = point;
            }
        }
        let z = |level: f64| {
            let z = self.z(level);
            let mut seen = self.seen.borrow_mut();
            let place = seen.partition_point(|(known, _)| *known < level);
            seen.insert(place, (level, z));
            z - target
        };
        let (above, below) = (low.1 - target, high.1 - target);
        let share = (below / (below - above)).clamp(0.05, 0.95);
        crossing_between((low.0, above), (high.0, below), share, WIDTH * self.estimate, z)
    }
}

/// The outermost shapes from -1 to 3 whose signed root is within `width` of its middle; None where there is none.
pub fn shape_limits(sample: &dyn Sample, fit: Fit, cuts: &Cuts, width: f64) -> Option<(f64, f64)> {
    const STEPS: usize = 40;
    const TO: f64 = 1e-7;
    let z = |shape: f64| {
        let (_, value) = sample.at_shape(shape);
        cuts.z(signed_root(fit.log_likelihood - value, fit.shape - shape), shape)
    };
    let shape = |step: usize| -1.0 + 0.1 * step as f64;
    let known: Vec<f64> = (0..=STEPS).map(|step| z(shape(step))).collect();
    let first = known.iter().position(|z| z.abs() <= width)?;
    let last = known.iter().rposition(|z| z.abs() <= width)?;
    // A border is where |z| - width crosses 0; `crossing` wants it to go down.
    let low =
        if first == 0 { shape(0) } else { crossing(shape(first - 1), shape(first), TO, |at| z(at).abs() - width) };
    let high =
        if last == STEPS { shape(STEPS) } else { crossing(shape(last), shape(last + 1), TO, |at| width - z(at).abs()) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::super::gpd::Excesses;
    use super::super::tables::level_cuts;
    use super::*;

    #[test]
    fn limits_are_where_z_says() {
        let values: Vec<f64> = (1..=34).map(|i| return_excess(0.1, 2.0, 35.0 / f64::from(i))).collect();
        let excesses = Excesses::new(&values).unwrap();
        let cuts = level_cuts(34, 500.0, 500.0).unwrap().unwrap();
        let curve = Curve::new(&excesses, excesses.fit(), 34.0, &cuts, 2.0);
        let (low, high) = curve.limits(1.5);
        assert!(low < curve.estimate() && curve.estimate() < high);
        assert!((curve.z(low) - 1.5).abs() < 1e-5, "{}", curve.z(low));
        assert!((curve.z(high) + 1.5).abs() < 1e-5, "{}", curve.z(high));
        // Where no known level is low or high enough, the one at the other end.
        assert_eq!(curve.limits(-1e4), (curve.known[curve.known.len() - 1].0, curve.known[0].0));
    }
}
