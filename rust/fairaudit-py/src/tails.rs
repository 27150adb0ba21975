//! Beside the intervals of the extremes lens: block maxima, and how well a law describes a tail.

use fairaudit_core::Error;
use fairaudit_core::extremes::diagnostics::{self, Goodness, QUANTILE_WORK, goodness_work, stability_work};
use fairaudit_core::extremes::gev::{self, End, Law};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::call::to_python;
use crate::influence::{Floats, Matrix};
use crate::options::{Call, Draws};

type Numbers<'py> = PyReadonlyArray1<'py, f64>;
/// Location, scale, shape.
type Parameters = (f64, f64, f64);
/// The law, its log likelihood, the steepest slope, the covariance row by row, how the fit ended.
type Maxima = (Parameters, f64, f64, Option<[f64; 9]>, &'static str);
/// Shape and scale of the fit, whether it is at the edge, A^2, replicates as far off, replicates at the edge.
type Fitted = (f64, f64, bool, f64, u64, u64);

/// Fits the extreme value law to block maxima.
#[pyfunction]
fn gev_fit(py: Python<'_>, maxima: Numbers<'_>, call: &Call) -> PyResult<Maxima> {
    let maxima = slice(&maxima)?;
    let found = call.run(py, gev::fit_work(maxima.len()), |control| gev::fit(maxima, control))?;
    let Law { location, scale, shape } = found.law;
    let end = match found.end {
        End::Converged => "converged",
        End::LowestShape => "lowest shape",
        End::HighestShape => "highest shape",
        End::NotConverged => "not converged",
    };
    Ok(((location, scale, shape), found.log_likelihood, found.slope, found.covariance, end))
}

/// The level that one row in m exceeds, of blocks of `block_size` rows.
#[pyfunction]
fn gev_return_level(py: Python<'_>, law: Parameters, block_size: f64, m: f64) -> PyResult<f64> {
    Call::brief(py, || gev::return_level(law_of(law), block_size, m))
}

/// The profile-likelihood interval of the level that one row in m exceeds.
#[pyfunction]
fn gev_return_level_interval(
    py: Python<'_>,
    maxima: Numbers<'_>,
    block_size: f64,
    m: f64,
    confidence: f64,
    call: &Call,
) -> PyResult<(f64, f64)> {
    let maxima = slice(&maxima)?;
    call.run(py, gev::interval_work(maxima.len()), |control| {
        gev::return_level_interval(maxima, block_size, m, confidence, control)
    })
}

/// The law of the largest of m rows, m k / n of which are expected above the threshold of a Pareto fit.
#[pyfunction]
fn gev_of_excesses(py: Python<'_>, threshold: f64, scale: f64, shape: f64, expected: f64) -> PyResult<Parameters> {
    if !(expected > 0.0 && expected.is_finite()) {
        return Err(to_python(py, &Error::argument("expected", expected, "a finite number above 0")));
    }
    let Law { location, scale, shape } = Call::brief(py, || Ok(Law::of_excesses(threshold, scale, shape, expected)))?;
    Ok((location, scale, shape))
}

/// Scale of the excesses over a threshold, and how many rows of a block are expected above it.
#[pyfunction]
fn gev_excesses(py: Python<'_>, law: Parameters, threshold: f64) -> PyResult<(f64, f64)> {
    Call::brief(py, || Ok(law_of(law).excesses(threshold)))
}

fn law_of((location, scale, shape): Parameters) -> Law {
    Law { location, scale, shape }
}

/// sd / mean of the k excesses over the (k+1)-th largest value, or of the k largest themselves.
#[pyfunction]
fn tail_variations<'py>(
    py: Python<'py>,
    values: Numbers<'_>,
    ks: Vec<usize>,
    residual: bool,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let values = slice(&values)?;
    let work = (10 * values.len() + 3 * ks.iter().sum::<usize>()) as u64;
    let found = call.run(py, work, |control| diagnostics::variations(values, &ks, residual, control))?;
    Ok(PyArray1::from_vec(py, found))
}

/// The first k of the table of critical values of the residual coefficient of variation, and those from there on.
#[pyfunction]
fn critical_variations(py: Python<'_>, level: f64) -> PyResult<(usize, Floats<'_>)> {
    let found = Call::brief(py, || diagnostics::critical_variations(level))?;
    Ok((found.0, PyArray1::from_vec(py, found.1)))
}

/// The test of Anderson and Darling with the parametric bootstrap.
#[pyfunction]
fn tail_goodness(py: Python<'_>, excesses: Numbers<'_>, draws: &Draws, call: &Call) -> PyResult<Fitted> {
    let (excesses, draws) = (slice(&excesses)?, draws.core());
    let work = draws.n().saturating_mul(goodness_work(excesses.len()));
    call.run(py, work, |control| diagnostics::goodness(excesses, &draws, control)).map(|found| fitted(&found))
}

