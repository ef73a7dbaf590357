"""Pages from templates; what comes from data is escaped in one place, by the template engine."""

import functools
import re
from importlib.resources import files
from typing import Any

from bochner.report.texts import printable

# Not even a mistake in the page could make a browser run a script or ask another host.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def rendered(template: str, **values: Any) -> str:
    """Fill a template of the folder `templates` with values; texts among them are escaped.

    Example:
        >>> from bochner.report.rendering import rendered
        >>> page = rendered("demo.html", title="A demo", headings=[], rows={}, pictures=[], seconds=1.0)
        >>> page[:15]
        '<!doctype html>'
    """
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Any:
    try:
        import jinja2
        from markupsafe import Markup, escape
    except ImportError as error:
        raise ImportError(
            "the report is written with Jinja2: install it with `pip install bochner[plots]`."
        ) from error

    def with_code(text: str) -> Any:
        """Escape a note, and set what stands between backticks as code."""
        return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(printable(text)))))

    def harmless(value: Any) -> Any:
        # The engine escapes what this gives; control characters are harmful in any markup.
        return value if isinstance(value, Markup | int | float) else printable(value)

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bochner.report"),
        autoescape=True,
        finalize=harmless,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = files("bochner.report").joinpath("style.css").read_text(encoding="utf-8")
    environment.globals.update(policy=_POLICY, style=Markup(style))
    environment.filters.update(drawn=Markup, with_code=with_code)
    return environment
