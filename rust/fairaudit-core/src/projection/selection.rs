//! One criterion: rows by distance over gain, until the gap is covered (Algorithm 1 of the paper).
//!
//! The cheapest plan moves the rows with the smallest `d / gain`. They are found without sorting:
//! a sample tells below which ratio they surely lie, one pass collects what is below, a weighted
//! selection finds the last ratio. Rows tied there move by the same fraction, so that the plan
//! depends neither on the order of the rows nor on threads.

use super::margins::{Candidate, Margins};
use super::{NOTHING, Outcome, Plan, cost_of};
use crate::error::Result;
use crate::numerics::sums::FixedSum;
use crate::parallel::Control;

/// How far one unit of a row's mass moves the criterion towards its target; not above 0: not at all.
#[derive(Debug, Clone, Copy)]
pub enum Gains<'a> {
    /// The same for all rows of a cell.
    Cells(&'a [f64]),
    /// One number for each row.
    Rows(&'a [f64]),
}

impl Gains<'_> {
    #[inline(always)]
    fn at(self, row: usize, cell: u16) -> f64 {
        match self {
            Self::Cells(gains) => gains.get(usize::from(cell)).copied().unwrap_or(0.0),
            Self::Rows(gains) => gains[row],
        }
    }

    fn largest(self) -> f64 {
        let (Self::Cells(gains) | Self::Rows(gains)) = self;
        gains.iter().copied().fold(0.0, f64::max)
    }
}

/// A candidate with its place in the order.
#[derive(Clone, Copy)]
struct Ranked {
    ratio: f64,
    mass: f64,
    candidate: Candidate,
}

/// The cheapest plan that changes the criterion by `target`, at least 0.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn select(rows: &Margins<'_>, gains: Gains<'_>, target: f64, control: &Control) -> Result<Outcome> {
    if target <= 0.0 {
        return Ok(Outcome::Reached(Plan { prices: vec![0.0], ..Plan::default() }));
    }
    let largest = gains.largest();
    let bound = largest * rows.heaviest;
    let mut limit = likely_limit(rows, gains, target, |_, mass| mass);
    loop {
        let mut items = below(rows, gains, limit, control)?;
        let total = FixedSum::new(bound, rows.len()).with(items.iter().map(|item| item.mass)).value();
        let everything = limit == f64::MAX;
        if total < target && !everything {
            limit = f64::MAX;
            continue;
        }
        if total < target * (1.0 - NOTHING) {
            return Ok(Outcome::Unreachable { block: 0, which: 0, reach: total });
        }
        if items.is_empty() {
            // No row can help, and there is next to nothing to cover.
            return Ok(Outcome::Reached(Plan { residual: target, prices: vec![0.0], ..Plan::default() }));
        }
        let last = last_ratio(&mut items, target, bound, rows.len());
        if last * (1.0 + NOTHING) >= limit && !everything {
            limit = f64::MAX;
            continue;
        }
        return Ok(Outcome::Reached(plan(&items, last, target, bound, rows.len())));
    }
}

/// How far the criterion moves at most for a cost of `budget`: the inverse of the least cost. When
/// all rows that help cost less, their sum.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn affordable(rows: &Margins<'_>, gains: Gains<'_>, budget: f64, control: &Control) -> Result<f64> {
    let mut limit = likely_limit(rows, gains, budget, |ratio, mass| ratio * mass);
    loop {
        let mut items = below(rows, gains, limit, control)?;
        items.sort_unstable_by(|a, b| a.ratio.total_cmp(&b.ratio).then(a.mass.total_cmp(&b.mass)));
        let (mut cost, mut moved) = (0.0, 0.0);
        for item in &items {
            let price = item.ratio * item.mass;
            if cost + price >= budget {
                return Ok(moved + (budget - cost) / item.ratio);
            }
            (cost, moved) = (cost + price, moved + item.mass);
        }
        if limit == f64::MAX {
            return Ok(moved);
        }
        limit = f64::MAX;
    }
}

