//! Of the sums, too: both work on the same rows.

use super::*;
use crate::influence::columns::tests::Strided;
use crate::influence::columns::{Columns, Numbers};
use crate::influence::marginal::{BlockSums, TERMS, sums};
use crate::influence::moments::Group;
use crate::random::{Domain, Stream};

/// Features with two values in even places, continuous ones in odd places; the last two are binary.
struct Data {
    features: Vec<f64>,
    label: Vec<u8>,
    score: Vec<f64>,
    rows: Vec<i64>,
    p: usize,
}

impl Data {
    fn new(n: usize, p: usize) -> Self {
        let mut stream = Stream::new(3, Domain::Simulation, 0, 0, 0);
        let binary = |j: usize| j.is_multiple_of(2) || j + 2 >= p;
        let mut number = |j: usize| {
            let uniform = stream.uniform();
            if binary(j) { if uniform < 0.3 { 5.0 } else { 2.0 } } else { 40.0 / (uniform + 0.01) - 7.0 }
        };
        let features = (0..n).flat_map(|_| 0..p).map(&mut number).collect();
        let score: Vec<f64> = (0..n).map(|_| number(1)).map(|x| 1.0 / (x + 9.0)).collect();
        let label = (0..n).map(|_| u8::from(number(0) > 3.0)).collect();
        let rows = (0..n as i64).filter(|row| row % 5 != 3).collect();
        Self { features, label, score, rows, p }
    }

    /// The same rows in another order.
    fn reversed(&self) -> Self {
        let n = self.score.len();
        let features = self.features.chunks(self.p).rev().flatten().copied().collect();
        let mut rows: Vec<i64> = self.rows.iter().map(|row| n as i64 - 1 - row).collect();
        rows.sort_unstable();
        let (label, score) = (self.label.iter().rev().copied().collect(), self.score.iter().rev().copied().collect());
        Self { features, label, score, rows, p: self.p }
    }

