"""
Text, dates and missing values
==============================

For users with tables as they are. Columns are encoded by their type, and the encoding is part of the model and
of its file.
"""

import datetime

import numpy as np
import pyarrow as pa

from bochner import DeepGPRegressor

# %%
# Prices of flats: a category, a date, a truth value and numbers, some of them missing.

generator = np.random.default_rng(0)
n = 400
area = generator.gamma(6, 12, size=n)
district = generator.choice(
    ["center", "north", "south", "harbor"], size=n, p=[0.4, 0.3, 0.25, 0.05]
)
sold = generator.integers(0, 2000, size=n)
balcony = generator.random(n) < 0.5
worth = {"center": 5.0, "north": 3.2, "south": 2.8, "harbor": 4.4}
per_meter = np.array([worth[name] for name in district]) * (1 + sold / 4000)
price = area * per_meter + 10 * balcony + 12 * generator.normal(size=n)

unknown = generator.random(n) < 0.1
table = pa.table(
    {
        "area": pa.array(area, mask=unknown),
        "district": pa.array(district),
        "sold": pa.array(
            [datetime.date(2018, 1, 1) + datetime.timedelta(int(day)) for day in sold]
        ),
        "balcony": pa.array(balcony),
        "price": price,
    }
)
known, new = table.slice(0, 300), table.slice(300)

# %%
model = DeepGPRegressor(random_state=0).fit(known, "price")
print(model.evaluate(new, "price"))
axes = model.plot_effects()

# %%
# Rows with a missing area get wider intervals, and a district that nobody has seen is no error.

low, high = model.predict_interval(new, coverage=0.9).T
missing = unknown[300:]
print(
    f"width with the area {np.mean((high - low)[~missing]):.0f}, without {np.mean((high - low)[missing]):.0f}"
)

row = {"area": 80.0, "district": "island", "sold": datetime.date(2023, 1, 1), "balcony": True}
stranger = pa.Table.from_pylist([row], schema=known.drop(["price"]).schema)
print("a flat on the island:", model.predict_interval(stranger, coverage=0.9).round())
