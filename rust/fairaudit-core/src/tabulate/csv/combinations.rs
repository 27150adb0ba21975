//! Distinct rows of some fields, compared as they stand in the file.

use crate::tabulate::dictionary::Dictionary;

/// Most distinct rows, and most bytes of the fields in them.
const MAX_ROWS: usize = 1 << 16;
const MAX_BYTES: usize = 1 << 24;
/// Fields up to this length are their own key.
const SHORT: usize = 7;
/// Bytes that must follow a field in a block.
pub(super) const PADDING: usize = 8;
/// Marks the keys of longer fields, which are hashes.
const LONG: u64 = 0xFF << 56;

/// How many rows have the same texts in some fields.
#[derive(Clone)]
pub(super) struct Combinations {
    /// Positions of the fields in a row.
    places: Vec<usize>,
    /// The distinct texts of each field by their keys.
    values: Vec<Dictionary>,
    texts: Vec<Vec<Box<[u8]>>>,
    /// `pairs[c]`: (row of the fields before c, text of field c) to the row with field c.
    pairs: Vec<Dictionary>,
    counts: Vec<u64>,
    bytes: usize,
}

impl Combinations {
    pub(super) fn new(places: Vec<usize>) -> Self {
        let n = places.len();
        Self {
            places,
            values: vec![Dictionary::new(); n],
            texts: vec![Vec::new(); n],
            pairs: vec![Dictionary::new(); n],
            counts: Vec::new(),
            bytes: 0,
        }
    }

    /// Counts a row: `start` is where it begins in a block, `ends` are the ends of its fields.
    #[inline]
    pub(super) fn add(&mut self, block: &[u8], start: usize, ends: &[u32]) {
        let mut row = 0;
        for c in 0..self.places.len() {
            let place = self.places[c];
            let from = if place == 0 { start } else { ends[place - 1] as usize + 1 };
            let mut to = ends[place] as usize;
            // The line ends in a carriage return and a newline.
            if place + 1 == ends.len() && to > from && block[to - 1] == b'\r' {
                to -= 1;
            }
            let key = if to - from <= SHORT {
                let word: [u8; 8] = block[from..from + 8].try_into().unwrap_or_default();
                short_key(u64::from_le_bytes(word), to - from)
            } else {
                long_key(&block[from..to])
            };
            let code = self.code(c, key, &block[from..to]);
            row = self.pair(c, row, code);
        }
        self.count(row, 1);
    }

    #[inline]
    fn code(&mut self, c: usize, key: u64, text: &[u8]) -> u32 {
        let texts = &mut self.texts[c];
        let code = self.values[c].code(key, texts.len(), |i, _| key < LONG || *texts[i] == *text);
        if code as usize == texts.len() {
            self.bytes += text.len();
            texts.push(text.into());
        }
        code
    }

    #[inline]
    fn pair(&mut self, c: usize, row: u32, code: u32) -> u32 {
        if c == 0 { code } else { self.pairs[c].code(u64::from(row) << 32 | u64::from(code), 0, |_, _| true) }
    }

    #[inline]
    fn count(&mut self, row: u32, n: u64) {
        if row as usize >= self.counts.len() {
            self.counts.resize(row as usize + 1, 0);
        }
        self.counts[row as usize] += n;
    }

    /// Whether there are too many to be worth a table.
    pub(super) fn are_many(&self) -> bool {
        self.counts.len() > MAX_ROWS || self.bytes > MAX_BYTES
    }

    /// The codes of the fields of each row.
    fn codes(&self) -> Vec<Vec<u32>> {
        let codes = |row: usize| {
            let mut codes = vec![0; self.places.len()];
            let mut at = row;
            for c in (1..codes.len()).rev() {
                let key = self.pairs[c].entries[at].0;
                codes[c] = key as u32;
                at = (key >> 32) as usize;
            }
            codes[0] = at as u32;
            codes
        };
        (0..self.counts.len()).map(codes).collect()
    }

    /// Adds the rows of another part of the file.
    pub(super) fn merge(mut self, other: &Self) -> Self {
        let mut new_codes: Vec<Vec<u32>> = Vec::with_capacity(self.places.len());
        for (c, values) in other.values.iter().enumerate() {
            let texts = values.entries.iter().zip(&other.texts[c]);
            new_codes.push(texts.map(|(&(key, _), text)| self.code(c, key, text)).collect());
        }
        for (codes, &n) in other.codes().iter().zip(&other.counts) {
            let mut row = 0;
            for (c, &code) in codes.iter().enumerate() {
                row = self.pair(c, row, new_codes[c][code as usize]);
            }
            self.count(row, n);
        }
        self
    }

    /// The rows and their counts as CSV, in ascending order.
    pub(super) fn to_csv(&self) -> Vec<u8> {
        let line = |(codes, n): (Vec<u32>, &u64)| {
            let mut line = Vec::new();
            for (texts, &code) in self.texts.iter().zip(&codes) {
                line.extend_from_slice(&texts[code as usize]);
                line.push(b',');
            }
            line.extend_from_slice(n.to_string().as_bytes());
            line.push(b'\n');
            line
        };
        let mut lines: Vec<Vec<u8>> = self.codes().into_iter().zip(&self.counts).map(line).collect();
        lines.sort_unstable();
        lines.concat()
    }
}

/// A short field and its length in one word, of the eight bytes from its start on.
#[inline]
fn short_key(word: u64, length: usize) -> u64 {
    word & ((1 << (8 * length)) - 1) | (length as u64) << 56
}

/// A hash of a longer field.
#[inline]
fn long_key(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        mix(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(u64::from_le_bytes(rest));
    hash | LONG
}
