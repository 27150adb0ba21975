//! The permutation lens: one object per comparison.

use fairaudit_core::Error;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{
    self, Alternative, Conditioning, CorrelationTest, CountTest, GroupTest, PermutationTest, RankCorrelationTest,
    RowTest, Scores, Studentize, center_of, step_down_pvalues,
};
use fairaudit_core::tabulate::Table;
use numpy::PyArray1;
use numpy::ndarray::{Ix2, Ix3};
use pyo3::prelude::*;

use crate::arrays::{Dense, Marks, same};
use crate::bootstrap::Replicates;
use crate::call::to_python;
use crate::metrics::{CLASS_WORK, Evaluation, PyMetric};
use crate::options::{Call, Draws};
use crate::shifts::Shifts;
use crate::units::Units;

/// Nanoseconds of making a test, by row.
const MAKING_WORK: u64 = 100;

pub(crate) fn studentize(py: Python<'_>, name: &str) -> PyResult<Studentize> {
    match name {
        "none" => Ok(Studentize::None),
        "unpooled" => Ok(Studentize::Unpooled),
        "pooled" => Ok(Studentize::Pooled),
        "corrected" => Ok(Studentize::Corrected),
        other => Err(to_python(py, &Error::argument("studentize", other, "none, unpooled, pooled, corrected"))),
    }
}

pub(crate) fn alternative(py: Python<'_>, name: &str) -> PyResult<Alternative> {
    match name {
        "two-sided" => Ok(Alternative::TwoSided),
        "greater" => Ok(Alternative::Greater),
        "less" => Ok(Alternative::Less),
        other => Err(to_python(py, &Error::argument("alternative", other, "two-sided, greater, less"))),
    }
}

/// A permutation law that was summed completely: the p-value, the probability of an undefined statistic (a part of
/// it), the values that the statistic can take, and their probabilities.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct ExactLaw {
    pvalue: f64,
    undefined: f64,
    statistics: Py<PyArray1<f64>>,
    probabilities: Py<PyArray1<f64>>,
}

#[pymethods]
impl ExactLaw {
    #[new]
    fn new(pvalue: f64, undefined: f64, statistics: Dense<'_, f64>, probabilities: Dense<'_, f64>) -> Self {
        Self { pvalue, undefined, statistics: statistics.into_object(), probabilities: probabilities.into_object() }
    }

    fn __getnewargs__(&self) -> (f64, f64, &Py<PyArray1<f64>>, &Py<PyArray1<f64>>) {
        (self.pvalue, self.undefined, &self.statistics, &self.probabilities)
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        Ok((self.pvalue, self.undefined) == (other.pvalue, other.undefined)
            && same(py, &self.statistics, &other.statistics)?
            && same(py, &self.probabilities, &other.probabilities)?)
    }
}

/// A gap within strata of the user's: with its variance, the strata that hold both groups, and those of them in which a
/// group is one unit.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Contrast {
    estimate: f64,
    variance: f64,
    n_used: u32,
    n_single: u32,
}

#[pymethods]
impl Contrast {
    #[new]
    fn new(estimate: f64, variance: f64, n_used: u32, n_single: u32) -> Self {
        Self { estimate, variance, n_used, n_single }
    }

    fn __getnewargs__(&self) -> (f64, f64, u32, u32) {
        (self.estimate, self.variance, self.n_used, self.n_single)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.__getnewargs__() == other.__getnewargs__()
    }
}

/// A permutation test, which holds what it is computed from; with groups or without.
#[pyclass(name = "PermutationTest", frozen, module = "fairaudit_rs._native")]
pub(crate) struct PyPermutationTest {
    test: Box<dyn PermutationTest>,
    /// The observed statistic.
    #[pyo3(get)]
    observed: f64,
}

