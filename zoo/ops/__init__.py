"""The op layer: the only functions, besides operators, through which a model computes; those of images are in `vision`.

An op looks at the type of its first array and calls the function of the same name in a backend: `numpy.ndarray` goes to
`on_numpy`, `torch.Tensor` to `on_torch`, which is imported when the first tensor is seen, so that a process that stays
on the CPU never loads torch.  tests/ops/naive.py has every op in float64, as plainly as it can be written.

What holds for every op and every backend
- Shapes are logical: (B, T, D) and (B, T, H, K).  The order in memory is up to the backend.
- Arguments are never written to, except by an op whose name ends in an underscore.  They may be read-only or strided.
- Norms, softmax and sums are accumulated in at least float32.
- `attention` gives zeros for a query that sees no key.
- Results have the type and device of the first array and, if it is floating-point, its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..quant import QuantTensor
from ..typing import Array
from .dispatch import ACTIVATIONS as ACTIVATIONS
from .dispatch import accepts_full_cache as accepts_full_cache
from .dispatch import activation as activation
from .dispatch import all_true as all_true
from .dispatch import backend as backend
from .dispatch import is_cuda as is_cuda
from .dispatch import reads_prepared_weights as reads_prepared_weights
from .dispatch import to_numpy as to_numpy
from .inputs import as_hidden_states as as_hidden_states
from .inputs import as_ids as as_ids
from .inputs import as_key_mask as as_key_mask
from .inputs import as_labels as as_labels
from .inputs import as_mask as as_mask
from .inputs import as_pixels as as_pixels
from .inputs import as_points as as_points
from .inputs import as_samples as as_samples
from .memory_budget import charge
from .memory_budget import memory_budget as memory_budget
from .vision import adaptive_avg_pool2d as adaptive_avg_pool2d
from .vision import avg_pool2d as avg_pool2d
from .vision import boxes_of_masks as boxes_of_masks
from .vision import centres as centres
from .vision import conv2d as conv2d
from .vision import conv_transpose2d as conv_transpose2d
from .vision import depthwise_conv2d as depthwise_conv2d
from .vision import fold_norm as fold_norm
from .vision import from_windows as from_windows
from .vision import interpolate as interpolate
from .vision import max_pool2d as max_pool2d
from .vision import merge_convs as merge_convs
from .vision import pad_images as pad_images
from .vision import pair as pair
from .vision import pixel_shuffle as pixel_shuffle
from .vision import prepare_conv as prepare_conv
from .vision import sample as sample
from .vision import windows as windows


def linear(
    x: Array,
    weight: Array | QuantTensor,
    bias: Array | None = None,
    act: str | None = None,
    residual: Array | None = None,
) -> Array:
    """act(x @ weight.T + bias) + residual.

    x (..., I), weight (O, I), bias (O,), residual (..., O) -> (..., O).  `act` is a value of `ACTIVATIONS`.
    """
    return backend(x).linear(x, weight, bias, act, residual)


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    start: Array | None = None,
    mask: Array | None = None,
    bias: Array | None = None,
    window: int | None = None,
    scale: float | None = None,
    blocks: Array | None = None,
    softcap: float | None = None,
    sinks: Array | None = None,
    dropout: float = 0.0,
) -> Array:
    """softmax(scale * q @ k.T + bias) @ v, over the keys that each query may see.

    q (B, T, H, K), k and v (B, S, G, K), H a multiple of G -> (B, T, H, K); query head h reads key head h // (H / G).
    start (B,) integers: query t of row b is at position start[b] + t, and sees no later key; None: it sees every key.
    window: a query sees no key that is more than `window` positions before or after it.
    mask (B, S) bool: false hides a key.  bias: broadcasts to (B, H, T, S).  scale: K ** -0.5 by default.
    blocks (B, T), with start: integers that never fall along T; a query also sees the later keys, among the T from
    position start[b] on, whose number is its own, at any distance.
    softcap: the products become softcap * tanh(scale * q @ k.T / softcap), within -softcap ... softcap (Gemma 2,
    https://arxiv.org/abs/2408.00118).
    sinks (H,): one score more of each head, in the sum that softmax divides by, which weighs no value (Xiao et al.
    2023, https://arxiv.org/abs/2309.17453).
    dropout: the rate at which weights are zeroed, in training on torch only.
    """
    given = q, k, v, start, mask, bias, window, q.shape[-1] ** -0.5 if scale is None else scale
    more: dict[str, Any] = {"blocks": blocks} if blocks is not None else {}
    more |= {"softcap": softcap} if softcap is not None else {}
    more |= {"sinks": sinks} if sinks is not None else {}
    return backend(q).attention(*given, **more, **({"dropout": dropout} if dropout else {}))


class SharedKeys(NamedTuple):
    """Keys that all queries of `banded_attention` see, in addition to those of their window."""

    keys: Array  # (B, N, G, K)
    values: Array  # (B, N, G, K)
    mask: Array  # (B, N): False hides a key
    bias: Array | None = None  # (N,), added to scores; with `aligned` only


def banded_attention(
    q: Array,
    k: Array,
    v: Array,
    window: int,
    *,
    mask: Array | None = None,
    shared: SharedKeys | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    aligned: bool = False,
) -> Array:
    """`attention` with a window, in memory that grows as T x window, and not as T x T.

    q (B, T, H, K), k and v (B, T, G, K), H a multiple of G, mask (B, T), shared of (B, N, G, K) -> (B, T, H, K).
    window, at least 1: a query sees the keys that are at most `window` positions before or after it, and shared keys.
    mask: False hides a key of the windows, not a shared one.  scale: K ** -0.5 by default.
    aligned: instead of its window a query sees the block of `window` tokens that it is in, and the two beside it.
    """
    from .banded import Chunks  # which most models do not need

    ops = backend(q)
    return ops.banded_attention(Chunks(ops, q, k, v, window, mask, shared, scale, dropout, aligned))


def split_heads(x: Array, heads: int, groups: int | None = None) -> tuple[Array, Array, Array]:
    """Split a fused projection: x (B, T, (H + 2 G) K) -> q (B, T, H, K), k and v (B, T, G, K), views of x."""
    G, lead = groups or heads, x.shape[:2]
    K = x.shape[2] // (heads + 2 * G)
    q, k, v = x[..., : heads * K], x[..., heads * K : (heads + G) * K], x[..., (heads + G) * K :]
    return q.reshape(*lead, heads, K), k.reshape(*lead, G, K), v.reshape(*lead, G, K)


def layer_norm(x: Array, weight: Array, bias: Array, eps: float, residual: Array | None = None) -> Array:
    """LayerNorm of x (+ residual) over the last axis (Ba et al. 2016, https://arxiv.org/abs/1607.06450).

    x, residual (..., D), weight, bias (D,) -> (..., D).
    """
    return backend(x).layer_norm(x, weight, bias, eps, residual)


def add_layer_norm(x: Array, residual: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array]:
    """LayerNorm of x + residual, and the sum, as a pre-norm layer needs them.

    x, residual (..., D), weight, bias (D,) -> two of (..., D).  The sum is rounded to the dtype of x before its norm.
    """
    return backend(x).add_layer_norm(x, residual, weight, bias, eps)


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """x / sqrt(mean(x ** 2) + eps) * weight over the last axis (Zhang et al. 2019, https://arxiv.org/abs/1910.07467).

    x (..., D), weight (D,) -> (..., D).  The quotient is rounded to the dtype of x before weight multiplies it.
    """
    return backend(x).rms_norm(x, weight, eps)


def add_rms_norm(x: Array, residual: Array, weight: Array, eps: float) -> tuple[Array, Array]:
    """`rms_norm` of x + residual, and the sum.

    x, residual (..., D), weight (D,) -> two of (..., D).  The sum is rounded to the dtype of x before its norm.
    """
    return backend(x).add_rms_norm(x, residual, weight, eps)


def group_norm(x: Array, weight: Array, bias: Array, groups: int, eps: float) -> Array:
    """The norm of images over their pixels and each of `groups` blocks of channels (Wu and He 2018,
    https://arxiv.org/abs/1803.08494).

    x (B, Y, X, C), weight, bias (C,), C a multiple of groups -> (B, Y, X, C).
    """
    return backend(x).group_norm(x, weight, bias, groups, eps)


def rotary(positions: Array, frequencies: tuple[float, ...], scale: float, like: Array) -> tuple[Array, Array]:
    """scale * cos and scale * sin of positions * frequencies, in float32, for `rope`.

    positions (B or 1, T) integers, K / 2 frequencies in radians a token -> two of (B or 1, T, K / 2).
    """
    charge((*positions.shape, 2 * len(frequencies)), "sines and cosines", 4)
    return backend(like).rotary(positions, frequencies, scale, like)


def rope(x: Array, cos: Array, sin: Array, *, interleaved: bool = False) -> Array:
    """Rotary position embedding (Su et al. 2021, https://arxiv.org/abs/2104.09864).

    x (B, T, H, K), cos and sin (B or 1, T, R / 2) from `rotary` -> (B, T, H, K).  Of the first R <= K features of each
    head the i-th and the (i + R / 2)-th are a point in the plane, rotated by the i-th angle of its token.  The result
    is rounded once.

    interleaved: the points are features 2 i and 2 i + 1 of x, as in GPT-J and Cohere.  In the result they are i and
    i + R / 2 all the same: products of queries and keys do not depend on the order.
    """
    R, K = 2 * cos.shape[-1], x.shape[-1]
    turned = x if R == K else x[..., :R]
    if interleaved:
        turned = cat([turned[..., 0::2], turned[..., 1::2]], 3)
    turned = backend(x).rope(turned, cos, sin)
    return turned if R == K else cat([turned, x[..., R:]], 3)


def rope_write_(
    q: Array,
    k: Array,
    v: Array,
    cos: Array,
    sin: Array,
    keys: Array,
    values: Array,
    start: Array,
    *,
    interleaved: bool = False,
) -> Array:
    """q rotated by `rope`; k, rotated as well, and v go into a cache: keys[b, start[b] : start[b] + T] = rope(k)[b].

    q (B, T, H, K), k and v (B, T, G, K), cos and sin (B or 1, T, R / 2), keys and values (B, S, G, K), start (B,)
    -> (B, T, H, K).
    """
    if not interleaved and 2 * cos.shape[-1] == q.shape[-1]:
        return backend(q).rope_write_(q, k, v, cos, sin, keys, values, start)
    write_(keys, rope(k, cos, sin, interleaved=interleaved), start)
    write_(values, v, start)
    return rope(q, cos, sin, interleaved=interleaved)


def activate(x: Array, act: str | None) -> Array:
    """act(x).  x (...) -> (...).  `act` is a value of `ACTIVATIONS`."""
    return backend(x).activate(x, act)


def grouped_conv1d(x: Array, weight: Array, bias: Array, groups: int, act: str | None = None) -> Array:
    """act(convolution over time + bias), in which each of `groups` blocks of channels sees itself alone.

    x (B, T, C), weight (O, C / groups, k), bias (O,) -> (B, T, O).  An output sees k // 2 vectors before its own, and
    with it k in all; there are zeros before the first and after the last.  `act` is a value of `ACTIVATIONS`.
    """
    return backend(x).grouped_conv1d(x, weight, bias, groups, act)


def fold_weight_norm(length: Array, direction: Array) -> Array:
    """length * direction / |direction|, the weight of a convolution, by each of its taps (Salimans and Kingma 2016,
    https://arxiv.org/abs/1602.07868).

    length (1, 1, k), direction (O, C, k) -> (O, C, k).
    """
    return backend(direction).fold_weight_norm(length, direction)


def clip(x: Array, low: float | None, high: float | None) -> Array:
    """x within low ... high; None: there is no such bound.  x (...) -> (...)."""
    return backend(x).clip(x, low, high)


def glu(x: Array, act: str | None) -> Array:
    """act(gate) * up of a fused projection (Shazeer 2020, https://arxiv.org/abs/2002.05202): SwiGLU where act is silu.

    x (..., 2 F), the gate before the rest -> (..., F).  `act` is a value of `ACTIVATIONS`.
    """
    return backend(x).glu(x, act)


def softmax(x: Array) -> Array:
    """Softmax over the last axis.  x (..., D) -> (..., D); a row of -inf gives zeros."""
    return backend(x).softmax(x)


def exp(x: Array) -> Array:
    """e ** x.  x (...) -> (...)."""
    return backend(x).exp(x)


def log(x: Array) -> Array:
    """The natural logarithm of numbers above 0.  x (...) -> (...)."""
    return backend(x).log(x)


def softplus(x: Array) -> Array:
    """log(1 + e ** x).  x (...) -> (...)."""
    return backend(x).softplus(x)


def logit(x: Array, eps: float) -> Array:
    """log(x / (1 - x)) of probabilities; neither x nor 1 - x counts as less than eps.  x (...) -> (...)."""
    return backend(x).logit(x, eps)


def embedding(ids: Array, table: Array | QuantTensor, name: str = "ids", padding_idx: int | None = None) -> Array:
    """Rows of a table.  ids (...) integers in [0, V), table (V, D) -> (..., D).  name: of `ids` in an error.

    padding_idx: the id whose row gets no gradient.
    """
    charge((*ids.shape, table.shape[-1]), "rows of a table", 4)
    if padding_idx is not None and getattr(table, "requires_grad", False):
        return backend(table).embedding(ids, table, name, padding_idx)
    return backend(table).embedding(ids, table, name)


def cumsum(x: Array, axis: int) -> Array:
    """Running sums of a bool or integer array as int64.  x (...) -> (...)."""
    return backend(x).cumsum(x, axis)


def cat(arrays: list[Array] | tuple[Array, ...], axis: int) -> Array:
    """Arrays joined along an axis."""
    return backend(arrays[0]).cat(arrays, axis)


def arange(count: int, like: Array | QuantTensor) -> Array:
    """0, 1, ... as int64 on the device of `like`.  -> (count,)."""
    charge((count,), "numbers")
    return backend(like).arange(count, like)


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros of the dtype and on the device of `like`."""
    charge(shape, "zeros", 4)
    return backend(like).zeros(shape, like)


def place(x: np.ndarray, like: Array) -> Array:
    """A NumPy array with the dtype and on the device of `like`."""
    charge(x.shape, "numbers", 4)
    return backend(like).place(x, like)


def write_(out: Array, x: Array, start: Array) -> Array:
    """out[b, start[b] : start[b] + T] = x[b].  out (B, S, ...), x (B, T, ...), start (B,) -> out."""
    return backend(out).write_(out, x, start)


def assign_(out: Array, x: Any) -> Array:
    """out[...] = x, an array of the same shape, or a NumPy array for any `out`.  -> out."""
    return backend(out).assign_(out, x)


def mean(x: Array, axis: int) -> Array:
    """The mean along an axis."""
    return backend(x).mean(x, axis)


def where(condition: Array, x: Array, y: Array) -> Array:
    """x where the bool array `condition` is true, y elsewhere; all three broadcast."""
    return backend(y).where(condition, x, y)


def add_scaled(x: Array, y: Array, scale: Array) -> Array:
    """x + scale * y: a residual with layer scale.  x, y (..., D), scale (D,) -> (..., D)."""
    return backend(x).add_scaled(x, y, scale)


def gather_bias(table: Array, index: Array) -> Array:
    """A bias for `attention`, looked up in a table.

    table (R, H), index (T, S) or (B, T, S) integers in [0, R) -> (B or 1, H, T, S).
    """
    charge((table.shape[-1], *index.shape), "a bias", 4)
    return backend(table).gather_bias(table, index)


def scale_bias(bias: Array, gates: Array) -> Array:
    """A bias for `attention`, times a number of each query and head.

    bias (B or 1, H, T, S), gates (B, T, H) -> (B, H, T, S).
    """
    charge((*gates.shape, bias.shape[3]), "a bias", 4)
    return backend(gates).scale_bias(bias, gates)


def top_k_gates(logits: Array, k: int, normalise: bool) -> Array:
    """Each row's `k` largest probabilities, and zeros; normalise: they sum to 1.  logits (N, E) -> (N, E)."""
    return backend(logits).top_k_gates(logits, k, normalise)


def grouped_gates(logits: Array, bias: Array, k: int, groups: int, kept_groups: int, normalise: bool) -> Array:
    """The sigmoids of each row's `k` best, and zeros (DeepSeek-V3, https://arxiv.org/abs/2412.19437, section 2.1.2).

    bias (E,) is added where they are chosen: of `groups` of neighbours, those `kept_groups` whose two best have the
    largest sum, and of these the k largest.  normalise: they sum to 1.  logits (N, E) -> (N, E).
    """
    return backend(logits).grouped_gates(logits, bias, k, groups, kept_groups, normalise)


def combine_experts(x: Array, gates: Array, experts: Sequence[Callable[[Array], Array]]) -> Array:
    """The sum of functions of rows, each times its gate: rows with a gate of 0 do not pass through it.

    x (N, D), gates (N, E) -> (N, D).  A graph, and one that is captured on a GPU, computes every expert of every row.
    """
    return backend(x).combine_experts(x, gates, experts)


def bucket(x: Array, starts: tuple[int, ...]) -> Array:
    """The number of `starts`, which ascend, that are not above each of the numbers x.  x (...) -> (...)."""
    return backend(x).bucket(x, starts)


def scores(q: Array, k: Array) -> Array:
    """Products of queries and keys, for models that read the weights of an attention.

    q (B, T, H, K), k (B, S, H, K) -> (B, T, S, H).
    """
    charge((*q.shape[:2], k.shape[1], q.shape[2]), "scores", 4)
    return backend(q).scores(q, k)


def channel_attention(q: Array, k: Array, v: Array) -> Array:
    """Attention between the channels of each head, whose features are their values at all tokens.

    out[b, :, h, i] = sum over j of softmax(q[b, :, h, i] . k[b, :, h, j] / sqrt(T)) v[b, :, h, j].

    q, k, v (B, T, H, K) -> (B, T, H, K).
    """
    charge((q.shape[0], q.shape[2], q.shape[3], q.shape[3]), "scores", 4)
    return backend(q).channel_attention(q, k, v)


class StatePast(NamedTuple):
    """The tokens before those of `ssd_scan` or `delta_rule`, S of them."""

    keys: Array  # (B, S, G, N)
    values: Array  # (B, S, H, P): what they added to the state
    decay: Array  # (B, S, H): the logarithms of what they left of it
    there: Array  # (B, S): False for places without a token, which are at the end


def delta_rule(
    q: Array, k: Array, v: Array, decay: Array, rate: Array, past: StatePast | None = None
) -> tuple[Array, Array]:
    """The gated delta rule (Yang et al. 2024, https://arxiv.org/abs/2412.06464): a state (K, V) of each head that every
    token decays, and corrects at its key.

    The change u[t] = rate[t] (v[t] - exp(decay[t]) k[t] @ state[t - 1]) gives state[t] = exp(decay[t]) state[t - 1] +
    outer(k[t], u[t]), and out[t] = q[t] @ state[t].

    q, k (B, T, G, K), v (B, T, H, V), decay of at most 0, rate (B, T, H), H a multiple of G: neighbouring heads share
    keys -> out (B, T, H, V), u (B, T, H, V).  past: the tokens before, whose state is 0 before the first.
    """
    charge((v.shape[0], v.shape[2], k.shape[3], v.shape[3]), "states", 4)
    return backend(v).delta_rule(q, k, v, decay, rate, past)


def ssd_scan(q: Array, k: Array, v: Array, decay: Array, past: StatePast | None = None) -> Array:
    """Mamba2's state space (Dao and Gu 2024, https://arxiv.org/abs/2405.21060): a state (N, P) of each head that every
    token decays, and adds to.

    state[t] = exp(decay[t]) state[t - 1] + outer(k[t], v[t]) and out[t] = q[t] @ state[t].

    q, k (B, T, G, N), v (B, T, H, P), decay (B, T, H) of at most 0, H a multiple of G: neighbouring heads share keys ->
    (B, T, H, P).  past: the tokens before, whose state is 0 before the first.  In the paper's letters q is C, k is B, v
    is dt x and decay is dt A.
    """
    charge((v.shape[0], v.shape[2], k.shape[3], v.shape[3]), "states", 4)
    return backend(v).ssd_scan(q, k, v, decay, past)


def ssd_state(past: StatePast) -> Array:
    """The state after tokens, in which `ssd_scan` goes on.  -> (B, N, H, P)."""
    return backend(past.values).ssd_state(past)


def relative_scores(x: Array, table: Array, of_keys: bool = False) -> Array:
    """Products of tokens with vectors of distances, as a bias for `attention` (Shaw et al. 2018,
    https://arxiv.org/abs/1803.02155).

    x (B, T, H, K), table (2 T, H, K) -> (B, H, T, T), in which [b, h, t, s] is x[b, t, h] @ table[T + s - t, h];
    of_keys: it is x[b, s, h] @ table[T + t - s, h].
    """
    charge((x.shape[0], x.shape[2], x.shape[1], table.shape[0]), "scores of distances", 4)
    return backend(x).relative_scores(x, table, of_keys)


def relative_bias(table: Array, T: int, k: Array, start: Array | None = None) -> Array:
    """A bias for `attention` that depends on how far a key is from the query alone.

    table (2 M + 1, H): row M + d for a key d tokens after the query, the first and the last for all further ones.
    T queries, keys k (B, S, G, K), start (B,) as for `attention` -> (B or 1, H, T, S).
    """
    charge((table.shape[-1], T, k.shape[1]), "a bias", 4)
    return backend(k).relative_bias(table, T, k, start)


def sinusoids(x: Array, size: int, like: Array | QuantTensor, base: float = 10000.0) -> Array:
    """Sines and cosines of numbers at `size` / 2 frequencies, interleaved: sin, cos, sin, cos, ...

    x (...) -> (..., size) of the dtype of `like`; the k-th frequency is base ** (-2 k / size).
    """
    charge((*x.shape, size), "sines and cosines")  # in float64 before they are rounded
    return backend(x).sinusoids(x, size, like, base)


def top_rows(scores: Array, count: int) -> Array:
    """The indices of the `count` rows with the largest values, the largest first.  scores (B, N, L) -> (B, count)."""
    return backend(scores).top_rows(scores, count)


def take_rows(x: Array, index: Array) -> Array:
    """x (B, N, D), index (B, Q) integers in [0, N) -> (B, Q, D)."""
    charge((*index.shape, x.shape[-1]), "rows", 4)
    return backend(x).take_rows(x, index)


def true_indices(mask: Array, count: int | None = None) -> tuple[Array, Array]:
    """Where a bool array is True: indices in order, and False for those beyond the number of a row's own.

    mask (B, T) -> (B, N), (B, N); N is `count`, or else what the row with the most has, and at least 1.
    """
    return backend(mask).true_indices(mask, count)


class GruWeights(NamedTuple):
    """The weights of `write_symbols`: C channels of what is read, H of the state, V symbols."""

    query: Array  # (H, H), of the state
    query_bias: Array  # (H,)
    score: Array  # (1, H)
    inputs: Array  # (3 H, C + V), of what was read and of the last symbol: reset, update and new state, as in torch
    state: Array  # (3 H, H)
    inputs_bias: Array  # (3 H,)
    state_bias: Array  # (3 H,)
    first: Array  # (H, H), from the state
    first_bias: Array  # (H,)
    last: Array  # (V, H), to the logits
    last_bias: Array  # (V,)


def write_symbols(x: Array, keys: Array, weights: GruWeights, most: int) -> tuple[Array, Array]:
    """What a GRU with additive attention writes (Bahdanau et al. 2014, https://arxiv.org/abs/1409.0473).

    x (B, S, C) is read by keys (B, S, H) -> logits (B, T, V) of each symbol, states (B, T, H).  The first state is 0,
    the first symbol before it 0, each next one that of the largest logit.  It ends once every row has had symbol V - 1,
    and after `most` symbols.
    """
    charge((x.shape[0], most, weights.state.shape[1] + weights.last.shape[0]), "symbols", 4)
    return backend(x).write_symbols(x, keys, weights, most)


# Ops for training, on torch only


def batch_norm(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: float, learns: bool = False
) -> Array:
    """(x - mean) / sqrt(var + eps) * weight + bias (Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167).

    x (B, Y, X, C), weight, bias, mean, var (C,) -> (B, Y, X, C).  learns: uses the mean and
    variance of the batch, and updates `mean` and `var` with momentum 0.1.
    """
    return backend(x).batch_norm(x, weight, bias, mean, var, eps, learns)


def dropout(x: Array, rate: float, of_rows: bool = False) -> Array:
    """x / (1 - rate) with a random fraction `rate` of its numbers, or of its rows, zeroed."""
    return backend(x).dropout(x, rate, of_rows)
