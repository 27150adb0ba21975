//! Groups whose rates must become equal: a convex search over one number.
//!
//! With groups 0..k the projection asks for new rates y with `y_t - y_0` in `[-low_t, high_t]`.
//! Changing the rate of a group costs the distances of its nearest rows, a convex function of the
//! change; given `y_0` the best `y_t` is the nearest allowed one, so what is left is the minimum of
//! `G(y_0) = H_0(y_0 - r_0) + sum_t H_t(clamp(r_t, y_0 - low_t, y_0 + high_t) - r_t)`,
//! found where its slope changes sign. The slope is a step function whose steps lie at known
//! places, so the search ends at the exact one.

use super::margins::{Candidate, Margins, Tally};
use super::{NOTHING, Outcome, Plan};
use crate::error::Result;
use crate::numerics::roots::first_place;
use crate::parallel::Control;

/// The nearest rows of one decision, by distance.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Distances, ascending.
    pub distance: Vec<f64>,
    /// The mass of the rows up to and with each.
    pub mass: Vec<f64>,
    /// The mass that can move at all; the rows above may be only the nearest of it.
    pub finite: f64,
}

impl Side {
    /// The cost of moving mass, but for a `slack` that is rounding.
    fn cost(&self, mass: f64, slack: f64) -> f64 {
        let (mut cost, mut moved) = (0.0, 0.0);
        for (&distance, &upto) in self.distance.iter().zip(&self.mass) {
            if mass - moved <= slack {
                return cost;
            }
            if upto >= mass {
                return cost + distance * (mass - moved);
            }
            cost += distance * (upto - moved);
            moved = upto;
        }
        cost
    }

    /// sum of (price - d)^+ over the mass.
    fn conjugate(&self, price: f64) -> f64 {
        let (mut sum, mut moved) = (0.0, 0.0);
        for (&distance, &upto) in self.distance.iter().zip(&self.mass) {
            if distance >= price {
                break;
            }
            sum += (price - distance) * (upto - moved);
            moved = upto;
        }
        sum
    }
}

/// One group of a block.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// The mass of its rows, above 0.
    pub weight: f64,
    /// The share of it that is decided positively.
    pub rate: f64,
    /// How far its rate may lie below and above that of group 0, which has 0 and 0.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Rows decided negatively, that raise the rate.
    pub up: Side,
    /// Rows decided positively, that lower it.
    pub down: Side,
}

impl Group {
    /// The rate of group 0 above which this group must rise.
    fn rises_above(&self) -> f64 {
        self.rate + self.low
    }

    /// The rate of group 0 below which this group must fall.
    fn falls_below(&self) -> f64 {
        self.rate - self.high
    }

    /// The rate of this group, given that of group 0.
    fn goes_to(&self, rate: f64) -> f64 {
        if rate > self.rises_above() {
            rate - self.low
        } else if rate < self.falls_below() {
            rate + self.high
        } else {
            self.rate
        }
    }

    /// The slopes of this group's cost just left and just right of a rate of group 0.
    fn slopes(&self, rate: f64) -> (f64, f64) {
        let (rises, falls) = (self.rises_above(), self.falls_below());
        // Towards the boundary of what can be reached the last row's price holds, beyond it none does.
        let last = |side: &Side, i: usize| {
            let row = i.min(side.distance.len().saturating_sub(1));
            side.distance.get(row).map_or(0.0, |d| d * self.weight)
        };
        let next = |side: &Side, i: usize| side.distance.get(i).map_or(f64::INFINITY, |d| d * self.weight);
        let left = if rate > rises {
            last(&self.up, self.up.mass.partition_point(|mass| rises + mass / self.weight < rate))
        } else if rate <= falls {
            -next(&self.down, self.down.mass.partition_point(|mass| falls - mass / self.weight >= rate))
        } else {
            0.0
        };
        let right = if rate >= rises {
            next(&self.up, self.up.mass.partition_point(|mass| rises + mass / self.weight <= rate))
        } else if rate < falls {
            -last(&self.down, self.down.mass.partition_point(|mass| falls - mass / self.weight > rate))
        } else {
            0.0
        };
        (left, right)
    }
}

