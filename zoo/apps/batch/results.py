"""Results of tasks as columns of a table, with the same types for every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

LABEL = {"label": "string", "score": "double"}
SPAN = {"text": "string", "score": "double", "start": "int64", "end": "int64"}
WORD = {"token": "string", "token_id": "int64", "score": "double", "text": "string"}
BOXED = {**LABEL, "box": ["double"]}

SEGMENT = {"start": "double", "end": "double", "text": "string"}

# The types have pyarrow's names; [type] is a list, a dictionary a struct.
COLUMNS: dict[str, dict[str, Any]] = {
    "embed": {"embedding": ["float"]},
    "sparse-embed": {"weights": [{"token": "string", "token_id": "int64", "weight": "double"}]},
    "multi-vector-embed": {"embeddings": [["float"]]},
    "classify": {"label": "string", "score": "double"},
    "fill-mask": {"words": [[WORD]]},
    "tag": {"entities": [{**LABEL, **{name: SPAN[name] for name in ("text", "start", "end")}}]},
    "answer": {"answer": "string", "score": "double", "start": "int64", "end": "int64"},
    "generate": {"generated": "string"},
    "text2text-generation": {"generated": "string"},
    "summarization": {"generated": "string"},
    "translation": {"generated": "string"},
    "segment": {"height": "int64", "width": "int64", "labels": [{"label": "string", "share": "double"}]},
    "detect": {"objects": [BOXED]},
    "zero-shot-classification": {**LABEL, "labels": [LABEL]},
    "zero-shot-image-classification": {**LABEL, "labels": [LABEL]},
    "audio-classification": {**LABEL, "labels": [LABEL]},
    "automatic-speech-recognition": {"text": "string", "language": "string", "segments": [SEGMENT]},
    "read": {"text": "string", "confidence": "double"},
}
# The columns that top_k adds.
WITH_TOP_K = {"classify": {"labels": [LABEL]}, "answer": {"answers": [SPAN]}}
ERROR = {"error": "string"}


def columns_of(task: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a task's result and of its error: name -> type."""
    more = WITH_TOP_K.get(task, {}) if options.get("top_k") is not None else {}
    return COLUMNS[task] | more | ERROR


def row_of(task: str, result: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one input in these columns, without the error's."""
    if task == "embed":
        return {"embedding": result}
    if task == "multi-vector-embed":
        return {"embeddings": list(result)}
    if task in ("classify", "answer"):
        several = result if isinstance(result, list) else [result]
        best = several[0]._asdict() if several else {}
        if task == "answer":
            best["answer"] = best.pop("text", None)
        more = WITH_TOP_K[task] if options.get("top_k") is not None else {}
        row = {name: best.get(name) for name in COLUMNS[task]}
        return row | {name: [one._asdict() for one in several] for name in more}
    if task.startswith("zero-shot") or task == "audio-classification":
        return {**result[0]._asdict(), "labels": [one._asdict() for one in result]}
    if task == "automatic-speech-recognition":
        return {**result._asdict(), "segments": [one._asdict() for one in result.segments]}
    if task == "fill-mask":
        masks = result if result and isinstance(result[0], list) else [result]
        return {"words": [[{name: getattr(one, name) for name in WORD} for one in words] for words in masks]}
    if task == "segment":
        labels = [{"label": area.label, "share": area.share} for area in result.labels]
        return {"height": result.mask.shape[0], "width": result.mask.shape[1], "labels": labels}
    if isinstance(result, str):
        return {"generated": result}
    if task == "read":
        return result._asdict()
    return {next(iter(COLUMNS[task])): [one._asdict() for one in result]}


def plain(value: Any) -> Any:
    """The value as lists, dictionaries, texts and numbers, which JSON has."""
    if isinstance(value, np.ndarray):
        # Through text: a float32 needs 9 digits, and would get the 17 of its float64.
        return [plain(v) for v in value] if value.ndim > 1 else [float(str(v)) for v in value]
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def arrow_type(kind: Any) -> Any:
    """pyarrow's type for one of the types above."""
    import pyarrow as pa

    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, arrow_type(one)) for name, one in kind.items()])
    return pa.type_for_alias(kind)
