//! The descent: weights on the rows of a group, step by step against the influence of each, until its gap is shown to
//! be small.
//!
//! Rows are in three parts. The *fit* part says where to go, with the chance of a label in the place of the label; the
//! *stop* part has a one-sided bound of the gap at every iterate, and ends the path; the third is left alone. Rows come
//! as kinds with counts in an order of their own; what blocks of fixed size have is added up in their order: the bits
//! do not depend on threads.

use crate::error::{Error, Result};
use crate::influence::moments::PARTS;
use crate::parallel::{Control, fill, map_blocks};
use crate::simd::{InstructionSet, LANES, Task};

/// Kinds of rows that are looked at together.
const BLOCK: usize = 1 << 13;
/// Parts of the rows: fit, stop, report.
pub const SHARES: usize = 3;
const FIT: usize = 0;
const STOP: usize = 1;

/// A rate of a weighted sum of rates, by the parts 1, label, score and their product of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// In the sum of rates.
    pub weight: f64,
    /// What is counted above.
    pub numerator: [f64; PARTS],
    /// What is counted below.
    pub denominator: [f64; PARTS],
}

/// Kinds of rows, and how many there are of each in each part.
#[derive(Debug, Clone, Copy)]
pub struct Kinds<'a> {
    label: &'a [f64],
    score: &'a [f64],
    counts: &'a [[i64; SHARES]],
}

impl<'a> Kinds<'a> {
    /// Kinds by label, score and counts.
    ///
    /// # Errors
    /// [`Error::Argument`] when the columns differ in length or are empty.
    pub fn new(label: &'a [f64], score: &'a [f64], counts: &'a [[i64; SHARES]]) -> Result<Self> {
        if label.is_empty() || label.len() != score.len() || label.len() != counts.len() {
            let given = format!("of {}, {} and {} kinds", label.len(), score.len(), counts.len());
            return Err(Error::argument("label, score and counts", given, "columns of one length, not empty"));
        }
        Ok(Self { label, score, counts })
    }

    /// Estimated nanoseconds of a path of so many steps on one thread.
    pub fn work(&self, n_steps: usize) -> u64 {
        3 * (self.label.len() as u64).saturating_mul(n_steps as u64 + 2)
    }
}

/// When the descent goes on, fixed before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The length of a step; steps are shorter where a weight would fall below 0.
    pub step: f64,
    /// The bound of |gap| that ends the path.
    pub tolerance: f64,
    /// Standard errors that the bound lies above |gap|.
    pub quantile: f64,
    /// The least share of the effective in all rows of the stop part.
    pub least_share: f64,
    /// The most steps.
    pub max_steps: usize,
}

/// How a path ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The bound was below the tolerance.
    Reached,
    /// Too few rows would have had nearly all of the weight.
    EffectiveSize,
    /// There were as many steps as there may be.
    Steps,
}

/// The weights before the first step, or after one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iterate {
    /// The gap that the fit part expects.
    pub fit_gap: f64,
    /// The gap in the stop part.
    pub gap: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// |gap| and so many standard errors.
    pub bound: f64,
    /// Effective rows of the stop part, of all.
    pub share: f64,
}

/// A descent.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// By step, numbers s: a row's weight is multiplied by 1 - s (1, chance, score, chance score), or 0 if that is less.
    pub steps: Vec<[f64; PARTS]>,
    /// One more than there are steps.
    pub iterates: Vec<Iterate>,
    /// How it ended.
    pub status: Status,
}

