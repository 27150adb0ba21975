//! Cuts of the extremes lens: the null laws of signed roots, shipped or simulated.

use fairaudit_core::extremes::cuts::{
    Cuts, Design, N_NODES, N_QUANTILES, PROBABILITIES, nodes, replicate_work, simulate_levels, simulate_shape,
};
use fairaudit_core::extremes::tables::{TABLED, default_k, designs_of, level_cuts, rows_of, shape_cuts};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::influence::matrix;
use crate::options::{Call, Draws};

/// A number of exceedances, the rows it is the default of, horizons in exceedances with their n.
type Tabled = (usize, f64, Vec<(f64, f64)>);

/// Quantiles of a signed root, a row for each shape.
#[pyclass(name = "Cuts", frozen, module = "fairaudit_rs._native")]
pub(crate) struct PyCuts {
    pub(crate) core: Cuts,
}

#[pymethods]
impl PyCuts {
    #[new]
    fn new(py: Python<'_>, values: PyReadonlyArray2<'_, f64>) -> PyResult<Self> {
        let values = matrix(&values)?;
        let core = Call::brief(py, || Cuts::new(values))?;
        Ok(Self { core })
    }

    /// The shipped ones of a return level: of horizon `m`, from `k` exceedances among `n` rows.
    #[staticmethod]
    fn of_level(py: Python<'_>, k: usize, n: f64, m: f64) -> PyResult<Option<Self>> {
        let found = Call::brief(py, || level_cuts(k, n, m))?;
        Ok(found.map(|core| Self { core }))
    }

    /// The shipped ones of the shape.
    #[staticmethod]
    fn of_shape(py: Python<'_>, k: usize) -> PyResult<Option<Self>> {
        let found = Call::brief(py, || shape_cuts(k))?;
        Ok(found.map(|core| Self { core }))
    }

    /// The quantiles, a row for each shape.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        PyArray1::from_vec(py, self.core.values()).reshape([N_NODES, N_QUANTILES])
    }

    /// Phi^-1 of the null probability of a root at a shape.
    fn z(&self, py: Python<'_>, root: f64, shape: f64) -> PyResult<f64> {
        Call::brief(py, || Ok(self.core.z(root, shape)))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray2<f64>>,)> {
        Ok((self.values(py)?,))
    }
}

/// The shapes and the probabilities that cuts stand for.
#[pyfunction]
fn cut_grid() -> (Vec<f64>, Vec<f64>) {
    (nodes().to_vec(), PROBABILITIES.to_vec())
}

/// The default number of exceedances of `n` rows.
#[pyfunction]
fn default_exceedances(py: Python<'_>, n: u64) -> PyResult<usize> {
    Call::brief(py, || Ok(default_k(n)))
}

/// What is shipped: each number of exceedances with the rows it is the default of, and its horizons in exceedances with
/// their n.
#[pyfunction]
fn tabled_designs() -> Vec<Tabled> {
    let designs = |k| designs_of(k).into_iter().map(|design| (design.horizon, design.n)).collect();
    TABLED.iter().map(|&k| (k, rows_of(k), designs(k))).collect()
}

/// Cuts of return levels at `designs` (horizon in exceedances, n) from `k` exceedances, of the same samples.
#[pyfunction]
fn simulate_level_cuts(
    py: Python<'_>,
    k: usize,
    designs: Vec<(f64, f64)>,
    draws: &Draws,
    call: &Call,
) -> PyResult<Vec<PyCuts>> {
    let designs: Vec<Design> = designs.into_iter().map(|(horizon, n)| Design { horizon, n }).collect();
    let work = draws.n * replicate_work(k, designs.len());
    let found = call.run(py, work, |control| simulate_levels(k, &designs, &draws.core(), control))?;
    Ok(found.into_iter().map(|core| PyCuts { core }).collect())
}

/// Cuts of the shape from `k` exceedances.
#[pyfunction]
fn simulate_shape_cuts(py: Python<'_>, k: usize, draws: &Draws, call: &Call) -> PyResult<PyCuts> {
    let work = draws.n * replicate_work(k, 1);
    let core = call.run(py, work, |control| simulate_shape(k, &draws.core(), control))?;
    Ok(PyCuts { core })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCuts>()?;
    module.add_function(wrap_pyfunction!(cut_grid, module)?)?;
    module.add_function(wrap_pyfunction!(default_exceedances, module)?)?;
    module.add_function(wrap_pyfunction!(tabled_designs, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_level_cuts, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_shape_cuts, module)?)
}
