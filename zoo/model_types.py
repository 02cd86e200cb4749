"""What the model types of transformers are that zoo has not, from a list that `checks.model_types` writes."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).parent / "data" / "model-types.tsv"


def describe_other(model_type: str) -> str:
    """What a model type is and the nearest that zoo has, as words after "it"; "" for one that transformers has not."""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, what, near = line.split("\t")
        if name == model_type:
            return what + (f", and the nearest that zoo has is {near!r}" if near else "")
    return ""
