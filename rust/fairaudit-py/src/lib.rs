//! The seam: builds `fairaudit_rs._native`. A short file for each lens and service; every long call goes
//! through [`options::Call::run`].
// Arguments that arrive from Python are owned.
#![allow(clippy::needless_pass_by_value)]

mod arrays;
mod audits;
mod bootstrap;
mod call;
mod callable;
mod cuts;
mod descent;
mod extremes;
mod individual;
mod influence;
mod law;
mod melded;
mod metrics;
mod nuisance;
mod numerics;
mod options;
mod permutation;
mod projection;
mod random;
mod repair;
mod shifts;
mod tabulate;
mod tails;
mod units;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fairaudit_core::random::prepare();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    audits::register(module)?;
    bootstrap::register(module)?;
    callable::register(module)?;
    extremes::register(module)?;
    individual::register(module)?;
    influence::register(module)?;
    law::register(module)?;
    melded::register(module)?;
    metrics::register(module)?;
    numerics::register(module)?;
    options::register(module)?;
    permutation::register(module)?;
    projection::register(module)?;
    random::register(module)?;
    shifts::register(module)?;
    tabulate::register(module)?;
    tails::register(module)?;
    units::register(module)?;
    // What there is stands in the stub, and is not listed a second time.
    module.as_any().delattr("__all__")
}
