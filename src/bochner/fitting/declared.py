"""The settings of a deep model, each declared once: its name, what it says, the paper's value, and its flag."""

import dataclasses
import math
from typing import Any

MODEL, TRAINING = "The deep model", "Its training"
"""Panels of the command line."""


def _setting(
    text: str,
    flag: Any = str,
    *,
    paper: Any = None,
    older: Any = None,
    panel: str = MODEL,
    several: bool = False,
) -> Any:
    """Declare a setting that is open until the preset or a user fills it.

    Args:
        text: what it does.
        flag: type of the value on a command line.
        paper: its value in the paper, from which other presets start.
        older: what was done before there was a choice, which files without it mean; None where all files have it.
        panel: where the command line lists it.
        several: whether it takes one value or one for each layer, numbers or words.
    """
    about = {
        "text": text, "flag": str if several else flag, "paper": paper, "older": older, "panel": panel,
        "several": several,
    }  # fmt: skip
    return dataclasses.field(default=None, metadata=about)


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class DeepSettings:
    """Every setting of a deep model, open until the preset or a user fills it."""

    preset: Any = _setting(
        "`auto`, or `paper` and `paper-mnist` for exactly the settings of the paper; None takes the estimator's."
    )
    n_layers: Any = _setting(
        "layers of Gaussian processes, the output layer included; 1 is a Gaussian process. `auto` tries 1, 2 and 3 and "
        "keeps the best on held-out rows; `depth_scores_` shows them.",
        several=True,
        paper=2,
    )
    width: Any = _setting(
        "Gaussian processes in each hidden layer; one number, or one for each.",
        several=True,
        paper=3,
    )
    n_random_features: Any = _setting(
        "frequencies of each layer; one number, or one for each.", several=True, paper=100
    )
    kernel: Any = _setting(
        "covariance, or another feature map, by its name in `bochner.features.FEATURE_MAPS`, such as `rbf`, `arccos1`, "
        "`matern32` or `matern52`; one, or one for each layer.",
        several=True,
        paper="rbf",
    )
    ard: Any = _setting(
        "a lengthscale for each input of a layer, or one for all.", bool, paper=True
    )
    frequencies: Any = _setting(
        "base frequencies, such as `independent` or `orthogonal` ones, or `sparse` ones, of which most look at one, "
        "two or four inputs.",
        paper="independent",
    )
    omega: Any = _setting(
        "treatment of the frequencies, such as `prior-fixed`, `var-fixed` or `var-resampled`.",
        paper="var-fixed",
    )
    feed_inputs: Any = _setting("feed the inputs to each layer after the first.", bool, paper=False)
    residual: Any = _setting(
        "add its inputs to the outputs of each hidden layer that has as many.", bool, paper=False
    )
    n_members: Any = _setting(
        "replicates trained together from different starts, which predict as one mixture.",
        int,
        paper=1,
    )
    theta: Any = _setting(
        "`free`, `prior` or `variational` treatment of the kernels' variances and lengthscales.",
        paper="free",
    )
    theta_deviation: Any = _setting(
        "deviation of the prior of their logarithms around the initial values.", float, paper=1.0
    )
    preprocessing: Any = _setting(
        "`robust`, `compressed`, `standard`, `unit` or `none` scaling of inputs.", paper="standard"
    )
    lengthscale_factor: Any = _setting(
        "initial lengthscale in units of the square root of the number of inputs.", float, paper=1.0
    )
    initial_log_var: Any = _setting(
        "initial log variance of q(W); 0 is the prior.", float, paper=0.0
    )
    noise_variance: Any = _setting(
        "initial noise variance of the scaled target.", float, paper=math.exp(-2.0)
    )
    objective: Any = _setting(
        "what training maximizes: `elbo`, the bound; `predictive`, the predictive density, with the KL kept; or "
        "`evidence`, the bound with the last layer integrated out exactly, for Gaussian noise and tables of up to a "
        "few thousand rows.",
        panel=TRAINING,
        paper="elbo",
    )
    calibration: Any = _setting(
        "`left-out` chooses the widths of the predictions of `evidence` by rows left out of the last layer, the "
        "default where the preset chooses that objective; `none` keeps those of the posterior.",
        panel=TRAINING,
        paper="none",
        older="none",
    )
    kl_weight: Any = _setting(
        "what the KL counts in the objective; 1 is the bound.", float, panel=TRAINING, paper=1.0
    )
    kl_warmup: Any = _setting(
        "share of the training over which that rises from 0.", float, panel=TRAINING, paper=0.0
    )
    local_reparameterization: Any = _setting(
        "draw outputs instead of weights in training.", bool, panel=TRAINING, paper=False
    )
    gradients: Any = _setting(
        "`exact`, or `clipped`: row by row on their way back through each layer, so that they do not explode through "
        "many. Clipped ones are biased. `auto` clips from ten layers on, the paper's presets never.",
        panel=TRAINING,
        paper="exact",
    )
    precision: Any = _setting(
        "what a GPU rounds the factors of products to in training: `float32`, not at all; `tf32x3`, `tf32` or "
        "`bfloat16`.",
        panel=TRAINING,
        paper="float32",
        older="float32",
    )
    batch_size: Any = _setting("rows a step.", int, panel=TRAINING, paper=200)
    learning_rate: Any = _setting("of Adam.", float, panel=TRAINING, paper=0.01)
    schedule: Any = _setting(
        "`constant` or `cosine` learning rate.", panel=TRAINING, paper="constant"
    )
    averaging: Any = _setting(
        "share of a running average of the parameters that a step keeps, such as 0.999; 0 takes the last.",
        float,
        panel=TRAINING,
        paper=0.0,
    )
    max_steps: Any = _setting(
        "training steps; the same seed then gives the same result, bit for bit.",
        int,
        panel=TRAINING,
        paper=30_000,
    )
    n_mc_train: Any = _setting(
        "Monte Carlo samples a step; two numbers mean before and after half of the training.",
        several=True,
        panel=TRAINING,
        paper=(1, 100),
    )
    n_mc_predict: Any = _setting("functions drawn for predictions.", int, panel=TRAINING, paper=100)
    validation_fraction: Any = _setting(
        "share of rows held out to keep the best parameters; 0 holds out none, as do tables below 200 rows.",
        float,
        panel=TRAINING,
        paper=0.0,
    )
    theta_from: Any = _setting(
        "when kernel and noise parameters start to be learned: a number of steps, a fraction of the training, or "
        "`never`.",
        several=True,
        panel=TRAINING,
        paper=12_000,
    )
    omega_from: Any = _setting("the same for q(Omega).", several=True, panel=TRAINING, paper=0)


def declared() -> dict[str, dataclasses.Field]:
    """Give the settings by name, in their order.

    Example:
        >>> from bochner.fitting.declared import declared
        >>> declared()["omega_from"].metadata["text"]
        'the same for q(Omega).'
    """
    return {field.name: field for field in dataclasses.fields(DeepSettings)}
