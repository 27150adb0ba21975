//! What exchanges its group: rows, or clusters of rows.

use crate::error::{Error, Result};
use crate::parallel::{self, Control};

/// Most groups: their codes have 16 bits.
const MAX_GROUPS: usize = 1 << 16;
/// Most strata times groups.
const MAX_SEGMENTS: usize = 1 << 27;

/// The units whose groups are exchanged.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    /// Observed group of each unit.
    pub group: &'a [u16],
    /// Number of groups.
    pub n_groups: usize,
    /// Stratum of each unit, if there are several.
    pub stratum: Option<&'a [u32]>,
    /// The unit of each row where units are clusters; without it every row is a unit.
    pub of_row: Option<&'a [u32]>,
}

/// Which units exchange their groups.
#[derive(Debug, Clone)]
pub(super) enum Strata {
    /// All.
    One,
    /// Those of one stratum, by unit.
    Several(Vec<u32>),
    /// Rows of one label.
    Labels,
}

/// What tells the units of one stratum and group from those of another, whatever their order: their
/// number, then the least and the greatest value, then a sum over all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    size: usize,
    least: [u64; 4],
    greatest: [u64; 4],
    sum: u64,
}

impl Default for Segment {
    fn default() -> Self {
        Self { size: 0, least: [u64::MAX; 4], greatest: [0; 4], sum: 0 }
    }
}

impl Segment {
    fn add(&mut self, key: [u64; 4]) {
        self.size += 1;
        self.least = self.least.min(key);
        self.greatest = self.greatest.max(key);
        self.sum = key.into_iter().fold(self.sum, |sum, part| sum.wrapping_add(part.wrapping_mul(part | 1)));
    }
}

impl<'a> Units<'a> {
    /// Refuses codes and lengths that do not fit, and strata that would take too much room.
    pub(super) fn check(&self) -> Result<()> {
        self.check_codes()?;
        if self.n_strata() * self.n_groups > MAX_SEGMENTS {
            let both = format!("of {} strata for {} groups", self.n_strata(), self.n_groups);
            return Err(Error::argument("stratum", both, "at most 2^27 strata times groups"));
        }
        Ok(())
    }

    /// Refuses codes and lengths that do not fit.
    pub(super) fn check_codes(&self) -> Result<()> {
        let units = self.group.len();
        if u32::try_from(units).is_err() {
            return Err(Error::argument("group", format!("of length {units}"), "at most 2^32 - 1 units"));
        }
        if !(2..=MAX_GROUPS).contains(&self.n_groups) {
            return Err(Error::argument("n_groups", self.n_groups, "between 2 and 65,536"));
        }
        if let Some(code) = self.group.iter().find(|&&code| usize::from(code) >= self.n_groups) {
            return Err(Error::argument("group", format!("{code} somewhere"), "codes below n_groups"));
        }
        if let Some(stratum) = self.stratum.filter(|stratum| stratum.len() != units) {
            let length = format!("of length {}", stratum.len());
            return Err(Error::argument("stratum", length, &format!("one code for each of {units} units")));
        }
        if let Some(code) = self.of_row.and_then(|unit| unit.iter().find(|&&code| code as usize >= units)) {
            return Err(Error::argument("of_row", format!("{code} somewhere"), &format!("codes below {units}")));
        }
        Ok(())
    }

    /// Refuses a column that has not one value for each unit.
    pub(super) fn check_column(&self, name: &str, length: usize) -> Result<()> {
        one_for_each(name, length, self.group.len(), "units")
    }

    /// The strata numbered anew, in order, where their codes are larger than there are units. That of code 0 keeps it.
    pub(super) fn fewer_strata(&self) -> Option<Vec<u32>> {
        let stratum = self.stratum.filter(|stratum| stratum.iter().any(|&code| code as usize > stratum.len()))?;
        let mut codes = [&[0], stratum].concat();
        codes.sort_unstable();
        codes.dedup();
        Some(stratum.iter().map(|code| codes.partition_point(|other| other < code) as u32).collect())
    }

    /// The same with other strata, if there are any.
    pub(super) fn with_strata(self, stratum: Option<&'a [u32]>) -> Self {
        Self { stratum: stratum.or(self.stratum), ..self }
    }

    fn n_strata(&self) -> usize {
        self.stratum.map_or(1, |stratum| stratum.iter().max().map_or(0, |&code| code as usize + 1))
    }

    /// The stratum of a unit.
    pub(super) fn stratum_of(&self, unit: usize) -> u32 {
        self.stratum.map_or(0, |stratum| stratum[unit])
    }

    /// Puts what `value` gives for every unit in an order that does not depend on the one in which
    /// they arrive, nor on the names of the groups: by stratum and group, smaller groups first, and
    /// within these by value. Sorted in place: there are no indices.
    pub(super) fn sort<T: Copy + Default + Send>(
        &self,
        value: impl Fn(usize) -> T,
        key: impl Fn(&T) -> [u64; 4] + Sync,
        control: &Control,
    ) -> Result<(Vec<T>, Vec<u16>, Strata)> {
        let units = self.group.len();
        let segment_of = |unit: usize| self.stratum_of(unit) as usize * self.n_groups + usize::from(self.group[unit]);
        let mut segments = vec![Segment::default(); self.n_strata() * self.n_groups];
        for unit in 0..units {
            segments[segment_of(unit)].add(key(&value(unit)));
        }
        control.check()?;
        let mut order: Vec<usize> = (0..segments.len()).collect();
        order.sort_by_key(|&segment| (segment / self.n_groups, segments[segment]));
        let mut next = vec![0; segments.len()];
        let mut start = 0;
        for &segment in &order {
            next[segment] = start;
            start += segments[segment].size;
        }
        let mut values = vec![T::default(); units];
        for unit in 0..units {
            let next = &mut next[segment_of(unit)];
            values[*next] = value(unit);
            *next += 1;
        }
        let mut rest = &mut values[..];
        let mut parts = Vec::with_capacity(order.len());
        for &segment in &order {
            let (part, others) = rest.split_at_mut(segments[segment].size);
            parts.push(part);
            rest = others;
        }
        control.check()?;
        parallel::for_each(parts, |part| parallel::sort_by_key(part, &key));
        let (mut group, mut stratum) = (Vec::with_capacity(units), Vec::new());
        for &segment in &order {
            group.resize(group.len() + segments[segment].size, (segment % self.n_groups) as u16);
            if self.stratum.is_some() {
                stratum.resize(group.len(), (segment / self.n_groups) as u32);
            }
        }
        let strata = if self.stratum.is_some() { Strata::Several(stratum) } else { Strata::One };
        Ok((values, group, strata))
    }
}

/// Refuses a column that has not one value for each row or unit.
pub(super) fn one_for_each(name: &str, length: usize, n: usize, of: &str) -> Result<()> {
    if length == n {
        return Ok(());
    }
    Err(Error::argument(name, format!("of length {length}"), &format!("one value for each of {n} {of}")))
}
