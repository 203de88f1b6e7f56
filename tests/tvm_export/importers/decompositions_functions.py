"""Functions that test_decompositions.py calls in a child process, on the current engine."""

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

Outputs = tuple[torch.Tensor, ...]


class _Model(torch.nn.Module):
    def __init__(self, function: Callable[..., Outputs]):
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Outputs:
        return self.function(*tensors)


def _numbers(x: torch.Tensor, n: torch.Tensor, b: torch.Tensor) -> Outputs:
    """Types that are mixed, and arguments that the frontend passes over."""
    return (
        torch.add(x, n, alpha=3),
        n + 0.5,
        n == 0.5,
        n * b,
        b + b,
        b == ~b,
        torch.div(n, 2, rounding_mode="floor"),
        torch.div(n, -2, rounding_mode="trunc"),
        torch.clamp(n, min=1),
        F.selu(x),
        F.celu(x, alpha=2.0),
        torch.copysign(n, x),
        torch.full((2,), -math.inf) + x[0, 0],
        torch.where(b, n, x),
        n << 3,
        n >> 1,
        n.to(torch.int8) >> n.abs(),
        torch.linspace(x[0, 0] + 4.3, 50, 50, dtype=torch.int64),
        torch.linspace(-7.9, x[0, 1] * 9, 12, dtype=torch.int16),
        torch.linspace(4.3, 50.7, 50, dtype=torch.int64) + n[0, 0],
        torch.linspace(4.3, 50.7, 1, dtype=torch.int64) + n[0, 0],
        7 // (n.abs() + 1),
        -7 % (x.abs() + 1),
        torch.cat([b, n, x]),
        F.rrelu(x, 0.1, 0.4),
    )


def _powers(n: torch.Tensor, exponents: torch.Tensor) -> Outputs:
    """Of whole numbers, which wrap around; to a negative power, reciprocals rounded to 0."""
    narrow = n.to(torch.int8), n.abs().to(torch.uint8)
    return (
        *(n**exponents, 2**exponents, (-3) ** exponents, n**0, n**3, n**5, n**70),
        *(n.int() ** exponents, narrow[0] ** exponents.to(torch.int8), narrow[0] ** 9),
        *(narrow[1] ** exponents.abs().to(torch.uint8), narrow[1] ** 4),
        n.float() * 2 ** torch.as_tensor(3),
    )


def _median_of_a_window(x: torch.Tensor) -> Outputs:
    """By Batcher's network of comparisons.

    TVM's pass for common subexpressions names one of its parts after the first use.
    """
    padded = F.pad(x, (1, 1, 1, 1), mode="reflect")
    height, width = x.shape[-2:]
    parts = [padded[..., i : i + height, j : j + width] for i in range(3) for j in range(3)]
    merged = "01 23 02 13 12 45 67 46 57 56 04 26 24 15 37 35 12 34 56 08 48 24 35 34"
    for i, j in (map(int, pair) for pair in merged.split()):
        parts[i], parts[j] = torch.minimum(parts[i], parts[j]), torch.maximum(parts[i], parts[j])
    unknown = F.pad((~torch.isfinite(x)).to(x.dtype), (1, 1, 1, 1), mode="reflect") != 0
    rows = unknown[..., :height, :] | unknown[..., 1 : 1 + height, :] | unknown[..., 2:, :]
    found = rows[..., :width] | rows[..., 1 : 1 + width] | rows[..., 2:]
    return (torch.where(found, torch.full_like(parts[4], math.nan), parts[4]),)


def _bytes(x: torch.Tensor, n: torch.Tensor) -> Outputs:
    """Of 8 bits without a sign and with one: numbers beyond the type are taken modulo."""
    return (
        *(-x, x.abs(), x.sign(), x - 30, x * -1, x + 300, x == -3, x > -1, x.clamp(min=-9)),
        *(torch.div(x, 3, rounding_mode="trunc"), x // 5, x % 7),
        *(*x.sort(descending=True), *x.topk(3, 0), x.kthvalue(2).values),
        *(n + 300, n * 1000, n < 300, n & 511, torch.cat([x, n])),
    )


def _special(x: torch.Tensor, near: torch.Tensor) -> Outputs:
    functions = (torch.sinh, torch.cosh, torch.expm1, torch.erfc, torch.lgamma, torch.i0)
    bessel = (torch.special.i0e, torch.special.i1, torch.special.i1e, torch.special.bessel_j0)
    found = [function(x) for function in (*functions, *bessel, torch.digamma, torch.exp2)]
    found += [torch.polygamma(1, x), torch.special.erfcx(x), torch.special.log_ndtr(x)]
    found += [torch.erfinv(near), torch.special.ndtri(near.abs()), torch.hypot(x, near)]
    positive = x.abs()
    found += [torch.special.modified_bessel_k1(positive)]
    found += [torch.special.scaled_modified_bessel_k0(positive)]
    return (*found, torch.angle(x), *torch.frexp(x))


def _recurrences(x: torch.Tensor, n: torch.Tensor, q: torch.Tensor) -> Outputs:
    """Loops whose lengths are data: degrees below 0 and in fractions, poles, NaN."""
    return (
        torch.special.hermite_polynomial_h(x, n),
        torch.special.laguerre_polynomial_l(x, n),
        torch.special.legendre_polynomial_p(x, n),
        torch.special.shifted_chebyshev_polynomial_w(x, n),
        torch.special.zeta(n, q),
        torch.polygamma(2, q),
    )


def _gammas(a: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Outputs:
    """Incomplete gamma functions and Airy's, where they begin, end and change their formulas."""
    return (
        *(torch.igamma(a, x), torch.igammac(a, x), torch.igamma(a[:, :1], x[0])),
        *(torch.igammac(a.double(), x.double()), torch.igamma(a.half(), x.half())),
        *(torch.special.airy_ai(y), torch.special.airy_ai(y.double())),
    )


# A row of them ends before its first -1.
_LABELS = torch.tensor([[1, 2, -1, 0, 0], [4, 3, 2, 1, 0], [-1, 0, 1, 2, 2], [3, 0, -1, -1, 1]])


def _losses(
    x: torch.Tensor, w: torch.Tensor, n: torch.Tensor, bias: torch.Tensor, weight: torch.Tensor
) -> Outputs:
    """Linear layers and cross entropy in one, by chunks of rows; rows of one target are ignored."""
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    loss: Callable[..., torch.Tensor] = F.linear_cross_entropy
    return (
        *(loss(x, w, n, reduction=r, options=options) for r in ("none", "mean", "sum")),
        loss(x, w, n, linear_bias=bias, weight=weight, ignore_index=1, options=options),
        loss(x, w, n, linear_bias=bias, ignore_index=1, reduction="none", options=options),
        loss(x[0], w, n[0], weight=weight, reduction="sum", options=options),
        loss(x[:1], w, n[:1], ignore_index=0, options=options),  # of no row
        *(F.multilabel_margin_loss(x, _LABELS, reduction=r) for r in ("none", "mean", "sum")),
        F.multilabel_margin_loss(x[0], _LABELS[0]),
    )


def _asking(
    x: torch.Tensor, var: torch.Tensor, a: torch.Tensor, b: torch.Tensor, low: torch.Tensor
) -> Outputs:
    """Functions that PyTorch asks for values in: variances, ranks, numbers of elements, weights."""
    loss = F.gaussian_nll_loss
    one: Any = x[:1]
    often = (x[0] > 0).to(torch.int64) + 1
    bag = torch.tensor([[1], [2], [1]])
    return (
        *(loss(x, x.flip(0), var, reduction=r, full=True) for r in ("none", "mean", "sum")),
        loss(x, x.flip(0), var[:, 0], eps=0.5),
        loss(x, x.flip(0), 0.25),
        loss(x, x.flip(0), torch.where(var > 1, math.nan, var), reduction="none"),
        *torch.linalg.lstsq(a, b),
        *torch.linalg.lstsq(a, b, driver="gels"),
        *torch.linalg.lstsq(a.mT, b[:, :3], driver="gelsd"),
        *torch.linalg.lstsq(a[0], b[0, :, 0]),
        *torch.linalg.lstsq(low, b[0], rcond=1e-4),
        *torch.unique(one, return_inverse=True, return_counts=True, dim=0),
        *(one[0, :1].unique(), one[0, 0].unique(return_counts=True)[1]),
        *one[:, :1].unique_consecutive(return_inverse=True),
        torch.cov(x, fweights=often, aweights=var[0]),
        torch.cov(x, correction=0, aweights=var[0]),
        x[1].cov(fweights=often),
        *(
            F.embedding_bag(often.expand(3, 5) * bag, a[0], mode=mode, padding_idx=place)
            for mode in ("sum", "mean", "max")
            for place in (None, 2, -4)
        ),
        F.embedding_bag(often.expand(4, 5), a[0], per_sample_weights=var, mode="sum"),
        torch.cov(x[:, :2], correction=9, fweights=often[:2]),
    )


def _windows(x: torch.Tensor, volume: torch.Tensor) -> Outputs:
    return (
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, 200_000, ceil_mode=True),  # padded, it would take terabytes
        F.avg_pool2d(x, (10**9, 3), (10**9, 2), (2, 1), ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, (2, 3), divisor_override=5),
        F.avg_pool3d(volume, 2, 2, 1, ceil_mode=True),
        *F.max_pool2d(x, 3, 2, 1, dilation=2, return_indices=True),
        *F.adaptive_max_pool2d(x, (3, 4), return_indices=True),
        *F.fractional_max_pool2d(x, 3, (3, 1), None, True, x[:, :, 0, :2].abs() % 1),
        F.fractional_max_pool3d(volume, 2, (3, 4, 1), None, False, volume[..., 0, 0, :3].abs() % 1),
        F.interpolate(x, size=(5, 11), mode="nearest"),
        torch.ops.aten.upsample_nearest2d(x, [5, 11]),  # as programs in core ATen have it
        torch.ops.aten._upsample_nearest_exact2d(x, [x.shape[2] * 2, x.shape[3] * 3], 2.0, 3.0),
        F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=True),
        F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
        F.grid_sample(x, x[:, :, :4, :2].reshape(2, -1, 2, 2), align_corners=False),
        F.conv_transpose3d(volume, volume[:, :1, :2, :2, :2].expand(2, 3, 2, 2, 2)),
        x.unfold(3, 4, 3),
    )


