//! What it costs the rows of a group to get other scores.
//!
//! A repair sends the rows of a cell (a distinct row of features) to other cells. What closes a gap is linear in the
//! score of the cell that a row is sent to, so of all destinations only the lower convex envelope of (score, cost)
//! matters, cell by cell: an optimal map uses no other. All pairs of cells are looked at, a block of destinations side
//! by side, and none of them is stored.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel::{Control, map_blocks};
use crate::simd::{InstructionSet, Task};

/// Destinations that are looked at side by side.
const BLOCK: usize = 64;
/// Pairs of cells between two looks at the control.
const PAIRS: usize = 1 << 22;
/// Bits of a word of binary columns.
const WORD: usize = 64;

/// Distinct rows of features, all numbers finite; rows of different strata cannot be sent to each other.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// Row by row.
    pub rows: &'a [f64],
    /// The stratum of every row.
    pub strata: &'a [u32],
}

impl Cells<'_> {
    fn len(&self) -> usize {
        self.strata.len()
    }

    fn check(&self, name: &str, width: usize) -> Result<()> {
        if self.rows.len() != self.len() * width {
            let given = format!("{} numbers for {} strata", self.rows.len(), self.len());
            return Err(Error::argument(name, given, &format!("rows of {width} numbers")));
        }
        match self.rows.iter().position(|value| !value.is_finite()) {
            Some(place) => Err(Error::argument(name, self.rows[place], "finite numbers")),
            None => Ok(()),
        }
    }

    fn is_binary(&self, column: usize, width: usize) -> bool {
        self.rows.iter().skip(column).step_by(width).all(|&value| value == 0.0 || value == 1.0)
    }
}

/// Estimated nanoseconds of `pairs` pairs of rows of `width` columns on one thread.
pub fn pair_work(pairs: u64, width: usize) -> u64 {
    pairs.saturating_mul(1 + width as u64 / 6)
}

/// How the cost of binary columns is found: a weighted sum of those that differ.
enum Binary {
    /// All columns weigh the same.
    Equal(f64),
    /// By byte of the columns, the weight of each pattern of differences.
    Tables(Vec<[f64; 256]>),
}

/// Columns as they are compared: binary ones as bits, the others as numbers, column by column.
struct Columns {
    words: Vec<Vec<u64>>,
    numbers: Vec<Vec<f64>>,
}

/// Destinations in the order in which they are looked at, and the cost of a difference.
struct Destinations {
    binary: Binary,
    /// Positions of binary and other columns, and the weights of the latter.
    bits: Vec<usize>,
    others: Vec<usize>,
    weights: Vec<f64>,
    columns: Columns,
    order: Vec<u32>,
    /// By stratum, the range of the order; strata are numbered from 0.
    ranges: Vec<Range<usize>>,
}

impl Destinations {
    /// Checks and orders destinations by stratum, and within one by `key` and place.
    fn new(cells: Cells<'_>, sources: Cells<'_>, weights: &[f64], key: impl Fn(usize) -> f64) -> Result<Self> {
        let width = weights.len();
        if let Some(weight) = weights.iter().find(|weight| !(**weight >= 0.0 && weight.is_finite())) {
            return Err(Error::argument("weights", weight, "finite numbers, none below 0"));
        }
        cells.check("rows", width)?;
        sources.check("rows", width)?;
        let all = cells.len() + sources.len();
        if let Some(code) = cells.strata.iter().chain(sources.strata).find(|&&code| code as usize >= all) {
            return Err(Error::argument("strata", format!("{code} somewhere"), &format!("codes below {all}")));
        }
        let mut order: Vec<u32> = (0..cells.len() as u32).collect();
        order.sort_by(|&one, &other| {
            let (one, other) = (one as usize, other as usize);
            cells.strata[one].cmp(&cells.strata[other]).then(key(one).total_cmp(&key(other)))
        });
        let most = cells.strata.iter().chain(sources.strata).max().map_or(0, |&last| last as usize + 1);
        let mut ranges = vec![0..0; most];
        for (place, &cell) in order.iter().enumerate() {
            let range = &mut ranges[cells.strata[cell as usize] as usize];
            *range = if range.end == 0 { place..place + 1 } else { range.start..place + 1 };
        }
        let (bits, others): (Vec<usize>, Vec<usize>) =
            (0..width).partition(|&column| cells.is_binary(column, width) && sources.is_binary(column, width));
        let binary = binary_costs(&bits, weights);
        let of_others = others.iter().map(|&column| weights[column]).collect();
        let empty = Columns { words: Vec::new(), numbers: Vec::new() };
        let mut made = Self { binary, bits, others, weights: of_others, columns: empty, order, ranges };
        made.columns = made.columns_of(cells, width);
        Ok(made)
    }

