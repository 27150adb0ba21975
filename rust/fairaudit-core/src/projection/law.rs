//! The laws of the projection statistic: weighted sums of chi-squares, and the distance of a
//! normal vector to a box.
//!
//! [`weighted_chi_square_tail`] is the law under a simple null (Imhof 1961, Davies 1980),
//! [`box_tail`] the law under the composite null of tolerances, [`quadratic_weights`] finds the
//! weights.

mod boxes;
mod contour;
mod matrix;
mod rays;

pub use boxes::{BoxTail, box_quantile, box_tail};
pub use contour::{weighted_chi_square_quantile, weighted_chi_square_tail};
pub use matrix::quadratic_weights;

/// The x between `low` and `high` where the decreasing `function` crosses 0, within `width`; an
/// end when it does not cross. Chandrupatla's mix of bisection and inverse quadratic steps
/// (Advances in Engineering Software 28, 1997).
fn crossing(low: f64, high: f64, width: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut a, mut b) = (high, low);
    let (mut at_a, mut at_b) = (function(a), function(b));
    if at_b <= 0.0 {
        return low;
    }
    if at_a >= 0.0 {
        return high;
    }
    let mut share = 0.5;
    for _ in 0..200 {
        let middle = a + share * (b - a);
        let at_middle = function(middle);
        // The crossing stays between a, the newest point, and b; c is the one given up.
        let (c, at_c);
        if (at_middle > 0.0) == (at_a > 0.0) {
            (c, at_c) = (a, at_a);
        } else {
            (c, at_c) = (b, at_b);
            (b, at_b) = (a, at_a);
        }
        (a, at_a) = (middle, at_middle);
        let tolerance = 0.5 * width / (b - a).abs();
        if at_a == 0.0 || tolerance > 0.5 {
            break;
        }
        let (x, y) = ((a - b) / (c - b), (at_a - at_b) / (at_c - at_b));
        share = if y * y < x && (1.0 - y) * (1.0 - y) < 1.0 - x {
            at_a / (at_b - at_a) * at_c / (at_b - at_c)
                + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        } else {
            0.5
        };
        share = share.clamp(tolerance, 1.0 - tolerance);
    }
    if at_a.abs() < at_b.abs() { a } else { b }
}

#[cfg(test)]
mod tests {
    #[test]
    fn crossings_are_found() {
        for root in [1e-9, 0.2, 0.5, 0.999] {
            let x = super::crossing(0.0, 1.0, 1e-14, |x| (root - x) * (1.0 + 50.0 * x * x));
            assert!((x - root).abs() < 2e-14, "{root}: {x}");
        }
        assert_eq!(super::crossing(0.0, 1.0, 1e-9, |x| -x - 1.0), 0.0);
        assert_eq!(super::crossing(0.0, 1.0, 1e-9, |x| 2.0 - x), 1.0);
    }
}
