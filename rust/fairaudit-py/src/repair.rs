//! Repairs of the influence lens: what it costs to change the features of cells.

use fairaudit_core::influence::repair::{Cells, envelopes, nearest, pair_work, reduced_costs};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::influence::{Floats, matrix};
use crate::options::Call;

/// Borrowed cells: features row by row, strata.
struct BorrowedCells<'py>(PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, u32>);

impl BorrowedCells<'_> {
    fn cells(&self) -> PyResult<Cells<'_>> {
        Ok(Cells { rows: matrix(&self.0)?, strata: slice(&self.1)? })
    }

    fn work(&self, other: &Self) -> u64 {
        let [n, width] = [self.0.shape()[0], self.0.shape()[1]];
        pair_work((n as u64).saturating_mul(other.0.shape()[0] as u64), width)
    }
}

/// Where the vertices of each cell start, the cells that they are, what each costs.
type Vertices<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Floats<'py>);

/// For every cell the lower convex envelope of (score, cost) over the cells of its stratum: where its vertices start,
/// the cells that they are, by score, and what each costs.
#[pyfunction]
fn repair_envelopes<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    strata: PyReadonlyArray1<'py, u32>,
    weights: Vec<f64>,
    score: PyReadonlyArray1<'py, f64>,
    call: &Call,
) -> PyResult<Vertices<'py>> {
    let borrowed = BorrowedCells(rows, strata);
    let (cells, score) = (borrowed.cells()?, slice(&score)?);
    let found = call.run(py, borrowed.work(&borrowed), |control| envelopes(cells, &weights, score, control))?;
    let (starts, to) = (PyArray1::from_vec(py, found.starts), PyArray1::from_vec(py, found.to));
    Ok((starts, to, PyArray1::from_vec(py, found.cost)))
}

/// For every cell the least of cost and its slope times the score over the cells of its stratum.
#[pyfunction]
fn repair_reduced_costs<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    strata: PyReadonlyArray1<'py, u32>,
    weights: Vec<f64>,
    score: PyReadonlyArray1<'py, f64>,
    slope: PyReadonlyArray1<'py, f64>,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let borrowed = BorrowedCells(rows, strata);
    let (cells, score, slope) = (borrowed.cells()?, slice(&score)?, slice(&slope)?);
    let work = borrowed.work(&borrowed);
    let found = call.run(py, work, |control| reduced_costs(cells, &weights, score, slope, control))?;
    Ok(PyArray1::from_vec(py, found))
}

/// For every row the nearest of some known rows of its stratum, and how far it is; the number of known rows, and
/// infinity, where there is none.
#[pyfunction]
fn nearest_rows<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    strata: PyReadonlyArray1<'py, u32>,
    known: PyReadonlyArray2<'py, f64>,
    known_strata: PyReadonlyArray1<'py, u32>,
    weights: Vec<f64>,
    call: &Call,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Floats<'py>)> {
    let (rows, known) = (BorrowedCells(rows, strata), BorrowedCells(known, known_strata));
    let (cells, others) = (rows.cells()?, known.cells()?);
    let (place, distance) = call.run(py, rows.work(&known), |control| nearest(cells, others, &weights, control))?;
    Ok((PyArray1::from_vec(py, place), PyArray1::from_vec(py, distance)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(repair_envelopes, module)?)?;
    module.add_function(wrap_pyfunction!(repair_reduced_costs, module)?)?;
    module.add_function(wrap_pyfunction!(nearest_rows, module)?)
}
