//! Products of a matrix with vectors of many rows side by side.
//!
//! The rows lie in the lanes of a tile, and a panel of a few columns of the matrix is held against
//! them: its sums stay in registers, and each number that is read is used for all lanes. Every sum
//! is taken in the order of the matrix's rows, whatever the blocks, by multiplications that are
//! fused with additions: processors without FMA get the same bits, many times slower.

use std::ops::Range;

use crate::simd::{InstructionSet, Task};

/// Rows side by side.
pub(super) const ROWS: usize = 32;
/// Columns of a panel: sums of all of them, for all rows, fit into the registers.
pub(super) const COLUMNS: usize = 5;
/// Numbers of a column that are used before the next panel takes its turn: many, because outputs
/// are read and written in between, but their lanes are to stay in the second cache.
pub(super) const DEPTH: usize = 500;
/// A number of each row of a tile.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct TileColumn(pub(super) [f64; ROWS]);

impl TileColumn {
    pub(super) const ZERO: Self = Self([0.0; ROWS]);
}

/// A matrix, some columns side by side: panel by panel, row by row.
pub(super) struct Panels {
    values: Vec<[f64; COLUMNS]>,
    n_rows: usize,
    pub(super) n_columns: usize,
}

impl Panels {
    pub(super) fn new(n_rows: usize, n_columns: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let column = |row, column| if column < n_columns { at(row, column) } else { 0.0 };
        let row = |first, row| std::array::from_fn(|c| column(row, first + c));
        let panel = |first| (0..n_rows).map(move |i| row(first, i));
        Self { values: (0..n_columns).step_by(COLUMNS).flat_map(panel).collect(), n_rows, n_columns }
    }

    /// Columns with those that fill the last panel.
    pub(super) fn padded(&self) -> usize {
        self.n_columns.next_multiple_of(COLUMNS)
    }

    /// Adds `sum_i matrix[i][c] inputs[i]` to `outputs[c]`, for rows i from `rows`, the first of
    /// which has the first input, and columns c from `columns`, which are whole panels.
    #[inline(always)]
    pub(super) fn add_product(
        &self,
        instructions: InstructionSet,
        rows: Range<usize>,
        columns: Range<usize>,
        inputs: &[TileColumn],
        outputs: &mut [TileColumn],
        adding: bool,
    ) {
        for first in rows.clone().step_by(DEPTH) {
            let last = rows.end.min(first + DEPTH);
            let inputs = &inputs[first - rows.start..last - rows.start];
            let panels = columns.start / COLUMNS..columns.end.div_ceil(COLUMNS);
            for (panel, outputs) in panels.zip(outputs.as_chunks_mut::<COLUMNS>().0) {
                let start = panel * self.n_rows;
                let adding = adding || first > rows.start;
                let panel = &self.values[start + first..start + last];
                match instructions {
                    InstructionSet::Avx512 => instructions.run(PanelProduct::<ROWS> { panel, inputs, outputs, adding }),
                    _ => instructions.run(PanelProduct::<8> { panel, inputs, outputs, adding }),
                }
            }
        }
    }
}

/// The product of a panel and its inputs, `PART` lanes after the other, added to outputs that stay
/// in registers meanwhile. A task of its own, its columns written out: the compiler keeps arrays in
/// registers where loops over them are short and functions small.
struct PanelProduct<'a, const PART: usize> {
    panel: &'a [[f64; COLUMNS]],
    inputs: &'a [TileColumn],
    outputs: &'a mut [TileColumn; COLUMNS],
    adding: bool,
}

impl<const PART: usize> Task for PanelProduct<'_, PART> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [a, b, c, d, e] = self.outputs;
        let mut outputs = [a, b, c, d, e].map(|output| output.0.as_chunks_mut::<PART>().0);
        for part in 0..ROWS / PART {
            let [mut a, mut b, mut c, mut d, mut e] =
                [0, 1, 2, 3, 4].map(|column: usize| if self.adding { outputs[column][part] } else { [0.0; PART] });
            for (factors, input) in self.panel.iter().zip(self.inputs) {
                let input = &input.0.as_chunks::<PART>().0[part];
                add_multiple(input, factors[0], &mut a);
                add_multiple(input, factors[1], &mut b);
                add_multiple(input, factors[2], &mut c);
                add_multiple(input, factors[3], &mut d);
                add_multiple(input, factors[4], &mut e);
            }
            for (output, sums) in outputs.iter_mut().zip([a, b, c, d, e]) {
                output[part] = sums;
            }
        }
    }
}

#[inline(always)]
fn add_multiple<const PART: usize>(input: &[f64; PART], factor: f64, sums: &mut [f64; PART]) {
    for lane in 0..PART {
        sums[lane] = input[lane].mul_add(factor, sums[lane]);
    }
}
