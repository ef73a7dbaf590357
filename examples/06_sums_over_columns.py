"""
Sums over columns, and what each explains
=========================================

For users who must say why. A sum with one term a column is an additive model; its terms and its columns have
shares, effects with intervals, and contributions to a single row.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

from bochner import DeepGPRegressor, Exact

generator = np.random.default_rng(0)
n = 200
age, dose, weight = generator.uniform(0, 1, size=(3, n))
site = generator.choice(["A", "B", "C"], size=n)
effect = {"A": 0.0, "B": 0.4, "C": -0.4}
response = (
    np.sin(5 * age) + 2 * dose + np.array([effect[name] for name in site])
    + 0.2 * generator.normal(size=n)
)  # fmt: skip
table = pa.table({"age": age, "dose": dose, "weight": weight, "site": site, "response": response})

model = DeepGPRegressor(
    Exact(kernel="rbf(age) + rbf(weight) + linear(dose) + category(site)"), random_state=0
).fit(table, "response")

# %%
# Shares of the columns and of the terms; the weight does nothing.

explanation = model.explain()
for name, share in explanation.columns.items():
    print(f"{name:8} {share:6.1%}")
print({name: round(share, 3) for name, share in explanation.parts.items()})

# %%
# The effect of each column, with intervals of drawn functions.

axes = model.plot_effects(explanation=explanation)

# %%
# One row: what each column adds to the average prediction.

row = explanation.contributions({"age": 0.3, "dose": 0.9, "weight": 0.5, "site": "B"})
print(f"average {float(row.average):.2f}, this row {float(row.mean):.2f}")
_, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
ax.barh(row.columns, row.contributions)
ax.set_xlabel("contribution to this row")
