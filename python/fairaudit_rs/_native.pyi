"""The native module; see rust/fairaudit-py."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Codes = NDArray[np.uint32]
_Pairs = Sequence[tuple[int, int]]

__version__: str
SCORE_UNIT: float
FLOW_PART: int

@final
class Draws:
    """Which replicates, of which seed and series: `n` of them from the index `first` on."""

    n: int
    seed: int
    series: int
    first: int
    def __new__(cls, n: int, *, seed: int, series: int = 0, first: int = 0) -> Draws: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Call:
    """How a call is run: on how many threads, and who is told how far it is."""

    n_threads: int | None
    progress: Callable[[int], object] | None
    def __new__(
        cls, n_threads: int | None = None, progress: Callable[[int], object] | None = None
    ) -> Call: ...
    @staticmethod
    def planted_panic() -> Call: ...

@final
class Tabulation:
    value_rows: list[NDArray[np.uint64]]
    codes: _Codes
    counts: NDArray[np.uint64]
    score_sums: NDArray[np.int64]
    cell_of_row: _Codes | None

@final
class CsvRows:
    """The names in the header, and the distinct rows of some columns with their counts, as CSV."""

    names: list[str]
    distinct: bytes | None

def read_csv(path: str, columns: list[str], call: Call) -> CsvRows: ...
def tabulate(
    columns: Sequence[NDArray[np.generic]],
    limits: Sequence[int],
    call: Call,
    *,
    score: _Floats | None = None,
    cells: bool = False,
) -> Tabulation: ...
def distinct_rows(values: _Floats, call: Call) -> tuple[_Codes, NDArray[np.uint64], _Codes]: ...
def bin_scores(scores: _Floats, edges: _Floats, call: Call) -> _Codes: ...

@final
class Evaluation:
    """Value and variance of a metric in a group; numerator and denominator of a quotient."""

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
        bins: Sequence[int],
        score: Sequence[float],
        label: Sequence[float],
        call: Call | None = None,
    ) -> CountMetric: ...
    @staticmethod
    def ranks(levels: int) -> CountMetric: ...
    @staticmethod
    def joint(components: Sequence[CountMetric]) -> CountMetric: ...
    fraction: tuple[list[float], list[float]] | None
    is_proportion: bool
    def evaluate(self, counts: Sequence[float], call: Call | None = None) -> Evaluation: ...
    def gradient(self, counts: Sequence[float]) -> list[float] | None: ...

@final
class Units:
    """What exchanges its group: group and stratum of each unit, the unit of each row."""

    group: NDArray[np.uint16]
    n_groups: int
    stratum: _Codes | None
    of_row: _Codes | None
    def __new__(
        cls,
        group: NDArray[np.uint16],
        n_groups: int,
        *,
        stratum: _Codes | None = None,
        of_row: _Codes | None = None,
    ) -> Units: ...
    def __getnewargs_ex__(self) -> tuple[tuple[NDArray[np.uint16], int], dict[str, Any]]: ...

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
    """By replicate and group."""

    values: _Floats
    #: None where they were not asked for.
    variances: _Floats | Any
    def __new__(cls, values: _Floats, variances: _Floats | None = None) -> Replicates: ...

@final
class PermutationTest:
    """A test of groups, or of a correlation, that has none."""

    observed: float
    needs_centring: bool
    evaluations: list[Evaluation]
    expected: list[float]
    @staticmethod
    def counts(
        counts: NDArray[np.uint64],
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
        weight: _Floats | None = None,
        within_labels: bool = False,
    ) -> PermutationTest: ...
    @staticmethod
    def ratio(
        numerator: _Floats,
        denominator: _Floats | None,
        units: Units,
        call: Call,
        *,
        studentize: str,
    ) -> PermutationTest: ...
    @staticmethod
    def weighted_counts(
        counts: _Floats, metric: CountMetric, units: Units, call: Call, *, studentize: str
    ) -> PermutationTest: ...
    @staticmethod
    def correlation(
        x: _Floats, y: _Floats, call: Call, *, studentize: str, stratum: _Codes | None = None
    ) -> PermutationTest: ...
    def exact(self, alternative: str, call: Call) -> ExactLaw | None: ...
    def null_distribution(self, draws: Draws, call: Call) -> _Floats: ...
    def max_t(self, pairs: _Pairs, draws: Draws, call: Call) -> NDArray[np.uint64]: ...
    def max_t_pvalues(self, pairs: _Pairs, counts: NDArray[np.uint64], n: int) -> list[float]: ...
    def bootstrap(self, draws: Draws, call: Call, *, variances: bool = True) -> Replicates: ...

@final
class Samples:
    rows: _Codes
    sizes: NDArray[np.uint64]

@final
class Assignments:
    """Draws groups of units within strata, and bootstrap samples of a group."""

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
    def statistic(
        self, values: Sequence[float], samples: _Floats, call: Call | None = None
    ) -> float: ...
    def null_distribution(
        self, address: int, columns: Sequence[_Floats], n_samples: int, draws: Draws, call: Call
    ) -> _Floats: ...

@final
class InfluenceColumns:
    def __new__(
        cls,
        columns: Sequence[
            NDArray[np.generic]
            | tuple[_Codes, list[float]]
            | tuple[_Floats, int]
        ],
        call: Call,
    ) -> InfluenceColumns: ...
    not_finite: tuple[int, int] | None
    ends: list[tuple[float, float]]

@final
class InfluenceRows:
    def __new__(
        cls,
        columns: InfluenceColumns,
        ones: Sequence[float],
        group: tuple[NDArray[np.int64], NDArray[np.bool_], _Floats],
        call: Call,
    ) -> InfluenceRows: ...
    sums: _Floats
    def gram(
        self,
        influences: _Floats,
        parts_of_u: Sequence[float],
        leverages: _Floats,
        call: Call,
    ) -> tuple[_Floats, _Floats]: ...

@final
class InfluenceDesign:
    def __new__(
        cls,
        features: _Floats,
        center: Sequence[float],
        scale: Sequence[float],
        pairs: Sequence[tuple[int, int]],
    ) -> InfluenceDesign: ...
    def cross_fit(
        self,
        count: _Floats,
        positive: _Floats,
        penalties: Sequence[float],
        call: Call,
    ) -> tuple[
        _Floats, int, _Floats, _Floats, _Floats
    ]: ...
    def scores(self, coefficients: _Floats, call: Call) -> _Floats: ...
    def sums(self, weights: _Floats, call: Call) -> _Floats: ...
    def gram(self, weights: _Floats, call: Call) -> _Floats: ...

def group_moments(
    group: tuple[NDArray[np.int64], NDArray[np.bool_], _Floats], call: Call
) -> _Floats: ...
def normal_maxima(
    correlation: _Floats, draws: Draws, call: Call
) -> _Floats: ...
def repair_envelopes(
    rows: _Floats,
    strata: _Codes,
    weights: Sequence[float],
    score: _Floats,
    call: Call,
) -> tuple[NDArray[np.uint64], _Codes, _Floats]: ...
def repair_reduced_costs(
    rows: _Floats,
    strata: _Codes,
    weights: Sequence[float],
    score: _Floats,
    slope: _Floats,
    call: Call,
) -> _Floats: ...
def nearest_rows(
    rows: _Floats,
    strata: _Codes,
    known: _Floats,
    known_strata: _Codes,
    weights: Sequence[float],
    call: Call,
) -> tuple[_Codes, _Floats]: ...
def descent_path(
    target: tuple[_Floats, _Floats, NDArray[np.int64]],
    chance: _Floats,
    others: tuple[_Floats, _Floats, NDArray[np.int64]],
    rates: _Floats,
    rule: tuple[float, float, float, float, int],
    call: Call,
) -> tuple[_Floats, _Floats, str]: ...
def descent_factors(
    chance: _Floats,
    score: _Floats,
    steps: _Floats,
    call: Call,
) -> _Floats: ...
def beta_quantile(a: float, b: float, p: float) -> float: ...
def count_extreme(
    null: _Floats, observed: float, alternative: str, centred: bool, call: Call
) -> tuple[int, int]: ...
def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]: ...
def hypergeometric(
    population: int, marked: int, drawn: int, draws: Draws, call: Call
) -> NDArray[np.uint64]: ...
def binomial(trials: int, probability: float, draws: Draws, call: Call) -> NDArray[np.uint64]: ...
def normal_quantile(p: float) -> float: ...
def t_tail_quantile(tail: float, df: float) -> float: ...
def t_upper_tail(t: float, df: float) -> float: ...
def clopper_pearson(successes: int, trials: int, level: float) -> tuple[float, float]: ...

#: Units with the reference first, and how far each rate may lie below and above its rate.
_Block = tuple[Sequence[int], Sequence[float], Sequence[float]]

#: The cell of rows that take no part.
NO_CELL: int

@final
class Tally:
    """Numbers and weights of the rows of every cell."""

    rows: NDArray[np.int64]
    finite: NDArray[np.int64]
    weight: _Floats
    finite_weight: _Floats
    square: _Floats

@final
class Plan:
    """Who moves, what share of each, and the certificate of the cost."""

    rows: NDArray[np.int64]
    fraction: _Floats
    primal: float
    dual: float
    residual: float
    prices: _Floats

@final
class Unreachable:
    """The block and the place of the unit in it that hinder, and how far it gets."""

    block: int
    unit: int
    reach: float

@final
class Spread:
    """Number, mean and standard deviation of the finite signed margins."""

    rows: int
    mean: float
    standard_deviation: float

@final
class Windows:
    """Kernel sums of every unit: weight K / b at three bandwidths, weight K, (weight K)^2."""

    density: _Floats
    mass: _Floats
    square: _Floats

@final
class DistinctMargins:
    """How many margins differ, and among how many rows."""

    margins: int
    rows: int

@final
class ProjectionRows:
    """Rows with distance, cell and weight: held, checked and tallied once."""

    def __new__(
        cls,
        distance: _Floats,
        cell: NDArray[np.uint16],
        n_cells: int,
        call: Call,
        *,
        weight: _Floats | None = None,
    ) -> ProjectionRows: ...
    tally: Tally
    def project(self, blocks: Sequence[_Block], call: Call) -> Plan | Unreachable: ...
    def select(self, gains: _Floats, target: float, call: Call) -> Plan | Unreachable: ...
    def affordable(
        self,
        gains: _Floats,
        budgets: _Floats,
        call: Call,
        *,
        by_row: bool = False,
    ) -> _Floats: ...
    def spread(self, call: Call) -> Spread: ...
    def windows(self, used: Sequence[bool], bandwidth: float, call: Call) -> Windows: ...
    def distinct_margins(self, cut: _Floats, enough: int, call: Call) -> DistinctMargins: ...
    def histogram(self, limit: float, bins: int, call: Call) -> _Floats: ...
    def curves(self, used: Sequence[bool], call: Call) -> CellCurves: ...
    def exchange(self, blocks: Sequence[_Block], call: Call) -> PermutationTest: ...

@final
class CurvePoints:
    """Mass and cost of the first rows of a cell."""

    mass: _Floats
    cost: _Floats

@final
class PriceRanks:
    """How many rows of a cell lie below a price, and how many up to and with it."""

    below: int
    up_to: int

@final
class CellCurves:
    """The rows of some cells by distance."""

    def rows(self, cell: int, call: Call | None = None) -> int: ...
    def points(self, cell: int, ranks: Sequence[int], call: Call | None = None) -> CurvePoints: ...
    def ranks(self, cell: int, price: float, call: Call | None = None) -> PriceRanks: ...
    def conjugate(self, prices: Sequence[float], call: Call | None = None) -> float: ...
    def cost(self, masses: Sequence[float], call: Call | None = None) -> float: ...
    def take(self, masses: Sequence[float], call: Call) -> Plan: ...

@final
class BoxTail:
    """A tail probability, how far off it may be, and whether it is an upper bound."""

    tail: float
    error: float
    is_bound: bool

@final
class BoxLaw:
    """The law of the statistic where the criteria may lie in a box."""

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
    """Steps of length size / t^decay, and the numbers of steps after which scores are kept."""

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
    """Sums of the audit value along the flow: kept by part of the rows, told by recorded step."""

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
    def __getnewargs__(
        self,
    ) -> tuple[int, list[tuple[int, float, float]], int, list[tuple[int, int, bool]]]: ...

@final
class Flowed:
    """Rows before and after the flow, and the audit value on their way."""

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
    def __getnewargs__(self) -> tuple[object, object, object, object, object, object]: ...
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
class KernelExpansion:
    """A sum of kernels at support vectors, for each score."""

    def __new__(
        cls,
        support_vectors: _Floats,
        dual_coef: _Floats,
        intercepts: Sequence[float],
        kernel: str,
        *,
        gamma: float,
        degree: int,
        coef0: float,
    ) -> KernelExpansion: ...

@final
class MetricPull:
    """The fair metric as the flow meets it: 2 penalty times its eigenvalues, and their vectors."""

    def __new__(
        cls,
        units: _Floats,
        pulls: Sequence[float],
        eigenvectors: _Floats,
        rest: float,
    ) -> MetricPull: ...

@final
class Flow:
    """Rows, targets, a model and a fair metric; moved in one call."""

    @staticmethod
    def linear(
        features: _Floats,
        targets: _Floats,
        loss: str,
        coef: _Floats,
        intercepts: Sequence[float],
        pulls: Sequence[float],
        gains: _Floats,
    ) -> Flow: ...
    @staticmethod
    def kernel(
        features: _Floats,
        targets: _Floats,
        loss: str,
        model: KernelExpansion,
        metric: MetricPull,
    ) -> Flow: ...
    def run(
        self, schedule: Schedule, call: Call, *, floor: float | None, boundary: float | None
    ) -> Flowed: ...

def moments(values: _Floats, call: Call) -> tuple[float, float]: ...
def bootstrap_ratio(
    numerator: _Floats, denominator: _Floats | None, draws: Draws, call: Call
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
def tail_variations(
    values: _Floats, ks: Sequence[int], residual: bool, call: Call
) -> _Floats: ...
def critical_variations(level: float) -> tuple[int, _Floats]: ...
def tail_goodness(
    excesses: _Floats, draws: Draws, call: Call
) -> tuple[float, float, bool, float, int, int]: ...
def tail_goodness_by_threshold(
    values: _Floats, ks: Sequence[int], draws: Draws, call: Call
) -> list[tuple[float, float, bool, float, int, int] | None]: ...
def forward_stop(pvalues: Sequence[float], rate: float) -> int: ...
def tail_quantiles(
    excesses: _Floats, shape: float, scale: float, confidence: float, call: Call
) -> _Floats: ...
def tail_stability(
    values: _Floats, ks: Sequence[int], m: float, call: Call
) -> _Floats: ...
def zhang_stephens(excesses: _Floats, call: Call) -> tuple[float, float]: ...

@final
class Cuts:
    values: _Floats
    def __new__(cls, values: _Floats) -> Cuts: ...
    def __getnewargs__(self) -> tuple[_Floats]: ...
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
    def z(
        self, m: float, levels: _Floats, cuts: Cuts, call: Call
    ) -> _Floats: ...
    def shape_interval(
        self, confidence: float, cuts: Cuts, call: Call
    ) -> tuple[float, float] | None: ...

def compare_levels(
    sides: Sequence[TailValues | tuple[Tail, Cuts]],
    pairs: Sequence[tuple[int, int]],
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
