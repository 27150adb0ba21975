//! Rows to cells.

use fairaudit_core::tabulate::distinct::distinct_rows as kinds_of;
use fairaudit_core::tabulate::{
    SCORE_UNIT, bin_scores as bins_of, encode as encode_rows, read_csv as rows_of, tabulate as count_rows,
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{ArrayColumn, not_contiguous, slice};
use crate::options::Call;

type Tabulation<'py> =
    (Vec<Bound<'py, PyArray1<usize>>>, Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);

/// Distinct combinations of the columns' values: rows that hold each value, codes of each
/// cell, counts, score sums in units of 2^-30.
#[pyfunction]
#[pyo3(signature = (columns, limits, call, score=None))]
fn tabulate<'py>(
    py: Python<'py>,
    columns: Vec<ArrayColumn<'py>>,
    limits: Vec<usize>,
    call: &Call,
    score: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Tabulation<'py>> {
    let slices = columns.iter().map(ArrayColumn::as_column).collect::<PyResult<Vec<_>>>()?;
    let score = score.as_ref().map(slice).transpose()?;
    let work = 2 * slices.iter().map(|column| column.len() as u64).sum::<u64>();
    let table = call.run(py, work, |control| count_rows(&slices, &limits, score, control))?;
    let rows = table.value_rows.into_iter().map(|rows| PyArray1::from_vec(py, rows)).collect();
    let codes = PyArray1::from_iter(py, table.codes.iter().flatten().copied());
    let codes = numpy::PyArrayMethods::reshape(&codes, [table.counts.len(), limits.len()])?;
    Ok((rows, codes, PyArray1::from_vec(py, table.counts), PyArray1::from_vec(py, table.score_sums)))
}

type Encoding<'py> =
    (Vec<Bound<'py, PyArray1<usize>>>, Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

/// As `tabulate`, and the cell of every row.
#[pyfunction]
fn encode<'py>(
    py: Python<'py>,
    columns: Vec<ArrayColumn<'py>>,
    limits: Vec<usize>,
    call: &Call,
) -> PyResult<Encoding<'py>> {
    let slices = columns.iter().map(ArrayColumn::as_column).collect::<PyResult<Vec<_>>>()?;
    let work = 10 * slices.iter().map(|column| column.len() as u64).sum::<u64>();
    let (table, cells) = call.on_one_thread(py).run(py, work, |control| encode_rows(&slices, &limits, control))?;
    let rows = table.value_rows.into_iter().map(|rows| PyArray1::from_vec(py, rows)).collect();
    let codes = PyArray1::from_iter(py, table.codes.iter().flatten().copied());
    let codes = numpy::PyArrayMethods::reshape(&codes, [table.counts.len(), limits.len()])?;
    Ok((rows, codes, PyArray1::from_vec(py, table.counts), PyArray1::from_vec(py, cells)))
}

/// The bin of every score.
#[pyfunction]
fn bin_scores<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray1<'py, f64>,
    edges: PyReadonlyArray1<'py, f64>,
    call: &Call,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (scores, edges) = (slice(&scores)?, slice(&edges)?);
    let bins = call.run(py, 10 * scores.len() as u64, |control| bins_of(scores, edges, control))?;
    Ok(PyArray1::from_vec(py, bins))
}

/// What a CSV file was seen to hold: the names in its header, and the distinct rows of some columns as CSV without a
/// header, with how many there are of each in a last field; None where there are too many, or the file is not plain.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct CsvRows {
    names: Vec<String>,
    distinct: Option<Py<PyBytes>>,
}

/// Looks at every row of a CSV file, and counts those that are the same in some columns.
#[pyfunction]
fn read_csv(py: Python<'_>, path: &str, columns: Vec<String>, call: &Call) -> PyResult<CsvRows> {
    // Nobody knows how long something is that is no file.
    let work = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map_or(u64::MAX, |file| file.len());
    let rows = call.run(py, work, |control| rows_of(path, &columns, control))?;
    Ok(CsvRows { names: rows.names, distinct: rows.distinct.map(|text| PyBytes::new(py, &text).unbind()) })
}

type Kinds<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

/// A row of each kind of equal rows of a matrix, how many there are of it, and the kind of every row; kinds come in an
/// order that does not depend on that of the rows.
#[pyfunction]
fn distinct_rows<'py>(py: Python<'py>, values: PyReadonlyArray2<'py, f64>, call: &Call) -> PyResult<Kinds<'py>> {
    let width = values.shape()[1];
    let values = values.as_slice().map_err(|_| not_contiguous())?;
    let work = 5 * values.len() as u64 + 100 * (values.len() / width.max(1)) as u64;
    let found = call.run(py, work, |control| kinds_of(values, width, control))?;
    let (first, counts) = (PyArray1::from_vec(py, found.first), PyArray1::from_vec(py, found.counts));
    Ok((first, counts, PyArray1::from_vec(py, found.place)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SCORE_UNIT", SCORE_UNIT)?;
    module.add_function(wrap_pyfunction!(distinct_rows, module)?)?;
    module.add_function(wrap_pyfunction!(tabulate, module)?)?;
    module.add_function(wrap_pyfunction!(encode, module)?)?;
    module.add_class::<CsvRows>()?;
    module.add_function(wrap_pyfunction!(read_csv, module)?)?;
    module.add_function(wrap_pyfunction!(bin_scores, module)?)
}
