"""One meaning per argument: public functions agree on names, defaults, words and checks."""

import ast
import inspect
import math
import re
import warnings

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import arguments, errors
from fairaudit_rs.arguments import RULES

from . import signatures
from .architecture import PYTHON

PUBLIC = signatures.public()
RULED = [
    (label, name)
    for label, function in PUBLIC.items()
    for name in signatures.arguments_of(function)
    if name in RULES
]

# -- defaults and kinds ------------------------------------------------------------------------

_GENERATOR = "generators are called as fit(X, rng) and sample(n, rng)"
_SHORT = "few arguments, whose order is plain"
_NEEDED = "without it there is nothing to do here"
_MADE_OF_COLUMNS = "cells are made of named columns, whatever their order"
EXCEPTIONS = {
    # what data are
    "y_true": dict.fromkeys(["tabulate", "Cells.from_frame"], _MADE_OF_COLUMNS),
    "y_pred": dict.fromkeys(["tabulate", "Cells.from_frame"], _MADE_OF_COLUMNS),
    "y_score": {"score_distance": _NEEDED},
    "sensitive_features": dict.fromkeys(["tabulate", "Cells.marginalize"], _NEEDED),
    "data": {"tabulate": "the data are what it is about, so they come first"},
    "groups": {"Cells.class_counts": "called by problems, which know the groups"},
    "strata": {
        "tabulate": "no metric is known yet that conditions on something",
        "Cells.from_frame": "no metric is known yet that conditions on something",
        "intervals": "the metric's own strata exchange rows and change no gap",
        "equivalence_test": "the metric's own strata exchange rows and change no gap",
        "audit": "the metric's own strata exchange rows and change no gap",
        "minimum_detectable_gap": "the metric's own strata exchange rows and change no gap",
        "sample_size": "the metric's own strata exchange rows and change no gap",
        "Notion": "the field of a record",
    },
    "X": {
        "influence_audit": "features may be columns of the data instead",
        "extreme_test": "two columns of scores may stand in for a model and its rows",
        "audit": "a verdict needs none; other lenses are told as not run without",
    },
    "fair_metric": {"Criterion": "an informing lens, and some that bind, fit one to the rows"},
    "model": {
        "influence_audit": "an audit of decisions needs none",
        "extreme_test": "two columns of scores may stand in for it",
        "audit": "a verdict needs none; other lenses are told as not run without",
    },
    "null": {"calibrate": "what is true of its audits, not what is tested"},
    "target": {"generator_quality": "there the column of labels, which F1 alone needs"},
    "weight": {"Metric.influence": "rows have weights or not"},
    "estimator": {"generator_quality": "there is one of our own"},
    # what is asked
    "metric": {
        "influence_audit": "the paper's own example",
        "get": _NEEDED,
        "register": _NEEDED,
        "Criterion": "a lens may stand in its place",
    },
    "method": {"*": "every procedure has methods of its own"},
    "interval": {"individual_test": "by the normal law, as the paper has it"},
    "kind": dict.fromkeys(
        ["InfluenceResult.plot", "AlignmentResult.plot"], "None shows both kinds of scores"
    ),
    "k": {"UnfairExamples.moved_features": "features of each row, not rows"},
    "name": {
        "Notion": "a notion without a name is one of the user's own",
        "Policy": "a record of many fields is made by name",
    },
    "names": {"*": "of features there, of criteria here"},
    "gaps": {"PowerPlan.curve": "None takes gaps around that of the plan"},
    "columns": {"callable_metric": "a function gets labels and decisions"},
    "classes": {
        "MulticlassModel": _SHORT,
        "Cells.class_counts": "the class of each cell, not names of classes",
    },
    "upper": {"fit_tail": "any numbers, which may have no end; others are of probabilities"},
    "m": {"TailFit.stability": "a picture of one horizon"},
    "n_rows": {"*": "rows in all there, rows to make here"},
    "generator": {"TopUps": "top-ups are always generated"},
    "bandwidth": {"*": "of a density in a test, of noise in a generator"},
    # how it is computed
    "n_resamples": {
        "projection_test": "a replicate is a projection",
        "extreme_test": "a replicate is a fit of every group",
        "calibrate": "of each of a thousand audits",
        "individual_test": "of means of ratios, whose quantiles are asked for",
    },
    "confidence_level": {"InfluenceResult.descend": "None takes that of the audit"},
    "parts": {"*": "of two parts or of three"},
    "immovable": {"LinearModel.distance": "None, as for its neighbours"},
    "threshold": {
        "fit_tail": "a level of the values, in place of a number of exceedances",
        "GevFit.excesses": _NEEDED,
        "*Model": _SHORT,
        "*.with_threshold": _NEEDED,
        "adapt": "None takes that of the model",
        "from_sklearn": "None takes that of the estimator",
        "score_distance": _SHORT,
    },
    "penalty": {"FairMetric.pulls": _NEEDED},
    "n_steps": {"TorchModel.distance": "steps to a boundary, which is near"},
    "batch_size": {
        "TorchModel.distance": "gradients of a batch are kept",
        "TVAE": "of training, not of memory",
    },
    "n_epochs": {"TVAE": "None depends on the number of rows"},
    "feature_names": {"MulticlassModel": _SHORT},
    "rng": {
        "*.fit": _GENERATOR,
        "*.sample": _GENERATOR,
        "Repair.*": "a repair is called like a generator",
        "synthetic_credit": "the same book for everybody",
    },
    # of policies
    "attributes": {"Criterion": "names of attributes, not how they go together"},
    "attribute": {"Criterion.covers": _NEEDED},
    "ratio": {"individual_test": "there a ratio of losses by name, not a limit"},
    "value": {"correlation_metric": _NEEDED, "Policy.is_unknown": _NEEDED},
    "floor": {"Policy": "rows of a group, not a ratio"},
    "decisions": {"Policy.default": "whether they are known"},
    "scores": {"Policy.default": "whether they are known"},
    "tolerance": {"Criterion": "a criterion has a ratio instead, or neither"},
}


