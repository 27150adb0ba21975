"""The native module; see rust/fairaudit-py."""

from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FLOW_PART",
    "SCORE_UNIT",
    "Call",
    "CellCurves",
    "CorrelationTest",
    "CountMetric",
    "CountTest",
    "Cuts",
    "Draws",
    "Flow",
    "Flowed",
    "FunctionTest",
    "InfluenceColumns",
    "InfluenceDesign",
    "InfluenceRows",
    "KernelExpansion",
    "MetricPull",
    "Path",
    "ProjectionTest",
    "RowTest",
    "Schedule",
    "Tail",
    "TailValues",
    "__version__",
    "affordable_change",
    "beta_quantile",
    "bin_scores",
    "binomial",
    "bootstrap_counts",
    "bootstrap_ratio",
    "box_quantile",
    "box_tail",
    "check_csv",
    "clopper_pearson",
    "compare_levels",
    "count_extreme",
    "critical_variations",
    "cut_grid",
    "default_exceedances",
    "descent_factors",
    "descent_path",
    "distinct_margins",
    "distinct_rows",
    "encode",
    "forward_stop",
    "gev_excesses",
    "gev_fit",
    "gev_of_excesses",
    "gev_return_level",
    "gev_return_level_interval",
    "group_moments",
    "hypergeometric",
    "last_cut_score",
    "margin_histogram",
    "margin_spread",
    "margin_windows",
    "moments",
    "nearest_rows",
    "normal_maxima",
    "normal_quantile",
    "permuted_level_differences",
    "philox",
    "project_gains",
    "project_rates",
    "projection_tally",
    "quadratic_weights",
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
    "weighted_chi_square_quantile",
    "weighted_chi_square_tail",
    "zhang_stephens",
]

__version__: str
SCORE_UNIT: float
FLOW_PART: int

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

def tabulate(
    columns: Sequence[NDArray[np.generic]],
    limits: Sequence[int],
    call: Call,
    score: NDArray[np.float64] | None = None,
) -> tuple[list[NDArray[np.uint64]], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int64]]: ...
def encode(
    columns: Sequence[NDArray[np.generic]], limits: Sequence[int], call: Call
) -> tuple[
    list[NDArray[np.uint64]], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]
]: ...
def distinct_rows(
    values: NDArray[np.float64], call: Call
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]: ...
def check_csv(path: str, call: Call) -> list[str]: ...
def bin_scores(
    scores: NDArray[np.float64], edges: NDArray[np.float64], call: Call
) -> NDArray[np.uint32]: ...

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
    def evaluate(
        self, counts: Sequence[float], call: Call | None = None
    ) -> tuple[float, float]: ...
    def gradient(self, counts: Sequence[float]) -> list[float] | None: ...

@final
class CountTest:
    def __new__(
        cls,
        counts: NDArray[np.uint64],
        n_groups: int,
        metric: CountMetric,
        studentize: str,
        conditioning: str | Sequence[int] | None = None,
        call: Call | None = None,
    ) -> CountTest: ...
    def evaluations(self, call: Call | None = None) -> list[tuple[float, float, float, float]]: ...
    def expected(self) -> list[float]: ...
    def observed(self, call: Call | None = None) -> float: ...
    @property
    def needs_centring(self) -> bool: ...
    def exact(
        self, alternative: str, call: Call
    ) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]] | None: ...
    def null_distribution(self, draws: Draws, call: Call) -> NDArray[np.float64]: ...
    def max_t(self, pairs: Sequence[tuple[int, int]], draws: Draws, call: Call) -> list[float]: ...

@final
class RowTest:
    @staticmethod
    def auc(
        score: NDArray[np.float64],
        positive: NDArray[np.bool_],
        group: NDArray[np.uint16],
        n_groups: int,
        studentize: str,
        call: Call,
        stratum: NDArray[np.uint32] | None = None,
        weight: NDArray[np.float64] | None = None,
        cluster: NDArray[np.uint32] | None = None,
        within_labels: bool = False,
    ) -> RowTest: ...
    @staticmethod
    def ratio(
        numerator: NDArray[np.float64],
        denominator: NDArray[np.float64] | None,
        group: NDArray[np.uint16],
        n_groups: int,
        studentize: str,
        call: Call,
        stratum: NDArray[np.uint32] | None = None,
    ) -> RowTest: ...
    @staticmethod
    def counts(
        counts: NDArray[np.float64],
        metric: CountMetric,
        group: NDArray[np.uint16],
        n_groups: int,
        studentize: str,
        call: Call,
        stratum: NDArray[np.uint32] | None = None,
    ) -> RowTest: ...
    def evaluations(self) -> list[tuple[float, float, float, float]]: ...
    def expected(self) -> list[float]: ...
    def observed(self) -> float: ...
    @property
    def needs_centring(self) -> bool: ...
    def null_distribution(self, draws: Draws, call: Call) -> NDArray[np.float64]: ...
    def bootstrap(self, draws: Draws, call: Call) -> NDArray[np.float64]: ...
    def max_t(self, pairs: Sequence[tuple[int, int]], draws: Draws, call: Call) -> list[float]: ...

