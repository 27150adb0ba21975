"""Generates rows by a variational autoencoder of tables, in torch."""

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

#: The initial standard deviation of positions within a mode, and its bounds.
_NOISE = 0.1
_LEAST_NOISE, _MOST_NOISE = 0.01, 1.0
#: Default steps of the optimiser, and the fewest epochs by default.
_STEPS, _FEWEST_EPOCHS = 3_000, 50
#: Rows that are drawn at once.
_CHUNK_ROWS = 10_000
#: A loss has settled if the last tenth of the epochs brought less than this part of its decrease.
_SETTLED = 0.01


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The losses of a training, and whether it converged.

    Attributes
    ----------
    losses : tuple of float
        The mean loss of a row in each epoch: its coding length in nats, up to a constant.
    n_steps : int
        Steps of the optimiser.
    ended : str
        ``"settled"`` if the mean loss of the last tenth of the epochs is below that of the tenth
        before by less than 1 % of the total decrease, else ``"still falling"``: more epochs may
        help.
    """

    losses: tuple[float, ...]
    n_steps: int
    ended: str


class TVAE:
    """Rows by a variational autoencoder of tables [1]_; needs torch (``fairaudit-rs[torch]``).

    Parameters
    ----------
    n_epochs : int, optional
        Number of passes over the rows in training; by default enough for 3,000 steps, but at least
        50. The paper's 300 epochs with batches of 500 give too few steps to learn the dependence
        between columns from a few hundred rows.
    batch_size : int
        Number of rows in a step.
    n_hidden : int
        Width of the two hidden layers of encoder and decoder.
    n_latent : int
        Number of latent variables of a row.
    learning_rate : float
        Learning rate of the optimiser Adam.
    weight_decay : float
        Weight decay in Adam.
    reconstruction_weight : float
        The weight of the reconstruction loss, relative to the divergence of the latent variables
        from their prior: 1 is the bound of the paper, 2 the value in its public code.
    progress : bool or callable, optional
        True prints; a callable gets (epochs done, epochs in all).

    Attributes
    ----------
    training : TrainingRecord
        The losses, and how training ended; None before `fit`.

    Notes
    -----
    A number is encoded as a mode and a position within it, (x - mean) / (4 standard deviations).
    The modes are the normal laws of a mixture that is fitted by expectation-maximisation; the
    Bayesian information criterion chooses 1, 2, 3, 5 or 8 of them (the paper: variational, up to
    ten). A value that 5 % of the rows repeat is a separate mode without spread. Positions are
    normal around a tanh with one learned standard deviation per column; modes and levels have a
    softmax. Rows are drawn from these laws, and stay within the observed range.

    Runs on the CPU in one thread, with random numbers of NumPy, so that a seed reproduces the rows
    with the same version of torch. Torch's own seed and number of threads are not changed.

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
                "generator is 'tvae', but torch is not installed. Install fairaudit-rs[torch], or "
                "pass 'copula' or 'bootstrap'.",
                argument="generator",
            )
        rows = read_mixed(X)
        stream = stream_of(rng, random_state)
        layout = ColumnLayout.from_rows(rows)
        with _one_thread():
            network = TvaeNetwork(layout, self.n_hidden, self.n_latent, stream)
            self.training = self._train(network, rows.values, stream)
        self._learned = _TvaeFit(rows, network)
        return self

    def _train(
        self, network: TvaeNetwork, values: Floats, stream: np.random.Generator
    ) -> TrainingRecord:
        """Train a network; every epoch redraws the modes of numbers."""
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
                    f"the loss of TVAE is {total} in epoch {epoch + 1}. Pass a learning_rate below "
                    f"{self.learning_rate:g}.",
                    argument="learning_rate",
                )
            if self.progress is not None:
                self.progress(epoch + 1, n_epochs)
        return TrainingRecord(losses=tuple(losses), n_steps=n_steps, ended=_ended(losses))

    def sample(self, n: int, rng: Any = None, *, random_state: Any = None) -> Any:
        """Return generated rows.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed; ``random_state`` is an alias.

        Returns
        -------
        frame or array
            Of the same kind as the frame that was learned.

        Examples
        --------
        >>> from fairaudit_rs.extremes.tvae import TVAE
        >>> generator = TVAE(n_epochs=5).fit({"age": [31, 45, 62] * 20}, rng=0)
        >>> set(generator.sample(9, rng=1)["age"]) <= {31, 45, 62}
        True
        """
        n = arguments.check(n=n).n
        if self._learned is None:
            raise DataError("TVAE has learned no rows yet. Call fit before sample.")
        with _one_thread():
            return self._learned.drawn(n, stream_of(rng, random_state))


