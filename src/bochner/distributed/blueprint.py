"""The form of a model as plain JSON, so that messages between processes hold arrays and JSON only."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.features import FEATURE_MAPS
from bochner.features.maps import AbstractFeatureMap
from bochner.features.random_features import RandomFeatures
from bochner.features.spectra import SPECTRA
from bochner.gp.layers import LayerSettings
from bochner.gp.members import Members, start_members
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import (
    AbstractReparameterization,
    ClippedGradients,
    DrawWeights,
    LocalReparameterization,
)
from bochner.inference.objectives import OBJECTIVES, AbstractObjective, Elbo
from bochner.kernels import KERNELS, AbstractKernel
from bochner.likelihoods import LIKELIHOODS
from bochner.ops import AutomaticLayer, XlaLayer
from bochner.posteriors.hyperparameters import THETAS

_REPARAMETERIZATIONS: dict[str, type[AbstractReparameterization]] = {
    "draw-weights": DrawWeights,
    "local": LocalReparameterization,
}


def described(
    model: DeepGP | Members,
    reparameterization: AbstractReparameterization,
    n_targets: int,
    objective: AbstractObjective = Elbo(),  # noqa: B008
) -> dict[str, Any]:
    """Describe a model whose parts all have a name in configurations.

    Example:
        >>> import jax
        >>> from bochner.distributed.blueprint import described, skeleton
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.gp.reparameterization import DrawWeights
        >>> model = DeepGP.start(
        ...     [LayerSettings(2), LayerSettings(1)], Gaussian.start(1), d_in=3, feed_inputs=True,
        ...     key=jax.random.key(0),
        ... )
        >>> blueprint = described(model, DrawWeights(), n_targets=1)
        >>> blueprint["layers"][0]["kernel"], blueprint["likelihood"]
        ('rbf', 'gaussian')
        >>> jax.tree.structure(skeleton(blueprint)) == jax.tree.structure(model)
        True
    """
    if reparameterization.backend not in (XlaLayer(), AutomaticLayer()):
        raise ValueError(
            "asynchronous workers compute layers on the plain backend, in float32; got "
            f"{reparameterization.backend}."
        )
    clipped = isinstance(reparameterization, ClippedGradients)
    exact = reparameterization.inner if clipped else reparameterization
    one = model.each()[0]
    layers = [
        {
            "width": layer.width,
            "residual": bool(layer.residual),
            "n_rf": layer.features.n_rf,
            **_described_features(layer.features),
        }
        for layer in one.layers
    ]
    blueprint = {
        "layers": layers,
        "n_members": model.n_members,
        "d_in": one.layers[0].features.d_in,
        "feed_inputs": bool(one.feed_inputs),
        "likelihood": _name(one.likelihood, LIKELIHOODS, "likelihood"),
        "objective": _name(objective, OBJECTIVES, "objective"),
        "n_targets": n_targets,
        "reparameterization": _name(exact, _REPARAMETERIZATIONS, "reparameterization"),
        "clipped": clipped,
    }
    found = skeleton(blueprint)
    if jax.tree.structure(found) != jax.tree.structure(model) or any(
        one.shape != other.shape
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(model), strict=True)
    ):
        raise ValueError(
            "this model has parts of its own, which cannot be sent to workers by name."
        )
    return blueprint


def skeleton(blueprint: Mapping[str, Any]) -> DeepGP | Members:
    """Give a model of the form described, all its arrays zero."""
    settings = [
        LayerSettings(
            width=layer["width"],
            residual=layer["residual"],
            n_rf=layer["n_rf"],
            **_settings_of_features(layer),
        )
        for layer in blueprint["layers"]
    ]
    likelihood = LIKELIHOODS[blueprint["likelihood"]]

    def start(key: jax.Array) -> DeepGP:
        return DeepGP.start(
            settings,
            likelihood.from_targets(np.zeros((1, blueprint["n_targets"])), 1.0),
            d_in=blueprint["d_in"],
            feed_inputs=blueprint["feed_inputs"],
            key=key,
        )

    def start_all() -> DeepGP | Members:
        return start_members(start, blueprint["n_members"], key=jax.random.key(0))

    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(start_all))


def objective_of(blueprint: Mapping[str, Any]) -> AbstractObjective:
    """Give the described objective."""
    return OBJECTIVES[blueprint["objective"]]()


def reparameterization_of(blueprint: Mapping[str, Any]) -> AbstractReparameterization:
    """Give the described way in which the randomness of q(W) enters."""
    exact = _REPARAMETERIZATIONS[blueprint["reparameterization"]](XlaLayer())
    return ClippedGradients(exact) if blueprint["clipped"] else exact


def _described_features(features: AbstractFeatureMap) -> dict[str, Any]:
    if not isinstance(features, RandomFeatures):
        return {"kernel": _name(features, FEATURE_MAPS, "feature map")}
    return {
        "kernel": _name_of_kernel(features.kernel),
        "omega": _name(features.spectrum, SPECTRA, "treatment of the frequencies"),
        "ard": features.kernel.log_lengthscale.ndim > 0,
        "theta": _name(features.theta, THETAS, "treatment of theta"),
        "theta_deviation": float(getattr(features.theta, "deviation", 1.0)),
    }


def _settings_of_features(layer: Mapping[str, Any]) -> dict[str, Any]:
    if layer["kernel"] not in KERNELS:
        return {"features": FEATURE_MAPS[layer["kernel"]]}
    return {
        "kernel": KERNELS[layer["kernel"]],
        "omega": SPECTRA[layer["omega"]],
        "ard": layer["ard"],
        "theta": THETAS[layer["theta"]],
        "theta_deviation": layer["theta_deviation"],
    }


def _name_of_kernel(kernel: AbstractKernel) -> str:
    # A kernel's static fields are part of its structure.
    structure = jax.tree.structure(kernel)
    for name, make in KERNELS.items():
        like = make(log_variance=jnp.zeros(()), log_lengthscale=jnp.zeros(()))
        if jax.tree.structure(like) == structure:
            return name
    raise ValueError(f"the kernel {kernel!r} has no name, by which workers could make it.")


def _name(part: Any, known: Mapping[str, type], kind: str) -> str:
    for name, each in known.items():
        if type(part) is each:
            return name
    raise ValueError(
        f"the {kind} {type(part).__name__} has no name, by which workers could make it."
    )
