"""Policies and criteria: what they accept, and what they say."""

import copy
import dataclasses
import json
import math
import pickle
import re

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, DataError, UnknownMetricError


def criterion(**given):
    return fa.Criterion(**{"metric": "tpr", "tolerance": 0.1, **given})


def policy(**given):
    return fa.Policy(**{"name": "own", "criteria": [criterion()], **given})


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"tolerance": 0}, "tolerance is 0; accepted: a finite number above 0"),
            (
                {"tolerance": 10},
                "tolerance is 10.0; .* below 1, .*true_positive_rate goes from 0 to 1",
            ),
            ({"tolerance": 1.0}, "accepted: a number above 0 and below 1"),
            (
                {"tolerance": None, "ratio": 1.25},
                "ratio is 1.25; accepted: a number strictly between",
            ),
            ({"ratio": 0.8}, "tolerance is 0.1 and ratio is 0.8. A criterion takes one"),
            ({"tolerance": None}, "tolerance is None and ratio is None, but true_pos.* binds"),
            (
                {"metric": "f1", "tolerance": None, "ratio": 0.8},
                "ratio is 0.8, but f1 is not a share",
            ),
            (
                {"metric": "ece"},
                "tolerance is 0.1, but calibration_error has no test.*mean_residual",
            ),
            ({"metric": "eodds"}, "each of true_positive_rate and false_positive_rate"),
            ({"metric": "pearson"}, "pearson is about a continuous attribute"),
            ({"attributes": ()}, "attributes is empty"),
            ({"attributes": ("sex", "sex")}, "attributes holds 'sex' twice"),
            (
                {"reference": "white"},
                "reference is 'white', a group of one attribute, but attributes is not given",
            ),
            (
                {"reference": "white", "attributes": ("a", "b")},
                "Give the one that it belongs to, as in attributes =",
            ),
        ],
    )
    def test_values_of_criteria(self, given, message):
        with pytest.raises(ArgumentError, match=message):
            criterion(**given)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"tolerance": "0.1"}, "tolerance is '0.1'; accepted: a finite number"),
            ({"ratio": True, "tolerance": None}, "ratio is True; accepted: a number"),
            ({"attributes": "sex"}, "attributes is 'sex'; accepted: a list of texts"),
            ({"attributes": (1,)}, "attributes holds 1; accepted: a list of texts"),
            ({"binding": "yes"}, "binding is 'yes'; accepted: True, False"),
            ({"reference": ["a"]}, r"reference is \['a'\]; accepted: a value of the data"),
            ({"reference": float("nan")}, "reference is nan; accepted: a value of the data"),
            ({"metric": len}, "metric is <built-in.*; accepted: the name of a metric"),
        ],
    )
    def test_types_of_criteria(self, given, message):
        with pytest.raises(ArgumentTypeError, match=message):
            criterion(**given)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "metric is None and lens is None. Name a metric such as 'tpr', or a lens"),
            ({"lens": "extremes", "metric": "tpr"}, "lens is 'extremes' and metric is 'tpr'. A cr"),
            ({"lens": "permutation"}, "lens is 'permutation'; accepted: 'projection', 'individual"),
            (
                {"lens": "extremes"},
                "tolerance is None, but the lens extremes binds. .* such as 0.1",
            ),
            (
                {"lens": "individual"},
                "the lens individual binds. .* such as 1.25, or set bin",
            ),
            (
                {"lens": "individual", "tolerance": 1},
                "tolerance is 1.0; accepted for the individual lens",
            ),
            (
                {"lens": "influence", "tolerance": 1},
                "tolerance is 1.0; accepted for the lens influ",
            ),
            ({"lens": "extremes", "tolerance": 0}, "tolerance is 0; accepted: a finite number ab"),
            (
                {"lens": "extremes", "ratio": 0.8},
                "ratio is 0.8, but extremes is a lens, which take",
            ),
            (
                {"lens": "extremes", "tolerance": 0.1, "reference": "highest"},
                "reference is 'highest', but extremes is a lens, which takes a tolerance",
            ),
            (
                {"lens": "individual", "tolerance": 1.25, "attributes": ["sex"]},
                r"attributes is \['sex'\], but the individual lens takes all attributes at once",
            ),
        ],
    )
    def test_values_of_lenses(self, given, message):
        with pytest.raises(ArgumentError, match=message):
            fa.Criterion(**given)

    def test_a_lens_has_one_criterion_for_each_attribute(self):
        def of(*attributes):
            return [
                fa.Criterion(lens="extremes", tolerance=0.1 + i / 10, attributes=attribute)
                for i, attribute in enumerate(attributes)
            ]

        assert len(policy(criteria=of(["sex"], ["race"])).binding) == 2
        words = "criteria has the lens extremes twice"
        with pytest.raises(ArgumentError, match=f"{words} for sex. Keep one criterion"):
            policy(criteria=of(["sex", "age"], ["race", "sex"]))
        for both in ((None, ["sex"]), (["sex"], None), (None, None)):
            with pytest.raises(ArgumentError, match=words):
                policy(criteria=of(*both))
        policy(criteria=[*of(None), fa.Criterion(lens="influence", tolerance=0.1)])

    def test_a_lens_that_is_not_computed(self):
        own = [fa.Criterion(lens="extremes", tolerance=0.1)]
        words = r"lenses is \['influence'\], but a criterion is about extremes. .*'auto'"
        with pytest.raises(ArgumentError, match=words):
            policy(criteria=own, lenses=["influence"])
        assert policy(criteria=own, lenses=["influence", "extremes"]).binding == tuple(own)

    def test_unknown_metric(self):
        with pytest.raises(UnknownMetricError, match="did you mean 'true_positive_rate'"):
            criterion(metric="true_positve_rate")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"name": " "}, "name is ' '; accepted: a text, not empty"),
            ({"criteria": []}, "criteria is empty"),
            ({"alpha": 0}, "alpha is 0; accepted: a number strictly between 0 and 1"),
            ({"adjustment": "bh"}, "adjustment is 'bh'; accepted: 'holm', 'none'"),
            ({"floor": 29}, "floor is 29; accepted: a whole number of 30 or"),
            ({"min_coverage": 1.1}, "min_coverage is 1.1; accepted: a number above 0 and up to 1"),
            ({"min_coverage": 0}, "min_coverage is 0"),
            ({"bands": {"age": (45, 25)}}, r"bands of 'age' is \(45, 25\); accepted: numbers that"),
            ({"bands": {"age": ()}}, r"bands of 'age' is \(\); accepted"),
            ({"bands": {"age": (float("inf"),)}}, "bands of 'age' is inf; accepted: a finite"),
            ({"lenses": "all"}, "lenses is 'all'; accepted: 'auto', or a list of 'permutation'"),
            ({"lenses": ()}, "lenses is empty"),
            ({"lenses": ("permutation", "x")}, "lenses is 'x'; accepted: 'permutation'"),
            (
                {"intersections": "all"},
                "intersections is 'all'; accepted: 'inform', 'bind', 'skip'",
            ),
            ({"rule": "us"}, "rule is 'us'; accepted: 'us_eeoc'"),
            (
                {"criteria": [criterion(), criterion(metric="recall", tolerance=0.2)]},
                "tolerance twice",
            ),
            ({"unknown": ("?", "?")}, r"unknown holds '\?' twice"),
        ],
    )
    def test_values_of_policies(self, given, message):
        with pytest.raises(ArgumentError, match=message):
            policy(**given)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"name": 3}, "name is 3; accepted: a text"),
            ({"criteria": criterion()}, "criteria is Criterion.*; accepted: a list of Criterion"),
            ({"criteria": ["tpr"]}, "criteria holds 'tpr'; accepted: a list of Criterion"),
            ({"alpha": "5%"}, "alpha is '5%'"),
            ({"floor": 30.5}, "floor is 30.5; accepted: a whole number"),
            ({"favourable": ["yes"]}, r"favourable is \['yes'\]; accepted: a value of the data"),
            ({"punitive": 1}, "punitive is 1; accepted: True, False"),
            ({"bands": [25, 45]}, r"bands is \[25, 45\]; accepted: cuts by attribute"),
            ({"bands": {"age": "25"}}, "bands of 'age' is '25'; accepted: numbers that grow"),
            ({"bands": {"age": (True, 3)}}, "bands of 'age' is True; accepted: a finite number"),
            ({"unknown": "?"}, r"unknown is '\?'; accepted: a list of texts"),
            ({"source": None}, "source is None; accepted: a text"),
            ({"lenses": 3}, "lenses is 3; accepted: 'auto', or a list"),
        ],
    )
    def test_types_of_policies(self, given, message):
        with pytest.raises(ArgumentTypeError, match=message):
            policy(**given)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({"tolerence": 0.1}, "tolerence is not a key of a policy .*0.1.*accepted: 'name'"),
            ({"favorable": 1}, "favorable is not a key of a policy .*did you mean 'favourable'?"),
            ({"criteria": [{"metric": "tpr", "tolerence": 0.1}]}, "did you mean 'tolerance'?"),
            ({"criteria": [{"tolerance": 0.1}]}, "metric is missing in a criterion"),
            ({"schema_version": 9}, "schema_version is 9; accepted: 1"),
        ],
    )
    def test_dicts(self, content, message):
        with pytest.raises(ArgumentError, match=message):
            fa.Policy.from_dict({**policy().to_dict(), **content})

    def test_dicts_of_wrong_shapes(self):
        with pytest.raises(ArgumentTypeError, match="a policy is 3; accepted: a table"):
            fa.Policy.from_dict(3)
        with pytest.raises(ArgumentTypeError, match="criteria is 'tpr'; accepted: a list"):
            fa.Policy.from_dict({"name": "x", "criteria": "tpr"})
        with pytest.raises(ArgumentTypeError, match="a criterion is 'tpr'; accepted: a table"):
            fa.Policy.from_dict({"name": "x", "criteria": ["tpr"]})
        with pytest.raises(ArgumentError, match="name is missing in a policy"):
            fa.Policy.from_dict({"criteria": []})


