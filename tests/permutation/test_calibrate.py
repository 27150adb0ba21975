"""Calibration on data of one's own: the function and the command."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.cli import main
from fairaudit_rs.metrics import row_values
from fairaudit_rs.metrics.row_values import rank_influence
from fairaudit_rs.permutation import counts as counts_module

from ..children import outputs_of_instruction_sets
from ..reference import rows
from .posing import posed

NAN = math.nan
OLD = '{"old": true}\n'


def make(seed=0, n=300, groups="ab", levels=None):
    """(y_true, y_pred, score, group)."""
    rng = np.random.default_rng(seed)
    y_true = (rng.random(n) < 0.4).astype(int)
    score = np.clip(0.3 * y_true + 0.7 * rng.random(n), 0.01, 0.99)
    if levels:
        score = np.round(score * levels) / levels
    return y_true, (score > 0.5).astype(int), score, rng.choice(list(groups), n)


def report_of(data, metric, **options):
    y_true, y_pred, score, group = data
    defaults = {"sensitive_features": group, "n_audits": 40, "n_resamples": 49, "rng": 1}
    return fa.calibrate(y_true, y_pred, y_score=score, metric=metric, **{**defaults, **options})


def median_error(y_true, value, weight):
    return float(np.median(np.abs(y_true - value)))


MEDIAN = fa.metrics.callable_metric(
    "median_error", median_error, columns=("y_true", "y_score"), n_samples=10
)


def pvalues_of(problem, null="shuffle", n_audits=2_000, n_resamples=9):
    draws = _native.Draws(n_audits, seed=1, series=2**63)
    return problem.equal(null).pvalues(n_resamples, draws, _native.Call())


def run(*arguments):
    return CliRunner().invoke(main, ["calibrate", *map(str, arguments)])


def strict_json(text):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def book(tmp_path):
    """A CSV file of loans."""
    y_true, y_pred, score, _ = make(3, 300)
    rng = np.random.default_rng(4)
    person = np.arange(300) // 3
    frame = pl.DataFrame(
        {
            "repaid": y_true,
            "approved": y_pred,
            "score": score,
            "sex": rng.choice(["f", "m"], 300),
            "age": rng.choice(["old", "young"], 300),
            "branch": rng.choice(["north", "south"], 300),
            "team": np.where(person % 2 == 0, "x", "y"),
            "person": person,
            "amount": rng.integers(1, 9, 300),
            "verdict": np.where(y_pred == 1, "yes", "no"),
        }
    )
    path = tmp_path / "loans.csv"
    frame.write_csv(path)
    return path


ROLES = ("--y-true", "repaid", "--y-pred", "approved")
SMALL = ("--n-audits", "20", "--n-resamples", "49", "--seed", "5")
BY_SEX = (*ROLES, "-s", "sex", *SMALL)


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"gaps": 0.1}, errors.ArgumentTypeError, "gaps is 0.1; accepted: a sequence of numb"),
            ({"gaps": "0.1"}, errors.ArgumentTypeError, "gaps is '0.1'; accepted"),
            ({"gaps": None}, errors.ArgumentTypeError, "gaps is None; accepted"),
            ({"gaps": [0]}, errors.ArgumentError, "gaps contains 0; accepted: finite num"),
            ({"gaps": [0.1, NAN]}, errors.ArgumentError, "gaps contains nan; accepted"),
            ({"gaps": [math.inf]}, errors.ArgumentError, "gaps contains inf; accepted"),
            ({"gaps": ["0.1"]}, errors.ArgumentTypeError, "gaps contains '0.1'; accepted"),
            ({"gaps": [True]}, errors.ArgumentTypeError, "gaps contains True; accepted"),
            ({"gaps": [[0.1]]}, errors.ArgumentTypeError, r"gaps contains \[0.1\]; accepted"),
            ({"gaps": [1.5]}, errors.ArgumentError, "gaps contains 1.5, but .* at most 0"),
            ({"gaps": [-1.5]}, errors.ArgumentError, "gaps contains -1.5, but .* at most -0"),
            ({"n_audits": 0}, errors.ArgumentError, "n_audits is 0; accepted: a whole number from"),
            ({"n_audits": 9}, errors.ArgumentError, "n_audits is 9; accepted"),
            ({"n_audits": -5}, errors.ArgumentError, "n_audits is -5; accepted"),
            ({"n_audits": 20.0}, errors.ArgumentTypeError, "n_audits is 20.0; accepted"),
            ({"n_audits": NAN}, errors.ArgumentTypeError, "n_audits is nan; accepted"),
            ({"n_resamples": 0}, errors.ArgumentError, "n_resamples is 0; accepted"),
            ({"confidence_level": 95}, errors.ArgumentError, "confidence_level is 95; accepted"),
            ({"confidence_level": NAN}, errors.ArgumentError, "confidence_level is nan; accepted"),
            ({"studentize": "pool"}, errors.ArgumentError, "studentize is 'pool'; accepted"),
            ({"studentize": "pooled"}, errors.ArgumentError, "studentize is 'pooled' for f1"),
            ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0; accepted"),
            ({"rng": -1}, errors.ArgumentError, "rng is -1; accepted"),
            ({"random_state": 1}, errors.ArgumentTypeError, "rng and random_state are two names"),
            ({"progress": "yes"}, errors.ArgumentTypeError, "progress is 'yes'; accepted"),
            ({"groups": ["a", "z"]}, errors.DataError, "groups names 'z', which is no group"),
            ({"groups": ["a"]}, errors.DataError, "only one group"),
            ({"reference": "z"}, errors.DataError, "reference names 'z', which is no group"),
            ({"strata": np.zeros(3)}, errors.DataError, "columns differ in length"),
            ({"clusters": np.zeros(300)}, errors.DataError, "rows in more than one group"),
            ({"sample_weight": [-1.0] * 300}, errors.DataError, "sample_weight is -1 in row 0"),
            ({"sample_weight": [NAN] * 300}, errors.DataError, "sample_weight is nan in row 0"),
            ({"score_bins": 5}, errors.ArgumentTypeError, "score_bins applies to calibration_err"),
            ({"pos_label": "yes"}, errors.ArgumentError, "pos_label is 'yes', which does not occ"),
            ({"sensitive_features": ["a"] * 300}, errors.DataError, "only one group"),
            ({"sensitive_features": None}, errors.ArgumentTypeError, "sensitive_features is miss"),
            ({"metric": "nope"}, errors.UnknownMetricError, "metric is 'nope'"),
        ],
    )
    def test_wrong_values(self, options, error, message):
        options = {"metric": "f1", **options}
        with pytest.raises(error, match=message):
            report_of(make(), options.pop("metric"), **options)

    @pytest.mark.parametrize("metric", ["equalized_odds", "calibration_error", MEDIAN])
    def test_metrics_without_gaps(self, metric):
        with pytest.raises(
            errors.ArgumentError, match=r"gaps contains 0.1, but gaps of .* cannot be sim"
        ):
            report_of(make(), metric, gaps=[0.1])

    def test_correlations_have_no_gaps(self):
        data = (*make()[:3], np.random.default_rng(0).random(300))
        with pytest.raises(
            errors.ArgumentError, match=r"gaps contains 0.1, but gaps of pearson cannot"
        ):
            report_of(data, "pearson", gaps=[0.1])
        with pytest.raises(errors.ArgumentTypeError, match="clusters does not apply to pearson"):
            report_of(data, "pearson", clusters=np.arange(300))

    def test_columns_that_are_needed(self):
        y_true, y_pred, score, group = make()
        with pytest.raises(errors.ArgumentError, match="y_true is None, but true_positive_rate"):
            report_of((None, y_pred, score, group), "tpr")
        with pytest.raises(errors.ArgumentError, match="y_score is None, but auc needs scores"):
            report_of((y_true, y_pred, None, group), "auc")

    def test_a_group_without_positives(self):
        y_true, y_pred, score, group = make()
        y_true[group == "b"] = 0
        for metric in ("tpr", "auc"):
            with pytest.raises(errors.NotMeasurableError, match="'b' has 0 rows with a positive"):
                report_of((y_true, y_pred, score, group), metric)

    def test_gaps_of_what_does_not_vary(self):
        y_true, _, score, group = make()
        with pytest.raises(
            errors.ArgumentError, match=r"gaps contains 0.1, but .* reaches at most 0\."
        ):
            report_of((y_true, np.ones(300, int), score, group), "selection_rate", gaps=[0.1])

    def test_gaps_that_are_used_up_are_not_lost(self):
        """A generator holds numbers once: each is used, or it is refused."""
        try:
            report = report_of(make(), "f1", gaps=(gap for gap in [0.1, 0.2]))
        except errors.ArgumentTypeError as error:
            assert "gaps is" in str(error)  # noqa: PT017
        else:
            assert [rate.gap for rate in report.power] == [0.1, 0.2]

    def test_gaps_of_numpy(self):
        report = report_of(make(), "f1", gaps=np.array([0.1, -0.1]))
        assert [rate.gap for rate in report.power] == [0.1, -0.1]
        shifted = (*make()[:2], 30 * make()[2], make()[3])
        assert report_of(shifted, "mean_score", gaps=np.array([2])).power[0].gap == 2


class TestCommandArguments:
    def refused(self, tmp_path, message, *arguments):
        """Exit code 2, one line, and files are left as they were."""
        target = tmp_path / "old.json"
        target.write_text(OLD)
        before = sorted(tmp_path.iterdir())
        result = run(*arguments, "--json", target)
        assert result.exit_code == 2, result.output
        assert re.search(message, result.stderr), result.stderr
        assert "Traceback" not in result.output
        assert target.read_text() == OLD
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("-m", "nope"), "fairaudit: error: --metric is 'nope'"),
            (("-m", "tpr", "--gap", "nan"), "error: --gap contains nan; accepted"),
            (("-m", "tpr", "--gap", "0"), "error: --gap contains 0.0; accepted"),
            (("-m", "tpr", "--gap", "x"), "Invalid value for '--gap'"),
            (("-m", "tpr", "--gap", "1.5"), "error: --gap contains 1.5, but redrawing"),
            (("-m", "equalized_odds", "--gap", ".1"), "error: --gap contains .* of equalized_odds"),
            (("-m", "tpr", "--n-audits", "9"), "error: --n-audits is 9; accepted"),
            (("-m", "tpr", "--n-audits", "x"), "Invalid value for '--n-audits'"),
            (("-m", "tpr", "--n-resamples", "0"), "error: --n-resamples is 0; accepted"),
            (("-m", "tpr", "--confidence-level", "95"), "error: --confidence-level is 95.0; acc"),
            (("-m", "tpr", "--confidence-level", "nan"), "error: --confidence-level is nan; acc"),
            (("-m", "tpr", "--seed", "-1"), "Invalid value for '--seed'"),
            (("-m", "tpr", "--threads", "0"), "error: --threads is 0; accepted"),
            (("-m", "tpr", "--strata", "nope"), ": column 'nope' does not exist"),
            (("-m", "tpr", "--clusters", "nope"), ": column 'nope' does not exist"),
            (("-m", "tpr", "--clusters", "branch"), "error: .* rows in more than one group"),
            (("-m", "tpr", "--weight", "nope"), ": column 'nope' does not exist"),
            (("-m", "tpr", "--weight", "branch"), "error: --weight"),
            (("-m", "auc"), "error: auc needs scores. Pass --y-score COLUMN"),
            (("-m", "tpr", "--pos-label", "maybe"), "error: --pos-label is 'maybe'"),
            (("-m", "tpr", "-m", "nope"), "error: --metric is 'nope'"),
            ((), "Missing option '--metric'"),
        ],
    )
    def test_wrong_values(self, options, message, tmp_path, book):
        self.refused(tmp_path, message, book, *BY_SEX, *options)

    def test_attributes_and_files(self, tmp_path, book):
        self.refused(tmp_path, "no column of groups is named", book, *ROLES, "-m", "tpr")
        self.refused(
            tmp_path, "column 'nope' does not exist", book, *ROLES, "-s", "nope", "-m", "tpr"
        )
        self.refused(tmp_path, "error: .*none.csv", tmp_path / "none.csv", *BY_SEX, "-m", "tpr")
        self.refused(tmp_path, "Missing argument 'DATA'", "-m", "tpr", "-s", "sex")

    def test_json_into_no_directory(self, tmp_path, book):
        result = run(book, *BY_SEX, "-m", "tpr", "--json", tmp_path / "no" / "out.json")
        assert result.exit_code == 2
        assert "its directory does not exist" in result.stderr
        assert result.stdout == ""


class TestKnownValues:
    def test_report(self):
        report = report_of(make(), "selection_rate", gaps=[0.3, -0.3], n_audits=60)
        assert report.metric == "selection_rate"
        assert report.level == pytest.approx(0.05)
        assert report.false_alarms.gap == 0
        assert [rate.gap for rate in report.power] == [0.3, -0.3]
        assert all(rate.rejected > 0.9 for rate in report.power)
        assert report.holds
        assert sum(report.group_sizes.values()) == 300
        assert (report.n_resamples, report.seed) == (49, 1)
        found = report.false_alarms
        k = round(found.rejected * found.n_audits)
        low, high = (
            stats.beta.ppf(0.005, k, 60 - k + 1) if k else 0.0,
            stats.beta.ppf(0.995, k + 1, 60 - k),
        )
        assert found.confidence_interval == pytest.approx((low, high), abs=1e-9)

    def test_words_json_and_frames(self):
        report = report_of(make(), "f1", gaps=[0.2])
        lines = str(report).split("\n")
        assert lines[0].startswith(
            "f1: the test shows no sign of missing its level of 5 % on these data"
        )
        assert lines[1].startswith("  a gap of 0.2 is found in ")
        content = strict_json(json.dumps(report.to_dict(), allow_nan=False))
        assert content["kind"] == "CalibrationReport"
        assert content["summary"] == str(report)
        assert content["power"][0]["gap"] == 0.2
        frame = report.to_frame()
        assert frame["gap"].to_list() == [0.0, 0.2]
        assert frame.columns == [
            "metric", "null", "gap", "rejected", "low", "high", "n_audits", "n_not_measurable",
        ]  # fmt: skip

    def test_audits_without_a_value_are_counted(self):
        """Two rows in b: about one audit in e^2 = 7.4 draws none for it."""
        y_true, y_pred, score, _ = make()
        group = np.where(np.arange(300) < 2, "b", "a")
        report = report_of((y_true, y_pred, score, group), "selection_rate", gaps=[0.2])
        assert report.false_alarms.n_not_measurable == 0
        assert 0 < report.power[0].n_not_measurable < 20
        assert any("some group had no value of selection_rate" in text for text in report.warnings)

    def test_holds(self):
        report = report_of(make(), "f1")

        def with_interval(low, high):
            from dataclasses import replace

            rate = replace(report.false_alarms, confidence_interval=(low, high))
            return replace(report, false_alarms=rate)

        assert with_interval(0.01, 0.2).holds
        assert with_interval(0.0, 0.03).holds  # a conservative test keeps its level
        assert not with_interval(0.0501, 0.2).holds
        assert "MISSES its level" in str(with_interval(0.06, 0.2))

    def test_rank_influence_by_hand(self):
        """Scores 1 2 3 4, labels 0 1 0 1: AUC 3/4; V10 = 1/2, 1 and V01 = 1, 1/2."""
        psi = rank_influence(np.array([1.0, 2, 3, 4]), np.array([0, 1, 0, 1]), None)
        assert psi == pytest.approx([0.125, -0.125, -0.125, 0.125])

    @pytest.mark.parametrize(
        "metric",
        ["selection_rate", "f1", "equalized_odds", "auc", "ece", "mse", MEDIAN],
        ids=lambda metric: getattr(metric, "name", metric),
    )
    def test_false_alarms_of_every_family(self, metric):
        options = {"studentize": "shared"} if metric is MEDIAN else {}
        report = report_of(make(), metric, n_audits=20, n_resamples=19, **options)
        assert report.holds
        assert report.power == ()

    def test_false_alarms_of_a_correlation(self):
        attribute = np.random.default_rng(0).random(300)
        report = report_of((*make()[:3], attribute), "pearson", n_audits=100, n_resamples=99)
        assert report.holds
        assert report.false_alarms.rejected < 0.2


class TestReference:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("levels", [None, 8])
    def test_rank_influence(self, weighted, levels):
        y_true, _, score, _ = make(2, 120, levels=levels)
        weight = np.random.default_rng(0).exponential(size=120) if weighted else None
        expected = rows.auc_influence(y_true, score, weight)
        assert rank_influence(score, y_true, weight) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize(
        ("metric", "gap"),
        [
            ("selection_rate", 0.1),
            ("tpr", -0.12),
            ("ppv", 0.1),
            ("balanced_accuracy", 0.1),
            ("f1", 0.08),
            ("mcc", -0.1),
            ("auc", 0.07),
            ("mse", -0.03),
        ],
    )
    @pytest.mark.parametrize("design", ["plain", "weights", "clusters", "three groups"])
    def test_the_gap_that_was_asked_for(self, metric, gap, design):
        """The mean gap of 100 tilted data sets, measured with the metric itself."""
        y_true, y_pred, score, group = make(3, 600, "abc" if design == "three groups" else "ab")
        columns = {"y_true": y_true, "y_pred": y_pred, "y_score": score}
        if design == "weights":
            columns["sample_weight"] = np.random.default_rng(0).exponential(size=600)
        if design == "clusters":
            columns["clusters"] = np.arange(600) // 4
            group = np.where(columns["clusters"] % 2 == 0, "a", "b")
        source = posed(metric, 3, sensitive_features=group, **columns)
        tilted = source.unequal(gap)
        draws = _native.Draws(100, seed=3)
        assert tilted.expected_gap(tilted.probability) == pytest.approx(gap, abs=1e-6)
        gaps, sizes = [], []
        for audit in range(100):
            problem = tilted.draw(draws, audit)
            first, *others = (entry.value for entry in problem.evaluations)
            gaps.append(first - np.mean(others))
            sizes.append(problem.n_rows)
        error = np.std(gaps) / math.sqrt(100)
        assert np.mean(gaps) == pytest.approx(gap, abs=5 * error + 0.05 * abs(gap))
        assert np.mean(sizes, axis=0) == pytest.approx(source.n_rows, abs=12)
        assert {sum(size) for size in sizes} == {600}

    def test_gaps_within_strata(self):
        """Departments explain a crude gap of .47. A gap of 0.1 is one within departments."""
        rng = np.random.default_rng(10)
        department = rng.random(4_000) < 0.5
        group = np.where(rng.random(4_000) < np.where(department, 0.9, 0.1), "a", "b")
        y_pred = (rng.random(4_000) < np.where(department, 0.8, 0.2)).astype(int)
        options = {
            "y_pred": y_pred,
            "sensitive_features": group,
            "metric": "selection_rate",
            "strata": department,
        }
        # The test sees 0.1 within departments nearly always: its standard error is .02.
        within = np.where(group == "a", 0.05, -0.05)
        moved = (rng.random(4_000) < np.where(department, 0.8, 0.2) + within).astype(int)
        direct = fa.permutation_test(rng=1, n_resamples=199, **{**options, "y_pred": moved})
        assert direct.estimate == pytest.approx(0.1, abs=0.07)
        try:
            report = fa.calibrate(gaps=[0.1, -0.1], n_audits=40, n_resamples=99, rng=1, **options)
        except errors.ArgumentError as error:
            assert "strata" in str(error)  # noqa: PT017
        else:
            assert report.holds
            assert [rate.rejected > 0.8 for rate in report.power] == [True, True]

    def test_shuffled_groups_are_equal_in_law(self):
        """The p-values of audits are those of hypergeometric counts, as often as these occur."""
        _, y_pred, _, group = make(4, 60)
        law = stats.hypergeom(60, int(y_pred.sum()), int((group == "a").sum()))
        counts = np.arange(61)
        distance = np.abs(counts - law.mean())
        exact = [law.pmf(counts[distance >= value - 1e-9]).sum() for value in distance]
        found = pvalues_of(posed("selection_rate", y_pred=y_pred, sensitive_features=group))
        likely = [p for p in np.unique(np.round(exact, 9)) if 2_000 * p > 10]
        for p in likely:
            seen, low = np.sum(found <= p * (1 + 1e-6)), stats.binom(2_000, min(p, 1.0))
            assert low.ppf(1e-6) <= seen <= low.isf(1e-6)
        assert set(np.round(found, 9)) <= set(np.round(exact, 9))

    def test_a_function_that_conditions_on_the_label(self):
        """Rows of one label exchange their groups: each group keeps its labels in every audit."""
        seen = []

        def positives(y_true, value, weight):
            seen.append((len(y_true), int(y_true.sum())))
            return float(value.mean())

        metric = fa.metrics.callable_metric(
            "mean_of_one_label",
            positives,
            columns=("y_true", "y_score"),
            conditions_on="label",
            n_samples=5,
        )
        y_true, _, score, _ = make(5, 80)
        group = np.where(np.random.default_rng(0).random(80) < 0.3 + 0.4 * y_true, "a", "b")
        report = fa.calibrate(
            y_true, y_score=score, sensitive_features=group, metric=metric,
            studentize=False, n_audits=10, n_resamples=19, rng=1,
        )  # fmt: skip
        assert report.exchanged == "rows of the same label"
        kept = {(int((group == g).sum()), int(y_true[group == g].sum())) for g in "ab"}
        # Of each group as it is, and what bootstrap samples of the observed rows have.
        assert {row for row in seen if seen.count(row) > 100} == kept


def linearised(metric, design):
    """(a, d, cell, group) of units as the weak null must draw them, from the slow references."""
    y_true, y_pred, score, group = make(12, 120)
    options = {"sensitive_features": group}
    weight, stratum, cluster = np.ones(120), np.zeros(120, int), np.arange(120)
    if design == "weights":
        weight = options["sample_weight"] = np.random.default_rng(0).exponential(size=120)
    if design == "strata":
        stratum = options["strata"] = np.arange(120) % 2
    if design == "clusters":
        cluster = options["clusters"] = np.arange(120) // 3
        group = options["sensitive_features"] = np.where(cluster % 2 == 0, "a", "b")
    cells = np.unique(np.stack([stratum, group == "b"]), axis=1, return_inverse=True)[1].ravel()
    above, below = np.zeros(120), weight.copy()
    for cell in np.unique(cells):
        inside = cells == cell
        w = weight[inside]
        if metric in ("mse", "f1"):
            a, d = w * (y_true - score)[inside] ** 2, w
            if metric == "f1":
                found = (y_true & y_pred)[inside]
                a, d = 2 * w * found, w * (2 * found + (y_true != y_pred)[inside])
            above[inside], below[inside] = a - a.sum() / d.sum() * d, d
        elif metric == "auc":
            above[inside] = w * rows.auc_influence(y_true[inside], score[inside], w)
        else:
            above[inside] = w * mcc_influence(y_true[inside], y_pred[inside], w)
    units = np.unique(cluster, return_index=True)[1]
    above, below = np.bincount(cluster, above), np.bincount(cluster, below)
    if metric not in ("mse", "f1"):
        above, below = np.bincount(cells[units])[cells[units]] * above, np.ones(len(units))
    return (
        posed(metric, y_true=y_true, y_pred=y_pred, y_score=score, **options),
        above,
        below,
        cells[units],
    )


def mcc_influence(y_true, y_pred, weight, step=1e-6):
    """d MCC / d w_i of every row."""

    def mcc(w):
        places = ((1, 1), (0, 1), (1, 0), (0, 0))
        tp, fp, fn, tn = (w[(y_true == y) & (y_pred == p)].sum() for y, p in places)
        return (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))

    moves = step * np.eye(len(weight))
    return np.array([(mcc(weight + move) - mcc(weight - move)) / (2 * step) for move in moves])


def slow_weak_null(above, below, cells, n_audits, rng, n_resamples=199):
    """p-values of the studentized permutation test on resampled centred units, two groups."""
    group, cut = cells % 2, []
    pvalues = []
    for _ in range(n_audits):
        cut = np.concatenate(
            [rng.choice(np.flatnonzero(cells == c), np.sum(cells == c)) for c in np.unique(cells)]
        )
        a, d, g = above[cut], below[cut], group[cut]

        def statistic(members, a=a, d=d):
            value, variance = [], 0.0
            for entry in (members, ~members):
                theta = a[entry].sum() / d[entry].sum()
                value.append(theta)
                n = entry.sum()
                variance += n / (n - 1) * np.sum(((a - theta * d)[entry] / d[entry].sum()) ** 2)
            return abs(value[0] - value[1]) / math.sqrt(variance)

        null = [statistic(rng.permutation(g) == 0) for _ in range(n_resamples)]
        pvalues.append((1 + np.sum(np.array(null) >= statistic(g == 0))) / (1 + n_resamples))
    return np.array(pvalues)


class TestWeakNull:
    @pytest.mark.parametrize("design", ["plain", "weights", "clusters", "strata"])
    @pytest.mark.parametrize("metric", ["mse", "f1", "mcc", "auc"])
    def test_what_is_drawn(self, metric, design, monkeypatch):
        """Values of the references, centred in every group and stratum."""
        problem, above, below, cells = linearised(metric, design)
        made = {}

        class Recorder:
            @staticmethod
            def rows(numerator, denominator, units, cell, call, **options):
                below = np.ones(len(numerator)) if denominator is None else denominator
                made["units"] = (numerator, below, cell)

            @staticmethod
            def counts(counts, numerator, denominator, call, **options):
                below = np.ones(len(numerator)) if denominator is None else denominator
                made["counts"] = counts, numerator, below

        known = {name: getattr(_native, name) for name in dir(_native)}
        native = SimpleNamespace(**known | {"WeakNull": Recorder})
        monkeypatch.setattr(row_values, "_native", native)
        monkeypatch.setattr(counts_module, "_native", native)
        problem.equal("weak")
        if "units" in made:
            found = sorted(zip(made["units"][2], *made["units"][:2], strict=True))
        else:
            counts, values, below_of = made["counts"]
            found = []
            for at in np.argwhere(counts):
                cell = 2 * at[0] + at[1]
                found += [(cell, values[at[2]], below_of[at[2]])] * int(counts[tuple(at)])
            found.sort()
        expected = sorted(zip(cells, above, below, strict=True))
        assert np.array(found) == pytest.approx(np.array(expected), abs=1e-6)
        for cell in np.unique(cells):
            total = sum(value for place, value, _ in found if place == cell)
            assert total == pytest.approx(0, abs=1e-9)

    def test_rates_of_plain_rows_are_shuffled(self):
        data = make()
        weak = report_of(data, "selection_rate", null="weak")
        assert weak.null == "shuffle"
        assert any("weak null of a proportion" in text for text in weak.warnings)
        assert weak.false_alarms == report_of(data, "selection_rate").false_alarms
        weight = 1.0 + np.arange(300) % 3
        assert report_of(data, "selection_rate", null="weak", sample_weight=weight).null == "weak"

    @pytest.mark.parametrize("metric", ["equalized_odds", "calibration_error", MEDIAN, "pearson"])
    def test_metrics_without_an_influence(self, metric):
        data = make()
        if metric == "pearson":
            data = (*data[:3], np.random.default_rng(0).random(300))
        with pytest.raises(errors.ArgumentError, match=r"null is 'weak' for .*accepted: 'shuffle'"):
            report_of(data, metric, null="weak")
        with pytest.raises(errors.ArgumentError, match="null is 'strong'; accepted: 'shuffle', 'w"):
            report_of(data, metric, null="strong")

    @pytest.mark.parametrize("metric", ["f1", "auc", "mse"])
    def test_rows_in_any_order_on_any_threads(self, metric):
        data = make(6)
        order = np.random.default_rng(0).permutation(300)
        first = report_of(data, metric, null="weak")
        moved = report_of(tuple(c[order] for c in data), metric, null="weak", n_threads=3)
        assert moved.to_dict() == first.to_dict()
        assert first.null == "weak"
        assert "null 'weak'" in str(first)
        assert {row["null"] for row in first.rows()} == {"weak"}

    def test_only_the_weak_null_sees_skewness(self):
        """Residuals of a 3 % event: of samples of 40 rows with one event a third has none."""
        n_few, n_many = 40, 1_960
        y_true = np.r_[1, np.zeros(n_few - 1), np.tile([0, 1], n_many // 2)].astype(int)
        options = {
            "y_score": np.repeat([0.03, 0.5], [n_few, n_many]),
            "sensitive_features": np.repeat(["a", "b"], [n_few, n_many]),
            "metric": "mean_residual",
            "n_audits": 1_000,
            "n_resamples": 199,
            "rng": 1,
        }
        assert fa.calibrate(y_true, **options).holds
        # The studentized test of the same values, centred in each group.
        counts = np.array([[[1, 39, 0, 0], [0, 0, 980, 980]]], dtype=np.uint64)
        values = np.array([39 / 40, -1 / 40, 0.5, -0.5])
        call, draws = _native.Call(), _native.Draws(1_000, seed=1)
        source = _native.WeakNull.counts(counts, values, None, call, studentize="unpooled")
        assert np.mean(source.pvalues(199, draws, call) <= 0.05) > 0.15
        weak = fa.calibrate(y_true, null="weak", **options)
        assert not weak.holds
        assert "MISSES its level" in str(weak)


class TestProperties:
    METRICS = ("selection_rate", "tpr", "f1", "auc", "mse")

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    def test_threads(self, metric, groups):
        data = make(5, 300, groups)
        options = {"gaps": [0.05], "n_audits": 15}
        first = report_of(data, metric, n_threads=1, **options)
        for n in (None, 2, 7):
            assert report_of(data, metric, n_threads=n, **options).to_dict() == first.to_dict()

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_rows_in_any_order(self, metric, weighted):
        """As for permutation_test: the order of the rows, or of files, is not information."""
        data = make(6)
        weight = 1.0 + np.arange(300) % 3
        order = np.random.default_rng(0).permutation(300)
        first = report_of(
            data, metric, gaps=[0.05], n_audits=60, sample_weight=weight if weighted else None
        )
        moved = report_of(
            tuple(c[order] for c in data),
            metric,
            gaps=[0.05],
            n_audits=60,
            sample_weight=weight[order] if weighted else None,
        )
        assert moved.to_dict() == first.to_dict()

    @pytest.mark.parametrize("metric", METRICS)
    def test_arrays_frames_and_files(self, metric, tmp_path):
        y_true, y_pred, score, group = data = make(7)
        frame = pl.DataFrame({"y": y_true, "p": y_pred, "s": score, "group": group})
        frame.write_parquet(tmp_path / "data.parquet")
        names = {"y_true": "y", "y_pred": "p", "y_score": "s", "sensitive_features": "group"}
        first = report_of(data, metric, gaps=[0.05], n_audits=15)
        for table in (frame, frame.lazy(), tmp_path / "data.parquet"):
            other = fa.calibrate(
                data=table, metric=metric, gaps=[0.05], n_audits=15, n_resamples=49, rng=1, **names
            )
            assert other.to_dict() == first.to_dict()

    def test_cells(self):
        y_true, y_pred, _, group = data = make(8)
        cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
        other = fa.calibrate(
            data=cells, metric="tpr", gaps=[0.2], n_audits=40, n_resamples=49, rng=1
        )
        assert other.to_dict() == report_of(data, "tpr", gaps=[0.2]).to_dict()

    def test_cells_of_very_many_rows(self):
        """Cells hold counts: 300 * 2^24 rows are as good as 300."""
        y_true, y_pred, _, group = make(8)
        cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
        for _ in range(24):
            cells = cells + cells
        for null in ("shuffle", "weak"):
            report = fa.calibrate(
                data=cells, metric="f1", n_audits=10, n_resamples=19, rng=1, null=null
            )
            assert sum(report.group_sizes.values()) == 300 * 2**24
            assert report.holds

    def test_every_instruction_set(self):
        code = (
            "import hashlib, numpy as np, fairaudit_rs as fa\n"
            "rng = np.random.default_rng(5)\n"
            "y, p, group = (rng.integers(0, 2, 300) for _ in range(3))\n"
            "s, seen = rng.random(300), hashlib.sha256()\n"
            "for metric in ('tpr', 'f1', 'auc', 'mse'):\n"
            "    for weight in (None, np.arange(300) % 4 + 1.0):\n"
            "        report = fa.calibrate(\n"
            "            y, p, y_score=s, sensitive_features=group, metric=metric, gaps=[0.05],\n"
            "            sample_weight=weight, n_audits=20, n_resamples=49, rng=1)\n"
            "        seen.update(repr(report.to_dict()).encode())\n"
            "print(seen.hexdigest())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    def test_a_seed_repeats_a_report(self):
        first = report_of(make(), "f1", rng=None, gaps=[0.1])
        assert report_of(make(), "f1", rng=first.seed, gaps=[0.1]).to_dict() == first.to_dict()
        other = report_of(make(), "f1", rng=None, random_state=5)
        assert other.to_dict() == report_of(make(), "f1", rng=5).to_dict()
        generator = np.random.default_rng(1)
        seeds = {report_of(make(), "f1", rng=generator).seed for _ in range(3)}
        assert len(seeds) == 3

    def test_gaps_do_not_change_the_false_alarms(self):
        for metric in ("f1", "auc"):
            plain = report_of(make(), metric)
            assert report_of(make(), metric, gaps=[0.1]).false_alarms == plain.false_alarms

    def test_power_grows_with_the_gap_on_both_sides(self):
        report = report_of(
            make(9, 400), "f1", gaps=[-0.3, -0.12, 0.02, 0.12, 0.3], n_audits=150, n_resamples=99
        )
        far_below, below, near, above, far = (rate.rejected for rate in report.power)
        assert far > above > near
        assert far_below > below > near
        assert above == pytest.approx(below, abs=0.25)

    def test_missing_groups_and_groups_left_out(self):
        y_true, y_pred, score, group = make(10, 400)
        missing = np.where(np.arange(400) % 10 == 0, None, group)
        for metric in ("f1", "mse"):
            report = report_of((y_true, y_pred, score, missing), metric, gaps=[0.05])
            assert sum(report.group_sizes.values()) == 360
        three = np.where(np.arange(400) % 4 == 0, "z", group)
        for metric in ("f1", "mse"):
            report = report_of((y_true, y_pred, score, three), metric, groups=["b", "a"])
            assert list(report.group_sizes) == ["b", "a"]
            assert sum(report.group_sizes.values()) == 300

    def test_progress_counts_audits(self):
        seen = []
        report_of(make(), "f1", gaps=[0.1], progress=lambda done, total: seen.append((done, total)))
        done = [i for i, total in seen if total == 80]
        assert len(done) == len(seen)
        assert done == sorted(done)
        assert {40, 80} <= set(done)
        assert max(done) == 80

    def test_progress_that_stops(self):
        def stop(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            report_of(make(), "f1", progress=stop)

    def test_inputs_are_left_alone(self):
        data = make()
        before = [column.copy() for column in data]
        for metric in ("f1", "auc", "mse"):
            report_of(data, metric, gaps=[0.05])
        assert all(np.array_equal(a, b) for a, b in zip(data, before, strict=True))


class TestCommand:
    def test_help(self):
        result = run("--help")
        assert result.exit_code == 0
        for word in ("--gap", "--null", "--n-audits", "--strata", "--json", "Exit code 1"):
            assert word in result.stdout

    def test_output_is_that_of_the_function(self, tmp_path, book):
        target = tmp_path / "out.json"
        result = run(
            book, *BY_SEX, "-m", "tpr", "-m", "f1", "--gap", "0.2", "--gap", "-0.1", "--json",
            target,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        expected = [
            fa.calibrate(
                "repaid", "approved", data=book, sensitive_features=["sex"], metric=metric,
                gaps=[0.2, -0.1], n_audits=20, n_resamples=49, rng=5,
            )
            for metric in ("tpr", "f1")
        ]  # fmt: skip
        assert strict_json(target.read_text()) == [report.to_dict() for report in expected]
        assert result.stdout == "".join(f"{report}\n" for report in expected) + "seed 5\n"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["loans.csv", "out.json"]

    @pytest.mark.parametrize(
        ("options", "arguments"),
        [
            (("--strata", "branch"), {"strata": ["branch"]}),
            (("--weight", "amount"), {"sample_weight": "amount"}),
            (("--confidence-level", "0.9"), {"confidence_level": 0.9}),
            (("--null", "weak"), {"null": "weak"}),
            (("-s", "age"), {"sensitive_features": ["sex", "age"]}),
            (("--threads", "2"), {}),
        ],
    )
    def test_options(self, options, arguments, tmp_path, book):
        target = tmp_path / "out.json"
        result = run(book, *BY_SEX, "-m", "f1", "--json", target, *options)
        assert result.exit_code == 0, result.output
        expected = fa.calibrate(
            "repaid", "approved", data=book, metric="f1", n_audits=20, n_resamples=49, rng=5,
            **{"sensitive_features": ["sex"], **arguments},
        )  # fmt: skip
        assert strict_json(target.read_text()) == [expected.to_dict()]

    def test_scores_and_clusters(self, tmp_path, book):
        target = tmp_path / "out.json"
        result = run(
            book, "--y-true", "repaid", "--y-score", "score", "-s", "team", "--clusters", "person",
            "-m", "auc", "--gap", "0.1", "--json", target, *SMALL,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        expected = fa.calibrate(
            "repaid", y_score="score", data=book, sensitive_features=["team"], clusters=["person"],
            metric="auc", gaps=[0.1], n_audits=20, n_resamples=49, rng=5,
        )  # fmt: skip
        assert strict_json(target.read_text()) == [expected.to_dict()]

    def test_positive_label(self, tmp_path, book):
        target = tmp_path / "out.json"
        result = run(
            book, "--y-pred", "verdict", "--pos-label", "yes", "-s", "sex", "-m",
            "selection_rate", "--json", target, *SMALL,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        plain = run(book, "--y-pred", "approved", "-s", "sex", "-m", "selection_rate", *SMALL)
        assert result.stdout == plain.stdout

    def test_the_seed_that_is_printed_repeats_the_run(self, book):
        arguments = [name for name in BY_SEX if name not in ("--seed", "5")]
        first = run(book, *arguments, "-m", "f1", "--gap", "0.1")
        seed = re.search(r"^seed (\d+)$", first.stdout, re.MULTILINE).group(1)
        again = run(book, *arguments, "-m", "f1", "--gap", "0.1", "--seed", seed)
        assert again.stdout == first.stdout

    def test_exit_code_of_false_alarms(self, tmp_path):
        """Ten audits reject four times by chance with some seed: exit code 1, files written."""
        rng = np.random.default_rng(0)
        score = rng.random(40)
        path, target = tmp_path / "few.csv", tmp_path / "out.json"
        group = np.repeat(["a", "b"], 20)
        pl.DataFrame({"score": score, "group": group}).write_csv(path)
        options = {"metric": "mean_score", "n_audits": 10, "n_resamples": 99}
        seed = next(
            seed
            for seed in range(5_000)
            if not fa.calibrate(
                y_score="score", sensitive_features=["group"],
                data=pl.DataFrame({"score": score, "group": group}), rng=seed, **options,
            ).holds
        )  # fmt: skip
        small = ("--n-audits", "10", "--n-resamples", "99", "--seed", seed)
        result = run(
            path, "--y-score", "score", "-s", "group", "-m", "mean_score", "--json", target, *small
        )
        assert result.exit_code == 1
        assert "MISSES its level of 5 %" in result.stdout
        content = strict_json(target.read_text())
        assert content[0]["false_alarms"]["rejected"] >= 0.4
        # One report among several is enough.
        both = run(
            path, "--y-score", "score", "-s", "group", "-m", "mean_score", "-m", "mean_score",
            *small,
        )  # fmt: skip
        assert both.exit_code == 1
        assert both.stdout.count("MISSES") == 2

    def test_json_keeps_the_old_file_until_all_is_done(self, tmp_path, book):
        target = tmp_path / "out.json"
        target.write_text(OLD)
        assert run(book, *BY_SEX, "-m", "f1", "--json", target).exit_code == 0
        assert strict_json(target.read_text())[0]["kind"] == "CalibrationReport"


@pytest.mark.calibration
class TestCalibration:
    """Power of `calibrate` within 0.05 of a direct simulation; false alarms in a binomial band."""

    N = 1_500

    def direct(self, audit, metric):
        rng = np.random.default_rng(1)
        return np.mean(
            [
                fa.permutation_test(
                    rng=rng, metric=metric, n_resamples=399, interval="delta", **audit(rng)
                ).pvalue
                <= 0.05
                for _ in range(self.N)
            ]
        )

    def measured(self, metric, gap, **columns):
        report = fa.calibrate(
            metric=metric, gaps=[gap, gap / 2], n_audits=self.N, n_resamples=399, rng=1, **columns
        )
        return [rate.rejected for rate in report.power]

    def check(self, metric, gap, columns, audit):
        direct = self.direct(audit, metric)
        measured, half = self.measured(metric, gap, **columns)
        assert 0.2 < direct < 0.95
        assert measured == pytest.approx(direct, abs=0.05)
        assert abs(half - direct) > 0.05  # a gap of the wrong size fails the same check

    def test_selection_rate(self):
        n = (250, 350)
        group = np.repeat(["a", "b"], n)
        columns = {"y_pred": np.tile([1, 1, 0, 0, 0], 120), "sensitive_features": group}
        # Odds of one group: the others carry the rest, 0.4 on average.
        rate = np.repeat([0.4 + 0.1 * 350 / 600, 0.4 - 0.1 * 250 / 600], n)

        def audit(rng):
            return {
                "y_pred": (rng.random(600) < rate).astype(int),
                "sensitive_features": group,
            }

        self.check("selection_rate", 0.1, columns, audit)

    def test_true_positive_rate(self):
        n = (400, 500)
        group = np.repeat(["a", "b"], n)
        y_true = np.tile([1, 1, 0], 300)
        y_pred = (np.random.default_rng(0).permutation(900) % 10 < 7).astype(int)
        rate = y_pred[y_true == 1].mean()
        shifted = np.repeat([rate - 0.1 * 5 / 9, rate + 0.1 * 4 / 9], n)

        def audit(rng):
            return {
                "y_true": y_true,
                "y_pred": (rng.random(900) < shifted).astype(int),
                "sensitive_features": group,
            }

        columns = {"y_true": y_true, "y_pred": y_pred, "sensitive_features": group}
        self.check("tpr", -0.1, columns, audit)

    def test_auc(self):
        group = np.repeat(["a", "b"], 300)
        y_true = np.tile([1, 1, 0, 0, 0], 120)
        score = y_true + np.random.default_rng(1).standard_normal(600)
        middle = rows.auc(y_true, score)
        shift = np.repeat([math.sqrt(2) * stats.norm.ppf(middle + s * 0.045) for s in (1, -1)], 300)

        def audit(rng):
            return {
                "y_true": y_true,
                "y_score": shift * y_true + rng.standard_normal(600),
                "sensitive_features": group,
            }

        columns = {"y_true": y_true, "y_score": score, "sensitive_features": group}
        self.check("auc", 0.09, columns, audit)

    def test_mean_score(self):
        group = np.repeat(["a", "b"], (200, 300))
        score = stats.norm.ppf((np.arange(500) + 0.5) / 500)
        moved = np.repeat([0.2, 0.0], (200, 300))

        def audit(rng):
            return {
                "y_score": rng.standard_normal(500) + moved,
                "sensitive_features": group,
            }

        columns = {
            "y_score": np.random.default_rng(0).permutation(score),
            "sensitive_features": group,
        }
        self.check("mean_score", 0.2, columns, audit)

    @pytest.mark.parametrize(
        ("metric", "design"),
        [
            ("mse", "plain"),
            ("mse", "weights"),
            ("mse", "clusters"),
            ("f1", "plain"),
            ("auc", "weights"),
        ],
    )
    def test_the_weak_null_is_that_of_the_reference(self, metric, design):
        """At 5 and 20 %, in the band of both simulations; groups that are not centred fail it."""
        problem, above, below, cells = linearised(metric, design)
        n_slow, n = 300, 4_000
        slow = slow_weak_null(above, below, cells, n_slow, np.random.default_rng(1))
        found = pvalues_of(problem, "weak", n, 199)
        moved = slow_weak_null(
            above + 0.8 * above.std() * (cells % 2), below, cells, 100, np.random.default_rng(1)
        )
        for level in (0.05, 0.2):
            rate = np.mean(found <= level)
            law = stats.binom(n_slow, rate)
            assert law.ppf(1e-6) <= np.sum(slow <= level) <= law.isf(1e-6)
            assert np.mean(moved <= level) > law.isf(1e-6) / n_slow

    @pytest.mark.parametrize("metric", ["f1", "auc", "mse"])
    @pytest.mark.parametrize("design", ["plain", "weights", "clusters", "strata"])
    def test_false_alarms(self, metric, design):
        y_true, y_pred, score, group = make(11, 240)
        options = {}
        if design == "weights":
            options["sample_weight"] = np.random.default_rng(0).exponential(size=240)
        if design == "clusters":
            options["clusters"] = np.arange(240) // 3
            group = np.where(options["clusters"] % 2 == 0, "a", "b")
        if design == "strata":
            options["strata"] = np.arange(240) % 3
        n = 2_000
        report = fa.calibrate(
            y_true, y_pred, y_score=score, sensitive_features=group, metric=metric, n_audits=n,
            n_resamples=199, rng=1, **options,
        )  # fmt: skip
        law = stats.binom(n, 0.05)
        low, high = law.ppf(1e-6) / n, law.isf(1e-6) / n
        assert low <= report.false_alarms.rejected <= high
        # Groups that are not equal, taken for equal ones, fail the same check.
        if design == "plain":
            broken = fa.calibrate(
                y_true, y_pred, y_score=score, sensitive_features=group, metric=metric,
                n_audits=200, n_resamples=199, rng=1, gaps=[0.06],
            )  # fmt: skip
            assert broken.power[0].rejected > high
