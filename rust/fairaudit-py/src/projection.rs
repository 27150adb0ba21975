//! The projection lens: rows, what their distances say, who moves, permutations.

use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::PermutationTest;
use fairaudit_core::projection::curves::Curves;
use fairaudit_core::projection::margins::{Columns, Facts, Margins};
use fairaudit_core::projection::rates::Block;
use fairaudit_core::projection::replicates::ProjectionTest;
use fairaudit_core::projection::selection::{Gains, affordable, select};
use fairaudit_core::projection::{NO_CELL, Outcome, project, window};
use fairaudit_core::{Error, Result};
use numpy::ndarray::Ix2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Dense, slice};
use crate::call::to_python;
use crate::options::Call;
use crate::permutation::PyPermutationTest;

type Floats = Py<PyArray1<f64>>;
type Integers = Py<PyArray1<i64>>;
type Table = Py<PyArray2<f64>>;
/// Units, low and high tolerances of a block.
type BlockParts = (Vec<usize>, Vec<f64>, Vec<f64>);

/// Numbers and weights of the rows of every cell: all of them, and those that can reach the boundary.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Tally {
    rows: Integers,
    finite: Integers,
    weight: Floats,
    finite_weight: Floats,
    /// Sums of squared weights.
    square: Floats,
}

/// Who moves, what share of each, and the certificate of the cost.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Plan {
    rows: Integers,
    fraction: Floats,
    primal: f64,
    dual: f64,
    residual: f64,
    /// The multipliers.
    prices: Floats,
}

/// What cannot be reached: the block, the place in it of the unit that hinders, and how far that one gets.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Unreachable {
    block: usize,
    unit: usize,
    reach: f64,
}

/// Number, mean and standard deviation of the finite signed margins.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Spread {
    rows: u64,
    mean: f64,
    standard_deviation: f64,
}

/// Kernel sums of every unit.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct Windows {
    /// (units, 3): weight K / b for half, once and twice the bandwidth b.
    density: Table,
    /// Weight K at the bandwidth.
    mass: Floats,
    /// (weight K)^2.
    square: Floats,
}

/// How many margins differ, and among how many rows.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct DistinctMargins {
    margins: usize,
    rows: usize,
}

/// Mass and cost of the first rows of a cell.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct CurvePoints {
    mass: Floats,
    cost: Floats,
}

/// How many rows of a cell lie below a price, and how many up to and with it.
#[pyclass(frozen, get_all, module = "fairaudit_rs._native")]
struct PriceRanks {
    below: usize,
    up_to: usize,
}

#[derive(IntoPyObject)]
enum Projected {
    Plan(Plan),
    Unreachable(Unreachable),
}

fn floats(py: Python<'_>, numbers: impl IntoIterator<Item = f64>) -> Floats {
    PyArray1::from_iter(py, numbers).unbind()
}

fn integers(py: Python<'_>, numbers: impl IntoIterator<Item = u64>) -> Integers {
    PyArray1::from_iter(py, numbers.into_iter().map(|number| number as i64)).unbind()
}

/// Rows side by side, as a table.
fn table<const N: usize>(py: Python<'_>, rows: &[[f64; N]]) -> PyResult<Table> {
    Ok(PyArray1::from_slice(py, rows.as_flattened()).reshape([rows.len(), N])?.unbind())
}

impl Plan {
    fn of(py: Python<'_>, plan: fairaudit_core::projection::Plan) -> Self {
        Self {
            rows: integers(py, plan.rows.into_iter().map(u64::from)),
            fraction: plan.fraction.into_pyarray(py).unbind(),
            primal: plan.primal,
            dual: plan.dual,
            residual: plan.residual,
            prices: plan.prices.into_pyarray(py).unbind(),
        }
    }
}

impl Projected {
    fn of(py: Python<'_>, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Reached(plan) => Self::Plan(Plan::of(py, plan)),
            Outcome::Unreachable { block, which, reach } => {
                Self::Unreachable(Unreachable { block, unit: which, reach })
            }
        }
    }
}

fn blocks_of(py: Python<'_>, n_cells: usize, blocks: Vec<BlockParts>) -> PyResult<Vec<Block>> {
    let block = |(units, low, high): BlockParts| {
        let fits = units.len() >= 2 && low.len() == units.len() && high.len() == units.len();
        if !fits || units.iter().any(|&unit| unit >= n_cells / 2) {
            let accepted = "at least two units below n_cells / 2, with two tolerances each";
            return Err(to_python(py, &Error::argument("blocks", format!("{units:?}"), accepted)));
        }
        Ok(Block { units, low, high })
    };
    blocks.into_iter().map(block).collect()
}

