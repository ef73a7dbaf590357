"""Fitted deep models as files of the first format had them."""

from typing import Any

import numpy as np

from bochner.estimators.files import to_parts


def in_first_format(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the header that the first format has for a deep model alone."""
    arrays, header = to_parts(model)
    fitted, parameters = header["fitted"], dict(header["parameters"])
    deep = fitted["predictor"]["deep"]
    (_, settings) = parameters.pop("members")["member"]
    kept = ("n_steps", "elbo", "total_weight", "trained_weight", "history")
    renamed = {"names": "feature_names", "encoder": "encoder", "target": "target"}
    return {name: array for name, array in arrays.items() if name != "background"}, {
        "kind": header["kind"],
        "estimator": header["estimator"],
        "format_version": 1,
        "config": dict(deep["config"]),
        "parameters": parameters | {k: v for k, v in settings["dict"] if k != "preset"},
        "n_features_in_": fitted["d_in"],
        **fitted["task"],
        **{f"{name}_": deep[name] for name in kept},
        **{new: fitted[old] for old, new in renamed.items() if fitted[old] is not None},
    }
