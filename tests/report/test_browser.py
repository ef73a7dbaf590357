"""The page in a real browser: it renders, asks for nothing, complains of nothing, and fits a phone."""

import json
import os
import shutil

import pytest

from bochner.report import report_page, write_report
from tests.estimators import problems
from tests.report.conftest import HOSTILE

SOURCE = '<script>alert("1")<img src=x>.csv'

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

SECTIONS = {
    "regressor": "metrics notes predictions calibration residuals learning shares effects worst data configuration",
    "classifier": "metrics notes confusions calibration confidence learning shares effects worst data configuration",
    "stack": "metrics notes members predictions calibration residuals shares effects worst data configuration",
}
DRAWINGS = {"regressor": 5 + 3, "classifier": 4 + 2, "stack": 4 + 3}
# Sizes of what must be seen, how much each drawing holds, and whether anything sticks out.
MEASURE = """
const size = element => { const box = element.getBoundingClientRect(); return [box.width, box.height]; };
return {
  title: document.title,
  sections: [...document.querySelectorAll("section, figure")].map(e => [e.id, ...size(e)]),
  drawings: [...document.querySelectorAll("svg")].map(size),
  drawn: [...document.querySelectorAll("svg")].map(e => e.querySelectorAll("path, use, text").length),
  unresolved: [...document.querySelectorAll("use")].filter(
    e => !document.getElementById(e.getAttribute("href").slice(1))).length,
  width: document.scrollingElement.scrollWidth,
  window: window.innerWidth,
};
"""


@pytest.fixture(scope="module")
def browser():
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as opened:
        yield opened


@pytest.fixture(scope="module", params=sorted(SECTIONS))
def page(request, tmp_path_factory):
    """The kind of model, and the address of its page."""
    model = request.getfixturevalue(request.param)
    rows = problems.classes() if request.param == "classifier" else problems.numbers()
    names = [HOSTILE, "a rather long name of an input, " * 5, "w" * 200][: rows[0].shape[1]]
    path = tmp_path_factory.mktemp("page") / "report.html"
    page = report_page(model, *rows, columns=names, source=f"folder/{SOURCE}")
    write_report(path, page)
    return request.param, path.as_uri()


def requested(browser):
    """Addresses that the browser asked for since the last call, data within the page aside."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in urls if not url.startswith("data:")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_page_renders_alone_at_every_width(browser, page, width, scheme):
    kind, address = page
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get("about:blank")
    requested(browser), browser.get_log("browser")

    browser.get(address)
    assert browser.get_log("browser") == []
    assert requested(browser) == [address]
    found = browser.execute_script(MEASURE)
    assert found["title"] == f"Report: {SOURCE}"
    assert [name for name, *_ in found["sections"]] == SECTIONS[kind].split()
    assert all(min(size) > 0 for _, *size in found["sections"])
    assert len(found["drawings"]) == DRAWINGS[kind]
    assert all(min(size) > 100 for size in found["drawings"])
    assert all(count > 10 for count in found["drawn"])
    assert found["unresolved"] == 0
    assert found["window"] == width
    assert found["width"] <= width
