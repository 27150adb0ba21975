//! Regressions of the influence lens: ridge logistic and least squares on the columns of a design.

use fairaudit_core::influence::design::{Design, gram, scores, sums};
use fairaudit_core::influence::nuisance::{Labels, cross_fit, cross_fit_work};
use numpy::{PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::call::to_python;
use crate::influence::{Floats, Matrix, matrix};
use crate::options::Call;

/// Mean held-out losses by penalty, the place of the best one, with it the coefficients by fold, those of all rows, and
/// the second derivatives there.
type Fitted<'py> = (Floats<'py>, usize, Matrix<'py>, Floats<'py>, Matrix<'py>);

/// Kinds of rows by the columns of a regression: a 1, the features less their center over their scale, and products of
/// pairs. Weights have a row for each list and a column for each kind.
#[pyclass(name = "InfluenceDesign", frozen, module = "fairaudit_rs._native")]
struct PyInfluenceDesign {
    core: Design,
}

#[pymethods]
impl PyInfluenceDesign {
    #[new]
    fn new(
        py: Python<'_>,
        features: PyReadonlyArray2<'_, f64>,
        center: Vec<f64>,
        scale: Vec<f64>,
        pairs: Vec<(usize, usize)>,
    ) -> PyResult<Self> {
        let made = Design::new(matrix(&features)?, features.shape()[0], &center, &scale, pairs);
        made.map(|core| Self { core }).map_err(|error| to_python(py, &error))
    }

    /// Ridge logistic regressions without each fold, and of all rows, at the penalty that loses least.
    fn cross_fit<'py>(
        &self,
        py: Python<'py>,
        count: PyReadonlyArray2<'_, f64>,
        positive: PyReadonlyArray2<'_, f64>,
        penalties: Vec<f64>,
        call: &Call,
    ) -> PyResult<Fitted<'py>> {
        let design = &self.core;
        let n_folds = count.shape()[0];
        let labels = Labels::new(design, matrix(&count)?, matrix(&positive)?, n_folds);
        let labels = labels.map_err(|error| to_python(py, &error))?;
        let work = cross_fit_work(design, n_folds, penalties.len());
        let found = call.run(py, work, |control| cross_fit(design, &labels, &penalties, control))?;
        let width = design.width();
        Ok((
            PyArray1::from_vec(py, found.losses),
            found.best,
            PyArray1::from_vec(py, found.coefficients).reshape([n_folds, width])?,
            PyArray1::from_vec(py, found.whole),
            PyArray1::from_vec(py, found.hessian).reshape([width, width])?,
        ))
    }

    /// For each list of coefficients, the sums of coefficient times column of every row.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        coefficients: PyReadonlyArray2<'_, f64>,
        call: &Call,
    ) -> PyResult<Matrix<'py>> {
        let (design, n_lists) = (&self.core, coefficients.shape()[0]);
        let coefficients = matrix(&coefficients)?;
        let work = n_lists as u64 * design.pass_work();
        let found = call.run(py, work, |control| scores(design, coefficients, n_lists, control))?;
        PyArray1::from_vec(py, found).reshape([n_lists, design.len()])
    }

    /// For each list of weights, the sums of weight times column.
    fn sums<'py>(&self, py: Python<'py>, weights: PyReadonlyArray2<'_, f64>, call: &Call) -> PyResult<Matrix<'py>> {
        let (design, n_lists) = (&self.core, weights.shape()[0]);
        let weights = matrix(&weights)?;
        let work = n_lists as u64 * design.pass_work();
        let found = call.run(py, work, |control| sums(design, weights, n_lists, control))?;
        PyArray1::from_vec(py, found).reshape([n_lists, design.width()])
    }

    /// For each list of weights, the sums of weight times the product of two columns.
    fn gram<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray2<'_, f64>,
        call: &Call,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (design, n_lists) = (&self.core, weights.shape()[0]);
        let weights = matrix(&weights)?;
        let work = n_lists as u64 * design.gram_work();
        let found = call.run(py, work, |control| gram(design, weights, n_lists, control))?;
        PyArray1::from_vec(py, found).reshape([n_lists, design.width(), design.width()])
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInfluenceDesign>()
}
