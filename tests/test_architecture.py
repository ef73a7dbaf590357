"""Data flows one way: a module imports only from those before it."""

import ast
from pathlib import Path

import pytest

import bochner

ORDER = [
    "version",
    "system",
    "exact",
    "ops",
    "tables",
    "rows",
    "kernels",
    "posteriors",
    "features",
    "likelihoods",
    "gp",
    "inference",
    "training",
    "distributed",
    "prediction",
    "datasets",
    "fitting",
    "members",
    "explaining",
    "estimators",
    "mcmc",
    "report",
    "cli",
    "__main__",
]
ROOT = Path(bochner.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def public_names() -> dict[str, str]:
    """Where each name that the package itself offers comes from."""
    tree = ast.parse((ROOT / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: node.module for node in imports for alias in node.names}


def place(path: Path) -> str:
    """The name in ORDER of the module or package that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(source: str) -> set[str]:
    """The names in ORDER that a file imports from, wherever in the file it does."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "bochner":
            names = [alias.name for alias in node.names]
            modules.update(public_names().get(name, f"bochner.{name}") for name in names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            modules.add(node.module or "")
    return {module.split(".")[1] for module in modules if module.startswith("bochner.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_import_only_from_those_before_them(path):
    own = place(path)
    assert own in ORDER, f"give {own} its place in ORDER"
    allowed = {own, *ORDER[: ORDER.index(own)]}
    assert imported(path.read_text()) <= allowed


def test_imports_are_found_in_every_form():
    source = (
        "import numpy\nimport bochner.ops.sincos\nfrom bochner.kernels import RBF\n"
        "from bochner import DeepGPRegressor, training\n"
        "def f():\n    from bochner.cli.fit import fit\n"
    )
    assert imported(source) == {"ops", "kernels", "estimators", "training", "cli"}


def test_every_file_says_in_its_first_line_what_it_is_for():
    for path in FILES:
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring, path
        assert docstring.splitlines()[0].endswith((".", ":")), path


def test_no_module_is_longer_than_400_lines():
    folders = [ROOT, *(ROOT.parents[1] / name for name in ("tests", "experiments", "benchmarks"))]
    lengths = {
        str(path): len(path.read_text().splitlines())
        for folder in folders
        for path in folder.rglob("*.py")
    }
    assert {path: n for path, n in lengths.items() if n > 400} == {}


def test_the_top_level_has_at_most_22_folders():
    folders = {path.parent for path in ROOT.glob("*/*.py")}
    assert len(folders) <= 22
    assert {folder.name for folder in folders} <= set(ORDER)
