"""Settings of `bochner fit`: a TOML file, flags over it, and the estimator made of them."""

import dataclasses
import difflib
import tomllib
from pathlib import Path
from typing import Any

import typer

OPTIONS = ("sep", "encoding", "decimal", "thousands", "date_format", "na")
"""What `open_table` is told of how the table is written."""

_OF_THE_CALL = (
    "target", "model", "task", "groups", "time", "ignore", "validation", "tensorboard", "seed", *OPTIONS,
)  # fmt: skip
_TEXTS = (
    "target", "model", "task", "groups", "time", "validation", "tensorboard", "checkpoint", *OPTIONS[:-1],
)  # fmt: skip
_LISTS = {"ignore": "names of columns", "na": "words"}
_NOT_SETTINGS = ("callbacks", "distributed", "verbose", "resume", "warm_start", "random_state")


@dataclasses.dataclass
class Settings:
    """Names and values from file and flags, less those already taken."""

    values: dict[str, Any]

    def taken(self, name: str, default: Any) -> Any:
        """Take a value out."""
        return self.values.pop(name, default)

    def required(self, name: str) -> Any:
        """Take out a value that must be there."""
        if name not in self.values:
            raise ValueError(f"--{name} is missing: give it as a flag or in the --config file.")
        return self.values.pop(name)

    def estimator(self, task: str) -> Any:
        """Make the estimator of a task from what is left."""
        from bochner import DeepGPClassifier, DeepGPRegressor

        kind = DeepGPClassifier if task == "classification" else DeepGPRegressor
        values = dict(self.values)
        deep = {name: values.pop(name) for name in _of_deep() if name in values}
        values["members"] = _members(values.pop("members", None), deep)
        if task == "regression" and "class_weight" in values:
            raise ValueError("--class-weight is for classification; this task is regression.")
        return kind(random_state=values.pop("seed"), **values)


def flags(context: typer.Context) -> dict[str, Any]:
    """Give the settings among the flags that were set."""
    from bochner.fitting.declared import declared

    several = {name for name, field in declared().items() if field.metadata["several"]}
    several.discard("kernel")  # read once it is known whose it is
    return {
        name: numbers_or_words(value) if name in several else value
        for name, value in context.params.items()
        if name in known_settings() and value not in (None, (), [])
    }


def settings_from(path: Path | None, flags: dict[str, Any]) -> Settings:
    """Read a TOML file of settings, and put the flags over it."""
    written = {} if path is None else _read(path)
    known = known_settings()
    for name in written:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise ValueError(f"{path}: there is no setting {name!r}.{hint}")
    values = {**written, **flags}
    for name in _LISTS:
        if isinstance(values.get(name), str):
            values[name] = [values[name]]
    for name in _TEXTS:
        if not isinstance(values.get(name, ""), str | Path):
            raise ValueError(f"`{name}` must be text; got {values[name]!r}.")
    for name, what in _LISTS.items():
        if not isinstance(values.get(name, []), list | tuple):
            raise ValueError(f"`{name}` must be {what}; got {values[name]!r}.")
    seed = values.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"`seed` must be a whole number of at least 0; got {seed!r}.")
    return Settings(values)


def known_settings() -> list[str]:
    """Names that a file of settings may hold.

    Example:
        >>> from bochner.cli.settings import known_settings
        >>> "max_steps" in known_settings()
        True
    """
    from bochner import DeepGPClassifier

    parameters = [name for name in DeepGPClassifier().get_params() if name not in _NOT_SETTINGS]
    return [*_OF_THE_CALL, *parameters, *_of_deep()]


def _of_deep() -> list[str]:
    from bochner.fitting.declared import declared

    return [name for name in declared() if name != "preset"]


def _members(asked: str | None, deep: dict[str, Any]) -> Any:
    """Make the members that a text names; settings of a deep model alone ask for it.

    Without a deep model `kernel` is that of the models in the space of rows.
    """
    from bochner import Deep
    from bochner.members.kinds import IN_ROWS, SETTINGS

    names = [name.strip() for name in str(asked).split(",")]
    with_kernel = {
        name
        for name, kind in SETTINGS.items()
        if kind in IN_ROWS and "kernel" in kind().get_params()
    }
    in_rows = with_kernel.intersection(names) if "deep" not in names else set()
    kernel = {"kernel": deep.pop("kernel")} if in_rows and "kernel" in deep else {}
    deep |= {name: numbers_or_words(deep[name]) for name in deep.keys() & {"kernel"}}
    if asked is None or asked == "auto":
        if deep and asked == "auto":
            raise ValueError(
                f"settings of the deep model ({', '.join(deep)}) need it among `members`, such as `deep`."
            )
        return Deep(**deep) if deep else "auto"
    unknown = [name for name in names if name not in SETTINGS]
    if unknown:
        raise ValueError(
            f"`members` must be auto, or some of {', '.join(SETTINGS)}; got {unknown[0]!r}."
        )
    if deep and "deep" not in names:
        raise ValueError(
            f"settings of the deep model ({', '.join(deep)}) need `deep` among `members`."
        )
    settings = {"deep": deep, **dict.fromkeys(in_rows, kernel)}
    made = [(name, SETTINGS[name](**settings.get(name, {}))) for name in names]
    return made[0][1] if len(made) == 1 else made


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError as error:
        raise ValueError(f"there is no file of settings at {path}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from error
    return {name.replace("-", "_"): value for name, value in content.items()}


def numbers_or_words(value: Any) -> Any:
    """Read a flag's text: a number, words, or several of either with commas between them.

    Example:
        >>> from bochner.cli.settings import numbers_or_words
        >>> numbers_or_words("10"), numbers_or_words("1,100"), numbers_or_words("0.5")
        (10, (1, 100), 0.5)
    """
    if not isinstance(value, str):
        return value
    if "," in value:
        return tuple(numbers_or_words(part.strip()) for part in value.split(","))
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
