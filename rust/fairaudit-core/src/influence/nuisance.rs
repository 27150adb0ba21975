//! Probabilities given features: ridge logistic regressions along a path of penalties, cross-fitted.
//!
//! A penalty is added to the sum of log losses as `penalty / 2` times the squared coefficients, but for the intercept.
//! Each fold has a fit without its rows for every penalty, the largest first, each from where the one before ended.
//! Steps are those of Newton with the second derivatives of an earlier point, which are taken anew where they lead
//! too slowly: passing over the rows costs far less than they do. Folds are shared by the threads.

use std::ops::Range;

use super::design::{Design, TILE, Visit, add_sums, gram_of, of_lanes, scores_of, visit_all, weights_of};
use crate::error::{Error, Result};
use crate::numerics::exponential::{sigmoid, softplus};
use crate::numerics::matrix::{backward, cholesky, forward};
use crate::parallel::{Control, map_blocks};
use crate::simd::LANES;

/// A fit has ended when no coefficient would move by more than this part of the largest one, or of 1 ...
const CLOSE: f64 = 1e-11;
/// ... and is close enough to choose a penalty by when none would move by more than this.
const NEAR: f64 = 1e-7;
/// Steps that do not shrink by this factor ask for second derivatives anew.
const SLOW: f64 = 0.25;
/// Steps below this that shrink no more are made of rounding.
const ROUNDING: f64 = 1e-7;
/// Where the mean of p (1 - p) is below this, probabilities are 0 and 1: coefficients would grow for ever.
const CERTAIN: f64 = 1e-10;
const MOST_STEPS: usize = 100;
/// The least share of a step that is tried.
const LEAST_SHARE: f64 = 1e-10;
/// What is lost at most on a row: -log(1e-15).
const MOST_LOSS: f64 = 34.538_776_394_910_684;

/// Kinds of rows: how many there are of each in every fold, and how many of them are positive.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// Fold after fold, one number for each kind.
    count: &'a [f64],
    positive: &'a [f64],
    n_folds: usize,
}

impl<'a> Labels<'a> {
    /// Numbers of the rows of a design, fold after fold.
    ///
    /// # Errors
    /// [`Error::Argument`] when a list is of another length or there are fewer than two folds.
    pub fn new(design: &Design, count: &'a [f64], positive: &'a [f64], n_folds: usize) -> Result<Self> {
        let expected = design.len() * n_folds;
        if n_folds < 2 || count.len() != expected || positive.len() != expected {
            let given = format!("{} and {} numbers in {n_folds} folds", count.len(), positive.len());
            return Err(Error::argument("count", given, "at least two folds, with a number for each kind of row"));
        }
        Ok(Self { count, positive, n_folds })
    }

    /// The rows outside of one fold, and those in it; all are outside of none.
    fn of(&self, fold: Option<usize>) -> Part {
        let n = self.count.len() / self.n_folds;
        let total = |values: &[f64], i: usize, keep: &dyn Fn(usize) -> bool| -> f64 {
            (0..self.n_folds).filter(|&k| keep(k)).map(|k| values[k * n + i]).sum()
        };
        let make = |values: &[f64], keep: &dyn Fn(usize) -> bool| (0..n).map(|i| total(values, i, keep)).collect();
        let (inside, outside) = (|k: usize| Some(k) == fold, |k: usize| Some(k) != fold);
        let count: Vec<f64> = make(self.count, &outside);
        let n_rows = count.iter().sum();
        let positive = make(self.positive, &outside);
        Part {
            count,
            positive,
            held_count: make(self.count, &inside),
            held_positive: make(self.positive, &inside),
            n_rows,
        }
    }
}

struct Part {
    count: Vec<f64>,
    positive: Vec<f64>,
    held_count: Vec<f64>,
    held_positive: Vec<f64>,
    n_rows: f64,
}

/// A cross-fitted regression.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossFit {
    /// The mean held-out log loss of each penalty.
    pub losses: Vec<f64>,
    /// The place of the penalty that loses least; of equal ones the larger.
    pub best: usize,
    /// The coefficients with that penalty, fold after fold, each without the rows of the fold.
    pub coefficients: Vec<f64>,
    /// Those of all rows ...
    pub whole: Vec<f64>,
    /// ... and the second derivatives of the penalised loss there.
    pub hessian: Vec<f64>,
}

/// Estimated nanoseconds of [`cross_fit`] on one thread.
pub fn cross_fit_work(design: &Design, n_folds: usize, n_penalties: usize) -> u64 {
    let passes = (8 * n_folds * n_penalties) as u64;
    passes * design.pass_work() + (3 * n_folds as u64 + 6) * design.gram_work()
}

