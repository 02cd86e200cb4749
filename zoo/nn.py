"""Module, the layers that all models share, and functions over a model's arrays."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from . import ops
from .errors import ConfigError
from .files.pages import release
from .ops.capture import current
from .quant import QuantTensor
from .typing import Array
from .weights import Weights

T = TypeVar("T")


class Module:
    """A node of a model.  Its arrays and modules are its attributes, in a list or tuple where there are many.

    An attribute whose name begins with an underscore is derived from the others: it moves with the model, but is
    neither counted nor saved.
    """

    fixed: tuple[str, ...] = ()  # arrays that are saved, and that training does not change


class CacheLast(Module):
    """Caches the last value, which depends on its key alone (such as an image's size), until another key is asked for.

    A value of more than max_elements is not kept, nor is one that is made while a CUDA graph is captured.
    """

    def __init__(self, max_elements: int | None = None):
        self.max_elements = max_elements
        self._latest: tuple[Hashable, Array] | None = None

    def __call__(self, key: Hashable, make: Callable[[], Array]) -> Array:
        latest, reads = self._latest, current()  # `_latest` is read once: other threads may replace it
        if latest is not None and latest[0] == key:
            if reads is not None:
                reads.append(latest[1])
            return latest[1]
        value = make()
        if reads is None and (self.max_elements is None or math.prod(value.shape) <= self.max_elements):
            self._latest = key, value
        return value


class Dropout(Module):
    """Dropout while a model is trained (Srivastava et al. 2014); otherwise the identity.

    of_rows: whole rows of a batch are dropped (stochastic depth, Huang et al. 2016, https://arxiv.org/abs/1603.09382).
    """

    def __init__(self, rate: float, of_rows: bool = False):
        self.set_rate, self.of_rows, self.is_training = rate, of_rows, False

    @property
    def rate(self) -> float:
        """The rate now: 0 outside of training."""
        return self.set_rate if self.is_training else 0.0

    def __call__(self, x: Array) -> Array:
        """x (B, ...) -> (B, ...)."""
        return ops.dropout(x, self.rate, self.of_rows) if self.rate else x


class Linear(Module):
    """dropout(act(x @ weight.T + bias)).  vocab: the outputs are logits of a vocabulary."""

    def __init__(
        self,
        w: Weights,
        d_in: int,
        d_out: int,
        bias: bool = True,
        act: str | None = None,
        dropout: float = 0.0,
        vocab: bool = False,
    ):
        self.weight = w.embedding("weight", d_out, d_in) if vocab else w.linear(["weight"], [d_out], d_in)
        self.bias = w.get("bias", (d_out,)) if bias else None
        self.act, self.dropout = ops.activation(act), Dropout(dropout)

    @classmethod
    def fuse(cls, w: Weights, parts: Sequence[str], d_in: int, d_outs: Sequence[int], bias: bool = True) -> Linear:
        """Several of the checkpoint's projections as one: their outputs are concatenated."""
        self = cls.__new__(cls)
        self.weight = w.linear([f"{p}.weight" for p in parts], d_outs, d_in)
        self.bias = w.cat([f"{p}.bias" for p in parts], [(d,) for d in d_outs]) if bias else None
        self.act, self.dropout = None, Dropout(0.0)
        return self

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        """x (..., d_in), residual (..., d_out) -> (..., d_out); residual is added last."""
        if self.dropout.rate:
            y = self.dropout(ops.linear(x, self.weight, self.bias, self.act))
            return y if residual is None else y + residual
        return ops.linear(x, self.weight, self.bias, self.act, residual)


class LayerNorm(Module):
    """LayerNorm over the last axis, of x or of x + residual."""

    def __init__(self, w: Weights, d: int, eps: float, bias: bool = True):
        self.weight, self.bias, self.eps = w.get("weight", (d,)), w.get("bias", (d,)) if bias else None, eps
        self._bias = None if bias else ops.zeros((d,), self.weight)

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        """x, residual (..., d) -> (..., d)."""
        bias: Any = self._bias if self.bias is None else self.bias
        return ops.layer_norm(x, self.weight, bias, self.eps, residual)

    def add(self, x: Array, residual: Array) -> tuple[Array, Array]:
        """x, residual (..., d) -> the norm of their sum, and the sum, both (..., d)."""
        bias: Any = self._bias if self.bias is None else self.bias
        return ops.add_layer_norm(x, residual, self.weight, bias, self.eps)


class GroupNorm(Module):
    """The norm of images over pixels and groups of channels."""

    def __init__(self, w: Weights, d: int, groups: int, eps: float):
        if d % groups:
            raise ConfigError(f"{d} channels cannot be normalised in {groups} groups of one size")
        self.weight, self.bias, self.groups, self.eps = w.get("weight", (d,)), w.get("bias", (d,)), groups, eps

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, d)."""
        return ops.group_norm(x, self.weight, self.bias, self.groups, self.eps)


class RMSNorm(Module):
    """Root mean square norm over the last axis."""

    def __init__(self, w: Weights, d: int, eps: float):
        self.weight, self.eps = w.get("weight", (d,)), eps

    def __call__(self, x: Array) -> Array:
        """x (..., d) -> (..., d)."""
        return ops.rms_norm(x, self.weight, self.eps)

    def add(self, x: Array, residual: Array) -> tuple[Array, Array]:
        """x, residual (..., d) -> the norm of their sum, and the sum, both (..., d)."""
        return ops.add_rms_norm(x, residual, self.weight, self.eps)


class BatchNorm(Module):
    """A batch norm with fixed statistics, folded into the convolution before it.

    While a model is trained, the statistics are updated with each batch, unless is_frozen.
    """

    def __init__(self, w: Weights, d: int, eps: float = 1e-5, is_frozen: bool = False):
        self.weight, self.bias, self.eps = w.get("weight", (d,)), w.get("bias", (d,)), eps
        self.mean, self.var = w.get("running_mean", (d,)), w.get("running_var", (d,))
        self.is_frozen, self.is_training = is_frozen, False

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, d)."""
        learns = self.is_training and not self.is_frozen
        return ops.batch_norm(x, self.weight, self.bias, self.mean, self.var, self.eps, learns)

    def fold(self, weight: Array, bias: Array | None, axis: int = 0) -> tuple[Array, Array]:
        """The weight (outputs along `axis`) and bias of one convolution for both."""
        return ops.fold_norm(weight, bias, self.weight, self.bias, self.mean, self.var, self.eps, axis)


class DistanceBias(Module):
    """T5's bias of attention for how far a token is after another (Raffel et al. 2019,
    https://arxiv.org/abs/1910.10683): of each head, in buckets that widen with the distance, up to `far`.
    """

    def __init__(self, w: Weights, buckets: int, heads: int, far: int):
        self.table = w.get("weight", (buckets, heads))
        self.half = buckets // 2  # of one direction
        self.starts = bucket_starts(self.half, far)

    def __call__(self, at: Array) -> Array:
        """at (B or 1, S) -> (B or 1, H, S, S)."""
        distance = at[:, None] - at[:, :, None]
        after = (distance > 0) * 1
        bucket = ops.bucket(distance * (2 * after - 1), self.starts)
        return ops.gather_bias(self.table, bucket + after * self.half)


class AlibiBias(Module):
    """ALiBi's bias of attention (Press et al. 2021, https://arxiv.org/abs/2108.12409): of each head a slope times how
    far a key is after its query, in texts of up to `positions` tokens.
    """

    def __init__(self, slopes: Sequence[float], positions: int, like: Array):
        """like: an array with the dtype and on the device of the bias."""
        H, rows = len(slopes), 2 * positions + 1
        factors = ops.as_hidden_states([[list(slopes)]], like, "slopes", H)[0]
        self._table = ops.assign_(ops.zeros((rows, H), like), (ops.arange(rows, like) - positions)[:, None] * factors)

    def __call__(self, T: int, k: Array, start: Array | None, mask: Array | None) -> Array:
        """For T queries and keys k (B, S, H, K), mask (B, S) -> (B or 1, H, T or 1, S).

        With a mask distances count no hidden keys.
        """
        if mask is None:
            return ops.relative_bias(self._table, T, k, start)
        seen = ops.cumsum(mask, 1)
        return ops.gather_bias(self._table, ((seen - seen[:, -1:]) * mask + self._table.shape[0] // 2)[:, None])


def bucket_starts(count: int, far: int) -> tuple[int, ...]:
    """The distances from which the buckets 1, 2, ..., count - 1 begin: the first half has one distance each."""
    exact = count // 2
    found = {n: exact + int(math.log(n / exact) / math.log(far / exact) * (count - exact)) for n in range(exact, far)}
    starts = (next((n for n, b in found.items() if b >= wanted), far) for wanted in range(exact, count))
    return (*range(1, exact), *starts)


class FoldedModule(Module):
    """A module that computes with the weight and bias of one convolution that follow from its weights."""

    _folded: tuple[Array, Array | None] | None  # None while the weights are trained

    def unfold(self) -> None:
        """Drop what was computed from the weights, which are about to change."""
        self._folded = None


class Conv2d(FoldedModule):
    """post(act(norm(convolution + bias)) + residual)."""

    def __init__(
        self,
        w: Weights,
        c_in: int,
        c_out: int,
        kernel: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        bias: bool = True,
        act: str | None = None,
        norm: BatchNorm | None = None,
        post: str | None = None,
        groups: int = 1,
    ):
        self.weight, self.groups = w.get("weight", (c_out, c_in // groups, *ops.pair(kernel))), groups
        self.bias = w.get("bias", (c_out,)) if bias else None
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.act, self.post, self.norm = ops.activation(act), ops.activation(post), norm
        self._folded = norm.fold(self.weight, self.bias) if norm else (self.weight, self.bias)
        self._prepared = ops.prepare_conv(self._folded[0], stride, dilation) if groups == 1 else None
        if norm and self._prepared is not None:  # only the weight's shape is still used
            self._folded = self.weight, self._folded[1]

    def unfold(self) -> None:
        super().unfold()
        self._prepared = None

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        """x (B, Y, X, c_in), residual (B, Y', X', c_out) -> (B, Y', X', c_out)."""
        size = self.stride, self.padding, self.dilation
        if self._folded is None and self.norm:
            y = ops.activate(self.norm(ops.conv2d(x, self.weight, self.bias, *size, groups=self.groups)), self.act)
            return ops.activate(y if residual is None else y + residual, self.post)
        weight, bias = self._folded or (self.weight, self.bias)
        if (
            self.norm and self._prepared is not None and not ops.reads_prepared_weights(x)
        ):  # the model was moved to another device
            weight, bias = self.norm.fold(self.weight, self.bias)
        return ops.conv2d(x, weight, bias, *size, self.act, residual, self.post, self._prepared, self.groups)


class DepthwiseConv2d(FoldedModule):
    """act(norm(convolution of each channel by itself + bias))."""

    def __init__(
        self,
        w: Weights,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        bias: bool = True,
        act: str | None = None,
        norm: BatchNorm | None = None,
        padding: int | None = None,
        dilation: int = 1,
    ):
        self.weight = w.get("weight", (channels, 1, *ops.pair(kernel)))
        self.bias = w.get("bias", (channels,)) if bias else None
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.act, self.norm = ops.activation(act), norm
        self._folded = norm.fold(self.weight, self.bias) if norm else (self.weight, self.bias)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, channels) -> (B, Y', X', channels); without `padding`, Y / stride rounded up."""
        size = self.stride, self.padding, self.dilation
        if self._folded is None and self.norm:
            return ops.activate(self.norm(ops.depthwise_conv2d(x, self.weight, self.bias, None, *size)), self.act)
        return ops.depthwise_conv2d(x, *(self._folded or (self.weight, self.bias)), self.act, *size)


class ConvTranspose2d(FoldedModule):
    """act(norm(transposed convolution + bias))."""

    def __init__(
        self,
        w: Weights,
        c_in: int,
        c_out: int,
        kernel: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        act: str | None = None,
        norm: BatchNorm | None = None,
        padding: int | tuple[int, int] = 0,
        bias: bool = True,
    ):
        self.weight = w.get("weight", (c_in, c_out, *ops.pair(kernel)))
        self.bias = w.get("bias", (c_out,)) if bias else None
        self.stride, self.padding, self.act, self.norm = stride, padding, ops.activation(act), norm
        self._folded = norm.fold(self.weight, self.bias, axis=1) if norm else (self.weight, self.bias)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, c_in) -> (B, Y', X', c_out)."""
        size = self.stride, self.padding
        if self._folded is None and self.norm:
            return ops.activate(self.norm(ops.conv_transpose2d(x, self.weight, self.bias, *size)), self.act)
        return ops.conv_transpose2d(x, *(self._folded or (self.weight, self.bias)), *size, act=self.act)


def modules(node: Any) -> Iterator[Module]:
    """Yield every module under `node`, itself included; a shared one once for each place where it is used."""
    if isinstance(node, Module):
        yield node
        node = list(vars(node).values())
    if isinstance(node, (list, tuple)):
        for child in node:
            yield from modules(child)


def is_array(node: Any) -> bool:
    """True if a node is a parameter: an array or a QuantTensor."""
    return hasattr(node, "shape") and hasattr(node, "dtype")


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, array or QuantTensor) of every parameter under `node`; a shared one for each place of use."""
    if is_array(node):
        yield path, node
    elif isinstance(node, (Module, list, tuple)):
        items = vars(node).items() if isinstance(node, Module) else enumerate(node)
        for name, child in items:
            if not str(name).startswith("_"):
                yield from leaves(child, f"{path}.{name}" if path else str(name))


def an_array(node: Any) -> Array:
    """The first parameter that is not quantised, or an array that a model without any has computed: it has the library,
    device and dtype of the model.
    """
    parameters = (array for _, array in leaves(node))
    computed = (value for module in modules(node) for value in vars(module).values() if is_array(value))
    return next(x for x in itertools.chain(parameters, computed) if not isinstance(x, QuantTensor))


def map_leaves(
    fn: Callable[[Array], Array],
    node: T,
    memo: dict[int, Any] | None = None,
    quantised: Callable[[QuantTensor], Any] | None = None,
) -> T:
    """A copy of `node` with fn(array) for each array, derived ones too; shared arrays stay shared.

    quantised: called with each QuantTensor; by default fn is called with each array that it is stored in.
    """
    memo = {} if memo is None else memo
    if id(node) in memo:
        return memo[id(node)]
    new: Any = node
    if isinstance(node, QuantTensor):
        new = node.map(fn) if quantised is None else quantised(node)
    elif is_array(node):
        new = fn(new)
    elif isinstance(node, (list, tuple)) and not hasattr(node, "_fields"):
        new = type(node)(map_leaves(fn, child, memo, quantised) for child in node)
    elif isinstance(node, Module):
        new = copy.copy(node)
        vars(new).update({k: map_leaves(fn, v, memo, quantised) for k, v in vars(node).items()})
    memo[id(node)] = new
    return new


def release_folded(model: Module) -> None:
    """Release the memory of weights that were folded with a norm; a later access reads their file again."""
    for module in modules(model):
        if isinstance(module, Conv2d | DepthwiseConv2d | ConvTranspose2d) and module.norm and module._folded:
            weight: Any = module.weight
            release(weight)  # does nothing to a torch tensor


def count_parameters(model: Module) -> int:
    """The number of parameters; shared ones count once."""
    unique = {id(array): array for _, array in leaves(model)}
    return sum(math.prod(array.shape) for array in unique.values())
