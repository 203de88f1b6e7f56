"""The two TVMs: which are here, how one becomes `import tvm`, how to call into the other.

A Python process holds one TVM. `activate(engine)` chooses it; after that everything does plain
`import tvm`. Work for the other engine runs in a child process that takes and returns JSON:

    engines.call("classic", "tvm_practice.te_basics:lane", {"quick": True})

Exceptions:

    EngineError
    ├── EngineUnavailable   the engine is not installed here, or the process holds the other one
    ├── EngineDied          the child process ended without an answer (a crash, a kill)
    ├── EngineTimeout       the call outlived the time it was given; the child was stopped
    └── RemoteError         the function called raised; carries its type, message and traceback
"""

from tvm_practice.engines.host import Host, host, host_target
from tvm_practice.engines.process import (
    EngineDied,
    EngineTimeout,
    RemoteError,
    Session,
    call,
)
from tvm_practice.engines.selection import (
    CLASSIC,
    CURRENT,
    ENGINES,
    Engine,
    EngineError,
    EngineUnavailable,
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
    "Engine",
    "EngineDied",
    "EngineError",
    "EngineTimeout",
    "EngineUnavailable",
    "Host",
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
