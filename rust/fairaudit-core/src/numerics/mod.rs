//! What the methods compute with, whatever they are about: sums whose order does not matter, laws, exponentials,
//! roots, matrices, orders.

pub mod exponential;
pub mod laws;
pub(crate) mod matrix;
pub(crate) mod order;
pub(crate) mod peaks;
pub(crate) mod roots;
pub mod sums;