fn check_length(name: &str, given: usize, expected: usize, accepted: &str) -> Result<()> {
    if given == expected { Ok(()) } else { Err(Error::argument(name, format!("of length {given}"), accepted)) }
}

/// Rows with distance, cell and weight, checked and tallied when they are made.
///
/// The arrays are held by reference: nobody may change them any more.
#[pyclass(frozen, module = "fairaudit_rs._native")]
struct ProjectionRows {
    distance: Floats,
    cell: Py<PyArray1<u16>>,
    weight: Option<Floats>,
    facts: Facts,
}

impl ProjectionRows {
    /// Runs `compute` on the rows; `nanoseconds` is the work of one row.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        call: &Call,
        nanoseconds: u64,
        compute: impl FnOnce(&Margins<'_>, &Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (distance, cell) = (self.distance.bind(py).try_readonly()?, self.cell.bind(py).try_readonly()?);
        let weight = self.weight.as_ref().map(|weight| weight.bind(py).try_readonly()).transpose()?;
        let weight = weight.as_ref().map(slice).transpose()?;
        let columns = Columns { distance: slice(&distance)?, cell: slice(&cell)?, weight };
        let work = nanoseconds.saturating_mul(columns.distance.len() as u64);
        call.run(py, work, |control| compute(&Margins::new(columns, &self.facts), control))
    }

    fn n_rows(&self, py: Python<'_>) -> usize {
        self.distance.bind(py).len()
    }
}

#[pymethods]
impl ProjectionRows {
    /// A cell is `2 * unit + decision`, below `n_cells`, or `NO_CELL`.
    #[new]
    #[pyo3(signature = (distance, cell, n_cells, call, *, weight=None))]
    fn new(
        py: Python<'_>,
        distance: Dense<'_, f64>,
        cell: Dense<'_, u16>,
        n_cells: usize,
        call: &Call,
        weight: Option<Dense<'_, f64>>,
    ) -> PyResult<Self> {
        let columns = Columns { distance: &distance, cell: &cell, weight: weight.as_deref() };
        let work = 2 * columns.distance.len() as u64;
        let facts = call.run(py, work, |control| Facts::of(columns, n_cells, control))?;
        let weight = weight.map(Dense::into_object);
        Ok(Self { distance: distance.into_object(), cell: cell.into_object(), weight, facts })
    }

    #[getter]
    fn tally(&self, py: Python<'_>) -> Tally {
        let tallies = &self.facts.tallies;
        Tally {
            rows: integers(py, tallies.iter().map(|tally| tally.rows)),
            finite: integers(py, tallies.iter().map(|tally| tally.finite)),
            weight: floats(py, tallies.iter().map(|tally| tally.weight)),
            finite_weight: floats(py, tallies.iter().map(|tally| tally.finite_weight)),
            square: floats(py, tallies.iter().map(|tally| tally.square)),
        }
    }

    /// The cheapest plan that makes the rates of the units of every block equal up to tolerances, or what cannot be
    /// reached. A block is (units, low, high).
    fn project(&self, py: Python<'_>, blocks: Vec<BlockParts>, call: &Call) -> PyResult<Projected> {
        let blocks = blocks_of(py, self.facts.tallies.len(), blocks)?;
        let outcome = self.run(py, call, 5, |rows, control| project(rows, &blocks, control))?;
        Ok(Projected::of(py, outcome))
    }

    /// The cheapest plan that changes one criterion by `target`, with a gain for every row.
    fn select(&self, py: Python<'_>, gains: Dense<'_, f64>, target: f64, call: &Call) -> PyResult<Projected> {
        let gains: &[f64] = &gains;
        let outcome = self.run(py, call, 5, |rows, control| {
            check_length("gains", gains.len(), rows.len(), "one for each row")?;
            select(rows, Gains::Rows(gains), target, control)
        })?;
        Ok(Projected::of(py, outcome))
    }

