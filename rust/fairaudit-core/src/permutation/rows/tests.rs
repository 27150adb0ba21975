use super::*;
use crate::permutation::stream::Draw;
use crate::random::{Domain, LaneGenerator, Stream};

struct Data {
    positive: Vec<bool>,
    score: Vec<u32>,
    group: Vec<u16>,
}

/// Rows in ascending order of a score with `levels` values.
fn data(rows: usize, levels: u64, groups: u64) -> Data {
    let mut stream = Stream::new(9, Domain::Simulation, rows as u64, levels, groups);
    let mut all: Vec<(u32, bool, u16)> =
        (0..rows).map(|_| (stream.below(levels) as u32, stream.below(3) == 0, stream.below(groups) as u16)).collect();
    all.sort_by_key(|row| row.0);
    Data {
        positive: all.iter().map(|row| row.1).collect(),
        score: all.iter().map(|row| row.0).collect(),
        group: all.iter().map(|row| row.2).collect(),
    }
}

fn auc_test(data: &Data, n_groups: u64) -> RowTest {
    let score: Vec<f64> = data.score.iter().map(|&score| f64::from(score)).collect();
    let units = Units { group: &data.group, n_groups: n_groups as usize, stratum: None, part: None, of_row: None };
    let positive: Vec<u8> = data.positive.iter().map(|&one| u8::from(one)).collect();
    let scores = Scores { score: &score, positive: &positive, weight: None, places: None };
    RowTest::auc(scores, units, false, Studentize::Unpooled, &Control::default()).unwrap()
}

fn mean_test(values: &[f64], group: &[u16], stratum: Option<&[u32]>) -> RowTest {
    let n_groups = group.iter().max().map_or(0, |&g| usize::from(g) + 1);
    RowTest::ratio(
        values,
        None,
        Units { group, n_groups, stratum, part: None, of_row: None },
        Studentize::Unpooled,
        &Control::default(),
    )
    .unwrap()
}

/// Sums of the values in every group (fastest) and lane.
fn group_sums(test: &RowTest, first: u64) -> Vec<f64> {
    let draws = Draws { replicates: 0..1, seed: 5, series: 0 };
    let mut sums = vec![0.0; LANES * test.n_groups()];
    test.replicates(&draws, first, &Control::default(), |block, members| {
        for (i, member) in members.iter().enumerate() {
            sums[i] += (member.evaluation.value + block.center) * block.n_members(i % test.n_groups());
        }
    })
    .unwrap();
    sums
}

/// AUC and `DeLong` variance by the definition: all pairs.
fn auc_by_pairs(data: &Data, group: &[u16], which: u16) -> (f64, f64) {
    let rows = |label: bool| -> Vec<f64> {
        let inside = |&i: &usize| group[i] == which && data.positive[i] == label;
        (0..group.len()).filter(inside).map(|i| f64::from(data.score[i])).collect()
    };
    let (up, down) = (rows(true), rows(false));
    let kernel = |p: f64, n: f64| {
        if p > n {
            1.0
        } else if p == n {
            0.5
        } else {
            0.0
        }
    };
    let v10: Vec<f64> =
        up.iter().map(|&p| down.iter().map(|&n| kernel(p, n)).sum::<f64>() / down.len() as f64).collect();
    let v01: Vec<f64> = down.iter().map(|&n| up.iter().map(|&p| kernel(p, n)).sum::<f64>() / up.len() as f64).collect();
    let variance = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
    };
    (v10.iter().sum::<f64>() / v10.len() as f64, variance(&v10) + variance(&v01))
}

#[test]
fn auc_and_its_variance_equal_all_pairs() {
    for (levels, groups) in [(5, 2), (1_000_000, 2), (40, 3)] {
        let data = data(300, levels, groups);
        let test = auc_test(&data, groups);
        for (group, evaluation) in test.evaluations().iter().enumerate() {
            let (value, variance) = auc_by_pairs(&data, &data.group, group as u16);
            assert!((evaluation.value - value).abs() < 1e-13);
            assert!((evaluation.variance / variance - 1.0).abs() < 1e-10, "{levels} {groups}");
        }
    }
}