@final
class CorrelationTest:
    def __new__(
        cls,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        studentize: str,
        call: Call,
        stratum: NDArray[np.uint32] | None = None,
    ) -> CorrelationTest: ...
    def correlation(self) -> float: ...
    def variance(self) -> float: ...
    def observed(self) -> float: ...
    def null_distribution(self, draws: Draws, call: Call) -> NDArray[np.float64]: ...

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

@final
class FunctionTest:
    def __new__(
        cls,
        group: NDArray[np.uint32],
        n_groups: int,
        studentize: str,
        call: Call,
        stratum: NDArray[np.uint32] | None = None,
        unit: NDArray[np.uint32] | None = None,
    ) -> FunctionTest: ...
    def assignment(self, replicate: int | None, draws: Draws, call: Call) -> NDArray[np.uint32]: ...
    def samples(
        self,
        assignment: NDArray[np.uint32],
        group: int,
        n_samples: int,
        replicate: int | None,
        draws: Draws,
        call: Call,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
    def statistic(
        self, values: Sequence[float], samples: NDArray[np.float64], call: Call | None = None
    ) -> float: ...
    def null_distribution_compiled(
        self,
        address: int,
        columns: Sequence[NDArray[np.float64]],
        n_samples: int,
        draws: Draws,
        call: Call,
    ) -> NDArray[np.float64]: ...

def bootstrap_counts(
    counts: NDArray[np.uint64],
    n_groups: int,
    metric: CountMetric,
    draws: Draws,
    call: Call,
) -> NDArray[np.float64]: ...
def beta_quantile(a: float, b: float, p: float) -> float: ...
def count_extreme(
    null: NDArray[np.float64], observed: float, alternative: str, centred: bool, call: Call
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

#: (distance, cell, weight): the cell is 2 * unit + decision.
_Margins = tuple[NDArray[np.float64], NDArray[np.uint16], NDArray[np.float64] | None]
#: Rows, fractions, primal and dual value, residual, prices.
_Plan = tuple[NDArray[np.uint32], NDArray[np.float64], float, float, float, list[float]]
#: Units with the reference first, and how far each rate may lie below and above its rate.
_Block = tuple[Sequence[int], Sequence[float], Sequence[float]]

@final
class CellCurves:
    def __new__(cls, columns: _Margins, used: Sequence[bool], call: Call) -> CellCurves: ...
    def rows(self, cell: int, call: Call | None = None) -> int: ...
    def points(
        self, cell: int, ranks: Sequence[int], call: Call | None = None
    ) -> tuple[list[float], list[float]]: ...
    def ranks(self, cell: int, price: float, call: Call | None = None) -> tuple[int, int]: ...
    def conjugate(self, prices: Sequence[float], call: Call | None = None) -> float: ...
    def cost(self, masses: Sequence[float], call: Call | None = None) -> float: ...
    def take(self, masses: Sequence[float], call: Call) -> _Plan: ...

@final
class ProjectionTest:
    def __new__(
        cls,
        columns: _Margins,
        n_cells: int,
        blocks: Sequence[_Block],
        call: Call,
    ) -> ProjectionTest: ...
    def observed(self, call: Call | None = None) -> float: ...
    def null_distribution(self, draws: Draws, call: Call) -> NDArray[np.float64]: ...

def projection_tally(
    columns: _Margins, n_cells: int, call: Call
) -> tuple[
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]: ...
def project_rates(
    columns: _Margins, n_cells: int, blocks: Sequence[_Block], call: Call
) -> tuple[_Plan | None, tuple[int, int, float] | None]: ...
def project_gains(
    columns: _Margins, gains: NDArray[np.float64], target: float, call: Call
) -> tuple[_Plan | None, tuple[int, int, float] | None]: ...
def affordable_change(
    columns: _Margins,
    gains: NDArray[np.float64],
    budget: float,
    call: Call,
    by_row: bool = False,
) -> float: ...
def distinct_margins(
    columns: _Margins, cut: NDArray[np.float64], enough: int, call: Call
) -> tuple[int, int]: ...
def margin_spread(columns: _Margins, n_cells: int, call: Call) -> tuple[int, float, float]: ...
def margin_windows(
    columns: _Margins, used: Sequence[bool], bandwidth: float, call: Call
) -> list[list[float]]: ...
def margin_histogram(
    columns: _Margins, n_units: int, limit: float, bins: int, call: Call
) -> NDArray[np.float64]: ...
def weighted_chi_square_tail(
    weights: Sequence[float], q: float, call: Call | None = None
) -> float: ...
def weighted_chi_square_quantile(
    weights: Sequence[float], tail: float, call: Call | None = None
) -> float: ...
def quadratic_weights(
    covariance: NDArray[np.float64],
    curvature: NDArray[np.float64],
    call: Call | None = None,
) -> list[float]: ...
def box_tail(
    q: float,
    covariance: NDArray[np.float64],
    curvature: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    call: Call,
) -> tuple[float, bool]: ...
def box_quantile(
    tail: float,
    covariance: NDArray[np.float64],
    curvature: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    call: Call,
) -> float: ...

@final
class Schedule:
    """Steps of length size / t^decay, and the numbers of steps after which scores are kept."""

    @property
    def n_steps(self) -> int: ...
    @property
    def size(self) -> float: ...
    @property
    def decay(self) -> float: ...
    @property
    def solver(self) -> str: ...
    @property
    def record(self) -> list[int]: ...
    @property
    def stages(self) -> tuple[list[float], list[float]]: ...
    def __new__(
        cls, n_steps: int, size: float, *, decay: float, solver: str, record: Sequence[int]
    ) -> Schedule: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int, float], dict[str, object]]: ...

