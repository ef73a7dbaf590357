"""The flags of `bochner fit` for the settings of the deep model, from where these are declared."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from bochner.cli.fit_flags import further
from bochner.fitting.declared import declared


def with_deep_flags(function: Callable) -> Callable:
    """Give a command a flag for each setting, in place of its `**` argument.

    Example:
        >>> import inspect
        >>> from bochner.cli.deep_flags import with_deep_flags
        >>> def command(quiet: bool = False, **settings): ...
        >>> list(inspect.signature(with_deep_flags(command)).parameters)[:3]
        ['quiet', 'n_layers', 'width']
    """
    signature = inspect.signature(function)
    kept = [
        one
        for one in signature.parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    flags = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_annotation(name, field.metadata),
        )
        for name, field in declared().items()
        if name != "preset"  # which the estimator has
    ]
    kept = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in kept]
    function.__signature__ = signature.replace(parameters=[*kept, *flags])  # pyright: ignore[reportFunctionMemberAccess]
    return function


def _annotation(name: str, about: Any) -> Any:
    names = []
    if about["flag"] is bool:
        dashed = name.replace("_", "-")
        names = [f"--{dashed}/--no-{dashed}"]
    text = about["text"]
    if not text.startswith("`"):  # a value is written as it is
        text = text[:1].upper() + text[1:]
    option = further(*names, help=text.replace("`", ""), rich_help_panel=about["panel"])
    return Annotated[about["flag"] | None, option]