#[test]
fn ratios_and_their_variance() {
    let values = [3.0, -1.0, 4.0, 1.5, 9.0, 2.0];
    let below = [1.0, 2.0, 1.0, 0.5, 3.0, 1.0];
    let units = Units { group: &[0, 0, 0, 1, 1, 1], n_groups: 2, stratum: None, part: None, of_row: None };
    let test = RowTest::ratio(&values, Some(&below), units, Studentize::Unpooled, &Control::default()).unwrap();
    let evaluation = test.evaluations()[0];
    assert!((evaluation.value - 1.5).abs() < 1e-15);
    let squares: f64 = (0..3).map(|i: usize| (values[i] - 1.5 * below[i]).powi(2)).sum();
    assert!((evaluation.variance - 1.5 * squares / 16.0).abs() < 1e-15);
    // All rows with one ratio: no variance at all, and not a little by rounding.
    let test = mean_test(&[0.1; 6], &[0, 0, 0, 1, 1, 1], None);
    assert_eq!(test.evaluations()[1].variance, 0.0);
    assert_eq!(test.observed(), 0.0);
}

/// Rows of a group that prefers the stratum with high values: the strata explain its mean.
#[test]
fn strata_explain_what_they_do() {
    let stratum: Vec<u32> = (0..600).map(|i| u32::from(i % 3 == 0)).collect();
    let group: Vec<u16> = (0..600).map(|i| u16::from(i % 5 < if i % 3 == 0 { 4 } else { 1 })).collect();
    let value: Vec<f64> = stratum.iter().map(|&s| 10.0 * f64::from(s)).collect();
    let test = mean_test(&value, &group, Some(&stratum));
    let groups = test.evaluations();
    assert!(groups[1].value - groups[0].value > 3.0);
    let contrast = test.contrast((0, 1)).unwrap();
    assert_eq!((contrast.estimate(), contrast.n_used, contrast.n_single), (0.0, 2, 0));
    assert_eq!(test.observed(), 0.0);
}

/// Values far from 0 keep the digits of their variance.
#[test]
fn ratios_are_centred() {
    let noise: Vec<f64> = (0..1000).map(|i| f64::from(i * 37 % 101) / 101.0).collect();
    let group: Vec<u16> = (0..1000).map(|i| i % 2).collect();
    let test = |offset: f64| {
        let values: Vec<f64> = noise.iter().map(|value| value + offset).collect();
        mean_test(&values, &group, None)
    };
    let (near, far) = (test(0.0), test(1e9));
    assert!((far.evaluations()[0].variance / near.evaluations()[0].variance - 1.0).abs() < 1e-6);
    assert!((far.evaluations()[0].value - 1e9 - near.evaluations()[0].value).abs() < 1e-6);
}

/// Every replicate gives each group its rows: the sums of a constant 1 tell.
#[test]
fn groups_keep_their_sizes_in_every_stratum() {
    let data = data(5_000, 50, 4);
    let stratum: Vec<u32> = data.score.iter().map(|score| score % 3).collect();
    let marked: Vec<f64> = stratum.iter().map(|&s| f64::from(s == 1)).collect();
    let test = mean_test(&marked, &data.group, Some(&stratum));
    // Within the stratum of the marked rows each group has as many of them as it has rows.
    for (i, sum) in group_sums(&test, 0).iter().enumerate() {
        assert!((sum - test.blocks[1].n_members(i % 4)).abs() < 1e-6, "{sum}");
    }
}

/// The number of marked rows in the first group is hypergeometric (chi-square, tail 1e-6).
#[test]
fn draws_follow_the_hypergeometric_law() {
    for groups in [2, 3] {
        let marked: Vec<f64> = (0..60).map(|i| f64::from(i % 4 == 0)).collect();
        let group: Vec<u16> = (0..60).map(|i| if i < 25 { 0 } else { 1 + i % (groups - 1) }).collect();
        let test = mean_test(&marked, &group, None);
        let mut counts = [0u32; 16];
        let blocks = 6_000;
        for block in 0..blocks {
            let sums = group_sums(&test, block * LANES as u64);
            sums.iter().step_by(groups as usize).for_each(|&sum| counts[sum.round() as usize] += 1);
        }
        let (first, law) = crate::random::Hypergeometric::new(60, 15, 25).law(100).unwrap();
        let draws = (blocks * LANES as u64) as f64;
        let (mut statistic, mut cells, mut rest) = (0.0, 0u32, (0.0, 0.0));
        for (i, p) in law.iter().enumerate() {
            let (expected, count) = (p * draws, f64::from(counts[first as usize + i]));
            if expected > 10.0 {
                statistic += (count - expected).powi(2) / expected;
                cells += 1;
            } else {
                rest = (rest.0 + expected, rest.1 + count);
            }
        }
        statistic += (rest.1 - rest.0).powi(2) / rest.0.max(1.0);
        assert!(statistic < 65.0, "{groups} groups: {statistic} on {cells}");
    }
}

