"""The command that compiles C and links for a machine, this one or another."""

import importlib.util
import shutil
import sys

from tvm_practice.engines.host import architecture, own_architecture
from tvm_practice.tvm_export.errors import Missing

# manylinux's oldest C library among the wheels of TVM 0.27, and so of what is linked with them.
GLIBC = "2.28"


def compiler(triple: str, *, shared: bool = False) -> list[str]:
    """A command that compiles C and links for `triple`.

    It is this machine's `cc` for its own architecture, else zig, which carries the C libraries of
    many machines. Programs of zig's are static and so need nothing of the machine they run on.

    Args:
        triple: LLVM's name of the machine, as in a target's mtriple.
        shared: whether shared libraries are linked or linked with, which needs the C library that
            they were made for: glibc.

    Raises:
        Missing: there is neither.
    """
    name = architecture(triple)
    if is_own(triple) and (native := shutil.which("cc")):
        return [native]
    if importlib.util.find_spec("ziglang") is None:
        raise Missing(
            f"no compiler for {name}: python -m pip install -c constraints.txt '.[cross-compile]'"
        )
    system = "wasi" if name == "wasm32" else f"linux-gnu.{GLIBC}" if shared else "linux-musl"
    return [sys.executable, "-m", "ziglang", "cc", "-target", f"{name}-{system}"]


def is_own(triple: str) -> bool:
    """Whether programs for `triple` are this machine's own; LLVM and Python share these names."""
    return architecture(triple) == own_architecture() and sys.platform in triple
