//! The permutation lens: one object per comparison.

use fairaudit_core::Error;
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
use crate::call::{Run, draws, run, run_shared, to_python};
use crate::metrics::PyMetric;

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

type ExactLaw<'py> = (f64, f64, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A permutation test on a table of counts.
#[pyclass(name = "CountTest", frozen, module = "fairaudit_rs._native")]
struct PyTest {
    test: CountTest,
    /// Estimated nanoseconds of a replicate.
    replicate_work: u64,
}

#[pymethods]
impl PyTest {
    /// `counts` in the order stratum, group, class. `parts` of the classes exchange their
    /// groups among themselves; "denominator" takes the parts from a proportion.
    #[new]
    #[pyo3(signature = (counts, n_groups, metric, studentize, conditioning=None))]
    fn new(
        py: Python<'_>,
        counts: PyReadonlyArray1<'_, u64>,
        n_groups: usize,
        metric: &PyMetric,
        studentize: &str,
        conditioning: Option<Parts>,
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
        let test = Table::new(counts, n_groups, metric.metric.n_classes())
            .and_then(|table| CountTest::new(&table, &metric.metric, &conditioning, studentize))
            .map_err(|error| to_python(py, &error))?;
        Ok(Self { test, replicate_work })
    }

    /// (value, variance, numerator, denominator) of every group.
    fn evaluations(&self) -> Vec<(f64, f64, f64, f64)> {
        self.test.evaluations().iter().map(|e| (e.value, e.variance, e.numerator, e.denominator)).collect()
    }

    /// The metric of every group that its strata alone explain.
    fn expected(&self) -> Vec<f64> {
        self.test.expected().to_vec()
    }

    /// The observed statistic.
    fn observed(&self) -> f64 {
        self.test.observed()
    }