/// The same over the (k+1)-th largest value for every k; None where excesses are tied with it.
#[pyfunction]
fn tail_goodness_by_threshold(
    py: Python<'_>,
    values: Numbers<'_>,
    ks: Vec<usize>,
    draws: &Draws,
    call: &Call,
) -> PyResult<Vec<Option<Fitted>>> {
    let (values, draws) = (slice(&values)?, draws.core());
    let one: u64 = ks.iter().map(|&k| goodness_work(k)).sum();
    let work = draws.n().saturating_mul(one).saturating_add(10 * values.len() as u64);
    let found = call.run(py, work, |control| diagnostics::goodness_by_threshold(values, &ks, &draws, control))?;
    Ok(found.iter().map(|one| one.as_ref().map(fitted)).collect())
}

fn fitted(found: &Goodness) -> Fitted {
    let Goodness { fit, statistic, n_extreme, n_at_edge } = *found;
    (fit.shape, fit.scale, fit.at_edge, statistic, n_extreme, n_at_edge)
}

/// How many of the first of ordered hypotheses are rejected at a false discovery rate.
#[pyfunction]
fn forward_stop(py: Python<'_>, pvalues: Vec<f64>, rate: f64) -> PyResult<usize> {
    Call::brief(py, || Ok(diagnostics::forward_stop(&pvalues, rate)))
}

/// Rows of observed excess, fitted quantile and its band, ascending.
#[pyfunction]
fn tail_quantiles<'py>(
    py: Python<'py>,
    excesses: Numbers<'_>,
    shape: f64,
    scale: f64,
    confidence: f64,
    call: &Call,
) -> PyResult<Matrix<'py>> {
    let excesses = slice(&excesses)?;
    let work = QUANTILE_WORK * excesses.len() as u64;
    let rows = call.run(py, work, |control| diagnostics::quantiles(excesses, shape, scale, confidence, control))?;
    let numbers: Vec<f64> = rows.iter().flat_map(|row| [row.observed, row.fitted, row.low, row.high]).collect();
    PyArray1::from_vec(py, numbers).reshape([rows.len(), 4])
}

/// Rows of k, threshold, shape, scale and the level that one value in m exceeds; NaN where excesses are tied with the
/// threshold.
#[pyfunction]
fn tail_stability<'py>(
    py: Python<'py>,
    values: Numbers<'_>,
    ks: Vec<usize>,
    m: f64,
    call: &Call,
) -> PyResult<Matrix<'py>> {
    let values = slice(&values)?;
    let work = stability_work(&ks) + 10 * values.len() as u64;
    let rows = call.run(py, work, |control| diagnostics::stability(values, &ks, m, control))?;
    let numbers = rows.iter().flat_map(|row| {
        let (shape, scale) = row.fit.map_or((f64::NAN, f64::NAN), |fit| (fit.shape, fit.scale));
        [row.k as f64, row.threshold, shape, scale, row.level]
    });
    PyArray1::from_vec(py, numbers.collect()).reshape([rows.len(), 5])
}

/// Shape and scale of Zhang and Stephens.
#[pyfunction]
fn zhang_stephens(py: Python<'_>, excesses: Numbers<'_>, call: &Call) -> PyResult<(f64, f64)> {
    let excesses = slice(&excesses)?;
    let work = excesses.len() as u64 * (20 + excesses.len().isqrt() as u64) * 20;
    call.run(py, work, |control| diagnostics::zhang_stephens(excesses, control))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gev_fit, module)?)?;
    module.add_function(wrap_pyfunction!(gev_return_level, module)?)?;
    module.add_function(wrap_pyfunction!(gev_return_level_interval, module)?)?;
    module.add_function(wrap_pyfunction!(gev_of_excesses, module)?)?;
    module.add_function(wrap_pyfunction!(gev_excesses, module)?)?;
    module.add_function(wrap_pyfunction!(tail_variations, module)?)?;
    module.add_function(wrap_pyfunction!(critical_variations, module)?)?;
    module.add_function(wrap_pyfunction!(tail_goodness, module)?)?;
    module.add_function(wrap_pyfunction!(tail_goodness_by_threshold, module)?)?;
    module.add_function(wrap_pyfunction!(forward_stop, module)?)?;
    module.add_function(wrap_pyfunction!(tail_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(tail_stability, module)?)?;
    module.add_function(wrap_pyfunction!(zhang_stephens, module)?)
}
