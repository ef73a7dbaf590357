"""What the processes of the suite share: imported once, before they are forked. No computation starts here."""

import warnings

# JAX warns of any fork; these come before it has started a thread.
warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)

import benchmarks.suite.systems.constant  # noqa: E402
import benchmarks.suite.systems.linear  # noqa: E402
import benchmarks.suite.systems.ours  # noqa: E402
import benchmarks.suite.work  # noqa: E402, F401
import bochner.estimators  # noqa: E402, F401
