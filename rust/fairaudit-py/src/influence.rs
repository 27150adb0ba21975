//! The influence lens: sums over rows for scores of many features, the joint law of the scores, regressions, the
//! descent, and repairs.

use fairaudit_core::Error;
use fairaudit_core::influence::descent::{Kinds, Rate, Rule, SHARES, Status, factors, path};
use fairaudit_core::influence::design::{
    Design, gram as gram_of_columns, scores as scores_of, sums as sums_of_columns,
};
use fairaudit_core::influence::marginal::{Influence, Leverage, PARTS, Rows, SUMS, Scaling, gram, sums};
use fairaudit_core::influence::maxima::{draw_work, maxima};
use fairaudit_core::influence::nuisance::{Labels, cross_fit, cross_fit_work};
use fairaudit_core::influence::repair::{Cells, envelopes, nearest, pair_work, reduced_costs};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{not_contiguous, slice};
use crate::call::to_python;
use crate::options::{Call, Draws};

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Matrix<'py> = Bound<'py, PyArray2<f64>>;
type Numbers<'py> = PyReadonlyArray1<'py, f64>;
type Counts<'py> = PyReadonlyArray2<'py, i64>;

/// Rows of the target group, held by reference: features row by row with where they lie and how far they spread, parts
/// row by row, weights and their squares. The arrays must not be written to.
#[pyclass(name = "InfluenceRows", frozen, module = "fairaudit_rs._native")]
struct PyInfluenceRows {
    features: Py<PyArray2<f64>>,
    parts: Py<PyArray2<f64>>,
    weight: Py<PyArray1<f64>>,
    square: Py<PyArray1<f64>>,
    shift: Vec<f64>,
    scale: Vec<f64>,
}

/// The arrays of the rows, borrowed for a call.
struct Borrowed<'py> {
    features: PyReadonlyArray2<'py, f64>,
    parts: PyReadonlyArray2<'py, f64>,
    weight: PyReadonlyArray1<'py, f64>,
    square: PyReadonlyArray1<'py, f64>,
}

impl Borrowed<'_> {
    fn rows(&self, py: Python<'_>) -> PyResult<Rows<'_>> {
        let (features, parts) = (matrix(&self.features)?, matrix(&self.parts)?);
        Rows::new(features, parts, slice(&self.weight)?, slice(&self.square)?).map_err(|error| to_python(py, &error))
    }
}

fn matrix<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<&'a [f64]> {
    array.as_slice().map_err(|_| not_contiguous())
}

/// The rows of a matrix as arrays of a known length.
fn rows_of<'a, const N: usize>(
    py: Python<'_>,
    name: &str,
    array: &'a PyReadonlyArray2<'_, f64>,
) -> PyResult<&'a [[f64; N]]> {
    let width = array.shape()[1];
    if width != N {
        let accepted = format!("rows of {N} numbers");
        return Err(to_python(py, &Error::argument(name, format!("in rows of {width}"), &accepted)));
    }
    Ok(matrix(array)?.as_chunks().0)
}

/// Levels by part, slopes by part, curve.
fn influence_of(numbers: &[f64; 2 * PARTS + 1]) -> Influence {
    let part = |first: usize| std::array::from_fn(|m| numbers[first + m]);
    Influence { level: part(0), slope: part(PARTS), curve: numbers[2 * PARTS] }
}

#[pymethods]
impl PyInfluenceRows {
    #[new]
    fn new(
        py: Python<'_>,
        features: Bound<'_, PyArray2<f64>>,
        parts: Bound<'_, PyArray2<f64>>,
        weight: Floats<'_>,
        square: Floats<'_>,
        scaling: (Vec<f64>, Vec<f64>),
    ) -> PyResult<Self> {
        let (features, parts) = (features.unbind(), parts.unbind());
        let (shift, scale) = scaling;
        let made = Self { features, parts, weight: weight.unbind(), square: square.unbind(), shift, scale };
        made.borrowed(py).rows(py)?;
        Ok(made)
    }

    /// For every feature, after the scaling, the sums of weight times it and a part, of weight times its square and a
    /// part, and of squared weight times it and two parts.
    fn sums<'py>(&self, py: Python<'py>, call: &Call) -> PyResult<Matrix<'py>> {
        let borrowed = self.borrowed(py);
        let rows = borrowed.rows(py)?;
        let found = call.run(py, rows.sums_work(), |control| sums(&rows, self.scaling(), control))?;
        PyArray1::from_slice(py, found.as_flattened()).reshape([found.len(), SUMS])
    }

    /// The sums of squared weight times the influences on two features, and for slopes of the square of the influence
    /// with leverage. An influence is levels and slopes by part, and a curve; a leverage mean, slope, factor, spread.
    fn gram<'py>(
        &self,
        py: Python<'py>,
        influences: PyReadonlyArray2<'_, f64>,
        parts_of_u: [f64; PARTS],
        leverages: PyReadonlyArray2<'_, f64>,
        call: &Call,
    ) -> PyResult<(Matrix<'py>, Floats<'py>)> {
        let borrowed = self.borrowed(py);
        let rows = borrowed.rows(py)?;
        let influences: Vec<Influence> = rows_of(py, "influences", &influences)?.iter().map(influence_of).collect();
        let leverages: Vec<Leverage> = rows_of::<4>(py, "leverages", &leverages)?
            .iter()
            .map(|&[mean, slope, factor, spread]| Leverage { mean, slope, factor, spread })
            .collect();
        let found = call.run(py, rows.gram_work(), |control| {
            gram(&rows, self.scaling(), &influences, parts_of_u, &leverages, control)
        })?;
        let p = influences.len();
        Ok((PyArray1::from_vec(py, found.products).reshape([p, p])?, PyArray1::from_vec(py, found.squares)))
    }
}

