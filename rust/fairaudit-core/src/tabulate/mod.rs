//! Collapsing rows to cells: the distinct combinations of a few columns, with their counts.
//!
//! One pass over tiles of rows, no array per row: a tile turns the values of each column into
//! small codes, puts the codes of a row side by side, and counts. Which values
//! there are, what they mean and in which order they come is the caller's business, who looks
//! at a table of a few entries.
//!
//! [`Table`] holds such counts by stratum, group and class.

mod bins;
mod columns;
mod csv;
mod dictionary;
pub mod distinct;
mod few;
mod parquet;
mod table;

pub use self::csv::{CsvRows, read_csv};
pub use bins::{NO_BIN, bin_scores};
pub use columns::Column;
pub use parquet::check_parquet;
pub use table::Table;

use std::sync::{Mutex, PoisonError};

use columns::with_key;
use dictionary::Dictionary;
use few::{CELL_BITS, FEW, Known, NO_MASKS, TILE, count_tile};

use crate::error::{Error, Result};
use crate::parallel::{Control, fill, reduce_blocks};
use crate::simd::{InstructionSet, Task};

/// Rows that one task works on.
const BLOCK: usize = 1 << 15;
/// Scores are summed in units of 2^-30, so that the sum does not depend on the order of rows.
pub const SCORE_UNIT: f64 = 1.0 / (1u64 << 30) as f64;

/// The counts of some of the rows.
///
/// While the columns have few distinct values, the codes of a row side by side, `bits` wide
/// each, are the index of its counter. When a column outgrows its bits the counters are moved
/// into `cells`, the general form, and laid out anew.
struct Partial {
    values: Vec<Dictionary>,
    /// `pairs[c]`: (cell of the columns before c, code in column c) to the cell with column c.
    pairs: Vec<Dictionary>,
    counts: Vec<u64>,
    sums: Vec<i64>,
    bits: Vec<u32>,
    /// Empty when the codes together need more than [`DENSE_BITS`] bits.
    dense_counts: Vec<u64>,
    dense_sums: Vec<i64>,
}

/// Counters of a dense layout: 4,096.
const DENSE_BITS: u32 = 12;

impl Partial {
    fn new(n_columns: usize) -> Self {
        Self {
            values: vec![Dictionary::new(); n_columns],
            pairs: vec![Dictionary::new(); n_columns],
            counts: Vec::new(),
            sums: Vec::new(),
            bits: vec![0; n_columns],
            dense_counts: vec![0],
            dense_sums: vec![0],
        }
    }

    fn add_rows(
        &mut self,
        columns: &[Column],
        limits: &[usize],
        score: Option<&[f64]>,
        rows: std::ops::Range<usize>,
        instructions: InstructionSet,
    ) -> Result<()> {
        let mut codes = vec![[0u32; TILE]; columns.len()];
        let mut masks = NO_MASKS;
        // The short way knows nothing of scores.
        let mut few = if score.is_none() { self.few(columns) } else { None };
        let mut from = rows.start;
        while from < rows.end {
            let to = (from + TILE).min(rows.end);
            if let Some(few) = &few
                && to - from == TILE
                && count_tile(instructions, few, from, &mut masks, &mut self.dense_counts)
            {
                from = to;
                continue;
            }
            for (c, column) in columns.iter().enumerate() {
                let values = &mut self.values[c];
                let tile = &mut codes[c][..to - from];
                if matches!(column, Column::Bytes { .. })
                    || !with_key!(*column, |_, key| few_values(values, tile, from, key))
                {
                    with_key!(*column, |_, key| any_values(values, tile, from, key, |i, j| column.same(i, j)));
                }
                if values.entries.len() > limits[c] {
                    return Err(Error::TooManyValues { column: c, limit: limits[c] });
                }
            }
            self.fit_bits();
            self.count_tile(&codes, to - from, score.map(|score| &score[from..to]));
            if score.is_none() {
                few = self.few(columns);
            }
            from = to;
        }
        Ok(())
    }

