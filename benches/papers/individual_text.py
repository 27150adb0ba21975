"""Text of docs/reproduction.md around the tables of `individual.py`."""

SETTINGS = """## Individual lens (Maity et al.), Tables 1, 3 and 4

`python -m benches.papers.individual --variants --write`

Maity, Xue, Yurochkin, Sun, *Statistical Inference for Individual Fairness* (ICLR 2021), section
4.2 and appendices F and G: a plain network (Baseline), one that sees the rows without the
sensitive directions (Project), a group-fair mixture (Reductions) and an individually fair network
(SenSR) are trained on 80 % of the rows, ten times; the rest is audited. All numbers of ours are
from the public call `fa.individual_test`: tolerated value 1.25, level 0.05, double precision.

What the paper leaves open is taken from the authors' public repository, which we read and did not
copy.

- **Adult**: 45,222 rows without missing values, 39 features, sex and race not among them.
  **COMPAS**: 5,278 rows (ProPublica's filter, African-American and Caucasian), 7 features, sex and
  race the first two. Numbers are standardized by the training part.
- **Sensitive subspace**: the coefficients of the logistic regressions of sex and race on the
  features that are not protected, from the *audited* rows; COMPAS adds the two protected features
  themselves. Ours is `FairMetric.subspace`, fitted to convergence with a ridge penalty of C = 1.
  Project and SenSR learn their own from the *training* rows: to convergence as well, but SenSR on
  Adult by liblinear, as published.
- **Baseline and Project**: one hidden layer of 50 units, 8,000 steps of Adam at 1e-4, batches of
  125 rows of each label.
- **Reductions**: `ExponentiatedGradient` of fairlearn with equalized odds over the four groups of
  sex and race, over logistic regressions (liblinear). The result is a randomized mixture. As in
  the published code, the *mean probability* of the mixture is what decides (at 1/2) and what is
  attacked. For Adult the regressions weight labels by their rarity, counted without fairlearn's
  weights, as scikit-learn did then; for COMPAS the published code does not weight. The allowed
  violation is 0.03 for Adult; for COMPAS the paper prints 0.16, the last stored code .05. We take
  0.05, which is the one that gives the published AOD: with 0.16 ours are 0.112 and 0.149 (T_n
  1.704).
- **SenSR**: one hidden layer of 100 units, trained on rows that 10 steps of Adam move in the
  subspace (length 10 for Adult, 0.1 for COMPAS) and a few short ones out of it (mean squared fair
  distance 0.001). The published code takes 20,000 training steps at 1e-5 with 50 short moves
  (Adult), 16,000 at 1e-4 with 8 (COMPAS), batches of 1,000: hours for ten repetitions. Here 10,000
  at 2e-5 and 8,000 at 2e-4, batches of 250, with 5 and 4 moves that reach as far. On one split of
  Adult, 20,000 steps at 1e-5 with batches of 1,000 give a balanced accuracy of 0.778 and a T_n of
  1.026, where the shorter training gives 0.757 and 1.031 (`--published-sensr` runs it in full).
- AOD, the average odds difference, is group 0 minus group 1 as in the published tables (women
  minus men for Adult, men minus women for COMPAS, others minus white for race).
- Split k uses the seed (2021, k). ± is the standard deviation over splits.

T_n is the mean over the splits of the lower bound of the mean loss ratio; T̃_n that of the ratio of
error rates. *rejected* is the share of splits whose bound exceeds 1.25 by the normal law, as in
the paper; next to it that of `interval="bootstrap-t"`, which we recommend where ratios are skewed.
"""

ADULT_TEXT = """### Adult, {n_repetitions} splits

**Two published rows are mislabelled** in balanced accuracy, AOD and T_n. The published summary
sorts its records by name (`baseline`, `baseline_bal`, `reduction`, `sensr`) and then calls them
Baseline, Project, Reduction and SenSR. `baseline_bal` is the plain network: seed by seed its T_n
go with those that later runs record as `baseline`. So

- the row published as **Project** is the plain network: compare it with our **Baseline**;
- the row published as **Baseline** goes neither with the later runs of `baseline` nor with those
  of `project` (for one seed 8.10 against 1.33 and 1.06). What was audited there is not known; it
  is no target. The T_n of Project was not published;
- the columns of the error rates come from another run with right names: all four are targets.

**Not all published T_n are at T = 500.** The stored scripts of that version take 500 steps for
Reductions and 200 for the others, though the paper says 500 for all; the error rates come from
1,000 steps of 0.005 for all, which is the same time as 500 of 0.01. Our rows with 200 steps are
there to compare: the published "Project" belongs beside our Baseline, and SenSR beside SenSR, with
200 steps; Reductions beside Reductions with 500.

Read so, the published numbers are met: T_n 1.75 against 1.66 for the plain network (both rejected
in 9 of 10 splits), 5.62 against 5.71 for Reductions, 1.02 against 1.02 for SenSR; T̃_n within the
spread for all four. At equal T = 500 the order of the means is SenSR < Project < Baseline <
Reductions; SenSR is never rejected, Baseline and Reductions always, Project in half of the splits.
Split by split, Project is always below Baseline, SenSR below Project in 9 and Baseline below
Reductions in 7 of 10. Our SenSR has a lower balanced accuracy and smaller AOD than the published
one: it is trained for a shorter time (see above).

What moves T_n most is the fit of the metric (*Other readings*): for Baseline by a third between
two solvers of one regression. Up to 42 of 9,045 rows of the networks have a loss below the floor
of 1e-12, which hardly matters.

The normal and the bootstrap-t bound reject the same splits of both data sets; they differ by less
than 1 %.
"""

COMPAS_TEXT = """### COMPAS, {n_repetitions} splits

The rows of Table 4 are Baseline, Project, Reductions, SenSR; we found no wrong label. The published
run takes 200 steps of 0.005 with lambda 100, so that 2 lambda eta = 1, the longest step that does
not swing. These are other settings than those of Adult, and the paper prints none for COMPAS. We
run both.

Baseline and Reductions agree with the paper, and the order of the four is the published one. The
T_n of Project and SenSR are higher and spread more. They measure how far the subspace of the
audited rows (1,056) is from that of the training rows: with the subspace of the training rows for
the audit both are about 1.01, and the solver of either fit moves them (below). Two things differ:

- The fits. scikit-learn now scales the tolerance of lbfgs, so that at its defaults it stops early
  on the training rows; a Project trained on that fit has a T_n of 2.03 ± 0.74 over the ten splits.
- The splits. The stored list of the ten seeds was edited in the published notebook, and a seed for
  which that notebook shows a rejected SenSR (T_n 1.356) is not in the list it ends with. Ours were
  fixed beforehand and none was exchanged.
"""

VARIANTS_TEXT = """### Other readings

Mean T_n of the first {n_repetitions} splits with the same classifiers, by the flow that is compared
with the published one (Adult: lambda 50, 500 steps of 0.01; COMPAS: lambda 100, 200 of 0.005).
"""
