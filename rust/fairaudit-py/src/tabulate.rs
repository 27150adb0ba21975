//! Rows to cells.

use std::path::PathBuf;

use fairaudit_core::Error;
use fairaudit_core::parallel::Control;
use fairaudit_core::tabulate::distinct::distinct_rows as kinds_of;
use fairaudit_core::tabulate::{
    SCORE_UNIT, bin_scores as bins_of, check_parquet as check_pages, encode as encode_rows, read_csv as rows_of,
    tabulate as count_rows,
};
use numpy::ndarray::Ix2;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays::{ArrayColumn, Dense};
use crate::call::to_python;
use crate::options::Call;

/// Up to so many values are counted before a second thread has started.
const FEW_VALUES: u64 = 1_000_000;

/// Distinct combinations of the columns' values: rows that hold each value of a column, codes of the cells, their
/// counts, score sums in units of 2^-30, and the cell of every row where that was asked for.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Tabulation {
    value_rows: Py<PyList>,
    codes: Py<PyArray2<u32>>,
    counts: Py<PyArray1<u64>>,
    score_sums: Py<PyArray1<i64>>,
    cell_of_row: Option<Py<PyArray1<u32>>>,
}

/// Counts the rows of every combination of values; `cells=True` names that of every row, and takes one thread.
#[pyfunction]
#[pyo3(signature = (columns, limits, call, *, score=None, cells=false))]
fn tabulate(
    py: Python<'_>,
    columns: Vec<ArrayColumn<'_>>,
    limits: Vec<usize>,
    call: &Call,
    score: Option<Dense<'_, f64>>,
    cells: bool,
) -> PyResult<Tabulation> {
    let slices = columns.iter().map(ArrayColumn::as_column).collect::<PyResult<Vec<_>>>()?;
    let (score, rows) = (score.as_deref(), slices.iter().map(|column| column.len() as u64).sum::<u64>());
    if cells && score.is_some() {
        return Err(to_python(py, &Error::argument("score", "given with cells", "one of them")));
    }
    let (table, cell_of_row) = if cells {
        let encode = |control: &Control| encode_rows(&slices, &limits, control);
        let (table, cells) = call.run(py, 3 * rows, encode)?;
        (table, Some(PyArray1::from_vec(py, cells).unbind()))
    } else {
        let work = if rows < FEW_VALUES { 0 } else { 2 * rows };
        (call.run(py, work, |control| count_rows(&slices, &limits, score, control))?, None)
    };
    let codes = PyArray1::from_iter(py, table.codes.iter().flatten().copied());
    Ok(Tabulation {
        value_rows: PyList::new(py, table.value_rows.into_iter().map(|rows| PyArray1::from_vec(py, rows)))?.unbind(),
        codes: codes.reshape([table.counts.len(), limits.len()])?.unbind(),
        counts: PyArray1::from_vec(py, table.counts).unbind(),
        score_sums: PyArray1::from_vec(py, table.score_sums).unbind(),
        cell_of_row,
    })
}

/// The bin of every score.
#[pyfunction]
fn bin_scores<'py>(
    py: Python<'py>,
    scores: Dense<'_, f64>,
    edges: Dense<'_, f64>,
    call: &Call,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (scores, edges) = (&scores[..], &edges[..]);
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

/// Bytes of a Parquet file whose page headers are looked at in a nanosecond or less.
const PARQUET_BYTES: u64 = 10;

/// Looks at the page headers of a Parquet file, in some columns or all, before somebody makes room for what they say.
#[pyfunction]
#[pyo3(signature = (path, columns, call))]
fn check_parquet(py: Python<'_>, path: PathBuf, columns: Option<Vec<String>>, call: &Call) -> PyResult<()> {
    let work = std::fs::metadata(&path).map_or(0, |file| file.len() / PARQUET_BYTES);
    call.run(py, work, |control| check_pages(&path, columns.as_deref(), control))
}

type Kinds<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

/// A row of each kind of equal rows of a matrix, how many there are of it, and the kind of every row; kinds come in an
/// order that does not depend on that of the rows.
#[pyfunction]
fn distinct_rows<'py>(py: Python<'py>, values: Dense<'_, f64, Ix2>, call: &Call) -> PyResult<Kinds<'py>> {
    let (width, values) = (values.shape()[1], &values[..]);
    let work = 5 * values.len() as u64 + 100 * (values.len() / width.max(1)) as u64;
    let found = call.run(py, work, |control| kinds_of(values, width, control))?;
    let (first, counts) = (PyArray1::from_vec(py, found.first), PyArray1::from_vec(py, found.counts));
    Ok((first, counts, PyArray1::from_vec(py, found.place)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tabulation>()?;
    module.add("SCORE_UNIT", SCORE_UNIT)?;
    module.add_function(wrap_pyfunction!(distinct_rows, module)?)?;
    module.add_function(wrap_pyfunction!(tabulate, module)?)?;
    module.add_class::<CsvRows>()?;
    module.add_function(wrap_pyfunction!(read_csv, module)?)?;
    module.add_function(wrap_pyfunction!(check_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(bin_scores, module)?)
}
