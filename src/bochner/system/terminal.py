"""What is printed for people: names and messages as they are, never markup or orders to the terminal."""

from typing import Any

from rich.console import Console
from rich.text import Text


def harmless(text: Any) -> str:
    r"""Write a text so that it cannot act on a terminal: letters that cannot be printed become their escapes.

    Example:
        >>> from bochner.system.terminal import harmless
        >>> print(harmless("\x1b[31mred\n"))
        \x1b[31mred\n
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )


class PlainConsole(Console):
    r"""A console that prints what it is given: no markup, no emoji codes, and nothing that acts on the terminal.

    Styles are arguments of `print`. Line breaks stay; `harmless` takes them out of a name.

    Example:
        >>> import sys
        >>> from bochner.system.terminal import PlainConsole
        >>> PlainConsole(file=sys.stdout).print("[b]:dog:[/b]\x07")
        [b]:dog:[/b]\x07
    """

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text of what is printed, be it a line, the title of a table or one of its cells."""
        return super().render_str("\n".join(map(harmless, text.split("\n"))), **options)
