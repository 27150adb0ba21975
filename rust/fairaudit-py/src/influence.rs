//! The influence lens: features as columns, sums over rows for scores of many features, and the joint law of the scores.

use std::collections::HashMap;

use fairaudit_core::Error;
use fairaudit_core::influence::columns::{Columns, Numbers, first_not_finite};
use fairaudit_core::influence::gram::{Influence, Leverage, gram};
use fairaudit_core::influence::marginal::{Rows, SUMS, Sums, sums};
use fairaudit_core::influence::maxima::{draw_work, maxima};
use fairaudit_core::influence::moments::{Group, PARTS, moments};
use fairaudit_core::parallel::Control;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::arrays::{ArrayColumn, Marks, TableColumn, not_contiguous, slice};
use crate::call::to_python;
use crate::options::{Call, Draws};
use crate::{descent, nuisance, repair};

pub(crate) type Floats<'py> = Bound<'py, PyArray1<f64>>;
pub(crate) type Matrix<'py> = Bound<'py, PyArray2<f64>>;

pub(crate) fn matrix<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<&'a [f64]> {
    array.as_slice().map_err(|_| not_contiguous())
}

/// The rows of a matrix as arrays of a known length.
pub(crate) fn rows_of<'a, const N: usize>(
    py: Python<'_>,
    name: &str,
    array: &'a PyReadonlyArray2<'_, f64>,
) -> PyResult<&'a [[f64; N]]> {
    let width = array.shape()[1];
    if width != N {
        let accepted = format!("rows of {N} numbers");
        return Err(to_python(py, &Error::argument(name, format!("in rows of {width}"), &accepted)));
    }
    Ok(matrix(array)?.as_chunks().0)
}

/// Levels by part, slopes by part, curve.
fn influence_of(numbers: &[f64; 2 * PARTS + 1]) -> Influence {
    let part = |first: usize| std::array::from_fn(|m| numbers[first + m]);
    Influence { level: part(0), slope: part(PARTS), curve: numbers[2 * PARTS] }
}

/// An array of numbers, or of codes with the number of each, or a column of a matrix that lies row by row.
#[derive(FromPyObject)]
enum Given {
    OfMatrix(Py<PyArray2<f64>>, usize),
    Coded(Py<PyAny>, Vec<f64>),
    Plain(Py<PyAny>),
}

/// The array of a column, borrowed for a call.
enum Held<'a, 'py> {
    OfMatrix { array: PyReadonlyArray2<'py, f64>, place: usize, fetches: bool },
    Coded(ArrayColumn<'py>, &'a [f64]),
    Plain(ArrayColumn<'py>),
}

impl Given {
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Held<'_, 'py>> {
        Ok(match self {
            Self::OfMatrix(array, place) => {
                Held::OfMatrix { array: array.bind(py).readonly(), place: *place, fetches: false }
            }
            Self::Coded(array, table) => Held::Coded(array.bind(py).extract()?, table),
            Self::Plain(array) => Held::Plain(array.bind(py).extract()?),
        })
    }

    /// All columns borrowed; the first one of each matrix of which most columns are read fetches its rows.
    fn all_held<'a, 'py>(given: &'a [Self], py: Python<'py>) -> PyResult<Vec<Held<'a, 'py>>> {
        let mut held = given.iter().map(|one| one.held(py)).collect::<PyResult<Vec<_>>>()?;
        let mut used: HashMap<_, (usize, usize)> = HashMap::new();
        for (column, one) in given.iter().enumerate() {
            if let Self::OfMatrix(array, _) = one {
                used.entry(array.as_ptr()).or_insert((column, 0)).1 += 1;
            }
        }
        for (column, n) in used.into_values() {
            if let Held::OfMatrix { array, fetches, .. } = &mut held[column] {
                *fetches = 2 * n > array.shape()[1];
            }
        }
        Ok(held)
    }
}

impl Held<'_, '_> {
    fn numbers(&self) -> PyResult<Box<dyn Numbers + '_>> {
        match self {
            Self::OfMatrix { array, place, fetches } => {
                let (table, width) = (matrix(array)?, array.shape()[1]);
                if *place >= width {
                    return Err(PyIndexError::new_err(format!("column {place} of a matrix of {width}")));
                }
                Ok(Box::new(TableColumn { table, width, place: *place, fetches: *fetches }))
            }
            Self::Coded(array, table) => array.numbers_of_codes(table),
            Self::Plain(array) => array.numbers(),
        }
    }
}

/// Columns of features, held by reference, with what they are. The arrays must not be written to.
#[pyclass(name = "InfluenceColumns", frozen, module = "fairaudit_rs._native")]
struct PyInfluenceColumns {
    given: Vec<Given>,
    looked: Result<Columns, Option<(usize, usize)>>,
}

impl PyInfluenceColumns {
    fn columns(&self, py: Python<'_>) -> PyResult<&Columns> {
        self.looked.as_ref().map_err(|_| {
            let accepted = "columns of finite numbers";
            to_python(py, &Error::argument("columns", "an object with missing numbers", accepted))
        })
    }

