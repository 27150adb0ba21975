//! The AUC where rows of one cluster move together.
//!
//! What a row adds to the variance of its cluster depends on its rank within the group, so the
//! walk over the rows keeps two sums per cluster and replicate. Every other metric of clusters is a ratio or a
//! formula of sums over clusters, which need no rows at all.
//!
//! Sixteen replicates would take 256 bytes for each cluster on every thread: where there is no room for that, fewer go
//! side by side, and fewer threads at a time.

use std::ops::Range;
use std::sync::Arc;

use super::RowFlags;
use crate::error::{Error, Result};
use crate::metrics::Evaluation;
use crate::metrics::row_sums::{LaneMask, effective};
use crate::numerics::order::{Order, order, ordered_bits};
use crate::parallel::{Control, Workspaces};
use crate::simd::{InstructionSet, LANES, Task};

/// Rows between two looks at the control.
const TILE: usize = 1 << 15;
/// Bytes that the sums of clusters may take on all threads together: so many, or so many for each row.
const ROOM: usize = 1 << 26;
const ROOM_PER_ROW: usize = 6;
/// Bytes of the sums of a cluster in one replicate.
const CLUSTER_BYTES: usize = 16;

/// Rows in ascending order of the score, with their clusters.
#[derive(Debug, Clone)]
pub(crate) struct ClusteredAuc {
    flags: Vec<RowFlags>,
    /// None where all are 1.
    weight: Option<Vec<f64>>,
    cluster: Vec<u32>,
    /// Weight of the negative and of the positive rows of each cluster.
    weights: Vec<[f64; 2]>,
    /// Room for the sums of clusters, which the next replicates take over.
    rooms: Arc<Workspaces<Vec<f64>>>,
}

/// Which group a cluster is in, and how often, in each of some replicates.
pub(crate) trait Members: Sync {
    /// Whether there are two groups, and every cluster is once in one of them.
    const PAIR: bool = false;

    /// The group of a cluster.
    fn group(&self, cluster: usize, lane: usize) -> usize;

    /// How often it is there.
    fn times(&self, cluster: usize, lane: usize) -> f64;

    /// Of a pair of groups a bit for each replicate: whether the cluster is in the first.
    fn firsts(&self, cluster: usize) -> u32 {
        let _ = cluster;
        0
    }
}

/// Clusters as observed.
pub(crate) struct Observed<'a>(pub(crate) &'a [u16]);

impl Members for Observed<'_> {
    #[inline(always)]
    fn group(&self, cluster: usize, _: usize) -> usize {
        usize::from(self.0[cluster])
    }

    #[inline(always)]
    fn times(&self, _: usize, _: usize) -> f64 {
        1.0
    }
}

/// Clusters of two groups.
pub(crate) struct Pairs(Vec<u16>);

impl Pairs {
    /// From all bits where a cluster is in the first group, in every replicate.
    pub(crate) fn new(firsts: impl Iterator<Item = LaneMask>) -> Self {
        let bits = |mask: LaneMask| (0..LANES).fold(0, |bits, lane| bits | u16::from(mask[lane] != 0) << lane);
        Self(firsts.map(bits).collect())
    }
}

impl Members for Pairs {
    const PAIR: bool = true;

    #[inline(always)]
    fn group(&self, cluster: usize, lane: usize) -> usize {
        usize::from(self.0[cluster] >> lane & 1 == 0)
    }

    #[inline(always)]
    fn times(&self, _: usize, _: usize) -> f64 {
        1.0
    }

    #[inline(always)]
    fn firsts(&self, cluster: usize) -> u32 {
        u32::from(self.0[cluster])
    }
}

/// Clusters of many groups: the code of the group in every replicate.
pub(crate) struct Codes(pub(crate) Vec<[u16; LANES]>);

impl Members for Codes {
    #[inline(always)]
    fn group(&self, cluster: usize, lane: usize) -> usize {
        usize::from(self.0[cluster][lane])
    }

    #[inline(always)]
    fn times(&self, _: usize, _: usize) -> f64 {
        1.0
    }
}

/// Clusters that are drawn within their group, so many times in every replicate.
pub(crate) struct Drawn<'a> {
    pub(crate) group: &'a [u16],
    pub(crate) times: Vec<[u16; LANES]>,
}

impl Members for Drawn<'_> {
    #[inline(always)]
    fn group(&self, cluster: usize, _: usize) -> usize {
        usize::from(self.group[cluster])
    }

    #[inline(always)]
    fn times(&self, cluster: usize, lane: usize) -> f64 {
        f64::from(self.times[cluster][lane])
    }
}

