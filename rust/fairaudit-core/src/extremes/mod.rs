//! The extremes lens (Monjezi et al., 2025): how bad counterfactual discrimination gets in the tail.
//!
//! The excesses over a threshold that is an order statistic follow a generalised Pareto law, which [`gpd`] fits, or
//! [`grouped`] where scores lie on a grid. How far a return level is from what was seen says a signed root, whose null law
//! [`cuts`] simulates and [`tables`] ship; a [`curve`] over all levels gives intervals, two of them a [`pair`] of groups. What
//! holds for every law is in [`order`]; a [`tail`] is all of it for one group. [`laws`] permutes rows, [`diagnostics`] ask whether
//! a fit is any good, [`gev`] fits maxima of blocks.

pub mod curve;
pub mod cuts;
pub mod diagnostics;
pub mod gev;
pub mod gpd;
pub mod grouped;
pub mod laws;
pub mod order;
pub mod pair;
pub mod tables;
pub mod tail;
