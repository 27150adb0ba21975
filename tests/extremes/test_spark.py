"""extreme_test in a function that Spark runs on its workers."""

import os
import sys

import numpy as np
import pandas as pd

import fairaudit_rs as fa


def scored(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    score = 0.4 * rng.random(n)
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    gain = np.where(sex == "f", 0.5, 0.3) * rng.beta(2, 4, n)
    region = np.where(np.arange(n) % 2, "north", "south")
    return pd.DataFrame({"region": region, "sex": sex, "s": score, "flipped": score + gain})


def audit(rows):
    result = fa.extreme_test(
        data=rows,
        y_score="s",
        counterfactual_score="flipped",
        sensitive_features="sex",
        horizon=500,
        rng=1,
        n_threads=1,
    )
    low, high = result.confidence_interval
    return pd.DataFrame(
        {
            "region": [rows["region"].iloc[0]],
            "ecd": [result.ecd],
            "low": [low],
            "high": [high],
            "pvalue": [result.pvalue],
        }
    )


def test_workers_say_what_the_driver_says(monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    path = os.pathsep.join(part for part in sys.path if part)
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    try:
        rows = scored()
        frame = spark.createDataFrame(rows)
        schema = "region string, ecd double, low double, high double, pvalue double"
        found = frame.groupBy("region").applyInPandas(audit, schema).toPandas()
    finally:
        spark.stop()
    found = found.sort_values("region").reset_index(drop=True)
    ours = pd.concat([audit(part) for _, part in rows.groupby("region")], ignore_index=True)
    pd.testing.assert_frame_equal(found, ours, check_exact=True)
