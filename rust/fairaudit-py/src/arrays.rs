//! `NumPy` arrays as slices, without copies.

use std::hint::black_box;
use std::ops::{Deref, Range};

use fairaudit_core::influence::columns::Numbers;
use fairaudit_core::tabulate::Column;
use numpy::ndarray::{ArrayView1, Dimension, Ix1, Ix2, s};
use numpy::{
    Element, PyArray, PyArrayDescrMethods, PyReadonlyArray, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A borrowed array whose numbers lie one after the other, the last dimension fastest. What lies otherwise is refused
/// where it arrives; Python adds the name of the argument.
pub(crate) struct Dense<'py, T: Element, D: Dimension = Ix1>(PyReadonlyArray<'py, T, D>);

impl<'a, 'py, T: Element + 'a, D: Dimension + 'a> FromPyObject<'a, 'py> for Dense<'py, T, D> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array: PyReadonlyArray<'py, T, D> = value.extract()?;
        let dense = array.is_c_contiguous() && array.is_aligned();
        if !(dense || array.is_empty()) {
            return Err(not_contiguous());
        }
        Ok(Self(array))
    }
}

impl<T: Element, D: Dimension> Deref for Dense<'_, T, D> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // It lies as a slice does: `extract` saw to that.
        self.0.as_slice().unwrap_or_default()
    }
}

impl<T: Element, D: Dimension> Dense<'_, T, D> {
    /// Length of each dimension.
    pub(crate) fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// The array itself.
    pub(crate) fn into_object(self) -> Py<PyArray<T, D>> {
        self.0.as_any().clone().cast_into().map_or_else(|_| unreachable!(), Bound::unbind)
    }
}

/// Truth by row: an array of bytes or of booleans, true where it is not 0. A view can hold other bytes than a boolean
/// of Rust has.
pub(crate) struct Marks<'py>(Dense<'py, u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Marks<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if value.cast::<PyUntypedArray>()?.dtype().kind() == b'b' {
            return value.call_method1("view", ("uint8",))?.extract().map(Self);
        }
        value.extract().map(Self)
    }
}

impl Marks<'_> {
    /// The bytes themselves, as an array.
    pub(crate) fn into_object(self) -> Py<PyArray<u8, Ix1>> {
        self.0.into_object()
    }
}

impl Deref for Marks<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Whether two arrays have one shape and the same numbers, a missing one being equal to itself; or both are not there.
pub(crate) fn same<'py, T: IntoPyObject<'py>>(py: Python<'py>, first: T, second: T) -> PyResult<bool> {
    let (first, second) = (first.into_bound_py_any(py)?, second.into_bound_py_any(py)?);
    if first.is_none() || second.is_none() {
        return Ok(first.is(&second));
    }
    let named = PyDict::new(py);
    named.set_item("equal_nan", true)?;
    py.import("numpy")?.call_method("array_equal", (first, second), Some(&named))?.extract()
}

