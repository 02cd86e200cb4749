"""Modules beside the layers are stages: a fault is seen in the part that has it, not first in what follows."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.modules import PREFIX, modules_beside_layers
from parity.stages import compare_stages, reference_stages, zoo_stages
from zoo.loading import load_model


def stages(at, model):
    ours = [zoo_stages(model, batch) for batch in at.inputs]
    theirs = [reference_stages(at.reference, batch, names) for batch, names in zip(at.inputs, ours, strict=True)]
    return compare_stages(at.inputs, ours, theirs, at.rule)


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        ("Depth-Anything-V2-Small", {"neck", "neck.fusion_stage.layers.1", "head"}),
        ("beit-base-finetuned-ade-640-640", {"decode_head"}),
        ("ModernBERT-base", {"head"}),
    ],
)
def test_parts_that_no_table_names_are_compared(bench, checkpoint, expected):
    at = bench(checkpoint)
    found = stages(at, load_model(at.folder))
    assert expected <= {one.name.removeprefix(PREFIX) for one in found if one.name.startswith(PREFIX)}
    assert all(one.holds for one in found)


@pytest.mark.parametrize("broken", ["neck.fusion_stage.layers.2", "neck.reassemble_stage.layers.1", "head"])
def test_a_fault_is_first_seen_where_it_is(bench, broken):
    at = bench("Depth-Anything-V2-Small")
    model = load_model(at.folder)
    (module,) = (module for name, _, module in modules_beside_layers(model) if name == broken)
    cls = type(module)
    module.__class__ = type("Broken", (cls,), {"__call__": lambda self, *args: cls.__call__(self, *args) * 1.01})
    assert next(one.name for one in stages(at, model) if not one.holds) == f"{PREFIX}{broken}"


def test_a_model_is_as_before(bench):
    at = bench("Depth-Anything-V2-Small")
    model = load_model(at.folder)
    before = [(name, id(module)) for name, _, module in modules_beside_layers(model)]
    zoo_stages(model, at.inputs[0])
    assert [(name, id(module)) for name, _, module in modules_beside_layers(model)] == before
