//! The individual lens: flows, losses, moments.

use fairaudit_core::individual::linear::{Rows, flow};
use fairaudit_core::individual::{Schedule, bootstrap, log_loss as losses_of, moments as moments_of};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::bootstrap::flat;
use crate::call::{Run, run, run_shared, to_python};

type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// Steps of a flow, as they come from Python.
#[derive(FromPyObject)]
struct Steps {
    #[pyo3(item(0))]
    number: usize,
    #[pyo3(item(1))]
    size: f64,
    #[pyo3(item(2))]
    decay: f64,
    #[pyo3(item(3))]
    solver: String,
    #[pyo3(item(4))]
    record: Vec<usize>,
}

/// The flow of a linear model: scores of all rows after each recorded step, and how far they moved
/// along each eigenvalue of the metric. `steps` are (number, size, decay, solver, recorded steps),
/// `eigenvalues` are (2 penalty times it, squared length of the coefficients that belong to it).
#[pyfunction]
#[pyo3(signature = (features, positive, coef, intercept, eigenvalues, steps, n_threads=None, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of a Python function
fn linear_flow<'py>(
    py: Python<'py>,
    features: PyReadonlyArray1<'_, f64>,
    positive: PyReadonlyArray1<'_, bool>,
    coef: PyReadonlyArray1<'_, f64>,
    intercept: f64,
    eigenvalues: (Vec<f64>, Vec<f64>),
    steps: Steps,
    n_threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Floats<'py>, Floats<'py>)> {
    let (pulls, gains) = eigenvalues;
    let solver = steps.solver.parse().map_err(|error| to_python(py, &error))?;
    let schedule = Schedule::new(steps.number, steps.size, steps.decay, solver, steps.record)
        .map_err(|error| to_python(py, &error))?;
    let rows = Rows { features: slice(&features)?, positive: slice(&positive)?, coef: slice(&coef)?, intercept };
    let numbers = (rows.positive.len() as u64).saturating_mul(2 + pulls.len() as u64 / 2);
    let work = numbers.saturating_mul(steps.number as u64) / 2;
    let done = run(Run { py, n_threads, progress, work }, |control| flow(rows, &pulls, &gains, &schedule, control))?;
    Ok((PyArray1::from_vec(py, done.scores), PyArray1::from_vec(py, done.moved)))
}

/// log(1 + exp(-s score)) of every row, s = 1 for a positive label and -1 for another.
#[pyfunction]
#[pyo3(signature = (scores, positive, n_threads=None))]
fn log_loss<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray1<'_, f64>,
    positive: PyReadonlyArray1<'_, bool>,
    n_threads: Option<usize>,
) -> PyResult<Floats<'py>> {
    let (scores, positive) = (slice(&scores)?, slice(&positive)?);
    let work = 3 * scores.len() as u64;
    let losses =
        run_shared(Run { py, n_threads, progress: None, work }, |control| losses_of(scores, positive, control))?;
    Ok(PyArray1::from_vec(py, losses))
}

/// Mean, and sum of the squared deviations from it; their bits do not depend on the order.
#[pyfunction]
fn moments(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<(f64, f64)> {
    let values = slice(&values)?;
    Ok(py.detach(|| moments_of(values)))
}

/// Replicates of a mean, or of a ratio of sums: (value, variance) one after the other.
#[pyfunction]
#[pyo3(signature = (numerator, denominator, n_resamples, seed, n_threads=None))]
fn bootstrap_ratio<'py>(
    py: Python<'py>,
    numerator: PyReadonlyArray1<'_, f64>,
    denominator: Option<PyReadonlyArray1<'_, f64>>,
    n_resamples: u64,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Floats<'py>> {
    let numerator = slice(&numerator)?;
    let denominator = denominator.as_ref().map(slice).transpose()?;
    let work = (numerator.len() as u64).saturating_mul(n_resamples);
    let replicates = run(Run { py, n_threads, progress: None, work }, |control| {
        bootstrap(numerator, denominator, n_resamples, seed, control)
    })?;
    Ok(flat(py, replicates))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bootstrap_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(linear_flow, module)?)?;
    module.add_function(wrap_pyfunction!(log_loss, module)?)?;
    module.add_function(wrap_pyfunction!(moments, module)?)
}