def _norms(x: torch.Tensor, weight: torch.Tensor) -> Outputs:
    return (
        F.instance_norm(x, eps=0.1),
        F.batch_norm(x, None, None, weight, weight, training=True),
        *torch.native_layer_norm(x, x.shape[2:], None, None, 1e-5),
        *torch.native_group_norm(x, weight, None, 2, 4, 63, 2, 1e-5),
    )


def _indexing(x: torch.Tensor, i: torch.Tensor, b: torch.Tensor) -> Outputs:
    places = i % 3
    return (
        x.select(1, -2),
        torch.arange(8, -2, -2) + i[0],
        x[i[0], :, i[1]],
        x[:, i[0], i[1]],
        torch.take(x, -i - 1),
        x.index_put((i[0], i[1]), x[0, 0, 0], accumulate=True),
        x.index_put((torch.tensor(2), i[0, :1]), x[0, 0]),
        x.index_put((b,), x[0]),
        x[0].scatter(0, places, x[1], reduce="multiply"),
        x[0].scatter_reduce(1, places, x[1], "mean", include_self=False),
        x[0].scatter_reduce(1, places, x[1], "amin", include_self=False),
        x[0].masked_scatter(x[1] > 0, x[2]),
        torch.as_strided(x, (3, 2), (5, 2), 1),
        torch.as_strided(x.mT + 0, (3, 2), (5, 2), 1),  # whose strides fall and rise
        torch.as_strided(x.mT + 0, tuple(x.shape), x.stride()),
        torch.as_strided(x[1:], (2, 2), (3, 1)),
        torch.searchsorted(x[0].sort().values, x[1], right=True),
        (x[0] > 0).sort(1, descending=True).values,
        x[0].diagonal_scatter(x[1, 0, :4], 1),
    )


