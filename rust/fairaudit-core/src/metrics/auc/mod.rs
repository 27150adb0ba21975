//! Area under the ROC curve with `DeLong`'s variance (`DeLong`, `DeLong` and Clarke-Pearson, Biometrics 44, 1988),
//! stated here for all files of this folder.
//!
//! With `x_i` = negatives below the positive row i, `y_j` = positives below the negative row j, ties 1/2 in both, and n+
//! and n- rows of either label:
//!
//! ```text
//! theta = sum_i x_i / (n+ n-),    v = var(x / n-) / n+ + var(y / n+) / n-,    both with ddof 1.
//! ```
//!
//! Weighted rows, with W+ and W- the sums of their weights, b and c the weight of the other label below, ties 1/2:
//!
//! ```text
//! theta = sum_{i positive} w_i b_i / (W+ W-),    v = sum_i (w_i psi_i)^2,    psi_i = d theta / d w_i:
//! (b_i / W- - theta) / W+ of a positive row, ((W+ - c_i) / W+ - theta) / W- of a negative one.
//! ```
//!
//! Rows that move together in clusters: `v = sum_c (sum_{i in c} w_i psi_i)^2`.
//!
//! All loops go over the rows in ascending order of the score, once. They are kept apart because they are fast for
//! different reasons: `ranks` has counts by value of the score; [`Auc`] rows, as observed or in sixteen replicates
//! with any number of groups; `groups` the same in whole numbers, for replicates of rows that all count the same; `pair`
//! two groups, where one has what the other has not; `weighted` weights; `clusters` two sums per cluster.

mod clusters;
mod groups;
mod pair;
mod weighted;

pub(crate) use clusters::{ClusteredAuc, Codes, Drawn, Members, Observed, Pairs};
pub(crate) use groups::{GroupSums, OpenGroup};
pub(crate) use pair::{OpenPair, PairSums};
pub use weighted::WeightedAuc;

use super::Evaluation;
use super::row_sums::{Lanes, RowSums};
use crate::error::Result;
use crate::numerics::order::{Order, PIECE};
use crate::parallel::Control;
use crate::simd::LANES;

/// AUC of the classes of [`Metric::Ranks`](super::Metric::Ranks), ties 1/2.
pub(super) fn ranks(counts: &[f64]) -> Evaluation {
    let [mut negatives, mut positives, mut x, mut x_squares, mut y_squares] = [0.0; 5];
    for level in counts.chunks_exact(2) {
        let below = negatives + 0.5 * level[0];
        let positives_below = positives + 0.5 * level[1];
        x += level[1] * below;
        x_squares += level[1] * below * below;
        y_squares += level[0] * positives_below * positives_below;
        negatives += level[0];
        positives += level[1];
    }
    delong([negatives, positives, x, x_squares, y_squares])
}

/// theta and v from n-, n+, sum x, sum x^2, sum y^2.
fn delong([negatives, positives, x, x_squares, y_squares]: [f64; 5]) -> Evaluation {
    let pairs = negatives * positives;
    if pairs == 0.0 {
        return Evaluation::UNDEFINED;
    }
    let value = x / pairs;
    let y = pairs - x;
    // Sums of squares about the mean; what is left of large ones by rounding is none.
    let about = |squares: f64, sum: f64, n: f64| {
        let rest = squares - sum * sum / n;
        if rest <= 1e-12 * squares { 0.0 } else { rest }
    };
    let variance = about(x_squares, x, positives) / (negatives * negatives * (positives - 1.0) * positives)
        + about(y_squares, y, negatives) / (positives * positives * (negatives - 1.0) * negatives);
    // A single row of a kind leaves its part 0 / 0: the variance cannot be measured.
    Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
}

/// The area of rows in ascending order of the score.
#[derive(Debug, Clone)]
pub struct Auc {
    /// The label of each row, and whether it is tied.
    pub flags: Vec<RowFlags>,
}

impl Auc {
    /// The AUC of every group as observed: the sums of [`RowSums`] without lanes, which are of no
    /// use here.
    pub(crate) fn observed(&self, group: &[u16], n_groups: usize) -> Vec<Evaluation> {
        // negatives, positives, x, x^2, y^2; then negatives and positives of the open score.
        let mut sums = vec![[0.0; 5]; n_groups];
        let mut open = vec![[0.0; 2]; n_groups];
        for (flags, &g) in self.flags.iter().zip(group) {
            open[usize::from(g)][usize::from(flags.is_positive())] += 1.0;
            if flags.is_tied_with_next() {
                continue;
            }
            for ([negatives, positives, x, x_squares, y_squares], open) in sums.iter_mut().zip(&mut open) {
                let [in_negatives, in_positives] = *open;
                let below = *negatives + 0.5 * in_negatives;
                let positives_below = *positives + 0.5 * in_positives;
                *x += in_positives * below;
                *x_squares += in_positives * below * below;
                *y_squares += in_negatives * positives_below * positives_below;
                *negatives += in_negatives;
                *positives += in_positives;
                *open = [0.0; 2];
            }
        }
        sums.into_iter().map(delong).collect()
    }
}

