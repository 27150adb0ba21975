//! Metrics over the classes of a table, as Python objects.

use fairaudit_core::metrics::{Calibration, Formula, Metric};
use pyo3::prelude::*;

use crate::call::to_python;
use crate::options::Call;

/// Nanoseconds of looking at a class.
pub(crate) const CLASS_WORK: u64 = 10;

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
        let formula = Formula::parse(text).map_err(|error| to_python(py, &error))?;
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
    fn joint(components: Vec<PyRef<'_, Self>>) -> Self {
        let components = components.iter().map(|component| component.metric.clone()).collect();
        Self { metric: Metric::Joint(components), formula: None }
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

    /// (value, linearised variance) for the counts of one group.
    #[pyo3(signature = (counts, call=None))]
    fn evaluate(&self, py: Python<'_>, counts: Vec<f64>, call: Option<&Call>) -> PyResult<(f64, f64)> {
        self.check(py, &counts)?;
        let work = CLASS_WORK * counts.len() as u64;
        let evaluation = Call::or_ordinary(call).run(py, work, |_| Ok(self.metric.evaluate(&counts)))?;
        Ok((evaluation.value, evaluation.variance))
    }

    /// Partial derivatives of a formula by tp, fp, fn, tn.
    fn gradient(&self, py: Python<'_>, counts: Vec<f64>) -> PyResult<Option<[f64; 4]>> {
        self.check(py, &counts)?;
        Ok(self.formula.as_ref().map(|formula| formula.gradient([counts[0], counts[1], counts[2], counts[3]])))
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
    module.add_class::<PyMetric>()
}
