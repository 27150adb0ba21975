"""A variational autoencoder of tables, in torch."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..errors import ArgumentError, DataError
from .mixed_columns import MixedRows, read_mixed
from .modes import ColumnLayout
from .seeds import stream_of

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]

#: The standard deviation of places within a mode: where it begins, and its bounds.
_NOISE = 0.1
_LEAST_NOISE, _MOST_NOISE = 0.01, 1.0
#: Steps and epochs of the optimiser unless the user says otherwise.
_STEPS, _FEWEST_EPOCHS = 3_000, 50
#: Rows that are drawn at once.
_PART = 10_000
#: A loss that fell by less than this part of its whole fall over the last tenth has settled.
_SETTLED = 0.01


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """How a training went.

    Attributes
    ----------
    losses : tuple of float
        The mean loss of a row in each epoch: its coding length in nats, up to a constant.
    n_steps : int
        Steps of the optimiser.
    ended : str
        ``"settled"`` where the mean loss of the last tenth of the epochs is below that of the tenth
        before by less than 1 % of the whole fall, else ``"still falling"``: more epochs may help.
    """

    losses: tuple[float, ...]
    n_steps: int
    ended: str


class TVAE:
    """Rows by a variational autoencoder of tables [1]_; needs torch (``fairaudit-rs[torch]``).

    Parameters
    ----------
    n_epochs : int, optional
        How often training sees all rows; by default as often as makes 3,000 steps, and 50 times at
        least. With the 300 epochs and batches of 500 of the paper, some hundred rows make too few
        steps for their dependence to be learned.
    batch_size : int
        Rows in a step.
    n_hidden : int
        Width of the two hidden layers of encoder and decoder.
    n_latent : int
        Hidden numbers of a row.
    learning_rate : float
        Of the optimiser Adam.
    weight_decay : float
        Shrinkage of the weights in Adam.
    reconstruction_weight : float
        What the loss of a row's columns counts, beside the divergence of its hidden numbers from
        their prior: 1 is the bound of the paper, 2 that of its public code.
    progress : bool or callable, optional
        True prints; a callable gets (epochs done, epochs in all).

    Attributes
    ----------
    training : Training
        The losses, and how training ended; None before `fit`.

    Notes
    -----
    A number is a mode and a place within it, (x - mean) / (4 standard deviations). The modes are
    normal laws of a mixture by expectation-maximisation, whose number is chosen by the Bayesian
    information criterion among 1, 2, 3, 5 and 8 (the paper: variational, up to ten). A value that
    5 % of the rows repeat is a mode of its own without spread. Places have a normal law around a
    tanh with one learned standard deviation for each column; modes and levels a softmax. Rows are
    drawn from these laws, and stay between the smallest and the largest value.

    Runs on the CPU in one thread, with random numbers of NumPy: a seed gives the same rows again
    with the same version of torch. Neither torch's own seed nor its number of threads is changed.

    References
    ----------
    .. [1] L. Xu, M. Skoularidou, A. Cuesta-Infante, K. Veeramachaneni, "Modeling tabular data using
       conditional GAN", NeurIPS 2019. arXiv:1907.00503

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.tvae import TVAE
    >>> rng = np.random.default_rng(0)
    >>> X = {"age": rng.integers(20, 60, 200), "job": rng.choice(["clerk", "cook"], 200)}
    >>> generator = TVAE(n_epochs=20).fit(X, rng=1)
    >>> len(generator.training.losses), len(generator.sample(50, rng=2)["job"])
    (20, 50)
    """

    def __init__(
        self,
        *,
        n_epochs: int | None = None,
        batch_size: int = 100,
        n_hidden: int = 128,
        n_latent: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        reconstruction_weight: float = 2.0,
        progress: Any = None,
    ) -> None:
        self.n_epochs = None if n_epochs is None else arguments.check(n_epochs=n_epochs).n_epochs
        checked = arguments.check(
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            progress=progress,
        )
        self.batch_size = checked.batch_size
        self.n_hidden = arguments.count("n_hidden", n_hidden, 1, 100_000)
        self.n_latent = arguments.count("n_latent", n_latent, 1, 100_000)
        self.learning_rate = checked.learning_rate
        self.weight_decay = checked.weight_decay
        self.reconstruction_weight = arguments.positive(
            "reconstruction_weight", reconstruction_weight
        )
        self.progress = checked.progress
        self.training: TrainingRecord | None = None
        self._learned: _TvaeFit | None = None

    def fit(self, X: Any, rng: Any = None, *, random_state: Any = None) -> TVAE:
        """Learn the rows of a frame.

        Parameters
        ----------
        X : frame or array
            Rows of mixed columns.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed of weights, batches and noise; ``random_state`` is an alias.

        Returns
        -------
        TVAE
            This generator.

        Examples
        --------
        >>> from fairaudit_rs.extremes.tvae import TVAE
        >>> generator = TVAE(n_epochs=5).fit({"age": [31, 45, 62] * 20}, rng=0)
        >>> generator.training.n_steps
        5
        """
        if importlib.util.find_spec("torch") is None:
            raise ArgumentError(
                "generator is 'tvae', and torch is not installed; accepted: 'copula', 'bootstrap', "
                "or install fairaudit-rs[torch]",
                argument="generator",
            )
        rows = read_mixed(X)
        stream = stream_of(rng, random_state)
        layout = ColumnLayout.from_rows(rows)
        with _quiet():
            network = TvaeNetwork(layout, self.n_hidden, self.n_latent, stream)
            self.training = self._train(network, rows.values, stream)
        self._learned = _TvaeFit(rows, network)
        return self

    def _train(
        self, network: TvaeNetwork, values: Floats, stream: np.random.Generator
    ) -> TrainingRecord:
        """Train a network; every epoch draws the modes of numbers anew."""
        import torch

        optimiser = torch.optim.Adam(
            network.weights, lr=self.learning_rate, weight_decay=self.weight_decay
        )
        n, losses, n_steps = len(values), [], 0
        n_epochs = self.n_epochs
        if n_epochs is None:
            n_epochs = max(_FEWEST_EPOCHS, math.ceil(_STEPS / math.ceil(n / self.batch_size)))
        for epoch in range(n_epochs):
            seen = network.layout.encoded(values, stream)[stream.permutation(n)]
            total = 0.0
            for first in range(0, n, self.batch_size):
                batch = _tensor(seen[first : first + self.batch_size])
                optimiser.zero_grad()
                loss = network.loss(batch, self.reconstruction_weight, stream)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                network.bound_noise()
                total += float(loss.detach()) * len(batch)
                n_steps += 1
            losses.append(total / n)
            if not math.isfinite(total):
                raise DataError(
                    f"the loss of TVAE is {total} in epoch {epoch + 1}; accepted: a training that "
                    f"stays finite (learning_rate below {self.learning_rate:g})",
                    mentions=("learning_rate",),
                )
            if self.progress is not None:
                self.progress(epoch + 1, n_epochs)
        return TrainingRecord(losses=tuple(losses), n_steps=n_steps, ended=_ended(losses))

    def sample(self, n: int, rng: Any = None, *, random_state: Any = None) -> Any:
        """Return generated rows.

        Parameters
        ----------
        n : int
            How many.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed; ``random_state`` is an alias.

        Returns
        -------
        frame or array
            Of the kind of the frame that was learned.

        Examples
        --------
        >>> from fairaudit_rs.extremes.tvae import TVAE
        >>> generator = TVAE(n_epochs=5).fit({"age": [31, 45, 62] * 20}, rng=0)
        >>> set(generator.sample(9, rng=1)["age"]) <= {31, 45, 62}
        True
        """
        n = arguments.check(n=n).n
        if self._learned is None:
            raise DataError("TVAE has learned no rows yet; accepted: sample after fit")
        with _quiet():
            return self._learned.drawn(n, stream_of(rng, random_state))


def _ended(losses: list[float]) -> str:
    """Say whether the loss still fell at the end."""
    tenth = max(len(losses) // 10, 1)
    last, before = np.mean(losses[-tenth:]), np.mean(losses[-2 * tenth : -tenth] or losses[:1])
    fall = losses[0] - float(last)
    settled = len(losses) >= 3 and before - last < _SETTLED * max(fall, 0.0)
    return "settled" if settled else "still falling"


@contextmanager
def _quiet() -> Iterator[None]:
    """Run torch in one thread with gradients, and leave both as they were."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(n_threads)


