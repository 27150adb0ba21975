//! The audit value along the flow: losses, ratios and errors of rows at every recorded step.
//!
//! Rows go in tiles, which take the losses and ratios of their own scores, so that scores on the way are never held
//! for all rows; in blocks, which are the unit of work; and in [`PART`]s, whose moments are taken as one. Moments of
//! parts are merged in the order of the rows: ranges of whole parts give the same bits as one call.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::losses::{Growth, Loss, softmax_loss, with_growth};
use super::moments::Moments;
use super::{Flow, same_length};
use crate::error::{Error, Result};
use crate::parallel::{Control, fill, map_blocks};
use crate::simd::{InstructionSet, Task};

/// Rows whose moments are taken as one.
pub const PART: usize = 1 << 14;
/// Numbers of rows on their way that are in memory at a time, unless one part has more.
const HELD: usize = 1 << 20;

/// What is asked of the scores along the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Audit {
    /// Losses below it count as it. None: there is no floor, and ratios that are not finite are left out.
    pub floor: Option<f64>,
    /// The score from which on the decision is 1; None with several scores, of which the largest decides.
    pub boundary: Option<f64>,
}

/// Rows before and after the flow, and the audit value along it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flowed {
    /// For each score, of all rows, at the first and the last recorded step.
    pub start: Vec<f64>,
    /// See `start`.
    pub end: Vec<f64>,
    /// How far each row has moved after the last step: see [`Flow::moved`].
    pub moved: Vec<f64>,
    /// The losses there; NaN where a score is not finite.
    pub loss_start: Vec<f64>,
    /// See `loss_start`.
    pub loss_end: Vec<f64>,
    /// Between the two.
    pub path: Path,
}

/// Sums over rows at each recorded step. Those of ranges of rows are put together by [`Path::extend`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// Number of rows.
    pub n_rows: u64,
    /// By part and recorded step: of the ratios of losses now and at the start.
    pub moments: Vec<Moments>,
    /// Wrong decisions at the start.
    pub wrong_start: u64,
    /// At each recorded step: wrong decisions,
    pub wrong_end: Vec<u64>,
    /// those that were wrong at the start too,
    pub wrong_both: Vec<u64>,
    /// and whether all scores are finite.
    pub finite: Vec<bool>,
}

impl Path {
    /// Of no rows.
    pub fn new(n_points: usize) -> Self {
        let zeros = vec![0; n_points];
        Self { wrong_end: zeros.clone(), wrong_both: zeros, finite: vec![true; n_points], ..Self::default() }
    }

