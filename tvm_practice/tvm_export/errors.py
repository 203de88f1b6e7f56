"""What goes wrong with an export, as types.

engines.PlainError          the message is one line for the person; raised by its own type in
│                           the process that called, whichever it was raised in
└── ExportError             ends a command with exit code 1
    ├── BadInput            the person's mistake; exit code 2
    ├── CannotImport        TVM's importer does not take the model; names operator or line
    ├── Missing             a package, compiler or other tool is not installed here
    ├── DoesNotCompile      a compiler, TVM's own included, refuses a program; its first error
    ├── NotVerified         an output is not PyTorch's; which, where, and by how much
    ├── NothingMeasured     every trial of a tuner failed; the counts and the reasons
    └── NotApplicable       a rule, or a choice, does not fit after all; another may
"""

from tvm_practice.engines import PlainError

# The way out where the current engine does not take a model.
OTHER_TVM = "--tuner autotvm or ansor import by Relay, from a trace"


class ExportError(PlainError):
    """Base of an export's errors."""


class BadInput(ExportError, ValueError):
    """The person's mistake; the message says what to do."""

    exit_code = 2


class CannotImport(ExportError):
    """TVM's importer does not take the model; the message names the operator or the line."""


class Missing(ExportError):
    """Something is not installed here; the message says what and how to get it."""


class DoesNotCompile(ExportError):
    """A compiler, TVM's own included, refuses a program; the message is its first error."""


class NotVerified(ExportError, ValueError):
    """An output is not PyTorch's; the message says which, where, and by how much."""


class NothingMeasured(ExportError):
    """Every trial of a tuner failed; the message has the counts and the reasons."""


class NotApplicable(ExportError):
    """A rule, or a choice, does not fit after all; the message says why. Another may."""