def _called_by_its_parts(x: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> Outputs:
    """Operators that a person rarely calls, and rows that are put where a mask is true."""
    aten = torch.ops.aten
    places, begins = mask.reshape(-1).to(torch.int64) + 1, torch.tensor([0, 2, 6])
    bags = [
        aten.embedding_bag(table, places, begins, False, mode, False, None, last, padding)
        for mode in (0, 1, 2)
        for table, last, padding in ((rows, False, None), (rows, True, 1), (rows.double(), 0, None))
    ]
    early = torch.tensor([0, 1, 3])  # the last offset is before the last index
    bags += [
        aten.embedding_bag(table, places, early, False, mode, False, None, True, padding)
        for mode in (0, 1, 2)
        for table, padding in ((rows, None), (rows, 1), (rows.double(), None))
    ]
    image, weight = x.reshape(1, 2, 3, 4), x[0, 0, :4].reshape(1, 1, 2, 2).repeat(2, 1, 1, 1)
    stepped = ([2, 1], [1, 0], [1, 1], False, [0, 0], 2)
    return (
        aten._convolution(image, weight, None, *stepped, False, False, True, True),
        aten._index_put_impl(x, [mask], rows, True),
        x.index_put((mask,), rows),
        x.index_put((mask,), rows[:, :1]),
        x.index_put((mask,), rows[:1]),
        x.index_put((mask,), rows.double().to(x.dtype), accumulate=True),
        aten.detach_copy(x),
        aten.select_copy.int(x, 1, -1),
        aten.slice_copy.Tensor(x, 1, 0, 3, 2),
        *aten.split_copy.Tensor(x, 2, 2),
        aten.var(x, [], correction=1),
        aten.std(x, [], correction=0, keepdim=True),
        aten.mean(x, []),
        *(output for each in bags for output in each),
    )


def _reductions(x: torch.Tensor, n: torch.Tensor, scalar: torch.Tensor) -> Outputs:
    return (
        *x.max(1),
        *x.kthvalue(2, 1),
        *n.mode(1),
        *x.median(1),
        *x.cummax(1),
        x.logcumsumexp(1),
        x.any(1),
        (x > 0).all(1),
        n.cumsum(1),
        (x.reshape(-1)[0].abs() + 0.1).expand(2**20).cumsum(0)[-3:],  # float32 loses its tenths
        n.prod(1),
        scalar.argmax(),
        scalar.cumsum(0),
        x.amin((0, 1)),
        torch.linalg.vector_norm(x, 0, 1),
        *torch.var_mean(x, 1, correction=0),
        x.var((0, 1), correction=x.numel() - 1),
        torch.cdist(x, x + 1, p=3.0),
        torch.zeros(0, 4).sum(0) + x.new_zeros(4),
        torch.ones(3, 0) * scalar,
    )


def _seldom(x: torch.Tensor, n: torch.Tensor, scalar: torch.Tensor) -> Outputs:
    """Few models have these; the last three are of matrices without elements."""
    nothing, exchanged = x[:0, :0], torch.ones(0, dtype=torch.int32)
    return (
        x.new_empty_strided((2, 3), (1, 2), dtype=torch.int64).fill_(3),
        torch.empty_strided((2, 3), (1, 2)).fill_(3),
        torch.lerp(x.mT, x.mT + 1, 0.25),
        torch.histc(x, 4),
        torch.histc(scalar, 3),
        torch.hash_tensor(x, 1),
        torch.hash_tensor(n),
        torch.cov(x),
        torch.searchsorted(x[0].sort().values, 0.5),
        F.embedding(n[0].abs() % 3, x + 1, max_norm=1.5),
        torch.cholesky(nothing),
        torch.linalg.solve(nothing, x[:0]),
        *torch.lu_unpack(x[:, :0], exchanged),
    )


def _systems(a: torch.Tensor, b: torch.Tensor) -> Outputs:
    positive = a @ a.mT + torch.eye(4)
    return (
        torch.linalg.solve(a, b),
        torch.linalg.det(a),
        *torch.linalg.slogdet(a),
        torch.linalg.inv(a),
        *torch.linalg.lu_factor(a),
        *torch.linalg.lu(a),
        torch.linalg.cholesky(positive),
        torch.linalg.solve_triangular(a.triu(), b, upper=True),
        *torch.linalg.qr(a[:, :, :2], mode="complete"),
        torch.ormqr(a[:, :, :2], b[:, :2, 0], b),
        *torch.lu_unpack(*torch.linalg.lu_factor(b)),
        torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True),
        torch.linalg.tensorinv(a[0].reshape(2, 2, 4)),
        torch.linalg.det(a[:, :0, :0]),
    )


def _large_systems(a: torch.Tensor, b: torch.Tensor) -> Outputs:
    """Of more rows than are unrolled: batches, one matrix for many, the right side, halves."""
    a = a + 3 * torch.eye(a.shape[-1])
    positive = a @ a.mT + torch.eye(a.shape[-1])
    factors = torch.linalg.lu_factor(a)
    one = torch.linalg.lu_factor(a[0])
    return (
        torch.linalg.solve(a, b),
        torch.linalg.solve(a[0], b),
        torch.linalg.solve(a, b.mT, left=False),
        torch.linalg.solve(a[0], b[0, :, 0]),
        *(torch.linalg.det(a / 4), *torch.linalg.slogdet(a), torch.linalg.inv(a)),
        *(*torch.linalg.lu(a), *torch.linalg.lu(a[0, :, :19]), *torch.linalg.lu(a[:, :18])),
        *(*factors, *torch.lu_unpack(*one)),
        torch.lu_unpack(factors[0], factors[1], unpack_data=False)[0],
        *torch.lu_unpack(factors[0], factors[1], unpack_pivots=False)[1:],
        torch.linalg.lu_solve(*factors, b),
        torch.linalg.lu_solve(*one, b.mT, left=False),
        torch.linalg.lu_solve(*one, b, adjoint=True),
        torch.linalg.cholesky(positive),
        torch.linalg.cholesky(positive, upper=True),
        torch.cholesky_solve(b, torch.linalg.cholesky(positive)),
        torch.cholesky_inverse(torch.linalg.cholesky(positive[0], upper=True), upper=True),
        torch.linalg.solve_triangular(a.triu(), b, upper=True),
        torch.linalg.solve_triangular(a[0].tril(), b.mT, upper=False, left=False),
        torch.linalg.solve_triangular(a.tril() / 9, b, upper=False, unitriangular=True),
        torch.triangular_solve(b, a, upper=False, transpose=True)[0],
        *(*torch.linalg.qr(a), *torch.linalg.qr(a[:, :, :18], mode="complete")),
        *(*torch.linalg.qr(a[0, :19]), torch.linalg.qr(a, mode="r")[1]),
        torch.ormqr(*torch.geqrf(a), b),
        torch.ormqr(*torch.geqrf(a[0, :, :19]), b[0].mT, left=False, transpose=True),
        torch.linalg.householder_product(*torch.geqrf(a[:, :, :17])),
    )


def _bits(x: torch.Tensor, y: torch.Tensor) -> Outputs:
    """The numbers next to others, with the signs of zeros, in every type."""
    found = [torch.nextafter(one, other) for one in (x, y) for other in (x, y, x[0])]
    return *found, *(1 / each for each in found)


def _bytes_in_products(x: torch.Tensor, n: torch.Tensor, scales: torch.Tensor) -> Outputs:
    wide = n.to(torch.int32)
    return (
        torch._int_mm(n, n.T),
        torch._int_mm(n, (n * 3).T) + wide[:, :1],
        torch._weight_int8pack_mm(x, n, scales),
        *(F.pad(n > 0, (1, 2), value=value) for value in (0, 1, 0.5, -2)),
    )


def _spectra(a: torch.Tensor, b: torch.Tensor) -> Outputs:
    """What does not depend on the vectors' signs; one matrix of three is singular."""
    values, vectors = torch.linalg.eigh(a @ a.mT)
    u, sizes, v = torch.linalg.svd(b)
    kept, _, shared = torch.linalg.svd(b.mT, full_matrices=False)
    return (
        values,
        vectors @ torch.diag_embed(values) @ vectors.mT,
        u @ u.mT,
        u[..., :3] @ torch.diag_embed(sizes) @ v,
        kept @ torch.diag_embed(sizes) @ shared,
        torch.linalg.svdvals(b),
        torch.linalg.pinv(b),
        torch.linalg.eigvalsh(a, UPLO="U"),
        torch.linalg.matrix_rank(b),
        torch.linalg.svd(b[:0]).S,
    )


