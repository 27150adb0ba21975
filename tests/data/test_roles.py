"""Roles: arrays beside data, the index of pandas, clusters in several groups."""

import io
import re

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

N = 300
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, N)
P = RNG.integers(0, 2, N)
SCORE = RNG.random(N)
GROUP = RNG.choice(["a", "b", "c"], N)
REGION = RNG.choice(["n", "s"], N)
FRAME = pl.DataFrame({"y": Y, "p": P, "score": SCORE, "g": GROUP, "r": REGION})
ASKED = {"metric": "tpr", "rng": 1}
MEMORY = {
    "polars": FRAME,
    "pandas": FRAME.to_pandas(),
    "arrow": FRAME.to_arrow(),
    "mapping": FRAME.to_dict(as_series=False),
}

# -- arrays beside data ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MEMORY)
@pytest.mark.parametrize(
    "beside",
    [
        {"y_pred": P},
        {"y_true": Y.tolist(), "y_pred": pl.Series(P)},
        {"sensitive_features": GROUP},
        {"sensitive_features": {"g": GROUP}},
        {"sensitive_features": [pl.Series("g", GROUP)]},
        {"strata": REGION},
        {"strata": REGION.tolist(), "sensitive_features": GROUP.tolist()},
        {"y_true": Y, "y_pred": P, "sensitive_features": GROUP, "strata": REGION},
    ],
    ids=lambda beside: "+".join(beside),
)
def test_arrays_beside_data_are_columns(kind, beside):
    names = {"y_true": "y", "y_pred": "p", "sensitive_features": "g", "strata": "r"}
    expected = fa.permutation_test(data=FRAME, **names, **ASKED)
    found = fa.permutation_test(data=MEMORY[kind], **names | beside, **ASKED)
    assert (found.estimate, found.pvalue) == (expected.estimate, expected.pvalue)
    assert found.group_sizes == expected.group_sizes


def test_arrays_beside_data_in_other_lenses():
    scores = {"y_score": "score", "sensitive_features": "g"}
    arrays = {"y_score": SCORE, "sensitive_features": "g"}
    for lens, given in (
        (fa.projection_test, {"y_true": "y"}),
        (fa.extreme_test, {"counterfactual_score": "score", "horizon": 100}),
    ):
        if lens is fa.extreme_test:
            given = given | {"counterfactual_score": "p"}
        named = lens(data=FRAME, **scores, **given)
        assert lens(data=FRAME, **arrays, **given).pvalue == named.pvalue
    cells = fa.tabulate(FRAME, y_true=Y, sensitive_features="g", counts=np.full(N, 2))
    assert cells.n_rows == 2 * N


@pytest.mark.parametrize("kind", MEMORY)
def test_lengths_beside_data(kind):
    with pytest.raises(errors.DataError, match="differ in length: data 300, y_pred 299"):
        fa.tabulate(MEMORY[kind], y_true="y", y_pred=P[1:], sensitive_features="g")


def test_arrays_beside_what_is_not_in_memory(tmp_path):
    path = tmp_path / "loans.csv"
    FRAME.write_csv(path)
    places = [(str(path), "loans.csv'"), (path, "the file '"), ([path, path], "files"),
              (FRAME.lazy(), "a LazyFrame")]  # fmt: skip
    for data, where in places:
        message = rf"y_pred is a ndarray beside data=.*{re.escape(where)}.*, whose rows are not in"
        with pytest.raises(errors.ArgumentTypeError, match=message):
            fa.tabulate(data, y_true="y", y_pred=P, sensitive_features="g")
    with pytest.raises(errors.ArgumentTypeError, match="y_pred cannot be combined with data="):
        fa.permutation_test(
            data=fa.tabulate(FRAME, y_true="y", sensitive_features="g"), y_pred=P, metric="tpr"
        )


@pytest.mark.parametrize("value", [3, 2.5, object()])
def test_what_is_neither_a_name_nor_an_array(value):
    message = "y_true is a .*; with data= pass the name of a column, or an array with one"
    with pytest.raises(errors.ArgumentTypeError, match=message):
        fa.tabulate(FRAME, y_true=value, sensitive_features="g")


# -- the index of pandas -----------------------------------------------------------------------


def indexed(values, index):
    return pd.Series(values, index=index)


ORDER = np.random.default_rng(2).permutation(N)


