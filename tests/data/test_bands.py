"""Numbers cut into bands where the data are read, the same from arrays, frames and files."""

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.data.bands import band_names
from fairaudit_rs.data.tables import AuditTable

AGES = [18, 25, 26, 45, 46, 80, 25, 30]
CUTS = {"age": (25, 45)}
SIZES = {("up to 25",): 3, ("above 25 up to 45",): 3, ("above 45",): 2}


def sizes(**given):
    table = AuditTable.make(**given).with_bands(CUTS)
    return table.cells(columns=()).group_sizes()


def test_names():
    assert band_names((25,)) == ["up to 25", "above 25"]
    assert band_names((0.5, 10, 1e6)) == [
        "up to 0.5", "above 0.5 up to 10", "above 10 up to 1e+06", "above 1e+06"
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [int, float, np.int8, np.float32])
def test_arrays(kind):
    assert sizes(sensitive_features={"age": np.array(AGES, dtype=kind)}) == SIZES
    assert list(sizes(sensitive_features={"age": np.array(AGES, dtype=kind)})) == list(SIZES)


def test_frames_and_files(tmp_path):
    frame = pl.DataFrame({"age": AGES, "d": [0, 1] * 4})
    frame.write_csv(tmp_path / "ages.csv")
    for data in (frame, frame.lazy(), frame.to_pandas(), tmp_path / "ages.csv"):
        assert sizes(data=data, sensitive_features="age") == SIZES
        table = AuditTable.make(data=data, y_pred="d", sensitive_features="age").with_bands(CUTS)
        assert table.with_cache().rows(columns=["y_pred"]).cells.group_sizes() == SIZES


def test_missing_ages_are_in_no_band():
    gaps = [*AGES, None]
    for data in (pl.DataFrame({"age": gaps}), {"age": [*map(float, AGES), np.nan]}):
        table = AuditTable.make(data=data, sensitive_features="age").with_bands(CUTS)
        cells = table.cells(columns=())
        assert (cells.group_sizes(), cells.n_missing) == (SIZES, 1)


@pytest.mark.parametrize(
    "ages",
    [["young", "old"] * 4, [0, 1] * 4, [True, False] * 4, [50, 60] * 4],
    ids=["text", "codes", "booleans", "one band"],
)
def test_what_no_cut_goes_through_stays(ages):
    expected = {(age,): 4 for age in ages[:2]}
    assert sizes(sensitive_features={"age": ages}) == expected
    assert sizes(data=pl.DataFrame({"age": ages}), sensitive_features="age") == expected


def test_numbers_of_cells_are_cut_as_those_of_rows():
    cells = fa.tabulate(sensitive_features={"age": AGES}, y_pred=[0, 1] * 4)
    assert sizes(data=cells) == sizes(sensitive_features={"age": AGES})


def test_other_attributes_stay():
    found = sizes(sensitive_features={"age": AGES, "years": AGES})
    assert {key[1] for key in found} == set(AGES)
