"""The individual lens against baselines, in one run on one machine.

The flow of a linear model is timed from arrays, then the public call. With --write the table goes
to benches/README.md and docs/performance.md.
"""

import os

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs import _native
from report import machine, run, seconds, time_table

N, P, STEPS = 9_000, 40, 500
#: Rows of the whole public call, and of the blocks in which NumPy takes them: of 2,000 to 20,000
#: the fastest, as their arrays stay in the cache.
MANY, BLOCK = 1_000_000, 20_000
PENALTY, STEP = 50.0, 0.005
#: Steps of the slow baseline that are run; their time is scaled.
FEW_STEPS = 25
VECTORS, GAMMA = 500, 1 / P
#: Steps of the kernel flows that are run, ours and torch's; times are scaled.
KERNEL_STEPS = 25


def make_rows(n=N):
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(n, P)), 0.3 * rng.normal(size=P)
    basis = np.linalg.qr(rng.normal(size=(P, 3)))[0]
    return X, rng.random(n) < 0.5, coef, basis


def by_torch(X, y, coef, basis, n_steps):
    """Batched autograd in double precision, as a careful user writes it."""
    import torch

    start, w, label = (torch.tensor(value, dtype=torch.float64) for value in (X, coef, y))
    D = torch.eye(P, dtype=torch.float64) - torch.tensor(basis @ basis.T)
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    x = start.clone()
    for _ in range(n_steps):
        x.requires_grad_(True)
        moved = x - start
        held = PENALTY * ((moved @ D) * moved).sum(dim=1)
        objective = (loss_of(x @ w, label, reduction="none") - held).sum()
        (gradient,) = torch.autograd.grad(objective, x)
        x = (x + STEP * gradient).detach()
    return x.numpy()


def by_numpy(X, y, coef, basis):
    """The two numbers of every row, with all arrays made once; scores after the last step."""
    sign = np.where(y, -1.0, 1.0)
    start = sign * (X @ coef)
    free = basis @ (basis.T @ coef)
    held = coef - free
    gain_free, gain_held = free @ free, held @ held
    a, b, push, part = np.zeros((4, len(X)))
    n, kept = start.copy(), 1 - 2 * PENALTY * STEP
    for _ in range(STEPS):
        np.negative(n, out=push)
        np.exp(push, out=push)
        push += 1
        np.divide(STEP, push, out=push)
        a += push
        b *= kept
        b += push
        np.multiply(a, gain_free, out=n)
        n += start
        np.multiply(b, gain_held, out=part)
        n += part
    return sign * n


def steps(n_steps):
    """Looked at before the first and after the last one."""
    return _native.Schedule(n_steps, STEP, decay=0.0, solver="euler", record=[0, n_steps])


def linear():
    """9,000 x 40, 500 steps."""
    import torch

    X, y, coef, basis = make_rows()
    free = basis @ (basis.T @ coef)
    held = coef - free
    eigenvalues = ([0.0, 2 * PENALTY], [float(free @ free), float(held @ held)])
    pulls, gains = eigenvalues
    flow = _native.Flow.linear(
        X, y.astype(np.float64), "log_loss", coef[None], [0.0], pulls, np.reshape(gains, (2, 1, 1))
    )

    def ours(n_threads=None, n_steps=STEPS):
        return flow.run(steps(n_steps), _native.Call(n_threads), floor=0.0, boundary=0.0).end[0]

    assert np.abs(ours() - by_numpy(X, y, coef, basis)).max() < 1e-12
    few = by_torch(X, y, coef, basis, FEW_STEPS)
    assert np.abs(ours(n_steps=FEW_STEPS) - few @ coef).max() < 1e-12
    work = f"gradient flow, logistic, {N:,} x {P}, {STEPS} steps"
    scale = STEPS / FEW_STEPS
    times = []
    # On a busy machine torch is faster on one thread: the better one counts.
    for n_threads in {1, os.cpu_count() or 1}:
        torch.set_num_threads(n_threads)
        times.append(scale * seconds(lambda: by_torch(X, y, coef, basis, FEW_STEPS), 3))
    torch_time = min(times)
    yield work, "torch autograd, batched float64", torch_time, seconds(ours, 20), 200
    numpy_time = seconds(lambda: by_numpy(X, y, coef, basis))
    alone = seconds(lambda: ours(n_threads=1), 20)
    yield f"{work}, one thread", "NumPy, two numbers per row", numpy_time, alone, 1.5
    metric = fa.FairMetric.directions(basis.T)
    model = fa.LinearModel(coef)
    options = {"fair_metric": metric, "penalty": PENALTY, "step_size": STEP, "rng": 1}
    call = seconds(lambda: fa.individual_test(model, X, y, **options), 20)
    work = "individual_test, the same, with its path of 21 points"
    yield work, "torch autograd (flow alone)", torch_time, call, None


