"""One process of the run: calls with numbers from a range, and what they came to.

Before each call its number goes to the status file, so that whoever waits knows which one ended or
hung this process. Every line of the output is a finding as JSON.
"""

import argparse
import faulthandler
import json
import os
import random
import re
import resource
import sys
import traceback
import warnings
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import polars as pl

import fairaudit_rs as fa

from ..native_fuzz import REFUSALS
from . import corpus, files, formulas, native, public

#: Kinds of calls and how often each is drawn.
KINDS = {public: 55, formulas: 15, files: 10, native: 20}
#: Bytes of address space above what the process has after its imports.
MEMORY = 3 << 30
#: Of plain TypeErrors those of Python itself, for calls with other arguments than there are.
WRONG_CALL = re.compile(
    # The last one: a callback of the user's that takes something else.
    r"unexpected keyword|required (keyword-only|positional)|positional argument"
    r"|exactly one argument|takes no arguments"
)


def draw(seed, number):
    """The call with a number: its name, the function, its arguments, and the generator."""
    r = random.Random(f"{seed}:{number}")
    kind = r.choices(list(KINDS), list(KINDS.values()))[0]
    return (*kind.make(r), r)


def run(seed, number):
    """Return the outcome of a call: None, or a finding."""
    name = "making"
    try:
        name, function, given, r = draw(seed, number)
        result = function(**given)
        name = f"{name}, its result"
        public.look_at(result, r)
    except BaseException as error:
        return judged(name, error)
    return None


def run_corpus(number):
    """As `run`, of a line of the corpus."""
    i = np.arange(40)
    scope = {"np": np, "pl": pl, "pd": pd, "fa": fa, "MagicMock": MagicMock}
    scope["estimator"] = _estimator
    scope |= {"y": i % 2, "p": i // 2 % 2, "s": i * 7 % 40 / 40, "g": i // 3 % 2}
    try:
        public.look_at(eval(corpus.CALLS[number], scope), random.Random(number))
    except BaseException as error:
        return judged(f"corpus {corpus.CALLS[number][:60]}", error)
    return None


def _estimator(**attributes):
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression()
    vars(made).update(attributes)
    return made


def judged(name, error):
    """None for an error that is meant; a finding for every other one."""
    panic = isinstance(error, fa.errors.InternalError)
    if isinstance(error, fa.errors.FairAuditError) and not panic:
        return None
    if name.startswith("_native.") and not panic and isinstance(error, REFUSALS):
        return None
    if type(error) is TypeError and WRONG_CALL.search(str(error)):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "fairaudit_rs" in frame.filename]
    at = f"{Path(ours[-1].filename).stem}.{ours[-1].name}" if ours else "nowhere"
    text = re.sub(r"\d+", "#", str(error).split("\n")[0])[:70]
    lines = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[1:]]
    return {"what": f"{name}: {type(error).__name__} at {at}: {text}", "trace": " < ".join(lines)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--status", required=True)
    given = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    files.originals()
    limit = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    status = os.open(given.status, os.O_WRONLY | os.O_CREAT)
    # What libraries print is of no interest; findings go where the parent reads.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for number in range(given.first, given.first + given.count):
        os.pwrite(status, f"{number:020d}".encode(), 0)
        found = run_corpus(number) if given.seed == "corpus" else run(given.seed, number)
        if found is not None:
            out.write(json.dumps({"number": number, **found}) + "\n")
            out.flush()
    os.pwrite(status, b"done".ljust(20), 0)


def _address_space():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
