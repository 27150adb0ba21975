"""The search for settings whose worst cases are alike across groups."""

import math
import pickle
import sys
from dataclasses import replace

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairaudit_rs as fa
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, DataError, NotMeasurableError
from fairaudit_rs.extremes import search as search_module
from fairaudit_rs.extremes.pairs import pair_ecds
from fairaudit_rs.extremes.question import ExtremeArguments
from fairaudit_rs.extremes.row_split import SearchLabels, deal_rows
from fairaudit_rs.extremes.search import ecd_search
from fairaudit_rs.extremes.search_result import PairEcd, worst_of
from fairaudit_rs.extremes.space import RandomSampler, read_space
from fairaudit_rs.report.words import number

from .designs import people


@pytest.fixture
def ecds(monkeypatch):
    """Puts another ECD into the search."""
    return lambda made: monkeypatch.setattr(search_module, "pair_ecds", made)


class Weighted:
    """Nothing is fitted: P = sigmoid(3 x + w man)."""

    def __init__(self, w, seen=None):
        self.w, self.seen = w, seen

    def fit(self, X, y):
        if self.seen is not None:
            self.seen.append((X, y))

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-3 * X.x - self.w * X.man))
        return np.column_stack([1 - p, p])


def toy(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"man": rng.integers(0, 2, n), "x": rng.normal(size=n)})
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * X.x - 2 * X.man))).to_numpy().astype(int)
    return X, y


TOY = toy()
SPACE = {"w": [0.0, 1.0, 2.0, 4.0]}


def dealt_rows(X, y, attribute, seed):
    """Rows of the parts of a search."""
    prepared = ExtremeArguments(X=X, attribute=attribute).prepared(1.0)
    return deal_rows(
        prepared, SearchLabels.from_values(y, prepared.feature_table, None), (0.5, 0.25, 0.25), seed
    )


def search(estimator=Weighted, X=TOY[0], y=TOY[1], **changed):
    arguments = {
        "attribute": "man",
        "space": SPACE,
        "horizon": 100,
        "rng": 1,
    }
    return ecd_search(estimator, X, y, **arguments | changed)


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"space": [1]}, ArgumentTypeError, "space is a list; accepted: a dict by the names"),
        ({"space": {}}, ArgumentError, "space is empty"),
        ({"space": {1: [2]}}, ArgumentTypeError, "space has the name 1; accepted: names"),
        ({"space": {"w": []}}, ArgumentError, r"space\['w'\] is an empty list"),
        ({"space": {"w": 3}}, ArgumentTypeError, r"space\['w'\] is 3; accepted: a list of values"),
        ({"space": {"w": (1,)}}, ArgumentError, r"space\['w'\] is \(1,\); accepted"),
        ({"space": {"w": (1, 2, "lin")}}, ArgumentError, r"space\['w'\] is \(1, 2, 'lin'\)"),
        ({"space": {"w": (2, 1)}}, ArgumentError, "accepted: low < high"),
        ({"space": {"w": (0, 1, "log")}}, ArgumentError, "accepted: 0 < low < high"),
        ({"space": {"w": (0, "1")}}, ArgumentTypeError, r"space\['w'\] is '1'"),
        ({"n_settings": 0}, ArgumentError, "n_settings is 0"),
        ({"horizon": 1}, ArgumentError, "horizon is 1; accepted: a whole number from 2"),
        ({"parts": (0.5, 0.5)}, ArgumentTypeError, "3 shares .*fit, selection, report"),
        ({"sampler": "grid"}, ArgumentError, "sampler is 'grid'; accepted: 'random', 'optuna'"),
        ({"accuracy_floor": 80}, ArgumentError, "accuracy_floor is 80; accepted: None, or from 0"),
        ({"accuracy_floor": "a"}, ArgumentTypeError, "accuracy_floor is 'a'"),
        ({"estimator": 3}, ArgumentTypeError, "estimator is a int; accepted: a scikit-learn"),
        ({"estimator": torch.nn.Linear(2, 1)}, ArgumentTypeError, "torch module, which has no set"),
        ({"estimator": lambda w: object()}, ArgumentTypeError, "makes a object, which has no fit"),
        ({"estimator": LogisticRegression()}, ArgumentError, "'w', which is not a parameter of Lo"),
        ({"train": 3}, ArgumentTypeError, "train is a int; accepted: a function of the model"),
        ({"n_threads": 0}, ArgumentError, "n_threads is 0"),
        ({"y": None}, ArgumentTypeError, "y is None. Pass a label for every row"),
        ({"y": [0, 1]}, DataError, "y has 2 rows; X has 2,000"),
        ({"y": np.zeros(2_000)}, DataError, r"y holds 0\.0; accepted: labels of two classes"),
        ({"y": [None, "a"] * 1_000}, DataError, "y is missing in some rows"),
        ({"y": np.arange(2_000)}, DataError, "y holds 0, 1, 2, 3, 4 and 1995 more"),
        ({"pos_label": 2}, ArgumentError, "pos_label is 2, which does not occur in y"),
        ({"attribute": None}, ArgumentError, "attribute is None. Pass"),
        ({"upper": -1}, ArgumentError, "upper is -1"),
        ({"X": None}, ArgumentTypeError, "X is a NoneType; accepted"),
        ({"horizon": 5_000}, DataError, r"rows in the selection part; horizon=5,000 needs 1,000"),
        ({"parts": (0.9, 0.05, 0.05)}, DataError, r"needs 100\. .* or groups= without this"),
    ],
)
def test_bad_values(changed, error, message):
    with pytest.raises(error, match=message):
        search(**changed)


