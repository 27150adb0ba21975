//! The individual lens: flows with their paths, moments, bootstrap.

use std::str::FromStr;

use fairaudit_core::Error;
use fairaudit_core::individual::kernel::{self, Function, Penalty};
use fairaudit_core::individual::{self as core, Audit, Loss, Moments, Rows, audit_scores, bootstrap, linear};
use fairaudit_core::parallel::Control;
use numpy::ndarray::Dimension;
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{not_contiguous, slice};
use crate::bootstrap::Replicates;
use crate::call::to_python;
use crate::options::{Call, Draws};

/// Nanoseconds that the loss, the ratio and the moments of a score take on one core, roughly.
const AUDIT_WORK: u64 = 4;

/// A choice by its name.
fn parsed<T: FromStr<Err = Error>>(py: Python<'_>, name: &str) -> PyResult<T> {
    name.parse().map_err(|error| to_python(py, &error))
}

/// The values of an array, row by row: arrays that lie column by column are contiguous too.
fn in_order<'a, D: Dimension>(array: &'a PyReadonlyArray<'_, f64, D>) -> PyResult<&'a [f64]> {
    array.as_array().to_slice().ok_or_else(not_contiguous)
}

/// A matrix of values that come row by row; `n_columns` of them each.
fn matrix(py: Python<'_>, values: Vec<f64>, n_columns: usize) -> PyResult<Py<PyArray2<f64>>> {
    let n_rows = values.len() / n_columns.max(1);
    Ok(PyArray1::from_vec(py, values).reshape([n_rows, n_columns])?.unbind())
}

/// Steps of length `size / t^decay`, and the numbers of steps after which scores are kept.
#[pyclass(frozen, module = "fairaudit_rs._native")]
pub(crate) struct Schedule {
    #[pyo3(get)]
    n_steps: usize,
    #[pyo3(get)]
    size: f64,
    #[pyo3(get)]
    decay: f64,
    #[pyo3(get)]
    solver: String,
    #[pyo3(get)]
    record: Vec<usize>,
    /// Where the stages of a step lie in it, and how much each counts.
    #[pyo3(get)]
    stages: (Vec<f64>, Vec<f64>),
    steps: core::Schedule,
}

#[pymethods]
impl Schedule {
    #[new]
    #[pyo3(signature = (n_steps, size, *, decay, solver, record))]
    fn new(
        py: Python<'_>,
        n_steps: usize,
        size: f64,
        decay: f64,
        solver: String,
        record: Vec<usize>,
    ) -> PyResult<Self> {
        let by = parsed(py, &solver)?;
        let steps = core::Schedule::new(n_steps, size, decay, by, record.clone());
        let steps = steps.map_err(|error| to_python(py, &error))?;
        let (places, shares) = steps.stages();
        Ok(Self { n_steps, size, decay, solver, record, stages: (places.to_vec(), shares.to_vec()), steps })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((usize, f64), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("decay", self.decay)?;
        named.set_item("solver", &self.solver)?;
        named.set_item("record", &self.record)?;
        Ok(((self.n_steps, self.size), named))
    }
}

/// Sums of the audit value along the flow, by part of the rows and recorded step.
#[pyclass(frozen, module = "fairaudit_rs._native")]
pub(crate) struct Path(core::Path);

#[pymethods]
impl Path {
    /// Of sums by part: rows that count, means and squared deviations; of sums of all rows: wrong decisions at the
    /// start, and for each recorded step wrong ones, those wrong at both, whether all scores are finite.
    #[new]
    fn new(
        py: Python<'_>,
        n_rows: u64,
        parts: Vec<(u64, f64, f64)>,
        wrong_start: u64,
        errors: Vec<(u64, u64, bool)>,
    ) -> PyResult<Self> {
        if !parts.len().is_multiple_of(errors.len().max(1)) {
            let accepted = format!("as many for each part as errors, which are {}", errors.len());
            return Err(to_python(py, &Error::argument("parts", format!("{} sums", parts.len()), &accepted)));
        }
        let mut path = core::Path::new(errors.len());
        path.moments = parts.into_iter().map(|(n, mean, squares)| Moments { n, mean, squares }).collect();
        (path.n_rows, path.wrong_start) = (n_rows, wrong_start);
        for (i, (wrong, both, finite)) in errors.into_iter().enumerate() {
            (path.wrong_end[i], path.wrong_both[i], path.finite[i]) = (wrong, both, finite);
        }
        Ok(Self(path))
    }