def _complex(x: torch.Tensor, turns: torch.Tensor) -> Outputs:
    """Real outputs by way of complex numbers: rotations, Fourier transforms, a spectral layer."""
    pairs = torch.view_as_complex(x.reshape(4, 3, 2))
    spectrum = torch.fft.rfft2(x, norm="ortho")
    kept = torch.zeros(4, 4, dtype=torch.cfloat)
    window = torch.hann_window(8) + 0.1
    parts = torch.stft(x.reshape(2, 12), 8, window=window, return_complex=True)
    kept[:2, :3] = spectrum[:2, :3] @ torch.polar(turns, turns)[:3, :3] * (1 + 2j) - 1j
    return (
        torch.view_as_real(pairs * torch.polar(torch.ones_like(turns), turns)),
        torch.fft.irfft2(kept / (spectrum + 3), s=(4, 6)),
        torch.fft.hfft(x, 9),
        torch.fft.fft(x, dim=0).abs(),
        torch.view_as_real((1j * turns).exp() ** 2),
        torch.stft(x.reshape(-1), 8, window=turns.reshape(-1)[:8], return_complex=True).real,
        torch.istft(parts, 8, window=window),
        torch.fft.fftshift(spectrum, dim=(0,)).abs(),
        torch.view_as_real(pairs.unfold(1, 2, 1)),
    )


class Rotation(torch.nn.Module):
    """A complex buffer, as rotary embeddings keep it, and weights, as Fourier operators do."""

    turns: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(4, 3), torch.randn(4, 3)))
        self.weight = torch.nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> Outputs:
        turned = torch.view_as_complex(x.reshape(4, 3, 2)) * self.turns
        return (torch.view_as_real(turned @ self.weight).flatten(1),)


_DIGITS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "log1p": torch.log1p,
    "atanh": torch.atanh,
    "softplus": F.softplus,
    "softplus, sharper": lambda x: F.softplus(x, beta=2.5, threshold=7),
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "elu": F.elu,
    "hypot": lambda x: torch.hypot(x, x.flip(0)),
    "logaddexp": lambda x: torch.logaddexp(x, x.flip(0)),
    "frexp": lambda x: torch.frexp(x)[0],
    "root": lambda x: x**0.5,
    "root below": lambda x: x**-0.5,
    "log_ndtr": torch.special.log_ndtr,
}


def digits() -> dict[str, float]:
    """The largest relative difference to PyTorch of each of these functions."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    x = torch.tensor(
        [0, 1e-30, 1e-5, -1e-5, 5e-4, -0.24, 0.26, 0.999, -0.999, 1, 9, -9, 15, -15, 20]
        + [-20.0, 2.0**24, 2.0**-126, 1e30, -3e38, math.inf, -math.inf, math.nan]
    )
    model = _Model(lambda x: tuple(function(x) for function in _DIGITS.values()))
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x,)), verify=False)
    found = {}
    for name, made, want in zip(_DIGITS, compiled(x), model(x), strict=True):
        got = torch.as_tensor(made)
        same = (got == want) | (got.isnan() & want.isnan())
        apart = ((got - want).abs() / want.abs()).where(~same, torch.zeros(()))
        found[name] = float(apart.nan_to_num(math.inf).max())
    return found


# Of 16-bit numbers, in which PyTorch rounds the result alone.
_ROUNDED_ONCE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{name: getattr(torch, name) for name in ("tanh", "sigmoid", "tan")},
    "log2": lambda x: torch.log2(x.abs() + 0.25),
    "log10": lambda x: torch.log10(x.abs() + 0.25),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.25),
    **{name: getattr(F, name) for name in ("gelu", "leaky_relu", "selu", "elu")},
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "a product": lambda x: x * 0.1,
    "a quotient": lambda x: x / 0.3,
    "a sum with a factor": lambda x: torch.add(x, x.flip(0), alpha=0.3),
}


def rounded_errors(dtype: str) -> dict[str, float]:
    """The largest error of each function of 16-bit numbers, as a multiple of PyTorch's own."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    x = (torch.randn(16, 64) * 2).to(getattr(torch, dtype))
    model = _Model(lambda x: tuple(function(x) for function in _ROUNDED_ONCE.values()))
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x,)))
    unit = torch.finfo(x.dtype).eps
    found = {}
    for name, made, own, exact in zip(
        _ROUNDED_ONCE, compiled(x), model(x), model(x.double()), strict=True
    ):
        ours, theirs = (
            ((each - exact).abs() / (exact.abs() * unit).clamp_min(1e-9)).max()
            for each in (torch.as_tensor(_in_numpy(made)).double(), own.double())
        )
        found[name] = float(ours / theirs)
    return found


def spectrum_difference() -> float:
    """The largest difference to PyTorch of a model that has complex numbers inside one operator."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, x = _Model(lambda x: (torch.fft.irfft2(x),)), torch.randn(4, 6)
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x,)), verify=False)
    return float(abs(compiled(x)[0] - model(x)[0].numpy()).max())


def rotation_difference() -> float:
    """The largest difference to PyTorch of a model that has a complex buffer and weights."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    model, x = Rotation(), torch.randn(4, 6)
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x,)), verify=False)
    return float(abs(compiled(x)[0] - model(x)[0].detach().numpy()).max())


class Keeping(torch.nn.Module):
    """A tensor is made in the first call, and kept."""

    def __init__(self) -> None:
        super().__init__()
        self.weighed = torch.nn.Linear(3, 4)
        self.kept: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> Outputs:
        if self.kept is None:
            self.kept = torch.arange(3.0)
        return (self.weighed(self.kept.expand(x.shape)) + x.sum(),)


