//! Random numbers that belong to the replicate, never to a thread.
//!
//! [`philox`] is Philox4x64-10 (Salmon et al., SC 2011): a keyed bijection of a counter. A
//! [`Stream`] is the sequence of its outputs for one (seed, domain, replicate, cell); two
//! streams never overlap, so any split of the replicates over threads, chunks or machines
//! gives the same numbers.

mod binomial;
mod gamma;
mod hypergeometric;
mod lanes;
mod rejection;

pub use lanes::{LaneGenerator, RowGenerator};
pub(crate) use rejection::ln_factorial;

pub(crate) use binomial::LaneMultinomial;
pub use binomial::{Binomial, multinomial};
pub(crate) use gamma::{LaneGamma, Shape};
pub(crate) use hypergeometric::LaneSampler;
pub use hypergeometric::{FixedHypergeometric, Hypergeometric, multivariate_hypergeometric};

use crate::draws::Draws;
use crate::error::Result;
use crate::parallel::Control;
use crate::simd::InstructionSet;

/// Builds the tables of the samplers and detects the instruction set. Done once at import: a process that
/// forks while another thread does it would leave the child waiting.
pub fn prepare() {
    let _ = ln_factorial(0.0);
    // Whoever needs it gets the error; an import has nobody to tell.
    let _ = InstructionSet::current();
}

/// What a stream is used for. Two uses with one seed must not see the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Domain {
    /// Label permutations of one comparison.
    Permutation = 1,
    /// Bootstrap replicates.
    Bootstrap = 2,
    /// Synthetic data (demo, simulations).
    Simulation = 3,
    /// Normal numbers that stand for multipliers of rows.
    Multiplier = 4,
    /// Limits of the value of a group at random levels.
    Melded = 5,
    /// Data of an audit of a test: units that are drawn anew or go to other groups.
    Audit = 6,
}

/// Values that `sample` draws one after the other from the simulation stream of a seed and series, less those before
/// the first.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn simulate(draws: &Draws, mut sample: impl FnMut(&mut Stream) -> u64, control: &Control) -> Result<Vec<u64>> {
    let mut stream = Stream::new(draws.seed, Domain::Simulation, draws.series, 0, 0);
    let mut values = Vec::with_capacity(draws.n() as usize);
    for index in 0..draws.replicates.end {
        if index.is_multiple_of(1024) {
            control.check()?;
        }
        let value = sample(&mut stream);
        if index >= draws.replicates.start {
            values.push(value);
        }
    }
    Ok(values)
}

const MULTIPLIERS: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
const WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];

/// Four random words for a 256-bit counter and a 128-bit key: Philox4x64-10.
///
/// ```
/// let words = fairaudit_core::random::philox([0; 4], [0; 2]);
/// assert_eq!(words[0], 0x1655_4d9e_ca36_314c);
/// ```
#[inline]
pub fn philox(mut counter: [u64; 4], mut key: [u64; 2]) -> [u64; 4] {
    for _ in 0..10 {
        let first = u128::from(MULTIPLIERS[0]) * u128::from(counter[0]);
        let second = u128::from(MULTIPLIERS[1]) * u128::from(counter[2]);
        counter = [
            (second >> 64) as u64 ^ counter[1] ^ key[0],
            second as u64,
            (first >> 64) as u64 ^ counter[3] ^ key[1],
            first as u64,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The random words of one (seed, domain, series, replicate, cell).
///
/// `series` separates tests that run under one seed and domain (the comparisons of a call).
#[derive(Debug, Clone)]
pub struct Stream {
    key: [u64; 2],
    counter: [u64; 4],
    words: [u64; 4],
    used: usize,
}

impl Stream {
    /// The stream at its first word.
    #[inline]
    pub fn new(seed: u64, domain: Domain, series: u64, replicate: u64, cell: u64) -> Self {
        Self { key: [seed, domain as u64], counter: [0, cell, replicate, series], words: [0; 4], used: 4 }
    }

    /// Makes the next words, once those before them are used.
    #[inline]
    pub(crate) fn fill(&mut self) {
        debug_assert_eq!(self.used, 4);
        self.words = philox(self.counter, self.key);
        self.counter[0] += 1;
        self.used = 0;
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        if self.used == 4 {
            self.fill();
        }
        let word = self.words[self.used];
        self.used += 1;
        word
    }

    /// A uniform number in the open interval (0, 1): the midpoint of one of 2^53 cells.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.next_word() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform integer in `0..bound`, without bias (Lemire, 2019). `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut product = u128::from(self.next_word()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next_word()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with Random123 (`kat_vectors`, philox4x64 10 rounds).
    #[test]
    fn philox_known_answers() {
        let ones = u64::MAX;
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x1655_4d9e_ca36_314c, 0xdb20_fe9d_672d_0fdc, 0xd7e7_72ce_e186_176b, 0x7e68_b68a_ec7b_a23b]
        );
        assert_eq!(
            philox([ones; 4], [ones; 2]),
            [0x87b0_92c3_013f_e90b, 0x438c_3c67_be8d_0224, 0x9cc7_d7c6_9cd7_77b6, 0xa09c_aebf_594f_0ba0]
        );
        assert_eq!(
            philox(
                [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89],
                [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c]
            ),
            [0xa528_f454_03e6_1d95, 0x38c7_2dbd_566e_9788, 0xa5a1_610e_72fd_18b5, 0x57bd_43b5_e52b_7fe6]
        );
    }

    #[test]
    fn streams_differ_in_every_coordinate() {
        let first =
            |seed, domain, series, replicate, cell| Stream::new(seed, domain, series, replicate, cell).next_word();
        let base = first(1, Domain::Permutation, 0, 0, 0);
        assert_ne!(base, first(2, Domain::Permutation, 0, 0, 0));
        assert_ne!(base, first(1, Domain::Bootstrap, 0, 0, 0));
        assert_ne!(base, first(1, Domain::Permutation, 1, 0, 0));
        assert_ne!(base, first(1, Domain::Permutation, 0, 1, 0));
        assert_ne!(base, first(1, Domain::Permutation, 0, 0, 1));
    }

    /// Frequencies of `below(7)` stay in a binomial band of tail 1e-6.
    #[test]
    fn integers_are_uniform() {
        let mut stream = Stream::new(5, Domain::Simulation, 0, 0, 0);
        let mut counts = [0u32; 7];
        let draws = 700_000;
        for _ in 0..draws {
            counts[stream.below(7) as usize] += 1;
        }
        let expected = f64::from(draws) / 7.0;
        let band = 4.9 * (expected * 6.0 / 7.0).sqrt();
        for count in counts {
            assert!((f64::from(count) - expected).abs() < band, "{counts:?}");
        }
    }

    /// A bound just above 2^63 rejects almost half of the words; a biased method would give
    /// the lower half of the range twice as often.
    #[test]
    fn integers_are_uniform_for_an_awkward_bound() {
        let mut stream = Stream::new(6, Domain::Simulation, 0, 0, 0);
        let bound = (1u64 << 63) + (1u64 << 62);
        let third = bound / 3;
        let draws = 300_000;
        let low = (0..draws).filter(|_| stream.below(bound) < third).count();
        let expected = f64::from(draws) / 3.0;
        assert!((low as f64 - expected).abs() < 4.9 * (expected * 2.0 / 3.0).sqrt());
    }
}