    fn columns_of(&self, cells: Cells<'_>, width: usize) -> Columns {
        let row = |&cell: &u32| &cells.rows[cell as usize * width..][..width];
        let word = |columns: &[usize], row: &[f64]| {
            columns.iter().enumerate().fold(0, |word, (bit, &column)| word | (u64::from(row[column] > 0.0) << bit))
        };
        Columns {
            words: self
                .bits
                .chunks(WORD)
                .map(|columns| self.order.iter().map(|cell| word(columns, row(cell))).collect())
                .collect(),
            numbers: self
                .others
                .iter()
                .map(|&column| self.order.iter().map(|cell| row(cell)[column]).collect())
                .collect(),
        }
    }

    /// A row as it is compared.
    fn source(&self, row: &[f64]) -> (Vec<u64>, Vec<f64>) {
        let mut words = vec![0; self.bits.len().div_ceil(WORD)];
        for (bit, &column) in self.bits.iter().enumerate() {
            words[bit / WORD] |= u64::from(row[column] > 0.0) << (bit % WORD);
        }
        (words, self.others.iter().map(|&column| row[column]).collect())
    }

    /// The costs of a block of destinations from a source; those past its end are infinite.
    #[inline(always)]
    fn costs(&self, source: &(Vec<u64>, Vec<f64>), block: Range<usize>) -> [f64; BLOCK] {
        let mut costs = [f64::INFINITY; BLOCK];
        let n = block.len();
        costs[..n].fill(0.0);
        match &self.binary {
            Binary::Equal(weight) => {
                let mut differing = [0u64; BLOCK];
                for (column, &own) in self.columns.words.iter().zip(&source.0) {
                    for (count, word) in differing.iter_mut().zip(&column[block.clone()]) {
                        *count += u64::from((word ^ own).count_ones());
                    }
                }
                for (cost, &count) in costs[..n].iter_mut().zip(&differing) {
                    *cost = count as f64 * weight;
                }
            }
            Binary::Tables(tables) => {
                for (at, table) in tables.iter().enumerate() {
                    let (own, shift) = (source.0[at / 8], 8 * (at % 8));
                    for (cost, word) in costs[..n].iter_mut().zip(&self.columns.words[at / 8][block.clone()]) {
                        *cost += table[((word ^ own) >> shift) as u8 as usize];
                    }
                }
            }
        }
        for ((column, &own), &weight) in self.columns.numbers.iter().zip(&source.1).zip(&self.weights) {
            for (cost, number) in costs[..n].iter_mut().zip(&column[block.clone()]) {
                *cost += weight * (number - own).abs();
            }
        }
        costs
    }
}

fn binary_costs(bits: &[usize], weights: &[f64]) -> Binary {
    let first = bits.first().map_or(0.0, |&column| weights[column]);
    if bits.iter().all(|&column| weights[column] == first) {
        return Binary::Equal(first);
    }
    let table = |columns: &[usize]| {
        std::array::from_fn(|pattern| {
            let differs = |bit: &usize| pattern >> bit & 1 == 1;
            (0..columns.len()).filter(differs).map(|bit| weights[columns[bit]]).sum()
        })
    };
    Binary::Tables(bits.chunks(8).map(table).collect())
}

