//! The `shuffle` engine: rank correlation of a row value with a continuous attribute.
//!
//! Ranks are estimated, so that a row moves the correlation by its own product and by the ranks of all others:
//! `psi_i = u_i w_i + mean_j 1{x_i < x_j} w_j + mean_j u_j 1{y_i < y_j}` less its mean, ties 1/2, `u` and `w` the
//! ranks of x and y over n, less 1/2. The product alone (Pearson's variance on ranks) misses the level where rows
//! depend on each other without a rank correlation. The orders of x and y are known once; a replicate pairs them
//! anew, and both means are sums along an order: O(n).
//!
//! Ranks are taken within strata: the correlation is the mean of those of the strata.

use std::ops::Range;

use super::correlation::check;
use super::{PermutationTest, Studentize};
use crate::draws::Draws;
use crate::error::Result;
use crate::metrics::Evaluation;
use crate::numerics::order::{order, ordered_bits, row_of};
use crate::parallel::{Control, Workspaces, each_replicate};
use crate::random::{Domain, RowGenerator};

/// Strata of fewer rows than this, if there are as many of them, are units of the variance: in them the influence of
/// rows shows too little of it (5 rows: 71 to 80 %; 20: 96 % and more).
const FEW: usize = 20;

/// Strata of more rows are permuted by buckets, of some 8,192 rows: they stay in the nearest caches.
const MOST_ROWS_AT_ONCE: usize = 1 << 16;
const LOG_BUCKET_ROWS: u32 = 13;
/// Most buckets: each is a stream that is written to.
const MOST_BUCKETS: usize = 1 << 11;

/// Bytes that the buffers of all threads together may take: so many, or so many for each row. A buffer of one thread
/// takes some 22 for each row.
const ROOM: usize = 1 << 28;
const ROOM_PER_ROW: usize = 22;
const SCRATCH_BYTES: usize = 22;

/// Rank correlation of two columns, the second permuted within strata.
#[derive(Debug, Clone)]
pub struct RankCorrelationTest {
    strata: Vec<Stratum>,
    n_rows: usize,
    /// Ranks of x, in its order, by stratum: whole numbers, the rank times two less n + 1. Nothing without ties, where
    /// the place tells the rank.
    x: Option<Vec<f64>>,
    /// Those of y, in its order.
    y: Option<Vec<f64>>,
    /// The correlation as observed, and its variance.
    observed: (f64, f64),
    studentize: Studentize,
    /// sqrt(sum u^2 sum w^2).
    scale: f64,
    /// Of small strata that are units: number / (number - 1); 0 where rows are.
    inflation: f64,
}

/// The rows of a stratum.
#[derive(Debug, Clone)]
struct Stratum {
    rows: Range<usize>,
    /// Of its own sqrt(sum u^2 sum w^2).
    scale: f64,
    is_unit: bool,
    /// Whether some of its rows have one y.
    is_tied: bool,
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    /// Places in the order of y.
    place: Vec<u32>,
    /// In the order of y: the rank of x, and what is known of the influence.
    paired: Vec<[f64; 2]>,
    /// Seats of rows that are tied, and the ranks of y there.
    tied: Vec<(usize, f64)>,
    /// Products of the strata that are units, with their scale.
    units: Vec<[f64; 2]>,
    buckets: Buckets,
}

/// A permutation of many rows: each goes to a bucket, and the places of a bucket are shuffled.
#[derive(Default)]
struct Buckets {
    of_row: Vec<u16>,
    /// Ends of the buckets, and how far each is filled from its end.
    ends: Vec<usize>,
    open: Vec<usize>,
    paired: Vec<[f64; 2]>,
}

