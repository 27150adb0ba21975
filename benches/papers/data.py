"""The public data sets of the papers, read where they are (FAIRAUDIT_DATA) and never copied."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]

# fmt: off
DRUG_FEATURES = [
    "age", "gender", "education", "country", "ethnicity", "nscore", "escore", "oscore", "ascore",
    "cscore", "impulsive", "ss",
]
SUBSTANCES = [
    "alcohol", "amphet", "amyl", "benzos", "caff", "cannabis", "choc", "coke", "crack", "ecstasy",
    "heroin", "ketamine", "legalh", "lsd", "meth", "mushrooms", "nicotine", "semer", "vsa",
]
ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
]
ADULT_NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
ADULT_CATEGORIES = ["workclass", "marital-status", "occupation", "relationship"]
# fmt: on
DRUG_WHITE = -0.31685
ARRHYTHMIA_SEX, ARRHYTHMIA_NORMAL = 1, 1


@dataclass(frozen=True)
class DataSet:
    """Rows of a binary problem; missing features are NaN, the group is coded 0 and 1."""

    name: str
    features: Matrix
    label: Codes
    group: Codes


@dataclass(frozen=True)
class Individuals:
    """Rows of a binary problem with two protected attributes, coded 0 and 1.

    The first `n_protected` features are protected themselves; `numbers` are those to standardize.
    """

    name: str
    features: Matrix
    label: Codes
    gender: Codes
    race: Codes
    n_protected: int
    numbers: tuple[int, ...]


def folder() -> Path:
    """Where the data sets are."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("FAIRAUDIT_DATA", default))
    if not path.is_dir():
        sys.exit(f"no folder {path}: set FAIRAUDIT_DATA to the folder of the public data sets")
    return path


def arrhythmia(
    n_features: int = 12, *, with_sex: bool = False, positive: str = "normal"
) -> DataSet:
    """Arrhythmia (UCI): normal or not; the sensitive attribute is sex."""
    path = folder() / "arrhythmia" / "arrhythmia.data"
    frame = pl.read_csv(path, has_header=False, null_values="?", infer_schema_length=None)
    values = frame.cast(pl.Float64).fill_null(np.nan).to_numpy()
    sex = values[:, ARRHYTHMIA_SEX]
    features = np.delete(values[:, :-1], ARRHYTHMIA_SEX, axis=1)[:, :n_features]
    if with_sex:
        features = np.column_stack([features, sex])
    normal = values[:, -1] == ARRHYTHMIA_NORMAL
    label = normal if positive == "normal" else ~normal
    return DataSet("Arrhythmia", features, _codes(label), _codes(sex == 1))


def compas(
    sensitive: str = "race", *, with_race: bool = False, positive: int = 1, all_races: bool = False
) -> DataSet:
    """COMPAS with ProPublica's filter: reoffended within two years or not."""
    frame = filtered_compas()
    if not all_races:
        frame = frame.filter(pl.col("race").is_in(["African-American", "Caucasian"]))
    others = _codes((frame["race"] != "African-American").to_numpy())
    male = _codes((frame["sex"] == "Male").to_numpy())
    ages = [frame["age_cat"] == age for age in sorted(frame["age_cat"].unique())]
    columns = [*ages, male, frame["priors_count"], frame["c_charge_degree"] == "M"]
    if with_race:
        columns.append(others)
    features = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    label = _codes((frame["two_year_recid"] == positive).to_numpy())
    return DataSet("COMPAS", features, label, others if sensitive == "race" else male)


