//! The limit law of the projection statistic.

use fairaudit_core::projection::law::BoxLaw;
use pyo3::prelude::*;

use crate::arrays::Dense;
use crate::options::Call;

/// Estimated nanoseconds of the tail of a box: one line, a circle, or a lattice of many rays.
fn box_work(coordinates: usize) -> u64 {
    match coordinates {
        0 | 1 => 10_000,
        2 => 4_000_000,
        _ => u64::MAX,
    }
}

/// P(T >= q) under the worst mean in the box.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct BoxTail {
    tail: f64,
    /// An estimate of how far off it is.
    error: f64,
    /// Whether it is an upper bound that the numerics did not look behind.
    is_bound: bool,
}

/// The law of the statistic where the criteria, times the root of the number of rows, may lie in a box.
#[pyclass(name = "BoxLaw", frozen, module = "fairaudit_rs._native")]
struct PyBoxLaw {
    law: BoxLaw,
    tail_work: u64,
}

#[pymethods]
impl PyBoxLaw {
    /// Matrices row by row.
    #[new]
    #[pyo3(signature = (covariance, curvature, low, high, call=None))]
    fn new(
        py: Python<'_>,
        covariance: Dense<'_, f64>,
        curvature: Dense<'_, f64>,
        low: Dense<'_, f64>,
        high: Dense<'_, f64>,
        call: Option<&Call>,
    ) -> PyResult<Self> {
        let (covariance, curvature, low, high): (&[f64], &[f64], &[f64], &[f64]) =
            (&covariance, &curvature, &low, &high);
        // Some sweeps over the rows and columns of a matrix.
        let work = 50 * (covariance.len() * covariance.len().isqrt()) as u64;
        let law = Call::or_ordinary(call).run(py, work, |_| BoxLaw::new(covariance, curvature, low, high))?;
        let tail_work = if law.is_fixed() { 5_000 * low.len() as u64 } else { box_work(low.len()) };
        Ok(Self { law, tail_work })
    }

    fn tail(&self, py: Python<'_>, q: f64, call: &Call) -> PyResult<BoxTail> {
        let found = call.on_one_thread(py).run(py, self.tail_work, |control| self.law.tail(q, control))?;
        Ok(BoxTail { tail: found.tail, error: found.error, is_bound: found.is_bound })
    }

    /// The least q with a tail of at most `tail`.
    fn quantile(&self, py: Python<'_>, tail: f64, call: &Call) -> PyResult<f64> {
        let work = self.tail_work.saturating_mul(30);
        let found = call.on_one_thread(py).run(py, work, |control| self.law.quantile(tail, control))?;
        Ok(found.q)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BoxTail>()?;
    module.add_class::<PyBoxLaw>()
}
