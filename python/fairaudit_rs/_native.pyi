"""The native module; see rust/fairaudit-py."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SCORE_UNIT",
    "Assignments",
    "BoxLaw",
    "BoxTail",
    "Call",
    "CellCurves",
    "CountMetric",
    "CurvePoints",
    "Cuts",
    "DistinctMargins",
    "Draws",
    "Evaluation",
    "ExactLaw",
    "InfluenceColumns",
    "InfluenceDesign",
    "InfluenceRows",
    "PermutationTest",
    "Replicates",
    "Samples",
    "Tail",
    "TailValues",
    "Tabulation",
    "Units",
    "NO_CELL",
    "Plan",
    "PriceRanks",
    "ProjectionRows",
    "Spread",
    "Tally",
    "Unreachable",
    "Windows",
    "__version__",
    "beta_quantile",
    "bin_scores",
    "binomial",
    "bootstrap_ratio",
    "check_csv",
    "clopper_pearson",
    "compare_levels",
    "count_extreme",
    "critical_variations",
    "cut_grid",
    "default_exceedances",
    "descent_factors",
    "descent_path",
    "distinct_rows",
    "forward_stop",
    "gev_excesses",
    "gev_fit",
    "gev_of_excesses",
    "gev_return_level",
    "gev_return_level_interval",
    "group_moments",
    "hypergeometric",
    "kernel_flow",
    "last_cut_score",
    "linear_flow",
    "losses",
    "moments",
    "nearest_rows",
    "normal_maxima",
    "normal_quantile",
    "permuted_level_differences",
    "philox",
    "repair_envelopes",
    "repair_reduced_costs",
    "simulate_level_cuts",
    "simulate_shape_cuts",
    "t_tail_quantile",
    "t_upper_tail",
    "tabled_designs",
    "tabulate",
    "tail_goodness",
    "tail_goodness_by_threshold",
    "tail_quantiles",
    "tail_stability",
    "tail_variations",
    "zhang_stephens",
]

_Floats = NDArray[np.float64]

__version__: str
SCORE_UNIT: float

@final
class Draws:
    """Which replicates, of which seed and series: `n` of them from the index `first` on."""

    @property
    def n(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def series(self) -> int: ...
    @property
    def first(self) -> int: ...
    def __new__(cls, n: int, *, seed: int, series: int = 0, first: int = 0) -> Draws: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Call:
    """How a call is run: on how many threads, and who is told how far it is."""

    @property
    def n_threads(self) -> int | None: ...
    @property
    def progress(self) -> Callable[[int], object] | None: ...
    def __new__(
        cls, n_threads: int | None = None, progress: Callable[[int], object] | None = None
    ) -> Call: ...
    @staticmethod
    def planted_panic() -> Call: ...
    def __getnewargs__(self) -> tuple[int | None, Callable[[int], object] | None]: ...

@final
class Tabulation:
    value_rows: list[NDArray[np.uint64]]
    codes: NDArray[np.uint32]
    counts: NDArray[np.uint64]
    score_sums: NDArray[np.int64]
    cell_of_row: NDArray[np.uint32] | None

def tabulate(
    columns: Sequence[NDArray[np.generic]],
    limits: Sequence[int],
    call: Call,
    *,
    score: _Floats | None = None,
    cells: bool = False,
) -> Tabulation: ...
def distinct_rows(
    values: NDArray[np.float64], call: Call
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]: ...
def check_csv(path: str, call: Call) -> list[str]: ...
def bin_scores(scores: _Floats, edges: _Floats, call: Call) -> NDArray[np.uint32]: ...

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
    def __getnewargs__(self) -> tuple[float, float, float, float]: ...

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
    @property
    def fraction(self) -> tuple[list[float], list[float]] | None: ...
    @property
    def is_proportion(self) -> bool: ...
    def evaluate(self, counts: Sequence[float], call: Call | None = None) -> Evaluation: ...
    def gradient(self, counts: Sequence[float]) -> list[float] | None: ...

@final
class Units:
    """What exchanges its group: group and stratum of each unit, the unit of each row."""

    group: NDArray[np.uint16]
    n_groups: int
    stratum: NDArray[np.uint32] | None
    of_row: NDArray[np.uint32] | None
    def __new__(
        cls,
        group: NDArray[np.uint16],
        n_groups: int,
        *,
        stratum: NDArray[np.uint32] | None = None,
        of_row: NDArray[np.uint32] | None = None,
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
    def __getnewargs__(self) -> tuple[float, float, _Floats, _Floats]: ...

@final
class Replicates:
    """By replicate and group."""

    values: _Floats
    #: None where they were not asked for.
    variances: _Floats | Any
    def __new__(cls, values: _Floats, variances: _Floats | None = None) -> Replicates: ...
    def __getnewargs__(self) -> tuple[_Floats, _Floats | None]: ...

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
        x: _Floats,
        y: _Floats,
        call: Call,
        *,
        studentize: str,
        stratum: NDArray[np.uint32] | None = None,
    ) -> PermutationTest: ...
    def exact(self, alternative: str, call: Call) -> ExactLaw | None: ...
    def null_distribution(self, draws: Draws, call: Call) -> _Floats: ...
    def max_t(
        self, pairs: Sequence[tuple[int, int]], draws: Draws, call: Call
    ) -> NDArray[np.uint64]: ...
    def max_t_pvalues(
        self, pairs: Sequence[tuple[int, int]], counts: NDArray[np.uint64], n: int
    ) -> list[float]: ...
    def bootstrap(self, draws: Draws, call: Call, *, variances: bool = True) -> Replicates: ...

@final
class Samples:
    rows: NDArray[np.uint32]
    sizes: NDArray[np.uint64]

@final
class Assignments:
    """Draws groups of units within strata, and bootstrap samples of a group."""

    def __new__(cls, units: Units, call: Call) -> Assignments: ...
    def groups(self, draws: Draws, replicate: int | None, call: Call) -> NDArray[np.uint32]: ...
    def samples(
        self,
        groups: NDArray[np.uint32],
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
        self,
        address: int,
        columns: Sequence[_Floats],
        n_samples: int,
        draws: Draws,
        call: Call,
    ) -> _Floats: ...

@final
class InfluenceColumns:
    def __new__(
        cls,
        columns: Sequence[
            NDArray[np.generic]
            | tuple[NDArray[np.uint32], list[float]]
            | tuple[NDArray[np.float64], int]
        ],
        call: Call,
    ) -> InfluenceColumns: ...
    @property
    def not_finite(self) -> tuple[int, int] | None: ...
    @property
    def ends(self) -> list[tuple[float, float]]: ...

@final
class InfluenceRows:
    def __new__(
        cls,
        columns: InfluenceColumns,
        ones: Sequence[float],
        group: tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]],
        call: Call,
    ) -> InfluenceRows: ...
    @property
    def sums(self) -> NDArray[np.float64]: ...
    def gram(
        self,
        influences: NDArray[np.float64],
        parts_of_u: Sequence[float],
        leverages: NDArray[np.float64],
        call: Call,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class InfluenceDesign:
    def __new__(
        cls,
        features: NDArray[np.float64],
        center: Sequence[float],
        scale: Sequence[float],
        pairs: Sequence[tuple[int, int]],
    ) -> InfluenceDesign: ...
    def cross_fit(
        self,
        count: NDArray[np.float64],
        positive: NDArray[np.float64],
        penalties: Sequence[float],
        call: Call,
    ) -> tuple[
        NDArray[np.float64], int, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]
    ]: ...
    def scores(self, coefficients: NDArray[np.float64], call: Call) -> NDArray[np.float64]: ...
    def sums(self, weights: NDArray[np.float64], call: Call) -> NDArray[np.float64]: ...
    def gram(self, weights: NDArray[np.float64], call: Call) -> NDArray[np.float64]: ...

def group_moments(
    group: tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]], call: Call
) -> NDArray[np.float64]: ...
def normal_maxima(
    correlation: NDArray[np.float64], draws: Draws, call: Call
) -> NDArray[np.float64]: ...
def repair_envelopes(
    rows: NDArray[np.float64],
    strata: NDArray[np.uint32],
    weights: Sequence[float],
    score: NDArray[np.float64],
    call: Call,
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float64]]: ...
def repair_reduced_costs(
    rows: NDArray[np.float64],
    strata: NDArray[np.uint32],
    weights: Sequence[float],
    score: NDArray[np.float64],
    slope: NDArray[np.float64],
    call: Call,
) -> NDArray[np.float64]: ...
def nearest_rows(
    rows: NDArray[np.float64],
    strata: NDArray[np.uint32],
    known: NDArray[np.float64],
    known_strata: NDArray[np.uint32],
    weights: Sequence[float],
    call: Call,
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]: ...
def descent_path(
    target: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    chance: NDArray[np.float64],
    others: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    rates: NDArray[np.float64],
    rule: tuple[float, float, float, float, int],
    call: Call,
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]: ...
def descent_factors(
    chance: NDArray[np.float64],
    score: NDArray[np.float64],
    steps: NDArray[np.float64],
    call: Call,
) -> NDArray[np.float64]: ...
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

def linear_flow(
    features: NDArray[np.float64],
    targets: NDArray[np.float64],
    loss: str,
    model: tuple[NDArray[np.float64], Sequence[float]],
    eigenvalues: tuple[Sequence[float], Sequence[float]],
    steps: tuple[int, float, float, str, Sequence[int]],
    call: Call,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def kernel_flow(
    features: NDArray[np.float64],
    targets: NDArray[np.float64],
    loss: str,
    model: tuple[NDArray[np.float64], NDArray[np.float64], Sequence[float], str, float, int, float],
    metric: tuple[Sequence[float], NDArray[np.float64], float],
    units: NDArray[np.float64],
    steps: tuple[int, float, float, str, Sequence[int]],
    call: Call,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def losses(
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    loss: str,
    call: Call,
) -> NDArray[np.float64]: ...
def moments(values: NDArray[np.float64], call: Call) -> tuple[float, float]: ...
def bootstrap_ratio(
    numerator: _Floats, denominator: _Floats | None, draws: Draws, call: Call
) -> Replicates: ...
def gev_fit(
    maxima: NDArray[np.float64], call: Call
) -> tuple[tuple[float, float, float], float, float, list[float] | None, str]: ...
def gev_return_level(law: tuple[float, float, float], block_size: float, m: float) -> float: ...
def gev_return_level_interval(
    maxima: NDArray[np.float64], block_size: float, m: float, confidence: float, call: Call
) -> tuple[float, float]: ...
def gev_of_excesses(
    threshold: float, scale: float, shape: float, expected: float
) -> tuple[float, float, float]: ...
def gev_excesses(law: tuple[float, float, float], threshold: float) -> tuple[float, float]: ...
def tail_variations(
    values: NDArray[np.float64], ks: Sequence[int], residual: bool, call: Call
) -> NDArray[np.float64]: ...
def critical_variations(level: float) -> tuple[int, NDArray[np.float64]]: ...
def tail_goodness(
    excesses: NDArray[np.float64], draws: Draws, call: Call
) -> tuple[float, float, bool, float, int, int]: ...
def tail_goodness_by_threshold(
    values: NDArray[np.float64], ks: Sequence[int], draws: Draws, call: Call
) -> list[tuple[float, float, bool, float, int, int] | None]: ...
def forward_stop(pvalues: Sequence[float], rate: float) -> int: ...
def tail_quantiles(
    excesses: NDArray[np.float64], shape: float, scale: float, confidence: float, call: Call
) -> NDArray[np.float64]: ...
def tail_stability(
    values: NDArray[np.float64], ks: Sequence[int], m: float, call: Call
) -> NDArray[np.float64]: ...
def zhang_stephens(excesses: NDArray[np.float64], call: Call) -> tuple[float, float]: ...

@final
class Cuts:
    values: NDArray[np.float64]
    def __new__(cls, values: NDArray[np.float64]) -> Cuts: ...
    def __getnewargs__(self) -> tuple[NDArray[np.float64]]: ...
    @staticmethod
    def of_level(k: int, n: float, m: float) -> Cuts | None: ...
    @staticmethod
    def of_shape(k: int) -> Cuts | None: ...
    def z(self, root: float, shape: float) -> float: ...

@final
class TailValues:
    n: int
    def __new__(cls, values: NDArray[np.float64], call: Call) -> TailValues: ...
    def top(self, count: int) -> NDArray[np.float64]: ...
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
        self, m: float, levels: NDArray[np.float64], cuts: Cuts, call: Call
    ) -> NDArray[np.float64]: ...
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
) -> NDArray[np.float64]: ...
def last_cut_score() -> float: ...
def cut_grid() -> tuple[list[float], list[float]]: ...
def default_exceedances(n: int) -> int: ...
def tabled_designs() -> list[tuple[int, float, list[tuple[float, float]]]]: ...
def simulate_level_cuts(
    k: int, designs: Sequence[tuple[float, float]], draws: Draws, call: Call
) -> list[Cuts]: ...
def simulate_shape_cuts(k: int, draws: Draws, call: Call) -> Cuts: ...
