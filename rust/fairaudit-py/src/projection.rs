//! The projection lens: plans, windows, permutations.

use fairaudit_core::parallel::Control;
use fairaudit_core::projection::curves::Curves;
use fairaudit_core::projection::margins::Margins;
use fairaudit_core::projection::rates::Block;
use fairaudit_core::projection::replicates::ProjectionTest;
use fairaudit_core::projection::selection::{Gains, affordable, select};
use fairaudit_core::projection::{Outcome, Plan, project, window};
use fairaudit_core::{Error, Result};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::slice;
use crate::call::to_python;
use crate::options::{Call, Draws};

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Counts<'py> = Bound<'py, PyArray1<u64>>;
/// Rows, fractions, primal and dual value, residual, prices.
type PlanParts<'py> = (Bound<'py, PyArray1<u32>>, Floats<'py>, f64, f64, f64, Vec<f64>);
/// A plan, or (block, group, reach) of what cannot be reached.
type Projected<'py> = (Option<PlanParts<'py>>, Option<(usize, usize, f64)>);
/// Units, low and high tolerances of a block.
type BlockParts = (Vec<usize>, Vec<f64>, Vec<f64>);

/// The columns of the rows, as they come from Python.
#[derive(FromPyObject)]
struct Columns<'py> {
    #[pyo3(item(0))]
    distance: PyReadonlyArray1<'py, f64>,
    #[pyo3(item(1))]
    cell: PyReadonlyArray1<'py, u16>,
    #[pyo3(item(2))]
    weight: Option<PyReadonlyArray1<'py, f64>>,
}

impl Columns<'_> {
    /// Runs `compute` on the rows; `nanoseconds` is the work of one row.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        call: &Call,
        nanoseconds: u64,
        compute: impl FnOnce(&Margins<'_>, &Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (distance, cell) = (slice(&self.distance)?, slice(&self.cell)?);
        let weight = self.weight.as_ref().map(slice).transpose()?;
        let work = nanoseconds * distance.len() as u64;
        call.run(py, work, move |control| compute(&Margins::new(distance, cell, weight, control)?, control))
    }
}

fn blocks_of(py: Python<'_>, n_cells: usize, blocks: Vec<BlockParts>) -> PyResult<Vec<Block>> {
    let block = |(units, low, high): BlockParts| {
        let fits = units.len() >= 2 && low.len() == units.len() && high.len() == units.len();
        if !fits || units.iter().any(|unit| 2 * unit + 1 >= n_cells) {
            let accepted = "at least two units below n_cells / 2, with two tolerances each";
            return Err(to_python(py, &Error::argument("blocks", format!("{units:?}"), accepted)));
        }
        Ok(Block { units, low, high })
    };
    blocks.into_iter().map(block).collect()
}

fn projected(py: Python<'_>, outcome: Outcome) -> Projected<'_> {
    match outcome {
        Outcome::Reached(plan) => (Some(parts(py, plan)), None),
        Outcome::Unreachable { block, which, reach } => (None, Some((block, which, reach))),
    }
}

fn parts(py: Python<'_>, plan: Plan) -> PlanParts<'_> {
    let (rows, fraction) = (PyArray1::from_vec(py, plan.rows), PyArray1::from_vec(py, plan.fraction));
    (rows, fraction, plan.primal, plan.dual, plan.residual, plan.prices)
}

/// Rows, rows that can move, weights, weights that can move, squared weights of every cell.
/// `columns` are (distance, cell, weight or None).
#[pyfunction]
fn projection_tally<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    n_cells: usize,
    call: &Call,
) -> PyResult<(Counts<'py>, Counts<'py>, Floats<'py>, Floats<'py>, Floats<'py>)> {
    let tallies = columns.run(py, call, 2, |rows, control| rows.tally(n_cells, control))?;
    Ok((
        PyArray1::from_iter(py, tallies.iter().map(|tally| tally.rows)),
        PyArray1::from_iter(py, tallies.iter().map(|tally| tally.finite)),
        PyArray1::from_iter(py, tallies.iter().map(|tally| tally.weight)),
        PyArray1::from_iter(py, tallies.iter().map(|tally| tally.finite_weight)),
        PyArray1::from_iter(py, tallies.iter().map(|tally| tally.square)),
    ))
}

/// The cheapest plan that makes the rates of the groups of every block equal up to tolerances, or
/// (block, group, reach) of what cannot be reached. A block is (units, low, high).
#[pyfunction]
fn project_rates<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    n_cells: usize,
    blocks: Vec<BlockParts>,
    call: &Call,
) -> PyResult<Projected<'py>> {
    let blocks = blocks_of(py, n_cells, blocks)?;
    let outcome = columns.run(py, call, 5, |rows, control| {
        let tallies = rows.tally(n_cells, control)?;
        project(rows, &tallies, &blocks, control)
    })?;
    Ok(projected(py, outcome))
}

