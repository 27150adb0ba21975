"""The extremes lens: how bad does it get? The tail of counterfactual discrimination."""
