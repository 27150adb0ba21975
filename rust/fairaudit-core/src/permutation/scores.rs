//! How tests of the AUC are made of scores and labels, of rows or of clusters of rows.
//!
//! A column of a test is made when what it is made of is given back: the order of the rows takes less than their scores.

use super::Studentize;
use super::rows::{Block, RowTest, UnitMetric};
use super::units::{Exchange, Units};
use crate::error::Result;
use crate::metrics::RowMetric;
use crate::metrics::auc::{Auc, ClusteredAuc, RowFlags, WeightedAuc};
use crate::numerics::order::{Order, PIECE, order_of, ordered_bits};
use crate::parallel::{self, Control};

/// Rows in ascending order of the score.
struct Ordered {
    flags: Vec<RowFlags>,
    weight: Option<Vec<f64>>,
    group: Vec<u16>,
    part: Option<Vec<u32>>,
}

impl Ordered {
    fn block(
        self,
        exchange: impl Fn(Option<Vec<u32>>) -> Exchange,
        n_groups: usize,
        control: &Control,
    ) -> Result<Block> {
        let flags = self.flags;
        let metric = match self.weight {
            None => RowMetric::Auc(Auc { flags }),
            Some(weight) => RowMetric::WeightedAuc(WeightedAuc { flags, weight }),
        };
        Block::new(UnitMetric::Rows(metric), self.group, n_groups, exchange(self.part), control)
    }
}

/// Scores and labels of rows in any order.
#[derive(Debug, Clone, Copy)]
pub struct Scores<'a> {
    /// Score of each row.
    pub score: &'a [f64],
    /// Label of each row, 0 where it is not positive.
    pub positive: &'a [u8],
    /// Weight of each row; 1 when they are left out.
    pub weight: Option<&'a [f64]>,
    /// Of each code of a group, its place among the groups of the test: rows of a group without a place there take no
    /// part. Codes are places when they are left out.
    pub places: Option<&'a [u16]>,
}

