//! Permutation tests of equal metrics across groups (`DiCiccio` et al., KDD 2020).
//!
//! Every test is a [`PermutationTest`]; those that compare groups are a [`GroupTest`] too. Within a stratum the groups
//! are exchangeable. Of counts ([`CountTest`]) a replicate is a table with the same margins: `tables` draws it, `exact`
//! sums over all of them. Of rows ([`RowTest`]) it is a walk over the rows that gives each its group: `stream`.
//! [`audits`] measures tests on data whose null hypothesis is true. [`CorrelationTest`] and [`RankCorrelationTest`] have no groups, and [`Assignments`] leaves to others what is computed of them.

pub mod audits;
mod callable;
mod correlation;
mod counts;
mod exact;
mod joint;
mod max_t;
mod rank_correlation;
mod rows;
mod scores;
mod shifts;
mod statistic;
mod strata;
mod stream;
mod sums;
mod tables;
mod units;

pub use callable::{Assignments, OBSERVED, Samples};
pub use correlation::CorrelationTest;
pub use counts::{Conditioning, CountTest};
pub use exact::ExactLaw;
pub use max_t::step_down_pvalues;
pub use rank_correlation::RankCorrelationTest;
pub use rows::RowTest;
pub use scores::Scores;
pub use shifts::{Extremes, NUMBERS, Shape, Shift, Shifts, Side};
pub use strata::Contrast;
pub use units::Units;

use crate::bootstrap::Replicates;
use crate::draws::Draws;
use crate::error::{Error, Result};
use crate::metrics::Evaluation;
use crate::parallel::Control;

/// A test whose replicates depend on their index alone: what comes of ranges of them is joined or added up.
pub trait PermutationTest: Send + Sync {
    /// The observed statistic.
    fn observed(&self) -> f64;

    /// What is estimated: the metric in each group, or the one number of a test without groups. Empty where there is
    /// nothing but the statistic.
    fn evaluations(&self) -> Vec<Evaluation> {
        Vec::new()
    }

    /// Estimated nanoseconds of one replicate on one thread.
    fn replicate_work(&self) -> u64;

    /// The statistic of some permutations, in the order of the replicates.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn null_distribution(&self, draws: &Draws, control: &Control) -> Result<Vec<f64>>;

    /// All statistics that a p-value is made of, in some permutations: a column for each. With several the p-value of a
    /// side is the largest of theirs.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn null_statistics(&self, draws: &Draws, control: &Control) -> Result<Vec<Vec<f64>>> {
        Ok(vec![self.null_distribution(draws, control)?])
    }

    /// The same of the observed groups.
    fn observed_statistics(&self) -> Vec<f64> {
        vec![self.observed()]
    }

    /// Estimated nanoseconds of [`PermutationTest::exact`] at most; none if it would return nothing at once.
    fn exact_work(&self) -> Option<u64> {
        None
    }

    /// The whole law, where it can be summed.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn exact(&self, alternative: Alternative, control: &Control) -> Result<Option<ExactLaw>> {
        let _ = (alternative, control);
        Ok(None)
    }

    /// Whether the null distribution must be centred at its own mean.
    fn needs_centring(&self) -> bool {
        false
    }

    /// What only tests of groups can be asked.
    fn groups(&self) -> Option<&dyn GroupTest> {
        None
    }
}

/// A test that compares groups.
pub trait GroupTest: PermutationTest {
    /// Number of groups.
    fn n_groups(&self) -> usize;

    /// The observed statistic of two groups.
    fn pair_statistic(&self, pair: (usize, usize)) -> f64;

    /// Number of strata of the user's.
    fn n_strata(&self) -> usize;

    /// The gap of two groups within strata of the user's, if there are any and there is one metric.
    fn contrast(&self, pair: (usize, usize)) -> Option<Contrast>;

    /// The test of a gap of any size, of two groups of a mean or ratio; what comes of ranges of replicates is joined.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] when it is another test, [`crate::Error::Cancelled`].
    fn shifts(&self, draws: &Draws, control: &Control) -> Result<Shifts> {
        let _ = (draws, control);
        Err(Error::argument("test", "another", "one of two groups of a mean or ratio"))
    }

    /// How many replicates reach the step-down statistic of each pair. Counts of ranges of replicates add up;
    /// [`step_down_pvalues`] makes p-values of the sums.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] when a pair is not of groups, [`crate::Error::Cancelled`].
    fn max_t(&self, pairs: &[(usize, usize)], draws: &Draws, control: &Control) -> Result<Vec<u64>>;

    /// Estimated nanoseconds of one bootstrap replicate on one thread.
    fn bootstrap_work(&self) -> u64 {
        2 * self.replicate_work()
    }

    /// Bootstrap replicates: every group's rows drawn with replacement, without strata of the user's. Intervals of values need
    /// no variances.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn bootstrap(&self, with_variances: bool, draws: &Draws, control: &Control) -> Result<Replicates>;
}

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
    /// As un-pooled, and of two groups of a mean or ratio corrected for skewness too: two statistics.
    Corrected,
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
