"""Every family and head: traced at one size, run at others, against the model on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.checkpoints import build
from parity.specs import FIRST, SPECS
from zoo.engines.onnx.trace import trace
from zoo.inputs import ImageModel
from zoo.inputs.dual_encoder import DualEncoder
from zoo.inputs.encoder_decoder import Seq2Seq
from zoo.inputs.sounds import SoundModel
from zoo.loading import load_model

NEEDS_TORCH = ("bin", "stream")
# The first of each family, and of each kind of head; the others every night.
HEADS = {spec.architecture.partition("For")[2]: name for name, spec in reversed(SPECS.items())}
NIGHTLY = SPECS.keys() - {*FIRST, *HEADS.values()}


def model_of(name, folder) -> Any:
    if getattr(SPECS[name], "format", "") in NEEDS_TORCH:
        pytest.importorskip("torch", reason="needs torch, which writes such a file")
    return load_model(build(name, folder))


def records(model, rng, size):
    """Checked random inputs of size 0, 1 or 2, which differ in rows, lengths, images and masks."""
    rows = (2, 1, 3)[size]
    if isinstance(model, SoundModel):
        shape = rows, model.config.num_mel_bins, model.config.frames
        return (model.sounds(rng.normal(size=shape).astype(np.float32)),)
    if isinstance(model, Seq2Seq):
        ids = rng.integers(5, model.decoder.config.vocab_size, (2 * rows, (5, 3, 7)[size]))
        given = images(model.encoder, rng, rows, size) if isinstance(model.encoder, ImageModel) else None
        return given or records(model.encoder, rng, size)[0], model.decoder.tokens(ids)
    if isinstance(model, DualEncoder):
        text, T = model.text_model, (7, 5, 19)[size]
        return images(model.vision_model, rng, rows, size), text.tokens(rng.integers(5, text.config.vocab_size, (2, T)))
    if isinstance(model, ImageModel):
        return (images(model, rng, rows, size),)
    cfg, T = model.config, (7, 5, 19)[size]
    rows = 1 if getattr(cfg, "pad_token_id", 0) is None else rows  # nothing tells where rows end
    ids, given = rng.integers(5, cfg.vocab_size, (rows, T)), {}
    if "token_type_ids" in model.inputs:
        given["token_type_ids"] = rng.integers(0, cfg.type_vocab_size, ids.shape)
    if getattr(cfg, "add_cross_attention", "encoder_hidden_states" in model.inputs):
        width = getattr(cfg, model.inputs["encoder_hidden_states"])
        given["encoder_hidden_states"] = rng.normal(size=(rows, 4 + T, width)).astype(np.float32)
    mask = np.arange(T) < T - size * np.arange(rows)[:, None]
    return (model.tokens(ids, mask if size else None, **given),)


def images(model, rng, rows, size):
    Y, X = model.config.image if not model.any_size else ((48, 48), (40, 64), (96, 72))[size]
    pixels = rng.normal(size=(rows, Y, X, model.channels)).astype(np.float32)
    mask = None
    if "pixel_mask" in model.inputs and size:
        mask = np.ones((rows, Y, X), bool)
        mask[-1, Y // 2 :] = mask[-1, :, X - 9 :] = False
    hidden = None
    if "bool_masked_pos" in model.inputs and not model.is_base_model:
        h, w = model.grid(pixels)
        hidden = rng.random((rows, h * w)) < 0.4
    return model.pixels(pixels, mask, hidden)


def arrays(value):
    if not isinstance(value, tuple):
        return [value]
    return [array for one in value if one is not None for array in arrays(one)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in NIGHTLY else ()) for name in SPECS]
)
def test_a_graph_is_the_model(name, tmp_path, running):
    model, rng = model_of(name, tmp_path / "model"), np.random.default_rng(0)
    traced = trace(model.forward, *records(model, rng, 0))
    assert not {node.domain for node in trace(model.forward, *records(model, rng, 0), standard=True).nodes} - {""}
    session = running(traced)
    for size in (1, 2):
        given = records(model, rng, size)
        feed = traced.signature.feed(*given)
        assert traced.signature.broken(feed) is None
        found = arrays(traced.signature.result(model.forward, session.run(None, feed)))
        for a, b in zip(found, arrays(model.forward(*given)), strict=True):
            assert a.shape == b.shape
            assert np.linalg.norm(a - b) <= 1e-5 * max(np.linalg.norm(b), b.size**0.5)