    /// The known values when they are so few that [`few`] counts.
    fn few<'a>(&self, columns: &[Column<'a>]) -> Option<Vec<Known<'a>>> {
        let countable = |(column, values): (&Column, &Dictionary)| {
            !matches!(column, Column::Bytes { .. }) && (1..=FEW).contains(&values.entries.len())
        };
        if self.bits.iter().sum::<u32>() > CELL_BITS || !columns.iter().zip(&self.values).all(countable) {
            return None;
        }
        let keys = |values: &Dictionary| values.entries.iter().map(|entry| entry.0).collect();
        let known = columns.iter().zip(&self.values).zip(&self.bits);
        Some(known.map(|((&column, values), &bits)| Known { column, keys: keys(values), bits }).collect())
    }

    /// Makes room for every code that the dictionaries hold.
    fn fit_bits(&mut self) {
        let fits = |(values, &bits): (&Dictionary, &u32)| values.entries.len() <= 1 << bits;
        if self.dense_counts.is_empty() || self.values.iter().zip(&self.bits).all(fits) {
            return;
        }
        self.flush();
        for (values, bits) in self.values.iter().zip(&mut self.bits) {
            *bits = values.entries.len().next_power_of_two().trailing_zeros();
        }
        let total: u32 = self.bits.iter().sum();
        let counters = if total <= DENSE_BITS { 1 << total } else { 0 };
        self.dense_counts = vec![0; counters];
        self.dense_sums = vec![0; counters];
    }

    fn count_tile(&mut self, codes: &[[u32; TILE]], rows: usize, score: Option<&[f64]>) {
        let mut cells = [0u32; TILE];
        let cells = &mut cells[..rows];
        let dense = !self.dense_counts.is_empty();
        for (c, codes) in codes.iter().enumerate() {
            if dense {
                let bits = self.bits[c];
                cells.iter_mut().zip(codes).for_each(|(cell, code)| *cell = *cell << bits | code);
            } else {
                let pairs = &mut self.pairs[c];
                for (cell, &code) in cells.iter_mut().zip(codes) {
                    *cell = pairs.code(u64::from(*cell) << 32 | u64::from(code), 0, |_, _| true);
                }
            }
        }
        let (counts, sums) = if dense {
            (&mut self.dense_counts, &mut self.dense_sums)
        } else {
            let n_cells = self.pairs.last().map_or(1, |pairs| pairs.entries.len());
            self.counts.resize(n_cells, 0);
            self.sums.resize(n_cells, 0);
            (&mut self.counts, &mut self.sums)
        };
        for &cell in cells.iter() {
            counts[cell as usize] += 1;
        }
        for (&cell, value) in cells.iter().zip(score.unwrap_or_default()) {
            sums[cell as usize] += (value / SCORE_UNIT + 0.5).floor() as i64;
        }
    }

    /// Moves the dense counters into the general form.
    fn flush(&mut self) {
        let (counts, sums) = (std::mem::take(&mut self.dense_counts), std::mem::take(&mut self.dense_sums));
        for (index, (count, sum)) in counts.into_iter().zip(sums).enumerate() {
            if count == 0 {
                continue;
            }
            let mut rest = index;
            let mut codes = vec![0; self.bits.len()];
            for (code, &bits) in codes.iter_mut().zip(&self.bits).rev() {
                *code = (rest & ((1 << bits) - 1)) as u32;
                rest >>= bits;
            }
            self.add_cell(&codes, count, sum);
        }
    }

    fn add_cell(&mut self, codes: &[u32], count: u64, sum: i64) {
        let mut cell = 0u32;
        for (pairs, &code) in self.pairs.iter_mut().zip(codes) {
            cell = pairs.code(u64::from(cell) << 32 | u64::from(code), 0, |_, _| true);
        }
        let cell = cell as usize;
        if cell >= self.counts.len() {
            self.counts.resize(cell + 1, 0);
        }
        self.sums.resize(self.counts.len(), 0);
        self.counts[cell] += count;
        self.sums[cell] += sum;
    }

    /// Codes of every cell, one row of `n_columns` per cell.
    fn codes(&self) -> Vec<Vec<u32>> {
        let n_columns = self.pairs.len();
        (0..self.counts.len())
            .map(|cell| {
                let mut codes = vec![0; n_columns];
                let mut at = cell;
                for c in (0..n_columns).rev() {
                    let key = self.pairs[c].entries[at].0;
                    codes[c] = key as u32;
                    at = (key >> 32) as usize;
                }
                codes
            })
            .collect()
    }

    fn merge(mut self, mut other: Self, columns: &[Column], limits: &[usize]) -> Result<Self> {
        self.flush();
        other.flush();
        let mut new_codes = Vec::with_capacity(columns.len());
        for (c, column) in columns.iter().enumerate() {
            let codes: Vec<u32> = other.values[c]
                .entries
                .iter()
                .map(|&(key, row)| self.values[c].code(key, row, |i, j| column.same(i, j)))
                .collect();
            if self.values[c].entries.len() > limits[c] {
                return Err(Error::TooManyValues { column: c, limit: limits[c] });
            }
            new_codes.push(codes);
        }
        for (cell, codes) in other.codes().iter().enumerate() {
            let codes: Vec<u32> = codes.iter().zip(&new_codes).map(|(&code, new)| new[code as usize]).collect();
            self.add_cell(&codes, other.counts[cell], other.sums[cell]);
        }
        Ok(self)
    }
}