impl Buckets {
    fn draw(&mut self, place: &mut [u32], generator: &mut RowGenerator) {
        let n = (place.len() >> LOG_BUCKET_ROWS).next_power_of_two().min(MOST_BUCKETS);
        self.ends.clear();
        self.ends.resize(n, 0);
        self.of_row.clear();
        for _ in 0..place.len() {
            let bucket = generator.below(n as u32);
            self.of_row.push(bucket as u16);
            self.ends[bucket as usize] += 1;
        }
        let mut start = 0;
        for end in &mut self.ends {
            *end += start;
            place[start..*end].iter_mut().zip(start as u32..).for_each(|(place, at)| *place = at);
            generator.shuffle(&mut place[start..*end]);
            start = *end;
        }
        self.open.clone_from(&self.ends);
    }

    /// The seat of a row in its bucket; rows are asked from the last to the first.
    #[inline(always)]
    fn seat(&mut self, row: usize) -> usize {
        let open = &mut self.open[usize::from(self.of_row[row])];
        *open -= 1;
        *open
    }

    /// Brings what sits in each bucket to its places.
    fn put_in_place(&mut self, place: &[u32], paired: &mut [[f64; 2]]) {
        let mut start = 0;
        for &end in &self.ends {
            self.paired.clear();
            self.paired.extend_from_slice(&paired[start..end]);
            for (&at, &pair) in place[start..end].iter().zip(&self.paired) {
                paired[at as usize] = pair;
            }
            start = end;
        }
    }
}

