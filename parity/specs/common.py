"""What every kind of checkpoint has, and the parts that many share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Size = Literal["tiny", "full"]


@dataclass(frozen=True)
class Spec:
    """A kind of checkpoint: what differs from what the class that it names asks for.

    like: the hub repository whose layout it has, or save_pretrained for what transformers itself writes.
    config: what its config.json says besides the family's values.
    pooler: whether it has one, whoever needs it.  also: heads whose tensors lie in it too.  untied: whether what shares
    an array is written besides.  gains: of modules, by the end of their names, what multiplies their weights.
    massive: the layer from which on a channel of the stream is hundreds of times larger than the rest.
    format: "safetensors", "sharded", "bin" (zip), "stream" (torch before 1.6).  dtype: a safetensors name.
    """

    like: str
    model_type: str
    architecture: str
    pooler: bool = False
    also: tuple[str, ...] = ()
    untied: bool = False
    gains: Mapping[str, float] = field(default_factory=dict)
    massive: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    format: str = "safetensors"
    dtype: str = "F32"


def labels(count: int) -> dict[str, Any]:
    names = [f"LABEL_{i}" for i in range(count)]
    return {"id2label": {str(i): name for i, name in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}
