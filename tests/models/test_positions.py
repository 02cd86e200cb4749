"""Positions that a caller gives: several texts in a row, and frequencies that follow from the last position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.specs import first_of
from zoo.errors import InputError
from zoo.generate import GenerationConfig, generate
from zoo.loading import load_model
from zoo.registry import FAMILIES

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.reference import Reference

LENGTHS = ((5, 3, 4), (2, 9, 1))  # of the texts in each row
SEPARATE = [
    model_type
    for model_type, family in FAMILIES.items()
    if getattr(family.load(family.heads[0]), "separates_texts", False)
]


def packed(rng: np.random.Generator, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and positions (2, 12) of six texts."""
    positions = np.array([np.concatenate([np.arange(n) for n in row]) for row in LENGTHS])
    return rng.integers(5, vocab, positions.shape), positions


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    assert np.linalg.norm(found - wanted) <= 1e-5 * np.linalg.norm(wanted)


def theirs(folder: Any, architecture: str, **arrays: np.ndarray) -> np.ndarray:
    """transformers' first output, without a cache, beside which it does not tell texts apart."""
    reference = Reference(folder, architecture)
    for module in reference.model.modules():
        if hasattr(module, "config"):
            module.config.use_cache = False
    return next(iter(reference.outputs(arrays).values()))


def ours(model: Any, *args: Any, **arrays: Any) -> np.ndarray:
    out = model(*args, **arrays)
    return np.asarray(out[0] if isinstance(out, tuple) else out)


@pytest.mark.parametrize("model_type", SEPARATE)
def test_texts_of_a_row_do_not_see_each_other(model_type, tmp_path, rng):
    """On each engine."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    folder = build(str(first_of(model_type)), tmp_path)
    models: list[Any] = [load_model(folder, device=device) for device in (None, "onnx")]
    models.append(load_model(folder, device="torch:cpu", dtype="float32"))
    first = models[0]
    ids, positions = packed(rng, first.config.vocab_size)
    if not first.is_causal:
        pytest.skip(f"{model_type} is no decoder here")
    given = {"input_ids": ids, "position_ids": positions}
    wanted = theirs(folder, first.architecture, **given)
    wanted_masked = theirs(folder, first.architecture, **given, attention_mask=ids * 0 + 1)
    for model in models:
        found = ours(model, ids, position_ids=positions)
        close(found, wanted)
        # And each text has the logits that it has alone; convolutions and states of
        # LFM2, Qwen3.5 and Falcon-H1 have the text before, in transformers too.
        if "logits_to_keep" in model.options and model_type not in ("lfm2", "qwen3_5_text", "falcon_h1"):
            for row, texts in enumerate(LENGTHS):
                ends = np.cumsum(texts)
                for begin, end in zip(ends - texts, ends, strict=True):
                    close(found[row, begin:end], ours(model, ids[row : row + 1, begin:end])[0])
        masked = ours(model, ids, np.ones_like(ids), position_ids=positions)
        assert np.abs(masked - found).max() > 1e-3  # with a mask a row is one text, as in transformers
        close(masked, wanted_masked)


def test_a_classifier_reads_the_last_text_of_a_row(tmp_path, rng):
    folder = build("llama-classifier", tmp_path)
    model: Any = load_model(folder)
    ids, positions = packed(rng, model.config.vocab_size)
    found = ours(model, ids, position_ids=positions)
    close(found[1:], ours(model, ids[1:, -1:]))
    close(found, theirs(folder, model.architecture, input_ids=ids, position_ids=positions))


ROPES: dict[str, dict[str, Any]] = {
    "longrope": {
        "rope_type": "longrope",
        "original_max_position_embeddings": 32,
        "short_factor": [1.0, 1.5, 2.0, 3.0],
        "long_factor": [4.0, 3.0, 2.5, 9.0],
    },
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
}


def rope_folder(folder: Path, kind: str, spec: str = "Llama-3-8B") -> Path:
    """A random checkpoint whose frequencies change beyond 32 tokens."""
    build(spec, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"max_position_embeddings": 128 if kind == "longrope" else 32, "rope_scaling": ROPES[kind]}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("device", [None, "onnx"])
@pytest.mark.parametrize("last", [20, 31, 32, 70])
@pytest.mark.parametrize("kind", ROPES)
def test_frequencies_follow_from_the_last_position(kind, last, device, tmp_path, rng):
    """And not from the number of tokens, of which there are 6."""
    if device == "onnx":
        pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    folder = rope_folder(tmp_path, kind)
    model: Any = load_model(folder, device=device)
    ids = rng.integers(5, model.config.vocab_size, (2, 6))
    positions = np.stack([np.arange(6), np.arange(last - 5, last + 1)])
    given = {"position_ids": positions, "attention_mask": np.ones_like(ids)}
    close(ours(model, ids, **given), theirs(folder, model.architecture, input_ids=ids, **given))


@pytest.mark.parametrize("spec", ["gte-multilingual-reranker-base", "nomic-embed-text-v1.5"])
def test_frequencies_of_encoders_and_of_their_heads(spec, tmp_path, rng):
    folder = build(spec, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    count = config["hidden_size"] // config["num_attention_heads"] // 2
    longrope = {**ROPES["longrope"], "short_factor": [1.0] * count, "long_factor": [3.0] * count}
    config |= {"rope_scaling": longrope, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps(config))
    model: Any = load_model(folder)
    ids, positions = rng.integers(5, model.config.vocab_size, (1, 6)), np.arange(40, 46)[None]
    wanted = theirs(folder, model.architecture, input_ids=ids, position_ids=positions)
    close(ours(model, ids, position_ids=positions), wanted)


@pytest.mark.parametrize("kind", ROPES)
def test_keys_stay_as_they_were_turned_when_a_text_grows(kind, tmp_path, rng):
    """As in transformers, which computes them anew for Phi-3 alone (tests/models/test_phi3.py)."""
    torch = pytest.importorskip("torch", reason="needs torch")
    folder = rope_folder(tmp_path, kind)
    model: Any = load_model(folder)
    for length in (20, 31, 32, 40):
        reference = Reference(folder, model.architecture).model  # anew: it remembers the longest text of before
        prompt = rng.integers(5, model.config.vocab_size, length)
        with torch.no_grad():
            wanted = reference.generate(
                torch.from_numpy(prompt)[None], max_new_tokens=20, do_sample=False, eos_token_id=None, pad_token_id=0
            )
        found = generate(model, [prompt], GenerationConfig(max_new_tokens=20))[0][0].ids
        assert found.tolist() == wanted[0, length:].tolist()


def test_one_row_of_positions_is_for_all_rows_on_onnx_too(tmp_path, rng):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    for spec in ("opt-125m", "bert-base-uncased"):
        folder = build(spec, tmp_path / spec)
        model, on_onnx = load_model(folder), load_model(folder, device="onnx")
        ids = rng.integers(5, model.config.vocab_size, (3, 6))
        positions = np.arange(2, 8)[None]
        close(ours(on_onnx, ids, position_ids=positions), ours(model, ids, position_ids=positions))


def test_an_exported_graph_has_rows_of_one_text(tmp_path, rng):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    zoo.export(load_model(build("gpt2-bare", tmp_path / "a")), tmp_path / "b")
    model: Any = load_model(tmp_path / "b", device="onnx")
    ids, positions = packed(rng, model.config.vocab_size)
    with pytest.raises(InputError, match="position_ids begin anew"):
        model(ids, position_ids=positions)