impl RankCorrelationTest {
    /// Prepares a test of rows in any order.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] when lengths do not fit or a value is not finite; [`crate::Error::Cancelled`].
    pub fn new(
        x: &[f64],
        y: &[f64],
        stratum: Option<&[u32]>,
        studentize: Studentize,
        control: &Control,
    ) -> Result<Self> {
        check(x, y, stratum, studentize)?;
        let rows = x.len();
        let stratum_of = |key: u64| stratum.map_or(0, |stratum| stratum[row_of(key)]);
        let ordered = |first: &[f64], second: &[f64]| -> Result<Vec<u64>> {
            let mut order = order(first, |row| ordered_bits(second[row]), control)?;
            if stratum.is_some() {
                order.sort_by_key(|&key| stratum_of(key));
            }
            control.check()?;
            Ok(order)
        };
        // One order after the other: together they would take more than the columns.
        let by_y = ordered(y, x)?;
        let mut ends: Vec<usize> = (1..rows).filter(|&i| stratum_of(by_y[i - 1]) != stratum_of(by_y[i])).collect();
        ends.push(rows);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let segments: Vec<Range<usize>> = starts.zip(&ends).map(|(start, &end)| start..end).collect();
        let ranked = |order: &[u64], values: &[f64]| -> Option<Vec<f64>> {
            let tied = |rows: &Range<usize>| {
                order[rows.clone()].windows(2).any(|pair| values[row_of(pair[0])] == values[row_of(pair[1])])
            };
            let all = || segments.iter().flat_map(|rows| ranks(&order[rows.clone()], values)).collect();
            segments.iter().any(tied).then(all)
        };
        let ranks_of_y = ranked(&by_y, y);
        let mut at = vec![0u32; rows];
        for rows in &segments {
            by_y[rows.clone()].iter().zip(0..).for_each(|(&key, place)| at[row_of(key)] = place);
        }
        drop(by_y);
        let by_x = ordered(x, y)?;
        let ranks_of_x = ranked(&by_x, x);
        // Place of each row of x in the order of y, from the start of its stratum.
        let place: Vec<u32> = by_x.iter().map(|&key| at[row_of(key)]).collect();
        drop((by_x, at));
        control.check()?;
        let (x, y) = (ranks_of_x, ranks_of_y);
        // Of whole numbers, scaled once, as products are: ranks that agree have a correlation of 1.
        let squares = |values: &Option<Vec<f64>>, rows: &Range<usize>| {
            let squares: f64 = match values {
                Some(values) => values[rows.clone()].iter().map(|rank| rank * rank).sum(),
                None => (0..rows.len()).map(|i| Distinct::of(rows.len()).at(i).powi(2)).sum(),
            };
            squares * unit_of(rows)
        };
        let strata: Vec<Stratum> = segments
            .into_iter()
            .map(|rows| {
                let scale = (squares(&x, &rows) * squares(&y, &rows)).sqrt();
                let is_tied = y.as_ref().is_some_and(|y| y[rows.clone()].windows(2).any(|pair| pair[0] == pair[1]));
                Stratum { is_unit: rows.len() < FEW && scale > 0.0, rows, scale, is_tied }
            })
            .collect();
        let total =
            |values: &Option<Vec<f64>>| strata.iter().map(|stratum| squares(values, &stratum.rows)).sum::<f64>();
        let scale = (total(&x) * total(&y)).sqrt();
        let units = strata.iter().filter(|stratum| stratum.is_unit).count();
        let inflation = if units < FEW { 0.0 } else { units as f64 / (units - 1) as f64 };
        let observed = (f64::NAN, f64::NAN);
        let mut test = Self { strata, n_rows: rows, x, y, observed, studentize, scale, inflation };
        let mut scratch = Scratch { paired: vec![[0.0; 2]; rows], ..Scratch::default() };
        test.observed = test.pairing(&mut scratch, Pairing::Observed(&place));
        Ok(test)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The correlation and its variance.
    fn pairing(&self, scratch: &mut Scratch, mut pairing: Pairing<'_>) -> (f64, f64) {
        let Scratch { place, paired, tied, units, buckets } = scratch;
        units.clear();
        let (mut sum, mut variance) = (0.0, 0.0);
        for stratum in &self.strata {
            let rows = stratum.rows.clone();
            let n = rows.len();
            let mut work = Pairs {
                paired: &mut paired[rows.clone()],
                tied,
                place: place.get_mut(rows.clone()).unwrap_or_default(),
                buckets,
                with_influence: !(stratum.is_unit && self.inflation > 0.0),
            };
            let x = self.x.as_deref().map(|ranks| Tied(&ranks[rows.clone()]));
            // Without ties in the stratum the place tells the rank: nothing need be read from afar.
            let y = self.y.as_deref().filter(|_| stratum.is_tied).map(|ranks| Tied(&ranks[rows.clone()]));
            let (products, squares) = match (x, y) {
                (None, None) => work.pair(Distinct::of(n), Distinct::of(n), &rows, &mut pairing),
                (None, Some(y)) => work.pair(Distinct::of(n), y, &rows, &mut pairing),
                (Some(x), None) => work.pair(x, Distinct::of(n), &rows, &mut pairing),
                (Some(x), Some(y)) => work.pair(x, y, &rows, &mut pairing),
            };
            let unit = unit_of(&rows);
            sum += products * unit;
            if work.with_influence {
                variance += squares * unit * unit;
            } else {
                units.push([products * unit, stratum.scale]);
            }
        }
        if self.scale == 0.0 {
            return (f64::NAN, f64::NAN);
        }
        let r = if sum.abs() <= 1e-14 * self.scale { 0.0 } else { sum / self.scale };
        let between: f64 = units.iter().map(|[product, scale]| (product - r * scale).powi(2)).sum();
        (r, (variance + self.inflation * between) / (self.scale * self.scale))
    }

    fn scratch(&self) -> Scratch {
        let n = self.n_rows();
        Scratch { place: vec![0; n], paired: vec![[0.0; 2]; n], ..Scratch::default() }
    }

    fn statistic(&self, (r, variance): (f64, f64)) -> f64 {
        if r == 0.0 || self.studentize == Studentize::None { r } else { r / variance.sqrt() }
    }
}

impl PermutationTest for RankCorrelationTest {
    fn observed(&self) -> f64 {
        self.statistic(self.observed)
    }

    /// The correlation.
    fn evaluations(&self) -> Vec<Evaluation> {
        let (value, variance) = self.observed;
        vec![Evaluation { value, variance, ..Evaluation::UNDEFINED }]
    }

