"""Downloads that can be resumed and are checked; nothing here runs unless the user asks for it."""

import hashlib
import os
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

_BLOCK = 1 << 16
_TIMEOUT_SECONDS = 30
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class DownloadError(OSError):
    """A file could not be fetched, or is not the one that was expected."""


def fetch(url: str, path: Path, sha256: str) -> None:
    """Download a file, going on from what an interrupted download left, and put it in place once it is whole.

    Args:
        url: an HTTPS address.
        path: where the file goes; beside it, `path` with `.part` added holds what has come so far.
        sha256: checksum of the whole file; another one is refused and removed.
    """
    _check_secure(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        _receive(url, part)
    except (OSError, HTTPException) as error:
        kept = part.stat().st_size if part.exists() else 0
        raise DownloadError(
            f"{url} could not be fetched ({error}). The {kept:,} bytes that came are kept: ask again to go on from "
            "there."
        ) from error
    found = hashlib.sha256(part.read_bytes()).hexdigest()
    if found != sha256:
        part.unlink()
        raise DownloadError(
            f"{url} is not the expected file: its sha256 starts with {found[:12]}, not {sha256[:12]}. It was removed; "
            "try again, or get the file elsewhere."
        )
    os.replace(part, path)


def _check_secure(url: str) -> None:
    parsed = urllib.parse.urlsplit(url)
    if parsed.scheme != "https" and parsed.hostname not in _LOOPBACK:
        raise ValueError(f"files are fetched over HTTPS only; got {url!r}.")


def _receive(url: str, part: Path) -> None:
    """Append to the part what is missing of it; a server that cannot go on sends all anew."""
    present = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "bochner"})
    if present:
        request.add_header("Range", f"bytes={present}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416 and present:  # all of it is here already
            return
        raise
    with answer, part.open("ab") as file:
        if present and answer.status != 206:
            file.truncate(0)
            present = 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else present + int(length)
        columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, transient=True) as progress:
            task = progress.add_task(part.stem, total=total, completed=present)
            while block := answer.read(_BLOCK):
                file.write(block)
                progress.advance(task, len(block))
            received = file.tell()
    if total is not None and received < total:
        raise OSError(f"the connection ended after {received:,} of {total:,} bytes")
