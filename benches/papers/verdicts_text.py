"""Text of docs/verdicts.md around the tables of `verdicts.py`."""

SETTINGS = """## What was audited

`python -m benches.papers.verdicts --write` (half a minute; `make papers` runs it, too)

The {n_sets} public data sets that the tables of [reproduction.md](reproduction.md) rest on, with
two ordinary models each, {n_models} models: logistic regression on standardized columns (as many
iterations as it needs) and gradient boosting, otherwise at the defaults of scikit-learn. At most
30,000 rows of a set, half of them to train and half to audit, by one fixed seed; decisions are
scores of 0.5 or more. Sex, race and ethnicity are no features of the models, but what goes with
them is (husband and wife in adult); age is one in all sets but bank. The favourable label is the
one that the models predict as 1: an income above 50,000 dollars, no arrest, no default, a good
credit, a normal heart, no disease, cannabis never used, much care (meps), a deposit, a passed
exam. `punitive` takes the other decision as the punishment. Attributes are taken one by one;
pairs of them inform. Nothing was tuned, and no model was repaired.
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