    fn replicate_work(&self) -> u64 {
        8 * self.n_rows() as u64
    }

    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>> {
        let mut null = draws.zeros();
        let room = ROOM.max(ROOM_PER_ROW * self.n_rows);
        let (scratches, most) = (Workspaces::default(), room / (SCRATCH_BYTES * self.n_rows).max(1));
        let replicate = |offset: u64, (): &mut ()| {
            let replicate = draws.replicates.start + offset;
            let mut generator = RowGenerator::new(draws.seed, Domain::Permutation, draws.series, replicate, 0);
            scratches.with(
                most,
                || self.scratch(),
                |scratch| self.statistic(self.pairing(scratch, Pairing::Drawn(&mut generator))),
            )
        };
        each_replicate(&mut null, control, || (), replicate)?;
        Ok(null)
    }
}

/// How the rows of x meet those of y.
enum Pairing<'a> {
    /// At these places in the order of y.
    Observed(&'a [u32]),
    /// By chance.
    Drawn(&'a mut RowGenerator),
}

/// The ranks of a stratum, in order.
trait Ranks: Copy {
    /// Whether some of them are the same.
    const TIES: bool;

    /// The rank of a row, times two, less the number of rows and 1.
    fn at(self, place: usize) -> f64;
}

/// Ranks that are read.
#[derive(Clone, Copy)]
struct Tied<'a>(&'a [f64]);

impl Ranks for Tied<'_> {
    const TIES: bool = true;

    #[inline(always)]
    fn at(self, place: usize) -> f64 {
        self.0[place]
    }
}

/// Of rows that all differ: the lowest rank is this, each other is 2 more.
#[derive(Clone, Copy)]
struct Distinct(f64);

impl Distinct {
    fn of(rows: usize) -> Self {
        Self(1.0 - rows as f64)
    }
}

impl Ranks for Distinct {
    const TIES: bool = false;

    #[inline(always)]
    fn at(self, place: usize) -> f64 {
        self.0 + 2.0 * place as f64
    }
}

/// The buffers for the rows of one stratum.
struct Pairs<'a> {
    paired: &'a mut [[f64; 2]],
    tied: &'a mut Vec<(usize, f64)>,
    place: &'a mut [u32],
    buckets: &'a mut Buckets,
    /// Whether the squares of the influence of the rows are asked for.
    with_influence: bool,
}

impl Pairs<'_> {
    /// The sum of products of ranks, and that of squares of the influence.
    fn pair(&mut self, x: impl Ranks, y: impl Ranks, rows: &Range<usize>, pairing: &mut Pairing<'_>) -> (f64, f64) {
        let Self { paired, tied, place, buckets, with_influence } = self;
        let rank = |at: u32| y.at(at as usize);
        let products = match pairing {
            Pairing::Observed(place) => {
                let observed = &place[rows.clone()];
                pair_all(x, paired, tied, |row| (observed[row] as usize, rank(observed[row])))
            }
            Pairing::Drawn(generator) if rows.len() <= MOST_ROWS_AT_ONCE => {
                place.iter_mut().zip(0..).for_each(|(place, at)| *place = at);
                // Fisher and Yates from the back: what is swapped in stays.
                pair_all(x, paired, tied, |row| {
                    place.swap(row, generator.below(row as u32 + 1) as usize);
                    (place[row] as usize, rank(place[row]))
                })
            }
            Pairing::Drawn(generator) => {
                buckets.draw(place, generator);
                let products = pair_all(x, paired, tied, |row| {
                    let seat = buckets.seat(row);
                    (seat, rank(place[seat]))
                });
                buckets.put_in_place(place, paired);
                products
            }
        };
        (products, if *with_influence { influence_squares(y, paired, products) } else { 0.0 })
    }
}

/// What a product of whole ranks of a stratum is multiplied by.
fn unit_of(rows: &Range<usize>) -> f64 {
    0.25 / (rows.len() as f64).powi(2)
}

/// Midranks of values that are in order, times two, less their number and 1.
fn ranks(order: &[u64], values: &[f64]) -> Vec<f64> {
    let n = order.len() as f64;
    let mut ranks = Vec::with_capacity(order.len());
    for tied in order.chunk_by(|&a, &b| values[row_of(a)] == values[row_of(b)]) {
        let (first, last) = (ranks.len() + 1, ranks.len() + tied.len());
        ranks.resize(last, (first + last) as f64 - n - 1.0);
    }
    ranks
}

