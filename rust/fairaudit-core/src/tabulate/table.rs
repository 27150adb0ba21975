//! Tables of counts, and what is done to their strata and classes.

use std::ops::Range;

use crate::error::{Error, Result};

/// Counts by stratum, group and class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    n_groups: usize,
    n_classes: usize,
    counts: Vec<u64>,
}

impl Table {
    /// A table from counts in the order stratum, group, class (class fastest).
    ///
    /// # Errors
    /// [`Error::Argument`] when the shape does not fit or there are fewer than two groups.
    pub fn new(counts: Vec<u64>, n_groups: usize, n_classes: usize) -> Result<Self> {
        if n_groups < 2 || n_classes == 0 || !counts.len().is_multiple_of(n_groups * n_classes) {
            return Err(Error::argument(
                "counts",
                format!("of length {} for {n_groups} groups and {n_classes} classes", counts.len()),
                "strata x groups x classes with at least 2 groups",
            ));
        }
        let rows: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        if rows > 1 << 53 {
            return Err(Error::argument("counts", format!("{rows} rows in all"), "at most 2^53 rows"));
        }
        Ok(Self { n_groups, n_classes, counts })
    }

    /// Number of groups.
    #[inline]
    pub fn n_groups(&self) -> usize {
        self.n_groups
    }

    /// Number of classes.
    #[inline]
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The counts of each stratum, by group and class (fastest).
    pub(crate) fn strata(&self) -> impl Iterator<Item = &[u64]> {
        self.counts.chunks(self.n_groups * self.n_classes)
    }

    /// Rows of each class in a stratum.
    pub(crate) fn class_totals(&self, stratum: &[u64]) -> Vec<u64> {
        (0..self.n_classes).map(|k| stratum.iter().skip(k).step_by(self.n_classes).sum()).collect()
    }

    /// Rows of each group in a stratum.
    pub(crate) fn group_sizes(&self, stratum: &[u64]) -> Vec<u64> {
        stratum.chunks(self.n_classes).map(|row| row.iter().sum()).collect()
    }

    /// Splits every stratum into one stratum per part of the classes.
    pub(crate) fn split(&self, part_of_class: &[u32]) -> Self {
        let mut parts = part_of_class.to_vec();
        parts.sort_unstable();
        parts.dedup();
        let mut counts = Vec::new();
        for stratum in self.strata() {
            for &part in &parts {
                counts.extend(
                    stratum.iter().enumerate().map(
                        |(at, &count)| {
                            if part_of_class[at % self.n_classes] == part { count } else { 0 }
                        },
                    ),
                );
            }
        }
        Self { counts, ..*self }
    }

    /// Adds classes that share a new class.
    pub(crate) fn merge(&self, new_class: &[usize], n_classes: usize) -> Self {
        let mut counts = Vec::with_capacity(self.counts.len() / self.n_classes * n_classes);
        for row in self.counts.chunks(self.n_classes) {
            let start = counts.len();
            counts.resize(start + n_classes, 0);
            for (&count, &class) in row.iter().zip(new_class) {
                counts[start + class] += count;
            }
        }
        Self { n_groups: self.n_groups, n_classes, counts }
    }

    /// Leaves out strata in which only classes occur that `matters` denies; with the numbers of those that are kept.
    pub(crate) fn keep_strata(&self, matters: &[bool]) -> (Self, Vec<usize>) {
        let counts = |stratum: &[u64]| stratum.iter().enumerate().any(|(at, &n)| n > 0 && matters[at % self.n_classes]);
        let kept: Vec<usize> =
            self.strata().enumerate().filter(|(_, stratum)| counts(stratum)).map(|(i, _)| i).collect();
        let table = self.some_strata(|stratum| kept.binary_search(&stratum).is_ok());
        (table, kept)
    }

    /// Only some strata, by number.
    pub(crate) fn some_strata(&self, wanted: impl Fn(usize) -> bool) -> Self {
        let strata = self.strata().enumerate().filter(|&(i, _)| wanted(i));
        Self { counts: strata.flat_map(|(_, stratum)| stratum.iter().copied()).collect(), ..*self }
    }

    /// The strata of a range of numbers.
    pub(crate) fn range(&self, strata: Range<usize>) -> Self {
        let width = self.n_groups * self.n_classes;
        Self { counts: self.counts[strata.start * width..strata.end * width].to_vec(), ..*self }
    }

    /// Mean of the margin over all permutations within strata.
    pub(crate) fn mean_margin(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.n_groups * self.n_classes];
        for stratum in self.strata() {
            let totals = self.class_totals(stratum);
            let rows = totals.iter().sum::<u64>().max(1) as f64;
            for (row, size) in mean.chunks_mut(self.n_classes).zip(self.group_sizes(stratum)) {
                for (sum, &total) in row.iter_mut().zip(&totals) {
                    *sum += size as f64 * (total as f64 / rows);
                }
            }
        }
        mean
    }

    /// Class counts of every group, summed over strata.
    pub(crate) fn margin(&self) -> Vec<f64> {
        let mut margin = vec![0.0; self.n_groups * self.n_classes];
        for stratum in self.strata() {
            margin.iter_mut().zip(stratum).for_each(|(sum, &count)| *sum += count as f64);
        }
        margin
    }
}