    /// Runs a computation on the columns as numbers.
    fn run<T: Send>(
        given: &[Given],
        py: Python<'_>,
        (call, work): (&Call, u64),
        compute: impl FnOnce(&[&dyn Numbers], &Control) -> fairaudit_core::Result<T> + Send,
    ) -> PyResult<T> {
        let held = Given::all_held(given, py)?;
        let numbers = held.iter().map(Held::numbers).collect::<PyResult<Vec<_>>>()?;
        let numbers: Vec<&dyn Numbers> = numbers.iter().map(AsRef::as_ref).collect();
        call.run(py, work, |control| compute(&numbers, control))
    }
}

#[pymethods]
impl PyInfluenceColumns {
    #[new]
    fn new(py: Python<'_>, columns: Vec<Given>, call: &Call) -> PyResult<Self> {
        let n_rows = match columns.first() {
            Some(one) => one.held(py)?.numbers()?.n_rows(),
            None => 0,
        };
        let work = Columns::work(columns.len(), n_rows);
        let looked = Self::run(&columns, py, (call, work), |numbers, control| {
            Ok(match Columns::look(numbers, control)? {
                Some(found) => Ok(found),
                None => Err(first_not_finite(numbers, control)?),
            })
        })?;
        Ok(Self { given: columns, looked })
    }

    /// The first column with a number that is not finite, and the first row where.
    #[getter]
    fn not_finite(&self) -> Option<(usize, usize)> {
        self.looked.as_ref().err().copied().flatten()
    }

    /// The lower and the higher value of every column, NaN where there are more than two.
    #[getter]
    fn ends(&self) -> Vec<(f64, f64)> {
        let found = self.looked.as_ref().map_or(&[][..], Columns::found);
        found.iter().map(|one| (one.low, one.high)).collect()
    }
}

/// The rows of a group in the columns of labels and scores, by reference.
struct GroupArrays {
    rows: Py<PyArray1<i64>>,
    label: Py<PyArray1<u8>>,
    score: Py<PyArray1<f64>>,
}

impl<'py> FromPyObject<'_, 'py> for GroupArrays {
    type Error = PyErr;

    fn extract(value: pyo3::Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (rows, label, score): (_, Marks<'py>, _) = value.extract()?;
        Ok(Self { rows, label: label.into_object(), score })
    }
}

/// The same, borrowed for a call.
struct HeldGroup<'py> {
    rows: PyReadonlyArray1<'py, i64>,
    label: PyReadonlyArray1<'py, u8>,
    score: PyReadonlyArray1<'py, f64>,
}

impl GroupArrays {
    fn held<'py>(&self, py: Python<'py>) -> HeldGroup<'py> {
        HeldGroup {
            rows: self.rows.bind(py).readonly(),
            label: self.label.bind(py).readonly(),
            score: self.score.bind(py).readonly(),
        }
    }
}

impl HeldGroup<'_> {
    /// The slices that a group is made of, which is checked where it is used.
    fn slices(&self) -> PyResult<(&[i64], &[u8], &[f64])> {
        Ok((slice(&self.rows)?, slice(&self.label)?, slice(&self.score)?))
    }
}

/// Estimated nanoseconds of the moments of a group on one thread.
const MOMENTS_WORK: u64 = 8;

