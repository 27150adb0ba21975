//! The area of weighted rows.

use super::RowFlags;
use crate::metrics::Evaluation;
use crate::metrics::row_sums::{Lanes, RowSums, effective};
use crate::simd::LANES;

/// The area of weighted rows in ascending order of the score.
#[derive(Debug, Clone)]
pub struct WeightedAuc {
    /// The label of each row, and whether it is tied.
    pub flags: Vec<RowFlags>,
    /// The weight of each row, not below 0.
    pub weight: Vec<f64>,
}

/// Sums over one score that were seen so far, by group and label: w and w^2.
#[derive(Debug, Default)]
pub(crate) struct OpenWeights {
    open: Vec<[[Lanes; 2]; 2]>,
}

/// Sums: W-, W+, then over positives w b, w^2, w^2 b, w^2 b^2 (b: weight of the negatives below,
/// ties 1/2), over negatives w^2, w^2 c, w^2 c^2 (c: weight of the positives below).
impl RowSums<9> for WeightedAuc {
    type Open = OpenWeights;
    const ADDITIVE: bool = false;

    #[inline(always)]
    fn add(&self, row: usize, member: &[Lanes], sums: &mut [[Lanes; 9]], open: &mut OpenWeights) {
        let weight = self.weight[row];
        open.open.resize(member.len(), [[[0.0; LANES]; 2]; 2]);
        for (open, member) in open.open.iter_mut().zip(member) {
            let [first, second] = &mut open[usize::from(self.flags[row].is_positive())];
            for lane in 0..LANES {
                let share = member[lane] * weight;
                first[lane] += share;
                second[lane] += share * weight;
            }
        }
        if self.flags[row].is_tied_with_next() {
            return;
        }
        for (open, sums) in open.open.iter_mut().zip(sums) {
            for lane in 0..LANES {
                let [[negative, negative_squares], [positive, positive_squares]] =
                    open.map(|label| label.map(|lanes| lanes[lane]));
                let below = sums[0][lane] + 0.5 * negative;
                let positives_below = sums[1][lane] + 0.5 * positive;
                sums[0][lane] += negative;
                sums[1][lane] += positive;
                sums[2][lane] += positive * below;
                sums[3][lane] += positive_squares;
                sums[4][lane] += positive_squares * below;
                sums[5][lane] += positive_squares * below * below;
                sums[6][lane] += negative_squares;
                sums[7][lane] += negative_squares * positives_below;
                sums[8][lane] += negative_squares * positives_below * positives_below;
            }
            *open = [[[0.0; LANES]; 2]; 2];
        }
    }

    fn evaluate(&self, [negatives, positives, x, p0, p1, p2, n0, n1, n2]: [f64; 9]) -> Evaluation {
        let pairs = negatives * positives;
        if pairs == 0.0 {
            return Evaluation::UNDEFINED;
        }
        let value = x / pairs;
        // psi of a positive: (b / W- - theta) / W+; of a negative: ((W+ - c) / W+ - theta) / W-.
        let up = p2 / (negatives * negatives) - 2.0 * value * p1 / negatives + value * value * p0;
        let rest = 1.0 - value;
        let down = n2 / (positives * positives) - 2.0 * rest * n1 / positives + rest * rest * n0;
        let part = |sum: f64, all: f64, weight: f64| {
            // Below this it is rounding.
            if sum <= 1e-13 * all { 0.0 } else { sum / (weight * weight) }
        };
        let variance = part(up, p0, positives) + part(down, n0, negatives);
        Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN }
    }

    fn size(&self, [negatives, positives, _, p0, _, _, n0, ..]: [f64; 9]) -> f64 {
        effective(negatives + positives, p0 + n0)
    }
}