/// Pairs the rows of a stratum, from the last in the order of x to the first, puts what that order says of each into the
/// seat that it gets with its rank of y, and returns the sum of products. All sums are of whole numbers.
#[inline(always)]
fn pair_all<X: Ranks>(
    x: X,
    paired: &mut [[f64; 2]],
    tied: &mut Vec<(usize, f64)>,
    mut seat_of: impl FnMut(usize) -> (usize, f64),
) -> f64 {
    let (mut products, mut above) = (0.0, 0.0);
    let mut last = paired.len();
    while last > 0 {
        last -= 1;
        let rank = x.at(last);
        let (seat, mut other) = seat_of(last);
        products += rank * other;
        paired[seat] = [rank, rank * other + 2.0 * above + other];
        if X::TIES && last > 0 && x.at(last - 1) == rank {
            tied.clear();
            tied.push((seat, other));
            while last > 0 && x.at(last - 1) == rank {
                last -= 1;
                let (seat, one) = seat_of(last);
                products += rank * one;
                paired[seat] = [rank, rank * one + 2.0 * above + one];
                tied.push((seat, one));
                other += one;
            }
            // Rows that are tied are above each other by half.
            for &(seat, one) in &*tied {
                paired[seat][1] += other - one;
            }
        }
        above += other;
    }
    products
}