/// The label of a row, and whether it has the score of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFlags(u8);

impl RowFlags {
    /// From both.
    pub fn new(positive: bool, tied_with_next: bool) -> Self {
        Self(u8::from(positive) | u8::from(tied_with_next) << 1)
    }

    /// Of rows in ascending order of the score.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub(crate) fn of(score: &[f64], positive: &[u8], order: &Order, control: &Control) -> Result<Vec<Self>> {
        let mut flags = order.of_each(|row| Self::new(positive[row] != 0, false), control)?;
        let mut last = f64::NAN;
        for (place, row) in order.rows().enumerate() {
            if place % PIECE == 0 {
                control.check()?;
            }
            if place > 0 && score[row] == last {
                flags[place - 1] = flags[place - 1].tied();
            }
            last = score[row];
        }
        Ok(flags)
    }

    /// The same of a row that has the score of the next one.
    pub(crate) fn tied(self) -> Self {
        Self::new(self.is_positive(), true)
    }

    /// Whether the label is positive.
    #[inline(always)]
    pub fn is_positive(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the row has the score of the next one.
    #[inline(always)]
    pub fn is_tied_with_next(self) -> bool {
        self.0 & 2 == 2
    }
}

/// Members of one score that were seen so far, by group: negatives and positives.
#[derive(Debug, Default)]
pub(crate) struct OpenTies {
    open: Vec<[Lanes; 2]>,
}

/// Sums: negatives, positives, then over the rows of the group: x, x^2 over positives (x:
/// negatives below, ties 1/2), y^2 over negatives (y: positives below, ties 1/2).
impl RowSums<5> for Auc {
    type Open = OpenTies;
    const ADDITIVE: bool = false;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 5]], open: &mut OpenTies) {
        let (positive, tied) = (self.flags[row].is_positive(), self.flags[row].is_tied_with_next());
        if tied || !open.open.is_empty() {
            open.add(positive, tied, member, sums);
        } else if positive {
            for (member, [negatives, positives, x, x_squares, _]) in member.iter().zip(sums) {
                for lane in 0..LANES {
                    let below = member[lane] * negatives[lane];
                    x[lane] += below;
                    x_squares[lane] += below * negatives[lane];
                    positives[lane] += member[lane];
                }
            }
        } else {
            for (member, [negatives, positives, _, _, y_squares]) in member.iter().zip(sums) {
                for lane in 0..LANES {
                    let below = member[lane] * positives[lane];
                    y_squares[lane] += below * positives[lane];
                    negatives[lane] += member[lane];
                }
            }
        }
    }

    fn evaluate(&self, sums: [f64; 5]) -> Evaluation {
        delong(sums)
    }

    fn size(&self, [negatives, positives, ..]: [f64; 5]) -> f64 {
        negatives + positives
    }

    /// The variance has its own n - 1, of either label.
    fn units(&self, _: [f64; 5], members: f64) -> (f64, bool) {
        (members, true)
    }
}

impl OpenTies {
    #[inline(always)]
    fn add(&mut self, positive: bool, tied_with_next: bool, member: &[Lanes], sums: &mut [[Lanes; 5]]) {
        self.open.resize(member.len(), [[0.0; LANES]; 2]);
        for (open, member) in self.open.iter_mut().zip(member) {
            for (count, m) in open[usize::from(positive)].iter_mut().zip(member) {
                *count += m;
            }
        }
        if tied_with_next {
            return;
        }
        for (open, [negatives, positives, x, x_squares, y_squares]) in self.open.iter().zip(sums) {
            for lane in 0..LANES {
                let [in_negatives, in_positives] = [open[0][lane], open[1][lane]];
                let below = negatives[lane] + 0.5 * in_negatives;
                let positives_below = positives[lane] + 0.5 * in_positives;
                x[lane] += in_positives * below;
                x_squares[lane] += in_positives * below * below;
                y_squares[lane] += in_negatives * positives_below * positives_below;
                negatives[lane] += in_negatives;
                positives[lane] += in_positives;
            }
        }
        self.open.clear();
    }
}