def kept_difference() -> float:
    """The largest difference to PyTorch of a model that was called in inference mode before."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    model, x = Keeping().eval(), torch.randn(2, 3)
    with torch.inference_mode():
        expected = model(x)[0].numpy()
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x,)), verify=False)
    return float(abs(compiled(x)[0] - expected).max())


def _whole(*shape: int) -> torch.Tensor:
    return torch.randint(-3, 4, shape, dtype=torch.int32)


def _singular(b: torch.Tensor) -> torch.Tensor:
    b[1, :, 2] = b[1, :, 0] - b[1, :, 1]
    return b


def _narrow(x: torch.Tensor, image: torch.Tensor, kernel: torch.Tensor) -> Outputs:
    """Sums of many numbers of 16 bits, which PyTorch takes in float32."""
    return (
        x @ x.T,
        F.linear(x, x, x[:, 0]),
        F.conv2d(image, kernel.transpose(0, 1)),
        F.conv_transpose2d(image, kernel),
        F.avg_pool2d(image + 4, 5, 2, 1),
        F.adaptive_avg_pool2d(image + 4, (1, 1)),
        (x + 4).mean(1),
        (x + 4).var(1),
        F.log_softmax(x, 1),
        torch.sort(x, 1).values,
        torch.topk(x, 5).values,
        x[:, :1].expand(8, 16),
    )


def _no_terms(x: torch.Tensor, y: torch.Tensor) -> Outputs:
    """Products that add nothing."""
    return x @ y, torch.bmm(x[None], y[None])


def _no_stride(x: torch.Tensor) -> Outputs:
    return F.max_pool2d(x[0], 3, padding=1), *F.max_pool3d(x, 3, padding=1, return_indices=True)


def _no_elements(a: torch.Tensor, b: torch.Tensor) -> Outputs:
    """Operators on (3, 3) matrices and (3, 0) columns."""
    square = torch.linalg.lu_factor(a)
    tall = torch.geqrf(b)
    return (
        torch.linalg.lu_solve(*square, b),
        torch.linalg.solve_triangular(a, b, upper=True),
        torch.triangular_solve(b, a)[0],
        torch.cholesky_solve(b, a),
        *torch.linalg.qr(b, mode="complete"),
        torch.linalg.householder_product(a, a[0, :0]),
        torch.ormqr(*tall, a),
        torch.igamma(b, b),
        torch.special.airy_ai(b),
        F.max_pool2d(b.reshape(0, 1, 3, 3), 2),
        *(b.reshape(0, 3).sum(0), b.reshape(0, 3).any(0), b.reshape(0, 3).all(0), b.prod(1)),
        torch.histogram(b, 2)[0],
    )


def _steps(x: torch.Tensor, whole: torch.Tensor) -> Outputs:
    """Rounding to steps as in training for quantization, at rare values too; shifts of bits."""
    x = torch.cat((x, torch.tensor([[0.025, -torch.inf, torch.inf, torch.nan, 1e20, -0.125]])))
    zeros = torch.arange(6, dtype=torch.int32)
    return (
        torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127),
        torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.037), zeros[1], 0, 255),
        torch.fake_quantize_per_tensor_affine(x.half(), 0.05, 0, 0, 15),
        torch.fake_quantize_per_channel_affine(x, torch.linspace(0.01, 0.1, 6), zeros, 1, 0, 15),
        torch.bitwise_left_shift(whole, 2),
        torch.bitwise_right_shift(1000, whole),
        torch.bitwise_and(6, whole),
        torch.bitwise_or(6, whole.to(torch.int8)),
        torch.bitwise_xor(True, whole > 1),
        whole << whole,
    )


def _quantized(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> Outputs:
    """What PyTorch's quantized programs consist of: integers and what they stand for."""
    import torch.ao.quantization.fx._decomposed

    ops = torch.ops.quantized_decomposed
    byte, word = (0, 255, torch.uint8), (-128, 127, torch.int8)
    fixed = ops.quantize_per_tensor(x, 0.013, 131, *byte)
    chosen = ops.choose_qparams.tensor(x, 0, 255, 2**-12, torch.uint8)
    dynamic = ops.quantize_per_tensor.tensor(x, *chosen, *byte)
    whole = ops.dequantize_per_tensor.tensor(dynamic, *chosen, *byte)
    even = ops.choose_qparams_symmetric.tensor(x, -127, 127, 2**-12, torch.int8)
    zeros = torch.arange(-2, 3)
    columns = ops.quantize_per_channel(weight, scale, zeros, 0, *word)
    given = ops.dequantize_per_channel(columns, scale, zeros, 0, *word)
    found = [fixed, *chosen, dynamic, whole, *even, columns, F.linear(whole, given)]
    found += [ops.dequantize_per_tensor(fixed, 0.013, 131, *byte)]
    found += [ops.dequantize_per_channel(columns, scale, None, 0, *word)]
    tokens = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    by_token = ops.quantize_per_token(x, *tokens, *word)
    found += [*tokens, by_token, *ops.choose_qparams_per_token(x, torch.int8)]
    found += [ops.dequantize_per_token(by_token, *tokens, *word, torch.float32)]
    parts = scale.repeat(2).reshape(5, 2), torch.zeros(5, 2)
    by_group = ops.quantize_per_channel_group(weight, *parts, *word, 3)
    wide = ops.dequantize_per_channel_group(by_group, *parts, *word, 3, torch.float32)
    return (*found, by_group, wide)


def _families() -> dict[str, tuple[Callable[..., Outputs], Outputs]]:
    torch.manual_seed(0)
    x = torch.randn(4, 5)
    image, volume = torch.randn(2, 4, 7, 9), torch.randn(2, 2, 5, 6, 7)
    cube = torch.randn(4, 4, 5)
    wide = torch.randn(8, 384), torch.randn(1, 48, 9, 9), torch.randn(48, 8, 3, 3)
    return {
        "numbers": (_numbers, (x, _whole(4, 5), x > 0)),
        "bytes": (
            _bytes,
            tuple(torch.randperm(40).reshape(5, 8).to(t) * 7 for t in (torch.uint8, torch.int8)),
        ),
        "powers": (
            _powers,
            (torch.arange(-3, 9)[:, None], torch.tensor([-3, -2, 0, 1, 5, 39, 63])),
        ),
        "median of a window": (_median_of_a_window, (torch.rand(1, 3, 32, 32),)),
        "special": (_special, (x * 4, torch.tanh(x))),
        "recurrences": (
            _recurrences,
            (
                torch.tensor([-3.0, -1.0, -0.7, 0.0, 0.3, 1.0, 4.0]).expand(8, 7),
                torch.tensor([-2.0, -0.5, 0.0, 1.0, 2.0, 3.7, 9.0, 200.0]).unsqueeze(1),
                torch.tensor([-7.5, -2.0, 0.0, 0.1, 2.5, 9.5, 50.0]),
            ),
        ),
        "windows": (_windows, (image, volume)),
        "norms": (_norms, (image, torch.rand(4))),
        "indexing": (_indexing, (cube, torch.randint(0, 4, (4, 5)), torch.rand(4) > 0.5)),
        "systems": (_systems, (torch.randn(2, 4, 4), torch.randn(2, 4, 3))),
        "large systems": (_large_systems, (torch.randn(2, 20, 20), torch.randn(2, 20, 3))),
        **{f"bits of {each}": (_bits, _next(each)) for each in ("float32", "float16", "bfloat16")},
        "bytes in products": (
            _bytes_in_products,
            (torch.randn(16, 32), _whole(24, 32).to(torch.int8) * 9, torch.rand(24)),
        ),
        "spectra": (_spectra, (torch.randn(2, 4, 4), _singular(torch.randn(3, 5, 3)))),
        "complex": (_complex, (torch.randn(4, 6), torch.rand(4, 3))),
        "float16": (_narrow, tuple(each.half() for each in wide)),
        "bfloat16": (_narrow, tuple(each.bfloat16() for each in wide)),
        "no terms": (_no_terms, (torch.zeros(2, 0).bfloat16(), torch.zeros(0, 2).bfloat16())),
        "no elements": (_no_elements, (torch.randn(3, 3), torch.zeros(3, 0))),
        "no stride": (_no_stride, (torch.randn(1, 1, 5, 5, 5),)),
        "reductions": (_reductions, (x, _whole(4, 5), torch.tensor(3.0))),
        "parts": (
            _called_by_its_parts,
            (
                torch.randn(2, 3, 4),
                torch.tensor([[True, False, True], [False, False, True]]),
                torch.randn(3, 4),
            ),
        ),
        "seldom": (_seldom, (x, _whole(4, 5), torch.tensor(3.0))),
        "items": (_of_items, (x, torch.tensor([1, 3, 0, 2]))),
        "assertions": (_asserted, (x, torch.tensor([1, 3, 0, 2]))),
        "repetitions": (_repetitions, (x, torch.tensor([1, 3, 0, 2]))),
        "extremes": (_extremes, (_not_finite(),)),
        "common divisors": (
            lambda x, y: tuple(
                f(x.to(each), y.to(each))
                for f in (torch.gcd, torch.lcm)
                for each in (torch.int64, torch.int32, torch.int8)
            ),
            (torch.tensor([[0], [-12], [35], [9]]), torch.tensor([0, 18, -7, 10, 1])),
        ),
        **{
            f"ends of {dtype}": (_least_numbers, (_ends(dtype),))
            for dtype in (torch.int64, torch.int32, torch.int8)
        },
        "places of least numbers": (_places, (torch.tensor([[0, 0, 0], [0, 9, 0], [7, 7, 7]]),)),
        "rare": (_rare, _pairs_of_rare()),
        "steps": (_steps, (torch.randn(4, 6), torch.randint(0, 9, (3, 4)))),
        "quantized": (_quantized, (torch.randn(4, 6), torch.randn(5, 6), torch.rand(5) + 0.01)),
        "gammas": (_gammas, _places_of_gammas()),
        "losses": (
            _losses,
            (x, torch.randn(3, 5), torch.tensor([0, 2, 1, 0]), torch.randn(3), torch.rand(3)),
        ),
        "asking": (
            _asking,
            (
                *(x, torch.rand(4, 5) * 2, torch.randn(2, 5, 3), torch.randn(2, 5, 4)),
                _singular(torch.randn(2, 5, 3))[1],
            ),
        ),
    }


