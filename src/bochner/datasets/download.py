"""Downloads that can be resumed, have limits and are checked; nothing here runs unless the user asks for it."""

import hashlib
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from bochner.system.locks import alone_in

_BLOCK = 1 << 16
_TIMEOUT_SECONDS = 30
_MOST_SECONDS = 1800
_MOST_BYTES = 500_000_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class DownloadError(OSError):
    """A file could not be fetched, or is not the one that was expected."""


class _NotTheFileError(OSError):
    """What comes cannot be the file."""


def fetch(url: str, path: Path, sha256: str) -> None:
    """Download a file, going on from what an interrupted download left, and put it in place once it is whole.

    Processes that want files of one folder take turns. What takes half an hour, or has more than 500 MB, is given up.

    Args:
        url: an HTTPS address; it may send on to others of this kind only.
        path: where the file goes; beside it, `path` with `.part` added holds what has come so far.
        sha256: checksum of the whole file; another one is refused and removed.
    """
    _check_secure(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone_in(path.parent):
        if path.exists() and _sha256(path) == sha256:
            return  # another process was faster
        _fetch_alone(url, path, sha256)


def _fetch_alone(url: str, path: Path, sha256: str) -> None:
    part = path.with_name(path.name + ".part")
    try:
        _receive(url, part)
    except _NotTheFileError as error:
        part.unlink(missing_ok=True)
        raise DownloadError(
            f"{url} is not the expected file: {error}. Get it elsewhere."
        ) from error
    except (OSError, HTTPException) as error:
        kept = part.stat().st_size if part.exists() else 0
        raise DownloadError(
            f"{url} could not be fetched ({error}). The {kept:,} bytes that came are kept: ask again to go on from "
            "there."
        ) from error
    found = _sha256(part)
    if found != sha256:
        part.unlink()
        raise DownloadError(
            f"{url} is not the expected file: its sha256 starts with {found[:12]}, not {sha256[:12]}. It was removed; "
            "try again, or get the file elsewhere."
        )
    os.replace(part, path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_secure(url: str) -> None:
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme != "https" and not (scheme == "http" and _is_local(url)):
        raise ValueError(f"files are fetched over HTTPS only; got {url!r}.")


def _is_local(url: str) -> bool:
    return urllib.parse.urlsplit(url).hostname in _LOOPBACK


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to secure addresses only."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        try:
            _check_secure(newurl)
            if _is_local(newurl) and not _is_local(req.full_url):
                raise ValueError("programs on this machine are none of a server's business.")
        except ValueError as error:
            raise OSError(f"it sends on to another place: {error}") from error
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _receive(url: str, part: Path) -> None:
    """Append to the part what is missing of it; a server that cannot go on sends all anew."""
    end = time.monotonic() + _MOST_SECONDS
    present = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "bochner"})
    if present:
        request.add_header("Range", f"bytes={present}-")
    try:
        opener = urllib.request.build_opener(_SecureRedirects)
        answer = opener.open(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416 and present:  # all of it is here already
            return
        raise
    with answer, part.open("ab") as file:
        if present and answer.status != 206:
            file.truncate(0)
            present = 0
        total = _announced(answer.headers.get("Content-Length"), present)
        columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, transient=True) as progress:
            task = progress.add_task(part.stem, total=total, completed=present)
            while block := answer.read1(_BLOCK):
                file.write(block)
                progress.advance(task, len(block))
                _check_size(file.tell())
                if time.monotonic() > end:
                    raise OSError(f"it took more than {_MOST_SECONDS:,} seconds")
            received = file.tell()
    if total is not None and received < total:
        raise OSError(f"the connection ended after {received:,} of {total:,} bytes")


def _announced(length: str | None, present: int) -> int | None:
    """Give how many bytes the whole file has, as the server says."""
    if length is None:
        return None
    if not (length.isascii() and length.isdigit()):
        raise OSError(f"the server says that its length is {length[:40]!r}")
    _check_size(present + int(length[:20]))
    return present + int(length)


def _check_size(n_bytes: int) -> None:
    if n_bytes > _MOST_BYTES:
        raise _NotTheFileError(f"it has more than {_MOST_BYTES:,} bytes")
