"""The projection lens against baselines, in one run on one machine.

Baselines of the projection itself start from what it starts from: distances, decisions and gains
that are there already. Public calls are timed from arrays. With --write the tables go to
benches/README.md and docs/performance.md.
"""

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs import _native
from report import machine, memory_table, run, seconds, time_table, timed

AFTER = """
The first rows compare the projection alone, from distances, decisions and groups to who moves; the
public call reads the columns, estimates the density near the boundary and finds p too. The fewer
rows move, the less there is to select: the model of these rows has a gap of 0.027 in its true
positive rates (54,779 of 10^7 rows move), and one of 0.2 in the row that says so.

Peak memory of a call above its input columns of 10^7 rows, in multiples of these columns:
"""


def make_rows(n, shift):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    y_true = (rng.random(n) < 0.4).astype(np.int64)
    score = rng.normal(0.4 + 0.1 * y_true + shift * group, 0.3, n)
    return y_true, group, score


def phi_of(y_true, group):
    """Equal opportunity: rows of the first group over their number, minus those of the second."""
    n, positive = len(group), y_true == 1
    sizes = [int((positive & (group == g)).sum()) for g in (0, 1)]
    return np.where(positive, np.where(group == 0, n / sizes[0], -n / sizes[1]), 0.0)


def algorithm_1(distance, decision, phi):
    """Algorithm 1 of the paper as printed: sort all rows by gain over distance."""
    target = -phi[decision].sum()
    with np.errstate(divide="ignore"):
        ratio = (1 - 2 * decision) * phi * np.sign(target) / distance
    order = np.argsort(-ratio)
    gain, distance = (ratio * distance)[order], distance[order]
    covered = np.cumsum(gain)
    last = int(np.searchsorted(covered, abs(target)))
    before = covered[last - 1] if last else 0.0
    return distance[:last].sum() + (abs(target) - before) / gain[last] * distance[last]


def filter_and_partition(distance, decision, phi):
    """Move rows that help, no more than needed, as a good NumPy user does."""
    target = -phi[decision].sum()
    gain = (1 - 2 * decision) * phi * np.sign(target)
    helps = gain > 0
    gain, distance = gain[helps], distance[helps]
    ratio, size = distance / gain, 1 << 16
    while True:
        size = min(size, len(ratio))
        nearest = np.argpartition(ratio, size - 1)[:size]
        if gain[nearest].sum() >= abs(target) or size == len(ratio):
            break
        size *= 4
    nearest = nearest[np.argsort(ratio[nearest])]
    covered = np.cumsum(gain[nearest])
    last = int(np.searchsorted(covered, abs(target)))
    before = covered[last - 1] if last else 0.0
    return distance[nearest[:last]].sum() + (abs(target) - before) * ratio[nearest[last]]


def highs_equalized_odds(distance, decision, phi):
    """The linear program (7) as it stands: a variable for every row, simplex without presolve."""
    import highspy

    n = len(distance)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n, 2
    model.col_cost_, model.col_lower_, model.col_upper_ = distance, np.zeros(n), np.ones(n)
    target = -(phi * decision[:, None]).mean(axis=0)
    model.row_lower_ = model.row_upper_ = target
    change = (1 - 2 * decision)[:, None] * phi / n
    row, column = np.nonzero(change.T)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.searchsorted(row, [0, 1, 2]).astype(np.int32)
    model.a_matrix_.index_ = column.astype(np.int32)
    model.a_matrix_.value_ = change.T[row, column] * n
    model.row_lower_ = model.row_upper_ = target * n
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("solver", "simplex")
    solver.passModel(model)
    solver.run()
    return solver.getInfo().objective_function_value


def one_criterion():
    """10^7 rows, equal opportunity."""
    yield from one_gap(0.02, "")
    yield from one_gap(0.15, ", a gap of 0.2")


