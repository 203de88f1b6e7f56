"""Phase 4's exercises and how they are graded: the graph's structure, then its values.

The modules register their exercises when they are imported, in the order of the chapter: from
PyTorch to a verified result in current TVM, then the same in classic TVM. Models to import, and
what checks expect of the graphs of both, are in `tvm_practice/course/imported_models.py`.
"""

from tvm_practice.course.checks.relay_import import (  # isort: skip
    import_relax,
    optimize_relax,
    build_relax,
    verify,
    import_relay,
    optimize_relay,
    build_relay,
)
from tvm_practice.course.checks.relay_import.common import PHASE

__all__ = [
    "PHASE",
    "build_relax",
    "build_relay",
    "import_relax",
    "import_relay",
    "optimize_relax",
    "optimize_relay",
    "verify",
]