def _repetitions(x: torch.Tensor, n: torch.Tensor) -> Outputs:
    """Of rows as often as constants say, and as often as `n` says, in a number that is given."""
    times = torch.tensor([2, 0, 1, 3])
    return (
        x.repeat_interleave(times, dim=0),
        x.repeat_interleave(n, dim=0, output_size=6),
        torch.repeat_interleave(times) + n.sum(),
        x[:, 0].repeat_interleave(times),
    )


def _of_items(x: torch.Tensor, n: torch.Tensor) -> Outputs:
    """With numbers that are read from a tensor."""
    most, total = n.max().item(), n.sum().item()
    return (
        *(x * most, x + most, most - x, x / total, x // total, x.half() * most, x > most),
        *(x.abs() ** most, x.clamp(max=most), torch.where(x > 0, x, most), n / most),
        *(x * (most / total), x + (most * total + 2), x * (total % 4), x * x[0, 0].item()),
        torch.full((3,), most),
    )


def _of_extents(x: torch.Tensor) -> Outputs:
    rows = x.shape[0]
    return (
        *(x * rows, x / rows, rows - x, x + (rows - 1), x.sum(0) * rows**-0.5, x * (1 / rows)),
        *(torch.full((4,), rows), torch.full_like(x, rows), x.masked_fill(x > 0, rows)),
        *((x * 9).long().clamp(0, rows - 1), torch.where(x > 0, x, rows)),
        *(x.std(0), x.var(), *torch.var_mean(x, 0, correction=0), torch.arange(rows) / rows),
        *(x * (2 / rows**0.5), x * rows**0.5 / (rows - 0.5), x**rows, x + (rows / 3) ** 2),
        F.scaled_dot_product_attention(x[None].mT, x[None].mT, x[None].mT),
    )


class _Rows(_Model):
    def forward(self, x: torch.Tensor) -> Outputs:  # type: ignore[override]
        return self.function(x)


def of_extents() -> list[str]:
    """What is wrong of outputs that are made of a number of rows known at run time only."""
    from conformance.judging import compared
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = _Rows(_of_extents)
    config = ExportConfig(example_input=torch.randn(3, 4), input_shapes={"x": ("n", 4)})
    compiled = compile_pytorch_module(model, config)
    told = []
    for rows in (3, 7, 2):
        x = torch.randn(rows, 4)
        for number, (output, one) in enumerate(zip(compiled(x.numpy()), model(x), strict=True)):
            verdict, reason = compared([output], [one])
            if verdict != "right":
                told.append(f"{rows} rows, {number}: {reason}")
    return told


def places_of_the_largest() -> list[str]:
    """What is wrong of a pooling with places and its inverse, of a batch and an image size open."""
    from conformance.judging import compared
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    def pooled(x: torch.Tensor) -> Outputs:
        halved, places = F.max_pool2d(x, 2, return_indices=True)
        back = F.max_unpool2d(2 * halved, places, [2, 2])
        return halved, places, back, *F.max_pool2d(x, 3, (1, 3), 1, 2, return_indices=True)

    def above(x: torch.Tensor) -> Outputs:
        return F.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True)

    def before_others(x: torch.Tensor) -> Outputs:
        padded = F.max_pool2d(x.to(torch.bfloat16), 2, 3, 1, ceil_mode=True, return_indices=True)
        return F.max_pool2d(x, (2, 3), 3, 0, 2, True).logsumexp(2), *padded

    x, told = torch.randn(2, 3, 12, 14), []
    odd = ((1, 3, 9, 22), (4, 3, 36, 7))
    cases: list[Any] = [(pooled, ("n", 3, "h", "w"), ((1, 3, 8, 22), (4, 3, 36, 10)))]
    cases.append((above, ("n", 3, 12, 14), ((5, 3, 12, 14),)))
    cases.append((above, ("n", 3, "h", "w"), odd))
    cases.append((before_others, ("n", 3, "h", "w"), ((1, 3, 9, 20), (2, 3, 33, 11))))
    for function, names, shapes in cases:
        config = ExportConfig(example_input=x, input_shapes={"x": names})
        compiled = compile_pytorch_module(_Model(function), config)
        for shape in shapes:
            given = torch.randn(shape)
            given[0, 0, 2:5, 2:5] = math.nan
            verdict, reason = compared(list(compiled(given)), list(function(given)))
            if verdict != "right":
                told.append(f"{function.__name__} {shape}: {reason}")
    return told