#[inline(always)]
fn least(costs: &[f64; BLOCK]) -> f64 {
    let mut lanes = [f64::INFINITY; 8];
    for chunk in costs.as_chunks::<8>().0 {
        for (lane, &cost) in lanes.iter_mut().zip(chunk) {
            *lane = if cost < *lane { cost } else { *lane };
        }
    }
    lanes.iter().fold(f64::INFINITY, |best, &lane| if lane < best { lane } else { best })
}

/// The cheapest of the destinations in each direction of the score: all that cost less than those farther out.
struct Lows<'a> {
    to: &'a Destinations,
    source: &'a (Vec<u64>, Vec<f64>),
    range: Range<usize>,
    /// Whether the farthest ones are at the end of the range.
    from_the_end: bool,
    found: &'a mut Vec<(usize, f64)>,
}

impl Task for Lows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut best = f64::INFINITY;
        let Range { start, end } = self.range;
        let n_blocks = (end - start).div_ceil(BLOCK);
        for index in 0..n_blocks {
            let block = if self.from_the_end { n_blocks - 1 - index } else { index };
            let first = start + block * BLOCK;
            let costs = self.to.costs(self.source, first..(first + BLOCK).min(end));
            if least(&costs) >= best {
                continue;
            }
            for step in 0..BLOCK {
                let at = if self.from_the_end { BLOCK - 1 - step } else { step };
                if costs[at] < best {
                    best = costs[at];
                    self.found.push((first + at, best));
                }
            }
        }
    }
}

/// The least of cost and slope times score over a range of destinations.
struct Reduced<'a> {
    to: &'a Destinations,
    source: &'a (Vec<u64>, Vec<f64>),
    range: Range<usize>,
    slope: f64,
    score: &'a [f64],
}

impl Task for Reduced<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut best = f64::INFINITY;
        for first in self.range.clone().step_by(BLOCK) {
            let block = first..(first + BLOCK).min(self.range.end);
            let mut costs = self.to.costs(self.source, block.clone());
            for (cost, score) in costs.iter_mut().zip(&self.score[block]) {
                *cost += self.slope * score;
            }
            let low = least(&costs);
            best = if low < best { low } else { best };
        }
        best
    }
}

/// For every cell the lower convex envelope of (score, cost) over all cells of its stratum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Envelopes {
    /// Where the vertices of each cell start, and at last where they end.
    pub starts: Vec<u64>,
    /// The cells that are vertices, by score; the cell itself, at cost 0, is one of them.
    pub to: Vec<u32>,
    /// What each costs.
    pub cost: Vec<f64>,
}

impl Envelopes {
    fn add(&mut self, to: u32, cost: f64) {
        self.to.push(to);
        self.cost.push(cost);
    }
}

