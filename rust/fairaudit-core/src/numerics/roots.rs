//! Where a function of one number crosses 0.
//!
//! Three algorithms, each with the stopping rule that its users' numbers rest on: [`bisect`] halves down to the last
//! bits and returns the middle, [`first_place`] halves to the last bit and returns the upper end, [`crossing`] goes
//! faster where the function is dear, to within a width.

/// The point between `low` and `high` where `is_below` turns false, to the last bits.
pub(crate) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..1100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high || high - low <= 4.0 * f64::EPSILON * middle.abs() {
            break;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The least float between two where a condition holds that holds from some place on; `most` if none.
pub(crate) fn first_place(least: f64, most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(least) {
        return least;
    }
    let (mut below, mut above) = (least, most);
    loop {
        let middle = f64::midpoint(below, above);
        if middle <= below || middle >= above {
            return above;
        }
        if holds(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
}

/// The x between `low` and `high` where the decreasing `function` crosses 0, within `width`; an
/// end when it does not cross. Chandrupatla's mix of bisection and inverse quadratic steps
/// (Advances in Engineering Software 28, 1997).
pub(crate) fn crossing(low: f64, high: f64, width: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (at_high, at_low) = (function(high), function(low));
    crossing_between((low, at_low), (high, at_high), 0.5, width, function)
}

/// The same from two points (x, function of x), asked first at a share of the way down from the higher one.
pub(crate) fn crossing_between(
    low: (f64, f64),
    high: (f64, f64),
    mut share: f64,
    width: f64,
    function: impl Fn(f64) -> f64,
) -> f64 {
    let ((mut a, mut at_a), (mut b, mut at_b)) = (high, low);
    if at_b <= 0.0 {
        return b;
    }
    if at_a >= 0.0 {
        return a;
    }
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
        if at_a == 0.0 || tolerance > 0.5 || tolerance.is_nan() {
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

    #[test]
    fn the_first_place_is_a_float() {
        for place in [0.1, 0.3, 2.0 / 3.0] {
            assert_eq!(super::first_place(0.0, 1.0, |x| x >= place), place);
        }
        assert_eq!(super::first_place(0.25, 1.0, |_| true), 0.25);
        assert_eq!(super::first_place(0.25, 0.75, |_| false), 0.75);
    }
}