impl Scores<'_> {
    /// A test of rows.
    pub(super) fn of_rows(
        &self,
        units: Units<'_>,
        within_labels: bool,
        studentize: Studentize,
        control: &Control,
    ) -> Result<RowTest> {
        let rest = |row: usize| {
            let weight = self.weight.map_or(0, |weight| ordered_bits(weight[row]));
            (self.positive[row] != 0, weight, units.stratum_of(row), units.part_of(row), self.group_of(units, row))
        };
        let compared = |row: &usize| usize::from(self.group_of(units, *row)) < units.n_groups;
        let n_rows = self.score.len();
        let n_compared = if self.places.is_some() { (0..n_rows).filter(compared).count() } else { n_rows };
        let order = Order::of(order_of((0..n_rows).filter(compared), n_compared, self.score, rest, control)?);
        let exchange = |part: Option<Vec<u32>>| if within_labels { Exchange::Labels } else { Exchange::of(part) };
        let part = units.part.filter(|_| units.n_strata() == 1);
        let all = Ordered {
            flags: RowFlags::of(self.score, self.positive, &order, control)?,
            weight: self.weight.map(|weight| order.of_each(|row| weight[row], control)).transpose()?,
            group: order.of_each(|row| self.group_of(units, row), control)?,
            part: part.map(|part| order.of_each(|row| part[row], control)).transpose()?,
        };
        if units.n_strata() == 1 {
            drop(order);
            let block = all.block(exchange, units.n_groups, control)?;
            return RowTest::new(vec![block], None, units.n_groups, studentize);
        }
        // As observed, whatever exchanges groups; its rows are given back before those of the strata are taken.
        let observed = all.block(|_| Exchange::All, units.n_groups, control)?.evaluations();
        let strata = self.by_stratum(&order, units, control)?;
        drop(order);
        let block = |stratum: Ordered| stratum.block(exchange, units.n_groups, control);
        let blocks: Result<Vec<Block>> = parallel::map_each(strata, block).into_iter().collect();
        RowTest::new(blocks?, Some(observed), units.n_groups, studentize)
    }

    /// The place of a row's group.
    #[inline(always)]
    fn group_of(&self, units: Units<'_>, row: usize) -> u16 {
        let code = units.group[row];
        self.places.map_or(code, |places| places[usize::from(code)])
    }

    /// The rows of each stratum that has some: in the order of all.
    fn by_stratum(&self, order: &Order, units: Units<'_>, control: &Control) -> Result<Vec<Ordered>> {
        let mut sizes = vec![0; units.n_strata()];
        order.rows().for_each(|row| sizes[units.stratum_of(row) as usize] += 1);
        let room = |n: usize| Ordered {
            flags: Vec::with_capacity(n),
            weight: self.weight.map(|_| Vec::with_capacity(n)),
            group: Vec::with_capacity(n),
            part: units.part.map(|_| Vec::with_capacity(n)),
        };
        let mut strata: Vec<Ordered> = sizes.into_iter().map(room).collect();
        let mut last = vec![f64::NAN; strata.len()];
        for (i, row) in order.rows().enumerate() {
            if i % PIECE == 0 {
                control.check()?;
            }
            let place = units.stratum_of(row) as usize;
            let (stratum, last) = (&mut strata[place], &mut last[place]);
            if *last == self.score[row]
                && let Some(flags) = stratum.flags.last_mut()
            {
                *flags = flags.tied();
            }
            *last = self.score[row];
            stratum.flags.push(RowFlags::new(self.positive[row] != 0, false));
            stratum.group.push(self.group_of(units, row));
            stratum.weight.iter_mut().zip(self.weight).for_each(|(to, from)| to.push(from[row]));
            stratum.part.iter_mut().zip(units.part).for_each(|(to, from)| to.push(from[row]));
        }
        strata.retain(|stratum| !stratum.group.is_empty());
        Ok(strata)
    }

    /// A test of clusters of rows.
    pub(super) fn of_clusters(
        &self,
        cluster: &[u32],
        units: Units<'_>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<RowTest> {
        let mut place = vec![u32::MAX; units.group.len()];
        let mut block = |members: &[u32], rows: &[u32]| {
            members.iter().zip(0..).for_each(|(&unit, i)| place[unit as usize] = i);
            let of = |row: &u32| *row as usize;
            let score: Vec<f64> = rows.iter().map(|row| self.score[of(row)]).collect();
            let positive: Vec<u8> = rows.iter().map(|row| self.positive[of(row)]).collect();
            let weight: Option<Vec<f64>> = self.weight.map(|weight| rows.iter().map(|row| weight[of(row)]).collect());
            let cluster: Vec<u32> = rows.iter().map(|row| place[cluster[of(row)] as usize]).collect();
            let auc = ClusteredAuc::new(&score, &positive, weight.as_deref(), &cluster, members.len(), control)?;
            let group = members.iter().map(|&unit| units.group[unit as usize]).collect();
            let part = units.part.map(|part| members.iter().map(|&unit| part[unit as usize]).collect());
            Block::new(UnitMetric::Clusters(auc), group, units.n_groups, Exchange::of(part), control)
        };
        let exchange = Exchange::of(units.part.filter(|_| units.n_strata() == 1).map(<[u32]>::to_vec));
        let all = ClusteredAuc::new(self.score, self.positive, self.weight, cluster, units.group.len(), control)?;
        let all = Block::new(UnitMetric::Clusters(all), units.group.to_vec(), units.n_groups, exchange, control)?;
        if units.n_strata() == 1 {
            return RowTest::new(vec![all], None, units.n_groups, studentize);
        }
        let observed = all.evaluations();
        drop(all);
        let by_stratum = |n: usize, stratum: &dyn Fn(usize) -> u32| {
            let mut sizes = vec![0; units.n_strata()];
            (0..n).for_each(|i| sizes[stratum(i) as usize] += 1);
            let mut strata: Vec<Vec<u32>> = sizes.into_iter().map(Vec::with_capacity).collect();
            (0..n).for_each(|i| strata[stratum(i) as usize].push(i as u32));
            strata
        };
        let rows = by_stratum(cluster.len(), &|row| units.stratum_of(cluster[row] as usize));
        let members = by_stratum(units.group.len(), &|unit| units.stratum_of(unit));
        let strata = members.iter().zip(&rows).filter(|(members, _)| !members.is_empty());
        let blocks: Result<Vec<Block>> = strata.map(|(members, rows)| block(members, rows)).collect();
        RowTest::new(blocks?, Some(observed), units.n_groups, studentize)
    }
}
