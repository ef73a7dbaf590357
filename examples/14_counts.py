"""
Counts
======

For users whose targets are whole numbers: visitors, failures, orders. The law of the target is found by the fit,
and predictions are of whole numbers: a probability for each count, and intervals that end on counts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bochner import DeepGPRegressor

generator = np.random.default_rng(0)


def days(n):
    """Simulate visitors of a museum: more in summer and on weekends, and more spread than chance alone gives."""
    frame = pd.DataFrame(
        {
            "week": generator.uniform(0, 52, n),
            "weekend": generator.choice(["yes", "no"], n, p=[2 / 7, 5 / 7]),
        }
    )
    rate = np.exp(
        2 + 0.8 * np.sin((frame["week"] - 13) / 52 * 2 * np.pi) + 0.7 * (frame["weekend"] == "yes")
    )
    return frame, generator.poisson(rate * generator.gamma(8, 1 / 8, n))


X_train, y_train = days(500)
X_test, y_test = days(2000)

model = DeepGPRegressor(random_state=0).fit(X_train, y_train)
print(model.law_)
print(model.evaluate(X_test, y_test))

# %%
# The distribution of a day
# -------------------------
# Its distribution function steps at whole numbers; a difference of two steps is the probability of a count.

saturday = pd.DataFrame({"week": [26.0], "weekend": ["yes"]})
law = model.predict_dist(saturday)
counts = np.arange(0, 61)
up_to = law.cdf(np.append(-1, counts)[None])[0]
print(
    f"P(more than 40 visitors) = {1 - law.cdf(40.0)[0]:.3f}; 90 % interval {model.predict_interval(saturday)[0]}"
)

_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.bar(counts, np.diff(up_to), color="C0")
ax.set_xlabel("visitors on a Saturday of week 26")
ax.set_ylabel("probability")

# %%
# A year, with its intervals
# --------------------------

weeks = pd.DataFrame({"week": np.linspace(0, 52, 105), "weekend": "no"})
low, middle, high = model.predict_quantiles(weeks, [0.05, 0.5, 0.95]).T
weekdays = X_train["weekend"] == "no"
_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.fill_between(weeks["week"], low, high, alpha=0.3, step="mid", label="90 % of weekdays")
ax.step(weeks["week"], middle, where="mid", label="median")
ax.plot(
    X_train["week"][weekdays],
    y_train[weekdays],
    ".",
    color="gray",
    markersize=3,
    label="weekdays seen",
)
ax.set_xlabel("week of the year")
ax.set_ylabel("visitors")
ax.legend(frameon=False)
