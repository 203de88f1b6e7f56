"""Conditions of a model's open extents that no range tells, such as that one is even.

condition = ExtentCondition(("n",), "(n % 2) == 0")
condition.holds(6)                        # of numbers
condition.expression({"n": variable})     # of TVM's variables, for a check within the model

The text is what PyTorch writes: Python's operators, and functions such as Mod and ToFloat.
"""

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

# What PyTorch writes in conditions besides Python's operators.
_FUNCTIONS: dict[str, Any] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": max,
    "Min": min,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "IntInfinity": lambda: math.inf,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "FloatPow": pow,
    "PowByNatural": pow,
    "Abs": abs,
    "OpaqueUnaryFn_sqrt": math.sqrt,
    "Not": operator.not_,
    "And": lambda *each: all(each),
    "Or": lambda *each: any(each),
    **{each.__name__: each for each in (float, max, min, abs)},
    "math": math,
    "torch": SimpleNamespace(sym_float=float),
}


@dataclass(frozen=True)
class ExtentCondition:
    """What must hold of open extents for a model to be what was exported.

    Attributes:
        names: of the extents that it is of.
        text: the condition, as PyTorch writes it.
    """

    names: tuple[str, ...]
    text: str

    @functools.cached_property
    def is_known(self) -> bool:
        """Whether the text has no names but the extents' and PyTorch's functions."""
        words = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", self.text))
        return words <= {*self.names, *_FUNCTIONS, "and", "or", "not"}

    def renamed(self, names: Mapping[str, str]) -> "ExtentCondition":
        """The same condition of extents that are called otherwise.

        Args:
            names: the new name of each.
        """
        renamed = re.sub(
            r"(?<![\w.])[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), self.text
        )
        return ExtentCondition(tuple(names[each] for each in self.names), renamed)

    def holds(self, *extents: float) -> bool:
        """Whether it holds of numbers, in the order of the names; it does not divide by 0."""
        given = dict(zip(self.names, extents, strict=True))
        try:
            return bool(eval(self._code, {"__builtins__": {}, **_FUNCTIONS, **given}))
        except ZeroDivisionError:
            return False

    @functools.cached_property
    def _code(self) -> Any:
        return compile(self.text.strip(), "<condition>", "eval")

    def expression(self, variables: Mapping[str, Any]) -> Any:
        """The condition as an expression of TVM, of int64 variables by the extents' names.

        Raises NotImplementedError if there is something in it that this does not know.
        """
        return _expression(ast.parse(self.text.strip(), mode="eval").body, variables)


def _expression(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    from tvm import tirx

    def of(*nodes: ast.expr) -> list[Any]:
        return [_expression(each, variables) for each in nodes]

    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name) if name in variables:
            return variables[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -of(operand)[0]
        case ast.BinOp(left=left, op=operation, right=right):
            if arithmetic := _ARITHMETIC.get(type(operation)):
                return arithmetic(*of(left, right))
        case ast.BoolOp(op=operation, values=values):
            joined = tirx.all if isinstance(operation, ast.And) else tirx.any
            return joined(*of(*values))
        case ast.Compare(left=left, ops=operations, comparators=others):
            sides = of(left, *others)
            pairs = zip(operations, sides, sides[1:], strict=False)
            return tirx.all(*(_compared(type(each), *pair) for each, *pair in pairs))
        case ast.Call(func=function, args=args):
            name = ast.unparse(function).rpartition(".")[2]  # math.trunc, torch.sym_float
            if name in ("Eq", "Ne"):
                return _compared(ast.Eq if name == "Eq" else ast.NotEq, *of(*args))
            if made := _functions().get(name):
                return made(*of(*args))
    raise NotImplementedError(f"a condition of extents with {ast.unparse(node)}")


_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _compared(operation: type[ast.cmpop], left: Any, right: Any) -> Any:
    from tvm import tirx

    kinds = {
        ast.Eq: tirx.EQ,
        ast.NotEq: tirx.NE,
        ast.Lt: tirx.LT,
        ast.LtE: tirx.LE,
        ast.Gt: tirx.GT,
        ast.GtE: tirx.GE,
    }
    dtype = next((str(each.ty.dtype) for each in (left, right) if hasattr(each, "ty")), "int64")
    sides = [tirx.const(e, dtype) if isinstance(e, (int, float)) else e for e in (left, right)]
    return kinds[operation](*sides)


def _functions() -> Mapping[str, Callable[..., Any]]:
    """PyTorch's functions of TVM's expressions."""
    from tvm import tirx

    def real(number: Any) -> Any:
        return tirx.Cast("float64", number)

    def whole(rounded: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda number: tirx.Cast("int64", rounded(number))

    return {
        **dict.fromkeys(("Mod", "PythonMod"), operator.mod),
        **dict.fromkeys(("FloorDiv", "CleanDiv"), operator.floordiv),
        **dict.fromkeys(("ToFloat", "sym_float", "float"), real),
        **{name: whole(tirx.trunc) for name in ("trunc", "TruncToInt")},
        **dict.fromkeys(("FloorToInt", "floor"), whole(tirx.floor)),
        **dict.fromkeys(("CeilToInt", "ceil"), whole(tirx.ceil)),
        **dict.fromkeys(("Max", "max"), tirx.max),
        **dict.fromkeys(("Min", "min"), tirx.min),
        **dict.fromkeys(("Abs", "abs"), tirx.abs),
        "And": tirx.all,
        "Or": tirx.any,
    }
