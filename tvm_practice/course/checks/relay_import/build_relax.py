"""A Relax module compiled, for the target and with the settings of the caller."""

import contextlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.checks.relay_import.common import PHASE, check_made_anew, imported_relax
from tvm_practice.course.expect import draw_distinct, expect, fail
from tvm_practice.course.imported_models import (
    any_llvm,
    arrays,
    by_pytorch,
    demonstrated_model,
    draw_model,
    expect_as_pytorch,
    expect_left_alone,
    expect_target_used,
    given_module,
    other_target,
)
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.running import run_relax


@PHASE.exercise(
    "build_relax",
    engine=CURRENT,
    title="Relax module to an executable",
    hints=(
        "tvm.compile takes an IRModule and a target. It compiles the PrimFuncs for the target "
        "and the graph to byte code of a small virtual machine.",
        "It returns an Executable, which can be saved with export_library. The caller makes a "
        "relax.VirtualMachine of it.",
        "Nothing needs to be done before or after it: return tvm.compile(mod, target)",
    ),
    looks_like="""
        VMExecutable: runs, and gives [(1, 2)]
    """,
    demonstrate=lambda build_relax: _show_executable(
        build_relax(imported_relax(*demonstrated_model()), any_llvm())
    ),
)
def check_build_relax(build_relax: Callable[..., Any]) -> None:
    import tvm

    from solutions.relay_import import optimize_relax

    model, example = draw_model(outputs=2)
    mod = optimize_relax(imported_relax(model, example))
    other = other_target()
    target = other[0] if other else any_llvm()
    executable = build_relax(mod, target)
    expect(
        isinstance(executable, tvm.runtime.Executable),
        expected="the tvm.runtime.Executable that tvm.compile returns",
        seen=f"a {type(executable).__module__}.{type(executable).__name__}",
        look="the return statement; the caller makes the virtual machine",
    )
    if other:
        text = "".join(each.inspect_source("ll") for each in executable.mod.imports)
        expect_target_used(text, other[1])
    expect_as_pytorch(
        run_relax(executable, arrays(example)),
        by_pytorch(model, example),
        look="the module compiled",
    )

    def run_by(build: Callable[..., Any]) -> Callable[[Any], list[np.ndarray]]:
        return lambda mod: run_relax(build(optimize_relax(mod), target), arrays(example))

    # Other weights, for the first call's target and for another one.
    for build in (build_relax, partial(_for_another, build_relax)):
        check_made_anew(run_by(build), model, example, "build_relax")
    _expect_compiled_as_given(build_relax, mod, target)


def _expect_compiled_as_given(build_relax: Callable[..., Any], mod: Any, target: Any) -> None:
    """tvm.compile gets the module and the target as they are; nothing is compiled."""
    import tvm

    large = tvm.IRModule({var: mod[var] for var in mod.get_global_vars()})
    kernel = next(each for each in mod.functions.values() if isinstance(each, tvm.tirx.PrimFunc))
    for at in range(99):
        large[f"kernel_{at}"] = kernel.with_attr("global_symbol", f"kernel_{at}")
    _expect_error_raised(build_relax, mod, target)
    repeating = _repeating()
    for settings in (None, *_pass_contexts()):
        for other in (target, *_targets()):
            with settings or contextlib.nullcontext():
                for each in (large, repeating):
                    _expect_call_of_compile(build_relax, each, other)
            others = [at for at in (any_llvm(), *_targets()) if str(at) != str(other)]
            with draw_distinct(1, others)[0] as around:
                _expect_call_of_compile(build_relax, repeating, other, around)
    for level in (0, 3, 4):
        with tvm.transform.PassContext(opt_level=level):
            _expect_call_of_compile(build_relax, repeating, target)


def _expect_error_raised(build_relax: Callable[..., Any], mod: Any, target: Any) -> None:
    """What tvm.compile raises arrives as it was raised."""
    import tvm
    from tvm import relax

    raised = RuntimeError("no memory for the kernels")

    def instead(*_: Any, **__: Any) -> Any:
        raise raised

    seen = "nothing raised"
    with mock.patch.object(tvm, "compile", instead), mock.patch.object(relax, "build", instead):
        try:
            build_relax(mod, target)
        except Exception as error:
            if error is raised:
                return
            seen = f"{type(error).__name__}: {error}"[:200]
    raise fail(
        "the exception of tvm.compile, if it fails, as it was raised",
        seen,
        "the except clause: a caller has to know why there is no executable",
    )


