//! Where a function of one number is largest.

const GOLDEN: f64 = 0.381_966_011_250_105_1;

/// (place, value) of the largest of a function on a list of places, refined between the neighbours of the best one.
/// Places with NaN are never best.
pub(crate) fn peak(places: &[f64], width: f64, function: impl Fn(f64) -> f64) -> (f64, f64) {
    let at = |place: f64| {
        let value = function(place);
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    };
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    for (index, &place) in places.iter().enumerate() {
        let value = at(place);
        if value > most {
            (best, most) = (index, value);
        }
    }
    let (low, high) = (places[best.saturating_sub(1)], places[(best + 1).min(places.len() - 1)]);
    climb(low, places[best], most, high, width, at)
}

/// The place, or the end that it lies beyond; without ends that are numbers the place itself.
fn within(place: f64, low: f64, high: f64) -> f64 {
    if low <= high { place.clamp(low, high) } else { place }
}

/// (place, value) of the peak that lies uphill of a place, between `low` and `high`: steps that double, until it goes
/// down on both sides.
pub(crate) fn peak_near(
    low: f64,
    high: f64,
    start: f64,
    step: f64,
    width: f64,
    function: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let mut best = within(start, low, high);
    let mut most = function(best);
    let mut sides = [None, None];
    for (side, sign) in [(0, -1.0), (1, 1.0)] {
        let mut length = step;
        while sides[side].is_none() {
            let next = within(best + sign * length, low, high);
            let value = if next == best { f64::NEG_INFINITY } else { function(next) };
            if value > most {
                sides[1 - side] = Some(best);
                (best, most) = (next, value);
                length *= 2.0;
            } else {
                sides[side] = Some(next);
            }
        }
    }
    climb(sides[0].unwrap_or(low), best, most, sides[1].unwrap_or(high), width, function)
}

/// The peak between `low` and `high`, from a place between them that is above both ends: parabolas with golden
/// sections in between (Brent, 1973, chapter 5), to within `width`.
pub(crate) fn climb(
    mut low: f64,
    start: f64,
    value: f64,
    mut high: f64,
    width: f64,
    function: impl Fn(f64) -> f64,
) -> (f64, f64) {
    // The best place, the second best, and the one that was second before.
    let (mut x, mut second, mut third) = (start, start, start);
    let (mut at_x, mut at_second, mut at_third) = (value, value, value);
    let (mut step, mut before) = (0.0_f64, 0.0_f64);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if (x - middle).abs() <= 2.0 * width - 0.5 * (high - low) {
            break;
        }
        let mut parabolic = None;
        if before.abs() > width && at_second.is_finite() && at_third.is_finite() {
            let r = (x - second) * (at_third - at_x);
            let q = (x - third) * (at_second - at_x);
            let (mut p, mut q) = ((x - third) * q - (x - second) * r, 2.0 * (q - r));
            if q > 0.0 {
                p = -p;
            }
            q = q.abs();
            if p.abs() < (0.5 * q * before).abs() && p > q * (low - x) && p < q * (high - x) {
                parabolic = Some(p / q);
            }
        }
        (before, step) = if let Some(found) = parabolic {
            let close = x + found - low < 2.0 * width || high - x - found < 2.0 * width;
            (step, if close { width.copysign(middle - x) } else { found })
        } else {
            let room = if x >= middle { low - x } else { high - x };
            (room, GOLDEN * room)
        };
        let next = if step.abs() >= width { x + step } else { x + width.copysign(step) };
        let at_next = function(next);
        if at_next >= at_x {
            *(if next >= x { &mut low } else { &mut high }) = x;
            (third, at_third) = (second, at_second);
            (second, at_second) = (x, at_x);
            (x, at_x) = (next, at_next);
        } else {
            *(if next < x { &mut low } else { &mut high }) = next;
            if at_next >= at_second || second == x {
                (third, at_third) = (second, at_second);
                (second, at_second) = (next, at_next);
            } else if at_next >= at_third || third == x || third == second {
                (third, at_third) = (next, at_next);
            }
        }
    }
    (x, at_x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_found() {
        for top in [-3.2, -0.3, 0.0, 1.7, 3.9] {
            let places: Vec<f64> = (-4..=4).map(f64::from).collect();
            let (x, value) = peak(&places, 1e-9, |x| 2.0 - (x - top).powi(2) + 0.1 * (x - top).powi(3));
            assert!((x - top).abs() < 1e-7 && (value - 2.0).abs() < 1e-12, "{top}: {x} {value}");
        }
        // At an end, and beside places where the function is not defined.
        let (x, _) = peak(&[0.0, 1.0, 2.0], 1e-9, |x| -x);
        assert!(x.abs() < 1e-8);
        let (x, _) = peak(&[-1.0, 0.0, 1.0, 2.0], 1e-9, |x| if x < 0.5 { f64::NAN } else { -x });
        assert!((x - 0.5).abs() < 1e-6);
    }

    #[test]
    fn peaks_nearby_are_found() {
        for (top, start) in [(0.3, 0.31), (0.3, -3.0), (-3.9, 2.0), (4.0, -4.0), (-4.0, 4.0), (9.0, 0.0)] {
            let (x, value) = peak_near(-4.0, 4.0, start, 0.05, 1e-9, |x| -(x - top).powi(2));
            let meant = f64::clamp(top, -4.0, 4.0);
            assert!((x - meant).abs() < 1e-7 && (value + (meant - top).powi(2)).abs() < 1e-6, "{top} {start}: {x}");
        }
    }
}
