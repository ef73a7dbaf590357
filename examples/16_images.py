"""
Images
======

For users with pictures of one size: each pixel is a column. Handwritten digits of 8 by 8 pixels, which of them the
model finds doubtful, and what it says of pictures unlike those it has learned from.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bochner import DeepGPClassifier, Exact

images, labels = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    images, labels, train_size=600, random_state=0, stratify=labels
)

# %%
# Pixels say little one by one, so one smooth covariance of all of them is enough; without ``Exact(...)`` further
# members join, and take longer.

model = DeepGPClassifier(Exact(kernel="rbf"), random_state=0).fit(X_train, y_train)
print(model.evaluate(X_test, y_test))

# %%
# The test pictures whose class is least certain: people would hesitate, too.

probabilities = model.predict_proba(X_test)
doubtful = np.argsort(probabilities.max(axis=1))[:8]
_, axes = plt.subplots(1, 8, figsize=(9, 1.6), layout="constrained")
for ax, index in zip(axes, doubtful, strict=True):
    first, second = np.argsort(probabilities[index])[::-1][:2]
    ax.imshow(X_test[index].reshape(8, 8), cmap="gray_r")
    ax.set_title(
        f"{first} {probabilities[index, first]:.0%}, {second} {probabilities[index, second]:.0%}",
        fontsize=7,
    )
    ax.axis("off")

# %%
# Pictures unlike all training pictures
# -------------------------------------
# Inverted digits. ``novelty`` says how far a picture is from the training rows: near 0 among them, near 1 far out.

inverted = 16 - X_test
novelty, novelty_of_inverted = model.novelty(X_test), model.novelty(inverted)
print(
    f"novelty of digits {np.median(novelty):.2f}, of inverted ones {np.median(novelty_of_inverted):.2f}"
)
tops = [model.predict_proba(pictures).max(axis=1).mean() for pictures in (X_test, inverted)]
print(f"mean top probability {tops[0]:.2f} and {tops[1]:.2f}")

_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
bins = np.linspace(0, 1, 41)
ax.hist(novelty, bins, alpha=0.6, label="digits")
ax.hist(novelty_of_inverted, bins, alpha=0.6, label="inverted digits")
ax.set_xlabel("novelty")
ax.set_ylabel("pictures")
ax.legend(frameon=False)
