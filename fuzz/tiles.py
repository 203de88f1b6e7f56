"""Tiles drawn from the space that MetaSchedule searches, applied without measuring any."""

from random import Random
from typing import Any


def advised(module: Any, target: Any, seed: int) -> Any:
    """A module with a drawn choice of tile at each contraction, as a tuner would leave it.

    Args:
        module: imported and optimized, not scheduled.
        target: a tvm.target.Target of kind llvm.
        seed: of the draw.
    """
    import tvm

    from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.tvm_export.rules.cpu.register_tiles import advise
    from tvm_practice.tvm_export.tuners.tile_space import ranked_choices

    random = Random(seed)
    changed = module.clone()
    for name, func in module.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc) or not (ranked := ranked_choices(func, target)):
            continue
        tile = random.choice(ranked)

        def decide(key: str, choices: list[int], tile: Any = tile) -> int:
            # Of these not every contraction can have every value.
            fixed: dict[str, int] = {"rows": tile.rows, "vectors": tile.vectors, "both": tile.both}
            return int(fixed.get(key, random.choice(choices)))

        schedule = tvm.s_tir.Schedule(func.with_attr("global_symbol", "main"))
        block = find_contraction(func, cpu_of(target)).block
        advise(schedule, schedule.get_sblock(block.name_hint), decide)
        chosen = schedule.mod["main"].with_attr("global_symbol", name.name_hint)
        changed[name] = chosen.with_attr("tirx.is_scheduled", True)
    return changed
