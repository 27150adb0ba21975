"""A seed for every test, from the seed of the audit and what the test is called."""

from __future__ import annotations

import hashlib


def seed_of(base: int, *names: str) -> int:
    """Return the seed of a test: adding a metric or an attribute changes that of no other one."""
    text = "\0".join((f"{base:d}", *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
