//! `NumPy` arrays as slices, without copies.

use fairaudit_core::cells::Column;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A borrowed one-dimensional contiguous array, or the bytes of fixed-width strings (two
/// dimensions, one row per string).
#[derive(FromPyObject)]
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
