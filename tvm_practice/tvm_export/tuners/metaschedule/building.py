"""Candidates built by processes that are kept between rounds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice.engines import thread_count
from tvm_practice.tvm_export.tuners.metaschedule.candidates import this_round
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.workers import patient, processes

# A candidate that takes longer to build is given up.
_BUILD_SECONDS = 20


def build_candidate(candidate: tuple[Any, Any, bool]) -> str:
    """Compile a module for a target, here or remote, in a worker; the file it was written to."""
    import tempfile

    import tvm
    from tvm.support.tar import tar

    from tvm_practice.tvm_export.compiling import ALONE, compiling
    from tvm_practice.tvm_export.rules.cpu import schedule_candidate

    module, target, remote = candidate
    with compiling(target, ALONE):
        library = tvm.tirx.build(schedule_candidate(module["main"], target), target=target)
    artifact = f"{tempfile.mkdtemp()}/candidate." + ("tar" if remote else "so")
    if remote:  # linked where it runs
        library.export_library(artifact, fcompile=tar)
    else:
        library.export_library(artifact)
    return artifact


@contextmanager
def open_builder(built: dict[str, tuple[Any, Any]]) -> Iterator[Any]:
    """A builder whose processes are kept until the block ends.

    MetaSchedule's own starts new processes for every round, each of which takes seconds to
    import TVM, and its default build function imports the tensor intrinsics as well.

    Args:
        built: receives the task's module and the candidate by the file it was built to.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
    from tvm.support.popen_pool import StatusKind

    limit = patient(_BUILD_SECONDS)

    @derived_object
    class PooledBuilder(PyBuilder):  # type: ignore[misc]
        def build(self, build_inputs: Sequence[Any]) -> list[Any]:
            remote = going().search.tracker is not None
            inputs = [(each.mod, each.target, remote) for each in build_inputs]
            results = []
            answers = pool.map_with_error_catching(build_candidate, inputs)
            for candidate, answer in zip(this_round, answers, strict=True):
                if answer.status == StatusKind.COMPLETE:
                    results.append(BuilderResult(answer.value, None))
                    built[answer.value] = candidate
                elif answer.status == StatusKind.TIMEOUT:
                    results.append(BuilderResult(None, f"building took over {limit:.0f} s"))
                else:
                    results.append(BuilderResult(None, f"it does not build: {answer.value}"))
            return results

    # Processes that build leak a little memory.
    with processes(thread_count(), timeout=limit, maximum_process_uses=200) as pool:
        yield PooledBuilder()
