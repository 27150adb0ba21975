"""The individual lens: are similar people treated differently? (Maity et al.)."""