def adult_individuals() -> Individuals:
    """Adult (both files): 45,222 rows without missing values; sex and race are no features."""
    frame = complete_adult()
    numbers = frame.select(ADULT_NUMBERS).cast(pl.Float64).to_numpy()
    categories = [
        frame[column] == level
        for column in ADULT_CATEGORIES
        for level in sorted(frame[column].unique())
    ]
    features = np.column_stack([numbers, *(np.asarray(c, dtype=np.float64) for c in categories)])
    rich = frame["income"].str.starts_with(">50K").to_numpy()
    male, white = (frame["sex"] == "Male").to_numpy(), (frame["race"] == "White").to_numpy()
    numbered = tuple(range(len(ADULT_NUMBERS)))
    return Individuals("Adult", features, _codes(rich), _codes(male), _codes(white), 0, numbered)


def compas_individuals() -> Individuals:
    """COMPAS, African-Americans and Caucasians: sex and race are the first two features."""
    frame = filtered_compas().filter(pl.col("race").is_in(["African-American", "Caucasian"]))
    female, white = frame["sex"] == "Female", frame["race"] == "Caucasian"
    ages = [frame["age_cat"] == age for age in sorted(frame["age_cat"].unique())]
    columns = [female, white, frame["priors_count"], *ages, frame["c_charge_degree"] == "F"]
    features = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    label = _codes((frame["two_year_recid"] == 1).to_numpy())
    protected = _codes(female.to_numpy()), _codes(white.to_numpy())
    return Individuals("COMPAS", features, label, *protected, 2, (2,))


@dataclass(frozen=True)
class BinaryRows:
    """Binary features by name, a label, and the group that is looked at."""

    name: str
    names: tuple[str, ...]
    features: Matrix
    label: Codes
    target: NDArray[np.bool_]


def adult_binary() -> BinaryRows:
    """Adult as Wang et al. made it binary: 32,561 rows, 16 features; the target group is women."""
    frame = pl.read_csv(folder() / "adult_proxy" / "adult_proxy_data.csv.gz")
    names = tuple(name for name in frame.columns if name not in ("IncomeOver50K", "Sex"))
    features = frame.select(pl.col(names).cast(pl.Float64)).to_numpy()
    label = _codes((frame["IncomeOver50K"] == 1).to_numpy())
    return BinaryRows("Adult", names, features, label, (frame["Sex"] == "Female").to_numpy())


def compas_binary() -> BinaryRows:
    """COMPAS, African-Americans and Caucasians, binary features; the target: African-Americans."""
    frame = filtered_compas().filter(pl.col("race").is_in(["African-American", "Caucasian"]))
    priors = frame["priors_count"].to_numpy()
    columns = {
        "Male": frame["sex"] == "Male",
        "Age_lt_25": frame["age_cat"] == "Less than 25",
        "Age_gt_45": frame["age_cat"] == "Greater than 45",
        "Priors_geq_1": priors >= 1,
        "Priors_geq_4": priors >= 4,
        "Felony": frame["c_charge_degree"] == "F",
        "JuvenileRecord": (
            frame["juv_fel_count"] + frame["juv_misd_count"] + frame["juv_other_count"] > 0
        ),
    }
    features = np.column_stack(
        [np.asarray(column, dtype=np.float64) for column in columns.values()]
    )
    label = _codes((frame["two_year_recid"] == 1).to_numpy())
    target = (frame["race"] == "African-American").to_numpy()
    return BinaryRows("COMPAS", tuple(columns), features, label, target)


def drug(
    substance: str = "cannabis",
    *,
    sensitive: str = "ethnicity",
    with_ethnicity: bool = False,
    positive: str = "never",
) -> DataSet:
    """Drug consumption (Fehrman et al.): a substance never used, or ever used."""
    path = folder() / "drug" / "drug_consumption.data"
    frame = pl.read_csv(path, has_header=False, new_columns=["id", *DRUG_FEATURES, *SUBSTANCES])
    white = np.isclose(frame["ethnicity"].to_numpy(), DRUG_WHITE)
    female = frame["gender"].to_numpy() > 0
    dropped = {"gender"} if sensitive == "gender" else {"ethnicity"}
    kept = [name for name in DRUG_FEATURES if with_ethnicity or name not in dropped]
    features = frame.select(kept).cast(pl.Float64).to_numpy()
    never = (frame[substance] == "CL0").to_numpy()
    label = never if positive == "never" else ~never
    group = female if sensitive == "gender" else white
    return DataSet("Drug", features, _codes(label), _codes(group))


