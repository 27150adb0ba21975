//! Permutation tests of equal metrics across groups (`DiCiccio` et al., KDD 2020).
//!
//! Within a stratum the groups are exchangeable. Of counts ([`CountTest`]) a replicate is a table with the same
//! margins: `tables` draws it, [`exact`](exact()) sums over all of them. Of rows ([`RowTest`]) it is a walk over the
//! rows that gives each its group: `stream`. [`CorrelationTest`] has no groups, and [`Assignments`] leaves to others
//! what is computed of them.

mod callable;
mod correlation;
mod counts;
mod exact;
mod joint;
mod max_t;
mod rows;
mod statistic;
mod stream;
mod tables;

pub use callable::{Assignments, OBSERVED, Samples};
pub use correlation::CorrelationTest;
pub use counts::{Conditioning, CountTest};
pub use exact::{Exact, exact};
pub use rows::{Groups, RowTest};
pub use tables::{max_t, null_distribution};

/// Two statistics closer than this, relative to the observed one, are a tie.
pub const TIE_TOLERANCE: f64 = 1e-10;

/// How the difference of two metrics is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Studentize {
    /// Not at all.
    None,
    /// By the root of the sum of the two linearised variances.
    Unpooled,
    /// By the score variance p(1 - `p)(1/d_1` + `1/d_2`) of a proportion.
    Pooled,
}

/// Which statistics count as at least as extreme as the observed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternative {
    /// Large |S|.
    TwoSided,
    /// Large S.
    Greater,
    /// Small S.
    Less,
}

impl Alternative {
    /// Whether `statistic` is at least as extreme as `observed`; undefined counts as extreme.
    #[inline]
    pub fn is_extreme(self, statistic: f64, observed: f64) -> bool {
        if statistic.is_nan() {
            return true;
        }
        let (statistic, observed) = match self {
            Self::TwoSided => (statistic.abs(), observed.abs()),
            Self::Greater => (statistic, observed),
            Self::Less => (-statistic, -observed),
        };
        statistic >= observed || (observed.is_finite() && statistic >= observed - TIE_TOLERANCE * observed.abs())
    }
}

/// Where a null distribution is centred: its mean with the observed statistic, which no
/// permutation of the data changes, so that the test stays valid. 0 when nothing is finite.
pub fn center_of(null: &[f64], observed: f64) -> f64 {
    let finite = || null.iter().copied().chain([observed]).filter(|statistic| statistic.is_finite());
    let n = finite().count();
    if n == 0 { 0.0 } else { finite().sum::<f64>() / n as f64 }
}

/// How many of the null statistics, less `center`, are at least as extreme as the observed one,
/// and how many of these are undefined.
pub fn count_extreme(null: &[f64], observed: f64, alternative: Alternative, center: f64) -> (u64, u64) {
    let mut extreme = 0;
    let mut undefined = 0;
    for &statistic in null {
        extreme += u64::from(alternative.is_extreme(statistic - center, observed - center));
        undefined += u64::from(statistic.is_nan());
    }
    (extreme, undefined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_statistics() {
        use Alternative::{Greater, Less, TwoSided};
        assert!(TwoSided.is_extreme(-2.0, 2.0));
        assert!(!Greater.is_extreme(-2.0, 2.0));
        assert!(Less.is_extreme(-2.0, 2.0));
        assert!(Greater.is_extreme(2.0 * (1.0 - 1e-12), 2.0));
        assert!(!Greater.is_extreme(2.0 * (1.0 - 1e-9), 2.0));
        assert!(TwoSided.is_extreme(f64::NAN, 2.0));
        assert!(!TwoSided.is_extreme(1e300, f64::INFINITY));
        assert!(TwoSided.is_extreme(f64::NEG_INFINITY, f64::INFINITY));
    }
}
