"""The memory of generation: keys and values of the tokens that a decoder has seen, or the states that it keeps."""

from .kv import CHUNK, CHUNK_GPU, SPARE_TOKENS, KVCache, layer_capacities
from .layer import LayerCache
from .states import StateShape, recent_vectors, state_keys, state_mask

__all__ = [
    "CHUNK",
    "CHUNK_GPU",
    "SPARE_TOKENS",
    "KVCache",
    "LayerCache",
    "StateShape",
    "layer_capacities",
    "recent_vectors",
    "state_keys",
    "state_mask",
]
