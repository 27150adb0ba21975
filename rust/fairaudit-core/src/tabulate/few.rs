//! Counting combinations of columns that hold a few values each: labels, decisions, groups.
//!
//! The rows of a tile in which a column has a value are a mask of one bit per row; the rows of a
//! cell are the bits that the masks of its values share. No row is looked at by itself, so the
//! speed is that of reading the columns.

use super::columns::{Column, with_values};
use crate::simd::{InstructionSet, Task};

/// Most distinct values of a column.
pub(super) const FEW: usize = 4;
/// Most bits of a cell, the codes of its columns side by side.
pub(super) const CELL_BITS: u32 = 6;
/// Rows of a tile.
pub(super) const TILE: usize = 1 << 10;

const WORD: usize = u64::BITS as usize;
/// One bit per row.
pub(super) type Mask = [u64; TILE / WORD];

/// A buffer: the rows of a tile that lie in each cell of the columns so far, one bit per row.
pub(super) type CellMasks = [Mask; 1 << CELL_BITS];
pub(super) const NO_MASKS: CellMasks = [[0; TILE / WORD]; 1 << CELL_BITS];

/// The keys of a column's values, at most [`FEW`], and the bits that their codes take.
pub(super) struct Known<'a> {
    pub(super) column: Column<'a>,
    pub(super) keys: Vec<u64>,
    pub(super) bits: u32,
}

/// Adds the rows `from..from + TILE` to the counters of their cells. False, and nothing is
/// added, when a row holds another value.
pub(super) fn count_tile(
    instructions: InstructionSet,
    columns: &[Known],
    from: usize,
    cells: &mut CellMasks,
    counts: &mut [u64],
) -> bool {
    instructions.run(CountTile { columns, from, cells, counts })
}

struct CountTile<'a> {
    columns: &'a [Known<'a>],
    from: usize,
    cells: &'a mut CellMasks,
    counts: &'a mut [u64],
}

// A task, because the baseline of x86-64 cannot compare 64-bit integers side by side.
impl Task for CountTile<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        count(self.columns, self.from, self.cells, self.counts)
    }
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled for several targets
fn count(columns: &[Known], from: usize, cells: &mut CellMasks, counts: &mut [u64]) -> bool {
    cells[0] = [u64::MAX; TILE / WORD];
    let mut n_cells = 1;
    for Known { column, keys, bits } in columns {
        let mut of_value = [[0; TILE / WORD]; FEW];
        if !with_values!(*column, from..from + TILE, |values, key| masks(values, key, keys, &mut of_value)) {
            return false;
        }
        // From the last cell on: a cell is taken apart before its place is taken.
        for cell in (0..n_cells).rev() {
            let rows = cells[cell];
            for code in (0..1 << bits).rev() {
                cells[cell << bits | code] = std::array::from_fn(|word| rows[word] & of_value[code][word]);
            }
        }
        n_cells <<= bits;
    }
    for (count, rows) in counts.iter_mut().zip(&cells[..n_cells]) {
        *count += rows.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    }
    true
}

/// The rows that hold each of the known values; false when a row holds none of them.
#[inline(always)]
#[allow(clippy::inline_always)]
fn masks<T: Copy>(values: &[T], key: impl Fn(T) -> u64, known: &[u64], of_value: &mut [Mask; FEW]) -> bool {
    let mut all_known = u64::MAX;
    for (word, values) in values.chunks_exact(WORD).enumerate() {
        let mut any = 0;
        for (mask, &known) in of_value.iter_mut().zip(known) {
            let mut rows = 0;
            for (row, &value) in values.iter().enumerate() {
                rows |= u64::from(key(value) == known) << row;
            }
            mask[word] = rows;
            any |= rows;
        }
        all_known &= any;
    }
    all_known == u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns, and the cell of each row.
    type Case<'a> = (Vec<Known<'a>>, Box<dyn Fn(usize) -> usize + 'a>);

    #[test]
    fn counts_are_those_of_a_loop_for_every_kind_of_column() {
        let rows = 3 * TILE;
        let groups: Vec<i64> = (0..rows).map(|i| [7, -1, i64::MAX, 0][i * 7919 % 97 % 4]).collect();
        let labels: Vec<u8> = (0..rows).map(|i| u8::from(i * 104_729 % 101 < 30)).collect();
        let scores: Vec<f64> = (0..rows).map(|i| [f64::NAN, -0.0, 1.5][i % 3]).collect();
        let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        let bytes: Vec<u8> = groups.iter().map(|&group| group as u8).collect();
        let keys =
            |values: &[f64]| values.iter().map(|&value| crate::tabulate::columns::float_key(value)).collect::<Vec<_>>();
        let known = |column, keys: &[u64], bits| Known { column, keys: keys.to_vec(), bits };
        let group = || known(Column::I64(&groups), &[7, u64::MAX, i64::MAX as u64, 0], 2);
        let group_of = |row: usize| [7, -1, i64::MAX, 0].iter().position(|&value| value == groups[row]).unwrap();
        let floats = keys(&[f64::NAN, 0.0, 1.5]);
        let byte_of = |row: usize| [7, 255, 0].iter().position(|&value| value == bytes[row]).unwrap();
        let cases: Vec<Case> = vec![
            (
                vec![group(), known(Column::Bool(&labels), &[1, 0], 1)],
                Box::new(|row| group_of(row) << 1 | usize::from(labels[row] == 0)),
            ),
            (vec![known(Column::F64(&scores), &floats, 2), group()], Box::new(|row| (row % 3) << 2 | group_of(row))),
            (vec![known(Column::F32(&narrow), &floats, 2)], Box::new(|row| row % 3)),
            (vec![known(Column::U8(&bytes), &[7, 255, 0], 2)], Box::new(byte_of)),
        ];
        for (columns, cell) in &cases {
            let mut expected = vec![0; 1 << CELL_BITS];
            (TILE..2 * TILE).for_each(|row| expected[cell(row)] += 1);
            for instructions in InstructionSet::available() {
                let mut counts = vec![0; 1 << CELL_BITS];
                assert!(count_tile(instructions, columns, TILE, &mut NO_MASKS.clone(), &mut counts));
                assert_eq!(counts, expected, "{instructions:?}");
            }
        }
    }

    #[test]
    fn an_unknown_value_leaves_the_counts_alone() {
        let known = vec![1i64; TILE];
        let mut other = known.clone();
        other[TILE - 1] = 2;
        for instructions in InstructionSet::available() {
            let mut counts = [0];
            let columns = [&known, &other].map(|column| Known { column: Column::I64(column), keys: vec![1], bits: 0 });
            assert!(!count_tile(instructions, &columns, 0, &mut NO_MASKS.clone(), &mut counts));
            assert_eq!(counts, [0]);
            assert!(count_tile(instructions, &columns[..1], 0, &mut NO_MASKS.clone(), &mut counts));
            assert_eq!(counts, [TILE as u64]);
        }
    }
}
