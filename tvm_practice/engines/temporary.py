"""Temporary folders that a later process removes if their owner was killed."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType

_PREFIX = ".tvm-practice-"
_LOCK = "owner.lock"
# A folder without a lock is younger than that only while it is being made.
_WITHOUT_LOCK_SECONDS = 60


class TemporaryFolder:
    """A new folder that is removed by `cleanup`, at the end of a `with` block, or later.

    Its owner holds a lock in it, which the kernel releases when the process ends, however it ends.
    Making a folder removes those whose lock nobody holds. A process number would say nothing: a
    restarted container gives the same numbers again.

    Attributes:
        path: of the folder; it holds the lock's file.
    """

    def __init__(self, parent: Path | None = None):
        """A folder in `parent`; None: in the folder for temporary files. Raises OSError."""
        from filelock import FileLock

        parent = temporary_parent() if parent is None else parent
        remove_abandoned(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = FileLock(self.path / _LOCK, thread_local=False)  # another thread may clean up
        try:
            self._lock.acquire()
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def cleanup(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cleanup()


def temporary_parent() -> Path:
    """The folder for temporary files.

    It is tempfile's. But tempfile writes a file to find out whether it may, which is left behind if
    the process is killed in that moment: here, only where no variable and no custom names a folder.
    """
    if tempfile.tempdir is not None:
        return Path(os.fsdecode(tempfile.tempdir))
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    for folder in (*named, "/tmp"):
        if folder and Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return Path(folder).absolute()
    return Path(tempfile.gettempdir())


def remove_abandoned(parent: Path) -> None:
    """Remove this user's folders of killed processes from `parent`."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            _remove_if_abandoned(folder)
        except OSError:  # its owner removes it, or is about to
            continue


def _remove_if_abandoned(folder: Path) -> None:
    from filelock import FileLock, Timeout

    if not (folder / _LOCK).exists():
        if time.time() - folder.stat().st_mtime > _WITHOUT_LOCK_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        with FileLock(folder / _LOCK, timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
    except Timeout:
        pass
