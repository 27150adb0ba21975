//! Any function of the rows of a group: of Python, or compiled and given by its address.
// Unsafe code: calling a function by its address, which the user vouches for.
#![allow(unsafe_code)]

use fairaudit_core::Error;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{Assignments, OBSERVED};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::call::to_python;
use crate::options::{Call, Draws};
use crate::permutation::studentize;

/// `double f(const double *y_true, const double *value, const double *weight, int64_t n)`.
type Compiled = extern "C" fn(*const f64, *const f64, *const f64, i64) -> f64;

type RowsAndSizes<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// Nanoseconds of drawing a row.
const ROW_WORK: u64 = 20;

/// The replicates of a test of any function.
#[pyclass(name = "FunctionTest", frozen, module = "fairaudit_rs._native")]
struct PyFunctionTest {
    test: Assignments,
}

#[pymethods]
impl PyFunctionTest {
    /// `group` and `stratum` of each unit; `unit` of each row when units are clusters.
    #[new]
    #[pyo3(signature = (group, n_groups, studentize, call, stratum=None, unit=None))]
    fn new(
        py: Python<'_>,
        group: PyReadonlyArray1<'_, u32>,
        n_groups: usize,
        studentize: &str,
        call: &Call,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
        unit: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let stratum = stratum.as_ref().map(slice).transpose()?;
        let unit = unit.as_ref().map(slice).transpose()?;
        let group = slice(&group)?;
        let work = ROW_WORK * (group.len() + unit.map_or(0, <[u32]>::len)) as u64;
        let test =
            call.on_one_thread(py).run(py, work, |_| Assignments::new(group, n_groups, stratum, unit, studentize))?;
        Ok(Self { test })
    }

    /// The group of every row in a replicate of `draws`, by its index; None: as observed.
    fn assignment<'py>(
        &self,
        py: Python<'py>,
        replicate: Option<u64>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let draw = |_: &Control| Ok(self.test.assignment(&draws.core(), replicate));
        Ok(PyArray1::from_vec(py, call.on_one_thread(py).run(py, self.work(1), draw)?))
    }

    /// Rows of bootstrap samples of a group, one sample after the other, and the number of rows in
    /// each; `assignment` is the group of every row. Replicate None: as observed.
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn samples<'py>(
        &self,
        py: Python<'py>,
        assignment: PyReadonlyArray1<'_, u32>,
        group: u32,
        n_samples: usize,
        replicate: Option<u64>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<RowsAndSizes<'py>> {
        let assignment = slice(&assignment)?;
        let draw = |control: &Control| {
            let mut samples = self.test.samples(assignment, group, &draws.core(), replicate.unwrap_or(OBSERVED));
            let (mut rows, mut sizes) = (Vec::new(), Vec::new());
            for _ in 0..n_samples {
                control.check()?;
                let drawn = samples.next_rows();
                sizes.push(drawn.len() as u64);
                rows.extend(drawn);
            }
            Ok((rows, sizes))
        };
        let (rows, sizes) = call.on_one_thread(py).run(py, self.work(1 + n_samples as u64), draw)?;
        Ok((PyArray1::from_vec(py, rows), PyArray1::from_vec(py, sizes)))
    }

    /// The statistic from the value of every group and those of bootstrap samples, by sample and
    /// group (fastest).
    #[pyo3(signature = (values, samples, call=None))]
    fn statistic(
        &self,
        py: Python<'_>,
        values: Vec<f64>,
        samples: PyReadonlyArray1<'_, f64>,
        call: Option<&Call>,
    ) -> PyResult<f64> {
        let samples = slice(&samples)?;
        let work = 10 * samples.len() as u64;
        Call::or_ordinary(call).run(py, work, |_| Ok(self.test.statistic(&values, samples)))
    }

    /// The statistic of permutations of a compiled function.
    fn null_distribution_compiled<'py>(
        &self,
        py: Python<'py>,
        address: usize,
        columns: [PyReadonlyArray1<'_, f64>; 3],
        n_samples: usize,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let function = compiled(py, address)?;
        let columns = [slice(&columns[0])?, slice(&columns[1])?, slice(&columns[2])?];
        self.check(py, &columns)?;
        // Nobody knows what the function costs: only few calls of it are worth no thread to wait on.
        let work = (1_000 * self.test.n_rows() as u64 * (1 + n_samples as u64)).saturating_mul(draws.n);
        let null = call.run(py, work, |control| {
            self.test.null_distribution(function, &columns, n_samples, &draws.core(), control)
        })?;
        Ok(PyArray1::from_vec(py, null))
    }
}

impl PyFunctionTest {
    /// Estimated nanoseconds of passes over the rows.
    fn work(&self, passes: u64) -> u64 {
        (ROW_WORK * self.test.n_rows() as u64).saturating_mul(passes)
    }

    fn check(&self, py: Python<'_>, columns: &[&[f64]]) -> PyResult<()> {
        let rows = self.test.n_rows();
        match columns.iter().find(|column| column.len() != rows) {
            Some(other) => {
                let accepted = format!("one value for each of the {rows} rows");
                Err(to_python(py, &Error::argument("columns", format!("of length {}", other.len()), &accepted)))
            }
            None => Ok(()),
        }
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
    module.add_class::<PyFunctionTest>()
}
