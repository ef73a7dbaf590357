"""One case, in a process of its own: all that is random comes from the seed and its number."""

import json
import random
import sys
import tempfile
import traceback
from pathlib import Path

from tests.soak import in_python, kills, on_the_command_line
from tests.soak.outcomes import RefusedError
from tests.soak.tables import random_table

KINDS = {
    "python": in_python.run,
    "command line": on_the_command_line.run,
    "killed training": kills.kill_a_training,
    "killed prediction": kills.kill_a_prediction,
}
_OFTEN = ["python"] * 5 + ["command line"] * 3 + ["killed training"] + ["killed prediction"]


def outcome(seed: int, number: int) -> dict:
    """Run a case, and tell what came of it."""
    r = random.Random(f"{seed}/{number}")
    kind = r.choice(_OFTEN)
    table = random_table(r)
    if kind.startswith("killed"):
        while not table.is_plain:
            table = random_table(r)
    told = {"number": number, "kind": kind, "plain": table.is_plain, "task": table.task, "kills": 0}
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            told["kills"] = KINDS[kind](r, table, Path(folder)) or 0
        except RefusedError as error:
            # What is plain must be learned from.
            return told | {"end": "wrong" if table.is_plain else "refused", "why": str(error)}
        except Exception:
            return told | {"end": "wrong", "why": traceback.format_exc()}
    return told | {"end": "fine", "why": ""}


if __name__ == "__main__":
    print(json.dumps(outcome(int(sys.argv[1]), int(sys.argv[2]))))