/// Codes of a tile whose values are all among the first few of the dictionary, by comparing
/// with each of them: no branch and no look-up per row. False when there is another value.
#[inline(always)]
fn few_values(values: &Dictionary, codes: &mut [u32], from: usize, key: impl Fn(usize) -> u64) -> bool {
    let entries = &values.entries;
    if entries.is_empty() || entries.len() > FEW {
        return false;
    }
    // Places that the dictionary does not fill yet repeat the first value.
    let known: [u64; FEW] = std::array::from_fn(|i| entries.get(i).unwrap_or(&entries[0]).0);
    let mut all_known = true;
    if entries.len() <= 2 {
        for (offset, code) in codes.iter_mut().enumerate() {
            let key = key(from + offset);
            let is_second = key == known[1] && key != known[0];
            all_known &= key == known[0] || is_second;
            *code = u32::from(is_second);
        }
    } else {
        for (offset, code) in codes.iter_mut().enumerate() {
            let key = key(from + offset);
            let mut found = u32::from(key == known[3]) * 3;
            found = if key == known[2] { 2 } else { found };
            found = if key == known[1] { 1 } else { found };
            found = if key == known[0] { 0 } else { found };
            all_known &= found > 0 || key == known[0];
            *code = found;
        }
    }
    all_known
}

#[inline]
fn any_values(
    values: &mut Dictionary,
    codes: &mut [u32],
    from: usize,
    key: impl Fn(usize) -> u64,
    same: impl Fn(usize, usize) -> bool,
) {
    for (offset, code) in codes.iter_mut().enumerate() {
        let row = from + offset;
        *code = values.code(key(row), row, &same);
    }
}

/// The distinct combinations of the columns' values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tabulation {
    /// For each column, a row that holds each of its distinct values.
    pub value_rows: Vec<Vec<usize>>,
    /// For each cell, the position of its value in `value_rows` of every column.
    pub codes: Vec<Vec<u32>>,
    /// Rows in each cell.
    pub counts: Vec<u64>,
    /// Sum of the scores of each cell in units of 2^-30; empty without scores.
    pub score_sums: Vec<i64>,
}