/// Counts of several groups add up to the same bits as floats: `walk` is what ran before there was `auc_groups`.
#[test]
fn several_groups_have_the_same_bits_in_counts() {
    let control = Control::default();
    for (levels, groups) in [(1_000_000, 3), (40, 3), (7, 5), (2_000, 5), (1, 4)] {
        let data = data(2_003, levels, groups);
        let test = auc_test(&data, groups);
        let block = &test.blocks[0];
        let UnitMetric::Rows(RowMetric::Auc(auc)) = &block.metric else { panic!("no area") };
        for first in [0, 48] {
            let [mut one, mut other] = [0, 1].map(|_| LaneGenerator::new(3, Domain::Permutation, 1, first, u64::MAX));
            let counts = test.auc_groups(block, auc, Draw::new(&mut one, block), &control).unwrap();
            let floats = test.walk(block, auc, Draw::new(&mut other, block), &control).unwrap();
            let bits = |members: &[Member]| -> Vec<[u64; 3]> {
                let of = |one: &Member| [one.evaluation.value, one.evaluation.variance, one.size].map(f64::to_bits);
                members.iter().map(of).collect()
            };
            assert_eq!(bits(&counts), bits(&floats), "{levels} {groups}");
        }
    }
}

#[test]
fn kernels_and_pools_give_the_same_bits() {
    let control = Control::default();
    let draws = |replicates| Draws { replicates, seed: 3, series: 1 };
    for (levels, groups) in [(7, 2), (1_000_000, 2), (30, 5)] {
        let data = data(70_001, levels, groups);
        let test = auc_test(&data, groups);
        let run = |replicates, instructions| {
            let test = test.clone().with_instructions(instructions);
            test.null_distribution(&draws(replicates), &control).unwrap()
        };
        let baseline = run(0..37, InstructionSet::Baseline);
        assert!(baseline.iter().all(|value| value.is_finite()));
        for instructions in InstructionSet::available() {
            assert_eq!(run(0..37, instructions), baseline, "{instructions:?}");
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| run(0..37, InstructionSet::Baseline)), baseline);
        assert_eq!(run(3..9, InstructionSet::Baseline)[..], baseline[3..9]);
    }
}

/// Codes of strata may be any numbers; what comes out depends on their order alone.
#[test]
fn strata_are_numbered_anew_where_their_codes_are_large() {
    let data = data(300, 20, 2);
    let values: Vec<f64> = data.score.iter().map(|&score| f64::from(score)).collect();
    let few: Vec<u32> = data.score.iter().map(|score| score % 3).collect();
    let many: Vec<u32> = few.iter().map(|&code| [0, 70_000, u32::MAX][code as usize]).collect();
    let draws = Draws { replicates: 0..20, seed: 3, series: 1 };
    let run = |stratum: &[u32]| {
        let test = mean_test(&values, &data.group, Some(stratum));
        (test.blocks.len(), test.null_distribution(&draws, &Control::default()).unwrap())
    };
    assert_eq!(run(&few), run(&many));
}