def test_optuna_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ArgumentError, match=r"'optuna', which is not installed\. Install"):
        search(sampler="optuna")


def test_a_search_of_which_every_setting_fails():
    def fails(w):
        raise ValueError(f"no {w}")

    with pytest.raises(DataError, match=r"none of 4 settings could be .* failed with: no 0\.0"):
        search(fails)


def test_a_label_that_a_model_does_not_know_ends_the_search():
    """No other setting would help, so the others are not fitted."""
    made = []

    class Other(Weighted):
        classes_ = ("no", "yes")

        def __init__(self, w):
            made.append(w)
            super().__init__(w)

    with pytest.raises(ArgumentError, match="pos_label is 1, which is no class of the model"):
        search(Other, pos_label=1)
    assert made == [0.0]


# --- known values -----------------------------------------------------------------------------


def test_every_combination_of_a_small_grid_is_tried():
    result = search()
    assert [trial.settings["w"] for trial in result.trials] == [0.0, 1.0, 2.0, 4.0]
    mixed = search(space={"w": [0.0, 1.0]}, n_settings=1)
    assert len(mixed.trials) == 1


def test_the_least_ecd_above_the_floor_is_chosen():
    """The accuracy is highest at w = 2, the ECD smallest at 0, where a flip changes nothing."""
    result = search(accuracy_floor=0.5)
    first = result.trials[0]
    assert result.settings == {"w": 0.0}
    assert (first.ecd, first.note) == (0.0, "no flip changes a score")
    assert (result.selection_ecd, result.report_ecd) == (0.0, 0.0)
    accuracies = [trial.accuracy for trial in result.trials]
    assert accuracies.index(max(accuracies)) == 2
    strict = search(accuracy_floor=max(accuracies))
    assert strict.settings == {"w": 2.0}
    assert [trial.feasible for trial in strict.trials] == [False, False, True, False]
    # A woman who becomes a man gains, and a man who becomes a woman loses.
    assert (strict.best.first, strict.best.second) == (0, 1)
    assert strict.best.ecd > 0


def test_without_a_floor_it_is_a_little_below_the_most_accurate():
    result = search()
    accuracies = [trial.accuracy for trial in result.trials]
    assert result.accuracy_floor == pytest.approx(max(accuracies) - 0.01)
    assert "accuracy floor is 0.01 below the most accurate setting" in result.warnings[0]