    /// How far each criterion moves at most, up and down, for the cost of its budget: (criteria, 2). The gains of a
    /// criterion are one for each cell, or for each row.
    #[pyo3(signature = (gains, budgets, call, *, by_row=false))]
    fn affordable(
        &self,
        py: Python<'_>,
        gains: Dense<'_, f64, Ix2>,
        budgets: Dense<'_, f64>,
        call: &Call,
        by_row: bool,
    ) -> PyResult<Table> {
        let (n_criteria, width) = (gains.shape()[0], gains.shape()[1]);
        let (gains, budgets): (&[f64], &[f64]) = (&gains, &budgets);
        let changes = self.run(py, call, 5 + 2 * n_criteria as u64, |rows, control| {
            check_length("budgets", budgets.len(), n_criteria, "one for each criterion")?;
            let (expected, accepted) =
                if by_row { (rows.len(), "one for each row") } else { (rows.tallies().len(), "one for each cell") };
            check_length("gains", width, expected, accepted)?;
            let criterion = |gains| if by_row { Gains::Rows(gains) } else { Gains::Cells(gains) };
            let criteria: Vec<Gains<'_>> = gains.chunks_exact(width.max(1)).map(criterion).collect();
            affordable(rows, &criteria, &budgets[..criteria.len()], control)
        })?;
        table(py, &changes)
    }

    /// How the signed margins of all rows that take part spread.
    fn spread(&self, py: Python<'_>, call: &Call) -> PyResult<Spread> {
        let spread = self.run(py, call, 3, window::spread)?;
        Ok(Spread { rows: spread.rows, mean: spread.mean, standard_deviation: spread.standard_deviation })
    }

    /// Kernel sums of every unit that is used; 0 of others.
    fn windows(&self, py: Python<'_>, used: Vec<bool>, bandwidth: f64, call: &Call) -> PyResult<Windows> {
        let windows = self.run(py, call, 6, |rows, control| window::windows(rows, &used, bandwidth, control))?;
        let density: Vec<[f64; 3]> = windows.iter().map(|window| window.density).collect();
        Ok(Windows {
            density: table(py, &density)?,
            mass: floats(py, windows.iter().map(|window| window.mass)),
            square: floats(py, windows.iter().map(|window| window.square)),
        })
    }

    /// How many distinct signed margins occur among the rows within the cut of their cell; looks no further once there
    /// are `enough` margins.
    fn distinct_margins(
        &self,
        py: Python<'_>,
        cut: Dense<'_, f64>,
        enough: usize,
        call: &Call,
    ) -> PyResult<DistinctMargins> {
        let cut: &[f64] = &cut;
        let (margins, rows) = self.run(py, call, 2, |rows, control| rows.distinct_within(cut, enough, control))?;
        Ok(DistinctMargins { margins, rows })
    }

    /// (units, bins): weight of every unit's signed margins in equal bins from `-limit` to `limit`.
    fn histogram(&self, py: Python<'_>, limit: f64, bins: usize, call: &Call) -> PyResult<Table> {
        let n_units = self.facts.tallies.len() / 2;
        let histogram = self.run(py, call, 4, |rows, control| {
            if bins == 0 || n_units.checked_mul(bins).is_none_or(|all| all > MOST_BINS) {
                return Err(Error::argument("bins", bins, &format!("1 to {MOST_BINS} for all units together")));
            }
            window::histogram(rows, n_units, limit, bins, control)
        })?;
        Ok(PyArray1::from_vec(py, histogram).reshape([n_units, bins])?.unbind())
    }

    /// The rows of the cells that are used, by distance.
    fn curves(&self, py: Python<'_>, used: Vec<bool>, call: &Call) -> PyResult<CellCurves> {
        let curves = self.run(py, call, 60, |rows, control| Curves::new(rows, &used, control))?;
        let n_rows = (0..used.len()).map(|cell| curves.rows(cell)).sum();
        Ok(CellCurves { curves, n_cells: used.len(), n_rows })
    }