@pytest.mark.parametrize(
    ("index", "how"),
    [
        (pd.RangeIndex(N), "the same labels in another order"),
        (pd.Index([f"row {i}" for i in range(N)]), "other labels"),
        (pd.RangeIndex(1, N + 1), "other labels"),
    ],
)
def test_series_whose_indices_differ_are_refused(index, how):
    message = (
        rf"the indices of y_true and y_pred differ: \({ORDER[0]}, {ORDER[1]}, {ORDER[2]}, "
        rf"\.\.\.\) and \(.*\), {how}. Bring both .*\.reindex\(\.\.\.\).*\.to_numpy\(\)"
    )
    y, p = indexed(Y, ORDER), indexed(P, index)
    with pytest.raises(errors.DataError, match=message):
        fa.tabulate(y_true=y, y_pred=p, sensitive_features=GROUP)
    fa.tabulate(y_true=y, y_pred=p.to_numpy(), sensitive_features=GROUP)


@pytest.mark.parametrize(
    "features",
    [
        indexed(GROUP, range(1, N + 1)),
        {"g": indexed(GROUP, range(1, N + 1))},
        [indexed(GROUP, range(1, N + 1))],
        pd.DataFrame({"g": GROUP}, index=range(1, N + 1)),
    ],
    ids=["series", "mapping", "list", "frame"],
)
def test_indices_of_groups_are_looked_at(features):
    with pytest.raises(errors.DataError, match=r"the indices of y_true and sensitive_features"):
        fa.tabulate(y_true=pd.Series(Y), sensitive_features=features)


def test_series_of_a_mapping_are_of_the_same_rows():
    data = {"y": pd.Series(Y), "p": indexed(P, ORDER), "g": GROUP}
    with pytest.raises(errors.DataError, match="the indices of data 'y' and data 'p' differ"):
        fa.tabulate(data, y_true="y", y_pred="p", sensitive_features="g")
    data["y"] = indexed(Y, ORDER)
    assert fa.tabulate(data, y_true="y", y_pred="p", sensitive_features="g").n_rows == N


def test_series_beside_data_have_its_index():
    data = FRAME.to_pandas().set_index(ORDER)
    with pytest.raises(errors.DataError, match="the indices of data and y_pred differ"):
        fa.tabulate(data, y_true="y", y_pred=pd.Series(P), sensitive_features="g")
    found = fa.tabulate(data, y_true="y", y_pred=indexed(P, ORDER), sensitive_features="g")
    assert found == fa.tabulate(FRAME, y_true="y", y_pred="p", sensitive_features="g")


def test_indices_of_features_are_looked_at():
    X = pd.DataFrame({"x": SCORE, "z": P}, index=ORDER)
    model, metric = fa.LinearModel([1.0, 1.0]), fa.FairMetric.directions([[0.0, 1.0]])
    with pytest.raises(errors.DataError, match="the indices of X and y differ"):
        fa.ecd_search(object, X, pd.Series(Y), attribute="z", space={"a": [1, 2]})
    with pytest.raises(errors.DataError, match="the indices of X and y differ"):
        fa.individual_test(model, X, pd.Series(Y), fair_metric=metric)
    with pytest.raises(errors.DataError, match="the indices of the labels and scores and X differ"):
        fa.influence_audit(
            None, pd.Series(P), X=X, sensitive_features=GROUP, target="a", metric="selection_rate"
        )
    with pytest.raises(errors.DataError, match="the indices of X and sensitive_features differ"):
        fa.extreme_test(model, X, attribute="z", sensitive_features=pd.Series(GROUP), upper=None)