#[test]
fn codes_and_lengths_that_do_not_fit_are_refused() {
    let fine = Units { group: &[0, 1, 1], n_groups: 2, stratum: None, part: None, of_row: None };
    let message = |units| {
        let ratio = RowTest::ratio(&[1.0; 3], None, units, Studentize::None, &Control::default());
        ratio.map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert_eq!(message(fine), "");
    assert_eq!(message(Units { n_groups: 1, ..fine }), "n_groups is 1; accepted: between 2 and 65,536");
    assert_eq!(message(Units { group: &[0, 1, 2], ..fine }), "group is 2 somewhere; accepted: codes below n_groups");
    let short = "stratum is of length 1; accepted: one code for each of 3 units";
    assert_eq!(message(Units { stratum: Some(&[0]), ..fine }), short);
    let outside = "of_row is 3 somewhere; accepted: codes below 3";
    assert_eq!(message(Units { of_row: Some(&[0, 3]), ..fine }), outside);
    let two = "numerator is of length 3; accepted: one value for each of 2 units";
    assert_eq!(message(Units { group: &[0, 1], ..fine }), two);
}

#[test]
fn pairs_of_other_groups_are_refused() {
    let test = mean_test(&[1.0, 2.0, 3.0], &[0, 1, 1], None);
    let draws = Draws { replicates: 0..20, seed: 3, series: 1 };
    let error = test.max_t(&[(0, 1), (0, 2)], &draws, &Control::default()).unwrap_err();
    assert_eq!(error.to_string(), "pairs is (0, 2) somewhere; accepted: places of groups below 2");
}

/// Bits of values and variances.
fn bits(evaluations: &[Evaluation]) -> Vec<[u64; 2]> {
    evaluations.iter().map(|one| [one.value.to_bits(), one.variance.to_bits()]).collect()
}

/// The rows of a stratum are those of a test of the stratum alone, ties and weights included; labels of strata are
/// parts of them.
#[test]
fn strata_of_ranks_are_tests_of_their_own() {
    let n = 400;
    let score: Vec<f64> = (0..n).map(|i| f64::from(i * 37 % 53)).collect();
    let positive: Vec<u8> = (0..n).map(|i| u8::from(i * i % 7 < 3)).collect();
    let weight: Vec<f64> = (0..n).map(|i| f64::from(1 + i % 3)).collect();
    let stratum: Vec<u32> = (0..n).map(|i| [0, 2, 5][(i / 2 % 3) as usize]).collect();
    let group: Vec<u16> = (0..n).map(|i| (i % 5 / 2) as u16).collect();
    let label: Vec<u32> = positive.iter().map(|&one| u32::from(one)).collect();
    let control = Control::default();
    let made = |rows: &[usize], weighted: bool, strata: bool, own: &str| {
        let weight: Vec<f64> = rows.iter().map(|&i| weight[i]).collect();
        let (stratum, part): (Vec<u32>, Vec<u32>) = rows.iter().map(|&i| (stratum[i], label[i])).unzip();
        let group: Vec<u16> = rows.iter().map(|&i| group[i]).collect();
        let units = Units {
            group: &group,
            n_groups: 3,
            stratum: strata.then_some(&stratum[..]),
            part: (own == "parts").then_some(&part[..]),
            of_row: None,
        };
        let score: Vec<f64> = rows.iter().map(|&i| score[i]).collect();
        let positive: Vec<u8> = rows.iter().map(|&i| positive[i]).collect();
        let weight = weighted.then_some(&weight[..]);
        let scores = Scores { score: &score, positive: &positive, weight, places: None };
        RowTest::auc(scores, units, own == "labels", Studentize::Unpooled, &control).unwrap()
    };
    let everything: Vec<usize> = (0..n as usize).collect();
    for weighted in [false, true] {
        let all = made(&everything, weighted, true, "none");
        assert_eq!(bits(&all.evaluations()), bits(&made(&everything, weighted, false, "none").evaluations()));
        assert_eq!(all.blocks.len(), 3);
        for (block, code) in all.blocks.iter().zip([0, 2, 5]) {
            let rows: Vec<usize> = everything.iter().copied().filter(|&i| stratum[i] == code).collect();
            let alone = made(&rows, weighted, false, "none");
            assert_eq!(bits(&block.evaluations()), bits(&alone.evaluations()));
            assert_eq!(block.group, alone.blocks[0].group);
        }
        let draws = Draws { replicates: 0..40, seed: 3, series: 0 };
        let null = |own| made(&everything, weighted, true, own).null_distribution(&draws, &control).unwrap();
        assert_eq!(null("labels"), null("parts"));
        assert_ne!(null("labels"), null("none"));
    }
}

/// Clusters without rows are in no stratum's way.
#[test]
fn strata_of_clusters_are_tests_of_their_own() {
    let (n, clusters) = (300, 60);
    let score: Vec<f64> = (0..n).map(|i| f64::from(i * 37 % 53)).collect();
    let positive: Vec<u8> = (0..n).map(|i| u8::from(i * i % 7 < 3)).collect();
    let cluster: Vec<u32> = (0..n).map(|i| i * 13 % (clusters - 2)).collect();
    let group: Vec<u16> = (0..clusters).map(|c| (c % 2) as u16).collect();
    let stratum: Vec<u32> = (0..clusters).map(|c| if c == clusters - 1 { 4 } else { c / 2 % 2 }).collect();
    let control = Control::default();
    let units = Units { group: &group, n_groups: 2, stratum: Some(&stratum), part: None, of_row: Some(&cluster) };
    let scores = Scores { score: &score, positive: &positive, weight: None, places: None };
    let test = RowTest::auc(scores, units, false, Studentize::Unpooled, &control).unwrap();
    assert_eq!(test.blocks.len(), 3);
    let places = Scores { places: Some(&[1, 0]), ..scores };
    let refused = RowTest::auc(places, units, false, Studentize::Unpooled, &control).unwrap_err();
    assert!(refused.to_string().contains("no clusters"), "{refused}");
    for (block, code) in test.blocks.iter().zip([0, 1]) {
        let members: Vec<usize> = (0..clusters as usize).filter(|&c| stratum[c] == code).collect();
        let rows: Vec<usize> = (0..n as usize).filter(|&row| stratum[cluster[row] as usize] == code).collect();
        let group: Vec<u16> = members.iter().map(|&c| group[c]).collect();
        let place = |row: usize| members.iter().position(|&c| c == cluster[row] as usize).unwrap() as u32;
        let of_row: Vec<u32> = rows.iter().map(|&row| place(row)).collect();
        let units = Units { group: &group, n_groups: 2, stratum: None, part: None, of_row: Some(&of_row) };
        let score: Vec<f64> = rows.iter().map(|&row| score[row]).collect();
        let positive: Vec<u8> = rows.iter().map(|&row| positive[row]).collect();
        let scores = Scores { score: &score, positive: &positive, weight: None, places: None };
        let alone = RowTest::auc(scores, units, false, Studentize::Unpooled, &control).unwrap();
        assert_eq!(bits(&block.evaluations()), bits(&alone.evaluations()));
    }
}

/// A test of some groups is that of their rows alone.
#[test]
fn rows_of_other_groups_take_no_part() {
    let n = 400;
    let score: Vec<f64> = (0..n).map(|i| f64::from(i * 37 % 53)).collect();
    let positive: Vec<u8> = (0..n).map(|i| u8::from(i * i % 7 < 3)).collect();
    let weight: Vec<f64> = (0..n).map(|i| f64::from(1 + i % 3)).collect();
    let group: Vec<u16> = (0..n).map(|i| (i * i % 11 % 4) as u16).collect();
    let stratum: Vec<u32> = (0..n).map(|i| i as u32 / 2 % 3).collect();
    // The last group first, then the second; 9 is no place.
    let places = [9, 1, u16::MAX, 0];
    let rows: Vec<usize> = (0..n as usize).filter(|&i| group[i] % 2 == 1).collect();
    let some_group: Vec<u16> = rows.iter().map(|&i| places[usize::from(group[i])]).collect();
    let some_stratum: Vec<u32> = rows.iter().map(|&i| stratum[i]).collect();
    let some = |values: &[f64]| -> Vec<f64> { rows.iter().map(|&i| values[i]).collect() };
    let (some_score, some_weight) = (some(&score), some(&weight));
    let some_positive: Vec<u8> = rows.iter().map(|&i| positive[i]).collect();
    let control = Control::default();
    let draws = Draws { replicates: 0..40, seed: 3, series: 0 };
    for (weighted, strata) in [(false, false), (true, false), (false, true), (true, true)] {
        let null = |scores: Scores<'_>, group: &[u16], stratum: &[u32]| {
            let units = Units { group, n_groups: 2, stratum: strata.then_some(stratum), part: None, of_row: None };
            let test = RowTest::auc(scores, units, true, Studentize::Unpooled, &control).unwrap();
            (bits(&test.evaluations()), test.null_distribution(&draws, &control).unwrap())
        };
        let all = Scores {
            score: &score,
            positive: &positive,
            weight: weighted.then_some(&weight[..]),
            places: Some(&places),
        };
        let chosen = Scores {
            score: &some_score,
            positive: &some_positive,
            weight: weighted.then_some(&some_weight[..]),
            places: None,
        };
        assert_eq!(null(all, &group, &stratum), null(chosen, &some_group, &some_stratum));
    }
    let units = Units { group: &group, n_groups: 2, stratum: None, part: None, of_row: None };
    let scores = Scores { score: &score, positive: &positive, weight: None, places: Some(&places[..3]) };
    let refused = RowTest::auc(scores, units, false, Studentize::Unpooled, &control).unwrap_err();
    assert!(refused.to_string().contains("3 somewhere"), "{refused}");
}