impl ClusteredAuc {
    pub(crate) fn new(
        score: &[f64],
        positive: &[u8],
        weight: Option<&[f64]>,
        cluster: &[u32],
        n_clusters: usize,
        control: &Control,
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
        let rest = |row: usize| (cluster[row], positive[row] != 0, ordered_bits(weight_of(row)));
        let order = Order::of(order(score, rest, control)?);
        let flags = RowFlags::of(score, positive, &order, control)?;
        let weight: Option<Vec<f64>> = weight.map(|weight| order.rows().map(|row| weight[row]).collect());
        let cluster: Vec<u32> = order.rows().map(|row| cluster[row]).collect();
        drop(order);
        control.check()?;
        let mut weights = vec![[0.0; 2]; n_clusters];
        for (i, (&cluster, flags)) in cluster.iter().zip(&flags).enumerate() {
            weights[cluster as usize][usize::from(flags.is_positive())] += weight.as_ref().map_or(1.0, |w| w[i]);
        }
        Ok(Self { flags, weight, cluster, weights, rooms: Arc::default() })
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.flags.len()
    }

    fn n_clusters(&self) -> usize {
        self.weights.len()
    }

    #[inline(always)]
    fn weight_of(&self, row: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[row])
    }

    /// The effective number of clusters of every group (fastest) in every lane.
    pub(crate) fn sizes(&self, members: &impl Members, n_groups: usize, lanes: usize) -> Vec<f64> {
        let mut weights = vec![0.0; self.n_clusters()];
        for (row, &cluster) in self.cluster.iter().enumerate() {
            weights[cluster as usize] += self.weight_of(row);
        }
        let mut sums = vec![[0.0; 2]; lanes * n_groups];
        for (cluster, weight) in weights.into_iter().enumerate() {
            for lane in 0..lanes {
                let [first, second] = &mut sums[lane * n_groups + members.group(cluster, lane)];
                let times = members.times(cluster, lane);
                *first += times * weight;
                *second += times * (weight * weight);
            }
        }
        sums.into_iter().map(|[first, second]| effective(first, second)).collect()
    }

    /// How many replicates go side by side on one of so many threads, and how many threads at a time.
    fn room(&self, threads: usize) -> (usize, usize) {
        let room = ROOM.max(ROOM_PER_ROW * self.n_rows());
        let one = (CLUSTER_BYTES * self.n_clusters()).max(1);
        let mut lanes = LANES;
        while lanes > 1 && threads * lanes * one > room {
            lanes /= 2;
        }
        (lanes, (room / (lanes * one)).max(1))
    }

    /// The AUC of every group (fastest) in each of the first `lanes` replicates, with the variance
    /// `sum_c (sum_{i in c} w_i psi_i)^2`.
    pub(crate) fn evaluate<M: Members>(
        &self,
        members: &M,
        n_groups: usize,
        lanes: usize,
        instructions: InstructionSet,
        control: &Control,
    ) -> Result<Vec<Evaluation>> {
        let (at_once, threads) = self.room(control.threads());
        let mut evaluations = Vec::with_capacity(lanes * n_groups);
        for first in (0..lanes).step_by(at_once.min(lanes)) {
            let some = Some { auc: self, members, first, n_groups, instructions, control };
            let found = self.rooms.with(threads, Vec::new, |room| match at_once.min(lanes) {
                16 => some.evaluate::<16>(room),
                8 => some.evaluate::<8>(room),
                4 => some.evaluate::<4>(room),
                2 => some.evaluate::<2>(room),
                _ => some.evaluate::<1>(room),
            });
            evaluations.extend(found?);
        }
        Ok(evaluations)
    }

    /// Gives the room of replicates back, when there are no more of them.
    pub(crate) fn give_back(&self) {
        self.rooms.clear();
    }

    /// The AUC of every group when a cluster belongs to each of them by a share; NaN where there is none.
    pub(crate) fn expected(&self, n_groups: usize, share: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        // By group: W-, W+, sum over positives of w b.
        let mut sums = vec![[0.0; 3]; n_groups];
        let mut open = vec![[0.0; 2]; n_groups];
        let mut start = 0;
        while start < self.n_rows() {
            let rows = self.run_from(start);
            start = rows.end;
            open.fill([0.0; 2]);
            for row in rows.clone() {
                for (group, open) in open.iter_mut().enumerate() {
                    let member = share(self.cluster[row] as usize, group);
                    open[usize::from(self.flags[row].is_positive())] += member * self.weight_of(row);
                }
            }
            for row in rows.filter(|&row| self.flags[row].is_positive()) {
                for (group, (sums, open)) in sums.iter_mut().zip(&open).enumerate() {
                    let member = share(self.cluster[row] as usize, group);
                    sums[2] += member * (self.weight_of(row) * (sums[0] + 0.5 * open[0]));
                }
            }
            for (sums, open) in sums.iter_mut().zip(&open) {
                (0..2).for_each(|label| sums[label] += open[label]);
            }
        }
        sums.into_iter().map(|[negatives, positives, x]| x / (negatives * positives)).collect()
    }

    /// The rows of one score, from the first of them.
    #[inline(always)]
    fn run_from(&self, start: usize) -> Range<usize> {
        let mut end = start;
        while self.flags[end].is_tied_with_next() {
            end += 1;
        }
        start..end + 1
    }
}

