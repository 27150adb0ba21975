//! One fast generator per replicate, sixteen replicates side by side.
//!
//! A loop that needs a number per row seeds xoshiro128++ (Blackman and Vigna) of each of its
//! replicates from that replicate's Philox block. Which lane or thread a replicate runs in
//! changes nothing about its numbers.

use super::{Domain, Stream};
use crate::simd::LANES;

/// xoshiro128++ in every lane.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct LaneGenerator {
    state: [[u32; LANES]; 4],
}

impl LaneGenerator {
    /// Generators of the replicates `first..first + LANES`; cells near `u64::MAX` are for these.
    pub fn new(seed: u64, domain: Domain, series: u64, first: u64, cell: u64) -> Self {
        let mut state = [[0; LANES]; 4];
        for lane in 0..LANES {
            let mut stream = Stream::new(seed, domain, series, first + lane as u64, cell);
            for pair in 0..2 {
                let word = stream.next_word();
                state[2 * pair][lane] = word as u32;
                state[2 * pair + 1][lane] = (word >> 32) as u32;
            }
            // The state of zeros only (probability 2^-128) would stay so.
            state[0][lane] |= u32::from((0..4).all(|word| state[word][lane] == 0));
        }
        Self { state }
    }

    /// The next 32 bits of every lane.
    #[inline(always)]
    pub fn next_words(&mut self) -> [u32; LANES] {
        let mut words = [0; LANES];
        for lane in 0..LANES {
            let [s0, s1, s2, s3] = [0, 1, 2, 3].map(|word| self.state[word][lane]);
            words[lane] = s0.wrapping_add(s3).rotate_left(7).wrapping_add(s0);
            let mixed = [s0 ^ s3 ^ s1, s1 ^ s2 ^ s0, s2 ^ s0 ^ (s1 << 9), (s3 ^ s1).rotate_left(11)];
            for word in 0..4 {
                self.state[word][lane] = mixed[word];
            }
        }
        words
    }
}

/// The fast generator of one replicate, which uses all lanes for itself.
#[derive(Debug, Clone)]
pub struct RowGenerator {
    lanes: LaneGenerator,
    words: [u32; LANES],
    used: usize,
}

impl RowGenerator {
    /// The generator of one (seed, domain, series, replicate, cell).
    pub fn new(seed: u64, domain: Domain, series: u64, replicate: u64, cell: u64) -> Self {
        let mut stream = Stream::new(seed, domain, series, replicate, cell);
        let mut state = [[0; LANES]; 4];
        for lane in 0..LANES {
            for pair in 0..2 {
                let word = stream.next_word();
                state[2 * pair][lane] = word as u32;
                state[2 * pair + 1][lane] = (word >> 32) as u32;
            }
            state[0][lane] |= u32::from((0..4).all(|word| state[word][lane] == 0));
        }
        Self { lanes: LaneGenerator { state }, words: [0; LANES], used: LANES }
    }

    #[inline(always)]
    fn next_word(&mut self) -> u32 {
        if self.used == LANES {
            self.words = self.lanes.next_words();
            self.used = 0;
        }
        let word = self.words[self.used];
        self.used += 1;
        word
    }

    /// A uniform integer in `0..bound`, without bias (Lemire, 2019). `bound` must not be 0.
    #[inline(always)]
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0);
        let mut product = u64::from(self.next_word()) * u64::from(bound);
        if (product as u32) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u32) < threshold {
                product = u64::from(self.next_word()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }

    /// Shuffles values (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference code of xoshiro128++, one lane.
    fn reference(s: &mut [u32; 4]) -> u32 {
        let result = s[0].wrapping_add(s[3]).rotate_left(7).wrapping_add(s[0]);
        let t = s[1] << 9;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(11);
        result
    }

    #[test]
    fn lanes_follow_the_published_generator() {
        let mut lanes = LaneGenerator::new(3, Domain::Permutation, 0, 32, 9);
        let mut scalar: Vec<[u32; 4]> =
            (0..LANES).map(|lane| std::array::from_fn(|word| lanes.state[word][lane])).collect();
        for _ in 0..50 {
            let words = lanes.next_words();
            let expected: Vec<u32> = scalar.iter_mut().map(reference).collect();
            assert_eq!(words.to_vec(), expected);
        }
    }

    /// All orders of four values are equally frequent (chi-square on 23 degrees, tail 1e-6).
    #[test]
    fn shuffles_are_uniform() {
        let mut counts = std::collections::HashMap::new();
        let draws = 24_000;
        let mut generator = RowGenerator::new(4, Domain::Simulation, 0, 0, 0);
        for _ in 0..draws {
            let mut values = [0, 1, 2, 3];
            generator.shuffle(&mut values);
            *counts.entry(values).or_insert(0u32) += 1;
        }
        let expected = f64::from(draws) / 24.0;
        let statistic: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(counts.len() == 24 && statistic < 74.0, "{statistic}");
    }

    #[test]
    fn a_replicate_has_its_numbers_in_any_lane() {
        let mut here = LaneGenerator::new(3, Domain::Permutation, 0, 0, 9);
        let mut there = LaneGenerator::new(3, Domain::Permutation, 0, 5, 9);
        for _ in 0..10 {
            assert_eq!(here.next_words()[7], there.next_words()[2]);
        }
    }
}
