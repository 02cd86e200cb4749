"""Every class that a task may load has what the task reads of it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol, get_type_hints

import pytest

from parity.specs import SPECS, config_of
from zoo.inputs.encoder_decoder import EncoderDecoder
from zoo.nn import is_array
from zoo.pretrained import Pretrained
from zoo.registry import FAMILIES, config_class
from zoo.task_kinds import TASKS, tasks_that_read
from zoo.tasks import task_class
from zoo.tasks.protocols import MaskedLM, Reader, TextModel
from zoo.tasks.results import ResultFormat


@cache
def tiny(model_type: str, head: str) -> Pretrained:
    """A model with random weights, of a tiny checkpoint's config."""
    specs, family = [spec for spec in SPECS.values() if spec.model_type == model_type], FAMILIES[model_type]
    assert specs, f"parity/specs has no checkpoint of {model_type}"
    raw = config_of(next((spec for spec in specs if spec.architecture == family.architecture(head)), specs[0]), "tiny")
    if family.task_of(head) == "generate" and "is_decoder" in vars(config_class(model_type)):
        raw["is_decoder"] = True
    return family.load(head).from_config(config_class(model_type).from_dict(raw))


def missing(value: Any, protocol: type, path: str) -> Iterator[str]:
    """The members of a protocol that `value` lacks, and those that its members lack in turn."""
    for cls in protocol.__mro__:
        if cls in (object, Protocol) or not getattr(cls, "_is_protocol", False):
            continue
        members = {
            name: hint for name, hint in get_type_hints(cls).items() if name in vars(cls).get("__annotations__", {})
        }
        for name, member in vars(cls).items():
            if isinstance(member, property):
                members[name] = get_type_hints(member.fget).get("return")
            elif callable(member) and not name.startswith("_"):
                members[name] = None
        for name, wanted in members.items():
            if not hasattr(value, name):
                yield f"{path}.{name}"
            elif getattr(wanted, "_is_protocol", False):
                yield from missing(getattr(value, name), wanted, f"{path}.{name}")


def contract(model_type: str, head: str) -> tuple[type, type | None]:
    family = FAMILIES[model_type]
    kind = tasks_that_read(family.reads[0]).get(family.task_of(head) or "")
    if kind is None:
        return object, None
    return protocol(kind.model) or object, protocol(kind.output)


def protocol(name: str) -> Any:
    """A protocol by its name in a row."""
    if not name:
        return None
    module, _, cls = name.rpartition(":")
    return getattr(importlib.import_module(f"zoo.tasks.{module or 'protocols'}"), cls)


def output(model: Any) -> Any:
    """A model's output for the simplest input."""
    return model(**model.example(rows=1, length=5, size=(64, 64)))


@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: f"{kind.name}-{kind.reads}")
def test_every_row_is_true_of_its_class(kind):
    assert all(protocol(name) is not None for name in (kind.model, kind.output) if name)
    for head in (None, *kind.classes):
        cls = task_class(kind, head)
        assert (cls.name, cls.reads) == (kind.name, kind.reads)
        assert isinstance(cls.results, ResultFormat)
        taken = inspect.signature(cls.__call__).parameters
        assert taken.keys() >= {*kind.arguments}
        assert "generation" in taken or "options" in taken or taken.keys() >= {one.name for one in kind.options}


@pytest.mark.parametrize("model_type", FAMILIES)
def test_every_class_has_what_its_task_reads(model_type: str):
    for head in FAMILIES[model_type].heads:
        model, (wanted, _) = tiny(model_type, head), contract(model_type, head)
        name = model.architecture
        assert list(missing(model, wanted, name)) == []
        assert isinstance(model, Pretrained)
        assert name == FAMILIES[model_type].architecture(head)  # transformers asks for it by this name


@pytest.mark.parametrize("model_type", FAMILIES)
def test_every_output_has_what_its_task_reads(model_type: str):
    for head in FAMILIES[model_type].heads:
        if contract(model_type, head)[0] in (object, Reader, EncoderDecoder):
            continue
        found, (_, wanted) = output(tiny(model_type, head)), contract(model_type, head)
        if wanted is not None:
            assert list(missing(found, wanted, f"{head}'s output")) == []
        elif not is_array(found):  # several heads' logits
            assert is_array(found[0]), head


def test_what_is_missing_is_named():
    model = tiny("bert", "ForMaskedLM")
    assert list(missing(model, MaskedLM, "model")) == []
    assert list(missing(model.base_model, MaskedLM, "model")) == ["model.head"]
    assert list(missing(object(), TextModel, "it")) == ["it.inputs", "it.base_model"]
    without = type("", (), {"inputs": {}, "base_model": type("", (), {"inputs": {}, "layers": [], "embeddings": None})})
    assert list(missing(without, TextModel, "it")) == [
        "it.base_model.embeddings.word",
        "it.base_model.embeddings.max_positions",
    ]