LABELS = {
    "numbers": ORDER,
    "text": [f"person {i}" for i in ORDER],
    "times": pd.date_range("2024-01-01", periods=N)[ORDER],
    "levels": pd.MultiIndex.from_arrays([REGION, ORDER]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_moves_are_named_by_the_index(kind):
    data = FRAME.to_pandas().set_index(pd.Index(LABELS[kind]))
    given = {"y_true": "y", "y_score": "score", "sensitive_features": "g"}
    moves = fa.projection_test(data=data, **given).moves
    plain = fa.projection_test(data=FRAME, **given).moves
    assert len(moves) > 0
    assert moves.row.tolist() == plain.row.tolist()
    assert plain.index is None
    assert moves != plain
    wanted = [data.index[row] for row in moves.row]
    if kind == "levels":
        wanted = [f"{region} & {number}" for region, number in wanted]
    assert moves.index.tolist() == (list(map(str, wanted)) if kind == "times" else wanted)
    assert moves.to_frame()["index"].to_list() == moves.index.tolist()
    assert "index" not in plain.to_frame().columns


def test_moves_of_arrays_are_named_by_the_index_too():
    moves = fa.projection_test(
        indexed(Y, ORDER), y_score=indexed(SCORE, ORDER), sensitive_features=GROUP
    ).moves
    assert moves.index.tolist() == ORDER[moves.row].tolist()
    default = fa.projection_test(pd.Series(Y), y_score=SCORE, sensitive_features=GROUP).moves
    assert default.index is None


def test_unfair_examples_are_named_by_the_index():
    X = pd.DataFrame({"x": SCORE - 0.5, "z": P}, index=ORDER)
    model, metric = fa.LinearModel([1.0, 1.0]), fa.FairMetric.directions([[0.0, 1.0]])
    result = fa.individual_test(model, X, indexed(Y, ORDER), fair_metric=metric, n_steps=5)
    examples = result.unfair_examples(4)
    assert examples.index.tolist() == ORDER[examples.row].tolist()
    assert examples.to_frame()["index"].to_list() == examples.index.tolist()
    plain = fa.individual_test(model, X.to_numpy(), Y, fair_metric=metric, n_steps=5)
    assert plain.unfair_examples(4).index is None
    assert plain.estimate == result.estimate


def test_results_with_an_index_are_pickled():
    import pickle

    data = FRAME.to_pandas().set_index(ORDER)
    given = {"y_true": "y", "y_score": "score", "sensitive_features": "g"}
    moves = fa.projection_test(data=data, **given).moves
    assert pickle.load(io.BytesIO(pickle.dumps(moves))) == moves


# -- clusters in several groups ----------------------------------------------------------------

PERSON = np.arange(N) // 3
#: The group of each person, but of two of them.
OF_PERSON = np.array(["a", "b", "c"])[PERSON % 3]
OF_PERSON[[3, 30]] = ["c", "a"]
CLUSTERED = {"y_score": SCORE, "metric": "mean_prediction", "rng": 1, "n_resamples": 99}


def test_a_cluster_in_two_groups_is_named():
    message = re.escape(
        "2 of 100 clusters have rows in more than one group: cluster 'p1' has rows in 'b', 'c'. "
        "Pass mixed_clusters='split' (a cluster for each group) or 'drop' (without these rows)."
    )
    names = [f"p{person}" for person in PERSON]
    with pytest.raises(errors.DataError, match=message):
        fa.permutation_test(**CLUSTERED, sensitive_features=OF_PERSON, clusters=names)
    with pytest.raises(errors.DataError, match=re.escape("cluster 1 & 's' has rows in 'b', 'c'")):
        fa.permutation_test(
            **CLUSTERED, sensitive_features=OF_PERSON, clusters=[PERSON, np.full(N, "s")]
        )


def test_groups_that_are_not_compared_do_not_count():
    # Person 10 has rows in a and b, person 1 in b and c.
    given = {**CLUSTERED, "sensitive_features": OF_PERSON, "clusters": PERSON}
    with pytest.raises(errors.DataError, match=r"1 of 67 clusters .* cluster 10 has rows in 'a',"):
        fa.permutation_test(**given, groups=["a", "b"])
    alone = fa.permutation_test(**given, groups=["b", "c"], mixed_clusters="drop")
    assert alone.warnings[0] == (
        "1 of 66 clusters have rows in more than one group and are excluded, with their 3 rows"
    )


FUNCTIONS = {
    "permutation_test": (fa.permutation_test, {}),
    "intervals": (fa.intervals, {}),
    "equivalence_test": (fa.equivalence_test, {"margin": 0.5}),
    "calibrate": (fa.calibrate, {"n_audits": 20}),
    "minimum_detectable_gap": (fa.minimum_detectable_gap, {}),
    "sample_size": (lambda **given: fa.sample_size(0.1, **given), {}),
}


def shown(result):
    """A result without what it says about the clusters."""
    content = result.to_dict()
    return {
        name: value
        for name, value in content.items()
        if name not in ("warnings", "notes", "summary")
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_mixed_clusters_are_split_or_dropped(name):
    function, more = FUNCTIONS[name]
    given = {**CLUSTERED, **more}
    if name in ("minimum_detectable_gap", "sample_size"):
        given = {key: given[key] for key in ("y_score", "metric")}
    pieces = [f"{person:03d}{group}" for person, group in zip(PERSON, OF_PERSON, strict=True)]
    of_rows = {"sensitive_features": OF_PERSON, "clusters": PERSON}
    split = function(**given, **of_rows, mixed_clusters="split")
    other = function(**given, sensitive_features=OF_PERSON, clusters=pieces)
    assert shown(split) == shown(other)
    text = "2 of 100 clusters have rows in more than one group and are "
    assert f"{text}split into a cluster for each group (6 rows): the pieces of one" in str(split)
    stay = ~np.isin(PERSON, [1, 10])
    drop = function(**given, **of_rows, mixed_clusters="drop")
    kept = {key: value[stay] if np.ndim(value) else value for key, value in given.items()}
    other = function(**kept, sensitive_features=OF_PERSON[stay], clusters=PERSON[stay])
    assert shown(drop) == shown(other)
    assert f"{text}excluded, with their 6 rows" in str(drop)
    # Where no cluster is in two groups nothing is said.
    whole = np.array(["a", "b", "c"])[PERSON % 3]
    plain = function(**given, sensitive_features=whole, clusters=PERSON, mixed_clusters="split")
    assert "clusters have rows in more than one group" not in str(plain)


def test_clusters_of_data_are_named_and_split():
    data = FRAME.with_columns(person=PERSON, group=OF_PERSON)
    given = {"y_score": "score", "sensitive_features": "group", "clusters": "person"}
    asked = {"metric": "mean_prediction", "rng": 1, "n_resamples": 99}
    with pytest.raises(errors.DataError, match="cluster 1 has rows in 'b', 'c'"):
        fa.permutation_test(data=data, **given, **asked)
    found = fa.permutation_test(data=data.lazy(), **given, **asked, mixed_clusters="split")
    arrays = {"y_score": SCORE, "sensitive_features": OF_PERSON, "clusters": PERSON}
    assert found.pvalue == fa.permutation_test(**arrays, **asked, mixed_clusters="split").pvalue


def test_mixed_clusters_without_clusters():
    with pytest.raises(errors.ArgumentTypeError, match="mixed_clusters needs clusters too"):
        fa.permutation_test(P, P, sensitive_features=GROUP, metric="tpr", mixed_clusters="split")


def test_a_group_that_is_dropped_is_gone():
    group = np.where(PERSON < 50, "a", "b")
    group[:3] = ["c", "c", "a"]
    given = {**CLUSTERED, "sensitive_features": group, "clusters": PERSON}
    found = fa.permutation_test(**given, mixed_clusters="drop")
    assert list(found.group_sizes) == ["a", "b"]


@pytest.mark.parametrize(("side", "few", "many"), [(1, 0.0, 0.01), (-1, 0.08, 0.2)])
def test_pieces_of_a_person_count_as_independent(side, few, many):
    """Shared effects of a person make the test conservative or liberal, by side."""
    rng = np.random.default_rng(1)
    n, n_audits = 100, 300
    person, group = np.repeat(np.arange(n), 4), np.tile([0, 0, 1, 1], n)
    rejected = 0
    for audit in range(n_audits):
        shared = np.repeat(rng.normal(size=n), 4) * np.where(group == 1, side, 1)
        found = fa.permutation_test(
            y_score=shared + rng.normal(size=4 * n),
            sensitive_features=group,
            metric="mean_prediction",
            clusters=person,
            mixed_clusters="split",
            interval="delta",
            n_resamples=199,
            rng=audit,
        )
        rejected += found.pvalue <= 0.05
    assert few <= rejected / n_audits <= many


def test_a_group_whose_clusters_are_all_dropped():
    """Audits named it, and then ended with an error: "groups names 'z', which is no group"."""
    rng = np.random.default_rng(1)
    group, cluster = np.repeat(["a", "b"], 300).astype(object), np.arange(600) // 3
    group[np.arange(0, 120, 3)] = "z"
    given = {
        "y_pred": (rng.random(600) < 0.5).astype(int), "sensitive_features": {"g": group},
        "clusters": cluster, "mixed_clusters": "drop", "rng": 1, "n_resamples": 999,
    }  # fmt: skip
    why = "only rows in clusters of several groups, which are dropped"
    criterion = fa.Criterion(metric="selection_rate", tolerance=0.1)
    audit = fa.audit(**given, policy=fa.Policy(name="p", criteria=[criterion]))
    [question] = audit.questions
    excluded = [group for group in question.groups if not group.is_tested]
    assert [(group.group, group.reason) for group in excluded] == [("z", why)]
    assert question.coverage == 0.8
    with pytest.raises(errors.NotMeasurableError, match=f"group 'z' has {why}. Name the groups"):
        fa.permutation_test(**given, metric="selection_rate", groups=["a", "b", "z"])
    test = fa.permutation_test(**given, metric="selection_rate", undefined="skip")
    assert [left.group for left in test.left_out] == ["z"]