/// The cheapest rates.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// The new rate of each group.
    pub rate: Vec<f64>,
    /// What a unit of each rate is worth; they add up to 0.
    pub price: Vec<f64>,
    /// The cost.
    pub primal: f64,
    /// The value of the dual program.
    pub dual: f64,
}

/// Which rates of group 0 can be the best: between the places where groups begin to move.
#[derive(Debug, Clone, Copy)]
struct Domain {
    least: f64,
    most: f64,
}

/// The range of the search, or the group that cannot reach the others and how far it gets.
fn domain(groups: &[Group]) -> std::result::Result<Domain, (usize, f64)> {
    let begins = || groups.iter().flat_map(|g| [g.rises_above(), g.falls_below()]).filter(|place| place.is_finite());
    let mut found =
        Domain { least: begins().fold(f64::INFINITY, f64::min), most: begins().fold(f64::NEG_INFINITY, f64::max) };
    let (mut lowest, mut highest) = ((f64::NEG_INFINITY, 0), (f64::INFINITY, 0));
    for (i, group) in groups.iter().enumerate() {
        let low = group.falls_below() - group.down.finite / group.weight;
        let high = group.rises_above() + group.up.finite / group.weight;
        if low > lowest.0 {
            lowest = (low, i);
        }
        if high < highest.0 {
            highest = (high, i);
        }
    }
    if lowest.0 > highest.0 + NOTHING {
        let (which, group) = (lowest.1, &groups[lowest.1]);
        return Err((which, group.down.finite / group.weight));
    }
    found.least = found.least.max(lowest.0.min(highest.0));
    found.most = found.most.min(highest.0.max(lowest.0)).max(found.least);
    Ok(found)
}

/// The mass that each group may have to move up and down.
fn needs(groups: &[Group], domain: Domain) -> Vec<(f64, f64)> {
    let need = |group: &Group| {
        let up = (domain.most - group.rises_above()).max(0.0) * group.weight;
        let down = (group.falls_below() - domain.least).max(0.0) * group.weight;
        (up, down)
    };
    groups.iter().map(need).collect()
}

/// The cheapest rates of groups that know their nearest rows.
///
/// # Errors
/// The group that cannot move far enough, and how far its rate can fall.
pub fn solve(groups: &[Group]) -> std::result::Result<Rates, (usize, f64)> {
    let Domain { least, most } = domain(groups)?;
    let right_slope = |rate: f64| groups.iter().map(|group| group.slopes(rate).1).sum::<f64>();
    let rate = first_place(least, most, |rate| right_slope(rate) >= 0.0);
    let price = prices(groups, rate);
    let mut rates = Rates { rate: groups.iter().map(|g| g.goes_to(rate)).collect(), price, primal: 0.0, dual: 0.0 };
    for (group, (&to, &price)) in groups.iter().zip(rates.rate.iter().zip(&rates.price)) {
        let change = to - group.rate;
        let side = if change > 0.0 { &group.up } else { &group.down };
        rates.primal += side.cost(group.weight * change.abs(), NOTHING * group.weight);
        let side = if price > 0.0 { &group.up } else { &group.down };
        rates.dual -= side.conjugate(price.abs() / group.weight) + price * group.rate;
        let slack = if price > 0.0 { group.low } else { group.high };
        if price != 0.0 {
            rates.dual -= price.abs() * slack;
        }
    }
    Ok(rates)
}

