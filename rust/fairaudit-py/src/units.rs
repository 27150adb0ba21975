//! What exchanges its group, as one object: three arrays that belong together.

use fairaudit_core::{Error, permutation};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Dense, same};
use crate::call::to_python;

/// What exchanges its group: rows, or clusters of rows. `group`, `stratum` (of the user's) and `part` (of the stratum, in
/// which groups are exchanged) are of the units; `of_row` tells the unit of each row, where units are clusters. The arrays are held, not copied; codes are checked where they are used.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
pub(crate) struct Units {
    group: Py<PyArray1<u16>>,
    n_groups: usize,
    stratum: Option<Py<PyArray1<u32>>>,
    part: Option<Py<PyArray1<u32>>>,
    of_row: Option<Py<PyArray1<u32>>>,
}

/// Group and number of groups.
type Unnamed<'a> = (&'a Py<PyArray1<u16>>, usize);

#[pymethods]
impl Units {
    #[new]
    #[pyo3(signature = (group, n_groups, *, stratum=None, part=None, of_row=None))]
    fn new(
        py: Python<'_>,
        group: Dense<'_, u16>,
        n_groups: usize,
        stratum: Option<Dense<'_, u32>>,
        part: Option<Dense<'_, u32>>,
        of_row: Option<Dense<'_, u32>>,
    ) -> PyResult<Self> {
        for (name, codes) in [("stratum", &stratum), ("part", &part)] {
            if let Some(codes) = codes.as_ref().filter(|codes| codes.len() != group.len()) {
                let length = format!("of length {}", codes.len());
                let accepted = format!("one code for each of {} units", group.len());
                return Err(to_python(py, &Error::argument(name, length, &accepted)));
            }
        }
        let [stratum, part, of_row] = [stratum, part, of_row].map(|codes| codes.map(Dense::into_object));
        Ok(Self { group: group.into_object(), n_groups, stratum, part, of_row })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Unnamed<'_>, Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("stratum", &self.stratum)?;
        named.set_item("part", &self.part)?;
        named.set_item("of_row", &self.of_row)?;
        Ok(((&self.group, self.n_groups), named))
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        Ok(self.n_groups == other.n_groups
            && same(py, &self.group, &other.group)?
            && same(py, &self.stratum, &other.stratum)?
            && same(py, &self.part, &other.part)?
            && same(py, &self.of_row, &other.of_row)?)
    }
}

impl Units {
    /// The arrays, borrowed for a call.
    pub(crate) fn borrow<'py>(&self, py: Python<'py>) -> PyResult<BorrowedUnits<'py>> {
        let codes = |array: &Option<Py<PyArray1<u32>>>| {
            array.as_ref().map(|array| array.bind(py).extract::<Dense<'py, u32>>()).transpose()
        };
        Ok(BorrowedUnits {
            group: self.group.bind(py).extract()?,
            n_groups: self.n_groups,
            stratum: codes(&self.stratum)?,
            part: codes(&self.part)?,
            of_row: codes(&self.of_row)?,
        })
    }
}

/// The arrays of [`Units`] for as long as a call takes.
pub(crate) struct BorrowedUnits<'py> {
    group: Dense<'py, u16>,
    n_groups: usize,
    stratum: Option<Dense<'py, u32>>,
    part: Option<Dense<'py, u32>>,
    of_row: Option<Dense<'py, u32>>,
}

impl BorrowedUnits<'_> {
    /// As the core takes them.
    pub(crate) fn core(&self) -> permutation::Units<'_> {
        permutation::Units {
            group: &self.group,
            n_groups: self.n_groups,
            stratum: self.stratum.as_deref(),
            part: self.part.as_deref(),
            of_row: self.of_row.as_deref(),
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Units>()
}
