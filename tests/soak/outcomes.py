"""What may come of a case: what counts as wrong, and what as refused in the right way."""

import re
import traceback
import warnings

# Of NumPy, SciPy and scikit-learn, about numbers that users never see.
_RAW_WARNINGS = re.compile(
    r"encountered in|Mean of empty slice|Degrees of freedom|ill-conditioned|UserWarning: One of|did not converge"
)
_LONGEST_MESSAGE = 2000


class WrongError(AssertionError):
    """Something that must not happen."""


class RefusedError(Exception):
    """The library said in words why it does not do what was asked."""


def demand(holds, what):
    """Note what is wrong where something does not hold."""
    if not holds:
        raise WrongError(what)


def check_error(error):
    """Turn an error of the library into a refusal, if it is one in words; any other is wrong."""
    from bochner.training import TrainingDivergedError

    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    # scikit-learn's validation is part of the interface.
    ours = "/bochner/" in raised_in or "/sklearn/utils/" in raised_in
    known = isinstance(error, ValueError | TypeError | OSError | TrainingDivergedError)
    if ours and known and 10 < len(str(error)) < _LONGEST_MESSAGE:
        raise RefusedError(str(error)) from error
    raise error


def check_warnings(caught: list[warnings.WarningMessage]):
    """Warnings are in words of the library."""
    raw = [str(one.message) for one in caught if _RAW_WARNINGS.search(str(one.message))]
    demand(not raw, f"raw warnings: {raw[:3]}")


def check_finished(returncode, output, errors):
    """A command ended well or said in words why not."""
    demand("Traceback" not in errors, f"a traceback: {errors[-1500:]}")
    demand(returncode in (0, 1, 3), f"exit code {returncode}: {errors[-1500:]}")
    demand(not _RAW_WARNINGS.search(errors), f"raw warnings: {errors[-1500:]}")
    if returncode:
        demand("Error: " in errors, f"no message: {errors[-1500:]}")
        demand(len(errors) < 2 * _LONGEST_MESSAGE, f"a long message: {errors[:1500]}")
        raise RefusedError(errors[errors.index("Error: ") :].strip())
    return output
