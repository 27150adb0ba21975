//! Limits of the values of groups at random levels, as they are answered.

use fairaudit_core::melded::{self, gaffke, poisson_binomial as events};
use fairaudit_core::simd::InstructionSet;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{Dense, same};
use crate::options::{Call, Draws};

/// Upper and lower limits of the value of a group, one of each by replicate.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Limits {
    upper: Py<PyArray1<f64>>,
    lower: Py<PyArray1<f64>>,
}

#[pymethods]
impl Limits {
    #[new]
    fn new(upper: Dense<'_, f64>, lower: Dense<'_, f64>) -> Self {
        Self { upper: upper.into_object(), lower: lower.into_object() }
    }

    fn __getnewargs__(&self) -> (&Py<PyArray1<f64>>, &Py<PyArray1<f64>>) {
        (&self.upper, &self.lower)
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        Ok(same(py, &self.upper, &other.upper)? && same(py, &self.lower, &other.lower)?)
    }
}

impl Limits {
    fn of(py: Python<'_>, limits: melded::Limits) -> Self {
        let array = |numbers: Vec<f64>| PyArray1::from_vec(py, numbers).unbind();
        Self { upper: array(limits.upper), lower: array(limits.lower) }
    }
}

/// Limits of a mean of values in a known range.
#[pyfunction]
#[pyo3(signature = (numerator, denominator, bounds, group, draws, call))]
fn gaffke_limits(
    py: Python<'_>,
    numerator: Dense<'_, f64>,
    denominator: Option<Dense<'_, f64>>,
    bounds: (f64, f64),
    group: u64,
    draws: &Draws,
    call: &Call,
) -> PyResult<Limits> {
    let values = gaffke::Values { numerator: &numerator, denominator: denominator.as_deref(), range: bounds };
    let draws = draws.core();
    let limits = call.run(py, gaffke::work(numerator.len(), draws.n()), |control| {
        gaffke::limits(&values, group, &draws, InstructionSet::current()?, control)
    })?;
    Ok(Limits::of(py, limits))
}

/// Limits of the mean residual of events with scores.
#[pyfunction]
fn poisson_binomial_limits(
    py: Python<'_>,
    score: Dense<'_, f64>,
    n_events: u64,
    group: u64,
    draws: &Draws,
    call: &Call,
) -> PyResult<Limits> {
    let (scores, draws): (&[f64], _) = (&score, draws.core());
    let limits = call.run(py, events::work(scores.len(), n_events, draws.n()), |control| {
        events::limits(scores, n_events, group, &draws, InstructionSet::current()?, control)
    })?;
    Ok(Limits::of(py, limits))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Limits>()?;
    module.add_function(wrap_pyfunction!(gaffke_limits, module)?)?;
    module.add_function(wrap_pyfunction!(poisson_binomial_limits, module)?)
}
