"""The ops on NumPy arrays: matrix products directly on weights in their mapped file, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import CheckpointError, InputError, UnsupportedError
from ...quant import QuantRows, QuantTensor, float_tensor
from ...typing import RawTensor
from .activations import activate
from .attention import attention, banded_attention
from .conv import conv2d, conv_transpose2d, fold_norm, merge_convs, prepare_conv
from .conv1d import fold_weight_norm, grouped_conv1d
from .decoder import glu, rope, rope_write_, rotary, write_
from .delta_rule import delta_rule
from .depthwise import depthwise_conv2d
from .images import pad_images
from .linear import linear
from .norm import add_layer_norm, add_rms_norm, group_norm, layer_norm, rms_norm, softmax
from .pool import (
    adaptive_avg_pool2d,
    add_scaled,
    avg_pool2d,
    clip,
    exp,
    from_windows,
    log,
    max_pool2d,
    mean,
    pixel_shuffle,
    windows,
)
from .resize import interpolate
from .sample import boxes_of_masks, centres, logit, sample, take_rows, top_rows, true_indices
from .ssd_scan import ssd_scan, ssd_state
from .symbols import write_symbols


def embedding(ids: np.ndarray, table: np.ndarray | QuantTensor, name: str) -> np.ndarray:
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        raise InputError(f"{name} must be in [0, {len(table)}), found {ids.min()} to {ids.max()}")
    return table.take(ids) if isinstance(table, QuantTensor) else table[ids]


def cumsum(x: np.ndarray, axis: int) -> np.ndarray:
    return np.cumsum(x, axis, dtype=np.int64)


def cat(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    return np.concatenate(arrays, axis)


def arange(count: int, like: np.ndarray) -> np.ndarray:
    return np.arange(count, dtype=np.int64)


def zeros(shape: tuple[int, ...], like: np.ndarray) -> np.ndarray:
    return np.zeros(shape, like.dtype)


def place(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    return x.astype(like.dtype)


def assign_(out: np.ndarray, x: np.ndarray) -> np.ndarray:
    out[...] = x
    return out


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, np.zeros((), x.dtype))


def where(condition, x, y):
    return np.where(condition, x, y)


def scale_bias(bias: np.ndarray, gates: np.ndarray) -> np.ndarray:
    return bias * gates.transpose(0, 2, 1)[..., None]


def sinusoids(x: np.ndarray, size: int, like: np.ndarray, base: float) -> np.ndarray:
    at = np.arange(size // 2, dtype=np.float32)
    angle = np.divide.outer(np.asarray(x, np.float32), np.float32(base) ** (2 * at / size))
    out = np.empty((size, *x.shape), np.float32)  # feature-major, as the arrays that they are added to
    np.sin(np.moveaxis(angle, -1, 0), out=out[0::2])
    np.cos(np.moveaxis(angle, -1, 0), out=out[1::2])
    return np.moveaxis(out, 0, -1).astype(like.dtype, copy=False)


def accepts_full_cache(like: np.ndarray) -> bool:
    return False


def all_true(mask: np.ndarray) -> bool:
    return bool(mask.all())


def relative_bias(table, T, k, start):
    start = np.zeros(1, np.int64) if start is None else np.asarray(start)
    start, M = start[:1] if (start == start[0]).all() else start, len(table) // 2
    at = start[:, None, None] + np.arange(T)[:, None]
    index = np.clip(np.arange(k.shape[1]) - at, -M, M) + M  # (b, T, S)
    return table.T[:, index].swapaxes(0, 1)


def gather_bias(table, index):
    # In memory (H, S, T), the order of attention's scores.
    if index.ndim == 3:
        return np.concatenate([gather_bias(table, one) for one in index])
    return np.take(np.ascontiguousarray(table.T), index.T, axis=1).swapaxes(1, 2)[None]


def top_k_gates(logits: np.ndarray, k: int, normalise: bool) -> np.ndarray:
    gates = softmax(logits)
    np.put_along_axis(gates, np.argsort(-gates, -1, kind="stable")[:, k:], 0, -1)
    return gates / gates.sum(-1, keepdims=True) if normalise else gates


def grouped_gates(
    logits: np.ndarray, bias: np.ndarray, k: int, groups: int, kept_groups: int, normalise: bool
) -> np.ndarray:
    N, E = logits.shape
    gates = activate(logits, "sigmoid")
    order = gates + bias
    sums = np.sort(order.reshape(N, groups, E // groups))[..., -2:].sum(-1)
    worst = np.argsort(-sums, -1, kind="stable")[:, kept_groups:]
    np.put_along_axis(order.reshape(N, groups, E // groups), worst[..., None], -np.inf, 1)
    gates = gates.copy()
    np.put_along_axis(gates, np.argsort(-order, -1, kind="stable")[:, k:], 0, -1)
    return gates / (gates.sum(-1, keepdims=True) + logits.dtype.type(1e-20)) if normalise else gates


def combine_experts(x: np.ndarray, gates: np.ndarray, experts: Sequence[Callable[[Any], Any]]) -> np.ndarray:
    out = np.zeros_like(x)
    for gate, expert in zip(gates.T, experts, strict=True):
        rows = np.flatnonzero(gate)
        if rows.size:
            out[rows] += expert(x[rows]) * gate[rows, None]
    return out


def bucket(x: np.ndarray, starts: tuple[int, ...]) -> np.ndarray:
    return np.searchsorted(np.array(starts), x, side="right")


def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return np.matmul(q.transpose(0, 2, 1, 3), k.transpose(0, 2, 3, 1)).transpose(0, 2, 3, 1)


def channel_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scale = q.dtype.type(q.shape[1] ** -0.5)
    weights = softmax(np.matmul(q.transpose(0, 2, 3, 1) * scale, k.transpose(0, 2, 1, 3)))  # (B, H, K, K)
    return np.matmul(v.transpose(0, 2, 1, 3), weights.swapaxes(2, 3)).transpose(0, 2, 1, 3)


def relative_scores(x: np.ndarray, table: np.ndarray, of_keys: bool) -> np.ndarray:
    scores = np.matmul(x.transpose(0, 2, 1, 3), table.transpose(1, 2, 0))  # (B, H, T, 2 T)
    b, h, own, other = scores.strides
    B, H, T, _ = scores.shape
    shifted = np.lib.stride_tricks.as_strided(scores[..., T:], (B, H, T, T), (b, h, own - other, other))
    return shifted.swapaxes(2, 3) if of_keys else shifted


def as_ids(x: Any, like: np.ndarray) -> np.ndarray:
    return np.asarray(x, dtype=np.int64)


def as_mask(x: Any, like: np.ndarray) -> np.ndarray:
    return np.asarray(x) != 0


def as_pixels(x, like):
    return np.asarray(x, dtype=like.dtype)


def as_points(x: Any, like: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32)


def to_numpy(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32 if x.dtype == np.float16 else None, order="C")


def to_parameter(stored: RawTensor, name: str, dtype: str | None, device: str) -> np.ndarray:
    """A stored tensor as a parameter: float32 is used in place, other types are converted to `dtype` or float32."""
    if stored.dtype not in ("F64", "F32", "F16", "BF16"):
        raise CheckpointError(f"{name} is stored as {stored.dtype}, expected floating-point numbers")
    if dtype in ("float16", "bfloat16"):
        raise UnsupportedError(
            f'NumPy has no product of {dtype} matrices: use dtype="float32", or device="cuda", "torch:cpu" or '
            '"openvino"'
        )
    if dtype not in (None, "float32", "float64"):
        raise UnsupportedError(
            f"dtype {dtype!r} is not supported, expected float32 or float64, on torch also float16 or bfloat16"
        )
    array = np.asarray(stored.array)
    if stored.dtype == "BF16":
        array = array.astype(np.uint32)
        array <<= 16
        array = array.view(np.float32)
    elif not array.flags.aligned:  # a file with an odd header: BLAS would copy it for every product
        array = array.copy()
    return array.astype(dtype or "float32", copy=False)


def keep(stored: QuantRows, device: str) -> QuantRows:
    """Rows for `linear` and `embedding` as their file has them, copied only if they are not aligned."""
    return stored.map(lambda array: array if np.asarray(array).flags.aligned else np.array(array))


def rows(parts: Sequence[np.ndarray | QuantRows], dtype: str | None = None) -> np.ndarray | QuantTensor:
    """Matrices one below the other, in the best form for `linear`: never copied."""
    if len(parts) == 1 and isinstance(parts[0], np.ndarray):
        return parts[0]
    return QuantTensor([part if isinstance(part, QuantRows) else float_tensor(part).parts[0] for part in parts])


# safetensors' names of element types
DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I8": np.int8, "U8": np.uint8}


def to_raw(x: np.ndarray | QuantRows, dtype: str) -> RawTensor:
    """A parameter converted to the element type `dtype` for a file."""
    if isinstance(x, QuantRows):
        x = np.asarray(x.arrays[0]) if x.kind.name == dtype else x.dequantise()
        if dtype == "BF16" and x.dtype == np.uint16:
            return RawTensor(x, dtype)
    if dtype == "BF16":
        return RawTensor(_to_bfloat16(x), dtype)
    with np.errstate(over="ignore"):
        return RawTensor(np.asarray(x, DTYPES[dtype], order="C"), dtype)


def _to_bfloat16(x: np.ndarray) -> np.ndarray:
    """The upper halves of float32 values, rounded to nearest, ties to even; in pieces, to need little memory."""
    with np.errstate(over="ignore"):
        every = np.asarray(x, np.float32, order="C").reshape(-1).view(np.uint32)
    out = np.empty(every.size, np.uint16)
    for a in range(0, every.size, 1 << 18):
        bits = every[a : a + (1 << 18)]
        rounded = bits + (0x7FFF + ((bits >> 16) & 1))
        nan = (bits & 0x7FFFFFFF) > 0x7F800000
        out[a : a + (1 << 18)] = np.where(nan, bits | 0x400000, rounded) >> 16
    return out.reshape(x.shape)
