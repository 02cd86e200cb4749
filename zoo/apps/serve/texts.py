"""/v1/embeddings, /v1/rerank, /v1/classify and /tokenize: texts in, numbers out."""

from __future__ import annotations

import asyncio
import base64
import uuid
from functools import partial
from typing import Any

import numpy as np

from ...checkpoint.sentence_encoder import normalize as unit_length
from ...tasks.base import most_characters
from ...tasks.causal_rerank import CausalRerank
from ...tasks.classify import best_labels, score_function
from ...tasks.vectors import truncated
from .errors import ApiError
from .lengths import LONG, size_of
from .models import Models, Served
from .requests import ClassifyRequest, EmbeddingsRequest, RerankRequest, TokenizeRequest


async def embeddings(models: Models, asked: EmbeddingsRequest) -> dict[str, Any]:
    one = models.find(asked.model, "embed")
    if asked.encoding_format not in ("float", "base64"):
        problem = f"encoding_format is {asked.encoding_format!r:.50}, expected 'float' or 'base64'"
        raise ApiError(400, problem, param="encoding_format")
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    if not all(isinstance(text, str) for text in texts):
        # Clients send ids of OpenAI's own tokenizers, which mean other texts here.
        problem = "input holds token ids, expected texts (with LangChain: check_embedding_ctx_length=False)"
        raise ApiError(400, problem, param="input")
    prepared, _, compute = one.task.computing(asked.prompt_name)(texts)
    vectors, tokens = await one.worker.run(prepared, None, compute, truncate=asked.truncate, key=asked.prompt_name)
    if asked.dimensions is not None:
        if asked.dimensions > len(vectors[0]):
            problem = f"dimensions is {asked.dimensions}, and the model's vectors have {len(vectors[0])}"
            raise ApiError(400, problem, param="dimensions")
        vectors = list(truncated(np.stack(vectors), asked.dimensions, unit_length in one.task.encoder.steps))
    shown = _base64 if asked.encoding_format == "base64" else np.ndarray.tolist
    data = [{"object": "embedding", "index": i, "embedding": shown(v)} for i, v in enumerate(vectors)]
    return {"object": "list", "data": data, "model": one.id, "usage": _usage(tokens)}


async def rerank(models: Models, asked: RerankRequest) -> dict[str, Any]:
    one = models.find(asked.model, "rerank")
    texts: Any = [document if isinstance(document, str) else document.get("text") for document in asked.documents]
    if (wrong := next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)) is not None:
        raise ApiError(400, f"documents[{wrong}] has no text", param="documents")
    queries = [asked.query] * len(texts)
    if isinstance(one.task, CausalRerank):
        rows, _ = one.task.judged(queries, texts, cut=asked.truncate)
        logits, tokens = await one.worker.run(partial(one.task.logits, rows, False)), sum(map(len, rows))
    else:
        logits, tokens = await one.worker.run(queries, texts, one.task.outputs, truncate=asked.truncate)
    scores = one.task.score(np.asarray(logits))
    results = []
    for i in np.argsort(-scores, kind="stable")[: asked.top_n].tolist():
        result = {"index": i, "relevance_score": float(scores[i])}
        results.append(result | ({"document": {"text": texts[i]}} if asked.return_documents else {}))
    id, meta = f"rerank-{uuid.uuid4().hex}", {"billed_units": {"total_tokens": tokens}}
    return {"id": id, "model": one.id, "results": results, "usage": _usage(tokens), "meta": meta}


async def classify(models: Models, asked: ClassifyRequest) -> dict[str, Any]:
    one = models.find(asked.model, "classify")
    texts, pairs = _listed(asked.input), None if asked.pairs is None else _listed(asked.pairs)
    if pairs is not None and len(pairs) != len(texts):
        raise ApiError(400, f"{len(pairs)} pairs for {len(texts)} texts, expected one for each", param="pairs")
    logits, tokens = await one.worker.run(texts, pairs, one.task.outputs, truncate=asked.truncate)
    score, data = score_function(one.task.config, None), []
    for i, row in enumerate(logits):
        labels = [label._asdict() for label in best_labels(one.task.config, score(row), asked.top_k)]
        data.append({"index": i, "label": labels[0]["label"], "labels": labels})
    return {"object": "list", "data": data, "model": one.id, "usage": _usage(tokens)}


async def tokenize(models: Models, asked: TokenizeRequest) -> dict[str, Any]:
    one = models.find(asked.model, "embed", "rerank", "classify", "generate")
    if (asked.prompt is None) == (asked.messages is None):
        raise ApiError(400, "give either prompt or messages", param="prompt")
    most = max(LONG, most_characters(one.task.max_tokens))  # what is counted here may be too long for the model
    if (size := size_of(asked.prompt, asked.messages, asked.tools)) > most:
        raise ApiError(400, f"the text has about {size} characters, expected {most} at most", param="prompt")
    return await asyncio.to_thread(_tokenized, one, asked)


def _tokenized(one: Served, asked: TokenizeRequest) -> dict[str, Any]:
    tokenizer = one.task.tokenizer
    if asked.prompt is not None:
        ids = tokenizer.backend.encode(asked.prompt, add_special_tokens=asked.add_special_tokens).ids
    elif (template := getattr(one.task, "template", None)) is None:
        raise ApiError(400, f"{one.id} has no chat template", param="messages")
    else:
        options = {"tools": asked.tools, "add_generation_prompt": asked.add_generation_prompt}
        ids = template.encode(asked.messages, **options)
    return {"tokens": ids, "count": len(ids), "max_model_len": one.task.max_tokens, "pieces": tokenizer.tokens(ids)}


def _listed(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
