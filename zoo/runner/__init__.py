"""How a task runs its model: as it is; by ONNX Runtime (`zoo.onnx.runner`); or on a GPU by CUDA graphs, where all that
a model launches for inputs of one shape is recorded once and launched at once.

A small model's kernels take less time than launching them one by one.  Inputs are checked as the model checks them and
copied to where the graph reads them; outputs are copies.  What has no graph, or would not gain by one, is called as it
is: batches that keep a GPU busy, unusual arguments, shapes that come but once.

What a graph must not do is wait for the device, copy from the host, or let numbers of the host decide: of a decoder's
step only `KVCache.start`, on the device, says where it is.
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..errors import InputError, UnsupportedError
from ..nn import an_array
from .evaluating import EvaluatingRunner
from .runner import Runner

__all__ = ["Runner", "check_graphs", "runner_for"]


def runner_for(model: Any) -> Runner:
    """The model's own, or by graphs where it lies on a GPU; of a model that is trained, without gradients."""
    if model.is_trainable:
        return EvaluatingRunner()
    if type(model.runner) is not Runner:
        return model.runner
    like: Any = an_array(model)
    if not ops.is_cuda(like):
        return Runner()
    from .graphs import GraphRunner
    from .recording import CudaRecorder

    return GraphRunner(CudaRecorder(str(like.device)))


def check_graphs(graphs: bool | None, device: str | None) -> None:
    """Refuse what `zoo.load` cannot do: graphs without a GPU, and what is neither True, False nor None."""
    if graphs is not None and not isinstance(graphs, bool):
        raise InputError(f"graphs is {graphs!r}, expected True, False or None")
    if graphs and not str(device).removeprefix("torch:").startswith("cuda"):
        raise UnsupportedError(
            f"graphs=True needs device='cuda': CUDA graphs are for GPUs, and the device is {device or 'cpu'!r}"
        )
