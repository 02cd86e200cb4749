"""Generation: tokens that follow a prompt, by greedy choice, sampling or beam search, on any model with a cache.

Shapes: B prompts, R rows computed at once, T tokens, V vocab_size, N new tokens of a row.
"""

from .config import GenerationConfig
from .continuous import ContinuousBatch, Request, Step
from .decoder import Decoder, Generated, Token
from .prefixes import PREFIX_CACHE_BYTES
from .prompt_cache import PromptCache
from .search import generate, stream

__all__ = [
    "PREFIX_CACHE_BYTES",
    "ContinuousBatch",
    "Decoder",
    "Generated",
    "GenerationConfig",
    "PromptCache",
    "Request",
    "Step",
    "Token",
    "generate",
    "stream",
]
