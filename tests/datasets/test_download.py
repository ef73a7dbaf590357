"""Downloads, against a server on this machine."""

import contextlib
import functools
import hashlib
import http.server
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bochner.datasets import DataNotFoundError, DownloadError, download, files
from bochner.datasets.download import fetch

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the content, from the middle if asked and able, and may break off."""

    def __init__(self, server_state, *arguments):
        self.state = server_state
        super().__init__(*arguments)

    def do_GET(self):
        asked = self.headers.get("Range")
        self.state["asked"].append(asked)
        if self.state["sends_on_to"]:
            self.send_response(302)
            self.send_header("Location", self.state["sends_on_to"])
            self.end_headers()
            return
        start = 0
        if asked and self.state["resumes"]:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(self.state["content"]):
                self.send_error(416)
                return
        body = self.state["content"][start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", self.state["length"] or str(len(body)))
        self.end_headers()
        if self.state["drips"]:
            self.drip(body)
            return
        if self.state["breaks"]:
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def drip(self, body):
        with contextlib.suppress(OSError):  # once the other side has had enough
            for i in range(len(body)):
                self.wfile.write(body[i : i + 1])
                time.sleep(0.01)

    def log_message(self, *_):
        pass


@pytest.fixture
def state():
    return {
        "content": CONTENT, "breaks": False, "resumes": True, "asked": [], "sends_on_to": None,
        "length": None, "drips": False,
    }  # fmt: skip


@pytest.fixture
def url(state):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, state))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/file.bin"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_arrives_whole_and_no_part_is_left(url, tmp_path):
    path = tmp_path / "new" / "file.bin"
    fetch(url, path, SHA256)
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


def test_a_broken_download_goes_on_from_what_came(url, state, tmp_path):
    path = tmp_path / "file.bin"
    state["breaks"] = True
    with pytest.raises(DownloadError, match=r"150,000 bytes that came are kept: ask again"):
        fetch(url, path, SHA256)
    assert not path.exists()
    state["breaks"] = False
    fetch(url, path, SHA256)
    assert path.read_bytes() == CONTENT
    assert state["asked"] == [None, "bytes=150000-"]


def test_a_server_that_cannot_go_on_sends_all_anew(url, state, tmp_path):
    path = tmp_path / "file.bin"
    (tmp_path / "file.bin.part").write_bytes(b"something else")
    state["resumes"] = False
    fetch(url, path, SHA256)
    assert path.read_bytes() == CONTENT


def test_a_part_that_is_already_whole_is_put_in_place(url, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    fetch(url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_another_file_is_refused_and_removed(url, state, tmp_path):
    state["content"] = CONTENT[:-1] + b"x"
    with pytest.raises(DownloadError, match="not the expected file"):
        fetch(url, tmp_path / "file.bin", SHA256)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_an_error_with_its_address(tmp_path):
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:9/x could not be fetched"):
        fetch("http://127.0.0.1:9/x", tmp_path / "x", SHA256)


@pytest.mark.parametrize(
    "url",
    ["http://example.org/x", "file://localhost/etc/passwd", "ftp://127.0.0.1/x", "file:///etc/x"],
)
def test_other_than_https_is_refused_beyond_this_machine(tmp_path, url):
    with pytest.raises(ValueError, match="HTTPS only"):
        fetch(url, tmp_path / "x", SHA256)
    assert all(source.startswith("https://") for source in files.SOURCES.values())


@pytest.mark.parametrize("place", ["http://example.org/x", "ftp://127.0.0.1/x", "file:///etc/x"])
def test_a_redirect_cannot_leave_https(url, state, tmp_path, place):
    state["sends_on_to"] = place
    with pytest.raises(DownloadError, match=r"HTTPS only|HTTP Error 302"):
        fetch(url, tmp_path / "x", SHA256)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["http://127.0.0.1:631/", "https://localhost/x"])
def test_a_server_elsewhere_cannot_send_on_to_this_machine(place):
    request = urllib.request.Request("https://example.org/x")
    with pytest.raises(OSError, match="programs on this machine"):
        download._SecureRedirects().redirect_request(request, None, 302, "", {}, place)


@pytest.mark.parametrize("length", ["many", "-5", "1.5", "9" * 5000])
def test_an_odd_length_is_an_error_in_words(url, state, tmp_path, length):
    state["length"] = length
    with pytest.raises(DownloadError, match=r"says that its length is|more than 500,000,000 bytes"):
        fetch(url, tmp_path / "x", SHA256)


@pytest.mark.parametrize("announced", [True, False])
def test_more_bytes_than_the_limit_are_not_taken(url, state, tmp_path, monkeypatch, announced):
    monkeypatch.setattr(download, "_MOST_BYTES", 200_000)
    if not announced:
        monkeypatch.setattr(download, "_announced", lambda length, present: None)
    with pytest.raises(DownloadError, match="more than 200,000 bytes"):
        fetch(url, tmp_path / "x", SHA256)
    assert list(tmp_path.iterdir()) == []


def test_a_download_by_drops_is_given_up_and_what_came_is_kept(url, state, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_MOST_SECONDS", 0.2)
    state["drips"] = True
    with pytest.raises(DownloadError, match=r"more than 0.2 seconds.* bytes that came are kept"):
        fetch(url, tmp_path / "x", SHA256)
    assert 0 < (tmp_path / "x.part").stat().st_size < 1000


def test_of_six_at_once_one_downloads(url, state, tmp_path):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: fetch(url, tmp_path / "x", SHA256), range(6)))
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert state["asked"] == [None]


def test_a_missing_file_is_fetched_into_the_cache_only_when_asked(
    url, state, tmp_path, monkeypatch
):
    monkeypatch.setenv("BOCHNER_CACHE", str(tmp_path))
    monkeypatch.delenv("BOCHNER_DATA", raising=False)
    monkeypatch.setitem(files.CHECKSUMS, "file.bin", SHA256)
    monkeypatch.setitem(files.SOURCES, "file.bin", url)
    with pytest.raises(DataNotFoundError, match=r"`download=True`"):
        files.checked_path("file.bin")
    assert state["asked"] == []
    assert files.checked_path("file.bin", download=True) == tmp_path / "file.bin"
    assert files.checked_path("file.bin").read_bytes() == CONTENT
    assert len(state["asked"]) == 1


def test_a_file_without_a_public_source_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("BOCHNER_CACHE", str(tmp_path))
    monkeypatch.delenv("BOCHNER_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match="no public source in this form"):
        files.checked_path("yacht.npz", download=True)
