"""Chats of Gemma: the tokens that its template makes of messages, and greedy answers, beside peers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zoo
from zoo.text.chat import ChatTemplate

from .llama_cpp import LlamaCpp
from .measures import count_same
from .outcome import Outcome
from .transformers_side import Transformers

NEW_TOKENS = 40
ENDS = ("<eos>", "<end_of_turn>")
# A file of the base model has no template; this one has the form of the instructed models'.
TEMPLATE = """\
{{ bos_token }}{% if messages[0].role == 'system' %}{% set head = messages[0].content + '\n\n' %}\
{% set turns = messages[1:] %}{% else %}{% set head = '' %}{% set turns = messages %}{% endif %}\
{% for turn in turns %}{{ '<start_of_turn>' + ('model' if turn.role == 'assistant' else turn.role) + '\n' }}\
{{ head if loop.first else '' }}{{ turn.content | trim }}{{ '<end_of_turn>\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"""
_TURNS = (
    ("Name three fruits.",),
    ("What is the capital of France?", "Paris.", "  And of Italy?\n"),
    ("Wie heißt du? \N{WAVING HAND SIGN}", "Ich bin ein Modell.", "def f(x):\n\treturn x  # what does it do?"),
)
CHATS: list[list[dict[str, str]]] = [
    [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)] for turns in _TURNS
]
CHATS.append([{"role": "system", "content": "Answer briefly."}, *CHATS[1]])


def measure_chat(path: Path, source: dict[str, Any], beside_llama_cpp: bool = False) -> Iterator[Outcome]:
    """Each side has its own tokenizer, and its own template's code: Jinja, or llama.cpp's by the template's form."""
    llm = zoo.load(str(path))
    llm.template = ChatTemplate({"default": TEMPLATE}, llm.tokenizer)
    ends = [llm.tokenizer.backend.token_to_id(token) for token in ENDS]
    prompts = [llm.chat_ids(chat, {})[0] for chat in CHATS]
    answers = llm.chat(CHATS, details=True, do_sample=False, max_new_tokens=NEW_TOKENS, eos_token_id=ends)
    new = [[token.token_id for token in one.tokens] for one in answers]
    del llm  # one model in memory at a time
    import transformers

    name = source["pretrained_model_name_or_path"]
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(name, gguf_file=source.get("gguf_file"))
    texts = [
        tokenizer.apply_chat_template(chat, chat_template=TEMPLATE, add_generation_prompt=True, tokenize=False)
        for chat in CHATS
    ]
    its_prompts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    model = Transformers(source)
    its_new = [model.continue_greedily(ids, NEW_TOKENS, ends) for ids in its_prompts]
    del model
    prompt_counts: dict[str, float] = {"transformers": sum(map(len, its_prompts))}
    counts: dict[str, float] = {"transformers": sum(map(len, its_new))}
    if beside_llama_cpp:
        other = LlamaCpp(path)
        found = [other.chat_ids(chat, TEMPLATE) for chat in CHATS]
        prompt_counts["llama.cpp"] = count_same(found, its_prompts)
        counts["llama.cpp"] = count_same([other.continue_greedily(ids, NEW_TOKENS, ends) for ids in found], its_new)
    yield Outcome(f"tokens of {len(CHATS)} chats as transformers'", count_same(prompts, its_prompts), prompt_counts)
    yield Outcome("greedy tokens of their answers as transformers'", count_same(new, its_new), counts)
