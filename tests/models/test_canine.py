"""CANINE: blocks of characters, lengths that molecules do not fill, code points, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError
from zoo.loading import load_model
from zoo.models.canine import CanineConfig

TEXTS = ["They said nothing about it.", "No", "Wie heißt die Hauptstadt? 東京 😀, so they say, and it is large." * 2]


def reference(folder, head):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")
    return getattr(transformers, f"Canine{head}").from_pretrained(folder, attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Blocks of 12 characters, molecules of 3, and a window of 5."""
    path = build("canine-s", tmp_path_factory.mktemp("canine"))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "local_transformer_stride": 12}))
    return path


@pytest.mark.parametrize("length", [4, 5, 7, 8, 11, 12, 13, 24, 35, 61])
@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_every_length(length, device, folder, rng):
    """Texts that blocks and molecules do not fill, padded on either side by more than a block."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    model: Any = load_model(folder, device=device)
    ids, at = rng.integers(1, 0x3000, (3, length)), np.arange(length)
    types = rng.integers(0, 16, ids.shape)
    few = max(length // 5, min(length, 4))
    mask = np.stack([at >= 0, at < few, at >= length - few]).astype(np.int64)
    with torch.no_grad():
        wanted = reference(folder, "Model")(*(torch.tensor(x) for x in (ids, mask, types)))
    found = model(ids, mask, types)
    seen = mask == 1
    got, own = (zoo.ops.to_numpy(x) for x in (found.last_hidden_state, found.pooler_output))
    np.testing.assert_allclose(np.asarray(got)[seen], wanted.last_hidden_state.numpy()[seen], atol=2e-5)
    np.testing.assert_allclose(np.asarray(own), wanted.pooler_output.numpy(), atol=2e-5)


def test_a_text_needs_a_molecule(folder):
    model: Any = load_model(folder)
    with pytest.raises(InputError, match="3 characters, and the model needs 4"):
        model([[1, 2, 3]])
    assert model([[1, 2, 3, 0]], [[1, 1, 1, 0]]).last_hidden_state.shape == (1, 4, 48)
    with pytest.raises(InputError, match="positions for 210"):
        model(np.ones((1, 211), np.int64))
    with pytest.raises(InputError, match=r"\[0, 1114112\)"):
        model([[1, 2, 3, 0x110000]])


def test_code_points_are_tokens(folder):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    from tests.text.tokenizer_samples import TEXTS as HARD
    from tests.text.tokenizer_samples import differences
    from zoo.text.tokenizer import Tokenizer

    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), Tokenizer.from_folder(folder)
    found = differences(theirs, ours, [*HARD, "a \ue003 b\ue003", "\ue000x\ue001 \0\0y", "\U0010ffff\ue0ff"])
    assert {what for what, *_ in found} == {"size", "vocabulary"}  # transformers counts surrogates, which no text has
    assert ours("é😀").input_ids[0].tolist() == [0xE000, ord("é"), ord("😀"), 0xE001]
    assert [list(place) for place in ours("é😀").offsets[0]] == [[0, 0], [0, 1], [1, 2], [0, 0]]
    assert ours.model_max_length == 210


@pytest.mark.parametrize("device", ["cpu", "onnx"])
def test_classes_are_those_of_the_pipeline(device, tmp_path):
    """Padding changes a text's last molecule, so the batches must be the same: one text, and texts of one length."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")
    path = build("canine-classifier", tmp_path)
    ours, theirs = zoo.load(path, device=device), transformers.pipeline("text-classification", model=str(path))
    for text in TEXTS:
        found, wanted = ours(text), theirs(text, top_k=None)
        assert [one.label for one in found] == [one["label"] for one in wanted]
        np.testing.assert_allclose([x.score for x in found], [x["score"] for x in wanted], rtol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"num_hash_functions": 17, "hidden_size": 17 * 12},
        {"num_hash_functions": 7},
        {"num_attention_heads": 5},
        {"downsampling_rate": 0},
        {"upsampling_kernel_size": -1},
        {"local_transformer_stride": 0},
        {"num_hash_buckets": 0},
        {"layer_norm_eps": 0.0},
        {"hidden_dropout_prob": 1.0},
    ],
)
def test_configs_that_are_refused(change):
    with pytest.raises(ConfigError):
        CanineConfig.from_dict(change)