def _repeating() -> Any:
    """A module whose main calls one PrimFunc twice with the same argument."""
    from tvm import relax, topi

    x = relax.Var("x", relax.TensorType((4, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            twice = [builder.emit_te(topi.exp, x) for _ in range(2)]
            result = builder.emit_output(relax.Tuple(twice))
        builder.emit_func_output(result)
    return builder.get()


def _pass_contexts() -> list[Any]:
    """Contexts that a caller may be in."""
    import tvm
    from tvm.ir.instrument import pass_instrument

    @pass_instrument
    class Quiet:
        pass

    return [
        tvm.transform.PassContext(
            opt_level=1,
            config={"tirx.disable_vectorize": True},
            required_pass=["DeadCodeElimination"],
            disabled_pass=["FoldConstant", "FuseOps"],
            instruments=[Quiet()],
        )
    ]


def _targets() -> list[Any]:
    """Targets with all that one can have."""
    import tvm

    words = {"mcpu": "haswell", "mattr": ["+avx2", "-fma"], "num-cores": 3, "opt-level": 1}
    host = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "haswell", "mattr": ["-fma"]}
    return [
        tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", **words}),
        tvm.target.Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu"}, host=host),
        tvm.target.Target(
            {"kind": "llvm", "vector-width": 256, "fast-math-nnan": True, "mfloat-abi": "hard"}
        ),
    ]


def _expect_call_of_compile(
    build_relax: Callable[..., Any], large: Any, target: Any, around: Any = None
) -> None:
    """tvm.compile gets all that the caller has given and set; `large` stays as it was.

    With a target `around`, the call is in its scope.
    """
    import tvm
    import tvm_ffi
    from tvm import relax

    before = given_module(large)
    seen: list[tuple[Any, Any, dict[str, Any]]] = []
    made = mock.NonCallableMagicMock(spec=relax.VMExecutable)  # an answer may look at its class

    def instead(mod: Any, target: Any = None, **_: Any) -> Any:
        seen.append((mod, target, _settings()))
        return made

    usual = _settings()
    with mock.patch.object(tvm, "compile", instead), mock.patch.object(relax, "build", instead):
        returned = build_relax(large, target)
    expect_left_alone(before, large)
    expect(bool(seen), expected="a call of tvm.compile", seen="none", look="tvm.compile")
    compiled, given, settings = seen[-1]
    expect(
        returned is made and tvm_ffi.structural_equal(compiled, large),
        expected="tvm.compile given the module as it is, and its result returned",
        seen="another module, or another result",
        look="the arguments of tvm.compile, and the return statement",
    )
    expect(
        _described(given) == _described(target),
        expected=f"the target as it was given: {target}"
        + f" (TVM's current target: {around})" * (around is not None),
        seen="none" if given is None else str(given),
        look="the second argument of tvm.compile: the current target is the caller's, and where "
        "the argument is missing, no code for a GPU is made",
    )
    changed = [name for name in usual if settings[name] != usual[name]]
    expect(
        not changed,
        expected="tvm.compile called in the caller's pass context",
        seen=", ".join(f"{name} {settings[name]}, not {usual[name]}" for name in changed),
        look="tvm.transform.PassContext around tvm.compile",
    )


def _described(target: Any) -> Any:
    """A target's attributes, in any order; anything else as text."""
    try:
        return json.loads(str(target))
    except ValueError:
        return str(target)


def _settings() -> dict[str, Any]:
    """The current pass context."""
    import tvm

    context = tvm.transform.PassContext.current()
    return {
        "opt_level": int(context.opt_level),
        "config": {str(name): value for name, value in context.config.items()},
        "required passes": list(map(str, context.required_pass)),
        "disabled passes": list(map(str, context.disabled_pass)),
        "instruments": len(context.instruments or ()),
    }


def _for_another(build_relax: Callable[..., Any], mod: Any, first: Any) -> Any:
    """Built for LLVM's plain target, after the target `first`."""
    del first
    executable = build_relax(mod, any_llvm())
    if other := other_target():
        text = "".join(each.inspect_source("ll") for each in executable.mod.imports)
        expect(
            f'"target-cpu"="{other[1]}"' not in text,
            expected=f"the second call's target, {any_llvm()}",
            seen=f"code for {other[1]}, the first call's",
            look="the target given to tvm.compile",
        )
    return executable


def _show_executable(executable: Any) -> str:
    outputs = run_relax(executable, arrays(demonstrated_model()[1]))
    return f"{type(executable).__name__}: runs, and gives {[each.shape for each in outputs]}"
