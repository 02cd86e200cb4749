"""The ops on images, which are (B, Y, X, C) in memory: torch's channels_last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .activations import ACT
from .devices import on_host

Pair = tuple[int, int]


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    act: str | None,
    residual: Tensor | None,
    post: str | None,
    prepared: Tensor | None,
    groups: int,
) -> Tensor:
    planes, dtype = _planes(x), x.dtype
    in_bfloat16 = dtype == torch.bfloat16 and x.device.type == "cpu"
    if in_bfloat16 and not computes_bfloat16(planes, weight, stride, padding, dilation):
        planes, weight, bias = planes.float(), weight.float(), None if bias is None else bias.float()
    y = F.conv2d(planes, weight, bias, stride, padding, dilation, groups).to(dtype)
    y = ACT[act](y.permute(0, 2, 3, 1))
    return ACT[post](y if residual is None else y + residual)


def computes_bfloat16(planes: Tensor, weight: Tensor, stride: Pair, padding: Pair, dilation: Pair) -> bool:
    """False for what torch 2.13 gives other numbers of on a CPU with AMX, uninitialised ones among them (oneDNN): few
    channels under kernels of 4 x 4 and more, but for 1 and 3; and steps that leave a column, of any channels.
    """
    span = dilation[1] * (weight.shape[3] - 1) + 1  # pixels from a kernel's first column to its last
    is_column = stride[1] > 1 and planes.shape[3] + 2 * padding[1] < span + stride[1]
    return not is_column and (weight.shape[1] in (1, 3) or weight.shape[1] >= 32)


def depthwise_conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, act: str | None, stride: Pair, padding: Pair, dilation: Pair
) -> Tensor:
    y = F.conv2d(_planes(x), weight, bias, stride, padding, dilation, groups=len(weight))
    return ACT[act](y.permute(0, 2, 3, 1))


def pad_images(x: Tensor, rows: Pair, columns: Pair) -> Tensor:
    return F.pad(x, (0, 0, *columns, *rows))


def prepare_conv(weight: Tensor, stride: Pair, dilation: Pair) -> Tensor | None:
    return None  # cuDNN and oneDNN choose their algorithms themselves


def conv_transpose2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, act: str | None
) -> Tensor:
    return ACT[act](F.conv_transpose2d(_planes(x), weight, bias, stride, padding).permute(0, 2, 3, 1))


def fold_norm(
    weight: Tensor, bias: Tensor | None, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor, eps: float, axis: int
) -> tuple[Tensor, Tensor]:
    scale = gamma.double() / torch.sqrt(var.double() + eps)
    shift = beta.double() + ((0 if bias is None else bias.double()) - mean.double()) * scale
    shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
    return (weight.double() * scale.reshape(shape)).to(weight.dtype), shift.to(weight.dtype)


def merge_convs(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    if weights[0].shape[1] == 1:
        weights = [weight[:, None, None, None] if weight.ndim == 1 else weight for weight in weights]
    else:
        weights = [weight.diag()[..., None, None] if weight.ndim == 1 else weight for weight in weights]
    kY, kX = (max(weight.shape[axis] for weight in weights) for axis in (2, 3))
    pads = (((kX - weight.shape[3]) // 2, (kY - weight.shape[2]) // 2) for weight in weights)
    whole = [F.pad(weight.double(), (x, x, y, y)) for weight, (x, y) in zip(weights, pads, strict=True)]
    merged, bias = torch.stack(whole).sum(0), torch.stack([bias.double() for bias in biases]).sum(0)
    return merged.to(weights[0].dtype), bias.to(biases[0].dtype)


def grouped_conv1d(x: Tensor, weight: Tensor, bias: Tensor, groups: int, act: str | None) -> Tensor:
    y = F.conv1d(x.transpose(1, 2), weight, bias, padding=weight.shape[2] // 2, groups=groups)
    return ACT[act](y[..., : x.shape[1]].transpose(1, 2))


def fold_weight_norm(length: Tensor, direction: Tensor) -> Tensor:
    wide = direction.double()
    return (length * wide / wide.square().sum((0, 1), keepdim=True).sqrt()).to(direction.dtype)


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float, learns: bool) -> Tensor:
    return F.batch_norm(_planes(x), mean, var, weight, bias, learns, eps=eps).permute(0, 2, 3, 1)


def interpolate(x: Tensor, size: Pair, mode: str) -> Tensor:
    if mode == "nearest":  # torch's own function does not take all types
        rows, columns = (_nearest(before, after, x) for before, after in zip(x.shape[1:3], size, strict=True))
        return x[:, rows[:, None], columns]
    if mode.endswith("antialias"):  # torch has none of 16 bits on a CPU
        kind = mode.removesuffix(" antialias")
        y = F.interpolate(_planes(x).float(), size=size, mode=kind, align_corners=False, antialias=True)
        return y.to(x.dtype).permute(0, 2, 3, 1)
    kind, _, corners = mode.partition(" ")
    return F.interpolate(_planes(x), size=size, mode=kind, align_corners=bool(corners)).permute(0, 2, 3, 1)


def _nearest(before: int, after: int, like: Tensor) -> Tensor:
    step = float(np.float32(before / after))  # torch's own steps are float32
    at = torch.arange(after, dtype=torch.float32, device=like.device) * step
    return at.long().clamp(max=before - 1)


def sinusoids(x: Tensor, size: int, like: Tensor, base: float) -> Tensor:
    at = torch.arange(size // 2, device=x.device, dtype=torch.float32)
    angle = x.float()[..., None] / base ** (2 * at / size)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).to(like.dtype)


def all_true(mask: Tensor) -> bool:
    return on_host(mask) and bool(mask.all())


def max_pool2d(x: Tensor, kernel: Pair, stride: Pair, padding: Pair) -> Tensor:
    return F.max_pool2d(_planes(x), kernel, stride, padding).permute(0, 2, 3, 1)


def adaptive_avg_pool2d(x: Tensor, size: Pair) -> Tensor:
    return F.adaptive_avg_pool2d(_planes(x), size).permute(0, 2, 3, 1)


def avg_pool2d(x: Tensor, size: Pair) -> Tensor:
    return F.avg_pool2d(_planes(x), size, ceil_mode=True, count_include_pad=False).permute(0, 2, 3, 1)


def sample(x: Tensor, points: Tensor, weights: Tensor) -> Tensor:
    (B, Y, X, H, K), (_, Q, _, P, _) = x.shape, points.shape
    # On a CPU torch 2.13 reads past 16-bit images that are not contiguous.
    images = x.permute(0, 3, 4, 1, 2).reshape(B * H, K, Y, X).contiguous()
    places = (2 * points - 1).permute(0, 2, 1, 3, 4).reshape(B * H, Q, P, 2)
    found = F.grid_sample(images, places, mode="bilinear", padding_mode="zeros", align_corners=False)
    summed = (found * weights.permute(0, 2, 1, 3).reshape(B * H, 1, Q, P)).sum(-1)
    return summed.reshape(B, H, K, Q).permute(0, 3, 1, 2)


def boxes_of_masks(masks: Tensor) -> Tensor:
    bounds = []
    for axis, n in ((2, masks.shape[3]), (3, masks.shape[2])):
        at, some = torch.arange(n, device=masks.device), (masks > 0).any(axis)
        bounds.append(((some * (n - at)).amax(-1), (some * (at + 1)).amax(-1), n))
    first, last = (
        torch.stack([(n - a if low else b) / n * (b > 0) for a, b, n in bounds], -1).to(masks.dtype) for low in (1, 0)
    )
    return torch.cat([(first + last) / 2, last - first], -1)


def centres(grid: Pair, like: Tensor) -> Tensor:
    y, x = ((torch.arange(n, device=like.device).to(like.dtype) + 0.5) / n for n in grid)
    return torch.stack([x.repeat(grid[0]), y.repeat_interleave(grid[1])], 1)


def top_rows(scores: Tensor, count: int) -> Tensor:
    return scores.amax(-1).topk(count, 1).indices


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[:, :, None].expand(-1, -1, x.shape[-1]))


def true_indices(mask: Tensor, count: int | None) -> tuple[Tensor, Tensor]:
    own = mask.sum(1)
    most = max(int(own.max()), 1) if count is None else count
    index = torch.argsort((~mask).to(torch.int8), dim=1, stable=True)[:, :most]
    return index, torch.arange(most, device=mask.device) < own[:, None]


def logit(x: Tensor, eps: float) -> Tensor:
    x = x.clamp(0, 1)
    return torch.log(x.clamp(min=eps) / (1 - x).clamp(min=eps))


def windows(x: Tensor, size: int, shift: int) -> Tensor:
    B, Y, X, C = x.shape
    x = F.pad(x, (0, 0, 0, -X % size, 0, -Y % size))
    if shift:
        x = x.roll((-shift, -shift), (1, 2))
    parts = x.reshape(B, x.shape[1] // size, size, x.shape[2] // size, size, C)
    return parts.transpose(2, 3).reshape(-1, size * size, C)


def from_windows(x: Tensor, size: int, grid: Pair, shift: int) -> Tensor:
    down, across = (-(-n // size) for n in grid)
    parts = x.reshape(-1, down, across, size, size, x.shape[-1])
    out = parts.transpose(2, 3).reshape(-1, down * size, across * size, x.shape[-1])
    return (out.roll((shift, shift), (1, 2)) if shift else out)[:, : grid[0], : grid[1]]


def pixel_shuffle(x: Tensor, factor: int) -> Tensor:
    return F.pixel_shuffle(_planes(x), factor).permute(0, 2, 3, 1)


def _planes(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2)
