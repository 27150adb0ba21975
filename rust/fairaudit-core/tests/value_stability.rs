//! Frozen numbers of every seeded function. A change here changes numbers that users may have
//! published: mark it *Value-breaking* in the changelog.

use fairaudit_core::metrics::Formula;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{Conditioning, Studentize, Table, Test, max_t, null_distribution};
use fairaudit_core::rng::{Binomial, Domain, FixedHypergeometric, Hypergeometric, Stream, multinomial};

fn stream() -> Stream {
    Stream::new(2_020, Domain::Simulation, 1, 2, 3)
}

#[test]
fn words_and_integers() {
    let mut words = stream();
    assert_eq!([words.next_word(), words.next_word()], FROZEN_WORDS);
    let mut integers = stream();
    let drawn: Vec<u64> = (0..8).map(|_| integers.below(1_000)).collect();
    assert_eq!(drawn, FROZEN_INTEGERS);
    assert_eq!(stream().uniform(), FROZEN_UNIFORM);
}

#[test]
fn samplers() {
    let mut draws = stream();
    // urn, rejection on the table of factorials, rejection by Stirling
    let laws =
        [(50, 20, 9), (800, 300, 400), (1_000_000, 400_000, 300_000), (1_000_000_000_000, 7_000_000, 500_000_000)];
    let drawn = laws.map(|(population, marked, n)| Hypergeometric::new(population, marked, n).sample(&mut draws));
    assert_eq!(drawn, FROZEN_HYPERGEOMETRIC);
    let mut draws = stream();
    let drawn = laws.map(|(population, marked, n)| FixedHypergeometric::new(population, marked, n).sample(&mut draws));
    assert_eq!(drawn, FROZEN_FIXED_HYPERGEOMETRIC);
    let mut draws = stream();
    let laws = [(20, 0.3), (1_000, 0.8), (1_000_000, 0.4), (1_000_000_000_000, 1e-9)];
    assert_eq!(laws.map(|(trials, p)| Binomial::new(trials, p).sample(&mut draws)), FROZEN_BINOMIAL);
    let mut counts = [0; 4];
    multinomial(&mut stream(), 10_000, &[0.1, 0.0, 0.5, 0.4], &mut counts);
    assert_eq!(counts, FROZEN_MULTINOMIAL);
}

fn test(groups: usize, formula: &str, conditioning: &Conditioning, studentize: Studentize) -> Test {
    let counts = [120, 60, 80, 240, 110, 70, 90, 230, 40, 30, 20, 60][..4 * groups].to_vec();
    let metric = Formula::parse(formula).unwrap().to_metric();
    Test::new(&Table::new(counts, groups, 4).unwrap(), &metric, conditioning, studentize).unwrap()
}

#[test]
fn null_distributions() {
    let control = Control::default();
    let f1 = test(2, "2*tp/(2*tp+fp+fn)", &Conditioning::None, Studentize::Unpooled);
    assert_eq!(null_distribution(&f1, 0..3, 7, 0, &control).unwrap(), FROZEN_F1);
    let recall = test(3, "tp/(tp+fn)", &Conditioning::Denominator, Studentize::Pooled);
    assert_eq!(null_distribution(&recall, 0..3, 7, 4, &control).unwrap(), FROZEN_RECALL);
    let adjusted = max_t(&recall, &[(0, 1), (0, 2), (1, 2)], 200, 7, 0, &control).unwrap();
    assert_eq!(adjusted, FROZEN_MAX_T);
}

const FROZEN_WORDS: [u64; 2] = [0x61C2_F4BB_7847_ACF4, 0x9404_A38F_428A_65A3];
const FROZEN_INTEGERS: [u64; 8] = [381, 578, 413, 546, 256, 471, 467, 419];
const FROZEN_UNIFORM: f64 = 0.381_881_042_260_174_55;
const FROZEN_HYPERGEOMETRIC: [u64; 4] = [2, 138, 120_264, 3_503];
const FROZEN_FIXED_HYPERGEOMETRIC: [u64; 4] = [3, 151, 119_951, 3_507];
const FROZEN_BINOMIAL: [u64; 4] = [5, 803, 399_625, 996];
const FROZEN_MULTINOMIAL: [u64; 4] = [1_011, 0, 4_985, 4_004];
const FROZEN_F1: [f64; 3] = [0.838_225_099_081_078_3, 0.105_864_403_168_798_97, 0.288_162_606_746_377_06];
const FROZEN_RECALL: [f64; 3] = [3.231_358_024_691_356, 2.653_892_137_751_79, 0.838_999_350_227_421_8];
const FROZEN_MAX_T: [f64; 3] = [0.527_363_184_079_602, 0.527_363_184_079_602, 0.303_482_587_064_676_6];