/// The cheapest plan that changes one criterion by `target`, with a gain for every row.
#[pyfunction]
fn project_gains<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    gains: PyReadonlyArray1<'_, f64>,
    target: f64,
    call: &Call,
) -> PyResult<Projected<'py>> {
    let gains = slice(&gains)?;
    let outcome = columns.run(py, call, 5, |rows, control| {
        if gains.len() != rows.len() {
            return Err(Error::argument("gains", format!("of length {}", gains.len()), "one for each row"));
        }
        select(rows, Gains::Rows(gains), target, control)
    })?;
    Ok(projected(py, outcome))
}

/// How far a criterion moves at most for a cost of `budget`: one gain for each cell, or each row.
#[pyfunction]
#[pyo3(signature = (columns, gains, budget, call, by_row=false))]
fn affordable_change(
    py: Python<'_>,
    columns: Columns<'_>,
    gains: PyReadonlyArray1<'_, f64>,
    budget: f64,
    call: &Call,
    by_row: bool,
) -> PyResult<f64> {
    let gains = slice(&gains)?;
    columns.run(py, call, 5, |rows, control| {
        if by_row && gains.len() != rows.len() {
            return Err(Error::argument("gains", format!("of length {}", gains.len()), "one for each row"));
        }
        let gains = if by_row { Gains::Rows(gains) } else { Gains::Cells(gains) };
        affordable(rows, gains, budget, control)
    })
}

/// How many distinct signed margins occur among the rows within the cut of their cell, and how many
/// rows these are; looks no further once there are `enough` margins.
#[pyfunction]
fn distinct_margins(
    py: Python<'_>,
    columns: Columns<'_>,
    cut: PyReadonlyArray1<'_, f64>,
    enough: usize,
    call: &Call,
) -> PyResult<(usize, usize)> {
    let cut = slice(&cut)?;
    columns.run(py, call, 2, |rows, control| rows.distinct_within(cut, enough, control))
}

/// Number, mean and standard deviation of the finite signed margins.
#[pyfunction]
fn margin_spread(py: Python<'_>, columns: Columns<'_>, n_cells: usize, call: &Call) -> PyResult<(u64, f64, f64)> {
    let spread = columns.run(py, call, 4, |rows, control| window::spread(rows, n_cells, control))?;
    Ok((spread.rows, spread.mean, spread.standard_deviation))
}

/// Kernel sums of every unit that is used: weight K / b for half, once and twice the bandwidth, then weight K and
/// (weight K)^2 at the bandwidth.
#[pyfunction]
fn margin_windows(
    py: Python<'_>,
    columns: Columns<'_>,
    used: Vec<bool>,
    bandwidth: f64,
    call: &Call,
) -> PyResult<Vec<[f64; 5]>> {
    let windows = columns.run(py, call, 8, |rows, control| window::windows(rows, &used, bandwidth, control))?;
    Ok(windows.iter().map(|w| [w.density[0], w.density[1], w.density[2], w.mass, w.square]).collect())
}

/// Weight of every unit's margins in equal bins from `-limit` to `limit`, unit by unit.
#[pyfunction]
fn margin_histogram<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    n_units: usize,
    limit: f64,
    bins: usize,
    call: &Call,
) -> PyResult<Floats<'py>> {
    let histogram =
        |rows: &Margins<'_>, control: &Control| window::histogram(rows, n_units, limit, bins.max(1), control);
    Ok(PyArray1::from_vec(py, columns.run(py, call, 4, histogram)?))
}

/// Nanoseconds of finding a place in the rows of a cell.
const SEARCH_WORK: u64 = 300;

/// The rows of some cells by distance, with running sums of mass and cost.
#[pyclass(name = "CellCurves", frozen, module = "fairaudit_rs._native")]
struct PyCellCurves {
    curves: Curves,
    n_rows: usize,
}

#[pymethods]
impl PyCellCurves {
    #[new]
    fn new(py: Python<'_>, columns: Columns<'_>, used: Vec<bool>, call: &Call) -> PyResult<Self> {
        let curves = columns.run(py, call, 60, |rows, control| Curves::new(rows, &used, control))?;
        let n_rows = (0..used.len()).map(|cell| curves.rows(cell)).sum();
        Ok(Self { curves, n_rows })
    }

    /// Number of rows of a cell that can move.
    #[pyo3(signature = (cell, call=None))]
    fn rows(&self, py: Python<'_>, cell: usize, call: Option<&Call>) -> PyResult<usize> {
        Call::or_ordinary(call).run(py, SEARCH_WORK, |_| Ok(self.curves.rows(cell)))
    }

