//! The limit laws of the projection statistic.

use fairaudit_core::parallel::Control;
use fairaudit_core::projection::law;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::call::to_python;

/// P(sum of weights times chi-squares with one degree of freedom >= q).
#[pyfunction]
fn weighted_chi_square_tail(weights: Vec<f64>, q: f64) -> f64 {
    law::weighted_chi_square_tail(&weights, q)
}

/// The q that a weighted sum of chi-squares exceeds with probability `tail`.
#[pyfunction]
fn weighted_chi_square_quantile(weights: Vec<f64>, tail: f64) -> f64 {
    law::weighted_chi_square_quantile(&weights, tail)
}

/// Half the eigenvalues of covariance against curvature, matrices row by row.
#[pyfunction]
fn quadratic_weights(
    py: Python<'_>,
    covariance: PyReadonlyArray1<'_, f64>,
    curvature: PyReadonlyArray1<'_, f64>,
) -> PyResult<Vec<f64>> {
    law::quadratic_weights(slice(&covariance)?, slice(&curvature)?).map_err(|error| to_python(py, &error))
}

/// The p-value of a composite null hypothesis, the largest over the vertices of the box; and whether it
/// is a bound.
#[pyfunction]
fn box_tail(
    py: Python<'_>,
    q: f64,
    covariance: PyReadonlyArray1<'_, f64>,
    curvature: PyReadonlyArray1<'_, f64>,
    low: PyReadonlyArray1<'_, f64>,
    high: PyReadonlyArray1<'_, f64>,
) -> PyResult<(f64, bool)> {
    let (covariance, curvature, low, high) = (slice(&covariance)?, slice(&curvature)?, slice(&low)?, slice(&high)?);
    let tail = py.detach(|| law::box_tail(q, covariance, curvature, low, high, &Control::default()));
    tail.map(|tail| (tail.tail, tail.is_bound)).map_err(|error| to_python(py, &error))
}

/// The least q with a `box_tail` of at most `tail`.
#[pyfunction]
fn box_quantile(
    py: Python<'_>,
    tail: f64,
    covariance: PyReadonlyArray1<'_, f64>,
    curvature: PyReadonlyArray1<'_, f64>,
    low: PyReadonlyArray1<'_, f64>,
    high: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let (covariance, curvature, low, high) = (slice(&covariance)?, slice(&curvature)?, slice(&low)?, slice(&high)?);
    let found = py.detach(|| law::box_quantile(tail, covariance, curvature, low, high, &Control::default()));
    found.map(|found| found.q).map_err(|error| to_python(py, &error))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(weighted_chi_square_tail, module)?)?;
    module.add_function(wrap_pyfunction!(weighted_chi_square_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(quadratic_weights, module)?)?;
    module.add_function(wrap_pyfunction!(box_tail, module)?)?;
    module.add_function(wrap_pyfunction!(box_quantile, module)?)
}
