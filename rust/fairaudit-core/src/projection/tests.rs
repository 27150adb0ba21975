//! The solvers against each other and against the definition.

use proptest::prelude::*;

use super::margins::{Columns, Facts, Margins};
use super::rates::{Block, equalise};
use super::replicates::ProjectionTest;
use super::selection::{Gains, affordable, select};
use super::{Outcome, Plan, project};
use crate::draws::Draws;
use crate::parallel::Control;

/// Rows as (distance, cell, weight).
type Data = (Vec<f64>, Vec<u16>, Option<Vec<f64>>);

/// Rows of `n_units` units with ties, zeros and infinite distances.
fn data(n_units: usize) -> impl Strategy<Value = Data> {
    let distance = prop_oneof![
        6 => (0u32..50).prop_map(|d| f64::from(d) / 10.0),
        3 => 0.0..5.0f64,
        1 => Just(f64::INFINITY),
    ];
    let row = (distance, 0..2 * n_units as u16, 1u32..5);
    (prop::collection::vec(row, 4 * n_units..120), any::<bool>()).prop_map(move |(rows, weighted)| {
        let distance = rows.iter().map(|row| row.0).collect();
        // Every unit has rows.
        let cell = rows.iter().enumerate().map(|(i, row)| if i < 2 * n_units { i as u16 } else { row.1 }).collect();
        let weight = weighted.then(|| rows.iter().map(|row| f64::from(row.2) / 4.0).collect());
        (distance, cell, weight)
    })
}

fn with_rows<T>(data: &Data, run: impl FnOnce(&Margins<'_>, &Control) -> T) -> T {
    let (columns, control) = (columns(data), Control::with_threads(2));
    let n_cells = data.1.iter().max().map_or(0, |&cell| usize::from(cell | 1) + 1);
    let facts = Facts::of(columns, n_cells, &control).unwrap();
    run(&Margins::new(columns, &facts), &control)
}

fn columns(data: &Data) -> Columns<'_> {
    Columns { distance: &data.0, cell: &data.1, weight: data.2.as_deref() }
}

fn block(n: usize, low: f64, high: f64) -> Block {
    let tolerance = |value: f64| (0..n).map(|i| if i == 0 { 0.0 } else { value }).collect();
    Block { units: (0..n).collect(), low: tolerance(low), high: tolerance(high) }
}

/// The rates after a plan.
fn rates(data: &Data, plan: &Plan, n_units: usize) -> Vec<f64> {
    let weight = |row: usize| data.2.as_ref().map_or(1.0, |weight| weight[row]);
    let (mut total, mut positive) = (vec![0.0; n_units], vec![0.0; n_units]);
    for (row, &cell) in data.1.iter().enumerate() {
        total[usize::from(cell) / 2] += weight(row);
        positive[usize::from(cell) / 2] += weight(row) * f64::from(cell & 1);
    }
    for (&row, fraction) in plan.rows.iter().zip(&plan.fraction) {
        let cell = data.1[row as usize];
        positive[usize::from(cell) / 2] += weight(row as usize) * fraction * if cell & 1 == 1 { -1.0 } else { 1.0 };
    }
    positive.iter().zip(&total).map(|(positive, total)| positive / total).collect()
}

fn cost(data: &Data, plan: &Plan) -> f64 {
    let of_row = |(&row, fraction): (&u32, &f64)| {
        data.2.as_ref().map_or(1.0, |weight| weight[row as usize]) * fraction * data.0[row as usize]
    };
    plan.rows.iter().zip(&plan.fraction).map(of_row).sum()
}

fn reached(outcome: Outcome) -> Option<Plan> {
    match outcome {
        Outcome::Reached(plan) => Some(plan),
        Outcome::Unreachable { .. } => None,
    }
}

