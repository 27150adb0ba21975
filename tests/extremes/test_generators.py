"""Generators of rows: what they keep, what they refuse, and frames of the user's kind."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import stats

from fairaudit_rs import errors
from fairaudit_rs.extremes.column_law import ColumnLaw
from fairaudit_rs.extremes.copula import GaussianCopula, nearest_correlation
from fairaudit_rs.extremes.ctgan import CTGAN
from fairaudit_rs.extremes.frame_rows import take_rows
from fairaudit_rs.extremes.generator import fit_generator, group_seed, new_generator, per_group
from fairaudit_rs.extremes.mixed_columns import read_mixed
from fairaudit_rs.extremes.modes import ColumnLayout, ColumnModes
from fairaudit_rs.extremes.smoothed import SmoothedBootstrap, mirror_at_bounds
from fairaudit_rs.extremes.tvae import TVAE

SMALL = {"n_epochs": 3, "n_hidden": 16, "n_latent": 8}
MADE = {
    "bootstrap": SmoothedBootstrap,
    "switched": lambda: SmoothedBootstrap(switch=0.2),
    "copula": GaussianCopula,
    "tvae": lambda: TVAE(**SMALL),
}


def rows(n=400, seed=0):
    """Numbers, whole numbers, truth, text, and a gain that most have not."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    return {
        "income": rng.exponential(size=n) + age / 40,
        "age": age.astype(np.int32),
        "retired": age + rng.normal(0, 5, n) > 62,
        "job": rng.choice(["clerk", "cook", "nurse"], n, p=[0.5, 0.3, 0.2]),
        "gain": np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
    }


FORMS = {
    "dict": dict,
    "lists": lambda X: {name: column.tolist() for name, column in X.items()},
    "pandas": pd.DataFrame,
    "categories": lambda X: pd.DataFrame(X, index=np.arange(len(X["age"])) + 7).astype(
        {"job": "category", "age": "Int16", "income": "float32"}
    ),
    "polars": pl.DataFrame,
    "enums": lambda X: pl.DataFrame(X).with_columns(
        pl.col("job").cast(pl.Enum(["nurse", "cook", "clerk", "never"])),
        pl.col("income").cast(pl.Float32),
        pl.col("age").cast(pl.UInt8),
    ),
    "arrow": lambda X: pl.DataFrame(X).to_arrow(),
    "array": lambda X: np.column_stack([X["income"], X["age"], X["retired"]]),
    "tensor": lambda X: torch.tensor(np.column_stack([X["income"], X["age"]]), dtype=torch.float32),
}


def types(X):
    if isinstance(X, dict):
        return {name: (type(column), getattr(column, "dtype", None)) for name, column in X.items()}
    if isinstance(X, pd.DataFrame):
        return dict(X.dtypes)
    return X.schema if hasattr(X, "schema") else X.dtype


class Shifted:
    """A generator of a user: rows as they are, changed by a function."""

    def __init__(self, change=lambda X: X):
        self.change = change

    def fit(self, X, rng=None):
        self.X = X
        return self

    def sample(self, n, rng=None):
        place = np.random.default_rng(rng).integers(0, len(self.X["age"]), n)
        return self.change({name: column[place] for name, column in self.X.items()})


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        ("gan", r"generator is 'gan'; accepted: 'bootstrap', 'copula', 'tvae', 'ctgan', or an"),
        (SmoothedBootstrap, "a class; accepted: 'bootstrap'"),
        (3, "generator is 3, without fit; accepted"),
    ],
)
def test_what_is_no_generator(generator, message):
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=message):
        new_generator(generator)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: SmoothedBootstrap(bandwidth="scott"), "bandwidth is 'scott'; accepted: 'silv"),
        (lambda: SmoothedBootstrap(bandwidth=-1), "bandwidth is -1; accepted"),
        (lambda: SmoothedBootstrap(switch=2), "switch is 2; accepted: a probability from 0"),
        (lambda: SmoothedBootstrap(keep_moments=1), "keep_moments is 1; accepted: True, False"),
        (lambda: SmoothedBootstrap(bounds=3), "bounds is 3; accepted: a dict"),
        (lambda: TVAE(n_epochs=0), "n_epochs is 0; accepted"),
        (lambda: TVAE(learning_rate=0), "learning_rate is 0; accepted"),
        (
            lambda: TVAE(weight_decay=-1),
            "weight_decay is -1; accepted: a finite number of at least 0",
        ),
        (lambda: CTGAN(options=3), "options is 3; accepted: a dict of arguments of ctgan.CTGAN"),
    ],
)
def test_arguments(made, message):
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match=message):
        made()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"height": (0, 1)}, "bounds names 'height'; accepted: columns of X: 'income'"),
        ({"job": (0, 1)}, "names column 'job', which has levels"),
        ({"age": (30, None)}, r"bounds of column 'age' are \(30, None\), but its numbers go from"),
        ({"age": 30}, "bounds of column 'age' are 30; accepted"),
    ],
)
def test_bounds_that_are_none(bounds, message):
    with pytest.raises(errors.FairAuditError, match=message):
        SmoothedBootstrap(bounds=bounds).fit(rows())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"age": [1.0, np.nan, 2.0]}, "column 'age' of X is nan in row 1, and missing, infinite"),
        ({"age": [1, None, 2]}, "column 'age' of X has numbers and missing values"),
        ({"age": [1.0]}, "X has 1 rows and 1 columns; accepted: at least 2 rows"),
        ({}, "X has 0 rows and 0 columns"),
        ({"age": [1, 2], "job": ["a"]}, "'job' of X has 1 rows, but column 'age' has 2"),
    ],
)
def test_rows_that_cannot_be_learned(X, message):
    for made in MADE.values():
        with pytest.raises(errors.DataError, match=message):
            made().fit(X)