def _tensor(values: Floats) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


class TvaeNetwork:
    """Encoder and decoder: two hidden layers each."""

    def __init__(
        self, layout: ColumnLayout, n_hidden: int, n_latent: int, stream: np.random.Generator
    ) -> None:
        self.layout, self.n_latent = layout, n_latent
        width = layout.width
        self.encoder = _layers([width, n_hidden, n_hidden, 2 * n_latent], stream)
        self.decoder = _layers([n_latent, n_hidden, n_hidden, width], stream)
        self.log_noise = _tensor(np.full(len(layout.blocks), math.log(_NOISE))).requires_grad_()
        layers = [*self.encoder, *self.decoder]
        self.weights = [tensor for layer in layers for tensor in layer] + [self.log_noise]

    def loss(
        self, seen: torch.Tensor, reconstruction_weight: float, stream: np.random.Generator
    ) -> torch.Tensor:
        """Return the mean negative bound of a batch of rows."""
        import torch

        hidden = _through(self.encoder, seen)
        mean, log_variance = hidden[:, : self.n_latent], hidden[:, self.n_latent :]
        noise = _tensor(stream.standard_normal((len(seen), self.n_latent)))
        given = _through(self.decoder, mean + torch.exp(log_variance / 2) * noise)
        divergence = (mean**2 + torch.exp(log_variance) - 1 - log_variance).sum(dim=1) / 2
        rebuilt = torch.zeros(len(seen))
        for number, block in enumerate(self.layout.blocks):
            flags = seen[:, block.flags]
            logs = torch.log_softmax(given[:, block.flags], dim=1)
            rebuilt = rebuilt - (flags * logs).sum(dim=1)
            if block.modes is not None:
                # A place counts in modes that have a spread.
                counts = flags @ _tensor((block.modes.spread > 0).astype(np.float64))
                away = seen[:, block.start] - torch.tanh(given[:, block.start])
                log_noise = self.log_noise[number]
                far = away**2 * torch.exp(-2 * log_noise) / 2 + log_noise
                rebuilt = rebuilt + counts * far
        return (reconstruction_weight * rebuilt + divergence).mean()

    def bound_noise(self) -> None:
        """Keep the standard deviation of places within its bounds."""
        import torch

        with torch.no_grad():
            self.log_noise.clamp_(math.log(_LEAST_NOISE), math.log(_MOST_NOISE))

    def drawn(self, n: int, stream: np.random.Generator) -> Floats:
        """Return codes and numbers of n rows."""
        import torch

        with torch.no_grad():
            given = _through(self.decoder, _tensor(stream.standard_normal((n, self.n_latent))))
            noise = torch.exp(self.log_noise).numpy().astype(np.float64)
            seen = given.numpy().astype(np.float64)
        for block in self.layout.blocks:
            if block.modes is not None:
                seen[:, block.start] = np.tanh(seen[:, block.start])
        return self.layout.decoded(seen, noise, stream)