def many_rows():
    """The public call with all that it says, against the flow alone."""
    X, y, coef, basis = make_rows(MANY)
    metric, model = fa.FairMetric.directions(basis.T), fa.LinearModel(coef)
    options = {"fair_metric": metric, "penalty": PENALTY, "step_size": STEP, "n_threads": 1}
    blocks = [slice(first, first + BLOCK) for first in range(0, MANY, BLOCK)]

    def by_blocks():
        return np.concatenate([by_numpy(X[part], y[part], coef, basis) for part in blocks])

    end = fa.individual_test(model, X, y, **options).score_end
    assert np.abs(end - by_blocks()).max() < 1e-12
    work = f"individual_test, 10^6 x {P}, {STEPS} steps, path of 21 points, one thread"
    numpy_time = seconds(by_blocks, 3)
    ours = seconds(lambda: fa.individual_test(model, X, y, **options), 5)
    yield work, "NumPy, two numbers per row in blocks (flow alone)", numpy_time, ours, 1.5


def rbf_by_torch(X, y, vectors, dual, basis, n_steps, score_of, batch):
    """Batched autograd; `score_of` gives the scores of a batch."""
    import torch

    D = torch.eye(P, dtype=torch.float64) - torch.tensor(basis @ basis.T)
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    vectors, dual = torch.tensor(vectors), torch.tensor(dual)
    squares = (vectors * vectors).sum(dim=1)
    ends = []
    for first in range(0, len(X), batch):
        start, label = (
            torch.tensor(X[first : first + batch]),
            torch.tensor(y[first : first + batch]),
        )
        x = start.clone()
        for _ in range(n_steps):
            x.requires_grad_(True)
            moved = x - start
            held = PENALTY * ((moved @ D) * moved).sum(dim=1)
            score = score_of(x, vectors, squares, dual)
            objective = (loss_of(score, label, reduction="none") - held).sum()
            (gradient,) = torch.autograd.grad(objective, x)
            x = (x + STEP * gradient).detach()
        ends.append(x.numpy())
    return np.concatenate(ends)


def by_cdist(x, vectors, _, dual):
    import torch

    return torch.exp(-GAMMA * torch.cdist(x, vectors) ** 2) @ dual


def by_product(x, vectors, squares, dual):
    """The distances by one product, with as few passes over the kernel matrix as torch allows."""
    import torch

    products = torch.addmm(-GAMMA * squares[None], x, vectors.T, alpha=2 * GAMMA)
    return torch.exp(products - GAMMA * (x * x).sum(dim=1, keepdim=True)) @ dual


def kernel():
    """9,000 x 40, 500 support vectors; some steps of 500, scaled."""
    import torch

    X, y, _, basis = make_rows()
    rng = np.random.default_rng(1)
    vectors, dual = rng.normal(size=(VECTORS, P)), rng.normal(size=VECTORS)
    labels = y.astype(np.float64)
    model = _native.KernelExpansion(
        vectors, dual[None], [0.0], "rbf", gamma=GAMMA, degree=3, coef0=0.0
    )
    pulls, eigenvectors = [0.0] * basis.shape[1], np.ascontiguousarray(basis.T)
    metric = _native.MetricPull(np.ones(P), pulls, eigenvectors, 2 * PENALTY)
    flow = _native.Flow.kernel(X, labels, "log_loss", model, metric)

    def ours(n_steps=KERNEL_STEPS):
        return flow.run(steps(n_steps), _native.Call(), floor=0.0, boundary=0.0).moved

    moved = X + ours()
    work = f"gradient flow, RBF kernel model, {N:,} x {P}, {VECTORS} support vectors, {STEPS} steps"
    scale = STEPS / KERNEL_STEPS
    own = scale * seconds(ours, 3)
    for name, score_of in (("torch.cdist", by_cdist), ("one product, tuned", by_product)):
        best = np.inf
        for n_threads in {1, os.cpu_count() or 1}:
            torch.set_num_threads(n_threads)
            for batch in (256, 1_024):
                arguments = (X, labels, vectors, dual, basis, KERNEL_STEPS, score_of, batch)
                assert np.abs(rbf_by_torch(*arguments) - moved).max() < 1e-9
                best = min(best, scale * seconds(lambda a=arguments: rbf_by_torch(*a), 3))
        yield work, f"torch autograd, batched float64, {name}", best, own, 5


def lines():
    yield from time_table([*linear(), *many_rows(), *kernel()])
    yield from ["", machine()]


if __name__ == "__main__":
    run("individual", lines(), __doc__)
