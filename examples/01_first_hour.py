"""
The first hour: table, model, report, decision
==============================================

For users who begin. Ten measurements of 442 patients, and how far their diabetes went on in a year. Whom to see
first?
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bochner import DeepGPRegressor, load
from bochner.report import report_page, write_report

# %%
# A table
# -------
# Frames, Arrow tables and files are fitted as they are; here an Arrow table with named columns.

data = load_diabetes(scaled=False)
table = pa.table(
    {**dict(zip(data.feature_names, data.data.T, strict=True)), "progression": data.target}
)
known, new = train_test_split(np.arange(len(table)), random_state=0)
known, new = table.take(known), table.take(new)

# %%
# A model
# -------
# No option is set. Each member of the stack is judged by rows that it has not seen, and gets its weight by
# that.

model = DeepGPRegressor(random_state=0).fit(known, "progression")
for member in model.members_:
    print(f"{member['name']:40} {member['log_likelihood']:8.3f} {member['weight']:6.1%}")

# %%
# On left-out rows it does better than a constant and a linear model; on the held-out rows its 90 % intervals
# hold about what they promise.

print(model.summary_)
truth = new["progression"].to_numpy()
print(model.evaluate(new, "progression"))

# %%
# What matters
# ------------

explanation = model.explain()
axes = model.plot_effects(list(explanation.columns)[:3], explanation=explanation)

# %%
# A decision
# ----------
# The mean says who is expected to get worse; the interval says about whom that is known. Somebody who must not
# be missed has a high upper end.

mean, deviation = model.predict(new, return_std=True)
low, high = model.predict_interval(new, coverage=0.8).T
for row in np.argsort(-high)[:5]:
    print(f"patient {row:3}: {low[row]:3.0f} to {high[row]:3.0f}, observed {truth[row]:3.0f}")

# %%
# A file and a report
# -------------------
# The file holds the encoding of the table, too. The report is one page that opens offline.

folder = Path(tempfile.mkdtemp())
model.save(folder / "progression.bochner")
again = load(folder / "progression.bochner")
assert np.array_equal(again.predict(new), mean)

page = report_page(again, new, "progression", source="diabetes")
write_report(folder / "progression.html", page)