proptest! {
    /// Two groups by selection and by the search over rates come to the same.
    #[test]
    fn selection_equals_the_search(data in data(2), tolerance in prop_oneof![Just(0.0), 0.0..0.3f64]) {
        with_rows(&data, |rows, control| {
            let block = block(2, tolerance, tolerance);
            let one = reached(project(rows, std::slice::from_ref(&block), control).unwrap());
            let other = reached(equalise(rows, &block, control).unwrap());
            prop_assert_eq!(one.is_some(), other.is_some());
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert!((one.primal - other.primal).abs() <= 1e-9 * one.primal.max(1e-3));
                prop_assert!((one.primal - one.dual).abs() <= 1e-9 * one.primal.max(1e-3));
            }
            Ok(())
        })?;
    }

    /// The plan of several groups is feasible, costs what it says, and has the dual's value.
    #[test]
    fn plans_hold_and_are_certified(
        data in data(4),
        low in prop_oneof![Just(0.0), Just(f64::INFINITY), 0.0..0.2f64],
        high in prop_oneof![Just(0.0), 0.0..0.2f64],
    ) {
        with_rows(&data, |rows, control| {
            let Some(plan) = reached(equalise(rows, &block(4, low, high), control).unwrap()) else {
                return Ok(());
            };
            let rates = rates(&data, &plan, 4);
            for rate in &rates[1..] {
                prop_assert!(rate - rates[0] <= high + 1e-9 && rates[0] - rate <= low + 1e-9, "{rates:?}");
            }
            prop_assert!(plan.fraction.iter().all(|&fraction| fraction > 0.0 && fraction <= 1.0));
            prop_assert!((cost(&data, &plan) - plan.primal).abs() <= 1e-9 * plan.primal.max(1e-3));
            prop_assert!((plan.primal - plan.dual).abs() <= 1e-9 * plan.primal.max(1e-3), "{plan:?}");
            prop_assert!(plan.residual <= 1e-9);
            Ok(())
        })?;
    }

    /// Spending what a plan costs moves the criterion as far as the plan.
    #[test]
    fn affordable_is_the_inverse_of_select(data in data(2), share in 0.05..0.9f64) {
        with_rows(&data, |rows, control| {
            let gains = [0.0, 0.7, 1.3, 0.0];
            let all = affordable(rows, &[Gains::Cells(&gains)], &[f64::MAX], control).unwrap()[0][0];
            let plan = reached(select(rows, Gains::Cells(&gains), share * all, control).unwrap());
            if let Some(plan) = plan.filter(|plan| plan.primal > 1e-6) {
                let moved = affordable(rows, &[Gains::Cells(&gains)], &[plan.primal], control).unwrap()[0][0];
                prop_assert!((moved - share * all).abs() <= 1e-9 * all);
            }
            Ok(())
        })?;
    }
}

/// Several criteria at once, up and down, come to what each comes to by itself, whatever the sample says.
#[test]
fn one_pass_affords_what_single_ones_do() {
    let data = many(100_000);
    let (up, down) = ([0.0, 0.7, 1.3, 0.0], [0.0, -0.7, -1.3, 0.0]);
    let by_row: Vec<f64> = data.1.iter().map(|&cell| if cell & 1 == 1 { 1e-3 } else { -2e-3 }).collect();
    let criteria = [Gains::Cells(&up), Gains::Rows(&by_row), Gains::Cells(&down)];
    // The last budget buys all rows that help: more than the sample can tell.
    let budgets = [40.0, 3.0, 1e9];
    with_rows(&data, |rows, control| {
        let all = affordable(rows, &criteria, &budgets, control).unwrap();
        for ((one, budget), found) in criteria.iter().zip(&budgets).zip(&all) {
            assert_eq!(affordable(rows, &[*one], &[*budget], control).unwrap(), [*found]);
        }
        let mirrored = affordable(rows, &[Gains::Cells(&down)], &[budgets[0]], control).unwrap();
        assert_eq!(all[0], [mirrored[0][1], mirrored[0][0]]);
        assert!(all[2][1] > 1e4, "{all:?}");
    });
}

