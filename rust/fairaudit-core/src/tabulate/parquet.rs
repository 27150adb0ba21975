//! A look at the page headers of a Parquet file before it is read.
//!
//! A reader makes room for as many values as a header says. Where that is a number below zero, a flipped byte of an
//! otherwise fine file, polars asks for 2^61 bytes and ends the process. What cannot be read here is left to
//! it: it says so itself.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Result};
use crate::parallel::Control;

const MAGIC: &[u8] = b"PAR1";
/// Bytes that hold most headers, and the most that one may have.
const HEADER: u64 = 256;
const LONGEST_HEADER: u64 = 1 << 24;
/// Values within values, at most.
const DEPTH: usize = 32;

/// Refuses a Parquet file whose page headers hold numbers that cannot be, in some of its columns or in all.
///
/// # Errors
/// [`Error::Argument`] with the column and the number, or when the file cannot be opened; [`Error::Cancelled`].
pub fn check_parquet(path: &Path, columns: Option<&[String]>, control: &Control) -> Result<()> {
    let mut file = File::open(path).map_err(|error| Error::unreadable(error.to_string()))?;
    let Some(chunks) = footer(&mut file).and_then(|bytes| chunks(&bytes)) else { return Ok(()) };
    for chunk in chunks {
        if columns.is_none_or(|wanted| wanted.contains(&chunk.column)) {
            check_pages(&mut file, &chunk, control)?;
        }
    }
    Ok(())
}

/// The metadata at the end of the file; None where they are not as they should be.
fn footer(file: &mut File) -> Option<Vec<u8>> {
    let end = file.seek(SeekFrom::End(0)).ok()?;
    let tail = read_at(file, end.checked_sub(8)?, 8)?;
    let (length, magic) = tail.split_first_chunk()?;
    let length = u64::from(u32::from_le_bytes(*length));
    if magic != MAGIC {
        return None;
    }
    let start = end.checked_sub(8 + length)?;
    read_at(file, start, length).filter(|bytes| bytes.len() as u64 == length)
}