/// Follows the descent of a group with these kinds of rows, `chance` being that of a label given the features, towards
/// others.
///
/// # Errors
/// [`Error::Argument`] when `chance` is of another length or nothing is left in the denominator of a rate in the fit
/// part, [`Error::Cancelled`].
pub fn path(
    target: &Kinds<'_>,
    chance: &[f64],
    others: &Kinds<'_>,
    rates: &[Rate],
    rule: Rule,
    control: &Control,
) -> Result<Path> {
    if chance.len() != target.label.len() {
        let accepted = format!("one number for each of {} kinds", target.label.len());
        return Err(Error::argument("chance", format!("of {} kinds", chance.len()), &accepted));
    }
    let instructions = InstructionSet::current()?;
    let goal_fit = group(rates, &sums_of(others, FIT, control)?)?;
    let goal_stop = group(rates, &sums_of(others, STOP, control)?)?;
    let mut blocks = map_blocks(chance.len(), BLOCK, control, |range| {
        let mut block = Block::default();
        for kind in range {
            let counts = target.counts[kind];
            if counts[FIT] > 0 {
                block.fit.push(chance[kind], 0.0, target.score[kind], counts[FIT] as f64);
            }
            if counts[STOP] > 0 {
                block.stop.push(chance[kind], target.label[kind], target.score[kind], counts[STOP] as f64);
            }
        }
        block.fit.fill_up();
        block.stop.fill_up();
        Ok(block)
    })?;
    let mut found = Path { steps: Vec::new(), iterates: Vec::new(), status: Status::Steps };
    let mut step = [0.0; PARTS];
    loop {
        // Both parts take the step, and add up what they have after it.
        fill(
            &mut blocks,
            1,
            control,
            || (),
            |_, blocks, ()| {
                control.check()?;
                for block in blocks {
                    instructions.run(Advance { block, step });
                }
                Ok(())
            },
        )?;
        let (mut fit, mut stop) = ([0.0; PARTS], Sums::default());
        for block in &blocks {
            fit.iter_mut().zip(block.expected).for_each(|(sum, more)| *sum += more);
            stop.add(&block.sums);
        }
        let expected = value(rates, &fit);
        let fit_gap = expected.value - goal_fit.value;
        if !fit_gap.is_finite() {
            let given = format!("0 in the denominator of a rate after {} steps", found.steps.len());
            return Err(Error::argument("the chance of a label in the fit part", given, "a nuisance with both labels"));
        }
        let own = stop.group(rates);
        let gap = own.value - goal_stop.value;
        let standard_error = (own.variance + goal_stop.variance).sqrt();
        let bound = gap.abs() + rule.quantile * standard_error;
        let share = if stop.weight() > 0.0 { stop.weight().powi(2) / stop.squares() / stop.rows } else { 0.0 };
        found.iterates.push(Iterate { fit_gap, gap, standard_error, bound, share });
        if share < rule.least_share {
            found.status = Status::EffectiveSize;
            return Ok(found);
        }
        if bound < rule.tolerance {
            found.status = Status::Reached;
            return Ok(found);
        }
        if found.steps.len() == rule.max_steps {
            return Ok(found);
        }
        let sign = if fit_gap == 0.0 { 0.0 } else { fit_gap.signum() };
        let psi = expected.psi.map(|coefficient| sign * coefficient);
        let largest = largest(&blocks, &psi, rule.step);
        let size = if largest * rule.step > 1.0 { 1.0 / largest } else { rule.step };
        step = psi.map(|coefficient| size * coefficient);
        found.steps.push(step);
    }
}

/// The weights of kinds of rows after the steps of a path, 1 before them.
///
/// # Errors
/// [`Error::Argument`] when the columns differ in length, [`Error::Cancelled`].
pub fn factors(chance: &[f64], score: &[f64], steps: &[[f64; PARTS]], control: &Control) -> Result<Vec<f64>> {
    if chance.len() != score.len() {
        let accepted = format!("one number for each of {} kinds", score.len());
        return Err(Error::argument("chance", format!("of {} kinds", chance.len()), &accepted));
    }
    let instructions = InstructionSet::current()?;
    let mut found = vec![1.0; chance.len()];
    fill(
        &mut found,
        BLOCK,
        control,
        || (),
        |block, values, ()| {
            control.check()?;
            let (chance, score) = (&chance[block * BLOCK..], &score[block * BLOCK..]);
            instructions.run(Follow { chance, score, steps, values });
            Ok(())
        },
    )?;
    Ok(found)
}

/// The value of a weighted sum of rates, its influence by part, and its variance where that is known.
#[derive(Debug, Clone, Copy)]
struct Measured {
    value: f64,
    psi: [f64; PARTS],
    variance: f64,
}

