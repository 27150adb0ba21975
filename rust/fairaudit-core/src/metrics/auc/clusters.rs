//! The AUC where rows of one cluster move together.
//!
//! What a row adds to the variance of its cluster depends on its rank within the group, so the
//! walk over the rows keeps two sums per cluster. Every other metric of clusters is a ratio or a
//! formula of sums over clusters, which need no rows at all.

use crate::error::{Error, Result};
use crate::metrics::Evaluation;
use crate::metrics::row_sums::{Lanes, effective};
use crate::numerics::order::ordered_bits;
use crate::simd::LANES;

/// Rows in ascending order of the score, with their clusters.
#[derive(Debug, Clone)]
pub(crate) struct ClusteredAuc {
    positive: Vec<bool>,
    weight: Vec<f64>,
    cluster: Vec<u32>,
    /// Ends of the runs of rows with one score.
    ends: Vec<u32>,
    n_clusters: usize,
}

impl ClusteredAuc {
    pub(crate) fn new(
        score: &[f64],
        positive: &[u8],
        weight: Option<&[f64]>,
        cluster: &[u32],
        n_clusters: usize,
    ) -> Result<Self> {
        let rows = score.len();
        let lengths = [positive.len(), weight.map_or(rows, <[f64]>::len), cluster.len()];
        if lengths.iter().any(|&length| length != rows) || u32::try_from(rows).is_err() {
            return Err(Error::argument("rows", format!("{rows} and {lengths:?}"), "columns of one length"));
        }
        if cluster.iter().any(|&code| code as usize >= n_clusters) {
            return Err(Error::argument("cluster", "out of range", "codes of the clusters"));
        }
        let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_unstable_by_key(|&row| {
            let row = row as usize;
            (ordered_bits(score[row]), cluster[row], positive[row] != 0, ordered_bits(weight_of(row)))
        });
        let rows_in_order = || order.iter().map(|&row| row as usize);
        let mut ends: Vec<u32> = (1..rows as u32)
            .filter(|&i| score[order[i as usize - 1] as usize] != score[order[i as usize] as usize])
            .collect();
        ends.push(rows as u32);
        Ok(Self {
            positive: rows_in_order().map(|row| positive[row] != 0).collect(),
            weight: rows_in_order().map(weight_of).collect(),
            cluster: rows_in_order().map(|row| cluster[row]).collect(),
            ends,
            n_clusters,
        })
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.positive.len()
    }

    /// The effective number of clusters of every group (fastest) in every lane.
    pub(crate) fn sizes(&self, member: &[Lanes], n_groups: usize) -> Vec<f64> {
        let mut weights = vec![0.0; self.n_clusters];
        for (&cluster, weight) in self.cluster.iter().zip(&self.weight) {
            weights[cluster as usize] += weight;
        }
        let mut sizes = vec![0.0; LANES * n_groups];
        for lane in 0..LANES {
            for group in 0..n_groups {
                let times = |cluster: usize| member[cluster * n_groups + group][lane];
                let sum = |power: i32| -> f64 {
                    weights.iter().enumerate().map(|(cluster, w)| times(cluster) * w.powi(power)).sum()
                };
                sizes[lane * n_groups + group] = effective(sum(1), sum(2));
            }
        }
        sizes
    }

    /// The AUC of every group (fastest) in every lane, with the variance
    /// `sum_c (sum_{i in c} w_i psi_i)^2`; `member` says by cluster and group (fastest) how often a
    /// cluster is a member of a group.
    pub(crate) fn evaluate(&self, member: &[Lanes], n_groups: usize) -> Vec<Evaluation> {
        // By group: W-, W+, sum over positives of w b.
        let mut sums = vec![[[0.0; LANES]; 3]; n_groups];
        // By cluster: sum over positives of w b, over negatives of w c.
        let mut ranks = vec![[[0.0; LANES]; 2]; self.n_clusters];
        let mut weights = vec![[0.0; 2]; self.n_clusters];
        let mut open = vec![[[0.0; LANES]; 2]; n_groups];
        let members = |cluster: usize| &member[cluster * n_groups..(cluster + 1) * n_groups];
        let mut start = 0;
        for &end in &self.ends {
            let rows = start..end as usize;
            start = end as usize;
            open.fill([[0.0; LANES]; 2]);
            for row in rows.clone() {
                let (weight, cluster) = (self.weight[row], self.cluster[row] as usize);
                weights[cluster][usize::from(self.positive[row])] += weight;
                for (open, member) in open.iter_mut().zip(members(cluster)) {
                    for (sum, member) in open[usize::from(self.positive[row])].iter_mut().zip(member) {
                        *sum += member * weight;
                    }
                }
            }
            for row in rows {
                let (weight, cluster, positive) = (self.weight[row], self.cluster[row] as usize, self.positive[row]);
                let other = usize::from(!positive);
                let rank = &mut ranks[cluster][other];
                for ((member, sums), open) in members(cluster).iter().zip(&mut sums).zip(&open) {
                    for lane in 0..LANES {
                        let below = weight * (sums[other][lane] + 0.5 * open[other][lane]);
                        // A cluster is in one group: this adds up what its own group gives it.
                        rank[lane] += if member[lane] > 0.0 { below } else { 0.0 };
                        if positive {
                            sums[2][lane] += member[lane] * below;
                        }
                    }
                }
            }
            for (sums, open) in sums.iter_mut().zip(&open) {
                for label in 0..2 {
                    for lane in 0..LANES {
                        sums[label][lane] += open[label][lane];
                    }
                }
            }
        }
        let mut evaluations = vec![Evaluation::UNDEFINED; LANES * n_groups];
        for lane in 0..LANES {
            for (group, sums) in sums.iter().enumerate() {
                let [negatives, positives, x] = sums.map(|lanes| lanes[lane]);
                if negatives == 0.0 || positives == 0.0 {
                    continue;
                }
                let value = x / (negatives * positives);
                let (mut variance, mut size) = (0.0, 0.0);
                for (cluster, (ranks, [below, above])) in ranks.iter().zip(&weights).enumerate() {
                    let times = member[cluster * n_groups + group][lane];
                    if times > 0.0 {
                        let up = ranks[0][lane] / negatives / positives;
                        let down = (below - ranks[1][lane] / positives) / negatives;
                        let all = above / positives + below / negatives;
                        variance += times * (up + down - value * all).powi(2);
                        size += times * all * all;
                    }
                }
                // Below this it is rounding.
                let variance = if variance <= 1e-24 * size { 0.0 } else { variance };
                evaluations[lane * n_groups + group] =
                    Evaluation { value, variance, numerator: f64::NAN, denominator: f64::NAN };
            }
        }
        evaluations
    }
}
