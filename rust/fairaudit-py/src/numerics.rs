//! Quantiles and intervals.

use fairaudit_core::numerics::laws;
use fairaudit_core::{Error, Result};
use pyo3::prelude::*;

use crate::options::Call;

/// The z with Phi(z) = p.
#[pyfunction]
fn normal_quantile(py: Python<'_>, p: f64) -> PyResult<f64> {
    Call::brief(py, || Ok(laws::normal_quantile(p)))
}

/// The exact interval of a binomial probability.
#[pyfunction]
fn clopper_pearson(py: Python<'_>, successes: u64, trials: u64, level: f64) -> PyResult<(f64, f64)> {
    Call::brief(py, || Ok(laws::clopper_pearson(successes.min(trials), trials, probability("level", level)?)))
}

/// The p-quantile of the beta law with parameters a, b of at least 1.
#[pyfunction]
fn beta_quantile(py: Python<'_>, a: f64, b: f64, p: f64) -> PyResult<f64> {
    Call::brief(py, || Ok(laws::beta_quantile(count("a", a)?, count("b", b)?, probability("p", p)?)))
}

/// What floats count to: beyond, the search for a quantile takes minutes.
fn count(name: &str, value: f64) -> Result<f64> {
    if (1.0..=9_007_199_254_740_992.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::argument(name, value, "a number from 1 to 2^53"))
}

fn probability(name: &str, value: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::argument(name, value, "a number from 0 to 1"))
}

/// The probability of Student's t above a number.
#[pyfunction]
fn t_upper_tail(py: Python<'_>, t: f64, df: f64) -> PyResult<f64> {
    Call::brief(py, || Ok(laws::t_upper_tail(t, df)))
}

/// The number that Student's t exceeds with a probability.
#[pyfunction]
fn t_tail_quantile(py: Python<'_>, tail: f64, df: f64) -> PyResult<f64> {
    Call::brief(py, || Ok(laws::t_tail_quantile(tail, df)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(beta_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(normal_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(t_tail_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(t_upper_tail, module)?)?;
    module.add_function(wrap_pyfunction!(clopper_pearson, module)?)
}
