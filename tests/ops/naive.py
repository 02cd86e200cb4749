"""Every op in float64, as plainly as it can be written: the judge in tests, never used by models."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.naive_quant import dequantise as dequantise
from zoo.quant import QuantTensor

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


ACT: dict[str | None, Callable[[np.ndarray], np.ndarray]] = {
    None: lambda x: x,
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "quick_gelu": lambda x: x * _sigmoid(1.702 * x),
    "gelu_10": lambda x: np.clip(0.5 * x * (1 + _erf(x / math.sqrt(2))), -10, 10),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "silu": lambda x: x * _sigmoid(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
}


def _f64(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float64)


def _matrix(x):
    return dequantise(x) if isinstance(x, QuantTensor) else _f64(x)


def linear(x, weight, bias=None, act=None, residual=None):
    weight = _matrix(weight)
    y = np.einsum("...i,oi->...o", _f64(x), weight)
    if bias is not None:
        y = y + _f64(bias)
    y = ACT[act](y)
    return y if residual is None else y + _f64(residual)


def attention(
    q, k, v, *, start=None, mask=None, bias=None, window=None, scale=None, blocks=None, softcap=None, sinks=None
):
    B, T, H, K = q.shape
    S, G = k.shape[1:3]
    q, k, v, keys = _f64(q), _f64(k), _f64(v), np.arange(S)
    scale = K**-0.5 if scale is None else scale
    bias = np.zeros((B, H, T, S)) if bias is None else np.broadcast_to(_f64(bias), (B, H, T, S))
    out = np.zeros((B, T, H, K))
    for b in range(B):
        for h in range(H):
            g = h // (H // G)
            for t in range(T):
                at = t if start is None else start[b] + t
                ahead = [] if blocks is None else [start[b] + u for u in range(t, T) if blocks[b, u] == blocks[b, t]]
                seen = bias[b, h, t] > -np.inf
                if mask is not None:
                    seen &= mask[b]
                if start is not None:
                    seen &= (keys <= at) | np.isin(keys, ahead)
                if window is not None:
                    seen &= (abs(keys - at) <= window) | np.isin(keys, ahead)
                if not seen.any():
                    continue
                scores = scale * (k[b, seen, g] @ q[b, t, h])
                scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
                scores = scores + bias[b, h, t, seen]
                sink = -np.inf if sinks is None else sinks[h]
                top = max(scores.max(), sink)
                weights = np.exp(scores - top)
                weights /= weights.sum() + np.exp(sink - top)
                out[b, t, h] = weights @ v[b, seen, g]
    return out


def banded_attention(q, k, v, window, *, mask=None, shared=None, scale=None, aligned=False):
    (B, T, H, _), N, at = q.shape, 0 if shared is None else shared.mask.shape[1], np.arange(q.shape[1])
    mask = np.ones((B, T), bool) if mask is None else mask
    apart = at // window - at[:, None] // window if aligned else at - at[:, None]
    near = abs(apart) <= (1 if aligned else window)
    bias = np.full((B, H, T, T + N), -np.inf)
    bias[:, :, :, :T] = np.where(near & mask[:, None, None], 0, -np.inf)
    if N:
        k, v = np.concatenate([k, shared.keys], 1), np.concatenate([v, shared.values], 1)
        more = np.zeros(N) if shared.bias is None else shared.bias
        bias[:, :, :, T:] = np.where(shared.mask, more, -np.inf)[:, None, None]
    return attention(q, k, v, bias=bias, scale=scale)


def true_indices(mask, count=None):
    own = [[t for t, marked in enumerate(row) if marked] for row in mask]
    N = max(1, *map(len, own)) if count is None else count
    index, there = np.zeros((len(mask), N), np.int64), np.zeros((len(mask), N), bool)
    for b, places in enumerate(own):
        for n, t in enumerate(places[:N]):
            index[b, n], there[b, n] = t, True
    return index, there


def layer_norm(x, weight, bias, eps, residual=None):
    x = _f64(x) if residual is None else _f64(x) + _f64(residual)
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * _f64(weight) + _f64(bias)


def group_norm(x, weight, bias, groups, eps):
    B, Y, X, C = x.shape
    x = _f64(x).reshape(B, Y, X, groups, C // groups)
    mean = x.mean((1, 2, 4), keepdims=True)
    var = ((x - mean) ** 2).mean((1, 2, 4), keepdims=True)
    return ((x - mean) / np.sqrt(var + eps)).reshape(B, Y, X, C) * _f64(weight) + _f64(bias)


def rms_norm(x, weight, eps):
    x = _f64(x)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * _f64(weight)


def add_layer_norm(x, residual, weight, bias, eps):
    return layer_norm(x, weight, bias, eps, residual), _f64(x) + _f64(residual)


def add_rms_norm(x, residual, weight, eps):
    return rms_norm(_f64(x) + _f64(residual), weight, eps), _f64(x) + _f64(residual)


def rotary(positions, frequencies, scale):
    angles = np.multiply.outer(_f64(positions), _f64(frequencies))
    return scale * np.cos(angles), scale * np.sin(angles)


def rope(x, cos, sin, interleaved=False):
    out, half = np.array(x, np.float64), cos.shape[-1]
    for b, t, h, i in np.ndindex(*x.shape[:3], half):
        c, s = (_f64(a)[b if len(a) > 1 else 0, t, i] for a in (cos, sin))
        p, q = (_f64(x[b, t, h, at]) for at in ((2 * i, 2 * i + 1) if interleaved else (i, i + half)))
        out[b, t, h, i], out[b, t, h, i + half] = p * c - q * s, q * c + p * s
    return out


def rope_write_(q, k, v, cos, sin, keys, values, start, interleaved=False):
    write_(keys, rope(k, cos, sin, interleaved), start)
    write_(values, v, start)
    return rope(q, cos, sin, interleaved)


def activate(x, act):
    return ACT[act](_f64(x))


def glu(x, act):
    F = x.shape[-1] // 2
    return ACT[act](_f64(x[..., :F])) * _f64(x[..., F:])


def softmax(x):
    x = _f64(x)
    top = x.max(-1, keepdims=True)
    e = np.where(x == -np.inf, 0.0, np.exp(x - np.where(np.isfinite(top), top, 0.0)))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def embedding(ids, table):
    table = _matrix(table)
    return np.stack([table[i] for i in np.ravel(ids)]).reshape(*np.shape(ids), table.shape[1])


def cumsum(x, axis):
    return np.cumsum(np.asarray(x, np.int64), axis=axis)


def write_(out, x, start):
    for row, new, at in zip(out, x, start, strict=True):
        row[at : at + len(new)] = new
    return out


def clip(x, low, high):
    return np.minimum(np.maximum(_f64(x), -np.inf if low is None else low), np.inf if high is None else high)


def exp(x):
    return np.exp(_f64(x))


def log(x):
    return np.log(_f64(x))


def mean(x, axis):
    return _f64(x).mean(axis)


def where(condition, x, y):
    return np.where(condition, _f64(x), _f64(y))


def add_scaled(x, y, scale):
    return _f64(x) + _f64(scale) * _f64(y)


def grouped_gates(logits, bias, k, groups, kept_groups, normalise):
    gates, size = _sigmoid(_f64(logits)), logits.shape[1] // groups
    out = np.zeros_like(gates)
    for n, row in enumerate(gates + _f64(bias)):
        sums = [sum(sorted(row[g * size : (g + 1) * size])[-2:]) for g in range(groups)]
        kept = sorted(range(groups), key=lambda g: -sums[g])[:kept_groups]
        best = sorted((e for e in range(len(row)) if e // size in kept), key=lambda e: -row[e])[:k]
        out[n, best] = gates[n, best]
    return out / out.sum(-1, keepdims=True) if normalise else out


def top_k_gates(logits, k, normalise):
    gates = softmax(logits)
    for row in gates:
        row[np.argsort(-row)[k:]] = 0
    return gates / gates.sum(-1, keepdims=True) if normalise else gates


def combine_experts(x, gates, experts):
    return sum(_f64(gates[:, i, None]) * _f64(expert(x)) for i, expert in enumerate(experts))


def bucket(x, starts):
    return sum((x >= start) * 1 for start in starts) + 0 * x


def scores(q, k):
    return np.einsum("bthk,bshk->btsh", _f64(q), _f64(k))


def relative_scores(x, table, of_keys=False):
    B, T, H, _ = x.shape
    out = np.zeros((B, H, T, T))
    for t in range(T):
        for s in range(T):
            own, other = (s, t) if of_keys else (t, s)
            out[:, :, t, s] = (_f64(x[:, own]) * _f64(table[T + other - own])).sum(-1)
    return out


def relative_bias(table, T, k, start=None):
    table, S, M = _f64(table), k.shape[1], len(table) // 2
    starts = [0] if start is None else start
    out = np.zeros((len(starts), table.shape[1], T, S))
    for b, first in enumerate(starts):
        for t in range(T):
            for s in range(S):
                out[b, :, t, s] = table[M + max(-M, min(M, s - first - t))]
    return out


def gather_bias(table, index):
    if np.ndim(index) == 3:
        return np.concatenate([gather_bias(table, one) for one in index])
    return np.array([[[_f64(table)[i, h] for i in row] for row in index] for h in range(table.shape[1])])[None]


def conv2d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, act=None, residual=None, post=None, prepared=None, groups=1
):
    if groups > 1:
        parts = zip(np.split(x, groups, -1), np.split(weight, groups), strict=True)
        out = np.concatenate([conv2d(*part, None, stride, padding, dilation) for part in parts], -1)
        out = ACT[act](out if bias is None else out + _f64(bias))
        return ACT[post](out if residual is None else out + _f64(residual))
    (sy, sx), (py, px), (dy, dx) = (np.broadcast_to(v, 2) for v in (stride, padding, dilation))
    kY, kX = weight.shape[2:]
    x = np.pad(_f64(x), ((0, 0), (py, py), (px, px), (0, 0)))
    B, Y, X, _ = x.shape
    out = np.zeros((B, (Y - dy * (kY - 1) - 1) // sy + 1, (X - dx * (kX - 1) - 1) // sx + 1, len(weight)))
    for y in range(out.shape[1]):
        for z in range(out.shape[2]):
            window = x[:, y * sy : y * sy + dy * (kY - 1) + 1 : dy, z * sx : z * sx + dx * (kX - 1) + 1 : dx]
            out[:, y, z] = np.einsum("bijc,ocij->bo", window, _f64(weight))
    if bias is not None:
        out = out + _f64(bias)
    out = ACT[act](out)
    return ACT[post](out if residual is None else out + _f64(residual))


def depthwise_conv2d(x, weight, bias=None, act=None, stride=1, padding=None, dilation=1):
    if padding is None:
        padding = tuple(n // 2 * d for n, d in zip(weight.shape[2:], np.broadcast_to(dilation, 2), strict=True))
    of: Any = stride, padding, dilation
    one = [conv2d(x[..., c : c + 1], weight[c : c + 1], None, *of) for c in range(len(weight))]
    out = np.concatenate(one, -1)
    return ACT[act](out if bias is None else out + _f64(bias))


def pad_images(x, rows, columns):
    B, Y, X, C = x.shape
    out = np.zeros((B, rows[0] + Y + rows[1], columns[0] + X + columns[1], C))
    out[:, rows[0] : rows[0] + Y, columns[0] : columns[0] + X] = x
    return out


def grouped_conv1d(x, weight, bias, groups, act=None):
    (B, T, _), (O, c, k) = x.shape, weight.shape  # noqa: E741
    out = np.zeros((B, T, O)) + _f64(bias)
    for t in range(T):
        for tap in range(k):
            if 0 <= (seen := t + tap - k // 2) < T:
                for o in range(O):
                    first = o // (O // groups) * c
                    out[:, t, o] += _f64(x[:, seen, first : first + c]) @ _f64(weight[o, :, tap])
    return ACT[act](out)


def delta_rule(q, k, v, decay, rate, past=None):
    kept = np.exp(_f64(decay))
    (B, T, H, V), (G, K) = v.shape, k.shape[2:]
    out, changes = np.zeros(v.shape), np.zeros(v.shape)
    for b, h in np.ndindex(B, H):
        state, g = np.zeros((K, V)), h // (H // G)
        tokens = () if past is None else range(past.keys.shape[1])
        for s in (s for s in tokens if past.there[b, s]):
            state = state * np.exp(_f64(past.decay[b, s, h])) + np.outer(past.keys[b, s, g], past.values[b, s, h])
        for t in range(T):
            state = state * kept[b, t, h]
            changes[b, t, h] = rate[b, t, h] * (v[b, t, h] - k[b, t, g] @ state)
            state = state + np.outer(k[b, t, g], changes[b, t, h])
            out[b, t, h] = q[b, t, g] @ state
    return out, changes


def ssd_scan(q, k, v, decay, past=None):
    q, k, v, decay = _f64(q), _f64(k), _f64(v), _f64(decay)
    (B, T, H, P), (G, N) = v.shape, k.shape[2:]
    out = np.zeros(v.shape)
    for b, h in np.ndindex(B, H):
        state, g = np.zeros((N, P)), h // (H // G)
        tokens = () if past is None else range(past.keys.shape[1])
        for s in (s for s in tokens if past.there[b, s]):
            state = state * np.exp(_f64(past.decay[b, s, h])) + np.outer(past.keys[b, s, g], past.values[b, s, h])
        for t in range(T):
            state = state * np.exp(decay[b, t, h]) + np.outer(k[b, t, g], v[b, t, h])
            out[b, t, h] = q[b, t, g] @ state
    return out


def softplus(x):
    return np.logaddexp(0, _f64(x))


def channel_attention(q, k, v):
    q, k, v = _f64(q), _f64(k), _f64(v)
    out = np.empty(q.shape)
    for b, h, i in np.ndindex(q.shape[0], q.shape[2], q.shape[3]):
        scores = np.array([q[b, :, h, i] @ k[b, :, h, j] for j in range(q.shape[3])]) / np.sqrt(q.shape[1])
        weights = np.exp(scores - scores.max())
        out[b, :, h, i] = v[b, :, h] @ (weights / weights.sum())
    return out


def scale_bias(bias, gates):
    return _f64(bias) * np.moveaxis(_f64(gates), 2, 1)[..., None]


def fold_weight_norm(length, direction):
    return _f64(length) * _f64(direction) / np.sqrt((_f64(direction) ** 2).sum((0, 1)))


def conv_transpose2d(x, weight, bias=None, stride=1, padding=0, act=None):
    (sy, sx), (py, px) = (np.broadcast_to(v, 2) for v in (stride, padding))
    (B, Y, X, _), (_, D, kY, kX) = x.shape, weight.shape
    out = np.zeros((B, (Y - 1) * sy + kY, (X - 1) * sx + kX, D))
    for y in range(Y):
        for z in range(X):
            window = np.einsum("bc,coij->bijo", _f64(x[:, y, z]), _f64(weight))
            out[:, y * sy : y * sy + kY, z * sx : z * sx + kX] += window
    out = out[:, py : out.shape[1] - py, px : out.shape[2] - px]
    return ACT[act](out if bias is None else out + _f64(bias))


def batch_norm(x, gamma, beta, mean, var, eps):
    return (_f64(x) - _f64(mean)) / np.sqrt(_f64(var) + eps) * _f64(gamma) + _f64(beta)


def _cubic(t, a=-0.75):
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def _resized(x, count, mode):
    """x (N, ...) -> (count, ...): each new sample from its 2 or 4 nearest, the edge repeated beyond the edge."""
    N, out = len(x), []
    for i in range(count):
        if mode == "nearest":
            out.append(x[min(math.floor(np.float32(i) * np.float32(N / count)), N - 1)])
            continue
        at = i * (N - 1) / max(count - 1, 1) if mode.endswith("corners") else (i + 0.5) * N / count - 0.5
        if mode.endswith("antialias"):
            weights = [_aliased(abs(k - at) / max(N / count, 1), mode) for k in range(N)]
            out.append(sum(w * x[k] for k, w in enumerate(weights)) / sum(weights))
            continue
        if mode == "bilinear":
            at = max(at, 0.0)
        first = math.floor(at)
        taps = {first + k: _cubic(at - first - k) for k in (-1, 0, 1, 2)} if mode.startswith("bicubic") else {}
        taps = taps or {first: 1 - (at - first), first + 1: at - first}
        out.append(sum(w * x[min(max(k, 0), N - 1)] for k, w in taps.items()))
    return np.stack(out)


def _aliased(d, mode):
    if mode == "bilinear antialias":
        return max(0.0, 1 - d)
    return 1.5 * d**3 - 2.5 * d**2 + 1 if d < 1 else -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2 if d < 2 else 0.0


def interpolate(x, size, mode="bilinear"):
    x = _resized(np.moveaxis(_f64(x), 1, 0), size[0], mode)
    x = _resized(np.moveaxis(x, 2, 0), size[1], mode)  # (X', Y', B, C)
    return x.transpose(2, 1, 0, 3)


def sinusoids(x, size, base=10000.0):
    out = np.zeros((*np.shape(x), size))
    for k in range(size):
        angle = _f64(x) / base ** (2 * (k // 2) / size)
        out[..., k] = np.cos(angle) if k % 2 else np.sin(angle)
    return out


def max_pool2d(x, kernel, stride, padding=0):
    (kY, kX), (sy, sx), (py, px) = (np.broadcast_to(v, 2) for v in (kernel, stride, padding))
    x = np.pad(_f64(x), ((0, 0), (py, py), (px, px), (0, 0)), constant_values=-np.inf)
    rows, columns = range(0, x.shape[1] - kY + 1, sy), range(0, x.shape[2] - kX + 1, sx)
    return np.stack([np.stack([x[:, y : y + kY, z : z + kX].max((1, 2)) for z in columns], 1) for y in rows], 1)


def adaptive_avg_pool2d(x, size):
    (B, Y, X, C), (h, w) = x.shape, np.broadcast_to(size, 2)
    out = np.zeros((B, h, w, C))
    for i in range(h):
        for j in range(w):
            window = _f64(x)[:, i * Y // h : -(-(i + 1) * Y // h), j * X // w : -(-(j + 1) * X // w)]
            out[:, i, j] = window.mean((1, 2))
    return out


def avg_pool2d(x, size):
    (B, Y, X, C), (h, w) = x.shape, np.broadcast_to(size, 2)
    out = np.zeros((B, -(-Y // h), -(-X // w), C))
    for y, z in np.ndindex(out.shape[1:3]):
        out[:, y, z] = _f64(x)[:, y * h : (y + 1) * h, z * w : (z + 1) * w].mean((1, 2))
    return out


def sample(x, points, weights):
    _, Y, X, _, K = x.shape
    out = np.zeros((*points.shape[:3], K))
    for b, q, h, p in np.ndindex(points.shape[:4]):
        across, down = points[b, q, h, p].astype(np.float64) * (X, Y) - 0.5
        if not np.isfinite(across + down):
            continue
        left, top = math.floor(across), math.floor(down)
        for y, z in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
            if 0 <= y < Y and 0 <= z < X:
                share = (1 - abs(y - down)) * (1 - abs(z - across)) * weights[b, q, h, p]
                out[b, q, h] += share * x[b, y, z, h]
    return out


def boxes_of_masks(masks):
    out = np.zeros((*masks.shape[:2], 4))
    for b, q in np.ndindex(masks.shape[:2]):
        at = [(x, y) for y, row in enumerate(masks[b, q]) for x, value in enumerate(row) if value > 0]
        if at:
            (x0, y0), (x1, y1) = ([bound(one[i] for one in at) for i in (0, 1)] for bound in (min, max))
            Y, X = masks.shape[2:]
            out[b, q] = (x0 + x1 + 1) / 2 / X, (y0 + y1 + 1) / 2 / Y, (x1 + 1 - x0) / X, (y1 + 1 - y0) / Y
    return out


def place(x, like):
    return _f64(x)


def centres(grid, like):
    return np.array([((x + 0.5) / grid[1], (y + 0.5) / grid[0]) for y in range(grid[0]) for x in range(grid[1])])


def top_rows(scores, count):
    return np.array([sorted(range(len(rows)), key=lambda i: -rows[i].max())[:count] for rows in scores])


def take_rows(x, index):
    return np.array([[rows[i] for i in own] for rows, own in zip(x, index, strict=True)])


def logit(x, eps):
    x = np.clip(_f64(x), 0, 1)
    return np.log(np.maximum(x, eps)) - np.log(np.maximum(1 - x, eps))


def windows(x, size, shift=0):
    B, Y, X, C = x.shape
    down, across = math.ceil(Y / size), math.ceil(X / size)
    out = np.zeros((B, down * across, size * size, C))
    for b, y, x_, i in np.ndindex(B, down * size, across * size, 1):
        # The pixel that comes to (y, x_) when the padded image is moved.
        source = (y + shift) % (down * size), (x_ + shift) % (across * size)
        value = x[b, source[0], source[1]] if source[0] < Y and source[1] < X else i
        out[b, y // size * across + x_ // size, y % size * size + x_ % size] = value
    return out.reshape(-1, size * size, C)


def from_windows(x, size, grid, shift=0):
    Y, X = grid
    places = windows(np.arange(1, Y * X + 1).reshape(1, Y, X, 1), size, shift).reshape(-1)
    flat = x.reshape(-1, len(places), x.shape[-1])
    out = np.zeros((len(flat), Y * X + 1, x.shape[-1]))
    out[:, places.astype(int)] = flat
    return out[:, 1:].reshape(-1, Y, X, x.shape[-1])


def pixel_shuffle(x, factor):
    B, Y, X, D = x.shape
    out = np.zeros((B, Y * factor, X * factor, D // factor**2))
    for c in range(out.shape[3]):
        for i in range(factor):
            for j in range(factor):
                out[:, i::factor, j::factor, c] = x[:, :, :, (c * factor + i) * factor + j]
    return out


def write_symbols(x, keys, weights, most):
    w, rows = type(weights)(*map(_f64, weights)), []
    x, keys = _f64(x), _f64(keys)
    B, H, V = len(x), keys.shape[2], len(w.last)
    states, last, ended = [np.zeros(H)] * B, [0] * B, [False] * B
    for _ in range(most):
        row = []
        for b in range(B):
            h = states[b]
            e = np.array([w.score[0] @ np.tanh(key + w.query @ h + w.query_bias) for key in keys[b]])
            e = np.exp(e - e.max()) / np.exp(e - e.max()).sum()
            a = w.inputs @ np.concatenate([e @ x[b], np.eye(V)[last[b]]]) + w.inputs_bias
            c = w.state @ h + w.state_bias
            reset, update = (1 / (1 + np.exp(-(a + c)[i * H : (i + 1) * H])) for i in (0, 1))
            states[b] = (1 - update) * np.tanh(a[2 * H :] + reset * c[2 * H :]) + update * h
            y = w.last @ (w.first @ states[b] + w.first_bias) + w.last_bias
            last[b] = int(y.argmax())
            ended[b] |= last[b] == V - 1
            row.append((y, states[b]))
        rows.append(row)
        if all(ended):
            break
    logits, states = (np.array([[one[i] for one in row] for row in rows]).transpose(1, 0, 2) for i in (0, 1))
    return logits, states
