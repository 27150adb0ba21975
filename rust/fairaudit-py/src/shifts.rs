//! Two groups of a mean or ratio, tested at any gap.

use fairaudit_core::Error;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{self, Alternative, NUMBERS, Shape, Shift, Side};
use numpy::ndarray::{Array2, Ix2};
use numpy::{PyArray1, PyArray2, ToPyArray};
use pyo3::prelude::*;

use crate::arrays::Dense;
use crate::call::to_python;
use crate::options::Call;
use crate::permutation::alternative;

/// How many replicates are at least as extreme as the data on one side: by the studentized statistic, by the corrected one;
/// undefined ones are a part of both.
#[pyclass(frozen, get_all, eq, module = "fairaudit_rs._native")]
#[derive(PartialEq)]
struct Extremes {
    studentized: u64,
    corrected: u64,
    undefined: u64,
}

#[pymethods]
impl Extremes {
    #[new]
    fn new(studentized: u64, corrected: u64, undefined: u64) -> Self {
        Self { studentized, corrected, undefined }
    }

    fn __getnewargs__(&self) -> (u64, u64, u64) {
        (self.studentized, self.corrected, self.undefined)
    }
}

/// A test of two groups of a mean or ratio and its replicates, at any gap: nine numbers of each (a gap, a variance and a
/// sum of cubes as polynomials in the shift of the first group). `shapes` has a row per group: the units that count, the
/// sums of squares and of cubes of the linearised values.
#[pyclass(frozen, eq, module = "fairaudit_rs._native")]
#[derive(PartialEq)]
pub(crate) struct Shifts {
    shifts: permutation::Shifts,
}

#[pymethods]
impl Shifts {
    #[new]
    fn new(
        py: Python<'_>,
        observed: Dense<'_, f64>,
        shapes: Dense<'_, f64, Ix2>,
        replicates: Dense<'_, f64, Ix2>,
    ) -> PyResult<Self> {
        let refused = |name: &str, shape: &[usize], accepted: &str| {
            Err(to_python(py, &Error::argument(name, format!("of shape {shape:?}"), accepted)))
        };
        let Ok(numbers) = Shift::try_from(&observed[..]) else {
            return refused("observed", observed.shape(), "nine numbers");
        };
        if shapes.shape() != [2, 3] {
            return refused("shapes", shapes.shape(), "three numbers of two groups");
        }
        if replicates.shape()[1] != NUMBERS {
            return refused("replicates", replicates.shape(), "nine numbers of each replicate");
        }
        let shape = |row: &[f64]| Shape { units: row[0], squares: row[1], cubes: row[2] };
        let shapes = [shape(&shapes[..3]), shape(&shapes[3..])];
        let rows = replicates.as_chunks::<NUMBERS>().0;
        let shifts = permutation::Shifts::new(numbers, shapes, rows).map_err(|error| to_python(py, &error))?;
        Ok(Self { shifts })
    }

    #[allow(clippy::type_complexity)] // the arguments of `new`
    fn __getnewargs__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let numbers = self.shifts.replicates().flatten().collect();
        let rows = Array2::from_shape_vec((self.shifts.n(), NUMBERS), numbers)
            .map_err(|error| to_python(py, &Error::argument("replicates", error, "nine numbers of each")))?;
        Ok((self.shifts.observed.to_pyarray(py), self.shapes(py), rows.to_pyarray(py)))
    }

    /// Number of replicates.
    #[getter]
    fn n(&self) -> usize {
        self.shifts.n()
    }

    /// The gap as observed.
    #[getter]
    fn estimate(&self) -> f64 {
        self.shifts.observed[0]
    }

    /// Its variance.
    #[getter]
    fn variance(&self) -> f64 {
        self.shifts.observed[2]
    }

    /// The gap in standard errors.
    #[getter]
    fn studentized(&self) -> f64 {
        self.shifts.statistics().0
    }

    /// The same, corrected for skewness.
    #[getter]
    fn corrected(&self) -> f64 {
        self.shifts.statistics().1
    }

    #[getter]
    fn shapes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        let rows = self.shifts.shapes.map(|shape| [shape.units, shape.squares, shape.cubes]);
        Array2::from(rows.to_vec()).to_pyarray(py)
    }

    /// The gap in standard errors of every replicate.
    fn null_distribution<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.shifts.null_distribution())
    }

    /// How many replicates are at least as extreme as the data on one side, when the gap is `gap`.
    fn extremes(&self, py: Python<'_>, gap: f64, alternative: &str, call: &Call) -> PyResult<Extremes> {
        let side = one_side(py, alternative)?;
        let work = WORK * self.shifts.n() as u64;
        let counted = call.on_one_thread(py).run(py, work, |_| Ok(self.shifts.extremes(gap, side)))?;
        let permutation::Extremes { studentized, corrected, undefined } = counted;
        Ok(Extremes { studentized, corrected, undefined })
    }

    /// The outermost gap that is not rejected on one side at a level: a lower limit for "greater".
    fn limit(&self, py: Python<'_>, alternative: &str, level: f64, call: &Call) -> PyResult<f64> {
        let side = one_side(py, alternative)?;
        if !(level > 0.0 && level < 1.0) {
            return Err(to_python(py, &Error::argument("level", level, "a number between 0 and 1")));
        }
        let work = LOOKS * WORK * self.shifts.n() as u64;
        call.on_one_thread(py).run(py, work, |control| self.shifts.limit(side, level, control))
    }

    /// The same test with the replicates of both.
    fn joined(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let work = WORK * (self.shifts.n() + other.shifts.n()) as u64;
        let join = |_: &Control| {
            let rows: Vec<Shift> = self.shifts.replicates().chain(other.shifts.replicates()).collect();
            permutation::Shifts::new(self.shifts.observed, self.shifts.shapes, &rows)
        };
        Call::or_ordinary(None).run(py, work, join).map(Self::of)
    }
}

/// Nanoseconds of a replicate in a count, and counts in the search for a limit.
const WORK: u64 = 5;
const LOOKS: u64 = 50;

fn one_side(py: Python<'_>, name: &str) -> PyResult<Side> {
    match alternative(py, name)? {
        Alternative::Greater => Ok(Side::Greater),
        Alternative::Less => Ok(Side::Less),
        Alternative::TwoSided => Err(to_python(py, &Error::argument("alternative", name, "greater, less"))),
    }
}

impl Shifts {
    /// Those of the core.
    pub(crate) fn of(shifts: permutation::Shifts) -> Self {
        Self { shifts }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Extremes>()?;
    module.add_class::<Shifts>()
}