    /// The path of the rows of several ones, in their order: of whole parts of rows, but for the last.
    #[staticmethod]
    fn joined(py: Python<'_>, paths: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let mut paths = paths.iter();
        let mut all = paths.next().map(|path| path.0.clone()).unwrap_or_default();
        for path in paths {
            all.extend(&path.0).map_err(|error| to_python(py, &error))?;
        }
        Ok(Self(all))
    }

    #[getter]
    fn n_rows(&self) -> u64 {
        self.0.n_rows
    }

    /// Rows that count, by recorded step.
    #[getter]
    fn n(&self) -> Vec<u64> {
        self.0.totals().iter().map(|total| total.n).collect()
    }

    /// The means of their ratios.
    #[getter]
    fn mean(&self) -> Vec<f64> {
        self.0.totals().iter().map(|total| total.mean).collect()
    }

    /// Sums of the squared deviations from these.
    #[getter]
    fn squares(&self) -> Vec<f64> {
        self.0.totals().iter().map(|total| total.squares).collect()
    }

    #[getter]
    fn wrong_start(&self) -> u64 {
        self.0.wrong_start
    }

    #[getter]
    fn wrong_end(&self) -> Vec<u64> {
        self.0.wrong_end.clone()
    }

    #[getter]
    fn wrong_both(&self) -> Vec<u64> {
        self.0.wrong_both.clone()
    }

    #[getter]
    fn finite(&self) -> Vec<bool> {
        self.0.finite.clone()
    }

    #[allow(clippy::type_complexity)] // the arguments of `new`
    fn __getnewargs__(&self) -> (u64, Vec<(u64, f64, f64)>, u64, Vec<(u64, u64, bool)>) {
        let path = &self.0;
        let parts = path.moments.iter().map(|part| (part.n, part.mean, part.squares)).collect();
        let wrong = path.wrong_end.iter().zip(&path.wrong_both).zip(&path.finite);
        (path.n_rows, parts, path.wrong_start, wrong.map(|((&end, &both), &finite)| (end, both, finite)).collect())
    }
}

/// Rows before and after the flow, and the audit value on the way.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
pub(crate) struct Flowed {
    /// Scores at the start, by score and row.
    start: Py<PyArray2<f64>>,
    /// And at the end.
    end: Py<PyArray2<f64>>,
    /// How far each row has moved.
    moved: Py<PyArray2<f64>>,
    loss_start: Py<PyArray1<f64>>,
    loss_end: Py<PyArray1<f64>>,
    path: Py<Path>,
}

#[pymethods]
impl Flowed {
    #[new]
    fn new(
        start: Py<PyArray2<f64>>,
        end: Py<PyArray2<f64>>,
        moved: Py<PyArray2<f64>>,
        loss_start: Py<PyArray1<f64>>,
        loss_end: Py<PyArray1<f64>>,
        path: Py<Path>,
    ) -> Self {
        Self { start, end, moved, loss_start, loss_end, path }
    }

    /// Of scores by recorded step, score and row; `moved` is given.
    #[staticmethod]
    #[pyo3(signature = (scores, moved, targets, loss, call, *, floor, boundary))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn of_scores(
        py: Python<'_>,
        scores: PyReadonlyArray3<'_, f64>,
        moved: Py<PyArray2<f64>>,
        targets: PyReadonlyArray1<'_, f64>,
        loss: &str,
        call: &Call,
        floor: Option<f64>,
        boundary: Option<f64>,
    ) -> PyResult<Self> {
        let (loss, audit): (Loss, _) = (parsed(py, loss)?, Audit { floor, boundary });
        let n_scores = scores.as_array().shape()[1];
        let scores = in_order(&scores)?;
        let targets = slice(&targets)?;
        let work = AUDIT_WORK * scores.len() as u64;
        let run_it = |control: &_| audit_scores(scores, n_scores, targets, loss, audit, control);
        let found = call.run(py, work, run_it)?;
        let made = Self::made(py, found, targets.len(), 0)?;
        Ok(Self { moved, ..made })
    }

