"""How often data are read, and how much of them: files once a call, streams without other columns.

A column that the call does not name may be broken: it is not looked at.
"""

import decimal

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.data import streams
from fairaudit_rs.data.frames import FrameSource

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
nw = pytest.importorskip("narwhals")
parquet = pytest.importorskip("pyarrow.parquet")

N = 600
FEW = {"n_resamples": 99, "n_threads": 1, "rng": 1}
RATE = {"y_true": "y", "y_pred": "d", "sensitive_features": "g", "metric": "tpr", **FEW}
MEAN = {"y_true": "y", "y_score": "s", "sensitive_features": "g", "metric": "brier", **FEW}


def columns():
    rng = np.random.default_rng(0)
    cluster = np.arange(N) // 3
    score = rng.random(N).round(3)
    return {
        "y": rng.integers(0, 2, N),
        "s": score,
        "d": (score > 0.5).astype(int),
        "g": np.array(["a", "b"])[cluster % 2],
        "w": rng.random(N) + 0.5,
        "c": cluster,
        # Some clusters have rows in both groups.
        "m": np.where(cluster < 20, cluster // 2, cluster),
        "other": rng.random(N),
    }


@pytest.fixture(params=["csv", "parquet", "tsv"])
def file(request, tmp_path):
    frame, path = pl.DataFrame(columns()), tmp_path / f"loans.{request.param}"
    if request.param == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if request.param == "tsv" else ",")
    return str(path)


@pytest.fixture
def passes(monkeypatch):
    """The passes over a file: columns brought to memory, and counting without that."""
    seen = []
    for name in ("in_memory", "count"):
        original = getattr(FrameSource, name)

        def watched(self, *given, _name=name, _original=original, **named):
            seen.append(_name)
            return _original(self, *given, **named)

        monkeypatch.setattr(FrameSource, name, watched)
    return seen


CALLS = {
    "a mean of rows": lambda data: fa.permutation_test(data=data, **MEAN),
    "weights": lambda data: fa.permutation_test(data=data, sample_weight="w", **RATE),
    "clusters": lambda data: fa.permutation_test(data=data, clusters="c", **RATE),
    "clusters in several groups": lambda data: fa.permutation_test(
        data=data, clusters="m", mixed_clusters="split", **RATE
    ),
    "clusters that are left out": lambda data: fa.permutation_test(
        data=data, clusters="m", mixed_clusters="drop", **RATE
    ),
    "the AUC": lambda data: fa.permutation_test(data=data, **{**MEAN, "metric": "auc"}),
    "the AUC of weighted rows": lambda data: fa.permutation_test(
        data=data, sample_weight="w", **{**MEAN, "metric": "auc"}
    ),
    "a correlation": lambda data: fa.permutation_test(
        data=data, **{**MEAN, "metric": "spearman", "sensitive_features": "other", "y_true": None}
    ),
    "intervals": lambda data: fa.intervals(data=data, sample_weight="w", **RATE),
    "equivalence": lambda data: fa.equivalence_test(data=data, margin=0.1, clusters="c", **RATE),
    "two models": lambda data: fa.compare_models(
        "y", first="s", second="other", data=data, sensitive_features="g", metric="brier", rng=1
    ),
}


class TestFiles:
    @pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
    def test_each_file_is_read_once(self, call, file, passes):
        call(file)
        assert passes == ["in_memory"]

    def test_rates_are_counted_in_one_pass(self, file, passes):
        fa.permutation_test(data=file, **RATE)
        assert passes == ["count"]

    @pytest.mark.parametrize("design", [{}, {"sample_weight": "w"}, {"clusters": "c"}])
    def test_audits_read_rows_once_however_many_metrics(self, design, file, passes):
        names = ["tpr", "fpr", "brier", "auc", "log_loss"]
        policy = fa.Policy(
            name="own", criteria=[fa.Criterion(metric=name, tolerance=0.1) for name in names]
        )
        given = {"y_true": "y", "y_pred": "d", "y_score": "s", "sensitive_features": "g"}
        fa.audit(data=file, policy=policy, **given, **design)
        assert passes.count("in_memory") == 1
        assert passes.count("count") <= 1

    def test_answers_are_those_of_arrays(self, file):
        own = columns()
        for design in ({}, {"sample_weight": "w"}, {"clusters": "c"}):
            arrays = {name: own[column] for name, column in design.items()}
            roles = {"y_true": own["y"], "y_pred": own["d"], "sensitive_features": own["g"]}
            of_arrays = fa.permutation_test(**roles, **arrays, metric="tpr", **FEW)
            of_file = fa.permutation_test(data=file, **design, **RATE)
            assert (of_file.pvalue, of_file.estimate) == (of_arrays.pvalue, of_arrays.estimate)


class Stream:
    """A table that hands itself over as an Arrow stream, and says how often."""

    def __init__(self, table):
        self.table, self.opened = table, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.opened += 1
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def widths(monkeypatch):
    """How many columns polars is given of tables of other packages."""
    seen, original = [], pl.DataFrame.__init__

    def watched(self, data=None, *given, **named):
        original(self, data, *given, **named)
        if type(data).__module__.partition(".")[0] in ("pyarrow", "narwhals") or isinstance(
            data, Stream
        ):
            seen.append(self.width)

    monkeypatch.setattr(pl.DataFrame, "__init__", watched)
    return seen


SHAPES = {
    "table": lambda table: table,
    "reader": lambda table: table.to_reader(max_chunksize=100),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "narwhals": lambda table: nw.from_native(table),
    "stream": Stream,
}


def broken():
    """Return columns that polars does not know, or whose values do not fit."""
    return {
        "interval": pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval()),
        "decimal of 256 bits": pa.array([decimal.Decimal(10) ** 50] * N, pa.decimal256(60, 0)),
        "run-end encoded": pa.RunEndEncodedArray.from_arrays([N], [1]),
    }


