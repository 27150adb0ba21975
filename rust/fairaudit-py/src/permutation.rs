//! The permutation lens: one object per comparison.

use fairaudit_core::Error;
use fairaudit_core::metrics::Evaluation;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{
    Alternative, Conditioning, CountTest, Groups, RowTest, Studentize, center_of, count_extreme, exact, max_t,
    null_distribution,
};
use fairaudit_core::simd::InstructionSet;
use fairaudit_core::tabulate::Table;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::arrays::{not_contiguous, slice};
use crate::bootstrap::flat;
use crate::call::to_python;
use crate::metrics::{CLASS_WORK, PyMetric};
use crate::options::{Call, Draws};

pub(crate) fn studentize(py: Python<'_>, name: &str) -> PyResult<Studentize> {
    match name {
        "none" => Ok(Studentize::None),
        "unpooled" => Ok(Studentize::Unpooled),
        "pooled" => Ok(Studentize::Pooled),
        other => Err(to_python(py, &Error::argument("studentize", other, "none, unpooled, pooled"))),
    }
}

fn alternative(py: Python<'_>, name: &str) -> PyResult<Alternative> {
    match name {
        "two-sided" => Ok(Alternative::TwoSided),
        "greater" => Ok(Alternative::Greater),
        "less" => Ok(Alternative::Less),
        other => Err(to_python(py, &Error::argument("alternative", other, "two-sided, greater, less"))),
    }
}

/// Value, variance, numerator, denominator.
type EvaluationParts = (f64, f64, f64, f64);

fn tuples(evaluations: &[Evaluation]) -> Vec<EvaluationParts> {
    evaluations.iter().map(|e| (e.value, e.variance, e.numerator, e.denominator)).collect()
}

type ExactLaw<'py> = (f64, f64, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A permutation test on a table of counts.
#[pyclass(name = "CountTest", frozen, module = "fairaudit_rs._native")]
struct PyTest {
    test: CountTest,
    /// Estimated nanoseconds of evaluating the metric in all groups, and of a replicate.
    evaluation_work: u64,
    replicate_work: u64,
}

#[pymethods]
impl PyTest {
    /// `counts` in the order stratum, group, class. `parts` of the classes exchange their
    /// groups among themselves; "denominator" takes the parts from a proportion.
    #[new]
    #[pyo3(signature = (counts, n_groups, metric, studentize, conditioning=None, call=None))]
    fn new(
        py: Python<'_>,
        counts: PyReadonlyArray1<'_, u64>,
        n_groups: usize,
        metric: &PyMetric,
        studentize: &str,
        conditioning: Option<Parts>,
        call: Option<&Call>,
    ) -> PyResult<Self> {
        let conditioning = match conditioning {
            None => Conditioning::None,
            Some(Parts::Classes(parts)) => Conditioning::Parts(parts),
            Some(Parts::Name(name)) if name == "denominator" => Conditioning::Denominator,
            Some(Parts::Name(name)) => {
                return Err(to_python(
                    py,
                    &Error::argument("conditioning", name, "None, denominator, a part per class"),
                ));
            }
        };
        let counts = slice(&counts)?.to_vec();
        let replicate_work = 100 + 40 * counts.len() as u64;
        let studentize = self::studentize(py, studentize)?;
        let evaluation_work = CLASS_WORK * counts.len() as u64;
        let test = Call::or_ordinary(call).run(py, 10 * evaluation_work, |_| {
            let table = Table::new(counts, n_groups, metric.metric.n_classes())?;
            CountTest::new(&table, &metric.metric, &conditioning, studentize)
        })?;
        Ok(Self { test, evaluation_work, replicate_work })
    }

    /// (value, variance, numerator, denominator) of every group.
    #[pyo3(signature = (call=None))]
    fn evaluations(&self, py: Python<'_>, call: Option<&Call>) -> PyResult<Vec<EvaluationParts>> {
        let evaluations = Call::or_ordinary(call).run(py, self.evaluation_work, |_| Ok(self.test.evaluations()))?;
        Ok(tuples(&evaluations))
    }

    /// The metric of every group that its strata alone explain.
    fn expected(&self) -> Vec<f64> {
        self.test.expected().to_vec()
    }

