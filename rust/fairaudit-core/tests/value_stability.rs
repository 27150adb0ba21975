//! Frozen numbers of every seeded function. A change here changes numbers that users may have
//! published: mark it *Value-breaking* in the changelog.

use std::ops::Range;

use fairaudit_core::Draws;
use fairaudit_core::bootstrap::Replicates;
use fairaudit_core::individual::kernel::{self, Function, Model, Penalty};
use fairaudit_core::individual::linear;
use fairaudit_core::individual::{Audit, Loss, Rows, Schedule, Solver, audit_scores};
use fairaudit_core::metrics::Formula;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{
    Assignments, Conditioning, CorrelationTest, CountTest, GroupTest, PermutationTest, RowTest, Scores, Studentize,
    Units, step_down_pvalues,
};
use fairaudit_core::random::{Binomial, Domain, FixedHypergeometric, Hypergeometric, Stream, multinomial};
use fairaudit_core::tabulate::Table;

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

fn draws(replicates: Range<u64>, series: u64) -> Draws {
    Draws { replicates, seed: 7, series }
}

fn test(groups: usize, formula: &str, conditioning: &Conditioning, studentize: Studentize) -> CountTest {
    let counts = [120, 60, 80, 240, 110, 70, 90, 230, 40, 30, 20, 60][..4 * groups].to_vec();
    let metric = Formula::parse(formula).unwrap().to_metric();
    CountTest::new(&Table::new(counts, groups, 4).unwrap(), &metric, conditioning, studentize).unwrap()
}

#[test]
fn null_distributions() {
    let control = Control::default();
    let f1 = test(2, "2*tp/(2*tp+fp+fn)", &Conditioning::None, Studentize::Unpooled);
    assert_eq!(f1.null_distribution(&draws(0..3, 0), &control).unwrap(), FROZEN_F1);
    let recall = test(3, "tp/(tp+fn)", &Conditioning::Denominator, Studentize::Pooled);
    assert_eq!(recall.null_distribution(&draws(0..3, 4), &control).unwrap(), FROZEN_RECALL);
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let counts = recall.max_t(&pairs, &draws(0..200, 0), &control).unwrap();
    assert_eq!(step_down_pvalues(&recall, &pairs, &counts, 200).unwrap(), FROZEN_MAX_T);
}

/// Scores and values of 200 rows, with ties, in two groups.
fn rows() -> (Vec<f64>, Vec<u8>, Vec<u16>, Vec<f64>) {
    let of = |i: u32| f64::from(i * 37 % 91);
    let positive = (0..200).map(|i| u8::from(i * 13 % 7 < 3)).collect();
    let group = (0..200u16).map(|i| i * 11 % 5 / 3).collect();
    ((0..200).map(of).collect(), positive, group, (0..200).map(|i| of(i) / 7.0 - 3.0).collect())
}

#[test]
fn row_metrics() {
    let (score, positive, group, value) = rows();
    let units = Units { group: &group, n_groups: 2, stratum: None, part: None, of_row: None };
    let control = Control::default();
    let scores = Scores { score: &score, positive: &positive, weight: None, places: None };
    let auc = RowTest::auc(scores, units, true, Studentize::Unpooled, &Control::default()).unwrap();
    assert_eq!(auc.null_distribution(&draws(0..3, 1), &control).unwrap(), FROZEN_AUC);
    let mean = RowTest::ratio(&value, None, units, Studentize::Unpooled, &Control::default()).unwrap();
    assert_eq!(mean.null_distribution(&draws(0..3, 1), &control).unwrap(), FROZEN_MEAN);
    let drawn = auc.bootstrap(true, &draws(0..1, 1), &control).unwrap();
    assert_eq!(pairs_of(&drawn), FROZEN_BOOTSTRAP_OF_ROWS);
    let correlation = CorrelationTest::new(&score, &value, None, Studentize::Unpooled, &Control::default()).unwrap();
    assert_eq!(correlation.null_distribution(&draws(0..3, 1), &control).unwrap(), FROZEN_CORRELATION);
}

/// Values and variances, side by side.
fn pairs_of(replicates: &Replicates) -> Vec<(f64, f64)> {
    replicates.values.iter().copied().zip(replicates.variances.iter().flatten().copied()).collect()
}

#[test]
fn bootstrap_and_assignments() {
    let recall = test(2, "tp/(tp+fn)", &Conditioning::None, Studentize::Unpooled);
    let drawn = recall.bootstrap(true, &draws(0..1, 0), &Control::default()).unwrap();
    assert_eq!(pairs_of(&drawn), FROZEN_BOOTSTRAP_OF_COUNTS);
    let units = Units { group: &[0, 0, 0, 0, 1, 1, 1, 1], n_groups: 2, stratum: None, part: None, of_row: None };
    let assignments = Assignments::new(units).unwrap();
    let draws = draws(0..4, 1);
    assert_eq!(assignments.groups(&draws, Some(3)), FROZEN_ASSIGNMENT);
    let observed = assignments.groups(&draws, None);
    assert_eq!(assignments.samples(&observed, 1, &draws, 3).unwrap().next_rows(), FROZEN_SAMPLE);
}

