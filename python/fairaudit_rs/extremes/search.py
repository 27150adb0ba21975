"""Holds `ecd_search`, which finds the model settings with the most similar worst cases by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import arguments
from ..data.index import check_indices, indices_of
from ..data.labels import Label
from ..errors import ArgumentError, DataError
from ..literals import Missing, SamplerName, UpperByRow
from ..report.notes import Note
from .feature_tables import RowNumbers, take_values
from .model_factory import ModelFactory
from .pairs import pair_ecds
from .problem import FARTHEST, FEWEST_ROWS
from .question import ExtremeArguments, ExtremeQuestion, FlippedRows, upper_of
from .row_split import SearchLabels, deal_rows
from .scoring import Probability, probability_of, scores_of
from .search_result import PairEcd, SearchResult, Trial, worst_of
from .space import SAMPLERS, OptunaSampler, RandomSampler, Sampler, Settings, read_space, stream_of

PARTS = ("fit", "selection", "report")

_MOST_SETTINGS = 1_000_000
_MOST_INTERACTIONS = 1_000_000_000
#: How far the default accuracy floor is below the most accurate setting.
_TOLERATED = 0.01
#: The first stream for seeds of models, beyond the streams that draw settings.
_MODELS = 1 << 41


def ecd_search(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    attribute: Any = None,
    space: Mapping[str, Any],
    train: Callable[[Any, Any, Any, Settings], Any] | None = None,
    sensitive_features: Any = None,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    flip: Any = None,
    upper: float | UpperByRow | None = 1.0,
    pos_label: Label = None,
    missing: Missing | None = None,
    n_settings: int = 50,
    accuracy_floor: float | None = None,
    horizon: int = 1_000,
    parts: Sequence[float] = (0.5, 0.25, 0.25),
    sampler: SamplerName = "random",
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> SearchResult:
    """Search for the model settings with the smallest ECD among those that are accurate enough.

    Parameters
    ----------
    estimator : estimator or callable
        A scikit-learn estimator, which is copied for every setting; or a function that takes the
        settings as keyword arguments and returns an object with ``fit`` and ``predict_proba``, or
        a torch module.
    X : array or frame
        Features, in the form that the model is fitted on.
    y : array
        Labels of two classes; a probability of 0.5 or more is a favourable decision.
    attribute : str, int, list or dict, optional
        The attribute of X to flip, as in `extreme_test`.
    space : dict
        For each setting: a list of values, ``(low, high)``, ``(low, high, "log")`` (whole numbers
        if both ends are whole), a distribution with ``rvs``, or a function of a random generator.
        If the space has only lists with at most ``n_settings`` combinations, all are tried.
    train : callable, optional
        Called with the model, X, y and the settings (a dict) instead of ``fit``; it may return
        another model. Required for torch modules.
    sensitive_features, groups, reference, flip, upper
        As in `extreme_test`.
    pos_label : optional
        The favourable label; by default the second class.
    missing : optional
        As in `extreme_test`.
    n_settings : int
        Number of settings to try.
    accuracy_floor : float, optional
        The smallest accuracy on the selection part that is accepted; by default 0.01 below that of
        the most accurate setting.
    horizon : int
        Number of interactions of which the worst case is estimated.
    parts : tuple of three floats
        Shares of the rows for fitting models, for choosing a setting, and for the report on it.
    sampler : {"random", "optuna"}
        How settings are drawn; optuna must be installed.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        Threads of the measurement, not of the models. None or -1 takes all cores that the process
        may use. The result does not depend on it.
    progress : bool or callable, optional
        True prints; a callable gets (settings done, settings in all).

    Returns
    -------
    SearchResult
        The best settings, the model that was fitted with them, all trials, and the ECD on the
        selection part and on the report part.

    Raises
    ------
    DataError
        When no setting could be fitted and measured, or a group is too small for the horizon.

    Notes
    -----
    For every setting a model is fitted on the first part. On the second part, its accuracy and its
    ECD are measured with the estimates of `extreme_test`; the ECD is that of the pair of groups
    with the largest absolute difference. The smallest of many estimates is biased downwards, so the
    chosen setting is measured again on the third part, which is used neither to fit nor to choose;
    intervals there are simultaneous over all pairs. A default accuracy floor is found on the second
    part too.

    Rows are dealt into parts at random within each group, and models are fitted to them in an order
    that depends on their contents only, so the order of rows and levels does not matter. Estimators
    whose ``random_state`` is None get a seed from ``rng``; torch is seeded too while a model is
    made and trained. A setting whose fit fails, or whose ECD cannot be measured, is a trial with a
    note. A model that ignores the attribute has an ECD of exactly 0. Scores of trees have few
    distinct values, to which no tail can be fitted: their levels need order statistics, and so 3.69
    rows in each group and part per row of the horizon.

    References
    ----------
    .. [1] Monjezi, V., Trivedi, A., Kreinovich, V. and Tizpaz-Niari, S. (2025). Fairness Testing
       through Extreme Value Theory. ICSE. arXiv:2501.11597

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 2, 4_000), rng.normal(size=4_000)])
    >>> y = X @ [0.5, 2.0] + rng.logistic(size=4_000) > 0
    >>> class Regression:
    ...     def __init__(self, penalty):
    ...         self.penalty = np.diag([penalty, 0.0])
    ...     def fit(self, X, y):
    ...         self.weights = 4 * np.linalg.solve(X.T @ X + self.penalty, X.T @ (y - 0.5))
    ...     def predict_proba(self, X):
    ...         share = 1 / (1 + np.exp(-X @ self.weights))
    ...         return np.column_stack([1 - share, share])
    >>> result = fa.ecd_search(
    ...     Regression, X, y, attribute=0, space={"penalty": (10.0, 1e5, "log")}, n_settings=10,
    ...     horizon=500, rng=1)
    >>> result.settings["penalty"] > 1_000, result.report_ecd < 0.03
    (True, True)
    """
    axes = read_space(space)
    n_settings = arguments.count("n_settings", n_settings, 1, _MOST_SETTINGS)
    horizon = arguments.count("horizon", horizon, 2, _MOST_INTERACTIONS)
    shares = arguments.parts(parts, PARTS)
    sampler = arguments.choice("sampler", sampler, SAMPLERS)
    floor = None if accuracy_floor is None else _floor(accuracy_floor)
    checked = arguments.check(
        rng=rng, random_state=random_state, n_threads=n_threads, progress=progress
    )
    seed = checked.seed
    factory = ModelFactory.from_estimator(estimator, train, list(axes))
    check_indices(indices_of({"X": X, "y": y}))
    design = ExtremeArguments(
        X=X,
        attribute=attribute,
        sensitive_features=sensitive_features,
        groups=groups,
        reference=reference,
        flip=flip,
        upper=upper,
        pos_label=pos_label,
        missing=missing,
    )
    prepared = design.prepared(upper_of(upper))
    labels = SearchLabels.from_values(y, prepared.feature_table, pos_label)
    search = _SettingSearch(
        prepared=prepared,
        labels=labels,
        factory=factory,
        parts=deal_rows(prepared, labels, shares, seed),
        horizon=horizon,
        pos_label=pos_label,
        seed=seed,
        n_threads=checked.n_threads,
    )
    search.check_sizes()
    kind = RandomSampler if sampler == "random" else OptunaSampler
    drawn: Sampler = kind(axes, n_settings, seed)
    return search.run(drawn, sampler, floor, checked.progress)


def _floor(value: object) -> float:
    accepted = "None, or from 0 to 1"
    return arguments.number("accuracy_floor", value, accepted, lambda found: 0 <= found <= 1)


# -- the search --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _FittedSetting:
    """A fitted model with its accuracy and ECD on the selection part."""

    trial: int
    model: Any
    accuracy: float
    ecd: float

    def beats(self, other: _FittedSetting) -> bool:
        """Return whether it is at least as good as another in accuracy and in ECD."""
        return self.accuracy >= other.accuracy and self.ecd <= other.ecd


@dataclass(frozen=True, eq=False, kw_only=True)
class _SettingSearch:
    """The data and the options of a search."""

    prepared: FlippedRows
    labels: SearchLabels
    factory: ModelFactory
    parts: tuple[RowNumbers, ...]
    horizon: int
    pos_label: Label
    seed: int
    n_threads: int | None

    def check_sizes(self) -> None:
        """Check, before any model is fitted, that each group is large enough for the horizon."""
        needed = max(FEWEST_ROWS, math.ceil(self.horizon / FARTHEST))
        for part, rows in zip(PARTS[1:], self.parts[1:], strict=True):
            place = self.prepared.chosen.place[self._asked(rows)]
            for at, key in enumerate(self.prepared.chosen.keys):
                n = int(np.count_nonzero(place == at))
                if n < needed:
                    name = key[0] if len(key) == 1 else key
                    raise DataError(
                        f"group {name!r} has {n:,} rows in the {part} part; horizon="
                        f"{self.horizon:,} needs {needed:,}. Pass more rows, other parts, "
                        + (
                            f"or a horizon of at most {n * FARTHEST:,}."
                            if n >= FEWEST_ROWS
                            else "or groups= without this group."
                        ),
                        argument="horizon",
                        mentions=("parts", "groups"),
                    )

    def run(
        self,
        sampler: Sampler,
        sampled_by: str,
        floor: float | None,
        progress: arguments.ProgressCallback | None,
    ) -> SearchResult:
        """Try settings, choose one, and measure it on the report part."""
        trials: list[Trial] = []
        best: list[_FittedSetting] = []
        first_error: Exception | None = None
        for trial in range(sampler.n_settings):
            settings = sampler.ask(trial)
            accuracy = math.nan
            try:
                probability, model = self._fit(settings, trial)
                accuracy = self._accuracy(probability, self.parts[1])
                pair, note = self._worst(probability)
            except ArgumentError:
                # Other settings would raise the same error.
                raise
            except (ValueError, ArithmeticError, RuntimeError) as error:
                first_error = first_error or error
                pair, note = PairEcd(first=None, second=None, estimate=math.nan), str(error)
            sampler.tell(trial, abs(pair.estimate), accuracy)
            trials.append(
                Trial(
                    settings=settings,
                    accuracy=accuracy,
                    ecd=pair.estimate,
                    first=pair.first,
                    second=pair.second,
                    feasible=False,
                    note=note,
                )
            )
            if not math.isnan(pair.estimate):
                best = _with(best, _FittedSetting(trial, model, accuracy, abs(pair.estimate)))
            if progress is not None:
                progress(trial + 1, sampler.n_settings)
        if not best:
            raise DataError(
                f"none of {len(trials):,} settings could be fitted and measured; the first failed "
                f"with: {first_error}",
                argument="space",
            ) from first_error
        return self._result(trials, best, sampled_by, floor)

    def _fit(self, settings: Settings, trial: int) -> tuple[Probability, Any]:
        rows = self.parts[0]
        seed = int(stream_of(self.seed, _MODELS + trial).integers(2**31))
        X, y = self.prepared.feature_table.take(rows), take_values(self.labels.given, rows)
        model = self.factory.fit_model(settings, X, y, seed)
        return probability_of(model, self.pos_label), model

    def _asked(self, rows: RowNumbers) -> RowNumbers:
        return rows[np.isin(rows, self.prepared.rows)]

    def _accuracy(self, probability: Probability, rows: RowNumbers) -> float:
        decided = scores_of(probability, self.prepared.feature_table, rows) >= 0.5
        return float(np.mean(decided == self.labels.favourable[rows]))

    def _pairs(
        self, probability: Probability, rows: RowNumbers, intervals: bool
    ) -> tuple[ExtremeQuestion, tuple[PairEcd, ...], str]:
        question = self.prepared.ask(probability, self._asked(rows))
        if question.nothing_changes:
            names = [(question.groups[i].name, question.groups[j].name) for i, j in question.pairs]
            pairs = [
                PairEcd(first=first, second=second, estimate=0.0, low=0.0, high=0.0)
                for first, second in names
            ]
            return question, tuple(pairs), "no flip changes a score"
        measured = tuple(
            pair_ecds(question, self.horizon, intervals=intervals, n_threads=self.n_threads)
        )
        n_excluded = len(question.pairs) - len(measured)
        note = ""
        if n_excluded:
            note = f"{n_excluded:,} of {len(question.pairs):,} pairs of groups are not measurable"
        return question, measured, note

    def _worst(self, probability: Probability) -> tuple[PairEcd, str]:
        _, pairs, note = self._pairs(probability, self.parts[1], False)
        return worst_of(pairs), note

    def _result(
        self,
        trials: Sequence[Trial],
        best: Sequence[_FittedSetting],
        sampled_by: str,
        floor: float | None,
    ) -> SearchResult:
        notes: list[Note] = []
        if floor is None:
            floor = max(0.0, max(setting.accuracy for setting in best) - _TOLERATED)
            notes.append(
                Note(
                    "accuracy-floor-from-selection-part",
                    f"the accuracy floor is {_TOLERATED} below the most accurate setting, and was "
                    "found on the part on which the setting was chosen",
                )
            )
        failed = sum(math.isnan(trial.ecd) for trial in trials)
        if failed:
            text = f"{failed:,} settings could not be fitted or measured: see their notes"
            notes.append(Note("settings-failed", text))
        final = tuple(
            _judged(trial, not math.isnan(trial.ecd) and trial.accuracy >= floor)
            for trial in trials
        )
        feasible = [setting for setting in best if setting.accuracy >= floor]
        chosen = (
            min(feasible, key=lambda setting: (setting.ecd, -setting.accuracy, setting.trial))
            if feasible
            else None
        )
        report: tuple[PairEcd, ...] = ()
        sizes: dict[Any, int] = {}
        accuracy = math.nan
        if chosen is not None:
            probability = probability_of(chosen.model, self.pos_label)
            accuracy = self._accuracy(probability, self.parts[2])
            try:
                question, report, note = self._pairs(probability, self.parts[2], True)
                sizes = question.group_sizes
                notes += question.notes
                if note and not question.nothing_changes:
                    notes.append(Note("pairs-not-measurable", f"{note} on the report part"))
            except DataError as error:
                notes.append(Note("no-ecd-on-report-part", f"the report part has no ECD: {error}"))
        return SearchResult(
            best=None if chosen is None else final[chosen.trial],
            model=None if chosen is None else chosen.model,
            trials=final,
            selection_ecd=math.nan if chosen is None else final[chosen.trial].ecd,
            report_ecd=worst_of(report).estimate if report else math.nan,
            report=report,
            selection_accuracy=math.nan if chosen is None else chosen.accuracy,
            report_accuracy=accuracy,
            accuracy_floor=floor,
            horizon=self.horizon,
            n_rows={name: len(rows) for name, rows in zip(PARTS, self.parts, strict=True)},
            group_sizes=sizes,
            sampler=sampled_by,
            seed=self.seed,
            notes=tuple(notes),
        )


def _with(best: Sequence[_FittedSetting], new: _FittedSetting) -> list[_FittedSetting]:
    """Add a model, and keep those that no other one beats in accuracy and in ECD."""
    if any(setting.beats(new) for setting in best):
        return list(best)
    return [*(setting for setting in best if not new.beats(setting)), new]


def _judged(trial: Trial, feasible: bool) -> Trial:
    return replace(trial, feasible=feasible)
