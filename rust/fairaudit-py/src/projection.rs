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
use crate::call::{Run, draws, run, run_shared, to_python};

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
        n_threads: Option<usize>,
        nanoseconds: u64,
        compute: impl FnOnce(&Margins<'_>, &Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (distance, cell) = (slice(&self.distance)?, slice(&self.cell)?);
        let weight = self.weight.as_ref().map(slice).transpose()?;
        let work = nanoseconds * distance.len() as u64;
        run_shared(Run { py, n_threads, progress: None, work }, move |control| {
            compute(&Margins::new(distance, cell, weight, control)?, control)
        })
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
#[pyo3(signature = (columns, n_cells, n_threads=None))]
fn projection_tally<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    n_cells: usize,
    n_threads: Option<usize>,
) -> PyResult<(Counts<'py>, Counts<'py>, Floats<'py>, Floats<'py>, Floats<'py>)> {
    let tallies = columns.run(py, n_threads, 2, |rows, control| rows.tally(n_cells, control))?;
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
#[pyo3(signature = (columns, n_cells, blocks, n_threads=None))]
fn project_rates<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    n_cells: usize,
    blocks: Vec<BlockParts>,
    n_threads: Option<usize>,
) -> PyResult<Projected<'py>> {
    let blocks = blocks_of(py, n_cells, blocks)?;
    let outcome = columns.run(py, n_threads, 5, |rows, control| {
        let tallies = rows.tally(n_cells, control)?;
        project(rows, &tallies, &blocks, control)
    })?;
    Ok(projected(py, outcome))
}

/// The cheapest plan that changes one criterion by `target`, with a gain for every row.
#[pyfunction]
#[pyo3(signature = (columns, gains, target, n_threads=None))]
fn project_gains<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    gains: PyReadonlyArray1<'_, f64>,
    target: f64,
    n_threads: Option<usize>,
) -> PyResult<Projected<'py>> {
    let gains = slice(&gains)?;
    let outcome = columns.run(py, n_threads, 5, |rows, control| {
        if gains.len() != rows.len() {
            return Err(Error::argument("gains", format!("of length {}", gains.len()), "one for each row"));
        }
        select(rows, Gains::Rows(gains), target, control)
    })?;
    Ok(projected(py, outcome))
}