class TestStreams:
    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
    def test_columns_that_are_not_named_are_not_read(self, shape, widths):
        wide = pa.table({**columns(), **{f"x{i}": np.arange(N) for i in range(20)}})
        expected = fa.permutation_test(data=pl.DataFrame(columns()), **RATE)
        found = fa.permutation_test(data=shape(wide), **RATE)
        assert widths == [3]
        assert found.pvalue == expected.pvalue

    @pytest.mark.parametrize("kind", broken())
    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
    def test_other_columns_may_be_broken(self, shape, kind):
        table = pa.table({**columns(), "broken": broken()[kind]})
        for call in (RATE, MEAN):
            assert fa.permutation_test(data=shape(table), **call).pvalue > 0

    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
    def test_a_named_column_that_is_broken_is_an_error(self, shape):
        table = pa.table({**columns(), "g": broken()["interval"]})
        with pytest.raises(errors.DataError, match="cannot be read"):
            fa.permutation_test(data=shape(table), **RATE)

    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
    def test_wrong_names_are_refused_with_all_that_exist(self, shape):
        table = pa.table(columns())
        with pytest.raises(errors.ColumnError, match=r"'sex' does not exist; the data have: 'y'"):
            fa.permutation_test(data=shape(table), **{**RATE, "sensitive_features": "sex"})

    def test_names_that_occur_twice_matter_if_they_are_named(self):
        own = columns()
        names = [*own, "other"]
        table = pa.table([*map(pa.array, own.values()), pa.nulls(N)], names=names)
        assert fa.permutation_test(data=table, **RATE).pvalue > 0
        with pytest.raises(errors.DataError, match="'other' occurs twice"):
            fa.permutation_test(data=table, **{**RATE, "sensitive_features": "other"})

    def test_streams_are_opened_once_beside_arrays(self):
        stream = Stream(pa.table(columns()))
        given = {**RATE, "sensitive_features": columns()["g"]}
        assert fa.permutation_test(data=stream, **given).pvalue > 0
        assert stream.opened == 1
        reader = pa.table(columns()).to_reader()
        assert fa.permutation_test(data=reader, **given).pvalue > 0

    def test_one_column_may_have_two_roles(self):
        table = pa.table(columns())
        given = {**MEAN, "sensitive_features": "y", "metric": "mean_score", "y_true": None}
        beside = {**given, "sample_weight": np.ones(N)}
        for call in (given, beside, {**beside, "sensitive_features": "s", "metric": "spearman"}):
            call = {name: value for name, value in call.items() if name != "rng"}
            if call["metric"] == "spearman":
                del call["sample_weight"]
                call["y_true"] = columns()["y"]
            assert fa.permutation_test(data=table, **call, rng=1).pvalue > 0

    def test_without_pyarrow_all_columns_are_read(self, monkeypatch, widths):
        monkeypatch.setattr(streams, "find_spec", lambda name: None)
        assert fa.permutation_test(data=Stream(pa.table(columns())), **RATE).pvalue > 0
        assert widths == [len(columns())]

    def test_ordered_categories_keep_their_order(self):
        own = columns()
        labels = pa.array(["low", "high"])
        codes = pa.array((np.arange(N) // 3 % 2).astype(np.int8))
        own["g"] = pa.DictionaryArray.from_arrays(codes, labels, ordered=True)
        cells = fa.tabulate(pa.table(own), y_true="y", sensitive_features="g")
        assert [group[0] for group in cells.groups] == ["low", "high"]


class TestOtherColumns:
    """Files and frames with a column that cannot be read, which the call does not name."""

    def check(self, data):
        for call in (RATE, MEAN):
            assert fa.permutation_test(data=data, **call).pvalue > 0

    @pytest.mark.parametrize("ending", ["csv", "tsv", "blanks.csv", "csv.gz"])
    def test_text_that_does_not_fit_its_column(self, ending, tmp_path, monkeypatch):
        many = pl.concat([pl.DataFrame(columns())] * 20)
        odd = pl.int_range(pl.len()) == 11_000
        frame = many.with_columns(
            pl.when(odd).then(pl.lit("oops")).otherwise(pl.lit("7")).alias("broken")
        )
        name = " broken" if ending == "blanks.csv" else "broken"
        text = frame.rename({"broken": name}).write_csv(separator="\t" if ending == "tsv" else ",")
        path = tmp_path / f"loans.{ending}"
        if ending == "csv.gz":
            import gzip

            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        self.check(str(path))
        with pytest.raises(errors.DataError, match="broken"):
            fa.permutation_test(data=str(path), **{**RATE, "sensitive_features": "broken"})

    def test_parquet_with_types_that_polars_does_not_know(self, tmp_path):
        lists = pa.array([[1]] * N, pa.list_view(pa.int64()))
        path = tmp_path / "loans.parquet"
        parquet.write_table(pa.table({**columns(), "broken": lists}), path)
        self.check(str(path))
        with pytest.raises(errors.ColumnError, match="'sex' does not exist"):
            fa.permutation_test(data=str(path), **{**RATE, "sensitive_features": "sex"})

    def test_frames_with_odd_columns(self):
        own = columns()
        frame = pl.DataFrame(own)
        self.check(frame.with_columns(broken=pl.Series([object()] * N, dtype=pl.Object)))
        self.check(frame.with_columns(broken=pl.Series([[1]] * N)))
        self.check(frame.lazy().with_columns(broken=pl.col("g").cast(pl.Int64)))
        self.check(pd.DataFrame(own).assign(broken=[{1: 2}] * (N - 1) + ["a"]))
        self.check({**own, "broken": object()})
