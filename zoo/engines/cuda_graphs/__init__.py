"""Models by CUDA graphs: all that a model launches for inputs of one shape is recorded once and launched at once.

A small model's kernels take less time than launching them one by one.  Inputs are checked as the model checks them and
copied to where the graph reads them; outputs are copies.  The model is called directly where a graph gains nothing:
batches that keep a GPU busy, unusual arguments, shapes that come only once.

A graph must not wait for the device, copy from the host, or depend on numbers of the host: a decoder's step knows its
position from `KVCache.start` alone, which is on the device.
"""

from __future__ import annotations

from typing import Any

from ...runner import Runner


def runner_for(like: Any) -> Runner:
    """The runner of models whose arrays are beside the tensor `like`, on a GPU."""
    from .recording import CudaRecorder
    from .runner import GraphRunner

    return GraphRunner(CudaRecorder(str(like.device)))
