"""The parameters of both estimators, those of their members included."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from bochner.fitting.config import check_choice, check_positive
from bochner.fitting.names import naming_what_was_meant, no_such_setting
from bochner.fitting.recipes import PRESETS
from bochner.fitting.resolving import Asked
from bochner.fitting.session import Session
from bochner.fitting.settings import Deep
from bochner.members.fit import AUTO, with_preset
from bochner.system.compiled_programs import keep_compiled_programs


@naming_what_was_meant
class Parameters(BaseEstimator):
    """What concerns every fit; what concerns one kind of member is a parameter of that member."""

    def __init__(
        self,
        members: Any = "auto",
        *,
        preset="auto",
        likelihood="auto",
        max_seconds=None,
        warm_start=False,
        checkpoint=None,
        checkpoint_seconds=60.0,
        resume=False,
        callbacks=None,
        device=None,
        distributed=None,
        random_state=None,
        verbose=0,
    ):
        self.members = members
        self.preset = preset
        self.likelihood = likelihood
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.resume = resume
        self.callbacks = callbacks
        self.device = device
        self.distributed = distributed
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters, with `deep` also those of members: `members__n_layers`, or by a member's name.

        Args:
            deep: whether to go into members.

        Returns:
            Values by name.
        """
        found = super().get_params(deep)
        for name, member in self._named_members() if deep else ():
            found |= {name: member}
            found |= {f"{name}__{key}": value for key, value in member.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of members by `members__n_layers` or by a member's name, which alone replaces it.

        Args:
            **params: values by name.
        """
        if "members" in params:
            self.members = params.pop("members")
        names = {name for name, _ in self._named_members()}
        replaced = {name: params.pop(name) for name in names & params.keys()}
        if replaced:
            pairs: Any = self.members
            self.members = type(pairs)((name, replaced.get(name, one)) for name, one in pairs)
        known = self.get_params(deep=True)
        for name in params:
            if name not in known:
                raise ValueError(no_such_setting(type(self).__name__, name, known))
        return super().set_params(**params)

    def _named_members(self) -> list[tuple[str, BaseEstimator]]:
        """The members that have names; what is no such pair is refused by `fit`."""
        members: Any = self.members
        pairs = members if isinstance(members, list | tuple) else []
        pairs = [pair for pair in pairs if isinstance(pair, list | tuple) and len(pair) == 2]
        return [(n, one) for n, one in pairs if isinstance(n, str) and hasattr(one, "get_params")]

    def _check_names_of_members(self) -> None:
        taken = self.get_params(deep=False)
        for name, _ in self._named_members():
            if name in taken or "__" in name:
                raise ValueError(
                    "the name of a member must not be that of a parameter, nor hold two underscores; "
                    f"got {name!r}."
                )

    def _asked(self) -> Asked:
        """Put together what the parameters say, checked."""
        keep_compiled_programs()
        check_choice("preset", self.preset, PRESETS)
        self._check_names_of_members()
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        if self.checkpoint is not None and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                "`checkpoint` needs a whole number as `random_state`, so that a resumed training draws the same "
                f"numbers; got {self.random_state!r}."
            )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        session = Session(
            device=self.device,
            distributed=self.distributed,
            checkpoint=self.checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
            resume=self.resume,
            callbacks=tuple(self.callbacks or ()),
            verbose=self.verbose,
            label=type(self).__name__,
            max_seconds=self.max_seconds,
        )
        deep = self.members if isinstance(self.members, Deep) else Deep()
        deep = with_preset(deep, self.preset)
        likelihood = None if self.likelihood == AUTO else self.likelihood
        return Asked(deep, likelihood, seed, session, goes_on=bool(self.warm_start))
