"""Every setting of a fit with its final value: checked once, recorded with the model."""

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bochner.features import FEATURE_MAPS
from bochner.features.frequencies import FREQUENCIES
from bochner.features.spectra import SPECTRA
from bochner.gp.layers import LayerSettings
from bochner.gp.reparameterization import (
    AbstractReparameterization,
    ClippedGradients,
    DrawWeights,
    LocalReparameterization,
)
from bochner.inference.objectives import OBJECTIVES, AbstractObjective
from bochner.kernels import KERNELS, RBF
from bochner.ops import PRECISIONS, AutomaticLayer
from bochner.posteriors.hyperparameters import THETAS, VariationalTheta
from bochner.rows.scaling import PREPROCESSINGS
from bochner.training import SCHEDULES, Budget, Plan

AUTO = "auto"
"""As `n_layers`: choose it on held-out rows."""

_N_CONDITIONED = 16
_LEFT_OUT = "left-out"
_CALIBRATIONS = (_LEFT_OUT, "none")
_CLIPPED = "clipped"
_GRADIENTS = ("exact", _CLIPPED)

NEVER = "never"
"""As `theta_from` or `omega_from`: hold these parameters for the whole training."""


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings of a deep model, none left open; `Deep` documents each of them."""

    preset: str
    n_layers: int
    width: int | tuple[int, ...]
    n_random_features: int | tuple[int, ...]
    kernel: str | tuple[str, ...]
    ard: bool
    frequencies: str
    omega: str
    feed_inputs: bool
    residual: bool
    likelihood: str
    objective: str
    calibration: str
    n_members: int
    theta: str
    theta_deviation: float
    kl_weight: float
    kl_warmup: float
    local_reparameterization: bool
    gradients: str
    precision: str
    batch_size: int
    learning_rate: float
    schedule: str
    averaging: float
    max_steps: int | None
    max_seconds: float | None
    n_mc_train: int | tuple[int, int]
    n_mc_predict: int
    preprocessing: str
    validation_fraction: float
    theta_from: int | float | str
    omega_from: int | float | str
    lengthscale_factor: float
    initial_log_var: float
    noise_variance: float
    seed: int

    @classmethod
    def checked(cls, values: dict[str, Any], likelihoods: Iterable[str]) -> "Config":
        """Check each value and give the configuration; lists become tuples."""
        values = {name: _plain(value) for name, value in values.items()}
        check_choice("omega", values["omega"], SPECTRA)
        check_choice("frequencies", values["frequencies"], FREQUENCIES)
        check_choice("likelihood", values["likelihood"], likelihoods)
        check_choice("preprocessing", values["preprocessing"], PREPROCESSINGS)
        check_choice("schedule", values["schedule"], SCHEDULES)
        check_choice("objective", values["objective"], OBJECTIVES)
        check_choice("calibration", values["calibration"], _CALIBRATIONS)
        check_choice("theta", values["theta"], THETAS)
        check_choice("gradients", values["gradients"], _GRADIENTS)
        check_choice("precision", values["precision"], PRECISIONS)
        for kernel in _each(values["kernel"]):
            check_choice("kernel", kernel, FEATURE_MAPS)
        for name in ("n_layers", "n_members", "batch_size", "n_mc_predict"):
            check_whole_number(name, values[name])
        for name in ("width", "n_random_features", "n_mc_train"):
            for value in _each(values[name]):
                check_whole_number(name, value)
        if values["max_steps"] is not None:
            check_whole_number("max_steps", values["max_steps"])
        for name in (
            "learning_rate", "lengthscale_factor", "noise_variance", "max_seconds", "theta_deviation", "kl_weight",
        ):  # fmt: skip
            if values[name] is not None:
                check_positive(name, values[name])
        for name in ("ard", "feed_inputs", "residual", "local_reparameterization"):
            _check_flag(name, values[name])
        _check_finite("initial_log_var", values["initial_log_var"])
        for name in ("validation_fraction", "kl_warmup", "averaging"):
            _check_share(name, values[name])
        for name in ("theta_from", "omega_from"):
            _check_moment(name, values[name])
        config = cls(**values)
        config._check_lengths()
        config._check_objective()
        return config

    def _check_objective(self) -> None:
        if self.calibrates and not self.maximized.leaves_rows_out:
            able = [name for name, each in OBJECTIVES.items() if each.leaves_rows_out]
            written = " or ".join(f'`objective="{name}"`' for name in able)
            raise ValueError(
                '`calibration="left-out"` leaves rows out of the exact last layer, which only '
                f'{written} has; got {self.objective!r}. Use `calibration="none"`.'
            )
        self.maximized.check(self)

    def _check_lengths(self) -> None:
        for name, expected in (
            ("width", self.n_layers - 1),
            ("n_random_features", self.n_layers),
            ("kernel", self.n_layers),
        ):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != expected:
                layers = "hidden layer" if name == "width" else "layer"
                raise ValueError(
                    f"`{name}` must be one value or one for each {layer_count(expected, layers)}; "
                    f"got {len(value)} values."
                )
        if isinstance(self.n_mc_train, tuple) and len(self.n_mc_train) != 2:
            raise ValueError(
                "`n_mc_train` must be one number, or two: before and after half of the training; "
                f"got {len(self.n_mc_train)}."
            )

    def layer_settings(self, d_in: int, d_out: int) -> list[LayerSettings]:
        """The settings of each layer, for `d_in` inputs and `d_out` functions of the last layer."""
        widths = [*_spread(self.width, self.n_layers - 1), d_out]
        n_rfs = _spread(self.n_random_features, self.n_layers)
        kernels = _spread(self.kernel, self.n_layers)
        settings, width_in = [], d_in
        for number, (width, n_rf, kernel) in enumerate(zip(widths, n_rfs, kernels, strict=True)):
            fed = d_in if self.feed_inputs and number > 0 else 0
            settings.append(
                LayerSettings(
                    width=width,
                    n_rf=n_rf,
                    kernel=KERNELS.get(kernel, RBF),  # which maps without a kernel leave alone
                    features=FEATURE_MAPS[kernel],
                    omega=SPECTRA[self.omega],
                    frequencies=FREQUENCIES[self.frequencies](),
                    ard=self.ard,
                    lengthscale=self.lengthscale_factor * float(np.sqrt(width_in + fed)),
                    log_var=self.initial_log_var,
                    theta=THETAS[self.theta],
                    theta_deviation=self.theta_deviation,
                    residual=self.residual and number < self.n_layers - 1 and width == width_in,
                )
            )
            width_in = width
        return settings

    @property
    def plan(self) -> Plan:
        """What trains when."""
        first, last = _spread(self.n_mc_train, 2)
        return Plan(
            theta_from=None if isinstance(self.theta_from, str) else self.theta_from,
            omega_from=None if isinstance(self.omega_from, str) else self.omega_from,
            n_mc=first,
            n_mc_final=last,
        )

    @property
    def maximized(self) -> AbstractObjective:
        """What training maximizes."""
        return OBJECTIVES[self.objective]()

    @property
    def n_conditioned(self) -> int:
        """Draws of the hidden layers of each member for which the last layer's exact posterior is kept."""
        if self.n_layers == 1 and THETAS[self.theta] is not VariationalTheta:
            return 1
        return max(_N_CONDITIONED // self.n_members, 1)

    @property
    def calibrates(self) -> bool:
        """Whether the widths of predictions are chosen from rows left out."""
        return self.calibration == _LEFT_OUT

    @property
    def budget(self) -> Budget:
        """How long training may take."""
        return Budget(self.max_steps, self.max_seconds)

    @property
    def reparameterization(self) -> AbstractReparameterization:
        """How the randomness of q(W) enters in training, and how gradients come back."""
        kind = LocalReparameterization if self.local_reparameterization else DrawWeights
        exact = kind(AutomaticLayer(PRECISIONS[self.precision]))
        return ClippedGradients(exact) if self.gradients == _CLIPPED else exact


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise `ValueError` unless `value` is one of the choices, and name the nearest one.

    Example:
        >>> from bochner.fitting.config import check_choice
        >>> check_choice("kernel", "rbff", ["rbf", "matern32"])
        Traceback (most recent call last):
        ValueError: `kernel` must be one of 'rbf', 'matern32'; got 'rbff'. Did you mean 'rbf'?
    """
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return
    listed = ", ".join(repr(choice) for choice in choices)
    nearest = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.4)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(f"`{name}` must be one of {listed}; got {value!r}.{hint}")


def check_whole_number(name: str, value: Any) -> None:
    """Raise `ValueError` unless `value` is a whole number of at least 1.

    Example:
        >>> from bochner.fitting.config import check_whole_number
        >>> check_whole_number("n_random_features", 0)
        Traceback (most recent call last):
        ValueError: `n_random_features` must be a whole number of at least 1; got 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")


def layer_count(n: int, noun: str) -> str:
    """Say how many: '1 hidden layer', '3 layers'."""
    return f"of the {n} {noun}{'' if n == 1 else 's'}"


def check_positive(name: str, value: Any) -> None:
    """Raise `ValueError` unless `value` is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        raise ValueError(f"`{name}` must be a finite number above 0; got {value!r}.")


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(f"`{name}` must be at least 0 and below 1; got {value!r}.")


def _check_finite(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number; got {value!r}.")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(
            f"`{name}` must be True, False, or None for the preset's choice; got {value!r}."
        )


def _check_moment(name: str, value: Any) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    share = isinstance(value, float) and 0 <= value <= 1
    if not (whole or share or value == NEVER):
        raise ValueError(
            f"`{name}` must be a number of steps, a fraction of the training such as 0.25, or {NEVER!r}; "
            f"got {value!r}."
        )


def _plain(value: Any) -> Any:
    """Give lists as tuples and NumPy's numbers as Python's, so that a configuration can be compared and saved."""
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def _spread(value: Any, n: int) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,) * n
