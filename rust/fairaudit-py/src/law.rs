//! The limit laws of the projection statistic.

use fairaudit_core::parallel::Control;
use fairaudit_core::projection::law;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::options::Call;

/// Estimated nanoseconds of an integral along a contour.
fn contour_work(weights: &[f64]) -> u64 {
    5_000 * weights.len() as u64
}

/// Estimated nanoseconds of the tail of a box: one line, a circle, or a lattice of many rays.
fn box_work(coordinates: usize) -> u64 {
    match coordinates {
        0 | 1 => 10_000,
        2 => 4_000_000,
        _ => u64::MAX,
    }
}

/// P(sum of weights times chi-squares with one degree of freedom >= q).
#[pyfunction]
#[pyo3(signature = (weights, q, call=None))]
fn weighted_chi_square_tail(py: Python<'_>, weights: Vec<f64>, q: f64, call: Option<&Call>) -> PyResult<f64> {
    Call::or_ordinary(call).run(py, contour_work(&weights), |_| Ok(law::weighted_chi_square_tail(&weights, q)))
}

/// The q that a weighted sum of chi-squares exceeds with probability `tail`.
#[pyfunction]
#[pyo3(signature = (weights, tail, call=None))]
fn weighted_chi_square_quantile(py: Python<'_>, weights: Vec<f64>, tail: f64, call: Option<&Call>) -> PyResult<f64> {
    let work = 30 * contour_work(&weights);
    Call::or_ordinary(call).run(py, work, |_| Ok(law::weighted_chi_square_quantile(&weights, tail)))
}

/// Half the eigenvalues of covariance against curvature, matrices row by row.
#[pyfunction]
#[pyo3(signature = (covariance, curvature, call=None))]
fn quadratic_weights(
    py: Python<'_>,
    covariance: PyReadonlyArray1<'_, f64>,
    curvature: PyReadonlyArray1<'_, f64>,
    call: Option<&Call>,
) -> PyResult<Vec<f64>> {
    let (covariance, curvature) = (slice(&covariance)?, slice(&curvature)?);
    // Some sweeps over the rows and columns of a matrix.
    let work = 50 * (covariance.len() * covariance.len().isqrt()) as u64;
    Call::or_ordinary(call).run(py, work, |_| law::quadratic_weights(covariance, curvature))
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
    call: &Call,
) -> PyResult<(f64, bool)> {
    let (covariance, curvature, low, high) = (slice(&covariance)?, slice(&curvature)?, slice(&low)?, slice(&high)?);
    let find = |control: &Control| law::box_tail(q, covariance, curvature, low, high, control);
    let found = call.on_one_thread(py).run(py, box_work(low.len()), find)?;
    Ok((found.tail, found.is_bound))
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
    call: &Call,
) -> PyResult<f64> {
    let (covariance, curvature, low, high) = (slice(&covariance)?, slice(&curvature)?, slice(&low)?, slice(&high)?);
    let find = |control: &Control| law::box_quantile(tail, covariance, curvature, low, high, control);
    let found = call.on_one_thread(py).run(py, box_work(low.len()).saturating_mul(20), find)?;
    Ok(found.q)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(weighted_chi_square_tail, module)?)?;
    module.add_function(wrap_pyfunction!(weighted_chi_square_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(quadratic_weights, module)?)?;
    module.add_function(wrap_pyfunction!(box_tail, module)?)?;
    module.add_function(wrap_pyfunction!(box_quantile, module)?)
}
