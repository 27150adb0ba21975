"""Random audits: rows and requests, and the texts of their audits."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
from click.testing import CliRunner

import fairaudit_rs as fa

from .words import World

_GROUPS = [
    ["woman", "man"], ["White", "Black", "Asian"], ["a", "b", "c", "d"],
    ["north", "south", "east", "west", "mid land"], [0, 1], [0, 1],
]  # fmt: skip
_NAMES = ["sex", "race", "region", "place", "veteran", "disabled"]
OWN = [
    "selection_rate", "rejection_rate", "true_positive_rate", "false_positive_rate",
    "false_negative_rate", "true_negative_rate", "positive_predictive_value", "accuracy",
]  # fmt: skip
LENSES = ["permutation", "individual", "influence", "extremes"]


def random_world(seed):
    """Draw rows and a request."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([150, 500, 1_500, 4_000]))
    chosen = rng.permutation(6)[: rng.integers(1, 4)]
    attributes, push = {}, np.zeros(n)
    for i in chosen:
        share = rng.dirichlet(np.full(len(_GROUPS[i]), 2.0))
        code = rng.choice(len(share), n, p=share)
        column = np.array(_GROUPS[i], dtype=object)[code]
        push += (rng.normal(0, rng.choice([0, 0.4, 1.2]), len(share)))[code]
        if rng.random() < 0.2 and i < 4:
            column[rng.random(n) < 0.02] = str(rng.choice(["Unknown", "Unknown", "None"]))
        attributes[_NAMES[i]] = column
    strata = {}
    if rng.random() < 0.4:
        lean = attributes[_NAMES[chosen[0]]] == _GROUPS[chosen[0]][0]
        strata["dept"] = np.where(rng.random(n) < 0.2 + 0.6 * lean, "A", "B")
        strata["dept"][rng.random(n) < 0.1] = "C"
        push += np.where(strata["dept"] == "A", rng.normal(0, 1.5), 0)
        if rng.random() < 0.3:
            strata["year"] = rng.choice([1, 2], n)
    weighted = bool(rng.random() < 0.25)
    w = np.round(rng.exponential(1.0, n), 3) if weighted else np.ones(n)
    clusters, mixed = None, ""
    if rng.random() < 0.25:
        mixed = str(rng.choice(["", "", "split", "drop"]))
        keys = [*attributes.values(), *strata.values()]
        own = np.array([" ".join(map(str, row)) for row in zip(*keys, strict=True)])
        clusters = np.char.add(
            np.char.add(own, "-"), rng.integers(0, int(rng.choice([6, 40])), n).astype(str)
        )
        if mixed:
            # Some homes hold people of several groups.
            home = np.char.add("home ", rng.integers(0, n // 8, n).astype(str))
            for column in strata.values():
                home = np.char.add(np.char.add(home, " "), column.astype(str))
            clusters = np.where(rng.random(n) < 0.3, home, clusters)
    s = np.round(np.clip(1 / (1 + np.exp(-rng.normal(push, 1.0))), 0, 1), 3)
    y = (rng.random(n) < np.clip(s, 0.1, 0.9)).astype(int)
    p = (s > rng.choice([0.1, 0.3, 0.5, 0.5, 0.6, 0.6, 0.98])).astype(int)
    if p.min() == p.max():
        p[:5] = 1 - p[:5]
    world = World(
        y=y, p=p, s=s if rng.random() < 0.5 else None, w=w, weighted=weighted,
        attributes=attributes, strata=strata, clusters=clusters, policy=None,
        mixed=mixed,
    )  # fmt: skip
    if rng.random() < 0.2:
        world = replace(world, y=None)
    world = replace(world, policy=_policy(rng, world))
    if rng.random() < 0.3:
        low, high = ("fail", "pass") if not world.policy.punitive else ("clear", "jail")
        good = low if world.policy.punitive else high
        world = replace(world, values=(low, high), policy=replace(world.policy, favourable=good))
    return world


def model_of(world):
    return fa.LinearModel(world.coef, world.intercept, feature_names=list(world.X.columns))


def lens_world(seed):
    """Draw rows, a linear model and a policy of lenses, beside a few metrics."""
    rng = np.random.default_rng([seed, 1])
    n = int(rng.choice([400, 1_500, 4_000, 12_000], p=[0.25, 0.35, 0.25, 0.15]))
    woman = rng.random(n) < rng.choice([0.2, 0.5])
    effect = rng.choice([0.0, 0.3, 1.0])
    attributes = {"sex": np.where(woman, "woman", "man").astype(object)}
    if rng.random() < 0.35:
        race = rng.choice(3, n, p=rng.dirichlet([4, 2, 1]))
        attributes["race"] = np.array(["White", "Black", "Asian"], dtype=object)[race]
        if rng.random() < 0.4:
            attributes["race"][rng.random(n) < 0.03] = "Unknown"
    X = pd.DataFrame(
        {
            "income": rng.normal(0, 1, n) - effect * woman,
            "hours": rng.normal(0, 1, n) - 0.3 * effect * woman,
            "part": ((rng.random(n) < 0.3) | (woman & (rng.random(n) < 0.3))).astype(float),
        }
    )
    coef = [float(rng.choice([0.3, 1.0])), float(rng.choice([0.0, 0.4])), -0.5]
    if rng.random() < 0.75:
        X, coef = X.assign(sex=woman.astype(float)), [*coef, float(rng.choice([-0.6, 0.0, 0.2]))]
    intercept = float(rng.choice([-0.5, 0.0, 0.8]))
    score = 1 / (1 + np.exp(-(X.to_numpy() @ np.array(coef) + intercept)))
    y = (rng.random(n) < score).astype(int)
    design = rng.choice(["rows", "weights", "clusters", "strata"], p=[0.7, 0.12, 0.1, 0.08])
    w = np.round(rng.exponential(1.0, n), 3) if design == "weights" else np.ones(n)
    own = np.char.add(woman.astype(str), rng.integers(0, 60, n).astype(str))
    given = rng.choice(["model", "flips", "features", "scores"], p=[0.6, 0.2, 0.1, 0.1])
    flipped = None
    if given == "flips":
        flipped = np.clip(score + rng.choice([0.02, 0.2]) * rng.beta(2, 4, n) * (1 + woman), 0, 1)
    world = World(
        y=y if rng.random() < 0.9 else None, p=(score >= 0.5).astype(int), s=score, w=w,
        weighted=design == "weights", attributes=attributes,
        strata={"dept": rng.choice(["A", "B"], n)} if design == "strata" else {},
        clusters=own if design == "clusters" and len(attributes) == 1 else None, policy=None,
        X=X if given in ("model", "features") else None,
        coef=tuple(coef) if given == "model" else None, intercept=intercept, flipped=flipped,
    )  # fmt: skip
    return replace(world, policy=_lens_policy(rng, world))


def _lens_policy(rng, world):
    """Draw which lenses inform, and which ones are held to what."""
    metrics = ["selection_rate"] if world.y is None else OWN[:1] + OWN[2:5]
    criteria = [
        fa.Criterion(
            metric=str(metric),
            tolerance=float(rng.choice([0.05, 0.1, 0.3])),
            binding=bool(rng.random() < 0.5),
        )
        for metric in rng.permutation(metrics)[: rng.integers(1, 3)]
    ]
    able = ["projection", "individual", "influence", "extremes"]
    tolerances = {
        "projection": [0.02, 0.1, 0.3], "individual": [1.1, 1.5, 3.0, 6.0],
        "influence": [0.02, 0.1, 0.3], "extremes": [0.01, 0.05, 0.2, 0.5],
    }  # fmt: skip
    for lens in able:
        if rng.random() < 0.45:
            continue
        binding = bool(rng.random() < 0.75)
        options = {}
        if lens == "individual" and (len(world.attributes) > 1 or rng.random() < 0.6):
            options["fair_metric"] = {"features": ["income"]}
        tolerance = float(rng.choice(tolerances[lens]))
        criteria.append(fa.Criterion(lens=lens, tolerance=tolerance, binding=binding, **options))
    names = [criterion.lens for criterion in criteria if criterion.lens is not None]
    lenses = ["permutation", *(name for name in able if name in names or rng.random() < 0.6)]
    given = {
        "alpha": float(rng.choice([0.05, 0.05, 0.1])),
        "adjustment": str(rng.choice(["holm", "holm", "holm", "none"])),
    }
    return fa.Policy(name="lenses", criteria=criteria, lenses=lenses, **given)


def _policy(rng, world):
    """Draw a policy that the columns are enough for."""
    presets = ["parity", "four_fifths", "us_eeoc", "co_insurance_draft", "nyc_ll144"]
    presets += ["fair_lending"]
    if world.y is not None:
        presets += ["opportunity", "error_balance", "punitive", "predictive"]
        presets += ["calibration", "performance"] if world.s is not None else []
    first = next(iter(world.attributes))
    if rng.random() < 0.6:
        name = str(rng.choice(presets))
        given = {}
        if name == "fair_lending":
            groups = {k: world.plain(next(iter(v))) for k, v in groups_of(world).items()}
            given = {"ratio": 0.8, "references": groups}
        if name == "nyc_ll144":
            lenses = {"lenses": LENSES, "rule_options": {}}
            if rng.random() < 0.5:
                lenses["rule_options"] = {"date": "2026-03-01", "data": "records of 2025"}
            return replace(fa.Policy.preset(name), **lenses)
        return replace(fa.Policy.preset(name, **given), lenses=LENSES)
    able = OWN if world.y is not None else OWN[:2]
    metrics = rng.permutation(able)[: rng.integers(1, 4)]
    criteria = []
    for i, metric in enumerate(map(str, metrics)):
        references = [None, None, "highest", "best", world.plain(groups_of(world)[first][0])]
        reference = references[rng.integers(len(references))]
        ratio = rng.random() < 0.4
        fixed = reference not in (None, "highest", "best")
        criteria.append(
            fa.Criterion(
                metric=metric,
                ratio=0.8 if ratio else None,
                tolerance=None if ratio else float(rng.choice([0.05, 0.1, 0.2])),
                binding=bool(i == 0 or rng.random() < 0.6),
                reference=reference,
                attributes=[first] if fixed else None,
            )
        )
    return fa.Policy(
        name="own",
        criteria=criteria,
        floor=int(rng.choice([30, 30, 60])),
        punitive=bool(rng.random() < 0.25),
        lenses=LENSES,
        adjustment=str(rng.choice(["holm", "holm", "none"])),
        # Small levels take more replicates where rows are no plain counts.
        alpha=float(rng.choice([0.05, 0.05, 0.1 if world.takes_replicates else 0.01])),
    )


def groups_of(world):
    return {name: list(world.groups[name]) for name in world.attributes}


def audited(world, seed):
    """Return the text of an audit through Python."""
    return audit_of(world, seed).to_text()


def audit_of(world, seed):
    """Return an audit through Python."""
    words = np.array(world.values, dtype=object if world.values[0] != 0 else int)
    given = {"sample_weight": world.w} if world.weighted else {}
    if world.clusters is not None:
        given["clusters"] = world.clusters
        if world.mixed:
            given["mixed_clusters"] = world.mixed
    if world.strata:
        given["strata"] = world.strata
    if world.X is not None:
        given["X"] = world.X
    if world.coef is not None:
        given["model"] = model_of(world)
    if world.flipped is not None:
        given["counterfactual_score"] = world.flipped
    return fa.audit(
        None if world.y is None else words[world.y],
        words[world.p],
        y_score=world.s,
        sensitive_features=world.attributes,
        policy=world.policy,
        evidence="none",
        rng=seed,
        n_resamples=1_999,
        n_threads=1,
        **given,
    )


def audited_from_file(world, seed, folder):
    """Return an audit through the command line, of the rows that ``--where`` keeps.

    The rows that are kept, and its text, its page of Markdown and its JSON.
    """
    import polars as pl

    from fairaudit_rs.cli import main

    rng = np.random.default_rng(seed)
    words = np.array(world.values, dtype=object if world.values[0] != 0 else int)
    others = {"person_age": rng.integers(16, 80, world.n)}
    columns = {name: column.tolist() for name, column in world.attributes.items()}
    columns |= {name: column.tolist() for name, column in world.strata.items()}
    columns |= {"decided": words[world.p].tolist()}
    columns |= {name: column.tolist() for name, column in others.items()}
    args = ["--y-pred", "decided"]
    names = {"p": "decided"}
    for role, name, option in (("y", "truth", "--y-true"), ("s", "risk", "--y-score")):
        column = getattr(world, role)
        if column is not None:
            columns[name] = (words[column] if role == "y" else column).tolist()
            args += [option, name]
            names[role] = name
    if world.weighted:
        columns["people"] = world.w.tolist()
        args += ["--weight", "people"]
        names["w"] = "people"
    if world.clusters is not None:
        columns["home"] = world.clusters.tolist()
        args += ["--clusters", "home"]
        args += ["--mixed-clusters", world.mixed] if world.mixed else []
        names["clusters"] = "home"
    for name in world.attributes:
        args += ["-s", name]
    for name in world.strata:
        args += ["--strata", name]
    path, policy, out = folder / "people.csv", folder / "policy.toml", folder / "out.txt"
    pl.DataFrame(columns, strict=False).write_csv(path)
    policy.write_text(world.policy.to_toml())
    where = "person_age >= 25"
    kept = others["person_age"] >= 25
    others_out = [str(folder / "out.md"), str(folder / "out.json")]
    args += ["--policy", str(policy), "--where", where, "-o", str(out), "--seed", str(seed)]
    args += ["-o", others_out[0], "-o", others_out[1]]
    args += ["--evidence", "none", "--n-resamples", "1999", "--quiet"]
    result = CliRunner().invoke(main, ["audit", str(path), *args])
    assert result.exit_code in (0, 1), result.output
    kept_world = replace(
        world,
        **{
            name: None if getattr(world, name) is None else getattr(world, name)[kept]
            for name in ("y", "p", "s", "w", "clusters")
        },
        attributes={name: column[kept] for name, column in world.attributes.items()},
        strata={name: column[kept] for name, column in world.strata.items()},
        names=names,
        data=str(path),
        where=where,
        n_before=world.n,
    )
    text = out.read_text()
    page, content = ((folder / name).read_text() for name in ("out.md", "out.json"))
    return kept_world, text[: text.rindex("\n\nseed ")], page, json.loads(content)
