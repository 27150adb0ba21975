//! The individual lens: flows, losses, moments.

use std::str::FromStr;

use fairaudit_core::Error;
use fairaudit_core::individual::kernel::{self, Function, Model, Penalty};
use fairaudit_core::individual::linear::{self, flow};
use fairaudit_core::individual::{Rows, Schedule, bootstrap, losses as losses_of, moments as moments_of};
use fairaudit_core::parallel::Control;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::bootstrap::Replicates;
use crate::call::to_python;
use crate::options::{Call, Draws};

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

impl Steps {
    fn schedule(self, py: Python<'_>) -> PyResult<Schedule> {
        let solver = parsed(py, &self.solver)?;
        Schedule::new(self.number, self.size, self.decay, solver, self.record).map_err(|error| to_python(py, &error))
    }
}

/// A choice by its name.
fn parsed<T: FromStr<Err = Error>>(py: Python<'_>, name: &str) -> PyResult<T> {
    name.parse().map_err(|error| to_python(py, &error))
}

/// The flow of a linear model: scores of all rows after each recorded step, and how far they moved
/// along the coefficients, for each eigenvalue of the metric. `steps` are (number, size, decay,
/// solver, recorded steps), `model` (coefficients, intercepts) score by score, `eigenvalues` (2
/// penalty times it, W P W' of the coefficients W and the projection P that belongs to it).
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the arguments of a Python function
fn linear_flow<'py>(
    py: Python<'py>,
    features: PyReadonlyArray1<'_, f64>,
    targets: PyReadonlyArray1<'_, f64>,
    loss: &str,
    model: (PyReadonlyArray1<'_, f64>, Vec<f64>),
    eigenvalues: (Vec<f64>, Vec<f64>),
    steps: Steps,
    call: &Call,
) -> PyResult<(Floats<'py>, Floats<'py>)> {
    let (pulls, gains) = eigenvalues;
    let loss = parsed(py, loss)?;
    let (number, schedule) = (steps.number as u64, steps.schedule(py)?);
    let rows = Rows { features: slice(&features)?, targets: slice(&targets)? };
    let model = linear::Model { coef: slice(&model.0)?, intercepts: &model.1 };
    let numbers = (rows.targets.len() as u64).saturating_mul(2 + gains.len() as u64 / 2);
    let work = numbers.saturating_mul(number) / 2;
    let run_it = |control: &Control| flow(rows, loss, model, &pulls, &gains, &schedule, control);
    let done = call.run(py, work, run_it)?;
    Ok((PyArray1::from_vec(py, done.scores), PyArray1::from_vec(py, done.moved)))
}

/// A kernel model, as it comes from Python.
#[derive(FromPyObject)]
struct KernelModel<'py> {
    #[pyo3(item(0))]
    support_vectors: PyReadonlyArray1<'py, f64>,
    #[pyo3(item(1))]
    dual_coef: PyReadonlyArray1<'py, f64>,
    #[pyo3(item(2))]
    intercepts: Vec<f64>,
    #[pyo3(item(3))]
    function: String,
    #[pyo3(item(4))]
    gamma: f64,
    #[pyo3(item(5))]
    degree: u32,
    #[pyo3(item(6))]
    coef0: f64,
}

/// The flow of a kernel model: scores of all rows after each recorded step, and how far they moved,
/// in units of the features. `steps` are as for `linear_flow`, `model` is (support vectors,
/// coefficients score by score, intercepts, kernel, gamma, degree, coef0), `metric` (2 penalty times
/// the eigenvalues, eigenvectors one after the other, 2 penalty times the eigenvalue of the rest).
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the arguments of a Python function
fn kernel_flow<'py>(
    py: Python<'py>,
    features: PyReadonlyArray1<'_, f64>,
    targets: PyReadonlyArray1<'_, f64>,
    loss: &str,
    model: KernelModel<'_>,
    metric: (Vec<f64>, PyReadonlyArray1<'_, f64>, f64),
    units: PyReadonlyArray1<'_, f64>,
    steps: Steps,
    call: &Call,
) -> PyResult<(Floats<'py>, Floats<'py>)> {
    let loss = parsed(py, loss)?;
    let schedule = steps.schedule(py)?;
    let function = Function::new(&model.function, model.gamma, model.degree, model.coef0)
        .map_err(|error| to_python(py, &error))?;
    let expansion = Model {
        support_vectors: slice(&model.support_vectors)?,
        dual_coef: slice(&model.dual_coef)?,
        intercepts: &model.intercepts,
        function,
    };
    let (pulls, eigenvectors, rest) = (&metric.0, slice(&metric.1)?, metric.2);
    let penalty = Penalty { units: slice(&units)?, pulls, eigenvectors, rest };
    let rows = Rows { features: slice(&features)?, targets: slice(&targets)? };
    let work = kernel::work(rows, expansion, &schedule);
    let run_it = |control: &Control| kernel::flow(rows, loss, expansion, penalty, &schedule, control);
    let done = call.run(py, work, run_it)?;
    Ok((PyArray1::from_vec(py, done.scores), PyArray1::from_vec(py, done.moved)))
}

/// The loss of every row; scores come score by score.
#[pyfunction]
fn losses<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray1<'_, f64>,
    targets: PyReadonlyArray1<'_, f64>,
    loss: &str,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let (scores, targets, loss) = (slice(&scores)?, slice(&targets)?, parsed(py, loss)?);
    let work = 3 * scores.len() as u64;
    let losses = call.run(py, work, |control| losses_of(scores, targets, loss, control))?;
    Ok(PyArray1::from_vec(py, losses))
}

/// Mean, and sum of the squared deviations from it; their bits do not depend on the order.
#[pyfunction]
fn moments(py: Python<'_>, values: PyReadonlyArray1<'_, f64>, call: &Call) -> PyResult<(f64, f64)> {
    let values = slice(&values)?;
    let work = 10 * values.len() as u64;
    call.on_one_thread(py).run(py, work, |control| moments_of(values, control))
}

/// Replicates of a mean, or of a ratio of sums, of one group.
#[pyfunction]
fn bootstrap_ratio(
    py: Python<'_>,
    numerator: PyReadonlyArray1<'_, f64>,
    denominator: Option<PyReadonlyArray1<'_, f64>>,
    draws: &Draws,
    call: &Call,
) -> PyResult<Replicates> {
    let numerator = slice(&numerator)?;
    let denominator = denominator.as_ref().map(slice).transpose()?;
    let work = (numerator.len() as u64).saturating_mul(draws.n);
    let replicates = call.run(py, work, |control| bootstrap(numerator, denominator, &draws.core(), control))?;
    Replicates::of(py, replicates)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bootstrap_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_flow, module)?)?;
    module.add_function(wrap_pyfunction!(linear_flow, module)?)?;
    module.add_function(wrap_pyfunction!(losses, module)?)?;
    module.add_function(wrap_pyfunction!(moments, module)?)
}
