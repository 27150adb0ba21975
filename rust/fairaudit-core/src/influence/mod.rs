//! The influence lens (Wang, Ustun and Calmon, 2019): how much each feature stands in for the group.
//!
//! A rate of the target group is `R = sum a / sum b` over its rows, and `u = a - R b` is what a row adds to it. A proxy
//! score asks how `u` moves with a feature. Everything that the scores, their standard errors and their joint law
//! need is sums over the rows: [`marginal`] and [`gram`] take them for all features side by side, of columns that
//! [`columns`] looked at. Sums are exact but for a rounding of each number, so that they do not depend on the order of
//! the rows. What holds all other features fixed needs regressions: [`nuisance`] fits them on the columns of a
//! [`design`]. [`descent`] follows the influence to weights under which the group would have the rate of the others;
//! [`repair`] finds what it costs to close the gap by changing features.

pub mod columns;
pub mod descent;
pub mod design;
mod exact;
pub mod gram;
pub mod marginal;
pub mod maxima;
pub mod moments;
pub mod nuisance;
pub mod repair;
