"""
From NGBoost
============

For users who come from there: a distribution for each row from a table, in both; NGBoost's half runs where it is
installed.
"""

import importlib.util

from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bochner import DeepGPRegressor

X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = DeepGPRegressor(random_state=0).fit(X_train, y_train)

# %%
# ``pred_dist`` there is ``predict_dist`` here: one value with the law of each row.

law = model.predict_dist(X_test)
print(f"first row: mean {law.mean[0]:.0f}, 5 % {law.ppf(0.05)[0]:.0f}, 95 % {law.ppf(0.95)[0]:.0f}")
print(f"mean log-likelihood here {law.log_prob(y_test).mean():.3f}")

if importlib.util.find_spec("ngboost"):
    from ngboost import NGBRegressor

    X_fit, X_stop, y_fit, y_stop = train_test_split(X_train, y_train, test_size=0.2, random_state=0)
    theirs = NGBRegressor(n_estimators=1000, learning_rate=0.02, verbose=False, random_state=0)
    theirs.fit(X_fit, y_fit, X_val=X_stop, Y_val=y_stop, early_stopping_rounds=50)
    their_law = theirs.pred_dist(X_test, max_iter=theirs.best_val_loss_itr)
    print(f"mean log-likelihood there {their_law.logpdf(y_test).mean():.3f}")
else:
    print("NGBoost is not installed; `pip install ngboost` lets its half run.")

# %%
# What is the same, and what is not
# ---------------------------------
# - **The law**: chosen there (``Dist=Normal``, ``LogNormal``, ...); here by rows left out, and ``law_`` says which.
# - **Stopping**: validation rows there; here rows that each member leaves out in turn.
# - **Names**: ``logpdf``, ``ppf``, ``mean()`` there; here ``log_prob``, ``ppf``, ``mean``.
# - **Why a prediction**: feature importances and SHAP there; here ``explain``, with intervals.
# - **What more data would remove**: here ``predict_variance`` and draws of functions; there the noise alone.
# - **Censored targets** (``NGBSurvival``): there; not here.
# - **Many rows**: both take minutes for some ten thousand rows.

print(model.law_)
