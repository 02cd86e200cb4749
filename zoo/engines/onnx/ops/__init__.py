"""The ops on arrays that record: a model's file, called with them, writes an ONNX graph.

A `Symbol` is such an array, a `Dim` a length of one that is known only when the graph runs.
"""

from __future__ import annotations

import sys

from ....ops import dispatch
from .activations import glu
from .arrays import (
    add_scaled,
    all_true,
    arange,
    as_ids,
    as_mask,
    as_pixels,
    assign_,
    cat,
    cumsum,
    embedding,
    gather_bias,
    mean,
    sinusoids,
    skips_unseen,
    to_numpy,
    where,
    write_,
    zeros,
)
from .attention import CachedKeys, CachedValues, attention
from .decoder import rope, rope_write_, rotary
from .linear import linear
from .norm import add_layer_norm, add_rms_norm, layer_norm, rms_norm, softmax
from .symbol import Symbol
from .vision import (
    adaptive_avg_pool2d,
    conv2d,
    conv_transpose2d,
    fold_norm,
    interpolate,
    max_pool2d,
    pixel_shuffle,
    prepare_conv,
)

for _cls in (Symbol, CachedKeys, CachedValues):
    dispatch.register(_cls, sys.modules[__name__])

__all__ = [
    "CachedKeys",
    "CachedValues",
    "Symbol",
    "adaptive_avg_pool2d",
    "add_layer_norm",
    "add_rms_norm",
    "add_scaled",
    "all_true",
    "arange",
    "as_ids",
    "as_mask",
    "as_pixels",
    "assign_",
    "attention",
    "cat",
    "conv2d",
    "conv_transpose2d",
    "cumsum",
    "embedding",
    "fold_norm",
    "gather_bias",
    "glu",
    "interpolate",
    "layer_norm",
    "linear",
    "max_pool2d",
    "mean",
    "pixel_shuffle",
    "prepare_conv",
    "rms_norm",
    "rope",
    "rope_write_",
    "rotary",
    "sinusoids",
    "skips_unseen",
    "softmax",
    "to_numpy",
    "where",
    "write_",
    "zeros",
]