    /// The observed statistic.
    #[pyo3(signature = (call=None))]
    fn observed(&self, py: Python<'_>, call: Option<&Call>) -> PyResult<f64> {
        Call::or_ordinary(call).run(py, self.evaluation_work, |_| Ok(self.test.observed()))
    }

    /// (p, probability of undefined, statistics, probabilities), or None when the law is too
    /// large to be summed.
    fn exact<'py>(&self, py: Python<'py>, alternative: &str, call: &Call) -> PyResult<Option<ExactLaw<'py>>> {
        let alternative = self::alternative(py, alternative)?;
        let Some(work) = self.test.exact_work() else { return Ok(None) };
        let law = call.on_one_thread(py).run(py, work, |control| exact(&self.test, alternative, control))?;
        Ok(law.map(|law| {
            let statistics = PyArray1::from_vec(py, law.statistics);
            (law.pvalue, law.undefined, statistics, PyArray1::from_vec(py, law.probabilities))
        }))
    }

    /// Whether the null distribution must be centred at its own mean.
    #[getter]
    fn needs_centring(&self) -> bool {
        self.test.needs_centring()
    }

    /// The statistic of some permutations.
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let work = self.replicate_work.saturating_mul(draws.n);
        let null = call.run(py, work, |control| null_distribution(&self.test, &draws.core(), control))?;
        Ok(PyArray1::from_vec(py, null))
    }

    /// Step-down max-T p-values of pairs of groups.
    fn max_t(&self, py: Python<'_>, pairs: Vec<(usize, usize)>, draws: &Draws, call: &Call) -> PyResult<Vec<f64>> {
        let work = (self.replicate_work + 10 * pairs.len() as u64).saturating_mul(draws.n);
        call.run(py, work, |control| max_t(&self.test, &pairs, &draws.core(), control))
    }
}

/// A permutation test on rows: ranks and ratios of sums.
#[pyclass(name = "RowTest", frozen, module = "fairaudit_rs._native")]
struct PyRowTest {
    test: RowTest,
}