def test_ecds_are_those_of_the_test():
    """On the report part: estimates, and intervals that hold for all pairs together."""
    frame = people(6_000)
    X = pd.get_dummies(frame, dtype=float)
    y = np.where(frame.income + 0.5 * (frame.race == "a") > 0.3, 1, 0)
    result = ecd_search(
        LogisticRegression(), X, y, attribute="race", space={"C": [0.01]}, horizon=300, rng=1
    )
    parts = dealt_rows(X, y, "race", 1)
    again = fa.extreme_test(result.model, X.iloc[parts[2]], attribute="race", horizon=300)
    assert len(result.report) == 3
    each = 1 - 0.05 / 3
    single = fa.extreme_test(
        result.model, X.iloc[parts[2]], attribute="race", horizon=300, confidence_level=each
    )
    for mine, theirs, wide in zip(
        result.report, again.comparisons, single.comparisons, strict=True
    ):
        assert (mine.first, mine.second) == (theirs.first, theirs.second)
        assert mine.estimate == theirs.estimate
        assert (mine.low, mine.high) == (wide.low, wide.high)
    assert (result.report_ecd, *again.confidence_interval) == (
        again.ecd,
        worst_of(result.report).low,
        worst_of(result.report).high,
    )
    (trial,) = result.trials
    chosen_on = fa.extreme_test(result.model, X.iloc[parts[1]], attribute="race", horizon=300)
    assert trial.ecd == chosen_on.ecd


