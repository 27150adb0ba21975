//! Benchmarks of the core live in `rust/`; this crate has no code of its own.
