"""The problem of a public call, for tests that look inside of it."""

from fairaudit_rs import metrics
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.permutation.question import named_columns, prepare_question, split_strata

OF_TABLE = {
    "data",
    "y_true",
    "y_pred",
    "y_score",
    "sensitive_features",
    "clusters",
    "sample_weight",
}


def posed(metric, seed=0, strata="auto", **given):
    """The problem that a metric poses to the data of a public call."""
    chosen = metrics.get(metric)
    conditional, own = split_strata(strata)
    columns = {name: value for name, value in given.items() if name in OF_TABLE}
    options = {name: value for name, value in given.items() if name not in OF_TABLE}
    table = AuditTable.make(**columns, strata=own, extra=named_columns(chosen))
    return prepare_question(table, chosen, conditional=conditional, seed=seed, **options).problem
