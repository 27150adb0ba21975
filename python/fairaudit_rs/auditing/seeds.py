"""Derives the seed of every test from the seed of the audit and the name of the test."""

from __future__ import annotations

import hashlib


def seed_of(base: int, *names: str) -> int:
    """Return the seed of a test; it does not depend on the other tests of the audit."""
    text = "\0".join((f"{base:d}", *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
