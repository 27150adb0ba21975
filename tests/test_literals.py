"""Types of words: one alias for each list, which is what docs say and what is checked."""

import re
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import fairaudit_rs as fa
from fairaudit_rs import literals
from fairaudit_rs.extremes import lens as extremes
from fairaudit_rs.extremes import space, tail
from fairaudit_rs.individual import question, schedule, simplex, value
from fairaudit_rs.influence import counterfactual
from fairaudit_rs.metrics.family import MetricFamily
from fairaudit_rs.models import binary, kernel, linear, torch_model
from fairaudit_rs.permutation import calibration, comparison, equivalence, intervals
from fairaudit_rs.projection import notions

from . import signatures
from .test_signatures import CALLS, Book

#: Words as they are checked at run time, by the alias of their type.
CHECKED = {
    "Adjustment": comparison.ADJUSTMENTS,
    "Engine": comparison.ENGINES,
    "GapInterval": comparison.INTERVALS,
    "IntervalMethod": intervals.METHODS,
    "EquivalenceMethod": equivalence.METHODS,
    "NullHypothesis": calibration._GROUPS,
    "Studentize": {
        *MetricFamily.scalings,
        *fa.metrics.callable_metric("f", len).kind.scalings,
    },
    "NotionName": (*notions.NOTIONS, *notions.ALIASES),
    "Loss": question.LOSSES,
    "Solver": schedule.SOLVERS,
    "OneHot": simplex.ONE_HOT,
    "RatioInterval": value.INTERVALS,
    "DescentMethod": counterfactual.METHODS,
    "ExtremeNull": extremes._NULLS,
    "TailPicture": tail.PICTURES,
    "SamplerName": space.SAMPLERS,
    "Link": binary.LINKS,
    "Norm": linear.NORMS,
    "PlainNorm": torch_model.NORMS,
    "KernelName": kernel.KERNELS,
}


def aliases():
    return {name: hint for name, hint in vars(literals).items() if get_origin(hint) is Literal}


@pytest.mark.parametrize("alias", CHECKED)
def test_the_alias_is_the_list_that_is_checked(alias):
    words = get_args(aliases()[alias])
    assert len(set(words)) == len(words)
    assert set(words) == set(CHECKED[alias])


def words_of(hint):
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return set().union(*map(words_of, get_args(hint)))


def typed():
    """Words of all public arguments that have some, by type and by docstring."""
    found = {}
    for label, function in signatures.public().items():
        described = signatures.described(function)
        annotated = function.__init__ if isinstance(function, type) else function
        written = getattr(annotated, "__annotations__", {})
        for name in signatures.arguments_of(function):
            hint = written.get(name, "")
            # Only words are looked up: other names may be there for type checkers alone.
            words = {word for part in re.findall(r"\w+", str(hint)) if part in aliases()
                     for word in words_of(aliases()[part])}  # fmt: skip
            entry = described.get(name)
            own = entry is not None and entry.reference is None and "..." not in entry.type
            listed = re.findall(r'"([^"]+)"', entry.type) if own else []
            if words or (listed and "Any" not in str(hint)):
                found[label, name] = words, set(listed)
    return found


TYPED = typed()


@pytest.mark.parametrize(("label", "name"), TYPED, ids=lambda entry: entry)
def test_docs_say_the_same_words(label, name):
    words, listed = TYPED[label, name]
    assert words
    if listed:
        assert listed == words


def test_many_arguments_have_words():
    assert len(TYPED) > 45
    assert get_type_hints(fa.permutation_test)["alternative"] == literals.Alternative


@pytest.fixture(scope="module")
def book():
    return Book()


#: Words are one of several kinds of values here.
OPEN = {"notion", "n_exceedances", "upper", "studentize", "resolution", "bandwidth"}


@pytest.mark.parametrize(
    ("label", "name"),
    [entry for entry in TYPED if entry[0] in CALLS and entry[1] not in OPEN],
    ids=lambda entry: entry,
)
def test_messages_accept_the_words_of_the_type(label, name, book):
    words, _ = TYPED[label, name]
    with pytest.raises(fa.errors.ArgumentError, match=f"{name} is 'no word'; accepted: ") as caught:
        CALLS[label](book, **{name: "no word"})
    assert set(re.findall(r"'([^']+)'", str(caught.value).partition("accepted: ")[2])) == words


class TestTabCompletion:
    def test_metrics_lists_what_is_public(self):
        assert dir(fa.metrics) == sorted(fa.metrics.__all__)

    @pytest.mark.parametrize("room", ["models", "datasets", "errors"])
    def test_so_do_other_public_modules(self, room):
        module = getattr(fa, room)
        assert dir(module) == sorted(module.__all__)
