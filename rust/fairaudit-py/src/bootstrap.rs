//! Bootstrap replicates, as they are answered.

use fairaudit_core::bootstrap;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Dense, same};
use numpy::ndarray::Ix2;

/// The metric in bootstrap replicates, by replicate and group; variances where they were asked for.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
pub(crate) struct Replicates {
    values: Py<PyArray2<f64>>,
    variances: Option<Py<PyArray2<f64>>>,
}

#[pymethods]
impl Replicates {
    #[new]
    #[pyo3(signature = (values, variances=None))]
    fn new(values: Dense<'_, f64, Ix2>, variances: Option<Dense<'_, f64, Ix2>>) -> Self {
        Self { values: values.into_object(), variances: variances.map(Dense::into_object) }
    }

    fn __getnewargs__(&self) -> (&Py<PyArray2<f64>>, &Option<Py<PyArray2<f64>>>) {
        (&self.values, &self.variances)
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        Ok(same(py, &self.values, &other.values)? && same(py, &self.variances, &other.variances)?)
    }
}

impl Replicates {
    /// Those of the core.
    pub(crate) fn of(py: Python<'_>, replicates: bootstrap::Replicates) -> PyResult<Self> {
        let shape = [replicates.values.len() / replicates.n_groups.max(1), replicates.n_groups];
        let array = |numbers: Vec<f64>| PyArray1::from_vec(py, numbers).reshape(shape).map(Bound::unbind);
        Ok(Self { values: array(replicates.values)?, variances: replicates.variances.map(array).transpose()? })
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Replicates>()
}