impl PyInfluenceRows {
    fn scaling(&self) -> Scaling<'_> {
        Scaling { shift: &self.shift, scale: &self.scale }
    }

    fn borrowed<'py>(&self, py: Python<'py>) -> Borrowed<'py> {
        Borrowed {
            features: self.features.bind(py).readonly(),
            parts: self.parts.bind(py).readonly(),
            weight: self.weight.bind(py).readonly(),
            square: self.square.bind(py).readonly(),
        }
    }
}

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
        let found = call.run(py, work, |control| scores_of(design, coefficients, n_lists, control))?;
        PyArray1::from_vec(py, found).reshape([n_lists, design.len()])
    }

    /// For each list of weights, the sums of weight times column.
    fn sums<'py>(&self, py: Python<'py>, weights: PyReadonlyArray2<'_, f64>, call: &Call) -> PyResult<Matrix<'py>> {
        let (design, n_lists) = (&self.core, weights.shape()[0]);
        let weights = matrix(&weights)?;
        let work = n_lists as u64 * design.pass_work();
        let found = call.run(py, work, |control| sums_of_columns(design, weights, n_lists, control))?;
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
        let found = call.run(py, work, |control| gram_of_columns(design, weights, n_lists, control))?;
        PyArray1::from_vec(py, found).reshape([n_lists, design.width(), design.width()])
    }
}

/// max |Z| of each draw of Z from the normal law with a correlation matrix.
#[pyfunction]
fn normal_maxima<'py>(
    py: Python<'py>,
    correlation: PyReadonlyArray2<'_, f64>,
    draws: &Draws,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let work = draw_work(correlation.shape()[0]).saturating_mul(draws.n);
    let correlation = matrix(&correlation)?;
    let found = call.run(py, work, |control| maxima(correlation, &draws.core(), control))?;
    Ok(PyArray1::from_vec(py, found))
}

/// Borrowed cells: features row by row, strata.
struct BorrowedCells<'py>(PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, u32>);

impl BorrowedCells<'_> {
    fn cells(&self) -> PyResult<Cells<'_>> {
        Ok(Cells { rows: matrix(&self.0)?, strata: slice(&self.1)? })
    }

    fn work(&self, other: &Self) -> u64 {
        let [n, width] = [self.0.shape()[0], self.0.shape()[1]];
        pair_work((n as u64).saturating_mul(other.0.shape()[0] as u64), width)
    }
}

/// Where the vertices of each cell start, the cells that they are, what each costs.
type Vertices<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Floats<'py>);

/// For every cell the lower convex envelope of (score, cost) over the cells of its stratum: where its vertices start,
/// the cells that they are, by score, and what each costs.
#[pyfunction]
fn repair_envelopes<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    strata: PyReadonlyArray1<'py, u32>,
    weights: Vec<f64>,
    score: PyReadonlyArray1<'py, f64>,
    call: &Call,
) -> PyResult<Vertices<'py>> {
    let borrowed = BorrowedCells(rows, strata);
    let (cells, score) = (borrowed.cells()?, slice(&score)?);
    let found = call.run(py, borrowed.work(&borrowed), |control| envelopes(cells, &weights, score, control))?;
    let (starts, to) = (PyArray1::from_vec(py, found.starts), PyArray1::from_vec(py, found.to));
    Ok((starts, to, PyArray1::from_vec(py, found.cost)))
}

/// For every cell the least of cost and its slope times the score over the cells of its stratum.
#[pyfunction]
fn repair_reduced_costs<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    strata: PyReadonlyArray1<'py, u32>,
    weights: Vec<f64>,
    score: PyReadonlyArray1<'py, f64>,
    slope: PyReadonlyArray1<'py, f64>,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let borrowed = BorrowedCells(rows, strata);
    let (cells, score, slope) = (borrowed.cells()?, slice(&score)?, slice(&slope)?);
    let work = borrowed.work(&borrowed);
    let found = call.run(py, work, |control| reduced_costs(cells, &weights, score, slope, control))?;
    Ok(PyArray1::from_vec(py, found))
}

