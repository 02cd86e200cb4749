"""Random configs beside transformers: a few pairs, the configs that have been wrong, and a fault that is found."""

from __future__ import annotations

import json
import os
import zlib
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from checks.random_configs import __main__ as command
from checks.random_configs import comparing
from checks.random_configs.checking import check, minimize, run
from checks.random_configs.comparing import DIFFERS, EQUAL, FAILURES, NO_PAIR, REFUSED, difference
from checks.random_configs.fields import ABSENT_VALUE, Change
from checks.random_configs.inputs import arguments
from checks.random_configs.plan import JOBS, Plan, draw, specs_of
from parity.checkpoints import build
from parity.specs import SPECS
from zoo.loading import load_model
from zoo.models.deformable_detr.encoder import place_levels
from zoo.nn import CacheLast
from zoo.registry import FAMILIES

KINDS = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
NTK = {"type": "dynamic", "factor": 2.0}
# What once was another number or a riddle: the random checkpoint, the changes of its config, and how it is read.
MENDED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Mistral-7B-v0.1", {"attention_bias": True, "mlp_bias": True}, {}),
    ("Qwen2.5-0.5B", {"attention_bias": True, "mlp_bias": True}, {}),
    ("Qwen3-0.6B", {"mlp_bias": True}, {}),
    ("t5-small", {"dense_act_fn": "silu"}, {}),
    ("t5-tagger", {"is_gated_act": False}, {}),
    ("t5-bare", {"num_hidden_layers": 2}, {}),
    ("mt5-encoder", {"head_dim": 6, "num_attention_heads": 3}, {}),
    ("smollm3-windows", {"layer_types": KINDS, "use_sliding_window": False, "sliding_window": 3}, {}),
    ("distilbert-base-uncased", {"num_hidden_layers": 1, "n_heads": 3, "num_attention_heads": 6}, {}),
    ("gpt2-bare", {"num_attention_heads": 8, "n_layer": ABSENT_VALUE, "num_hidden_layers": 1}, {}),
    ("bart-base", {"num_hidden_layers": 1}, {}),
    ("bart-large-mnli", {"id2label": ABSENT_VALUE, "label2id": ABSENT_VALUE}, {}),
    ("whisper-base", {"num_key_value_heads": 4}, {}),
    ("gte-multilingual-base", {"rope_scaling": NTK, "rope_parameters": {"rope_type": "default"}}, {}),
    ("marian-bare", {}, {"half": True}),
    ("dinov2-imagenet1k", {}, {"job": "save"}),
    ("siglip-classifier", {"vision_config": {"vision_use_head": True}}, {"job": "save"}),
    ("trocr-beit", {}, {"job": "save"}),
    ("albert-base-v2", {"tie_word_embeddings": False}, {"job": "save"}),
    ("bert-untied", {}, {"job": "save"}),
    *((spec, {"tie_word_embeddings": False}, {"job": "save"}) for spec in ("opus-mt-en-de", "bart-squad2", "t5-bare")),
    ("marian-decoder", {}, {"job": "save"}),
    ("rtdetr_v2_bare", {}, {"job": "save"}),
    ("resnet-18", {}, {"job": "save", "half": True}),
]


def plan_of(spec: str, fields: dict[str, Any], **more: Any) -> Plan:
    """The pair of a random checkpoint and other fields, those of a part in an object."""
    paths = {
        (name, inner): x for name, value in fields.items() if name.endswith("_config") for inner, x in value.items()
    }
    paths |= {(name,): value for name, value in fields.items() if not name.endswith("_config")}
    changes = tuple(Change(path, value) for path, value in paths.items())
    return Plan(SPECS[spec].model_type, 0, 0, **{"job": "forward", "spec": spec, "changes": changes, **more})


@pytest.mark.parametrize(("spec", "fields", "more"), MENDED, ids=lambda part: part if isinstance(part, str) else "")
def test_what_has_been_wrong(spec, fields, more):
    verdict = check(plan_of(spec, fields, **more))
    assert verdict.kind == EQUAL, verdict.said


@pytest.mark.parametrize(
    ("spec", "fields", "words"),
    [
        ("bert-base-NER", {"num_labels": 4}, "num_labels = 4, but id2label has 9 names"),
        ("t5-tagger", {"is_decoder": True}, "is_decoder = True is not implemented"),
    ],
)
def test_what_is_refused_by_name(spec, fields, words):
    verdict = check(plan_of(spec, fields))
    assert verdict.kind == REFUSED
    assert words in verdict.said


@pytest.mark.parametrize(
    ("family", "seed", "number"), [("rf_detr", 0, 56), ("clipseg", 0, 42), ("deformable_detr", 2, 1)]
)
def test_what_rounding_has_decided(family, seed, number):
    """Boxes of 290 images' size, the logit of one pair of vectors, and the sines of padding."""
    verdict = check(draw(family, seed, number))
    assert verdict.kind == EQUAL, verdict.said