/// Slopes of the groups' costs at the best rate, chosen between left and right, as near to 0 as can be, so
/// that they add up to 0.
fn prices(groups: &[Group], rate: f64) -> Vec<f64> {
    let slopes: Vec<(f64, f64)> = groups.iter().map(|group| group.slopes(rate)).collect();
    let mut prices: Vec<f64> = slopes.iter().map(|&(left, right)| 0.0f64.max(left).min(right)).collect();
    let mut missing = -prices.iter().sum::<f64>();
    for (price, &(left, right)) in prices.iter_mut().zip(&slopes) {
        let change = if missing > 0.0 { missing.min(right - *price) } else { missing.max(left - *price) };
        *price += change;
        missing -= change;
    }
    prices
}

/// Which groups of a block are compared, and with which tolerance.
#[derive(Debug, Clone)]
pub struct Block {
    /// The unit of each group; that of the reference first. Its cells are `2 * unit + decision`.
    pub units: Vec<usize>,
    /// How far each rate may lie below that of the first group; 0 for itself.
    pub low: Vec<f64>,
    /// How far each rate may lie above that of the first group; 0 for itself.
    pub high: Vec<f64>,
}

/// The cheapest plan that makes the rates of a block's groups equal up to its tolerances.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn equalise(rows: &Margins<'_>, block: &Block, control: &Control) -> Result<Outcome> {
    let empty: Vec<Group> = (0..block.units.len()).map(|i| group(rows.tallies(), block, i)).collect();
    let needs = match domain(&empty) {
        Ok(domain) => needs(&empty, domain),
        Err((which, reach)) => return Ok(Outcome::Unreachable { block: 0, which, reach }),
    };
    let (groups, mut nearest) = groups_with_rows(rows, block, &needs, control)?;
    let rates = match solve(&groups) {
        Ok(rates) => rates,
        Err((which, reach)) => return Ok(Outcome::Unreachable { block: 0, which, reach }),
    };
    let mut plan = Plan { primal: rates.primal, dual: rates.dual, prices: rates.price, ..Plan::default() };
    for ((group, &unit), &to) in groups.iter().zip(&block.units).zip(&rates.rate) {
        let change = to - group.rate;
        let (side, cell) = if change > 0.0 { (&group.up, 2 * unit) } else { (&group.down, 2 * unit + 1) };
        let moved = take(&mut plan, side, &nearest[cell], group.weight * change.abs(), NOTHING * group.weight);
        plan.residual = plan.residual.max((group.weight * change.abs() - moved).abs() / group.weight);
        nearest[cell].clear();
    }
    plan.sort();
    Ok(Outcome::Reached(plan))
}

/// The groups of a block with their nearest rows, at least the mass (up, down) that is needed of each or
/// all that can move; and these rows by cell.
pub(super) fn groups_with_rows(
    rows: &Margins<'_>,
    block: &Block,
    needs: &[(f64, f64)],
    control: &Control,
) -> Result<(Vec<Group>, Vec<Vec<Candidate>>)> {
    let tallies = rows.tallies();
    let mut need = vec![0.0; tallies.len()];
    for (&unit, &(up, down)) in block.units.iter().zip(needs) {
        (need[2 * unit], need[2 * unit + 1]) = (up, down);
    }
    let nearest = nearest(rows, &need, control)?;
    let side = |cell: usize| {
        let mut mass = 0.0;
        let upto = |candidate: &Candidate| {
            mass += candidate.weight;
            mass
        };
        Side {
            distance: nearest[cell].iter().map(|candidate| candidate.distance).collect(),
            mass: nearest[cell].iter().map(upto).collect(),
            finite: tallies[cell].finite_weight,
        }
    };
    let with_rows = |(i, &unit): (usize, &usize)| Group {
        up: side(2 * unit),
        down: side(2 * unit + 1),
        ..group(tallies, block, i)
    };
    let groups = block.units.iter().enumerate().map(with_rows).collect();
    Ok((groups, nearest))
}

