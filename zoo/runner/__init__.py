"""CUDA graphs: all that a model launches for inputs of one shape, recorded once and launched at once.

A small model's kernels take less time than launching them one by one.  `Graphs` wraps what a task calls: a model of
texts (`texts`) or of images (`images`), and a decoder (`decoder`), each with the signature of what it wraps.
Inputs are checked as the model checks them and copied to where the graph reads them; outputs are copies.  What has no
graph, or would not gain by one, is called as it is: batches that keep a GPU busy, unusual arguments, shapes that come
but once.

What a graph must not do is wait for the device, copy from the host, or let numbers of the host decide: of a decoder's
step only `KVCache.start`, on the device, says where it is.
"""

from .graphs import Graphs
from .recording import CudaRecorder, Recorder, Recording

__all__ = ["CudaRecorder", "Graphs", "Recorder", "Recording"]