/// Fits the path of penalties without each fold, and all rows with the penalty that loses least.
///
/// # Errors
/// [`Error::Argument`] when there is no penalty or one is not above 0, [`Error::Cancelled`].
pub fn cross_fit(design: &Design, labels: &Labels<'_>, penalties: &[f64], control: &Control) -> Result<CrossFit> {
    if penalties.is_empty() || !penalties.iter().all(|penalty| *penalty > 0.0 && penalty.is_finite()) {
        return Err(Error::argument("penalties", format!("{penalties:?}"), "numbers above 0"));
    }
    let mut order: Vec<usize> = (0..penalties.len()).collect();
    order.sort_by(|&a, &b| penalties[b].total_cmp(&penalties[a]));
    let (all, width) = (labels.of(None), design.width());
    let mut first = Fit::at(design, &all, vec![0.0; width], None, control)?;
    first.solve(penalties[order[0]], NEAR)?;
    let one = |fold: Range<usize>| {
        let part = labels.of(Some(fold.start));
        let share = part.n_rows / all.n_rows;
        let near = first.curvature.iter().map(|entry| share * entry).collect();
        let mut fit = Fit::at(design, &part, first.coefficients.clone(), Some(near), control)?;
        let mut path = vec![(Vec::new(), 0.0); penalties.len()];
        for &place in &order {
            fit.solve(penalties[place], NEAR)?;
            path[place] = (fit.coefficients.clone(), fit.point.held);
        }
        Ok((path, fit.curvature))
    };
    let paths = map_blocks(labels.n_folds, 1, control, one)?;
    let held = |place: usize| paths.iter().map(|(path, _)| path[place].1).sum::<f64>() / all.n_rows;
    let losses: Vec<f64> = (0..penalties.len()).map(held).collect();
    let better = |best: usize, &place: &usize| if losses[place] < losses[best] { place } else { best };
    let best = order.iter().fold(order[0], better);
    let end = |fold: Range<usize>| {
        let (path, curvature) = &paths[fold.start];
        let part = labels.of(Some(fold.start));
        let mut fit = Fit::at(design, &part, path[best].0.clone(), Some(curvature.clone()), control)?;
        fit.solve(penalties[best], CLOSE)?;
        Ok(fit.coefficients)
    };
    let coefficients = map_blocks(labels.n_folds, 1, control, end)?.concat();
    let mean = |c: usize| coefficients.iter().skip(c).step_by(width).sum::<f64>() / labels.n_folds as f64;
    let curvature = Some(std::mem::take(&mut first.curvature));
    let mut whole = Fit::at(design, &all, (0..width).map(mean).collect(), curvature, control)?;
    whole.solve(penalties[best], CLOSE)?;
    whole.look()?;
    Ok(CrossFit { losses, best, coefficients, hessian: whole.penalised(penalties[best]), whole: whole.coefficients })
}

/// What the rows say at some coefficients.
#[derive(Debug, Clone, Default)]
struct Point {
    /// Without the penalty.
    loss: f64,
    gradient: Vec<f64>,
    /// What is lost on the rows of the fold that is left out.
    held: f64,
    /// The sum of p (1 - p).
    spread: f64,
}

struct Fit<'a> {
    design: &'a Design,
    part: &'a Part,
    control: &'a Control,
    coefficients: Vec<f64>,
    point: Point,
    /// Second derivatives of the loss without the penalty, here or at an earlier point.
    curvature: Vec<f64>,
    /// Whether they are those of this point.
    exact: bool,
}

impl<'a> Fit<'a> {
    fn at(
        design: &'a Design,
        part: &'a Part,
        coefficients: Vec<f64>,
        curvature: Option<Vec<f64>>,
        control: &'a Control,
    ) -> Result<Self> {
        let point = pass(design, part, &coefficients, control)?;
        let (known, curvature) = (curvature.is_some(), curvature.unwrap_or_default());
        let mut made = Self { design, part, control, coefficients, point, curvature, exact: false };
        if !known {
            made.look()?;
        }
        Ok(made)
    }

    /// Takes the second derivatives at this point.
    fn look(&mut self) -> Result<()> {
        let mut weigh = Weigh { count: &self.part.count, coefficients: &self.coefficients, found: Vec::new() };
        weigh.found.resize(self.design.len(), 0.0);
        visit_all(self.design, self.control, &mut weigh)?;
        self.curvature = gram_of(self.design, &weigh.found, self.control)?;
        self.exact = true;
        Ok(())
    }

    fn penalised(&self, penalty: f64) -> Vec<f64> {
        let mut matrix = self.curvature.clone();
        let width = self.coefficients.len();
        (1..width).for_each(|c| matrix[c * width + c] += penalty);
        matrix
    }