/// Finds the envelopes. The cost is a weighted sum of absolute differences of the columns.
///
/// # Errors
/// [`Error::Argument`] when a list is of another length or not finite, [`Error::Cancelled`].
///
/// ```
/// use fairaudit_core::influence::repair::{Cells, envelopes};
/// let cells = Cells { rows: &[0.0, 1.0, 3.0], strata: &[0, 0, 0] };
/// let found = envelopes(cells, &[1.0], &[0.1, 0.2, 0.9], &Default::default()).unwrap();
/// assert_eq!((&found.to[..2], &found.cost[..2]), (&[0, 2][..], &[0.0, 3.0][..]));
/// ```
pub fn envelopes(cells: Cells<'_>, weights: &[f64], score: &[f64], control: &Control) -> Result<Envelopes> {
    check_length("score", score, cells.len())?;
    let to = Destinations::new(cells, cells, weights, |cell| score[cell])?;
    let sorted: Vec<f64> = to.order.iter().map(|&cell| score[cell as usize]).collect();
    let instructions = InstructionSet::current()?;
    let block = (PAIRS / cells.len().max(1)).max(1);
    let parts = map_blocks(cells.len(), block, control, |range| {
        let mut part = Envelopes::default();
        let (mut left, mut right, mut hull) = (Vec::new(), Vec::new(), Vec::new());
        for cell in range {
            control.check()?;
            let source = to.source(&cells.rows[cell * weights.len()..][..weights.len()]);
            let range = to.ranges[cells.strata[cell] as usize].clone();
            let inside = &sorted[range.clone()];
            let below = range.start + inside.partition_point(|&other| other < score[cell]);
            let above = range.start + inside.partition_point(|&other| other <= score[cell]);
            left.clear();
            right.clear();
            let (to, source) = (&to, &source);
            let lows = Lows { to, source, range: range.start..below, from_the_end: false, found: &mut left };
            instructions.run(lows);
            let lows = Lows { to, source, range: above..range.end, from_the_end: true, found: &mut right };
            instructions.run(lows);
            part.starts.push(part.to.len() as u64);
            convex(score[cell], &left, &sorted, &mut hull);
            for &(place, cost) in hull.iter().rev() {
                part.add(to.order[place], cost);
            }
            part.add(cell as u32, 0.0);
            convex(score[cell], &right, &sorted, &mut hull);
            for &(place, cost) in &hull {
                part.add(to.order[place], cost);
            }
        }
        Ok(part)
    })?;
    let mut found = Envelopes::default();
    for part in parts {
        let before = found.to.len() as u64;
        found.starts.extend(part.starts.iter().map(|start| start + before));
        found.to.extend(part.to);
        found.cost.extend(part.cost);
    }
    found.starts.push(found.to.len() as u64);
    Ok(found)
}

/// Of points from the farthest to the nearest, the vertices of the lower envelope from (`own`, 0), nearest first.
fn convex(own: f64, points: &[(usize, f64)], score: &[f64], hull: &mut Vec<(usize, f64)>) {
    hull.clear();
    let away = |place: usize| (score[place] - own).abs();
    for &(place, cost) in points.iter().rev() {
        // Of one score the cheapest comes first.
        if hull.last().is_some_and(|&(last, _)| away(last) == away(place)) {
            continue;
        }
        while let Some(&(last, last_cost)) = hull.last() {
            let (before, before_cost) =
                hull.len().checked_sub(2).map_or((0.0, 0.0), |at| (away(hull[at].0), hull[at].1));
            // The last one stays when it lies below the line from the one before it to this one.
            let line = (cost - before_cost) * (away(last) - before);
            if (last_cost - before_cost) * (away(place) - before) < line {
                break;
            }
            hull.pop();
        }
        hull.push((place, cost));
    }
}

/// For every cell the least of cost and its slope times the score over all cells of its stratum.
///
/// # Errors
/// [`Error::Argument`] when a list is of another length or not finite, [`Error::Cancelled`].
pub fn reduced_costs(
    cells: Cells<'_>,
    weights: &[f64],
    score: &[f64],
    slope: &[f64],
    control: &Control,
) -> Result<Vec<f64>> {
    check_length("score", score, cells.len())?;
    check_length("slope", slope, cells.len())?;
    let to = Destinations::new(cells, cells, weights, |_| 0.0)?;
    let sorted: Vec<f64> = to.order.iter().map(|&cell| score[cell as usize]).collect();
    let instructions = InstructionSet::current()?;
    let block = (PAIRS / cells.len().max(1)).max(1);
    let parts = map_blocks(cells.len(), block, control, |range| {
        let least = |cell: usize| {
            control.check()?;
            let source = to.source(&cells.rows[cell * weights.len()..][..weights.len()]);
            let range = to.ranges[cells.strata[cell] as usize].clone();
            Ok(instructions.run(Reduced { to: &to, source: &source, range, slope: slope[cell], score: &sorted }))
        };
        range.map(least).collect::<Result<Vec<f64>>>()
    })?;
    Ok(parts.concat())
}