    /// (p, probability of undefined, statistics, probabilities), or None when the law is too
    /// large to be summed.
    fn exact<'py>(&self, py: Python<'py>, alternative: &str) -> PyResult<Option<ExactLaw<'py>>> {
        let alternative = self::alternative(py, alternative)?;
        if self.test.exact_work().is_none() {
            return Ok(None);
        }
        // Enumeration takes a million steps at most; only that is worth a thread to wait on.
        let run_exact = Run { py, n_threads: Some(1), progress: None, work: u64::MAX };
        let law = run(run_exact, |control| exact(&self.test, alternative, control))?;
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

    /// The statistic of `n_resamples` permutations from the replicate `first` on.
    #[pyo3(signature = (n_resamples, seed, series=0, n_threads=None, progress=None, first=0))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        n_resamples: u64,
        seed: u64,
        series: u64,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
        first: u64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let work = self.replicate_work.saturating_mul(n_resamples);
        let null = run_shared(Run { py, n_threads, progress, work }, |control| {
            null_distribution(&self.test, &draws(first, n_resamples, seed, series), control)
        })?;
        Ok(PyArray1::from_vec(py, null))
    }

    /// Step-down max-T p-values of pairs of groups.
    #[pyo3(signature = (pairs, n_resamples, seed, series=0, n_threads=None, progress=None))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn max_t(
        &self,
        py: Python<'_>,
        pairs: Vec<(usize, usize)>,
        n_resamples: u64,
        seed: u64,
        series: u64,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<f64>> {
        let work = (self.replicate_work + 10 * pairs.len() as u64).saturating_mul(n_resamples);
        run(Run { py, n_threads, progress, work }, |control| {
            max_t(&self.test, &pairs, &draws(0, n_resamples, seed, series), control)
        })
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
    #[pyo3(signature = (score, positive, group, n_groups, studentize, stratum=None, weight=None, cluster=None,
        within_labels=false))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn auc(
        py: Python<'_>,
        score: PyReadonlyArray1<'_, f64>,
        positive: PyReadonlyArray1<'_, bool>,
        group: PyReadonlyArray1<'_, u16>,
        n_groups: usize,
        studentize: &str,
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
        Self::make(py, score.len(), |control| match cluster {
            None => RowTest::auc(score, positive, weight, groups, within_labels, studentize, control),
            Some(cluster) => RowTest::clustered_auc(score, positive, weight, cluster, groups, studentize, control),
        })
    }

    /// sum a / sum d of rows or clusters, both with the weights multiplied in; d = 1 when it is
    /// left out.
    #[staticmethod]
    #[pyo3(signature = (numerator, denominator, group, n_groups, studentize, stratum=None))]
    fn ratio(
        py: Python<'_>,
        numerator: PyReadonlyArray1<'_, f64>,
        denominator: Option<PyReadonlyArray1<'_, f64>>,
        group: PyReadonlyArray1<'_, u16>,
        n_groups: usize,
        studentize: &str,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (numerator, group) = (slice(&numerator)?, slice(&group)?);
        let denominator = denominator.as_ref().map(slice).transpose()?;
        let groups = Groups { group, n_groups, stratum: stratum.as_ref().map(slice).transpose()? };
        Self::make(py, numerator.len(), |control| RowTest::ratio(numerator, denominator, groups, studentize, control))
    }

    /// A formula over confusion counts: of each row or cluster its weighted tp, fp, fn, tn.
    #[staticmethod]
    #[pyo3(signature = (counts, metric, group, n_groups, studentize, stratum=None))]
    fn counts(
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, f64>,
        metric: &PyMetric,
        group: PyReadonlyArray1<'_, u16>,
        n_groups: usize,
        studentize: &str,
        stratum: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (units, rest) = counts.as_slice().map_err(|_| not_contiguous())?.as_chunks::<4>();
        if !rest.is_empty() || counts.as_array().ncols() != 4 {
            return Err(to_python(py, &Error::argument("counts", "of another shape", "four columns")));
        }
        let groups = Groups { group: slice(&group)?, n_groups, stratum: stratum.as_ref().map(slice).transpose()? };
        Self::make(py, units.len(), |control| RowTest::counts(units, &metric.metric, groups, studentize, control))
    }

    /// (value, variance, numerator, denominator) of every group.
    fn evaluations(&self) -> Vec<(f64, f64, f64, f64)> {
        self.test.evaluations().iter().map(|e| (e.value, e.variance, e.numerator, e.denominator)).collect()
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

    /// The statistic of `n_resamples` permutations from the replicate `first` on.
    #[pyo3(signature = (n_resamples, seed, series=0, n_threads=None, progress=None, first=0))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        n_resamples: u64,
        seed: u64,
        series: u64,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
        first: u64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let instructions = InstructionSet::current().map_err(|error| to_python(py, &error))?;
        let work = self.work(n_resamples);
        let null = run(Run { py, n_threads, progress, work }, |control| {
            self.test.null_distribution(&draws(first, n_resamples, seed, series), instructions, control)
        })?;
        Ok(PyArray1::from_vec(py, null))
    }

    /// Values and variances of bootstrap replicates; see `bootstrap_counts`.
    #[pyo3(signature = (n_resamples, seed, series=0, n_threads=None, progress=None, first=0))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn bootstrap<'py>(
        &self,
        py: Python<'py>,
        n_resamples: u64,
        seed: u64,
        series: u64,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
        first: u64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let instructions = InstructionSet::current().map_err(|error| to_python(py, &error))?;
        let work = self.work(2 * n_resamples);
        let replicates = run(Run { py, n_threads, progress, work }, |control| {
            self.test.bootstrap(&draws(first, n_resamples, seed, series), instructions, control)
        })?;
        Ok(flat(py, replicates))
    }

    /// Step-down max-T p-values of pairs of groups.
    #[pyo3(signature = (pairs, n_resamples, seed, series=0, n_threads=None, progress=None))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn max_t(
        &self,
        py: Python<'_>,
        pairs: Vec<(usize, usize)>,
        n_resamples: u64,
        seed: u64,
        series: u64,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<f64>> {
        let instructions = InstructionSet::current().map_err(|error| to_python(py, &error))?;
        let work = self.work(n_resamples);
        run(Run { py, n_threads, progress, work }, |control| {
            self.test.max_t(&pairs, &draws(0, n_resamples, seed, series), instructions, control)
        })
    }
}

impl PyRowTest {
    fn make(
        py: Python<'_>,
        rows: usize,
        build: impl FnOnce(&Control) -> fairaudit_core::Result<RowTest> + Send,
    ) -> PyResult<Self> {
        let work = 100 * rows as u64;
        let test = run(Run { py, n_threads: None, progress: None, work }, build)?;
        Ok(Self { test })
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
) -> PyResult<(u64, u64)> {
    let null = slice(&null)?;
    let center = if centred { center_of(null, observed) } else { 0.0 };
    Ok(count_extreme(null, observed, self::alternative(py, alternative)?, center))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTest>()?;
    module.add_class::<PyRowTest>()?;
    module.add_function(wrap_pyfunction!(py_count_extreme, module)?)
}
