"""The command ``fairaudit``: what it prints, writes and refuses."""

import json
import re
import shutil
import subprocess
import sysconfig

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main

OLD = '{"old": true}\n'


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows(n=400, seed=3):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    return pl.DataFrame(
        {
            "repaid": label,
            "approved": (rng.random(n) < 0.3 + 0.4 * label).astype(int),
            "score": np.clip(0.6 * rng.random(n) + 0.4 * label, 0, 1),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.choice(["old", "mid", "young"], n),
        }
    )


def strict_json(text):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def book(tmp_path):
    """A CSV file of loans."""
    path = tmp_path / "loans.csv"
    rows().write_csv(path)
    return path


ROLES = ("--y-true", "repaid", "--y-pred", "approved")
BY_SEX = (*ROLES, "-s", "sex")
BY_AGE = (*ROLES, "-s", "age", "--n-resamples", "199")


def check_refused(result, message):
    """Exit code 2 and one line that names what is wrong."""
    assert result.exit_code == 2
    assert result.stderr.startswith("fairaudit: error: ")
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stdout == ""


class TestArguments:
    def refused(self, tmp_path, message, data, *arguments, metric="true_positive_rate"):
        """Refused, and files beside are left as they were."""
        target = tmp_path / "old.json"
        target.write_text(OLD)
        before = sorted(tmp_path.iterdir())
        result = run("permutation", data, "-m", metric, "--json", target, *arguments)
        check_refused(result, message)
        assert target.read_text() == OLD
        assert sorted(tmp_path.iterdir()) == before

    def test_unknown_metric(self, tmp_path, book):
        self.refused(
            tmp_path,
            "--metric is 'true_positve_rate'.*did you mean 'true_positive_rate'",
            book,
            *BY_SEX,
            metric="true_positve_rate",
        )

    @pytest.mark.parametrize(
        ("name", "near"), [("recal", "true_positive_rate"), ("F-scor", "f1"), ("acuracy", "accur")]
    )
    def test_misspelt_aliases(self, name, near, tmp_path, book):
        self.refused(tmp_path, f"did you mean .*'{near}", book, *BY_SEX, metric=name)

    def test_metric_like_no_other(self, tmp_path, book):
        self.refused(
            tmp_path,
            "--metric is 'qqqqqq', which is not the name",
            book,
            *BY_SEX,
            metric="qqqqqq",
        )

    def test_second_metric_unknown(self, tmp_path, book):
        self.refused(tmp_path, "--metric is 'qqqqqq'", book, *BY_SEX, "-m", "qqqqqq")

    @pytest.mark.parametrize("option", ["--y-true", "--y-pred", "-s", "--strata"])
    def test_missing_column(self, option, tmp_path, book):
        self.refused(
            tmp_path,
            "column 'nope' does not exist; the data have: 'repaid', 'approved', 'score', 'sex'",
            book,
            *BY_SEX,
            option,
            "nope",
        )

    def test_role_that_is_needed(self, tmp_path, book):
        self.refused(
            tmp_path,
            "rate needs decisions. Pass --y-pred ",
            book,
            "-s",
            "sex",
            *ROLES[:2],
        )
        self.refused(
            tmp_path,
            "rate needs labels .* Pass --y-true ",
            book,
            "-s",
            "sex",
            *ROLES[2:],
        )

    @pytest.mark.parametrize("row", ["1,1,0.5,f,old,9\n", "1,1,0.5\n", "1\n"])
    def test_ragged_csv(self, row, tmp_path, book):
        with book.open("a") as file:
            file.write(row)
        self.refused(tmp_path, r"loans\.csv", book, *BY_SEX)

    def test_empty_csv(self, tmp_path):
        (tmp_path / "empty.csv").write_text("")
        self.refused(tmp_path, r"empty\.csv cannot be read", tmp_path / "empty.csv", *BY_SEX)

    def test_csv_without_rows(self, tmp_path):
        rows().head(0).write_csv(tmp_path / "empty.csv")
        self.refused(tmp_path, "no rows", tmp_path / "empty.csv", *BY_SEX)

    @pytest.mark.parametrize("kept", [0, 0.5, 0.99])
    def test_truncated_parquet(self, kept, tmp_path):
        path = tmp_path / "loans.parquet"
        rows().write_parquet(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(kept * len(whole))])
        self.refused(tmp_path, r"loans\.parquet cannot be read", path, *BY_SEX)

    @pytest.mark.parametrize("name", ["none.csv", "none*.parquet", ""])
    def test_no_such_file(self, name, tmp_path, monkeypatch):
        rows().write_parquet(tmp_path / "loans.parquet")
        monkeypatch.chdir(tmp_path)
        data = tmp_path / name if name else ""
        self.refused(tmp_path, re.escape(f"{name}'; no such file"), data, *BY_SEX)

    def test_unknown_file_type(self, tmp_path):
        (tmp_path / "loans.xlsx").write_bytes(b"PK")
        self.refused(tmp_path, r"type \.xlsx; accepted", tmp_path / "loans.xlsx", *BY_SEX)

    def change(self, tmp_path, **columns):
        path = tmp_path / "changed.csv"
        rows().with_columns(**columns).write_csv(path)
        return path

    def test_labels_that_are_not_0_or_1(self, tmp_path):
        data = self.change(tmp_path, repaid=pl.col("repaid") + 1)
        self.refused(tmp_path, "--y-true holds .*accepted: 0/1.*--pos-label", data, *BY_SEX)

    def test_missing_labels(self, tmp_path):
        data = self.change(tmp_path, repaid=pl.when(pl.col("sex") == "f").then(pl.col("repaid")))
        self.refused(tmp_path, r"--y-true is missing .* in \d+ of 400 rows", data, *BY_SEX)

    def test_scores_as_decisions(self, tmp_path, book):
        self.refused(
            tmp_path,
            "--y-pred .*scores belong in --y-score",
            book,
            *("--y-true", "repaid", "--y-pred", "score", "-s", "sex"),
        )

    def test_scores_that_are_no_probabilities(self, tmp_path):
        data = self.change(tmp_path, score=pl.col("score") * 2)
        self.refused(
            tmp_path,
            "--y-score is .* not between 0 and 1 in .* rows .*accepted: ",
            data,
            *("--y-true", "repaid", "--y-score", "score", "-s", "sex"),
            metric="calibration_error",
        )

    def test_one_group(self, tmp_path):
        data = self.change(tmp_path, sex=pl.lit("f"))
        self.refused(tmp_path, "only one group: sex is 'f' in every row", data, *BY_SEX)

    def test_no_group(self, tmp_path):
        data = self.change(tmp_path, sex=pl.lit(None))
        self.refused(tmp_path, "no group: sex is missing in every row", data, *BY_SEX)

    def test_group_without_positives(self, tmp_path):
        data = self.change(
            tmp_path, repaid=pl.when(pl.col("sex") == "f").then(0).otherwise(pl.col("repaid"))
        )
        self.refused(
            tmp_path,
            "group 'f' has 0 rows with a positive label; true_positive_rate is not defined",
            data,
            *BY_SEX,
        )

    @pytest.mark.parametrize("n", [0, -1, 10**12, 10**30])
    def test_absurd_number_of_replicates(self, n, tmp_path, book):
        self.refused(
            tmp_path,
            f"--n-resamples is {n:,}; accepted: a whole number from 1 to 100,000,000",
            book,
            *BY_SEX,
            "--n-resamples",
            n,
        )

    @pytest.mark.parametrize("level", ["0", "1", "95", "nan", "-0.5"])
    def test_confidence_level(self, level, tmp_path, book):
        self.refused(
            tmp_path,
            "--confidence-level is .*strictly between 0 and 1",
            book,
            *BY_SEX,
            "--confidence-level",
            level,
        )

    @pytest.mark.parametrize("threads", ["0", "-2", "100000"])
    def test_threads(self, threads, tmp_path, book):
        self.refused(tmp_path, "--threads is .*accepted", book, *BY_SEX, "--threads", threads)

    def test_reference_that_is_no_group(self, tmp_path, book):
        self.refused(
            tmp_path,
            "reference names 'x', which is no group of the data; groups: 'f', 'm'",
            book,
            *BY_SEX,
            "--reference",
            "x",
        )

    def test_direction_of_several_groups(self, tmp_path, book):
        self.refused(
            tmp_path,
            "alternative is 'greater', which is not defined for 3 groups",
            book,
            *BY_AGE,
            "--alternative",
            "greater",
        )

    def test_positive_class_that_does_not_occur(self, tmp_path, book):
        self.refused(
            tmp_path, "--pos-label is .*does not occur", book, *BY_SEX, "--pos-label", "yes"
        )

    def test_attribute_named_twice(self, tmp_path, book):
        self.refused(tmp_path, "named twice", book, *BY_SEX, "-s", "sex")

    def test_json_into_no_directory(self, tmp_path, book):
        target = tmp_path / "nowhere" / "results.json"
        result = run("permutation", book, "-m", "tpr", *BY_SEX, "--json", target)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("fairaudit: error: ")
        # The path that was given, not one that the caller has never seen.
        assert str(target) in result.stderr
        assert not target.parent.exists()

    def test_json_onto_a_directory(self, tmp_path, book):
        result = run("permutation", book, "-m", "tpr", *BY_SEX, "--json", tmp_path)
        assert result.exit_code == 2
        assert "is a directory" in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--bogus",), "No such option.*--bogus"),
            (("--n-resamples", "many"), "'many' is not a valid integer"),
            (("--confidence-level", "high"), "'high' is not a valid float"),
            (("--seed", "-1"), "-1 is not in the range"),
            (("--seed", "x"), "'x' is not a valid integer"),
            (("--alternative", "bigger"), "'bigger' is not one of"),
            (("--adjust", "sidak"), "'sidak' is not one of"),
            (("another.csv",), "unexpected extra argument"),
        ],
    )
    def test_usage(self, arguments, message, tmp_path, book):
        target = tmp_path / "old.json"
        target.write_text(OLD)
        result = run("permutation", book, "-m", "tpr", *BY_SEX, "--json", target, *arguments)
        assert result.exit_code == 2
        assert re.search(message, result.stderr)
        assert "Traceback" not in result.output
        assert result.stdout == ""
        assert target.read_text() == OLD

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("permutation",), "Missing argument 'DATA'"),
            (("permutation", "x.csv", "-s", "sex"), "Missing option '--metric'"),
            (("tabulate", "x.csv"), "Missing option '--sensitive'"),
            (("permute",), "No such command 'permute'"),
            (("demo", "--rows", "1"), "1 is not in the range"),
            (("demo", "--rows", "many"), "'many' is not a valid integer"),
            (("metrics", "--xml"), "No such option.*--xml"),
            ((), "Usage"),
        ],
    )
    def test_usage_of_commands(self, arguments, message):
        result = run(*arguments)
        assert result.exit_code == 2
        assert re.search(message, result.output)
        assert "Traceback" not in result.output


