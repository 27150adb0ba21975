//! Random words and draws, for tests against other implementations.

use fairaudit_core::random::{Binomial, Domain, Hypergeometric, Stream, philox as block};
use numpy::PyArray1;
use pyo3::prelude::*;

/// Four words of Philox4x64-10.
#[pyfunction]
fn philox(counter: [u64; 4], key: [u64; 2]) -> [u64; 4] {
    block(counter, key)
}

/// `n` hypergeometric draws from the simulation stream of a seed.
#[pyfunction]
fn hypergeometric(
    py: Python<'_>,
    population: u64,
    marked: u64,
    draws: u64,
    n: usize,
    seed: u64,
) -> Bound<'_, PyArray1<u64>> {
    let law = Hypergeometric::new(population, marked.min(population), draws.min(population));
    let mut stream = Stream::new(seed, Domain::Simulation, 0, 0, 0);
    PyArray1::from_iter(py, (0..n).map(|_| law.sample(&mut stream)))
}

/// `n` binomial draws from the simulation stream of a seed.
#[pyfunction]
fn binomial(py: Python<'_>, trials: u64, probability: f64, n: usize, seed: u64) -> Bound<'_, PyArray1<u64>> {
    let law = Binomial::new(trials, probability.clamp(0.0, 1.0));
    let mut stream = Stream::new(seed, Domain::Simulation, 0, 0, 0);
    PyArray1::from_iter(py, (0..n).map(|_| law.sample(&mut stream)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(philox, module)?)?;
    module.add_function(wrap_pyfunction!(hypergeometric, module)?)?;
    module.add_function(wrap_pyfunction!(binomial, module)?)
}
