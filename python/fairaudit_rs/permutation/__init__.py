"""The permutation lens: compares a metric between groups (DiCiccio et al.).

The test, intervals, equivalence tests, power plans and calibration are all built on `Problem`.
"""