/// Some replicates, from the lane `first` on.
struct Some<'a, M> {
    auc: &'a ClusteredAuc,
    members: &'a M,
    first: usize,
    n_groups: usize,
    instructions: InstructionSet,
    control: &'a Control,
}

/// Sums over rows of `L` replicates.
struct Sums<'a, const L: usize> {
    /// By group: W-, W+, sum over positives of w b.
    groups: Vec<[[f64; L]; 3]>,
    /// By cluster: sum over positives of w b, over negatives of w c.
    ranks: &'a mut [[[f64; L]; 2]],
    /// By group: W- and W+ of the rows of one score.
    open: Vec<[[f64; L]; 2]>,
}

impl<M: Members> Some<'_, M> {
    fn evaluate<const L: usize>(&self, room: &mut Vec<f64>) -> Result<Vec<Evaluation>> {
        let (auc, n_groups) = (self.auc, self.n_groups);
        room.clear();
        room.resize(2 * L * auc.n_clusters(), 0.0);
        let mut sums = Sums::<L> {
            groups: vec![[[0.0; L]; 3]; n_groups],
            ranks: room.as_chunks_mut::<L>().0.as_chunks_mut::<2>().0,
            open: vec![[[0.0; L]; 2]; n_groups],
        };
        let mut start = 0;
        while start < auc.n_rows() {
            self.control.check()?;
            let last = (start + TILE).min(auc.n_rows()) - 1;
            let end = auc.run_from(last).end;
            self.instructions.run(Walk { some: self, sums: &mut sums, rows: start..end });
            start = end;
        }
        self.control.check()?;
        Ok(self.instructions.run(Spread { some: self, sums: &sums }))
    }
}

/// A walk over some rows.
struct Walk<'a, 'b, 'c, M, const L: usize> {
    some: &'a Some<'b, M>,
    sums: &'a mut Sums<'c, L>,
    rows: Range<usize>,
}

impl<M: Members, const L: usize> Task for Walk<'_, '_, '_, M, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { some, sums, rows } = self;
        let mut start = rows.start;
        while start < rows.end {
            let run = some.auc.run_from(start);
            start = run.end;
            if run.len() == 1 && M::PAIR {
                some.add_to_pair(run.start, sums);
            } else {
                some.add_run(run, sums);
            }
        }
    }
}

