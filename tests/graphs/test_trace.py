"""Graphs that are traced from a model's own file: run by ONNX Runtime at other sizes, against the model on NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from zoo.engines.onnx.signature import Signature
from zoo.engines.onnx.trace import trace
from zoo.errors import InputError
from zoo.models.bert import BertConfig, BertModel
from zoo.models.layoutlmv3 import LayoutLMv3Config, LayoutLMv3Model
from zoo.models.vit import ViTConfig, ViTForImageClassification

SMALL = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def assert_same(traced, session, fn, *records):
    feed = traced.signature.feed(*records)
    assert traced.signature.broken_guard(feed) is None
    found, wanted = traced.signature.result(fn, session.run(None, feed)), fn(*records)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted)), strict=True):
        assert a.shape == b.shape
        assert np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(b)


def texts(model, rows, tokens, padding=0):
    ids = np.random.default_rng(0).integers(0, 90, (rows, tokens))
    mask = np.arange(tokens) < tokens - padding * np.arange(rows)[:, None]
    return model.tokens(ids, mask, ids % 2)


def test_texts_of_any_number_and_length(running):
    model = BertModel.from_config(BertConfig(vocab_size=90, **SMALL))
    traced = trace(model.forward, texts(model, 2, 7))
    assert [one.name for one in traced.signature.inputs] == ["input_ids", "attention_mask", "token_type_ids"]
    assert [one.name for one in traced.signature.outputs] == ["last_hidden_state", "pooler_output"]
    assert traced.signature.guards == ("T <= 512",)
    session = running(traced)
    for record in texts(model, 1, 5), texts(model, 3, 33, padding=4), texts(model, 2, 7):
        assert_same(traced, session, model.forward, record)


def test_images_of_one_size_or_of_any(running):
    model = ViTForImageClassification.from_config(ViTConfig(image_size=32, patch_size=8, **SMALL))
    rng = np.random.default_rng(0)

    def images(*shape):
        return model.pixels(rng.normal(size=(*shape, 3)).astype(np.float32), interpolate_pos_encoding=True)

    traced = trace(model.forward, images(2, 32, 32))
    session = running(traced)
    for rows in (1, 3):
        assert_same(traced, session, model.forward, images(rows, 32, 32))
    assert traced.signature.broken_guard(traced.signature.feed(images(1, 40, 32))) == (
        "pixel_values of shape ('B', 3, 32, 32)"
    )
    traced = trace(model.forward, images(2, 24, 40), any_size=True)
    session = running(traced)
    for shape in ((1, 32, 32), (2, 30, 50)):
        assert_same(traced, session, model.forward, images(*shape))


def test_a_signature_is_kept_in_the_file(running):
    model = BertModel.from_config(BertConfig(vocab_size=90, **SMALL))
    traced = trace(model.forward, texts(model, 2, 7))
    session = running(traced)
    assert Signature.from_json(session.get_modelmeta().custom_metadata_map["zoo"]) == traced.signature


def test_what_a_graph_does_not_take_is_refused():
    model = BertModel.from_config(BertConfig(vocab_size=90, **SMALL))
    traced = trace(model.forward, texts(model, 2, 7))
    with pytest.raises(InputError, match="the graph has no input position_ids, only input_ids, attention_mask"):
        traced.signature.feed(model.tokens([[1, 2]], position_ids=[[3, 4]]))


def test_an_input_that_no_value_stands_for_is_asked_for():
    """Positions of zeros are no missing positions, and a page without a picture is no black one."""
    model = BertModel.from_config(BertConfig(vocab_size=90, **SMALL))
    signature = trace(model.forward, texts(model, 2, 7)).signature
    given = model.tokens([[1, 2]], position_ids=[[0, 0]])
    assert not signature.fits(given)
    with pytest.raises(InputError, match="the graph has no input position_ids"):
        signature.feed(given)
    placed = trace(model.forward, model.tokens([[1, 2]], position_ids=[[3, 4]])).signature
    assert not placed.fits(model.tokens([[1, 2]]))
    with pytest.raises(InputError, match="the graph needs position_ids"):
        placed.feed(model.tokens([[1, 2]]))
    of_pages = LayoutLMv3Model.from_config(LayoutLMv3Config.from_dict(config_of(SPECS["layoutlmv3-base"], "tiny")))
    page = of_pages.example(0)
    seeing = trace(of_pages.forward, *of_pages.records(**page)).signature
    with pytest.raises(InputError, match="the graph needs pixel_values"):
        seeing.feed(*of_pages.records(**{name: x for name, x in page.items() if name != "pixel_values"}))
    masked = seeing.feed(*of_pages.records(**{name: x for name, x in page.items() if name != "attention_mask"}))
    assert masked["attention_mask"].all()