def test_pairs_that_are_not_measurable_are_left_out_and_counted():
    """No row of one group changes: it has no tail."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], 400)
    gain = rng.beta(2, 4, 1_200) * 0.5
    gain[group == "c"] = 0.0
    design = ExtremeArguments(
        y_score=np.full(1_200, 0.2),
        counterfactual_score=0.2 + gain,
        sensitive_features=group,
    )
    for intervals in (False, True):
        found = pair_ecds(design.pose(), 500, intervals=intervals)
        assert [(ecd.first, ecd.second) for ecd in found] == [("a", "b")]
        assert math.isnan(found[0].low) != intervals
    with pytest.raises(NotMeasurableError, match=r"^group 'c': the 31 largest values .* 0\.000;"):
        pair_ecds(replace(design, groups=["a", "c"]).pose(), 500, intervals=False)


def test_a_floor_that_no_setting_reaches():
    result = search(accuracy_floor=0.99)
    assert result.best is None
    assert result.model is None
    assert result.settings is None
    assert math.isnan(result.report_ecd)
    assert "0 reach the accuracy floor of 0.990; the most accurate one has 0.8" in str(result)


def test_the_numbers_are_those_of_the_model_on_its_part(ecds):
    """The report is what the model says of rows that took no part."""
    seen = []
    result = search(lambda w: Weighted(w, seen), accuracy_floor=0.8, horizon=50)
    n_fit = len(seen[0][0])
    assert result.n_rows == {"fit": n_fit, "selection": 500, "report": 2_000 - n_fit - 500}
    fitted_on = set(seen[0][0].index)
    assert all(set(X.index) == fitted_on for X, _ in seen)
    X, y = TOY
    assert np.array_equal(y[seen[0][0].index], seen[0][1])
    kept = []

    def looking(question, horizon, **options):
        kept.append((options["intervals"], np.concatenate([g.rows for g in question.groups])))
        return pair_ecds(question, horizon, **options)

    ecds(looking)
    again = search(lambda w: Weighted(w), accuracy_floor=0.8, horizon=50)
    assert again == result
    selection = [set(rows.tolist()) for intervals, rows in kept if not intervals]
    (report,) = [set(rows.tolist()) for intervals, rows in kept if intervals]
    assert all(rows == selection[0] for rows in selection)
    assert not (selection[0] & report | selection[0] & fitted_on | report & fitted_on)
    rows = np.array(sorted(report))
    decided = result.model.predict_proba(X.iloc[rows])[:, 1] >= 0.5
    assert result.report_accuracy == np.mean(decided == y[rows])


def test_the_worst_pair_counts_in_either_direction():
    pairs = [PairEcd(first="a", second="b", estimate=e) for e in (0.1, -0.3, 0.3)]
    assert worst_of(pairs) is pairs[1]


def test_the_result_in_words_rows_and_dicts():
    result = search(accuracy_floor=0.5, space={"w": [1.0, 2.0]}, groups=[0, 1], reference=1)
    text = str(result)
    assert text.startswith("Of 2 settings 2 measured ones reach the accuracy floor of 0.500; the ")
    assert "w=1: 0." in text
    assert "(0 minus 1) on the part on which it was chosen, which is optimistic" in text
    (pair,) = result.report
    limits = f"({number(pair.low)} to {number(pair.high)})"
    first, second = (f"{group} ({result.group_sizes[group]} rows)" for group in (0, 1))
    assert f"{limits}, {first} minus {second}, on the part kept for the report, with" in text
    table = result.to_frame()
    assert table.columns == ["w", "accuracy", "ecd", "first", "second", "feasible", "best", "note"]
    assert table["best"].to_list() == [True, False]
    plain = result.to_dict()
    assert "model" not in plain
    assert plain["trials"][0]["settings"] == {"w": 1.0}
    assert "<table>" in result._repr_html_()
    assert pickle.loads(pickle.dumps(result)) == result
    assert repr(result).startswith("SearchResult(settings={'w': 1.0}, report_ecd=0.")


def test_settings_of_several_types_in_a_table():
    result = search(lambda w: Weighted(2.0 if w is None else 1.0), space={"w": [None, "a", 3]})
    assert result.to_frame()["w"].to_list() == [None, "a", "3"]


# --- spaces -----------------------------------------------------------------------------------


def drawn(axis, n=400, seed=3):
    sampler = RandomSampler(read_space({"a": axis}), n, seed)
    return [sampler.ask(at)["a"] for at in range(n)]


def test_ranges_of_whole_numbers_and_others():
    assert set(drawn((1, 4))) == {1, 2, 3, 4}
    values = drawn((0.5, 2.0))
    assert 0.5 <= min(values) < 0.6
    assert 1.9 < max(values) <= 2.0
    assert all(type(value) is int for value in drawn((1, 64, "log")))


def test_logarithmic_ranges_are_even_on_their_scale():
    values = np.log10(drawn((1e-4, 1.0, "log"), 4_000))
    assert stats.kstest(values, stats.uniform(-4, 4).cdf).pvalue > 1e-6
    assert stats.kstest(10**values, stats.uniform(0, 1).cdf).pvalue < 1e-6
    whole = np.array(drawn((1, 100, "log"), 4_000))
    assert 0.2 < np.mean(whole <= 3) < 0.45


def test_distributions_and_functions():
    assert all(isinstance(value, float) for value in drawn(stats.loguniform(0.1, 10)))
    assert set(drawn(lambda stream: stream.choice(["a", "b"]).item())) == {"a", "b"}


def test_each_setting_has_a_stream_of_its_own():
    """More settings leave the first ones as they were."""
    assert drawn((0.0, 1.0), 10) == drawn((0.0, 1.0), 400)[:10]
    assert drawn((0.0, 1.0), seed=4) != drawn((0.0, 1.0))


# --- models -----------------------------------------------------------------------------------


def test_an_estimator_of_scikit_learn():
    frame = people(4_000)
    X = pd.get_dummies(frame, dtype=float)
    y = np.where(frame.income + (frame.sex == "man") > 0.3, "yes", "no")
    model = make_pipeline(StandardScaler(), LogisticRegression())
    result = ecd_search(
        model,
        X,
        y,
        attribute="sex",
        space={"logisticregression__C": (1e-4, 10.0, "log")},
        n_settings=5,
        horizon=100,
        rng=1,
    )
    assert result.model is not model
    assert not hasattr(model[-1], "coef_")
    assert result.settings["logisticregression__C"] == result.model[-1].C
    assert result.group_sizes.keys() == {"man", "woman"}
    shrunk = min(result.trials, key=lambda trial: trial.settings["logisticregression__C"])
    assert abs(shrunk.ecd) == min(abs(trial.ecd) for trial in result.trials)


def test_a_class_of_estimators_is_a_function_of_settings():
    result = search(DecisionTreeClassifier, space={"max_depth": (1, 6)}, n_settings=4, horizon=50)
    assert isinstance(result.model, DecisionTreeClassifier)
    assert isinstance(result.model.random_state, int)
    # Scores of few values have levels where order statistics limit them, and none beyond.
    with pytest.raises(DataError, match=r"group 0: the 24 largest values .*; group 1: the"):
        search(DecisionTreeClassifier, space={"max_depth": [2, 3]}, horizon=200)


def test_seeds_that_the_user_gave_stay():
    result = search(SGDClassifier(loss="log_loss", random_state=7), space={"alpha": [0.01, 0.1]})
    assert result.model.random_state == 7


def network(width, rate):
    layers = [torch.nn.Linear(2, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)]
    return torch.nn.Sequential(*layers).double()


def descend(module, X, y, settings):
    X, y = torch.tensor(X), torch.tensor(y, dtype=torch.float64)
    for _ in range(10):
        module.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(module(X)[:, 0], y).backward()
        with torch.no_grad():
            for weights in module.parameters():
                weights -= 10 * settings["rate"] * weights.grad


def of_networks(**changed):
    X, y = TOY
    return search(
        network,
        X.to_numpy(dtype=float),
        y,
        attribute=0,
        space={"width": [4, 8], "rate": (1e-3, 0.1, "log")},
        train=descend,
        n_settings=3,
        accuracy_floor=0.3,
        **changed,
    )


def test_networks_of_torch():
    before = torch.random.get_rng_state()
    result = of_networks()
    assert torch.equal(before, torch.random.get_rng_state())
    assert result.report_accuracy > 0.5
    torch.manual_seed(99)
    assert of_networks() == result


def test_a_network_needs_a_function_that_trains_it():
    X, space = TOY[0].to_numpy(dtype=float), {"width": [4], "rate": [0.1]}
    with pytest.raises(ArgumentTypeError, match="makes a Sequential, which has no fit method"):
        search(network, X, attribute=0, space=space)


def test_training_may_return_another_model():
    result = search(
        lambda w: w,
        train=lambda w, X, y, settings: lambda X: Weighted(w).predict_proba(X)[:, 1],
        accuracy_floor=0.0,
    )
    assert [trial.ecd for trial in result.trials] == [trial.ecd for trial in search().trials]


def test_settings_that_fail_are_trials_with_a_note(ecds):
    class Sometimes(Weighted):
        def fit(self, X, y):
            if self.w == 1.0:
                raise np.linalg.LinAlgError("singular")

        def predict_proba(self, X):
            return super().predict_proba(X) * (np.nan if self.w == 4.0 else 1)

    def measured(question, horizon, **options):
        if question.groups[0].discrimination.max() < 0.3:
            raise NotMeasurableError("too flat")
        return pair_ecds(question, horizon, **options)

    ecds(measured)
    result = search(Sometimes, space={"w": [0.5, 1.0, 2.0, 4.0]})
    notes = [trial.note for trial in result.trials]
    assert notes[:3] == ["too flat", "singular", ""]
    assert "model returns nan for X, row" in notes[3]
    assert [trial.feasible for trial in result.trials] == [False, False, True, False]
    assert math.isnan(result.trials[0].ecd)
    assert result.trials[0].accuracy > 0.5
    assert "3 settings could not be fitted or measured" in result.warnings[1]


def test_a_report_that_cannot_be_measured(ecds):
    def measured(question, horizon, **options):
        if options["intervals"]:
            raise NotMeasurableError("no tail")
        return pair_ecds(question, horizon, **options)

    ecds(measured)
    result = search(space={"w": [1.0, 2.0]})
    assert math.isnan(result.report_ecd)
    assert result.warnings[-1] == "the report part has no ECD: no tail"
    assert "not measurable on the part kept for the report" in str(result)


# --- properties -------------------------------------------------------------------------------


def test_the_order_of_rows_changes_no_bit():
    X, y = toy(3_000)
    order = np.random.default_rng(4).permutation(len(X))
    changed = {"space": {"alpha": (1e-4, 1.0, "log")}, "n_settings": 3}
    model = SGDClassifier(loss="log_loss")
    first = search(model, X, y, **changed)
    again = search(model, X.iloc[order], y[order], **changed)
    assert first == again
    assert first != search(model, X, y, **changed, rng=2)


def test_threads_change_no_bit():
    X, y = toy(3_000)
    first, again = (search(X=X, y=y, horizon=700, n_threads=n) for n in (1, 2))
    assert first == again


def test_the_favourable_label_turns_scores_not_accuracies():
    first, second = (search(accuracy_floor=0.8, pos_label=label) for label in (1, 0))
    assert [t.accuracy for t in first.trials] == pytest.approx([t.accuracy for t in second.trials])


def test_progress_counts_settings_and_may_stop_the_search():
    seen = []
    search(progress=lambda *at: seen.append(at))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(progress=stop)


def test_the_smallest_of_many_estimates_is_too_small():
    """With ten settings of one model the selected ECD is below that of the report, on average."""

    class Noisy:
        def __init__(self, at):
            self.at = at

        def fit(self, X, y):
            pass

        def predict_proba(self, X):
            noise = np.sin(1e6 * (self.at + 1) * X.x.to_numpy()) * X.man.to_numpy()
            p = 1 / (1 + np.exp(-X.x - noise))
            return np.column_stack([1 - p, p])

    gaps = []
    for seed in range(12):
        X, y = toy(1_200, seed)
        found = search(Noisy, X, y, space={"at": list(range(10))}, accuracy_floor=0.0, rng=seed)
        gaps.append(abs(found.report_ecd) - abs(found.selection_ecd))
    assert np.mean(gaps) > 0


# --- optuna -----------------------------------------------------------------------------------


def test_optuna_proposes_from_the_space_and_learns():
    """After its random start it stays where the ECD is small and the accuracy is not."""

    def make(w, kind, width):
        if width == 2:
            raise ValueError("no")
        assert kind in (("a",), ("b",))
        return Weighted(w)

    space = {"w": (0.01, 8.0, "log"), "kind": [("a",), ("b",)], "width": (1, 8)}
    options = {"sampler": "optuna", "space": space, "n_settings": 40, "rng": 5}
    result = search(make, **options)
    assert result.sampler == "optuna"
    drawn = [trial.settings for trial in result.trials]
    assert all(0.01 <= value["w"] <= 8 and type(value["width"]) is int for value in drawn)
    assert {value["kind"] for value in drawn} == {("a",), ("b",)}
    failed = [trial.note for trial in result.trials if trial.settings["width"] == 2]
    assert failed
    assert set(failed) == {"no"}
    assert search(make, **options) == result
    assert search(make, **options | {"rng": 6}) != result


def test_optuna_does_not_take_functions():
    with pytest.raises(ArgumentTypeError, match=r"space\['w'\] is drawn by a function, which"):
        search(sampler="optuna", space={"w": lambda stream: 1.0})


def test_optuna_hears_what_came_of_a_trial(monkeypatch):
    """It minimises the size of the ECD and maximises the accuracy; failures are told as such."""
    studies = []
    create = optuna.create_study

    def kept(**options):
        studies.append(create(**options))
        return studies[0]

    monkeypatch.setattr(optuna, "create_study", kept)

    class Sometimes(Weighted):
        def fit(self, X, y):
            if self.w < 1.0:
                raise ValueError("no")

    result = search(Sometimes, sampler="optuna", space={"w": (0.0, 4.0)}, n_settings=12, rng=5)
    (study,) = studies
    assert [direction.name for direction in study.directions] == ["MINIMIZE", "MAXIMIZE"]
    states = {True: "FAIL", False: "COMPLETE"}
    assert len(study.trials) == 12
    for told, trial in zip(study.trials, result.trials, strict=True):
        assert told.state.name == states[trial.settings["w"] < 1.0]
        assert told.params == trial.settings
        assert told.values is None or told.values == [abs(trial.ecd), trial.accuracy]
