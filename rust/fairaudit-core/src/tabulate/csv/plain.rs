//! Reading plain CSV side by side, in blocks and 64 bytes at a time.
//!
//! A file is plain when quotes stand around whole fields (a quote within is written twice), carriage returns before
//! newlines, both anywhere within quotes, and no line is blank. There all readers agree on where fields end: at commas
//! and newlines with an even number of quotes before them.
//!
//! A block holds the rows that begin in it. Whether its first byte lies within quotes is guessed: the wrong guess has
//! quotes in wrong places, and in the end each guess is held against the block before.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use super::combinations::{Combinations, PADDING};
use crate::error::Result;
use crate::parallel::{Control, reduce_blocks};
use crate::simd::{InstructionSet, Task};

const BLOCK: u64 = 1 << 18;
/// Bytes read beyond a block, for its last row: as a rule, and at most.
const TAILS: [u64; 2] = [1 << 12, 1 << 20];
const WORD: usize = u64::BITS as usize;

/// Where a file is, where its first row begins, and how many fields a row has.
pub(super) struct Layout<'a> {
    pub(super) path: &'a str,
    pub(super) header: u64,
    pub(super) n_fields: usize,
}

/// What a file was found to be.
pub(super) enum Plain {
    /// Plain, its rows counted.
    Counted(Combinations),
    /// Plain; the rows were not to be counted, or are too many.
    Checked,
    /// Not plain, with a row of another length, or unreadable.
    Unlike,
}

/// The rows after the header: bytes `start..end` of a file, and a newline where the last one has none.
struct Rows<'a> {
    path: &'a str,
    start: u64,
    end: u64,
    closed: bool,
    n_fields: usize,
    instructions: InstructionSet,
}

/// What one thread has seen.
struct Part {
    file: Option<File>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    counted: Option<Combinations>,
    /// Each block, and whether it was taken to begin and seen to end within quotes.
    quoted: Vec<(usize, bool, bool)>,
}

