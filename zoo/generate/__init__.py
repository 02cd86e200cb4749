"""Generation: tokens that follow a prompt, by greedy choice, sampling or beam search, on any model with a cache.

Shapes: B prompts, R rows computed at once, T tokens, V vocab_size, N new tokens of a row.
"""

from .config import GenerationConfig
from .decoder import Decoder, Generated, Token
from .search import generate, stream

__all__ = ["Decoder", "Generated", "GenerationConfig", "Token", "generate", "stream"]
