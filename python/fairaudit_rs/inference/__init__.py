"""Intervals, p-values and their adjustment: what needs no data."""