Layers = list[tuple["torch.Tensor", "torch.Tensor"]]


def _layers(widths: list[int], stream: np.random.Generator) -> Layers:
    """Return weights and offsets of layers, uniform within 1 / sqrt(width), as torch begins."""
    found = []
    for width, to in pairwise(widths):
        reach = 1 / math.sqrt(width)
        weights = _tensor(stream.uniform(-reach, reach, (to, width))).requires_grad_()
        found.append((weights, _tensor(stream.uniform(-reach, reach, to)).requires_grad_()))
    return found


def _through(layers: Layers, rows: torch.Tensor) -> torch.Tensor:
    """Return rows after some layers, with a bend between them."""
    import torch

    for place, (weights, offset) in enumerate(layers):
        rows = torch.nn.functional.linear(rows, weights, offset)
        if place < len(layers) - 1:
            rows = torch.relu(rows)
    return rows


@dataclass(frozen=True, eq=False)
class _TvaeFit:
    """The rows that were learned, and the network."""

    rows: MixedRows
    network: TvaeNetwork

    def drawn(self, n: int, stream: np.random.Generator) -> Any:
        """Return n rows of the user's kind."""
        parts = [self.network.drawn(min(_PART, n - first), stream) for first in range(0, n, _PART)]
        return self.rows.frame(np.concatenate(parts))