    /// Takes in the path of the rows that follow.
    ///
    /// # Errors
    /// [`Error::Argument`] unless both have the same recorded steps, and these rows are whole parts.
    pub fn extend(&mut self, next: &Self) -> Result<()> {
        same_length("wrong_end", next.wrong_end.len(), self.wrong_end.len())?;
        if !self.n_rows.is_multiple_of(PART as u64) {
            let accepted = format!("ranges of whole parts of {PART} rows, but for the last one");
            return Err(Error::argument("paths", format!("one of {} rows", self.n_rows), &accepted));
        }
        self.n_rows += next.n_rows;
        self.moments.extend_from_slice(&next.moments);
        self.wrong_start += next.wrong_start;
        for (counts, more) in [(&mut self.wrong_end, &next.wrong_end), (&mut self.wrong_both, &next.wrong_both)] {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
        self.finite.iter_mut().zip(&next.finite).for_each(|(all, &more)| *all &= more);
        Ok(())
    }

    /// The moments of all parts, by recorded step.
    pub fn totals(&self) -> Vec<Moments> {
        let n_points = self.wrong_end.len();
        let mut totals = vec![Moments::default(); n_points];
        for part in self.moments.chunks_exact(n_points.max(1)) {
            totals.iter_mut().zip(part).for_each(|(total, part)| total.merge(part));
        }
        totals
    }
}

/// Losses and path of given scores: for each recorded step and score, of all rows. Their [`Flowed::moved`] is empty.
///
/// # Errors
/// [`Error::Cancelled`], and [`Error::Argument`] when lengths do not fit or the loss has no value for a target.
pub fn audit_scores(
    scores: &[f64],
    n_scores: usize,
    targets: &[f64],
    loss: Loss,
    audit: Audit,
    control: &Control,
) -> Result<Flowed> {
    let n = targets.len();
    let n_columns = scores.len() / n.max(1);
    let n_points = n_columns / n_scores.max(1);
    if n_points == 0 {
        return Err(Error::argument("scores", "empty", "those of some rows at one recorded step at least"));
    }
    same_length("scores", scores.len(), n * n_points * n_scores)?;
    loss.check(targets, n_scores)?;
    let columns = |rows: Range<usize>| {
        let scores = (0..n_columns).flat_map(|column| &scores[column * n..][rows.clone()]).copied().collect();
        Ok(Flow { scores, moved: Vec::new() })
    };
    let walk = Walk { targets, loss, n_scores, n_points, tile: 256, block: 1024, width: 0, by_row: true, go: &columns };
    walk.audit(audit, control)
}

/// Rows on their way, those of a tile side by side.
pub(super) struct Walk<'a> {
    pub(super) targets: &'a [f64],
    pub(super) loss: Loss,
    pub(super) n_scores: usize,
    /// Recorded steps.
    pub(super) n_points: usize,
    /// Rows of a tile; blocks are whole tiles, and parts whole blocks.
    pub(super) tile: usize,
    pub(super) block: usize,
    /// Numbers that say how far a row has moved, and whether they lie row by row.
    pub(super) width: usize,
    pub(super) by_row: bool,
    /// Moves the rows of a tile.
    pub(super) go: &'a (dyn Fn(Range<usize>) -> Result<Flow> + Sync),
}

