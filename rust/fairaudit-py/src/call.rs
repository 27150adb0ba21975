//! The one gate to the core: releases the GIL, sets the threads, hears Ctrl-C, ticks
//! progress, maps errors, lets no panic through.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use fairaudit_core::parallel::Control;
use fairaudit_core::{Error, Result};
use pyo3::prelude::*;

use crate::options::Call;

/// How often a waiting call looks for signals and reports progress.
const TICK: Duration = Duration::from_millis(50);
/// Work (in units of roughly a nanosecond on one core) that is over before a tick would come.
const SHORT_WORK: u64 = 25_000_000;
/// Work below which one thread does it all.
const SHARED_WORK: u64 = 300_000;
/// Threads beyond so many of each core help nobody.
const THREADS_PER_CORE: usize = 4;
/// Work that is worth a thread.
const THREAD_WORK: u64 = 100_000;

impl Call {
    /// Runs `compute` without the GIL; `work` are the nanoseconds that it takes one core, by estimate.
    ///
    /// Short work begins on the calling thread at once, which is deaf meanwhile, and may start a few helpers. Longer
    /// work has threads of its own, gone when the call returns (a pool that outlives a call would hang in a forked
    /// child), while the calling thread waits, checks for signals and ticks progress.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: u64,
        compute: impl FnOnce(&Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (threads, panics) = (self.threads(work), self.panics);
        let control = if work < SHORT_WORK { Control::with_threads(threads) } else { Control::default() };
        let guarded = || {
            catch_unwind(AssertUnwindSafe(|| {
                assert!(!panics, "planted by a test");
                compute(&control)
            }))
        };
        if work < SHORT_WORK {
            let outcome = py.detach(guarded);
            return self.finish(py, &control, outcome);
        }
        let progress = self.progress.as_ref();
        let (outcome, interruption) = py.detach(|| wait(&control, progress, || on_threads(threads, guarded)));
        if let Some(interruption) = interruption {
            return Err(interruption);
        }
        let outcome = outcome.map_err(|error| {
            let accepted = format!("a number of threads that can be started ({error})");
            to_python(py, &Error::argument("n_threads", threads, &accepted))
        })?;
        self.finish(py, &control, outcome)
    }

    /// Runs what takes no time: a panic in it becomes an error too.
    pub(crate) fn brief<T: Send>(py: Python<'_>, compute: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
        Self::or_ordinary(None).run(py, 0, |_| compute())
    }

    /// No more threads than there is work for: starting one costs some 20 microseconds.
    fn threads(&self, work: u64) -> usize {
        if work < SHARED_WORK {
            return 1;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = self.n_threads.unwrap_or(cores).min(cores.saturating_mul(THREADS_PER_CORE));
        wanted.min(usize::try_from(work / THREAD_WORK).unwrap_or(usize::MAX).max(2))
    }

    /// What a computation came to, told to Python.
    fn finish<T>(&self, py: Python<'_>, control: &Control, outcome: std::thread::Result<Result<T>>) -> PyResult<T> {
        match outcome {
            Ok(Ok(value)) => {
                if let Some(progress) = &self.progress {
                    progress.call1(py, (control.done(),))?;
                }
                Ok(value)
            }
            Ok(Err(error)) => Err(to_python(py, &error)),
            Err(panic) => Err(from_panic(py, panic.as_ref())),
        }
    }
}

/// Runs `compute` in a pool, or here when it has one thread.
fn on_threads<T: Send>(
    threads: usize,
    compute: impl FnOnce() -> T + Send,
) -> std::result::Result<T, rayon::ThreadPoolBuildError> {
    if threads == 1 {
        return Ok(compute());
    }
    // A scoped pool joins its threads: none is left when the call returns.
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder.build_scoped(rayon::ThreadBuilder::run, |pool| pool.install(compute))
}

/// Runs `compute` on another thread; here signals are heard and progress is told.
fn wait<T: Send>(
    control: &Control,
    progress: Option<&Py<PyAny>>,
    compute: impl FnOnce() -> T + Send,
) -> (T, Option<PyErr>) {
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let worker = scope.spawn(move || {
            let outcome = compute();
            // The receiver lives until the worker is joined.
            let _ = sender.send(());
            outcome
        });
        let mut interruption = None;
        while receiver.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if interruption.is_some() {
                continue;
            }
            let heard = Python::attach(|py| {
                py.check_signals()?;
                progress.map_or(Ok(()), |progress| progress.call1(py, (control.done(),)).map(drop))
            });
            if let Err(error) = heard {
                control.cancel();
                interruption = Some(error);
            }
        }
        // A panic in the computation was caught there; one in the pool itself goes on here.
        let outcome = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (outcome, interruption)
    })
}

/// The one map from errors of the core to the classes in `fairaudit_rs.errors`.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Argument { .. } => "ArgumentError",
        Error::Formula(_) => "FormulaError",
        Error::TooManyValues { .. } => "TooManyValuesError",
        Error::Cancelled => "CancelledError",
    };
    let arguments = match error {
        Error::TooManyValues { column, limit } => (error.to_string(), Some((*column, *limit))),
        _ => (error.to_string(), None),
    };
    let raised = raise(py, class, arguments);
    if let Error::Argument { name: Some(name), .. } = error {
        // A class of ours takes any attribute; without it the message still names the argument.
        let _ = raised.value(py).setattr("argument", name);
    }
    raised
}

fn from_panic(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    raise(py, "InternalError", (format!("internal error in the native module: {text}; please report it"), None))
}

fn raise(py: Python<'_>, class: &str, (message, details): (String, Option<(usize, usize)>)) -> PyErr {
    let build = || -> PyResult<Bound<'_, PyAny>> {
        let class = py.import("fairaudit_rs.errors")?.getattr(class)?;
        match details {
            Some(details) => class.call1((message, details)),
            None => class.call1((message,)),
        }
    };
    build().map_or_else(|error| error, PyErr::from_value)
}