    /// Mass and cost of the first `rank` rows of a cell, for each rank.
    #[pyo3(signature = (cell, ranks, call=None))]
    fn points(
        &self,
        py: Python<'_>,
        cell: usize,
        ranks: Vec<usize>,
        call: Option<&Call>,
    ) -> PyResult<(Vec<f64>, Vec<f64>)> {
        Call::or_ordinary(call).run(py, SEARCH_WORK * ranks.len() as u64, |_| {
            let last = self.curves.rows(cell);
            Ok(ranks.into_iter().map(|rank| self.curves.point(cell, rank.min(last))).unzip())
        })
    }

    /// How many rows of a cell lie below a price, and how many up to and with it.
    #[pyo3(signature = (cell, price, call=None))]
    fn ranks(&self, py: Python<'_>, cell: usize, price: f64, call: Option<&Call>) -> PyResult<(usize, usize)> {
        Call::or_ordinary(call).run(py, 2 * SEARCH_WORK, |_| Ok(self.curves.ranks(cell, price)))
    }

    /// sum of (price - distance)^+ over the rows of all cells.
    #[pyo3(signature = (prices, call=None))]
    fn conjugate(&self, py: Python<'_>, prices: Vec<f64>, call: Option<&Call>) -> PyResult<f64> {
        let work = SEARCH_WORK * prices.len() as u64;
        Call::or_ordinary(call).run(py, work, |_| Ok(self.curves.conjugate(&prices)))
    }

    /// The least cost of moving this much mass of each cell.
    #[pyo3(signature = (masses, call=None))]
    fn cost(&self, py: Python<'_>, masses: Vec<f64>, call: Option<&Call>) -> PyResult<f64> {
        let work = SEARCH_WORK * masses.len() as u64;
        Call::or_ordinary(call).run(py, work, |_| Ok(self.curves.cost(&masses)))
    }

    /// The cheapest plan that moves this much mass of each cell.
    fn take<'py>(&self, py: Python<'py>, masses: Vec<f64>, call: &Call) -> PyResult<PlanParts<'py>> {
        // The rows that move are put in order.
        let work = 50 * self.n_rows as u64;
        Ok(parts(py, call.on_one_thread(py).run(py, work, |_| Ok(self.curves.take(&masses)))?))
    }
}

/// Nanoseconds of a replicate.
const REPLICATE_WORK: u64 = 20_000;

/// A projection whose rows exchange their decisions within blocks.
#[pyclass(name = "ProjectionTest", frozen, module = "fairaudit_rs._native")]
struct PyProjectionTest {
    test: ProjectionTest,
}

#[pymethods]
impl PyProjectionTest {
    #[new]
    fn new(
        py: Python<'_>,
        columns: Columns<'_>,
        n_cells: usize,
        blocks: Vec<BlockParts>,
        call: &Call,
    ) -> PyResult<Self> {
        let blocks = blocks_of(py, n_cells, blocks)?;
        let test = columns.run(py, call, 100, |rows, control| ProjectionTest::new(rows, &blocks, n_cells, control))?;
        Ok(Self { test })
    }

    /// What it costs to remove the observed gaps by rows of both sides.
    #[pyo3(signature = (call=None))]
    fn observed(&self, py: Python<'_>, call: Option<&Call>) -> PyResult<f64> {
        Call::or_ordinary(call).run(py, REPLICATE_WORK, |_| Ok(self.test.observed()))
    }

    /// What it costs to remove chance gaps; infinite where it cannot be done.
    fn null_distribution<'py>(&self, py: Python<'py>, draws: &Draws, call: &Call) -> PyResult<Floats<'py>> {
        let work = REPLICATE_WORK.saturating_mul(draws.n);
        let null = call.run(py, work, |control| self.test.null_distribution(&draws.core(), control))?;
        Ok(PyArray1::from_vec(py, null))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCellCurves>()?;
    module.add_class::<PyProjectionTest>()?;
    module.add_function(wrap_pyfunction!(projection_tally, module)?)?;
    module.add_function(wrap_pyfunction!(project_rates, module)?)?;
    module.add_function(wrap_pyfunction!(project_gains, module)?)?;
    module.add_function(wrap_pyfunction!(affordable_change, module)?)?;
    module.add_function(wrap_pyfunction!(distinct_margins, module)?)?;
    module.add_function(wrap_pyfunction!(margin_spread, module)?)?;
    module.add_function(wrap_pyfunction!(margin_windows, module)?)?;
    module.add_function(wrap_pyfunction!(margin_histogram, module)?)
}