impl Walk<'_> {
    /// All scores on the way.
    pub(super) fn flow(&self, control: &Control) -> Result<Flow> {
        let n = self.targets.len();
        let blocks =
            map_blocks(n, self.block, control, |rows| self.tiles(&rows).map(self.go).collect::<Result<Vec<_>>>())?;
        let mut all = Flow { scores: vec![0.0; n * self.n_points * self.n_scores], moved: vec![0.0; n * self.width] };
        for (tile, rows) in blocks.iter().flatten().zip(self.tiles(&(0..n))) {
            copy_columns(&mut all.scores, &tile.scores, n, &rows);
            self.copy_moved(&mut all.moved, &tile.moved, &rows);
        }
        Ok(all)
    }

    /// What comes of the rows, and the audit value along their way.
    ///
    /// # Errors
    /// [`Error::Argument`] when the scores have no boundary, or several have one.
    pub(super) fn audit(&self, audit: Audit, control: &Control) -> Result<Flowed> {
        if audit.boundary.is_some() != (self.n_scores == 1) {
            let given = audit.boundary.map_or("None".to_owned(), |boundary| boundary.to_string());
            return Err(Error::argument("boundary", given, "a number for one score, None for several"));
        }
        let (n, n_points, instructions) = (self.targets.len(), self.n_points, InstructionSet::current()?);
        let zeros = |columns: usize| vec![0.0; n * columns];
        let mut all = Flowed {
            start: zeros(self.n_scores),
            end: zeros(self.n_scores),
            moved: zeros(self.width),
            loss_start: zeros(1),
            loss_end: zeros(1),
            path: Path::new(n_points),
        };
        let errors = Errors::new(n_points);
        let n_numbers = n_points + 2 * self.n_scores + 2 + self.width;
        let chunk = PART * (HELD / (PART * n_numbers)).max(1);
        let mut held = vec![0.0; n_numbers * chunk.min(n)];
        for first in (0..n).step_by(chunk) {
            let rows = first..n.min(first + chunk);
            let held = &mut held[..rows.len() * n_numbers];
            fill(
                held,
                self.block * n_numbers,
                control,
                || (),
                |i, numbers, ()| {
                    control.check()?;
                    let block = first + i * self.block..rows.end.min(first + (i + 1) * self.block);
                    for tile in self.tiles(&block) {
                        let numbers = &mut numbers[(tile.start - block.start) * n_numbers..][..tile.len() * n_numbers];
                        let flow = (self.go)(tile.clone())?;
                        control.check()?;
                        self.measure(&flow, &self.targets[tile], audit, instructions, numbers, &errors);
                    }
                    control.advance(block.len() as u64);
                    Ok(())
                },
            )?;
            for tile in self.tiles(&rows) {
                self.take(&mut all, &held[(tile.start - first) * n_numbers..][..tile.len() * n_numbers], &tile);
            }
            let mut moments = vec![Moments::default(); rows.len().div_ceil(PART) * n_points];
            fill(&mut moments, 1, control, Vec::new, |i, moments, ratios: &mut Vec<f64>| {
                control.check()?;
                ratios.clear();
                let start = first + i / n_points * PART;
                for tile in self.tiles(&(start..rows.end.min(start + PART))) {
                    let column = (tile.start - first) * n_numbers + i % n_points * tile.len();
                    ratios.extend_from_slice(&held[column..][..tile.len()]);
                }
                if audit.floor.is_none() {
                    ratios.retain(|ratio| ratio.is_finite());
                }
                moments[0] = Moments::of(ratios, instructions);
                Ok(())
            })?;
            all.path.moments.extend(moments);
        }
        errors.tell(&mut all.path);
        all.path.n_rows = n as u64;
        Ok(all)
    }

    fn tiles(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (end, tile) = (rows.end, self.tile);
        rows.clone().step_by(tile).map(move |first| first..end.min(first + tile))
    }

    /// Numbers of the rows of a tile: ratios by recorded step, scores at the start and at the end, losses there, and how
    /// far the rows moved.
    fn measure(
        &self,
        flow: &Flow,
        targets: &[f64],
        audit: Audit,
        instructions: InstructionSet,
        numbers: &mut [f64],
        errors: &Errors,
    ) {
        let n = targets.len();
        let (scores, n_ends) = (&flow.scores, self.n_scores * n);
        let (ratios, numbers) = numbers.split_at_mut(self.n_points * n);
        let (ends, numbers) = numbers.split_at_mut(2 * n_ends);
        let (losses, moved) = numbers.split_at_mut(2 * n);
        let (start, end) = losses.split_at_mut(n);
        ends[..n_ends].copy_from_slice(&scores[..n_ends]);
        ends[n_ends..].copy_from_slice(&scores[scores.len() - n_ends..]);
        moved.copy_from_slice(&flow.moved);
        let floor = audit.floor.unwrap_or(f64::NEG_INFINITY);
        let mut to = Measured { start, end, ratios, errors };
        match (self.loss, audit.boundary) {
            (loss, Some(boundary)) => {
                with_growth!(loss, growth => instructions.run(
                    OneScore { growth, loss, scores, targets, floor, boundary, to }));
            }
            (_, None) => several_scores(self.n_scores, scores, targets, floor, &mut to),
        }
    }

    /// Puts the numbers of a tile among those of all rows.
    fn take(&self, all: &mut Flowed, numbers: &[f64], rows: &Range<usize>) {
        let mut numbers = &numbers[self.n_points * rows.len()..];
        let mut next = |columns: usize| numbers.split_off(..columns * rows.len()).unwrap_or_default();
        let n = self.targets.len();
        copy_columns(&mut all.start, next(self.n_scores), n, rows);
        copy_columns(&mut all.end, next(self.n_scores), n, rows);
        copy_columns(&mut all.loss_start, next(1), n, rows);
        copy_columns(&mut all.loss_end, next(1), n, rows);
        self.copy_moved(&mut all.moved, next(self.width), rows);
    }

    fn copy_moved(&self, all: &mut [f64], moved: &[f64], rows: &Range<usize>) {
        if self.by_row {
            all[rows.start * self.width..][..moved.len()].copy_from_slice(moved);
        } else {
            copy_columns(all, moved, self.targets.len(), rows);
        }
    }
}

