//! The extremes lens: values of a group, the fit of their tail, and comparisons of two of them.

use fairaudit_core::Error;
use fairaudit_core::extremes::cuts::last_score;
use fairaudit_core::extremes::laws::{Rule, permuted_differences, replicate_work};
use fairaudit_core::extremes::pair::{Levels, compare_all};
use fairaudit_core::extremes::tail::{Tail, Values};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::call::to_python;
use crate::cuts::{self, PyCuts};
use crate::influence::Floats;
use crate::options::{Call, Draws};

/// Nanoseconds of one evaluation of a curve, by exceedances.
fn curve_work(k: usize) -> u64 {
    2_000 + 15 * k as u64
}

/// The values of a group, sorted once.
#[pyclass(name = "TailValues", frozen, module = "fairaudit_rs._native")]
struct PyTailValues {
    core: Values,
}

#[pymethods]
impl PyTailValues {
    #[new]
    fn new(py: Python<'_>, values: PyReadonlyArray1<'_, f64>, call: &Call) -> PyResult<Self> {
        let values = slice(&values)?;
        let core = call.run(py, 80 * values.len() as u64, |control| Values::new(values, control))?;
        Ok(Self { core })
    }

    #[getter]
    fn n(&self) -> usize {
        self.core.n()
    }

    /// The largest ones, downwards.
    fn top<'py>(&self, py: Python<'py>, count: usize) -> Floats<'py> {
        PyArray1::from_slice(py, &self.core.descending()[..count.min(self.core.n())])
    }

    /// The order statistics around the level of horizon `m`, and whether they hold at the confidence.
    fn order_limits(&self, py: Python<'_>, m: f64, confidence: f64) -> PyResult<(f64, f64, bool)> {
        Call::brief(py, || Ok(self.core.order_limits(m, confidence)))
    }

    /// Distinct values among the `k` largest above the next one; the step of their grid where they are tied on one.
    fn ties(&self, py: Python<'_>, k: usize) -> PyResult<(usize, Option<f64>)> {
        Call::brief(py, || Ok(self.core.ties(k)))
    }

    /// The fit of the `k` largest.
    fn fit(&self, py: Python<'_>, k: usize, upper: Option<f64>, resolution: Option<f64>) -> PyResult<PyTail> {
        let core = Call::brief(py, || Tail::over_rank(&self.core, k, upper, resolution))?;
        Ok(PyTail { core })
    }

    /// The fit of all above a threshold.
    fn fit_over(&self, py: Python<'_>, threshold: f64, upper: Option<f64>) -> PyResult<PyTail> {
        let core = Call::brief(py, || Tail::over(&self.core, threshold, upper))?;
        Ok(PyTail { core })
    }
}

/// The fit of a tail.
#[pyclass(name = "Tail", frozen, module = "fairaudit_rs._native")]
struct PyTail {
    core: Tail,
}

#[pymethods]
impl PyTail {
    #[getter]
    fn n(&self) -> usize {
        self.core.n()
    }

    #[getter]
    fn k(&self) -> usize {
        self.core.k()
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.core.threshold()
    }

    #[getter]
    fn shape(&self) -> f64 {
        self.core.fit().shape
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.core.fit().scale
    }

    #[getter]
    fn log_likelihood(&self) -> f64 {
        self.core.fit().log_likelihood
    }

    #[getter]
    fn at_edge(&self) -> bool {
        self.core.fit().at_edge
    }

    /// Where the fitted law ends, on the scale of the values.
    #[getter]
    fn end(&self) -> f64 {
        self.core.end()
    }

    /// The fitted level of horizon `m`.
    fn level(&self, m: f64) -> f64 {
        self.core.level(m)
    }

    /// The interval of the level of horizon `m`.
    fn interval(&self, py: Python<'_>, m: f64, confidence: f64, cuts: &PyCuts, call: &Call) -> PyResult<(f64, f64)> {
        let work = 60 * curve_work(self.core.k());
        call.run(py, work, |_| self.core.interval(m, confidence, &cuts.core))
    }

