//! The laws of the projection statistic: weighted sums of chi-squares, and the distance of a
//! normal vector to a box.
//!
//! [`weighted_chi_square_tail`] is the law under a simple null (Imhof 1961, Davies 1980),
//! [`BoxLaw`] the law under the composite null of tolerances, [`quadratic_weights`] finds the
//! weights.

mod axes;
mod boxes;
mod contour;
mod rays;

pub use axes::quadratic_weights;
pub use boxes::{BoxLaw, BoxTail};
pub use contour::{weighted_chi_square_quantile, weighted_chi_square_tail};