impl<M: Members> Some<'_, M> {
    /// A row of a score of its own, of two groups.
    #[inline(always)]
    fn add_to_pair<const L: usize>(&self, row: usize, sums: &mut Sums<'_, L>) {
        let cluster = self.auc.cluster[row] as usize;
        let (weight, label) = (self.auc.weight_of(row), usize::from(self.auc.flags[row].is_positive()));
        let other = 1 - label;
        let firsts = self.members.firsts(cluster) >> self.first;
        let rank = &mut sums.ranks[cluster][other];
        let [one, two] = &mut sums.groups[..] else { return };
        let mut shares = [[0.0; L]; 2];
        let mut below = [[0.0; L]; 2];
        for lane in 0..L {
            let is_first = firsts >> lane & 1 == 1;
            shares[0][lane] = if is_first { 1.0 } else { 0.0 };
            shares[1][lane] = if is_first { 0.0 } else { 1.0 };
            below[0][lane] = weight * one[other][lane];
            below[1][lane] = weight * two[other][lane];
            rank[lane] += if is_first { below[0][lane] } else { below[1][lane] };
        }
        for lane in 0..L {
            one[label][lane] += shares[0][lane] * weight;
            two[label][lane] += shares[1][lane] * weight;
        }
        if label == 1 {
            for lane in 0..L {
                one[2][lane] += shares[0][lane] * below[0][lane];
                two[2][lane] += shares[1][lane] * below[1][lane];
            }
        }
    }

    /// Rows of one score.
    #[inline(always)]
    fn add_run<const L: usize>(&self, rows: Range<usize>, sums: &mut Sums<'_, L>) {
        let Sums { groups, ranks, open } = sums;
        open.fill([[0.0; L]; 2]);
        for row in rows.clone() {
            let (cluster, label) = (self.auc.cluster[row] as usize, usize::from(self.auc.flags[row].is_positive()));
            let weight = self.auc.weight_of(row);
            for lane in 0..L {
                let group = self.members.group(cluster, self.first + lane);
                open[group][label][lane] += self.members.times(cluster, self.first + lane) * weight;
            }
        }
        for row in rows {
            let (cluster, label) = (self.auc.cluster[row] as usize, usize::from(self.auc.flags[row].is_positive()));
            let (weight, other) = (self.auc.weight_of(row), 1 - label);
            for lane in 0..L {
                let group = self.members.group(cluster, self.first + lane);
                let times = self.members.times(cluster, self.first + lane);
                let below = weight * (groups[group][other][lane] + 0.5 * open[group][other][lane]);
                ranks[cluster][other][lane] += if times > 0.0 { below } else { 0.0 };
                if label == 1 {
                    groups[group][2][lane] += times * below;
                }
            }
        }
        for (sums, open) in groups.iter_mut().zip(&*open) {
            for label in 0..2 {
                for lane in 0..L {
                    sums[label][lane] += open[label][lane];
                }
            }
        }
    }
}

/// From the sums to values and variances.
struct Spread<'a, 'b, 'c, M, const L: usize> {
    some: &'a Some<'b, M>,
    sums: &'a Sums<'c, L>,
}

