"""Shared parts of readers: numbers, names, and the list of errors."""

import re

import numpy as np

from .words import METRICS

BY_WORDS = {metric.words: name for name, metric in METRICS.items()}
#: What a sentence may call a metric.
WORDS = (*BY_WORDS, *METRICS)
_SIZE = re.compile(r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)( %| points|)")


def number(text):
    return float(text.replace(",", ""))


def says(text, value):
    """Return whether a number with its unit is a value, rounded to the digits that it has."""
    found = _SIZE.fullmatch(text)
    if found is None or np.isnan(value):
        return False
    digits, unit = found.groups()
    value *= 100 if unit else 1
    mantissa, _, power = digits.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(power or 0)
    return abs(number(digits) - value) <= 0.5 * 10.0**-decimals * (1 + 1e-6) + 1e-12


def names_in(text):
    """The names of a list: a, b and c."""
    return [name for part in text.split(", ") for name in part.split(" and ")]


def read_bound(text):
    if text == "any size":
        return np.inf
    found = _SIZE.fullmatch(text)
    return np.nan if found is None else number(found[1]) / (100 if found[2] else 1)


class Lines:
    """The line that is read, and what is wrong so far."""

    def check(self, holds, message):
        if not holds:
            self.errors.append(f"{message}: {self.line}")
