"""Random settings, as words of the command line and as an estimator; both from the same draws."""

import dataclasses
import random
from typing import Any

from bochner import (
    Constant,
    Deep,
    DeepGPClassifier,
    DeepGPRegressor,
    Exact,
    Landmarks,
    Linear,
)

_KINDS = {
    "constant": Constant, "linear": Linear, "exact": Exact, "landmarks": Landmarks, "deep": Deep,
}  # fmt: skip
_MEMBERS = [
    ["constant"], ["linear"], ["exact"], ["linear", "constant"], ["landmarks"], ["deep"], ["deep"],
    ["deep", "linear"], ["exact", "linear"],
]  # fmt: skip


@dataclasses.dataclass
class RandomSettings:
    """Which members, with which settings of the deep one and of the estimator."""

    members: list[str]
    deep: dict[str, Any]
    seed: int
    estimator: dict[str, Any]

    def flags(self) -> list[str]:
        """Give words for `bochner fit`."""
        words = ["--members", ",".join(self.members), "--seed", str(self.seed)]
        for name, value in (self.deep | self.estimator).items():
            flag = "--" + name.replace("_", "-")
            if isinstance(value, bool):
                words.append(flag if value else flag.replace("--", "--no-", 1))
            else:
                listed = value if isinstance(value, tuple) else (value,)
                words += [flag, ",".join(map(str, listed))]
        return words

    def made(self, task: str):
        """Make the estimator."""
        made = [
            (name, _KINDS[name](**(self.deep if name == "deep" else {}))) for name in self.members
        ]
        kind = DeepGPClassifier if task == "classification" else DeepGPRegressor
        members = made[0][1] if len(made) == 1 else made
        return kind(members, random_state=self.seed, **self.estimator)


def random_settings(r: random.Random, task: str) -> RandomSettings:
    """Draw settings that suit each other."""
    members, estimator = r.choice(_MEMBERS), {}
    deep = random_deep(r) if "deep" in members else {}
    alone = members == ["deep"]
    if alone and task == "regression" and r.random() < 0.3:
        estimator["likelihood"] = r.choice(["heteroscedastic", "student-t"])
        deep.pop("objective", None)
    if task == "classification":
        deep.pop("objective", None)
        if r.random() < 0.3:
            estimator["class_weight"] = "balanced"
    return RandomSettings(members, deep, r.randrange(1000), estimator)


def random_deep(r: random.Random) -> dict[str, Any]:
    """Draw settings of a small deep model; of most of them none, so that the preset decides."""
    layers = r.choice([1, 1, 2, 2, 3])
    deep = {
        "n_layers": layers,
        "max_steps": r.choice([1, 20, 60]),
        "width": 2,
        "n_random_features": r.choice([4, 10]),
        "n_mc_predict": 10,
    }
    for name, values in _DEEP.items():
        if r.random() < 0.15:
            deep[name] = r.choice(values)
    if deep.get("objective") == "evidence":
        # Which takes all rows at once, and has its own way with frequencies.
        for name in ("omega", "batch_size", "local_reparameterization", "averaging", "kl_warmup"):
            deep.pop(name, None)
    return deep


_DEEP = {
    "kernel": ["arccos2", "arccos1", "matern12", "matern32"],
    "ard": [True, False],
    "frequencies": ["independent", "orthogonal", "sparse"],
    "omega": ["prior-fixed", "var-fixed", "var-resampled"],
    "feed_inputs": [True, False],
    "residual": [True, False],
    "n_members": [2],
    "theta": ["free", "prior", "variational"],
    "preprocessing": ["robust", "compressed", "standard", "unit"],
    "objective": ["elbo", "predictive", "evidence"],
    "kl_weight": [0.5],
    "kl_warmup": [0.5],
    "gradients": ["exact", "clipped"],
    "batch_size": [1, 7, 1000],
    "learning_rate": [0.001, 0.1],
    "schedule": ["constant", "cosine"],
    "averaging": [0.9],
    "n_mc_train": [1, (1, 3)],
    "validation_fraction": [0.0, 0.2],
    "theta_from": [0, 5, "never"],
    "local_reparameterization": [True, False],
}
