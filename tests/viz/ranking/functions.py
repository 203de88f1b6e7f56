"""What the tests of ranking run in a process of the current engine."""


def multiply_adds(count: int, seed: int) -> list[int]:
    """Of schedules of a product of 64, compiled for vectors of 16 elements and followed."""
    import tvm

    from tests.viz.ranking.test_followed import CYCLES
    from tvm_practice.viz.ranking.followed import followed
    from tvm_practice.viz.ranking.space import draw, scheduled

    target = tvm.target.Target({"kind": "llvm", "mcpu": "icelake-server"})
    found = []
    for choice in draw(count, seed):
        library = tvm.compile(scheduled(choice, 64).mod, target=target)
        found.append(followed(library.mod.inspect_source("asm"), CYCLES).multiply_adds)
    return found