class _Scattered(torch.nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> Outputs:
        largest = x.scatter_reduce(1, index, source, "amax", include_self=False)
        return x.scatter_add(1, index, source), largest


class _OfOpenChannels(torch.nn.Module):
    def forward(self, x: torch.Tensor, mean: torch.Tensor, weight: torch.Tensor) -> Outputs:
        normalized = F.batch_norm(x, mean, mean * mean + 0.5, weight, None)
        return normalized, F.group_norm(x, 2), F.instance_norm(x)


def norms_of_open_channels() -> list[str]:
    from conformance.judging import compared
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    def inputs(examples: int, channels: int) -> Outputs:
        return torch.randn(examples, channels, 5), torch.randn(channels), torch.randn(channels)

    shapes: dict[str, Any] = {"x": ("n", "c", 5), "mean": ("c",), "weight": ("c",)}
    model, told = _OfOpenChannels(), []
    config = ExportConfig(example_input=inputs(3, 6), input_shapes=shapes)
    compiled = compile_pytorch_module(model, config)
    for extents in ((3, 6), (1, 4), (5, 10)):
        given = inputs(*extents)
        verdict, reason = compared(list(compiled(*given)), list(model(*given)))
        if verdict != "right":
            told.append(f"{extents}: {reason}")
    return told


def scatters_of_open_sources() -> list[str]:
    """What is wrong where an index is as long as its source, and where it is shorter."""
    from conformance.judging import compared
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    def inputs(rows: int, more: int) -> Outputs:
        index = torch.arange(rows * 4).reshape(rows, 4) % 5
        return torch.randn(rows, 5), index, torch.randn(rows + more, 4 + more)

    shapes: dict[str, Any] = {"x": ("n", 5), "index": ("n", "k"), "source": ("m", "l")}
    config = ExportConfig(example_input=inputs(3, 2), input_shapes=shapes)
    compiled = compile_pytorch_module(_Scattered(), config)
    told = []
    for rows, more in ((3, 2), (6, 0), (1, 4)):
        given = inputs(rows, more)
        verdict, reason = compared(list(compiled(*given)), list(_Scattered()(*given)))
        if verdict != "right":
            told.append(f"{rows} rows, {more} more: {reason}")
    return told


def bits_of_numbers() -> dict[str, bool]:
    """Whether what depends on bits is as PyTorch has it, by type: of NaN with a sign, too."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    def bits(x: torch.Tensor) -> Outputs:
        other = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
        sign = (torch.signbit(x), torch.copysign(torch.ones_like(x), x))
        return sign if x.dtype == torch.bfloat16 else (*sign, x.view(other))

    found = {}
    x = torch.tensor([-math.inf, math.inf, math.nan, 2.3, 0.0, 1e-39])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        given = torch.cat([x.to(dtype), -x.to(dtype)])
        compiled = compile_pytorch_module(_Model(bits), ExportConfig(example_input=given))
        found[str(dtype)] = all(
            np.array_equal(_in_numpy(each), _in_numpy(wanted))
            for each, wanted in zip(compiled(given), bits(given), strict=True)
        )
    return found


def _in_numpy(x: Any) -> np.ndarray:
    """A tensor of either library; a bfloat16 as float32."""
    if isinstance(x, torch.Tensor):
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    return x.astype("float32") if str(x.dtype) == "bfloat16" else np.asarray(x)


def instance_norm_of_open_images() -> dict[str, Any]:
    """The rules that schedule it, and its largest error at some batches and sizes."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = torch.nn.InstanceNorm2d(6, affine=True).eval()
    torch.nn.init.uniform_(model.weight)
    config = ExportConfig(
        example_input=torch.randn(2, 6, 5, 7), input_shapes={"input": ("n", 6, "h", "w")}
    )
    compiled = compile_pytorch_module(model, config)
    errors = []
    for extents in ((2, 5, 7), (1, 32, 31), (3, 1, 9)):
        x = 50 + torch.randn(extents[0], 6, *extents[1:])
        [output] = compiled(x.numpy())
        errors.append(np.abs(output - model(x).detach().numpy()).max())
    return {"rules": sorted(set(compiled.rules.values())), "error": float(max(errors))}


def _asserted(x: torch.Tensor, n: torch.Tensor) -> Outputs:
    """What a model says of its inputs' values."""
    torch._check_tensor_all(n >= 0)  # type: ignore[no-untyped-call]
    torch._assert_async((n < 4).all(), "a number below 4")
    torch._check(n.sum().item() > 1)  # type: ignore[no-untyped-call]
    assert n.min() >= 0 and (
        torch.equal(n, n.abs())  # here too
    ), f"{n.min()}"
    assert not (n < 0).any()
    if (n > 3).any() or n.sum() == 0:
        raise ValueError(f"a number above {n.max()}")
    if not torch.allclose(input=x, other=x + 0):
        raise RuntimeError
    return (x * n.sum(),)


def _caught(x: torch.Tensor) -> Outputs:
    """An error decides, so the answer matters."""
    try:
        _require_negative(x)
    except ValueError:
        return (x,)
    return (-x,)


def _require_negative(x: torch.Tensor) -> None:
    if x.sum() > 0:
        raise ValueError


def _suppressed(x: torch.Tensor) -> Outputs:
    with contextlib.suppress(AssertionError):
        assert x.sum() > 0
        return (x,)
    return (-x,)


def _ended(x: torch.Tensor) -> Outputs:
    """What is raised is no error."""
    if x.sum() > 0:
        raise StopIteration
    return (x,)


def _places_of_gammas() -> tuple[torch.Tensor, ...]:
    edges = [0.0, -1.0, math.inf, -math.inf, math.nan]
    values = torch.tensor([*edges, 1e-8, 0.3, 1, 2.5, 7, 30, 103, 1e3, 1e5, 1.1e7, 3e7])
    a, x = torch.meshgrid(values, values * 1.0001, indexing="ij")
    y = torch.cat([torch.linspace(-30, 30, 61), torch.tensor([*edges, 2, -2, 1e4])])
    return a.contiguous(), x.contiguous(), y


def _next(dtype: str) -> tuple[torch.Tensor, ...]:
    values = [0.0, -0.0, 1, -1, 1.5, math.inf, -math.inf, math.nan, 65504, -3e38, 6e-8, 6.1e-5]
    numbers = torch.tensor([*values, -1e-40], dtype=getattr(torch, dtype))
    one, other = torch.meshgrid(numbers, numbers, indexing="ij")
    return one.contiguous(), other.contiguous()


def _not_finite() -> torch.Tensor:
    nan, infinity = math.nan, math.inf
    rows = [[1, nan, 3, 2], [-infinity] * 4, [infinity, 1, 2, 3], [4, 3, 2, nan]]
    return torch.tensor(rows, dtype=torch.float32)


def _extremes(x: torch.Tensor) -> Outputs:
    return (
        *(x.amax(1), x.amin(1), (-x).amax(1, keepdim=True), x.min(), x.half().amax(1)),
        *(*x.max(1), *(-x).min(0), x.argmax(1), x.argmax(), x.argmin(0, keepdim=True)),
        *(*x.sort(0), *x.sort(1, descending=True), x.topk(3)[0], x.median(1)[0]),
        (x * math.nan).mode(1)[0],
        *(x.kthvalue(2)[0], torch.histogram(x[:0], 1, density=True)[0]),
        *(*x.half().sort(1), *x.bfloat16().sort(0), *x.double().sort(1, descending=True)),
        *(x / 0, x / -0.0, torch.floor_divide(x, 0.0), 0 / x, x * 0, x / torch.zeros(3).sum()),
    )


def _places(x: torch.Tensor) -> Outputs:
    """Among numbers that a search for a maximum, or a minimum, begins with."""
    bounds = ((dtype, torch.iinfo(dtype)) for dtype in (torch.uint8, torch.int8, torch.int64))
    found: list[torch.Tensor] = []
    for dtype, bound in bounds:
        least, most = (x.to(dtype) + bound.min).clamp(max=bound.max), bound.max - x.to(dtype)
        found += [*least.max(1), *most.min(0), least.argmax(), most.argmin(1), (x > 9).max(1)[1]]
    return tuple(found)


def _ends(dtype: torch.dtype) -> torch.Tensor:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return torch.tensor([low, low + 1, 0, 1, high - 1, high], dtype=dtype)


def _least_numbers(x: torch.Tensor) -> Outputs:
    """Of a type of integers, and the largest: compared with, taken away, ordered."""
    ends = torch.iinfo(x.dtype)
    low, high = ends.min, ends.max
    return (
        *(x == low, x != low, x <= low, x > low, x < low + 1, x >= low + 1, x == high, x >= high),
        *(torch.where(x == low, 1, x), x.clamp(min=low), x.clamp(max=high - 1), x.sign()),
        *(x - low, low - x, high - x, -x, x.abs(), x * 2, x + high, x.sum(), x.cumsum(0)),
        *(x.amax(0), x.amin(0), x.sort()[0], x >> 1, torch.bitwise_not(x), x // 3, x % -5),
    )


def _pairs_of_rare() -> tuple[torch.Tensor, ...]:
    values = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -2.0)
    pairs = list(itertools.product(values, values))
    return tuple(torch.tensor(each) for each in zip(*pairs, strict=True))


def _rare(x: torch.Tensor, y: torch.Tensor) -> Outputs:
    windows = torch.where(torch.isnan(x), -math.inf, -x.abs() - math.inf).reshape(1, 7, 7)
    return (
        *(torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y)),
        *(x.clamp(-1, 1), x.clamp(min=y), F.relu(x), F.relu6(x), F.hardtanh(x), F.elu(x)),
        *(F.hardswish(x), F.threshold(x, 0, 5), x != y, x != x, x == y, x < y),
        *(torch.remainder(x, y), torch.floor_divide(x, y), torch.fmod(x, y), torch.hypot(x, y)),
        *(torch.isfinite(x), torch.isinf(x), torch.isnan(x), F.max_pool1d(windows, 3, 2, 1)),
        *(F.max_pool2d(each.reshape(1, 1, 7, 7), 3, 2, 1) for each in (x, y, y.half(), -y)),
        *(
            x[:1].clamp(max=y),
            x.clamp(y[:1], y),
            x * 0.0,
            0 / x,
            F.softshrink(x),
            *x.reshape(7, 7).cummax(0),
            *y.reshape(7, 7).cummin(1),
        ),
        *(y[5:7].var(correction=5), y[5:6].std(), y[:5].var(correction=5)),
        *torch.std_mean(y[:0]),
        *(torch.special.bessel_j0(y), torch.special.spherical_bessel_j0(y)),
        *(torch.special.zeta(x, y), torch.polygamma(1, y), torch.polygamma(2, y)),
    )