@pytest.mark.parametrize("name", MADE)
def test_a_sample_comes_after_a_fit(name):
    generator = MADE[name]()
    with pytest.raises(errors.DataError, match=r"has learned no rows yet\. Call fit before"):
        generator.sample(3)
    generator.fit(rows())
    with pytest.raises(errors.ArgumentError, match="n is 0; accepted: a whole number from 1 to"):
        generator.sample(0)


def test_too_many_levels_for_a_network():
    X = {"name": [f"n{i}" for i in range(501)]}
    with pytest.raises(errors.DataError, match="'name' of X has 501 levels; TVAE takes at most"):
        TVAE().fit(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: {**X, "job": np.full(len(X["job"]), "king")}, "column 'job' .* has 'king'; acc"),
        (lambda X: {**X, "age": X["age"] + 0.5}, "'age' .* has numbers that are not whole"),
        (lambda X: {**X, "gain": X["gain"] * np.nan}, "'gain' of the sample of generator Shifted"),
        (lambda X: {k: v[1:] for k, v in X.items()}, "Shifted has 9 rows; accepted: 10, as reque"),
        (lambda X: {k: X[k] for k in ("age", "job")}, "has the columns 'age', 'job'; accepted: th"),
        (pd.DataFrame, "Shifted is a pandas object; accepted: a dict of columns, like X"),
    ],
)
def test_what_a_generator_must_not_give(change, message):
    with pytest.raises(errors.DataError, match=message):
        fit_generator(Shifted(change), rows()).sample(10, rng=0)


def test_a_generator_that_fails_is_named():
    def fail(X):
        raise ZeroDivisionError("no rows")

    with pytest.raises(errors.FunctionError, match="sample of generator Shifted failed: ZeroDiv"):
        fit_generator(Shifted(fail), rows()).sample(10)


def test_ctgan_says_what_to_install():
    code = (
        "import sys; sys.modules['ctgan'] = None\n"
        "from fairaudit_rs.extremes.generator import fit_generator\n"
        "try:\n    fit_generator('ctgan', {'age': [1, 2, 3]})\n"
        "except ValueError as error:\n    print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "the package ctgan cannot be imported" in shown.stdout
    assert "pip install ctgan" in shown.stdout


def test_torch_is_loaded_only_for_tvae():
    code = (
        "import sys\nfrom fairaudit_rs.extremes.generator import fit_generator\n"
        "fit_generator('copula', {'age': [1, 2, 3]}).sample(2)\nassert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- known values -----------------------------------------------------------------------------


def test_mirrored():
    found = mirror_at_bounds(np.array([-0.5, 0.2, 1.25, 9.0]), 0.0, 1.0)
    assert found.tolist() == [0.5, 0.2, 0.75, 0.0]
    assert mirror_at_bounds(np.array([-3.0]), -np.inf, np.inf).tolist() == [-3.0]


def test_kinds_of_columns():
    X = {
        "few": [0, 1, 2, 3] * 10,
        "whole": list(range(40)),
        "whole floats": np.arange(40.0),
        "numbers": np.arange(40) + 0.5,
        "text": ["b", "a"] * 20,
        "truth": [True, False] * 20,
        "gaps": ["b", None] * 20,
    }
    found = read_mixed(X).columns
    kinds = ["levels", "integers", "integers", "numbers", "levels", "levels", "levels"]
    assert [column.kind for column in found] == kinds
    assert [found[place].labels for place in (0, 4, 5, 6)] == [
        (0, 1, 2, 3), ("a", "b"), (False, True), ("b", None)
    ]  # fmt: skip


def test_a_margin_keeps_atoms_and_interpolates_between_values():
    column = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 5.0, 6.0])
    margin = ColumnLaw.from_column(column, column == 0)
    at = stats.norm.ppf([0.01, 0.49, 0.51, 9 / 16, 10 / 16, 11 / 16, 0.99])
    np.testing.assert_allclose(margin.at(at), [0, 0, 2, 2, 2.5, 3, 6], atol=1e-12)
    # The mean of a standard normal number below 0.
    np.testing.assert_allclose(margin.scores[:4], -np.sqrt(2 / np.pi))
    np.testing.assert_allclose(margin.scores[4:], stats.norm.ppf(np.arange(9, 16, 2) / 16))