    fn with<T>(&self, threads: usize, ask: impl FnOnce(&Rows<'_>, &Control) -> T) -> T {
        let control = Control::with_threads(threads);
        let strided: Vec<_> = (0..self.p).map(|place| Strided { data: &self.features, place, width: self.p }).collect();
        let numbers: Vec<&dyn Numbers> = strided.iter().map(|one| one as &dyn Numbers).collect();
        let columns = Columns::look(&numbers, &control).unwrap().unwrap();
        let group = Group::new(&self.rows, &self.label, &self.score).unwrap();
        ask(&Rows::new(&columns, &numbers, &vec![5.0; self.p], group).unwrap(), &control)
    }

    /// The feature as scores take it: 0 and 1, or standardised.
    fn z(&self, place: usize) -> Vec<f64> {
        let x: Vec<f64> = self.rows.iter().map(|&row| self.features[row as usize * self.p + place]).collect();
        if x.iter().all(|&x| x == 5.0 || x == 2.0) {
            return x.iter().map(|&x| f64::from(u8::from(x == 5.0))).collect();
        }
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let scale = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        x.iter().map(|x| (x - mean) / scale).collect()
    }

    fn parts(&self, index: usize) -> [f64; PARTS] {
        let row = self.rows[index] as usize;
        let (label, score) = (f64::from(self.label[row]), self.score[row]);
        [1.0, label, score, label * score]
    }

    fn sum(&self, term: impl Fn(usize) -> f64) -> f64 {
        (0..self.rows.len()).map(term).sum()
    }
}

fn near(found: f64, expected: f64, error: f64) {
    assert!((found - expected).abs() < error * (1.0 + expected.abs()), "{found} is not {expected}");
}

#[test]
fn sums_are_those_of_a_plain_loop() {
    let data = Data::new(2 * ROWS + 77, 19);
    let found = data.with(2, sums).unwrap();
    for j in [0, 1, 15, 16, 18] {
        let z = data.z(j);
        let of = &found.of_features[j];
        let mut next = 2 * PARTS;
        for m in 0..PARTS {
            near(of[m], data.sum(|i| z[i] * data.parts(i)[m]), 1e-10);
            near(of[PARTS + m], data.sum(|i| z[i].powi(2) * data.parts(i)[m]), 1e-10);
            for other in m..PARTS {
                near(of[next], data.sum(|i| z[i] * data.parts(i)[m] * data.parts(i)[other]), 1e-10);
                next += 1;
            }
        }
    }
}

fn some_influences(p: usize) -> Vec<Influence> {
    let number = |j: usize, c: usize| ((j * 7 + c) % 5) as f64 - 2.0;
    (0..p)
        .map(|j| Influence {
            level: std::array::from_fn(|m| number(j, m)),
            slope: std::array::from_fn(|m| number(j, 4 + m)),
            curve: number(j, 8),
        })
        .collect()
}

fn some_leverages(p: usize, spread: f64) -> Vec<Leverage> {
    let leverage = Leverage { mean: 0.1, slope: 0.2, factor: 1.5, spread };
    (0..p).map(|j| if j % 2 == 1 && j + 2 < p { leverage } else { Leverage::default() }).collect()
}

const PARTS_OF_U: [f64; PARTS] = [0.1, 0.5, -0.4, 0.2];

#[test]
fn the_matrix_is_that_of_a_plain_loop() {
    let data = Data::new(ROWS + 300, 21);
    let n = data.rows.len() as f64;
    let (influences, leverages) = (some_influences(21), some_leverages(21, n - 1.0));
    let found = data.with(2, |rows, control| {
        gram(rows, &sums(rows, control).unwrap(), &influences, PARTS_OF_U, &leverages, control).unwrap()
    });
    let z: Vec<Vec<f64>> = (0..21).map(|j| data.z(j)).collect();
    let influence = |i: usize, j: usize| {
        let (one, z) = (&influences[j], z[j][i]);
        let part = |m: usize| (one.level[m] + one.slope[m] * z) * data.parts(i)[m];
        (0..PARTS).map(part).sum::<f64>() + one.curve * z * z
    };
    for (j, k) in [(0, 0), (3, 17), (17, 3), (20, 20), (15, 16)] {
        let expected = data.sum(|i| influence(i, j) * influence(i, k));
        let size = (data.sum(|i| influence(i, j).powi(2)) * data.sum(|i| influence(i, k).powi(2))).sqrt();
        near(found.products[j * 21 + k] / size, expected / size, 1e-5);
    }
    let expected = data.sum(|i| {
        let z = z[3][i];
        let pull = 1.0 / n + z * z / (n - 1.0);
        let u: f64 = data.parts(i).iter().zip(PARTS_OF_U).map(|(part, share)| part * share).sum();
        (influence(i, 3) + 1.5 * z * (u - 0.1 - 0.2 * z) * pull / (1.0 - pull)).powi(2)
    });
    near(found.squares[3], expected, 1e-11);
    assert_eq!(found.squares[2], 0.0);
}

#[test]
fn no_order_of_rows_and_no_threads_change_a_bit() {
    let data = Data::new(3 * ROWS + 5, 18);
    let ask = |data: &Data, threads| {
        data.with(threads, |rows, control| {
            let sums = sums(rows, control).unwrap();
            let leverages = some_leverages(18, 9e3);
            let gram = gram(rows, &sums, &some_influences(18), PARTS_OF_U, &leverages, control).unwrap();
            (sums, gram)
        })
    };
    let found = ask(&data, 1);
    assert_eq!(ask(&data, 3), found);
    assert_eq!(ask(&data.reversed(), 2), found);
    let plain = |data: &Data| data.sum(|i| data.z(1)[0] * data.parts(i)[2]);
    assert_ne!(plain(&data).to_bits(), plain(&data.reversed()).to_bits());
}

#[test]
fn the_bits_are_the_same_for_every_instruction_set() {
    let data = Data::new(600, 18);
    data.with(1, |rows, control| {
        let whole = sums(rows, control).unwrap();
        let leverages = some_leverages(18, 479.0);
        let influences = some_influences(18);
        let pass = Pass::new(rows, &whole, &influences, PARTS_OF_U, &leverages);
        let look = |set: InstructionSet| {
            let mut most = vec![[[0.0; LANES]; 2]; 2];
            set.run(BlockMost { pass: &pass, range: 0..300, most: &mut most });
            most
        };
        let all: Vec<_> = InstructionSet::available().into_iter().map(look).collect();
        assert!(all.iter().all(|one| *one == all[0]));
        let pass = &Pass { units: units(&all[0]), ..pass };
        let by_set = |set: InstructionSet| {
            let mut sums = vec![[[[0.0; LANES]; 2]; TERMS]; 2];
            set.run(BlockSums { rows, ranges: &whole.ranges, range: 0..300, sums: &mut sums });
            let mut state = State::new(pass);
            set.run(BlockGram { pass, range: 0..300, state: &mut state });
            (sums, state.block, state.block_squares)
        };
        let all: Vec<_> = InstructionSet::available().into_iter().map(by_set).collect();
        assert!(all.iter().all(|one| *one == all[0]));
    });
}

#[test]
fn a_number_far_away_and_a_constant_are_standardised() {
    let mut data = Data::new(500, 5);
    data.features[1] = 1e12;
    data.rows.iter().for_each(|&row| data.features[row as usize * 5 + 3] = 0.1);
    data.features[3 * 5 + 3] = 1e300;
    let found = data.with(1, sums).unwrap();
    near(found.of_features[1][PARTS], data.rows.len() as f64 - 1.0, 1e-9);
    assert_eq!(found.of_features[3][..2 * PARTS], [0.0; 2 * PARTS]);
}

#[test]
fn lists_of_other_lengths_are_refused() {
    let data = Data::new(50, 5);
    data.with(1, |rows, control| {
        let sums = sums(rows, control).unwrap();
        assert!(gram(rows, &sums, &some_influences(4), PARTS_OF_U, &some_leverages(5, 9.0), control).is_err());
        assert!(Rows::new(rows.columns, rows.numbers, &[1.0], rows.group).is_err());
        let other = Group::new(&[0], &[1], &[0.5]).unwrap();
        assert!(Rows::new(rows.columns, rows.numbers, &[1.0; 5], other).is_err());
    });
}
