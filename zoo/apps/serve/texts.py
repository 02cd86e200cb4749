"""/v1/embeddings, /v1/rerank, /v1/classify and /tokenize: texts in, numbers out."""

from __future__ import annotations

import asyncio
import base64
import uuid
from functools import partial
from typing import Any

import numpy as np

from ...checkpoint.sentence_encoder import normalize as unit_length
from ...errors import InputError, quantity
from ...tasks.base import most_characters, text_blocks
from ...tasks.causal_rerank import CausalRerank
from ...tasks.classify import best_labels, score_function
from ...tasks.vectors import truncate
from ...text.long_texts import MAX_UNCUT, PER_TOKEN, ids_within
from ...text.tokenizer import Tokenizer
from .errors import ApiError
from .lengths import check_pairs, size_of, turn
from .models import Models, Served
from .requests import ClassifyRequest, EmbeddingsRequest, RerankRequest, TokenizeRequest, refuse_if
from .tools import as_templates_expect, names_of


async def embeddings(models: Models, one: Served, asked: EmbeddingsRequest) -> dict[str, Any]:
    if asked.encoding_format not in ("float", "base64"):
        problem = f"encoding_format is {asked.encoding_format!r:.50}, expected 'float' or 'base64'"
        raise ApiError(400, problem, param="encoding_format")
    texts, key = _texts_or_ids(one, asked), asked.prompt_name
    if isinstance(texts[0], str):
        prepared, _, compute = one.task.computing(asked.prompt_name)(texts)
    else:  # no prompt stands before ids, the checkpoint's usual one neither
        refuse_if(asked.prompt_name, "prompt_name", "it is for texts: begin the ids with the prompt's")
        (_, _, compute), prepared, key = one.task.computing(prompt="")([]), texts, "ids"
    vectors, tokens = await one.worker.run(prepared, None, compute, truncate=asked.truncate, key=key)
    if asked.dimensions is not None:
        if asked.dimensions > len(vectors[0]):
            problem = f"dimensions is {asked.dimensions}, and the model's vectors have {len(vectors[0])}"
            raise ApiError(400, problem, param="dimensions")
        vectors = list(truncate(np.stack(vectors), asked.dimensions, unit_length in one.task.encoder.steps))
    shown = _base64 if asked.encoding_format == "base64" else np.ndarray.tolist
    data = [{"object": "embedding", "index": i, "embedding": shown(v)} for i, v in enumerate(vectors)]
    return {"object": "list", "data": data, "model": one.id, "usage": _usage(tokens)}


def _texts_or_ids(one: Served, asked: EmbeddingsRequest) -> list[str] | list[list[int]]:
    """The texts of a request, or the ids of each, cut where they may be; ApiError for others."""
    given: Any = [asked.input] if isinstance(asked.input, str) else asked.input
    if all(isinstance(item, str) for item in given):
        return given
    rows: Any = [given] if all(isinstance(item, int) for item in given) else given
    most, limit = one.task.config.vocab_size, one.task.max_tokens
    for i, ids in enumerate(rows):
        if not isinstance(ids, list) or not ids:
            problem = f"input[{i}] is {ids!r:.50}, expected texts alone, or lists of token ids alone"
            raise ApiError(400, problem, param="input")
        if (wrong := next((j for j in ids if not 0 <= j < most), None)) is not None:
            problem = (
                f"input[{i}] has the id {wrong}, expected this model's tokens, 0 to {most - 1}, as /tokenize gives"
            )
            more = "other tokenizers' ids are other texts (LangChain sends OpenAI's: check_embedding_ctx_length=False)"
            raise ApiError(400, f"{problem}; {more}", param="input")
        if len(ids) > limit and not asked.truncate:
            problem = f"has {len(ids)} tokens, and the model takes at most {limit}: shorten it, or send truncate = true"
            raise ApiError(400, f"input[{i}] {problem}", param="input")
    return [ids[:limit] for ids in rows]


