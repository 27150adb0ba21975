//! The kernels of the permutation lens. Sizes are in the names.

use divan::{Bencher, black_box};
use fairaudit_core::Draws;
use fairaudit_core::metrics::Formula;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{
    Alternative, Conditioning, CountTest, PermutationTest, RowTest, Scores, Studentize, Units,
};
use fairaudit_core::random::{Domain, FixedHypergeometric, Hypergeometric, Stream, philox};
use fairaudit_core::simd::InstructionSet;
use fairaudit_core::tabulate::{Column, Table, tabulate};

fn main() {
    divan::main();
}

fn test(rows: u64, formula: &str, conditioning: &Conditioning, studentize: Studentize) -> CountTest {
    let counts = [12, 6, 8, 24, 11, 7, 9, 23].map(|share| share * rows / 100).to_vec();
    let metric = Formula::parse(formula).unwrap().to_metric();
    CountTest::new(&Table::new(counts, 2, 4).unwrap(), &metric, conditioning, studentize).unwrap()
}

fn draws(n: u64) -> Draws {
    Draws { replicates: 0..n, seed: 1, series: 0 }
}

#[divan::bench]
fn philox_block() -> [u64; 4] {
    philox(black_box([1, 2, 3, 4]), black_box([5, 6]))
}

#[divan::bench(args = [1_000, 1_000_000, 1_000_000_000_000])]
fn hypergeometric_draw(bencher: Bencher, rows: u64) {
    let mut stream = Stream::new(1, Domain::Simulation, 0, 0, 0);
    let law = Hypergeometric::new(rows, rows / 5 * 2, rows / 10 * 3);
    bencher.bench_local(|| law.sample(&mut stream));
}

#[divan::bench(args = [1_000, 1_000_000, 1_000_000_000_000])]
fn fixed_hypergeometric_draw(bencher: Bencher, rows: u64) {
    let mut stream = Stream::new(1, Domain::Simulation, 0, 0, 0);
    let law = FixedHypergeometric::new(rows, rows / 5 * 2, rows / 10 * 3);
    bencher.bench_local(|| law.sample(&mut stream));
}

#[divan::bench(args = [1_000, 1_000_000, 100_000_000])]
fn thousand_replicates_of_a_rate(rows: u64) -> Vec<f64> {
    let test = test(rows, "tp / (tp + fn)", &Conditioning::None, Studentize::Pooled);
    test.null_distribution(&draws(1_000), &Control::default()).unwrap()
}

#[divan::bench(args = [1_000_000])]
fn thousand_replicates_of_f1(rows: u64) -> Vec<f64> {
    let test = test(rows, "2*tp / (2*tp + fp + fn)", &Conditioning::None, Studentize::Unpooled);
    test.null_distribution(&draws(1_000), &Control::default()).unwrap()
}

#[divan::bench(args = [1_000, 1_000_000, 100_000_000])]
fn exact_rate(rows: u64) -> f64 {
    let test = test(rows, "tp / (tp + fn)", &Conditioning::Denominator, Studentize::Pooled);
    test.exact(Alternative::TwoSided, &Control::default()).unwrap().unwrap().pvalue
}

#[divan::bench]
fn tabulate_three_columns_of_a_million_rows_one_thread(bencher: Bencher) {
    let group: Vec<i64> = (0..1_000_000).map(|i| (i * 7919) % 97 % 2).collect();
    let label: Vec<i64> = (0..1_000_000).map(|i| (i * 104_729) % 101 % 2).collect();
    let decision: Vec<u8> = (0..1_000_000).map(|i| u8::from((i * 1_299_709) % 103 % 2 == 0)).collect();
    let columns = [Column::I64(&group), Column::I64(&label), Column::Bool(&decision)];
    bencher.bench_local(|| tabulate(&columns, &[9, 9, 9], None, &Control::default()).unwrap());
}

const INSTRUCTION_SETS: [InstructionSet; 3] = [InstructionSet::Baseline, InstructionSet::Avx2, InstructionSet::Avx512];
const ROWS: usize = 1_000_000;

fn units_of(n_groups: usize, group: &[u16]) -> Units<'_> {
    Units { group, n_groups, stratum: None, part: None, of_row: None }
}

fn codes(n_groups: u32) -> Vec<u16> {
    (0..ROWS as u32).map(|i| (i.wrapping_mul(7919) % 97 % n_groups) as u16).collect()
}

fn sixteen_replicates(bencher: Bencher, instructions: InstructionSet, test: RowTest) {
    if InstructionSet::available().contains(&instructions) {
        let test = test.with_instructions(instructions);
        bencher.bench_local(|| test.null_distribution(&draws(16), &Control::default()).unwrap());
    }
}

fn auc(n_groups: u32) -> RowTest {
    let positive: Vec<u8> = (0..ROWS).map(|i| u8::from(i * 104_729 % 101 < 40)).collect();
    let score: Vec<f64> = (0..ROWS).map(|i| i as f64).collect();
    let group = codes(n_groups);
    let scores = Scores { score: &score, positive: &positive, weight: None, places: None };
    let units = units_of(n_groups as usize, &group);
    RowTest::auc(scores, units, false, Studentize::Unpooled, &Control::default()).unwrap()
}

#[divan::bench(args = INSTRUCTION_SETS)]
fn sixteen_replicates_of_auc_of_a_million_rows(bencher: Bencher, instructions: InstructionSet) {
    sixteen_replicates(bencher, instructions, auc(2));
}

#[divan::bench(args = INSTRUCTION_SETS)]
fn sixteen_replicates_of_auc_of_three_groups(bencher: Bencher, instructions: InstructionSet) {
    sixteen_replicates(bencher, instructions, auc(3));
}

#[divan::bench(args = INSTRUCTION_SETS)]
fn sixteen_replicates_of_a_mean_of_a_million_rows(bencher: Bencher, instructions: InstructionSet) {
    let value: Vec<f64> = (0..ROWS).map(|i| (i * 7 % 1001) as f64).collect();
    let group = codes(2);
    let test = RowTest::ratio(&value, None, units_of(2, &group), Studentize::Unpooled, &Control::default()).unwrap();
    sixteen_replicates(bencher, instructions, test);
}