def one_gap(shift, note):
    y_true, group, score = make_rows(10**7, shift)
    distance, decision = np.abs(score - 0.5), score >= 0.5
    phi = phi_of(y_true, group)
    cell = (2 * (2 * group + y_true) + decision).astype(np.uint16)
    blocks = [([3, 1], [0.0, 0.0], [0.0, 0.0])]

    def ours(n_threads=None):
        call = _native.Call(n_threads)
        return _native.ProjectionRows(distance, cell, 8, call).project(blocks, call).primal

    expected = filter_and_partition(distance, decision, phi)
    assert abs(ours() - expected) < 1e-9 * expected
    mine = seconds(ours)
    work = f"OT projection, one criterion, 10^7 rows{note}"
    printed = timed(lambda: algorithm_1(distance, decision, phi))
    yield work, "NumPy, Algorithm 1 as printed", printed, mine, 10
    partition = seconds(lambda: filter_and_partition(distance, decision, phi), 3)
    yield work, "NumPy, filter and partition", partition, mine, 2
    if not note:
        alone = seconds(lambda: ours(n_threads=1))
        yield "the same, one thread", "NumPy, filter and partition", partition, alone, None
        call = seconds(
            lambda: fa.projection_test(y_true, y_score=score, sensitive_features=group), 3
        )
        work = "projection_test, equal opportunity, 10^7 rows, from arrays"
        yield work, "NumPy, Algorithm 1 as printed (s_N alone)", printed, call, None


def equalized_odds():
    """10^6 rows against the linear program."""
    y_true, group, score = make_rows(10**6, 0.02)
    distance, decision = np.abs(score - 0.5), score >= 0.5
    phi = np.stack([phi_of(y_true, group), phi_of(1 - y_true, group)], axis=1)
    options = {"y_score": score, "sensitive_features": group, "notion": "equalized_odds"}
    cell = (2 * (2 * group + y_true) + decision).astype(np.uint16)
    blocks = [([3, 1], [0.0, 0.0], [0.0, 0.0]), ([2, 0], [0.0, 0.0], [0.0, 0.0])]
    plain = _native.Call()

    def ours():
        return _native.ProjectionRows(distance, cell, 8, plain).project(blocks, plain).primal

    found = []
    highs = timed(lambda: found.append(highs_equalized_odds(distance, decision, phi)))
    assert abs(found[0] - ours()) < 1e-6 * ours(), (found, ours())
    work = "OT projection, equalized odds, 10^6 rows"
    yield work, "HiGHS simplex, presolve off", highs, seconds(ours), 100
    call = seconds(lambda: fa.projection_test(y_true, **options), 3)
    yield "projection_test, the same, from arrays", "HiGHS simplex (s_N alone)", highs, call, None
    permuted = seconds(
        lambda: fa.projection_test(y_true, **options, calibration="permutation", rng=1), 1
    )
    work = "the same with 999 permutations"
    yield work, "999 times our projection", 999 * seconds(ours), permuted, None


SET_UP = """
import numpy as np
import fairaudit_rs as fa
_rng = np.random.default_rng(0)
n = 10**7
y_true = (_rng.random(n) < 0.4).astype(np.int8)
group = _rng.integers(0, 2, n).astype(np.int8)
y_score = _rng.random(n)
distance = np.abs(y_score - 0.5)
y_pred = (y_score >= 0.5).astype(np.int8)
_few = slice(100_000)
fa.projection_test(y_true[_few], y_score=y_score[_few], sensitive_features=group[_few])
"""
MEMORY = {
    "equal opportunity, scores": (
        "fa.projection_test(y_true, y_score=y_score, sensitive_features=group)",
        "del y_pred, distance",
    ),
    "equalized odds, distances": (
        "fa.projection_test(y_true, y_pred, distance=distance, sensitive_features=group, "
        "notion='equalized_odds')",
        "del y_score",
    ),
}


def lines():
    yield from time_table(row for rows in (one_criterion, equalized_odds) for row in rows())
    yield from ["", machine(), *AFTER.splitlines(), ""]
    yield from memory_table(MEMORY, SET_UP)


if __name__ == "__main__":
    run("projection", lines(), __doc__)