async def rerank(models: Models, one: Served, asked: RerankRequest) -> dict[str, Any]:
    texts: Any = [document if isinstance(document, str) else document.text for document in asked.documents]
    if (wrong := next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)) is not None:
        raise ApiError(400, f"documents[{wrong}] has no text", param="documents")
    if (most := asked.max_tokens_per_doc) is not None:
        texts = await asyncio.to_thread(lambda: [_first_tokens(one.task.tokenizer, text, most) for text in texts])
    if isinstance(one.task, CausalRerank):
        logits, tokens = await _score_documents(one, asked.query, texts, asked.truncate)
    else:
        queries = [asked.query] * len(texts)
        logits, tokens = await one.worker.run(queries, texts, one.task.outputs, truncate=asked.truncate)
    scores = one.task.score(np.asarray(logits))
    results = []
    for i in np.argsort(-scores, kind="stable")[: asked.top_n].tolist():
        result = {"index": i, "relevance_score": float(scores[i])}
        results.append(result | ({"document": {"text": texts[i]}} if asked.return_documents else {}))
    id, meta = f"rerank-{uuid.uuid4().hex}", {"billed_units": {"total_tokens": tokens}}
    return {"id": id, "model": one.id, "results": results, "usage": _usage(tokens), "meta": meta}


async def _score_documents(one: Served, query: str, texts: list[str], cut: bool) -> tuple[list[float], int]:
    """The logits of a language model for documents, and its tokens; in parts, so that other requests have their turn,
    and the rest is left once the client is gone.
    """
    check_pairs(query, texts)

    def judge(some: list[str], at: int) -> tuple[list[float], int]:
        try:
            rows, _ = one.task.pair_ids([query] * len(some), some, cut=cut)
        except InputError as e:
            raise (e if e.index is None else e.about("documents", at + e.index)) from None
        return one.task.logits(rows, False).tolist(), sum(map(len, rows))

    logits, tokens = list[float](), 0
    for pairs in text_blocks([(query, text) for text in texts], PER_TOKEN * one.task.batch_tokens):
        found, count = await one.worker.run(partial(judge, [text for _, text in pairs], len(logits)))
        logits, tokens = logits + found, tokens + count
    return logits, tokens


async def classify(models: Models, one: Served, asked: ClassifyRequest) -> dict[str, Any]:
    texts, pairs = _as_list(asked.input), None if asked.pairs is None else _as_list(asked.pairs)
    if pairs is not None and len(pairs) != len(texts):
        raise ApiError(
            400,
            f"{quantity(len(pairs), 'pair')} for {quantity(len(texts), 'text')}, expected one for each",
            param="pairs",
        )
    logits, tokens = await one.worker.run(texts, pairs, one.task.outputs, truncate=asked.truncate)
    score, data = score_function(one.task.config, None), []
    for i, row in enumerate(logits):
        labels = [label._asdict() for label in best_labels(one.task.config, score(row), asked.top_k)]
        data.append({"index": i, "label": labels[0]["label"], "labels": labels})
    return {"object": "list", "data": data, "model": one.id, "usage": _usage(tokens)}


async def tokenize(models: Models, one: Served, asked: TokenizeRequest) -> dict[str, Any]:
    most = max(MAX_UNCUT, most_characters(one.task.max_tokens))  # what is counted here may be too long for the model
    if (size := size_of(asked.prompt, asked.messages, asked.tools)) > most:
        raise ApiError(400, f"the text has about {size} characters, expected {most} at most", param="prompt")
    return await asyncio.to_thread(_tokenize, one, asked, size)


def _tokenize(one: Served, asked: TokenizeRequest, size: int) -> dict[str, Any]:
    with turn(size):
        return _tokens(one, asked)


def _tokens(one: Served, asked: TokenizeRequest) -> dict[str, Any]:
    tokenizer = one.task.tokenizer
    if asked.messages is None:
        adds = asked.add_special_tokens is not False
        ids = ids_within(tokenizer.backend, asked.prompt or "", max(MAX_UNCUT, one.task.max_tokens), adds)
    elif (template := getattr(one.task, "template", None)) is None:
        raise ApiError(400, f"{one.id} has no chat template", param="messages")
    else:
        names_of(tools := asked.tools or [])
        options = {"tools": tools or None, "add_generation_prompt": asked.add_generation_prompt is not False}
        ids = template.encode(as_templates_expect(asked.messages), **options)
    return {"tokens": ids, "count": len(ids), "max_model_len": one.task.max_tokens, "pieces": tokenizer.tokens(ids)}


def _first_tokens(tokenizer: Tokenizer, text: str, count: int) -> str:
    """The beginning of a text, up to the end of so many tokens."""
    text = text[: most_characters(count)]
    with turn(len(text)):
        offsets = tokenizer.backend.encode(text, add_special_tokens=False).offsets
    return text if len(offsets) <= count else text[: offsets[count - 1][1]]


def _as_list(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