/// Counts the rows in every combination of values.
///
/// A column may hold at most its `limits` entry of distinct values. The cells come in an order
/// that depends on the threads; callers sort them by what the values mean.
///
/// # Errors
/// [`Error::Argument`] when lengths differ, [`Error::TooManyValues`], [`Error::Cancelled`]; see
/// also [`InstructionSet::current`].
pub fn tabulate(columns: &[Column], limits: &[usize], score: Option<&[f64]>, control: &Control) -> Result<Tabulation> {
    let rows = columns.first().map_or(0, Column::len);
    let lengths = columns.iter().map(Column::len).chain(score.map(<[f64]>::len));
    if let Some(length) = lengths.into_iter().find(|&length| length != rows) {
        return Err(Error::argument("columns", format!("of {rows} and {length} rows"), "columns of one length"));
    }
    check_limits(columns, limits)?;
    let instructions = InstructionSet::current()?;
    let block = |partial: &mut Partial, at: usize| {
        control.check()?;
        let range = at * BLOCK..((at + 1) * BLOCK).min(rows);
        control.advance(range.len() as u64);
        partial.add_rows(columns, limits, score, range, instructions)
    };
    let empty = || Partial::new(columns.len());
    let merge = |first: Partial, second| first.merge(second, columns, limits);
    let mut total = reduce_blocks(rows.div_ceil(BLOCK), control, empty, block, merge)?;
    total.flush();
    Ok(Tabulation {
        codes: total.codes(),
        value_rows: total.values.iter().map(|values| values.entries.iter().map(|entry| entry.1).collect()).collect(),
        counts: total.counts,
        score_sums: if score.is_some() { total.sums } else { Vec::new() },
    })
}

/// Refuses limits that are not one for each column.
fn check_limits(columns: &[Column], limits: &[usize]) -> Result<()> {
    if limits.len() == columns.len() {
        return Ok(());
    }
    let accepted = format!("one limit for each of {} columns", columns.len());
    Err(Error::argument("limits", format!("of length {}", limits.len()), &accepted))
}

#[inline]
fn encode_tile(
    values: &mut Dictionary,
    pairs: &mut Dictionary,
    cells: &mut [u32],
    from: usize,
    key: impl Fn(usize) -> u64,
    same: impl Fn(usize, usize) -> bool,
) {
    for (offset, cell) in cells.iter_mut().enumerate() {
        let code = values.code(key(from + offset), from + offset, &same);
        *cell = pairs.code(u64::from(*cell) << 32 | u64::from(code), 0, |_, _| true);
    }
}

/// As [`tabulate`], and the cell of every row; cells come in an order that does not depend on the threads.
///
/// # Errors
/// See [`tabulate`].
pub fn encode(columns: &[Column], limits: &[usize], control: &Control) -> Result<(Tabulation, Vec<u32>)> {
    let rows = columns.first().map_or(0, Column::len);
    if let Some(other) = columns.iter().map(Column::len).find(|&length| length != rows) {
        return Err(Error::argument("columns", format!("of {rows} and {other} rows"), "columns of one length"));
    }
    check_limits(columns, limits)?;
    let mut known = Encoding { columns, limits, partial: Partial::new(columns.len()) };
    let mut cells = vec![0u32; rows];
    let (first, rest) = cells.split_at_mut(rows.min(LEARNT));
    for (tile, cells) in first.chunks_mut(TILE).enumerate() {
        known.learn(tile * TILE, cells, control)?;
    }
    // What nobody has seen before is learnt afterwards, in the order of the rows, whatever the threads.
    let missed = known.look_up(first.len(), rest, control)?;
    for block in missed {
        let start = block * LOOKED_UP;
        let end = (start + LOOKED_UP).min(rest.len());
        known.learn(first.len() + start, &mut rest[start..end], control)?;
    }
    let partial = known.partial;
    let table = Tabulation {
        codes: partial.codes(),
        value_rows: partial.values.iter().map(|values| values.entries.iter().map(|entry| entry.1).collect()).collect(),
        counts: partial.counts,
        score_sums: Vec::new(),
    };
    Ok((table, cells))
}

/// Rows that [`encode`] learns values from, before it looks the others up.
const LEARNT: usize = 1 << 14;
/// Rows that are looked up together, all of them or none.
const LOOKED_UP: usize = 1 << 12;
/// Most combinations of values in a table of cells.
const MOST_COMBINATIONS: usize = 1 << 16;
/// The cell of a combination that no row had yet.
const NOT_SEEN: u32 = u32::MAX;

/// The values and cells that are known.
struct Encoding<'a> {
    columns: &'a [Column<'a>],
    limits: &'a [usize],
    partial: Partial,
}

