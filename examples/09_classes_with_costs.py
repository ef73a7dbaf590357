"""
Classes with costs
==================

For users who decide. A missed tumor costs far more than a needless biopsy; with calibrated probabilities the
best threshold follows from the costs, and needs no search.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from bochner import DeepGPClassifier

data = load_breast_cancer()
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(data.data, y, random_state=0, stratify=y)

model = DeepGPClassifier(random_state=0).fit(X_train, y_train)
print(model.evaluate(X_test, y_test))
ax = model.plot_calibration(X_test, y_test)

# %%
# The expected cost of letting go is the probability of a malignant tumor times 20; that of a biopsy is the
# probability of a benign one times 1. So a biopsy is right from a probability of 1/21 on.

MISSED, NEEDLESS = 20, 1
probability = model.predict_proba(X_test)[:, list(model.classes_).index("malignant")]
malignant = y_test == "malignant"


def cost(threshold):
    """Total cost on the test rows, if a biopsy is made from some probability on."""
    biopsy = probability >= threshold
    return MISSED * np.sum(malignant & ~biopsy) + NEEDLESS * np.sum(~malignant & biopsy)


best = NEEDLESS / (NEEDLESS + MISSED)
print(f"cost at one half {cost(0.5)}, at {best:.3f} {cost(best)}; biopsy for all {cost(0.0)}")

# %%
thresholds = np.linspace(0.0, 1.0, 101)
_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.plot(thresholds, [cost(threshold) for threshold in thresholds], label="cost on test rows")
ax.axvline(best, color="gray", linestyle="--", label="what the costs say")
ax.set_xlabel("biopsy from this probability on")
ax.set_ylabel("cost")
ax.legend(frameon=False)