class TestValues:
    def test_names_are_those_of_the_registry(self):
        assert criterion(metric="recall") == criterion(metric="TPR")
        assert criterion(metric="recall").metric == "true_positive_rate"

    def test_sequences_and_scalars_of_numpy_become_plain(self):
        one = criterion(attributes=["sex"], reference=np.str_("m"), tolerance=np.float32(0.5))
        assert (one.attributes, type(one.reference), type(one.tolerance)) == (("sex",), str, float)
        assert type(policy(favourable=np.int64(1)).favourable) is int

    def test_values_that_are_given_stay_as_they_are(self):
        bands = {"age": [30]}
        one = policy(bands=bands)
        bands["age"].append(20)
        assert one.bands == {"age": (30,)}
        with pytest.raises(TypeError, match="does not support item assignment"):
            one.bands["age"] = (1,)
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.alpha = 0.5

    @pytest.mark.parametrize(
        "entry",
        [
            policy(),
            policy(bands={"income": (1.5, 2)}, favourable=False, lenses=["projection"]),
            policy(criteria=[criterion(reference=("highest",), attributes=["level"])], floor=100),
            fa.Policy.preset("us_eeoc"),
            fa.Policy.default(labels=True, decisions=True),
        ],
        ids=lambda entry: entry.name,
    )
    def test_copies_are_equal(self, entry):
        for again in (
            pickle.loads(pickle.dumps(entry)),
            copy.deepcopy(entry),
            fa.Policy.from_dict(json.loads(json.dumps(entry.to_dict()))),
            eval(repr(entry), {"Policy": fa.Policy, "Criterion": fa.Criterion})
            if not entry.reason
            else dataclasses.replace(entry),
        ):
            assert again == entry
            assert hash(again) == hash(entry)
            assert again.bands == entry.bands
        assert entry != dataclasses.replace(entry, alpha=0.01)
        assert entry != dataclasses.replace(entry, bands={})

    def test_binding_and_informative(self):
        one = policy(criteria=[criterion(), criterion(metric="fpr", binding=False)])
        assert [c.metric for c in one.binding] == ["true_positive_rate"]
        assert [c.metric for c in one.informative] == ["false_positive_rate"]

    def test_unknown_labels_whatever_their_case(self):
        values = ("UNKNOWN ", "?", "", None, math.nan, "man", 0)
        assert [policy().is_unknown(value) for value in values] == [
            True, True, True, True, True, False, False,
        ]  # fmt: skip
        assert not policy(unknown=()).is_unknown("?")

    def test_the_positive_label(self):
        assert policy().positive_label([0, 1]) is None
        assert policy(favourable=0).positive_label([0, 1]) == 0
        assert policy(favourable="0").positive_label([0, 1]) == 0
        # The punishment is positive, so that FPR counts the wrongly accused.
        assert policy(favourable="free", punitive=True).positive_label(["jail", "free"]) == "jail"
        with pytest.raises(DataError, match="favourable is 'yes', which is not a value of labels"):
            policy(favourable="yes").positive_label([0, 1])
        with pytest.raises(DataError, match="favourable is 'free' and there are 2 other values"):
            policy(favourable="free", punitive=True).positive_label(["jail", "fine", "free"])