impl Encoding<'_> {
    /// Finds the cells of the rows from `from` on, and learns values and cells that are new.
    fn learn(&mut self, from: usize, cells: &mut [u32], control: &Control) -> Result<()> {
        control.check()?;
        cells.fill(0);
        let partial = &mut self.partial;
        for (c, column) in self.columns.iter().enumerate() {
            let (values, pairs) = (&mut partial.values[c], &mut partial.pairs[c]);
            with_key!(*column, |_, key| encode_tile(values, pairs, cells, from, key, |i, j| column.same(i, j)));
            if values.entries.len() > self.limits[c] {
                return Err(Error::TooManyValues { column: c, limit: self.limits[c] });
            }
        }
        partial.counts.resize(partial.pairs.last().map_or(1, |pairs| pairs.entries.len()), 0);
        for &cell in cells.iter() {
            partial.counts[cell as usize] += 1;
        }
        Ok(())
    }

    /// Finds the cells of the rows from `from` on in what is known; the blocks that hold something new, in order.
    fn look_up(&mut self, from: usize, cells: &mut [u32], control: &Control) -> Result<Vec<usize>> {
        let Some(table) = self.table() else { return Ok((0..cells.len().div_ceil(LOOKED_UP)).collect()) };
        let instructions = InstructionSet::current()?;
        let found = Mutex::new((vec![0u64; self.partial.counts.len()], Vec::new()));
        let (columns, values) = (self.columns, &self.partial.values);
        fill(
            cells,
            LOOKED_UP,
            control,
            || (),
            |block, cells, ()| {
                control.check()?;
                let start = from + block * LOOKED_UP;
                let are_known = cells.chunks_mut(TILE).enumerate().all(|(tile, cells)| {
                    instructions.run(LookUp { columns, values, table: &table, from: start + tile * TILE, cells })
                });
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if are_known {
                    for &cell in cells.iter() {
                        found.0[cell as usize] += 1;
                    }
                } else {
                    found.1.push(block);
                }
                Ok(())
            },
        )?;
        let (counts, mut missed) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.partial.counts.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        missed.sort_unstable();
        Ok(missed)
    }

    /// The cell of every combination of known values, the codes of the last column being next to each other; none when
    /// there are too many.
    fn table(&self) -> Option<Vec<u32>> {
        let sizes: Vec<usize> = self.partial.values.iter().map(|values| values.entries.len()).collect();
        let combinations = sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size))?;
        if combinations > MOST_COMBINATIONS {
            return None;
        }
        let mut table = vec![NOT_SEEN; combinations];
        for (cell, codes) in self.partial.codes().iter().enumerate() {
            let index = codes.iter().zip(&sizes).fold(0, |index, (&code, size)| index * size + code as usize);
            table[index] = cell as u32;
        }
        Some(table)
    }
}

/// Looks the rows of a tile up; false when one has an unknown value or cell.
struct LookUp<'a> {
    columns: &'a [Column<'a>],
    values: &'a [Dictionary],
    table: &'a [u32],
    from: usize,
    cells: &'a mut [u32],
}

// A task, because the baseline of x86-64 cannot compare 64-bit integers side by side.
impl Task for LookUp<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut codes = [0u32; TILE];
        let codes = &mut codes[..self.cells.len()];
        self.cells.fill(0);
        for (column, values) in self.columns.iter().zip(self.values) {
            let is_text = matches!(column, Column::Bytes { .. });
            let are_known = (!is_text && with_key!(*column, |_, key| few_values(values, codes, self.from, key)))
                || with_key!(*column, |_, key| known_values(values, codes, self.from, key, |i, j| column.same(i, j)));
            if !are_known {
                return false;
            }
            let size = values.entries.len() as u32;
            self.cells.iter_mut().zip(codes.iter()).for_each(|(cell, code)| *cell = *cell * size + code);
        }
        let mut are_seen = true;
        for cell in self.cells {
            *cell = self.table[*cell as usize];
            are_seen &= *cell != NOT_SEEN;
        }
        are_seen
    }
}

