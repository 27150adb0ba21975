use super::super::{PermutationTest, Studentize, Units};
use super::*;
use crate::random::Stream;

const DRAWS: u64 = 40;

#[derive(Clone)]
struct Data {
    a: Vec<f64>,
    d: Vec<f64>,
    group: Vec<u16>,
    stratum: Vec<u32>,
}

/// Skewed rows of two groups in four strata, one of which has one row of the first group.
fn data() -> Data {
    let mut stream = Stream::new(4, Domain::Simulation, 0, 0, 0);
    let mut data = Data { a: Vec::new(), d: Vec::new(), group: Vec::new(), stratum: Vec::new() };
    for (stratum, sizes) in [[6, 9], [1, 4], [5, 1], [1, 2]].into_iter().enumerate() {
        for (group, size) in sizes.into_iter().enumerate() {
            for _ in 0..size {
                let d = 0.5 + stream.uniform();
                data.a.push(d * (stream.uniform().powi(4) + stratum as f64));
                data.d.push(d);
                data.group.push(group as u16);
                data.stratum.push(stratum as u32);
            }
        }
    }
    data
}

fn test(data: &Data, means: bool, strata: bool) -> RowTest {
    let stratum = strata.then_some(&data.stratum[..]);
    let units = Units { group: &data.group, n_groups: 2, stratum, part: None, of_row: None };
    let below = (!means).then_some(&data.d[..]);
    RowTest::ratio(&data.a, below, units, Studentize::Unpooled, &Control::default()).unwrap()
}

fn shifts(test: &RowTest) -> Shifts {
    test.shifts(&Draws { replicates: 0..DRAWS, seed: 7, series: 1 }, &Control::default()).unwrap()
}

/// T at a gap of 0 is the statistic of the plain test, replicate by replicate.
#[test]
fn unshifted_is_the_plain_test() {
    let data = data();
    for (means, strata) in [(true, false), (false, false), (true, true), (false, true)] {
        let test = test(&data, means, strata);
        let draws = Draws { replicates: 0..DRAWS, seed: 7, series: 1 };
        let null = test.null_distribution(&draws, &Control::default()).unwrap();
        let shifts = shifts(&test);
        assert!((shifts.statistics().0 - test.observed()).abs() < 1e-12, "{means} {strata}");
        for (a, b) in shifts.null_distribution().iter().zip(null) {
            assert!((a - b).abs() <= 1e-10 * b.abs(), "{a} {b}");
        }
    }
}

/// Shifting the rows and testing again gives what the nine numbers give. Rows keep their order when the shift leaves
/// it alone: here sums of replicates are compared through their statistics.
#[test]
fn shifts_are_those_of_the_rows() {
    let data = data();
    for (means, strata) in [(true, false), (false, false), (true, true), (false, true)] {
        let plain = shifts(&test(&data, means, strata));
        for delta in [-0.3, 1e-6] {
            let mut moved = data.clone();
            for i in 0..moved.a.len() {
                if moved.group[i] == 0 {
                    moved.a[i] -= delta * if means { 1.0 } else { moved.d[i] };
                }
            }
            let moved = shifts(&test(&moved, means, strata));
            let (t, h) = statistics(plain.observed, delta);
            let (expected_t, expected_h) = moved.statistics();
            assert!(
                (t - expected_t).abs() < 1e-9 && (h - expected_h).abs() < 1e-9,
                "{means} {strata} {t} {expected_t}"
            );
            if delta.abs() < 1e-3 {
                for (a, b) in plain.replicates().zip(moved.replicates()) {
                    let (a, b) = (statistics(a, delta), statistics(b, 0.0));
                    assert!((a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9, "{a:?} {b:?}");
                }
            }
        }
        // A group sorted by value keeps its order under a shift of all its values: the replicates are the same.
        if means {
            let mut moved = data.clone();
            (0..moved.a.len()).filter(|&i| data.group[i] == 0).for_each(|i| moved.a[i] -= 0.4);
            let moved = shifts(&test(&moved, means, strata));
            for (a, b) in plain.replicates().zip(moved.replicates()) {
                let (a, b) = (statistics(a, 0.4), statistics(b, 0.0));
                assert!((a.0 - b.0).abs() < 1e-8 && (a.1 - b.1).abs() < 1e-8, "{a:?} {b:?}");
            }
        }
    }
}

/// The limits are where the p-value crosses its level, and lie on either side of the estimate.
#[test]
fn limits_are_crossings() {
    let data = data();
    let test = test(&data, true, false);
    let draws = Draws { replicates: 0..399, seed: 7, series: 1 };
    let shifts = test.shifts(&draws, &Control::default()).unwrap();
    let level = 0.05;
    let p = |delta: f64, side: Side| (1.0 + shifts.extremes(delta, side).most() as f64) / 400.0;
    let error = shifts.observed[2].sqrt();
    for (side, outwards) in [(Side::Greater, -1.0), (Side::Less, 1.0)] {
        let limit = shifts.limit(side, level, &Control::default()).unwrap();
        assert!(outwards * (limit - shifts.observed[0]) > 0.0);
        assert!(p(limit + 1e-4 * outwards * error, side) <= level);
        assert!(p(limit - 1e-4 * outwards * error, side) > level);
    }
    // With two rows against two no gap can be excluded at 5 %.
    let units = Units { group: &[0, 0, 1, 1], n_groups: 2, stratum: None, part: None, of_row: None };
    let few = RowTest::ratio(&[1.0, 2.5, 3.0, 4.0], None, units, Studentize::Unpooled, &Control::default()).unwrap();
    assert_eq!(self::shifts(&few).limit(Side::Less, 0.025, &Control::default()).unwrap(), f64::INFINITY);
}

#[test]
fn ranges_join_and_threads_do_not_matter() {
    let test = test(&data(), false, true);
    let part = |replicates| {
        let draws = Draws { replicates, seed: 7, series: 1 };
        test.shifts(&draws, &Control::default()).unwrap().replicates().map(|shift| shift.map(f64::to_bits)).collect()
    };
    let all: Vec<[u64; NUMBERS]> = part(0..37);
    let joined: Vec<_> = [part(0..5), part(5..30), part(30..37)].concat();
    assert_eq!(all, joined);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(pool.install(|| part(0..37)), all);
}
