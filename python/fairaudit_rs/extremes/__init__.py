"""The extremes lens: tests how large counterfactual discrimination gets in the worst cases."""
