"""Predictions on local clusters of which a worker is killed, and in Spark."""

import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bochner.estimators.integrations.arrow import Predictor

pytestmark = pytest.mark.slow
N_PARTS = 6


@pytest.fixture
def expected(flats, files):
    return Predictor(files / "price.bochner", keep=["key"])(flats).to_pandas()


def die_once(path):
    """Kill this process, but never twice."""
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def assert_same(found, expected):
    found = found.sort_values("key").reset_index(drop=True)
    assert list(found) == list(expected)
    np.testing.assert_array_equal(found["key"], expected["key"])
    np.testing.assert_allclose(found["mean"], expected["mean"], rtol=1e-12)
    np.testing.assert_allclose(found["upper"], expected["upper"], rtol=1e-12)


def test_ray_goes_on_where_a_worker_was_killed(flats, files, expected, tmp_path):
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    flag = tmp_path / "killed"

    class Mortal:
        def __init__(self, path):
            self.predictor = Predictor(path, keep=["key"])

        def __call__(self, table):
            die_once(flag)
            return self.predictor(table)

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        rows = data.from_arrow(flats).repartition(N_PARTS)
        found = rows.map_batches(
            Mortal,
            fn_constructor_args=(str(files / "price.bochner"),),
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=2),
        )
        assert_same(found.to_pandas(), expected)
    finally:
        ray.shutdown()
    assert flag.exists()


def test_dask_goes_on_where_a_worker_was_killed(flats, files, expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    frames = pytest.importorskip("dask.dataframe")
    predictor, flag = Predictor(files / "price.bochner", keep=["key"]), str(tmp_path / "killed")

    def predict(part):
        die_once(flag)
        return predictor(pa.Table.from_pandas(part, preserve_index=False)).to_pandas()

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as two,
        distributed.Client(two),
    ):
        rows = frames.from_pandas(flats.to_pandas(), npartitions=N_PARTS)
        found = rows.map_partitions(predict, meta=expected.head(0)).compute()
    assert_same(found, expected)
    assert Path(flag).exists()


def test_spark_predicts_batch_by_batch(flats, files, expected):
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[2]").appName("bochner").getOrCreate()
    path = str(files / "price.bochner")

    def predict(batches):
        predictor = Predictor(path, keep=["key"])
        return map(predictor, batches)

    try:
        rows = spark.createDataFrame(flats.to_pandas()).repartition(N_PARTS)
        found = rows.mapInArrow(
            predict, "key long, mean double, std double, lower double, upper double"
        )
        assert_same(found.toPandas(), expected)
    finally:
        spark.stop()