    /// The factor of the penalised second derivatives, with a little more on their diagonal where they have none.
    fn factor(&self, penalty: f64) -> Vec<f64> {
        let (width, plain) = (self.coefficients.len(), self.penalised(penalty));
        let mean = (0..width).map(|c| plain[c * width + c]).sum::<f64>() / width as f64;
        let mut more = 0.0;
        loop {
            let mut matrix = plain.clone();
            (0..width).for_each(|c| matrix[c * width + c] += more);
            // What is not finite never becomes a factor: its steps are not finite either, and are not taken.
            if cholesky(&mut matrix, width, 1e-14) || more > 1e6 * mean || !mean.is_finite() {
                return matrix;
            }
            more = if more == 0.0 { 1e-10 * mean.max(f64::MIN_POSITIVE) } else { 100.0 * more };
        }
    }

    fn step(&self, penalty: f64, factor: &[f64]) -> Vec<f64> {
        let width = self.coefficients.len();
        let mut step = self.point.gradient.clone();
        for c in 1..width {
            step[c] += penalty * self.coefficients[c];
        }
        forward(factor, width, &mut step);
        backward(factor, width, &mut step);
        step
    }

    /// Goes from where it is to the least penalised loss. Steps are halved until the loss does not grow.
    fn solve(&mut self, penalty: f64, close: f64) -> Result<()> {
        let mut factor = self.factor(penalty);
        let mut before = f64::INFINITY;
        for _ in 0..MOST_STEPS {
            if self.point.spread <= CERTAIN * self.part.n_rows {
                break;
            }
            let mut step = self.step(penalty, &factor);
            let mut size = self.size(&step);
            if size > SLOW * before && size > close && !self.exact {
                self.look()?;
                factor = self.factor(penalty);
                step = self.step(penalty, &factor);
                size = self.size(&step);
            }
            let ended = self.exact && size < ROUNDING && size > 0.5 * before;
            if size <= close || ended || !size.is_finite() {
                break;
            }
            before = size;
            let mut share = 1.0;
            while !self.go(penalty, &step, share)? {
                if self.exact {
                    share /= 2.0;
                    if share < LEAST_SHARE {
                        return Ok(());
                    }
                } else {
                    self.look()?;
                    factor = self.factor(penalty);
                    step = self.step(penalty, &factor);
                }
            }
        }
        Ok(())
    }

    /// The largest step, as a part of the largest coefficient.
    fn size(&self, step: &[f64]) -> f64 {
        let largest = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        largest(step) / largest(&self.coefficients).max(1.0)
    }

    /// Takes a share of a step, if the loss does not grow.
    fn go(&mut self, penalty: f64, step: &[f64], share: f64) -> Result<bool> {
        let moved: Vec<f64> = self.coefficients.iter().zip(step).map(|(old, step)| old - share * step).collect();
        let point = pass(self.design, self.part, &moved, self.control)?;
        let (old, new) =
            (self.point.loss + shrinkage(penalty, &self.coefficients), point.loss + shrinkage(penalty, &moved));
        let taken = new <= old + 1e-12 * old.abs();
        if taken {
            (self.coefficients, self.point, self.exact) = (moved, point, false);
        }
        Ok(taken)
    }
}

fn shrinkage(penalty: f64, coefficients: &[f64]) -> f64 {
    penalty / 2.0 * coefficients[1..].iter().map(|c| c * c).sum::<f64>()
}

fn pass(design: &Design, part: &Part, coefficients: &[f64], control: &Control) -> Result<Point> {
    let gradient = vec![[0.0; LANES]; design.width()];
    let mut found = Pass { part, coefficients, gradient, loss: [0.0; TILE], held: [0.0; TILE], spread: [0.0; TILE] };
    visit_all(design, control, &mut found)?;
    Ok(Point {
        loss: found.loss.iter().sum(),
        gradient: of_lanes(&found.gradient),
        held: found.held.iter().sum(),
        spread: found.spread.iter().sum(),
    })
}

struct Pass<'a> {
    part: &'a Part,
    coefficients: &'a [f64],
    gradient: Vec<[f64; LANES]>,
    loss: [f64; TILE],
    held: [f64; TILE],
    spread: [f64; TILE],
}