def differences(family: str) -> list[str]:
    """What is not as in PyTorch: the number, type, shape or values of a family's outputs."""
    from conformance.operators import compared
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    function, given = _families()[family]
    expected = function(*given)
    if family in ("float16", "bfloat16"):  # in which PyTorch rounds some sums at each step
        expected = tuple(
            exact.to(each.dtype)
            for exact, each in zip(function(*(x.double() for x in given)), expected, strict=True)
        )
    # Verification counts a NaN as wrong where it needs its reference in float64.
    beyond = ("recurrences", "extremes", "rare", "gammas", "losses", "asking", "steps")
    verified = family not in beyond and not family.startswith("bits")
    config = ExportConfig(example_input=given)
    model: torch.nn.Module = _Model(function)
    if family == "quantized":  # which come as programs; these have no eval()
        model = torch.export.export(model, given).module()
    compiled = compile_pytorch_module(model, config, verify=verified)
    found = [compared([o], [e]) for o, e in zip(compiled(*given), expected, strict=True)]
    return [f"{n}: {reason}" for n, (verdict, reason) in enumerate(found) if verdict != "right"]


def _times_a_random_row(x: torch.Tensor) -> Outputs:
    """Of a matrix that the model makes, and whose nonzero elements it counts."""
    known = torch.eye(3)
    places = known.nonzero()
    drawn = places[torch.multinomial(torch.ones(len(places)), 2)]
    return (x * known[drawn[:1, 0]],)


def refusal(name: str) -> str:
    """The line that a model which cannot be taken is refused with."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput

    models: dict[str, Callable[[Any], Any]] = {
        "random": lambda x: (F.dropout(x, training=True),),
        "random row": _times_a_random_row,
        "missing": lambda x: (torch.linalg.ldl_factor_ex(x)[0],),
        "rank": lambda x: (torch.linalg.lstsq(x[:, :2], x, driver="gelsd").residuals,),
        "decision": lambda x: (x[: int(x.sum())],),
        "lengths": lambda x: (x[: len(set((x > 0).sum(1).tolist()))],),
        "asked": lambda x: (x + 1 if torch.equal(x, 2 * x) else x,),
        "numpy": lambda x: (x + float(x.detach().numpy()[0, 0]),),
        "spectrum": lambda x: (torch.fft.fft(x),),
        "printing": lambda x: (torch.ops.aten._print("x") or x + 1,),
        "nested": lambda x: (torch.nested.nested_tensor([x[:2], x]).to_padded_tensor(0.0),),
        "jagged": lambda x: (
            torch.nested.nested_tensor([x[:2], x], layout=torch.jagged).to_padded_tensor(0.0),
        ),
        "caught": _caught,
        "suppressed": _suppressed,
        "ended": _ended,
        "gaps": lambda x: (torch.as_strided(x[:, :2], (3, 2), (2, 1)),),
        "beside": lambda x: (torch.as_strided(x[:1], (2, 2), (2, 1)),),
        "overlaps": lambda x: (torch.as_strided(x[0].unfold(0, 2, 1), (2, 2), (1, 1)),),
    }
    try:
        compile_pytorch_module(_Model(models[name]), ExportConfig(example_input=torch.randn(3, 3)))
    except BadInput as error:
        return str(error)
    return ""


def loss_of_a_negative_variance() -> list[float]:
    """Before and after one of the variances that a compiled model is given falls below 0."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    x, var = torch.randn(3, 4), torch.rand(3, 4) + 0.1
    model = _Model(lambda x, var: (F.gaussian_nll_loss(x, 2 * x, var),))
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x, var)))
    before = compiled(x, var)[0]
    var[1, 2] = -0.1
    return [float(before), float(compiled(x, var)[0])]


def bags_at_other_lengths() -> list[float]:
    """The errors of a compiled embedding bag, numbers and lengths of whose bags are open."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = torch.nn.EmbeddingBag(10, 8, mode="mean", padding_idx=2).eval()
    config = ExportConfig(
        example_input=(torch.randint(0, 10, (3, 6)),), input_shapes={"input": ("bags", "length")}
    )
    compiled = compile_pytorch_module(model, config)
    errors = []
    for shape in ((1, 1), (2, 7), (9, 3)):
        bags = torch.randint(0, 10, shape)
        with torch.inference_mode():
            difference = torch.from_numpy(compiled(bags)[0]) - model(bags)
        errors.append(float(difference.abs().max()))
    return errors
