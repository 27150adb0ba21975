//! The tail of one group: its values, the excesses over a threshold, and what their fit says of return levels.

use super::curve::{Curve, shape_limits};
use super::cuts::Cuts;
use super::gpd::{Excesses, Fit, Sample, return_excess};
use super::grouped::Grouped;
use super::order::{is_measured, lower_rank, upper_rank};
use super::pair::{Levels, from_t, to_t};
use crate::error::{Error, Result};
use crate::numerics::laws::normal_quantile;
use crate::numerics::order::ordered_bits;
use crate::parallel::{Control, sort_by_key};

/// No comparison asks for a z beyond this.
const SURE: f64 = 7.0;
/// Fewest exceedances that are fitted.
pub const FEWEST: usize = 5;
/// Differences this small, relative to the values, are rounding.
const ROUNDING: f64 = 8.0 * f64::EPSILON;
/// Steps of a grid are at least this, relative to the largest value.
const FINEST: f64 = 1e-6;

/// The values of a group, downwards.
#[derive(Debug, Clone)]
pub struct Values {
    descending: Vec<f64>,
}

impl Values {
    /// Values in any order.
    ///
    /// # Errors
    /// [`Error::Argument`] for one that is not finite, or none; [`Error::Cancelled`].
    pub fn new(values: &[f64], control: &Control) -> Result<Self> {
        if values.is_empty() {
            return Err(Error::argument("values", "empty", "at least one number"));
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let given = format!("{} in row {place}", values[place]);
            return Err(Error::argument("values", given, "finite numbers"));
        }
        // 0 and -0 are one value.
        let mut descending: Vec<f64> = values.iter().map(|&value| value + 0.0).collect();
        sort_by_key(&mut descending, |value| std::cmp::Reverse(ordered_bits(*value)), control)?;
        Ok(Self { descending })
    }

    /// The values, the largest first.
    pub fn descending(&self) -> &[f64] {
        &self.descending
    }

    /// Their number.
    pub fn n(&self) -> usize {
        self.descending.len()
    }

    /// (X_(r), X_(s)) of a level of horizon m, minus infinity and infinity where there is no such rank; and whether both
    /// hold at the confidence.
    pub fn order_limits(&self, m: f64, confidence: f64) -> (f64, f64, bool) {
        let (n, tail) = (self.n() as u64, 0.5 * (1.0 - confidence));
        let at = |rank: u64| self.descending.get((rank as usize).wrapping_sub(1)).copied();
        let low = at(lower_rank(n, m, tail)).unwrap_or(f64::NEG_INFINITY);
        let high = at(upper_rank(n, m, tail)).unwrap_or(f64::INFINITY);
        (low, high, is_measured(n, m, tail))
    }

    /// Of the k + 1 largest values: how many of those above the last one are distinct, and the step of the grid that all
    /// lie on, where some are tied and there is one.
    pub fn ties(&self, k: usize) -> (usize, Option<f64>) {
        let top = &self.descending[..(k + 1).min(self.n())];
        let last = top[top.len() - 1];
        let size = top[0].abs().max(last.abs());
        let apart = |pair: &&[f64]| pair[0] - pair[1] > ROUNDING * pair[0].abs().max(pair[1].abs());
        let gaps = || top.windows(2).filter(apart).map(|pair| pair[0] - pair[1]);
        let n_distinct = gaps().count();
        if n_distinct == top.len() - 1 {
            return (n_distinct, None);
        }
        let step = gaps().fold(0.0, |step, gap| common_step(step, gap, ROUNDING * size * 10.0));
        (n_distinct, (step > FINEST * size).then_some(step))
    }
}

/// The greatest common step of two lengths, where rests below `least` are rounding.
fn common_step(mut one: f64, mut other: f64, least: f64) -> f64 {
    while other > least {
        let rest = one % other;
        (one, other) = (other, if other - rest < least { 0.0 } else { rest });
    }
    one
}

enum Excess {
    Single(Excesses),
    Celled(Grouped),
}

/// The fit of the tail of some values.
pub struct Tail {
    n: usize,
    k: usize,
    /// On the scale of the values.
    threshold: f64,
    /// On the scale of t.
    at: f64,
    upper: Option<f64>,
    excess: Excess,
    fit: Fit,
}

impl Tail {
    /// Fits the excesses over the (k + 1)-th largest value, on the scale t = -log(1 - c / upper) where an upper end is
    /// known; with a resolution over the half grid point above that value, from the cells.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are not so many values, fewer than five exceed the threshold (ties), or one is at or
    /// beyond the upper end.
    pub fn over_rank(values: &Values, k: usize, upper: Option<f64>, resolution: Option<f64>) -> Result<Self> {
        let Some(&last) = values.descending.get(k) else {
            let accepted = format!("at most {} of {} values", values.n().saturating_sub(1), values.n());
            return Err(Error::argument("n_exceedances", k, &accepted));
        };
        match resolution {
            Some(step) => Self::of_cells(values, last, step, upper),
            None => Self::over(values, last, upper),
        }
    }