/// For every row the nearest of some known rows of its stratum, the first of equally near ones, and how far it is; a
/// row whose stratum has none gets their number, at an infinite distance.
///
/// # Errors
/// [`Error::Argument`] when a list is of another length or not finite, [`Error::Cancelled`].
pub fn nearest(rows: Cells<'_>, known: Cells<'_>, weights: &[f64], control: &Control) -> Result<(Vec<u32>, Vec<f64>)> {
    let to = Destinations::new(known, rows, weights, |_| 0.0)?;
    let instructions = InstructionSet::current()?;
    let block = (PAIRS / known.len().max(1)).max(1);
    let parts = map_blocks(rows.len(), block, control, |range| {
        let mut lows = Vec::new();
        let mut one = |row: usize| {
            control.check()?;
            let source = to.source(&rows.rows[row * weights.len()..][..weights.len()]);
            let range = to.ranges[rows.strata[row] as usize].clone();
            lows.clear();
            instructions.run(Lows { to: &to, source: &source, range, from_the_end: false, found: &mut lows });
            // Each low is lower than those before it, and the first one that is so low.
            Ok(lows.last().map_or((known.len() as u32, f64::INFINITY), |&(place, cost)| (to.order[place], cost)))
        };
        range.map(&mut one).collect::<Result<Vec<(u32, f64)>>>()
    })?;
    Ok(parts.into_iter().flatten().unzip())
}