class TestKnownValues:
    @pytest.mark.parametrize("flag", ["-h", "--help"])
    @pytest.mark.parametrize("command", [(), *((name,) for name in main.commands)])
    def test_help(self, command, flag):
        result = run(*command, flag)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")
        assert result.stderr == ""
        assert re.search(rf"^  fairaudit {' '.join(command)}", result.stdout, re.MULTILINE)

    def test_version(self):
        result = run("--version")
        assert result.exit_code == 0
        assert result.stdout == f"fairaudit, version {fa.__version__}\n"

    def test_demo(self):
        result = run("demo", "--rows", 2_000)
        assert result.exit_code == 0
        assert result.stderr == ""
        assert "2,000 loan applications" in result.stdout
        for name in (
            "selection_rate",
            "true_positive_rate",
            "false_positive_rate",
            "positive_predictive_value",
            "f1",
            "calibration_error",
        ):
            assert len(re.findall(rf"^  {name} ", result.stdout, re.MULTILINE)) == 2
        sentences = ("In words: ", "The score ")
        lines = result.stdout.partition("\nThe verdict of an audit.")[0].splitlines()[3:]
        assert max(len(line) for line in lines if not line.startswith(sentences)) <= 80
        assert "In words: true_positive_rate: " in result.stdout
        assert "The nearest fair distribution is " in result.stdout

    def test_demo_ends_in_a_verdict(self, tmp_path):
        page = tmp_path / "demo.md"
        result = run("demo", "--rows", 2_000, "--seed", 7, "--output", page)
        assert result.exit_code == 0
        data = fa.datasets.synthetic_credit(2_000, rng=7)
        audited = fa.audit(
            data["repaid"],
            data["approved"],
            sensitive_features={name: data[name] for name in ("sex", "age")},
            rng=7,
        )
        assert result.stdout.endswith(f"\n\n{audited}\n\nseed 7\n")
        assert page.read_text() == audited.to_markdown()
        assert list(tmp_path.iterdir()) == [page]

    @pytest.mark.parametrize(
        ("name", "message"),
        [("demo.pdf", "accepted: a name that ends in .md"), ("no/demo.md", "does not exist")],
    )
    def test_demo_cannot_be_written(self, name, message, tmp_path):
        result = run("demo", "--rows", 200, "-o", tmp_path / name)
        check_refused(result, message)
        assert list(tmp_path.iterdir()) == []

    def test_demo_finds_the_bias_that_was_built_in(self):
        tests = run("demo").stdout.partition("In words")[0]
        found, attribute = {}, None
        for line in tests.splitlines():
            if line.startswith(("sex: ", "age: ")):
                attribute = line[:3]
            elif re.match(r"  [a-z]", line) and attribute and "metric" not in line:
                found[attribute, line.split()[0]] = line.endswith("differs")
        assert len(found) == 14
        assert found["sex", "true_positive_rate"]
        assert found["sex", "selection_rate"]
        assert not found["sex", "false_positive_rate"]
        assert not found["sex", "auc"]
        assert not found["age", "true_positive_rate"]
        assert not found["age", "false_positive_rate"]

    def test_metrics(self):
        result = run("metrics")
        assert result.exit_code == 0
        assert result.stderr == ""
        for name in fa.metrics.names():
            assert re.search(rf"^{name}: ", result.stdout, re.MULTILINE)
        for row in fa.metrics.table():
            assert row["formula"] in result.stdout
            for alias in filter(None, row["aliases"].split(", ")):
                assert alias in result.stdout

    def test_metrics_as_json(self):
        result = run("metrics", "--json")
        assert result.exit_code == 0
        table = strict_json(result.stdout)
        assert table == fa.metrics.table()
        assert [row["metric"] for row in table] == fa.metrics.names()

    def test_hand_made_table(self, tmp_path):
        """Fisher's tea table, 3 of 4 against 1 of 4: two-sided p = 34/70."""
        path = tmp_path / "tea.csv"
        path.write_text(
            "milk,said,poured\n"
            + "first,1,1\n" * 3
            + "first,0,1\n"
            + "last,1,1\n"
            + "last,0,1\n" * 3
        )
        target = tmp_path / "tea.json"
        result = run(
            *("permutation", path, "-m", "true_positive_rate", "-s", "milk", "--json", target),
            *("--y-true", "poured", "--y-pred", "said"),
        )
        assert result.exit_code == 0, result.output
        content = strict_json(target.read_text())[0]
        assert content["pvalue"] == pytest.approx(34 / 70, rel=1e-12)
        assert content["engine"] == "exact"
        assert content["estimate"] == pytest.approx(0.5)
        assert content["group_sizes"] == {"first": 4, "last": 4}
        assert "0.750 for first (4 rows) and 0.250 for last (4 rows)" in result.stdout
        assert "p = 0.4857" in result.stdout

    def test_content_of_the_json_file(self, tmp_path, book):
        target = tmp_path / "results.json"
        target.write_text(OLD)
        result = run(
            *("permutation", book, "-m", "tpr", "-m", "f1", *BY_AGE, "--json", target),
        )
        assert result.exit_code == 0, result.output
        first, second = strict_json(target.read_text())
        assert first["metric"] == "true_positive_rate"
        assert second["metric"] == "f1"
        assert first["kind"] == "PermutationResult"
        assert first["schema_version"] == 3
        assert first["seed"] == second["seed"]
        assert first["standard_error"] is None
        assert len(first["comparisons"]) == 3
        assert first["summary"] in result.stdout
        assert sorted(path.name for path in tmp_path.iterdir()) == ["loans.csv", "results.json"]

    def test_missing_groups_are_reported(self, tmp_path):
        path = tmp_path / "loans.csv"
        frame = rows().with_row_index()
        frame.with_columns(sex=pl.when(pl.col("index") >= 30).then(pl.col("sex"))).write_csv(path)
        result = run("permutation", path, "-m", "accuracy", *BY_SEX)
        assert result.exit_code == 0
        assert "30 of 400 rows have no value of sex" in result.stdout

    def test_names_of_groups_are_printed_as_they_are(self, tmp_path):
        path = tmp_path / "loans.csv"
        names = {"f": "[bold]x[/bold]", "m": ":smile: é"}
        rows().with_columns(pl.col("sex").replace(names)).write_csv(path)
        result = run("permutation", path, "-m", "accuracy", *BY_SEX)
        assert result.exit_code == 0
        table = result.stdout.split("\n\n")[0]
        assert "[bold]x[/bold]" in table
        assert ":smile: é" in table

    @pytest.mark.parametrize(
        ("values", "option"),
        [
            (["good", "bad"], "good"),
            ([2, 1], "2"),
            ([-1, 1], "-1"),
            ([0.5, 1.5], "0.5"),
            ([True, False], "true"),
            ([True, False], "True"),
            (["True", "False"], "True"),
            (["1", "0"], "1"),
            (["2", "1"], "2"),
            (["1e3", "x"], "1e3"),
            (["nan", "x"], "nan"),
        ],
    )
    def test_positive_class(self, values, option, tmp_path):
        """Values are written on the command line as in the column."""
        path, target = tmp_path / "loans.parquet", tmp_path / "results.json"
        positive, negative = pl.lit(values[0]), pl.lit(values[1])
        rows().with_columns(
            pl.when(pl.col(name) == 1).then(positive).otherwise(negative).alias(name)
            for name in ("repaid", "approved")
        ).write_parquet(path)
        arguments = ("-m", "true_positive_rate", *BY_SEX, "--json", target, "--seed", 1)
        result = run("permutation", path, *arguments, f"--pos-label={option}")
        assert result.exit_code == 0, result.output
        expected = fa.permutation_test(
            *("repaid", "approved"),
            data=rows(),
            sensitive_features="sex",
            metric="true_positive_rate",
            rng=1,
        )
        assert strict_json(target.read_text())[0]["estimate"] == expected.estimate

    @pytest.mark.parametrize(
        ("values", "option"),
        [
            (["m", "f"], "m"),
            ([2, 1], "2"),
            ([1.5, 2.5], "1.5"),
            ([True, False], "True"),
            (["2", "1"], "2"),
            (["007", "008"], "007"),
            (["true", "other"], "true"),
            (["inf", "fin"], "inf"),
        ],
    )
    def test_reference(self, values, option, tmp_path):
        path, target = tmp_path / "loans.parquet", tmp_path / "results.json"
        of_men, of_women = pl.lit(values[0]), pl.lit(values[1])
        rows().with_columns(
            sex=pl.when(pl.col("sex") == "m").then(of_men).otherwise(of_women)
        ).write_parquet(path)
        arguments = ("-m", "accuracy", *BY_SEX, "--json", target, "--reference", option)
        result = run("permutation", path, *arguments)
        assert result.exit_code == 0, result.output
        expected = fa.permutation_test(
            *("repaid", "approved"),
            data=rows(),
            sensitive_features="sex",
            metric="accuracy",
            reference="m",
        )
        content = strict_json(target.read_text())[0]
        assert content["estimate"] == expected.estimate
        assert content["comparisons"][0]["second"] == values[0]


