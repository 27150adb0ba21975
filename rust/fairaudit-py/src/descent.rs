//! The descent of the influence lens.

use fairaudit_core::Error;
use fairaudit_core::influence::descent::{Kinds, Rate, Rule, SHARES, Status, factors, path};
use fairaudit_core::influence::moments::PARTS;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{not_contiguous, slice};
use crate::call::to_python;
use crate::influence::{Floats, Matrix, rows_of};
use crate::options::Call;

type Numbers<'py> = PyReadonlyArray1<'py, f64>;
type Counts<'py> = PyReadonlyArray2<'py, i64>;
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
    module.add_function(wrap_pyfunction!(descent_path, module)?)?;
    module.add_function(wrap_pyfunction!(descent_factors, module)?)
}
