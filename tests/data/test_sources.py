"""Sources: cells as one of them, and a table that is read once for all that is asked of it."""

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors, metrics
from fairaudit_rs.data import arrays
from fairaudit_rs.data.arrays import ArraySource
from fairaudit_rs.data.frames import FrameSource
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.permutation.comparison import ComparisonSettings, compare_groups
from fairaudit_rs.permutation.question import prepare_question

N = 900
ATTRIBUTES = ("sex", "region", "age")
METRICS = (
    "selection_rate",
    "base_rate",
    "tpr",
    "fpr",
    "ppv",
    "accuracy",
    "f1",
    "mcc",
    "equalized_odds",
    "balanced_accuracy",
)
OF_ROWS = ("auc", "mean_squared_error", "calibration_error", "log_loss")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    label = (rng.random(N) < 0.4).astype(int)
    score = np.clip(0.3 * label + 0.6 * rng.random(N), 0.01, 0.99)
    return pl.DataFrame(
        {
            "label": label,
            "decision": (score > 0.5).astype(int),
            "score": score,
            "sex": rng.choice(["f", "m", None], N, p=[0.45, 0.5, 0.05]),
            "region": rng.choice(["n", "e", "s"], N),
            "age": rng.integers(2, 5, N) * 10,
        }
    )


@pytest.fixture(params=["csv", "parquet", "frame", "arrays"])
def data(request, frame, tmp_path):
    if request.param == "csv":
        frame.write_csv(tmp_path / "loans.csv")
        return str(tmp_path / "loans.csv")
    if request.param == "parquet":
        frame.write_parquet(tmp_path / "loans.parquet")
        return str(tmp_path / "loans.parquet")
    return frame if request.param == "frame" else frame.to_pandas()


NAMES = {"y_true": "label", "y_pred": "decision", "y_score": "score"}
SETTINGS = ComparisonSettings(
    alternative="two-sided",
    adjust="holm",
    engine="auto",
    interval="auto",
    n_resamples=99,
    adaptive=False,
    level=0.95,
    n_threads=1,
    progress=None,
    seed=7,
)


@pytest.fixture
def reads(monkeypatch):
    """Names of the passes over the data."""
    seen = []

    def watch(owner, name, word):
        original = getattr(owner, name)

        def watched(*given, **named):
            seen.append("cells of rows" if named.get("cells") else word)
            return original(*given, **named)

        monkeypatch.setattr(owner, name, watched)

    watch(FrameSource, "count", "group-by of a frame")
    watch(FrameSource, "in_memory", "columns of a frame")
    watch(_native, "tabulate", "tabulation of arrays")
    watch(ArraySource, "_encode", "encoding of arrays")
    watch(arrays, "count_not_finite", "numbers of a column")
    return seen


def asked_together(data, names, needs):
    given = {name: NAMES[name] for name in needs}
    table = AuditTable.make(data=data, **given, sensitive_features=list(ATTRIBUTES)).with_cache()
    found = {}
    for attribute in ATTRIBUTES:
        part = table.by(attribute)
        for name in names:
            question = prepare_question(part, metrics.get(name), seed=7, n_threads=1)
            found[attribute, name] = compare_groups(question, SETTINGS)
    return found


def asked_alone(data, names):
    return {
        (attribute, name): fa.permutation_test(
            **{role: NAMES[role] for role in metrics.get(name).needs},
            data=data,
            sensitive_features=attribute,
            metric=name,
            n_resamples=99,
            n_threads=1,
            rng=7,
        )
        for attribute in ATTRIBUTES
        for name in names
    }


