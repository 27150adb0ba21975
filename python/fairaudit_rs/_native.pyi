"""The native module; see rust/fairaudit-py."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Codes = NDArray[np.uint32]
_Counts = NDArray[np.uint64]
_Groups = NDArray[np.uint16]
_Integers = NDArray[np.int64]
_Weights = _Floats | None
_Strata = _Codes | None
_Pairs = Sequence[tuple[int, int]]
_Numbers = Sequence[float]

__version__: str
SCORE_UNIT: float
FLOW_PART: int
NO_CELL: int

@final
class Draws:
    n: int
    seed: int
    series: int
    first: int
    def __new__(cls, n: int, *, seed: int, series: int = 0, first: int = 0) -> Draws: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]: ...

@final
class Call:
    n_threads: int | None
    progress: Callable[[int], object] | None
    def __new__(
        cls, n_threads: int | None = None, progress: Callable[[int], object] | None = None
    ) -> Call: ...
    @staticmethod
    def planted_panic() -> Call: ...

@final
class Tabulation:
    value_rows: list[_Counts]
    codes: _Codes
    counts: _Counts
    score_sums: _Integers
    cell_of_row: _Strata

@final
class CsvRows:
    names: list[str]
    distinct: bytes | None

def read_csv(path: str, columns: list[str], call: Call) -> CsvRows: ...
def check_parquet(path: str | os.PathLike[str], columns: list[str] | None, call: Call) -> None: ...
def tabulate(
    columns: Sequence[NDArray[np.generic]],
    limits: Sequence[int],
    call: Call,
    *,
    score: _Weights = None,
    cells: bool = False,
) -> Tabulation: ...
def distinct_rows(values: _Floats, call: Call) -> tuple[_Codes, _Counts, _Codes]: ...
def bin_scores(scores: _Floats, edges: _Floats, call: Call) -> _Codes: ...

@final
class Evaluation:
    value: float
    variance: float
    numerator: float
    denominator: float
    def __new__(
        cls, value: float, variance: float, numerator: float = ..., denominator: float = ...
    ) -> Evaluation: ...

@final
class CountMetric:
    @staticmethod
    def formula(text: str) -> CountMetric: ...
    @staticmethod
    def calibration(
        bins: Sequence[int], score: _Numbers, label: _Numbers, call: Call | None = None
    ) -> CountMetric: ...
    @staticmethod
    def ranks(levels: int) -> CountMetric: ...
    @staticmethod
    def joint(components: Sequence[CountMetric]) -> CountMetric: ...
    fraction: tuple[list[float], list[float]] | None
    is_proportion: bool
    def evaluate(self, counts: _Numbers, call: Call | None = None) -> Evaluation: ...
    def gradient(self, counts: _Numbers) -> list[float] | None: ...

@final
class Units:
    group: _Groups
    n_groups: int
    stratum: _Strata
    part: _Strata
    of_row: _Strata
    def __new__(
        cls,
        group: _Groups,
        n_groups: int,
        *,
        stratum: _Strata = None,
        part: _Strata = None,
        of_row: _Strata = None,
    ) -> Units: ...
    def __getnewargs_ex__(self) -> tuple[tuple[_Groups, int], dict[str, Any]]: ...

@final
class Contrast:
    estimate: float
    variance: float
    n_used: int
    n_single: int
    def __new__(cls, estimate: float, variance: float, n_used: int, n_single: int) -> Contrast: ...
    def __getnewargs__(self) -> tuple[float, float, int, int]: ...

@final
class Extremes:
    studentized: int
    corrected: int
    undefined: int
    def __new__(cls, studentized: int, corrected: int, undefined: int) -> Extremes: ...
    def __getnewargs__(self) -> tuple[int, int, int]: ...

@final
class Shifts:
    n: int
    estimate: float
    variance: float
    studentized: float
    corrected: float
    shapes: _Floats
    def __new__(cls, observed: _Floats, shapes: _Floats, replicates: _Floats) -> Shifts: ...
    def __getnewargs__(self) -> tuple[_Floats, _Floats, _Floats]: ...
    def null_distribution(self) -> _Floats: ...
    def extremes(self, gap: float, alternative: str, call: Call) -> Extremes: ...
    def limit(self, alternative: str, level: float, call: Call) -> float: ...
    def joined(self, other: Shifts) -> Shifts: ...

@final
class ExactLaw:
    pvalue: float
    undefined: float
    statistics: _Floats
    probabilities: _Floats
    def __new__(
        cls, pvalue: float, undefined: float, statistics: _Floats, probabilities: _Floats
    ) -> ExactLaw: ...

@final
class Replicates:
    values: _Floats
    variances: Any
    def __new__(cls, values: _Floats, variances: _Weights = None) -> Replicates: ...

@final
class Limits:
    upper: _Floats
    lower: _Floats
    def __new__(cls, upper: _Floats, lower: _Floats) -> Limits: ...

def gaffke_limits(
    numerator: _Floats,
    denominator: _Weights,
    bounds: tuple[float, float],
    group: int,
    draws: Draws,
    call: Call,
) -> Limits: ...
def poisson_binomial_limits(
    score: _Floats, n_events: int, group: int, draws: Draws, call: Call
) -> Limits: ...

@final
class PermutationTest:
    observed: float
    needs_centring: bool
    evaluations: list[Evaluation]
    n_strata: int
    @staticmethod
    def counts(
        counts: _Counts,
        metric: CountMetric,
        *,
        studentize: str,
        conditioning: str | Sequence[int] | None = None,
        call: Call | None = None,
    ) -> PermutationTest: ...
    @staticmethod
    def auc(
        score: _Floats,
        positive: NDArray[np.bool_ | np.uint8],
        units: Units,
        call: Call,
        *,
        studentize: str,
        weight: _Weights = None,
        within_labels: bool = False,
        places: _Groups | None = None,
    ) -> PermutationTest: ...
    @staticmethod
    def ratio(
        numerator: _Floats, denominator: _Weights, units: Units, call: Call, *, studentize: str
    ) -> PermutationTest: ...
    @staticmethod
    def mean(
        parts: Iterable[_Floats], units: Units, call: Call, *, studentize: str
    ) -> PermutationTest: ...
    @staticmethod
    def weighted_counts(
        counts: _Floats, metric: CountMetric, units: Units, call: Call, *, studentize: str
    ) -> PermutationTest: ...
    @staticmethod
    def correlation(
        x: _Floats,
        y: _Floats,
        call: Call,
        *,
        studentize: str,
        stratum: _Strata = None,
        by_rank: bool = False,
    ) -> PermutationTest: ...
    def exact(self, alternative: str, call: Call) -> ExactLaw | None: ...
    def null_distribution(self, draws: Draws, call: Call) -> _Floats: ...
    def contrast(self, first: int, second: int) -> Contrast | None: ...
    def shifts(self, draws: Draws, call: Call) -> Shifts: ...
    def audits(self, n_resamples: int, draws: Draws, call: Call) -> _Floats: ...
    def max_t(self, pairs: _Pairs, draws: Draws, call: Call) -> _Counts: ...
    def max_t_pvalues(self, pairs: _Pairs, counts: _Counts, n: int) -> list[float]: ...
    def bootstrap(self, draws: Draws, call: Call, *, variances: bool = True) -> Replicates: ...

@final
class WeakNull:
    @staticmethod
    def rows(
        numerator: _Floats,
        denominator: _Weights,
        units: Units,
        cell: _Codes,
        call: Call,
        *,
        studentize: str,
    ) -> WeakNull: ...
    @staticmethod
    def counts(
        counts: _Counts,
        numerator: _Floats,
        denominator: _Weights,
        call: Call,
        *,
        studentize: str,
        conditioning: str | Sequence[int] | None = None,
    ) -> WeakNull: ...
    def pvalues(self, n_resamples: int, draws: Draws, call: Call) -> _Floats: ...

def tilted_counts(
    counts: _Counts, probability: _Floats, draws: Draws, audit: int, call: Call
) -> _Counts: ...
def tilted_groups(
    units: Units, probability: _Floats, draws: Draws, audit: int, call: Call
) -> _Groups: ...

@final
class Samples:
    rows: _Codes
    sizes: _Counts

@final
class Assignments:
    def __new__(cls, units: Units, call: Call) -> Assignments: ...
    def groups(self, draws: Draws, replicate: int | None, call: Call) -> _Codes: ...
    def samples(
        self,
        groups: _Codes,
        group: int,
        n_samples: int,
        draws: Draws,
        replicate: int | None,
        call: Call,
    ) -> Samples: ...
    def statistic(self, values: _Numbers, samples: _Floats, call: Call | None = None) -> float: ...
    def null_distribution(
        self, address: int, columns: Sequence[_Floats], n_samples: int, draws: Draws, call: Call
    ) -> _Floats: ...

@final
class InfluenceColumns:
    def __new__(
        cls,
        columns: Sequence[NDArray[np.generic] | tuple[_Codes, list[float]] | tuple[_Floats, int]],
        call: Call,
    ) -> InfluenceColumns: ...
    not_finite: tuple[int, int] | None
    ends: list[tuple[float, float]]

@final
class InfluenceRows:
    def __new__(
        cls,
        columns: InfluenceColumns,
        ones: _Numbers,
        group: tuple[_Integers, NDArray[np.bool_], _Floats],
        call: Call,
    ) -> InfluenceRows: ...
    sums: _Floats
    def gram(
        self, influences: _Floats, parts_of_u: _Numbers, leverages: _Floats, call: Call
    ) -> tuple[_Floats, _Floats]: ...

@final
class InfluenceDesign:
    def __new__(
        cls, features: _Floats, center: _Numbers, scale: _Numbers, pairs: _Pairs
    ) -> InfluenceDesign: ...
    def cross_fit(
        self, count: _Floats, positive: _Floats, penalties: _Numbers, call: Call
    ) -> tuple[_Floats, int, _Floats, _Floats, _Floats]: ...
    def scores(self, coefficients: _Floats, call: Call) -> _Floats: ...
    def sums(self, weights: _Floats, call: Call) -> _Floats: ...
    def gram(self, weights: _Floats, call: Call) -> _Floats: ...

def group_moments(group: tuple[_Integers, NDArray[np.bool_], _Floats], call: Call) -> _Floats: ...
def normal_maxima(correlation: _Floats, draws: Draws, call: Call) -> _Floats: ...
def repair_envelopes(
    rows: _Floats, strata: _Codes, weights: _Numbers, score: _Floats, call: Call
) -> tuple[_Counts, _Codes, _Floats]: ...
def repair_reduced_costs(
    rows: _Floats, strata: _Codes, weights: _Numbers, score: _Floats, slope: _Floats, call: Call
) -> _Floats: ...
def nearest_rows(
    rows: _Floats,
    strata: _Codes,
    known: _Floats,
    known_strata: _Codes,
    weights: _Numbers,
    call: Call,
) -> tuple[_Codes, _Floats]: ...
def descent_path(
    target: tuple[_Floats, _Floats, _Integers],
    chance: _Floats,
    others: tuple[_Floats, _Floats, _Integers],
    rates: _Floats,
    rule: tuple[float, float, float, float, int],
    call: Call,
) -> tuple[_Floats, _Floats, str]: ...
def descent_factors(chance: _Floats, score: _Floats, steps: _Floats, call: Call) -> _Floats: ...
def beta_quantile(a: float, b: float, p: float) -> float: ...
def count_extreme(
    null: _Floats, observed: float, alternative: str, centred: bool, call: Call
) -> tuple[int, int]: ...
def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]: ...
def hypergeometric(
    population: int, marked: int, drawn: int, draws: Draws, call: Call
) -> _Counts: ...
def binomial(trials: int, probability: float, draws: Draws, call: Call) -> _Counts: ...
def normal_quantile(p: float) -> float: ...
def t_tail_quantile(tail: float, df: float) -> float: ...
def t_upper_tail(t: float, df: float) -> float: ...
def clopper_pearson(successes: int, trials: int, level: float) -> tuple[float, float]: ...

#: Units with the reference first, and how far each rate may lie below and above its rate.
_Block = tuple[Sequence[int], _Numbers, _Numbers]

@final
class Tally:
    rows: _Integers
    finite: _Integers
    weight: _Floats
    finite_weight: _Floats
    square: _Floats

@final
class Plan:
    rows: _Integers
    fraction: _Floats
    primal: float
    dual: float
    residual: float
    prices: _Floats

@final
class Unreachable:
    block: int
    unit: int
    reach: float

@final
class Spread:
    rows: int
    mean: float
    standard_deviation: float

@final
class Windows:
    density: _Floats
    mass: _Floats
    square: _Floats

@final
class DistinctMargins:
    margins: int
    rows: int

@final
class ProjectionRows:
    def __new__(
        cls, distance: _Floats, cell: _Groups, n_cells: int, call: Call, *, weight: _Weights = None
    ) -> ProjectionRows: ...
    tally: Tally
    def project(self, blocks: Sequence[_Block], call: Call) -> Plan | Unreachable: ...
    def select(self, gains: _Floats, target: float, call: Call) -> Plan | Unreachable: ...
    def affordable(
        self, gains: _Floats, budgets: _Floats, call: Call, *, by_row: bool = False
    ) -> _Floats: ...
    def spread(self, call: Call) -> Spread: ...
    def windows(self, used: Sequence[bool], bandwidth: float, call: Call) -> Windows: ...
    def distinct_margins(self, cut: _Floats, enough: int, call: Call) -> DistinctMargins: ...
    def histogram(self, limit: float, bins: int, call: Call) -> _Floats: ...
    def curves(self, used: Sequence[bool], call: Call) -> CellCurves: ...
    def exchange(self, blocks: Sequence[_Block], call: Call) -> PermutationTest: ...

@final
class CurvePoints:
    mass: _Floats
    cost: _Floats

@final
class PriceRanks:
    below: int
    up_to: int

@final
class CellCurves:
    def rows(self, cell: int, call: Call | None = None) -> int: ...
    def points(self, cell: int, ranks: Sequence[int], call: Call | None = None) -> CurvePoints: ...
    def ranks(self, cell: int, price: float, call: Call | None = None) -> PriceRanks: ...
    def conjugate(self, prices: _Numbers, call: Call | None = None) -> float: ...
    def cost(self, masses: _Numbers, call: Call | None = None) -> float: ...
    def take(self, masses: _Numbers, call: Call) -> Plan: ...

@final
class BoxTail:
    tail: float
    error: float
    is_bound: bool

@final
class BoxLaw:
    def __new__(
        cls,
        covariance: _Floats,
        curvature: _Floats,
        low: _Floats,
        high: _Floats,
        call: Call | None = None,
    ) -> BoxLaw: ...
    def tail(self, q: float, call: Call) -> BoxTail: ...
    def quantile(self, tail: float, call: Call) -> float: ...

@final
class Schedule:
    n_steps: int
    size: float
    decay: float
    solver: str
    record: list[int]
    stages: tuple[list[float], list[float]]
    def __new__(
        cls, n_steps: int, size: float, *, decay: float, solver: str, record: Sequence[int]
    ) -> Schedule: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int, float], dict[str, object]]: ...

@final
class Path:
    n_rows: int
    n: list[int]
    mean: list[float]
    squares: list[float]
    wrong_start: int
    wrong_end: list[int]
    wrong_both: list[int]
    finite: list[bool]
    def __new__(
        cls,
        n_rows: int,
        parts: Sequence[tuple[int, float, float]],
        wrong_start: int,
        errors: Sequence[tuple[int, int, bool]],
    ) -> Path: ...
    @staticmethod
    def joined(paths: Sequence[Path]) -> Path: ...

@final
class Flowed:
    start: _Floats
    end: _Floats
    moved: _Floats
    loss_start: _Floats
    loss_end: _Floats
    path: Path
    def __new__(
        cls,
        start: _Floats,
        end: _Floats,
        moved: _Floats,
        loss_start: _Floats,
        loss_end: _Floats,
        path: Path,
    ) -> Flowed: ...
    @staticmethod
    def of_scores(
        scores: _Floats,
        moved: _Floats,
        targets: _Floats,
        loss: str,
        call: Call,
        *,
        floor: float | None,
        boundary: float | None,
    ) -> Flowed: ...

@final
class FlowScores:
    scores: _Floats
    moved: _Floats
    def __new__(cls, scores: _Floats, moved: _Floats) -> FlowScores: ...

@final
class KernelExpansion:
    def __new__(
        cls,
        support_vectors: _Floats,
        dual_coef: _Floats,
        intercepts: _Numbers,
        kernel: str,
        *,
        gamma: float,
        degree: int,
        coef0: float,
    ) -> KernelExpansion: ...

@final
class MetricPull:
    def __new__(
        cls, units: _Floats, pulls: _Numbers, eigenvectors: _Floats, rest: float
    ) -> MetricPull: ...

@final
class Flow:
    @staticmethod
    def linear(
        features: _Floats,
        targets: _Floats,
        loss: str,
        coef: _Floats,
        intercepts: _Numbers,
        pulls: _Numbers,
        gains: _Floats,
    ) -> Flow: ...
    @staticmethod
    def kernel(
        features: _Floats,
        targets: _Floats,
        loss: str,
        model: KernelExpansion,
        metric: MetricPull,
        held: Sequence[Sequence[int]],
    ) -> Flow: ...
    def run(
        self, schedule: Schedule, call: Call, *, floor: float | None, boundary: float | None
    ) -> Flowed: ...
    def scores(self, schedule: Schedule, call: Call) -> FlowScores: ...

def moments(values: _Floats, call: Call) -> tuple[float, float]: ...
def bootstrap_ratio(
    numerator: _Floats, denominator: _Weights, draws: Draws, call: Call
) -> Replicates: ...
def gev_fit(
    maxima: _Floats, call: Call
) -> tuple[tuple[float, float, float], float, float, list[float] | None, str]: ...
def gev_return_level(law: tuple[float, float, float], block_size: float, m: float) -> float: ...
def gev_return_level_interval(
    maxima: _Floats, block_size: float, m: float, confidence: float, call: Call
) -> tuple[float, float]: ...
def gev_of_excesses(
    threshold: float, scale: float, shape: float, expected: float
) -> tuple[float, float, float]: ...
def gev_excesses(law: tuple[float, float, float], threshold: float) -> tuple[float, float]: ...
def tail_variations(values: _Floats, ks: Sequence[int], residual: bool, call: Call) -> _Floats: ...
def critical_variations(level: float) -> tuple[int, _Floats]: ...
def tail_goodness(
    excesses: _Floats, draws: Draws, call: Call
) -> tuple[float, float, bool, float, int, int]: ...
def tail_goodness_by_threshold(
    values: _Floats, ks: Sequence[int], draws: Draws, call: Call
) -> list[tuple[float, float, bool, float, int, int] | None]: ...
def forward_stop(pvalues: _Numbers, rate: float) -> int: ...
def tail_quantiles(
    excesses: _Floats, shape: float, scale: float, confidence: float, call: Call
) -> _Floats: ...
def tail_stability(values: _Floats, ks: Sequence[int], m: float, call: Call) -> _Floats: ...
def zhang_stephens(excesses: _Floats, call: Call) -> tuple[float, float]: ...

@final
class Cuts:
    values: _Floats
    def __new__(cls, values: _Floats) -> Cuts: ...
    @staticmethod
    def of_level(k: int, n: float, m: float) -> Cuts | None: ...
    @staticmethod
    def of_shape(k: int) -> Cuts | None: ...
    def z(self, root: float, shape: float) -> float: ...

@final
class TailValues:
    n: int
    def __new__(cls, values: _Floats, call: Call) -> TailValues: ...
    def top(self, count: int) -> _Floats: ...
    def order_limits(self, m: float, confidence: float) -> tuple[float, float, bool]: ...
    def ties(self, k: int) -> tuple[int, float | None]: ...
    def fit(self, k: int, upper: float | None, resolution: float | None) -> Tail: ...
    def fit_over(self, threshold: float, upper: float | None) -> Tail: ...

@final
class Tail:
    n: int
    k: int
    threshold: float
    shape: float
    scale: float
    log_likelihood: float
    at_edge: bool
    end: float
    def level(self, m: float) -> float: ...
    def interval(
        self, m: float, confidence: float, cuts: Cuts, call: Call
    ) -> tuple[float, float]: ...
    def z(self, m: float, levels: _Floats, cuts: Cuts, call: Call) -> _Floats: ...
    def shape_interval(
        self, confidence: float, cuts: Cuts, call: Call
    ) -> tuple[float, float] | None: ...

def compare_levels(
    sides: Sequence[TailValues | tuple[Tail, Cuts]],
    pairs: _Pairs,
    m: float,
    confidence: float,
    call: Call,
) -> list[tuple[float, float, float, float]]: ...
def permuted_level_differences(
    first: TailValues,
    second: TailValues,
    exceedances: tuple[int, int],
    level: tuple[float, float | None],
    draws: Draws,
    call: Call,
) -> _Floats: ...
def last_cut_score() -> float: ...
def cut_grid() -> tuple[list[float], list[float]]: ...
def default_exceedances(n: int) -> int: ...
def tabled_designs() -> list[tuple[int, float, list[tuple[float, float]]]]: ...
def simulate_level_cuts(
    k: int, designs: Sequence[tuple[float, float]], draws: Draws, call: Call
) -> list[Cuts]: ...
def simulate_shape_cuts(k: int, draws: Draws, call: Call) -> Cuts: ...
