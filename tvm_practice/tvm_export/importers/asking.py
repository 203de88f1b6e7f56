"""Functions of PyTorch that ask for a tensor's values, replaced by functions that do not.

PyTorch cannot trace past such a question. Some functions ask only in order to raise an error, and
others although the shapes of their results are known. What PyTorch raises an error for gives NaN.
Embedding bags of one length ask where each bag begins, which their shape says. Where a model asks
only in order to raise an error, in `assert` or in `if …: raise`, no error is raised.
"""

import ast
import functools
import linecache
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.calling import masks_as_given

_Function = Callable[..., Any]


@contextmanager
def nothing_asked() -> Iterator[None]:
    """Inside the block, the functions of this module are called in place of PyTorch's.

    One that returns NotImplemented leaves the call to PyTorch.
    """
    from torch.overrides import TorchFunctionMode

    class Replaced(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = kwargs or {}
            own = _functions().get(func)
            found = NotImplemented if own is None else own(*args, **given)
            return func(*args, **given) if found is NotImplemented else found

    with Replaced(), masks_as_given():
        yield


@functools.cache
def _functions() -> dict[Any, _Function]:
    """By the function of PyTorch that each replaces."""
    import torch

    return {
        torch.nn.functional.gaussian_nll_loss: _gaussian_nll_loss,
        torch.nn.functional.embedding_bag: _bags_of_one_length,
        torch.linalg.lstsq: _lstsq,
        torch.Tensor.__setitem__: _set_where,
        torch.masked_select: _masked_select,
        torch.Tensor.masked_select: _masked_select,
        torch.cov: _cov,
        torch.Tensor.cov: _cov,
        torch.unique: _unique,
        torch.Tensor.unique: _unique,
        torch.unique_consecutive: _unique_consecutive,
        torch.Tensor.unique_consecutive: _unique_consecutive,
        torch.Tensor.__bool__: _as_required,
        torch.allclose: _as_required,
        torch.Tensor.allclose: _as_required,
        torch.equal: _as_required,
        torch.Tensor.equal: _as_required,
    }


def _as_required(*args: Any, **settings: Any) -> Any:
    """The answer without which the statement that asks would raise an error.

    NotImplemented for a statement that does anything else, for an error that may be caught, and
    where the answer is known.
    """
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    tensors = [e for e in (*args, *settings.values()) if isinstance(e, torch.Tensor)]
    if all(type(each) in plain for each in tensors):
        return NotImplemented
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name == "__torch_function__":
        frame = frame.f_back
    answers = [
        answer for lines, answer in _tests_of_errors(_source(frame)) if frame.f_lineno in lines
    ]
    if not answers or any(map(_may_catch, _callers(frame))):
        return NotImplemented
    return answers[0]


def _source(frame: Any) -> str:
    """Of a frame's file; empty where there is none."""
    return "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))


def _callers(frame: Any) -> Iterator[Any]:
    """A frame and those of the model that it was called from."""
    import torch

    package = Path(torch.__file__).parent
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(package / "export"):
            return
        if not file.is_relative_to(package):
            yield frame
        frame = frame.f_back


def _may_catch(frame: Any) -> bool:
    return any(frame.f_lineno in lines for lines in _catching(_source(frame)))


@functools.lru_cache(maxsize=64)
def _catching(source: str) -> tuple[range, ...]:
    """The lines of a file from which errors may be caught."""
    return tuple(
        _lines(statement)
        for each in _nodes(source)
        if (isinstance(each, ast.Try) and each.handlers)
        or (isinstance(each, ast.With) and any("suppress" in ast.dump(i) for i in each.items))
        for statement in each.body
    )


@functools.lru_cache(maxsize=64)
def _tests_of_errors(source: str) -> tuple[tuple[range, bool], ...]:
    """The lines of each test in a file whose failure is an error, and what it has to give.

    A test with a `not` anywhere but at its front is left out.
    """
    found = []
    for each in _nodes(source):
        if isinstance(each, ast.Assert):
            test, answer = each.test, True
        elif isinstance(each, ast.If) and _is_error(each.body[0]):
            test, answer = each.test, False
        else:
            continue
        lines = _lines(test)
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, answer = test.operand, not answer
        if not any(isinstance(part, ast.Not | ast.NotIn | ast.IfExp) for part in ast.walk(test)):
            found.append((lines, answer))
    return tuple(found)


def _nodes(source: str) -> Iterator[ast.AST]:
    try:
        return ast.walk(ast.parse(source))
    except SyntaxError:  # such as a notebook's cell with a command
        return iter(())


def _lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _is_error(statement: ast.stmt) -> bool:
    """Whether a statement raises an error, and not StopIteration, say."""
    if not isinstance(statement, ast.Raise):
        return False
    raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(raised, ast.Name) and raised.id.endswith(("Error", "Exception"))


def _gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """PyTorch's, NaN where a variance is negative."""
    import torch

    if not isinstance(var, torch.Tensor):
        return NotImplemented
    wide = var.unsqueeze(-1) if var.shape == input.shape[:-1] != input.shape else var
    known = torch.where((wide < 0).any(), math.nan, wide).clamp(min=eps)
    loss = 0.5 * (torch.log(known) + (input - target) ** 2 / known)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _set_where(x: Any, index: Any, value: Any) -> Any:
    """`x[mask] = x[mask] * 2`: PyTorch cannot tell that both sides have as many elements."""
    import torch

    is_mask = isinstance(index, torch.Tensor) and index.dtype == torch.bool
    if not is_mask or not isinstance(value, torch.Tensor) or not index.ndim:
        return NotImplemented
    is_counted = value.ndim == x.ndim - index.ndim + 1 and not isinstance(value.shape[0], int)
    if not is_counted or value.shape[1:] != x.shape[index.ndim :]:
        return NotImplemented
    wide = index.reshape(*index.shape, *[1] * (x.ndim - index.ndim)).expand_as(x)
    x.masked_scatter_(wide, value.to(x.dtype))
    return None


def _masked_select(input: Any, mask: Any) -> Any:
    """For PyTorch no more is selected than `input` has elements, however large the mask."""
    import torch

    spread: Any = torch.broadcast_tensors
    wide, mask = spread(input, mask)
    places = torch.nonzero(mask.reshape(-1)).select(1, 0)
    return wide.reshape(-1).index_select(0, places)


def _bags_of_one_length(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """A bag in each row of `input`; 16-bit sums in float32, as PyTorch's."""
    import torch

    if input.ndim != 2 or max_norm is not None or input.shape[1] == 0:
        return NotImplemented
    rows = torch.nn.functional.embedding(input, weight)
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    kept = None if padding is None else (input != padding).unsqueeze(2)
    if mode == "max":
        if kept is None:
            return rows.amax(1)
        return torch.where(kept.any(1), torch.where(kept, rows, -math.inf).amax(1), 0)
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
    if per_sample_weights is not None:
        wide = wide * per_sample_weights.to(wide.dtype).unsqueeze(2)
    total = (wide if kept is None else torch.where(kept, wide, 0)).sum(1)
    if mode == "mean":
        total = total / (input.shape[1] if kept is None else kept.sum(1).clamp(min=1))
    return total.to(weight.dtype)


def _lstsq(a: Any, b: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """By singular values: the solution that is smallest, of those with the least residual.

    Whether the drivers gelss and gelsd return residuals of tall matrices depends on their rank.
    """
    import torch

    m, n = a.shape[-2:]
    driver = driver or "gelsy"
    if a.is_complex() or not _is_full(a, b) or (m > n and driver in ("gelss", "gelsd")):
        return NotImplemented
    is_vector = b.ndim == 1 or b.shape == a.shape[:-1]
    right = b.unsqueeze(-1) if is_vector else b
    u, sizes, vh = torch.linalg.svd(a, full_matrices=False)
    least = torch.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond
    negligible = sizes <= least * sizes[..., :1]
    if driver == "gels":  # which takes the matrices to be of full rank
        negligible = torch.zeros_like(negligible)
    inverse = torch.where(negligible, 0, 1 / torch.where(negligible, 1, sizes))
    solution = vh.mT @ (inverse.unsqueeze(-1) * (u.mT @ right))
    nothing, rank = a.new_zeros(0), torch.zeros(0, dtype=torch.int64)
    residuals = ((a @ solution - right) ** 2).sum(-2) if m > n and driver == "gels" else nothing
    if driver != "gels":
        rank = torch.logical_not(negligible).sum(-1)
    values = sizes if driver in ("gelss", "gelsd") else nothing
    solution = solution.squeeze(-1) if is_vector else solution
    results: Any = torch.return_types
    return results.linalg_lstsq((solution, residuals, rank, values))


def _cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """With weights: NaN where they sum to 0. PyTorch asks whether they do, and are not negative."""

    if x.ndim > 2 or not _is_full(x) or (fweights is None and aweights is None):
        return NotImplemented
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    weights = aweights if fweights is None else fweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    total = weights.sum()
    apart = rows - ((rows * weights).sum(1) / total).unsqueeze(1)
    spent = correction if aweights is None else correction * (weights * aweights).sum() / total
    product = apart @ (apart * weights).to(apart.dtype).mT
    return (product / (total - spent).clamp(min=0)).squeeze()


def _is_full(*tensors: Any) -> bool:
    """Whether tensors have elements, of a number that is known."""
    extents = [each for tensor in tensors for each in tensor.shape]
    return all(isinstance(each, int) and each > 0 for each in extents)


def _unique(
    x: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    return _unique_consecutive(x, return_inverse, return_counts, dim)


def _unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Of one element, or of one slice, which is unique."""
    import torch

    if not _is_full(x) or (dim is not None and not -x.ndim <= dim < x.ndim):
        return NotImplemented
    if (x.numel() if dim is None else x.shape[dim]) != 1:
        return NotImplemented
    places = torch.zeros(x.shape if dim is None else 1, dtype=torch.int64, device=x.device)
    found = [x.reshape(1) if dim is None else x.clone()]
    found += [places] if return_inverse else []
    found += [torch.ones(1, dtype=torch.int64, device=x.device)] if return_counts else []
    return tuple(found) if len(found) > 1 else found[0]