@dataclass(frozen=True)
class Flippable:
    """Rows of a binary problem with a protected attribute, without missing values.

    The first feature is the attribute, 1 for the privileged group; the label is 1 where it is
    favourable. `frame` has the other features as they are in the file.
    """

    name: str
    #: Those with attribute 1, and the others.
    groups: tuple[str, str]
    features: Matrix
    label: Codes
    frame: pl.DataFrame

    @classmethod
    def from_frame(
        cls,
        name: str,
        groups: tuple[str, str],
        privileged: pl.Series,
        favourable: pl.Series,
        frame: pl.DataFrame,
    ) -> "Flippable":
        """Numbers as they are, then an indicator of each level of a text but the first."""
        numbers = [column for column in frame if column.dtype.is_numeric()]
        levels = [
            column == level
            for column in frame
            if not column.dtype.is_numeric()
            for level in sorted(column.unique().to_list())[1:]
        ]
        columns = [
            np.asarray(number, dtype=np.float64) for number in (privileged, *numbers, *levels)
        ]
        label = _codes(favourable.to_numpy())
        return cls(name, groups, np.column_stack(columns), label, frame)


def census(attribute: str) -> Flippable:
    """Adult (both files), rows without missing values: men and women, or White and Black."""
    frame = complete_adult()
    if attribute == "race":
        frame = frame.filter(pl.col("race").is_in(["White", "Black"]))
    other, level = ("race", "White") if attribute == "sex" else ("sex", "Male")
    privileged = frame[attribute] == ("Male" if attribute == "sex" else "White")
    groups = ("men", "women") if attribute == "sex" else ("White", "Black")
    columns = frame.select(
        (pl.col(other) == level).cast(pl.Int64), pl.col(ADULT_NUMBERS).cast(pl.Int64),
        *ADULT_CATEGORIES,
    )  # fmt: skip
    rich = frame["income"].str.starts_with(">50K")
    return Flippable.from_frame("Census", groups, privileged, rich, columns)


def complete_adult() -> pl.DataFrame:
    """Adult (both files): 45,222 rows without missing values."""
    frame = pl.concat([_adult_file("adult.data.gz", 0), _adult_file("adult.test.gz", 1)])
    return frame.filter(~pl.any_horizontal(pl.all() == "?"))


def german() -> Flippable:
    """German credit: sex out of the code of sex and marriage, which goes."""
    names = [f"c{i}" for i in range(21)]
    path = folder() / "german" / "german.data"
    frame = pl.read_csv(path, separator=" ", has_header=False, new_columns=names)
    man = frame["c8"] != "A92"
    return Flippable.from_frame(
        "Credit", ("men", "women"), man, frame["c20"] == 1, frame.drop("c8", "c20")
    )


def bank() -> Flippable:
    """Bank marketing: younger than 25 years or not; the age itself is no feature."""
    frame = pl.read_csv(folder() / "bank" / "bank-full.csv.gz", separator=";")
    young, yes = frame["age"] < 25, frame["y"] == "yes"
    return Flippable.from_frame("Bank", ("young", "old"), young, yes, frame.drop("age", "y"))


def compas_races() -> Flippable:
    """COMPAS with ProPublica's filter: Caucasians and all others; favourable: not reoffended."""
    frame = filtered_compas()
    white, did_not = frame["race"] == "Caucasian", frame["two_year_recid"] == 0
    columns = frame.select(
        (pl.col("sex") == "Male").cast(pl.Int64), "age", "priors_count", "juv_fel_count",
        "juv_misd_count", "juv_other_count", "c_charge_degree",
    )  # fmt: skip
    return Flippable.from_frame("COMPAS", ("Caucasian", "other"), white, did_not, columns)


