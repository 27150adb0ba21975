//! The numbers of `fairaudit-rs`. This crate computes and knows nothing of Python.
//!
//! A reader who knows the method finds the file by its name: [`permutation`] holds the
//! permutation tests, [`projection`] the distance to the nearest fair distribution, [`individual`] the flow to unfair
//! neighbours, [`random`] the counter-based random numbers and the samplers,
//! [`metrics`] the metrics of counts and of rows, [`tabulate`] the collapse of rows to counts, [`numerics`]
//! sums, laws and roots, [`draws`] says which replicates are meant, [`parallel`] is the control of a running call.
// `simd.rs` says why it is the exception.
#![deny(unsafe_code)]

pub mod bootstrap;
pub mod draws;
pub mod error;
pub mod extremes;
pub mod individual;
pub mod influence;
pub mod melded;
pub mod metrics;
pub mod numerics;
pub mod parallel;
pub mod permutation;
pub mod projection;
pub mod random;
pub mod simd;
pub mod tabulate;

pub use draws::Draws;
pub use error::{Error, Result};
