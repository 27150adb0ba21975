"""The projection lens: how far is the data from the nearest fair distribution? (Si et al.)."""