    /// Fits the excesses over a threshold.
    ///
    /// # Errors
    /// As [`Tail::over_rank`].
    pub fn over(values: &Values, threshold: f64, upper: Option<f64>) -> Result<Self> {
        let k = values.descending.partition_point(|&value| value > threshold);
        Self::check(k, values.descending[0], upper)?;
        let at = to_t(threshold, upper);
        let excesses: Vec<f64> = values.descending[..k].iter().map(|&value| to_t(value, upper) - at).collect();
        let excesses = Excesses::new(&excesses)?;
        let fit = excesses.fit();
        Ok(Self { n: values.n(), k, threshold, at, upper, excess: Excess::Single(excesses), fit })
    }

    fn of_cells(values: &Values, last: f64, step: f64, upper: Option<f64>) -> Result<Self> {
        if !(step.is_finite() && step > 0.0) {
            return Err(Error::argument("resolution", step, "a finite number above 0"));
        }
        let place = |value: f64| ((value - last) / step).round();
        let k = values.descending.partition_point(|&value| place(value) > 0.0);
        // A cell may reach beyond the upper end, a value may not.
        Self::check(k, values.descending[0].min(upper.unwrap_or(f64::INFINITY).next_down()), upper)?;
        let threshold = last + 0.5 * step;
        let at = to_t(threshold, upper);
        let (mut edges, mut counts) = (Vec::new(), Vec::<u64>::new());
        let mut before = f64::INFINITY;
        for &value in &values.descending[..k] {
            let here = place(value);
            if here == before {
                *counts.last_mut().unwrap_or(&mut 0) += 1;
                continue;
            }
            before = here;
            let edge = |side: f64| to_t(last + (here + side) * step, upper) - at;
            edges.push((edge(-0.5).max(0.0), edge(0.5)));
            counts.push(1);
        }
        let grouped = Grouped::new(&edges, &counts)?;
        let fit = grouped.fit();
        Ok(Self { n: values.n(), k, threshold, at, upper, excess: Excess::Celled(grouped), fit })
    }

    fn check(k: usize, largest: f64, upper: Option<f64>) -> Result<()> {
        if let Some(upper) = upper
            && largest >= upper
        {
            return Err(Error::argument("upper", upper, &format!("more than the largest value, {largest}")));
        }
        if k < FEWEST {
            let accepted = format!("at least {FEWEST} values above the threshold");
            return Err(Error::argument("n_exceedances", k, &accepted));
        }
        Ok(())
    }

    fn sample(&self) -> &dyn Sample {
        match &self.excess {
            Excess::Single(excesses) => excesses,
            Excess::Celled(cells) => cells,
        }
    }

    /// Number of values.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of exceedances.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The threshold, on the scale of the values.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The fit, on the scale of t.
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Where the fitted law ends, on the scale of the values.
    pub fn end(&self) -> f64 {
        let reach = if self.fit.shape < 0.0 { -self.fit.scale / self.fit.shape } else { f64::INFINITY };
        self.value(reach)
    }

    /// The value at an excess.
    fn value(&self, excess: f64) -> f64 {
        from_t(self.at + excess, self.upper)
    }

    /// M = m k / n.
    pub fn horizon(&self, m: f64) -> f64 {
        m * self.k as f64 / self.n as f64
    }

    /// The fitted level of horizon m, where M > 1.
    pub fn level(&self, m: f64) -> f64 {
        self.value(return_excess(self.fit.shape, self.fit.scale, self.horizon(m)))
    }

    /// The curve of the levels of horizon m, which is asked for limits up to |z| = `reach`.
    ///
    /// # Errors
    /// [`Error::Argument`] when M is not above 1: the level lies below the threshold.
    pub fn curve<'a>(&'a self, m: f64, cuts: &'a Cuts, reach: f64) -> Result<Curve<'a>> {
        let horizon = self.horizon(m);
        if horizon.is_nan() || horizon <= 1.0 {
            let accepted = format!("more than {}: the level is below the threshold", self.n as f64 / self.k as f64);
            return Err(Error::argument("m", m, &accepted));
        }
        Ok(Curve::new(self.sample(), self.fit, horizon, cuts, reach))
    }

    /// The curve of the levels of horizon m, for a comparison.
    ///
    /// # Errors
    /// As [`Tail::curve`].
    pub fn levels<'a>(&'a self, m: f64, cuts: &'a Cuts) -> Result<Levels<'a>> {
        Ok(Levels::Fitted { curve: self.curve(m, cuts, SURE)?, threshold: self.at, upper: self.upper })
    }

    /// The interval of the level of horizon m.
    ///
    /// # Errors
    /// As [`Tail::curve`].
    pub fn interval(&self, m: f64, confidence: f64, cuts: &Cuts) -> Result<(f64, f64)> {
        let width = normal_quantile(0.5 * (1.0 + confidence));
        let (low, high) = self.curve(m, cuts, width)?.limits(width);
        Ok((self.value(low), self.value(high)))
    }

    /// z of levels of horizon m, given on the scale of the values.
    ///
    /// # Errors
    /// As [`Tail::curve`].
    pub fn z(&self, m: f64, levels: &[f64], cuts: &Cuts) -> Result<Vec<f64>> {
        let curve = self.curve(m, cuts, 0.0)?;
        Ok(levels.iter().map(|&level| curve.z(to_t(level, self.upper) - self.at)).collect())
    }

    /// The interval of the shape, within -1 to 3; None where no shape fits.
    pub fn shape_interval(&self, confidence: f64, cuts: &Cuts) -> Option<(f64, f64)> {
        shape_limits(self.sample(), self.fit, cuts, normal_quantile(0.5 * (1.0 + confidence)))
    }
}