fn check_length(name: &str, values: &[f64], n: usize) -> Result<()> {
    if values.len() != n || !values.iter().all(|value| value.is_finite()) {
        return Err(Error::argument(name, format!("{} numbers", values.len()), &format!("{n} finite numbers")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, Stream};

    struct Data {
        rows: Vec<f64>,
        strata: Vec<u32>,
        score: Vec<f64>,
        weights: Vec<f64>,
    }

    impl Data {
        /// Columns of 0 and 1, but for the last `numbers` ones; scores with ties.
        fn new(n: usize, width: usize, numbers: usize, strata: u32, equal: bool) -> Self {
            let mut stream = Stream::new(5, Domain::Simulation, 0, n as u64, width as u64);
            let mut value = |column: usize| {
                let u = stream.uniform();
                if column + numbers < width { f64::from(u < 0.4) } else { u }
            };
            let rows = (0..n * width).map(|place| value(place % width)).collect();
            let mut uniform = || stream.uniform();
            let score = (0..n).map(|_| (uniform() * 20.0).floor() / 20.0).collect();
            let weights = (0..width).map(|_| if equal { 1.0 } else { 0.1 + uniform() }).collect();
            Self { rows, strata: (0..n as u32).map(|i| i % strata).collect(), score, weights }
        }

        fn cells(&self) -> Cells<'_> {
            Cells { rows: &self.rows, strata: &self.strata }
        }

        fn cost(&self, i: usize, j: usize) -> f64 {
            if self.strata[i] != self.strata[j] {
                return f64::INFINITY;
            }
            let width = self.weights.len();
            (0..width).map(|k| self.weights[k] * (self.rows[i * width + k] - self.rows[j * width + k]).abs()).sum()
        }
    }

    fn designs() -> Vec<Data> {
        vec![
            Data::new(150, 5, 0, 1, true),
            Data::new(150, 11, 0, 2, false),
            Data::new(200, 70, 0, 1, true),
            Data::new(120, 9, 3, 3, false),
            Data::new(70, 2, 2, 1, false),
            Data::new(1, 1, 0, 1, true),
        ]
    }

    #[test]
    fn envelopes_are_convex_and_below_all_pairs() {
        for data in designs() {
            let found = envelopes(data.cells(), &data.weights, &data.score, &Control::default()).unwrap();
            for i in 0..data.score.len() {
                let range = found.starts[i] as usize..found.starts[i + 1] as usize;
                let points: Vec<(f64, f64)> =
                    range.map(|at| (data.score[found.to[at] as usize], found.cost[at])).collect();
                for (at, &(_, cost)) in points.iter().enumerate() {
                    let to = found.to[found.starts[i] as usize + at] as usize;
                    assert!((cost - data.cost(i, to)).abs() < 1e-12);
                }
                let slopes: Vec<f64> =
                    points.windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0)).collect();
                assert!(slopes.windows(2).all(|two| two[0] < two[1] + 1e-9));
                for j in (0..data.score.len()).filter(|&j| data.strata[j] == data.strata[i]) {
                    let (f, cost) = (data.score[j], data.cost(i, j));
                    assert!(f >= points[0].0 && f <= points[points.len() - 1].0);
                    let at = points.partition_point(|point| point.0 < f);
                    let height = if points[at].0 == f {
                        points[at].1
                    } else {
                        points[at - 1].1 + slopes[at - 1] * (f - points[at - 1].0)
                    };
                    assert!(height <= cost + 1e-12);
                }
            }
        }
    }

    #[test]
    fn reduced_costs_and_the_nearest_are_those_of_a_plain_loop() {
        for data in designs() {
            let n = data.score.len();
            let slope: Vec<f64> = (0..n).map(|i| 3.0 * ((i % 7) as f64 - 3.0)).collect();
            let found = reduced_costs(data.cells(), &data.weights, &data.score, &slope, &Control::default()).unwrap();
            let half = n.div_ceil(2);
            let width = data.weights.len();
            let known = Cells { rows: &data.rows[..half * width], strata: &data.strata[..half] };
            let (place, distance) = nearest(data.cells(), known, &data.weights, &Control::default()).unwrap();
            for i in 0..n {
                let expected = (0..n).map(|j| data.cost(i, j) + slope[i] * data.score[j]).fold(f64::INFINITY, f64::min);
                assert!((found[i] - expected).abs() < 1e-12);
                let expected = (0..half).map(|j| data.cost(i, j)).fold(f64::INFINITY, f64::min);
                assert!(expected == distance[i] || (distance[i] - expected).abs() < 1e-12);
                assert!(distance[i].is_infinite() == (place[i] as usize == half));
            }
        }
    }

    #[test]
    fn the_bits_are_the_same_for_any_threads_and_instruction_set() {
        for data in designs() {
            let run =
                |threads| envelopes(data.cells(), &data.weights, &data.score, &Control::with_threads(threads)).unwrap();
            assert_eq!(run(1), run(3));
            let to = Destinations::new(data.cells(), data.cells(), &data.weights, |cell| data.score[cell]).unwrap();
            let source = to.source(&data.rows[..data.weights.len()]);
            let by_set = |set: InstructionSet| {
                let mut found = Vec::new();
                let range = to.ranges[0].clone();
                set.run(Lows { to: &to, source: &source, range, from_the_end: true, found: &mut found });
                found
            };
            let all: Vec<_> = InstructionSet::available().into_iter().map(by_set).collect();
            assert!(all.iter().all(|one| *one == all[0]));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let control = Control::default();
        let cells = Cells { rows: &[0.0, 1.0], strata: &[0, 0] };
        assert!(envelopes(cells, &[1.0], &[0.5], &control).is_err());
        assert!(envelopes(cells, &[-1.0], &[0.5, 0.6], &control).is_err());
        assert!(envelopes(cells, &[1.0, 1.0], &[0.5, 0.6], &control).is_err());
        assert!(reduced_costs(cells, &[1.0], &[0.5, 0.6], &[f64::NAN, 0.0], &control).is_err());
        let bad = Cells { rows: &[0.0, f64::NAN], strata: &[0, 0] };
        assert!(nearest(cells, bad, &[1.0], &control).is_err());
        let far = Cells { rows: &[0.0, 1.0], strata: &[0, u32::MAX] };
        assert!(nearest(cells, far, &[1.0], &control).unwrap_err().to_string().contains("codes below 4"));
        control.cancel();
        assert_eq!(envelopes(cells, &[1.0], &[0.5, 0.6], &control), Err(Error::Cancelled));
    }
}