/// Puts columns of some rows among those of all `n`.
fn copy_columns(all: &mut [f64], columns: &[f64], n: usize, rows: &Range<usize>) {
    for (all, column) in all.chunks_exact_mut(n).zip(columns.chunks_exact(rows.len())) {
        all[rows.clone()].copy_from_slice(column);
    }
}

/// Wrong decisions of all rows, counted by whoever moves some: sums do not depend on their order.
struct Errors {
    start: AtomicU64,
    /// By recorded step.
    end: Vec<AtomicU64>,
    both: Vec<AtomicU64>,
    finite: Vec<AtomicBool>,
}

impl Errors {
    fn new(n_points: usize) -> Self {
        let zeros = || (0..n_points).map(|_| AtomicU64::default()).collect();
        let finite = (0..n_points).map(|_| AtomicBool::new(true)).collect();
        Self { start: AtomicU64::default(), end: zeros(), both: zeros(), finite }
    }

    /// Adds those of some rows at a recorded step.
    fn add(&self, point: usize, start: u64, end: u64, both: u64, finite: bool) {
        if point == 0 {
            self.start.fetch_add(start, Ordering::Relaxed);
        }
        self.end[point].fetch_add(end, Ordering::Relaxed);
        self.both[point].fetch_add(both, Ordering::Relaxed);
        if !finite {
            self.finite[point].store(false, Ordering::Relaxed);
        }
    }

    fn tell(self, path: &mut Path) {
        let numbers = |counts: Vec<AtomicU64>| counts.into_iter().map(AtomicU64::into_inner).collect();
        path.wrong_start = self.start.into_inner();
        (path.wrong_end, path.wrong_both) = (numbers(self.end), numbers(self.both));
        path.finite = self.finite.into_iter().map(AtomicBool::into_inner).collect();
    }
}

/// Where losses of the rows of a tile go, at the start and at the end, and ratios by recorded step.
struct Measured<'a> {
    start: &'a mut [f64],
    end: &'a mut [f64],
    ratios: &'a mut [f64],
    errors: &'a Errors,
}

/// Losses, ratios and errors of the rows of a tile with one score.
struct OneScore<'a, G> {
    growth: G,
    loss: Loss,
    /// By recorded step.
    scores: &'a [f64],
    targets: &'a [f64],
    floor: f64,
    boundary: f64,
    to: Measured<'a>,
}

impl<G: Growth> Task for OneScore<'_, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { growth, loss, scores, targets, floor, boundary, to } = self;
        let n = targets.len();
        let first = &scores[..n];
        for (point, (scores, ratios)) in scores.chunks_exact(n).zip(to.ratios.chunks_exact_mut(n)).enumerate() {
            for ((now, &score), &target) in to.end.iter_mut().zip(scores).zip(targets) {
                let (side, shift) = loss.side(target);
                let value = growth.value(side * score - shift);
                *now = if score.is_finite() { value } else { f64::NAN };
            }
            if point == 0 {
                to.start.copy_from_slice(to.end);
            }
            for ((ratio, &now), &start) in ratios.iter_mut().zip(&*to.end).zip(&*to.start) {
                *ratio = at_least(floor, now) / at_least(floor, start);
            }
            let is_wrong = |score: f64, target: f64| (score >= boundary) != (target == 1.0);
            let (mut before, mut after, mut both, mut broken) = (0, 0, 0, 0);
            for ((&score, &first), &target) in scores.iter().zip(first).zip(targets) {
                let (was, is) = (is_wrong(first, target), is_wrong(score, target));
                before += u64::from(was);
                after += u64::from(is);
                both += u64::from(was & is);
                broken += u64::from(!score.is_finite());
            }
            to.errors.add(point, before, after, both, broken == 0);
        }
    }
}

