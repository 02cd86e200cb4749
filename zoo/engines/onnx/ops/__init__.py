"""The ops on symbolic arrays: a model called with them records an ONNX graph.

A `Symbol` is such an array, and a `Dim` is a length that is known only when the graph runs.
"""

# ruff: noqa: F401 - `dispatch` looks ops up here by name

from __future__ import annotations

import sys

from ....ops import dispatch
from .activations import activate, glu
from .arrays import (
    accepts_full_cache,
    add_scaled,
    all_true,
    arange,
    as_ids,
    as_mask,
    as_pixels,
    as_points,
    assign_,
    bucket,
    cat,
    clip,
    combine_experts,
    cumsum,
    embedding,
    exp,
    gather_bias,
    grouped_gates,
    log,
    mean,
    place,
    relative_scores,
    scale_bias,
    scores,
    sinusoids,
    softplus,
    to_numpy,
    top_k_gates,
    true_indices,
    where,
    write_,
    zeros,
)
from .attention import CachedKeys, CachedValues, attention, channel_attention, relative_bias
from .banded import banded_attention
from .decoder import rope, rope_write_, rotary
from .delta_rule import delta_rule
from .linear import linear
from .norm import add_layer_norm, add_rms_norm, group_norm, layer_norm, rms_norm, softmax
from .ssd_scan import ssd_scan
from .symbol import Symbol
from .symbols import write_symbols
from .vision import (
    adaptive_avg_pool2d,
    avg_pool2d,
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
    take_rows,
    top_rows,
    windows,
)

for _cls in (Symbol, CachedKeys, CachedValues):
    dispatch.register(_cls, sys.modules[__name__])
