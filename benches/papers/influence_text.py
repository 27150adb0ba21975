"""Text of docs/reproduction.md around the tables of `influence.py`."""

SETTINGS = """## Influence lens (Wang, Ustun and Calmon), Figures 2 and 3, Table 2

`python -m benches.papers.influence --write`

Wang, Ustun, Calmon, *Repairing without Retraining: Avoiding Disparate Impact with
Counterfactual Distributions* (ICML 2019). The data are the authors' binary version of Adult
(32,561 rows, 16 features, women the target group): 30 % train a logistic regression, its scores
are audited on the other 70 %. COMPAS (ProPublica's filter, African-Americans against
Caucasians, seven binary features) is not in the paper.
"""

ADULT_TEXT = """### Adult: the figures of section 5

Expected rates: a score is taken as the chance of a positive decision.
"""

NOT_FROM_THE_DATA = """What the paper prints and what its data do not give:

- The smallest numbers of persons of whom all the percentages of Table 2 can be are {minority}
  women and {majority} men: 1 % of the data, not the 4,558 rows that the text names. In the data
  {married:.1f} % of the women are married, not 16.7, and {immigrant:.1f} % are immigrants, not 8.3.
- CAL of 13.1 % is four times what a logistic regression has on these rows. The FPR gap of 16.8 %
  is that of decisions at a threshold near 0.35 (table), which the text does not name; at 0.5 it is
  half of that. DA is printed as ".845 %": in nats it is near what main effects give for the
  features, and a lower bound.
- An AUC of 0.854 for P(Y = 1 | X, women): here it is near .89.
"""

FIGURE_2_TEXT = """### Figure 2: the toy example

The paper's toy (three binary features), FPR, step 0.1: the gap in the population, exact, and on
12,500 rows a part (mean of ten repetitions), where psi is fitted on one part and the gap
measured on another. The paper's curve meets 0 "in around 20 iterations"; in the population step
20 goes beyond by .004.
"""

FIGURE_3_TEXT = """### Figure 3: proxy scores on Adult, FPR

The paper shows bars without numbers or errors. Here the marginal score, the score with all else
held fixed (Definition 5, doubly robust; `partialled` where women with the value and without do
not overlap) and the paper's plug-in, with 95 % intervals that hold together. A rank is a range
where the order is not shown. Positive scores go with a larger false positive rate.
"""

TABLE_2_TEXT = """### Table 2: women before and after the descent, FPR, in percent

The published columns beside ours (report part, 95 % intervals of the shares).
"""

REPAIR_TEXT = """### Repair, which the paper proposes and does not measure

{n_splits} random splits: 30 % train the model, 35 % fit the repair, 35 % measure it; rows keep
their own labels. Gaps are of expected rates, target less others; *around 0* counts the splits
in which the 95 % interval of the gap after the repair contains 0. *Cost* is the features that
change per row. Transport onto the counterfactual distribution does not close the gaps of
metrics that look at labels: a row that is moved keeps its own label, so the moved rows are not
a sample of the counterfactual.
"""

EFFECTS_TEXT = """What the repairs do to accuracy and to the gaps of the metrics that they were not
asked for (means over the splits):
"""
