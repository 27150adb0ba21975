//! The options that native functions share, by name: which replicates, and how a call is run.
//!
//! One rule for `call`: what passes over rows or replicates, or may search for long, takes it from its caller. What
//! works on the groups, classes and cells of an audit alone may do without one, which is `Call()`; a formula of a
//! handful of numbers has none.

use fairaudit_core::Error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::to_python;

/// Which replicates, of which seed and series: `n` of them from the index `first` on.
#[pyclass(frozen, eq, hash, get_all, module = "fairaudit_rs._native")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Draws {
    pub(crate) n: u64,
    seed: u64,
    series: u64,
    first: u64,
}

#[pymethods]
impl Draws {
    #[new]
    #[pyo3(signature = (n, *, seed, series=0, first=0))]
    fn new(py: Python<'_>, n: u64, seed: u64, series: u64, first: u64) -> PyResult<Self> {
        if first.checked_add(n).is_none() {
            let accepted = format!("at most {} replicates from {first} on", u64::MAX - first);
            return Err(to_python(py, &Error::argument("n", n, &accepted)));
        }
        Ok(Self { n, seed, series, first })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((u64,), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("seed", self.seed)?;
        named.set_item("series", self.series)?;
        named.set_item("first", self.first)?;
        Ok(((self.n,), named))
    }

    fn __repr__(&self) -> String {
        format!("Draws({}, seed={}, series={}, first={})", self.n, self.seed, self.series, self.first)
    }
}

impl Draws {
    /// As the core takes them.
    pub(crate) fn core(&self) -> fairaudit_core::Draws {
        fairaudit_core::Draws { replicates: self.first..self.first + self.n, seed: self.seed, series: self.series }
    }
}

/// How a call is run: on how many threads (None: all cores that the process may use), and who is told how far it is.
///
/// `progress` is called with the units of work done, a few times per second and once at the end.
#[pyclass(frozen, module = "fairaudit_rs._native")]
pub(crate) struct Call {
    #[pyo3(get)]
    pub(crate) n_threads: Option<usize>,
    #[pyo3(get)]
    pub(crate) progress: Option<Py<PyAny>>,
    /// See [`Call::planted_panic`].
    pub(crate) panics: bool,
}

/// `Call()`.
static ORDINARY: Call = Call { n_threads: None, progress: None, panics: false };

#[pymethods]
impl Call {
    #[new]
    #[pyo3(signature = (n_threads=None, progress=None))]
    fn new(py: Python<'_>, n_threads: Option<usize>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        if n_threads == Some(0) {
            return Err(to_python(py, &Error::argument("n_threads", 0, "None or a whole number of at least 1")));
        }
        Ok(Self { n_threads, progress, panics: false })
    }

    /// For tests: a call whose computation panics, as one with a bug would.
    #[staticmethod]
    fn planted_panic() -> Self {
        Self { n_threads: None, progress: None, panics: true }
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Option<usize>, Option<Py<PyAny>>) {
        (self.n_threads, self.progress.as_ref().map(|progress| progress.clone_ref(py)))
    }
}

impl Call {
    /// The call that was given, or `Call()`.
    pub(crate) fn or_ordinary(call: Option<&Self>) -> &Self {
        call.unwrap_or(&ORDINARY)
    }

    /// The same on one thread: for computations that know no other.
    pub(crate) fn on_one_thread(&self, py: Python<'_>) -> Self {
        let progress = self.progress.as_ref().map(|progress| progress.clone_ref(py));
        Self { n_threads: Some(1), progress, panics: self.panics }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Call>()?;
    module.add_class::<Draws>()
}
