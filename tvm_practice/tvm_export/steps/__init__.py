"""The steps of an export that a learner can replace by functions of their own.

Nothing here imports a TVM before it is called.
"""

import importlib
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.steps.comparing import verify
from tvm_practice.tvm_export.steps.relax import build_relax, import_relax, optimize_relax
from tvm_practice.tvm_export.steps.relay import build_relay, import_relay, optimize_relay
from tvm_practice.tvm_export.steps.timing import sample_latency
from tvm_practice.tvm_export.steps.tuning import (
    apply_metaschedule,
    tune_ansor,
    tune_autotvm,
    tune_metaschedule,
)

Step = Callable[..., Any]

# The project's own steps, by the module of a package that may replace them.
_OWN: dict[str, tuple[Step, ...]] = {
    "relay_import": (
        import_relay,
        optimize_relay,
        build_relay,
        import_relax,
        optimize_relax,
        build_relax,
        verify,
    ),
    "auto_tune": (tune_autotvm, tune_ansor, tune_metaschedule, apply_metaschedule),
    "schedule_analysis": (sample_latency,),
}


# By the name of the exercise that may replace each: "relay_import.verify".
REPLACEABLE = tuple(f"{module}.{each.__name__}" for module, own in _OWN.items() for each in own)


class Steps:
    """The functions that exports are made of.

    Steps().import_relay(model, example)

    Args:
        package: its modules `relay_import`, `auto_tune` and `schedule_analysis` come first:
            "tvm_practice" for all the learner's functions, "tvm_practice:verify,tune_ansor" for
            these two. A step that they do not define is the project's own; with None, all are.
    """

    def __init__(self, package: str | None = None):
        name, colon, names = (package or "").partition(":")
        self.package = name or None
        self._among = set(names.split(",")) if colon else None

    def __getattr__(self, name: str) -> Step:
        for module, own in _OWN.items():
            for step in own:
                if step.__name__ == name:
                    return self._replacement(module, name) or step
        raise AttributeError(f"no step {name}")

    def _replacement(self, module: str, name: str) -> Step | None:
        if self.package is None or (self._among is not None and name not in self._among):
            return None
        found: Step | None = getattr(
            importlib.import_module(f"{self.package}.{module}"), name, None
        )
        return found

    def is_own(self, name: str) -> bool:
        """Whether step `name` is the project's own."""
        return getattr(self, name) is getattr(Steps(), name)
