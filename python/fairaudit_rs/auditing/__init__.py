"""The audit: policies, presets of rules, and one verdict over all questions."""
