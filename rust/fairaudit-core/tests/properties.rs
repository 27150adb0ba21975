//! What must hold whatever the numbers are.

use fairaudit_core::Draws;
use fairaudit_core::metrics::Formula;
use fairaudit_core::parallel::Control;
use fairaudit_core::permutation::{Alternative, Conditioning, CountTest, PermutationTest, Studentize};
use fairaudit_core::random::{Domain, Hypergeometric, Stream, multivariate_hypergeometric};
use fairaudit_core::tabulate::Table;
use proptest::prelude::*;

const FORMULAS: [&str; 4] = [
    "tp / (tp + fn)",
    "2 * tp / (2 * tp + fp + fn)",
    "(tp / (tp + fn) + tn / (fp + tn)) / 2",
    "(tp * tn - fp * fn) / sqrt((tp + fp) * (tp + fn) * (fp + tn) * (fn + tn))",
];

fn counts() -> impl Strategy<Value = [f64; 4]> {
    prop::array::uniform4(1u32..500).prop_map(|counts| counts.map(f64::from))
}

proptest! {
    /// Homogeneous of degree 0: scaling keeps the value and divides the variance.
    #[test]
    fn metrics_do_not_depend_on_the_scale(counts in counts(), which in 0usize..4, scale in 2u32..50) {
        let metric = Formula::parse(FORMULAS[which]).unwrap().to_metric();
        let scale = f64::from(scale);
        let (here, scaled) = (metric.evaluate(&counts), metric.evaluate(&counts.map(|c| c * scale)));
        prop_assert!((here.value - scaled.value).abs() < 1e-12);
        prop_assert!((here.variance - scale * scaled.variance).abs() < 1e-12 + 1e-9 * here.variance);
    }

    /// A draw respects its margins.
    #[test]
    fn draws_stay_in_the_urn(totals in prop::collection::vec(0u64..100_000, 1..6), share in 0.0f64..=1.0, seed: u64) {
        let population: u64 = totals.iter().sum();
        let draws = (population as f64 * share) as u64;
        let mut stream = Stream::new(seed, Domain::Simulation, 0, 0, 0);
        let mut drawn = vec![0; totals.len()];
        multivariate_hypergeometric(&mut stream, &totals, draws, &mut drawn);
        prop_assert_eq!(drawn.iter().sum::<u64>(), draws);
        prop_assert!(drawn.iter().zip(&totals).all(|(count, total)| count <= total));
    }

    /// The support ends where it must for any parameters.
    #[test]
    fn hypergeometric_draws_stay_in_the_support(population in 1u64..1_000_000_000_000, a in 0.0f64..=1.0, b in 0.0f64..=1.0, seed: u64) {
        let marked = (population as f64 * a) as u64;
        let draws = (population as f64 * b) as u64;
        let mut stream = Stream::new(seed, Domain::Simulation, 0, 0, 0);
        let law = Hypergeometric::new(population, marked, draws);
        for _ in 0..20 {
            let x = law.sample(&mut stream);
            prop_assert!(x <= marked.min(draws) && x + population >= marked + draws);
        }
    }

    /// The exact law is a law, and its p-value is at least the probability of what was observed.
    #[test]
    fn exact_laws_are_laws(table in prop::collection::vec(0u64..15, 8), which in 0usize..4) {
        let metric = Formula::parse(FORMULAS[which]).unwrap().to_metric();
        let studentize = if which == 0 { Studentize::Pooled } else { Studentize::Unpooled };
        let table = Table::new(table, 2, 4).unwrap();
        let test = CountTest::new(&table, &metric, &Conditioning::None, studentize).unwrap();
        prop_assume!(test.evaluations().iter().all(fairaudit_core::metrics::Evaluation::is_defined));
        let Some(law) = test.exact(Alternative::TwoSided, &Control::default()).unwrap() else { return Ok(()) };
        let total: f64 = law.probabilities.iter().sum();
        prop_assert!((total - 1.0).abs() < 1e-9);
        prop_assert!(law.pvalue > 0.0 && law.pvalue <= 1.0);
        prop_assert!(law.undefined <= law.pvalue + 1e-12);
        let observed = test.observed();
        let here: f64 = law.statistics.iter().zip(&law.probabilities)
            .filter(|(s, _)| (**s - observed).abs() < 1e-12).map(|(_, p)| p).sum();
        prop_assert!(law.pvalue >= here - 1e-9);
    }

    /// Replicates do not depend on the pool or on how many of them are asked for.
    #[test]
    fn replicates_depend_on_their_index_alone(table in prop::collection::vec(1u64..5_000, 12), seed: u64) {
        let metric = Formula::parse(FORMULAS[1]).unwrap().to_metric();
        let table = Table::new(table, 3, 4).unwrap();
        let test = CountTest::new(&table, &metric, &Conditioning::None, Studentize::Unpooled).unwrap();
        let control = Control::default();
        let draws = |n| Draws { replicates: 0..n, seed, series: 0 };
        let inline = test.null_distribution(&draws(300), &control).unwrap();
        let fewer = test.null_distribution(&draws(17), &control).unwrap();
        prop_assert_eq!(&inline[..17], &fewer[..]);
        for threads in [2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let parallel = pool.install(|| test.null_distribution(&draws(300), &control)).unwrap();
            prop_assert_eq!(&inline, &parallel);
        }
    }
}
