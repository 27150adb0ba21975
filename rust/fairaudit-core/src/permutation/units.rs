//! What exchanges its group: rows, or clusters of rows.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel::{self, Control};

/// Most groups: their codes have 16 bits.
const MAX_GROUPS: usize = 1 << 16;
/// Most strata, with their parts, times groups, whatever the number of units ...
const MAX_SEGMENTS: usize = 1 << 27;
/// ... and so many if there are not as many for each unit: strata that hold few of the groups.
const FEW_SEGMENTS: usize = 1 << 23;
const SEGMENTS_PER_UNIT: usize = 8;
/// Bytes that a stratum keeps of a group, about: sizes, what it brings, and what is expected of it.
const SEGMENT_BYTES: usize = 100;
/// Most groups whose gaps within strata are compared at once: their covariance is a matrix for each of sixteen
/// replicates.
const MAX_STRATIFIED_GROUPS: usize = 2_048;
/// A table of all segments is kept where so many of them are a unit's own.
const DENSE: usize = 4;
/// Bytes that are given back at once.
const GIVEN_BACK: usize = 1 << 20;

/// The units whose groups are exchanged.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    /// Observed group of each unit.
    pub group: &'a [u16],
    /// Number of groups.
    pub n_groups: usize,
    /// Stratum of each unit, if there are several: gaps are taken and groups exchanged within it.
    pub stratum: Option<&'a [u32]>,
    /// Part of its stratum that each unit exchanges its group in, if there are several.
    pub part: Option<&'a [u32]>,
    /// The unit of each row where units are clusters; without it every row is a unit.
    pub of_row: Option<&'a [u32]>,
}

/// Which units of a stratum exchange their groups.
#[derive(Debug, Clone)]
pub(super) enum Exchange {
    /// All.
    All,
    /// Those of one part, by unit.
    Parts(Vec<u32>),
    /// Rows of one label.
    Labels,
}

impl Exchange {
    /// Number of parts.
    pub(super) fn n_parts(&self) -> usize {
        match self {
            Self::All => 1,
            Self::Parts(part) => n_codes(part),
            Self::Labels => 2,
        }
    }

    /// From the parts of the units, if there are several.
    pub(super) fn of(part: Option<Vec<u32>>) -> Self {
        part.map_or(Self::All, Self::Parts)
    }
}

/// Units of one stratum in order: their values, groups, and which of them exchange these.
pub(super) struct Sorted<T> {
    pub(super) values: Vec<T>,
    pub(super) group: Vec<u16>,
    pub(super) exchange: Exchange,
}

