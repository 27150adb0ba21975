"""Policies in files: what they hold, and errors with the key and the line."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairaudit_rs as fa
from fairaudit_rs.auditing.policy_file import read_roles, value_text, write_toml
from fairaudit_rs.auditing.toml_lines import key_lines
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, FileError, UnknownMetricError

OWN = """\
# floor = 3 is no key here
[policy]
name = "credit"         # alpha = 7
description = '''
floor = 4
[[policy.criterion]]
'''
alpha = 0.01
bands = { age = [25, 45], "yearly income" = [2e4] }
favourable = "granted"

[[policy.criterion]]
metric = "tpr"
tolerance = 0.1

[[policy.criterion]]
metric = "selection_rate"
ratio = 0.8
attributes = [
    "sex",  # tolerance = 3
    "race",
]
binding = false

[roles]
y_true = "repaid"
y_pred = "approved"
sensitive_features = ["sex", "race"]
"""


def load(tmp_path, text, name="fairaudit.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return fa.Policy.load(path)


def own_policy():
    return fa.Policy(
        name="credit",
        description="floor = 4\n[[policy.criterion]]\n",
        alpha=0.01,
        bands={"age": (25, 45), "yearly income": (2e4,)},
        favourable="granted",
        criteria=[
            fa.Criterion(metric="tpr", tolerance=0.1),
            fa.Criterion(
                metric="selection_rate", ratio=0.8, attributes=["sex", "race"], binding=False
            ),
        ],
    )


class TestReading:
    def test_a_file(self, tmp_path):
        assert load(tmp_path, OWN) == own_policy()

    def test_a_table_of_pyproject(self, tmp_path):
        text = re.sub(r"(?m)^(\[+)(policy|roles)", r"\1tool.fairaudit.\2", OWN)
        text = text.replace("4\n[[tool.fairaudit.", "4\n[[")
        text = f"[project]\nname = 'x'\nfloor = 1\n\n[tool.ruff]\nline-length = 3\n{text}"
        assert load(tmp_path, text, "pyproject.toml") == own_policy()
        assert read_roles(tmp_path / "pyproject.toml")["y_true"] == "repaid"

    def test_roles(self, tmp_path):
        load(tmp_path, OWN)
        assert read_roles(tmp_path / "fairaudit.toml") == {
            "y_true": "repaid",
            "y_pred": "approved",
            "sensitive_features": ("sex", "race"),
        }
        load(tmp_path, "[policy]\npreset = 'parity'\n", "other.toml")
        assert read_roles(tmp_path / "other.toml") == {}

    def test_line_ends_and_marks(self, tmp_path):
        path = tmp_path / "windows.toml"
        path.write_bytes(b"\xef\xbb\xbf" + OWN.replace("\n", "\r\n").encode())
        assert fa.Policy.load(path) == own_policy()
        path.write_bytes(OWN.replace("alpha = 0.01", "alpha = 5").replace("\n", "\r\n").encode())
        with pytest.raises(ArgumentError, match=r"windows.toml, line 8: alpha is 5"):
            fa.Policy.load(str(path))

    def test_presets(self, tmp_path):
        assert load(tmp_path, "[policy]\npreset = 'parity'") == fa.Policy.preset("parity")
        stricter = load(tmp_path, "[policy]\npreset = 'us_eeoc'\nfloor = 100")
        assert (stricter.floor, stricter.rule, stricter.has_pass) == (100, "us_eeoc", False)
        lending = "[policy]\npreset = 'fair_lending'\nratio = 0.9\nreferences = {race = 'white'}"
        assert load(tmp_path, lending) == fa.Policy.preset(
            "fair_lending", ratio=0.9, references={"race": "white"}
        )
        own = "[policy]\npreset = 'punitive'\nname = 'ours'\n[[policy.criterion]]\n"
        changed = load(tmp_path, own + "metric = 'fpr'\ntolerance = 0.05")
        assert (changed.name, changed.punitive, changed.description) == ("ours", True, "")
        assert [c.tolerance for c in changed.criteria] == [0.05]

    @pytest.mark.parametrize("name", ["opportunity", "punitive", "us_eeoc", "co_insurance_draft"])
    def test_what_is_written_is_read(self, name, tmp_path):
        one = fa.Policy.preset(name)
        assert load(tmp_path, one.to_toml()) == one

    def test_odd_values_are_written_and_read(self, tmp_path):
        one = fa.Policy(
            name='a "b" \\ \x7f \x01 é',
            criteria=[
                fa.Criterion(
                    metric="tpr", tolerance=1e-7, attributes=["x.y"], reference=("highest", 3)
                )
            ],
            bands={"a b": (-1.5, 2)},
            favourable=False,
            lenses=["permutation"],
            unknown=[],
        )
        assert load(tmp_path, one.to_toml()) == one
        assert load(tmp_path, own_policy().to_toml()) == own_policy()

    def test_lenses(self, tmp_path):
        one = fa.Policy(
            name="lenses",
            criteria=[
                fa.Criterion(lens="extremes", tolerance=0.1, attributes=["sex"]),
                fa.Criterion(lens="individual", tolerance=1.25),
                fa.Criterion(lens="projection", binding=False),
            ],
        )
        text = one.to_toml()
        assert '[[policy.criterion]]\nlens = "extremes"\ntolerance = 0.1\n' in text
        assert "metric" not in text
        assert load(tmp_path, text) == one
        assert fa.Policy.from_dict(one.to_dict()) == one


class TestErrors:
    @pytest.mark.parametrize(
        ("old", "new", "line", "message"),
        [
            ("tolerance = 0.1", "tolerence = 0.1", 14, "tolerence is not a key of a criterion.*0.1"
             ".*did you mean 'tolerance'"),
            ("tolerance = 0.1", "tolerance = '0.1'", 14, "tolerance is '0.1'; accepted: a finite"),
            ("tolerance = 0.1", "tolerance = 10", 14, "tolerance is 10.0; accepted: a number ab"),
            ("tolerance = 0.1\n", "", 12, "tolerance is None and ratio is None"),
            ('metric = "tpr"', 'metric = "tqr"', 13, "metric is 'tqr', which is not the"),
            ('metric = "tpr"\n', "", 12, "metric is missing in a criterion"),
            ("ratio = 0.8", "ratio = 1.25", 18, "ratio is 1.25; accepted"),
            ('metric = "tpr"', 'lens = "extreme"', 13, "lens is 'extreme'; accepted: 'projection'"),
            ('metric = "tpr"', 'lense = "extremes"', 13, "lense is not a key of a .* mean 'lens'"),
            ('metric = "tpr"', 'metric = "tpr"\nlens = "extremes"', 14, "lens is 'extremes' and m"),
            ('metric = "tpr"', 'lens = "individual"', 14, "tolerance is 0.1; accepted for the in"),
            ('metric = "tpr"\ntolerance = 0.1', 'lens = "extremes"', 12, "tolerance is None, but"),
            ('metric = "selection_rate"', 'lens = "extremes"', 18, "ratio is 0.8, but extremes"),
            ("binding = false", 'binding = "no"', 23, "binding is 'no'; accepted: True"),
            ('    "race",', "    3,", 19, "attributes holds 3; accepted: a list of texts"),
            ("alpha = 0.01", "alpha = 5", 8, "alpha is 5; accepted: a number strictly"),
            ("alpha = 0.01", "aplha = 0.01", 8, "aplha is not a key of .policy.*mean 'alpha'"),
            ("[25, 45]", "[45, 25]", 9, r"bands of 'age' is \[45, 25\]"),
            ("[2e4]", "['a']", 9, "bands of 'yearly income' is 'a'; accepted: a finite number"),
            ('"granted"', "2020-01-01", 10, "favourable is datetime.date.*; accepted: a value"),
            ('name = "credit"', "", 2, r"name is missing in \[policy\]"),
            ("[roles]", "[rolls]", 25, "rolls is not a key of the file.*mean 'roles'"),
            ('name = "credit"', 'preset = "eeoc"', 3, "preset is 'eeoc'; accepted: 'opport"),
            ('name = "credit"', 'preset = "us_eeoc"', 12, "criterion is given with the preset us_"),
            ('name = "credit"', 'preset = "parity"', 2, "name is missing.*not those of parity"),
            ("alpha = 0.01", "ratio = 0.8", 8, "ratio is 0.8, but there is no preset"),
            ("[[policy.criterion]]\nmetric = \"selection_rate\"", "[[policy.criterion]]\n"
             'metric = "f1"', 18, "ratio is 0.8, but f1 is not a share"),
        ],
    )  # fmt: skip
    def test_of_keys_and_values(self, old, new, line, message, tmp_path):
        assert OWN.count(old) == 1 + (new == "") * (OWN.count(old) - 1)
        with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
            load(tmp_path, OWN.replace(old, new, 1))
        assert re.match(rf".*fairaudit\.toml, line {line}: {message}", str(caught.value)), caught

    def test_errors_keep_their_class(self, tmp_path):
        with pytest.raises(UnknownMetricError, match="line 13"):
            load(tmp_path, OWN.replace('"tpr"', '"tqr"'))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[policy]\nname = ", "line 2: not valid TOML: "),
            ("[policy]\n\n\nname = 1 2\n", "line 4: not valid TOML: "),
            ("", r"fairaudit.toml has no table \[policy\]. Add one .*\[\[policy.criterion\]\]"),
            ("[policy]\n[policy.criterion]\nmetric = 'f1'", "line 2: criterion is {.*two brackets"),
            ("[policy]\nname = 'x'\n", r"line 1: criterion is missing in \[policy\]"),
            ("[policy]\nname = 'x'\ncriterion = []\n", "line 3: criterion is missing"),
            ("[policy]\nname = 'x'\ncriterion = [\n 3]\n", "line 4: a criterion is 3; accepted"),
            ("policy = 3", "line 1: .policy. is 3; accepted: a table"),
            (
                "[policy]\npreset = 'parity'\nratio = 0.9",
                "line 3: ratio is 0.9, but the preset",
            ),
            ("[policy]\npreset = 'fair_lending'\nratio = 0.9", "line 1: references is None"),
        ],
    )
    def test_of_files(self, text, message, tmp_path):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            load(tmp_path, text)

    def test_of_files_without_text(self, tmp_path):
        with pytest.raises(FileError, match=r"none\.toml cannot be read: No such file"):
            fa.Policy.load(tmp_path / "none.toml")
        with pytest.raises(FileError, match="cannot be read: Is a directory"):
            fa.Policy.load(tmp_path)
        (tmp_path / "x.toml").write_bytes(b"[policy]\nname = '\xff'")
        with pytest.raises(ArgumentError, match=r"x\.toml, line 2: not UTF-8 text"):
            fa.Policy.load(tmp_path / "x.toml")
        with pytest.raises(ArgumentTypeError, match=r"path is 3; accepted: the path of a \.toml"):
            fa.Policy.load(3)

    def test_a_pyproject_without_policy(self, tmp_path):
        message = (
            r"has no table \[tool.fairaudit.policy\]. .*\[\[tool.fairaudit.policy.criterion\]\]"
        )
        with pytest.raises(ArgumentError, match=message):
            load(tmp_path, "[project]\nname = 'x'\n[policy]\n", "pyproject.toml")
        with pytest.raises(
            ArgumentError, match=r"line 2: polcy is not a key of \[tool.fairaudit\]"
        ):
            load(tmp_path, "[tool.fairaudit]\npolcy = 1", "pyproject.toml")

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("y_tru = 'a'", 2, r"y_tru is not a key of \[roles\].*mean 'y_true'"),
            ("y_true = 3", 2, "y_true is 3; accepted: the name of a column$"),
            ("y_true = ['a']", 2, "y_true is .*; accepted: the name of a column$"),
            ("\nstrata = []", 3, r"strata is \[\]; accepted: the name of a column, or a list"),
            ("strata = [1]", 2, "strata holds 1; accepted"),
        ],
    )
    def test_of_roles(self, text, line, message, tmp_path):
        path = tmp_path / "x.toml"
        path.write_text(f"[roles]\n{text}\n")
        with pytest.raises((ArgumentError, ArgumentTypeError), match=f"line {line}: {message}"):
            read_roles(path)


# -- lines -------------------------------------------------------------------------------------

TRAPS = '''
a = "x = 1 # no comment" # b = 2
"quoted [key]" = 1
'lit.eral' . sub = 2
c.d.e = """
f = 3
[g]
\\""" h = 4 """
i = \'\'\'
[[j]]
k = 1\'\'\'
q = """"two quotes at the end"""""
l = [ [1, 2], # m = 3 ]
  ["]", '}'],
]
n = { o = { p = "}" }, r = [ { s = 1 },
  { s = 2 } ] }
