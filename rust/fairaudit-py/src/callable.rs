//! Any function of the rows of a group: of Python, or compiled and given by its address.
// Unsafe code: calling a function by its address, which the user vouches for.
#![allow(unsafe_code)]

use fairaudit_core::Error;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{Assignments, OBSERVED};
use numpy::PyArray1;
use numpy::ndarray::Ix2;
use pyo3::prelude::*;

use crate::arrays::Dense;
use crate::call::to_python;
use crate::options::{Call, Draws};
use crate::units::Units;

/// `double f(const double *y_true, const double *value, const double *weight, int64_t n)`.
type Compiled = extern "C" fn(*const f64, *const f64, *const f64, i64) -> f64;

/// Nanoseconds of drawing a row.
const ROW_WORK: u64 = 20;

/// Rows of bootstrap samples, one sample after the other, and the number of rows in each.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Samples {
    rows: Py<PyArray1<u32>>,
    sizes: Py<PyArray1<u64>>,
}

/// Draws groups of units within strata, and bootstrap samples of a group: for functions of any kind.
#[pyclass(name = "Assignments", frozen, module = "fairaudit_rs._native")]
struct PyAssignments {
    assignments: Assignments,
}

#[pymethods]
impl PyAssignments {
    #[new]
    fn new(py: Python<'_>, units: &Units, call: &Call) -> PyResult<Self> {
        let units = units.borrow(py)?;
        let units = units.core();
        let work = ROW_WORK * (units.group.len() + units.of_row.map_or(0, <[u32]>::len)) as u64;
        Ok(Self { assignments: call.on_one_thread(py).run(py, work, |_| Assignments::new(units))? })
    }

    /// The group of every row in a replicate of `draws`, by its index; None: as observed.
    fn groups<'py>(
        &self,
        py: Python<'py>,
        draws: &Draws,
        replicate: Option<u64>,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let draw = |_: &Control| Ok(self.assignments.groups(&draws.core(), replicate));
        Ok(PyArray1::from_vec(py, call.on_one_thread(py).run(py, self.work(1), draw)?))
    }

    /// Bootstrap samples of a group in a replicate, `groups` telling the group of every row. None: as observed.
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn samples(
        &self,
        py: Python<'_>,
        groups: Dense<'_, u32>,
        group: u32,
        n_samples: usize,
        draws: &Draws,
        replicate: Option<u64>,
        call: &Call,
    ) -> PyResult<Samples> {
        let groups = &groups[..];
        let draw = |control: &Control| {
            let mut samples = self.assignments.samples(groups, group, &draws.core(), replicate.unwrap_or(OBSERVED))?;
            let (mut rows, mut sizes) = (Vec::new(), Vec::new());
            for _ in 0..n_samples {
                control.check()?;
                let drawn = samples.next_rows();
                sizes.push(drawn.len() as u64);
                rows.extend(drawn);
            }
            Ok((rows, sizes))
        };
        let work = self.work((n_samples as u64).saturating_add(1));
        let (rows, sizes) = call.on_one_thread(py).run(py, work, draw)?;
        Ok(Samples { rows: PyArray1::from_vec(py, rows).unbind(), sizes: PyArray1::from_vec(py, sizes).unbind() })
    }

    /// The statistic from the value of every group and those of bootstrap samples, by sample and group; it is
    /// studentized if there are samples.
    #[pyo3(signature = (values, samples, call=None))]
    fn statistic(
        &self,
        py: Python<'_>,
        values: Vec<f64>,
        samples: Dense<'_, f64, Ix2>,
        call: Option<&Call>,
    ) -> PyResult<f64> {
        let n_groups = self.assignments.n_groups();
        if samples.shape()[1] != n_groups {
            let columns = format!("of {} columns", samples.shape()[1]);
            return Err(to_python(py, &Error::argument("samples", columns, &format!("one for each of {n_groups}"))));
        }
        let samples = &samples[..];
        Call::or_ordinary(call).run(py, 10 * samples.len() as u64, |_| self.assignments.statistic(&values, samples))
    }

    /// The statistic of permutations of a compiled function, by its address.
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        address: usize,
        columns: [Dense<'py, f64>; 3],
        n_samples: usize,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let function = compiled(py, address)?;
        let columns = [&columns[0][..], &columns[1][..], &columns[2][..]];
        // Nobody knows what the function costs: only few calls of it are worth no thread to wait on.
        let passes = (n_samples as u64).saturating_add(1).saturating_mul(draws.n);
        let work = (1_000 * self.assignments.n_rows() as u64).saturating_mul(passes);
        let null = call.run(py, work, |control| {
            self.assignments.null_distribution(function, &columns, n_samples, &draws.core(), control)
        })?;
        Ok(PyArray1::from_vec(py, null))
    }
}

impl PyAssignments {
    /// Estimated nanoseconds of passes over the rows.
    fn work(&self, passes: u64) -> u64 {
        (ROW_WORK * self.assignments.n_rows() as u64).saturating_mul(passes)
    }
}

/// A compiled function as one over columns.
fn compiled(py: Python<'_>, address: usize) -> PyResult<impl Fn(&[Vec<f64>]) -> f64 + Sync> {
    if address == 0 {
        return Err(to_python(py, &Error::argument("address", 0, "the address of a compiled function")));
    }
    // SAFETY: the user gave the address of a function with this signature, which the
    // documentation of `callable_metric` states.
    let function = unsafe { std::mem::transmute::<usize, Compiled>(address) };
    Ok(move |columns: &[Vec<f64>]| {
        let [y_true, value, weight] = [0, 1, 2].map(|i| columns[i].as_ptr());
        function(y_true, value, weight, columns[0].len() as i64)
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Samples>()?;
    module.add_class::<PyAssignments>()
}