class TestWords:
    def test_the_first_line(self):
        one = policy(
            criteria=[
                criterion(metric="ppv"),
                criterion(
                    metric="selection_rate", tolerance=None, ratio=0.8, reference="highest",
                    attributes=["sex", "race"],
                ),
                criterion(metric="auc", binding=False),
            ],
            favourable="granted",
            alpha=0.01,
            floor=50,
            intersections="bind",
        )  # fmt: skip
        assert (
            one.describe()
            == str(one)
            == (
                'policy "own"; binding: positive_predictive_value (share of positive labels among '
                "positive decisions), differences up to 0.1; selection_rate (share of positive "
                "decisions), ratios of at least 0.8 to the highest group, for sex and race; "
                "alpha 0.01; floor 50; intersections bind; favourable: granted"
            )
        )

    @pytest.mark.parametrize(
        ("lens", "tolerance", "words", "text"),
        [
            ("extremes", 0.1, "worst cases of a flip", "differences up to 0.1"),
            ("influence", 0.1, "gap of a group to all others", "differences up to 0.1"),
            ("individual", 1.25, "growth of the loss between people", "growth up to 1.25 times"),
            ("projection", 0.1, "departure of scores from equal rates, which never", "differences"),
        ],
    )
    def test_lenses(self, lens, tolerance, words, text):
        one = fa.Criterion(lens=lens, tolerance=tolerance)
        assert str(one).startswith(f"{lens}, {text}")
        assert f"binding: {lens} ({words}" in policy(criteria=[one]).describe()
        shown = fa.Criterion(lens=lens, binding=False)
        assert str(shown) == f"{lens}, no threshold"
        assert repr(shown) == f"Criterion(lens={lens!r}, binding=False)"
        assert fa.Criterion.from_dict(one.to_dict()) == one

    def test_a_default_says_so(self):
        text = fa.Policy.default(labels=True, decisions=True).describe()
        assert text.startswith(
            'policy "opportunity" (the default, because labels and decisions were given); binding: '
            "true_positive_rate (share of positive decisions among positive labels), differences "
            "up to 0.1; favourable: the positive decision"
        )

    def test_a_repr_is_short(self):
        assert repr(policy()) == (
            "Policy(name='own', criteria=(Criterion(metric='true_positive_rate', tolerance=0.1),))"
        )
        assert repr(fa.Policy.preset("parity")) == "Policy.preset('parity')"
        changed = dataclasses.replace(fa.Policy.preset("parity"), alpha=0.1)
        assert re.match(r"Policy\(name='parity', .*alpha=0.1\)$", repr(changed))


