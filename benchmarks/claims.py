"""Sentences of the documentation with numbers, each computed from the records that it rests on."""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runner import mean_and_deviation, read_records

ROOT = Path(__file__).resolve().parent.parent
INDEX = Path("docs/claims.md")
_HEAD = """# Claims

For readers who want to check a number. Each sentence is computed from its records, and a test compares it with the page
that has it. `python -m benchmarks claims` writes this page; the command in a row makes its records. Where there is no
day, the record was made before records had one.

| sentence | page | command | records of |
| --- | --- | --- | --- |
"""

Records = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Claim:
    """A sentence with numbers.

    Attributes:
        page: that has it.
        experiment: whose records it rests on.
        sentence: computed from these.
    """

    page: str
    experiment: str
    sentence: Callable[[Records], str]

    @property
    def records(self) -> Records:
        """The records that it rests on."""
        return read_records(ROOT / "experiments" / "results" / f"{self.experiment}.jsonl")

    def written(self) -> str:
        """Give the sentence as the records have it."""
        return self.sentence(self.records)

    def is_on_its_page(self) -> bool:
        """Whether the page has the sentence, line breaks aside."""
        return flowing(self.written()) in flowing((ROOT / self.page).read_text(encoding="utf-8"))


def flowing(text: str) -> str:
    """Give text with one space wherever it has some.

    Example:
        >>> from benchmarks.claims import flowing
        >>> flowing("one  line\\nand another")
        'one line and another'
    """
    return re.sub(r"\s+", " ", text)


def index() -> str:
    """Give the page that lists all claims."""
    lines = []
    for claim in CLAIMS:
        days = sorted({one["date"] for one in claim.records if "date" in one})
        sentence = claim.written().strip("| ").replace("|", ";")
        page = Path(claim.page).name
        command = f"`python -m experiments {claim.experiment}`"
        lines.append(f"| {sentence} | [{page}]({page}) | {command} | {days[-1] if days else ''} |")
    return _HEAD + "\n".join(lines) + "\n"


def _of_inference(records: Records) -> Mapping[tuple[str, int], dict[str, Any]]:
    return {(r["job"]["inference"], r["job"]["n_rf"]): r["result"] for r in records}


def _bounds_of_mcmc(records: Records) -> str:
    found = _of_inference(records)
    many, few = (found["variational", n]["bound"] for n in (50, 10))
    return f"and so is the bound ({many:.1f} and {few:.1f})"


def _noise_of_mcmc(records: Records) -> str:
    found = _of_inference(records)
    many, few = (found["variational", n]["noise_variance"] for n in (50, 10))
    return f"a variance of {many:.3f} with 50 frequencies and {few:.3f} with 10"


def _row_of_mcmc(key: tuple[str, int], name: str) -> Callable[[Records], str]:
    def row(records: Records) -> str:
        result = _of_inference(records)[key]
        names = ("output_std_inside", "output_std_outside", "rmse_inside")
        return f"| {name} | {' | '.join(f'{result[one]:.2f}' for one in names)} |"

    return row


def _signs_of_mcmc(records: Records) -> str:
    share = _of_inference(records)["mcmc", 50]["share_of_rising_hidden"]
    return f"visits both signs of the hidden layer ({share:.0%} of its draws rise)".replace(
        "%", " %"
    )


def _row_of_depth(n_layers: int) -> Callable[[Records], str]:
    def row(records: Records) -> str:
        wanted = {"data": "airline_nyc2013", "n_layers": n_layers, "max_steps": 40_000}
        own = [
            one["result"]
            for one in records
            if wanted.items() <= one["job"].items() and "gradients" not in one["job"]
        ]
        cells = [
            mean_and_deviation((one[name] for one in own), digits=4)
            for name in ("error_rate", "mnll")
        ]
        return f"| {n_layers} | {' | '.join(cells)} |"

    return row