/// A borrowed one-dimensional contiguous array, or the bytes of fixed-width strings (two
/// dimensions, one row per string).
pub(crate) enum ArrayColumn<'py> {
    Bool(Marks<'py>),
    I8(PyReadonlyArray1<'py, i8>),
    I16(PyReadonlyArray1<'py, i16>),
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
    U8(PyReadonlyArray1<'py, u8>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
    U64(PyReadonlyArray1<'py, u64>),
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    Bytes(Dense<'py, u8, Ix2>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for ArrayColumn<'py> {
    type Error = PyErr;

    // Looks at the type once: trying one after the other makes an error for every wrong one.
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array = value.cast::<PyUntypedArray>()?;
        if array.ndim() == 2 {
            return value.extract().map(Self::Bytes);
        }
        let dtype = array.dtype();
        match (dtype.kind(), dtype.itemsize()) {
            (b'b', _) => value.extract().map(Self::Bool),
            (b'i', 1) => value.extract().map(Self::I8),
            (b'i', 2) => value.extract().map(Self::I16),
            (b'i', 4) => value.extract().map(Self::I32),
            (b'i', _) => value.extract().map(Self::I64),
            (b'u', 1) => value.extract().map(Self::U8),
            (b'u', 2) => value.extract().map(Self::U16),
            (b'u', 4) => value.extract().map(Self::U32),
            (b'u', _) => value.extract().map(Self::U64),
            (b'f', 4) => value.extract().map(Self::F32),
            _ => value.extract().map(Self::F64),
        }
    }
}

impl ArrayColumn<'_> {
    pub(crate) fn as_column(&self) -> PyResult<Column<'_>> {
        Ok(match self {
            Self::Bool(marks) => Column::Bool(marks),
            Self::I8(array) => Column::I8(slice(array)?),
            Self::I16(array) => Column::I16(slice(array)?),
            Self::I32(array) => Column::I32(slice(array)?),
            Self::I64(array) => Column::I64(slice(array)?),
            Self::U8(array) => Column::U8(slice(array)?),
            Self::U16(array) => Column::U16(slice(array)?),
            Self::U32(array) => Column::U32(slice(array)?),
            Self::U64(array) => Column::U64(slice(array)?),
            Self::F32(array) => Column::F32(slice(array)?),
            Self::F64(array) => Column::F64(slice(array)?),
            Self::Bytes(array) => Column::Bytes { data: array, width: array.shape()[1].max(1) },
        })
    }
}

impl ArrayColumn<'_> {
    /// The values as floats wherever they lie, contiguous or not.
    pub(crate) fn numbers(&self) -> PyResult<Box<dyn Numbers + '_>> {
        Ok(match self {
            Self::Bool(marks) => Floats::of(&marks.0.0, |mark: u8| f64::from(mark != 0)),
            Self::I8(array) => Floats::of(array, f64::from),
            Self::I16(array) => Floats::of(array, f64::from),
            Self::I32(array) => Floats::of(array, f64::from),
            Self::I64(array) => Floats::of(array, |number| number as f64),
            Self::U8(array) => Floats::of(array, f64::from),
            Self::U16(array) => Floats::of(array, f64::from),
            Self::U32(array) => Floats::of(array, f64::from),
            Self::U64(array) => Floats::of(array, |number| number as f64),
            Self::F32(array) => Floats::of(array, f64::from),
            Self::F64(array) => Floats::of(array, |number| number),
            Self::Bytes(_) => return Err(PyTypeError::new_err("the array holds text; pass numbers")),
        })
    }

    /// As [`Self::numbers`], of an array of codes: the number of each in a table, NaN beyond it.
    pub(crate) fn numbers_of_codes<'a>(&'a self, table: &'a [f64]) -> PyResult<Box<dyn Numbers + 'a>> {
        match self {
            Self::U32(array) => {
                Ok(Floats::of(array, |code: u32| table.get(code as usize).copied().unwrap_or(f64::NAN)))
            }
            _ => Err(PyTypeError::new_err("the array of codes is not uint32; pass uint32")),
        }
    }
}

/// An array read as floats.
struct Floats<'a, T, F> {
    values: ArrayView1<'a, T>,
    float: F,
}

impl<'a, T: numpy::Element + Copy + Sync, F: Fn(T) -> f64 + Sync + 'a> Floats<'a, T, F> {
    fn of(array: &'a PyReadonlyArray1<'_, T>, float: F) -> Box<dyn Numbers + 'a> {
        Box::new(Self { values: array.as_array(), float })
    }
}

impl<T: Copy + Sync, F: Fn(T) -> f64 + Sync> Numbers for Floats<'_, T, F> {
    fn n_rows(&self) -> usize {
        self.values.len()
    }

    fn load(&self, first: usize, numbers: &mut [f64]) {
        if let Some(values) = self.values.as_slice() {
            for (number, &value) in numbers.iter_mut().zip(&values[first..]) {
                *number = (self.float)(value);
            }
        } else {
            let values = self.values.slice(s![first..first + numbers.len()]);
            for (number, &value) in numbers.iter_mut().zip(values) {
                *number = (self.float)(value);
            }
        }
    }

    fn pick(&self, rows: &[i64], numbers: &mut [f64]) {
        for (number, &row) in numbers.iter_mut().zip(rows) {
            *number = (self.float)(self.values[row as usize]);
        }
    }
}

/// A column of floats that lie row by row.
pub(crate) struct TableColumn<'a> {
    /// The rows one after the other.
    pub(crate) table: &'a [f64],
    pub(crate) width: usize,
    pub(crate) place: usize,
    /// Whether this is the one column of the table that brings rows into the cache.
    pub(crate) fetches: bool,
}

/// Floats in a line of the cache.
const LINE: usize = 8;

impl Numbers for TableColumn<'_> {
    fn n_rows(&self) -> usize {
        self.table.len() / self.width
    }

    fn load(&self, first: usize, numbers: &mut [f64]) {
        let column = self.table[first * self.width + self.place..].iter().step_by(self.width);
        numbers.iter_mut().zip(column).for_each(|(number, value)| *number = *value);
    }

    fn pick(&self, rows: &[i64], numbers: &mut [f64]) {
        for (number, &row) in numbers.iter_mut().zip(rows) {
            *number = self.table[row as usize * self.width + self.place];
        }
    }

    fn fetch(&self, rows: Range<usize>) {
        if self.fetches {
            let lines = self.table[rows.start * self.width..rows.end * self.width].iter().step_by(LINE);
            black_box(lines.sum::<f64>());
        }
    }
}

/// The values of a contiguous array.
pub(crate) fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| not_contiguous())
}

pub(crate) fn not_contiguous() -> PyErr {
    PyTypeError::new_err("the array is not contiguous; pass numpy.ascontiguousarray(array)")
}
