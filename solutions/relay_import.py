"""Reference answers of phase 4: the steps that exports are made of."""

from tvm_practice.tvm_export.steps.comparing import verify
from tvm_practice.tvm_export.steps.relax import build_relax, import_relax, optimize_relax
from tvm_practice.tvm_export.steps.relay import build_relay, import_relay, optimize_relay

__all__ = [
    "build_relax",
    "build_relay",
    "import_relax",
    "import_relay",
    "optimize_relax",
    "optimize_relay",
    "verify",
]
