//! The distance to a box along rays from one of its vertices.
//!
//! T(x) = 1/2 min over t in the box of (x - t)' S^-1 (x - t) is found by its dual, the largest
//! gamma'x - 1/2 gamma' S gamma less the sum of `high_j` `gamma_j` where `gamma_j` > 0 and of `low_j` `gamma_j`
//! where `gamma_j` < 0, with t = x - S gamma. A coordinate of t is at a bound, or its gamma is 0; while
//! none changes its place, the gammas along x = r w are linear in r.

use crate::numerics::matrix::{backward, cholesky, forward};

/// A sign or a bound counts as kept when it is missed by this part of its scale.
const SLACK: f64 = 1e-11;
/// Exchanges of several coordinates at once that may fail to reduce the number of wrong ones.
const PATIENCE: u32 = 3;
/// Exchanges after which a place is taken as it is; never seen.
const MOST_EXCHANGES: u32 = 10_000;

/// Where a coordinate of t is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Inside,
    Low,
    High,
}

/// The box seen from one of its vertices, and room for the search.
pub(super) struct Rays<'a> {
    curvature: &'a [f64],
    /// Bounds relative to the vertex.
    low: Vec<f64>,
    high: Vec<f64>,
    places: Vec<Place>,
    /// The coordinates at a bound; their gammas are r slope - offset.
    active: Vec<usize>,
    slope: Vec<f64>,
    offset: Vec<f64>,
    factor: Vec<f64>,
    /// The places to change.
    exchange: Vec<(usize, Place)>,
}

impl<'a> Rays<'a> {
    pub(super) fn new(curvature: &'a [f64], low: Vec<f64>, high: Vec<f64>) -> Self {
        let places = vec![Place::Inside; low.len()];
        let (slope, offset, factor) = (Vec::new(), Vec::new(), Vec::new());
        Self { curvature, low, high, places, active: Vec::new(), slope, offset, factor, exchange: Vec::new() }
    }

    /// The r at which T(r w) reaches q > 0, infinite when it never does.
    pub(super) fn reach(&mut self, w: &[f64], q: f64) -> f64 {
        let size = w.len();
        let root = f64::sqrt(2.0 * q);
        // One coordinate that is far enough out is enough.
        let alone = |j: usize| {
            let bound = if w[j] > 0.0 { self.high[j] } else { -self.low[j] };
            (bound + root * f64::sqrt(self.curvature[j * size + j])) / w[j].abs()
        };
        let mut high = (0..size).filter(|&j| w[j] != 0.0).map(alone).fold(f64::INFINITY, f64::min);
        if high == f64::INFINITY {
            return high;
        }
        let mut low = 0.0;
        let mut r = high;
        // The places of the last ray are a poor guess: its neighbour in the lattice is far away.
        self.places.fill(Place::Inside);
        for _ in 0..100 {
            self.project(w, r, q);
            // The piece of T at r is exact as far as it reaches.
            let (square, linear, constant) = self.piece(w);
            let mut next = (linear + f64::sqrt(linear * linear - square * (constant - 2.0 * q))) / square;
            if next.is_finite() && self.wrong(w, next, q).next().is_none() {
                return next;
            }
            let value = 0.5 * ((square * r - 2.0 * linear) * r + constant);
            if value >= q {
                high = high.min(r);
            } else {
                low = r;
            }
            if !(next > low && next < high) {
                // The root of 2 T is convex in r: its tangent does not fall short.
                let distance = f64::sqrt(2.0 * value);
                next = r + (root - distance) * distance / (square * r - linear);
            }
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            if (next - r).abs() <= 1e-13 * r {
                break;
            }
            r = next;
        }
        r
    }

    /// Finds the places at r w: exchanges all coordinates that are wrong, or the last of them alone
    /// when that does not help (block principal pivoting; Judice and Pires, Computers and
    /// Operations Research 21, 1994).
    fn project(&mut self, w: &[f64], r: f64, q: f64) {
        let (mut least, mut patience) = (usize::MAX, PATIENCE);
        for _ in 0..MOST_EXCHANGES {
            self.solve(w);
            let mut exchange = std::mem::take(&mut self.exchange);
            exchange.clear();
            exchange.extend(self.wrong(w, r, q));
            if exchange.len() < least {
                (least, patience) = (exchange.len(), PATIENCE);
            } else {
                patience = patience.saturating_sub(1);
            }
            let first = if patience > 0 { 0 } else { exchange.len().saturating_sub(1) };
            exchange[first..].iter().for_each(|&(j, place)| self.places[j] = place);
            self.exchange = exchange;
            if self.exchange.is_empty() {
                return;
            }
        }
    }

    /// The gammas as functions of r, while no coordinate changes its place:
    /// `S_AA` `gamma_A` = r `w_A` - `bound_A`.
    fn solve(&mut self, w: &[f64]) {
        let size = w.len();
        self.active.clear();
        self.active.extend((0..size).filter(|&j| self.places[j] != Place::Inside));
        self.factor.clear();
        self.slope.clear();
        self.offset.clear();
        for &i in &self.active {
            self.factor.extend(self.active.iter().map(|&j| self.curvature[i * size + j]));
            self.slope.push(w[i]);
            self.offset.push(self.bound(i));
        }
        let count = self.active.len();
        // S is positive definite, and so are its blocks.
        let is_definite = cholesky(&mut self.factor, count, 0.0);
        debug_assert!(is_definite);
        for side in [&mut self.slope, &mut self.offset] {
            forward(&self.factor, count, side);
            backward(&self.factor, count, side);
        }
    }

    fn bound(&self, j: usize) -> f64 {
        if self.places[j] == Place::High { self.high[j] } else { self.low[j] }
    }

    /// The coordinates whose place is not the right one at r, with the place to try instead.
    fn wrong(&self, w: &[f64], r: f64, q: f64) -> impl Iterator<Item = (usize, Place)> {
        let size = w.len();
        let mut next = 0;
        (0..size).filter_map(move |j| {
            // T is of the size of q where this is asked for.
            let deviation = f64::sqrt(2.0 * q * self.curvature[j * size + j]);
            if self.places[j] != Place::Inside {
                let gamma = (r * self.slope[next] - self.offset[next]) * deviation;
                next += 1;
                let kept = if self.places[j] == Place::High { gamma } else { -gamma };
                let is_wrong = kept < -SLACK * q && self.low[j] < self.high[j];
                return is_wrong.then_some((j, Place::Inside));
            }
            let product = |(index, &i): (usize, &usize)| {
                self.curvature[j * size + i] * (r * self.slope[index] - self.offset[index])
            };
            let t = r * w[j] - self.active.iter().enumerate().map(product).sum::<f64>();
            let slack = SLACK * (deviation + (r * w[j]).abs());
            if t <= self.high[j] + slack && t >= self.low[j] - slack {
                return None;
            }
            Some((j, if t < self.low[j] { Place::Low } else { Place::High }))
        })
    }

    /// The coefficients of (r w - bound)' `S_AA`^-1 (r w - bound) = square r^2 - 2 linear r + constant.
    fn piece(&self, w: &[f64]) -> (f64, f64, f64) {
        let (mut square, mut linear, mut constant) = (0.0, 0.0, 0.0);
        for (index, &j) in self.active.iter().enumerate() {
            square += w[j] * self.slope[index];
            linear += w[j] * self.offset[index];
            constant += self.bound(j) * self.offset[index];
        }
        (square, linear, constant)
    }
}