impl Visit for Pass<'_> {
    #[inline(always)]
    fn tile(&mut self, rows: Range<usize>, tile: &[[f64; TILE]]) {
        let scores = scores_of(tile, self.coefficients);
        let count = weights_of(&self.part.count, rows.clone());
        let positive = weights_of(&self.part.positive, rows.clone());
        let held_count = weights_of(&self.part.held_count, rows.clone());
        let held_positive = weights_of(&self.part.held_positive, rows);
        let mut rest = [0.0; TILE];
        for i in 0..TILE {
            let (score, p) = (scores[i], sigmoid(scores[i]));
            let of_negative = softplus(score);
            let of_positive = softplus(-score);
            rest[i] = count[i] * p - positive[i];
            self.spread[i] += count[i] * (p * (1.0 - p));
            self.loss[i] += positive[i] * of_positive + (count[i] - positive[i]) * of_negative;
            let capped = |loss: f64| if loss > MOST_LOSS { MOST_LOSS } else { loss };
            self.held[i] +=
                held_positive[i] * capped(of_positive) + (held_count[i] - held_positive[i]) * capped(of_negative);
        }
        add_sums(tile, &rest, &mut self.gradient);
    }
}

/// The weights of rows in the second derivatives: count p (1 - p).
struct Weigh<'a> {
    count: &'a [f64],
    coefficients: &'a [f64],
    found: Vec<f64>,
}

impl Visit for Weigh<'_> {
    #[inline(always)]
    fn tile(&mut self, rows: Range<usize>, tile: &[[f64; TILE]]) {
        let scores = scores_of(tile, self.coefficients);
        let count = weights_of(self.count, rows.clone());
        let mut weights = [0.0; TILE];
        for i in 0..TILE {
            let p = sigmoid(scores[i]);
            weights[i] = count[i] * (p * (1.0 - p));
        }
        let n = rows.len();
        self.found[rows].copy_from_slice(&weights[..n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::influence::design::tests::Data;

    fn labels(n: usize) -> (Vec<f64>, Vec<f64>) {
        let count: Vec<f64> = (0..3 * n).map(|i| f64::from(i % n % 3 == i / n)).collect();
        let positive = count.iter().enumerate().map(|(i, n)| n * f64::from(i.pow(2) % 7 < 3)).collect();
        (count, positive)
    }

    #[test]
    fn gradients_vanish_and_the_best_penalty_is_chosen() {
        let n = 200;
        let data = Data::new(n);
        let (design, (count, positive)) = (data.design(), labels(n));
        let labels = Labels::new(&design, &count, &positive, 3).unwrap();
        let penalties = [0.1, 100.0, 3.0];
        let found = cross_fit(&design, &labels, &penalties, &Control::with_threads(2)).unwrap();
        let gradient = |coefficients: &[f64], keep: &dyn Fn(usize) -> bool, c: usize| -> f64 {
            let one = |i: usize| {
                let row = data.row(i);
                let score: f64 = row.iter().zip(coefficients).map(|(x, b)| x * b).sum();
                let at = (0..3).filter(|&k| keep(k)).map(|k| k * n + i);
                at.map(|j| (count[j] / (1.0 + libm::exp(-score)) - positive[j]) * row[c]).sum::<f64>()
            };
            let shrink = if c == 0 { 0.0 } else { penalties[found.best] * coefficients[c] };
            (0..n).map(one).sum::<f64>() + shrink
        };
        for c in 0..6 {
            assert!(gradient(&found.whole, &|_| true, c).abs() < 1e-8);
            for fold in 0..3 {
                assert!(gradient(&found.coefficients[6 * fold..][..6], &|k| k != fold, c).abs() < 1e-8);
            }
        }
        let least = found.losses.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!(found.losses[found.best], least);
        assert_eq!(found, cross_fit(&design, &labels, &penalties, &Control::with_threads(1)).unwrap());
    }

    #[test]
    fn labels_that_are_all_the_same_end() {
        let data = Data::new(60);
        let (design, (count, _)) = (data.design(), labels(60));
        for positive in [vec![0.0; 180], count.clone()] {
            let labels = Labels::new(&design, &count, &positive, 3).unwrap();
            let found = cross_fit(&design, &labels, &[1.0, 10.0], &Control::default()).unwrap();
            assert!(found.whole[0].abs() > 15.0 && found.whole[0].abs() < 40.0);
            assert!(found.losses.iter().all(|loss| *loss < 1e-6));
        }
    }

    #[test]
    fn other_lengths_and_penalties_are_refused() {
        let data = Data::new(10);
        let design = data.design();
        assert!(Labels::new(&design, &[1.0; 20], &[1.0; 19], 2).is_err());
        assert!(Labels::new(&design, &[1.0; 10], &[1.0; 10], 1).is_err());
        let labels = Labels::new(&design, &[1.0; 20], &[1.0; 20], 2).unwrap();
        for penalties in [&[][..], &[0.0], &[f64::NAN]] {
            assert!(cross_fit(&design, &labels, penalties, &Control::default()).is_err());
        }
        let cancelled = Control::default();
        cancelled.cancel();
        assert_eq!(cross_fit(&design, &labels, &[1.0], &cancelled), Err(Error::Cancelled));
    }
}
