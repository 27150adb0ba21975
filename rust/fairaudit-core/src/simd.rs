//! One loop compiled for three instruction sets, chosen when it runs. The bits are the same on each: the
//! compiler fuses no multiplication with an addition of its own accord, and where a loop asks for
//! it (`f64::mul_add`) the baseline calls a library that rounds once as well, only slowly.
// Unsafe code: calling a function that was compiled for an instruction set which the processor
// was just seen to have.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Replicates that run side by side: one lane each, whatever the width of the registers.
pub const LANES: usize = 16;

/// What the loops are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 (F, BW, DQ, VL).
    Avx512,
}

/// Work that is compiled for every instruction set; its `run` must be `inline(always)`, and so
/// must be what it calls in its loops.
pub(crate) trait Task {
    /// What comes of the work.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

impl InstructionSet {
    /// The best one that this processor runs; the environment variable `FAIRAUDIT_SIMD`
    /// (`baseline`, `avx2`, `avx512`) asks for another. Detected once: a process has one instruction set,
    /// and short work need not read the environment.
    ///
    /// # Errors
    /// [`Error::Argument`] when the processor does not run what the variable asks for.
    pub fn current() -> Result<Self> {
        static CURRENT: OnceLock<Result<InstructionSet>> = OnceLock::new();
        CURRENT.get_or_init(Self::detect).clone()
    }

    fn detect() -> Result<Self> {
        let available = Self::available();
        // Set to nothing is not set.
        let Some(wanted) = std::env::var("FAIRAUDIT_SIMD").ok().filter(|name| !name.is_empty()) else {
            return Ok(*available.last().unwrap_or(&Self::Baseline));
        };
        let named = available.iter().copied().find(|set| set.name() == wanted);
        named.ok_or_else(|| {
            let names: Vec<&str> = available.iter().map(|set| set.name()).collect();
            Error::argument("FAIRAUDIT_SIMD", wanted, &format!("{} on this processor", names.join(", ")))
        })
    }

    /// All that this processor runs, the best one last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut sets = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma")
            {
                sets.push(Self::Avx512);
            }
        }
        sets
    }

    fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    pub(crate) fn run<T: Task>(self, task: T) -> T::Output {
        match self {
            // SAFETY: `available` saw the instruction set on this processor.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { run_avx2(task) },
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { run_avx512(task) },
            _ => task.run(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<T: Task>(task: T) -> T::Output {
    task.run()
}

// Without POPCNT, which bits of masks could be counted with: LLVM adds them up side by side either
// way, and with it what surrounds them comes out slower.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn run_avx512<T: Task>(task: T) -> T::Output {
    task.run()
}