/// Codes of rows whose values are all known; false when one is not.
#[inline(always)]
fn known_values(
    values: &Dictionary,
    codes: &mut [u32],
    from: usize,
    key: impl Fn(usize) -> u64,
    same: impl Fn(usize, usize) -> bool,
) -> bool {
    codes.iter_mut().enumerate().all(|(offset, code)| {
        let row = from + offset;
        let found = values.find(key(row), row, &same);
        *code = found.unwrap_or_default();
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn as_map(columns: &[Column], tabulation: &Tabulation) -> HashMap<Vec<String>, (u64, i64)> {
        let text = |column: &Column, row: usize| match *column {
            Column::Bytes { data, width } => format!("{:?}", &data[row * width..(row + 1) * width]),
            Column::I64(values) => values[row].to_string(),
            Column::F64(values) => values[row].to_string(),
            _ => unreachable!(),
        };
        tabulation
            .codes
            .iter()
            .enumerate()
            .map(|(cell, codes)| {
                let names = codes
                    .iter()
                    .enumerate()
                    .map(|(c, &code)| text(&columns[c], tabulation.value_rows[c][code as usize]))
                    .collect();
                (names, (tabulation.counts[cell], tabulation.score_sums.get(cell).copied().unwrap_or(0)))
            })
            .collect()
    }

    fn same_key(column: &Column, i: usize, j: usize) -> bool {
        fn equal(i: usize, j: usize, key: impl Fn(usize) -> u64) -> bool {
            key(i) == key(j)
        }
        with_key!(*column, |_, key| equal(i, j, key))
    }

    #[test]
    fn counts_are_those_of_a_plain_map_for_any_number_of_threads() {
        let rows = 200_000usize;
        let group: Vec<i64> = (0..rows).map(|i| ((i * 7919) % 13) as i64 - 6).collect();
        let label: Vec<f64> = (0..rows).map(|i| if i % 97 == 0 { f64::NAN } else { (i % 3 % 2) as f64 }).collect();
        let names: Vec<u8> =
            (0..rows).flat_map(|i| [b'a' + (i % 5) as u8, if i % 2 == 0 { b'x' } else { 0 }, 0]).collect();
        let score: Vec<f64> = (0..rows).map(|i| i as f64 / rows as f64).collect();
        let columns = [Column::I64(&group), Column::F64(&label), Column::Bytes { data: &names, width: 3 }];
        let mut expected: HashMap<Vec<String>, (u64, i64)> = HashMap::new();
        for i in 0..rows {
            let key = vec![group[i].to_string(), label[i].to_string(), format!("{:?}", &names[3 * i..3 * i + 3])];
            let entry = expected.entry(key).or_default();
            entry.0 += 1;
            entry.1 += (score[i] * (1u64 << 30) as f64 + 0.5).floor() as i64;
        }
        let control = Control::default();
        let inline = tabulate(&columns, &[20, 20, 20], Some(&score), &control).unwrap();
        assert_eq!(as_map(&columns, &inline), expected);
        for threads in [2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let parallel = pool.install(|| tabulate(&columns, &[20, 20, 20], Some(&score), &control)).unwrap();
            assert_eq!(as_map(&columns, &parallel), expected);
        }
        let (encoded, cells) = encode(&columns[..2], &[20, 20], &control).unwrap();
        for row in [0, 97, 1_000, rows - 1] {
            let code = encoded.codes[cells[row] as usize][0] as usize;
            assert_eq!(group[encoded.value_rows[0][code]], group[row]);
        }
        assert_eq!(encoded.counts.iter().sum::<u64>(), rows as u64);
    }

    #[test]
    fn a_constant_is_one_value() {
        let same = vec![7i64; 3 * TILE];
        let score = vec![0.5; same.len()];
        let found = tabulate(&[Column::I64(&same)], &[2], Some(&score), &Control::default()).unwrap();
        assert_eq!((found.codes, found.counts), (vec![vec![0]], vec![same.len() as u64]));
        assert_eq!(found.score_sums, [(same.len() as i64) << 29]);
    }

    /// Values and combinations that come late, few and many of them: every row has the cell of its values, and the
    /// cells have one order on any number of threads.
    #[test]
    fn rows_are_encoded_alike_on_any_number_of_threads() {
        let rows = 100_001usize;
        let mixed = |i: usize, values: usize| (i * 7919 % 104_729 % values) as i64;
        let few: Vec<i64> = (0..rows).map(|i| if i == 70_000 { 9 } else { mixed(i, 3) }).collect();
        let many: Vec<f64> = (0..rows).map(|i| if i > 50_000 { mixed(i, 300) } else { mixed(i, 200) } as f64).collect();
        let names: Vec<u8> = (0..rows).flat_map(|i| [b'a' + mixed(i, 6) as u8, b'x']).collect();
        let columns = [Column::I64(&few), Column::F64(&many), Column::Bytes { data: &names, width: 2 }];
        for columns in [&columns[..1], &columns[..2], &columns] {
            let limits = vec![300; columns.len()];
            let (table, cells) = encode(columns, &limits, &Control::default()).unwrap();
            let mut counts = vec![0; table.counts.len()];
            for (row, &cell) in cells.iter().enumerate() {
                counts[cell as usize] += 1;
                for (c, column) in columns.iter().enumerate() {
                    let known = table.value_rows[c][table.codes[cell as usize][c] as usize];
                    assert!(same_key(column, row, known));
                }
            }
            assert_eq!(counts, table.counts);
            for threads in [2, 5] {
                let other = encode(columns, &limits, &Control::with_threads(threads)).unwrap();
                assert_eq!(other, (table.clone(), cells.clone()));
            }
        }
        let limits = [2, 300];
        let error = encode(&columns[..2], &limits, &Control::with_threads(2)).unwrap_err();
        assert_eq!(error, Error::TooManyValues { column: 0, limit: 2 });
    }

    /// A value beyond the few, late, in a row of its own: what was counted before stays.
    #[test]
    fn few_values_are_counted_alike_on_any_number_of_threads() {
        let rows = 150_001usize;
        let group: Vec<i64> = (0..rows).map(|i| if i == 100_000 { 9 } else { (i * 7919 % 97 % 3) as i64 }).collect();
        let label: Vec<f64> = (0..rows).map(|i| (i % 3 % 2) as f64).collect();
        let columns = [Column::I64(&group), Column::F64(&label)];
        let mut expected: HashMap<Vec<String>, (u64, i64)> = HashMap::new();
        for i in 0..rows {
            expected.entry(vec![group[i].to_string(), label[i].to_string()]).or_default().0 += 1;
        }
        for threads in [1, 2, 5] {
            let table = tabulate(&columns, &[9, 9], None, &Control::with_threads(threads)).unwrap();
            assert_eq!(as_map(&columns, &table), expected);
        }
    }

    #[test]
    fn negative_zero_and_every_nan_are_one_value() {
        let values = [0.0, -0.0, f64::NAN, -f64::NAN, 1.0];
        let result = tabulate(&[Column::F64(&values)], &[9], None, &Control::default()).unwrap();
        assert_eq!(result.value_rows, [vec![0, 2, 4]]);
        assert_eq!(result.counts, [2, 2, 1]);
    }

    #[test]
    fn too_many_values_and_different_lengths_are_errors() {
        let values: Vec<i64> = (0..1000).collect();
        let control = Control::default();
        let error = tabulate(&[Column::I64(&values)], &[999], None, &control).unwrap_err();
        assert_eq!(error, Error::TooManyValues { column: 0, limit: 999 });
        assert!(tabulate(&[Column::I64(&values)], &[1000], None, &control).is_ok());
        let error = tabulate(&[Column::I64(&values), Column::U8(&[1])], &[9999, 9], None, &control).unwrap_err();
        assert!(error.to_string().contains("of 1000 and 1 rows"));
        assert!(tabulate(&[], &[], None, &control).unwrap().counts.is_empty());
    }

    #[test]
    fn a_cancelled_tabulation_stops() {
        let control = Control::default();
        control.cancel();
        assert_eq!(tabulate(&[Column::I64(&[1])], &[9], None, &control), Err(Error::Cancelled));
    }
}
