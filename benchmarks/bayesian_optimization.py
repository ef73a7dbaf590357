"""Bayesian optimization with qLogExpectedImprovement: function draws beside BoTorch's SingleTaskGP.

`python -m benchmarks.bayesian_optimization --function branin --rounds 10 --seeds 3` prints a JSON line for each
model and seed: how far the best value is from the optimum after each round. It needs the extra `botorch`.
"""

import argparse
import json
import time
import warnings

import numpy as np
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.test_functions import Branin, Hartmann
from gpytorch.mlls import ExactMarginalLogLikelihood

from bochner import DeepGPRegressor, Exact
from bochner.estimators.integrations.botorch import FunctionDraws

FUNCTIONS = {"branin": lambda: Branin(negate=True), "hartmann6": lambda: Hartmann(negate=True)}


def function_draws(X, y, n_functions):
    """Our model: one exact process with equal noise, as SingleTaskGP has it."""
    member = Exact(kernel="rbf", varying_noise=False, density=False)
    fitted = DeepGPRegressor(member, likelihood="gaussian", random_state=0)
    return FunctionDraws(fitted.fit(X.numpy(), y.numpy()[:, 0]), n_functions)


def single_task_gp(X, y, n_functions):
    model = SingleTaskGP(X, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


MODELS = {"bochner": function_draws, "SingleTaskGP": single_task_gp}


def regrets(problem, make, seed, n_rounds, *, n_start=None, n_functions=32, n_raw=64):
    """Distance of the best value from the optimum, after the first points and after each round."""
    torch.manual_seed(seed)
    d = problem.dim
    unit = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    low, high = problem.bounds.double()
    X = torch.rand(n_start or 2 * (d + 1), d, dtype=torch.double)
    y = problem(low + (high - low) * X)[:, None]
    found = [float(problem.optimal_value - y.max())]
    for _ in range(n_rounds):
        model = make(X, y, n_functions)
        improvement = qLogExpectedImprovement(model, best_f=y.max())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # line searches that end early
            new, _ = optimize_acqf(
                improvement,
                bounds=unit,
                q=1,
                num_restarts=3,
                raw_samples=n_raw,
                options={"maxiter": 20},
                retry_on_optimization_warning=False,
            )
        X = torch.cat([X, new])
        y = torch.cat([y, problem(low + (high - low) * new)[:, None]])
        found.append(float(problem.optimal_value - y.max()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", choices=FUNCTIONS, default="branin")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    for seed in range(asked.seeds):
        for name, make in MODELS.items():
            begun = time.monotonic()
            found = regrets(FUNCTIONS[asked.function](), make, seed, asked.rounds)
            record = {
                "function": asked.function,
                "model": name,
                "seed": seed,
                "regret": np.round(found, 4).tolist(),
                "seconds": round(time.monotonic() - begun, 1),
            }
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
