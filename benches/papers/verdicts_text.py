"""What docs/verdicts.md says around the tables of `verdicts.py`."""

SETTINGS = """## What was audited

`python -m benches.papers.verdicts --write` (half a minute; `make papers` runs it, too)

{n_sets} public data sets with two ordinary models each, {n_models} models: logistic regression on
standardized columns and gradient boosting, both at the defaults of scikit-learn. At most 30,000
rows of a set, half of them to train and half to audit, by one fixed seed; decisions are scores of
.5 or more. Sex, race and ethnicity are no features of the models; age is one. Attributes are taken
one by one; pairs of them inform. Every policy has its own tolerances, nothing was tuned, and no
model was repaired.
"""

SHARES_TEXT = """## Shares of verdicts

Percentages of the audits, by policy. The last two columns say what is commonest among the
questions that made the verdict (audits of all that fail, or of all that are undecided).
"""

QUESTIONS_TEXT = """The same by binding question, a metric in the groups of one attribute:
"""

VERDICTS_TEXT = """## Every audit

`-` is inconclusive, *none* not measurable. Rows are those that were audited.
"""

OUTPUTS_TEXT = """## Ten outputs

As `print(audit)` has them, with long lines broken.
"""