#[pymethods]
impl PyRowTest {
    /// Area under the ROC curve; with `cluster`, the cluster of each row, `group` and `stratum`
    /// are those of the clusters.
    #[staticmethod]
    #[pyo3(signature = (score, positive, group, n_groups, studentize, call, stratum=None, weight=None, cluster=None,
        within_labels=false))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn auc(
        py: Python<'_>,
        score: PyReadonlyArray1<'_, f64>,
        positive: PyReadonlyArray1<'_, bool>,
        group: PyReadonlyArray1<'_, u16>,
        n_groups: usize,
        studentize: &str,
        call: &Call,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        cluster: Option<PyReadonlyArray1<'_, u32>>,
        within_labels: bool,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (score, positive, group) = (slice(&score)?, slice(&positive)?, slice(&group)?);
        let (stratum, weight) = (stratum.as_ref().map(slice).transpose()?, weight.as_ref().map(slice).transpose()?);
        let cluster = cluster.as_ref().map(slice).transpose()?;
        let groups = Groups { group, n_groups, stratum };
        Self::make(py, call, score.len(), |control| match cluster {
            None => RowTest::auc(score, positive, weight, groups, within_labels, studentize, control),
            Some(cluster) => RowTest::clustered_auc(score, positive, weight, cluster, groups, studentize, control),
        })
    }

    /// sum a / sum d of rows or clusters, both with the weights multiplied in; d = 1 when it is
    /// left out.
    #[staticmethod]
    #[pyo3(signature = (numerator, denominator, group, n_groups, studentize, call, stratum=None))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn ratio(
        py: Python<'_>,
        numerator: PyReadonlyArray1<'_, f64>,
        denominator: Option<PyReadonlyArray1<'_, f64>>,
        group: PyReadonlyArray1<'_, u16>,
        n_groups: usize,
        studentize: &str,
        call: &Call,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (numerator, group) = (slice(&numerator)?, slice(&group)?);
        let denominator = denominator.as_ref().map(slice).transpose()?;
        let groups = Groups { group, n_groups, stratum: stratum.as_ref().map(slice).transpose()? };
        Self::make(py, call, numerator.len(), |control| {
            RowTest::ratio(numerator, denominator, groups, studentize, control)
        })
    }

    /// A formula over confusion counts: of each row or cluster its weighted tp, fp, fn, tn.
    #[staticmethod]
    #[pyo3(signature = (counts, metric, group, n_groups, studentize, call, stratum=None))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn counts(
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, f64>,
        metric: &PyMetric,
        group: PyReadonlyArray1<'_, u16>,
        n_groups: usize,
        studentize: &str,
        call: &Call,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (units, rest) = counts.as_slice().map_err(|_| not_contiguous())?.as_chunks::<4>();
        if !rest.is_empty() || counts.as_array().ncols() != 4 {
            return Err(to_python(py, &Error::argument("counts", "of another shape", "four columns")));
        }
        let groups = Groups { group: slice(&group)?, n_groups, stratum: stratum.as_ref().map(slice).transpose()? };
        Self::make(py, call, units.len(), |control| RowTest::counts(units, &metric.metric, groups, studentize, control))
    }

    /// (value, variance, numerator, denominator) of every group.
    fn evaluations(&self) -> Vec<EvaluationParts> {
        tuples(&self.test.evaluations())
    }

    /// The metric of every group that its strata alone explain.
    fn expected(&self) -> Vec<f64> {
        self.test.expected().to_vec()
    }

    /// The observed statistic.
    fn observed(&self) -> f64 {
        self.test.observed()
    }

    /// Whether the null distribution must be centred at its own mean.
    #[getter]
    fn needs_centring(&self) -> bool {
        self.test.needs_centring()
    }

    /// The statistic of some permutations.
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let instructions = InstructionSet::current().map_err(|error| to_python(py, &error))?;
        let null = call
            .run(py, self.work(draws.n), |control| self.test.null_distribution(&draws.core(), instructions, control))?;
        Ok(PyArray1::from_vec(py, null))
    }

    /// Values and variances of bootstrap replicates; see `bootstrap_counts`.
    fn bootstrap<'py>(&self, py: Python<'py>, draws: &Draws, call: &Call) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let instructions = InstructionSet::current().map_err(|error| to_python(py, &error))?;
        let work = self.work(draws.n).saturating_mul(2);
        let replicates = call.run(py, work, |control| self.test.bootstrap(&draws.core(), instructions, control))?;
        Ok(flat(py, replicates))
    }

    /// Step-down max-T p-values of pairs of groups.
    fn max_t(&self, py: Python<'_>, pairs: Vec<(usize, usize)>, draws: &Draws, call: &Call) -> PyResult<Vec<f64>> {
        let instructions = InstructionSet::current().map_err(|error| to_python(py, &error))?;
        let work = self.work(draws.n);
        call.run(py, work, |control| self.test.max_t(&pairs, &draws.core(), instructions, control))
    }
}

impl PyRowTest {
    fn make(
        py: Python<'_>,
        call: &Call,
        rows: usize,
        build: impl FnOnce(&Control) -> fairaudit_core::Result<RowTest> + Send,
    ) -> PyResult<Self> {
        Ok(Self { test: call.run(py, 100 * rows as u64, build)? })
    }

    /// Estimated nanoseconds of some replicates.
    fn work(&self, n_resamples: u64) -> u64 {
        self.test.replicate_work().saturating_mul(n_resamples)
    }
}

#[derive(FromPyObject)]
enum Parts {
    Name(String),
    Classes(Vec<u32>),
}

/// (at least as extreme, undefined) among null statistics, taken from their mean if `centred`.
#[pyfunction(name = "count_extreme")]
fn py_count_extreme(
    py: Python<'_>,
    null: PyReadonlyArray1<'_, f64>,
    observed: f64,
    alternative: &str,
    centred: bool,
    call: &Call,
) -> PyResult<(u64, u64)> {
    let (null, alternative) = (slice(&null)?, self::alternative(py, alternative)?);
    call.on_one_thread(py).run(py, 3 * null.len() as u64, |_| {
        let center = if centred { center_of(null, observed) } else { 0.0 };
        Ok(count_extreme(null, observed, alternative, center))
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTest>()?;
    module.add_class::<PyRowTest>()?;
    module.add_function(wrap_pyfunction!(py_count_extreme, module)?)
}
