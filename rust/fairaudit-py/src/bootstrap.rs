//! Bootstrap replicates of counts; those of rows belong to `RowTest`.

use fairaudit_core::bootstrap::{Replicates, of_counts};
use fairaudit_core::tabulate::Table;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::call::to_python;
use crate::metrics::PyMetric;
use crate::options::{Call, Draws};

/// Value, variance, value, variance, ... of the metric, by replicate and group (fastest).
pub(crate) fn flat(py: Python<'_>, replicates: Replicates) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, replicates.into_iter().flat_map(|(value, variance)| [value, variance]).collect())
}

/// Resamples the rows of every group; `counts` in the order stratum, group, class.
#[pyfunction]
fn bootstrap_counts<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'_, u64>,
    n_groups: usize,
    metric: &PyMetric,
    draws: &Draws,
    call: &Call,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let table = Table::new(slice(&counts)?.to_vec(), n_groups, metric.metric.n_classes())
        .map_err(|error| to_python(py, &error))?;
    let work = (100 * (n_groups * metric.metric.n_classes()) as u64).saturating_mul(draws.n);
    let replicates = call.run(py, work, |control| of_counts(&table, &metric.metric, &draws.core(), control))?;
    Ok(flat(py, replicates))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bootstrap_counts, module)?)
}