    #[allow(clippy::type_complexity)] // the arguments of `new`
    fn __getnewargs__(&self, py: Python<'_>) -> (Py<PyAny>, Py<PyAny>, Py<PyAny>, Py<PyAny>, Py<PyAny>, Py<PyAny>) {
        let [start, end, moved] = [&self.start, &self.end, &self.moved].map(|array| array.clone_ref(py).into_any());
        let [loss_start, loss_end] = [&self.loss_start, &self.loss_end].map(|array| array.clone_ref(py).into_any());
        (start, end, moved, loss_start, loss_end, self.path.clone_ref(py).into_any())
    }
}

impl Flowed {
    /// Of the core's; a row of `moved` has so many numbers.
    fn made(py: Python<'_>, found: core::Flowed, n_rows: usize, n_moved: usize) -> PyResult<Self> {
        Ok(Self {
            start: matrix(py, found.start, n_rows)?,
            end: matrix(py, found.end, n_rows)?,
            moved: matrix(py, found.moved, n_moved)?,
            loss_start: PyArray1::from_vec(py, found.loss_start).unbind(),
            loss_end: PyArray1::from_vec(py, found.loss_end).unbind(),
            path: Py::new(py, Path(found.path))?,
        })
    }
}

/// Rows on their way through the flow.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
pub(crate) struct FlowScores {
    /// By recorded step, score and row.
    scores: Py<PyArray3<f64>>,
    /// How far each row has moved after the last step.
    moved: Py<PyArray2<f64>>,
}

#[pymethods]
impl FlowScores {
    #[new]
    fn new(scores: Py<PyArray3<f64>>, moved: Py<PyArray2<f64>>) -> Self {
        Self { scores, moved }
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Py<PyAny>, Py<PyAny>) {
        (self.scores.clone_ref(py).into_any(), self.moved.clone_ref(py).into_any())
    }
}

impl FlowScores {
    /// Of the core's, at so many recorded steps; a row of `moved` has so many numbers.
    fn made(py: Python<'_>, found: core::Flow, n_points: usize, n_rows: usize, n_moved: usize) -> PyResult<Self> {
        let n_scores = found.scores.len() / (n_points * n_rows).max(1);
        Ok(Self {
            scores: PyArray1::from_vec(py, found.scores).reshape([n_points, n_scores, n_rows])?.unbind(),
            moved: matrix(py, found.moved, n_moved)?,
        })
    }
}

/// A sum of kernels at support vectors, for each score.
#[pyclass(frozen, module = "fairaudit_rs._native")]
pub(crate) struct KernelExpansion {
    support_vectors: Vec<f64>,
    dual_coef: Vec<f64>,
    intercepts: Vec<f64>,
    function: Function,
}

#[pymethods]
impl KernelExpansion {
    #[new]
    #[pyo3(signature = (support_vectors, dual_coef, intercepts, kernel, *, gamma, degree, coef0))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn new(
        py: Python<'_>,
        support_vectors: PyReadonlyArray2<'_, f64>,
        dual_coef: PyReadonlyArray2<'_, f64>,
        intercepts: Vec<f64>,
        kernel: &str,
        gamma: f64,
        degree: u32,
        coef0: f64,
    ) -> PyResult<Self> {
        let function = Function::new(kernel, gamma, degree, coef0).map_err(|error| to_python(py, &error))?;
        let (support_vectors, dual_coef) = (in_order(&support_vectors)?.to_vec(), in_order(&dual_coef)?.to_vec());
        Ok(Self { support_vectors, dual_coef, intercepts, function })
    }
}

