"""The four classifiers of Maity et al. (2021): plain network, Project, Reductions and SenSR."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid, softplus

from .data import Individuals, Matrix

N_HIDDEN, N_HIDDEN_SENSR = 50, 100
N_STEPS, BATCH, RATE = 8_000, 250, 1e-4

#: Directions (rows) of protected attributes that a logistic regression finds.
Directions = Callable[[Individuals], Matrix]


@dataclass(frozen=True)
class SensrPlan:
    """How SenSR is trained: its own steps, and those of its attack in and out of the subspace."""

    n_steps: int
    rate: float
    subspace_rate: float
    full_steps: int
    full_rate: float
    subspace_steps: int = 10
    budget: float = 0.001
    penalty: float = 2.0
    batch: int = 1_000


@dataclass(frozen=True)
class Plan:
    """What differs between the data sets."""

    sensr: SensrPlan
    #: Violation of equalized odds that Reductions is allowed, and its number of rounds.
    violation: float
    n_rounds: int
    balanced_reductions: bool


def regression_directions(data: Individuals, solver: str = "lbfgs") -> Matrix:
    """Coefficients of gender and race on the other features, and the protected features."""
    X, k = data.features[:, data.n_protected :], data.n_protected
    found = np.zeros((2, data.features.shape[1]))
    for row, protected in zip(found, (data.gender, data.race), strict=True):
        row[k:] = LogisticRegression(solver=solver).fit(X, protected).coef_[0]
    return np.vstack([found, np.eye(k, data.features.shape[1])])


def complement(directions: Matrix) -> Matrix:
    """The projection onto what is orthogonal to the directions."""
    basis, _ = np.linalg.qr(directions.T)
    projection: Matrix = np.eye(len(basis)) - basis @ basis.T
    return projection


class Projected(nn.Module):
    """A network that sees the rows without their sensitive directions."""

    def __init__(self, network: nn.Module, projection: Matrix) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("projection", tensor(projection))

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        """Give the logits."""
        logits: Tensor = self.network(X @ self.projection)
        return logits


class Mixture(nn.Module):
    """The log-odds of the mean probability of weighted logistic regressions."""

    def __init__(self, coefs: Matrix, intercepts: Matrix, weights: Matrix) -> None:
        super().__init__()
        self.register_buffer("coefs", torch.tensor(coefs.T))
        self.register_buffer("intercepts", torch.tensor(intercepts))
        self.register_buffer("log_weights", torch.tensor(np.log(weights)))

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        """Give one logit per row."""
        scores = X @ self.coefs + self.intercepts
        one = torch.logsumexp(self.log_weights + logsigmoid(scores), dim=1)
        zero = torch.logsumexp(self.log_weights + logsigmoid(-scores), dim=1)
        return one - zero


class BalancedRegression(LogisticRegression):  # type: ignore[misc]
    """A logistic regression that weights rows by the rarity of their label.

    Counts of labels, not sums of weights, as scikit-learn did it when the paper was written.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # noqa: N803
        """Fit."""
        labels = np.asarray(y, dtype=np.int64)
        counts = np.bincount(labels, minlength=2)
        weight = len(labels) / (2 * counts[labels])
        return super().fit(X, y, weight if sample_weight is None else weight * sample_weight)


def tensor(values: NDArray[Any]) -> Tensor:
    """In single precision, as the networks are trained."""
    return torch.tensor(values, dtype=torch.float32)


def new_network(n_features: int, n_hidden: int, bias: float, rng: torch.Generator) -> nn.Sequential:
    """One hidden layer, two logits."""
    layers = nn.Linear(n_features, n_hidden), nn.Linear(n_hidden, 2)
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight, generator=rng)
        nn.init.constant_(layer.bias, bias)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1])


