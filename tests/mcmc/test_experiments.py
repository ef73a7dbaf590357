"""The experiments on posteriors and calibration."""

import json

import numpy as np
import pytest

from experiments import calibration, mcmc
from experiments.runner import run_experiment


@pytest.mark.slow
def test_mcmc_visits_both_signs_of_the_hidden_layer_and_q_picks_one(tmp_path):
    path = run_experiment("mcmc", mcmc.EXPERIMENT, tmp_path, quick=True)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    rising = {record["job"]["inference"]: record["result"] for record in records}
    assert 0.1 < rising["mcmc"]["share_of_rising_hidden"] < 0.9
    assert rising["variational"]["share_of_rising_hidden"] in (0.0, 1.0)
    assert rising["variational"]["output_std_inside"] > rising["mcmc"]["output_std_inside"]
    assert (tmp_path / "mcmc-quick.png").read_bytes().startswith(b"\x89PNG")


def test_exact_kernels_are_calibrated_on_simulated_functions_and_few_features_are_not():
    found = calibration.EXPERIMENT.run({"data": "simulated", "n_rows": 600, "seed": 0})
    assert found["coverage_90"]["exact"] == pytest.approx(0.9, abs=0.04)
    error = found["standardized_error"]
    assert error["exact"] == pytest.approx(1.0, abs=0.25)
    assert error["20"] > 2 * error["exact"]
    assert np.isclose(error["400"], error["exact"], rtol=0.3)
