"""What a way to read tables must offer, and the errors of reading in words."""

import abc
import contextlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from bochner.tables.casting import TableError

ROWS_OF_A_BATCH = 65_536
"""What a batch has where nobody asks for another number."""

BYTES_OF_A_BATCH = 64 << 20
"""Batches have fewer rows than asked for where they would hold more than about this."""


MOST_COLUMNS = 30_000


def check_width(n_columns: int) -> None:
    """Refuse a table of more columns than can be read in reasonable time and memory.

    Example:
        >>> from bochner.tables.readers import check_width
        >>> check_width(200_000)
        Traceback (most recent call last):
        bochner.tables.casting.TableError: there are 200,000 columns; at most 30,000 are read. Choose among them first.
    """
    if n_columns > MOST_COLUMNS:
        raise TableError(
            f"there are {n_columns:,} columns; at most {MOST_COLUMNS:,} are read. Choose among them first."
        )


class AbstractReader(abc.ABC):
    """Reads the rows of a table from its start, as often as asked, in bounded memory."""

    schema: pa.Schema
    n_rows: int | None

    @abc.abstractmethod
    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        """Give batches of about `n_rows` rows; their columns may come in any order."""

    @abc.abstractmethod
    def texts(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Give some columns as the text that they have."""

    @abc.abstractmethod
    def take_as_text(self, columns: Sequence[str]) -> None:
        """Read some columns as text from now on, where they are so in the file."""

    @property
    @abc.abstractmethod
    def separator(self) -> str:
        """What stands between fields; empty where nothing does."""

    @property
    @abc.abstractmethod
    def read_as_numbers(self) -> list[str]:
        """The columns of decimal numbers that are text in the file."""


class AbstractTypedReader(AbstractReader):
    """Reads tables that say which of their columns are text."""

    def texts(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: D102
        return self.read(list(columns), ROWS_OF_A_BATCH)

    def take_as_text(self, columns: Sequence[str]) -> None:  # noqa: D102
        return

    @property
    def separator(self) -> str:  # noqa: D102
        return ""

    @property
    def read_as_numbers(self) -> list[str]:  # noqa: D102
        return []


@contextlib.contextmanager
def errors_in_words(name: str) -> Iterator[None]:
    """Turn what Arrow, NumPy and the system raise into a `TableError` that names the table."""
    try:
        yield
    except TableError as error:
        if str(error).startswith(f"{name}: "):
            raise
        raise TableError(f"{name}: {error}") from error
    except FileNotFoundError as error:
        raise TableError(f"{name}: there is no such file. Check the path.") from error
    except PermissionError as error:
        raise TableError(
            f"{name}: the file may not be read. Check its permissions, and that it is a file."
        ) from error
    except MemoryError as error:
        raise TableError(
            f"{name}: a part of the file does not fit into memory. It may be damaged; write it again, Parquet files "
            "with smaller row groups."
        ) from error
    except (
        pa.ArrowException, OSError, ValueError, KeyError, EOFError, OverflowError,
        zipfile.BadZipFile, zlib.error, RuntimeError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason if len(reason) <= 300 else f"{reason[:297]}..."
        raise TableError(
            f"{name}: the table cannot be read ({reason}). Check that the file is complete and undamaged."
        ) from error
