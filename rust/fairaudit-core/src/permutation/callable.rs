//! The `callable` engine: any function of the rows of a group.
//!
//! The core makes the replicates: which rows belong to which group, and which rows a bootstrap
//! sample of a group has. Who evaluates the function is the caller's choice; the numbers of a
//! replicate depend on its index alone.

use super::statistic::{difference, omnibus};
use super::units::one_for_each;
use super::{Studentize, Units};
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::Evaluation;
use crate::parallel::{Control, each_replicate};
use crate::random::{Domain, RowGenerator};

/// Rows with groups that are exchanged within strata, by row or by cluster.
#[derive(Debug, Clone)]
pub struct Assignments {
    /// Group of each unit, in the order of the strata.
    group: Vec<u32>,
    /// Ends of the strata.
    ends: Vec<usize>,
    /// Place of each row's unit in that order.
    place: Vec<u32>,
    /// Rows by unit, and where those of each unit start, when units are clusters.
    clusters: Option<(Vec<u32>, Vec<usize>)>,
    n_groups: usize,
}

impl Assignments {
    /// The assignments of some units.
    ///
    /// # Errors
    /// [`Error::Argument`] when lengths or codes do not fit.
    pub fn new(units: Units<'_>) -> Result<Self> {
        units.check_codes()?;
        let Units { group, n_groups, of_row: unit, .. } = units;
        let stratum_of = |unit: u32| (units.stratum_of(unit as usize), units.part_of(unit as usize));
        let n_units = group.len();
        let mut order: Vec<u32> = (0..n_units as u32).collect();
        order.sort_by_key(|&unit| stratum_of(unit));
        let mut ends: Vec<usize> = (1..n_units).filter(|&i| stratum_of(order[i - 1]) != stratum_of(order[i])).collect();
        ends.push(n_units);
        let mut place = vec![0u32; n_units];
        for (i, &unit) in order.iter().enumerate() {
            place[unit as usize] = i as u32;
        }
        let clusters = unit.map(|unit| {
            let mut starts = vec![0usize; n_units + 1];
            for &code in unit {
                starts[place[code as usize] as usize + 1] += 1;
            }
            for i in 0..n_units {
                starts[i + 1] += starts[i];
            }
            let mut next = starts.clone();
            let mut rows = vec![0u32; unit.len()];
            for (row, &code) in unit.iter().enumerate() {
                let next = &mut next[place[code as usize] as usize];
                rows[*next] = row as u32;
                *next += 1;
            }
            (rows, starts)
        });
        Ok(Self {
            clusters,
            group: order.iter().map(|&unit| u32::from(group[unit as usize])).collect(),
            ends,
            place: unit.map_or_else(|| place.clone(), |unit| unit.iter().map(|&code| place[code as usize]).collect()),
            n_groups,
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.place.len()
    }

    /// Number of groups.
    pub fn n_groups(&self) -> usize {
        self.n_groups
    }

    /// The group of every row in a replicate of `draws`, by its index; none: as observed.
    pub fn groups(&self, draws: &Draws, replicate: Option<u64>) -> Vec<u32> {
        let mut group = self.group.clone();
        if let Some(replicate) = replicate {
            let mut generator = RowGenerator::new(draws.seed, Domain::Permutation, draws.series, replicate, 0);
            let mut start = 0;
            for &end in &self.ends {
                generator.shuffle(&mut group[start..end]);
                start = end;
            }
        }
        self.place.iter().map(|&place| group[place as usize]).collect()
    }

    /// The statistic from the value of every group and its bootstrap values, by sample and group
    /// (fastest). Two groups: equation (1), `v = sum_b (T*_b - T)^2 / n_b`; more: the variance of each
    /// group about its value. Without samples nothing is divided by.
    ///
    /// # Errors
    /// [`Error::Argument`] when there is not a value for each group.
    pub fn statistic(&self, values: &[f64], samples: &[f64]) -> Result<f64> {
        one_for_each("values", values.len(), self.n_groups, "groups")?;
        if !samples.len().is_multiple_of(self.n_groups) {
            let accepted = format!("samples of {} groups", self.n_groups);
            return Err(Error::argument("samples", format!("of length {}", samples.len()), &accepted));
        }
        Ok(self.statistic_of(values, samples))
    }

    fn statistic_of(&self, values: &[f64], samples: &[f64]) -> f64 {
        let studentize = if samples.is_empty() { Studentize::None } else { Studentize::Unpooled };
        let n = (samples.len() / self.n_groups) as f64;
        let evaluation =
            |value: f64, variance: f64| Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN };
        if values.iter().chain(samples).any(|value| value.is_nan()) {
            return f64::NAN;
        }
        if let [first, second] = values {
            let squares = samples.chunks(2).map(|sample| ((sample[0] - sample[1]) - (first - second)).powi(2));
            let variance = squares.sum::<f64>() / n;
            return difference(&evaluation(*first, variance), &evaluation(*second, 0.0), 0.0, studentize);
        }
        let of_group = |(g, &value): (usize, &f64)| {
            let samples = samples.iter().skip(g).step_by(self.n_groups);
            evaluation(value, samples.map(|sample| (sample - value).powi(2)).sum::<f64>() / n)
        };
        let groups: Vec<Evaluation> = values.iter().enumerate().map(of_group).collect();
        omnibus(&groups, &vec![0.0; self.n_groups], studentize)
    }

    /// The statistic of some permutations of a function that runs without Python: it gets the
    /// columns of the rows of a group. `n_samples` bootstrap samples each, 0 without studentizing.
    ///
    /// # Errors
    /// [`Error::Argument`] when a column has not a value for each row, [`Error::Cancelled`].
    pub fn null_distribution(
        &self,
        function: impl Fn(&[Vec<f64>]) -> f64 + Sync,
        columns: &[&[f64]],
        n_samples: usize,
        draws: &Draws,
        control: &Control,
    ) -> Result<Vec<f64>> {
        for column in columns {
            one_for_each("columns", column.len(), self.n_rows(), "rows")?;
        }
        let mut null = draws.zeros();
        each_replicate(&mut null, control, Vec::new, |offset, drawn: &mut Vec<Vec<f64>>| {
            let replicate = draws.replicates.start + offset;
            self.evaluate(&function, columns, n_samples, draws, replicate, drawn)
        })?;
        Ok(null)
    }

    fn evaluate(
        &self,
        function: &impl Fn(&[Vec<f64>]) -> f64,
        columns: &[&[f64]],
        n_samples: usize,
        draws: &Draws,
        replicate: u64,
        drawn: &mut Vec<Vec<f64>>,
    ) -> f64 {
        let group = self.groups(draws, Some(replicate));
        let mut values = vec![0.0; self.n_groups];
        let mut samples = vec![0.0; n_samples * self.n_groups];
        drawn.resize(columns.len(), Vec::new());
        for g in 0..self.n_groups {
            let mut bootstrap = self.samples_of(&group, g as u32, draws, replicate);
            take(columns, &bootstrap.all_rows(), drawn);
            values[g] = function(drawn);
            for sample in 0..n_samples {
                take(columns, &bootstrap.next_rows(), drawn);
                samples[sample * self.n_groups + g] = function(drawn);
            }
        }
        self.statistic_of(&values, &samples)
    }
}

fn take(columns: &[&[f64]], rows: &[u32], drawn: &mut [Vec<f64>]) {
    for (column, drawn) in columns.iter().zip(drawn) {
        drawn.clear();
        drawn.extend(rows.iter().map(|&row| column[row as usize]));
    }
}

/// The replicate that stands for the observed groups in the bootstrap.
pub const OBSERVED: u64 = u64::MAX;

/// Bootstrap samples of a group, one after the other.
pub struct Samples<'a> {
    assignments: &'a Assignments,
    /// Rows or clusters of the group.
    members: Vec<u32>,
    generator: RowGenerator,
}