    /// z of levels of horizon `m`.
    fn z<'py>(
        &self,
        py: Python<'py>,
        m: f64,
        levels: PyReadonlyArray1<'_, f64>,
        cuts: &PyCuts,
        call: &Call,
    ) -> PyResult<Floats<'py>> {
        let levels = slice(&levels)?;
        let work = (43 + levels.len() as u64) * curve_work(self.core.k());
        let found = call.run(py, work, |_| self.core.z(m, levels, &cuts.core))?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The interval of the shape; None where no shape fits.
    fn shape_interval(
        &self,
        py: Python<'_>,
        confidence: f64,
        cuts: &PyCuts,
        call: &Call,
    ) -> PyResult<Option<(f64, f64)>> {
        let work = 60 * curve_work(self.core.k());
        call.run(py, work, |_| Ok(self.core.shape_interval(confidence, &cuts.core)))
    }
}

/// A group in a comparison: by its fit and the cuts of its horizon, or by its values.
#[derive(FromPyObject)]
enum Side<'py> {
    Fitted(PyRef<'py, PyTail>, PyRef<'py, PyCuts>),
    Counted(PyRef<'py, PyTailValues>),
}

/// The same, borrowed without the GIL.
enum Held<'a> {
    Fitted(&'a Tail, &'a fairaudit_core::extremes::cuts::Cuts),
    Counted(&'a Values),
}

impl Side<'_> {
    fn held(&self) -> Held<'_> {
        match self {
            Self::Fitted(tail, cuts) => Held::Fitted(&tail.core, &cuts.core),
            Self::Counted(values) => Held::Counted(&values.core),
        }
    }
}

impl<'a> Held<'a> {
    fn work(&self) -> u64 {
        match self {
            Self::Fitted(tail, _) => 1_200 * curve_work(tail.k()),
            Self::Counted(_) => 100_000,
        }
    }

    fn levels(&self, m: f64) -> fairaudit_core::Result<Levels<'a>> {
        match self {
            Self::Fitted(tail, cuts) => tail.levels(m, cuts),
            Self::Counted(values) => Ok(Levels::Counted { values: values.descending(), horizon: m }),
        }
    }
}

/// Of pairs of groups, by their places: Q, its p-value, and the interval of the first level of horizon `m` less the second.
#[pyfunction]
fn compare_levels(
    py: Python<'_>,
    sides: Vec<Side<'_>>,
    pairs: Vec<(usize, usize)>,
    m: f64,
    confidence: f64,
    call: &Call,
) -> PyResult<Vec<(f64, f64, f64, f64)>> {
    let held: Vec<Held<'_>> = sides.iter().map(Side::held).collect();
    if let Some((first, second)) = pairs.iter().find(|(first, second)| *first.max(second) >= held.len()) {
        let accepted = format!("places below {}", held.len());
        return Err(to_python(py, &Error::argument("pairs", format!("({first}, {second})"), &accepted)));
    }
    let work = pairs.iter().map(|&(first, second)| held[first].work() + held[second].work()).sum();
    let found =
        call.run(py, work, |control| compare_all(&pairs, confidence, control, |place| held[place].levels(m)))?;
    Ok(found.into_iter().map(|one| (one.statistic, one.pvalue, one.low, one.high)).collect())
}

/// Differences of fitted return levels, of a horizon with a known end or none, of groups whose rows were permuted.
#[pyfunction]
fn permuted_level_differences<'py>(
    py: Python<'py>,
    first: &PyTailValues,
    second: &PyTailValues,
    exceedances: (usize, usize),
    level: (f64, Option<f64>),
    draws: &Draws,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let rules = [exceedances.0, exceedances.1].map(|k| Rule { k, m: level.0, upper: level.1 });
    let work = draws.n * replicate_work(exceedances.0 + exceedances.1);
    let found =
        call.run(py, work, |control| permuted_differences(&first.core, &second.core, rules, &draws.core(), control))?;
    Ok(PyArray1::from_vec(py, found))
}

/// |z| beyond which a p-value is a bound.
#[pyfunction]
fn last_cut_score() -> f64 {
    last_score()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    cuts::register(module)?;
    module.add_class::<PyTailValues>()?;
    module.add_class::<PyTail>()?;
    module.add_function(wrap_pyfunction!(compare_levels, module)?)?;
    module.add_function(wrap_pyfunction!(permuted_level_differences, module)?)?;
    module.add_function(wrap_pyfunction!(last_cut_score, module)?)
}