@final
class Path:
    """Sums of the audit value along the flow: kept by part of the rows, told by recorded step."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n(self) -> list[int]: ...
    @property
    def mean(self) -> list[float]: ...
    @property
    def squares(self) -> list[float]: ...
    @property
    def wrong_start(self) -> int: ...
    @property
    def wrong_end(self) -> list[int]: ...
    @property
    def wrong_both(self) -> list[int]: ...
    @property
    def finite(self) -> list[bool]: ...
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

    @property
    def start(self) -> NDArray[np.float64]: ...
    @property
    def end(self) -> NDArray[np.float64]: ...
    @property
    def moved(self) -> NDArray[np.float64]: ...
    @property
    def loss_start(self) -> NDArray[np.float64]: ...
    @property
    def loss_end(self) -> NDArray[np.float64]: ...
    @property
    def path(self) -> Path: ...
    def __new__(
        cls,
        start: NDArray[np.float64],
        end: NDArray[np.float64],
        moved: NDArray[np.float64],
        loss_start: NDArray[np.float64],
        loss_end: NDArray[np.float64],
        path: Path,
    ) -> Flowed: ...
    def __getnewargs__(self) -> tuple[object, object, object, object, object, object]: ...
    @staticmethod
    def of_scores(
        scores: NDArray[np.float64],
        moved: NDArray[np.float64],
        targets: NDArray[np.float64],
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
        support_vectors: NDArray[np.float64],
        dual_coef: NDArray[np.float64],
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
        units: NDArray[np.float64],
        pulls: Sequence[float],
        eigenvectors: NDArray[np.float64],
        rest: float,
    ) -> MetricPull: ...

@final
class Flow:
    """Rows, targets, a model and a fair metric; moved in one call."""

    @staticmethod
    def linear(
        features: NDArray[np.float64],
        targets: NDArray[np.float64],
        loss: str,
        coef: NDArray[np.float64],
        intercepts: Sequence[float],
        pulls: Sequence[float],
        gains: NDArray[np.float64],
    ) -> Flow: ...
    @staticmethod
    def kernel(
        features: NDArray[np.float64],
        targets: NDArray[np.float64],
        loss: str,
        model: KernelExpansion,
        metric: MetricPull,
    ) -> Flow: ...
    def run(
        self, schedule: Schedule, call: Call, *, floor: float | None, boundary: float | None
    ) -> Flowed: ...

def moments(values: NDArray[np.float64], call: Call) -> tuple[float, float]: ...
def bootstrap_ratio(
    numerator: NDArray[np.float64],
    denominator: NDArray[np.float64] | None,
    draws: Draws,
    call: Call,
) -> NDArray[np.float64]: ...
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