/// Rows like those of an audit, with many of them.
fn many(n: usize) -> Data {
    let word = |i: usize, salt: u64| {
        let mixed = crate::random::philox([i as u64, salt, 0, 0], [7, 11]);
        (mixed[0] >> 11) as f64 / (1u64 << 53) as f64
    };
    let distance = (0..n).map(|i| word(i, 1)).collect();
    let cell =
        (0..n).map(|i| 2 * u16::from(word(i, 2) < 0.3) + u16::from(word(i, 3) < 0.5 + 0.1 * word(i, 2))).collect();
    (distance, cell, None)
}

/// A sample tells where to look; what is found must not depend on it.
#[test]
fn the_order_of_the_rows_changes_no_bit() {
    let data = many(200_000);
    let mut reversed = data.clone();
    reversed.0.reverse();
    reversed.1.reverse();
    for n_groups in [2, 3] {
        // Three groups: the third is the second again, as unit 0.
        let block =
            Block { units: if n_groups == 2 { vec![0, 1] } else { vec![0, 1, 0] }, ..block(n_groups, 0.0, 0.0) };
        let plan = |data: &Data| {
            with_rows(data, |rows, control| {
                reached(project(rows, std::slice::from_ref(&block), control).unwrap()).unwrap()
            })
        };
        let (one, other) = (plan(&data), plan(&reversed));
        assert_eq!((one.primal, one.dual), (other.primal, other.dual));
        assert_eq!(one.rows.len(), other.rows.len());
        assert!(one.rows.len() < data.0.len() / 4);
    }
}

#[test]
fn what_cannot_be_reached_is_told() {
    let data = (vec![f64::INFINITY, f64::INFINITY, 1.0, f64::INFINITY], vec![0, 1, 3, 3], None);
    with_rows(&data, |rows, control| {
        let outcome = project(rows, &[block(2, 0.0, 0.0)], control).unwrap();
        // A rate of 1/2 against 1: the one row that can move is enough.
        assert_eq!(reached(outcome).unwrap().rows, [2]);
    });
    let data = (vec![f64::INFINITY, f64::INFINITY, f64::INFINITY], vec![0, 1, 3], None);
    with_rows(&data, |rows, control| {
        let outcome = project(rows, &[block(2, 0.0, 0.0)], control).unwrap();
        assert_eq!(outcome, Outcome::Unreachable { block: 0, which: 0, reach: 0.0 });
    });
}

#[test]
fn wrong_distances_are_named() {
    for (value, shown) in [(f64::NAN, "NaN"), (-0.5, "-0.5")] {
        let data = (vec![1.0, value], vec![0, 1], None);
        let message = Facts::of(columns(&data), 2, &Control::default()).unwrap_err().to_string();
        assert!(message.starts_with(&format!("distance is {shown} in row 1")), "{message}");
    }
}

/// The mean cost of chance gaps is that of the limit law, Sigma / (2 S): here the distances are
/// uniform on (0, 1), so S = sum of 1 / (rows of a group), in rates.
#[test]
fn chance_gaps_cost_what_the_law_says() {
    let n = 20_000;
    let word = |i: usize, salt: u64| crate::random::philox([i as u64, salt, 1, 0], [3, 5])[0] as f64 / 2f64.powi(64);
    let cell: Vec<u16> = (0..n).map(|i| 2 * u16::from(word(i, 2) < 0.3) + u16::from(word(i, 3) < 0.5)).collect();
    let data = ((0..n).map(|i| word(i, 1)).collect(), cell, None);
    with_rows(&data, |rows, control| {
        let test = ProjectionTest::new(rows, &[block(2, 0.0, 0.0)], control).unwrap();
        let draw = |replicates| test.null_distribution(&Draws { replicates, seed: 1, series: 0 }, control).unwrap();
        let null = draw(0..4_000);
        // Sigma = 1/4 (1/n_1 + 1/n_2); the density of the signed margin at 0 is 1/2.
        let mean = null.iter().sum::<f64>() / null.len() as f64;
        assert!((mean / 0.25 - 1.0).abs() < 0.1, "{mean}");
        assert!(test.observed() > 0.0);
        // A replicate depends on its index alone.
        assert_eq!(draw(3_990..4_000), null[3_990..]);
    });
}
