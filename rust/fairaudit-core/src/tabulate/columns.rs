//! Columns of any type, and the 64-bit keys of their values.

/// The values of one column, one per row.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Booleans: bytes, true where they are not 0.
    Bool(&'a [u8]),
    /// Signed integers of 8 bits.
    I8(&'a [i8]),
    /// Signed integers of 16 bits.
    I16(&'a [i16]),
    /// Signed integers of 32 bits.
    I32(&'a [i32]),
    /// Signed integers of 64 bits.
    I64(&'a [i64]),
    /// Unsigned integers of 8 bits.
    U8(&'a [u8]),
    /// Unsigned integers of 16 bits.
    U16(&'a [u16]),
    /// Unsigned integers of 32 bits.
    U32(&'a [u32]),
    /// Unsigned integers of 64 bits.
    U64(&'a [u64]),
    /// Floats of 32 bits.
    F32(&'a [f32]),
    /// Floats of 64 bits.
    F64(&'a [f64]),
    /// Strings of a fixed number of bytes, one after the other.
    Bytes {
        /// All bytes.
        data: &'a [u8],
        /// Bytes per row, at least 1.
        width: usize,
    },
}

/// Calls `$use` with a function from row to 64-bit key; equal keys are equal values.
macro_rules! with_key {
    ($column:expr, $use:expr) => {
        match $column {
            Column::Bool(values) => $use(values.len(), |i: usize| u64::from(values[i] != 0)),
            Column::I8(values) => $use(values.len(), |i: usize| values[i] as u64),
            Column::I16(values) => $use(values.len(), |i: usize| values[i] as u64),
            Column::I32(values) => $use(values.len(), |i: usize| values[i] as u64),
            Column::I64(values) => $use(values.len(), |i: usize| values[i] as u64),
            Column::U8(values) => $use(values.len(), |i: usize| u64::from(values[i])),
            Column::U16(values) => $use(values.len(), |i: usize| u64::from(values[i])),
            Column::U32(values) => $use(values.len(), |i: usize| u64::from(values[i])),
            Column::U64(values) => $use(values.len(), |i: usize| values[i]),
            Column::F32(values) => {
                $use(values.len(), |i: usize| $crate::tabulate::columns::float_key(f64::from(values[i])))
            }
            Column::F64(values) => $use(values.len(), |i: usize| $crate::tabulate::columns::float_key(values[i])),
            Column::Bytes { data, width } => $use(data.len() / width, |i: usize| {
                $crate::tabulate::columns::hash_bytes(&data[i * width..(i + 1) * width])
            }),
        }
    };
}
pub(super) use with_key;

/// Calls `$use` with the values of some rows and the function from value to key. Not for strings,
/// which have no values of one type.
macro_rules! with_values {
    ($column:expr, $rows:expr, $use:expr) => {
        match $column {
            Column::Bool(values) => $use(&values[$rows], |value| u64::from(value != 0)),
            Column::I8(values) => $use(&values[$rows], |value| value as u64),
            Column::I16(values) => $use(&values[$rows], |value| value as u64),
            Column::I32(values) => $use(&values[$rows], |value| value as u64),
            Column::I64(values) => $use(&values[$rows], |value| value as u64),
            Column::U8(values) => $use(&values[$rows], u64::from),
            Column::U16(values) => $use(&values[$rows], u64::from),
            Column::U32(values) => $use(&values[$rows], u64::from),
            Column::U64(values) => $use(&values[$rows], |value| value),
            Column::F32(values) => $use(&values[$rows], |value| $crate::tabulate::columns::float_key(f64::from(value))),
            Column::F64(values) => $use(&values[$rows], $crate::tabulate::columns::float_key),
            Column::Bytes { .. } => false,
        }
    };
}
pub(super) use with_values;

impl Column<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        with_key!(*self, |rows, _| rows)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether two rows hold the same value; keys of strings are hashes and do not decide it.
    #[inline]
    pub(super) fn same(&self, i: usize, j: usize) -> bool {
        match *self {
            Column::Bytes { data, width } => data[i * width..(i + 1) * width] == data[j * width..(j + 1) * width],
            _ => true,
        }
    }
}

/// The bits of a float with one NaN and one zero.
#[inline]
pub(super) fn float_key(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

#[inline]
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    hash
}