/// The same of several scores, of which the largest decides.
fn several_scores(n_scores: usize, scores: &[f64], targets: &[f64], floor: f64, to: &mut Measured<'_>) {
    let n = targets.len();
    let mut was_wrong = vec![false; n];
    for (point, (scores, ratios)) in scores.chunks_exact(n * n_scores).zip(to.ratios.chunks_exact_mut(n)).enumerate() {
        let (mut before, mut after, mut both, mut all_finite) = (0, 0, 0, true);
        for row in 0..n {
            let score = |c: usize| scores[c * n + row];
            let (finite, class) = ((0..n_scores).all(|c| score(c).is_finite()), targets[row] as usize);
            to.end[row] = if finite { softmax_loss(n_scores, class, score) } else { f64::NAN };
            let wrong = largest(n_scores, score) != class;
            if point == 0 {
                was_wrong[row] = wrong;
            }
            before += u64::from(was_wrong[row]);
            after += u64::from(wrong);
            both += u64::from(wrong && was_wrong[row]);
            all_finite &= finite;
        }
        if point == 0 {
            to.start.copy_from_slice(to.end);
        }
        for ((ratio, &now), &start) in ratios.iter_mut().zip(&*to.end).zip(&*to.start) {
            *ratio = at_least(floor, now) / at_least(floor, start);
        }
        to.errors.add(point, before, after, both, all_finite);
    }
}

/// The first of the largest scores; the first that is NaN, if one is.
fn largest(n_scores: usize, score: impl Fn(usize) -> f64) -> usize {
    let better = |best: usize, c: usize| !score(best).is_nan() && (score(c) > score(best) || score(c).is_nan());
    (1..n_scores).fold(0, |best, c| if better(best, c) { c } else { best })
}

