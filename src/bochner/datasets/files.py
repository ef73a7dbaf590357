"""Where data files are, and whether they are whole."""

import hashlib
import os
from pathlib import Path

CHECKSUMS = {
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


class DataNotFoundError(FileNotFoundError):
    """A data file is not where `BOCHNER_DATA` points."""


def checked_path(filename: str) -> Path:
    """Give the path of a data file after comparing its checksum."""
    folder = os.environ.get("BOCHNER_DATA")
    if not folder:
        raise DataNotFoundError(
            f"the environment variable BOCHNER_DATA is not set; it must name the folder that holds {filename}."
        )
    path = Path(folder) / filename
    if not path.is_file():
        raise DataNotFoundError(f"there is no {filename} in BOCHNER_DATA={folder}.")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != CHECKSUMS[filename]:
        raise ValueError(
            f"{path} is not the expected file: its sha256 starts with {found[:12]}, not {CHECKSUMS[filename][:12]}. "
            "Replace it with an intact copy."
        )
    return path
