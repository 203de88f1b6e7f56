"""Attention as one function: scores, softmax and the sum of the values, a few rows at a time.

    attention(Q, K, V) = softmax(scale * Q K^T + mask) V

As an operator each, the scores of all rows are written to memory and read again by the softmax and
by the second product: of 12 heads and 4096 tokens they are 805 MB. As one function, only the scores
of a few rows exist at a time; see `rules.cpu.attention` for its schedule.

What is found is a softmax over the last axis between two products, whatever names a model gives
them. Between the first product and the softmax there may be arithmetic with scalars and masks;
transposes and reshapes of the operands become indices.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm_practice.tvm_export.constant_folding import constant_extents
from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.extremes import ROW_MAXIMA
from tvm_practice.tvm_export.relax_passes.fused_padding import read_once
from tvm_practice.tvm_export.relax_passes.requantization import operator_name
from tvm_practice.tvm_export.rewriting import rewritten
from tvm_practice.tvm_export.rules.cpu.attention import ATTENTION, is_suitable, tiling
from tvm_practice.tvm_export.rules.cpu.loops import Cpu

# Operators that move elements without changing any.
_MOVES = {"reshape", "permute_dims", "broadcast_to", "expand_dims", "squeeze"}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda one, other: one + other,
    "subtract": lambda one, other: one - other,
    "multiply": lambda one, other: one * other,
    "divide": lambda one, other: one / other,
}

# The normal numbers of float32.
_LEAST, _MOST = 2.0**-126, 2.0**127
_LARGE = 2.0**64

# Of a score, the indices of the batch, a token and a row: what the softmax takes.
_Masked = Callable[[Any, Any, Any, Any], Any]


@dataclass
class _Operand:
    """An operand of a product: what is read, how it is moved, and the factor of its elements."""

    base: Any
    moves: list[Any] = field(default_factory=list)  # calls, the last one first
    factor: float = 1.0


@dataclass(frozen=True)
class _Step:
    """Arithmetic between the scores and the softmax.

    Attributes:
        name: of the operator.
        other: its other operand, a number or a tensor [..., 1 or rows, 1 or tokens]; of "where",
            the number that takes the scores' place.
        is_first: whether the scores are the first operand.
        condition: of "where": a tensor.
    """

    name: str
    other: Any
    is_first: bool
    condition: Any = None


@dataclass(frozen=True)
class _Found:
    """What one function is to compute.

    Attributes:
        queries, keys, values: the operands, moved to [*batch, rows or tokens, size].
        steps: from the scores to what the softmax takes.
        batch: the axes of the scores before the last two.
        rows, tokens, size, width: of queries; of keys and values; of a key; of a value.
        is_safe: whether a row without any finite score is 0 and not NaN.
    """

    queries: _Operand
    keys: _Operand
    values: _Operand
    steps: list[_Step]
    batch: list[int]
    rows: int
    tokens: int
    size: int
    width: int
    is_safe: bool


def with_attention(module: Any, cpu: Cpu) -> Any:
    """A Relax module in which each attention of float32 is the call of one function.

    Args:
        module: as it is before its operators become loops; it is left as it was. Attention that
            has open extents, few rows, or scores that are read elsewhere stays as it is.
        cpu: the processor that it is for.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    once: set[Any] = set()
    bound: dict[Any, Any] = {}
    for _, function in module.functions_items():
        if isinstance(function, relax.Function):
            once |= read_once(function)
            bound |= {
                binding.var: binding.value
                for block in function.body.blocks
                for binding in block.bindings
            }
    if not any(operator_name(each) == "nn.softmax" for each in bound.values()):
        return module
    matching = _Matching(bound, once, cpu)

    @mutator
    class Joining(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            if operator_name(call) != "matmul":
                return self.visit_expr_post_order(call)
            try:
                found = matching.attention(call)
            except NotApplicable:
                return self.visit_expr_post_order(call)
            made = self.builder_.normalize(_Writing(found, cpu, self).call())
            shape = constant_extents(call)
            if constant_extents(made) == shape:
                return made
            return relax.op.reshape(self.builder_.emit(made), shape)

    return relax.transform.DeadCodeElimination()(rewritten(module, Joining(module)))


class _Matching:
    """Finds what a product of a softmax with values is made of.

    Args:
        bound: the value of every variable of the module.
        once: the variables that are read once.
        cpu: the processor.
    """

    def __init__(self, bound: dict[Any, Any], once: set[Any], cpu: Cpu):
        self._bound, self._once, self._cpu = bound, once, cpu
        self._batch: list[int] = []

    def attention(self, product: Any) -> _Found:
        """What the product `weights @ values` is; NotApplicable if it is no attention."""
        weights, is_safe = self._softmax(product.args[0])
        masked = weights.args[0]
        extents = constant_extents(masked)
        if extents is None or len(extents) < 2 or str(masked.ty.dtype) != "float32":
            raise NotApplicable("the scores are no matrices of float32 and constant extents")
        *batch, rows, tokens = extents
        axis = int(weights.attrs.axis)
        if axis not in (-1, len(extents) - 1):
            raise NotApplicable("the softmax is over another axis")
        self._batch = batch
        # PyTorch's condition for rows without a score reads them too.
        scores, steps = self._scores(masked if is_safe else self._read_once(masked), extents)
        operands = [*scores.args, product.args[1]]
        shapes = [constant_extents(each) for each in (*operands, product)]
        if any(each is None or len(each) < 2 for each in shapes):
            raise NotApplicable("an operand is no matrices of constant extents")
        if any(math.prod((each or [])[:-2]) != math.prod(batch) for each in shapes):
            raise NotApplicable("an operand is repeated over the batch")
        queries, _, values, _ = (each or [] for each in shapes)
        if any(str(each.ty.dtype) != "float32" for each in operands):
            raise NotApplicable("an operand is no float32")
        size, width = queries[-1], values[-1]
        if not is_suitable(rows, tokens, width, self._cpu):
            raise NotApplicable("too few rows, or values that do not fill vectors")
        query, key, value = (self._operand(each) for each in operands)
        while steps and (by := _factor_of(steps[0])):
            query.factor *= by
            steps.pop(0)
        factors = (query.factor * key.factor, value.factor)
        if not all(_LEAST <= abs(each) <= _MOST for each in factors):
            raise NotApplicable("an operand's factor is no normal float32")
        return _Found(
            query,
            key,
            value,
            steps,
            batch,
            rows,
            tokens,
            size,
            width,
            is_safe,
        )

    def _made(self, value: Any) -> Any:
        return self._bound.get(value)

    def _softmax(self, value: Any) -> tuple[Any, bool]:
        """The softmax that weights are made by, and whether rows without a score are 0."""
        made = self._once_made(value)
        while operator_name(made) in ("reshape", "broadcast_to"):
            inner, outer = constant_extents(made.args[0]), constant_extents(made)
            if inner is None or outer is None or inner[-2:] != outer[-2:]:
                raise NotApplicable("the weights are moved")
            if math.prod(inner) != math.prod(outer):
                raise NotApplicable("the weights are repeated")
            made = self._once_made(made.args[0])
        if operator_name(made) == "where":
            condition, zero, value = made.args
            softmax = self._once_made(value)
            if not _is_zero(zero) or not self._is_no_score(condition, softmax):
                raise NotApplicable("the weights are masked")
            return softmax, True
        if operator_name(made) != "nn.softmax":
            raise NotApplicable("the first operand is no softmax")
        return made, False

    def _read_once(self, value: Any) -> Any:
        if value not in self._once:
            raise NotApplicable("something else reads a result in between")
        return value

    def _once_made(self, value: Any) -> Any:
        return self._made(self._read_once(value))

    def _is_no_score(self, condition: Any, softmax: Any) -> bool:
        """Whether a condition is PyTorch's: all scores of a row are minus infinity."""
        chain = ("logical_not", "astype", "max", "astype", "logical_not", "equal")
        made = self._made(condition)
        for name in chain[:-1]:
            if operator_name(made) != name:
                return False
            if name == "max" and [int(each) for each in made.attrs.axis] != [-1]:
                return False
            made = self._made(made.args[0])
        if operator_name(made) != chain[-1] or operator_name(softmax) != "nn.softmax":
            return False
        return made.args[0].same_as(softmax.args[0]) and _scalar(made.args[1]) == -math.inf

    def _scores(self, value: Any, shape: list[int]) -> tuple[Any, list[_Step]]:
        """The product that the masked scores are made of, and the steps from it to them."""
        made = self._made(value)
        name = operator_name(made)
        if name == "matmul":
            return made, []
        if name == "reshape":
            before = constant_extents(made.args[0])
            if before is None or before[-2:] != shape[-2:]:
                raise NotApplicable("the scores are moved")
            return self._scores(self._read_once(made.args[0]), before)
        if name not in _ARITHMETIC and name != "where":
            raise NotApplicable("the scores are no product")
        condition, one, other = made.args if name == "where" else (None, *made.args)
        is_first = self._is_of_product(one, shape)
        scores, other = (one, other) if is_first else (other, one)
        if not is_first and not self._is_of_product(scores, shape):
            raise NotApplicable("the scores are no product")
        number = _scalar(other)
        is_scaled = name in ("multiply", "divide")
        if number is not None and is_scaled and (number == 0 or not math.isfinite(number)):
            raise NotApplicable("TVM takes a product with such a number for a constant")
        if number is None and (condition is not None or constant_extents(other) is None):
            raise NotApplicable("the scores' other operand is of open extents")
        if condition is not None and constant_extents(condition) is None:
            raise NotApplicable("the mask is of open extents")
        product, steps = self._scores(self._read_once(scores), shape)
        has_tensor = number is None or condition is not None
        if has_tensor and shape[:-2] != self._batch:
            raise NotApplicable("the mask is added to scores of another shape")
        step = _Step(name, other if number is None else number, is_first, condition)
        return product, [*steps, step]

    def _is_of_product(self, value: Any, shape: list[int]) -> bool:
        """Whether a value has a shape and is made of a product."""
        if constant_extents(value) != shape:
            return False
        made = self._made(value)
        while operator_name(made) in {"reshape", "where", *_ARITHMETIC}:
            made = next(filter(operator_name, map(self._made, made.args)), None)
        return operator_name(made) == "matmul"

    def _operand(self, value: Any) -> _Operand:
        found = _Operand(value)
        while True:
            made = self._made(found.base)
            name = operator_name(made)
            if name in _MOVES and constant_extents(made.args[0]) is not None:
                found.moves.append(made)
            elif name in ("multiply", "divide") and (other := _scalar(made.args[1])):
                if constant_extents(made.args[0]) != constant_extents(made):
                    break
                found.factor *= other if name == "multiply" else 1 / other
            else:
                break
            found.base = made.args[0]
        return found


class _Writing:
    """Writes the function of an attention, and its call.

    Args:
        found: the attention.
        cpu: the processor.
        mutator: that replaces the product; its builder gets the function.
    """

    def __init__(self, found: _Found, cpu: Cpu, mutator: Any):
        self._found, self._mutator = found, mutator
        self._tiling = tiling(found.rows, found.tokens, cpu)
        self._given: list[Any] = []
        self._placeholders: list[Any] = []

    def call(self) -> Any:
        """The call, whose result is [*batch, rows, width]."""
        from tvm import relax, te

        found = self._found
        queries, keys, values = (
            self._tensor(operand, last)
            for operand, last in (
                (found.queries, [found.rows, found.size]),
                (found.keys, [found.size, found.tokens]),
                (found.values, [found.tokens, found.width]),
            )
        )
        output = self._stages(queries, keys, values, self._masking())
        function = te.create_prim_func([*self._placeholders, output])
        function = function.without_attr("global_symbol").with_attr(ATTENTION, True)
        function = function.with_attr("op_pattern", 8)  # opaque: nothing is fused with it
        made = self._mutator.builder_.add_func(function, "attention")
        shape = [*found.batch, found.rows, found.width]
        return relax.call_tir(made, tuple(self._given), relax.TensorType(shape, "float32"))

    def _stages(self, queries: Any, keys: Any, values: Any, masked: _Masked) -> Any:
        from tvm import te, tirx

        found, rows, tokens = self._found, self._tiling.padded_rows, self._tiling.padded_tokens
        factor = found.queries.factor * found.keys.factor
        batch = [_const(each) for each in found.batch]
        count = len(batch)
        zero, one, multiplied = (
            tirx.const(each, "float32") for each in (0.0, 1.0, found.values.factor)
        )

        def row(index: Any) -> Any:
            return index if rows == found.rows else tirx.min(index, _const(found.rows - 1))

        def token(index: Any) -> Any:
            return index if tokens == found.tokens else tirx.min(index, _const(found.tokens - 1))

        def axis(extent: int, name: str) -> Any:
            return te.reduce_axis((_const(0), _const(extent)), name=name)

        across = te.compute(
            [*batch, _const(found.size), _const(rows)],
            lambda *at: queries(*at[:count], row(at[-1]), at[-2]) * tirx.const(factor, "float32"),
            name="queries",
        )
        d = axis(found.size, "d")
        scores = te.compute(
            [*batch, _const(tokens), _const(rows)],
            lambda *at: te.sum(
                across(*at[:count], d, at[-1]) * keys(*at[:count], d, token(at[-2])), axis=d
            ),
            name="scores",
        )
        j = axis(tokens, "j")
        largest = te.compute(
            [*batch, _const(rows)],
            lambda *at: te.max(
                masked(scores(*at[:count], j, at[-1]), at[:count], token(j), at[-1]), axis=j
            ),
            name=ROW_MAXIMA,
        )

        def subtracted(*at: Any) -> Any:
            if not found.is_safe:
                return largest(*at)
            # Scheduled, maxima begin at minus infinity and lose NaN; see `extremes.keeping_nan`.
            # Taken from minus infinity, a finite number leaves an exponential of 0, not NaN.
            return tirx.max(largest(*at), tirx.min_value("float32"))

        def exponent(*at: Any) -> Any:
            score = masked(scores(*at), at[:count], at[-2], at[-1])
            largest_of_row = subtracted(*at[:count], at[-1])
            if found.steps and found.steps[-1].name == "multiply":
                # Else LLVM subtracts from the product before it is rounded, as the maximum is.
                score = tirx.Select(largest_of_row < score, largest_of_row, score)
            return score - largest_of_row

        exps = te.compute(
            [*batch, _const(found.tokens), _const(rows)],
            lambda *at: tirx.exp(exponent(*at)),
            name="exps",
        )
        k = axis(found.tokens, "k")
        total = te.compute(
            [*batch, _const(rows)],
            lambda *at: te.sum(exps(*at[:count], k, at[-1]), axis=k),
            name="total",
        )
        t = axis(found.tokens, "t")
        product = te.compute(
            [*batch, _const(rows), _const(found.width)],
            lambda *at: te.sum(
                exps(*at[:count], t, at[-2]) * values(*at[:count], t, at[-1]), axis=t
            ),
            name="product",
        )

        def mean(*at: Any) -> Any:
            divisor = total(*at[:-1])
            if found.is_safe:
                divisor = tirx.Select(divisor.equal(zero), one, divisor)
            return product(*at) / divisor * multiplied

        means = te.compute([*batch, _const(rows), _const(found.width)], mean, name="means")
        last = [*batch, _const(found.rows), _const(found.width)]
        return te.compute(last, lambda *at: means(*at), name="attention")

    def _tensor(self, operand: _Operand, last: list[int]) -> Any:
        """An operand of a product as a tensor expression [*batch, *last]."""
        from tvm import topi

        tensor = self._placeholder(operand.base)
        for move in reversed(operand.moves):
            shape = [_const(each) for each in constant_extents(move) or []]
            if operator_name(move) == "permute_dims":
                axes = move.attrs.axes
                tensor = topi.transpose(tensor, None if axes is None else [int(a) for a in axes])
            elif operator_name(move) == "broadcast_to":
                tensor = topi.broadcast_to(tensor, shape)
            else:
                tensor = topi.reshape(tensor, shape)
        return topi.reshape(tensor, [_const(each) for each in (*self._found.batch, *last)])

    def _placeholder(self, value: Any) -> Any:
        """The function's parameter for a value of the graph as it was."""
        return self._parameter(self._mutator.visit_expr(value))

    def _parameter(self, value: Any) -> Any:
        """The function's parameter for a value of the graph as it becomes."""
        from tvm import te

        shape = [_const(each) for each in constant_extents(value) or []]
        name = f"x{len(self._given)}"
        self._given.append(value)
        self._placeholders.append(te.placeholder(shape, str(value.ty.dtype), name))
        return self._placeholders[-1]

    def _masking(self) -> _Masked:
        """What makes the softmax's operand of a score and the indices of batch, token and row."""
        from tvm import tirx

        steps = [
            (each, self._element(each.other), self._element(each.condition))
            for each in self._found.steps
        ]

        def masked(score: Any, batch: Any, token: Any, row: Any) -> Any:
            for step, other, condition in steps:
                two = [score, other(batch, token, row)]
                one, another = two if step.is_first else reversed(two)
                if step.name == "where":
                    score = tirx.Select(condition(batch, token, row), one, another)
                else:
                    score = _ARITHMETIC[step.name](one, another)
            return score

        return masked

    def _element(self, value: Any) -> Callable[[Any, Any, Any], Any]:
        """An operand's element by batch, token and row."""
        from tvm import tirx

        if value is None or isinstance(value, float):
            return lambda *_: tirx.const(value, "float32")
        extents = constant_extents(value) or []
        count = len(self._found.batch)
        shape = [1] * (count + 2 - len(extents)) + extents
        has_rows = shape[-2] != 1
        tensor = self._parameter(
            self._by_token(value, shape) if has_rows else self._mutator.visit_expr(value)
        )
        rank = len(extents)

        def element(batch: Any, token: Any, row: Any) -> Any:
            where = [*batch, token, row] if has_rows else [*batch, row, token]
            sizes = [*shape[:-2], shape[-1], shape[-2]] if has_rows else shape
            at = [
                _const(0) if size == 1 else index for size, index in zip(sizes, where, strict=True)
            ]
            return tensor(*(at if has_rows else at[len(at) - rank :]))

        return element

    def _by_token(self, value: Any, shape: list[int]) -> Any:
        """A tensor [..., rows, tokens] as [..., tokens, rows], the last row repeated to fill tiles.

        As vectors are of rows, those of a mask lie contiguous then.
        """
        import numpy as np
        import tvm
        from tvm import relax, te, tirx

        rows = self._tiling.padded_rows
        if isinstance(value, tvm.ir.GenericConst):
            held = np.swapaxes(value.value.numpy().reshape(shape), -1, -2)
            width = [(0, 0)] * (len(shape) - 1) + [(0, rows - shape[-2])]
            return relax.const(np.pad(held, width, "edge"), str(value.ty.dtype))
        given = self._mutator.visit_expr(value)
        leading = len(shape) - len(constant_extents(value) or [])

        def moved(mask: Any) -> Any:
            def element(*at: Any) -> Any:
                row = tirx.min(at[-1], _const(shape[-2] - 1))
                return mask(*[*at[:-2], row, at[-2]][leading:])

            extents = [*shape[:-2], shape[-1], rows]
            return te.compute([_const(each) for each in extents], element, name="mask")

        builder = self._mutator.builder_
        return builder.emit(builder.call_te(moved, given))


def _const(value: int) -> Any:
    from tvm import tirx

    return tirx.const(value, "int64")


def _scalar(value: Any) -> float | None:
    """The value of a constant of one element."""
    import tvm

    if not isinstance(value, tvm.ir.GenericConst) or math.prod(value.value.shape) != 1:
        return None
    return float(value.value.numpy().reshape(()))


def _factor_of(step: _Step) -> float | None:
    """The number that a step multiplies with, which queries may be multiplied with instead.

    None for another step, and for factors that make a query infinite where a score is finite.
    """
    if not isinstance(step.other, float) or not step.other:
        return None
    factor = None
    if step.name == "multiply":
        factor = step.other
    elif step.name == "divide" and step.is_first:
        factor = 1 / step.other
    return factor if factor is not None and 1 / _LARGE < abs(factor) < _LARGE else None


def _is_zero(value: Any) -> bool:
    import tvm

    return isinstance(value, tvm.ir.GenericConst) and not value.value.numpy().any()
