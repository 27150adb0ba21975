//! The extremes lens (Monjezi et al., 2025): how bad counterfactual discrimination gets in the tail.
//!
//! The excesses over a threshold that is an order statistic follow a generalised Pareto law, which [`gpd`] fits.

pub mod gpd;