    /// The test whose rows exchange their decisions within blocks: what it costs to remove the observed gaps by rows of
    /// both sides, and chance gaps; infinite where it cannot be done.
    fn exchange(&self, py: Python<'_>, blocks: Vec<BlockParts>, call: &Call) -> PyResult<PyPermutationTest> {
        let blocks = blocks_of(py, self.facts.tallies.len(), blocks)?;
        let test = self.run(py, call, 100, |rows, control| ProjectionTest::new(rows, &blocks, control))?;
        Ok(PyPermutationTest::of(Exchange(test)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("ProjectionRows({} rows, {} cells)", self.n_rows(py), self.facts.tallies.len())
    }
}

/// Bins of all units of a histogram together.
const MOST_BINS: usize = 1 << 26;
/// Nanoseconds of finding a place in the rows of a cell.
const SEARCH_WORK: u64 = 300;

/// The rows of some cells by distance, with running sums of mass and cost.
#[pyclass(frozen, module = "fairaudit_rs._native")]
struct CellCurves {
    curves: Curves,
    n_cells: usize,
    n_rows: usize,
}

impl CellCurves {
    fn check_cell(&self, cell: usize) -> Result<()> {
        let accepted = format!("a cell below {}", self.n_cells);
        if cell < self.n_cells { Ok(()) } else { Err(Error::argument("cell", cell, &accepted)) }
    }

    /// Masses are none below 0: there would be no place for them.
    fn check_masses(&self, masses: &[f64]) -> Result<()> {
        check_length("masses", masses.len(), self.n_cells, "one for each cell")?;
        let accepted = "numbers of at least 0";
        match masses.iter().find(|mass| mass.is_nan() || **mass < 0.0) {
            Some(mass) => Err(Error::argument("masses", format!("{mass} for a cell"), accepted)),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl CellCurves {
    /// Number of rows of a cell that can move.
    #[pyo3(signature = (cell, call=None))]
    fn rows(&self, py: Python<'_>, cell: usize, call: Option<&Call>) -> PyResult<usize> {
        Call::or_ordinary(call).run(py, SEARCH_WORK, |_| self.check_cell(cell).map(|()| self.curves.rows(cell)))
    }

    /// Mass and cost of the first `rank` rows of a cell, for each rank.
    #[pyo3(signature = (cell, ranks, call=None))]
    fn points(&self, py: Python<'_>, cell: usize, ranks: Vec<usize>, call: Option<&Call>) -> PyResult<CurvePoints> {
        let (mass, cost): (Vec<f64>, Vec<f64>) =
            Call::or_ordinary(call).run(py, SEARCH_WORK * ranks.len() as u64, |_| {
                self.check_cell(cell)?;
                let last = self.curves.rows(cell);
                Ok(ranks.into_iter().map(|rank| self.curves.point(cell, rank.min(last))).unzip())
            })?;
        Ok(CurvePoints { mass: floats(py, mass), cost: floats(py, cost) })
    }

    /// Where a price lies among the rows of a cell.
    #[pyo3(signature = (cell, price, call=None))]
    fn ranks(&self, py: Python<'_>, cell: usize, price: f64, call: Option<&Call>) -> PyResult<PriceRanks> {
        let (below, up_to) = Call::or_ordinary(call)
            .run(py, 2 * SEARCH_WORK, |_| self.check_cell(cell).map(|()| self.curves.ranks(cell, price)))?;
        Ok(PriceRanks { below, up_to })
    }

    /// sum of (price - distance)^+ over the rows of all cells.
    #[pyo3(signature = (prices, call=None))]
    fn conjugate(&self, py: Python<'_>, prices: Vec<f64>, call: Option<&Call>) -> PyResult<f64> {
        Call::or_ordinary(call).run(py, SEARCH_WORK * prices.len() as u64, |_| {
            check_length("prices", prices.len(), self.n_cells, "one for each cell")?;
            Ok(self.curves.conjugate(&prices))
        })
    }

    /// The least cost of moving this much mass of each cell.
    #[pyo3(signature = (masses, call=None))]
    fn cost(&self, py: Python<'_>, masses: Vec<f64>, call: Option<&Call>) -> PyResult<f64> {
        Call::or_ordinary(call).run(py, SEARCH_WORK * masses.len() as u64, |_| {
            self.check_masses(&masses)?;
            Ok(self.curves.cost(&masses))
        })
    }

    /// The cheapest plan that moves this much mass of each cell.
    fn take(&self, py: Python<'_>, masses: Vec<f64>, call: &Call) -> PyResult<Plan> {
        // The rows that move are put in order.
        let work = 50 * self.n_rows as u64;
        let plan = call.on_one_thread(py).run(py, work, |_| {
            self.check_masses(&masses)?;
            Ok(self.curves.take(&masses))
        })?;
        Ok(Plan::of(py, plan))
    }
}

/// The test of the core among the others: lenses of the core do not know each other.
struct Exchange(ProjectionTest);

impl PermutationTest for Exchange {
    fn observed(&self) -> f64 {
        self.0.observed()
    }

    fn replicate_work(&self) -> u64 {
        self.0.replicate_work()
    }

    fn null_distribution(&self, draws: &fairaudit_core::Draws, control: &Control) -> Result<Vec<f64>> {
        self.0.null_distribution(draws, control)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NO_CELL", NO_CELL)?;
    module.add_class::<CellCurves>()?;
    module.add_class::<CurvePoints>()?;
    module.add_class::<DistinctMargins>()?;
    module.add_class::<Plan>()?;
    module.add_class::<PriceRanks>()?;
    module.add_class::<ProjectionRows>()?;
    module.add_class::<Spread>()?;
    module.add_class::<Tally>()?;
    module.add_class::<Unreachable>()?;
    module.add_class::<Windows>()
}