class TestReference:
    @pytest.mark.parametrize("metric", ["selection_rate", "tpr", "mcc", "calibration_error"])
    @pytest.mark.parametrize("kind", ["csv", "parquet", "glob", "glob of csv", "directory"])
    def test_same_as_python(self, kind, metric, tmp_path):
        frame = rows()
        folder = tmp_path / "parts"
        folder.mkdir()
        for i, part in enumerate(frame.iter_slices(150)):
            part.write_parquet(folder / f"part-{i}.parquet")
            part.write_csv(folder / f"part-{i}.csv")
        frame.write_csv(tmp_path / "loans.csv")
        frame.write_parquet(tmp_path / "loans.parquet")
        data = {
            "csv": tmp_path / "loans.csv",
            "parquet": tmp_path / "loans.parquet",
            "glob": folder / "part-*.parquet",
            "glob of csv": folder / "part-*.csv",
            "directory": folder,
        }[kind]
        target = tmp_path / "results.json"
        result = run(
            *("permutation", data, "-m", metric, *BY_AGE, "--y-score", "score"),
            *("--seed", 17, "--json", target, "--adjust", "max-t"),
        )
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        expected = fa.permutation_test(
            *(frame["repaid"].to_numpy(), frame["approved"].to_numpy()),
            y_score=frame["score"].to_numpy(),
            sensitive_features={"age": frame["age"].to_numpy()},
            metric=metric,
            n_resamples=199,
            adjust="max-t",
            rng=17,
        )
        content = strict_json(target.read_text())[0]
        assert content["pvalue"] == expected.pvalue
        assert content["seed"] == 17
        assert content == json.loads(json.dumps(expected.to_dict()))

    def test_all_options(self, tmp_path, book):
        target = tmp_path / "results.json"
        result = run(
            *("permutation", book, "--metric", "accuracy", "--sensitive", "sex", *ROLES),
            *("--strata", "age", "--reference", "m", "--alternative", "less", "--adjust", "bh"),
            *("--n-resamples", 99, "--confidence-level", 0.9, "--seed", 5, "--threads", 2),
            *("--pos-label", 1, "--json", target),
        )
        assert result.exit_code == 0, result.output
        expected = fa.permutation_test(
            *("repaid", "approved"),
            data=rows(),
            sensitive_features="sex",
            metric="accuracy",
            strata="age",
            reference="m",
            alternative="less",
            adjust="bh",
            n_resamples=99,
            confidence_level=0.9,
            rng=5,
        )
        assert strict_json(target.read_text()) == [json.loads(json.dumps(expected.to_dict()))]

    def test_intersections(self, tmp_path, book):
        target = tmp_path / "results.json"
        result = run("permutation", book, "-m", "acc", *BY_AGE, "-s", "sex", "--json", target)
        assert result.exit_code == 0, result.output
        content = strict_json(target.read_text())[0]
        expected = rows().group_by("age", "sex").len().rows()
        assert content["group_sizes"] == {json.dumps([age, sex]): n for age, sex, n in expected}


