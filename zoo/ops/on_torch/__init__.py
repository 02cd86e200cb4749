"""The ops on torch tensors of any device, by torch's own functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import CheckpointError, InputError, UnsupportedError
from ...quant import QuantRows, QuantTensor, float_tensor
from ...typing import RawTensor
from . import quantised
from .activations import ACT
from .attention import accepts_full_cache, attention, banded_attention, gather_bias, relative_bias
from .decoder import glu, rope, rope_write_, rotary, write_
from .delta_rule import delta_rule
from .devices import constant, on_host
from .linear import linear
from .norm import add_layer_norm, add_rms_norm, group_norm, layer_norm, rms_norm, softmax
from .quantised import keep
from .ssd_scan import ssd_scan, ssd_state
from .symbols import write_symbols
from .vision import (
    adaptive_avg_pool2d,
    all_true,
    avg_pool2d,
    batch_norm,
    boxes_of_masks,
    centres,
    conv2d,
    conv_transpose2d,
    depthwise_conv2d,
    fold_norm,
    fold_weight_norm,
    from_windows,
    grouped_conv1d,
    interpolate,
    logit,
    max_pool2d,
    merge_convs,
    pad_images,
    pixel_shuffle,
    prepare_conv,
    sample,
    sinusoids,
    take_rows,
    top_rows,
    true_indices,
    windows,
)


def embedding(ids: Tensor, table: Tensor | QuantTensor, name: str, padding_idx: int | None = None) -> Tensor:
    # On a GPU a check would wait for the device: torch's own assertion raises there.
    if on_host(ids) and ids.numel() and (ids.min() < 0 or ids.max() >= len(table)):
        raise InputError(f"{name} must be in [0, {len(table)}), found {int(ids.min())} to {int(ids.max())}")
    return quantised.take(table, ids) if isinstance(table, QuantTensor) else F.embedding(ids, table, padding_idx)


def softplus(x: Tensor) -> Tensor:
    return F.softplus(x)


def cumsum(x: Tensor, axis: int) -> Tensor:
    return torch.cumsum(x, axis, dtype=torch.int64)


def scale_bias(bias: Tensor, gates: Tensor) -> Tensor:
    return bias * gates.transpose(1, 2)[..., None]


def cat(arrays: list[Tensor], axis: int) -> Tensor:
    return torch.cat(arrays, axis)


def arange(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, device=like.device)


def zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return like.new_zeros(shape)


def place(x: np.ndarray, like: Tensor) -> Tensor:
    return _to_device_of(x, like, like.dtype)


def top_k_gates(logits: Tensor, k: int, normalise: bool) -> Tensor:
    found, at = torch.softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32)).topk(k, -1)
    found = found / found.sum(-1, keepdim=True) if normalise else found
    return torch.zeros_like(logits).scatter(-1, at, found.to(logits.dtype))


def grouped_gates(logits: Tensor, bias: Tensor, k: int, groups: int, kept_groups: int, normalise: bool) -> Tensor:
    gates = logits.to(torch.promote_types(logits.dtype, torch.float32)).sigmoid()
    order = (gates + bias).unflatten(-1, (groups, -1))
    best = order.topk(2, -1)[0].sum(-1).topk(kept_groups, -1)[1]
    kept = torch.zeros_like(order[..., 0], dtype=torch.bool).scatter(-1, best, True)
    at = order.masked_fill(~kept[..., None], -torch.inf).flatten(1).topk(k, -1)[1]
    found = gates.gather(-1, at)
    found = found / (found.sum(-1, keepdim=True) + 1e-20) if normalise else found
    return torch.zeros_like(logits).scatter(-1, at, found.to(logits.dtype))


def combine_experts(x: Tensor, gates: Tensor, experts: Sequence[Callable[[Any], Any]]) -> Tensor:
    out = torch.zeros_like(x)
    whole = x.is_cuda and torch.cuda.is_current_stream_capturing()  # which cannot wait for the number of rows
    for gate, expert in zip(gates.unbind(1), experts, strict=True):
        if whole:
            out = out + expert(x) * gate[:, None]
        elif len(rows := gate.detach().nonzero()[:, 0]):
            out = out.index_add(0, rows, expert(x[rows]) * gate[rows, None])
    return out


def bucket(x: Tensor, starts: tuple[int, ...]) -> Tensor:
    return (x[..., None] >= constant(starts, x.device)).sum(-1)


def scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("bthk,bshk->btsh", q, k)


def channel_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.softmax(q.permute(0, 2, 3, 1) @ k.transpose(1, 2) * q.shape[1] ** -0.5, -1)  # (B, H, K, K)
    return (v.transpose(1, 2) @ weights.transpose(2, 3)).transpose(1, 2)


def relative_scores(x: Tensor, table: Tensor, of_keys: bool) -> Tensor:
    scores = torch.matmul(x.transpose(1, 2), table.permute(1, 2, 0))  # (B, H, T, 2 T)
    B, H, T, _ = scores.shape
    shifted = scores.reshape(B, H, -1)[:, :, T:].reshape(B, H, T, -1)[..., :T]
    return shifted.transpose(2, 3) if of_keys else shifted


def assign_(out: Tensor, x: np.ndarray | Tensor) -> Tensor:
    return out.copy_(_tensor(x), non_blocking=isinstance(x, np.ndarray))


def clip(x: Tensor, low: float | None, high: float | None) -> Tensor:
    return x.clamp(low, high)


def exp(x: Tensor) -> Tensor:
    return x.exp()


def log(x: Tensor) -> Tensor:
    return x.log()


def mean(x: Tensor, axis: int) -> Tensor:
    return x.mean(axis)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return torch.where(condition, x, y)


def add_scaled(x: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    return torch.addcmul(x, y, scale)


def activate(x: Tensor, act: str | None) -> Tensor:
    return ACT[act](x)


def dropout(x: Tensor, rate: float, of_rows: bool) -> Tensor:
    if of_rows:
        return x * F.dropout(x.new_ones(len(x), *(1 for _ in x.shape[1:])), rate)
    return F.dropout(x, rate)


def _tensor(x: np.ndarray | Tensor) -> Tensor:
    # A copy: torch has neither read-only nor negatively strided tensors.
    return torch.from_numpy(np.array(x, order="C")) if isinstance(x, np.ndarray) else x


def _to_device_of(x: np.ndarray | Tensor, like: Tensor, dtype: torch.dtype) -> Tensor:
    # Pageable memory has been read when its copy to a GPU returns: there is no need to wait for the GPU.
    return _tensor(x).to(like.device, dtype, non_blocking=isinstance(x, np.ndarray))


def as_ids(x: np.ndarray | Tensor, like: Tensor) -> Tensor:
    return _to_device_of(x, like, torch.int64)


def as_mask(x: np.ndarray | Tensor, like: Tensor) -> Tensor:
    return _to_device_of(x, like, torch.bool)


def as_pixels(x: np.ndarray | Tensor, like: Tensor) -> Tensor:
    return _to_device_of(x, like, like.dtype)


def as_points(x: np.ndarray | Tensor, like: Tensor) -> Tensor:
    return _to_device_of(x, like, torch.float32)


def to_numpy(x: Tensor) -> np.ndarray:
    x = x.detach().cpu()
    return (x.float() if x.dtype in (torch.bfloat16, torch.float16) else x).contiguous().numpy()


# Reading and writing weights


DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}


def to_parameter(stored: RawTensor, name: str, dtype: str | None, device: str) -> Tensor:
    """A stored tensor as a model's parameter."""
    if stored.dtype not in ("F64", "F32", "F16", "BF16"):
        raise CheckpointError(f"{name} is stored as {stored.dtype}, expected floating-point numbers")
    array = np.array(stored.array)  # torch has no read-only tensors
    tensor = (
        torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        if stored.dtype == "BF16"
        else torch.from_numpy(array)
    )
    tensor = tensor.to(device=device, dtype=None if dtype is None else _dtype(dtype))
    if tensor.ndim == 4 and tensor.device.type == "cuda":
        # cuDNN needs a convolution's weight in channels_last, and would copy it at every call.
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor


def rows(parts: Sequence[QuantRows | Tensor], dtype: str | None = None) -> QuantTensor | Tensor:
    """Matrices one below the other, in the best form for `linear`: one part, if they have one QuantType."""
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if len(tensors) == len(parts):
        return tensors[0] if len(parts) == 1 else torch.cat(tensors)
    kinds = {part.kind if isinstance(part, QuantRows) else None for part in parts}
    every = [part if isinstance(part, QuantRows) else float_tensor(part).parts[0] for part in parts]
    if len(kinds) > 1:
        return QuantTensor(every, _dtype(dtype or "float32"))
    fields = zip(*(part.arrays for part in every), strict=True)
    whole = QuantRows(every[0].kind, every[0].columns, tuple(map(torch.cat, map(list, fields))))
    return QuantTensor([whole], _dtype(dtype or "float32"))


def to_raw(x: Tensor | QuantRows, dtype: str) -> RawTensor:
    """A parameter converted to the element type `dtype` for a file."""
    if isinstance(x, QuantRows):
        x = quantised.dequantise(x, torch.float32)
    types = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    x = x.detach().cpu().to(types.get(dtype, x.dtype)).contiguous()
    return RawTensor(x.view(torch.int16).numpy().view(np.uint16) if dtype == "BF16" else x.numpy(), dtype)


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise UnsupportedError(f"dtype {name!r} is not supported, expected one of {', '.join(DTYPES)}")
    return DTYPES[name]
