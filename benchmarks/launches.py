"""How many kernels a compiled program launches in each step, counted from its optimized form."""

import re
from collections.abc import Mapping

# What only names memory, or runs on the host; everything else is a kernel or a call into a library.
_FREE = {
    "after-all", "bitcast", "constant", "get-tuple-element", "opt-barrier", "parameter", "partition-id",
    "replica-id", "tuple",
}  # fmt: skip
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPCODE = re.compile(r"= (?:\(.*?\)|\S+) ([a-z][\w\-]*)\(")
_CALLED = re.compile(r"(?:body|to_apply|called_computations|calls)=\{?%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')

Computations = Mapping[str, list[str]]


def launches_per_step(program: str, n_steps: int) -> int | None:
    """Count launches in the body of the loop over steps; None where the program has no such loop.

    Args:
        program: the text of a compiled program, as `compiled.as_text()` gives it.
        n_steps: how many times the loop runs.

    Example:
        >>> from benchmarks.launches import launches_per_step
        >>> program = '''
        ... %body (p: (s32[])) -> (s32[]) {
        ...   %p = (s32[]) parameter(0)
        ...   ROOT %f = (s32[]) fusion(%p), kind=kLoop, calls=%add
        ... }
        ... ENTRY %main (a: s32[]) -> s32[] {
        ...   ROOT %w = (s32[]) while(%a), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"5"}}
        ... }
        ... '''
        >>> launches_per_step(program, 5)
        1
    """
    computations = _computations(program)
    for lines in computations.values():
        for line in lines:
            trips = _TRIPS.search(line)
            if _opcode(line) == "while" and trips and int(trips[1]) == n_steps:
                return _count(computations, _called(line))
    return None


def _computations(program: str) -> dict[str, list[str]]:
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in program.splitlines():
        header = _HEADER.match(line.strip())
        if header and "=" not in line.split("(")[0]:
            lines = computations.setdefault(header[2], [])
        elif line.strip():
            lines.append(line)
    return computations


def _opcode(line: str) -> str | None:
    found = _OPCODE.search(line)
    return found[1] if found else None


def _called(line: str) -> str:
    found = _CALLED.search(line)
    return found[1] if found else ""


def _count(computations: Computations, name: str) -> int:
    total = 0
    for line in computations.get(name, []):
        opcode = _opcode(line)
        if opcode is None or opcode in _FREE:
            continue
        if opcode == "while":
            trips = _TRIPS.search(line)
            total += (int(trips[1]) if trips else 1) * _count(computations, _called(line))
        elif opcode in ("call", "async-start"):
            total += _count(computations, _called(line))
        elif not opcode.endswith(("-done", "async-update")):  # the end of what was launched before
            total += 1
    return total