/// Sums over rows of a group, given by their places with the labels and scores of all rows: of 1, label, score,
/// both together, the square of the score, and label times this square.
#[pyfunction]
fn group_moments<'py>(py: Python<'py>, group: GroupArrays, call: &Call) -> PyResult<Floats<'py>> {
    let held = group.held(py);
    let (rows, label, score) = held.slices()?;
    let work = MOMENTS_WORK * rows.len() as u64;
    let found = call.run(py, work, |control| moments(&Group::new(rows, label, score)?, control))?;
    Ok(PyArray1::from_slice(py, &found))
}

/// Rows of a group with their features, held by reference, and what they add up to.
#[pyclass(name = "InfluenceRows", frozen, module = "fairaudit_rs._native")]
struct PyInfluenceRows {
    columns: Py<PyInfluenceColumns>,
    ones: Vec<f64>,
    group: GroupArrays,
    sums: Sums,
}

impl PyInfluenceRows {
    /// Runs a computation on the rows.
    fn run<T: Send>(
        py: Python<'_>,
        (columns, ones, group): (&PyInfluenceColumns, &[f64], &GroupArrays),
        (call, work_of): (&Call, fn(usize, usize) -> u64),
        compute: impl FnOnce(&Rows<'_>, &Control) -> fairaudit_core::Result<T> + Send,
    ) -> PyResult<T> {
        let found = columns.columns(py)?;
        let held = group.held(py);
        let (rows, label, score) = held.slices()?;
        let work = work_of(rows.len(), ones.len());
        PyInfluenceColumns::run(&columns.given, py, (call, work), |numbers, control| {
            compute(&Rows::new(found, numbers, ones, Group::new(rows, label, score)?)?, control)
        })
    }
}

#[pymethods]
impl PyInfluenceRows {
    #[new]
    fn new(
        py: Python<'_>,
        columns: Py<PyInfluenceColumns>,
        ones: Vec<f64>,
        group: GroupArrays,
        call: &Call,
    ) -> PyResult<Self> {
        let sums = Self::run(py, (columns.get(), &ones, &group), (call, Rows::sums_work), sums)?;
        Ok(Self { columns, ones, group, sums })
    }

    /// For every feature the sums of it times a part, of its square times a part, and of it times two parts.
    #[getter]
    fn sums<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py>> {
        let sums = &self.sums.of_features;
        PyArray1::from_slice(py, sums.as_flattened()).reshape([sums.len(), SUMS])
    }

    /// The sums of the influences on two features, and for slopes of the square of the influence with leverage. An
    /// influence is levels and slopes by part, and a curve; a leverage mean, slope, factor, spread.
    fn gram<'py>(
        &self,
        py: Python<'py>,
        influences: PyReadonlyArray2<'_, f64>,
        parts_of_u: [f64; PARTS],
        leverages: PyReadonlyArray2<'_, f64>,
        call: &Call,
    ) -> PyResult<(Matrix<'py>, Floats<'py>)> {
        let influences: Vec<Influence> = rows_of(py, "influences", &influences)?.iter().map(influence_of).collect();
        let leverages: Vec<Leverage> = rows_of::<4>(py, "leverages", &leverages)?
            .iter()
            .map(|&[mean, slope, factor, spread]| Leverage { mean, slope, factor, spread })
            .collect();
        let given = (self.columns.get(), &self.ones[..], &self.group);
        let found = Self::run(py, given, (call, Rows::gram_work), |rows, control| {
            gram(rows, &self.sums, &influences, parts_of_u, &leverages, control)
        })?;
        let p = influences.len();
        Ok((PyArray1::from_vec(py, found.products).reshape([p, p])?, PyArray1::from_vec(py, found.squares)))
    }
}

/// max |Z| of each draw of Z from the normal law with a correlation matrix.
#[pyfunction]
fn normal_maxima<'py>(
    py: Python<'py>,
    correlation: PyReadonlyArray2<'_, f64>,
    draws: &Draws,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let work = draw_work(correlation.shape()[0]).saturating_mul(draws.n);
    let correlation = matrix(&correlation)?;
    let found = call.run(py, work, |control| maxima(correlation, &draws.core(), control))?;
    Ok(PyArray1::from_vec(py, found))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInfluenceColumns>()?;
    module.add_class::<PyInfluenceRows>()?;
    module.add_function(wrap_pyfunction!(group_moments, module)?)?;
    module.add_function(wrap_pyfunction!(normal_maxima, module)?)?;
    nuisance::register(module)?;
    descent::register(module)?;
    repair::register(module)
}