/// The sum of squares of the influence of the rows of a stratum, to which the order of y has the last part.
fn influence_squares<Y: Ranks>(y: Y, paired: &[[f64; 2]], products: f64) -> f64 {
    // Each of the three parts has the same mean.
    let mean = 3.0 * products / paired.len() as f64;
    let (mut squares, mut above) = (0.0, 0.0);
    let mut last = paired.len();
    while last > 0 {
        let (end, rank, mut tied) = (last, y.at(last - 1), 0.0);
        while last > 0 && (last == end || Y::TIES && y.at(last - 1) == rank) {
            last -= 1;
            tied += paired[last][0];
        }
        for [_, known] in &paired[last..end] {
            let psi = known + 2.0 * above + tied - mean;
            squares += psi * psi;
        }
        above += tied;
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(n: u32) -> (Vec<f64>, Vec<f64>, Vec<u32>) {
        let x: Vec<f64> = (0..n).map(|i| f64::from(i * 37 % 101)).collect();
        let y: Vec<f64> = (0..n).map(|i| f64::from(i * i % 83) + 0.3 * x[i as usize]).collect();
        (x, y, (0..n).map(|i| i % 3).collect())
    }

    fn test_of(x: &[f64], y: &[f64], stratum: Option<&[u32]>) -> RankCorrelationTest {
        RankCorrelationTest::new(x, y, stratum, Studentize::Unpooled, &Control::default()).unwrap()
    }

    #[test]
    fn the_order_of_rows_changes_nothing() {
        let (x, y, stratum) = columns(200);
        let back = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
        let stratum_back: Vec<u32> = stratum.iter().rev().copied().collect();
        let control = Control::default();
        let draws = |replicates| Draws { replicates, seed: 3, series: 1 };
        let run = |x: &[f64], y: &[f64], stratum: Option<&[u32]>| {
            let test = test_of(x, y, stratum);
            (test.observed(), test.evaluations()[0].variance, test.null_distribution(&draws(0..50), &control).unwrap())
        };
        assert_eq!(run(&x, &y, None), run(&back(&x), &back(&y), None));
        assert_eq!(run(&x, &y, Some(&stratum)), run(&back(&x), &back(&y), Some(&stratum_back)));
        let part = test_of(&x, &y, None).null_distribution(&draws(20..30), &control).unwrap();
        assert_eq!(part[..], run(&x, &y, None).2[20..30]);
    }

    /// As the definition says it, in O(n^2).
    #[test]
    fn the_variance_is_that_of_the_influence_of_rows() {
        let (x, y, _) = columns(60);
        let n = x.len();
        let below = |a: f64, b: f64| {
            if a < b {
                1.0
            } else if a == b {
                0.5
            } else {
                0.0
            }
        };
        let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let u: Vec<f64> = (0..n).map(|i| mean(&|j| below(x[j], x[i])) - 0.5).collect();
        let w: Vec<f64> = (0..n).map(|i| mean(&|j| below(y[j], y[i])) - 0.5).collect();
        let psi = |i: usize| u[i] * w[i] + mean(&|j| below(x[i], x[j]) * w[j]) + mean(&|j| below(y[i], y[j]) * u[j]);
        let center = mean(&psi);
        let squares = (0..n).map(|i| (psi(i) - center).powi(2)).sum::<f64>();
        let scale = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        let expected = squares / (scale(&u) * scale(&w));
        let found = test_of(&x, &y, None).evaluations()[0];
        assert!((found.variance / expected - 1.0).abs() < 1e-12);
        let r = (0..n).map(|i| u[i] * w[i]).sum::<f64>() / (scale(&u) * scale(&w)).sqrt();
        assert!((found.value / r - 1.0).abs() < 1e-12);
    }

    /// Ranks that agree have no variance, to the last bit.
    #[test]
    fn a_perfect_correlation() {
        let (x, _, _) = columns(101);
        let test = test_of(&x, &x.iter().map(|x| x.exp()).collect::<Vec<_>>(), None);
        assert_eq!((test.evaluations()[0].value, test.evaluations()[0].variance), (1.0, 0.0));
        assert_eq!(test.observed(), f64::INFINITY);
    }

    /// Many rows are permuted by buckets: each place is taken once, and the products are those of the pairs.
    #[test]
    fn permutations_of_many_rows() {
        let n = 3 * MOST_ROWS_AT_ONCE / 2;
        for ties in [1, 7] {
            let x: Vec<f64> = (0..n).map(|i| (i / ties) as f64).collect();
            let test = test_of(&x, &x, None);
            let mut scratch = test.scratch();
            let mut squares = 0.0;
            for replicate in 0..60 {
                let mut generator = RowGenerator::new(1, Domain::Permutation, 0, replicate, 0);
                let (r, variance) = test.pairing(&mut scratch, Pairing::Drawn(&mut generator));
                squares += test.statistic((r, variance)).powi(2);
                assert!((variance * n as f64 - 1.0).abs() < 0.05, "{variance}");
                let mut seen = scratch.place.clone();
                seen.sort_unstable();
                assert!(seen.iter().zip(0..).all(|(&at, i)| at == i));
                let ranks: f64 = scratch.paired.iter().map(|pair| pair[0]).sum();
                let y = |i: usize| test.y.as_ref().map_or_else(|| Distinct::of(n).at(i), |ranks| ranks[i]);
                let products: f64 = scratch.paired.iter().enumerate().map(|(i, pair)| pair[0] * y(i)).sum();
                assert_eq!(ranks, 0.0);
                assert!((products / (4.0 * (n as f64).powi(2)) / test.scale - r).abs() < 1e-12);
            }
            // Chi-square on 60 degrees, tail 1e-6 on each side.
            assert!((20.0..130.0).contains(&squares), "{squares}");
        }
    }

    /// A correlation that the strata make is none within them; many strata of two rows have a variance.
    #[test]
    fn strata_explain_what_they_do() {
        let x: Vec<f64> = (0..300).map(|i| f64::from(i % 3) * 10.0 + f64::from(i * 7 % 11)).collect();
        let y: Vec<f64> = (0..300).map(|i| f64::from(i % 3) * 10.0 + f64::from(i * 5 % 13)).collect();
        let stratum: Vec<u32> = (0..300).map(|i| i % 3).collect();
        let within = test_of(&x, &y, Some(&stratum));
        assert!(test_of(&x, &y, None).evaluations()[0].value > 0.6 && within.evaluations()[0].value.abs() < 0.1);
        let pairs: Vec<u32> = (0..300).map(|i| i % 150).collect();
        assert!(test_of(&x, &y, Some(&pairs)).evaluations()[0].variance > 1e-3);
    }
}
