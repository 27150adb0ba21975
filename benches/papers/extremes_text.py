"""Text of docs/reproduction.md around the tables of `extremes.py`."""

SETTINGS = """## Extremes lens (Monjezi et al.), Tables III to VII

`python -m benches.papers.extremes --write`

Monjezi, Trivedi, Kreinovich, Tizpaz-Niari, *Fairness Testing through Extreme Value Theory*
(ICSE 2025). Nine data sets, ten protected attributes, four models: {n_cells} tails. The attribute
is the first feature; categories are indicators, numbers are standardized. Half of the rows train
the model, the other half is audited, in {n_seeds} random splits. Models are at the defaults of
scikit-learn: logistic regression, a support vector machine (of 2,000 rows, its scores made
probabilities by Platt's method), a forest of 100 trees, a network of five hidden layers
(64, 32, 16, 8, 4; 20 passes over the rows or 1,500 steps, whichever is more).

What the paper leaves open, and what was chosen: Bank is split at 25 years, as in AI Fairness 360,
with the young privileged (Table II); rows with missing values are left out; Census by race is
White and Black alone. The paper's test of a tail runs over k = 10 ... 50, and the normal error of
a shape is (1 + shape) / sqrt(50). Groups that fail the test get no generated rows here. The
paper's tables are compared by the counts that its text states.
"""

QUALITY_TEXT = """### Table III: generated rows

A generator for each group learns a third of the rows ({most:,} at most) and writes as many; both
groups together are compared with the second third, and F1 is that of decisions about the last.
*Columns* is the mean of exp(-KL) over columns (1: equal shares), *Fréchet* the squared distance of
normal laws (0: equal), *detection* is 1 where a logistic regression cannot tell generated rows
from real ones and 0 where it always can, *F1 loss* what a logistic regression loses that learns
from generated rows. *Other real rows* are those that the generators learn, in their place;
*independent* draws each column by itself. `tvae` makes {n_epochs} passes. CTGAN is not run: it is
a package that users install themselves.
"""

TYPES_TEXT = """### Table IV: types of tails

Counts of {n_cells} tails, means over the splits; *feasible* are types I and III. "No type" are
tails without a fit: fewer than 100 rows, or scores with so many ties off any grid that no
likelihood is right for them (most forests, and duplicate rows of features with few values).
"""

TYPES_NOTES = """The paper's test of whether there are enough rows, the coefficient of variation
of the k largest values themselves, passes {raw:.0f} of {n_cells} tails; that of their excesses,
from which it is derived, {residual:.0f}. Of the {third:.0f} tails that are type III by the paper's
rule, {moved:.0f} are not with the calibrated interval of rows that the model has not seen:
{unknown:.0f} have no fit, the shape of the others is not shown to be below 0.
"""

GRID_TEXT = """### Table IV: the grid

The first split, audited half. All figures are those of the unprivileged less the privileged group:
ACD of all rows, CVaR of the worst 5 %, ECD with its 95 % interval at the horizon, which is 1,000
rows where tails allow that, else the farthest one that is measured. Types (unprivileged,
privileged) are those of our default, a known end of 1.
"""

GRID_NOTES = """Over all splits {measured} of {total} cells have an ECD. Its interval is on one side
of 0 in {shown}: above it, so that flips help the worst case of the unprivileged group more, in
{above}, below it in {below}. In {unlike} of them ACD and ECD have opposite signs.
"""

MITIGATION_TEXT = """### Tables V to VII: mitigation

ECD of the audited half after mitigation, with its 95 % interval, first split; data sets with
groups of at least {fewest} rows. *Exponentiated gradient* is fairlearn's (equalized odds); its
score is the mean probability of its mixture. *Minimax* is a short version of Diana et al. (2021),
*reweighing* of Kamiran and Calders (2012), *after Fair-SMOTE* and *after MAAT* keep the main step
of these papers. Stealth is left out. `ecd_search` tries {lr} settings of the regression (among
them an L1 penalty) and {net} of the network, with a floor of accuracy 0.01 below the most accurate
one; its model is fitted on 60 % of the training half, on whose other parts the young of Bank are
too few. "0, ignored" is a model that does not use the attribute; "-" is not measurable.
"""

SUMMARY_TEXT = """Means over data sets and {n_seeds} splits: accuracy less that before, |AOD|
(average odds difference), |ACD| and |ECD| of the cells that are measurable before and after.
*Smaller* counts cells with a smaller |ECD| than before; *shown* those of them whose two intervals
do not overlap; *larger, shown* the opposite. The paper says that mitigation of the average often
makes the tail less fair, and its own search never: here the four of the average make it larger in
{average} cells ({average_shown} shown), minimax in {minimax} ({minimax_shown}), the search in
{search} ({search_shown}).
"""

TEN_GROUPS = """### Ten groups in one call

Adult by race and sex, {rows:,} audited rows in {groups} groups, a network, nine flips of every
row: one `extreme_test` takes {seconds:.1f} seconds (two cores, other work beside it), scores
included. At a horizon of 500 rows {measured} of {pairs} pairs are measurable (the smallest group
has {fewest} rows). The largest difference is {ecd:.3f} ({low:.3f} to {high:.3f}, for all pairs
together): {first} less {second}; the smallest adjusted p-value of a pair is {pvalue:.1g}.
"""