def _ended(losses: list[float]) -> str:
    """Return "settled" or "still falling" for the losses of the last epochs."""
    tenth = max(len(losses) // 10, 1)
    last, before = np.mean(losses[-tenth:]), np.mean(losses[-2 * tenth : -tenth] or losses[:1])
    fall = losses[0] - float(last)
    settled = len(losses) >= 3 and before - last < _SETTLED * max(fall, 0.0)
    return "settled" if settled else "still falling"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch in one thread with gradients, and restore both settings afterwards."""
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
    """The encoder and decoder, with two hidden layers each."""

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
        """Return the mean loss of a batch: the negative evidence lower bound."""
        import torch

        hidden = _forward(self.encoder, seen)
        mean, log_variance = hidden[:, : self.n_latent], hidden[:, self.n_latent :]
        noise = _tensor(stream.standard_normal((len(seen), self.n_latent)))
        decoded = _forward(self.decoder, mean + torch.exp(log_variance / 2) * noise)
        divergence = (mean**2 + torch.exp(log_variance) - 1 - log_variance).sum(dim=1) / 2
        reconstruction = torch.zeros(len(seen))
        for number, block in enumerate(self.layout.blocks):
            flags = seen[:, block.flags]
            logs = torch.log_softmax(decoded[:, block.flags], dim=1)
            reconstruction = reconstruction - (flags * logs).sum(dim=1)
            if block.modes is not None:
                # Positions matter only in modes that have a spread.
                counts = flags @ _tensor((block.modes.spread > 0).astype(np.float64))
                deviation = seen[:, block.start] - torch.tanh(decoded[:, block.start])
                log_noise = self.log_noise[number]
                squared_error = deviation**2 * torch.exp(-2 * log_noise) / 2 + log_noise
                reconstruction = reconstruction + counts * squared_error
        return (reconstruction_weight * reconstruction + divergence).mean()

    def bound_noise(self) -> None:
        """Clip the standard deviation of positions to its bounds."""
        import torch

        with torch.no_grad():
            self.log_noise.clamp_(math.log(_LEAST_NOISE), math.log(_MOST_NOISE))

    def drawn(self, n: int, stream: np.random.Generator) -> Floats:
        """Draw the codes and numbers of n rows."""
        import torch

        with torch.no_grad():
            decoded = _forward(self.decoder, _tensor(stream.standard_normal((n, self.n_latent))))
            noise = torch.exp(self.log_noise).numpy().astype(np.float64)
            seen = decoded.numpy().astype(np.float64)
        for block in self.layout.blocks:
            if block.modes is not None:
                seen[:, block.start] = np.tanh(seen[:, block.start])
        return self.layout.decoded(seen, noise, stream)


Layers = list[tuple["torch.Tensor", "torch.Tensor"]]


def _layers(widths: list[int], stream: np.random.Generator) -> Layers:
    """Return initial weights and offsets, uniform within 1 / sqrt(width) as in torch."""
    layers = []
    for width, to in pairwise(widths):
        limit = 1 / math.sqrt(width)
        weights = _tensor(stream.uniform(-limit, limit, (to, width))).requires_grad_()
        layers.append((weights, _tensor(stream.uniform(-limit, limit, to)).requires_grad_()))
    return layers


def _forward(layers: Layers, rows: torch.Tensor) -> torch.Tensor:
    """Pass rows through some layers, with ReLU between them."""
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
        """Draw n rows, as a frame of the user's kind."""
        parts = [
            self.network.drawn(min(_CHUNK_ROWS, n - first), stream)
            for first in range(0, n, _CHUNK_ROWS)
        ]
        return self.rows.frame(np.concatenate(parts))
