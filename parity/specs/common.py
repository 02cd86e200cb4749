"""What every kind of checkpoint has, and the parts that many share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Size = Literal["tiny", "full"]
Shapes = Iterator[tuple[str, tuple[int, ...]]]
Head = Callable[[Mapping[str, Any]], Shapes]


@dataclass(frozen=True)
class Spec:
    """A kind of checkpoint.

    like: the hub repository whose layout it has, or save_pretrained for what transformers itself writes.
    config: what its config.json says besides the family's values.
    format: "safetensors", "sharded", "bin" (zip), "stream" (torch before 1.6).  dtype: a safetensors name.
    """

    like: str
    model_type: str
    architecture: str
    head: Head
    prefix: str = ""
    pooler: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    format: str = "safetensors"
    dtype: str = "F32"


def labels(count: int) -> dict[str, Any]:
    names = [f"LABEL_{i}" for i in range(count)]
    return {"id2label": {str(i): name for i, name in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}


def dense(name: str, rows: int, cols: int) -> Shapes:
    yield f"{name}.weight", (rows, cols)
    yield f"{name}.bias", (rows,)


def norm(name: str, size: int) -> Shapes:
    yield f"{name}.weight", (size,)
    yield f"{name}.bias", (size,)


def no_head(c: Mapping[str, Any]) -> Shapes:
    yield from ()


def classifier(c: Mapping[str, Any]) -> Shapes:
    yield from dense("classifier", len(c["id2label"]), c["hidden_size"])
