//! Metrics over the classes of a table, as Python objects.

use fairaudit_core::metrics::{self, Calibration, Formula, Metric};
use pyo3::prelude::*;

use crate::call::to_python;
use crate::options::Call;

/// Nanoseconds of looking at a class.
pub(crate) const CLASS_WORK: u64 = 10;

/// Value and linearised variance of a metric in a group; numerator and denominator of a quotient of sums, NaN of others.
#[pyclass(frozen, get_all, eq, module = "fairaudit_rs._native")]
pub(crate) struct Evaluation {
    value: f64,
    variance: f64,
    numerator: f64,
    denominator: f64,
}

#[pymethods]
impl Evaluation {
    #[new]
    #[pyo3(signature = (value, variance, numerator=f64::NAN, denominator=f64::NAN))]
    fn new(value: f64, variance: f64, numerator: f64, denominator: f64) -> Self {
        Self { value, variance, numerator, denominator }
    }

    fn __getnewargs__(&self) -> (f64, f64, f64, f64) {
        (self.value, self.variance, self.numerator, self.denominator)
    }

    fn __repr__(&self) -> String {
        let Self { value, variance, numerator, denominator } = self;
        format!("Evaluation({value}, {variance}, {numerator}, {denominator})")
    }
}

impl Evaluation {
    /// That of the core.
    pub(crate) fn of(evaluation: metrics::Evaluation) -> Self {
        let metrics::Evaluation { value, variance, numerator, denominator } = evaluation;
        Self { value, variance, numerator, denominator }
    }
}

/// What is missing in both is the same.
impl PartialEq for Evaluation {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |one: &Self| [one.value, one.variance, one.numerator, one.denominator];
        numbers(self).into_iter().zip(numbers(other)).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
    }
}

/// A metric that the native tests can evaluate.
#[pyclass(name = "CountMetric", frozen, module = "fairaudit_rs._native")]
pub(crate) struct PyMetric {
    pub(crate) metric: Metric,
    formula: Option<Formula>,
}

#[pymethods]
impl PyMetric {
    /// Reads a formula over tp, fp, fn, tn.
    #[staticmethod]
    fn formula(py: Python<'_>, text: &str) -> PyResult<Self> {
        let formula = Call::brief(py, || Formula::parse(text))?;
        Ok(Self { metric: formula.to_metric(), formula: Some(formula) })
    }

    /// Expected calibration error over classes that each have a bin, a score and a label.
    #[staticmethod]
    #[pyo3(signature = (bins, score, label, call=None))]
    fn calibration(
        py: Python<'_>,
        bins: Vec<u32>,
        score: Vec<f64>,
        label: Vec<f64>,
        call: Option<&Call>,
    ) -> PyResult<Self> {
        let work = CLASS_WORK * bins.len() as u64;
        let calibration = Call::or_ordinary(call).run(py, work, |_| Calibration::new(bins, score, label))?;
        Ok(Self { metric: Metric::Calibration(calibration), formula: None })
    }

    /// Area under the ROC curve over classes of (value of the score, label), in ascending order.
    #[staticmethod]
    fn ranks(levels: usize) -> Self {
        Self { metric: Metric::Ranks { levels }, formula: None }
    }

    /// Several metrics over tp, fp, fn, tn at once.
    #[staticmethod]
    fn joint(py: Python<'_>, components: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        if components.iter().any(|component| matches!(component.metric, Metric::Joint(_))) {
            let error = fairaudit_core::Error::argument("components", "a joint criterion among others", "metrics");
            return Err(to_python(py, &error));
        }
        let components = components.iter().map(|component| component.metric.clone()).collect();
        Ok(Self { metric: Metric::Joint(components), formula: None })
    }

    /// (a, d) when the metric is `sum a_k c_k / sum d_k c_k`.
    #[getter]
    fn fraction(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        match &self.metric {
            Metric::Fraction { numerator, denominator } => Some((numerator.clone(), denominator.clone())),
            _ => None,
        }
    }

    /// Whether the metric is the share of a set of rows that lie in a subset.
    #[getter]
    fn is_proportion(&self) -> bool {
        self.metric.is_proportion()
    }

    /// The metric of a group with these counts.
    #[pyo3(signature = (counts, call=None))]
    fn evaluate(&self, py: Python<'_>, counts: Vec<f64>, call: Option<&Call>) -> PyResult<Evaluation> {
        self.check(py, &counts)?;
        let work = CLASS_WORK * counts.len() as u64;
        Call::or_ordinary(call).run(py, work, |_| Ok(Evaluation::of(self.metric.evaluate(&counts))))
    }

    /// Partial derivatives of a formula by tp, fp, fn, tn.
    fn gradient(&self, py: Python<'_>, counts: Vec<f64>) -> PyResult<Option<[f64; 4]>> {
        self.check(py, &counts)?;
        let Some(formula) = &self.formula else { return Ok(None) };
        Call::brief(py, || Ok(Some(formula.gradient([counts[0], counts[1], counts[2], counts[3]]))))
    }
}

impl PyMetric {
    fn check(&self, py: Python<'_>, counts: &[f64]) -> PyResult<()> {
        let expected = self.metric.n_classes();
        if counts.len() == expected {
            return Ok(());
        }
        let accepted = format!("{expected} counts");
        Err(to_python(py, &fairaudit_core::Error::argument("counts", format!("{} numbers", counts.len()), &accepted)))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Evaluation>()?;
    module.add_class::<PyMetric>()
}
