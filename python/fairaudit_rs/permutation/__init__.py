"""The permutation lens: comparing groups by a metric (DiCiccio et al.).

The test, intervals, equivalence, power and calibration share the problems of this package.
"""
