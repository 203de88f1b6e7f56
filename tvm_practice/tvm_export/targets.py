"""Targets: one spelling in, each engine's own out."""

import shlex
from typing import Any

from tvm_practice import engines
from tvm_practice.tvm_export.loading import BadInput


def resolve_target(text: str) -> Any:
    """The active engine's `tvm.target.Target` for `text`.

    "llvm" alone is this machine's processor with its vector width and threads. Anything more,
    such as "llvm -mcpu=core-avx2", is taken as it is; the current engine, which wants
    dictionaries, gets it translated. Raises BadInput if the engine refuses it.
    """
    import tvm

    if text.strip() == "llvm":
        return engines.host_target()
    try:
        if engines.active() == engines.CLASSIC:
            return tvm.target.Target(text)
        return tvm.target.Target(to_dictionary(text))
    except (RuntimeError, ValueError, TypeError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise BadInput(f"target {text!r} is not one that this TVM knows: {reason}") from error


def to_dictionary(text: str) -> dict[str, Any]:
    """`"llvm -mcpu=core-avx2 -mattr=+fma"` as `{"kind": "llvm", "mcpu": …, "mattr": […]}`."""
    kind, *options = shlex.split(text)
    described: dict[str, Any] = {"kind": kind}
    for option in options:
        key, equals, value = option.lstrip("-").partition("=")
        if not option.startswith("-") or not equals:
            raise ValueError(f"target option {option!r} is not of the form -key=value")
        if key in ("mattr", "keys", "libs"):
            described.setdefault(key, []).extend(value.split(","))
        else:
            described[key] = int(value) if value.isdigit() else value
    return described