/// Features and coefficients of three classes, or of one score.
const FEATURES: [f64; 6] = [0.4, -1.2, 2.0, 0.3, -0.7, 0.9];
const COEF: [f64; 6] = [0.8, -0.5, 0.1, 1.1, -0.6, 0.2];

#[test]
fn flows() {
    let schedule = Schedule::new(50, 0.02, 0.5, Solver::Euler, vec![50]).unwrap();
    let rows = Rows { features: &FEATURES, targets: &[1.0, 0.0, 1.0] };
    let model = linear::Model { coef: &COEF[..2], intercepts: &[0.2] };
    let (pulls, gains, control) = ([0.0, 8.0], [0.64, 0.25], Control::default());
    let found = linear::Problem { rows, loss: Loss::Log, model, pulls: &pulls, gains: &gains }
        .flow(&schedule, &control)
        .unwrap();
    assert_eq!(found.scores, FROZEN_SCORES);
    let audit = Audit { floor: Some(0.0), boundary: Some(0.0) };
    let audited = audit_scores(&found.scores, 1, rows.targets, Loss::Log, audit, &control).unwrap();
    assert_eq!(audited.loss_end, FROZEN_LOSSES);
    let classes = Rows { targets: &[1.0, 0.0, 2.0], ..rows };
    let model = linear::Model { coef: &COEF, intercepts: &[0.2, 0.0, -0.1] };
    let gains: Vec<f64> = (0..18).map(|i| COEF[2 * (i / 3 % 3) + i / 9] * COEF[2 * (i % 3) + i / 9]).collect();
    let problem = linear::Problem { rows: classes, loss: Loss::Log, model, pulls: &pulls, gains: &gains };
    let found = problem.flow(&schedule, &control).unwrap();
    assert_eq!(found.scores[..3], FROZEN_CLASS);
    let audit = Audit { boundary: None, ..audit };
    let audited = audit_scores(&found.scores, 3, classes.targets, Loss::Log, audit, &control).unwrap();
    assert_eq!(audited.loss_end, FROZEN_CLASS_LOSSES);
    let model = Model {
        support_vectors: &COEF,
        dual_coef: &[1.5, -2.0, 0.7],
        intercepts: &[0.1],
        function: Function::new("rbf", 0.6, 3, 0.0).unwrap(),
    };
    let penalty = Penalty { units: &[1.0, 2.0], pulls: &[0.0], eigenvectors: &[0.6, 0.8], rest: 8.0 };
    let found = kernel::Problem { rows, loss: Loss::Log, model, penalty, held: &[] }.flow(&schedule, &control).unwrap();
    assert_eq!(found.scores, FROZEN_KERNEL);
}

const FROZEN_SCORES: [f64; 3] = [1.072_193_098_779_094_6, 1.812_074_012_429_652_2, -0.944_801_113_770_398_3];
const FROZEN_LOSSES: [f64; 3] = [0.294_352_592_583_544_74, 1.963_347_758_844_297_4, 1.273_210_130_980_153_3];
const FROZEN_CLASS: [f64; 3] = [1.295_685_411_117_904_1, 1.578_913_257_110_439_8, -0.725_839_765_015_211_6];
const FROZEN_KERNEL: [f64; 3] = [0.961_958_166_406_758_1, 0.609_019_573_574_408_1, -1.046_276_259_197_151_7];
const FROZEN_CLASS_LOSSES: [f64; 3] = [2.919_756_934_871_013, 0.357_178_181_102_016_43, 1.119_088_606_255_243];
const FROZEN_AUC: [f64; 3] = [-1.166_058_845_227_690_5, 0.955_213_010_715_318_5, 0.654_113_714_274_506_3];
const FROZEN_MEAN: [f64; 3] = [-0.440_982_150_677_664_6, 0.842_662_777_549_305_4, -1.787_897_191_060_964];
const FROZEN_CORRELATION: [f64; 3] = [0.668_502_697_278_140_3, 0.367_813_567_745_281_73, 0.657_530_984_465_002_8];
const FROZEN_BOOTSTRAP_OF_ROWS: [(f64, f64); 2] =
    [(0.460_648_148_148_148_14, 0.002_920_082_742_445_244_2), (0.488_095_238_095_238_1, 0.004_317_667_461_808_301_5)];
const FROZEN_BOOTSTRAP_OF_COUNTS: [(f64, f64); 2] =
    [(0.577_889_447_236_180_9, 0.001_225_795_145_775_086_5), (0.585_492_227_979_274_6, 0.001_257_466_730_337_511_4)];
const FROZEN_ASSIGNMENT: [u32; 8] = [1, 0, 1, 0, 1, 0, 1, 0];
const FROZEN_SAMPLE: [u32; 4] = [7, 6, 4, 7];
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
