//! Audits of a test on data in which the null hypothesis is true, or a gap is known.

use fairaudit_core::permutation::audits::{self, WeakCounts, WeakRows};
use fairaudit_core::tabulate::Table;
use numpy::PyArray1;
use numpy::ndarray::{Ix2, Ix3};
use pyo3::prelude::*;

use crate::arrays::Dense;
use crate::metrics::CLASS_WORK;
use crate::options::{Call, Draws};
use crate::permutation::{Parts, studentize};
use crate::units::Units;

/// Nanoseconds of putting a unit into its place.
const UNIT_WORK: u64 = 300;

/// Samples of the weak null: values that are centred in each group, drawn anew from it with replacement.
#[pyclass(name = "WeakNull", frozen, module = "fairaudit_rs._native")]
struct PyWeakNull {
    source: Box<dyn audits::WeakNull>,
}

#[pymethods]
impl PyWeakNull {
    /// Of sums of units, as those of `PermutationTest.ratio`, centred in every cell: what is drawn anew together. Units
    /// with rows of their own are clusters.
    #[staticmethod]
    #[pyo3(signature = (numerator, denominator, units, cell, call, *, studentize))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn rows(
        py: Python<'_>,
        numerator: Dense<'_, f64>,
        denominator: Option<Dense<'_, f64>>,
        units: &Units,
        cell: Dense<'_, u32>,
        call: &Call,
        studentize: &str,
    ) -> PyResult<Self> {
        let (studentize, units) = (self::studentize(py, studentize)?, units.borrow(py)?);
        let (numerator, denominator, cell) = (&numerator[..], denominator.as_deref(), &cell[..]);
        let units = units.core();
        call.run(py, UNIT_WORK * cell.len() as u64, |control| {
            let source = WeakRows::new(numerator, denominator, units, cell, studentize, control)?;
            Ok(Self { source: Box::new(source) })
        })
    }

    /// Of counts by stratum, group and class, with a and d of a row of each class, centred as those of `rows`. `parts`
    /// of the classes exchange their groups among themselves.
    #[staticmethod]
    #[pyo3(signature = (counts, numerator, denominator, call, *, studentize, conditioning=None))]
    fn counts(
        py: Python<'_>,
        counts: Dense<'_, u64, Ix3>,
        numerator: Dense<'_, f64>,
        denominator: Option<Dense<'_, f64>>,
        call: &Call,
        studentize: &str,
        conditioning: Option<Parts>,
    ) -> PyResult<Self> {
        let (studentize, conditioning) = (self::studentize(py, studentize)?, Parts::core(py, conditioning)?);
        let (n_groups, n_classes) = (counts.shape()[1], counts.shape()[2]);
        let (counts, numerator, denominator) = (counts.to_vec(), &numerator[..], denominator.as_deref());
        call.run(py, 10 * CLASS_WORK * counts.len() as u64, |_| {
            let table = Table::new(counts, n_groups, n_classes)?;
            let source = WeakCounts::new(table, numerator, denominator, conditioning, studentize)?;
            Ok(Self { source: Box::new(source) })
        })
    }

    /// The two-sided p-value of the sample of each audit; NaN where the statistic is undefined.
    fn pvalues<'py>(
        &self,
        py: Python<'py>,
        n_resamples: u64,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let work = self.source.work().saturating_mul(n_resamples.saturating_add(10)).saturating_mul(draws.n);
        let run = |control: &_| audits::weak(&*self.source, &draws.core(), n_resamples, control);
        Ok(PyArray1::from_vec(py, call.run(py, work, run)?))
    }
}

/// Counts by stratum, group and class, flat, in an audit whose first group draws rows of each stratum and class with
/// these probabilities.
#[pyfunction]
fn tilted_counts<'py>(
    py: Python<'py>,
    counts: Dense<'_, u64, Ix3>,
    probability: Dense<'_, f64, Ix2>,
    draws: &Draws,
    audit: u64,
    call: &Call,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (n_groups, n_classes) = (counts.shape()[1], counts.shape()[2]);
    let (counts, probability) = (counts.to_vec(), &probability[..]);
    let drawn = call.on_one_thread(py).run(py, CLASS_WORK * counts.len() as u64, |_| {
        audits::tilted_counts(&Table::new(counts, n_groups, n_classes)?, probability, &draws.core(), audit)
    })?;
    Ok(PyArray1::from_vec(py, drawn))
}

/// The group of every unit in an audit in which each goes to the first group with its probability.
#[pyfunction]
fn tilted_groups<'py>(
    py: Python<'py>,
    units: &Units,
    probability: Dense<'_, f64>,
    draws: &Draws,
    audit: u64,
    call: &Call,
) -> PyResult<Bound<'py, PyArray1<u16>>> {
    let units = units.borrow(py)?;
    let (units, probability) = (units.core(), &probability[..]);
    let draw = |_: &_| audits::tilted_groups(units, probability, &draws.core(), audit);
    Ok(PyArray1::from_vec(py, call.on_one_thread(py).run(py, 50 * probability.len() as u64, draw)?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWeakNull>()?;
    module.add_function(wrap_pyfunction!(tilted_counts, module)?)?;
    module.add_function(wrap_pyfunction!(tilted_groups, module)?)
}