/// By the sums of the parts of rows; NaN where a denominator is 0.
fn value(rates: &[Rate], sums: &[f64; PARTS]) -> Measured {
    let mut found = Measured { value: 0.0, psi: [0.0; PARTS], variance: f64::NAN };
    for rate in rates {
        let base = dot(&rate.denominator, sums);
        let own = if base > 0.0 { dot(&rate.numerator, sums) / base } else { f64::NAN };
        found.value += rate.weight * own;
        let scale = rate.weight * sums[0] / base;
        for part in 0..PARTS {
            found.psi[part] += scale * (rate.numerator[part] - own * rate.denominator[part]);
        }
    }
    found
}

fn dot(one: &[f64; PARTS], other: &[f64; PARTS]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The largest influence in the fit part; any number that makes no step shorter, where none can be.
fn largest(blocks: &[Block], psi: &[f64; PARTS], step: f64) -> f64 {
    let mut ends = [[f64::INFINITY, f64::NEG_INFINITY]; 2];
    for block in blocks {
        for (end, own) in ends.iter_mut().zip(block.fit.ends) {
            *end = [end[0].min(own[0]), end[1].max(own[1])];
        }
    }
    // Linear in both numbers: the largest of a box is in a corner.
    let corners = ends[0].into_iter().flat_map(|chance| ends[1].map(|score| influence(psi, chance, score)));
    let corner = corners.fold(f64::NEG_INFINITY, f64::max);
    if corner * step <= 1.0 {
        return corner;
    }
    let of_block = |block: &Block| {
        let rows = block.fit.chance.iter().zip(&block.fit.score);
        rows.map(|(&chance, &score)| influence(psi, chance, score)).fold(f64::NEG_INFINITY, f64::max)
    };
    blocks.iter().map(of_block).fold(f64::NEG_INFINITY, f64::max)
}

#[inline(always)]
fn influence(psi: &[f64; PARTS], chance: f64, score: f64) -> f64 {
    let (level, slope) = (psi[1].mul_add(chance, psi[0]), psi[3].mul_add(chance, psi[2]));
    slope.mul_add(score, level)
}

/// Sums over weighted rows: of those with label 0 and with label 1, of each 1, score and for squared weights the
/// squared score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    once: [[f64; 2]; 2],
    twice: [[f64; 3]; 2],
    /// Rows that have a weight, and all rows.
    weighted: f64,
    rows: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        let add = |sums: &mut [f64], more: &[f64]| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(self.once.as_flattened_mut(), other.once.as_flattened());
        add(self.twice.as_flattened_mut(), other.twice.as_flattened());
        self.weighted += other.weighted;
        self.rows += other.rows;
    }

    fn weight(&self) -> f64 {
        self.once[0][0] + self.once[1][0]
    }

    fn squares(&self) -> f64 {
        self.twice[0][0] + self.twice[1][0]
    }

    fn group(&self, rates: &[Rate]) -> Measured {
        let [without, with] = self.once;
        let mut found = value(rates, &[self.weight(), with[0], without[1] + with[1], with[1]]);
        let psi = found.psi;
        // The influence is level + slope score, in each of the two.
        let pairs = [(psi[0], psi[2]), (psi[0] + psi[1], psi[2] + psi[3])];
        let square = |((level, slope), twice): ((f64, f64), [f64; 3])| {
            level * level * twice[0] + 2.0 * level * slope * twice[1] + slope * slope * twice[2]
        };
        let squares: f64 = pairs.into_iter().zip(self.twice).map(square).sum();
        found.variance = squares.max(0.0) / self.weight().powi(2) * (self.weighted / (self.weighted - 1.0));
        found
    }
}

/// The sums of kinds in a part, one row's weight being 1.
fn sums_of(kinds: &Kinds<'_>, part: usize, control: &Control) -> Result<Sums> {
    let instructions = InstructionSet::current()?;
    let blocks = map_blocks(kinds.label.len(), BLOCK, control, |range| {
        let mut block = Block::default();
        for kind in range.filter(|&kind| kinds.counts[kind][part] > 0) {
            block.stop.push(0.0, kinds.label[kind], kinds.score[kind], kinds.counts[kind][part] as f64);
        }
        block.stop.fill_up();
        instructions.run(Advance { block: &mut block, step: [0.0; PARTS] });
        Ok(block.sums)
    })?;
    let mut total = Sums::default();
    for sums in &blocks {
        total.add(sums);
    }
    Ok(total)
}