/// The fair metric, as the flow meets it: what pulls back what has moved, in units of the features.
#[pyclass(frozen, module = "fairaudit_rs._native")]
pub(crate) struct MetricPull {
    units: Vec<f64>,
    pulls: Vec<f64>,
    eigenvectors: Vec<f64>,
    rest: f64,
}

#[pymethods]
impl MetricPull {
    /// `pulls` are 2 penalty times the eigenvalues, eigenvectors come one after the other, `rest` is 2 penalty times
    /// the eigenvalue of everything orthogonal to them.
    #[new]
    fn new(
        units: PyReadonlyArray1<'_, f64>,
        pulls: Vec<f64>,
        eigenvectors: PyReadonlyArray2<'_, f64>,
        rest: f64,
    ) -> PyResult<Self> {
        let (units, eigenvectors) = (slice(&units)?.to_vec(), in_order(&eigenvectors)?.to_vec());
        Ok(Self { units, pulls, eigenvectors, rest })
    }
}

/// What gives the scores, and what holds rows back.
enum Law {
    Linear { coef: Vec<f64>, intercepts: Vec<f64>, pulls: Vec<f64>, gains: Vec<f64> },
    Kernel { model: Py<KernelExpansion>, metric: Py<MetricPull>, held: Vec<Vec<usize>> },
}

/// Rows, targets, a model and a fair metric. Arrays of rows are held by reference, and looked at by `run`.
#[pyclass(frozen, module = "fairaudit_rs._native")]
pub(crate) struct Flow {
    features: Py<PyArray2<f64>>,
    targets: Py<PyArray1<f64>>,
    loss: Loss,
    law: Law,
}

#[pymethods]
impl Flow {
    /// Of scores `features @ coef.T + intercepts`. `pulls` are 2 penalty times the eigenvalues of the metric, `gains`
    /// W P W' for the coefficients W and the projection P of each; rows move along the P W.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn linear(
        py: Python<'_>,
        features: Py<PyArray2<f64>>,
        targets: Py<PyArray1<f64>>,
        loss: &str,
        coef: PyReadonlyArray2<'_, f64>,
        intercepts: Vec<f64>,
        pulls: Vec<f64>,
        gains: PyReadonlyArray3<'_, f64>,
    ) -> PyResult<Self> {
        let coef = in_order(&coef)?.to_vec();
        let gains = in_order(&gains)?.to_vec();
        Ok(Self { features, targets, loss: parsed(py, loss)?, law: Law::Linear { coef, intercepts, pulls, gains } })
    }

    /// Of a kernel model; rows move in units of the features. Groups of features that are `held` stay at least 0 with
    /// a sum of 1.
    #[staticmethod]
    fn kernel(
        py: Python<'_>,
        features: Py<PyArray2<f64>>,
        targets: Py<PyArray1<f64>>,
        loss: &str,
        model: Py<KernelExpansion>,
        metric: Py<MetricPull>,
        held: Vec<Vec<usize>>,
    ) -> PyResult<Self> {
        Ok(Self { features, targets, loss: parsed(py, loss)?, law: Law::Kernel { model, metric, held } })
    }

    /// Moves all rows. Losses below `floor` count as it; without one, ratios that are not finite are left out. From
    /// `boundary` on the decision is 1; with several scores, which have none, the largest decides.
    #[pyo3(signature = (schedule, call, *, floor, boundary))]
    fn run(
        &self,
        py: Python<'_>,
        schedule: &Schedule,
        call: &Call,
        floor: Option<f64>,
        boundary: Option<f64>,
    ) -> PyResult<Flowed> {
        let (steps, audit) = (&schedule.steps, Audit { floor, boundary });
        self.moved(
            py,
            schedule,
            call,
            |problem, control| problem.audit(steps, audit, control),
            |problem, control| problem.audit(steps, audit, control),
            |found, n_rows, n_moved| Flowed::made(py, found, n_rows, n_moved),
        )
    }

    /// Moves all rows, and returns their scores at every recorded step.
    fn scores(&self, py: Python<'_>, schedule: &Schedule, call: &Call) -> PyResult<FlowScores> {
        let steps = &schedule.steps;
        self.moved(
            py,
            schedule,
            call,
            |problem, control| problem.flow(steps, control),
            |problem, control| problem.flow(steps, control),
            |found, n_rows, n_moved| FlowScores::made(py, found, schedule.record.len(), n_rows, n_moved),
        )
    }
}

