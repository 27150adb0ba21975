//! Random words and draws, for tests against other implementations.

use fairaudit_core::Error;
use fairaudit_core::random::{Binomial, Hypergeometric, Stream, philox as block, simulate};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::call::to_python;
use crate::options::{Call, Draws};

type Counts<'py> = Bound<'py, PyArray1<u64>>;

/// Four words of Philox4x64-10.
#[pyfunction]
fn philox(counter: [u64; 4], key: [u64; 2]) -> [u64; 4] {
    block(counter, key)
}

/// Numbers of marked ones among `drawn` of a population; see [`simulate`].
#[pyfunction]
fn hypergeometric<'py>(
    py: Python<'py>,
    population: u64,
    marked: u64,
    drawn: u64,
    draws: &Draws,
    call: &Call,
) -> PyResult<Counts<'py>> {
    let law = Call::brief(py, || Ok(Hypergeometric::new(population, marked.min(population), drawn.min(population))))?;
    sampled(py, draws, call, |stream| law.sample(stream))
}

/// Numbers of successes; see [`simulate`].
#[pyfunction]
fn binomial<'py>(py: Python<'py>, trials: u64, probability: f64, draws: &Draws, call: &Call) -> PyResult<Counts<'py>> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(to_python(py, &Error::argument("probability", probability, "from 0 to 1")));
    }
    let law = Call::brief(py, || Ok(Binomial::new(trials, probability)))?;
    sampled(py, draws, call, |stream| law.sample(stream))
}

/// See [`simulate`].
fn sampled<'py>(
    py: Python<'py>,
    draws: &Draws,
    call: &Call,
    sample: impl FnMut(&mut Stream) -> u64 + Send,
) -> PyResult<Counts<'py>> {
    let draws = draws.core();
    let work = 100u64.saturating_mul(draws.replicates.end);
    let values = call.on_one_thread(py).run(py, work, |control| simulate(&draws, sample, control))?;
    Ok(PyArray1::from_vec(py, values))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(philox, module)?)?;
    module.add_function(wrap_pyfunction!(hypergeometric, module)?)?;
    module.add_function(wrap_pyfunction!(binomial, module)?)
}
