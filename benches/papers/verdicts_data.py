"""The public data sets as rows to audit: features, labels, and attributes in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from . import data
from .data import Codes, Matrix

Names = NDArray[np.str_]

# Codes of the drug file that stand for classes of age and for being White.
DRUG_AGES = {
    -0.95197: "18-24",
    -0.07854: "25-34",
    0.49788: "35-44",
    1.09449: "45-54",
    1.82213: "55-64",
    2.59171: "65+",
}


@dataclass(frozen=True)
class AuditRows:
    """Rows of a binary problem: the label is 1 where it is favourable; attributes are words."""

    name: str
    features: Matrix
    label: Codes
    attributes: Mapping[str, Names]

    def take(self, rows: NDArray[np.int64]) -> "AuditRows":
        """Only these rows."""
        attributes = {name: values[rows] for name, values in self.attributes.items()}
        return AuditRows(self.name, self.features[rows], self.label[rows], attributes)


def banded(ages: pl.Series, upper: Sequence[int]) -> Names:
    """Classes of age: up to each of the limits, and above the last."""
    lower = [None, *(limit + 1 for limit in upper)]
    names = [f"{low}-{high}" for low, high in zip(lower[1:-1], upper[1:], strict=True)]
    names = [f"{upper[0]} or younger", *names, f"{lower[-1]} or older"]
    return np.array(names)[np.searchsorted(upper, ages.to_numpy())]


def either(flags: NDArray[np.bool_] | pl.Series, yes: str, no: str) -> Names:
    """Two groups in words."""
    return np.where(np.asarray(flags, dtype=bool), yes, no)


def _sexes(flippable: data.Flippable) -> Names:
    """Of rows whose first feature says who is a man."""
    return either(flippable.features[:, 0] == 1, "men", "women")


def adult() -> AuditRows:
    """Income above 50,000 dollars."""
    frame = data.complete_adult()
    columns = frame.select(pl.col(data.ADULT_NUMBERS).cast(pl.Int64), *data.ADULT_CATEGORIES)
    rich = frame["income"].str.starts_with(">50K")
    one = data.Flippable.from_frame(
        "Adult", ("men", "women"), frame["sex"] == "Male", rich, columns
    )
    attributes = {"sex": _sexes(one), "race": frame["race"].to_numpy().astype(str)}
    return AuditRows("adult", one.features[:, 1:], one.label, attributes)


def arrhythmia() -> AuditRows:
    """A normal heart beat."""
    one = data.arrhythmia()
    attributes = {"sex": either(one.group == 1, "women", "men")}
    return AuditRows("arrhythmia", one.features, one.label, attributes)


def bank() -> AuditRows:
    """A deposit subscribed."""
    one = data.bank()
    attributes = {
        "age": either(one.features[:, 0] == 1, "below 25", "25 or older"),
        "marital": one.frame["marital"].to_numpy().astype(str),
    }
    return AuditRows("bank", one.features[:, 1:], one.label, attributes)


def compas() -> AuditRows:
    """Not arrested again within two years."""
    frame = data.filtered_compas()
    juvenile = ["juv_fel_count", "juv_misd_count", "juv_other_count"]
    columns = frame.select("age", "priors_count", *juvenile, "c_charge_degree")
    man, did_not = frame["sex"] == "Male", frame["two_year_recid"] == 0
    one = data.Flippable.from_frame("COMPAS", ("men", "women"), man, did_not, columns)
    attributes = {
        "sex": _sexes(one),
        "race": frame["race"].to_numpy().astype(str),
        "age": frame["age_cat"].to_numpy().astype(str),
    }
    return AuditRows("compas", one.features[:, 1:], one.label, attributes)


def default() -> AuditRows:
    """No default next month."""
    one = data.default()
    attributes = {"sex": _sexes(one), "age": banded(one.frame["AGE"], (25, 45))}
    return AuditRows("default", one.features[:, 1:], one.label, attributes)


def drug() -> AuditRows:
    """Cannabis never used."""
    one = data.drug(sensitive="gender")
    names = [name for name in data.DRUG_FEATURES if name != "gender"]
    ages = one.features[:, names.index("age")]
    ethnicity = names.index("ethnicity")
    codes = np.array(list(DRUG_AGES))
    nearest = np.abs(ages[:, None] - codes).argmin(axis=1)
    attributes = {
        "gender": either(one.group == 1, "women", "men"),
        "ethnicity": either(np.isclose(one.features[:, ethnicity], data.DRUG_WHITE), "White",
                            "all others"),
        "age": np.array(list(DRUG_AGES.values()))[nearest],
    }  # fmt: skip
    return AuditRows("drug", np.delete(one.features, ethnicity, axis=1), one.label, attributes)


def german() -> AuditRows:
    """A good credit."""
    one = data.german()
    foreign = one.frame["c19"] == "A201"
    attributes = {
        "sex": _sexes(one),
        "age": banded(one.frame["c12"], (25,)),
        "worker": either(foreign, "foreign", "not foreign"),
    }
    return AuditRows("german", one.features[:, 1:], one.label, attributes)


def heart() -> AuditRows:
    """No heart disease."""
    one = data.heart()
    attributes = {"sex": _sexes(one), "age": banded(one.frame["c0"], (54,))}
    return AuditRows("heart", one.features[:, 1:], one.label, attributes)


def meps(which: int) -> AuditRows:
    """Ten visits to a doctor, or more."""
    one = data.meps(which)
    attributes = {
        "sex": _sexes(one),
        "race": either(one.frame["race"] == 1, "white", "all others"),
        "age": banded(one.frame["AGE"], (17, 64)),
    }
    features = one.frame.drop("race").cast(pl.Float64).to_numpy()
    return AuditRows(f"meps{which - 2000}", features, one.label, attributes)


def student() -> AuditRows:
    """Passed: a final grade of 10 or more."""
    one = data.students()
    attributes = {
        "sex": _sexes(one),
        "address": either(one.frame["address"] == "U", "town", "country"),
        "age": banded(one.frame["age"], (17,)),
    }
    return AuditRows("student", one.features[:, 1:], one.label, attributes)


def meps15() -> AuditRows:
    """Of 2015."""
    return meps(2015)


def meps16() -> AuditRows:
    """Of 2016."""
    return meps(2016)


DATA_SETS: tuple[Callable[[], AuditRows], ...] = (
    adult,
    arrhythmia,
    bank,
    compas,
    default,
    drug,
    german,
    heart,
    meps15,
    meps16,
    student,
)
