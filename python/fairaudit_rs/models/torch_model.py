"""`TorchModel`: scores of a torch module, and upper bounds of distances to its boundary.

The bounds are found by iterative search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.features import names_of, read_features
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import Link, PlainNorm, Precision
from .binary import BinaryModel
from .distances import Distances
from .torch_scores import BATCH, Scorer, TorchScores

if TYPE_CHECKING:
    import torch


NORMS: tuple[PlainNorm, ...] = get_args(PlainNorm)

#: Factor by which the first steps overshoot the boundary of the linearised model.
_OVERSHOOT = 1.02
#: Maximum number of steps along the boundary towards a closer point, after it was crossed.
_TIGHTENINGS = 20
_HALVINGS = 45

Floats = NDArray[np.float64]


class TorchModel(BinaryModel):
    """A torch module that maps each row of features to one logit, or to two.

    Parameters
    ----------
    module : torch.nn.Module
        Takes a batch of rows (n, n_features); gives (n,) or (n, 1), the score of label 1, or
        (n, 2), whose difference (second minus first) is the score. The score of a row must not
        depend on the other rows of the batch, as is the case for standard layers in eval mode.
    threshold : float, optional
        Rows that reach it get decision 1: a probability with link ``"logit"``, a score with link
        ``"identity"``.
    link : {"auto", "logit", "identity"}
        As for `LinearModel`. A module that ends in a sigmoid or a softmax does not give logits:
        pass it without this layer, or a sigmoid with ``link="identity"``.
    dtype : {None, "float32", "float64"}
        Precision to compute in. None is that of the module; for another one, every call copies
        the module to this precision.
    feature_names : sequence of str, optional
        Names of the features. With names, the columns of a frame are chosen by name.

    Notes
    -----
    The module is called in eval mode. Every call restores its mode, the `requires_grad` flags and
    the gradients of its parameters.
    """

    scores: TorchScores

    def __init__(
        self,
        module: torch.nn.Module,
        threshold: float | None = 0.5,
        *,
        link: Link = "auto",
        dtype: Precision | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        import torch

        if not isinstance(module, torch.nn.Module):
            raise ArgumentTypeError(
                f"module is a {type(module).__name__}; accepted: a torch.nn.Module",
                argument="module",
            )
        self.module, self.dtype = module, arguments.check(dtype=dtype).dtype
        self.feature_names = names_of(feature_names, None)
        self._decide_by(threshold, link)
        width = None if self.feature_names is None else len(self.feature_names)
        self.scores = TorchScores(module, dtype, 1, width)
        last = type(list(module.modules())[-1]).__name__
        if last in ("Sigmoid", "Softmax") and self.link == "logit":
            alternative = ", or link='identity'" if last == "Sigmoid" else ""
            raise ArgumentError(
                f"module ends in {last}, so it gives probabilities, not logits. Pass the module "
                f"without this layer{alternative}.",
                argument="module",
                mentions=("link",),
            )

    def __repr__(self) -> str:
        return (
            f"TorchModel({type(self.module).__name__}, threshold={self.threshold:g}, "
            f"link={self.link!r})"
        )

    def decision_function(self, X: Any) -> Floats:
        """Return the score of every row."""
        rows = read_features(X, self.scores.n_features, self.feature_names).values
        with self.scores.in_eval_mode() as scorer:
            return scorer.scores(rows, BATCH)

    def distance(
        self, X: Any, norm: PlainNorm = "l2", n_steps: int = 50, batch_size: int = 1024
    ) -> Distances:
        """Return an upper bound of the distance of every row to the decision boundary.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            The rows.
        norm : {"l2", "linf", "l1"}
            The cost of moving a row.
        n_steps : int
            Maximum number of gradient steps for a row to cross the boundary.
        batch_size : int
            Number of rows that are searched together.

        Returns
        -------
        Distances
            Marked as upper bounds; infinite where no flip was found (`n_not_found` rows).
            `Distances.moved` gives the points that were found, kept in memory.

        Notes
        -----
        As in [1]_, each row moves repeatedly to the boundary of the model linearised at its current
        point, and slightly beyond, until its decision flips. Bisection between that point and the
        original row then finds the crossing. Up to 20 times, the model is linearised again at
        the crossing, and the point turns, fully or partly, towards the nearest point of that
        plane; a turn is kept if it crosses the boundary at a lower cost. For a linear module the
        bound is exact up to rounding.

        References
        ----------
        .. [1] S.-M. Moosavi-Dezfooli, A. Fawzi, P. Frossard, "DeepFool: a simple and accurate
           method to fool deep neural networks", CVPR 2016. doi:10.1109/CVPR.2016.282
        """
        norm = arguments.choice("norm", norm, NORMS)
        checked = arguments.check(n_steps=n_steps, batch_size=batch_size)
        n_steps, batch_size = checked.n_steps, checked.batch_size
        rows, names = read_features(X, self.scores.n_features, self.feature_names)
        values = np.empty(len(rows))
        with self.scores.in_eval_mode() as scorer:
            scores = scorer.scores(rows, batch_size)
            decided = scores >= self.boundary
            # A flip counts if the score is past the boundary by more than its rounding error.
            size = np.abs(scores) + abs(self.boundary) + np.median(np.abs(scores))
            tolerance = 16 * scorer.epsilon * size + self._probability_rounding()
            points = np.empty(rows.shape, dtype=scorer.array_dtype)
            for start in range(0, len(rows), batch_size):
                part = slice(start, start + batch_size)
                search = _BoundarySearch(
                    scorer, norm, self.boundary, rows[part], decided[part], tolerance[part]
                )
                values[part], points[part] = search.run(n_steps)
        return Distances(
            values,
            decided,
            f"torch, {norm}",
            upper_bound=True,
            feature_names=names,
            n_not_found=int(np.isinf(values).sum()),
            move=partial(_stored, points),
        )


def make_network(
    weights: Sequence[NDArray[Any]], biases: Sequence[NDArray[Any]], activation: str
) -> torch.nn.Module:
    """Return layers with these weights (inputs, outputs) as a module in double precision.

    The layers are separated by `activation`, which is named as in scikit-learn.
    """
    import torch

    activations = {
        "identity": torch.nn.Identity,
        "logistic": torch.nn.Sigmoid,
        "tanh": torch.nn.Tanh,
        "relu": torch.nn.ReLU,
    }
    layers: list[torch.nn.Module] = []
    for weight, bias in zip(weights, biases, strict=True):
        if layers:
            layers.append(activations[activation]())
        layer = torch.nn.Linear(len(weight), len(bias), dtype=torch.float64)
        with torch.no_grad():
            layer.weight[:] = torch.tensor(np.asarray(weight, dtype=np.float64).T)
            layer.bias[:] = torch.tensor(np.asarray(bias, dtype=np.float64))
        layers.append(layer)
    return torch.nn.Sequential(*layers)


def _stored(points: NDArray[Any], chosen: NDArray[np.intp]) -> Floats:
    return points[chosen].astype(np.float64)


class _BoundarySearch:
    """The search for boundary points of a batch of rows."""

    def __init__(
        self,
        scorer: Scorer,
        norm: str,
        boundary: float,
        rows: Floats,
        decided: NDArray[np.bool_],
        tolerance: Floats,
    ) -> None:
        self.scorer, self.norm, self.boundary = scorer, norm, boundary
        self.start = scorer.tensor(rows)
        self.side = scorer.tensor(np.where(decided, 1.0, -1.0))
        self.tolerance = scorer.tensor(tolerance)

    def run(self, n_steps: int) -> tuple[Floats, NDArray[Any]]:
        """Return the distances and boundary points; where no flip was found, infinite and NaN."""
        points, flipped = self._cross(n_steps)
        indices = flipped.nonzero()[:, 0]
        points[indices] = self._halve(indices, points[indices])
        points[indices] = self._tighten(indices, points[indices])
        cost = self._cost(points.double() - self.start.double())
        points[~flipped] = float("nan")
        cost[~flipped] = float("inf")
        return cost.cpu().numpy(), points.to(self.tolerance.dtype).cpu().numpy()

    def _cross(self, n_steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Move each row until its decision flips; return the points, and which have flipped."""
        import torch

        points = self.start.clone()
        has_flipped = torch.zeros_like(self.side, dtype=torch.bool)
        active = torch.arange(len(points), device=points.device)
        for _ in range(n_steps):
            score, gradient = self.scorer.slope(points[active])
            wanted = (self.boundary - score) * _OVERSHOOT - 2 * (self.side * self.tolerance)[active]
            points[active] += wanted[:, None] * self._direction(gradient)
            newly_flipped, finite = self._flipped(active, points[active])
            has_flipped[active[newly_flipped]] = True
            active = active[~newly_flipped & finite]
            if not len(active):
                break
        return points, has_flipped

    def _tighten(self, indices: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Turn towards the closest point of the boundary as linearised at the points."""
        import torch

        active = self._positions(indices)
        turn_fraction = torch.ones_like(self.side[indices])
        for _ in range(_TIGHTENINGS):
            if not len(active):
                break
            start, here = self.start[indices[active]], points[active]
            score, gradient = self.scorer.slope(here)
            wanted = (gradient * (here - start)).sum(dim=1) + self.boundary - score
            direction, length = self._unit(here - start)
            closest, _ = self._unit(wanted[:, None] * self._direction(gradient))
            turned, _ = self._unit(direction + turn_fraction[active, None] * (closest - direction))
            # Aim 0.1 % closer than the present point; a smaller gain is not worth a step.
            aim = start + 0.999 * length[:, None] * turned
            better, _ = self._flipped(indices[active], aim)
            gained = active[better]
            points[gained] = self._halve(indices[gained], aim[better])
            turn_fraction[active[~better]] /= 2
            active = active[turn_fraction[active] > 0.1]
        return points

    def _unit(self, moves: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return moves scaled to cost 1, and their costs before scaling."""
        cost = self._cost(moves)
        return (moves / cost[:, None]).nan_to_num(0.0, 0.0, 0.0), cost

    def _halve(self, indices: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Bisect between the rows and points past the boundary; return points just past it."""
        import torch

        start = self.start[indices]
        move = points - start
        low, high = torch.zeros_like(self.side[indices]), torch.ones_like(self.side[indices])
        best = points.clone()
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            between = start + middle[:, None] * move
            flipped, _ = self._flipped(indices, between)
            high, low = torch.where(flipped, middle, high), torch.where(flipped, low, middle)
            best[flipped] = between[flipped]
            if bool((high - low <= self.scorer.epsilon * high).all()):
                break
        return best

    def _positions(self, indices: torch.Tensor) -> torch.Tensor:
        """Return 0, 1, ... for these rows, on their device."""
        import torch

        return torch.arange(len(indices), device=indices.device)

    def _flipped(
        self, indices: torch.Tensor, points: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return which points have another decision than their rows, and which a finite score."""
        import torch

        with torch.no_grad():
            margin = self.scorer.score(points) - self.boundary
        return self.side[indices] * margin < -self.tolerance[indices], margin.isfinite()

    def _cost(self, moves: torch.Tensor) -> torch.Tensor:
        import torch

        order = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}[self.norm]
        cost: torch.Tensor = torch.linalg.vector_norm(moves, order, dim=1)
        return cost

    def _direction(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return the cheapest move that raises the score by 1; 0 where the gradient is 0."""
        import torch

        sizes = gradient.abs()
        largest, steepest = sizes.max(dim=1, keepdim=True)
        relative = gradient / largest
        if self.norm == "l1":
            move = torch.zeros_like(gradient).scatter_(1, steepest, relative.gather(1, steepest))
        elif self.norm == "l2":
            move = relative / (relative * relative).sum(dim=1, keepdim=True)
        else:
            move = relative.sign() / relative.abs().sum(dim=1, keepdim=True)
        return (move / largest).nan_to_num(0.0, 0.0, 0.0)
