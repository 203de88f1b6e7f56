"""The course's functions, as the adapter calls them."""

import importlib
from types import ModuleType


class Steps:
    """The phases' functions of one package: "solutions", or "tvm_practice" (the learner's).

    steps.relay_import.import_relay(model, example)
    """

    def __init__(self, package: str = "solutions"):
        self.package = package

    def __getattr__(self, phase: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{phase}")