def test_hermite_means_by_quadrature():
    """E[s(Z) h_k(Z)] for a law with an atom between -0.3 and 0.8, by a fine sum."""
    column = np.arange(1000.0)
    low, high = round(1000 * stats.norm.cdf(-0.3)), round(1000 * stats.norm.cdf(0.8))
    column[low:high] = low
    margin = ColumnLaw.from_column(column, column == low)
    edge = stats.norm.ppf([low / 1000, high / 1000])
    z = np.linspace(-9, 9, 200_001)
    inside = (z > edge[0]) & (z < edge[1])
    score = np.where(inside, np.average(z[inside], weights=stats.norm.pdf(z[inside])), z)
    w = stats.norm.pdf(z) * (z[1] - z[0])
    for k in range(1, 7):
        he = np.polynomial.hermite_e.HermiteE.basis(k)(z) / np.sqrt(float(np.prod(range(1, k + 1))))
        assert margin.hermite[k - 1] == pytest.approx(np.sum(w * score * he), abs=1e-4)
    assert margin.variance == pytest.approx(np.sum(w * score**2), abs=1e-4)


def test_a_tetrachoric_correlation():
    """Two halves at their medians: P(both) = 1/4 + arcsin(r) / (2 pi), r = 0.5 for 1/3."""
    both = np.repeat([[1, 1], [0, 0], [1, 0], [0, 1]], [200, 200, 100, 100], axis=0).astype(bool)
    copula = GaussianCopula().fit({"a": both[:, 0], "b": both[:, 1]})
    assert copula.correlation[0, 1] == pytest.approx(0.5, abs=1e-3)


def test_the_nearest_correlation_matrix():
    """Higham (2002), section 4: the tridiagonal matrix of ones, of order 3."""
    found = nearest_correlation(np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]]))
    expected = [[1, 0.7607, 0.1573], [0.7607, 1, 0.7607], [0.1573, 0.7607, 1]]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert np.linalg.eigvalsh(found)[0] > 0
    held = np.array([[1.0, 0.3], [0.3, 1.0]])
    assert (nearest_correlation(held) == held).all()


def test_modes_of_two_normal_laws_and_an_atom():
    rng = np.random.default_rng(1)
    column = np.r_[np.zeros(500), rng.normal(-10, 1, 600), rng.normal(10, 2, 900)]
    found = ColumnModes.from_column(column)
    np.testing.assert_allclose(found.mean, [0, -10, 10], atol=0.25)
    np.testing.assert_allclose(found.spread, [0, 1, 2], atol=0.15)
    np.testing.assert_allclose(found.share, [0.25, 0.3, 0.45], atol=1e-3)
    chances = found.chances(np.array([0.0, -10.0, 10.0]))
    np.testing.assert_allclose(chances, np.eye(3), atol=1e-6)


# --- reference --------------------------------------------------------------------------------


def test_the_smoothed_bootstrap_keeps_mean_variance_and_correlation():
    rng = np.random.default_rng(3)
    z = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 800)
    X = {"a": 5 + 2 * z[:, 0], "b": np.exp(z[:, 1] / 2)}
    free = dict.fromkeys(X, (None, None))
    found = SmoothedBootstrap(bounds=free).fit(X).sample(200_000, rng=1)
    wide = SmoothedBootstrap(bounds=free, keep_moments=False).fit(X).sample(200_000, rng=1)
    width = (4 / 4) ** (1 / 6) * 800 ** (-1 / 6)
    for name, column in X.items():
        error = 6 * column.std() / np.sqrt(200_000)
        assert abs(found[name].mean() - column.mean()) < error
        assert found[name].var() == pytest.approx(column.var(), rel=0.03)
        assert wide[name].var() == pytest.approx(column.var() * (1 + width**2), rel=0.03)
    assert np.corrcoef(*found.values())[0, 1] == pytest.approx(
        np.corrcoef(*X.values())[0, 1], abs=0.01
    )


