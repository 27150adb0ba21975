"""Lenses of a model in an audit: what each finds, and why one could not be run."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.auditing import individual_lens, model_lenses, similarity
from fairaudit_rs.auditing.seeds import seed_of

OF_MODELS = ["individual", "influence", "extremes"]


class Book:
    """People whose sex goes with part-time work; race goes with nothing."""

    def __init__(self, n=2_000, seed=0):
        rng = np.random.default_rng(seed)
        self.sex = rng.choice(["f", "m"], n)
        self.race = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
        woman = self.sex == "f"
        self.X = pd.DataFrame(
            {
                "sex": (~woman).astype(float),
                "part": ((rng.random(n) < 0.3) | (woman & (rng.random(n) < 0.4))).astype(float),
                "income": rng.normal(5, 1, n),
                "age": rng.normal(4, 1, n),
            }
        )
        self.model = fa.LinearModel([0.5, -1.0, 1.0, 0.0], -4.5, feature_names=list(self.X.columns))
        self.y_true = (rng.random(n) < self.model.predict_proba(self.X)).astype(int)
        self.features = {"sex": self.sex, "race": self.race}

    def of(self, decider, **options):
        """Audit the decisions of a model; options go before what is known."""
        decided = decider.decision if hasattr(decider, "decision") else decider.predict
        known = {
            "y_true": self.y_true,
            "y_pred": np.asarray(decided(self.X)).astype(int),
            "sensitive_features": self.features,
            "model": decider,
            "X": self.X,
            "rng": 1,
        }
        return fa.audit(**(known | options))

    def bare(self, **options):
        """Audit decisions without a model and features."""
        return self.of(self.model, **({"model": None, "X": None} | options))


@pytest.fixture(scope="module")
def book():
    return Book()


@pytest.fixture(scope="module")
def audit(book):
    return book.of(book.model)


def row(audit, lens, attribute):
    [found] = [
        value for value in audit.rows() if (value["lens"], value["attribute"]) == (lens, attribute)
    ]
    return found


class TestWhatIsRun:
    """Each lens is the public function with what the docs say."""

    def test_individual(self, book, audit):
        codes = {"sex": np.where(book.sex == "f", "0", "1")}
        by_hand = fa.individual_test(
            book.model,
            book.X,
            book.y_true,
            fair_metric=fa.FairMetric.subspace(book.X, codes, standardize=True),
            rng=seed_of(1, "individual", "sex and race"),
        )
        result = audit.results["individual: loss_ratio by sex and race"]
        assert result == by_hand
        found = row(audit, "individual", "sex and race")
        assert (found["estimate"], found["pvalue"]) == (by_hand.estimate, by_hand.pvalue)
        assert (found["low"], found["high"]) == by_hand.confidence_interval
        assert (found["verdict"], found["binding"]) == ("not_asked", False)
        assert found["note"] == (
            "without race: no feature is significantly related to it; the attack moves 1,395 of "
            "2,000 people (69.8 %) out of the observed range of sex (0 to 1)"
        )

    def test_influence(self, book, audit):
        by_hand = fa.influence_audit(
            book.y_true,
            book.model.decision(book.X).astype(int),
            X=book.X,
            model=book.model,
            sensitive_features={"sex": book.sex},
            target="f",
            metric="true_positive_rate",
            rng=seed_of(1, "influence", "true_positive_rate", "sex"),
        )
        assert audit.results["influence: true_positive_rate by sex"] == by_hand
        found = row(audit, "influence", "sex")
        assert (found["first"], found["second"]) == ("f", "m")
        assert found["estimate"] == by_hand.estimate < 0
        assert row(audit, "influence", "race")["second"] == "all others"

    def test_extremes(self, book, audit):
        by_hand = fa.extreme_test(
            book.model,
            book.X,
            attribute="sex",
            sensitive_features={"sex": book.sex},
            rng=seed_of(1, "extremes", "sex"),
        )
        assert audit.results["extremes: ecd by sex"] == by_hand
        found = row(audit, "extremes", "sex")
        assert (found["estimate"], found["pvalue"]) == (by_hand.estimate, by_hand.pvalue)
        assert row(audit, "extremes", "race")["reason"].startswith(
            "not run: X has no column race to flip"
        )

    def test_the_gap_of_influence_is_that_of_the_question(self, audit):
        [question] = [
            value for value in audit.rows() if value["attribute"] == "sex" and value["binding"]
        ]
        assert abs(row(audit, "influence", "sex")["estimate"]) == pytest.approx(
            question["estimate"]
        )

    def test_the_worst_group_is_the_target(self, book):
        metric = {"metric": "fpr", "tolerance": 0.1}
        own = fa.Policy(name="own", criteria=[fa.Criterion(**metric)], lenses=["influence"])
        punitive = fa.Policy(
            name="own", criteria=[fa.Criterion(**metric)], lenses=["influence"], punitive=True
        )
        assert row(book.of(book.model, policy=own), "influence", "sex")["first"] == "f"
        assert row(book.of(book.model, policy=punitive), "influence", "sex")["first"] == "m"

    def test_classes_by_name(self, book):
        """A fitted model of text labels: the same numbers as of 0 and 1."""
        linear_model = pytest.importorskip("sklearn.linear_model")
        words = np.where(book.y_true == 1, "yes", "no")
        numbers = linear_model.LogisticRegression().fit(book.X, book.y_true)
        named = linear_model.LogisticRegression().fit(book.X, words)
        of_numbers = book.of(numbers, lenses=OF_MODELS)
        of_words = fa.audit(
            words,
            named.predict(book.X),
            sensitive_features=book.features,
            model=named,
            X=book.X,
            pos_label="yes",
            lenses=OF_MODELS,
            rng=1,
        )
        assert [finding.estimate for finding in of_words.others[:4]] == pytest.approx(
            [value.estimate for value in of_numbers.others[:4]]
        )
        assert all(finding.told for finding in of_words.others[:4])

    def test_margins_have_the_loss_of_margins(self, book):
        svm = pytest.importorskip("sklearn.svm")
        model = svm.LinearSVC().fit(book.X, book.y_true)
        audit = book.of(model, lenses=["individual"])
        assert audit.results["individual: loss_ratio by sex and race"].loss == "smooth_hinge"

    def test_a_pipeline_from_a_frame_with_text(self, book):
        pytest.importorskip("sklearn")
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        X = book.X.assign(sex=book.sex)
        coded = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
        model = make_pipeline(coded, LogisticRegression()).fit(X, book.y_true)
        audit = fa.audit(
            book.y_true, model.predict(X), sensitive_features=book.features, model=model, X=X, rng=1
        )
        for lens, attribute in [("individual", "sex and race"), ("extremes", "sex")]:
            assert row(audit, lens, attribute)["reason"] is None

    def test_two_columns_of_scores(self, book):
        score = book.model.predict_proba(book.X)
        flipped = book.model.predict_proba(book.X.assign(sex=1 - book.X.sex))
        scores = {"y_score": score, "counterfactual_score": flipped}
        given = book.bare(**scores)
        found = row(given, "extremes", "sex")
        assert found["reason"] is None
        modelled = row(book.of(book.model, y_score=score), "extremes", "sex")
        assert found["estimate"] == pytest.approx(modelled["estimate"])
        assert row(given, "extremes", "race")["reason"] is None
        lacking = book.bare(counterfactual_score=flipped)
        assert "needs y_score" in row(lacking, "extremes", "sex")["reason"]

    def test_columns_of_the_data(self, book, audit):
        data = book.X.rename(columns={"sex": "is_man"}).assign(
            y=book.y_true, d=book.model.decision(book.X).astype(int), s=book.sex
        )
        options = {"y_true": "y", "y_pred": "d", "sensitive_features": "s", "rng": 1}
        names = ["is_man", "part", "income", "age"]
        model = fa.LinearModel([0.5, -1.0, 1.0, 0.0], -4.5)
        for table in (data, pl.from_pandas(data)):
            found = fa.audit(data=table, X=names, model=model, **options)
            assert row(found, "influence", "s")["estimate"] == pytest.approx(
                row(audit, "influence", "sex")["estimate"]
            )
        with pytest.raises(fa.errors.ArgumentTypeError, match="X is 'part'; accepted: a frame or"):
            fa.audit(data={name: data[name] for name in data}, X="part", **options)
        with pytest.raises(fa.errors.ColumnError, match="'who'"):
            fa.audit(data=data, X=["who"], **options)


class TestWhatCannotBeRun:
    def reasons(self, audit):
        return {(finding.lens, finding.attribute): finding.reason for finding in audit.others}

    def test_every_lens_is_a_row(self, book):
        nothing = book.bare()
        reasons = self.reasons(nothing)
        assert reasons["individual", ""].startswith("not run: needs a model and X")
        assert reasons["influence", ""].startswith("not run: needs X")
        assert reasons["extremes", ""].startswith("not run: needs a model and X with the attr")
        features = self.reasons(book.of(book.model, model=None))
        assert features["individual", ""].startswith("not run: needs a model")
        assert features["influence", "sex"] is None

    def test_a_forest_has_no_gradients(self, book):
        ensemble = pytest.importorskip("sklearn.ensemble")
        model = ensemble.RandomForestClassifier(10, max_depth=3, random_state=0)
        audit = book.of(model.fit(book.X, book.y_true))
        reasons = self.reasons(audit)
        words = "not run: model is a RandomForestClassifier, whose score is piecewise constant"
        assert reasons["individual", "sex and race"].startswith(words)
        assert reasons["influence", "sex"] is None
        told = next(text for text in audit.warnings if text.startswith("not run: "))
        assert "individual by sex and race" in told
        assert "influence" not in told

    def test_whom_lenses_do_not_take(self, book):
        n = len(book.sex)
        for name, column in (
            ("sample_weight", np.linspace(0.5, 2, n)),
            ("clusters", np.arange(n) // 2),
            ("strata", np.arange(n) % 2),
        ):
            options = {"mixed_clusters": "split"} if name == "clusters" else {}
            options |= {"policy": "parity", "n_resamples": 999}
            options["y_score"] = book.model.predict_proba(book.X)
            audit = book.of(
                book.model,
                **{name: column},
                lenses=["projection", *OF_MODELS],
                evidence="none",
                **options,
            )
            reasons = self.reasons(audit)
            what = "weights" if name == "sample_weight" else name
            refused = f"not run: takes no {what}"
            assert reasons["influence", "sex"] == refused
            assert reasons["extremes", "sex"] == refused
            assert reasons["projection", "sex"] == (None if what == "weights" else refused)
            assert reasons["individual", "sex and race"] == (refused if what == "strata" else None)

    def test_without_labels_or_decisions(self, book):
        decided = book.of(book.model, y_true=None)
        reasons = self.reasons(decided)
        assert "needs labels" in reasons["individual", "sex and race"]
        assert row(decided, "influence", "sex")["metric"] == "selection_rate"
        score = book.model.predict_proba(book.X)
        scored = self.reasons(book.of(book.model, y_pred=None, y_score=score))
        assert "the policy asks for none of selection_rate, " in scored["influence", "sex"]

    def test_an_attribute_that_says_something_else_in_x(self, book):
        audit = book.of(book.model, X=book.X.assign(sex=np.arange(len(book.sex)) % 2))
        words = "not run: X has levels of sex that are not its groups"
        assert self.reasons(audit)["extremes", "sex"].startswith(words)
        aged = {"age": np.round(10 * book.X["age"]).to_numpy()}
        reasons = self.reasons(book.of(book.model, sensitive_features=aged))
        assert reasons["extremes", "age"].startswith("not run: X has levels of age that are not")

    def test_groups_that_are_too_small(self, book):
        few = slice(0, 40)
        audit = book.of(
            book.model,
            y_true=book.y_true[few],
            y_pred=book.y_true[few],
            sensitive_features={"sex": book.sex[few]},
            X=book.X[few],
        )
        reasons = self.reasons(audit)
        assert "fewer than two groups of sex" in reasons["influence", "sex"]
        assert "not run: " in reasons["extremes", "sex"]

    def test_people_without_a_known_group(self, book):
        sex = book.sex.astype(object)
        sex[:100], sex[100:150] = "Unknown", None
        audit = book.of(book.model, sensitive_features={"sex": sex}, lenses=OF_MODELS)
        note = row(audit, "individual", "sex")["note"]
        assert note.startswith("150 people without a known group are excluded; the attack moves")
        results = audit.results.values()
        assert {result.n_rows for result in results} == {len(sex) - 150}

    def test_decisions_of_another_model(self, book):
        y_pred = book.model.decision(book.X).astype(int)
        y_pred[:50] = 1 - y_pred[:50]
        found = row(book.of(book.model, y_pred=y_pred), "influence", "sex")
        assert found["reason"] is None
        assert found["note"].startswith("without the model: y_pred differs from the model in")

    def test_samples_are_said(self, book, monkeypatch):
        monkeypatch.setattr(individual_lens, "MOST_LINEAR_ROWS", 500)
        monkeypatch.setattr(model_lenses, "MAX_REGRESSION_SIZE", 1_000)
        audit = book.of(book.model)
        note = row(audit, "individual", "sex and race")["note"]
        assert note.startswith("a sample of 500 of 2,000 rows")
        assert audit.results["individual: loss_ratio by sex and race"].n_rows == 500
        assert "a sample of 500 of 2,000 rows" in audit.summary()
        assert "a sample of 500" in audit.to_markdown()
        words = "without the model: 2,000 rows of 4 features are too many for it"
        assert row(audit, "influence", "sex")["note"].startswith(words)
        assert audit == book.of(book.model)

    def test_errors_of_others_are_not_hidden(self, book):
        class Broken:
            def predict(self, X):
                raise ZeroDivisionError("inside the model")

        with pytest.raises(ZeroDivisionError, match="inside the model"):
            book.of(Broken(), y_pred=book.y_true, lenses=["influence"])

    def test_arguments(self, book):
        with pytest.raises(fa.errors.DataError, match="X has 10 rows; the data have 2,000"):
            book.of(book.model, X=book.X[:10])
        with pytest.raises(fa.errors.ArgumentError, match="lenses is 'much'; accepted: 'auto', or"):
            book.of(book.model, lenses="much")
        with pytest.raises(fa.errors.ArgumentError, match="lenses is 'shap'; accepted: 'permut"):
            book.of(book.model, lenses=["shap"])
        disordered = pd.Series(book.y_true, index=np.arange(2_000)[::-1])
        with pytest.raises(fa.errors.DataError, match="the same labels in another order"):
            book.of(book.model, y_true=disordered, y_pred=disordered)
        cells = fa.tabulate(y_pred=book.y_true, sensitive_features=book.features)
        with pytest.raises(fa.errors.ArgumentTypeError, match="X needs the rows of the data"):
            fa.audit(data=cells, X=book.X)


class TestProperties:
    def test_lenses_change_no_other_number(self, book, audit):
        alone = book.bare()
        assert alone.questions == audit.questions
        assert alone.verdict == audit.verdict
        assert alone.base_rates == audit.base_rates
        for lens in OF_MODELS:
            chosen = book.of(book.model, lenses=[lens])
            assert {value.lens for value in chosen.others} == {lens}
            assert chosen.others == tuple(
                finding for finding in audit.others if finding.lens == lens
            )
            assert chosen.policy.lenses == (lens,)
            assert chosen.questions == tuple(
                question for question in book.of(book.model, evidence="none").questions
            )

    def test_another_attribute_changes_no_influence(self, book, audit):
        one = book.of(book.model, sensitive_features={"sex": book.sex})
        name = "influence: true_positive_rate by sex"
        assert one.results[name] == audit.results[name]
        assert one.results["extremes: ecd by sex"] == audit.results["extremes: ecd by sex"]

    @staticmethod
    def shuffled(book, order, **options):
        """Audit the same people in another order."""
        mine = {
            name: option[order] if isinstance(option, np.ndarray) else option
            for name, option in options.items()
        }
        return book.of(
            book.model,
            y_true=book.y_true[order],
            y_pred=book.model.decision(book.X).astype(int)[order],
            y_score=book.model.predict_proba(book.X)[order],
            sensitive_features={name: feature[order] for name, feature in book.features.items()},
            X=book.X.iloc[order].reset_index(drop=True),
            n_resamples=999,
            evidence="none",
            **mine,
        )

    @pytest.mark.parametrize("design", ["plain", "binding", "weights", "clusters", "samples"])
    def test_the_order_of_rows_changes_no_bit(self, book, design, monkeypatch):
        n = len(book.sex)
        given = {
            "plain": {},
            "binding": {
                "policy": fa.Policy(
                    name="own",
                    criteria=[
                        fa.Criterion(metric="tpr", tolerance=0.3),
                        *(
                            fa.Criterion(lens=lens, tolerance=0.3)
                            for lens in ("projection", "influence", "extremes")
                        ),
                    ],
                )
            },
            "weights": {"sample_weight": np.random.default_rng(1).uniform(0.5, 2, n)},
            "clusters": {"clusters": np.arange(n) // 5, "mixed_clusters": "split"},
            "samples": {"sample_weight": np.random.default_rng(1).integers(1, 4, n)},
        }[design]
        if design == "samples":
            monkeypatch.setattr(individual_lens, "MOST_LINEAR_ROWS", 300)
        one = self.shuffled(book, np.arange(n), **given)
        other = self.shuffled(book, np.random.default_rng(3).permutation(n), **given)
        assert one.others == other.others
        assert one.questions == other.questions
        assert [value.lens for value in one.others].count("individual") == 1
        if design == "samples":
            note = row(one, "individual", "sex and race")["note"]
            assert note.startswith("a sample of 300 of 2,000 rows")

    def test_json_and_pickles(self, audit):
        again = fa.from_dict(json.loads(json.dumps(audit.to_dict(), allow_nan=False)))
        assert again == audit
        assert str(again) == str(audit)
        names = {type(result).__name__ for result in again.results.values()}
        assert {"IndividualResult", "InfluenceResult", "ExtremeResult"} <= names
        assert pickle.loads(pickle.dumps(audit)) == audit

    def test_threads_and_progress(self, book, audit):
        calls = []
        other = book.of(book.model, n_threads=1, progress=lambda *done: calls.append(done))
        assert other == audit
        assert calls


class TestWords:
    def test_a_line_for_each_lens_that_was_run(self, audit):
        _, told = audit.summary().split("Other lenses, not binding:\n")
        starts = [line.split(":")[0] for line in told.splitlines()]
        assert starts == [
            "- individual, sex and race", "- influence, sex", "- influence, race", "- extremes, sex"
        ]  # fmt: skip
        assert "Related is not the cause" in told
        assert " fair" not in str(audit).replace("unfair", "")
        assert "- influence, sex" in audit.to_markdown().replace("\\", "")
        assert "influence" in audit._repr_html_()

    @pytest.mark.parametrize(
        ("coef", "words"),
        [
            (0.0, "less than 1.25 times is shown, for this attack alone"),
            (2.0, "more than 1.25 times is shown"),
        ],
    )
    def test_individual(self, book, coef, words):
        model = fa.LinearModel([coef, 0.0, 1.0, 0.0], -4.5)
        features = {"sex": book.sex}
        audit = book.of(model, sensitive_features=features, lenses=["individual"])
        assert words in audit.summary()


class TestWordsOfExtremes:
    def told(self, gain, group):
        audit = fa.audit(
            y_pred=(gain > 0.1).astype(int),
            y_score=np.zeros(len(gain)),
            counterfactual_score=gain,
            sensitive_features={"g": group},
            lenses=["extremes"],
        )
        [found] = audit.others
        return audit, found.told

    def test_the_worst_group_is_named_apart_from_the_clearest_pair(self):
        """The group with the highest worst case is small: two others differ more clearly."""
        rng = np.random.default_rng(0)
        sizes = [12_000, 12_000, 300]
        gain = np.repeat([0.3, 0.2, 0.33], sizes) * rng.beta(2, 4, sum(sizes))
        audit, told = self.told(gain, np.repeat(["a", "b", "few"], sizes))
        result = audit.results["extremes: ecd by g"]
        levels = {group: level.value for group, level in result.levels.items()}
        assert max(levels, key=levels.get) == "few"
        assert {result.clearest.first, result.clearest.second} == {"a", "b"}
        words = f"{levels['few']:.3f} in few, the most; of 3 groups a ({levels['a']:.3f}) and b ("
        assert words in told
        assert "differ most clearly, by 0." in told

    def test_close_limits_are_told_apart(self):
        """Three digits would read 0.104 (0.104 to 0.104)."""
        rng = np.random.default_rng(0)
        gain = np.repeat([0.204, 0.1], 5_000) + 1e-5 * rng.random(10_000)
        audit, told = self.told(gain, np.repeat(["a", "b"], 5_000))
        low, high = audit.results["extremes: ecd by g"].confidence_interval
        shown = told.partition("difference of ")[2].partition(",")[0]
        value, _, limits = shown.partition(" (")
        least, _, most = limits.partition(" to ")
        assert float(least) < float(value) <= float(most)
        assert (float(least), float(most)) == pytest.approx((low, high), abs=1e-7)
        [line] = [
            entry for entry in audit.to_markdown().splitlines() if entry.startswith("| extremes")
        ]
        _, least, most = (float(part) for part in line.split("|")[4:7])
        assert least < most

    def test_equal_limits_say_what_they_mean(self):
        gain = np.where(np.arange(10_000) % 2, 0.104, 0.0) / np.repeat([1, 2], 5_000)
        audit, told = self.told(gain, np.repeat(["a", "b"], 5_000))
        words = "0.052 on both sides, as rows near the level have equal values"
        assert words in told
        assert words in audit.results["extremes: ecd by g"].summary()


class TestLikeness:
    """Directions that a regression finds of noise are no differences that must not count."""

    #: Neither sex nor what stands for it plays a part; three columns, of which one is used.
    def audited(self, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1_000, 3))
        sex = np.where(X[:, 1] + rng.normal(size=1_000) > 0, "m", "f")
        race = rng.choice(["a", "b"], 1_000)
        model = fa.LinearModel([1.0, 0.0, 0.0])
        y = (rng.random(1_000) < model.predict_proba(X)).astype(int)
        return fa.audit(
            y,
            model.decision(X).astype(int),
            sensitive_features={"sex": sex, "race": race},
            model=model,
            X=X,
            lenses=["individual"],
            rng=1,
        )

    def test_attributes_that_go_with_nothing_are_left_out(self, monkeypatch):
        audit = self.audited()
        [found] = audit.others
        assert found.note == "without race: no feature is significantly related to it"
        assert found.high < 1.25
        monkeypatch.setattr(similarity, "p_of_no_relation", lambda *_: 0.0)
        [broken] = self.audited().others
        assert broken.low > 1.25

    def test_all_that_goes_with_nothing_is_a_reason(self, book):
        audit = book.of(book.model, sensitive_features={"race": book.race}, lenses=["individual"])
        assert audit.others[0].reason.startswith("not run: X has no feature that is significantly")

    def test_directions_that_span_everything_are_a_reason(self, book):
        model = fa.LinearModel([1.0], -0.5)
        given = {"sensitive_features": {"sex": book.sex}, "lenses": ["individual"]}
        audit = book.bare(model=model, X=book.X[["part"]], **given)
        assert "span all 1 features" in audit.others[0].reason

    def test_pillai_of_two_groups_is_hotelling(self):
        """With two groups and one feature the trace is R squared."""
        rng = np.random.default_rng(0)
        group = np.repeat(["a", "b"], [40, 60])
        x = rng.normal(size=100) + 0.3 * (group == "a")
        squared = np.corrcoef(x, group == "a")[0, 1] ** 2
        expected = stats.chi2.sf(100 * squared, 1)
        assert similarity.p_of_no_relation(x[:, None], group) == pytest.approx(expected)
        # Columns that repeat each other, or are constant, say nothing more.
        more = np.column_stack([x, 3 - 2 * x, np.full(100, 7.0)])
        assert similarity.p_of_no_relation(more, group) == pytest.approx(expected)
        assert similarity.p_of_no_relation(more[:, 2:], group) == 1.0

    @pytest.mark.calibration
    def test_its_level(self):
        rng, n = np.random.default_rng(1), 2_000
        rejected = sum(
            similarity.p_of_no_relation(rng.exponential(size=(300, 4)), rng.integers(0, 3, 300))
            <= 0.05
            for _ in range(n)
        )
        low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.05)
        assert low <= rejected <= high
