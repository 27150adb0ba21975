//! The cuts that are shipped: simulated once by `benches/python/tables_cuts.py`, interpolated here.
//!
//! For every k a table stands at horizons of M = 2.2 ... 5.5 k exceedances, evenly spread in their logarithm, and for two
//! n: the one to which k is the default, and without end. Between them lies every n of which k is at most the default.

use std::sync::OnceLock;

use super::cuts::{Cuts, Design, N_NODES, N_QUANTILES};
use crate::error::{Error, Result};

/// Exceedances for which tables stand.
pub const TABLED: [usize; 18] = [8, 11, 15, 20, 27, 36, 50, 70, 100, 140, 200, 300, 450, 700, 1100, 1800, 2800, 4200];
/// Horizons for each number of exceedances.
pub const N_HORIZONS: usize = 9;
/// The lowest horizon in exceedances.
const LOWEST: f64 = 2.2;
/// The highest horizon in rows, as a share of n.
const HIGHEST: f64 = 5.5;
/// How much smaller n may be than the one to which k is the default.
const SLACK: f64 = 1.2;
/// The number of exceedances that is taken from n rows: fixed before the data are seen.
pub fn default_k(n: u64) -> usize {
    let n = (n as f64).max(16.0);
    let log_log = libm::log(libm::log(n));
    (libm::cbrt(n * n) / log_log).round().max(15.0) as usize
}

/// The n to which k is the default, at least 100.
pub fn rows_of(k: usize) -> f64 {
    let k = k as f64;
    let (mut low, mut high) = (100.0_f64, 1e12_f64);
    while high / low > 1.0 + 1e-12 {
        let middle = (low * high).sqrt();
        if libm::cbrt(middle * middle) / libm::log(libm::log(middle)) < k { low = middle } else { high = middle }
    }
    low
}

/// The designs that are simulated for a number of exceedances, in the order of the file.
pub fn designs_of(k: usize) -> Vec<Design> {
    let horizon = |step: usize| {
        let (low, high) = (libm::log(LOWEST), libm::log(HIGHEST * k as f64));
        libm::exp(low + (high - low) * step as f64 / (N_HORIZONS - 1) as f64)
    };
    let both = [rows_of(k), f64::INFINITY];
    both.iter().flat_map(|&n| (0..N_HORIZONS).map(move |step| Design { horizon: horizon(step), n })).collect()
}

/// What is shipped for one number of exceedances.
struct Shipped {
    /// By n and horizon, as in [`designs_of`].
    levels: Vec<Cuts>,
    shape: Cuts,
}

fn shipped() -> Result<&'static [Shipped]> {
    static SHIPPED: OnceLock<Result<Vec<Shipped>>> = OnceLock::new();
    SHIPPED.get_or_init(|| read(include_str!("cuts.txt"))).as_deref().map_err(Clone::clone)
}

/// The tables of a text: numbers in thousandths, all tables of a k after one another, the shape's last.
fn read(text: &str) -> Result<Vec<Shipped>> {
    let words = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_ascii_whitespace);
    let numbers: Vec<f64> = words.filter_map(|word| word.parse::<i32>().ok()).map(|n| f64::from(n) / 1000.0).collect();
    let (table, of_k) = (N_NODES * N_QUANTILES, 2 * N_HORIZONS + 1);
    if numbers.len() != TABLED.len() * of_k * table {
        let given = format!("{} numbers", numbers.len());
        return Err(Error::argument("cuts.txt", given, "a whole file from benches/python/tables_cuts.py"));
    }
    let tables: Vec<Cuts> = numbers.chunks(table).map(Cuts::new).collect::<Result<_>>()?;
    Ok(tables
        .chunks(of_k)
        .map(|tables| Shipped { levels: tables[..of_k - 1].to_vec(), shape: tables[of_k - 1].clone() })
        .collect())
}

/// The place of k between two of [`TABLED`]: the first of them, and the share of the second, in 1 / sqrt k. Beyond the last
/// the law hardly changes: quantiles at 16,700 are those at 4,200 but for the error of their simulation (.05).
fn place(k: usize) -> Option<(usize, f64)> {
    let last = TABLED.len() - 1;
    if k < TABLED[0] {
        return None;
    }
    let k = k.min(TABLED[last]);
    let first = TABLED.partition_point(|&tabled| tabled <= k).saturating_sub(1).min(last - 1);
    let at = |k: usize| 1.0 / (k as f64).sqrt();
    let (low, high) = (at(TABLED[first]), at(TABLED[first + 1]));
    Some((first, (at(k) - low) / (high - low)))
}

/// The cuts of a return level of horizon m from k exceedances among n rows; None where the table ends.
///
/// # Errors
/// [`Error::Argument`] when the shipped file is broken.
pub fn level_cuts(k: usize, n: f64, m: f64) -> Result<Option<Cuts>> {
    let ratio = m / n;
    let Some((first, share)) = place(k) else { return Ok(None) };
    if rows_of(k) > SLACK * n || ratio * (k as f64) < LOWEST || ratio > HIGHEST {
        return Ok(None);
    }
    let tables = shipped()?;
    let at = |index: usize| {
        let k_there = TABLED[index] as f64;
        let steps = (N_HORIZONS - 1) as f64;
        let place = steps * libm::log(ratio * k_there / LOWEST) / libm::log(HIGHEST * k_there / LOWEST);
        let place = place.clamp(0.0, steps);
        let step = (place as usize).min(N_HORIZONS - 2);
        let along = |offset: usize| {
            tables[index].levels[offset + step].mix(&tables[index].levels[offset + step + 1], place - step as f64)
        };
        // The law depends on n through k / n, nearly in proportion.
        let of_default = (k as f64 / n) / (k_there / rows_of(TABLED[index]));
        along(N_HORIZONS).mix(&along(0), of_default)
    };
    Ok(Some(at(first).mix(&at(first + 1), share)))
}

/// The cuts of the shape from k exceedances; None where the table ends.
///
/// # Errors
/// [`Error::Argument`] when the shipped file is broken.
pub fn shape_cuts(k: usize) -> Result<Option<Cuts>> {
    let Some((first, share)) = place(k) else { return Ok(None) };
    let tables = shipped()?;
    Ok(Some(tables[first].shape.mix(&tables[first + 1].shape, share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_the_page() {
        for (n, k) in [(100, 15), (500, 34), (2_000, 78), (10_000, 209), (100_000, 882)] {
            assert_eq!(default_k(n), k);
        }
        for k in [15, 34, 78, 209, 882] {
            assert_eq!(default_k(rows_of(k).round() as u64), k);
        }
    }

    #[test]
    fn tables_end_where_nothing_was_simulated() {
        let there = |k, n, m| level_cuts(k, n, m).unwrap().is_some();
        assert!(there(34, 500.0, 500.0) && there(34, 1e6, 5e6) && there(17, 500.0, 1_000.0) && there(16_700, 1e7, 1e6));
        assert!(!there(7, 500.0, 500.0));
        assert!(!there(34, 400.0, 400.0) && !there(34, 500.0, 2_800.0) && !there(34, 500.0, 30.0));
    }

    #[test]
    fn a_broken_file_is_refused() {
        assert!(read("# nothing\n1 2 3").is_err());
    }
}
