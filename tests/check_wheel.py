"""Builds the wheel, installs it in a new environment of its own, and imports it there."""

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
assert bochner.DeepGPRegressor and bochner.DeepGPClassifier and bochner.load
print("imported bochner", bochner.__version__, "from its wheel")
"""


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
        subprocess.run([str(clean / "bin" / "bochner"), "--version"], check=True, cwd=folder)


if __name__ == "__main__":
    main()
