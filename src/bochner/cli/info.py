"""`bochner info`: what is in a model file."""

from bochner.cli.common import AsJson, ModelPath, Quiet, command, load_model, show


@command
def info(model: ModelPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show what a model predicts, from what, how it was trained and with which settings."""
    from bochner.system.saving import read_arrays

    fitted = load_model(model)
    arrays, header = read_arrays(model)
    encoder, classes = fitted._encoder, getattr(fitted, "classes_", None)
    names = getattr(fitted, "feature_names_in_", None)
    summary = {
        "file": str(model),
        "written_by": f"bochner {header['bochner_version']}, format {header['format_version']}",
        "task": "regression" if classes is None else "classification",
        "target": fitted._target_name,
        "classes": None if classes is None else classes.tolist(),
        "inputs": encoder.input_names
        if encoder is not None
        else (fitted.n_features_in_ if names is None else [str(name) for name in names]),
        "encoded_inputs": fitted.n_features_in_,
        "numbers": sum(array.size for array in arrays.values()),
        "steps": fitted.n_steps_,
        "rows": round(fitted.total_weight_),
        "bound_per_row": fitted.elbo_ / fitted.total_weight_,
        "seed": fitted.random_state,
        "config": {name: value for name, value in fitted.config_.items() if name != "seed"},
    }
    show(summary, as_json=as_json)