def _row_of_omega(omega: str) -> Callable[[Records], str]:
    def row(records: Records) -> str:
        own = defaultdict(list)
        for one in records:
            if one["job"]["part"] == "main" and one["job"]["omega"] == omega:
                own[one["job"]["n_features"]].append(one["result"])
        cells = [
            ", ".join(f"{np.mean([one[name] for one in own[n]]):.3f}" for name in ("error_rate", "mnll"))
            for n in sorted(own)
        ]  # fmt: skip
        return f"| {omega.upper()} | {' | '.join(cells)} |"

    return row


def _panels(records: Records) -> list[dict[tuple[str, int], float]]:
    """MNLL by treatment and number of features, of each panel of the supplement."""
    panels: dict[tuple, dict[tuple[str, int], float]] = defaultdict(dict)
    for one in records:
        job = one["job"]
        if job["part"] == "supplement":
            place = job["data"], job["n_hidden"], job["kernel"]
            panels[place][job["omega"], job["n_features"]] = one["result"]["mnll"]
    return list(panels.values())


def _best_panels(records: Records) -> str:
    panels = _panels(records)
    treatments = ("prior-fixed", "var-fixed", "var-resampled")
    n = sum(min(treatments, key=lambda o: one[o, 200]) == "var-fixed" for one in panels)
    return f"At 200 features VAR-FIXED has the lowest MNLL of the three in {n} of the {len(panels)} panels"


def _worse_panels(records: Records) -> str:
    panels = _panels(records)
    n = sum(one["var-resampled", 200] > one["var-resampled", 50] for one in panels)
    return f"gets worse from 50 to 200 features in {n} of {len(panels)} panels"


def _row_of_check(data: str) -> Callable[[Records], str]:
    def row(records: Records) -> str:
        job = {"data": data, "members": "auto", "seed": 0}
        (result,) = (one["result"] for one in records if job.items() <= one["job"].items())
        found = "no verdict"
        if result["converged"]:
            found = (
                f"{result['function_std_ratio']['median']:.2f}, {result['std_ratio']['median']:.2f}"
            )
        numbers = (
            f"{result['worst_rhat']:.2f} | {result['smallest_ess']:.0f} | {result['seconds']:.0f}"
        )
        return f"| {data} | {found} | {numbers} | {result['processor_seconds']:.0f} |"

    return row


_CALIBRATION, _REPRODUCING = "docs/calibration.md", "docs/reproducing.md"
CLAIMS = (
    Claim(_CALIBRATION, "mcmc", _bounds_of_mcmc),
    Claim(_CALIBRATION, "mcmc", _noise_of_mcmc),
    Claim(_CALIBRATION, "mcmc", _signs_of_mcmc),
    Claim(_CALIBRATION, "mcmc", _row_of_mcmc(("mcmc", 50), "exact kernels, MCMC")),
    Claim(_CALIBRATION, "mcmc", _row_of_mcmc(("nuts", 50), "50 frequencies, NUTS")),
    Claim(_CALIBRATION, "mcmc", _row_of_mcmc(("variational", 50), "50 frequencies, q(W)")),
    Claim(_CALIBRATION, "mcmc", _row_of_mcmc(("nuts", 10), "10 frequencies, NUTS (own theta)")),
    Claim(
        _CALIBRATION, "mcmc", _row_of_mcmc(("variational", 10), "10 frequencies, q(W) (own theta)")
    ),
    *(Claim(_CALIBRATION, "check", _row_of_check(data)) for data in ("yacht", "energy", "boston")),
    *(Claim(_REPRODUCING, "depth", _row_of_depth(n)) for n in (2, 10, 20, 30)),
    *(
        Claim(_REPRODUCING, "omega", _row_of_omega(omega))
        for omega in ("prior-fixed", "var-fixed", "var-resampled")
    ),
    Claim(_REPRODUCING, "omega", _best_panels),
    Claim(_REPRODUCING, "omega", _worse_panels),
)
