"""
A kernel of one's own
=====================

For users who know something of their columns. A kernel is a sum and product of covariances over named columns,
as objects or as a text, and a member like any other: rows left out say whether it helps.
"""

import numpy as np
import pyarrow as pa

from bochner import DeepGPRegressor, Exact, Linear

# %%
# Noise in a street over the hours of a week: a daily curve, and places that differ smoothly.

generator = np.random.default_rng(0)
n = 300
hour = generator.uniform(0, 24 * 7, size=n)
lat, lon = generator.uniform(0, 1, size=(2, n))
daily = 4 * np.sin(2 * np.pi * (hour - 7) / 24)
level = 55 + daily + 5 * np.sin(4 * lat) * np.cos(3 * lon) + generator.normal(size=n)
table = pa.table({"lat": lat, "lon": lon, "hour": hour, "level": level})

kernel = "rbf(lat, lon) + periodic(hour, period=24)"
members = [("linear", Linear()), ("general", Exact()), ("known", Exact(kernel=kernel))]
model = DeepGPRegressor(members, random_state=0).fit(table.slice(0, 200), "level")

# %%
# The member that knows of the day gets nearly all the weight.

for member in model.members_:
    print(f"{member['name']:44} {member['log_likelihood']:8.3f} {member['weight']:6.1%}")
print(model.evaluate(table.slice(200), "level"))

# %%
# It also knows what comes after the last hour; a general covariance does not.

hours = np.linspace(24 * 7, 24 * 8, 60)
later = pa.table({"lat": np.full(60, 0.5), "lon": np.full(60, 0.5), "hour": hours})
general = DeepGPRegressor(Exact(), random_state=0).fit(table.slice(0, 200), "level")
known = DeepGPRegressor(Exact(kernel=kernel), random_state=0).fit(table.slice(0, 200), "level")
truth = 55 + 4 * np.sin(2 * np.pi * (hours - 7) / 24) + 5 * np.sin(2) * np.cos(1.5)
for name, one in (("general", general), ("known", known)):
    print(f"{name}: RMSE of the next day {np.sqrt(np.mean((one.predict(later) - truth) ** 2)):.2f}")
