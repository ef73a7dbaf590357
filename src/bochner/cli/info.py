"""`bochner info`: what is in a model file."""

from typing import Any

from bochner.cli.common import AsJson, ModelPath, Quiet, command, load_model, show
from bochner.cli.standings import in_a_line, show_members, standings


@command
def info(model: ModelPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show what a model predicts, from what, which members it has, and with which settings a deep one was trained."""
    from bochner.system.saving import read_arrays

    estimator = load_model(model)
    arrays, header = read_arrays(model)
    fitted, deep = estimator.fitted_, estimator.fitted_.deep
    classes = getattr(estimator, "classes_", None)
    inputs = fitted.d_in if fitted.names is None else list(fitted.names)
    summary: dict[str, Any] = {
        "file": str(model),
        "written_by": f"bochner {header['bochner_version']}, format {header['format_version']}",
        "task": "regression" if classes is None else "classification",
        "target": fitted.target,
        "classes": None if classes is None else classes.tolist(),
        "inputs": inputs if fitted.encoder is None else fitted.encoder.input_names,
        "encoded_inputs": fitted.d_in,
        "numbers": sum(array.size for array in arrays.values()),
        "training_rows_held": fitted.n_rows_held,
        "rows": round(fitted.total_weight),
        "calibrated": None if fitted.calibration is None else fitted.calibration.in_words(),
        "seed": estimator.random_state,
        **(standings(fitted) if as_json else in_a_line(fitted)),
    }
    if deep is not None:
        weight = deep.total_weight
        summary |= {"steps": deep.n_steps, "bound_per_row": deep.elbo / weight if weight else None}
        summary["config"] = {k: v for k, v in estimator.config_.items() if k != "seed"}
    if as_json:
        show(summary, as_json=True)
        return
    show({name: value for name, value in summary.items() if value is not None}, as_json=False)
    show_members(fitted)
