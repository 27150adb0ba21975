"""The influence lens: which features stand in for the group? (Wang, Ustun and Calmon)."""