def test_the_copula_keeps_laws_and_hidden_correlations():
    rng = np.random.default_rng(5)
    R = np.array([[1, 0.6, 0.5, -0.4], [0.6, 1, 0.3, 0], [0.5, 0.3, 1, 0.2], [-0.4, 0, 0.2, 1]])
    z = rng.multivariate_normal(np.zeros(4), R, 20_000)
    X = {
        "number": np.exp(z[:, 0]),
        "whole": np.rint(40 + 10 * z[:, 1]).astype(int),
        "flag": z[:, 2] > 0.8,
        "some": np.maximum(z[:, 3], 0.3),
    }
    copula = GaussianCopula().fit(X)
    np.testing.assert_allclose(copula.correlation, R, atol=0.03)
    found = copula.sample(20_000, rng=1)
    for name, column in X.items():
        assert stats.ks_2samp(found[name], column).statistic < 0.03
    # Plain correlations of the scores of cut columns are too small.
    plain = np.corrcoef([found["number"], found["flag"]])[0, 1]
    assert plain < 0.4 < copula.correlation[0, 2]


def gap_of_ages(X):
    return X["age"][X["retired"]].mean() - X["age"][~X["retired"]].mean()


@pytest.mark.calibration
def test_tvae_learns_shares_means_and_dependence_of_some_hundred_rows():
    X = rows(500)
    generator = TVAE().fit(X, rng=1)
    found = generator.sample(4_000, rng=2)
    training = generator.training
    assert training.losses[-1] < training.losses[0] - 1
    assert training.n_steps == 3_000
    assert training.ended in ("settled", "still falling")
    assert found["age"].mean() == pytest.approx(X["age"].mean(), abs=3)
    for name, value in (("gain", 0), ("job", "clerk")):
        share = (X[name] == value).mean()
        assert (found[name] == value).mean() == pytest.approx(share, abs=0.08)
    assert gap_of_ages(found) > 0.7 * gap_of_ages(X)
    paper = TVAE(n_epochs=300, batch_size=500).fit(X, rng=1)
    assert gap_of_ages(paper.sample(4_000, rng=2)) < 0.5 * gap_of_ages(X)


# --- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MADE)
def test_frames_come_back_in_their_kind(name, form):
    X = FORMS[form](rows())
    found = fit_generator(MADE[name](), X, rng=1).sample(37, rng=2)
    assert type(found) is type(X)
    assert types(found) == types(X)


@pytest.mark.parametrize("name", MADE)
def test_rows_stay_in_bounds_and_atoms_stay(name):
    X = rows()
    found = MADE[name]().fit(X, rng=1).sample(3_000, rng=2)
    for column in ("income", "age", "gain"):
        assert found[column].min() >= X[column].min()
        assert found[column].max() <= X[column].max()
    assert 0.3 < (found["gain"] == 0).mean() < 0.95
    assert set(found["job"]) <= set(X["job"])


@pytest.mark.parametrize("name", MADE)
def test_a_seed_gives_the_same_rows_in_any_order_of_the_input(name):
    X = rows()
    first = MADE[name]().fit(X, rng=1).sample(50, rng=2)
    shuffled = take_rows(X, np.random.default_rng(0).permutation(400))
    n_threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(2)
    try:
        second = MADE[name]().fit(shuffled, rng=1).sample(50, rng=2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)
    assert (torch.random.get_rng_state() == state).all()
    for column in X:
        assert (first[column] == second[column]).all()
    other = MADE[name]().fit(X, rng=1).sample(50, rng=3)
    assert any((first[column] != other[column]).any() for column in X)


ANSWERS = """
import hashlib, sys
import numpy as np
from fairaudit_rs.extremes.generator import fit_generator
from fairaudit_rs.extremes.generator_quality import generator_quality
from fairaudit_rs.extremes.tvae import TVAE
rng = np.random.default_rng(0)
z = rng.normal(size=(30_000, 6)) @ rng.normal(size=(6, 6))
X = {f"x{i}": z[:, i] for i in range(6)} | {"t": np.where(z[:, 0] > 0, "a", "b")}
for generator in ("bootstrap", "copula", TVAE(n_epochs=1, batch_size=5_000)):
    found = fit_generator(generator, X, 1).sample(3_000, rng=2)
    print(hashlib.md5(b"".join(column.tobytes() for column in found.values())).hexdigest())
found = generator_quality(X, found, rng=1)
print(repr(found.detection_auc), repr(found.frechet))
"""