/// For every row the nearest of some known rows of its stratum, and how far it is; the number of known rows, and
/// infinity, where there is none.
#[pyfunction]
fn nearest_rows<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    strata: PyReadonlyArray1<'py, u32>,
    known: PyReadonlyArray2<'py, f64>,
    known_strata: PyReadonlyArray1<'py, u32>,
    weights: Vec<f64>,
    call: &Call,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Floats<'py>)> {
    let (rows, known) = (BorrowedCells(rows, strata), BorrowedCells(known, known_strata));
    let (cells, others) = (rows.cells()?, known.cells()?);
    let (place, distance) = call.run(py, rows.work(&known), |control| nearest(cells, others, &weights, control))?;
    Ok((PyArray1::from_vec(py, place), PyArray1::from_vec(py, distance)))
}

type Path<'py> = (Matrix<'py>, Matrix<'py>, &'static str);

/// The descent of a target group: label and score of its kinds, how many there are in the fit, the stop and the report
/// part, the same of the others; weight, numerator and denominator by part of each rate. The rule is the step, the
/// tolerance, the quantile of the bound, the least share of effective rows and the most steps. Returns the steps; at
/// each iterate the gap expected in the fit part, and gap, standard error, bound and share of the stop part; how it
/// ended.
#[pyfunction]
fn descent_path<'py>(
    py: Python<'py>,
    target: (Numbers<'_>, Numbers<'_>, Counts<'_>),
    chance: Numbers<'_>,
    others: (Numbers<'_>, Numbers<'_>, Counts<'_>),
    rates: PyReadonlyArray2<'_, f64>,
    rule: (f64, f64, f64, f64, usize),
    call: &Call,
) -> PyResult<Path<'py>> {
    let (target, others) = (kinds_of(py, &target)?, kinds_of(py, &others)?);
    let chance = slice(&chance)?;
    let rates: Vec<Rate> = rows_of(py, "rates", &rates)?.iter().map(rate_of).collect();
    let (step, tolerance, quantile, least_share, max_steps) = rule;
    let rule = Rule { step, tolerance, quantile, least_share, max_steps };
    let work = target.work(max_steps).saturating_add(others.work(0));
    let found = call.run(py, work, |control| path(&target, chance, &others, &rates, rule, control))?;
    let n_steps = found.steps.len();
    let iterates: Vec<f64> = found
        .iterates
        .iter()
        .flat_map(|one| [one.fit_gap, one.gap, one.standard_error, one.bound, one.share])
        .collect();
    let status = match found.status {
        Status::Reached => "reached",
        Status::EffectiveSize => "effective sample size",
        Status::Steps => "steps",
    };
    let steps = PyArray1::from_slice(py, found.steps.as_flattened()).reshape([n_steps, PARTS])?;
    Ok((steps, PyArray1::from_vec(py, iterates).reshape([n_steps + 1, 5])?, status))
}

/// The weights of kinds of rows after the steps of a descent.
#[pyfunction]
fn descent_factors<'py>(
    py: Python<'py>,
    chance: Numbers<'_>,
    score: Numbers<'_>,
    steps: PyReadonlyArray2<'_, f64>,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let (chance, score, steps) = (slice(&chance)?, slice(&score)?, rows_of(py, "steps", &steps)?);
    let work = (chance.len() * steps.len().max(1)) as u64;
    let found = call.run(py, work, |control| factors(chance, score, steps, control))?;
    Ok(PyArray1::from_vec(py, found))
}

fn kinds_of<'a>(
    py: Python<'_>,
    (label, score, counts): &'a (Numbers<'_>, Numbers<'_>, Counts<'_>),
) -> PyResult<Kinds<'a>> {
    if counts.shape()[1] != SHARES {
        let given = format!("of {} parts", counts.shape()[1]);
        return Err(to_python(py, &Error::argument("counts", given, "of 3 parts: fit, stop, report")));
    }
    let counts = counts.as_slice().map_err(|_| not_contiguous())?.as_chunks().0;
    Kinds::new(slice(label)?, slice(score)?, counts).map_err(|error| to_python(py, &error))
}

fn rate_of(numbers: &[f64; 1 + 2 * PARTS]) -> Rate {
    let part = |first: usize| std::array::from_fn(|m| numbers[first + m]);
    Rate { weight: numbers[0], numerator: part(1), denominator: part(1 + PARTS) }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInfluenceRows>()?;
    module.add_function(wrap_pyfunction!(repair_envelopes, module)?)?;
    module.add_function(wrap_pyfunction!(repair_reduced_costs, module)?)?;
    module.add_function(wrap_pyfunction!(nearest_rows, module)?)?;
    module.add_function(wrap_pyfunction!(descent_path, module)?)?;
    module.add_function(wrap_pyfunction!(descent_factors, module)?)?;
    module.add_class::<PyInfluenceDesign>()?;
    module.add_function(wrap_pyfunction!(normal_maxima, module)?)
}