fn group(tallies: &[Tally], block: &Block, i: usize) -> Group {
    let unit = block.units[i];
    let (negative, positive) = (&tallies[2 * unit], &tallies[2 * unit + 1]);
    let weight = negative.weight + positive.weight;
    let side = |tally: &Tally| Side { finite: tally.finite_weight, ..Side::default() };
    Group {
        weight,
        rate: positive.weight / weight,
        low: block.low[i],
        high: block.high[i],
        up: side(negative),
        down: side(positive),
    }
}

/// Moves `mass` of the nearest rows, those at the same distance by the same fraction, but for a `slack`
/// that is rounding; returns what was moved.
fn take(plan: &mut Plan, side: &Side, nearest: &[Candidate], mass: f64, slack: f64) -> f64 {
    if mass <= slack {
        return 0.0;
    }
    let last = side.mass.partition_point(|&upto| upto < mass - slack).min(nearest.len().saturating_sub(1));
    let Some(&at) = side.distance.get(last) else { return 0.0 };
    let first_tied = side.distance.partition_point(|&distance| distance < at);
    let tied = first_tied..side.distance.partition_point(|&distance| distance <= at);
    let below = if first_tied > 0 { side.mass[first_tied - 1] } else { 0.0 };
    let at_last = side.mass[tied.end - 1] - below;
    let fraction = ((mass - below) / at_last).clamp(0.0, 1.0);
    let fraction = if fraction > 1.0 - NOTHING { 1.0 } else { fraction };
    for candidate in nearest.iter().take(tied.end).filter(|candidate| candidate.weight > 0.0) {
        plan.rows.push(candidate.row);
        plan.fraction.push(if candidate.distance < at { 1.0 } else { fraction });
    }
    below + fraction * at_last
}

/// The nearest rows of each cell by distance: at least the mass that is needed, or all that can move.
fn nearest(rows: &Margins<'_>, need: &[f64], control: &Control) -> Result<Vec<Vec<Candidate>>> {
    let mut cut = likely_cuts(rows, need);
    loop {
        let mut found: Vec<Vec<Candidate>> = vec![Vec::new(); need.len()];
        for candidate in rows.within(&cut, control)? {
            found[usize::from(candidate.cell)].push(candidate);
        }
        let mut enough = true;
        for (cell, found) in found.iter().enumerate() {
            let weight: f64 = found.iter().map(|candidate| candidate.weight).sum();
            // One row more than needed, so that the price there is known.
            let short =
                weight < (need[cell] + rows.heaviest()).min(rows.tallies()[cell].finite_weight * (1.0 - NOTHING));
            if need[cell] > 0.0 && short && cut[cell] < f64::MAX {
                (cut[cell], enough) = (f64::MAX, false);
            }
        }
        if enough {
            for found in &mut found {
                found.sort_unstable_by(|a, b| {
                    a.distance.total_cmp(&b.distance).then(a.weight.total_cmp(&b.weight)).then(a.row.cmp(&b.row))
                });
            }
            return Ok(found);
        }
    }
}

/// Distances within which each cell surely has what is needed, as far as a sample can tell.
fn likely_cuts(rows: &Margins<'_>, need: &[f64]) -> Vec<f64> {
    let step = rows.sample_step();
    let mut sample: Vec<Vec<(f64, f64)>> = vec![Vec::new(); need.len()];
    if step > 1 {
        let (distances, cells) = rows.distances_and_cells();
        for row in (0..rows.len()).step_by(step) {
            if let Some(sample) = sample.get_mut(usize::from(cells[row])) {
                sample.push((distances[row], rows.weight_of(row)));
            }
        }
    }
    let cut = |(sample, &need): (&mut Vec<(f64, f64)>, &f64)| {
        if need <= 0.0 {
            return -1.0;
        }
        sample.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut covered = 0.0;
        let enough = sample.iter().position(|&(_, weight)| {
            covered += weight;
            covered >= 1.2 * need / step as f64
        });
        enough.and_then(|i| sample.get(i + 8)).map_or(f64::MAX, |&(distance, _)| distance.min(f64::MAX))
    };
    sample.iter_mut().zip(need).map(cut).collect()
}
