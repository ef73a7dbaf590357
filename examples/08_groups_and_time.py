"""
Groups and time in validation
=============================

For users whose rows are no independent draws: several rows of one patient, or rows in time. Rows to judge by
must be as new as those to be predicted, in the fit and beside it.
"""

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit, cross_val_score

from bochner import DeepGPRegressor

# %%
# Five rows of each of 40 patients. Two columns tell who it is, and each patient has a level of their own.

generator = np.random.default_rng(0)
patient = np.repeat(np.arange(40), 5)
habits = generator.normal(size=(40, 2))[patient]
dose = generator.uniform(size=200)
y = 2 * dose + generator.normal(size=40)[patient] + 0.2 * generator.normal(size=200)
X = np.column_stack([dose, habits])
model = DeepGPRegressor(random_state=0)

# %%
# Random folds see every patient before, and promise too much of new patients.

random_folds = KFold(5, shuffle=True, random_state=0).split(X)
for name, folds in (
    ("random folds", random_folds),
    ("whole patients", GroupKFold(5).split(X, y, patient)),
):
    scores = cross_val_score(model, X, y, cv=folds)
    print(f"{name:16} R squared {scores.mean():6.3f}")

# %%
# The same holds within a fit, where left-out rows decide weights. ``groups`` leaves out whole patients, so that
# what only recognizes patients gets less weight; predictions of new ones become better.

train, new = patient < 30, patient >= 30
for groups in (None, patient[train]):
    fitted = DeepGPRegressor(random_state=0).fit(X[train], y[train], groups=groups)
    found = fitted.evaluate(X[new], y[new])
    print(
        "by rows    " if groups is None else "by patients",
        {k: round(v, 3) for k, v in found.items()},
    )

# %%
# In time, judge by what comes later: ``TimeSeriesSplit`` beside the fit, and ``validation`` within it.

time = np.linspace(0, 10, 200)[:, None]
drift = np.sin(time[:, 0]) + 0.1 * time[:, 0] ** 2 + 0.1 * generator.normal(size=200)
folds = TimeSeriesSplit(3)
print("R squared of later rows", cross_val_score(model, time, drift, cv=folds).round(2))
fitted = DeepGPRegressor(random_state=0).fit(
    time[:140], drift[:140], validation=(time[140:160], drift[140:160])
)
print(fitted.evaluate(time[160:], drift[160:]))