def test_the_number_of_threads_plays_no_part():
    shown = {
        subprocess.run(
            [sys.executable, "-c", ANSWERS],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n},
        ).stdout
        for n in "12"
    }
    assert len(shown) == 1
    assert next(iter(shown)).count("\n") == 4


def test_switched_levels_are_drawn_from_the_law_of_the_column():
    job = np.repeat(["clerk", "cook"], [800, 200])
    X = {"job": job, "same": job}
    kept = SmoothedBootstrap().fit(X).sample(20_000, rng=1)
    assert (kept["job"] == kept["same"]).all()
    mixed = SmoothedBootstrap(switch=0.5).fit(X).sample(20_000, rng=1)
    # Equal when neither was drawn anew (1/4), and by chance else: 0.8^2 + 0.2^2 = 0.68.
    assert (mixed["job"] == mixed["same"]).mean() == pytest.approx(0.25 + 0.75 * 0.68, abs=0.02)
    assert (mixed["job"] == "clerk").mean() == pytest.approx(0.8, abs=0.02)


def test_a_bandwidth_of_zero_is_the_bootstrap():
    X = rows()
    seen = set(zip(*(column.tolist() for column in X.values()), strict=True))
    found = SmoothedBootstrap(bandwidth=0).fit(X).sample(500, rng=1)
    assert set(zip(*(column.tolist() for column in found.values()), strict=True)) <= seen


def test_bounds_of_the_user_let_numbers_pass_those_that_were_seen():
    X = {"age": np.arange(20.0, 60) + 0.5}
    bounded = SmoothedBootstrap(bandwidth=1, keep_moments=False, bounds={"age": (0, None)})
    found = bounded.fit(X).sample(5_000, rng=1)["age"]
    assert found.min() >= 0
    assert found.min() < 20
    assert found.max() > 60


@pytest.mark.parametrize("name", MADE)
def test_columns_of_one_value_and_few_rows(name):
    X = {"same": ["a", "a", "a"], "one": [2.5, 2.5, 2.5], "age": [3, 7, 30]}
    found = MADE[name]().fit(X, rng=1).sample(10, rng=2)
    assert found["same"] == ["a"] * 10
    assert found["one"] == [2.5] * 10
    assert all(isinstance(age, int) and 3 <= age <= 30 for age in found["age"])


def test_a_generator_for_each_group():
    frames = {"man": rows(300, 1), "woman": take_rows(rows(300, 2), np.arange(200))}
    frames["woman"]["job"][:] = "cook"
    original = SmoothedBootstrap()
    found = per_group(original, frames, rng=4)
    assert set(found["woman"].sample(100, rng=1)["job"]) == {"cook"}
    assert len(set(found["man"].sample(100, rng=1)["job"])) == 3
    with pytest.raises(errors.DataError, match="has learned no rows"):
        original.sample(1)
    assert group_seed(4, "man") != group_seed(4, "woman")
    alone = per_group(TVAE(**SMALL), {"man": frames["man"]}, rng=4)["man"].sample(20, rng=1)
    both = per_group(TVAE(**SMALL), frames, rng=4)["man"].sample(20, rng=1)
    assert (alone["income"] == both["income"]).all()


def test_a_generator_of_the_user():
    found = fit_generator(Shifted(), rows(), rng=1).sample(10, rng=3)
    assert len(found["age"]) == 10


def test_progress_and_a_stop_between_epochs():
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    n_threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        TVAE(n_epochs=50, progress=stop).fit(rows(), rng=1)
    assert seen == [(1, 50), (2, 50)]
    assert torch.get_num_threads() == n_threads


def test_what_a_network_sees_is_read_back():
    read = read_mixed(rows())
    layout = ColumnLayout.from_rows(read)
    stream = np.random.default_rng(0)
    seen = layout.encoded(read.values, stream)
    assert set(np.unique(seen[:, layout.blocks[2].flags])) == {0.0, 1.0}
    for block in layout.blocks:
        seen[:, block.flags] *= 1_000
    found = layout.decoded(seen, np.zeros(len(layout.blocks)), stream)
    # A number further than four standard deviations from its mode is cut.
    near = np.isclose(found, read.values, atol=1e-9)
    assert near.mean() > 0.99
