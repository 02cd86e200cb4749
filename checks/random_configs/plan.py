"""Plan: what a pair is, drawn from a seed, a family and a number alone."""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parity.specs import SPECS, config_of
from zoo.family import Family
from zoo.registry import FAMILIES

from .fields import Change, apply_changes, draw_changes

JOBS = ("forward", "generate", "save", "pictures")
DEVICES = ("numpy", "torch:cpu", "onnx")
DEVICE_SHARES = (80, 9, 11)
SHARES = {"forward": 60, "generate": 25, "save": 16, "pictures": 10}


@dataclass(frozen=True)
class Plan:
    """One pair.

    spec: the random checkpoint of parity whose config is changed.  head: the class that reads it, if not the one that
    it was made for.  rewritten: whether config.json is what transformers writes.  half: whether weights have 16 bits.
    """

    family: str
    seed: int
    number: int
    job: str
    spec: str
    changes: tuple[Change, ...]
    head: str | None = None
    device: str = "numpy"
    rewritten: bool = False
    half: bool = False

    @property
    def row(self) -> Family:
        return FAMILIES[self.family]

    @property
    def base(self) -> dict[str, Any]:
        """config.json before it is changed."""
        return base_config(self.spec)

    @property
    def config(self) -> dict[str, Any]:
        return apply_changes(self.base, self.changes)

    @property
    def architecture(self) -> str:
        """The class that the weights are made for."""
        return SPECS[self.spec].architecture

    @property
    def read_as(self) -> str:
        """The class that both sides read the weights as."""
        return self.architecture if self.head is None else self.row.architecture(self.head)

    def rng(self, what: int) -> np.random.Generator:
        """Random numbers for one purpose, which do not depend on the changes."""
        return np.random.default_rng([self.seed, zlib.crc32(self.family.encode()), self.number, what])

    def words(self) -> random.Random:
        return random.Random(f"{self.seed} {self.family} {self.number} {self.job}")

    def drop_change(self, at: int) -> Plan:
        """The pair with one change less."""
        return replace(self, changes=self.changes[:at] + self.changes[at + 1 :])

    def __str__(self) -> str:
        how = [self.device, self.job, *(["config.json of transformers"] if self.rewritten else [])]
        fields = ", ".join(f"{'.'.join(change.path)} = {json.dumps(change.value)}" for change in self.changes)
        return f"{self.read_as} of {self.spec} ({', '.join(how)}); {fields or 'nothing is changed'}"


def base_config(spec: str) -> dict[str, Any]:
    """The config of a random checkpoint, without what transformers 5 does not take: `dilation: null`."""
    found = json.loads(json.dumps(config_of(SPECS[spec], "tiny")))
    return {name: value for name, value in found.items() if name != "dilation" or value is not None}


def specs_of(family: str) -> list[str]:
    """The random checkpoints that transformers can make without other packages."""
    return [n for n, s in SPECS.items() if s.model_type == family and not getattr(s, "timm", False)]


def draw(family: str, seed: int, number: int) -> Plan:
    """The pair of a number."""
    rng = random.Random(f"{seed} {family} {number}")
    row, specs = FAMILIES[family], specs_of(family)
    writers, shares = [spec for spec in specs if _writes(row, spec)], dict(SHARES)
    if not writers:
        del shares["generate"]
    if not row.processor:
        del shares["pictures"]
    job = rng.choices([*shares], [*shares.values()])[0]
    spec = rng.choice(writers if job == "generate" else specs)
    head = "Model" if job == "forward" and "Model" in row.heads and rng.random() < 0.15 else None
    device = rng.choices(DEVICES, DEVICE_SHARES)[0] if job in ("forward", "generate") else "numpy"
    changes = () if job == "pictures" else draw_changes(base_config(spec), rng)
    rewritten, half = rng.random() < 0.3, rng.random() < 0.15
    return Plan(family, seed, number, job, spec, changes, head, device, rewritten, half)


# Whose `generate` counts positions from 0, unlike their own forward pass: tests/generate has what zoo does.
OTHER_POSITIONS = ("roberta", "xlm-roberta", "camembert")


def _writes(row: Family, spec: str) -> bool:
    """True if a checkpoint's class continues texts."""
    head = row.head(SPECS[spec].architecture) or ""
    writes = row.task_of(head) in ("generate", "text2text-generation", "translation", "read") or head == "ForCausalLM"
    return writes and SPECS[spec].model_type not in OTHER_POSITIONS