/// The loss, or the floor where that is more; NaN stays NaN.
#[inline(always)]
fn at_least(floor: f64, loss: f64) -> f64 {
    if loss < floor { floor } else { loss }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUDIT: Audit = Audit { floor: Some(1e-12), boundary: Some(0.0) };
    /// Recorded steps.
    const POINTS: usize = 3;

    /// Scores on the way and labels.
    fn example(n: usize) -> (Vec<f64>, Vec<f64>) {
        let scores = (0..POINTS * n).map(|i| (i * 7919 % 1009) as f64 / 100.0 - 5.0).collect();
        (scores, (0..n).map(|i| f64::from(u8::from(i * 31 % 7 < 3))).collect())
    }

    fn audited(rows: Range<usize>, n: usize, audit: Audit, threads: usize) -> Result<Flowed> {
        let (scores, targets) = example(n);
        let some: Vec<f64> = scores.chunks(n).flat_map(|scores| &scores[rows.clone()]).copied().collect();
        audit_scores(&some, 1, &targets[rows], Loss::Log, audit, &Control::with_threads(threads))
    }

    #[test]
    fn ranges_of_whole_parts_are_put_together() {
        let n = 4 * PART + 77;
        let whole = audited(0..n, n, AUDIT, 1).unwrap();
        assert_eq!(audited(0..n, n, AUDIT, 3).unwrap(), whole);
        for ends in [vec![PART, n], vec![3 * PART, 4 * PART, n]] {
            let (mut path, mut first) = (Path::new(POINTS), 0);
            for end in ends {
                path.extend(&audited(first..end, n, AUDIT, 2).unwrap().path).unwrap();
                first = end;
            }
            assert_eq!(path, whole.path);
            assert_eq!(path.totals()[2].n, n as u64);
        }
        let mut path = audited(0..99, n, AUDIT, 1).unwrap().path;
        assert!(path.extend(&whole.path).unwrap_err().to_string().contains("ranges of whole parts of 16384 rows"));
    }

    #[test]
    fn it_is_what_rows_say_one_by_one() {
        let n = 500;
        let (found, (scores, targets)) = (audited(0..n, n, AUDIT, 2).unwrap(), example(n));
        let loss = |score: f64, y: f64| f64::ln_1p(((1.0 - 2.0 * y) * score).exp());
        let is_wrong = |score: f64, y: f64| (score >= 0.0) != (y == 1.0);
        for point in 0..POINTS {
            let now = &scores[point * n..][..n];
            let ratio = |i: usize| loss(now[i], targets[i]) / loss(scores[i], targets[i]);
            let total = found.path.totals()[point];
            let mean = (0..n).map(ratio).sum::<f64>() / n as f64;
            assert!((total.mean / mean - 1.0).abs() < 1e-12);
            let squares: f64 = (0..n).map(|i| (ratio(i) - mean).powi(2)).sum();
            assert!((total.squares - squares).abs() <= 1e-10 * squares);
            let wrong = |i: &usize| is_wrong(now[*i], targets[*i]);
            assert_eq!(found.path.wrong_end[point], (0..n).filter(wrong).count() as u64);
            let both = (0..n).filter(|i| wrong(i) && is_wrong(scores[*i], targets[*i])).count();
            assert_eq!(found.path.wrong_both[point], both as u64);
        }
        assert_eq!(found.path.wrong_start, found.path.wrong_both[0]);
        assert!((found.loss_end[7] / loss(scores[2 * n + 7], targets[7]) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn ratios_that_are_not_finite_spoil_the_mean_or_are_left_out() {
        let (mut scores, targets) = example(10);
        scores[23] = f64::INFINITY;
        let of = |floor| {
            let audit = Audit { floor, ..AUDIT };
            audit_scores(&scores, 1, &targets, Loss::Log, audit, &Control::default()).unwrap()
        };
        let (kept, left_out) = (of(Some(0.0)), of(None));
        assert!(kept.loss_end[3].is_nan() && kept.path.totals()[2].mean.is_nan());
        assert_eq!(kept.path.finite, [true, true, false]);
        let n: Vec<u64> = left_out.path.totals().iter().map(|total| total.n).collect();
        assert_eq!(n, [10, 10, 9]);
    }

    #[test]
    fn losses_keep_their_digits_where_they_are_small() {
        let losses = |scores: &[f64], n_scores, targets: &[f64], loss| {
            let audit = Audit { boundary: (n_scores == 1).then_some(0.0), ..AUDIT };
            audit_scores(scores, n_scores, targets, loss, audit, &Control::default()).map(|found| found.loss_start)
        };
        let found = losses(&[40.0, -40.0, 0.0], 1, &[1.0, 1.0, 0.0], Loss::Log).unwrap();
        assert!((found[0] / (-40.0f64).exp() - 1.0).abs() < 1e-15);
        assert_eq!(found[1], 40.0);
        assert!((found[2] - std::f64::consts::LN_2).abs() < 2e-16);
        assert!(losses(&[1.0], 1, &[], Loss::Log).is_err());
        assert!(losses(&[], 1, &[1.0], Loss::Log).unwrap_err().to_string().contains("scores is empty"));
        assert_eq!(losses(&[3.0, -1.0], 1, &[1.0, 0.5], Loss::Squared).unwrap(), [4.0, 2.25]);
        // Two rows, three classes: the first row is sure of its class.
        let found = losses(&[50.0, 0.0, 0.0, 0.0, 10.0, 0.0], 3, &[0.0, 2.0], Loss::Log).unwrap();
        assert!((found[0] / ((-40.0f64).exp() + (-50.0f64).exp()) - 1.0).abs() < 1e-15);
        assert!((found[1] - 3.0f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn the_largest_of_several_scores_decides() {
        assert_eq!(largest(3, |c| [1.0, 2.0, 2.0][c]), 1);
        assert_eq!(largest(3, |c| [1.0, f64::NAN, 7.0][c]), 1);
        let scores = [2.0, 0.0, 1.0, 5.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 9.0, 0.0];
        let several = Audit { boundary: None, ..AUDIT };
        let found = audit_scores(&scores, 3, &[0.0, 1.0], Loss::Log, several, &Control::default()).unwrap();
        assert_eq!((found.start.len(), found.end[1]), (6, 3.0));
        assert_eq!((found.path.wrong_start, found.path.wrong_end, found.path.wrong_both), (0, vec![0, 2], vec![0, 0]));
        let refused = audit_scores(&scores, 3, &[0.0, 1.0], Loss::Log, AUDIT, &Control::default()).unwrap_err();
        assert!(refused.to_string().contains("boundary is 0; accepted: a number for one score, None for several"));
    }
}
