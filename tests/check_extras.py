"""Resolves every extra on every supported Python with the pinned versions: an install that cannot work shows here."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    failed = []
    for python in PYTHONS:
        for extra in project["optional-dependencies"]:
            # uv evaluates markers for the Python that is asked for; pip does for the one that runs it.
            resolve = [
                *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header"),
                *("--python-version", python, "--extra", extra),
                *("--constraint", "constraints.txt", "pyproject.toml"),
            ]
            found = subprocess.run(resolve, cwd=ROOT, capture_output=True, text=True)
            if found.returncode:
                failed.append(f"extra {extra} on Python {python}:\n{found.stderr.strip()}")
    if failed:
        sys.exit("\n\n".join(failed))
    print(f"all extras resolve on Python {' and '.join(PYTHONS)}")


if __name__ == "__main__":
    main()