class TestProperties:
    def test_a_seed_repeats_the_output(self, book):
        arguments = ("permutation", book, "-m", "f1", *BY_AGE, "--seed", 3)
        assert run(*arguments).stdout == run(*arguments).stdout

    def test_threads_do_not_matter(self, book):
        arguments = ("permutation", book, "-m", "f1", *BY_AGE, "--seed", 3, "--threads")
        assert run(*arguments, 1).stdout == run(*arguments, 2).stdout == run(*arguments, 7).stdout

    def test_the_seed_in_the_file_repeats_a_run_without_one(self, tmp_path, book):
        first, again = tmp_path / "first.json", tmp_path / "again.json"
        arguments = ("permutation", book, "-m", "f1", "-m", "mcc", *BY_AGE, "--json")
        assert run(*arguments, first).exit_code == 0
        seed = strict_json(first.read_text())[0]["seed"]
        assert run(*arguments, again, "--seed", seed).exit_code == 0
        assert again.read_text() == first.read_text()

    def test_other_seeds_give_other_data(self):
        texts = {run("demo", "--rows", 500, "--seed", seed).stdout for seed in (1, 2, 2)}
        assert len(texts) == 2

    def test_the_installed_command(self, tmp_path, book):
        command = shutil.which("fairaudit", path=sysconfig.get_path("scripts"))
        assert command is not None
        shown = subprocess.run([command, "-h"], capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0
        assert shown.stdout.startswith("Usage: fairaudit [OPTIONS] COMMAND")
        assert shown.stderr == ""
        for name in ("demo", "metrics", "permutation"):
            assert f"  {name} " in shown.stdout
        target = tmp_path / "results.json"
        arguments = ("permutation", book.name, "-m", "tpr", *BY_AGE, "--json", target.name)
        done = subprocess.run(
            [command, *arguments, "--seed", "9"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert "true_positive_rate" in done.stdout
        expected = fa.permutation_test(
            *("repaid", "approved"),
            data=book,
            sensitive_features="age",
            metric="true_positive_rate",
            n_resamples=199,
            rng=9,
        )
        assert strict_json(target.read_text())[0]["pvalue"] == expected.pvalue
