"""The four classifiers of Maity et al. (2021): plain network, Project, Reductions and SenSR."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid, softplus

from .data import Individuals, Matrix

N_HIDDEN, N_HIDDEN_SENSR = 50, 100
N_STEPS, BATCH, RATE = 8_000, 250, 1e-4


@dataclass(frozen=True)
class SensrPlan:
    """How SenSR is trained: its own steps, and those of its attack in and out of the subspace."""

    n_steps: int
    rate: float
    batch: int
    subspace_rate: float
    full_steps: int
    full_rate: float
    subspace_steps: int = 10
    budget: float = 0.001
    penalty: float = 2.0


@dataclass(frozen=True)
class Plan:
    """The differences between the data sets."""

    sensr: SensrPlan
    #: As in the published code, many times slower.
    published_sensr: SensrPlan
    #: Violation of equalized odds that Reductions is allowed.
    violation: float
    balanced_reductions: bool
    #: Of the directions that SenSR trains with.
    sensr_solver: str


PLANS = {
    "Adult": Plan(
        SensrPlan(10_000, 2e-5, 250, 10.0, 5, 1e-3),
        SensrPlan(20_000, 1e-5, 1_000, 10.0, 50, 1e-4),
        violation=0.03,
        balanced_reductions=True,
        sensr_solver="liblinear",
    ),
    "COMPAS": Plan(
        SensrPlan(8_000, 2e-4, 250, 0.1, 4, 2e-4),
        SensrPlan(16_000, 1e-4, 1_000, 0.1, 8, 1e-4),
        violation=0.05,
        balanced_reductions=False,
        sensr_solver="converged",
    ),
}


def regression_directions(data: Individuals, solver: str = "converged") -> Matrix:
    """Coefficients of gender and race on the other features, and the protected features.

    "converged" is lbfgs to the optimum; the other solvers run at the defaults of scikit-learn.
    """
    options = {"tol": 1e-10, "max_iter": 10_000} if solver == "converged" else {"solver": solver}
    X, k = data.features[:, data.n_protected :], data.n_protected
    found = np.zeros((2, data.features.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for row, protected in zip(found, (data.gender, data.race), strict=True):
            row[k:] = LogisticRegression(**options).fit(X, protected).coef_[0]
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

    def forward(self, X: Tensor) -> Tensor:
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

    def forward(self, X: Tensor) -> Tensor:
        """Give one logit per row."""
        scores = X @ self.coefs + self.intercepts
        one = torch.logsumexp(self.log_weights + logsigmoid(scores), dim=1)
        zero = torch.logsumexp(self.log_weights + logsigmoid(-scores), dim=1)
        return one - zero


class BalancedRegression(LogisticRegression):  # type: ignore[misc]
    """A logistic regression that weights rows by the rarity of their label.

    Counts of labels, not sums of weights, as scikit-learn did it when the paper was written.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
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

    def __init__(self, network: nn.Sequential, X: Tensor, label: Tensor) -> None:
        first, second = network[0], network[2]
        self.weight = first.weight
        self.hidden = torch.addmm(first.bias, X, first.weight.T)
        self.out = second.weight[1] - second.weight[0]
        self.bias = second.bias[1] - second.bias[0]
        self.sign = 2.0 * label - 1.0

    def slope(self, moved: Tensor, weight: Tensor) -> tuple[float, Tensor]:
        """The mean loss, and its gradient in the moves; these reach the units by the weight."""
        hidden = torch.addmm(self.hidden, moved, weight.T)
        margin = self.sign * (hidden.relu() @ self.out + self.bias)
        push = -self.sign * torch.sigmoid(-margin) / len(margin)
        gradient = (hidden > 0).float() @ (self.out[:, None] * weight)
        return float(softplus(-margin).mean()), push[:, None] * gradient


class Climb:
    """Adam from 0 upwards; torch's own costs more than what it follows."""

    def __init__(self, shape: tuple[int, int], rate: float) -> None:
        self.place, self.mean, self.square = (torch.zeros(shape) for _ in range(3))
        self.rate, self.step = rate, 0

    def follow(self, slope: Tensor) -> None:
        """Take one step."""
        self.step += 1
        self.mean.lerp_(slope, 0.1)
        self.square.lerp_(slope * slope, 0.001)
        scale = (self.square / (1 - 0.999**self.step)).sqrt_().add_(1e-8)
        self.place.addcdiv_(self.mean, scale, value=self.rate / (1 - 0.9**self.step))


def subspace_attack(attacked: Attacked, directions: Tensor, plan: SensrPlan) -> Tensor:
    """Moves along the sensitive directions that raise the loss; none if they do not."""
    weight = attacked.weight @ directions.T
    climb = Climb((len(attacked.sign), len(directions)), plan.subspace_rate)
    start, slope = attacked.slope(climb.place, weight)
    loss = start
    for _ in range(plan.subspace_steps):
        climb.follow(slope)
        loss, slope = attacked.slope(climb.place, weight)
    moved = climb.place @ directions
    return moved if loss >= start else 0 * moved


def full_attack(
    attacked: Attacked, moved: Tensor, project: Tensor, plan: SensrPlan
) -> tuple[Tensor, float, bool]:
    """Small further moves in all directions: where to, their distance, and whether they help."""
    attacked.hidden = torch.addmm(attacked.hidden, moved, attacked.weight.T)
    climb = Climb(moved.shape, plan.full_rate)
    start, slope = attacked.slope(climb.place, attacked.weight)
    loss, away = start, climb.place
    for _ in range(plan.full_steps):
        climb.follow(slope - 2 * plan.penalty / len(moved) * away)
        loss, slope = attacked.slope(climb.place, attacked.weight)
        away = climb.place @ project
    distance = float(away.square().sum(dim=1).mean())
    return moved + climb.place, distance, loss - plan.penalty * distance >= start


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
        with torch.no_grad():
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


def train_project(data: Individuals, seed: int, solver: str = "converged") -> nn.Module:
    """The network that does not see the sensitive directions of its training rows."""
    return train_network(data, complement(regression_directions(data, solver)), seed)


def train_all(data: Individuals, seed: int, *, published_sensr: bool) -> dict[str, nn.Module]:
    """The four classifiers, by name."""
    plan = PLANS[data.name]
    sensr = plan.published_sensr if published_sensr else plan.sensr
    directions = regression_directions(data, plan.sensr_solver)
    return {
        "Baseline": train_network(data, None, seed),
        "Project": train_project(data, seed),
        "Reductions": train_reductions(data, plan),
        "SenSR": train_sensr(data, directions, sensr, seed),
    }
