"""What test_remote.py runs in a process of the current engine."""

from contextlib import ExitStack
from typing import Any
from unittest import mock

from tvm_practice import engines
from tvm_practice.tvm_export.errors import BadInput

KEY = "board"


def layer() -> Any:
    """A model with one function to tune, and its input."""
    import torch

    return torch.nn.Linear(96, 64).eval(), (torch.randn(32, 96),)


def tuned_elsewhere(folder: str, tuner: str) -> dict[str, Any]:
    """A search for a target that this machine does not run, on a server that does.

    Returns:
        What `export_model` returns, as "journalled" how many trials the journal was given that the
        log did not hold by then, and as "sent" how many libraries were compared on the server.
    """
    from tvm_practice.farm.local import LocalFarm
    from tvm_practice.tvm_export import beside_untuned, relax, relay, targets
    from tvm_practice.tvm_export.pipeline import export_model
    from tvm_practice.tvm_export.tuners import fallback, finals, remote
    from tvm_practice.tvm_export.tuners.journal import Journal

    def here(*_: Any, **__: Any) -> None:
        raise AssertionError("something was run on this machine")

    journalled = 0
    append = Journal.append

    def noted(journal: Journal, entry: Any) -> None:
        nonlocal journalled
        journalled += journal.number(entry) is None
        append(journal, entry)

    sent = 0
    send = remote.sent

    def counted(*arguments: Any) -> Any:
        nonlocal sent
        sent += 1
        return send(*arguments)

    request = {
        "model": f"{__name__}:layer",
        "artifacts": folder,
        "target": str(engines.host_target()),
        "tuner": tuner,
        "tuning_trials": 6,
        "search": {"rpc_key": KEY, "seed": 0},
    }
    with LocalFarm(1, key=KEY) as farm, ExitStack() as patched:
        request["search"] |= {"rpc_tracker": f"{farm.host}:{farm.port}"}  # type: ignore[operator]
        for module in (relax, relay, targets):
            other = mock.patch.object(module, "why_not_runnable", lambda _: "code for a board")
            patched.enter_context(other)
        for module, name in (
            (relax, "_profile"),
            (beside_untuned, "compare_interleaved"),
            (finals, "times_in_turns"),
        ):
            patched.enter_context(mock.patch.object(module, name, here))
        for module in (fallback, remote):
            patched.enter_context(mock.patch.object(module, "sent", counted))
        patched.enter_context(mock.patch.object(Journal, "append", noted))
        return export_model(request) | {"journalled": journalled, "sent": sent}


def without_a_server() -> str:
    """Why a search does not start where the tracker has no server of the key."""
    from tvm_practice.farm.local import LocalFarm
    from tvm_practice.tvm_export.tuners import remote
    from tvm_practice.tvm_export.tuners.search import Search

    with LocalFarm(1, key="another") as farm:
        search = Search(rpc_tracker=f"{farm.host}:{farm.port}", rpc_key=KEY)
        try:
            with remote.session(search):
                return "a session"
        except BadInput as error:
            return str(error)
