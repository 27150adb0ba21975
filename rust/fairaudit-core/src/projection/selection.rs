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

    /// The largest one.
    fn largest(self) -> f64 {
        let (Self::Cells(gains) | Self::Rows(gains)) = self;
        gains.iter().copied().fold(0.0, f64::max)
    }
}

/// Gains of one direction: with the sign of -1 rows help that would hinder.
#[derive(Clone, Copy)]
struct Directed<'a> {
    gains: Gains<'a>,
    sign: f64,
}

impl Directed<'_> {
    #[inline(always)]
    fn at(self, row: usize, cell: u16) -> f64 {
        self.sign * self.gains.at(row, cell)
    }
}

/// Rows to be found: those that help at a ratio of at most `limit`.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    gains: Directed<'a>,
    limit: f64,
}

impl Wanted<'_> {
    #[inline(always)]
    fn takes(&self, row: usize, cell: u16, distance: f64) -> bool {
        let gain = self.gains.at(row, cell);
        gain > 0.0 && distance <= self.limit * gain
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
    let bound = gains.largest() * rows.heaviest();
    let gains = Directed { gains, sign: 1.0 };
    let mut limit = likely_limit(rows, gains, target, |_, mass| mass);
    loop {
        let mut items = below(rows, &[Wanted { gains, limit }], control)?.pop().unwrap_or_default();
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

/// How far each criterion moves at most, up and down, for the cost of its budget: the inverse of the least cost. When
/// all rows that help cost less, their sum.
///
/// One pass over the rows finds the cheapest ones of all criteria; a second one those that the first did not see.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn affordable(
    rows: &Margins<'_>,
    criteria: &[Gains<'_>],
    budgets: &[f64],
    control: &Control,
) -> Result<Vec<[f64; 2]>> {
    let mut changes = vec![[0.0; 2]; criteria.len()];
    let ways = (0..criteria.len()).flat_map(|j| [(j, 0), (j, 1)]);
    let wanted = |(j, way): (usize, usize)| {
        let gains = Directed { gains: criteria[j], sign: [1.0, -1.0][way] };
        let limit = likely_limit(rows, gains, budgets[j], |ratio, mass| ratio * mass);
        ((j, way), Wanted { gains, limit })
    };
    let mut open: Vec<_> = ways.map(wanted).collect();
    while !open.is_empty() {
        let searched: Vec<Wanted<'_>> = open.iter().map(|&(_, wanted)| wanted).collect();
        let found = below(rows, &searched, control)?;
        let mut next = Vec::new();
        for (((j, way), wanted), mut items) in open.into_iter().zip(found) {
            let (moved, is_enough) = spend(&mut items, budgets[j]);
            if is_enough || wanted.limit == f64::MAX {
                changes[j][way] = moved;
            } else {
                next.push(((j, way), Wanted { limit: f64::MAX, ..wanted }));
            }
        }
        open = next;
    }
    Ok(changes)
}

/// What the cheapest items for a budget move, and whether there are enough to spend it on.
fn spend(items: &mut [Ranked], budget: f64) -> (f64, bool) {
    items.sort_unstable_by(|a, b| a.ratio.total_cmp(&b.ratio).then(a.mass.total_cmp(&b.mass)));
    let (mut cost, mut moved) = (0.0, 0.0);
    for item in items.iter() {
        let price = item.ratio * item.mass;
        if cost + price >= budget {
            return (moved + (budget - cost) / item.ratio, true);
        }
        (cost, moved) = (cost + price, moved + item.mass);
    }
    (moved, false)
}

/// A ratio below which enough rows surely lie, as far as a sample can tell: rows whose `value(ratio,
/// mass)` adds up to the target.
fn likely_limit(rows: &Margins<'_>, gains: Directed<'_>, target: f64, value: impl Fn(f64, f64) -> f64) -> f64 {
    let step = rows.sample_step();
    if step == 1 {
        return f64::MAX;
    }
    let (distances, cells) = rows.distances_and_cells();
    let mut sample: Vec<(f64, f64)> = (0..rows.len())
        .step_by(step)
        .filter_map(|row| {
            let (distance, gain) = (distances[row], gains.at(row, cells[row]));
            (gain > 0.0 && distance < f64::INFINITY).then(|| (distance / gain, gain * rows.weight_of(row)))
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

/// For each of some searches the rows that help at a ratio of at most its limit, in one pass.
fn below(rows: &Margins<'_>, searched: &[Wanted<'_>], control: &Control) -> Result<Vec<Vec<Ranked>>> {
    // All searches have gains of one kind.
    let by_row = searched.iter().any(|wanted| matches!(wanted.gains.gains, Gains::Rows(_)));
    let found = if by_row {
        rows.collect(control, |row, cell, distance| searched.iter().any(|wanted| wanted.takes(row, cell, distance)))?
    } else {
        rows.within(&widest_cuts(searched), control)?
    };
    let ranked = |wanted: &Wanted<'_>, candidate: &Candidate| {
        let (row, cell, distance) = (candidate.row as usize, candidate.cell, candidate.distance);
        let gain = wanted.gains.at(row, cell);
        let item = Ranked { ratio: distance / gain, mass: gain * candidate.weight, candidate: *candidate };
        (wanted.takes(row, cell, distance) && item.mass > 0.0).then_some(item)
    };
    let items = |wanted| found.iter().filter_map(|candidate| ranked(wanted, candidate)).collect();
    Ok(searched.iter().map(items).collect())
}

/// The distance beyond which no search wants a row of a cell; -1 where none wants any.
fn widest_cuts(searched: &[Wanted<'_>]) -> Vec<f64> {
    let mut widest = Vec::new();
    for wanted in searched {
        let (Gains::Cells(gains) | Gains::Rows(gains)) = wanted.gains.gains;
        widest.resize(gains.len().max(widest.len()), -1.0f64);
        for (widest, gain) in widest.iter_mut().zip(gains) {
            let gain = wanted.gains.sign * gain;
            *widest = widest.max(if gain > 0.0 { wanted.limit * gain } else { -1.0 });
        }
    }
    widest
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
