"""What readers see first stays short and true: README, pages of docs, reference, citation."""

import inspect
import re
from pathlib import Path

import pytest

from bochner import DeepGPClassifier, DeepGPRegressor
from bochner.version import __version__

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_the_readme_is_read_in_a_minute():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_first_whom_it_is_for(page):
    beginning = page.read_text(encoding="utf-8").split("\n\n", 2)[1]
    assert beginning.startswith("For "), beginning


def test_all_pages_are_in_the_index_of_the_site():
    listed = (ROOT / "docs/index.md").read_text(encoding="utf-8").split()
    assert {page.stem for page in PAGES} - {"index"} <= set(listed)


def test_links_to_files_of_the_repository_lead_somewhere():
    pages = [*PAGES, *ROOT.glob("*.md"), *(ROOT / "experiments/notes").glob("*.md")]
    written_later = ROOT / "benchmarks/results/suite.md"
    built = ROOT / "docs/gallery"  # from the examples, with the site
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if path.is_relative_to(built):
                example = path.relative_to(built).with_suffix(".py")
                path = ROOT / "examples" / ("" if example.stem == "index" else example)
            assert path.exists() or path == written_later, f"{page.name}: {target}"


def test_public_names_are_in_the_reference():
    listed = (ROOT / "docs/public.md").read_text(encoding="utf-8")
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md")
    )
    documented = set(re.findall(r"\.\. auto\w+:: ([\w.]+)", text))
    beside = listed[listed.index("## Beside the estimators") :]
    module, missing = "", []
    for row in re.findall(r"^\|(.*)\|$", beside, re.MULTILINE):
        place, offered, *_ = row.split("|")
        module = (re.findall(r"`([\w.]+)`", place) or [module])[0]
        names = re.findall(r"`(\w+)`", offered)
        found = {f"{module}.{name}" for name in names if name == "RBF" or not name.isupper()}
        missing += sorted(found - documented)
    assert not missing


def test_the_citation_names_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation


@pytest.mark.parametrize("estimator", [DeepGPRegressor, DeepGPClassifier])
def test_public_methods_say_what_is_in_what_they_return(estimator):
    listed = set(re.findall(r"`(\w+)", (ROOT / "docs/public.md").read_text(encoding="utf-8")))
    methods = inspect.getmembers(estimator, inspect.isfunction)
    public = {name: each for name, each in methods if name in listed}
    several = {
        name: each
        for name, each in public.items()
        if re.search(r"tuple|dict|list|array", str(inspect.signature(each).return_annotation))
    }
    assert "sample_y" in several
    assert [name for name, each in several.items() if "Returns:" not in (each.__doc__ or "")] == []