def test_logits_of_cosines_are_compared():
    """Though beside a size of their own: a scale that is a thousandth larger is found."""
    rng = np.random.default_rng(0)
    text, image = (x / np.linalg.norm(x) for x in rng.standard_normal((2, 1, 32)))
    wanted = {"logits_per_image": 14.0 * image @ text.T, "text_embeds": text, "image_embeds": image}
    other = {**wanted, "logits_per_image": wanted["logits_per_image"] * 1.001}
    given, in_float64 = comparing.Arguments({}), SimpleNamespace(outputs=lambda *_: wanted)
    assert not difference(wanted, wanted, given, lambda: in_float64)
    assert "logits_per_image is off" in difference(other, wanted, given, lambda: in_float64)


def test_features_of_padding_are_left_out(tmp_path):
    """The features that are compared are those that the model's attention sees."""
    model = load_model(build("deformable-detr", tmp_path))
    pixel_mask = np.zeros((2, 90, 131), np.int64)
    pixel_mask[0, :90, :70] = pixel_mask[1, :33, :131] = 1
    base = model.base_model
    grids = tuple(one.shape[1:3] for one in base.features(np.zeros((2, 90, 131, 3), np.float32)))
    levels, _, _ = place_levels(grids, pixel_mask > 0, base.tables, base.level_embed, CacheLast())
    seen = SPECS["deformable-detr"].seen_features(model.config, pixel_mask)
    np.testing.assert_array_equal(seen, levels.mask)
    assert 0 < seen.mean() < 1


def test_a_few_pairs():
    """Of every fifth family one; which, no other family's name changes."""
    numbers = {family: zlib.crc32(family.encode()) for family in FAMILIES}
    found = [run(family, 2, [number // 5 % 5])[0] for family, number in numbers.items() if number % 5 == 0]
    assert not [(one.plan, one.said) for one in found if one.kind in FAILURES]
    assert sum(one.kind == EQUAL for one in found) >= 14


def test_pairs_are_of_every_job_and_engine():
    plans = [draw(family, 2, zlib.crc32(family.encode()) % 5) for family in FAMILIES]
    assert {plan.job for plan in plans} == set(JOBS)
    assert len({plan.device for plan in plans}) == 3


def test_every_family_has_checkpoints_to_begin_with():
    assert not [family for family in FAMILIES if not specs_of(family)]


def test_pages_have_boxes_and_pictures(tmp_path):
    model, seen = load_model(build("layoutlmv3-base", tmp_path)), set()
    for seed in range(20):
        seen |= set(arguments(model, np.random.default_rng(seed)).arrays)
    assert {"input_ids", "bbox", "pixel_values"} <= seen


def test_a_pair_follows_from_its_number():
    plans = [draw("llama", 3, number) for number in range(40)]
    assert plans == [draw("llama", 3, number) for number in range(40)]
    assert len(set(map(str, plans))) > 35
    assert plans != [draw("llama", 4, number) for number in range(40)]


def test_a_fault_is_found_with_its_field_alone(monkeypatch):
    """zoo is made to forget `hidden_act`; the other two changes are left out of what is printed."""

    def forgetful(folder: Any, **options: Any) -> Any:
        path = folder / "config.json"
        text = path.read_text()
        path.write_text(json.dumps({**json.loads(text), "hidden_act": "gelu"}))
        model = load_model(folder, **options)
        path.write_text(text)
        return model

    plan = plan_of("bert-base-uncased", {"num_labels": 2, "hidden_act": "relu", "use_cache": False})
    assert check(plan).kind == EQUAL
    monkeypatch.setattr(comparing, "load_model", forgetful)
    verdict = check(plan)
    assert verdict.kind == DIFFERS
    smaller, verdict = minimize(plan, verdict)
    assert [change.name for change in smaller.changes] == ["hidden_act"]
    assert "is off by a relative L2 of" in verdict.said


def test_what_transformers_does_not_make_is_no_pair():
    assert check(plan_of("bert-base-uncased", {"hidden_size": 47})).kind == NO_PAIR


class Here:
    """A pool of no processes: torch and transformers are loaded in this one."""

    def __init__(self, *_: Any, **__: Any):
        pass

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, function: Any, *args: Any) -> Future[Any]:
        (future := Future[Any]()).set_result(function(*args))
        return future


def test_a_log_is_gone_on_with(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(command, "BATCH", 2)
    monkeypatch.setenv("HF_ASSETS_CACHE", os.environ["HF_ASSETS_CACHE"])  # which the command sets
    log = tmp_path / "pairs"
    options = ["--family", "resnet", "--pairs", "3", "--log", str(log)]
    assert command.main(options) == 0
    lines = log.read_text().splitlines()
    assert json.loads(lines[0]) == {"seed": 0}
    assert len(lines) >= 4
    assert command.main(options) == 0  # all are done
    assert log.read_text().splitlines() == lines
    assert "pairs of 1 families" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="is no log of seed 1"):
        command.main([*options, "--seed", "1"])
    with pytest.raises(SystemExit):
        command.main(["--family", "brt"])
    assert "did you mean 'bert'" in capsys.readouterr().err
