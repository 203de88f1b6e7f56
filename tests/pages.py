"""Running the commands of a documentation page."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_blocks(page: str, folder: Path, *, smaller: Callable[[str], str]) -> list[str]:
    """Run every bash block of `docs/PAGE` in `folder`, one after the other; what each printed.

    `smaller` turns a block into one that takes less time. A block that fails is an AssertionError
    with what it said.
    """
    text = (ROOT / "docs" / page).read_text()
    # `python` is that of the environment that runs the tests, activated or not.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    printed = []
    for block in re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", smaller(block)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=570,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        printed.append(done.stdout)
    return printed
