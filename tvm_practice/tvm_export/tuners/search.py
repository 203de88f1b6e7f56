"""How a search is to go, where it is to differ from the tuner's own ways.

The course's tuning steps take a task, a number of trials and a log. What else a search can be
told reaches the helpers that they call through `searching`:

    with searching(Search(seconds=60, seed=0)):
        tune_ansor(tasks, weights, trials=1000, log="ansor.json")
"""

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

POLICIES = {
    "autotvm": ("xgb", "ga", "random", "grid"),
    "ansor": ("sketch.xgb", "sketch.random"),
    "metaschedule": ("evolutionary", "replay-trace"),
}
SPACES = ("register-tiles", "post-order-apply")


class Search(BaseModel):
    """A search's settings; what is None is left to the tuner.

    Attributes:
        early_stopping: trials after which a search ends if they improved no task's best.
        seconds: after which it ends, once the round it is in is measured.
        seed: of everything random in it. Measured times still differ from run to run.
        policy: AutoTVM: xgb, ga, random or grid; Ansor: sketch.xgb or sketch.random;
            MetaSchedule: evolutionary or replay-trace.
        cost_model: what Ansor's and MetaSchedule's policies predict times with.
        population: candidates of each round of Ansor's and MetaSchedule's evolutionary search.
        iterations: its generations.
        samples: least number of candidates, drawn anew, that a round begins with.
        space: MetaSchedule's design space: "register-tiles" (contractions, see `tile_space`),
            "post-order-apply" (its own), or "module:function" of a function that takes a
            Schedule. None: the first for contractions, the second for the others.
        transfer: whether MetaSchedule's search of register tiles begins with those that recorded
            searches of other functions foretell, see `tile_transfer`. None: it does.
        rpc_tracker: "host:port" of a tracker whose servers measure; None measures here.
        rpc_key: of those servers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    early_stopping: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    policy: str | None = None
    cost_model: Literal["xgb", "random"] | None = None
    population: int | None = Field(default=None, ge=1)
    iterations: int | None = Field(default=None, ge=1)
    samples: int | None = Field(default=None, ge=1)
    space: str | None = None
    transfer: bool | None = None
    rpc_tracker: str | None = None
    rpc_key: str = "cpu"  # what a server of the farm is known by, unless it is told otherwise

    @field_validator("rpc_tracker")
    @classmethod
    def _host_and_port(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[^:\s]+:\d{1,5}", value):
            raise ValueError(f"{value!r} is not of the form host:port")
        if value is not None and int(value.rpartition(":")[2]) not in range(1, 2**16):
            raise ValueError(f"{value!r} has no port between 1 and {2**16 - 1}")
        return value

    @field_validator("space")
    @classmethod
    def _module_and_function(cls, value: str | None) -> str | None:
        if value not in (None, *SPACES) and not re.fullmatch(r"[\w.]+:\w+", value or ""):
            raise ValueError(f"{value!r} is neither {' nor '.join(SPACES)} nor module:function")
        return value

    @property
    def tracker(self) -> tuple[str, int] | None:
        """Host and port of the RPC tracker."""
        if self.rpc_tracker is None:
            return None
        host, _, port = self.rpc_tracker.rpartition(":")
        return host, int(port)

    @property
    def sizes(self) -> dict[str, int]:
        """Population, iterations and samples, those that are given."""
        given = {name: getattr(self, name) for name in ("population", "iterations", "samples")}
        return {name: value for name, value in given.items() if value is not None}

    def why_not_for(self, tuner: str) -> str | None:
        """Why `tuner` cannot search like this, in one line that names the field."""
        if self.policy is not None and self.policy not in POLICIES[tuner]:
            return f"policy: {tuner} has {', '.join(POLICIES[tuner])}, not {self.policy!r}"
        if self.cost_model is not None and tuner == "autotvm":
            return "cost_model: AutoTVM's is part of its policy"
        if sizes := self.sizes:
            if tuner == "autotvm":
                return f"{next(iter(sizes))}: of Ansor's and MetaSchedule's evolutionary search"
            if self.policy == "replay-trace":
                return f"{next(iter(sizes))}: of the policy evolutionary, not replay-trace"
            if self.space == "register-tiles":
                return (
                    f"{next(iter(sizes))}: register-tiles are ranked, post-order-apply is evolved"
                )
        if self.space is not None and tuner != "metaschedule":
            return f"space: {tuner} has no design space of one's own, MetaSchedule has"
        if self.transfer is not None and tuner != "metaschedule":
            return "transfer: of MetaSchedule's register tiles"
        return None


@dataclass(frozen=True)
class Going:
    """The search that is going on.

    Attributes:
        search: its settings.
        most: trials after which it ends, whatever the tuner makes of its budget; None: no limit.
        deadline: on `time.monotonic()`'s clock.
    """

    search: Search
    most: int | None = None
    deadline: float = float("inf")

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline


_going: ContextVar[Going | None] = ContextVar("going", default=None)


def going() -> Going:
    """The settings in force here."""
    return _going.get() or Going(Search())


@contextmanager
def searching(search: Search, *, most: int | None = None) -> Iterator[Going]:
    """Have the tuners in the block search as `search` says; the clock starts now."""
    deadline = time.monotonic() + search.seconds if search.seconds else float("inf")
    if search.seed is not None:
        import numpy as np

        random.seed(search.seed)  # the classic tuners draw from these two
        np.random.seed(search.seed)
    found = Going(search, most, deadline)
    token = _going.set(found)
    try:
        yield found
    finally:
        _going.reset(token)