class BalancedBatches:
    """Batches with as many rows of label 0 as of label 1."""

    def __init__(self, data: Individuals, size: int, rng: torch.Generator) -> None:
        self.X, self.label = tensor(data.features), torch.tensor(data.label)
        self.rows = [torch.nonzero(self.label == value)[:, 0] for value in (0, 1)]
        self.share, self.rng = min(size // 2, *map(len, self.rows)), rng

    def draw(self) -> tuple[Tensor, Tensor]:
        """Give rows and labels; rows are drawn with replacement."""
        drawn = [
            rows[torch.randint(len(rows), (self.share,), generator=self.rng)] for rows in self.rows
        ]
        chosen = torch.cat(drawn)
        return self.X[chosen], self.label[chosen]


def train_network(data: Individuals, projection: Matrix | None, seed: int) -> nn.Module:
    """The plain network, or Project when a projection is given."""
    rng = torch.Generator().manual_seed(seed)
    network: nn.Module = new_network(data.features.shape[1], N_HIDDEN, 0.0, rng)
    if projection is not None:
        network = Projected(network, projection)
    batches = BalancedBatches(data, BATCH, rng)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    for _ in range(N_STEPS):
        X, label = batches.draw()
        optimizer.zero_grad()
        cross_entropy(network(X), label).backward()
        optimizer.step()
    return network


def train_reductions(data: Individuals, plan: Plan) -> nn.Module:
    """Equalized odds over the four groups of gender and race (Agarwal et al., 2018)."""
    kind = BalancedRegression if plan.balanced_reductions else LogisticRegression
    mitigator = ExponentiatedGradient(
        kind(solver="liblinear"),
        EqualizedOdds(difference_bound=plan.violation),
        eps=plan.violation,
        max_iter=plan.n_rounds,
    )
    mitigator.fit(data.features, data.label, sensitive_features=data.gender + 2 * data.race)
    weights = np.asarray(mitigator.weights_, dtype=np.float64)
    kept = [mitigator.predictors_[k] for k in mitigator.weights_.index[weights > 0]]
    coefs = np.array([predictor.coef_[0] for predictor in kept])
    intercepts = np.array([predictor.intercept_[0] for predictor in kept])
    return Mixture(coefs, intercepts, weights[weights > 0])


class Attacked:
    """Rows of a batch that SenSR moves; the loss is the mean over them.

    The gradient of a network with one hidden layer is written out: autograd takes thrice as long.
    """

    def __init__(self, network: nn.Sequential, X: Tensor, label: Tensor) -> None:  # noqa: N803
        first, second = (layer.requires_grad_(False) for layer in (network[0], network[2]))
        self.weight = first.weight.clone()
        self.hidden = torch.addmm(first.bias, X, first.weight.T)
        self.out = second.weight[1] - second.weight[0]
        self.bias = second.bias[1] - second.bias[0]
        self.sign = 2.0 * label - 1.0
        network.requires_grad_(True)

    def slope(self, moved: Tensor, weight: Tensor) -> tuple[float, Tensor]:
        """The mean loss, and its gradient in the moves; these reach the units by the weight."""
        hidden = torch.addmm(self.hidden, moved, weight.T)
        margin = self.sign * (hidden.relu() @ self.out + self.bias)
        push = -self.sign * torch.sigmoid(-margin) / len(margin)
        gradient = torch.where(hidden > 0, self.out, 0.0) @ weight
        return float(softplus(-margin).mean()), push[:, None] * gradient


def subspace_attack(attacked: Attacked, directions: Tensor, plan: SensrPlan) -> Tensor:
    """Moves along the sensitive directions that raise the loss; none if they do not."""
    weight = attacked.weight @ directions.T
    along = torch.zeros(len(attacked.sign), len(directions))
    optimizer = torch.optim.Adam([along], lr=plan.subspace_rate, maximize=True)
    losses = []
    for _ in range(plan.subspace_steps):
        loss, along.grad = attacked.slope(along, weight)
        losses.append(loss)
        optimizer.step()
    loss, _ = attacked.slope(along, weight)
    moved = along @ directions
    return moved if loss >= losses[0] else 0 * moved


def full_attack(
    attacked: Attacked, moved: Tensor, project: Tensor, plan: SensrPlan
) -> tuple[Tensor, float, bool]:
    """Small further moves in all directions: where to, their distance, and whether they help."""
    attacked.hidden = torch.addmm(attacked.hidden, moved, attacked.weight.T)
    more = torch.zeros_like(moved)
    optimizer = torch.optim.Adam([more], lr=plan.full_rate, maximize=True)
    losses = []
    for _ in range(plan.full_steps):
        loss, slope = attacked.slope(more, attacked.weight)
        losses.append(loss)
        more.grad = slope - 2 * plan.penalty * (more @ project) / len(more)
        optimizer.step()
    loss, _ = attacked.slope(more, attacked.weight)
    distance = float((more @ project).square().sum(dim=1).mean())
    return moved + more, distance, loss - plan.penalty * distance >= losses[0]


def updated_penalty(penalty: float, distance: float, budget: float) -> float:
    """A dearer distance when the attack went too far, a cheaper one when not far enough."""
    distance = max(distance, 1e-12)
    step = max(distance, budget) / min(distance, budget) * (distance - budget)
    return min(max(1e-5, penalty + step), 10.0)


def train_sensr(data: Individuals, directions: Matrix, plan: SensrPlan, seed: int) -> nn.Module:
    """A network trained on rows that an attack has moved (Yurochkin et al., 2020)."""
    rng = torch.Generator().manual_seed(seed)
    network = new_network(data.features.shape[1], N_HIDDEN_SENSR, 0.1, rng)
    batches = BalancedBatches(data, plan.batch, rng)
    optimizer = torch.optim.Adam(network.parameters(), lr=plan.rate)
    along, project = tensor(directions), tensor(complement(directions))
    for _ in range(plan.n_steps):
        X, label = batches.draw()
        attacked = Attacked(network, X, label)
        moved = subspace_attack(attacked, along, plan)
        moved, distance, better = full_attack(attacked, moved, project, plan)
        if not better:
            plan = replace(plan, full_rate=0.999 * plan.full_rate)
            continue
        plan = replace(plan, penalty=updated_penalty(plan.penalty, distance, plan.budget))
        optimizer.zero_grad()
        cross_entropy(network(X + moved), label).backward()
        optimizer.step()
    return network