/// The bytes from a place on, fewer at the end of the file.
fn read_at(file: &mut File, start: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The pages of one column in one group of rows.
#[derive(Default)]
struct Chunk {
    column: String,
    n_values: i64,
    n_bytes: i64,
    data: i64,
    dictionary: Option<i64>,
}

/// `FileMetaData`: 4 row groups, with 1 columns, with 3 their metadata.
fn chunks(bytes: &[u8]) -> Option<Vec<Chunk>> {
    let mut found = Vec::new();
    Thrift::new(bytes).fields(&mut |id, kind, all| match (id, kind) {
        (4, LIST) => all.each(&mut |group| {
            group.fields(&mut |id, kind, group| match (id, kind) {
                (1, LIST) => group.each(&mut |column| {
                    column.fields(&mut |id, kind, column| match (id, kind) {
                        (3, STRUCT) => column.chunk().map(|one| found.push(one)),
                        _ => column.skip(kind),
                    })
                }),
                _ => group.skip(kind),
            })
        }),
        _ => all.skip(kind),
    })?;
    Some(found)
}

fn check_pages(file: &mut File, chunk: &Chunk, control: &Control) -> Result<()> {
    let wrong = |name: &str, value: i64| {
        let text = format!("column {:?} has a page whose {name} is {value}: the file is damaged", chunk.column);
        Err(Error::unreadable(text))
    };
    let start = chunk.dictionary.filter(|&place| 0 < place && place < chunk.data).unwrap_or(chunk.data);
    let (Ok(mut at), Ok(length)) = (u64::try_from(start), u64::try_from(chunk.n_bytes)) else { return Ok(()) };
    let (end, mut n_values) = (at.saturating_add(length), 0);
    while at < end && n_values < chunk.n_values {
        control.check()?;
        let Some((page, n_bytes)) = page_at(file, at) else { return Ok(()) };
        for (name, value) in page.named() {
            if value < 0 {
                return wrong(name, value);
            }
        }
        if page.in_dictionary > page.uncompressed {
            return wrong("number of values, of a byte or more each,", page.in_dictionary);
        }
        n_values += page.n_values;
        if n_values > chunk.n_values {
            return wrong("number of values", page.n_values);
        }
        at = at.saturating_add(n_bytes + page.compressed.unsigned_abs());
    }
    Ok(())
}

/// The header at a place, and how many bytes it has; None where there is none.
fn page_at(file: &mut File, at: u64) -> Option<(Page, u64)> {
    let mut length = HEADER;
    loop {
        let bytes = read_at(file, at, length)?;
        let mut thrift = Thrift::new(&bytes);
        if let Some(page) = thrift.page() {
            return Some((page, thrift.at as u64));
        }
        // It may be longer than what was read of it.
        if (bytes.len() as u64) < length || length >= LONGEST_HEADER {
            return None;
        }
        length *= 16;
    }
}

/// The numbers in the header of a page.
#[derive(Default)]
struct Page {
    uncompressed: i64,
    compressed: i64,
    n_values: i64,
    in_dictionary: i64,
    /// Of pages of the second version: missing values, rows, bytes of levels.
    others: Vec<i64>,
}

impl Page {
    fn named(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let first = [
            ("uncompressed size", self.uncompressed),
            ("compressed size", self.compressed),
            ("number of values", self.n_values),
            ("number of values", self.in_dictionary),
        ];
        first.into_iter().chain(self.others.iter().map(|&value| ("number of rows or levels", value)))
    }
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const SHORT: u8 = 4;
const LONG: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Thrift's compact protocol, as far as it takes to skip what is not asked for. None: it cannot be read.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Thrift<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        let found = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(found)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let found = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(found)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        self.take(length)
    }

    /// Hands every field of a struct, with its number and type, to `read`, which reads or skips it.
    fn fields(&mut self, read: &mut dyn FnMut(i64, u8, &mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let mut id = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                break;
            }
            id = if head >> 4 == 0 { self.integer()? } else { id + i64::from(head >> 4) };
            read(id, head & 15, self)?;
        }
        self.depth -= 1;
        Some(())
    }

    /// Hands every struct of a list to `read`.
    fn each(&mut self, read: &mut dyn FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let (length, kind) = self.list()?;
        if length > 0 && kind != STRUCT {
            return None;
        }
        (0..length).try_for_each(|_| read(self))
    }

    /// How many entries a list has, and their type.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let length = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
        Some((length, head & 15))
    }

    fn skip(&mut self, kind: u8) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.byte().map(drop),
            SHORT..=LONG => self.unsigned().map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | SET => {
                let (length, kind) = self.list()?;
                (0..length).try_for_each(|_| self.skip_entry(kind))
            }
            MAP => {
                let length = self.unsigned()?;
                let kinds = if length > 0 { self.byte()? } else { 0 };
                (0..length).try_for_each(|_| self.skip_entry(kinds >> 4).and_then(|()| self.skip_entry(kinds & 15)))
            }
            STRUCT => self.fields(&mut |_, kind, inner| inner.skip(kind)),
            _ => None,
        }?;
        self.depth -= 1;
        Some(())
    }

    /// As `skip`, in a list, where truth takes a byte.
    fn skip_entry(&mut self, kind: u8) -> Option<()> {
        if kind == TRUE || kind == FALSE { self.byte().map(drop) } else { self.skip(kind) }
    }

    /// `ColumnMetaData`: 3 path, 5 values, 7 bytes, 9 data pages, 11 page of the dictionary.
    fn chunk(&mut self) -> Option<Chunk> {
        let mut found = Chunk::default();
        self.fields(&mut |id, kind, inner| {
            match (id, kind) {
                (3, LIST) => {
                    let (length, BINARY) = inner.list()? else { return None };
                    for level in 0..length {
                        let name = inner.binary()?;
                        if level == 0 {
                            found.column = String::from_utf8_lossy(name).into_owned();
                        }
                    }
                }
                (5, LONG) => found.n_values = inner.integer()?,
                (7, LONG) => found.n_bytes = inner.integer()?,
                (9, LONG) => found.data = inner.integer()?,
                (11, LONG) => found.dictionary = Some(inner.integer()?),
                _ => inner.skip(kind)?,
            }
            Some(())
        })?;
        Some(found)
    }

    /// `PageHeader`: 2 and 3 sizes; 5 of data, 7 of a dictionary, 8 of data in the second version.
    fn page(&mut self) -> Option<Page> {
        let mut found = Page::default();
        self.fields(&mut |id, kind, inner| {
            match (id, kind) {
                (2, SHORT..=LONG) => found.uncompressed = inner.integer()?,
                (3, SHORT..=LONG) => found.compressed = inner.integer()?,
                (5 | 7 | 8, STRUCT) => inner.fields(&mut |field, kind, inner| {
                    match (field, kind) {
                        (1, SHORT..=LONG) if id == 7 => found.in_dictionary = inner.integer()?,
                        (1, SHORT..=LONG) => found.n_values = inner.integer()?,
                        (2 | 3 | 5 | 6, SHORT..=LONG) if id == 8 => found.others.push(inner.integer()?),
                        _ => inner.skip(kind)?,
                    }
                    Some(())
                })?,
                _ => inner.skip(kind)?,
            }
            Some(())
        })?;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_thrift_writes_them() {
        let mut thrift = Thrift::new(&[0x15, 0x8c, 0x05, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(thrift.integer(), Some(-11));
        assert_eq!(thrift.integer(), Some(326));
        assert_eq!(thrift.integer(), Some(-1));
        assert_eq!(thrift.integer(), Some(i64::from(i32::MIN)));
        assert_eq!(thrift.integer(), None);
    }

    #[test]
    fn whatever_the_bytes_are_nothing_is_read_beyond_them() {
        let header = [0x15, 0, 0x15, 0x50, 0x15, 0x10, 0x2c, 0x15, 0x50, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
        let page = Thrift::new(&header).page().expect("a header");
        assert_eq!((page.uncompressed, page.compressed, page.n_values), (40, 8, 40));
        for end in 0..header.len() {
            assert!(Thrift::new(&header[..end]).page().is_none());
        }
        for kind in 0..=15 {
            for byte in 0..=255 {
                let bytes = [vec![byte; 40], vec![0xff; 40], vec![byte; 40]].concat();
                let _ = Thrift::new(&bytes).skip(kind);
            }
        }
    }

    #[test]
    fn values_within_values_have_an_end() {
        let deep = vec![0x1c; 1 << 22];
        assert_eq!(Thrift::new(&deep).skip(STRUCT), None);
        for (kind, byte) in [(LIST, 0x19), (SET, 0x1a), (MAP, 0xbb)] {
            let deep = vec![byte; 1 << 16];
            assert_eq!(Thrift::new(&deep).skip(kind), None);
        }
    }
}
