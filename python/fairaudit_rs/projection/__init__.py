"""The projection lens: test fairness by the distance to the nearest fair data (Si et al. 2021)."""