/// Reads all rows; counts them where it is asked to and they are few.
pub(super) fn read(layout: &Layout, counted: Option<&Combinations>, control: &Control) -> Result<Plain> {
    let Some(rows) = Rows::find(layout, InstructionSet::current()?) else {
        return Ok(Plain::Unlike);
    };
    let (unlike, many) = (AtomicBool::new(false), AtomicBool::new(counted.is_none()));
    let empty = || Part { file: None, bytes: Vec::new(), ends: Vec::new(), counted: counted.cloned(), quoted: vec![] };
    let add = |part: &mut Part, block: usize| {
        control.check()?;
        if unlike.load(Ordering::Relaxed) {
            return Ok(());
        }
        if many.load(Ordering::Relaxed) {
            part.counted = None;
        }
        match rows.read_block(block as u64, part) {
            Some((begins, ends)) => part.quoted.push((block, begins, ends)),
            None => unlike.store(true, Ordering::Relaxed),
        }
        if part.counted.as_ref().is_some_and(Combinations::are_many) {
            many.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let merge = |mut first: Part, second: Part| {
        first.quoted.extend(second.quoted);
        first.counted = first.counted.zip(second.counted).map(|(first, second)| first.merge(&second));
        Ok(first)
    };
    let mut part = reduce_blocks(rows.n_blocks(), control, empty, add, merge)?;
    part.quoted.sort_unstable();
    let guessed = part.quoted.windows(2).all(|pair| pair[0].2 == pair[1].1) && part.quoted.first().is_none_or(|b| !b.1);
    if unlike.into_inner() || !guessed {
        return Ok(Plain::Unlike);
    }
    let few = part.counted.filter(|counted| !many.into_inner() && !counted.are_many());
    Ok(few.map_or(Plain::Checked, Plain::Counted))
}

impl<'a> Rows<'a> {
    fn find(layout: &Layout<'a>, instructions: InstructionSet) -> Option<Self> {
        let mut file = File::open(layout.path).ok()?;
        let about = file.metadata().ok()?;
        let (mut start, end) = (layout.header, about.len());
        if !about.is_file() || layout.n_fields == 0 || start == 0 || start > end {
            return None;
        }
        let mut byte = |at: u64| {
            let mut byte = [0];
            file.seek(SeekFrom::Start(at)).ok()?;
            file.read_exact(&mut byte).ok()?;
            Some(byte[0])
        };
        // Blank lines before the header and marks of the encoding are for other readers.
        if matches!(byte(0)?, b'\n' | b'\r' | 0xEF) {
            return None;
        }
        if byte(start - 1)? == b'\r' && start < end && byte(start)? == b'\n' {
            start += 1;
        }
        let closed = start == end || byte(end - 1)? == b'\n';
        Some(Self { path: layout.path, start, end, closed, n_fields: layout.n_fields, instructions })
    }

    /// Bytes of the rows, with the newline that may be missing.
    fn len(&self) -> u64 {
        self.end - self.start + u64::from(!self.closed)
    }

    fn n_blocks(&self) -> usize {
        self.len().div_ceil(BLOCK) as usize
    }

    /// Checks and counts the rows that begin in a block; whether it begins and ends within quotes. None when it is not
    /// plain.
    fn read_block(&self, block: u64, part: &mut Part) -> Option<(bool, bool)> {
        // From the byte before the block on: a row begins after a newline.
        let before = u64::from(block > 0);
        let from = block * BLOCK - before;
        let own = (BLOCK + before).min(self.len() - from);
        for tail in TAILS {
            self.load(from, own + tail, part)?;
            for quoted in [false, true] {
                if !(quoted && block == 0) && self.read_rows(quoted, block == 0, own as usize - 1, part) {
                    return Some((quoted, quoted ^ self.instructions.run(OddQuotes(&part.bytes[..own as usize - 1]))));
                }
            }
        }
        None
    }

    /// Fills the buffer with the bytes from `from` on, with a newline at the end of the file and what pads it.
    fn load(&self, from: u64, wanted: u64, part: &mut Part) -> Option<()> {
        if part.file.is_none() {
            part.file = Some(File::open(self.path).ok()?);
        }
        let file = part.file.as_mut()?;
        let left = self.end - self.start - from;
        let n = wanted.min(left) as usize;
        part.bytes.resize((n + 1 + PADDING).next_multiple_of(WORD), b' ');
        file.seek(SeekFrom::Start(self.start + from)).ok()?;
        file.read_exact(&mut part.bytes[..n]).ok()?;
        part.bytes[n..].fill(b' ');
        if n as u64 == left && !self.closed {
            part.bytes[n] = b'\n';
        }
        Some(())
    }

    /// Checks and counts the rows of the buffer: `first` if one begins with it, or else from the first newline on,
    /// until the first newline that is not before `last`. False, and nothing is counted, when they are not plain.
    fn read_rows(&self, quoted: bool, first: bool, last: usize, part: &mut Part) -> bool {
        let Part { bytes, ends, counted, .. } = part;
        let Some(counted) = counted else {
            let check = Check { bytes, quoted, first, last, n_fields: self.n_fields };
            return self.instructions.run(check);
        };
        ends.clear();
        let Some(newlines) = self.instructions.run(FindEnds { bytes, quoted, first, last, ends }) else {
            return false;
        };
        let is_newline = |end: u32| bytes[end as usize] == b'\n';
        let skipped = if first { 0 } else { 1 + ends.iter().take_while(|&&end| !is_newline(end)).count() };
        let mut start = if first { 0 } else { ends[skipped - 1] as usize + 1 };
        let rows = ends[skipped..].chunks_exact(self.n_fields);
        // As many newlines as rows, and one at the end of each: there is none within.
        let last_end = |row: &[u32]| row[row.len() - 1];
        if !rows.remainder().is_empty()
            || rows.len() != newlines - usize::from(!first)
            || !rows.clone().all(|row| is_newline(last_end(row)))
        {
            return false;
        }
        for row in rows {
            counted.add(bytes, start, row);
            start = last_end(row) as usize + 1;
        }
        true
    }
}

/// Whether an odd number of quotes is among some bytes.
struct OddQuotes<'a>(&'a [u8]);

impl Task for OddQuotes<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let (words, rest) = self.0.as_chunks::<WORD>();
        let odd = words.iter().fold(0, |odd, word| odd ^ places_of(b'"', word));
        rest.iter().fold(odd.count_ones() % 2 == 1, |odd, &byte| odd ^ (byte == b'"'))
    }
}

/// Finds the ends of fields, commas and newlines, until the first newline that is not before `last`; how many newlines
/// there are. None when the text is not plain.
struct FindEnds<'a> {
    bytes: &'a [u8],
    quoted: bool,
    first: bool,
    last: usize,
    ends: &'a mut Vec<u32>,
}

