"""Same seed, same bits: for any threads, any kind of table, any order of files, any split."""

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa

N = 60_000


@pytest.fixture(scope="module")
def frame():
    return pl.DataFrame(fa.datasets.synthetic_credit(N, rng=5))


def run(seed=7, metric="f1", **options):
    return fa.permutation_test(metric=metric, n_resamples=2_000, rng=seed, **options)


def of_frame(data, **options):
    return run(data=data, y_true="repaid", y_pred="approved", sensitive_features="sex", **options)


def same(first, second):
    assert np.array_equal(first.null_distribution, second.null_distribution)
    assert first.to_dict() == second.to_dict()


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_threads(frame, n_threads):
    same(of_frame(frame), of_frame(frame, n_threads=n_threads))


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_threads_with_arrays(frame, n_threads):
    options = {
        "y_true": frame["repaid"].to_numpy(),
        "y_pred": frame["approved"].to_numpy(),
        "sensitive_features": {"sex": frame["sex"].to_numpy()},
        "n_threads": n_threads,
    }
    same(of_frame(frame), run(**options))


def test_threads_of_max_t_and_omnibus(frame):
    options = {"sensitive_features": ["sex", "age"], "adjust": "max-t"}
    results = [
        fa.permutation_test(
            "repaid",
            "approved",
            data=frame,
            metric="mcc",
            n_resamples=500,
            rng=1,
            n_threads=n_threads,
            **options,
        )
        for n_threads in (1, 2, 7)
    ]
    same(results[0], results[1])
    same(results[0], results[2])


def test_files_in_any_order(frame, tmp_path):
    for i, part in enumerate(frame.iter_slices(N // 7)):
        part.write_parquet(tmp_path / f"part-{i}.parquet")
    whole = of_frame(frame)
    same(whole, of_frame(str(tmp_path / "*.parquet")))
    files = sorted(tmp_path.glob("*.parquet"))
    same(whole, of_frame(files))
    same(whole, of_frame(files[::-1]))
    same(whole, of_frame(tmp_path))


def test_csv_and_lazy_frames(frame, tmp_path):
    frame.write_csv(tmp_path / "data.csv")
    same(of_frame(frame), of_frame(tmp_path / "data.csv"))
    same(of_frame(frame), of_frame(frame.lazy()))


def test_cells_of_parts_add_up(frame):
    parts = [
        fa.tabulate(part, y_true="repaid", y_pred="approved", sensitive_features="sex")
        for part in (frame[: N // 3], frame[N // 3 : N // 2], frame[N // 2 :])
    ]
    whole = of_frame(frame)
    same(whole, run(data=parts[0] + parts[1] + parts[2]))
    same(whole, run(data=parts[2] + (parts[0] + parts[1])))
    same(whole, run(data=sum(parts)))


def test_scores_in_bins(frame, tmp_path):
    """Sums of scores do not depend on the order of rows either."""
    options = {"y_true": "repaid", "y_score": "score", "sensitive_features": "age"}
    shuffled = frame.sample(fraction=1, shuffle=True, seed=3)
    shuffled.write_parquet(tmp_path / "shuffled.parquet")
    results = [
        run(data=data, metric="ece", **options)
        for data in (frame, shuffled, tmp_path / "shuffled.parquet")
    ]
    results.append(
        run(
            y_true=frame["repaid"].to_numpy(),
            y_score=frame["score"].to_numpy(),
            sensitive_features={"age": frame["age"].to_numpy()},
            metric="ece",
            n_threads=7,
        )
    )
    for result in results[1:]:
        same(results[0], result)


def test_the_seed_of_a_result_repeats_it(frame):
    first = of_frame(frame, seed=None)
    same(first, of_frame(frame, seed=first.seed))
    assert of_frame(frame, seed=None).seed != first.seed


@pytest.mark.parametrize(
    "make",
    [
        lambda: 12,
        lambda: 2**70,
        lambda: np.random.SeedSequence(4),
        lambda: np.random.default_rng(4),
        lambda: np.int32(12),
    ],
)
def test_every_kind_of_rng(frame, make):
    same(of_frame(frame, seed=make()), of_frame(frame, seed=make()))


def test_a_generator_moves_on(frame):
    generator = np.random.default_rng(4)
    assert of_frame(frame, seed=generator).seed != of_frame(frame, seed=generator).seed


def test_random_state_is_an_alias(frame):
    options = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex"}
    first = fa.permutation_test(data=frame, metric="f1", rng=5, n_resamples=99, **options)
    second = fa.permutation_test(data=frame, metric="f1", random_state=5, n_resamples=99, **options)
    same(first, second)


def test_more_replicates_begin_with_the_same_ones(frame):
    few = of_frame(frame)
    many = fa.permutation_test(
        "repaid",
        "approved",
        data=frame,
        sensitive_features="sex",
        metric="f1",
        n_resamples=5_000,
        rng=7,
    )
    assert np.array_equal(few.null_distribution, many.null_distribution[:2_000])


def test_different_seeds_and_pairs_differ(frame):
    assert not np.array_equal(
        of_frame(frame).null_distribution, of_frame(frame, seed=8).null_distribution
    )