#[pymethods]
impl PyPermutationTest {
    /// Of counts by stratum, group and class. `parts` of the classes exchange their groups among themselves;
    /// "denominator" takes the parts from a proportion.
    #[staticmethod]
    #[pyo3(signature = (counts, metric, *, studentize, conditioning=None, call=None))]
    fn counts(
        py: Python<'_>,
        counts: Dense<'_, u64, Ix3>,
        metric: &PyMetric,
        studentize: &str,
        conditioning: Option<Parts>,
        call: Option<&Call>,
    ) -> PyResult<Self> {
        let (studentize, conditioning) = (self::studentize(py, studentize)?, Parts::core(py, conditioning)?);
        let (n_groups, n_classes) = (counts.shape()[1], counts.shape()[2]);
        let counts = counts.to_vec();
        Call::or_ordinary(call).run(py, 10 * CLASS_WORK * counts.len() as u64, |_| {
            let table = Table::new(counts, n_groups, n_classes)?;
            Ok(Self::of(CountTest::new(&table, &metric.metric, &conditioning, studentize)?))
        })
    }

    /// Of the area under the ROC curve: score and label of each row, with a weight that is 1 when it is left out.
    /// `within_labels`: rows of one label exchange their groups. `places`: of each code of `units`, its place among the
    /// groups of the test; rows of other groups take no part.
    #[staticmethod]
    #[pyo3(signature = (score, positive, units, call, *, studentize, weight=None, within_labels=false, places=None))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn auc(
        py: Python<'_>,
        score: Dense<'_, f64>,
        positive: Marks<'_>,
        units: &Units,
        call: &Call,
        studentize: &str,
        weight: Option<Dense<'_, f64>>,
        within_labels: bool,
        places: Option<Dense<'_, u16>>,
    ) -> PyResult<Self> {
        let (studentize, units) = (self::studentize(py, studentize)?, units.borrow(py)?);
        let (weight, places, units) = (weight.as_deref(), places.as_deref(), units.core());
        let scores = Scores { score: &score, positive: &positive, weight, places };
        call.run(py, MAKING_WORK * scores.score.len() as u64, |control| {
            Ok(Self::of(RowTest::auc(scores, units, within_labels, studentize, control)?))
        })
    }

    /// Of sum a / sum d of units, both with the weights multiplied in; d = 1 when it is left out.
    #[staticmethod]
    #[pyo3(signature = (numerator, denominator, units, call, *, studentize))]
    fn ratio(
        py: Python<'_>,
        numerator: Dense<'_, f64>,
        denominator: Option<Dense<'_, f64>>,
        units: &Units,
        call: &Call,
        studentize: &str,
    ) -> PyResult<Self> {
        let (studentize, units) = (self::studentize(py, studentize)?, units.borrow(py)?);
        let (numerator, denominator, units) = (&numerator[..], denominator.as_deref(), units.core());
        call.run(py, MAKING_WORK * numerator.len() as u64, |control| {
            Ok(Self::of(RowTest::ratio(numerator, denominator, units, studentize, control)?))
        })
    }

    /// Of the mean of values of units, which come in consecutive parts: what an iterator of arrays yields is read at
    /// once, so that no array of all of them need be there.
    #[staticmethod]
    #[pyo3(signature = (parts, units, call, *, studentize))]
    fn mean(py: Python<'_>, parts: &Bound<'_, PyAny>, units: &Units, call: &Call, studentize: &str) -> PyResult<Self> {
        let (studentize, units) = (self::studentize(py, studentize)?, units.borrow(py)?);
        let units = units.core();
        let mut values = Vec::with_capacity(units.group.len());
        for part in parts.try_iter()? {
            values.extend_from_slice(&part?.extract::<Dense<'_, f64>>()?);
            if values.len() > units.group.len() {
                let accepted = format!("{} values in all, one of each unit", units.group.len());
                return Err(to_python(py, &Error::argument("parts", format!("of {} values", values.len()), &accepted)));
            }
        }
        call.run(py, MAKING_WORK * values.len() as u64, |control| {
            Ok(Self::of(RowTest::mean(values, units, studentize, control)?))
        })
    }

    /// Of a formula over confusion counts: of each unit its weighted tp, fp, fn, tn.
    #[staticmethod]
    #[pyo3(signature = (counts, metric, units, call, *, studentize))]
    fn weighted_counts(
        py: Python<'_>,
        counts: Dense<'_, f64, Ix2>,
        metric: &PyMetric,
        units: &Units,
        call: &Call,
        studentize: &str,
    ) -> PyResult<Self> {
        let (studentize, units) = (self::studentize(py, studentize)?, units.borrow(py)?);
        if counts.shape()[1] != 4 {
            let columns = format!("of {} columns", counts.shape()[1]);
            return Err(to_python(py, &Error::argument("counts", columns, "four columns: tp, fp, fn, tn")));
        }
        let (counts, units) = (counts.as_chunks::<4>().0, units.core());
        call.run(py, MAKING_WORK * counts.len() as u64, |control| {
            Ok(Self::of(RowTest::counts(counts, &metric.metric, units, studentize, control)?))
        })
    }

    /// Of the correlation of two columns or of their ranks, which has no groups.
    #[staticmethod]
    #[pyo3(signature = (x, y, call, *, studentize, stratum=None, by_rank=false))]
    #[allow(clippy::too_many_arguments)] // the arguments of a Python function
    fn correlation(
        py: Python<'_>,
        x: Dense<'_, f64>,
        y: Dense<'_, f64>,
        call: &Call,
        studentize: &str,
        stratum: Option<Dense<'_, u32>>,
        by_rank: bool,
    ) -> PyResult<Self> {
        let studentize = self::studentize(py, studentize)?;
        let (x, y, stratum) = (&x[..], &y[..], stratum.as_deref());
        call.run(py, MAKING_WORK * x.len() as u64, |control| {
            if by_rank {
                return Ok(Self::of(RankCorrelationTest::new(x, y, stratum, studentize, control)?));
            }
            Ok(Self::of(CorrelationTest::new(x, y, stratum, studentize, control)?))
        })
    }

    /// Whether the null distribution must be centred at its own mean.
    #[getter]
    fn needs_centring(&self) -> bool {
        self.test.needs_centring()
    }

    /// The metric of every group; of a correlation that.
    #[getter]
    fn evaluations(&self, py: Python<'_>) -> PyResult<Vec<Evaluation>> {
        Call::brief(py, || Ok(self.test.evaluations().into_iter().map(Evaluation::of).collect()))
    }

    /// Number of strata of the user's.
    #[getter]
    fn n_strata(&self) -> usize {
        self.test.groups().map_or(1, GroupTest::n_strata)
    }

    /// The gap of two groups within strata of the user's; None without strata, or of several metrics at once.
    fn contrast(&self, py: Python<'_>, first: usize, second: usize) -> PyResult<Option<Contrast>> {
        let test = self.groups(py)?;
        if let Some(place) = [first, second].into_iter().find(|&place| place >= test.n_groups()) {
            let accepted = format!("places of groups below {}", test.n_groups());
            return Err(to_python(py, &Error::argument("pair", place, &accepted)));
        }
        let contrast = Call::brief(py, || Ok(test.contrast((first, second))))?;
        Ok(contrast.map(|contrast| Contrast {
            estimate: contrast.estimate(),
            variance: contrast.variance(),
            n_used: contrast.n_used,
            n_single: contrast.n_single,
        }))
    }

    /// The whole law, or None when it is too large to be summed.
    fn exact(&self, py: Python<'_>, alternative: &str, call: &Call) -> PyResult<Option<ExactLaw>> {
        let alternative = self::alternative(py, alternative)?;
        let Some(work) = self.test.exact_work() else { return Ok(None) };
        let law = call.on_one_thread(py).run(py, work, |control| self.test.exact(alternative, control))?;
        Ok(law.map(|permutation::ExactLaw { pvalue, undefined, statistics, probabilities }| {
            let [statistics, probabilities] =
                [statistics, probabilities].map(|numbers| PyArray1::from_vec(py, numbers).unbind());
            ExactLaw { pvalue, undefined, statistics, probabilities }
        }))
    }

    /// The statistic of some permutations.
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let null = call.run(py, self.work(draws, 0), |control| self.test.null_distribution(&draws.core(), control))?;
        Ok(PyArray1::from_vec(py, null))
    }

    /// Some permutations of two groups of a mean or ratio, as a test of any gap.
    fn shifts(&self, py: Python<'_>, draws: &Draws, call: &Call) -> PyResult<Shifts> {
        let test = self.groups(py)?;
        call.run(py, self.work(draws, 20), |control| test.shifts(&draws.core(), control)).map(Shifts::of)
    }

    /// The two-sided p-value of each of some audits, in which groups are shuffled; NaN where the statistic is undefined.
    fn audits<'py>(
        &self,
        py: Python<'py>,
        n_resamples: u64,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let work = self.work(draws, 0).saturating_mul(n_resamples.saturating_add(1));
        let run = |control: &_| permutation::audits::shuffled(&*self.test, &draws.core(), n_resamples, control);
        Ok(PyArray1::from_vec(py, call.run(py, work, run)?))
    }

    /// How many replicates reach the step-down statistic of each pair of groups: numbers that add up over ranges.
    fn max_t<'py>(
        &self,
        py: Python<'py>,
        pairs: Vec<(usize, usize)>,
        draws: &Draws,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let (test, work) = (self.groups(py)?, self.work(draws, 10 * pairs.len() as u64));
        let counts = call.run(py, work, |control| test.max_t(&pairs, &draws.core(), control))?;
        Ok(PyArray1::from_vec(py, counts))
    }

    /// The p-values of pairs of groups, from what `max_t` counted in all `n` replicates.
    fn max_t_pvalues(
        &self,
        py: Python<'_>,
        pairs: Vec<(usize, usize)>,
        counts: Dense<'_, u64>,
        n: u64,
    ) -> PyResult<Vec<f64>> {
        let (test, counts) = (self.groups(py)?, &counts[..]);
        Call::brief(py, || step_down_pvalues(test, &pairs, counts, n))
    }

    /// The metric in bootstrap replicates; `variances=False` leaves these out.
    #[pyo3(signature = (draws, call, *, variances=true))]
    fn bootstrap(&self, py: Python<'_>, draws: &Draws, call: &Call, variances: bool) -> PyResult<Replicates> {
        let test = self.groups(py)?;
        let work = test.bootstrap_work().saturating_mul(draws.n);
        let replicates = call.run(py, work, |control| test.bootstrap(variances, &draws.core(), control))?;
        Replicates::of(py, replicates)
    }
}

