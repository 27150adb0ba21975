"""Calls that failed once and always run first, and calls that are known to fail still.

A call is a line of Python with `np`, `pl`, `pd`, `fa`, `MagicMock`, the columns `y`, `p`, `s`, `g`
of 40 rows, and `estimator`, which makes a logistic regression of attributes. `KNOWN` says by
patterns of what a run reports which failures are not mended yet: the run lists them, and the list
must shrink.
"""

BY = "y, p, sensitive_features=g, n_resamples=9, rng=1"
CALLS = (
    # chains of operators that were evaluated by recursion
    "fa.metrics.count_metric('x', 'tp' + '+tp' * 30_000)",
    "fa.metrics.count_metric('x', '-' * 30_000 + 'tp')",
    "fa.metrics.count_metric('x', '(' * 30_000 + 'tp' + ')' * 30_000)",
    # a mock has every attribute, an address among them
    "fa.permutation_test(y, y_score=s, sensitive_features=g, rng=1, n_resamples=9, metric="
    "fa.metrics.callable_metric('x', MagicMock(address=1, return_value=.5), n_samples=2, "
    "columns=('y_true', 'y_score')))",
    "fa.metrics.callable_metric('x', type('X', (), {'address': 1})())",
    "fa.individual_test(MagicMock(), np.c_[s, s], y, "
    "fair_metric=fa.FairMetric.directions([[1, 0]]))",
    # columns that polars has and NumPy has not
    f"fa.permutation_test({BY}, metric='tpr', strata=pl.Series(y.tolist(), dtype=pl.Int128))",
    "fa.tabulate(y_pred=p, sensitive_features=pl.Series(y.tolist(), dtype=pl.Int128))",
    "fa.tabulate(y_pred=pl.Series(y.tolist(), dtype=pl.Int128), sensitive_features=g)",
    "fa.tabulate(y_pred=p, sensitive_features=pl.Series(s.tolist(), dtype=pl.Float16))",
    "fa.tabulate(y_pred=p, y_score=pl.Series(s.tolist(), dtype=pl.Float16), sensitive_features=g)",
    "fa.tabulate(pl.DataFrame({'p': p, 'g': pl.Series(s, dtype=pl.Float16)}), y_pred='p', "
    "sensitive_features='g')",
    "fa.tabulate(pl.DataFrame({'p': p, 'g': pl.Series(y, dtype=pl.Int128)}), y_pred='p', "
    "sensitive_features='g')",
    # halves of surrogates
    "fa.tabulate(y_pred=p, sensitive_features=['\\ud800', 'b'] * 20)",
    "fa.tabulate(y_pred=p, sensitive_features={'\\ud800': g}).to_frame()",
    "fa.tabulate('\\ud800.csv', y_pred='p', sensitive_features='g')",
    "fa.metrics.count_metric('\\ud800', 'tp')",
    "fa.metrics.count_metric('x', '\\ud800')",
    # whole numbers that no float holds
    "fa.tabulate(y_pred=p, sensitive_features=[10**400, 1] * 20)",
    "fa.tabulate(y_pred=p, y_score=[10**400, 1] * 20, sensitive_features=g)",
    f"fa.permutation_test({BY}, metric='tpr', sample_weight=[10**400, 1] * 20)",
    "fa.sample_size(10**400, metric='tpr', value=.5)",
    "fa.sample_size(5e-324, metric='tpr', value=.5)",
    "fa.minimum_detectable_gap(metric='tpr', value=.5, group_sizes=[10**400, 10**400])",
    "fa.minimum_detectable_gap(metric='tpr', value=5e-324, group_sizes=[10, 10])",
    "fa.adjust_pvalues([10**400])",
    # scores and tolerances at the ends of what floats hold
    "fa.projection_test(y, y_score=s, sensitive_features=g, epsilon=1e153)",
    "fa.projection_test(y, y_score=np.where(y, 1e308, -1e308), sensitive_features=g)",
    f"fa.permutation_test({BY}, metric='tpr', sample_weight=np.full(40, 1e76))",
    f"fa.permutation_test({BY}, metric='tpr', sample_weight=np.full(40, 1e-320))",
    "fa.FairMetric.mahalanobis([[1e-310]])",
    "fa.equivalence_test(y, p, sensitive_features=g, metric='tpr', margin=1e-308)",
    "fa.intervals(y, p, sensitive_features=g, metric='tpr', confidence_level=1 - 2**-53)",
    "fa.fit_tail(np.full(400, 1e308))",
    "fa.fit_tail(s.repeat(10) * 1e-320)",
    # a bool view of bytes that are neither 0 nor 1
    "fa.permutation_test(np.full(40, 3, np.uint8).view(bool), p, sensitive_features=g, "
    "metric='tpr', n_resamples=9)",
    "fa.permutation_test(y, y_score=s, sensitive_features=g, metric='auc', n_threads=10**6)",
    "fa.tabulate(y_pred=p, sensitive_features=g).write_parquet('/nowhere/x.parquet')",
    "fa.tabulate(y_pred=p, sensitive_features=g).write_parquet(3)",
    "fa.Cells.read_parquet(3)",
    # what runs of this harness found
    "fa.metrics.callable_metric('x', len, description=pd.NA)",
    "fa.metrics.joint_metric('x', ['tpr', 'fpr'], description=np.zeros(2))",
    "fa.metrics.ratio_metric('x', 'y_score', columns=3)",
    "fa.metrics.ratio_metric('x', 'y_score', columns=np.array(0.5))",
    "fa.metrics.count_metric('x', 'tp', conditions_on=np.zeros(2))",
    "fa.permutation_test(y, p, sensitive_features=g, metric='tpr', reference=pd.NA)",
    "fa.permutation_test(y, p, sensitive_features=g, metric='tpr', groups=[np.zeros(2), 1])",
    "fa.intervals(y, p, sensitive_features=g, metric='tpr', groups=np.array(0.5))",
    "fa.permutation_test(y, p, y_score=s, sensitive_features=g, metric="
    "fa.metrics.ratio_metric('x', lambda columns: ['b'] * 40))",
    "fa.Cells.from_frame(pl.DataFrame({'g': g, 'count': g}), sensitive_features='g', y_true=y)",
    "fa.Cells.from_frame(pl.DataFrame({'group:g': ['a'], 'y_true': [1], 'count': [3], "
    "'score_edges': [None], 'score_bin': [0], 'score_sum': [0]}))",
    "fa.calibrate(y, p, sensitive_features=g, metric='tpr', gaps=[10**400], n_audits=10)",
    "fa.equivalence_test(y, p, sensitive_features=g, metric='tpr', margin=10**400)",
    "fa.FairMetric.matrix([[1, 2], [3]])",
    "fa.FairMetric.directions([[1, 2], [3]])",
    "fa.LinearModel([1.0, 2.0]).predict_proba([[10**400, 1]])",
    "fa.LinearModel([1.0, 2.0]).predict_proba(pl.Series([1, 2], dtype=pl.Int128))",
    "fa.fit_tail(pl.Series(y, dtype=pl.Int128))",
    "fa.FairMetric.subspace(np.c_[s, s], y, fit_on=[[1], [1, 2]])",
    "fa.permutation_test('y', 'p', data=pd.Series(y), sensitive_features='g', metric='tpr')",
    "fa.ecd_search(dict, np.c_[y, s], y, attribute=0, space={'w': (.1, 2.)}, flip=object)",
    "fa.Cells.read_parquet('/dev/null')",
    # found by a million calls
    "fa.adjust_pvalues(pl.Series(y.tolist(), dtype=pl.Int128))",
    "fa.fit_tail(s.repeat(10), method='gev', block_size=20, resolution=np.array([1, 2]))",
    "fa.LinearModel([1.0, -1.0]).distance(np.c_[s, s], immovable=np.array(.5))",
    "fa.Cells.from_frame(pl.DataFrame({'p': p, 'g': g, 'count': y + 1}), sensitive_features='g', "
    "y_true='', y_pred='p')",
    "fa.fit_tail(s.repeat(10), method='gev', blocks=[[], [1], [1, 2]] * 133 + [[]])",
    "fa.metrics.correlation_metric('x', lambda rows: rows['y_true'], method=np.array([1, 2]))",
    "fa.metrics.ratio_metric('x', lambda rows: rows['y_true'], columns=[np.array([1, 2])])",
    f"fa.permutation_test({BY}, metric=fa.metrics.count_metric('x', 'tn - tn'))",
    "fa.minimum_detectable_gap(metric='ppv', value=np.array([.5]), group_sizes=[30, 40], "
    "share=.1, goal='equivalence')",
    "fa.sample_size(1e-6, metric='fnr', value=np.array([.5]))",
    "fa.sample_size(.1, metric='tpr', value=.5, group_sizes=np.array(.5))",
    "fa.sample_size(.1, metric='tpr', value=.5, share=np.array(.5))",
    "fa.generator_quality(pl.Series([{'a': 1}, {'a': 2}] * 40), {'a': y}, rng=1)",
    "fa.permutation_test(y, y_score=[10**400, 1] * 20, sensitive_features=g, metric='auc', "
    "engine='cells')",
    "fa.FairMetric.subspace(np.c_[s, p], [[1, {'a': 1}, []], 'auto', 3])",
    "fa.sample_size(.1, metric='tpr', value=.5, group_sizes={'a': 9, 'b': 10**400})",
    "fa.calibrate(y, p, sensitive_features=g, metric='tpr', gaps=np.array(.5), n_audits=10)",
    "fa.sample_size(.1, metric='tpr', value=.5).curve(n_rows=np.array(5))",
    "fa.permutation_test(data='a' * 3_000, y_pred='p', sensitive_features='g', metric='tpr')",
    "fa.audit(y, p, sensitive_features=g, policy='a' * 3_000)",
    "fa.Cells.read_parquet('a' * 3_000)",
    "fa.tabulate(y_pred=p, sensitive_features=g).write_parquet('a' * 3_000)",
    "fa.MulticlassModel.linear(np.eye(3), classes=np.array(.5))",
    "fa.LinearModel([1., 2.], feature_names=np.array('a'))",
    "fa.Policy(name='own', criteria=np.array(.5))",
    "fa.Policy(name='own', criteria=[], rule=slice(None), rule_options={'sex': 'sex'})",
    "fa.from_dict({**fa.sample_size(.1, metric='tpr', value=.5).to_dict(), 'gap': 10**400})",
    "fa.SmoothedBootstrap(bandwidth=pd.NA)",
    "fa.audit(y, p, sensitive_features=g, lenses=np.array([1, 2]))",
    "fa.audit(y, p, sensitive_features=g, evidence=np.array([1, 2]))",
    "fa.audit(y, p, sensitive_features=g, lenses=pd.NA, policy=pd.NA)",
    # notions whose function answers with anything, estimators that nobody fitted
    "fa.projection_test(y, y_score=s, sensitive_features=g, "
    "notion=fa.Notion(lambda U, mean: [10**400] * 40, np.c_[s]))",
    "fa.projection_test(y, y_score=s, sensitive_features=g, "
    "notion=fa.Notion(np.c_[s], np.c_[s], derivative=[10**400]))",
    "fa.models.from_sklearn(estimator(coef_=['a' * 3_000], intercept_=[0.], classes_=[0, 1]))",
    "fa.models.adapt(estimator(coef_=[1., 2.], intercept_=[], classes_=[0, 1]))",
    # a quantile that took a minute to find
    "fa._native.beta_quantile(float('inf'), 3., .5)",
    "fa._native.beta_quantile(3., 1e308, .5)",
    "fa.metrics.register(3)",
)

#: Pattern of what is reported (`fnmatch`), and what it waits for.
KNOWN: dict[str, str] = {}