class TestShared:
    def test_ten_metrics_of_three_attributes_read_once(self, data, reads):
        together = asked_together(data, METRICS, ("y_true", "y_pred"))
        assert len(reads) == 1
        alone = asked_alone(data, METRICS)
        assert len(together) == 30
        assert together == alone

    def test_metrics_of_rows_share_columns_and_codes(self, data, reads):
        together = asked_together(data, OF_ROWS, ("y_true", "y_score"))
        # Columns once, and codes of all attributes and labels at once (the AUC asks for attribute
        # and label, means for the attribute); the score as numbers, and labels of means.
        assert reads.count("columns of a frame") <= 1
        assert reads.count("encoding of arrays") == 1
        assert reads.count("numbers of a column") == 2
        assert together == asked_alone(data, OF_ROWS)

    def test_many_combinations_are_encoded_apart(self, data, reads, monkeypatch):
        monkeypatch.setattr(arrays, "MAX_JOINT_CELLS", 3)
        together = asked_together(data, OF_ROWS, ("y_true", "y_score"))
        # Once together, in vain.
        assert reads.count("encoding of arrays") == 1 + 2 * len(ATTRIBUTES)
        assert together == asked_alone(data, OF_ROWS)

    def test_a_column_of_too_many_values_is_told_to_who_asks(self, frame):
        wide = frame.with_columns(pl.Series("id", np.arange(N) + 0.5))
        wide = pl.concat([wide] * 2).with_columns(pl.Series("id", np.arange(2 * N) + 0.5))
        table = AuditTable.make(
            data=wide, y_pred="decision", sensitive_features=["sex", "id"]
        ).with_cache()
        question = prepare_question(table.by("sex"), metrics.get("selection_rate"))
        assert question.problem.keys == (("f",), ("m",))
        for _ in range(2):
            with pytest.raises(errors.TooManyValuesError, match="sensitive_features 'id' has more"):
                prepare_question(table.by("id"), metrics.get("selection_rate"))

    def test_an_attribute_that_is_not_there(self, frame):
        table = AuditTable.make(
            data=frame, y_pred="decision", sensitive_features=["sex"]
        ).with_cache()
        with pytest.raises(errors.ColumnError, match="'region' does not exist; the sensitive"):
            table.by("region")


class TestCells:
    @pytest.mark.parametrize("metric", ["selection_rate", "tpr", "f1", "auc", "calibration_error"])
    @pytest.mark.parametrize("attribute", ["sex", ["sex", "region"]])
    def test_they_answer_as_their_rows_do(self, frame, metric, attribute):
        """With columns that a metric does not need, bit for bit."""
        roles = dict(NAMES)
        cells = fa.tabulate(frame, **roles, sensitive_features=["sex", "region"])
        needed = {role: NAMES[role] for role in metrics.get(metric).needs}
        options = {"score_bins": 100} if "y_score" in needed else {}
        of_rows = fa.permutation_test(
            **needed, data=frame, sensitive_features=attribute, metric=metric, rng=1,
            n_resamples=99, **options,
        )  # fmt: skip
        of_cells = fa.permutation_test(
            data=cells, sensitive_features=attribute, metric=metric, rng=1, n_resamples=99
        )
        assert of_cells == of_rows

    @pytest.mark.parametrize("metric", ["tpr", "selection_rate", "f1"])
    def test_their_labels_are_never_coded_again(self, frame, metric):
        cells = fa.tabulate(frame, **NAMES, sensitive_features=["sex", "region"])
        for wanted in ("sex", ["sex", "region"]):
            plain, named = (
                fa.permutation_test(
                    data=cells,
                    sensitive_features=wanted,
                    metric=metric,
                    rng=1,
                    n_resamples=9,
                    **given,
                )
                for given in ({}, {"pos_label": 0})
            )
            assert named == plain

    def test_whoever_needs_rows_is_told(self, frame):
        cells = fa.tabulate(frame, **NAMES, sensitive_features="sex")
        with pytest.raises(errors.ArgumentTypeError, match="sample_weight needs the rows"):
            fa.permutation_test(data=cells, metric="tpr", sample_weight="age")
        with pytest.raises(errors.ArgumentTypeError, match="influence_audit needs the rows"):
            fa.influence_audit(
                "label", "decision", data=cells, sensitive_features="sex", target="f",
                features=["age"],
            )  # fmt: skip
        with pytest.raises(errors.ArgumentTypeError, match="tabulated already"):
            fa.tabulate(cells, sensitive_features="sex")