impl Assignments {
    /// Bootstrap samples of the rows of `g` in a replicate of `draws`, `group` being the group of every row.
    ///
    /// # Errors
    /// [`Error::Argument`] when `group` has not a code for each row.
    pub fn samples(&self, group: &[u32], g: u32, draws: &Draws, replicate: u64) -> Result<Samples<'_>> {
        one_for_each("groups", group.len(), self.n_rows(), "rows")?;
        Ok(self.samples_of(group, g, draws, replicate))
    }

    fn samples_of(&self, group: &[u32], g: u32, draws: &Draws, replicate: u64) -> Samples<'_> {
        let members = match &self.clusters {
            None => (0..group.len() as u32).filter(|&row| group[row as usize] == g).collect(),
            Some((rows, starts)) => {
                let is_member = |&unit: &u32| {
                    let (start, end) = (starts[unit as usize], starts[unit as usize + 1]);
                    start < end && group[rows[start] as usize] == g
                };
                (0..self.group.len() as u32).filter(is_member).collect()
            }
        };
        let generator = RowGenerator::new(draws.seed, Domain::Bootstrap, draws.series, replicate, u64::from(g));
        Samples { assignments: self, members, generator }
    }
}

impl Samples<'_> {
    /// All rows of the group, in order.
    pub fn all_rows(&self) -> Vec<u32> {
        let mut rows = self.rows_of(self.members.iter().copied());
        rows.sort_unstable();
        rows
    }

    /// The rows of the next sample: as many rows, or clusters of rows, as the group has.
    pub fn next_rows(&mut self) -> Vec<u32> {
        let size = self.members.len() as u32;
        let drawn: Vec<u32> = (0..size).map(|_| self.members[self.generator.below(size) as usize]).collect();
        self.rows_of(drawn.into_iter())
    }

    fn rows_of(&self, members: impl Iterator<Item = u32>) -> Vec<u32> {
        match &self.assignments.clusters {
            None => members.collect(),
            Some((rows, starts)) => {
                members.flat_map(|unit| &rows[starts[unit as usize]..starts[unit as usize + 1]]).copied().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: Draws = Draws { replicates: 0..50, seed: 1, series: 0 };

    #[test]
    fn clusters_move_together_within_strata() {
        let (group, stratum) = ([0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1]);
        let unit = [0, 0, 1, 2, 2, 2, 3, 4, 5, 5];
        let units = Units { group: &group, n_groups: 2, stratum: Some(&stratum), part: None, of_row: Some(&unit) };
        let test = Assignments::new(units).unwrap();
        let observed: Vec<u32> = unit.iter().map(|&unit| u32::from(group[unit as usize])).collect();
        assert_eq!(test.groups(&DRAWS, None), observed);
        let mut moved = false;
        for replicate in 0..50 {
            let drawn = test.groups(&DRAWS, Some(replicate));
            assert!(drawn[0] == drawn[1] && drawn[3] == drawn[4] && drawn[8] == drawn[9]);
            assert_eq!(drawn[0] + drawn[2] + drawn[3], 1);
            assert_eq!(drawn[6] + drawn[7] + drawn[8], 2);
            moved |= drawn != observed;
        }
        assert!(moved);
    }

    #[test]
    fn samples_are_of_whole_clusters() {
        let unit = [0, 0, 1, 2, 2, 2];
        let units = Units { group: &[0, 1, 0], n_groups: 2, stratum: None, part: None, of_row: Some(&unit) };
        let test = Assignments::new(units).unwrap();
        let group = test.groups(&DRAWS, None);
        let mut samples = test.samples(&group, 0, &DRAWS, OBSERVED).unwrap();
        assert_eq!(samples.all_rows(), [0, 1, 3, 4, 5]);
        let sizes: Vec<usize> = (0..40).map(|_| samples.next_rows().len()).collect();
        assert!(sizes.contains(&4) && sizes.contains(&5) && sizes.contains(&6));
        assert!(samples.next_rows().iter().all(|row| [0, 1, 3, 4, 5].contains(row)));
    }

    #[test]
    fn equation_one() {
        let units = Units { group: &[0, 1], n_groups: 2, stratum: None, part: None, of_row: None };
        let test = Assignments::new(units).unwrap();
        let statistic = test.statistic(&[3.0, 1.0], &[3.5, 1.0, 2.0, 1.0, 3.0, 1.5]).unwrap();
        let variance = (0.25 + 1.0 + 0.25) / 3.0;
        assert!((statistic - 2.0 / f64::sqrt(variance)).abs() < 1e-14);
        assert_eq!(test.statistic(&[3.0, 1.0], &[]).unwrap(), 2.0);
    }
}
