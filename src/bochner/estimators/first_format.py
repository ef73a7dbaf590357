"""Model files of the first format, each one deep model, as headers of the second."""

from collections.abc import Mapping
from typing import Any

from bochner.fitting.declared import declared
from bochner.system.saving import ModelFileError
from bochner.system.taking import listed, taken

_REQUIRED = {
    "kind", "estimator", "config", "parameters", "n_features_in_", "n_steps_", "elbo_", "total_weight_",
    "trained_weight_", "history_",
}  # fmt: skip
_REQUIRED_OF_TASK = {
    "DeepGPRegressor": {"n_targets", "one_target"},
    "DeepGPClassifier": {"classes"},
}
_OPTIONAL = {
    "feature_names", "encoder", "target", "judged", "format_version", "bochner_version",
}  # fmt: skip


def is_of_first_format(header: Mapping[str, Any]) -> bool:
    """Whether a header is of the first format.

    Example:
        >>> from bochner.estimators.first_format import is_of_first_format
        >>> is_of_first_format({"format_version": 1}), is_of_first_format({"format_version": 2})
        (True, False)
    """
    return header.get("format_version") == 1


def of_second_format(header: Mapping[str, Any]) -> dict[str, Any]:
    """Give the header of the same model in the second format; values are checked when they are used."""
    name = taken(header, "estimator", str, lambda v: v in _REQUIRED_OF_TASK, "a known estimator")
    required = _REQUIRED | _REQUIRED_OF_TASK[name]
    missing, unknown = required - header.keys(), header.keys() - required - _OPTIONAL
    if missing:
        raise ModelFileError(f"it lacks {listed(missing)}.")
    if unknown:
        raise ModelFileError(f"it holds {listed(unknown)}, which this version does not know.")
    task = {key: header[key] for key in _REQUIRED_OF_TASK[name]}
    config = taken(header, "config", dict)
    deep = {key: header[f"{key}_"] for key in ("n_steps", "elbo", "total_weight", "trained_weight")}
    deep |= {"config": config, "history": header["history_"]}
    fitted = {
        "task": task,
        "d_in": header["n_features_in_"],
        "seed": config.get("seed"),
        "names": header.get("feature_names"),
        "encoder": header.get("encoder"),
        "target": header.get("target"),
        "standings": [],
        "summary": {},
        "total_weight": header["total_weight_"],
        "predictor": {"kind": "deep", "deep": deep},
    }
    parameters = _parameters(taken(header, "parameters", dict))
    return {"kind": header["kind"], "estimator": name, "parameters": parameters, "fitted": fitted}


def _parameters(stored: dict[str, Any]) -> dict[str, Any]:
    """Put what is a setting of the deep model now where it belongs."""
    of_deep = declared().keys() - {"preset"}
    kept = {name: value for name, value in stored.items() if name not in of_deep}
    deep = [[name, value] for name, value in stored.items() if name in of_deep]
    if any(value is not None for _, value in deep):
        kept["members"] = {"member": ["Deep", {"dict": deep}]}
    return kept
