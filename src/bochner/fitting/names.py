"""Names of settings that nobody knows, and the one that may have been meant."""

import difflib
import functools
import inspect
from collections.abc import Iterable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def naming_what_was_meant(kind: Class) -> Class:
    """Let a class say of an argument that it does not know which one may have been meant.

    Example:
        >>> from bochner import Deep, DeepGPRegressor
        >>> Deep(n_layer=2)
        Traceback (most recent call last):
        TypeError: Deep has no setting 'n_layer'. Did you mean `n_layers`?
        >>> DeepGPRegressor(n_layers=2)
        Traceback (most recent call last):
        TypeError: DeepGPRegressor has no setting 'n_layers', which is one of a member: `Deep(n_layers=...)`.
    """
    init: Any = kind.__init__
    known = list(inspect.signature(init).parameters)[1:]

    @functools.wraps(init)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                raise TypeError(no_such_setting(type(self).__name__, name, known))
        init(self, *values, **named)

    kind.__init__ = checked
    return kind


def no_such_setting(owner: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no setting of this name, and which one may have been meant, be it of the deep model.

    Example:
        >>> from bochner.fitting.names import no_such_setting
        >>> no_such_setting("DeepGPRegressor", "n_layer", ["members", "verbose"])
        "DeepGPRegressor has no setting 'n_layer'. Did you mean `Deep(n_layers=...)`?"
    """
    from bochner.fitting.declared import declared

    known = list(known)
    of_deep = [] if owner == "Deep" else [one for one in declared() if one not in known]
    if name in of_deep:
        return f"{owner} has no setting {name!r}, which is one of a member: `Deep({name}=...)`."
    nearest = difflib.get_close_matches(name, [*known, *of_deep], n=1)
    if not nearest:
        return f"{owner} has no setting {name!r}. It has {', '.join(known) or 'none'}."
    meant = f"Deep({nearest[0]}=...)" if nearest[0] in of_deep else nearest[0]
    return f"{owner} has no setting {name!r}. Did you mean `{meant}`?"