impl Task for FindEnds<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let Self { bytes, quoted, first, last, ends } = self;
        let mut scanner = Scanner::new(quoted, first);
        let mut n_newlines = 0;
        for (index, word) in bytes.as_chunks::<WORD>().0.iter().enumerate() {
            let at = index * WORD;
            let Ends { commas, newlines } = scanner.next(word)?;
            let beyond = newlines & from_bit(last.saturating_sub(at));
            // Up to the last newline that is asked for.
            let asked = if beyond == 0 { u64::MAX } else { beyond ^ (beyond - 1) };
            let mut rest = (commas | newlines) & asked;
            while rest != 0 {
                ends.push((at + rest.trailing_zeros() as usize) as u32);
                rest &= rest - 1;
            }
            n_newlines += (newlines & asked).count_ones() as usize;
            if beyond != 0 {
                return Some(n_newlines);
            }
        }
        None
    }
}

/// Whether the text is plain and its rows have as many fields, until the first newline that is not before `last`.
struct Check<'a> {
    bytes: &'a [u8],
    quoted: bool,
    first: bool,
    last: usize,
    n_fields: usize,
}

impl Task for Check<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { bytes, quoted, first, last, n_fields } = self;
        let mut scanner = Scanner::new(quoted, first);
        // What stands before the first newline belongs to the block before.
        let (mut in_row, mut fields) = (first, 1);
        for (index, word) in bytes.as_chunks::<WORD>().0.iter().enumerate() {
            let Some(Ends { mut commas, mut newlines }) = scanner.next(word) else {
                return false;
            };
            while newlines != 0 {
                let up_to = newlines ^ (newlines - 1);
                fields += (commas & up_to).count_ones() as usize;
                if in_row && fields != n_fields {
                    return false;
                }
                if index * WORD + newlines.trailing_zeros() as usize >= last {
                    return true;
                }
                commas &= !up_to;
                newlines &= newlines - 1;
                (in_row, fields) = (true, 1);
            }
            fields += commas.count_ones() as usize;
        }
        false
    }
}

/// Commas and newlines outside of quotes, one bit for each byte.
struct Ends {
    commas: u64,
    newlines: u64,
}

/// What of the bytes before matters: one bit each, but for `quoted`, which is all bits.
struct Scanner {
    quoted: u64,
    /// A field may begin, or go on after a quote.
    opens: u64,
    closing: u64,
    carriage_return: u64,
    newline: u64,
}

impl Scanner {
    fn new(quoted: bool, first: bool) -> Self {
        // What precedes the first byte is held against it in the block before.
        Self {
            quoted: if quoted { u64::MAX } else { 0 },
            opens: 1,
            closing: 0,
            carriage_return: 0,
            newline: u64::from(first),
        }
    }

    /// The ends of fields in the next bytes. None when a quote or a carriage return is in a wrong place, or a line
    /// blank.
    #[inline(always)]
    fn next(&mut self, bytes: &[u8; WORD]) -> Option<Ends> {
        let [quotes, commas, newlines, returns] = [b'"', b',', b'\n', b'\r'].map(|byte| places_of(byte, bytes));
        let quoted = if quotes == 0 { self.quoted } else { self.quoted ^ odd_so_far(quotes) };
        let [commas, newlines, returns] = [commas, newlines, returns].map(|places| places & !quoted);
        let (opening, closing) = (quotes & quoted, quotes & !quoted);
        let opens = commas | newlines | closing;
        let after = |places: u64, carried: u64| places << 1 | carried;
        let wrong = opening & !after(opens, self.opens)
            | after(closing, self.closing) & !(commas | newlines | returns | quotes)
            | after(returns, self.carriage_return) & !newlines
            | after(newlines, self.newline) & (newlines | returns);
        let last = |places: u64| places >> (WORD - 1);
        *self = Self {
            quoted: 0u64.wrapping_sub(last(quoted)),
            opens: last(opens),
            closing: last(closing),
            carriage_return: last(returns),
            newline: last(newlines),
        };
        (wrong == 0).then_some(Ends { commas, newlines })
    }
}

/// Which of the bytes are `byte`.
#[inline(always)]
fn places_of(byte: u8, bytes: &[u8; WORD]) -> u64 {
    let mut places = 0;
    for (place, &other) in bytes.iter().enumerate() {
        places |= u64::from(other == byte) << place;
    }
    places
}

/// For every bit, whether an odd number of bits is set from the first to this one.
#[inline(always)]
fn odd_so_far(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// All bits from one on; none beyond the last.
#[inline(always)]
fn from_bit(bit: usize) -> u64 {
    if bit < WORD { u64::MAX << bit } else { 0 }
}