def default() -> Flippable:
    """Default of credit card clients; favourable: none."""
    path = folder() / "default" / "default_of_credit_card_clients.csv.gz"
    frame = pl.read_csv(path, skip_rows=1)
    label = "default payment next month"
    man, none = frame["SEX"] == 1, frame[label] == 0
    columns = frame.drop("ID", "SEX", label).with_columns(
        pl.col("EDUCATION", "MARRIAGE").cast(pl.Utf8)
    )
    return Flippable.from_frame("Default", ("men", "women"), man, none, columns)


def heart() -> Flippable:
    """Heart disease (Cleveland), 297 complete rows; favourable: none."""
    names = [f"c{i}" for i in range(14)]
    path = folder() / "heart" / "processed.cleveland.data"
    frame = pl.read_csv(path, has_header=False, new_columns=names, null_values="?").drop_nulls()
    man, none = frame["c1"] == 1, frame["c13"] == 0
    columns = frame.drop("c1", "c13").with_columns(pl.col("c2", "c6", "c10", "c12").cast(pl.Utf8))
    return Flippable.from_frame("Heart", ("men", "women"), man, none, columns)


def meps(which: int) -> Flippable:
    """Medical expenditure, 2015 or 2016: codes as numbers; favourable: much use."""
    file = {2015: "meps15/mep1_processed.csv.gz", 2016: "meps16/mep2_processed.csv.gz"}[which]
    frame = pl.read_csv(folder() / file, infer_schema_length=None)
    man, much = frame["sex"] == 0, frame["Probability"] == 1
    columns = frame.drop("sex", "Probability", frame.columns[-1])
    return Flippable.from_frame(f"MEPS{which - 2000}", ("men", "women"), man, much, columns)


def students() -> Flippable:
    """Students of Portuguese and of mathematics, one below the other; favourable: passed."""
    files = [folder() / "student" / f"student-{name}.csv" for name in ("por", "mat")]
    frame = pl.concat([pl.read_csv(file, separator=";") for file in files])
    grades = pl.col("G1", "G2").cast(pl.Utf8).str.strip_chars('"').cast(pl.Int64)
    man, passed = frame["sex"] == "M", frame["G3"] >= 10
    columns = frame.drop("sex", "G3").with_columns(grades)
    return Flippable.from_frame("Students", ("men", "women"), man, passed, columns)


def prepare(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    """Fill missing values and standardize all columns but indicators, from the training part."""
    median = np.nanmedian(train, axis=0)
    train, test = (np.where(np.isnan(part), median, part) for part in (train, test))
    indicator = np.all((train == 0) | (train == 1), axis=0)
    mean = np.where(indicator, 0.0, train.mean(axis=0))
    deviation = np.where(indicator | (np.ptp(train, axis=0) == 0), 1.0, train.std(axis=0))
    return (train - mean) / deviation, (test - mean) / deviation


def _codes(values: NDArray[np.bool_]) -> Codes:
    return values.astype(np.int64)


def _adult_file(name: str, n_skipped: int) -> pl.DataFrame:
    frame = pl.read_csv(
        folder() / "adult" / name, has_header=False, skip_rows=n_skipped,
        new_columns=ADULT_COLUMNS, infer_schema=False,
    )  # fmt: skip
    return frame.drop_nulls().select(pl.all().str.strip_chars())


def filtered_compas() -> pl.DataFrame:
    """COMPAS with ProPublica's filter."""
    frame = pl.read_csv(folder() / "compas" / "compas-scores-two-years.csv.gz")
    return frame.filter(
        pl.col("days_b_screening_arrest").is_between(-30, 30),
        pl.col("is_recid") != -1,
        pl.col("c_charge_degree") != "O",
        pl.col("score_text") != "N/A",
    )
