"""Calls of everything public with what careless and hostile callers pass; see `__main__`."""
