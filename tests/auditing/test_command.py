"""The commands ``fairaudit init`` and ``fairaudit audit``: what they print, write and refuse."""

import json
import subprocess
import sys
import tomllib

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from tests.printed import content

COMMAND = [sys.executable, "-c", "from fairaudit_rs.cli import main; main()"]
ROLES = ("--y-true", "repaid", "--y-pred", "approved")
BY_SEX = (*ROLES, "-s", "sex")


def rows(n=3_000, gap=0.0, seed=3):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    sex = rng.choice(["f", "m"], n)
    chance = 0.3 + 0.4 * label - gap * (sex == "f")
    return pl.DataFrame(
        {
            "repaid": label,
            "approved": (rng.random(n) < chance).astype(int),
            "word": np.where(rng.random(n) < chance, "granted", "refused"),
            "score": np.clip(0.6 * rng.random(n) + 0.4 * label, 0, 1),
            "sex": sex,
            "age": rng.integers(18, 80, n),
            "income": rng.integers(0, 10**6, n),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file of loans."""
    monkeypatch.chdir(tmp_path)
    rows().write_csv("loans.csv")
    rows(gap=0.3).write_csv("unfair.csv")
    rows(300).write_csv("few.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def audit(*arguments):
    return run("audit", "--seed", "1", *arguments)


# -- what is refused ---------------------------------------------------------------------------

NEEDED = "an audit needs decisions, or labels with scores. Pass --y-pred COLUMN, such as --y-pred"
#: Calls (with "loans.csv" before them), and what the one line of the error says.
REFUSED = [
    ((*BY_SEX, "--preset", "fair"), "'fair' is not one of 'opportunity'"),
    ((*BY_SEX, "--preset", "fair_lending"), "fair_lending needs a threshold and a reference"),
    ((*BY_SEX, "--policy", "none.toml"), "none.toml cannot be read: No such file"),
    ((*BY_SEX, "--policy", "."), "cannot be read: Is a directory"),
    ((*BY_SEX, "--policy", "loans.csv"), "loans.csv, line 1: not valid TOML"),
    ((*BY_SEX, "--policy", "x.toml", "--preset", "parity"), "--policy is x.toml and --preset is"),
    ((*BY_SEX, "--format", "pdf"), "'pdf' is not one of 'text', 'json', 'md'"),
    ((*BY_SEX, "-o", "report.pdf"), "--output is report.pdf; accepted: a name that ends in .txt"),
    (
        (*BY_SEX, "-o", "none/report.md"),
        "--output is none/report.md, but its directory does not exist",
    ),
    ((*BY_SEX, "-o", "."), "is a directory"),
    ((*BY_SEX, "--evidence", "all"), "'all' is not one of 'failures'"),
    ((*BY_SEX, "--n-resamples", "0"), "--n-resamples is 0; accepted: a whole number"),
    ((*BY_SEX, "--threads", "-7"), "--threads is -7; accepted"),
    ((*BY_SEX, "--seed", "-1"), "-1 is not in the range x>=0"),
    (
        (*BY_SEX, "--favourable", "yes"),
        "--favourable is 'yes', but --y-pred holds 0, 1 and --y-true",
    ),
    ((*BY_SEX, "--cut", "score=0.5"), "--cut is 'score=0.5' and --y-pred is 'approved'"),
    ((*BY_SEX, "--strata", "nope"), "column 'nope' does not exist"),
    ((*BY_SEX, "--weight", "nope"), "column 'nope' does not exist"),
    ((*ROLES, "-s", "nope"), "column 'nope' does not exist; the data have: "),
    (
        (*ROLES,),
        "no column of groups is named. Pass -s COLUMN, such as -s sex. Columns of ",
    ),
    (("--y-true", "repaid", "-s", "sex"), NEEDED),
    (("-s", "sex"), NEEDED),
    (("--y-score", "score", "-s", "sex"), NEEDED),
    (("--y-pred", "approved", "-s", "sex", "--preset", "opportunity"), "--y-true"),
    ((*BY_SEX, "--preset", "calibration"), "--y-score"),
    (("--y-true", "income", "--y-pred", "approved", "-s", "sex"), "--y-true has more than 64"),
    (
        ("--y-pred", "word", "-s", "sex"),
        "--favourable is not given and --y-pred holds 'granted', 'refused'. Say which of them",
    ),
    ((*BY_SEX, "--no-such-option"), "No such option"),
    ((*BY_SEX, "more.csv"), "unexpected extra argument"),
]
#: Texts of fairaudit.toml, and what is wrong with them.
FILES = [
    ("", r"fairaudit.toml has no table [policy]"),
    ("[policy]\nname = ", "fairaudit.toml, line 2: not valid TOML"),
    ("[policy]\npreset = 'parity'\nalhpa = 0.1", "line 3: alhpa is not a key of [policy]"),
    ("[policy]\npreset = 'parity'\nfloor = 5", "line 3: floor is 5; accepted: a whole number"),
    ("[policy]\npreset = 'parity'\n[roles]\ny_tru = 'a'", "line 4: y_tru is not a key of [roles]"),
    ("[policy]\npreset = 'parity'\n[roles]\nsensitive_features = 'nope'", "column 'nope' does not"),
    ("[policy]\npreset = 'fair_lending'\nratio = 0.8", "line 1: references is None"),
    (
        "[policy]\npreset = 'fair_lending'\nratio = 0.8\nreferences = {sex = 'x'}",
        "'x', which is no group of the data",
    ),
]


def check_refused(result, message, before, folder):
    assert result.exit_code == 2, result.output
    assert message in result.stderr, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda entry: str(entry)[-40:])
def test_bad_calls(arguments, message, here):
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    check_refused(audit("loans.csv", *arguments), message, before, here)


@pytest.mark.parametrize(("text", "message"), FILES, ids=lambda entry: entry[:30])
def test_bad_files(text, message, here):
    (here / "fairaudit.toml").write_text(text)
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    named = () if "roles" in text else ("-s", "sex")
    check_refused(audit("loans.csv", *ROLES, *named), message, before, here)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.csv", None, "no such file"),
        ("empty.csv", "", "cannot be read"),
        ("ragged.csv", "repaid,approved,sex\n1,1,f\n1,1\n", "cannot be read"),
        ("head.csv", "repaid,approved,sex\n", "no rows"),
        ("data.xlsx", "x", "accepted: .parquet and .csv"),
        ("one.csv", "repaid,approved,sex\n" + "1,1,f\n0,1,f\n" * 40, "only one group"),
    ],
)
def test_bad_data(name, text, message, here):
    if text is not None:
        (here / name).write_text(text)
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    if name != "one.csv":
        check_refused(audit(name, *BY_SEX), message, before, here)
    else:
        # One group is no error: nothing can be measured, and the verdict says so.
        result = audit(name, *BY_SEX, "--strict")
        assert result.exit_code == 3
        assert result.stdout.startswith("NOT MEASURABLE (not a pass)")


# -- verdicts and exit codes -------------------------------------------------------------------


class TestVerdicts:
    @pytest.mark.parametrize(
        ("data", "strict", "word", "code"),
        [
            ("loans.csv", False, "PASS.", 0),
            ("loans.csv", True, "PASS.", 0),
            ("unfair.csv", False, "FAIL.", 1),
            ("unfair.csv", True, "FAIL.", 1),
            ("few.csv", False, "INCONCLUSIVE (not a pass).", 0),
            ("few.csv", True, "INCONCLUSIVE (not a pass).", 3),
        ],
    )
    def test_exit_codes(self, data, strict, word, code, here):
        result = audit(data, *BY_SEX, *(["--strict"] if strict else []))
        assert result.exit_code == code, result.output
        assert result.stdout.startswith(word)
        assert 'policy "opportunity" (the default, because labels and decisions' in result.stdout
        warned = "inconclusive, which is no pass; with --strict the exit code is 3" in result.stderr
        assert warned == (data == "few.csv" and not strict)

    def test_nothing_is_asked(self, here):
        result = audit("unfair.csv", "--preset", "nyc_ll144", *BY_SEX, "--strict")
        assert result.exit_code == 0
        assert result.stdout.startswith("NOT ASKED")
        assert "Selection rate by sex:\n" in result.stdout
        assert "0 applicants of unknown sex" in result.stdout
        assert "missing: the tables with race or ethnicity: no attribute is" in result.stdout

    def test_quiet(self, here):
        result = audit("unfair.csv", *BY_SEX, "--quiet", "-o", "x.txt")
        assert (result.exit_code, result.output) == (1, "")
        assert (here / "x.txt").read_text().startswith("FAIL.")

    def test_the_seed_is_printed_and_repeats(self, here):
        first = run("audit", "unfair.csv", *BY_SEX, "--format", "json")
        seed = json.loads(first.stdout)["seed"]
        again = run("audit", "unfair.csv", *BY_SEX, "--format", "json", "--seed", seed)
        assert again.stdout == first.stdout
        assert audit("loans.csv", *BY_SEX).stdout.endswith("\nseed 1\n")


class TestSameNumbers:
    def test_as_python_whatever_the_order_of_rows(self, here):
        given = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex", "rng": 1}
        wanted = fa.audit(data="unfair.csv", **given).to_dict()
        pl.read_csv("unfair.csv").reverse().write_parquet("turned.parquet")
        for name in ("unfair.csv", "turned.parquet"):
            found = json.loads(audit(name, *BY_SEX, "--format", "json").stdout)
            assert content(found) == content(json.loads(json.dumps(wanted)))
            assert fa.from_dict(found).verdict == "fail"

    @pytest.mark.parametrize(
        ("more", "options"),
        [
            ({}, ()),
            ({"evidence": "permutation", "n_resamples": 199},
             ("--evidence", "permutation", "--n-resamples", "199")),
            ({"strata": "place", "n_resamples": 4_999},
             ("--strata", "place", "--n-resamples", "4999")),
            ({"sample_weight": "weight", "n_resamples": 4_999},
             ("--weight", "weight", "--n-resamples", "4999")),
            ({"policy": "parity", "n_threads": 2}, ("--preset", "parity", "--threads", "2")),
            ({"policy": "us_eeoc"}, ("--preset", "us_eeoc")),
            ({"policy": "nyc_ll144"}, ("--preset", "nyc_ll144")),
        ],
        ids=["default", "evidence", "strata", "weights", "preset", "rule", "tables of a rule"],
    )  # fmt: skip
    def test_bit_for_bit(self, more, options, here):
        """Arrays, a frame, files, the command; rows as they are, turned, and in any order."""
        frame = rows(gap=0.1).with_columns(
            approved=(pl.col("score") >= 0.5).cast(pl.Int64),  # so that the projection is run
            place=pl.Series(np.random.default_rng(5).choice(["a", "b"], 3_000)),
            weight=pl.Series(np.random.default_rng(6).integers(1, 4, 3_000)),
        )
        roles = {"y_true": "repaid", "y_pred": "approved", "y_score": "score"}
        given = {**roles, "sensitive_features": ["sex", "age"], "rng": 1, **more}
        made = fa.audit(data=frame, **given)
        wanted = content(json.loads(json.dumps(made.to_dict())))
        projected = any(
            finding.lens == "projection" and not finding.reason for finding in made.others
        )
        assert projected == ("strata" not in more)
        columns = {
            name: frame[text].to_numpy()
            if isinstance(text, str) and text in frame.columns
            else text
            for name, text in given.items()
        }
        columns["sensitive_features"] = {name: frame[name].to_numpy() for name in ("sex", "age")}
        if "strata" in more:
            columns["strata"] = {"place": frame["place"].to_numpy()}
        assert content(json.loads(json.dumps(fa.audit(**columns).to_dict()))) == wanted
        by = ("--y-score", "score", "-s", "sex", "-s", "age", *options, "--format", "json")
        for i, value in enumerate(
            [frame, frame.reverse(), frame.sample(fraction=1, shuffle=True, seed=30)]
        ):
            name = f"{i}.{'csv' if i else 'parquet'}"
            value.write_csv(name) if i else value.write_parquet(name)
            assert content(json.loads(audit(name, *ROLES, *by).stdout)) == wanted, name
            in_python = fa.audit(data=value.to_pandas() if i == 2 else value, **given)
            assert content(json.loads(json.dumps(in_python.to_dict()))) == wanted

    def test_formats_and_files_are_the_same(self, here):
        result = audit("loans.csv", *BY_SEX, *("-o", "a.md", "-o", "a.json", "-o", "a.txt"))
        for name, form in (("a.md", "md"), ("a.json", "json"), ("a.txt", "text")):
            printed = audit("loans.csv", *BY_SEX, "--format", form).stdout
            assert (here / name).read_text().rstrip() == printed.rstrip()
        assert result.stdout.rstrip() == (here / "a.txt").read_text().rstrip()
        assert (here / "a.md").read_text().startswith("# PASS")


class TestPolicies:
    def test_a_lens_binds_with_the_bits_of_python(self, here):
        (here / "fairaudit.toml").write_text(
            '[policy]\nname = "own"\nlenses = ["projection"]\n'
            '[[policy.criterion]]\nlens = "projection"\ntolerance = 0.05\n'
            '[roles]\ny_true = "repaid"\ny_pred = "word"\ny_score = "score"\n'
            'sensitive_features = ["sex"]\n'
        )
        data = rows(gap=0.3).with_columns(
            score=pl.when(pl.col("sex") == "f").then(pl.col("score") - 0.2).otherwise("score"),
        )
        data = data.with_columns(word=(pl.col("score") >= 0.5).cast(int))
        data.write_csv("scored.csv")
        printed = audit("scored.csv", "--format", "json")
        found = fa.audit(
            data["repaid"],
            data["word"],
            y_score=data["score"],
            sensitive_features={"sex": data["sex"]},
            policy="fairaudit.toml",
            rng=1,
        )
        assert found.verdict == "fail"
        assert printed.exit_code == 1, printed.output
        wanted = content(json.loads(json.dumps(found.to_dict())))
        assert content(json.loads(printed.stdout)) == wanted
        assert "sex: scores depart from equal opportunity" in audit("scored.csv").stdout
        (here / "fairaudit.toml").write_text('[policy]\nname = "own"\n[[policy.criterion]]\n'
                                             'lens = "projection"\n')  # fmt: skip
        refused = audit("scored.csv")
        assert refused.exit_code == 2
        assert "fairaudit.toml, line 3: tolerance is not given, but the lens" in refused.stderr

    def test_policy_and_columns_of_a_file(self, here):
        (here / "fairaudit.toml").write_text(
            "[policy]\npreset = 'four_fifths'\n[roles]\ny_pred = 'approved'\n"
            "sensitive_features = ['sex', 'age']\n"
        )
        result = audit("loans.csv")
        assert "fairaudit: policy and columns of fairaudit.toml" in result.stderr
        assert 'policy "four_fifths"' in result.stdout
        assert "45" in result.stdout  # ages are cut
        # What is named wins over the file, and a preset needs none.
        only = audit("loans.csv", "-s", "sex")
        assert "age" not in only.stdout
        named = audit("loans.csv", "--preset", "parity", "--y-pred", "approved", "-s", "sex")
        assert 'policy "parity"' in named.stdout
        assert named.stderr == ""

    def test_favourable_is_named(self, here):
        given = ("unfair.csv", "--y-pred", "word", "-s", "sex")
        granted = audit(*given, "--favourable", "granted", "--preset", "parity")
        refused = audit(*given, "--favourable", "refused", "--preset", "parity")
        assert "Favourable: word = granted." in granted.stdout
        assert (granted.exit_code, refused.exit_code) == (1, 1)
        assert "lowest" in granted.stdout
        low = [text.stdout.split("selection_rate")[2].split()[1] for text in (granted, refused)]
        assert low[0] != low[1]

    def test_what_the_rule_says_stands_below(self, here):
        result = audit("unfair.csv", "--preset", "us_eeoc", "--y-pred", "approved", "-s", "sex")
        rule = result.stdout.partition("What the rule says:")[2]
        assert "sex: m (49.8 % of 1,471) has the highest rate" in rule
        assert "sex: f: 20.7 % of 1,529 selected, 0.415 times the highest rate" in rule
        assert "below four fifths, and the rates differ significantly: flag" in rule
        assert "more selections would make it four fifths" in rule
        assert "An engine, not advice" in rule
        page = audit(
            *("unfair.csv", "--preset", "co_insurance_draft", "--y-pred", "approved"),
            *("-s", "sex", "--format", "md"),
        )
        assert "## What the rule says" in page.stdout
        assert "which is not in force" in page.stdout
        assert "complian" not in (page.stdout + result.stdout).lower()

    def test_lenders_take_a_file(self, here):
        (here / "lend.toml").write_text(
            "[policy]\npreset = 'fair_lending'\nratio = 0.8\nreferences = {sex = 'm'}\n"
        )
        result = audit("unfair.csv", "--policy", "lend.toml", "--y-pred", "approved", "-s", "sex")
        assert "sex: f: favourable decision for 20.7 % of 1,529, m (reference)" in result.stdout
        assert "Flagged: the ratio is below 0.8" in result.stdout


class TestOtherCommands:
    @pytest.mark.parametrize(
        ("command", "function", "extra", "options"),
        [
            ("intervals", fa.intervals, {}, ()),
            ("equivalence", fa.equivalence_test, {"margin": 0.1}, ("--margin", "0.1")),
            ("power", fa.minimum_detectable_gap, {}, ()),
        ],
    )
    def test_they_say_what_python_says(self, command, function, extra, options, here):
        given = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex"}
        seed = {} if command == "power" else {"rng": 1}
        wanted = function(data="loans.csv", metric="tpr", **given, **extra, **seed)
        seed_option = () if command == "power" else ("--seed", "1")
        result = run(
            *(command, "loans.csv", *BY_SEX, "-m", "tpr", *options, *seed_option),
            *("--json", "x.json"),
        )
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith(str(wanted).splitlines()[0])
        assert json.loads((here / "x.json").read_text()) == [
            json.loads(json.dumps(wanted.to_dict()))
        ]

    def test_intervals_are_a_table(self, here):
        result = run("intervals", "loans.csv", *BY_SEX, "-m", "tpr", "--seed", "1")
        assert "kind" in result.stdout
        assert "simultaneous gap" in result.stdout
        assert result.stdout.endswith("\nseed 1\n")

    def test_counts_on_standard_output_are_those_of_the_file(self, here):
        printed = run("tabulate", "loans.csv", *BY_SEX)
        run("tabulate", "loans.csv", *BY_SEX, "-o", "c.csv")
        run("tabulate", "loans.csv", *BY_SEX, "-o", "c.parquet")
        assert printed.stdout == (here / "c.csv").read_text()
        assert pl.read_parquet("c.parquet")["count"].sum() == 3_000

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("equivalence", "loans.csv", *BY_SEX, "-m", "tpr"), "Missing option '--margin'"),
            (("equivalence", "loans.csv", *BY_SEX, "-m", "tpr", "--margin", "0"), "--margin is 0"),
            (("intervals", "loans.csv", *BY_SEX, "-m", "eodds"), "equalized_odds"),
            (("intervals", "loans.csv", *BY_SEX, "-m", "tpr", "--method", "x"), "'x' is not one"),
            (("power", "loans.csv", *BY_SEX, "-m", "tpr", "--power", "2"), "--power is 2.0"),
            (("power", "none.csv", *BY_SEX, "-m", "tpr"), "no such file"),
            (("tabulate", "loans.csv", "-s", "sex", "-o", "x.xlsx"), "in .csv or .parquet"),
            (("tabulate", "loans.csv", "-s", "sex", "--count", "nope"), "'nope' does not exist"),
            (("tabulate", "loans.csv"), "Missing option"),
        ],
    )
    def test_bad_calls(self, arguments, message, here):
        before = {path.name: path.read_bytes() for path in here.iterdir()}
        check_refused(run(*arguments), message, before, here)


class TestCompare:
    @pytest.fixture
    def releases(self, here):
        frame = rows(gap=0.3).with_columns(
            after=rows()["approved"], again=rows(gap=0.3, seed=4)["approved"]
        )
        frame.write_csv("releases.csv")
        return ("releases.csv", "--y-true", "repaid", "--first", "approved", "--second", "after")

    def test_it_says_what_python_says(self, releases, here):
        result = run(
            *("compare", *releases, "-s", "sex", "-m", "tpr", "--seed", "1"),
            *("--alternative", "less", "--json", "x.json"),
        )
        wanted = fa.compare_models(
            "repaid", "approved", "after", data="releases.csv", sensitive_features="sex",
            metric="tpr", alternative="less", rng=1,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith(f"{wanted.summary()}\n")
        assert wanted.to_text(details=True) in result.stdout
        assert result.stdout.endswith("\nseed 1\n")
        assert json.loads((here / "x.json").read_text()) == [
            json.loads(json.dumps(wanted.to_dict()))
        ]

    def test_many_pairs_are_folded(self, releases, here):
        given = ("--seed", "1", "--min-group-size", "20", "--json", "x.json")
        result = run("compare", *releases, "-s", "age", "-m", "selection_rate", *given)
        assert result.exit_code == 0, result.stderr
        pairs = json.loads((here / "x.json").read_text())[0]["comparisons"]
        assert len(pairs) > 1_000
        assert f"and {len(pairs) - 5:,} more pairs" in result.stdout
        assert len(result.stdout.splitlines()) < 30
        least = min(pair["adjusted_pvalue"] for pair in pairs)
        assert f"{least:.4f}" in result.stdout

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--second", "nope", "-s", "sex", "-m", "tpr"), "column 'nope' does not exist"),
            (("-s", "sex", "-m", "tqr"), "--metric is 'tqr'"),
            (("-s", "sex", "-m", "tpr", "--adjust", "max-t"), "'max-t' is not one of"),
            (("-s", "sex", "-m", "tpr", "--reference", "x"), "--reference names 'x'"),
        ],
    )
    def test_bad_calls(self, arguments, message, releases, here):
        before = {path.name: path.read_bytes() for path in here.iterdir()}
        check_refused(run("compare", *releases, *arguments), message, before, here)


# -- init --------------------------------------------------------------------------------------


class TestInit:
    def test_from_data_to_verdict(self, here):
        result = run("init", "loans.csv")
        assert result.exit_code == 0
        assert "sensitive_features: sex, age\n" in result.stdout
        assert "fairaudit audit loans.csv" in result.stdout
        text = (here / "fairaudit.toml").read_text()
        roles = tomllib.loads(text)["roles"]
        assert roles == {
            "sensitive_features": ["sex", "age"],
            "y_true": "repaid",
            "y_pred": "approved",
            "y_score": "score",
        }
        policy = fa.Policy.load("fairaudit.toml")
        default = fa.Policy.default(labels=True, decisions=True, scores=True)
        assert policy.criteria == default.criteria
        assert "# The value of approved that people want; its values: " in text
        assert "favourable: not set; the audit takes 1" in result.stdout
        assert "# favourable = 1" in text
        assert "bands = { age = [25, 45] }" in text
        found = audit("loans.csv")
        assert found.stdout.startswith("PASS")

    def test_nothing_is_overwritten(self, here):
        (here / "fairaudit.toml").write_text("mine")
        result = run("init", "loans.csv")
        assert result.exit_code == 2
        assert "fairaudit.toml exists already and is left as it is. Edit it" in result.stderr
        assert "--output" not in result.stderr
        assert (here / "fairaudit.toml").read_text() == "mine"
        (here / "link.toml").symlink_to("nowhere.toml")
        assert run("init", "loans.csv", "-o", "link.toml").exit_code == 2
        other = run("init", "loans.csv", "-o", "other.toml")
        assert "fairaudit audit loans.csv --policy other.toml" in other.stdout
        assert (
            "#   fairaudit audit loans.csv --policy other.toml\n"
            in (here / "other.toml").read_text()
        )

    def test_favourable(self, here):
        frame = rows().drop("approved").rename({"word": "decision"})
        frame.write_csv("words.csv")
        assert run("init", "words.csv", "--favourable", "granted").exit_code == 0
        policy = fa.Policy.load("fairaudit.toml")
        assert policy.favourable == "granted"
        assert 'its values: "' in (here / "fairaudit.toml").read_text()
        run("init", "loans.csv", "--favourable", "0", "-o", "n.toml")
        assert fa.Policy.load("n.toml").favourable == 0

    def test_what_is_not_found_is_an_error_that_says_what_to_do(self, here):
        pl.DataFrame({"a": [1, 2, 3], "b c": ["x", "y", "z"]}).write_csv("odd.csv")
        before = {path.name: path.read_bytes() for path in here.iterdir()}
        result = run("init", "odd.csv")
        assert result.exit_code == 2
        assert "no decisions and no labels were found in odd.csv" in result.stderr
        assert "-s sex --y-pred approved" in result.stderr
        assert "--cut score=0.7" in result.stderr
        assert {path.name: path.read_bytes() for path in here.iterdir()} == before
        rows().select("approved", "income").write_csv("nobody.csv")
        result = run("init", "nobody.csv")
        assert result.exit_code == 2
        assert "no attributes of people, as sex or age, were found in nobody.csv" in result.stderr

    def test_names_that_would_break_a_file(self, here):
        names = {'sex "x"\n[policy]': ["f", "m"] * 40, "approved": [0, 1] * 40}
        pl.DataFrame(names).write_parquet("evil.parquet")
        assert run("init", "evil.parquet").exit_code == 0
        read = tomllib.loads((here / "fairaudit.toml").read_text())
        assert set(read) == {"policy", "roles"}
        assert read["roles"]["sensitive_features"] == ['sex "x"\n[policy]']

    @pytest.mark.parametrize(
        ("data", "output", "message"),
        [
            ("none.csv", "x.toml", "no such file"),
            ("empty.csv", "x.toml", "cannot be read"),
            ("loans.csv", "none/x.toml", "its directory does not exist"),
        ],
    )
    def test_bad_calls(self, data, output, message, here):
        (here / "empty.csv").write_text("")
        result = run("init", data, "-o", output)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not (here / output).exists()

    def test_groups_below_the_floor_are_told(self, here):
        frame = rows(200).with_columns(sex=pl.Series(["f"] * 12 + ["m"] * 188))
        frame.write_csv("small.csv")
        run("init", "small.csv")
        text = (here / "fairaudit.toml").read_text()
        assert "sex: m 188, f 12 (1 of them below the floor of 30 rows)" in text


# -- the process -------------------------------------------------------------------------------


class TestProcess:
    def process(self, here, tail):
        return self.of("loans.csv", here, tail)

    def of(self, data, here, tail):
        command = [*COMMAND, "audit", data, *BY_SEX, "--seed", "1"]
        done = subprocess.run(
            ["bash", "-c", f'set -o pipefail; "$@" {tail}', "x", *command],
            cwd=here, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done

    def test_a_verdict(self, here):
        done = self.process(here, "")
        assert done.returncode == 0
        assert done.stdout.startswith("PASS")
        assert "\x1b" not in done.stdout

    def test_a_full_disk_is_no_verdict(self, here):
        done = self.process(here, "> /dev/full")
        assert done.returncode == 2
        assert "No space left" in done.stderr

    @pytest.mark.parametrize(
        ("data", "code"), [("loans.csv", 0), ("unfair.csv", 1)], ids=["pass", "fail"]
    )
    @pytest.mark.parametrize("tail", ["| true", "| head -n 1", "2>&1 | true", ">&-"])
    def test_the_verdict_outlives_its_reader(self, tail, data, code, here):
        done = self.of(data, here, tail)
        assert done.returncode == code
        assert done.stderr == ""

    def test_a_bug_is_no_violation(self, here, monkeypatch):
        def broken(**_):
            raise KeyError("inside")

        monkeypatch.setattr(fa, "audit", broken)
        result = audit("loans.csv", *BY_SEX)
        assert result.exit_code == 2
        assert "a bug of this package; please report it" in result.stderr
