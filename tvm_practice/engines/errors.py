"""What goes wrong between processes, as types.

PlainError              the message is one line for the person; `Session.call` raises it in the
│                       caller by its own type
└── EngineError
    ├── EngineUnavailable   the engine is not installed, or the process holds the other one
    ├── BadSetting          TVM_NUM_THREADS is no number of threads: the person's mistake
    ├── EngineDied          the child process ended without an answer (a crash, a kill)
    ├── EngineTimeout       the call outlived the time it was given; the child was stopped
    └── RemoteError         the function called raised anything else
"""


class PlainError(Exception):
    """Its message is one line for the person. Takes the message and nothing else.

    Attributes:
        exit_code: of a command that it ends: 2 for the person's mistake, else 1.
    """

    exit_code = 1

    @property
    def line(self) -> str:
        """What to show the person, in one line."""
        return str(self)


class EngineError(PlainError):
    """Base of an engine's errors."""


class EngineUnavailable(EngineError):
    """The engine cannot be used in this process; the message says why and what to do."""


class BadSetting(EngineError):
    """The environment asks for the impossible; the message names the variable."""

    exit_code = 2


class EngineDied(EngineError):
    """The child process ended without an answer; the message has its exit status."""


class EngineTimeout(EngineError):
    """The call took longer than it was given; the child was stopped."""


class RemoteError(EngineError):
    """The function called in the child raised what is no `PlainError`.

    Attributes:
        kind: qualified name of the exception's type in the child, `builtins.ValueError` say.
        message: its text.
        remote_traceback: the child's traceback, causes included.
    """

    def __init__(self, kind: str, message: str, remote_traceback: str):
        super().__init__(f"{kind.removeprefix('builtins.')}: {message}")
        self.kind = kind
        self.message = message
        self.remote_traceback = remote_traceback

    @property
    def line(self) -> str:
        """The exception in one line: its type's name, and the line of its text that says why."""
        lines = [each.strip() for each in self.message.splitlines() if each.strip()]
        # What another process's traceback is the text of says it last, all else first.
        said = lines[-1 if lines and lines[0].startswith("Traceback") else 0] if lines else ""
        return f"{self.kind.rpartition('.')[2]}: {said or 'no message'}"[:300]