t = 1979-05-27T07:32:00Z
u = -inf

[ table . "sub table" ]
v = 1
[[array.of]]
w = 1
[[array.of.of]]
x = 1
[[array.of.of]]
x = 2
[[array.of]]
w = 2
[array.of.table]
y = 1
'''


def walked(value, path=()):
    """Paths of all keys and entries of a read text."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield (*path, key)
            yield from walked(entry, (*path, key))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield (*path, place)
            yield from walked(entry, (*path, place))


def line_of(text, part, nth=0):
    return [i for i, line in enumerate(text.split("\n"), 1) if part in line][nth]


class TestLines:
    def test_all_keys_have_one_and_nothing_else(self):
        found = key_lines(TRAPS)
        expected = set(walked(tomllib.loads(TRAPS)))
        # Tables that are only part of the name of another one have no line of their own.
        assert expected - set(found) == {("table",), ("array",)}
        assert set(found) <= expected

    @pytest.mark.parametrize(
        ("path", "part", "nth"),
        [
            (("a",), "a = ", 0),
            (("quoted [key]",), "quoted [key]", 0),
            (("lit.eral", "sub"), "lit.eral", 0),
            (("c", "d", "e"), "c.d.e", 0),
            (("i",), "i = '''", 0),
            (("l", 1), "[\"]\", '}']", 0),
            (("n", "o", "p"), "n = {", 0),
            (("n", "r", 1, "s"), "{ s = 2", 0),
            (("u",), "u = -inf", 0),
            (("table", "sub table", "v"), "v = 1", 0),
            (("array", "of", 0, "of", 1, "x"), "x = 2", 0),
            (("array", "of", 1), "[[array.of]]", 1),
            (("array", "of", 1, "w"), "w = 2", 0),
            (("array", "of", 1, "table", "y"), "y = 1", 0),
        ],
    )
    def test_they_are_right(self, path, part, nth):
        assert key_lines(TRAPS)[path] == line_of(TRAPS, part, nth)

    @given(
        st.recursive(
            st.booleans() | st.integers(-9, 9) | st.text() | st.floats(allow_nan=False),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def test_whatever_is_written(self, value):
        text = write_toml([("[table]", {"before": 1, "value": value, "after": [2]})])
        content = tomllib.loads(text)
        assert set(key_lines(text)) == set(walked(content))
        assert content["table"]["value"] == value
        assert key_lines(text)["table", "after"] == text.count("\n")

    def test_halves_of_surrogates_are_in_no_file(self):
        assert tomllib.loads(f"x = {value_text(chr(0xD800))}") == {"x": "?"}


def test_the_files_of_the_docs_are_read(tmp_path):
    page = Path(__file__).resolve().parents[2] / "docs" / "policy.md"
    texts = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(texts) >= 3
    for text in texts:
        name = "pyproject.toml" if "tool.fairaudit" in text else "fairaudit.toml"
        assert load(tmp_path, text, name).criteria
