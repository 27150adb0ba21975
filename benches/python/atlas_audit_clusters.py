"""Few clusters in the validity atlas: rates in clusters that vary differently in two groups.

The rate of a cluster has a beta law, whose spread is the correlation of two rows of the cluster;
clusters have 30 rows. The rule that does not hold permutes whole clusters, however few they are.
"""

from dataclasses import dataclass
from unittest import mock

import numpy as np

import fairaudit_rs as fa
from atlas_audit_pairs import TOLERANCE, Scenario
from atlas_tools import LEVELS
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.inference.tolerance import Tolerance
from fairaudit_rs.permutation.tolerance import prepare_tolerance_question

AUDITS = 1_000
N_RESAMPLES = 499
SIZE = 30
_RULE = "fairaudit_rs.permutation.rows.melding_of"


def clustered(rng, clusters, rates, correlations):
    """Return decisions, groups and clusters of two groups."""
    chances = [
        rng.beta(rate * (1 / rho - 1), (1 - rate) * (1 / rho - 1), n)
        for n, rate, rho in zip(clusters, rates, correlations, strict=True)
    ]
    cluster = np.repeat(np.arange(sum(clusters)), SIZE)
    return {
        "y_pred": (rng.random(len(cluster)) < np.concatenate(chances)[cluster]).astype(int),
        "sensitive_features": np.where(cluster < clusters[0], "a", "b"),
        "clusters": cluster,
    }


@dataclass(frozen=True)
class InFewClusters(Scenario):
    """Two groups whose clusters vary differently: number, rate and correlation of each."""

    clusters: tuple[int, int]
    rates: tuple[float, float]
    correlations: tuple[float, float]
    levels = LEVELS[:2]

    @property
    def audits(self):
        return AUDITS

    @property
    def groups(self):
        return f"{self.clusters[0]} + {self.clusters[1]} clusters"

    @property
    def _design(self):
        first, second = self.correlations
        return (
            f"rates {self.rates[0]:g} and {self.rates[1]:g}, correlation {first:g} and {second:g}"
        )


@dataclass(frozen=True)
class EqualRates(InFewClusters):
    """Equal rates: "fail" is a test of equality that rejects."""

    counted = ("fail", "permuted")

    @property
    def label(self):
        return f"test of equality, {self._design}"

    def audit(self, rng, seed):
        data = clustered(rng, self.clusters, self.rates, self.correlations)
        given = data | {
            "metric": "selection_rate", "rng": seed, "n_resamples": N_RESAMPLES, "n_threads": 1,
        }  # fmt: skip
        if not data["y_pred"].any():
            return dict.fromkeys(self.counted, 1.0)
        ours = fa.permutation_test(**given)
        old = fa.permutation_test(**given, engine="stream")
        return {"fail": ours.pvalue, "permuted": old.pvalue}


@dataclass(frozen=True)
class GapInFewClusters(InFewClusters):
    """Rates whose gap is exactly the tolerance; the old rule errs by a fail, or by a pass."""

    errs: str
    counted = ("fail", "pass", "permuted")

    @property
    def label(self):
        return f"selection rate, {self._design} (permuted: false {self.errs})"

    def audit(self, rng, seed):
        data = clustered(rng, self.clusters, self.rates, self.correlations)

        def words():
            question = prepare_tolerance_question(
                AuditTable.make(**data), fa.metrics.get("selection_rate"),
                Tolerance(value=TOLERANCE),
            )  # fmt: skip
            [test] = question.tests(
                alpha=LEVELS[0], n_tests=1, n_resamples=N_RESAMPLES, seed=seed, n_threads=1
            )
            return {"fail": test.p_fail, "pass": test.p_pass}

        with mock.patch(_RULE, return_value=None):
            old = words()
        return words() | {"permuted": old[self.errs]}


def scenarios():
    unlike = (
        ((100, 10), 0.05, (0.1, 0.3)),
        ((100, 20), 0.05, (0.05, 0.5)),
        ((60, 8), 0.1, (0.1, 0.3)),
        ((40, 6), 0.05, (0.05, 0.5)),
        ((40, 8), 0.1, (0.1, 0.5)),
        ((100, 50), 0.02, (0.1, 0.5)),
        ((100, 40), 0.05, (0.05, 0.5)),
        ((200, 50), 0.02, (0.05, 0.3)),
    )
    for clusters, rate, correlations in unlike:
        yield EqualRates(clusters, (rate, rate), correlations)
    for clusters, correlations in (((40, 8), (0.1, 0.5)), ((60, 10), (0.1, 0.3))):
        yield GapInFewClusters(clusters, (0.15, 0.05), correlations, "fail")
    yield GapInFewClusters((100, 50), (0.15, 0.05), (0.1, 0.5), "fail")
    for clusters in ((40, 8), (40, 6)):
        yield GapInFewClusters(clusters, (0.05, 0.15), (0.1, 0.5), "pass")
