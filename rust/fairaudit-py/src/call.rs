//! The one gate to the core: releases the GIL, sets the threads, hears Ctrl-C, ticks
//! progress, maps errors, lets no panic through.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use fairaudit_core::parallel::Control;
use fairaudit_core::{Draws, Error, Result};
use pyo3::prelude::*;

/// How often a waiting call looks for signals and reports progress.
const TICK: Duration = Duration::from_millis(50);
/// Work (in units of roughly a nanosecond) below which a call stays on its own thread.
const INLINE_WORK: u64 = 300_000;

/// How a call wants to be run: a part of every native function's arguments.
pub(crate) struct Run<'py> {
    pub(crate) py: Python<'py>,
    /// `None`: all cores that the process may use.
    pub(crate) n_threads: Option<usize>,
    /// Called with the units of work done, at most once per tick and once at the end.
    pub(crate) progress: Option<Py<PyAny>>,
    /// Estimated nanoseconds on one core.
    pub(crate) work: u64,
}

/// `n` replicates from the index `first` on.
pub(crate) fn draws(first: u64, n: u64, seed: u64, series: u64) -> Draws {
    Draws { replicates: first..first + n, seed, series }
}

/// Work that is worth a thread.
const THREAD_WORK: u64 = 100_000;
/// Work that is over before a tick would come.
const SHORT_WORK: u64 = 25_000_000;

/// As [`run`], for what the core shares between threads without a pool ([`Control::with_threads`]):
/// short work begins on the calling thread at once, which is free of the GIL but deaf meanwhile.
pub(crate) fn run_shared<T: Send>(run: Run<'_>, compute: impl FnOnce(&Control) -> Result<T> + Send) -> PyResult<T> {
    if run.work >= SHORT_WORK || run.n_threads == Some(0) {
        return self::run(run, compute);
    }
    let control = Control::with_threads(if run.work < INLINE_WORK { 1 } else { threads(&run) });
    let outcome = run.py.detach(|| catch_unwind(AssertUnwindSafe(|| compute(&control))));
    finish(run.py, run.progress, &control, outcome)
}

/// No more threads than there is work for: starting one costs some 20 microseconds.
fn threads(run: &Run<'_>) -> usize {
    let wanted = run.n_threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    wanted.min(usize::try_from(run.work / THREAD_WORK).unwrap_or(usize::MAX).max(2))
}

/// Runs `compute` without the GIL.
///
/// Small work runs on the calling thread. Larger work runs in a pool of its own, which is gone
/// when the call returns (a pool that outlives a call would hang in a forked child), while the
/// calling thread waits, checks for signals and ticks progress.
pub(crate) fn run<T: Send>(run: Run<'_>, compute: impl FnOnce(&Control) -> Result<T> + Send) -> PyResult<T> {
    let threads = threads(&run);
    let Run { py, n_threads, progress, work } = run;
    if n_threads == Some(0) {
        return Err(to_python(py, &Error::argument("n_threads", 0, "None or a whole number of at least 1")));
    }
    let control = Control::default();
    let guarded = || catch_unwind(AssertUnwindSafe(|| compute(&control)));
    let (outcome, interruption) = if work < INLINE_WORK {
        (Ok(py.detach(guarded)), None)
    } else {
        // A scoped pool joins its threads: none is left when the call returns.
        let pooled = || {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
            builder.build_scoped(rayon::ThreadBuilder::run, |pool| pool.install(guarded))
        };
        py.detach(|| wait(&control, progress.as_ref(), pooled))
    };
    if let Some(interruption) = interruption {
        return Err(interruption);
    }
    let outcome = outcome.map_err(|error| {
        let accepted = format!("a number of threads that can be started ({error})");
        to_python(py, &Error::argument("n_threads", threads, &accepted))
    })?;
    finish(py, progress, &control, outcome)
}

/// What a computation came to, told to Python.
fn finish<T>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    control: &Control,
    outcome: std::thread::Result<Result<T>>,
) -> PyResult<T> {
    match outcome {
        Ok(Ok(value)) => {
            if let Some(progress) = progress {
                progress.call1(py, (control.done(),))?;
            }
            Ok(value)
        }
        Ok(Err(error)) => Err(to_python(py, &error)),
        Err(panic) => Err(from_panic(py, panic.as_ref())),
    }
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
        Error::Argument(_) => "ArgumentError",
        Error::Formula(_) => "FormulaError",
        Error::TooManyValues { .. } => "TooManyValuesError",
        Error::Cancelled => "CancelledError",
    };
    let arguments = match error {
        Error::TooManyValues { column, limit } => (error.to_string(), Some((*column, *limit))),
        _ => (error.to_string(), None),
    };
    raise(py, class, arguments)
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
