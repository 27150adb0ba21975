//! Correlation with a continuous attribute.

use fairaudit_core::permutation::CorrelationTest;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::options::{Call, Draws};
use crate::permutation::studentize;

/// A permutation test of the correlation of two columns.
#[pyclass(name = "CorrelationTest", frozen, module = "fairaudit_rs._native")]
struct PyCorrelationTest {
    test: CorrelationTest,
}

#[pymethods]
impl PyCorrelationTest {
    #[new]
    #[pyo3(signature = (x, y, studentize, call, stratum=None))]
    fn new(
        py: Python<'_>,
        x: PyReadonlyArray1<'_, f64>,
        y: PyReadonlyArray1<'_, f64>,
        studentize: &str,
        call: &Call,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (x, y, stratum) = (slice(&x)?, slice(&y)?, stratum.as_ref().map(slice).transpose()?);
        let work = 100 * x.len() as u64;
        let test = call.run(py, work, |control| CorrelationTest::new(x, y, stratum, studentize, control))?;
        Ok(Self { test })
    }

    /// The correlation, NaN when a column does not vary.
    fn correlation(&self) -> f64 {
        self.test.correlation()
    }

    /// The variance of the correlation, also where it is not 0.
    fn variance(&self) -> f64 {
        self.test.variance()
    }

    /// The observed statistic.
    fn observed(&self) -> f64 {
        self.test.observed()
    }

    /// The statistic of some permutations.
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let work = (4 * self.test.n_rows() as u64).saturating_mul(draws.n);
        let null = call.run(py, work, |control| self.test.null_distribution(&draws.core(), control))?;
        Ok(PyArray1::from_vec(py, null))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCorrelationTest>()
}
