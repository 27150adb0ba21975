//! Sums of the AUC over two groups: the usual case, so compiled for itself.
//!
//! What one group has is what the other has not, and counts are whole numbers: half the work of
//! [`Auc`](super::Auc) on two groups, with the same sums.

use crate::metrics::row_sums::{LaneMask, Lanes};
use crate::simd::LANES;

/// Sums of the AUC over two groups, in cache lines of their own: a register is as wide as one.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct PairSums {
    /// Negatives and positives so far, in both groups.
    labels: [u32; 2],
    /// The same in the first group.
    first_negatives: [u32; LANES],
    first_positives: [u32; LANES],
    /// By group, as in [`Auc`](super::Auc).
    x: [Lanes; 2],
    x_squares: [Lanes; 2],
    y_squares: [Lanes; 2],
}

/// Rows of the score that is not over yet: negatives and positives, in both groups and the first.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct OpenPair {
    labels: [u32; 2],
    first: [[u32; LANES]; 2],
}

/// Rows of the other label below, by group; 0 in the group that a row is not in.
#[inline(always)]
fn below(in_first: &[u32; LANES], in_both: u32, first: &LaneMask) -> [Lanes; 2] {
    let mut below = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        // Signed: there are conversions of these to floats in all instruction sets.
        below[0][lane] = f64::from((in_first[lane] & first[lane]) as i32);
        below[1][lane] = f64::from(((in_both - in_first[lane]) & !first[lane]) as i32);
    }
    below
}

#[inline(always)]
fn add_to(sums: &mut [Lanes; 2], terms: &[Lanes; 2]) {
    for (sums, terms) in sums.iter_mut().zip(terms) {
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += term;
        }
    }
}

#[inline(always)]
fn add_squares(sums: &mut [Lanes; 2], terms: &[Lanes; 2]) {
    for (sums, terms) in sums.iter_mut().zip(terms) {
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += term * term;
        }
    }
}

impl PairSums {
    /// Adds a row whose score no other row has.
    #[inline(always)]
    pub(crate) fn add(&mut self, positive: bool, first: &LaneMask) {
        if positive {
            let below = below(&self.first_negatives, self.labels[0], first);
            add_to(&mut self.x, &below);
            add_squares(&mut self.x_squares, &below);
            for (count, first) in self.first_positives.iter_mut().zip(first) {
                *count += first & 1;
            }
            self.labels[1] += 1;
        } else {
            let below = below(&self.first_positives, self.labels[1], first);
            add_squares(&mut self.y_squares, &below);
            for (count, first) in self.first_negatives.iter_mut().zip(first) {
                *count += first & 1;
            }
            self.labels[0] += 1;
        }
    }

    /// Adds all rows of one score.
    #[inline(never)]
    pub(crate) fn add_tied(&mut self, open: &OpenPair) {
        for lane in 0..LANES {
            let before_first = [self.first_negatives[lane], self.first_positives[lane]];
            let in_first = [open.first[0][lane], open.first[1][lane]];
            let before_second = [self.labels[0] - before_first[0], self.labels[1] - before_first[1]];
            let in_second = [open.labels[0] - in_first[0], open.labels[1] - in_first[1]];
            for (group, (before, here)) in
                [(before_first, in_first), (before_second, in_second)].into_iter().enumerate()
            {
                let [negatives, positives] = here.map(f64::from);
                let below = f64::from(before[0]) + 0.5 * negatives;
                let positives_below = f64::from(before[1]) + 0.5 * positives;
                self.x[group][lane] += positives * below;
                self.x_squares[group][lane] += positives * below * below;
                self.y_squares[group][lane] += negatives * positives_below * positives_below;
            }
            self.first_negatives[lane] += in_first[0];
            self.first_positives[lane] += in_first[1];
        }
        self.labels = [self.labels[0] + open.labels[0], self.labels[1] + open.labels[1]];
    }

    /// The sums of [`Auc`](super::Auc) of both groups.
    pub(crate) fn of_groups(&self) -> [[Lanes; 5]; 2] {
        let first = [self.first_negatives, self.first_positives].map(|lanes| lanes.map(f64::from));
        let rest = |label: usize| first[label].map(|count| f64::from(self.labels[label]) - count);
        [
            [first[0], first[1], self.x[0], self.x_squares[0], self.y_squares[0]],
            [rest(0), rest(1), self.x[1], self.x_squares[1], self.y_squares[1]],
        ]
    }
}

impl OpenPair {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.labels == [0; 2]
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, positive: bool, first: &LaneMask) {
        let label = usize::from(positive);
        self.labels[label] += 1;
        for (count, first) in self.first[label].iter_mut().zip(first) {
            *count += first & 1;
        }
    }
}
