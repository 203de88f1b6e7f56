"""The two TVMs: which are here, how one becomes `import tvm`, how to call into the other.

A Python process holds one TVM. `activate(engine)` chooses it; after that everything does plain
`import tvm`. Work for the other engine runs in a child process that takes and returns JSON:

    engines.call("classic", "tvm_practice.te_basics:lane", {"quick": True})

What goes wrong is drawn in `engines.errors`.
"""

from tvm_practice.engines.errors import (
    BadSetting,
    EngineDied,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    PlainError,
    RemoteError,
)
from tvm_practice.engines.host import Host, host, host_target
from tvm_practice.engines.process import Session, call
from tvm_practice.engines.selection import (
    CLASSIC,
    CURRENT,
    ENGINES,
    Engine,
    activate,
    active,
    describe,
    thread_count,
    unavailable_reason,
)

__all__ = [
    "CLASSIC",
    "CURRENT",
    "ENGINES",
    "BadSetting",
    "Engine",
    "EngineDied",
    "EngineError",
    "EngineTimeout",
    "EngineUnavailable",
    "Host",
    "PlainError",
    "RemoteError",
    "Session",
    "activate",
    "active",
    "call",
    "describe",
    "host",
    "host_target",
    "thread_count",
    "unavailable_reason",
]
