"""Runs models by CUDA graphs: all launches for inputs of one shape are recorded once and replayed together.

Launching a small model's kernels one by one takes longer than running them.  Inputs are checked by the model and copied
to the memory that the graph reads; outputs are copies.  The model is called directly if a graph gains nothing: for
batches that keep a GPU busy, unusual arguments, and shapes that come only once.

A graph must not wait for the device, copy from the host, or depend on values on the host: a decoder's step reads its
position from `KVCache.start`, which is on the device.
"""

from __future__ import annotations

from typing import Any

from ...runner import Runner


def runner_for(like: Any) -> Runner:
    """The runner of models whose arrays are beside the tensor `like`, on a GPU."""
    from .recording import CudaRecorder
    from .runner import GraphRunner

    return GraphRunner(CudaRecorder(str(like.device)))
