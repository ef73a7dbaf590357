"""Kernels from texts, such as `rbf(lat, lon) + category(route) * laplace('dep time')`."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from bochner.exact.kernels.base import WORD, AbstractKernel, AbstractOfColumns
from bochner.exact.kernels.combined import DEEPEST

_LONGEST = 10_000
_PIECE = re.compile(
    rf"(?P<word>{WORD.pattern})|(?P<number>\d+\.?\d*([eE][+-]?\d+)?)|(?P<quoted>'(\\.|[^'\\])*')"
    r"|(?P<sign>[()+*,=])",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*")


class _Piece(NamedTuple):
    kind: str | None  # None at the end
    text: str
    place: int


def kernel_from(text: str, known: Mapping[str, type[AbstractKernel]]) -> AbstractKernel:
    """Make the kernel that a text describes, of kernels with known names."""
    if len(text) > _LONGEST:
        raise ValueError(f"a kernel is a text of at most {_LONGEST:,} characters.")
    return _Parser(text, known).all()


class _Parser:
    """Reads a text from left to right, one piece ahead."""

    def __init__(self, text: str, known: Mapping[str, type[AbstractKernel]]) -> None:
        self.text, self.known = text, known
        self.next = self._piece(0)

    def all(self) -> AbstractKernel:
        kernel = self.sum(0)
        if self.next.kind is not None:
            self.fail("expected `+`, `*` or the end")
        return kernel

    def sum(self, depth: int) -> AbstractKernel:
        kernel = self.product(depth)
        while (place := self.taken("+")) is not None:
            kernel = self.made(place, AbstractKernel.__add__, kernel, self.product(depth))
        return kernel

    def product(self, depth: int) -> AbstractKernel:
        kernel = self.factor(depth)
        while (place := self.taken("*")) is not None:
            kernel = self.made(place, AbstractKernel.__mul__, kernel, self.factor(depth))
        return kernel

    def factor(self, depth: int) -> AbstractKernel:
        place = self.taken("(")
        if place is None:
            return self.named()
        if depth == DEEPEST:
            self.fail(f"there are more than {DEEPEST} parentheses in each other", place)
        kernel = self.sum(depth + 1)
        self.expect(")")
        return kernel

    def named(self) -> AbstractKernel:
        piece, known = self.next, ", ".join(self.known)
        if piece.kind != "word":
            self.fail(f"expected one of {known}")
        kind = self.known.get(piece.text.lower())
        if kind is None:
            guess = _guess(piece.text.lower(), list(self.known))
            self.fail(f"there is no kernel {piece.text!r}.{guess} They are {known}")
        self.advance()
        columns, options = self.arguments(kind) if self.taken("(") is not None else ([], {})
        return self.made(piece.place, kind, *columns, **options)

    def arguments(self, kind: type[AbstractKernel]) -> tuple[list[int | str], dict[str, float]]:
        columns: list[int | str] = []
        options: dict[str, float] = {}
        if self.taken(")") is not None:
            return columns, options
        known = kind.names_of_options() if issubclass(kind, AbstractOfColumns) else []
        while True:
            piece = self.next
            column = self.column()
            if piece.kind == "word" and self.taken("=") is not None:
                if piece.text not in known or piece.text in options:
                    guess = _guess(piece.text, known)
                    self.fail(
                        f"`{kind.__name__.lower()}` takes no {piece.text!r} here.{guess}",
                        piece.place,
                    )
                options[piece.text] = self.number()
            else:
                columns.append(column)
            if self.taken(",") is None:
                self.expect(")")
                return columns, options

    def column(self) -> int | str:
        kind, text, _ = self.next
        if kind == "number" and not text.isdecimal():
            self.fail("the place of a column is a whole number")
        if kind not in ("word", "number", "quoted"):
            self.fail("expected the name of a column, in quotes if it is no plain word")
        self.advance()
        if kind == "quoted":
            return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
        return int(text) if kind == "number" else text

    def number(self) -> float:
        if self.next.kind != "number":
            self.fail("expected a number")
        value = float(self.next.text)
        self.advance()
        return value

    def taken(self, sign: str) -> int | None:
        """Take a sign if it comes next, and say where it was."""
        kind, text, place = self.next
        if kind != "sign" or text != sign:
            return None
        self.advance()
        return place

    def expect(self, sign: str) -> None:
        if self.taken(sign) is None:
            self.fail(f"expected `{sign}`")

    def made(self, place: int, make: Any, *arguments: Any, **options: Any) -> AbstractKernel:
        """Make a kernel; what it refuses is said with its place."""
        try:
            return make(*arguments, **options)
        except (TypeError, ValueError) as error:
            self.fail(str(error).removesuffix("."), place)

    def advance(self) -> None:
        self.next = self._piece(self.next.place + len(self.next.text))

    def _piece(self, place: int) -> _Piece:
        space = _SPACE.match(self.text, place)
        place = space.end() if space else place
        if place == len(self.text):
            return _Piece(None, "", place)
        found = _PIECE.match(self.text, place)
        if found is None:
            is_quote = self.text[place] == "'"
            self.fail("a quote is not closed" if is_quote else "this sign has no meaning", place)
        return _Piece(found.lastgroup, found.group(), place)

    def fail(self, what: str, place: int | None = None) -> NoReturn:
        """Say what is wrong, under the line with a caret at its place."""
        place = self.next.place if place is None else place
        start = self.text.rfind("\n", 0, place) + 1
        line = self.text[start:].split("\n", 1)[0].replace("\t", " ")
        raise ValueError(
            f"cannot read the kernel: {what}.\n    {line}\n    {' ' * (place - start)}^"
        )


def _guess(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
