"""Text of docs/reproduction.md around the tables of `projection.py`."""

SETTINGS = """## Projection lens (Si et al.), Tables 1 to 3

`python -m benches.papers.projection --variants --write`

Si, Murthy, Blanchet, Nguyen, *Testing Group Fairness via Optimal Transport Projections* (ICML
2021), section 6: a naive support vector machine (SVM) and the fair one of Donini et al. (2018)
are trained on a part of three data sets; on the rest their fairness is tested at level .05.

The paper's section 6 gives the data sets, the 70 %-30 % split and 1,000 replications. Labels,
attributes and features are not in it. They are taken from public code that we read and did not
copy: the loaders that Taskesen et al. (*A Statistical Test for Probabilistic Fairness*, 2021,
authors in common) published for the same three data sets, and a public script that runs this very
experiment (same data, criteria, comparison with Welch's test and number of replications) with
functions of the same names. That this script is the authors' own is our inference.

| | Arrhythmia | COMPAS | Drug |
| --- | --- | --- | --- |
| rows | 452 | 5,278: ProPublica's filter, African-American and Caucasian | 1,885 |
| positive label | normal (class 1) | reoffended within two years | never used cannabis |
| group 1, group 0 | female, male | Caucasian, African-American | White, all others |
| features | the first 12 besides sex | age class, sex, number of priors, degree of charge | \
the 11 traits besides ethnicity |

- The sensitive attribute is not among the features. Columns other than indicators are standardized
  and missing values (31, Arrhythmia) filled with the median, both from the training part. The
  public loaders standardize only the number of priors and fill in otherwise; without
  standardizing, the machine for Arrhythmia takes millions of iterations at C = 1.
- Both machines are linear with hinge loss. C is one of 0.01, 0.1, 1 (the grid in the public code
  of Donini et al.) by the accuracy in 5-fold stratified cross-validation on the training part; of
  equals the smallest.
- The fair machine: with u the difference between the groups' means of the positive training rows,
  the features are projected onto the complement of u, so that u.w = 0. Donini et al. reach the
  same constraint by substituting one feature, which penalizes w a little differently.
- *70-30 split* is what the paper says: a random split. *Resampled* is what the function of Taskesen
  et al. does that the public script calls by name: within each group and label, 70 % as many rows
  as there are drawn **with** replacement for training; the rows never drawn, about half, are the
  test part. Neither column replaces the other: the first is the text, the second the code.
- A machine that decides alike for all test rows cannot be rejected (the public code does the same).
- Split k uses the seed (2021, k).

What stays uncertain: whether the published runs standardized Arrhythmia and Drug, how folds were
made, and the bandwidth behind the published tables.
"""

REJECTIONS_TEXT = """### Rejections

Percentage of {n_splits} splits rejected ± its standard error; in brackets the percentage in which
the test is inconclusive, which is not counted as rejected. Published: 1,000 splits, error up to
1.6. The error is that of drawing splits: all splits share one data set.

- *limit law* is the paper's test: the number to compare with the published one.
- *with our refusals* is what `projection_test` says by default. Where the assumptions of the limit
  law are visibly not met it gives no p-value: too few positive or negative decisions in a group,
  or margins without a density at the boundary (the features of COMPAS are categories and a
  count). A rejection stands where the law errs on the safe side.
- *by permutation* is the same statistic with `calibration="permutation"`, which has no such
  assumptions: what we would report where the limit law is inconclusive.
- *Welch* comes twice: with Student's law and its degrees of freedom, as the test is defined, and
  with the normal quantile, as in the public script.
"""

CLASSIFIERS_TEXT = """### The classifiers

Means over the splits, on the test part. The gap is the true positive rate of group 1 minus that of
group 0; *constant* is the percentage of splits in which all rows get the same decision.
"""

VARIANTS_TEXT = """### Other readings of the data

The choices above against others, {n_splits} splits each (standard error up to 7.9): percentage
rejected for the naive / for the fair machine, inconclusive ones in brackets. They
show how much the tables depend on what the paper leaves open.
"""