impl PyPermutationTest {
    /// A test of the core.
    pub(crate) fn of(test: impl PermutationTest + 'static) -> Self {
        Self { observed: test.observed(), test: Box::new(test) }
    }

    /// The test, if it has groups.
    fn groups(&self, py: Python<'_>) -> PyResult<&dyn GroupTest> {
        let refusal = || to_python(py, &Error::argument("test", "one without groups", "tests that compare groups"));
        self.test.groups().ok_or_else(refusal)
    }

    /// Estimated nanoseconds of some replicates, with some more for each.
    fn work(&self, draws: &Draws, more: u64) -> u64 {
        self.test.replicate_work().saturating_add(more).saturating_mul(draws.n)
    }
}

#[derive(FromPyObject)]
pub(crate) enum Parts {
    Name(String),
    Classes(Vec<u32>),
}

impl Parts {
    pub(crate) fn core(py: Python<'_>, parts: Option<Self>) -> PyResult<Conditioning> {
        match parts {
            None => Ok(Conditioning::None),
            Some(Self::Classes(parts)) => Ok(Conditioning::Parts(parts)),
            Some(Self::Name(name)) if name == "denominator" => Ok(Conditioning::Denominator),
            Some(Self::Name(name)) => {
                let accepted = "None, denominator, a part per class";
                Err(to_python(py, &Error::argument("conditioning", name, accepted)))
            }
        }
    }
}

/// (at least as extreme, undefined) among null statistics, taken from their mean if `centred`.
#[pyfunction]
fn count_extreme(
    py: Python<'_>,
    null: Dense<'_, f64>,
    observed: f64,
    alternative: &str,
    centred: bool,
    call: &Call,
) -> PyResult<(u64, u64)> {
    let (null, alternative) = (&null[..], self::alternative(py, alternative)?);
    call.on_one_thread(py).run(py, 3 * null.len() as u64, |_: &Control| {
        let center = if centred { center_of(null, observed) } else { 0.0 };
        Ok(permutation::count_extreme(null, observed, alternative, center))
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Contrast>()?;
    module.add_class::<ExactLaw>()?;
    module.add_class::<PyPermutationTest>()?;
    module.add_function(wrap_pyfunction!(count_extreme, module)?)
}