class TestDefault:
    @pytest.mark.parametrize(
        ("given", "name", "binds"),
        [
            ("labels decisions", "opportunity", ("true_positive_rate", 0.1, None)),
            ("labels decisions scores", "opportunity", ("true_positive_rate", 0.1, None)),
            ("decisions", "four_fifths", ("selection_rate", None, 0.8)),
            ("decisions scores", "four_fifths", ("selection_rate", None, 0.8)),
            ("labels scores", "calibration", ("mean_residual", 0.05, None)),
        ],
    )
    def test_one_criterion_binds(self, given, name, binds):
        one = fa.Policy.default(**dict.fromkeys(given.split(), True))
        assert one.name == name
        assert [(c.metric, c.tolerance, c.ratio) for c in one.binding] == [binds]
        assert (one.alpha, one.adjustment, one.floor, one.min_coverage) == (0.05, "holm", 30, 0.95)
        assert one.intersections == "inform"

    def test_what_cannot_be_computed_is_left_out(self):
        few = {c.metric for c in fa.Policy.default(labels=True, decisions=True).criteria}
        all_three = fa.Policy.default(labels=True, decisions=True, scores=True)
        assert {c.metric for c in all_three.criteria} - few == {"mean_residual"}

    @pytest.mark.parametrize("given", ["", "labels", "scores"])
    def test_nothing_to_go_by(self, given):
        with pytest.raises(ArgumentError, match=f"no default policy for {given or 'no columns'}"):
            fa.Policy.default(**dict.fromkeys(given.split(), True))

    def test_flags(self):
        with pytest.raises(ArgumentTypeError, match=r"scores is \[1\]; accepted: True, False"):
            fa.Policy.default(labels=True, scores=[1])
