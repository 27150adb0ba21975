"""A policy that names an attribute the data do not have is refused, wherever the name stands."""

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main


def loans(n=2_000):
    """Women are approved in 20 % and men in 70 %; age plays no part."""
    sex = np.tile(["f", "m"], n // 2)
    approved = np.where(sex == "f", np.arange(n) % 10 < 2, np.arange(n) % 10 < 7)
    return pl.DataFrame(
        {
            "approved": approved.astype(int),
            "race": np.repeat(["a", "b"], n // 2),
            "sex": sex,
            "age": 20 + np.arange(n) % 50,
        }
    )


def audited(policy, attributes=("race", "age")):
    data = loans()
    return fa.audit(
        data=data,
        y_pred="approved",
        sensitive_features=list(attributes),
        policy=policy,
        rng=1,
    )


def own(*criteria, **options):
    return fa.Policy(
        name="own", criteria=[fa.Criterion(**criterion) for criterion in criteria], **options
    )


def rate(**options):
    return {"metric": "selection_rate", "tolerance": 0.1, **options}


NEAR = "which is not an attribute of the data; did you mean 'race'? accepted: 'race', 'age', or "
#: Policies, and what their errors say.
REFUSED = {
    "criterion": (own(rate(attributes=["rase"])), f"criterion selection_rate has 'rase', {NEAR}"),
    "capital": (own(rate(attributes=["Race"])), f"criterion selection_rate has 'Race', {NEAR}"),
    "second of two": (own(rate(attributes=["age", "rase"])), f"has 'rase', {NEAR}"),
    "not binding": (own(rate(), rate(attributes=["rase"], binding=False)), f"'rase', {NEAR}"),
    "lens": (
        own(rate(), {"lens": "extremes", "tolerance": 0.1, "attributes": ["rase"]}),
        f"criterion extremes has 'rase', {NEAR}",
    ),
    "reference": (own(rate(attributes=["rase"], reference="a")), f"has 'rase', {NEAR}"),
    "references": (
        fa.Policy.preset("fair_lending", ratio=0.8, references={"rase": "a"}),
        f"references has 'rase', {NEAR}",
    ),
    "bands": (own(rate(), bands={"rase": (1, 2)}), f"bands has 'rase', {NEAR}"),
    "forgotten": (
        own(rate(attributes=["sex"])),
        "has 'sex', which is not an attribute of the data; accepted: 'race', 'age', or another "
        "column that you add to sensitive_features",
    ),
}


class TestPython:
    @pytest.mark.parametrize("name", REFUSED)
    def test_unknown_attributes_are_refused(self, name):
        policy, words = REFUSED[name]
        with pytest.raises(fa.errors.ArgumentError, match=re.escape(words)):
            audited(policy)

    def test_known_ones_are_not(self):
        policy = own(rate(attributes=["sex"]), rate(attributes=["age"]), bands={"Age": (40,)})
        found = audited(policy, ("sex", "age"))
        assert (found.verdict, found.exit_code(strict=True)) == ("fail", 1)
        assert [question.attribute for question in found.questions] == ["sex", "age"]

    def test_the_default_bands_need_no_age(self):
        assert audited(own(rate()), ("race",)).questions[0].pairs

    def test_the_audit_page(self):
        """Women are approved in 20 % and men in 70 %: it passed, as the column is `gender`."""
        policy = own(
            {"metric": "selection_rate", "ratio": 0.8, "attributes": ["sex"]},
            rate(attributes=["age"]),
        )
        data = loans().rename({"sex": "gender"})
        with pytest.raises(fa.errors.ArgumentError, match="has 'sex', which is not an attribute"):
            fa.audit(
                data=data,
                y_pred="approved",
                sensitive_features=["gender", "age"],
                policy=policy,
                rng=1,
            )


class TestBands:
    @pytest.mark.parametrize(
        ("bands", "words"),
        [
            (
                {"race": (1, 2)},
                "bands of 'race' is [1, 2], which does not split 'race', with the val",
            ),
            (
                {"age": (80, 90)},
                "bands of 'age' is [80, 90], which does not split 'age', with the va",
            ),
            (
                {"AGE": (1, 2)},
                "bands of 'AGE' is [1, 2], which does not split 'age', with the values",
            ),
        ],
    )
    def test_bands_that_cut_nothing_are_refused(self, bands, words):
        """They were ignored, and ages made 50 groups."""
        with pytest.raises(fa.errors.ArgumentError, match=re.escape(words)):
            audited(own(rate(), bands=bands))

    def test_bands_that_are_in_the_data_already(self):
        data = loans().with_columns(
            age=pl.when(pl.col("age") <= 40).then(pl.lit("up to 40")).otherwise(pl.lit("above 40"))
        )
        found = fa.audit(
            data=data,
            y_pred="approved",
            sensitive_features="age",
            policy=own(rate(), bands={"age": (40,)}),
        )
        assert {group.group for group in found.questions[0].groups} == {"up to 40", "above 40"}

    def test_the_default_ones_in_capitals(self):
        """As `fairaudit init` writes them: people above 45 alone are no error."""
        data = loans().rename({"age": "Age"}).with_columns(pl.col("Age") + 40)
        found = fa.audit(
            data=data,
            y_pred="approved",
            sensitive_features="Age",
            policy=own(rate(), bands={"Age": (25, 45)}),
        )
        assert found.questions
        fa.audit(
            data=data,
            y_pred="approved",
            sensitive_features="race",
            policy=own(rate(), bands={"Age": (25, 45)}),
        )

    def test_the_default_ones_leave_codes_alone(self):
        data = loans().with_columns(age=pl.col("age") % 2)
        found = fa.audit(data=data, y_pred="approved", sensitive_features="age", policy=own(rate()))
        assert {group.group for group in found.questions[0].groups} == {0, 1}

    def test_numbers_stored_as_text_are_refused(self):
        """One "?" makes a column of ages text: without an error each age would be a group."""
        ages = np.random.default_rng(0).integers(18, 70, 400).astype(str)
        ages[:20] = "?"
        with pytest.raises(fa.errors.ArgumentError, match="'Age' holds numbers as text") as error:
            fa.audit(y_pred=[0, 1] * 200, sensitive_features={"Age": ages}, rng=1)
        assert error.value.argument == "bands"
        bands = ["18-29", "30+"] * 200
        audit = fa.audit(y_pred=[0, 0, 1, 1] * 100, sensitive_features={"Age": bands}, rng=1)
        assert {rate.group for rate in audit.base_rates} == {"18-29", "30+"}


class TestFiles:
    @pytest.mark.parametrize(
        ("table", "words"),
        [
            ('attributes = ["rase"]', f"has 'rase', {NEAR}"),
            ('attributes = ["Race"]', f"has 'Race', {NEAR}"),
        ],
    )
    def test_criteria(self, tmp_path, table, words):
        path = tmp_path / "own.toml"
        path.write_text(
            '[policy]\nname = "own"\n[[policy.criterion]]\nmetric = "selection_rate"\n'
            f"tolerance = 0.1\n{table}\n"
        )
        with pytest.raises(fa.errors.ArgumentError, match=re.escape(words)):
            audited(str(path))

    def test_references_and_bands(self, tmp_path):
        path = tmp_path / "own.toml"
        path.write_text(
            '[policy]\npreset = "fair_lending"\nratio = 0.8\nreferences = { rase = "a" }\n'
        )
        with pytest.raises(
            fa.errors.ArgumentError, match=re.escape(f"references has 'rase', {NEAR}")
        ):
            audited(str(path))
        path.write_text('[policy]\npreset = "parity"\nbands = { rase = [1, 2] }\n')
        with pytest.raises(fa.errors.ArgumentError, match=re.escape(f"bands has 'rase', {NEAR}")):
            audited(str(path))


class TestCommand:
    def run(self, tmp_path, criterion, *attributes):
        data, policy = tmp_path / "loans.csv", tmp_path / "own.toml"
        loans().write_csv(data)
        policy.write_text(
            '[policy]\nname = "own"\n[[policy.criterion]]\nmetric = "selection_rate"\n'
            f"tolerance = 0.1\n{criterion}\n"
        )
        named = [word for attribute in attributes for word in ("-s", attribute)]
        options = ["--policy", policy, "--y-pred", "approved", "--seed", "1", "--strict"]
        call = ["audit", data, *options, *named]
        return CliRunner().invoke(main, [str(value) for value in call])

    def test_a_typing_error(self, tmp_path):
        found = self.run(tmp_path, 'attributes = ["rase"]', "race", "sex")
        assert found.exit_code == 2
        assert "has 'rase', which is not an attribute of the data; did you mean 'race'?" in (
            found.output
        )

    def test_a_forgotten_option(self, tmp_path):
        found = self.run(tmp_path, 'attributes = ["sex"]', "race")
        assert found.exit_code == 2
        assert "has 'sex', which is not an attribute of the data" in found.output
        assert "another column that you add to --sensitive" in found.output

    def test_nothing_that_binds(self, tmp_path):
        found = self.run(tmp_path, "binding = false", "sex")
        assert found.exit_code == 3


class TestStrict:
    def test_a_policy_that_cannot_fail_is_undecided(self):
        found = audited(own(rate(binding=False)), ("sex",))
        assert (found.verdict, found.exit_code(), found.exit_code(strict=True)) == (
            "not_asked",
            0,
            3,
        )

    @pytest.mark.parametrize("rule", ["nyc_ll144", "co_insurance_draft"])
    def test_a_rule_without_a_threshold_is_not(self, rule):
        found = audited(rule, ("race",))
        assert (found.verdict, found.exit_code(strict=True)) == ("not_asked", 0)

    def test_a_policy_without_a_pass_is_not(self):
        found = audited(own(rate(), has_pass=False), ("race",))
        assert (found.verdict, found.exit_code(strict=True)) == ("no_fail", 0)