/// What tells the units of one stratum, part and group from those of another, whatever their order: their
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
        self.check_room()
    }

    /// As [`Units::check`], where groups have so many codes, of which some are no group of the test.
    pub(super) fn check_among(&self, n_codes: usize) -> Result<()> {
        self.check_codes_below(n_codes)?;
        self.check_room()
    }

    fn check_room(&self) -> Result<()> {
        let (units, strata) = (self.group.len(), self.n_strata().saturating_mul(self.n_parts()));
        let segments = strata.saturating_mul(self.n_groups);
        let most = MAX_SEGMENTS.min(FEW_SEGMENTS.max(SEGMENTS_PER_UNIT.saturating_mul(units)));
        if segments > most {
            let bytes = segments.saturating_mul(SEGMENT_BYTES) as f64;
            let given = format!(
                "of {strata} strata for {units} units in {} groups, a table of {segments} parts ({:.1} GB)",
                self.n_groups,
                bytes / 1e9
            );
            let accepted = format!("at most {most} strata times groups: coarser strata, or fewer groups (groups=)");
            return Err(Error::argument("stratum", given, &accepted));
        }
        if self.stratum.is_some() && self.n_strata() > 1 && self.n_groups > MAX_STRATIFIED_GROUPS {
            let given = format!("of {} strata for {} groups", self.n_strata(), self.n_groups);
            let accepted = format!("at most {MAX_STRATIFIED_GROUPS} groups within strata (groups=)");
            return Err(Error::argument("stratum", given, &accepted));
        }
        Ok(())
    }

    /// Refuses codes and lengths that do not fit.
    pub(super) fn check_codes(&self) -> Result<()> {
        self.check_codes_below(self.n_groups)
    }

    fn check_codes_below(&self, n_codes: usize) -> Result<()> {
        let units = self.group.len();
        if u32::try_from(units).is_err() {
            return Err(Error::argument("group", format!("of length {units}"), "at most 2^32 - 1 units"));
        }
        if !(2..=MAX_GROUPS).contains(&self.n_groups) {
            return Err(Error::argument("n_groups", self.n_groups, "between 2 and 65,536"));
        }
        if let Some(code) = self.group.iter().find(|&&code| usize::from(code) >= n_codes) {
            return Err(Error::argument("group", format!("{code} somewhere"), "codes below n_groups"));
        }
        if let Some(stratum) = self.stratum.filter(|stratum| stratum.len() != units) {
            let length = format!("of length {}", stratum.len());
            return Err(Error::argument("stratum", length, &format!("one code for each of {units} units")));
        }
        if let Some(part) = self.part.filter(|part| part.len() != units) {
            let length = format!("of length {}", part.len());
            return Err(Error::argument("part", length, &format!("one code for each of {units} units")));
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

    /// The strata and the parts numbered anew, in order, where their codes are larger than there are units. Those of code
    /// 0 keep it.
    pub(super) fn fewer_codes(&self) -> [Option<Vec<u32>>; 2] {
        [self.stratum, self.part].map(|codes| {
            let codes = codes.filter(|codes| codes.iter().any(|&code| code as usize > codes.len()))?;
            let mut distinct = [&[0], codes].concat();
            distinct.sort_unstable();
            distinct.dedup();
            Some(codes.iter().map(|code| distinct.partition_point(|other| other < code) as u32).collect())
        })
    }

    /// The same with other strata and parts, if there are any.
    pub(super) fn with_codes(self, [stratum, part]: &'a [Option<Vec<u32>>; 2]) -> Self {
        Self { stratum: stratum.as_deref().or(self.stratum), part: part.as_deref().or(self.part), ..self }
    }

    pub(super) fn n_strata(&self) -> usize {
        self.stratum.map_or(1, n_codes)
    }

    fn n_parts(&self) -> usize {
        self.part.map_or(1, n_codes)
    }

    /// The stratum of a unit.
    pub(super) fn stratum_of(&self, unit: usize) -> u32 {
        self.stratum.map_or(0, |stratum| stratum[unit])
    }

    /// The part of its stratum that a unit is in.
    pub(super) fn part_of(&self, unit: usize) -> u32 {
        self.part.map_or(0, |part| part[unit])
    }

    /// Puts the values of all units in an order that does not depend on the one in which
    /// they arrive, nor on the names of the groups: by stratum, part and group, smaller groups first, and
    /// within these by value. Sorted in place: there are no indices. Strata without units are left out.
    pub(super) fn sort<T: Copy + Send + Sync>(
        &self,
        mut values: Vec<T>,
        key: impl Fn(&T) -> [u64; 4] + Sync + Send,
        control: &Control,
    ) -> Result<Vec<Sorted<T>>> {
        let (units, parts) = (self.group.len(), self.n_parts());
        let code_of = |unit: usize| {
            (self.stratum_of(unit) as usize * parts + self.part_of(unit) as usize) * self.n_groups
                + usize::from(self.group[unit])
        };
        let all = self.n_strata() * parts * self.n_groups;
        // Where most segments are empty, the others alone have a place, in the same order.
        let present = (all > DENSE * units).then(|| {
            let mut codes: Vec<usize> = (0..units).map(code_of).collect();
            codes.sort_unstable();
            codes.dedup();
            codes
        });
        let segment_of = |unit: usize| match &present {
            Some(codes) => codes.partition_point(|&code| code < code_of(unit)),
            None => code_of(unit),
        };
        let code = |segment: usize| present.as_ref().map_or(segment, |codes| codes[segment]);
        let mut segments = vec![Segment::default(); present.as_ref().map_or(all, Vec::len)];
        for (unit, value) in values.iter().enumerate() {
            segments[segment_of(unit)].add(key(value));
        }
        control.check()?;
        let mut order: Vec<usize> = (0..segments.len()).filter(|&segment| segments[segment].size > 0).collect();
        order.sort_by_key(|&segment| (code(segment) / self.n_groups, segments[segment]));
        let mut open = vec![0..0; segments.len()];
        let mut start = 0;
        for &segment in &order {
            open[segment] = start..start + segments[segment].size;
            start = open[segment].end;
        }
        bring_together(&mut values, &mut open, segment_of);
        let mut rest = &mut values[..];
        let mut pieces = Vec::with_capacity(order.len());
        for &segment in &order {
            let (piece, others) = rest.split_at_mut(segments[segment].size);
            pieces.push(piece);
            rest = others;
        }
        control.check()?;
        let sorted = parallel::map_each(pieces, |piece| parallel::sort_by_key(piece, &key, control));
        sorted.into_iter().collect::<Result<()>>()?;
        let stratum = |segment: usize| code(segment) / (parts * self.n_groups);
        let strata: Vec<&[usize]> = order.chunk_by(|&a, &b| stratum(a) == stratum(b)).collect();
        let mut sorted = Vec::with_capacity(strata.len());
        // From the last one on, so that what is taken can be given back.
        for of_stratum in strata.iter().rev() {
            let n = of_stratum.iter().map(|&segment| segments[segment].size).sum();
            let mut group = Vec::with_capacity(n);
            let mut part = Vec::with_capacity(if self.part.is_some() { n } else { 0 });
            for &segment in *of_stratum {
                group.resize(group.len() + segments[segment].size, (code(segment) % self.n_groups) as u16);
                if self.part.is_some() {
                    part.resize(group.len(), (code(segment) / self.n_groups % parts) as u32);
                }
            }
            let taken =
                if n == values.len() { std::mem::take(&mut values) } else { values.split_off(values.len() - n) };
            if (values.capacity() - values.len()) * size_of::<T>() > GIVEN_BACK {
                values.shrink_to_fit();
            }
            let exchange = Exchange::of(self.part.is_some().then_some(part));
            sorted.push(Sorted { values: taken, group, exchange });
        }
        sorted.reverse();
        Ok(sorted)
    }
}

/// Brings the values of each segment to its range, of which `segment_of` tells that of the value at a place.
///
/// Along the cycles of the permutation: a value goes to the next open place of its segment, and the one there is the
/// next to go. What lies at an open place has not moved yet, so that its place tells its segment.
fn bring_together<T: Copy>(values: &mut [T], open: &mut [Range<usize>], segment_of: impl Fn(usize) -> usize) {
    for segment in 0..open.len() {
        while let Some(first) = open[segment].next() {
            let (mut value, mut of_value) = (values[first], segment_of(first));
            while of_value != segment {
                // Segments have places for all of their values.
                let Some(place) = open[of_value].next() else { return };
                let of_next = segment_of(place);
                std::mem::swap(&mut values[place], &mut value);
                of_value = of_next;
            }
            values[first] = value;
        }
    }
}

fn n_codes(codes: &[u32]) -> usize {
    codes.iter().max().map_or(0, |&code| code as usize + 1)
}

/// Refuses a column that has not one value for each row or unit.
pub(super) fn one_for_each(name: &str, length: usize, n: usize, of: &str) -> Result<()> {
    if length == n {
        return Ok(());
    }
    Err(Error::argument(name, format!("of length {length}"), &format!("one value for each of {n} {of}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::order::ordered_bits;

    #[test]
    fn strata_without_units_make_no_difference() {
        let group = [0, 1, 1, 0, 1, 0, 0, 1];
        let near = [1, 1, 1, 0, 0, 0, 2, 2];
        let far = near.map(|stratum| 1_000 * stratum);
        let sorted = |stratum: &[u32]| -> Vec<(Vec<u64>, Vec<u16>)> {
            let units = Units { group: &group, n_groups: 2, stratum: Some(stratum), part: None, of_row: None };
            let sorted = units.sort((3..=10).rev().collect(), |&value| [value; 4], &Control::default()).unwrap();
            sorted.into_iter().map(|stratum| (stratum.values, stratum.group)).collect()
        };
        // By stratum, the smaller group first, then by value.
        let expected = [(vec![6, 5, 7], vec![1, 0, 0]), (vec![10, 8, 9], vec![0, 1, 1]), (vec![3, 4], vec![1, 0])];
        assert_eq!(sorted(&near), expected);
        assert_eq!(sorted(&far), expected);
    }

    #[test]
    fn values_come_to_the_ranges_of_their_segments() {
        for (n, k) in [(0, 1), (1, 1), (7, 7), (500, 3), (500, 80)] {
            let of: Vec<usize> = (0..n).map(|i| (i * i + 3 * i) % k).collect();
            let mut values: Vec<usize> = (0..n).collect();
            let mut open = vec![0..0; k];
            let mut start = 0;
            for (segment, open) in open.iter_mut().enumerate() {
                *open = start..start + of.iter().filter(|&&one| one == segment).count();
                start = open.end;
            }
            let ranges = open.clone();
            bring_together(&mut values, &mut open, |place| of[place]);
            for (segment, range) in ranges.into_iter().enumerate() {
                assert!(values[range].iter().all(|&value| of[value] == segment), "{n} {k} {segment}");
            }
            values.sort_unstable();
            assert!(values.into_iter().eq(0..n));
        }
    }

    /// As the definition says, with many strata of different sizes, and in the memory of the values.
    #[test]
    fn units_are_sorted_by_stratum_part_and_value() {
        let n = 300_000;
        let stratum: Vec<u32> = (0..n as u32).map(|i| (i * 7 + i / 11) % 40 * (i % 2)).collect();
        let part: Vec<u32> = (0..n as u32).map(|i| i / 3 % 2).collect();
        let group: Vec<u16> = (0..n).map(|i| (i % 5 % 2) as u16).collect();
        let values: Vec<f64> = (0..n).map(|i| ((i * 7_919) % 1_009) as f64 - 500.0).collect();
        let units = Units { group: &group, n_groups: 2, stratum: Some(&stratum), part: Some(&part), of_row: None };
        let key = |value: &f64| [ordered_bits(*value), 0, 0, 0];
        let sorted = units.sort(values.clone(), key, &Control::default()).unwrap();
        let mut kinds: Vec<(u32, u32, u16)> = (0..n).map(|i| (stratum[i], part[i], group[i])).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let strata: Vec<&[(u32, u32, u16)]> = kinds.chunk_by(|a, b| a.0 == b.0).collect();
        assert_eq!(sorted.len(), strata.len());
        for (found, kinds) in sorted.iter().zip(strata) {
            let Exchange::Parts(parts) = &found.exchange else { panic!("no parts") };
            assert!(parts.is_sorted() && found.values.len() == found.group.len());
            let mut start = 0;
            let mut seen = Vec::new();
            while start < found.values.len() {
                let kind = (kinds[0].0, parts[start], found.group[start]);
                let mut expected: Vec<f64> =
                    (0..n).filter(|&i| (stratum[i], part[i], group[i]) == kind).map(|i| values[i]).collect();
                expected.sort_by(f64::total_cmp);
                let end = start + expected.len();
                assert_eq!(found.values[start..end], expected);
                assert!(parts[start..end].iter().all(|&one| one == kind.1));
                assert!(found.group[start..end].iter().all(|&one| one == kind.2));
                seen.push(kind);
                start = end;
            }
            seen.sort_unstable();
            assert_eq!(seen, kinds);
        }
    }
}