/// A ratio below which enough rows surely lie, as far as a sample can tell: rows whose `value(ratio,
/// mass)` adds up to the target.
fn likely_limit(rows: &Margins<'_>, gains: Gains<'_>, target: f64, value: impl Fn(f64, f64) -> f64) -> f64 {
    let step = rows.sample_step();
    if step == 1 {
        return f64::MAX;
    }
    let mut sample: Vec<(f64, f64)> = (0..rows.len())
        .step_by(step)
        .filter_map(|row| {
            let gain = gains.at(row, rows.cell[row]);
            (gain > 0.0 && rows.distance[row] < f64::INFINITY)
                .then(|| (rows.distance[row] / gain, gain * rows.weight_of(row)))
        })
        .collect();
    sample.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let wanted = 1.2 * target / step as f64;
    let mut covered = 0.0;
    let needed = sample.iter().position(|&(ratio, mass)| {
        covered += value(ratio, mass);
        covered >= wanted
    });
    // A few more, because a sample of few rows says little.
    needed.and_then(|i| sample.get(i + 8)).map_or(f64::MAX, |&(ratio, _)| ratio)
}

/// The rows that help at a ratio of at most `limit`.
fn below(rows: &Margins<'_>, gains: Gains<'_>, limit: f64, control: &Control) -> Result<Vec<Ranked>> {
    let found = match gains {
        Gains::Cells(gains) => {
            let cut: Vec<f64> = gains.iter().map(|&gain| if gain > 0.0 { limit * gain } else { -1.0 }).collect();
            rows.within(&cut, control)?
        }
        Gains::Rows(gains) => {
            rows.collect(control, |row, _, distance| gains[row] > 0.0 && distance <= limit * gains[row])?
        }
    };
    let ranked = |candidate: Candidate| {
        let gain = gains.at(candidate.row as usize, candidate.cell);
        Ranked { ratio: candidate.distance / gain, mass: gain * candidate.weight, candidate }
    };
    Ok(found.into_iter().map(ranked).filter(|item| item.mass > 0.0).collect())
}

/// The smallest ratio such that the items up to it cover the target; items is not empty.
fn last_ratio(items: &mut [Ranked], target: f64, bound: f64, terms: usize) -> f64 {
    let mut covered = FixedSum::new(bound, terms);
    let (mut first, mut end) = (0, items.len());
    while end - first > 1 {
        let middle = (first + end - 1) / 2;
        items[first..end].select_nth_unstable_by(middle - first, |a, b| a.ratio.total_cmp(&b.ratio));
        let lower = covered.with(items[first..=middle].iter().map(|item| item.mass));
        if lower.value() >= target {
            end = middle + 1;
        } else {
            covered = lower;
            first = middle + 1;
        }
    }
    items[first].ratio
}

fn plan(items: &[Ranked], last: f64, target: f64, bound: f64, terms: usize) -> Plan {
    let [mut below, mut tied] = [FixedSum::new(bound, terms); 2];
    for item in items {
        if item.ratio < last {
            below.add(item.mass);
        } else if item.ratio == last {
            tied.add(item.mass);
        }
    }
    let (below, tied) = (below.value(), tied.value());
    let fraction = ((target - below) / tied).clamp(0.0, 1.0);
    let fraction = if fraction < NOTHING { 0.0 } else { fraction };
    let fraction = if fraction > 1.0 - NOTHING { 1.0 } else { fraction };
    let moved = |item: &&Ranked| item.ratio < last || (item.ratio == last && fraction > 0.0);
    let cheap = cost_of(items.iter().filter(|item| item.ratio < last).map(|item| &item.candidate));
    let at_last = cost_of(items.iter().filter(|item| item.ratio == last).map(|item| &item.candidate));
    let moved = items.iter().filter(moved);
    let mut plan = Plan {
        rows: moved.clone().map(|item| item.candidate.row).collect(),
        fraction: moved.map(|item| if item.ratio < last { 1.0 } else { fraction }).collect(),
        primal: cheap + fraction * at_last,
        // gamma = last: D = gamma target + sum of w (d - gamma gain)^-.
        dual: last * (target - below) + cheap,
        residual: (target - below - fraction * tied).abs(),
        prices: vec![last],
    };
    plan.sort();
    plan
}