fn group(rates: &[Rate], sums: &Sums) -> Result<Measured> {
    let found = sums.group(rates);
    if !found.value.is_finite() || sums.rows == 0.0 {
        return Err(Error::argument("the others", "0 in the denominator of a rate", "rows in it in each part"));
    }
    Ok(found)
}

/// Rows of a part in a block, whole lanes of them; what fills up the last lanes has the count 0.
#[derive(Debug, Default)]
struct Rows {
    chance: Vec<f64>,
    label: Vec<f64>,
    score: Vec<f64>,
    count: Vec<f64>,
    factor: Vec<f64>,
    /// The least and the largest chance, and score.
    ends: [[f64; 2]; 2],
}

impl Rows {
    fn push(&mut self, chance: f64, label: f64, score: f64, count: f64) {
        if self.chance.is_empty() {
            self.ends = [[chance; 2], [score; 2]];
        }
        for (end, number) in self.ends.iter_mut().zip([chance, score]) {
            *end = [end[0].min(number), end[1].max(number)];
        }
        self.chance.push(chance);
        self.label.push(label);
        self.score.push(score);
        self.count.push(count);
        self.factor.push(1.0);
    }

    fn fill_up(&mut self) {
        if let (Some(&chance), Some(&score)) = (self.chance.last(), self.score.last()) {
            while !self.chance.len().is_multiple_of(LANES) {
                self.push(chance, 0.0, score, 0.0);
            }
        } else {
            self.ends = [[f64::INFINITY, f64::NEG_INFINITY]; 2];
        }
    }
}

#[derive(Debug, Default)]
struct Block {
    fit: Rows,
    stop: Rows,
    /// Of the fit part, sums of the parts of weighted rows with the chance in the place of the label.
    expected: [f64; PARTS],
    /// Of the stop part.
    sums: Sums,
}

type Lanes = [f64; LANES];

/// The numbers of some rows, one lane each.
#[inline(always)]
fn lanes(column: &[f64], first: usize) -> Lanes {
    let mut found = [0.0; LANES];
    found.copy_from_slice(&column[first..first + LANES]);
    found
}

/// The sum of lanes, in the same order on every processor.
#[inline(always)]
fn total(lanes: &Lanes) -> f64 {
    lanes.iter().sum()
}

/// Multiplies weights by 1 - step, or by 0 if that is less.
#[inline(always)]
fn move_on(factor: &mut Lanes, step: &[f64; PARTS], chance: &Lanes, score: &Lanes) {
    for lane in 0..LANES {
        let left = 1.0 - influence(step, chance[lane], score[lane]);
        factor[lane] *= if left > 0.0 { left } else { 0.0 };
    }
}

struct Advance<'a> {
    block: &'a mut Block,
    step: [f64; PARTS],
}

impl Task for Advance<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Block { fit, stop, expected, sums } = self.block;
        let mut fit_sums = [[0.0; LANES]; PARTS];
        for first in (0..fit.chance.len()).step_by(LANES) {
            let (chance, score) = (lanes(&fit.chance, first), lanes(&fit.score, first));
            let (count, mut factor) = (lanes(&fit.count, first), lanes(&fit.factor, first));
            move_on(&mut factor, &self.step, &chance, &score);
            fit.factor[first..first + LANES].copy_from_slice(&factor);
            for lane in 0..LANES {
                let weight = count[lane] * factor[lane];
                let labelled = weight * chance[lane];
                fit_sums[0][lane] += weight;
                fit_sums[1][lane] += labelled;
                fit_sums[2][lane] = weight.mul_add(score[lane], fit_sums[2][lane]);
                fit_sums[3][lane] = labelled.mul_add(score[lane], fit_sums[3][lane]);
            }
        }
        *expected = fit_sums.map(|sum| total(&sum));
        let (mut once, mut twice) = ([[[0.0; LANES]; 2]; 2], [[[0.0; LANES]; 3]; 2]);
        let (mut weighted, mut rows) = ([0.0; LANES], [0.0; LANES]);
        for first in (0..stop.chance.len()).step_by(LANES) {
            let (chance, score) = (lanes(&stop.chance, first), lanes(&stop.score, first));
            let (count, mut factor) = (lanes(&stop.count, first), lanes(&stop.factor, first));
            let label = lanes(&stop.label, first);
            move_on(&mut factor, &self.step, &chance, &score);
            stop.factor[first..first + LANES].copy_from_slice(&factor);
            for lane in 0..LANES {
                rows[lane] += count[lane];
                weighted[lane] += if factor[lane] > 0.0 { count[lane] } else { 0.0 };
                let (weight, score) = (count[lane] * factor[lane], score[lane]);
                let shares = [weight - weight * label[lane], weight * label[lane]];
                for (which, &share) in shares.iter().enumerate() {
                    once[which][0][lane] += share;
                    once[which][1][lane] = share.mul_add(score, once[which][1][lane]);
                    let (square, scored) = (share * factor[lane], share * factor[lane] * score);
                    twice[which][0][lane] += square;
                    twice[which][1][lane] += scored;
                    twice[which][2][lane] = scored.mul_add(score, twice[which][2][lane]);
                }
            }
        }
        *sums = Sums {
            once: once.map(|sums| sums.map(|sum| total(&sum))),
            twice: twice.map(|sums| sums.map(|sum| total(&sum))),
            weighted: total(&weighted),
            rows: total(&rows),
        };
    }
}

