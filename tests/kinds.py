"""The checkpoints with which a sweep over all families runs by day: one of each kind of model.  At night it runs all.

A sweep that takes every family through the same code belongs here.  What compares a family's own code does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from parity.specs import FIRST, SPECS

# Those that stand for their kind, and networks of which the kinds say nothing: convolutions, experts, states.
WELL_KNOWN = (
    *(
        "bert-base-uncased",
        "Llama-3.2-1B",
        "vit-base-patch16-224",
        "detr-resnet-50",
        "clip-vit-base-patch32",
        "t5-small",
    ),
    *("resnet-50", "Qwen3-30B-A3B", "mamba2-130m"),
)


def _kind(name: str) -> tuple[str, str]:
    """What a checkpoint's model reads, by its class in zoo.inputs, and the head of its class."""
    bases = [cls.__name__ for cls in SPECS[name].model_class.__mro__ if cls.__module__.startswith("zoo.inputs")]
    return bases[0], SPECS[name].architecture.partition("For")[2]


ONE_OF_A_KIND = {*WELL_KNOWN, *{_kind(name): name for name in reversed([*WELL_KNOWN, *FIRST])}.values()}


def nights(names: Iterable[str], day: Iterable[str] = ONE_OF_A_KIND) -> list[Any]:
    """Parameters of a test: those that are not of the day are marked `nightly`."""
    day = set(day)
    return [pytest.param(name, marks=() if name in day else pytest.mark.nightly) for name in names]