def test_equal_names_have_equal_defaults_and_kinds():
    assert signatures.differing(PUBLIC, EXCEPTIONS) == []


# -- words -------------------------------------------------------------------------------------

#: What their sentence says.
IN_A_SENTENCE = {"Notion.evaluate", "Cells.class_counts", "Metric.evaluate"}


def test_arguments_are_described_where_they_are_or_where_the_docstring_points():
    told = {label: function for label, function in PUBLIC.items() if label not in IN_A_SENTENCE}
    assert signatures.undescribed(told) == []


@pytest.mark.parametrize("name", RULES)
def test_shared_arguments_have_one_type_in_docstrings(name):
    assert len(signatures.types_of(name, PUBLIC)) <= 1


#: Of arguments that do the same everywhere.
SENTENCES = {
    "rng": r"Source of the seed\b|Not used: ",
    "n_threads": r"(.*\W)?None (or -1 takes all cores that the process may use|takes that of the )",
    "progress": r"(Of .*: )?True prints; a callable gets \(.*done, .*in all\)",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_shared_arguments_are_described_alike(name):
    told = signatures.texts_of(name, PUBLIC)
    assert len(told) > 5
    assert [text for text in told if not re.match(SENTENCES[name], text)] == []


# -- checks ------------------------------------------------------------------------------------

#: Some of these no rule accepts, and each rule refuses some.
CANDIDATES = ("many", True, None, math.nan, math.inf, -1, -0.5, 0, 1.5, 10**30, [1], 1 + 1j, object)
#: Functions that do not check one of their arguments, and why.
UNCHECKED = {
    ("SmoothedBootstrap.fit", "rng"): "not used",
    ("GaussianCopula.fit", "rng"): "not used",
    ("SmoothedBootstrap.fit", "random_state"): "not used",
    ("GaussianCopula.fit", "random_state"): "not used",
    ("FairMetric.pulls", "penalty"): "the flow hands it a penalty that was checked",
    ("Cells.class_counts", "n_classes"): "problems hand it what they counted",
    ("Repair.transformer", "rng"): "scikit-learn's way: checked when it transforms",
    ("Repair.transformer", "random_state"): "scikit-learn's way: checked when it transforms",
}


def refused(name):
    """Values that a rule refuses, with the error of each."""
    found = []
    for value in CANDIDATES:
        try:
            RULES[name](name, value)
        except errors.FairAuditError as error:
            found.append((value, error))
    return found


def shown(value):
    """The ways in which messages show a value."""
    ways = [repr(value), f"is a {type(value).__name__}"]
    return [*ways, f"{value:,}"] if isinstance(value, int) else ways


@pytest.mark.parametrize("name", RULES)
def test_rules_refuse_and_say_what_would_do(name):
    found = refused(name)
    assert {type(error) for _, error in found} <= {errors.ArgumentError, errors.ArgumentTypeError}
    values = [value for value, _ in found]
    assert "many" in values
    assert any(isinstance(value, float) and math.isnan(value) for value in values)
    assert name == "progress" or any(value is True for value in values)
    for value, error in found:
        assert re.match(rf"{name} is .+; accepted: \S", str(error))
        assert any(way in str(error) for way in shown(value)), str(error)


def test_checked_arguments_are_those_of_the_rules():
    names = {*RULES, "seed"} - {"rng", "random_state"}
    assert set(inspect.get_annotations(arguments.CheckedArguments)) == names


def test_checked_arguments_go_by_name():
    checked = arguments.check(n_threads=np.int64(2), threshold=np.float32(0.5), rng=7)
    assert (checked.n_threads, checked.threshold, checked.seed) == (2, 0.5, 7)
    assert (type(checked.n_threads), type(checked.threshold)) == (int, float)
    with pytest.raises(AttributeError, match="progress"):
        _ = checked.progress


def test_a_wrong_argument_leaves_the_generator_as_it_was():
    generator = np.random.default_rng(0)
    with pytest.raises(errors.ArgumentError, match="n_resamples is 0"):
        arguments.check(rng=generator, n_resamples=0)
    assert generator.random() == np.random.default_rng(0).random()


def test_two_names_of_one_seed():
    message = "rng and random_state are two names of one argument. Pass only one of them."
    with pytest.raises(errors.ArgumentTypeError, match=message):
        arguments.check(rng=1, random_state=1)
    with pytest.raises(errors.ArgumentTypeError, match="random_state is a str; accepted"):
        arguments.check(rng=None, random_state="many")


def test_minus_one_thread_is_one_for_each_core(monkeypatch):
    monkeypatch.setattr(arguments, "_cores", lambda: 7)
    assert arguments.check(n_threads=-1).n_threads == 7
    assert arguments.check(n_threads=np.int64(-1)).n_threads == 7
    message = "n_threads is -2; accepted: a whole number from 1 to 4,096, or -1 for all cores"
    with pytest.raises(errors.ArgumentError, match=message):
        arguments.check(n_threads=-2)
    with pytest.raises(errors.ArgumentTypeError, match=r"n_threads is 1.5; .* or -1"):
        arguments.check(n_threads=1.5)


def test_a_random_state_is_a_source_of_seeds():
    states = [np.random.RandomState(3) for _ in range(2)]
    first, again = (arguments.check(rng=state).seed for state in states)
    assert first == again != arguments.check(rng=None, random_state=states[0]).seed
    book = {"y_pred": [0, 1] * 20, "sensitive_features": ["a"] * 20 + ["b"] * 20}
    results = [
        fa.permutation_test(**book, metric="f1", y_true=[0, 1, 1, 0] * 10, random_state=state)
        for state in (np.random.RandomState(5), np.random.RandomState(5))
    ]
    assert results[0] == results[1]


def test_every_function_with_rng_has_the_alias():
    alone = [
        label
        for label, function in PUBLIC.items()
        if "rng" in (given := signatures.arguments_of(function)) and "random_state" not in given
    ]
    assert alone == []
    one, other = (fa.datasets.synthetic_credit(50, **{name: 3}) for name in ("rng", "random_state"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    with pytest.raises(errors.ArgumentTypeError, match="rng and random_state are two names"):
        fa.datasets.synthetic_credit(50, rng=1, random_state=1)


def test_an_array_of_one_number_is_one_and_a_list_is_none():
    assert arguments.finite("threshold", np.array([0.5])) == 0.5
    with pytest.raises(errors.ArgumentTypeError, match=r"threshold is \[0.5\]; accepted: a finite"):
        arguments.finite("threshold", [0.5])
    assert fa.LinearModel([1.0], [0.5]).intercept == fa.LinearModel([1.0], 0.5).intercept


#: Calls that check an argument of a rule by other means, and why.
OTHER_CHECKS = {
    ("extremes/augment.py", "n_resamples"): "0 there is none, which nobody but us asks for",
    ("projection/question.py", "threshold"): "where it is compared with the default",
}
#: Functions of `arguments` that are no rules.
CHECKS = ("choice", "flag", "count", "number", "finite", "positive", "at_least_0", "level")


def checked_by_hand(source):
    """Return the arguments of rules that a source checks by other functions."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in CHECKS
        and call.args
        and isinstance(call.args[0], ast.Constant)
    ]
    return [name for name in names if name in RULES]


def test_rules_are_not_stated_twice():
    found = {
        (path.relative_to(PYTHON).as_posix(), name)
        for path in PYTHON.rglob("*.py")
        for name in checked_by_hand(path.read_text(encoding="utf-8"))
    }
    assert found <= set(OTHER_CHECKS)
    assert checked_by_hand('arguments.count("n_threads", n, 1, 8)') == ["n_threads"]


class Book:
    """Small data, and results made of them."""

    def __init__(self):
        rng = np.random.default_rng(0)
        n = 2_000
        self.group = np.where(np.arange(n) % 2 < 1, "a", "b")
        self.y_true = rng.random(n) < 0.5
        self.score = rng.random(n)
        self.y_pred = rng.random(n) < np.where(self.group == "a", 0.6, 0.4)
        self.X = {"part_time": ~self.y_pred, "x": rng.integers(0, 3, n)}
        self.rows = np.column_stack([self.score, self.y_pred])
        self.roles = {"y_true": self.y_true, "y_pred": self.y_pred}
        self.by_group = {**self.roles, "sensitive_features": self.group}
        self.linear = fa.LinearModel([1.0, -1.0])
        self.kernel = fa.KernelModel([[0.0, 0.0]], [1.0])
        self.fair_metric = fa.FairMetric.directions([[0.0, 1.0]])

    def individual(self, **options):
        options = {"fair_metric": self.fair_metric, **options}
        return fa.individual_test(self.linear, self.rows, self.y_true, **options)

    def influence(self, **options):
        return fa.influence_audit(
            **self.by_group, X=self.X, target="a", metric="selection_rate", **options
        )

    def search(self, **options):
        return fa.ecd_search(
            object, self.rows, self.y_true, attribute=1, space={"a": [1, 2]}, **options
        )

    def module(self):
        torch = pytest.importorskip("torch")
        return torch.nn.Linear(2, 1)

    def fitted(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        return linear_model.LogisticRegression().fit(self.rows, self.y_true)

    def generator(self, kind):
        return {"bootstrap": fa.SmoothedBootstrap, "copula": fa.GaussianCopula}[kind]().fit(self.X)

    def tvae(self):
        pytest.importorskip("torch")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fa.TVAE(n_epochs=1).fit(self.X, rng=0)


@pytest.fixture(scope="module")
def book():
    return Book()


#: For each function with an argument that has a rule, a call that is right but for it.
CALLS = {
    "audit": lambda b, **bad: fa.audit(**b.by_group, **bad),
    "permutation_test": lambda b, **bad: fa.permutation_test(
        **b.by_group, **{"metric": "tpr", **bad}
    ),
    "projection_test": lambda b, **bad: fa.projection_test(
        b.y_true, y_score=b.score, sensitive_features=b.group, **bad
    ),
    "individual_test": lambda b, **bad: b.individual(**bad),
    "influence_audit": lambda b, **bad: b.influence(**bad),
    "extreme_test": lambda b, **bad: fa.extreme_test(
        y_score=b.score / 2, counterfactual_score=b.score, sensitive_features=b.group, **bad
    ),
    "fit_tail": lambda b, **bad: fa.fit_tail(b.score, **bad),
    "ecd_search": lambda b, **bad: b.search(**bad),
    "generator_quality": lambda b, **bad: fa.generator_quality(b.X, b.X, **bad),
    "intervals": lambda b, **bad: fa.intervals(**b.by_group, **{"metric": "tpr", **bad}),
    "equivalence_test": lambda b, **bad: fa.equivalence_test(
        **b.by_group, margin=0.1, **{"metric": "tpr", **bad}
    ),
    "compare_models": lambda b, **bad: fa.compare_models(
        b.by_group["y_true"],
        b.by_group["y_pred"],
        b.by_group["y_pred"],
        sensitive_features=b.by_group["sensitive_features"],
        **{"metric": "tpr", **bad},
    ),
    "minimum_detectable_gap": lambda b, **bad: fa.minimum_detectable_gap(
        value=0.5, group_sizes=[100, 100], **{"metric": "tpr", **bad}
    ),
    "sample_size": lambda b, **bad: fa.sample_size(0.1, value=0.5, **{"metric": "tpr", **bad}),
    "calibrate": lambda b, **bad: fa.calibrate(**b.by_group, **{"metric": "tpr", **bad}),
    "Cells.from_frame": lambda b, **bad: fa.Cells.from_frame(
        {"g": ["a", "b"], "count": [1, 2]}, **{"sensitive_features": "g", **bad}
    ),
    "tabulate": lambda b, **bad: fa.tabulate(**b.by_group, **bad),
    "LinearModel": lambda b, **bad: fa.LinearModel([1.0], **bad),
    "KernelModel": lambda b, **bad: fa.KernelModel([[0.0]], [1.0], **bad),
    "TorchModel": lambda b, **bad: fa.TorchModel(b.module(), **bad),
    "LinearModel.with_threshold": lambda b, **bad: b.linear.with_threshold(**bad),
    "KernelModel.with_threshold": lambda b, **bad: b.kernel.with_threshold(**bad),
    "TorchModel.with_threshold": lambda b, **bad: fa.TorchModel(b.module()).with_threshold(**bad),
    "TorchModel.distance": lambda b, **bad: fa.TorchModel(b.module()).distance(b.rows, **bad),
    "MulticlassModel.network": lambda b, **bad: fa.MulticlassModel.network(
        b.module(), **{"n_classes": 3, **bad}
    ),
    "adapt": lambda b, **bad: fa.models.adapt(b.linear, **bad),
    "from_sklearn": lambda b, **bad: fa.models.from_sklearn(b.fitted(), **bad),
    "score_distance": lambda b, **bad: fa.models.score_distance(b.score, **bad),
    "synthetic_credit": lambda b, **bad: fa.datasets.synthetic_credit(100, **bad),
    "SmoothedBootstrap.sample": lambda b, **bad: b.generator("bootstrap").sample(**{"n": 2, **bad}),
    "GaussianCopula.sample": lambda b, **bad: b.generator("copula").sample(**{"n": 2, **bad}),
    "TVAE": lambda b, **bad: fa.TVAE(**bad),
    "TVAE.fit": lambda b, **bad: fa.TVAE(n_epochs=1).fit(b.X, **bad),
    "TVAE.sample": lambda b, **bad: b.tvae().sample(**{"n": 2, **bad}),
    "CTGAN": lambda b, **bad: fa.CTGAN(**bad),
    "CTGAN.fit": lambda b, **bad: fa.CTGAN(n_epochs=1).fit(b.X, **bad),
    "CTGAN.sample": lambda b, **bad: fa.CTGAN(n_epochs=1).sample(**{"n": 2, **bad}),
    "TopUps": lambda b, **bad: fa.TopUps(**bad),
    "UnfairExamples.moved_features": lambda b, **bad: (
        b.individual(n_steps=2).unfair_examples(2).moved_features(**bad)
    ),
    "IndividualResult.unfair_examples": lambda b, **bad: b.individual(n_steps=2).unfair_examples(
        **bad
    ),
    "InfluenceResult.descend": lambda b, **bad: b.influence(n_draws=9).descend(
        **{"tolerance": 0.05, **bad}
    ),
    "InfluenceResult.repair": lambda b, **bad: b.influence(n_draws=9).repair(**bad),
    "Policy": lambda b, **bad: fa.Policy(
        **{"name": "own", "criteria": [fa.Criterion(metric="tpr", tolerance=0.1)], **bad}
    ),
    "Criterion": lambda b, **bad: fa.Criterion(**{"metric": "tpr", "tolerance": 0.1, **bad}),
    "GevFit.excesses": lambda b, **bad: fa.fit_tail(b.score, method="gev", block_size=20).excesses(
        **bad
    ),
    "Repair.transform": lambda b, **bad: (
        b.influence(n_draws=9).repair(rng=1).transform(b.X, b.group, **bad)
    ),
    "Repair.transform_report": lambda b, **bad: (
        b.influence(n_draws=9).repair(rng=1).transform_report(b.X, b.group, **bad)
    ),
    "Counterfactual.sample": lambda b, **bad: (
        b.influence(n_draws=9).descend(tolerance=0.05, rng=1).sample(**{"n": 2, **bad})
    ),
}


def takes_none(label, name):
    """Return whether None has a meaning of its own in a function."""
    one = signatures.arguments_of(PUBLIC[label])[name]
    return one.default is None or "None" in str(one.annotation)


def accepting(function, label, name, book):
    """Return bad values that a function accepts, or refuses in words of its own."""
    found = []
    for value, expected in refused(name):
        if value is None and takes_none(label, name):
            continue
        try:
            function(book, **{name: value})
        except errors.FairAuditError as error:
            if (type(error), str(error)) != (type(expected), str(expected)):
                found.append(f"{name}={value!r} of {label} is refused with {error!r}")
        else:
            found.append(f"{name}={value!r} of {label} is accepted")
    return found


def test_every_function_with_a_rule_is_tried():
    labels = {label for label, name in RULED if (label, name) not in UNCHECKED}
    assert set(CALLS) == labels
    assert set(UNCHECKED) <= set(RULED)


@pytest.mark.parametrize(
    ("label", "name"),
    [pytest.param(*row, id=" of ".join(row[::-1])) for row in RULED if row not in UNCHECKED],
)
def test_functions_refuse_what_rules_refuse(label, name, book):
    assert accepting(CALLS[label], label, name, book) == []


#: Values that are wrong for data and words, for which there is no rule, with what messages say.
WRONG = [
    ("alternative", "greater than", "accepted: 'two-sided', 'greater', 'less'"),
    ("classes", 3, "classes is 3; accepted: a sequence of labels"),
    ("clusters", 3, "clusters 'cluster' has 0 dimensions; accepted: a column, one value per row"),
    ("feature_names", 3, "feature_names is 3; accepted: a sequence of names, one per feature"),
    ("feature_names", "x", "feature_names is 'x'; accepted: a sequence of names, one per feature"),
    ("features", 3, "features is 3; accepted: a list of names"),
    ("generator", 3, "generator is 3, without fit; accepted: 'bootstrap', 'copula'"),
    ("groups", "a", "groups is 'a'; accepted: a sequence of groups"),
    ("groups", ["z"], "groups names 'z', which is no group of the data; groups: "),
    ("link", "log", "link is 'log'; accepted: 'auto', 'logit', 'identity'"),
    ("metric", "tqr", "metric is 'tqr', which is not the name of a metric"),
    ("n_exceedances", 3, "n_exceedances is 3; accepted: a whole number from 15 to "),
    ("nuisance", 3, "nuisance is 3, without fit; accepted: an estimator with fit and"),
    ("pos_label", "maybe", "pos_label is 'maybe', which does not occur in y"),
    ("reference", "z", "reference names 'z', which is no group of the data; groups: "),
    ("strata", 3, "strata 'stratum' has 0 dimensions; accepted: a column, one value per row"),
    (
        "studentize",
        "x",
        "studentize is 'x'; accepted: 'auto', 'pooled', 'unpooled', 'corrected', 'none'",
    ),
    ("upper", -1, "upper is -1; accepted: a finite number above 0"),
    ("upper", True, "upper is True; accepted: a finite number above 0"),
    ("y_score", "x", "y_score is the text 'x'. To name a column, pass data= too."),
]
#: Functions of which WRONG says nothing, by argument.
OTHERWISE = {
    "pos_label": {"extreme_test", "Cells.from_frame"},
    "strata": {"Cells.from_frame"},
    "clusters": {"influence_audit"},
    "y_score": {"extreme_test", "projection_test", "score_distance"},
    "metric": {"influence_audit"},
    "reference": {"Criterion"},
}
#: Without data these two know nothing of groups, labels and columns.
PLANS = {"minimum_detectable_gap", "sample_size"}


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_functions_refuse_wrong_data_and_words_alike(name, value, message, book):
    tried = 0
    for label, call in CALLS.items():
        if name in signatures.arguments_of(PUBLIC[label]) and label not in OTHERWISE.get(name, ()):
            if label in PLANS and name not in RULES and name != "metric":
                continue
            with pytest.raises(errors.FairAuditError, match=re.escape(message)):
                call(book, **{name: value})
            tried += 1
    assert tried


# -- what would be found -----------------------------------------------------------------------


def planted(n_resamples=99, *, rng=None, n_threads=0, X=None):
    """Do something.

    Parameters
    ----------
    n_resamples : float
        Replicates.
    rng : None, int, SeedSequence or Generator
        As in `ecd_find`.
    n_threads : int, optional
        See `fit_tail`.
    """
    return n_resamples


def test_a_planted_function_is_found(book):
    functions = {**PUBLIC, "planted": planted}
    found = signatures.differing(functions, EXCEPTIONS)
    assert [line.split()[0] for line in found] == ["X", "n_resamples", "n_threads"]
    assert found[1].endswith("default 99, by place in planted")
    assert signatures.undescribed({"planted": planted, "fit_tail": fa.fit_tail}) == [
        "rng of planted is said to be described in ecd_find, which is not public",
        "X of planted is not described",
    ]
    assert "float" in signatures.types_of("n_resamples", functions)
    PUBLIC["planted"] = planted
    try:
        taken = accepting(lambda _, **bad: planted(**bad), "planted", "n_resamples", book)
    finally:
        del PUBLIC["planted"]
    assert "n_resamples=-1 of planted is accepted" in taken
    assert len(taken) == len(refused("n_resamples"))


def test_idle_exceptions_are_found():
    idle = {"n_threads": {"fit_tail": "none", "audit": "none"}, "colour": {"*": "none"}}
    found = signatures.differing({"fit_tail": fa.fit_tail, "tabulate": fa.tabulate}, idle)
    assert [line for line in found if "exception" in line] == [
        "the exception for n_threads in fit_tail is not needed",
        "the exception for n_threads in audit is not needed",
        "the exception for colour is of no argument",
    ]


def test_own_words_are_found(book):
    def own(_, **bad):
        raise errors.ArgumentError(f"n_resamples must not be {bad['n_resamples']!r}")

    assert len(accepting(own, "intervals", "n_resamples", book)) == len(refused("n_resamples"))
