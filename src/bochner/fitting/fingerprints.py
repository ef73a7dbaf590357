"""Which rows a fit has seen: told from the hashes of a few."""

import hashlib

import numpy as np
from jaxtyping import Float, Shaped, UInt64

MOST = 1000
"""Hashes that are kept at most."""

Hashes = UInt64[np.ndarray, " rows"]


def fingerprints(X: Float[np.ndarray, "n d"], Y: Shaped[np.ndarray, "n targets"]) -> Hashes:
    """Compute the smallest hashes of rows, which are those of rows chosen by nothing but what they hold.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.fingerprints import fingerprints, share_seen
        >>> X = np.arange(5000.0)[:, None]
        >>> kept = fingerprints(X, X)
        >>> len(kept), share_seen(kept, X[:400], X[:400]), share_seen(kept, X[:400], X[1:401])
        (1000, 1.0, 0.0)
    """
    return np.unique(_hashes(X, Y))[:MOST]


def share_seen(
    kept: Hashes, X: Float[np.ndarray, "n d"], Y: Shaped[np.ndarray, "n targets"]
) -> float | None:
    """Estimate which share of some rows is equal, inputs and targets, to rows of the fit; None where nothing tells.

    Rows whose hash is not above the largest that was kept are a random part of all: of these it is known.

    Args:
        kept: the smallest hashes of the rows of the fit.
        X: rows.
        Y: their targets.
    """
    if not len(kept):
        return None
    found = _hashes(X, Y)
    comparable = found if len(kept) < MOST else found[found <= kept[-1]]
    return float(np.mean(np.isin(comparable, kept))) if len(comparable) else None


def _hashes(X: np.ndarray, Y: np.ndarray) -> Hashes:
    # Adding zero makes one of its two signs.
    rows = np.ascontiguousarray(np.column_stack([X, Y]).astype(np.float64) + 0.0)
    digests = b"".join(hashlib.blake2b(row.data, digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, np.uint64)
