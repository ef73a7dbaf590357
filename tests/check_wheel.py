"""Builds the wheel, installs it in a new environment of its own, and fits a table there."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECK = """
import bochner, importlib.resources as r
assert "site-packages" in bochner.__file__ and {folder!r} in bochner.__file__, bochner.__file__
assert r.files("bochner").joinpath("py.typed").is_file()
assert r.files("bochner.report").joinpath("style.css").is_file()
assert bochner.DeepGPRegressor and bochner.DeepGPClassifier and bochner.load
print("imported bochner", bochner.__version__, "from its wheel")
"""

# Nothing but the core's own dependencies is there: what a command needs beyond them would show.
TABLE = "size,color,price\n" + "".join(
    f"{i},{'red' if i % 3 else 'blue'},{2 * i}\n" for i in range(40)
)
COMMANDS = (
    "--version",
    "fit table.csv --target price --model m.bochner --max-steps 5 --quiet",
    "predict m.bochner table.csv --output predicted.csv --quiet",
    "export m.bochner --output m.stablehlo --quiet",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(ROOT)]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = Path(folder).glob("*.whl")
        clean = Path(folder) / "clean"
        venv.create(clean, with_pip=True)
        python = clean / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        constraints = ["--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([*install, *constraints, str(wheel)], check=True)
        check = CHECK.format(folder=str(clean))
        subprocess.run([str(python), "-I", "-c", check], check=True, cwd=folder)
        bochner = str(clean / "bin" / "bochner")
        (Path(folder) / "table.csv").write_text(TABLE)
        for words in COMMANDS:
            subprocess.run([bochner, *words.split()], check=True, cwd=folder)


if __name__ == "__main__":
    main()
