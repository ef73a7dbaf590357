"""Tables in memory, and Arrow datasets."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from bochner.tables.casting import TableError
from bochner.tables.readers import AbstractTypedReader


class MemoryReader(AbstractTypedReader):
    """An Arrow table in memory."""

    def __init__(self, table: pa.Table):
        self._table = table
        self.schema, self.n_rows = table.schema, table.num_rows

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        yield from self._table.select(columns).to_batches(max_chunksize=n_rows)


class DatasetReader(AbstractTypedReader):
    """An Arrow dataset, whatever its files are."""

    def __init__(self, dataset: pyarrow.dataset.Dataset):
        self._dataset = dataset
        self.schema, self.n_rows = dataset.schema, None

    def read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: D102
        settings: dict[str, Any] = {}
        files = getattr(self._dataset, "format", None)
        if isinstance(files, pyarrow.dataset.ParquetFileFormat):
            settings["fragment_scan_options"] = pyarrow.dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True, pre_buffer=False
            )
        # Little is read ahead: by default whole row groups of several files are held at once.
        yield from self._dataset.scanner(
            columns=columns,
            batch_size=n_rows,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
            **settings,
        ).to_batches()


def frame_to_arrow(frame: Any) -> pa.Table:
    """Give a pandas or Polars frame as an Arrow table."""
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise TableError(
            f"the frame cannot be read ({'; '.join(map(str, error.args))}). Give each column values of one type."
        ) from error
