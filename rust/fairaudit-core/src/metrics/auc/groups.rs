//! Sums of the AUC over several groups in counts: the general form of [`pair`](super::pair).
//!
//! Counts are whole numbers and members are masks, which take half the room of the floats of [`Auc`](super::Auc); the
//! sums are the same to the last bit.

use crate::metrics::row_sums::{LaneMask, Lanes};
use crate::simd::LANES;

/// Sums of the AUC over one of several groups, in cache lines of their own.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct GroupSums {
    /// Negatives and positives so far.
    labels: [[u32; LANES]; 2],
    /// As in [`Auc`](super::Auc).
    x: Lanes,
    x_squares: Lanes,
    y_squares: Lanes,
}

/// Rows of the score that is not over yet: negatives and positives of one group.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct OpenGroup {
    labels: [[u32; LANES]; 2],
}

/// Counts members. Here and below copies stay in registers, which counts behind a reference do not.
#[inline(always)]
fn count(counts: &mut [u32; LANES], member: &LaneMask) {
    let (mut all, member) = (*counts, *member);
    for lane in 0..LANES {
        // All bits are -1.
        all[lane] = all[lane].wrapping_sub(member[lane]);
    }
    *counts = all;
}

/// Rows of the other label below a member; 0 where the row is none.
#[inline(always)]
fn below(counts: &[u32; LANES], member: &LaneMask) -> Lanes {
    let (counts, member, mut below) = (*counts, *member, [0.0; LANES]);
    for lane in 0..LANES {
        // Signed: there are conversions of these to floats in all instruction sets.
        below[lane] = f64::from((counts[lane] & member[lane]) as i32);
    }
    below
}

#[inline(always)]
fn add_to(sums: &mut Lanes, terms: &Lanes) {
    let mut all = *sums;
    for lane in 0..LANES {
        all[lane] += terms[lane];
    }
    *sums = all;
}

#[inline(always)]
fn add_squares(sums: &mut Lanes, terms: &Lanes) {
    let mut all = *sums;
    for lane in 0..LANES {
        all[lane] += terms[lane] * terms[lane];
    }
    *sums = all;
}

impl GroupSums {
    /// Adds a row whose score no other row has, where it is a member.
    #[inline(always)]
    pub(crate) fn add(&mut self, positive: bool, member: &LaneMask) {
        if positive {
            let below = below(&self.labels[0], member);
            add_to(&mut self.x, &below);
            add_squares(&mut self.x_squares, &below);
            count(&mut self.labels[1], member);
        } else {
            let below = below(&self.labels[1], member);
            add_squares(&mut self.y_squares, &below);
            count(&mut self.labels[0], member);
        }
    }

    /// Adds all rows of one score.
    #[inline(always)]
    pub(crate) fn add_tied(&mut self, open: &OpenGroup) {
        for lane in 0..LANES {
            let [negatives, positives] = [open.labels[0][lane], open.labels[1][lane]].map(f64::from);
            let below = f64::from(self.labels[0][lane]) + 0.5 * negatives;
            let positives_below = f64::from(self.labels[1][lane]) + 0.5 * positives;
            self.x[lane] += positives * below;
            self.x_squares[lane] += positives * below * below;
            self.y_squares[lane] += negatives * positives_below * positives_below;
            self.labels[0][lane] += open.labels[0][lane];
            self.labels[1][lane] += open.labels[1][lane];
        }
    }

    /// The sums of [`Auc`](super::Auc).
    pub(crate) fn sums(&self) -> [Lanes; 5] {
        let [negatives, positives] = self.labels.map(|counts| counts.map(f64::from));
        [negatives, positives, self.x, self.x_squares, self.y_squares]
    }
}

impl OpenGroup {
    /// Adds a row where it is a member.
    #[inline(always)]
    pub(crate) fn add(&mut self, positive: bool, member: &LaneMask) {
        count(&mut self.labels[usize::from(positive)], member);
    }
}