impl Flow {
    /// What a function makes of a linear or a kernel problem; it is handed on with the number of rows, and of numbers
    /// in a row of what says how far they moved.
    fn moved<T: Send, U>(
        &self,
        py: Python<'_>,
        schedule: &Schedule,
        call: &Call,
        of_linear: impl FnOnce(linear::Problem<'_>, &Control) -> Result<T, Error> + Send,
        of_kernel: impl FnOnce(kernel::Problem<'_>, &Control) -> Result<T, Error> + Send,
        made: impl FnOnce(T, usize, usize) -> PyResult<U>,
    ) -> PyResult<U> {
        let (steps, loss) = (&schedule.steps, self.loss);
        let (features, targets) = (self.features.bind(py).try_readonly()?, self.targets.bind(py).try_readonly()?);
        let rows = Rows { features: in_order(&features)?, targets: slice(&targets)? };
        let n_rows = rows.targets.len();
        let audit_work = |n_scores: usize| (n_scores * n_rows * schedule.record.len()) as u64 * AUDIT_WORK;
        match &self.law {
            Law::Linear { coef, intercepts, pulls, gains } => {
                let model = linear::Model { coef, intercepts };
                let problem = linear::Problem { rows, loss, model, pulls, gains };
                let work = problem.work(steps).saturating_add(audit_work(intercepts.len()));
                made(call.run(py, work, |control| of_linear(problem, control))?, n_rows, n_rows)
            }
            Law::Kernel { model, metric, held } => {
                let (model, metric) = (model.get(), metric.get());
                let KernelExpansion { support_vectors, dual_coef, intercepts, function } = model;
                let model = kernel::Model { support_vectors, dual_coef, intercepts, function: *function };
                let MetricPull { units, pulls, eigenvectors, rest } = metric;
                let penalty = Penalty { units, pulls, eigenvectors, rest: *rest };
                let problem = kernel::Problem { rows, loss, model, penalty, held };
                let work = problem.work(steps).saturating_add(audit_work(intercepts.len()));
                made(call.run(py, work, |control| of_kernel(problem, control))?, n_rows, units.len())
            }
        }
    }
}

/// Mean, and sum of the squared deviations from it; their bits do not depend on the order.
#[pyfunction]
fn moments(py: Python<'_>, values: PyReadonlyArray1<'_, f64>, call: &Call) -> PyResult<(f64, f64)> {
    let values = slice(&values)?;
    let work = 4 * values.len() as u64;
    call.on_one_thread(py).run(py, work, |control| core::moments(values, control))
}

/// Replicates of a mean, or of a ratio of sums, of one group.
#[pyfunction]
fn bootstrap_ratio(
    py: Python<'_>,
    numerator: PyReadonlyArray1<'_, f64>,
    denominator: Option<PyReadonlyArray1<'_, f64>>,
    draws: &Draws,
    call: &Call,
) -> PyResult<Replicates> {
    let numerator = slice(&numerator)?;
    let denominator = denominator.as_ref().map(slice).transpose()?;
    let work = (numerator.len() as u64).saturating_mul(draws.n);
    let replicates = call.run(py, work, |control| bootstrap(numerator, denominator, &draws.core(), control))?;
    Replicates::of(py, replicates)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("FLOW_PART", core::PART)?;
    module.add_class::<Flow>()?;
    module.add_class::<FlowScores>()?;
    module.add_class::<Flowed>()?;
    module.add_class::<KernelExpansion>()?;
    module.add_class::<MetricPull>()?;
    module.add_class::<Path>()?;
    module.add_class::<Schedule>()?;
    module.add_function(wrap_pyfunction!(bootstrap_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(moments, module)?)
}