struct Follow<'a> {
    chance: &'a [f64],
    score: &'a [f64],
    steps: &'a [[f64; PARTS]],
    values: &'a mut [f64],
}

impl Task for Follow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.values.len();
        for first in (0..n).step_by(LANES) {
            let last = n.min(first + LANES);
            let (mut chance, mut score, mut factor) = ([0.0; LANES], [0.0; LANES], [1.0; LANES]);
            chance[..last - first].copy_from_slice(&self.chance[first..last]);
            score[..last - first].copy_from_slice(&self.score[first..last]);
            for step in self.steps {
                move_on(&mut factor, step, &chance, &score);
            }
            self.values[first..last].copy_from_slice(&factor[..last - first]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Domain, Stream};

    const FALSE_POSITIVES: Rate =
        Rate { weight: 1.0, numerator: [0.0, 0.0, 1.0, -1.0], denominator: [1.0, -1.0, 0.0, 0.0] };
    const RULE: Rule = Rule { step: 0.5, tolerance: 0.05, quantile: 1.645, least_share: 0.1, max_steps: 100 };

    /// The group's scores are larger than those of the others; chance, label, score and counts.
    struct Data {
        chance: Vec<f64>,
        label: Vec<f64>,
        score: Vec<f64>,
        counts: Vec<[i64; SHARES]>,
    }

    impl Data {
        fn new(n: usize, seed: u64, scale: f64) -> Self {
            let mut stream = Stream::new(seed, Domain::Simulation, 0, 0, 0);
            let mut uniform = move || stream.uniform();
            let score: Vec<f64> = (0..n).map(|_| uniform().powf(scale)).collect();
            let chance: Vec<f64> = score.iter().map(|score| 0.2 + 0.5 * score).collect();
            let label = chance.iter().map(|&chance| f64::from(u8::from(uniform() < chance))).collect();
            let counts = (0..n).map(|_| [0; SHARES].map(|_| (uniform() * 3.0) as i64)).collect();
            Self { chance, label, score, counts }
        }

        fn kinds(&self) -> Kinds<'_> {
            Kinds::new(&self.label, &self.score, &self.counts).unwrap()
        }
    }

    fn run(target: &Data, others: &Data, rule: Rule, threads: usize) -> Path {
        let control = Control::with_threads(threads);
        path(&target.kinds(), &target.chance, &others.kinds(), &[FALSE_POSITIVES], rule, &control).unwrap()
    }

    /// Gap and standard error of a part, row by row.
    fn plainly(data: &Data, factor: &[f64], part: usize) -> (f64, f64) {
        let rows = || (0..factor.len()).filter(move |&i| data.counts[i][part] > 0);
        let weight = |i: usize| data.counts[i][part] as f64 * factor[i];
        let base: f64 = rows().map(|i| weight(i) * (1.0 - data.label[i])).sum();
        let rate = rows().map(|i| weight(i) * (1.0 - data.label[i]) * data.score[i]).sum::<f64>() / base;
        let n: f64 = rows().filter(|&i| factor[i] > 0.0).map(|i| data.counts[i][part] as f64).sum();
        let square = |i: usize| weight(i) * factor[i] * ((1.0 - data.label[i]) * (data.score[i] - rate)).powi(2);
        (rate, rows().map(square).sum::<f64>() / base.powi(2) * n / (n - 1.0))
    }

    #[test]
    fn a_path_is_what_its_steps_say() {
        let (target, others) = (Data::new(9_001, 1, 0.5), Data::new(5_000, 2, 2.0));
        let found = run(&target, &others, RULE, 1);
        assert_eq!(found.status, Status::Reached);
        assert_eq!(found.iterates.len(), found.steps.len() + 1);
        for t in [0, found.steps.len()] {
            let factor = factors(&target.chance, &target.score, &found.steps[..t], &Control::default()).unwrap();
            let (own, goal) = (plainly(&target, &factor, STOP), plainly(&others, &vec![1.0; 5_000], STOP));
            let iterate = found.iterates[t];
            assert!((iterate.gap - (own.0 - goal.0)).abs() < 1e-12);
            assert!((iterate.standard_error - (own.1 + goal.1).sqrt()).abs() < 1e-12);
            assert_eq!(iterate.bound, iterate.gap.abs() + 1.645 * iterate.standard_error);
        }
        assert!(found.iterates[..found.steps.len()].iter().all(|one| one.bound >= RULE.tolerance));
    }

    #[test]
    fn it_ends_for_the_reason_that_it_says() {
        let (target, others) = (Data::new(4_000, 1, 0.5), Data::new(4_000, 2, 2.0));
        let few = run(&target, &others, Rule { max_steps: 3, ..RULE }, 1);
        assert_eq!((few.status, few.steps.len()), (Status::Steps, 3));
        let narrow = run(&target, &others, Rule { least_share: 0.9, ..RULE }, 1);
        assert_eq!(narrow.status, Status::EffectiveSize);
        assert!(narrow.iterates.last().unwrap().share < 0.9);
        let long = run(&target, &others, Rule { step: 50.0, max_steps: 1, ..RULE }, 1);
        let factor = factors(&target.chance, &target.score, &long.steps, &Control::default()).unwrap();
        let in_fit = (0..4_000).filter(|&i| target.counts[i][FIT] > 0).map(|i| factor[i]).fold(1.0, f64::min);
        assert!((0.0..1e-12).contains(&in_fit));
    }

    #[test]
    fn the_bits_are_the_same_for_any_threads_and_instruction_set() {
        let (target, others) = (Data::new(3 * BLOCK + 77, 1, 0.5), Data::new(BLOCK + 9, 2, 2.0));
        assert_eq!(run(&target, &others, RULE, 1), run(&target, &others, RULE, 3));
        let steps = [[0.1, -0.2, 0.03, 0.01], [0.2, 0.1, -0.3, 0.02]];
        let by_set = |set: InstructionSet| {
            let mut block = Block::default();
            let mut values = vec![1.0; 1_000];
            for i in 0..1_000 {
                block.fit.push(target.chance[i], 0.0, target.score[i], 2.0);
                block.stop.push(target.chance[i], target.label[i], target.score[i], 3.0);
            }
            block.fit.fill_up();
            block.stop.fill_up();
            for step in steps {
                set.run(Advance { block: &mut block, step });
            }
            set.run(Follow { chance: &target.chance, score: &target.score, steps: &steps, values: &mut values });
            assert_eq!(block.fit.factor[..1_000], values);
            (block.expected, block.sums, values)
        };
        let all: Vec<_> = InstructionSet::available().into_iter().map(by_set).collect();
        assert!(all.iter().all(|one| *one == all[0]));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let data = Data::new(100, 1, 1.0);
        assert!(Kinds::new(&data.label, &data.score[1..], &data.counts).is_err());
        let follow =
            |chance: &[f64]| path(&data.kinds(), chance, &data.kinds(), &[FALSE_POSITIVES], RULE, &Control::default());
        assert!(follow(&data.chance[1..]).is_err());
        assert!(follow(&[1.0; 100]).is_err());
        assert!(factors(&data.chance[1..], &data.score, &[], &Control::default()).is_err());
        let cancelled = Control::default();
        cancelled.cancel();
        let found = path(&data.kinds(), &data.chance, &data.kinds(), &[FALSE_POSITIVES], RULE, &cancelled);
        assert_eq!(found, Err(Error::Cancelled));
    }
}