impl<M: Members, const L: usize> Task for Spread<'_, '_, '_, M, L> {
    type Output = Vec<Evaluation>;

    #[inline(always)]
    fn run(self) -> Vec<Evaluation> {
        let Self { some, sums: Sums { groups, ranks, .. } } = self;
        let n_groups = some.n_groups;
        let values: Vec<[f64; L]> = groups
            .iter()
            .map(|[negatives, positives, x]| std::array::from_fn(|lane| x[lane] / (negatives[lane] * positives[lane])))
            .collect();
        // By group: the variance, and what it is rounding to.
        let mut spread = vec![[[0.0; L]; 2]; n_groups];
        for (cluster, (ranks, &[below, above])) in ranks.iter().zip(&some.auc.weights).enumerate() {
            let firsts = some.members.firsts(cluster) >> some.first;
            if M::PAIR {
                let mut terms = [[0.0; L]; 2];
                for lane in 0..L {
                    let is_first = firsts >> lane & 1 == 1;
                    let of = |one: f64, two: f64| if is_first { one } else { two };
                    let negatives = of(groups[0][0][lane], groups[1][0][lane]);
                    let positives = of(groups[0][1][lane], groups[1][1][lane]);
                    let value = of(values[0][lane], values[1][lane]);
                    let up = ranks[0][lane] / negatives / positives;
                    let down = (below - ranks[1][lane] / positives) / negatives;
                    let all = above / positives + below / negatives;
                    let rest = up + down - value * all;
                    terms[0][lane] = rest * rest;
                    terms[1][lane] = all * all;
                }
                for lane in 0..L {
                    let is_first = firsts >> lane & 1 == 1;
                    for (sum, term) in terms.iter().enumerate() {
                        spread[0][sum][lane] += if is_first { term[lane] } else { 0.0 };
                        spread[1][sum][lane] += if is_first { 0.0 } else { term[lane] };
                    }
                }
                continue;
            }
            for lane in 0..L {
                let group = some.members.group(cluster, some.first + lane);
                let times = some.members.times(cluster, some.first + lane);
                if times > 0.0 {
                    let [negatives, positives, _] = groups[group].map(|lanes| lanes[lane]);
                    let up = ranks[0][lane] / negatives / positives;
                    let down = (below - ranks[1][lane] / positives) / negatives;
                    let all = above / positives + below / negatives;
                    spread[group][0][lane] += times * (up + down - values[group][lane] * all).powi(2);
                    spread[group][1][lane] += times * all * all;
                }
            }
        }
        let mut evaluations = vec![Evaluation::UNDEFINED; L * n_groups];
        for lane in 0..L {
            for group in 0..n_groups {
                if groups[group][0][lane] == 0.0 || groups[group][1][lane] == 0.0 {
                    continue;
                }
                let [variance, size] = spread[group].map(|lanes| lanes[lane]);
                // Below this it is rounding.
                let variance = if variance <= 1e-24 * size { 0.0 } else { variance };
                evaluations[lane * n_groups + group] =
                    Evaluation { value: values[group][lane], variance, numerator: f64::NAN, denominator: f64::NAN };
            }
        }
        evaluations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with ties, in 7 clusters of three groups.
    fn auc(n_rows: u32) -> (ClusteredAuc, Vec<u16>) {
        let score: Vec<f64> = (0..n_rows).map(|i| f64::from(i * 37 % 23)).collect();
        let positive: Vec<u8> = (0..n_rows).map(|i| u8::from(i * i % 5 < 2)).collect();
        let cluster: Vec<u32> = (0..n_rows).map(|i| i % 7).collect();
        let weight: Vec<f64> = (0..n_rows).map(|i| 1.0 + f64::from(i % 3)).collect();
        let made = ClusteredAuc::new(&score, &positive, Some(&weight), &cluster, 7, &Control::default()).unwrap();
        (made, vec![0, 1, 2, 0, 1, 2, 0])
    }

    #[test]
    fn any_number_of_replicates_side_by_side_gives_the_same_bits() {
        let (auc, group) = auc(90);
        let two: Vec<u16> = group.iter().map(|&g| g.min(1)).collect();
        let masks: Vec<LaneMask> = (0..7)
            .map(|c: usize| std::array::from_fn(|lane| if (c + lane).is_multiple_of(3) { u32::MAX } else { 0 }))
            .collect();
        let pairs = Pairs::new(masks.iter().copied());
        let codes = Codes((0..7).map(|c| std::array::from_fn(|lane| pairs.group(c, lane) as u16)).collect());
        let control = Control::default();
        let bits = |found: Vec<Evaluation>| -> Vec<(u64, u64)> {
            found.iter().map(|one| (one.value.to_bits(), one.variance.to_bits())).collect()
        };
        let set = InstructionSet::Baseline;
        let all = bits(auc.evaluate(&codes, 2, LANES, set, &control).unwrap());
        assert_eq!(bits(auc.evaluate(&pairs, 2, LANES, set, &control).unwrap()), all);
        // What other replicates left in their room is nothing to these.
        let mut room = vec![f64::NAN; 3];
        for at_once in [1, 2, 4, 8] {
            let mut parts = Vec::new();
            for first in (0..LANES).step_by(at_once) {
                let some =
                    Some { auc: &auc, members: &pairs, first, n_groups: 2, instructions: set, control: &control };
                parts.extend(match at_once {
                    1 => some.evaluate::<1>(&mut room).unwrap(),
                    2 => some.evaluate::<2>(&mut room).unwrap(),
                    4 => some.evaluate::<4>(&mut room).unwrap(),
                    _ => some.evaluate::<8>(&mut room).unwrap(),
                });
            }
            assert_eq!(bits(parts), all, "{at_once}");
        }
        // Drawn once each is as observed, and so are whole shares.
        let drawn = Drawn { group: &two, times: vec![[1; LANES]; 7] };
        let observed = auc.evaluate(&Observed(&two), 2, 1, set, &control).unwrap();
        assert_eq!(bits(auc.evaluate(&drawn, 2, 1, set, &control).unwrap()), bits(observed.clone()));
        let shares = auc.expected(2, |cluster, g| f64::from(u8::from(usize::from(two[cluster]) == g)));
        assert_eq!(shares, observed.iter().map(|one| one.value).collect::<Vec<_>>());
    }

    #[test]
    fn the_sums_of_clusters_take_no_more_than_their_room() {
        let (auc, _) = auc(90);
        assert_eq!(auc.room(8).0, LANES);
        let many = ClusteredAuc { weights: vec![[0.0; 2]; 1 << 22], ..auc };
        for threads in [1, 2, 8, 64] {
            let (lanes, at_a_time) = many.room(threads);
            assert!((lanes * at_a_time.min(threads) * CLUSTER_BYTES) << 22 <= ROOM, "{threads}: {lanes} {at_a_time}");
        }
        // Many rows are worth more: 192 MB, of which two replicates on one thread take 128.
        assert_eq!(many.room(1), (1, 1));
        let long = ClusteredAuc { flags: vec![many.flags[0]; 1 << 25], ..many };
        assert_eq!(long.room(1), (2, 1));
    }
}
