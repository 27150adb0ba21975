//! `NumPy` arrays as slices, without copies.

use std::hint::black_box;
use std::ops::Range;

use fairaudit_core::influence::columns::Numbers;
use fairaudit_core::tabulate::Column;
use numpy::ndarray::{ArrayView1, s};
use numpy::{PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A borrowed one-dimensional contiguous array, or the bytes of fixed-width strings (two
/// dimensions, one row per string).
pub(crate) enum ArrayColumn<'py> {
    Bool(PyReadonlyArray1<'py, bool>),
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
    Bytes(PyReadonlyArray2<'py, u8>),
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
            Self::Bool(array) => Column::Bool(slice(array)?),
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
            Self::Bytes(array) => {
                let width = array.as_array().ncols().max(1);
                let data = array.as_slice().map_err(|_| not_contiguous())?;
                Column::Bytes { data, width }
            }
        })
    }
}

impl ArrayColumn<'_> {
    /// The values as floats wherever they lie, contiguous or not.
    pub(crate) fn numbers(&self) -> PyResult<Box<dyn Numbers + '_>> {
        Ok(match self {
            Self::Bool(array) => Floats::of(array, f64::from),
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
