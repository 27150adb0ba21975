//! `NumPy` arrays as slices, without copies.

use fairaudit_core::tabulate::Column;
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

/// The values of a contiguous array.
pub(crate) fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| not_contiguous())
}

pub(crate) fn not_contiguous() -> PyErr {
    PyTypeError::new_err("the array is not contiguous; pass numpy.ascontiguousarray(array)")
}