/// How far a criterion moves at most for a cost of `budget`: one gain for each cell, or each row.
#[pyfunction]
#[pyo3(signature = (columns, gains, budget, by_row=false, n_threads=None))]
fn affordable_change(
    py: Python<'_>,
    columns: Columns<'_>,
    gains: PyReadonlyArray1<'_, f64>,
    budget: f64,
    by_row: bool,
    n_threads: Option<usize>,
) -> PyResult<f64> {
    let gains = slice(&gains)?;
    columns.run(py, n_threads, 5, |rows, control| {
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
#[pyo3(signature = (columns, cut, enough, n_threads=None))]
fn distinct_margins(
    py: Python<'_>,
    columns: Columns<'_>,
    cut: PyReadonlyArray1<'_, f64>,
    enough: usize,
    n_threads: Option<usize>,
) -> PyResult<(usize, usize)> {
    let cut = slice(&cut)?;
    columns.run(py, n_threads, 2, |rows, control| rows.distinct_within(cut, enough, control))
}

/// Number, mean and standard deviation of the finite signed margins.
#[pyfunction]
#[pyo3(signature = (columns, n_cells, n_threads=None))]
fn margin_spread(
    py: Python<'_>,
    columns: Columns<'_>,
    n_cells: usize,
    n_threads: Option<usize>,
) -> PyResult<(u64, f64, f64)> {
    let spread = columns.run(py, n_threads, 4, |rows, control| window::spread(rows, n_cells, control))?;
    Ok((spread.rows, spread.mean, spread.standard_deviation))
}

/// Kernel sums of every unit that is used: weight K / b for half, once and twice the bandwidth, then weight K and
/// (weight K)^2 at the bandwidth.
#[pyfunction]
#[pyo3(signature = (columns, used, bandwidth, n_threads=None))]
fn margin_windows(
    py: Python<'_>,
    columns: Columns<'_>,
    used: Vec<bool>,
    bandwidth: f64,
    n_threads: Option<usize>,
) -> PyResult<Vec<[f64; 5]>> {
    let windows = columns.run(py, n_threads, 8, |rows, control| window::windows(rows, &used, bandwidth, control))?;
    Ok(windows.iter().map(|w| [w.density[0], w.density[1], w.density[2], w.mass, w.square]).collect())
}

/// Weight of every unit's margins in equal bins from `-limit` to `limit`, unit by unit.
#[pyfunction]
#[pyo3(signature = (columns, n_units, limit, bins, n_threads=None))]
fn margin_histogram<'py>(
    py: Python<'py>,
    columns: Columns<'py>,
    n_units: usize,
    limit: f64,
    bins: usize,
    n_threads: Option<usize>,
) -> PyResult<Floats<'py>> {
    let histogram =
        |rows: &Margins<'_>, control: &Control| window::histogram(rows, n_units, limit, bins.max(1), control);
    Ok(PyArray1::from_vec(py, columns.run(py, n_threads, 4, histogram)?))
}

/// The rows of some cells by distance, with running sums of mass and cost.
#[pyclass(name = "CellCurves", frozen, module = "fairaudit_rs._native")]
struct PyCellCurves {
    curves: Curves,
}

#[pymethods]
impl PyCellCurves {
    #[new]
    #[pyo3(signature = (columns, used, n_threads=None))]
    fn new(py: Python<'_>, columns: Columns<'_>, used: Vec<bool>, n_threads: Option<usize>) -> PyResult<Self> {
        let curves = columns.run(py, n_threads, 60, |rows, control| Curves::new(rows, &used, control))?;
        Ok(Self { curves })
    }

    /// Number of rows of a cell that can move.
    fn rows(&self, cell: usize) -> usize {
        self.curves.rows(cell)
    }

    /// Mass and cost of the first `rank` rows of a cell, for each rank.
    fn points(&self, cell: usize, ranks: Vec<usize>) -> (Vec<f64>, Vec<f64>) {
        let last = self.curves.rows(cell);
        ranks.into_iter().map(|rank| self.curves.point(cell, rank.min(last))).unzip()
    }

    /// How many rows of a cell lie below a price, and how many up to and with it.
    fn ranks(&self, cell: usize, price: f64) -> (usize, usize) {
        self.curves.ranks(cell, price)
    }

    /// sum of (price - distance)^+ over the rows of all cells.
    fn conjugate(&self, prices: Vec<f64>) -> f64 {
        self.curves.conjugate(&prices)
    }

    /// The least cost of moving this much mass of each cell.
    fn cost(&self, masses: Vec<f64>) -> f64 {
        self.curves.cost(&masses)
    }

    /// The cheapest plan that moves this much mass of each cell.
    fn take<'py>(&self, py: Python<'py>, masses: Vec<f64>) -> PlanParts<'py> {
        parts(py, self.curves.take(&masses))
    }
}

/// A projection whose rows exchange their decisions within blocks.
#[pyclass(name = "ProjectionTest", frozen, module = "fairaudit_rs._native")]
struct PyProjectionTest {
    test: ProjectionTest,
}

#[pymethods]
impl PyProjectionTest {
    #[new]
    #[pyo3(signature = (columns, n_cells, blocks, n_threads=None))]
    fn new(
        py: Python<'_>,
        columns: Columns<'_>,
        n_cells: usize,
        blocks: Vec<BlockParts>,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let blocks = blocks_of(py, n_cells, blocks)?;
        let test =
            columns.run(py, n_threads, 100, |rows, control| ProjectionTest::new(rows, &blocks, n_cells, control))?;
        Ok(Self { test })
    }

    /// What it costs to remove the observed gaps by rows of both sides.
    fn observed(&self) -> f64 {
        self.test.observed()
    }

    /// What it costs to remove chance gaps; infinite where it cannot be done.
    #[pyo3(signature = (n_resamples, seed, n_threads=None, progress=None))]
    fn null_distribution<'py>(
        &self,
        py: Python<'py>,
        n_resamples: usize,
        seed: u64,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Floats<'py>> {
        let run_of = Run { py, n_threads, progress, work: 20_000 * n_resamples as u64 };
        let values =
            run(run_of, |control| self.test.null_distribution(&draws(0, n_resamples as u64, seed, 0), control))?;
        Ok(PyArray1::from_vec(py, values))
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
